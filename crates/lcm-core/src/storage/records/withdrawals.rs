//! Withdrawals: the messages that left the line of a conversation, and why.
//!
//! In: ranges of messages that an append or a rewind sets aside, or that an append stores as other
//! forms of messages. Out: the ranges, which the alignment of a list leaves out. The context has
//! withdrawn items for the same messages until a summary of the messages around them takes their
//! place; this record stays.
//!
//! The set-aside ranges form a tree: each range names the message that it followed. If a host
//! returns to an earlier branch, its list is compared with the ranges that followed the last
//! message that list and line share. If it is doubtful whether a list leaves the line, nothing is
//! set aside. The new messages of the list then follow the newest message in the line, and a
//! [`BranchStart`] names their predecessor in the list.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    message_mark::MessageMark,
    record_key::RecordKey,
};
use lcm_text::base::error::{Error, Result};

/// Most ranges of set-aside messages, and most ranges of other forms, of one conversation: at most
/// 19 bytes each, so that the record with the forms is a value of the store.
const RANGES_MAX: usize = 4_096;
/// Most other forms that are stored; their marks take 64 KiB.
pub(crate) const FORMS_MAX: usize = 4_096;
/// Fewest free ranges of set-aside messages with which messages come back: each range that comes
/// back may split another one, and at most so many come back at once.
const FREE_RANGES_MIN: usize = 256;
/// Most branch starts that are kept, the newest ones.
const BRANCHES_MAX: usize = 64;

/// Why a message is not in the line.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum WithdrawalReason {
    /// A later list of the host went another way, or a rewind set the message aside. `after`: seq
    /// of the message that the range followed, in the line or set aside; 0: none.
    SetAside { after: u64 },
    /// The message is another form of a message that is or was in the line.
    Revision,
}

/// Consecutive messages with one reason.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct WithdrawnRange {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) reason: WithdrawalReason,
}

impl WithdrawnRange {
    /// Returns the number of messages.
    pub(crate) fn count(&self) -> u64 {
        self.seq_last + 1 - self.seq_first
    }

    /// Returns whether a message is in the range.
    fn has_message(&self, seq: u64) -> bool {
        (self.seq_first..=self.seq_last).contains(&seq)
    }
}

/// A message whose predecessor in its list is not its predecessor in the line.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct BranchStart {
    pub(crate) seq: u64,
    /// Seq of the predecessor in the list; 0: the message was the first of its list.
    pub(crate) after: u64,
}

/// The record: ascending ranges that share no message.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Withdrawals {
    pub(crate) ranges: Vec<WithdrawnRange>,
    /// Branch starts, ascending by seq. A start whose message was set aside stays as long as the
    /// line has messages between the start and its predecessor.
    pub(crate) branches: Vec<BranchStart>,
    /// Marks of the newest other forms, in the order in which they were added, and of the same
    /// version as the marks of the head. So a list is compared with the forms without reading the
    /// stored messages.
    pub(crate) forms: Vec<MessageMark>,
}

impl SoundRecord for Withdrawals {
    fn is_sound(&self) -> bool {
        let mut last = 0;
        let is_next = |[left, right]: &[BranchStart; 2]| left.seq < right.seq;
        let follows = |start: &BranchStart| start.after < start.seq;
        self.branches.len() <= BRANCHES_MAX
            && self.forms.len() <= FORMS_MAX
            && self.branches.array_windows().all(is_next)
            && self.branches.iter().all(follows)
            && self.branches.last().is_none_or(|start| codec::are_countable(&[start.seq]))
            && self.ranges.len() <= 2 * RANGES_MAX
            && self.ranges.iter().all(|range| {
                let is_next = range.seq_first > last && range.seq_first <= range.seq_last;
                last = range.seq_last;
                let follows = match range.reason {
                    WithdrawalReason::SetAside { after } => after < range.seq_first,
                    WithdrawalReason::Revision => true,
                };
                is_next && follows && codec::are_countable(&[last])
            })
    }
}

impl Withdrawals {
    /// Returns the key of the record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.withdrawals_key())
    }

    /// Returns whether the records have the same ranges and branches.
    pub(crate) fn has_same_ranges(&self, other: &Self) -> bool {
        self.ranges == other.ranges && self.branches == other.branches
    }

    /// Appends the ranges and branches of a later part of the record.
    pub(crate) fn append(&mut self, other: &Self) {
        self.ranges.extend(&other.ranges);
        self.branches.extend(&other.branches);
    }

    /// Sets aside the messages of the line after seq `fork`. `messages`: number of stored messages.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many ranges.
    pub(crate) fn set_aside(&mut self, fork: u64, messages: u64) -> Result<()> {
        let mut after = self.seq_at(self.count_through(fork));
        for (seq_first, seq_last) in self.list_line_ranges(fork + 1, messages) {
            let mut first = seq_first;
            let starts = self.branches.iter().copied();
            let starts: Vec<BranchStart> =
                starts.filter(|start| (seq_first..=seq_last).contains(&start.seq)).collect();
            for start in starts {
                if start.seq > first {
                    let reason = WithdrawalReason::SetAside { after };
                    let range =
                        WithdrawnRange { seq_first: first, seq_last: start.seq - 1, reason };
                    self.add_range(range);
                }
                (first, after) = (start.seq, start.after);
            }
            let reason = WithdrawalReason::SetAside { after };
            self.add_range(WithdrawnRange { seq_first: first, seq_last, reason });
            after = seq_last;
        }
        let open: Vec<u64> = self.list_gaps().map(|(_, last)| last + 1).collect();
        self.branches.retain(|start| start.seq <= fork || open.contains(&start.seq));
        self.ensure_few_ranges(false)
    }

    /// Records that the predecessor of message `seq` in its list is `after`, not its predecessor in
    /// the line.
    pub(crate) fn add_branch(&mut self, seq: u64, after: u64) {
        let place = self.branches.partition_point(|start| start.seq < seq);
        match self.branches.get_mut(place) {
            // Of two predecessors, the earlier one is kept: more messages lie between it and `seq`.
            Some(start) if start.seq == seq => start.after = start.after.min(after),
            _ => self.branches.insert(place, BranchStart { seq, after }),
        }
        let excess = self.branches.len().saturating_sub(BRANCHES_MAX);
        self.branches.drain(..excess);
    }

    /// Withdraws messages of the line as other forms of messages; `marks`: those of the messages.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many ranges.
    pub(crate) fn withdraw_revisions(
        &mut self,
        (seq_first, seq_last): (u64, u64),
        marks: &[MessageMark],
    ) -> Result<()> {
        self.add_forms(marks);
        for (seq_first, seq_last) in self.list_line_ranges(seq_first, seq_last) {
            let reason = WithdrawalReason::Revision;
            self.add_range(WithdrawnRange { seq_first, seq_last, reason });
        }
        self.ensure_few_ranges(true)
    }

    /// Returns whether [`Self::set_aside`] has ranges left for the messages of the line after seq
    /// `fork`. `messages`: number of stored messages.
    pub(crate) fn can_set_aside(&self, fork: u64, messages: u64) -> bool {
        self.clone().set_aside(fork, messages).is_ok()
    }

    /// Returns how many more other forms can be stored.
    pub(crate) fn count_free_forms(&self) -> usize {
        let ranges = self.count_ranges(true);
        FORMS_MAX.saturating_sub(self.forms.len()).min(RANGES_MAX.saturating_sub(ranges))
    }

    /// Returns whether so many ranges of messages are set aside that none can come back: a range of
    /// which the middle comes back becomes two.
    pub(crate) fn is_full(&self) -> bool {
        self.count_ranges(false) + FREE_RANGES_MIN > RANGES_MAX
    }

    /// Returns `limit-exceeded` if there are too many ranges of other forms, or of set-aside
    /// messages.
    fn ensure_few_ranges(&self, of_forms: bool) -> Result<()> {
        let count = self.count_ranges(of_forms);
        if count <= RANGES_MAX {
            return Ok(());
        }
        let kind = if of_forms { "other forms" } else { "set-aside messages" };
        Err(Error::limit_exceeded(format_args!(
            "a conversation must have at most {RANGES_MAX} ranges of {kind}, got {count}; begin \
             another conversation"
        )))
    }

    /// Counts the ranges of other forms, or of set-aside messages.
    fn count_ranges(&self, of_forms: bool) -> usize {
        let of_kind =
            |range: &&WithdrawnRange| (range.reason == WithdrawalReason::Revision) == of_forms;
        self.ranges.iter().filter(of_kind).count()
    }

    /// Remembers the marks of other forms.
    pub(crate) fn add_forms(&mut self, marks: &[MessageMark]) {
        self.forms.extend(marks);
        let excess = self.forms.len().saturating_sub(FORMS_MAX);
        self.forms.drain(..excess);
    }

    /// Puts the messages of `[seq_first, seq_last]` back into the line.
    pub(crate) fn restore_range(&mut self, seq_first: u64, seq_last: u64) {
        let mut ranges: Vec<WithdrawnRange> = Vec::with_capacity(self.ranges.len() + 1);
        for range in core::mem::take(&mut self.ranges) {
            let before = WithdrawnRange { seq_last: range.seq_last.min(seq_first - 1), ..range };
            let after = WithdrawnRange {
                seq_first: range.seq_first.max(seq_last + 1),
                reason: match range.reason {
                    WithdrawalReason::SetAside { .. } if range.seq_first <= seq_last => {
                        WithdrawalReason::SetAside { after: seq_last }
                    }
                    reason => reason,
                },
                ..range
            };
            let is_apart = range.seq_last < seq_first || range.seq_first > seq_last;
            for part in if is_apart { [Some(range), None] } else { [Some(before), Some(after)] } {
                ranges.extend(part.filter(|part| part.seq_first <= part.seq_last));
            }
        }
        self.ranges = ranges;
    }

    /// Puts the messages of ascending ranges back into the line. If messages of the line then lie
    /// between a range and its predecessor, the first message of the range becomes a branch start.
    pub(crate) fn restore_ranges(&mut self, restored: &[(u64, u64)]) {
        let find_start = |(first, _): &(u64, u64)| {
            let range = self.find_range(*first)?;
            let WithdrawalReason::SetAside { after } = range.reason else { return None };
            let after = if range.seq_first < *first { *first - 1 } else { after };
            Some(BranchStart { seq: *first, after })
        };
        let starts: Vec<BranchStart> = restored.iter().filter_map(find_start).collect();
        for (seq_first, seq_last) in restored {
            self.restore_range(*seq_first, *seq_last);
        }
        for BranchStart { seq, after } in starts {
            let before = self.count_through(seq - 1);
            if before > self.count_through(after) && self.reason_of(after).is_none() {
                self.add_branch(seq, after);
            }
        }
    }

    /// Adds a branch start for the first message of the line after the restored ranges: its
    /// predecessor in its list is the message of the line before the restored ranges. `messages`:
    /// number of stored messages.
    pub(crate) fn split_restored(&mut self, restored: &[(u64, u64)], messages: u64) {
        let (Some((first, _)), Some((_, last))) = (restored.first(), restored.last()) else {
            return;
        };
        let position = self.count_through(*last);
        if position < self.count_in_line(messages) {
            let after = self.seq_at(self.count_through(*first).saturating_sub(1));
            self.add_branch(self.seq_at(position + 1), after);
        }
    }

    /// Lists for each branch start the seqs after its predecessor and before itself, as first and
    /// last seq, if any of these messages is in the line. The list of the branch did not have these
    /// messages.
    pub(crate) fn list_gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let gaps = self.branches.iter().map(|start| (start.after + 1, start.seq - 1));
        gaps.filter(|(first, last)| self.count_through(*last) > self.count_through(*first - 1))
    }

    /// Returns the range that has a message; `None`: the message is in the line.
    pub(crate) fn find_range(&self, seq: u64) -> Option<&WithdrawnRange> {
        let place = self.ranges.partition_point(|range| range.seq_last < seq);
        self.ranges.get(place).filter(|range| range.has_message(seq))
    }

    /// Returns why a message is not in the line; `None`: the message is in the line.
    pub(crate) fn reason_of(&self, seq: u64) -> Option<WithdrawalReason> {
        self.find_range(seq).map(|range| range.reason)
    }

    /// Returns the set-aside ranges that followed a message, newest first.
    pub(crate) fn ranges_after(&self, seq: u64) -> impl Iterator<Item = &WithdrawnRange> {
        let reason = WithdrawalReason::SetAside { after: seq };
        self.ranges.iter().rev().filter(move |range| range.reason == reason)
    }

    /// Returns the number of messages in the line. `messages`: number of stored messages.
    pub(crate) fn count_in_line(&self, messages: u64) -> u64 {
        messages - self.ranges.iter().map(WithdrawnRange::count).sum::<u64>().min(messages)
    }

    /// Returns the seq of the message at a position of the line, from 1; position 0 gives 0.
    pub(crate) fn seq_at(&self, position: u64) -> u64 {
        let mut seq = position;
        for range in &self.ranges {
            if range.seq_first > seq {
                break;
            }
            seq += range.count();
        }
        if position == 0 { 0 } else { seq }
    }

    /// Returns the position of a message in the line, from 1; `None`: the message is not in it.
    pub(crate) fn position_of(&self, seq: u64) -> Option<u64> {
        self.reason_of(seq).is_none().then(|| self.count_through(seq))
    }

    /// Returns the number of messages of the line up to and with a seq.
    pub(crate) fn count_through(&self, seq: u64) -> u64 {
        let overlap =
            |range: &WithdrawnRange| (range.seq_last.min(seq) + 1).saturating_sub(range.seq_first);
        seq - self.ranges.iter().map(overlap).sum::<u64>().min(seq)
    }

    /// Lists the parts of `[seq_first, seq_last]` that are in the line, ascending.
    pub(crate) fn list_line_ranges(&self, seq_first: u64, seq_last: u64) -> Vec<(u64, u64)> {
        let (mut next, mut out) = (seq_first, Vec::new());
        for range in self.ranges.iter().filter(|range| range.seq_last >= seq_first) {
            if next > seq_last || range.seq_first > seq_last {
                break;
            }
            if range.seq_first > next {
                out.push((next, range.seq_first - 1));
            }
            next = range.seq_last + 1;
        }
        if next <= seq_last {
            out.push((next, seq_last));
        }
        out
    }

    /// Lists the parts of `[seq_first, seq_last]` that are not in the line, ascending.
    pub(crate) fn list_withdrawn_ranges(&self, seq_first: u64, seq_last: u64) -> Vec<(u64, u64)> {
        let start = self.ranges.partition_point(|range| range.seq_last < seq_first);
        let ranges = self.ranges.iter().skip(start);
        let ranges = ranges.take_while(|range| range.seq_first <= seq_last);
        ranges.map(|it| (it.seq_first.max(seq_first), it.seq_last.min(seq_last))).collect()
    }

    /// Withdraws a range of messages of the line. A range of other forms is joined with a range of
    /// other forms that ends directly before it.
    fn add_range(&mut self, range: WithdrawnRange) {
        let place = self.ranges.partition_point(|known| known.seq_last < range.seq_first);
        let before = place.checked_sub(1).and_then(|place| self.ranges.get_mut(place));
        let is_revision = range.reason == WithdrawalReason::Revision;
        match before {
            Some(before)
                if is_revision
                    && before.reason == range.reason
                    && before.seq_last + 1 == range.seq_first =>
            {
                before.seq_last = range.seq_last;
            }
            _ => self.ranges.insert(place, range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::base::int;

    /// Goal: a record with every list full is a value of the store, and takes no more. Method: the
    /// greatest seqs that a record may have.
    #[test]
    fn a_full_record_is_a_value() {
        let mut record = Withdrawals::default();
        let far = (1 << 40) - 1 - 6 * int::to_u64(RANGES_MAX);
        for number in 0..int::to_u64(RANGES_MAX) {
            let seq = far + 4 * number;
            let reason = WithdrawalReason::SetAside { after: seq - 1 };
            record.ranges.push(WithdrawnRange { seq_first: seq, seq_last: seq, reason });
            let (seq, reason) = (seq + 2, WithdrawalReason::Revision);
            record.ranges.push(WithdrawnRange { seq_first: seq, seq_last: seq, reason });
            record.add_branch(seq, seq - 1);
        }
        assert!(record.is_full());
        let mark = MessageMark { meaning: [255; 8], id: [255; 4], call: [255; 4] };
        record.add_forms(&alloc::vec![mark; FORMS_MAX + 1]);
        assert_eq!((record.forms.len(), record.count_free_forms()), (FORMS_MAX, 0));
        assert!(record.is_sound());
        codec::encode(&record).expect("a value of the store");
        let last = record.ranges.last().map_or(0, |range| range.seq_last);
        let is_refused = |result: Result<()>| {
            result.is_err_and(|error| error.message.contains("begin another conversation"))
        };
        assert!(is_refused(record.clone().withdraw_revisions((last + 2, last + 2), &[mark])));
        assert!(is_refused(record.clone().set_aside(last + 1, last + 2)));
    }

    /// Goal: the ranges equal a plain list of messages with their predecessors. Method: 2,000
    /// pseudo-random changes.
    #[test]
    fn ranges_equal_a_list_of_flags() {
        let mut seed = 11_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut record = Withdrawals::default();
        // For each message. `None`: in the line; `Some(None)`: another form; `Some(Some(seq))`: set
        // aside, with this predecessor.
        let mut flags: Vec<Option<Option<u64>>> = alloc::vec![None; 61];
        for _ in 0..2_000 {
            let first = 1 + random(60);
            let last = first + random(61 - first);
            let live =
                |flags: &[Option<Option<u64>>], seq: u64| flags[int::to_usize(seq)].is_none();
            match random(4) {
                0 | 1 => {
                    let aside = |seq: &u64| matches!(flags[int::to_usize(*seq)], Some(Some(_)));
                    let seqs: Vec<u64> = (first..=last).filter(aside).collect();
                    for seq in seqs {
                        record.restore_range(seq, seq);
                        flags[int::to_usize(seq)] = None;
                    }
                }
                2 => {
                    let mut after = (1..first).rev().find(|seq| live(&flags, *seq)).unwrap_or(0);
                    record.set_aside(first - 1, 60).unwrap();
                    for seq in first..=60 {
                        if live(&flags, seq) {
                            flags[int::to_usize(seq)] = Some(Some(after));
                            after = seq;
                        }
                    }
                }
                _ => {
                    let last = first.min(60);
                    record.withdraw_revisions((first, last), &[]).unwrap();
                    if live(&flags, first) {
                        flags[int::to_usize(first)] = Some(None);
                    }
                }
            }
            assert!(record.is_sound(), "{record:?}");
            let line: Vec<u64> = (1..=60).filter(|seq| live(&flags, *seq)).collect();
            assert_eq!(record.count_in_line(60), int::to_u64(line.len()));
            for (position, seq) in (1..).zip(&line) {
                assert_eq!(
                    (record.seq_at(position), record.position_of(*seq)),
                    (*seq, Some(position))
                );
            }
            let withdrawn = record.list_withdrawn_ranges(first, last.min(60));
            let withdrawn: Vec<u64> = withdrawn.iter().flat_map(|it| it.0..=it.1).collect();
            let wanted = (first..=last.min(60)).filter(|seq| !live(&flags, *seq));
            assert_eq!(withdrawn, wanted.collect::<Vec<u64>>());
            for seq in 1..=60 {
                let through = line.iter().filter(|other| **other <= seq).count();
                assert_eq!(record.count_through(seq), int::to_u64(through));
            }
            for range in &record.ranges {
                if let WithdrawalReason::SetAside { after } = range.reason {
                    assert_eq!(
                        flags[int::to_usize(range.seq_first)],
                        Some(Some(after)),
                        "{range:?}"
                    );
                }
            }
        }
    }
}
