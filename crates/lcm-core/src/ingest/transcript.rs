//! A transcript as a list of entries: what identifies each message, without the message.
//!
//! [`identify`] turns raw messages into entries as JSON, and [`parse_transcript`] parses entries
//! with the options of `reconcile`. The engine and `reconcile` use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::pack;
use lcm_text::{
    base::{
        error::{Error, Result},
        hash, int,
        json::{self, ByteSpan, JsonFields, JsonWriter},
    },
    message,
    types::api::ReadDialect,
};

use super::{
    alignment::AlignableEntry, append_options::ENTRIES_MAX, backlog::BacklogOptions,
    redaction::RedactedCopy,
};

/// Name of the argument that holds the transcript.
const TRANSCRIPT_ARGUMENT: &str = "transcript-json";

/// What identifies one message of a transcript.
pub(super) struct TranscriptEntry {
    pub(super) entry_id: Option<String>,
    pub(super) event_key: Option<String>,
    /// Hash over content and ids.
    pub(super) hash: [u8; 16],
    /// Whether equal content is evidence that two messages are the same.
    pub(super) is_discriminating: bool,
    /// Unique call id of a message that is one tool result and has no id of the host; `None`: any
    /// other message. `append` skips a later message with equal call id and content.
    pub(super) call_id: Option<String>,
    /// Whether `append` skips the message: a failed turn without content.
    pub(super) is_empty: bool,
    /// The message as a redacted copy; `None`: the message is no copy.
    pub(super) redacted_copy: Option<RedactedCopy>,
    /// Whether the message is from a user.
    pub(super) is_from_user: bool,
    /// Estimated tokens; 0: unknown.
    pub(super) tokens: u64,
}

impl TranscriptEntry {
    /// Returns whether the message has an entry id or event key.
    pub(super) fn has_host_id(&self) -> bool {
        self.entry_id.is_some() || self.event_key.is_some()
    }

    /// Returns the entry as it is aligned; `seq` is the seq of the stored message with its id.
    pub(super) fn to_alignable(&self, seq: Option<u64>) -> AlignableEntry {
        AlignableEntry {
            hash: self.hash,
            seq,
            is_discriminating: self.is_discriminating,
            // An entry with an id of its own is another message, however alike the texts are.
            redacted_copy: self.redacted_copy.filter(|_| !self.has_host_id()),
        }
    }
}

/// A transcript with the options of `reconcile`.
pub(super) struct ReconcileRequest {
    pub(super) entries: Vec<TranscriptEntry>,
    /// Number of first entries that are known to be stored.
    pub(super) confirmed_count: usize,
    /// Name of the list whose calls may have stored first entries; `None`: no list is named.
    pub(super) list_name: Option<String>,
    /// Whether every entry is new unless its id or event key is stored.
    pub(super) is_new: bool,
    /// Whether a likely replay is an error.
    pub(super) refuse_replay: bool,
    pub(super) backlog: BacklogOptions,
}

/// Returns the identities of messages as a JSON array, without reading the store.
///
/// # Errors
///
/// `invalid-input` with the index of the message.
pub(crate) fn identify(dialect: ReadDialect, messages: &[String]) -> Result<String> {
    let mut entries = JsonWriter::new_array();
    for (index, raw) in messages.iter().enumerate() {
        let message = message::parse_given(dialect, raw).map_err(|error| {
            Error::new(error.code, format_args!("messages[{index}]: {}", error.message))
        })?;
        let call_id = message
            .unique_call_id
            .filter(|_| message.entry_id.is_none() && message.event_key.is_none());
        let mut entry = JsonWriter::new_object();
        write_text(&mut entry, "entry_id", raw, message.entry_id);
        write_text(&mut entry, "event_key", raw, message.event_key);
        entry.add_text("hash", &hash::hex(&pack::message_hash(raw, &message)));
        entry.add_flag("discriminating", message.is_discriminating);
        write_text(&mut entry, "call_id", raw, call_id);
        entry.add_flag("empty", message.is_failed_and_empty);
        let redacted = RedactedCopy::from_message(raw, &message).map(|redacted| redacted.to_hex());
        entry.add_optional_text("redacted", redacted.as_deref());
        entry.add_number("tokens", message.tokens.into());
        entry.add_flag("user", message.role == message::Role::User);
        entries.push_object(entry);
    }
    Ok(entries.end_array())
}

fn write_text(object: &mut JsonWriter, key: &str, raw: &str, span: Option<ByteSpan>) {
    object.add_optional_text(key, span.map(|span| json::text(raw, span)).as_deref());
}

/// Parses a transcript. Unknown fields of entries are ignored; other unknown fields are errors.
///
/// # Errors
///
/// `invalid-input`: no list of entries, a wrong value, an unknown field, or more confirmed than
/// entries; `limit-exceeded`: too many entries.
pub(super) fn parse_transcript(transcript: &str) -> Result<ReconcileRequest> {
    let mut fields = JsonFields::parse_argument(TRANSCRIPT_ARGUMENT, transcript)?;
    let list = fields.take_list("entries");
    let confirmed_count = fields.take_optional_u64("confirmed").map_or(0, int::to_usize);
    let list_name = fields.take_optional_text("list");
    let append_mode = fields.take_optional_choice("append_mode", &["transcript", "new"]);
    let (is_new, refuse_replay) = (append_mode == Some(1), fields.take_flag("refuse_replay"));
    let backlog = BacklogOptions::read(&mut fields);
    fields.finish(TRANSCRIPT_ARGUMENT)?;
    if list.len() > ENTRIES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "`entries` must have at most {ENTRIES_MAX} items, got {}",
            list.len()
        )));
    }
    if confirmed_count > list.len() {
        let message = format_args!(
            "`confirmed` must be at most the number of entries, {}, got {confirmed_count}",
            list.len()
        );
        return Err(Error::invalid_input(message));
    }
    let mut entries = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let mut fields = JsonFields::new(transcript, json::list_members(transcript, value.span));
        let hash = hash::decode_hex(&fields.take_text("hash")).filter(|bytes| bytes.len() == 16);
        let hash = hash.ok_or_else(|| {
            Error::invalid_input(format_args!("`entries[{index}].hash` must be 32 hex digits"))
        })?;
        entries.push(TranscriptEntry {
            entry_id: fields.take_optional_text("entry_id"),
            event_key: fields.take_optional_text("event_key"),
            hash: hash::hash_prefix(&hash),
            is_discriminating: fields.take_flag("discriminating"),
            call_id: fields.take_optional_text("call_id"),
            is_empty: fields.take_flag("empty"),
            redacted_copy: fields
                .take_optional_text("redacted")
                .as_deref()
                .and_then(RedactedCopy::from_hex),
            is_from_user: fields.take_flag("user"),
            tokens: fields.take_optional_u64("tokens").unwrap_or(0),
        });
        fields.finish_known(TRANSCRIPT_ARGUMENT)?;
    }
    Ok(ReconcileRequest { entries, confirmed_count, list_name, is_new, refuse_replay, backlog })
}
