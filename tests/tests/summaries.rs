#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! How much of a conversation the offline summaries keep.
//!
//! Conversations are cut into chunks of 4,000 tokens of consecutive messages, and each chunk is
//! summarised at 20 % of its size. The test counts the kept facts that a reader could ask for by
//! name: rare facts (identifiers, numbers, paths and names that occur in only one message of the
//! chunk; in Chinese text also pairs of ideographs) and the distinct error lines. For comparison,
//! the table also has the share that the beginning of the chunk, cut at the same size, keeps.
//!
//! The transcripts are generated, or with `LCM_DATA=FOLDER` real ones in the `lcm` dialect, one
//! conversation per file, in the folders named in [`measure::SETS`].

#[path = "summaries/facts.rs"]
mod facts;
#[path = "summaries/generated.rs"]
mod generated;
#[path = "summaries/measure.rs"]
#[expect(dead_code, reason = "shared with the measurement of the verifier")]
mod measure;

use generated::Floors;
use measure::{Measured, Set};

/// Name of the environment variable with the folder of real conversations.
const DATA: &str = "LCM_DATA";
/// Smallest kept share of the distinct error lines, in percent.
const ERRORS_MIN: u32 = 60;

fn judge(rows: &[(Measured, Floors)]) {
    println!("{}", measure::HEADING);
    for (row, floors) in rows {
        println!("{row}  floor {:.2}", f64::from(floors.facts) / 100.0);
    }
    for (row, floors) in rows {
        assert!(row.chunks > 0, "{}: nothing to summarise", row.name);
        assert!(row.facts.reaches(floors.facts), "{}: rare facts: {row}", row.name);
        assert!(row.errors.reaches(floors.errors), "{}: error lines: {row}", row.name);
        let (kept, cut) = (row.facts.kept, row.facts.truncated);
        assert!(kept > cut, "{}: no better than truncation: {row}", row.name);
    }
}

#[test]
fn summaries_keep_what_can_be_asked_for_by_name() {
    let rows: Vec<(Measured, Floors)> = match std::env::var_os(DATA) {
        Some(folder) => measure::SETS
            .iter()
            .map(|set| (measure::measure(set.name, &set.read(folder.as_ref())), set.floors()))
            .collect(),
        None => generated::SETS
            .iter()
            .map(|set| (measure::measure(set.name, &(set.make)()), set.floors))
            .collect(),
    };
    judge(&rows);
}

/// Goal: the asserted shares can fail. Method: the beginning of each chunk in place of its summary.
#[test]
fn truncation_misses_the_floors() {
    for set in &generated::SETS {
        let row = measure::measure(set.name, &(set.make)());
        let (cut, all) = (row.facts.truncated, row.facts.all);
        assert!(all > 100 && cut * 100 < all * set.floors.facts, "{row}");
    }
}

#[test]
fn facts_are_what_has_a_name() {
    let text = "3: The error is in src/a.rs at line 42, says Miller. Run tau-2 or maxSize_b.";
    let found = facts::of(text, false);
    assert_eq!(Vec::from_iter(found), ["42", "Miller", "maxSize_b", "src/a.rs", "tau-2"]);
    let pairs = facts::of("\u{6570}\u{636e}\u{5e93}", true);
    assert_eq!(Vec::from_iter(pairs), ["\u{636e}\u{5e93}", "\u{6570}\u{636e}"]);
    assert!(facts::holds("see tau-2, please", "tau-2") && !facts::holds("tau-23", "tau-2"));
    assert_eq!(facts::error_windows("ok\nerror: no such\nerror: no such"), ["error: no such"]);
}

impl Set {
    fn floors(&self) -> Floors {
        Floors { facts: self.facts_min, errors: ERRORS_MIN }
    }
}
