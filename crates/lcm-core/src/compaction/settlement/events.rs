//! The events of a settlement: a rejected answer and a summary that was made.
//!
//! In: the task with a rejection, or the record of a committed summary. Out: events of the outcome.

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    summary::{self, StoredLevel, Summary},
};
use lcm_text::{
    base::json::JsonWriter,
    types::{
        api::ApplyOutcome,
        event::{EventKind, EventList},
        model::Purpose,
    },
};

use super::{super::acceptance::RejectionRule, TaskSettlement};

impl TaskSettlement<'_> {
    /// Adds the event of a rejected answer to the current task. `findings`: the verifier's findings
    /// in the answer, one per line.
    pub(super) fn add_rejection_event(&mut self, rule: RejectionRule, findings: &str) {
        let findings: Vec<&str> = findings.lines().collect();
        let mut members = JsonWriter::new_object();
        members.add_number("depth", self.task.depth.into());
        members.add_texts("findings", &findings);
        members.add_text("level", StoredLevel::from(self.task.level).as_str());
        members.add_text("purpose", self.purpose_name());
        members.add_text("rule", rule.as_str());
        self.events.push(EventKind::SummaryRejected, self.call.conversation, members);
    }

    fn purpose_name(&self) -> &'static str {
        match self.task.completion_purpose() {
            Purpose::Leaf => "leaf",
            _ => "condensed",
        }
    }
}

/// Adds the event of a committed summary to `events` and puts all of them into `outcome`.
pub(super) fn add_made_event(
    mut events: EventList,
    call: Call<'_>,
    record: &Summary,
    outcome: &mut ApplyOutcome,
) {
    let mut members = JsonWriter::new_object();
    members.add_flag("capped", record.capped);
    members.add_number("depth", record.depth.into());
    members.add_text("level", StoredLevel::from(outcome.level).as_str());
    members.add_text("model", &record.model);
    members.add_text("purpose", record.kind());
    members.add_flag("provisional", outcome.provisional);
    members.add_optional_text("replaces", outcome.replaces.as_deref());
    members.add_text("summary_id", &summary::format_summary_id(record.id()));
    members.add_number("tokens", record.tokens.into());
    members.add_number("tokens_after", outcome.tokens_after.into());
    members.add_number("tokens_before", outcome.tokens_before.into());
    events.push(EventKind::SummaryMade, call.conversation, members);
    outcome.events_json = events.into_json();
}
