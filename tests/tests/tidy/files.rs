//! The files of the workspace that a person wrote.

use std::path::{Path, PathBuf};

/// Folders with generated or downloaded files.
const GENERATED: [&str; 9] = [
    ".git",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "target",
    ".pytest_cache",
    ".mypy_cache",
];

/// A file with its path below the workspace.
pub(crate) struct File {
    /// Path with `/` between folders.
    pub(crate) path: String,
    /// The content of the file.
    pub(crate) text: String,
}

impl File {
    /// Creates a made-up file for the tests of the rules.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns whether the path ends in one of `endings`.
    pub(crate) fn is(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    /// Returns whether the file is only for tests.
    pub(crate) fn is_test(&self) -> bool {
        let folders = ["tests/", "test/", "fuzz/"];
        let name = self.path.rsplit('/').next().unwrap_or_default();
        folders.iter().any(|folder| {
            self.path.starts_with(folder) || self.path.contains(&format!("/{folder}"))
        }) || name.starts_with("test")
            || name.contains("_test.")
            || name.contains(".test.")
    }
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Reads every file whose name ends in one of `endings`, in the order of the paths.
pub(crate) fn all(endings: &[&str]) -> Vec<File> {
    let mut paths = paths();
    paths.retain(|path| endings.iter().any(|ending| path.ends_with(ending)));
    let root = root();
    let read = |path: String| {
        let text = std::fs::read_to_string(root.join(&path));
        File { text: text.unwrap_or_else(|error| panic!("{path}: {error}")), path }
    };
    paths.into_iter().map(read).collect()
}

/// Returns the paths of all files, sorted.
pub(crate) fn paths() -> Vec<String> {
    let root = root();
    let mut paths = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let generated = GENERATED.contains(&name.as_str()) || name.ends_with(".egg-info");
                if !generated && !path.is_symlink() {
                    folders.push(path);
                }
            } else {
                let relative = path.strip_prefix(&root).unwrap();
                let parts: Vec<_> =
                    relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                paths.push(parts.join("/"));
            }
        }
    }
    paths.sort();
    paths
}

/// The search for files must find some; without files every rule would pass.
#[test]
fn the_files_of_the_workspace_are_found() {
    let paths: Vec<String> = all(&[".rs", ".wit"]).into_iter().map(|file| file.path).collect();
    for path in ["crates/lcm-core/src/engine.rs", "wit/store.wit", "tests/tests/tidy/files.rs"] {
        assert!(paths.iter().any(|found| found == path), "{path} is not among {paths:?}");
    }
    assert!(File::new("crates/lcm-text/src/base/json/tests.rs", "").is_test());
    assert!(File::new("tests/src/lib.rs", "").is_test());
    assert!(!File::new("crates/lcm-testing/src/lib.rs", "").is_test());
}
