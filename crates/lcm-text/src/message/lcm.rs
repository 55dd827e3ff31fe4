//! Reads the project's own message shape: a role, and `content` or `parts`.
//!
//! In: the JSON text. Out: role and parts. What does not have the documented shape is kept as
//! [`Part::Other`]; only a missing or unknown role is an error.

use alloc::{string::String, vec::Vec};

use super::{ParsedMessage, Part, Role, build_message, has_visible_text, read_id};
use crate::{
    base::{
        error::{Error, Result},
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    },
    types::api::Dialect,
};

/// Parts of one message: a projection is stored beside its text and must stay small beside it.
const PARTS_MAX: usize = 1_024;

/// Elements of one list that are parts of their own; a text or value beside it has room, too.
const LISTED_MAX: usize = PARTS_MAX - 1;

/// Members of a message that are documented.
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

/// Fields of a part that are read.
const FIELDS: [&str; 10] =
    ["type", "text", "id", "call_id", "name", "input", "output", "is_error", "mime", "data"];

/// Characters of an unknown role that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

pub(super) fn read(raw: &str) -> Result<ParsedMessage> {
    let members = json::parse_object(raw)?;
    let role = read_role(raw, &members)?;
    let (parts, is_complete) = read_parts(raw, &members);
    let documented = |member: &JsonMember| MEMBERS.contains(&&*json::text(raw, member.key));
    let has_more = !is_complete || !members.iter().all(documented);
    Ok(build_message(Dialect::Lcm, raw, &members, role, parts, has_more))
}

fn read_role(raw: &str, members: &[JsonMember]) -> Result<Role> {
    let Some(member) = json::find_member(members, raw, "role") else {
        return Err(Error::invalid_input("a message without `role`"));
    };
    let text = json::text(raw, member.value);
    match (member.kind, &*text) {
        (JsonKind::String, "system") => Ok(Role::System),
        (JsonKind::String, "user") => Ok(Role::User),
        (JsonKind::String, "assistant") => Ok(Role::Assistant),
        (JsonKind::String, "tool") => Ok(Role::Tool),
        _ => {
            let shown: String = text
                .chars()
                .take(SHOWN_CHARACTERS_MAX)
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            Err(Error::invalid_input(format_args!("no role of the dialect `lcm`: `{shown}`")))
        }
    }
}

/// The parts of `parts` when it is an array with elements, else of `content`.
///
/// Beside such an array, a string in `content` is a text of its own, before the parts, unless it is
/// empty or they have a text already (hosts write the text a second time there). The second result
/// is whether everything that `content` says is among the parts.
fn read_parts(raw: &str, members: &[JsonMember]) -> (Vec<Part>, bool) {
    let content = json::find_member(members, raw, "content");
    let list = json::find_member(members, raw, "parts");
    let mut parts = match list {
        Some(list) if list.kind == JsonKind::Array => read_list(raw, list.value),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts = content.map(|content| read_content(raw, content)).unwrap_or_default();
        if let Some(odd) =
            list.filter(|list| !matches!(list.kind, JsonKind::Array | JsonKind::Null))
        {
            parts.push(Part::Other { value: odd.value });
        }
        return (parts, true);
    }
    let has_text = parts.iter().any(|part| matches!(part, Part::Text { .. }));
    let beside =
        content.filter(|content| content.kind == JsonKind::String && content.value.length > 2);
    if let Some(content) = beside.filter(|_| !has_text) {
        parts.insert(0, Part::Text { text: content.value });
        return (parts, true);
    }
    let is_silent = |content: &JsonMember| match content.kind {
        JsonKind::String => !has_visible_text(raw, [content.value], 1),
        kind => kind == JsonKind::Null,
    };
    (parts, content.is_none_or(is_silent))
}

fn read_content(raw: &str, content: &JsonMember) -> Vec<Part> {
    match content.kind {
        JsonKind::String => Vec::from([Part::Text { text: content.value }]),
        JsonKind::Array => read_list(raw, content.value),
        _ => Vec::from([Part::Other { value: content.value }]),
    }
}

/// The elements as parts; from the [`LISTED_MAX`]th on they are one part, if there are more.
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

/// One part; `None` when it is none of the documented ones or a field has another type than its.
fn read_part(raw: &str, value: JsonValue) -> Option<Part> {
    if value.kind != JsonKind::Object {
        return None;
    }
    let mut members: Vec<JsonMember> = Vec::new();
    json::each_member(raw, value.span, |member| {
        let key = json::text(raw, member.key);
        if FIELDS.contains(&&*key) {
            members.retain(|known| json::text(raw, known.key) != key);
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

/// The fields of a part. The outer `None` of each result means another type than asked for, the
/// inner one that the field is absent or `null`.
struct PartFields<'a> {
    raw: &'a str,
    members: &'a [JsonMember],
}

impl PartFields<'_> {
    fn find_present(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(self.members, self.raw, key)
            .filter(|member| member.kind != JsonKind::Null)
    }

    fn get_string(&self, key: &str) -> Option<Option<ByteSpan>> {
        match self.find_present(key) {
            None => Some(None),
            Some(member) if member.kind == JsonKind::String => Some(Some(member.value)),
            Some(_) => None,
        }
    }

    /// A string or a number; an empty string counts as absent.
    fn get_id(&self, key: &str) -> Option<Option<ByteSpan>> {
        match self.find_present(key) {
            None => Some(None),
            Some(member) if matches!(member.kind, JsonKind::String | JsonKind::Number) => {
                Some(read_id(member))
            }
            Some(_) => None,
        }
    }

    fn get_bool(&self, key: &str) -> Option<bool> {
        match self.find_present(key) {
            None => Some(false),
            Some(member) if member.kind == JsonKind::Bool => {
                Some(json::slice_span(self.raw, member.value) == "true")
            }
            Some(_) => None,
        }
    }

    /// Any value, `null` included.
    fn get_value(&self, key: &str) -> Option<ByteSpan> {
        json::find_member(self.members, self.raw, key).map(|member| member.value)
    }
}
