//! Selects the sources to summarise next, in order of preference.
//!
//! In: the items of the context, the fresh tail, the policy. Out: chunks of raw messages and groups
//! of summaries. The planner makes tasks of them and skips those that are exhausted or leased.

use alloc::vec::Vec;

use crate::storage::{
    context::{ContextItem, MessageRun},
    fresh_tail::{FreshTail, MessageUnit, UnitGrouper},
    history::MessageHistory,
    message_span::MessageSpan,
    pack::{PackRef, PlacedMessage},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, limits},
    config::BudgetPolicy,
};

/// Maximum number of gaps between the units of one leaf, so that the record of the leaf stays
/// small. A gap is a range of withdrawn messages between two units.
const GAPS_MAX: u32 = 1_024;

/// The messages of one leaf.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LeafChunk {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) tokens: u64,
    /// Gaps between the units, at most [`GAPS_MAX`].
    gaps: u32,
}

/// The items of one condensed summary: `items[from..to]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SummaryGroup {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Depth of the condensed summary.
    pub(crate) depth: u32,
    /// Tokens of the items in the context.
    pub(crate) tokens: u64,
}

/// How eagerly summaries are merged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CondensationPhase {
    /// Neighbours of one depth below `sweep_depth_max`: at least `condense_leaves_min` leaves or
    /// `condense_summaries_min` condensed summaries, or fewer summaries that are large
    /// ([`SummaryGroup::is_full`]).
    Ordinary,
    /// Neighbours of any one depth, at least `condense_min_hard` summaries, or fewer summaries that
    /// are large.
    Pressure,
    /// Neighbours of different depths, because no depth has enough neighbours.
    Mixed,
}

/// Finds the raw messages before the fresh tail, without the pinned message and bridges
/// ([`is_bridge`]), oldest first. Condensation includes bridges in its sources. Withdrawn messages
/// between runs end no span.
pub(crate) fn find_raw_spans(items: &[ContextItem], tail: &FreshTail) -> Vec<MessageSpan> {
    let (mut out, mut runs) = (Vec::new(), Vec::new());
    let mut close = |runs: &mut Vec<(u64, u64)>| {
        let Some(span) = MessageSpan::from_ranges(&core::mem::take(runs)) else { return };
        let end = tail.seq_first.saturating_sub(1);
        let pin = tail.pinned.map_or(end, |pin| pin.seq.saturating_sub(1));
        out.extend(span.cut_span(0, pin.min(end)));
        out.extend(span.cut_span(pin.saturating_add(2), end));
    };
    for (index, item) in items.iter().enumerate() {
        match item {
            ContextItem::Run(run) if !is_bridge(items, index, tail) => {
                runs.push((run.seq_first, run.seq_last));
            }
            ContextItem::Summary(_) => close(&mut runs),
            ContextItem::Run(_) | ContextItem::Withdrawn { .. } => {}
        }
    }
    close(&mut runs);
    out
}

/// Returns whether the item is a run of a bridge. A bridge is one or more runs, with only withdrawn
/// messages between them. The runs together have fewer than [`limits::BRIDGE_TOKENS_MAX`] tokens,
/// and a summary is on each side. At the ends of the context, withdrawn messages take the place of
/// a summary.
///
/// Runs with the pinned message are no bridge, because the pinned message stays raw.
pub(crate) fn is_bridge(items: &[ContextItem], index: usize, tail: &FreshTail) -> bool {
    let is_pinned = |run: &MessageRun| {
        tail.pinned.is_some_and(|pin| run.seq_first <= pin.seq && pin.seq <= run.seq_last)
    };
    let mut tokens = 0;
    let mut is_closed = |side: &mut dyn Iterator<Item = &ContextItem>| {
        let mut is_closed = false;
        for item in side {
            is_closed = !matches!(item, ContextItem::Run(_));
            match item {
                ContextItem::Run(run) => tokens += run.tokens,
                ContextItem::Summary(_) => return true,
                ContextItem::Withdrawn { .. } => {}
            }
            let pinned = matches!(item, ContextItem::Run(run) if is_pinned(run));
            if pinned || tokens >= limits::BRIDGE_TOKENS_MAX {
                return false;
            }
        }
        is_closed
    };
    let Some((before, after)) = items.split_at_checked(index) else { return false };
    matches!(after.first(), Some(ContextItem::Run(_)))
        && is_closed(&mut after.iter())
        && is_closed(&mut before.iter().rev())
}

/// Joins consecutive units into chunks.
#[derive(Debug)]
pub(crate) struct LeafChunker {
    tokens_max: u64,
    open: Option<LeafChunk>,
}

impl LeafChunker {
    /// Creates a chunker for chunks of `tokens_max` tokens; units are not split.
    pub(crate) fn new(tokens_max: u32) -> Self {
        Self { tokens_max: u64::from(tokens_max), open: None }
    }

    /// Adds a unit and returns the chunks that the unit closed, at most two.
    ///
    /// A chunk ends before the unit with which it would exceed the chunk size, or once it has the
    /// size, or at [`GAPS_MAX`] gaps. A chunk that is too small for a completion also takes a unit
    /// that exceeds the size.
    pub(crate) fn push(&mut self, unit: &MessageUnit) -> [Option<LeafChunk>; 2] {
        let mut closed = [None, None];
        if let Some(chunk) = self.open
            && (chunk.gaps >= GAPS_MAX || chunk.tokens + unit.tokens > self.tokens_max)
            && chunk.tokens >= limits::BRIDGE_TOKENS_MAX
        {
            closed = [self.open.take(), None];
        }
        let chunk = self.open.get_or_insert(LeafChunk {
            seq_first: unit.seq_first,
            seq_last: unit.seq_first,
            tokens: 0,
            gaps: 0,
        });
        chunk.gaps += u32::from(chunk.seq_last + 1 < unit.seq_first);
        chunk.seq_last = unit.seq_last;
        chunk.tokens += unit.tokens;
        if chunk.tokens >= self.tokens_max {
            let [first, _] = closed;
            closed = [first, self.open.take()];
        }
        closed
    }

    /// Returns the chunk that is still open; `None`: no chunk is open.
    pub(crate) fn finish(self) -> Option<LeafChunk> {
        self.open
    }
}

/// Maximum bytes of packs that one read fetches, unless the first pack alone is larger.
const READ_AHEAD_BYTES: u32 = 768 << 10;

/// Reads the first chunks of a span, at most `count`. Also returns the messages of the span that
/// were read, which contain the messages of the chunks.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn read_chunks(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    span: &MessageSpan,
    policy: &BudgetPolicy,
    count: usize,
) -> Result<(Vec<LeafChunk>, Vec<PlacedMessage>)> {
    let mut chunker = LeafChunker::new(policy.leaf_chunk_tokens_max);
    let mut units = UnitGrouper::default();
    let mut out: Vec<LeafChunk> = Vec::new();
    let mut read: Vec<PlacedMessage> = Vec::new();
    for (mut from, last) in span.list_read_ranges() {
        while from <= last && out.len() < count {
            // Looks for the packs of at most 1,024 messages, and reads those that the chunks need.
            let to = last.min(from + limits::DIRECTORY_SPAN - 1);
            let refs = history.find_pack_refs(session, from, to)?;
            let refs = select_read_ahead(&refs, policy, count - out.len());
            let to = refs.last().map_or(to, PackRef::seq_last).min(to);
            let mut messages = history.read_messages_of_packs(session, refs, from, to)?;
            messages.retain(|placed| span.has_message(placed.seq));
            for placed in &messages {
                if let Some(unit) = units.push(placed) {
                    out.extend(chunker.push(&unit).into_iter().flatten());
                }
            }
            read.extend(messages);
            from = to + 1;
        }
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

/// Selects the first packs that `chunks` chunks may need, within the limit of one read.
pub(crate) fn select_read_ahead<'r>(
    refs: &'r [PackRef],
    policy: &BudgetPolicy,
    chunks: usize,
) -> &'r [PackRef] {
    let tokens = u64::from(policy.leaf_chunk_tokens_max).saturating_mul(int::to_u64(chunks));
    let (mut bytes, mut sum, mut count) = (0u32, 0u64, 0usize);
    for pack in refs {
        // A message over the chunk size fills a chunk, so each chunk may need a pack.
        let is_enough = sum > tokens && count > chunks;
        if count > 0 && (is_enough || bytes.saturating_add(pack.bytes) > READ_AHEAD_BYTES) {
            break;
        }
        bytes = bytes.saturating_add(pack.bytes);
        sum += pack.tokens;
        count += 1;
    }
    refs.get(..count).unwrap_or(refs)
}

/// Finds groups of neighbouring summaries to condense before the fresh tail. Groups of lesser depth
/// come first, then older groups; in phase `Mixed`, older groups come first, whatever their depth.
/// In the other phases, a group must have enough summaries and tokens, or be full in a range of
/// enough items.
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
    // Goes through the depths that occur, shallowest first.
    let next_depth = |last: Option<u32>| {
        let is_deeper = |depth: &u32| last.is_none_or(|last| *depth > last);
        items.iter().filter_map(ContextItem::depth).filter(is_deeper).min()
    };
    let mut next = next_depth(None);
    while let Some(depth) = next {
        next = next_depth(Some(depth));
        let is_allowed = policy.sweep_depth_max.is_none_or(|max| depth < max);
        if phase == CondensationPhase::Ordinary && !is_allowed {
            continue;
        }
        let fanout = match depth {
            _ if phase == CondensationPhase::Pressure => policy.condense_min_hard,
            0 => policy.condense_leaves_min,
            _ => policy.condense_summaries_min,
        };
        let has_depth = |item: &ContextItem| item.depth() == Some(depth);
        let tokens_min =
            u64::from(policy.condensed_tokens_target.max(policy.leaf_chunk_tokens_max / 10));
        for (from, to) in find_runs(items, tail, has_depth) {
            out.extend(cut_groups(items, from, to, policy).into_iter().filter(|group| {
                group.count_summaries(items) >= fanout && group.tokens >= tokens_min
                    || int::to_u32(to - from) >= fanout && group.is_full(policy)
            }));
        }
    }
    out
}

/// Returns the maximum tokens of the sources of one condensation. Two sources may have more.
fn condensation_tokens_max(policy: &BudgetPolicy) -> u32 {
    let ordinary = policy.condense_leaves_min.saturating_mul(policy.leaf_tokens_target);
    policy.leaf_chunk_tokens_max.max(policy.threshold.min(ordinary))
}

/// Finds maximal ranges `[from, to)` of items that `fits` accepts. Bridges and withdrawn ranges
/// between such items are part of the range.
///
/// Withdrawn ranges do not separate the summaries around them. Otherwise these summaries would
/// never be merged, and a conversation of many sessions would outgrow every budget.
fn find_runs(
    items: &[ContextItem],
    tail: &FreshTail,
    fits: impl Fn(&ContextItem) -> bool,
) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut from = None;
    // Index after the last item that fits, so that a range does not end with a bridge.
    let mut end = 0;
    for (index, item) in items.iter().enumerate() {
        let is_passed =
            matches!(item, ContextItem::Withdrawn { .. }) || is_bridge(items, index, tail);
        if fits(item) {
            from.get_or_insert(index);
            end = index + 1;
        } else if !is_passed && let Some(from) = from.take() {
            out.push((from, end));
        }
    }
    out.extend(from.map(|from| (from, end)));
    out
}

/// Cuts a range into groups of at least two summaries. A group ends before
/// [`condensation_tokens_max`] and [`limits::SOURCES_MAX`] are exceeded, but two summaries always
/// fit.
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
        // Bridges and withdrawn ranges between two groups are in neither group.
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
        int::to_u32(items.iter().filter_map(ContextItem::depth).count())
    }

    /// Returns whether the group has over half of the tokens of [`condensation_tokens_max`]. Such a
    /// group is condensed even if it has fewer summaries than the fan-out.
    fn is_full(&self, policy: &BudgetPolicy) -> bool {
        self.tokens.saturating_mul(2) > u64::from(condensation_tokens_max(policy))
    }

    /// Returns whether two groups share an item.
    pub(crate) fn overlaps_with(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}
