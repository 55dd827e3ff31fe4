//! Candidates: the parsed messages of one append, cut to what one commit takes.
//!
//! In: raw messages, or names of uploaded texts. Out: one [`AppendCandidate`] for each message that
//! fits. `append` and `import` use this module.

use alloc::{borrow::Cow, string::String, vec::Vec};

use sha2::{Digest, Sha256};

use crate::{
    search::{INDEXED_BYTES_MAX, NewMessage},
    storage::{
        call::Call,
        pack,
        record_key::{RecordSlot, RecordValues},
        records::{
            identity::{IdentityContent, IdentityLookup, collect_lookups},
            upload::Upload,
        },
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        hash, limits,
    },
    message::{self, ParsedMessage, Role, large_payload},
    types::api::{Dialect, ReadDialect, Timestamp},
};

use super::super::transcript::TranscriptEntry;
use super::{
    commit_limits::{COMMIT_INDEXED_BYTES_MAX, COMMIT_RECORDS_BYTES_MAX, IDENTITY_PUTS_MAX},
    record_size::{estimate_stored_bytes, estimate_text_bytes},
};

/// Records counted for an uploaded message before its text is read: at most three identities, and
/// the record of the upload.
const STAGED_MESSAGE_PUTS: usize = 4;
/// Prefix by which a message refers to an uploaded text.
const UPLOAD_PREFIX: &str = "@upload ";

/// One parsed message of a batch.
#[derive(Debug)]
pub(in crate::ingest) struct AppendCandidate<'a> {
    pub(in crate::ingest) raw: Cow<'a, str>,
    pub(in crate::ingest) message: ParsedMessage,
    /// Hash over content and ids.
    pub(in crate::ingest) hash: [u8; 16],
    /// What identifies the message in a list.
    pub(in crate::ingest) entry: TranscriptEntry,
    /// All identities of the message.
    pub(in crate::ingest) lookups: Vec<IdentityLookup>,
    /// SHA-256 of the uploaded text that is not read yet; `None`: the text is known.
    pending_upload: Option<[u8; 32]>,
    /// SHA-256 and record of the uploaded text; `None`: not uploaded, or not read yet.
    pub(super) upload: Option<([u8; 32], Upload)>,
    /// Placeholder of the message; `None`: the message has no large payload.
    pub(super) placeholder: Option<large_payload::NewPlaceholder>,
}

/// A parser of texts into candidates.
pub(in crate::ingest) struct CandidateParser<'a> {
    pub(in crate::ingest) call: Call<'a>,
    pub(in crate::ingest) dialect: ReadDialect,
    /// Returns the least tokens of a large payload of the message at an index; `None`: no payload
    /// is large.
    pub(in crate::ingest) payload_tokens_min: &'a dyn Fn(usize) -> Option<u32>,
}

impl CandidateParser<'_> {
    /// Parses one message and builds its placeholder, if the message has large payloads.
    fn parse_message(
        &self,
        raw: &str,
        index: usize,
    ) -> Result<(ParsedMessage, Option<large_payload::NewPlaceholder>)> {
        let add_index = |error: Error| {
            Error::new(error.code, format_args!("messages[{index}]: {}", error.message))
        };
        let message = message::parse_given(self.dialect, raw).map_err(add_index)?;
        let placeholder = (self.payload_tokens_min)(index).and_then(|tokens_min| {
            large_payload::build_placeholder(
                message.dialect,
                raw,
                &message,
                tokens_min,
                self.call.keys.key_prefix(),
            )
        });
        Ok((message, placeholder))
    }
}

impl AppendCandidate<'_> {
    /// Returns the SHA-256 of the upload whose text is not read yet; `None`: the text is known.
    pub(in crate::ingest) fn pending_upload(&self) -> Option<[u8; 32]> {
        self.pending_upload
    }

    /// Lists the SHA-256 of the message's text and of its placeholder's text, if the text is too
    /// large for a pack and its upload record was not read.
    pub(in crate::ingest) fn unread_large_names(&self) -> impl Iterator<Item = [u8; 32]> {
        let raw = self.large_text_name().filter(|_| self.upload.is_none());
        let shown =
            self.placeholder.as_ref().filter(|made| made.raw.len() > limits::PACK_BYTES_MAX);
        raw.into_iter().chain(shown.map(|made| compute_sha256(&made.raw)))
    }

    /// Returns the searchable form of the message; `now` is the time of a message without a
    /// timestamp.
    pub(in crate::ingest) fn to_searchable(&self, now: Timestamp) -> NewMessage<'_> {
        let message = &self.message;
        NewMessage {
            raw: &self.raw,
            parts: &message.parts,
            role: message.role,
            time: message.timestamp.unwrap_or(now),
            has_payload: self.placeholder.is_some(),
            is_staged: self.upload.is_some(),
        }
    }

    /// Returns what the message is compared by with a message that has one of its identities.
    pub(in crate::ingest) fn identity_content(&self) -> IdentityContent {
        let content = self.message.identity;
        IdentityContent { said: self.entry.whole_mark.hash_said(), content }
    }

    /// Counts the records of the identities, the payloads and the upload.
    fn count_small_puts(&self) -> usize {
        let files = self.placeholder.as_ref().map_or(0, |made| made.files.len());
        self.lookups.len() + files + usize::from(self.upload.is_some())
    }

    /// Returns an upper bound of the bytes that storing the message writes, without its identities.
    fn estimate_put_bytes(&self) -> usize {
        let placeholder = self.placeholder.as_ref().map_or(0, |made| {
            let files = made.files.iter().map(|(_, file)| file.bytes_max()).sum::<usize>();
            files + estimate_text_bytes(made.raw.len(), &made.parts)
        });
        let parts = &self.message.parts;
        placeholder
            + match &self.upload {
                Some((_, upload)) => estimate_stored_bytes(0, 2 * upload.chunks.len(), parts),
                None => estimate_text_bytes(self.raw.len(), parts),
            }
    }

    /// Returns the SHA-256 of a text that is uploaded or too large for a pack; `None`: the text is
    /// stored in the pack.
    pub(in crate::ingest) fn large_text_name(&self) -> Option<[u8; 32]> {
        match &self.upload {
            Some((sha256, _)) => Some(*sha256),
            None if self.raw.len() > limits::PACK_BYTES_MAX => Some(compute_sha256(&self.raw)),
            None => None,
        }
    }
}

/// Computes the SHA-256 that names a text in chunks.
pub(super) fn compute_sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Parses the messages. With `is_partial`, ends before the message with which the identities
/// exceed one commit.
///
/// Uploaded messages stay blank until [`resolve_uploads`] reads their texts.
///
/// # Errors
///
/// `invalid-input` with the index of the message; `limit-exceeded`: too many identities for one
/// commit.
pub(in crate::ingest) fn read_candidates<'a>(
    parser: &CandidateParser<'_>,
    list: &'a [String],
    is_partial: bool,
) -> Result<Vec<AppendCandidate<'a>>> {
    let mut out = Vec::with_capacity(list.len());
    let mut identities = 0usize;
    for (index, raw) in list.iter().enumerate() {
        let (candidate, puts) = match raw.strip_prefix(UPLOAD_PREFIX) {
            Some(name) => (parse_upload_reference(name, index)?, STAGED_MESSAGE_PUTS),
            None => {
                let (message, placeholder) = parser.parse_message(raw, index)?;
                let lookups = collect_lookups(raw, &message);
                let puts = lookups.len();
                let candidate = AppendCandidate {
                    raw: Cow::Borrowed(raw.as_str()),
                    hash: pack::message_hash(raw, &message),
                    entry: TranscriptEntry::from_message(raw, &message),
                    message,
                    lookups,
                    pending_upload: None,
                    upload: None,
                    placeholder,
                };
                (candidate, puts)
            }
        };
        identities += puts;
        out.push(candidate);
        if identities > IDENTITY_PUTS_MAX {
            if is_partial && index > 0 {
                out.pop();
                return Ok(out);
            }
            return Err(Error::limit_exceeded(format_args!(
                "`messages` must have at most {IDENTITY_PUTS_MAX} ids in one call; append the \
                 first {index} of {} messages, then the others",
                list.len()
            )));
        }
    }
    Ok(out)
}

/// Returns the SHA-256 of the uploaded text to which a text refers; `None`: the text is a message,
/// or its name is wrong.
pub(in crate::ingest) fn find_upload(text: &str) -> Option<[u8; 32]> {
    let bytes = hash::decode_hex(text.strip_prefix(UPLOAD_PREFIX)?)?;
    bytes.try_into().ok()
}

/// Creates the blank candidate of a message `@upload NAME`; `name` must be the SHA-256 of the
/// uploaded text in hex digits.
fn parse_upload_reference<'a>(name: &str, index: usize) -> Result<AppendCandidate<'a>> {
    let sha256 = hash::decode_hex(name).filter(|bytes| bytes.len() == 32).ok_or_else(|| {
        Error::invalid_input(format_args!(
            "`messages[{index}]` must name an upload by 64 hex digits, got {} bytes",
            name.len()
        ))
    })?;
    Ok(AppendCandidate {
        raw: Cow::Borrowed(""),
        message: build_blank_message(),
        hash: [0; 16],
        entry: TranscriptEntry::new_blank(),
        lookups: Vec::new(),
        pending_upload: Some(hash::hash_prefix(&sha256)),
        upload: None,
        placeholder: None,
    })
}

fn build_blank_message() -> ParsedMessage {
    ParsedMessage {
        dialect: Dialect::Lcm,
        role: Role::System,
        parts: Vec::new(),
        tokens: 0,
        timestamp: None,
        entry_id: None,
        event_key: None,
        identity: [0; 16],
        unique_call_id: None,
        is_discriminating: false,
        is_failed_and_empty: false,
        has_unread_content: false,
        dialect_mismatch: None,
        has_invalid_timestamp: false,
    }
}

/// The records of the uploads that a batch names.
pub(in crate::ingest) struct StagedUploads<'a> {
    /// One for each candidate with a pending upload, in order.
    pub(in crate::ingest) slots: &'a [RecordSlot<Upload>],
    pub(in crate::ingest) values: &'a RecordValues,
    /// Whether candidates that do not fit one commit are dropped; `false`: they are refused.
    pub(in crate::ingest) is_partial: bool,
}

/// Reads the uploaded texts, verifies each against its SHA-256 and cuts the batch to one commit.
///
/// # Errors
///
/// `not-found`: nothing was uploaded under the name; `invalid-input`: the text has another SHA-256
/// or is not a message; `limit-exceeded`: too much for one commit.
pub(in crate::ingest) fn resolve_uploads(
    session: &mut StoreSession<'_>,
    parser: &CandidateParser<'_>,
    candidates: &mut Vec<AppendCandidate<'_>>,
    staged: StagedUploads<'_>,
) -> Result<()> {
    let mut slots = staged.slots.iter();
    let mut bytes = 0u64;
    let mut cut = None;
    for (index, candidate) in candidates.iter_mut().enumerate() {
        let Some(name) = candidate.pending_upload() else { continue };
        let record = slots.next().map(|slot| staged.values.decode(slot)).transpose()?;
        let Some(upload) = record.flatten() else {
            return Err(Error::not_found(format_args!(
                "upload `{}` of `messages[{index}]` does not exist; call `stage` first",
                hash::hex(&name)
            )));
        };
        bytes += upload.bytes;
        if bytes > limits::BATCH_UPLOADED_BYTES_MAX && index > 0 {
            if !staged.is_partial {
                return Err(Error::limit_exceeded(format_args!(
                    "`messages` must have at most {} staged bytes in one call; append the first \
                     {index} messages in one call",
                    limits::BATCH_UPLOADED_BYTES_MAX
                )));
            }
            cut = Some(index);
            break;
        }
        let text = upload.read_text(session, parser.call.keys, &name)?;
        if compute_sha256(&text) != name {
            return Err(Error::invalid_input(format_args!(
                "upload `{}` of `messages[{index}]` must be complete and match its SHA-256",
                hash::hex(&name)
            )));
        }
        (candidate.message, candidate.placeholder) = parser.parse_message(&text, index)?;
        candidate.hash = pack::message_hash(&text, &candidate.message);
        candidate.entry = TranscriptEntry::from_message(&text, &candidate.message);
        candidate.lookups = collect_lookups(&text, &candidate.message);
        candidate.raw = Cow::Owned(text);
        candidate.pending_upload = None;
        candidate.upload = Some((name, upload));
    }
    if let Some(cut) = cut {
        candidates.truncate(cut);
    }
    truncate_to_commit(candidates, staged.is_partial)
}

/// Cuts the batch to the messages whose records, chunks and indexed text fit one commit. Without
/// `is_partial`, a batch that does not fit is refused with `limit-exceeded`.
fn truncate_to_commit(candidates: &mut Vec<AppendCandidate<'_>>, is_partial: bool) -> Result<()> {
    let (mut bytes, mut puts, mut indexed) = (0usize, 0usize, 0usize);
    let mut count = 0usize;
    for candidate in candidates.iter() {
        bytes = bytes.saturating_add(candidate.estimate_put_bytes());
        puts += candidate.count_small_puts();
        indexed += candidate.raw.len().min(INDEXED_BYTES_MAX);
        let is_over = bytes > COMMIT_RECORDS_BYTES_MAX
            || puts > IDENTITY_PUTS_MAX
            || indexed > COMMIT_INDEXED_BYTES_MAX;
        // The first message is always taken: the commit itself has higher limits.
        if is_over && count > 0 {
            break;
        }
        count += 1;
    }
    if count < candidates.len() && !is_partial {
        return Err(Error::limit_exceeded(format_args!(
            "`messages` must have at most {COMMIT_RECORDS_BYTES_MAX} bytes of records, \
             {COMMIT_INDEXED_BYTES_MAX} bytes of searched text and {IDENTITY_PUTS_MAX} ids and \
             payloads in one call; append the first {count} of {} messages in one call",
            candidates.len(),
        )));
    }
    candidates.truncate(count);
    Ok(())
}
