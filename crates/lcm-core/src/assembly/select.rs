//! Selection of the items of a context: the fresh tail, the pinned message, the items that the
//! policy requires, then the newest items that fit.
//!
//! In: the stored context and a [`FillPlan`], in which the eviction policy
//! ([`super::eviction_policy`]) names the required items and a number of tokens for the rest. Out:
//! summaries and ranges of messages, which [`super::render`] renders. A call group is never split.

use alloc::vec::Vec;

use super::{focus::FocusElement, input::AssemblyInput};
use crate::storage::{
    context::{ContextItem, MessageRun},
    fresh_tail::{self, FreshTail, MessageUnit},
    history::{self, MessageHistory},
    pack::PackRef,
    prefetch::ContextPrefetch,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, limits},
    config::BudgetPolicy,
};

/// A plan of the items that fill a context in addition to the tail and the pinned message.
#[derive(Clone, Debug, Default)]
pub(super) struct FillPlan {
    /// Tokens for the items that are not required; they are selected newest first.
    pub(super) tokens_left: u64,
    /// Whether the selection continues with older items after an item that does not fit. If false,
    /// of the older items only the required ones are selected.
    pub(super) skips_oversized: bool,
    /// Index of the oldest summary; `None`: not required.
    pub(super) oldest: Option<usize>,
    /// Index of the focus brief; `None`: no brief.
    pub(super) focus: Option<usize>,
    /// Indexes of the required summaries that match the prompt, ascending.
    pub(super) summaries: Vec<usize>,
    /// Required call groups that match the prompt, ascending.
    pub(super) units: Vec<MessageUnit>,
}

impl FillPlan {
    /// Returns why the summary at an index is required; `None`: not required.
    fn required_reason(&self, index: usize) -> Option<&'static str> {
        match () {
            () if self.focus == Some(index) => Some("focus"),
            () if self.oldest == Some(index) => Some("oldest"),
            () if self.summaries.binary_search(&index).is_ok() => Some("matches-prompt"),
            () => None,
        }
    }

    /// Returns the required call groups of a run.
    fn units_in_run(&self, run: &MessageRun) -> &[MessageUnit] {
        let from = self.units.partition_point(|unit| unit.seq_first < run.seq_first);
        let to = self.units.partition_point(|unit| unit.seq_first <= run.seq_last);
        self.units.get(from..to).unwrap_or_default()
    }
}

/// The selected items of a context.
#[derive(Clone, Debug)]
pub(super) struct ContextChoice {
    /// Indexes of the selected summaries, ascending, and why each is included.
    summaries: Vec<(usize, &'static str)>,
    /// Selected ranges of messages, ascending.
    pub(super) ranges: Vec<IncludedRange>,
    pub(super) tail: FreshTail,
}

/// A range of selected messages of one run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct IncludedRange {
    /// Index of the run.
    pub(super) index: usize,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    pub(super) tokens: u64,
    pub(super) why: &'static str,
}

/// Loads the items of the stored context, and prefetches the directory nodes that the budget of a
/// policy may reach: at most [`limits::DIRECTORY_NODES_READAHEAD_MAX`], the newest.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn load_items(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    policy: &BudgetPolicy,
) -> Result<Vec<ContextItem>> {
    let head = history.head;
    // Estimates from the average message how far back the budget reaches, and adds one node.
    let average = (head.raw_tokens / head.messages.max(1)).max(1);
    let messages = (u64::from(policy.budget) / average).min(head.messages);
    let first = history::directory_node(head.messages.saturating_sub(messages).max(1));
    let flushed = head.packs.first().map_or(head.messages + 1, |pack| pack.seq_first);
    let last = history::directory_node(flushed.saturating_sub(1));
    let nodes: Vec<u64> = if flushed > 1 {
        (first.saturating_sub(1)..=last).rev().take(limits::DIRECTORY_NODES_READAHEAD_MAX).collect()
    } else {
        Vec::new()
    };
    history.prefetch_nodes(session, &nodes)?;
    head.context.load_items(session, history.keys)
}

/// Prefetches the packs and summaries that the newest items within the budget need, and the oldest
/// summary.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn prefetch_context(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    policy: &BudgetPolicy,
    focus: Option<&FocusElement>,
) -> Result<()> {
    let mut left = u64::from(policy.budget);
    let mut prefetch = ContextPrefetch::new(history);
    let is_stored = |index: usize| focus.is_none_or(|focus| focus.index != index);
    for (index, item) in items.iter().enumerate().rev() {
        match item {
            ContextItem::Summary(summary) if is_stored(index) => prefetch.add_summary(summary),
            ContextItem::Run(run) => {
                prefetch.add_packs(&load_newest_packs(session, history, run, left)?);
            }
            ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => {}
        }
        left = left.saturating_sub(item.rendered_tokens());
        if left == 0 {
            break;
        }
    }
    // A policy may require the oldest summary.
    let oldest = items.iter().enumerate().find_map(|(index, item)| match item {
        ContextItem::Summary(summary) if is_stored(index) => Some(summary),
        ContextItem::Summary(_) | ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
    });
    if let Some(oldest) = oldest.filter(|oldest| left == 0 && !prefetch.contains_summary(oldest)) {
        prefetch.add_summary(oldest);
    }
    prefetch.read(session)
}

/// Returns packs of a run, newest first, until together they have more than `tokens` or the run
/// begins.
fn load_newest_packs(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    tokens: u64,
) -> Result<Vec<PackRef>> {
    let mut out = Vec::new();
    let mut sum = 0u64;
    let mut to = run.seq_last;
    loop {
        let from = run.seq_first.max(history::directory_node(to) * limits::DIRECTORY_SPAN + 1);
        for pack in history.find_pack_refs(session, from, to)?.into_iter().rev() {
            if sum > tokens {
                return Ok(out);
            }
            sum += pack.tokens;
            out.push(pack);
        }
        if from == run.seq_first || sum > tokens {
            return Ok(out);
        }
        to = from - 1;
    }
}

/// Selects the tail, the pinned message and the required items of a plan, then the newest of the
/// rest that fit.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn select_items(
    session: &mut StoreSession<'_>,
    input: &AssemblyInput<'_>,
    fill: &FillPlan,
) -> Result<ContextChoice> {
    let AssemblyInput { history, items, tail, .. } = *input;
    let mut choice = ContextChoice { summaries: Vec::new(), ranges: Vec::new(), tail: *tail };
    let mut state = FillState { tokens_left: fill.tokens_left, is_open: true };
    let mut tail_left = tail.tokens;
    for (index, item) in items.iter().enumerate().rev() {
        match item {
            ContextItem::Summary(_) => {
                if let Some(why) = fill.required_reason(index) {
                    choice.summaries.push((index, why));
                } else if state.try_take(item.rendered_tokens(), fill) {
                    choice.summaries.push((index, "fill"));
                }
            }
            ContextItem::Run(run) => {
                let units = fill.units_in_run(run);
                let in_tail =
                    if tail.seq_first <= run.seq_last { tail_left.min(run.tokens) } else { 0 };
                tail_left -= in_tail;
                let run = RunCandidate { index, run, tail, in_tail, units };
                choice.ranges.extend(run.select_messages(session, history, &mut state)?);
                // After a run that fits only in part, no older items are selected, unless the
                // policy skips items that do not fit.
                state.is_open |= fill.skips_oversized;
            }
            ContextItem::Withdrawn { .. } => {}
        }
    }
    choice.summaries.reverse();
    choice.ranges.reverse();
    Ok(choice)
}

/// State of the newest-first selection.
struct FillState {
    tokens_left: u64,
    /// Whether items that are older and not required may be selected.
    is_open: bool,
}

impl FillState {
    fn try_take(&mut self, tokens: u64, fill: &FillPlan) -> bool {
        let fits = self.is_open && tokens <= self.tokens_left;
        self.is_open &= fits || fill.skips_oversized;
        self.tokens_left -= if fits { tokens } else { 0 };
        fits
    }
}

/// A run whose messages may be selected.
struct RunCandidate<'a> {
    /// Index of the run in the context.
    index: usize,
    run: &'a MessageRun,
    tail: &'a FreshTail,
    /// Tokens of the messages of the run that belong to the tail.
    in_tail: u64,
    /// Required call groups of the run, ascending.
    units: &'a [MessageUnit],
}

impl RunCandidate<'_> {
    /// Returns the required call groups that begin before a seq, and the pinned message if it is
    /// before the seq and no group has it. Ascending by seq, each with its reason.
    fn units_before(&self, seq: u64) -> Vec<(MessageUnit, &'static str)> {
        let mut out: Vec<(MessageUnit, &'static str)> = self
            .units
            .iter()
            .filter(|unit| unit.seq_first < seq)
            .map(|unit| (*unit, "matches-prompt"))
            .collect();
        let (first, last) = (self.run.seq_first, self.run.seq_last);
        let pin = self.tail.pinned.filter(|pin| first <= pin.seq && pin.seq <= last);
        if let Some(pin) = pin.filter(|pin| pin.seq < seq && !self.contains_seq(pin.seq)) {
            let (seq, tokens) = (pin.seq, pin.tokens);
            let unit = MessageUnit { seq_first: seq, seq_last: seq, tokens, count: 1 };
            let at = out.partition_point(|(known, _)| known.seq_first < pin.seq);
            out.insert(at, (unit, "pinned"));
        }
        out
    }

    /// Returns whether the message with a seq is in a required call group.
    fn contains_seq(&self, seq: u64) -> bool {
        self.units.iter().any(|unit| unit.seq_first <= seq && seq <= unit.seq_last)
    }

    /// Selects messages of the run, newest range first.
    fn select_messages(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        state: &mut FillState,
    ) -> Result<Vec<IncludedRange>> {
        let (run, tail, in_tail) = (self.run, self.tail, self.in_tail);
        let required = self.units_before(tail.seq_first);
        let paid = in_tail + required.iter().map(|(unit, _)| unit.tokens).sum::<u64>();
        let rest = run.tokens.saturating_sub(paid);
        let mut from = tail.seq_first.clamp(run.seq_first, run.seq_last + 1);
        let range = |seq_first, seq_last, tokens, why| IncludedRange {
            index: self.index,
            seq_first,
            seq_last,
            tokens,
            why,
        };
        // A message stored with 0 tokens may have more when rendered: without tokens left, none is
        // selected.
        if state.is_open && state.tokens_left > 0 && rest <= state.tokens_left {
            state.tokens_left -= rest;
            return Ok(alloc::vec![range(run.seq_first, run.seq_last, run.tokens, "fill")]);
        }
        let mut tokens = in_tail;
        if state.is_open {
            // The run is cut before the oldest call group that fits.
            let mut packs = load_newest_packs(session, history, run, paid + state.tokens_left)?;
            packs.reverse();
            packs.retain(|pack| pack.seq_first < from);
            let window = if from > run.seq_first {
                fresh_tail::read_whole_units(session, history, run, packs, from - 1)?
            } else {
                Vec::new()
            };
            for unit in fresh_tail::group_units(&window).iter().rev() {
                let is_paid = required.iter().any(|(known, _)| known.seq_first == unit.seq_first);
                let cost = if is_paid { 0 } else { unit.tokens };
                if cost > state.tokens_left || state.tokens_left == 0 {
                    break;
                }
                state.tokens_left -= cost;
                tokens += unit.tokens;
                from = unit.seq_first;
            }
            state.is_open = false;
        }
        let mut out = Vec::new();
        if from <= run.seq_last {
            out.push(range(from, run.seq_last, tokens, "fill"));
        }
        for (unit, why) in required.iter().rev().filter(|(unit, _)| unit.seq_first < from) {
            out.push(range(unit.seq_first, unit.seq_last, unit.tokens, why));
        }
        Ok(out)
    }
}

impl ContextChoice {
    /// Returns whether the summary at an index is included.
    pub(super) fn has_summary(&self, index: usize) -> bool {
        self.inclusion_reason(index).is_some()
    }

    /// Returns why the summary at an index is included; `None`: omitted.
    pub(super) fn inclusion_reason(&self, index: usize) -> Option<&'static str> {
        let at = self.summaries.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.summaries.get(at).map(|(_, why)| *why)
    }

    /// Counts the stored tokens selected outside the protected part; `None`: only the protected
    /// part is selected.
    pub(super) fn count_fill_tokens(&self, input: &AssemblyInput<'_>) -> Option<u64> {
        let items = input.items;
        let messages = self.ranges.iter().map(|range| range.seq_last + 1 - range.seq_first);
        let protected = self.tail.count + u64::from(self.tail.pinned.is_some());
        let is_protected = |(index, _): &(usize, _)| input.is_focus(*index);
        if messages.sum::<u64>() <= protected && self.summaries.iter().all(is_protected) {
            return None;
        }
        let summaries = self.summaries.iter().filter_map(|(index, _)| items.get(*index));
        let tokens = summaries.map(ContextItem::rendered_tokens).sum::<u64>()
            + self.ranges.iter().map(|range| range.tokens).sum::<u64>();
        Some(tokens.saturating_sub(input.protected_item_tokens()))
    }
}
