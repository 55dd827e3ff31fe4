//! Reads sessions of the Codex CLI (rollouts). Read from files of the Codex CLI, 2026-11-28.
//!
//! In: lines with `timestamp`, `type` and `payload`. The payload of a `response_item` is an item of
//! the `OpenAI` Responses API. Lines of early files are a header and items without an envelope.
//! Out: one message of `lcm` for each item, in the order of the file.
//!
//! Other lines are records of the program: `event_msg` repeats messages for a screen, and becomes a
//! message only if no item has it (`codex_events`). `turn_context` and `session_meta` are settings,
//! `compacted` is a summary of earlier items. Such a summary becomes a message only before all
//! other messages. A rollback of `num_turns` turns makes a branch of the items from the message on
//! with which the first of these turns begins: a user message that is no context of the program.
//!
//! Items are read as `lcm`, not as items of the API, because the program omits required ids and
//! adds items that the API rejects.

use serde_json::value::RawValue;

use super::{
    FileMessage, Growth, LineError, SessionContent,
    codex_events::{self, EventMessage},
    entries::{Ids, SkippedCounts},
    line::{self, Object, Text},
    records,
};

const SNAPSHOT: &str = "snapshots of the program";
const SUMMARY: &str = "summaries of the program, whose items are in the file";
const ROLE: &str = "items of another role than system, developer, user and assistant";
/// Types of events without words of their own: they repeat an item, or say only what the program
/// did. If no item has the prompt or answer of an event, [`codex_events`] makes it a message.
const EVENTS: [&str; 27] = [
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "background_event",
    "context_compacted",
    "exec_command_begin",
    "exec_command_end",
    "item_completed",
    "item_started",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "plan_update",
    "task_complete",
    "task_started",
    "thread_rolled_back",
    "token_count",
    "turn_aborted",
    "turn_complete",
    "turn_diff",
    "turn_started",
    "user_message",
    "view_image_tool_call",
    "web_search_begin",
    "web_search_end",
];
/// Elements in which the program hands over context. A person may write any other element.
const CONTEXT: [&str; 8] = [
    "collaboration_mode",
    "environment_context",
    "permissions",
    "skill",
    "subagent_notification",
    "turn_aborted",
    "user_instructions",
    "user_shell_command",
];

pub(super) fn read(
    lines: &[String],
    objects: &[Object<'_>],
    growth: Growth,
) -> Result<SessionContent, LineError> {
    let of_events = codex_events::find_messages(objects, growth);
    let mut ids = Ids::default();
    let mut left = SkippedCounts::default();
    let mut found = SessionContent::default();
    // Indexes of the messages with which the live turns begin.
    let mut turns: Vec<usize> = Vec::new();
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let session = read_session_id(object).unwrap_or_default();
        ids.enter_session(&session);
        found.session = found.session.or_else(|| Some(session).filter(|id| !id.is_empty()));
        let kind = object.text("type").or_else(|| object.text("record_type"));
        let kind = kind.unwrap_or_else(|| "header".to_owned());
        let payload = object.object("payload");
        if let Some(payload) = &payload {
            found.project = found.project.or_else(|| payload.text("cwd"));
            roll_back(&mut found, &mut turns, payload);
        }
        if let Some(message) = of_events.get(&index) {
            if message.role == "user" {
                turns.push(found.messages.len());
            }
            let text = write_event(message, &ids.name_line(line), object);
            found.messages.push(FileMessage { text, line: index });
            continue;
        }
        let item = match (kind.as_str(), &payload) {
            ("response_item", Some(item)) => Some(item.clone()),
            ("compacted", Some(payload)) if found.messages.is_empty() => read_summary(payload),
            ("compacted", _) => {
                left.count_message(SUMMARY);
                continue;
            }
            _ => None,
        };
        let bare = !object.has("payload") && object.has("type");
        let Some(item) = item.as_ref().or_else(|| bare.then_some(object)) else {
            let unknown = name_unknown(&kind, payload.as_ref());
            unknown.into_iter().for_each(|kind| left.count_line(&kind));
            continue;
        };
        let id = match item.text("id") {
            Some(id) => {
                ids.name_entry(&id, object.any("payload").map_or(line.as_str(), RawValue::get))
            }
            None => ids.name_line(line),
        };
        let head = Text::default().string("id", &id).kept("timestamp", object.any("timestamp"));
        match convert_item(head, item) {
            Ok(text) => {
                if begins_turn(item) {
                    turns.push(found.messages.len());
                }
                found.messages.push(FileMessage { text, line: index });
            }
            Err(reason) => left.count_message(reason),
        }
    }
    left.set_aside(&found.branches);
    found.warnings = left.warnings();
    found.warnings.extend(ids.warning());
    Ok(found)
}

/// Sets the turns that an event rolls back aside. `turns`: indexes of the messages with which the
/// live turns begin.
fn roll_back(found: &mut SessionContent, turns: &mut Vec<usize>, payload: &Object<'_>) {
    let Some(count) = rolled_back_turns(payload) else { return };
    let first = turns.len().saturating_sub(count);
    let from = turns.get(first).copied();
    turns.truncate(first);
    from.into_iter().for_each(|from| records::set_aside_from(found, from));
}

/// Returns the message of an event with this entry id.
fn write_event(message: &EventMessage, id: &str, line: &Object<'_>) -> String {
    let payload = line.object("payload").unwrap_or_default();
    let source = Text::default().rest(&payload, &["message", "images"]).end();
    let text = Text::default().string("id", id).kept("timestamp", line.any("timestamp"));
    let text = text.string("role", message.role).raw("parts", &message.parts);
    text.raw("source", &source).end()
}

/// Returns the type of a line without a message, for a warning; `None`: such lines never have one.
fn name_unknown(kind: &str, payload: Option<&Object<'_>>) -> Option<String> {
    match (kind, payload) {
        ("header" | "state" | "session_meta" | "turn_context", _) => None,
        ("event_msg", Some(event)) => {
            let kind = event.text("type").unwrap_or_default();
            let is_text = event.any("message").is_none_or(line::is_string);
            let is_known = EVENTS.contains(&kind.as_str()) && is_text;
            (!is_known).then(|| format!("event_msg {kind}"))
        }
        (kind, _) => Some(kind.to_owned()),
    }
}

/// Returns the number of turns that an event rolls back; `None`: another event.
fn rolled_back_turns(payload: &Object<'_>) -> Option<usize> {
    let is_rollback = payload.text("type").as_deref() == Some("thread_rolled_back");
    is_rollback.then(|| payload.any("num_turns").and_then(|turns| turns.get().parse().ok()))?
}

/// Returns whether an item is a message of the person. Messages in which the program hands over
/// context have the role `user`, too.
fn begins_turn(item: &Object<'_>) -> bool {
    if item.text("role").as_deref() != Some("user") {
        return false;
    }
    let blocks = item.list("content").unwrap_or_default();
    let first = blocks.into_iter().find_map(|block| Object::from_value(block)?.text("text"));
    let text = first.or_else(|| item.text("content")).unwrap_or_default();
    !is_context(text.trim())
}

/// Returns whether a text is context of the program: one of its elements, or instructions.
fn is_context(text: &str) -> bool {
    let name = text.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
    let is_element = name.is_some_and(|name| {
        let known = name.split_whitespace().next().unwrap_or_default().to_lowercase();
        CONTEXT.contains(&known.as_str()) && text.ends_with(&format!("</{name}>"))
    });
    is_element || text.starts_with("# AGENTS.md instructions")
}

/// Returns the id of the session from a header; `None`: the line is no header, or a header without
/// an id.
fn read_session_id(object: &Object<'_>) -> Option<String> {
    match object.text("type").as_deref() {
        Some("session_meta") => object.object("payload")?.text("id"),
        None => object.text("id"),
        _ => None,
    }
}

/// Returns the payload of a `compacted` line as an item; `None`: the payload has no text of the
/// summary.
fn read_summary<'a>(payload: &Object<'a>) -> Option<Object<'a>> {
    payload.text("message").map(|_| payload.clone())
}

/// Converts an item to a message; `Err`: the reason to skip the item.
fn convert_item(head: Text, item: &Object<'_>) -> Result<String, &'static str> {
    let kind = item.text("type").unwrap_or_default();
    let source = |used: &[&str]| Text::default().rest(item, used).end();
    let one = |role: &str, part: String, used: &[&str]| {
        let parts = line::array(&[part]);
        head.clone().string("role", role).raw("parts", &parts).raw("source", &source(used)).end()
    };
    match kind.as_str() {
        "" if item.has("message") => {
            let text = item.any("message").map(RawValue::get).unwrap_or("\"\"");
            Ok(head
                .string("role", "assistant")
                .raw("content", text)
                .raw("source", r#"{"type":"compacted"}"#)
                .end())
        }
        "" | "message" => {
            let role = match item.text("role").as_deref() {
                Some("user") => "user",
                Some("assistant") => "assistant",
                Some("system" | "developer") => "system",
                _ => return Err(ROLE),
            };
            let used: &[&str] = if item.text("role").as_deref() == Some("developer") {
                &["content"]
            } else {
                &["role", "content"]
            };
            let head = head.string("role", role);
            let head = match item.list("content") {
                Some(blocks) => {
                    let parts: Vec<String> = blocks.into_iter().map(convert_block).collect();
                    head.raw("parts", &line::array(&parts))
                }
                None => head.kept("content", item.any("content")),
            };
            Ok(head.raw("source", &source(used)).end())
        }
        "reasoning" => Ok(one(
            "assistant",
            convert_reasoning(item),
            &["summary", "content", "encrypted_content"],
        )),
        "function_call" | "custom_tool_call" | "local_shell_call" => Ok(one(
            "assistant",
            convert_call(item, &kind),
            &["call_id", "name", "arguments", "input", "action"],
        )),
        "ghost_snapshot" => Err(SNAPSHOT),
        "compaction" | "compaction_summary" | "context_compaction" => Err(SUMMARY),
        kind if kind.ends_with("_call_output") && item.has("output") => {
            Ok(one("tool", convert_result(item), &["call_id", "output"]))
        }
        // Calls of tools that run at the provider, and unknown items, stay unchanged.
        kind => {
            let role = if kind.ends_with("_output") { "tool" } else { "assistant" };
            let parts = line::array(&[source(&[])]);
            Ok(head.string("role", role).raw("parts", &parts).end())
        }
    }
}

/// Converts a block of an item's `content` to a part of `lcm`; unknown blocks stay unchanged.
fn convert_block(value: &RawValue) -> String {
    let Some(block) = Object::from_value(value) else { return value.get().to_owned() };
    match block.text("type").as_deref() {
        Some("input_text" | "output_text" | "text") => Text::default()
            .string("type", "text")
            .kept("text", block.any("text"))
            .rest(&block, &["type", "text"])
            .end(),
        Some("input_image") => convert_image(&block).unwrap_or_else(|| value.get().to_owned()),
        _ => value.get().to_owned(),
    }
}

/// Converts an embedded image to a file; `None`: the block only refers to an image.
fn convert_image(block: &Object<'_>) -> Option<String> {
    let url = block.text("image_url")?;
    let (mime, data) = records::split_data_url(&url)?;
    let text = Text::default().string("type", "file").string("mime", mime).string("data", data);
    Some(text.rest(block, &["type", "image_url"]).end())
}

fn convert_reasoning(item: &Object<'_>) -> String {
    let texts = |key| item.list(key).unwrap_or_default();
    let blocks =
        texts("summary").into_iter().chain(texts("content")).filter_map(Object::from_value);
    let said: Vec<String> = blocks.filter_map(|block| block.text("text")).collect();
    Text::default()
        .string("type", "reasoning")
        .string("text", &said.join("\n\n"))
        .kept("summary", item.any("summary"))
        .kept("content", item.any("content"))
        .kept("encrypted_content", item.any("encrypted_content"))
        .end()
}

/// Converts a call. If the arguments are a string with a JSON object, the object is the input.
fn convert_call(item: &Object<'_>, kind: &str) -> String {
    let text = Text::default().string("type", "tool_call");
    let text = text.kept("id", item.any("call_id").or_else(|| item.any("id")));
    if kind == "local_shell_call" {
        return text.string("name", "local_shell").kept("input", item.any("action")).end();
    }
    let text = text.kept("name", item.any("name"));
    let arguments = item.text("arguments").filter(|inner| Object::read(inner).is_ok());
    match arguments {
        Some(arguments) => text.raw("input", arguments.trim()),
        None => text.kept("input", item.any("arguments").or_else(|| item.any("input"))),
    }
    .end()
}

/// Converts the output of a call. In early files the output is an object with `content` and
/// `success`.
fn convert_result(item: &Object<'_>) -> String {
    let text = Text::default().string("type", "tool_result").kept("call_id", item.any("call_id"));
    let wrapped = item.object("output").filter(|output| output.has("content"));
    let Some(output) = wrapped else { return text.kept("output", item.any("output")).end() };
    let failed = output.any("success").is_some_and(|success| success.get() == "false");
    let text = text.kept("output", output.any("content"));
    let text = if failed { text.raw("is_error", "true") } else { text };
    text.rest(&output, &["content", "is_error", "type", "call_id", "name", "output"]).end()
}
