//! Options, report and error of an intake.
//!
//! In: a caller's options. Out: the members of a task of `wit/drive.wit`, and its typed result.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bindings::{ingestion::AppendMode, types::Dialect},
    clock::Clock,
    drive::measure_messages,
    error::Error,
    record::{append_mode_name, dialect_name},
};

/// How a transcript is taken in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IngestOptions {
    /// In which shape the messages are.
    pub dialect: Dialect,
    /// Whether what is stored already is skipped (`Transcript`), or every message is new unless its
    /// id or event key is stored (`New`).
    pub append_mode: AppendMode,
    /// With `New`: it repeats an ingest of unknown outcome, of the same messages at the same time.
    /// What was stored of it is skipped.
    pub repeat: bool,
    /// A transcript that looks like a replay is refused instead of reported.
    pub refuse_replay: bool,
    /// What is known to be stored; it is not asked for again while that holds.
    pub proven: Option<Proven>,
    /// Key of the family that the conversation is of, or comes to; `None`: as it is.
    pub family: Option<String>,
    /// The time of the calls.
    pub clock: Clock,
}

/// That the first messages of a transcript are stored, as an ingest of them found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Proven {
    /// How many messages.
    pub messages: usize,
    /// The revision that this is true of: it says nothing about a conversation that moved on.
    pub revision: u64,
}

impl IngestOptions {
    /// A transcript in this dialect, of which what is stored is recognised.
    #[must_use]
    pub const fn new(dialect: Dialect, clock: Clock) -> Self {
        let (append_mode, repeat, refuse_replay) = (AppendMode::Transcript, false, false);
        Self { dialect, append_mode, repeat, refuse_replay, proven: None, family: None, clock }
    }

    /// A task with these options, about these messages.
    pub(crate) fn task(&self, name: &str, conversation: &str, messages: &[String]) -> Value {
        let mut task = json!({"task": name, "conversation": conversation,
            "dialect": dialect_name(self.dialect), "append_mode": append_mode_name(self.append_mode),
            "repeat": self.repeat, "refuse_replay": self.refuse_replay, "family": self.family});
        let mut measured = measure_messages(messages);
        if let (Some(task), Some(measured)) = (task.as_object_mut(), measured.as_object_mut()) {
            if let Some(proven) = self.proven.filter(|_| name == "ingest") {
                measured.insert("proven".into(), proven.messages.into());
                measured.insert("proven_revision".into(), proven.revision.into());
            }
            task.append(measured);
        }
        task
    }
}

/// What became of a transcript.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct IngestReport {
    /// Messages stored by this ingest, as far as the store confirmed it.
    pub ingested: u64,
    /// All others: recognised as stored already, or empty failed turns.
    pub skipped: u64,
    /// Seq of the first message stored; `None`: none was.
    pub seq_first: Option<u64>,
    /// Seq of the last message stored; `None`: none was.
    pub seq_last: Option<u64>,
    /// Tokens of the stored context afterwards.
    pub context_tokens: u64,
    /// Revision of the conversation afterwards; 0: there is none.
    pub revision: u64,
    /// Things worth knowing, each one line.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Why a transcript was not taken in.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct IngestError {
    /// Index of the message at fault, from 0; `None`: none is. Then nothing was stored.
    pub index: Option<usize>,
    /// What is wrong.
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
