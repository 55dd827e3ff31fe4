//! Marks: short hashes by which messages are compared when a host's list is aligned with the line.
//!
//! In: a message and its projection. Out: a mark of 16 bytes, which hashes what the message says
//! and its ids. The head keeps the marks of the newest messages, and the running hashes of the
//! lists that were accepted last.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{hash, json},
    message::{
        ParsedMessage,
        meaning::{self, SaidPart},
    },
};
use serde::{Deserialize, Serialize};

/// The mark of a message.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct MessageMark {
    /// Hash of what the message says.
    pub(crate) meaning: [u8; 8],
    /// Hash of the host's ids; zeros: the message has no id.
    pub(crate) id: [u8; 4],
    /// Hash of the call ids; zeros: the message has none. The lowest bit is 1 if all these ids look
    /// globally unique.
    pub(crate) call: [u8; 4],
}

impl MessageMark {
    /// Computes the mark of a message.
    pub(crate) fn from_message(raw: &str, message: &ParsedMessage) -> Self {
        Self::with_parts(raw, message).0
    }

    /// Computes the mark of a message, and what each part of the message says.
    pub(crate) fn with_parts(raw: &str, message: &ParsedMessage) -> (Self, Vec<SaidPart>) {
        let text = |span| json::text(raw, span).into_owned();
        let (entry_id, event_key) = (message.entry_id.map(text), message.event_key.map(text));
        let parts = meaning::hash_parts(raw, message);
        (Self::from_parts(&parts, entry_id, event_key), parts)
    }

    /// Computes the mark from the parts and the ids.
    pub(crate) fn from_parts(
        parts: &[SaidPart],
        entry_id: Option<String>,
        event_key: Option<String>,
    ) -> Self {
        let said = parts.iter().fold([0; 16], |said, part| meaning::advance(&said, &part.said));
        let call = match parts.iter().all(|part| part.call == [0; 4]) {
            true => [0; 4],
            false => join_calls(parts),
        };
        let id = match (entry_id, event_key) {
            (None, None) => [0; 4],
            (entry_id, event_key) => {
                let [entry_id, event_key] = [entry_id, event_key].map(Option::unwrap_or_default);
                meaning::hash_id(&[b"lcm id", entry_id.as_bytes(), event_key.as_bytes()])
            }
        };
        Self { meaning: hash::hash_prefix(&said), id, call }
    }

    /// Returns the hash of what the message says, with its call ids.
    pub(crate) fn hash_said(&self) -> [u8; 8] {
        let mut said = self.meaning;
        said.iter_mut().zip(self.call).for_each(|(byte, call)| *byte ^= call);
        said
    }

    /// Returns whether the marks can be of one message: they say the same, and neither ids of the
    /// host nor call ids differ.
    pub(crate) fn is_same_message(&self, other: &Self) -> bool {
        self.says_the_same(other) && !are_different(self.call, other.call)
    }

    /// Returns whether the messages say the same and do not have different ids of the host. The
    /// call ids may differ: only the positions in both lists show whether the host rewrote the call
    /// ids of one message.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.meaning == other.meaning && !self.has_other_id(other)
    }

    /// Returns whether the host gave both messages ids, and the ids differ.
    pub(crate) fn has_other_id(&self, other: &Self) -> bool {
        are_different(self.id, other.id)
    }

    /// Returns whether both messages have the same call ids, and these look globally unique.
    pub(crate) fn has_same_call(&self, other: &Self) -> bool {
        self.has_unique_call() && self.call == other.call
    }

    /// Returns whether the message has a call id.
    pub(crate) fn has_call(&self) -> bool {
        self.call != [0; 4]
    }

    /// Returns whether the message has a call id that looks globally unique.
    pub(crate) fn has_unique_call(&self) -> bool {
        self.call[3] & 1 == 1
    }

    /// Returns whether both messages have call ids, and these differ.
    pub(crate) fn has_other_call(&self, other: &Self) -> bool {
        are_different(self.call, other.call)
    }
}

/// Returns the hash of the call ids of parts, of which at least one has an id.
fn join_calls(parts: &[SaidPart]) -> [u8; 4] {
    let calls: Vec<[u8; 4]> = parts.iter().map(|part| part.call).collect();
    let [first, second, third, last] = meaning::hash_id(&[b"lcm calls", calls.as_flattened()]);
    let mut named = parts.iter().filter(|part| part.call != [0; 4]);
    let are_unique = named.all(SaidPart::has_unique_call);
    [first, second, third, (last & !1) | u8::from(are_unique)]
}

/// Returns whether two hashes of ids differ; zeros are no id.
fn are_different(one: [u8; 4], other: [u8; 4]) -> bool {
    one != [0; 4] && other != [0; 4] && one != other
}

/// A list of a host whose messages are all stored. Longer lists may begin with it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct AcceptedList {
    /// Running hash over the parts of the list, with their ids, without rendered summaries.
    pub(crate) hash: [u8; 16],
    /// Hash over the texts of the list as they were handed over last, and over the system messages;
    /// zeros: unknown.
    pub(crate) texts: [u8; 16],
    /// Seq of the newest message when the list was accepted.
    pub(crate) seq_last: u64,
    /// Seq up to which the caller had seen every message then.
    pub(crate) seq_seen: u64,
}

/// Returns the running hash of a list after one more message. `id`: [`MessageMark::id`] of the
/// message.
pub(crate) fn advance_list(running: &[u8; 16], parts: &[SaidPart], id: [u8; 4]) -> [u8; 16] {
    parts.iter().fold(*running, |running, part| {
        let part = hash::hash_fields(&[b"lcm part", &part.said, &part.call, &id]);
        meaning::advance(&running, &hash::hash_prefix(&part))
    })
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

    #[test]
    fn calls_with_different_ids_are_different_calls() {
        let result = |id: &str| {
            mark(&alloc::format!(
                r#"{{"role":"tool","parts":[{{"type":"tool_result","call_id":{id},"output":"go"}}]}}"#
            ))
        };
        let [one, two, none] = ["\"call_1\"", "\"call_2\"", "null"].map(result);
        assert!(!one.is_same_message(&two) && one.says_the_same(&two) && one.has_other_call(&two));
        assert!(
            one.is_same_message(&none) && !one.has_same_call(&one) && !none.has_same_call(&none)
        );
        let unique = result("\"call_abcdefghijkl\"");
        assert!(unique.has_same_call(&unique) && !unique.has_same_call(&one));
    }
}
