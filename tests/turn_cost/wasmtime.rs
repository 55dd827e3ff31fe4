//! Measures the cost of one more message in wasmtime: `turn_cost STORE CONVERSATION`
//!
//! As `measure` of `node.mjs`: appends lines of the file CONVERSATION that are not stored yet, one
//! by one, and assembles twice after each. Prints the figures as a line of JSON.

use std::{
    error::Error,
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use lcm_host::{
    Clock, Lcm,
    context::Options as AssembleOptions,
    ingestion::{AppendMode, Options as AppendOptions},
    store::{Guard, KeyValueStore, Page, Put, Scan, Sqlite, StoreError},
    types::Dialect,
    work,
};
use serde_json::{Value, json};

const CONVERSATION: &str = "c";
const BUDGET: u32 = 128_000;
const TIMES: usize = 31;

type Done<T> = Result<T, Box<dyn Error>>;

/// Counts and times of a store's calls.
#[derive(Default)]
struct Counts {
    reads: AtomicU32,
    /// Milliseconds of every commit.
    commits_ms: Mutex<Vec<f64>>,
}

/// A store that counts its reads and measures the times of its commits.
struct Counting {
    store: Sqlite,
    counts: Arc<Counts>,
}

impl KeyValueStore for Counting {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.store.get_many(keys)
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.store.scan(scan)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        let begin = Instant::now();
        self.store.commit(guards, puts)?;
        let mut commits = self.counts.commits_ms.lock().unwrap_or_else(PoisonError::into_inner);
        commits.push(begin.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }
}

/// Milliseconds and reads of some calls.
#[derive(Default)]
struct Costs(Vec<(f64, u32)>);

impl Costs {
    fn add<T>(&mut self, reads: &AtomicU32, call: impl FnOnce() -> Done<T>) -> Done<T> {
        reads.store(0, Ordering::Relaxed);
        let begin = Instant::now();
        let found = call()?;
        self.0.push((begin.elapsed().as_secs_f64() * 1e3, reads.load(Ordering::Relaxed)));
        Ok(found)
    }

    fn ms(&self) -> f64 {
        middle(self.0.iter().map(|(ms, _)| *ms).collect())
    }

    fn reads(&self) -> u32 {
        self.0.iter().map(|(_, reads)| *reads).max().unwrap_or(u32::MAX)
    }
}

/// Returns the median.
fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// Assembles after an earlier assembly. Returns the token for the next assembly and the hash of the
/// context.
fn assemble(lcm: &Lcm, previous: Option<String>) -> Done<(String, String)> {
    let options = AssembleOptions { previous, ..AssembleOptions::default() };
    let now = Clock::System.now_ms();
    let context = lcm.assemble(CONVERSATION, BUDGET, Dialect::Anthropic, &options, now)?;
    Ok((context.prefix.token, context.prefix.sha256))
}

fn append(lcm: &Lcm, line: &str) -> Done<()> {
    let options = AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
    let (line, now) = ([line.to_owned()], Clock::System.now_ms());
    lcm.append(CONVERSATION, Dialect::Anthropic, &line, &options, now)?;
    let neutral = work::Options {
        mode: work::Mode::Threshold,
        force: false,
        target: None,
        observed_tokens: None,
        requests_max: 1,
        lease_ms: 0,
        sweep: None,
        extra_json: None,
    };
    lcm.evaluate(CONVERSATION, BUDGET, &neutral, now)?;
    Ok(())
}

fn measure(lcm: &Lcm, counts: &Counts, lines: &[&str]) -> Done<Value> {
    let reads = &counts.reads;
    let status: Value = serde_json::from_str(&lcm.status(Some(CONVERSATION), 0)?)?;
    let stored = status.get("messages").and_then(Value::as_u64).ok_or("no messages")?;
    let (mut token, _) = assemble(lcm, None)?;
    let (mut turns, mut after, mut again) = (Costs::default(), Costs::default(), Costs::default());
    for line in lines.iter().skip(usize::try_from(stored)?).take(TIMES) {
        let (next, sha256) = turns.add(reads, || {
            append(lcm, line)?;
            after.add(reads, || assemble(lcm, Some(token)))
        })?;
        let (same, sha256_again) = again.add(reads, || assemble(lcm, Some(next)))?;
        if sha256 != sha256_again {
            return Err("not the same context".into());
        }
        token = same;
    }
    if turns.0.len() < TIMES {
        return Err("too few messages are left".into());
    }
    let commits = counts.commits_ms.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(json!({
        "turn_ms": turns.ms(),
        "commit_ms": middle(commits),
        "after_ms": after.ms(),
        "again_ms": again.ms(),
        "after_reads": after.reads(),
        "again_reads": again.reads(),
    }))
}

fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, conversation] = arguments.as_slice() else {
        return Err("usage: turn_cost STORE CONVERSATION".into());
    };
    let text = fs::read_to_string(conversation)?;
    let lines: Vec<&str> = text.lines().collect();
    let counts = Arc::new(Counts::default());
    let store = Sqlite::open(Path::new(store))?;
    let counting = Counting { store, counts: Arc::clone(&counts) };
    let wasm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/lcm.wasm");
    let lcm = Lcm::builder().store(counting).open(&fs::read(wasm)?)?;
    println!("{}", measure(&lcm, &counts, &lines)?);
    Ok(())
}
