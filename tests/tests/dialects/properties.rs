//! Properties of contexts: generated histories of every dialect, assembled in every dialect under
//! random budgets.
//!
//! `LCM_DIALECT_SEEDS` sets the number of seeds. A failure names its seed; `LCM_DIALECT_SEED` runs
//! one seed.

use std::{
    collections::BTreeMap,
    env,
    fs::File,
    io::{BufWriter, Write},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use lcm_text::{
    message,
    types::api::{AssembledContext, Dialect},
};
use serde_json::Value;

use crate::{
    Chat, DIALECTS,
    generate::{Event, Generator, write},
};

/// Seeds of every test run.
const SEEDS: u64 = 4_000;
/// A budget that fits every context.
const LARGE: u32 = 10_000_000;

const CONFIG: &str = r#"{"fresh_tail_messages_max": 6, "fresh_tail_tokens_max": null,
    "leaf_chunk_tokens_max": 400, "leaf_tokens_target": 200, "condensed_tokens_target": 200}"#;

/// Messages of the fresh tail in [`CONFIG`].
const TAIL_MESSAGES: usize = 6;

/// A generated history.
struct History {
    chat: Chat,
    events: Vec<Event>,
    generator: Generator,
}

fn history(seed: u64, is_clean: bool, dialects: &[Dialect]) -> History {
    history_of(Generator::new(seed, is_clean), dialects)
}

fn history_of(mut generator: Generator, dialects: &[Dialect]) -> History {
    let mut chat = Chat::new(CONFIG);
    let mut events = Vec::new();
    if generator.random.chance(300) {
        events.push(Event::System("leading".into()));
    }
    events.push(Event::User("w0x".into()));
    for _ in 0..generator.random.between(1, 14) {
        events.extend(generator.next());
    }
    let mut batch: Vec<String> = Vec::new();
    let mut current = *generator.random.pick(dialects);
    for event in &events {
        let dialect =
            if generator.random.chance(100) { *generator.random.pick(dialects) } else { current };
        if dialect != current && !batch.is_empty() {
            chat.append(current, &std::mem::take(&mut batch));
        }
        current = dialect;
        batch.extend(write(dialect, event, &mut generator.random));
    }
    if !batch.is_empty() {
        chat.append(current, &batch);
    }
    History { chat, events, generator }
}

fn messages(assembled: &AssembledContext) -> Vec<Value> {
    serde_json::from_str(&assembled.messages_json).unwrap()
}

/// Checks the properties of an assembled context.
pub(crate) fn check(chat: &mut Chat, dialect: Dialect, budget: u32) -> AssembledContext {
    let budget = hold_system(chat, dialect, budget);
    let assembled = chat.assemble(dialect, budget, None);
    assert_eq!(assembled.tokens > budget, is_over(&assembled), "{:?}", assembled.warnings);
    if assembled.tokens > budget {
        nothing_else_is_left(chat, &assembled);
    }
    let refused = assembled.warnings.iter().find(|line| line.starts_with("invalid-context"));
    assert_eq!(refused, None);
    if dialect != Dialect::Lcm && assembled.messages_json != "[]" {
        let findings = chat.findings(dialect, &assembled.messages_json);
        assert_eq!(findings, "[]", "{}", assembled.messages_json);
        let messages = messages(&assembled);
        results_follow_in_order(dialect, &messages);
        roles_alternate(dialect, &messages);
    }
    let counted: u32 = elements(&assembled.messages_json)
        .iter()
        .map(|raw| message::parse(dialect, raw).unwrap().tokens)
        .sum();
    if assembled.system.is_none() {
        assert_eq!(assembled.tokens, counted);
    }
    assert!(assembled.tokens >= counted);
    let items: u32 =
        assembled.items.iter().filter(|item| item.included).map(|item| item.tokens).sum();
    assert_eq!(items, assembled.tokens);
    the_newest_words_are_there(chat, dialect, &assembled);
    if dialect == Dialect::Anthropic && budget.is_multiple_of(4) {
        marks_are_at_the_breakpoints(chat, budget, &assembled);
    }
    what_is_left_out_has_its_tokens(chat, &assembled);
    assembled
}

/// Checks that every context has the words of the newest message and of the live messages.
fn the_newest_words_are_there(chat: &Chat, dialect: Dialect, assembled: &AssembledContext) {
    // A second result of one call is omitted.
    if assembled.warnings.iter().any(|line| line.starts_with("dropped-duplicate-result")) {
        return;
    }
    let system = assembled.system.as_deref().unwrap_or_default();
    for word in chat.newest_words(dialect) {
        let is_there = assembled.messages_json.contains(&word) || system.contains(&word);
        assert!(is_there, "{word} is lost: {}", assembled.messages_json);
    }
}

/// Checks that cache marks are on the messages of the breakpoints, change nothing else, and are
/// accepted by the provider.
fn marks_are_at_the_breakpoints(chat: &mut Chat, budget: u32, plain: &AssembledContext) {
    let marked = chat.assemble_marked(Dialect::Anthropic, budget);
    assert_eq!(marked.prefix, plain.prefix);
    assert_eq!(marked.tokens, plain.tokens);
    let (mut with, mut without) = (messages(&marked), messages(plain));
    let has_mark = |message: &Value| message.to_string().contains("\"cache_control\":{");
    let at: Vec<u32> = (0..).zip(&with).filter(|(_, m)| has_mark(m)).map(|(at, _)| at).collect();
    let takes_one = |at: &u32| {
        let blocks = without[*at as usize]["content"].as_array().unwrap();
        blocks.iter().any(|block| !block["type"].as_str().unwrap().contains("thinking"))
    };
    let wanted: Vec<u32> = plain.prefix.breakpoints.iter().copied().filter(takes_one).collect();
    assert_eq!(at, wanted, "{}", marked.messages_json);
    if marked.messages_json != "[]" {
        assert_eq!(chat.findings(Dialect::Anthropic, &marked.messages_json), "[]");
    }
    for message in with.iter_mut().chain(&mut without) {
        for block in message["content"].as_array_mut().unwrap() {
            let inner = block.as_object_mut().unwrap();
            inner.remove("cache_control");
            let inner = inner.get_mut("content").and_then(Value::as_array_mut);
            for block in inner.into_iter().flatten().filter_map(Value::as_object_mut) {
                block.remove("cache_control");
            }
        }
    }
    assert_eq!(with, without);
}

/// Checks that an omitted piece of a run counts the tokens of its messages.
fn what_is_left_out_has_its_tokens(chat: &Chat, assembled: &AssembledContext) {
    let of_messages = assembled.items.iter().filter(|item| item.kind == "message");
    for item in of_messages.filter(|item| !item.included) {
        let (tokens, has_large) = chat.tokens_of(item.seq_first.unwrap(), item.seq_last.unwrap());
        assert!(item.tokens == tokens || (has_large && item.tokens < tokens), "{item:?}");
    }
}

/// Checks that a context over its budget has only the protected part, which the test derives from
/// the messages itself.
fn nothing_else_is_left(chat: &Chat, assembled: &AssembledContext) {
    let first = chat.always_from(TAIL_MESSAGES);
    for item in assembled.items.iter().filter(|item| item.included) {
        let belongs = match &*item.kind {
            "live" | "focus" | "system" => true,
            "message" => item.seq_first.is_some_and(|seq| seq >= first),
            _ => false,
        };
        assert!(belongs, "over its budget with {item:?}, and what belongs begins at {first}");
    }
}

fn is_over(assembled: &AssembledContext) -> bool {
    assembled.warnings.iter().any(|line| line.starts_with("tail-over-budget"))
}

/// Returns a budget of at least the system messages, which are refused in a smaller one.
fn hold_system(chat: &mut Chat, dialect: Dialect, budget: u32) -> u32 {
    let items = chat.assemble(dialect, LARGE, None).items;
    let system = items.iter().filter(|item| item.kind == "system");
    system.map(|item| item.tokens).sum::<u32>().max(budget)
}

/// Checks that a repeated assembly is equal byte for byte.
fn check_again(chat: &mut Chat, dialect: Dialect, budget: u32) {
    let budget = hold_system(chat, dialect, budget);
    let assembled = check(chat, dialect, budget);
    let again = chat.assemble(dialect, budget, Some(assembled.prefix.token.clone()));
    assert_eq!(assembled.messages_json, again.messages_json);
    assert_eq!(assembled.prefix.sha256, again.prefix.sha256);
    assert_eq!(again.prefix.broken_by, None);
    assert_eq!(again.prefix.stable_tokens, Some(assembled.tokens));
}

/// Checks the order of roles. Anthropic and all clouds that offer its models accept a user message
/// first and then alternating roles; Gemini counts responses in separate contents.
fn roles_alternate(dialect: Dialect, messages: &[Value]) {
    let is_model = |message: &Value| message["role"] == "assistant" || message["role"] == "model";
    if let Dialect::Anthropic | Dialect::Gemini = dialect {
        assert!(!is_model(&messages[0]), "{}", messages[0]);
    }
    for (at, message) in messages.iter().enumerate() {
        match dialect {
            Dialect::Anthropic => {
                assert!(at == 0 || message["role"] != messages[at - 1]["role"], "{message}");
            }
            Dialect::Gemini => {
                let responses = of_parts(message, "functionResponse").len();
                let parts = message["parts"].as_array().unwrap().len();
                assert!(responses == 0 || responses == parts, "{message}");
            }
            _ => {}
        }
    }
}

/// Returns the elements of an array as written.
fn elements(json: &str) -> Vec<String> {
    let list: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(json).unwrap();
    list.iter().map(|raw| raw.get().to_owned()).collect()
}

/// Checks that results have the order of their calls. The validator accepts any order.
fn results_follow_in_order(dialect: Dialect, messages: &[Value]) {
    let ids = |list: &Value, kind: &str, key: &str| -> Vec<String> {
        let blocks = list.as_array().cloned().unwrap_or_default();
        let of_kind = blocks.iter().filter(|block| kind.is_empty() || block["type"] == kind);
        of_kind.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    for (at, message) in messages.iter().enumerate() {
        let next = messages.get(at + 1).unwrap_or(&Value::Null);
        let (calls, results) = match dialect {
            Dialect::Anthropic => {
                let calls = ids(&message["content"], "tool_use", "id");
                let results = ids(&next["content"], "tool_result", "tool_use_id");
                (calls, if message["role"] == "assistant" { results } else { Vec::new() })
            }
            Dialect::Gemini => {
                let calls = of_parts(message, "functionCall");
                let results = of_parts(next, "functionResponse");
                (calls, if message["role"] == "model" { results } else { Vec::new() })
            }
            Dialect::OpenaiResponses => return results_follow_their_response(messages),
            // The validator checks the order.
            _ if dialect.is_framework() => return,
            _ => {
                let calls = ids(&message["tool_calls"], "", "id");
                let results = messages[at + 1..]
                    .iter()
                    .take(calls.len())
                    .map(|next| next["tool_call_id"].as_str().unwrap().to_owned());
                (calls, results.collect())
            }
        };
        assert_eq!(calls, results);
    }
}

/// Returns the name and id of each part of a content that has the member `key`.
fn of_parts(content: &Value, key: &str) -> Vec<String> {
    let parts = content["parts"].as_array().cloned().unwrap_or_default();
    let held = parts.iter().filter(|part| part[key].is_object());
    held.map(|part| format!("{} {}", part[key]["name"], part[key]["id"])).collect()
}

/// Checks that only other items of the model and other results are between a call and its result.
fn results_follow_their_response(items: &[Value]) {
    let id = |item: &Value| item["call_id"].as_str().unwrap_or_default().to_owned();
    let kind = |item: &Value| item["type"].as_str().unwrap_or_default().to_owned();
    let mut open: Vec<String> = Vec::new();
    for item in items {
        let kind = kind(item);
        if kind == "function_call" || kind == "custom_tool_call" {
            open.push(id(item));
        } else if kind.ends_with("_output") {
            open.retain(|call| *call != id(item));
        } else {
            let is_model = item["role"] == "assistant" || !matches!(&*kind, "" | "message");
            assert!(is_model || open.is_empty(), "{item} before the results of {open:?}");
        }
    }
    assert_eq!(open, Vec::<String>::new());
}

/// Checks that a context with every item has every text, and for a clean history every call and
/// result.
fn everything_survives(history: &History, dialect: Dialect, assembled: &AssembledContext) {
    let all = format!("{}{}", assembled.messages_json, assembled.system.as_deref().unwrap_or(""));
    let has = |word: &str| {
        let word = word.split(' ').next().unwrap();
        assert!(all.contains(word), "{dialect:?} lost {word}: {all}");
    };
    let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
    for event in &history.events {
        if let Event::Assistant { calls: list, .. } = event {
            for id in list.iter().filter_map(|call| call.id.as_deref()) {
                *calls.entry(id).or_default() += 1;
            }
        }
    }
    let mut results: BTreeMap<&str, u32> = BTreeMap::new();
    for event in &history.events {
        if let Event::Results { list, .. } = event {
            for id in list.iter().filter_map(|one| one.id.as_deref()) {
                *results.entry(id).or_default() += 1;
            }
        }
    }
    let is_once = |id: &Option<String>| {
        id.as_deref().is_some_and(|id| calls.get(id) == Some(&1) && results.get(id) <= Some(&1))
    };
    for event in &history.events {
        match event {
            Event::User(text) | Event::System(text) if !text.trim().is_empty() => has(text),
            Event::Media(text) | Event::Unknown(text) => has(text),
            Event::Assistant { text, calls, .. } => {
                text.iter().for_each(|text| has(text));
                calls.iter().filter(|call| is_once(&call.id)).for_each(|call| has(&call.word));
            }
            Event::Results { list, text } => {
                text.iter().for_each(|text| has(text));
                list.iter().filter(|one| is_once(&one.id)).for_each(|one| has(&one.word));
            }
            Event::Served { word, is_answered: true, .. } => has(word),
            _ => {}
        }
    }
}

/// Checks that one more message does not change the bytes before.
fn the_beginning_stays(history: &mut History, dialect: Dialect) {
    let before = history.chat.assemble(dialect, LARGE, None);
    let word = "one more message of the user";
    let own = if dialect == Dialect::Lcm { Dialect::Lcm } else { Dialect::OpenaiChat };
    history.chat.append(own, &[format!("{{\"role\":\"user\",\"content\":\"{word}\"}}")]);
    let after = history.chat.assemble(dialect, LARGE, Some(before.prefix.token.clone()));
    assert!(after.messages_json.contains(word));
    // Only the end of the array may change, and the placeholder turn of the user at its end.
    let placeholder = match dialect {
        Dialect::Gemini => {
            ",{\"role\":\"user\",\"parts\":[{\"text\":\"[the conversation continues here]\"}]}"
        }
        _ => {
            ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\
             \"text\":\"[the conversation continues here]\"}]}"
        }
    };
    let closing = if dialect == Dialect::Anthropic { "]}]" } else { "]" };
    let old = before.messages_json.strip_suffix(closing).unwrap_or("[");
    let old =
        before.messages_json.strip_suffix("]").unwrap().strip_suffix(placeholder).unwrap_or(old);
    // An open server tool call or program at the end is omitted once a message follows.
    let may_wait = ["\"server_tool_use\"", "\"program\""];
    if !may_wait.iter().any(|kind| before.messages_json.contains(kind)) {
        assert!(after.messages_json.starts_with(old), "{old}\n{}", after.messages_json);
        if !before.messages_json.contains(placeholder) {
            assert_eq!(after.prefix.stable_tokens, Some(before.tokens));
        }
    }
}

/// Checks that a context with every item has the brief if it has a summary, and stays valid.
fn a_brief_stands_for_summaries(history: &mut History) {
    let word = "the brief of the host";
    let dialect = *history.generator.random.pick(&DIALECTS);
    let items = check(&mut history.chat, dialect, LARGE).items;
    let newest = items.iter().filter_map(|item| item.seq_last).max().unwrap_or(1);
    history.chat.focus(Some(word), Some(history.generator.random.between(1, newest)));
    let assembled = check(&mut history.chat, dialect, LARGE);
    assert!(assembled.messages_json.matches(word).count() <= 1);
    let budget = history.generator.random.between(1, 400) as u32;
    check_again(&mut history.chat, dialect, budget);
}

/// Checks that live messages end a context of any budget, and that stored ones are not repeated.
fn live_messages_end_the_context(history: &mut History) {
    let dialect = *history.generator.random.pick(&DIALECTS);
    let mut live = Vec::new();
    for event in history.generator.next() {
        live.extend(write(dialect, &event, &mut history.generator.random));
    }
    history.chat.live = live;
    check_again(&mut history.chat, dialect, LARGE);
    let budget = history.generator.random.between(1, 600) as u32;
    check_again(&mut history.chat, dialect, budget);
    history.chat.live.clear();
}

fn run(seed: u64) {
    let is_clean = seed.is_multiple_of(4);
    let mut history = history(seed, is_clean, &DIALECTS);
    for dialect in DIALECTS {
        let assembled = check(&mut history.chat, dialect, LARGE);
        assert!(assembled.items.iter().all(|item| item.included));
        everything_survives(&history, dialect, &assembled);
        if is_clean && dialect != Dialect::Lcm {
            // A tool name may change: one name of the generator has a space.
            let made_up = |line: &String| {
                !line.starts_with("renamed-call")
                    && (line.contains("result") || line.contains("call"))
            };
            assert_eq!(assembled.warnings.iter().find(|line| made_up(line)), None);
        }
        let budget = history.generator.random.between(1, 600) as u32;
        check(&mut history.chat, dialect, budget);
    }
    let (dialect, budget) = (*history.generator.random.pick(&DIALECTS), LARGE);
    check_again(&mut history.chat, dialect, budget);
    let budget = history.generator.random.between(1, 600) as u32;
    check_again(&mut history.chat, dialect, budget);
    if history.generator.random.chance(500) {
        history.chat.compact(100);
        for dialect in DIALECTS {
            let assembled = check(&mut history.chat, dialect, LARGE);
            let sum = assembled.messages_json.matches("<summary ").count();
            assert_eq!(sum, assembled.summaries as usize);
            check(&mut history.chat, dialect, history.generator.random.between(1, 400) as u32);
        }
        a_brief_stands_for_summaries(&mut history);
    }
    live_messages_end_the_context(&mut history);
    let dialect = *history.generator.random.pick(&DIALECTS);
    the_beginning_stays(&mut history, dialect);
}

#[test]
fn every_context_is_one_that_the_provider_accepts() {
    each_seed(SEEDS, run);
}

/// Runs a number of seeds on all cores; the environment may set the number or one seed.
pub(crate) fn each_seed(seeds: u64, run: fn(u64)) {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("LCM_DIALECT_SEED") {
        return run(seed);
    }
    let (seeds, next) = (number("LCM_DIALECT_SEEDS").unwrap_or(seeds), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
                eprintln!("LCM_DIALECT_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

/// Contexts of the sample that have no unknown types, and of every run.
const SAMPLES: usize = 1_000;
/// Contexts of the sample that are in memory at a time.
const BLOCK: usize = 20_000;

/// Returns a line of the sample. Lines beyond [`SAMPLES`] have unknown types and summaries, too.
fn sample_line(seed: usize) -> String {
    let mut generator = Generator::new(seed as u64, seed.is_multiple_of(5));
    generator.has_unknown = seed >= SAMPLES;
    let mut history = history_of(generator, &DIALECTS);
    if seed >= SAMPLES && seed.is_multiple_of(7) {
        history.chat.compact(100);
    }
    let (out, name) = [
        (Dialect::Anthropic, "anthropic"),
        (Dialect::OpenaiChat, "openai-chat"),
        (Dialect::OpenaiResponses, "openai-responses"),
        (Dialect::Gemini, "gemini"),
    ][seed % 4];
    let budget = if seed.is_multiple_of(3) { 300 } else { LARGE };
    let assembled = check(&mut history.chat, out, budget);
    format!("{{\"dialect\":\"{name}\",\"messages\":{}}}\n", assembled.messages_json)
}

/// Writes assembled contexts as JSON lines to the file in `LCM_DIALECT_SAMPLE`, the context of seed
/// n in line n + 1. The types of the providers' own packages and `rules.py` check the file
/// (`tests/sdk`). `LCM_DIALECT_SAMPLES` sets the number of contexts.
#[test]
fn a_sample_of_contexts_is_written_down() {
    let count = env::var("LCM_DIALECT_SAMPLES").ok().and_then(|value| value.parse().ok());
    let count = count.unwrap_or(SAMPLES);
    let path = env::var("LCM_DIALECT_SAMPLE").ok();
    let mut file = path.map(|path| BufWriter::new(File::create(path).unwrap()));
    let mut filled = 0;
    // Block by block, so that memory does not grow with the number.
    for first in (0..count).step_by(BLOCK) {
        for line in write_block(first, count.min(first + BLOCK)) {
            filled += usize::from(!line.contains("\"messages\":[]"));
            if let Some(file) = &mut file {
                file.write_all(line.as_bytes()).unwrap();
            }
        }
    }
    if let Some(mut file) = file {
        file.flush().unwrap();
    }
    assert!(filled > count / 20 * 19, "{filled}");
}

/// Returns the lines of the sample from `first` to before `end`, made on all cores.
fn write_block(first: usize, end: usize) -> Vec<String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<Vec<String>> = thread::scope(|scope| {
        let write = |from: usize| (from..end).step_by(cores).map(sample_line).collect();
        let threads: Vec<_> =
            (first..first + cores).map(|from| scope.spawn(move || write(from))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    (first..end).filter_map(|seed| parts[(seed - first) % cores].next()).collect()
}
