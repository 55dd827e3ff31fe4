//! `doctor`: checks the programs that building and testing need.
//!
//! In: the search path. Out: one line per program. `build.sh` and the scripts of the hosts install
//! programs.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::workspace::Workspace;

/// A program, its argument to print the version, and its users.
const TOOLS: [(&str, &str, &str); 8] = [
    ("cargo", "--version", "everything"),
    ("rustc", "--version", "everything"),
    ("rustup", "--version", "adding the wasm target"),
    ("cc", "--version", "linking, SQLite"),
    ("make", "--version", "SQLite for Node 20"),
    ("node", "--version", "the component, the Node and edge hosts"),
    ("npm", "--version", "the component, the Node and edge hosts"),
    ("python3", "--version", "the Python host"),
];

/// Prints installed and missing programs.
///
/// # Errors
///
/// When a program is missing.
pub(crate) fn doctor(workspace: &Workspace) -> Result<()> {
    let mut missing = Vec::new();
    for (program, argument, purpose) in TOOLS {
        match version(program, argument) {
            Some(version) => println!("{program:8} {version}"),
            None => {
                println!("{program:8} missing, needed for: {purpose}");
                missing.push(program);
            }
        }
    }
    println!("folder   {}", workspace.root.display());
    ensure!(missing.is_empty(), "missing: {}", missing.join(", "));
    Ok(())
}

/// Returns the first line of the version of a program; `None`: the program is missing.
fn version(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_missing_program_has_no_version() {
        assert_eq!(version("no-such-program-here", "--version"), None);
        assert!(version("cargo", "--version").is_some_and(|text| text.starts_with("cargo ")));
    }
}
