//! Compaction in the protocol: passes, with separate times of the engine and of the model.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::summarizer::{Meter, Summarizer};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compaction {
    /// Tokens that the conversation may use.
    pub(super) budget: u32,
    /// Whether to act below the threshold, too.
    pub(super) force: bool,
    /// The most passes; `None`: as many as are due.
    pub(super) passes_max: Option<usize>,
    /// Who writes the summaries.
    pub(super) summarizer: Summarizer,
}

/// One pass.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Pass {
    /// Whether summaries were summarised.
    pub(super) condensed: bool,
    /// Tokens of all requests.
    pub(super) in_tokens: u32,
    /// Tokens of the last answer.
    pub(super) out_tokens: u32,
    /// Milliseconds.
    pub(super) ms: f64,
    /// Milliseconds without the model's.
    pub(super) ms_excl_llm: f64,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Compacted {
    /// The passes.
    pub(super) passes: Vec<Pass>,
    /// Milliseconds of the model.
    pub(super) llm_ms: f64,
    /// Answers of the model.
    pub(super) llm_calls: usize,
}

/// Makes passes out of the moments at which they ended.
pub(super) struct Stopwatch<'a> {
    meter: &'a Meter,
    lap: Instant,
    /// What was done so far.
    pub(super) done: Compacted,
}

impl<'a> Stopwatch<'a> {
    /// Starts.
    pub(super) fn start(meter: &'a Meter, summarizer: Summarizer) -> Self {
        meter.choose(summarizer);
        Self { meter, lap: Instant::now(), done: Compacted::default() }
    }

    /// A pass ended.
    pub(super) fn lap(&mut self, condensed: bool) {
        let duration = self.lap.elapsed();
        self.lap = Instant::now();
        let answers = self.meter.take();
        let model: Duration = answers.iter().map(|answer| answer.duration).sum();
        let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        self.done.llm_ms += ms(model);
        self.done.llm_calls += answers.len();
        self.done.passes.push(Pass {
            condensed,
            in_tokens: answers.iter().map(|answer| answer.input_tokens).sum(),
            out_tokens: answers.last().map_or(0, |answer| answer.output_tokens),
            ms: ms(duration),
            ms_excl_llm: ms(duration.saturating_sub(model)),
        });
    }
}
