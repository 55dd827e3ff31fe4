//! Which items a context has: the fresh tail, the pin, then newest first while they fit.

use alloc::{string::String, vec::Vec};

use crate::{
    config::Policy,
    context::{Item, Run},
    error::Result,
    history::{self, History},
    limits,
    pack::PackRef,
    reader::Reader,
    tail::{self, Tail},
};

/// A part of the stored context that is wholly included or wholly left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Piece {
    /// Index of the item it belongs to.
    pub(super) index: usize,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    pub(super) tokens: u64,
    pub(super) included: bool,
    pub(super) why: &'static str,
}

impl Piece {
    /// Whether an item of this index, from this seq on, is its or in it.
    pub(super) fn holds(&self, (index, seq): (usize, u64)) -> bool {
        index == self.index && self.seq_first <= seq && seq <= self.seq_last
    }

    /// How many things it leaves out: one summary, or its messages. What was withdrawn is no part.
    pub(super) fn count(&self, items: &[Item]) -> u64 {
        match items.get(self.index) {
            Some(Item::Summary(_)) => 1,
            Some(Item::Withdrawn { .. }) => 0,
            _ => self.seq_last + 1 - self.seq_first,
        }
    }
}

/// What was chosen.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Indexes of summaries, ascending.
    summaries: Vec<usize>,
    /// Ranges of messages with their tokens, ascending and not adjacent within an item.
    pub(super) ranges: Vec<Range>,
    tail: Tail,
}

/// Messages of one run that are included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Range {
    index: usize,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    tokens: u64,
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
) -> Result<()> {
    let mut left = u64::from(policy.budget);
    let mut wanted: Vec<(String, u32)> = Vec::new();
    for item in items.iter().rev() {
        match item {
            Item::Summary(summary) => {
                wanted.push((history.keys.summary(summary.id), summary.bytes));
            }
            Item::Run(run) => {
                for pack in newest_packs(reader, history, run, left)? {
                    wanted.push((pack.key(history.keys), pack.bytes));
                }
            }
            Item::Withdrawn { .. } => {}
        }
        left = left.saturating_sub(item.rendered_tokens());
        if left == 0 {
            break;
        }
    }
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

/// Chooses by the chronological policy: stops at the first item that does not fit.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn choose(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    items: &[Item],
    tail: &Tail,
    policy: &Policy,
) -> Result<Choice> {
    let pinned = tail.pin.map_or(0, |pin| pin.tokens);
    let mut left = u64::from(policy.budget).saturating_sub(tail.tokens + pinned);
    let mut choice = Choice { summaries: Vec::new(), ranges: Vec::new(), tail: *tail };
    let mut open = true;
    for (index, item) in items.iter().enumerate().rev() {
        match item {
            Item::Summary(_) => {
                let tokens = item.rendered_tokens();
                open &= tokens <= left;
                if open {
                    left -= tokens;
                    choice.summaries.push(index);
                }
            }
            Item::Run(run) => {
                let taken = messages(reader, history, tail, run, index, &mut left, &mut open)?;
                choice.ranges.extend(taken);
            }
            Item::Withdrawn { .. } => {}
        }
    }
    choice.summaries.reverse();
    choice.ranges.reverse();
    Ok(choice)
}

/// The messages of a run that are included, newest range first.
fn messages(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    tail: &Tail,
    run: &Run,
    index: usize,
    left: &mut u64,
    open: &mut bool,
) -> Result<Vec<Range>> {
    let in_tail = if tail.seq_first <= run.seq_last { tail.tokens } else { 0 };
    let pin = tail.pin.filter(|pin| run.seq_first <= pin.seq && pin.seq <= run.seq_last);
    let pinned = pin.map_or(0, |pin| pin.tokens);
    let rest = run.tokens.saturating_sub(in_tail + pinned);
    let mut from = tail.seq_first.clamp(run.seq_first, run.seq_last + 1);
    if *open && rest <= *left {
        *left -= rest;
        let (seq_first, seq_last, tokens) = (run.seq_first, run.seq_last, run.tokens);
        return Ok(alloc::vec![Range { index, seq_first, seq_last, tokens }]);
    }
    let mut tokens = in_tail;
    if *open {
        // The run is cut: unit by unit from its newest evictable message on.
        let mut packs = newest_packs(reader, history, run, in_tail + pinned + *left)?;
        packs.reverse();
        packs.retain(|pack| pack.seq_first < from);
        let window = if from > run.seq_first {
            tail::window(reader, history, run, packs, from - 1)?
        } else {
            Vec::new()
        };
        for unit in tail::units(&window).iter().rev() {
            let is_pin = pin.is_some_and(|pin| pin.seq == unit.seq_first);
            let cost = if is_pin { 0 } else { unit.tokens };
            if cost > *left {
                break;
            }
            *left -= cost;
            tokens += unit.tokens;
            from = unit.seq_first;
        }
        *open = false;
    }
    let mut out = Vec::new();
    if from <= run.seq_last {
        out.push(Range { index, seq_first: from, seq_last: run.seq_last, tokens });
    }
    if let Some(pin) = pin.filter(|pin| pin.seq < from) {
        let (seq_first, seq_last, tokens) = (pin.seq, pin.seq, pin.tokens);
        out.push(Range { index, seq_first, seq_last, tokens });
    }
    Ok(out)
}

impl Choice {
    /// Whether the summary at this index is included.
    pub(super) fn has_summary(&self, index: usize) -> bool {
        self.summaries.binary_search(&index).is_ok()
    }

    /// Tokens of what was chosen, as stored; none when it is nothing but the tail and the pin.
    pub(super) fn fill_tokens(&self, items: &[Item]) -> Option<u64> {
        let summaries = self.summaries.iter().filter_map(|index| items.get(*index));
        let tokens = summaries.map(Item::rendered_tokens).sum::<u64>()
            + self.ranges.iter().map(|range| range.tokens).sum::<u64>();
        let kept = self.tail.tokens + self.tail.pin.map_or(0, |pin| pin.tokens);
        (tokens > kept).then_some(tokens)
    }

    /// The pieces of one run: where inclusion changes, it is cut.
    pub(super) fn cut(&self, index: usize, run: &Run, out: &mut Vec<Piece>) {
        let mut at = run.seq_first;
        let included: u64 =
            self.ranges.iter().filter(|range| range.index == index).map(|r| r.tokens).sum();
        // The tokens left out are split no further than the run's total allows to say.
        let mut excluded = run.tokens.saturating_sub(included);
        let mut skip = |seq_first: u64, seq_last: u64, out: &mut Vec<Piece>| {
            if seq_first <= seq_last {
                let tokens = core::mem::take(&mut excluded);
                let (included, why) = (false, "over-budget");
                out.push(Piece { index, seq_first, seq_last, tokens, included, why });
            }
        };
        for range in self.ranges.iter().filter(|range| range.index == index) {
            skip(at, range.seq_first - 1, out);
            let pinned = self.tail.pin.is_some_and(|pin| pin.seq == range.seq_first)
                && range.seq_first == range.seq_last;
            let why = match () {
                () if range.seq_first >= self.tail.seq_first => "fresh-tail",
                () if pinned => "pinned",
                () => "fill",
            };
            out.push(Piece {
                index,
                seq_first: range.seq_first,
                seq_last: range.seq_last,
                tokens: range.tokens,
                included: true,
                why,
            });
            at = range.seq_last + 1;
        }
        skip(at, run.seq_last, out);
    }
}
