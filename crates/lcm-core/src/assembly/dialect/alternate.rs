//! Messages in which a user and a model take turns: what Messages and Gemini have in common.
//!
//! Each has a role and a list of pieces. The first message is the user's, and the last one, too.

use alloc::{format, string::String, vec::Vec};

use super::{
    Note, Notes,
    sink::{Bit, Sink},
};
use lcm_text::types::api::Dialect;

/// Stands before a model that would be first.
const BEFORE: &str = "[earlier messages are not shown]";
/// Stands behind a model that would be last.
const BEHIND: &str = "[the conversation continues here]";

/// One message.
pub(super) struct Message {
    /// As the dialect writes it; empty: not at all.
    pub(super) role: &'static str,
    pub(super) bits: Vec<Bit>,
}

impl Message {
    fn is_model(&self) -> bool {
        matches!(self.role, "assistant" | "model")
    }
}

/// Adds pieces to the last message when it has this role, else a message; nothing for no pieces.
pub(super) fn push(out: &mut Vec<Message>, role: &'static str, bits: Vec<Bit>) {
    if bits.is_empty() {
        return;
    }
    match out.last_mut().filter(|last| last.role == role) {
        Some(last) => last.bits.extend(bits),
        None => out.push(Message { role, bits }),
    }
}

/// Puts a user at the beginning, unless the array has `begun` before, and at the end, unless the
/// provider is `at_work`.
pub(super) fn begin_and_end(
    out: &mut Vec<Message>,
    text_json: fn(&str) -> String,
    (begun, at_work): (bool, bool),
    notes: &mut Notes,
) {
    let mut placeholder = |entry: usize, text: &str| {
        notes.add(entry, Note::SyntheticTurn);
        let bit = Bit { is_synthetic: true, ..Bit::new(entry, text_json(text)) };
        Message { role: "user", bits: Vec::from([bit]) }
    };
    let entry = |bit: Option<&Bit>| bit.map_or(0, |bit| bit.entry);
    if let Some(first) = out.first().filter(|first| first.is_model() && !begun) {
        let message = placeholder(entry(first.bits.first()), BEFORE);
        out.insert(0, message);
    }
    if let Some(last) = out.last().filter(|last| last.is_model() && !at_work) {
        let message = placeholder(entry(last.bits.last()), BEHIND);
        out.push(message);
    }
}

/// Writes all of them, with the list under this key.
pub(super) fn write(dialect: Dialect, out: &[Message], key: &str, notes: &mut Notes) -> Sink {
    let mut sink = Sink::new(dialect);
    for message in out {
        let open = match message.role {
            "" => format!("{{\"{key}\":["),
            role => format!("{{\"role\":\"{role}\",\"{key}\":["),
        };
        sink.message(&open, &message.bits, "]}", notes);
    }
    sink
}
