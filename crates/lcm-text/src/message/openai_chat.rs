//! Reads messages of the `OpenAI` Chat Completions API, as requests and responses have them.
//!
//! In: the JSON text. Out: role and parts. What nobody documented is kept as [`Part::Other`]; only
//! a missing or unknown role is an error. A `tool` message is one result with the whole `content`.

use alloc::vec::Vec;

use super::{
    Message, Part, Role,
    blocks::{self, Block, Object, Parts},
    complete,
};
use crate::{
    base::{
        error::Result,
        json::{self, Kind, Member, Value},
    },
    types::api::Dialect,
};

/// Elements of one list that are parts of their own; there are three.
const LISTED_MAX: usize = 340;

const ROLES: [(&str, Role); 6] = [
    ("system", Role::System),
    ("developer", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("function", Role::Tool),
];

/// Members of messages in requests and responses, and what a host may add.
const MEMBERS: [&str; 16] = [
    "role",
    "content",
    "name",
    "tool_call_id",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
    "annotations",
    "reasoning",
    "reasoning_content",
    "stop_reason",
    "id",
    "timestamp",
    "event_key",
    "trust",
];

/// The list of what stands beside `content` and `tool_calls`, of which there are at most five.
const BESIDE: u8 = 2;

pub(super) fn read(raw: &str) -> Result<Message> {
    let message = Object::new(raw, json::object(raw)?);
    let role = blocks::read_role(&message, "openai-chat", &ROLES)?;
    let mut parts = Parts::new(LISTED_MAX);
    each_block(raw, &message, role, &mut |list, block| parts.push(list, block));
    let has_more = !blocks::all_documented(&message, &MEMBERS);
    Ok(complete(Dialect::OpenaiChat, raw, &message.members, role, parts.finish(), has_more))
}

/// Every block of a message that was read before, without a bound.
pub(super) fn blocks(raw: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let message = Object::new(raw, json::object(raw).unwrap_or_default());
    let role = blocks::read_role(&message, "", &ROLES).unwrap_or(Role::User);
    each_block(raw, &message, role, &mut |_, block| out.push(block));
    out
}

fn each_block(raw: &str, message: &Object<'_>, role: Role, emit: &mut dyn FnMut(u8, Block)) {
    for key in ["reasoning_content", "reasoning"] {
        if let Some(text) = message.string(key).filter(|text| text.length > 2) {
            emit(BESIDE, Block { part: Part::Reasoning { text }, whole: text });
            break;
        }
    }
    let content = message.field("content");
    if role == Role::Tool {
        let output = content.map(|content| content.value);
        let (call_id, name) = (message.id("tool_call_id"), message.string("name"));
        let part = Part::ToolResult { call_id, name, output, is_error: false };
        emit(BESIDE, Block { part, whole: output.unwrap_or_default() });
    } else if let Some(content) = content {
        each_content(raw, content, emit);
    }
    if let Some(text) = message.string("refusal").filter(|text| text.length > 2) {
        emit(BESIDE, Block { part: Part::Text { text }, whole: text });
    }
    if let Some(audio) = message.any("audio") {
        let said = message.object("audio").and_then(|audio| audio.string("transcript"));
        let part = said.map_or(Part::Other { value: audio }, |text| Part::Text { text });
        emit(BESIDE, Block { part, whole: audio });
    }
    for value in message.list("tool_calls") {
        emit(1, Block { part: read_call(raw, value), whole: value.span });
    }
    if let Some(call) = message.object("function_call")
        && let Some(whole) = message.any("function_call")
    {
        let part =
            Part::ToolCall { id: None, name: call.string("name"), input: call.any("arguments") };
        emit(BESIDE, Block { part, whole });
    }
}

fn each_content(raw: &str, content: &Member, emit: &mut dyn FnMut(u8, Block)) {
    let whole = content.value;
    match content.kind {
        Kind::String => emit(0, Block { part: Part::Text { text: whole }, whole }),
        Kind::Array => {
            for value in json::elements(raw, whole) {
                emit(0, Block { part: read_part(raw, value), whole: value.span });
            }
        }
        _ => emit(0, Block { part: Part::Other { value: whole }, whole }),
    }
}

fn read_part(raw: &str, value: Value) -> Part {
    let other = Part::Other { value: value.span };
    let Some(part) = Object::of(raw, value) else { return other };
    let text = |key| part.string(key).map(|text| Part::Text { text });
    let known = match &*part.text("type") {
        "text" => text("text"),
        "refusal" => text("refusal"),
        "input_audio" => part
            .object("input_audio")
            .and_then(|audio| audio.string("data"))
            .map(|data| Part::File { name: None, mime: None, text: None, data: Some(data) }),
        "file" => part.object("file").and_then(|file| {
            let (name, data) = (file.string("filename"), Some(file.string("file_data")?));
            Some(Part::File { name, mime: None, text: None, data })
        }),
        _ => None,
    };
    known.unwrap_or(other)
}

fn read_call(raw: &str, value: Value) -> Part {
    let read = || {
        let call = Object::of(raw, value)?;
        let (key, input) = match &*call.text("type") {
            "custom" => ("custom", "input"),
            _ => ("function", "arguments"),
        };
        let called = call.object(key)?;
        let name = Some(called.string("name")?);
        Some(Part::ToolCall { id: call.id("id"), name, input: called.any(input) })
    };
    read().unwrap_or(Part::Other { value: value.span })
}
