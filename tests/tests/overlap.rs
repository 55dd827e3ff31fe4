#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! A whole transcript that is ingested, edited, and ingested again, as `lcm ingest FILE` does.
//!
//! After any edit every message of the transcript is stored, as often as it occurs there. A message
//! with an id is stored once. If all messages differ, an edit adds exactly the new messages.
//!
//! Every run has 2,000 transcripts; `LCM_SEEDS=100000` runs more, `LCM_SEED=123` runs one.

use std::{collections::BTreeMap, env};

use lcm_core::Engine;
use lcm_testing::{ModelStore, simulation::random::Random};
use lcm_text::{
    base::error::ErrorCode,
    types::api::{AppendMode, AppendOptions, Dialect},
};
use serde_json::{Value, json};

const CHAT: &str = "c";
const SEEDS: u64 = 2_000;
/// Largest number of messages: more than twice as many as the head has hashes of.
const MESSAGES_MAX: u64 = 300;

/// The messages that have an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ids {
    None,
    All,
    OfUsers,
    Some,
}

/// The kinds of edits of a transcript.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Edit {
    Insert,
    Delete,
    Replace,
    Repeat,
    Append,
    Cut,
}

const EDITS: [Edit; 6] =
    [Edit::Insert, Edit::Delete, Edit::Replace, Edit::Repeat, Edit::Append, Edit::Cut];

struct Writer {
    random: Random,
    ids: Ids,
    /// Whether all texts differ and are long.
    differs: bool,
    number: u64,
}

impl Writer {
    fn message(&mut self) -> String {
        self.number += 1;
        let number = self.number;
        let text = match self.random.between(0, 9) {
            0 | 1 if !self.differs => "ok".to_owned(),
            2 if !self.differs => format!("a long text that is said again, {}", number % 3),
            _ => format!("what was said as number {number} and by nobody else"),
        };
        let is_user = number % 2 == 1;
        let mut message =
            json!({"role": if is_user { "user" } else { "assistant" }, "content": text});
        let has_id = match self.ids {
            Ids::None => false,
            Ids::All => true,
            Ids::OfUsers => is_user,
            Ids::Some => self.random.chance(500),
        };
        if has_id {
            message["id"] = format!("e{number}").into();
        }
        message.to_string()
    }

    fn messages(&mut self, count: u64) -> Vec<String> {
        (0..count).map(|_| self.message()).collect()
    }

    /// Edits a transcript; returns the number of new messages, as far as it is certain.
    fn edit(&mut self, edit: Edit, file: &mut Vec<String>) -> u64 {
        let count = self.random.between(1, 4);
        let at = self.random.between(0, file.len() as u64 - 1) as usize;
        let end = (at + count as usize).min(file.len());
        match edit {
            Edit::Insert => {
                let new = self.messages(count);
                file.splice(at..at, new);
                count
            }
            Edit::Delete if end - at < file.len() => {
                file.drain(at..end);
                0
            }
            Edit::Replace => {
                let new = self.messages((end - at) as u64);
                let count = new.len() as u64;
                file.splice(at..end, new);
                count
            }
            Edit::Repeat if self.ids == Ids::None => {
                let again = file[at..end].to_vec();
                let count = again.len() as u64;
                let to = self.random.between(end as u64, file.len() as u64) as usize;
                file.splice(to..to, again);
                count
            }
            Edit::Cut if at < file.len() => {
                file.drain(..at);
                0
            }
            Edit::Append | Edit::Delete | Edit::Repeat | Edit::Cut => {
                let new = self.messages(count);
                file.extend(new);
                count
            }
        }
    }
}

struct Conversation {
    engine: Engine,
    store: ModelStore,
}

impl Conversation {
    /// Ingests a transcript; returns the number of stored messages. `None`: `reconcile` refused the
    /// transcript.
    fn ingest(&mut self, file: &[String]) -> Result<Option<u64>, String> {
        let mut entries = Vec::new();
        for batch in file.chunks(100) {
            let of_batch = self.engine.identify(Dialect::Lcm, batch).map_err(|e| e.to_string())?;
            entries.extend(serde_json::from_str::<Vec<Value>>(&of_batch).unwrap());
        }
        let transcript = json!({ "entries": entries }).to_string();
        self.store.begin_call();
        let plan = match self.engine.reconcile(&mut self.store, CHAT, &transcript, 1) {
            Ok(plan) => plan,
            Err(error) if error.code == ErrorCode::Exists => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut plan: Value = serde_json::from_str(&plan).unwrap();
        let mut revision = plan["revision"].as_u64().expect("a revision");
        let mut stored = 0;
        let ranges = plan["missing_ranges"].as_array().expect("a list").clone();
        for (number, range) in ranges.iter().enumerate() {
            let is_last = number + 1 == ranges.len();
            let [from, to] =
                ["index_first", "index_last"].map(|key| range[key].as_u64().unwrap() as usize);
            for batch in file[from..=to].chunks(100) {
                // The plan's member `line` goes with the appends that carry out the plan.
                let mut line = plan["line"].take();
                plan["line"] = json!({"list_hash": line["list_hash"]});
                if line["list_hash"].is_null() || !is_last || batch.len() < to + 1 - from {
                    line.as_object_mut().unwrap().remove("list_hash");
                } else {
                    line["count"] = json!(batch.len());
                }
                if range["revision"] == true {
                    line["revision"] = json!(true);
                }
                let extra_json = Some(json!({"revision": revision, "line": line}).to_string());
                let options =
                    AppendOptions { append_mode: AppendMode::New, partial: false, extra_json };
                self.store.begin_call();
                let receipt = self
                    .engine
                    .append(&mut self.store, CHAT, Dialect::Lcm, batch, &options, 1)
                    .map_err(|error| error.to_string())?;
                revision = receipt.revision;
                stored += u64::from(receipt.ingested);
            }
        }
        Ok(Some(stored))
    }

    fn counts(&mut self) -> BTreeMap<String, u64> {
        self.store.begin_call();
        let last = u64::MAX >> 12;
        counts(&self.engine.messages(&mut self.store, CHAT, 1, last, 1 << 20).unwrap())
    }
}

fn counts(messages: &[String]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for message in messages {
        *counts.entry(message.clone()).or_default() += 1;
    }
    counts
}

/// Returns the counts by content: an id that is added or left out does not make another message.
fn counts_said(counts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut said = BTreeMap::new();
    for (message, count) in counts {
        let mut message: Value = serde_json::from_str(message).unwrap();
        message.as_object_mut().unwrap().remove("id");
        *said.entry(message.to_string()).or_default() += count;
    }
    said
}

/// Checks that no message of a transcript is missing, and none with an id is stored twice.
fn all_there(file: &[String], stored: &BTreeMap<String, u64>, ids: Ids) -> Result<(), String> {
    let is_mixed = matches!(ids, Ids::OfUsers | Ids::Some);
    let said = |counts: &BTreeMap<String, u64>| match is_mixed {
        true => counts_said(counts),
        false => counts.clone(),
    };
    let found_counts = said(stored);
    for (message, wanted) in said(&counts(file)) {
        let found = found_counts.get(&message).copied().unwrap_or_default();
        if found < wanted {
            return Err(format!("{message}: {wanted} in the transcript, {found} stored"));
        }
    }
    match stored.iter().find(|(message, found)| message.contains("\"id\"") && **found > 1) {
        Some((message, found)) => Err(format!("{message} is stored {found} times")),
        None => Ok(()),
    }
}

#[derive(Debug, Default)]
struct Figures {
    exact: u64,
    long: u64,
}

fn run(seed: u64, figures: &mut Figures) -> Result<(), String> {
    let mut random = Random::new(seed);
    let ids = *random.pick(&[Ids::None, Ids::None, Ids::All, Ids::OfUsers, Ids::Some]);
    let differs = random.chance(500);
    let most = if random.chance(500) { 12 } else { MESSAGES_MAX };
    let length = random.between(1, most);
    let edits: Vec<Edit> = (0..random.between(1, 3)).map(|_| *random.pick(&EDITS)).collect();
    let mut writer = Writer { random, ids, differs, number: 0 };
    let mut file = writer.messages(length);
    let mut conversation = Conversation { engine: Engine::new(), store: ModelStore::new() };
    if conversation.ingest(&file)? != Some(length) {
        return Err("not all of a new transcript is stored".to_owned());
    }
    let is_one_edit = differs && edits.len() == 1 && length > 20;
    for edit in edits {
        let new = writer.edit(edit, &mut file);
        // The only message of a list is new unless its id is stored, so nothing is sure of it.
        let is_sure = is_one_edit && file.len() > 1;
        let what = format!("{ids:?} {edit:?} of {new}, {length} messages");
        let stored = conversation.ingest(&file).map_err(|why| format!("{what}: {why}"))?;
        figures.long += u64::from(length > 104);
        let Some(stored) = stored else {
            return Err(format!("{what}: refused"));
        };
        all_there(&file, &conversation.counts(), ids).map_err(|why| format!("{what}: {why}"))?;
        // An edit at or near the end begins a branch, so the messages after it are new.
        let is_exact = match edit {
            Edit::Append | Edit::Delete | Edit::Cut => true,
            Edit::Insert | Edit::Replace | Edit::Repeat => ids != Ids::None,
        };
        if ids == Ids::All || is_sure && is_exact {
            figures.exact += 1;
            if stored != new {
                return Err(format!("{what}: {stored} were stored"));
            }
        }
        if is_sure && conversation.ingest(&file)?.is_some_and(|stored| stored > 0) {
            let shown: Vec<&String> = file.iter().rev().take(8).collect();
            return Err(format!("{what}: more is stored the second time: {shown:?}"));
        }
    }
    Ok(())
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn an_edited_transcript_is_stored() {
    let seeds = match number("LCM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LCM_SEEDS").unwrap_or(SEEDS),
    };
    let is_one = seeds.end - seeds.start == 1;
    let mut figures = Figures::default();
    let mut failures = Vec::new();
    for seed in seeds {
        if let Err(why) = run(seed, &mut figures) {
            failures.push(format!(
                "seed {seed}: {why}\n  LCM_SEED={seed} cargo test --release -p lcm-tests \
                 --test overlap"
            ));
        }
    }
    println!("{figures:?}");
    failures.iter().take(10).for_each(|failure| println!("{failure}"));
    assert!(failures.is_empty(), "{} fail: {}", failures.len(), failures[0]);
    let Figures { exact, long } = figures;
    assert!(is_one || exact.min(long) > 100, "too little happens: {figures:?}");
}
