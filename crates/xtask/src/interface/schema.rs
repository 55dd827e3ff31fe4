//! The description of the interface: shapes of JSON, read from `schema/*.json`.
//!
//! Input: the files. Output: shapes by name, in the order of the files. A shape of `packages.json`
//! or `reports.json` may include the members of other shapes (`x-extends`), except some of them
//! (`x-omit`); the output has all included members.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    circles::check_no_circle,
    document::{Document, Node, NodeType, Ordered},
};

/// Files of the folder `schema`, in the order in which pages and types are written.
pub(super) const FILES: [&str; 14] = [
    "common",
    "configuration",
    "ingest",
    "compaction",
    "assembly",
    "recall",
    "grants",
    "ask",
    "admin",
    "verbs",
    "events",
    "drive",
    "packages",
    "reports",
];

/// Draft of JSON Schema that the files are a subset of.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Names of the shapes whose values pass through unread.
pub(super) const JSON_VALUE: &str = "JsonValue";
pub(super) const JSON_OBJECT: &str = "JsonObject";

/// All shapes.
#[derive(Debug, Default)]
pub struct Schema {
    /// Files with the names of their shapes, in order.
    pub files: Vec<SchemaFile>,
    /// Shapes by name.
    pub shapes: BTreeMap<String, Shape>,
}

/// One file of the folder `schema`.
#[derive(Debug)]
pub struct SchemaFile {
    /// Name without its ending.
    pub name: String,
    /// What the file is about.
    pub description: String,
    /// Whether members keep their spelling in every package.
    pub keeps_case: bool,
    /// Names of its shapes, in order.
    pub shapes: Vec<String>,
}

/// A named shape.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Name, unique in all files.
    pub name: String,
    /// Name of its file.
    pub file: String,
    /// Description in one sentence.
    pub description: String,
    /// What a value may be.
    pub form: Form,
}

/// What a value of a named shape may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// An object with these members and no others.
    Object(Vec<Member>),
    /// One of these texts.
    Choice(Vec<String>),
    /// A value of one of these shapes.
    Union(Vec<String>),
    /// Any value, or any object, that passes through unread.
    Free(FreeJson),
    /// A value that only exists in one package, with its type as TypeScript text; never sent to
    /// the engine.
    Host(String),
}

/// The kinds of values that pass through unread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FreeJson {
    /// Any value.
    Value,
    /// Any object.
    Object,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Name in snake_case.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// What its value may be.
    pub kind: Kind,
    /// Whether the member is required.
    pub is_required: bool,
    /// Value that an absent member has, as JSON; `None`: no default.
    pub default: Option<serde_json::Value>,
    /// Heading under which the member is listed.
    pub group: Option<String>,
    /// The only package that has the member; `None`: all.
    pub only: Option<String>,
}

/// What a value may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Null.
    Null,
    /// True or false; with `true` in the variant, only true.
    Bool(bool),
    /// A whole number with a lower bound and an upper bound; `None`: no upper bound.
    Integer(i64, Option<u64>),
    /// Any number.
    Number,
    /// A text with the least and the most bytes; `None`: no bound.
    Text(Option<usize>, Option<usize>),
    /// A time in ISO 8601 with milliseconds.
    Time,
    /// One fixed text.
    Constant(String),
    /// An array with the least and the most elements; `None`: no bound.
    List(Box<Kind>, Option<usize>, Option<usize>),
    /// A value of the shape of this name.
    Ref(String),
    /// Null, or a value of the inner kind.
    Nullable(Box<Kind>),
    /// A value that only exists in one package, with its type as TypeScript text.
    Host(String),
}

impl Kind {
    /// Returns the kind without null.
    #[must_use]
    pub fn present(&self) -> &Self {
        match self {
            Self::Nullable(inner) => inner,
            other => other,
        }
    }

    /// Returns the name of the shape of a value, or of the elements of a list; `None`: no shape.
    #[must_use]
    pub fn shape_name(&self) -> Option<&str> {
        match self {
            Self::Ref(name) => Some(name),
            Self::List(inner, ..) | Self::Nullable(inner) => inner.shape_name(),
            _ => None,
        }
    }
}

impl Schema {
    /// Reads the files [`FILES`] of the folder `schema` below `root`; other files are ignored.
    ///
    /// # Errors
    ///
    /// A file that is unreadable or no description, a name that is defined twice, a reference
    /// without a target, files that refer to each other in a circle.
    pub fn load(root: &Path) -> Result<Self> {
        let mut texts = Vec::new();
        for name in FILES {
            let path = root.join("schema").join(format!("{name}.json"));
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("reading {}", path.display()))?;
            texts.push((name, text));
        }
        Self::parse(&texts)
    }

    /// Reads descriptions, each with the name of its file.
    ///
    /// # Errors
    ///
    /// A text that is no description, a name that is defined twice, a reference without a target,
    /// files that refer to each other in a circle.
    pub fn parse(texts: &[(&str, String)]) -> Result<Self> {
        let mut schema = Self::default();
        for (name, text) in texts {
            let document: Document =
                serde_json::from_str(text).with_context(|| format!("schema/{name}.json"))?;
            schema.add_file(name, document)?;
        }
        for shape in schema.shapes.values() {
            for name in shape.references() {
                ensure!(schema.shapes.contains_key(name), "`{}`: no shape `{name}`", shape.name);
            }
        }
        check_no_circle(&schema)?;
        Ok(schema)
    }

    fn add_file(&mut self, name: &str, document: Document) -> Result<()> {
        ensure!(document.draft == DRAFT, "schema/{name}.json: `$schema` must be {DRAFT}");
        ensure!(
            document.id == format!("{name}.json"),
            "schema/{name}.json: `$id` must be its name"
        );
        let mut shapes = Vec::new();
        for (shape, node) in document.defs.entries {
            let description = node.description.clone();
            ensure!(!description.is_empty(), "`{shape}` must have a description");
            let form = self.read_form(&node).with_context(|| format!("`{shape}`"))?;
            let known = Shape { name: shape.clone(), file: name.to_owned(), description, form };
            ensure!(
                self.shapes.insert(shape.clone(), known).is_none(),
                "`{shape}` must be defined once"
            );
            shapes.push(shape);
        }
        self.files.push(SchemaFile {
            name: name.to_owned(),
            description: document.description,
            keeps_case: document.keeps_case.is_some(),
            shapes,
        });
        Ok(())
    }

    fn read_form(&self, node: &Node) -> Result<Form> {
        if let Some(words) = &node.typescript {
            return Ok(Form::Host(words.clone()));
        }
        if node.is_free {
            let is_object = node.kind.is_some();
            return Ok(Form::Free(if is_object { FreeJson::Object } else { FreeJson::Value }));
        }
        if !node.choices.is_empty() {
            let texts = node.choices.iter().map(|choice| choice.as_str().map(str::to_owned));
            return texts
                .collect::<Option<_>>()
                .map(Form::Choice)
                .context("`enum` must hold texts");
        }
        if !node.one_of.is_empty() {
            let names = node.one_of.iter().map(|one| one.reference.as_deref().map(target_name));
            return names
                .collect::<Option<_>>()
                .map(Form::Union)
                .context("`oneOf` must hold references");
        }
        ensure!(node.is_closed(), "must be an object with `additionalProperties` false");
        let mut members: Vec<Member> = Vec::new();
        for base in &node.extends {
            let base = self
                .shapes
                .get(&target_name(base))
                .context("`x-extends` must name earlier shapes")?;
            let Form::Object(inherited) = &base.form else {
                bail!("`x-extends` must name objects")
            };
            for member in inherited {
                let is_omitted = node.omit.contains(&member.name);
                if !is_omitted && members.iter().all(|known| known.name != member.name) {
                    members.push(member.clone());
                }
            }
        }
        for (name, property) in &node.properties.entries {
            let is_required = node.required.contains(name);
            let member = read_member(name, property, is_required)
                .with_context(|| format!("member `{name}`"))?;
            members.retain(|known| known.name != *name);
            members.push(member);
        }
        for name in &node.required {
            ensure!(
                node.properties.get(name).is_some(),
                "`required` must name members, got `{name}`"
            );
        }
        Ok(Form::Object(members))
    }

    /// Finds the shape with this name.
    ///
    /// # Errors
    ///
    /// There is no such shape.
    pub fn find_shape(&self, name: &str) -> Result<&Shape> {
        self.shapes.get(name).with_context(|| format!("there is no shape `{name}`"))
    }

    /// Returns the file of a shape.
    #[must_use]
    pub fn file_of(&self, shape: &Shape) -> Option<&SchemaFile> {
        self.files.iter().find(|file| file.name == shape.file)
    }

    /// Returns the shapes `roots` and all shapes that they refer to, directly or not, in the order
    /// of the files.
    #[must_use]
    pub fn closure<'a>(&'a self, roots: impl IntoIterator<Item = &'a str>) -> Vec<&'a Shape> {
        let mut found: Vec<&str> = Vec::new();
        let mut open: Vec<&str> = roots.into_iter().collect();
        while let Some(name) = open.pop() {
            if let Some(shape) = self.shapes.get(name)
                && !found.contains(&name)
            {
                found.push(name);
                open.extend(shape.references());
            }
        }
        self.in_order().filter(|shape| found.contains(&shape.name.as_str())).collect()
    }

    /// Returns all shapes in the order of the files.
    pub fn in_order(&self) -> impl Iterator<Item = &Shape> {
        let names = self.files.iter().flat_map(|file| &file.shapes);
        names.filter_map(|name| self.shapes.get(name))
    }
}

impl Shape {
    /// Names of the shapes that this shape refers to.
    #[must_use]
    pub fn references(&self) -> Vec<&str> {
        match &self.form {
            Form::Object(members) => {
                members.iter().filter_map(|member| member.kind.shape_name()).collect()
            }
            Form::Union(names) => names.iter().map(String::as_str).collect(),
            // Both free shapes refer to each other: an object holds any values, and a value may be
            // an object.
            Form::Free(FreeJson::Object) => vec![JSON_VALUE],
            Form::Free(FreeJson::Value) => vec![JSON_OBJECT],
            Form::Choice(_) | Form::Host(_) => Vec::new(),
        }
    }
}

/// The name behind the last `/` of a reference.
#[must_use]
pub(super) fn target_name(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or_default().to_owned()
}

fn read_member(name: &str, node: &Node, is_required: bool) -> Result<Member> {
    ensure!(!node.description.is_empty(), "must have a description");
    ensure!(node.default.is_none() || !is_required, "must not have a default if it is required");
    Ok(Member {
        name: name.to_owned(),
        description: node.description.clone(),
        kind: read_kind(node)?,
        is_required,
        default: node.default.clone(),
        group: node.group.clone(),
        only: node.only.clone(),
    })
}

/// Reads what a value may be.
///
/// # Errors
///
/// A combination of keywords that is not part of the subset.
pub(super) fn read_kind(node: &Node) -> Result<Kind> {
    if let Some(words) = &node.typescript {
        return Ok(Kind::Host(words.clone()));
    }
    if let Some(reference) = &node.reference {
        return Ok(Kind::Ref(target_name(reference)));
    }
    if let [present, null] = node.one_of.as_slice() {
        ensure!(null.kind == Some(NodeType::One("null".into())), "`oneOf` must end with null");
        return Ok(Kind::Nullable(Box::new(read_kind(present)?)));
    }
    match &node.kind {
        Some(NodeType::One(name)) => read_simple(name, node),
        Some(NodeType::Many(names)) => match names.as_slice() {
            [name, null] if null == "null" => {
                Ok(Kind::Nullable(Box::new(read_simple(name, node)?)))
            }
            _ => bail!("`type` must be a type and null"),
        },
        None => bail!("must have `type` or `$ref`"),
    }
}

fn read_simple(name: &str, node: &Node) -> Result<Kind> {
    Ok(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Bool(!node.choices.is_empty()),
        "integer" => Kind::Integer(
            node.minimum.unwrap_or(0),
            node.maximum.map(u64::try_from).transpose().context("`maximum` must be at least 0")?,
        ),
        "number" => Kind::Number,
        "string" => match node.choices.as_slice() {
            [] if node.format.as_deref() == Some("date-time") => Kind::Time,
            [] => Kind::Text(node.bytes_min, node.bytes_max),
            [only] => Kind::Constant(only.as_str().context("`enum` must hold texts")?.to_owned()),
            _ => bail!("`enum` of several texts must be a named shape"),
        },
        "array" => {
            let items = node.items.as_deref().context("must have `items`")?;
            Kind::List(Box::new(read_kind(items)?), node.min_items, node.max_items)
        }
        other => bail!("`type` must be part of the subset, got `{other}`"),
    })
}

impl<T> Ordered<T> {
    /// Returns the value of a key.
    #[must_use]
    pub(super) fn get(&self, key: &str) -> Option<&T> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}
