//! What the readers of the providers' dialects share: typed fields of an object, and the list of
//! parts with its bound.
//!
//! In: an object of a message. Out: spans of its fields, or parts. Not here: which fields a dialect
//! has.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{Part, Role, read_id};
use crate::base::{
    error::{Error, Result},
    json::{self, Kind, Member, Span, Value},
};

/// Characters of an unknown role that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// A part with the value of the message that it was read from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// The projection.
    pub part: Part,
    /// The whole value: an object of a list, or the text that stands for one.
    pub whole: Span,
}

/// An object whose fields are read by name.
pub struct Object<'a> {
    raw: &'a str,
    /// Members of the object, in order.
    pub members: Vec<Member>,
}

impl<'a> Object<'a> {
    /// The object at a value; `None` when it is none.
    pub fn of(raw: &'a str, value: Value) -> Option<Self> {
        (value.kind == Kind::Object).then(|| Self { raw, members: json::members(raw, value.span) })
    }

    /// The members of a whole text.
    pub const fn new(raw: &'a str, members: Vec<Member>) -> Self {
        Self { raw, members }
    }

    /// A field that is there and not `null`.
    pub fn field(&self, key: &str) -> Option<&Member> {
        json::member(&self.members, self.raw, key).filter(|member| member.kind != Kind::Null)
    }

    /// The whole value of a field that is not `null`.
    pub fn any(&self, key: &str) -> Option<Span> {
        self.field(key).map(|member| member.value)
    }

    fn of_kind(&self, key: &str, kind: Kind) -> Option<Span> {
        self.field(key).filter(|member| member.kind == kind).map(|member| member.value)
    }

    /// A string.
    pub fn string(&self, key: &str) -> Option<Span> {
        self.of_kind(key, Kind::String)
    }

    /// A string, decoded; empty when there is none.
    pub fn text(&self, key: &str) -> Cow<'a, str> {
        self.string(key).map_or(Cow::Borrowed(""), |span| json::text(self.raw, span))
    }

    /// A string or a number that is an id.
    pub fn id(&self, key: &str) -> Option<Span> {
        self.field(key).and_then(read_id)
    }

    /// Whether a field is `true`.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.of_kind(key, Kind::Bool).is_some_and(|span| json::slice(self.raw, span) == "true")
    }

    /// An object below a field.
    pub fn object(&self, key: &str) -> Option<Self> {
        let member = self.field(key)?;
        Self::of(self.raw, Value { span: member.value, kind: member.kind })
    }

    /// A list below a field; empty when there is none.
    pub fn list(&self, key: &str) -> Vec<Value> {
        self.of_kind(key, Kind::Array).map_or_else(Vec::new, |span| json::elements(self.raw, span))
    }
}

/// Collects the parts of a message. Of each list, the elements from a bound on are one part.
pub(super) struct Parts {
    listed_max: usize,
    list: u8,
    listed: usize,
    first: Span,
    parts: Vec<Part>,
}

impl Parts {
    /// A collector; `listed_max` elements of one list are parts of their own.
    pub(super) const fn new(listed_max: usize) -> Self {
        Self {
            listed_max,
            list: 0,
            listed: 0,
            first: Span { start: 0, length: 0 },
            parts: Vec::new(),
        }
    }

    /// Takes the next part of the list of this number.
    pub(super) fn push(&mut self, list: u8, Block { part, whole }: Block) {
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
            *last = Part::Other { value: Span { start, length } };
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
    message: &Object<'_>,
    dialect: &str,
    roles: &[(&str, Role)],
) -> Result<Role> {
    let Some(member) = json::member(&message.members, message.raw, "role") else {
        return Err(Error::invalid("a message without `role`"));
    };
    let text = json::text(message.raw, member.value);
    let role = roles.iter().find(|(name, _)| member.kind == Kind::String && *name == text);
    role.map(|(_, role)| *role).ok_or_else(|| {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).map(plain).collect();
        Error::invalid(format_args!("no role of the dialect `{dialect}`: `{shown}`"))
    })
}

/// Whether all members of a message are among the documented ones.
pub(super) fn all_documented(message: &Object<'_>, documented: &[&str]) -> bool {
    message.members.iter().all(|member| documented.contains(&&*json::text(message.raw, member.key)))
}
