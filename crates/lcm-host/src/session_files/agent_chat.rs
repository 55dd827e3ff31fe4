//! Reads chats of Kimi and Hermes, which have messages of Chat Completions, line by line.
//! Read from files of Kimi and Hermes, 2026-11-28.
//!
//! In: records with a role. Out: messages of `openai-chat`, without the records of the program
//! between them.

use serde_json::value::RawValue;

use super::{
    FileMessage, SessionContent,
    entries::{Ids, SkippedCounts},
    formats::Fit,
    line::{self, Object, Text},
};

/// Roles of records that never have a message.
const PROGRAM: [&str; 3] = ["_checkpoint", "_usage", "session_meta"];

/// Returns how a record fits a session of Kimi or Hermes.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    match object.text("role") {
        Some(role) if role.starts_with('_') || role == "session_meta" => Fit::Typical,
        Some(role) if ["system", "user", "assistant", "tool"].contains(&role.as_str()) => {
            if object.has("parts") || object.has("type") { Fit::No } else { Fit::Possible }
        }
        _ => Fit::No,
    }
}

/// Reads a session of Kimi or Hermes.
pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let (mut ids, mut left, mut found) =
        (Ids::default(), SkippedCounts::default(), SessionContent::default());
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let role = object.text("role").unwrap_or_default();
        let text = object.text("content");
        if role == "_system_prompt" && text.is_some() {
            // The prompt of the system stands in a record of its own.
            let id = ids.name_line(line);
            let message = Text::default().string("id", &id).string("role", "system");
            let message = message.kept("content", object.any("content")).end();
            found.messages.push(FileMessage { text: message, line: index });
        } else if role.starts_with('_') || role == "session_meta" {
            found.session = found.session.or_else(|| object.text("session_id"));
            if !PROGRAM.contains(&role.as_str()) {
                left.count_line(&role);
            }
        } else {
            let id = match object.text("id") {
                Some(id) => ids.name_entry(&id, line),
                None => ids.name_line(line),
            };
            let text = write_agent_chat(&id, object);
            found.messages.push(FileMessage { text, line: index });
        }
    }
    found.warnings = left.warnings();
    found.warnings.extend(ids.warning());
    found
}

/// Writes a message with the entry id. Thoughts among the blocks of the content become the member
/// that Chat Completions has for them.
fn write_agent_chat(id: &str, object: &Object<'_>) -> String {
    let head = Text::default().string("id", id);
    let blocks = object.list("content").unwrap_or_default();
    let thought =
        |block: &&RawValue| Object::from_value(block).and_then(|block| block.text("think"));
    let thoughts: Vec<String> = blocks.iter().filter_map(thought).collect();
    if thoughts.is_empty() || object.has("reasoning_content") {
        return head.rest(object, &["id"]).end();
    }
    let rest = blocks.iter().filter(|block| thought(block).is_none());
    let rest: Vec<String> = rest.map(|block| block.get().to_owned()).collect();
    let content = if rest.is_empty() { "null".to_owned() } else { line::array(&rest) };
    let text = head.rest(object, &["id", "content"]).raw("content", &content);
    text.string("reasoning_content", &thoughts.join("\n\n")).end()
}
