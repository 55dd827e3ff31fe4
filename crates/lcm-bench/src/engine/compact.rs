//! Compaction in the protocol: passes, with separate times of the engine and of the model.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::summarizer::{Meter, Summarizer};

/// A requested compaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compaction {
    /// Tokens that the conversation may use.
    pub(super) budget: u32,
    /// Whether to compact below the threshold as well.
    pub(super) force: bool,
    /// Largest number of passes to make; `None`: as many as are due.
    pub(super) passes_max: Option<usize>,
    /// Writer of the summaries.
    pub(super) summarizer: Summarizer,
}

/// One pass: one summary that was made and committed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Pass {
    /// Whether the sources were summaries; else they were messages.
    pub(super) condensed: bool,
    /// Tokens of all requests to the model in this pass.
    pub(super) in_tokens: u32,
    /// Tokens of the last answer of the model; 0 without an answer.
    pub(super) out_tokens: u32,
    /// Duration of the pass in milliseconds.
    pub(super) ms: f64,
    /// The same duration without the time of the model.
    pub(super) ms_excl_llm: f64,
}

/// The passes of a compaction, with sums.
#[derive(Debug, Default)]
pub(super) struct Compacted {
    /// The passes.
    pub(super) passes: Vec<Pass>,
    /// Milliseconds that the model took for all passes.
    pub(super) llm_ms: f64,
    /// Number of the model's answers.
    pub(super) llm_calls: usize,
}

/// Measures passes: each pass lasts from the end of the pass before to its own end.
pub(super) struct Stopwatch<'a> {
    meter: &'a Meter,
    lap: Instant,
    /// The passes so far.
    pub(super) done: Compacted,
}

impl<'a> Stopwatch<'a> {
    /// Starts the time of the first pass, and makes `summarizer` answer.
    pub(super) fn start(meter: &'a Meter, summarizer: Summarizer) -> Self {
        meter.choose(summarizer);
        Self { meter, lap: Instant::now(), done: Compacted::default() }
    }

    /// Records the end of a pass.
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
