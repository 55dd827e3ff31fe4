#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Random sequences of calls on conversations, with faults, restarts and a model that answers well
//! or badly, as models do.
//!
//! Every run has 200 seeds. `LCM_SEEDS=1000000` runs more, `LCM_SEED=123` runs one. The test prints
//! a failing seed as the command that repeats it.

use std::env;

use lcm_testing::{
    plant::Plant,
    simulation::{Failure, Figures, Settings, run_seed},
};

/// Number of seeds without `LCM_SEEDS`.
const SEEDS: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

fn first_failure(seeds: u64, settings: &Settings) -> Option<Failure> {
    (0..seeds).find_map(|seed| run_seed(seed, settings).err())
}

#[test]
fn no_seed_breaks_an_invariant() {
    let seeds = number("LCM_SEEDS").unwrap_or(SEEDS);
    let (mut total, mut failures) = (Figures::default(), Vec::new());
    for seed in 0..seeds {
        match run_seed(seed, &Settings::default()) {
            Ok(figures) => {
                total.messages += figures.messages;
                total.summaries += figures.summaries;
                total.faults += figures.faults;
                total.conflicts += figures.conflicts;
            }
            Err(failure) => {
                eprintln!("{failure}");
                failures.push(failure);
            }
        }
        if failures.len() >= 10 {
            break;
        }
    }
    println!("{seeds} seeds: {total:?}");
    assert!(failures.is_empty(), "{} seeds failed, the first is {}", failures.len(), failures[0]);
    // A simulation in which nothing happens proves nothing.
    assert!(total.messages > 20 * seeds && total.summaries > seeds, "too little happens");
    assert!(total.faults > seeds / 4 && total.conflicts > 0, "too little goes wrong");
}

#[test]
fn one_seed() {
    let Some(seed) = number("LCM_SEED") else { return };
    match run_seed(seed, &Settings::default()) {
        Ok(figures) => println!("seed {seed}: {figures:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn finds(plant: Plant, why: &[&str]) {
    let settings = Settings { plant, ..Settings::default() };
    let failure = first_failure(SEEDS, &settings).expect("a planted bug is found");
    println!("{plant:?} was found: {failure}");
    assert!(
        why.iter().any(|text| failure.why.contains(text)),
        "{plant:?} was not found for what it is: {failure}"
    );
}

#[test]
fn a_skipped_guard_is_found() {
    finds(Plant::SkipsGuards, &["message", "append says"]);
}

#[test]
fn a_lost_identity_is_found() {
    finds(Plant::LosesIdentities, &["append says", "too many", "check"]);
}

#[test]
fn a_doubled_item_is_found() {
    finds(Plant::DoublesItem, &["comes item"]);
}

#[test]
fn a_lost_posting_is_found() {
    finds(Plant::LosesPostings, &["search segment"]);
}
