//! Classification of a provider's refusal: HTTP status and error object to a failure.
//!
//! In: an answer without a completion. Out: a failure code and one line. The status or the code of
//! the provider decides; words of the message decide only for causes without a code.

use serde_json::Value;

use super::endpoint::{Answered, Endpoint};
use crate::types::{CompletionError, CompletionErrorCode as Code};

/// Words for a request that exceeds the model's context window.
const TOO_LONG: [&str; 9] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "exceeds the available context size",
    "context length exceeded",
    "exceed context limit",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
];
/// Codes and words for refused content.
const POLICY: [&str; 4] =
    ["content_policy_violation", "content_filter", "content filtering policy", "content_policy"];
/// Words for a refused parameter.
const NOT_TAKEN: [&str; 7] = [
    "unsupported",
    "not supported",
    "does not support",
    "unrecognized",
    "unknown",
    "not permitted",
    "deprecated",
];

/// Content of an error object of any shape.
struct Said {
    /// Type, code and message in one text, in lower case.
    all: String,
    message: String,
    param: String,
}

impl Said {
    fn of(body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        // OpenAI and Anthropic: {"error": {...}}; some servers: {"error": "..."} or {"message"}.
        let error = json.get("error").unwrap_or(&json);
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        let message = match error {
            Value::String(text) => text.clone(),
            Value::Object(_) if error.get("message").is_some() => text("message"),
            _ => String::from_utf8_lossy(body).into_owned(),
        };
        let all = format!("{} {} {message}", text("type"), text("code")).to_lowercase();
        Self { all, message, param: text("param") }
    }

    fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.all.contains(word))
    }
}

/// Returns the status of an answer. For an error object with status 200, as some gateways send, the
/// status is the code of the error, or that of a bad gateway.
pub(super) fn status(answered: &Answered) -> u16 {
    if answered.status != 200 {
        return answered.status;
    }
    let json: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
    match json.get("error") {
        None | Some(Value::Null) => 200,
        Some(error) => {
            let code = error.get("code").and_then(Value::as_u64);
            code.and_then(|code| u16::try_from(code).ok())
                .filter(|code| (400..600).contains(code))
                .unwrap_or(502)
        }
    }
}

/// Classifies an answer without a completion.
pub(super) fn failure(endpoint: &Endpoint, answered: &Answered) -> CompletionError {
    let said = Said::of(&answered.body);
    let status = status(answered);
    let code = match status {
        401 | 403 => Code::Auth,
        413 => Code::ContextTooLong,
        400 | 422 if said.has(&TOO_LONG) => Code::ContextTooLong,
        400 | 422 if said.has(&POLICY) => Code::Policy,
        402 | 429 | 529 => Code::RateLimited,
        408 | 504 => Code::Timeout,
        // A server without room for a prompt returns a server error.
        500 if said.has(&TOO_LONG) => Code::ContextTooLong,
        500.. => Code::Unavailable,
        _ => Code::Other,
    };
    let what = format!("answered {status}: {}", said.message);
    let error = endpoint.failure(code, what.trim_end_matches([' ', ':']));
    CompletionError { retry_after_ms: answered.retry_after_ms, ..error }
}

/// Returns whether the provider refused the parameter of this name.
pub(super) fn refuses(answered: &Answered, parameter: &str) -> bool {
    if !matches!(answered.status, 400 | 422) {
        return false;
    }
    let said = Said::of(&answered.body);
    (said.param == parameter || said.all.contains(parameter)) && said.has(&NOT_TAKEN)
}
