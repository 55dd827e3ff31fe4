//! Explanation of a context: each item included or omitted, why, and its tokens.
//!
//! In: the pieces of the stored context and the rendered context. Out: one record for each piece
//! and live message. If rendering changed a piece, a colon and the notes on the changes follow the
//! reason.

use alloc::{format, string::String, vec::Vec};

use super::{
    input::{AssemblyInput, ItemPlace},
    pieces::ContextPiece,
    rendered_context::RenderedContext,
};
use crate::storage::{
    context::{ContextItem, MessageRun},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int},
    types::api,
};

/// Kind and reason of the system messages.
const SYSTEM: &str = "system";
/// Reason of a live message.
const LIVE: &str = "live";

impl AssemblyInput<'_> {
    /// Explains the system messages, every piece of the stored context, then the live messages.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(super) fn explain_items(
        &self,
        session: &mut StoreSession<'_>,
        pieces: &[ContextPiece],
        rendered: &RenderedContext,
    ) -> Result<Vec<api::AssembledItem>> {
        let mut out = Vec::with_capacity(pieces.len() + self.pending.len() + 1);
        if !self.system.messages.is_empty() {
            out.push(api::AssembledItem {
                id: self.system.name(),
                kind: SYSTEM.into(),
                included: true,
                why: SYSTEM.into(),
                tokens: int::saturate_tokens(self.system.tokens()),
                seq_first: None,
                seq_last: None,
            });
        }
        for piece in pieces {
            let tokens = self.count_piece_tokens(session, piece, rendered)?;
            out.push(self.explain_piece(piece, tokens, rendered));
        }
        let first = self.history.head.messages + 1;
        let live = (first..).zip(self.pending).map(|(seq, _)| {
            let place = ItemPlace { index: self.items.len(), seq };
            api::AssembledItem {
                id: self.item_name(place),
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

    /// Counts the tokens of a piece. Included: the tokens as rendered. Omitted: the stored tokens
    /// of messages, the rendered tokens of a summary, 0 for withdrawn messages.
    fn count_piece_tokens(
        &self,
        session: &mut StoreSession<'_>,
        piece: &ContextPiece,
        rendered: &RenderedContext,
    ) -> Result<u64> {
        if piece.included {
            return Ok(rendered.count_tokens_of(&|place| piece.contains_place(place)));
        }
        Ok(match self.items.get(piece.index) {
            Some(ContextItem::Run(run)) => {
                let end = self.tokens_before(session, run, piece.seq_last + 1)?;
                end.saturating_sub(self.tokens_before(session, run, piece.seq_first)?)
            }
            Some(item @ ContextItem::Summary(_)) => item.rendered_tokens(),
            Some(ContextItem::Withdrawn { .. }) | None => 0,
        })
    }

    /// Returns the tokens of all messages of the conversation before `seq`, a seq of the run or the
    /// seq behind its last.
    fn tokens_before(
        &self,
        session: &mut StoreSession<'_>,
        run: &MessageRun,
        seq: u64,
    ) -> Result<u64> {
        if seq > run.seq_last {
            return Ok(run.tokens_before + run.tokens);
        }
        if seq == run.seq_first {
            return Ok(run.tokens_before);
        }
        let found = self.history.read_messages(session, seq, seq)?;
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
        let notes = if piece.included { rendered.describe_notes(piece) } else { String::new() };
        api::AssembledItem {
            id: self.item_name(ItemPlace { index: piece.index, seq: piece.seq_first }),
            kind: kind.into(),
            included: piece.included,
            why: if notes.is_empty() {
                piece.why.into()
            } else {
                format!("{}: {notes}", piece.why)
            },
            tokens: int::saturate_tokens(tokens),
            seq_first: Some(piece.seq_first),
            seq_last: Some(piece.seq_last),
        }
    }
}
