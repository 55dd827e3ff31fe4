//! The placeholder of a message: a copy in which references replace its large payloads.
//!
//! In: a message and a threshold in tokens. Out: the placeholder, a message of the same dialect,
//! and a record for each payload. [`super::detect`] decides which texts are payloads, and
//! [`super::reference`] writes references.

use alloc::{string::String, vec::Vec};

use crate::{
    base::{int, json, limits},
    message::{
        dialects,
        large_payload::{
            detect, found_payload::ReferenceForm, payload_record::PayloadRecord, reference,
        },
        parsed_message::ParsedMessage,
        part::Part,
    },
    types::api::Dialect,
};

/// A placeholder that is not stored yet.
#[derive(Debug)]
pub struct NewPlaceholder {
    /// Raw text of the placeholder, a message of the same dialect.
    pub raw: String,
    /// Parts of the placeholder.
    pub parts: Vec<Part>,
    /// Tokens of the placeholder.
    pub tokens: u32,
    /// The threshold, in tokens, with which the placeholder was built.
    pub payload_tokens_min: u32,
    /// Ids and records of the payloads; the `seq` of each record is still 0.
    pub files: Vec<([u8; 8], PayloadRecord)>,
}

/// Builds the placeholder of a message. `None`: the message has fewer than `payload_tokens_min`
/// tokens or no payload, or the placeholder would be too large or have another role.
///
/// A message without a placeholder is stored and shown unchanged. `root` is the key root of the
/// conversation, so that payloads of two conversations have different ids.
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
    let ParsedMessage { parts, tokens, role, .. } = dialects::parse(dialect, &text).ok()?;
    let is_valid = int::to_u64(text.len()) <= limits::MESSAGE_BYTES_MAX && role == message.role;
    is_valid.then_some(NewPlaceholder { raw: text, parts, tokens, payload_tokens_min, files })
}

/// Appends a reference in the form that its position needs.
fn push_reference(out: &mut String, form: ReferenceForm, reference: &str) {
    let mut literal = String::new();
    json::write_string(&mut literal, reference);
    match form {
        ReferenceForm::Inside => out.push_str(json::string_body(&literal).unwrap_or_default()),
        ReferenceForm::Text => out.push_str(&literal),
        ReferenceForm::Object => out.extend(["{\"output\":", &literal, "}"]),
    }
}
