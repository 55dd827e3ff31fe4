//! Links between conversations, and guards against the deletion of a linked conversation.
//!
//! In: a conversation and the others that a commit is about to name in its records. Out: the
//! missing links, and guards by which the commit fails if one of them is deleted. A deletion
//! follows the links (`docs/store-format.md`, *Deletion*).

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call, changes::Changes, keys::ConversationKeys, records::link::ConversationLink,
    store::Guard, store_session::StoreSession,
};
use lcm_text::base::error::{Error, Result};

/// A conversation and the others that its records are about to name, each with its life: the first
/// journal entry, which a deletion removes.
pub(crate) struct ConversationLinks {
    /// First the conversation that names the others, then the others.
    conversations: Vec<LinkedConversation>,
}

struct LinkedConversation {
    name: String,
    keys: ConversationKeys,
    /// Value of the life; `None`: the conversation does not exist or is being deleted.
    life: Option<Vec<u8>>,
    /// Whether the first conversation of the list has a link to this conversation.
    is_linked: bool,
}

impl LinkedConversation {
    fn as_end(&self) -> LinkEnd<'_> {
        LinkEnd { conversation: &self.name, keys: &self.keys }
    }
}

/// One of two linked conversations.
pub(crate) struct LinkEnd<'a> {
    pub(crate) conversation: &'a str,
    pub(crate) keys: &'a ConversationKeys,
}

impl<'a> LinkEnd<'a> {
    /// Returns the conversation of a call.
    pub(crate) fn from_call(call: Call<'a>) -> Self {
        Self { conversation: call.conversation, keys: call.keys }
    }
}

impl ConversationLinks {
    /// Reads the lives of the call's conversation and of `others`, and which links exist.
    ///
    /// Call this before the records that the commit quotes are read, so that a deletion between
    /// that read and the commit makes the commit fail.
    ///
    /// # Errors
    ///
    /// `invalid-input`: one of `others` is no id; errors of the store.
    pub(crate) fn read<'n>(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        others: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self> {
        let mut names = alloc::vec![call.conversation];
        for other in others {
            if !names.contains(&other) {
                names.push(other);
            }
        }
        let mut wanted = Vec::new();
        let mut all_keys = Vec::new();
        for name in &names {
            let keys = ConversationKeys::new(name)?;
            wanted.extend([keys.life_key(), call.keys.link_key(&keys)]);
            all_keys.push(keys);
        }
        let mut conversations = Vec::new();
        let values = session.read_uncached(&wanted)?;
        for ((name, keys), values) in names.into_iter().zip(all_keys).zip(values.chunks(2)) {
            let [life, link] = values else { continue };
            let (life, is_linked) = (life.clone(), link.is_some());
            conversations.push(LinkedConversation { name: name.into(), keys, life, is_linked });
        }
        Ok(Self { conversations })
    }

    /// Refuses the commit if one of the conversations has no life.
    ///
    /// # Errors
    ///
    /// `conflict`: a conversation was deleted, is being deleted or never existed.
    pub(crate) fn ensure_alive(&self) -> Result<()> {
        match self.conversations.iter().find(|one| one.life.is_none()) {
            None => Ok(()),
            Some(LinkedConversation { name, .. }) => Err(Error::revision_conflict(format_args!(
                "conversation `{name}` was deleted during the call; repeat the call"
            ))),
        }
    }

    /// Adds a guard on the life of every conversation, and the missing links in both directions.
    ///
    /// # Errors
    ///
    /// `conflict`: a conversation was deleted, is being deleted or never existed.
    pub(crate) fn add_to(self, changes: &mut Changes) -> Result<()> {
        self.ensure_alive()?;
        let mut all = self.conversations.into_iter();
        let Some(first) = all.next() else { return Ok(()) };
        changes.add_guard(Guard { key: first.keys.life_key(), value: first.life.clone() });
        for other in all {
            changes.add_guard(Guard { key: other.keys.life_key(), value: other.life.clone() });
            if !other.is_linked {
                add_link(changes, &first.as_end(), &other.as_end())?;
            }
        }
        Ok(())
    }
}

/// Adds the links between two conversations to a commit.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB, which the bound of ids prevents.
pub(crate) fn add_link(
    changes: &mut Changes,
    one: &LinkEnd<'_>,
    other: &LinkEnd<'_>,
) -> Result<()> {
    for (from, to) in [(one, other), (other, one)] {
        let link = ConversationLink { conversation: to.conversation.into() };
        changes.write_record(&ConversationLink::key(from.keys, to.keys), &link)?;
    }
    Ok(())
}
