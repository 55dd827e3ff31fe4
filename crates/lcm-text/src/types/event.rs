//! Events: what a call did, as data for a listener of the host.
//!
//! In: facts of an operation. Out: objects as `schema/events.json` describes. An event has ids,
//! seqs, counts and tokens, and no content of messages. Only the event about a rejected answer
//! quotes the words for which the answer was rejected. The operations and tasks of the core add
//! events; hosts pass them on.

use alloc::string::String;

use crate::base::json::JsonWriter;

/// The kinds of events of the engine. Hosts add `model-called`, and `conflict-repeated` for the
/// calls that they repeat themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventKind {
    /// Messages were stored.
    MessagesStored,
    /// Messages of a list were not stored.
    MessagesSkipped,
    /// Stored messages left the line: a later list of the host went another way.
    MessagesSetAside,
    /// Set-aside messages came back into the line.
    MessagesRestored,
    /// The slot of system messages has another version.
    SystemChanged,
    /// A model is asked for a summary.
    SummaryAsked,
    /// The answer of a model was rejected.
    SummaryRejected,
    /// A summary replaced its sources.
    SummaryMade,
    /// A call is repeated, because another writer committed first.
    ConflictRepeated,
    /// Compaction is deferred, or is deferred no longer.
    CompactionDebt,
}

impl EventKind {
    /// Returns the name of the kind in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MessagesStored => "messages-stored",
            Self::MessagesSkipped => "messages-skipped",
            Self::MessagesSetAside => "messages-set-aside",
            Self::MessagesRestored => "messages-restored",
            Self::SystemChanged => "system-changed",
            Self::SummaryAsked => "summary-asked",
            Self::SummaryRejected => "summary-rejected",
            Self::SummaryMade => "summary-made",
            Self::ConflictRepeated => "conflict-repeated",
            Self::CompactionDebt => "compaction-debt",
        }
    }
}

/// Why a message of a list was not stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// The conversation has the message.
    Known,
    /// The message is a failed turn without content.
    Blank,
    /// An earlier attempt of the same call stored the message.
    Repeated,
    /// The configuration excludes the session.
    Excluded,
}

impl SkipReason {
    /// Returns the name of the reason in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Blank => "blank",
            Self::Repeated => "repeated",
            Self::Excluded => "excluded",
        }
    }
}

/// The events of one call about one conversation, in their order.
#[derive(Clone, Debug)]
pub struct EventList(JsonWriter);

impl Default for EventList {
    fn default() -> Self {
        Self(JsonWriter::new_array())
    }
}

impl EventList {
    /// Adds an event with these members.
    pub fn push(&mut self, kind: EventKind, conversation: &str, members: JsonWriter) {
        let mut event = JsonWriter::new_object();
        event.add_text("kind", kind.as_str());
        event.add_text("conversation", conversation);
        event.append_members(members);
        self.0.push_object(event);
    }

    /// Adds an event about messages that were not stored; none for a `count` of 0.
    pub fn push_skipped(&mut self, conversation: &str, count: u64, reason: SkipReason) {
        if count > 0 {
            let mut members = JsonWriter::new_object();
            members.add_number("count", count);
            members.add_text("reason", reason.as_str());
            self.push(EventKind::MessagesSkipped, conversation, members);
        }
    }

    /// Adds an event about the messages of a range; `count`: number of messages of the range that
    /// the event concerns.
    pub fn push_range(
        &mut self,
        kind: EventKind,
        conversation: &str,
        (seq_first, seq_last): (u64, u64),
        count: u64,
    ) {
        let mut members = JsonWriter::new_object();
        members.add_number("count", count);
        members.add_number("seq_first", seq_first);
        members.add_number("seq_last", seq_last);
        self.push(kind, conversation, members);
    }

    /// Adds an event about a call that is repeated; `attempt`: number of the repetition, from 1.
    pub fn push_repeated(&mut self, conversation: &str, call: &str, attempt: u64) {
        let mut members = JsonWriter::new_object();
        members.add_number("attempt", attempt);
        members.add_text("call", call);
        self.push(EventKind::ConflictRepeated, conversation, members);
    }

    /// Adds an event that is JSON already, unchanged.
    pub fn push_json(&mut self, event: &str) {
        self.0.push_json(event);
    }

    /// Returns whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the events as a JSON array.
    #[must_use]
    pub fn into_json(self) -> String {
        self.0.end_array()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_begins_with_its_kind_and_its_conversation() {
        let mut events = EventList::default();
        assert!(events.is_empty());
        events.push_skipped("a \"b\"", 0, SkipReason::Known);
        assert_eq!(events.clone().into_json(), "[]");
        events.push_skipped("a \"b\"", 2, SkipReason::Blank);
        events.push_json("{}");
        assert_eq!(
            events.into_json(),
            r#"[{"kind":"messages-skipped","conversation":"a \"b\"","count":2,"reason":"blank"},{}]"#
        );
    }
}
