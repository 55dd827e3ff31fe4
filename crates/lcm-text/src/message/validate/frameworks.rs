//! Rules of the messages of agent frameworks.
//!
//! In: an array of messages. Out: a finding for each broken rule. The rules are those that all
//! frameworks share: a known role, content, and a result for each call before the next turn.

use alloc::{string::String, vec::Vec};

use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{
        blocks::JsonObject,
        frameworks,
        part::{Part, Role},
        validate::findings::{Findings, read_message},
    },
    types::api::Dialect,
};

/// Checks an array of messages.
pub(super) fn check(dialect: Dialect, raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    // Ids of calls that the next messages must answer.
    let mut open: Vec<String> = Vec::new();
    let (mut called_at, mut calling) = (0, "");
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let Some((_, role)) = read_message(raw, *value, findings) else { continue };
        let json = json::slice_span(raw, value.span);
        findings.report_stripped(dialect, json);
        let Ok(message) = frameworks::read(dialect, json) else {
            let object = JsonObject::from_value(raw, *value);
            let kind = object.map_or_else(String::new, |it| it.get_text("type").into_owned());
            let (key, word) = if role.is_empty() { ("type", kind) } else { ("role", role) };
            findings
                .report_unless(false, format_args!("{key} `{word}` is unknown to the provider"));
            continue;
        };
        let blocks = frameworks::read_blocks(dialect, json);
        findings.report_unless(!blocks.is_empty(), format_args!("no content"));
        // A model can make several items in a row.
        let is_item = dialect.has_items() && message.role == Role::Assistant;
        if message.role != Role::Tool && !is_item {
            report_open(called_at, &mut open, findings);
        }
        for block in blocks {
            match &block.part {
                Part::ToolCall { name, .. } => {
                    let id = block.part.call_id(json).unwrap_or_default();
                    let fits = !id.is_empty() && name.is_some();
                    findings.report_unless(fits, format_args!("a call without an id or a name"));
                    let is_new = !open.iter().any(|call| *call == *id);
                    findings.report_unless(is_new, format_args!("two calls `{id}`"));
                    open.push(id.into_owned());
                    (called_at, calling) = (at, json);
                }
                Part::ToolResult { output, .. } => {
                    let id = block.part.result_id(json).unwrap_or_default();
                    let call = open.iter().position(|call| *call == *id);
                    let wrong = format_args!("result of no open call `{id}`");
                    findings.report_unless(call.is_some(), wrong);
                    call.map(|call| open.remove(call));
                    findings.report_unless(output.is_some(), format_args!("a result of nothing"));
                }
                // The SDK runs an approved call if the approval ends the array.
                Part::Other { .. } if at + 1 == messages.len() => {
                    let call = find_approved_call(calling, json, block.whole);
                    open.retain(|id| Some(id) != call.as_ref());
                }
                _ => {}
            }
        }
    }
    report_open(called_at, &mut open, findings);
}

/// Returns the id of the call in the message `calling` for which a block of a message answers a
/// request for approval.
fn find_approved_call(calling: &str, message: &str, block: ByteSpan) -> Option<String> {
    let value = JsonValue { span: block, kind: JsonKind::Object };
    let approval = frameworks::find_approval(&JsonObject::from_value(message, value)?)?;
    let id = json::text(message, approval.id);
    frameworks::find_approval_request(calling, &id)
}

/// Reports calls without a result, which the message at `called_at` has.
fn report_open(called_at: usize, open: &mut Vec<String>, findings: &mut Findings) {
    let wrong = format_args!("no result of the calls `{}`", open.join("`, `"));
    findings.report_messages_unless(&[called_at], open.is_empty(), wrong);
    open.clear();
}
