//! Input of an assembly: the stored context, the live messages and the rules of selection.

use alloc::{format, string::String};

use super::{focus::FocusElement, full_outputs::FullOutputs, pending::PendingMessage};
use crate::storage::{
    call::Call, context::ContextItem, fresh_tail::FreshTail, history::MessageHistory, summary,
};
use lcm_text::config::BudgetPolicy;

/// A place in a context.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ItemPlace {
    /// Index of the item; the number of items for a live message.
    pub(super) index: usize,
    /// Seq of the message, or the first seq that the summary covers.
    pub(super) seq: u64,
}

/// Input of one assembly.
pub(super) struct AssemblyInput<'a> {
    pub(super) call: Call<'a>,
    pub(super) history: &'a MessageHistory<'a>,
    /// Items of the stored context; the focus brief replaces the summaries that it covers.
    pub(super) items: &'a [ContextItem],
    pub(super) tail: &'a FreshTail,
    pub(super) policy: &'a BudgetPolicy,
    /// Live messages, which end the context.
    pub(super) pending: &'a [PendingMessage],
    pub(super) focus: Option<&'a FocusElement>,
    pub(super) full_outputs: FullOutputs,
}

impl AssemblyInput<'_> {
    /// Returns the tokens of the protected part: tail, pinned message, brief and live messages.
    pub(super) fn protected_tokens(&self) -> u64 {
        let live = self.pending.iter().map(|live| u64::from(live.message.tokens)).sum::<u64>();
        self.protected_item_tokens() + live + self.full_outputs.extra_tokens
    }

    /// Returns the tokens of the protected items of the stored context, as stored.
    pub(super) fn protected_item_tokens(&self) -> u64 {
        let pinned = self.tail.pinned.map_or(0, |pin| pin.tokens);
        self.tail.tokens + pinned + self.focus.map_or(0, |focus| focus.tokens)
    }

    /// Returns the tokens of the items that may be evicted.
    pub(super) fn evictable_tokens(&self) -> u64 {
        let all = self.items.iter().map(ContextItem::rendered_tokens).sum::<u64>();
        all.saturating_sub(self.protected_item_tokens())
    }

    /// Returns the tokens of the budget that remain for evictable items.
    pub(super) fn evictable_budget(&self) -> u64 {
        u64::from(self.policy.budget).saturating_sub(self.protected_tokens())
    }

    /// Returns the id of the summary, brief or message at a place.
    pub(super) fn item_name(&self, place: ItemPlace) -> String {
        match self.items.get(place.index) {
            Some(ContextItem::Summary(_)) if self.is_focus(place.index) => self.focus_name().into(),
            Some(ContextItem::Summary(item)) => summary::format_summary_id(item.id),
            Some(_) => self.call.keys.message_id(place.seq),
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
