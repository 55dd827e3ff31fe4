//! Has a question answered: plan, complete, apply, until it has ended.
//!
//! In: a question and the model of the handle. Out: how it ended, with the answer and the ids that
//! it cites. What is read, what is asked of the model and what its answer is worth is the
//! component's decision; this loop only asks and answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    bindings::types::{CompletionErrorCode, CompletionRequest, CompletionResult, Level},
    clock::{Cancel, Clock},
    completion::{self, failed},
    error::{Error, Result},
    json,
    lcm::Lcm,
    shapes::{AskStatus, GrantCharge, ModelFailure},
};

/// What a question is answered from, and how long that may take.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AskOptions {
    /// What to search for; `None`: the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Ids of summaries to answer from; without `query` only what they stand for is read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary_ids: Vec<String>,
    /// Tokens of the answer; `None`: the component's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_tokens_max: Option<u32>,
    /// Tokens of what is read; `None`: the component's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u32>,
    /// Whether every conversation of the store is read.
    pub all_conversations: bool,
    /// Whether the conversation is read without its family.
    pub only: bool,
    /// Id of the grant on which it is read; `None`: everything may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Milliseconds from the call on after which the model is no longer waited for; `None`: the
    /// component's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The time of the calls.
    #[serde(skip)]
    pub clock: Clock,
}

impl AskOptions {
    /// Everything as the component has it by default.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self {
            query: None,
            summary_ids: Vec::new(),
            answer_tokens_max: None,
            tokens_max: None,
            all_conversations: false,
            only: false,
            grant: None,
            deadline_ms: None,
            clock,
        }
    }
}

/// How a question ended, with what it rests on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AskReport {
    /// How it ended.
    pub status: AskStatus,
    /// What the model answered; `None`: nothing that counts.
    pub answer: Option<String>,
    /// Ids in the answer that the model was shown, each once, in order.
    pub cited_ids: Vec<String>,
    /// Of each cited id the conversation that it is of.
    pub cited_conversations: Vec<String>,
    /// Ids in the answer that the model was not shown.
    pub rejected_ids: Vec<String>,
    /// Conversations that were read.
    pub source_conversations: Vec<String>,
    /// How many summaries were read.
    pub expanded_summaries: u64,
    /// Tokens of what was read.
    pub source_tokens: u64,
    /// Whether something that was found was not read, or the answer was cut.
    pub truncated: bool,
    /// Answers of the model.
    pub completions: u32,
    /// Why the model failed.
    pub failure: Option<ModelFailure>,
    /// What was taken of the grant on which it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantCharge>,
    /// When `busy`: until when the other question is open, such as `2026-01-02T03:04:05.000Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// What the component wants completed.
#[derive(Deserialize)]
struct Asked {
    continuation: Option<String>,
    #[serde(default)]
    requests: Vec<Request>,
    /// For how long the question is open.
    #[serde(default)]
    deadline_ms: u64,
}

/// A completion request as the component writes it in JSON.
#[derive(Deserialize)]
struct Request {
    id: String,
    purpose: String,
    level: String,
    system: String,
    prompt: String,
    input_tokens: u32,
    output_tokens_max: u32,
    temperature_permille: u32,
    model: Option<String>,
}

#[derive(Serialize)]
struct Question<'a> {
    question: &'a str,
    #[serde(flatten)]
    options: &'a AskOptions,
}

impl Lcm {
    /// Has a question answered from what was said. Other calls run while the model thinks.
    ///
    /// A model that fails or takes too long is no error but a status of the report.
    ///
    /// # Errors
    ///
    /// - `cancelled`: the question has ended without an answer.
    /// - what the component answers, such as `not-found` for a summary that is named.
    pub fn ask(
        &self,
        conversation: &str,
        question: &str,
        options: &AskOptions,
        cancel: &Cancel,
    ) -> Result<AskReport> {
        cancel.check()?;
        let now = || options.clock.now_ms();
        let question = serde_json::to_string(&Question { question, options })
            .map_err(|error| Error::internal(format!("cannot write a question: {error}")))?;
        let mut step = self.ask_plan(conversation, &question, now())?;
        loop {
            let asked: Asked = json::read("recall.ask-plan", &step)?;
            let Some(continuation) = asked.continuation else {
                return json::read("recall.ask-plan", &step);
            };
            let wait = Duration::from_millis(asked.deadline_ms);
            let complete =
                |request: Request| Ok(self.complete_within(wait, &request.read()?, cancel));
            let answers: Result<Vec<CompletionResult>> =
                asked.requests.into_iter().map(complete).collect();
            // Also when the work was stopped: else the question would stay open.
            step = self.ask_apply(conversation, &continuation, &answers?, now())?;
            cancel.check()?;
        }
    }

    /// The answer of the model, or that there was none in time.
    pub(crate) fn complete_within(
        &self,
        wait: Duration,
        request: &CompletionRequest,
        cancel: &Cancel,
    ) -> CompletionResult {
        let limited = cancel.within(wait);
        let answer = self.model().complete(request, &limited);
        match &answer {
            CompletionResult::Failed(_) if cancel.is_cancelled() => {
                failed(CompletionErrorCode::Other, "cancelled")
            }
            CompletionResult::Failed(_) if limited.is_cancelled() => {
                let late = format!("there was no answer in {} ms", wait.as_millis());
                failed(CompletionErrorCode::Timeout, late)
            }
            _ => answer,
        }
    }
}

impl Request {
    fn read(self) -> Result<CompletionRequest> {
        let unknown = || Error::internal("`recall.ask-plan` asks for an unknown completion");
        Ok(CompletionRequest {
            id: self.id,
            purpose: completion::purpose(&self.purpose).ok_or_else(unknown)?,
            level: level(&self.level).ok_or_else(unknown)?,
            system: self.system,
            prompt: self.prompt,
            input_tokens: self.input_tokens,
            output_tokens_max: self.output_tokens_max,
            temperature_permille: self.temperature_permille,
            model: self.model,
        })
    }
}

/// Reads a list of completion requests in JSON.
pub(crate) fn read_requests(requests: &Value) -> Result<Vec<CompletionRequest>> {
    let requests: Vec<Request> = json::read("compaction.plan", &requests.to_string())?;
    requests.into_iter().map(Request::read).collect()
}

/// The level of this name.
fn level(name: &str) -> Option<Level> {
    let levels = [Level::Normal, Level::Aggressive, Level::Fallback];
    levels.into_iter().find(|level| crate::record::level_name(*level) == name)
}
