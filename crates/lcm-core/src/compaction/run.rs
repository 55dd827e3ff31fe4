//! Run: one pass that calls the model itself, with the same decisions as `plan` and `apply`.
//!
//! In: a conversation, a budget, options and a model. Out: the outcome of one task. The engine
//! calls [`run`] for the export `compaction.run`.
//!
//! The context and the sources are read before the first completion. After the first completion,
//! `run` reads only the search index and, if summaries left the context, whether the new summary is
//! stored already. After a rejected answer, `run` asks the model again at once and does not write
//! the rejection yet. The pass makes at most one commit, at its end.

use alloc::string::String;

use crate::storage::{call::Call, store_session::StoreSession};
use lcm_text::{
    base::{error::Result, int},
    types::{
        api::{ApplyOutcome, ApplyStatus, CompactionOptions},
        event::EventList,
        model::{CompletionErrorCode, CompletionResult, Level, Model, Purpose},
    },
};

use super::{
    acceptance::{self, CompletionVerdict},
    plan::{self, PlanDecision, PlanEnd},
    reason, request,
    settlement::TaskSettlement,
};

/// Plans one task, asks the model until its answer is settled, and returns the outcome.
///
/// # Errors
///
/// `invalid-input`, `not-found`, `denied`: as for a plan; `conflict`: another call committed first;
/// `limit-exceeded`: the context or the search index would have too many parts; errors of the
/// store.
pub(crate) fn run(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    model: &mut dyn Model,
    budget: u32,
    options: &CompactionOptions,
) -> Result<ApplyOutcome> {
    let options = CompactionOptions { requests_max: 1, lease_ms: 0, ..options.clone() };
    let (loaded, decision) = plan::decide_next(session, call, budget, &options)?;
    let stored_tokens = int::saturate_tokens(loaded.head.context.tokens);
    let (planned, sweep) = match decision {
        PlanDecision::Ended(PlanEnd { reason, sweep, .. }) => {
            return Ok(build_idle_outcome(reason, sweep, stored_tokens));
        }
        PlanDecision::Tasks(tasks) => {
            let sweep = tasks.sweep.encode();
            let Some(planned) = tasks.planned.into_iter().next() else {
                let reason = reason::NO_ELIGIBLE_CHUNK;
                return Ok(build_idle_outcome(reason, String::new(), stored_tokens));
            };
            (planned, sweep)
        }
    };
    let mut settlement = TaskSettlement::open(session, call, planned.task, None)?;
    let head = &settlement.loaded.head;
    let tokens = int::saturate_tokens(head.context.tokens);
    let splice = settlement.locate_sources(session)?;
    let Some(splice) = splice.filter(|_| settlement.is_current()) else {
        return Ok(build_idle_outcome(reason::CONFLICT, sweep, tokens));
    };
    let previous = splice.read_previous(session, call, head, settlement.task.depth)?;
    let mut findings = planned.attempts.findings;
    let mut outcome = loop {
        let task = settlement.task.clone();
        let (sources, previous) = (&splice.gathered, previous.as_deref());
        let request = request::build_request(call.config, &task, sources, previous, &findings);
        let completion = match model.complete(&request) {
            CompletionResult::Done(completion) => completion,
            CompletionResult::Failed(error) => {
                let Some(next) = settlement.show_less(error.code, &splice) else {
                    break settlement.settle_failure(session, &splice, error.code)?;
                };
                settlement.task = next;
                continue;
            }
        };
        if settlement.is_remake_without_model(&completion) {
            break settlement.record_model_failure(session, CompletionErrorCode::Unavailable)?;
        }
        match acceptance::judge_completion(&task, &completion, &splice.gathered) {
            CompletionVerdict::Retry { rule, level, findings: found } => {
                findings.clone_from(&found);
                if settlement.reject_answer(&completion, rule, level, found) {
                    break settlement.commit_pause(session)?;
                }
            }
            CompletionVerdict::Fallback { rule, findings } => {
                settlement.report_rejection(rule, &findings);
                break settlement.fall_back(session, &splice, Some(&completion))?;
            }
            CompletionVerdict::Accept(accepted) => {
                break settlement.commit_accepted(session, &splice, &completion, accepted)?;
            }
        }
    };
    let failed = outcome.applied == ApplyStatus::Refused && outcome.reason != reason::NO_PROGRESS;
    outcome.more = !failed;
    outcome.sweep = if failed { String::new() } else { sweep };
    Ok(outcome)
}

/// Builds the outcome of a pass that asked no model.
fn build_idle_outcome(reason: &str, sweep: String, tokens: u32) -> ApplyOutcome {
    ApplyOutcome {
        applied: ApplyStatus::Refused,
        reason: reason.into(),
        summary_id: None,
        purpose: Purpose::Leaf,
        depth: 0,
        level: Level::Normal,
        capped: false,
        provisional: false,
        replaces: None,
        tokens_before: tokens,
        tokens_after: tokens,
        more: !sweep.is_empty(),
        next: None,
        sweep,
        warnings: alloc::vec::Vec::new(),
        events_json: EventList::default().into_json(),
    }
}
