//! What is asked of the life of a session: join a family, archive, begin anew, reset.

use crate::storage::records::session::{ArchiveCause, ArchiveRecord};
use crate::storage::session::{self, SessionLifecycle};
use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    context::ContextItem,
    head::{JournalAction, JournalEntry, LoadedHead},
    keys::{self, ConversationKeys},
    store::Guard,
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    json::JsonWriter,
};

use super::commands::CommandContext;

/// Ids that are tried for a successor; whoever has taken more names one.
const SUCCESSORS_MAX: usize = 1_000;

/// An empty conversation to go on in.
struct SuccessorConversation {
    conversation: (ConversationKeys, LoadedHead),
    numbered_from: Option<String>,
}

impl CommandContext<'_, '_> {
    /// Makes the conversation one of a family.
    pub(super) fn join_family(mut self, key: &str) -> Result<JsonWriter> {
        let mut puts = Vec::new();
        let head = &mut self.loaded.head;
        let changed = self.is_writable
            & session::join_family(head, &self.keys, key, None, self.now, &mut puts)?;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        answer.add_text("family", key);
        if changed {
            self.commit(JournalAction::Join, puts)?;
        }
        Ok(answer)
    }

    /// Archives the conversation.
    pub(super) fn archive(mut self, cause: ArchiveCause) -> Result<JsonWriter> {
        self.loaded = self.loaded.require_existing()?;
        let head = &mut self.loaded.head;
        let changed = head.archived.is_none() && self.is_writable;
        if changed {
            head.archived = Some(ArchiveRecord { cause, time: self.now, successor: None });
        }
        let mut answer = JsonWriter::new_object();
        SessionLifecycle::read(self.reader, &self.keys, head)?.write_archived(&mut answer);
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &head.conversation);
        if changed {
            self.commit(JournalAction::Archive { cause }, Vec::new())?;
        }
        Ok(answer)
    }

    /// Withdraws what is less deep from the context.
    pub(super) fn start_new_session(mut self, retain_depth: Option<u32>) -> Result<JsonWriter> {
        let head = &mut self.loaded.head;
        session::ensure_not_archived(self.reader, head)?;
        let items = head.context.load_items(self.reader, &self.keys)?;
        let kept =
            |item: &ContextItem| retain_depth.is_none_or(|least| item.depth() >= Some(least));
        let (mut messages, mut summaries) = (0u64, 0u64);
        let mut left: Vec<ContextItem> = Vec::new();
        for item in &items {
            match item {
                _ if kept(item) => {
                    left.push(*item);
                    continue;
                }
                ContextItem::Run(run) => messages += run.seq_last + 1 - run.seq_first,
                ContextItem::Summary(_) => summaries += 1,
                ContextItem::Withdrawn { .. } => {}
            }
            let (mut first, last) = (item.seq_first(), item.seq_last());
            if let Some(ContextItem::Withdrawn { seq_first, .. }) = left.last() {
                first = *seq_first;
                left.pop();
            }
            left.push(ContextItem::Withdrawn { seq_first: first, seq_last: last });
        }
        let before = head.context.clone();
        let revision = head.revision + 1;
        let (context, puts) =
            head.context.replace_items(&self.keys, revision, &items, 0..items.len(), &left)?;
        head.context = context;
        let withdrawn = before.tokens.saturating_sub(head.context.tokens);
        head.ledger.withdrawn_tokens = head.ledger.withdrawn_tokens.saturating_add(withdrawn);
        let changed = left != items && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &head.conversation);
        answer.add_number("messages", messages);
        answer.add_number("summaries", summaries);
        answer.add_number("tokens_after", head.context.tokens);
        answer.add_number("tokens_before", before.tokens);
        if changed {
            self.commit(JournalAction::Withdraw { before }, puts)?;
        }
        Ok(answer)
    }

    /// Archives the conversation and makes an empty one to go on in.
    pub(super) fn reset(mut self, successor: Option<String>) -> Result<JsonWriter> {
        let head = &self.loaded.head;
        let conversation = head.conversation.clone();
        let answer = |archived: Option<&str>, conversation: &str, changed| {
            let mut answer = JsonWriter::new_object();
            answer.add_optional_text("archived_conversation", archived);
            answer.add_flag("changed", changed);
            answer.add_text("conversation", conversation);
            answer
        };
        match &head.archived {
            Some(archived) => {
                if let Some(successor) = session::find_successor(self.reader, archived)? {
                    return Ok(answer(Some(&conversation), &successor, false));
                }
            }
            None if head.messages == 0 => return Ok(answer(None, &conversation, false)),
            None => {}
        }
        if !self.is_writable {
            return Ok(answer(None, &conversation, false));
        }
        let family = session::read_family(self.reader, &self.keys, head)?;
        let family = family.unwrap_or_else(|| conversation.clone());
        let next = self.open_successor(successor, &family)?;
        let name = next.conversation.1.head.conversation.clone();
        if !self.dry_run {
            self.commit_reset(&family, next)?;
        }
        Ok(answer(Some(&conversation), &name, true))
    }

    /// An empty conversation to go on in.
    fn open_successor(
        &mut self,
        asked: Option<String>,
        family: &str,
    ) -> Result<SuccessorConversation> {
        let hash = keys::family_hash(family);
        if let Some(name) = asked {
            let found = self.find_empty_conversation(&name, hash)?.ok_or_else(|| {
                let message = format!("conversation `{name}` exists and is not empty");
                Error::new(ErrorCode::Exists, message)
            })?;
            return Ok(SuccessorConversation { conversation: found, numbered_from: None });
        }
        let (stem, number) = self.successor_numbering()?;
        for number in (number + 1..).take(SUCCESSORS_MAX) {
            if let Some(found) = self.find_empty_conversation(&format!("{stem}#{number}"), hash)? {
                return Ok(SuccessorConversation {
                    conversation: found,
                    numbered_from: Some(stem),
                });
            }
        }
        Err(Error::new(ErrorCode::Exists, "successor: name one; the next ids are all taken"))
    }

    /// The id that successors are numbered from, and the number of this one. Only an id that a
    /// reset made is taken apart: `owner/repo#12` is somebody's own.
    fn successor_numbering(&mut self) -> Result<(String, u64)> {
        let id = &self.loaded.head.conversation;
        let member = session::read_member(self.reader, &self.keys, &self.loaded.head)?;
        let stem = member.and_then(|member| member.numbered_from);
        let number = |stem: &String| id.strip_prefix(&**stem)?.strip_prefix('#')?.parse().ok();
        let number = stem.as_ref().and_then(number);
        Ok(stem.zip(number).unwrap_or_else(|| (id.clone(), 1)))
    }

    /// The conversation of this id, when it can be a successor: nothing was said in it.
    fn find_empty_conversation(
        &mut self,
        name: &str,
        family: [u8; 16],
    ) -> Result<Option<(ConversationKeys, LoadedHead)>> {
        let keys = ConversationKeys::new(name)?;
        let loaded = LoadedHead::load_head(self.reader, &keys, name)?;
        let head = &loaded.head;
        let usable = head.messages == 0
            && head.archived.is_none()
            && head.family.is_none_or(|known| known == family)
            && keys.conversation_hash() != self.keys.conversation_hash();
        Ok(usable.then_some((keys, loaded)))
    }

    /// Archives the one and makes the other, both in one family, in one commit guarded by both.
    fn commit_reset(mut self, family: &str, successor: SuccessorConversation) -> Result<()> {
        let SuccessorConversation { conversation: (keys, mut next), numbered_from } = successor;
        let now = self.now;
        let (mut puts, mut guards) = (Vec::new(), Vec::new());
        let head = &mut self.loaded.head;
        session::join_family(head, &self.keys, family, None, now, &mut puts)?;
        let (cause, time) = (ArchiveCause::ManualReset, now);
        let archived = head.archived.get_or_insert(ArchiveRecord { cause, time, successor: None });
        archived.successor = Some(keys.conversation_hash());
        let entry =
            JournalEntry { time: now, act: JournalAction::Archive { cause: archived.cause } };
        self.loaded.append_head_puts(&self.keys, now, &entry, &mut puts, &mut guards)?;
        if session::join_family(&mut next.head, &keys, family, numbered_from, now, &mut puts)? {
            let now = next.effective_time(now)?;
            let entry = JournalEntry { time: now, act: JournalAction::Join };
            next.append_head_puts(&keys, now, &entry, &mut puts, &mut guards)?;
        } else {
            guards.push(Guard { key: keys.head_key(), value: next.bytes });
        }
        self.reader.commit(&guards, &puts)
    }
}
