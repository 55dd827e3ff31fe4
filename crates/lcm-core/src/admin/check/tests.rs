//! Tests of records of other derivation versions: reads, export and check accept them, and the
//! check does not compare their derived values.

use alloc::{format, rc::Rc, string::String, vec::Vec};

use super::*;
use crate::{
    Engine, Model,
    search::tests::Memory,
    storage::{
        context::{Context, ContextItem},
        head::ConversationHead,
        pack::{Pack, RawText, StoredMessage},
    },
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, json::ByteSpan, tokens},
    message::{large_payload::PayloadRecord, trust::Trust},
    types::{
        api::{
            AppendMode, AppendOptions, AssembleOptions, CompactionMode, CompactionOptions, Dialect,
        },
        model::{CompletionRequest, CompletionResult},
    },
};

const OLDER: u32 = DERIVATION_VERSION - 1;
const NEWER: u32 = DERIVATION_VERSION + 1;
const CONFIG: &str = r#"{"fresh_tail_messages_max":2,"fresh_tail_tokens_max":null,
    "leaf_chunk_tokens_max":1000,"condense_leaves_min":2,"condensed_tokens_target":512,
    "summary_prefix_tokens_target":600,"large_payload_tokens_min":1000}"#;
/// A change of a stored message.
type Change = fn(&mut StoredMessage);

/// Messages of the first append: few enough that no segment indexes them and that the head lists
/// all their packs.
const FIRST: u64 = 30;

struct Offline;

impl Model for Offline {
    fn complete(&mut self, request: &CompletionRequest) -> CompletionResult {
        CompletionResult::Done(Engine::new().complete_offline(request))
    }
}

fn engine() -> Engine {
    let mut engine = Engine::new();
    engine.configure(CONFIG).unwrap();
    engine
}

/// Builds a message of two texts; an older version may have parsed only one. Every tenth message is
/// a large payload.
fn message(seq: u64) -> String {
    let role = ["user", "assistant"][usize::from(seq.is_multiple_of(2))];
    let words: Vec<String> =
        (0..70).map(|n| format!("word{}", (seq * 31 + n * n * 7) % 997)).collect();
    let said = words.join(" ");
    if seq % 10 == 5 {
        let output = said.repeat(12);
        return format!(
            r#"{{"id":"m{seq}","role":"tool","parts":[{{"type":"tool_result",
            "call_id":"toolu_{seq:020}","name":"cat","output":"{output}"}}]}}"#
        );
    }
    format!(
        r#"{{"id":"m{seq}","role":"{role}","timestamp":{seq},"parts":[
        {{"type":"text","text":"{said}"}},{{"type":"text","text":"and then"}}]}}"#
    )
}

fn append(store: &mut Memory, from: u64, to: u64) {
    let options = AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
    let messages: Vec<String> = (from..=to).map(message).collect();
    let receipt = engine().append(store, "c", Dialect::Lcm, &messages, &options, 1).unwrap();
    assert_eq!(u64::from(receipt.ingested), to + 1 - from);
}

fn compact(store: &mut Memory, target: u32) {
    let mut sweep = None;
    for now in 0..200 {
        let options = CompactionOptions {
            mode: CompactionMode::UntilUnder,
            force: true,
            target: Some(target),
            sweep,
            ..CompactionOptions::default()
        };
        let outcome = engine().run(store, &mut Offline, "c", 100_000, &options, now).unwrap();
        if !outcome.more {
            return;
        }
        sweep = Some(outcome.sweep);
    }
    panic!("compaction does not come to an end");
}

/// Returns the metrics of a check, and the failed checks.
fn check(store: &mut Memory) -> (serde_json::Value, Vec<String>) {
    let report = engine().check(store, "c", None).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let failed = |row: &&serde_json::Value| row["status"] != "pass";
    let rows = report["checks"].as_array().unwrap().iter().filter(failed);
    let failed: Vec<String> =
        rows.map(|row| format!("{}: {}", row["name"], row["message"])).collect();
    assert_eq!(report["ok"] == true, failed.is_empty());
    (report["metrics"].clone(), failed)
}

fn assert_sound(store: &mut Memory) {
    let (_, failed) = check(store);
    assert!(failed.is_empty(), "{failed:?}");
}

fn assert_found(mut store: Memory, by: &str) {
    let (_, failed) = check(&mut store);
    assert!(failed.len() == 1 && failed[0].contains(by), "{failed:?}, not {by}");
}

fn head(store: &Memory) -> (ConversationKeys, ConversationHead) {
    let keys = ConversationKeys::new("c").unwrap();
    let head = codec::decode(&keys.head_key(), &store.entries[&keys.head_key()]).unwrap();
    (keys, head)
}

fn put<T: serde::Serialize>(store: &mut Memory, key: String, record: &T) {
    store.entries.insert(key, codec::encode(record).unwrap());
}

/// Changes all messages and rewrites the packs and the counts of the head.
fn rewrite(store: &mut Memory, change: impl Fn(&mut StoredMessage)) {
    let (keys, mut head) = head(store);
    let mut tokens_before = 0;
    for place in &mut head.packs {
        let key = place.key(&keys);
        let mut pack: Pack = codec::decode(&key, &store.entries[&key]).unwrap();
        pack.messages.iter_mut().for_each(|message| change(Rc::make_mut(message)));
        pack.tokens_before = tokens_before;
        put(store, key.clone(), &pack);
        *place = pack.to_pack_ref(int::to_u32(store.entries[&key].len()));
        tokens_before += pack.tokens();
    }
    head.raw_tokens = tokens_before;
    head.ledger.saved_tokens = 0;
    head.context = Context::default();
    head.context.append_messages(1, head.messages, 0, tokens_before);
    put(store, keys.head_key(), &head);
}

/// Changes a message as another version may have parsed it: one text, of more tokens.
fn projected_otherwise(message: &mut StoredMessage) {
    message.parts.truncate(1);
    if let Some(stand_in) = &mut message.placeholder {
        stand_in.message_tokens += 3;
    }
    message.tokens += 3;
}

/// Changes a placeholder as another version may have written its exploration.
fn stands_otherwise(message: &mut StoredMessage) {
    let Some(stand_in) = &mut message.placeholder else { return };
    let RawText::Inline(text) = &stand_in.raw else { panic!("a stand-in is short") };
    let text = text.replace("Exploration Summary", "What it is");
    let made = lcm_text::message::parse(Dialect::Lcm, &text).unwrap();
    stand_in.parts = made.parts;
    stand_in.raw = RawText::Inline(text);
    message.tokens = made.tokens;
}

fn rewrite_files(store: &mut Memory, change: impl Fn(&mut PayloadRecord)) {
    let keys = ConversationKeys::new("c").unwrap();
    let (start, end) = keys.record_range("f");
    let found: Vec<String> = store.entries.range(start..end).map(|(key, _)| key.clone()).collect();
    assert!(!found.is_empty());
    for key in found {
        let mut file: PayloadRecord = codec::decode(&key, &store.entries[&key]).unwrap();
        change(&mut file);
        put(store, key, &file);
    }
}

fn summaries(store: &Memory) -> Vec<Summary> {
    let (start, end) = ConversationKeys::new("c").unwrap().record_range("s");
    let range = store.entries.range(start..end);
    range.map(|(key, value)| codec::decode(key, value).unwrap()).collect()
}

/// Rewrites a summary and its context item with more tokens, in a record of the same size, which
/// the search index knows.
fn recount(store: &mut Memory, rules: u32) {
    let (keys, head) = head(store);
    let mut items = head.context.inline_items().to_vec();
    let is_summary = |item: &&mut ContextItem| item.depth().is_some();
    let Some(ContextItem::Summary(item)) = items.iter_mut().find(is_summary) else {
        panic!("no summary")
    };
    let key = keys.summary_key(item.id);
    let old = store.entries[&key].clone();
    // The name of the model fills the record up to the size that it had.
    let names = "qwertzuiopasdfghjklyxcvbnm0123456789";
    let changed = (0..names.len() * 200).find_map(|number| {
        let mut record: Summary = codec::decode(&key, &old).unwrap();
        record.derivation_version = rules;
        record.tokens += 1 + u32::try_from(number / names.len()).unwrap();
        record.model = names.chars().take(number % names.len()).collect();
        let value = codec::encode_compressed(&record).unwrap();
        (value.len() == old.len()).then_some((value, record.tokens))
    });
    let (value, tokens) = changed.unwrap();
    store.entries.insert(key, value);
    item.tokens = tokens;
    replace_items(store, &items);
}

/// Replaces the items of a short context.
fn replace_items(store: &mut Memory, items: &[ContextItem]) {
    let (keys, mut head) = head(store);
    let old = head.context.inline_items().to_vec();
    let (context, puts) =
        head.context.replace_items(&keys, head.revision, &old, 0..old.len(), items).unwrap();
    assert!(puts.is_empty());
    head.context = context;
    head.ledger.saved_tokens = head.raw_tokens - head.context.tokens;
    put(store, keys.head_key(), &head);
}

/// Changes everything that another version may derive differently, in messages that are not
/// compacted.
fn derive_otherwise(store: &mut Memory, rules: u32) {
    rewrite(store, |message| {
        message.derivation_version = rules;
        stands_otherwise(message);
        projected_otherwise(message);
    });
    rewrite_files(store, |file| {
        file.rules = rules;
        file.exploration.push_str("; and more");
    });
}

fn copy(store: &Memory) -> Memory {
    let mut copy = Memory::default();
    copy.entries.clone_from(&store.entries);
    copy
}

fn export(store: &mut Memory) -> Vec<String> {
    let page = engine().export_page(store, "c", None, 1 << 20).unwrap();
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    assert!(page["cursor"].is_null(), "more than a page");
    let lines = page["lines"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap().into()).collect()
}

fn import(store: &mut Memory, lines: &[String]) -> crate::Result<()> {
    let (mut at, mut cursor) = (0, None::<String>);
    for _ in 0..500 {
        let answer = engine().import_page(store, &lines[at..], cursor.as_deref(), 9)?;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        at += usize::try_from(answer["consumed"].as_u64().unwrap()).unwrap();
        at = if answer["rewind"] == true { 0 } else { at };
        cursor = answer["cursor"].as_str().map(Into::into);
        if cursor.is_none() {
            return Ok(());
        }
    }
    panic!("the import does not come to an end");
}

/// Goal: the check accepts records of another version beside current records, compressed or not,
/// and the conversation can be continued. Method: rewrites messages, payloads and summaries as an
/// older and a newer version may have stored them, then appends and compacts.
#[test]
fn values_of_other_rules_are_sound_and_their_conversation_goes_on() {
    for (rules, count) in [(OLDER, "messages_older_rules"), (NEWER, "messages_newer_rules")] {
        let mut store = Memory::default();
        append(&mut store, 1, FIRST);
        derive_otherwise(&mut store, rules);
        assert_sound(&mut store);
        append(&mut store, FIRST + 1, 100);
        compact(&mut store, 10_000);
        let records = summaries(&store);
        assert!(records.iter().any(|record| record.depth > 0 && record.derivation_version == 0));
        assert!(
            records
                .iter()
                .any(|record| record.depth == 0 && record.derivation_version == DERIVATION_VERSION)
        );
        recount(&mut store, rules);
        assert_sound(&mut store);
        append(&mut store, 101, 180);
        compact(&mut store, 1_500);

        let (metrics, failed) = check(&mut store);
        assert!(failed.is_empty(), "{failed:?}");
        let counts = ["messages_older_rules", "messages_newer_rules"].map(|key| &metrics[key]);
        assert_eq!(metrics[count], FIRST);
        assert_eq!(counts.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), FIRST, "{metrics}");
        let (_, head) = head(&store);
        assert!(head.compressed_through > FIRST, "sealed together: {}", head.compressed_through);
        assert!(summaries(&store).len() > records.len());

        let options = AssembleOptions::default();
        let lcm = Dialect::Lcm;
        let assembled = engine().assemble(&mut store, "c", 4_000, lcm, &options, 1).unwrap();
        assert!(assembled.summaries > 0);
        for record in summaries(&store) {
            let name = crate::storage::summary::format_summary_id(record.id());
            let answer = engine().describe(&mut store, "c", &name, "{}", None, 1).unwrap();
            assert!(answer.contains(&name));
        }
        let texts = engine().messages(&mut store, "c", 1, 1, 1 << 20).unwrap();
        assert_eq!(texts, [message(1)]);
    }
}

/// Goal: deviations that another version may cause are damage in records of the current version.
/// Method: one deviation at a time.
#[test]
fn the_same_deviations_are_found_where_the_rules_are_current() {
    let mut store = Memory::default();
    append(&mut store, 1, FIRST);
    assert_sound(&mut store);

    let mut other = copy(&store);
    rewrite(&mut other, projected_otherwise);
    assert_found(other, "the projection of message 1 differs");
    let mut other = copy(&store);
    rewrite(&mut other, stands_otherwise);
    assert_found(other, "the placeholder of message 5 does not match its text");
    let mut other = copy(&store);
    rewrite_files(&mut other, |file| file.exploration.push_str("; and more"));
    assert_found(other, "a payload of message");

    append(&mut store, FIRST + 1, 100);
    compact(&mut store, 7_000);
    let mut other = copy(&store);
    recount(&mut other, DERIVATION_VERSION);
    assert_found(other, "differ from its text");
    let mut items = head(&store).1.context.inline_items().to_vec();
    let Some(ContextItem::Summary(item)) = items.first_mut() else { panic!("no summary") };
    item.rendered_tokens += 1;
    replace_items(&mut store, &items);
    assert_found(store, "differs from its record");
}

/// Goal: values that do not depend on the derivation version are compared in all versions. Method:
/// one kind of damage at a time, in messages of an older version.
#[test]
fn damage_is_found_whatever_the_rules() {
    let mut store = Memory::default();
    append(&mut store, 1, FIRST);
    derive_otherwise(&mut store, OLDER);
    assert_sound(&mut store);
    let far = ByteSpan { start: 1 << 20, length: 4 };
    let damage: [(&str, Change); 4] = [
        ("the projection of message 1 differs", |message| message.entry_id = None),
        ("the projection of message 1 differs", |message| {
            let RawText::Inline(text) = &mut message.raw else { return };
            *text = text.replacen("and then", "and thus", 1);
        }),
        ("the projection of message 5 differs", |message| {
            if let Some(call) = &mut message.call_key {
                call.start += 1 << 20;
            }
        }),
        ("the placeholder of message 5", |message| {
            let Some(stand_in) = &mut message.placeholder else { return };
            let length = if let RawText::Inline(text) = &stand_in.raw { text.len() } else { 0 };
            let span = ByteSpan { start: int::to_u32(length), length: 1 };
            stand_in.parts.push(lcm_text::message::Part::Text { text: span });
        }),
    ];
    for (by, change) in damage {
        let mut other = copy(&store);
        rewrite(&mut other, change);
        let (_, failed) = check(&mut other);
        assert!(failed.iter().any(|finding| finding.contains(by)), "{failed:?}, not {by}");
    }
    let mut other = copy(&store);
    rewrite(&mut other, |message| {
        message.parts.push(lcm_text::message::Part::Other { value: far });
    });
    assert_found(other, "the projection of message 1 differs");
    for kind in ["f", "i"] {
        let (start, end) = ConversationKeys::new("c").unwrap().record_range(kind);
        let keys: Vec<String> =
            store.entries.range(start..end).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let mut other = copy(&store);
            other.entries.remove(&key);
            assert_found(other, &key);
        }
    }
}

/// Goal: an import derives the values of another version anew. Method: imports into an empty store,
/// whose records must all have the current version and pass the check.
#[test]
fn an_export_of_other_rules_is_taken_in_and_derived_anew() {
    for rules in [OLDER, NEWER] {
        let mut store = Memory::default();
        append(&mut store, 1, FIRST);
        derive_otherwise(&mut store, rules);
        append(&mut store, FIRST + 1, 100);
        compact(&mut store, 10_000);
        recount(&mut store, rules);
        let lines = export(&mut store);
        // An older version does not derive the items of a newer version anew.
        let again = import(&mut copy(&store), &lines).map_err(|error| error.code);
        let newer = if rules == NEWER { Err(ErrorCode::Unsupported) } else { Ok(()) };
        assert_eq!(again, newer);
        compact(&mut store, 1_500);
        let lines = export(&mut store);
        let mut other = Memory::default();
        import(&mut other, &lines).unwrap();
        assert_sound(&mut other);
        let (old, new) = (summaries(&store), summaries(&other));
        assert_eq!(old.len(), new.len());
        assert!(new.iter().all(|record| record.derivation_version == DERIVATION_VERSION));
        assert!(new.iter().all(|record| record.tokens == tokens::estimate(&record.text)));
        assert!(new.iter().any(|record| record.depth > 0));
        let differ = old.iter().zip(&new).filter(|(a, b)| a.message_tokens != b.message_tokens);
        assert!(differ.count() > 0, "nothing was to be taken anew");
        let before = other.entries.clone();
        import(&mut other, &lines).unwrap();
        assert!(other.entries == before, "a second time changes something");
    }
}

/// Goal: if the store has messages of another version, an import derives the totals of leaves and
/// of condensed summaries anew. Method: leaves first, then condensed summaries.
#[test]
fn an_export_is_taken_in_where_messages_of_other_rules_are_stored() {
    let mut store = Memory::default();
    append(&mut store, 1, 100);
    let mut other = Memory::default();
    append(&mut other, 1, FIRST);
    derive_otherwise(&mut other, OLDER);
    compact(&mut store, 7_000);
    for target in [7_000, 2_000] {
        compact(&mut store, target);
        import(&mut other, &export(&mut store)).unwrap();
        assert_sound(&mut other);
        assert_eq!(summaries(&other).len(), summaries(&store).len());
    }
    let records = summaries(&other);
    assert!(records.iter().any(|record| record.depth > 0 && record.derivation_version == 0));
}

/// Goal: the check finds, and an import refuses, a summary that has not the least trust of its
/// sources. Method: a leaf, then a condensed summary, with another trust.
#[test]
fn a_label_above_the_sources_is_found_and_refused() {
    let mut store = Memory::default();
    append(&mut store, 1, 100);
    compact(&mut store, 1_500);
    for is_leaf in [true, false] {
        let mut records = summaries(&store).into_iter();
        let record = records.rfind(|record| (record.depth == 0) == is_leaf).unwrap();
        assert_eq!(record.trust, Trust::Untrusted);
        let id = record.id();
        let mut other = copy(&store);
        let lying = Summary { trust: Trust::Trusted, ..record };
        put(&mut other, ConversationKeys::new("c").unwrap().summary_key(id), &lying);
        let wrong = format!(
            "the trust of `{}` is trusted, its messages have untrusted",
            crate::storage::summary::format_summary_id(id)
        );
        let follows = format!(
            "the depth, range, totals or trust of `{}` do not match its sources",
            crate::storage::summary::format_summary_id(id)
        );
        let (_, failed) = check(&mut other);
        let expected = if is_leaf { wrong } else { follows };
        assert!(failed.iter().any(|found| found.contains(&expected)), "{failed:?}: {expected}");
        assert!(import(&mut Memory::default(), &export(&mut other)).is_err());
    }
}

/// Goal: the check compares totals of the current version only. Method: a leaf that counts other
/// tokens, under both versions.
#[test]
fn wrong_sums_of_the_current_rules_are_refused() {
    let mut store = Memory::default();
    append(&mut store, 1, 60);
    compact(&mut store, 4_000);
    let leaf = summaries(&store).into_iter().find(|record| record.depth == 0).unwrap();
    let key = ConversationKeys::new("c").unwrap().summary_key(leaf.id());
    for (rules, taken) in [(DERIVATION_VERSION, false), (OLDER, true)] {
        let message_tokens = leaf.message_tokens + 1;
        put(
            &mut store,
            key.clone(),
            &Summary { derivation_version: rules, message_tokens, ..leaf.clone() },
        );
        let result = import(&mut Memory::default(), &export(&mut store));
        assert_eq!(result.is_ok(), taken, "{result:?}");
    }
}
