//! Reads contents of the Gemini API, as requests and responses have them.
//!
//! In: the JSON text of one content, which is Gemini's word for a message. Out: its projection. A
//! user content that has only function responses gets the role `tool`. Field names are read in
//! camel case and in snake case, as the provider reads them. Undocumented parts become
//! [`Part::Other`]. A content without a role is the user's if the content has `parts`; any other
//! missing or unknown role is an error. The provider's rules are in [`super::validate`].

use alloc::vec::Vec;

use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    },
    message::{
        blocks::{self, JsonObject, MessageBlock, PartCollector, RoleNames},
        parsed_message::{MessageReading, ParsedMessage},
        part::{Part, Role},
    },
    types::api::Dialect,
};

/// Most elements of `parts` that become separate parts.
const LISTED_MAX: usize = 1_023;

/// Values of `role` in this dialect, each with its role. A request has `system_instruction` outside
/// its contents, but hosts may append the instruction as a content. Function responses may have the
/// role `function` or `tool`.
const ROLES: RoleNames = &[
    ("user", Role::User),
    ("model", Role::Assistant),
    ("function", Role::User),
    ("tool", Role::User),
    ("system", Role::System),
];

/// Documented members of contents, and members that a host may add.
const MEMBERS: [&str; 7] =
    ["role", "parts", "id", "stop_reason", "timestamp", "event_key", "trust"];

/// Keys under which a function response can wrap its whole output.
const OUTPUTS: [&str; 3] = ["output", "result", "error"];

/// Parses one content.
pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let content = JsonObject::new(raw, json::parse_object(raw)?);
    let is_roleless = json::find_member(&content.members, raw, "role").is_none();
    let mut role = if is_roleless && content.get_value("parts").is_some() {
        Role::User
    } else {
        blocks::read_role(&content, Dialect::Gemini, ROLES)?
    };
    let mut parts = PartCollector::new(LISTED_MAX);
    each_block(raw, &content, &mut |block| parts.push(0, block));
    let parts = parts.finish();
    role = blocks::tool_role(role, &parts);
    let has_more = !blocks::has_only_documented(&content, &MEMBERS);
    let (dialect, members) = (Dialect::Gemini, &content.members);
    Ok(MessageReading { dialect, raw, members, role, parts, has_more }.into_message())
}

/// Returns all parts of a stored content with their JSON values, without a limit on their number.
pub(super) fn read_blocks(raw: &str) -> Vec<MessageBlock> {
    let mut out = Vec::new();
    let content = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    each_block(raw, &content, &mut |block| out.push(block));
    out
}

/// Calls `emit` with each part of a content.
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

/// Reads one part; [`Part::Other`] if the part is of an undocumented kind or lacks a required
/// field.
pub(crate) fn read_part(raw: &str, value: JsonValue) -> Part {
    JsonObject::from_value(raw, value)
        .and_then(|part| read_known_part(raw, &part))
        .unwrap_or(Part::Other { value: value.span })
}

/// Returns the object under the key `camel`, or else under the key `snake`; `None`: neither is an
/// object.
pub fn get_object_either<'a>(
    part: &JsonObject<'a>,
    camel: &str,
    snake: &str,
) -> Option<JsonObject<'a>> {
    part.get_object(camel).or_else(|| part.get_object(snake))
}

/// Reads a part of a documented kind; `None`: another kind, or a required field is missing.
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

/// Reads code that the provider runs as a call, whose tool name is the key of the code; or reads
/// the result of such code. `None`: the part has neither.
fn read_code(raw: &str, part: &JsonObject<'_>) -> Option<Part> {
    let either = |camel, snake| part.get_field(camel).or_else(|| part.get_field(snake));
    if let Some(code) = either("executableCode", "executable_code") {
        let (name, input) = (Some(code.key), Some(code.value));
        let id = JsonObject::from_value(raw, member_value(code))?.get_id("id");
        return Some(Part::ToolCall { id, name, input });
    }
    let result = JsonObject::from_value(
        raw,
        member_value(either("codeExecutionResult", "code_execution_result")?),
    )?;
    Some(Part::ToolResult {
        call_id: result.get_id("id"),
        name: None,
        output: result.get_value("output"),
        is_error: result.get_text("outcome") != "OUTCOME_OK",
    })
}

/// Returns the value of a member with its type.
const fn member_value(member: &JsonMember) -> JsonValue {
    JsonValue { span: member.value, kind: member.kind }
}

/// Reads the output of a function and whether the function failed.
///
/// By the provider's convention, a response whose only key is in [`OUTPUTS`] wraps the output; any
/// other response is the output. The function failed if this key is `error`.
fn read_output(raw: &str, result: &JsonObject<'_>) -> (Option<ByteSpan>, bool) {
    let response = result.get_value("response");
    if let Some(object) = result.get_object("response")
        && let [wrapper] = object.members.as_slice()
        && OUTPUTS.contains(&&*json::text(raw, wrapper.key))
    {
        return (Some(wrapper.value), json::is_equal_text(raw, wrapper.key, "error"));
    }
    (response, false)
}
