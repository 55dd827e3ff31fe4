//! One life of a conversation whose model fails.
//!
//! In: a seed. Out: counts of what happened. A violated property is a panic.

use std::collections::BTreeSet;

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::{
        invariants::{self, Seen},
        random::Random,
        reference::{Message, Reference},
    },
};
use serde_json::{Value, json};

const CONVERSATION: &str = "c";
const WORDS: [&str; 7] = ["garden", "river", "market", "letter", "window", "harvest", "song"];
const MINUTE_MS: u64 = 60_000;
/// Longest pause after a failure, in milliseconds.
const PAUSE_MAX_MS: u64 = 30 * MINUTE_MS;
/// Largest number of calls of `maintain` until no work is left.
const MAINTAINS_MAX: u32 = 60;
/// Largest number of instructions of a task, so that a test ends.
const STEPS_MAX: u32 = 4_000;

/// The ways in which a model answers.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Behaviour {
    Works,
    Fails(&'static str),
    Empty,
    CutOff,
    Refuses,
    SaysNothing(usize),
    StandIn,
}

const FAILURES: [&str; 7] =
    ["auth", "policy", "context-too-long", "rate-limited", "timeout", "unavailable", "other"];

/// Counts of what happened in all lives.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    asked: u64,
    provisional: u64,
    remade: u64,
    nested: u64,
    paused_turns: u64,
    maintains_max: u32,
    behaviours: BTreeSet<String>,
}

impl Figures {
    pub(crate) fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.provisional += other.provisional;
        self.remade += other.remade;
        self.nested += other.nested;
        self.paused_turns += other.paused_turns;
        self.maintains_max = self.maintains_max.max(other.maintains_max);
        self.behaviours.extend(other.behaviours.iter().cloned());
    }

    pub(crate) fn every_kind_occurred(&self) {
        let counts = [self.provisional, self.remade, self.nested, self.paused_turns];
        assert!(counts.iter().all(|count| *count > 0), "{self:?}");
        assert!(self.behaviours.len() >= 12, "{self:?}");
    }
}

struct Life<'a> {
    host: Host,
    random: Random,
    figures: &'a mut Figures,
    reference: Reference,
    seen: Seen,
    behaviour: Behaviour,
    budget: u64,
    now: u64,
    requests: Vec<Value>,
    answers: Vec<Value>,
    /// Whether a request of the task failed in a way after which the task asks no model again.
    has_failed: bool,
    /// Whether a model was asked in the task.
    has_asked: bool,
    /// End of the pause in which no turn asks a model, in milliseconds since 1970.
    paused_until: u64,
}

pub(crate) fn lead_life(seed: u64, figures: &mut Figures) {
    let mut random = Random::new(seed);
    let model = if random.between(0, 1) == 0 { json!({}) } else { json!({"summary_model": "m"}) };
    let host = Host::new(Some(Json::of(&model.to_string())), StoreMode::Plain).unwrap();
    let budget = [700, 1_200, 2_500][random.between(0, 2) as usize];
    let mut life = Life {
        host,
        random,
        figures,
        reference: Reference::default(),
        seen: Seen::default(),
        behaviour: Behaviour::Works,
        budget,
        now: 1_000_000,
        requests: Vec::new(),
        answers: Vec::new(),
        has_failed: false,
        has_asked: false,
        paused_until: 0,
    };
    for _ in 0..life.random.between(0, 59) + 20 {
        life.take_step();
        life.check_invariants();
    }
    life.recover();
}

impl Life<'_> {
    fn take_step(&mut self) {
        if self.random.between(0, 3) == 0 {
            self.behaviour = self.next_behaviour();
            let name = format!("{:?}", self.behaviour);
            self.figures.behaviours.insert(name);
        }
        self.now += self.random.between(0, 4 * MINUTE_MS - 1);
        match self.random.between(0, 19) {
            0..=12 => self.take_turn(),
            kind @ 13..=16 => {
                let task = self.build_task(if kind == 16 { "compact" } else { "maintain" });
                drop(self.drive_task(task));
                if self.has_asked && !self.has_failed {
                    // The model works again.
                    self.paused_until = 0;
                }
            }
            17 => {
                let mut task = self.build_task("compact");
                task["force"] = true.into();
                drop(self.drive_task(task));
            }
            18 => {
                drop(self.drive_task(json!({"task": "resummarize", "conversation": CONVERSATION,
                "budget": self.budget})))
            }
            _ => self.begin_session(),
        }
    }

    fn next_behaviour(&mut self) -> Behaviour {
        match self.random.between(0, 15) {
            0..=3 => Behaviour::Works,
            4..=9 => Behaviour::Fails(FAILURES[self.random.between(0, 6) as usize]),
            10 => Behaviour::Empty,
            11 => Behaviour::CutOff,
            12 => Behaviour::Refuses,
            13 | 14 => Behaviour::SaysNothing(self.random.between(0, 11) as usize),
            _ => Behaviour::StandIn,
        }
    }

    fn build_task(&mut self, name: &str) -> Value {
        json!({"task": name, "conversation": CONVERSATION, "budget": self.budget,
            "requests_max": 1 + self.random.between(0, 2)})
    }

    fn append_messages(&mut self) {
        let count = 1 + self.random.between(0, 2);
        let mut batch = Vec::new();
        for _ in 0..count {
            let number = self.random.between(0, 59) + 10;
            let text: Vec<&str> = (0..number).map(|_| *self.random.pick(&WORDS)).collect();
            let role = if self.random.between(0, 1) == 0 { "user" } else { "assistant" };
            let raw = json!({"role": role, "content": text.join(" ")}).to_string();
            batch.push(Message {
                carried: raw.clone(),
                raw,
                entry_id: None,
                strong: false,
                in_group: None,
                failed_and_empty: false,
            });
        }
        let texts: Vec<Value> =
            batch.iter().map(|message| serde_json::from_str(&message.raw).unwrap()).collect();
        let args = json!({"conversation": CONVERSATION, "messages": texts, "now": self.now,
            "options": {"append_mode": "new"}});
        self.call_host("ingest.append", &args);
        self.reference.append(&batch, false);
    }

    /// Takes a turn as the packages do: append, decide, compact.
    fn take_turn(&mut self) {
        self.append_messages();
        let mut turn = self.build_task("turn");
        turn["defer"] = (self.random.between(0, 1) == 0).into();
        let decided = self.drive_task(turn).unwrap();
        if decided["compact"] != true {
            self.figures.paused_turns += u64::from(self.now < self.paused_until);
            return;
        }
        let mut task = self.build_task("compact");
        task["turn"] = true.into();
        let _ = self.drive_task(task);
        if self.now < self.paused_until {
            assert!(!self.has_asked, "a turn asked a model that pauses");
        }
        if self.has_failed {
            self.paused_until = self.now + 5 * MINUTE_MS;
        }
    }

    fn begin_session(&mut self) {
        let args = json!({"conversation": CONVERSATION, "verb": "new", "now": self.now,
            "arguments_json": {"retain_depth": -1}});
        let _ = self.host.ask("admin.call", &Json::of(&args.to_string()));
    }

    fn call_host(&mut self, name: &str, args: &Value) -> Value {
        let answer = self.host.ask(name, &Json::of(&args.to_string()));
        let answer = answer.unwrap_or_else(|error| panic!("{name} {args}: {error}"));
        serde_json::from_str(&answer.compact()).unwrap()
    }

    /// Drives a task to its end; `Err`: the task failed.
    fn drive_task(&mut self, task: Value) -> Result<Value, Value> {
        (self.has_failed, self.has_asked) = (false, false);
        let mut note = json!({});
        let begin = json!({"task_json": task, "now": self.now});
        let mut instruction = self.fetch_instruction("drive.begin", &begin);
        for _ in 0..STEPS_MAX {
            if let Some(members) = instruction["note"].as_object() {
                for (name, value) in members {
                    note[name] = value.clone();
                }
            }
            if let Some(pass) = instruction.get("pass") {
                self.figures.provisional += u64::from(pass["provisional"] == true);
                self.figures.remade += u64::from(pass["replaces"].is_string());
                let is_nested = pass["replaces"].is_string() && pass["depth"] != 0;
                self.figures.nested += u64::from(is_nested);
            }
            let event = match instruction["do"].as_str().unwrap() {
                "done" => {
                    let mut result = instruction["result"].clone();
                    for (name, value) in note.as_object().unwrap() {
                        result[name] = value.clone();
                    }
                    return Ok(result);
                }
                "fail" => return Err(instruction["error"].clone()),
                "complete" => self.complete_requests(&instruction),
                _ => self.perform_call(&instruction),
            };
            let step = json!({"token": instruction["token"], "event_json": event,
                "now": self.now});
            instruction = self.fetch_instruction("drive.step", &step);
        }
        panic!("{task} does not end");
    }

    fn fetch_instruction(&mut self, name: &str, args: &Value) -> Value {
        let answer = self.call_host(name, args);
        serde_json::from_str(answer.as_str().unwrap()).unwrap()
    }

    fn perform_call(&mut self, instruction: &Value) -> Value {
        let mut args = instruction["arguments"].clone();
        for name in ["arguments_json"] {
            if let Some(text) = args[name].as_str() {
                args[name] = serde_json::from_str(text).unwrap();
            }
        }
        if let Some(text) = args["options"]["extra_json"].as_str() {
            args["options"]["extra_json"] = serde_json::from_str(text).unwrap();
        }
        if let Some(place) = instruction["request"].as_u64() {
            args["request_id"] = self.requests[place as usize]["id"].clone();
            if args.get("answer").is_none() {
                args["answer"] = self.answers[place as usize].clone();
            }
        }
        let name = instruction["call"].as_str().unwrap();
        let answer = match self.host.ask(name, &Json::of(&args.to_string())) {
            Ok(answer) => answer,
            Err(error) => {
                let (code, message) = (error.code.as_str(), error.message.clone());
                return json!({"error": {"code": code, "message": message}});
            }
        };
        let mut result: Value = serde_json::from_str(&answer.compact()).unwrap();
        if let Some(text) = result.as_str() {
            result = serde_json::from_str(text).unwrap();
        }
        if let Some(requests) = result["requests"].as_array() {
            self.requests.clone_from(requests);
            self.answers = vec![Value::Null; requests.len()];
        }
        if !result["next"].is_null() {
            let place = instruction["request"].as_u64().unwrap();
            self.requests[place as usize] = result["next"].clone();
        }
        json!({"result": result})
    }

    fn complete_requests(&mut self, instruction: &Value) -> Value {
        let first = instruction["index_first"].as_u64().unwrap() as usize;
        let count = instruction["count"].as_u64().unwrap() as usize;
        self.has_asked = true;
        let mut events = Vec::new();
        for place in first..first + count {
            self.figures.asked += 1;
            let request = self.requests[place].clone();
            let answer = self.answer_request(&request);
            let event = match answer.get("done") {
                Some(done) if done["model"] == "offline" => {
                    json!({"done": true, "asked": 1, "stand_in": true})
                }
                Some(_) => json!({"done": true, "asked": 1}),
                None => {
                    // The other two codes concern one request, so another request may succeed.
                    let code = answer["failed"]["code"].as_str().unwrap();
                    self.has_failed |= !["context-too-long", "policy"].contains(&code);
                    json!({"failed": answer["failed"], "asked": 1})
                }
            };
            self.answers[place] = answer;
            events.push(event);
        }
        json!({"answers": events})
    }

    fn answer_request(&mut self, request: &Value) -> Value {
        // The answer must be smaller than short sources, and must not repeat a line of them.
        let words: Vec<&str> = (0..6).map(|_| *self.random.pick(&WORDS)).collect();
        let [a, b, c, d, e, f] = words.try_into().unwrap();
        let good = match request["level"].as_str().unwrap() {
            "aggressive" => format!("They spoke of a {a}, a {b} and a {c}."),
            _ => format!(
                "First they spoke of {a} and {b}, then of {c} and {d}, and at last of {e} and {f}."
            ),
        };
        let (text, finish) = match self.behaviour {
            Behaviour::Works => (good, "stop"),
            Behaviour::Fails(code) => {
                return json!({"failed": {"code": code, "message": "it failed"}});
            }
            Behaviour::Empty => (String::new(), "stop"),
            Behaviour::CutOff => (good, "length"),
            Behaviour::Refuses => ("I will not.".to_owned(), "refusal"),
            Behaviour::SaysNothing(number) => (build_idle_answer(number, request), "stop"),
            Behaviour::StandIn => {
                let done =
                    self.call_host("compaction.complete_offline", &json!({"request": request}));
                return json!({ "done": done });
            }
        };
        json!({"done": {"text": text, "finish": finish, "model": "m", "input_tokens": 100,
            "output_tokens": 10}})
    }

    /// Checks all invariants of the conversation.
    fn check_invariants(&mut self) {
        let host = &mut self.host;
        let verdict =
            invariants::all(host, CONVERSATION, &self.reference, &mut self.seen, self.budget);
        verdict.unwrap_or_else(|why| panic!("{why}"));
    }

    fn read_status(&mut self) -> Value {
        if self.reference.is_empty() {
            return json!({"provisional": 0});
        }
        let status =
            self.call_host("admin.status", &json!({"conversation": CONVERSATION, "now": self.now}));
        serde_json::from_str(status.as_str().unwrap()).unwrap()
    }

    /// Lets the model work, and calls `maintain` until no work is left.
    fn recover(&mut self) {
        self.behaviour = Behaviour::Works;
        let mut last = Value::Null;
        for calls in 1..=MAINTAINS_MAX {
            self.now += PAUSE_MAX_MS + 1;
            let task = self.build_task("maintain");
            let done = self.drive_task(task).unwrap();
            self.check_invariants();
            last.clone_from(&done);
            let left = self.read_status()["provisional"].as_u64().unwrap();
            // A context of little more than its fresh tail may stay over the threshold.
            let is_idle = done["compacted"].is_null() && done["debt"]["exhausted"] == true;
            if done["debt"].is_null() || is_idle {
                assert_eq!(left, 0, "`maintain` owes nothing: {done}");
                self.figures.maintains_max = self.figures.maintains_max.max(calls);
                self.ask_for_all();
                return;
            }
        }
        panic!("`maintain` still owes after {MAINTAINS_MAX} calls: {last}");
    }

    /// Makes the summaries again that the broken model refused; then none is provisional.
    fn ask_for_all(&mut self) {
        let task = json!({"task": "resummarize", "conversation": CONVERSATION,
            "budget": self.budget});
        if self.reference.is_empty() {
            return;
        }
        self.drive_task(task).unwrap();
        self.check_invariants();
        let whole = invariants::assemble(&mut self.host, CONVERSATION, 4_000_000).unwrap();
        for item in invariants::items(&whole).unwrap() {
            if item.id.starts_with("sum_") {
                let args = json!({"conversation": CONVERSATION, "id": item.id});
                let described = self.call_host("recall.describe", &args);
                let described: Value = serde_json::from_str(described.as_str().unwrap()).unwrap();
                assert_eq!(described["provisional"], false, "{described}");
            }
        }
        self.ensure_no_replaced_is_found();
    }

    fn ensure_no_replaced_is_found(&mut self) {
        let query = json!({"pattern": "garden OR river", "mode": "full-text",
            "scope": "summaries", "limit": 200});
        let args = json!({"conversation": CONVERSATION, "query_json": query, "now": self.now});
        let found = self.call_host("recall.grep", &args);
        let found: Value = serde_json::from_str(found.as_str().unwrap()).unwrap();
        for hit in found["matches"].as_array().unwrap() {
            let args = json!({"conversation": CONVERSATION, "id": hit["id"]});
            let described = self.call_host("recall.describe", &args);
            let described: Value = serde_json::from_str(described.as_str().unwrap()).unwrap();
            assert!(described["replaced_by"].is_null(), "{described}");
        }
    }
}

/// Builds an answer without content, as models give them.
fn build_idle_answer(number: usize, request: &Value) -> String {
    let prompt = request["prompt"].as_str().unwrap();
    let fixed = [
        "OK.",
        "...",
        "---",
        "None",
        "N/A",
        "I'm sorry, but I can't assist with that request.",
        "I cannot summarize this conversation.",
        "Sure! What would you like me to do next?",
        "Error: rate limit exceeded, please try again later.",
    ];
    match number {
        0..=8 => fixed[number].to_owned(),
        9 => prompt.lines().next().unwrap_or_default().to_owned(),
        10 => {
            let lines: Vec<&str> = prompt.lines().filter(|line| line.len() > 60).collect();
            lines.last().copied().unwrap_or("garden").to_owned()
        }
        _ => "They spoke of a garden beside a river. ".repeat(60),
    }
}
