//! The files of the folder `schema` as they are written: a subset of JSON Schema, draft 2020-12.
//!
//! Input: JSON. Output: nodes with their members in order. A keyword outside the subset is an
//! error. Keywords that start with `x-` are this project's own: bounds in bytes, headings, and the
//! composition of shapes of the packages.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

/// Entries of an object, in the order of the text.
#[derive(Clone, Debug)]
pub(super) struct Ordered<T> {
    /// Keys with their values.
    pub(super) entries: Vec<(String, T)>,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

struct OrderedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OrderedVisitor<T> {
    type Value = Ordered<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(String, T)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, T>()? {
            if entries.iter().any(|(known, _)| *known == key) {
                return Err(serde::de::Error::custom(format!("`{key}` must occur once")));
            }
            entries.push((key, value));
        }
        Ok(Ordered { entries })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedVisitor(PhantomData))
    }
}

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The draft of JSON Schema.
    #[serde(rename = "$schema")]
    pub(super) draft: String,
    /// Name of the file.
    #[serde(rename = "$id")]
    pub(super) id: String,
    /// What the file is about.
    pub(super) description: String,
    /// Present: members keep their spelling in every package.
    #[serde(rename = "x-case")]
    pub(super) keeps_case: Option<String>,
    /// The shapes.
    #[serde(rename = "$defs")]
    pub(super) defs: Ordered<Node>,
}

/// The value of `type`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(untagged)]
pub(super) enum NodeType {
    /// One type.
    One(String),
    /// Several types.
    Many(Vec<String>),
}

/// One schema.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Node {
    /// Description in one sentence.
    pub(super) description: String,
    /// Type, or type and null.
    #[serde(rename = "type")]
    pub(super) kind: Option<NodeType>,
    /// Reference to a shape.
    #[serde(rename = "$ref")]
    pub(super) reference: Option<String>,
    /// Alternatives.
    #[serde(rename = "oneOf")]
    pub(super) one_of: Vec<Node>,
    /// Allowed values.
    #[serde(rename = "enum")]
    pub(super) choices: Vec<serde_json::Value>,
    /// Members of an object.
    pub(super) properties: Ordered<Node>,
    /// Names of required members.
    pub(super) required: Vec<String>,
    /// False: the object has no other members.
    #[serde(rename = "additionalProperties")]
    pub(super) additional: Option<bool>,
    /// Elements of an array.
    pub(super) items: Option<Box<Node>>,
    /// Least number of elements.
    #[serde(rename = "minItems")]
    pub(super) min_items: Option<usize>,
    /// Greatest number of elements.
    #[serde(rename = "maxItems")]
    pub(super) max_items: Option<usize>,
    /// Smallest number.
    pub(super) minimum: Option<i64>,
    /// Greatest number.
    pub(super) maximum: Option<i64>,
    /// `date-time`.
    pub(super) format: Option<String>,
    /// Value that an absent member has.
    #[serde(deserialize_with = "read_present")]
    pub(super) default: Option<serde_json::Value>,
    /// Smallest number of bytes of a text.
    #[serde(rename = "x-bytes-min")]
    pub(super) bytes_min: Option<usize>,
    /// Largest number of bytes of a text.
    #[serde(rename = "x-bytes-max")]
    pub(super) bytes_max: Option<usize>,
    /// Heading under which a member is listed.
    #[serde(rename = "x-group")]
    pub(super) group: Option<String>,
    /// The only package that has a member.
    #[serde(rename = "x-only")]
    pub(super) only: Option<String>,
    /// Whether a value passes through without being read or mapped.
    #[serde(rename = "x-json")]
    pub(super) is_free: bool,
    /// Type of a package's own value, in TypeScript.
    #[serde(rename = "x-typescript")]
    pub(super) typescript: Option<String>,
    /// Shapes whose members this shape includes.
    #[serde(rename = "x-extends")]
    pub(super) extends: Vec<String>,
    /// Members of the extended shapes that this shape omits.
    #[serde(rename = "x-omit")]
    pub(super) omit: Vec<String>,
    /// Whether the value has the shape of the called verb.
    #[serde(rename = "x-verbs")]
    pub(super) is_verb: bool,
}

impl Node {
    /// Whether the node is an object that has no other members.
    #[must_use]
    pub(super) fn is_closed(&self) -> bool {
        self.kind == Some(NodeType::One("object".into())) && self.additional == Some(false)
    }
}

/// Reads a value, null included.
fn read_present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some)
}
