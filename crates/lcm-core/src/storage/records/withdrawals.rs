//! Withdrawals: the messages that left the line of a conversation, and why.
//!
//! In: ranges of messages that an append sets aside or stores as another form of a message. Out:
//! the ranges, which alignment leaves out. The context has withdrawn items for the same messages
//! until a condensed summary takes their place; this record stays.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};
use lcm_text::base::error::{Error, Result};

/// Most ranges of one conversation; the record then has about 200 KiB.
const RANGES_MAX: usize = 16_384;

/// Why a message is not in the line.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum WithdrawalReason {
    /// A later list of the host went another way.
    SetAside,
    /// The message is another form of a message in the line.
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
}

/// The record: ascending ranges that share no message.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Withdrawals {
    pub(crate) ranges: Vec<WithdrawnRange>,
}

impl SoundRecord for Withdrawals {
    fn is_sound(&self) -> bool {
        let mut last = 0;
        self.ranges.len() <= RANGES_MAX
            && self.ranges.iter().all(|range| {
                let is_next = range.seq_first > last && range.seq_first <= range.seq_last;
                last = range.seq_last;
                is_next && codec::are_countable(&[last])
            })
    }
}

impl Withdrawals {
    /// Returns the key of the record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.withdrawals_key())
    }

    /// Withdraws the messages of `[seq_first, seq_last]` that are in the line.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many ranges.
    pub(crate) fn withdraw_range(
        &mut self,
        seq_first: u64,
        seq_last: u64,
        reason: WithdrawalReason,
    ) -> Result<()> {
        let mut next = seq_first;
        let mut ranges: Vec<WithdrawnRange> = Vec::with_capacity(self.ranges.len() + 2);
        for range in core::mem::take(&mut self.ranges) {
            if range.seq_first > next && next <= seq_last {
                let seq_last = seq_last.min(range.seq_first - 1);
                push_range(&mut ranges, WithdrawnRange { seq_first: next, seq_last, reason });
            }
            next = next.max(range.seq_last + 1);
            push_range(&mut ranges, range);
        }
        if next <= seq_last {
            push_range(&mut ranges, WithdrawnRange { seq_first: next, seq_last, reason });
        }
        self.ranges = ranges;
        if self.ranges.len() > RANGES_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "at most {RANGES_MAX} ranges of messages can be set aside; begin another \
                 conversation"
            )));
        }
        Ok(())
    }

    /// Puts the messages of `[seq_first, seq_last]` back into the line.
    pub(crate) fn restore_range(&mut self, seq_first: u64, seq_last: u64) {
        let mut ranges: Vec<WithdrawnRange> = Vec::with_capacity(self.ranges.len() + 1);
        for range in core::mem::take(&mut self.ranges) {
            let before = WithdrawnRange { seq_last: range.seq_last.min(seq_first - 1), ..range };
            let after = WithdrawnRange { seq_first: range.seq_first.max(seq_last + 1), ..range };
            let is_apart = range.seq_last < seq_first || range.seq_first > seq_last;
            for part in if is_apart { [Some(range), None] } else { [Some(before), Some(after)] } {
                ranges.extend(part.filter(|part| part.seq_first <= part.seq_last));
            }
        }
        self.ranges = ranges;
    }

    /// Returns the number of messages in the line, of `messages` stored.
    pub(crate) fn count_in_line(&self, messages: u64) -> u64 {
        messages - self.ranges.iter().map(WithdrawnRange::count).sum::<u64>().min(messages)
    }

    /// Returns the seq of the message at a position of the line, from 1.
    pub(crate) fn seq_at(&self, position: u64) -> u64 {
        let mut seq = position;
        for range in &self.ranges {
            if range.seq_first > seq {
                break;
            }
            seq += range.count();
        }
        seq
    }

    /// Returns the position of a message in the line, from 1; `None`: the message is not in it.
    pub(crate) fn position_of(&self, seq: u64) -> Option<u64> {
        let mut before = 0;
        for range in self.ranges.iter().take_while(|range| range.seq_first <= seq) {
            if seq <= range.seq_last {
                return None;
            }
            before += range.count();
        }
        Some(seq - before)
    }

    /// Returns the number of messages of the line up to and with a seq.
    pub(crate) fn count_through(&self, seq: u64) -> u64 {
        let overlap =
            |range: &WithdrawnRange| (range.seq_last.min(seq) + 1).saturating_sub(range.seq_first);
        seq - self.ranges.iter().map(overlap).sum::<u64>().min(seq)
    }
}

/// Adds a range, joined with the last range if both are neighbours with one reason.
fn push_range(ranges: &mut Vec<WithdrawnRange>, range: WithdrawnRange) {
    match ranges.last_mut() {
        Some(last) if last.reason == range.reason && last.seq_last + 1 == range.seq_first => {
            last.seq_last = range.seq_last;
        }
        _ => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::base::int;

    /// Goal: the ranges equal a plain list of flags. Method: 2,000 pseudo-random changes.
    #[test]
    fn ranges_equal_a_list_of_flags() {
        let mut seed = 11_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut record = Withdrawals::default();
        let mut flags = alloc::vec![None; 61];
        for _ in 0..2_000 {
            let first = 1 + random(60);
            let last = first + random(61 - first);
            let reason = [WithdrawalReason::SetAside, WithdrawalReason::Revision]
                [usize::from(random(2) == 0)];
            if random(3) == 0 {
                record.restore_range(first, last);
                (first..=last).for_each(|seq| flags[int::to_usize(seq)] = None);
            } else {
                record.withdraw_range(first, last, reason).unwrap();
                for seq in first..=last {
                    flags[int::to_usize(seq)].get_or_insert(reason);
                }
            }
            assert!(record.is_sound(), "{record:?}");
            let line: Vec<u64> =
                (1..=60).filter(|seq| flags[int::to_usize(*seq)].is_none()).collect();
            assert_eq!(record.count_in_line(60), int::to_u64(line.len()));
            for (position, seq) in (1..).zip(&line) {
                assert_eq!(
                    (record.seq_at(position), record.position_of(*seq)),
                    (*seq, Some(position))
                );
            }
            for seq in 1..=60 {
                let through = line.iter().filter(|other| **other <= seq).count();
                assert_eq!(record.count_through(seq), int::to_u64(through));
            }
        }
    }
}
