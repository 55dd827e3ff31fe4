//! Messages in which a user and a model take turns: what Messages and Gemini have in common.
//!
//! Each has a role and a list of pieces. The first message is the user's, and the last one, too.

use alloc::{format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
};
use lcm_text::types::api::Dialect;

/// Stands before a model that would be first.
const OPENING_PLACEHOLDER: &str = "[earlier messages are not shown]";
/// Stands behind a model that would be last.
const CLOSING_PLACEHOLDER: &str = "[the conversation continues here]";

/// One message.
pub(super) struct RoleMessage {
    /// As the dialect writes it; empty: not at all.
    pub(super) role: &'static str,
    pub(super) fragments: Vec<JsonFragment>,
}

impl RoleMessage {
    fn is_model(&self) -> bool {
        matches!(self.role, "assistant" | "model")
    }
}

/// Adds pieces to the last message when it has this role, else a message; nothing for no pieces.
pub(super) fn push_fragments(
    out: &mut Vec<RoleMessage>,
    role: &'static str,
    bits: Vec<JsonFragment>,
) {
    if bits.is_empty() {
        return;
    }
    match out.last_mut().filter(|last| last.role == role) {
        Some(last) => last.fragments.extend(bits),
        None => out.push(RoleMessage { role, fragments: bits }),
    }
}

/// Puts a user at the beginning, unless the array has `begun` before, and at the end, unless the
/// provider is `at_work`.
pub(super) fn pad_with_user_turns(
    out: &mut Vec<RoleMessage>,
    text_json: fn(&str) -> String,
    (begun, at_work): (bool, bool),
    notes: &mut RenderNotes,
) {
    let mut placeholder = |entry: usize, text: &str| {
        notes.add_note(entry, RenderNote::SyntheticTurn);
        let bit = JsonFragment { is_synthetic: true, ..JsonFragment::new(entry, text_json(text)) };
        RoleMessage { role: "user", fragments: Vec::from([bit]) }
    };
    let entry = |bit: Option<&JsonFragment>| bit.map_or(0, |bit| bit.entry);
    if let Some(first) = out.first().filter(|first| first.is_model() && !begun) {
        let message = placeholder(entry(first.fragments.first()), OPENING_PLACEHOLDER);
        out.insert(0, message);
    }
    if let Some(last) = out.last().filter(|last| last.is_model() && !at_work) {
        let message = placeholder(entry(last.fragments.last()), CLOSING_PLACEHOLDER);
        out.push(message);
    }
}

/// Writes all of them, with the list under this key.
pub(super) fn write_messages(
    dialect: Dialect,
    out: &[RoleMessage],
    key: &str,
    notes: &mut RenderNotes,
) -> ArrayWriter {
    let mut sink = ArrayWriter::new(dialect);
    for message in out {
        let open = match message.role {
            "" => format!("{{\"{key}\":["),
            role => format!("{{\"role\":\"{role}\",\"{key}\":["),
        };
        sink.push_message(&open, &message.fragments, "]}", notes);
    }
    sink
}
