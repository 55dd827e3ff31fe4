//! The conversations of the replay.

use std::{fs, path::Path};

use lcm_testing::simulation::random::Random;
use serde_json::json;

/// Number of requests to the generated agent.
const REQUESTS: usize = crate::TURNS;

/// Median tokens of a tool's result: as in the workload of `lcm-bench`; `LONG_RESULT_TOKENS`: of an
/// agent that reads whole files.
const RESULT_TOKENS: u64 = 150;
const LONG_RESULT_TOKENS: u64 = 700;

/// A conversation that is replayed.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// Messages in the dialect `lcm`.
    pub(crate) messages: Vec<String>,
    /// Smallest share of prompt tokens in the beginning of the prompt before, in thousandths.
    pub(crate) stable_permille_min: u64,
}

/// Returns all conversations.
pub(crate) fn all() -> Vec<Workload> {
    let of = |name, messages, stable_permille_min| Workload { name, messages, stable_permille_min };
    let mut out = vec![
        of("an agent with tools", agent(), 970),
        // No tried tail or threshold gives a share of .97, see `docs/assembly.md`.
        of("an agent whose tools return 700 tokens", agent_of(LONG_RESULT_TOKENS), 920),
    ];
    if let Some(folder) = std::env::var_os("LCM_DATA") {
        let file = Path::new(&folder).join("aider/chat-history-full.jsonl");
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        // The estimate counts an eighth more tokens for these chats than a quarter of their bytes,
        // so they are compacted more often.
        out.push(of("aider", text.lines().map(str::to_owned).collect(), 965));
    }
    out
}

/// Returns requests of a person, each with an answer, and half of them with one to four rounds of
/// calls. Sizes and shares are as in the workload of `lcm-bench`, about 130 tokens a message.
pub(crate) fn agent() -> Vec<String> {
    agent_of(RESULT_TOKENS)
}

/// As [`agent`], with results of a median of `result_tokens` tokens.
fn agent_of(result_tokens: u64) -> Vec<String> {
    let mut random = Random::new(64);
    let mut out = vec![json!({"role": "system", "content": words(&mut random, 200)}).to_string()];
    let mut calls = 0;
    for _ in 0..REQUESTS {
        let text = sized(&mut random, 45);
        out.push(json!({"role": "user", "content": text}).to_string());
        let rounds = if random.chance(550) { random.between(1, 4) } else { 0 };
        for _ in 0..rounds {
            let count = if random.chance(150) { 2 } else { 1 };
            let mut parts = vec![json!({"type": "text", "text": sized(&mut random, 30)})];
            let mut results = Vec::new();
            for _ in 0..count {
                calls += 1;
                let id = format!("call_{calls:08}");
                let path = format!("src/{}.rs", words(&mut random, 1));
                parts.push(json!({"type": "tool_call", "id": id, "name": "read_file",
                    "input": {"path": path, "line": calls}}));
                let result = json!({"type": "tool_result", "call_id": id, "name": "read_file",
                    "output": sized(&mut random, result_tokens)});
                results.push(json!({"role": "tool", "parts": [result]}).to_string());
            }
            out.push(json!({"role": "assistant", "parts": parts}).to_string());
            out.extend(results);
        }
        let text = sized(&mut random, 100);
        out.push(json!({"role": "assistant", "content": text}).to_string());
    }
    out
}

/// Returns a text with a median of `tokens` tokens: half of the texts are shorter, and one in eight
/// has at least twice as many.
fn sized(random: &mut Random, tokens: u64) -> String {
    let doublings = [[-2, -1], [-1, 0], [0, 1], [0, 1], [-1, 0], [0, 1], [-1, 0], [1, 2]];
    let [from, to] = *random.pick(&doublings);
    let scaled = |power: i32| {
        if power < 0 { tokens >> power.unsigned_abs() } else { tokens << power.unsigned_abs() }
    };
    let count = random.between(scaled(from).max(3), scaled(to).max(4));
    // A word has about a token and a half.
    words(random, count * 2 / 3)
}

fn words(random: &mut Random, count: u64) -> String {
    const SYLLABLES: [&str; 12] =
        ["ka", "lo", "mi", "ter", "san", "vu", "pre", "con", "da", "ri", "ne", "sto"];
    let mut out = String::new();
    for number in 0..count {
        if number > 0 {
            out.push_str(if number % 11 == 10 { ".\n" } else { " " });
        }
        for _ in 0..random.between(1, 3) {
            let syllable: &&str = random.pick(&SYLLABLES);
            out.push_str(syllable);
        }
    }
    out
}
