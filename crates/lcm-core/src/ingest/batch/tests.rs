//! Claims about packs and commits of messages whose projection outweighs their text.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    commit_limits::{PACK_RECORD_BYTES_MAX, PACKS_MAX},
    record_size::estimate_stored_bytes,
};
use crate::{
    ErrorCode,
    engine::Engine,
    storage::{
        codec,
        keys::ConversationKeys,
        pack::Pack,
        store::{Entry, Guard, Put, Store},
    },
};
use lcm_text::{
    base::error::Result,
    types::api::{AppendMode, AppendOptions, Dialect, Receipt},
};

/// More than any of these tests stores.
const MESSAGES: u64 = 200;

/// What `check` says of messages that are as stored.
const SOUND: &str = r#"{"message":"","name":"messages","status":"pass"}"#;

#[derive(Default)]
struct Map(BTreeMap<String, Vec<u8>>);

impl Store for Map {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(keys.iter().map(|key| self.0.get(key).cloned()).collect())
    }

    fn scan(&mut self, _: &str, _: &str, _: bool, _: u32, _: u32) -> Result<(Vec<Entry>, bool)> {
        Ok((Vec::new(), false))
    }

    fn commit(&mut self, _: &[Guard], puts: &[Put]) -> Result<()> {
        for put in puts {
            self.0.insert(put.key.clone(), put.value.clone().unwrap_or_default());
        }
        Ok(())
    }
}

fn append(store: &mut Map, messages: &[String], partial: bool) -> Result<Receipt> {
    let options = AppendOptions { append_mode: AppendMode::New, partial, extra_json: None };
    Engine::new().append(store, "c", Dialect::Lcm, messages, &options, 1)
}

/// A message of so many zeros.
fn zeros(count: usize) -> String {
    let list = alloc::vec!["0"; count].join(",");
    format!("{{\"role\":\"user\",\"content\":[{list}]}}")
}

fn packs(store: &Map) -> Vec<Pack> {
    let keys = ConversationKeys::new("c").unwrap();
    (1..=MESSAGES)
        .map(|seq| keys.pack_key(seq))
        .filter_map(|key| Some((store.0.get(&key)?, key)))
        .map(|(value, key)| {
            assert!(value.len() <= PACK_RECORD_BYTES_MAX, "{key}: {}", value.len());
            codec::decode(&key, value).unwrap()
        })
        .collect()
}

#[test]
fn messages_of_very_many_elements_go_in() {
    let mut store = Map::default();
    let messages = alloc::vec![zeros(30_000); 8];
    assert_eq!(append(&mut store, &messages, false).unwrap().ingested, 8);
    let stored: usize = packs(&store).iter().map(|pack| pack.messages.len()).sum();
    assert_eq!(stored, 8);
    let report = Engine::new().check(&mut store, "c", None).unwrap();
    assert!(report.contains(SOUND), "{report}");
}

#[test]
fn packs_are_cut_by_the_size_of_their_record() {
    let mut store = Map::default();
    let messages = alloc::vec![zeros(1_000); 30];
    assert_eq!(append(&mut store, &messages, false).unwrap().ingested, 30);
    let packs = packs(&store);
    assert!(packs.len() > 1, "30 times 2 KB of text alone would be one pack");
    for pack in &packs {
        let value = codec::encode(pack).unwrap();
        let estimate: usize = pack
            .messages
            .iter()
            .map(|m| estimate_stored_bytes(m.raw.bytes() as usize, 0, &m.parts))
            .sum();
        assert!(value.len() <= estimate, "{} {estimate}", value.len());
    }
}

#[test]
fn a_batch_is_cut_or_refused_by_the_size_of_its_records() {
    let mut store = Map::default();
    let messages = alloc::vec![zeros(1_100); 100];
    let error = append(&mut store, &messages, false).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitExceeded);
    assert!(store.0.is_empty());
    let receipt = append(&mut store, &messages, true).unwrap();
    let count = receipt.ingested;
    assert!((40..100).contains(&count), "{count}");
    assert!(
        error.message.contains(&format!("the first {count} of 100 messages")),
        "{}",
        error.message
    );
    assert_eq!(receipt.skipped, 0);
    let first = messages.get(..count as usize).unwrap();
    assert_eq!(append(&mut Map::default(), first, false).unwrap().ingested, count);
    assert!(packs(&store).len() <= PACKS_MAX);
}

#[test]
fn a_result_in_a_user_message_is_nothing_the_user_said() {
    let mut store = Map::default();
    let messages = [
        r#"{"role":"user","content":"question"}"#,
        r#"{"role":"assistant","content":[{"type":"tool_call","id":"a"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","call_id":"a"},
            {"type":"text","text":"x"}]}"#,
    ];
    append(&mut store, &messages.map(String::from), false).unwrap();
    let status = Engine::new().status(&mut store, Some("c"), 1).unwrap();
    assert!(status.contains("\"newest_user_seq\":1"), "{status}");
    let report = Engine::new().check(&mut store, "c", None).unwrap();
    assert!(report.contains(SOUND), "{report}");
}
