//! Conversations that a query searches, and the context of a search.
//!
//! Input: the query, and a grant or ranges of messages. Output: the conversations to search, each
//! with the ranges that may be found. A [`GrepContext`] passes them to the searches.

use alloc::{string::String, vec::Vec};

use super::{bounds::GrepBounds, request::GrepQuery};
use crate::{
    search::index_reader::SearchIndex,
    storage::{
        conversation_list, head::LoadedHead, history::MessageHistory, keys::ConversationKeys,
        records::grants::GrantAccess, session, store_session::StoreSession,
    },
};
use lcm_text::base::{
    error::{ErrorCode, Result},
    sort,
};

/// Most other conversations of a family that one query searches; the latest to join are kept. Each
/// conversation costs some reads, and a job that resets its session every hour has thousands of
/// them.
const MEMBERS_MAX: usize = 32;

/// One conversation that a query searches.
pub(super) struct SearchedConversation {
    /// Id of the conversation.
    pub(super) name: String,
    pub(super) keys: ConversationKeys,
    pub(super) loaded: LoadedHead,
    /// Ranges of seqs that may be found, both ends included; `None`: all. A summary must lie within
    /// one range.
    pub(super) spans: Option<Vec<(u64, u64)>>,
    /// Position in the scan order, which does not change when messages are appended.
    pub(super) scan_order: usize,
}

impl SearchedConversation {
    /// Reads the head of a conversation; `None` if the conversation does not exist.
    pub(super) fn read(
        session: &mut StoreSession<'_>,
        name: &str,
        scan_order: usize,
    ) -> Result<Option<Self>> {
        let keys = ConversationKeys::new(name)?;
        let loaded = LoadedHead::load_head(session, &keys, name)?;
        let build = |loaded| Self { name: name.into(), keys, loaded, spans: None, scan_order };
        Ok(Some(loaded).filter(|loaded| loaded.bytes.is_some()).map(build))
    }

    /// Reads the head of a conversation from a list of conversations. `None`: the conversation does
    /// not exist, or its deletion began after the list was read.
    fn read_other(
        session: &mut StoreSession<'_>,
        name: &str,
        scan_order: usize,
    ) -> Result<Option<Self>> {
        match Self::read(session, name, scan_order) {
            Err(error) if error.code == ErrorCode::Denied => Ok(None),
            other => other,
        }
    }

    /// Makes this conversation the current one of the store session, so that the reads that follow
    /// use its head.
    pub(super) fn enter_conversation(&self, session: &mut StoreSession<'_>) {
        session.bind_head(&self.keys, self.loaded.head.revision, self.loaded.bytes.as_deref());
    }

    /// Returns a reader of the messages of this conversation.
    pub(super) const fn message_history(&self) -> MessageHistory<'_> {
        MessageHistory { keys: &self.keys, head: &self.loaded.head }
    }
}

/// Conversations, indexes and bounds of one search.
#[derive(Clone, Copy)]
pub(super) struct GrepContext<'g> {
    /// Conversations to search.
    pub(super) conversations: &'g [SearchedConversation],
    /// Index of each conversation.
    pub(super) indexes: &'g [SearchIndex],
    /// Scope, order and limits.
    pub(super) bounds: &'g GrepBounds,
}

impl<'g> GrepContext<'g> {
    /// Returns a conversation and its index, by its number in the list; `None`: the list has no
    /// such number.
    pub(super) fn get(&self, number: usize) -> Option<(&'g SearchedConversation, &'g SearchIndex)> {
        self.conversations.get(number).zip(self.indexes.get(number))
    }

    /// Iterates over the conversations with number and index.
    pub(super) fn iter(
        &self,
    ) -> impl Iterator<Item = (usize, &'g SearchedConversation, &'g SearchIndex)> {
        let pairs = self.conversations.iter().zip(self.indexes);
        pairs.enumerate().map(|(number, (conversation, index))| (number, conversation, index))
    }
}

/// Reads the conversations of a grant, the last changed first; with `only`, at most the named one.
/// Omits conversations that do not exist or are being deleted, or of which the grant covers no
/// message.
pub(super) fn read_permitted_conversations(
    session: &mut StoreSession<'_>,
    conversation: &str,
    query: &GrepQuery,
    grant: &GrantAccess,
) -> Result<Vec<SearchedConversation>> {
    let mut conversations = Vec::new();
    for (scan_order, name) in grant.list_conversations(session)?.into_iter().enumerate() {
        if query.only && name != conversation {
            continue;
        }
        let Some(mut entry) = SearchedConversation::read_other(session, &name, scan_order)? else {
            continue;
        };
        entry.spans = grant.covered_spans(&entry.keys);
        // A conversation without a covered message is not searched.
        if entry.spans.as_ref().is_none_or(|spans| !spans.is_empty()) {
            conversations.push(entry);
        }
    }
    sort_newest_first(&mut conversations);
    Ok(conversations)
}

/// Reads the conversations named in a list of ranges (conversation, first and last seq), the last
/// changed first. Omits conversations that do not exist.
pub(super) fn read_named_conversations(
    session: &mut StoreSession<'_>,
    searched: &[(&str, u64, u64)],
) -> Result<Vec<SearchedConversation>> {
    let mut names: Vec<&str> = searched.iter().map(|(name, ..)| *name).collect();
    sort::sort_and_dedup(&mut names);
    let mut conversations = Vec::new();
    for (scan_order, name) in names.into_iter().enumerate() {
        conversations.extend(SearchedConversation::read_other(session, name, scan_order)?);
    }
    sort_newest_first(&mut conversations);
    Ok(conversations)
}

/// Restricts conversations to ranges (conversation, first and last seq), and drops conversations
/// without a message in any range.
pub(super) fn narrow_to_ranges(
    conversations: Vec<SearchedConversation>,
    searched: &[(&str, u64, u64)],
) -> Vec<SearchedConversation> {
    let mut out = Vec::new();
    for mut entry in conversations {
        let parts = searched.iter().filter(|(name, ..)| *name == entry.name);
        let parts: Vec<(u64, u64)> = parts.map(|(_, first, last)| (*first, *last)).collect();
        let whole = [(1, u64::MAX)];
        let covered = entry.spans.as_deref().unwrap_or(&whole);
        // Touching ranges stay separate: a summary across two ranges is covered by neither range.
        let common = covered.iter().flat_map(|(from, to)| {
            parts.iter().map(|(first, last)| ((*from).max(*first), (*to).min(*last)))
        });
        let spans: Vec<(u64, u64)> = common.filter(|(from, to)| from <= to).collect();
        if !spans.is_empty() {
            entry.spans = Some(spans);
            out.push(entry);
        }
    }
    out
}

fn sort_newest_first(conversations: &mut [SearchedConversation]) {
    sort::sort_by(conversations, &mut |a, b| {
        let times = b.loaded.head.clock.time.cmp(&a.loaded.head.clock.time);
        times.then_with(|| a.name.cmp(&b.name))
    });
}

/// Reads the conversations to search: with `all_conversations` all by id, else the named one and
/// its family, the last changed first. With `only`, the named one alone. If a family has more than
/// 32 other members, adds the note `family-limited`.
///
/// # Errors
///
/// `not-found`: the named conversation does not exist; `denied`: the named conversation is being
/// deleted. Neither is checked with `all_conversations`. Errors of the store.
pub(super) fn read_searched_conversations(
    session: &mut StoreSession<'_>,
    conversation: &str,
    query: &GrepQuery,
    notes: &mut Vec<&'static str>,
) -> Result<Vec<SearchedConversation>> {
    if !query.all_conversations {
        let entry = SearchedConversation::read(session, conversation, 0)?
            .ok_or_else(|| LoadedHead::missing_error(conversation))?;
        let family = entry.loaded.head.family.filter(|_| !query.only);
        let mut conversations = alloc::vec![entry];
        let Some(family) = family else { return Ok(conversations) };
        let mut members = session::list_other_members(session, family, conversation)?;
        if members.len() > MEMBERS_MAX {
            members.truncate(MEMBERS_MAX);
            notes.push("family-limited");
        }
        for member in members {
            conversations.extend(SearchedConversation::read_other(
                session,
                &member.conversation,
                conversations.len(),
            )?);
        }
        sort_newest_first(&mut conversations);
        return Ok(conversations);
    }
    let mut conversations = Vec::new();
    for name in conversation_list::list_all_conversations(session)? {
        conversations.extend(SearchedConversation::read_other(
            session,
            &name,
            conversations.len(),
        )?);
    }
    Ok(conversations)
}
