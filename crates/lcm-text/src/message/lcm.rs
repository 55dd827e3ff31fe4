//! Reads the project's own message shape: a role, and `content` or `parts`.
//!
//! In: the JSON text. Out: role and parts. What does not have the documented shape is kept as
//! [`Part::Other`]; only a missing or unknown role is an error.

use alloc::{string::String, vec::Vec};

use super::{Message, Part, Role, complete, read_id, visible};
use crate::{
    base::{
        error::{Error, Result},
        json::{self, Kind, Member, Span, Value},
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

pub(super) fn read(raw: &str) -> Result<Message> {
    let members = json::object(raw)?;
    let role = read_role(raw, &members)?;
    let (parts, is_complete) = read_parts(raw, &members);
    let documented = |member: &Member| MEMBERS.contains(&&*json::text(raw, member.key));
    let has_more = !is_complete || !members.iter().all(documented);
    Ok(complete(Dialect::Lcm, raw, &members, role, parts, has_more))
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
            Err(Error::invalid(format_args!("no role of the dialect `lcm`: `{shown}`")))
        }
    }
}

/// The parts of `parts` when it is an array with elements, else of `content`.
///
/// Beside such an array, a string in `content` is a text of its own, before the parts, unless it is
/// empty or they have a text already (hosts write the text a second time there). The second result
/// is whether everything that `content` says is among the parts.
fn read_parts(raw: &str, members: &[Member]) -> (Vec<Part>, bool) {
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
        return (parts, true);
    }
    let has_text = parts.iter().any(|part| matches!(part, Part::Text { .. }));
    let beside = content.filter(|content| content.kind == Kind::String && content.value.length > 2);
    if let Some(content) = beside.filter(|_| !has_text) {
        parts.insert(0, Part::Text { text: content.value });
        return (parts, true);
    }
    let is_silent = |content: &Member| match content.kind {
        Kind::String => !visible(raw, [content.value], 1),
        kind => kind == Kind::Null,
    };
    (parts, content.is_none_or(is_silent))
}

fn read_content(raw: &str, content: &Member) -> Vec<Part> {
    match content.kind {
        Kind::String => Vec::from([Part::Text { text: content.value }]),
        Kind::Array => read_list(raw, content.value),
        _ => Vec::from([Part::Other { value: content.value }]),
    }
}

/// The elements as parts; from the [`LISTED_MAX`]th on they are one part, if there are more.
fn read_list(raw: &str, list: Span) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut last = Span::default();
    json::each_element(raw, list, |value| {
        if parts.len() < LISTED_MAX {
            last = value.span;
            parts.push(read_part(raw, value).unwrap_or(Part::Other { value: value.span }));
        } else if let Some(part) = parts.last_mut() {
            let length = (value.span.start - last.start).saturating_add(value.span.length);
            *part = Part::Other { value: Span { start: last.start, length } };
        }
    });
    parts
}

/// One part; `None` when it is none of the documented ones or a field has another type than its.
fn read_part(raw: &str, value: Value) -> Option<Part> {
    if value.kind != Kind::Object {
        return None;
    }
    let mut members: Vec<Member> = Vec::new();
    json::each_member(raw, value.span, |member| {
        let key = json::text(raw, member.key);
        if FIELDS.contains(&&*key) {
            members.retain(|known| json::text(raw, known.key) != key);
            members.push(member);
        }
    });
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
