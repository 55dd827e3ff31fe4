//! Run: one pass through a model that may block, with the same decisions as plan and apply.
//!
//! All reads come before the first completion. Rejected answers are asked again at once, so the
//! attempt record is not written; the pass makes the one commit it would make anyway.

use alloc::string::String;

use crate::storage::{keys::ConversationKeys, store_session::StoreSession, summary::StoredLevel};
use lcm_text::{
    base::{error::Result, int},
    config::Config,
    types::{
        api::{ApplyOutcome, ApplyStatus, CompactionOptions, Timestamp},
        model::{CompletionErrorCode, CompletionResult, Level, Model, Purpose},
    },
};

use super::{
    acceptance::{self, CompletionVerdict},
    apply::TaskSettlement,
    plan::{self, PlanDecision},
    reason, request,
};

/// Makes one pass.
///
/// # Errors
///
/// As `plan` and `apply`.
pub(crate) fn run(
    reader: &mut StoreSession<'_>,
    model: &mut dyn Model,
    config: &Config,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<ApplyOutcome> {
    let keys = ConversationKeys::new(conversation)?;
    let options = CompactionOptions { requests_max: 1, lease_ms: 0, ..options.clone() };
    let (loaded, found) =
        plan::decide_next(reader, config, &keys, conversation, budget, &options, now)?;
    let stored_tokens = int::saturate_tokens(loaded.head.context.tokens);
    let (planned, sweep) = match found {
        PlanDecision::Ended { reason, sweep, .. } => {
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
    let mut desk =
        TaskSettlement::open(reader, &keys, config, conversation, planned.task, None, now)?;
    let tokens = int::saturate_tokens(desk.loaded.head.context.tokens);
    let Some(place) = desk.locate_sources(reader)?.filter(|_| desk.is_current()) else {
        return Ok(build_idle_outcome(reason::CONFLICT, sweep, tokens));
    };
    let tags = &config.strip_injected_context_tags;
    let previous = place.read_previous(reader, &keys, &desk.loaded.head, &desk.task, tags)?;
    let mut findings = planned.attempts.findings;
    let mut outcome = loop {
        let task = desk.task.clone();
        let request =
            request::build_request(config, &task, &place.gathered, previous.as_deref(), &findings);
        let completion = match model.complete(&request) {
            CompletionResult::Done(completion) => completion,
            CompletionResult::Failed(error) => {
                break match error.code {
                    CompletionErrorCode::ContextTooLong => desk.fall_back(reader, &place, None)?,
                    code => desk.record_model_failure(reader, config, code)?,
                };
            }
        };
        match acceptance::judge_completion(&task, &completion, &place.gathered) {
            CompletionVerdict::Retry { rule, level, findings: found } => {
                findings.clone_from(&found);
                if desk.reject_answer(&completion, rule, level, found) {
                    break desk.commit_pause(reader)?;
                }
            }
            CompletionVerdict::Fallback { rule } => {
                break desk.reject_and_fall_back(reader, &place, &completion, rule)?;
            }
            CompletionVerdict::Accept(accepted) => {
                let answer = accepted.into_answer(StoredLevel::from(task.level), &completion);
                break desk.commit_summary(reader, &place, Some(&completion), answer)?;
            }
        }
    };
    let failed = outcome.applied == ApplyStatus::Refused && outcome.reason != reason::NO_PROGRESS;
    outcome.more = !failed;
    outcome.sweep = if failed { String::new() } else { sweep };
    Ok(outcome)
}

/// The outcome of a pass that had nothing to do.
fn build_idle_outcome(reason: &str, sweep: String, tokens: u32) -> ApplyOutcome {
    ApplyOutcome {
        applied: ApplyStatus::Refused,
        reason: reason.into(),
        summary_id: None,
        purpose: Purpose::Leaf,
        depth: 0,
        level: Level::Normal,
        capped: false,
        tokens_before: tokens,
        tokens_after: tokens,
        more: !sweep.is_empty(),
        next: None,
        sweep,
        warnings: alloc::vec::Vec::new(),
    }
}
