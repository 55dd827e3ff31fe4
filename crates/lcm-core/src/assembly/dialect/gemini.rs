//! Writes turns as contents of the Gemini API.
//!
//! Neighbouring turns of the model share one content, because a content with calls must follow a
//! user's content. All responses to the calls of a content form the content directly behind it,
//! without other parts, because the provider counts the responses in that content. Calls without an
//! id are matched by name and order.

use alloc::{format, string::String, vec, vec::Vec};

use super::{
    ArrayPart, RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
    file_content,
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall},
    role_alternation::{self, RoleMessage, UserPadding, push_fragments},
    tool_output::{self, OutputText},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{JsonObject, Role, provider_limits},
    types::api::Dialect,
};

/// Signature of the first call of a content if another model made the call. Gemini 3 refuses a
/// content of the current turn whose first call has none ("Thought signatures" of the Gemini API,
/// the question on histories of other models, read on 2026-11-28). Older models ignore it. Contents
/// of earlier turns have it, too, so that the beginning of a context does not change.
const FOREIGN_SIGNATURE: (&str, Option<&str>) =
    ("thoughtSignature", Some("\"skip_thought_signature_validator\""));

/// Members that hold a call, and a response, in both spellings.
const CALL_KEYS: [&str; 2] = ["functionCall", "function_call"];
const RESPONSE_KEYS: [&str; 2] = ["functionResponse", "function_response"];

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], part: ArrayPart, notes: &mut RenderNotes) -> ArrayWriter {
    let mut out: Vec<RoleMessage> = Vec::new();
    // Whether the last content has a call, if it is the model's.
    let mut has_call = false;
    for turn in turns {
        has_call &= out.last().is_some_and(|content| content.role == "model");
        let fragments = write_parts(turn, &mut has_call, notes);
        if fragments.is_empty() && turn.answers.is_empty() && !turn.is_emptied {
            notes.add_note(turn.entry, RenderNote::DroppedEmpty);
        }
        if turn.role == Role::Assistant {
            push_fragments(&mut out, "model", fragments);
        } else if !fragments.is_empty() {
            out.push(RoleMessage { role: "user", fragments });
        }
        // Media follow in a content of their own: a content of responses has nothing else.
        let (mut answers, mut media) = (Vec::new(), Vec::new());
        for answer in &turn.answers {
            let (json, parts) = answer_json(answer, notes);
            answers.push(JsonFragment::strip_object(Dialect::Gemini, answer.entry, json));
            media.extend(parts.into_iter().map(|part| JsonFragment::new(answer.entry, part)));
        }
        for fragments in [answers, media].into_iter().filter(|list| !list.is_empty()) {
            out.push(RoleMessage { role: "user", fragments });
        }
    }
    let pads_start = part == ArrayPart::Whole;
    UserPadding { text_json, pads_start, pads_end: true }.add_turns(&mut out, notes);
    role_alternation::write_messages(Dialect::Gemini, &out, "parts", notes)
}

/// Writes the parts of one turn, without the responses to its calls. `has_call`: whether the
/// content to which they belong has a call so far.
fn write_parts(turn: &Turn<'_>, has_call: &mut bool, notes: &mut RenderNotes) -> Vec<JsonFragment> {
    let mut fragments: Vec<JsonFragment> = Vec::new();
    for block in &turn.blocks {
        if let Some(mut json) = write_part(turn, block, notes) {
            let is_call = matches!(block.body, BlockBody::Call(_));
            if is_call && !*has_call && block.native.is_none() {
                json = file_content::write_members(&json, &[FOREIGN_SIGNATURE]);
            }
            *has_call |= is_call;
            fragments.push(JsonFragment::strip_object(Dialect::Gemini, turn.entry, json));
        }
    }
    if turn.role == Role::System && !fragments.is_empty() {
        notes.add_note(turn.entry, RenderNote::SystemAsUser);
        fragments.insert(0, JsonFragment::new(turn.entry, text_json("[system message]")));
    }
    fragments
}

fn write_part(turn: &Turn<'_>, block: &TurnBlock<'_>, notes: &mut RenderNotes) -> Option<String> {
    let is_model = turn.role == Role::Assistant;
    let is_function = matches!(block.body, BlockBody::Call(_) | BlockBody::Answer(_));
    let is_malformed = block.native.is_some_and(|native| {
        parse_part(native).is_some_and(|part| provider_limits::count_part_kinds(&part) > 1)
            || (!is_function && has_function(native))
    });
    if is_malformed {
        notes.add_note(turn.entry, RenderNote::BlockLeftOut);
    }
    let native = block.native.filter(|_| !is_malformed).map(String::from);
    match &block.body {
        BlockBody::Text(text) => match native.filter(|native| file_content::is_object(native)) {
            Some(native) => (!text.is_empty() || is_signed(&native)).then_some(native),
            None => (!text.trim().is_empty()).then(|| text_json(text)),
        },
        BlockBody::Thought => {
            let kept = native.filter(|native| is_model && file_content::is_object(native));
            if kept.is_none() {
                notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
            }
            kept
        }
        BlockBody::Call(call) => Some(call_json(call, native.as_deref())),
        // Pairing moved responses to the turn of their call.
        BlockBody::Answer(_) => None,
        BlockBody::ServerTool { .. } => {
            let kept = native.filter(|_| is_model);
            Some(kept.unwrap_or_else(|| omission_json(turn.entry, "block", notes)))
        }
        BlockBody::File(file) => {
            let is_valid = |_: &String| !file.mime.is_empty() || file.url.is_some();
            let json = native.filter(is_valid).or_else(|| file.to_gemini());
            Some(json.unwrap_or_else(|| omission_json(turn.entry, &file.display_title(), notes)))
        }
        BlockBody::Other(kind) => {
            let name = if kind.is_empty() { "block" } else { kind };
            let kept = native.filter(|native| has_unknown_kind(native));
            Some(kept.unwrap_or_else(|| omission_json(turn.entry, name, notes)))
        }
    }
}

/// Writes a text in place of content that the dialect cannot express, and adds a note.
fn omission_json(entry: usize, what: &str, notes: &mut RenderNotes) -> String {
    notes.add_note(entry, RenderNote::BlockLeftOut);
    text_json(&format!("[{what} left out]"))
}

fn text_json(text: &str) -> String {
    let mut out = String::from("{\"text\":");
    json::write_string(&mut out, text);
    out.push('}');
    out
}

fn parse_part(json: &str) -> Option<JsonObject<'_>> {
    let span = ByteSpan::from_range(0, json.len());
    JsonObject::from_value(json, JsonValue { span, kind: json::kind(json, span) })
}

/// Returns whether a part has a function call or response. If such a part was read as another kind,
/// pairing does not know the function.
fn has_function(native: &str) -> bool {
    [CALL_KEYS, RESPONSE_KEYS].into_iter().any(|keys| find_object(native, keys).is_some())
}

/// Returns whether a part has a thought signature. The provider requires the signature back, even
/// in a part without text.
fn is_signed(native: &str) -> bool {
    parse_part(native).is_some_and(|part| {
        ["thoughtSignature", "thought_signature"].iter().any(|key| !part.get_text(key).is_empty())
    })
}

/// Returns whether a part is of a kind that this version does not know. Such a part has no member
/// of a known kind, and has other members than metadata.
fn has_unknown_kind(native: &str) -> bool {
    parse_part(native).is_some_and(|part| {
        provider_limits::count_part_kinds(&part) == 0
            && !provider_limits::has_only_metadata(native, &part)
    })
}

/// Finds the object with the data of a part, by one of two keys.
fn find_object<'a>(native: &'a str, keys: [&'static str; 2]) -> Option<(&'static str, &'a str)> {
    let part = parse_part(native)?;
    let key = keys.into_iter().find(|key| part.get_object(key).is_some())?;
    Some((key, json::slice_span(native, part.get_value(key)?)))
}

fn call_json(call: &TurnCall<'_>, native: Option<&str>) -> String {
    let name = provider_limits::sanitize_tool_name(Dialect::Gemini, &call.name);
    let is_unchanged = call.given_id.as_deref().is_none_or(|given| given == call.id)
        && name == call.name
        && (call.input.is_empty() || file_content::is_object(call.input));
    if let Some(native) = native.filter(|_| is_unchanged) {
        return native.into();
    }
    let call_object = native.and_then(|native| find_object(native, CALL_KEYS));
    // The other members stay, such as the signature of the model's thinking.
    let (key, object) = call_object.unwrap_or((CALL_KEYS[0], "{}"));
    let id = call.given_id.is_some().then(|| file_content::quote_text(&call.id));
    let changes = [
        ("name", Some(&*file_content::quote_text(&name))),
        ("id", id.as_deref()),
        ("args", Some(&*provider_limits::to_input_object(call.input))),
    ];
    let object = file_content::write_members(object, &changes);
    file_content::write_members(native.unwrap_or("{}"), &[(key, Some(&object))])
}

/// Writes a response. Also returns its media, as parts of a user's content.
fn answer_json(answer: &TurnAnswer<'_>, notes: &mut RenderNotes) -> (String, Vec<String>) {
    let name = provider_limits::sanitize_tool_name(Dialect::Gemini, &answer.name);
    let native = answer.native.filter(|native| {
        parse_part(native).is_some_and(|part| provider_limits::count_part_kinds(&part) <= 1)
    });
    let given = native.and_then(|native| find_object(native, RESPONSE_KEYS));
    // The other members stay, such as media beside the response.
    let (key, object) = given.unwrap_or((RESPONSE_KEYS[0], "{}"));
    let found = parse_part(object).filter(|it| it.get_object("response").is_some());
    let has_id = answer.given_id.as_deref().unwrap_or_default() == answer.id;
    if let (Some(native), Some(found)) = (native, &found)
        && has_id
        && found.get_text("name") == name
    {
        return (native.into(), Vec::new());
    }
    let (response, media) = match found.is_some() {
        true => (None, Vec::new()),
        false => write_response(answer, notes),
    };
    let name = file_content::quote_text(&name);
    let id = (!answer.id.is_empty()).then(|| file_content::quote_text(&answer.id));
    let mut changes = vec![("name", Some(&*name)), ("id", id.as_deref())];
    changes.extend(response.as_deref().map(|response| ("response", Some(response))));
    let object = file_content::write_members(object, &changes);
    (file_content::write_members(native.unwrap_or("{}"), &[(key, Some(&object))]), media)
}

/// Writes the output of a result as an object. Also returns its media.
fn write_response(
    answer: &TurnAnswer<'_>,
    notes: &mut RenderNotes,
) -> (Option<String>, Vec<String>) {
    let output = ByteSpan::from_range(0, answer.output.len());
    let OutputText { text, media, is_complete } =
        tool_output::write_text(answer.output, false, &|file| file.to_gemini());
    let is_object = json::kind(answer.output, output) == JsonKind::Object;
    if is_object && is_complete && media.is_empty() && !answer.is_error {
        return (Some(json::compact_value(answer.output, output)), media);
    }
    if !is_complete {
        notes.add_note(answer.entry, RenderNote::BlockLeftOut);
    }
    let key = if answer.is_error { "error" } else { "output" };
    (Some(format!("{{\"{key}\":{}}}", file_content::quote_text(&text))), media)
}
