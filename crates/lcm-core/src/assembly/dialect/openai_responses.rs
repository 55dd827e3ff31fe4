//! Writes turns as input items of the `OpenAI` Responses API.
//!
//! An item of this dialect is written without the members that a host added, and otherwise
//! unchanged if the provider accepts it. Reasoning is kept only before the item that it led to,
//! because the provider refuses reasoning alone. A call such as `computer_call` requires a result
//! item of the same tool. Without such an item, call and result become a function call and its
//! output.

use alloc::{borrow::Cow, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    array_writer::{ArrayWriter, JsonFragment},
    file_content::{push_field, quote_text, read_media, write_members},
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock, TurnCall, caller_id},
    pair_tool_calls::ORPHAN_PREFIX,
    tool_output::{self, ToolOutputPiece},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{self, HOST_CALLS, JsonObject, Role, provider_limits},
    types::api::Dialect,
};

/// Number of types at the start of [`HOST_CALLS`] whose result may be a text.
const TEXT_ANSWER_CALLS: usize = 2;

/// Writes all turns.
pub(super) fn write(turns: &[Turn<'_>], notes: &mut RenderNotes) -> ArrayWriter {
    let mut converter = ItemConverter {
        call_kinds: choose_call_kinds(turns),
        followed_turns: find_followed_turns(turns),
        programs: find_programs(turns),
        seen: SeenItems::default(),
        items: Vec::new(),
        notes,
    };
    let mut writer = ArrayWriter::new(Dialect::OpenaiResponses);
    for (at, turn) in turns.iter().enumerate() {
        match turn.native {
            Some(raw) => converter.convert_native(at, raw, turn),
            None => converter.build_items(turn),
        }
        let items = core::mem::take(&mut converter.items);
        let has_note = turn.is_emptied || is_approval(turn);
        if items.is_empty() && turn.answers.is_empty() && !has_note {
            converter.notes.add_note(turn.entry, RenderNote::DroppedEmpty);
        }
        for item in items {
            let fragment = [JsonFragment::strip_object(Dialect::OpenaiResponses, turn.entry, item)];
            writer.push_message("", &fragment, "", converter.notes);
        }
        for answer in &turn.answers {
            let item = converter.answer_json(answer);
            let fragment =
                [JsonFragment::strip_object(Dialect::OpenaiResponses, answer.entry, item)];
            writer.push_message("", &fragment, "", converter.notes);
        }
    }
    writer
}

/// Returns the call ids of the programs that are written: those with an output, and the last one if
/// it waits for its output at the end of the context, so that only its calls and their results are
/// behind it. The values are unused.
fn find_programs(turns: &[Turn<'_>]) -> BTreeMap<String, usize> {
    let item_kind = |turn: &Turn<'_>| turn.native.map_or("", message::item_kind);
    let has_caller = |turn: &Turn<'_>| turn.native.and_then(caller_id).is_some();
    let is_other = |turn: &Turn<'_>| {
        !turn.blocks.is_empty() && item_kind(turn) != "program" && !has_caller(turn)
    };
    let waiting_from = turns.iter().rposition(is_other).map_or(0, |last| last + 1);
    let call_id = |raw: &str| parse_item(raw).get_text("call_id").into_owned();
    let last = turns.iter().rev().find(|turn| item_kind(turn) == "program");
    let last_id = last.and_then(|turn| turn.native).map(call_id);
    let mut needed: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for (at, turn) in turns.iter().enumerate() {
        let id = match item_kind(turn) {
            "program_output" => turn.native.map(call_id),
            _ if at >= waiting_from => {
                turn.native.and_then(caller_id).filter(|id| Some(id) == last_id.as_ref())
            }
            _ => None,
        };
        if let Some(id) = id {
            needed.insert(id, 0);
        }
    }
    let programs = turns.iter().filter(|turn| item_kind(turn) == "program");
    for id in programs.filter_map(|turn| turn.native).map(call_id) {
        if needed.contains_key(&id) {
            out.insert(id, 0);
        }
    }
    out
}

/// Returns whether a turn is a response to a request for approval.
fn is_approval(turn: &Turn<'_>) -> bool {
    turn.native.is_some_and(|raw| message::item_kind(raw) == "mcp_approval_response")
}

/// Finds the calls of this dialect that are written unchanged, and returns the type of each by call
/// id, as an index in [`HOST_CALLS`]. All other calls are written as `function_call`.
fn choose_call_kinds(turns: &[Turn<'_>]) -> BTreeMap<String, usize> {
    let kind_index = |kind: &str| HOST_CALLS.iter().position(|known| *known == kind).unwrap_or(0);
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for answer in turns.iter().flat_map(|turn| &turn.answers) {
        if let Some(item) = native_answer_item(answer) {
            let call = message::answered_call_type(&item.get_text("type")).unwrap_or_default();
            answers.insert(answer.id.clone(), kind_index(call));
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
        let kind = kind_index(message::item_kind(raw));
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

/// Returns whether the item of a call can be written unchanged. The call must keep its id and name,
/// and the item must have all strings that its type requires.
fn is_unchanged_call(call: &TurnCall<'_>, raw: &str) -> bool {
    let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    let required: &[&str] = match message::item_kind(raw) {
        "function_call" => &["call_id", "name", "arguments"],
        "custom_tool_call" => &["call_id", "name", "input"],
        _ => &["call_id"],
    };
    let name = provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &call.name);
    // A call without a name was read with its type in place of the name.
    let is_named = !required.contains(&"name") || !item.get_text("name").is_empty();
    call.given_id.as_deref() == Some(&call.id)
        && name == call.name
        && is_named
        && required.iter().all(|key| item.get_string(key).is_some())
}

/// Returns the item of a result. `None`: the result is of another dialect, has an id that is not a
/// string, or belongs to a call that got another id.
fn native_answer_item<'a>(answer: &TurnAnswer<'a>) -> Option<JsonObject<'a>> {
    let raw = answer.native.filter(|_| answer.given_id.as_deref() == Some(&answer.id))?;
    Some(JsonObject::new(raw, json::parse_object(raw).unwrap_or_default()))
}

/// Returns for each turn whether the next turn that is not reasoning is an item of the model, with
/// content to write.
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

/// Returns whether an item is a reference without an id, which is omitted.
fn is_empty_reference(raw: &str) -> bool {
    let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    message::item_kind(raw) == "item_reference" && item.get_text("id").is_empty()
}

/// Returns whether a block of an item is written: false for a blank text.
fn is_written(block: &TurnBlock<'_>) -> bool {
    !matches!(&block.body, BlockBody::Text(text) if text.trim().is_empty())
}

/// The facts about written items on which later items depend.
#[derive(Default)]
struct SeenItems {
    /// Whether reasoning was omitted, and no reasoning was written since.
    lost_reasoning: bool,
    /// Ids of written items; the values are unused.
    ids: BTreeMap<String, usize>,
    /// Ids of requests for approval, which their responses name; the values are unused.
    requests: BTreeMap<String, usize>,
}

/// A converter of turns to items.
struct ItemConverter<'n> {
    /// Index in [`HOST_CALLS`] of the type of each call, by call id.
    call_kinds: BTreeMap<String, usize>,
    /// For each turn, whether an item of the model follows, reasoning skipped.
    followed_turns: Vec<bool>,
    /// Call ids of the programs that are written; the values are unused.
    programs: BTreeMap<String, usize>,
    seen: SeenItems,
    /// Items of the current turn.
    items: Vec<String>,
    notes: &'n mut RenderNotes,
}

impl ItemConverter<'_> {
    /// Adds the items of a turn that came as the item `raw` of this dialect. `at`: index of the
    /// turn.
    fn convert_native(&mut self, at: usize, raw: &str, turn: &Turn<'_>) {
        let item = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
        match message::item_kind(raw) {
            "message" => {
                let is_assistant = turn.role == Role::Assistant;
                let is_valid = match item.get_field("content").map(|content| content.kind) {
                    Some(JsonKind::String) => {
                        !is_assistant || !item.get_text("content").trim().is_empty()
                    }
                    _ => provider_limits::has_valid_item_parts(raw, &item, is_assistant),
                };
                let is_alone = is_assistant && self.seen.lost_reasoning;
                let has_content = |block| !is_assistant || is_written(block);
                if !is_valid || is_alone || !turn.blocks.iter().any(has_content) {
                    return self.build_items(turn);
                }
            }
            "reasoning"
                if !self.followed_turns.get(at).copied().unwrap_or_default()
                    || item
                        .get_field("summary")
                        .is_none_or(|list| list.kind != JsonKind::Array) =>
            {
                self.seen.lost_reasoning = true;
                return self.notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
            }
            "item_reference" if is_empty_reference(raw) => {
                return self.notes.add_note(turn.entry, RenderNote::BlockLeftOut);
            }
            "mcp_approval_request" => {
                self.seen.requests.insert(item.get_text("id").into_owned(), 0);
            }
            "mcp_approval_response"
                if !self.seen.requests.contains_key(&*item.get_text("approval_request_id")) =>
            {
                return self.notes.add_note(turn.entry, RenderNote::BlockLeftOut);
            }
            "program" if !self.has_program(&item) => {
                return self.notes.add_note(turn.entry, RenderNote::BlockLeftOut);
            }
            "program_output" if !self.has_program(&item) => {
                self.notes.add_note(turn.entry, RenderNote::OrphanResult);
                let text = format!("{ORPHAN_PREFIX}{}", item.get_text("result"));
                let text = ItemContent::Text(Cow::Owned(text));
                return self.items.push(message_json("assistant", &[text]));
            }
            kind if HOST_CALLS.contains(&kind) => {
                let Some(call) = turn.blocks.iter().find_map(as_call) else { return };
                if !self.call_kinds.contains_key(&call.id) {
                    return self.build_items(turn);
                }
            }
            _ => {}
        }
        let (kind, id) = (message::item_kind(raw), item.get_text("id"));
        let is_named = kind != "item_reference" && message::answered_call_type(kind).is_none();
        let is_repeated =
            is_named && !id.is_empty() && self.seen.ids.insert(id.into_owned(), 0).is_some();
        if kind == "reasoning" {
            self.seen.lost_reasoning = is_repeated;
            if is_repeated {
                return self.notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
            }
        }
        // An item id refers to the reasoning before the item, which the provider then requires.
        let is_alone = self.seen.lost_reasoning && kind.ends_with("_call");
        self.items.push(self.write_item(raw, &item, is_repeated || is_alone));
    }

    /// Adds the items of a turn of another dialect, or of an item that cannot be written unchanged.
    fn build_items(&mut self, turn: &Turn<'_>) {
        let is_assistant = turn.role == Role::Assistant || turn.role == Role::Tool;
        let mut content: Vec<ItemContent<'_>> = Vec::new();
        let mut has_thoughts = false;
        for block in &turn.blocks {
            let piece = match &block.body {
                BlockBody::Text(text) if text.trim().is_empty() => continue,
                BlockBody::Text(text) => ItemContent::Text(text.clone()),
                BlockBody::Thought => {
                    has_thoughts = true;
                    continue;
                }
                BlockBody::Call(call) => {
                    self.items.push(self.call_json(turn, call));
                    continue;
                }
                BlockBody::Answer(_) => continue,
                BlockBody::File(file) => match file.to_openai_responses() {
                    Some(json) if !is_assistant => ItemContent::Part(json),
                    Some(json) if json.starts_with("{\"type\":\"input_text\"") => {
                        ItemContent::Text(part_text(&json))
                    }
                    _ => omission_content(turn.entry, &file.display_title(), self.notes),
                },
                BlockBody::ServerTool { .. } => omission_content(turn.entry, "block", self.notes),
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
                        None => omission_content(turn.entry, name, self.notes),
                    }
                }
            };
            if is_assistant {
                // Written at once: a text stays before a call that follows.
                if let ItemContent::Text(text) = &piece {
                    self.items.push(message_json("assistant", &[ItemContent::Text(text.clone())]));
                }
            } else {
                content.push(piece);
            }
        }
        if has_thoughts {
            self.notes.add_note(turn.entry, RenderNote::ReasoningLeftOut);
        }
        if !content.is_empty() {
            let role = if turn.role == Role::System { "system" } else { "user" };
            self.items.push(message_json(role, &content));
        }
    }

    /// Returns whether the program with the call id of an item is written.
    fn has_program(&self, item: &JsonObject<'_>) -> bool {
        self.programs.contains_key(&*item.get_text("call_id"))
    }

    /// Writes an item without a caller that is not written. The id is also left out if `drops_id`,
    /// or if the provider would refuse it.
    fn write_item(&self, raw: &str, item: &JsonObject<'_>, drops_id: bool) -> String {
        let keeps_id = !drops_id
            && provider_limits::is_valid_item_id(message::item_kind(raw), &item.get_text("id"));
        let has_caller = caller_id(raw).is_none_or(|id| self.programs.contains_key(&id));
        let mut changes = Vec::new();
        changes.extend((!keeps_id).then_some(("id", None)));
        changes.extend((!has_caller).then_some(("caller", None)));
        write_members(raw, &changes)
    }

    /// Returns the index in [`HOST_CALLS`] of the type that a call is written with.
    fn call_kind(&self, id: &str) -> usize {
        self.call_kinds.get(id).copied().unwrap_or_default()
    }

    fn answer_json(&mut self, answer: &TurnAnswer<'_>) -> String {
        let kind = self.call_kind(&answer.id);
        let call = HOST_CALLS.get(kind).copied().unwrap_or_default();
        if let Some(item) = native_answer_item(answer)
            && message::answered_call_type(&item.get_text("type")) == Some(call)
            && (kind >= TEXT_ANSWER_CALLS
                || item.get_field("output").is_some() && is_valid_output(answer.output))
        {
            return self.write_item(answer.native.unwrap_or_default(), &item, false);
        }
        let pieces = tool_output::split_output(answer.output);
        let has_media = pieces.iter().any(|piece| matches!(piece, ToolOutputPiece::Media(_)));
        let output = if answer.is_error || !has_media {
            let output = tool_output::write_text(answer.output, answer.is_error, &|_| None);
            if !output.is_complete {
                self.notes.add_note(answer.entry, RenderNote::BlockLeftOut);
            }
            quote_text(&output.text)
        } else {
            let parts: Vec<ItemContent<'_>> = pieces
                .into_iter()
                .map(|piece| media_content(answer.entry, piece, self.notes))
                .collect();
            let mut out = String::new();
            push_parts(&mut out, &parts);
            out
        };
        let kind = format!("{call}_output");
        let native = answer.native.filter(|raw| parse_item(raw).get_text("type") == *kind);
        let changes = [
            ("type", Some(&*quote_text(&kind))),
            ("call_id", Some(&*quote_text(&answer.id))),
            ("output", Some(&*output)),
        ];
        self.write_known(native, &changes)
    }

    /// Writes a call of another dialect, or one that cannot be written unchanged.
    fn call_json(&self, turn: &Turn<'_>, call: &TurnCall<'_>) -> String {
        let name = provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &call.name);
        let native = turn.native.filter(|raw| message::item_kind(raw) == "function_call");
        let changes = [
            ("type", Some("\"function_call\"")),
            // The id belongs to the item that cannot be written.
            ("id", None),
            ("call_id", Some(&*quote_text(&call.id))),
            ("name", Some(&*quote_text(&name))),
            ("arguments", Some(&*quote_text(&provider_limits::to_input_object(call.input)))),
        ];
        self.write_known(native, &changes)
    }

    /// Writes an item with changes. Its other members stay, such as the caller.
    fn write_known(&self, native: Option<&str>, changes: &[(&str, Option<&str>)]) -> String {
        let item = write_members(native.unwrap_or("{}"), changes);
        self.write_item(&item, &parse_item(&item), false)
    }
}

fn parse_item(json: &str) -> JsonObject<'_> {
    JsonObject::new(json, json::parse_object(json).unwrap_or_default())
}

/// Returns whether the provider accepts a function output: a text, or a list of valid input parts.
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

/// A piece of the content of an item.
enum ItemContent<'a> {
    Text(Cow<'a, str>),
    /// JSON of a part.
    Part(String),
}

/// Returns a text in place of content that the dialect cannot express, and adds a note.
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
            if let Some(text) = tool_output::search_result_text(media) {
                return ItemContent::Text(Cow::Owned(text));
            }
            let json = read_media(media).and_then(|file| file.to_openai_responses());
            json.map_or_else(|| omission_content(entry, "media", notes), ItemContent::Part)
        }
    }
}

/// Returns the text of a part that [`file_content::FileContent::to_openai_responses`] wrote.
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
