//! A provider for the Messages interface of Anthropic or of a compatible server.
//!
//! In: a completion request. Out: the text blocks of the answer, joined, or a classified failure.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::{
    CompletionProvider, body,
    endpoint::{Answered, Defaults, Endpoint},
    rejection,
};
use crate::{
    clock::Cancel,
    error::Result,
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
    },
};

const DEFAULTS: Defaults = Defaults {
    scheme: "anthropic",
    base: "https://api.anthropic.com/v1",
    variable: "ANTHROPIC_API_KEY",
};
/// Version of the interface, sent with each request.
const VERSION: &str = "2023-06-01";
const TEMPERATURE: &str = "temperature";

/// A model behind the Messages interface. If the server refuses the parameter `temperature`, the
/// request is sent again without a temperature. All later requests are sent in the same way.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
    no_temperature: AtomicBool,
}

impl Anthropic {
    /// Parses `MODEL[@BASE-URL]`; the base URL may omit `/v1`, and by default is Anthropic's own.
    /// Requests to the default base URL fail with `auth` if there is no key.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no model, an invalid base URL, a base URL with credentials, or a key with
    /// other characters than visible ASCII.
    pub fn parse(text: &str, key: Option<&str>) -> Result<Self> {
        let endpoint = Endpoint::parse(&DEFAULTS, text, key)?;
        Ok(Self { endpoint, no_temperature: AtomicBool::new(false) })
    }

    /// Sets the time limit of a request up to the end of its answer; the default is a minute.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.endpoint.set_timeout(timeout);
        self
    }

    fn url(&self) -> String {
        let base = self.endpoint.url("");
        let version = if base.ends_with("/v1") { "" } else { "/v1" };
        format!("{base}{version}/messages")
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let key = self.endpoint.key().map(|key| ("x-api-key", key.to_owned()));
        let version = ("anthropic-version", VERSION.to_owned());
        key.into_iter().chain([version]).collect()
    }

    fn body(&self, request: &CompletionRequest) -> Value {
        let messages = json!([{"role": "user", "content": request.prompt}]);
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.endpoint.model));
        body.insert("max_tokens".to_owned(), json!(request.output_tokens_max));
        body.insert("messages".to_owned(), messages);
        if !request.system.is_empty() {
            body.insert("system".to_owned(), json!(request.system));
        }
        if !self.no_temperature.load(Ordering::Relaxed) {
            body.insert(TEMPERATURE.to_owned(), super::temperature(request));
        }
        Value::Object(body)
    }

    fn ask(
        &self,
        request: &CompletionRequest,
        cancel: &Cancel,
    ) -> std::result::Result<Completion, CompletionError> {
        if let Some(error) = self.endpoint.missing_key(DEFAULTS.variable) {
            return Err(error);
        }
        let (url, headers) = (self.url(), self.headers());
        let body = self.body(request);
        let mut answered = self.endpoint.post(&url, &headers, &body, cancel)?;
        if body.get(TEMPERATURE).is_some() && rejection::refuses(&answered, TEMPERATURE) {
            self.no_temperature.store(true, Ordering::Relaxed);
            answered = self.endpoint.post(&url, &headers, &self.body(request), cancel)?;
        }
        if rejection::status(&answered) == 200 {
            self.read(&answered)
        } else {
            Err(rejection::failure(&self.endpoint, &answered))
        }
    }

    fn read(&self, answered: &Answered) -> std::result::Result<Completion, CompletionError> {
        let other = |what: &str| self.endpoint.failure(CompletionErrorCode::Other, what);
        let answer = body::read_json(&answered.body);
        let content = answer.as_ref().and_then(|answer| answer.get("content"));
        let (Some(answer), Some(content)) = (&answer, content) else {
            return Err(other("returned no completion"));
        };
        let finish = self.endpoint.check_finish(answer.get("stop_reason"))?;
        // Content blocks; only text blocks are part of the answer.
        let text =
            super::text(content).ok_or_else(|| other("answered with content that is no text"))?;
        let count = |name: &str| body::read_count(answer.pointer(name));
        // `input_tokens` counts no token that is written to the provider's cache or read from it.
        let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let input = input.iter().map(|name| count(&format!("/usage/{name}")));
        Ok(Completion {
            text,
            finish,
            model: self.endpoint.model_name(answer),
            input_tokens: super::tokens(input.fold(0, u64::saturating_add)),
            output_tokens: super::tokens(count("/usage/output_tokens")),
        })
    }
}

impl CompletionProvider for Anthropic {
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        self.ask(request, cancel).map_or_else(CompletionResult::Failed, CompletionResult::Done)
    }
}
