//! The rules for `dist/lcm.wasm` before a release.
//!
//! In: the component, `wit/` and `.ci/size-budget`. Out: the first violation, if any. The vectors
//! check the behaviour of the component.

use std::{collections::BTreeSet, io::Write as _, path::Path};

use anyhow::{Context as _, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use wasmparser::{Parser, Payload};
use wit_parser::Resolve;

use crate::{component, workspace::Workspace};

/// Folders of a build machine, in two halves, because no file of the project may contain such a
/// path.
const MACHINE: [(&str, &str); 4] = [("/ro", "ot/"), ("/ho", "me/"), ("/Us", "ers/"), ("C:", "\\")];

/// Length of the shortest comment of `wit/` to search for; shorter comments are ordinary words.
const COMMENT_BYTES_MIN: usize = 20;

/// Checks imports, exports, size and contents of `dist/lcm.wasm`.
///
/// # Errors
///
/// When the component is missing or breaks a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let path = workspace.dist()?.join("lcm.wasm");
    let component = std::fs::read(path).context("reading dist/lcm.wasm")?;
    let wit = workspace.root.join("wit");
    check_interfaces(&Interfaces::of_component(&component)?, &Interfaces::of_world(&wit)?)?;
    check_contents(&component, &comments(&wit)?, &workspace.root)?;
    let budget = std::fs::read_to_string(workspace.root.join(".ci/size-budget"))
        .context("reading .ci/size-budget")?;
    let size = Size { raw: component.len(), gzip: count_gzipped(&component)? };
    size.check(&Size::parse(&budget)?)?;
    println!("dist/lcm.wasm: {} bytes, {} gzipped, only its own imports", size.raw, size.gzip);
    Ok(())
}

/// Checks the component, then builds it again from scratch and compares the bytes.
///
/// # Errors
///
/// Errors of [`check`], or when the two builds differ.
pub(crate) fn check_twice(workspace: &Workspace) -> Result<()> {
    component::write(workspace)?;
    check(workspace)?;
    let target = workspace.target.join("again");
    if target.exists() {
        std::fs::remove_dir_all(&target).context("emptying the second target folder")?;
    }
    let again = component::encode(workspace, &target)?;
    let first = std::fs::read(workspace.dist()?.join("lcm.wasm"))?;
    ensure!(first == again, "two builds of the component differ");
    println!("dist/lcm.wasm: built twice, the same bytes");
    Ok(())
}

/// Names of imported and exported interfaces, with their versions.
#[derive(Debug, Default, Eq, PartialEq)]
struct Interfaces {
    imports: BTreeSet<String>,
    exports: BTreeSet<String>,
}

impl Interfaces {
    /// Reads the names of an encoded component, without nested components and modules.
    fn of_component(component: &[u8]) -> Result<Self> {
        let mut found = Self::default();
        let mut depth = 0_u32;
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                // The loop ends with the outermost component.
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        found.imports.insert(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        found.exports.insert(export?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Reads the names of the world in `wit`.
    fn of_world(wit: &Path) -> Result<Self> {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(wit)?;
        let world = resolve.select_world(&[package], Some("engine"))?;
        let world = resolve.worlds.get(world).context("the world `engine`")?;
        let names = |items: &wit_parser::IndexMap<wit_parser::WorldKey, _>| {
            items.keys().map(|key| resolve.name_world_key(key)).collect()
        };
        Ok(Self { imports: names(&world.imports), exports: names(&world.exports) })
    }
}

/// Checks that the component imports a subset of its world and exports the whole world.
fn check_interfaces(component: &Interfaces, world: &Interfaces) -> Result<()> {
    for import in &component.imports {
        ensure!(
            import.starts_with("lcm:engine/") && world.imports.contains(import),
            "the component imports `{import}`"
        );
    }
    ensure!(
        component.imports.contains("lcm:engine/store@0.1.0"),
        "the component must import the store"
    );
    ensure!(
        component.exports == world.exports,
        "the component exports {:?}, its world {:?}",
        component.exports,
        world.exports
    );
    Ok(())
}

/// Checks that the component has no comment of the interface and no path of the build machine.
fn check_contents(component: &[u8], comments: &[String], root: &Path) -> Result<()> {
    let contains = |text: &str| memmem(component, text.as_bytes());
    for comment in comments {
        ensure!(!contains(comment), "the component must not contain the comment `{comment}`");
    }
    let folders = MACHINE.map(|(first, second)| format!("{first}{second}"));
    for folder in folders.into_iter().chain([root.display().to_string()]) {
        ensure!(!contains(&folder), "the component must not contain the path `{folder}`");
    }
    Ok(())
}

fn memmem(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Reads the documentation lines of `wit`.
fn comments(wit: &Path) -> Result<Vec<String>> {
    let mut comments = Vec::new();
    for file in std::fs::read_dir(wit).context("reading wit/")? {
        let text = std::fs::read_to_string(file?.path())?;
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("///"));
        let long = lines.map(str::trim).filter(|line| line.len() >= COMMENT_BYTES_MIN);
        comments.extend(long.map(str::to_owned));
    }
    Ok(comments)
}

/// Bytes of the component, raw and gzipped.
struct Size {
    raw: usize,
    gzip: usize,
}

impl Size {
    /// Parses lines `raw N` and `gzip N`; `#` starts a comment.
    fn parse(text: &str) -> Result<Self> {
        let number = |name: &str| -> Result<usize> {
            let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix(name));
            let line = lines.next().with_context(|| format!("no line `{name}`"))?;
            line.trim().parse().with_context(|| format!("the number of `{name}`"))
        };
        Ok(Self { raw: number("raw ")?, gzip: number("gzip ")? })
    }

    fn check(&self, budget: &Self) -> Result<()> {
        let sizes = [("raw", self.raw, budget.raw), ("gzipped", self.gzip, budget.gzip)];
        for (name, size, most) in sizes {
            ensure!(
                size <= most,
                "the component must have at most {most} bytes {name}, got {size}"
            );
        }
        Ok(())
    }
}

pub(crate) fn count_gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(imports: &[&str], exports: &[&str]) -> Interfaces {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Interfaces { imports: set(imports), exports: set(exports) }
    }

    /// One foreign import is enough to fail, and so is a missing export.
    #[test]
    fn a_foreign_import_or_a_missing_export_fails() {
        let store = "lcm:engine/store@0.1.0";
        let world = interfaces(&[store, "lcm:engine/llm@0.1.0"], &["lcm:engine/setup@0.1.0"]);
        let good = interfaces(&[store], &["lcm:engine/setup@0.1.0"]);
        assert!(check_interfaces(&good, &world).is_ok());
        let wasi = interfaces(&[store, "wasi:io/poll@0.2.0"], &["lcm:engine/setup@0.1.0"]);
        let error = check_interfaces(&wasi, &world).unwrap_err().to_string();
        assert_eq!(error, "the component imports `wasi:io/poll@0.2.0`");
        assert!(check_interfaces(&interfaces(&[store], &[]), &world).is_err());
        assert!(check_interfaces(&interfaces(&[], &["lcm:engine/setup@0.1.0"]), &world).is_err());
    }

    /// The smallest component that imports an instance, written by hand.
    #[test]
    fn imports_are_read_from_the_bytes() {
        let name = b"wasi:io/poll@0.2.0";
        let length = u8::try_from(name.len()).unwrap();
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        // A type section with one empty instance type, then an import of it.
        component.extend([7, 3, 1, 0x42, 0]);
        component.extend([10, length + 5, 1, 0, length]);
        component.extend(name);
        component.extend([5, 0]);
        let found = Interfaces::of_component(&component).unwrap();
        assert_eq!(found, interfaces(&["wasi:io/poll@0.2.0"], &[]));
    }

    #[test]
    fn a_component_over_its_budget_fails() {
        let budget = Size::parse("# bytes\nraw 100\ngzip 10\n").unwrap();
        assert!(Size { raw: 100, gzip: 10 }.check(&budget).is_ok());
        assert!(Size { raw: 101, gzip: 10 }.check(&budget).is_err());
        assert!(Size { raw: 100, gzip: 11 }.check(&budget).is_err());
        assert!(Size::parse("raw 100\n").is_err());
    }

    #[test]
    fn comments_and_paths_inside_the_component_fail() {
        let comments = ["Counts the commits of one conversation.".to_owned()];
        let root = Path::new("/the/tree");
        assert!(check_contents(b"src/engine.rs", &comments, root).is_ok());
        assert!(check_contents(b"x/the/tree/src/engine.rs", &comments, root).is_err());
        let with_comment = b"xx Counts the commits of one conversation. xx";
        assert!(check_contents(with_comment, &comments, root).is_err());
    }
}
