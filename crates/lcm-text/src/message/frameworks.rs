//! Reads messages of agent frameworks: the AI SDK of Vercel, `OpenClaw` with the Pi agent,
//! `LangChain`, and `OpenAI` Agents for JavaScript.
//!
//! In: the JSON text of one message. Out: its projection. One reader reads all four: a table for
//! each dialect says which types of blocks there are and in which member the content of each
//! stands. Undocumented blocks become [`Part::Other`]; only a missing or unknown role is an error.
//!
//! A message can hold several messages of a provider: in a `UIMessage`, a call holds its result.
//! These results of a step follow all other parts of the step, as the SDK itself writes them.
//!
//! The forms were read in the packages on 2026-11-28: `ai` 5.0.277, 6.0.326 and 7.0.173,
//! `@mariozechner/pi-ai` and `pi-coding-agent` 0.73.1, `langchain-core` 1.8.3, `@langchain/core`
//! 1.4.0, `@openai/agents-core` 0.20.0.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    },
    message::{
        blocks::{self, JsonObject, MessageBlock, RoleNames},
        parsed_message::{MessageReading, ParsedMessage},
        part::{Part, Role},
    },
    types::api::Dialect,
};

/// Most parts of one message; one more covers the rest.
const LISTED_MAX: usize = 1_022;

/// Kind of the blocks of a type.
#[derive(Clone, Copy, Eq, PartialEq)]
enum BlockKind {
    Text,
    Reasoning,
    /// A tool call; one with an output is also the result.
    Call,
    Result,
    File,
    /// A person's answer to a call that asked for approval.
    Approval,
    /// A block that no model is shown, such as the start of a step.
    Silent,
}

use BlockKind::{Approval, Call, File, Reasoning, Silent, Text};

/// Types of blocks, their kind, and the members in which their content can stand, all separated by
/// blanks; the first member that is present counts.
type BlockTable = &'static [(&'static str, BlockKind, &'static str)];

const AI_SDK: BlockTable = &[
    ("text", Text, "text"),
    ("reasoning", Reasoning, "text"),
    ("tool-call dynamic-tool tool-invocation", Call, CALL_INPUTS),
    ("tool-result", BlockKind::Result, "output result"),
    ("file image", File, ""),
    ("step-start source-url source-document source tool-approval-request", Silent, ""),
    ("tool-approval-response", Approval, ""),
];

/// Messages of Droid, in the same session files, have the blocks of Anthropic.
const OPEN_CLAW: BlockTable = &[
    ("text", Text, "text"),
    ("thinking", Reasoning, "thinking"),
    ("toolCall tool_use", Call, "arguments input"),
    ("tool_result", BlockKind::Result, "content"),
    ("image", File, ""),
];

const LANG_CHAIN: BlockTable = &[
    ("text input_text output_text text-plain", Text, "text"),
    ("refusal", Text, "refusal"),
    ("thinking reasoning", Reasoning, "thinking reasoning"),
    ("tool_use function_call server_tool_call", Call, "args input arguments"),
    ("server_tool_result", BlockKind::Result, "output"),
    ("image_url image file audio video", File, ""),
];

const OPENAI_AGENTS: BlockTable = &[
    ("input_text output_text text", Text, "text"),
    ("refusal", Text, "refusal"),
    ("input_image input_file image audio", File, ""),
    ("function_call hosted_tool_call", Call, "arguments"),
    ("computer_call shell_call apply_patch_call", Call, "action actions operation"),
    ("function_call_result function_call_output computer_call_result", BlockKind::Result, "output"),
    ("shell_call_output apply_patch_call_output", BlockKind::Result, "output"),
];

/// Members of a call with its arguments in the AI SDK; those of a call that failed can be raw.
const CALL_INPUTS: &str = "input rawInput args";
/// Members with the id of a call; the first that is present counts.
const CALL_IDS: &str = "toolCallId callId call_id tool_call_id tool_use_id id";
/// Members with the output that a call holds.
const HELD_OUTPUTS: &str = "output result errorText";
/// Members with the data of a file or its URL, or with an object that has the data.
const FILE_DATA: &str = "data url base64 image file image_url source audio";
const FILE_TYPES: &str = "mediaType mimeType mime_type media_type";

const AI_SDK_ROLES: RoleNames = &[
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
    ("tool", Role::Tool),
];

const OPEN_CLAW_ROLES: RoleNames = &[
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("toolResult", Role::Tool),
    ("system", Role::System),
    ("custom", Role::User),
    ("hookMessage", Role::User),
    ("bashExecution", Role::User),
    ("branchSummary", Role::User),
    ("compactionSummary", Role::User),
];

/// Types of messages, and names of classes in small letters, without `Message` and `Chunk` at the
/// end.
const LANG_CHAIN_ROLES: RoleNames = &[
    ("human", Role::User),
    ("user", Role::User),
    ("ai", Role::Assistant),
    ("assistant", Role::Assistant),
    ("system", Role::System),
    ("developer", Role::System),
    ("tool", Role::Tool),
    ("function", Role::Tool),
];

/// Roles of `OpenClaw` whose text no person wrote.
pub(super) const WRITTEN_ROLES: [&str; 5] =
    ["custom", "hookMessage", "bashExecution", "branchSummary", "compactionSummary"];

/// Parses one message.
pub(super) fn read(dialect: Dialect, raw: &str) -> Result<ParsedMessage> {
    let outer = JsonObject::new(raw, json::parse_object(raw)?);
    let reader = ShapeReader::open(dialect, raw, outer);
    let role = match reader.role {
        Some(role) => role,
        None => blocks::read_role(&reader.message, dialect, reader.role_names())?,
    };
    let members = reader.list_members();
    let mut found = reader.read_blocks();
    if found.len() > LISTED_MAX {
        let rest = found.split_off(LISTED_MAX);
        let start = rest.iter().map(|block| block.whole.start).min().unwrap_or_default();
        let end = |block: &MessageBlock| block.whole.start.saturating_add(block.whole.length);
        let end = rest.iter().map(end).max().unwrap_or_default();
        let value = ByteSpan { start, length: end.saturating_sub(start) };
        found.push(MessageBlock { part: Part::Other { value }, whole: value });
    }
    let parts: Vec<Part> = found.into_iter().map(|block| block.part).collect();
    let role = blocks::tool_role(role, &parts);
    let (members, has_more) = (&members, false);
    Ok(MessageReading { dialect, raw, members, role, parts, has_more }.into_message())
}

/// Returns all parts of a stored message with their JSON values, without a limit on their number.
pub(super) fn read_blocks(dialect: Dialect, raw: &str) -> Vec<MessageBlock> {
    let outer = JsonObject::new(raw, json::parse_object(raw).unwrap_or_default());
    ShapeReader::open(dialect, raw, outer).read_blocks()
}

/// Returns whether a message has a member that only its dialect has.
pub(super) fn is_marked(message: &ParsedMessage, raw: &str) -> bool {
    let mark = match message.dialect {
        Dialect::Openclaw => "\"stopReason\"",
        Dialect::Langchain => "\"additional_kwargs\"",
        Dialect::OpenaiAgents => "\"providerData\"",
        _ => "\"providerOptions\"",
    };
    raw.contains(mark)
}

/// Returns whether a message with files can be one of `OpenAI`, whose blocks of files are also in
/// this dialect.
pub(super) fn shares_files(message: &ParsedMessage, raw: &str) -> bool {
    matches!(message.dialect, Dialect::Langchain | Dialect::OpenaiAgents)
        && json::parse_object(raw)
            .is_ok_and(|members| json::find_member(&members, raw, "role").is_some())
}

/// Returns name, media type, and data or URL of the file in a block of a framework or of the Model
/// Context Protocol; `None`: no file.
pub fn find_media(
    block: &JsonObject<'_>,
) -> Option<(Option<ByteSpan>, Option<ByteSpan>, ByteSpan)> {
    let strings = |object: &JsonObject<'_>, keys: &str| {
        keys.split(' ').find_map(|key| object.get_string(key)).filter(|span| span.length > 2)
    };
    let inner = FILE_DATA.split(' ').find_map(|key| block.get_object(key));
    let mut holders = [Some(block), inner.as_ref()].into_iter().flatten();
    let data = holders.clone().find_map(|object| strings(object, FILE_DATA))?;
    let mime = holders.find_map(|object| strings(object, FILE_TYPES));
    let kind = block.get_text("type");
    let is_named = ["file", "image", "screenshot"].iter().any(|word| kind.contains(word));
    // An object of a tool can have a member `data`, too.
    (is_named || mime.is_some()).then_some((strings(block, "filename name title"), mime, data))
}

/// A person's answer to a call of the AI SDK that asked for approval.
#[derive(Debug)]
pub struct ToolApproval {
    /// Id of the request.
    pub id: ByteSpan,
    /// Id of the call; `None`: only the request tells it.
    pub call_id: Option<ByteSpan>,
    /// Whether the person allows the call.
    pub is_approved: bool,
    /// Reason of the person; `None`: there is none.
    pub reason: Option<ByteSpan>,
}

/// Returns the approval in a part of a `UIMessage`, or the approval that a block is; `None`: the
/// block has no approval, or nobody answered yet.
pub fn find_approval(block: &JsonObject<'_>) -> Option<ToolApproval> {
    let held = block.get_object("approval");
    let approval = held.as_ref().unwrap_or(block);
    let key = if held.is_some() { "id" } else { "approvalId" };
    let is_answered = approval.get_value("approved").is_some();
    Some(ToolApproval {
        id: approval.get_string(key).filter(|_| is_answered)?,
        call_id: block.get_string("toolCallId"),
        is_approved: approval.get_bool("approved"),
        reason: approval.get_string("reason"),
    })
}

/// Returns the id of the call for which a message for a model requests an approval; `None`: it does
/// not request this one.
pub fn find_approval_request(message: &str, approval_id: &str) -> Option<String> {
    let object = JsonObject::new(message, json::parse_object(message).ok()?);
    object.get_list("content").into_iter().find_map(|value| {
        let block = JsonObject::from_value(message, value)?;
        let is_asked = block.get_text("type") == "tool-approval-request"
            && block.get_text("approvalId") == approval_id;
        is_asked.then(|| block.get_text("toolCallId").into_owned())
    })
}

/// A message whose blocks are read.
struct ShapeReader<'a> {
    dialect: Dialect,
    raw: &'a str,
    /// The members beside the message, in a form that wraps the message in an object.
    outer: Vec<JsonMember>,
    message: JsonObject<'a>,
    /// `None`: missing or unknown.
    role: Option<Role>,
    found: Vec<MessageBlock>,
    /// Results that calls of the step hold; they follow its other blocks.
    results: Vec<MessageBlock>,
}

impl<'a> ShapeReader<'a> {
    fn open(dialect: Dialect, raw: &'a str, outer: JsonObject<'a>) -> Self {
        let kind = outer.get_text("type");
        let wrapped = ["data", "kwargs"].iter().find_map(|key| outer.get_object(key));
        let (found, results) = (Vec::new(), Vec::new());
        let mut reader =
            Self { dialect, raw, outer: Vec::new(), message: outer, role: None, found, results };
        let mut word = reader.message.get_text("role");
        match dialect {
            Dialect::Langchain => {
                if let Some(class) = reader.message.get_list("id").last() {
                    word = json::text(raw, class.span);
                } else if !kind.is_empty() {
                    word = kind;
                }
                if let Some(message) = wrapped {
                    reader.outer = core::mem::replace(&mut reader.message, message).members;
                }
                let name = word.strip_suffix("Chunk").unwrap_or(&word);
                let name = name.strip_suffix("Message").unwrap_or(name);
                let mut role = Cow::from(name.to_ascii_lowercase());
                if role == "chat" {
                    role = reader.message.get_text("role");
                }
                reader.role = find_name(LANG_CHAIN_ROLES, &role);
            }
            Dialect::OpenaiAgents if !matches!(&*kind, "" | "message") => {
                let is_result = kind.ends_with("_result") || kind.ends_with("_output");
                reader.role = Some(if is_result { Role::Tool } else { Role::Assistant });
            }
            _ => reader.role = find_name(reader.role_names(), &word),
        }
        reader
    }

    const fn role_names(&self) -> RoleNames {
        match self.dialect {
            Dialect::Openclaw => OPEN_CLAW_ROLES,
            Dialect::Langchain => LANG_CHAIN_ROLES,
            _ => AI_SDK_ROLES,
        }
    }

    /// Returns all members; of equal keys, those of the message itself are last.
    fn list_members(&self) -> Vec<JsonMember> {
        let key = |member: &JsonMember| json::text(self.raw, member.key);
        let is_beside = |member: &&JsonMember| !matches!(&*key(member), "data" | "kwargs");
        self.outer.iter().filter(is_beside).chain(&self.message.members).copied().collect()
    }

    fn read_blocks(mut self) -> Vec<MessageBlock> {
        let trimmed = self.raw.trim_start();
        let start = self.raw.len() - trimmed.len();
        let span = ByteSpan::from_range(start, start + trimmed.trim_end().len());
        let whole = JsonValue { span, kind: JsonKind::Object };
        let message = JsonObject::new(self.raw, self.message.members.clone());
        match self.dialect {
            Dialect::OpenaiAgents if !matches!(&*message.get_text("type"), "" | "message") => {
                self.read_item(whole, &message);
            }
            Dialect::Openclaw | Dialect::Langchain if self.role == Some(Role::Tool) => {
                self.push_result(span, &message, message.get_value("content"));
            }
            _ => self.read_message(&message),
        }
        self.found.append(&mut self.results);
        self.found
    }

    /// Reads an item that is one block, or reasoning.
    fn read_item(&mut self, whole: JsonValue, item: &JsonObject<'_>) {
        if item.get_text("type") == "reasoning" {
            for key in ["content", "summary", "rawContent"] {
                for value in item.get_list(key) {
                    let piece = JsonObject::from_value(self.raw, value);
                    if let Some(text) = piece.and_then(|piece| piece.get_string("text")) {
                        self.push_part(value.span, Part::Reasoning { text });
                    }
                }
            }
            if !self.found.is_empty() {
                return;
            }
        }
        self.push_block(whole, false);
    }

    fn read_message(&mut self, message: &JsonObject<'_>) {
        // What a person keeps from the model is read like reasoning, which no other model gets.
        let is_kept = message.get_bool("excludeFromContext");
        let more = message.get_object("additional_kwargs");
        let thought = more.as_ref().and_then(|more| more.get_string("reasoning_content"));
        if let Some(text) = thought.filter(|text| text.length > 2) {
            self.push_part(text, Part::Reasoning { text });
        }
        let mut calls: Vec<JsonValue> = ["tool_calls", "invalid_tool_calls"]
            .iter()
            .filter(|_| self.dialect == Dialect::Langchain)
            .flat_map(|key| message.get_list(key))
            .collect();
        // Messages of older versions have their calls in the form of Chat Completions only.
        if calls.is_empty() {
            calls = more.map_or_else(Vec::new, |more| more.get_list("tool_calls"));
        }
        let key = if message.get_list("parts").is_empty() { "content" } else { "parts" };
        for key in [key, "command", "output", "summary"] {
            let Some(content) = message.get_field(key) else { continue };
            let (text, value) = (content.value, content.value);
            match content.kind {
                JsonKind::String if is_kept => self.push_part(text, Part::Reasoning { text }),
                JsonKind::String => self.push_part(text, Part::Text { text }),
                JsonKind::Array => {
                    for value in json::list_elements(self.raw, content.value) {
                        self.push_block(value, !calls.is_empty());
                    }
                }
                _ => self.push_part(value, Part::Other { value }),
            }
        }
        for call in calls {
            let object = JsonObject::from_value(self.raw, call);
            let function = object.as_ref().and_then(|object| object.get_object("function"));
            match object {
                Some(object) if object.get_string("name").is_some() => {
                    self.push_call(call.span, &object, object.get_value("args"));
                }
                Some(object) if let Some(function) = function => {
                    let name = function.get_string("name");
                    let (id, input) = (find_id(&object), function.get_value("arguments"));
                    self.push_part(call.span, Part::ToolCall { id, name, input });
                }
                _ => self.push_part(call.span, Part::Other { value: call.span }),
            }
        }
    }

    fn push_part(&mut self, whole: ByteSpan, part: Part) {
        self.found.push(MessageBlock { part, whole });
    }

    /// Adds the parts of a block; `has_calls`: the message has its calls beside its content.
    fn push_block(&mut self, value: JsonValue, has_calls: bool) {
        let whole = value.span;
        let other = Part::Other { value: whole };
        let Some(block) = JsonObject::from_value(self.raw, value) else {
            return self.push_part(whole, other);
        };
        let kind = block.get_text("type");
        if kind == "step-start" {
            self.found.append(&mut self.results);
        }
        // The model did not end this call. The SDK leaves it out, too.
        if block.get_text("state") == "input-streaming" {
            return;
        }
        // The standard form repeats the calls of a message in its content.
        if has_calls && kind == "tool_call" {
            return;
        }
        let Some((row_kind, keys)) = self.find_kind(&kind) else {
            return self.push_part(whole, other);
        };
        let content = find_value(&block, keys);
        let text = content.filter(|text| json::kind(self.raw, *text) == JsonKind::String);
        match (row_kind, text) {
            (Text, Some(text)) => self.push_part(whole, Part::Text { text }),
            (Reasoning, Some(text)) => self.push_part(whole, Part::Reasoning { text }),
            (File, _) => {
                let source = block.get_object("source");
                let is_linked = source.is_some_and(|source| source.get_text("type") == "url");
                let file = find_media(&block).filter(|(_, _, data)| {
                    // A link has no data to show.
                    !is_linked && !json::slice_span(self.raw, *data).starts_with("\"http")
                });
                self.push_part(
                    whole,
                    file.map_or(other, |(name, mime, data)| Part::File {
                        name,
                        mime,
                        text: None,
                        data: Some(data),
                    }),
                );
            }
            (Call, _) if !has_calls => {
                let held = block.get_object("toolInvocation");
                let call = held.as_ref().unwrap_or(&block);
                self.push_call(whole, call, content.or_else(|| find_value(call, keys)));
            }
            (BlockKind::Result, _) => self.push_result(whole, &block, content),
            (Call | Silent, _) => {}
            (Text | Reasoning, None) | (Approval, _) => self.push_part(whole, other),
        }
    }

    /// Returns the kind of the blocks of a type, and the members that can have their content;
    /// `None`: an unknown type.
    fn find_kind(&self, kind: &str) -> Option<(BlockKind, &'static str)> {
        let table = match self.dialect {
            Dialect::Openclaw => OPEN_CLAW,
            Dialect::Langchain => LANG_CHAIN,
            Dialect::OpenaiAgents => OPENAI_AGENTS,
            _ => AI_SDK,
        };
        let row = table.iter().find(|(types, ..)| types.split(' ').any(|known| known == kind));
        // A part of a `UIMessage` has the name of its tool or of its data in its type.
        let by_prefix =
            || match kind.split_once('-').filter(|_| self.message.get_value("parts").is_some()) {
                _ if self.dialect != Dialect::AiSdk => None,
                Some(("tool", _)) => Some((Call, CALL_INPUTS)),
                Some(("data", _)) => Some((Silent, "")),
                _ => None,
            };
        row.map(|(_, kind, keys)| (*kind, *keys)).or_else(by_prefix)
    }

    fn push_call(&mut self, whole: ByteSpan, call: &JsonObject<'_>, input: Option<ByteSpan>) {
        let name = self.find_name(call);
        self.push_part(whole, Part::ToolCall { id: find_id(call), name, input });
        if let Some(value) = call.get_value("approval").filter(|_| find_approval(call).is_some()) {
            self.push_part(whole, Part::Other { value });
        }
        let state = call.get_text("state");
        // The tool still works: this says how far it is, and is no output.
        if call.get_bool("preliminary") {
            return;
        }
        let denied = call.get_object("approval").and_then(|approval| approval.get_value("reason"));
        let denied = denied.or(call.get_value("state")).filter(|_| state == "output-denied");
        // An item of a provider's tool may have no output, because the model's answer has it.
        let is_hosted = call.get_text("type") == "hosted_tool_call";
        let status = call.get_value("status").filter(|_| is_hosted);
        let output = find_value(call, HELD_OUTPUTS).or(denied).or(status);
        // A tool can return `null`.
        if output.is_some() || state == "output-available" {
            let is_failed = output.is_some() && output == call.get_value("errorText");
            let (call_id, is_error) = (find_id(call), denied.is_some() || is_failed);
            let part = Part::ToolResult { call_id, name, output, is_error };
            self.results.push(MessageBlock { part, whole });
        }
    }

    /// Returns the name of a tool: a member, the type of an item, or the end of the type of a part.
    fn find_name(&self, call: &JsonObject<'_>) -> Option<ByteSpan> {
        let type_name = || {
            let kind = call.get_string("type")?;
            let word = json::slice_span(self.raw, kind);
            if self.dialect == Dialect::OpenaiAgents && word.ends_with("_call\"") {
                return Some(kind);
            }
            let name = word.strip_prefix("\"tool-")?.strip_suffix('"')?;
            let length = u32::try_from(name.len()).ok()?;
            Some(ByteSpan { start: kind.start.saturating_add(6), length })
        };
        call.get_string("toolName").or_else(|| call.get_string("name")).or_else(type_name)
    }

    fn push_result(&mut self, whole: ByteSpan, result: &JsonObject<'_>, content: Option<ByteSpan>) {
        let (mut output, mut is_error) = (content, false);
        // The output of a result has a type beside its value.
        let typed = ["output", "result"].iter().find_map(|key| result.get_object(key));
        if let Some(typed) = typed.filter(|_| self.dialect != Dialect::Langchain) {
            let kind = typed.get_text("type");
            is_error = kind.starts_with("error") || kind == "execution-denied";
            let value = typed.get_value("value").or_else(|| typed.get_value("reason"));
            let text = typed.get_value("text").filter(|_| kind == "text");
            output = value.filter(|_| !kind.is_empty()).or(text).or(output);
        }
        is_error |= result.get_bool("isError")
            || result.get_bool("is_error")
            || result.get_text("status") == "error";
        let (call_id, name) = (find_id(result), self.find_name(result));
        self.push_part(whole, Part::ToolResult { call_id, name, output, is_error });
    }
}

/// Returns the first value among members that are separated by blanks.
fn find_value(object: &JsonObject<'_>, keys: &str) -> Option<ByteSpan> {
    keys.split(' ').find_map(|key| object.get_value(key))
}

fn find_id(object: &JsonObject<'_>) -> Option<ByteSpan> {
    CALL_IDS.split(' ').find_map(|key| object.get_id(key))
}

fn find_name(names: RoleNames, word: &str) -> Option<Role> {
    names.iter().find(|(name, _)| *name == word).map(|(_, role)| *role)
}
