#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Measures which share of the evidence for a typed question is in the first ten hits (recall).
//!
//! The questions are in `tests/fixtures/recall`; the `README.md` there says how they are written
//! and which half may be read while a ranking is tuned. Each question is a search by full text and
//! relevance as in `lcm grep`; the result is compared with a plain BM25 in this folder.
//!
//! Every run checks that the set is sound; the table is printed by
//! `cargo test --release -p lcm-tests --test recall -- --nocapture table`.
//! With `LCM_RECALL_MISSES=1` the evidence of the half `tune` that the engine missed follows the
//! table. With `LCM_RECALL_DUMP=FOLDER` the test writes the composed conversations and their
//! questions to that folder.
//!
//! Labelled conversations of others, in the format of LoCoMo or LongMemEval, are measured by
//! `LCM_LABELLED=FILE cargo test --release -p lcm-tests --test recall -- --nocapture others`.
//!
//! The test asserts for both halves that the engine is worse than BM25 on no kind of conversation,
//! and clearly better on average over the kinds. With `LCM_RECALL_HALF=tune` it prints and checks
//! only that half, so that nobody sees the other half while a ranking is tuned.

#[path = "recall/bm25.rs"]
mod bm25;
#[path = "recall/compose.rs"]
mod compose;
#[path = "recall/labelled.rs"]
mod labelled;
#[path = "recall/measure.rs"]
mod measure;
#[path = "recall/sound.rs"]
mod sound;
#[path = "recall/world.rs"]
mod world;

use compose::Message;
use world::World;

/// A world (the hand-written parts of a conversation) and the conversation composed from it.
struct Conversation {
    world: World,
    messages: Vec<Message>,
}

fn conversations() -> Vec<Conversation> {
    let compose = |world| Conversation { messages: compose::compose(&world), world };
    world::all().into_iter().map(compose).collect()
}

#[test]
fn the_set_is_sound() {
    let conversations = conversations();
    let mut findings = sound::sizes(&conversations);
    for conversation in &conversations {
        findings.extend(sound::messages(conversation));
        findings.extend(sound::questions(conversation));
    }
    findings.extend(sound::distinct(&conversations));
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn the_same_conversation_is_composed_every_time() {
    for (first, second) in conversations().iter().zip(conversations()) {
        let raw = |messages: &[Message]| -> Vec<String> {
            messages.iter().map(|message| message.raw.clone()).collect()
        };
        assert_eq!(raw(&first.messages), raw(&second.messages), "{}", first.world.name);
    }
}

#[test]
fn table() {
    let conversations = conversations();
    let measured = measure::measure(&conversations);
    println!("{}", sound::summary(&conversations));
    println!("{}", measure::table(&measured));
    if std::env::var_os("LCM_RECALL_MISSES").is_some() {
        println!("{}", measure::misses(&conversations, &measured));
    }
    if let Some(folder) = std::env::var_os("LCM_RECALL_DUMP") {
        measure::dump(&conversations, folder.as_ref());
    }
    // These assertions are about the set: it must measure something. They do not rate the engine.
    let all: Vec<_> = measured.iter().collect();
    assert!(measure::mean(&all, |figures| figures.engine_within) > 0.2, "grep finds nothing");
    let mut findings = measure::spread(&measured);
    for half in measure::halves() {
        findings.extend(measure::worse(&measured, half));
    }
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

/// Measures the labelled conversations of others; without `LCM_LABELLED`, small invented ones, so
/// that the command is tested.
#[test]
fn others() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/labelled");
    let files = match std::env::var_os("LCM_LABELLED") {
        Some(file) => vec![file.into()],
        None => vec![fixtures.join("locomo.json"), fixtures.join("longmemeval.json")],
    };
    for file in files {
        let conversations = labelled::read(&file);
        // A question of LongMemEval has a conversation of its own; several of them are asked in
        // one store, as many as a machine holds.
        for several in conversations.chunks(50) {
            let measured = measure::measure(several);
            assert!(!measured.is_empty(), "no question with evidence in {file:?}");
            println!("{}", measure::table_of_others(&measured));
            for (store, [engine, baseline]) in measure::of_all(&measured) {
                assert!(engine >= baseline, "{file:?}, {store}: {engine:.3}, BM25 {baseline:.3}");
            }
        }
    }
}
