//! What a provider's refusal means: HTTP status and error object to a classified failure.
//!
//! In: an answer that is no completion. Out: one of the contract's codes and one line. A status or
//! a code of the provider decides; its words decide only where providers have no code for it.

use serde_json::Value;

use super::endpoint::{Answered, Endpoint};
use crate::types::{CompletionError, CompletionErrorCode as Code};

/// Words of providers and local servers for a request that is longer than the model's window.
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
/// Codes and words for content that the provider does not serve.
const POLICY: [&str; 4] =
    ["content_policy_violation", "content_filter", "content filtering policy", "content_policy"];
/// Words for a parameter that this model does not take.
const NOT_TAKEN: [&str; 7] = [
    "unsupported",
    "not supported",
    "does not support",
    "unrecognized",
    "unknown",
    "not permitted",
    "deprecated",
];

/// What an error object says, whatever its shape.
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

/// The status of an answer. Some gateways answer 200 with an error object; then it is the error's
/// code, or that of a bad gateway.
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

/// The failure that an answer without a completion amounts to.
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
        // A server that is out of room for one prompt says so with a server error.
        500 if said.has(&TOO_LONG) => Code::ContextTooLong,
        500.. => Code::Unavailable,
        _ => Code::Other,
    };
    let what = format!("answered {status}: {}", said.message);
    let error = endpoint.failure(code, what.trim_end_matches([' ', ':']));
    CompletionError { retry_after_ms: answered.retry_after_ms, ..error }
}

/// Whether the provider refused the request because of the parameter of this name.
pub(super) fn refuses(answered: &Answered, parameter: &str) -> bool {
    if !matches!(answered.status, 400 | 422) {
        return false;
    }
    let said = Said::of(&answered.body);
    (said.param == parameter || said.all.contains(parameter)) && said.has(&NOT_TAKEN)
}
