//! Options and report of a compaction.
//!
//! In: a caller's options. Out: the members of a task of `wit/drive.wit`, and its typed result.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    json,
    record::work_options,
    shapes::ModelFailure,
    work::{Mode, Options},
};

/// Options of a compaction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompactOptions {
    /// Token budget of the conversation in the context window of the model.
    pub budget: u32,
    /// When to compact.
    pub mode: Mode,
    /// Whether to compact below the threshold, despite an open breaker and during a pause.
    pub force: bool,
    /// Target of the context in tokens; `None`: the threshold of the component.
    pub target: Option<u32>,
    /// Model whose tokens `budget`, `target` and `observed_tokens` count, after a report by
    /// `calibrate`; `None`: estimated tokens.
    pub model: Option<String>,
    /// Provider's last token count of the whole prompt, including text added by the host; `None`:
    /// unknown. The number counts until the first summary, which changes the prompt.
    pub observed_tokens: Option<u32>,
    /// Completions requested at the same time; 0 counts as 1.
    pub requests_max: u32,
    /// Passes after which the call plans no further ones; a failure of the model ends a call with
    /// this limit, too. `None`: no limit.
    pub passes_max: Option<u32>,
    /// Whether refusals of the key or the content count for the breaker of the component. The
    /// breaker pauses a model after several refusals; a person who sees each refusal needs no
    /// pause.
    pub counts_refusals: bool,
    /// Time of the calls.
    pub clock: Clock,
}

impl CompactOptions {
    /// Returns options that sweep above the threshold of this budget, one completion at a time.
    #[must_use]
    pub const fn new(budget: u32, clock: Clock) -> Self {
        Self {
            budget,
            mode: Mode::Threshold,
            force: false,
            target: None,
            model: None,
            observed_tokens: None,
            requests_max: 1,
            passes_max: None,
            counts_refusals: true,
            clock,
        }
    }

    /// Returns the options of `evaluate`.
    pub(crate) fn plan(&self) -> Options {
        Options {
            mode: self.mode,
            force: self.force,
            target: self.target,
            observed_tokens: self.observed_tokens,
            requests_max: self.requests_max.max(1),
            lease_ms: 0,
            sweep: None,
            extra_json: self.model.as_deref().map(model_option),
        }
    }

    /// Returns the options of `evaluate` for a conversation that need not exist.
    pub(crate) fn plan_of_new(&self) -> Options {
        let extra = match &self.model {
            Some(model) => json!({ "may_be_new": true, "model": model }),
            None => json!({ "may_be_new": true }),
        };
        Options { extra_json: Some(extra.to_string()), ..self.plan() }
    }

    /// Returns a task with these options.
    pub(crate) fn build_task(&self, name: &str, conversation: &str) -> Value {
        let mut options = work_options(&self.plan());
        if let Some(options) = options.as_object_mut() {
            options.remove("sweep");
            // The component says how long a task leases its requests.
            options.remove("lease_ms");
        }
        let task = json!({"task": name, "conversation": conversation, "budget": self.budget,
            "model": self.model, "counts_refusals": self.counts_refusals,
            "passes_max": self.passes_max});
        json::merge(options, task)
    }

    /// Returns the task of the compaction of a turn.
    pub(crate) fn build_turn_task(&self, conversation: &str) -> Value {
        json::merge(self.build_task("compact", conversation), json!({"turn": true}))
    }
}

/// Returns `extra_json` that names the model whose tokens a call counts.
#[must_use]
pub fn model_option(model: &str) -> String {
    serde_json::json!({ "model": model }).to_string()
}

/// Adds an option to `extra_json`, unless the option is set.
pub(crate) fn with_option(
    extra_json: Option<&str>,
    name: &str,
    value: serde_json::Value,
) -> Result<String> {
    let json = extra_json.filter(|json| !json.is_empty()).unwrap_or("{}");
    let mut extra: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json)
        .map_err(|error| {
            Error::new(Code::InvalidInput, format!("`extra_json` must be a JSON object: {error}"))
        })?;
    extra.entry(name).or_insert(value);
    Ok(serde_json::Value::Object(extra).to_string())
}

/// Status of a compaction.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum CompactStatus {
    /// Summaries were made, and nothing more is due.
    Done,
    /// Nothing was due.
    NothingToDo,
    /// More is due, the compaction stopped for another reason than the model, which `reason` names,
    /// or a summary was made in place of a model that failed.
    Partial,
    /// The compaction stopped because the model failed, or because of its open breaker. Summaries
    /// may have been made before. No summary was made in place of the model.
    ModelUnavailable,
}

impl CompactStatus {
    /// Returns the name of the status, as in JSON, such as `nothing-to-do`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NothingToDo => "nothing-to-do",
            Self::Partial => "partial",
            Self::ModelUnavailable => "model-unavailable",
        }
    }
}

/// A pass: one summary made and committed. Only a summary that replaces a provisional one may leave
/// the context as long as it was, or lengthen it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Pass {
    /// Id of the summary.
    pub summary_id: String,
    /// `leaf` or `condensed`.
    pub purpose: String,
    /// Depth of the summary.
    pub depth: u32,
    /// `normal`, `aggressive` or `fallback`.
    pub level: String,
    /// Whether the text was cut to its token limit.
    pub capped: bool,
    /// Whether the summary is provisional: a later compaction makes it again.
    pub provisional: bool,
    /// Id of the provisional summary that was made again; `None`: none was.
    pub replaces: Option<String>,
    /// Tokens of the stored context before the pass.
    pub tokens_before: u32,
    /// Tokens of the stored context after the pass.
    pub tokens_after: u32,
}

/// Result of a compaction.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct CompactReport {
    /// Status of the compaction.
    pub status: CompactStatus,
    /// Reason of the end, from the closed list of the component.
    pub reason: String,
    /// Passes, in order.
    #[serde(default)]
    pub passes: Vec<Pass>,
    /// Number of answers of the model. Failures and repeats of a request are not counted; the
    /// hosts for Node and Python count every request.
    pub completions: u32,
    /// Tokens of the stored context before the compaction.
    pub tokens_before: u32,
    /// Tokens of the stored context after the compaction.
    pub tokens_after: u32,
    /// Last failure of a model; `None`: no model failed.
    #[serde(default)]
    pub failure: Option<ModelFailure>,
    /// Warnings, one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
}
