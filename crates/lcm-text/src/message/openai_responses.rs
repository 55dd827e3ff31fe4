//! Reads items of the `OpenAI` Responses API: what goes in, and what a response puts out.
//!
//! In: the JSON text of one item. Out: role and parts. A message has a role; any other item has the
//! role of whoever makes it. An item of a tool that the provider runs is the call and its result.
//! Items that nobody documented are kept as [`Part::Other`]; only what is neither an item with a
//! type nor a message with a known role is an error.

use alloc::vec::Vec;

use super::{
    ParsedMessage, Part, Role,
    blocks::{self, JsonObject, MessageBlock, PartCollector},
    build_message, content_identity,
};
use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonValue},
    },
    types::api::Dialect,
};

/// Elements of one list that are parts of their own; there are three.
const LISTED_MAX: usize = 340;

const ROLES: [(&str, Role); 4] = [
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
    ("developer", Role::System),
];

/// Members of messages in requests and responses, and what a host may add.
const MEMBERS: [&str; 10] = [
    "role",
    "content",
    "type",
    "id",
    "status",
    "phase",
    "stop_reason",
    "timestamp",
    "event_key",
    "trust",
];

/// Calls that the host answers, with an item whose type ends with `_output`.
pub const HOST_CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// Calls that the provider answers, in the same item.
const SERVER_CALLS: [&str; 4] =
    ["web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"];

/// Where the arguments of a call can stand.
const INPUTS: [&str; 7] =
    ["arguments", "input", "action", "actions", "operation", "queries", "code"];

/// Where the result of a call can stand; what has none tells how it ended.
const OUTPUTS: [&str; 5] = ["output", "outputs", "results", "error", "status"];

pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let item = JsonObject::new(raw, json::parse_object(raw)?);
    let role = read_role(&item)?;
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &item, &mut |list, block| parts.push(list, block));
    let has_more = !blocks::has_only_documented(&item, &MEMBERS);
    let mut message =
        build_message(Dialect::OpenaiResponses, raw, &item.members, role, parts.finish(), has_more);
    if let "item_reference" | "local_shell_call_output" = read_kind(&item) {
        // Here `id` says which other item is meant: it is content, and no name of this one.
        message.entry_id = None;
        message.identity = content_identity::hash_content_with_id(raw, &item.members);
    }
    Ok(message)
}

/// Every block of an item that was read before, without a bound.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    each_block(raw, &item, &mut |_, block| out.push(block));
    out
}

/// The type of an item, empty when it is none that is told apart. A message need not tell it, nor
/// need a reference.
pub fn item_kind(raw: &str) -> &'static str {
    read_kind(&JsonObject::new(raw, json::parse_object(raw).unwrap_or_default()))
}

/// The types beside those of calls that are told apart.
const KINDS: [&str; 7] = [
    "message",
    "reasoning",
    "item_reference",
    "image_generation_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "local_shell_call_output",
];

fn read_kind(item: &JsonObject<'_>) -> &'static str {
    let given = item.get_text("type");
    if given.is_empty() {
        let is_reference = item.get_value("role").is_none() && item.get_string("id").is_some();
        let is_bare = blocks::has_only_documented(item, &["type", "id"]);
        return if is_reference && is_bare { "item_reference" } else { "message" };
    }
    let mut known = KINDS.iter().chain(&HOST_CALLS).chain(&SERVER_CALLS);
    known.find(|kind| **kind == given).copied().unwrap_or("")
}

fn read_role(item: &JsonObject<'_>) -> Result<Role> {
    match read_kind(item) {
        "message" => blocks::read_role(item, "openai-responses", &ROLES),
        "mcp_approval_response" => Ok(Role::User),
        _ if answered_call_type(&item.get_text("type")).is_some() => Ok(Role::Tool),
        "" => Ok(blocks::read_role(item, "", &ROLES).unwrap_or(Role::Assistant)),
        _ => Ok(Role::Assistant),
    }
}

/// The type of the calls that items of this type answer.
pub fn answered_call_type(kind: &str) -> Option<&'static str> {
    let call = kind.strip_suffix("_output")?;
    HOST_CALLS.iter().find(|known| **known == call).copied()
}

fn each_block(raw: &str, item: &JsonObject<'_>, emit: &mut dyn FnMut(u8, MessageBlock)) {
    let trimmed = raw.trim_start();
    let start = raw.len() - trimmed.len();
    let whole = ByteSpan::from_range(start, start + trimmed.trim_end().len());
    let kind = read_kind(item);
    if kind == "message" {
        return each_content(raw, item, emit);
    }
    if kind == "reasoning" {
        let mut is_empty = true;
        for (list, key) in (0..).zip(["summary", "content"]) {
            for value in item.get_list(key) {
                let text =
                    JsonObject::from_value(raw, value).and_then(|piece| piece.get_string("text"));
                let other = Part::Other { value: value.span };
                let part = text.map_or(other, |text| Part::Reasoning { text });
                emit(list, MessageBlock { part, whole: value.span });
                is_empty = false;
            }
        }
        // What it thought can be known to the provider only.
        let beside = item.get_value("encrypted_content").or(is_empty.then_some(whole));
        if let Some(value) = beside {
            emit(2, MessageBlock { part: Part::Other { value }, whole: value });
        }
        return;
    }
    let mut one = |part: Part| emit(0, MessageBlock { part, whole });
    let first = |keys: &[&str]| keys.iter().find_map(|key| item.get_value(key));
    let name = item.get_string("name").filter(|name| name.length > 2).or(item.get_string("type"));
    let output = first(&OUTPUTS);
    let is_error = item.get_text("status") == "failed"
        || (output.is_some() && output == item.get_value("error"));
    if answered_call_type(&item.get_text("type")).is_some() {
        let call_id = item.get_id("call_id").or_else(|| item.get_id("id"));
        one(Part::ToolResult { call_id, name: None, output, is_error });
    } else if HOST_CALLS.contains(&kind) {
        one(Part::ToolCall { id: item.get_id("call_id"), name, input: first(&INPUTS) });
    } else if SERVER_CALLS.contains(&kind) {
        let id = item.get_id("id");
        one(Part::ToolCall { id, name, input: first(&INPUTS) });
        one(Part::ToolResult { call_id: id, name: None, output, is_error });
    } else {
        let image = item.get_string("result").filter(|_| kind == "image_generation_call");
        let file = |data| Part::File { name: None, mime: None, text: None, data: Some(data) };
        one(image.map_or(Part::Other { value: whole }, file));
    }
}

fn each_content(raw: &str, message: &JsonObject<'_>, emit: &mut dyn FnMut(u8, MessageBlock)) {
    let Some(content) = message.get_field("content") else { return };
    let whole = content.value;
    match content.kind {
        JsonKind::String => emit(0, MessageBlock { part: Part::Text { text: whole }, whole }),
        JsonKind::Array => {
            for value in json::list_elements(raw, whole) {
                let part = read_part(raw, value).unwrap_or(Part::Other { value: value.span });
                emit(0, MessageBlock { part, whole: value.span });
            }
        }
        _ => emit(0, MessageBlock { part: Part::Other { value: whole }, whole }),
    }
}

/// One element of a message's content; `None` when it is none that is understood.
fn read_part(raw: &str, value: JsonValue) -> Option<Part> {
    let part = JsonObject::from_value(raw, value)?;
    Some(match &*part.get_text("type") {
        "input_text" | "output_text" | "text" => Part::Text { text: part.get_string("text")? },
        "refusal" => Part::Text { text: part.get_string("refusal")? },
        "input_file" => {
            let data = Some(part.get_string("file_data")?);
            Part::File { name: part.get_string("filename"), mime: None, text: None, data }
        }
        "input_audio" => {
            let data = Some(part.get_object("input_audio")?.get_string("data")?);
            Part::File { name: None, mime: None, text: None, data }
        }
        _ => return None,
    })
}
