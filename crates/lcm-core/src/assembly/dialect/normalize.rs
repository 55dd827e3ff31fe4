//! Normalisation: entries of any dialect become turns of blocks that all dialects share.
//!
//! In: the entries to render. Out: turns, which pairing changes and the dialects write. A block
//! whose dialect is the target dialect keeps its JSON, which is written unchanged unless the
//! provider would refuse it.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{
    EntryOrigin, RenderEntry,
    approvals::TurnApproval,
    file_content::{self, FileContent},
};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{self, JsonObject, MessageBlock as Read, Part, Role},
    types::api::Dialect,
};

/// A message of one speaker, or one piece of a split message. A summary is a turn of the user.
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    /// Index of the entry.
    pub(super) entry: usize,
    /// Seq of the message, or the first seq that the summary covers.
    pub(super) seq: u64,
    pub(super) role: Role,
    pub(super) blocks: Vec<TurnBlock<'a>>,
    /// Results that are written behind the turn; set by pairing.
    pub(super) answers: Vec<TurnAnswer<'a>>,
    /// Approvals in the message; after `keep_last_approvals` those of calls of the turn that end
    /// the array.
    pub(super) approvals: Vec<TurnApproval<'a>>,
    /// JSON of the message; `None`: the message is of another dialect, or was split.
    pub(super) native: Option<&'a str>,
    /// Whether pairing takes calls or results out of the turn, or the turn is a `reasoning` item.
    /// If nothing is left to write, no note on an empty message is added.
    pub(super) is_emptied: bool,
    /// Whether the turn is an item of `openai-responses` or `openai-agents`. One response may have
    /// several items.
    pub(super) is_item: bool,
}

/// A block of a turn.
#[derive(Clone, Debug)]
pub(super) struct TurnBlock<'a> {
    pub(super) body: BlockBody<'a>,
    /// JSON of the block; `None`: the block is of another dialect, or has an id that is not a
    /// string.
    pub(super) native: Option<&'a str>,
}

/// Content of a block.
#[derive(Clone, Debug)]
pub(super) enum BlockBody<'a> {
    Text(Cow<'a, str>),
    Thought,
    Call(TurnCall<'a>),
    Answer(TurnAnswer<'a>),
    File(FileContent<'a>),
    /// A call that the provider itself answers, or its result; only in the target dialect.
    ServerTool {
        id: Cow<'a, str>,
        is_result: bool,
    },
    /// Any other block: its type; empty: no type.
    Other(Cow<'a, str>),
}

/// A tool call.
#[derive(Clone, Debug)]
pub(super) struct TurnCall<'a> {
    /// Id in the message; `None`: absent.
    pub(super) given_id: Option<Cow<'a, str>>,
    /// Id that is written; set by pairing, empty for a call that is omitted.
    pub(super) id: String,
    pub(super) name: Cow<'a, str>,
    /// JSON of the arguments; empty: absent.
    pub(super) input: &'a str,
}

/// A tool result.
#[derive(Clone, Debug)]
pub(super) struct TurnAnswer<'a> {
    /// Index of the entry that has the result.
    pub(super) entry: usize,
    /// Id of its call in the message; `None`: absent.
    pub(super) given_id: Option<Cow<'a, str>>,
    /// Id of its call that is written; set by pairing.
    pub(super) id: String,
    pub(super) name: Cow<'a, str>,
    /// JSON of the output; empty: absent.
    pub(super) output: &'a str,
    pub(super) is_error: bool,
    /// JSON of the result's block, or in `openai-chat` of the whole message. `None`: the result is
    /// of another dialect, has an id that is not a string, or is from a `tool` message without a
    /// result part.
    pub(super) native: Option<&'a str>,
    /// Whether the result has media that only its own dialect can express.
    pub(super) has_lost_media: bool,
}

/// Converts all entries to turns for the dialect `target`.
pub(super) fn normalize_entries(target: Dialect, entries: &[RenderEntry]) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let turn = |role, blocks| Turn {
            entry: at,
            seq: entry.seq,
            role,
            blocks,
            answers: Vec::new(),
            approvals: Vec::new(),
            native: None,
            is_emptied: false,
            is_item: matches!(
                entry.origin,
                EntryOrigin::Message { dialect, .. } if dialect.has_items()
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
            _ if dialect.has_items() => message::item_kind(raw),
            _ => "",
        };
        let is_ui_message = dialect == Dialect::AiSdk
            && json::parse_object(raw)
                .is_ok_and(|members| JsonObject::new(raw, members).get_value("parts").is_some());
        let scope = MessageScope {
            entry: at,
            target,
            dialect,
            role,
            raw,
            item,
            is_bare_tool,
            is_ui_message,
        };
        let (blocks, approvals) = scope.convert_blocks(parts);
        if role == Role::Assistant {
            // Blocks behind a result in the same message become a turn behind the result.
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
        // The last piece has the calls that still wait.
        if let Some(turn) = turns.last_mut() {
            turn.approvals = approvals;
        }
    }
    turns
}

/// Splits the blocks of an assistant message behind each group of consecutive results.
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

/// A message that is converted for a target dialect.
struct MessageScope<'a> {
    entry: usize,
    target: Dialect,
    dialect: Dialect,
    role: Role,
    raw: &'a str,
    /// Type of an item of `openai-responses` or `openai-agents`; empty in other dialects.
    item: &'a str,
    /// Whether the message has the role `tool` and no result part: its texts are results.
    is_bare_tool: bool,
    /// Whether the message is a `UIMessage` of the AI SDK, which no model takes.
    is_ui_message: bool,
}

impl<'a> MessageScope<'a> {
    fn is_target_dialect(&self) -> bool {
        self.dialect == self.target
    }

    fn native_text(&self) -> Option<&'a str> {
        (self.is_target_dialect() && !self.is_ui_message).then_some(self.raw)
    }

    /// Converts all parts, approvals apart.
    fn convert_blocks(&self, parts: &[Part]) -> (Vec<TurnBlock<'a>>, Vec<TurnApproval<'a>>) {
        let read: Vec<Read> = if self.dialect == Dialect::Lcm {
            let whole = |part: &Part| match part {
                Part::Other { value } => *value,
                _ => ByteSpan::default(),
            };
            parts.iter().map(|part| Read { part: part.clone(), whole: whole(part) }).collect()
        } else {
            message::read_blocks(self.dialect, self.raw)
        };
        let mut approvals = Vec::new();
        let convert = |read: &Read| match self.read_approval(read) {
            Some(approval) => {
                approvals.push(approval);
                None
            }
            None => self.convert_block(read),
        };
        (read.iter().filter_map(convert).collect(), approvals)
    }

    fn convert_block(&self, read: &Read) -> Option<TurnBlock<'a>> {
        let whole = json::slice_span(self.raw, read.whole);
        let native = self
            .is_target_dialect()
            .then_some(whole)
            .filter(|_| has_valid_id_type(self.raw, &read.part));
        let body = match &read.part {
            _ if self.item == "reasoning" => BlockBody::Thought,
            // The text of a `tool` message without a result part is the result.
            Part::Text { text } if self.is_bare_tool => {
                BlockBody::Answer(self.build_answer(None, None, Some(*text), false))
            }
            Part::Text { text } => BlockBody::Text(json::text(self.raw, *text)),
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
        // An unknown part of a `UIMessage` has no place in a message for a model.
        let is_foreign = self.is_ui_message && matches!(body, BlockBody::Other(_));
        Some(TurnBlock { body, native: native.filter(|_| !is_foreign) })
    }

    fn text(&self, span: Option<ByteSpan>) -> Cow<'a, str> {
        span.map_or(Cow::Borrowed(""), |span| json::text(self.raw, span))
    }

    fn raw_value(&self, span: Option<ByteSpan>) -> &'a str {
        span.map_or("", |span| json::slice_span(self.raw, span))
    }

    fn build_answer(
        &self,
        given_id: Option<Cow<'a, str>>,
        name: Option<ByteSpan>,
        output: Option<ByteSpan>,
        is_error: bool,
    ) -> TurnAnswer<'a> {
        let (name, output) = (self.text(name), self.raw_value(output));
        let (entry, id, native, has_lost_media) = (self.entry, String::new(), None, false);
        TurnAnswer { entry, given_id, id, name, output, is_error, native, has_lost_media }
    }

    /// Reads the approval in a block; `None`: the block has none.
    fn read_approval(&self, read: &Read) -> Option<TurnApproval<'a>> {
        if self.dialect != Dialect::AiSdk || !matches!(read.part, Part::Other { .. }) {
            return None;
        }
        let block = json::slice_span(self.raw, read.whole);
        let object = JsonObject::new(block, json::parse_object(block).ok()?);
        let approval = message::find_approval(&object)?;
        let call_id = approval.call_id.map(|id| json::text(block, id));
        Some(TurnApproval {
            entry: self.entry,
            id: json::text(block, approval.id),
            call_id: call_id.unwrap_or_default(),
            is_approved: approval.is_approved,
            reason: approval.reason.map_or("", |reason| json::slice_span(block, reason)),
        })
    }

    /// Returns whether a block is a Gemini function response with media in addition to its output.
    fn has_media(&self, whole: ByteSpan) -> bool {
        let value = JsonValue { span: whole, kind: json::kind(self.raw, whole) };
        self.dialect == Dialect::Gemini
            && JsonObject::from_value(self.raw, value)
                .and_then(|part| {
                    message::get_object_either(&part, "functionResponse", "function_response")
                })
                .is_some_and(|response| !response.get_list("parts").is_empty())
    }

    /// Returns the id of a server tool block; empty: absent. `None`: the host answers the call, or
    /// the target is another dialect.
    fn server_tool_id(&self, whole: ByteSpan, is_result: bool) -> Option<Cow<'a, str>> {
        if !self.is_target_dialect() {
            return None;
        }
        let block =
            JsonObject::from_value(self.raw, JsonValue { span: whole, kind: JsonKind::Object })?;
        let (is_server_tool, key) = match self.dialect {
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
            Dialect::Langchain => (
                block.get_text("type").starts_with("server_tool_"),
                if is_result { "tool_call_id" } else { "id" },
            ),
            // An assistant's result in a message for a model is of a tool that the provider runs.
            Dialect::AiSdk if is_result => {
                (self.role == Role::Assistant && !self.is_ui_message, "toolCallId")
            }
            Dialect::AiSdk => {
                (block.get_bool("providerExecuted") && !self.is_ui_message, "toolCallId")
            }
            Dialect::OpenaiAgents => (block.get_text("type") == "hosted_tool_call", "id"),
            _ => (false, ""),
        };
        is_server_tool.then(|| block.get_text(key))
    }

    /// Returns whether the item is a call that the host answers.
    fn is_host_call(&self) -> bool {
        message::HOST_CALLS.contains(&self.item)
    }

    /// Returns the type of a block; empty without one.
    fn block_type(&self, whole: ByteSpan) -> Cow<'a, str> {
        let value = JsonValue { span: whole, kind: json::kind(self.raw, whole) };
        JsonObject::from_value(self.raw, value)
            .map_or(Cow::Borrowed(""), |block| block.get_text("type"))
    }
}

/// Returns the id of the call or program of the provider that made a call; `None`: the model itself
/// made the call.
pub(super) fn caller_id(call: &str) -> Option<String> {
    let call = JsonObject::new(call, json::parse_object(call).unwrap_or_default());
    let caller = call.get_object("caller")?;
    let id = |key| Some(caller.get_text(key).into_owned()).filter(|id| !id.is_empty());
    id("tool_id").or_else(|| id("caller_id"))
}

/// Returns whether the id of a call or result is a string or absent; true for other parts. A host
/// may write a number, which no provider accepts.
fn has_valid_id_type(raw: &str, part: &Part) -> bool {
    match part {
        Part::ToolCall { id: Some(id), .. } | Part::ToolResult { call_id: Some(id), .. } => {
            json::kind(raw, *id) == JsonKind::String
        }
        _ => true,
    }
}

impl TurnAnswer<'_> {
    /// Returns whether a tool returned the result: false for the placeholder of a missing result,
    /// which an earlier assembly wrote and the host appended.
    pub(super) fn is_real(&self) -> bool {
        // Another dialect may have written the placeholder with a few characters around. A much
        // longer output only quotes it.
        self.output.len() > 2 * MISSING.len() || !self.output.contains(MISSING)
    }
}

macro_rules! missing {
    () => {
        "[the result of this call is missing]"
    };
}
/// Text of the placeholder for a missing result.
pub(super) const MISSING: &str = missing!();
/// JSON of the text of the placeholder for a missing result.
pub(super) const MISSING_JSON: &str = concat!("\"", missing!(), "\"");
