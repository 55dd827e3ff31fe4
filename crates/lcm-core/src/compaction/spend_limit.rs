//! The spend limit: a pause of the models after too many rejected answers in a row within one
//! window of time.
//!
//! In: an answer and whether the answer became a summary. Out: the ledger with new counts, and
//! perhaps a pause. The settlement of answers uses this module. Only rejected answers lead to a
//! pause, because the number of messages already limits accepted answers.

use alloc::{format, string::String};

use crate::storage::{clock::ClockReading, head::CompletionLedger};
use lcm_text::{
    base::time,
    config::Config,
    types::{api::Timestamp, model::Completion},
};

/// When a pause begins and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpendLimits {
    window_ms: u64,
    rejected_max: u32,
    pause_ms: u64,
}

impl SpendLimits {
    /// Reads the limits from a configuration.
    pub(crate) fn from_config(config: &Config) -> Self {
        Self {
            window_ms: config.summary_call_window_ms,
            rejected_max: config.summary_max_calls_per_window,
            pause_ms: config.summary_spend_backoff_ms,
        }
    }
}

/// Returns the tokens of an answer and its prompt together.
pub(crate) fn count_tokens(completion: &Completion) -> u64 {
    u64::from(completion.input_tokens) + u64::from(completion.output_tokens)
}

/// Counts an answer in the ledger and returns whether the answer began a pause.
///
/// A pause begins with the rejected answer that reaches the limit of one window. An accepted answer
/// resets the count of rejected answers and ends a pause.
pub(crate) fn count_answer(
    ledger: &mut CompletionLedger,
    completion: &Completion,
    is_accepted: bool,
    limits: SpendLimits,
    clock: &ClockReading,
) -> bool {
    ledger.completions += 1;
    ledger.input_tokens += u64::from(completion.input_tokens);
    ledger.output_tokens += u64::from(completion.output_tokens);
    let now = clock.ticks;
    if now >= ledger.window_start.saturating_add(limits.window_ms) {
        (ledger.window_start, ledger.window_completions, ledger.window_tokens) = (now, 0, 0);
        ledger.window_rejected = 0;
    }
    ledger.window_completions = ledger.window_completions.saturating_add(1);
    ledger.window_tokens += count_tokens(completion);
    if is_accepted {
        (ledger.window_rejected, ledger.paused_until) = (0, 0);
        return false;
    }
    ledger.window_rejected = ledger.window_rejected.saturating_add(1);
    if ledger.window_rejected < limits.rejected_max {
        return false;
    }
    ledger.window_rejected = 0;
    ledger.paused_until = clock.deadline_after(limits.pause_ms);
    true
}

/// Builds the warning that no model is asked until a time.
pub(crate) fn build_pause_warning(until: Timestamp) -> String {
    let until = time::iso_millis(until.min(time::MS_MAX));
    format!(
        "models-paused: too many answers in a row were rejected; no model is asked until {until} \
         unless compaction is forced"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::clock::Clock;
    use lcm_text::types::{api::Timestamp, model::Finish};

    const MINUTE_MS: u64 = 60_000;

    fn answer(ledger: &mut CompletionLedger, accepted: bool, now: Timestamp) -> bool {
        let completion = Completion {
            text: "x".into(),
            finish: Finish::Stop,
            model: "m".into(),
            input_tokens: 10,
            output_tokens: 1,
        };
        count_answer(
            ledger,
            &completion,
            accepted,
            SpendLimits::from_config(&Config::default()),
            &Clock::default().read_at(now),
        )
    }

    #[test]
    fn the_24th_answer_in_vain_begins_a_pause_of_30_minutes() {
        let (mut ledger, start) = (CompletionLedger::default(), 100 * MINUTE_MS);
        for number in 1..24 {
            assert!(!answer(&mut ledger, false, start), "{number}");
        }
        assert_eq!(ledger.paused_until, 0);
        assert!(answer(&mut ledger, false, start + 9 * MINUTE_MS));
        assert_eq!(ledger.paused_until, start + 39 * MINUTE_MS);
        assert_eq!((ledger.completions, ledger.window_tokens), (24, 24 * 11));
        answer(&mut ledger, true, start + 9 * MINUTE_MS);
        assert_eq!(ledger.paused_until, 0);
    }

    #[test]
    fn answers_that_become_summaries_and_those_of_an_earlier_window_do_not_count() {
        let mut ledger = CompletionLedger::default();
        for number in 0..1000 {
            assert!(!answer(&mut ledger, number % 24 == 23, 5), "{number}");
        }
        let mut ledger = CompletionLedger::default();
        for number in 0..1000 {
            assert!(!answer(&mut ledger, false, 30_000 * number), "{number}");
        }
    }
}
