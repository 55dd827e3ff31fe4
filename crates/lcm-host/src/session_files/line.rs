//! Reads JSON objects whose values stay as written, and writes JSON objects of such values.
//!
//! In: a line of a session file. Out: [`Object`], whose members are read one level at a time, so
//! that deep nesting is no problem; and [`Text`], a JSON object under construction. All readers of
//! session files use both.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Most characters of a role or type that an error or a warning shows.
pub(super) const SHOWN_CHARACTERS_MAX: usize = 40;

/// A JSON object: its members in order, with each value as the text in the file.
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

/// The name of a member, borrowed from the line if it has no escapes.
#[derive(Deserialize)]
struct LineKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// Parses a text as a JSON object.
    ///
    /// # Errors
    ///
    /// The rule that the text breaks, to print after the name of the line or file, such as `must be
    /// a JSON object`.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("has a NUL byte, which no JSON text has".to_owned());
        }
        serde_json::from_str(text).map_err(|error| {
            if error.is_eof() {
                return "ends in the middle of a JSON object".to_owned();
            }
            if error.is_data() {
                // The message of the parser would contain the whole value.
                return "must be a JSON object, got another value".to_owned();
            }
            format!("must be a JSON object: {error}")
        })
    }

    /// Parses a value as an object; `None`: the value is not an object.
    pub(super) fn from_value(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    /// Returns the value of a member; `None`: the member is absent or `null`. The last of several
    /// members of one name counts.
    pub(super) fn any(&self, key: &str) -> Option<&'a RawValue> {
        let found = self.members.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    /// Returns whether a member of this name exists, also with the value `null`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.iter().any(|(name, _)| name == key)
    }

    /// Returns the text of a member; `None`: absent, not a string, or empty.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let text: String = serde_json::from_str(self.any(key)?.get()).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns whether a member is `true`.
    pub(super) fn is_true(&self, key: &str) -> bool {
        self.any(key).is_some_and(|value| value.get() == "true")
    }

    /// Returns a member as an object; `None`: absent, or not an object.
    pub(super) fn object(&self, key: &str) -> Option<Self> {
        Self::from_value(self.any(key)?)
    }

    /// Returns the elements of a member; `None`: absent, or not a list.
    pub(super) fn list(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.any(key)?.get()).ok()
    }

    /// Returns all members, in the order of the line.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.members.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// Returns the names of the first six members for an error text, each cut to 30 characters.
    pub(super) fn names(&self) -> String {
        const SHOWN_MAX: usize = 6;
        const CHARACTERS_MAX: usize = 30;
        let shown = self.members.iter().take(SHOWN_MAX);
        let shown = shown.map(|(key, _)| format!("`{}`", cut_text(key, CHARACTERS_MAX)));
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "no members".to_owned() } else { shown.join(", ") }
    }
}

/// Returns the first characters of a text of a file for an error or a warning, without control
/// characters.
pub(super) fn cut_text(text: &str, characters_max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(characters_max).collect()
}

/// Returns whether a value is a string.
pub(super) fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

/// Returns whether a value is an object.
pub(super) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// A JSON object under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    out: String,
}

impl Text {
    /// Adds a member whose value is `json`, a JSON text.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        self.out.push(if self.out.is_empty() { '{' } else { ',' });
        self.out.push_str(&quoted(key));
        self.out.push(':');
        self.out.push_str(json);
        self
    }

    /// Adds a member whose value is a string.
    pub(super) fn string(self, key: &str, text: &str) -> Self {
        self.raw(key, &quoted(text))
    }

    /// Adds a member whose value stays as written; `None`: adds nothing.
    pub(super) fn kept(self, key: &str, value: Option<&RawValue>) -> Self {
        match value {
            Some(value) => self.raw(key, value.get()),
            None => self,
        }
    }

    /// Adds all members of an object but those named in `but`; their values stay as written.
    pub(super) fn rest(self, object: &Object<'_>, but: &[&str]) -> Self {
        let rest = object.members().filter(|(key, _)| !but.contains(key));
        rest.fold(self, |text, (key, value)| text.raw(key, value.get()))
    }

    /// Returns the JSON text of the object.
    pub(super) fn end(mut self) -> String {
        if self.out.is_empty() {
            self.out.push('{');
        }
        self.out.push('}');
        self.out
    }
}

/// Returns a text as a JSON string, with quotes and escapes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a JSON list of `items`, each a JSON text.
pub(super) fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}
