//! Which items a context has: the fresh tail, the pin, what a policy keeps, then newest first while
//! they fit.
//!
//! In: the stored context and a [`Fill`], by which a policy ([`super::policy`]) says what belongs
//! in any case and how much else may. Out: summaries and ranges of messages. No unit is parted.

use alloc::{string::String, vec::Vec};

use super::{Assembly, focus::Focus};
use crate::storage::{
    context::{Item, Run},
    fresh_tail::{self, Tail, Unit},
    history::{self, History},
    pack::PackRef,
    store_session::Reader,
};
use lcm_text::{
    base::{error::Result, limits},
    config::Policy,
};

/// What a context has beside the tail and the pin.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    /// Tokens of what is taken newest first.
    pub(super) left: u64,
    /// What does not fit is passed over; else nothing older is taken.
    pub(super) passes_over: bool,
    /// Index of the summary that belongs because it stands for the oldest messages.
    pub(super) oldest: Option<usize>,
    /// Index of the focus brief.
    pub(super) focus: Option<usize>,
    /// What belongs because it matches: indexes of summaries and units, both ascending.
    pub(super) summaries: Vec<usize>,
    pub(super) units: Vec<Unit>,
}

impl Fill {
    /// Why a summary belongs whatever else fits; `None`: it does not.
    fn keeps(&self, index: usize) -> Option<&'static str> {
        match () {
            () if self.focus == Some(index) => Some("focus"),
            () if self.oldest == Some(index) => Some("oldest"),
            () if self.summaries.binary_search(&index).is_ok() => Some("matches-prompt"),
            () => None,
        }
    }

    /// The units of a run that belong whatever else fits.
    fn units_of(&self, run: &Run) -> &[Unit] {
        let from = self.units.partition_point(|unit| unit.seq_first < run.seq_first);
        let to = self.units.partition_point(|unit| unit.seq_first <= run.seq_last);
        self.units.get(from..to).unwrap_or_default()
    }
}

/// What was chosen.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Indexes of summaries, ascending, and why each belongs.
    summaries: Vec<(usize, &'static str)>,
    /// Ranges of messages with their tokens, ascending.
    pub(super) ranges: Vec<Range>,
    pub(super) tail: Tail,
}

/// Messages of one run that are included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Range {
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
pub(super) fn load(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    policy: &Policy,
) -> Result<Vec<Item>> {
    let head = history.head;
    // How far back the budget reaches, going by the average message, and one node more.
    let average = (head.raw_tokens / head.messages.max(1)).max(1);
    let messages = (u64::from(policy.budget) / average).min(head.messages);
    let first = history::directory_node(head.messages.saturating_sub(messages).max(1));
    let flushed = head.packs.first().map_or(head.messages + 1, |pack| pack.seq_first);
    let last = history::directory_node(flushed.saturating_sub(1));
    let nodes: Vec<u64> = if flushed > 1 {
        (first.saturating_sub(1)..=last).rev().take(limits::CONTEXT_NODES_AHEAD).collect()
    } else {
        Vec::new()
    };
    reader.prefetch(history.keys, &head.context.node_keys(history.keys), &nodes)?;
    head.context.load(reader, history.keys)
}

/// Reads ahead what a context of this budget can hold at most: packs and summaries together.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn prefetch(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    items: &[Item],
    policy: &Policy,
    focus: Option<&Focus>,
) -> Result<()> {
    let mut left = u64::from(policy.budget);
    let mut wanted: Vec<(String, u32)> = Vec::new();
    let is_stored = |index: usize| focus.is_none_or(|focus| focus.index != index);
    for (index, item) in items.iter().enumerate().rev() {
        match item {
            Item::Summary(summary) if is_stored(index) => {
                wanted.push((history.keys.summary(summary.id), summary.bytes));
            }
            Item::Run(run) => {
                for pack in newest_packs(reader, history, run, left)? {
                    wanted.push((pack.key(history.keys), pack.bytes));
                }
            }
            Item::Summary(_) | Item::Withdrawn { .. } => {}
        }
        left = left.saturating_sub(item.rendered_tokens());
        if left == 0 {
            break;
        }
    }
    // The oldest summary may belong whatever else fits.
    let oldest = items.iter().enumerate().find_map(|(index, item)| match item {
        Item::Summary(summary) if is_stored(index) => {
            Some((history.keys.summary(summary.id), summary.bytes))
        }
        Item::Summary(_) | Item::Run(_) | Item::Withdrawn { .. } => None,
    });
    wanted.extend(oldest.filter(|oldest| left == 0 && !wanted.contains(oldest)));
    reader.prefetch(history.keys, &wanted, &[])
}

/// The newest packs of a run that together hold up to `tokens`, newest first.
fn newest_packs(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    run: &Run,
    tokens: u64,
) -> Result<Vec<PackRef>> {
    let mut out = Vec::new();
    let mut sum = 0u64;
    let mut to = run.seq_last;
    loop {
        let from = run.seq_first.max(history::directory_node(to) * limits::DIRECTORY_SPAN + 1);
        for pack in history.refs(reader, from, to)?.into_iter().rev() {
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
pub(super) fn choose(
    reader: &mut Reader<'_>,
    context: &Assembly<'_>,
    fill: &Fill,
) -> Result<Choice> {
    let Assembly { history, items, tail, .. } = *context;
    let mut choice = Choice { summaries: Vec::new(), ranges: Vec::new(), tail: *tail };
    let mut state = State { left: fill.left, open: true };
    for (index, item) in items.iter().enumerate().rev() {
        match item {
            Item::Summary(_) => {
                if let Some(why) = fill.keeps(index) {
                    choice.summaries.push((index, why));
                } else if state.takes(item.rendered_tokens(), fill) {
                    choice.summaries.push((index, "fill"));
                }
            }
            Item::Run(run) => {
                let kept = Kept { tail, units: fill.units_of(run) };
                choice.ranges.extend(messages(reader, history, &kept, run, index, &mut state)?);
                // What is older than a run that was cut is passed over as a whole.
                state.open |= fill.passes_over;
            }
            Item::Withdrawn { .. } => {}
        }
    }
    choice.summaries.reverse();
    choice.ranges.reverse();
    Ok(choice)
}

/// What may still be taken.
struct State {
    left: u64,
    open: bool,
}

impl State {
    fn takes(&mut self, tokens: u64, fill: &Fill) -> bool {
        let fits = self.open && tokens <= self.left;
        self.open &= fits || fill.passes_over;
        self.left -= if fits { tokens } else { 0 };
        fits
    }
}

/// What of a run belongs in any case.
struct Kept<'a> {
    tail: &'a Tail,
    units: &'a [Unit],
}

impl Kept<'_> {
    /// The pin and the units, ascending, as far as they begin before a seq.
    fn before(&self, run: &Run, seq: u64) -> Vec<(Unit, &'static str)> {
        let mut out: Vec<(Unit, &'static str)> = self
            .units
            .iter()
            .filter(|unit| unit.seq_first < seq)
            .map(|unit| (*unit, "matches-prompt"))
            .collect();
        let pin = self.tail.pin.filter(|pin| run.seq_first <= pin.seq && pin.seq <= run.seq_last);
        if let Some(pin) = pin.filter(|pin| pin.seq < seq && !self.has(pin.seq)) {
            let unit = Unit { seq_first: pin.seq, seq_last: pin.seq, tokens: pin.tokens };
            let at = out.partition_point(|(known, _)| known.seq_first < pin.seq);
            out.insert(at, (unit, "pinned"));
        }
        out
    }

    /// Whether a message is in one of the units.
    fn has(&self, seq: u64) -> bool {
        self.units.iter().any(|unit| unit.seq_first <= seq && seq <= unit.seq_last)
    }
}

/// The messages of a run that are included, newest range first.
fn messages(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    kept: &Kept<'_>,
    run: &Run,
    index: usize,
    state: &mut State,
) -> Result<Vec<Range>> {
    let tail = kept.tail;
    let in_tail = if tail.seq_first <= run.seq_last { tail.tokens } else { 0 };
    let apart = kept.before(run, tail.seq_first);
    let paid = in_tail + apart.iter().map(|(unit, _)| unit.tokens).sum::<u64>();
    let rest = run.tokens.saturating_sub(paid);
    let mut from = tail.seq_first.clamp(run.seq_first, run.seq_last + 1);
    let range =
        |seq_first, seq_last, tokens, why| Range { index, seq_first, seq_last, tokens, why };
    // Messages without tokens may have some when they are rendered: where nothing is left of the
    // budget, they do not belong, either.
    if state.open && state.left > 0 && rest <= state.left {
        state.left -= rest;
        return Ok(alloc::vec![range(run.seq_first, run.seq_last, run.tokens, "fill")]);
    }
    let mut tokens = in_tail;
    if state.open {
        // The run is cut: unit by unit from its newest evictable message on.
        let mut packs = newest_packs(reader, history, run, paid + state.left)?;
        packs.reverse();
        packs.retain(|pack| pack.seq_first < from);
        let window = if from > run.seq_first {
            fresh_tail::window(reader, history, run, packs, from - 1)?
        } else {
            Vec::new()
        };
        for unit in fresh_tail::units(&window).iter().rev() {
            let is_paid = apart.iter().any(|(known, _)| known.seq_first == unit.seq_first);
            let cost = if is_paid { 0 } else { unit.tokens };
            if cost > state.left || state.left == 0 {
                break;
            }
            state.left -= cost;
            tokens += unit.tokens;
            from = unit.seq_first;
        }
        state.open = false;
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

impl Choice {
    /// Whether the summary at this index is included.
    pub(super) fn has_summary(&self, index: usize) -> bool {
        self.why(index).is_some()
    }

    /// Why the summary at this index is included; `None`: it is not.
    pub(super) fn why(&self, index: usize) -> Option<&'static str> {
        let at = self.summaries.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.summaries.get(at).map(|(_, why)| *why)
    }

    /// Tokens of what was chosen beside what belongs in any case, as stored; `None`: nothing was.
    pub(super) fn fill_tokens(&self, context: &Assembly<'_>) -> Option<u64> {
        let items = context.items;
        let messages = self.ranges.iter().map(|range| range.seq_last + 1 - range.seq_first);
        let tail = (context.history.head.messages + 1).saturating_sub(self.tail.seq_first);
        let kept = tail + u64::from(self.tail.pin.is_some());
        let is_kept = |(index, _): &(usize, _)| context.is_focus(*index);
        if messages.sum::<u64>() <= kept && self.summaries.iter().all(is_kept) {
            return None;
        }
        let summaries = self.summaries.iter().filter_map(|(index, _)| items.get(*index));
        let tokens = summaries.map(Item::rendered_tokens).sum::<u64>()
            + self.ranges.iter().map(|range| range.tokens).sum::<u64>();
        Some(tokens.saturating_sub(context.kept_items()))
    }
}
