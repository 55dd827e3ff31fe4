//! Options, report and error of an intake.
//!
//! In: a caller's options. Out: the members of a task of `wit/drive.wit`, and its typed result.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bindings::{ingestion::AppendMode, types::Dialect},
    clock::Clock,
    error::Error,
    record::{append_mode_name, dialect_name},
};

/// Options of an intake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IngestOptions {
    /// Dialect of the messages.
    pub dialect: Dialect,
    /// Whether stored messages are skipped (`Transcript`), or every message is new unless its id or
    /// event key is stored (`New`).
    pub append_mode: AppendMode,
    /// With `New`: whether the call repeats an ingest of unknown outcome, with the same messages
    /// and time. Stored messages of the first call are skipped.
    pub repeat: bool,
    /// Whether a new message without a `timestamp` has no time, such as a message of a file without
    /// times; otherwise its time is that of the clock.
    pub is_undated: bool,
    /// Whether a transcript that looks like a replay is refused instead of reported.
    pub refuse_replay: bool,
    /// Seq up to which the caller has seen every message: the `seq_seen` of its last receipt. If
    /// the list goes another way, what it no longer has is set aside only if the caller has seen
    /// all of that; `None`: nothing is set aside.
    pub seq_seen: Option<u64>,
    /// System prompt beside the messages: a text, a list of content blocks, or an object with
    /// `parts`; null: the leading system messages of the list may fill the slot.
    pub system: Value,
    /// Key of the family that the conversation belongs to or joins; `None`: no change.
    pub family: Option<String>,
    /// Time of the calls.
    pub clock: Clock,
}

impl IngestOptions {
    /// Creates the options of a transcript in this dialect, whose stored messages are skipped.
    #[must_use]
    pub const fn new(dialect: Dialect, clock: Clock) -> Self {
        let (append_mode, repeat, refuse_replay) = (AppendMode::Transcript, false, false);
        Self {
            dialect,
            append_mode,
            repeat,
            is_undated: false,
            refuse_replay,
            seq_seen: None,
            system: Value::Null,
            family: None,
            clock,
        }
    }

    /// Returns the name of the task that stores a whole transcript.
    pub(crate) fn task_name(&self) -> &'static str {
        // Messages that are all new are not compared with the stored ones.
        if self.append_mode == AppendMode::New { "append" } else { "ingest" }
    }

    /// Returns a task with these options and the sizes of these messages.
    pub(crate) fn build_task(&self, name: &str, conversation: &str, messages: &[String]) -> Value {
        let sizes = || messages.iter().map(String::len);
        json!({"task": name, "conversation": conversation,
            "dialect": dialect_name(self.dialect), "append_mode": append_mode_name(self.append_mode),
            "repeat": self.repeat, "undated": self.is_undated,
            "refuse_replay": self.refuse_replay, "family": self.family,
            "seq_seen": self.seq_seen, "system": self.system, "count": messages.len(),
            "bytes": sizes().sum::<usize>(), "bytes_longest": sizes().max().unwrap_or(0)})
    }
}

/// Result of an intake.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct IngestReport {
    /// Messages that this ingest stored and the store confirmed.
    pub ingested: u64,
    /// All other messages: stored before, or failed turns without content.
    pub skipped: u64,
    /// Seq of the first stored message; `None`: no message was stored.
    pub seq_first: Option<u64>,
    /// Seq of the last stored message; `None`: no message was stored.
    pub seq_last: Option<u64>,
    /// Seq up to which the caller has now seen every message; 0: none.
    #[serde(default)]
    pub seq_seen: u64,
    /// Tokens of the stored context after the ingest.
    pub context_tokens: u64,
    /// Revision of the conversation after the ingest; 0: the conversation does not exist.
    pub revision: u64,
    /// Warnings, one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Error of an intake.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct IngestError {
    /// Index of the message at fault, from 0; with the code `invalid-input` nothing was stored.
    /// `None`: no message is at fault.
    pub index: Option<usize>,
    /// The error.
    pub error: Error,
}

/// The result of an intake.
pub(crate) type IngestResult<T> = std::result::Result<T, IngestError>;

impl From<Error> for IngestError {
    fn from(error: Error) -> Self {
        Self { index: None, error }
    }
}

impl From<IngestError> for Error {
    fn from(failure: IngestError) -> Self {
        failure.error
    }
}
