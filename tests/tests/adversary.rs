#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! Compaction against a model that is against it.
//!
//! A life has messages full of foreign markup and of orders, a random small configuration, and a
//! model that echoes, writes too much or nothing, garbage or another language, refuses, obeys what
//! it reads, copies our own markers, lies about outcomes, fails with every code, never answers,
//! answers twice, or answers for an old plan. However that goes: compaction ends; it ends for a
//! reason of the closed list; answers and passes are within the bounds of `docs/compaction.md`; the
//! context never grows; the store is sound; and no assembled summary has markup in it that is not
//! ours.
//!
//! `LCM_DECISIONS=1000000 cargo test --release -p lcm-tests --test adversary` tries more,
//! `LCM_SEED=N ... -- --nocapture` one life.

#[path = "adversary/life.rs"]
mod life;
#[path = "adversary/markup.rs"]
mod markup;
#[path = "adversary/model.rs"]
mod model;

use life::Figures;

/// Answers of an ordinary run.
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
