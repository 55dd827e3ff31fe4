//! Options and report of a compaction.
//!
//! In: a caller's options. Out: the members of a task of `wit/drive.wit`, and its typed result.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    record::work_options,
    work::{Mode, Options},
};

/// How a conversation is compacted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompactOptions {
    /// Tokens of the model's context window that the conversation may use.
    pub budget: u32,
    /// When to act.
    pub mode: Mode,
    /// Whether to act below the threshold, too.
    pub force: bool,
    /// Tokens to reach; `None`: the component's threshold.
    pub target: Option<u32>,
    /// The model whose tokens `budget`, `target` and `observed_tokens` are, once the verb
    /// `calibrate` has reported of it; `None`: they are estimated tokens.
    pub model: Option<String>,
    /// Tokens of the whole prompt as the provider counted them last, what the host adds included;
    /// `None`: unknown. They count until a summary was made: the prompt after it is another.
    pub observed_tokens: Option<u32>,
    /// Completions asked for at the same time; 0 counts as 1.
    pub requests_max: u32,
    /// Whether the component is told that a model refused its key or the content. It leaves one
    /// that does so several times alone for a while; a person who is told each time need not wait.
    pub counts_refusals: bool,
    /// The time of the calls.
    pub clock: Clock,
}

impl CompactOptions {
    /// Sweeps when the context exceeds the threshold of this budget, one completion at a time.
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
            counts_refusals: true,
            clock,
        }
    }

    /// Options of `evaluate`.
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

    /// A task with these options.
    pub(crate) fn task(&self, name: &str, conversation: &str) -> Value {
        let mut task = work_options(&self.plan());
        if let Some(members) = task.as_object_mut() {
            members.insert("task".into(), name.into());
            members.insert("conversation".into(), conversation.into());
            members.insert("budget".into(), self.budget.into());
            members.insert("model".into(), self.model.as_deref().into());
            members.insert("counts_refusals".into(), self.counts_refusals.into());
            members.remove("sweep");
        }
        task
    }
}

/// Further options that name the model whose tokens a call counts in.
#[must_use]
pub fn model_option(model: &str) -> String {
    serde_json::json!({ "model": model }).to_string()
}

/// Further options with the model in them, unless they name one.
pub(crate) fn with_model(extra_json: Option<&str>, model: &str) -> Result<String> {
    let Some(json) = extra_json.filter(|json| !json.is_empty()) else {
        return Ok(model_option(model));
    };
    let mut extra: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json)
        .map_err(|error| {
            Error::new(Code::InvalidInput, format!("`extra_json` is no JSON object: {error}"))
        })?;
    extra.entry("model").or_insert_with(|| model.into());
    Ok(serde_json::Value::Object(extra).to_string())
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum CompactStatus {
    /// It did what was due.
    Done,
    /// Nothing was due.
    NothingToDo,
    /// Something was done, and more would be due.
    Partial,
    /// The model failed, and the conversation fits its budget without it.
    ModelUnavailable,
}

impl CompactStatus {
    /// The status as the command line writes it.
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

/// One summary that was made.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Pass {
    /// Its id.
    pub summary_id: String,
    /// `leaf` or `condensed`.
    pub purpose: String,
    /// Its depth.
    pub depth: u32,
    /// `normal`, `aggressive` or `fallback`.
    pub level: String,
    /// Whether its text was cut to its limit.
    pub capped: bool,
    /// Tokens of the stored context before.
    pub tokens_before: u32,
    /// Tokens of the stored context after.
    pub tokens_after: u32,
}

/// What a compaction did.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct CompactReport {
    /// How it ended.
    pub status: CompactStatus,
    /// Why, from the component's closed list.
    pub reason: String,
    /// The summaries that were made, in order.
    #[serde(default)]
    pub passes: Vec<Pass>,
    /// Answers of the model.
    pub completions: u32,
    /// Tokens of the stored context before.
    pub tokens_before: u32,
    /// Tokens of the stored context after.
    pub tokens_after: u32,
    /// Things worth knowing, each one line.
    #[serde(default)]
    pub warnings: Vec<String>,
}
