//! Reads messages of the Anthropic Messages API, as requests and responses have them.
//!
//! In: the JSON text. Out: role and parts. A message that consists of tool results is the tool's,
//! whatever its role says. Blocks that nobody documented are kept as [`Part::Other`]; only a
//! missing or unknown role is an error.

use alloc::vec::Vec;

use super::{
    Message, Part, Role,
    blocks::{self, Block, Object, Parts},
    complete,
};
use crate::{
    base::{
        error::Result,
        json::{self, Kind, Span, Value},
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

pub(super) fn read(raw: &str) -> Result<Message> {
    let message = Object::new(raw, json::object(raw)?);
    let mut role = blocks::read_role(&message, "anthropic", &ROLES)?;
    let mut parts = Parts::new(LISTED_MAX);
    each_block(raw, &message, &mut |block| parts.push(0, block));
    let parts = parts.finish();
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    if role == Role::User && !parts.is_empty() && parts.iter().all(is_result) {
        role = Role::Tool;
    }
    let has_more = !blocks::all_documented(&message, &MEMBERS);
    Ok(complete(Dialect::Anthropic, raw, &message.members, role, parts, has_more))
}

/// Every block of a message that was read before, without a bound.
pub(super) fn blocks(raw: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let message = Object::new(raw, json::object(raw).unwrap_or_default());
    each_block(raw, &message, &mut |block| out.push(block));
    out
}

fn each_block(raw: &str, message: &Object<'_>, emit: &mut dyn FnMut(Block)) {
    let Some(content) = message.field("content") else { return };
    let whole = content.value;
    match content.kind {
        Kind::String => emit(Block { part: Part::Text { text: whole }, whole }),
        Kind::Array => {
            for value in json::elements(raw, whole) {
                emit(Block { part: read_block(raw, value), whole: value.span });
            }
        }
        _ => emit(Block { part: Part::Other { value: whole }, whole }),
    }
}

/// One block. What lacks a field that its type must have is [`Part::Other`].
pub(crate) fn read_block(raw: &str, value: Value) -> Part {
    Object::of(raw, value)
        .and_then(|block| read_known(raw, &block))
        .unwrap_or(Part::Other { value: value.span })
}

fn read_known(raw: &str, block: &Object<'_>) -> Option<Part> {
    Some(match &*block.text("type") {
        "text" => Part::Text { text: block.string("text")? },
        "thinking" => Part::Reasoning { text: block.string("thinking")? },
        "redacted_thinking" => Part::Reasoning { text: block.string("data")? },
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Part::ToolCall {
            id: block.id("id"),
            name: Some(block.string("name")?),
            input: block.any("input"),
        },
        kind if is_result(kind) => Part::ToolResult {
            call_id: block.id("tool_use_id"),
            name: None,
            output: block.any("content"),
            is_error: block.is_true("is_error"),
        },
        "image" | "document" => read_source(raw, block)?,
        "search_result" => Part::File {
            name: title(raw, block).or_else(|| block.string("source")),
            mime: None,
            text: Some(block.any("content")?),
            data: None,
        },
        _ => return None,
    })
}

/// Whether blocks of this type answer a call.
pub fn is_result(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

/// An image or a document that the message holds; one that it only names is no file. The text of a
/// document can be a list of blocks.
fn read_source(raw: &str, block: &Object<'_>) -> Option<Part> {
    let source = block.object("source")?;
    let data = source.string("data");
    let (text, data) = match &*source.text("type") {
        "base64" => (None, Some(data?)),
        "text" => (Some(data?), None),
        "content" if block.text("type") == "document" => (Some(source.any("content")?), None),
        _ => return None,
    };
    Some(Part::File { name: title(raw, block), mime: source.string("media_type"), text, data })
}

/// The title of a document or search result, unless it is empty.
fn title(raw: &str, block: &Object<'_>) -> Option<Span> {
    block.string("title").filter(|title| json::slice(raw, *title) != "\"\"")
}
