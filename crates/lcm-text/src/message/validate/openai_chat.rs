//! The rules of the `OpenAI` Chat Completions API.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::{Findings, read};
use crate::{
    base::json::{self, Kind, Value},
    message::{Object, provider_limits},
    types::api::Dialect,
};

/// Members that a host adds and the provider does not know.
const OF_HOST: [&str; 7] =
    ["id", "timestamp", "event_key", "speaker", "session", "stop_reason", "trust"];

pub(super) fn check(raw: &str, messages: &[Value], findings: &mut Findings) {
    // Ids of calls that the next messages must answer.
    let mut open: Vec<String> = Vec::new();
    let mut called_at = 0;
    for (at, value) in messages.iter().enumerate() {
        findings.at = at;
        let Some((message, role)) = read(raw, *value, findings) else { continue };
        for member in &message.members {
            let key = json::text(raw, member.key);
            findings.expect(!OF_HOST.contains(&&*key), format_args!("member `{key}`"));
        }
        if let Some(name) = json::member(&message.members, raw, "name") {
            let fits =
                name.kind == Kind::String && provider_limits::is_speaker(&message.text("name"));
            findings.expect(fits, format_args!("name `{}`", message.text("name")));
        }
        if role == "tool" {
            let id = message.text("tool_call_id");
            let known = open.iter().position(|call| *call == *id);
            findings.expect(known.is_some(), format_args!("result of no open call `{id}`"));
            if let Some(known) = known {
                open.remove(known);
            }
            let content = message.field("content");
            let is_content = content.is_some_and(|content| match content.kind {
                Kind::String => true,
                Kind::Array => provider_limits::are_parts(raw, &message, &["text"]),
                _ => false,
            });
            findings.expect(is_content, format_args!("a result without text"));
            continue;
        }
        let wrong = format_args!("no result of the calls {open:?}");
        findings.expect_of(&[called_at], open.is_empty(), wrong);
        open.clear();
        called_at = at;
        match &*role {
            "system" | "developer" => check_content(raw, &message, &["text"], findings),
            "user" => check_content(raw, &message, &[], findings),
            "assistant" => check_assistant(raw, &message, &mut open, findings),
            "function" => {
                let named = !message.text("name").is_empty();
                findings.expect(named, format_args!("a function's result without its name"));
            }
            _ => findings.expect(false, format_args!("role `{role}`")),
        }
    }
    let wrong = format_args!("no result of the calls {open:?}");
    findings.expect_of(&[called_at], open.is_empty(), wrong);
}

fn check_content(raw: &str, message: &Object<'_>, types: &[&str], findings: &mut Findings) {
    let fits =
        message.string("content").is_some() || provider_limits::are_parts(raw, message, types);
    findings.expect(fits, format_args!("no content of its role"));
}

fn check_assistant(
    raw: &str,
    message: &Object<'_>,
    open: &mut Vec<String>,
    findings: &mut Findings,
) {
    let calls = message.list("tool_calls");
    let is_list = message.any("tool_calls").is_none() || !calls.is_empty();
    findings.expect(is_list, format_args!("`tool_calls` without a call"));
    let acts = !calls.is_empty()
        || ["function_call", "refusal", "audio"].iter().any(|key| message.any(key).is_some());
    if !acts || message.field("content").is_some() {
        check_content(raw, message, &["text", "refusal"], findings);
    }
    let mut ids = BTreeMap::new();
    for value in calls {
        let Some(call) = Object::of(raw, value) else {
            findings.expect(false, format_args!("a call that is no object"));
            continue;
        };
        let id = call.text("id");
        findings.expect(
            provider_limits::is_call_id(Dialect::OpenaiChat, &id),
            format_args!("call id `{id}`"),
        );
        findings
            .expect(ids.insert(String::from(&*id), 0).is_none(), format_args!("two calls `{id}`"));
        open.push((*id).into());
        let kind = call.text("type");
        let is_known = matches!(&*kind, "function" | "custom");
        findings.expect(is_known, format_args!("a call of type `{kind}`"));
        let custom = kind == "custom";
        let (key, input) = if custom { ("custom", "input") } else { ("function", "arguments") };
        let called = call.object(key);
        let name = called.as_ref().map(|called| called.text("name")).unwrap_or_default();
        let fits = !name.is_empty() && provider_limits::name(Dialect::OpenaiChat, &name) == name;
        findings.expect(fits, format_args!("tool name `{name}`"));
        let is_string = called.is_some_and(|called| called.string(input).is_some());
        findings.expect(is_string, format_args!("`{input}` is no string"));
    }
}
