//! Messages from a first to a last one, without the withdrawn messages between them.
//!
//! Compaction makes leaves of spans. So a withdrawn message among others ends no leaf.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::storage::{codec, pack::PlacedMessage};

/// Fewest messages of a gap that a read skips. A shorter gap lies in packs that are read anyway for
/// the messages beside it.
const LONG_GAP_MESSAGES: u64 = 128;

/// A first and a last message, with the messages between them that are not withdrawn.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct MessageSpan {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    /// First and last seqs of the ranges of withdrawn messages inside the span, ascending. At least
    /// one message of the span lies between two gaps.
    pub(crate) gaps: Vec<(u64, u64)>,
}

impl MessageSpan {
    /// Joins ascending ranges of seqs, first and last; `None`: there is no range.
    pub(crate) fn from_ranges(ranges: &[(u64, u64)]) -> Option<Self> {
        let (seq_first, seq_last) = *ranges.first()?;
        let mut span = Self { seq_first, seq_last, gaps: Vec::new() };
        for (first, last) in ranges {
            if span.seq_last + 1 < *first {
                span.gaps.push((span.seq_last + 1, first - 1));
            }
            span.seq_last = *last;
        }
        Some(span)
    }

    /// Returns the span of messages in order; `None`: there is no message.
    pub(crate) fn from_messages(messages: &[PlacedMessage]) -> Option<Self> {
        let seqs: Vec<(u64, u64)> =
            messages.iter().map(|placed| (placed.seq, placed.seq)).collect();
        Self::from_ranges(&seqs)
    }

    /// Returns whether the gaps lie between the first and the last message, in order.
    pub(crate) fn is_sound(&self) -> bool {
        let mut before = self.seq_first;
        self.seq_first > 0
            && self.seq_first <= self.seq_last
            && codec::are_countable(&[self.seq_last])
            && self.gaps.iter().all(|(first, last)| {
                let is_between = before < *first && first <= last && *last < self.seq_last;
                before = last.saturating_add(1);
                is_between
            })
    }

    /// Lists the ranges between the gaps, as first and last seq.
    pub(crate) fn list_ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges = Vec::with_capacity(self.gaps.len() + 1);
        let mut next = self.seq_first;
        for (first, last) in &self.gaps {
            ranges.push((next, first - 1));
            next = last + 1;
        }
        ranges.push((next, self.seq_last));
        ranges
    }

    /// Lists the ranges to read, as first and last seq: all messages of the span, and its short
    /// gaps.
    pub(crate) fn list_read_ranges(&self) -> Vec<(u64, u64)> {
        let mut out: Vec<(u64, u64)> = Vec::new();
        for (first, last) in self.list_ranges() {
            match out.last_mut() {
                Some(before) if first - before.1 <= LONG_GAP_MESSAGES => before.1 = last,
                _ => out.push((first, last)),
            }
        }
        out
    }

    /// Returns the messages from seq `from` to seq `to`; `None`: the span has none of them.
    pub(crate) fn cut_span(&self, from: u64, to: u64) -> Option<Self> {
        let mut ranges = self.list_ranges();
        for (first, last) in &mut ranges {
            (*first, *last) = (from.max(*first), to.min(*last));
        }
        ranges.retain(|(first, last)| first <= last);
        Self::from_ranges(&ranges)
    }

    /// Returns whether a message between the first and the last one lies in no gap.
    pub(crate) fn has_message(&self, seq: u64) -> bool {
        let place = self.gaps.partition_point(|(_, last)| *last < seq);
        self.gaps.get(place).is_none_or(|(first, _)| seq < *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a span equals a list of seqs. Method: all subsets of ten messages, cut everywhere.
    #[test]
    fn a_span_equals_a_list_of_seqs() {
        for bits in 1u64..1 << 10 {
            let seqs: Vec<u64> = (1..=10).filter(|seq| bits >> (seq - 1) & 1 == 1).collect();
            let pairs: Vec<(u64, u64)> = seqs.iter().map(|seq| (*seq, *seq)).collect();
            let span = MessageSpan::from_ranges(&pairs).unwrap();
            let list = |span: &MessageSpan| -> Vec<u64> {
                span.list_ranges().into_iter().flat_map(|(first, last)| first..=last).collect()
            };
            assert!(span.is_sound(), "{span:?}");
            assert_eq!(list(&span), seqs);
            for seq in span.seq_first..=span.seq_last {
                assert_eq!(span.has_message(seq), seqs.contains(&seq), "{span:?} {seq}");
            }
            for (from, to) in (1..=10).flat_map(|from| (from..=10).map(move |to| (from, to))) {
                let wanted: Vec<u64> =
                    seqs.iter().copied().filter(|seq| (from..=to).contains(seq)).collect();
                let cut = span.cut_span(from, to);
                assert_eq!(cut.as_ref().map_or_else(Vec::new, list), wanted);
                assert!(cut.is_none_or(|cut| cut.is_sound()));
            }
        }
    }

    #[test]
    fn a_long_gap_is_not_read() {
        let span = MessageSpan::from_ranges(&[(1, 2), (4, 5), (300, 301)]).unwrap();
        assert_eq!(span.list_read_ranges(), [(1, 5), (300, 301)]);
    }

    #[test]
    fn gaps_outside_or_out_of_order_are_not_sound() {
        for gaps in [&[(1, 2)][..], &[(9, 10)], &[(4, 3)], &[(5, 6), (3, 3)], &[(3, 4), (5, 6)]] {
            let span = MessageSpan { seq_first: 1, seq_last: 10, gaps: gaps.to_vec() };
            assert!(!span.is_sound(), "{gaps:?}");
        }
    }
}
