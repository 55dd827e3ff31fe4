#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! What is still in the context after many turns, and what the prompts of these turns cost.
//!
//! A conversation is lived turn by turn, as a host does: a turn is appended, compaction is done
//! when it is due (with the summariser that needs no model), a context is assembled. After 10, 30,
//! 50 and 100 turns it is counted how many rare identifiers (those that occurred in one message so
//! far) stand in it literally, beside the newest messages of as many tokens, and beside those that
//! fill the whole budget. The bill is that of a provider whose cache keeps exact prefixes.
//!
//! This runs over transcripts made here, or with `LCM_DATA=FOLDER` over real ones:
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

/// Names the folder of real conversations.
const DATA: &str = "LCM_DATA";
/// How much less than the newest messages that fill the budget a context may keep.
const LESS_MAX: f64 = 0.02;
/// Least shares of real conversations after 30, 50 and 100 turns with leaves of a quarter.
const FLOORS: [(&str, [f64; 3]); 2] = [("aider", [0.76, 0.75, 0.60]), ("tau", [0.92, 0.76, 0.70])];

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
