#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! The dialects of the providers: every text survives, and the provider accepts every assembled
//! context.

mod again;
mod exact;
mod frameworks;
mod generate;
mod properties;
mod round_trip;
mod transcripts;
#[path = "../replay/workload.rs"]
#[expect(dead_code, reason = "real chats are found by the transcripts")]
mod workload;
mod write;

use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::{
    message::{self, ParsedMessage, Part, Role},
    types::{
        api::{
            AppendMode, AppendOptions, AssembleOptions, AssembledContext, CompactionMode,
            CompactionOptions, Dialect, EvictionPolicy, PlanStatus,
        },
        model::CompletionResult,
    },
};

/// All dialects.
pub(crate) const DIALECTS: [Dialect; 9] = Dialect::ALL;

/// Number of requests of the simulated agent.
pub(crate) const TURNS: usize = 200;

const NOW: u64 = 1_700_000_000_000;

/// A conversation in its own store.
pub(crate) struct Chat {
    engine: Engine,
    store: ModelStore,
    /// Live messages of every context, in its dialect.
    pub(crate) live: Vec<String>,
    /// The stored messages as the test itself reads them, oldest first.
    said: Vec<Said>,
}

/// Smallest number of tokens of a large payload, in all configurations of these tests.
const PAYLOAD_TOKENS_MIN: u32 = 1_000;

/// Returns options whose policy and prompt follow from the budget. The prompt has words of the
/// generator, which are numbered.
fn options(budget: u32) -> AssembleOptions {
    let policies = [
        None,
        Some(EvictionPolicy::Chronological),
        Some(EvictionPolicy::PromptAware),
        Some(EvictionPolicy::Layered),
    ];
    AssembleOptions {
        policy: policies[budget as usize % policies.len()],
        prompt: Some(format!("w{}x w{}x?", budget % 7, budget % 30)),
        explain: true,
        ..AssembleOptions::default()
    }
}

/// A stored message, as far as a test needs it to find the protected part of a context.
#[derive(Clone)]
struct Said {
    by_user: bool,
    /// Whether the message may be in one call group with the message before.
    is_inner: bool,
    /// Numbered words of the texts and results.
    words: Vec<String>,
    tokens: u32,
}

impl Said {
    fn new(dialect: Dialect, raw: &str, message: &ParsedMessage) -> Self {
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        let has_result = message.parts.iter().any(is_result);
        let is_item = dialect.has_items() && message.role == Role::Assistant;
        Self {
            by_user: message.role == Role::User && !has_result,
            is_inner: message.role == Role::Tool || has_result || is_item,
            words: words(raw, message),
            tokens: message.tokens,
        }
    }
}

/// Returns the numbered words in the texts and tool results of a message.
fn words(raw: &str, message: &ParsedMessage) -> Vec<String> {
    let span = |part: &Part| match part {
        Part::Text { text } => Some(*text),
        Part::ToolResult { output, .. } => *output,
        _ => None,
    };
    let texts = message.parts.iter().filter_map(span);
    let texts = texts.map(|span| {
        let start = span.start as usize;
        raw.get(start..start + span.length as usize).unwrap()
    });
    let is_word = |word: &&str| {
        let number = word.strip_prefix('w').and_then(|word| word.strip_suffix('x'));
        number.is_some_and(|number| number.parse::<u64>().is_ok())
    };
    texts
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter(is_word)
        .map(str::to_owned)
        .collect()
}

impl Chat {
    pub(crate) fn new(config: &str) -> Self {
        let mut engine = Engine::new();
        engine.configure(config).unwrap();
        Self { engine, store: ModelStore::new(), live: Vec::new(), said: Vec::new() }
    }

    pub(crate) fn append(&mut self, dialect: Dialect, messages: &[String]) {
        let options =
            AppendOptions { append_mode: AppendMode::New, partial: false, extra_json: None };
        let Self { engine, store, .. } = self;
        store.begin_call();
        let receipt = engine.append(store, "c", dialect, messages, &options, NOW).unwrap();
        let known = self.said.len() as u64;
        let Some(last) = receipt.seq_last.filter(|last| *last > known) else { return };
        store.begin_call();
        let stored = engine.messages(store, "c", known + 1, last, u32::MAX).unwrap();
        assert_eq!(stored.len() as u64, last - known);
        self.said.extend(stored.iter().map(|raw| {
            let message = message::parse(dialect, raw).unwrap();
            Said::new(dialect, raw, &message)
        }));
    }

    /// Returns the tokens of original messages, and whether one may be a large payload, which a
    /// context shows as a reference.
    pub(crate) fn tokens_of(&self, first: u64, last: u64) -> (u32, bool) {
        let said = &self.said[first as usize - 1..last as usize];
        let has_large = said.iter().any(|said| said.tokens >= PAYLOAD_TOKENS_MIN);
        (said.iter().map(|said| said.tokens).sum(), has_large)
    }

    /// Returns the words of the newest stored message and of the live messages.
    pub(crate) fn newest_words(&self, dialect: Dialect) -> Vec<String> {
        let mut out = self.said.last().map(|said| said.words.clone()).unwrap_or_default();
        for raw in &self.live {
            out.extend(words(raw, &message::parse(dialect, raw).unwrap()));
        }
        out
    }

    /// Returns the first seq of the protected part: the newest `count` messages, the newest call
    /// group, and the messages from the newest user message on.
    pub(crate) fn always_from(&self, count: usize) -> u64 {
        let newest = self.said.len().saturating_sub(1);
        let inner = self.said.iter().rev().take_while(|said| said.is_inner).count();
        let user = self.said.iter().rposition(|said| said.by_user).unwrap_or(newest);
        let first =
            newest.saturating_sub(inner).min(user).min(self.said.len().saturating_sub(count));
        first as u64 + 1
    }

    pub(crate) fn assemble(
        &mut self,
        dialect: Dialect,
        budget: u32,
        previous: Option<String>,
    ) -> AssembledContext {
        self.assemble_with(dialect, budget, previous, self.live.clone())
    }

    /// Assembles a context with cache marks.
    pub(crate) fn assemble_marked(&mut self, dialect: Dialect, budget: u32) -> AssembledContext {
        let options = AssembleOptions {
            live_messages: self.live.clone(),
            extra_json: Some(r#"{"mark_caches": true}"#.into()),
            ..options(budget)
        };
        let Self { engine, store, .. } = self;
        store.begin_call();
        engine.assemble(store, "c", budget, dialect, &options, NOW).unwrap()
    }

    pub(crate) fn assemble_with(
        &mut self,
        dialect: Dialect,
        budget: u32,
        previous: Option<String>,
        live_messages: Vec<String>,
    ) -> AssembledContext {
        let options = AssembleOptions { previous, live_messages, ..options(budget) };
        let Self { engine, store, .. } = self;
        store.begin_call();
        engine.assemble(store, "c", budget, dialect, &options, NOW).unwrap()
    }

    /// Returns the same conversation with a new engine, which has no cache.
    pub(crate) fn anew(&self, config: &str) -> Self {
        Self { store: self.store.clone(), said: self.said.clone(), ..Self::new(config) }
    }

    /// Restores the store to an earlier state.
    pub(crate) fn restore(&mut self, then: &Self) {
        self.store = then.store.clone();
        self.said.clone_from(&then.said);
    }

    /// Sets the focus brief; `None` removes the brief.
    pub(crate) fn focus(&mut self, text: Option<&str>, seq_last: Option<u64>) {
        let mut arguments = serde_json::json!({"text": text, "seq_last": seq_last});
        arguments.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let Self { engine, store, .. } = self;
        store.begin_call();
        engine.call(store, "c", "focus", &arguments.to_string(), NOW).unwrap();
    }

    pub(crate) fn findings(&self, dialect: Dialect, messages_json: &str) -> String {
        self.engine.validate(dialect, messages_json).unwrap()
    }

    /// Runs one sweep with the offline summariser.
    pub(crate) fn compact(&mut self, budget: u32) {
        let options = CompactionOptions {
            mode: CompactionMode::Sweep,
            force: true,
            target: Some(budget),
            requests_max: 4,
            ..CompactionOptions::default()
        };
        let Self { engine, store, .. } = self;
        store.begin_call();
        let plan = engine.plan(store, "c", budget, &options, NOW).unwrap();
        if plan.status != PlanStatus::NeedsCompletions {
            return;
        }
        for request in plan.requests {
            let answer = CompletionResult::Done(engine.complete_offline(&request));
            store.begin_call();
            engine.apply(store, "c", &request.id, &answer, &Default::default(), NOW).unwrap();
        }
    }
}
