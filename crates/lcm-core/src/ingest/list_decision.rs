//! Decision about a list: which entries are new, which are other forms of stored messages, and
//! which stored messages leave the line or come back.
//!
//! In: a list, the line, their comparison, and what the caller saw stored. Out: an outcome for each
//! entry, a change of the line, and notices for the caller.
//!
//! A list that shares its beginning with the line and then goes another way is a branch: the
//! messages of the line after the fork that the list does not have are set aside. They stay stored
//! and are found, but belong to no context. Nothing is set aside in doubt: see
//! [`LineRequest::find_doubt`]. Set-aside messages with which a list goes on come back even then.

use alloc::{format, string::String, vec::Vec};
use core::ops::Range;

use crate::storage::{
    context::ContextItem,
    message_mark::MessageMark,
    records::withdrawals::{FORMS_MAX, Withdrawals},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, sort},
    message::Role,
};

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN, SAID_AGAIN_MAX},
    branch_walk::RestoredMessages,
    line_change::{LineChange, ListStart, RESTORED_MAX},
    line_diff::{LastStored, LineDiff},
    list_texts::SaidHashes,
    message_form,
    stored_line::{ComparedMessage, StoredLine},
};

/// Notice about a list of which the common beginning proves nothing.
const SHORT_BEGINNING: &str = "branch-in-doubt: the list begins like the stored messages, but the \
                               common beginning is short; all of the list is stored after them";

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EntryOutcome {
    /// The entry is stored already.
    Stored,
    /// The entry becomes a message of the line.
    New,
    /// The entry becomes a message outside the line: another form of the message at its place.
    Revision,
    /// The entry fills the slot of system messages.
    System,
}

/// The decision about a list.
#[derive(Debug)]
pub(super) struct ListDecision {
    pub(super) found_by: &'static str,
    /// One for each entry.
    pub(super) outcomes: Vec<EntryOutcome>,
    pub(super) change: Option<LineChange>,
    /// Seq of the message that the first new entry follows in the list, where the line has later
    /// messages before this entry; 0: the list begins with it.
    pub(super) branch: Option<u64>,
    /// Where the list of the new messages begins.
    pub(super) start: ListStart,
    /// What is remembered of the list once it is stored.
    pub(super) hashes: SaidHashes,
    /// What the caller has seen once the list is stored.
    pub(super) seen: SeenMessages,
    /// Whether the list is only an end of the line: it has the newest message of the line, and
    /// fewer entries than the line has messages.
    pub(super) is_end: bool,
    /// Whether the list begins with an accepted list that ends with the newest message.
    pub(super) reaches_newest: bool,
    /// Lines for the warnings of the receipt.
    pub(super) notices: Vec<String>,
}

/// Which messages a caller has seen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct SeenMessages {
    /// Whether the caller has seen every message after the call: those up to `seq_before`, and the
    /// others in its list.
    pub(super) is_all: bool,
    /// Seq up to which the caller saw every message before the call; 0: unknown.
    pub(super) seq_before: u64,
}

impl SeenMessages {
    /// Returns what a caller has seen whose list is not compared with the line. `messages`: number
    /// of messages stored before the call.
    pub(super) fn from_caller(seq_seen: Option<u64>, messages: u64) -> Self {
        let seq_before = seq_seen.unwrap_or(0).min(messages);
        Self { is_all: seq_before == messages, seq_before }
    }

    /// Returns the seq up to which the caller has seen every message, of `messages` stored after
    /// the call.
    pub(super) fn seq_after(self, messages: u64) -> u64 {
        if self.is_all { messages } else { self.seq_before }
    }
}

/// A list, its comparison with the line, and what the caller saw.
pub(super) struct LineRequest<'a, 'b> {
    pub(super) line: &'a StoredLine<'b>,
    pub(super) withdrawals: &'a Withdrawals,
    pub(super) entries: &'a [AlignableEntry],
    pub(super) diff: LineDiff,
    /// Number of first entries that are known to be stored.
    pub(super) confirmed: usize,
    /// Seq up to which the caller has seen every message; `None` or 0: unknown.
    pub(super) seq_seen: Option<u64>,
}

/// Where a list leaves the line.
struct Placement {
    last: LastStored,
    /// Whether the list shares messages with the line, or goes on with a branch.
    is_placed: bool,
    restored: RestoredMessages,
}

/// Where messages of the line may be set aside.
#[derive(Clone, Copy)]
struct ForkPlace {
    last: LastStored,
    /// Number of entries after the last stored one that are set-aside messages.
    restored: usize,
}

impl LineRequest<'_, '_> {
    /// Decides about the list.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn decide_list(&self, session: &mut StoreSession<'_>) -> Result<ListDecision> {
        let is_stored = |index: usize, entry: &AlignableEntry| {
            let is_known = entry.is_known() && self.diff.grown != Some(index);
            index < self.confirmed || is_known || self.diff.is_stored(index)
        };
        let outcomes = self.entries.iter().enumerate();
        let outcomes = outcomes.map(|(index, entry)| match is_stored(index, entry) {
            true => EntryOutcome::Stored,
            false => EntryOutcome::New,
        });
        let last = self.confirmed.checked_sub(1);
        let is_found = last.is_none_or(|last| {
            self.diff.is_stored(last) || self.entries.get(last).is_none_or(AlignableEntry::is_known)
        });
        let mut decision = ListDecision {
            found_by: if is_found { self.diff.found_by } else { "confirmed" },
            outcomes: outcomes.collect(),
            change: None,
            branch: None,
            start: ListStart::Earlier,
            hashes: SaidHashes::default(),
            seen: SeenMessages::default(),
            is_end: self.diff.find_last_stored().position == self.line.count_messages()
                && int::to_u64(self.entries.len()) < self.line.count_messages(),
            reaches_newest: self.diff.position_accepted == self.line.count_messages(),
            notices: Vec::new(),
        };
        self.mark_revisions(session, &mut decision)?;
        self.find_taken_forms(session, &mut decision)?;
        self.decide_branch(session, &mut decision)?;
        let is_new = decision.outcomes.contains(&EntryOutcome::New);
        if decision.found_by == "none" && self.entries.len() > 1 && is_new {
            decision.start = ListStart::Unplaced;
            let messages = self.line.message_history().head.messages;
            let has_notice = !decision.notices.is_empty();
            if messages > 0 && !has_notice && !self.answers_newest(session)? {
                decision.notices.push(format!(
                    "no-overlap: the list does not continue after the {messages} stored messages; \
                     all of it counts as new"
                ));
            }
        }
        // Without a new message the list may end before the newest message of the line.
        if self.is_whole() && decision.outcomes.contains(&EntryOutcome::New) {
            decision.hashes.list = self.entries.last().map(|entry| entry.list_hash);
        }
        decision.seen = self.find_seen(session, &decision)?;
        Ok(decision)
    }

    /// Returns whether the list begins with a message of the model, and the newest message is one
    /// that a model answers. Such a list is the answer, and needs no message in common.
    fn answers_newest(&self, session: &mut StoreSession<'_>) -> Result<bool> {
        let is_answer = self.entries.first().is_some_and(|it| it.role == Role::Assistant);
        if !is_answer {
            return Ok(false);
        }
        let newest = self.line.seq_at(self.line.count_messages());
        let stored = self.line.read_stored(session, newest)?;
        Ok(stored.is_some_and(|message| matches!(message.role, Role::User | Role::Tool)))
    }

    /// Returns whether the list may be whole: it begins with an accepted list, with an entry that
    /// is not in the line, or where the line or a later list begins.
    fn is_whole(&self) -> bool {
        let position = self.diff.positions.first().copied().flatten();
        let is_first = |position: u64| position == 1 || self.line.list_starts().contains(&position);
        self.diff.position_accepted > 0 || position.is_none_or(is_first)
    }

    /// Finds the last stored entry as [`LineDiff::find_last_stored`] does, and passes over the
    /// entries after it that have the ids of the next messages and are stored as other forms of
    /// them.
    fn find_last_form(
        &self,
        session: &mut StoreSession<'_>,
        outcomes: &[EntryOutcome],
    ) -> Result<LastStored> {
        let mut last = self.diff.find_last_stored();
        while let Some(entry) = self.entries.get(last.count) {
            let is_form =
                entry.is_id_taken && outcomes.get(last.count) == Some(&EntryOutcome::Stored);
            let position = last.position + 1;
            if !is_form || last.count == 0 || position > self.line.count_messages() {
                break;
            }
            let stored = self.line.read_stored(session, self.line.seq_at(position))?;
            let Some(message) = &stored else { break };
            // Ids that count messages repeat on each branch, so the entry may begin a branch that
            // was set aside.
            let is_form_here = message_form::compare_forms(entry, None, message).is_some();
            if message.mark.id != entry.mark.id
                || (!is_form_here && self.line.has_branch_form(session, last.position, entry)?)
            {
                break;
            }
            last = LastStored { count: last.count + 1, position };
        }
        Ok(last)
    }

    /// Marks entries as other forms of messages: those that the comparison found, and those between
    /// two stored entries, or before the first, if the line has as many other messages there.
    fn mark_revisions(
        &self,
        session: &mut StoreSession<'_>,
        decision: &mut ListDecision,
    ) -> Result<()> {
        let positions = &self.diff.positions;
        let place = |index: &usize| Some((*index, positions.get(*index).copied().flatten()?));
        let mut forms: Vec<(usize, u64)> = self.diff.other_forms.iter().filter_map(place).collect();
        let taken = self.diff.list_taken(self.entries);
        let new = self.entries.iter().zip(&decision.outcomes).enumerate();
        let new = new.filter(|(_, (_, outcome))| **outcome == EntryOutcome::New);
        let mut new: Vec<(MessageMark, usize)> =
            new.map(|(index, (entry, _))| (entry.mark, index)).collect();
        sort::sort_by(&mut new, &mut |left, right| left.0.meaning.cmp(&right.0.meaning));
        let (mut start, mut before) = (self.diff.accepted, self.diff.position_accepted);
        for (index, position) in positions.iter().enumerate().skip(start) {
            let Some(position) = *position else {
                // A moved entry is no form of a message beside it.
                start = if self.diff.is_stored(index) { index + 1 } else { start };
                continue;
            };
            let length = int::to_u64(index - start);
            // The entries of a gap are as many messages of the line: those directly after the
            // message before the gap, or directly before the message after it. At the other end of
            // the gap a branch may begin. No message of the gap may belong to another entry.
            let is_gap = |first: &u64| {
                let next = taken.partition_point(|taken| taken < first);
                self.follows_in_list(before, *first)
                    && self.follows_in_list((first + length).saturating_sub(1), position)
                    && taken.get(next).is_none_or(|taken| *taken >= first + length)
            };
            let firsts = [before + 1, position.saturating_sub(length)];
            if length > 0
                && let Some(first) = firsts.into_iter().rfind(is_gap)
            {
                let places = (&mut *decision, &*new);
                forms.extend(self.find_gap_forms(session, start, first + length, places)?);
            }
            (start, before) = (index + 1, position);
        }
        self.apply_forms(session, &forms, decision)
    }

    /// Gives entries that are other forms of stored messages the outcome `Revision`; `Stored` if
    /// this form is stored already, or begins a set-aside branch at its place. Position 0: the form
    /// has no place in the line.
    fn apply_forms(
        &self,
        session: &mut StoreSession<'_>,
        forms: &[(usize, u64)],
        decision: &mut ListDecision,
    ) -> Result<()> {
        if forms.is_empty() {
            return Ok(());
        }
        let known = self.line.read_forms(session)?;
        let is_form = |outcome: &&EntryOutcome| **outcome == EntryOutcome::Revision;
        let mut free = self.withdrawals.count_free_forms();
        free = free.saturating_sub(decision.outcomes.iter().filter(is_form).count());
        let (mut count, mut left_out) = (0, 0);
        for (index, position) in forms {
            let (Some(entry), Some(outcome)) =
                (self.entries.get(*index), decision.outcomes.get_mut(*index))
            else {
                continue;
            };
            let is_known = known.iter().any(|form| form.is_same_message(&entry.mark))
                || (*position > 0 && self.line.has_branch(session, position - 1, entry)?);
            let is_stored = is_known || count == free;
            *outcome = if is_stored { EntryOutcome::Stored } else { EntryOutcome::Revision };
            count += usize::from(!is_stored);
            left_out += usize::from(is_stored && !is_known);
        }
        if left_out > 0 {
            decision.notices.push(format!(
                "forms-full: {left_out} of the messages are other forms of stored messages and are \
                 not stored, because a conversation has at most {FORMS_MAX} other forms"
            ));
        }
        if count > 0 {
            decision.notices.push(format!(
                "revision: {count} of the messages are other forms of stored messages; the context \
                 keeps the first form"
            ));
        }
        Ok(())
    }

    /// Marks new entries as stored whose ids do not count, if another form of a message has the
    /// same ids and says the same.
    fn find_taken_forms(
        &self,
        session: &mut StoreSession<'_>,
        decision: &mut ListDecision,
    ) -> Result<()> {
        let places = self.entries.iter().zip(decision.outcomes.iter_mut()).enumerate();
        // A longer form that takes the place of the newest message is a message of the line.
        let places = places.filter(|(index, _)| self.diff.grown != Some(*index));
        let mut taken: Vec<(&AlignableEntry, &mut EntryOutcome)> = places
            .map(|(_, place)| place)
            .filter(|(entry, outcome)| entry.is_id_taken && **outcome == EntryOutcome::New)
            .collect();
        if taken.is_empty() {
            return Ok(());
        }
        let known = self.line.read_forms(session)?;
        for (entry, outcome) in &mut taken {
            let is_form =
                |form: &MessageMark| form.id == entry.mark.id && form.meaning == entry.mark.meaning;
            if known.iter().any(is_form) {
                **outcome = EntryOutcome::Stored;
            }
        }
        Ok(())
    }

    /// Pairs the entries without a position from index `start` on with as many messages before
    /// `position_end`. Returns the entries that are other forms of their messages; marks those that
    /// say the same as stored.
    ///
    /// The gap has no forms in three cases: an entry cannot be its message; more than one text of
    /// people or models differs, and neither holds the other; or a pair is uncertain and no strong
    /// anchor follows.
    fn find_gap_forms(
        &self,
        session: &mut StoreSession<'_>,
        start: usize,
        position_end: u64,
        (decision, new): (&mut ListDecision, &[(MessageMark, usize)]),
    ) -> Result<Vec<(usize, u64)>> {
        let entries = self.entries.get(start..).unwrap_or(&[]).iter().enumerate();
        let length = self.diff.positions.iter().skip(start).take_while(|it| it.is_none()).count();
        let position_first = position_end - int::to_u64(length);
        let positions = position_first..position_end;
        let seqs: Vec<u64> = positions.map(|position| self.line.seq_at(position)).collect();
        let (mut forms, mut equal, mut texts) = (Vec::new(), Vec::new(), 0);
        let (mut is_certain, mut is_gap) = (true, true);
        let mut entries = entries.take(length);
        self.line.visit_stored(session, &seqs, &mut |_, message| {
            let Some((offset, entry)) = entries.next() else { return false };
            if is_elsewhere(start..start + length, &message, decision, new) {
                is_gap = false;
            } else if entry.mark.says_the_same(&message.mark) && !entry.is_known() {
                equal.push(start + offset);
            } else if message_form::may_be_form(entry, &message) {
                let is_held = message_form::compare_forms(entry, None, &message).is_some()
                    || message_form::may_be_stub(entry, &message);
                texts += usize::from(message_form::is_text(entry) && !is_held);
                is_certain &= entry.role == Role::System || is_held;
                forms.push((start + offset, position_first + int::to_u64(offset)));
            } else {
                is_gap = false;
            }
            is_gap
        })?;
        if !is_gap {
            return Ok(Vec::new());
        }
        if !is_certain && !self.has_anchor_after(start + length) {
            return Ok(Vec::new());
        }
        if texts > 1 || entries.next().is_some() {
            return Ok(Vec::new());
        }
        for index in equal {
            decision.outcomes.get_mut(index).into_iter().for_each(|it| *it = EntryOutcome::Stored);
        }
        Ok(forms)
    }

    /// Returns whether a strong anchor is among the entries that are, from index `start` on,
    /// consecutive messages of the line.
    fn has_anchor_after(&self, start: usize) -> bool {
        let mut next = None;
        for (entry, position) in self.entries.iter().zip(&self.diff.positions).skip(start) {
            let is_next = next.is_none_or(|next| *position == Some(next));
            let Some(position) = position.filter(|_| is_next) else { return false };
            if entry.is_strong_anchor() {
                return true;
            }
            next = Some(position + 1);
        }
        false
    }

    /// Decides what changes in the line: messages after the last stored entry that are set aside,
    /// set-aside messages that come back, and a shorter form that a longer one replaces.
    fn decide_branch(
        &self,
        session: &mut StoreSession<'_>,
        decision: &mut ListDecision,
    ) -> Result<()> {
        let messages = self.line.message_history().head.messages;
        let last = self.find_last_form(session, &decision.outcomes)?;
        let left = self.line.count_messages().saturating_sub(last.position);
        let ends_doubt = left == 0 && self.has_whole_line();
        let goes_back = !self.withdrawals.ranges.is_empty() && !self.diff.is_rest;
        if left == 0 && !goes_back && !ends_doubt {
            return Ok(());
        }
        let Placement { last, is_placed, mut restored } = self.place_list(session, last)?;
        if restored.count > 0 && decision.found_by == "none" {
            decision.found_by = "alignment";
        }
        let fork = self.line.seq_at(last.position);
        let left = self.line.count_messages().saturating_sub(last.position);
        let ends_doubt = ends_doubt && left == 0;
        self.mark_restored(session, (last.count, &restored), decision)?;
        self.keep_list_order(&restored, decision);
        let hidden = self.restore_known(&mut restored, decision);
        if hidden > 0 {
            decision.notices.push(format!(
                "branch-in-doubt: {hidden} messages of the list stay set aside: at most \
                 {RESTORED_MAX} ranges come back at once, so hand over the list again; none comes \
                 back if the conversation has too many ranges of set-aside messages"
            ));
        }
        let new = decision.outcomes.iter().skip(last.count + restored.count);
        let mut rest = self.entries.iter().skip(last.count);
        let has_restored = restored.count > 0 || rest.any(AlignableEntry::is_set_aside);
        let count = restored.count;
        let has_new = new.into_iter().any(|outcome| *outcome == EntryOutcome::New);
        let restored = restored.ranges;
        let mut change = LineChange { fork: messages, is_grown: false, restored, ends_doubt };
        let replaced = self.diff.replaced;
        let before = self.line.count_messages().saturating_sub(replaced);
        let is_alone = self.entries.len() == 1;
        let has_grown =
            replaced > 0 && self.withdrawals.count_free_forms() >= int::to_usize(replaced);
        if has_grown && (left == replaced || is_alone) {
            (change.fork, change.is_grown) = (self.line.seq_at(before), true);
            decision.notices.push(format!(
                "revision: a longer form replaces the messages from {} on in the context",
                self.line.seq_at(before + 1)
            ));
        } else if is_placed
            && left > 0
            && (has_new || has_restored || self.is_undo(last, &decision.outcomes))
        {
            let place = ForkPlace { last, restored: count };
            change.fork = self.choose_fork(place, &mut decision.notices);
            let after = change.restored.last().map_or(fork, |(_, last)| *last);
            let newest = self.line.seq_at(self.line.count_through(change.fork));
            decision.branch = Some(after).filter(|after| has_new && *after < newest);
        } else if self.diff.has_short_beginning && !is_placed && has_new {
            decision.notices.push(SHORT_BEGINNING.into());
        }
        if let Some((first, _)) = change.restored.first() {
            let count: u64 = change.restored.iter().map(|(first, last)| last + 1 - first).sum();
            decision.notices.push(format!(
                "restored: {count} messages that were set aside come back, from message {first} on"
            ));
        }
        let changes = change.fork < messages || !change.restored.is_empty() || ends_doubt;
        decision.change = changes.then_some(change);
        Ok(())
    }

    /// Returns whether a branch of the line is in doubt, and the list has all messages of the line.
    fn has_whole_line(&self) -> bool {
        let accepted = self.diff.position_accepted;
        !self.withdrawals.branches.is_empty()
            && int::to_u64(self.diff.accepted) == accepted
            && cover_positions(self.list_positions(), accepted, self.line.count_messages())
    }

    /// Lists the positions of the stored entries as ranges, each the position before and the last.
    fn list_positions(&self) -> Vec<(u64, u64)> {
        self.diff.list_stored().map(|position| (position - 1, position)).collect()
    }

    /// Finds where the list leaves the line, and the set-aside messages with which it goes on. A
    /// list that shares nothing with the line may still be a branch from the beginning, or begin
    /// inside a branch.
    fn place_list(&self, session: &mut StoreSession<'_>, last: LastStored) -> Result<Placement> {
        let is_placed = last.count > 0 || self.line.count_messages() == 0;
        let mut placement = Placement { last, is_placed, restored: RestoredMessages::default() };
        let fork = self.line.seq_at(last.position);
        let mut restored = self.walk_branches(session, last.count, fork)?;
        if restored.count == 0
            && let Some((earlier, longer)) = self.find_longer_branch(session, last)?
        {
            (placement.last, restored) = (earlier, longer);
        }
        let count = placement.last.count;
        let returned = self.entries.iter().skip(count).take(restored.count);
        let anchors = returned.filter(|entry| entry.is_anchor()).count();
        placement.is_placed |= anchors >= INSIDE_ANCHORS_MIN;
        if placement.is_placed {
            placement.restored = restored;
        } else if let Some(window) = self.find_window() {
            let rest = self.walk_branches(session, window.count, window.seq_last)?;
            let position = self.line.count_through(window.fork);
            placement.last = LastStored { count: 0, position };
            placement.restored = window.into_restored(rest);
            placement.is_placed = true;
        }
        Ok(placement)
    }

    /// Gives the entries from index `start` on that come back the outcome `Stored`, and those whose
    /// form is not stored yet `Revision`. A longer form of the message behind them is new.
    fn mark_restored(
        &self,
        session: &mut StoreSession<'_>,
        (start, restored): (usize, &RestoredMessages),
        decision: &mut ListDecision,
    ) -> Result<()> {
        let rest = decision.outcomes.iter_mut().skip(start);
        rest.take(restored.count).for_each(|outcome| *outcome = EntryOutcome::Stored);
        let mut forms = self.list_known_forms(restored);
        forms.extend(&restored.forms);
        sort::sort_and_dedup(&mut forms);
        // These forms have no place in the line.
        let forms: Vec<(usize, u64)> = forms.into_iter().map(|index| (index, 0)).collect();
        self.apply_forms(session, &forms, decision)?;
        if let Some(index) = restored.grown {
            decision.outcomes.get_mut(index).into_iter().for_each(|it| *it = EntryOutcome::New);
        }
        Ok(())
    }

    /// Finds a set-aside branch to which the last stored entries belong: the line has equal ones,
    /// because people say short texts again, but the branch has more of the list. Returns also the
    /// last stored entry before the branch.
    fn find_longer_branch(
        &self,
        session: &mut StoreSession<'_>,
        last: LastStored,
    ) -> Result<Option<(LastStored, RestoredMessages)>> {
        let position_after = |count: usize| match count.checked_sub(1)? {
            _ if count == self.diff.accepted => Some(self.diff.position_accepted),
            0 => None,
            index => self.diff.positions.get(index).copied().flatten(),
        };
        let mut earlier = last;
        if last.count == self.entries.len() {
            return Ok(None);
        }
        for back in 1..=SAID_AGAIN_MAX.min(last.count) {
            let LastStored { count, position } = earlier;
            let is_weak = self.entries.get(count - 1).is_some_and(|entry| !entry.is_anchor());
            let before = position_after(count - 1).map(|before| before + 1);
            let is_run = position_after(count) == Some(position) && before == Some(position);
            if !is_weak || !is_run {
                break;
            }
            earlier = LastStored { count: count - 1, position: position - 1 };
            let fork = self.line.seq_at(earlier.position);
            let branch = self.walk_branches(session, earlier.count, fork)?;
            let returned = self.entries.iter().skip(earlier.count).take(branch.count);
            if branch.count > back && returned.into_iter().any(AlignableEntry::is_anchor) {
                return Ok(Some((earlier, branch)));
            }
        }
        Ok(None)
    }

    /// Returns whether the list is the beginning of the line and nothing else, and has more than
    /// one entry: the host took back what follows.
    fn is_undo(&self, last: LastStored, outcomes: &[EntryOutcome]) -> bool {
        let mut before = self.diff.position_accepted;
        if let Some(Some(first)) = self.diff.positions.first()
            && self.line.list_starts().contains(first)
        {
            before = first - 1;
        }
        let mut is_next = |(position, outcome): (&Option<u64>, &EntryOutcome)| {
            // An entry without a position that is not new is another form of the next message.
            let is_form = *outcome != EntryOutcome::New;
            let position = position.or(is_form.then_some(before + 1));
            let follows = position.is_some_and(|next| self.follows_in_list(before, next));
            before = position.unwrap_or(before);
            follows
        };
        let rest = self.diff.positions.iter().zip(outcomes).skip(self.diff.accepted);
        self.entries.len() > 1
            && last.count == self.entries.len()
            && rest.into_iter().all(&mut is_next)
            && self.is_whole()
    }

    /// Returns whether a message of the line follows another in the list of a host: it is the next
    /// one, or begins a branch after the other.
    fn follows_in_list(&self, before: u64, position: u64) -> bool {
        position == before + 1 || self.line.branch_starts(before).contains(&position)
    }

    /// Returns the seq of the last message that stays, if the line has messages after the last
    /// stored entry that the list does not have. In doubt all of them stay. Adds a notice.
    fn choose_fork(&self, place: ForkPlace, notices: &mut Vec<String>) -> u64 {
        let last = place.last;
        let fork = self.line.seq_at(last.position);
        let newest = self.line.seq_at(self.line.count_messages());
        let doubt = self.find_doubt(place, (fork, newest)).or_else(|| {
            let messages = self.line.message_history().head.messages;
            let is_full = !self.withdrawals.can_set_aside(fork, messages);
            is_full.then_some("the conversation has too many ranges of set-aside messages")
        });
        if let Some(doubt) = doubt {
            if last.count + place.restored < self.entries.len() || place.restored > 0 {
                notices.push(format!(
                    "branch-in-doubt: the list goes another way after message {fork}, but {doubt}; \
                     the stored messages stay, and new messages are stored after them; call \
                     `rewind` to set them aside"
                ));
            } else if self.caller_seen().is_none_or(|seen| seen >= newest) {
                notices.push(format!(
                    "branch-in-doubt: the list ends after message {fork}, but {doubt}; the stored \
                     messages after it stay in the context; call `rewind` to set them aside"
                ));
            }
            return self.line.message_history().head.messages;
        }
        // The messages that an earlier list in doubt did not have may be those of other hosts, so
        // they stay.
        let gaps = self.withdrawals.list_gaps().filter(|(first, _)| *first == fork + 1);
        let kept = gaps.map(|(_, last)| last).max().unwrap_or(fork);
        let position = self.line.count_through(kept);
        let count = self.line.count_messages().saturating_sub(position);
        if count > 0 {
            notices.push(format!(
                "set-aside: the list goes another way after message {fork}; {count} messages from \
                 {} to {newest} are set aside",
                self.line.seq_at(position + 1)
            ));
        }
        if count > 0 { kept } else { self.line.message_history().head.messages }
    }

    /// Returns the seq up to which the caller has seen every message; `None`: unknown, or 0.
    fn caller_seen(&self) -> Option<u64> {
        self.seq_seen.filter(|seen| *seen > 0)
    }

    /// Returns why nothing may be set aside after a message; `None`: the branch is certain. The
    /// pair has the seqs of the message at the fork and of the newest message of the line.
    fn find_doubt(&self, place: ForkPlace, (fork, newest): (u64, u64)) -> Option<&'static str> {
        let ForkPlace { last, restored } = place;
        let entries = self.entries.iter().enumerate().take(last.count + restored);
        let matched =
            entries.filter(|(index, _)| *index >= last.count || self.diff.is_stored(*index));
        let (mut anchors, mut has_certain) = (0, false);
        for (_, entry) in matched {
            anchors += usize::from(entry.is_anchor());
            // A long text under its stored id is certain alone.
            has_certain |= entry.is_known() && entry.is_discriminating;
        }
        let is_short = anchors < INSIDE_ANCHORS_MIN && !has_certain && !self.diff.is_first_turn;
        let mut gaps = self.withdrawals.list_gaps();
        let hides_gap = gaps.any(|(first, last)| first != fork + 1 && fork < last);
        match self.caller_seen() {
            None => Some("the call does not say with `seq_seen` what the caller saw"),
            Some(seen) if seen < newest => {
                Some("others stored messages that the caller did not see")
            }
            Some(_) if is_short => Some("the common beginning is short"),
            Some(_) if hides_gap => Some("the caller had no list with the messages after it"),
            Some(_) => None,
        }
    }

    /// Finds what the caller has seen once the list is stored. The list of a caller that does not
    /// say what it saw need not have the messages that an earlier list in doubt did not have.
    fn find_seen(
        &self,
        session: &mut StoreSession<'_>,
        decision: &ListDecision,
    ) -> Result<SeenMessages> {
        let seq_before = self.seq_seen.unwrap_or(0).max(self.diff.seen_accepted);
        let seq_before = seq_before.min(self.line.message_history().head.messages);
        let messages = self.line.message_history().head.messages;
        let mut fork = decision.change.as_ref().map_or(messages, |change| change.fork);
        if self.caller_seen().is_none() {
            fork = decision.branch.map_or(fork, |after| fork.min(after));
        }
        let (first, last) = (self.line.count_through(seq_before), self.line.count_through(fork));
        let mut covered = self.list_positions();
        if self.caller_seen().is_none() {
            covered.extend(self.list_excused_gaps(first));
        }
        let mut is_all = cover_positions(covered.clone(), first, last);
        if !is_all && self.line.message_history().head.ledger.withdrawn_tokens > 0 {
            covered.extend(self.list_session_ranges(session)?);
            is_all = cover_positions(covered, first, last);
        }
        // Another caller may have handed over the earlier list with which this list begins.
        let seq_before = if self.caller_seen().is_none() && !is_all { 0 } else { seq_before };
        Ok(SeenMessages { is_all, seq_before })
    }

    /// Lists the gaps after position `first` that this list need not fill: messages that an earlier
    /// list in doubt did not have, of which this list has none although it has the message after
    /// them. Ranges as in [`Self::list_positions`].
    fn list_excused_gaps(&self, first: u64) -> Vec<(u64, u64)> {
        let has = |from: u64, to: u64| {
            let mut positions = self.diff.positions.iter().flatten();
            positions.any(|position| (from..=to).contains(position))
        };
        let to_range = |(gap_first, gap_last): (u64, u64)| {
            (self.line.count_through(gap_first - 1).max(first), self.line.count_through(gap_last))
        };
        let gaps = self.withdrawals.list_gaps().map(to_range);
        gaps.filter(|(from, end)| has(end + 1, end + 1) && !has(from + 1, *end)).collect()
    }

    /// Lists the messages of the line that are in no context, because a new session withdrew them.
    /// No caller need have them. Each pair has the position before the first and that of the last.
    fn list_session_ranges(&self, session: &mut StoreSession<'_>) -> Result<Vec<(u64, u64)>> {
        let history = self.line.message_history();
        let items = history.head.context.load_items(session, history.keys)?;
        let ranges = items.iter().filter_map(|item| match item {
            ContextItem::Withdrawn { seq_first, seq_last } => Some((
                self.line.count_through(seq_first.saturating_sub(1)),
                self.line.count_through(*seq_last),
            )),
            ContextItem::Run(_) | ContextItem::Summary(_) => None,
        });
        // Other forms of messages have no position.
        Ok(ranges.filter(|(from, to)| from < to).collect())
    }
}

/// Returns whether a new entry outside a gap equals a message of the gap. `new`: marks and indexes
/// of the entries that were new before the gaps were compared, sorted by meaning.
fn is_elsewhere(
    gap: Range<usize>,
    message: &ComparedMessage,
    decision: &ListDecision,
    new: &[(MessageMark, usize)],
) -> bool {
    let meaning = message.mark.meaning;
    let first = new.partition_point(|(mark, _)| mark.meaning < meaning);
    let mut equal = new.iter().skip(first).take_while(|(mark, _)| mark.meaning == meaning);
    equal.any(|(mark, index)| {
        !gap.contains(index)
            && decision.outcomes.get(*index) == Some(&EntryOutcome::New)
            && mark.is_same_message(&message.mark)
    })
}

/// Returns whether ranges have every position after `first` up to `last`. Each range has the
/// position before its first one, and its last one.
fn cover_positions(mut ranges: Vec<(u64, u64)>, first: u64, last: u64) -> bool {
    sort::sort(&mut ranges);
    let extend = |end: u64, (from, to): (u64, u64)| if from <= end { end.max(to) } else { end };
    ranges.into_iter().fold(first, extend) >= last
}
