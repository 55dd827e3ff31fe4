//! Messages with a role and a list of JSON fragments, for Anthropic and Gemini.
//!
//! In: fragments by role. Out: the written array. The first and the last message must be the
//! user's, so that a placeholder turn is added before or behind a message of the model.

use alloc::{format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
};
use lcm_text::{
    message::meaning::{CLOSING_PLACEHOLDER, OPENING_PLACEHOLDER},
    types::api::Dialect,
};

/// A message of one role.
pub(super) struct RoleMessage {
    /// Role as the dialect writes it; empty: the message has no role.
    pub(super) role: &'static str,
    pub(super) fragments: Vec<JsonFragment>,
}

impl RoleMessage {
    fn is_model(&self) -> bool {
        matches!(self.role, "assistant" | "model")
    }
}

/// Appends fragments to the last message if it has the role `role`, else as a new message. An empty
/// list adds nothing.
pub(super) fn push_fragments(
    out: &mut Vec<RoleMessage>,
    role: &'static str,
    fragments: Vec<JsonFragment>,
) {
    if fragments.is_empty() {
        return;
    }
    match out.last_mut().filter(|last| last.role == role) {
        Some(last) => last.fragments.extend(fragments),
        None => out.push(RoleMessage { role, fragments }),
    }
}

/// Placeholder turns of the user around the messages of the model.
pub(super) struct UserPadding {
    /// Writes a text as a block of the dialect.
    pub(super) text_json: fn(&str) -> String,
    /// Whether a turn is added before a message of the model at the start.
    pub(super) pads_start: bool,
    /// Whether a turn is added behind a message of the model at the end.
    pub(super) pads_end: bool,
}

impl UserPadding {
    /// Adds the placeholder turns to messages.
    pub(super) fn add_turns(&self, out: &mut Vec<RoleMessage>, notes: &mut RenderNotes) {
        let mut placeholder = |fragment: Option<&JsonFragment>, text: &str| {
            let entry = fragment.map_or(0, |fragment| fragment.entry);
            notes.add_note(entry, RenderNote::SyntheticTurn);
            let json = (self.text_json)(text);
            let fragment = JsonFragment { is_synthetic: true, ..JsonFragment::new(entry, json) };
            RoleMessage { role: "user", fragments: Vec::from([fragment]) }
        };
        if let Some(first) = out.first().filter(|first| first.is_model() && self.pads_start) {
            let message = placeholder(first.fragments.first(), OPENING_PLACEHOLDER);
            out.insert(0, message);
        }
        if let Some(last) = out.last().filter(|last| last.is_model() && self.pads_end) {
            let message = placeholder(last.fragments.last(), CLOSING_PLACEHOLDER);
            out.push(message);
        }
    }
}

/// Writes all messages, each with its fragments as the list `key`.
pub(super) fn write_messages(
    dialect: Dialect,
    out: &[RoleMessage],
    key: &str,
    notes: &mut RenderNotes,
) -> ArrayWriter {
    let mut writer = ArrayWriter::new(dialect);
    for message in out {
        let open = match message.role {
            "" => format!("{{\"{key}\":["),
            role => format!("{{\"role\":\"{role}\",\"{key}\":["),
        };
        writer.push_message(&open, &message.fragments, "]}", notes);
    }
    writer
}
