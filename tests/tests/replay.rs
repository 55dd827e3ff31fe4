#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! How much of what an agent sends stands already in its provider's prompt cache.
//!
//! A conversation is lived for 2,000 turns with a budget of 64,000 tokens: before every message of
//! the assistant the stored context is compacted when it is time, assembled and sent. A provider
//! keeps exact prefixes, in blocks of 1,024 tokens, for five minutes or for an hour. Counted is how
//! many tokens of all prompts are in the byte-equal beginning of the prompt before, turns on which
//! compaction ran included, and what the prompts and the summaries cost. Beside it stand a window
//! of the newest messages, the full history, and an engine that compacts after every turn.
//!
//! `LCM_DATA=FOLDER cargo test --release -p lcm-tests --test replay -- --nocapture` takes a month
//! of real chats, too, which has 1,559 turns. Asserted is a share of at least .97 where a share of
//! .97 can be had, and that nothing else costs less. `LCM_REPLAY_CONFIG` has another configuration
//! than the default one, of which no share is asserted. "At most" is what would be in the prompt
//! before if nothing of it ever changed: what is new in each prompt, and its last block, never are.
//!
//! A token is four bytes of what is sent. The engine sends the dialect `anthropic`, by a budget of
//! its own estimate; window and history send the dialect `lcm`. How much longer the same messages
//! are in the one than in the other is printed.

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
