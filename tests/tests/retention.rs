#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! Measures what a context keeps after many turns, and the costs of the prompts of these turns.
//!
//! The test makes turns as a host does: it appends a turn, compacts if this is due (with the
//! offline summariser, which needs no model), and assembles a context. After 10, 30, 50 and 100
//! turns it counts the rare identifiers (those that occurred in only one message so far) that are
//! literally in the context. It compares this with the newest messages of as many tokens, and with
//! the newest messages that fill the whole budget. The bill is that of a provider whose cache keeps
//! exact prefixes.
//!
//! The transcripts are generated, or with `LCM_DATA=FOLDER` real ones:
//! `LCM_DATA=FOLDER cargo test --release -p lcm-tests --test retention -- --nocapture`

#[path = "retention/bill.rs"]
#[expect(dead_code, reason = "pauses and forks are of the other test")]
mod bill;
#[path = "summaries/facts.rs"]
#[expect(dead_code, reason = "the other test of summaries needs more of it")]
mod facts;
#[path = "summaries/generated.rs"]
#[expect(dead_code, reason = "its floors are of the other test")]
mod generated;
#[path = "retention/life.rs"]
mod life;
#[path = "retention/sets.rs"]
#[expect(dead_code, reason = "lives of one piece are of the other test")]
mod sets;
#[path = "retention/table.rs"]
mod table;

use life::{DEFAULT, Life, OTHERS, Policy, QUARTERS, WINDOWS};
use sets::Set;
use table::Row;

/// Name of the environment variable with the folder of real conversations.
const DATA: &str = "LCM_DATA";
/// Largest difference by which a context may keep a smaller share than the newest messages that
/// fill the budget.
const LESS_MAX: f64 = 0.02;
/// Smallest shares kept of real conversations after 30, 50 and 100 turns, with leaves of a quarter
/// of a chunk.
const FLOORS: [(&str, [f64; 3]); 2] = [("aider", [0.76, 0.75, 0.55]), ("tau", [0.92, 0.76, 0.70])];

fn measure(set: &Set, policy: &Policy) -> Vec<Row> {
    let lives: Vec<Life> =
        set.windows(WINDOWS).iter().map(|turns| life::lead(turns, policy)).collect();
    assert!(!lives.is_empty(), "{}: too short", set.name);
    let rows = table::rows(&lives);
    table::print(&set.name, &rows, &lives);
    rows
}

#[test]
fn a_context_keeps_more_than_the_newest_messages_do() {
    let folder = std::env::var_os(DATA);
    let sets: Vec<Set> = match &folder {
        Some(folder) => sets::real(folder.as_ref()),
        None => sets::generated(),
    };
    println!(
        "published of the reference at 10, 30, 50, 100 turns: 27, 65, 78, 88 % of the tokens saved, \
         98, 96, 94, 92 % kept"
    );
    let mut policies = vec![DEFAULT, QUARTERS];
    policies.extend(folder.is_some().then_some(OTHERS).into_iter().flatten());
    for policy in policies {
        println!("\n{}\n{}", policy.name, table::HEADING);
        for set in &sets {
            let rows = measure(set, &policy);
            let floors = FLOORS.iter().find(|(name, _)| *name == set.name);
            for (index, row) in rows.iter().filter(|row| row.turns >= 30).enumerate() {
                let at = format!("{}, {}, {} turns", policy.name, set.name, row.turns);
                assert!(row.kept >= row.full - LESS_MAX && row.kept >= row.equal, "{at}");
                assert!(row.reached > 0.95, "{at}: {}", row.reached);
                if let Some((_, floors)) = floors.filter(|_| policy.name == QUARTERS.name) {
                    assert!(row.kept >= floors[index], "{at}: {}", row.kept);
                }
            }
        }
    }
}
