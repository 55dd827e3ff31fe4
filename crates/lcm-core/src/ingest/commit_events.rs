//! The events of an append: what was stored, skipped, set aside and brought back.
//!
//! In: the decision about a batch, and its commit. Out: events of the receipt. `append` and its
//! commit use this module.

use crate::storage::{call::Call, head::ConversationHead};
use lcm_text::{
    base::{int, json::JsonWriter},
    types::event::{EventKind, EventList, SkipReason},
};

use super::{batch::AppendCandidate, line_change::LineUpdate, new_messages::AppendDecision};

/// The events of a call that skips all its candidates, the first `repeated` of which an earlier
/// attempt stored.
pub(super) fn list_skips(
    call: Call<'_>,
    candidates: &[AppendCandidate<'_>],
    repeated: u32,
) -> EventList {
    let mut events = EventList::default();
    add_skips(call, candidates, repeated, 0, &mut events);
    events
}

/// Adds an event for each reason to skip candidates, `ingested` of which were stored.
fn add_skips(
    call: Call<'_>,
    candidates: &[AppendCandidate<'_>],
    repeated: u32,
    ingested: u64,
    events: &mut EventList,
) {
    let repeated = u64::from(repeated);
    let rest = candidates.iter().skip(int::to_usize(repeated));
    let blank = int::to_u64(rest.filter(|one| one.message.is_failed_and_empty).count());
    let known = int::to_u64(candidates.len()).saturating_sub(repeated + blank + ingested);
    for (count, reason) in
        [(repeated, SkipReason::Repeated), (known, SkipReason::Known), (blank, SkipReason::Blank)]
    {
        events.push_skipped(call.conversation, count, reason);
    }
}

/// A batch whose commit succeeded.
pub(super) struct CommittedAppend<'a> {
    /// Seq of the first new message; `None`: no new message.
    pub(super) seq_first: Option<u64>,
    /// Tokens of the new messages.
    pub(super) tokens: u64,
    /// Number of first new messages that are other forms of stored messages.
    pub(super) revisions: usize,
    pub(super) decision: &'a AppendDecision,
    pub(super) candidates: &'a [AppendCandidate<'a>],
    /// Number of first candidates that an earlier attempt of the call stored.
    pub(super) repeated: u32,
}

impl CommittedAppend<'_> {
    /// Adds the events about the messages of the batch; `head`: after the commit.
    pub(super) fn add_events(
        &self,
        call: Call<'_>,
        head: &ConversationHead,
        events: &mut EventList,
    ) {
        let ingested = int::to_u64(self.decision.new_messages.len());
        if let Some(seq_first) = self.seq_first {
            let mut members = JsonWriter::new_object();
            members.add_number("context_tokens", head.context.tokens);
            members.add_number("count", ingested);
            members.add_number("revisions", int::to_u64(self.revisions));
            members.add_number("seq_first", seq_first);
            members.add_number("seq_last", head.messages);
            members.add_number("tokens", self.tokens);
            events.push(EventKind::MessagesStored, call.conversation, members);
        }
        add_skips(call, self.candidates, self.repeated, ingested, events);
    }
}

impl LineUpdate {
    /// Adds the events about stored messages that leave the line or come back; `messages`: their
    /// number before the append.
    pub(super) fn add_events(&self, call: Call<'_>, messages: u64, events: &mut EventList) {
        let Some(change) = &self.change else { return };
        let left = self.withdrawals.list_line_ranges(change.fork.saturating_add(1), messages);
        if let (false, Some((first, _)), Some((_, last))) =
            (change.is_grown, left.first(), left.last())
        {
            let count = left.iter().map(|(first, last)| last - first + 1).sum();
            let range = (*first, *last);
            events.push_range(EventKind::MessagesSetAside, call.conversation, range, count);
        }
        for (first, last) in &change.restored {
            let count = last - first + 1;
            let range = (*first, *last);
            events.push_range(EventKind::MessagesRestored, call.conversation, range, count);
        }
    }
}
