//! Builds `dist/lcm.wasm` from the guest crate.
//!
//! In: `crates/lcm-component`. Out: the component and `dist/SHA256SUMS`. The same sources give the
//! same bytes wherever the workspace and cargo's folders are.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::{
    optimize::optimized,
    workspace::{Workspace, capture, run, write_if_changed},
};

/// Builds the component and writes it with its checksum.
///
/// # Errors
///
/// When the guest does not build or does not fit the world.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let component = encode(workspace, &workspace.target)?;
    let path = workspace.dist()?.join("lcm.wasm");
    write_if_changed(&path, &component)?;
    write_checksums(workspace)?;
    println!("dist/lcm.wasm: {} bytes, sha256 {}", component.len(), sha256(&component));
    Ok(())
}

/// Builds the component with cargo's output below `target` and returns its bytes.
///
/// # Errors
///
/// Errors of [`write`].
pub(crate) fn encode(workspace: &Workspace, target: &std::path::Path) -> Result<Vec<u8>> {
    let mut build = workspace.cargo(&[
        "build",
        "--locked",
        "--package=lcm-component",
        "--profile=component",
        "--target=wasm32-unknown-unknown",
    ]);
    build.env("CARGO_TARGET_DIR", target);
    let mut flags = remapped_paths(workspace)?;
    // The unrolled rounds of SHA-256 are 7 KB longer, and no faster in a turn.
    flags.push("--cfg=sha2_backend_soft=\"compact\"".to_owned());
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    run(&mut build)?;
    let core = target.join("wasm32-unknown-unknown/component/lcm_component.wasm");
    let core = std::fs::read(core).context("reading the core module")?;
    let core = optimized(workspace, &core, target)?;
    without_names(ComponentEncoder::default().module(&core)?.validate(true).encode()?)
}

/// Removes the name section, 5 KB, which the encoder writes for debuggers.
fn without_names(mut component: Vec<u8>) -> Result<Vec<u8>> {
    let mut found = None;
    for payload in Parser::new(0).parse_all(&component) {
        match payload? {
            Payload::CustomSection(section) if section.name() == "component-name" => {
                found = Some(section.range());
            }
            _ => {}
        }
    }
    if let Some(range) = found {
        let [start, end] = [range.start, range.end].map(usize::try_from);
        let (start, end) = (start.context("a section")?, end.context("a section")?);
        // A section begins with its kind (one byte) and its size (LEB128, groups of 7 bits).
        let groups = (0..).take_while(|group| (end - start) >> (7 * group) > 0).count();
        component.drain(start - 1 - groups..end);
    }
    Ok(component)
}

/// Returns compiler flags that remove the folders of this machine from panic messages.
fn remapped_paths(workspace: &Workspace) -> Result<Vec<String>> {
    let sysroot = capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    let cargo_home = match std::env::var_os("CARGO_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::home_dir().context("no home folder")?.join(".cargo"),
    };
    // The compiler uses the last matching prefix, so the workspace comes last.
    Ok([
        (PathBuf::from(sysroot.trim()), "/rust"),
        (cargo_home, "/cargo"),
        (workspace.root.clone(), "."),
    ]
    .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()))
    .into())
}

/// Writes `dist/SHA256SUMS` of the component and the program, if they exist.
///
/// # Errors
///
/// When a file cannot be read or written.
pub(crate) fn write_checksums(workspace: &Workspace) -> Result<()> {
    let dist = workspace.dist()?;
    let mut lines = String::new();
    for name in ["lcm", "lcm.wasm"] {
        let path = dist.join(name);
        if path.exists() {
            lines += &format!("{}  {name}\n", sha256(&std::fs::read(path)?));
        }
    }
    write_if_changed(&dist.join("SHA256SUMS"), lines.as_bytes())
}

/// Returns the SHA-256 as 64 hex digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
