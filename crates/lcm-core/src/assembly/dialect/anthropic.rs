//! Writes turns as messages of the Anthropic Messages API.
//!
//! Roles alternate, so neighbours of one role share a message; `content` is always a list, so that
//! what is written of a turn does not depend on what follows it. The results of a message's calls
//! are the first blocks of the next one, and no text stands behind a call. Thinking stays where it
//! was given, unchanged: the provider itself ignores what it does not need, and refuses what was
//! edited.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
    file_content::{self, push_field},
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall},
    pair_tool_calls::number_id,
    role_alternation::{self, RoleMessage, pad_with_user_turns, push_fragments},
    tool_output::{self, ToolOutputPiece},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{JsonObject, Role, provider_limits},
    types::api::Dialect,
};

/// Blocks that were read and are not what their type says, when they come out as unknown; a call of
/// somebody who is not the model is one.
const KNOWN_TYPES: [&str; 9] = [
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
pub(super) fn write(turns: &[Turn<'_>], begun: bool, notes: &mut RenderNotes) -> ArrayWriter {
    let served = ServerToolPairs::from_turns(turns);
    let mut out: Vec<RoleMessage> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let bits = served.write_blocks(at, turn, notes);
        if bits.is_empty() && turn.answers.is_empty() && !turn.is_emptied {
            notes.add_note(turn.entry, RenderNote::DroppedEmpty);
        }
        push_fragments(&mut out, turn_role(turn), bits);
        let answers = turn.answers.iter().map(|answer| {
            let json = answer_json(answer, notes);
            JsonFragment::new(answer.entry, json)
        });
        push_fragments(&mut out, "user", answers.collect());
    }
    for message in &mut out {
        move_calls_after_texts(message);
    }
    pad_with_user_turns(&mut out, text_json, (begun, served.is_paused(turns)), notes);
    limit_cache_controls(&mut out);
    role_alternation::write_messages(Dialect::Anthropic, &out, "content", notes)
}

/// What a model says behind a call that it makes goes in front of its calls: behind them the
/// provider takes it for an answer that should have been results.
fn move_calls_after_texts(message: &mut RoleMessage) {
    let kind = |bit: &JsonFragment| String::from(parse_block(&bit.json).get_text("type"));
    let kinds: Vec<String> = message.fragments.iter().map(kind).collect();
    let is_behind = |at: usize| kinds.iter().skip(at).any(|kind| kind == "text");
    if kinds.iter().position(|kind| kind == "tool_use").is_some_and(is_behind) {
        let bits = core::mem::take(&mut message.fragments).into_iter().zip(kinds);
        let (calls, others): (Vec<_>, Vec<_>) = bits.partition(|(_, kind)| kind == "tool_use");
        message.fragments = others.into_iter().chain(calls).map(|(bit, _)| bit).collect();
    }
}

fn turn_role(turn: &Turn<'_>) -> &'static str {
    if turn.role == Role::Assistant { "assistant" } else { "user" }
}

/// Of blocks with `cache_control`, the newest keep it. It is no part of what is said, so that
/// losing it does not count as a change.
fn limit_cache_controls(out: &mut [RoleMessage]) {
    let mut left = provider_limits::CACHE_CONTROLS_MAX;
    let bits = out.iter_mut().rev().flat_map(|message| message.fragments.iter_mut().rev());
    for bit in bits.filter(|bit| bit.json.contains("cache_control")) {
        let marks = provider_limits::count_cache_controls(&bit.json);
        if is_thinking(&bit.json) {
            bit.replacement = Some(provider_limits::strip_cache_controls(&bit.json));
        } else if marks <= left {
            left -= marks;
        } else {
            left = 0;
            bit.replacement = Some(provider_limits::strip_cache_controls(&bit.json));
        }
    }
}

/// Whether it is a block that takes no mark of a cache.
fn is_thinking(block: &str) -> bool {
    matches!(&*parse_block(block).get_text("type"), "thinking" | "redacted_thinking")
}

/// The mark that ends a cache.
const CACHE_CONTROL_SUFFIX: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}}";

/// Writes a message with the mark of a cache on its last block that can have one, or with none.
pub(in crate::assembly) fn push_with_cache_control(
    out: &mut String,
    message: &str,
    is_marked: bool,
) {
    let content = parse_block(message).get_list("content");
    if content.is_empty() || !(is_marked || message.contains("cache_control")) {
        out.push_str(message);
        return;
    }
    let blocks: Vec<&str> =
        content.iter().map(|block| json::slice_span(message, block.span)).collect();
    let can = |block: &&str| !is_thinking(block);
    let last = blocks.iter().rposition(can).filter(|_| is_marked);
    // The message is written by `alternate::write`: nothing stands behind its content.
    let begin = message.find("[").map_or(0, |at| at + 1);
    out.push_str(message.get(..begin).unwrap_or_default());
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let block = provider_limits::strip_cache_controls(block);
        match block.strip_suffix('}').filter(|_| last == Some(at)) {
            Some(open) => {
                out.push_str(open);
                out.push_str(CACHE_CONTROL_SUFFIX);
            }
            None => out.push_str(&block),
        }
    }
    out.push_str("]}");
}

fn text_json(text: &str) -> String {
    let mut out = String::from("{\"type\":\"text\"");
    push_field(&mut out, "text", text);
    out.push('}');
    out
}

/// Turn and block of a half of a served call.
type BlockIndex = (usize, usize);

/// Calls that the provider answers itself, and where: by id, the places of call and result.
struct ServerToolPairs {
    /// By id, the index in `pairs`.
    ids: BTreeMap<String, usize>,
    pairs: Vec<(Option<BlockIndex>, Option<BlockIndex>)>,
    turns: usize,
}

impl ServerToolPairs {
    fn from_turns(turns: &[Turn<'_>]) -> Self {
        let (mut ids, mut pairs) = (BTreeMap::new(), Vec::new());
        for (turn, Turn { blocks, .. }) in turns.iter().enumerate() {
            for (place, block) in blocks.iter().enumerate() {
                let at = (turn, place);
                let BlockBody::ServerTool { id, is_result } = &block.body else { continue };
                let index = number_id(&mut ids, id);
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
    fn has_other_half(&self, at: BlockIndex, id: &str, is_result: bool, is_last: bool) -> bool {
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
        let last = turn.blocks.last().map(|block| &block.body);
        matches!(last, Some(BlockBody::ServerTool { id, is_result: false })
            if self.has_other_half(at, id, false, true))
    }

    /// The blocks of one turn.
    fn write_blocks(
        &self,
        at: usize,
        turn: &Turn<'_>,
        notes: &mut RenderNotes,
    ) -> Vec<JsonFragment> {
        let mut bits = Vec::new();
        // How many of the last blocks are thoughts.
        let mut thoughts = 0;
        for (place, block) in turn.blocks.iter().enumerate() {
            let is_thought = matches!(block.body, BlockBody::Thought);
            if let Some(json) = self.write_block((at, place), turn, block, notes) {
                bits.push(JsonFragment::new(turn.entry, json));
                thoughts = if is_thought { thoughts + 1 } else { 0 };
            }
        }
        if thoughts > 0 && turn.role == Role::Assistant {
            // A message must not end with one.
            notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
            bits.truncate(bits.len() - thoughts);
        }
        if turn.role == Role::System && !bits.is_empty() {
            notes.add_note(turn.entry, RenderNote::SystemAsUser);
            bits.insert(0, JsonFragment::new(turn.entry, text_json("[system message]")));
        }
        bits
    }

    fn write_block(
        &self,
        at: BlockIndex,
        turn: &Turn<'_>,
        block: &TurnBlock<'_>,
        notes: &mut RenderNotes,
    ) -> Option<String> {
        let is_user = turn.role == Role::User;
        let native = block.native.map(String::from);
        match &block.body {
            BlockBody::Text(text) if text.trim().is_empty() => None,
            BlockBody::Text(text) => {
                match native.filter(|native| file_content::is_object(native)) {
                    Some(native) => Some(native),
                    None => Some(text_json(text)),
                }
            }
            BlockBody::Thought => {
                let kept = native
                    .filter(|native| provider_limits::is_signed(&parse_block(native)) && !is_user);
                if kept.is_none() {
                    notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
                }
                kept
            }
            BlockBody::Call(call) => Some(call_json(call, block.native)),
            // Pairing took them out.
            BlockBody::Answer(_) => None,
            BlockBody::ServerTool { id, is_result } => {
                let is_last = at.1 + 1 == turn.blocks.len();
                let stands = !is_user && self.has_other_half(at, id, *is_result, is_last);
                let kept = native.filter(|_| stands);
                if kept.is_none() {
                    let note = if *is_result {
                        RenderNote::OrphanResult
                    } else {
                        RenderNote::BlockLeftOut
                    };
                    notes.add_note(turn.entry, note);
                }
                kept
            }
            BlockBody::File(file) => {
                let json = match native {
                    Some(native) => Some(native).filter(|native| is_user && has_source(native)),
                    None => file.to_anthropic().filter(|json| is_user || is_text_block(json)),
                };
                Some(
                    json.unwrap_or_else(|| omission_json(turn.entry, &file.display_title(), notes)),
                )
            }
            BlockBody::Other(kind) => {
                let fits = |native: &String| {
                    let kind = &**kind;
                    let is_of_user = ["image", "document", "search_result"].contains(&kind);
                    !KNOWN_TYPES.contains(&kind)
                        && !kind.ends_with("_tool_result")
                        && (!is_of_user || (is_user && has_source(native)))
                };
                let name = if kind.is_empty() { "block" } else { kind };
                Some(native.filter(fits).unwrap_or_else(|| omission_json(turn.entry, name, notes)))
            }
        }
    }
}

/// Text in the place of what the dialect cannot carry.
fn omission_json(entry: usize, what: &str, notes: &mut RenderNotes) -> String {
    notes.add_note(entry, RenderNote::BlockLeftOut);
    text_json(&format!("[{what} left out]"))
}

fn is_text_block(json: &str) -> bool {
    json.starts_with("{\"type\":\"text\"")
}

fn whole_value(json: &str) -> JsonValue {
    let span = ByteSpan::from_range(0, json.len());
    JsonValue { span, kind: json::kind(json, span) }
}

/// A block as an object; what is none has no members.
fn parse_block(json: &str) -> JsonObject<'_> {
    JsonObject::new(json, json::parse_object(json).unwrap_or_default())
}

/// Whether an image, a document or a search result says where it is from.
fn has_source(native: &str) -> bool {
    provider_limits::has_valid_source(&parse_block(native))
}

fn call_json(call: &TurnCall<'_>, native: Option<&str>) -> String {
    let name = provider_limits::sanitize_tool_name(Dialect::Anthropic, &call.name);
    let has_input = |native: &&str| parse_block(native).get_object("input").is_some();
    let stands = call.given_id.as_deref() == Some(&call.id) && name == call.name;
    if let Some(native) = native.filter(|_| stands).filter(has_input) {
        return native.into();
    }
    let mut out = String::from("{\"type\":\"tool_use\"");
    push_field(&mut out, "id", &call.id);
    push_field(&mut out, "name", &name);
    out.push_str(",\"input\":");
    out.push_str(&provider_limits::to_input_object(call.input));
    out.push('}');
    out
}

fn answer_json(answer: &TurnAnswer<'_>, notes: &mut RenderNotes) -> String {
    let stands = answer.given_id.as_deref() == Some(&answer.id) && is_valid_content(answer);
    if let Some(native) = answer.native.filter(|_| stands) {
        return native.into();
    }
    let mut blocks: Vec<String> = Vec::new();
    let pieces = tool_output::split_output(answer.output);
    for piece in &pieces {
        match piece {
            ToolOutputPiece::Text(text) if text.trim().is_empty() => {}
            ToolOutputPiece::Text(text) => blocks.push(text_json(text)),
            ToolOutputPiece::Media(media) => blocks.push(
                media_json(media)
                    .filter(|_| !answer.is_error)
                    .unwrap_or_else(|| omission_json(answer.entry, "media", notes)),
            ),
        }
    }
    if blocks.is_empty() && answer.is_error {
        blocks.push(text_json("(no output)"));
    }
    let mut out = String::from("{\"type\":\"tool_result\"");
    push_field(&mut out, "tool_use_id", &answer.id);
    match (pieces.as_slice(), blocks.as_slice()) {
        (_, []) => {}
        ([ToolOutputPiece::Text(text)], [_]) if !text.trim().is_empty() => {
            push_field(&mut out, "content", text)
        }
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
    let block = JsonObject::from_value(media, whole_value(media))?;
    if let "image" | "document" | "search_result" = &*block.get_text("type") {
        return provider_limits::has_valid_source(&block).then(|| String::from(media));
    }
    if block.get_text("type") == "tool_reference" {
        return Some(media.into());
    }
    file_content::read_media(media)?.to_anthropic()
}

/// Whether the content of a result is as the provider takes it.
fn is_valid_content(answer: &TurnAnswer<'_>) -> bool {
    let output = answer.output;
    let said = |text: &str| !text.trim().is_empty();
    match whole_value(output).kind {
        JsonKind::Null => !answer.is_error && output.is_empty(),
        JsonKind::String => !answer.is_error || said(&json::text(output, whole_value(output).span)),
        JsonKind::Array => {
            let elements = json::list_elements(output, whole_value(output).span);
            let fits = |value: &JsonValue| {
                JsonObject::from_value(output, *value).is_some_and(|block| {
                    match &*block.get_text("type") {
                        "" => false,
                        "text" => said(&block.get_text("text")),
                        _ => !answer.is_error && provider_limits::has_valid_source(&block),
                    }
                })
            };
            elements.iter().all(fits) && !(answer.is_error && elements.is_empty())
        }
        _ => false,
    }
}
