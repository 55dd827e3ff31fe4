//! Helpers of the dialect readers: typed fields of an object, roles, and the bounded list of parts.
//!
//! In: an object of a message. Out: spans of its fields, its role, or its parts. The reader of each
//! dialect decides which fields and roles the dialect has.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{
    base::{
        error::{Error, Result},
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    },
    message::part::{Part, Role},
    types::api::Dialect,
};

/// The values of `role` in a dialect, each with its role.
pub(super) type RoleNames = &'static [(&'static str, Role)];

/// Most characters of an unknown role that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// A part with its JSON value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MessageBlock {
    /// The part.
    pub part: Part,
    /// The whole JSON value from which the part was read.
    pub whole: ByteSpan,
}

/// A JSON object with access to its fields by name. The last of equal keys counts.
pub struct JsonObject<'a> {
    raw: &'a str,
    /// Members of the object, in order.
    pub members: Vec<JsonMember>,
}

impl<'a> JsonObject<'a> {
    /// Reads the members of `value`; `None`: `value` is no object.
    pub fn from_value(raw: &'a str, value: JsonValue) -> Option<Self> {
        (value.kind == JsonKind::Object)
            .then(|| Self { raw, members: json::list_members(raw, value.span) })
    }

    /// Wraps members that were read from `raw`.
    pub const fn new(raw: &'a str, members: Vec<JsonMember>) -> Self {
        Self { raw, members }
    }

    /// Returns a field; `None`: absent or `null`.
    pub fn get_field(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(&self.members, self.raw, key)
            .filter(|member| member.kind != JsonKind::Null)
    }

    /// Returns the value of a field; `None`: absent or `null`.
    pub fn get_value(&self, key: &str) -> Option<ByteSpan> {
        self.get_field(key).map(|member| member.value)
    }

    /// Returns the value of a field of type `kind`; `None`: absent or of another type.
    fn get_of_kind(&self, key: &str, kind: JsonKind) -> Option<ByteSpan> {
        self.get_field(key).filter(|member| member.kind == kind).map(|member| member.value)
    }

    /// Returns the value of a string field, quotes included; `None`: absent or no string.
    pub fn get_string(&self, key: &str) -> Option<ByteSpan> {
        self.get_of_kind(key, JsonKind::String)
    }

    /// Returns the decoded text of a string field; empty if the field is absent or no string.
    pub fn get_text(&self, key: &str) -> Cow<'a, str> {
        self.get_string(key).map_or(Cow::Borrowed(""), |span| json::text(self.raw, span))
    }

    /// Returns the value of a field that can be an id, a number or a string; `None`: absent, an
    /// empty string, or any other type.
    pub fn get_id(&self, key: &str) -> Option<ByteSpan> {
        self.get_field(key).and_then(read_id)
    }

    /// Returns whether a field is `true`.
    pub fn get_bool(&self, key: &str) -> bool {
        self.get_of_kind(key, JsonKind::Bool)
            .is_some_and(|span| json::slice_span(self.raw, span) == "true")
    }

    /// Returns the object in a field; `None`: absent or no object.
    pub fn get_object(&self, key: &str) -> Option<Self> {
        let member = self.get_field(key)?;
        Self::from_value(self.raw, JsonValue { span: member.value, kind: member.kind })
    }

    /// Returns the elements of the array in a field; empty if the field is absent or no array.
    pub fn get_list(&self, key: &str) -> Vec<JsonValue> {
        self.get_of_kind(key, JsonKind::Array)
            .map_or_else(Vec::new, |span| json::list_elements(self.raw, span))
    }
}

/// Collector of the parts of a message.
///
/// From each list, at most `listed_max` elements become separate parts. In a longer list, the last
/// of these parts becomes a [`Part::Other`] that also covers the rest of the list.
pub(super) struct PartCollector {
    listed_max: usize,
    list: u8,
    listed: usize,
    /// JSON value of the newest separate part.
    newest: ByteSpan,
    parts: Vec<Part>,
}

impl PartCollector {
    /// Creates an empty collector; at most `listed_max` elements of one list become separate parts.
    pub(super) const fn new(listed_max: usize) -> Self {
        Self {
            listed_max,
            list: 0,
            listed: 0,
            newest: ByteSpan { start: 0, length: 0 },
            parts: Vec::new(),
        }
    }

    /// Adds the next part of list number `list`.
    pub(super) fn push(&mut self, list: u8, MessageBlock { part, whole }: MessageBlock) {
        if list != self.list {
            (self.list, self.listed) = (list, 0);
        }
        if self.listed < self.listed_max {
            self.listed += 1;
            self.newest = whole;
            self.parts.push(part);
        } else if let Some(last) = self.parts.last_mut() {
            let start = self.newest.start;
            let length = whole.start.saturating_sub(start).saturating_add(whole.length);
            *last = Part::Other { value: ByteSpan { start, length } };
        }
    }

    /// Returns the collected parts.
    pub(super) fn finish(self) -> Vec<Part> {
        self.parts
    }
}

/// Returns the role of a message; `None`: the role is missing or not a role of the dialect.
pub(super) fn find_role(message: &JsonObject<'_>, roles: RoleNames) -> Option<Role> {
    let name = message.get_text("role");
    roles.iter().find(|(role_name, _)| *role_name == name).map(|(_, role)| *role)
}

/// Returns the role `tool` for a user message that has only tool results, else `role`.
///
/// Anthropic and Gemini have the results of tools in user messages.
pub(super) fn tool_role(role: Role, parts: &[Part]) -> Role {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    let is_tool = role == Role::User && !parts.is_empty() && parts.iter().all(is_result);
    if is_tool { Role::Tool } else { role }
}

/// Returns the role of a message, by the role names of its dialect.
///
/// # Errors
///
/// `invalid-input`: the role is missing, or not a role of the dialect.
pub(super) fn read_role(
    message: &JsonObject<'_>,
    dialect: Dialect,
    roles: RoleNames,
) -> Result<Role> {
    find_role(message, roles).ok_or_else(|| {
        let names: Vec<&str> = roles.iter().map(|(name, _)| *name).collect();
        let (dialect, names) = (dialect.as_str(), names.join(", "));
        let Some(member) = json::find_member(&message.members, message.raw, "role") else {
            return Error::invalid_input(format_args!(
                "`role` must be one of {names} in dialect `{dialect}`, got none"
            ));
        };
        let text = json::text(message.raw, member.value);
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).map(plain).collect();
        Error::invalid_input(format_args!(
            "`role` must be one of {names} in dialect `{dialect}`, got `{shown}`"
        ))
    })
}

/// Returns the value of a member that can be an id, a number or a string; `None`: an empty string
/// or any other type.
pub(super) fn read_id(member: &JsonMember) -> Option<ByteSpan> {
    let is_id = match member.kind {
        JsonKind::String => member.value.length > 2,
        JsonKind::Number => true,
        _ => false,
    };
    is_id.then_some(member.value)
}

/// Returns whether all members of a message are in `documented`.
pub(super) fn has_only_documented(message: &JsonObject<'_>, documented: &[&str]) -> bool {
    message.members.iter().all(|member| documented.contains(&&*json::text(message.raw, member.key)))
}
