#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Every message is stored exactly once, for any use that a host makes of its transcript.
//!
//! A life is one random conversation of one host. The host says messages, appends them in each way
//! that the interface has, covers secrets, cuts its transcript, goes back and continues with other
//! messages, has a wrong clock, uses ids of calls again, and stops at any operation of the store.
//! The test keeps a plain list of the messages. No appended message may be missing, altered or in
//! another order. A message with an id may not be stored twice; nor may a message without an id if
//! the repeated batch contains an exact copy of one of the newest messages. The test only counts
//! the other repetitions: see [`Life::may_double`].
//!
//! Not here: another message under a stored entry id. The engine stores it, too, with a warning
//! (`tests/tests/meaning/ids.rs` and `line_lives`).
//!
//! Every run has 2,000 lives. `LCM_SEEDS=100000` runs more, `LCM_SEED=123` runs one. The test
//! prints a failing seed as the command that repeats it.

use std::{collections::BTreeMap, env};

use lcm_core::Engine;
use lcm_testing::{Fault, FaultStore, ModelStore, simulation::random::Random};
use lcm_text::{
    base::error::{Error, ErrorCode, Result},
    types::api::{AppendMode, AppendOptions, Dialect},
};
use serde_json::json;

const CHAT: &str = "c";
/// Number of lives without `LCM_SEEDS`.
const SEEDS: u64 = 2_000;
/// Number of steps of a life.
const STEPS: u64 = 24;
/// Largest number of messages of one life, so that all of them are read in one call.
const MESSAGES_MAX: usize = 400;

/// Ids of calls, each used for many calls: the first are short, as those of providers that count
/// the calls of a turn; the others look unique, but are used again as well.
const CALL_IDS: [&str; 4] =
    ["functions.exec:0", "1", "call_abcdefghijklmnop", "toolu_abcdefghijklmnop"];
/// Number of short ids. By contract, two messages with equal content and one long id are the same.
const CALL_IDS_SHORT: u64 = 2;

/// The means by which the engine can recognise the messages of a life.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Known {
    EntryId,
    EventKey,
    Content,
}

/// A message that was said, once.
#[derive(Clone, Debug)]
struct Said {
    text: String,
    role: &'static str,
    /// The message as the host's file has it now; a secret in it may have been covered.
    raw: String,
    handed: bool,
}

/// A bug planted between the host and the engine, or none; the test must find each bug.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Plant {
    None,
    /// The last message of a batch does not arrive.
    Loses,
    /// A batch arrives twice.
    Doubles,
    /// A character is changed on the way.
    Alters,
    /// The last two messages of a batch, both new, come in the other order.
    Swaps,
}

/// Counts of what happened in all lives.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    lives: u64,
    said: u64,
    handed: u64,
    faults: u64,
    covered: u64,
    branches: u64,
    cuts: u64,
    /// Calls and results under an id that another one had before.
    ids_again: u64,
    /// Allowed additional copies of messages, see [`Life::may_double`].
    doubled: u64,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.lives += other.lives;
        self.said += other.said;
        self.handed += other.handed;
        self.faults += other.faults;
        self.covered += other.covered;
        self.branches += other.branches;
        self.cuts += other.cuts;
        self.ids_again += other.ids_again;
        self.doubled += other.doubled;
    }
}

struct Life {
    random: Random,
    engine: Engine,
    store: ModelStore,
    now: u64,
    plant: Plant,
    known: Known,
    /// Whether long texts are said again word for word. Without ids, such a host must not append
    /// the end of its file: nobody can distinguish a text said again from a text appended again.
    repeats: bool,
    /// Whether tools are called, under the few ids of [`CALL_IDS`].
    calls: bool,
    said: Vec<Said>,
    /// The host's file: the numbers of its messages, in order.
    file: Vec<usize>,
    /// Every text with which a message was ever appended, with the numbers of its messages.
    variants: BTreeMap<String, Vec<usize>>,
    /// Messages in the order in which they were first appended.
    order: Vec<usize>,
    /// Whether the engine could not recognise a repeated message, so that it may be stored twice.
    may_double: bool,
    figures: Figures,
}

impl Life {
    fn new(seed: u64, plant: Plant) -> Self {
        let mut random = Random::new(seed);
        let known = *random.pick(&[Known::EntryId, Known::EventKey, Known::Content]);
        let repeats = random.chance(250);
        let calls = random.chance(500);
        Self {
            random,
            engine: Engine::new(),
            store: ModelStore::new(),
            now: 1_700_000_000_000,
            plant,
            known,
            repeats,
            calls,
            said: Vec::new(),
            file: Vec::new(),
            variants: BTreeMap::new(),
            order: Vec::new(),
            may_double: false,
            figures: Figures { lives: 1, ..Figures::default() },
        }
    }

    fn lead(mut self) -> std::result::Result<Figures, String> {
        for _ in 0..STEPS {
            self.tick();
            let only_whole = self.repeats && self.known == Known::Content;
            match self.random.between(0, 99) {
                0..=29 => self.say(),
                30..=54 | 78..=95 if only_whole => self.hand_over_what_is_new()?,
                30..=54 => self.hand_over_the_end()?,
                55..=64 => self.hand_over_what_is_new()?,
                65..=77 => self.hand_over_the_file()?,
                78..=83 => self.hand_over_again()?,
                84..=88 => self.cover(),
                89..=92 => self.cut(),
                93..=95 => self.go_another_way(),
                _ => self.engine = Engine::new(),
            }
            self.check()?;
        }
        self.sound()?;
        Ok(self.figures)
    }

    /// Moves the clock forward; sometimes sets it back, as if it had been wrong.
    fn tick(&mut self) {
        self.now += self.random.between(1, 90_000);
        if self.random.chance(60) {
            self.now -= self.random.between(1, 86_400_000);
        }
    }

    fn say(&mut self) {
        for _ in 0..self.random.between(1, 6) {
            let kind = self.random.between(0, 9);
            self.say_one(kind);
        }
    }

    fn say_one(&mut self, kind: u64) {
        let number = self.said.len();
        if number >= MESSAGES_MAX {
            return;
        }
        let (role, text) = match kind {
            0 => ("user", "ok".to_owned()),
            1 if number > 0 && self.repeats => {
                // The same words as an earlier message, as from a program that runs again.
                let earlier = &self.said[self.random.between(0, number as u64 - 1) as usize];
                (earlier.role, earlier.text.clone())
            }
            kind => {
                let role = if kind % 2 == 0 { "user" } else { "assistant" };
                (role, format!("what was said as number {number}, with the key sk-{number}9"))
            }
        };
        let is_again = self.said.iter().any(|said| said.text == text);
        let raw = self.written(number, role, &text, is_again);
        self.file.push(number);
        self.said.push(Said { text, role, raw, handed: false });
        self.figures.said += 1;
    }

    /// Returns a message of the file; `is_again`: an earlier message has the same text.
    fn written(&mut self, number: usize, role: &str, text: &str, is_again: bool) -> String {
        let mut message = if self.calls && text.len() > 10 && self.random.chance(500) {
            let short = is_again && self.known == Known::Content;
            let ids = if short { CALL_IDS_SHORT } else { CALL_IDS.len() as u64 };
            let id = CALL_IDS[self.random.between(0, ids - 1) as usize];
            let quoted = format!("\"{id}\"");
            self.figures.ids_again +=
                u64::from(self.said.iter().any(|said| said.raw.contains(&quoted)));
            if role == "assistant" {
                let call =
                    json!({"type": "tool_call", "id": id, "name": "run", "input": {"a": text}});
                json!({"role": "assistant", "parts": [call]})
            } else {
                let result = json!({"type": "tool_result", "call_id": id, "output": text});
                json!({"role": "tool", "parts": [result]})
            }
        } else {
            json!({"role": role, "content": text})
        };
        match self.known {
            Known::EntryId => message["id"] = json!(format!("e{number}")),
            Known::EventKey => message["event_key"] = json!(format!("k{number}")),
            Known::Content => {}
        }
        message.to_string()
    }

    /// Covers the secret in an earlier message, as a host does that cleans its files.
    fn cover(&mut self) {
        if self.file.is_empty() {
            return;
        }
        let at = self.random.between(0, self.file.len() as u64 - 1) as usize;
        let number = self.file[at];
        let secret = format!("sk-{number}9");
        if self.said[number].raw.contains(&secret) {
            self.said[number].raw = self.said[number].raw.replace(&secret, "[REDACTED]");
            self.figures.covered += 1;
        }
    }

    /// Removes the beginning of the file, as log rotation does.
    fn cut(&mut self) {
        let behind = self.first_new();
        if behind > 2 {
            let from = self.random.between(1, behind as u64 - 1) as usize;
            self.file.drain(..from);
            self.figures.cuts += 1;
        }
    }

    /// Goes back to an earlier message and continues with other messages.
    fn go_another_way(&mut self) {
        let behind = self.first_new();
        if behind < 3 || behind < self.file.len() {
            return;
        }
        let left = self.random.between(1, behind as u64 - 1) as usize;
        self.file.truncate(left);
        self.figures.branches += 1;
        // Without ids, the end of the file is now in the middle of what is stored.
        self.may_double |= self.known == Known::Content;
        // Two branches that begin with the same words are one branch up to there.
        self.say_one(2);
    }

    /// Returns the index in the file of the first message that was not appended yet.
    fn first_new(&self) -> usize {
        let is_new = |number: &usize| !self.said[*number].handed;
        self.file.iter().position(is_new).unwrap_or(self.file.len())
    }

    /// Appends the end of the file: some messages that were appended before, then all new messages.
    fn hand_over_the_end(&mut self) -> std::result::Result<(), String> {
        let behind = self.first_new();
        let overlap = self.random.between(1, 12).min(behind as u64) as usize;
        let batch: Vec<usize> = self.file[behind - overlap..].to_vec();
        self.doubt(&batch[..overlap]);
        self.append(&batch, AppendMode::Transcript)
    }

    /// Sets `may_double` if no repeated message is long and exact. Without ids the engine
    /// recognises repeated messages by one that is long enough and was not covered.
    fn doubt(&mut self, again: &[usize]) {
        let is_exact = |number: &usize| {
            let said = &self.said[*number];
            // A call has no text but its id.
            let is_short_call = said.raw.contains("\"tool_call\"") && !said.raw.contains("klmnop");
            said.text.len() > 10 && said.raw.contains(&said.text) && !is_short_call
        };
        if !again.is_empty() && !again.iter().any(is_exact) {
            self.may_double |= self.known == Known::Content;
        }
    }

    fn hand_over_what_is_new(&mut self) -> std::result::Result<(), String> {
        let batch: Vec<usize> = self.file[self.first_new()..].to_vec();
        self.append(&batch, AppendMode::New)
    }

    /// Appends a piece of the file again, as after a restart of the host.
    fn hand_over_again(&mut self) -> std::result::Result<(), String> {
        let behind = self.first_new();
        if behind < 2 {
            return Ok(());
        }
        let from = self.random.between(0, behind as u64 - 1) as usize;
        let to = self.random.between(from as u64 + 1, behind as u64) as usize;
        let batch: Vec<usize> = self.file[from..to].to_vec();
        if to < behind {
            // Without ids nobody can distinguish this from the same words said again.
            self.may_double |= self.known == Known::Content;
        }
        self.doubt(&batch);
        self.append(&batch, AppendMode::Transcript)
    }

    /// Appends the whole file as `lcm ingest FILE` does.
    fn hand_over_the_file(&mut self) -> std::result::Result<(), String> {
        for _ in 0..8 {
            let raws: Vec<String> = self.file.iter().map(|n| self.said[*n].raw.clone()).collect();
            let entries = self.engine.identify(Dialect::Lcm, &raws).map_err(|e| e.to_string())?;
            let entries = format!("{{\"entries\":{entries}}}");
            self.store.begin_call();
            let plan = match self.engine.reconcile(&mut self.store, CHAT, &entries, self.now) {
                Ok(plan) => plan,
                Err(error) => return Err(error.to_string()),
            };
            let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
            if plan["by"] == "none" && plan["stored"] != 0 {
                self.may_double |= self.known == Known::Content;
            }
            if self.store_missing(&plan)? {
                // All of the file is stored now, or was before.
                for number in &self.file {
                    self.said[*number].handed = true;
                    let variants = self.variants.entry(self.said[*number].raw.clone());
                    variants.or_default().push(*number);
                }
                return Ok(());
            }
        }
        Err("the file does not come to an end".to_owned())
    }

    /// Stores the messages that a plan names as missing; `false`: the store failed, and a new plan
    /// is needed.
    fn store_missing(&mut self, plan: &serde_json::Value) -> std::result::Result<bool, String> {
        let mut revision = plan["revision"].as_u64().expect("a revision");
        for range in plan["missing_ranges"].as_array().expect("a list") {
            let [from, to] = ["index_first", "index_last"]
                .map(|key| range[key].as_u64().expect("a number") as usize);
            for batch in self.file[from..=to].to_vec().chunks(100) {
                let raws: Vec<String> = batch.iter().map(|n| self.said[*n].raw.clone()).collect();
                self.note_order(batch);
                let extra = json!({"revision": revision}).to_string();
                match self.call(&raws, AppendMode::New, Some(extra)) {
                    Ok(reached) => revision = reached,
                    Err(error) if error.code == ErrorCode::StoreUnavailable => {
                        self.engine = Engine::new();
                        return Ok(false);
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(true)
    }

    /// Appends one batch. A call with an unknown outcome is repeated in a new instance.
    fn append(&mut self, batch: &[usize], mode: AppendMode) -> std::result::Result<(), String> {
        for batch in batch.chunks(100) {
            let raws: Vec<String> = batch.iter().map(|n| self.said[*n].raw.clone()).collect();
            let sent = self.planted(batch, &raws);
            // Without ids nobody can distinguish the only message of a list from the same words
            // said again.
            let is_again = batch.len() == 1 && self.said[batch[0]].handed;
            self.may_double |=
                is_again && mode == AppendMode::Transcript && self.known == Known::Content;
            self.note_order(batch);
            let mut extra = None;
            for _ in 0..8 {
                match self.call(&sent, mode, extra.clone()) {
                    Ok(_) => break,
                    Err(error) if error.code == ErrorCode::StoreUnavailable => {
                        self.engine = Engine::new();
                        extra = Some(json!({"repeat": true}).to_string());
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            for number in batch {
                self.said[*number].handed = true;
                self.figures.handed += 1;
            }
        }
        Ok(())
    }

    /// Notes that the messages of a batch may be stored from now on, for any answer of the call.
    fn note_order(&mut self, batch: &[usize]) {
        for number in batch {
            self.variants.entry(self.said[*number].raw.clone()).or_default().push(*number);
        }
        let new: Vec<usize> = batch.iter().filter(|n| !self.order.contains(n)).copied().collect();
        self.order.extend(new);
    }

    /// Returns the batch as it arrives at the engine with the planted bug.
    fn planted(&self, batch: &[usize], raws: &[String]) -> Vec<String> {
        let (last, rest) = match raws.split_last() {
            Some((last, rest)) if self.plant != Plant::None => (last, rest),
            _ => return raws.to_vec(),
        };
        match self.plant {
            Plant::Loses => rest.to_vec(),
            Plant::Doubles => [raws, raws].concat(),
            Plant::Swaps => {
                let mut raws = raws.to_vec();
                let is_new = |number: &usize| {
                    !self.said[*number].handed && self.said[*number].text.len() > 10
                };
                if let [.., one, other] = batch
                    && is_new(one)
                    && is_new(other)
                {
                    let last = raws.len() - 1;
                    raws.swap(last - 1, last);
                }
                raws
            }
            _ => [rest, &[last.replacen("said", "sa1d", 1)]].concat(),
        }
    }

    /// Calls `append` once, and sometimes lets a store operation fail. Returns the new revision.
    fn call(&mut self, raws: &[String], mode: AppendMode, extra: Option<String>) -> Result<u64> {
        let options = AppendOptions { append_mode: mode, partial: false, extra_json: extra };
        let at = if self.random.chance(120) { self.random.between(1, 4) } else { 0 };
        let fault = *self.random.pick(&[Fault::Before, Fault::ReplyLost]);
        self.store.begin_call();
        let mut store = FaultStore::new(&mut self.store, at, fault);
        let done = self.engine.append(&mut store, CHAT, Dialect::Lcm, raws, &options, self.now);
        self.figures.faults += u64::from(store.fired());
        done.map(|receipt| receipt.revision)
    }

    fn stored(&mut self) -> std::result::Result<Vec<String>, Error> {
        self.store.begin_call();
        match self.engine.messages(&mut self.store, CHAT, 1, u64::MAX >> 12, 1 << 20) {
            Err(error) if error.code == ErrorCode::NotFound => Ok(Vec::new()),
            other => other,
        }
    }

    /// Checks that no message is lost or altered, and none is stored twice without a reason.
    fn check(&mut self) -> std::result::Result<(), String> {
        let stored = self.stored().map_err(|error| error.to_string())?;
        let mut copies: BTreeMap<&str, i64> = BTreeMap::new();
        for raw in &stored {
            let Some(numbers) = self.variants.get(raw) else {
                return Err(format!("{raw} was never handed over"));
            };
            *copies.entry(&self.said[numbers[0]].text).or_default() += 1;
        }
        let mut handed: BTreeMap<&str, i64> = BTreeMap::new();
        for said in self.said.iter().filter(|said| said.handed) {
            *handed.entry(&said.text).or_default() += 1;
        }
        let mut doubled = 0;
        for (text, wanted) in handed {
            let found = copies.get(text).copied().unwrap_or_default();
            if found < wanted {
                return Err(format!("`{text}` was handed over {wanted} times, stored {found}"));
            }
            doubled += found - wanted;
        }
        if doubled > 0 && !self.may_double {
            return Err(format!("{doubled} messages are doubled, known {:?}", self.known));
        }
        self.figures.doubled = doubled as u64;
        self.check_order(&stored)
    }

    /// Checks the order: messages are stored in the order of their first append; a second copy may
    /// be anywhere after the first.
    fn check_order(&self, stored: &[String]) -> std::result::Result<(), String> {
        let mut first = BTreeMap::new();
        for (at, raw) in stored.iter().enumerate() {
            for number in &self.variants[raw] {
                first.entry(*number).or_insert(at);
            }
        }
        // Messages with equal texts cannot be distinguished, so they are not compared.
        let mut texts: BTreeMap<&str, u32> = BTreeMap::new();
        self.said.iter().for_each(|said| *texts.entry(&said.text).or_default() += 1);
        let is_one = |number: &&usize| texts[self.said[**number].text.as_str()] == 1;
        let mut behind = None;
        for number in self.order.iter().filter(is_one) {
            let Some(at) = first.get(number) else { continue };
            if behind.is_some_and(|behind| behind > *at) {
                return Err(format!("number {number} is stored before what came before it"));
            }
            behind = Some(*at);
        }
        Ok(())
    }

    fn sound(&mut self) -> std::result::Result<(), String> {
        self.store.begin_call();
        match self.engine.check(&mut self.store, CHAT, None) {
            Ok(report) if report.contains("\"ok\":true") => Ok(()),
            Ok(report) => Err(report),
            Err(error) if error.code == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

fn failure(seed: u64, why: &str) -> String {
    format!(
        "seed {seed}: {why}\n  LCM_SEED={seed} cargo test --release -p lcm-tests \
         --test exactly_once one_life -- --nocapture"
    )
}

#[test]
fn nothing_is_lost_altered_or_doubled() {
    let seeds = number("LCM_SEEDS").unwrap_or(SEEDS);
    let mut total = Figures::default();
    let mut failures = Vec::new();
    for seed in 0..seeds {
        match Life::new(seed, Plant::None).lead() {
            Ok(figures) => total.add(&figures),
            Err(why) => failures.push(failure(seed, &why)),
        }
    }
    println!("{total:?}");
    failures.iter().for_each(|failure| println!("{failure}"));
    assert!(failures.is_empty(), "{} of {seeds} lives: {}", failures.len(), failures[0]);
    // Lives in which nothing happens prove nothing.
    let Figures { handed, faults, covered, branches, cuts, doubled, ids_again, .. } = total;
    assert!(handed > 20 * seeds && faults > seeds / 4, "too little happens: {total:?}");
    assert!(covered.min(branches).min(cuts) > seeds / 10, "too little is changed: {total:?}");
    assert!(ids_again > 2 * seeds, "too few ids are used again: {total:?}");
    assert!(doubled > 0, "what is only counted does not happen: {total:?}");
    assert!(doubled * 20 < handed, "too much is doubled: {total:?}");
}

#[test]
fn a_planted_bug_is_found() {
    for (plant, why) in [
        (Plant::Loses, "was handed over"),
        (Plant::Doubles, "are doubled"),
        (Plant::Alters, "was never handed over"),
        (Plant::Swaps, "is stored before"),
    ] {
        let found = (0..50).find_map(|seed| Life::new(seed, plant).lead().err());
        assert!(found.as_ref().is_some_and(|found| found.contains(why)), "{plant:?}: {found:?}");
    }
}

#[test]
fn one_life() {
    let Some(seed) = number("LCM_SEED") else { return };
    match Life::new(seed, Plant::None).lead() {
        Ok(figures) => println!("{figures:?}"),
        Err(why) => panic!("{}", failure(seed, &why)),
    }
}
