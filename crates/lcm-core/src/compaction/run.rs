//! Run: one pass through a model that may block, with the same decisions as plan and apply.
//!
//! All reads come before the first completion. Rejected answers are asked again at once, so the
//! attempt record is not written; the pass makes the one commit it would make anyway.

use alloc::string::String;

use crate::storage::{keys::Keys, store_session::Reader, summary::StoredLevel};
use lcm_text::{
    base::{error::Result, int},
    config::Config,
    types::{
        api::{Applied, CompactionOptions, Outcome, Timestamp},
        model::{CompletionErrorCode, CompletionResult, Level, Model, Purpose},
    },
};

use super::{
    apply::Desk,
    judge::{self, Verdict},
    plan::{self, Found},
    reason, request,
};

/// Makes one pass.
///
/// # Errors
///
/// As `plan` and `apply`.
pub(crate) fn run(
    reader: &mut Reader<'_>,
    model: &mut dyn Model,
    config: &Config,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<Outcome> {
    let keys = Keys::new(conversation)?;
    let options = CompactionOptions { requests_max: 1, lease_ms: 0, ..options.clone() };
    let (loaded, found) = plan::look(reader, config, &keys, conversation, budget, &options, now)?;
    let (planned, sweep) = match found {
        Found::Ended { reason, sweep, .. } => {
            let tokens = int::tokens_u32(loaded.head.context.tokens);
            return Ok(nothing(reason, sweep, tokens));
        }
        Found::Tasks(tasks) => {
            let sweep = tasks.sweep.token();
            let Some(planned) = tasks.planned.into_iter().next() else {
                let tokens = int::tokens_u32(loaded.head.context.tokens);
                return Ok(nothing(reason::NO_ELIGIBLE_CHUNK, String::new(), tokens));
            };
            (planned, sweep)
        }
    };
    let mut desk = Desk::open(reader, &keys, config, conversation, planned.task, None, now)?;
    let tokens = int::tokens_u32(desk.loaded.head.context.tokens);
    let place = desk.place(reader)?;
    let Some(place) = place.filter(|_| desk.is_current()) else {
        return Ok(nothing(reason::CONFLICT, sweep, tokens));
    };
    let tags = &config.strip_injected_context_tags;
    let previous = place.previous(reader, &keys, &desk.loaded.head, &desk.task, tags)?;
    let mut findings = planned.attempts.findings;
    let mut outcome = loop {
        let task = desk.task.clone();
        let request =
            request::build(config, &task, &place.gathered, previous.as_deref(), &findings);
        let completion = match model.complete(&request) {
            CompletionResult::Done(completion) => completion,
            CompletionResult::Failed(error)
                if error.code == CompletionErrorCode::ContextTooLong =>
            {
                break desk.fall_back(reader, &place, None)?;
            }
            CompletionResult::Failed(error) => {
                break desk.model_failed(reader, config, error.code)?;
            }
        };
        match judge::judge(&task, &completion, &place.gathered) {
            Verdict::Retry { rule, level, findings: found } => {
                findings.clone_from(&found);
                if desk.reject(&completion, rule, level, found) {
                    break desk.pause(reader)?;
                }
            }
            Verdict::Fallback { rule } => break desk.give_up(reader, &place, &completion, rule)?,
            Verdict::Accept(accepted) => {
                let level = StoredLevel::from(task.level);
                let answer = accepted.answer(level, &completion);
                break desk.accept(reader, &place, Some(&completion), answer)?;
            }
        }
    };
    let failed = outcome.applied == Applied::Refused && outcome.reason != reason::NO_PROGRESS;
    outcome.more = !failed;
    outcome.sweep = if failed { String::new() } else { sweep };
    Ok(outcome)
}

/// The outcome of a pass that had nothing to do.
fn nothing(reason: &str, sweep: String, tokens: u32) -> Outcome {
    Outcome {
        applied: Applied::Refused,
        reason: reason.into(),
        summary: None,
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
