//! What became of each item of the stored context: in or out, why, and its tokens.
//!
//! In: what was chosen, and what it became. Out: the items in order, a run cut wherever the reason
//! changes. Reasons are one of [`FRESH_TAIL`] to [`WITHDRAWN`], or that of a choice
//! ([`super::choose`]): `fill`, `oldest`, `focus`, `matches-prompt`; behind a colon follows what
//! was done to it so that the provider takes it.

use alloc::{format, string::String, vec::Vec};

use super::{
    Assembly,
    render::RenderedContext,
    select::{ContextChoice, IncludedRange},
};
use crate::storage::{
    context::{ContextItem, MessageRun},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int},
    types::api,
};

/// It is part of the fresh tail.
const FRESH_TAIL: &str = "fresh-tail";
/// It is the newest user message, outside the fresh tail.
const PINNED: &str = "pinned";
/// The host holds it and has not stored it.
const LIVE: &str = "live";
/// The budget has no room for it.
const OVER_BUDGET: &str = "over-budget";
/// A new session left it behind.
const WITHDRAWN: &str = "withdrawn";

/// A part of the stored context that is wholly included or wholly left out, for one reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ContextPiece {
    /// Index of the item it belongs to.
    index: usize,
    seq_first: u64,
    seq_last: u64,
    included: bool,
    why: &'static str,
}

impl ContextPiece {
    /// Whether an item of this index, from this seq on, is its or in it.
    pub(super) fn contains_place(&self, (index, seq): (usize, u64)) -> bool {
        index == self.index && self.seq_first <= seq && seq <= self.seq_last
    }

    /// How many things it leaves out: one summary, or its messages. What was withdrawn is no part.
    fn count_omitted(&self, items: &[ContextItem]) -> u64 {
        match items.get(self.index) {
            Some(ContextItem::Summary(_)) => 1,
            Some(ContextItem::Withdrawn { .. }) => 0,
            _ => self.seq_last + 1 - self.seq_first,
        }
    }
}

/// Messages and summaries that are left out.
pub(super) fn count_omitted_items(pieces: &[ContextPiece], items: &[ContextItem]) -> u64 {
    let left_out = pieces.iter().filter(|piece| !piece.included);
    left_out.map(|piece| piece.count_omitted(items)).sum()
}

impl Assembly<'_> {
    /// Every item of the stored context, runs cut where the reason changes, and the live messages.
    ///
    /// # Errors
    ///
    /// As [`crate::storage::store_session::Reader::immutable`].
    pub(super) fn explain_items(
        &self,
        reader: &mut StoreSession<'_>,
        pieces: &[ContextPiece],
        rendered: &RenderedContext,
    ) -> Result<Vec<api::AssembledItem>> {
        let mut out = Vec::with_capacity(pieces.len() + self.pending.len());
        for piece in pieces {
            let tokens = self.count_piece_tokens(reader, piece, rendered)?;
            out.push(self.explain_piece(piece, tokens, rendered));
        }
        let first = self.history.head.messages + 1;
        let live = (first..).zip(self.pending).map(|(seq, _)| {
            let place = (self.items.len(), seq);
            api::AssembledItem {
                id: self.item_name(place.0, seq),
                kind: "live".into(),
                included: true,
                why: LIVE.into(),
                tokens: int::saturate_tokens(rendered.count_tokens_of(&|other| other == place)),
                seq_first: None,
                seq_last: None,
            }
        });
        out.extend(live);
        Ok(out)
    }

    /// What a piece has in what is returned; of one that is left out, what it has as it is stored.
    fn count_piece_tokens(
        &self,
        reader: &mut StoreSession<'_>,
        piece: &ContextPiece,
        rendered: &RenderedContext,
    ) -> Result<u64> {
        if piece.included {
            return Ok(rendered.count_tokens_of(&|place| piece.contains_place(place)));
        }
        Ok(match self.items.get(piece.index) {
            Some(ContextItem::Run(run)) => {
                let end = self.tokens_before(reader, run, piece.seq_last + 1)?;
                end.saturating_sub(self.tokens_before(reader, run, piece.seq_first)?)
            }
            Some(item @ ContextItem::Summary(_)) => item.rendered_tokens(),
            Some(ContextItem::Withdrawn { .. }) | None => 0,
        })
    }

    /// Tokens of all messages before one of a run, or before the one behind it.
    fn tokens_before(
        &self,
        reader: &mut StoreSession<'_>,
        run: &MessageRun,
        seq: u64,
    ) -> Result<u64> {
        if seq > run.seq_last {
            return Ok(run.tokens_before + run.tokens);
        }
        if seq == run.seq_first {
            return Ok(run.tokens_before);
        }
        let found = self.history.read_messages(reader, seq, seq)?;
        Ok(found.first().map_or(run.tokens_before, |placed| placed.tokens_before))
    }

    fn explain_piece(
        &self,
        piece: &ContextPiece,
        tokens: u64,
        rendered: &RenderedContext,
    ) -> api::AssembledItem {
        let kind = match self.items.get(piece.index) {
            Some(ContextItem::Summary(_)) if self.is_focus(piece.index) => "focus",
            Some(ContextItem::Summary(summary)) if summary.depth == 0 => "leaf",
            Some(ContextItem::Summary(_)) => "condensed",
            Some(ContextItem::Withdrawn { .. }) => "withdrawn",
            _ => "message",
        };
        let done = if piece.included { rendered.describe_notes(piece) } else { String::new() };
        api::AssembledItem {
            id: self.item_name(piece.index, piece.seq_first),
            kind: kind.into(),
            included: piece.included,
            why: if done.is_empty() { piece.why.into() } else { format!("{}: {done}", piece.why) },
            tokens: int::saturate_tokens(tokens),
            seq_first: Some(piece.seq_first),
            seq_last: Some(piece.seq_last),
        }
    }
}

impl ContextChoice {
    /// The choice as pieces of the stored context, in order.
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

    /// The pieces of one run.
    fn push_run_pieces(&self, index: usize, run: &MessageRun, out: &mut Vec<ContextPiece>) {
        let mut at = run.seq_first;
        let of_run = || self.ranges.iter().filter(|range| range.index == index);
        let skip = |seq_first: u64, seq_last: u64, out: &mut Vec<ContextPiece>| {
            if seq_first <= seq_last {
                let (included, why) = (false, OVER_BUDGET);
                out.push(ContextPiece { index, seq_first, seq_last, included, why });
            }
        };
        for range in of_run() {
            skip(at, range.seq_first - 1, out);
            self.push_range_pieces(range, out);
            at = range.seq_last + 1;
        }
        skip(at, run.seq_last, out);
    }

    /// The pieces of what is included, parted before and behind the pin and before the fresh tail.
    fn push_range_pieces(&self, range: &IncludedRange, out: &mut Vec<ContextPiece>) {
        let tail = self.tail.seq_first;
        let pin = self.tail.pinned.map(|pin| pin.seq);
        let pin = pin.filter(|seq| range.seq_first <= *seq && *seq <= range.seq_last);
        let mut bounds = Vec::from([range.seq_first]);
        bounds.extend(pin.into_iter().flat_map(|seq| [seq, seq + 1]));
        bounds.push(tail.clamp(range.seq_first, range.seq_last + 1));
        bounds.push(range.seq_last + 1);
        bounds.sort_unstable();
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
