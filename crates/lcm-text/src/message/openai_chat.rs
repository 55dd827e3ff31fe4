//! Reads messages of the `OpenAI` Chat Completions API, as requests and responses have them.
//!
//! In: the JSON text of one message. Out: its projection. A `tool` message is one result, whose
//! output is the whole `content`. Undocumented values become [`Part::Other`]. In a JSON object,
//! only a missing or unknown role is an error. The provider's rules are in [`super::validate`].

use alloc::vec::Vec;

use crate::{
    base::{
        error::Result,
        json::{self, JsonKind, JsonMember, JsonValue},
    },
    message::{
        blocks::{self, JsonObject, MessageBlock, PartCollector, RoleNames},
        parsed_message::{MessageReading, ParsedMessage},
        part::{Part, Role},
    },
    types::api::Dialect,
};

/// Most elements of one list that become separate parts; a message has three lists.
const LISTED_MAX: usize = 340;

/// Values of `role` in this dialect, each with its role.
const ROLES: RoleNames = &[
    ("system", Role::System),
    ("developer", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("function", Role::Tool),
];

/// Documented members of messages in requests and responses, and members that a host may add.
const MEMBERS: [&str; 17] = [
    "role",
    "content",
    "name",
    "tool_name",
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

/// List number of the parts in `content`, for [`PartCollector`].
const CONTENT_LIST: u8 = 0;
/// List number of the parts in `tool_calls`.
const CALLS_LIST: u8 = 1;
/// List number of the parts from members with a single value, such as `refusal`; at most five.
const SINGLES_LIST: u8 = 2;

/// Parses one message.
pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let message = JsonObject::new(raw, json::parse_object(raw)?);
    let role = blocks::read_role(&message, Dialect::OpenaiChat, ROLES)?;
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &message, role, &mut |list, block| parts.push(list, block));
    let has_more = !blocks::has_only_documented(&message, &MEMBERS);
    let (dialect, members, parts) = (Dialect::OpenaiChat, &message.members, parts.finish());
    Ok(MessageReading { dialect, raw, members, role, parts, has_more }.into_message())
}

/// Returns all parts of a stored message with their JSON values, without a limit on their number.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    let role = blocks::find_role(&message, ROLES).unwrap_or(Role::User);
    each_block(raw, &message, role, &mut |_, block| out.push(block));
    out
}

/// Calls `emit` with the list number and the part of each block of a message.
fn each_block(
    raw: &str,
    message: &JsonObject<'_>,
    role: Role,
    emit: &mut dyn FnMut(u8, MessageBlock),
) {
    for key in ["reasoning_content", "reasoning"] {
        if let Some(text) = message.get_string(key).filter(|text| text.length > 2) {
            emit(SINGLES_LIST, MessageBlock { part: Part::Reasoning { text }, whole: text });
            break;
        }
    }
    let content = message.get_field("content");
    if role == Role::Tool {
        let output = content.map(|content| content.value);
        // Ollama tells results apart by `tool_name`.
        let name = message.get_string("name").or_else(|| message.get_string("tool_name"));
        let call_id = message.get_id("tool_call_id");
        let part = Part::ToolResult { call_id, name, output, is_error: false };
        emit(SINGLES_LIST, MessageBlock { part, whole: output.unwrap_or_default() });
    } else if let Some(content) = content {
        each_content(raw, content, emit);
    }
    if let Some(text) = message.get_string("refusal").filter(|text| text.length > 2) {
        emit(SINGLES_LIST, MessageBlock { part: Part::Text { text }, whole: text });
    }
    if let Some(audio) = message.get_value("audio") {
        let transcript =
            message.get_object("audio").and_then(|audio| audio.get_string("transcript"));
        let part = transcript.map_or(Part::Other { value: audio }, |text| Part::Text { text });
        emit(SINGLES_LIST, MessageBlock { part, whole: audio });
    }
    for value in message.get_list("tool_calls") {
        emit(CALLS_LIST, MessageBlock { part: read_call(raw, value), whole: value.span });
    }
    if let Some(call) = message.get_object("function_call")
        && let Some(whole) = message.get_value("function_call")
    {
        let part = Part::ToolCall {
            id: None,
            name: call.get_string("name"),
            input: call.get_value("arguments"),
        };
        emit(SINGLES_LIST, MessageBlock { part, whole });
    }
}

/// Calls `emit` with each block of `content`.
fn each_content(raw: &str, content: &JsonMember, emit: &mut dyn FnMut(u8, MessageBlock)) {
    let whole = content.value;
    match content.kind {
        JsonKind::String => {
            emit(CONTENT_LIST, MessageBlock { part: Part::Text { text: whole }, whole })
        }
        JsonKind::Array => {
            for value in json::list_elements(raw, whole) {
                emit(CONTENT_LIST, MessageBlock { part: read_part(raw, value), whole: value.span });
            }
        }
        _ => emit(CONTENT_LIST, MessageBlock { part: Part::Other { value: whole }, whole }),
    }
}

/// Reads one element of `content`; [`Part::Other`] if the element is undocumented or incomplete.
fn read_part(raw: &str, value: JsonValue) -> Part {
    let other = Part::Other { value: value.span };
    let Some(part) = JsonObject::from_value(raw, value) else { return other };
    let text = |key| part.get_string(key).map(|text| Part::Text { text });
    let known = match &*part.get_text("type") {
        "text" => text("text"),
        "refusal" => text("refusal"),
        "input_audio" => part
            .get_object("input_audio")
            .and_then(|audio| audio.get_string("data"))
            .map(|data| Part::File { name: None, mime: None, text: None, data: Some(data) }),
        "file" => part.get_object("file").and_then(|file| {
            let (name, data) = (file.get_string("filename"), Some(file.get_string("file_data")?));
            Some(Part::File { name, mime: None, text: None, data })
        }),
        _ => None,
    };
    known.unwrap_or(other)
}

/// Reads one element of `tool_calls`; [`Part::Other`] if the element is undocumented or incomplete.
fn read_call(raw: &str, value: JsonValue) -> Part {
    let read = || {
        let call = JsonObject::from_value(raw, value)?;
        let (key, input) = match &*call.get_text("type") {
            "custom" => ("custom", "input"),
            _ => ("function", "arguments"),
        };
        let called = call.get_object(key)?;
        let name = Some(called.get_string("name")?);
        Some(Part::ToolCall { id: call.get_id("id"), name, input: called.get_value(input) })
    };
    read().unwrap_or(Part::Other { value: value.span })
}
