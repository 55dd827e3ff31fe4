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

use std::{path::Path, process::ExitCode};

use clap::{
    Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use lcm_host::{Code, Error};

use crate::arguments::Arguments;

/// The outcome of a command that returned no error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// The command is complete.
    Done,
    /// `check` or `demo` found a fault, or an ingest of folders could not store a conversation.
    Findings,
    /// A model failed, even if the summary was then made without a model; or no model was asked,
    /// because the breaker is open.
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
        Err(error) => fail(&name_store(error)),
    }
}

/// Adds the name of the store to an error about an unknown conversation.
fn name_store(error: Error) -> Error {
    let is_unknown = error.code == Code::NotFound
        && error.message.starts_with("conversation `")
        && error.message.ends_with("does not exist");
    if !is_unknown {
        return error;
    }
    let store = session::opened_store();
    let is_file = store != session::MEMORY && !store.contains("://");
    let missing = is_file && !Path::new(store).exists();
    let rest = if missing { "; there is no such file" } else { "" };
    Error::new(Code::NotFound, format!("{} in the store `{store}`{rest}", error.message))
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
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    {
        if commands::NOT_BUILT.contains(&name.as_str()) {
            let message = format!("this version has no command `{name}`, see `lcm --help`");
            return fail(&Error::new(Code::Unsupported, message));
        }
        let proposal = proposal(error).unwrap_or_else(|| ", see `lcm --help`".to_owned());
        let message = format!("unknown command `{name}`{proposal}");
        return fail(&Error::new(Code::InvalidInput, message));
    }
    let text = error.to_string();
    // The first paragraph of clap's text has the error; usage and hints follow.
    let first = text.split("\n\n").next().unwrap_or(&text);
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let proposal = proposal(error).unwrap_or_default();
    fail(&Error::new(Code::InvalidInput, format!("{message}{proposal}")))
}

/// Returns the similar name that clap found, as the end of a sentence.
fn proposal(error: &clap::Error) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let found = kinds.into_iter().find_map(|kind| error.get(kind))?;
    let name = match found {
        ContextValue::String(name) => name,
        // The last is the most similar.
        ContextValue::Strings(names) => names.last()?,
        _ => return None,
    };
    Some(format!("; did you mean `{name}`?"))
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
