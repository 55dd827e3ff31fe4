//! Writes turns as messages of the Anthropic Messages API.
//!
//! In: normalised turns, each with the results of its calls. Out: the JSON of the messages.
//!
//! Roles must alternate, so turns of one role share a message. `content` is always a list: the JSON
//! of a turn then does not depend on the next turn. The results of a turn's calls follow it as
//! blocks of the user, and calls move behind the other blocks if a text follows a call. Signed
//! thinking of the model loses only its cache marks, because the provider refuses edited thinking;
//! other thinking, and thinking at the end of a message, is omitted.

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};

use super::{
    ArrayPart, RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
    file_content::{self, push_field},
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall, caller_id},
    pair_tool_calls::{ORPHAN_PREFIX, number_id},
    role_alternation::{self, RoleMessage, UserPadding, push_fragments},
    tool_output::{self, ToolOutputPiece},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{JsonObject, Role, provider_limits, provider_members},
    types::api::Dialect,
};

/// Block types that this dialect knows. A block of one of these types that was nevertheless read as
/// unknown is malformed, and a text replaces the block. `tool call` is the type that normalisation
/// gives to a call in a message that is not the model's. The empty type is a block without a type.
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
pub(super) fn write(turns: &[Turn<'_>], part: ArrayPart, notes: &mut RenderNotes) -> ArrayWriter {
    let served = ServerToolPairs::from_turns(turns);
    let mut out: Vec<RoleMessage> = Vec::new();
    for at in served.order_turns(turns) {
        let Some(turn) = turns.get(at) else { continue };
        let fragments = served.write_blocks(at, turn, notes);
        if fragments.is_empty() && turn.answers.is_empty() && !turn.is_emptied {
            notes.add_note(turn.entry, RenderNote::DroppedEmpty);
        }
        let role = turn_role(turn);
        if role == "user" && !fragments.is_empty() {
            drop_last_thoughts(&mut out, notes);
        }
        push_fragments(&mut out, role, fragments);
        let answers = turn.answers.iter().map(|answer| {
            let json = answer_json(answer, notes);
            JsonFragment::strip_object(Dialect::Anthropic, answer.entry, json)
        });
        let answers: Vec<JsonFragment> = answers.collect();
        if !answers.is_empty() {
            drop_last_thoughts(&mut out, notes);
        }
        push_fragments(&mut out, "user", answers);
    }
    drop_last_thoughts(&mut out, notes);
    for message in &mut out {
        move_calls_after_texts(message);
    }
    let padding = UserPadding {
        text_json,
        pads_start: part == ArrayPart::Whole,
        pads_end: !served.is_paused(turns),
    };
    padding.add_turns(&mut out, notes);
    limit_cache_controls(&mut out);
    role_alternation::write_messages(Dialect::Anthropic, &out, "content", notes)
}

/// Removes thinking at the end of the last message, because a message must not end with it.
fn drop_last_thoughts(out: &mut Vec<RoleMessage>, notes: &mut RenderNotes) {
    let Some(message) = out.last_mut() else { return };
    while let Some(last) = message.fragments.pop_if(|last| is_thinking(&last.json)) {
        notes.add_note(last.entry, RenderNote::ReasoningLeftOut);
    }
    if message.fragments.is_empty() {
        out.pop();
    }
}

/// Moves the calls of a message behind all other blocks if a text follows a call. The provider
/// refuses a text there, because it expects results.
fn move_calls_after_texts(message: &mut RoleMessage) {
    let kind = |fragment: &JsonFragment| String::from(parse_block(&fragment.json).get_text("type"));
    let kinds: Vec<String> = message.fragments.iter().map(kind).collect();
    let has_text_from = |at: usize| kinds.iter().skip(at).any(|kind| kind == "text");
    if kinds.iter().position(|kind| kind == "tool_use").is_some_and(has_text_from) {
        let fragments = core::mem::take(&mut message.fragments).into_iter().zip(kinds);
        let (calls, others): (Vec<_>, Vec<_>) = fragments.partition(|(_, kind)| kind == "tool_use");
        message.fragments = others.into_iter().chain(calls).map(|(fragment, _)| fragment).collect();
    }
}

fn turn_role(turn: &Turn<'_>) -> &'static str {
    if turn.role == Role::Assistant { "assistant" } else { "user" }
}

/// Removes all cache marks on thinking. Of the other marks, keeps only the newest, up to the
/// provider's limit. The JSON that later assemblies compare keeps its marks: an element that lost
/// its mark counts as equal.
fn limit_cache_controls(out: &mut [RoleMessage]) {
    let mut left = provider_limits::CACHE_CONTROLS_MAX;
    let fragments = out.iter_mut().rev().flat_map(|message| message.fragments.iter_mut().rev());
    for fragment in fragments.filter(|fragment| fragment.json.contains("cache_control")) {
        let marks = provider_limits::count_cache_controls(&fragment.json);
        if is_thinking(&fragment.json) {
            fragment.replacement = Some(provider_members::strip_cache_controls(&fragment.json));
        } else if marks <= left {
            left -= marks;
        } else {
            left = 0;
            fragment.replacement = Some(provider_members::strip_cache_controls(&fragment.json));
        }
    }
}

/// Returns whether a block is thinking, which cannot have a cache mark.
fn is_thinking(block: &str) -> bool {
    matches!(&*parse_block(block).get_text("type"), "thinking" | "redacted_thinking")
}

/// Cache mark, with the bracket that closes its block.
const CACHE_CONTROL_SUFFIX: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}}";

/// Writes a message without its cache marks. If `is_marked`, adds a mark to its last block that is
/// not thinking.
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
    let can_be_marked = |block: &&str| !is_thinking(block);
    let last = blocks.iter().rposition(can_be_marked).filter(|_| is_marked);
    // `role_alternation` wrote the message: `content` is its last member.
    let begin = message.find('[').map_or(0, |at| at + 1);
    out.push_str(message.get(..begin).unwrap_or_default());
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let block = provider_members::strip_cache_controls(block);
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

/// Index of a turn, and of a block in the turn.
type BlockIndex = (usize, usize);

/// Server tool calls, which the provider itself answers, and their results.
struct ServerToolPairs {
    /// For each id, its index in `pairs`.
    ids: BTreeMap<String, usize>,
    pairs: Vec<ServerToolPair>,
}

/// Place of the first server tool call of an id and of its result; `None`: absent, or the pair
/// cannot be written.
#[derive(Clone, Copy, Default)]
struct ServerToolPair {
    call: Option<BlockIndex>,
    result: Option<BlockIndex>,
}

/// Returns whether the provider accepts the id of a server tool call.
fn has_valid_id(block: &TurnBlock<'_>) -> bool {
    let call = parse_block(block.native.unwrap_or_default());
    call.get_text("type") != "server_tool_use"
        || provider_limits::is_valid_server_id(&call.get_text("id"))
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
                    pairs.push(ServerToolPair::default());
                }
                let Some(ServerToolPair { call, result }) = pairs.get_mut(index) else { continue };
                match (*is_result, &call) {
                    (false, None) if has_valid_id(block) => *call = Some(at),
                    // A result must follow its call.
                    (true, Some(_)) if result.is_none() => *result = Some(at),
                    _ => {}
                }
            }
        }
        let mut all = Self { ids, pairs };
        for pair in &mut all.pairs {
            let is_whole = match (pair.call, pair.result) {
                (Some(call), Some(result)) => can_join(turns, call.0, result.0),
                (Some(call), None) => is_pending(turns, call),
                _ => false,
            };
            if !is_whole {
                *pair = ServerToolPair::default();
            }
        }
        all
    }

    /// Returns the order in which turns are written: what the user said between a server tool call
    /// and its result follows the result, because the provider requires both in one message.
    fn order_turns(&self, turns: &[Turn<'_>]) -> Vec<usize> {
        // For each turn, the last turn with a result of its server tool calls.
        let mut ends = vec![0; turns.len()];
        for ServerToolPair { call, result } in &self.pairs {
            if let Some(end) = call.and_then(|call| ends.get_mut(call.0)) {
                *end = result.map_or(0, |result| result.0).max(*end);
            }
        }
        let (mut out, mut held, mut until) = (Vec::new(), Vec::new(), 0);
        for ((at, turn), end) in turns.iter().enumerate().zip(ends) {
            until = until.max(end);
            let is_held = at < until && turn.role != Role::Assistant && !turn.blocks.is_empty();
            (if is_held { &mut held } else { &mut out }).push(at);
            if at >= until {
                out.append(&mut held);
            }
        }
        out
    }

    /// Returns whether the server tool call or result at a place is written.
    fn is_written(&self, at: BlockIndex, id: &str, is_result: bool) -> bool {
        let pair = self.ids.get(id).and_then(|index| self.pairs.get(*index));
        pair.is_some_and(|pair| if is_result { pair.result } else { pair.call } == Some(at))
    }

    /// Returns whether the call of an id is written.
    fn has_call(&self, id: &str) -> bool {
        let pair = self.ids.get(id).and_then(|index| self.pairs.get(*index));
        pair.is_some_and(|pair| pair.call.is_some())
    }

    /// Returns whether the last turn ends with a server tool call without a result.
    fn is_paused(&self, turns: &[Turn<'_>]) -> bool {
        let Some(turn) = turns.last().filter(|turn| turn.role == Role::Assistant) else {
            return false;
        };
        let at = (turns.len() - 1, turn.blocks.len().saturating_sub(1));
        let last = turn.blocks.last().map(|block| &block.body);
        matches!(last, Some(BlockBody::ServerTool { id, is_result: false })
            if self.is_written(at, id, false))
    }

    /// Writes the blocks of one turn.
    fn write_blocks(
        &self,
        at: usize,
        turn: &Turn<'_>,
        notes: &mut RenderNotes,
    ) -> Vec<JsonFragment> {
        let mut fragments = Vec::new();
        for (place, block) in turn.blocks.iter().enumerate() {
            if let Some(json) = self.write_block((at, place), turn, block, notes) {
                fragments.push(JsonFragment::strip_object(Dialect::Anthropic, turn.entry, json));
            }
        }
        if turn.role == Role::System && !fragments.is_empty() {
            notes.add_note(turn.entry, RenderNote::SystemAsUser);
            fragments.insert(0, JsonFragment::new(turn.entry, text_json("[system message]")));
        }
        fragments
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
            BlockBody::Call(call) => {
                let caller = block.native.and_then(caller_id);
                let is_called = caller.is_none_or(|id| self.has_call(&id));
                Some(call_json(call, block.native, is_called))
            }
            // Pairing moved results to the turn of their call.
            BlockBody::Answer(_) => None,
            BlockBody::ServerTool { id, is_result } => {
                let is_kept = !is_user && self.is_written(at, id, *is_result);
                if is_kept { native } else { unpaired_json(turn.entry, native, *is_result, notes) }
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
                    let needs_source = ["image", "document", "search_result"].contains(&kind);
                    !KNOWN_TYPES.contains(&kind)
                        && !kind.ends_with("_tool_result")
                        && (!needs_source || (is_user && has_source(native)))
                };
                if kind == "compaction" && native.as_deref().is_some_and(is_empty_compaction) {
                    return None;
                }
                let name = if kind.is_empty() { "block" } else { kind };
                Some(native.filter(fits).unwrap_or_else(|| omission_json(turn.entry, name, notes)))
            }
        }
    }
}

/// Returns whether the result of a server tool call can stand in one message with the call: between
/// their turns are no results, except of tools that the provider's code called.
fn can_join(turns: &[Turn<'_>], call: usize, result: usize) -> bool {
    let mut between = turns.iter().skip(call).take(result - call);
    between.all(|turn| {
        let mut blocks = turn.blocks.iter();
        blocks.all(|block| {
            !matches!(block.body, BlockBody::Call(_)) || block.native.and_then(caller_id).is_some()
        })
    })
}

/// Returns whether a server tool call without a result still waits for it: behind the call are only
/// calls that the provider's code made, and their results.
fn is_pending(turns: &[Turn<'_>], (turn, place): BlockIndex) -> bool {
    let rest = turns.iter().enumerate().skip(turn).flat_map(|(at, turn_at)| {
        turn_at.blocks.iter().skip(if at == turn { place + 1 } else { 0 })
    });
    let mut called = false;
    let mut is_last = true;
    for block in rest {
        is_last = false;
        match block.body {
            BlockBody::Call(_) if block.native.and_then(caller_id).is_some() => called = true,
            _ => return false,
        }
    }
    called || (is_last && turn + 1 == turns.len())
}

/// Writes a server tool call or result that cannot be paired: a result as a text, a call not at
/// all. Adds a note.
fn unpaired_json(
    entry: usize,
    native: Option<String>,
    is_result: bool,
    notes: &mut RenderNotes,
) -> Option<String> {
    if !is_result {
        notes.add_note(entry, RenderNote::BlockLeftOut);
        return None;
    }
    notes.add_note(entry, RenderNote::OrphanResult);
    let result = native?;
    let content = parse_block(&result).get_value("content");
    let output = content.map_or("", |content| json::slice_span(&result, content));
    Some(text_json(&format!("{ORPHAN_PREFIX}{}", tool_output::join_text(output).0)))
}

/// Returns whether a `compaction` block has no content, which the provider refuses.
fn is_empty_compaction(native: &str) -> bool {
    let block = parse_block(native);
    ["content", "encrypted_content"].iter().all(|key| block.get_text(key).is_empty())
}

/// Writes a text in place of content that the dialect cannot express, and adds a note.
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

/// Parses a block; a value that is not an object has no members.
fn parse_block(json: &str) -> JsonObject<'_> {
    JsonObject::new(json, json::parse_object(json).unwrap_or_default())
}

/// Returns whether an image, document or search result has a valid source; true for other blocks.
fn has_source(native: &str) -> bool {
    provider_limits::has_valid_source(&parse_block(native))
}

/// Writes a call. `is_called`: whether the server tool call that made it is written, or the model
/// itself made the call.
fn call_json(call: &TurnCall<'_>, native: Option<&str>, is_called: bool) -> String {
    let name = provider_limits::sanitize_tool_name(Dialect::Anthropic, &call.name);
    let has_input = native.is_some_and(|native| parse_block(native).get_object("input").is_some());
    let is_unchanged = call.given_id.as_deref() == Some(&call.id) && name == call.name;
    if let Some(native) = native.filter(|_| is_unchanged && has_input && is_called) {
        return native.into();
    }
    let input = (!has_input).then(|| provider_limits::to_input_object(call.input));
    let id = file_content::quote_text(&call.id);
    let name = file_content::quote_text(&name);
    let mut changes = vec![("id", Some(&*id)), ("name", Some(&*name))];
    changes.extend(input.as_deref().map(|input| ("input", Some(input))));
    changes.extend((!is_called).then_some(("caller", None)));
    file_content::write_members(native.unwrap_or("{\"type\":\"tool_use\"}"), &changes)
}

fn answer_json(answer: &TurnAnswer<'_>, notes: &mut RenderNotes) -> String {
    let is_unchanged = answer.given_id.as_deref() == Some(&answer.id) && is_valid_content(answer);
    if let Some(native) = answer.native.filter(|_| is_unchanged) {
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
    let content = match (pieces.as_slice(), blocks.as_slice()) {
        (_, []) => None,
        ([ToolOutputPiece::Text(text)], [_]) if !text.trim().is_empty() => {
            Some(file_content::quote_text(text))
        }
        (_, blocks) => Some(format!("[{}]", blocks.join(","))),
    };
    let id = file_content::quote_text(&answer.id);
    let changes = [
        ("tool_use_id", Some(&*id)),
        ("content", content.as_deref()),
        ("is_error", answer.is_error.then_some("true")),
    ];
    // The other members stay, such as `cache_control`.
    file_content::write_members(answer.native.unwrap_or("{\"type\":\"tool_result\"}"), &changes)
}

/// Writes a block of media for a result; `None`: a result cannot hold the media.
fn media_json(media: &str) -> Option<String> {
    let block = JsonObject::from_value(media, whole_value(media))?;
    let has_source = block.get_value("source").is_some();
    if has_source && matches!(&*block.get_text("type"), "image" | "document" | "search_result") {
        return provider_limits::has_valid_source(&block).then(|| String::from(media));
    }
    if block.get_text("type") == "tool_reference" {
        return Some(media.into());
    }
    file_content::read_media(media)?.to_anthropic()
}

/// Returns whether the provider accepts the content of a result unchanged.
fn is_valid_content(answer: &TurnAnswer<'_>) -> bool {
    let output = answer.output;
    let has_text = |text: &str| !text.trim().is_empty();
    match whole_value(output).kind {
        JsonKind::Null => !answer.is_error && output.is_empty(),
        JsonKind::String => {
            !answer.is_error || has_text(&json::text(output, whole_value(output).span))
        }
        JsonKind::Array => {
            let elements = json::list_elements(output, whole_value(output).span);
            let fits = |value: &JsonValue| {
                JsonObject::from_value(output, *value).is_some_and(|block| {
                    match &*block.get_text("type") {
                        "" => false,
                        "text" => has_text(&block.get_text("text")),
                        _ => !answer.is_error && provider_limits::has_valid_source(&block),
                    }
                })
            };
            elements.iter().all(fits) && !(answer.is_error && elements.is_empty())
        }
        _ => false,
    }
}
