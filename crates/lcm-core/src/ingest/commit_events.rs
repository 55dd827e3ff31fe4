//! The events of an append: what was stored, skipped, set aside and restored, and another version
//! of the system messages.
//!
//! In: the decision about a batch, and its commit. Out: events of the receipt. `append` and its
//! commit use this module.

use crate::storage::{call::Call, head::ConversationHead, records::system_slot::SystemSlot};
use lcm_text::{
    base::{int, json::JsonWriter},
    types::event::{EventKind, EventList, SkipReason},
};

use super::{batch::AppendCandidate, line_change::LineUpdate, new_messages::AppendDecision};

/// Adds an event for each reason for which messages were skipped. The `known` messages before the
/// candidates are stored, an earlier attempt stored or skipped the first `repeated` candidates, and
/// this call stores `ingested`.
pub(super) fn add_skips(
    call: Call<'_>,
    candidates: &[AppendCandidate<'_>],
    (repeated, known): (u32, u32),
    ingested: u32,
    events: &mut EventList,
) {
    let (repeated, ingested) = (u64::from(repeated), u64::from(ingested));
    let rest = candidates.iter().skip(int::to_usize(repeated));
    let blank = int::to_u64(rest.filter(|one| one.message.is_failed_and_empty).count());
    let known = u64::from(known).saturating_sub(repeated)
        + int::to_u64(candidates.len()).saturating_sub(repeated + blank + ingested);
    for (count, reason) in
        [(repeated, SkipReason::Repeated), (known, SkipReason::Known), (blank, SkipReason::Blank)]
    {
        events.push_skipped(call.conversation, count, reason);
    }
}

impl AppendDecision {
    /// Adds the event of the messages that a commit stored, from `seq_first` on; `None`: the commit
    /// stored no message. `head`: after the commit; `tokens`: of the messages.
    pub(super) fn add_stored_event(
        &mut self,
        call: Call<'_>,
        head: &ConversationHead,
        seq_first: Option<u64>,
        tokens: u64,
    ) {
        let Some(seq_first) = seq_first else { return };
        let mut members = JsonWriter::new_object();
        members.add_number("context_tokens", head.context.tokens);
        members.add_number("count", int::to_u64(self.new_messages.len()));
        members.add_number("revisions", int::to_u64(self.revisions));
        members.add_number("seq_first", seq_first);
        members.add_number("seq_last", head.messages);
        members.add_number("tokens", tokens);
        self.events.push(EventKind::MessagesStored, call.conversation, members);
    }

    /// Adds the event of another version in the slot of system messages, if a commit changed the
    /// slot. `head`: after the commit; `before`: the slot before, if it was filled.
    pub(super) fn add_system_event(
        &mut self,
        call: Call<'_>,
        head: &ConversationHead,
        before: Option<SystemSlot>,
    ) {
        let Some(slot) = head.system.filter(|slot| Some(*slot) != before) else { return };
        let mut members = JsonWriter::new_object();
        members.add_flag("stored", before.map_or(0, |slot| slot.versions) < slot.versions);
        members.add_number("tokens", slot.tokens.into());
        members.add_number("versions", slot.versions);
        self.events.push(EventKind::SystemChanged, call.conversation, members);
    }
}

impl LineUpdate {
    /// Adds the events about messages that leave the line or come back. `messages`: number of
    /// stored messages before the append.
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
            // The plan of the caller is not checked yet.
            let count = last.saturating_sub(*first) + 1;
            let range = (*first, *last);
            events.push_range(EventKind::MessagesRestored, call.conversation, range, count);
        }
    }
}
