//! The focus brief: a host's text that assembly renders in place of older summaries while a task
//! lasts.
//!
//! In: the host's text, and the last seq that the text covers. Out: the record, of which a
//! conversation has at most one. The brief changes no summary: after its removal, contexts render
//! the summaries again. [`crate::assembly`] decides which summaries the brief replaces.

use alloc::{format, string::String};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonWriter,
        tokens,
    },
    types::api::Timestamp,
};

/// Most bytes of a brief, so that a read of head and brief stays small.
pub(crate) const BRIEF_BYTES_MAX: usize = 64 << 10;

/// The record of a focus brief.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct FocusBrief {
    /// Seq of the last message that the brief covers.
    pub(crate) seq_last: u64,
    /// Time at which the brief was set.
    pub(crate) time: Timestamp,
    pub(crate) text: String,
}

impl SoundRecord for FocusBrief {
    fn is_sound(&self) -> bool {
        codec::are_countable(&[self.seq_last])
            && self.seq_last > 0
            && self.text.len() <= BRIEF_BYTES_MAX
    }
}

impl FocusBrief {
    /// Returns the key of the brief of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.focus_key())
    }

    /// Creates a brief of a conversation with `messages` messages that covers the messages up to
    /// `seq_last`; `None`: all messages.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the text is blank or longer than 64 KiB, or there is no message `seq_last`.
    pub(crate) fn new(
        text: String,
        seq_last: Option<u64>,
        messages: u64,
        time: Timestamp,
    ) -> Result<Self> {
        if text.trim().is_empty() || text.len() > BRIEF_BYTES_MAX {
            return Err(Error::invalid_input(format_args!(
                "`text` must have 1 to {BRIEF_BYTES_MAX} bytes and not be blank, got {} bytes",
                text.len()
            )));
        }
        let seq_last = seq_last.unwrap_or(messages);
        if seq_last == 0 || seq_last > messages {
            return Err(Error::invalid_input(format_args!(
                "`seq_last` must be from 1 to {messages}, the newest message, got {seq_last}"
            )));
        }
        Ok(Self { seq_last, time, text })
    }

    /// Computes the id of the brief: a hash of its text.
    pub(crate) fn id(&self) -> [u8; 8] {
        hash::hash_prefix(&hash::hash_fields(&[b"lcm focus", self.text.as_bytes()]))
    }

    /// Returns the printed id: `focus_` and 16 hex digits.
    pub(crate) fn name(&self) -> String {
        format!("focus_{}", hash::hex(&self.id()))
    }

    /// Returns id, last seq, time and tokens of the brief as JSON, without the text.
    pub(crate) fn to_object(&self) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_text("id", &self.name());
        object.add_number("seq_last", self.seq_last);
        object.add_time("created_at", self.time);
        object.add_number("tokens", tokens::estimate(&self.text).into());
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_has_bounds() {
        assert_eq!(FocusBrief::new("x".into(), None, 7, 1).unwrap().seq_last, 7);
        assert_eq!(FocusBrief::new("x".into(), Some(3), 7, 1).unwrap().seq_last, 3);
        assert!(FocusBrief::new("x".repeat(BRIEF_BYTES_MAX), None, 7, 1).unwrap().is_sound());
        for (text, seq, messages) in
            [(" ", None, 7), ("x", Some(0), 7), ("x", Some(8), 7), ("x", None, 0)]
        {
            assert!(FocusBrief::new(text.into(), seq, messages, 1).is_err(), "{text} {seq:?}");
        }
        assert!(FocusBrief::new("x".repeat(BRIEF_BYTES_MAX + 1), None, 7, 1).is_err());
    }
}
