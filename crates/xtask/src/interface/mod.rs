//! The description of the JSON of the interface, and the files generated from the description.
//!
//! In: `schema/*.json`. Out: lists in the prose of `wit/`, types of the packages for Node and
//! Python, structs of the Rust host, reference pages; and a check of values against the
//! description. A generated file is never edited by hand.

mod circles;
mod document;
mod exports;
mod javascript;
mod python;
mod reference;
mod rust;
mod schema;
#[cfg(test)]
mod tests;
mod typescript;
mod validate;
mod wit;
mod words;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};

pub use exports::{Export, Exports, Method, Payload, Verb};
pub use schema::{Form, FreeJson, Kind, Member, Schema, SchemaFile, Shape};

/// A file that is written from the description.
#[derive(Debug)]
pub struct GeneratedFile {
    /// Path below the workspace.
    pub path: String,
    /// Required content.
    pub text: String,
}

/// The page with the tables of the configuration.
const CONFIGURATION_PAGE: &str = "docs/configuration.md";

/// Writes every generated file in memory.
///
/// # Errors
///
/// The description is inconsistent, or a file with marks is missing.
pub fn generate(root: &Path) -> Result<Vec<GeneratedFile>> {
    let schema = Schema::load(root)?;
    let exports = Exports::load(root)?;
    for name in exports.wire_roots().into_iter().chain(exports.package_roots()) {
        schema.find_shape(name)?;
    }
    let mut files = typescript::write_types(&schema, &exports);
    let tables = javascript::write_shapes(&schema, &exports)?;
    files.push(("host-examples/node/src/shapes.js".into(), tables));
    files.extend(python::write_types(&schema, &exports));
    files.extend(rust::write_structs(&schema, &exports));
    files.extend(reference::write_pages(&schema, &exports));
    files.extend(rewrite_interface(&schema, &exports, root)?);
    let page = read(root, CONFIGURATION_PAGE)?;
    let page = reference::rewrite_configuration(&schema, &page).context(CONFIGURATION_PAGE)?;
    files.push((CONFIGURATION_PAGE.into(), page));
    Ok(files.into_iter().map(|(path, text)| GeneratedFile { path, text }).collect())
}

fn rewrite_interface(
    schema: &Schema,
    exports: &Exports,
    root: &Path,
) -> Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("wit")).context("reading wit/")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for name in names.into_iter().filter(|name| name.ends_with(".wit")) {
        let path = format!("wit/{name}");
        let text =
            wit::rewrite_blocks(schema, &read(root, &path)?, &mut seen).context(path.clone())?;
        files.push((path, text));
    }
    let missing = wit::list_missing(schema, exports, &seen);
    ensure!(missing.is_empty(), "wit/ must list the shapes {}", missing.join(", "));
    Ok(files)
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
}

/// Returns the paths of generated files whose content is stale.
///
/// # Errors
///
/// A file of `schema/` or `wit/` cannot be read, or is not consistent.
pub fn find_stale(root: &Path) -> Result<Vec<String>> {
    let is_stale = |file: &GeneratedFile| {
        fs::read_to_string(root.join(&file.path)).ok().as_deref() != Some(&file.text)
    };
    Ok(generate(root)?.into_iter().filter(is_stale).map(|file| file.path).collect())
}

/// Writes every generated file that differs, and returns their paths.
///
/// # Errors
///
/// A file of `schema/` or `wit/` cannot be read, or is not consistent; a file cannot be written.
pub fn write(root: &Path) -> Result<Vec<String>> {
    let stale = find_stale(root)?;
    for file in generate(root)?.into_iter().filter(|file| stale.contains(&file.path)) {
        let path = root.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, file.text).with_context(|| format!("writing {}", file.path))?;
    }
    Ok(stale)
}
