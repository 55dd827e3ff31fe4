//! Reads sessions of `OpenClaw`, in the format of the pi agent.
//!
//! In: a header of the type `session`, then entries with `type`, `id`, `parentId` and `timestamp`;
//! files of the first version have neither id nor parent. Out: the `message` and `custom_message`
//! entries of the live branch, and summaries of abandoned branches, as messages of `lcm`. A summary
//! of a compaction becomes a message only before all other messages.
//!
//! Entry ids of these files have 8 hex digits and are unique only within their session, so the id
//! of the session is their prefix.
//!
//! A failed assistant message without content becomes a message without `source`, so that the
//! component skips the message as a failed turn.

use serde_json::value::RawValue;

use super::{
    FileMessage, Found, LineError,
    entries::{ABANDONED, Ids, Left, SUMMARY},
    line::{self, Object, Text},
    tree::{self, Node},
};

const ROLE: &str = "messages of an unknown role";

/// Members of an entry other than its content.
const ENVELOPE: [&str; 4] = ["type", "id", "parentId", "timestamp"];

/// Types of entries with content.
const SAID: [&str; 4] = ["message", "custom_message", "branch_summary", "compaction"];

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> Result<Found, LineError> {
    let mut ids = Ids::default();
    let mut left = Left::default();
    let mut warnings = Vec::new();
    let mut messages = Vec::new();
    let mut session = String::new();
    let node = |object: &Object<'_>| match object.text("type").as_deref() {
        Some("session") => Node::default(),
        _ => Node {
            id: object.text("id"),
            continues: object.text("parentId"),
            is_message: object.text("type").is_some_and(|kind| SAID.contains(&kind.as_str())),
        },
    };
    let nodes: Vec<Node> = objects.iter().map(node).collect();
    let live = tree::live(&nodes);
    for (index, ((line, object), live)) in lines.iter().zip(objects).zip(live).enumerate() {
        let kind = object.text("type").unwrap_or_default();
        if kind == "session" {
            session = object.text("id").unwrap_or_default();
            if object.has("parentSession") || object.has("branchedFrom") {
                warnings.push(
                    "the session is a fork; messages that it copied count as its own messages"
                        .to_owned(),
                );
            }
            left.other(&kind);
            continue;
        }
        let said = match kind.as_str() {
            "message" => object.object("message").ok_or_else(|| {
                LineError::at(index, "must have a `message`, as a `message` entry")
            })?,
            "custom_message" | "branch_summary" | "compaction" => object.clone(),
            _ => {
                left.other(&kind);
                continue;
            }
        };
        let id = match object.text("id") {
            Some(id) => {
                let content = object.any("message").map_or(line.as_str(), RawValue::get);
                ids.own(&format!("{session}/{id}"), content)
            }
            None => ids.of_line(line),
        };
        if !live {
            left.message(ABANDONED);
            continue;
        }
        let time = object.any("timestamp").or_else(|| said.any("timestamp"));
        let head = Text::default().string("id", &id).kept("timestamp", time);
        match message(head, &kind, &said, messages.is_empty()) {
            Ok(text) => messages.push(FileMessage { text, line: index }),
            Err(reason) => left.message(reason),
        }
    }
    warnings.extend(left.warnings());
    warnings.extend(ids.warning());
    Ok(Found { messages, warnings })
}

/// Converts an entry to a message; `Err`: the reason to skip the entry. `first`: no message of the
/// file was kept before the entry.
fn message(head: Text, kind: &str, said: &Object<'_>, first: bool) -> Result<String, &'static str> {
    let role = said.text("role").unwrap_or_default();
    match (kind, role.as_str()) {
        ("message", "user") => Ok(content(head, "user", said, &["role"])),
        ("message", "custom" | "hookMessage") => Ok(content(head, "user", said, &[])),
        ("message", "system") => Ok(content(head, "system", said, &["role"])),
        ("message", "assistant") => Ok(assistant(head, said)),
        ("message", "toolResult") => Ok(result(head, said)),
        ("message", "bashExecution") => Ok(command(head, said)),
        ("custom_message", _) => Ok(content(head, "user", said, &ENVELOPE)),
        ("branch_summary", _) | ("message", "branchSummary") => Ok(summary(head, kind, said)),
        ("compaction", _) | ("message", "compactionSummary") if first => {
            Ok(summary(head, kind, said))
        }
        ("compaction", _) | ("message", "compactionSummary") => Err(SUMMARY),
        _ => Err(ROLE),
    }
}

/// Ends a message with `source`, an object of the members of `said` that are not `used`; without
/// such members there is no `source`.
fn with_source(text: Text, said: &Object<'_>, used: &[&str]) -> String {
    let source = Text::default().rest(said, used).end();
    if source == "{}" { text.end() } else { text.raw("source", &source).end() }
}

fn blocks(text: Text, said: &Object<'_>) -> Text {
    match said.list("content") {
        Some(blocks) => {
            let parts: Vec<String> = blocks.into_iter().map(part).collect();
            text.raw("parts", &line::array(&parts))
        }
        None => text.kept("content", said.any("content")),
    }
}

fn content(head: Text, role: &str, said: &Object<'_>, used: &[&str]) -> String {
    let used: Vec<&str> = used.iter().copied().chain(["content"]).collect();
    with_source(blocks(head.string("role", role), said), said, &used)
}

fn assistant(head: Text, said: &Object<'_>) -> String {
    let text = blocks(head.string("role", "assistant"), said);
    let text = text.kept("stop_reason", said.any("stopReason"));
    let failed = matches!(said.text("stopReason").as_deref(), Some("error" | "aborted"));
    let empty = said.any("content").is_none_or(|content| {
        matches!(content.get().split_whitespace().collect::<String>().as_str(), "[]" | "\"\"")
    });
    if failed && empty {
        return text.end();
    }
    with_source(text, said, &["role", "content", "stopReason"])
}

fn result(head: Text, said: &Object<'_>) -> String {
    let output = said.list("content").and_then(only_text).or_else(|| said.any("content"));
    let part = Text::default()
        .string("type", "tool_result")
        .kept("call_id", said.any("toolCallId"))
        .kept("name", said.any("toolName"))
        .kept("output", output);
    let part = if said.is_true("isError") { part.raw("is_error", "true") } else { part };
    let text = head.string("role", "tool").raw("parts", &line::array(&[part.end()]));
    with_source(text, said, &["role", "toolCallId", "toolName", "content", "isError"])
}

/// Returns the text of a list with exactly one text block without further members; `None`: any
/// other list.
fn only_text(blocks: Vec<&RawValue>) -> Option<&RawValue> {
    let [only] = blocks.as_slice() else { return None };
    let block = Object::of(only)?;
    let is_text = block.text("type").as_deref() == Some("text") && block.members().count() == 2;
    block.any("text").filter(|text| is_text && line::is_string(text))
}

/// Converts a shell command of the person to a user message with the command and its output.
fn command(head: Text, said: &Object<'_>) -> String {
    let typed = said.text("command").unwrap_or_default();
    let shown = format!("$ {typed}\n{}", said.text("output").unwrap_or_default());
    let text = head.string("role", "user").string("content", &shown);
    with_source(text, said, &["role"])
}

fn summary(head: Text, kind: &str, said: &Object<'_>) -> String {
    let text = head.string("role", "user").kept("content", said.any("summary"));
    let used: &[&str] =
        if kind == "message" { &["summary"] } else { &["summary", "id", "parentId", "timestamp"] };
    with_source(text, said, used)
}

/// Converts a block of a message to a part of `lcm`; unknown blocks and members stay unchanged.
fn part(value: &RawValue) -> String {
    let Some(block) = Object::of(value) else { return value.get().to_owned() };
    let kind = block.text("type").unwrap_or_default();
    let (name, renamed): (&str, &[(&str, &str)]) = match kind.as_str() {
        "thinking" => ("reasoning", &[("thinking", "text")]),
        "toolCall" => ("tool_call", &[("id", "id"), ("name", "name"), ("arguments", "input")]),
        "image" if block.has("data") => ("file", &[("mimeType", "mime"), ("data", "data")]),
        _ => return value.get().to_owned(),
    };
    let text = Text::default().string("type", name);
    let text = renamed.iter().fold(text, |text, (from, to)| text.kept(to, block.any(from)));
    let used: Vec<&str> = renamed.iter().map(|(from, _)| *from).chain(["type"]).collect();
    text.rest(&block, &used).end()
}
