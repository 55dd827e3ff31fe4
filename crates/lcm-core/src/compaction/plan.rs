//! Plan: which tasks a sweep hands out next, and why it ends.
//!
//! A plan is made from the context as it is; only the sweep token comes from before. It writes
//! nothing unless the caller wants the tasks reserved.

use crate::storage::pack::Placed;
use alloc::{string::String, vec::Vec};

use crate::storage::{
    codec,
    context::Item,
    fresh_tail::{self, Tail},
    head::{Act, Head, Journal, Loaded},
    history::{self, History},
    keys::{self, Keys},
    session,
    store::Put,
    store_session::Reader,
};
use lcm_text::{
    base::{error::Result, int, limits},
    config::{Config, Policy},
    summary::transcript::Reading,
    types::{
        api::{CompactionMode, CompactionOptions, PlanResult, PlanStatus, Timestamp},
        model::Level,
    },
};

use super::{
    Call, Goal, goal, reason,
    records::{Attempts, ModelGuard},
    request,
    select::{self, Chunk, Group, Phase},
    sources::{self, Gathered},
    sweep::Sweep,
    task::{self, Span, Task},
};

/// Most requests of one plan, whatever the caller asks for.
const REQUESTS_MAX: u32 = 64;

/// Most candidates that are read beyond those asked for.
const SPARE_MAX: usize = 32;

/// A task with what it needs to become a request.
pub(crate) struct Planned {
    pub(crate) task: Task,
    pub(crate) gathered: Gathered,
    pub(crate) attempts: Attempts,
    /// Index of the first item of its sources.
    pub(crate) index: usize,
}

/// Proposes the next tasks.
///
/// # Errors
///
/// `invalid-input`, `unsupported`; errors of the store.
pub(crate) fn plan(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<PlanResult> {
    let keys = Keys::new(conversation)?;
    let (loaded, found) = look(reader, config, &keys, conversation, budget, options, now)?;
    let revision = loaded.head.revision;
    let found = match found {
        Found::Tasks(found) => found,
        Found::Ended { status, reason, sweep } => {
            let requests = Vec::new();
            return Ok(PlanResult { status, reason: reason.into(), revision, requests, sweep });
        }
    };
    let history = History { keys: &keys, head: &loaded.head };
    let tags = &config.strip_injected_context_tags;
    let mut requests = Vec::new();
    for planned in &found.planned {
        let before = found.items.get(..planned.index).unwrap_or(&[]);
        let depth = planned.task.depth;
        let seq = planned.gathered.seq_first;
        let previous = sources::previous(reader, &history, before, seq, depth, tags)?;
        let findings = &planned.attempts.findings;
        let (task, gathered) = (&planned.task, &planned.gathered);
        requests.push(request::build(config, task, gathered, previous.as_deref(), findings));
    }
    let status = PlanStatus::NeedsCompletions;
    let sweep = found.sweep.token();
    if options.lease_ms > 0 {
        lease(reader, &keys, loaded, &found.planned, options.lease_ms, now)?;
    }
    Ok(PlanResult { status, reason: String::new(), revision, requests, sweep })
}

/// What a look at the conversation found.
pub(crate) enum Found {
    /// Tasks to hand out.
    Tasks(Tasks),
    /// Nothing, and why.
    Ended { status: PlanStatus, reason: &'static str, sweep: String },
}

/// Tasks to hand out.
pub(crate) struct Tasks {
    pub(crate) items: Vec<Item>,
    pub(crate) planned: Vec<Planned>,
    pub(crate) sweep: Sweep,
}

/// Decides what comes next, for `plan` and `run` alike.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn look(
    reader: &mut Reader<'_>,
    config: &Config,
    keys: &Keys,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<(Loaded, Found)> {
    let guard_key = keys::guard(&task::scope(config.summary_model.as_deref()));
    let further = alloc::vec![guard_key.clone()];
    let call = Call::begin(reader, config, keys, conversation, (budget, options), further)?;
    let Call { loaded, further: guard, policy, options, .. } = call;
    let (policy, options) = (policy.less(0), &options);
    let given = Sweep::parse(options.sweep.as_deref())?;
    let is_passed_over = session::passed_over(reader, config, keys, &loaded.head, None)?.is_some();
    // Before the first message there is nothing to do, and that is no error.
    if is_passed_over || loaded.bytes.is_none() {
        let (status, reason) = (PlanStatus::NothingDue, reason::BELOW_THRESHOLD);
        return Ok((loaded, Found::Ended { status, reason, sweep: String::new() }));
    }
    session::goes_on(reader, &loaded.head)?;
    let stored = loaded.head.context.tokens;
    let sweep = given.unwrap_or(Sweep::begin(stored, options.observed_tokens));
    let goal = goal(&loaded.head, &policy, options, &sweep);
    let ended = |status, reason, sweep| Found::Ended { status, reason, sweep };
    let incremental = options.mode == CompactionMode::Incremental;
    if !config.enabled || (given.is_none() && !options.force && !incremental && !goal.due()) {
        let found = ended(PlanStatus::NothingDue, reason::BELOW_THRESHOLD, String::new());
        return Ok((loaded, found));
    }
    let guard = match guard.into_iter().next().flatten() {
        Some(value) => codec::decode::<ModelGuard>(&guard_key, &value)?,
        None => ModelGuard::default(),
    };
    let time = loaded.now(now)?;
    let paused = time < loaded.head.ledger.paused_until;
    if !options.force && (paused || guard.is_open(time)) {
        let reason = if paused { reason::SPEND_LIMIT } else { reason::BREAKER_OPEN };
        return Ok((loaded, ended(PlanStatus::Stopped, reason, String::new())));
    }
    let sweep = match limited(sweep, &goal, &policy, options, stored) {
        Ok(sweep) => sweep,
        Err(found) => return Ok((loaded, found)),
    };
    let passes_left = policy.sweep_passes_max.saturating_sub(sweep.passes);
    let count = options.requests_max.clamp(1, REQUESTS_MAX).min(passes_left);
    let count = int::to_usize(u64::from(count));
    let planner = Planner::prepare(reader, config, keys, &loaded.head, policy, goal, count)?;
    let now = loaded.now(now)?;
    let (planned, in_vain) = if incremental {
        if given.is_none() && !options.force && !planner.outside().due() {
            let found = ended(PlanStatus::NothingDue, reason::BELOW_THRESHOLD, String::new());
            return Ok((loaded, found));
        }
        planner.increment(reader, sweep.passes, count, now)?
    } else {
        planner.tasks(reader, count, now)?
    };
    if planned.is_empty() {
        let reason = planner.ending(in_vain);
        return Ok((loaded, ended(PlanStatus::NothingDue, reason, String::new())));
    }
    let passes = sweep.passes.saturating_add(int::to_u32(planned.len()));
    let sweep = Sweep { passes, ..sweep };
    let items = planner.items;
    Ok((loaded, Found::Tasks(Tasks { items, planned, sweep })))
}

/// Applies the pass and round limits.
fn limited(
    sweep: Sweep,
    goal: &Goal,
    policy: &Policy,
    options: &CompactionOptions,
    stored: u64,
) -> core::result::Result<Sweep, Found> {
    let until_under = options.mode == CompactionMode::UntilUnder;
    if sweep.passes < policy.sweep_passes_max {
        return Ok(sweep);
    }
    let ended = |status, reason, sweep| Err(Found::Ended { status, reason, sweep });
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
        return ended(PlanStatus::Stopped, reason::PASS_LIMIT, next.token());
    }
    if next.round > policy.until_under_rounds_max {
        return ended(PlanStatus::Stopped, reason::ROUND_LIMIT, String::new());
    }
    Ok(next)
}

/// What mode `incremental` goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// Raw tokens outside tail and pin.
    pub(crate) tokens: u64,
    /// Tokens of a chunk.
    pub(crate) chunk_tokens: u64,
}

impl Outside {
    /// Whether a leaf is due.
    pub(crate) fn due(self) -> bool {
        self.tokens >= self.chunk_tokens
    }
}

/// What of a conversation lies outside its tail.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn outside(
    reader: &mut Reader<'_>,
    config: &Config,
    keys: &Keys,
    head: &Head,
    policy: Policy,
    goal: Goal,
) -> Result<Outside> {
    Ok(Planner::prepare(reader, config, keys, head, policy, goal, 1)?.outside())
}

/// The conversation as one plan sees it.
pub(super) struct Planner<'a> {
    config: &'a Config,
    keys: &'a Keys,
    head: &'a Head,
    policy: Policy,
    goal: Goal,
    items: Vec<Item>,
    tail: Tail,
}

impl<'a> Planner<'a> {
    pub(super) fn prepare(
        reader: &mut Reader<'_>,
        config: &'a Config,
        keys: &'a Keys,
        head: &'a Head,
        policy: Policy,
        goal: Goal,
        chunks: usize,
    ) -> Result<Self> {
        let history = History { keys, head };
        // Second read: context nodes, and the directory around the oldest raw run and the tail.
        let oldest = head.context.newest().iter().find_map(|item| match item {
            Item::Run(run) => Some(run.seq_first),
            Item::Summary(_) | Item::Withdrawn { .. } => None,
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
        reader.prefetch(keys, &head.context.node_keys(keys), &nodes)?;
        let items = head.context.load(reader, keys)?;
        // Third read: packs of the tail together with those of the first chunks.
        if let Some(run) = fresh_tail::last_run(&items) {
            let mut packs = fresh_tail::packs(reader, &history, &run, &policy)?;
            if let Some(Item::Run(run)) = items.iter().find(|item| matches!(item, Item::Run(_))) {
                let to = run.seq_last.min(run.seq_first + limits::DIRECTORY_SPAN - 1);
                let refs = history.refs(reader, run.seq_first, to)?;
                let tail_first = packs.first().map_or(u64::MAX, |pack| pack.seq_first);
                let ahead = select::ahead(&refs, &policy, chunks).iter();
                packs.extend(ahead.filter(|pack| pack.seq_first < tail_first));
            }
            let wanted: Vec<(String, u32)> =
                packs.iter().map(|pack| (pack.key(keys), pack.bytes)).collect();
            reader.prefetch(keys, &wanted, &[])?;
        }
        let tail = fresh_tail::fresh_tail(reader, &history, &items, &policy)?;
        Ok(Self { config, keys, head, policy, goal, items, tail })
    }

    fn history(&self) -> History<'_> {
        History { keys: self.keys, head: self.head }
    }

    fn reading(&self) -> Reading<'a> {
        let injected_tags = &self.config.strip_injected_context_tags;
        Reading { part_tokens_max: self.policy.leaf_chunk_tokens_max, injected_tags }
    }

    /// The next tasks, and whether some were passed over because they were tried in vain.
    fn tasks(
        &self,
        reader: &mut Reader<'_>,
        count: usize,
        now: Timestamp,
    ) -> Result<(Vec<Planned>, bool)> {
        let mut in_vain = false;
        let over = self.goal.is_over(self.head.context.tokens);
        // A context near its bound of items has no room for leaves before others are merged.
        let crowded = self.head.context.count() >= limits::CONTEXT_ITEMS_CROWDED;
        if (!self.goal.explicit || over) && !crowded {
            let leaves = self.leaves(reader, count, now, &mut in_vain)?;
            if !leaves.is_empty() {
                return Ok((leaves, in_vain));
            }
        }
        let prefix = u64::from(self.policy.summary_prefix_tokens_target);
        // Summaries must fit the budget as they are rendered, too.
        let squeezed = self.head.context.rendered_tokens > u64::from(self.policy.budget);
        for phase in [Phase::Ordinary, Phase::Pressure, Phase::Mixed] {
            let pressing = over || crowded || (squeezed && !self.goal.explicit);
            let due = match phase {
                Phase::Ordinary => pressing || self.summary_tokens() > prefix,
                Phase::Pressure | Phase::Mixed => pressing,
            };
            if !due {
                continue;
            }
            let groups = self.condensations(reader, phase, count, now, &mut in_vain)?;
            if !groups.is_empty() {
                return Ok((groups, in_vain));
            }
        }
        Ok((Vec::new(), in_vain))
    }

    /// Tokens of tail and pin.
    pub(super) fn kept(&self) -> u64 {
        self.tail.tokens + self.tail.pin.map_or(0, |pin| pin.tokens)
    }

    /// The raw text outside tail and pin, against what a chunk may have.
    pub(super) fn outside(&self) -> Outside {
        let raw = |item: &Item| if let Item::Run(run) = item { run.tokens } else { 0 };
        let tokens: u64 = self.items.iter().map(raw).sum();
        let chunk_tokens = u64::from(self.policy.leaf_chunk_tokens_max);
        Outside { tokens: tokens.saturating_sub(self.kept()), chunk_tokens }
    }

    /// The next tasks of mode `incremental`: one leaf, then condensations of the ordinary kind.
    fn increment(
        &self,
        reader: &mut Reader<'_>,
        passes: u32,
        count: usize,
        now: Timestamp,
    ) -> Result<(Vec<Planned>, bool)> {
        let mut in_vain = false;
        if passes == 0 {
            let leaves = self.leaves(reader, 1, now, &mut in_vain)?;
            if !leaves.is_empty() {
                return Ok((leaves, in_vain));
            }
        }
        if self.summary_tokens() <= u64::from(self.policy.summary_prefix_tokens_target) {
            return Ok((Vec::new(), in_vain));
        }
        let groups = self.condensations(reader, Phase::Ordinary, count, now, &mut in_vain)?;
        Ok((groups, in_vain))
    }

    /// Tokens of the summaries outside the tail.
    pub(super) fn summary_tokens(&self) -> u64 {
        let outside = |item: &&Item| item.seq_last() < self.tail.seq_first;
        let summary = |item: &&Item| matches!(item, Item::Summary(_));
        self.items.iter().filter(outside).filter(summary).map(Item::tokens).sum()
    }

    fn leaves(
        &self,
        reader: &mut Reader<'_>,
        count: usize,
        now: Timestamp,
        in_vain: &mut bool,
    ) -> Result<Vec<Planned>> {
        let history = self.history();
        let mut out = Vec::new();
        let mut projected = self.head.context.tokens;
        // As many candidates again as were passed over, so that a long row of them costs few reads.
        let mut spare = 0usize;
        for stretch in select::stretches(&self.items, &self.tail) {
            let mut from = stretch.seq_first;
            while from <= stretch.seq_last && out.len() < count {
                let rest = select::Stretch { seq_first: from, ..stretch };
                let wanted = count - out.len() + spare.min(SPARE_MAX);
                let (chunks, messages) =
                    select::chunks(reader, &history, &rest, &self.policy, wanted)?;
                let Some(last) = chunks.last() else { break };
                from = last.seq_last + 1;
                let keyed = self.attempts_of_chunks(reader, &history, &chunks)?;
                let read = history::between(&messages, rest.seq_first, last.seq_last);
                history.fetch_texts(reader, read)?;
                for (chunk, task, attempts) in keyed {
                    let enough = self.goal.explicit && !self.goal.is_over(projected);
                    if out.len() == count || enough {
                        return Ok(out);
                    }
                    spare += 1;
                    if self.passed_over(&attempts, now, in_vain) {
                        continue;
                    }
                    let of_chunk = history::between(read, chunk.seq_first, chunk.seq_last);
                    let Some(planned) = self.leaf(reader, of_chunk, task, attempts)? else {
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
    fn attempts_of_chunks(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        chunks: &[Chunk],
    ) -> Result<Vec<(Chunk, [u8; 16], Attempts)>> {
        let mut hashes = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let frontier = history.frontier(reader, chunk.seq_last)?;
            hashes.push(task::messages_hash(chunk.seq_first, chunk.seq_last, &frontier));
        }
        let attempts = self.attempts(reader, &hashes)?;
        let rows = chunks.iter().zip(hashes).zip(attempts);
        Ok(rows.map(|((chunk, hash), attempts)| (*chunk, hash, attempts)).collect())
    }

    fn attempts(&self, reader: &mut Reader<'_>, hashes: &[[u8; 16]]) -> Result<Vec<Attempts>> {
        let names: Vec<String> = hashes.iter().map(|hash| self.keys.attempt(hash)).collect();
        let values = reader.fresh(&names)?;
        let decode = |(name, value): (&String, Option<Vec<u8>>)| match value {
            Some(value) => codec::decode(name, &value),
            None => Ok(Attempts::default()),
        };
        names.iter().zip(values).map(decode).collect()
    }

    fn passed_over(&self, attempts: &Attempts, now: Timestamp, in_vain: &mut bool) -> bool {
        *in_vain |= attempts.exhausted;
        attempts.exhausted || attempts.lease_until > now
    }

    /// The task of a chunk; `None` when it has nothing to say.
    fn leaf(
        &self,
        reader: &mut Reader<'_>,
        messages: &[Placed],
        hash: [u8; 16],
        attempts: Attempts,
    ) -> Result<Option<Planned>> {
        let reading = self.reading();
        let gathered = sources::of_messages(reader, &self.history(), messages, reading)?;
        let (seq_first, seq_last) = (gathered.seq_first, gathered.seq_last);
        if gathered.text.trim().is_empty() {
            return Ok(None);
        }
        let covers = |item: &Item| item.seq_last() >= seq_first;
        let index = self.items.iter().position(covers).unwrap_or(0);
        let span = Span::Messages { seq_first, seq_last };
        let task = self.task(span, hash, &gathered, &attempts);
        Ok(Some(Planned { task, gathered, attempts, index }))
    }

    fn condensations(
        &self,
        reader: &mut Reader<'_>,
        phase: Phase,
        count: usize,
        now: Timestamp,
        in_vain: &mut bool,
    ) -> Result<Vec<Planned>> {
        let groups = select::groups(&self.items, &self.tail, &self.policy, phase);
        let slice = |group: &Group| self.items.get(group.from..group.to).unwrap_or(&[]);
        let hashes: Vec<[u8; 16]> =
            groups.iter().map(|group| task::items_hash(slice(group))).collect();
        let attempts = self.attempts(reader, &hashes)?;
        let mut taken: Vec<Group> = Vec::new();
        let mut out = Vec::new();
        let mut summaries = self.summary_tokens();
        let mut stored = self.head.context.tokens;
        for ((group, hash), attempts) in groups.into_iter().zip(hashes).zip(attempts) {
            let prefix = u64::from(self.policy.summary_prefix_tokens_target);
            let enough = !out.is_empty()
                && !self.goal.is_over(stored)
                && (phase != Phase::Ordinary || summaries <= prefix);
            if out.len() == count || enough {
                break;
            }
            // One depth at a time, the shallowest: what it makes may belong to the next.
            if taken.iter().any(|other| group.overlaps(other) || group.depth != other.depth)
                || self.passed_over(&attempts, now, in_vain)
            {
                continue;
            }
            let planned = self.condensed(reader, &group, hash, attempts)?;
            let saved = group.tokens.saturating_sub(u64::from(planned.task.tokens_target));
            summaries = summaries.saturating_sub(saved);
            stored = stored.saturating_sub(saved);
            taken.push(group);
            out.push(planned);
        }
        Ok(out)
    }

    fn condensed(
        &self,
        reader: &mut Reader<'_>,
        group: &Group,
        hash: [u8; 16],
        attempts: Attempts,
    ) -> Result<Planned> {
        let items = self.items.get(group.from..group.to).unwrap_or(&[]);
        let gathered = sources::items(reader, &self.history(), items, self.reading())?;
        let summary = |item: Option<&Item>| match item {
            Some(Item::Summary(summary)) => summary.id,
            _ => [0; 8],
        };
        let count = int::to_u32(items.len());
        let (first, last) = (summary(items.first()), summary(items.last()));
        let span = Span::Items { first, last, count };
        let task = self.task(span, hash, &gathered, &attempts);
        Ok(Planned { task, gathered, attempts, index: group.from })
    }

    fn task(&self, span: Span, hash: [u8; 16], gathered: &Gathered, attempts: &Attempts) -> Task {
        let level = attempts.level();
        let tokens = int::tokens_u32(gathered.tokens);
        // A summary has to be smaller than its sources, whatever the floors of the targets say.
        let bound = |target: u32| target.min((tokens / 4).saturating_mul(3).max(1));
        let (normal, aggressive) = match span {
            Span::Messages { .. } => {
                (self.policy.leaf_target(tokens, false), self.policy.leaf_target(tokens, true))
            }
            Span::Items { .. } => (
                self.policy.condensed_target(tokens, false),
                self.policy.condensed_target(tokens, true),
            ),
        };
        let (normal, aggressive) = (bound(normal), bound(aggressive));
        let tokens_target = if level == Level::Normal { normal } else { aggressive };
        let mut task = Task {
            span,
            depth: gathered.depth,
            sources: hash,
            level,
            attempt: attempts.attempt,
            tokens_target,
            tokens_target_aggressive: aggressive,
            tokens_cap: normal.saturating_mul(self.policy.summary_overage_factor),
            fallback_tokens_max: self.policy.fallback_tokens_max,
            part_tokens_max: self.policy.leaf_chunk_tokens_max,
            prompt_version: 0,
            scope: task::scope(self.config.summary_model.as_deref()),
        };
        task.prompt_version = task.wording().version(&self.config.prompt_overrides);
        task
    }

    /// Why there is nothing to hand out.
    fn ending(&self, in_vain: bool) -> &'static str {
        if !self.goal.is_over(self.head.context.tokens) {
            reason::REACHED_TARGET
        } else if in_vain {
            reason::NO_PROGRESS
        } else if self.kept() > self.goal.target {
            reason::TAIL_OVER_TARGET
        } else {
            reason::NO_ELIGIBLE_CHUNK
        }
    }
}

/// Reserves tasks for the caller: the one commit of a plan with leases.
fn lease(
    reader: &mut Reader<'_>,
    keys: &Keys,
    loaded: Loaded,
    planned: &[Planned],
    lease_ms: u32,
    now: Timestamp,
) -> Result<()> {
    let now = loaded.now(now)?;
    let mut puts = Vec::new();
    for planned in planned {
        let lease_until = now.saturating_add(u64::from(lease_ms));
        let attempts = Attempts { lease_until, ..planned.attempts.clone() };
        let key = keys.attempt(&planned.task.sources);
        puts.push(Put { key, value: Some(codec::encode(&attempts)?) });
    }
    let entry = Journal { time: now, act: Act::Lease { count: int::to_u32(planned.len()) } };
    loaded.commit(reader, keys, now, &entry, puts, Vec::new())?;
    Ok(())
}
