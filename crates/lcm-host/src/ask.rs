//! Answers a question from stored messages with the model of the handle.
//!
//! In: a question and its limits. Out: the status of the question, the answer and its citations.
//! The component decides what to read, what to ask the model, and whether to accept the answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    bindings::types::{CompletionErrorCode, CompletionRequest, CompletionResult},
    clock::{Cancel, Clock},
    completion::{WrittenRequest, failed},
    error::{Error, Result},
    events, json,
    lcm::Lcm,
    shapes::{AskStatus, GrantCharge, ModelFailure, WithdrawnId},
};

/// Options of a question: sources, limits and time.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AskOptions {
    /// Words to search for; `None`: the words of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Ids of summaries to answer from. Without `query`, the first search covers only these
    /// summaries and the messages that they cover; messages beside a match are read, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary_ids: Vec<String>,
    /// Most tokens of the answer; `None`: the component's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_tokens_max: Option<u32>,
    /// Most tokens of the sources of one search; the model may ask for a second search. `None`:
    /// `expand_tokens_max` of the configuration, which is also the greatest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u32>,
    /// Whether every conversation of the store is read.
    pub all_conversations: bool,
    /// Whether the conversation is read without its family.
    pub only: bool,
    /// Id of the grant to read with; `None`: no grant limits the reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Time for which the question stays open, in milliseconds; `None`: the component's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Clock that gives the time of each call.
    #[serde(skip)]
    pub clock: Clock,
}

impl AskOptions {
    /// Creates options with the defaults of the component.
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

/// Result of a question.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AskReport {
    /// Status of the question.
    pub status: AskStatus,
    /// Answer of the model; `None`: no accepted answer.
    pub answer: Option<String>,
    /// Ids in the answer that the sources contain, each once, in the order of the answer.
    pub cited_ids: Vec<String>,
    /// Conversation of each of `cited_ids`, in the same order.
    pub cited_conversations: Vec<String>,
    /// Those of `cited_ids` with a mark, as the model was told: withdrawn messages, and summaries
    /// of only such messages; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_ids: Option<Vec<WithdrawnId>>,
    /// Ids in the answer that the sources do not contain.
    pub rejected_ids: Vec<String>,
    /// Conversations of the sources.
    pub source_conversations: Vec<String>,
    /// Number of summaries whose texts are among the sources.
    pub expanded_summaries: u64,
    /// Estimated tokens of the sources.
    pub source_tokens: u64,
    /// Whether some matches were not read, or the answer was cut.
    pub truncated: bool,
    /// Number of completions that the question took, a failed one included.
    pub completions: u32,
    /// Failure of the model; `None`: the model did not fail.
    pub failure: Option<ModelFailure>,
    /// Tokens spent of the grant; `None`: the question used no grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantCharge>,
    /// With `busy`: time at which the other question expires, such as `2026-01-02T03:04:05.000Z`;
    /// `None`: any other status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A step of a question: the requests for the model. Without `continuation` the question ended, and
/// the same JSON is an [`AskReport`].
#[derive(Deserialize)]
struct Asked {
    continuation: Option<String>,
    #[serde(default)]
    requests: Vec<WrittenRequest>,
    /// Milliseconds until the question closes.
    #[serde(default)]
    deadline_ms: u64,
}

#[derive(Serialize)]
struct Question<'a> {
    question: &'a str,
    #[serde(flatten)]
    options: &'a AskOptions,
}

impl Lcm {
    /// Answers a question from stored messages. Other calls of the handle run while the model
    /// works.
    ///
    /// A failure or time-out of the model is a status of the report, not an error.
    ///
    /// # Errors
    ///
    /// - `cancelled`: the caller stopped the question.
    /// - `internal`: the component returned JSON that this host cannot read.
    /// - errors of the component, such as `not-found` for a summary.
    pub fn ask(
        &self,
        conversation: &str,
        question: &str,
        options: &AskOptions,
        cancel: &Cancel,
    ) -> Result<AskReport> {
        cancel.check()?;
        let _span = events::enter_span("ask", conversation);
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
            let complete = |request: WrittenRequest| {
                Ok(self.complete_within(wait, &request.into_request()?, cancel))
            };
            let answers: Result<Vec<CompletionResult>> =
                asked.requests.into_iter().map(complete).collect();
            // A stopped call also passes its answers on; otherwise the question would stay open
            // until its deadline and block other questions.
            step = self.ask_apply(conversation, &continuation, &answers?, now())?;
            cancel.check()?;
        }
    }

    /// Completes a request with the model of the handle. After `wait` the model is asked to stop,
    /// and a failed answer becomes the failure `timeout`. If the caller stopped the work, a failed
    /// answer becomes the failure `other`.
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
                let late = format!("the model did not answer within {} ms", wait.as_millis());
                failed(CompletionErrorCode::Timeout, late)
            }
            _ => answer,
        }
    }
}
