//! Writes the types of the package for Node: options and results with members in camelCase, and
//! the configuration with its keys unchanged.

use std::collections::BTreeSet;

use super::{
    exports::Exports,
    schema::{Form, FreeJson, Kind, Member, Schema, Shape},
    words::{self, camel_case, describe_default, generated_line, keeps_case, wrap_text},
};

/// Folder of the types by subject.
const FOLDER: &str = "host-examples/node/types";

/// Writes the types, one file for each subject, and the file that exports all types.
#[must_use]
pub(super) fn write_types(schema: &Schema, exports: &Exports) -> Vec<(String, String)> {
    let writer = Writer::new(schema);
    let shapes = schema.closure(exports.package_roots());
    let mut files = Vec::new();
    let mut index = format!("// {}\n//\n// All types by subject.\n\n", generated_line());
    for file in &schema.files {
        let own: Vec<&Shape> =
            shapes.iter().copied().filter(|shape| shape.file == file.name).collect();
        if own.is_empty() {
            continue;
        }
        let mut text = format!("// {}\n//\n// {}\n", generated_line(), file.description);
        let references: BTreeSet<&str> = own.iter().flat_map(|shape| shape.references()).collect();
        let is_foreign = |name: &&&str| own.iter().all(|shape| shape.name != ***name);
        let foreign: Vec<&str> = references.iter().filter(is_foreign).copied().collect();
        if !foreign.is_empty() {
            text.push_str(&write_import(&foreign));
        }
        for shape in own {
            text.push('\n');
            text.push_str(&writer.write_shape(shape));
        }
        index.push_str(&format!("export type * from \"./types/{}.js\";\n", file.name));
        files.push((format!("{FOLDER}/{}.d.ts", file.name), text));
    }
    files.push((format!("{FOLDER}.d.ts"), index));
    files
}

fn write_import(names: &[&str]) -> String {
    let line = format!("\nimport type {{ {} }} from \"../types.js\";\n", names.join(", "));
    if line.len() <= 101 {
        return line;
    }
    let names: Vec<String> = names.iter().map(|name| format!("  {name},\n")).collect();
    format!("\nimport type {{\n{}}} from \"../types.js\";\n", names.concat())
}

struct Writer<'a> {
    schema: &'a Schema,
    /// Members whose names are camelCase in this package.
    respelled: BTreeSet<&'a str>,
}

impl<'a> Writer<'a> {
    fn new(schema: &'a Schema) -> Self {
        let mut respelled = BTreeSet::new();
        let mut kept = BTreeSet::new();
        for shape in schema.shapes.values() {
            let Form::Object(members) = &shape.form else { continue };
            let names = members.iter().map(|member| member.name.as_str());
            if keeps_case(schema, shape) { kept.extend(names) } else { respelled.extend(names) }
        }
        respelled.retain(|name| !kept.contains(name));
        Self { schema, respelled }
    }

    /// Returns a description in which the names of members have this package's spelling.
    fn respell(&self, text: &str) -> String {
        let mut spelled = String::new();
        for (index, part) in text.split('`').enumerate() {
            if index > 0 {
                spelled.push('`');
            }
            let is_name = index % 2 == 1 && self.respelled.contains(part);
            spelled.push_str(&if is_name { camel_case(part) } else { part.to_owned() });
        }
        spelled
    }

    fn write_shape(&self, shape: &Shape) -> String {
        let mut text = write_comment(&self.respell(&shape.description), "");
        let name = &shape.name;
        match &shape.form {
            Form::Choice(choices) => {
                let choices: Vec<String> = choices.iter().map(|one| format!("\"{one}\"")).collect();
                text.push_str(&write_union(name, &choices));
            }
            Form::Union(names) => text.push_str(&write_union(name, names)),
            Form::Host(words) => text.push_str(&format!("export type {name} = {words};\n")),
            Form::Free(FreeJson::Object) => {
                text.push_str(&format!("export type {name} = {{ [key: string]: JsonValue }};\n"));
            }
            Form::Free(FreeJson::Value) => text.push_str(&write_union(
                name,
                &["null", "boolean", "number", "string", "JsonValue[]", "JsonObject"]
                    .map(str::to_owned),
            )),
            Form::Object(members) => {
                text.push_str(&format!("export interface {name} {{\n"));
                let keeps = keeps_case(self.schema, shape);
                for member in words::members_of(members, "node") {
                    text.push_str(&self.write_member(member, keeps));
                }
                text.push_str("}\n");
            }
        }
        text
    }

    fn write_member(&self, member: &Member, keeps_case: bool) -> String {
        let mut description = self.respell(&member.description);
        if let Some(default) = describe_default(member) {
            description.push_str(&format!(" Default: {default}."));
        }
        let name = if keeps_case { member.name.clone() } else { camel_case(&member.name) };
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let name = if is_plain { name } else { format!("\"{name}\"") };
        let optional = if member.is_required { "" } else { "?" };
        let kind = write_kind(&member.kind);
        format!("{}  {name}{optional}: {kind};\n", write_comment(&description, "  "))
    }
}

fn write_kind(kind: &Kind) -> String {
    match kind {
        Kind::Null => "null".into(),
        Kind::Bool(false) => "boolean".into(),
        Kind::Bool(true) => "true".into(),
        Kind::Integer(..) | Kind::Number => "number".into(),
        Kind::Text(..) | Kind::Time => "string".into(),
        Kind::Constant(text) => format!("\"{text}\""),
        Kind::Ref(name) | Kind::Host(name) => name.clone(),
        Kind::Nullable(inner) => format!("{} | null", write_kind(inner)),
        // Vectors may be typed arrays, which are read only.
        Kind::List(inner, ..) if **inner == Kind::Number => "ArrayLike<number>".into(),
        Kind::List(inner, ..) => format!("{}[]", write_kind(inner)),
    }
}

fn write_union(name: &str, parts: &[String]) -> String {
    let line = format!("export type {name} = {};\n", parts.join(" | "));
    if line.len() <= 100 {
        return line;
    }
    let parts: Vec<String> = parts.iter().map(|part| format!("\n  | {part}")).collect();
    format!("export type {name} ={};\n", parts.concat())
}

fn write_comment(text: &str, indent: &str) -> String {
    let line = format!("{indent}/** {text} */\n");
    if line.len() <= 101 {
        return line;
    }
    let lines = wrap_text(text, 97 - indent.len());
    let lines: Vec<String> = lines.iter().map(|line| format!("{indent} * {line}\n")).collect();
    format!("{indent}/**\n{}{indent} */\n", lines.concat())
}
