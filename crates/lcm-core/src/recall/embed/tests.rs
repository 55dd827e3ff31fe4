//! Claims about attaching vectors and finding by them, over a store in memory that checks the
//! bounds of every call.

use alloc::{format, string::String, vec::Vec};

use crate::{Engine, search::tests::Memory, storage::keys::ConversationKeys};
use lcm_text::{
    base::{error::ErrorCode, json::JsonFields},
    types::api::{AppendMode, AppendOptions, Dialect},
};

const DIMENSIONS: u64 = 24;

fn append(store: &mut Memory, from: u64, to: u64) {
    let options = AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
    let text = |seq| format!(r#"{{"role":"user","content":"word{seq}","timestamp":{seq}}}"#);
    let all: Vec<String> = (from..=to).map(text).collect();
    for messages in all.chunks(100) {
        Engine::new().append(store, "c", Dialect::Lcm, messages, &options, 1).unwrap();
    }
}

/// Returns a pseudo-random vector, different for each document.
fn vector(seq: u64, dimensions: u64) -> String {
    let number = |at: u64| {
        let mixed = (seq * 4_099 + at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 44;
        let sign = if mixed & 1 == 1 { "-" } else { "" };
        format!("{sign}0.{:06}", mixed >> 1)
    };
    let numbers: Vec<String> = (0..dimensions).map(number).collect();
    format!("[{}]", numbers.join(","))
}

fn embed(store: &mut Memory, json: &str) -> Answer {
    Answer::read(&Engine::new().embed(store, "c", json).unwrap())
}

fn grep(store: &mut Memory, json: &str) -> lcm_text::base::error::Result<String> {
    Engine::new().grep(store, "c", json, None, 9)
}

#[derive(Debug)]
struct Answer {
    kept: u64,
    missing: u64,
    stored: u64,
    next: Vec<String>,
}

impl Answer {
    fn read(json: &str) -> Self {
        let mut fields = JsonFields::parse_argument("answer", json).unwrap();
        let mut number = |key| fields.take_u64(key);
        let (kept, missing, stored) = (number("kept"), number("missing_count"), number("stored"));
        Self { kept, missing, stored, next: fields.take_texts("missing_ids") }
    }
}

/// Embeds the backlog as a host does; returns the number of calls.
fn attach_all(store: &mut Memory, dimensions: u64) -> u64 {
    let (keys, mut calls) = (ConversationKeys::new("c").unwrap(), 0);
    let mut answer = embed(store, "{}");
    while !answer.next.is_empty() {
        let entry = |id: &String| {
            let seq = keys.parse_message_id(id).unwrap();
            format!(r#"{{"id":"{id}","vector":{}}}"#, vector(seq, dimensions))
        };
        let entries: Vec<String> = answer.next.iter().map(entry).collect();
        answer = embed(store, &format!(r#"{{"vectors":[{}]}}"#, entries.join(",")));
        assert!(answer.kept > 0);
        calls += 1;
    }
    assert_eq!(answer.missing, 0);
    calls
}

fn check(store: &mut Memory) -> String {
    Engine::new().check(store, "c", None).unwrap()
}

/// Goal: a host's loop over `next` ends with a vector for each message, for any dimensions and
/// within the bounds of every call. Forgetting restores the store from before.
#[test]
fn a_backlog_is_embedded_and_forgotten() {
    for (dimensions, calls_max) in [(DIMENSIONS, 4), (4_096, 4)] {
        let mut store = Memory::default();
        append(&mut store, 1, 700);
        let before = store.entries.clone();
        let export = Engine::new().export_page(&mut store, "c", None, 1 << 20).unwrap();
        assert!(attach_all(&mut store, dimensions) <= calls_max);
        assert!(check(&mut store).contains(r#""ok":true"#), "{}", check(&mut store));
        assert_eq!(Engine::new().export_page(&mut store, "c", None, 1 << 20).unwrap(), export);
        let found = grep(
            &mut store,
            &format!(r#"{{"pattern":"absent","limit":1,"vector":{}}}"#, vector(77, dimensions)),
        );
        assert!(found.unwrap().contains(r#""snippet":"word77""#));
        let mut calls = 0;
        while embed(&mut store, r#"{"forget":true}"#).stored > 0 {
            calls += 1;
        }
        assert_eq!(calls, 3);
        assert_eq!(store.entries, before);
    }
}

/// Goal: of too many entries for a commit, the first are kept. Method: one entry in each block, so
/// that each entry also writes a block.
#[test]
fn entries_beyond_a_commit_are_not_kept() {
    let mut store = Memory::default();
    append(&mut store, 1, 64 * 140);
    let keys = ConversationKeys::new("c").unwrap();
    for (dimensions, kept) in [(DIMENSIONS, 127), (4_096, 28)] {
        let entry = |block: u64| {
            let seq = block * 64 + 9;
            format!(r#"{{"id":"{}","vector":{}}}"#, keys.message_id(seq), vector(seq, dimensions))
        };
        let entries: Vec<String> = (0..140).map(entry).collect();
        let answer = embed(&mut store, &format!(r#"{{"vectors":[{}]}}"#, entries.join(",")));
        assert_eq!((answer.kept, answer.stored), (kept, kept));
        assert!(check(&mut store).contains(r#""ok":true"#));
        while embed(&mut store, r#"{"forget":true}"#).stored > 0 {}
    }
}

/// Goal: `check` finds damage to any value of vectors, and a call on the damage fails with
/// `corrupt` at most. Method: each value truncated, changed, lost, and stored under a wrong key.
#[test]
fn damaged_vectors_are_found_and_never_panic() {
    let mut store = Memory::default();
    append(&mut store, 1, 130);
    attach_all(&mut store, DIMENSIONS);
    let keys = ConversationKeys::new("c").unwrap();
    let (from, to) = keys.record_range("v");
    let sound = store.entries.clone();
    let names: Vec<String> = sound.range(from..to).map(|(key, _)| key.clone()).collect();
    assert_eq!(names.len(), 1 + 3 + 130);
    let query = format!(r#"{{"pattern":"word7","vector":{}}}"#, vector(7, DIMENSIONS));
    let mut seen = 0;
    for name in names.iter().filter(|name| !name.contains("vmv") || name.ends_with('7')) {
        let value = sound.get(name).unwrap();
        let last = value.len() - 1;
        for change in 0..4 {
            store.entries = sound.clone();
            let changed = match change {
                0 => value.get(..last).unwrap().to_vec(),
                1 => value
                    .iter()
                    .enumerate()
                    .map(|(at, b)| b ^ (u8::from(at == last) * 128))
                    .collect(),
                2 => [&value[..], &[1]].concat(),
                _ => Vec::new(),
            };
            store.entries.insert(name.clone(), changed);
            if change == 3 {
                store.entries.remove(name);
            }
            assert!(check(&mut store).contains(r#""ok":false"#), "{name} {change}");
            for answer in [grep(&mut store, &query), Engine::new().embed(&mut store, "c", "{}")] {
                if let Err(error) = answer {
                    assert_eq!(error.code, ErrorCode::Corrupt, "{name} {change}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 10);
    // A vector of a message that does not exist.
    store.entries = sound.clone();
    let stray = keys.vector_key('m', 'v', 131);
    store.entries.insert(stray.clone(), sound.get(&keys.vector_key('m', 'v', 1)).unwrap().clone());
    assert!(check(&mut store).contains(&stray));
}

/// Goal: the conditions of a query apply to vector hits. Method: a window without the nearest
/// messages, and required words.
#[test]
fn vector_hits_meet_the_conditions_of_the_query() {
    let mut store = Memory::default();
    append(&mut store, 1, 200);
    attach_all(&mut store, DIMENSIONS);
    let near = vector(7, DIMENSIONS);
    let found = |store: &mut Memory, more: &str| {
        grep(store, &format!(r#"{{"limit":3,"vector":{near},{more}}}"#)).unwrap()
    };
    assert!(found(&mut store, r#""pattern":"absent""#).contains(r#""snippet":"word7""#));
    let later = found(&mut store, r#""pattern":"absent","since":100000"#);
    assert!(later.contains(r#""snippet":"word1"#) && !later.contains(r#""snippet":"word7""#));
    let must = found(&mut store, r#""pattern":"+word9""#);
    assert!(must.contains(r#""snippet":"word9""#) && must.contains(r#""total":1,"#), "{must}");
    let without = found(&mut store, r#""pattern":"absent -word7""#);
    assert!(!without.contains(r#""snippet":"word7""#));
    assert!(
        found(&mut store, r#""pattern":"absent","scope":"summaries""#).contains(r#""total":0"#)
    );
}

/// Goal: only `null` removes a vector. Method: an entry without `vector`, and an entry with a
/// misspelled `vector`.
#[test]
fn an_entry_without_a_vector_is_refused_and_removes_nothing() {
    let mut store = Memory::default();
    append(&mut store, 1, 2);
    attach_all(&mut store, DIMENSIONS);
    let id = ConversationKeys::new("c").unwrap().message_id(1);
    for entry in [format!(r#"{{"id":"{id}"}}"#), format!(r#"{{"id":"{id}","vectors":[1]}}"#)] {
        let json = format!(r#"{{"vectors":[{entry}]}}"#);
        let refused = Engine::new().embed(&mut store, "c", &json).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidInput);
        assert!(refused.message.contains("`vector`"), "{}", refused.message);
        assert_eq!(embed(&mut store, "{}").stored, 2);
    }
    let json = format!(r#"{{"vectors":[{{"id":"{id}","vector":null}}]}}"#);
    assert_eq!(embed(&mut store, &json).stored, 1);
}
