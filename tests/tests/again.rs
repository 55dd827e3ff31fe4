#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Cost of a repeated assembly: of the same context, and after one more message.
//!
//! A long conversation of an agent with tools is stored and assembled in each dialect, before and
//! after compaction. The engine runs natively, and as a component in wasmtime if `dist/lcm.wasm`
//! exists. Reads of the store are counted and bounded; times are printed.
//!
//! `LCM_MESSAGES=100000 cargo test --release -p lcm-tests --test again -- --nocapture` sets the
//! number of messages; the default is a few thousand. `LCM_ONLY` selects one dialect.

use std::{
    env,
    path::Path,
    sync::{Arc, Mutex},
    time::Instant,
};

use lcm_core::{
    Engine, Error, ErrorCode,
    store::{Entry, Guard, Put, Store},
};
use lcm_host::{
    Component, Lcm, LoadOptions,
    completion::Offline,
    context, ingestion,
    store::{self, KeyValueStore, Memory, Page, Scan, StoreError},
    types,
};
use lcm_text::types::{
    api::{
        AppendMode, AppendOptions, ApplyOptions, AssembleOptions, CompactionMode,
        CompactionOptions, Dialect, PlanStatus,
    },
    model::CompletionResult,
};

const BUDGET: u32 = 128_000;
const NOW: u64 = 1_700_000_000_000;
/// Messages of one append.
const BATCH: usize = 100;
/// Default number of messages.
const MESSAGES: usize = 3_000;
/// Number of measurements; the median is printed.
const TIMES: usize = 15;
/// Largest number of reads for an assembly after one appended message.
const READS_MAX: u32 = 3;

/// All dialects of providers, and one of a framework; one writer writes all of these.
const DIALECTS: [(&str, Dialect); 6] = [
    ("lcm", Dialect::Lcm),
    ("anthropic", Dialect::Anthropic),
    ("openai-chat", Dialect::OpenaiChat),
    ("openai-responses", Dialect::OpenaiResponses),
    ("gemini", Dialect::Gemini),
    ("ai-sdk", Dialect::AiSdk),
];

/// A store that several engines share, with the number of its reads.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<(Memory, u32)>>);

impl Shared {
    /// Returns the number of reads since the last call.
    fn reads(&self) -> u32 {
        std::mem::take(&mut self.0.lock().unwrap().1)
    }
}

impl KeyValueStore for Shared {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut inner = self.0.lock().unwrap();
        inner.1 += 1;
        inner.0.get_many(keys)
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        let mut inner = self.0.lock().unwrap();
        inner.1 += 1;
        inner.0.scan(scan)
    }

    fn commit(&mut self, guards: &[store::Guard], puts: &[store::Put]) -> Result<(), StoreError> {
        self.0.lock().unwrap().0.commit(guards, puts)
    }
}

/// The same store behind the trait of the engine.
struct Native(Shared);

fn failed(error: &StoreError) -> Error {
    Error::new(ErrorCode::StoreUnavailable, error.to_string())
}

impl Store for Native {
    fn get_many(&mut self, keys: &[String]) -> lcm_core::Result<Vec<Option<Vec<u8>>>> {
        self.0.get_many(keys).map_err(|error| failed(&error))
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> lcm_core::Result<(Vec<Entry>, bool)> {
        let scan = Scan { start, end, reverse, entries_max, bytes_max };
        let page = KeyValueStore::scan(&mut self.0, &scan).map_err(|error| failed(&error))?;
        let entry = |(key, value)| Entry { key, value };
        Ok((page.entries.into_iter().map(entry).collect(), page.more))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> lcm_core::Result<()> {
        let guard = |of: &Guard| store::Guard { key: of.key.clone(), value: of.value.clone() };
        let put = |of: &Put| store::Put { key: of.key.clone(), value: of.value.clone() };
        let guards: Vec<_> = guards.iter().map(guard).collect();
        let puts: Vec<_> = puts.iter().map(put).collect();
        KeyValueStore::commit(&mut self.0, &guards, &puts).map_err(|error| failed(&error))
    }
}

/// Returns a unique text of about 50 tokens.
fn words(number: usize) -> String {
    let word = |at: usize| ["store", "file", "line", "test", "value", "path"][at % 6];
    let list: Vec<String> =
        (0..24).map(|at| format!("{}{}", word(number + at * 7), number * at % 97)).collect();
    format!("n{number} {}", list.join(" "))
}

/// Returns the message with a number. Of eight messages, one is the user's and three are calls with
/// their results.
fn message(dialect: Dialect, number: usize) -> String {
    let text = words(number);
    let id = format!("toolu_{:020}", number - number % 2);
    let args = format!(r#"{{"path":"src/{number}.rs","text":"{}"}}"#, words(number + 1));
    let quoted = serde_json::to_string(&args).unwrap();
    let list = |role: &str, block: &str| format!(r#"{{"role":"{role}","content":[{block}]}}"#);
    let parts = |role: &str, part: &str| format!(r#"{{"role":"{role}","parts":[{part}]}}"#);
    let role = if number.is_multiple_of(8) { "user" } else { "assistant" };
    match (number % 8, dialect) {
        (0 | 1, Dialect::Gemini) => {
            let role = if role == "user" { role } else { "model" };
            parts(role, &format!(r#"{{"text":"{text}"}}"#))
        }
        (0 | 1, _) => format!(r#"{{"role":"{role}","content":"{text}"}}"#),
        (2 | 4 | 6, Dialect::Lcm | Dialect::Anthropic) => {
            let kind = if dialect == Dialect::Lcm { "tool_call" } else { "tool_use" };
            let rest = format!(r#""name":"edit","input":{args}"#);
            list("assistant", &format!(r#"{{"type":"{kind}","id":"{id}",{rest}}}"#))
        }
        (2 | 4 | 6, Dialect::OpenaiChat) => {
            let called = format!(r#"{{"name":"edit","arguments":{quoted}}}"#);
            let call = format!(r#"{{"id":"{id}","type":"function","function":{called}}}"#);
            format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#)
        }
        (2 | 4 | 6, Dialect::OpenaiResponses) => {
            let called = format!(r#""name":"edit","arguments":{quoted}"#);
            format!(r#"{{"type":"function_call","call_id":"{id}",{called}}}"#)
        }
        (2 | 4 | 6, Dialect::Gemini) => {
            let call = format!(r#"{{"name":"edit","args":{args}}}"#);
            parts("model", &format!(r#"{{"functionCall":{call}}}"#))
        }
        (_, Dialect::Lcm) => {
            let result = format!(r#""call_id":"{id}","output":"{text}""#);
            list("tool", &format!(r#"{{"type":"tool_result",{result}}}"#))
        }
        (_, Dialect::Anthropic) => {
            let result = format!(r#""tool_use_id":"{id}","content":"{text}""#);
            list("user", &format!(r#"{{"type":"tool_result",{result}}}"#))
        }
        (_, Dialect::OpenaiChat) => {
            format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
        }
        (_, Dialect::OpenaiResponses) => {
            let result = format!(r#""call_id":"{id}","output":"{text}""#);
            format!(r#"{{"type":"function_call_output",{result}}}"#)
        }
        (_, Dialect::Gemini) => {
            let result = format!(r#"{{"name":"edit","response":{{"output":"{text}"}}}}"#);
            parts("user", &format!(r#"{{"functionResponse":{result}}}"#))
        }
        (2 | 4 | 6, _) => {
            let rest = format!(r#""toolCallId":"{id}","toolName":"edit","input":{args}"#);
            list("assistant", &format!(r#"{{"type":"tool-call",{rest}}}"#))
        }
        (_, _) => {
            let output = format!(r#"{{"type":"text","value":"{text}"}}"#);
            let rest = format!(r#""toolCallId":"{id}","toolName":"edit","output":{output}"#);
            list("tool", &format!(r#"{{"type":"tool-result",{rest}}}"#))
        }
    }
}

/// The compared parts of an assembly.
#[derive(Debug, Eq, PartialEq)]
struct Context {
    messages_json: String,
    sha256: String,
    tokens: u32,
    token: String,
}

/// An engine that runs natively or as a component.
trait Assembles {
    fn append(&mut self, dialect: Dialect, messages: &[String]);
    fn assemble(&mut self, dialect: Dialect, previous: Option<&str>) -> Context;
}

struct OfCore {
    engine: Engine,
    store: Native,
}

impl OfCore {
    fn new(store: &Shared) -> Self {
        Self { engine: Engine::new(), store: Native(store.clone()) }
    }

    /// Compacts until nothing is due.
    fn compact(&mut self) {
        let Self { engine, store } = self;
        let options = CompactionOptions {
            mode: CompactionMode::UntilUnder,
            requests_max: 8,
            ..CompactionOptions::default()
        };
        loop {
            let plan = engine.plan(store, "c", BUDGET, &options, NOW).unwrap();
            if plan.status != PlanStatus::NeedsCompletions {
                return;
            }
            for request in plan.requests {
                let answer = CompletionResult::Done(engine.complete_offline(&request));
                let options = ApplyOptions::default();
                engine.apply(store, "c", &request.id, &answer, &options, NOW).unwrap();
            }
        }
    }
}

impl Assembles for OfCore {
    fn append(&mut self, dialect: Dialect, messages: &[String]) {
        let options =
            AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
        let Self { engine, store } = self;
        engine.append(store, "c", dialect, messages, &options, NOW).unwrap();
    }

    fn assemble(&mut self, dialect: Dialect, previous: Option<&str>) -> Context {
        let options =
            AssembleOptions { previous: previous.map(str::to_owned), ..AssembleOptions::default() };
        let Self { engine, store } = self;
        let found = engine.assemble(store, "c", BUDGET, dialect, &options, NOW).unwrap();
        Context {
            messages_json: found.messages_json,
            sha256: found.prefix.sha256,
            tokens: found.tokens,
            token: found.prefix.token,
        }
    }
}

struct OfComponent(Lcm);

fn of_host(dialect: Dialect) -> types::Dialect {
    match dialect {
        Dialect::Lcm => types::Dialect::Lcm,
        Dialect::Anthropic => types::Dialect::Anthropic,
        Dialect::OpenaiChat => types::Dialect::OpenaiChat,
        Dialect::OpenaiResponses => types::Dialect::OpenaiResponses,
        Dialect::Gemini => types::Dialect::Gemini,
        Dialect::AiSdk => types::Dialect::AiSdk,
        Dialect::Openclaw => types::Dialect::Openclaw,
        Dialect::Langchain => types::Dialect::Langchain,
        Dialect::OpenaiAgents => types::Dialect::OpenaiAgents,
    }
}

impl Assembles for OfComponent {
    fn append(&mut self, dialect: Dialect, messages: &[String]) {
        let options = ingestion::Options {
            append_mode: ingestion::AppendMode::New,
            partial: false,
            extra_json: None,
        };
        self.0.append("c", of_host(dialect), messages, &options, NOW).unwrap();
    }

    fn assemble(&mut self, dialect: Dialect, previous: Option<&str>) -> Context {
        let options = context::Options {
            policy: None,
            prompt: None,
            reserve_tokens: 0,
            live_messages: Vec::new(),
            previous: previous.map(str::to_owned),
            explain: false,
            extra_json: None,
        };
        let found = self.0.assemble("c", BUDGET, of_host(dialect), &options, NOW).unwrap();
        Context {
            messages_json: found.messages_json,
            sha256: found.prefix.sha256,
            tokens: found.tokens,
            token: found.prefix.token,
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Appends messages one by one and assembles twice after each.
fn measure(
    of: &str,
    engine: &mut dyn Assembles,
    store: &Shared,
    (name, dialect): (&str, Dialect),
    next: &mut usize,
) {
    let begin = Instant::now();
    let mut last = engine.assemble(dialect, None);
    let cold = begin.elapsed().as_secs_f64() * 1e3;
    let reads_cold = store.reads();
    let (mut after, mut again) = (Vec::new(), Vec::new());
    let (mut reads_after, mut reads_again) = (0, 0);
    for _ in 0..TIMES {
        engine.append(dialect, &[message(dialect, *next)]);
        *next += 1;
        store.reads();
        let begin = Instant::now();
        let found = engine.assemble(dialect, Some(&last.token));
        after.push(begin.elapsed().as_secs_f64() * 1e3);
        reads_after = reads_after.max(store.reads());
        let begin = Instant::now();
        last = engine.assemble(dialect, Some(&last.token));
        again.push(begin.elapsed().as_secs_f64() * 1e3);
        reads_again = reads_again.max(store.reads());
        assert_eq!(found, last, "{of} {name}");
    }
    // The caches of the engine do not change the result.
    let mut fresh = OfCore::new(store);
    assert_eq!(fresh.assemble(dialect, None), last, "{of} {name}");
    store.reads();
    println!(
        "{of:21} {name:17} {:8} {:6} | {cold:9.2} {reads_cold:2} | {:9.2} {reads_after:2} | \
         {:9.2} {reads_again:2}",
        last.messages_json.len(),
        last.tokens,
        median(after),
        median(again),
    );
    assert!(reads_after <= READS_MAX, "{of} {name}: {reads_after} reads after a message");
    assert_eq!(reads_again, 1, "{of} {name}: reads of the same context");
}

#[test]
fn assembling_again_reads_little() {
    let messages = env::var("LCM_MESSAGES").ok().and_then(|value| value.parse().ok());
    let messages: usize = messages.unwrap_or(MESSAGES);
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("dist/lcm.wasm");
    let component = std::fs::read(dist).ok();
    let component = component.map(|wasm| Component::load(&wasm, &LoadOptions::default()).unwrap());
    println!("{messages} messages; cold, after a message, again: ms and reads");
    let only = env::var("LCM_ONLY").unwrap_or_default();
    for (name, dialect) in DIALECTS.into_iter().filter(|(name, _)| name.starts_with(&only)) {
        let store = Shared::default();
        let mut core = OfCore::new(&store);
        let mut next = 8;
        while next < messages + 8 {
            let batch: Vec<String> =
                (next..next + BATCH).map(|number| message(dialect, number)).collect();
            core.append(dialect, &batch);
            next += BATCH;
        }
        for state in ["raw", "compacted"] {
            if state == "compacted" {
                core.compact();
            }
            store.reads();
            let mut engine = OfCore::new(&store);
            let of = format!("native, {state}");
            measure(&of, &mut engine, &store, (name, dialect), &mut next);
            let Some(component) = &component else { continue };
            let model = Arc::new(Offline::new(component));
            let mut engine = OfComponent(Lcm::new(component, Box::new(store.clone()), model));
            let of = format!("component, {state}");
            measure(&of, &mut engine, &store, (name, dialect), &mut next);
        }
    }
}
