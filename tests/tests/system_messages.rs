#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! The slot of system messages (the place of the system prompt) over whole conversations: lists
//! with a system prompt, or with a prompt in the option `system`, in several dialects. The prompt
//! changes at random turns, and compaction runs after each turn.
//!
//! The newest prompt is in every context, no prompt is in a summary or among the messages, and each
//! prompt is stored once, also in an export.

use std::collections::BTreeSet;

use lcm_core::Engine;
use lcm_testing::{
    ModelStore,
    offline::compact,
    simulation::random::Random,
    transcripts::{export_lines, import_lines},
};
use lcm_text::types::api::{
    AppendMode, AppendOptions, AssembleOptions, CompactionOptions, Dialect, ReadDialect, Receipt,
};
use serde_json::{Value, json};

const CHAT: &str = "c";
const TURNS: u64 = 200;
/// A word of every prompt that no message has.
const MARK: &str = "zqprompt";

/// The ways in which a host passes its prompt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// As the first message of its whole list.
    Leading,
    /// As the first message, before only the newest messages.
    Window,
    /// As the option `system`, a text.
    Text,
    /// As the option `system`, in the form of the dialect.
    Blocks,
}

struct Host {
    engine: Engine,
    store: ModelStore,
    dialect: Dialect,
    now: u64,
    seen: u64,
}

impl Host {
    fn new(dialect: Dialect) -> Self {
        let (engine, store) = (Engine::new(), ModelStore::new());
        Self { engine, store, dialect, now: 1_700_000_000_000, seen: 0 }
    }

    /// Builds a message of the dialect.
    fn build_message(&self, role: &str, text: &str) -> Value {
        match self.dialect {
            Dialect::Gemini if role == "assistant" => {
                json!({"role": "model", "parts": [{"text": text}]})
            }
            Dialect::Gemini => json!({"role": role, "parts": [{"text": text}]}),
            _ => json!({"role": role, "content": text}),
        }
    }

    /// Appends a list; a list of over 100 messages is appended by the plan of `reconcile`, as the
    /// packages do. Returns the number of stored messages.
    fn append(&mut self, list: &[Value], system: Option<Value>) -> u32 {
        self.now += 60_000;
        let messages: Vec<String> = list.iter().map(Value::to_string).collect();
        let mut extra = json!({"seq_seen": self.seen});
        if let Some(system) = system {
            extra["system"] = system;
        }
        if messages.len() <= 100 {
            return self.append_part(AppendMode::Transcript, &messages, &extra).ingested;
        }
        let entries = self.engine.identify(self.dialect, &messages).expect("identities");
        let entries: Value = serde_json::from_str(&entries).unwrap();
        let transcript = json!({"entries": entries, "seq_seen": self.seen}).to_string();
        self.store.begin_call();
        let plan = self.engine.reconcile(&mut self.store, CHAT, &transcript, self.now);
        let mut plan: Value = serde_json::from_str(&plan.expect("a plan")).unwrap();
        let ranges = plan["missing_ranges"].as_array().unwrap().clone();
        extra.as_object_mut().unwrap().remove("seq_seen");
        let (mut stored, mut revision) = (0, plan["revision"].as_u64().unwrap());
        for (place, range) in ranges.iter().enumerate() {
            let [from, to] =
                ["index_first", "index_last"].map(|key| range[key].as_u64().unwrap() as usize);
            let line = &mut plan["line"];
            let hash = line["list_hash"].take();
            line["system"] = json!(range["system"] == true);
            if place + 1 == ranges.len() {
                line["list_hash"] = hash.clone();
                line["count"] = json!(to + 1 - from);
            }
            extra["line"] = line.clone();
            line["list_hash"] = hash;
            extra["revision"] = json!(revision);
            let receipt = self.append_part(AppendMode::New, &messages[from..=to], &extra);
            (stored, revision) = (stored + receipt.ingested, receipt.revision);
        }
        if ranges.is_empty() {
            self.append_part(AppendMode::New, &[], &extra);
        }
        stored
    }

    fn append_part(&mut self, append_mode: AppendMode, part: &[String], extra: &Value) -> Receipt {
        let options = AppendOptions {
            append_mode,
            extra_json: Some(extra.to_string()),
            ..AppendOptions::default()
        };
        self.store.begin_call();
        let dialect = ReadDialect::from(self.dialect);
        let receipt = self
            .engine
            .append(&mut self.store, CHAT, dialect, part, &options, self.now)
            .expect("an append");
        self.seen = receipt.seq_seen;
        receipt
    }

    fn compact(&mut self, budget: u32) {
        let options = CompactionOptions::default();
        compact(
            (&mut self.engine, &mut self.store),
            (CHAT, budget),
            options,
            self.now,
            &mut |_| {},
        );
    }

    /// Assembles a context; returns the system text, the array of messages and the tokens.
    fn assemble(&mut self, budget: u32, live: &[Value]) -> (Option<String>, String, u32) {
        let options = AssembleOptions {
            live_messages: live.iter().map(Value::to_string).collect(),
            ..AssembleOptions::default()
        };
        self.store.begin_call();
        let dialect = self.dialect;
        let context = self
            .engine
            .assemble(&mut self.store, CHAT, budget, dialect, &options, self.now)
            .expect("a context");
        (context.system, context.messages_json, context.tokens)
    }

    fn ensure_sound(&mut self) {
        self.store.begin_call();
        let report = self.engine.check(&mut self.store, CHAT, None).expect("a report");
        let report: Value = serde_json::from_str(&report).unwrap();
        for check in report["checks"].as_array().unwrap() {
            assert_eq!(check["status"], "pass", "{check}");
        }
    }

    fn read_status(&mut self) -> Value {
        self.store.begin_call();
        let status = self.engine.status(&mut self.store, Some(CHAT), self.now).expect("a status");
        serde_json::from_str(&status).unwrap()
    }

    fn export_chat(&mut self) -> Vec<String> {
        export_lines(&mut self.engine, &mut self.store, CHAT)
    }

    fn import_chat(&mut self, lines: &[String]) {
        // Pages of three lines, so that pages end at many different lines.
        import_lines(&mut self.engine, &mut self.store, (lines, 3), self.now);
    }

    fn logical_digest(&mut self) -> String {
        self.store.begin_call();
        self.engine.digest(&mut self.store, None, true).expect("a digest")
    }

    /// Returns the texts of all stored summaries and messages.
    fn stored_texts(&mut self) -> String {
        let lines = self.export_chat();
        let is_other = |line: &&String| !line.starts_with("{\"system");
        lines.iter().filter(is_other).map(String::as_str).collect()
    }
}

/// Builds the prompt of a version, with `words` words.
fn build_prompt(version: u64, words: u64) -> String {
    let words: Vec<String> = (0..words).map(|word| format!("rule{}", word % 97)).collect();
    format!("{MARK} clock {version} of {}.", words.join(" "))
}

/// Runs one life of a conversation.
fn lead_life(dialect: Dialect, way: Way, seed: u64) {
    let mut random = Random::new(seed);
    let mut host = Host::new(dialect);
    let budget = 6_000;
    let (mut said, mut version) = (Vec::new(), 0);
    // Any length up to about two thirds of the budget.
    let mut words = random.between(0, 1_039);
    let mut versions = BTreeSet::new();
    for turn in 0..TURNS {
        if turn > 0 && random.between(0, 5) == 0 {
            version += 1;
            words = if random.between(0, 2) == 0 { random.between(0, 1_039) } else { words };
        }
        let text = build_prompt(version, words);
        versions.insert(text.clone());
        let filler = "about the parcel and the hall ".repeat(1 + random.between(0, 7) as usize);
        said.push(host.build_message("user", &format!("Question {turn} {filler}?")));
        if turn % 5 == 3 {
            // A reminder in mid-conversation is a message.
            said.push(host.build_message("system", &format!("Reminder {turn} {filler}.")));
        }
        let mut list = match way {
            Way::Window => said[said.len().saturating_sub(24)..].to_vec(),
            _ => said.clone(),
        };
        let system = match (way, dialect) {
            (Way::Leading | Way::Window, _) => {
                list.insert(0, host.build_message("system", &text));
                None
            }
            (Way::Text, _) => Some(json!(text)),
            (Way::Blocks, Dialect::Gemini) => Some(json!({"parts": [{"text": text}]})),
            (Way::Blocks, _) => Some(json!([{"type": "text", "text": text}])),
        };
        host.append(&list, system);
        host.compact(budget);
        let (system, messages, tokens) = host.assemble(budget, &[]);
        assert_eq!(system.as_deref(), Some(&*text), "{dialect:?} {way:?} {seed} turn {turn}");
        assert!(!messages.contains(MARK), "{dialect:?} {way:?} {seed} turn {turn}");
        assert!(tokens <= budget, "{tokens} of {budget}");
        said.push(host.build_message("assistant", &format!("Answer {turn}: {filler}.")));
    }
    let status = host.read_status();
    let about = format!("{dialect:?} {way:?} {seed}");
    assert_eq!(status["system"]["versions"], versions.len(), "{about}");
    // The last answer is not appended yet.
    assert_eq!(status["messages"], said.len() - 1, "{about}");
    assert!(status["summaries"].as_array().unwrap().iter().any(|row| row["count"] != 0));
    assert!(!host.stored_texts().contains(MARK), "a prompt in a summary or message: {about}");
    host.ensure_sound();
    let lines = host.export_chat();
    let mut copy = Host::new(dialect);
    copy.import_chat(&lines);
    copy.ensure_sound();
    assert_eq!(copy.logical_digest(), host.logical_digest(), "{about}");
    assert_eq!(copy.read_status()["system"], host.read_status()["system"], "{about}");
    // A repeated import changes nothing.
    let before = copy.read_status()["revision"].clone();
    copy.import_chat(&lines);
    assert_eq!(copy.read_status()["revision"], before, "{about}");
}

#[test]
fn the_newest_prompt_is_in_every_context_and_in_no_summary() {
    let dialects = [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini, Dialect::Lcm];
    let ways = [Way::Leading, Way::Window, Way::Text, Way::Blocks];
    for (number, dialect) in dialects.into_iter().enumerate() {
        for (place, way) in ways.into_iter().enumerate() {
            lead_life(dialect, way, (number * ways.len() + place) as u64 + 1);
        }
    }
}

/// Goal: a prompt of any size is stored, compared and exported. Method: sizes around the bounds of
/// records and chunks, with a clock at the beginning, in one and in several messages.
#[test]
fn a_prompt_of_any_size_is_a_version() {
    for bytes in [0, 1, 40_000, 65_500, 65_600, 140_000, 400_000] {
        for parts in [1, 2, 40] {
            let mut host = Host::new(Dialect::OpenaiChat);
            let each = bytes / parts;
            let system = |clock: u64| -> Vec<Value> {
                let text = |part: usize| format!("{clock} part {part} {}", "x".repeat(each));
                (0..parts).map(|part| json!({"role": "system", "content": text(part)})).collect()
            };
            let question = json!({"role": "user", "content": "Where do the parcels go today?"});
            for clock in 0..3 {
                let mut list = system(clock);
                list.push(question.clone());
                let ingested = host.append(&list, None);
                let stored = if clock == 0 { parts + 1 } else { parts };
                assert_eq!(ingested as usize, stored, "{bytes} bytes, {parts} parts");
                let said: Vec<String> = system(clock)
                    .iter()
                    .map(|message| message["content"].as_str().unwrap().trim().to_owned())
                    .collect();
                let shown = host.assemble(2_000_000, &[]).0.expect("a prompt");
                let shown: Vec<&str> = shown.split("\n\n").map(str::trim).collect();
                assert_eq!(shown, said, "{bytes} bytes, {parts} parts");
            }
            host.ensure_sound();
            assert_eq!(host.read_status()["system"]["versions"], 3);
            let lines = host.export_chat();
            let mut copy = Host::new(Dialect::OpenaiChat);
            copy.import_chat(&lines);
            copy.ensure_sound();
            assert_eq!(copy.logical_digest(), host.logical_digest());
        }
    }
}

/// If only a clock in a prompt of 8 KiB changes, a version needs less than 300 bytes.
#[test]
fn a_clock_costs_what_it_changes() {
    let mut host = Host::new(Dialect::OpenaiChat);
    let words: Vec<String> = (0..1_200u64).map(|n| format!("w{}", n * 7_919 % 10_007)).collect();
    let mut list = vec![json!({"role": "user", "content": "Hello"})];
    let mut append = |host: &mut Host, turn: usize| {
        let prompt = format!("It is {turn} past noon. {}", words.join(" "));
        let mut whole = vec![json!({"role": "system", "content": prompt})];
        list.push(json!({"role": "assistant", "content": "ok"}));
        whole.extend(list.iter().cloned());
        host.append(&whole, None);
    };
    append(&mut host, 0);
    let bytes = |host: &Host| -> usize {
        let entries = host.store.entries().iter();
        entries
            .filter(|(key, _)| key.contains("/r"))
            .map(|(key, value)| key.len() + value.len())
            .sum()
    };
    let first = bytes(&host);
    for turn in 1..=90 {
        append(&mut host, turn);
    }
    assert_eq!(host.read_status()["system"]["versions"], 91);
    let more = bytes(&host) - first;
    assert!(more < 90 * 300, "{more} bytes for 90 versions after {first}");
}

/// A prompt among the live messages takes the place of the stored prompt.
#[test]
fn the_prompt_of_live_messages_is_the_newest() {
    let mut host = Host::new(Dialect::OpenaiChat);
    let system = |text: &str| json!({"role": "system", "content": text});
    let question = json!({"role": "user", "content": "Where do the parcels of hall 4 go?"});
    let more = json!({"role": "user", "content": "And those of hall 5?"});
    let live = [system("one"), question.clone()];
    host.append(&live, None);
    let answer = |(system, messages, _): (Option<String>, String, u32)| {
        (system, serde_json::from_str::<Vec<Value>>(&messages).unwrap().len())
    };
    let one = Some("one".to_owned());
    assert_eq!(answer(host.assemble(1_000, &[])), (one.clone(), 1));
    assert_eq!(answer(host.assemble(1_000, &live)), (one.clone(), 1));
    let two = [system("two"), question.clone(), more.clone()];
    assert_eq!(answer(host.assemble(1_000, &two)), (Some("two".into()), 2));
    // A system message alone does not fill the slot; it stays a message.
    assert_eq!(answer(host.assemble(1_000, &[system("note")])), (one.clone(), 2));
    let mut empty = Host::new(Dialect::OpenaiChat);
    assert_eq!(answer(empty.assemble(1_000, &two)), (Some("two".into()), 2));
    assert_eq!(answer(host.assemble(1_000, &[])), (one, 1));
}

/// A clock in the prompt changes while the list shares nothing with the store: its first question
/// is edited, or it has only the newest pair. The prompt stays in the slot; a reminder is not put
/// into the slot.
#[test]
fn a_prompt_with_a_clock_fills_the_slot_of_any_list() {
    let mut host = Host::new(Dialect::OpenaiChat);
    let system = |text: &str| json!({"role": "system", "content": text});
    let prompt = |turn: u64| format!("{MARK} You help the crew of hall 4. It is 10:{turn:02}.");
    let pair = |turn: u64| {
        let question = format!("Which parcels of turn {turn} go to hall {}?", turn * 7);
        let answer = format!("Those of turn {turn} with the label {}.", turn * 13);
        [
            json!({"role": "user", "content": question}),
            json!({"role": "assistant", "content": answer}),
        ]
    };
    let first = pair(1);
    host.append(&[system(&prompt(1)), first[0].clone(), first[1].clone()], None);
    host.append(&[system(&prompt(2)), pair(2)[0].clone()], None);
    assert_eq!(host.assemble(10_000, &[]).0, Some(prompt(2)));
    for turn in 3..20 {
        let [question, answer] = pair(turn);
        assert_eq!(host.append(&[system(&prompt(turn)), question, answer], None), 3);
        assert_eq!(host.assemble(10_000, &[]).0, Some(prompt(turn)));
    }
    assert!(!host.stored_texts().contains(MARK));
    let reminder = "The parcels of hall 4 are late today.";
    host.append(&[system(reminder), pair(30)[0].clone()], None);
    assert_eq!(host.assemble(10_000, &[]).0, Some(prompt(19)));
    assert!(host.stored_texts().contains(reminder));
    host.ensure_sound();
}

/// The option `system` and the leading messages of the list are one version of at most 64 messages.
#[test]
fn a_version_has_at_most_64_messages() {
    let mut host = Host::new(Dialect::OpenaiChat);
    let mut list: Vec<String> = (0..64)
        .map(|rule| json!({"role": "system", "content": format!("Rule {rule}.")}).to_string())
        .collect();
    list.push(json!({"role": "user", "content": "Which rules are there?"}).to_string());
    let options = AppendOptions {
        extra_json: Some(json!({"system": "You help."}).to_string()),
        ..AppendOptions::default()
    };
    host.store.begin_call();
    let dialect = ReadDialect::from(host.dialect);
    let (engine, store) = (&mut host.engine, &mut host.store);
    let refused = engine.append(store, CHAT, dialect, &list, &options, host.now).unwrap_err();
    assert!(refused.message.contains("must be at most 64 messages together, got 65"), "{refused}");
    assert!(host.store.entries().is_empty());
    let options = AppendOptions::default();
    host.store.begin_call();
    let (engine, store) = (&mut host.engine, &mut host.store);
    engine.append(store, CHAT, dialect, &list, &options, host.now).expect("64 messages fit");
    host.store.begin_call();
    let status = host.engine.status(&mut host.store, None, host.now).expect("a status");
    let usage = &serde_json::from_str::<Value>(&status).unwrap()["bytes"];
    assert_eq!(usage["summaries"].as_u64(), Some(0), "{usage}");
    host.ensure_sound();
}
