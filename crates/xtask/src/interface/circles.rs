//! Refuses files of the description that refer to each other in a circle.
//!
//! Each file becomes a module, and Python cannot import modules in a circle. Input: all shapes.
//! Output: an error that names the shapes between the files of one circle.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::schema::{Schema, Shape};

/// A shape with a shape of another file that it refers to.
type Reference<'a> = (&'a Shape, &'a Shape);

/// For each pair of files (referring, referred to), the first reference between them.
type FileReferences<'a> = BTreeMap<(&'a str, &'a str), Reference<'a>>;

/// Checks that no file refers to itself through other files.
///
/// # Errors
///
/// Files refer to each other in a circle.
pub(super) fn check_no_circle(schema: &Schema) -> Result<()> {
    let references = list_references(schema);
    let circles = schema.files.iter().filter_map(|file| find_circle(&references, &file.name));
    let Some(circle) = circles.min_by_key(Vec::len) else { return Ok(()) };
    let steps: Vec<String> = circle
        .iter()
        .map(|(from, to)| {
            format!(
                "`{}` of {}.json refers to `{}` of {}.json",
                from.name, from.file, to.name, to.file
            )
        })
        .collect();
    bail!(
        "files of schema/ must not refer to each other in a circle, got {}; \
         move a shape that several files use into common.json",
        steps.join(", ")
    )
}

fn list_references(schema: &Schema) -> FileReferences<'_> {
    let mut references = FileReferences::new();
    for from in schema.in_order() {
        let targets = from.references().into_iter().filter_map(|name| schema.shapes.get(name));
        for to in targets.filter(|to| to.file != from.file) {
            references.entry((from.file.as_str(), to.file.as_str())).or_insert((from, to));
        }
    }
    references
}

/// Returns the shortest chain of references from a file back to itself; `None`: there is no chain.
fn find_circle<'a>(references: &FileReferences<'a>, start: &str) -> Option<Vec<Reference<'a>>> {
    let mut ways: Vec<Vec<Reference<'a>>> = vec![Vec::new()];
    let mut reached: Vec<&str> = Vec::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let end = way.last().map_or(start, |(_, to)| to.file.as_str());
            for ((_, file), step) in references.iter().filter(|((from, _), _)| *from == end) {
                let next: Vec<Reference<'a>> = way.iter().copied().chain([*step]).collect();
                if *file == start {
                    return Some(next);
                }
                if !reached.contains(file) {
                    reached.push(file);
                    longer.push(next);
                }
            }
        }
        ways = longer;
    }
    None
}
