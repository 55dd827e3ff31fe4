//! Writes the types of the package for Python: dictionaries described for type checkers.

use std::collections::BTreeSet;

use super::{
    exports::Exports,
    schema::{Form, FreeJson, Kind, Member, Schema, Shape},
    words::{self, describe_default, generated_line, wrap_text},
};

/// Folder of the package.
const PACKAGE: &str = "host-examples/python/src/lcm_engine";

/// Widest line of a docstring, beside its indent.
const WIDTH: usize = 92;

/// Names of members that are keywords of Python.
const KEYWORDS: [&str; 6] = ["as", "from", "in", "is", "not", "or"];

/// Writes the types, one module for each subject, and the module that exports all types.
#[must_use]
pub(super) fn write_types(schema: &Schema, exports: &Exports) -> Vec<(String, String)> {
    let shapes = schema.closure(exports.package_roots());
    let mut files = Vec::new();
    let mut index = format!("# {}\n", generated_line());
    index
        .push_str("\"\"\"What the calls of the package take and return, as plain dicts.\"\"\"\n\n");
    let mut names: Vec<&str> = Vec::new();
    for file in &schema.files {
        let own: Vec<&Shape> =
            shapes.iter().copied().filter(|shape| shape.file == file.name).collect();
        if own.is_empty() {
            continue;
        }
        let mut sorted: Vec<&str> = own.iter().map(|shape| shape.name.as_str()).collect();
        sorted.sort_unstable();
        index.push_str(&write_import(&format!(".shapes.{}", file.name), &sorted));
        names.extend(&sorted);
        let text = write_module(schema, &file.description, &own);
        files.push((format!("{PACKAGE}/shapes/{}.py", file.name), text));
    }
    names.sort_unstable();
    index.push_str("\n__all__ = [\n");
    for name in names {
        index.push_str(&format!("    \"{name}\",\n"));
    }
    index.push_str("]\n");
    files.push((format!("{PACKAGE}/results.py"), index));
    let package = format!("# {}\n\"\"\"Shapes by subject.\"\"\"\n", generated_line());
    files.push((format!("{PACKAGE}/shapes/__init__.py"), package));
    files
}

fn write_module(schema: &Schema, description: &str, own: &[&Shape]) -> String {
    let mut body = String::new();
    // Python evaluates a union at import, so its members are defined first.
    let (unions, others): (Vec<&Shape>, Vec<&Shape>) =
        own.iter().partition(|shape| matches!(shape.form, Form::Union(_)));
    let (choices, objects): (Vec<&Shape>, Vec<&Shape>) =
        others.into_iter().partition(|shape| matches!(shape.form, Form::Choice(_)));
    for shape in choices.into_iter().chain(objects).chain(unions) {
        body.push_str(&write_shape(shape));
    }
    let mut text = format!("# {}\n\"\"\"{description}\"\"\"\n\n", generated_line());
    text.push_str("from __future__ import annotations\n\n");
    if body.contains("Mapping[") {
        text.push_str("from collections.abc import Mapping\n");
    }
    let typing = ["TYPE_CHECKING", "Literal", "NotRequired", "TypeAlias", "TypedDict"];
    let used: Vec<&str> = typing.into_iter().filter(|name| body.contains(name)).collect();
    text.push_str(&write_import("typing", &used));
    if body.contains("PydanticModel") {
        text.push_str("\nfrom ..pydantic_model import PydanticModel\n");
    }
    let mut foreign: Vec<(&str, BTreeSet<&str>)> =
        schema.files.iter().map(|file| (file.name.as_str(), BTreeSet::new())).collect();
    for name in own.iter().flat_map(|shape| shape.references()) {
        let Some(target) = schema.shapes.get(name) else { continue };
        let is_own = own.iter().any(|shape| shape.name == target.name);
        let names = foreign.iter_mut().find(|(file, _)| *file == target.file);
        if let (false, Some((_, names))) = (is_own, names) {
            names.insert(name);
        }
    }
    foreign.retain(|(_, names)| !names.is_empty());
    if !foreign.is_empty() {
        text.push('\n');
    }
    foreign.sort_unstable();
    for (file, names) in foreign {
        text.push_str(&write_import(&format!(".{file}"), &names.into_iter().collect::<Vec<_>>()));
    }
    text.push_str(&body);
    text
}

fn write_import(module: &str, names: &[&str]) -> String {
    let line = format!("from {module} import {}\n", names.join(", "));
    if line.len() <= 100 {
        return line;
    }
    let names: Vec<String> = names.iter().map(|name| format!("    {name},\n")).collect();
    format!("from {module} import (\n{})\n", names.concat())
}

fn write_shape(shape: &Shape) -> String {
    let name = &shape.name;
    let documented =
        |value: String| format!("\n{name}{value}\n{}", write_docstring(&shape.description, ""));
    match &shape.form {
        Form::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|one| format!("\"{one}\"")).collect();
            let line = format!(" = Literal[{}]", choices.join(", "));
            if name.len() + line.len() <= 100 {
                return documented(line);
            }
            let lines: Vec<String> = choices.iter().map(|one| format!("    {one},\n")).collect();
            documented(format!(" = Literal[\n{}]", lines.concat()))
        }
        Form::Union(names) => {
            let line = format!(" = {}", names.join(" | "));
            let value = match name.len() + line.len() {
                0..=100 => line,
                _ => format!(" = (\n    {}\n)", names.join("\n    | ")),
            };
            format!("\n{}", documented(value))
        }
        // Code that evaluates annotations at run time cannot resolve a recursive alias.
        Form::Free(FreeJson::Value) => format!(
            "\nif TYPE_CHECKING:\n    {name}: TypeAlias = (\n        \
             \"None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]\"\n    )\n\
             else:\n    {name} = None | bool | int | float | str | list | dict\n{}",
            write_docstring(&shape.description, "")
        ),
        Form::Free(FreeJson::Object) => documented(": TypeAlias = dict[str, JsonValue]".to_owned()),
        Form::Host(_) => documented(" = Mapping[str, object] | str | PydanticModel".to_owned()),
        Form::Object(members) => write_object(shape, &words::members_of(members, "python")),
    }
}

fn write_object(shape: &Shape, members: &[&Member]) -> String {
    let name = &shape.name;
    let is_plain =
        |member: &&Member| !KEYWORDS.contains(&member.name.as_str()) && !member.name.contains('-');
    if !members.iter().all(is_plain) {
        let lines = members
            .iter()
            .map(|member| format!("        \"{}\": {},\n", member.name, write_member_kind(member)));
        let lines: String = lines.collect();
        let docstring = write_docstring(&shape.description, "");
        return format!(
            "\n{name} = TypedDict(\n    \"{name}\",\n    {{\n{lines}    }},\n)\n{docstring}"
        );
    }
    let docstring = write_docstring(&shape.description, "    ");
    let mut text = format!("\n\nclass {name}(TypedDict):\n{docstring}");
    if !members.is_empty() {
        text.push('\n');
    }
    for member in members {
        let mut description = member.description.clone();
        if let Some(default) = describe_default(member) {
            description.push_str(&format!(" Default: {default}."));
        }
        text.push_str(&format!("    {}: {}\n", member.name, write_member_kind(member)));
        text.push_str(&write_docstring(&description, "    "));
    }
    text
}

fn write_member_kind(member: &Member) -> String {
    let kind = write_kind(&member.kind);
    if member.is_required { kind } else { format!("NotRequired[{kind}]") }
}

fn write_kind(kind: &Kind) -> String {
    match kind {
        Kind::Null => "None".into(),
        Kind::Bool(false) => "bool".into(),
        Kind::Bool(true) => "Literal[True]".into(),
        Kind::Integer(..) => "int".into(),
        Kind::Number => "float".into(),
        Kind::Text(..) | Kind::Time => "str".into(),
        Kind::Constant(text) => format!("Literal[\"{text}\"]"),
        Kind::Ref(name) | Kind::Host(name) => name.clone(),
        Kind::Nullable(inner) => format!("{} | None", write_kind(inner)),
        Kind::List(inner, ..) => format!("list[{}]", write_kind(inner)),
    }
}

fn write_docstring(text: &str, indent: &str) -> String {
    let text = text.replace("null", "None").replace('\\', "\\\\");
    let line = format!("{indent}\"\"\"{text}\"\"\"\n");
    if line.len() <= WIDTH {
        return line;
    }
    let lines = wrap_text(&text, WIDTH - indent.len() - 6);
    let lines: Vec<String> = lines.iter().map(|line| format!("{indent}{line}\n")).collect();
    format!("{indent}\"\"\"{}{indent}\"\"\"\n", lines.concat().trim_start())
}
