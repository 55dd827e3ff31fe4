//! What became of each item of the stored context: in or out, why, and its tokens.
//!
//! In: what was chosen, and what it became. Out: the items in order, a run cut wherever the reason
//! changes. Reasons are one of [`FRESH_TAIL`] to [`WITHDRAWN`], or that of a choice
//! ([`super::choose`]): `fill`, `oldest`, `focus`, `matches-prompt`; behind a colon follows what
//! was done to it so that the provider takes it.

use alloc::{format, string::String, vec::Vec};

use super::{
    Assembly,
    choose::{Choice, Range},
    render::Rendered,
};
use crate::storage::{
    context::{Item, Run},
    store_session::Reader,
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
pub(super) struct Piece {
    /// Index of the item it belongs to.
    index: usize,
    seq_first: u64,
    seq_last: u64,
    included: bool,
    why: &'static str,
}

impl Piece {
    /// Whether an item of this index, from this seq on, is its or in it.
    pub(super) fn holds(&self, (index, seq): (usize, u64)) -> bool {
        index == self.index && self.seq_first <= seq && seq <= self.seq_last
    }

    /// How many things it leaves out: one summary, or its messages. What was withdrawn is no part.
    fn count(&self, items: &[Item]) -> u64 {
        match items.get(self.index) {
            Some(Item::Summary(_)) => 1,
            Some(Item::Withdrawn { .. }) => 0,
            _ => self.seq_last + 1 - self.seq_first,
        }
    }
}

/// Messages and summaries that are left out.
pub(super) fn left_out(pieces: &[Piece], items: &[Item]) -> u64 {
    let left_out = pieces.iter().filter(|piece| !piece.included);
    left_out.map(|piece| piece.count(items)).sum()
}

impl Assembly<'_> {
    /// Every item of the stored context, runs cut where the reason changes, and the live messages.
    ///
    /// # Errors
    ///
    /// As [`crate::storage::store_session::Reader::immutable`].
    pub(super) fn explain(
        &self,
        reader: &mut Reader<'_>,
        pieces: &[Piece],
        rendered: &Rendered,
    ) -> Result<Vec<api::Item>> {
        let mut out = Vec::with_capacity(pieces.len() + self.live.len());
        for piece in pieces {
            let tokens = self.tokens(reader, piece, rendered)?;
            out.push(self.explain_piece(piece, tokens, rendered));
        }
        let first = self.history.head.messages + 1;
        let live = (first..).zip(self.live).map(|(seq, _)| {
            let place = (self.items.len(), seq);
            api::Item {
                id: self.name(place.0, seq),
                kind: "live".into(),
                included: true,
                why: LIVE.into(),
                tokens: int::tokens_u32(rendered.tokens_of(&|other| other == place)),
                seq_first: None,
                seq_last: None,
            }
        });
        out.extend(live);
        Ok(out)
    }

    /// What a piece has in what is returned; of one that is left out, what it has as it is stored.
    fn tokens(&self, reader: &mut Reader<'_>, piece: &Piece, rendered: &Rendered) -> Result<u64> {
        if piece.included {
            return Ok(rendered.tokens_of(&|place| piece.holds(place)));
        }
        Ok(match self.items.get(piece.index) {
            Some(Item::Run(run)) => {
                let end = self.tokens_before(reader, run, piece.seq_last + 1)?;
                end.saturating_sub(self.tokens_before(reader, run, piece.seq_first)?)
            }
            Some(item @ Item::Summary(_)) => item.rendered_tokens(),
            Some(Item::Withdrawn { .. }) | None => 0,
        })
    }

    /// Tokens of all messages before one of a run, or before the one behind it.
    fn tokens_before(&self, reader: &mut Reader<'_>, run: &Run, seq: u64) -> Result<u64> {
        if seq > run.seq_last {
            return Ok(run.tokens_before + run.tokens);
        }
        if seq == run.seq_first {
            return Ok(run.tokens_before);
        }
        let found = self.history.messages(reader, seq, seq)?;
        Ok(found.first().map_or(run.tokens_before, |placed| placed.tokens_before))
    }

    fn explain_piece(&self, piece: &Piece, tokens: u64, rendered: &Rendered) -> api::Item {
        let kind = match self.items.get(piece.index) {
            Some(Item::Summary(_)) if self.is_focus(piece.index) => "focus",
            Some(Item::Summary(summary)) if summary.depth == 0 => "leaf",
            Some(Item::Summary(_)) => "condensed",
            Some(Item::Withdrawn { .. }) => "withdrawn",
            _ => "message",
        };
        let done = if piece.included { rendered.done_to(piece) } else { String::new() };
        api::Item {
            id: self.name(piece.index, piece.seq_first),
            kind: kind.into(),
            included: piece.included,
            why: if done.is_empty() { piece.why.into() } else { format!("{}: {done}", piece.why) },
            tokens: int::tokens_u32(tokens),
            seq_first: Some(piece.seq_first),
            seq_last: Some(piece.seq_last),
        }
    }
}

impl Choice {
    /// The choice as pieces of the stored context, in order.
    pub(super) fn pieces(&self, items: &[Item]) -> Vec<Piece> {
        let mut out = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let (seq_first, seq_last) = (item.seq_first(), item.seq_last());
            let whole = |included, why| Piece { index, seq_first, seq_last, included, why };
            match item {
                Item::Summary(_) => {
                    let why = self.why(index);
                    out.push(whole(why.is_some(), why.unwrap_or(OVER_BUDGET)));
                }
                Item::Run(run) => self.cut(index, run, &mut out),
                Item::Withdrawn { .. } => out.push(whole(false, WITHDRAWN)),
            }
        }
        out
    }

    /// The pieces of one run.
    fn cut(&self, index: usize, run: &Run, out: &mut Vec<Piece>) {
        let mut at = run.seq_first;
        let of_run = || self.ranges.iter().filter(|range| range.index == index);
        let skip = |seq_first: u64, seq_last: u64, out: &mut Vec<Piece>| {
            if seq_first <= seq_last {
                let (included, why) = (false, OVER_BUDGET);
                out.push(Piece { index, seq_first, seq_last, included, why });
            }
        };
        for range in of_run() {
            skip(at, range.seq_first - 1, out);
            self.part(range, out);
            at = range.seq_last + 1;
        }
        skip(at, run.seq_last, out);
    }

    /// The pieces of what is included, parted before and behind the pin and before the fresh tail.
    fn part(&self, range: &Range, out: &mut Vec<Piece>) {
        let tail = self.tail.seq_first;
        let pin = self.tail.pin.map(|pin| pin.seq);
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
            out.push(Piece {
                index: range.index,
                seq_first: *seq_first,
                seq_last: next - 1,
                included: true,
                why,
            });
        }
    }
}
