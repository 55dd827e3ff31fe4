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
    ) -> std::result::Result<IngestReport, IngestError> {
        let identities = self.identify_all(options.dialect, messages, cancel)?;
        let mut report = IngestReport::default();
        let missing = if options.new || messages.is_empty() {
            vec![Range { from: 0, to: messages.len().saturating_sub(1) }]
        } else {
            self.missing(conversation, &identities, options, &mut report)?
        };
        let mut done = 0;
        for range in missing {
            let Some(wanted) = messages.get(range.from..=range.to).filter(|_| !messages.is_empty())
            else {
                continue;
            };
            done = range.from;
            progress(done);
            self.append_all(conversation, wanted, options, cancel, &mut report, &mut |count| {
                done += count;
                progress(done);
            })?;
        }
        progress(messages.len().max(done));
        if report.revision == 0 {
            // No call was made: an empty one writes nothing and says how things stand.
            let now = options.clock.now_ms();
            let receipt =
                self.append(conversation, options.dialect, &[], &options.append(), now)?;
            report.add(receipt);
        }
        let accounted = report.ingested.saturating_add(report.skipped);
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        report.skipped = report.skipped.saturating_add(count.saturating_sub(accounted));
        Ok(report)
    }

    /// The identity of every message, as the component computes it.
    fn identify_all(
        &self,
        dialect: Dialect,
        messages: &[String],
        cancel: &Cancel,
    ) -> std::result::Result<Vec<Box<RawValue>>, IngestError> {
        let mut identities = Vec::with_capacity(messages.len());
        let mut rest = messages;
        while !rest.is_empty() {
            cancel.check()?;
            let (batch, after) = rest.split_at(batch_length(rest));
            let text = match self.identify(dialect, batch) {
                Ok(text) => text,
                Err(error) => {
                    return Err(self.locate(dialect, batch, identities.len(), error));
                }
            };
            let batch_identities: Vec<Box<RawValue>> = json::read("ingest.identify", &text)?;
            if batch_identities.len() != batch.len() {
                let message = "`ingest.identify` answered for another number of messages";
                return Err(Error::internal(message).into());
            }
            identities.extend(batch_identities);
            rest = after;
        }
        Ok(identities)
    }

    /// Finds the first message of a refused batch that is refused alone.
    fn locate(
        &self,
        dialect: Dialect,
        batch: &[String],
        offset: usize,
        refusal: Error,
    ) -> IngestError {
        if !matches!(refusal.code, Code::InvalidInput | Code::LimitExceeded) {
            return IngestError { index: None, error: unplaced(refusal) };
        }
        let at_fault = batch.iter().enumerate().find_map(|(index, message)| {
            let error = self.identify(dialect, std::slice::from_ref(message)).err()?;
            Some(IngestError { index: Some(offset + index), error: unplaced(error) })
        });
        at_fault.unwrap_or(IngestError { index: None, error: refusal })
    }

    fn missing(
        &self,
        conversation: &str,
        identities: &[Box<RawValue>],
        options: &IngestOptions,
        report: &mut IngestReport,
    ) -> Result<Vec<Range>> {
        let entries = json::array(identities.iter().map(AsRef::as_ref));
        let transcript = format!(r#"{{"entries":{entries}}}"#);
        let text = self.reconcile(conversation, &transcript, options.clock.now_ms())?;
        let reconciled: Reconciled = json::read("ingest.reconcile", &text)?;
        report.warn(reconciled.warnings);
        Ok(reconciled.missing)
    }

    fn append_all(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
        report: &mut IngestReport,
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let mut rest = messages;
        while let Some(first) = rest.first() {
            cancel.check()?;
            let append = |batch: &[String]| {
                let now = options.clock.now_ms();
                self.append(conversation, options.dialect, batch, &options.append(), now)
            };
            let receipt = if first.len() > BATCH_BYTES_MAX {
                let upload = self.stage_all(conversation, first, options, cancel)?;
                append(&[format!("@upload {upload}")])?
            } else {
                let (batch, _) = rest.split_at(batch_length(rest));
                append(batch)?
            };
            let taken = u64::from(receipt.ingested) + u64::from(receipt.skipped);
            let taken = usize::try_from(taken).unwrap_or(usize::MAX);
            if taken == 0 {
                return Err(Error::internal("`ingest.append` took none of the messages"));
            }
            report.add(receipt);
            progress(taken.min(rest.len()));
            rest = rest.get(taken..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Hands over one message in pieces; returns the name of the upload.
    fn stage_all(
        &self,
        conversation: &str,
        message: &str,
        options: &IngestOptions,
        cancel: &Cancel,
    ) -> Result<String> {
        let digest = Sha256::digest(message.as_bytes());
        let upload: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut offset = 0;
        while offset < message.len() {
            cancel.check()?;
            let end = message.floor_char_boundary(offset.saturating_add(PIECE_BYTES_MAX));
            let unexpected = || Error::internal("`ingest.stage` answered an unexpected offset");
            let piece = message.get(offset..end).ok_or_else(unexpected)?;
            let at = u64::try_from(offset).map_err(|_| unexpected())?;
            let now = options.clock.now_ms();
            let next = self.stage(conversation, &upload, at, piece, now)?;
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
