//! Paths of the workspace, and child processes.
//!
//! In: the environment of this process. Out: paths and finished child processes. Every path derives
//! from the workspace.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

/// The workspace of this program.
pub(crate) struct Workspace {
    /// Folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Target folder of cargo.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo for the folders of the workspace and of its target.
    ///
    /// # Errors
    ///
    /// When cargo fails.
    pub(crate) fn locate() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut metadata = Command::new(cargo());
        metadata.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
        let text = capture(metadata.arg(manifest))?;
        let metadata: serde_json::Value = serde_json::from_str(&text)?;
        let folder = |key: &str| {
            let path = metadata.get(key).and_then(serde_json::Value::as_str);
            path.map(PathBuf::from).with_context(|| format!("cargo metadata has no `{key}`"))
        };
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")? })
    }

    /// Returns the folder of released files; creates the folder if absent.
    ///
    /// # Errors
    ///
    /// When the folder cannot be created.
    pub(crate) fn dist(&self) -> Result<PathBuf> {
        let dist = self.root.join("dist");
        std::fs::create_dir_all(&dist).context("making dist/")?;
        Ok(dist)
    }

    /// Returns a cargo command that runs in the workspace.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        command
    }
}

/// Returns the path of the cargo that started this program.
fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Runs a command to its end, with inherited output and without input.
///
/// # Errors
///
/// When the command cannot start or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = describe(command);
    println!("+ {name}");
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("starting `{name}`"))?;
    ensure!(status.success(), "`{name}` failed with {status}");
    Ok(())
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
///
/// When the command cannot start, fails, or writes invalid UTF-8.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let name = describe(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting `{name}`"))?;
    if !output.status.success() {
        bail!("`{name}` failed with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of `{name}`"))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Replaces a file unless the content is equal, so that its dependents are not rebuilt.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    // A rename of a temporary file, so that a reader never sees a partial file.
    let unfinished = path.with_extension("part");
    let written = std::fs::write(&unfinished, content);
    written
        .and_then(|()| std::fs::rename(&unfinished, path))
        .with_context(|| format!("writing {}", path.display()))
}
