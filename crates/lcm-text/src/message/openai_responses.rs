//! Reads items of the `OpenAI` Responses API: what goes in, and what a response puts out.
//!
//! In: the JSON text of one item. Out: role and parts. A message has a role; any other item has the
//! role of whoever makes it. An item of a tool that the provider runs is the call and its result.
//! Items that nobody documented are kept as [`Part::Other`]; only what is neither an item with a
//! type nor a message with a known role is an error.

use alloc::vec::Vec;

use super::{
    Message, Part, Role,
    blocks::{self, Block, Object, Parts},
    complete, identity,
};
use crate::{
    base::{
        error::Result,
        json::{self, Kind, Span, Value},
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
pub const CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// Calls that the provider answers, in the same item.
const SERVED: [&str; 4] =
    ["web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"];

/// Where the arguments of a call can stand.
const INPUTS: [&str; 7] =
    ["arguments", "input", "action", "actions", "operation", "queries", "code"];

/// Where the result of a call can stand; what has none tells how it ended.
const OUTPUTS: [&str; 5] = ["output", "outputs", "results", "error", "status"];

pub(super) fn read(raw: &str) -> Result<Message> {
    let item = Object::new(raw, json::object(raw)?);
    let role = read_role(&item)?;
    let mut parts = Parts::new(LISTED_MAX);
    each_block(raw, &item, &mut |list, block| parts.push(list, block));
    let has_more = !blocks::all_documented(&item, &MEMBERS);
    let mut message =
        complete(Dialect::OpenaiResponses, raw, &item.members, role, parts.finish(), has_more);
    if let "item_reference" | "local_shell_call_output" = kind(&item) {
        // Here `id` says which other item is meant: it is content, and no name of this one.
        message.entry_id = None;
        message.identity = identity::with_id(raw, &item.members);
    }
    Ok(message)
}

/// Every block of an item that was read before, without a bound.
pub(super) fn blocks(raw: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let item = Object::new(raw, json::object(raw).unwrap_or_default());
    each_block(raw, &item, &mut |_, block| out.push(block));
    out
}

/// The type of an item, empty when it is none that is told apart. A message need not tell it, nor
/// need a reference.
pub fn item_kind(raw: &str) -> &'static str {
    kind(&Object::new(raw, json::object(raw).unwrap_or_default()))
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

fn kind(item: &Object<'_>) -> &'static str {
    let given = item.text("type");
    if given.is_empty() {
        let is_reference = item.any("role").is_none() && item.string("id").is_some();
        let is_bare = blocks::all_documented(item, &["type", "id"]);
        return if is_reference && is_bare { "item_reference" } else { "message" };
    }
    let mut known = KINDS.iter().chain(&CALLS).chain(&SERVED);
    known.find(|kind| **kind == given).copied().unwrap_or("")
}

fn read_role(item: &Object<'_>) -> Result<Role> {
    match kind(item) {
        "message" => blocks::read_role(item, "openai-responses", &ROLES),
        "mcp_approval_response" => Ok(Role::User),
        _ if answered(&item.text("type")).is_some() => Ok(Role::Tool),
        "" => Ok(blocks::read_role(item, "", &ROLES).unwrap_or(Role::Assistant)),
        _ => Ok(Role::Assistant),
    }
}

/// The type of the calls that items of this type answer.
pub fn answered(kind: &str) -> Option<&'static str> {
    let call = kind.strip_suffix("_output")?;
    CALLS.iter().find(|known| **known == call).copied()
}

fn each_block(raw: &str, item: &Object<'_>, emit: &mut dyn FnMut(u8, Block)) {
    let trimmed = raw.trim_start();
    let start = raw.len() - trimmed.len();
    let whole = Span::between(start, start + trimmed.trim_end().len());
    let kind = kind(item);
    if kind == "message" {
        return each_content(raw, item, emit);
    }
    if kind == "reasoning" {
        let mut is_empty = true;
        for (list, key) in (0..).zip(["summary", "content"]) {
            for value in item.list(key) {
                let text = Object::of(raw, value).and_then(|piece| piece.string("text"));
                let other = Part::Other { value: value.span };
                let part = text.map_or(other, |text| Part::Reasoning { text });
                emit(list, Block { part, whole: value.span });
                is_empty = false;
            }
        }
        // What it thought can be known to the provider only.
        let beside = item.any("encrypted_content").or(is_empty.then_some(whole));
        if let Some(value) = beside {
            emit(2, Block { part: Part::Other { value }, whole: value });
        }
        return;
    }
    let mut one = |part: Part| emit(0, Block { part, whole });
    let first = |keys: &[&str]| keys.iter().find_map(|key| item.any(key));
    let name = item.string("name").filter(|name| name.length > 2).or(item.string("type"));
    let output = first(&OUTPUTS);
    let is_error =
        item.text("status") == "failed" || (output.is_some() && output == item.any("error"));
    if answered(&item.text("type")).is_some() {
        let call_id = item.id("call_id").or_else(|| item.id("id"));
        one(Part::ToolResult { call_id, name: None, output, is_error });
    } else if CALLS.contains(&kind) {
        one(Part::ToolCall { id: item.id("call_id"), name, input: first(&INPUTS) });
    } else if SERVED.contains(&kind) {
        let id = item.id("id");
        one(Part::ToolCall { id, name, input: first(&INPUTS) });
        one(Part::ToolResult { call_id: id, name: None, output, is_error });
    } else {
        let image = item.string("result").filter(|_| kind == "image_generation_call");
        let file = |data| Part::File { name: None, mime: None, text: None, data: Some(data) };
        one(image.map_or(Part::Other { value: whole }, file));
    }
}

fn each_content(raw: &str, message: &Object<'_>, emit: &mut dyn FnMut(u8, Block)) {
    let Some(content) = message.field("content") else { return };
    let whole = content.value;
    match content.kind {
        Kind::String => emit(0, Block { part: Part::Text { text: whole }, whole }),
        Kind::Array => {
            for value in json::elements(raw, whole) {
                let part = read_part(raw, value).unwrap_or(Part::Other { value: value.span });
                emit(0, Block { part, whole: value.span });
            }
        }
        _ => emit(0, Block { part: Part::Other { value: whole }, whole }),
    }
}

/// One element of a message's content; `None` when it is none that is understood.
fn read_part(raw: &str, value: Value) -> Option<Part> {
    let part = Object::of(raw, value)?;
    Some(match &*part.text("type") {
        "input_text" | "output_text" | "text" => Part::Text { text: part.string("text")? },
        "refusal" => Part::Text { text: part.string("refusal")? },
        "input_file" => {
            let data = Some(part.string("file_data")?);
            Part::File { name: part.string("filename"), mime: None, text: None, data }
        }
        "input_audio" => {
            let data = Some(part.object("input_audio")?.string("data")?);
            Part::File { name: None, mime: None, text: None, data }
        }
        _ => return None,
    })
}
