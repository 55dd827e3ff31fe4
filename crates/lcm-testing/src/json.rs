//! A JSON value that keeps the order of its keys, and its one-line text.
//!
//! In: text. Out: [`Json`] and back. The map of `serde_json` keeps the order only with a Cargo
//! feature that applies to the whole build, so the feature would also change the engine under test.
//! Floats are kept, but vectors should not use floats, because hosts write floats differently.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};

/// A JSON value with its keys in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that is not negative and has no fraction.
    Number(u64),
    /// A negative number without fraction.
    Negative(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object. All duplicate keys are kept; a lookup finds the last.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a text that is one JSON value.
    ///
    /// # Errors
    ///
    /// The text is no JSON, or holds a lone surrogate or nests deeper than 128.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Parses a text that a test or the engine wrote, and that must be one JSON value.
    ///
    /// # Panics
    ///
    /// The text is not one JSON value.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|why| panic!("{why}: {text}"))
    }

    /// Returns the string under a key.
    ///
    /// # Panics
    ///
    /// This is no object, or has no string under the key.
    #[must_use]
    pub fn text(&self, key: &str) -> String {
        let text = self.field(key).and_then(Self::as_str);
        text.unwrap_or_else(|| panic!("{key}: {self}")).to_owned()
    }

    /// Returns the number under a key; the number is not negative and has no fraction.
    ///
    /// # Panics
    ///
    /// This is no object, or has no such number under the key.
    #[must_use]
    pub fn number(&self, key: &str) -> u64 {
        self.field(key).and_then(Self::as_u64).unwrap_or_else(|| panic!("{key}: {self}"))
    }

    /// Returns the elements of the array under a key.
    ///
    /// # Panics
    ///
    /// This is no object, or has no array under the key.
    #[must_use]
    pub fn list(&self, key: &str) -> &[Json] {
        match self.field(key) {
            Some(Self::Array(elements)) => elements,
            _ => panic!("{key}: {self}"),
        }
    }

    /// Returns the value as compact JSON on one line, with keys in their order.
    #[must_use]
    pub fn compact(&self) -> String {
        serde_json::to_string(self).expect("a JSON value always has a text")
    }

    /// Returns the value under `key`; `None`: this is no object, or has no such key.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Json> {
        match self {
            Self::Object(entries) => {
                entries.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Returns the element at `index`, from 0; `None`: this is no array, or the array is shorter.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<&Json> {
        match self {
            Self::Array(elements) => elements.get(index),
            _ => None,
        }
    }

    /// Returns the text of a string; `None`: this is no string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number; `None`: this is no number, or the number is negative or has a fraction.
    #[must_use]
    pub const fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the elements of an array; empty for any other value.
    #[must_use]
    pub fn elements(&self) -> &[Json] {
        match self {
            Self::Array(elements) => elements,
            _ => &[],
        }
    }

    /// Creates a string value.
    pub fn string(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// Creates an object with these entries.
    #[must_use]
    pub fn object<const N: usize>(entries: [(&str, Json); N]) -> Self {
        Self::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(value: Vec<Json>) -> Self {
        Self::Array(value)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.compact())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => serializer.serialize_u64(*value),
            Self::Negative(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::String(value) => serializer.serialize_str(value),
            Self::Array(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    list.serialize_element(element)?;
                }
                list.end()
            }
            Self::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(u64::try_from(value).map_or(Json::Negative(value), Json::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element()? {
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Json::Object(entries))
    }
}
