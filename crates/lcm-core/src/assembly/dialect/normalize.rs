//! From chosen entries to turns of blocks that no longer depend on the dialect they came in.
//!
//! A block that is asked for in its own dialect keeps its JSON beside, and goes out as it is unless
//! something about it must change.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{
    EntryOrigin, RenderEntry,
    file_content::{self, FileContent},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{self, JsonObject, MessageBlock as Read, Part, Role},
    types::api::Dialect,
};

/// What was said at once by one.
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    /// Index of its entry.
    pub(super) entry: usize,
    pub(super) seq: u64,
    pub(super) role: Role,
    pub(super) blocks: Vec<TurnBlock<'a>>,
    /// The results of its calls, in the order of the calls. Pairing fills it.
    pub(super) answers: Vec<TurnAnswer<'a>>,
    /// The message, when it is asked for in its own dialect.
    pub(super) native: Option<&'a str>,
    /// Whether it had blocks that pairing took out, or has nothing but thoughts, of which a note
    /// tells.
    pub(super) is_emptied: bool,
    /// Whether it is an item of `openai-responses`, of which one response puts out several.
    pub(super) is_item: bool,
}

/// A piece of a turn.
#[derive(Clone, Debug)]
pub(super) struct TurnBlock<'a> {
    pub(super) body: BlockBody<'a>,
    /// Its JSON, when it is asked for in its own dialect.
    pub(super) native: Option<&'a str>,
}

/// What a block is.
#[derive(Clone, Debug)]
pub(super) enum BlockBody<'a> {
    Text(Cow<'a, str>),
    Thought,
    Call(TurnCall<'a>),
    Answer(TurnAnswer<'a>),
    File(FileContent<'a>),
    /// A call that the provider itself answers, or its answer; only in its own dialect.
    ServerTool {
        id: Cow<'a, str>,
        is_result: bool,
    },
    /// Anything else, by its type.
    Other(Cow<'a, str>),
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct TurnCall<'a> {
    /// As the message gives it.
    pub(super) given_id: Option<Cow<'a, str>>,
    /// As it goes out. Pairing fills it.
    pub(super) id: String,
    pub(super) name: Cow<'a, str>,
    /// JSON, or empty.
    pub(super) input: &'a str,
}

/// What a tool returned.
#[derive(Clone, Debug)]
pub(super) struct TurnAnswer<'a> {
    pub(super) entry: usize,
    pub(super) given_id: Option<Cow<'a, str>>,
    pub(super) id: String,
    pub(super) name: Cow<'a, str>,
    /// JSON, or empty.
    pub(super) output: &'a str,
    pub(super) is_error: bool,
    /// Its block or message, when it is asked for in its own dialect.
    pub(super) native: Option<&'a str>,
    /// Whether it returned media that only its own dialect can express.
    pub(super) has_lost_media: bool,
}

/// The turns of all entries.
pub(super) fn normalize_entries(out: Dialect, entries: &[RenderEntry]) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let turn = |role, blocks| Turn {
            entry: at,
            seq: entry.seq,
            role,
            blocks,
            answers: Vec::new(),
            native: None,
            is_emptied: false,
            is_item: matches!(
                entry.origin,
                EntryOrigin::Message { dialect: Dialect::OpenaiResponses, .. }
            ),
        };
        let (raw, parts) = (entry.raw_text(), entry.parts());
        let EntryOrigin::Message { dialect, role } = entry.origin else {
            let body = BlockBody::Text(Cow::Borrowed(raw));
            turns.push(turn(Role::User, Vec::from([TurnBlock { body, native: None }])));
            continue;
        };
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        let is_bare_tool = role == Role::Tool && !parts.iter().any(is_result);
        let item = match dialect {
            Dialect::OpenaiResponses => message::item_kind(raw),
            _ => "",
        };
        let scope = MessageScope { entry: at, target: out, dialect, role, raw, item, is_bare_tool };
        let blocks = scope.convert_blocks(parts);
        if role == Role::Assistant {
            // What an assistant says after a result in its own message, it says after it.
            let pieces = split_after_results(blocks);
            let is_whole = pieces.len() == 1;
            for blocks in pieces {
                let native = scope.native_text().filter(|_| is_whole);
                let is_emptied = scope.item == "reasoning";
                turns.push(Turn { native, is_emptied, ..turn(role, blocks) });
            }
        } else {
            turns.push(Turn { native: scope.native_text(), ..turn(role, blocks) });
        }
    }
    turns
}

/// Cuts an assistant's blocks behind each group of results.
fn split_after_results(blocks: Vec<TurnBlock<'_>>) -> Vec<Vec<TurnBlock<'_>>> {
    let mut out: Vec<Vec<TurnBlock<'_>>> = Vec::from([Vec::new()]);
    let mut answered = false;
    for block in blocks {
        let is_answer = matches!(block.body, BlockBody::Answer(_));
        if answered && !is_answer {
            out.push(Vec::new());
        }
        answered = is_answer;
        if let Some(last) = out.last_mut() {
            last.push(block);
        }
    }
    out
}

/// One message and what it is rendered in.
struct MessageScope<'a> {
    entry: usize,
    target: Dialect,
    dialect: Dialect,
    role: Role,
    raw: &'a str,
    /// Type of an item of `openai-responses`, else empty.
    item: &'a str,
    /// A tool that returned no result, but may say one.
    is_bare_tool: bool,
}

impl<'a> MessageScope<'a> {
    fn is_target_dialect(&self) -> bool {
        self.dialect == self.target
    }

    fn native_text(&self) -> Option<&'a str> {
        self.is_target_dialect().then_some(self.raw)
    }

    fn convert_blocks(&self, parts: &[Part]) -> Vec<TurnBlock<'a>> {
        let read: Vec<Read> = if self.dialect == Dialect::Lcm {
            let whole = |part: &Part| match part {
                Part::Other { value } => *value,
                _ => ByteSpan::default(),
            };
            parts.iter().map(|part| Read { part: part.clone(), whole: whole(part) }).collect()
        } else {
            message::read_blocks(self.dialect, self.raw)
        };
        read.iter().filter_map(|read| self.convert_block(read)).collect()
    }

    fn convert_block(&self, read: &Read) -> Option<TurnBlock<'a>> {
        let whole = json::slice_span(self.raw, read.whole);
        let native = self
            .is_target_dialect()
            .then_some(whole)
            .filter(|_| has_written_id(self.raw, &read.part));
        let body = match &read.part {
            _ if self.item == "reasoning" => BlockBody::Thought,
            // A tool that only says a text returned it.
            Part::Text { text: said } if self.is_bare_tool => {
                BlockBody::Answer(self.build_answer(None, None, Some(*said), false))
            }
            Part::Text { text: said } => BlockBody::Text(json::text(self.raw, *said)),
            Part::Reasoning { .. } => BlockBody::Thought,
            Part::ToolCall { .. } if self.role != Role::Assistant => {
                BlockBody::Other(Cow::Borrowed("tool call"))
            }
            Part::ToolCall { name, input, .. } => match self.server_tool_id(read.whole, false) {
                Some(id) => BlockBody::ServerTool { id, is_result: false },
                None => BlockBody::Call(TurnCall {
                    given_id: read.part.call_id(self.raw),
                    id: String::new(),
                    name: self.text(*name),
                    input: self.raw_value(*input),
                }),
            },
            Part::ToolResult { name, output, is_error, .. } => {
                match self.server_tool_id(read.whole, true) {
                    Some(id) => BlockBody::ServerTool { id, is_result: true },
                    None => {
                        let given = read.part.result_id(self.raw);
                        let mut answer = self.build_answer(given, *name, *output, *is_error);
                        answer.native = match self.target {
                            Dialect::OpenaiChat => native.and(self.native_text()),
                            _ => native,
                        };
                        answer.has_lost_media = native.is_none() && self.has_media(read.whole);
                        BlockBody::Answer(answer)
                    }
                }
            }
            part @ (Part::File { .. } | Part::Other { .. }) => {
                if matches!(part, Part::Other { .. }) && whole == "null" {
                    return None;
                }
                match file_content::read(self.dialect, self.raw, part, read.whole) {
                    Some(file) => BlockBody::File(file),
                    None => BlockBody::Other(self.block_type(read.whole)),
                }
            }
        };
        Some(TurnBlock { body, native })
    }

    fn text(&self, span: Option<ByteSpan>) -> Cow<'a, str> {
        span.map_or(Cow::Borrowed(""), |span| json::text(self.raw, span))
    }

    fn raw_value(&self, span: Option<ByteSpan>) -> &'a str {
        span.map_or("", |span| json::slice_span(self.raw, span))
    }

    fn build_answer(
        &self,
        given: Option<Cow<'a, str>>,
        name: Option<ByteSpan>,
        output: Option<ByteSpan>,
        is_error: bool,
    ) -> TurnAnswer<'a> {
        let (name, output) = (self.text(name), self.raw_value(output));
        let (entry, id, native, has_more) = (self.entry, String::new(), None, false);
        TurnAnswer {
            entry,
            given_id: given,
            id,
            name,
            output,
            is_error,
            native,
            has_lost_media: has_more,
        }
    }

    /// Whether a function's response holds media beside what it returned.
    fn has_media(&self, whole: ByteSpan) -> bool {
        let value = JsonValue { span: whole, kind: json::kind(self.raw, whole) };
        self.dialect == Dialect::Gemini
            && JsonObject::from_value(self.raw, value)
                .and_then(|part| {
                    message::get_object_either(&part, "functionResponse", "function_response")
                })
                .is_some_and(|response| !response.get_list("parts").is_empty())
    }

    /// The id of a block that the provider answers itself, when it stays in its dialect.
    fn server_tool_id(&self, whole: ByteSpan, is_result: bool) -> Option<Cow<'a, str>> {
        if !self.is_target_dialect() {
            return None;
        }
        let block =
            JsonObject::from_value(self.raw, JsonValue { span: whole, kind: JsonKind::Object })?;
        let (is_served, key) = match self.dialect {
            Dialect::Anthropic if is_result => {
                (block.get_text("type") != "tool_result", "tool_use_id")
            }
            Dialect::Anthropic => (block.get_text("type") != "tool_use", "id"),
            Dialect::OpenaiResponses => (self.role != Role::Tool && !self.is_host_call(), "id"),
            Dialect::Gemini => {
                let camel = if is_result { "functionResponse" } else { "functionCall" };
                let snake = if is_result { "function_response" } else { "function_call" };
                (message::get_object_either(&block, camel, snake).is_none(), "id")
            }
            _ => (false, ""),
        };
        is_served.then(|| block.get_text(key))
    }

    /// Whether it is an item that the host answers.
    fn is_host_call(&self) -> bool {
        message::HOST_CALLS.contains(&self.item)
    }

    /// The type of a block that nobody documented.
    fn block_type(&self, whole: ByteSpan) -> Cow<'a, str> {
        let value = JsonValue { span: whole, kind: json::kind(self.raw, whole) };
        JsonObject::from_value(self.raw, value)
            .map_or(Cow::Borrowed(""), |block| block.get_text("type"))
    }
}

/// Whether the id of a call or result is a string, or it has none. Hosts write numbers, which no
/// provider takes: such a block is written anew.
fn has_written_id(raw: &str, part: &Part) -> bool {
    match part {
        Part::ToolCall { id: Some(id), .. } | Part::ToolResult { call_id: Some(id), .. } => {
            json::kind(raw, *id) == JsonKind::String
        }
        _ => true,
    }
}

impl TurnAnswer<'_> {
    /// Whether a tool returned it: no assembly put it there.
    pub(super) fn is_real(&self) -> bool {
        // Written in another dialect, it may have a few characters around it.
        self.output.len() > 2 * MISSING.len() || !self.output.contains(MISSING)
    }
}

macro_rules! missing {
    () => {
        "[the result of this call is missing]"
    };
}
/// The text of a result that stands for one that is missing.
pub(super) const MISSING: &str = missing!();
/// The same as JSON.
pub(super) const MISSING_JSON: &str = concat!("\"", missing!(), "\"");
