//! A generated conversation for searches: words by Zipf's law, calls of tools with their results,
//! Chinese turns, and summaries of all but the newest messages.
//!
//! In: a number of messages. Out: an engine and its store. The same number gives the same store.

use lcm_core::Engine;
use lcm_testing::{ModelStore, offline, simulation::random::Random};
use lcm_text::types::api::{AppendMode, AppendOptions, ApplyStatus, CompactionOptions, Dialect};
use serde_json::json;

/// 2026-01-01T00:00:00Z in milliseconds.
pub(crate) const NOW_MS: u64 = 1_767_225_600_000;
/// The conversation that is searched.
pub(crate) const CONVERSATION: &str = "c";
/// Words of the vocabulary.
const WORDS: u64 = 20_000;
/// Budget of compaction, in tokens.
const BUDGET: u32 = 128_000;
/// The most frequent words, in their order.
const FREQUENT: [&str; 32] = [
    "the", "of", "to", "and", "a", "in", "is", "it", "that", "for", "on", "with", "as", "this",
    "be", "are", "was", "we", "you", "not", "have", "from", "or", "can", "will", "file", "error",
    "test", "run", "code", "data", "user",
];
/// If there are large payloads, one of [`LARGE_EVERY`] messages has one, of [`LARGE_WORDS`] words.
const LARGE_EVERY: u64 = 64;
const LARGE_WORDS: u64 = 30_000;

/// Returns the word of a rank; rank 0 is the most frequent word.
pub(crate) fn word(rank: u64) -> String {
    const PARTS: [&str; 16] = [
        "ba", "co", "di", "fu", "ge", "ha", "jo", "ki", "lu", "me", "no", "pra", "ri", "sto", "tu",
        "ve",
    ];
    if let Some(frequent) = FREQUENT.get(rank as usize) {
        return (*frequent).to_owned();
    }
    let (mut rest, mut out) = (rank * 7 + 3, String::new());
    while rest > 0 {
        out.push_str(PARTS[(rest % 16) as usize]);
        rest /= 16;
    }
    out
}

/// Words whose frequencies fall with their rank.
fn words(random: &mut Random, count: u64) -> String {
    let mut out = String::new();
    for number in 0..count {
        // Inverse of the distribution in which a frequency is proportional to 1 / rank.
        let share = random.between(0, (1 << 20) - 1) as f64 / f64::from(1 << 20);
        let rank = (WORDS as f64).powf(share) - 1.0;
        out.push_str(&word(rank as u64));
        out.push_str(if number % 11 == 10 { ". " } else { " " });
    }
    out
}

fn chinese(random: &mut Random, count: u64) -> String {
    let character = |number: u64| char::from_u32(0x4e00 + number as u32).unwrap();
    (0..count).map(|_| character(random.between(0, 899))).collect()
}

/// Returns a text of a large payload: with lines, in one line, or with characters beside words that
/// only the slow simulation of an expression can read.
fn large(number: u64) -> String {
    let mut random = Random::new(number);
    let text = words(&mut random, LARGE_WORDS);
    match number / LARGE_EVERY % 3 {
        0 => text.replace(". ", "\n"),
        1 => text.replace(". ", "\u{e9} "),
        _ => text.replace(". ", ".\n").replace("ba", "\u{6570}"),
    }
}

/// Returns the message of a number.
fn message(random: &mut Random, number: u64, has_files: bool) -> String {
    let at = NOW_MS - 200_000_000_000 + number * 60_000;
    let length = random.between(20, 140);
    let mut message = match number % 8 {
        0 if number.is_multiple_of(50) => {
            json!({"role": "user", "content": chinese(random, length)})
        }
        0 | 4 => json!({"role": "user", "content": words(random, length), "speaker": "dana"}),
        1 | 5 => json!({"role": "assistant", "parts": [
            {"type": "text", "text": words(random, 8)},
            {"type": "tool_call", "id": format!("t{number}"), "name": "run_shell",
                "input": {"command": words(random, 20), "path": format!("src/{}.rs", number % 97)}}]}),
        2 | 6 => json!({"role": "tool", "parts": [{"type": "tool_result",
        "call_id": format!("t{}", number - 1), "name": "run_shell",
        "output": match has_files && number % LARGE_EVERY == 2 {
            true => large(number),
            false => words(random, length),
        }}]}),
        _ => json!({"role": "assistant", "content": words(random, length)}),
    };
    message["timestamp"] = json!(at);
    message.to_string()
}

/// Stores `messages` messages, with or without large payloads, and compacts them without a model.
pub(crate) fn stored(messages: u64, has_files: bool) -> (Engine, ModelStore) {
    let mut engine = Engine::new();
    let mut store = ModelStore::new();
    let mut random = Random::new(42);
    let mut number = 0;
    while number < messages {
        let count = (messages - number).min(100);
        let batch: Vec<String> = (number..number + count)
            .map(|number| message(&mut random, number, has_files))
            .collect();
        let options =
            AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
        store.begin_call();
        engine.append(&mut store, CONVERSATION, Dialect::Lcm, &batch, &options, NOW_MS).unwrap();
        number += count;
    }
    compact(&mut engine, &mut store, BUDGET);
    (engine, store)
}

/// Compacts until nothing is due.
pub(crate) fn compact(engine: &mut Engine, store: &mut ModelStore, budget: u32) {
    let options = CompactionOptions::default();
    offline::compact((engine, store), (CONVERSATION, budget), options, NOW_MS, &mut |applied| {
        assert!(applied.outcome.applied != ApplyStatus::Stale);
    });
}

/// Attaches a vector of `dimensions` numbers to every message and summary.
pub(crate) fn attach(engine: &mut Engine, store: &mut ModelStore, dimensions: u64) {
    let mut random = Random::new(7);
    let mut vectors = "{}".to_owned();
    loop {
        store.begin_call();
        let answer = engine.embed(store, CONVERSATION, &vectors).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let next = answer["missing_ids"].as_array().unwrap();
        if next.is_empty() {
            assert!(answer["stored"].as_u64() > Some(0) && answer["missing_count"] == 0);
            return;
        }
        let mut entry = |id: &serde_json::Value| {
            let number = |_| random.between(0, 20) as i64 - 10;
            json!({"id": id, "vector": (0..dimensions).map(number).chain([1]).skip(1)
                .collect::<Vec<i64>>()})
        };
        let entries: Vec<serde_json::Value> = next.iter().map(&mut entry).collect();
        vectors = json!({"vectors": entries}).to_string();
    }
}
