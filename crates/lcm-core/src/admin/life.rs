//! What is asked of the life of a session: join a family, archive, begin anew, reset.

use crate::storage::records::session::{Archived, Cause};
use crate::storage::session::{self, Life};
use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    context::Item,
    head::{Act, Journal, Loaded},
    keys::{self, Keys},
    store::Guard,
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    json::Writer,
};

use super::verbs::Session;

/// Ids that are tried for a successor; whoever has taken more names one.
const SUCCESSORS_MAX: usize = 1_000;

/// An empty conversation to go on in.
struct Successor {
    found: (Keys, Loaded),
    numbered_from: Option<String>,
}

impl Session<'_, '_> {
    /// Makes the conversation one of a family.
    pub(super) fn family(mut self, key: &str) -> Result<Writer> {
        let mut puts = Vec::new();
        let head = &mut self.loaded.head;
        let changed =
            self.is_stored & session::join(head, &self.keys, key, None, self.now, &mut puts)?;
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &self.loaded.head.conversation);
        answer.text("family", key);
        if changed {
            self.commit(Act::Join, puts)?;
        }
        Ok(answer)
    }

    /// Archives the conversation.
    pub(super) fn archive(mut self, cause: Cause) -> Result<Writer> {
        self.loaded = self.loaded.existing()?;
        let head = &mut self.loaded.head;
        let changed = head.archived.is_none() && self.is_stored;
        if changed {
            head.archived = Some(Archived { cause, time: self.now, successor: None });
        }
        let mut answer = Writer::object();
        Life::read(self.reader, &self.keys, head)?.write_archived(&mut answer);
        answer.flag("changed", changed);
        answer.text("conversation", &head.conversation);
        if changed {
            self.commit(Act::Archive { cause }, Vec::new())?;
        }
        Ok(answer)
    }

    /// Withdraws what is less deep from the context.
    pub(super) fn new_session(mut self, retain_depth: Option<u32>) -> Result<Writer> {
        let head = &mut self.loaded.head;
        session::goes_on(self.reader, head)?;
        let items = head.context.load(self.reader, &self.keys)?;
        let kept = |item: &Item| retain_depth.is_none_or(|least| item.depth() >= Some(least));
        let (mut messages, mut summaries) = (0u64, 0u64);
        let mut left: Vec<Item> = Vec::new();
        for item in &items {
            match item {
                _ if kept(item) => {
                    left.push(*item);
                    continue;
                }
                Item::Run(run) => messages += run.seq_last + 1 - run.seq_first,
                Item::Summary(_) => summaries += 1,
                Item::Withdrawn { .. } => {}
            }
            let (mut first, last) = (item.seq_first(), item.seq_last());
            if let Some(Item::Withdrawn { seq_first, .. }) = left.last() {
                first = *seq_first;
                left.pop();
            }
            left.push(Item::Withdrawn { seq_first: first, seq_last: last });
        }
        let before = head.context.clone();
        let revision = head.revision + 1;
        let (context, puts) =
            head.context.replace(&self.keys, revision, &items, 0..items.len(), &left)?;
        head.context = context;
        let withdrawn = before.tokens.saturating_sub(head.context.tokens);
        head.ledger.withdrawn_tokens = head.ledger.withdrawn_tokens.saturating_add(withdrawn);
        let changed = left != items && self.is_stored;
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &head.conversation);
        answer.number("messages", messages);
        answer.number("summaries", summaries);
        answer.number("tokens_after", head.context.tokens);
        answer.number("tokens_before", before.tokens);
        if changed {
            self.commit(Act::Withdraw { before }, puts)?;
        }
        Ok(answer)
    }

    /// Archives the conversation and makes an empty one to go on in.
    pub(super) fn reset(mut self, successor: Option<String>) -> Result<Writer> {
        let head = &self.loaded.head;
        let conversation = head.conversation.clone();
        let answer = |archived: Option<&str>, conversation: &str, changed| {
            let mut answer = Writer::object();
            answer.text_or_null("archived", archived);
            answer.flag("changed", changed);
            answer.text("conversation", conversation);
            answer
        };
        match &head.archived {
            Some(archived) => {
                if let Some(successor) = session::successor(self.reader, archived)? {
                    return Ok(answer(Some(&conversation), &successor, false));
                }
            }
            None if head.messages == 0 => return Ok(answer(None, &conversation, false)),
            None => {}
        }
        if !self.is_stored {
            return Ok(answer(None, &conversation, false));
        }
        let family = session::family_of(self.reader, &self.keys, head)?;
        let family = family.unwrap_or_else(|| conversation.clone());
        let next = self.successor(successor, &family)?;
        let name = next.found.1.head.conversation.clone();
        if !self.dry_run {
            self.commit_reset(&family, next)?;
        }
        Ok(answer(Some(&conversation), &name, true))
    }

    /// An empty conversation to go on in.
    fn successor(&mut self, asked: Option<String>, family: &str) -> Result<Successor> {
        let hash = keys::family(family);
        if let Some(name) = asked {
            let found = self.empty(&name, hash)?.ok_or_else(|| {
                let message = format!("conversation `{name}` exists and is not empty");
                Error::new(ErrorCode::Exists, message)
            })?;
            return Ok(Successor { found, numbered_from: None });
        }
        let (stem, number) = self.numbered()?;
        for number in (number + 1..).take(SUCCESSORS_MAX) {
            if let Some(found) = self.empty(&format!("{stem}#{number}"), hash)? {
                return Ok(Successor { found, numbered_from: Some(stem) });
            }
        }
        Err(Error::new(ErrorCode::Exists, "successor: name one; the next ids are all taken"))
    }

    /// The id that successors are numbered from, and the number of this one. Only an id that a
    /// reset made is taken apart: `owner/repo#12` is somebody's own.
    fn numbered(&mut self) -> Result<(String, u64)> {
        let id = &self.loaded.head.conversation;
        let member = session::member_of(self.reader, &self.keys, &self.loaded.head)?;
        let stem = member.and_then(|member| member.numbered_from);
        let number = |stem: &String| id.strip_prefix(&**stem)?.strip_prefix('#')?.parse().ok();
        let number = stem.as_ref().and_then(number);
        Ok(stem.zip(number).unwrap_or_else(|| (id.clone(), 1)))
    }

    /// The conversation of this id, when it can be a successor: nothing was said in it.
    fn empty(&mut self, name: &str, family: [u8; 16]) -> Result<Option<(Keys, Loaded)>> {
        let keys = Keys::new(name)?;
        let loaded = Loaded::of(self.reader, &keys, name)?;
        let head = &loaded.head;
        let usable = head.messages == 0
            && head.archived.is_none()
            && head.family.is_none_or(|known| known == family)
            && keys.id() != self.keys.id();
        Ok(usable.then_some((keys, loaded)))
    }

    /// Archives the one and makes the other, both in one family, in one commit guarded by both.
    fn commit_reset(mut self, family: &str, successor: Successor) -> Result<()> {
        let Successor { found: (keys, mut next), numbered_from } = successor;
        let now = self.now;
        let (mut puts, mut guards) = (Vec::new(), Vec::new());
        let head = &mut self.loaded.head;
        session::join(head, &self.keys, family, None, now, &mut puts)?;
        let (cause, time) = (Cause::ManualReset, now);
        let archived = head.archived.get_or_insert(Archived { cause, time, successor: None });
        archived.successor = Some(keys.id());
        let entry = Journal { time: now, act: Act::Archive { cause: archived.cause } };
        self.loaded.write(&self.keys, now, &entry, &mut puts, &mut guards)?;
        if session::join(&mut next.head, &keys, family, numbered_from, now, &mut puts)? {
            let now = next.now(now)?;
            let entry = Journal { time: now, act: Act::Join };
            next.write(&keys, now, &entry, &mut puts, &mut guards)?;
        } else {
            guards.push(Guard { key: keys.head(), value: next.bytes });
        }
        self.reader.commit(&guards, &puts)
    }
}
