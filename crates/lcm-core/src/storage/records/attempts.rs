//! The record of the attempts to summarise one set of sources.
//!
//! Compaction writes the record with each rejected answer or lease, and reads it before the next
//! attempt.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey, summary::StoredLevel,
};
use lcm_text::{base::limits, types::model::Level};

/// Default lease of the requests of a task, in milliseconds. The lease is longer than most answers
/// take, but not much longer: if the process is killed, no other process can take its requests
/// until the lease ends. If an answer takes longer than the lease, two processes may request the
/// same answer; the later answer is then `stale`.
pub(crate) const LEASE_MS: u32 = 120_000;

/// The attempts on one set of sources. The commit of a summary of these sources deletes the record.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct TaskAttempts {
    /// Level of the next attempt.
    pub(crate) level: StoredLevel,
    /// Number of the next attempt, from 1.
    pub(crate) attempt: u32,
    /// Findings of the verifier in the last answer, one per line, less than 2 KiB; empty: the last
    /// answer had no findings, or there was no answer.
    pub(crate) findings: String,
    /// Most tokens of the sources that the next request shows, because earlier requests were too
    /// long for the model; 0: all of them.
    pub(crate) shown_tokens_max: u32,
    /// Tokens of the prompts and answers so far.
    pub(crate) tokens: u64,
    /// Whether even the fallback did not shrink the context; plans then skip these sources.
    pub(crate) is_exhausted: bool,
    /// End of the lease in ticks, until which other planners skip the sources; 0: no lease.
    pub(crate) lease_until: u64,
}

impl Default for TaskAttempts {
    fn default() -> Self {
        Self {
            level: StoredLevel::Normal,
            attempt: 1,
            findings: String::new(),
            shown_tokens_max: 0,
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

impl TaskAttempts {
    /// Returns the key of the attempts on the sources with this hash.
    pub(crate) fn key(keys: &ConversationKeys, sources: &[u8; 16]) -> RecordKey<Self> {
        RecordKey::new(keys.attempt_key(sources))
    }

    /// Returns whether there was no answer so far, and no lease: a record would say nothing.
    pub(crate) fn is_first(&self) -> bool {
        self.attempt == 1 && self.tokens == 0 && !self.is_exhausted && self.lease_until == 0
    }

    /// Returns the level of the next attempt.
    pub(crate) fn completion_level(&self) -> Level {
        self.level.into()
    }
}
