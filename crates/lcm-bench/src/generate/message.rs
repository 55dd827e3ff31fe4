//! One message of a workload as its JSON line.

use lcm_text::base::time::iso_millis;
use serde::Serialize;

/// A message.
#[derive(Serialize)]
pub(super) struct Message {
    id: String,
    role: &'static str,
    timestamp: String,
    parts: Vec<Part>,
}

/// A part of a message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    /// Text of a user or of the assistant.
    Text { text: String },
    /// A call of a tool.
    ToolCall { id: String, name: &'static str, input: Input },
    /// The result of a call.
    ToolResult { call_id: String, name: &'static str, output: String },
}

/// The arguments of a call.
#[derive(Serialize)]
pub(super) struct Input {
    /// Path of a file.
    pub(super) path: String,
    /// Two words.
    pub(super) query: String,
    /// A number below 4,000.
    pub(super) line: u32,
}

impl Message {
    /// Creates a message with the time `time_ms`, in milliseconds since the Unix epoch.
    pub(super) fn new(id: String, role: &'static str, time_ms: u64, parts: Vec<Part>) -> Self {
        Self { id, role, timestamp: iso_millis(time_ms), parts }
    }

    /// Returns the message as one line of JSON, without a line end.
    pub(super) fn line(&self) -> String {
        json(self)
    }
}

impl Part {
    /// Returns the bytes and characters of the text, or of a call's arguments as JSON.
    pub(super) fn size(&self) -> (u64, u64) {
        let count = |text: &str| {
            let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            (number(text.len()), number(text.chars().count()))
        };
        match self {
            Self::Text { text } => count(text),
            Self::ToolResult { output, .. } => count(output),
            Self::ToolCall { input, .. } => count(&json(input)),
        }
    }
}

/// Inserts a sentence into the first text part of a message, or without a text part into its first
/// tool result: after the first sentence of the part, or at its end if there is only one sentence.
pub(super) fn insert(parts: &mut [Part], sentence: &str) {
    let has_text = parts.iter().any(|part| matches!(part, Part::Text { .. }));
    let place = parts.iter_mut().find_map(|part| match part {
        Part::Text { text } => Some(text),
        Part::ToolResult { output, .. } if !has_text => Some(output),
        _ => None,
    });
    let Some(text) = place else { return };
    match text.find(". ").filter(|at| *at > 0) {
        Some(at) => text.insert_str(at + 1, sentence),
        None => text.push_str(sentence),
    }
}

fn json(value: &impl Serialize) -> String {
    // Strings and numbers always have a JSON form.
    serde_json::to_string(value).unwrap_or_default()
}
