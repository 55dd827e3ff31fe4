//! Reads messages of the Anthropic Messages API, as requests and responses have them.
//!
//! In: the JSON text of one message. Out: its projection. A user message that has only tool results
//! gets the role `tool`. Undocumented blocks become [`Part::Other`]; in a JSON object, only a
//! missing or unknown role is an error. The provider's rules are in [`super::validate`].

use alloc::vec::Vec;

use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonValue},
    },
    message::{
        blocks::{self, JsonObject, MessageBlock, PartCollector, RoleNames},
        parsed_message::{MessageReading, ParsedMessage},
        part::{Part, Role},
    },
    types::api::Dialect,
};

/// Most elements of `content` that become separate parts.
const LISTED_MAX: usize = 1_023;

/// Values of `role` in this dialect, each with its role. A request has the system prompt outside
/// its messages, but hosts may append a system prompt as a message.
const ROLES: RoleNames =
    &[("user", Role::User), ("assistant", Role::Assistant), ("system", Role::System)];

/// Documented members of messages in requests and responses, and members that a host may add.
const MEMBERS: [&str; 14] = [
    "role",
    "content",
    "id",
    "type",
    "model",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "usage",
    "container",
    "context_management",
    "timestamp",
    "event_key",
    "trust",
];

/// Parses one message.
pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let message = JsonObject::new(raw, json::parse_object(raw)?);
    let mut role = blocks::read_role(&message, Dialect::Anthropic, ROLES)?;
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &message, &mut |block| parts.push(0, block));
    let parts = parts.finish();
    role = blocks::tool_role(role, &parts);
    let has_more = !blocks::has_only_documented(&message, &MEMBERS);
    let (dialect, members) = (Dialect::Anthropic, &message.members);
    Ok(MessageReading { dialect, raw, members, role, parts, has_more }.into_message())
}

/// Returns all parts of a stored message with their JSON values, without a limit on their number.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    each_block(raw, &message, &mut |block| out.push(block));
    out
}

/// Calls `emit` with the part of each block of a message.
fn each_block(raw: &str, message: &JsonObject<'_>, emit: &mut dyn FnMut(MessageBlock)) {
    let Some(content) = message.get_field("content") else { return };
    let whole = content.value;
    match content.kind {
        JsonKind::String => emit(MessageBlock { part: Part::Text { text: whole }, whole }),
        JsonKind::Array => {
            for value in json::list_elements(raw, whole) {
                emit(MessageBlock { part: read_block(raw, value), whole: value.span });
            }
        }
        _ => emit(MessageBlock { part: Part::Other { value: whole }, whole }),
    }
}

/// Reads one block as a part; [`Part::Other`] if the block has an undocumented type or lacks a
/// required field.
pub(crate) fn read_block(raw: &str, value: JsonValue) -> Part {
    JsonObject::from_value(raw, value)
        .and_then(|block| read_known_block(raw, &block))
        .unwrap_or(Part::Other { value: value.span })
}

/// Reads a block of a documented type; `None`: another type, or a required field is missing.
fn read_known_block(raw: &str, block: &JsonObject<'_>) -> Option<Part> {
    Some(match &*block.get_text("type") {
        "text" => Part::Text { text: block.get_string("text")? },
        "thinking" => Part::Reasoning { text: block.get_string("thinking")? },
        "redacted_thinking" => Part::Reasoning { text: block.get_string("data")? },
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Part::ToolCall {
            id: block.get_id("id"),
            name: Some(block.get_string("name")?),
            input: block.get_value("input"),
        },
        kind if is_result_type(kind) => Part::ToolResult {
            call_id: block.get_id("tool_use_id"),
            name: None,
            output: block.get_value("content"),
            is_error: block.get_bool("is_error"),
        },
        "image" | "document" => read_source(raw, block)?,
        "search_result" => Part::File {
            name: read_title(raw, block).or_else(|| block.get_string("source")),
            mime: None,
            text: Some(block.get_value("content")?),
            data: None,
        },
        _ => return None,
    })
}

/// Returns whether blocks of this type are results of calls.
pub fn is_result_type(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

/// Reads an image or document whose content is inside the message; `None`: the content is elsewhere
/// or missing. The text of a document can be a list of blocks.
fn read_source(raw: &str, block: &JsonObject<'_>) -> Option<Part> {
    let source = block.get_object("source")?;
    let data = source.get_string("data");
    let (text, data) = match &*source.get_text("type") {
        "base64" => (None, Some(data?)),
        "text" => (Some(data?), None),
        "content" if block.get_text("type") == "document" => {
            (Some(source.get_value("content")?), None)
        }
        _ => return None,
    };
    Some(Part::File {
        name: read_title(raw, block),
        mime: source.get_string("media_type"),
        text,
        data,
    })
}

/// Returns the title of a document or search result; `None`: no title, or an empty title.
fn read_title(raw: &str, block: &JsonObject<'_>) -> Option<ByteSpan> {
    block.get_string("title").filter(|title| json::slice_span(raw, *title) != "\"\"")
}
