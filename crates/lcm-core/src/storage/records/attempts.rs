//! Records of what was tried: attempts on sources, and guards of models.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::storage::{codec::SoundRecord, summary::StoredLevel};
use lcm_text::{
    base::limits,
    config::Config,
    types::{api::Timestamp, model::Level},
};

/// What was tried on one set of sources. Deleted with them.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct TaskAttempts {
    /// Level of the next attempt.
    pub(crate) level: StoredLevel,
    /// Number of the next attempt, from 1.
    pub(crate) attempt: u32,
    /// What the verifier found in the last answer, one finding a line, less than 2 KiB; empty:
    /// nothing, or there was none.
    pub(crate) findings: String,
    /// Tokens spent so far.
    pub(crate) tokens: u64,
    /// Nothing smaller than the sources can be made of them.
    pub(crate) is_exhausted: bool,
    /// Until when a planner has reserved them; 0: not reserved.
    pub(crate) lease_until: Timestamp,
}

impl Default for TaskAttempts {
    fn default() -> Self {
        Self {
            level: StoredLevel::Normal,
            attempt: 1,
            findings: String::new(),
            tokens: 0,
            is_exhausted: false,
            lease_until: 0,
        }
    }
}

impl SoundRecord for TaskAttempts {
    fn is_sound(&self) -> bool {
        self.attempt <= limits::ATTEMPTS_MAX + 1 && self.tokens < 1 << 60
    }
}

impl SoundRecord for ModelBreaker {}

impl TaskAttempts {
    /// Level of the next attempt.
    pub(crate) fn completion_level(&self) -> Level {
        match self.level {
            StoredLevel::Normal => Level::Normal,
            StoredLevel::Aggressive => Level::Aggressive,
            StoredLevel::Fallback => Level::Fallback,
        }
    }
}

/// How a model has behaved, for all conversations that use it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ModelBreaker {
    /// Consecutive refusals of the key or by policy.
    pub(crate) failures: u32,
    /// Until when it is not asked; 0: it may be.
    pub(crate) open_until: Timestamp,
}

impl ModelBreaker {
    /// The guard after one more refusal.
    pub(crate) fn with_failure(self, now: Timestamp, config: &Config) -> Self {
        let failures = self.failures.saturating_add(1);
        let open = failures >= config.circuit_breaker_threshold;
        let open_until = if open {
            now.saturating_add(config.circuit_breaker_cooldown_ms)
        } else {
            self.open_until
        };
        Self { failures, open_until }
    }

    /// Whether the model is not to be asked now.
    pub(crate) fn is_open(self, now: Timestamp) -> bool {
        now < self.open_until
    }
}
