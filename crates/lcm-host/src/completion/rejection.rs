//! Classifies HTTP answers without a completion, for the providers `anthropic` and `openai`.
//!
//! In: an answer without a completion. Out: a failure code and one line, by the table of
//! `failure_table` and the order of `docs/model-failures.md`.

use std::time::Duration;

use serde_json::Value;

use super::{
    body,
    endpoint::{Answered, Endpoint, RETRY_AFTER_MAX},
    failure_table::{code_of_code, code_of_status, code_of_words},
};
use crate::types::{CompletionError, CompletionErrorCode as Code};

/// Deepest member of an error object that is read.
const DEPTH_MAX: u32 = 5;
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
#[derive(Default)]
struct Said {
    codes: Vec<String>,
    texts: Vec<String>,
    /// Status that the error names; `None`: no failing status.
    status: Option<u16>,
    /// Pause that the error of a Google model names; `None`: not named, or unreadable.
    retry_after_ms: Option<u64>,
    message: String,
    /// Name of the parameter at fault; empty: not named.
    param: String,
}

impl Said {
    fn of(body: &[u8]) -> Self {
        let json = body::read_json(body).unwrap_or_default();
        // OpenAI and Anthropic: {"error": {...}}; some servers: {"error": "..."} or {"message"};
        // Gemini behind the interface of OpenAI: [{"error": {...}}].
        let json = json.get(0).unwrap_or(&json);
        let error = json.get("error").unwrap_or(json);
        let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = match error {
            Value::String(text) => text.clone(),
            _ => text("message").unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()),
        };
        let mut said = Self { param: text("param").unwrap_or_default(), ..Self::default() };
        said.add(json, 0);
        said.texts.push(message.clone());
        Self { message, ..said }
    }

    /// Adds the codes, texts, status and pause of a part of the body.
    fn add(&mut self, part: &Value, depth: u32) {
        match part {
            Value::String(text) => self.texts.push(text.clone()),
            Value::Array(parts) if depth <= DEPTH_MAX => {
                parts.iter().for_each(|part| self.add(part, depth + 1));
            }
            Value::Object(members) if depth <= DEPTH_MAX => {
                for (key, value) in members {
                    match key.as_str() {
                        "code" | "type" | "status" | "reason" | "error_code" => {
                            self.status = self.status.or_else(|| status_in(value));
                            self.codes.extend(value.as_str().map(str::to_owned));
                        }
                        "message" | "msg" | "detail" | "error_description" | "raw" => {
                            self.texts.extend(value.as_str().map(str::to_owned));
                        }
                        "retryDelay" => self.retry_after_ms = delay_in(value),
                        "error" | "innererror" | "metadata" | "details" => {
                            self.add(value, depth + 1);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns codes and texts in lower case.
    fn all(&self) -> String {
        let parts = self.codes.iter().chain(&self.texts).map(String::as_str);
        parts.collect::<Vec<_>>().join("\n").to_lowercase()
    }
}

/// Returns a status from 400 to 599 that is given as a number or as three digits; `None`: any other
/// value.
fn status_in(value: &Value) -> Option<u16> {
    let digits = || value.as_str().filter(|text| text.len() == 3)?.parse().ok();
    let status = value.as_u64().and_then(|number| u16::try_from(number).ok()).or_else(digits);
    status.filter(|status| (400..600).contains(status))
}

/// Returns seconds such as `34.5s` in milliseconds; `None`: any other value.
fn delay_in(value: &Value) -> Option<u64> {
    let seconds: f64 = value.as_str()?.strip_suffix('s')?.parse().ok()?;
    let delay = Duration::try_from_secs_f64(seconds).ok()?.min(RETRY_AFTER_MAX);
    u64::try_from(delay.as_millis()).ok()
}

/// Returns the HTTP status of an answer: 200 for a completion, which some servers send with 201.
/// Some gateways send an error object with status 200; its numeric `code` is then the status if it
/// is from 400 to 599, otherwise 502.
pub(super) fn status(answered: &Answered) -> u16 {
    if !matches!(answered.status, 200..300) {
        return answered.status;
    }
    let json = body::read_json(&answered.body).unwrap_or_default();
    if !body::has_error(&json) {
        return 200;
    }
    json.pointer("/error/code").and_then(status_in).unwrap_or(502)
}

/// Classifies an answer without a completion.
pub(super) fn failure(endpoint: &Endpoint, answered: &Answered) -> CompletionError {
    let said = Said::of(&answered.body);
    let code = code_of(answered.status, &said);
    let what = format!("answered {}: {}", status(answered), said.message);
    let error = endpoint.failure(code, what.trim_end_matches([' ', ':']));
    let retry_after_ms = answered.retry_after_ms.or(said.retry_after_ms);
    CompletionError { retry_after_ms, ..error }
}

/// Returns the failure of an answer, in the order of `docs/model-failures.md`.
fn code_of(stated: u16, said: &Said) -> Code {
    let failing = [Some(stated), said.status].into_iter().flatten().find(|status| *status >= 400);
    let status = failing.unwrap_or(if stated < 300 { 200 } else { stated });
    let worded = code_of_words(&said.all());
    if matches!(status, 200 | 400 | 413 | 422 | 500) && worded == Some(Code::ContextTooLong) {
        return Code::ContextTooLong;
    }
    if status == 413 {
        return Code::ContextTooLong;
    }
    let known = said.codes.iter().find_map(|code| code_of_code(code));
    let worded = worded.filter(|_| matches!(status, 200 | 400 | 422));
    let by_status = if status == 200 { Some(Code::Unavailable) } else { code_of_status(status) };
    known.or(worded).or(by_status).unwrap_or(Code::Other)
}

/// Returns whether the provider answered 400 or 422 because of the parameter of this name.
pub(super) fn refuses(answered: &Answered, parameter: &str) -> bool {
    if !matches!(answered.status, 400 | 422) {
        return false;
    }
    let said = Said::of(&answered.body);
    let all = said.all();
    let is_named = said.param == parameter || all.contains(parameter);
    is_named && NOT_TAKEN.iter().any(|words| all.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::{endpoint::Defaults, error_name};

    const DEFAULTS: Defaults =
        Defaults { scheme: "openai", base: "https://own.example/v1", variable: "THE_KEY" };

    #[test]
    fn an_answer_means_the_same_as_in_the_packages() {
        let endpoint = Endpoint::parse(&DEFAULTS, "m", None).unwrap();
        let cases = include_str!("../../../../tests/fixtures/model-answers.json");
        let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
        assert!(cases.len() > 50);
        for case in cases {
            let body = match &case["body"] {
                Value::String(text) => text.clone(),
                body => body.to_string(),
            };
            let body = body.into_bytes();
            let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
            let failed = failure(&endpoint, &Answered { status, retry_after_ms: None, body });
            assert_eq!(error_name(failed.code), case["code"], "{}", case["what"]);
            assert_eq!(failed.retry_after_ms, case["body_pause_ms"].as_u64(), "{}", case["what"]);
        }
    }
}
