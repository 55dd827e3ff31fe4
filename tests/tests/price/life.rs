//! One conversation, turn by turn, with a host that counts its costs.

use lcm_core::Engine;
use lcm_testing::{ModelStore, offline};
use lcm_text::types::api::{
    AppendMode, AppendOptions, ApplyStatus, AssembleOptions, CompactionOptions, Dialect,
};
use serde_json::Value;

use crate::bill::Bill;

/// Budget of the context of every turn, in tokens.
const BUDGET: u32 = 16_000;
/// Time for which the provider keeps a prefix, in milliseconds.
const CACHE_MS: u64 = 5 * 60 * 1_000;
/// One turn of so many comes after a pause of [`PAUSE_MS`].
const PAUSE_EVERY: u64 = 7;
const PAUSE_MS: u64 = 60 * 60 * 1_000;
const TURN_MS: u64 = 60 * 1_000;
/// Prices in millionths for a million tokens, as [`Bill`] counts.
const PRICES: &str =
    r#"{"input":1000000,"output":5000000,"cache_read":100000,"cache_write":1250000}"#;

/// The rule by which a host compacts.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Host {
    /// When the stored context exceeds the threshold.
    Threshold,
    /// When the engine advises it, for any threshold, and when the context exceeds the budget.
    Advice,
}

/// The state of one conversation with its bill.
pub(crate) struct Life {
    engine: Engine,
    store: ModelStore,
    config: String,
    host: Host,
    now: u64,
    turns: u64,
    pub(crate) bill: Bill,
    pub(crate) passes: u64,
    saved_tokens: u64,
    completions: u64,
    input_tokens: u64,
    output_tokens: u64,
    reported: u64,
}

impl Life {
    pub(crate) fn begin(threshold_permille: u32, host: Host) -> Self {
        let config = format!(r#"{{"context_threshold_permille":{threshold_permille}}}"#);
        let mut engine = Engine::new();
        engine.configure(&config).unwrap();
        Self {
            engine,
            store: ModelStore::new(),
            config,
            host,
            now: 1_700_000_000_000,
            turns: 0,
            bill: Bill::default(),
            passes: 0,
            saved_tokens: 0,
            completions: 0,
            input_tokens: 0,
            output_tokens: 0,
            reported: 0,
        }
    }

    /// Returns a copy of the conversation at this moment, with its own bill, which begins at 0.
    pub(crate) fn fork(&self) -> Self {
        let mut fork = Self::begin(750, self.host);
        fork.engine.configure(&self.config).unwrap();
        fork.store = self.store.clone();
        (fork.now, fork.turns, fork.bill) = (self.now, self.turns, self.bill.of_its_own());
        fork
    }

    /// Makes the next turns. `compact`: compacts at the first turn; otherwise only when it must.
    pub(crate) fn lead(&mut self, turns: &[&[String]], compact: bool) {
        for (number, turn) in turns.iter().enumerate() {
            self.append(turn);
            self.compact(compact && number == 0);
            self.prompt();
        }
    }

    /// Appends a turn; returns whether the engine advises compaction if `turns` more turns follow.
    pub(crate) fn advice_on(&mut self, turn: &[String], turns: usize) -> bool {
        self.append(turn);
        self.advice(Some(turns))
    }

    /// Makes one turn as the host does.
    pub(crate) fn turn(&mut self, turn: &[String]) {
        self.append(turn);
        match self.host {
            Host::Threshold => self.compact(false),
            Host::Advice => {
                if self.advice(None) {
                    self.compact(true);
                }
            }
        }
        self.prompt();
    }

    fn append(&mut self, turn: &[String]) {
        self.turns += 1;
        let paused = self.turns.is_multiple_of(PAUSE_EVERY);
        self.now += if paused { PAUSE_MS } else { TURN_MS };
        if paused {
            self.bill.forget();
        }
        let options = AppendOptions { append_mode: AppendMode::New, ..AppendOptions::default() };
        self.store.begin_call();
        let (store, now) = (&mut self.store, self.now);
        self.engine.append(store, "c", Dialect::Lcm, turn, &options, now).unwrap();
    }

    fn prompt(&mut self) {
        let options = AssembleOptions::default();
        self.store.begin_call();
        let (store, now) = (&mut self.store, self.now);
        let assembled =
            self.engine.assemble(store, "c", BUDGET, Dialect::Lcm, &options, now).unwrap();
        let prompt = format!("{}{}", assembled.system.unwrap_or_default(), assembled.messages_json);
        let (sent, read) = (self.bill.sent, self.bill.read);
        self.bill.turn(&prompt);
        let (sent, read) = (self.bill.sent - sent, self.bill.read - read);
        let report = serde_json::json!({
            "purpose": "turn", "input_tokens": sent, "cache_read_tokens": read,
            "cache_write_tokens": sent - read, "cost_micros": 1,
        });
        let told = self.call("usage", &report);
        assert_eq!(told["changed"], true);
        self.reported += sent;
    }

    fn call(&mut self, verb: &str, arguments: &Value) -> Value {
        self.store.begin_call();
        let (store, now) = (&mut self.store, self.now);
        let told = self.engine.call(store, "c", verb, &arguments.to_string(), now).unwrap();
        serde_json::from_str(&told).unwrap()
    }

    fn advice(&mut self, turns: Option<usize>) -> bool {
        let prices: Value = serde_json::from_str(PRICES).unwrap();
        let arguments = serde_json::json!({
            "budget": BUDGET, "prices": prices, "cache_ms": CACHE_MS, "turns": turns,
        });
        self.call("advise", &arguments)["advice"] == "compact"
    }

    fn compact(&mut self, force: bool) {
        let options = CompactionOptions { force, ..CompactionOptions::default() };
        let engine = (&mut self.engine, &mut self.store);
        offline::compact(engine, ("c", BUDGET), options, self.now, &mut |applied| {
            let (answer, outcome) = (applied.answer, applied.outcome);
            self.bill.completion(answer.input_tokens, answer.output_tokens);
            self.completions += 1;
            self.input_tokens += u64::from(answer.input_tokens);
            self.output_tokens += u64::from(answer.output_tokens);
            if outcome.applied == ApplyStatus::Committed {
                self.passes += 1;
                self.saved_tokens += u64::from(outcome.tokens_before - outcome.tokens_after);
            }
        });
    }

    /// Asserts that the ledger agrees with the counted tokens of the context and of the passes.
    pub(crate) fn ledger_agrees(&mut self, at: &str) {
        self.store.begin_call();
        let status = self.engine.status(&mut self.store, Some("c"), self.now).unwrap();
        let status: Value = serde_json::from_str(&status).unwrap();
        let (ledger, number) = (&status["ledger"], |value: &Value| value.as_u64().unwrap());
        let gone = number(&ledger["saved_tokens"]) + number(&ledger["withdrawn_tokens"]);
        let left = number(&status["message_tokens"]) - gone;
        assert_eq!(left, number(&status["context"]["tokens"]), "{at}");
        assert_eq!(number(&ledger["saved_tokens"]), self.saved_tokens, "{at}");
        assert_eq!(number(&ledger["completions"]), self.completions, "{at}");
        assert_eq!(number(&ledger["input_tokens"]), self.input_tokens, "{at}");
        assert_eq!(number(&ledger["output_tokens"]), self.output_tokens, "{at}");
        assert_eq!(number(&status["usage"]["turns"]["calls"]), self.turns, "{at}");
        assert_eq!(number(&status["usage"]["turns"]["input_tokens"]), self.reported, "{at}");
        assert_eq!(self.counted(), left, "{at}");
    }

    /// Counts the tokens of the stored context item by item from the texts.
    fn counted(&mut self) -> u64 {
        let options = AssembleOptions { explain: true, ..AssembleOptions::default() };
        self.store.begin_call();
        let (store, now) = (&mut self.store, self.now);
        let assembled =
            self.engine.assemble(store, "c", 1 << 30, Dialect::Lcm, &options, now).unwrap();
        let mut tokens = 0;
        // System messages are no part of the stored context.
        for item in assembled.items.into_iter().filter(|item| item.kind != "system") {
            if item.kind == "message" {
                tokens += u64::from(item.tokens);
            } else {
                self.store.begin_call();
                let told =
                    self.engine.describe(&mut self.store, "c", &item.id, "{}", None, now).unwrap();
                let told: Value = serde_json::from_str(&told).unwrap();
                tokens +=
                    u64::from(lcm_text::base::tokens::estimate(told["text"].as_str().unwrap()));
            }
        }
        tokens
    }
}
