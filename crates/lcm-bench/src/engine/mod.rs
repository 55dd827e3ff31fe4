//! `engine`: an engine of this project behind the protocol `lcm-bench/1`.
//!
//! In: requests, one JSON object per line on standard input. Out: answers, one per line on standard
//! output. Times cover only the calls of the engine. Measurements use no preparation and no cache,
//! so an operation costs as much as in a host.

mod compact;
mod component;
mod memory;
mod native;
mod read;
mod serve;
mod summarizer;
#[cfg(test)]
mod tests;

use std::{
    io::{BufRead as _, Write as _},
    path::Path,
    time::Instant,
};

use lcm_host::store::{KeyValueStore, Memory, Sqlite};
use lcm_text::types::api::UploadChunk;

use crate::{
    arguments::{Engine as Arguments, Store},
    failure::{Result, context},
};

use compact::{Compacted, Compaction};

/// The conversation that everything happens in.
const CONVERSATION: &str = "bench";

/// 2026-01-01T00:00:00Z: the time of every call, in milliseconds, so that a run can be repeated.
/// The messages of a workload are newer and move the time of the conversation on.
const NOW_MS: u64 = 1_767_225_600_000;

/// What became of a batch of messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Taken {
    ingested: u64,
    skipped: u64,
}

/// A context.
struct Assembled {
    messages_json: String,
    tokens: u32,
}

/// How much the stored context has, and what it should not exceed.
struct Load {
    tokens: u32,
    threshold: u32,
}

/// The calls of an engine that a measurement needs, on one store and [`CONVERSATION`].
trait Engine {
    /// Version of the engine.
    fn version(&mut self) -> Result<String>;
    /// Configures this and every later instance; returns the report as JSON.
    fn configure(&mut self, config_json: &str) -> Result<String>;
    /// Stores new messages in one call, as many as fit it.
    fn append(&mut self, messages: &[String]) -> Result<Taken>;
    /// Hands over a piece of a message too large for a call; returns the next offset.
    fn stage(&mut self, piece: &UploadChunk<'_>) -> Result<u64>;
    /// How things stand for a budget.
    fn load(&mut self, budget: u32) -> Result<Load>;
    /// Compacts until nothing is due, or the passes are used up.
    fn compact(&mut self, compaction: &Compaction) -> Result<Compacted>;
    /// Assembles a context.
    fn assemble(&mut self, budget: u32, prompt: Option<&str>) -> Result<Assembled>;
    /// Searches; query and answer are JSON.
    fn grep(&mut self, query_json: &str) -> Result<String>;
    /// Describes a summary, as JSON.
    fn describe(&mut self, id: &str) -> Result<String>;
    /// One page of what a summary stands for; options and answer are JSON.
    fn expand(&mut self, id: &str, options_json: &str) -> Result<String>;
    /// One page of a list, as JSON.
    fn listing(&mut self, kind: &str, cursor: Option<&str>) -> Result<String>;
    /// Counts and sizes, as JSON.
    fn status(&mut self) -> Result<String>;
    /// One page of the checks, as JSON.
    fn check(&mut self, cursor: Option<&str>) -> Result<String>;
    /// Drops the instance; the next call makes a new one.
    fn begin_anew(&mut self) -> Result<()>;
    /// Bytes of the store on disk; `None`: it is not on a disk.
    fn bytes_on_disk(&self) -> Option<u64>;
    /// The most linear memory an instance has had, in bytes; `None`: it has none.
    fn linear_memory_bytes(&self) -> Option<u64>;
}

/// Milliseconds since `begin`.
fn ms(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1_000.0
}

/// Serves requests until `close` or the end of the input.
///
/// # Errors
///
/// The component cannot be loaded, or input or output fails. A request that fails is answered.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let make = maker(arguments)?;
    let mut served = serve::Served::new(make);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(context("reading a request"))?;
        if line.trim().is_empty() {
            continue;
        }
        let (answer, closed) = served.answer(&line);
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(context("answering"))?;
        if closed {
            break;
        }
    }
    Ok(())
}

/// Makes an engine over the store at a path.
type Maker = Box<dyn Fn(&Path) -> Result<Box<dyn Engine>>>;

fn maker(arguments: &Arguments) -> Result<Maker> {
    let kind = arguments.store;
    if arguments.native {
        return Ok(Box::new(move |db| Ok(Box::new(native::Native::new(store(kind, db)?)))));
    }
    let loaded = component::load(&arguments.component)?;
    Ok(Box::new(move |db| Ok(Box::new(component::OfComponent::new(&loaded, store(kind, db)?)))))
}

fn store(kind: Store, db: &Path) -> Result<Box<dyn KeyValueStore>> {
    Ok(match kind {
        Store::Sqlite => {
            Box::new(Sqlite::open(db).map_err(context(format!("opening `{}`", db.display())))?)
        }
        Store::Memory => Box::new(Memory::new()),
    })
}
