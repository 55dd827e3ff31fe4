//! Reads the project's own message shape: a role, and `content` or `parts`.
//!
//! In: the JSON text. Out: role and parts. What does not have the documented shape is kept as
//! [`Part::Other`]; only a missing or unknown role is an error.

use alloc::{format, string::String, vec::Vec};

use super::{Message, Part, Role, complete, read_id};
use crate::{
    error::{Error, Result},
    json::{self, Kind, Member, Span, Value},
};

/// Characters of an unknown role that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

pub(super) fn read(raw: &str) -> Result<Message> {
    let members = json::object(raw)?;
    let role = read_role(raw, &members)?;
    let parts = read_parts(raw, &members);
    Ok(complete(raw, &members, role, parts))
}

fn read_role(raw: &str, members: &[Member]) -> Result<Role> {
    let Some(member) = json::member(members, raw, "role") else {
        return Err(Error::invalid("a message without `role`"));
    };
    let text = json::text(raw, member.value);
    match (member.kind, &*text) {
        (Kind::String, "system") => Ok(Role::System),
        (Kind::String, "user") => Ok(Role::User),
        (Kind::String, "assistant") => Ok(Role::Assistant),
        (Kind::String, "tool") => Ok(Role::Tool),
        _ => {
            let shown: String = text
                .chars()
                .take(SHOWN_CHARACTERS_MAX)
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            Err(Error::invalid(format!("no role of the dialect `lcm`: `{shown}`")))
        }
    }
}

/// The parts of `parts` when it is an array with elements, else of `content`.
///
/// Beside such an array, a string in `content` is a text of its own, before the parts, unless it is
/// empty or they have a text already (hosts write the text a second time there).
fn read_parts(raw: &str, members: &[Member]) -> Vec<Part> {
    let content = json::member(members, raw, "content");
    let list = json::member(members, raw, "parts");
    let mut parts = match list {
        Some(list) if list.kind == Kind::Array => read_list(raw, list.value),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts = content.map(|content| read_content(raw, content)).unwrap_or_default();
        if let Some(odd) = list.filter(|list| !matches!(list.kind, Kind::Array | Kind::Null)) {
            parts.push(Part::Other { value: odd.value });
        }
        return parts;
    }
    let has_text = parts.iter().any(|part| matches!(part, Part::Text { .. }));
    let beside = content.filter(|content| content.kind == Kind::String && content.value.length > 2);
    if let Some(content) = beside.filter(|_| !has_text) {
        parts.insert(0, Part::Text { text: content.value });
    }
    parts
}

fn read_content(raw: &str, content: &Member) -> Vec<Part> {
    match content.kind {
        Kind::String => Vec::from([Part::Text { text: content.value }]),
        Kind::Array => read_list(raw, content.value),
        _ => Vec::from([Part::Other { value: content.value }]),
    }
}

fn read_list(raw: &str, list: Span) -> Vec<Part> {
    json::elements(raw, list)
        .into_iter()
        .map(|value| read_part(raw, value).unwrap_or(Part::Other { value: value.span }))
        .collect()
}

/// One part; `None` when it is none of the documented ones or a field has another type than its.
fn read_part(raw: &str, value: Value) -> Option<Part> {
    let members = match value.kind {
        Kind::Object => json::members(raw, value.span),
        _ => return None,
    };
    let fields = Fields { raw, members: &members };
    match &*json::text(raw, fields.string("type")??) {
        "text" => Some(Part::Text { text: fields.string("text")?? }),
        "reasoning" => Some(Part::Reasoning { text: fields.string("text")?? }),
        "tool_call" => Some(Part::ToolCall {
            id: fields.id("id")?,
            name: fields.string("name")?,
            input: fields.any("input"),
        }),
        "tool_result" => Some(Part::ToolResult {
            call_id: fields.id("call_id")?,
            name: fields.string("name")?,
            output: fields.any("output"),
            is_error: fields.bool("is_error")?,
        }),
        "file" => Some(Part::File {
            name: fields.string("name")?,
            mime: fields.string("mime")?,
            text: fields.string("text")?,
            data: fields.string("data")?,
        }),
        _ => None,
    }
}

/// The fields of a part. The outer `None` of each result means another type than asked for, the
/// inner one that the field is absent or `null`.
struct Fields<'a> {
    raw: &'a str,
    members: &'a [Member],
}

impl Fields<'_> {
    fn present(&self, key: &str) -> Option<&Member> {
        json::member(self.members, self.raw, key).filter(|member| member.kind != Kind::Null)
    }

    fn string(&self, key: &str) -> Option<Option<Span>> {
        match self.present(key) {
            None => Some(None),
            Some(member) if member.kind == Kind::String => Some(Some(member.value)),
            Some(_) => None,
        }
    }

    /// A string or a number; an empty string counts as absent.
    fn id(&self, key: &str) -> Option<Option<Span>> {
        match self.present(key) {
            None => Some(None),
            Some(member) if matches!(member.kind, Kind::String | Kind::Number) => {
                Some(read_id(member))
            }
            Some(_) => None,
        }
    }

    fn bool(&self, key: &str) -> Option<bool> {
        match self.present(key) {
            None => Some(false),
            Some(member) if member.kind == Kind::Bool => {
                Some(json::slice(self.raw, member.value) == "true")
            }
            Some(_) => None,
        }
    }

    /// Any value, `null` included.
    fn any(&self, key: &str) -> Option<Span> {
        json::member(self.members, self.raw, key).map(|member| member.value)
    }
}
