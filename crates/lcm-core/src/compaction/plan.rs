//! Plan: which tasks a sweep hands out next, and why it ends.
//!
//! A plan is made from the context as it is; only the sweep token comes from before. It writes
//! nothing unless the caller wants the tasks reserved.

use crate::storage::pack::PlacedMessage;
use alloc::{string::String, vec::Vec};

use crate::storage::{
    codec,
    context::ContextItem,
    fresh_tail::{self, FreshTail},
    head::{ConversationHead, JournalAction, JournalEntry, LoadedHead},
    history::{self, MessageHistory},
    keys::{self, ConversationKeys},
    session,
    store::Put,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, limits},
    config::{BudgetPolicy, Config},
    summary::transcript::TranscriptOptions,
    types::{
        api::{CompactionMode, CompactionOptions, PlanResult, PlanStatus, Timestamp},
        model::Level,
    },
};

use super::{
    CompactionCall, CompactionGoal,
    attempts::{ModelBreaker, TaskAttempts},
    derive_goal, reason, request,
    select::{self, CondensationPhase, LeafChunk, SummaryGroup},
    source_text::{self, GatheredSources},
    sweep::SweepToken,
    task::{self, SourceSpan, SummaryTask},
};

/// Most requests of one plan, whatever the caller asks for.
const REQUESTS_MAX: u32 = 64;

/// Most candidates that are read beyond those asked for.
const SPARE_CANDIDATES_MAX: usize = 32;

/// A task with what it needs to become a request.
pub(crate) struct PlannedTask {
    pub(crate) task: SummaryTask,
    pub(crate) gathered: GatheredSources,
    pub(crate) attempts: TaskAttempts,
    /// Index of the first item of its sources.
    pub(crate) index: usize,
}

/// Proposes the next tasks.
///
/// # Errors
///
/// `invalid-input`, `unsupported`; errors of the store.
pub(crate) fn plan(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<PlanResult> {
    let keys = ConversationKeys::new(conversation)?;
    let (loaded, found) = decide_next(reader, config, &keys, conversation, budget, options, now)?;
    let revision = loaded.head.revision;
    let found = match found {
        PlanDecision::Tasks(found) => found,
        PlanDecision::Ended { status, reason, sweep } => {
            let requests = Vec::new();
            return Ok(PlanResult { status, reason: reason.into(), revision, requests, sweep });
        }
    };
    let history = MessageHistory { keys: &keys, head: &loaded.head };
    let tags = &config.strip_injected_context_tags;
    let mut requests = Vec::new();
    for planned in &found.planned {
        let before = found.items.get(..planned.index).unwrap_or(&[]);
        let depth = planned.task.depth;
        let seq = planned.gathered.seq_first;
        let previous = source_text::read_previous(reader, &history, before, seq, depth, tags)?;
        let findings = &planned.attempts.findings;
        let (task, gathered) = (&planned.task, &planned.gathered);
        requests.push(request::build_request(
            config,
            task,
            gathered,
            previous.as_deref(),
            findings,
        ));
    }
    let status = PlanStatus::NeedsCompletions;
    let sweep = found.sweep.encode();
    if options.lease_ms > 0 {
        commit_lease(reader, &keys, loaded, &found.planned, options.lease_ms, now)?;
    }
    Ok(PlanResult { status, reason: String::new(), revision, requests, sweep })
}

/// What a look at the conversation found.
pub(crate) enum PlanDecision {
    /// Tasks to hand out.
    Tasks(PlannedTasks),
    /// Nothing, and why.
    Ended { status: PlanStatus, reason: &'static str, sweep: String },
}

/// Tasks to hand out.
pub(crate) struct PlannedTasks {
    pub(crate) items: Vec<ContextItem>,
    pub(crate) planned: Vec<PlannedTask>,
    pub(crate) sweep: SweepToken,
}

/// Decides what comes next, for `plan` and `run` alike.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn decide_next(
    reader: &mut StoreSession<'_>,
    config: &Config,
    keys: &ConversationKeys,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<(LoadedHead, PlanDecision)> {
    let guard_key = keys::breaker_key(&task::build_breaker_scope(config.summary_model.as_deref()));
    let further = alloc::vec![guard_key.clone()];
    let call =
        CompactionCall::open(reader, config, keys, conversation, (budget, options), further)?;
    let CompactionCall { loaded, extra_values: guard, policy, options, .. } = call;
    let (policy, options) = (policy.with_reserve(0), &options);
    let given = SweepToken::parse(options.sweep.as_deref())?;
    let is_passed_over =
        session::find_skip_reason(reader, config, keys, &loaded.head, None)?.is_some();
    // Before the first message there is nothing to do, and that is no error.
    if is_passed_over || loaded.bytes.is_none() {
        let (status, reason) = (PlanStatus::NothingDue, reason::BELOW_THRESHOLD);
        return Ok((loaded, PlanDecision::Ended { status, reason, sweep: String::new() }));
    }
    session::ensure_not_archived(reader, &loaded.head)?;
    let stored = loaded.head.context.tokens;
    let sweep = given.unwrap_or(SweepToken::start(stored, options.observed_tokens));
    let goal = derive_goal(&loaded.head, &policy, options, &sweep);
    let ended = |status, reason, sweep| PlanDecision::Ended { status, reason, sweep };
    let incremental = options.mode == CompactionMode::Incremental;
    if !config.enabled || (given.is_none() && !options.force && !incremental && !goal.is_due()) {
        let found = ended(PlanStatus::NothingDue, reason::BELOW_THRESHOLD, String::new());
        return Ok((loaded, found));
    }
    let guard = match guard.into_iter().next().flatten() {
        Some(value) => codec::decode::<ModelBreaker>(&guard_key, &value)?,
        None => ModelBreaker::default(),
    };
    let time = loaded.effective_time(now)?;
    let paused = time < loaded.head.ledger.paused_until;
    if !options.force && (paused || guard.is_open(time)) {
        let reason = if paused { reason::SPEND_LIMIT } else { reason::BREAKER_OPEN };
        return Ok((loaded, ended(PlanStatus::Stopped, reason, String::new())));
    }
    let sweep = match apply_limits(sweep, &goal, &policy, options, stored) {
        Ok(sweep) => sweep,
        Err(found) => return Ok((loaded, found)),
    };
    let passes_left = policy.sweep_passes_max.saturating_sub(sweep.passes);
    let count = options.requests_max.clamp(1, REQUESTS_MAX).min(passes_left);
    let count = int::to_usize(u64::from(count));
    let planner = Planner::open(reader, config, keys, &loaded.head, policy, goal, count)?;
    let now = loaded.effective_time(now)?;
    let (planned, in_vain) = if incremental {
        if given.is_none() && !options.force && !planner.eligible_raw().is_due() {
            let found = ended(PlanStatus::NothingDue, reason::BELOW_THRESHOLD, String::new());
            return Ok((loaded, found));
        }
        planner.plan_increment(reader, sweep.passes, count, now)?
    } else {
        planner.plan_tasks(reader, count, now)?
    };
    if planned.is_empty() {
        let reason = planner.end_reason(in_vain);
        return Ok((loaded, ended(PlanStatus::NothingDue, reason, String::new())));
    }
    let passes = sweep.passes.saturating_add(int::to_u32(planned.len()));
    let sweep = SweepToken { passes, ..sweep };
    let items = planner.items;
    Ok((loaded, PlanDecision::Tasks(PlannedTasks { items, planned, sweep })))
}

/// Applies the pass and round limits.
fn apply_limits(
    sweep: SweepToken,
    goal: &CompactionGoal,
    policy: &BudgetPolicy,
    options: &CompactionOptions,
    stored: u64,
) -> core::result::Result<SweepToken, PlanDecision> {
    let until_under = options.mode == CompactionMode::UntilUnder;
    if sweep.passes < policy.sweep_passes_max {
        return Ok(sweep);
    }
    let ended = |status, reason, sweep| Err(PlanDecision::Ended { status, reason, sweep });
    let progress = stored < sweep.tokens_start;
    let next = sweep.next_round(stored);
    if !goal.is_over(stored) {
        return ended(PlanStatus::NothingDue, reason::REACHED_TARGET, String::new());
    }
    if !progress {
        return ended(PlanStatus::Stopped, reason::NO_PROGRESS, String::new());
    }
    if !until_under {
        // The command that chains sweeps goes on with this token; others stop here.
        return ended(PlanStatus::Stopped, reason::PASS_LIMIT, next.encode());
    }
    if next.round > policy.until_under_rounds_max {
        return ended(PlanStatus::Stopped, reason::ROUND_LIMIT, String::new());
    }
    Ok(next)
}

/// What mode `incremental` goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EligibleRaw {
    /// Raw tokens outside tail and pin.
    pub(crate) tokens: u64,
    /// Tokens of a chunk.
    pub(crate) chunk_tokens: u64,
}

impl EligibleRaw {
    /// Whether a leaf is due.
    pub(crate) fn is_due(self) -> bool {
        self.tokens >= self.chunk_tokens
    }
}

/// What of a conversation lies outside its tail.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn measure_eligible_raw(
    reader: &mut StoreSession<'_>,
    config: &Config,
    keys: &ConversationKeys,
    head: &ConversationHead,
    policy: BudgetPolicy,
    goal: CompactionGoal,
) -> Result<EligibleRaw> {
    Ok(Planner::open(reader, config, keys, head, policy, goal, 1)?.eligible_raw())
}

/// The conversation as one plan sees it.
pub(super) struct Planner<'a> {
    config: &'a Config,
    keys: &'a ConversationKeys,
    head: &'a ConversationHead,
    policy: BudgetPolicy,
    goal: CompactionGoal,
    items: Vec<ContextItem>,
    tail: FreshTail,
}

impl<'a> Planner<'a> {
    pub(super) fn open(
        reader: &mut StoreSession<'_>,
        config: &'a Config,
        keys: &'a ConversationKeys,
        head: &'a ConversationHead,
        policy: BudgetPolicy,
        goal: CompactionGoal,
        chunks: usize,
    ) -> Result<Self> {
        let history = MessageHistory { keys, head };
        // Second read: context nodes, and the directory around the oldest raw run and the tail.
        let oldest = head.context.inline_items().iter().find_map(|item| match item {
            ContextItem::Run(run) => Some(run.seq_first),
            ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => None,
        });
        let flushed = head.packs.first().map_or(head.messages + 1, |pack| pack.seq_first);
        let mut nodes = Vec::new();
        for seq in [oldest.unwrap_or(head.messages), head.messages] {
            let node = history::directory_node(seq);
            for node in [node.saturating_sub(1), node, node + 1] {
                if node * limits::DIRECTORY_SPAN + 1 < flushed && !nodes.contains(&node) {
                    nodes.push(node);
                }
            }
        }
        reader.prefetch_records(keys, &head.context.node_keys(keys), &nodes)?;
        let items = head.context.load_items(reader, keys)?;
        // Third read: packs of the tail together with those of the first chunks.
        if let Some(run) = fresh_tail::last_raw_run(&items) {
            let mut packs = fresh_tail::find_tail_packs(reader, &history, &run, &policy)?;
            if let Some(ContextItem::Run(run)) =
                items.iter().find(|item| matches!(item, ContextItem::Run(_)))
            {
                let to = run.seq_last.min(run.seq_first + limits::DIRECTORY_SPAN - 1);
                let refs = history.find_pack_refs(reader, run.seq_first, to)?;
                let tail_first = packs.first().map_or(u64::MAX, |pack| pack.seq_first);
                let ahead = select::select_read_ahead(&refs, &policy, chunks).iter();
                packs.extend(ahead.filter(|pack| pack.seq_first < tail_first));
            }
            let wanted: Vec<(String, u32)> =
                packs.iter().map(|pack| (pack.key(keys), pack.bytes)).collect();
            reader.prefetch_records(keys, &wanted, &[])?;
        }
        let tail = fresh_tail::compute_fresh_tail(reader, &history, &items, &policy)?;
        Ok(Self { config, keys, head, policy, goal, items, tail })
    }

    fn message_history(&self) -> MessageHistory<'_> {
        MessageHistory { keys: self.keys, head: self.head }
    }

    fn transcript_options(&self) -> TranscriptOptions<'a> {
        let injected_tags = &self.config.strip_injected_context_tags;
        TranscriptOptions { part_tokens_max: self.policy.leaf_chunk_tokens_max, injected_tags }
    }

    /// The next tasks, and whether some were passed over because they were tried in vain.
    fn plan_tasks(
        &self,
        reader: &mut StoreSession<'_>,
        count: usize,
        now: Timestamp,
    ) -> Result<(Vec<PlannedTask>, bool)> {
        let mut in_vain = false;
        let over = self.goal.is_over(self.head.context.tokens);
        // A context near its bound of items has no room for leaves before others are merged.
        let crowded = self.head.context.count_items() >= limits::CONTEXT_ITEMS_MERGE_MIN;
        if (!self.goal.is_explicit || over) && !crowded {
            let leaves = self.plan_leaves(reader, count, now, &mut in_vain)?;
            if !leaves.is_empty() {
                return Ok((leaves, in_vain));
            }
        }
        let prefix = u64::from(self.policy.summary_prefix_tokens_target);
        // Summaries must fit the budget as they are rendered, too.
        let squeezed = self.head.context.rendered_tokens > u64::from(self.policy.budget);
        for phase in
            [CondensationPhase::Ordinary, CondensationPhase::Pressure, CondensationPhase::Mixed]
        {
            let pressing = over || crowded || (squeezed && !self.goal.is_explicit);
            let due = match phase {
                CondensationPhase::Ordinary => pressing || self.summary_tokens() > prefix,
                CondensationPhase::Pressure | CondensationPhase::Mixed => pressing,
            };
            if !due {
                continue;
            }
            let groups = self.plan_condensations(reader, phase, count, now, &mut in_vain)?;
            if !groups.is_empty() {
                return Ok((groups, in_vain));
            }
        }
        Ok((Vec::new(), in_vain))
    }

    /// Tokens of tail and pin.
    pub(super) fn protected_tokens(&self) -> u64 {
        self.tail.tokens + self.tail.pinned.map_or(0, |pin| pin.tokens)
    }

    /// The raw text outside tail and pin, against what a chunk may have.
    pub(super) fn eligible_raw(&self) -> EligibleRaw {
        let raw =
            |item: &ContextItem| if let ContextItem::Run(run) = item { run.tokens } else { 0 };
        let tokens: u64 = self.items.iter().map(raw).sum();
        let chunk_tokens = u64::from(self.policy.leaf_chunk_tokens_max);
        EligibleRaw { tokens: tokens.saturating_sub(self.protected_tokens()), chunk_tokens }
    }

    /// The next tasks of mode `incremental`: one leaf, then condensations of the ordinary kind.
    fn plan_increment(
        &self,
        reader: &mut StoreSession<'_>,
        passes: u32,
        count: usize,
        now: Timestamp,
    ) -> Result<(Vec<PlannedTask>, bool)> {
        let mut in_vain = false;
        if passes == 0 {
            let leaves = self.plan_leaves(reader, 1, now, &mut in_vain)?;
            if !leaves.is_empty() {
                return Ok((leaves, in_vain));
            }
        }
        if self.summary_tokens() <= u64::from(self.policy.summary_prefix_tokens_target) {
            return Ok((Vec::new(), in_vain));
        }
        let groups =
            self.plan_condensations(reader, CondensationPhase::Ordinary, count, now, &mut in_vain)?;
        Ok((groups, in_vain))
    }

    /// Tokens of the summaries outside the tail.
    pub(super) fn summary_tokens(&self) -> u64 {
        let outside = |item: &&ContextItem| item.seq_last() < self.tail.seq_first;
        let summary = |item: &&ContextItem| matches!(item, ContextItem::Summary(_));
        self.items.iter().filter(outside).filter(summary).map(ContextItem::tokens).sum()
    }

    fn plan_leaves(
        &self,
        reader: &mut StoreSession<'_>,
        count: usize,
        now: Timestamp,
        in_vain: &mut bool,
    ) -> Result<Vec<PlannedTask>> {
        let history = self.message_history();
        let mut out = Vec::new();
        let mut projected = self.head.context.tokens;
        // As many candidates again as were passed over, so that a long row of them costs few reads.
        let mut spare = 0usize;
        for stretch in select::find_raw_ranges(&self.items, &self.tail) {
            let mut from = stretch.seq_first;
            while from <= stretch.seq_last && out.len() < count {
                let rest = select::RawRange { seq_first: from, ..stretch };
                let wanted = count - out.len() + spare.min(SPARE_CANDIDATES_MAX);
                let (chunks, messages) =
                    select::read_chunks(reader, &history, &rest, &self.policy, wanted)?;
                let Some(last) = chunks.last() else { break };
                from = last.seq_last + 1;
                let keyed = self.read_chunk_attempts(reader, &history, &chunks)?;
                let read = history::slice_by_seq(&messages, rest.seq_first, last.seq_last);
                history.prefetch_texts(reader, read)?;
                for (chunk, task, attempts) in keyed {
                    let enough = self.goal.is_explicit && !self.goal.is_over(projected);
                    if out.len() == count || enough {
                        return Ok(out);
                    }
                    spare += 1;
                    if self.is_skipped(&attempts, now, in_vain) {
                        continue;
                    }
                    let of_chunk = history::slice_by_seq(read, chunk.seq_first, chunk.seq_last);
                    let Some(planned) = self.plan_chunk(reader, of_chunk, task, attempts)? else {
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

    /// Attempt records of chunks, in one read.
    fn read_chunk_attempts(
        &self,
        reader: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        chunks: &[LeafChunk],
    ) -> Result<Vec<(LeafChunk, [u8; 16], TaskAttempts)>> {
        let mut hashes = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let frontier = history.frontier_at(reader, chunk.seq_last)?;
            hashes.push(task::hash_messages(chunk.seq_first, chunk.seq_last, &frontier));
        }
        let attempts = self.read_attempts(reader, &hashes)?;
        let rows = chunks.iter().zip(hashes).zip(attempts);
        Ok(rows.map(|((chunk, hash), attempts)| (*chunk, hash, attempts)).collect())
    }

    fn read_attempts(
        &self,
        reader: &mut StoreSession<'_>,
        hashes: &[[u8; 16]],
    ) -> Result<Vec<TaskAttempts>> {
        let names: Vec<String> = hashes.iter().map(|hash| self.keys.attempt_key(hash)).collect();
        let values = reader.read_uncached(&names)?;
        let decode = |(name, value): (&String, Option<Vec<u8>>)| match value {
            Some(value) => codec::decode(name, &value),
            None => Ok(TaskAttempts::default()),
        };
        names.iter().zip(values).map(decode).collect()
    }

    fn is_skipped(&self, attempts: &TaskAttempts, now: Timestamp, in_vain: &mut bool) -> bool {
        *in_vain |= attempts.is_exhausted;
        attempts.is_exhausted || attempts.lease_until > now
    }

    /// The task of a chunk; `None` when it has nothing to say.
    fn plan_chunk(
        &self,
        reader: &mut StoreSession<'_>,
        messages: &[PlacedMessage],
        hash: [u8; 16],
        attempts: TaskAttempts,
    ) -> Result<Option<PlannedTask>> {
        let reading = self.transcript_options();
        let gathered =
            source_text::gather_placed(reader, &self.message_history(), messages, reading)?;
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
        reader: &mut StoreSession<'_>,
        phase: CondensationPhase,
        count: usize,
        now: Timestamp,
        in_vain: &mut bool,
    ) -> Result<Vec<PlannedTask>> {
        let groups = select::find_groups(&self.items, &self.tail, &self.policy, phase);
        let slice = |group: &SummaryGroup| self.items.get(group.from..group.to).unwrap_or(&[]);
        let hashes: Vec<[u8; 16]> =
            groups.iter().map(|group| task::hash_items(slice(group))).collect();
        let attempts = self.read_attempts(reader, &hashes)?;
        let mut taken: Vec<SummaryGroup> = Vec::new();
        let mut out = Vec::new();
        let mut summaries = self.summary_tokens();
        let mut stored = self.head.context.tokens;
        for ((group, hash), attempts) in groups.into_iter().zip(hashes).zip(attempts) {
            let prefix = u64::from(self.policy.summary_prefix_tokens_target);
            let enough = !out.is_empty()
                && !self.goal.is_over(stored)
                && (phase != CondensationPhase::Ordinary || summaries <= prefix);
            if out.len() == count || enough {
                break;
            }
            // One depth at a time, the shallowest: what it makes may belong to the next.
            if taken.iter().any(|other| group.overlaps_with(other) || group.depth != other.depth)
                || self.is_skipped(&attempts, now, in_vain)
            {
                continue;
            }
            let planned = self.plan_group(reader, &group, hash, attempts)?;
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
        reader: &mut StoreSession<'_>,
        group: &SummaryGroup,
        hash: [u8; 16],
        attempts: TaskAttempts,
    ) -> Result<PlannedTask> {
        let items = self.items.get(group.from..group.to).unwrap_or(&[]);
        let gathered = source_text::gather_items(
            reader,
            &self.message_history(),
            items,
            self.transcript_options(),
        )?;
        let summary = |item: Option<&ContextItem>| match item {
            Some(ContextItem::Summary(summary)) => summary.id,
            _ => [0; 8],
        };
        let count = int::to_u32(items.len());
        let (first, last) = (summary(items.first()), summary(items.last()));
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
        let level = attempts.completion_level();
        let tokens = int::saturate_tokens(gathered.tokens);
        // A summary has to be smaller than its sources, whatever the floors of the targets say.
        let bound = |target: u32| target.min((tokens / 4).saturating_mul(3).max(1));
        let (normal, aggressive) = match span {
            SourceSpan::Messages { .. } => {
                let target = |level| self.policy.leaf_target(tokens, level);
                (target(Level::Normal), target(Level::Aggressive))
            }
            SourceSpan::Items { .. } => (
                self.policy.condensed_target(tokens, Level::Normal),
                self.policy.condensed_target(tokens, Level::Aggressive),
            ),
        };
        let (normal, aggressive) = (bound(normal), bound(aggressive));
        let tokens_target = if level == Level::Normal { normal } else { aggressive };
        let mut task = SummaryTask {
            span,
            depth: gathered.depth,
            sources_hash: hash,
            level,
            attempt: attempts.attempt,
            tokens_target,
            tokens_target_aggressive: aggressive,
            tokens_cap: normal.saturating_mul(self.policy.summary_overage_factor),
            fallback_tokens_max: self.policy.fallback_tokens_max,
            part_tokens_max: self.policy.leaf_chunk_tokens_max,
            prompt_version: 0,
            breaker_scope: task::build_breaker_scope(self.config.summary_model.as_deref()),
        };
        task.prompt_version = task.prompt_template().version(&self.config.prompt_overrides);
        task
    }

    /// Why there is nothing to hand out.
    fn end_reason(&self, in_vain: bool) -> &'static str {
        if !self.goal.is_over(self.head.context.tokens) {
            reason::REACHED_TARGET
        } else if in_vain {
            reason::NO_PROGRESS
        } else if self.protected_tokens() > self.goal.target {
            reason::TAIL_OVER_TARGET
        } else {
            reason::NO_ELIGIBLE_CHUNK
        }
    }
}

/// Reserves tasks for the caller: the one commit of a plan with leases.
fn commit_lease(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    loaded: LoadedHead,
    planned: &[PlannedTask],
    lease_ms: u32,
    now: Timestamp,
) -> Result<()> {
    let now = loaded.effective_time(now)?;
    let mut puts = Vec::new();
    for planned in planned {
        let lease_until = now.saturating_add(u64::from(lease_ms));
        let attempts = TaskAttempts { lease_until, ..planned.attempts.clone() };
        let key = keys.attempt_key(&planned.task.sources_hash);
        puts.push(Put { key, value: Some(codec::encode(&attempts)?) });
    }
    let entry =
        JournalEntry { time: now, act: JournalAction::Lease { count: int::to_u32(planned.len()) } };
    loaded.commit(reader, keys, now, &entry, puts, Vec::new())?;
    Ok(())
}
