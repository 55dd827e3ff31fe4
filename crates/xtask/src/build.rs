//! `build`, `demo` and `bench`.
//!
//! In: the workspace. Out: `dist/lcm.wasm`, `dist/lcm` and the packages, and the output of the
//! demonstration or the measurements.

use anyhow::{Context as _, Result};
use std::process::Command;

use crate::{
    component, gate,
    workspace::{Workspace, run},
};

/// Builds the component and the program.
///
/// # Errors
///
/// When either does not build, or the component breaks a rule.
pub(crate) fn build(workspace: &Workspace) -> Result<()> {
    component::write(workspace)?;
    gate::check(workspace)?;
    // The whole workspace, as for the tests: with the features of one package cargo would compile
    // the wasm compiler twice.
    run(&mut workspace.cargo(&["build", "--locked", "--release", "--workspace", "--bin=lcm"]))?;
    let program = workspace.dist()?.join("lcm");
    // The file of a running program is not writable, so the old file is removed first.
    if program.exists() {
        std::fs::remove_file(&program).context("removing the old dist/lcm")?;
    }
    std::fs::copy(workspace.target.join("release/lcm"), &program).context("copying dist/lcm")?;
    component::write_checksums(workspace)?;
    println!("dist/lcm is there");
    Ok(())
}

/// Hosts with a `package.sh`, which puts a package into `dist/`.
const PACKAGED: [&str; 2] = ["node", "python"];

/// Builds the packages that other languages install, from a built component.
///
/// # Errors
///
/// When a package cannot be built.
pub(crate) fn packages(workspace: &Workspace) -> Result<()> {
    for host in PACKAGED {
        let folder = workspace.root.join("host-examples").join(host);
        run(Command::new("bash").arg("package.sh").current_dir(folder))?;
    }
    Ok(())
}

/// Builds every released file.
///
/// # Errors
///
/// Errors of [`build`] and [`packages`].
pub(crate) fn everything(workspace: &Workspace) -> Result<()> {
    build(workspace)?;
    packages(workspace)
}

/// Builds, then runs the demonstration.
///
/// # Errors
///
/// Errors of [`build`], or when the demonstration fails.
pub(crate) fn demo(workspace: &Workspace) -> Result<()> {
    build(workspace)?;
    run(Command::new(workspace.dist()?.join("lcm")).arg("demo").current_dir(&workspace.root))
}

/// Builds the component, then measures it.
///
/// # Errors
///
/// Errors of [`build`], or when a figure exceeds its bound.
pub(crate) fn bench(workspace: &Workspace, options: &[&str]) -> Result<()> {
    component::write(workspace)?;
    run(&mut workspace.cargo(&["build", "--locked", "--release", "--package=lcm-bench"]))?;
    let mut program = Command::new(workspace.target.join("release/lcm-bench"));
    run(program.arg("run").args(options).current_dir(&workspace.root))
}
