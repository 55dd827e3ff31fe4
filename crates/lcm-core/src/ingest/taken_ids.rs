//! Ids of the host: which entries of a list are stored under their ids, and whose ids do not count.
//!
//! In: the entries of a list, and the messages with their ids. Out: the seq of each stored entry,
//! and a notice. `append` and `reconcile` use this module.
//!
//! A host may give one id to two messages: counters begin anew, an edited message keeps its id, an
//! agent has one id for every answer. Such an id does not count: the entry is compared by what it
//! says, so nothing is lost. A form of a message is the message with its id:
//!
//! - a redacted copy, a cut answer, a question without the block that the host added: it is stored
//!   already;
//! - a streamed answer that went on, an answer to which results and steps were added, another
//!   result of the same call, the same calls with another text or other arguments, if their ids are
//!   unique: it becomes another form.

use alloc::{format, string::String, vec::Vec};
use core::cmp::Ordering;

use crate::storage::{
    history::MessageHistory,
    records::withdrawals::{WithdrawalReason, Withdrawals},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, sort},
    message::Role,
};

use super::{
    identity::IdentityMatch,
    message_form,
    stored_line::{ComparedMessage, StoredLine},
    transcript::TranscriptEntry,
};

/// Most messages that are read, the newest ones. An older one counts as another message.
const READ_MAX: usize = 512;

/// The stored messages of a list.
#[derive(Debug, Default)]
pub(super) struct StoredIds {
    /// For each entry, the seq of the message that it is by its id; `None`: its ids say nothing.
    pub(super) known: Vec<Option<u64>>,
    /// The notice about entries whose ids do not count; `None`: there are none.
    pub(super) notice: Option<String>,
}

impl StoredIds {
    /// Returns whether an entry is a stored message by its ids.
    pub(super) fn is_known(&self, index: usize) -> bool {
        self.known.get(index).copied().flatten().is_some()
    }

    /// Returns whether an id of an entry is stored, or two entries share one.
    pub(super) fn has_stored_id(&self) -> bool {
        self.notice.is_some() || self.known.iter().any(Option::is_some)
    }
}

/// How an entry is the message with its id.
#[derive(Clone, Copy, Eq, PartialEq)]
enum IdMatch {
    /// The entry is stored already: it says the same, or less of it.
    Stored,
    /// The entry is another form to store: a streamed answer that went on, another result of the
    /// same call, the same calls with other arguments.
    OtherForm,
    /// The entry is another form, and has more parts than the message and every part of it.
    Grown,
}

/// The entries of a list, with the messages that have their ids.
pub(super) struct ListedIds<'a, 'b> {
    pub(super) entries: &'a mut [&'b mut TranscriptEntry],
    /// For each entry, the messages with its ids.
    pub(super) found: &'a [IdentityMatch],
    /// Returns what an entry says, if that is one text; `None`: something else, or only hashes are
    /// known.
    pub(super) text_of: &'a dyn Fn(usize) -> Option<String>,
}

impl ListedIds<'_, '_> {
    /// Finds the stored entries by their ids, and marks the entries whose ids do not count.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn find_stored(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        withdrawals: &Withdrawals,
    ) -> Result<StoredIds> {
        let mut known: Vec<Option<u64>> = self.found.iter().map(|found| found.stored).collect();
        let mut taken = self.find_repeated();
        for place in &taken {
            self.entries.get_mut(*place).into_iter().for_each(|entry| entry.is_id_taken = true);
        }
        let mut others = self.list_others();
        if !others.is_empty() {
            sort::sort(&mut others);
            let line = StoredLine::new(*history, withdrawals);
            let mut seqs: Vec<u64> = others.iter().map(|(seq, _)| *seq).collect();
            seqs.dedup();
            let seqs = seqs.get(seqs.len().saturating_sub(READ_MAX)..).unwrap_or(&[]);
            let mut matches: Vec<Option<IdMatch>> = alloc::vec![None; others.len()];
            line.visit_stored(session, seqs, &mut |seq, message| {
                let first = others.partition_point(|(other, _)| *other < seq);
                let pairs = others.iter().zip(&mut matches).skip(first);
                for ((_, place), slot) in pairs.take_while(|((other, _), _)| *other == seq) {
                    *slot = self.compare_message(*place, &message);
                }
                true
            })?;
            let mut pairs: Vec<_> = others.into_iter().zip(matches).collect();
            sort::sort_by(&mut pairs, &mut |left, right| left.0.1.cmp(&right.0.1));
            for ((seq, place), matched) in pairs {
                let matched = matched.filter(|_| !self.answers_taken(place));
                let Some(entry) = self.entries.get_mut(place) else { continue };
                entry.is_id_taken |= matched.is_none();
                entry.has_grown = matched == Some(IdMatch::Grown);
                entry.is_other_form = entry.has_grown || matched == Some(IdMatch::OtherForm);
                match matched {
                    None => taken.push(place),
                    Some(_) => known.get_mut(place).into_iter().for_each(|it| *it = Some(seq)),
                }
            }
        }
        sort::sort_and_dedup(&mut taken);
        let notice = self.describe(&taken);
        // After an import, an id may lead to another form of its message, which has no place in the
        // line.
        let is_form = |seq: &u64| withdrawals.reason_of(*seq) == Some(WithdrawalReason::Revision);
        let forms = known.iter().enumerate().filter(|(_, seq)| seq.as_ref().is_some_and(is_form));
        taken.extend(forms.map(|(place, _)| place).collect::<Vec<usize>>());
        for place in &taken {
            known.get_mut(*place).into_iter().for_each(|seq| *seq = None);
            self.entries.get_mut(*place).into_iter().for_each(|entry| entry.is_id_taken = true);
        }
        Ok(StoredIds { known, notice })
    }

    /// Returns the notice about entries whose ids do not count; `None`: there are none.
    fn describe(&self, taken: &[usize]) -> Option<String> {
        let first = taken.first()?;
        let all = self.entries.iter().filter(|entry| !entry.is_empty).count();
        Some(format!(
            "id-taken: {} of {all} messages, first `messages[{first}]`, have the id of another \
             message that says something else; they are compared by what they say: give each \
             message an id of its own, or none",
            taken.len()
        ))
    }

    /// Lists the entries with the id of a message that says something else: seq of the message, and
    /// index of the entry.
    fn list_others(&self) -> Vec<(u64, usize)> {
        let places = self.found.iter().zip(&*self.entries).enumerate();
        let others = places.filter(|(_, (found, entry))| found.stored.is_none() && !entry.is_empty);
        others.filter_map(|(place, (found, _))| Some((found.other?, place))).collect()
    }

    /// Finds the entries that share an id with an entry that says something else. The id still
    /// counts for the only entry that says what is stored under it.
    fn find_repeated(&self) -> Vec<usize> {
        let mut ids: Vec<(u8, &str, [u8; 8], usize)> = Vec::new();
        let entries = self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_empty);
        for (place, entry) in entries {
            let said = entry.whole_mark.hash_said();
            ids.extend(entry.entry_id.as_deref().map(|id| (0, id, said, place)));
            ids.extend(entry.event_key.as_deref().map(|id| (1, id, said, place)));
        }
        sort::sort(&mut ids);
        let is_stored = |place: usize| self.found.get(place).is_some_and(|it| it.stored.is_some());
        let mut taken = Vec::new();
        for group in ids.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
            if group.first().map(|it| it.2) == group.last().map(|it| it.2) {
                continue;
            }
            for equal in group.chunk_by(|left, right| left.2 == right.2) {
                let places = equal.iter().map(|(.., place)| *place);
                taken.extend(places.filter(|place| equal.len() > 1 || !is_stored(*place)));
            }
        }
        taken
    }

    /// Returns whether an entry is the result of another call than the message with its id: its
    /// call id only counts calls, and the id of the call before it is taken.
    fn answers_taken(&self, place: usize) -> bool {
        let is_result = |entry: &&mut TranscriptEntry| entry.role == Role::Tool;
        let before = self.entries.get(..place).unwrap_or(&[]);
        let call = before.iter().rev().find(|entry| !is_result(entry));
        let entry = self.entries.get(place).filter(|entry| is_result(entry));
        entry.is_some_and(|entry| !entry.whole_mark.has_unique_call())
            && call.is_some_and(|call| call.is_id_taken)
    }

    /// Compares an entry with the message that has its id. `None`: the entry is another message.
    fn compare_message(&self, place: usize, message: &ComparedMessage) -> Option<IdMatch> {
        let entry = self.entries.get(place)?;
        let (mark, stored_mark) = (&entry.whole_mark, &message.mark);
        // An answer in one message with its results grows while tools and the model work.
        let (said, stored) = (&entry.said, &message.parts);
        if entry.role == message.role && entry.role == Role::Assistant {
            match said.len().cmp(&stored.len()) {
                Ordering::Greater if message_form::holds_parts(said, stored) => {
                    return Some(IdMatch::Grown);
                }
                Ordering::Less if message_form::holds_parts(stored, said) => {
                    return Some(IdMatch::Stored);
                }
                _ => {}
            }
        }
        let has_other_call = mark.has_other_call(stored_mark);
        let are_unique = mark.has_unique_call() && stored_mark.has_unique_call();
        if entry.role != message.role || (has_other_call && are_unique) {
            return None;
        }
        if mark.meaning == stored_mark.meaning
            || entry.redacted_copy.is_some_and(|copy| copy.may_be_copy_of(&message.text))
        {
            return Some(IdMatch::Stored);
        }
        if has_other_call {
            return None;
        }
        match entry.role {
            Role::Tool => return Some(IdMatch::OtherForm),
            // Ids that count calls repeat on each branch.
            _ if mark.has_call() && mark.call == stored_mark.call => {
                return are_unique.then_some(IdMatch::OtherForm);
            }
            _ => {}
        }
        let said = entry.said.first().filter(|_| entry.said.len() == 1)?;
        let bytes = int::to_usize(entry.text_bytes?.into());
        let stored = message.said.as_deref().filter(|stored| !stored.is_empty())?;
        let is_user = entry.role == Role::User;
        if bytes > stored.len() {
            let text = (self.text_of)(place).filter(|_| !is_user)?;
            return text.starts_with(stored).then_some(IdMatch::OtherForm);
        }
        // A text of a user that was shortened is an edit, and a short text is no evidence.
        let rest = message_form::find_rest(entry.role, (bytes, said.said), stored)?;
        let is_form = if is_user { message_form::is_block(rest) } else { entry.is_discriminating };
        is_form.then_some(IdMatch::Stored)
    }
}
