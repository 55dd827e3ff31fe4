//! The planner: chooses the sources of the next tasks and their token targets.
//!
//! In: the context, the fresh tail, the policy and the goal. Out: tasks with the inputs of their
//! requests. `plan` and `run` use the tasks; `evaluate` and `advise` use only the counts of tokens.

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    clock::{self, ClockReading},
    context::ContextItem,
    fresh_tail::{self, FreshTail},
    head::ConversationHead,
    history::{self, MessageHistory},
    message_span::MessageSpan,
    pack::PlacedMessage,
    record_key::RecordKey,
    records::attempts::TaskAttempts,
    store_session::StoreSession,
    summary::Summary,
};
use lcm_text::{
    base::{error::Result, int, limits},
    config::BudgetPolicy,
    summary::transcript::TranscriptOptions,
    types::{api::PlanStatus, model::Level},
};

use super::{
    extra::PlanScope,
    goal::CompactionGoal,
    plan::PlanDecision,
    reason,
    remake::{self, RemakeCandidate, RemakeFinder},
    select::{self, CondensationPhase, LeafChunk, SummaryGroup},
    source_text::{self, GatheredSources},
    sweep::SweepToken,
    task::{self, SourceSpan, SummaryTask},
};

/// Maximum number of spare candidates beyond the number of tasks that are still wanted: of chunks
/// in one read, and of remakes in one search.
const SPARE_CANDIDATES_MAX: usize = 32;

/// Age in milliseconds below which a provisional summary is not made again, because its compaction
/// has just asked the model. A call that asks only for remakes ignores the age.
pub(crate) const REMAKE_AGE_MS_MIN: u64 = 60_000;

/// A task with the inputs of its request.
pub(crate) struct PlannedTask {
    pub(crate) task: SummaryTask,
    pub(crate) gathered: GatheredSources,
    /// The stored attempts, or the default if none are stored.
    pub(crate) attempts: TaskAttempts,
    /// Index, in the context, of the first item that contains sources.
    pub(crate) index: usize,
}

/// The raw tokens that mode `incremental` compares with the size of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EligibleRaw {
    /// Raw tokens outside the fresh tail and the pinned message.
    pub(crate) tokens: u64,
    /// A leaf is due if `tokens` is at least this number, the size of a chunk.
    pub(crate) chunk_tokens: u64,
}

impl EligibleRaw {
    /// Returns whether a leaf is due in mode `incremental`.
    pub(crate) fn is_due(self) -> bool {
        self.tokens >= self.chunk_tokens
    }
}

/// The limits of a search for tasks, and what the search skipped.
pub(super) struct TaskSearch {
    /// Maximum number of tasks to find.
    pub(super) count: usize,
    /// Clock of the conversation, which decides whether a lease has ended.
    clock: ClockReading,
    /// Whether the search skipped sources that are exhausted, see [`TaskAttempts::is_exhausted`].
    has_exhausted: bool,
    /// Whether the search skipped sources with a lease that has not ended.
    has_leased: bool,
    /// Whether the search skipped a provisional summary, because it is exhausted or leased, or
    /// because the sweep has no remakes left.
    has_skipped_remake: bool,
    /// Number of remakes that the sweep may still make.
    pub(super) remakes_left: usize,
    pub(super) scope: PlanScope,
}

impl TaskSearch {
    /// Creates a search for at most `count` tasks, of them at most `remakes_left` remakes.
    pub(super) fn new(
        count: usize,
        remakes_left: usize,
        scope: PlanScope,
        clock: ClockReading,
    ) -> Self {
        let (has_exhausted, has_leased, has_skipped_remake) = (false, false, false);
        Self { count, clock, has_exhausted, has_leased, has_skipped_remake, remakes_left, scope }
    }

    /// Returns whether sources with these attempts are skipped: they are exhausted or leased.
    fn skips_attempts(&mut self, attempts: &TaskAttempts) -> bool {
        let is_leased = self.clock.is_ahead(attempts.lease_until);
        self.has_exhausted |= attempts.is_exhausted;
        self.has_leased |= is_leased;
        attempts.is_exhausted || is_leased
    }
}

/// The inputs of a planner.
#[derive(Clone, Copy)]
pub(super) struct PlannerInput<'a> {
    pub(super) call: Call<'a>,
    pub(super) head: &'a ConversationHead,
    pub(super) policy: BudgetPolicy,
    pub(super) goal: CompactionGoal,
}

/// The context and the fresh tail of a conversation, as one call reads them.
pub(super) struct Planner<'a> {
    input: PlannerInput<'a>,
    items: Vec<ContextItem>,
    tail: FreshTail,
}

impl<'a> Planner<'a> {
    /// Reads the context and the fresh tail, and the first `chunks` chunks into the cache.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(super) fn open(
        session: &mut StoreSession<'_>,
        input: PlannerInput<'a>,
        chunks: usize,
    ) -> Result<Self> {
        let PlannerInput { call, head, policy, .. } = input;
        let history = MessageHistory::new(call, head);
        // Second read: context nodes, and the directory around the oldest raw run and the tail.
        let oldest = head.context.inline_items().iter().find_map(|item| match item {
            ContextItem::Run(run) => Some(run.seq_first),
            ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => None,
        });
        let recent_first = history.recent_seq_first();
        let mut nodes = Vec::new();
        for seq in [oldest.unwrap_or(head.messages), head.messages] {
            let node = history::directory_node(seq);
            for node in [node.saturating_sub(1), node, node + 1] {
                if node * limits::DIRECTORY_SPAN + 1 < recent_first && !nodes.contains(&node) {
                    nodes.push(node);
                }
            }
        }
        history.prefetch_nodes(session, &nodes)?;
        let items = head.context.load_items(session, call.keys)?;
        // Third read: the packs of the tail together with the packs of the first chunks.
        if let Some(run) = fresh_tail::last_raw_runs(&items).next() {
            let mut packs = fresh_tail::find_tail_packs(session, &history, &run, &policy)?;
            if let Some(ContextItem::Run(run)) =
                items.iter().find(|item| matches!(item, ContextItem::Run(_)))
            {
                let to = run.seq_last.min(run.seq_first + limits::DIRECTORY_SPAN - 1);
                let refs = history.find_pack_refs(session, run.seq_first, to)?;
                let tail_first = packs.first().map_or(u64::MAX, |pack| pack.seq_first);
                let ahead = select::select_read_ahead(&refs, &policy, chunks).iter();
                packs.extend(ahead.filter(|pack| pack.seq_first < tail_first));
            }
            history.prefetch_packs(session, &packs)?;
        }
        let tail = fresh_tail::compute_fresh_tail(session, &history, &items, &policy)?;
        Ok(Self { input, items, tail })
    }

    /// Returns the items of the context.
    pub(super) fn into_items(self) -> Vec<ContextItem> {
        self.items
    }

    fn message_history(&self) -> MessageHistory<'a> {
        MessageHistory::new(self.input.call, self.input.head)
    }

    fn transcript_options(&self) -> TranscriptOptions<'a> {
        let config = self.input.call.config;
        let (injected_tags, offsets) = (&config.strip_injected_context_tags, &config.time_offsets);
        let part_tokens_max = self.input.policy.leaf_chunk_tokens_max;
        TranscriptOptions { part_tokens_max, injected_tags, offsets }
    }

    /// Returns the tokens of the fresh tail and the pinned message.
    pub(super) fn protected_tokens(&self) -> u64 {
        self.tail.tokens + self.tail.pinned.map_or(0, |pinned| pinned.tokens)
    }

    /// Measures the raw text outside the fresh tail and the pinned message.
    pub(super) fn eligible_raw(&self) -> EligibleRaw {
        let raw =
            |item: &ContextItem| if let ContextItem::Run(run) = item { run.tokens } else { 0 };
        let tokens: u64 = self.items.iter().map(raw).sum();
        let chunk_tokens = u64::from(self.input.policy.leaf_chunk_tokens_max);
        EligibleRaw { tokens: tokens.saturating_sub(self.protected_tokens()), chunk_tokens }
    }

    /// Returns the tokens of the summaries outside the fresh tail.
    pub(super) fn summary_tokens(&self) -> u64 {
        let is_outside = |item: &&ContextItem| item.seq_last() < self.tail.seq_first;
        let is_summary = |item: &&ContextItem| matches!(item, ContextItem::Summary(_));
        self.items.iter().filter(is_outside).filter(is_summary).map(ContextItem::tokens).sum()
    }

    /// Plans the next tasks: leaves; if there is none, remakes; if there is none, condensations. No
    /// leaves are planned once a named target is reached, or if the context has too many items.
    /// Under pressure of tokens or items, condensations come before remakes.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(super) fn plan_tasks(
        &self,
        session: &mut StoreSession<'_>,
        search: &mut TaskSearch,
    ) -> Result<Vec<PlannedTask>> {
        let PlannerInput { head, policy, goal, .. } = &self.input;
        let is_over = goal.is_over(head.context.tokens);
        // A context near its limit of items has no room for leaves before summaries are merged.
        let is_crowded = head.context.count_items() >= limits::CONTEXT_ITEMS_MERGE_MIN;
        if (!goal.is_explicit || is_over) && !is_crowded {
            let leaves = self.plan_leaves(session, search.count, search)?;
            if !leaves.is_empty() {
                return Ok(leaves);
            }
        }
        let prefix = u64::from(policy.summary_prefix_tokens_target);
        // Rendered summaries must fit the budget, too.
        let is_squeezed = head.context.rendered_tokens > u64::from(policy.budget);
        let is_pressing = is_over || is_crowded || (is_squeezed && !goal.is_explicit);
        // A condensation of a provisional summary would have to be made again, too.
        if !is_pressing {
            let remakes = self.plan_remakes(session, search)?;
            if !remakes.is_empty() {
                return Ok(remakes);
            }
        }
        for phase in
            [CondensationPhase::Ordinary, CondensationPhase::Pressure, CondensationPhase::Mixed]
        {
            let is_due = match phase {
                CondensationPhase::Ordinary => is_pressing || self.summary_tokens() > prefix,
                CondensationPhase::Pressure | CondensationPhase::Mixed => is_pressing,
            };
            if !is_due {
                continue;
            }
            let groups = self.plan_condensations(session, phase, search)?;
            if !groups.is_empty() {
                return Ok(groups);
            }
        }
        if is_pressing {
            return self.plan_remakes(session, search);
        }
        Ok(Vec::new())
    }

    /// Plans the next tasks of mode `incremental`: one leaf before the first pass, else remakes,
    /// else ordinary condensations while the summaries exceed their target. `passes`: passes
    /// planned so far.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(super) fn plan_increment(
        &self,
        session: &mut StoreSession<'_>,
        passes: u32,
        search: &mut TaskSearch,
    ) -> Result<Vec<PlannedTask>> {
        if passes == 0 {
            let leaves = self.plan_leaves(session, 1, search)?;
            if !leaves.is_empty() {
                return Ok(leaves);
            }
        }
        let remakes = self.plan_remakes(session, search)?;
        let prefix = u64::from(self.input.policy.summary_prefix_tokens_target);
        if !remakes.is_empty() || self.summary_tokens() <= prefix {
            return Ok(remakes);
        }
        self.plan_condensations(session, CondensationPhase::Ordinary, search)
    }

    /// Plans remakes of provisional summaries, leaf upward, oldest first.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(super) fn plan_remakes(
        &self,
        session: &mut StoreSession<'_>,
        search: &mut TaskSearch,
    ) -> Result<Vec<PlannedTask>> {
        let PlannerInput { call, head, .. } = self.input;
        let mut out = Vec::new();
        if head.context.provisional == 0 {
            return Ok(out);
        }
        let count = search.count.min(search.remakes_left);
        let limit = search.count + SPARE_CANDIDATES_MAX;
        let scope = search.scope.clone();
        let mut finder = RemakeFinder::read(session, call, head, &scope, limit)?;
        finder.find_candidates(session, &self.items)?;
        let (history, options) = (self.message_history(), self.transcript_options());
        for RemakeCandidate { id, index, record } in finder.candidates {
            if out.len() == count {
                // The next plan takes the rest, unless the sweep has no remakes left.
                search.has_skipped_remake |= count == 0;
                break;
            }
            let record = match record {
                Some(record) => record,
                None => match session.read_record(&Summary::key(call.keys, id))? {
                    Some(record) => record,
                    None => continue,
                },
            };
            let from = record.created_at;
            let until = from.saturating_add(REMAKE_AGE_MS_MIN);
            let is_new = clock::is_within_pause(call.now, from, until);
            if is_new && scope == PlanScope::All {
                continue;
            }
            let read = (&record, &finder.remakes);
            let (gathered, _) =
                remake::gather_newest_sources(session, &history, call, read, options)?;
            let attempts = self.read_attempts(session, &[gathered.task_hash])?;
            let attempts = attempts.into_iter().next().unwrap_or_default();
            if search.skips_attempts(&attempts) {
                search.has_skipped_remake = true;
                continue;
            }
            let (span, hash) = (SourceSpan::Remake { id }, gathered.task_hash);
            let task = self.build_task(span, hash, &gathered, &attempts);
            out.push(PlannedTask { task, gathered, attempts, index });
        }
        Ok(out)
    }

    fn plan_leaves(
        &self,
        session: &mut StoreSession<'_>,
        count: usize,
        search: &mut TaskSearch,
    ) -> Result<Vec<PlannedTask>> {
        let PlannerInput { head, policy, goal, .. } = &self.input;
        let history = self.message_history();
        let mut out = Vec::new();
        let mut projected = head.context.tokens;
        // Each skipped chunk enlarges the next read by a chunk, so many skipped chunks in a row
        // cost few reads.
        let mut spare = 0usize;
        for span in select::find_raw_spans(&self.items, &self.tail) {
            let mut from = span.seq_first;
            while let Some(rest) = span.cut_span(from, span.seq_last).filter(|_| out.len() < count)
            {
                let wanted = count - out.len() + spare.min(SPARE_CANDIDATES_MAX);
                let (chunks, messages) =
                    select::read_chunks(session, &history, &rest, policy, wanted)?;
                let Some(last) = chunks.last() else { break };
                from = last.seq_last + 1;
                let candidates = self.read_chunk_attempts(session, &history, (&rest, &chunks))?;
                let read = history::slice_by_seq(&messages, rest.seq_first, last.seq_last);
                history.prefetch_texts(session, read)?;
                for ChunkCandidate { chunk, hash, attempts } in candidates {
                    let is_enough = goal.is_explicit && !goal.is_over(projected);
                    if out.len() == count || is_enough {
                        return Ok(out);
                    }
                    spare += 1;
                    if search.skips_attempts(&attempts) {
                        continue;
                    }
                    let of_chunk = history::slice_by_seq(read, chunk.seq_first, chunk.seq_last);
                    let Some(planned) = self.plan_chunk(session, of_chunk, hash, attempts)? else {
                        continue;
                    };
                    spare -= 1;
                    let target = u64::from(planned.task.tokens_target);
                    projected = projected.saturating_sub(chunk.tokens) + target.min(chunk.tokens);
                    out.push(planned);
                }
            }
        }
        Ok(out)
    }

    /// Returns each chunk of a span with its hash and its attempts, which are read in one read.
    fn read_chunk_attempts(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        (span, chunks): (&MessageSpan, &[LeafChunk]),
    ) -> Result<Vec<ChunkCandidate>> {
        let mut hashes = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let frontier = history.frontier_at(session, chunk.seq_last)?;
            let span = span.cut_span(chunk.seq_first, chunk.seq_last).unwrap_or_default();
            hashes.push(task::hash_messages(&span, &frontier));
        }
        let attempts = self.read_attempts(session, &hashes)?;
        let rows = chunks.iter().copied().zip(hashes).zip(attempts);
        Ok(rows.map(|((chunk, hash), attempts)| ChunkCandidate { chunk, hash, attempts }).collect())
    }

    fn read_attempts(
        &self,
        session: &mut StoreSession<'_>,
        hashes: &[[u8; 16]],
    ) -> Result<Vec<TaskAttempts>> {
        let keys = self.input.call.keys;
        let keys: Vec<RecordKey<TaskAttempts>> =
            hashes.iter().map(|hash| TaskAttempts::key(keys, hash)).collect();
        Ok(session.read_records(&keys)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Plans the task of a chunk; `None`: the chunk has no text for a model.
    fn plan_chunk(
        &self,
        session: &mut StoreSession<'_>,
        messages: &[PlacedMessage],
        hash: [u8; 16],
        attempts: TaskAttempts,
    ) -> Result<Option<PlannedTask>> {
        let (history, options) = (self.message_history(), self.transcript_options());
        let gathered = source_text::gather_placed(session, &history, messages, options)?;
        let (seq_first, seq_last) = (gathered.seq_first, gathered.seq_last);
        if gathered.text.trim().is_empty() {
            return Ok(None);
        }
        let covers = |item: &ContextItem| item.seq_last() >= seq_first;
        let index = self.items.iter().position(covers).unwrap_or(0);
        let span = SourceSpan::Messages { seq_first, seq_last };
        let task = self.build_task(span, hash, &gathered, &attempts);
        Ok(Some(PlannedTask { task, gathered, attempts, index }))
    }

    fn plan_condensations(
        &self,
        session: &mut StoreSession<'_>,
        phase: CondensationPhase,
        search: &mut TaskSearch,
    ) -> Result<Vec<PlannedTask>> {
        let PlannerInput { head, policy, goal, .. } = &self.input;
        let groups = select::find_groups(&self.items, &self.tail, policy, phase);
        let slice = |group: &SummaryGroup| self.items.get(group.from..group.to).unwrap_or(&[]);
        let hashes: Vec<[u8; 16]> =
            groups.iter().map(|group| task::hash_items(slice(group))).collect();
        let attempts = self.read_attempts(session, &hashes)?;
        let mut taken: Vec<SummaryGroup> = Vec::new();
        let mut out = Vec::new();
        let mut summaries = self.summary_tokens();
        let mut stored = head.context.tokens;
        let prefix = u64::from(policy.summary_prefix_tokens_target);
        for ((group, hash), attempts) in groups.into_iter().zip(hashes).zip(attempts) {
            let is_enough = !out.is_empty()
                && !goal.is_over(stored)
                && (phase != CondensationPhase::Ordinary || summaries <= prefix);
            if out.len() == search.count || is_enough {
                break;
            }
            // Only groups of one depth: their new summaries may be sources at the next depth.
            if taken.iter().any(|other| group.overlaps_with(other) || group.depth != other.depth)
                || search.skips_attempts(&attempts)
            {
                continue;
            }
            let planned = self.plan_group(session, &group, hash, attempts)?;
            let saved = group.tokens.saturating_sub(u64::from(planned.task.tokens_target));
            summaries = summaries.saturating_sub(saved);
            stored = stored.saturating_sub(saved);
            taken.push(group);
            out.push(planned);
        }
        Ok(out)
    }

    fn plan_group(
        &self,
        session: &mut StoreSession<'_>,
        group: &SummaryGroup,
        hash: [u8; 16],
        attempts: TaskAttempts,
    ) -> Result<PlannedTask> {
        let items = self.items.get(group.from..group.to).unwrap_or(&[]);
        let (history, options) = (self.message_history(), self.transcript_options());
        let gathered = source_text::gather_items(session, &history, items, options)?;
        let summary_id = |item: Option<&ContextItem>| match item {
            Some(ContextItem::Summary(summary)) => summary.id,
            _ => [0; 8],
        };
        let count = int::to_u32(items.len());
        let (first, last) = (summary_id(items.first()), summary_id(items.last()));
        let span = SourceSpan::Items { first, last, count };
        let task = self.build_task(span, hash, &gathered, &attempts);
        Ok(PlannedTask { task, gathered, attempts, index: group.from })
    }

    fn build_task(
        &self,
        span: SourceSpan,
        hash: [u8; 16],
        gathered: &GatheredSources,
        attempts: &TaskAttempts,
    ) -> SummaryTask {
        let PlannerInput { call, policy, .. } = &self.input;
        let level = attempts.completion_level();
        let tokens = int::saturate_tokens(gathered.tokens);
        // At most three quarters of the sources, because a summary must be smaller than they are.
        let bound = |target: u32| target.min((tokens / 4).saturating_mul(3).max(1));
        let target = |level| match gathered.depth {
            0 => policy.leaf_target(tokens, level),
            _ => policy.condensed_target(tokens, level),
        };
        let (normal, aggressive) = (bound(target(Level::Normal)), bound(target(Level::Aggressive)));
        let mut task = SummaryTask {
            span,
            depth: gathered.depth,
            sources_hash: hash,
            level,
            attempt: attempts.attempt,
            tokens_target: if level == Level::Normal { normal } else { aggressive },
            tokens_target_aggressive: aggressive,
            tokens_cap: normal.saturating_mul(policy.summary_overage_factor),
            fallback_tokens_max: policy.fallback_tokens_max,
            part_tokens_max: policy.leaf_chunk_tokens_max,
            shown_tokens_max: attempts.shown_tokens_max,
            prompt_version: 0,
            breaker_scope: task::build_breaker_scope(call.config.summary_model.as_deref()),
        };
        task.prompt_version = task.prompt_template().version(&call.config.prompt_overrides);
        task
    }

    /// Returns how a sweep ends after a search that found no task.
    pub(super) fn decide_end(&self, search: &TaskSearch, sweep: &SweepToken) -> PlanDecision {
        let PlannerInput { head, goal, .. } = &self.input;
        let is_over = goal.is_over(head.context.tokens);
        if search.has_leased || (search.has_skipped_remake && !is_over) {
            let is_limit = search.remakes_left == 0 && !search.has_leased;
            let reason = if is_limit { reason::PASS_LIMIT } else { reason::CONFLICT };
            return PlanDecision::end_with(PlanStatus::Stopped, reason);
        }
        let reason = if sweep.is_remake {
            reason::BELOW_THRESHOLD
        } else if !is_over {
            reason::REACHED_TARGET
        } else if search.has_exhausted {
            reason::NO_PROGRESS
        } else if self.protected_tokens() > goal.target {
            reason::TAIL_OVER_TARGET
        } else {
            reason::NO_ELIGIBLE_CHUNK
        };
        PlanDecision::end_with(PlanStatus::NothingDue, reason)
    }
}

/// A chunk that may become a leaf.
struct ChunkCandidate {
    chunk: LeafChunk,
    /// Hash over the messages.
    hash: [u8; 16],
    attempts: TaskAttempts,
}
