//! Pieces of a stored context: included or omitted, and why.
//!
//! In: the selection. Out: pieces of all items in order, for the counts and the explanation of the
//! result. A run becomes several pieces where its messages differ in inclusion or reason. A reason
//! is one of [`FRESH_TAIL`], [`PINNED`], [`OVER_BUDGET`] and [`WITHDRAWN`], or the reason of the
//! selection ([`super::select`]): `fill`, `oldest`, `focus`, `matches-prompt`.

use alloc::vec::Vec;

use super::{
    input::ItemPlace,
    select::{ContextChoice, IncludedRange},
};
use crate::storage::context::{ContextItem, MessageRun};
use lcm_text::base::sort;

/// Reason of messages in the fresh tail.
const FRESH_TAIL: &str = "fresh-tail";
/// Reason of the pinned message.
const PINNED: &str = "pinned";
/// Reason of omitted summaries and messages that are not withdrawn.
const OVER_BUDGET: &str = "over-budget";
/// Reason of withdrawn messages.
const WITHDRAWN: &str = "withdrawn";

/// A part of an item that is included or omitted as a whole, for one reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ContextPiece {
    /// Index of the item.
    pub(super) index: usize,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    pub(super) included: bool,
    pub(super) why: &'static str,
}

impl ContextPiece {
    /// Returns whether the piece contains a place.
    pub(super) fn contains_place(&self, place: ItemPlace) -> bool {
        place.index == self.index && self.seq_first <= place.seq && place.seq <= self.seq_last
    }

    /// Counts an omitted piece: 1 for a summary, 0 for withdrawn messages, else its messages.
    fn count_omitted(&self, items: &[ContextItem]) -> u64 {
        match items.get(self.index) {
            Some(ContextItem::Summary(_)) => 1,
            Some(ContextItem::Withdrawn { .. }) => 0,
            _ => self.seq_last + 1 - self.seq_first,
        }
    }
}

/// Counts the messages and summaries that are omitted, without withdrawn messages.
pub(super) fn count_omitted_items(pieces: &[ContextPiece], items: &[ContextItem]) -> u64 {
    let omitted = pieces.iter().filter(|piece| !piece.included);
    omitted.map(|piece| piece.count_omitted(items)).sum()
}

impl ContextChoice {
    /// Splits the stored context into pieces, in order.
    pub(super) fn split_pieces(&self, items: &[ContextItem]) -> Vec<ContextPiece> {
        let mut out = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let (seq_first, seq_last) = (item.seq_first(), item.seq_last());
            let whole = |included, why| ContextPiece { index, seq_first, seq_last, included, why };
            match item {
                ContextItem::Summary(_) => {
                    let why = self.inclusion_reason(index);
                    out.push(whole(why.is_some(), why.unwrap_or(OVER_BUDGET)));
                }
                ContextItem::Run(run) => self.push_run_pieces(index, run, &mut out),
                ContextItem::Withdrawn { .. } => out.push(whole(false, WITHDRAWN)),
            }
        }
        out
    }

    /// Appends the pieces of one run.
    fn push_run_pieces(&self, index: usize, run: &MessageRun, out: &mut Vec<ContextPiece>) {
        let push_omitted = |seq_first: u64, seq_last: u64, out: &mut Vec<ContextPiece>| {
            if seq_first <= seq_last {
                let (included, why) = (false, OVER_BUDGET);
                out.push(ContextPiece { index, seq_first, seq_last, included, why });
            }
        };
        let mut next = run.seq_first;
        for range in self.ranges.iter().filter(|range| range.index == index) {
            push_omitted(next, range.seq_first - 1, out);
            self.push_range_pieces(range, out);
            next = range.seq_last + 1;
        }
        push_omitted(next, run.seq_last, out);
    }

    /// Appends the pieces of an included range, split around the pinned message and before the
    /// fresh tail.
    fn push_range_pieces(&self, range: &IncludedRange, out: &mut Vec<ContextPiece>) {
        let tail = self.tail.seq_first;
        let pin = self.tail.pinned.map(|pin| pin.seq);
        let pin = pin.filter(|seq| range.seq_first <= *seq && *seq <= range.seq_last);
        let mut bounds = Vec::from([range.seq_first]);
        bounds.extend(pin.into_iter().flat_map(|seq| [seq, seq + 1]));
        bounds.push(tail.clamp(range.seq_first, range.seq_last + 1));
        bounds.push(range.seq_last + 1);
        sort::sort_numbers(&mut bounds);
        for (seq_first, next) in bounds.iter().zip(bounds.iter().skip(1)) {
            if seq_first == next {
                continue;
            }
            let why = match *seq_first {
                first if first >= tail => FRESH_TAIL,
                first if Some(first) == pin => PINNED,
                _ => range.why,
            };
            out.push(ContextPiece {
                index: range.index,
                seq_first: *seq_first,
                seq_last: next - 1,
                included: true,
                why,
            });
        }
    }
}
