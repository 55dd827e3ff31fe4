//! Takes a whole transcript in: identify, reconcile, append what is missing.
//!
//! In: messages in order, of any number and size. Out: what was stored. The transcript is cut into
//! calls here, within the bounds that an ingest commit has; which messages are new is the
//! component's decision.

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::{
    bindings::types::Dialect,
    clock::{Cancel, Clock},
    error::{Code, Error, Result},
    ingestion::{Mode, Options, Receipt},
    json,
    lcm::Lcm,
};

/// Messages of one call.
const BATCH_MESSAGES_MAX: usize = 100;
/// Bytes of raw text of one call. A longer message is staged in pieces first.
const BATCH_BYTES_MAX: usize = 512 << 10;
/// Bytes of one staged piece.
const PIECE_BYTES_MAX: usize = 192 << 10;

/// How a transcript is taken in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IngestOptions {
    /// In which shape the messages are.
    pub dialect: Dialect,
    /// Every message is new unless its id or event key is stored.
    pub new: bool,
    /// A transcript that looks like a replay is refused instead of reported.
    pub refuse_replay: bool,
    /// The time of the calls.
    pub clock: Clock,
}

impl IngestOptions {
    /// A transcript in this dialect, of which what is stored is recognised.
    #[must_use]
    pub const fn new(dialect: Dialect, clock: Clock) -> Self {
        Self { dialect, new: false, refuse_replay: false, clock }
    }

    fn append(&self) -> Options {
        let extra_json = self.refuse_replay.then(|| r#"{"refuse_replay":true}"#.to_owned());
        Options { mode: Mode::New, partial: true, extra_json }
    }
}

/// What became of a transcript.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IngestReport {
    /// Messages stored.
    pub ingested: u64,
    /// Messages recognised as stored already, or empty failed turns.
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

/// What `reconcile` answers.
#[derive(Deserialize)]
struct Reconciled {
    missing: Vec<Range>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Indexes from 0, both included.
#[derive(Clone, Copy, Deserialize)]
struct Range {
    from: usize,
    to: usize,
}

impl IngestReport {
    fn add(&mut self, receipt: Receipt) {
        self.ingested += u64::from(receipt.ingested);
        self.skipped += u64::from(receipt.skipped);
        self.seq_first = self.seq_first.or(receipt.seq_first);
        self.seq_last = receipt.seq_last.or(self.seq_last);
        self.context_tokens = u64::from(receipt.context_tokens);
        self.revision = receipt.revision;
        self.warn(receipt.warnings);
    }

    fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
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
    /// - what the component answers; with `refuse_replay` also its refusal.
    pub fn ingest(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(usize),
    ) -> IngestResult<IngestReport> {
        let report = IngestReport::default();
        let mut intake = Intake { lcm: self, conversation, options, cancel, progress, report };
        let identities = intake.identify_all(messages)?;
        let missing = match messages.len().checked_sub(1) {
            None => Vec::new(),
            Some(to) if options.new => vec![Range { from: 0, to }],
            Some(_) => intake.missing(&identities)?,
        };
        for range in missing {
            intake.append_range(messages, range)?;
        }
        if intake.report.revision == 0 {
            // No call was made: an empty one writes nothing and says how things stand.
            let receipt = intake.append(&[])?;
            intake.report.add(receipt);
        }
        (intake.progress)(messages.len());
        let mut report = intake.report;
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        report.skipped = count.saturating_sub(report.ingested);
        Ok(report)
    }
}

/// One transcript on its way in.
struct Intake<'a> {
    lcm: &'a Lcm,
    conversation: &'a str,
    options: &'a IngestOptions,
    cancel: &'a Cancel,
    progress: &'a mut dyn FnMut(usize),
    report: IngestReport,
}

impl Intake<'_> {
    fn now(&self) -> u64 {
        self.options.clock.now_ms()
    }

    /// The identity of every message, as the component computes it.
    fn identify_all(&self, messages: &[String]) -> IngestResult<Vec<Box<RawValue>>> {
        let mut identities = Vec::with_capacity(messages.len());
        let mut rest = messages;
        while !rest.is_empty() {
            self.cancel.check()?;
            let (batch, after) = rest.split_at(batch_length(rest));
            let text = self
                .lcm
                .identify(self.options.dialect, batch)
                .map_err(|error| self.locate(batch, identities.len(), error))?;
            let of_batch: Vec<Box<RawValue>> = json::read("ingest.identify", &text)?;
            if of_batch.len() != batch.len() {
                let message = "`ingest.identify` answered for another number of messages";
                return Err(Error::internal(message).into());
            }
            identities.extend(of_batch);
            rest = after;
        }
        Ok(identities)
    }

    /// Finds the first message of a refused batch that is refused alone.
    fn locate(&self, batch: &[String], offset: usize, refusal: Error) -> IngestError {
        if !matches!(refusal.code, Code::InvalidInput | Code::LimitExceeded) {
            return IngestError { index: None, error: unplaced(refusal) };
        }
        let at_fault = batch.iter().enumerate().find_map(|(index, message)| {
            let alone = std::slice::from_ref(message);
            let error = self.lcm.identify(self.options.dialect, alone).err()?;
            Some(IngestError { index: Some(offset + index), error: unplaced(error) })
        });
        at_fault.unwrap_or(IngestError { index: None, error: refusal })
    }

    /// The ranges of the transcript that are not stored.
    fn missing(&mut self, identities: &[Box<RawValue>]) -> Result<Vec<Range>> {
        let entries = json::array(identities.iter().map(AsRef::as_ref));
        let transcript = format!(r#"{{"entries":{entries}}}"#);
        let text = self.lcm.reconcile(self.conversation, &transcript, self.now())?;
        let reconciled: Reconciled = json::read("ingest.reconcile", &text)?;
        self.report.warn(reconciled.warnings);
        Ok(reconciled.missing)
    }

    fn append(&self, batch: &[String]) -> Result<Receipt> {
        let options = self.options.append();
        self.lcm.append(self.conversation, self.options.dialect, batch, &options, self.now())
    }

    /// Stores the messages of one range, in as many calls as it takes.
    fn append_range(&mut self, messages: &[String], range: Range) -> IngestResult<()> {
        let mut index = range.from;
        while let Some(rest) = messages.get(index..=range.to).filter(|rest| !rest.is_empty()) {
            (self.progress)(index);
            self.cancel.check()?;
            let receipt = match rest.first() {
                Some(large) if large.len() > BATCH_BYTES_MAX => {
                    let upload = self
                        .stage(large)
                        .map_err(|error| IngestError { index: Some(index), error })?;
                    self.append(&[format!("@upload {upload}")])?
                }
                _ => {
                    let (batch, _) = rest.split_at(batch_length(rest));
                    self.append(batch)?
                }
            };
            let taken = u64::from(receipt.ingested) + u64::from(receipt.skipped);
            if taken == 0 {
                let message = "`ingest.append` took none of the messages";
                return Err(Error::internal(message).into());
            }
            self.report.add(receipt);
            index = index.saturating_add(usize::try_from(taken).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    /// Hands over one message in pieces; returns the name of the upload.
    fn stage(&self, message: &str) -> Result<String> {
        let digest = Sha256::digest(message.as_bytes());
        let upload: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let unexpected = || Error::internal("`ingest.stage` answered an unexpected offset");
        let mut offset = 0;
        while offset < message.len() {
            self.cancel.check()?;
            let end = message.floor_char_boundary(offset.saturating_add(PIECE_BYTES_MAX));
            let piece = message.get(offset..end).ok_or_else(unexpected)?;
            let at = u64::try_from(offset).map_err(|_| unexpected())?;
            let next = self.lcm.stage(self.conversation, &upload, at, piece, self.now())?;
            let next = usize::try_from(next).map_err(|_| unexpected())?;
            // More may be there already, from an earlier attempt.
            if next <= offset || next > message.len() {
                return Err(unexpected());
            }
            offset = next;
        }
        Ok(upload)
    }
}

/// An error about the first message of a call, without that place: the caller knows the place
/// within all messages, and says it in its own words.
fn unplaced(mut error: Error) -> Error {
    if let Some(reason) = error.message.strip_prefix("messages[0]: ") {
        error.message = reason.to_owned();
    }
    error
}

/// How many messages from the front fit one call; a longer one is alone.
fn batch_length(messages: &[String]) -> usize {
    let mut bytes = 0_usize;
    let fitting = messages.iter().take(BATCH_MESSAGES_MAX).take_while(|message| {
        bytes = bytes.saturating_add(message.len());
        bytes <= BATCH_BYTES_MAX
    });
    fitting.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_before_either_bound_and_has_a_message() {
        let of = |sizes: &[usize]| -> Vec<String> {
            sizes.iter().map(|size| "x".repeat(*size)).collect()
        };
        assert_eq!(batch_length(&of(&[1; 250])), 100);
        assert_eq!(batch_length(&of(&[BATCH_BYTES_MAX + 1, 1])), 1);
        assert_eq!(batch_length(&of(&[BATCH_BYTES_MAX, 1])), 1);
        assert_eq!(batch_length(&of(&[BATCH_BYTES_MAX / 2; 3])), 2);
    }
}
