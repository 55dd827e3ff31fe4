//! Reads contents of the Gemini API, as requests and responses have them.
//!
//! In: the JSON text. Out: role and parts. A content that consists of function responses is the
//! tool's, whatever its role says. The names of fields are taken in both spellings that the
//! provider's own parser takes. Parts that nobody documented are kept as [`Part::Other`]; only an
//! unknown role, and a missing one without parts, is an error.

use alloc::vec::Vec;

use super::{
    Message, Part, Role,
    blocks::{self, Block, Object, Parts},
    complete,
};
use crate::{
    base::{
        error::Result,
        json::{self, Kind, Member, Span, Value},
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

pub(super) fn read(raw: &str) -> Result<Message> {
    let content = Object::new(raw, json::object(raw)?);
    let is_roleless = json::member(&content.members, raw, "role").is_none();
    let mut role = if is_roleless && content.any("parts").is_some() {
        Role::User
    } else {
        blocks::read_role(&content, "gemini", &ROLES)?
    };
    let mut parts = Parts::new(LISTED_MAX);
    each_block(raw, &content, &mut |block| parts.push(0, block));
    let parts = parts.finish();
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    if role == Role::User && !parts.is_empty() && parts.iter().all(is_result) {
        role = Role::Tool;
    }
    let has_more = !blocks::all_documented(&content, &MEMBERS);
    Ok(complete(Dialect::Gemini, raw, &content.members, role, parts, has_more))
}

/// Every block of a content that was read before, without a bound.
pub(super) fn blocks(raw: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let content = Object::new(raw, json::object(raw).unwrap_or_default());
    each_block(raw, &content, &mut |block| out.push(block));
    out
}

fn each_block(raw: &str, content: &Object<'_>, emit: &mut dyn FnMut(Block)) {
    let Some(parts) = content.field("parts") else { return };
    let whole = parts.value;
    if parts.kind != Kind::Array {
        return emit(Block { part: Part::Other { value: whole }, whole });
    }
    for value in json::elements(raw, whole) {
        emit(Block { part: read_part(raw, value), whole: value.span });
    }
}

/// One part. What lacks a field that its kind must have is [`Part::Other`].
pub(crate) fn read_part(raw: &str, value: Value) -> Part {
    Object::of(raw, value)
        .and_then(|part| read_known(raw, &part))
        .unwrap_or(Part::Other { value: value.span })
}

/// The object below a key, in either spelling.
pub fn below<'a>(part: &Object<'a>, camel: &str, snake: &str) -> Option<Object<'a>> {
    part.object(camel).or_else(|| part.object(snake))
}

fn read_known(raw: &str, part: &Object<'_>) -> Option<Part> {
    if let Some(text) = part.string("text") {
        let is_thought = part.is_true("thought");
        return Some(if is_thought { Part::Reasoning { text } } else { Part::Text { text } });
    }
    if let Some(data) = below(part, "inlineData", "inline_data") {
        let either = |camel, snake| data.string(camel).or_else(|| data.string(snake));
        return Some(Part::File {
            name: either("displayName", "display_name"),
            mime: either("mimeType", "mime_type"),
            text: None,
            data: Some(data.string("data")?),
        });
    }
    if let Some(call) = below(part, "functionCall", "function_call") {
        let name = Some(call.string("name")?);
        return Some(Part::ToolCall { id: call.id("id"), name, input: call.any("args") });
    }
    if let Some(result) = below(part, "functionResponse", "function_response") {
        let name = Some(result.string("name")?);
        let (output, is_error) = output(raw, &result);
        return Some(Part::ToolResult { call_id: result.id("id"), name, output, is_error });
    }
    read_code(raw, part)
}

/// Code that the provider runs is a call of a tool with the name of its part.
fn read_code(raw: &str, part: &Object<'_>) -> Option<Part> {
    let key = |camel, snake| part.field(camel).or_else(|| part.field(snake));
    if let Some(code) = key("executableCode", "executable_code") {
        let (name, input) = (Some(code.key), Some(code.value));
        let id = Object::of(raw, value_of(code))?.id("id");
        return Some(Part::ToolCall { id, name, input });
    }
    let result = Object::of(raw, value_of(key("codeExecutionResult", "code_execution_result")?))?;
    Some(Part::ToolResult {
        call_id: result.id("id"),
        name: None,
        output: result.any("output"),
        is_error: result.text("outcome") != "OUTCOME_OK",
    })
}

const fn value_of(member: &Member) -> Value {
    Value { span: member.value, kind: member.kind }
}

/// What a function returned, and whether it failed: the provider's convention is one of three keys,
/// anything else is the result itself.
fn output(raw: &str, result: &Object<'_>) -> (Option<Span>, bool) {
    let response = result.any("response");
    if let Some(object) = result.object("response")
        && let [only] = object.members.as_slice()
        && OUTPUTS.contains(&&*json::text(raw, only.key))
    {
        return (Some(only.value), json::is_text(raw, only.key, "error"));
    }
    (response, false)
}
