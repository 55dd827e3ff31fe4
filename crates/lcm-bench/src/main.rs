//! The benchmark of `lcm`: a program that makes workloads, serves an engine over a protocol, and
//! compares engines that implement the protocol.
//!
//! In: a command line. Out: workload files, answers on standard output, or a table of figures and
//! exit code 0, 1 for a missed bound or a failure, or 2 for a wrong command line. `run::figures`
//! has the bounds.

mod arguments;
mod engine;
mod failure;
mod generate;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Verb};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.verb {
        Verb::Generate(options) => generate::write(options.seed, options.messages, &options.out),
        Verb::Engine(options) => engine::run(options),
        Verb::Run(options) => run::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lcm-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
