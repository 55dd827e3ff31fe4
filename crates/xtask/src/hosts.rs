//! `test`: every test, natively and in every host.
//!
//! In: the built component. Out: a failure, or a closing line per host. Each host sets itself up
//! in its own `test.sh`, whose last line is `N passed, N failed`.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    build, host_table,
    workspace::{Workspace, run},
};

/// Hosts with their own test script.
const SCRIPTED: [&str; 4] = ["node", "python", "edge-worker", "kit"];

/// Builds, then runs every test.
///
/// # Errors
///
/// When a test fails, or the hosts do not agree.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    build::build(workspace)?;
    host_table::forget(workspace)?;
    run(&mut workspace.cargo(&["test", "--locked", "--release", "--workspace"]))?;
    let mut closing_lines = Vec::new();
    for host in SCRIPTED {
        closing_lines.push(format!("{host}: {}", test_host(workspace, host)?));
    }
    host_table::check(workspace)?;
    println!("every test passed\n{}", closing_lines.join("\n"));
    Ok(())
}

/// Runs the script of a host, prints its output, and returns its last line.
fn test_host(workspace: &Workspace, host: &str) -> Result<String> {
    let folder = workspace.root.join("host-examples").join(host);
    println!("+ host-examples/{host}/test.sh");
    let mut script = Command::new("bash");
    script.arg("test.sh").current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut script = script.spawn().with_context(|| format!("starting the tests of {host}"))?;
    let output = script.stdout.take().context("the output of the script")?;
    let mut closing_line = String::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if !line.trim().is_empty() {
            closing_line = line.trim().to_owned();
        }
    }
    let status = script.wait()?;
    ensure!(status.success(), "the tests of {host} ended with {status}");
    check_closing_line(&closing_line).with_context(|| format!("the tests of {host}"))?;
    Ok(closing_line)
}

/// Checks that a line counts at least one passed test and no failed test.
fn check_closing_line(line: &str) -> Result<()> {
    let counts = line.strip_suffix(" failed").and_then(|rest| rest.split_once(" passed, "));
    let Some((passed, failed)) = counts else {
        bail!("the last line must be `N passed, N failed`, got `{line}`");
    };
    let (passed, failed): (u32, u32) = (passed.parse()?, failed.parse()?);
    ensure!(failed == 0, "{failed} failed");
    ensure!(passed > 0, "no test ran");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_closing_line;

    #[test]
    fn a_host_passes_only_with_tests_and_without_failures() {
        assert!(check_closing_line("12 passed, 0 failed").is_ok());
        for line in ["", "ok", "12 passed", "0 passed, 0 failed", "12 passed, 1 failed"] {
            assert!(check_closing_line(line).is_err(), "{line}");
        }
    }
}
