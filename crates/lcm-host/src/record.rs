//! Writes a log of calls for bug reports: one JSON object per line.
//!
//! In: calls of exported functions and of the imported store and model. Out: the lines of a file.
//! Calls of exported functions have the form of the golden vectors. Calls of the store have sizes
//! in place of values; a call of the model has only the id of its request.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    bindings::{
        context, ingestion,
        types::{CompletionResult, Dialect, Finish, Level, Purpose},
        work,
    },
    error::{Code, Error, Result},
};

/// A writer of a log of calls. Clones write to the same file.
#[derive(Clone)]
pub struct Recorder {
    log: Arc<Mutex<Log>>,
}

struct Log {
    file: BufWriter<File>,
    failure: Option<String>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// Creates an empty log; replaces an existing file.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the file is not writable.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|error| {
            let message = format!("cannot write the record `{}`: {error}", path.display());
            Error::new(Code::InvalidInput, message)
        })?;
        let log = Log { file: BufWriter::new(file), failure: None };
        Ok(Self { log: Arc::new(Mutex::new(log)) })
    }

    /// Writes a line; keeps the first failure for [`Recorder::check`].
    pub(crate) fn line(&self, value: &Value) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writeln!(log.file, "{value}").and_then(|()| log.file.flush());
        if let Err(error) = written {
            log.failure.get_or_insert_with(|| error.to_string());
        }
    }

    /// Returns the first failure of [`Recorder::line`] as an error.
    pub(crate) fn check(&self) -> Result<()> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        match &log.failure {
            Some(failure) => Err(Error::internal(format!("cannot write the record: {failure}"))),
            None => Ok(()),
        }
    }
}

/// Returns the name of a dialect in JSON.
pub(crate) const fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Lcm => "lcm",
        Dialect::Anthropic => "anthropic",
        Dialect::OpenaiChat => "openai-chat",
        Dialect::OpenaiResponses => "openai-responses",
        Dialect::Gemini => "gemini",
        Dialect::AiSdk => "ai-sdk",
        Dialect::Openclaw => "openclaw",
        Dialect::Langchain => "langchain",
        Dialect::OpenaiAgents => "openai-agents",
        Dialect::Auto => "auto",
    }
}

/// Returns the name of a purpose in JSON.
pub(crate) const fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Leaf => "leaf",
        Purpose::Condensed => "condensed",
        Purpose::File => "file",
        Purpose::Ask => "ask",
        Purpose::Focus => "focus",
    }
}

/// Returns the name of the reason for which an answer ended, in JSON.
pub(crate) const fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Refusal => "refusal",
    }
}

/// Returns the name of a level in JSON.
pub(crate) const fn level_name(level: Level) -> &'static str {
    match level {
        Level::Normal => "normal",
        Level::Aggressive => "aggressive",
        Level::Fallback => "fallback",
    }
}

/// Returns the name of an append mode in JSON.
pub(crate) const fn append_mode_name(mode: ingestion::AppendMode) -> &'static str {
    match mode {
        ingestion::AppendMode::Transcript => "transcript",
        ingestion::AppendMode::New => "new",
    }
}

pub(crate) fn append_options(options: &ingestion::Options) -> Value {
    json!({"append_mode": append_mode_name(options.append_mode), "partial": options.partial,
        "extra_json": options.extra_json})
}

pub(crate) fn work_options(options: &work::Options) -> Value {
    let mode = match options.mode {
        work::Mode::Threshold => "threshold",
        work::Mode::Incremental => "incremental",
        work::Mode::Sweep => "sweep",
        work::Mode::UntilUnder => "until-under",
    };
    json!({"mode": mode, "force": options.force, "target": options.target,
        "observed_tokens": options.observed_tokens, "requests_max": options.requests_max,
        "lease_ms": options.lease_ms, "sweep": options.sweep, "extra_json": options.extra_json})
}

pub(crate) fn apply_options(options: &work::ApplyOptions) -> Value {
    json!({"fallback_over_tokens": options.fallback_over_tokens,
        "extra_json": options.extra_json})
}

pub(crate) fn assemble_options(options: &context::Options) -> Value {
    let policy = options.policy.map(|policy| match policy {
        context::Policy::Chronological => "chronological",
        context::Policy::PromptAware => "prompt-aware",
        context::Policy::Layered => "layered",
    });
    json!({"policy": policy, "prompt": options.prompt, "reserve_tokens": options.reserve_tokens,
        "live_messages": options.live_messages, "previous": options.previous,
        "explain": options.explain, "extra_json": options.extra_json})
}

pub(crate) fn completion_result(result: &CompletionResult) -> Value {
    match result {
        CompletionResult::Done(done) => {
            let finish = finish_name(done.finish);
            json!({"done": {"text": done.text, "finish": finish, "model": done.model,
                "input_tokens": done.input_tokens, "output_tokens": done.output_tokens}})
        }
        CompletionResult::Failed(failed) => json!({"failed": {
            "code": crate::completion::error_name(failed.code), "message": failed.message,
            "retry_after_ms": failed.retry_after_ms}}),
    }
}
