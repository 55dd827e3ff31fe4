#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Random calls on a family of two conversations whose lists take other branches, come back and
//! grow. After every call, in the answers of every verb and tool, each withdrawn message (a message
//! that is stored but no longer in the context) has the mark of its reason, and no other message
//! has a mark.
//!
//! The test reads the withdrawn messages from the export. While there is no summary and no new
//! session, it also compares them with the context, which has all other messages. The record of
//! withdrawn messages is read at most once per call and conversation, and never while no message is
//! withdrawn.

use std::collections::BTreeMap;

use lcm_core::{
    Engine, Result, Store,
    store::{Entry, Guard, Put},
};
use lcm_testing::{ModelStore, offline, simulation::random::Random, transcripts::export_lines};
use lcm_text::types::{
    api::{
        AppendMode, AppendOptions, AssembleOptions, CompactionMode, CompactionOptions, Dialect,
        ToolOutcome, ToolRequest, ToolScope,
    },
    model::{Completion, CompletionResult, Finish},
};
use serde_json::{Value, json};

const CHATS: [&str; 2] = ["chat", "side"];
const LIVES: u64 = 40;
const ACTS: u64 = 24;
/// A word of every message.
const WORD: &str = "heron";
/// The text of tools for each mark.
const NOTES: [(&str, &str); 2] = [
    ("set-aside", "(set aside: the conversation went another way)"),
    ("revision", "(another form of a message that stands)"),
];

/// Counts the reads of records of withdrawn messages, by key.
struct WatchedStore<'a> {
    store: &'a mut ModelStore,
    reads: BTreeMap<String, u32>,
}

impl Store for WatchedStore<'_> {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        for key in keys.iter().filter(|key| key.ends_with("/w")) {
            *self.reads.entry(key.clone()).or_default() += 1;
        }
        self.store.get_many(keys)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        self.store.scan(start, end, reverse, entries_max, bytes_max)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        self.store.commit(guards, puts)
    }
}

#[derive(Clone, Default)]
struct Chat {
    list: Vec<Value>,
    branches: Vec<Vec<Value>>,
    seq_seen: Option<u64>,
    /// Whether a summary or a new session changed the context, so that it is not compared.
    is_changed: bool,
}

struct Life {
    random: Random,
    engine: Engine,
    store: ModelStore,
    now: u64,
    said: u64,
    chats: [Chat; 2],
    /// Marks that were seen, by reason.
    seen: BTreeMap<String, u64>,
}

impl Life {
    fn new(seed: u64) -> Self {
        // Most messages are summarised, so that summaries of withdrawn messages exist.
        let config = json!({"fresh_tail_messages_max": 2, "leaf_chunk_tokens_max": 40,
            "leaf_tokens_target": 16, "condensed_tokens_target": 16,
            "summary_prefix_tokens_target": 30});
        let mut engine = Engine::new();
        engine.configure(&config.to_string()).expect("a configuration");
        Self {
            random: Random::new(seed),
            engine,
            store: ModelStore::new(),
            now: 1_700_000_000_000,
            said: 0,
            chats: [Chat::default(), Chat::default()],
            seen: BTreeMap::new(),
        }
    }

    fn say_message(&mut self, role: &str) -> Value {
        self.said += 1;
        let number = self.said;
        json!({"role": role, "content":
            format!("[t{number}] the {WORD} that the {role} saw as number {number} flew away")})
    }

    fn hand_over(&mut self, which: usize, list: &[Value]) {
        self.now += 60_000;
        let texts: Vec<String> = list.iter().map(Value::to_string).collect();
        let extra = json!({"seq_seen": self.chats[which].seq_seen}).to_string();
        let options = AppendOptions {
            append_mode: AppendMode::Transcript,
            extra_json: Some(extra),
            ..AppendOptions::default()
        };
        self.store.begin_call();
        let (store, now) = (&mut self.store, self.now);
        let receipt = self.engine.append(store, CHATS[which], Dialect::Lcm, &texts, &options, now);
        self.chats[which].seq_seen = Some(receipt.expect("a receipt").seq_seen);
    }

    fn call_verb(&mut self, which: usize, verb: &str, arguments: &Value) -> Value {
        self.store.begin_call();
        let (store, now) = (&mut self.store, self.now);
        let answer = self.engine.call(store, CHATS[which], verb, &arguments.to_string(), now);
        serde_json::from_str(&answer.expect("an answer")).unwrap()
    }

    fn perform_act(&mut self, which: usize) {
        let length = self.chats[which].list.len();
        let action = if length < 8 { 0 } else { self.random.between(0, 8) };
        let before = self.chats[which].list.clone();
        match action {
            // An earlier question is edited.
            1 | 2 => {
                let from = self.random.between(1, length as u64 / 2 - 1) as usize * 2;
                self.chats[which].list.truncate(from);
            }
            3 if !self.chats[which].branches.is_empty() => {
                let branches = self.chats[which].branches.clone();
                let back = self.random.pick(&branches).clone();
                self.hand_over(which, &back);
                self.chats[which].list = back;
                self.chats[which].branches.push(before);
                return;
            }
            4 => {
                self.call_verb(which, "rewind", &json!({"units": 1}));
                self.chats[which].list.pop();
                return;
            }
            5 | 7 => {
                let options = CompactionOptions {
                    mode: CompactionMode::Sweep,
                    force: true,
                    target: Some(self.random.between(1, 120) as u32),
                    requests_max: 1,
                    ..CompactionOptions::default()
                };
                let target = (CHATS[which], 4_000);
                let engine = (&mut self.engine, &mut self.store);
                let mut made = 0;
                offline::compact(engine, target, options, self.now, &mut |_| made += 1);
                *self.seen.entry("summaries".into()).or_default() += made;
                self.chats[which].is_changed = true;
                return;
            }
            6 if self.random.chance(300) => {
                self.call_verb(which, "new", &json!({}));
                self.chats[which].is_changed = true;
                return;
            }
            _ => {}
        }
        let turn = [self.say_message("user"), self.say_message("assistant")];
        self.chats[which].list.extend(turn);
        let list = self.chats[which].list.clone();
        if self.random.chance(300) {
            // The answer is appended while it is streamed.
            let mut half = list.clone();
            let text = half.last().unwrap()["content"].as_str().unwrap().to_owned();
            half.last_mut().unwrap()["content"] = json!(text[..text.len() - 10]);
            self.hand_over(which, &half);
        }
        self.hand_over(which, &list);
        self.chats[which].branches.push(before);
    }

    /// Returns the reasons of the withdrawn messages of a conversation, by seq.
    fn read_withdrawn(&mut self, which: usize) -> BTreeMap<u64, &'static str> {
        let mut out = BTreeMap::new();
        for line in export_lines(&mut self.engine, &mut self.store, CHATS[which]) {
            let line: Value = serde_json::from_str(&line).unwrap();
            for range in line["withdrawn"]["ranges"].as_array().into_iter().flatten() {
                let reason = if range["after"].is_null() { "revision" } else { "set-aside" };
                let [first, last] =
                    ["seq_first", "seq_last"].map(|key| range[key].as_u64().unwrap());
                out.extend((first..=last).map(|seq| (seq, reason)));
            }
        }
        out
    }

    /// Runs a call that only reads, and bounds its reads of the records.
    fn read<T>(
        &mut self,
        is_withdrawn: bool,
        act: impl FnOnce(&mut Engine, &mut dyn Store, u64) -> Result<T>,
    ) -> T {
        self.store.begin_call();
        let mut store = WatchedStore { store: &mut self.store, reads: BTreeMap::new() };
        let out = act(&mut self.engine, &mut store, self.now).expect("an answer");
        assert!(store.reads.values().all(|reads| *reads == 1), "{:?}", store.reads);
        assert!(is_withdrawn || store.reads.is_empty(), "{:?}", store.reads);
        out
    }
}

/// The reasons of the withdrawn messages, by id.
type Marks = BTreeMap<String, &'static str>;

impl Life {
    fn check_marks(&mut self) {
        let mut marks = Marks::new();
        let mut ids = Vec::new();
        // A new session withdraws messages, too, and the head has no reasons.
        let mut is_withdrawn = self.chats.iter().any(|chat| chat.is_changed);
        for (which, chat) in CHATS.into_iter().enumerate() {
            let withdrawn = self.read_withdrawn(which);
            is_withdrawn |= !withdrawn.is_empty();
            let rows = self.read(true, |engine, store, _| {
                engine.listing(store, "messages", Some(chat), None, 1 << 20)
            });
            let rows: Value = serde_json::from_str(&rows).unwrap();
            let rows = rows["items"].as_array().unwrap();
            for row in rows {
                let (id, seq) = (row["id"].as_str().unwrap(), row["seq"].as_u64().unwrap());
                assert_eq!(row["withdrawn"].as_str(), withdrawn.get(&seq).copied(), "{row}");
                marks.extend(withdrawn.get(&seq).map(|reason| (id.to_owned(), *reason)));
                ids.push((which, id.to_owned()));
            }
            self.check_context(which, rows);
            self.check_counts(which, &withdrawn, is_withdrawn);
        }
        for reason in marks.values() {
            *self.seen.entry((*reason).to_owned()).or_default() += 1;
        }
        let messages = marks.clone();
        for which in 0..CHATS.len() {
            // Messages of one conversation have ids that differ in the seq alone.
            let first = &ids.iter().find(|(of, _)| *of == which).unwrap().1;
            let of_chat = |id: &str| id[..id.len() - 10] == first[..first.len() - 10];
            let mut messages = messages.clone();
            messages.retain(|id, _| of_chat(id));
            for id in self.list_summaries(which, is_withdrawn) {
                let mark = self.describe_summary(which, &id, &messages, is_withdrawn);
                marks.extend(mark.map(|mark| (id, mark)));
            }
        }
        let summaries = marks.len() - messages.len();
        *self.seen.entry("of summaries".into()).or_default() += summaries as u64;
        for which in 0..CHATS.len() {
            self.check_searches(which, &marks, is_withdrawn);
            self.check_questions(which, &marks, is_withdrawn);
            self.check_sources(which, &marks, is_withdrawn);
            self.check_tools(which, &marks, &ids, is_withdrawn);
        }
        for (which, id) in &ids {
            self.check_message(*which, id, &marks, is_withdrawn);
        }
    }

    /// Checks that the messages without a mark are those of the context.
    fn check_context(&mut self, which: usize, rows: &[Value]) {
        if self.chats[which].is_changed || rows.is_empty() {
            return;
        }
        let assembled = self.read(true, |engine, store, now| {
            let options = AssembleOptions::default();
            engine.assemble(store, CHATS[which], 1_000_000, Dialect::Lcm, &options, now)
        });
        let context: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
        let text = |value: &Value| value["content"].to_string();
        let standing = rows.iter().filter(|row| row["withdrawn"].is_null());
        let standing: Vec<String> = standing
            .map(|row| text(&serde_json::from_str(row["raw"].as_str().unwrap()).unwrap()))
            .collect();
        assert_eq!(standing, context.iter().map(text).collect::<Vec<_>>());
    }

    fn check_counts(&mut self, which: usize, of: &BTreeMap<u64, &str>, is_withdrawn: bool) {
        let count = |reason: &str| of.values().filter(|other| **other == reason).count();
        let wanted = json!({"revisions": count("revision"), "set_aside": count("set-aside")});
        let status = self
            .read(is_withdrawn, |engine, store, now| engine.status(store, Some(CHATS[which]), now));
        let described = self.read(is_withdrawn, |engine, store, now| {
            engine.describe(store, CHATS[which], CHATS[which], "{}", None, now)
        });
        for answer in [status, described] {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["withdrawn_messages"], wanted);
        }
    }

    fn check_searches(&mut self, which: usize, marks: &Marks, is_withdrawn: bool) {
        for query in [
            json!({"pattern": WORD, "limit": 200, "neighbours": 2}),
            json!({"pattern": WORD, "limit": 200, "sort": "recency"}),
            json!({"pattern": "hero[n]", "mode": "regex", "limit": 200}),
        ] {
            let found = self.read(is_withdrawn, |engine, store, now| {
                engine.grep(store, CHATS[which], &query.to_string(), None, now)
            });
            let found: Value = serde_json::from_str(&found).unwrap();
            for hit in found["matches"].as_array().unwrap() {
                let sides = ["neighbours_before", "neighbours_after"].map(|key| &hit[key]);
                let sides = sides.into_iter().filter_map(Value::as_array).flatten();
                for row in sides.chain([hit]) {
                    let id = row["id"].as_str().unwrap();
                    assert_eq!(row["withdrawn"].as_str(), marks.get(id).copied(), "{row}");
                }
            }
            let stored = found["total"].as_u64().unwrap();
            let messages = marks.keys().filter(|id| id.starts_with("msg_")).count();
            assert!(stored >= messages as u64, "what is withdrawn is found");
        }
    }

    fn check_message(&mut self, which: usize, id: &str, marks: &Marks, is_withdrawn: bool) {
        // The other conversation of the family finds the message, too.
        for asker in CHATS {
            let described = self.read(is_withdrawn, |engine, store, now| {
                engine.describe(store, asker, id, "{}", None, now)
            });
            let described: Value = serde_json::from_str(&described).unwrap();
            assert_eq!(described["withdrawn"].as_str(), marks.get(id).copied(), "{described}");
        }
        let expanded = self.read(is_withdrawn, |engine, store, now| {
            engine.expand(store, CHATS[which], id, "{}", None, now)
        });
        let expanded: Value = serde_json::from_str(&expanded).unwrap();
        let row = &expanded["messages"][0];
        assert_eq!(
            (row["id"].as_str(), row["withdrawn"].as_str()),
            (Some(id), marks.get(id).copied())
        );
    }

    fn list_summaries(&mut self, which: usize, is_withdrawn: bool) -> Vec<String> {
        let listed = self.read(is_withdrawn, |engine, store, _| {
            engine.listing(store, "summaries", Some(CHATS[which]), None, 1 << 20)
        });
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let items = listed["items"].as_array().unwrap();
        items.iter().map(|summary| summary["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Checks the marks of the messages below summaries.
    fn check_sources(&mut self, which: usize, marks: &Marks, is_withdrawn: bool) {
        for id in self.list_summaries(which, is_withdrawn) {
            let expanded = self.read(is_withdrawn, |engine, store, now| {
                let options = json!({"include_messages": true}).to_string();
                engine.expand(store, CHATS[which], &id, &options, None, now)
            });
            let expanded: Value = serde_json::from_str(&expanded).unwrap();
            for row in ["messages", "summaries"].iter().flat_map(|rows| expanded[rows].as_array()) {
                for row in row {
                    let id = row["id"].as_str().unwrap();
                    assert_eq!(row["withdrawn"].as_str(), marks.get(id).copied(), "{row}");
                }
            }
        }
    }

    /// Describes a summary, and returns its mark: a summary of only withdrawn messages has the mark
    /// of its first message.
    fn describe_summary(
        &mut self,
        which: usize,
        id: &str,
        marks: &Marks,
        is_withdrawn: bool,
    ) -> Option<&'static str> {
        let described = self.read(is_withdrawn, |engine, store, now| {
            engine.describe(store, CHATS[which], id, "{}", None, now)
        });
        let described: Value = serde_json::from_str(&described).unwrap();
        let seq_of = |id: &str| u64::from_str_radix(&id[id.len() - 10..], 16).unwrap();
        let ids = described["message_ids"].as_array().unwrap();
        let mut seqs: Vec<u64> = ids.iter().map(|id| seq_of(id.as_str().unwrap())).collect();
        let ends = ["seq_first", "seq_last"].map(|key| described[key].as_u64().unwrap());
        if described["depth"] != 0 {
            seqs = (ends[0]..=ends[1]).collect();
        }
        let find = |seq: &u64| marks.iter().find(|(id, _)| seq_of(id) == *seq).map(|it| *it.1);
        let mark = find(&ends[0]).filter(|_| seqs.iter().all(|seq| find(seq).is_some()));
        assert_eq!(described["withdrawn"].as_str(), mark, "{described}");
        mark
    }

    fn check_questions(&mut self, which: usize, marks: &Marks, is_withdrawn: bool) {
        let question = format!("Which {WORD} flew away?");
        let plan = self.read(is_withdrawn, |engine, store, now| {
            let question = json!({"question": question, "plan_only": true}).to_string();
            engine.ask_plan(store, CHATS[which], &question, now)
        });
        let plan: Value = serde_json::from_str(&plan).unwrap();
        for share in plan["conversations"].as_array().unwrap() {
            check_ids(&share["ids"], &share["withdrawn_ids"], marks);
        }
        let asked = self.read(is_withdrawn, |engine, store, now| {
            engine.ask_plan(store, CHATS[which], &json!({"question": question}).to_string(), now)
        });
        let asked: Value = serde_json::from_str(&asked).unwrap();
        let Some(request) = asked["requests"].get(0) else { return };
        let prompt = request["prompt"].as_str().unwrap();
        let headers = prompt.lines().filter(|line| line.starts_with("[msg_"));
        let mut cited = String::new();
        for header in headers {
            let id = &header[1..21];
            cited.push_str(&format!("a heron [{id}] "));
            for (reason, note) in NOTES {
                let words = note.trim_matches(['(', ')']);
                let is_noted = header.ends_with(&format!(", {words}]"));
                assert_eq!(is_noted, marks.get(id) == Some(&reason), "{header}");
            }
        }
        let continuation = asked["continuation"].as_str().unwrap();
        let answer = CompletionResult::Done(Completion {
            text: cited,
            finish: Finish::Stop,
            model: "m".into(),
            input_tokens: 1,
            output_tokens: 1,
        });
        let ended = self.read(is_withdrawn, |engine, store, now| {
            engine.ask_apply(store, CHATS[which], continuation, &[answer], now)
        });
        let ended: Value = serde_json::from_str(&ended).unwrap();
        check_ids(&ended["cited_ids"], &ended["withdrawn_ids"], marks);
    }

    fn check_tools(
        &mut self,
        which: usize,
        marks: &Marks,
        ids: &[(usize, String)],
        is_withdrawn: bool,
    ) {
        let mut calls = vec![
            ("lcm_grep", json!({"pattern": WORD, "neighbours": 1})),
            ("lcm_expand_query", json!({"prompt": format!("Which {WORD} flew away?")})),
        ];
        calls.extend(ids.iter().map(|(_, id)| ("lcm_describe", json!({ "id": id }))));
        for id in self.list_summaries(which, is_withdrawn) {
            calls.push(("lcm_describe", json!({ "id": id })));
            calls.push(("lcm_expand", json!({"summaryIds": [id], "includeMessages": true})));
            calls.push(("lcm_expand", json!({"summaryIds": [id]})));
        }
        for (name, arguments) in calls {
            let arguments_json = arguments.to_string();
            let scope = ToolScope::Conversation;
            let outcome = self.read(is_withdrawn, |engine, store, now| {
                let request =
                    ToolRequest { name, arguments_json: &arguments_json, grant: None, scope };
                engine.tool_call(store, CHATS[which], request, now)
            });
            let text = match outcome {
                ToolOutcome::Done(answer) => answer.text,
                ToolOutcome::NeedsCompletions { requests, continuation, .. } => {
                    let answer = self.engine.complete_offline(&requests[0]);
                    let answers = [CompletionResult::Done(answer)];
                    let outcome = self.read(is_withdrawn, |engine, store, now| {
                        engine.tool_resume(store, CHATS[which], &continuation, &answers, scope, now)
                    });
                    let ToolOutcome::Done(answer) = outcome else { continue };
                    answer.text
                }
            };
            check_text(&text, marks);
        }
    }
}

/// Checks that in each line of a tool the text of the mark follows each id with a mark: ids of
/// messages, and the id of a summary at the beginning of a line.
fn check_text(text: &str, marks: &Marks) {
    for line in text.lines().filter(|line| !line.starts_with("Next: ")) {
        let mut ids: Vec<usize> = line.match_indices("msg_").map(|(at, _)| at).collect();
        let is_text = line.starts_with("- sum_") && line.contains(", messages ");
        if line.starts_with("Summary sum_") || is_text {
            ids = Vec::from_iter(line.find("sum_"));
        } else if line.starts_with("Made from") || line.starts_with("Left out") {
            continue;
        }
        for (number, at) in ids.iter().enumerate() {
            let id = &line[*at..line.len().min(at + 20)];
            // A line of citations names several ids, each with the text of its mark.
            let end = ids.get(number + 1).filter(|_| line.starts_with("Cited"));
            let part = &line[*at..end.copied().unwrap_or(line.len())];
            for (reason, note) in NOTES {
                assert_eq!(part.contains(note), marks.get(id) == Some(&reason), "{line}");
            }
        }
    }
}

/// Checks that the marked ids are those of withdrawn messages, in the order of all ids.
fn check_ids(ids: &Value, marked: &Value, marks: &Marks) {
    let ids = ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap());
    let wanted = ids.filter_map(|id| Some(json!({"id": id, "withdrawn": marks.get(id)?})));
    let wanted: Vec<Value> = wanted.collect();
    let none = wanted.is_empty() && marked.is_null();
    assert!(none || *marked == Value::Array(wanted.clone()), "{marked} is not {wanted:?}");
}

#[test]
fn every_withdrawn_message_is_marked_and_no_other() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 1..=LIVES {
        let mut life = Life::new(seed);
        for which in 0..CHATS.len() {
            life.perform_act(which);
            life.call_verb(which, "family", &json!({"family": "birds"}));
        }
        life.check_marks();
        for _ in 0..ACTS {
            let which = life.random.between(0, 1) as usize;
            life.perform_act(which);
            life.check_marks();
        }
        life.seen.into_iter().for_each(|(reason, count)| *seen.entry(reason).or_default() += count);
    }
    assert!(NOTES.iter().all(|(reason, _)| seen.get(*reason) > Some(&1_000)), "{seen:?}");
    assert!(seen.get("of summaries") > Some(&20), "{seen:?}");
}
