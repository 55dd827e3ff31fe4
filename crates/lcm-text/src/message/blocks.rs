//! What the readers of the providers' dialects share: typed fields of an object, and the list of
//! parts with its bound.
//!
//! In: an object of a message. Out: spans of its fields, or parts. Not here: which fields a dialect
//! has.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{Part, Role, read_id};
use crate::base::{
    error::{Error, Result},
    json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
};

/// Characters of an unknown role that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// A part with the value of the message that it was read from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MessageBlock {
    /// The projection.
    pub part: Part,
    /// The whole value: an object of a list, or the text that stands for one.
    pub whole: ByteSpan,
}

/// An object whose fields are read by name.
pub struct JsonObject<'a> {
    raw: &'a str,
    /// Members of the object, in order.
    pub members: Vec<JsonMember>,
}

impl<'a> JsonObject<'a> {
    /// The object at a value; `None` when it is none.
    pub fn from_value(raw: &'a str, value: JsonValue) -> Option<Self> {
        (value.kind == JsonKind::Object)
            .then(|| Self { raw, members: json::list_members(raw, value.span) })
    }

    /// The members of a whole text.
    pub const fn new(raw: &'a str, members: Vec<JsonMember>) -> Self {
        Self { raw, members }
    }

    /// A field that is there and not `null`.
    pub fn get_field(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(&self.members, self.raw, key)
            .filter(|member| member.kind != JsonKind::Null)
    }

    /// The whole value of a field that is not `null`.
    pub fn get_value(&self, key: &str) -> Option<ByteSpan> {
        self.get_field(key).map(|member| member.value)
    }

    fn get_of_kind(&self, key: &str, kind: JsonKind) -> Option<ByteSpan> {
        self.get_field(key).filter(|member| member.kind == kind).map(|member| member.value)
    }

    /// A string.
    pub fn get_string(&self, key: &str) -> Option<ByteSpan> {
        self.get_of_kind(key, JsonKind::String)
    }

    /// A string, decoded; empty when there is none.
    pub fn get_text(&self, key: &str) -> Cow<'a, str> {
        self.get_string(key).map_or(Cow::Borrowed(""), |span| json::text(self.raw, span))
    }

    /// A string or a number that is an id.
    pub fn get_id(&self, key: &str) -> Option<ByteSpan> {
        self.get_field(key).and_then(read_id)
    }

    /// Whether a field is `true`.
    pub(crate) fn get_bool(&self, key: &str) -> bool {
        self.get_of_kind(key, JsonKind::Bool)
            .is_some_and(|span| json::slice_span(self.raw, span) == "true")
    }

    /// An object below a field.
    pub fn get_object(&self, key: &str) -> Option<Self> {
        let member = self.get_field(key)?;
        Self::from_value(self.raw, JsonValue { span: member.value, kind: member.kind })
    }

    /// A list below a field; empty when there is none.
    pub fn get_list(&self, key: &str) -> Vec<JsonValue> {
        self.get_of_kind(key, JsonKind::Array)
            .map_or_else(Vec::new, |span| json::list_elements(self.raw, span))
    }
}

/// Collects the parts of a message. Of each list, the elements from a bound on are one part.
pub(super) struct PartCollector {
    listed_max: usize,
    list: u8,
    listed: usize,
    first: ByteSpan,
    parts: Vec<Part>,
}

impl PartCollector {
    /// A collector; `listed_max` elements of one list are parts of their own.
    pub(super) const fn new(listed_max: usize) -> Self {
        Self {
            listed_max,
            list: 0,
            listed: 0,
            first: ByteSpan { start: 0, length: 0 },
            parts: Vec::new(),
        }
    }

    /// Takes the next part of the list of this number.
    pub(super) fn push(&mut self, list: u8, MessageBlock { part, whole }: MessageBlock) {
        if list != self.list {
            (self.list, self.listed) = (list, 0);
        }
        if self.listed < self.listed_max {
            self.listed += 1;
            self.first = whole;
            self.parts.push(part);
        } else if let Some(last) = self.parts.last_mut() {
            let start = self.first.start;
            let length = whole.start.saturating_sub(start).saturating_add(whole.length);
            *last = Part::Other { value: ByteSpan { start, length } };
        }
    }

    pub(super) fn finish(self) -> Vec<Part> {
        self.parts
    }
}

/// The role of a message, by the names that a dialect has.
///
/// # Errors
///
/// `invalid-input`: no role, or none of these.
pub(super) fn read_role(
    message: &JsonObject<'_>,
    dialect: &str,
    roles: &[(&str, Role)],
) -> Result<Role> {
    let Some(member) = json::find_member(&message.members, message.raw, "role") else {
        return Err(Error::invalid_input("a message without `role`"));
    };
    let text = json::text(message.raw, member.value);
    let role = roles.iter().find(|(name, _)| member.kind == JsonKind::String && *name == text);
    role.map(|(_, role)| *role).ok_or_else(|| {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).map(plain).collect();
        Error::invalid_input(format_args!("no role of the dialect `{dialect}`: `{shown}`"))
    })
}

/// Whether all members of a message are among the documented ones.
pub(super) fn has_only_documented(message: &JsonObject<'_>, documented: &[&str]) -> bool {
    message.members.iter().all(|member| documented.contains(&&*json::text(message.raw, member.key)))
}
