//! What identifies a message in a comparison of lists: what the message says, and its id.
//!
//! In: a message and its projection. Out: a mark of 12 bytes. The head keeps the marks of the
//! newest messages, and the running hashes of the lists that were accepted last.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{hash, json},
    message::{ParsedMessage, meaning},
};
use serde::{Deserialize, Serialize};

/// The mark of a message.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct MessageMark {
    /// Hash of what the message says.
    pub(crate) meaning: [u8; 8],
    /// Hash of the host's ids; zeros: the message has no id.
    pub(crate) id: [u8; 4],
}

impl MessageMark {
    /// Computes the mark of a message.
    pub(crate) fn from_message(raw: &str, message: &ParsedMessage) -> Self {
        let text = |span| json::text(raw, span).into_owned();
        let (entry_id, event_key) = (message.entry_id.map(text), message.event_key.map(text));
        Self::from_parts(&meaning::hash_parts(raw, message), entry_id, event_key)
    }

    /// Computes the mark from the hashes of the parts and the ids.
    pub(crate) fn from_parts(
        parts: &[[u8; 16]],
        entry_id: Option<String>,
        event_key: Option<String>,
    ) -> Self {
        let said = parts.iter().fold([0; 16], |said, part| meaning::advance(&said, part));
        let id = match (entry_id, event_key) {
            (None, None) => [0; 4],
            (entry_id, event_key) => {
                let [entry_id, event_key] = [entry_id, event_key].map(Option::unwrap_or_default);
                let fields: [&[u8]; 3] = [b"lcm id", entry_id.as_bytes(), event_key.as_bytes()];
                let [first, rest @ ..]: [u8; 4] = hash::hash_prefix(&hash::hash_fields(&fields));
                // Zeros are kept for messages without an id.
                [first | 1, rest[0], rest[1], rest[2]]
            }
        };
        Self { meaning: hash::hash_prefix(&said), id }
    }

    /// Returns whether the marks can be of one message: it says the same, and has one id, or was
    /// written without its id once.
    pub(crate) fn is_same_message(&self, other: &Self) -> bool {
        let has_no_id = |mark: &Self| mark.id == [0; 4];
        self.meaning == other.meaning
            && (has_no_id(self) || has_no_id(other) || self.id == other.id)
    }
}

/// A list of a host that begins with messages which are all stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct AcceptedList {
    /// Running hash over the parts of the list.
    pub(crate) hash: [u8; 16],
    /// Seq of the newest message when the list was accepted.
    pub(crate) seq_last: u64,
}

/// Returns the running hash after each part of a list.
pub(crate) fn hash_list<'a>(parts: impl IntoIterator<Item = &'a [u8; 16]>) -> Vec<[u8; 16]> {
    let advance = |running: &mut [u8; 16], part| {
        *running = meaning::advance(running, part);
        Some(*running)
    };
    parts.into_iter().scan([0; 16], advance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::{message, types::api::Dialect};

    fn mark(raw: &str) -> MessageMark {
        MessageMark::from_message(raw, &message::parse(Dialect::Lcm, raw).unwrap())
    }

    #[test]
    fn an_id_that_comes_later_changes_no_message() {
        let none = mark(r#"{"role":"user","content":"Ship it"}"#);
        let one = mark(r#"{"role":"user","content":"Ship it","id":"1"}"#);
        let two = mark(r#"{"role":"user","content":"Ship it","id":"2"}"#);
        assert!(none.is_same_message(&one) && two.is_same_message(&none));
        assert!(!one.is_same_message(&two) && one.is_same_message(&one));
        assert!(!none.is_same_message(&mark(r#"{"role":"user","content":"Sink it"}"#)));
    }
}
