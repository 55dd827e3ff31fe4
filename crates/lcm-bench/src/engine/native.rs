//! The engine without a component, to measure the cost of the component boundary.

use std::time::Instant;

use lcm_core::{
    Engine as Core, Error, ErrorCode,
    store::{Entry, Guard, Put, Store},
};
use lcm_host::store::{self, KeyValueStore, Scan, StoreError};
use lcm_text::{
    base::tokens,
    summary::prompts,
    types::{
        api::{
            AppendMode, AppendOptions, ApplyOptions, ApplyStatus, AssembleOptions, CompactionMode,
            CompactionOptions, Dialect, PlanStatus, UploadChunk,
        },
        model::{Completion, CompletionRequest, CompletionResult, Finish, Level, Purpose},
    },
};

use super::{
    Assembled, CONVERSATION, Engine, Load, NOW_MS, Taken,
    compact::{Compacted, Compaction, Stopwatch},
    read::PAGE_BYTES_MAX,
    summarizer::Meter,
};
use crate::failure::{Result, failure};

/// Adapts a store of `lcm-host` to the engine's trait.
struct Bridge(Box<dyn KeyValueStore>);

fn failed(error: &StoreError) -> Error {
    let code = match error {
        StoreError::Conflict => ErrorCode::Conflict,
        StoreError::Unsupported(_) => ErrorCode::Unsupported,
        StoreError::WouldBlock => ErrorCode::WouldBlock,
        StoreError::Busy(_) | StoreError::Unavailable(_) => ErrorCode::StoreUnavailable,
    };
    Error::new(code, error.to_string())
}

impl Store for Bridge {
    fn get_many(&mut self, keys: &[String]) -> lcm_text::base::error::Result<Vec<Option<Vec<u8>>>> {
        self.0.get_many(keys).map_err(|error| failed(&error))
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> lcm_text::base::error::Result<(Vec<Entry>, bool)> {
        let scan = Scan { start, end, reverse, entries_max, bytes_max };
        let page = self.0.scan(&scan).map_err(|error| failed(&error))?;
        let entry = |(key, value)| Entry { key, value };
        Ok((page.entries.into_iter().map(entry).collect(), page.more))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> lcm_text::base::error::Result<()> {
        let guard = |of: &Guard| store::Guard { key: of.key.clone(), value: of.value.clone() };
        let put = |of: &Put| store::Put { key: of.key.clone(), value: of.value.clone() };
        let guards: Vec<_> = guards.iter().map(guard).collect();
        let puts: Vec<_> = puts.iter().map(put).collect();
        self.0.commit(&guards, &puts).map_err(|error| failed(&error))
    }
}

/// The engine as a crate, with its store.
pub(super) struct Native {
    core: Core,
    store: Bridge,
    config: Option<String>,
    meter: Meter,
}

impl Native {
    /// Creates an engine that uses this store.
    pub(super) fn new(store: Box<dyn KeyValueStore>) -> Self {
        Self { core: Core::new(), store: Bridge(store), config: None, meter: Meter::default() }
    }

    fn complete(core: &Core, meter: &Meter, request: &CompletionRequest) -> CompletionResult {
        let begin = Instant::now();
        let source = prompts::parse_material(&request.prompt).map_or("", |(source, _)| source);
        let condensed = request.purpose != Purpose::Leaf;
        let aggressive = request.level != Level::Normal;
        let text = meter.summarizer().write(source, condensed, aggressive);
        let completion = match text {
            None => core.complete_offline(request),
            Some(text) => Completion {
                output_tokens: tokens::estimate(&text),
                text,
                finish: Finish::Stop,
                model: "stand-in".to_owned(),
                input_tokens: request.input_tokens,
            },
        };
        meter.add(begin, request.input_tokens, completion.output_tokens);
        CompletionResult::Done(completion)
    }

    /// Makes passes until no more are due or `passes_max` is reached. Returns whether the caller
    /// must call again: passes were made, and the engine stopped before the end.
    fn compact_once(
        core: &mut Core,
        store: &mut Bridge,
        compaction: &Compaction,
        passes_max: usize,
        meter: &Meter,
        stopwatch: &mut Stopwatch<'_>,
    ) -> Result<bool> {
        let before = stopwatch.done.passes.len();
        let mut options =
            CompactionOptions { force: compaction.force, ..CompactionOptions::default() };
        options.mode = CompactionMode::UntilUnder;
        loop {
            let plan = core.plan(store, CONVERSATION, compaction.budget, &options, NOW_MS)?;
            for request in &plan.requests {
                let mut next = Some(request.clone());
                while let Some(request) = next {
                    let answer = Self::complete(core, meter, &request);
                    let apply = ApplyOptions::default();
                    let outcome =
                        core.apply(store, CONVERSATION, &request.id, &answer, &apply, NOW_MS)?;
                    if outcome.applied == ApplyStatus::Committed {
                        stopwatch.lap(outcome.depth > 0);
                    }
                    next = outcome.next.filter(|_| outcome.applied == ApplyStatus::Retry);
                }
                if stopwatch.done.passes.len() >= passes_max {
                    return Ok(false);
                }
            }
            if plan.sweep.is_empty() {
                let progress = stopwatch.done.passes.len() > before;
                return Ok(progress && plan.status == PlanStatus::Stopped);
            }
            options.sweep = Some(plan.sweep);
        }
    }
}

impl Engine for Native {
    fn version(&mut self) -> Result<String> {
        Ok(self.core.version())
    }

    fn configure(&mut self, config_json: &str) -> Result<String> {
        let report = self.core.configure(config_json)?;
        self.config = Some(config_json.to_owned());
        Ok(report)
    }

    fn append(&mut self, messages: &[String]) -> Result<Taken> {
        let options =
            AppendOptions { append_mode: AppendMode::New, partial: true, extra_json: None };
        let store = &mut self.store;
        let receipt =
            self.core.append(store, CONVERSATION, Dialect::Lcm, messages, &options, NOW_MS)?;
        Ok(Taken { ingested: receipt.ingested.into(), skipped: receipt.skipped.into() })
    }

    fn stage(&mut self, piece: &UploadChunk<'_>) -> Result<u64> {
        Ok(self.core.stage(&mut self.store, CONVERSATION, piece, NOW_MS)?)
    }

    fn load(&mut self, budget: u32) -> Result<Load> {
        let found = self.core.evaluate(
            &mut self.store,
            CONVERSATION,
            budget,
            &CompactionOptions::default(),
            NOW_MS,
        )?;
        Ok(Load { tokens: found.tokens, threshold: found.threshold })
    }

    fn compact(&mut self, compaction: &Compaction) -> Result<Compacted> {
        let Self { core, store, meter, .. } = self;
        let mut stopwatch = Stopwatch::start(meter, compaction.summarizer);
        let passes_max = compaction.passes_max.unwrap_or(usize::MAX);
        while Self::compact_once(core, store, compaction, passes_max, meter, &mut stopwatch)? {}
        Ok(stopwatch.done)
    }

    fn assemble(&mut self, budget: u32, prompt: Option<&str>) -> Result<Assembled> {
        let options =
            AssembleOptions { prompt: prompt.map(str::to_owned), ..AssembleOptions::default() };
        let store = &mut self.store;
        let found =
            self.core.assemble(store, CONVERSATION, budget, Dialect::Lcm, &options, NOW_MS)?;
        Ok(Assembled { messages_json: found.messages_json, tokens: found.tokens })
    }

    fn grep(&mut self, query_json: &str) -> Result<String> {
        Ok(self.core.grep(&mut self.store, CONVERSATION, query_json, None, NOW_MS)?)
    }

    fn describe(&mut self, id: &str) -> Result<String> {
        Ok(self.core.describe(&mut self.store, CONVERSATION, id, "{}", None, NOW_MS)?)
    }

    fn expand(&mut self, id: &str, options_json: &str) -> Result<String> {
        Ok(self.core.expand(&mut self.store, CONVERSATION, id, options_json, None, NOW_MS)?)
    }

    fn listing(&mut self, kind: &str, cursor: Option<&str>) -> Result<String> {
        let conversation = Some(CONVERSATION);
        Ok(self.core.listing(&mut self.store, kind, conversation, cursor, PAGE_BYTES_MAX)?)
    }

    fn status(&mut self) -> Result<String> {
        Ok(self.core.status(&mut self.store, Some(CONVERSATION), NOW_MS)?)
    }

    fn check(&mut self, cursor: Option<&str>) -> Result<String> {
        Ok(self.core.check(&mut self.store, CONVERSATION, cursor)?)
    }

    fn begin_anew(&mut self) -> Result<()> {
        self.core = Core::new();
        if let Some(config) = &self.config
            && let Err(error) = self.core.configure(config)
        {
            return failure(error.to_string());
        }
        Ok(())
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        self.store.0.bytes_on_disk()
    }

    fn linear_memory_bytes(&self) -> Option<u64> {
        None
    }
}
