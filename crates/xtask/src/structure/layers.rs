//! The layers of the engine as data, and the imports that break their order.
//!
//! In: lines of parts, the lowest first (`layers.txt`), and imports. A part is a crate or a module
//! of a crate; a file belongs to the part with the longest name that covers the file. Files at the
//! root of a crate that no part covers (`lib.rs`) declare modules and have no layer.

use super::imports::Import;

/// The layers of this workspace.
pub const LAYERS: &str = include_str!("../../layers.txt");

/// A part of the engine, with its height.
struct Part {
    name: String,
    /// The crate of the part.
    package: String,
    /// Start of the paths below `src`, without an ending; empty for a whole crate.
    below: String,
    height: usize,
}

/// The parts in their order.
pub struct Layers {
    parts: Vec<Part>,
}

/// Kind of an import that breaks the order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Breach {
    /// From a lower layer to a higher layer.
    Upward,
    /// Between two parts of one layer.
    Sideways,
}

impl Layers {
    /// Parses lines of parts; `#` starts a comment.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let parts = lines.enumerate().flat_map(|(height, line)| {
            line.split_whitespace().map(move |name| {
                let (package, below) = name.split_once('/').unwrap_or((name, ""));
                let (package, below) = (package.to_owned(), below.to_owned());
                Part { name: name.to_owned(), package, below, height }
            })
        });
        Self { parts: parts.collect() }
    }

    /// Returns the names of the parts of each layer, the lowest layer first.
    #[must_use]
    pub fn names(&self) -> Vec<Vec<&str>> {
        let mut layers: Vec<Vec<&str>> = Vec::new();
        for part in &self.parts {
            if layers.len() <= part.height {
                layers.resize(part.height + 1, Vec::new());
            }
            if let Some(layer) = layers.last_mut() {
                layer.push(&part.name);
            }
        }
        layers
    }

    /// Returns the name of the part that a file belongs to.
    #[must_use]
    pub fn part_of(&self, path: &str) -> Option<&str> {
        self.find(path).map(|part| part.name.as_str())
    }

    fn find(&self, path: &str) -> Option<&Part> {
        let (package, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
        let covers = |part: &&Part| {
            let rest = file.strip_prefix(part.below.as_str());
            let ends = |rest: &str| part.below.is_empty() || rest.starts_with(['/', '.']);
            part.package == package && rest.is_some_and(ends)
        };
        self.parts.iter().filter(covers).max_by_key(|part| part.below.len())
    }

    /// Returns the imports that break the order.
    #[must_use]
    pub fn breaches<'a>(&self, imports: &'a [Import]) -> Vec<(Breach, &'a Import)> {
        let breach = |import: &Import| {
            let (from, to) = (self.find(&import.from)?, self.find(&import.to)?);
            let sideways = from.height == to.height && from.name != to.name;
            match from.height < to.height {
                true => Some(Breach::Upward),
                false => sideways.then_some(Breach::Sideways),
            }
        };
        imports.iter().filter_map(|import| Some((breach(import)?, import))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(from: &str, to: &str) -> Import {
        let path = |file: &str| format!("crates/{file}");
        Import { from: path(from), to: path(to), line: 1, name: String::new() }
    }

    #[test]
    fn imports_against_the_order_are_found() {
        let layers = Layers::parse("# low first\nloops\ncore/a core/b\ncore/a/top\n");
        assert_eq!(layers.names(), [vec!["loops"], vec!["core/a", "core/b"], vec!["core/a/top"]]);
        assert_eq!(layers.part_of("crates/core/src/a/top.rs"), Some("core/a/top"));
        assert_eq!(layers.part_of("crates/core/src/a.rs"), Some("core/a"));
        assert_eq!(layers.part_of("crates/core/src/ab.rs"), None);
        assert_eq!(layers.part_of("crates/loops/src/x/y.rs"), Some("loops"));
        let imports = [
            import("core/src/a.rs", "loops/src/lib.rs"),
            import("core/src/a/c.rs", "core/src/a/d.rs"),
            import("core/src/a/c.rs", "core/src/b.rs"),
            import("loops/src/x.rs", "core/src/b/mod.rs"),
        ];
        let found: Vec<Breach> = layers.breaches(&imports).iter().map(|found| found.0).collect();
        assert_eq!(found, [Breach::Sideways, Breach::Upward]);
    }
}
