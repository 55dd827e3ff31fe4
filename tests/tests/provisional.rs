#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! Compaction with a model that fails in every way, and later works again.
//!
//! A life is a random sequence of turns, `maintain`, `compact`, `resummarize` and new sessions of a
//! conversation. For some calls in a row its model refuses the key, limits the rate, breaks, times
//! out, has no room for the prompt, refuses, gives an empty answer, or is cut off; or the offline
//! summariser takes its place. At the end the model works. Then `maintain` is called until no work
//! is left, and no provisional summary may remain. A turn may ask a broken model at most once per
//! pause, and all invariants must be true at all times.
//!
//! `LCM_LIVES=2000 cargo test --release -p lcm-tests --test provisional` runs more lives, and
//! `LCM_SEED=N ... -- --nocapture` one.

#[path = "provisional/life.rs"]
mod life;

use life::Figures;

/// Number of lives without `LCM_LIVES`.
const LIVES: u64 = 120;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

#[test]
fn after_the_model_is_back_nothing_stays_provisional() {
    let mut figures = Figures::default();
    if let Some(seed) = number("LCM_SEED") {
        life::lead_life(seed, &mut figures);
        println!("{figures:?}");
        return;
    }
    for seed in 0..number("LCM_LIVES").unwrap_or(LIVES) {
        let outcome = std::panic::catch_unwind(|| {
            let mut figures = Figures::default();
            life::lead_life(seed, &mut figures);
            figures
        });
        match outcome {
            Ok(of_life) => figures.add(&of_life),
            Err(panic) => {
                println!(
                    "repeat with LCM_SEED={seed} cargo test --release -p lcm-tests --test \
                     provisional"
                );
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{figures:?}");
    figures.every_kind_occurred();
}
