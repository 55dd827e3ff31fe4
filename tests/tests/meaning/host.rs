//! A host with one conversation, and the messages that it says.

use std::ops::Range;

use lcm_core::Engine;
use lcm_testing::{
    ModelStore, offline,
    transcripts::{PlannedList, export_lines, import_lines},
};
use lcm_text::types::api::{
    AppendMode, AppendOptions, AssembleOptions, CompactionOptions, Dialect, Receipt,
};
use serde_json::{Value, json};

pub(crate) const CHAT: &str = "c";

/// A host with one conversation.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) store: ModelStore,
    pub(crate) now: u64,
    pub(crate) seen: u64,
    pub(crate) warnings: Vec<String>,
}

impl Host {
    pub(crate) fn new() -> Self {
        let (engine, store) = (Engine::new(), ModelStore::new());
        Self { engine, store, now: 1_700_000_000_000, seen: 0, warnings: Vec::new() }
    }

    /// Appends a list as a caller that saw the conversation up to the seq `seen`; `None`: without
    /// `seq_seen`.
    pub(crate) fn append_seen(
        &mut self,
        dialect: Dialect,
        list: &[Value],
        seen: Option<u64>,
    ) -> Receipt {
        self.now += 1_000;
        let messages: Vec<String> = list.iter().map(Value::to_string).collect();
        let extra = seen.map(|seen| json!({ "seq_seen": seen }).to_string());
        let options = AppendOptions {
            append_mode: AppendMode::Transcript,
            extra_json: extra,
            ..AppendOptions::default()
        };
        self.store.begin_call();
        let receipt = self
            .engine
            .append(&mut self.store, CHAT, dialect, &messages, &options, self.now)
            .expect("an append");
        self.warnings.extend(receipt.warnings.iter().cloned());
        receipt
    }

    pub(crate) fn append(&mut self, dialect: Dialect, list: &[Value]) -> Receipt {
        let receipt = self.append_seen(dialect, list, Some(self.seen));
        self.seen = receipt.seq_seen;
        receipt
    }

    /// Appends messages of Chat as new ones, without `seq_seen`.
    pub(crate) fn append_new(&mut self, list: &[Value]) -> Receipt {
        self.now += 1_000;
        let messages: Vec<String> = list.iter().map(Value::to_string).collect();
        let options = AppendOptions { append_mode: AppendMode::New, ..AppendOptions::default() };
        let (dialect, now) = (Dialect::OpenaiChat, self.now);
        self.store.begin_call();
        let receipt = self.engine.append(&mut self.store, CHAT, dialect, &messages, &options, now);
        receipt.expect("a receipt")
    }

    /// Stores a list of any length by the plan of `reconcile`. Returns how many messages it stored.
    pub(crate) fn ingest(&mut self, list: &[Value]) -> usize {
        self.ingest_in(Dialect::OpenaiChat, list)
    }

    /// As [`Self::ingest`], in a dialect.
    pub(crate) fn ingest_in(&mut self, dialect: Dialect, list: &[Value]) -> usize {
        self.now += 1_000;
        let list: Vec<String> = list.iter().map(Value::to_string).collect();
        let list = PlannedList {
            conversation: CHAT,
            dialect,
            messages: &list,
            seq_seen: Some(self.seen),
            now: self.now,
        };
        let stored = list.store_list(&mut self.engine, &mut self.store).expect("a stored list");
        self.warnings.extend(stored.warnings);
        self.seen = stored.seq_seen;
        stored.ingested as usize
    }

    /// The stored messages.
    pub(crate) fn stored(&mut self) -> Vec<Value> {
        let mut messages: Vec<Value> = Vec::new();
        loop {
            self.store.begin_call();
            let first = messages.len() as u64 + 1;
            let page = self
                .engine
                .messages(&mut self.store, CHAT, first, u64::MAX >> 12, 1 << 20)
                .expect("messages");
            if page.is_empty() {
                return messages;
            }
            messages.extend(page.iter().map(|message| serde_json::from_str(message).unwrap()));
        }
    }

    /// Compacts without a model for a budget of tokens.
    pub(crate) fn compact_chat(&mut self, budget: u32) {
        let options = CompactionOptions::default();
        let engine = (&mut self.engine, &mut self.store);
        offline::compact(engine, (CHAT, budget), options, self.now, &mut |_| {});
    }

    /// The messages of a context of at most `budget` tokens.
    pub(crate) fn assemble_chat(&mut self, dialect: Dialect, budget: u32) -> Vec<Value> {
        let options = AssembleOptions::default();
        self.store.begin_call();
        let assembled = self
            .engine
            .assemble(&mut self.store, CHAT, budget, dialect, &options, self.now)
            .expect("a context");
        serde_json::from_str(&assembled.messages_json).unwrap()
    }

    /// The texts of the context in the dialect of Chat, oldest first.
    pub(crate) fn context_texts(&mut self) -> Vec<String> {
        self.assemble_chat(Dialect::OpenaiChat, 1_000_000).iter().map(text_of).collect()
    }

    /// The lines of an export.
    pub(crate) fn export_chat(&mut self) -> Vec<String> {
        export_lines(&mut self.engine, &mut self.store, CHAT)
    }

    pub(crate) fn import_chat(&mut self, lines: &[String]) {
        import_lines(&mut self.engine, &mut self.store, (lines, usize::MAX), self.now);
    }

    /// A host whose store has the imported conversation.
    pub(crate) fn copy_chat(&mut self) -> Self {
        let mut copy = Self { now: self.now, ..Self::new() };
        copy.import_chat(&self.export_chat());
        copy
    }

    /// Returns the logical digest of the store, which does not depend on its physical records.
    pub(crate) fn digest(&mut self) -> String {
        self.store.begin_call();
        self.engine.digest(&mut self.store, None, true).expect("a digest")
    }

    pub(crate) fn ensure_sound(&mut self) {
        self.store.begin_call();
        let report = self.engine.check(&mut self.store, CHAT, None).expect("a report");
        let report: Value = serde_json::from_str(&report).unwrap();
        for check in report["checks"].as_array().unwrap() {
            assert_eq!(check["status"], "pass", "{check}");
        }
    }
}

pub(crate) fn text_of(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn long_message(role: &str, number: usize) -> Value {
    json!({"role": role, "content": format!("{role} said sentence number {number} of this chat.")})
}

/// Returns a poll: a call and its result. All polls have equal contents and different ids.
pub(crate) fn poll_messages(number: usize) -> [Value; 2] {
    let id = format!("call_abcdefghij{number:04}");
    [
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "status", "arguments": "{\"job\":\"the nightly build of main\"}"}}]}),
        json!({"role": "tool", "tool_call_id": id, "content": "The job is still in the queue."}),
    ]
}

/// A chat of long messages, a question and an answer in turn.
pub(crate) fn chat_of(count: usize) -> Vec<Value> {
    (0..count).map(|number| long_message(["user", "assistant"][number % 2], number)).collect()
}

/// A call with the id `id` and its result.
pub(crate) fn call_messages(number: usize, id: &str) -> [Value; 2] {
    let arguments = json!({"cmd": format!("make step{number} of the tree")}).to_string();
    let call = json!({"id": id, "type": "function", "function": {
        "name": "bash", "arguments": arguments}});
    let output = format!("output number {number} of a command that printed much text");
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": output}),
    ]
}

/// Returns the seeds of a test of random lives: `lives` of them, or as `LCM_SEEDS` (a number of
/// lives) and `LCM_SEED` (a single life) say.
pub(crate) fn read_seeds(lives: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let first = number("LCM_SEED").unwrap_or(0);
    first..first + number("LCM_SEEDS").unwrap_or(if first == 0 { lives } else { 1 })
}
