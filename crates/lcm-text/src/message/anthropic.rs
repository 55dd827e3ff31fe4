//! Reads messages of the Anthropic Messages API, as requests and responses have them.
//!
//! In: the JSON text. Out: role and parts. A message that consists of tool results is the tool's,
//! whatever its role says. Blocks that nobody documented are kept as [`Part::Other`]; only a
//! missing or unknown role is an error.

use alloc::vec::Vec;

use super::{
    ParsedMessage, Part, Role,
    blocks::{self, JsonObject, MessageBlock, PartCollector},
    build_message,
};
use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonValue},
    },
    types::api::Dialect,
};

/// Elements of `content` that are parts of their own.
const LISTED_MAX: usize = 1_023;

/// `system` stands beside the messages of a request, but hosts keep it among them.
const ROLES: [(&str, Role); 3] =
    [("user", Role::User), ("assistant", Role::Assistant), ("system", Role::System)];

/// Members of messages in requests and responses, and what a host may add.
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

pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let message = JsonObject::new(raw, json::parse_object(raw)?);
    let mut role = blocks::read_role(&message, "anthropic", &ROLES)?;
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &message, &mut |block| parts.push(0, block));
    let parts = parts.finish();
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    if role == Role::User && !parts.is_empty() && parts.iter().all(is_result) {
        role = Role::Tool;
    }
    let has_more = !blocks::has_only_documented(&message, &MEMBERS);
    Ok(build_message(Dialect::Anthropic, raw, &message.members, role, parts, has_more))
}

/// Every block of a message that was read before, without a bound.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    each_block(raw, &message, &mut |block| out.push(block));
    out
}

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

/// One block. What lacks a field that its type must have is [`Part::Other`].
pub(crate) fn read_block(raw: &str, value: JsonValue) -> Part {
    JsonObject::from_value(raw, value)
        .and_then(|block| read_known_block(raw, &block))
        .unwrap_or(Part::Other { value: value.span })
}

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

/// Whether blocks of this type answer a call.
pub fn is_result_type(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

/// An image or a document that the message holds; one that it only names is no file. The text of a
/// document can be a list of blocks.
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

/// The title of a document or search result, unless it is empty.
fn read_title(raw: &str, block: &JsonObject<'_>) -> Option<ByteSpan> {
    block.get_string("title").filter(|title| json::slice_span(raw, *title) != "\"\"")
}
