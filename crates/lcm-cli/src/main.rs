//! The program `lcm`, built on the crate `lcm-host`.
//!
//! In: a command line. Out: text for people or one JSON document on standard output, an error as
//! one line on standard error, and an exit code of `docs/cli.md`. The component does the work; this
//! crate reads arguments and files, and prints results.

mod arguments;
mod commands;
mod config;
mod input;
mod interrupt;
mod model;
mod output;
mod progress;
mod session;
mod tree;

use std::process::ExitCode;

use clap::{Parser as _, error::ErrorKind};
use lcm_host::{Code, Error};

use crate::arguments::Arguments;

/// How a command ended that returned no error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// The command is complete.
    Done,
    /// `check` or `demo` found a fault.
    Findings,
    /// The model failed, but the conversation still fits its budget.
    ModelUnavailable,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    match interrupt::install().and_then(|()| commands::run(&arguments)) {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Findings) => ExitCode::from(1),
        Ok(End::ModelUnavailable) => ExitCode::from(6),
        Err(error) => fail(&error),
    }
}

/// Prints the requested help or version, or one line about a wrong command line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // If the reader of standard output has closed the pipe, the program still succeeds.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return fail(&Error::new(Code::InvalidInput, "a command is required, see `lcm --help`"));
    }
    let text = error.to_string();
    // The first paragraph of clap's text has the error; usage and hints follow.
    let first = text.split("\n\n").next().unwrap_or(&text);
    let message = first.strip_prefix("error: ").unwrap_or(first);
    fail(&Error::new(Code::InvalidInput, message))
}

fn fail(error: &Error) -> ExitCode {
    eprintln!("lcm: {error}");
    ExitCode::from(exit_code(error.code))
}

const fn exit_code(code: Code) -> u8 {
    match code {
        Code::Internal | Code::WouldBlock => 1,
        Code::InvalidInput | Code::LimitExceeded | Code::Unsupported => 2,
        Code::NotFound => 3,
        Code::Conflict | Code::Denied | Code::Exists => 4,
        Code::Corrupt | Code::StoreUnavailable => 5,
        Code::CompletionFailed => 6,
        Code::Cancelled => 130,
    }
}
