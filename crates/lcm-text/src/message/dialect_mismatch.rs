//! Detects messages that are in another dialect than the declared dialect.
//!
//! In: the members of a message and the parts that the reader of the declared dialect found. Out: a
//! [`DialectMismatch`] with the dialect that the message resembles. Only values that the reader did
//! not understand are examined, so an ordinary message costs a few key comparisons. Two cases are
//! no mismatch: an unknown part in a message that otherwise has the form of its dialect, and a
//! message without content. `lcm-core` stores the message anyway and returns a warning.

use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonMember, JsonScanner, JsonTokenKind},
    message::{
        part::{Part, Role},
        provider_limits,
    },
    types::api::Dialect,
};

/// Most parts, of those that the reader did not understand, that are examined for another dialect.
const PARTS_MAX: usize = 16;

/// Part types that identify a dialect. `tool_result` is a type of two dialects: it identifies `lcm`
/// if the part has `call_id` or `output`, else Anthropic.
const TYPE_DIALECTS: [(&str, Dialect); 13] = [
    ("tool_use", Dialect::Anthropic),
    ("tool_result", Dialect::Anthropic),
    ("server_tool_use", Dialect::Anthropic),
    ("mcp_tool_use", Dialect::Anthropic),
    ("mcp_tool_result", Dialect::Anthropic),
    ("image", Dialect::Anthropic),
    ("document", Dialect::Anthropic),
    ("image_url", Dialect::OpenaiChat),
    ("input_text", Dialect::OpenaiResponses),
    ("output_text", Dialect::OpenaiResponses),
    ("input_image", Dialect::OpenaiResponses),
    ("input_file", Dialect::OpenaiResponses),
    ("tool_call", Dialect::Lcm),
];

/// Types of parts that are calls or results of tools.
const TOOL_TYPES: [&str; 6] =
    ["tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "tool_call"];

/// Keys with which agent frameworks name the call of a part, and no provider does: `ai-sdk`
/// (`toolCallId`), `openai-agents` (`callId`), Pydantic AI 1 and LlamaIndex 0.14 (`tool_call_id`,
/// which at OpenAI is a member of the message). The last two, which have no dialect, were read in
/// their packages on 2026-11-26.
const FOREIGN_CALL_KEYS: [&str; 3] = ["toolCallId", "callId", "tool_call_id"];

/// The finding that a message is probably not in its declared dialect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DialectMismatch {
    /// The dialect that the message resembles; `None`: no dialect is recognised.
    pub looks_like: Option<Dialect>,
    /// Whether the declared dialect loses a tool call or a result of the message. `looks_like` is
    /// then a dialect that reads the lost part; `None`: no dialect reads the part.
    pub loses_tools: bool,
}

/// A message as the reader of its declared dialect understood it.
pub(super) struct DialectReading<'a> {
    pub(super) dialect: Dialect,
    pub(super) raw: &'a str,
    pub(super) members: &'a [JsonMember],
    pub(super) role: Role,
    pub(super) parts: &'a [Part],
}

impl DialectReading<'_> {
    /// Returns the finding that the message is in another dialect; `None`: no finding.
    pub(super) fn find_mismatch(&self) -> Option<DialectMismatch> {
        let is_empty = |part: &&Part| match part {
            Part::Other { value } => json::slice_span(self.raw, *value) == "null",
            Part::ToolResult { output, .. } => output.is_none(),
            _ => false,
        };
        let has_unread = self.parts.iter().all(|part| is_empty(&part));
        let lost = self
            .find_outside_content()
            .or_else(|| self.parts.iter().find_map(|part| self.find_lost_tool(part)))
            .or_else(|| has_unread.then(|| self.find_lost_in_unread()).flatten());
        let is_framework = self.dialect.is_framework();
        let is_agents = self.dialect == Dialect::OpenaiAgents;
        if lost.is_some()
            || self.has_foreign_call()
            // An item of a new type can have the id of a call, and stays whole.
            || (!is_agents && self.has_foreign_part())
        {
            return Some(DialectMismatch { looks_like: lost, loses_tools: true });
        }
        if is_framework {
            return None;
        }
        let looks_like = self.find_in_parts();
        if looks_like.is_some() {
            return Some(DialectMismatch { looks_like, loses_tools: false });
        }
        if has_unread {
            return self.find_unread_content();
        }
        if self.dialect == Dialect::Gemini && self.is_unlike_gemini() {
            return Some(DialectMismatch { looks_like: None, loses_tools: false });
        }
        let has_form =
            || self.parts.iter().find_map(|part| self.has_dialect_form(part)).unwrap_or(true);
        let is_other = |part: &Part| matches!(part, Part::Other { .. });
        (self.parts.iter().all(is_other) && !has_form())
            .then_some(DialectMismatch { looks_like: None, loses_tools: false })
    }

    /// Returns the member `key`; `None`: absent, `null`, or an empty string, array or object.
    fn find_filled(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(self.members, self.raw, key).filter(|member| match member.kind {
            JsonKind::Null => false,
            JsonKind::String => member.value.length > 2,
            JsonKind::Array | JsonKind::Object => {
                let text = json::slice_span(self.raw, member.value);
                let inner = text.get(1..text.len().saturating_sub(1));
                inner.is_some_and(|inner| !inner.trim().is_empty())
            }
            JsonKind::Number | JsonKind::Bool => true,
        })
    }

    /// Returns [`Dialect::OpenaiChat`] if the message has `tool_calls`, `function_call` or
    /// `tool_call_id` outside its content, where the declared dialect has no calls or results; else
    /// `None`.
    fn find_outside_content(&self) -> Option<Dialect> {
        let is_call = |part: &Part| matches!(part, Part::ToolCall { .. });
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        let has_kind = |key, kind| self.find_filled(key).is_some_and(|member| member.kind == kind);
        let has_calls = self.dialect != Dialect::OpenaiChat
            && (has_kind("tool_calls", JsonKind::Array)
                || has_kind("function_call", JsonKind::Object))
            && !self.parts.iter().any(is_call);
        let is_answer = self.dialect == Dialect::Lcm
            && self.role == Role::Tool
            && self.find_filled("tool_call_id").is_some()
            && !self.parts.iter().any(is_result);
        (has_calls || is_answer).then_some(Dialect::OpenaiChat)
    }

    /// Returns whether the message has a call or a result in the form of an agent framework, which
    /// its dialect does not read.
    fn has_foreign_call(&self) -> bool {
        let has_call_id = |part: &Part| {
            matches!(
                part,
                Part::ToolCall { id: Some(_), .. } | Part::ToolResult { call_id: Some(_), .. }
            )
        };
        let is_named = ["toolCallId", "callId"]
            .iter()
            .filter_map(|key| self.find_filled(key))
            .any(|member| member.kind == JsonKind::String)
            && self.dialect != Dialect::OpenaiAgents;
        let unread = self.find_filled(self.unread_list_key());
        // SDKs that name members in camelCase have the calls of an answer beside its content.
        let has_calls =
            self.find_filled("toolCalls").is_some_and(|member| member.kind == JsonKind::Array);
        ((is_named || has_calls) && !self.parts.iter().any(has_call_id))
            || [self.find_foreign_list(), unread.filter(|_| !self.dialect.is_framework())]
                .into_iter()
                .flatten()
                .any(|list| list.kind == JsonKind::Array && self.is_foreign_list(list.value))
    }

    /// Returns whether a part that the reader did not understand is a call or a result in the form
    /// of an agent framework.
    fn has_foreign_part(&self) -> bool {
        self.parts.iter().any(|part| match *part {
            Part::Other { value } => PartShape::from_span(self.raw, value).is_foreign_tool,
            // Chat takes all of a tool's message as the output of the call that the message names.
            Part::ToolResult { call_id: None, output: Some(output), .. } => {
                json::slice_span(self.raw, output).starts_with('[') && self.is_foreign_list(output)
            }
            _ => false,
        })
    }

    fn is_foreign_list(&self, list: ByteSpan) -> bool {
        let mut elements = json::list_elements(self.raw, list).into_iter();
        elements.any(|element| PartShape::from_span(self.raw, element.span).is_foreign_tool)
    }

    /// Returns the list in which a message of a framework has its content: an array of objects in a
    /// member that no dialect reads. `None`: no such member, or the message has no `role`, or has
    /// `content`, `parts` or `type`.
    fn find_foreign_list(&self) -> Option<&JsonMember> {
        let has = |key| json::find_member(self.members, self.raw, key).is_some();
        if !has("role") || ["content", "parts", "type"].into_iter().any(has) {
            return None;
        }
        let is_list = |member: &&JsonMember| {
            let key = json::slice_span(self.raw, member.key);
            member.kind == JsonKind::Array
                && !["\"tool_calls\"", "tool_calls"].contains(&key)
                && json::first_element(self.raw, member.value)
                    .is_some_and(|first| first.kind == JsonKind::Object)
        };
        self.members.iter().find(is_list)
    }

    /// Returns whether a message has neither a `role` nor a part with keys of Gemini. A content of
    /// Gemini has a `role`, or parts that are known.
    fn is_unlike_gemini(&self) -> bool {
        let is_unknown = |part: &Part| match *part {
            Part::Other { value } => PartShape::from_span(self.raw, value).dialect.is_none(),
            _ => false,
        };
        self.find_filled("role").is_none() && self.parts.iter().all(is_unknown)
    }

    /// Returns the dialect of a call or result that the reader did not understand; `None`: the part
    /// is understood, or is no call or result of another dialect.
    fn find_lost_tool(&self, part: &Part) -> Option<Dialect> {
        match *part {
            Part::Other { value } => PartShape::from_span(self.raw, value).lost_from(self.dialect),
            // `tool_result` is a type of two dialects. This part has no field of the declared
            // dialect.
            Part::ToolResult { call_id: None, output: None, name: None, .. } => {
                match self.dialect {
                    Dialect::Lcm => Some(Dialect::Anthropic),
                    Dialect::Anthropic => Some(Dialect::Lcm),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the dialect of the first call or result in the list in which another dialect has its
    /// content.
    fn find_lost_in_unread(&self) -> Option<Dialect> {
        let list = self.find_filled(self.unread_list_key())?;
        let mut elements = json::list_elements(self.raw, list.value).into_iter();
        elements.find_map(|element| {
            PartShape::from_span(self.raw, element.span).lost_from(self.dialect)
        })
    }

    /// Returns the member in which another dialect has its content.
    const fn unread_list_key(&self) -> &'static str {
        match self.dialect {
            Dialect::Lcm => "text",
            Dialect::Gemini => "content",
            _ => "parts",
        }
    }

    /// Examines the first [`PARTS_MAX`] parts that the reader did not understand, and returns the
    /// dialect of the first of them that identifies another dialect. `None`: none of them does.
    fn find_in_parts(&self) -> Option<Dialect> {
        let other = |part: &Part| match *part {
            Part::Other { value } => Some(PartShape::from_span(self.raw, value).dialect),
            Part::File { name: None, mime: None, text: None, data: None } => {
                Some(Some(Dialect::OpenaiChat))
            }
            _ => None,
        };
        let mut shapes = self.parts.iter().filter_map(other).take(PARTS_MAX).flatten();
        shapes.find(|dialect| *dialect != self.dialect)
    }

    /// Returns a mismatch if the message has content in a member of another dialect; `None`: no
    /// such member. The caller ensures that no part has content.
    fn find_unread_content(&self) -> Option<DialectMismatch> {
        if self.find_foreign_list().is_some() {
            return Some(DialectMismatch { looks_like: None, loses_tools: false });
        }
        let key = self.unread_list_key();
        let dialect_of_key = (key == "parts").then_some(Dialect::Lcm);
        let member = self.find_filled(key).or(self.find_filled("text"))?;
        let first = json::first_element(self.raw, member.value);
        let found = first.and_then(|value| PartShape::from_span(self.raw, value.span).dialect);
        let is_key = json::is_equal_text(self.raw, member.key, key);
        let looks_like = found.or(dialect_of_key.filter(|_| is_key));
        Some(DialectMismatch { looks_like, loses_tools: false })
    }

    /// Returns whether an unknown part has the general form of the declared dialect's parts.
    /// `None`: the part is known; or the dialect is of Anthropic or `OpenAI`, and the message has
    /// no `role` or no `content`.
    fn has_dialect_form(&self, part: &Part) -> Option<bool> {
        let Part::Other { value } = *part else { return None };
        let shape = PartShape::from_span(self.raw, value);
        match self.dialect {
            // The `lcm` dialect has a closed list of parts.
            Dialect::Lcm => Some(false),
            Dialect::Gemini => Some(shape.is_object),
            _ => {
                self.find_filled("role").and(self.find_filled("content"))?;
                Some(shape.is_typed)
            }
        }
    }
}

/// The form of a part, as its fields show.
struct PartShape {
    is_object: bool,
    /// Whether the part has a `type`.
    is_typed: bool,
    /// Whether the part is a call or a result of a tool.
    is_tool: bool,
    /// Whether the provider ran the tool.
    is_served: bool,
    /// Whether the part is a call or a result in the form of an agent framework.
    is_foreign_tool: bool,
    /// The dialect that the part's type or keys identify; `None`: unknown.
    dialect: Option<Dialect>,
}

impl PartShape {
    /// Reads the fields of a part, up to a `type` of a dialect other than `tool_result`.
    fn from_span(raw: &str, value: ByteSpan) -> Self {
        let value = json::slice_span(raw, value);
        let is_object = value.starts_with('{');
        let mut shape = Self {
            is_object,
            is_typed: false,
            is_tool: false,
            is_served: false,
            is_foreign_tool: false,
            dialect: None,
        };
        if !shape.is_object {
            return shape;
        }
        let mut scanner = JsonScanner::new(value);
        let (mut key, mut is_gemini, mut is_result, mut is_lcm) = ("", false, false, false);
        let mut is_gemini_tool = false;
        while let Ok(Some(token)) = scanner.next_token() {
            if token.depth != 1 || !matches!(token.kind, JsonTokenKind::Key | JsonTokenKind::String)
            {
                continue;
            }
            let text =
                value.get(token.start..token.end).and_then(json::string_body).unwrap_or_default();
            if token.kind == JsonTokenKind::Key {
                key = text;
                is_gemini_tool |= provider_limits::is_part_kind(key, true);
                is_gemini |= provider_limits::is_part_kind(key, false);
                is_lcm |= matches!(key, "call_id" | "output");
                shape.is_foreign_tool |= FOREIGN_CALL_KEYS.contains(&key);
            } else if key == "type" {
                shape.is_typed = true;
                is_result = text == "tool_result";
                shape.is_tool = TOOL_TYPES.contains(&text);
                shape.is_served = ["server_", "mcp_"].iter().any(|start| text.starts_with(start));
                shape.dialect = TYPE_DIALECTS
                    .iter()
                    .find(|(name, _)| *name == text)
                    .map(|(_, dialect)| *dialect);
                if !is_result && shape.dialect.is_some() {
                    return shape;
                }
            }
        }
        if is_result && is_lcm {
            shape.dialect = Some(Dialect::Lcm);
        } else if !shape.is_typed && (is_gemini || is_gemini_tool) {
            shape.dialect = Some(Dialect::Gemini);
            shape.is_tool = is_gemini_tool;
        }
        shape
    }

    /// Returns the dialect of a call or result that a reader of `declared` loses; `None`: nothing
    /// is lost.
    fn lost_from(&self, declared: Dialect) -> Option<Dialect> {
        // LangChain keeps calls that the provider ran, and their results, as they are.
        let is_kept = self.is_served && declared == Dialect::Langchain;
        self.dialect.filter(|dialect| self.is_tool && !is_kept && *dialect != declared)
    }
}
