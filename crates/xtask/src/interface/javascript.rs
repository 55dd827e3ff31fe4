//! Writes the tables with which the package for Node converts member names between camelCase and
//! snake_case.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::{
    exports::Exports,
    schema::{Form, Schema, Shape},
    words::{self, camel_case, generated_line, keeps_case},
};

const HEAD: &str = "\
//
// Each shape lists its members: the name in this package, the name in the engine, and the shape of
// the value, if any. Values without a shape pass unchanged: messages, arguments of tools, answers
// of models, the configuration.

import { invalid } from \"./errors.js\";

";

const FUNCTIONS: &str = r#"
const toSnakeNames = new Map();
const toCamelNames = new Map();

/** Returns the names of members of `shape`, from a cache. */
function namesOf(cache, shape, from, to) {
  let names = cache.get(shape);
  if (names === undefined) {
    const entry = (member) => [member[from], { name: member[to], shape: member[2] }];
    names = new Map(SHAPES[shape].map(entry));
    cache.set(shape, names);
  }
  return names;
}

/** Returns a value with `map` applied to the objects of `shape`. */
function mapped(value, shape, map) {
  if (shape === undefined || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((element) => mapped(element, shape, map));
  return map(shape, value);
}

/**
 * Returns options of `shape` under the engine's names. An undefined member is left out, an unknown
 * member is refused. `path` names the options in errors.
 */
export function toSnake(shape, options, path) {
  const names = namesOf(toSnakeNames, shape, 0, 1);
  const result = {};
  for (const [key, value] of Object.entries(options)) {
    const member = names.get(key);
    if (member === undefined) throw invalid(`\`${path}\` has no \`${key}\``);
    if (value === undefined) continue;
    result[member.name] = mapped(value, member.shape, (inner, element) =>
      toSnake(inner, element, `${path}.${key}`),
    );
  }
  return result;
}

/** Returns a result of `shape` under this package's names; unlisted members pass unchanged. */
export function toCamel(shape, result) {
  if (Array.isArray(result)) return result.map((element) => toCamel(shape, element));
  const names = namesOf(toCamelNames, shape, 1, 0);
  return Object.fromEntries(
    Object.entries(result).map(([key, value]) => {
      const member = names.get(key) ?? { name: key };
      return [member.name, mapped(value, member.shape, toCamel)];
    }),
  );
}
"#;

type Entry = (String, String, Option<String>);

/// Writes `shapes.js`.
///
/// # Errors
///
/// Two shapes of a union have a member of one name with different shapes.
pub(super) fn write_shapes(schema: &Schema, exports: &Exports) -> Result<String> {
    let mut text = format!("// {}\n{HEAD}", generated_line());
    text.push_str("/** Members of each shape: [camelCase, snake_case, shape of the value]. */\n");
    text.push_str("export const SHAPES = {\n");
    for shape in schema.closure(exports.package_roots()) {
        let entries = list_entries(schema, shape)?;
        if entries.is_empty() || !is_mapped(schema, &shape.name) {
            continue;
        }
        text.push_str(&format!("  {}: [\n{}  ],\n", shape.name, pack_entries(&entries)));
    }
    text.push_str("};\n\n/** Shapes of the options and of the result of each method. */\n");
    text.push_str("export const METHODS = {\n");
    for method in &exports.methods {
        let quoted = |name: Option<&str>| match name {
            Some(name) if is_mapped(schema, name) => format!("\"{name}\""),
            _ => "undefined".into(),
        };
        let options = quoted(method.options.as_deref());
        let result = quoted(method.result.as_ref().and_then(|kind| kind.shape_name()));
        let name = camel_case(&method.name);
        text.push_str(&format!("  {name}: {{ options: {options}, result: {result} }},\n"));
    }
    text.push_str(
        "};\n\n/** Shape of an element of each kind of list. */\nexport const LISTINGS = {\n",
    );
    for (kind, shape) in &exports.listings {
        text.push_str(&format!("  {kind}: \"{shape}\",\n"));
    }
    text.push_str("};\n");
    text.push_str(FUNCTIONS);
    Ok(text)
}

/// Formats the entries of a shape, with as many entries in a line as fit.
fn pack_entries(entries: &[Entry]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (camel, snake, inner) in entries {
        let inner = inner.as_ref().map(|inner| format!(", \"{inner}\"")).unwrap_or_default();
        let entry = format!("[\"{camel}\", \"{snake}\"{inner}],");
        match lines.last_mut() {
            Some(line) if line.len() + entry.len() < 100 => line.push_str(&format!(" {entry}")),
            _ => lines.push(format!("    {entry}")),
        }
    }
    lines.join("\n") + "\n"
}

/// Returns whether the package maps the member names of a shape.
fn is_mapped(schema: &Schema, name: &str) -> bool {
    schema.shapes.get(name).is_some_and(|shape| {
        matches!(shape.form, Form::Object(_) | Form::Union(_)) && !keeps_case(schema, shape)
    })
}

fn list_entries(schema: &Schema, shape: &Shape) -> Result<Vec<Entry>> {
    match &shape.form {
        Form::Object(members) => {
            let entry = |member: &&super::schema::Member| {
                let inner = member.kind.shape_name().filter(|inner| is_mapped(schema, inner));
                let name = &member.name;
                (camel_case(name), name.clone(), inner.map(str::to_owned))
            };
            Ok(words::members_of(members, "node").iter().map(entry).collect())
        }
        Form::Union(names) => {
            let mut merged: BTreeMap<String, Entry> = BTreeMap::new();
            for name in names {
                for entry in list_entries(schema, schema.find_shape(name)?)? {
                    let known = merged.entry(entry.1.clone()).or_insert_with(|| entry.clone());
                    ensure!(*known == entry, "`{}`: `{}` has two shapes", shape.name, entry.1);
                }
            }
            Ok(merged.into_values().collect())
        }
        Form::Choice(_) | Form::Free(_) | Form::Host(_) => Ok(Vec::new()),
    }
}
