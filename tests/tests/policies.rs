#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Planted facts that each eviction policy keeps when not all items fit.
//!
//! A conversation has a thousand facts, each in one message. It is assembled with a half and a
//! quarter of its tokens, raw and compacted with the offline summariser. The test counts the facts
//! in the context by third of the conversation, and how often the context has the fact that the
//! prompt asks for. It asserts the purpose of each policy.
//!
//! `cargo test --release -p lcm-tests --test policies -- --nocapture` prints the table of
//! `docs/assembly.md`.

#[path = "planted/facts.rs"]
#[expect(dead_code, reason = "what is confusable about the facts is of the other test")]
mod facts;
#[path = "hostile/workload.rs"]
#[expect(dead_code, reason = "only its compaction is used here")]
mod workload;

use facts::Fact;
use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::types::api::{
    AppendMode, AppendOptions, AssembleOptions, AssembledContext, Dialect, EvictionPolicy,
};
use workload::{CONVERSATION, NOW_MS};

/// Number of planted facts.
const FACTS: usize = 1_000;
/// A prompt asks for every fact at a multiple of this number.
const ASKED_EVERY: usize = 13;
/// Target of the compaction, in tokens.
const COMPACTED_FOR: u32 = 32_000;
/// Divisors of the tokens of the whole context that give the budgets.
const PARTS: [u32; 2] = [2, 4];
/// A configuration with a short tail, so that the policies decide about most items.
const CONFIG: &str = r#"{"fresh_tail_messages_max":16,"leaf_chunk_tokens_max":4000,
    "leaf_tokens_target":800,"condensed_tokens_target":800,"summary_prefix_tokens_target":20000}"#;
const POLICIES: [(&str, EvictionPolicy); 3] = [
    ("layered", EvictionPolicy::Layered),
    ("chronological", EvictionPolicy::Chronological),
    ("prompt-aware", EvictionPolicy::PromptAware),
];

struct Host {
    engine: Engine,
    store: ModelStore,
}

/// Shares of the facts that a policy kept, in thousandths.
struct Kept {
    /// Shares of the oldest, the middle and the newest third.
    thirds: [usize; 3],
    /// Share of the facts that the prompt asked for.
    asked: usize,
}

impl Host {
    fn with(facts: &[Fact], is_compacted: bool) -> Self {
        let mut engine = Engine::new();
        engine.configure(CONFIG).unwrap();
        let mut store = ModelStore::new();
        for batch in facts::messages(facts).chunks(100) {
            let options =
                AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
            store.begin_call();
            engine.append(&mut store, CONVERSATION, Dialect::Lcm, batch, &options, NOW_MS).unwrap();
        }
        if is_compacted {
            workload::compact(&mut engine, &mut store, COMPACTED_FOR);
        }
        Self { engine, store }
    }

    fn context(
        &mut self,
        policy: EvictionPolicy,
        budget: u32,
        prompt: Option<&str>,
    ) -> AssembledContext {
        let prompt = prompt.map(str::to_owned);
        let options = AssembleOptions { policy: Some(policy), prompt, ..Default::default() };
        self.store.begin_call();
        let (store, dialect) = (&mut self.store, Dialect::Lcm);
        let context =
            self.engine.assemble(store, CONVERSATION, budget, dialect, &options, NOW_MS).unwrap();
        assert!(context.tokens <= budget, "{} of {budget} tokens", context.tokens);
        context
    }

    fn kept(&mut self, facts: &[Fact], policy: EvictionPolicy, budget: u32) -> Kept {
        let context = self.context(policy, budget, None).messages_json;
        let of = |facts: &[Fact]| {
            facts.iter().filter(|fact| context.contains(&fact.value)).count() * 1_000 / facts.len()
        };
        let third = facts.len() / 3;
        let thirds = [&facts[..third], &facts[third..2 * third], &facts[2 * third..]].map(of);
        let asked: Vec<&Fact> = facts.iter().step_by(ASKED_EVERY).collect();
        let there = asked.iter().filter(|fact| {
            let context = self.context(policy, budget, Some(&fact.question)).messages_json;
            context.contains(&fact.value)
        });
        Kept { thirds, asked: there.count() * 1_000 / asked.len() }
    }
}

#[test]
fn each_policy_keeps_the_facts_that_it_favours() {
    let facts = facts::all(FACTS);
    println!(
        "{:12}{:>8}  {:16}{:>10}{:>10}{:>10}{:>12}",
        "compacted", "budget", "policy", "oldest", "middle", "newest", "asked for"
    );
    for is_compacted in [false, true] {
        let mut host = Host::with(&facts, is_compacted);
        let all = host.context(EvictionPolicy::Layered, u32::MAX, None).tokens;
        for budget in PARTS.map(|part| all / part) {
            let [layered, chronological, aware] = POLICIES.map(|(name, policy)| {
                let kept = host.kept(&facts, policy, budget);
                let Kept { thirds: [oldest, middle, newest], asked } = kept;
                println!(
                    "{:12}{budget:>8}  {name:16}{oldest:>10}{middle:>10}{newest:>10}{asked:>12}",
                    if is_compacted { "yes" } else { "no" }
                );
                kept
            });
            assert!(aware.asked >= 2 * layered.asked.max(chronological.asked));
            assert!(chronological.thirds[2] >= layered.thirds[2]);
            // Only a summary of the oldest messages keeps their facts.
            assert!(!is_compacted || layered.thirds[0] > chronological.thirds[0]);
        }
    }
}
