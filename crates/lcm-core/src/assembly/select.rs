//! Which items a context has: the fresh tail, the pin, what a policy keeps, then newest first while
//! they fit.
//!
//! In: the stored context and a [`Fill`], by which a policy ([`super::policy`]) says what belongs
//! in any case and how much else may. Out: summaries and ranges of messages. No unit is parted.

use alloc::{string::String, vec::Vec};

use super::{Assembly, focus::FocusElement};
use crate::storage::{
    context::{ContextItem, MessageRun},
    fresh_tail::{self, FreshTail, MessageUnit},
    history::{self, MessageHistory},
    pack::PackRef,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, limits},
    config::BudgetPolicy,
};

/// What a context has beside the tail and the pin.
#[derive(Clone, Debug, Default)]
pub(super) struct FillPlan {
    /// Tokens of what is taken newest first.
    pub(super) tokens_left: u64,
    /// What does not fit is passed over; else nothing older is taken.
    pub(super) skips_oversized: bool,
    /// Index of the summary that belongs because it stands for the oldest messages.
    pub(super) oldest: Option<usize>,
    /// Index of the focus brief.
    pub(super) focus: Option<usize>,
    /// What belongs because it matches: indexes of summaries and units, both ascending.
    pub(super) summaries: Vec<usize>,
    pub(super) units: Vec<MessageUnit>,
}

impl FillPlan {
    /// Why a summary belongs whatever else fits; `None`: it does not.
    fn required_reason(&self, index: usize) -> Option<&'static str> {
        match () {
            () if self.focus == Some(index) => Some("focus"),
            () if self.oldest == Some(index) => Some("oldest"),
            () if self.summaries.binary_search(&index).is_ok() => Some("matches-prompt"),
            () => None,
        }
    }

    /// The units of a run that belong whatever else fits.
    fn units_in_run(&self, run: &MessageRun) -> &[MessageUnit] {
        let from = self.units.partition_point(|unit| unit.seq_first < run.seq_first);
        let to = self.units.partition_point(|unit| unit.seq_first <= run.seq_last);
        self.units.get(from..to).unwrap_or_default()
    }
}

/// What was chosen.
#[derive(Clone, Debug)]
pub(super) struct ContextChoice {
    /// Indexes of summaries, ascending, and why each belongs.
    summaries: Vec<(usize, &'static str)>,
    /// Ranges of messages with their tokens, ascending.
    pub(super) ranges: Vec<IncludedRange>,
    pub(super) tail: FreshTail,
}

/// Messages of one run that are included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct IncludedRange {
    pub(super) index: usize,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    pub(super) tokens: u64,
    pub(super) why: &'static str,
}

/// Reads the items, and with them the directory nodes that the fill may need.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn load_items(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    policy: &BudgetPolicy,
) -> Result<Vec<ContextItem>> {
    let head = history.head;
    // How far back the budget reaches, going by the average message, and one node more.
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
    reader.prefetch_records(history.keys, &head.context.node_keys(history.keys), &nodes)?;
    head.context.load_items(reader, history.keys)
}

/// Reads ahead what a context of this budget can hold at most: packs and summaries together.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn prefetch_context(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    policy: &BudgetPolicy,
    focus: Option<&FocusElement>,
) -> Result<()> {
    let mut left = u64::from(policy.budget);
    let mut wanted: Vec<(String, u32)> = Vec::new();
    let is_stored = |index: usize| focus.is_none_or(|focus| focus.index != index);
    for (index, item) in items.iter().enumerate().rev() {
        match item {
            ContextItem::Summary(summary) if is_stored(index) => {
                wanted.push((history.keys.summary_key(summary.id), summary.bytes));
            }
            ContextItem::Run(run) => {
                for pack in load_newest_packs(reader, history, run, left)? {
                    wanted.push((pack.key(history.keys), pack.bytes));
                }
            }
            ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => {}
        }
        left = left.saturating_sub(item.rendered_tokens());
        if left == 0 {
            break;
        }
    }
    // The oldest summary may belong whatever else fits.
    let oldest = items.iter().enumerate().find_map(|(index, item)| match item {
        ContextItem::Summary(summary) if is_stored(index) => {
            Some((history.keys.summary_key(summary.id), summary.bytes))
        }
        ContextItem::Summary(_) | ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
    });
    wanted.extend(oldest.filter(|oldest| left == 0 && !wanted.contains(oldest)));
    reader.prefetch_records(history.keys, &wanted, &[])
}

/// The newest packs of a run that together hold up to `tokens`, newest first.
fn load_newest_packs(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    tokens: u64,
) -> Result<Vec<PackRef>> {
    let mut out = Vec::new();
    let mut sum = 0u64;
    let mut to = run.seq_last;
    loop {
        let from = run.seq_first.max(history::directory_node(to) * limits::DIRECTORY_SPAN + 1);
        for pack in history.find_pack_refs(reader, from, to)?.into_iter().rev() {
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

/// Chooses what the fill keeps, and of the rest the newest that fits.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn select_items(
    reader: &mut StoreSession<'_>,
    context: &Assembly<'_>,
    fill: &FillPlan,
) -> Result<ContextChoice> {
    let Assembly { history, items, tail, .. } = *context;
    let mut choice = ContextChoice { summaries: Vec::new(), ranges: Vec::new(), tail: *tail };
    let mut state = FillState { tokens_left: fill.tokens_left, is_open: true };
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
                let kept = ProtectedUnits { tail, units: fill.units_in_run(run) };
                choice
                    .ranges
                    .extend(select_messages(reader, history, &kept, run, index, &mut state)?);
                // What is older than a run that was cut is passed over as a whole.
                state.is_open |= fill.skips_oversized;
            }
            ContextItem::Withdrawn { .. } => {}
        }
    }
    choice.summaries.reverse();
    choice.ranges.reverse();
    Ok(choice)
}

/// What may still be taken.
struct FillState {
    tokens_left: u64,
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

/// What of a run belongs in any case.
struct ProtectedUnits<'a> {
    tail: &'a FreshTail,
    units: &'a [MessageUnit],
}

impl ProtectedUnits<'_> {
    /// The pin and the units, ascending, as far as they begin before a seq.
    fn units_before(&self, run: &MessageRun, seq: u64) -> Vec<(MessageUnit, &'static str)> {
        let mut out: Vec<(MessageUnit, &'static str)> = self
            .units
            .iter()
            .filter(|unit| unit.seq_first < seq)
            .map(|unit| (*unit, "matches-prompt"))
            .collect();
        let pin =
            self.tail.pinned.filter(|pin| run.seq_first <= pin.seq && pin.seq <= run.seq_last);
        if let Some(pin) = pin.filter(|pin| pin.seq < seq && !self.contains_seq(pin.seq)) {
            let unit = MessageUnit { seq_first: pin.seq, seq_last: pin.seq, tokens: pin.tokens };
            let at = out.partition_point(|(known, _)| known.seq_first < pin.seq);
            out.insert(at, (unit, "pinned"));
        }
        out
    }

    /// Whether a message is in one of the units.
    fn contains_seq(&self, seq: u64) -> bool {
        self.units.iter().any(|unit| unit.seq_first <= seq && seq <= unit.seq_last)
    }
}

/// The messages of a run that are included, newest range first.
fn select_messages(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    kept: &ProtectedUnits<'_>,
    run: &MessageRun,
    index: usize,
    state: &mut FillState,
) -> Result<Vec<IncludedRange>> {
    let tail = kept.tail;
    let in_tail = if tail.seq_first <= run.seq_last { tail.tokens } else { 0 };
    let apart = kept.units_before(run, tail.seq_first);
    let paid = in_tail + apart.iter().map(|(unit, _)| unit.tokens).sum::<u64>();
    let rest = run.tokens.saturating_sub(paid);
    let mut from = tail.seq_first.clamp(run.seq_first, run.seq_last + 1);
    let range = |seq_first, seq_last, tokens, why| IncludedRange {
        index,
        seq_first,
        seq_last,
        tokens,
        why,
    };
    // Messages without tokens may have some when they are rendered: where nothing is left of the
    // budget, they do not belong, either.
    if state.is_open && state.tokens_left > 0 && rest <= state.tokens_left {
        state.tokens_left -= rest;
        return Ok(alloc::vec![range(run.seq_first, run.seq_last, run.tokens, "fill")]);
    }
    let mut tokens = in_tail;
    if state.is_open {
        // The run is cut: unit by unit from its newest evictable message on.
        let mut packs = load_newest_packs(reader, history, run, paid + state.tokens_left)?;
        packs.reverse();
        packs.retain(|pack| pack.seq_first < from);
        let window = if from > run.seq_first {
            fresh_tail::read_whole_units(reader, history, run, packs, from - 1)?
        } else {
            Vec::new()
        };
        for unit in fresh_tail::group_units(&window).iter().rev() {
            let is_paid = apart.iter().any(|(known, _)| known.seq_first == unit.seq_first);
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
    for (unit, why) in apart.iter().rev().filter(|(unit, _)| unit.seq_first < from) {
        out.push(range(unit.seq_first, unit.seq_last, unit.tokens, why));
    }
    Ok(out)
}

impl ContextChoice {
    /// Whether the summary at this index is included.
    pub(super) fn has_summary(&self, index: usize) -> bool {
        self.inclusion_reason(index).is_some()
    }

    /// Why the summary at this index is included; `None`: it is not.
    pub(super) fn inclusion_reason(&self, index: usize) -> Option<&'static str> {
        let at = self.summaries.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.summaries.get(at).map(|(_, why)| *why)
    }

    /// Tokens of what was chosen beside what belongs in any case, as stored; `None`: nothing was.
    pub(super) fn count_fill_tokens(&self, context: &Assembly<'_>) -> Option<u64> {
        let items = context.items;
        let messages = self.ranges.iter().map(|range| range.seq_last + 1 - range.seq_first);
        let tail = (context.history.head.messages + 1).saturating_sub(self.tail.seq_first);
        let kept = tail + u64::from(self.tail.pinned.is_some());
        let is_kept = |(index, _): &(usize, _)| context.is_focus(*index);
        if messages.sum::<u64>() <= kept && self.summaries.iter().all(is_kept) {
            return None;
        }
        let summaries = self.summaries.iter().filter_map(|(index, _)| items.get(*index));
        let tokens = summaries.map(ContextItem::rendered_tokens).sum::<u64>()
            + self.ranges.iter().map(|range| range.tokens).sum::<u64>();
        Some(tokens.saturating_sub(context.protected_item_tokens()))
    }
}
