//! The record of the circuit breaker of a model, which all conversations of the store share.
//!
//! In: refusals of a model's provider. Out: whether compaction may ask the model.

use serde::{Deserialize, Serialize};

use crate::storage::{clock, codec::SoundRecord, keys, record_key::RecordKey};
use lcm_text::{config::Config, types::api::Timestamp};

/// The circuit breaker of a model.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ModelBreaker {
    /// Number of consecutive answers in which the provider refused the API key or the content of
    /// the request.
    pub(crate) failures: u32,
    /// Beginning of the newest pause; 0: there was none.
    pub(crate) open_since: Timestamp,
    /// End of the pause in which the model is not asked; 0: no pause.
    pub(crate) open_until: Timestamp,
}

impl SoundRecord for ModelBreaker {}

impl ModelBreaker {
    /// Returns the key of the breaker with this scope, which names the model.
    pub(crate) fn key(scope: &str) -> RecordKey<Self> {
        RecordKey::new(keys::breaker_key(scope))
    }

    /// Returns the breaker after one more refusal. From `circuit_breaker_threshold` refusals on,
    /// each refusal begins a new pause.
    pub(crate) fn with_failure(self, now: Timestamp, config: &Config) -> Self {
        let failures = self.failures.saturating_add(1);
        let is_open = failures >= config.circuit_breaker_threshold;
        if !is_open {
            return Self { failures, ..self };
        }
        let open_until = now.saturating_add(config.circuit_breaker_cooldown_ms);
        Self { failures, open_since: now, open_until }
    }

    /// Returns whether `now` is within a pause.
    ///
    /// All conversations share the record, and their clocks differ, so its times are those of the
    /// hosts.
    pub(crate) fn is_open(self, now: Timestamp) -> bool {
        clock::is_within_pause(now, self.open_since, self.open_until)
    }
}
