#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Hostile queries get an answer or a clear error in a short time.
//!
//! A run without options counts the reads and bytes of the store, so that every run has the same
//! result. With `LCM_MESSAGES=100000` the conversation has that many messages, and every query must
//! be answered in under 100 ms, by the component if `dist/lcm.wasm` was built:
//!
//! `LCM_MESSAGES=100000 cargo test --release -p lcm-tests --test hostile -- --nocapture`

#[path = "hostile/families.rs"]
mod families;
#[path = "hostile/workload.rs"]
mod workload;

use std::{
    path::Path,
    sync::{Arc, LazyLock},
    time::Instant,
};

use lcm_core::Engine;
use lcm_host::{
    Component, Lcm, LoadOptions,
    completion::Offline,
    store::{KeyValueStore as _, Memory, Put},
};
use lcm_testing::ModelStore;
use workload::{CONVERSATION, NOW_MS};

/// Number of searched messages without `LCM_MESSAGES`.
const MESSAGES: u64 = 6_000;
/// Number of messages of the conversation with large payloads. The payloads are larger than one
/// query may read.
const MESSAGES_WITH_FILES: u64 = 2_000;
/// Largest time of a query, in milliseconds.
const ANSWER_MS_MAX: f64 = 100.0;
/// Number of repetitions of a query when time is measured; the fastest counts.
const ROUNDS: usize = 3;
/// Largest numbers of bytes and reads of one query in the short conversation: about as much as to
/// read all of it once.
const BYTES_READ_MAX: u64 = 12 << 20;
const READS_MAX: u32 = 64;

const MODES: [&str; 3] = ["auto", "full-text", "regex"];
/// Members of a query that choose its scope. The last has a vector near to those of many messages.
const SCOPES: [&str; 4] = [
    r#""scope":"messages""#,
    r#""scope":"summaries""#,
    r#""scope":"both","neighbours":3"#,
    r#""scope":"both","vector":[3,1,4,1,5,9,2,6,5,3,5,8,9,7,9,3]"#,
];
const FILES: [&str; 1] = [r#""scope":"files""#];
/// Dimensions of this vector.
const DIMENSIONS: u64 = 16;

/// The searched engine with its store.
enum Searched {
    Native(Box<(Engine, ModelStore)>),
    Component(Lcm),
}

/// The result of a query.
struct Outcome {
    /// The numbers of hits and notes, or the error.
    what: String,
    ms: f64,
    reads: u32,
    bytes: u64,
}

impl Searched {
    fn ask(&mut self, query: &str) -> Outcome {
        let begin = spent_ms();
        let (answer, reads, bytes) = match self {
            Self::Native(native) => {
                let (engine, store) = native.as_mut();
                store.begin_call();
                let answer = engine.grep(store, CONVERSATION, query, None, NOW_MS);
                let counts = store.counts();
                (
                    answer.map_err(|error| (format!("{:?}", error.code), error.message.clone())),
                    counts.reads(),
                    counts.bytes_read,
                )
            }
            Self::Component(lcm) => {
                let answer = lcm.grep(CONVERSATION, query, None, NOW_MS);
                (answer.map_err(|error| (format!("{:?}", error.code), error.message.clone())), 0, 0)
            }
        };
        let ms = spent_ms() - begin;
        let what = match answer {
            Ok(answer) => {
                let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
                let notes: Vec<&str> =
                    answer["notes"].as_array().unwrap().iter().filter_map(|n| n.as_str()).collect();
                format!("{} {}", answer["total"], notes.join(" "))
            }
            Err((code, message)) => {
                let expected = ["InvalidInput", "LimitExceeded"].contains(&code.as_str());
                assert!(expected, "{code}: {message}");
                assert!(!message.is_empty() && message.len() < 500 && !message.contains('\n'));
                code
            }
        };
        Outcome { what, ms, reads, bytes }
    }
}

/// Returns the processor time of this thread in milliseconds, so that other work of the machine
/// does not count; if it is unknown, the time of the clock. The engine itself waits for nothing.
fn spent_ms() -> f64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = spent.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    spent.map_or_else(|| BEGIN.elapsed().as_secs_f64() * 1_000.0, |ns| ns / 1_000_000.0)
}

/// Returns the component with a copy of a store; `None`: the component is not built.
fn component(store: &ModelStore) -> Option<Lcm> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("dist/lcm.wasm");
    let component = Component::load(&std::fs::read(path).ok()?, &LoadOptions::default()).unwrap();
    let mut memory = Memory::new();
    let put =
        |(key, value): (&String, &Vec<u8>)| Put { key: key.clone(), value: Some(value.clone()) };
    let puts: Vec<Put> = store.entries().iter().map(put).collect();
    memory.commit(&[], &puts).unwrap();
    let offline = Arc::new(Offline::new(&component));
    Some(Lcm::new(&component, Box::new(memory), offline))
}

#[test]
fn every_query_is_answered_or_refused_soon() {
    let wanted = std::env::var("LCM_MESSAGES").ok().map(|count| count.parse::<u64>().unwrap());
    let (mut engine, mut store) = workload::stored(wanted.unwrap_or(MESSAGES), false);
    workload::attach(&mut engine, &mut store, DIMENSIONS);
    sweep((engine, store), &SCOPES, wanted.is_some());
}

#[test]
fn every_query_of_files_is_answered_or_refused_soon() {
    let is_timed = std::env::var("LCM_MESSAGES").is_ok();
    sweep(workload::stored(MESSAGES_WITH_FILES, true), &FILES, is_timed);
}

/// Makes the queries of every family in every mode, and fails with those that exceed a bound.
fn sweep((engine, store): (Engine, ModelStore), scopes: &[&str], is_timed: bool) {
    let built = if is_timed { component(&store) } else { None };
    let native = Searched::Native(Box::new((engine, store)));
    println!("{}", if built.is_some() { "component" } else { "native" });
    let mut searched = built.map_or(native, Searched::Component);
    let only = std::env::var("LCM_FAMILY").ok();
    let (mut findings, mut asked) = (Vec::new(), 0);
    for family in families::all() {
        if only.as_ref().is_some_and(|only| !family.name.contains(only.as_str())) {
            continue;
        }
        let mut row = format!("{:34}", family.name);
        for mode in MODES {
            for scope in scopes {
                let query = format!(r#"{{"pattern":"{}","mode":"{mode}",{scope}}}"#, family.json);
                let rounds = if is_timed { ROUNDS } else { 1 };
                let mut outcomes: Vec<Outcome> =
                    (0..rounds).map(|_| searched.ask(&query)).collect();
                outcomes.sort_by(|one, other| one.ms.total_cmp(&other.ms));
                let fastest = &outcomes[0];
                let name = format!("{}, {mode}, {scope}", family.name);
                if is_timed {
                    row.push_str(&format!(" {:>6.0} ms {:22}", fastest.ms, fastest.what));
                    if fastest.ms >= ANSWER_MS_MAX {
                        findings.push(format!("{name}: {:.0} ms, {}", fastest.ms, fastest.what));
                    }
                } else {
                    let (reads, kib) = (fastest.reads, fastest.bytes >> 10);
                    row.push_str(&format!(" {reads:>3} {kib:>5} KiB {:22}", fastest.what));
                    if reads > READS_MAX || fastest.bytes > BYTES_READ_MAX {
                        findings.push(format!("{name}: {reads} reads, {kib} KiB"));
                    }
                }
                asked += 1;
            }
        }
        println!("{}", row.trim_end());
    }
    println!("{asked} queries");
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn a_normal_query_loses_nothing_to_the_bounds() {
    let (engine, store) = workload::stored(MESSAGES, false);
    let mut searched = Searched::Native(Box::new((engine, store)));
    for (pattern, mode) in [
        ("what was the error in the test data?", "auto"),
        (r"\\berror\\w* (in|of) \\w+", "regex"),
        (r"[0-9]{2}\\.rs", "regex"),
        ("src/12.rs", "auto"),
    ] {
        let query = format!(r#"{{"pattern":"{pattern}","mode":"{mode}","scope":"messages"}}"#);
        let what = searched.ask(&query).what;
        assert!(!what.contains("limited") && !what.starts_with("0 "), "{pattern}: {what}");
    }
}
