//! Deferred compaction: compaction that is due and that a host postponed.
//!
//! In: the outcomes that a host reports with `maintain`. Out: whether the host may attempt
//! compaction now. The record is part of the head. Whether compaction is due is not stored but
//! evaluated in every call, because budget and context change.

use serde::{Deserialize, Serialize};

use crate::storage::{
    clock::{Clock, ClockReading},
    codec::{self, SoundRecord},
};
use lcm_text::{
    base::{json::JsonWriter, time},
    types::api::Timestamp,
};

/// Pause after the first failure, in milliseconds; each further failure doubles the pause.
const RETRY_PAUSE_MS: u64 = 5 * 60 * 1_000;
/// Longest pause, in milliseconds.
const RETRY_PAUSE_MS_MAX: u64 = 30 * 60 * 1_000;

/// The deferred compaction of a conversation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct DeferredCompaction {
    /// Time at which the deferral began.
    pub(crate) since: Timestamp,
    /// Consecutive failed attempts.
    pub(crate) failures: u32,
    /// Ticks before which `maintain` asks for no attempt, unless the context exceeds the budget.
    pub(crate) next_attempt_at: u64,
    /// Tokens of the stored context when the last attempt found nothing to compact; no attempt is
    /// due until the tokens change. `None`: an attempt may succeed.
    pub(crate) exhausted_tokens: Option<u64>,
}

impl SoundRecord for DeferredCompaction {
    fn is_sound(&self) -> bool {
        self.since <= time::MS_MAX
            && self.next_attempt_at < 1 << 60
            && codec::are_countable(&[self.exhausted_tokens.unwrap_or(0)])
    }
}

impl DeferredCompaction {
    /// Creates a deferral that begins at `now` and allows an attempt from `ticks` on.
    pub(crate) fn new(now: Timestamp, ticks: u64) -> Self {
        Self { since: now, failures: 0, next_attempt_at: ticks, exhausted_tokens: None }
    }

    /// Returns the deferral after one more failed attempt.
    pub(crate) fn with_failure(self, clock: &ClockReading) -> Self {
        let pause = RETRY_PAUSE_MS.saturating_mul(1 << self.failures.min(3));
        let next_attempt_at = clock.deadline_after(pause.min(RETRY_PAUSE_MS_MAX));
        Self { failures: self.failures.saturating_add(1), next_attempt_at, ..self }
    }

    /// Returns whether an attempt may be made now, with a stored context of `tokens` tokens.
    pub(crate) fn can_attempt(&self, tokens: u64, clock: &ClockReading) -> bool {
        !clock.is_ahead(self.next_attempt_at) && self.exhausted_tokens != Some(tokens)
    }

    /// Returns the deferral as JSON, with times of the hosts' clock.
    pub(crate) fn to_object(self, clock: Clock) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_flag("exhausted", self.exhausted_tokens.is_some());
        object.add_number("failures", self.failures.into());
        object.add_time("next_attempt_at", clock.to_time(self.next_attempt_at));
        object.add_time("began_at", self.since);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_5_minutes_to_30() {
        let mut debt = DeferredCompaction::new(7, 7);
        let at = |time| Clock::default().read_at(time);
        let mut pauses = alloc::vec::Vec::new();
        for _ in 0..5 {
            debt = debt.with_failure(&at(1_000));
            pauses.push((debt.next_attempt_at - 1_000) / 60_000);
            assert!(debt.is_sound() && !debt.can_attempt(9, &at(debt.next_attempt_at - 1)));
            assert!(debt.can_attempt(9, &at(debt.next_attempt_at)));
        }
        assert_eq!(pauses, [5, 10, 20, 30, 30]);
        assert_eq!((debt.since, debt.failures), (7, 5));
    }

    #[test]
    fn what_cannot_be_done_is_not_tried_until_the_context_changes() {
        let debt =
            DeferredCompaction { exhausted_tokens: Some(9), ..DeferredCompaction::new(7, 7) };
        let clock = Clock::default().read_at(8);
        assert!(!debt.can_attempt(9, &clock));
        assert!(debt.can_attempt(10, &clock));
    }
}
