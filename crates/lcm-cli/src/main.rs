//! The program `lcm`, over `lcm-host`.
//!
//! In: a command line. Out: text for people or one JSON document on standard output, errors as one
//! line on standard error, and the documented exit codes. The component decides what a command
//! does; this crate reads arguments and files, and prints.

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

/// Outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// The command is complete.
    Done,
    /// `check` has findings.
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

/// Prints the requested help, or one line about a wrong command line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe of standard output is not a failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return fail(&Error::new(Code::InvalidInput, "a command is required, see `lcm --help`"));
    }
    let text = error.to_string();
    // The first paragraph has the error; usage and hints follow after an empty line.
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
