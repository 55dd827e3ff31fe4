#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! Deletions: after a deletion nothing of the deleted conversation is read, listed, found or left
//! in any record, and everything else stays. This is true for any content of the store, any time
//! of the deletion, a crash at any store operation, and any other call at the same time.
//!
//! `LCM_SEEDS=1000` sets the number of lives (random stores); `LCM_SEED=123` runs one.

#[path = "deletion/race.rs"]
mod race;
#[path = "deletion/traces.rs"]
mod traces;
#[path = "deletion/world.rs"]
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use lcm_core::ErrorCode;
use lcm_testing::{Fault, Host, Json, simulation::random::Random};
use traces::Traces;
use world::{DELETED, World};

/// Number of lives of a run without `LCM_SEEDS`.
const SEEDS: u64 = 60;
/// Kinds of records that the deletions of a run find, as the letters of their keys: records of
/// other conversations that name the deleted one (in upper case), then its own records.
const KINDS: &str = "GHKLabcdefghijklmnoprstuvwxyz";
/// Largest number of calls of one deletion, so that a test ends.
const CALLS_MAX: u32 = 1_000;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// Calls `delete` once.
fn delete(host: &mut Host, resume: bool, now: u64) -> Result<Json, lcm_core::Error> {
    let arguments = format!(
        r#"{{"conversation":"{DELETED}","verb":"delete","now":{now},
            "arguments_json":{{"resume":{resume}}}}}"#
    );
    host.told("admin.call", &arguments)
}

/// Calls `delete` until it is done and returns the receipt.
fn delete_all(host: &mut Host, now: u64) -> Json {
    for _ in 0..CALLS_MAX {
        let receipt = delete(host, false, now).unwrap();
        if receipt.field("done") == Some(&Json::Bool(true)) {
            return receipt;
        }
    }
    panic!("the deletion does not end");
}

/// Checks that every call on a conversation that is being deleted is refused, and that calls on
/// other conversations do not show it.
fn check_is_refused(world: &mut World, place: &str) {
    let now = world.now;
    for (name, more) in [
        ("ingest.append", r#""messages":[{"role":"user","content":"hello"}]"#),
        ("admin.status", r#""now":1"#),
        ("admin.check", ""),
        ("admin.export_page", ""),
        ("recall.messages", r#""seq_first":1,"seq_last":9"#),
        ("recall.describe", r#""id":"sum_0011223344556677","options_json":{}"#),
        ("recall.grep", r#""query_json":{"pattern":"zebra"}"#),
        ("recall.grant", r#""grant_json":{}"#),
        ("recall.ask_plan", r#""question_json":{"question":"where is the zebra?"}"#),
        ("context.assemble", r#""budget":5000,"dialect":"lcm""#),
        ("compaction.plan", r#""budget":5000"#),
        ("admin.call", r#""verb":"reset","arguments_json":{}"#),
        ("admin.call", r#""verb":"archive","arguments_json":{"cause":"idle"}"#),
    ] {
        let comma = if more.is_empty() { "" } else { "," };
        let arguments = format!(r#"{{"conversation":"{DELETED}"{comma}{more}}}"#);
        let error = world.host.told(name, &arguments).unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{place}: {name}: {error}");
        assert!(error.message.contains("is being deleted"), "{place}: {name}: {error}");
    }
    let grant = format!(r#"{{"grant_json":{{"conversations":["{DELETED}","a"]}},"now":{now}}}"#);
    let error = world.call("a", "recall.grant", &grant).unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied, "{place}: {error}");
    check_is_hidden(world, place);
    let deletions = world.host.told("admin.listing", r#"{"kind":"deletions"}"#).unwrap();
    assert_eq!(deletions.list("items").len(), 1, "{place}: {deletions}");
}

/// Checks that no list, family or search has the conversation.
fn check_is_hidden(world: &mut World, place: &str) {
    let listed = world.host.told("admin.listing", r#"{"kind":"conversations"}"#).unwrap();
    let ids: Vec<String> =
        listed.list("items").iter().map(|row| row.text("conversation")).collect();
    assert!(!ids.iter().any(|id| id == DELETED), "{place}: {ids:?}");
    for query in [
        r#"{"query_json":{"pattern":"zebra","all_conversations":true}}"#,
        r#"{"query_json":{"pattern":"zebra"}}"#,
        r#"{"query_json":{"pattern":"zeb.a","mode":"regex","all_conversations":true}}"#,
    ] {
        let found = world.call("b", "recall.grep", query).unwrap();
        assert_eq!(found.number("total"), 0, "{place}: {query}: {found}");
    }
    let status = world.call("b", "admin.status", "{}").unwrap();
    assert_eq!(status.text("conversation"), "b", "{place}");
}

/// Runs one life: a store with conversations that name each other, and a deletion with crashes.
fn live(seed: u64, kinds: &mut BTreeSet<char>) -> (u32, u32) {
    let mut random = Random::new(seed);
    let mut world = World::new(seed);
    for _ in 0..random.between(2, 24) {
        world.act(&mut random);
    }
    let traces = Traces::of(&world.host.store);
    let before = world.host.store.entries().clone();
    kinds.extend(before.iter().filter_map(|(key, value)| traces.kind(key, value)));
    let counted = world.call(DELETED, "admin.check", "{}").unwrap();
    let counted = counted.field("metrics").unwrap().clone();
    let (mut calls, mut crashes, mut has_begun) = (0, 0, false);
    world.host.cold = random.chance(300);
    let receipt = loop {
        calls += 1;
        assert!(calls < CALLS_MAX, "seed {seed}: the deletion does not end");
        world.now += random.between(0, 2_000);
        if random.chance(400) {
            let fault = *random.pick(&[Fault::Before, Fault::ReplyLost]);
            world.host.plan_fault(random.between(1, 6), fault);
        }
        let now = world.now;
        let answer = delete(&mut world.host, has_begun, now);
        if let Err(error) = &answer {
            assert_eq!(error.code, ErrorCode::StoreUnavailable, "seed {seed}: {error}");
            crashes += 1;
        }
        world.host.clear_fault();
        let is_tombstone = world.host.store.entries().keys().any(|key| key.starts_with("x/"));
        has_begun |= is_tombstone;
        let place = format!("seed {seed}, call {calls}");
        match answer {
            Ok(receipt) if receipt.field("done") == Some(&Json::Bool(true)) => break receipt,
            _ if is_tombstone && random.chance(300) => check_is_refused(&mut world, &place),
            // The reply to the last commit was lost.
            _ if has_begun && !is_tombstone => break Json::Null,
            _ => {}
        }
    };
    let place = format!("seed {seed}");
    if receipt != Json::Null && receipt.number("records") > 0 {
        assert_eq!(receipt.number("messages"), counted.number("messages"), "{place}");
        assert!(receipt.number("bytes") >= counted.field("bytes").unwrap().number("total"));
    }
    check_is_hidden(&mut world, &place);
    assert_eq!(traces.find(&world.host.store), Vec::<String>::new(), "{place}");
    check_others_stay(&mut world, &before, &traces, &place);
    check_is_free(&mut world, &place);
    (calls, crashes)
}

/// Checks that records of other conversations are unchanged, except those that named the deleted
/// conversation.
fn check_others_stay(
    world: &mut World,
    before: &BTreeMap<String, Vec<u8>>,
    traces: &Traces,
    place: &str,
) {
    let after = world.host.store.entries();
    for (key, value) in before {
        if traces.is_own_key(key) || traces.is_in(value) || after.get(key) == Some(value) {
            continue;
        }
        panic!("{place}: `{key}` has no trace of the deleted conversation, and changed");
    }
    for key in after.keys().filter(|key| !before.contains_key(*key)) {
        // The predecessor's archive lost its successor, with a journal entry.
        assert_eq!(key.get(22..24), Some("/j"), "{place}: `{key}` is new");
    }
    for conversation in world.others() {
        let report = world.call(&conversation, "admin.check", "{}").unwrap();
        assert_eq!(
            report.field("ok"),
            Some(&Json::Bool(true)),
            "{place}: {conversation}: {report}"
        );
        let grants = format!(r#"{{"kind":"grants","conversation":"{conversation}"}}"#);
        world.host.told("admin.listing", &grants).unwrap();
    }
}

/// Checks that the id is free: no conversation has it, and an append begins a new conversation.
fn check_is_free(world: &mut World, place: &str) {
    let error = world.call(DELETED, "admin.status", "{}").unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound, "{place}: {error}");
    let now = world.now;
    let error = delete(&mut world.host, false, now).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound, "{place}: {error}");
    let again = delete(&mut world.host, true, now).unwrap();
    assert_eq!(again.field("changed"), Some(&Json::Bool(false)), "{place}: {again}");
    let append = r#"{"messages":[{"role":"user","content":"a new beginning"}]}"#;
    let receipt = world.call(DELETED, "ingest.append", append).unwrap();
    assert_eq!(receipt.number("revision"), 1, "{place}: {receipt}");
    let status = world.call(DELETED, "admin.status", "{}").unwrap();
    assert_eq!(status.field("family"), Some(&Json::Null), "{place}: {status}");
    let messages = r#"{"seq_first":1,"seq_last":99}"#;
    let texts = world.call(DELETED, "recall.messages", messages).unwrap();
    assert_eq!(texts.elements().len(), 1, "{place}: {texts}");
    let report = world.call(DELETED, "admin.check", "{}").unwrap();
    assert_eq!(report.field("ok"), Some(&Json::Bool(true)), "{place}: {report}");
    let resumed = delete(&mut world.host, true, now).unwrap();
    assert_eq!(resumed.field("changed"), Some(&Json::Bool(false)), "{place}: {resumed}");
}

#[test]
fn deletions_with_crashes_leave_nothing_of_the_deleted_and_the_rest_untouched() {
    let (mut calls, mut crashes, mut kinds) = (0, 0, BTreeSet::new());
    let seeds = match number("LCM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("LCM_SEEDS").unwrap_or(SEEDS) + 1,
    };
    let lives = seeds.end - seeds.start;
    for seed in seeds {
        let (called, crashed) = live(seed, &mut kinds);
        calls += called;
        crashes += crashed;
    }
    let kinds: String = kinds.into_iter().collect();
    println!("{lives} deletions, {calls} calls, {crashes} crashes, records {kinds}");
    // The kinds of other conversations are archives, grants, questions and links.
    assert!(lives == 1 || kinds == KINDS, "other records than these lived: {kinds}");
    assert!(lives == 1 || u64::from(crashes) > lives / 2, "hardly any call crashed: {crashes}");
}

/// A long conversation is deleted in pieces within the bounds of a commit (above them the store of
/// the test panics), and no conversation without a link to it is read.
#[test]
fn a_long_conversation_goes_in_bounded_pieces() {
    let mut world = World::new(1);
    for _ in 0..12 {
        world.append(DELETED, 99);
    }
    for number in 0..40 {
        world.append(&format!("unrelated {number}"), 1);
    }
    let traces = Traces::of(&world.host.store);
    let entries = world.host.store.entries();
    let records: Vec<_> = entries.iter().filter(|(key, _)| traces.is_own_key(key)).collect();
    assert!(records.iter().any(|(key, _)| key.get(22..24) == Some("/q")), "no column");
    let bytes: usize = records.iter().map(|(key, value)| key.len() + value.len()).sum();
    let (mut calls, count) = (0_u64, u64::try_from(records.len()).unwrap());
    let bytes = u64::try_from(bytes).unwrap();
    let receipt = loop {
        calls += 1;
        let receipt = delete(&mut world.host, false, world.now).unwrap();
        let counts = world.host.store.counts();
        assert!(counts.get_many + counts.scan <= 4 && counts.commit == 1, "{counts:?}");
        assert!(counts.bytes_read <= 1 << 20 && counts.puts <= 256, "{counts:?}");
        if receipt.field("done") == Some(&Json::Bool(true)) {
            break receipt;
        }
    };
    println!("{count} records, {bytes} bytes, {calls} calls");
    assert!(calls <= 4 + count / 250 + bytes / (1 << 20), "{calls} calls");
    assert_eq!((receipt.number("records"), receipt.number("bytes")), (count, bytes));
    assert_eq!(receipt.number("messages"), 12 * 99 + 6);
    assert_eq!(traces.find(&world.host.store), Vec::<String>::new());
}
