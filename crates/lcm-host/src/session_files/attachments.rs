//! Reads the attachments of Claude Code: what was put before the model beside a prompt.
//! Read from files of Claude Code, 2026-11-28.
//!
//! In: the member `attachment` of a line. Out: a user message of `anthropic` if the attachment has
//! content that reached the model: a queued prompt as the person typed it, any other attachment
//! with a line that names it and the mark `isMeta`.

use serde_json::value::RawValue;

use super::{
    line::{self, Object, Text},
    records,
};

/// Types of attachments with content: the words before the name, the member with the name, and
/// that with the content.
const TYPES: [(&str, &str, &str, &str); 18] = [
    ("file", "File", "filename", "content"),
    ("already_read_file", "File", "filename", "content"),
    ("edited_text_file", "Edited file", "filename", "snippet"),
    ("edited_image_file", "Edited file", "filename", "content"),
    ("selected_lines_in_ide", "Lines selected in the editor, of", "filename", "content"),
    ("directory", "Folder", "path", "content"),
    ("nested_memory", "Instructions", "path", "content"),
    ("relevant_memories", "Memories", "path", "memories"),
    ("hook_additional_context", "Context of the hook", "hookName", "content"),
    ("hook_success", "Output of the hook", "hookName", "content"),
    ("hook_blocking_error", "Error of the hook", "hookName", "blockingError"),
    ("hook_stopped_continuation", "Message of the hook", "hookName", "message"),
    ("async_hook_response", "Response of the hook", "hookName", "response"),
    ("plan_file_reference", "Plan", "planFilePath", "planContent"),
    ("mcp_resource", "Resource", "uri", "content"),
    ("invoked_skills", "Skills", "", "skills"),
    ("diagnostics", "Diagnostics", "", "files"),
    ("critical_system_reminder", "Reminder", "", "content"),
];

/// Members whose text is the content of a nested object, in the order of their search.
const NESTED: [&str; 6] =
    ["file", "content", "text", "blockingError", "base64", "additionalContext"];

/// Types of attachments that say only what the program did, or which tools it has.
const PROGRAM: [&str; 9] = [
    "agent_listing_delta",
    "command_permissions",
    "date_change",
    "deferred_tools_delta",
    "mcp_instructions_delta",
    "opened_file_in_ide",
    "skill_listing",
    "task_reminder",
    "todo_reminder",
];

/// Returns whether an attachment without a message has no words that could be lost: its type is one
/// of the program, or its content is known to be blank.
pub(super) fn is_without_words(attachment: &Object<'_>) -> bool {
    let kind = attachment.text("type").unwrap_or_default();
    let content = TYPES.iter().find(|(known, ..)| *known == kind);
    PROGRAM.contains(&kind.as_str()) || content.is_some_and(|(.., content)| attachment.has(content))
}

/// Returns the message of an attachment; `None`: it has no content that reached the model.
pub(super) fn read(attachment: &Object<'_>) -> Option<String> {
    let kind = attachment.text("type")?;
    if kind == "queued_command" {
        let prompt = attachment.any("prompt")?;
        let mode = attachment.text("commandMode");
        let is_person = mode.is_none_or(|mode| mode == "prompt");
        let text = Text::default().string("role", "user").raw("content", prompt.get());
        return Some(if is_person { text } else { text.raw("isMeta", "true") }.end());
    }
    let (_, title, name, content) = TYPES.iter().find(|(known, ..)| *known == kind)?;
    let content = attachment.any(content)?;
    let name = attachment.text(name).unwrap_or_default();
    let title = if name.is_empty() { format!("{title}:") } else { format!("{title} {name}:") };
    let blocks = match read_image(content) {
        Some(image) => Vec::from([records::text_part(&title), image]),
        None => {
            let text = collect_text(content);
            if text.trim().is_empty() {
                return None;
            }
            Vec::from([records::text_part(&format!("{title}\n{text}"))])
        }
    };
    let text = Text::default().string("role", "user").raw("content", &line::array(&blocks));
    Some(text.raw("isMeta", "true").string("attachment", &kind).end())
}

/// Returns the image in the content of a file; `None`: the content is no image.
fn read_image(content: &RawValue) -> Option<String> {
    let content = Object::from_value(content)?;
    let file = content.object("file")?;
    let (data, mime) = (file.text("base64")?, file.text("type")?);
    if content.text("type").as_deref() != Some("image") {
        return None;
    }
    Some(records::image_block(&mime, &data))
}

/// Returns the texts of a content: a string, a list, or an object that has it in a known member;
/// any other object as JSON.
fn collect_text(value: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        return text;
    }
    if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        let texts: Vec<String> = list.into_iter().map(collect_text).collect();
        return texts.join("\n");
    }
    let Some(object) = Object::from_value(value) else { return value.get().to_owned() };
    match NESTED.iter().find_map(|key| object.any(key)) {
        Some(inner) => collect_text(inner),
        None => value.get().to_owned(),
    }
}
