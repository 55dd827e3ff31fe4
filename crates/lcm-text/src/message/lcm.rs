//! Reads messages of the `lcm` dialect: a role, and `content` or `parts`.
//!
//! In: the JSON text of one message. Out: its projection. Values without the documented shape
//! become [`Part::Other`]. In a JSON object, only a missing or unknown role is an error.

use alloc::vec::Vec;

use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    },
    message::{
        blocks::{self, JsonObject, RoleNames, read_id},
        parsed_message::{MessageReading, ParsedMessage},
        part::{Part, Role, has_visible_text},
    },
    types::api::Dialect,
};

/// Most parts of one message. The projection is stored beside the text and must stay small.
const PARTS_MAX: usize = 1_024;

/// Most parts from one list; one more part can come from a string in `content` beside `parts`.
const LISTED_MAX: usize = PARTS_MAX - 1;

/// Values of `role` in this dialect, each with its role.
const ROLES: RoleNames = &[
    ("system", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
];

/// Documented members of a message.
const MEMBERS: [&str; 10] = [
    "role",
    "content",
    "parts",
    "stop_reason",
    "id",
    "timestamp",
    "event_key",
    "trust",
    "speaker",
    "session",
];

/// Fields of a part that the reader uses.
const FIELDS: [&str; 10] =
    ["type", "text", "id", "call_id", "name", "input", "output", "is_error", "mime", "data"];

/// Parses one message.
pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let message = JsonObject::new(raw, json::parse_object(raw)?);
    let role = blocks::read_role(&message, Dialect::Lcm, ROLES)?;
    let (parts, is_complete) = read_parts(raw, &message.members);
    let has_more = !is_complete || !blocks::has_only_documented(&message, &MEMBERS);
    let (dialect, members) = (Dialect::Lcm, &message.members);
    Ok(MessageReading { dialect, raw, members, role, parts, has_more }.into_message())
}

/// Returns the parts, and whether the parts cover all of `content`.
///
/// The parts come from `parts` if `parts` is an array with elements, else from `content`. If both
/// are present, a string in `content` becomes the first part. The string is skipped if it is empty,
/// or if `parts` has a text, because hosts repeat the text in `content`.
fn read_parts(raw: &str, members: &[JsonMember]) -> (Vec<Part>, bool) {
    let content = json::find_member(members, raw, "content");
    let list = json::find_member(members, raw, "parts");
    let mut parts = match list {
        Some(list) if list.kind == JsonKind::Array => read_list(raw, list.value),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts = content.map(|content| read_content(raw, content)).unwrap_or_default();
        if let Some(unknown) =
            list.filter(|list| !matches!(list.kind, JsonKind::Array | JsonKind::Null))
        {
            parts.push(Part::Other { value: unknown.value });
        }
        return (parts, true);
    }
    let has_text = parts.iter().any(|part| matches!(part, Part::Text { .. }));
    let text_outside =
        content.filter(|content| content.kind == JsonKind::String && content.value.length > 2);
    if let Some(content) = text_outside.filter(|_| !has_text) {
        parts.insert(0, Part::Text { text: content.value });
        return (parts, true);
    }
    let is_blank = |content: &JsonMember| match content.kind {
        JsonKind::String => !has_visible_text(raw, [content.value], 1),
        kind => kind == JsonKind::Null,
    };
    (parts, content.is_none_or(is_blank))
}

/// Reads the parts of `content`.
fn read_content(raw: &str, content: &JsonMember) -> Vec<Part> {
    match content.kind {
        JsonKind::String => Vec::from([Part::Text { text: content.value }]),
        JsonKind::Array => read_list(raw, content.value),
        _ => Vec::from([Part::Other { value: content.value }]),
    }
}

/// Reads the elements of a list as parts. In a longer list, the last part covers all elements from
/// number [`LISTED_MAX`] (counted from 1) on.
fn read_list(raw: &str, list: ByteSpan) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut last = ByteSpan::default();
    json::each_element(raw, list, |value| {
        if parts.len() < LISTED_MAX {
            last = value.span;
            parts.push(read_part(raw, value).unwrap_or(Part::Other { value: value.span }));
        } else if let Some(part) = parts.last_mut() {
            let length = (value.span.start - last.start).saturating_add(value.span.length);
            *part = Part::Other { value: ByteSpan { start: last.start, length } };
        }
    });
    parts
}

/// Reads one part; `None`: the part is undocumented, has a field of a wrong type, or lacks a
/// required text.
fn read_part(raw: &str, value: JsonValue) -> Option<Part> {
    if value.kind != JsonKind::Object {
        return None;
    }
    let mut members: Vec<JsonMember> = Vec::new();
    json::each_member(raw, value.span, |member| {
        let key = json::text(raw, member.key);
        if FIELDS.contains(&&*key) {
            members.retain(|earlier| json::text(raw, earlier.key) != key);
            members.push(member);
        }
    });
    let fields = PartFields { raw, members: &members };
    match &*json::text(raw, fields.get_string("type")??) {
        "text" => Some(Part::Text { text: fields.get_string("text")?? }),
        "reasoning" => Some(Part::Reasoning { text: fields.get_string("text")?? }),
        "tool_call" => Some(Part::ToolCall {
            id: fields.get_id("id")?,
            name: fields.get_string("name")?,
            input: fields.get_value("input"),
        }),
        "tool_result" => Some(Part::ToolResult {
            call_id: fields.get_id("call_id")?,
            name: fields.get_string("name")?,
            output: fields.get_value("output"),
            is_error: fields.get_bool("is_error")?,
        }),
        "file" => Some(Part::File {
            name: fields.get_string("name")?,
            mime: fields.get_string("mime")?,
            text: fields.get_string("text")?,
            data: fields.get_string("data")?,
        }),
        _ => None,
    }
}

/// The fields of a part, read by type.
///
/// The outer `None` of a result means that the field has a wrong type; the inner `None` means that
/// the field is absent or `null`.
struct PartFields<'a> {
    raw: &'a str,
    members: &'a [JsonMember],
}

impl PartFields<'_> {
    /// Returns a field; `None`: absent or `null`.
    fn find_present(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(self.members, self.raw, key)
            .filter(|member| member.kind != JsonKind::Null)
    }

    /// Returns a string. `Some(None)`: the field is absent or `null`. `None`: it has another type.
    fn get_string(&self, key: &str) -> Option<Option<ByteSpan>> {
        match self.find_present(key) {
            None => Some(None),
            Some(member) if member.kind == JsonKind::String => Some(Some(member.value)),
            Some(_) => None,
        }
    }

    /// Returns a string or a number. `Some(None)`: the field is absent, `null` or an empty string.
    /// `None`: it has another type.
    fn get_id(&self, key: &str) -> Option<Option<ByteSpan>> {
        match self.find_present(key) {
            None => Some(None),
            Some(member) if matches!(member.kind, JsonKind::String | JsonKind::Number) => {
                Some(read_id(member))
            }
            Some(_) => None,
        }
    }

    /// Returns a boolean; `false` for an absent field or `null`. `None`: the field has another
    /// type.
    fn get_bool(&self, key: &str) -> Option<bool> {
        match self.find_present(key) {
            None => Some(false),
            Some(member) if member.kind == JsonKind::Bool => {
                Some(json::slice_span(self.raw, member.value) == "true")
            }
            Some(_) => None,
        }
    }

    /// Returns the value of a field, `null` included; `None`: absent.
    fn get_value(&self, key: &str) -> Option<ByteSpan> {
        json::find_member(self.members, self.raw, key).map(|member| member.value)
    }
}
