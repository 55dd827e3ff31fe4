//! The commands of the session lifecycle: `family`, `archive`, `new` and `reset`.
//!
//! In: a conversation and the arguments of a command. Out: a JSON report, and at most one commit.
//! The rules of families and archives are in [`crate::storage::session`].

use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    changes::Changes,
    context::ContextItem,
    head::{JournalAction, LoadedHead},
    links::{self, LinkEnd},
    records::{
        remakes::{ContextExit, RemakeRecord},
        session::{ArchiveCause, ArchiveRecord},
    },
    session::{self as session_rules, SessionLifecycle},
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
    json::JsonWriter,
};

use super::commands::CommandContext;

/// Maximum number of ids that `reset` tries for a successor before the caller must name one.
const SUCCESSORS_MAX: usize = 1_000;

/// The empty conversation that becomes the successor of the conversation of a `reset`.
struct SuccessorConversation {
    loaded: LoadedHead,
    /// The part before `#` of the successor's id; `None`: the caller named the successor.
    numbered_from: Option<String>,
}

impl CommandContext<'_, '_> {
    /// Adds the conversation, which may be new, to the family with this key.
    pub(super) fn join_family(mut self, key: &str) -> Result<JsonWriter> {
        let mut changes = Changes::default();
        let head = &mut self.loaded.head;
        let changed = self.is_writable
            & session_rules::join_family(self.call, head, key, None, &mut changes)?;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        answer.add_text("family", key);
        if changed {
            self.commit(JournalAction::Join, changes)?;
        }
        Ok(answer)
    }

    /// Archives the conversation; an archived conversation stays as it is.
    pub(super) fn archive(mut self, cause: ArchiveCause) -> Result<JsonWriter> {
        let head = &mut self.loaded.head;
        let changed = head.archived.is_none() && self.is_writable;
        if changed {
            head.archived = Some(ArchiveRecord { cause, time: self.call.now, successor: None });
        }
        let mut answer = JsonWriter::new_object();
        SessionLifecycle::read(self.session, self.call.keys, head)?.write_archived(&mut answer);
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &head.conversation);
        if changed {
            self.commit(JournalAction::Archive { cause }, Changes::default())?;
        }
        Ok(answer)
    }

    /// Withdraws raw messages and the summaries with a depth below `retain_depth` from the context;
    /// `None`: withdraws nothing.
    pub(super) fn start_new_session(mut self, retain_depth: Option<u32>) -> Result<JsonWriter> {
        let head = &mut self.loaded.head;
        session_rules::ensure_not_archived(self.session, head)?;
        let items = head.context.load_items(self.session, self.call.keys)?;
        let is_kept =
            |item: &ContextItem| retain_depth.is_none_or(|least| item.depth() >= Some(least));
        let (mut messages, mut summaries) = (0u64, Vec::new());
        let mut replacement: Vec<ContextItem> = Vec::new();
        for item in &items {
            match item {
                _ if is_kept(item) => {
                    replacement.push(*item);
                    continue;
                }
                ContextItem::Run(run) => messages += run.seq_last + 1 - run.seq_first,
                ContextItem::Summary(summary) => summaries.push(summary.id),
                ContextItem::Withdrawn { .. } => {}
            }
            let (mut first, last) = (item.seq_first(), item.seq_last());
            if let Some(ContextItem::Withdrawn { seq_first, .. }) = replacement.last() {
                first = *seq_first;
                replacement.pop();
            }
            replacement.push(ContextItem::Withdrawn { seq_first: first, seq_last: last });
        }
        let before = head.context.clone();
        let revision = head.revision + 1;
        let (context, puts) = head.context.replace_items(
            self.call.keys,
            revision,
            &items,
            0..items.len(),
            &replacement,
        )?;
        head.context = context;
        let withdrawn = before.tokens.saturating_sub(head.context.tokens);
        head.ledger.withdrawn_tokens = head.ledger.withdrawn_tokens.saturating_add(withdrawn);
        let changed = replacement != items && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &head.conversation);
        answer.add_number("messages", messages);
        answer.add_number("summaries", int::to_u64(summaries.len()));
        answer.add_number("tokens_after", head.context.tokens);
        answer.add_number("tokens_before", before.tokens);
        if changed {
            let mut changes = Changes::default();
            changes.add_puts(puts);
            if !summaries.is_empty() {
                let (keys, head) = (self.call.keys, &mut self.loaded.head);
                let mut remakes = RemakeRecord::read(self.session, keys, head)?;
                remakes.add_exits(ContextExit::Withdrawn, &summaries);
                head.remakes = remakes.count_entries();
                changes.write_record(&RemakeRecord::key(keys), &remakes)?;
            }
            self.commit(JournalAction::Withdraw { before }, changes)?;
        }
        Ok(answer)
    }

    /// Archives the conversation and creates its empty successor. Changes nothing in three cases:
    /// the conversation is empty and not archived, it has a stored successor, or the configuration
    /// skips the session.
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
                if let Some(successor) = session_rules::find_successor(self.session, archived)? {
                    return Ok(answer(Some(&conversation), &successor, false));
                }
            }
            None if head.messages == 0 => return Ok(answer(None, &conversation, false)),
            None => {}
        }
        if !self.is_writable {
            return Ok(answer(None, &conversation, false));
        }
        let family = session_rules::read_family(self.session, self.call.keys, head)?;
        let family = match family {
            Some(family) => family,
            None => session_rules::find_free_family(self.session, &conversation)?,
        };
        let next = self.open_successor(successor, &family)?;
        let name = next.loaded.head.conversation.clone();
        if !self.dry_run {
            self.commit_reset(&family, next)?;
        }
        Ok(answer(Some(&conversation), &name, true))
    }

    /// Opens the conversation that becomes the successor: `requested`, or the first conversation
    /// without messages among the next 1,000 ids with a number behind `#`.
    fn open_successor(
        &mut self,
        requested: Option<String>,
        family: &str,
    ) -> Result<SuccessorConversation> {
        if let Some(name) = requested {
            let loaded = self.find_empty_conversation(&name, family)?.ok_or_else(|| {
                let message = format!(
                    "`successor` must be an empty conversation, got `{name}`, which has messages, \
                     is archived, belongs to another family or is the conversation to reset"
                );
                Error::new(ErrorCode::Exists, message)
            })?;
            return Ok(SuccessorConversation { loaded, numbered_from: None });
        }
        let (stem, number) = self.successor_numbering()?;
        for number in (number + 1..).take(SUCCESSORS_MAX) {
            let name = format!("{stem}#{number}");
            if let Some(loaded) = self.find_empty_conversation(&name, family)? {
                return Ok(SuccessorConversation { loaded, numbered_from: Some(stem) });
            }
        }
        let message = format!(
            "`successor` must be given: the next {SUCCESSORS_MAX} ids after `{stem}#{number}` are \
             taken"
        );
        Err(Error::new(ErrorCode::Exists, message))
    }

    /// Returns the id to which `#` and a successor's number are appended, and this conversation's
    /// number.
    ///
    /// Only an id that a reset made is split, because `owner/repo#12` may be the caller's own id.
    /// Any other id has the number 1.
    fn successor_numbering(&mut self) -> Result<(String, u64)> {
        let id = &self.loaded.head.conversation;
        let member = session_rules::read_member(self.session, self.call.keys, &self.loaded.head)?;
        let stem = member.and_then(|member| member.numbered_from);
        let parse_number =
            |stem: &String| id.strip_prefix(&**stem)?.strip_prefix('#')?.parse().ok();
        let number = stem.as_ref().and_then(parse_number);
        Ok(stem.zip(number).unwrap_or_else(|| (id.clone(), 1)))
    }

    /// Returns the conversation `name`, which may be new. Returns `None` if the conversation cannot
    /// be the successor. It then has messages, is archived, belongs to another family, or is the
    /// conversation to reset.
    fn find_empty_conversation(&mut self, name: &str, family: &str) -> Result<Option<LoadedHead>> {
        let session = &mut *self.session;
        let loaded = self.call.with_conversation(name, |call| LoadedHead::open(session, call))?;
        let head = &loaded.head;
        let is_usable = head.messages == 0
            && head.archived.is_none()
            && !session_rules::has_other_family(head, family)
            && name != self.call.conversation;
        Ok(is_usable.then_some(loaded))
    }

    /// Archives this conversation and puts the successor into the same family, in one commit that
    /// is guarded by both heads.
    fn commit_reset(mut self, family: &str, successor: SuccessorConversation) -> Result<()> {
        let SuccessorConversation { loaded: mut next, numbered_from } = successor;
        let call = self.call;
        let name = next.head.conversation.clone();
        let changes = call.with_conversation(&name, |next_call| {
            let mut changes = Changes::default();
            let (head, now) = (&mut self.loaded.head, call.now);
            session_rules::join_family(call, head, family, None, &mut changes)?;
            let cause = ArchiveCause::ManualReset;
            let archived =
                head.archived.get_or_insert(ArchiveRecord { cause, time: now, successor: None });
            archived.successor = Some(next_call.keys.conversation_hash());
            let act = JournalAction::Archive { cause: archived.cause };
            self.loaded.append_changes(call, act, &mut changes)?;
            let head = &mut next.head;
            if session_rules::join_family(next_call, head, family, numbered_from, &mut changes)? {
                next.append_changes(next_call, JournalAction::Join, &mut changes)?;
            } else {
                next.add_guard(next_call, &mut changes);
            }
            let ends = (LinkEnd::from_call(call), LinkEnd::from_call(next_call));
            links::add_link(&mut changes, &ends.0, &ends.1)?;
            Ok(changes)
        })?;
        self.session.commit_changes(&changes)
    }
}
