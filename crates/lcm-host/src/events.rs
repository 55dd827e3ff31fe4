//! Events of the component and of this host as events of `tracing`, with the target `lcm`.
//!
//! In: an event as `schema/events.json` describes it. Out: an event whose fields are its members.
//! `model-called` has no field `conversation`; the span of its task has the field.

use std::panic::{self, AssertUnwindSafe};

use serde_json::{Value, json};
use tracing::{Level, Span, span::EnteredSpan};

use crate::{
    completion::{OFFLINE_MODEL, error_name},
    record::{finish_name, purpose_name},
    types::{CompletionRequest, CompletionResult},
};

/// Emits an event at a level. `tracing` requires a constant level and constant names of fields.
macro_rules! emit {
    ($level:expr, $event:expr) => {{
        let event = $event;
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        let number = |name: &str| event.get(name).and_then(Value::as_u64);
        let flag = |name: &str| event.get(name).and_then(Value::as_bool);
        tracing::event!(
            target: "lcm",
            $level,
            kind = text("kind"),
            conversation = text("conversation"),
            attempt = number("attempt"),
            call = text("call"),
            capped = flag("capped"),
            context_tokens = number("context_tokens"),
            count = number("count"),
            depth = number("depth"),
            error = text("error"),
            failures = number("failures"),
            findings = event.get("findings").map(ToString::to_string),
            finish = text("finish"),
            input_tokens = number("input_tokens"),
            level = text("level"),
            model = text("model"),
            ms = number("ms"),
            next_attempt_at = text("next_attempt_at"),
            output_tokens = number("output_tokens"),
            output_tokens_max = number("output_tokens_max"),
            owed = flag("owed"),
            provisional = flag("provisional"),
            purpose = text("purpose"),
            reason = text("reason"),
            replaces = text("replaces"),
            revisions = number("revisions"),
            rule = text("rule"),
            seq_first = number("seq_first"),
            seq_last = number("seq_last"),
            stored = flag("stored"),
            summary_id = text("summary_id"),
            tokens = number("tokens"),
            tokens_after = number("tokens_after"),
            tokens_before = number("tokens_before"),
            versions = number("versions"),
        );
    }};
}

/// Emits an event. A panic of the subscriber does not reach the caller: what the event reports has
/// happened.
pub(crate) fn emit_event(event: &Value) {
    // The panic hook has printed the panic.
    let _ = panic::catch_unwind(AssertUnwindSafe(|| emit_at_level(event)));
}

/// Emits an event at its level: a warning if a person should know, a debug event if the event is
/// routine, else an information.
fn emit_at_level(event: &Value) {
    let has_failed = event.get("error").is_some_and(Value::is_string)
        || event.get("failures").and_then(Value::as_u64).is_some_and(|failures| failures > 0);
    match event.get("kind").and_then(Value::as_str).unwrap_or_default() {
        _ if has_failed => emit!(Level::WARN, event),
        "summary-rejected" => emit!(Level::WARN, event),
        "messages-skipped" | "summary-asked" | "model-called" | "conflict-repeated" => {
            emit!(Level::DEBUG, event);
        }
        _ => emit!(Level::INFO, event),
    }
}

/// Emits the event of a call that is repeated after a conflict.
pub(crate) fn emit_repeated_call(call: &str, arguments: &Value, attempt: u32) {
    let conversation = arguments.get("conversation").and_then(Value::as_str).unwrap_or_default();
    emit_event(&json!({"kind": "conflict-repeated", "conversation": conversation, "call": call,
        "attempt": attempt}));
}

/// Enters the span of a task of `wit/drive.wit`; the events of the task belong to the span.
pub(crate) fn enter_task_span(task: &Value) -> EnteredSpan {
    let member = |name: &str| task.get(name).and_then(Value::as_str);
    enter_span(member("task").unwrap_or_default(), member("conversation").unwrap_or_default())
}

/// Enters the span of a task with this name.
pub(crate) fn enter_span(task: &str, conversation: &str) -> EnteredSpan {
    tracing::info_span!(target: "lcm", "task", task, conversation).entered()
}

/// Returns the span of the task that the thread works on.
pub(crate) fn current_span() -> Span {
    Span::current()
}

/// Emits the event of one call of a model, unless the component made the text. `ms`: duration of
/// the call.
pub(crate) fn emit_model_call(
    request: &CompletionRequest,
    attempt: u32,
    answer: &CompletionResult,
    ms: u128,
) {
    let (done, failed) = match answer {
        CompletionResult::Done(done) if done.model == OFFLINE_MODEL => return,
        CompletionResult::Done(done) => (Some(done), None),
        CompletionResult::Failed(failed) => (None, Some(failed)),
    };
    emit_event(&json!({
        "kind": "model-called",
        "purpose": purpose_name(request.purpose),
        "attempt": attempt,
        "model": done.map(|done| &done.model).or(request.model.as_ref()),
        "ms": u64::try_from(ms).unwrap_or(u64::MAX),
        "input_tokens": done.map_or(0, |done| done.input_tokens),
        "output_tokens": done.map_or(0, |done| done.output_tokens),
        "finish": done.map(|done| finish_name(done.finish)),
        "error": failed.map(|failed| error_name(failed.code)),
    }));
}
