//! Reads sessions of `OpenClaw`, in the format of the pi agent, and of Droid.
//!
//! In: a header of the type `session` or `session_start`, then entries with `type`, `id`,
//! `parentId` and `timestamp`; files of the first version have neither id nor parent. The content
//! of messages has the blocks of the pi agent, or those of Anthropic. Out: the `message` and
//! `custom_message` entries, and summaries of abandoned branches, as messages of `lcm`: those of
//! the live branch, each behind its parent, and the others as branches. A summary of a compaction
//! becomes a message only before all other messages.
//!
//! Entry ids of these files have 8 hex digits and are unique only within their session, so the id
//! of the session is their prefix.
//!
//! A failed assistant message without content becomes a message without `source`, so that the
//! component skips the message as a failed turn.

use serde_json::value::RawValue;

use super::{
    FileMessage, LineError, SessionContent,
    entries::{Ids, SUMMARY, SkippedCounts},
    line::{self, Object, Text},
    records::Branches,
    tree::{Node, Tree},
};

const ROLE: &str = "messages of an unknown role";

/// Members of an entry other than its content.
const ENVELOPE: [&str; 4] = ["type", "id", "parentId", "timestamp"];

/// Types of entries with content.
const SAID: [&str; 4] = ["message", "custom_message", "branch_summary", "compaction"];

/// Types of headers.
const HEADERS: [&str; 2] = ["session", "session_start"];

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> Result<SessionContent, LineError> {
    let mut ids = Ids::default();
    let mut left = SkippedCounts::default();
    let (mut found, mut branches) = (SessionContent::default(), Branches::default());
    let nodes: Vec<Node> = objects.iter().map(build_node).collect();
    let mut tree = Tree::new(&nodes);
    let live = tree.find_live();
    // Sessions, each with the index of its header. A header counts from its line on, so that no
    // id changes when the file grows.
    let mut sessions: Vec<(usize, String)> = Vec::new();
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| is_header(object)) {
        sessions.push((index, object.text("id").unwrap_or_default()));
        found.session = object.text("id").or(found.session);
        found.project = object.text("cwd").or(found.project);
        if object.has("parentSession") || object.has("branchedFrom") {
            found.warnings.push(
                "the session is a fork; messages that it copied count as its own messages"
                    .to_owned(),
            );
        }
    }
    for index in tree.order_entries() {
        tree.record_message(index, None);
        let (Some(line), Some(object)) = (lines.get(index), objects.get(index)) else { continue };
        let kind = object.text("type").unwrap_or_default();
        let said = match kind.as_str() {
            "message" => object.object("message").ok_or_else(|| {
                LineError::at(index, "must have a `message`, as a `message` entry")
            })?,
            "custom_message" | "branch_summary" | "compaction" => object.clone(),
            _ => {
                left.count_line(&kind);
                continue;
            }
        };
        let id = match object.text("id") {
            Some(id) => {
                let content = object.any("message").map_or(line.as_str(), RawValue::get);
                let header = sessions.iter().rfind(|(header, _)| *header < index);
                let session = header.map(|(_, session)| session.as_str()).unwrap_or_default();
                ids.name_entry(&format!("{session}/{id}"), content)
            }
            None => ids.name_line(line),
        };
        let is_live = live.get(index).copied().unwrap_or_default();
        let time = object.any("timestamp").or_else(|| said.any("timestamp"));
        let head = Text::default().string("id", &id).kept("timestamp", time);
        let is_first = is_live && found.messages.is_empty();
        match convert_entry(head, &kind, &said, is_first) {
            Ok(text) if is_live => found.messages.push(FileMessage { text, line: index }),
            Ok(text) => {
                let after = tree.message_before(index);
                branches.push(&id, FileMessage { text, line: index }, after);
            }
            Err(reason) => {
                left.count_message(reason);
                continue;
            }
        }
        tree.record_message(index, Some(id));
    }
    found.branches = branches.into_list();
    left.set_aside(&found.branches);
    found.warnings.extend(left.warnings());
    found.warnings.extend(ids.warning());
    Ok(found)
}

fn is_header(object: &Object<'_>) -> bool {
    object.text("type").is_some_and(|kind| HEADERS.contains(&kind.as_str()))
}

fn build_node(object: &Object<'_>) -> Node {
    if is_header(object) {
        return Node::default();
    }
    Node {
        id: object.text("id"),
        continues: object.text("parentId"),
        is_message: object.text("type").is_some_and(|kind| SAID.contains(&kind.as_str())),
    }
}

/// Converts an entry to a message; `Err`: the reason to skip the entry. `first`: no message of the
/// file was kept before the entry.
fn convert_entry(
    head: Text,
    kind: &str,
    said: &Object<'_>,
    first: bool,
) -> Result<String, &'static str> {
    let role = said.text("role").unwrap_or_default();
    match (kind, role.as_str()) {
        ("message", "user") => Ok(convert_content(head, choose_user_role(said), said, &["role"])),
        ("message", "custom" | "hookMessage") => Ok(convert_content(head, "user", said, &[])),
        ("message", "system") => Ok(convert_content(head, "system", said, &["role"])),
        ("message", "assistant") => Ok(convert_answer(head, said)),
        ("message", "toolResult") => Ok(convert_result(head, said)),
        ("message", "bashExecution") => Ok(convert_command(head, said)),
        ("custom_message", _) => Ok(convert_content(head, "user", said, &ENVELOPE)),
        ("branch_summary", _) | ("message", "branchSummary") => {
            Ok(convert_summary(head, kind, said))
        }
        ("compaction", _) | ("message", "compactionSummary") if first => {
            Ok(convert_summary(head, kind, said))
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

fn write_blocks(text: Text, said: &Object<'_>) -> Text {
    match said.list("content") {
        Some(blocks) => {
            let parts: Vec<String> = blocks.into_iter().map(convert_block).collect();
            text.raw("parts", &line::array(&parts))
        }
        None => text.kept("content", said.any("content")),
    }
}

fn convert_content(head: Text, role: &str, said: &Object<'_>, used: &[&str]) -> String {
    let used: Vec<&str> = used.iter().copied().chain(["content"]).collect();
    with_source(write_blocks(head.string("role", role), said), said, &used)
}

/// Returns the role `tool` for a user message that has only results of tools, as Anthropic's have.
fn choose_user_role(said: &Object<'_>) -> &'static str {
    let blocks = said.list("content").unwrap_or_default();
    let is_result = |block: &&RawValue| {
        Object::from_value(block).and_then(|block| block.text("type")).as_deref()
            == Some("tool_result")
    };
    if !blocks.is_empty() && blocks.iter().all(is_result) { "tool" } else { "user" }
}

fn convert_answer(head: Text, said: &Object<'_>) -> String {
    let text = write_blocks(head.string("role", "assistant"), said);
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

fn convert_result(head: Text, said: &Object<'_>) -> String {
    let part = Text::default()
        .string("type", "tool_result")
        .kept("call_id", said.any("toolCallId"))
        .kept("name", said.any("toolName"));
    let part = match said.list("content") {
        Some(blocks) => match only_text(&blocks) {
            Some(text) => part.raw("output", text.get()),
            None => {
                let blocks: Vec<String> = blocks.into_iter().map(convert_output_block).collect();
                part.raw("output", &line::array(&blocks))
            }
        },
        None => part.kept("output", said.any("content")),
    };
    let part = if said.is_true("isError") { part.raw("is_error", "true") } else { part };
    let text = head.string("role", "tool").raw("parts", &line::array(&[part.end()]));
    with_source(text, said, &["role", "toolCallId", "toolName", "content", "isError"])
}

/// Converts an image in the result of a tool to a block that every provider can be sent; other
/// blocks stay unchanged.
fn convert_output_block(value: &RawValue) -> String {
    let image =
        Object::from_value(value).filter(|block| block.text("type").as_deref() == Some("image"));
    let Some((block, data)) = image.as_ref().and_then(|block| Some((block, block.any("data")?)))
    else {
        return value.get().to_owned();
    };
    let source = Text::default().string("type", "base64").kept("media_type", block.any("mimeType"));
    let source = source.raw("data", data.get()).end();
    let text = Text::default().string("type", "image").raw("source", &source);
    text.rest(block, &["type", "data", "mimeType"]).end()
}

/// Returns the text of a list with exactly one text block without further members; `None`: any
/// other list.
fn only_text<'a>(blocks: &[&'a RawValue]) -> Option<&'a RawValue> {
    let [only] = blocks else { return None };
    let block = Object::from_value(only)?;
    let is_text = block.text("type").as_deref() == Some("text") && block.members().count() == 2;
    block.any("text").filter(|text| is_text && line::is_string(text))
}

/// Converts a shell command of the person to a user message with the command and its output.
fn convert_command(head: Text, said: &Object<'_>) -> String {
    let typed = said.text("command").unwrap_or_default();
    let shown = format!("$ {typed}\n{}", said.text("output").unwrap_or_default());
    let text = head.string("role", "user").string("content", &shown);
    with_source(text, said, &["role"])
}

fn convert_summary(head: Text, kind: &str, said: &Object<'_>) -> String {
    let text = head.string("role", "user").kept("content", said.any("summary"));
    let used: &[&str] =
        if kind == "message" { &["summary"] } else { &["summary", "id", "parentId", "timestamp"] };
    with_source(text, said, used)
}

/// Converts a block of a message to a part of `lcm`; unknown blocks and members stay unchanged.
fn convert_block(value: &RawValue) -> String {
    let Some(block) = Object::from_value(value) else { return value.get().to_owned() };
    let kind = block.text("type").unwrap_or_default();
    let (name, renamed): (&str, &[(&str, &str)]) = match kind.as_str() {
        "thinking" => ("reasoning", &[("thinking", "text")]),
        "toolCall" => ("tool_call", &[("id", "id"), ("name", "name"), ("arguments", "input")]),
        "tool_use" => ("tool_call", &[("id", "id"), ("name", "name"), ("input", "input")]),
        "tool_result" => ("tool_result", &[("tool_use_id", "call_id"), ("content", "output")]),
        "image" if block.has("data") => ("file", &[("mimeType", "mime"), ("data", "data")]),
        _ => return value.get().to_owned(),
    };
    let text = Text::default().string("type", name);
    let text = renamed.iter().fold(text, |text, (from, to)| text.kept(to, block.any(from)));
    let used: Vec<&str> = renamed.iter().map(|(from, _)| *from).chain(["type"]).collect();
    text.rest(&block, &used).end()
}
