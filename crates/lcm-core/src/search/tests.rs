//! Tests of the index against a naive index: the same lookups over the same messages, in batches of
//! many sizes.

use crate::storage::store_session::{InstanceCache, StoreSession};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    fields::{FIELD_GAP, IndexingBudget},
    grams::unit_of_message,
    index_reader::Postings,
    *,
};
use crate::{
    Engine,
    storage::{
        head::LoadedHead,
        keys::ConversationKeys,
        store::{Entry, Guard, Put, Store},
    },
};
use lcm_text::{
    base::error::{Error, ErrorCode, Result},
    message,
    types::api::{AppendMode, AppendOptions, Dialect},
};

/// A store in memory that can answer some reads with `would-block`.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) entries: BTreeMap<String, Vec<u8>>,
    blocking: bool,
    state: u64,
}

impl Store for Memory {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if self.blocking && self.state >> 62 == 0 {
            return Err(Error::new(ErrorCode::WouldBlock, "later"));
        }
        let values: Vec<_> = keys.iter().map(|key| self.entries.get(key).cloned()).collect();
        let bytes: usize = values.iter().flatten().map(Vec::len).sum();
        assert!(bytes <= 1 << 20 && keys.len() <= 1_000, "{bytes} bytes, {} keys", keys.len());
        Ok(values)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        _reverse: bool,
        _entries_max: u32,
        _bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        let range = self.entries.range(String::from(start)..String::from(end));
        let entry =
            |(key, value): (&String, &Vec<u8>)| Entry { key: key.clone(), value: value.clone() };
        Ok((range.map(entry).collect(), false))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        assert!(puts.len() <= 256, "{} puts", puts.len());
        let bytes: usize = puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum();
        let guarded: usize =
            guards.iter().filter_map(|guard| guard.value.as_ref()).map(Vec::len).sum();
        assert!(bytes + guarded <= 1 << 20, "{bytes} bytes");
        assert!(guards.iter().all(|guard| self.entries.get(&guard.key) == guard.value.as_ref()));
        for put in puts {
            match &put.value {
                Some(value) => {
                    assert!(value.len() <= 256 << 10, "`{}`: {}", put.key, value.len());
                    self.entries.insert(put.key.clone(), value.clone());
                }
                None => {
                    self.entries.remove(&put.key);
                }
            }
        }
        Ok(())
    }
}

/// Numbers that look random, the same in every run.
pub(super) fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns message number `n`: words, of which few are frequent, with identifiers, CJK, JSON and a
/// code that only this message has.
pub(super) fn sample(n: u64) -> String {
    let mut state = n * 7_919 + 1;
    let mut words = String::new();
    for _ in 0..random(&mut state) % 60 {
        let rank = random(&mut state) % (1 + random(&mut state) % 300);
        match rank % 11 {
            7 => words.push_str(&format!("src/file_{rank}.rs ")),
            9 => words.push_str("\u{6570}\u{636e}\u{5e93} "),
            _ => words.push_str(&format!("word{rank} ")),
        }
    }
    let code = format!("code{n}");
    match n % 4 {
        0 => format!(
            r#"{{"role":"assistant","parts":[{{"type":"text","text":"{words}"}},{{"type":
            "tool_call","id":"t{n}","name":"read_file","input":{{"path":"{code}","n":{n}}}}}]}}"#
        ),
        1 => format!(
            r#"{{"role":"tool","parts":[{{"type":"tool_result","call_id":"t{}","name":"read_file",
            "output":"{words}\n{code}"}}]}}"#,
            n - 1
        ),
        _ => format!(r#"{{"role":"user","content":"{code} {words}"}}"#),
    }
}

/// The naive index: for each term the documents with the positions of the term, for each gram its
/// units.
#[derive(Default)]
pub(super) struct Naive {
    terms: BTreeMap<Vec<u8>, BTreeMap<u64, Vec<u32>>>,
    grams: BTreeMap<[u8; 3], BTreeSet<u64>>,
    lengths: Vec<u32>,
}

impl Naive {
    fn new(messages: &[String]) -> Self {
        let mut naive = Self::default();
        for (seq, raw) in (1u64..).zip(messages) {
            let message = message::parse(Dialect::Lcm, raw).unwrap();
            let mut base = 0;
            let mut budget = IndexingBudget::new(raw.len() as u64);
            each_field(raw, &message.parts, &mut |field, text| {
                each_gram(&text, &mut |gram| {
                    naive.grams.entry(gram).or_default().insert(unit_of_message(seq));
                });
                for piece in budget.take_edges(&text).into_iter().filter(|piece| !piece.is_empty())
                {
                    let count = each_term(field, piece, &mut |term, position, _| {
                        let documents = naive.terms.entry(term.to_vec()).or_default();
                        documents.entry(seq).or_default().push(base + position);
                    });
                    base += count + FIELD_GAP;
                }
            });
            naive.lengths.push(base);
        }
        naive
    }
}

pub(super) fn append(engine: &mut Engine, store: &mut Memory, messages: &[String]) -> Result<u32> {
    let options = AppendOptions { append_mode: AppendMode::New, partial: true, extra_json: None };
    loop {
        match engine.append(store, "c", Dialect::Lcm, messages, &options, 1_000) {
            Ok(receipt) => return Ok(receipt.ingested + receipt.skipped),
            Err(error) if error.code == ErrorCode::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn ingest(messages: &[String], batch: usize, blocking: bool) -> Memory {
    let mut store = Memory { blocking, ..Memory::default() };
    let mut engine = Engine::new();
    for chunk in messages.chunks(batch) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let taken = append(&mut engine, &mut store, rest).unwrap();
            rest = &rest[taken as usize..];
        }
    }
    store.blocking = false;
    store
}

pub(super) fn with_index<T>(
    store: &mut Memory,
    look: impl FnOnce(&mut StoreSession<'_>, &mut SearchIndex) -> T,
) -> T {
    let mut cache = InstanceCache::default();
    let mut session = StoreSession::new(store, &mut cache);
    let keys = ConversationKeys::new("c").unwrap();
    let (loaded, _) = LoadedHead::read_with_keys(&mut session, &keys, "c", &[]).unwrap();
    let mut index = SearchIndex::open(&mut session, &keys, &loaded.head).unwrap();
    look(&mut session, &mut index)
}

fn compare(store: &mut Memory, messages: &[String], place: &str) {
    with_index(store, |session, index| {
        let direct = index.unindexed_ranges();
        let last = direct.first().map_or(messages.len(), |range| range.0 as usize - 1);
        assert!(messages.len() - last < 64, "{place}: {direct:?}");
        let naive = Naive::new(&messages[..last]);
        let terms: Vec<Vec<u8>> = naive.terms.keys().cloned().collect();
        let found = index.read_postings(session, Corpus::Messages, &terms).unwrap();
        for ((term, documents), postings) in naive.terms.iter().zip(found) {
            let name = String::from_utf8_lossy(term);
            let expected: Vec<u64> = documents.keys().copied().collect();
            assert_eq!(postings.documents, expected, "{place}: `{name}`");
            let counts: Vec<u32> = documents.values().map(|list| list.len() as u32).collect();
            assert_eq!(postings.counts, counts, "{place}: `{name}`");
        }
        for (term, documents) in
            naive.terms.iter().filter(|(term, _)| has_positions(term)).step_by(5)
        {
            let list: Vec<u64> = documents.keys().copied().collect();
            let found = index.read_positions(session, Corpus::Messages, term, &list).unwrap();
            let expected: Vec<Vec<u32>> = documents.values().cloned().collect();
            assert_eq!(found, expected, "{place}: `{}`", String::from_utf8_lossy(term));
        }
        let grams: Vec<[u8; 3]> = naive.grams.keys().copied().collect();
        let found = index.read_units(session, Corpus::Messages, &grams).unwrap();
        for ((gram, units), found) in naive.grams.iter().zip(found) {
            let expected: Vec<u64> = units.iter().copied().collect();
            assert_eq!(found, expected, "{place}: {gram:?}");
        }
        let all: Vec<u64> = (1..=last as u64).collect();
        let lengths = index.read_lengths(session, Corpus::Messages, &all).unwrap();
        for (length, exact) in lengths.iter().zip(&naive.lengths) {
            assert!(*length >= *exact && *length <= *exact + *exact / 16 + 1, "{length} {exact}");
        }
        let roles = index.read_roles(session, &all).unwrap();
        assert_eq!(roles.len(), last);
        let absent = [b"wnothing".to_vec(), b"iabsent".to_vec()];
        for postings in index.read_postings(session, Corpus::Messages, &absent).unwrap() {
            assert_eq!(postings, Postings::default());
        }
    });
}

fn manifest(store: &Memory) -> manifest::IndexManifest {
    let keys = ConversationKeys::new("c").unwrap();
    let key = manifest::IndexManifest::key(&keys);
    let value = store.entries.get(key.name());
    value.map_or_else(manifest::IndexManifest::default, |value| key.decode(value).unwrap())
}

fn levels(store: &Memory) -> u32 {
    manifest(store).messages.segments.iter().map(|segment| segment.level).max().unwrap_or(0)
}

/// Goal: lookups equal those of a naive index for every batch size, before, during and after a
/// merge. Method: stores the same messages in batches of several sizes, and compares all terms and
/// grams.
#[test]
fn lookups_equal_a_naive_index_at_every_batch_size() {
    let messages: Vec<String> = (0..3_000).map(sample).collect();
    for batch in [1, 7, 64, 100] {
        let mut store = ingest(&messages, batch, false);
        compare(&mut store, &messages, &batch.to_string());
        assert_eq!(levels(&store), 1, "batches of {batch}");
    }
    let mut store = ingest(&messages[..2_200], 64, false);
    assert!(manifest(&store).messages.merge.is_some());
    compare(&mut store, &messages[..2_200], "during a merge");
}

/// Goal: lookups equal those of a naive index also in segments that were merged twice. Two merges
/// take tens of thousands of messages.
#[test]
fn lookups_equal_a_naive_index_after_merges_of_merges() {
    let message = |n: u64| {
        let [a, b, c] = [n % 3_001, n % 41, n * n % 997];
        format!(r#"{{"role":"user","content":"code{a} word{b} of other{c} and other{b}"}}"#)
    };
    let messages: Vec<String> = (0..45_000).map(message).collect();
    let mut store = ingest(&messages, 64, false);
    assert_eq!(levels(&store), 2);
    compare(&mut store, &messages, "merged twice");
}

/// Goal: nearly full commits also perform merge steps, and index all their terms. Method: batches
/// with the greatest number of identities and 300 KiB of text.
#[test]
fn full_commits_merge_and_index_everything() {
    let message = |n: u64| {
        let words: String = (0..330u64).map(|at| format!("word{} ", n * at % 7_919)).collect();
        format!(r#"{{"id":"m{n}","event_key":"e{n}","role":"user","content":"{words}"}}"#)
    };
    let messages: Vec<String> = (1..=4_000).map(message).collect();
    let store = ingest(&messages, 100, false);
    let manifest = manifest(&store);
    let count = manifest.messages.segments.len();
    assert!(count < 40, "{count}");
    assert_eq!(levels(&store), 1);
    assert_eq!(manifest.unindexed, []);
}

/// Goal: reads that answer `would-block`, at any place, do not change the stored bytes.
#[test]
fn blocked_reads_leave_the_same_store() {
    let messages: Vec<String> = (0..2_500).map(sample).collect();
    let plain = ingest(&messages, 9, false);
    let blocked = ingest(&messages, 9, true);
    assert!(plain.entries == blocked.entries);
    assert!(plain.entries.keys().filter(|key| key.contains("/p")).count() > 16);
}

/// Goal: merged segments are deleted. Method: the manifest must name every stored key of the index.
#[test]
fn no_segment_is_left_behind() {
    let messages: Vec<String> = (0..3_000).map(sample).collect();
    let store = ingest(&messages, 20, false);
    let keys = ConversationKeys::new("c").unwrap();
    let state = &manifest(&store).messages;
    let mut named: BTreeSet<String> = BTreeSet::new();
    for segment in &state.segments {
        named.extend(segment::segment_keys(&keys, &segment.id, segment.blocks));
    }
    for (id, blocks) in &state.pending_deletes {
        named.extend(segment::segment_keys(&keys, id, *blocks));
    }
    if let Some(merge) = &state.merge {
        named.extend((0..merge.blocks).map(|number| keys.segment_block_key(&merge.id, number)));
    }
    let (from, to) = keys.record_range("p");
    for key in store.entries.range(from..to).map(|(key, _)| key) {
        assert!(named.contains(key), "`{key}` is garbage");
    }
    assert!(
        state.pending_deletes.len() <= 32 && state.segments.len() < 48,
        "{}",
        state.segments.len()
    );
    assert_eq!(levels(&store), 1);
}

fn report(store: &mut Memory) -> String {
    Engine::new().check(store, "c", None).unwrap()
}

/// Goal: `check` finds one lost or changed posting, and names the segment. Method: replaces the
/// segments of a store, one at a time, by the segments of a conversation with one word changed,
/// added or removed.
#[test]
fn check_finds_a_lost_and_a_doubled_posting() {
    let messages: Vec<String> = (0..700).map(sample).collect();
    let mut store = ingest(&messages, 100, false);
    assert!(report(&mut store).contains("\"ok\":true"), "{}", report(&mut store));
    for (from, to) in [("code155", "codf155"), ("code155", "code155 word1"), ("code155", "")] {
        let mut other = messages.clone();
        other[155] = other[155].replacen(from, to, 1);
        assert!(other[155] != messages[155]);
        let other = ingest(&other, 100, false);
        let roots = |store: &Memory| -> Vec<(String, Vec<u8>)> {
            let part = store.entries.iter().filter(|(key, _)| key.contains("/p"));
            part.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let mut found = 0;
        assert!(roots(&store).len() >= 7);
        let keys = ConversationKeys::new("c").unwrap();
        let [own, others] = [&store, &other].map(|store| manifest(store).messages.segments);
        for (mine, theirs) in own.iter().zip(others) {
            let mut damaged = Memory { entries: store.entries.clone(), ..Memory::default() };
            let value = other.entries[&keys.segment_key(&theirs.id)].clone();
            damaged.entries.insert(keys.segment_key(&mine.id), value);
            let report = report(&mut damaged);
            if (mine.first_document..=mine.last_document).contains(&156) {
                assert!(report.contains(&keys.segment_key(&mine.id)), "{report}");
                assert!(from.len() != to.len() || report.contains("message 156"), "{report}");
                found += 1;
            } else {
                assert!(report.contains("\"ok\":true"), "{report}");
            }
        }
        assert_eq!(found, 1);
    }
}

/// Goal: a damaged value of the index causes at most an error, never a panic. Method: changes, cuts
/// and extends values; then runs lookups, an append and a check.
#[test]
fn damaged_values_are_errors_and_no_panics() {
    let messages: Vec<String> = (0..900).map(sample).collect();
    let store = ingest(&messages, 45, false);
    let names = ConversationKeys::new("c").unwrap();
    let manifest = manifest(&store);
    let mut keys = alloc::vec![names.manifest_key()];
    for segment in &manifest.messages.segments {
        keys.extend(segment::segment_keys(&names, &segment.id, segment.blocks));
    }
    keys.retain(|key| store.entries.contains_key(key));
    let mut state = 99;
    let (mut noticed, rounds) = (0, 300);
    for _ in 0..rounds {
        let mut damaged = Memory { entries: store.entries.clone(), ..Memory::default() };
        let key = &keys[random(&mut state) as usize % keys.len()];
        let value = damaged.entries.get_mut(key).unwrap();
        match random(&mut state) % 3 {
            0 => value.truncate(random(&mut state) as usize % value.len()),
            1 => value.extend([0, 1, 2]),
            _ => {
                let at = 2 + random(&mut state) as usize % (value.len() - 2);
                value[at] ^= 1 << (random(&mut state) % 8);
            }
        }
        let sound = Engine::new()
            .check(&mut damaged, "c", None)
            .is_ok_and(|report| report.contains("\"ok\":true"));
        noticed += u32::from(!sound);
        let next: Vec<String> = (900..990).map(sample).collect();
        let _ = append(&mut Engine::new(), &mut damaged, &next);
    }
    assert!(noticed > rounds * 8 / 10, "{noticed} of {rounds}");
}
