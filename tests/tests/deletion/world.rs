//! A store with conversations that name each other: families, grants, questions, successors.

use lcm_core::Error;
use lcm_testing::{Host, Json, host::StoreMode, simulation::random::Random};

/// The conversation that is deleted. No other id has its text.
pub(crate) const DELETED: &str = "the-one-to-delete";
/// A word that only its messages have.
pub(crate) const SECRET: &str = "zebra";

const CONFIG: &str = r#"{"fresh_tail_messages_max":2,"fresh_tail_tokens_max":null,
    "leaf_chunk_tokens_max":400,"condense_leaves_min":2,"condensed_tokens_target":512,
    "summary_prefix_tokens_target":600,"large_payload_tokens_min":2000}"#;

/// The store, with the values that a life uses later.
pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) now: u64,
    /// Number of texts so far, so that each text is different.
    count: u64,
    /// Grants, with the conversation that issued each.
    grants: Vec<(String, String)>,
    successors: Vec<String>,
}

impl World {
    /// Creates three conversations; the second may be archived with the deleted one as successor.
    pub(crate) fn new(seed: u64) -> Self {
        let host = Host::new(Some(Json::of(CONFIG)), StoreMode::Plain).unwrap();
        let mut world =
            Self { host, now: 1_700_000_000_000, count: 0, grants: vec![], successors: vec![] };
        world.append("b", 3);
        if seed.is_multiple_of(3) {
            world.append("p", 2);
            let reset =
                format!(r#"{{"verb":"reset","arguments_json":{{"successor":"{DELETED}"}}}}"#);
            world.call("p", "admin.call", &reset).unwrap();
            world.successors.push("p".to_owned());
        }
        for conversation in [DELETED, "a"] {
            world.append(conversation, 6);
        }
        world
    }

    /// Lists the other conversations.
    pub(crate) fn others(&self) -> Vec<String> {
        let mut all = vec!["a".to_owned(), "b".to_owned()];
        all.extend(self.successors.iter().cloned());
        all
    }

    /// Makes a call on a conversation, at the next time.
    pub(crate) fn call(
        &mut self,
        conversation: &str,
        name: &str,
        args: &str,
    ) -> Result<Json, Error> {
        self.now += 1_000;
        let timeless = ["recall.messages", "recall.embed", "admin.check", "admin.listing"];
        let has_time = !timeless.contains(&name);
        let Json::Object(mut entries) = Json::of(args) else { panic!("an object: {args}") };
        entries.retain(|(key, _)| key != "conversation");
        entries.push(("conversation".to_owned(), conversation.into()));
        if has_time && !entries.iter().any(|(key, _)| key == "now") {
            entries.push(("now".to_owned(), self.now.into()));
        }
        self.host.told(name, &Json::Object(entries).compact())
    }

    /// Appends messages; an archived conversation refuses them.
    pub(crate) fn append(&mut self, conversation: &str, count: u64) {
        let word = if conversation == DELETED { SECRET } else { "quokka" };
        let messages = (0..count).map(|index| {
            self.count += 1;
            let role = if index % 2 == 0 { "user" } else { "assistant" };
            let filler = "the parcel is in the hall ".repeat(12);
            let text = format!("{word} {} {filler}", self.count);
            let id = format!("entry-{}", self.count);
            Json::object([("id", id.into()), ("role", role.into()), ("content", text.into())])
        });
        let messages = Json::Array(messages.collect());
        // Every third call has its own system prompt.
        let system = Json::from(format!("You look for the {word}, number {}.", self.count));
        let extra = match self.count.is_multiple_of(3) {
            true => Json::object([("system", system)]),
            false => Json::object([]),
        };
        let options = Json::object([("extra_json", extra)]);
        let args = Json::object([("messages", messages), ("options", options)]).compact();
        let _ = self.call(conversation, "ingest.append", &args);
    }

    /// Appends a list that has the beginning of the conversation and another end. The engine sets
    /// the rest of the conversation aside.
    fn fork(&mut self, conversation: &str, random: &mut Random) {
        let range = format!(r#"{{"seq_first":1,"seq_last":{}}}"#, random.between(2, 9));
        let Ok(stored) = self.call(conversation, "recall.messages", &range) else { return };
        let mut messages: Vec<Json> =
            stored.elements().iter().map(|text| Json::of(text.as_str().unwrap())).collect();
        let word = if conversation == DELETED { SECRET } else { "quokka" };
        self.count += 1;
        let text = format!("{word} {} goes another way", self.count);
        messages.push(Json::object([("role", "user".into()), ("content", text.into())]));
        let options = Json::of(r#"{"extra_json":{"seq_seen":1000000}}"#);
        let args = [("messages", Json::Array(messages)), ("options", options)];
        let _ = self.call(conversation, "ingest.append", &Json::object(args).compact());
    }

    fn pick_conversation(&self, random: &mut Random) -> String {
        let mut all = self.others();
        all.extend([DELETED.to_owned(), DELETED.to_owned()]);
        random.pick(&all).clone()
    }

    /// Makes one random call of a host; a refusal is allowed.
    pub(crate) fn act(&mut self, random: &mut Random) {
        let conversation = self.pick_conversation(random);
        match random.between(0, 13) {
            0 | 1 => self.append(&conversation, random.between(1, 9)),
            12 => self.fork(&conversation, random),
            2 | 3 => self.compact(&conversation, 100_000, "{}"),
            13 => self.compact(&conversation, 100_000, r#"{"resummarize":true}"#),
            4 => {
                let family = r#"{"verb":"family","arguments_json":{"family":"all"}}"#;
                let _ = self.call(&conversation, "admin.call", family);
            }
            5 | 6 => self.grant(&conversation, random),
            7 | 8 => self.ask(&conversation, random),
            9 => self.report(&conversation, random),
            10 => self.upload(&conversation),
            11 if random.chance(300) => self.grow(&conversation),
            _ => self.reset(&conversation),
        }
    }

    /// Appends so much that the head's list of packs, the search index and the context are full.
    fn grow(&mut self, conversation: &str) {
        for count in [99, 99] {
            self.append(conversation, count);
        }
        for _ in 0..30 {
            self.append(conversation, 1);
        }
        for _ in 0..60 {
            self.compact(conversation, 100_000, "{}");
        }
        for _ in 0..10 {
            self.compact(conversation, 2_000, "{}");
        }
    }

    fn compact(&mut self, conversation: &str, budget: u64, extra: &str) {
        let plan = format!(
            r#"{{"budget":{budget},"options":{{"force":true,"requests_max":2,"extra_json":{extra}}}}}"#
        );
        let Ok(plan) = self.call(conversation, "compaction.plan", &plan) else { return };
        for request in plan.list("requests") {
            let word = if conversation == DELETED { SECRET } else { "quokka" };
            self.count += 1;
            // Every eighth answer is refused, because it is too long.
            let filler = if self.count.is_multiple_of(8) { 4_000 } else { 1 };
            let text = format!("{word} in the hall {}", "and a parcel ".repeat(filler));
            // Every third answer is from a stand-in model, so its summary is made again later.
            let is_stand_in = extra == "{}" && self.count.is_multiple_of(3);
            let answer = format!(
                r#"{{"request_id":"{}","answer":{{"done":{{"text":"{text}"}}}},
                    "options":{{"extra_json":{{"stand_in":{is_stand_in}}}}}}}"#,
                request.text("id")
            );
            let _ = self.call(conversation, "compaction.apply", &answer);
        }
    }

    fn grant(&mut self, conversation: &str, random: &mut Random) {
        let mut covered = vec![conversation.to_owned()];
        for other in [DELETED, "a", "b"] {
            if random.chance(500) && !covered.iter().any(|known| known == other) {
                covered.push(other.to_owned());
            }
        }
        if random.chance(300) {
            covered.remove(0);
        }
        let list: Vec<Json> = covered.iter().map(|name| name.as_str().into()).collect();
        let mut limits = vec![("conversations".to_owned(), Json::Array(list))];
        if random.chance(400) && !self.grants.is_empty() {
            let (_, parent) = random.pick(&self.grants).clone();
            limits = vec![("parent".to_owned(), parent.into())];
        }
        if random.chance(200) {
            limits.push(("ttl_ms".to_owned(), 1_500_u64.into()));
        }
        let args = Json::object([("grant_json", Json::Object(limits))]).compact();
        let Ok(grant) = self.call(conversation, "recall.grant", &args) else { return };
        self.grants.push((conversation.to_owned(), grant.text("id")));
    }

    fn ask(&mut self, conversation: &str, random: &mut Random) {
        let all = random.chance(600);
        let question = format!(
            r#"{{"question_json":{{"question":"who has the parcel in the hall?",
                "all_conversations":{all},"deadline_ms":2000}}}}"#
        );
        let Ok(step) = self.call(conversation, "recall.ask_plan", &question) else { return };
        let continuation = step.field("continuation").and_then(Json::as_str).unwrap_or_default();
        if continuation.is_empty() || random.chance(300) {
            return;
        }
        let prompt = step.list("requests").first().unwrap().text("prompt");
        let cited = prompt.find("msg_").and_then(|at| prompt.get(at..at + 20)).unwrap_or("msg_1");
        let word = if prompt.contains(SECRET) { SECRET } else { "quokka" };
        let answer = format!(
            r#"{{"continuation":"{continuation}","answers":[{{"done":{{"text":
                "The {word} has it. [{cited}]"}}}}]}}"#
        );
        let _ = self.call(conversation, "recall.ask_apply", &answer);
    }

    fn report(&mut self, conversation: &str, random: &mut Random) {
        let word = if conversation == DELETED { SECRET } else { "quokka" };
        let command = match random.between(0, 4) {
            0 => format!(r#"{{"verb":"focus","arguments_json":{{"text":"The {word}."}}}}"#),
            1 => r#"{"verb":"calibrate","arguments_json":{"model":"m","estimated_tokens":1000,
                "prompt_tokens":1100}}"#
                .to_owned(),
            2 => r#"{"verb":"new","arguments_json":{}}"#.to_owned(),
            3 => r#"{"verb":"usage","arguments_json":{"purpose":"turn","input_tokens":5,
                "output_tokens":1}}"#
                .to_owned(),
            _ => {
                let described = self.call(conversation, "admin.listing", r#"{"kind":"messages"}"#);
                let Some(id) = described
                    .ok()
                    .and_then(|page| page.list("items").first().map(|row| row.text("id")))
                else {
                    return;
                };
                let vectors = format!(
                    r#"{{"vectors_json":{{"model":"m",
                        "vectors":[{{"id":"{id}","vector":[1,0,0,0,0,0,0,0.5]}}]}}}}"#
                );
                let _ = self.call(conversation, "recall.embed", &vectors);
                return;
            }
        };
        let _ = self.call(conversation, "admin.call", &command);
    }

    fn upload(&mut self, conversation: &str) {
        self.count += 1;
        let word = if conversation == DELETED { SECRET } else { "quokka" };
        let text = format!(
            r#"{{"role":"user","content":"{}{}"}}"#,
            format!("{word} ").repeat(60_000),
            self.count
        );
        let upload = lcm_testing::digest::text_sha256(&text);
        let mut offset = 0;
        // Sometimes only the beginning is uploaded, as by a host that never finishes.
        let end = if self.count.is_multiple_of(3) { 150_000 } else { text.len() };
        while offset < end {
            let piece = text.get(offset..(offset + 150_000).min(text.len())).unwrap();
            let args = Json::object([
                ("upload", upload.as_str().into()),
                ("offset", u64::try_from(offset).unwrap().into()),
                ("text", piece.into()),
            ]);
            if self.call(conversation, "ingest.stage", &args.compact()).is_err() {
                return;
            }
            offset += piece.len();
        }
        let append = format!(r#"{{"messages":["@upload {upload}"]}}"#);
        let _ = self.call(conversation, "ingest.append", &append);
    }

    fn reset(&mut self, conversation: &str) {
        self.count += 1;
        let successor = format!("next-{}", self.count);
        let family = r#"{"verb":"family","arguments_json":{"family":"all"}}"#;
        let _ = self.call(conversation, "admin.call", family);
        let reset = format!(r#"{{"verb":"reset","arguments_json":{{"successor":"{successor}"}}}}"#);
        let Ok(answer) = self.call(conversation, "admin.call", &reset) else { return };
        if answer.text("conversation") == successor {
            self.append(&successor, 2);
            self.successors.push(successor);
        }
    }
}
