//! Runs the commands, one module for each group.
//!
//! In: the parsed command line. Out: what a command prints, and how it ended.

mod admin;
mod ask;
mod assemble;
mod compact;
mod configuration;
mod demo;
mod grant;
mod grep;
mod ingest;
mod life;
mod maintain;
mod money;
mod portable;
mod prompts;
mod recall;

use std::ffi::OsString;

use lcm_host::{Code, Error, Result};

use crate::{
    End,
    arguments::{Arguments, Command},
};

/// Names of planned commands, which this version refuses as `unsupported`.
const NOT_BUILT: [&str; 12] = [
    "backup",
    "dissolve",
    "erase",
    "fork",
    "mcp",
    "proxy",
    "prune",
    "repair",
    "replay",
    "rewrite",
    "transplant",
    "tui",
];

/// Runs the command that the command line names.
pub(crate) fn run(arguments: &Arguments) -> Result<End> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Demo => demo::run(global),
        Command::Ingest(options) => ingest::run(global, options),
        Command::Compact(options) => compact::run(global, options),
        Command::Maintain(options) => maintain::run(global, options),
        Command::Assemble(options) => assemble::run(global, options),
        Command::Grep(options) => grep::run(global, options),
        Command::Ask(options) => ask::run(global, options),
        Command::Grant(command) => grant::run(global, command),
        Command::Describe(options) => recall::describe(global, options),
        Command::Expand(options) => recall::expand(global, options),
        Command::Messages(options) => recall::messages(global, options),
        Command::Summaries(options) => recall::summaries(global, options),
        Command::Conversations(options) => admin::conversations(global, options),
        Command::Status => admin::status(global),
        Command::Check => admin::check(global),
        Command::Digest(options) => admin::digest(global, options),
        Command::Family(options) => life::family(global, options),
        Command::Reset(options) => life::reset(global, options),
        Command::New(options) => life::new_session(global, options),
        Command::Archive(options) => life::archive(global, options),
        Command::Delete(options) => life::delete(global, options),
        Command::Focus(options) => life::focus(global, options),
        Command::Calibrate(options) => life::calibrate(global, options),
        Command::Usage(options) => money::usage(global, options),
        Command::Advise(options) => money::advise(global, options),
        Command::Config => configuration::run(global),
        Command::Prompts(command) => prompts::run(global, command),
        Command::Export(options) => portable::export(global, options),
        Command::Import(options) => portable::import(global, options),
        Command::Other(words) => other(words),
    }
}

fn other(words: &[OsString]) -> Result<End> {
    let name = words.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    if NOT_BUILT.contains(&name.as_ref()) {
        let message = format!("this version has no command `{name}`, see `lcm --help`");
        return Err(Error::new(Code::Unsupported, message));
    }
    Err(Error::new(Code::InvalidInput, format!("unknown command `{name}`, see `lcm --help`")))
}
