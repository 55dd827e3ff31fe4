//! A provider for the Chat Completions interface of OpenAI or of a compatible server.
//!
//! In: a completion request. Out: the text of the first choice, or a classified failure. If the
//! server refuses a parameter, the request is sent again without it or under its other name.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    CompletionProvider,
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

#[derive(Deserialize)]
struct OpenaiAnswer {
    #[serde(default)]
    choices: Vec<Choice>,
    model: Option<String>,
    usage: Option<OpenaiUsage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    /// A text, an array of parts, or null if the message has only reasoning or a refusal.
    #[serde(default)]
    content: Value,
    refusal: Option<String>,
}

#[derive(Default, Deserialize)]
struct OpenaiUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
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
        let answer: OpenaiAnswer = serde_json::from_slice(&answered.body)
            .map_err(|error| other(&format!("returned no completion: {error}")))?;
        let choice = answer.choices.into_iter().next();
        let Some(choice) = choice else { return Err(other("answered without a choice")) };
        let refused = choice.message.refusal.filter(|text| !text.is_empty());
        let finish = match choice.finish_reason.as_deref() {
            _ if refused.is_some() => Finish::Refusal,
            None | Some("stop" | "eos_token" | "stop_sequence") => Finish::Stop,
            Some("length") => Finish::Length,
            Some("content_filter") => Finish::Refusal,
            Some("tool_calls" | "function_call") => {
                return Err(other("called a tool instead of answering"));
            }
            Some(unknown) => return Err(other(&format!("ended with `{unknown}`"))),
        };
        let text = super::text(&choice.message.content)
            .ok_or_else(|| other("answered with content that is no text"))?;
        let usage = answer.usage.unwrap_or_default();
        let model = answer.model.filter(|model| !model.is_empty());
        Ok(Completion {
            text: refused.unwrap_or(text),
            finish,
            model: self.endpoint.redacted(model.as_ref().unwrap_or(&self.endpoint.model)),
            input_tokens: super::tokens(usage.prompt_tokens),
            output_tokens: super::tokens(usage.completion_tokens),
        })
    }
}

impl CompletionProvider for OpenAi {
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        self.ask(request, cancel).map_or_else(CompletionResult::Failed, CompletionResult::Done)
    }
}
