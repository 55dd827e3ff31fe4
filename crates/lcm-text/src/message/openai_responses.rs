//! Reads items of the `OpenAI` Responses API, both input items and output items.
//!
//! In: the JSON text of one item. Out: its projection. A message item has its `role`; an item of
//! another type has the role of its author. An item of a tool that the provider runs is both call
//! and result. Undocumented items become [`Part::Other`]. In a JSON object, only a message item
//! without a known role is an error. The provider's rules are in [`super::validate`].

use alloc::vec::Vec;

use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonValue},
    },
    message::{
        blocks::{self, JsonObject, MessageBlock, PartCollector, RoleNames},
        content_identity,
        parsed_message::{MessageReading, ParsedMessage},
        part::{Part, Role},
    },
    types::api::Dialect,
};

/// Most elements of one list that become separate parts; an item has three lists.
const LISTED_MAX: usize = 340;

/// Values of `role` in this dialect, each with its role.
const ROLES: RoleNames = &[
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
    ("developer", Role::System),
];

/// Documented members of message items, and members that a host may add.
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

/// Types of calls that the host answers; the type of the answer is the type of the call followed by
/// `_output`.
pub const HOST_CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// Types of calls that the provider answers in the same item.
const SERVER_CALLS: [&str; 4] =
    ["web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"];

/// Members that can hold the arguments of a call; the first that is present and not `null` counts.
const INPUTS: [&str; 7] =
    ["arguments", "input", "action", "actions", "operation", "queries", "code"];

/// Members that can hold the result of a call; the first that is present and not `null` counts.
///
/// So `status` is the result only if the call has none of the other members.
const OUTPUTS: [&str; 5] = ["output", "outputs", "results", "error", "status"];

/// Parses one item.
pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let item = JsonObject::new(raw, json::parse_object(raw)?);
    let role = read_role(&item)?;
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &item, &mut |list, block| parts.push(list, block));
    let has_more = !blocks::has_only_documented(&item, &MEMBERS);
    let (dialect, members, parts) = (Dialect::OpenaiResponses, &item.members, parts.finish());
    let reading = MessageReading { dialect, raw, members, role, parts, has_more };
    let mut message = reading.into_message();
    if let "item_reference" | "local_shell_call_output" = read_kind(&item) {
        // In these types `id` refers to another item, so `id` is content and no entry id.
        message.entry_id = None;
        message.identity = content_identity::hash_content_with_id(raw, &item.members);
    }
    Ok(message)
}

/// Returns all parts of a stored item with their JSON values, without a limit on their number.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    each_block(raw, &item, &mut |_, block| out.push(block));
    out
}

/// Returns the type of an item; empty for a type that this module does not list.
///
/// An item without `type` is an `item_reference` if `id` is its only other member, else a
/// `message`.
pub fn item_kind(raw: &str) -> &'static str {
    read_kind(&JsonObject::new(raw, json::parse_object(raw).unwrap_or_default()))
}

/// The types that [`item_kind`] returns besides [`HOST_CALLS`] and [`SERVER_CALLS`].
const KINDS: [&str; 9] = [
    "message",
    "program",
    "program_output",
    "reasoning",
    "item_reference",
    "image_generation_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "local_shell_call_output",
];

/// Returns the type of an item, as [`item_kind`] does.
fn read_kind(item: &JsonObject<'_>) -> &'static str {
    let declared = item.get_text("type");
    if declared.is_empty() {
        let is_reference = item.get_value("role").is_none() && item.get_string("id").is_some();
        let is_bare = blocks::has_only_documented(item, &["type", "id"]);
        return if is_reference && is_bare { "item_reference" } else { "message" };
    }
    let mut kinds = KINDS.iter().chain(&HOST_CALLS).chain(&SERVER_CALLS);
    kinds.find(|kind| **kind == declared).copied().unwrap_or("")
}

/// Returns the role of an item: the `role` of a message, otherwise the role of the item's author.
/// An item of an unlisted type has its `role` if that is known, else `assistant`.
fn read_role(item: &JsonObject<'_>) -> Result<Role> {
    match read_kind(item) {
        "message" => blocks::read_role(item, Dialect::OpenaiResponses, ROLES),
        "mcp_approval_response" => Ok(Role::User),
        _ if answered_call_type(&item.get_text("type")).is_some() => Ok(Role::Tool),
        "" => Ok(blocks::find_role(item, ROLES).unwrap_or(Role::Assistant)),
        _ => Ok(Role::Assistant),
    }
}

/// Returns the type of the calls that items of type `kind` answer; `None`: items of this type
/// answer no call of [`HOST_CALLS`].
pub fn answered_call_type(kind: &str) -> Option<&'static str> {
    let call = kind.strip_suffix("_output")?;
    HOST_CALLS.iter().find(|kind| **kind == call).copied()
}

/// Calls `emit` with the list number and the part of each block of an item.
///
/// For reasoning, list 0 is `summary` and list 1 is `content`. List 2 is the encrypted content; an
/// item without any of the three has itself as list 2. The parts of all other items are in list 0.
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
        // Only the provider can read encrypted reasoning, so its part is not `Part::Reasoning`.
        let opaque = item.get_value("encrypted_content").or(is_empty.then_some(whole));
        if let Some(value) = opaque {
            emit(2, MessageBlock { part: Part::Other { value }, whole: value });
        }
        return;
    }
    let mut emit_item = |part: Part| emit(0, MessageBlock { part, whole });
    let first = |keys: &[&str]| keys.iter().find_map(|key| item.get_value(key));
    let name = item.get_string("name").filter(|name| name.length > 2).or(item.get_string("type"));
    let output = first(&OUTPUTS);
    let is_error = item.get_text("status") == "failed"
        || (output.is_some() && output == item.get_value("error"));
    if answered_call_type(&item.get_text("type")).is_some() {
        let call_id = item.get_id("call_id").or_else(|| item.get_id("id"));
        emit_item(Part::ToolResult { call_id, name: None, output, is_error });
    } else if HOST_CALLS.contains(&kind) {
        emit_item(Part::ToolCall { id: item.get_id("call_id"), name, input: first(&INPUTS) });
    } else if kind == "program" {
        // Code that the provider runs, and that waits for results of the host's tools.
        emit_item(Part::ToolCall { id: item.get_id("call_id"), name, input: first(&INPUTS) });
    } else if kind == "program_output" {
        let (call_id, output) = (item.get_id("call_id"), item.get_value("result"));
        emit_item(Part::ToolResult { call_id, name: None, output, is_error });
    } else if SERVER_CALLS.contains(&kind) {
        let id = item.get_id("id");
        emit_item(Part::ToolCall { id, name, input: first(&INPUTS) });
        emit_item(Part::ToolResult { call_id: id, name: None, output, is_error });
    } else {
        let image = item.get_string("result").filter(|_| kind == "image_generation_call");
        let file = |data| Part::File { name: None, mime: None, text: None, data: Some(data) };
        emit_item(image.map_or(Part::Other { value: whole }, file));
    }
}

/// Calls `emit` with list number 0 and the part of each block of a message's content.
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

/// Reads one element of a message's content; `None`: the element is undocumented or incomplete.
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
