//! Writes turns as contents of the Gemini API.
//!
//! What a model said in a row is one content, for one with calls must follow a user's. The
//! responses to its calls are a content of their own right behind it and nothing else is in it, for
//! the provider counts them there. Calls without an id are told apart by name and order.

use alloc::{format, string::String, vec::Vec};

use super::{
    Entry, Note, Notes, Origin,
    alternate::{self, Message, begin_and_end, push},
    answer,
    file::{self, field},
    sink::{Bit, Sink},
    turns::{Answer, Block, Body, Call, Turn},
};
use lcm_text::{
    base::json::{self, Kind, Span, Value},
    message::{self, Object, Role, provider_limits},
    types::api::Dialect,
};

/// Members that make a part one of a known kind.
const KNOWN: [&str; 13] = [
    "text",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
];

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], entries: &[Entry], begun: bool, notes: &mut Notes) -> Sink {
    let mut out: Vec<Message> = Vec::new();
    for turn in turns {
        let bits = parts(turn, notes);
        if bits.is_empty() && turn.answers.is_empty() && !turn.is_emptied {
            notes.add(turn.entry, Note::DroppedEmpty);
        }
        if turn.role == Role::Assistant {
            push(&mut out, "model", bits);
        } else if !bits.is_empty() {
            out.push(Message { role: turn.native.map_or("user", role_of), bits });
        }
        let mut answers = Vec::new();
        for answer in &turn.answers {
            answers.push(Bit::new(answer.entry, answer_json(answer, notes)));
        }
        if let Some(first) = turn.answers.first() {
            out.push(Message { role: role_of_answers(first, entries), bits: answers });
        }
    }
    begin_and_end(&mut out, text_json, (begun, false), notes);
    alternate::write(Dialect::Gemini, &out, "parts", notes)
}

/// The role of a user's content, as it was given.
fn role_of(raw: &str) -> &'static str {
    let content = Object::new(raw, json::object(raw).unwrap_or_default());
    match &*content.text("role") {
        "function" => "function",
        "" => "",
        _ => "user",
    }
}

/// The role of what the first of some answers stood in.
fn role_of_answers(first: &Answer<'_>, entries: &[Entry]) -> &'static str {
    match entries.get(first.entry) {
        Some(entry @ Entry { origin: Origin::Message { dialect: Dialect::Gemini, .. }, .. })
            if first.native.is_some() =>
        {
            role_of(entry.raw())
        }
        _ => "user",
    }
}

/// The parts of one turn without its answers.
fn parts(turn: &Turn<'_>, notes: &mut Notes) -> Vec<Bit> {
    let mut bits: Vec<Bit> = Vec::new();
    for block in &turn.blocks {
        if let Some(json) = part(turn, block, notes) {
            bits.push(Bit::new(turn.entry, json));
        }
    }
    if turn.role == Role::System && !bits.is_empty() {
        notes.add(turn.entry, Note::SystemAsUser);
        bits.insert(0, Bit::new(turn.entry, text_json("[system message]")));
    }
    bits
}

fn part(turn: &Turn<'_>, block: &Block<'_>, notes: &mut Notes) -> Option<String> {
    let is_model = turn.role == Role::Assistant;
    let is_function = matches!(block.body, Body::Call(_) | Body::Answer(_));
    let is_astray = block.native.is_some_and(|native| {
        object(native).is_some_and(|part| provider_limits::is_double(&part))
            || (!is_function && has_function(native))
    });
    if is_astray {
        notes.add(turn.entry, Note::BlockLeftOut);
    }
    let native = block.native.filter(|_| !is_astray).map(String::from);
    match &block.body {
        Body::Text(text) => match native.filter(|native| file::is_object(native)) {
            Some(native) => (!text.is_empty() || is_signed(&native)).then_some(native),
            None => (!text.trim().is_empty()).then(|| text_json(text)),
        },
        Body::Thought => {
            let kept = native.filter(|native| is_model && file::is_object(native));
            if kept.is_none() {
                notes.add(turn.entry, Note::ReasoningLeftOut);
            }
            kept
        }
        Body::Call(call) => Some(call_json(call, native.as_deref())),
        // Pairing took them out.
        Body::Answer(_) => None,
        Body::Served { .. } => {
            let kept = native.filter(|_| is_model);
            Some(kept.unwrap_or_else(|| left_out(turn.entry, "block", notes)))
        }
        Body::File(file) => {
            let stands = |_: &String| !file.mime.is_empty() || file.url.is_some();
            let json = native.filter(stands).or_else(|| file.gemini());
            Some(json.unwrap_or_else(|| left_out(turn.entry, &file.title(), notes)))
        }
        Body::Other(kind) => {
            let name = if kind.is_empty() { "block" } else { kind };
            let kept = native.filter(|native| holds_something(native));
            Some(kept.unwrap_or_else(|| left_out(turn.entry, name, notes)))
        }
    }
}

/// Text in the place of what the dialect cannot carry.
fn left_out(entry: usize, what: &str, notes: &mut Notes) -> String {
    notes.add(entry, Note::BlockLeftOut);
    text_json(&format!("[{what} left out]"))
}

fn text_json(text: &str) -> String {
    let mut out = String::from("{\"text\":");
    json::write_string(&mut out, text);
    out.push('}');
    out
}

fn object(json: &str) -> Option<Object<'_>> {
    let span = Span::between(0, json.len());
    Object::of(json, Value { span, kind: json::kind(json, span) })
}

/// Whether a part calls a function or answers for one. It was read as something else that stands
/// in it, too, so that pairing knows nothing of the function.
fn has_function(native: &str) -> bool {
    const NAMES: [(&str, &str); 2] =
        [("functionCall", "function_call"), ("functionResponse", "function_response")];
    object(native).is_some_and(|part| {
        NAMES.iter().any(|(camel, snake)| message::below(&part, camel, snake).is_some())
    })
}

/// Whether a part carries the provider's mark, which it wants back whatever the part says.
fn is_signed(native: &str) -> bool {
    object(native).is_some_and(|part| {
        ["thoughtSignature", "thought_signature"].iter().any(|key| !part.text(key).is_empty())
    })
}

/// Whether an unknown part is of a kind to come, and not a broken one of a known kind.
fn holds_something(native: &str) -> bool {
    object(native).is_some_and(|part| {
        let is = |keys: &[&str]| keys.iter().any(|key| part.any(key).is_some());
        !is(&KNOWN) && !provider_limits::is_about(native, &part)
    })
}

fn call_json(call: &Call<'_>, native: Option<&str>) -> String {
    let name = provider_limits::name(Dialect::Gemini, &call.name);
    let stands = call.given.as_deref().is_none_or(|given| given == call.id)
        && name == call.name
        && (call.input.is_empty() || file::is_object(call.input));
    if let Some(native) = native.filter(|_| stands) {
        return native.into();
    }
    let mut out = String::from("{\"functionCall\":{\"name\":");
    json::write_string(&mut out, &name);
    if call.given.is_some() {
        field(&mut out, "id", &call.id);
    }
    out.push_str(",\"args\":");
    out.push_str(&provider_limits::input_object(call.input));
    out.push_str("}}");
    out
}

fn answer_json(answer: &Answer<'_>, notes: &mut Notes) -> String {
    let name = provider_limits::name(Dialect::Gemini, &answer.name);
    if let Some(native) = answer.native.filter(|native| native_stands(native, answer, &name)) {
        return native.into();
    }
    let mut out = String::from("{\"functionResponse\":{\"name\":");
    json::write_string(&mut out, &name);
    if !answer.id.is_empty() {
        field(&mut out, "id", &answer.id);
    }
    out.push_str(",\"response\":");
    let output = Span::between(0, answer.output.len());
    let (text, is_whole) = answer::text(answer.output);
    let is_object = json::kind(answer.output, output) == Kind::Object;
    if is_object && is_whole && !answer.is_error {
        out.push_str(&json::compact(answer.output, output));
    } else {
        if !is_whole {
            notes.add(answer.entry, Note::BlockLeftOut);
        }
        out.push_str(if answer.is_error { "{\"error\":" } else { "{\"output\":" });
        json::write_string(&mut out, &text);
        out.push('}');
    }
    out.push_str("}}");
    out
}

/// Whether a response of this dialect names its call as the call does.
fn native_stands(native: &str, answer: &Answer<'_>, name: &str) -> bool {
    let response = object(native)
        .filter(|part| !provider_limits::is_double(part))
        .and_then(|part| message::below(&part, "functionResponse", "function_response"));
    response.is_some_and(|response| {
        response.text("name") == name
            && answer.given.as_deref().unwrap_or_default() == answer.id
            && response.object("response").is_some()
    })
}
