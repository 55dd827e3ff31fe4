//! Writes the lists of members into the prose of `wit/`.
//!
//! A list stands between two lines with the name of a shape, `/// <!-- GrepQuery -->` and
//! `/// <!-- /GrepQuery -->`. The text between the two lines is replaced.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use super::{
    exports::Exports,
    schema::{Form, Member, Schema, Shape},
    words::{describe_default, describe_kind, wrap_text},
};

/// Replaces the lists in one file; adds the names of its shapes to `seen`.
///
/// # Errors
///
/// A mark without its end, or a mark that names no shape.
pub(super) fn rewrite_blocks(
    schema: &Schema,
    text: &str,
    seen: &mut BTreeSet<String>,
) -> Result<String> {
    let mut out = String::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let mark = line.trim().strip_prefix("/// <!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let indent = line.strip_suffix(line.trim_start()).unwrap_or_default();
        match (mark, &open) {
            (Some(name), Some(known)) => {
                ensure!(
                    name.strip_prefix('/') == Some(known),
                    "`{known}` must end before `{name}`"
                );
                open = None;
            }
            (Some(name), None) => {
                ensure!(!name.starts_with('/'), "`{name}` must follow its start mark");
                ensure!(seen.insert(name.to_owned()), "`{name}` must be listed once");
                out.push_str(&format!("{line}\n{}", write_list(schema, name, indent)?));
                open = Some(name.to_owned());
                continue;
            }
            (None, Some(_)) => continue,
            (None, None) => {}
        }
        out.push_str(line);
        out.push('\n');
    }
    if let Some(name) = open {
        bail!("`{name}` must have an end mark");
    }
    Ok(out)
}

/// Returns the names of wire shapes that no file lists.
#[must_use]
pub(super) fn list_missing(
    schema: &Schema,
    exports: &Exports,
    seen: &BTreeSet<String>,
) -> Vec<String> {
    let has_list = |shape: &&Shape| !matches!(shape.form, Form::Choice(_) | Form::Free(_));
    let shapes = schema.closure(exports.wire_roots());
    let missing = shapes.into_iter().filter(has_list).map(|shape| shape.name.clone());
    missing.filter(|name| !seen.contains(name)).collect()
}

fn write_list(schema: &Schema, name: &str, indent: &str) -> Result<String> {
    let shape = schema.find_shape(name)?;
    let mut lines = write_lines(&format!("`{name}`: {}", shape.description), "", indent);
    let link = |shape: &Shape| format!("`{}`", shape.name);
    match &shape.form {
        Form::Object(members) => {
            for member in members {
                let item = describe_member(schema, member, &link);
                lines.push_str(&write_lines(&item, "- ", indent));
            }
        }
        Form::Union(names) => {
            for name in names {
                let description = &schema.find_shape(name)?.description;
                lines.push_str(&write_lines(&format!("`{name}`: {description}"), "- ", indent));
            }
        }
        Form::Choice(choices) => {
            for choice in choices {
                lines.push_str(&write_lines(&format!("`{choice}`"), "- ", indent));
            }
        }
        Form::Free(_) | Form::Host(_) => {}
    }
    Ok(lines)
}

/// Formats one line of a list: name, rule and description of a member.
pub(super) fn describe_member(
    schema: &Schema,
    member: &Member,
    link: &dyn Fn(&Shape) -> String,
) -> String {
    let mut rule = describe_kind(schema, &member.kind, link);
    if !member.is_required {
        let default = describe_default(member).map(|default| format!(", default {default}"));
        rule = format!("{rule}; optional{}", default.unwrap_or_default());
    }
    format!("`{}`: {rule}. {}", member.name, member.description)
}

fn write_lines(text: &str, mark: &str, indent: &str) -> String {
    let width = 100 - indent.len() - 4 - mark.len();
    let mut lines = String::new();
    for (index, line) in wrap_text(text, width).iter().enumerate() {
        let start = if index == 0 { mark.to_owned() } else { " ".repeat(mark.len()) };
        lines.push_str(&format!("{indent}/// {start}{line}\n"));
    }
    lines
}
