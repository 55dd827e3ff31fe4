//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Makes workloads, serves an engine, and measures engines.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write a made-up conversation, FILE.jsonl, with FILE.meta.json and FILE.queries.json
    Generate(Generate),
    /// Serve an engine over the protocol on standard input and output
    Engine(Engine),
    /// Measure engines side by side, on the same input
    Run(Run),
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Number of messages
    #[arg(long, default_value_t = 1_000)]
    pub(crate) messages: u32,
    /// The same seed gives the same bytes
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u32,
    /// File of the messages
    #[arg(long)]
    pub(crate) out: PathBuf,
}

/// Where an engine stores.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Store {
    /// In a file, with durable commits
    Sqlite,
    /// In memory only
    Memory,
}

/// Arguments of `engine`.
#[derive(Debug, Args)]
pub(crate) struct Engine {
    /// Run the engine without a component
    #[arg(long)]
    pub(crate) native: bool,
    /// Where it stores
    #[arg(long, value_enum, default_value_t = Store::Sqlite)]
    pub(crate) store: Store,
    /// The component
    #[arg(long, default_value = "dist/lcm.wasm")]
    pub(crate) component: PathBuf,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Numbers of messages; the absolute figures are meant for the largest default
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    pub(crate) sizes: Vec<u32>,
    /// How often everything is measured; figures are medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) runs: u32,
    /// A file of messages, measured after the sizes; may be repeated
    #[arg(long)]
    pub(crate) workload: Vec<PathBuf>,
    /// Another engine to run beside, NAME="PROGRAM ARGS"; may be repeated
    #[arg(long)]
    pub(crate) engine: Vec<String>,
    /// Also run the engine without a component
    #[arg(long)]
    pub(crate) native: bool,
    /// Two small sizes and fewer queries, for every change; overrides --sizes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Absolute figures fail the run, too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Seed of the workloads
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u32,
    /// The component
    #[arg(long, default_value = "dist/lcm.wasm")]
    pub(crate) component: PathBuf,
    /// Folder for the stores; they are removed again [default: the folder for temporary files]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Write every figure into this file, as JSON
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
}
