//! Writes turns as messages of the Anthropic Messages API.
//!
//! Roles alternate, so neighbours of one role share a message; `content` is always a list, so that
//! what is written of a turn does not depend on what follows it. The results of a message's calls
//! are the first blocks of the next one, and no text stands behind a call. Thinking stays where it
//! was given, unchanged: the provider itself ignores what it does not need, and refuses what was
//! edited.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    Note, Notes,
    alternate::{self, Message, begin_and_end, push},
    answer::{self, Piece},
    file::{self, field},
    pair::number,
    sink::{Bit, Sink},
    turns::{Answer, Block, Body, Call, Turn},
};
use lcm_text::{
    base::json::{self, Kind, Span, Value},
    message::{Object, Role, provider_limits},
    types::api::Dialect,
};

/// Blocks that were read and are not what their type says, when they come out as unknown; a call of
/// somebody who is not the model is one.
const KNOWN: [&str; 9] = [
    "",
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "tool call",
    "server_tool_use",
    "mcp_tool_use",
];
/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], begun: bool, notes: &mut Notes) -> Sink {
    let served = Served::of(turns);
    let mut out: Vec<Message> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let bits = served.blocks(at, turn, notes);
        if bits.is_empty() && turn.answers.is_empty() && !turn.is_emptied {
            notes.add(turn.entry, Note::DroppedEmpty);
        }
        push(&mut out, role(turn), bits);
        let answers = turn.answers.iter().map(|answer| {
            let json = answer_json(answer, notes);
            Bit::new(answer.entry, json)
        });
        push(&mut out, "user", answers.collect());
    }
    for message in &mut out {
        put_calls_behind_texts(message);
    }
    begin_and_end(&mut out, text_json, (begun, served.is_paused(turns)), notes);
    limit_cache_marks(&mut out);
    alternate::write(Dialect::Anthropic, &out, "content", notes)
}

/// What a model says behind a call that it makes goes in front of its calls: behind them the
/// provider takes it for an answer that should have been results.
fn put_calls_behind_texts(message: &mut Message) {
    let kind = |bit: &Bit| String::from(object(&bit.json).text("type"));
    let kinds: Vec<String> = message.bits.iter().map(kind).collect();
    let is_behind = |at: usize| kinds.iter().skip(at).any(|kind| kind == "text");
    if kinds.iter().position(|kind| kind == "tool_use").is_some_and(is_behind) {
        let bits = core::mem::take(&mut message.bits).into_iter().zip(kinds);
        let (calls, others): (Vec<_>, Vec<_>) = bits.partition(|(_, kind)| kind == "tool_use");
        message.bits = others.into_iter().chain(calls).map(|(bit, _)| bit).collect();
    }
}

fn role(turn: &Turn<'_>) -> &'static str {
    if turn.role == Role::Assistant { "assistant" } else { "user" }
}

/// Of blocks with `cache_control`, the newest keep it. It is no part of what is said, so that
/// losing it does not count as a change.
fn limit_cache_marks(out: &mut [Message]) {
    let mut left = provider_limits::CACHE_MARKS_MAX;
    let bits = out.iter_mut().rev().flat_map(|message| message.bits.iter_mut().rev());
    for bit in bits.filter(|bit| bit.json.contains("cache_control")) {
        let marks = provider_limits::cache_marks(&bit.json);
        if is_thinking(&bit.json) {
            bit.written = Some(provider_limits::without_cache_marks(&bit.json));
        } else if marks <= left {
            left -= marks;
        } else {
            left = 0;
            bit.written = Some(provider_limits::without_cache_marks(&bit.json));
        }
    }
}

/// Whether it is a block that takes no mark of a cache.
fn is_thinking(block: &str) -> bool {
    matches!(&*object(block).text("type"), "thinking" | "redacted_thinking")
}

/// The mark that ends a cache.
const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}}";

/// Writes a message with the mark of a cache on its last block that can have one, or with none.
pub(in crate::assembly) fn push_marked(out: &mut String, message: &str, is_marked: bool) {
    let content = object(message).list("content");
    if content.is_empty() || !(is_marked || message.contains("cache_control")) {
        out.push_str(message);
        return;
    }
    let blocks: Vec<&str> = content.iter().map(|block| json::slice(message, block.span)).collect();
    let can = |block: &&str| !is_thinking(block);
    let last = blocks.iter().rposition(can).filter(|_| is_marked);
    // The message is written by `alternate::write`: nothing stands behind its content.
    let begin = message.find("[").map_or(0, |at| at + 1);
    out.push_str(message.get(..begin).unwrap_or_default());
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let block = provider_limits::without_cache_marks(block);
        match block.strip_suffix('}').filter(|_| last == Some(at)) {
            Some(open) => {
                out.push_str(open);
                out.push_str(MARK);
            }
            None => out.push_str(&block),
        }
    }
    out.push_str("]}");
}

fn text_json(text: &str) -> String {
    let mut out = String::from("{\"type\":\"text\"");
    field(&mut out, "text", text);
    out.push('}');
    out
}

/// Turn and block of a half of a served call.
type At = (usize, usize);

/// Calls that the provider answers itself, and where: by id, the places of call and result.
struct Served {
    /// By id, the index in `pairs`.
    ids: BTreeMap<String, usize>,
    pairs: Vec<(Option<At>, Option<At>)>,
    turns: usize,
}

impl Served {
    fn of(turns: &[Turn<'_>]) -> Self {
        let (mut ids, mut pairs) = (BTreeMap::new(), Vec::new());
        for (turn, Turn { blocks, .. }) in turns.iter().enumerate() {
            for (place, block) in blocks.iter().enumerate() {
                let at = (turn, place);
                let Body::Served { id, is_result } = &block.body else { continue };
                let index = number(&mut ids, id);
                if index == pairs.len() {
                    pairs.push((None, None));
                }
                let Some((call, result)) = pairs.get_mut(index) else { continue };
                match (*is_result, &call) {
                    (false, None) => *call = Some(at),
                    // A result counts behind its call only.
                    (true, Some(_)) if result.is_none() => *result = Some(at),
                    _ => {}
                }
            }
        }
        Self { ids, pairs, turns: turns.len() }
    }

    /// Whether a block of this turn has its other half, or is a call at the end.
    fn has_other_half(&self, at: At, id: &str, is_result: bool, is_last: bool) -> bool {
        match self.ids.get(id).and_then(|index| self.pairs.get(*index)) {
            Some((Some(call), Some(result))) => {
                if is_result {
                    *result == at
                } else {
                    *call == at
                }
            }
            Some((Some(call), None)) => {
                is_last && !id.is_empty() && !is_result && *call == at && at.0 + 1 == self.turns
            }
            _ => false,
        }
    }

    /// Whether the last turn ends with a call that the provider still has to answer.
    fn is_paused(&self, turns: &[Turn<'_>]) -> bool {
        let Some(turn) = turns.last().filter(|turn| turn.role == Role::Assistant) else {
            return false;
        };
        let at = (turns.len() - 1, turn.blocks.len().saturating_sub(1));
        matches!(turn.blocks.last(), Some(Block { body: Body::Served { id, is_result: false }, .. })
            if self.has_other_half(at, id, false, true))
    }

    /// The blocks of one turn.
    fn blocks(&self, at: usize, turn: &Turn<'_>, notes: &mut Notes) -> Vec<Bit> {
        let mut bits = Vec::new();
        // How many of the last blocks are thoughts.
        let mut thoughts = 0;
        for (place, block) in turn.blocks.iter().enumerate() {
            let is_thought = matches!(block.body, Body::Thought);
            if let Some(json) = self.block((at, place), turn, block, notes) {
                bits.push(Bit::new(turn.entry, json));
                thoughts = if is_thought { thoughts + 1 } else { 0 };
            }
        }
        if thoughts > 0 && turn.role == Role::Assistant {
            // A message must not end with one.
            notes.add(turn.entry, Note::ReasoningLeftOut);
            bits.truncate(bits.len() - thoughts);
        }
        if turn.role == Role::System && !bits.is_empty() {
            notes.add(turn.entry, Note::SystemAsUser);
            bits.insert(0, Bit::new(turn.entry, text_json("[system message]")));
        }
        bits
    }

    fn block(
        &self,
        at: At,
        turn: &Turn<'_>,
        block: &Block<'_>,
        notes: &mut Notes,
    ) -> Option<String> {
        let is_user = turn.role == Role::User;
        let native = block.native.map(String::from);
        match &block.body {
            Body::Text(text) if text.trim().is_empty() => None,
            Body::Text(text) => match native.filter(|native| file::is_object(native)) {
                Some(native) => Some(native),
                None => Some(text_json(text)),
            },
            Body::Thought => {
                let kept =
                    native.filter(|native| provider_limits::is_signed(&object(native)) && !is_user);
                if kept.is_none() {
                    notes.add(turn.entry, Note::ReasoningLeftOut);
                }
                kept
            }
            Body::Call(call) => Some(call_json(call, block.native)),
            // Pairing took them out.
            Body::Answer(_) => None,
            Body::Served { id, is_result } => {
                let is_last = at.1 + 1 == turn.blocks.len();
                let stands = !is_user && self.has_other_half(at, id, *is_result, is_last);
                let kept = native.filter(|_| stands);
                if kept.is_none() {
                    let note = if *is_result { Note::OrphanResult } else { Note::BlockLeftOut };
                    notes.add(turn.entry, note);
                }
                kept
            }
            Body::File(file) => {
                let json = match native {
                    Some(native) => Some(native).filter(|native| is_user && has_source(native)),
                    None => file.anthropic().filter(|json| is_user || is_text(json)),
                };
                Some(json.unwrap_or_else(|| left_out(turn.entry, &file.title(), notes)))
            }
            Body::Other(kind) => {
                let fits = |native: &String| {
                    let kind = &**kind;
                    let is_of_user = ["image", "document", "search_result"].contains(&kind);
                    !KNOWN.contains(&kind)
                        && !kind.ends_with("_tool_result")
                        && (!is_of_user || (is_user && has_source(native)))
                };
                let name = if kind.is_empty() { "block" } else { kind };
                Some(native.filter(fits).unwrap_or_else(|| left_out(turn.entry, name, notes)))
            }
        }
    }
}

/// Text in the place of what the dialect cannot carry.
fn left_out(entry: usize, what: &str, notes: &mut Notes) -> String {
    notes.add(entry, Note::BlockLeftOut);
    text_json(&format!("[{what} left out]"))
}

fn is_text(json: &str) -> bool {
    json.starts_with("{\"type\":\"text\"")
}

fn whole(json: &str) -> Value {
    let span = Span::between(0, json.len());
    Value { span, kind: json::kind(json, span) }
}

/// A block as an object; what is none has no members.
fn object(json: &str) -> Object<'_> {
    Object::new(json, json::object(json).unwrap_or_default())
}

/// Whether an image, a document or a search result says where it is from.
fn has_source(native: &str) -> bool {
    provider_limits::has_source(&object(native))
}

fn call_json(call: &Call<'_>, native: Option<&str>) -> String {
    let name = provider_limits::name(Dialect::Anthropic, &call.name);
    let has_input = |native: &&str| object(native).object("input").is_some();
    let stands = call.given.as_deref() == Some(&call.id) && name == call.name;
    if let Some(native) = native.filter(|_| stands).filter(has_input) {
        return native.into();
    }
    let mut out = String::from("{\"type\":\"tool_use\"");
    field(&mut out, "id", &call.id);
    field(&mut out, "name", &name);
    out.push_str(",\"input\":");
    out.push_str(&provider_limits::input_object(call.input));
    out.push('}');
    out
}

fn answer_json(answer: &Answer<'_>, notes: &mut Notes) -> String {
    let stands = answer.given.as_deref() == Some(&answer.id) && content_stands(answer);
    if let Some(native) = answer.native.filter(|_| stands) {
        return native.into();
    }
    let mut blocks: Vec<String> = Vec::new();
    let pieces = answer::pieces(answer.output);
    for piece in &pieces {
        match piece {
            Piece::Text(text) if text.trim().is_empty() => {}
            Piece::Text(text) => blocks.push(text_json(text)),
            Piece::Media(media) => blocks.push(
                media_json(media)
                    .filter(|_| !answer.is_error)
                    .unwrap_or_else(|| left_out(answer.entry, "media", notes)),
            ),
        }
    }
    if blocks.is_empty() && answer.is_error {
        blocks.push(text_json("(no output)"));
    }
    let mut out = String::from("{\"type\":\"tool_result\"");
    field(&mut out, "tool_use_id", &answer.id);
    match (pieces.as_slice(), blocks.as_slice()) {
        (_, []) => {}
        ([Piece::Text(text)], [_]) if !text.trim().is_empty() => field(&mut out, "content", text),
        (_, blocks) => out.push_str(&format!(",\"content\":[{}]", blocks.join(","))),
    }
    if answer.is_error {
        out.push_str(",\"is_error\":true");
    }
    out.push('}');
    out
}

/// A block of media as a result may hold it.
fn media_json(media: &str) -> Option<String> {
    let block = Object::of(media, whole(media))?;
    if let "image" | "document" | "search_result" = &*block.text("type") {
        return provider_limits::has_source(&block).then(|| String::from(media));
    }
    if block.text("type") == "tool_reference" {
        return Some(media.into());
    }
    file::of_media(media)?.anthropic()
}

/// Whether the content of a result is as the provider takes it.
fn content_stands(answer: &Answer<'_>) -> bool {
    let output = answer.output;
    let said = |text: &str| !text.trim().is_empty();
    match whole(output).kind {
        Kind::Null => !answer.is_error && output.is_empty(),
        Kind::String => !answer.is_error || said(&json::text(output, whole(output).span)),
        Kind::Array => {
            let elements = json::elements(output, whole(output).span);
            let fits = |value: &Value| {
                Object::of(output, *value).is_some_and(|block| match &*block.text("type") {
                    "" => false,
                    "text" => said(&block.text("text")),
                    _ => !answer.is_error && provider_limits::has_source(&block),
                })
            };
            elements.iter().all(fits) && !(answer.is_error && elements.is_empty())
        }
        _ => false,
    }
}
