//! Writes the Rust structs of the wire, formatted as `cargo fmt` leaves them.

use std::collections::BTreeSet;

use super::{
    exports::Exports,
    reference::list_places,
    schema::{Form, FreeJson, JSON_OBJECT, JSON_VALUE, Kind, Member, Schema, Shape},
    words::{describe_default, generated_line, pascal_case, wrap_text},
};

/// Folder of the structs.
const FOLDER: &str = "crates/lcm-host/src/shapes";

/// Names of members that are keywords of Rust.
const KEYWORDS: [&str; 4] = ["as", "do", "override", "type"];

/// Files whose modules have another name.
const RENAMED: [(&str, &str); 1] = [("common", "shared")];

/// Documentation at the start of the generated module.
const HEAD: &str = "\
//! The JSON arguments and results of the component, as structs.
//!
//! A method that takes or returns JSON text uses these shapes:
//!
//! ```
//! use lcm_host::shapes::{GrepQuery, GrepResult};
//!
//! # fn search(lcm: &lcm_host::Lcm) -> Result<GrepResult, Box<dyn std::error::Error>> {
//! let query: GrepQuery = serde_json::from_str(r#\"{\"pattern\": \"key\", \"limit\": 5}\"#)?;
//! let text = lcm.grep(\"chat-1\", &serde_json::to_string(&query)?, None, 0)?;
//! let result: GrepResult = serde_json::from_str(&text)?;
//! # Ok(result)
//! # }
//! ```
//!
";

/// Reads a member for which null and absence differ: serde alone reads both as `None`.
const READ_NULLABLE: &str = r"
/// Reads a member that is present; `Some(None)`: the member is null.
fn read_nullable<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
";

/// Reads the only text that a member may have: serde takes the first shape of a union that reads
/// the value, and shapes may differ in this text only.
const READ_CONSTANT: &str = r#"
/// Reads `constant` and refuses any other text.
fn read_constant<'de, D>(deserializer: D, constant: &str) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    if text == constant {
        return Ok(text);
    }
    Err(D::Error::custom(format_args!("must be `{constant}`, got `{text}`")))
}
"#;

/// Writes the structs, one module for each subject, and the module that exports all structs.
#[must_use]
pub(super) fn write_structs(schema: &Schema, exports: &Exports) -> Vec<(String, String)> {
    let shapes: Vec<&Shape> = schema
        .closure(exports.wire_roots())
        .into_iter()
        .filter(|shape| !matches!(shape.form, Form::Free(_)))
        .collect();
    let mut files = Vec::new();
    let mut modules: Vec<(String, String)> = Vec::new();
    for file in &schema.files {
        let own: Vec<&Shape> =
            shapes.iter().copied().filter(|shape| shape.file == file.name).collect();
        if own.is_empty() {
            continue;
        }
        let module = module_name(&file.name);
        files
            .push((format!("{FOLDER}/{module}.rs"), write_module(schema, &file.description, &own)));
        modules.push((module, file.description.clone()));
    }
    modules.sort_unstable();
    let mut text = format!("{HEAD}{}", list_functions(schema, exports));
    text.push_str(&format!("\n// {}\n\n", generated_line()));
    text.push_str("use serde::{Deserialize, Deserializer, de::Error as _};\n\n");
    for (module, _) in &modules {
        text.push_str(&format!("mod {module};\n"));
    }
    text.push('\n');
    for (module, _) in &modules {
        text.push_str(&format!("pub use {module}::*;\n"));
    }
    text.push_str(READ_NULLABLE);
    text.push_str(READ_CONSTANT);
    files.push((format!("{FOLDER}/mod.rs"), text));
    files
}

/// Lists the shapes of every function and verb.
fn list_functions(schema: &Schema, exports: &Exports) -> String {
    let link = |shape: &Shape| format!("[`{}`]", shape.name);
    let places = |places: &[_]| list_places(schema, places, &link, "shape of the verb");
    let functions = exports.exports.iter().map(|export| {
        (format!("`{}`", export.name), places(&export.arguments), places(&export.results))
    });
    let verbs = exports.verbs.iter().map(|verb| {
        let [arguments, answer] = [&verb.arguments, &verb.answer].map(|name| format!("[`{name}`]"));
        (format!("verb `{}`", verb.name), arguments, answer)
    });
    let mut text = String::new();
    for (name, arguments, results) in functions.chain(verbs) {
        let line = match (arguments.as_str(), results.as_str()) {
            ("", results) => format!("{name} returns {results}"),
            (arguments, "") => format!("{name} takes {arguments}"),
            (arguments, results) => format!("{name} takes {arguments}; returns {results}"),
        };
        for (index, line) in wrap_text(&line, 94).iter().enumerate() {
            text.push_str(&format!("//! {} {line}\n", if index == 0 { "-" } else { " " }));
        }
    }
    text
}

fn module_name(file: &str) -> String {
    let renamed = RENAMED.iter().find(|(name, _)| *name == file);
    renamed.map_or(file, |(_, module)| module).to_owned()
}

fn write_module(schema: &Schema, description: &str, own: &[&Shape]) -> String {
    let mut body = String::new();
    for shape in own {
        body.push('\n');
        body.push_str(&write_shape(schema, shape));
    }
    let constants = list_constants(own);
    for constant in &constants {
        body.push_str(&write_constant_reader(constant));
    }
    let mut text = format!("//! {description}\n\n// {}\n\n", generated_line());
    text.push_str(match constants.is_empty() {
        true => "use serde::{Deserialize, Serialize};\n",
        false => "use serde::{Deserialize, Deserializer, Serialize};\n",
    });
    if body.contains("Map<") {
        text.push_str("use serde_json::{Map, Value};\n");
    } else if body.contains("Value") && uses_value(own) {
        text.push_str("use serde_json::Value;\n");
    }
    let names: BTreeSet<&str> = own.iter().flat_map(|shape| shape.references()).collect();
    let is_foreign = |name: &&str| {
        own.iter().all(|shape| shape.name != **name) && ![JSON_VALUE, JSON_OBJECT].contains(name)
    };
    let foreign: Vec<&str> = names.into_iter().filter(is_foreign).collect();
    match foreign.as_slice() {
        [] => {}
        [one] => text.push_str(&format!("\nuse super::{one};\n")),
        several => text.push_str(&write_use(several)),
    }
    text.push_str(&body);
    text
}

/// Collects the texts of required members that allow only one text.
fn list_constants<'a>(own: &[&'a Shape]) -> BTreeSet<&'a str> {
    let members = own.iter().flat_map(|shape| match &shape.form {
        Form::Object(members) => members.as_slice(),
        _ => &[],
    });
    let constants = members.filter(|member| member.is_required).map(|member| &member.kind);
    constants
        .filter_map(|kind| match kind {
            Kind::Constant(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn write_constant_reader(constant: &str) -> String {
    format!(
        "\nfn {}<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {{\n    \
         super::read_constant(deserializer, \"{constant}\")\n}}\n",
        constant_reader_name(constant)
    )
}

fn constant_reader_name(constant: &str) -> String {
    format!("read_{}", constant.replace('-', "_"))
}

fn uses_value(own: &[&Shape]) -> bool {
    own.iter().any(|shape| shape.references().contains(&JSON_VALUE))
}

fn write_use(names: &[&str]) -> String {
    let line = format!("\nuse super::{{{}}};\n", names.join(", "));
    if line.len() <= 102 {
        return line;
    }
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() + 2 < 100 => {
                line.push_str(&format!(" {name},"));
            }
            _ => lines.push(format!("    {name},")),
        }
    }
    format!("\nuse super::{{\n{}\n}};\n", lines.join("\n"))
}

fn write_shape(schema: &Schema, shape: &Shape) -> String {
    let name = &shape.name;
    let mut text = write_comment(&shape.description, "");
    match &shape.form {
        Form::Choice(choices) => {
            text.push_str("#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]\n");
            text.push_str("#[serde(rename_all = \"kebab-case\")]\n");
            text.push_str(&format!("pub enum {name} {{\n"));
            for choice in choices {
                text.push_str(&format!("    /// `{choice}`.\n    {},\n", pascal_case(choice)));
            }
            text.push_str("}\n");
        }
        Form::Union(names) => {
            text.push_str(&write_derives(schema, shape));
            text.push_str("#[serde(untagged)]\n");
            text.push_str(&format!("pub enum {name} {{\n"));
            for one in names {
                text.push_str(&format!("    /// [`{one}`].\n    {one}(Box<{one}>),\n"));
            }
            text.push_str("}\n");
        }
        Form::Object(members) => {
            text.push_str(&write_derives(schema, shape));
            text.push_str(&format!("pub struct {name} {{"));
            for member in members {
                text.push('\n');
                text.push_str(write_member(member).trim_end());
            }
            text.push_str(if members.is_empty() { "}\n" } else { "\n}\n" });
        }
        Form::Free(_) | Form::Host(_) => {}
    }
    text
}

/// Writes the derives of a struct or union: as many traits as its members allow.
fn write_derives(schema: &Schema, shape: &Shape) -> String {
    let reached = schema.closure([shape.name.as_str()]);
    let members = |shape: &Shape| match &shape.form {
        Form::Object(members) => members.iter().map(|one| leaf_kind(&one.kind).clone()).collect(),
        _ => Vec::new(),
    };
    let kinds: Vec<Kind> = reached.iter().flat_map(|shape| members(shape)).collect();
    let is_scalar = |kind: &Kind| matches!(kind, Kind::Bool(_) | Kind::Integer(..) | Kind::Ref(_));
    let is_object = |shape: &&Shape| matches!(shape.form, Form::Object(_));
    let lists = reached.iter().any(|shape| has_list(shape));
    let is_small = kinds.iter().all(is_scalar) && !lists && reached.iter().all(is_object);
    let is_small = is_small && !kinds.is_empty();
    let is_exact = !kinds.contains(&Kind::Number);
    let derives = [
        ("Clone", true),
        ("Copy", is_small),
        ("Debug", true),
        ("Default", is_small),
        ("Deserialize", true),
        ("Eq", is_exact),
        ("PartialEq", true),
        ("Serialize", true),
    ];
    let names: Vec<&str> = derives.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    format!("#[derive({})]\n", names.join(", "))
}

/// Returns the kind of a value, without null; of a list, the kind of its elements.
fn leaf_kind(kind: &Kind) -> &Kind {
    match kind {
        Kind::Nullable(inner) | Kind::List(inner, ..) => leaf_kind(inner),
        other => other,
    }
}

fn has_list(shape: &Shape) -> bool {
    let Form::Object(members) = &shape.form else { return false };
    members.iter().any(|member| matches!(member.kind.present(), Kind::List(..)))
}

/// Writes a member as a field.
pub(super) fn write_member(member: &Member) -> String {
    let mut description = member.description.clone();
    if let Some(default) = describe_default(member) {
        description.push_str(&format!(" Default: {default}."));
    }
    let mut text = write_comment(&description, "    ");
    let mut kind = write_kind(&member.kind);
    if !member.is_required {
        text.push_str("    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n");
        if is_null_distinct(member) {
            text.push_str("    #[serde(deserialize_with = \"super::read_nullable\")]\n");
        }
        if is_null_distinct(member) || !matches!(member.kind, Kind::Nullable(_)) {
            kind = format!("Option<{kind}>");
        }
    }
    if member.is_required {
        text.push_str(&write_required_reader(&member.kind));
    }
    let name = member.name.replace('-', "_");
    if name != member.name {
        text.push_str(&format!("    #[serde(rename = \"{}\")]\n", member.name));
    }
    let is_keyword = KEYWORDS.contains(&name.as_str());
    let name = if is_keyword { format!("r#{name}") } else { name };
    text.push_str(&format!("    pub {name}: {kind},\n"));
    text
}

/// Writes the reader of a required member for which serde alone accepts too much: a nullable member
/// that is absent, or any text in place of the only allowed text.
fn write_required_reader(kind: &Kind) -> String {
    let reader = match kind {
        Kind::Nullable(_) => "Option::deserialize".to_owned(),
        Kind::Constant(text) => constant_reader_name(text),
        _ => return String::new(),
    };
    format!("    #[serde(deserialize_with = \"{reader}\")]\n")
}

/// Returns whether null and an absent member may mean different things: the member may be both, and
/// its default is not null.
fn is_null_distinct(member: &Member) -> bool {
    !member.is_required
        && matches!(member.kind, Kind::Nullable(_))
        && member.default.as_ref().is_none_or(|default| !default.is_null())
}

fn write_kind(kind: &Kind) -> String {
    match kind {
        Kind::Null => "()".into(),
        Kind::Bool(_) => "bool".into(),
        Kind::Integer(least, _) if *least < 0 => "i64".into(),
        Kind::Integer(_, Some(most)) if *most <= u64::from(u32::MAX) => "u32".into(),
        Kind::Integer(..) => "u64".into(),
        Kind::Number => "f64".into(),
        Kind::Text(..) | Kind::Time | Kind::Constant(_) | Kind::Host(_) => "String".into(),
        Kind::Ref(name) => match free_json(name) {
            Some(FreeJson::Value) => "Value".into(),
            Some(FreeJson::Object) => "Map<String, Value>".into(),
            None => name.clone(),
        },
        Kind::Nullable(inner) => format!("Option<{}>", write_kind(inner)),
        Kind::List(inner, ..) => format!("Vec<{}>", write_kind(inner)),
    }
}

fn free_json(name: &str) -> Option<FreeJson> {
    match name {
        JSON_VALUE => Some(FreeJson::Value),
        JSON_OBJECT => Some(FreeJson::Object),
        _ => None,
    }
}

fn write_comment(text: &str, indent: &str) -> String {
    let lines = wrap_text(text, 96 - indent.len());
    lines.iter().map(|line| format!("{indent}/// {line}\n")).collect()
}
