//! The engine as a component in wasmtime, as in the program `lcm`.

use std::{path::Path, sync::Arc, time::Instant};

use lcm_host::{
    Cancel, Clock, Code, CompactOptions, CompactStatus, Component, Lcm, LoadOptions,
    completion::{CompletionProvider, Offline},
    context as assembly, ingestion,
    store::KeyValueStore,
    types::{Completion, CompletionRequest, CompletionResult, Dialect, Finish, Level, Purpose},
    work,
};
use lcm_text::{base::tokens, summary::prompts, types::api::UploadChunk};

use super::{
    Assembled, CONVERSATION, Engine, Load, NOW_MS, Taken,
    compact::{Compacted, Compaction, Stopwatch},
    read::PAGE_BYTES_MAX,
    summarizer::Meter,
};
use crate::failure::{Result, context};

/// Loads a component, or its compiled form from the user's cache folder.
///
/// # Errors
///
/// The file cannot be read or is no component.
pub(super) fn load(path: &Path) -> Result<Component> {
    let wasm = std::fs::read(path).map_err(context(format!("reading `{}`", path.display())))?;
    Ok(Component::load(&wasm, &LoadOptions::default())?)
}

/// The engine in a component instance, with its store.
pub(super) struct OfComponent {
    lcm: Lcm,
    meter: Arc<Meter>,
}

/// A model that answers as the summariser of the meter requires, and records its answers there.
struct Metered {
    offline: Offline,
    meter: Arc<Meter>,
}

impl CompletionProvider for Metered {
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        let begin = Instant::now();
        let source = prompts::parse_material(&request.prompt).map_or("", |(source, _)| source);
        let condensed = request.purpose != Purpose::Leaf;
        let aggressive = request.level != Level::Normal;
        let text = self.meter.summarizer().write(source, condensed, aggressive);
        let result = match text {
            None => self.offline.complete(request, cancel),
            Some(text) => CompletionResult::Done(Completion {
                output_tokens: tokens::estimate(&text),
                text,
                finish: Finish::Stop,
                model: "stand-in".to_owned(),
                input_tokens: request.input_tokens,
            }),
        };
        let written = match &result {
            CompletionResult::Done(completion) => completion.output_tokens,
            CompletionResult::Failed(_) => 0,
        };
        self.meter.add(begin, request.input_tokens, written);
        result
    }
}

impl OfComponent {
    /// Creates an engine that uses this store.
    pub(super) fn new(component: &Component, store: Box<dyn KeyValueStore>) -> Self {
        let meter = Arc::new(Meter::default());
        let model = Metered { offline: Offline::new(component), meter: Arc::clone(&meter) };
        Self { lcm: Lcm::new(component, store, Arc::new(model)), meter }
    }

    /// Makes passes until no more are due or `passes_max` is reached. Returns whether the caller
    /// must call again: passes were made, and the engine stopped before the end.
    fn compact_once(
        &self,
        compaction: &Compaction,
        passes_max: usize,
        stopwatch: &mut Stopwatch<'_>,
    ) -> Result<bool> {
        let cancel = Cancel::default();
        let mut options = CompactOptions::new(compaction.budget, Clock::Fixed(NOW_MS));
        options.mode = work::Mode::UntilUnder;
        options.force = compaction.force;
        let before = stopwatch.done.passes.len();
        let each = &mut |pass: &lcm_host::Pass| {
            stopwatch.lap(pass.depth > 0);
            if stopwatch.done.passes.len() >= passes_max {
                cancel.cancel();
            }
        };
        match self.lcm.compact(CONVERSATION, &options, &cancel, each) {
            Ok(report) => {
                let progress = stopwatch.done.passes.len() > before;
                Ok(progress && report.status == CompactStatus::Partial)
            }
            Err(error) if error.code == Code::Cancelled => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Engine for OfComponent {
    fn version(&mut self) -> Result<String> {
        Ok(self.lcm.version()?)
    }

    fn configure(&mut self, config_json: &str) -> Result<String> {
        Ok(self.lcm.configure(config_json)?)
    }

    fn append(&mut self, messages: &[String]) -> Result<Taken> {
        let options = ingestion::Options {
            append_mode: ingestion::AppendMode::New,
            partial: true,
            extra_json: None,
        };
        let receipt = self.lcm.append(CONVERSATION, Dialect::Lcm, messages, &options, NOW_MS)?;
        Ok(Taken { ingested: receipt.ingested.into(), skipped: receipt.skipped.into() })
    }

    fn stage(&mut self, piece: &UploadChunk<'_>) -> Result<u64> {
        let UploadChunk { upload, offset, text, extra_json } = *piece;
        Ok(self.lcm.stage(CONVERSATION, upload, offset, text, extra_json, NOW_MS)?)
    }

    fn load(&mut self, budget: u32) -> Result<Load> {
        let options = work::Options {
            mode: work::Mode::Threshold,
            force: false,
            target: None,
            observed_tokens: None,
            requests_max: 1,
            lease_ms: 0,
            sweep: None,
            extra_json: None,
        };
        let found = self.lcm.evaluate(CONVERSATION, budget, &options, NOW_MS)?;
        Ok(Load { tokens: found.tokens, threshold: found.threshold })
    }

    fn compact(&mut self, compaction: &Compaction) -> Result<Compacted> {
        let mut stopwatch = Stopwatch::start(&self.meter, compaction.summarizer);
        let passes_max = compaction.passes_max.unwrap_or(usize::MAX);
        while self.compact_once(compaction, passes_max, &mut stopwatch)? {}
        Ok(stopwatch.done)
    }

    fn assemble(&mut self, budget: u32, prompt: Option<&str>) -> Result<Assembled> {
        let options = assembly::Options {
            policy: None,
            prompt: prompt.map(str::to_owned),
            reserve_tokens: 0,
            live_messages: Vec::new(),
            previous: None,
            explain: false,
            extra_json: None,
        };
        let found = self.lcm.assemble(CONVERSATION, budget, Dialect::Lcm, &options, NOW_MS)?;
        Ok(Assembled { messages_json: found.messages_json, tokens: found.tokens })
    }

    fn grep(&mut self, query_json: &str) -> Result<String> {
        Ok(self.lcm.grep(CONVERSATION, query_json, None, NOW_MS)?)
    }

    fn describe(&mut self, id: &str) -> Result<String> {
        Ok(self.lcm.describe(CONVERSATION, id, "{}", None, NOW_MS)?)
    }

    fn expand(&mut self, id: &str, options_json: &str) -> Result<String> {
        Ok(self.lcm.expand(CONVERSATION, id, options_json, None, NOW_MS)?)
    }

    fn listing(&mut self, kind: &str, cursor: Option<&str>) -> Result<String> {
        Ok(self.lcm.listing(kind, Some(CONVERSATION), cursor, PAGE_BYTES_MAX)?)
    }

    fn status(&mut self) -> Result<String> {
        Ok(self.lcm.status(Some(CONVERSATION), NOW_MS)?)
    }

    fn check(&mut self, cursor: Option<&str>) -> Result<String> {
        Ok(self.lcm.check(CONVERSATION, cursor)?)
    }

    fn begin_anew(&mut self) -> Result<()> {
        self.lcm.park();
        Ok(())
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        self.lcm.bytes_on_disk()
    }

    fn linear_memory_bytes(&self) -> Option<u64> {
        Some(self.lcm.memory_bytes_peak())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    #[test]
    fn a_file_that_is_not_there_is_one_line() {
        let Err(Failure(text)) = load(Path::new("no-such-component.wasm")) else {
            panic!("there is no such file");
        };
        assert!(text.starts_with("reading `no-such-component.wasm`: "), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}
