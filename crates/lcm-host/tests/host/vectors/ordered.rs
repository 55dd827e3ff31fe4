//! JSON that remembers the order of its keys: what a vector hands over as text is compared byte
//! for byte in the store.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// A JSON value with the keys of objects in their order.
#[derive(Clone, Debug)]
pub(super) enum Ordered {
    Array(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
    /// A text, number, flag or null.
    Scalar(Value),
}

impl Ordered {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::Array(items) = self { items } else { &[] }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Scalar(value) = self { value.as_str() } else { None }
    }

    /// The value without the order.
    pub(super) fn plain(&self) -> Value {
        match self {
            Self::Array(items) => items.iter().map(Self::plain).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), value.plain())).collect()
            }
            Self::Scalar(value) => value.clone(),
        }
    }

    /// The text without spaces, keys in their order.
    pub(super) fn compact(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(",");
        match self {
            Self::Array(items) => {
                format!("[{}]", joined(items.iter().map(Self::compact).collect()))
            }
            Self::Object(fields) => {
                let field = |(key, value): &(String, Self)| {
                    format!("{}:{}", Value::from(key.as_str()), value.compact())
                };
                format!("{{{}}}", joined(fields.iter().map(field).collect()))
            }
            Self::Scalar(value) => value.to_string(),
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Ordered;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Ordered, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Ordered::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Ordered, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Ordered::Object(fields))
    }
}
