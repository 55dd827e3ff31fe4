//! Input of one assembly: the stored context, the live messages and the budget policy.
//!
//! [`super::assemble`] builds the input. Selection, rendering and the result read the input, and
//! its methods count the protected tokens and the tokens that remain for other items.

use alloc::{format, string::String, vec::Vec};

use super::{focus::FocusElement, full_outputs::FullOutputs, pending::PendingMessage};
use crate::storage::{
    call::Call,
    context::ContextItem,
    fresh_tail::FreshTail,
    history::MessageHistory,
    records::system_slot::{SystemText, format_system_id},
    summary,
};
use lcm_text::{
    base::error::{Error, Result},
    config::BudgetPolicy,
};

/// Value of [`ItemPlace::index`] for a message of the [`SystemPart`].
pub(super) const SYSTEM_INDEX: usize = usize::MAX;
/// Name of system messages that are live messages.
const LIVE_SYSTEM: &str = "live-system";

/// A system message as a context shows it.
#[derive(Debug)]
pub(super) struct ShownSystemMessage {
    pub(super) text: String,
    pub(super) tokens: u32,
}

/// The system messages of a context.
#[derive(Debug, Default)]
pub(super) struct SystemPart {
    pub(super) messages: Vec<ShownSystemMessage>,
    /// Id of the stored version; `None`: the messages are live.
    id: Option<[u8; 8]>,
}

impl SystemPart {
    /// Creates the part from messages as the host handed them over.
    pub(super) fn new(texts: &[SystemText], id: Option<[u8; 8]>) -> Self {
        let show =
            |text: &SystemText| ShownSystemMessage { text: text.read_said(), tokens: text.tokens };
        Self { messages: texts.iter().map(show).collect(), id }
    }

    /// Returns the tokens of the messages.
    pub(super) fn tokens(&self) -> u64 {
        self.messages.iter().map(|message| u64::from(message.tokens)).sum()
    }

    /// Refuses system messages that exceed the budget alone.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the system messages have more than `budget` tokens.
    pub(super) fn ensure_fits(&self, budget: u32) -> Result<()> {
        let tokens = self.tokens();
        if tokens <= u64::from(budget) {
            return Ok(());
        }
        Err(Error::limit_exceeded(format_args!(
            "the system messages must have at most {budget} tokens, the budget less \
             `reserve_tokens`, got {tokens}; shorten them, or raise `budget` or \
             `assembly_tokens_max`"
        )))
    }

    /// Returns the printed id of the stored version, or the name of live messages.
    pub(super) fn name(&self) -> String {
        self.id.map_or_else(|| LIVE_SYSTEM.into(), format_system_id)
    }
}

/// The place of a summary, the focus brief, a stored message or a live message in a context.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ItemPlace {
    /// Index of the item; for a live message, the number of items; for a message of the
    /// [`SystemPart`], [`SYSTEM_INDEX`].
    pub(super) index: usize,
    /// Seq of the message, or the first seq that the summary or brief covers. Live messages are
    /// numbered on from the newest stored message.
    pub(super) seq: u64,
}

/// Input of one assembly.
pub(super) struct AssemblyInput<'a> {
    pub(super) call: Call<'a>,
    pub(super) history: &'a MessageHistory<'a>,
    /// Items of the stored context, with the focus brief in place of the summaries that it covers.
    pub(super) items: &'a [ContextItem],
    pub(super) tail: &'a FreshTail,
    pub(super) policy: &'a BudgetPolicy,
    /// System messages, which precede the context.
    pub(super) system: &'a SystemPart,
    /// Live messages, which end the context.
    pub(super) pending: &'a [PendingMessage],
    pub(super) focus: Option<&'a FocusElement>,
    pub(super) full_outputs: FullOutputs,
}

impl AssemblyInput<'_> {
    /// Returns the tokens of the protected part: system messages, tail with its full tool outputs,
    /// pinned message, brief and live messages.
    pub(super) fn protected_tokens(&self) -> u64 {
        let live = self.pending.iter().map(|live| u64::from(live.message.tokens)).sum::<u64>();
        let system = self.system.tokens();
        self.protected_item_tokens() + system + live + self.full_outputs.extra_tokens
    }

    /// Returns the tokens of tail, pinned message and brief; large payloads count as references.
    pub(super) fn protected_item_tokens(&self) -> u64 {
        let pinned = self.tail.pinned.map_or(0, |pin| pin.tokens);
        self.tail.tokens + pinned + self.focus.map_or(0, |focus| focus.tokens)
    }

    /// Returns the tokens of the stored context outside the protected part.
    pub(super) fn evictable_tokens(&self) -> u64 {
        let all = self.items.iter().map(ContextItem::rendered_tokens).sum::<u64>();
        all.saturating_sub(self.protected_item_tokens())
    }

    /// Returns the tokens of the budget that remain for evictable items.
    pub(super) fn evictable_budget(&self) -> u64 {
        u64::from(self.policy.budget).saturating_sub(self.protected_tokens())
    }

    /// Returns the id of the summary, brief or message at a place; `live-N` for live message N.
    pub(super) fn item_name(&self, place: ItemPlace) -> String {
        match self.items.get(place.index) {
            Some(ContextItem::Summary(_)) if self.is_focus(place.index) => self.focus_name().into(),
            Some(ContextItem::Summary(item)) => summary::format_summary_id(item.id),
            Some(_) => self.call.keys.message_id(place.seq),
            None if place.index == SYSTEM_INDEX => self.system.name(),
            None => format!("live-{}", place.seq.saturating_sub(self.history.head.messages)),
        }
    }

    /// Returns whether the item at an index is the focus brief.
    pub(super) fn is_focus(&self, index: usize) -> bool {
        self.focus.is_some_and(|focus| focus.index == index)
    }

    /// Returns whether the item at an index is a summary or the focus brief.
    pub(super) fn is_summary(&self, index: usize) -> bool {
        matches!(self.items.get(index), Some(ContextItem::Summary(_)))
    }

    /// Returns the id of the focus brief; empty without one.
    pub(super) fn focus_name(&self) -> &str {
        self.focus.map_or("", |focus| &focus.name)
    }
}
