//! Writes turns as input items of the `OpenAI` Responses API.
//!
//! Items that came in this dialect go out as they are, without what a host added to them. Reasoning
//! stays only in front of the item it led to, for the provider refuses it alone. A call of one of
//! the provider's own tools can be answered only by an item of its type; where there is none, call
//! and answer become those of a function.

use alloc::{borrow::Cow, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
    file_content::{self, push_field, write_members_without},
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall},
    openai_chat::HOST_MEMBERS,
    tool_output::{self, ToolOutputPiece},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{self, HOST_CALLS, JsonObject, Role, provider_limits},
    types::api::Dialect,
};

/// Calls whose answers can be text, by their place in [`CALLS`].
const TEXT_ANSWER_CALLS: usize = 2;
/// Items that may go without an id.
const OPTIONAL_ID_ITEMS: [&str; 2] = ["function_call", "custom_tool_call"];

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], notes: &mut RenderNotes) -> ArrayWriter {
    let writer = ItemWriter {
        call_kinds: choose_call_kinds(turns),
        followed_turns: find_followed_turns(turns),
    };
    let mut sink = ArrayWriter::new(Dialect::OpenaiResponses);
    let mut seen = SeenItems::default();
    for (at, turn) in turns.iter().enumerate() {
        let mut items = Vec::new();
        match turn.native {
            Some(raw) => writer.write_native(at, raw, turn, &mut seen, &mut items, notes),
            None => writer.build_items(turn, &mut items, notes),
        }
        let is_told = turn.is_emptied || is_approval(turn);
        if items.is_empty() && turn.answers.is_empty() && !is_told {
            notes.add_note(turn.entry, RenderNote::DroppedEmpty);
        }
        for item in items {
            sink.push_message("", &[JsonFragment::new(turn.entry, item)], "", notes);
        }
        for answer in &turn.answers {
            let item = writer.write_answer(answer, notes);
            sink.push_message("", &[JsonFragment::new(answer.entry, item)], "", notes);
        }
    }
    sink
}

/// Whether it is an answer to a request of the provider.
fn is_approval(turn: &Turn<'_>) -> bool {
    turn.native.is_some_and(|raw| message::item_kind(raw) == "mcp_approval_response")
}

/// Of each call by its id, the place in [`CALLS`] of the type that it is written with.
fn choose_call_kinds(turns: &[Turn<'_>]) -> BTreeMap<String, usize> {
    let place = |kind: &str| HOST_CALLS.iter().position(|known| *known == kind).unwrap_or(0);
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for answer in turns.iter().flat_map(|turn| &turn.answers) {
        if let Some(item) = native_answer_item(answer) {
            let call = message::answered_call_type(&item.get_text("type")).unwrap_or_default();
            answers.insert(answer.id.clone(), place(call));
        }
    }
    let mut kinds = BTreeMap::new();
    for turn in turns {
        let Some(raw) = turn.native else { continue };
        let Some(call) =
            turn.blocks.iter().find_map(as_call).filter(|call| is_unchanged_call(call, raw))
        else {
            continue;
        };
        let kind = place(message::item_kind(raw));
        if kind < TEXT_ANSWER_CALLS || answers.get(&call.id) == Some(&kind) {
            kinds.insert(call.id.clone(), kind);
        }
    }
    kinds
}

fn as_call<'b, 'a>(block: &'b TurnBlock<'a>) -> Option<&'b TurnCall<'a>> {
    match &block.body {
        BlockBody::Call(call) => Some(call),
        _ => None,
    }
}

/// Whether a call goes out as the item it came in: by its id and name, with all that its type asks
/// for as a string.
fn is_unchanged_call(call: &TurnCall<'_>, raw: &str) -> bool {
    let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    let wanted: &[&str] = match message::item_kind(raw) {
        "function_call" => &["call_id", "name", "arguments"],
        "custom_tool_call" => &["call_id", "name", "input"],
        _ => &["call_id"],
    };
    let name = provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &call.name);
    // A call without a name is read as one of its type.
    let is_named = !wanted.contains(&"name") || !item.get_text("name").is_empty();
    call.given_id.as_deref() == Some(&call.id)
        && name == call.name
        && is_named
        && wanted.iter().all(|key| item.get_string(key).is_some())
}

/// The item that an answer came as, when it goes by the id it came with.
fn native_answer_item<'a>(answer: &TurnAnswer<'a>) -> Option<JsonObject<'a>> {
    let raw = answer.native.filter(|_| answer.given_id.as_deref() == Some(&answer.id))?;
    Some(JsonObject::new(raw, json::parse_object(raw).unwrap_or_default()))
}

/// Of each turn, whether an item of the model follows, behind any reasoning.
fn find_followed_turns(turns: &[Turn<'_>]) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::new();
    let mut follows = false;
    for turn in turns.iter().rev() {
        out.push(follows);
        let is_thought = |block: &TurnBlock<'_>| matches!(block.body, BlockBody::Thought);
        let is_item =
            turn.native.is_some_and(|raw| !is_empty_reference(raw)) && turn.role == Role::Assistant;
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
fn is_empty_reference(raw: &str) -> bool {
    let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    message::item_kind(raw) == "item_reference" && item.get_text("id").is_empty()
}

/// Whether a block of an item is there when it is written.
fn is_written(block: &TurnBlock<'_>) -> bool {
    !matches!(&block.body, BlockBody::Text(text) if text.trim().is_empty())
}

/// What was written, as far as later items go by it.
#[derive(Default)]
struct SeenItems {
    /// Whether reasoning was left out, and none was written since.
    lost_reasoning: bool,
    ids: BTreeMap<String, usize>,
    /// Of requests for approval, which their responses name.
    requests: BTreeMap<String, usize>,
}

struct ItemWriter {
    call_kinds: BTreeMap<String, usize>,
    followed_turns: Vec<bool>,
}

impl ItemWriter {
    /// An item of this dialect.
    fn write_native(
        &self,
        at: usize,
        raw: &str,
        turn: &Turn<'_>,
        seen: &mut SeenItems,
        items: &mut Vec<String>,
        notes: &mut RenderNotes,
    ) {
        let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
        match message::item_kind(raw) {
            "message" => {
                let is_assistant = turn.role == Role::Assistant;
                let stands = match item.get_field("content").map(|content| content.kind) {
                    Some(JsonKind::String) => {
                        !is_assistant || !item.get_text("content").trim().is_empty()
                    }
                    _ => provider_limits::has_valid_item_parts(raw, &item, is_assistant),
                };
                let is_alone = is_assistant && seen.lost_reasoning;
                let is_there = |block| !is_assistant || is_written(block);
                if !stands || is_alone || !turn.blocks.iter().any(is_there) {
                    return self.build_items(turn, items, notes);
                }
            }
            "reasoning"
                if !self.followed_turns.get(at).copied().unwrap_or_default()
                    || item
                        .get_field("summary")
                        .is_none_or(|list| list.kind != JsonKind::Array) =>
            {
                seen.lost_reasoning = true;
                return notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
            }
            "item_reference" if is_empty_reference(raw) => {
                return notes.add_note(turn.entry, RenderNote::BlockLeftOut);
            }
            "mcp_approval_request" => {
                seen.requests.insert(item.get_text("id").into_owned(), 0);
            }
            "mcp_approval_response"
                if !seen.requests.contains_key(&*item.get_text("approval_request_id")) =>
            {
                return notes.add_note(turn.entry, RenderNote::BlockLeftOut);
            }
            kind if HOST_CALLS.contains(&kind) => {
                let Some(call) = turn.blocks.iter().find_map(as_call) else { return };
                if !self.call_kinds.contains_key(&call.id) {
                    return self.build_items(turn, items, notes);
                }
            }
            _ => {}
        }
        let (kind, id) = (message::item_kind(raw), item.get_text("id"));
        let is_named = kind != "item_reference" && message::answered_call_type(kind).is_none();
        let is_again = is_named && !id.is_empty() && seen.ids.insert(id.into_owned(), 0).is_some();
        if kind == "reasoning" {
            seen.lost_reasoning = is_again;
            if is_again {
                return notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
            }
        }
        // By the id of an item the provider knows that there was reasoning, and asks for it.
        let is_alone = seen.lost_reasoning && OPTIONAL_ID_ITEMS.contains(&kind);
        items.push(strip_host_members(raw, &item, is_again || is_alone));
    }

    /// What a turn of another dialect says, or one that cannot go as it is.
    fn build_items(&self, turn: &Turn<'_>, items: &mut Vec<String>, notes: &mut RenderNotes) {
        let is_assistant = turn.role == Role::Assistant || turn.role == Role::Tool;
        let mut content: Vec<ItemContent<'_>> = Vec::new();
        let mut thoughts = false;
        for block in &turn.blocks {
            let piece = match &block.body {
                BlockBody::Text(text) if text.trim().is_empty() => continue,
                BlockBody::Text(text) => ItemContent::Text(text.clone()),
                BlockBody::Thought => {
                    thoughts = true;
                    continue;
                }
                BlockBody::Call(call) => {
                    items.push(self.write_call(call));
                    continue;
                }
                BlockBody::Answer(_) => continue,
                BlockBody::File(file) => match file.to_openai_responses() {
                    Some(json) if !is_assistant => ItemContent::Part(json),
                    Some(json) if json.starts_with("{\"type\":\"input_text\"") => {
                        ItemContent::Text(part_text(&json))
                    }
                    _ => omission_content(turn.entry, &file.display_title(), notes),
                },
                BlockBody::ServerTool { .. } => omission_content(turn.entry, "block", notes),
                BlockBody::Other(kind) => {
                    let name = if kind.is_empty() { "block" } else { kind };
                    let is_text = ["output_text", "refusal", "input_text"].contains(&&**kind);
                    let fits = |native: &&str| {
                        !is_assistant
                            && !is_text
                            && provider_limits::is_valid_item_part(&parse_item(native))
                    };
                    match block.native.filter(fits) {
                        Some(native) => ItemContent::Part(native.into()),
                        None => omission_content(turn.entry, name, notes),
                    }
                }
            };
            if is_assistant {
                // In front of a call that was said after it.
                if let ItemContent::Text(text) = &piece {
                    items.push(message_json("assistant", &[ItemContent::Text(text.clone())]));
                }
            } else {
                content.push(piece);
            }
        }
        if thoughts {
            notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
        }
        if !content.is_empty() {
            let role = if turn.role == Role::System { "system" } else { "user" };
            items.push(message_json(role, &content));
        }
    }

    /// The place in [`CALLS`] of the type of a call by its id.
    fn call_kind(&self, id: &str) -> usize {
        self.call_kinds.get(id).copied().unwrap_or_default()
    }

    fn write_call(&self, call: &TurnCall<'_>) -> String {
        let name = provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &call.name);
        let mut out = String::from("{\"type\":\"function_call\"");
        push_field(&mut out, "call_id", &call.id);
        push_field(&mut out, "name", &name);
        push_field(&mut out, "arguments", &provider_limits::to_input_object(call.input));
        out.push('}');
        out
    }

    fn write_answer(&self, answer: &TurnAnswer<'_>, notes: &mut RenderNotes) -> String {
        let kind = self.call_kind(&answer.id);
        let call = HOST_CALLS.get(kind).copied().unwrap_or_default();
        if let Some(item) = native_answer_item(answer)
            && message::answered_call_type(&item.get_text("type")) == Some(call)
            && (kind >= TEXT_ANSWER_CALLS
                || item.get_field("output").is_some() && is_valid_output(answer.output))
        {
            return strip_host_members(answer.native.unwrap_or_default(), &item, false);
        }
        let mut out = format!("{{\"type\":\"{call}_output\"");
        push_field(&mut out, "call_id", &answer.id);
        let pieces = tool_output::split_output(answer.output);
        if answer.is_error || !pieces.iter().any(|piece| matches!(piece, ToolOutputPiece::Media(_)))
        {
            let (text, is_whole) = tool_output::text_with_error_mark(answer);
            if !is_whole {
                notes.add_note(answer.entry, RenderNote::BlockLeftOut);
            }
            push_field(&mut out, "output", &text);
        } else {
            out.push_str(",\"output\":");
            let parts: Vec<ItemContent<'_>> =
                pieces.into_iter().map(|piece| media_content(answer.entry, piece, notes)).collect();
            push_parts(&mut out, &parts);
        }
        out.push('}');
        out
    }
}

fn parse_item(json: &str) -> JsonObject<'_> {
    JsonObject::new(json, json::parse_object(json).unwrap_or_default())
}

/// An item without what a host added to it, and without an id that another one has.
fn strip_host_members(raw: &str, item: &JsonObject<'_>, is_again: bool) -> String {
    let is_own = !is_again
        && provider_limits::is_valid_item_id(message::item_kind(raw), &item.get_text("id"));
    write_members_without(raw, item, HOST_MEMBERS.get(usize::from(is_own)..).unwrap_or_default())
}

/// Whether the provider takes the output of a function: a text, or a list of parts.
fn is_valid_output(output: &str) -> bool {
    let span = ByteSpan::from_range(0, output.len());
    match json::kind(output, span) {
        JsonKind::String => true,
        JsonKind::Array => {
            let fits = |value: &JsonValue| {
                let part = JsonObject::from_value(output, *value);
                part.is_some_and(|part| {
                    part.get_text("type").starts_with("input_")
                        && provider_limits::is_valid_item_part(&part)
                })
            };
            json::list_elements(output, span).iter().all(fits)
        }
        _ => false,
    }
}

/// One piece of content.
enum ItemContent<'a> {
    Text(Cow<'a, str>),
    /// JSON of a part.
    Part(String),
}

fn omission_content<'a>(entry: usize, what: &str, notes: &mut RenderNotes) -> ItemContent<'a> {
    notes.add_note(entry, RenderNote::BlockLeftOut);
    ItemContent::Text(Cow::Owned(format!("[{what} left out]")))
}

fn media_content<'a>(
    entry: usize,
    piece: ToolOutputPiece<'a>,
    notes: &mut RenderNotes,
) -> ItemContent<'a> {
    match piece {
        ToolOutputPiece::Text(text) => ItemContent::Text(text),
        ToolOutputPiece::Media(media) => {
            let json = file_content::read_media(media).and_then(|file| file.to_openai_responses());
            json.map_or_else(|| omission_content(entry, "media", notes), ItemContent::Part)
        }
    }
}

/// The text of a part that was made.
fn part_text<'a>(part: &str) -> Cow<'a, str> {
    let members = json::parse_object(part).unwrap_or_default();
    Cow::Owned(JsonObject::new(part, members).get_text("text").into_owned())
}

fn message_json(role: &str, content: &[ItemContent<'_>]) -> String {
    let mut out = format!("{{\"role\":\"{role}\",\"content\":");
    match content {
        [ItemContent::Text(text)] => json::write_string(&mut out, text),
        parts => push_parts(&mut out, parts),
    }
    out.push('}');
    out
}

fn push_parts(out: &mut String, parts: &[ItemContent<'_>]) {
    for (at, part) in parts.iter().enumerate() {
        out.push(if at == 0 { '[' } else { ',' });
        match part {
            ItemContent::Part(json) => out.push_str(json),
            ItemContent::Text(text) => {
                out.push_str("{\"type\":\"input_text\"");
                push_field(out, "text", text);
                out.push('}');
            }
        }
    }
    out.push_str(if parts.is_empty() { "[]" } else { "]" });
}
