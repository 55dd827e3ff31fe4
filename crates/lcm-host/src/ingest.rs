//! Takes a whole transcript in: identify, reconcile, append what is missing.
//!
//! In: messages in order, of any number and size. Out: what was stored. The transcript is cut into
//! calls here, within the bounds that an ingest commit has; which messages are new is the
//! component's decision. What it decided holds for one revision, which the appends of a transcript
//! name: once the conversation moved on the component is asked again. Messages that are all new are
//! a list, which names none. An append of unknown outcome is repeated as it was.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    bindings::types::Dialect,
    calls::repeating,
    clock::{Cancel, Clock},
    digest::sha256_hex,
    error::{Code, Error, Result},
    ingestion::{Mode, Options, Receipt},
    json,
    lcm::{CONFLICT_RETRIES_MAX, Failure, Lcm, pause},
};

/// Messages of one call.
const BATCH_MESSAGES_MAX: usize = 100;
/// Bytes of raw text of one call. A longer message is staged in pieces first.
const BATCH_BYTES_MAX: usize = 512 << 10;
/// How often a call is repeated while its outcome is unknown.
const UNKNOWN_REPEATS_MAX: u32 = 8;
/// Bytes of one staged piece.
const PIECE_BYTES_MAX: usize = 192 << 10;

/// How a transcript is taken in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IngestOptions {
    /// In which shape the messages are.
    pub dialect: Dialect,
    /// Every message is new unless its id or event key is stored.
    pub new: bool,
    /// With `new`: it repeats an ingest of unknown outcome, of the same messages at the same time.
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
        let (new, repeat, refuse_replay) = (false, false, false);
        Self { dialect, new, repeat, refuse_replay, proven: None, family: None, clock }
    }

    /// Options of a call that relies on this.
    fn append(&self, relied: &Relied) -> Options {
        let mut extra = serde_json::Map::new();
        match relied {
            Relied::Nothing if self.refuse_replay => {
                extra.insert("refuse_replay".to_owned(), true.into());
            }
            Relied::Nothing => {}
            // The plan has also refused a replay.
            Relied::Revision(revision) => {
                extra.insert("revision".to_owned(), (*revision).into());
            }
            Relied::List { name, from } => {
                extra.insert("list".to_owned(), name.as_str().into());
                extra.insert("from".to_owned(), (*from).into());
            }
        }
        if let Some(family) = &self.family {
            extra.insert("family".to_owned(), family.as_str().into());
        }
        let extra_json = (!extra.is_empty()).then(|| serde_json::Value::Object(extra).to_string());
        Options { mode: Mode::New, partial: true, extra_json }
    }

    /// What a piece of a message of so many bytes is staged with, as JSON.
    fn stage(&self, bytes: usize) -> String {
        serde_json::json!({"bytes": bytes, "family": self.family}).to_string()
    }
}

/// What a call of `append` relies on.
#[derive(Clone)]
enum Relied {
    Nothing,
    /// The conversation is at this revision, as a plan or the receipt before said.
    Revision(u64),
    /// The call is a part of this list, at this place.
    List {
        name: String,
        from: usize,
    },
}

/// What became of a transcript.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
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
    /// The revision that this is true of; 0: the conversation does not exist.
    revision: u64,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Indexes from 0, both included.
#[derive(Clone, Copy, Deserialize)]
struct Range {
    from: usize,
    to: usize,
}

impl Range {
    fn count(self) -> usize {
        self.to.saturating_add(1).saturating_sub(self.from)
    }
}

impl IngestReport {
    fn add(&mut self, receipt: Receipt) {
        self.ingested += u64::from(receipt.ingested);
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
        let mut intake = Intake {
            lcm: self,
            conversation,
            options,
            cancel,
            progress,
            report: IngestReport::default(),
            uploads: BTreeMap::new(),
            done: 0,
            now: options.clock.now_ms(),
        };
        if options.new && !options.refuse_replay {
            let identities = intake.identify_all(messages, 0)?;
            intake.append_all(messages, &identities)?;
        } else if options.refuse_replay || !intake.append_after(messages)? {
            let identities = intake.identify_all(messages, 0)?;
            intake.append_missing(messages, &identities)?;
        }
        (intake.progress)(messages.len());
        let mut report = intake.report;
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        report.skipped = count.saturating_sub(report.ingested);
        Ok(report)
    }
}

impl Lcm {
    /// Takes in the end of a conversation: as [`Lcm::ingest`], but what fits one call and goes on
    /// where the stored messages end is appended without a comparison of the whole.
    pub(crate) fn append_end(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
    ) -> IngestResult<IngestReport> {
        let is_large = messages.iter().any(|message| message.len() > BATCH_BYTES_MAX);
        let is_one = !messages.is_empty() && batch_length(messages) == messages.len();
        if options.new || is_large || !is_one {
            return self.ingest(conversation, messages, options, cancel, &mut |_| {});
        }
        let how =
            Options { mode: Mode::Transcript, partial: false, ..options.append(&Relied::Nothing) };
        let now = options.clock.now_ms();
        let receipt = match self.append(conversation, options.dialect, messages, &how, now) {
            // A call has further bounds than those by which batches are cut, such as that of ids.
            Err(error) if error.code == Code::LimitExceeded && messages.len() > 1 => {
                return self.ingest(conversation, messages, options, cancel, &mut |_| {});
            }
            other => other?,
        };
        let skipped = u64::from(receipt.skipped);
        let mut report = IngestReport { skipped, ..IngestReport::default() };
        report.add(receipt);
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
    /// Names of the large messages that were staged, by index.
    uploads: BTreeMap<usize, String>,
    /// Index behind the last message that an append confirmed; every plan is told.
    done: usize,
    /// The time of all calls: one that is repeated is known by it, too.
    now: u64,
}

impl Intake<'_> {
    /// The identity of every message from an index on, as the component computes it.
    fn identify_all(&self, messages: &[String], from: usize) -> IngestResult<Vec<Box<RawValue>>> {
        let mut rest = messages.get(from..).unwrap_or(&[]);
        let mut identities = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            self.cancel.check()?;
            let (batch, after) = rest.split_at(batch_length(rest));
            let text = self
                .lcm
                .identify(self.options.dialect, batch)
                .map_err(|error| self.locate(batch, from + identities.len(), error))?;
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

    /// Stores all messages, whatever is stored; what takes several calls is a list, known by its
    /// messages and their time.
    fn append_all(
        &mut self,
        messages: &[String],
        identities: &[Box<RawValue>],
    ) -> IngestResult<()> {
        let all: Vec<Range> =
            messages.len().checked_sub(1).map(|to| Range { from: 0, to }).into_iter().collect();
        self.stage_large(messages, &all)?;
        let relied = if batch_length(messages) >= messages.len() {
            Relied::Nothing
        } else {
            let entries = json::array(identities.iter().map(AsRef::as_ref));
            let name = sha256_hex(format!("{} {entries}", self.now).as_bytes());
            Relied::List { name, from: 0 }
        };
        self.append_ranges(messages, &all, relied).map_err(|failure| failure.error.into())
    }

    /// Stores what stands behind the messages that are proven to be stored, under the revision of
    /// that proof; returns whether it still held.
    fn append_after(&mut self, messages: &[String]) -> IngestResult<bool> {
        let Some(proven) = self.options.proven.filter(|proven| proven.messages < messages.len())
        else {
            return Ok(false);
        };
        self.identify_all(messages, proven.messages)?;
        let rest = [Range { from: proven.messages, to: messages.len() - 1 }];
        if self.stage_large(messages, &rest)? {
            return Ok(false);
        }
        match self.append_ranges(messages, &rest, Relied::Revision(proven.revision)) {
            Ok(()) => Ok(true),
            Err(failure) if is_conflict(&failure) => Ok(false),
            Err(failure) => Err(failure.error.into()),
        }
    }

    /// Stores what is missing. While others write, too, what is missing is asked again, and given
    /// up when that does not make it less.
    fn append_missing(
        &mut self,
        messages: &[String],
        identities: &[Box<RawValue>],
    ) -> IngestResult<()> {
        let entries = json::array(identities.iter().map(AsRef::as_ref));
        let mut fewest = usize::MAX;
        let mut repeats = 0;
        loop {
            self.cancel.check()?;
            let plan = self.reconcile(&entries)?;
            let count = plan.missing.iter().copied().map(Range::count).sum();
            if count < fewest {
                fewest = count;
                repeats = 0;
            }
            if self.stage_large(messages, &plan.missing)? {
                // Staging moved the conversation on.
                continue;
            }
            match self.append_ranges(messages, &plan.missing, Relied::Revision(plan.revision)) {
                Ok(()) => return Ok(()),
                Err(failure) if repeats < CONFLICT_RETRIES_MAX && is_conflict(&failure) => {
                    repeats += 1;
                    self.cancel.sleep(pause(repeats));
                }
                Err(failure) => return Err(failure.error.into()),
            }
        }
    }

    /// What is not stored, and at which revision.
    fn reconcile(&mut self, entries: &str) -> Result<Reconciled> {
        let IngestOptions { new, refuse_replay, .. } = *self.options;
        let done = self.done;
        let transcript = format!(
            r#"{{"confirmed":{done},"new":{new},"refuse_replay":{refuse_replay},"entries":{entries}}}"#
        );
        let text = self.lcm.reconcile(self.conversation, &transcript, self.now)?;
        let mut plan: Reconciled = json::read("ingest.reconcile", &text)?;
        if self.done == 0 {
            // Later ones would also speak of what was stored here.
            self.report.warnings.clear();
            self.report.warn(std::mem::take(&mut plan.warnings));
        }
        Ok(plan)
    }

    /// One call. While its outcome is unknown it is repeated as it was, which the component
    /// recognises; only a conflict says that the plan it stands on is no more.
    fn append(&self, batch: &[String], relied: &Relied) -> std::result::Result<Receipt, Failure> {
        let mut options = self.options.append(relied);
        let is_planned = matches!(relied, Relied::Revision(_));
        if self.options.repeat && !is_planned {
            options = repeating(&options);
        }
        let conflicts = if is_planned { 0 } else { CONFLICT_RETRIES_MAX };
        let Self { conversation, now, .. } = *self;
        let mut repeats = 0;
        loop {
            let dialect = self.options.dialect;
            match self.lcm.append_known(conversation, dialect, batch, &options, now, conflicts) {
                Err(failure) if failure.is_unknown() && repeats < UNKNOWN_REPEATS_MAX => {
                    repeats += 1;
                    self.cancel.sleep(pause(repeats));
                    options = repeating(&options);
                }
                other => return other,
            }
        }
    }

    /// Stores these ranges in as many calls as it takes, each relying on what the one before left.
    fn append_ranges(
        &mut self,
        messages: &[String],
        ranges: &[Range],
        mut relied: Relied,
    ) -> std::result::Result<(), Failure> {
        if ranges.is_empty() {
            // An empty call writes nothing and says how things stand.
            let receipt = self.append(&[], &Relied::Nothing)?;
            self.report.add(receipt);
        }
        for range in ranges {
            let mut index = range.from;
            while let Some(rest) = messages.get(index..=range.to).filter(|rest| !rest.is_empty()) {
                (self.progress)(index);
                self.cancel.check()?;
                let receipt = match self.uploads.get(&index) {
                    Some(upload) => self.append(&[format!("@upload {upload}")], &relied)?,
                    None => {
                        let (batch, _) = rest.split_at(batch_length(rest));
                        self.append(batch, &relied)?
                    }
                };
                let taken = u64::from(receipt.ingested) + u64::from(receipt.skipped);
                if taken == 0 {
                    let message = "`ingest.append` took none of the messages";
                    return Err(Error::internal(message).into());
                }
                index = index.saturating_add(usize::try_from(taken).unwrap_or(usize::MAX));
                self.done = index;
                relied = match relied {
                    Relied::Nothing => Relied::Nothing,
                    Relied::Revision(_) => Relied::Revision(receipt.revision),
                    Relied::List { name, .. } => Relied::List { name, from: index },
                };
                self.report.add(receipt);
            }
        }
        Ok(())
    }

    /// Hands over the messages of these ranges that are too large for a call, each once; returns
    /// whether there were any.
    fn stage_large(&mut self, messages: &[String], ranges: &[Range]) -> IngestResult<bool> {
        let before = self.uploads.len();
        for range in ranges {
            let of_range = messages.iter().enumerate().take(range.to.saturating_add(1));
            for (index, message) in of_range.skip(range.from) {
                if message.len() > BATCH_BYTES_MAX && !self.uploads.contains_key(&index) {
                    let upload = self
                        .stage(message)
                        .map_err(|error| IngestError { index: Some(index), error })?;
                    self.uploads.insert(index, upload);
                }
            }
        }
        Ok(self.uploads.len() > before)
    }

    /// Hands over one message in pieces; returns the name of the upload.
    fn stage(&self, message: &str) -> Result<String> {
        let sha256 = sha256_hex(message.as_bytes());
        let extra = self.options.stage(message.len());
        let unexpected = || Error::internal("`ingest.stage` answered an unexpected offset");
        let mut offset = 0;
        while offset < message.len() {
            self.cancel.check()?;
            let end = message.floor_char_boundary(offset.saturating_add(PIECE_BYTES_MAX));
            let piece = message.get(offset..end).ok_or_else(unexpected)?;
            let at = u64::try_from(offset).map_err(|_| unexpected())?;
            let next =
                self.lcm.stage(self.conversation, &sha256, at, piece, Some(&extra), self.now)?;
            let next = usize::try_from(next).map_err(|_| unexpected())?;
            // More may be there already, from an earlier attempt.
            if next <= offset || next > message.len() {
                return Err(unexpected());
            }
            offset = next;
        }
        Ok(sha256)
    }
}

/// Whether an append failed because the conversation is not what it relied on.
fn is_conflict(failure: &Failure) -> bool {
    failure.error.code == Code::Conflict
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
