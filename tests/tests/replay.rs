#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Measures how much of an agent's prompts is already in the prompt cache of its provider.
//!
//! The test makes 2,000 turns with a budget of 64,000 tokens: before every message of the assistant
//! the stored context is compacted if this is due, assembled and sent. The simulated provider keeps
//! exact prefixes, in blocks of 1,024 tokens, for five minutes or for an hour. The test counts the
//! tokens of all prompts that are in the byte-equal beginning of the prompt before, also in turns
//! with compaction, and the costs of the prompts and the summaries. The table also has a window of
//! the newest messages, the full history, and an engine that compacts after every turn.
//!
//! `LCM_DATA=FOLDER cargo test --release -p lcm-tests --test replay -- --nocapture` also uses a
//! month of real chats, which has 1,559 turns. The test asserts a share of at least .97 where such
//! a share is possible, and that no other host costs less. `LCM_REPLAY_CONFIG` sets another
//! configuration, for which no share is asserted. The column "at most" has the share if nothing in
//! a prompt ever changed: the new part and the last block of a prompt are never in the cache.
//!
//! A token is four bytes of the sent text. The engine sends the dialect `anthropic` and keeps the
//! budget by its own estimate; window and history send the dialect `lcm`. The test prints how much
//! longer the same messages are in one dialect than in the other.

#[path = "retention/bill.rs"]
#[expect(dead_code, reason = "forks and pauses are of the other tests")]
mod bill;
#[path = "replay/life.rs"]
mod life;
#[path = "replay/workload.rs"]
mod workload;

use life::{Host, Life};
use workload::Workload;

/// Turns of a life.
const TURNS: usize = 2_000;

#[test]
fn most_of_a_prompt_is_the_prompt_before() {
    let mut findings = Vec::new();
    for Workload { name, messages, stable_permille_min } in workload::all() {
        let lead = |host: &Host| Life::lead(*host, &messages, TURNS);
        let lives: Vec<Life> = Host::ALL.iter().map(lead).collect();
        println!("\n{name}, {} turns, budget {}", lives[0].turns, life::BUDGET);
        println!("anthropic has {:.3} of the bytes of lcm", life::anthropic_to_lcm(&messages));
        println!("{}", life::HEADING);
        let whole = lives[0].bill(0);
        for life in &lives {
            println!("{}", life.row(whole));
        }
        let engine = &lives[0];
        println!("{}", engine.worst());
        assert!(engine.turns > TURNS / 2, "{name} has too few messages");
        assert!(engine.passes > 10, "{name}: {} passes", engine.passes);
        let is_default = std::env::var_os(life::CONFIG).is_none();
        if is_default && engine.stable_permille() < stable_permille_min {
            findings.push(format!("{name}: {} of 1,000", engine.stable_permille()));
        }
        for other in &lives[1..] {
            assert!(engine.bill(0) < other.bill(0), "{name}: {} is cheaper", other.host.name());
        }
    }
    assert!(findings.is_empty(), "{findings:?}");
}
