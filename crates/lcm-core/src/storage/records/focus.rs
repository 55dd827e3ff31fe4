//! The focus brief: one text that stands for the older summaries while a task lasts.
//!
//! In: a text of the host, as a model wrote it from what the recall tools found, and the message up
//! to which it covers the conversation. Out: the one brief that a conversation has. It is shown in
//! place of summaries and replaces none: without it they stand in the context as before. Not here:
//! which it covers ([`crate::assembly`]).

use alloc::{format, string::String};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::codec::{self, SoundRecord};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonWriter,
        tokens,
    },
    types::api::Timestamp,
};

/// Bytes of its text, so that a read of the head and the brief is one of few bytes: about five
/// times what the longest briefs in use have.
pub(crate) const BRIEF_BYTES_MAX: usize = 64 << 10;

/// A focus brief.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct FocusBrief {
    /// It covers summaries of messages up to this one.
    pub(crate) seq_last: u64,
    /// When it was set.
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
    /// A brief of a conversation with so many messages; `seq_last`: `None` for all of them.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no text, too much of it, or a message that there is not.
    pub(crate) fn new(
        text: String,
        seq_last: Option<u64>,
        messages: u64,
        time: Timestamp,
    ) -> Result<Self> {
        if text.trim().is_empty() || text.len() > BRIEF_BYTES_MAX {
            return Err(Error::invalid_input(format_args!(
                "text: a brief has 1 to {BRIEF_BYTES_MAX} bytes"
            )));
        }
        let seq_last = seq_last.unwrap_or(messages);
        if seq_last == 0 || seq_last > messages {
            return Err(Error::invalid_input(format_args!(
                "seq_last: {seq_last} is not from 1 to {messages}, the newest message"
            )));
        }
        Ok(Self { seq_last, time, text })
    }

    /// What was read under its key.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    #[inline(never)]
    pub(crate) fn read(key: &str, value: &[u8]) -> Result<Self> {
        codec::decode(key, value)
    }

    /// Names the text.
    pub(crate) fn id(&self) -> [u8; 8] {
        hash::hash_prefix(&hash::hash_fields(&[b"lcm focus", self.text.as_bytes()]))
    }

    /// The printed id.
    pub(crate) fn name(&self) -> String {
        format!("focus_{}", hash::hex(&self.id()))
    }

    /// What a host is told of it.
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
