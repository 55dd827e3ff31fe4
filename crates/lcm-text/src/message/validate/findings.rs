//! The list of broken rules in an array of messages.
//!
//! In: a condition, and the text of the finding if the condition does not hold. Out: one line for
//! each finding, and the indexes of the messages that break rules.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use crate::{
    base::json::{self, JsonValue},
    message::{blocks::JsonObject, provider_members},
    types::api::Dialect,
};

/// Most findings of one array.
const FINDINGS_MAX: usize = 100;

/// Findings of one array of messages, in order.
#[derive(Debug, Default)]
pub struct Findings {
    /// One line for each finding.
    pub list: Vec<String>,
    /// Indexes of the messages that break rules; an index can occur several times.
    pub messages: Vec<usize>,
    /// Index of the message that is being checked; a finding begins with this index.
    pub(super) message_index: usize,
}

impl Findings {
    /// Adds a finding about the current message unless `holds` is true or the list is full.
    pub(super) fn report_unless(&mut self, holds: bool, wrong: fmt::Arguments<'_>) {
        self.report_messages_unless(&[self.message_index], holds, wrong);
    }

    /// Adds a finding about the first member that an object of the current message, as JSON, must
    /// not have.
    pub(super) fn report_stripped(&mut self, dialect: Dialect, object: &str) {
        if let Some((_, key)) = provider_members::strip_members(dialect, object) {
            let wrong = format_args!("member `{key}` is unknown to the provider");
            self.report_unless(false, wrong);
        }
    }

    /// Adds a finding at the current message unless `holds` is true or the list is full; `messages`
    /// are the indexes of the messages that break the rule.
    pub(super) fn report_messages_unless(
        &mut self,
        messages: &[usize],
        holds: bool,
        wrong: fmt::Arguments<'_>,
    ) {
        if !holds && self.list.len() < FINDINGS_MAX {
            self.list.push(format!("messages[{}]: {wrong}", self.message_index));
            self.messages.extend_from_slice(messages);
        }
    }

    /// Returns the findings as a JSON array of strings.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::from("[");
        for finding in &self.list {
            if out.len() > 1 {
                out.push(',');
            }
            json::write_string(&mut out, finding);
        }
        out.push(']');
        out
    }
}

/// Returns a message as an object, and its role; `None`: the message is no object, which is
/// reported. The role is empty if it is absent or no string.
pub(super) fn read_message<'a>(
    raw: &'a str,
    value: JsonValue,
    findings: &mut Findings,
) -> Option<(JsonObject<'a>, String)> {
    let message = JsonObject::from_value(raw, value);
    findings.report_unless(message.is_some(), format_args!("not a JSON object"));
    let message = message?;
    let role = String::from(message.get_text("role"));
    Some((message, role))
}
