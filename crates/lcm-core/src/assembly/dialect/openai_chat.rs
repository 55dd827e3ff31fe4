//! Writes turns as messages of the `OpenAI` Chat Completions API.
//!
//! A message of this dialect is written without the members that a host added, and otherwise
//! unchanged if the provider accepts it. The list of calls is written anew. The legacy
//! `function_call` and the role `function` become `tool_calls` and `tool`. Roles need not
//! alternate: turns are never merged.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
    file_content::{self, FileContent, push_field, write_members},
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall},
    tool_output,
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind},
    message::{JsonObject, Role, provider_limits, provider_members::dedup_members},
    types::api::Dialect,
};

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], notes: &mut RenderNotes) -> ArrayWriter {
    let mut writer = ArrayWriter::new(Dialect::OpenaiChat);
    // Fragments of a message that takes in the calls of the next turn.
    let mut open: Vec<JsonFragment> = Vec::new();
    for turn in turns {
        let calls = write_calls(turn);
        // Pairing moved the results behind the last turn of the message.
        let is_continued = turn.answers.is_empty() && !calls.is_empty();
        let json = match (open.is_empty(), turn.native) {
            (false, _) => Some([CALLS_START, &calls.join(","), LIST_END].concat()),
            (_, Some(raw)) if is_valid_content(raw, turn.role) => write_native(raw, turn, &calls),
            _ => build_message(turn, &calls, notes),
        };
        if let Some(json) = json {
            let mut fragment = JsonFragment::strip_object(Dialect::OpenaiChat, turn.entry, json);
            let close = if open.is_empty() && !is_continued { "" } else { LIST_END };
            let start = if open.is_empty() { 0 } else { CALLS_START.len() };
            fragment.cut_ends(Dialect::OpenaiChat, start, close.len());
            open.push(fragment);
            if !is_continued {
                writer.push_message("", &core::mem::take(&mut open), close, notes);
            }
        } else if turn.answers.is_empty() && !turn.is_emptied {
            notes.add_note(turn.entry, RenderNote::DroppedEmpty);
        }
        // Media stand behind all results, because the provider requires these side by side.
        let mut media = Vec::new();
        for answer in &turn.answers {
            let (json, parts) = answer_json(answer, notes);
            let fragment = JsonFragment::strip_object(Dialect::OpenaiChat, answer.entry, json);
            writer.push_message("", &[fragment], "", notes);
            media.extend(parts.into_iter().map(|part| {
                let message = [MEDIA_START, &part, LIST_END].concat();
                let mut fragment = JsonFragment::new(answer.entry, message);
                fragment.cut_ends(Dialect::OpenaiChat, MEDIA_START.len(), LIST_END.len());
                fragment
            }));
        }
        if !media.is_empty() {
            writer.push_message(MEDIA_START, &media, LIST_END, notes);
        }
    }
    writer
}

/// Beginning of an object that has nothing but calls.
const CALLS_START: &str = "{\"tool_calls\":[";
/// Beginning of a message with the media of results.
const MEDIA_START: &str = "{\"role\":\"user\",\"content\":[";
/// End of a message whose list of calls or parts is the last member.
const LIST_END: &str = "]}";

/// Writes the calls of a turn.
fn write_calls(turn: &Turn<'_>) -> Vec<String> {
    let call = |block: &TurnBlock<'_>| match &block.body {
        BlockBody::Call(call) => Some(call_json(call, block.native)),
        _ => None,
    };
    turn.blocks.iter().filter_map(call).collect()
}

/// Returns whether the provider accepts the content of a message; true for absent content.
fn is_valid_content(raw: &str, role: Role) -> bool {
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    let types: &[&str] = match role {
        Role::System => &["text"],
        Role::User => &[],
        Role::Assistant | Role::Tool => &["text", "refusal"],
    };
    match message.get_field("content") {
        Some(content) if content.kind == JsonKind::Array => {
            message.get_list("content").is_empty()
                || provider_limits::has_valid_chat_parts(raw, &message, types)
        }
        content => content.is_none_or(|content| content.kind == JsonKind::String),
    }
}

/// Writes a message of this dialect with these calls; `None`: nothing is left to write.
fn write_native(raw: &str, turn: &Turn<'_>, calls: &[String]) -> Option<String> {
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    let has_content =
        message.get_string("content").is_some() || !message.get_list("content").is_empty();
    let has_refusal_or_audio =
        ["refusal", "audio"].iter().any(|key| message.get_value(key).is_some());
    let has_other = turn.role == Role::Assistant && (has_refusal_or_audio || !calls.is_empty());
    if !(has_content || has_other) {
        return None;
    }
    let mut out = String::new();
    for (key, member) in dedup_members(raw, &message) {
        let is_nameless = key == "name" && message.get_text("name").is_empty();
        if is_nameless || key == "tool_calls" || key == "function_call" {
            continue;
        }
        out.push_str(if out.is_empty() { "{" } else { "," });
        out.push_str(json::slice_span(raw, member.key));
        out.push(':');
        match (&*key, message.get_object("audio")) {
            ("content", _) if !has_content => out.push_str("null"),
            ("name", _) if !provider_limits::is_valid_speaker_name(&message.get_text("name")) => {
                let name = provider_limits::sanitize_tool_name(
                    Dialect::OpenaiChat,
                    &message.get_text("name"),
                )
                .into_owned();
                json::write_string(&mut out, &name);
            }
            // A request may name the audio of a response only by id.
            ("audio", Some(audio)) => {
                out.push_str("{\"id\":");
                json::write_string(&mut out, &audio.get_text("id"));
                out.push('}');
            }
            _ => out.push_str(json::slice_span(raw, member.value)),
        }
    }
    push_calls(&mut out, calls);
    out.push('}');
    Some(out)
}

fn push_calls(out: &mut String, calls: &[String]) {
    if !calls.is_empty() {
        out.push_str(&format!(",\"tool_calls\":[{}]", calls.join(",")));
    }
}

/// Writes a message from the blocks of a turn and its calls; `None`: the turn has no content and no
/// calls.
fn build_message(turn: &Turn<'_>, calls: &[String], notes: &mut RenderNotes) -> Option<String> {
    let mut content: Vec<ChatContent> = Vec::new();
    let mut has_thoughts = false;
    for block in &turn.blocks {
        match &block.body {
            BlockBody::Text(text) if text.trim().is_empty() => {}
            BlockBody::Text(text) => content.push(ChatContent::Text(text.clone())),
            BlockBody::Thought => has_thoughts = true,
            BlockBody::Call(_) | BlockBody::Answer(_) => {}
            BlockBody::File(file) => content.push(file_content(turn, file, notes)),
            BlockBody::ServerTool { .. } => {
                content.push(omission_content(turn.entry, "block", notes))
            }
            BlockBody::Other(kind) => {
                let fits = |native: &&str| {
                    let part =
                        JsonObject::new(native, json::parse_object(native).unwrap_or_default());
                    turn.role == Role::User
                        && provider_limits::is_valid_chat_part(&part)
                        && kind != "refusal"
                };
                if let Some(native) = block.native.filter(fits) {
                    content.push(ChatContent::Part(native.into()));
                    continue;
                }
                let name = if kind.is_empty() { "block" } else { kind };
                content.push(omission_content(turn.entry, name, notes));
            }
        }
    }
    if has_thoughts {
        notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
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
    push_calls(&mut out, calls);
    out.push('}');
    Some(out)
}

/// A piece of the content of a message.
enum ChatContent<'a> {
    Text(Cow<'a, str>),
    /// JSON of a part.
    Part(String),
}

fn push_content(out: &mut String, content: &[ChatContent<'_>]) {
    match content {
        [] => out.push_str("null"),
        [ChatContent::Text(text)] => json::write_string(out, text),
        parts => {
            for (at, part) in parts.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                match part {
                    ChatContent::Part(json) => out.push_str(json),
                    ChatContent::Text(text) => {
                        out.push_str("{\"type\":\"text\"");
                        push_field(out, "text", text);
                        out.push('}');
                    }
                }
            }
            out.push(']');
        }
    }
}

/// Returns a text in place of content that the dialect cannot express, and adds a note.
fn omission_content<'a>(entry: usize, what: &str, notes: &mut RenderNotes) -> ChatContent<'a> {
    notes.add_note(entry, RenderNote::BlockLeftOut);
    ChatContent::Text(Cow::Owned(format!("[{what} left out]")))
}

fn file_content<'a>(
    turn: &Turn<'_>,
    file: &FileContent<'_>,
    notes: &mut RenderNotes,
) -> ChatContent<'a> {
    let is_text = |json: &String| json.starts_with("{\"type\":\"text\"");
    match file.to_openai_chat().filter(|json| turn.role == Role::User || is_text(json)) {
        Some(json) => ChatContent::Part(json),
        None => omission_content(turn.entry, &file.display_title(), notes),
    }
}

fn call_json(call: &TurnCall<'_>, native: Option<&str>) -> String {
    let name = provider_limits::sanitize_tool_name(Dialect::OpenaiChat, &call.name);
    let is_unchanged = call.given_id.as_deref() == Some(&call.id) && name == call.name;
    let is_string =
        json::kind(call.input, ByteSpan::from_range(0, call.input.len())) == JsonKind::String;
    let is_typed = |native: &&str| {
        let call = JsonObject::new(native, json::parse_object(native).unwrap_or_default());
        matches!(&*call.get_text("type"), "function" | "custom")
    };
    if let Some(native) = native.filter(|_| is_unchanged && is_string).filter(is_typed) {
        return native.into();
    }
    let mut function = String::from("{\"name\":");
    json::write_string(&mut function, &name);
    push_field(&mut function, "arguments", &provider_limits::to_input_object(call.input));
    function.push('}');
    // Other members stay, such as a signature of the model's thinking.
    let changes = [
        ("id", Some(&*file_content::quote_text(&call.id))),
        ("type", Some("\"function\"")),
        ("function", Some(&*function)),
        ("custom", None),
    ];
    write_members(native.unwrap_or("{}"), &changes)
}

/// Writes a result. Also returns its media, as parts of a user's message.
fn answer_json(answer: &TurnAnswer<'_>, notes: &mut RenderNotes) -> (String, Vec<String>) {
    if let Some(raw) = answer.native
        && let Some(json) = write_native_answer(raw, answer)
    {
        return (json, Vec::new());
    }
    let output =
        tool_output::write_text(answer.output, answer.is_error, &|file| file.to_openai_chat());
    if !output.is_complete {
        notes.add_note(answer.entry, RenderNote::BlockLeftOut);
    }
    let mut out = String::from("{\"role\":\"tool\"");
    push_field(&mut out, "tool_call_id", &answer.id);
    push_field(&mut out, "content", &output.text);
    out.push('}');
    (out, output.media)
}

/// Writes a result of this dialect without the members that a host added. `None`: the call of the
/// result got another id, or the provider would refuse role or content of the result.
fn write_native_answer(raw: &str, answer: &TurnAnswer<'_>) -> Option<String> {
    let message = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    let has_call_id =
        message.get_text("role") == "tool" && message.get_text("tool_call_id") == answer.id;
    let has_valid_content = message.get_string("content").is_some()
        || provider_limits::has_valid_chat_parts(raw, &message, &["text"]);
    if !(has_call_id && has_valid_content) {
        return None;
    }
    let is_named = provider_limits::is_valid_speaker_name(&message.get_text("name"));
    let changes: &[_] = if is_named { &[] } else { &[("name", None)] };
    Some(write_members(raw, changes))
}
