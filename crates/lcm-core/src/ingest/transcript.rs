//! A transcript as a list of entries: what identifies each message, without the message.
//!
//! [`identify`] turns raw messages into entries as JSON, and [`parse_transcript`] parses entries
//! with the options of `reconcile`. The engine and `reconcile` use this module.

use alloc::{format, string::String, vec::Vec};

use crate::storage::message_mark::MessageMark;
use lcm_text::{
    base::{
        error::{Error, Result},
        hash, int,
        json::{self, JsonFields, JsonWriter},
    },
    message::{
        self, ParsedMessage, Role,
        meaning::{self, SaidPart},
    },
    types::api::ReadDialect,
};

use super::{
    append_options::ENTRIES_MAX,
    backlog::BacklogOptions,
    list_texts::{ListTexts, hash_text},
    redaction::RedactedCopy,
};

/// Name of the argument that holds the transcript.
const TRANSCRIPT_ARGUMENT: &str = "transcript-json";
/// Roles by their names in an entry.
const ROLES: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

/// Bytes of what one part says, as an entry has them.
const SAID_BYTES: usize = 20;

/// What identifies one message of a list.
#[derive(Debug)]
pub(super) struct TranscriptEntry {
    pub(super) entry_id: Option<String>,
    pub(super) event_key: Option<String>,
    /// What each part of the message says; at least one part.
    pub(super) said: Vec<SaidPart>,
    /// The parts of `said` that the running hash of the list has: those that are no rendered
    /// summaries and no placeholder turns; `None`: all of `said`. So the hash of a list stays the
    /// same whether or not the message was stored with these parts.
    pub(super) own_said: Option<Vec<SaidPart>>,
    /// Bytes of the text, if the message says one text only; `None`: something else.
    pub(super) text_bytes: Option<u32>,
    pub(super) mark: MessageMark,
    /// The mark of the whole message, with its rendered summaries.
    pub(super) whole_mark: MessageMark,
    pub(super) role: Role,
    /// Whether equal content is evidence that two messages are the same.
    pub(super) is_discriminating: bool,
    /// Unique call id of a message that is one tool result and has no id of the host; `None`: any
    /// other message. `append` skips a later message with equal call id and content.
    pub(super) call_id: Option<String>,
    /// Content identity of a message with `call_id`; else zeros.
    pub(super) call_content: [u8; 16],
    /// Whether `append` skips the message: a failed turn without content, or nothing but rendered
    /// summaries and placeholder turns.
    pub(super) is_empty: bool,
    /// The message as a redacted copy; `None`: the message is no copy.
    pub(super) redacted_copy: Option<RedactedCopy>,
    /// Estimated tokens; 0: unknown.
    pub(super) tokens: u64,
    /// Parts that begin like rendered summaries, or are placeholder turns.
    pub(super) summaries: Vec<SummaryPart>,
    /// Whether the ids of the host do not count: another message has one of them, or one leads to
    /// another form of its message.
    pub(super) is_id_taken: bool,
    /// Whether the entry has the id of a stored message, and other content that counts as another
    /// form of it: a streamed answer that went on, another result of the same call.
    pub(super) is_other_form: bool,
    /// Whether the entry is such a form, and has every part of the message and more parts.
    pub(super) has_grown: bool,
}

/// A part that begins like a rendered summary.
#[derive(Debug)]
pub(super) struct SummaryPart {
    /// Index in [`TranscriptEntry::said`].
    pub(super) place: usize,
    /// Id as it is printed.
    pub(super) id: String,
}

impl TranscriptEntry {
    /// Describes a message.
    pub(super) fn from_message(raw: &str, message: &ParsedMessage) -> Self {
        let text = |span| json::text(raw, span).into_owned();
        let (entry_id, event_key) = (message.entry_id.map(text), message.event_key.map(text));
        let has_host_id = entry_id.is_some() || event_key.is_some();
        let said = meaning::hash_parts(raw, message);
        let mark = MessageMark::from_parts(&said, entry_id.clone(), event_key.clone());
        let call_id = message.unique_call_id.filter(|_| !has_host_id).map(text);
        Self {
            mark,
            whole_mark: mark,
            entry_id,
            event_key,
            said,
            own_said: None,
            text_bytes: meaning::read_text(raw, message).map(|text| int::to_u32(text.len())),
            role: message.role,
            is_discriminating: message.is_discriminating,
            call_content: call_id.as_ref().map_or([0; 16], |_| message.identity),
            call_id,
            is_empty: message.is_failed_and_empty,
            redacted_copy: RedactedCopy::from_raw(raw, has_host_id),
            tokens: message.tokens.into(),
            summaries: meaning::find_summaries(raw, message)
                .into_iter()
                .map(|(place, id)| SummaryPart { place, id })
                .collect(),
            is_id_taken: false,
            is_other_form: false,
            has_grown: false,
        }
    }

    /// The entry of a message whose text is not read yet.
    pub(super) fn new_blank() -> Self {
        Self {
            entry_id: None,
            event_key: None,
            said: Vec::new(),
            own_said: None,
            text_bytes: None,
            mark: MessageMark::default(),
            whole_mark: MessageMark::default(),
            role: Role::System,
            is_discriminating: false,
            call_id: None,
            call_content: [0; 16],
            is_empty: false,
            redacted_copy: None,
            tokens: 0,
            summaries: Vec::new(),
            is_id_taken: false,
            is_other_form: false,
            has_grown: false,
        }
    }

    /// Lists the parts of `said` for which `is_rendered` does not hold. It is asked about those
    /// that begin like rendered summaries.
    pub(super) fn list_own_parts(
        &self,
        is_rendered: &dyn Fn(&SummaryPart, &SaidPart) -> bool,
    ) -> Vec<SaidPart> {
        let is_own = |(place, said): &(usize, &SaidPart)| {
            let mut parts = self.summaries.iter();
            !parts.any(|part| part.place == *place && is_rendered(part, said))
        };
        self.said.iter().enumerate().filter(is_own).map(|(_, said)| *said).collect()
    }

    /// Keeps only the parts `own` of the message. An entry without parts is empty.
    pub(super) fn keep_parts(&mut self, own: Vec<SaidPart>) {
        self.mark = MessageMark::from_parts(&own, self.entry_id.clone(), self.event_key.clone());
        self.is_empty |= own.is_empty();
        self.said = own;
        // The places in `summaries` counted the removed parts, too.
        self.summaries.clear();
        (self.is_discriminating, self.text_bytes, self.redacted_copy) = (false, None, None);
    }

    /// Returns whether the message has an entry id or event key that counts.
    pub(super) fn has_host_id(&self) -> bool {
        !self.is_id_taken && (self.entry_id.is_some() || self.event_key.is_some())
    }

    /// Returns the entry as `identify` writes it.
    fn to_object(&self) -> JsonWriter {
        let mut entry = JsonWriter::new_object();
        entry.add_optional_text("entry_id", self.entry_id.as_deref());
        entry.add_optional_text("event_key", self.event_key.as_deref());
        let said = self.said.iter().flat_map(|part| [&part.said[..], &part.call[..]]);
        entry.add_text("said", &hash::hex(&said.collect::<Vec<_>>().concat()));
        entry.add_optional_number("text_bytes", self.text_bytes.map(u64::from));
        entry.add_text("role", self.role.as_str());
        entry.add_flag("discriminating", self.is_discriminating);
        entry.add_optional_text("call_id", self.call_id.as_deref());
        let content = self.call_id.as_ref().map(|_| hash::hex(&self.call_content));
        entry.add_optional_text("call_content", content.as_deref());
        entry.add_flag("empty", self.is_empty);
        let redacted = self.redacted_copy.map(RedactedCopy::to_hex);
        entry.add_optional_text("redacted", redacted.as_deref());
        entry.add_number("tokens", self.tokens);
        if !self.summaries.is_empty() {
            let parts = self.summaries.iter().map(|part| format!("{} {}", part.place, part.id));
            entry.add_texts("summaries", &parts.collect::<Vec<String>>());
        }
        entry
    }
}

/// A transcript with the options of `reconcile`.
pub(super) struct ReconcileRequest {
    pub(super) entries: Vec<TranscriptEntry>,
    /// The texts of the entries; empty: an entry has no `text`.
    pub(super) texts: ListTexts,
    /// Number of first entries that are known to be stored.
    pub(super) confirmed_count: usize,
    /// Name of the list whose calls may have stored first entries; `None`: no list is named.
    pub(super) list_name: Option<String>,
    /// Whether every entry is new unless one of its identities is stored.
    pub(super) is_new: bool,
    /// Whether a likely replay is an error.
    pub(super) refuse_replay: bool,
    /// Seq up to which the caller has seen every message; `None` or 0: unknown.
    pub(super) seq_seen: Option<u64>,
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
        let mut entry = TranscriptEntry::from_message(raw, &message).to_object();
        entry.add_text("text", &hash::hex(&hash_text(dialect, raw)));
        entries.push_object(entry);
    }
    Ok(entries.end_array())
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
    let seq_seen = fields.take_optional_u64("seq_seen");
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
    let (mut entries, mut texts) = (Vec::with_capacity(list.len()), Vec::new());
    for (index, value) in list.into_iter().enumerate() {
        let mut fields = JsonFields::new(transcript, json::list_members(transcript, value.span));
        let text = fields.take_optional_text("text").and_then(|digits| hash::decode_hex(&digits));
        texts.extend(text.map(|hash| hash::hash_prefix(&hash)));
        entries.push(parse_entry(fields, index)?);
    }
    if texts.len() < entries.len() {
        texts.clear();
    }
    Ok(ReconcileRequest {
        entries,
        texts: ListTexts::from_hashes(texts),
        confirmed_count,
        list_name,
        is_new,
        refuse_replay,
        seq_seen,
        backlog,
    })
}

/// Parses what the parts of a message say; `None`: other digits, or no part.
fn parse_said(digits: &str) -> Option<Vec<SaidPart>> {
    let bytes = hash::decode_hex(digits)?;
    let (parts, []) = bytes.as_chunks::<SAID_BYTES>() else { return None };
    let parts: Option<Vec<SaidPart>> = parts
        .iter()
        .map(|part| {
            let (said, call) = part.split_first_chunk()?;
            Some(SaidPart { said: *said, call: call.try_into().ok()? })
        })
        .collect();
    parts.filter(|parts| !parts.is_empty())
}

/// Parses an entry as [`TranscriptEntry::to_object`] writes it.
fn parse_entry(mut fields: JsonFields<'_>, index: usize) -> Result<TranscriptEntry> {
    let said = parse_said(&fields.take_text("said")).ok_or_else(|| {
        Error::invalid_input(format_args!(
            "`entries[{index}].said` must be the `said` that `identify` returned: {} hex digits \
             for each part",
            2 * SAID_BYTES
        ))
    })?;
    let (entry_id, event_key) =
        (fields.take_optional_text("entry_id"), fields.take_optional_text("event_key"));
    let role = fields.take_choice("role", &ROLES.map(Role::as_str));
    let mark = MessageMark::from_parts(&said, entry_id.clone(), event_key.clone());
    let entry = TranscriptEntry {
        mark,
        whole_mark: mark,
        entry_id,
        event_key,
        said,
        own_said: None,
        text_bytes: fields.take_optional_u32("text_bytes"),
        role: ROLES.get(role).copied().unwrap_or(Role::System),
        is_discriminating: fields.take_flag("discriminating"),
        call_id: fields.take_optional_text("call_id"),
        call_content: fields
            .take_optional_text("call_content")
            .and_then(|digits| hash::decode_hex(&digits))
            .map_or([0; 16], |content| hash::hash_prefix(&content)),
        is_empty: fields.take_flag("empty"),
        redacted_copy: fields
            .take_optional_text("redacted")
            .as_deref()
            .and_then(RedactedCopy::from_hex),
        tokens: fields.take_optional_u64("tokens").unwrap_or(0),
        summaries: fields
            .take_optional_texts("summaries")
            .unwrap_or_default()
            .iter()
            .filter_map(|part| {
                let (place, id) = part.split_once(' ')?;
                Some(SummaryPart { place: place.parse().ok()?, id: id.into() })
            })
            .collect(),
        is_id_taken: false,
        is_other_form: false,
        has_grown: false,
    };
    fields.finish_known(TRANSCRIPT_ARGUMENT)?;
    Ok(entry)
}
