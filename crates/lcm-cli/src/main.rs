//! The program `lcm`, over `lcm-host`.
//!
//! In: a command line. Out: text for people or one JSON document on standard output, errors as one
//! line on standard error, and the documented exit codes. What the commands mean is decided by the
//! component; this crate reads arguments and files, and prints.

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

/// How a command ended when it did not fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// It did what was asked.
    Done,
    /// `check` has findings.
    Findings,
    /// The model failed; what was asked is not needed yet.
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

/// Prints help where it was asked for, and one line where the command line is wrong.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version go to standard output; a closed pipe there is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return fail(&Error::new(Code::InvalidInput, "no command, see `lcm --help`"));
    }
    let text = error.to_string();
    // The first paragraph says what is wrong; usage and hints follow after an empty line.
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
