//! Writes turns as input items of the `OpenAI` Responses API.
//!
//! Items that came in this dialect go out as they are, without what a host added to them. Reasoning
//! stays only in front of the item it led to, for the provider refuses it alone. A call of one of
//! the provider's own tools can be answered only by an item of its type; where there is none, call
//! and answer become those of a function.

use alloc::{borrow::Cow, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    Note, Notes, OF_HOST,
    answer::{self, Piece},
    file::{self, field, members_but},
    sink::{Bit, Sink},
    turns::{Answer, Block, Body, Call, Turn},
};
use lcm_text::{
    base::json::{self, Kind, Span, Value},
    message::{self, CALLS, Object, Role, provider_limits},
    types::api::Dialect,
};

/// Calls whose answers can be text, by their place in [`CALLS`].
const ANSWERED_BY_TEXT: usize = 2;
/// Items that may go without an id.
const ID_IS_FREE: [&str; 2] = ["function_call", "custom_tool_call"];

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], notes: &mut Notes) -> Sink {
    let writer = Writer { kinds: kinds(turns), follows: follows(turns) };
    let mut sink = Sink::new(Dialect::OpenaiResponses);
    let mut seen = Seen::default();
    for (at, turn) in turns.iter().enumerate() {
        let mut items = Vec::new();
        match turn.native {
            Some(raw) => writer.native(at, raw, turn, &mut seen, &mut items, notes),
            None => writer.built(turn, &mut items, notes),
        }
        let is_told = turn.is_emptied || is_approval(turn);
        if items.is_empty() && turn.answers.is_empty() && !is_told {
            notes.add(turn.entry, Note::DroppedEmpty);
        }
        for item in items {
            sink.message("", &[Bit::new(turn.entry, item)], "", notes);
        }
        for answer in &turn.answers {
            let item = writer.answer(answer, notes);
            sink.message("", &[Bit::new(answer.entry, item)], "", notes);
        }
    }
    sink
}

/// Whether it is an answer to a request of the provider.
fn is_approval(turn: &Turn<'_>) -> bool {
    turn.native.is_some_and(|raw| message::item_kind(raw) == "mcp_approval_response")
}

/// Of each call by its id, the place in [`CALLS`] of the type that it is written with.
fn kinds(turns: &[Turn<'_>]) -> BTreeMap<String, usize> {
    let place = |kind: &str| CALLS.iter().position(|known| *known == kind).unwrap_or(0);
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for answer in turns.iter().flat_map(|turn| &turn.answers) {
        if let Some(item) = native_answer(answer) {
            let call = message::answered(&item.text("type")).unwrap_or_default();
            answers.insert(answer.id.clone(), place(call));
        }
    }
    let mut kinds = BTreeMap::new();
    for turn in turns {
        let Some(raw) = turn.native else { continue };
        let Some(call) = turn.blocks.iter().find_map(call_of).filter(|call| stands(call, raw))
        else {
            continue;
        };
        let kind = place(message::item_kind(raw));
        if kind < ANSWERED_BY_TEXT || answers.get(&call.id) == Some(&kind) {
            kinds.insert(call.id.clone(), kind);
        }
    }
    kinds
}

fn call_of<'b, 'a>(block: &'b Block<'a>) -> Option<&'b Call<'a>> {
    match &block.body {
        Body::Call(call) => Some(call),
        _ => None,
    }
}

/// Whether a call goes out as the item it came in: by its id and name, with all that its type asks
/// for as a string.
fn stands(call: &Call<'_>, raw: &str) -> bool {
    let item = Object::new(raw, json::object(raw).unwrap_or_default());
    let wanted: &[&str] = match message::item_kind(raw) {
        "function_call" => &["call_id", "name", "arguments"],
        "custom_tool_call" => &["call_id", "name", "input"],
        _ => &["call_id"],
    };
    let name = provider_limits::name(Dialect::OpenaiResponses, &call.name);
    // A call without a name is read as one of its type.
    let is_named = !wanted.contains(&"name") || !item.text("name").is_empty();
    call.given.as_deref() == Some(&call.id)
        && name == call.name
        && is_named
        && wanted.iter().all(|key| item.string(key).is_some())
}

/// The item that an answer came as, when it goes by the id it came with.
fn native_answer<'a>(answer: &Answer<'a>) -> Option<Object<'a>> {
    let raw = answer.native.filter(|_| answer.given.as_deref() == Some(&answer.id))?;
    Some(Object::new(raw, json::object(raw).unwrap_or_default()))
}

/// Of each turn, whether an item of the model follows, behind any reasoning.
fn follows(turns: &[Turn<'_>]) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::new();
    let mut follows = false;
    for turn in turns.iter().rev() {
        out.push(follows);
        let is_thought = |block: &Block<'_>| matches!(block.body, Body::Thought);
        let is_item =
            turn.native.is_some_and(|raw| !refers_to_nothing(raw)) && turn.role == Role::Assistant;
        let is_reasoning = turn.native.is_some_and(|raw| message::item_kind(raw) == "reasoning");
        follows = match is_reasoning || turn.blocks.iter().any(is_thought) {
            true => is_item && follows,
            false => is_item && turn.blocks.iter().any(is_written),
        };
    }
    out.reverse();
    out
}

/// Whether it is a reference without the id of an item, which is left out.
fn refers_to_nothing(raw: &str) -> bool {
    let item = Object::new(raw, json::object(raw).unwrap_or_default());
    message::item_kind(raw) == "item_reference" && item.text("id").is_empty()
}

/// Whether a block of an item is there when it is written.
fn is_written(block: &Block<'_>) -> bool {
    !matches!(&block.body, Body::Text(text) if text.trim().is_empty())
}

/// What was written, as far as later items go by it.
#[derive(Default)]
struct Seen {
    /// Whether reasoning was left out, and none was written since.
    lost_reasoning: bool,
    ids: BTreeMap<String, usize>,
    /// Of requests for approval, which their responses name.
    requests: BTreeMap<String, usize>,
}

struct Writer {
    kinds: BTreeMap<String, usize>,
    follows: Vec<bool>,
}

impl Writer {
    /// An item of this dialect.
    fn native(
        &self,
        at: usize,
        raw: &str,
        turn: &Turn<'_>,
        seen: &mut Seen,
        items: &mut Vec<String>,
        notes: &mut Notes,
    ) {
        let item = Object::new(raw, json::object(raw).unwrap_or_default());
        match message::item_kind(raw) {
            "message" => {
                let is_assistant = turn.role == Role::Assistant;
                let stands = match item.field("content").map(|content| content.kind) {
                    Some(Kind::String) => !is_assistant || !item.text("content").trim().is_empty(),
                    _ => provider_limits::are_item_parts(raw, &item, is_assistant),
                };
                let is_alone = is_assistant && seen.lost_reasoning;
                let is_there = |block| !is_assistant || is_written(block);
                if !stands || is_alone || !turn.blocks.iter().any(is_there) {
                    return self.built(turn, items, notes);
                }
            }
            "reasoning"
                if !self.follows.get(at).copied().unwrap_or_default()
                    || item.field("summary").is_none_or(|list| list.kind != Kind::Array) =>
            {
                seen.lost_reasoning = true;
                return notes.add(turn.entry, Note::ReasoningLeftOut);
            }
            "item_reference" if refers_to_nothing(raw) => {
                return notes.add(turn.entry, Note::BlockLeftOut);
            }
            "mcp_approval_request" => {
                seen.requests.insert(item.text("id").into_owned(), 0);
            }
            "mcp_approval_response"
                if !seen.requests.contains_key(&*item.text("approval_request_id")) =>
            {
                return notes.add(turn.entry, Note::BlockLeftOut);
            }
            kind if CALLS.contains(&kind) => {
                let Some(call) = turn.blocks.iter().find_map(call_of) else { return };
                if !self.kinds.contains_key(&call.id) {
                    return self.built(turn, items, notes);
                }
            }
            _ => {}
        }
        let (kind, id) = (message::item_kind(raw), item.text("id"));
        let is_named = kind != "item_reference" && message::answered(kind).is_none();
        let is_again = is_named && !id.is_empty() && seen.ids.insert(id.into_owned(), 0).is_some();
        if kind == "reasoning" {
            seen.lost_reasoning = is_again;
            if is_again {
                return notes.add(turn.entry, Note::ReasoningLeftOut);
            }
        }
        // By the id of an item the provider knows that there was reasoning, and asks for it.
        let is_alone = seen.lost_reasoning && ID_IS_FREE.contains(&kind);
        items.push(as_sent(raw, &item, is_again || is_alone));
    }

    /// What a turn of another dialect says, or one that cannot go as it is.
    fn built(&self, turn: &Turn<'_>, items: &mut Vec<String>, notes: &mut Notes) {
        let is_assistant = turn.role == Role::Assistant || turn.role == Role::Tool;
        let mut content: Vec<Content<'_>> = Vec::new();
        let mut thoughts = false;
        for block in &turn.blocks {
            let piece = match &block.body {
                Body::Text(text) if text.trim().is_empty() => continue,
                Body::Text(text) => Content::Text(text.clone()),
                Body::Thought => {
                    thoughts = true;
                    continue;
                }
                Body::Call(call) => {
                    items.push(self.call(call));
                    continue;
                }
                Body::Answer(_) => continue,
                Body::File(file) => match file.openai_responses() {
                    Some(json) if !is_assistant => Content::Part(json),
                    Some(json) if json.starts_with("{\"type\":\"input_text\"") => {
                        Content::Text(said(&json))
                    }
                    _ => left_out(turn.entry, &file.title(), notes),
                },
                Body::Served { .. } => left_out(turn.entry, "block", notes),
                Body::Other(kind) => {
                    let name = if kind.is_empty() { "block" } else { kind };
                    let is_text = ["output_text", "refusal", "input_text"].contains(&&**kind);
                    let fits = |native: &&str| {
                        !is_assistant && !is_text && provider_limits::is_item_part(&object(native))
                    };
                    match block.native.filter(fits) {
                        Some(native) => Content::Part(native.into()),
                        None => left_out(turn.entry, name, notes),
                    }
                }
            };
            if is_assistant {
                // In front of a call that was said after it.
                if let Content::Text(text) = &piece {
                    items.push(message_json("assistant", &[Content::Text(text.clone())]));
                }
            } else {
                content.push(piece);
            }
        }
        if thoughts {
            notes.add(turn.entry, Note::ReasoningLeftOut);
        }
        if !content.is_empty() {
            let role = if turn.role == Role::System { "system" } else { "user" };
            items.push(message_json(role, &content));
        }
    }

    /// The place in [`CALLS`] of the type of a call by its id.
    fn kind(&self, id: &str) -> usize {
        self.kinds.get(id).copied().unwrap_or_default()
    }

    fn call(&self, call: &Call<'_>) -> String {
        let name = provider_limits::name(Dialect::OpenaiResponses, &call.name);
        let mut out = String::from("{\"type\":\"function_call\"");
        field(&mut out, "call_id", &call.id);
        field(&mut out, "name", &name);
        field(&mut out, "arguments", &provider_limits::input_object(call.input));
        out.push('}');
        out
    }

    fn answer(&self, answer: &Answer<'_>, notes: &mut Notes) -> String {
        let kind = self.kind(&answer.id);
        let call = CALLS.get(kind).copied().unwrap_or_default();
        if let Some(item) = native_answer(answer)
            && message::answered(&item.text("type")) == Some(call)
            && (kind >= ANSWERED_BY_TEXT
                || item.field("output").is_some() && output_stands(answer.output))
        {
            return as_sent(answer.native.unwrap_or_default(), &item, false);
        }
        let mut out = format!("{{\"type\":\"{call}_output\"");
        field(&mut out, "call_id", &answer.id);
        let pieces = answer::pieces(answer.output);
        if answer.is_error || !pieces.iter().any(|piece| matches!(piece, Piece::Media(_))) {
            let (text, is_whole) = answer::told(answer);
            if !is_whole {
                notes.add(answer.entry, Note::BlockLeftOut);
            }
            field(&mut out, "output", &text);
        } else {
            out.push_str(",\"output\":");
            let parts: Vec<Content<'_>> =
                pieces.into_iter().map(|piece| media(answer.entry, piece, notes)).collect();
            push_parts(&mut out, &parts);
        }
        out.push('}');
        out
    }
}

fn object(json: &str) -> Object<'_> {
    Object::new(json, json::object(json).unwrap_or_default())
}

/// An item without what a host added to it, and without an id that another one has.
fn as_sent(raw: &str, item: &Object<'_>, is_again: bool) -> String {
    let is_own =
        !is_again && provider_limits::is_item_id(message::item_kind(raw), &item.text("id"));
    members_but(raw, item, OF_HOST.get(usize::from(is_own)..).unwrap_or_default())
}

/// Whether the provider takes the output of a function: a text, or a list of parts.
fn output_stands(output: &str) -> bool {
    let span = Span::between(0, output.len());
    match json::kind(output, span) {
        Kind::String => true,
        Kind::Array => {
            let fits = |value: &Value| {
                let part = Object::of(output, *value);
                part.is_some_and(|part| {
                    part.text("type").starts_with("input_") && provider_limits::is_item_part(&part)
                })
            };
            json::elements(output, span).iter().all(fits)
        }
        _ => false,
    }
}

/// One piece of content.
enum Content<'a> {
    Text(Cow<'a, str>),
    /// JSON of a part.
    Part(String),
}

fn left_out<'a>(entry: usize, what: &str, notes: &mut Notes) -> Content<'a> {
    notes.add(entry, Note::BlockLeftOut);
    Content::Text(Cow::Owned(format!("[{what} left out]")))
}

fn media<'a>(entry: usize, piece: Piece<'a>, notes: &mut Notes) -> Content<'a> {
    match piece {
        Piece::Text(text) => Content::Text(text),
        Piece::Media(media) => {
            let json = file::of_media(media).and_then(|file| file.openai_responses());
            json.map_or_else(|| left_out(entry, "media", notes), Content::Part)
        }
    }
}

/// The text of a part that was made.
fn said<'a>(part: &str) -> Cow<'a, str> {
    let members = json::object(part).unwrap_or_default();
    Cow::Owned(Object::new(part, members).text("text").into_owned())
}

fn message_json(role: &str, content: &[Content<'_>]) -> String {
    let mut out = format!("{{\"role\":\"{role}\",\"content\":");
    match content {
        [Content::Text(text)] => json::write_string(&mut out, text),
        parts => push_parts(&mut out, parts),
    }
    out.push('}');
    out
}

fn push_parts(out: &mut String, parts: &[Content<'_>]) {
    for (at, part) in parts.iter().enumerate() {
        out.push(if at == 0 { '[' } else { ',' });
        match part {
            Content::Part(json) => out.push_str(json),
            Content::Text(text) => {
                out.push_str("{\"type\":\"input_text\"");
                field(out, "text", text);
                out.push('}');
            }
        }
    }
    out.push_str(if parts.is_empty() { "[]" } else { "]" });
}
