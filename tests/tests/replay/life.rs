//! One conversation, sent to a provider turn by turn.

use lcm_core::Engine;
use lcm_testing::{ModelStore, offline};
use lcm_text::types::api::{
    AppendMode, AppendOptions, ApplyStatus, AssembleOptions, CompactionOptions, Dialect,
};

use crate::bill::{BLOCK_TOKENS, Bill, TOKEN_BYTES};

/// Name of the environment variable with another configuration than the default one.
pub(crate) const CONFIG: &str = "LCM_REPLAY_CONFIG";
/// Budget of a prompt, in tokens.
pub(crate) const BUDGET: u32 = 64_000;
/// Times for which the two caches keep a prefix, in milliseconds.
const CACHES_MS: [u64; 2] = [5 * 60_000, 60 * 60_000];
/// Milliseconds between two prompts. `BREAKS`: pairs of a number of turns and the milliseconds of a
/// break of the person after so many turns.
const PROMPT_MS: u64 = 20_000;
const BREAKS: [(usize, u64); 2] = [(7, 10 * 60_000), (50, 3 * 60 * 60_000)];

/// The ways to make the prompts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Host {
    /// The engine, which compacts when this is due.
    Engine,
    /// The engine, which compacts after every turn.
    Eager,
    /// The newest messages that fit.
    Window,
    /// All messages.
    History,
}

impl Host {
    pub(crate) const ALL: [Self; 4] = [Self::Engine, Self::Eager, Self::Window, Self::History];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Engine => "lcm",
            Self::Eager => "compacted every turn",
            Self::Window => "sliding window",
            Self::History => "full history",
        }
    }
}

pub(crate) const HEADING: &str = "\
host                    tokens sent  in the prompt before  at most  passes  bill, part of lcm's: 5 min   1 h";

/// The counts of one replayed conversation.
pub(crate) struct Life {
    pub(crate) host: Host,
    pub(crate) turns: usize,
    pub(crate) passes: u64,
    prompts: u64,
    now: u64,
    /// Milliseconds of breaks since the last prompt, without [`PROMPT_MS`].
    waited: u64,
    /// Bill of a provider that keeps every prefix: the part in the prompt before is read.
    bill: Bill,
    /// Tokens that would be in the prompt before if nothing in it ever changed.
    ceiling: u64,
    before_bytes: usize,
    /// Tokens of the prompts that each cache still had.
    read: [u64; 2],
    /// The turn with the most tokens that are not in the prompt before: turn, these tokens, and all
    /// tokens of the prompt.
    worst: (usize, u64, u64),
}

impl Life {
    /// Makes `turns` turns of a conversation.
    pub(crate) fn lead(host: Host, messages: &[String], turns: usize) -> Self {
        let mut life = Self {
            host,
            turns: 0,
            passes: 0,
            prompts: 0,
            now: 1_700_000_000_000,
            waited: 0,
            bill: Bill::default(),
            ceiling: 0,
            before_bytes: 0,
            read: [0; 2],
            worst: (0, 0, 0),
        };
        let mut engine = Engine::new();
        if let Ok(config) = std::env::var(CONFIG) {
            engine.configure(&config).unwrap();
        }
        let mut store = ModelStore::new();
        let mut waiting: Vec<String> = Vec::new();
        let mut said: Vec<&String> = Vec::new();
        for message in messages {
            let role = role(message);
            if role == "user" {
                if life.turns == turns {
                    break;
                }
                life.turns += 1;
                life.pause();
            }
            if role == "assistant" && !said.is_empty() {
                let prompt = match host {
                    Host::Engine | Host::Eager => {
                        life.append(&mut engine, &mut store, &std::mem::take(&mut waiting));
                        life.compact(&mut engine, &mut store);
                        life.assemble(&mut engine, &mut store)
                    }
                    Host::Window => window(&said),
                    Host::History => array(&said),
                };
                life.send(&prompt);
            }
            waiting.push(message.clone());
            said.push(message);
        }
        life
    }

    /// The person takes a break before some turns.
    fn pause(&mut self) {
        for (every, ms) in BREAKS {
            if self.turns % every == every - 1 {
                self.waited += ms;
            }
        }
    }

    fn send(&mut self, prompt: &str) {
        let (sent, stable) = (self.bill.sent, self.bill.read);
        let blocks = self.before_bytes.min(prompt.len()) / TOKEN_BYTES / BLOCK_TOKENS;
        self.ceiling += (blocks * BLOCK_TOKENS) as u64;
        self.before_bytes = prompt.len();
        self.bill.turn(prompt);
        let (sent, stable) = (self.bill.sent - sent, self.bill.read - stable);
        let waited = std::mem::take(&mut self.waited) + PROMPT_MS;
        self.now += waited;
        for (read, kept) in self.read.iter_mut().zip(CACHES_MS) {
            *read += if waited <= kept { stable } else { 0 };
        }
        // No prompt is before the first one.
        if self.prompts > 0 && sent - stable > self.worst.1 {
            self.worst = (self.turns, sent - stable, sent);
        }
        self.prompts += 1;
    }

    fn append(&self, engine: &mut Engine, store: &mut ModelStore, messages: &[String]) {
        let options = AppendOptions { append_mode: AppendMode::New, ..AppendOptions::default() };
        store.begin_call();
        engine.append(store, "c", Dialect::Lcm, messages, &options, self.now).unwrap();
    }

    fn assemble(&self, engine: &mut Engine, store: &mut ModelStore) -> String {
        store.begin_call();
        let options = AssembleOptions::default();
        let assembled =
            engine.assemble(store, "c", BUDGET, Dialect::Anthropic, &options, self.now).unwrap();
        format!("{}{}", assembled.system.unwrap_or_default(), assembled.messages_json)
    }

    fn compact(&mut self, engine: &mut Engine, store: &mut ModelStore) {
        let force = self.host == Host::Eager;
        let options = CompactionOptions { force, ..CompactionOptions::default() };
        offline::compact((engine, store), ("c", BUDGET), options, self.now, &mut |applied| {
            let answer = applied.answer;
            self.bill.completion(answer.input_tokens, answer.output_tokens);
            self.passes += u64::from(applied.outcome.applied == ApplyStatus::Committed);
        });
    }

    /// Returns the share of sent tokens that were in the beginning of the prompt before, in
    /// thousandths.
    pub(crate) fn stable_permille(&self) -> u64 {
        self.bill.read * 1_000 / self.bill.sent
    }

    /// Returns the bill with one of the caches, in hundredths of the price of an input token: a
    /// token written to the cache costs 1.25, a token read from it 0.1.
    pub(crate) fn bill(&self, cache: usize) -> u64 {
        self.bill.total_of(self.read[cache])
    }

    pub(crate) fn row(&self, engine: u64) -> String {
        let share = |cache| self.bill(cache) as f64 / engine as f64;
        format!(
            "{:22} {:12} {:21.4} {:8.4} {:7} {:26.2} {:5.2}",
            self.host.name(),
            self.bill.sent,
            self.bill.read as f64 / self.bill.sent as f64,
            self.ceiling as f64 / self.bill.sent as f64,
            self.passes,
            share(0),
            share(1),
        )
    }

    pub(crate) fn worst(&self) -> String {
        let (turn, new, sent) = self.worst;
        format!("the worst turn is {turn}: {new} of {sent} tokens are not in the prompt before")
    }
}

/// Returns the bytes of the first thousand messages in `anthropic`, divided by those in `lcm`.
pub(crate) fn anthropic_to_lcm(messages: &[String]) -> f64 {
    let (mut engine, mut store) = (Engine::new(), ModelStore::new());
    let options = AppendOptions { append_mode: AppendMode::New, ..AppendOptions::default() };
    for batch in messages[..messages.len().min(1_000)].chunks(100) {
        store.begin_call();
        engine.append(&mut store, "c", Dialect::Lcm, batch, &options, 0).unwrap();
    }
    let mut bytes = |dialect| {
        store.begin_call();
        let options = AssembleOptions::default();
        let all = engine.assemble(&mut store, "c", u32::MAX, dialect, &options, 0).unwrap();
        all.messages_json.len() as f64
    };
    bytes(Dialect::Anthropic) / bytes(Dialect::Lcm)
}

/// Returns the role of a message; the key may be at any place of the JSON.
fn role(message: &str) -> String {
    let message: serde_json::Value = serde_json::from_str(message).unwrap();
    message["role"].as_str().unwrap().to_owned()
}

fn array(messages: &[&String]) -> String {
    let list: Vec<&str> = messages.iter().map(|message| message.as_str()).collect();
    format!("[{}]", list.join(","))
}

/// Returns the newest messages that fit, as a JSON array.
fn window(messages: &[&String]) -> String {
    let mut left = BUDGET as usize * TOKEN_BYTES;
    let fits = |message: &&&String| {
        let rest = left.checked_sub(message.len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let count = messages.iter().rev().take_while(fits).count();
    array(&messages[messages.len() - count..])
}
