#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! An agent finds planted facts among similar facts, with questions in the words of the facts.
//!
//! Each fact is near similar ones: the same thing of another person, and another thing of the same
//! person. The conversation is compacted with the offline model until the summaries are at least
//! six levels deep. The agent calls `lcm_grep` with a typed question. If the answer does not have
//! the value, the agent calls once more as that answer suggests: with the name of the question in
//! `+"..."`, and in messages only. The agent never uses an id.
//!
//! The test asserts that every fact is found in at most two calls, each with an answer of at most
//! 1,500 tokens: `cargo test --release -p lcm-tests --test planted -- --nocapture` prints the table
//! of 1,000 facts, with `LCM_FACTS=10000` that of 10,000.

#[path = "planted/facts.rs"]
mod facts;
#[path = "hostile/workload.rs"]
#[expect(dead_code, reason = "only its compaction is used here")]
mod workload;

use std::collections::BTreeMap;

use facts::{Fact, Shape};
use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::{
    base::tokens,
    types::api::{
        AppendMode, AppendOptions, Dialect, ToolAnswer, ToolOutcome, ToolRequest, ToolScope,
    },
};
use workload::{CONVERSATION, NOW_MS};

/// Number of facts without `LCM_FACTS`.
const FACTS: usize = 1_000;
/// Smallest depth of the deepest summaries.
const DEPTH_MIN: u64 = 6;
/// Largest number of tokens of an answer; `CALLS_MAX`: of calls for a fact.
const ANSWER_TOKENS_MAX: u32 = 1_500;
const CALLS_MAX: usize = 2;
/// Tokens of the context: so few that nearly everything is under summaries.
const BUDGET: u32 = 4_000;
/// Small chunks, and no bound on the depth.
const CONFIG: &str = r#"{"leaf_chunk_tokens_max":400,"leaf_tokens_target":96,
    "condensed_tokens_target":256,"condense_leaves_min":2,"condense_summaries_min":2,
    "condense_min_hard":2,"sweep_depth_max":-1,"sweep_passes_max":4096,
    "summary_prefix_tokens_target":512,"fresh_tail_messages_max":8}"#;

/// Calls and tokens of one question.
#[derive(Default)]
struct Taken {
    calls: usize,
    tokens_max: u32,
    recovered: bool,
    /// The first answer, if it did not have the value.
    answer: String,
}

struct Agent {
    engine: Engine,
    store: ModelStore,
}

impl Agent {
    fn call(&mut self, name: &str, arguments: &str, taken: &mut Taken) -> String {
        self.store.begin_call();
        let request = ToolRequest {
            name,
            arguments_json: arguments,
            grant: None,
            scope: ToolScope::Conversation,
        };
        let answer = self.engine.tool_call(&mut self.store, CONVERSATION, request, NOW_MS);
        let ToolOutcome::Done(ToolAnswer { text, .. }) = answer.unwrap() else {
            panic!("a search asks no model");
        };
        taken.calls += 1;
        taken.tokens_max = taken.tokens_max.max(tokens::estimate(&text));
        text
    }

    /// Asks a question as it is typed; then follows the call that the answer names.
    fn recover(&mut self, fact: &Fact) -> Taken {
        let mut taken = Taken::default();
        let arguments = serde_json::json!({"pattern": fact.question}).to_string();
        let answer = self.call("lcm_grep", &arguments, &mut taken);
        taken.recovered = answer.contains(&fact.value);
        if !taken.recovered {
            let again =
                serde_json::json!({"pattern": narrowed(&fact.question), "scope": "messages"});
            let told = self.call("lcm_grep", &again.to_string(), &mut taken);
            taken.recovered = told.contains(&fact.value);
            taken.answer = answer;
        }
        taken
    }
}

/// Returns the question in the form that a truncated answer suggests: its name must occur exactly.
fn narrowed(question: &str) -> String {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_uppercase());
    let words: Vec<&str> = question.split(' ').skip(1).collect();
    let bare = |word: &str| word.trim_end_matches('?').trim_end_matches("'s").to_owned();
    let name: Vec<String> = words.iter().copied().filter(|word| is_name(word)).map(bare).collect();
    let rest: Vec<&str> = words.iter().copied().filter(|word| !is_name(word)).collect();
    format!("+\"{}\" {}", name.join(" "), rest.join(" "))
}

/// Stores the conversation of these facts and compacts it.
fn stored(facts: &[Fact]) -> Agent {
    let mut engine = Engine::new();
    engine.configure(CONFIG).unwrap();
    let mut store = ModelStore::new();
    for batch in facts::messages(facts).chunks(100) {
        let options =
            AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
        store.begin_call();
        engine.append(&mut store, CONVERSATION, Dialect::Lcm, batch, &options, NOW_MS).unwrap();
    }
    workload::compact(&mut engine, &mut store, BUDGET);
    Agent { engine, store }
}

fn status(agent: &mut Agent) -> serde_json::Value {
    agent.store.begin_call();
    let status = agent.engine.status(&mut agent.store, Some(CONVERSATION), NOW_MS).unwrap();
    serde_json::from_str(&status).unwrap()
}

#[test]
fn planted_facts_are_recovered_in_the_words_of_the_question() {
    let wanted = std::env::var("LCM_FACTS").map_or(FACTS, |count| count.parse().unwrap());
    let facts = facts::all(wanted);
    let mut agent = stored(&facts);
    let status = status(&mut agent);
    let depths = status["summaries"].as_array();
    let depths = depths.unwrap_or_else(|| panic!("{status}"));
    let depth = depths.iter().filter_map(|row| row["depth"].as_u64()).max().unwrap();
    println!("{} messages, summaries up to {depth} deep", status["messages"]);
    assert!(depth >= DEPTH_MIN, "the summaries are {depth} deep");
    let mut rows: BTreeMap<Shape, [usize; 4]> = BTreeMap::new();
    let (mut missed, mut tokens_max, mut tokens_sum, mut calls) = (Vec::new(), 0, 0, 0);
    for fact in &facts {
        let taken = agent.recover(fact);
        let row = rows.entry(fact.shape).or_default();
        row[0] += 1;
        row[1] += usize::from(taken.recovered);
        row[2] += usize::from(taken.recovered && taken.calls == 1);
        row[3] = row[3].max(taken.tokens_max as usize);
        tokens_max = tokens_max.max(taken.tokens_max);
        tokens_sum += u64::from(taken.tokens_max);
        calls += taken.calls;
        assert!(taken.calls <= CALLS_MAX);
        if !taken.recovered {
            missed.push(format!("{} ({})\n{}", fact.question, fact.value, taken.answer));
        }
    }
    println!(
        "{:24}{:>8}{:>12}{:>16}{:>12}",
        "stands in", "facts", "recovered", "in one call", "tokens"
    );
    for (shape, [facts, recovered, at_once, tokens]) in &rows {
        println!("{:24}{facts:>8}{recovered:>12}{at_once:>16}{tokens:>12}", shape.name());
    }
    println!(
        "{} of {} facts, {calls} calls, tokens of an answer: {} on average, {tokens_max} at most",
        facts.len() - missed.len(),
        facts.len(),
        tokens_sum / facts.len() as u64,
    );
    assert!(
        missed.is_empty(),
        "{} facts are not recovered, as\n{}",
        missed.len(),
        missed.iter().take(3).cloned().collect::<Vec<_>>().join("\n\n")
    );
    assert!(tokens_max <= ANSWER_TOKENS_MAX, "an answer of {tokens_max} tokens");
}

#[test]
fn the_facts_are_confusable_and_the_values_are_not() {
    let facts = facts::all(FACTS);
    let texts = facts::messages(&facts).join("\n");
    for fact in facts.iter().step_by(37) {
        assert_eq!(texts.matches(&fact.value).count(), 1, "{}", fact.value);
        assert!(!fact.question.contains(&fact.value));
        let same =
            |with: fn(&Fact) -> usize| facts.iter().filter(|f| with(f) == with(fact)).count();
        assert!(same(|fact| fact.thing) > 10 && same(|fact| fact.person) > 10);
    }
}
