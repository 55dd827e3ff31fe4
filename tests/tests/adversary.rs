#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! Compaction with a hostile model.
//!
//! A life is one random conversation. It has messages full of foreign markup and of orders, a
//! random small configuration, and a model that echoes, writes too much or nothing, garbage or
//! another language, refuses, obeys what it reads, copies markers of the engine, lies about
//! outcomes, fails with every code, never answers, answers twice, or answers for an old plan. In
//! each life compaction must end, for a reason of the closed list. The numbers of answers and
//! passes must be within the bounds of `docs/compaction.md`. The context must never grow, the store
//! must be sound, and an assembled summary must have no markup but that of the engine.
//!
//! `LCM_DECISIONS=1000000 cargo test --release -p lcm-tests --test adversary` runs more lives;
//! `LCM_SEED=N ... -- --nocapture` runs one.

#[path = "adversary/life.rs"]
mod life;
#[path = "adversary/markup.rs"]
mod markup;
#[path = "adversary/model.rs"]
mod model;

use life::Figures;

/// Number of applied answers after which a run without `LCM_DECISIONS` ends.
const DECISIONS: u64 = 24_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

fn lead(seed: u64, figures: &mut Figures) {
    let outcome = std::panic::catch_unwind(|| life::lead(seed));
    match outcome {
        Ok(more) => figures.add(&more),
        Err(panic) => {
            println!(
                "repeat with LCM_SEED={seed} cargo test --release -p lcm-tests --test adversary"
            );
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn no_answer_breaks_compaction() {
    let mut figures = Figures::default();
    if let Some(seed) = number("LCM_SEED") {
        lead(seed, &mut figures);
        println!("{figures}");
        return;
    }
    let wanted = number("LCM_DECISIONS").unwrap_or(DECISIONS);
    let mut seed = 0;
    while figures.decisions < wanted {
        lead(seed, &mut figures);
        seed += 1;
    }
    println!("{seed} lives: {figures}");
    figures.every_kind_occurred();
}
