//! Rules of the `OpenAI` Chat Completions API.
//!
//! In: an array of messages. Out: a finding for each broken rule.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    base::json::{self, JsonKind, JsonValue},
    message::{
        blocks::JsonObject,
        provider_limits,
        validate::findings::{Findings, read_message},
    },
    types::api::Dialect,
};

/// Checks an array of messages.
pub(super) fn check(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    // Ids of calls that the next messages must answer.
    let mut open: Vec<String> = Vec::new();
    let mut called_at = 0;
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let Some((message, role)) = read_message(raw, *value, findings) else { continue };
        findings.report_stripped(Dialect::OpenaiChat, json::slice_span(raw, value.span));
        if let Some(name) = json::find_member(&message.members, raw, "name") {
            let fits = name.kind == JsonKind::String
                && provider_limits::is_valid_speaker_name(&message.get_text("name"));
            findings.report_unless(
                fits,
                format_args!("name `{}` is not accepted by the provider", message.get_text("name")),
            );
        }
        if role == "tool" {
            let id = message.get_text("tool_call_id");
            let position = open.iter().position(|call| *call == *id);
            findings
                .report_unless(position.is_some(), format_args!("result of no open call `{id}`"));
            if let Some(position) = position {
                open.remove(position);
            }
            let content = message.get_field("content");
            let is_content = content.is_some_and(|content| match content.kind {
                JsonKind::String => true,
                JsonKind::Array => provider_limits::has_valid_chat_parts(raw, &message, &["text"]),
                _ => false,
            });
            findings.report_unless(is_content, format_args!("a result without text"));
            continue;
        }
        let wrong = format_args!("no result of the calls `{}`", open.join("`, `"));
        findings.report_messages_unless(&[called_at], open.is_empty(), wrong);
        open.clear();
        called_at = at;
        match &*role {
            "system" | "developer" => check_content(raw, &message, &["text"], findings),
            "user" => check_content(raw, &message, &[], findings),
            "assistant" => check_assistant(raw, &message, &mut open, findings),
            "function" => {
                let named = !message.get_text("name").is_empty();
                findings.report_unless(named, format_args!("a function's result without its name"));
            }
            _ => findings
                .report_unless(false, format_args!("role `{role}` is unknown to the provider")),
        }
    }
    let wrong = format_args!("no result of the calls `{}`", open.join("`, `"));
    findings.report_messages_unless(&[called_at], open.is_empty(), wrong);
}

/// Checks that the content is a string, or a list of parts with these types, as in
/// [`provider_limits::has_valid_chat_parts`].
fn check_content(raw: &str, message: &JsonObject<'_>, types: &[&str], findings: &mut Findings) {
    let fits = message.get_string("content").is_some()
        || provider_limits::has_valid_chat_parts(raw, message, types);
    findings.report_unless(fits, format_args!("no content that its role can have"));
}

/// Checks an assistant's content and calls; adds the ids of the calls to `open`.
fn check_assistant(
    raw: &str,
    message: &JsonObject<'_>,
    open: &mut Vec<String>,
    findings: &mut Findings,
) {
    let calls = message.get_list("tool_calls");
    let is_list = message.get_value("tool_calls").is_none() || !calls.is_empty();
    findings.report_unless(is_list, format_args!("`tool_calls` without a call"));
    let acts = !calls.is_empty()
        || ["function_call", "refusal", "audio"].iter().any(|key| message.get_value(key).is_some());
    if !acts || message.get_field("content").is_some() {
        check_content(raw, message, &["text", "refusal"], findings);
    }
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    for value in calls {
        let Some(call) = JsonObject::from_value(raw, value) else {
            findings.report_unless(false, format_args!("a call that is no object"));
            continue;
        };
        let id = call.get_text("id");
        findings.report_unless(
            provider_limits::is_valid_call_id(Dialect::OpenaiChat, &id),
            format_args!("call id `{id}` is not accepted by the provider"),
        );
        findings.report_unless(
            ids.insert(String::from(&*id), 0).is_none(),
            format_args!("two calls `{id}`"),
        );
        open.push((*id).into());
        let kind = call.get_text("type");
        let is_known = matches!(&*kind, "function" | "custom");
        findings.report_unless(is_known, format_args!("a call of type `{kind}`"));
        let custom = kind == "custom";
        let (key, input) = if custom { ("custom", "input") } else { ("function", "arguments") };
        let called = call.get_object(key);
        let name = called.as_ref().map(|called| called.get_text("name")).unwrap_or_default();
        let fits = !name.is_empty()
            && provider_limits::sanitize_tool_name(Dialect::OpenaiChat, &name) == name;
        findings.report_unless(
            fits,
            format_args!("tool name `{name}` is not accepted by the provider"),
        );
        let is_string = called.is_some_and(|called| called.get_string(input).is_some());
        findings.report_unless(is_string, format_args!("`{input}` is no string"));
    }
}
