//! Debt: compaction that is due and was put off.
//!
//! A host that must not wait for a model leaves it for later; the record says since when, how often
//! later failed, and from when on it is tried again (behaviour reference, 4.17). Whether anything
//! is due at all is measured anew each time: what was recorded under another budget or before
//! other passes decides nothing.

use serde::{Deserialize, Serialize};

use crate::storage::codec::{self, Sound};
use lcm_text::{
    base::{json::Writer, time},
    types::api::Timestamp,
};

/// Pause after the first failure; each further one doubles it.
const PAUSE_MS: u64 = 5 * 60 * 1_000;
const PAUSE_MS_MAX: u64 = 30 * 60 * 1_000;

/// What a conversation owes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Debt {
    /// When it was seen first.
    pub(crate) since: Timestamp,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// From when on it is tried; at most `since`: at once.
    pub(crate) next_attempt_at: Timestamp,
    /// Tokens of the stored context when nothing more could be done; `None`: something may. It is
    /// not tried again until they change.
    pub(crate) exhausted_at: Option<u64>,
}

impl Sound for Debt {
    fn is_sound(&self) -> bool {
        self.since <= time::MS_MAX
            && self.next_attempt_at <= time::MS_MAX + PAUSE_MS_MAX
            && codec::countable(&[self.exhausted_at.unwrap_or(0)])
    }
}

impl Debt {
    /// One that is seen now.
    pub(crate) fn begin(now: Timestamp) -> Self {
        Self { since: now, failures: 0, next_attempt_at: now, exhausted_at: None }
    }

    /// After one more failure.
    pub(crate) fn failed(self, now: Timestamp) -> Self {
        let doubled = PAUSE_MS.saturating_mul(1 << self.failures.min(3));
        let next_attempt_at = now.saturating_add(doubled.min(PAUSE_MS_MAX));
        Self { failures: self.failures.saturating_add(1), next_attempt_at, ..self }
    }

    /// Whether it is to be tried with a stored context of so many tokens.
    pub(crate) fn is_open(&self, tokens: u64, now: Timestamp) -> bool {
        now >= self.next_attempt_at && self.exhausted_at != Some(tokens)
    }

    /// What is shown of it.
    pub(crate) fn object(&self) -> Writer {
        let mut object = Writer::object();
        object.flag("exhausted", self.exhausted_at.is_some());
        object.number("failures", self.failures.into());
        object.time("next_attempt_at", self.next_attempt_at.min(time::MS_MAX));
        object.time("since", self.since);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_55_pauses_double_from_5_minutes_to_30() {
        let mut debt = Debt::begin(7);
        let mut pauses = alloc::vec::Vec::new();
        for _ in 0..5 {
            debt = debt.failed(1_000);
            pauses.push((debt.next_attempt_at - 1_000) / 60_000);
            assert!(debt.is_sound() && !debt.is_open(9, debt.next_attempt_at - 1));
            assert!(debt.is_open(9, debt.next_attempt_at));
        }
        assert_eq!(pauses, [5, 10, 20, 30, 30]);
        assert_eq!((debt.since, debt.failures), (7, 5));
    }

    #[test]
    fn what_cannot_be_done_is_not_tried_until_the_context_changes() {
        let debt = Debt { exhausted_at: Some(9), ..Debt::begin(7) };
        assert!(!debt.is_open(9, 8));
        assert!(debt.is_open(10, 8));
    }
}
