//! Writes a message of a provider's dialect in the dialect `lcm`.
//!
//! In: the JSON of one message. Out: its JSON in `lcm`, for contexts in that dialect. Each message
//! is converted alone: no call is paired and no block is dropped. A block for which `lcm` has no
//! part stays unchanged.

use alloc::string::String;

use super::file_content;
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind},
    message::{self, JsonObject, MessageBlock, Part, Role, provider_limits},
    types::api::Dialect,
};

/// Members that hosts add and `lcm` has, too; a conversion keeps them.
const HOST_MEMBERS: [&str; 3] = ["id", "timestamp", "event_key"];

/// Converts a message to the dialect `lcm`.
pub(in crate::assembly) fn from_provider(dialect: Dialect, role: Role, raw: &str) -> String {
    let mut out = String::from("{\"role\":\"");
    out.push_str(role.as_str());
    out.push_str("\",\"parts\":[");
    for (at, block) in message::read_blocks(dialect, raw).iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_part(&mut out, dialect, raw, block);
    }
    out.push(']');
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    for key in HOST_MEMBERS {
        if let Some(value) = message.get_value(key) {
            out.push_str(",\"");
            out.push_str(key);
            out.push_str("\":");
            out.push_str(json::slice_span(raw, value));
        }
    }
    out.push('}');
    out
}

fn push_part(out: &mut String, dialect: Dialect, raw: &str, block: &MessageBlock) {
    let member = |out: &mut String, key: &str, value: Option<ByteSpan>| {
        if let Some(value) = value {
            out.push_str(",\"");
            out.push_str(key);
            out.push_str("\":");
            out.push_str(json::slice_span(raw, value));
        }
    };
    match block.part {
        Part::Text { text } => {
            out.push_str("{\"type\":\"text\"");
            member(out, "text", Some(text));
        }
        Part::Reasoning { text } => {
            out.push_str("{\"type\":\"reasoning\"");
            member(out, "text", Some(text));
        }
        Part::ToolCall { id, name, input } => {
            out.push_str("{\"type\":\"tool_call\"");
            member(out, "id", id);
            push_name(out, raw, name);
            match input.map(|input| (json::kind(raw, input), json::text(raw, input))) {
                // OpenAI writes the arguments as JSON in a string.
                Some((JsonKind::String, text)) if json::parse_object(&text).is_ok() => {
                    out.push_str(",\"input\":");
                    out.push_str(&provider_limits::to_input_object(&text));
                }
                _ => member(out, "input", input),
            }
        }
        Part::ToolResult { call_id, name, output, is_error } => {
            out.push_str("{\"type\":\"tool_result\"");
            member(out, "call_id", call_id);
            push_name(out, raw, name);
            member(out, "output", output);
            if is_error {
                out.push_str(",\"is_error\":true");
            }
        }
        Part::File { .. } | Part::Other { .. } => {
            let file = file_content::read(dialect, raw, &block.part, block.whole);
            let own = match block.part {
                Part::Other { value } => value,
                _ => block.whole,
            };
            match file.and_then(|file| file.to_lcm()) {
                Some(json) => out.push_str(&json),
                None => out.push_str(json::slice_span(raw, own)),
            }
            return;
        }
    }
    out.push('}');
}

/// Appends the name of a tool, which can be the end of a string.
fn push_name(out: &mut String, raw: &str, name: Option<ByteSpan>) {
    if let Some(name) = name {
        file_content::push_field(out, "name", &json::text(raw, name));
    }
}
