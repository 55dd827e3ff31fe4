#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! All steps of a host without a model: it appends a conversation, compacts after every turn,
//! assembles, expands, and compares every message with the appended one.

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::{
        invariants::{self, Item},
        random::Random,
        reference::{Message, Reference},
        workload::Workload,
    },
    vector_runner::{Answers, drive},
};

const TURNS: u64 = 120;

/// Returns the turns of a conversation; the messages of a turn are appended together.
fn turns(seed: u64) -> Vec<Vec<Message>> {
    let mut random = Random::new(seed);
    let mut workload = Workload::new("journey", true);
    (0..TURNS)
        .map(|_| (0..random.between(1, 4)).flat_map(|_| workload.next(&mut random)).collect())
        .collect()
}

fn append(host: &mut Host, turn: &[Message]) {
    let texts = turn.iter().map(|message| message.carried.as_str().into()).collect();
    host.ask("ingest.append", &Json::object([("messages", Json::Array(texts))])).unwrap();
}

fn compact(host: &mut Host, budget: u64) -> Json {
    let args = Json::object([("budget", budget.into())]);
    drive(host, &args, Answers::Offline).unwrap().unwrap()
}

fn items(host: &mut Host, budget: u64) -> (Json, Vec<Item>) {
    let assembled = invariants::assemble(host, "c", budget).unwrap();
    let items = invariants::items(&assembled).unwrap();
    (assembled, items)
}

#[test]
fn every_turn_fits_its_budget_and_every_message_comes_back() {
    for (budget, mode) in [
        (3_000, StoreMode::Plain),
        (16_000, StoreMode::Plain),
        (16_000, StoreMode::WouldBlock),
        (200_000, StoreMode::Plain),
    ] {
        let mut host = Host::new(None, mode).unwrap();
        let mut reference = Reference::default();
        let mut passes = 0;
        for turn in turns(7) {
            append(&mut host, &turn);
            reference.append(&turn, true);
            if reference.is_empty() {
                continue;
            }
            passes += compact(&mut host, budget).field("passes").unwrap().elements().len();
            let (assembled, items) = items(&mut host, budget);
            invariants::the_context_fits_its_budget(&assembled, budget).unwrap();
            invariants::context_items_partition_the_sequence(&items, reference.len()).unwrap();
            invariants::the_transcript_is_valid(&mut host, &assembled, &reference).unwrap();
        }
        invariants::all_again(&mut host, "c", &reference, budget).unwrap();
        println!("{budget}, {mode:?}: {} messages, {passes} passes", reference.len());
        assert!(budget > 100_000 || passes > 10, "too little was compacted to prove anything");
    }
}

#[test]
fn the_same_journey_leaves_the_same_store() {
    let mut digests = Vec::new();
    for (mode, cold) in
        [(StoreMode::Plain, false), (StoreMode::Plain, true), (StoreMode::WouldBlock, false)]
    {
        let mut host = Host::new(None, mode).unwrap();
        host.cold = cold;
        for turn in turns(11) {
            append(&mut host, &turn);
            compact(&mut host, 6_000);
        }
        digests.push(host.store.digest());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");
}

#[test]
fn a_transcript_given_again_changes_nothing() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for turn in turns(13) {
        append(&mut host, &turn);
        compact(&mut host, 6_000);
    }
    let before = host.store.digest();
    for turn in turns(13) {
        let texts = turn.iter().map(|message| message.carried.as_str().into()).collect();
        let args = Json::object([("messages", Json::Array(texts))]);
        let receipt = host.ask("ingest.append", &args).unwrap();
        assert_eq!(receipt.field("ingested"), Some(&Json::Number(0)), "{receipt}");
    }
    assert_eq!(host.store.digest(), before, "a replay of what is stored writes nothing");
}

#[test]
fn a_copy_of_the_store_goes_on_like_the_original() {
    let mut first = Host::new(None, StoreMode::Plain).unwrap();
    let turns = turns(17);
    let (begin, rest) = turns.split_at(60);
    for turn in begin {
        append(&mut first, turn);
        compact(&mut first, 6_000);
    }
    let mut second = Host::new(None, StoreMode::Plain).unwrap();
    second.store = first.store.clone();
    for turn in rest {
        for host in [&mut first, &mut second] {
            append(host, turn);
            compact(host, 6_000);
        }
    }
    assert_eq!(first.store.digest(), second.store.digest());
    let args = Json::of(r#"{"logical":true}"#);
    assert_eq!(
        first.ask("admin.digest", &args).unwrap(),
        second.ask("admin.digest", &args).unwrap()
    );
}

#[test]
fn the_logical_digest_does_not_depend_on_how_messages_are_batched() {
    let messages: Vec<Message> = turns(19).into_iter().take(40).flatten().collect();
    let mut digests = Vec::new();
    for size in [1, 7, 25] {
        let mut host = Host::new(None, StoreMode::Plain).unwrap();
        messages.chunks(size).for_each(|batch| append(&mut host, batch));
        compact(&mut host, 3_000);
        let logical = host.ask("admin.digest", &Json::of(r#"{"logical":true}"#)).unwrap();
        digests.push((host.store.digest(), logical));
    }
    assert!(digests.windows(2).all(|pair| pair[0].1 == pair[1].1), "{digests:?}");
    assert_ne!(digests[0].0, digests[1].0, "other batches are other packs");
}

/// Goal: a host can check its arguments before it stores the first message. Method: calls on a
/// conversation that does not exist; an error about wrong arguments names the argument, and an
/// error about right ones names the conversation.
#[test]
fn wrong_arguments_are_named_before_the_first_message() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for (call, budget, options, code) in [
        ("compaction.evaluate", 0, "{}", "invalid-input"),
        ("compaction.evaluate", 1_000, r#"{"target":0}"#, "invalid-input"),
        ("compaction.evaluate", 1_000, r#"{"mode":"incremental"}"#, "not-found"),
        ("compaction.plan", 1_000, r#"{"target":0}"#, "invalid-input"),
        ("compaction.plan", 1_000, r#"{"mode":"incremental"}"#, "not-found"),
        ("compaction.evaluate", 1_000, r#"{"target":1}"#, "not-found"),
        ("compaction.plan", 1_000, "{}", "not-found"),
    ] {
        let args = Json::of(&format!(r#"{{"budget":{budget},"options":{options}}}"#));
        let error = host.call(call, &args).unwrap().unwrap_err();
        assert_eq!(error.code.as_str(), code, "{call} {budget} {options}");
    }
}
