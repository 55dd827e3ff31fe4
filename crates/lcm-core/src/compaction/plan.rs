//! Plan: the next tasks of a sweep, or the reason why there is no task.
//!
//! In: a conversation, a budget, options. Out: completion requests and a sweep token. The engine
//! calls [`plan`] for the export `compaction.plan`; `run` uses [`decide_next`].
//!
//! A plan depends on the current context; only the sweep token comes from earlier plans. A plan
//! writes nothing unless the caller leases the tasks.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    changes::Changes,
    clock::ClockReading,
    context::ContextItem,
    head::{ConversationHead, JournalAction, LoadedHead},
    history::MessageHistory,
    record_key::RecordReads,
    records::{attempts::TaskAttempts, model_breaker::ModelBreaker},
    session as session_rules,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int},
    config::BudgetPolicy,
    types::api::{CompactionMode, CompactionOptions, PlanResult, PlanStatus, Timestamp},
};

use super::{
    extra::PlanScope,
    goal::{CompactionGoal, derive_goal},
    planner::{PlannedTask, Planner, PlannerInput, TaskSearch},
    reason, request,
    setup::CompactionSetup,
    source_text::PreviousContext,
    sweep::SweepToken,
    task,
};

/// Maximum number of requests of one plan, even if the caller asks for more.
const REQUESTS_MAX: u32 = 64;

/// Default maximum number of remakes of one sweep that also compacts. The limit spares a model that
/// works again from requests for all remakes at once.
const REMAKES_MAX: u32 = 16;

/// Proposes the next tasks as completion requests, and leases them if the caller asks for a lease.
///
/// # Errors
///
/// `invalid-input`: a wrong option; `not-found`: no such conversation; `denied`: the conversation
/// is archived, and no summary is provisional; `conflict`: another call committed before the lease;
/// errors of the store.
pub(crate) fn plan(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    budget: u32,
    options: &CompactionOptions,
) -> Result<PlanResult> {
    let (loaded, decision) = decide_next(session, call, budget, options)?;
    let revision = loaded.head.revision;
    let found = match decision {
        PlanDecision::Tasks(found) => found,
        PlanDecision::Ended(PlanEnd { status, reason, sweep }) => {
            let requests = Vec::new();
            return Ok(PlanResult { status, reason: reason.into(), revision, requests, sweep });
        }
    };
    let history = MessageHistory::new(call, &loaded.head);
    let mut requests = Vec::new();
    for planned in &found.planned {
        let PlannedTask { task, gathered, attempts, index } = planned;
        let previous = PreviousContext {
            before: found.items.get(..*index).unwrap_or(&[]),
            seq_first: gathered.seq_first,
            depth: task.depth,
            injected_tags: &call.config.strip_injected_context_tags,
            offsets: &call.config.time_offsets,
        };
        let previous = previous.read(session, &history)?;
        requests.push(request::build_request(
            call.config,
            task,
            gathered,
            previous.as_deref(),
            &attempts.findings,
        ));
    }
    let status = PlanStatus::NeedsCompletions;
    let sweep = found.sweep.encode();
    if options.lease_ms > 0 {
        commit_lease(session, call, loaded, &found.planned, options.lease_ms)?;
    }
    Ok(PlanResult { status, reason: String::new(), revision, requests, sweep })
}

/// The decision of a plan.
pub(crate) enum PlanDecision {
    /// There are tasks.
    Tasks(PlannedTasks),
    /// There is no task.
    Ended(PlanEnd),
}

impl PlanDecision {
    /// Returns the decision that there is no task, without a token to continue.
    pub(super) fn end_with(status: PlanStatus, reason: &'static str) -> Self {
        Self::Ended(PlanEnd { status, reason, sweep: String::new() })
    }
}

/// The tasks of a plan.
pub(crate) struct PlannedTasks {
    /// All items of the context.
    pub(crate) items: Vec<ContextItem>,
    pub(crate) planned: Vec<PlannedTask>,
    /// Token for the next plan, which counts these tasks as passes or as remakes.
    pub(crate) sweep: SweepToken,
}

/// Why a plan has no task.
pub(crate) struct PlanEnd {
    pub(crate) status: PlanStatus,
    /// One of [`reason::ALL`].
    pub(crate) reason: &'static str,
    /// Token with which the caller may continue; empty: the sweep is over.
    pub(crate) sweep: String,
}

/// Returns the head, with the next tasks or the reason why there is no task.
///
/// # Errors
///
/// `invalid-input`: a wrong option; `not-found`: no such conversation; `denied`: the conversation
/// is archived, and no summary is provisional; errors of the store.
pub(crate) fn decide_next(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    budget: u32,
    options: &CompactionOptions,
) -> Result<(LoadedHead, PlanDecision)> {
    let mut reads = RecordReads::default();
    let breaker_scope = task::build_breaker_scope(call.config.summary_model.as_deref());
    let breaker = reads.add_record(ModelBreaker::key(&breaker_scope));
    let setup = CompactionSetup::open(session, call, budget, options, reads)?;
    let CompactionSetup { loaded, values, policy, options, scope, remakes_max, .. } = setup;
    let (policy, options) = (policy.with_reserve(0), &options);
    let given = SweepToken::parse(options.sweep.as_deref())?;
    let skipped = session_rules::find_skip_reason(session, call, &loaded.head, None)?;
    // Nothing is due in a skipped conversation, or in one that need not exist and does not.
    if skipped.is_some() || loaded.bytes.is_none() {
        return Ok((loaded, nothing_due()));
    }
    // A sweep that made its last remake in an archive ends well: nothing is due any more.
    if given.is_none() {
        ensure_plannable(session, &loaded.head)?;
    }
    let mut sweep = given.unwrap_or(SweepToken::start(&loaded.head, options.observed_tokens));
    let goal = derive_goal(&loaded.head, &policy, options, &sweep);
    let is_incremental = options.mode == CompactionMode::Incremental;
    let is_start = given.is_none() && !options.force;
    if !call.config.enabled {
        return Ok((loaded, PlanDecision::end_with(PlanStatus::NothingDue, reason::DISABLED)));
    }
    let is_idle = is_start && !is_incremental && !goal.is_due();
    // Only remakes are planned below the threshold, in an archive, or if the caller asks for them.
    sweep.is_remake |= is_idle || scope != PlanScope::All || loaded.head.archived.is_some();
    if sweep.is_remake && loaded.head.context.provisional == 0 {
        return Ok((loaded, nothing_due()));
    }
    let breaker = values.decode(&breaker)?.unwrap_or_default();
    let clock = loaded.read_clock(call.now)?;
    if let Some(reason) = find_pause(&loaded.head, &breaker, &clock, call.now)
        && !options.force
    {
        return Ok((loaded, PlanDecision::end_with(PlanStatus::Stopped, reason)));
    }
    let mut passes_left = REQUESTS_MAX;
    if !sweep.is_remake {
        sweep = match apply_limits(sweep, &goal, &policy, options, loaded.head.context.tokens) {
            Ok(sweep) => sweep,
            Err(end) => return Ok((loaded, PlanDecision::Ended(end))),
        };
        passes_left = policy.sweep_passes_max.saturating_sub(sweep.passes);
    }
    let count = options.requests_max.clamp(1, REQUESTS_MAX).min(passes_left);
    let left = count_remakes_left(&scope, remakes_max, &sweep);
    let mut search = TaskSearch::new(int::to_usize(count.into()), left, scope, clock);
    let input = PlannerInput { call, head: &loaded.head, policy, goal };
    let planner = Planner::open(session, input, search.count)?;
    if is_incremental && is_start && !planner.eligible_raw().is_due() {
        sweep.is_remake = true;
    }
    let planned = match is_incremental {
        _ if sweep.is_remake => planner.plan_remakes(session, &mut search)?,
        true => planner.plan_increment(session, sweep.passes, &mut search)?,
        false => planner.plan_tasks(session, &mut search)?,
    };
    if planned.is_empty() {
        let end = planner.decide_end(&search, &sweep);
        return Ok((loaded, end));
    }
    let (sweep, items) = (sweep.with_planned(&planned), planner.into_items());
    Ok((loaded, PlanDecision::Tasks(PlannedTasks { items, planned, sweep })))
}

/// Ensures that a conversation may get a summary. An archived one gets no summary but remakes, so
/// that what was archived while the model failed does not stay as it is for good.
///
/// # Errors
///
/// `denied`: the conversation is archived, and no summary is provisional; errors of the store.
fn ensure_plannable(session: &mut StoreSession<'_>, head: &ConversationHead) -> Result<()> {
    match head.context.provisional {
        0 => session_rules::ensure_not_archived(session, head),
        _ => Ok(()),
    }
}

/// Returns why no model is asked now; `None`: models may be asked.
fn find_pause(
    head: &ConversationHead,
    breaker: &ModelBreaker,
    clock: &ClockReading,
    now: Timestamp,
) -> Option<&'static str> {
    if clock.is_ahead(head.ledger.paused_until) {
        return Some(reason::SPEND_LIMIT);
    }
    breaker.is_open(now).then_some(reason::BREAKER_OPEN)
}

/// Returns how many remakes the sweep may still make. Without `remakes_max`, a call for remakes
/// only has no limit.
fn count_remakes_left(scope: &PlanScope, remakes_max: Option<u32>, sweep: &SweepToken) -> usize {
    let default = if *scope == PlanScope::All { REMAKES_MAX } else { u32::MAX };
    int::to_usize(remakes_max.unwrap_or(default).saturating_sub(sweep.remakes).into())
}

fn nothing_due() -> PlanDecision {
    PlanDecision::end_with(PlanStatus::NothingDue, reason::BELOW_THRESHOLD)
}

/// Returns the token to plan with: `sweep`, or the token of the next round if the round has no
/// passes left. Returns a [`PlanEnd`] if the sweep ends because of its limits or its target.
fn apply_limits(
    sweep: SweepToken,
    goal: &CompactionGoal,
    policy: &BudgetPolicy,
    options: &CompactionOptions,
    stored: u64,
) -> core::result::Result<SweepToken, PlanEnd> {
    if sweep.passes < policy.sweep_passes_max {
        return Ok(sweep);
    }
    let ended = |status, reason, sweep| Err(PlanEnd { status, reason, sweep });
    let next = sweep.next_round(stored);
    if !goal.is_over(stored) {
        return ended(PlanStatus::NothingDue, reason::REACHED_TARGET, String::new());
    }
    if stored >= sweep.tokens_start {
        return ended(PlanStatus::Stopped, reason::NO_PROGRESS, String::new());
    }
    if options.mode != CompactionMode::UntilUnder {
        // The token lets a caller start the next round; other callers stop here.
        return ended(PlanStatus::Stopped, reason::PASS_LIMIT, next.encode());
    }
    if next.round > policy.until_under_rounds_max {
        return ended(PlanStatus::Stopped, reason::ROUND_LIMIT, String::new());
    }
    Ok(next)
}

/// Leases the tasks to the caller for `lease_ms`, in the only commit that a plan makes.
fn commit_lease(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    loaded: LoadedHead,
    planned: &[PlannedTask],
    lease_ms: u32,
) -> Result<ConversationHead> {
    let clock = loaded.read_clock(call.now)?;
    let mut changes = Changes::default();
    for planned in planned {
        let lease_until = clock.deadline_after(lease_ms.into());
        let attempts = TaskAttempts { lease_until, ..planned.attempts.clone() };
        let key = TaskAttempts::key(call.keys, &planned.task.sources_hash);
        changes.write_record(&key, &attempts)?;
    }
    let act = JournalAction::Lease { count: int::to_u32(planned.len()) };
    loaded.commit_changes(session, call, act, changes)
}
