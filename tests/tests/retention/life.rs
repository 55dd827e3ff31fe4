//! One conversation, turn by turn.

use std::collections::BTreeMap;

use lcm_core::Engine;
use lcm_testing::{ModelStore, offline};
use lcm_text::types::api::{
    AppendMode, AppendOptions, ApplyStatus, AssembleOptions, CompactionOptions, Dialect,
};

use crate::{bill::Bill, facts};

/// Budget of the context of every turn, in tokens.
pub(crate) const BUDGET: u32 = 16_000;
/// Number of windows (parts of [`crate::sets::TURNS`] turns) of each set.
pub(crate) const WINDOWS: usize = 12;
/// Largest number of identifiers that are searched for at each point.
const ASKED_MAX: usize = 40;
/// Numbers of turns after which the test counts.
pub(crate) const POINTS: [usize; 4] = [10, 30, 50, 100];

/// The way in which a host compacts.
#[derive(Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    config: &'static str,
    /// Leaves are made until the context has at most so many tokens; `None`: leaves are made of
    /// all messages outside the fresh tail.
    target: Option<u32>,
    /// Number of completions requested at the same time.
    parallel: u32,
}

/// Leaves of a quarter of a chunk, which has 6,000 tokens with this budget.
const QUARTER: &str = r#"{"leaf_tokens_target":1500}"#;
/// Tokens from which compaction is due.
const THRESHOLD: u32 = 12_000;

/// The policy without any configuration.
pub(crate) const DEFAULT: Policy =
    Policy { name: "default", config: "{}", target: None, parallel: 1 };
/// The default with leaves of a quarter of the chunk.
pub(crate) const QUARTERS: Policy =
    Policy { name: "leaves of a quarter", config: QUARTER, target: None, parallel: 1 };
/// Further policies for comparison.
pub(crate) const OTHERS: [Policy; 3] = [
    Policy { name: "stops at the threshold", target: Some(THRESHOLD), ..DEFAULT },
    Policy { name: "stops at three quarters of it", target: Some(THRESHOLD / 4 * 3), ..DEFAULT },
    Policy { name: "four at a time", parallel: 4, ..DEFAULT },
];

/// The counts after some turns.
#[derive(Clone, Copy, Default)]
pub(crate) struct Point {
    pub(crate) raw_tokens: u64,
    pub(crate) context_tokens: u64,
    pub(crate) rare: u64,
    pub(crate) kept: u64,
    pub(crate) equal_window: u64,
    pub(crate) full_window: u64,
    /// Number of identifiers that an agent finds, of those that were searched for.
    pub(crate) reached: u64,
    pub(crate) asked: u64,
}

/// The counts and the bill of a whole window.
pub(crate) struct Life {
    pub(crate) points: Vec<Point>,
    pub(crate) bill: Bill,
    pub(crate) window_bill: Bill,
    pub(crate) passes: u64,
}

struct Message {
    text: String,
    tokens: u64,
}

/// Makes the turns of one window.
pub(crate) fn lead(turns: &[Vec<String>], policy: &Policy) -> Life {
    let mut engine = Engine::new();
    engine.configure(policy.config).unwrap();
    let mut store = ModelStore::new();
    let mut said: Vec<Message> = Vec::new();
    let mut life =
        Life { points: Vec::new(), bill: Bill::default(), window_bill: Bill::default(), passes: 0 };
    for (number, turn) in turns.iter().enumerate() {
        let now = 1_700_000_000_000 + 60_000 * u64::try_from(number).unwrap();
        for message in turn {
            let options =
                AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
            let batch = [message.clone()];
            store.begin_call();
            engine.append(&mut store, "c", Dialect::Lcm, &batch, &options, now).unwrap();
            said.push(Message { text: texts(message), tokens: tokens(message) });
        }
        compact(&mut engine, &mut store, policy, &mut life, now);
        let options = AssembleOptions::default();
        store.begin_call();
        let assembled =
            engine.assemble(&mut store, "c", BUDGET, Dialect::Lcm, &options, now).unwrap();
        let system = assembled.system.unwrap_or_default();
        let prompt = format!("{system}{}", assembled.messages_json);
        life.bill.turn(&prompt);
        let window: String =
            newest(&said, u64::from(BUDGET)).iter().map(|message| message.text.as_str()).collect();
        life.window_bill.turn(&window);
        if POINTS.contains(&(number + 1)) {
            let context = format!("{system}\n{}", texts(&assembled.messages_json));
            let (mut point, rare) = count(&said, &context, u64::from(assembled.tokens));
            let step = rare.len().div_ceil(ASKED_MAX).max(1);
            for fact in rare.iter().step_by(step) {
                point.asked += 1;
                point.reached += u64::from(is_reached(&mut engine, &mut store, fact, now));
            }
            life.points.push(point);
        }
    }
    life
}

fn compact(
    engine: &mut Engine,
    store: &mut ModelStore,
    policy: &Policy,
    life: &mut Life,
    now: u64,
) {
    let options = CompactionOptions {
        target: policy.target,
        requests_max: policy.parallel,
        ..CompactionOptions::default()
    };
    offline::compact((engine, store), ("c", BUDGET), options, now, &mut |applied| {
        life.bill.completion(applied.request.input_tokens, applied.answer.output_tokens);
        life.passes += u64::from(applied.outcome.applied == ApplyStatus::Committed);
    });
}

/// Returns whether an agent finds an identifier by its name in two calls: a search shows it, or the
/// description of a hit does.
fn is_reached(engine: &mut Engine, store: &mut ModelStore, fact: &str, now: u64) -> bool {
    let query = serde_json::json!({"pattern": fact, "mode": "full-text", "scope": "both"});
    store.begin_call();
    let found = engine.grep(store, "c", &query.to_string(), None, now).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let matches = found["matches"].as_array().unwrap();
    let shown =
        |found: &serde_json::Value| found["snippet"].as_str().unwrap_or_default().to_owned();
    if matches.iter().any(|found| facts::holds(&shown(found), fact)) {
        return true;
    }
    matches.first().is_some_and(|first| {
        store.begin_call();
        let id = first["id"].as_str().unwrap();
        let told = engine.expand(store, "c", id, "{\"include_messages\":true}", None, now);
        told.is_ok_and(|told| facts::holds(&texts(&told), fact))
    })
}

/// Returns the counts of kept identifiers, and the rare identifiers.
fn count<'a>(said: &'a [Message], context: &str, context_tokens: u64) -> (Point, Vec<&'a str>) {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for message in said {
        for fact in facts::of(&message.text, false) {
            if facts::is_identifier(fact) {
                *seen.entry(fact).or_default() += 1;
            }
        }
    }
    let join = |tokens: u64| {
        let texts: Vec<&str> =
            newest(said, tokens).iter().map(|message| message.text.as_str()).collect();
        texts.join("\n")
    };
    let (equal, full) = (join(context_tokens), join(u64::from(BUDGET)));
    let mut point = Point {
        raw_tokens: said.iter().map(|message| message.tokens).sum(),
        context_tokens,
        ..Point::default()
    };
    let rare = seen.into_iter().filter(|(_, count)| *count == 1).map(|(fact, _)| fact);
    let rare: Vec<&str> = rare.collect();
    for fact in &rare {
        point.rare += 1;
        point.kept += u64::from(facts::holds(context, fact));
        point.equal_window += u64::from(facts::holds(&equal, fact));
        point.full_window += u64::from(facts::holds(&full, fact));
    }
    (point, rare)
}

/// Returns the newest messages of at most `tokens_max` tokens.
fn newest(said: &[Message], tokens_max: u64) -> &[Message] {
    let mut tokens = 0;
    let mut from = said.len();
    while from > 0 && tokens + said[from - 1].tokens <= tokens_max {
        from -= 1;
        tokens += said[from].tokens;
    }
    &said[from..]
}

/// Returns all texts in the JSON, decoded.
fn texts(json: &str) -> String {
    fn walk(value: &serde_json::Value, out: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => out.push(text.clone()),
            serde_json::Value::Array(list) => list.iter().for_each(|value| walk(value, out)),
            serde_json::Value::Object(object) => {
                for (key, value) in object {
                    if !["role", "type", "timestamp", "session", "call_id", "id"]
                        .contains(&key.as_str())
                    {
                        walk(value, out);
                    }
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(&serde_json::from_str(json).unwrap(), &mut out);
    out.join("\n")
}

fn tokens(message: &str) -> u64 {
    u64::from(lcm_text::message::parse(Dialect::Lcm, message).unwrap().tokens)
}
