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

/// Id of the only conversation of a store.
const CONVERSATION: &str = "bench";

/// 2026-01-01T00:00:00Z: the time of every call, in milliseconds, so that a run can be repeated.
/// The messages of a workload have later times, so the conversation's time follows the messages.
const NOW_MS: u64 = 1_767_225_600_000;

/// Numbers of stored and skipped messages of a batch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Taken {
    ingested: u64,
    skipped: u64,
}

/// An assembled context.
struct Assembled {
    messages_json: String,
    tokens: u32,
}

/// Tokens of the stored context, and the threshold above which it should be compacted.
struct Load {
    tokens: u32,
    threshold: u32,
}

/// The calls of an engine that a measurement needs, on one store and [`CONVERSATION`].
trait Engine {
    /// Returns the version of the engine.
    fn version(&mut self) -> Result<String>;
    /// Configures this and every later instance; returns the report as JSON.
    fn configure(&mut self, config_json: &str) -> Result<String>;
    /// Stores new messages in one call: the first of `messages`, as many as fit one call.
    fn append(&mut self, messages: &[String]) -> Result<Taken>;
    /// Uploads a piece of a message that is too large for a call; returns the next offset.
    fn stage(&mut self, piece: &UploadChunk<'_>) -> Result<u64>;
    /// Returns the tokens of the stored context and its threshold for a budget.
    fn load(&mut self, budget: u32) -> Result<Load>;
    /// Compacts until nothing is due, or until `passes_max` passes were made.
    fn compact(&mut self, compaction: &Compaction) -> Result<Compacted>;
    /// Assembles a context.
    fn assemble(&mut self, budget: u32, prompt: Option<&str>) -> Result<Assembled>;
    /// Searches; query and answer are JSON.
    fn grep(&mut self, query_json: &str) -> Result<String>;
    /// Describes a summary, as JSON.
    fn describe(&mut self, id: &str) -> Result<String>;
    /// Returns one page of the sources of a summary; options and answer are JSON.
    fn expand(&mut self, id: &str, options_json: &str) -> Result<String>;
    /// Returns one page of a list, as JSON; `kind` names the list.
    fn listing(&mut self, kind: &str, cursor: Option<&str>) -> Result<String>;
    /// Returns counts and sizes of the conversation, as JSON.
    fn status(&mut self) -> Result<String>;
    /// Returns one page of an integrity check, as JSON.
    fn check(&mut self, cursor: Option<&str>) -> Result<String>;
    /// Drops the instance of the engine; the next call creates a new instance.
    fn begin_anew(&mut self) -> Result<()>;
    /// Returns the bytes of the store on disk; `None`: the store is in memory.
    fn bytes_on_disk(&self) -> Option<u64>;
    /// Returns the peak of an instance's linear memory in bytes; `None`: the engine runs without a
    /// component.
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
/// The component cannot be loaded, or input or output fails. A failed request is no error of this
/// function: its answer has `ok: false`.
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
