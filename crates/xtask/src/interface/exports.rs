//! The shapes that each export takes and returns, read from `schema/exports.json`.
//!
//! Input: the file. Output: arguments and results of exports, verbs, lists and methods of the
//! packages.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{
    document::{Node, Ordered},
    schema::{Kind, read_kind, target_name},
};

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportsFile {
    #[serde(rename = "description")]
    _description: String,
    exports: Ordered<ExportNode>,
    verbs: Ordered<VerbNode>,
    listings: Ordered<Node>,
    records: Ordered<Ordered<Node>>,
    methods: Ordered<MethodNode>,
    models: Ordered<Node>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportNode {
    arguments: Ordered<Node>,
    result: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerbNode {
    arguments: Node,
    answer: Node,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodNode {
    options: Option<Node>,
    result: Option<Node>,
}

/// Shapes of every export, verb and method.
#[derive(Debug)]
pub struct Exports {
    /// Exports, in order.
    pub exports: Vec<Export>,
    /// Verbs of `admin.call`.
    pub verbs: Vec<Verb>,
    /// Kinds of lists with the shape of an element.
    pub listings: Vec<(String, String)>,
    /// Results of exports that the packages return: name of the export, then place and kind of each
    /// JSON value in the result. An empty place is the result itself.
    pub records: Vec<(String, Vec<(String, Kind)>)>,
    /// Methods of the packages.
    pub methods: Vec<Method>,
    /// Shapes that the packages need although no method refers to them.
    pub models: Vec<String>,
}

/// An export with JSON in or out.
#[derive(Debug)]
pub struct Export {
    /// `interface.function`, in kebab-case.
    pub name: String,
    /// Places of JSON texts in the arguments, such as `query-json` or `options.extra-json`.
    pub arguments: Vec<(String, Payload)>,
    /// Places of JSON texts in the result; an empty place is the result itself.
    pub results: Vec<(String, Payload)>,
}

/// The kind of value in a JSON text.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// A value of this kind.
    Of(Kind),
    /// Arguments or answer of the called verb.
    Verb,
}

/// A verb of `admin.call`.
#[derive(Debug)]
pub struct Verb {
    /// Name.
    pub name: String,
    /// Shape of its arguments.
    pub arguments: String,
    /// Shape of its answer.
    pub answer: String,
}

/// A method of the packages.
#[derive(Debug)]
pub struct Method {
    /// Name in kebab-case.
    pub name: String,
    /// Shape of its options; `None`: no mapped options.
    pub options: Option<String>,
    /// Kind of its result; `None`: a value without members.
    pub result: Option<Kind>,
}

impl Exports {
    /// Reads `schema/exports.json` below `root`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has an unknown or missing member.
    pub fn load(root: &Path) -> Result<Self> {
        let path = root.join("schema/exports.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text)
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    ///
    /// The text has an unknown or missing member.
    pub fn parse(text: &str) -> Result<Self> {
        let file: ExportsFile = serde_json::from_str(text).context("schema/exports.json")?;
        let name_of = |node: &Node| target_name(node.reference.as_deref().unwrap_or_default());
        let exports = file.exports.entries.into_iter().map(|(name, node)| read_export(name, node));
        let verbs = file.verbs.entries.iter().map(|(name, node)| Verb {
            name: name.clone(),
            arguments: name_of(&node.arguments),
            answer: name_of(&node.answer),
        });
        let methods = file.methods.entries.iter().map(|(name, node)| {
            let options = node.options.as_ref().map(name_of);
            let result = node.result.as_ref().map(read_kind).transpose()?;
            Ok(Method { name: name.clone(), options, result })
        });
        Ok(Self {
            exports: exports.collect::<Result<_>>()?,
            verbs: verbs.collect(),
            listings: file
                .listings
                .entries
                .iter()
                .map(|(name, node)| (name.clone(), name_of(node)))
                .collect(),
            records: file
                .records
                .entries
                .iter()
                .map(|(name, places)| Ok((name.clone(), read_places(places)?)))
                .collect::<Result<_>>()?,
            methods: methods.collect::<Result<_>>()?,
            models: file.models.entries.iter().map(|(_, node)| name_of(node)).collect(),
        })
    }

    /// Returns the names of the shapes that exports take and return.
    #[must_use]
    pub fn wire_roots(&self) -> Vec<&str> {
        let payloads = self.exports.iter().flat_map(|one| one.arguments.iter().chain(&one.results));
        let exports = payloads.filter_map(|(_, payload)| match payload {
            Payload::Of(kind) => kind.shape_name(),
            Payload::Verb => None,
        });
        let verbs = self.verbs.iter().flat_map(|verb| [&*verb.arguments, &*verb.answer]);
        let lists = self.listings.iter().map(|(_, shape)| shape.as_str());
        exports.chain(verbs).chain(lists).collect()
    }

    /// Returns the names of the shapes that the packages take and return.
    #[must_use]
    pub fn package_roots(&self) -> Vec<&str> {
        let options = self.methods.iter().filter_map(|method| method.options.as_deref());
        options.chain(self.result_roots()).collect()
    }

    /// Returns the names of the shapes that the packages return.
    #[must_use]
    pub fn result_roots(&self) -> Vec<&str> {
        let results = self.methods.iter().filter_map(|method| method.result.as_ref()?.shape_name());
        let lists = self.listings.iter().map(|(_, shape)| shape.as_str());
        results.chain(lists).chain(self.models.iter().map(String::as_str)).collect()
    }
}

fn read_export(name: String, node: ExportNode) -> Result<Export> {
    let arguments = node.arguments.entries.iter().map(|(place, node)| {
        Ok((place.clone(), read_payload(node).with_context(|| format!("{name}: {place}"))?))
    });
    let arguments = arguments.collect::<Result<_>>()?;
    let mut results = Vec::new();
    if let Some(result) = node.result {
        // A schema of one value has one of these keywords; any other object maps places in a record
        // to their schemas.
        let is_one = ["$ref", "type", "x-verbs"].iter().any(|key| result.get(key).is_some());
        if is_one {
            results.push((String::new(), read_payload(&serde_json::from_value(result)?)?));
        } else {
            let places: Ordered<Node> = serde_json::from_value(result)?;
            for (place, node) in &places.entries {
                results.push((place.clone(), read_payload(node)?));
            }
        }
    }
    Ok(Export { name, arguments, results })
}

fn read_places(places: &Ordered<Node>) -> Result<Vec<(String, Kind)>> {
    let place = |(place, node): &(String, Node)| Ok((place.clone(), read_kind(node)?));
    places.entries.iter().map(place).collect()
}

fn read_payload(node: &Node) -> Result<Payload> {
    if node.is_verb { Ok(Payload::Verb) } else { read_kind(node).map(Payload::Of) }
}
