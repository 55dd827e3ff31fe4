//! The results of compaction tasks, and the parsing of what calls returned.
//!
//! In: JSON of `evaluate` and `maintain`. Out: members of the result of a task.
//! [`crate::drive::compaction`] uses this module.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{
        error::Result,
        json::{JsonFields, JsonWriter},
    },
    types::event::EventKind,
};

use super::super::{
    event::{CallFailure, EVENT},
    instruction::{self, DriveReply},
};
use super::task::CompactionTask;

/// JSON of an absent record of deferred compaction.
pub(super) const NULL: &str = "null";

pub(super) fn build_turn_result(compact: bool, deferred: bool) -> String {
    let mut result = JsonWriter::new_object();
    result.add_flag("compact", compact);
    result.add_flag("deferred", deferred);
    result.end_object()
}

/// Builds the result of `maintain` without the record of deferred compaction.
pub(super) fn build_maintain_result(
    compacted: Option<JsonWriter>,
    failure: &CallFailure,
) -> String {
    let mut result = JsonWriter::new_object();
    match compacted {
        Some(compacted) => result.add_object("compacted", compacted),
        None => result.add_null("compacted"),
    }
    if failure.is_some() {
        let plain = CallFailure { number: None, ..failure.clone() };
        result.add_object("failure", instruction::build_failure(&plain));
    } else {
        result.add_null("failure");
    }
    result.end_object()
}

/// Reads the tokens of the stored context and the warnings from an explanation.
pub(super) fn read_explanation(explanation: &str) -> Result<(u64, Vec<String>)> {
    let mut fields = JsonFields::parse_argument(EVENT, explanation)?;
    let warnings = fields.take_texts("warnings");
    let inputs = fields.take_any("inputs").map(|(raw, _)| raw).unwrap_or_default();
    let mut inputs = JsonFields::parse_argument(EVENT, &inputs)?;
    Ok((inputs.take_u64("stored_tokens"), warnings))
}

/// Returns whether the explanation of a decision counts provisional summaries.
pub(super) fn has_provisional(explanation: &str) -> bool {
    let fields = JsonFields::parse_argument(EVENT, explanation);
    fields.is_ok_and(|mut fields| fields.take_optional_u64("provisional").is_some())
}

/// Takes the record of deferred compaction as JSON; `null`: no compaction is deferred.
pub(super) fn read_deferred(fields: &mut JsonFields<'_>) -> String {
    fields.take_any("debt").map_or_else(|| NULL.into(), |(raw, _)| raw.into_owned())
}

/// Returns how many failures of models the record of deferred compaction counts.
pub(super) fn count_failures(deferred: &str) -> u64 {
    let fields = JsonFields::parse_argument(EVENT, deferred);
    fields.map_or(0, |mut fields| fields.take_u64("failures"))
}

/// Adds the event about the record of deferred compaction.
pub(super) fn add_debt_event(task: &CompactionTask, deferred: &str, reply: &mut DriveReply) {
    let mut members = JsonWriter::new_object();
    let owed = JsonFields::parse_argument(EVENT, deferred).ok().filter(|_| deferred != NULL);
    let (mut failures, mut next_attempt_at) = (0, None);
    members.add_flag("owed", owed.is_some());
    if let Some(mut owed) = owed {
        failures = owed.take_u64("failures");
        next_attempt_at = owed.take_optional_text("next_attempt_at");
    }
    members.add_number("failures", failures);
    members.add_optional_text("next_attempt_at", next_attempt_at.as_deref());
    reply.events.push(EventKind::CompactionDebt, &task.conversation, members);
}

/// Reads the end of the pause from the record of deferred compaction; empty: the record has none.
pub(super) fn read_next_attempt(deferred: &str) -> String {
    let fields = JsonFields::parse_argument(EVENT, deferred);
    fields.map(|mut fields| fields.take_text("next_attempt_at")).unwrap_or_default()
}

/// Sets the note of the reply to the record of deferred compaction, a member of the result.
pub(super) fn add_deferred(deferred: &str, reply: &mut DriveReply) {
    let mut note = JsonWriter::new_object();
    note.add_json("debt", deferred);
    reply.note = Some(note);
}
