//! Which sources are worth summarising next, in order of preference.
//!
//! In: the items of the context, the fresh tail, the policy. Out: candidates, disjoint and each
//! admissible alone. Which of them were tried in vain is not known here.

use crate::storage::pack::PlacedMessage;
use alloc::vec::Vec;

use crate::storage::{
    context::{ContextItem, MessageRun},
    fresh_tail::{FreshTail, MessageUnit, UnitGrouper},
    history::MessageHistory,
    pack::PackRef,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, limits},
    config::BudgetPolicy,
};

/// Messages of one leaf.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LeafChunk {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) tokens: u64,
}

/// Items of one condensed summary: `items[from..to]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SummaryGroup {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Depth of the summary to be made.
    pub(crate) depth: u32,
    pub(crate) tokens: u64,
}

/// How eagerly summaries are merged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CondensationPhase {
    /// By the ordinary fan-outs, down to the ordinary depth.
    Ordinary,
    /// By the least fan-out, at any depth.
    Pressure,
    /// Neighbours of any depths, because no depth has a run.
    Mixed,
}

/// A stretch of raw messages that may be compacted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RawRange {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
}

/// The raw messages outside tail and pin, oldest first.
///
/// A run too small to be worth a completion, between two summaries, is left to the condensation.
pub(crate) fn find_raw_ranges(items: &[ContextItem], tail: &FreshTail) -> Vec<RawRange> {
    let mut out = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let ContextItem::Run(run) = item else { continue };
        if is_bridge(items, index, tail) {
            continue;
        }
        let end = run.seq_last.min(tail.seq_first.saturating_sub(1));
        let mut push = |seq_first: u64, seq_last: u64| {
            if seq_first <= seq_last {
                out.push(RawRange { seq_first, seq_last });
            }
        };
        match tail.pinned {
            Some(pin) if run.seq_first <= pin.seq && pin.seq <= end => {
                push(run.seq_first, pin.seq - 1);
                push(pin.seq + 1, end);
            }
            _ => push(run.seq_first, end),
        }
    }
    out
}

/// Whether the item is a tiny run between two summaries, of which either may be withdrawn.
///
/// One that holds the pin is none: the newest user message stays raw.
pub(crate) fn is_bridge(items: &[ContextItem], index: usize, tail: &FreshTail) -> bool {
    let summary = |index: Option<usize>| {
        let neighbour = index.and_then(|at| items.get(at));
        neighbour.is_some_and(|item| !matches!(item, ContextItem::Run(_)))
    };
    let pinned = |run: &MessageRun| {
        tail.pinned.is_some_and(|pin| run.seq_first <= pin.seq && pin.seq <= run.seq_last)
    };
    let tiny = |run: &MessageRun| run.tokens < limits::BRIDGE_TOKENS_MAX && !pinned(run);
    matches!(items.get(index), Some(ContextItem::Run(run)) if tiny(run))
        && summary(index.checked_sub(1))
        && summary(index.checked_add(1))
}

/// Cuts units into chunks.
#[derive(Debug)]
pub(crate) struct LeafChunker {
    tokens_max: u64,
    open: Option<LeafChunk>,
}

impl LeafChunker {
    /// A chunker for chunks of this size.
    pub(crate) fn new(tokens_max: u32) -> Self {
        Self { tokens_max: u64::from(tokens_max), open: None }
    }

    /// Adds a unit; returns the chunks that it closed, at most two.
    ///
    /// A chunk ends before the unit that would take it over its size, or once it has reached it. A
    /// unit that is larger alone is a chunk of its own, and what is too small to be worth a
    /// completion goes with it.
    pub(crate) fn push(&mut self, unit: &MessageUnit) -> [Option<LeafChunk>; 2] {
        let mut closed = [None, None];
        if let Some(chunk) = self.open
            && chunk.tokens + unit.tokens > self.tokens_max
            && chunk.tokens >= limits::BRIDGE_TOKENS_MAX
        {
            closed = [self.open.take(), None];
        }
        let chunk = self.open.get_or_insert(LeafChunk {
            seq_first: unit.seq_first,
            seq_last: unit.seq_last,
            tokens: 0,
        });
        chunk.seq_last = unit.seq_last;
        chunk.tokens += unit.tokens;
        if chunk.tokens >= self.tokens_max {
            let [first, _] = closed;
            closed = [first, self.open.take()];
        }
        closed
    }

    /// The chunk that is still open.
    pub(crate) fn finish(self) -> Option<LeafChunk> {
        self.open
    }
}

/// Bytes of packs that are read ahead at a time.
const READ_AHEAD_BYTES: u32 = 768 << 10;

/// The first `count` chunks of a stretch, and the messages from its beginning on that were read
/// to find them, at least those of the chunks.
///
/// # Errors
///
/// As [`StoreSession::read_immutable`].
pub(crate) fn read_chunks(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    stretch: &RawRange,
    policy: &BudgetPolicy,
    count: usize,
) -> Result<(Vec<LeafChunk>, Vec<PlacedMessage>)> {
    let mut chunker = LeafChunker::new(policy.leaf_chunk_tokens_max);
    let mut units = UnitGrouper::default();
    let mut out: Vec<LeafChunk> = Vec::new();
    let mut read: Vec<PlacedMessage> = Vec::new();
    let mut from = stretch.seq_first;
    while from <= stretch.seq_last && out.len() < count {
        // No more than one directory node's worth at a time, and of that what the chunks need.
        let to = stretch.seq_last.min(from + limits::DIRECTORY_SPAN - 1);
        let refs = history.find_pack_refs(reader, from, to)?;
        let refs = select_read_ahead(&refs, policy, count - out.len());
        let to = refs.last().map_or(to, PackRef::seq_last).min(to);
        let messages: Vec<PlacedMessage> =
            history.read_messages_of_packs(reader, refs, from, to)?;
        for placed in &messages {
            if let Some(unit) = units.push(placed) {
                out.extend(chunker.push(&unit).into_iter().flatten());
            }
        }
        read.extend(messages);
        from = to + 1;
    }
    if out.len() < count {
        if let Some(unit) = units.finish() {
            out.extend(chunker.push(&unit).into_iter().flatten());
        }
        out.extend(chunker.finish());
    }
    out.truncate(count);
    Ok((out, read))
}

/// The packs at the beginning that `chunks` chunks may need, within what one read may move.
pub(crate) fn select_read_ahead<'r>(
    refs: &'r [PackRef],
    policy: &BudgetPolicy,
    chunks: usize,
) -> &'r [PackRef] {
    let tokens =
        u64::from(policy.leaf_chunk_tokens_max).saturating_mul(lcm_text::base::int::to_u64(chunks));
    let (mut bytes, mut sum, mut count) = (0u32, 0u64, 0usize);
    for pack in refs {
        // A message over the chunk size is a chunk of its own, so a pack may be needed for each.
        let enough = sum > tokens && count > chunks;
        if count > 0 && (enough || bytes.saturating_add(pack.bytes) > READ_AHEAD_BYTES) {
            break;
        }
        bytes = bytes.saturating_add(pack.bytes);
        sum += pack.tokens;
        count += 1;
    }
    refs.get(..count).unwrap_or(refs)
}

/// Groups of summaries to condense, best first. They may overlap; the caller takes disjoint ones.
pub(crate) fn find_groups(
    items: &[ContextItem],
    tail: &FreshTail,
    policy: &BudgetPolicy,
    phase: CondensationPhase,
) -> Vec<SummaryGroup> {
    let end = items.iter().take_while(|item| item.seq_last() < tail.seq_first).count();
    let items = items.get(..end).unwrap_or(items);
    let mut out = Vec::new();
    if phase == CondensationPhase::Mixed {
        for (from, to) in find_runs(items, tail, |item| item.depth().is_some()) {
            out.extend(cut_groups(items, from, to, policy));
        }
        return out;
    }
    // The depths that occur, shallowest first.
    let above = |last: Option<u32>| {
        let deeper = |depth: &u32| last.is_none_or(|last| *depth > last);
        items.iter().filter_map(ContextItem::depth).filter(deeper).min()
    };
    let mut next = above(None);
    while let Some(depth) = next {
        next = above(Some(depth));
        let allowed = policy.sweep_depth_max.is_none_or(|max| depth < max);
        if phase == CondensationPhase::Ordinary && !allowed {
            continue;
        }
        let fanout = match (phase, depth) {
            (CondensationPhase::Pressure | CondensationPhase::Mixed, _) => policy.condense_min_hard,
            (CondensationPhase::Ordinary, 0) => policy.condense_leaves_min,
            (CondensationPhase::Ordinary, _) => policy.condense_summaries_min,
        };
        let like = |item: &ContextItem| item.depth() == Some(depth);
        let tokens_min =
            u64::from(policy.condensed_tokens_target.max(policy.leaf_chunk_tokens_max / 10));
        for (from, to) in find_runs(items, tail, like) {
            out.extend(cut_groups(items, from, to, policy).into_iter().filter(|group| {
                group.count_summaries(items) >= fanout && group.tokens >= tokens_min
                    || lcm_text::base::int::to_u32(to - from) >= fanout && group.is_full(policy)
            }));
        }
    }
    out
}

/// Returns the most source tokens of one condensation.
fn condensation_tokens_max(policy: &BudgetPolicy) -> u32 {
    let ordinary = policy.condense_leaves_min.saturating_mul(policy.leaf_tokens_target);
    policy.leaf_chunk_tokens_max.max(policy.threshold.min(ordinary))
}

/// Maximal ranges of neighbours that fit, with tiny runs and what was withdrawn between them.
///
/// What a session left behind does not part the summaries before and after it: they would never be
/// merged, and a conversation of many sessions would not fit any more.
fn find_runs(
    items: &[ContextItem],
    tail: &FreshTail,
    fits: impl Fn(&ContextItem) -> bool,
) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut from = None;
    // Behind the last item that fits: what may be passed over counts once another one follows.
    let mut end = 0;
    for (index, item) in items.iter().enumerate() {
        let passed = matches!(item, ContextItem::Withdrawn { .. }) || is_bridge(items, index, tail);
        if fits(item) {
            from.get_or_insert(index);
            end = index + 1;
        } else if !passed && let Some(from) = from.take() {
            out.push((from, end));
        }
    }
    out.extend(from.map(|from| (from, end)));
    out
}

/// Cuts a range into groups that each fit one completion and have at least two summaries.
fn cut_groups(
    items: &[ContextItem],
    from: usize,
    to: usize,
    policy: &BudgetPolicy,
) -> Vec<SummaryGroup> {
    let mut out = Vec::new();
    let mut start = from;
    while start < to {
        let Some(group) = find_first_group(items, start, to, policy) else { break };
        start = group.to;
        // A tiny run between two groups stays where it is.
        while items.get(start).is_some_and(|item| item.depth().is_none()) {
            start += 1;
        }
        out.push(group);
    }
    out
}

fn find_first_group(
    items: &[ContextItem],
    from: usize,
    to: usize,
    policy: &BudgetPolicy,
) -> Option<SummaryGroup> {
    let tokens_max = u64::from(condensation_tokens_max(policy));
    let mut group = SummaryGroup { from, to: from, depth: 0, tokens: 0 };
    let mut pending = 0u64;
    let mut summaries = 0usize;
    for (index, item) in items.iter().enumerate().take(to).skip(from) {
        let tokens = item.tokens();
        let Some(depth) = item.depth() else {
            pending += tokens;
            continue;
        };
        let over = group.tokens + pending + tokens > tokens_max;
        if (summaries >= 2 && over) || index - from >= limits::SOURCES_MAX {
            break;
        }
        summaries += 1;
        group.tokens += pending + tokens;
        pending = 0;
        group.to = index + 1;
        group.depth = group.depth.max(depth + 1);
    }
    (summaries >= 2).then_some(group)
}

impl SummaryGroup {
    fn count_summaries(&self, items: &[ContextItem]) -> u32 {
        let items = items.get(self.from..self.to).unwrap_or(&[]);
        lcm_text::base::int::to_u32(items.iter().filter_map(ContextItem::depth).count())
    }

    /// Whether the group stopped growing because of its size and not for want of neighbours.
    fn is_full(&self, policy: &BudgetPolicy) -> bool {
        self.tokens.saturating_mul(2) > u64::from(condensation_tokens_max(policy))
    }

    /// Whether two groups share an item.
    pub(crate) fn overlaps_with(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}
