//! Takes messages in: the newest of a conversation, or what is missing of a whole transcript.
//!
//! In: messages in order, of any number and size. Out: what was stored. Which calls are made, and
//! which messages are new, is the component's decision.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bindings::{ingestion::AppendMode, types::Dialect},
    clock::{Cancel, Clock},
    drive::{self, Parts, Progress},
    error::{Error, Result},
    lcm::Lcm,
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
    fn task(&self, name: &str, conversation: &str, messages: &[String]) -> Value {
        let mut task = json!({"task": name, "conversation": conversation,
            "dialect": dialect_name(self.dialect), "append_mode": append_mode_name(self.append_mode),
            "repeat": self.repeat, "refuse_replay": self.refuse_replay, "family": self.family});
        let mut measured = drive::measures(messages);
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

type IngestResult<T> = std::result::Result<T, IngestError>;

impl Lcm {
    /// Takes in a transcript of any length. Every message is read by the component before the
    /// first is stored. `progress` is told how many messages are done.
    ///
    /// # Errors
    ///
    /// - `invalid-input`, with the index: a message that is none; nothing was stored.
    /// - `cancelled`: what was stored before stays, and the next ingest goes on after it.
    /// - `exists`: the transcript was changed among messages that are stored; nothing was stored.
    /// - what the component answers; with `refuse_replay` also its refusal.
    pub fn ingest(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(usize),
    ) -> IngestResult<IngestReport> {
        // Of messages that are all new no transcript is compared.
        let name = if options.append_mode == AppendMode::New { "append" } else { "ingest" };
        let report = self.intake(name, conversation, messages, options, cancel, progress)?;
        progress(messages.len());
        Ok(report)
    }

    /// Takes in the end of a conversation: as [`Lcm::ingest`], but what fits one call and goes on
    /// where the stored messages end is appended without a comparison of the whole.
    pub(crate) fn append_end(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
    ) -> IngestResult<IngestReport> {
        self.intake("append", conversation, messages, options, cancel, &mut |_| {})
    }

    fn intake(
        &self,
        name: &str,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(usize),
    ) -> IngestResult<IngestReport> {
        let each = &mut |told: Progress<'_>| {
            if let Progress::Messages(done) = told {
                progress(done);
            }
        };
        let task = options.task(name, conversation, messages);
        let parts =
            Parts { clock: options.clock, messages, cancel, progress: each, tells_stop: false };
        let outcome = self.drive(&task, parts).map_err(|fault| {
            let error = if fault.index.is_some() { unplaced(fault.error) } else { fault.error };
            IngestError { index: fault.index, error }
        })?;
        let report: Result<IngestReport> = serde_json::from_value(Value::Object(outcome.result))
            .map_err(|error| Error::internal(format!("an intake ended unexpectedly: {error}")));
        Ok(IngestReport { warnings: outcome.warnings, ..report? })
    }
}

/// An error about a message without its place, which the caller says in its own words.
fn unplaced(mut error: Error) -> Error {
    let placed = error.message.strip_prefix("messages[").and_then(|rest| rest.split_once("]: "));
    if let Some((_, reason)) = placed {
        error.message = reason.to_owned();
    }
    error
}
