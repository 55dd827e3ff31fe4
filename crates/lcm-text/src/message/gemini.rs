//! Reads contents of the Gemini API, as requests and responses have them.
//!
//! In: the JSON text. Out: role and parts. A content that consists of function responses is the
//! tool's, whatever its role says. The names of fields are taken in both spellings that the
//! provider's own parser takes. Parts that nobody documented are kept as [`Part::Other`]; only an
//! unknown role, and a missing one without parts, is an error.

use alloc::vec::Vec;

use super::{
    ParsedMessage, Part, Role,
    blocks::{self, JsonObject, MessageBlock, PartCollector},
    build_message,
};
use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    },
    types::api::Dialect,
};

/// Elements of `parts` that are parts of their own.
const LISTED_MAX: usize = 1_023;

/// `system_instruction` stands beside the contents of a request, but hosts keep it among them;
/// older requests give results a role of their own.
const ROLES: [(&str, Role); 4] = [
    ("user", Role::User),
    ("model", Role::Assistant),
    ("function", Role::User),
    ("system", Role::System),
];

/// Members of contents, and what a host may add.
const MEMBERS: [&str; 7] =
    ["role", "parts", "id", "stop_reason", "timestamp", "event_key", "trust"];

/// Keys of a function's response below which all of it stands.
const OUTPUTS: [&str; 3] = ["output", "result", "error"];

pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let content = JsonObject::new(raw, json::parse_object(raw)?);
    let is_roleless = json::find_member(&content.members, raw, "role").is_none();
    let mut role = if is_roleless && content.get_value("parts").is_some() {
        Role::User
    } else {
        blocks::read_role(&content, "gemini", &ROLES)?
    };
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &content, &mut |block| parts.push(0, block));
    let parts = parts.finish();
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    if role == Role::User && !parts.is_empty() && parts.iter().all(is_result) {
        role = Role::Tool;
    }
    let has_more = !blocks::has_only_documented(&content, &MEMBERS);
    Ok(build_message(Dialect::Gemini, raw, &content.members, role, parts, has_more))
}

/// Every block of a content that was read before, without a bound.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let content = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    each_block(raw, &content, &mut |block| out.push(block));
    out
}

fn each_block(raw: &str, content: &JsonObject<'_>, emit: &mut dyn FnMut(MessageBlock)) {
    let Some(parts) = content.get_field("parts") else { return };
    let whole = parts.value;
    if parts.kind != JsonKind::Array {
        return emit(MessageBlock { part: Part::Other { value: whole }, whole });
    }
    for value in json::list_elements(raw, whole) {
        emit(MessageBlock { part: read_part(raw, value), whole: value.span });
    }
}

/// One part. What lacks a field that its kind must have is [`Part::Other`].
pub(crate) fn read_part(raw: &str, value: JsonValue) -> Part {
    JsonObject::from_value(raw, value)
        .and_then(|part| read_known_part(raw, &part))
        .unwrap_or(Part::Other { value: value.span })
}

/// The object below a key, in either spelling.
pub fn get_object_either<'a>(
    part: &JsonObject<'a>,
    camel: &str,
    snake: &str,
) -> Option<JsonObject<'a>> {
    part.get_object(camel).or_else(|| part.get_object(snake))
}

fn read_known_part(raw: &str, part: &JsonObject<'_>) -> Option<Part> {
    if let Some(text) = part.get_string("text") {
        let is_thought = part.get_bool("thought");
        return Some(if is_thought { Part::Reasoning { text } } else { Part::Text { text } });
    }
    if let Some(data) = get_object_either(part, "inlineData", "inline_data") {
        let either = |camel, snake| data.get_string(camel).or_else(|| data.get_string(snake));
        return Some(Part::File {
            name: either("displayName", "display_name"),
            mime: either("mimeType", "mime_type"),
            text: None,
            data: Some(data.get_string("data")?),
        });
    }
    if let Some(call) = get_object_either(part, "functionCall", "function_call") {
        let name = Some(call.get_string("name")?);
        return Some(Part::ToolCall { id: call.get_id("id"), name, input: call.get_value("args") });
    }
    if let Some(result) = get_object_either(part, "functionResponse", "function_response") {
        let name = Some(result.get_string("name")?);
        let (output, is_error) = read_output(raw, &result);
        return Some(Part::ToolResult { call_id: result.get_id("id"), name, output, is_error });
    }
    read_code(raw, part)
}

/// Code that the provider runs is a call of a tool with the name of its part.
fn read_code(raw: &str, part: &JsonObject<'_>) -> Option<Part> {
    let key = |camel, snake| part.get_field(camel).or_else(|| part.get_field(snake));
    if let Some(code) = key("executableCode", "executable_code") {
        let (name, input) = (Some(code.key), Some(code.value));
        let id = JsonObject::from_value(raw, member_value(code))?.get_id("id");
        return Some(Part::ToolCall { id, name, input });
    }
    let result = JsonObject::from_value(
        raw,
        member_value(key("codeExecutionResult", "code_execution_result")?),
    )?;
    Some(Part::ToolResult {
        call_id: result.get_id("id"),
        name: None,
        output: result.get_value("output"),
        is_error: result.get_text("outcome") != "OUTCOME_OK",
    })
}

const fn member_value(member: &JsonMember) -> JsonValue {
    JsonValue { span: member.value, kind: member.kind }
}

/// What a function returned, and whether it failed: the provider's convention is one of three keys,
/// anything else is the result itself.
fn read_output(raw: &str, result: &JsonObject<'_>) -> (Option<ByteSpan>, bool) {
    let response = result.get_value("response");
    if let Some(object) = result.get_object("response")
        && let [only] = object.members.as_slice()
        && OUTPUTS.contains(&&*json::text(raw, only.key))
    {
        return (Some(only.value), json::is_equal_text(raw, only.key, "error"));
    }
    (response, false)
}
