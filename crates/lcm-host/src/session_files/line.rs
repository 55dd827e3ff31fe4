//! One line of a session file: its members by name, their values as they are written.
//!
//! In: a line. Out: members whose values are read one level at a time, so that no depth of nesting
//! matters here. Written is JSON text made of such values. Not here: which members a form has.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// An object of which every value is kept as it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((LineKey(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(Object { members })
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct LineKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// The object that a text is.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, in one line.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("has a NUL byte, which no JSON text has".to_owned());
        }
        serde_json::from_str(text).map_err(|error| {
            if error.is_eof() {
                return "ends in the middle of a JSON object".to_owned();
            }
            if error.is_data() {
                // The error would repeat the value, however long it is.
                return "must be a JSON object, got another value".to_owned();
            }
            format!("must be a JSON object: {error}")
        })
    }

    /// The object that a value is; `None` when it is none.
    pub(super) fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    /// A member that is not `null`; of equal ones the last.
    pub(super) fn any(&self, key: &str) -> Option<&'a RawValue> {
        let found = self.members.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    /// Whether there is such a member, `null` included.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.iter().any(|(name, _)| name == key)
    }

    /// A string that is not empty.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let text: String = serde_json::from_str(self.any(key)?.get()).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Whether a member is `true`.
    pub(super) fn is_true(&self, key: &str) -> bool {
        self.any(key).is_some_and(|value| value.get() == "true")
    }

    /// The object that a member is.
    pub(super) fn object(&self, key: &str) -> Option<Self> {
        Self::of(self.any(key)?)
    }

    /// The elements of the list that a member is; `None` when it is none.
    pub(super) fn list(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.any(key)?.get()).ok()
    }

    /// All members, in their order.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.members.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// The names of the first members, for an error.
    pub(super) fn names(&self) -> String {
        const SHOWN_MAX: usize = 6;
        const CHARACTERS_MAX: usize = 30;
        let shown = self.members.iter().take(SHOWN_MAX).map(|(key, _)| {
            let plain: String = key.chars().filter(|c| !c.is_control()).collect();
            format!("`{}`", plain.chars().take(CHARACTERS_MAX).collect::<String>())
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "no members".to_owned() } else { shown.join(", ") }
    }
}

/// Whether a value is a string.
pub(super) fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

/// Whether a value is an object.
pub(super) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// A JSON object that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    out: String,
}

impl Text {
    /// Adds a member whose value is JSON already.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        self.out.push(if self.out.is_empty() { '{' } else { ',' });
        self.out.push_str(&quoted(key));
        self.out.push(':');
        self.out.push_str(json);
        self
    }

    /// Adds a string.
    pub(super) fn string(self, key: &str, text: &str) -> Self {
        self.raw(key, &quoted(text))
    }

    /// Adds a value as it is written, if there is one.
    pub(super) fn kept(self, key: &str, value: Option<&RawValue>) -> Self {
        match value {
            Some(value) => self.raw(key, value.get()),
            None => self,
        }
    }

    /// Adds the members of an object that are not named, as they are written.
    pub(super) fn rest(self, object: &Object<'_>, but: &[&str]) -> Self {
        let rest = object.members().filter(|(key, _)| !but.contains(key));
        rest.fold(self, |text, (key, value)| text.raw(key, value.get()))
    }

    /// The object.
    pub(super) fn end(mut self) -> String {
        if self.out.is_empty() {
            self.out.push('{');
        }
        self.out.push('}');
        self.out
    }
}

/// A string as JSON writes it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A list of values that are JSON already.
pub(super) fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}
