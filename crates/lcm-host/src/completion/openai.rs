//! A provider for the Chat Completions interface of OpenAI or of a compatible server.
//!
//! In: a completion request. Out: the text of the first choice, or a classified failure. If the
//! server refuses a parameter, the request is sent again without it or under its other name.

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
        Finish,
    },
};

const DEFAULTS: Defaults =
    Defaults { scheme: "openai", base: "https://api.openai.com/v1", variable: "OPENAI_API_KEY" };
/// Name of the output limit at OpenAI, whose newer models refuse [`OLDER_LIMIT`].
const LIMIT: &str = "max_completion_tokens";
/// Name of the output limit at other servers.
const OLDER_LIMIT: &str = "max_tokens";
const TEMPERATURE: &str = "temperature";
/// Most HTTP requests for one completion: the first, and one after each of two refused parameters.
const EXCHANGES_MAX: u32 = 3;

/// A model behind the Chat Completions interface.
///
/// Requests to OpenAI have `max_completion_tokens`, requests to other base URLs `max_tokens`. If
/// the server refuses this name or `temperature`, the request is sent again with the other name or
/// without a temperature. All later requests are sent in the same way.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    older_limit: AtomicBool,
    no_temperature: AtomicBool,
}

impl OpenAi {
    /// Parses `MODEL[@BASE-URL]`; a base URL without a path gets `/v1`, and the default is OpenAI's
    /// own. Requests to the default base URL fail with `auth` if there is no key.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no model, an invalid base URL, a base URL with credentials, or a key with
    /// other characters than visible ASCII.
    pub fn parse(text: &str, key: Option<&str>) -> Result<Self> {
        let endpoint = Endpoint::parse(&DEFAULTS, text, key)?;
        let older_limit = AtomicBool::new(!endpoint.official);
        Ok(Self { endpoint, older_limit, no_temperature: AtomicBool::new(false) })
    }

    /// Sets the time limit of an HTTP request up to the end of its answer; the default is a minute.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.endpoint.set_timeout(timeout);
        self
    }

    fn body(&self, request: &CompletionRequest) -> Value {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        messages.push(json!({"role": "user", "content": request.prompt}));
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.endpoint.model));
        body.insert("messages".to_owned(), Value::Array(messages));
        body.insert(self.limit_name().to_owned(), json!(request.output_tokens_max));
        if !self.no_temperature.load(Ordering::Relaxed) {
            body.insert(TEMPERATURE.to_owned(), super::temperature(request));
        }
        Value::Object(body)
    }

    fn limit_name(&self) -> &'static str {
        if self.older_limit.load(Ordering::Relaxed) { OLDER_LIMIT } else { LIMIT }
    }

    /// Drops or renames the parameter that the server refused, for all later requests. Returns
    /// false if the server did not refuse a parameter of `sent`.
    fn adapt(&self, sent: &Value, answered: &Answered) -> bool {
        let refused = |name: &str| sent.get(name).is_some() && rejection::refuses(answered, name);
        if refused(TEMPERATURE) {
            self.no_temperature.store(true, Ordering::Relaxed);
        } else if refused(LIMIT) {
            self.older_limit.store(true, Ordering::Relaxed);
        } else if refused(OLDER_LIMIT) {
            self.older_limit.store(false, Ordering::Relaxed);
        } else {
            return false;
        }
        true
    }

    fn ask(
        &self,
        request: &CompletionRequest,
        cancel: &Cancel,
    ) -> std::result::Result<Completion, CompletionError> {
        if let Some(error) = self.endpoint.missing_key(DEFAULTS.variable) {
            return Err(error);
        }
        let url = self.endpoint.url("/chat/completions");
        let key = self.endpoint.key().map(|key| ("authorization", format!("Bearer {key}")));
        let headers: Vec<_> = key.into_iter().collect();
        let mut exchanges_left = EXCHANGES_MAX;
        loop {
            exchanges_left -= 1;
            let body = self.body(request);
            let answered = self.endpoint.post(&url, &headers, &body, cancel)?;
            if rejection::status(&answered) == 200 {
                return self.read(&answered);
            }
            if exchanges_left == 0 || !self.adapt(&body, &answered) {
                return Err(rejection::failure(&self.endpoint, &answered));
            }
        }
    }

    fn read(&self, answered: &Answered) -> std::result::Result<Completion, CompletionError> {
        let other = |what: &str| self.endpoint.failure(CompletionErrorCode::Other, what);
        let answer = body::read_json(&answered.body);
        let answer = answer.ok_or_else(|| other("returned no completion"))?;
        let choice = answer.pointer("/choices/0");
        let choice = choice.ok_or_else(|| other("answered without a choice"))?;
        let message = choice.get("message").unwrap_or(choice);
        let refused = message.get("refusal").and_then(Value::as_str);
        let refused = refused.filter(|text| !text.is_empty()).map(str::to_owned);
        let finish = match refused {
            Some(_) => Finish::Refusal,
            None => self.endpoint.check_finish(choice.get("finish_reason"))?,
        };
        // A text, an array of parts, or null if the message has only reasoning or a refusal.
        let text = super::text(message.get("content").unwrap_or(&Value::Null))
            .ok_or_else(|| other("answered with content that is no text"))?;
        let count = |name: &str| body::read_count(answer.pointer(name));
        Ok(Completion {
            text: refused.unwrap_or(text),
            finish,
            model: self.endpoint.model_name(&answer),
            input_tokens: super::tokens(count("/usage/prompt_tokens")),
            output_tokens: super::tokens(count("/usage/completion_tokens")),
        })
    }
}

impl CompletionProvider for OpenAi {
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        self.ask(request, cancel).map_or_else(CompletionResult::Failed, CompletionResult::Done)
    }
}
