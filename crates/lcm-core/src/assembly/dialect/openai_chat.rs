//! Writes turns as messages of the `OpenAI` Chat Completions API.
//!
//! Messages that came in this dialect go out as they are, without what a host added to them; a call
//! that must change takes its message's list of calls along. The legacy `function_call` and role
//! `function` become their successors. Roles need not alternate, so each message stands alone.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{
    Note, Notes, OF_HOST, answer,
    file::{File, field, last_members, members_but},
    sink::{Bit, Sink},
    turns::{Answer, Body, Call, Turn},
};
use lcm_text::{
    base::json::{self, Kind, Span},
    message::{Object, Role, provider_limits},
    types::api::Dialect,
};

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], notes: &mut Notes) -> Sink {
    let mut sink = Sink::new(Dialect::OpenaiChat);
    for turn in turns {
        let message = match turn.native {
            Some(raw) if content_stands(raw, turn.role) => native(raw, turn),
            _ => built(turn, notes),
        };
        match message {
            Some(json) => sink.message("", &[Bit::new(turn.entry, json)], "", notes),
            None if turn.answers.is_empty() && !turn.is_emptied => {
                notes.add(turn.entry, Note::DroppedEmpty);
            }
            None => {}
        }
        for answer in &turn.answers {
            let json = answer_json(answer, notes);
            sink.message("", &[Bit::new(answer.entry, json)], "", notes);
        }
    }
    sink
}

/// Whether the content of a message is as the provider takes it, or there is none.
fn content_stands(raw: &str, role: Role) -> bool {
    let message = Object::new(raw, json::object(raw).unwrap_or_default());
    let types: &[&str] = match role {
        Role::System => &["text"],
        Role::User => &[],
        Role::Assistant | Role::Tool => &["text", "refusal"],
    };
    match message.field("content") {
        Some(content) if content.kind == Kind::Array => {
            message.list("content").is_empty() || provider_limits::are_parts(raw, &message, types)
        }
        content => content.is_none_or(|content| content.kind == Kind::String),
    }
}

/// A message of this dialect; `None` when nothing is left of it.
fn native(raw: &str, turn: &Turn<'_>) -> Option<String> {
    let message = Object::new(raw, json::object(raw).unwrap_or_default());
    let calls: Vec<String> = turn
        .blocks
        .iter()
        .filter_map(|block| match &block.body {
            Body::Call(call) => Some(call_json(call, block.native)),
            _ => None,
        })
        .collect();
    let says = message.string("content").is_some() || !message.list("content").is_empty();
    let beside = ["refusal", "audio"].iter().any(|key| message.any(key).is_some());
    let speaks_otherwise = turn.role == Role::Assistant && (beside || !calls.is_empty());
    if !(says || speaks_otherwise) {
        return None;
    }
    let mut out = String::new();
    for (key, member) in last_members(raw, &message) {
        let is_nameless = key == "name" && member.kind != Kind::String;
        if OF_HOST.contains(&&*key) || is_nameless || key == "tool_calls" || key == "function_call"
        {
            continue;
        }
        out.push_str(if out.is_empty() { "{" } else { "," });
        out.push_str(json::slice(raw, member.key));
        out.push(':');
        match (&*key, message.object("audio")) {
            ("content", _) if !says => out.push_str("null"),
            ("name", _) if !provider_limits::is_speaker(&message.text("name")) => {
                let name =
                    provider_limits::name(Dialect::OpenaiChat, &message.text("name")).into_owned();
                json::write_string(&mut out, &name);
            }
            // A response says more than a request may.
            ("audio", Some(audio)) => {
                out.push_str("{\"id\":");
                json::write_string(&mut out, &audio.text("id"));
                out.push('}');
            }
            _ => out.push_str(json::slice(raw, member.value)),
        }
    }
    push_calls(&mut out, &calls);
    out.push('}');
    Some(out)
}

fn push_calls(out: &mut String, calls: &[String]) {
    if !calls.is_empty() {
        out.push_str(&format!(",\"tool_calls\":[{}]", calls.join(",")));
    }
}

/// A message from another dialect; `None` when there is nothing to say.
fn built(turn: &Turn<'_>, notes: &mut Notes) -> Option<String> {
    let mut content: Vec<Content> = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = false;
    for block in &turn.blocks {
        match &block.body {
            Body::Text(text) if text.trim().is_empty() => {}
            Body::Text(text) => content.push(Content::Text(text.clone())),
            Body::Thought => thoughts = true,
            Body::Call(call) => calls.push(call_json(call, None)),
            Body::Answer(_) => {}
            Body::File(file) => content.push(file_content(turn, file, notes)),
            Body::Served { .. } => content.push(left_out(turn.entry, "block", notes)),
            Body::Other(kind) => {
                let fits = |native: &&str| {
                    let part = Object::new(native, json::object(native).unwrap_or_default());
                    turn.role == Role::User && provider_limits::is_part(&part) && kind != "refusal"
                };
                if let Some(native) = block.native.filter(fits) {
                    content.push(Content::Part(native.into()));
                    continue;
                }
                let name = if kind.is_empty() { "block" } else { kind };
                content.push(left_out(turn.entry, name, notes));
            }
        }
    }
    if thoughts {
        notes.add(turn.entry, Note::ReasoningLeftOut);
    }
    if content.is_empty() && calls.is_empty() {
        return None;
    }
    let role = match turn.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant | Role::Tool => "assistant",
    };
    let mut out = format!("{{\"role\":\"{role}\",\"content\":");
    push_content(&mut out, &content);
    push_calls(&mut out, &calls);
    out.push('}');
    Some(out)
}

/// One piece of content.
enum Content<'a> {
    Text(Cow<'a, str>),
    /// JSON of a part.
    Part(String),
}

fn push_content(out: &mut String, content: &[Content<'_>]) {
    match content {
        [] => out.push_str("null"),
        [Content::Text(text)] => json::write_string(out, text),
        parts => {
            for (at, part) in parts.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                match part {
                    Content::Part(json) => out.push_str(json),
                    Content::Text(text) => {
                        out.push_str("{\"type\":\"text\"");
                        field(out, "text", text);
                        out.push('}');
                    }
                }
            }
            out.push(']');
        }
    }
}

fn left_out<'a>(entry: usize, what: &str, notes: &mut Notes) -> Content<'a> {
    notes.add(entry, Note::BlockLeftOut);
    Content::Text(Cow::Owned(format!("[{what} left out]")))
}

fn file_content<'a>(turn: &Turn<'_>, file: &File<'_>, notes: &mut Notes) -> Content<'a> {
    let is_text = |json: &String| json.starts_with("{\"type\":\"text\"");
    match file.openai_chat().filter(|json| turn.role == Role::User || is_text(json)) {
        Some(json) => Content::Part(json),
        None => left_out(turn.entry, &file.title(), notes),
    }
}

fn call_json(call: &Call<'_>, native: Option<&str>) -> String {
    let name = provider_limits::name(Dialect::OpenaiChat, &call.name);
    let stands = call.given.as_deref() == Some(&call.id) && name == call.name;
    let is_string = json::kind(call.input, Span::between(0, call.input.len())) == Kind::String;
    let is_typed = |native: &&str| {
        let call = Object::new(native, json::object(native).unwrap_or_default());
        matches!(&*call.text("type"), "function" | "custom")
    };
    if let Some(native) = native.filter(|_| stands && is_string).filter(is_typed) {
        return native.into();
    }
    let mut out = String::from("{\"id\":");
    json::write_string(&mut out, &call.id);
    out.push_str(",\"type\":\"function\",\"function\":{\"name\":");
    json::write_string(&mut out, &name);
    field(&mut out, "arguments", &provider_limits::input_object(call.input));
    out.push_str("}}");
    out
}

fn answer_json(answer: &Answer<'_>, notes: &mut Notes) -> String {
    if let Some(raw) = answer.native
        && let Some(json) = native_answer(raw, answer)
    {
        return json;
    }
    let (text, is_whole) = answer::told(answer);
    if !is_whole {
        notes.add(answer.entry, Note::BlockLeftOut);
    }
    let mut out = String::from("{\"role\":\"tool\"");
    field(&mut out, "tool_call_id", &answer.id);
    field(&mut out, "content", &text);
    out.push('}');
    out
}

/// A result of this dialect as it came; `None` when it must change.
fn native_answer(raw: &str, answer: &Answer<'_>) -> Option<String> {
    let message = Object::new(raw, json::object(raw).unwrap_or_default());
    let stands = message.text("role") == "tool" && message.text("tool_call_id") == answer.id;
    let takes =
        message.string("content").is_some() || provider_limits::are_parts(raw, &message, &["text"]);
    if !(stands && takes) {
        return None;
    }
    Some(members_but(raw, &message, &OF_HOST))
}
