//! Where things are, and how programs are run.
//!
//! In: the environment of this process. Out: paths and finished child processes. Every path is
//! derived from the workspace; nothing is read from the machine's configuration by hand.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

/// The workspace this program was built from.
pub(crate) struct Workspace {
    /// The folder with the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo where the workspace and its target folder are.
    ///
    /// # Errors
    ///
    /// When cargo cannot be run or does not know the workspace.
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

    /// The folder of everything that is handed out; made when absent.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub(crate) fn dist(&self) -> Result<PathBuf> {
        let dist = self.root.join("dist");
        std::fs::create_dir_all(&dist).context("making dist/")?;
        Ok(dist)
    }

    /// A cargo command that runs in the workspace's folder.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        command
    }
}

/// The cargo that started this program.
fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Runs a command to its end, with its output going where ours goes and no input.
///
/// # Errors
///
/// When it cannot be started or fails.
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
/// When it cannot be started, fails, or writes what is not UTF-8.
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

/// Replaces a file, unless it already has this content: what depends on it is then not rebuilt.
///
/// # Errors
///
/// When it cannot be written.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    // Written beside and renamed, so that a reader never sees half of it.
    let unfinished = path.with_extension("part");
    let written = std::fs::write(&unfinished, content);
    written
        .and_then(|()| std::fs::rename(&unfinished, path))
        .with_context(|| format!("writing {}", path.display()))
}
