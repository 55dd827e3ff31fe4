//! Build steps and gates, behind `./build.sh` and `.ci/`.
//!
//! In: one verb on the command line. Out: files below `dist/`, progress on standard output, and
//! exit code 0, or 1 with one line on standard error, or 2 for an unknown verb.
//! Steps with conditions belong here, not in a shell script.

mod build;
mod commits;
mod component;
mod deflate_cost;
mod deny;
mod dependencies;
mod function_moves;
mod function_order;
mod gate;
mod host_table;
mod hosts;
mod optimize;
mod tools;
mod workspace;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use xtask::{interface, structure::report};

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: xtask VERB

  build             dist/lcm.wasm, dist/lcm and the packages of other languages
  demo              build, then the journey of `lcm demo`
  test              build, then every test, natively and in every host
  component         dist/lcm.wasm
  check-component   imports, size and contents of dist/lcm.wasm; `--twice` also builds it again
  check-commits     the subjects of the commits behind .ci/commits-base
  check-dependencies
                    the rules of deny.toml for every dependency
  host-table        the table of docs/hosts.md from the last test run; `--check` only compares
  interface         writes types, tables and pages from schema/; `--check` only compares
  structure         figures of the code: names, imports, layers, hosts; `--details` lists what is
                    behind them, `--root DIR` measures another checkout, `--layers FILE` with its
                    own layers
  doctor            which tools are there
  bench             dist/lcm.wasm, then the measurements of `lcm-bench run`, with its arguments";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["build"] => run(build::everything),
        ["demo"] => run(build::demo),
        ["test"] => run(hosts::test),
        ["component"] => run(component::write),
        ["check-component"] => run(gate::check),
        ["check-component", "--twice"] => run(gate::check_twice),
        ["check-commits"] => run(commits::check),
        ["check-dependencies"] => run(dependencies::check),
        ["host-table"] => run(host_table::rewrite),
        ["host-table", "--check"] => run(host_table::check),
        ["interface"] => run(write_interface),
        ["interface", "--check"] => run(check_interface),
        ["structure", options @ ..] => structure(options),
        ["doctor"] => run(tools::doctor),
        ["bench", options @ ..] => {
            Workspace::locate().and_then(|workspace| build::bench(&workspace, options))
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the figures of a checkout: the folder of `--root`, or this workspace.
fn structure(options: &[&str]) -> Result<()> {
    let (mut root, mut layers, mut details) = (None, None, false);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--details" => details = true,
            "--root" => {
                root = Some(PathBuf::from(words.next().context("`--root` needs a folder")?))
            }
            "--layers" => {
                let file = words.next().context("`--layers` needs a file")?;
                layers = Some(std::fs::read_to_string(file).context("reading the layers")?);
            }
            other => bail!("`structure` must have known options only, got `{other}`"),
        }
    }
    let root = match root {
        Some(root) => root,
        None => Workspace::locate()?.root,
    };
    let options = report::Options { layers: layers.as_deref(), details };
    print!("{}", report::measure(&root, &options)?);
    Ok(())
}

/// Writes what is generated from `schema/`.
fn write_interface(workspace: &Workspace) -> Result<()> {
    for path in interface::write(&workspace.root)? {
        println!("{path}");
    }
    Ok(())
}

/// Fails when a generated file differs from `schema/`.
fn check_interface(workspace: &Workspace) -> Result<()> {
    let stale = interface::find_stale(&workspace.root)?;
    ensure!(
        stale.is_empty(),
        "files differ from schema/: {}; run `xtask interface`",
        stale.join(", ")
    );
    Ok(())
}

fn run(verb: fn(&Workspace) -> Result<()>) -> Result<()> {
    verb(&Workspace::locate()?)
}
