//! The files of the workspace that a person wrote.

use std::path::{Path, PathBuf};

/// Folders of what was generated or fetched.
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
    /// What is in it.
    pub(crate) text: String,
}

impl File {
    /// A made-up file, for the tests of the rules.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether the name ends in one of these.
    pub(crate) fn is(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    /// Whether the file is only there for tests.
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

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every file whose name ends in one of `endings`, in the order of the paths.
pub(crate) fn all(endings: &[&str]) -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
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
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let relative = path.strip_prefix(&root).unwrap();
                let parts: Vec<_> =
                    relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                let text = std::fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                files.push(File { path: parts.join("/"), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The walk itself must find something, or every gate passes on nothing.
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
