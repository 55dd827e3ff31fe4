//! Large payloads: what is too large for a context is kept whole and stood for by a reference.
//!
//! In: a message whose price is at or over a threshold. Out: a *stand-in*, the same message with
//! each payload replaced by a reference, and a record per payload that leads back to it. The text
//! of the message is stored as it came; a payload is a span of it and never a second copy. The
//! stand-in is a message of the same dialect, so that assembly and summaries need to know nothing
//! of payloads. Not here: how a range of a payload is read (`lcm-core`), and what its
//! exploration says ([`crate::message::outline`]).

mod detect;
mod file_block;
mod measure;
mod reference;

use crate::base::hash;
use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    base::{int, json, limits},
    message::{self, ParsedMessage, Part},
    types::api::Dialect,
};
pub use measure::{SeekPoint, walk};

/// Ids that are read from one text; a message has at most 64 payloads of its own.
pub const IDS_MAX: usize = 512;

/// What a payload was.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum PayloadKind {
    /// A `<file>` block in a text, or a part that is a file.
    File,
    /// What a tool returned.
    ToolOutput,
    /// Any other text.
    RawPayload,
}

impl PayloadKind {
    /// Returns the kind as JSON writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::ToolOutput => "tool-output",
            Self::RawPayload => "raw-payload",
        }
    }
}

/// Where a payload stands in the text of its message.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PayloadLocation {
    /// Offset of its first byte.
    pub start: u32,
    /// Bytes it takes there.
    pub length: u32,
    /// Whether it is the inside of a JSON string, to be decoded; else a JSON value as it stands.
    pub is_text: bool,
    /// Points to begin reading at, in order, so that a range costs no more than itself.
    pub seek_points: Vec<SeekPoint>,
}

/// The record of a payload.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PayloadRecord {
    /// The newest message that has it.
    pub seq: u64,
    /// The [`crate::base::derivation_version::RULES`] by which it was made.
    pub rules: u32,
    /// What the payload was.
    pub kind: PayloadKind,
    /// Name of the file; `None`: the message names none.
    pub name: Option<String>,
    /// Media type, declared or recognised.
    pub mime: String,
    /// Bytes and lines of the decoded text.
    pub bytes: u64,
    /// Lines of the decoded text.
    pub lines: u64,
    /// Outline of the payload, at most 240 tokens.
    pub exploration: String,
    /// Where the payload stands in its message.
    pub place: PayloadLocation,
}

impl PayloadRecord {
    /// Bytes of its record, from above.
    pub fn bytes_max(&self) -> usize {
        let name = self.name.as_ref().map_or(0, String::len);
        128 + name + self.mime.len() + self.exploration.len() + 15 * self.place.seek_points.len()
    }
}

/// A stand-in that is not stored yet.
#[derive(Debug)]
pub struct NewPlaceholder {
    /// Its text, a message of the same dialect.
    pub raw: String,
    /// Its parts.
    pub parts: Vec<Part>,
    /// Tokens of the stand-in.
    pub tokens: u32,
    /// Tokens from which on a payload was replaced.
    pub payload_tokens_min: u32,
    /// The payloads with their ids; their seq is still 0.
    pub files: Vec<([u8; 8], PayloadRecord)>,
}

/// One payload as it was found.
#[derive(Debug)]
struct FoundPayload {
    kind: PayloadKind,
    name: Option<String>,
    mime: Option<String>,
    /// Of a tool's output, the id of the call.
    call_id: String,
    /// What is read back: offsets into the message, and whether it is decoded.
    content_range: (usize, usize),
    is_text: bool,
    /// What the reference replaces.
    replaced_range: (usize, usize),
    form: ReferenceForm,
}

/// What a reference must be where it stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReferenceForm {
    /// Part of a string.
    Inside,
    /// A string.
    Text,
    /// An object that has it as `output`.
    Object,
}

/// The printed id of a payload.
pub fn format_name(id: [u8; 8]) -> String {
    ["file_", &hash::hex(&id)].concat()
}

/// Reads a printed id; `None`: it is none.
pub fn parse_name(name: &str) -> Option<[u8; 8]> {
    let digits = name.strip_prefix("file_").filter(|digits| digits.len() == 16)?;
    hash::decode_hex(digits).map(|bytes| hash::hash_prefix(&bytes))
}

/// The ids that occur in a text, `file_` and exactly 16 hex digits, each once, at most
/// [`IDS_MAX`].
pub fn find_ids(text: &str) -> Vec<[u8; 8]> {
    let mut ids = Vec::new();
    for (at, _) in text.match_indices("file_") {
        let rest = text.get(at + 5..).unwrap_or_default();
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = rest.bytes().take_while(is_digit).count();
        let id = rest.get(..digits).filter(|_| digits == 16).and_then(hash::decode_hex);
        if let Some(id) = id.map(|id| hash::hash_prefix(&id)).filter(|id| !ids.contains(id)) {
            ids.push(id);
        }
        if ids.len() == IDS_MAX {
            break;
        }
    }
    ids
}

/// What stands for a message; `None`: it has no payload of so many tokens. `root` is of the keys of
/// the conversation, so that ids of two conversations differ.
///
/// A message for which nothing can stand is stored and shown as it is.
pub fn build_placeholder(
    dialect: Dialect,
    raw: &str,
    message: &ParsedMessage,
    payload_tokens_min: u32,
    root: &str,
) -> Option<NewPlaceholder> {
    if message.tokens < payload_tokens_min {
        return None;
    }
    let found = detect::find_payloads(dialect, raw, message, payload_tokens_min);
    if found.is_empty() {
        return None;
    }
    let mut files = Vec::with_capacity(found.len());
    let mut text = String::new();
    let mut from = 0;
    for payload in &found {
        let (id, file) = reference::build_record(raw, payload, root);
        text.push_str(raw.get(from..payload.replaced_range.0)?);
        push_reference(
            &mut text,
            payload.form,
            &reference::render_reference(id, &file, payload, message.role),
        );
        from = payload.replaced_range.1;
        files.push((id, file));
    }
    text.push_str(raw.get(from..)?);
    let ParsedMessage { parts, tokens, role, .. } = message::parse(dialect, &text).ok()?;
    let is_fit = int::to_u64(text.len()) <= limits::MESSAGE_BYTES_MAX && role == message.role;
    is_fit.then_some(NewPlaceholder { raw: text, parts, tokens, payload_tokens_min, files })
}

fn push_reference(out: &mut String, form: ReferenceForm, reference: &str) {
    let mut literal = String::new();
    json::write_string(&mut literal, reference);
    match form {
        ReferenceForm::Inside => out.push_str(json::string_body(&literal).unwrap_or_default()),
        ReferenceForm::Text => out.push_str(&literal),
        ReferenceForm::Object => out.extend(["{\"output\":", &literal, "}"]),
    }
}

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests;
