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
mod ingest_many;
mod life;
mod maintain;
mod money;
mod portable;
mod prompts;
mod recall;
mod resummarize;

use clap::CommandFactory as _;
use lcm_host::{Code, Error, Result};

use crate::{
    End,
    arguments::{Arguments, Command},
    output,
};

/// Names of planned commands, which this version refuses as `unsupported`.
pub(crate) const NOT_BUILT: [&str; 12] = [
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
        Command::Resummarize(options) => resummarize::run(global, options),
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
        Command::Live(options) => life::live(global, options),
        Command::Reset(options) => life::reset(global, options),
        Command::New(options) => life::new_session(global, options),
        Command::Archive(options) => life::archive(global, options),
        Command::Delete(options) => life::delete(global, options),
        Command::Focus(options) => life::focus(global, options),
        Command::Rewind(options) => life::rewind(global, options),
        Command::Calibrate(options) => life::calibrate(global, options),
        Command::Usage(options) => money::usage(global, options),
        Command::Advise(options) => money::advise(global, options),
        Command::Config => configuration::run(global),
        Command::Prompts(command) => prompts::run(global, command),
        Command::Export(options) => portable::export(global, options),
        Command::Import(options) => portable::import(global, options),
        Command::Completions { shell } => print_completions(*shell),
        Command::Man => print_manual(),
    }
}

fn print_completions(shell: clap_complete::Shell) -> Result<End> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "lcm", &mut script);
    print_bytes(script)
}

/// Prints one page with all commands and their options.
fn print_manual() -> Result<End> {
    let mut page = Vec::new();
    let mut command = Arguments::command();
    command.build();
    let unwritten = |error: std::io::Error| Error::new(Code::Internal, error.to_string());
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(unwritten)?;
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        let part = part.clone().display_name(format!("lcm {}", part.get_name()));
        clap_mangen::Man::new(part).render(&mut page).map_err(unwritten)?;
    }
    print_bytes(page)
}

fn print_bytes(bytes: Vec<u8>) -> Result<End> {
    let text = String::from_utf8(bytes)
        .map_err(|error| Error::new(Code::Internal, format!("the text must be UTF-8: {error}")))?;
    output::text(&text)?;
    Ok(End::Done)
}
