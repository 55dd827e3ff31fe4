//! The link of two conversations whose records may name each other.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::storage::{codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey};
use lcm_text::base::limits;

/// A link to another conversation, which has a link back.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConversationLink {
    pub(crate) conversation: String,
}

impl ConversationLink {
    /// Returns the key of the link from one conversation to another.
    pub(crate) fn key(from: &ConversationKeys, to: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(from.link_key(to))
    }
}

impl SoundRecord for ConversationLink {
    fn is_sound(&self) -> bool {
        (1..=limits::CONVERSATION_BYTES_MAX).contains(&self.conversation.len())
    }
}
