//! Classifies HTTP answers without a completion, for the providers `anthropic` and `openai`.
//!
//! In: the status and the body of an answer. Out: a failure with its code and one line. The status
//! decides; for 400, 422 and 500, words of the error object decide, too.

use serde_json::Value;

use super::endpoint::{Answered, Endpoint};
use crate::types::{CompletionError, CompletionErrorCode as Code};

/// Texts in the error of a request that exceeds the model's context window.
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
/// Texts in the error of a request whose content the provider refuses.
const POLICY: [&str; 4] =
    ["content_policy_violation", "content_filter", "content filtering policy", "content_policy"];
/// Texts in the error of a request with a parameter that the provider refuses.
const NOT_TAKEN: [&str; 7] = [
    "unsupported",
    "not supported",
    "does not support",
    "unrecognized",
    "unknown",
    "not permitted",
    "deprecated",
];

/// The content of an error object.
struct Said {
    /// Type, code and message in one text, in lower case.
    all: String,
    /// Message as the provider wrote it; the whole body if there is no message.
    message: String,
    /// Name of the parameter at fault; empty: not named.
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

/// Returns the HTTP status of an answer. Some gateways send an error object with status 200; its
/// numeric `code` is then the status if it is from 400 to 599, otherwise 502.
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
        // Some servers answer 500 to a prompt that exceeds the context window.
        500 if said.has(&TOO_LONG) => Code::ContextTooLong,
        500.. => Code::Unavailable,
        _ => Code::Other,
    };
    let what = format!("answered {status}: {}", said.message);
    let error = endpoint.failure(code, what.trim_end_matches([' ', ':']));
    CompletionError { retry_after_ms: answered.retry_after_ms, ..error }
}

/// Returns whether the provider answered 400 or 422 because of the parameter of this name.
pub(super) fn refuses(answered: &Answered, parameter: &str) -> bool {
    if !matches!(answered.status, 400 | 422) {
        return false;
    }
    let said = Said::of(&answered.body);
    (said.param == parameter || said.all.contains(parameter)) && said.has(&NOT_TAKEN)
}
