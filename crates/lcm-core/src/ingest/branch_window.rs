//! Windows of set-aside branches: a list that begins inside what was set aside.
//!
//! In: the entries of a list that shares nothing with the line, and the newest marks. Out: the
//! set-aside messages that the list begins with, and those that lead to them from the line.

use alloc::vec::Vec;

use crate::storage::{
    message_mark::MessageMark,
    records::withdrawals::{WithdrawalReason, Withdrawals, WithdrawnRange},
};
use lcm_text::base::int;

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN},
    branch_walk::RestoredMessages,
    line_change::RESTORED_MAX,
    list_decision::LineRequest,
};

/// Set-aside messages with which a list begins.
#[derive(Clone, Debug)]
pub(super) struct BranchWindow {
    /// Number of entries that are these messages.
    pub(super) count: usize,
    /// Seq of the last of them.
    pub(super) seq_last: u64,
    /// Seq of the message of the line that the branch follows; 0: none.
    pub(super) fork: u64,
    /// Ascending ranges of the set-aside messages that lead from `fork` to `seq_last`. Messages of
    /// other branches are not among them.
    ranges: Vec<(u64, u64)>,
}

impl BranchWindow {
    /// Returns all messages that come back: those of the window, and `rest`, which the list has
    /// after them.
    pub(super) fn into_restored(self, rest: RestoredMessages) -> RestoredMessages {
        let mut ranges = self.ranges;
        ranges.extend(rest.ranges);
        RestoredMessages { ranges, count: self.count + rest.count, ..rest }
    }
}

impl LineRequest<'_, '_> {
    /// Finds the longest run of set-aside messages, of equally long ones the newest, with which the
    /// list begins. The run needs two anchors and is looked for among the newest messages. `None`:
    /// there is no such run, or too many ranges lead to it from the line,
    /// or too many are set aside.
    pub(super) fn find_window(&self) -> Option<BranchWindow> {
        let head = self.line.message_history().head;
        let first = head.messages + 1 - int::to_u64(head.recent_marks.len());
        let mut best: Option<(usize, u64)> = None;
        let may_return = self.line.is_comparable() && !self.withdrawals.is_full();
        let starts = (first..).zip(&head.recent_marks).filter(|_| may_return);
        for (seq, _) in starts {
            let length = self.match_set_aside(first, seq);
            if best.is_none_or(|(most, _)| length >= most) {
                best = Some((length, seq));
            }
        }
        let (count, seq_first) = best?;
        let anchors = self.entries.iter().take(count).filter(|entry| entry.is_anchor()).count();
        if anchors < INSIDE_ANCHORS_MIN {
            return None;
        }
        let seq_last = seq_first + int::to_u64(count) - 1;
        let (fork, ranges) = find_path(self.withdrawals, seq_first, seq_last)?;
        Some(BranchWindow { count, seq_last, fork, ranges })
    }

    /// Counts the first entries that are the set-aside messages from a seq on, within one range.
    fn match_set_aside(&self, seq_first: u64, seq: u64) -> usize {
        let head = self.line.message_history().head;
        let Some(range) = find_range(self.withdrawals, seq) else { return 0 };
        let marks = head.recent_marks.iter().skip(int::to_usize(seq - seq_first));
        let pairs = self.entries.iter().zip((seq..=range.seq_last).zip(marks));
        let is_equal =
            |(entry, (seq, mark)): &(&AlignableEntry, (u64, &MessageMark))| match entry.known_seq {
                Some(known) => known == *seq,
                None => entry.mark.is_same_message(mark),
            };
        pairs.take_while(is_equal).count()
    }
}

/// Returns the set-aside range that has a message; `None`: the message is in the line, or another
/// form.
fn find_range(withdrawals: &Withdrawals, seq: u64) -> Option<WithdrawnRange> {
    let range = withdrawals.find_range(seq)?;
    matches!(range.reason, WithdrawalReason::SetAside { .. }).then_some(*range)
}

/// Returns the seq of the message of the line that the set-aside message `seq_first` follows by way
/// of its branch, and the ascending ranges after it, up to `seq_last`; `None`: too many ranges.
pub(super) fn find_path(
    withdrawals: &Withdrawals,
    seq_first: u64,
    seq_last: u64,
) -> Option<(u64, Vec<(u64, u64)>)> {
    let (mut seq, mut last, mut ranges) = (seq_first, seq_last, Vec::new());
    while let Some(range) = find_range(withdrawals, seq) {
        let WithdrawalReason::SetAside { after } = range.reason else { break };
        ranges.push((range.seq_first, last));
        if ranges.len() > RESTORED_MAX / 2 {
            return None;
        }
        (seq, last) = (after, after);
    }
    ranges.reverse();
    Some((seq, ranges))
}
