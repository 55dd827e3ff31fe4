//! The tombstone: the record in the place of the head while a conversation is being deleted.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::storage::codec::{self, SoundRecord};
use lcm_text::{base::time, types::api::Timestamp};

/// The progress of a deletion.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Tombstone {
    pub(crate) tenant: String,
    pub(crate) conversation: String,
    /// Time at which the deletion began.
    pub(crate) time: Timestamp,
    /// Messages that the conversation had.
    pub(crate) messages: u64,
    /// Records deleted so far, and the bytes of their keys and values.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl SoundRecord for Tombstone {
    fn is_sound(&self) -> bool {
        codec::are_countable(&[self.messages, self.records])
            && self.bytes < 1 << 60
            && self.time <= time::MS_MAX
    }
}
