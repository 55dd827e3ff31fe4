//! Converts results of the engine to the JSON of vectors.
//!
//! Records become objects with snake_case keys, enums kebab-case strings, absent options null.

use lcm_text::types::{
    api::{
        ApplyOutcome, ApplyStatus, AssembledContext, AssembledItem, Decision, PlanResult,
        PlanStatus, PrefixReport, Receipt, ToolOutcome,
    },
    model::{Completion, CompletionRequest, CompletionResult, Level, Purpose},
};

use crate::{
    facade::arguments::{COMPLETION_ERROR_CODES, FINISHES, LEVELS, PURPOSES},
    json::Json,
};

fn name_of<T: PartialEq>(cases: &[(&str, T)], case: &T) -> Json {
    let (name, _) = cases.iter().find(|(_, other)| other == case).expect("every case is listed");
    Json::from(*name)
}

fn strings(texts: Vec<String>) -> Json {
    Json::Array(texts.into_iter().map(Json::String).collect())
}

/// Returns the name of a purpose.
#[must_use]
pub fn purpose(purpose: Purpose) -> Json {
    name_of(&PURPOSES, &purpose)
}

/// Returns the name of a level.
#[must_use]
pub fn level(level: Level) -> Json {
    name_of(&LEVELS, &level)
}

/// Converts the result of `append`.
#[must_use]
pub fn receipt(receipt: Receipt) -> Json {
    Json::object([
        ("revision", receipt.revision.into()),
        ("ingested", receipt.ingested.into()),
        ("skipped", receipt.skipped.into()),
        ("seq_first", receipt.seq_first.into()),
        ("seq_last", receipt.seq_last.into()),
        ("seq_seen", receipt.seq_seen.into()),
        ("context_tokens", receipt.context_tokens.into()),
        ("warnings", strings(receipt.warnings)),
        ("events_json", receipt.events_json.into()),
    ])
}

/// Converts the result of `evaluate` to JSON: whether compaction is due.
#[must_use]
pub fn decision(decision: Decision) -> Json {
    Json::object([
        ("due", decision.due.into()),
        ("must", decision.must.into()),
        ("reason", decision.reason.into()),
        ("tokens", decision.tokens.into()),
        ("threshold", decision.threshold.into()),
        ("explanation_json", decision.explanation_json.into()),
    ])
}

/// Converts the result of `plan`.
#[must_use]
pub fn plan_result(plan: PlanResult) -> Json {
    let status = match plan.status {
        PlanStatus::NothingDue => "nothing-due",
        PlanStatus::NeedsCompletions => "needs-completions",
        PlanStatus::Stopped => "stopped",
    };
    Json::object([
        ("status", status.into()),
        ("reason", plan.reason.into()),
        ("revision", plan.revision.into()),
        ("requests", Json::Array(plan.requests.into_iter().map(request).collect())),
        ("sweep", plan.sweep.into()),
    ])
}

/// Converts a completion request.
#[must_use]
pub fn request(request: CompletionRequest) -> Json {
    Json::object([
        ("id", request.id.into()),
        ("purpose", purpose(request.purpose)),
        ("level", level(request.level)),
        ("system", request.system.into()),
        ("prompt", request.prompt.into()),
        ("input_tokens", request.input_tokens.into()),
        ("output_tokens_max", request.output_tokens_max.into()),
        ("temperature_permille", request.temperature_permille.into()),
        ("model", request.model.into()),
    ])
}

/// Converts a completion.
#[must_use]
pub fn completion(completion: &Completion) -> Json {
    Json::object([
        ("text", completion.text.as_str().into()),
        ("finish", name_of(&FINISHES, &completion.finish)),
        ("model", completion.model.as_str().into()),
        ("input_tokens", completion.input_tokens.into()),
        ("output_tokens", completion.output_tokens.into()),
    ])
}

/// Converts the result of a completion request.
#[must_use]
pub fn completion_result(result: &CompletionResult) -> Json {
    match result {
        CompletionResult::Done(done) => Json::object([("done", completion(done))]),
        CompletionResult::Failed(error) => Json::object([(
            "failed",
            Json::object([
                ("code", name_of(&COMPLETION_ERROR_CODES, &error.code)),
                ("message", error.message.as_str().into()),
                ("retry_after_ms", error.retry_after_ms.into()),
            ]),
        )]),
    }
}

/// Converts the result of `apply` or `run`.
#[must_use]
pub fn outcome(outcome: ApplyOutcome) -> Json {
    let applied = match outcome.applied {
        ApplyStatus::Committed => "committed",
        ApplyStatus::Retry => "retry",
        ApplyStatus::Stale => "stale",
        ApplyStatus::Refused => "refused",
    };
    Json::object([
        ("applied", applied.into()),
        ("reason", outcome.reason.into()),
        ("summary_id", outcome.summary_id.into()),
        ("purpose", purpose(outcome.purpose)),
        ("depth", outcome.depth.into()),
        ("level", level(outcome.level)),
        ("capped", outcome.capped.into()),
        ("provisional", outcome.provisional.into()),
        ("replaces", outcome.replaces.as_deref().into()),
        ("tokens_before", outcome.tokens_before.into()),
        ("tokens_after", outcome.tokens_after.into()),
        ("more", outcome.more.into()),
        ("next", outcome.next.map(request).into()),
        ("sweep", outcome.sweep.into()),
        ("warnings", strings(outcome.warnings)),
        ("events_json", outcome.events_json.into()),
    ])
}

/// Converts an assembled context.
#[must_use]
pub fn assembled(assembled: AssembledContext) -> Json {
    Json::object([
        ("messages_json", assembled.messages_json.into()),
        ("system", assembled.system.into()),
        ("tokens", assembled.tokens.into()),
        ("summaries", assembled.summaries.into()),
        ("fresh_tail_messages", assembled.fresh_tail_messages.into()),
        ("evicted", assembled.evicted.into()),
        ("items", Json::Array(assembled.items.into_iter().map(item).collect())),
        ("explanation_text", assembled.explanation_text.into()),
        ("prefix", prefix(assembled.prefix)),
        ("warnings", strings(assembled.warnings)),
    ])
}

fn item(item: AssembledItem) -> Json {
    Json::object([
        ("id", item.id.into()),
        ("kind", item.kind.into()),
        ("included", item.included.into()),
        ("why", item.why.into()),
        ("tokens", item.tokens.into()),
        ("seq_first", item.seq_first.into()),
        ("seq_last", item.seq_last.into()),
    ])
}

fn prefix(prefix: PrefixReport) -> Json {
    Json::object([
        ("stable_tokens", prefix.stable_tokens.into()),
        ("broken_by", prefix.broken_by.into()),
        ("broken_why", prefix.broken_why.into()),
        ("breakpoints", prefix.breakpoints.into_iter().map(Json::from).collect::<Vec<_>>().into()),
        ("sha256", prefix.sha256.into()),
        ("token", prefix.token.into()),
    ])
}

/// Converts the outcome of a tool call.
#[must_use]
pub fn tool_outcome(outcome: ToolOutcome) -> Json {
    match outcome {
        ToolOutcome::Done(answer) => {
            let (text, is_error) = (answer.text.into(), answer.is_error.into());
            Json::object([("done", Json::object([("text", text), ("is_error", is_error)]))])
        }
        ToolOutcome::NeedsCompletions { requests, continuation, deadline_ms } => {
            let requests = Json::Array(requests.into_iter().map(request).collect());
            let needs = Json::object([
                ("requests", requests),
                ("continuation", continuation.into()),
                ("deadline_ms", deadline_ms.into()),
            ]);
            Json::object([("needs-completions", needs)])
        }
    }
}
