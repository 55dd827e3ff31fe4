//! `run`: engines side by side on the same conversations.
//!
//! In: engines and sizes. Out: a table of medians with their bounds, and a failure when a ratio of
//! the first engine, the component, exceeds its bound. `figures` has the bounds, `journey` the
//! measurement, `table` the output.

mod figures;
mod journey;
mod numbers;
mod process;
mod queries;
mod table;
mod workload;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{
    arguments::Run,
    failure::{Result, context, failure},
};
use journey::Measured;
use process::{Contender, Process};
use workload::Workload;

/// Queries of each kind.
const QUERIES: usize = 200;
/// Sizes and queries of a quick run.
const QUICK_SIZES: [u32; 2] = [1_000, 10_000];
const QUICK_QUERIES: usize = 40;

/// The figures of one engine on one conversation, of all runs; the table shows their medians.
#[derive(Debug, Default)]
struct Column {
    values: BTreeMap<&'static str, Vec<f64>>,
    last: Measured,
}

impl Column {
    fn add(&mut self, measured: Measured) {
        for (name, value) in &measured.figures {
            self.values.entry(name).or_default().push(*value);
        }
        let bytes = measured.bytes.or_else(|| self.last.bytes.take());
        self.last.missing.extend(measured.missing);
        self.last.bytes = bytes;
    }

    fn value(&self, name: &str) -> Option<f64> {
        numbers::median(self.values.get(name)?)
    }
}

/// All engines on one conversation.
struct Section {
    title: String,
    /// Number of messages of a generated conversation; `None`: the conversation is from a file.
    size: Option<u32>,
    columns: Vec<Column>,
}

/// Measures all engines and prints the table.
///
/// # Errors
///
/// A bound is exceeded, an engine fails, or a file cannot be written.
pub(crate) fn run(options: &Run) -> Result<()> {
    let contenders = contenders(options)?;
    let scratch = Scratch::new(options.dir.as_deref())?;
    for contender in &contenders {
        warm_up(contender, &scratch.0)?;
    }
    let mut sizes: Vec<u32> =
        if options.quick { QUICK_SIZES.to_vec() } else { options.sizes.clone() };
    sizes.sort_unstable();
    sizes.dedup();
    let queries = if options.quick { QUICK_QUERIES } else { QUERIES };
    let mut sections = Vec::new();
    for messages in sizes {
        let workload = Workload::new(options.seed, messages, queries);
        let columns = measure_all(&contenders, &workload, options.runs, &scratch.0)?;
        let title = format!("{} messages", table::shown(messages.into()));
        sections.push(Section { title, size: Some(messages), columns });
    }
    for file in &options.workload {
        let workload = Workload::read(file, queries)?;
        let columns = measure_all(&contenders, &workload, options.runs, &scratch.0)?;
        let title = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sections.push(Section { title, size: None, columns });
    }
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
    let table = table::Table::new(&names, &sections);
    print!("{}", table.text());
    if let Some(out) = &options.out {
        let named = format!("writing `{}`", out.display());
        fs::write(out, table.json().to_string()).map_err(context(named))?;
    }
    table.verdict(options.strict)
}

/// Returns the engines to measure: the component first, then the engines of the options.
fn contenders(options: &Run) -> Result<Vec<Contender>> {
    let program = std::env::current_exe().map_err(context("finding this program"))?;
    let program = program.display().to_string();
    let own = |name: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let command = [program.clone(), "engine".to_owned()].into_iter().chain(arguments).collect();
        Contender { name: name.to_owned(), command }
    };
    let component = options.component.display().to_string();
    let mut contenders = vec![own("lcm", &["--component", &component])];
    if options.native {
        contenders.push(own("native", &["--native"]));
    }
    for text in &options.engine {
        contenders.push(Contender::parse(text)?);
    }
    Ok(contenders)
}

/// A folder of this run, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(dir: Option<&Path>) -> Result<Self> {
        let dir = dir.map_or_else(std::env::temp_dir, Path::to_owned);
        let dir = dir.join(format!("lcm-bench-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(context(format!("making `{}`", dir.display())))?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls `work` with the path of a new store. The folder of the store is removed afterwards.
fn with_store<T>(scratch: &Path, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let dir = scratch.join("store");
    let named = || format!("making `{}`", dir.display());
    fs::create_dir_all(&dir).map_err(context(named()))?;
    let done = work(&dir.join("bench.db"));
    let removed = fs::remove_dir_all(&dir).map_err(context(named()));
    done.and_then(|done| removed.map(|()| done))
}

/// Starts an engine once before the measurements. This call compiles the component, and fails early
/// if the engine does not work.
fn warm_up(contender: &Contender, scratch: &Path) -> Result<()> {
    with_store(scratch, |db| {
        let mut engine = Process::start(contender)?;
        let answer = engine.ask(&json!({"op": "open", "db": db}))?;
        let name = answer.get("engine").and_then(serde_json::Value::as_str).unwrap_or("unnamed");
        let version = answer.get("version").and_then(serde_json::Value::as_str);
        let version = version.unwrap_or("without a version");
        eprintln!("{}: engine {name}, {version}", contender.name);
        engine.close()
    })
}

/// Measures all engines `runs` times, in turn: one run of each engine, then the next run.
fn measure_all(
    contenders: &[Contender],
    workload: &Workload,
    runs: u32,
    scratch: &Path,
) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = contenders.iter().map(|_| Column::default()).collect();
    for run in 1..=runs {
        for (contender, column) in contenders.iter().zip(&mut columns) {
            let name = &contender.name;
            let mut say = |step: &str| {
                eprintln!("{name}, {} messages, run {run}: {step}", workload.lines.len());
            };
            // Searches run only once: there are up to hundreds of each kind.
            let search = run == 1;
            let measured = with_store(scratch, |db| {
                journey::measure(contender, workload, db, search, &mut say)
            });
            match measured {
                Ok(measured) => column.add(measured),
                Err(error) => return failure(format!("{name}: {error}")),
            }
        }
    }
    Ok(columns)
}
