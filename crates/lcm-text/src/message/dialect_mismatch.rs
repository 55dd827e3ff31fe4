//! Detects messages that are in another dialect than the declared dialect.
//!
//! In: the members of a message and the parts that the reader of the declared dialect found. Out: a
//! [`DialectMismatch`] with the dialect that the message resembles. Only values that the reader did
//! not understand are examined, so an ordinary message costs a few key comparisons. Two cases are
//! no mismatch: an unknown part in a message that otherwise has the form of its dialect, and a
//! message without content. `lcm-core` stores the message anyway and returns a warning.

use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonMember, JsonScanner, JsonTokenKind},
    message::part::{Part, Role},
    types::api::Dialect,
};

/// Most parts of one message that are examined, of those that the reader did not understand.
const PARTS_MAX: usize = 16;

/// Part types that identify a dialect. `tool_result` is a type of two dialects: it identifies `lcm`
/// if the part has `call_id` or `output`, else Anthropic.
const TYPE_DIALECTS: [(&str, Dialect); 10] = [
    ("tool_use", Dialect::Anthropic),
    ("tool_result", Dialect::Anthropic),
    ("image", Dialect::Anthropic),
    ("document", Dialect::Anthropic),
    ("image_url", Dialect::OpenaiChat),
    ("input_text", Dialect::OpenaiResponses),
    ("output_text", Dialect::OpenaiResponses),
    ("input_image", Dialect::OpenaiResponses),
    ("input_file", Dialect::OpenaiResponses),
    ("tool_call", Dialect::Lcm),
];

/// Keys of which any identifies a part without `type` as a Gemini part.
const GEMINI_KEYS: [&str; 8] = [
    "text",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "inlineData",
    "inline_data",
    "executableCode",
];

/// The finding that a message is probably not in its declared dialect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DialectMismatch {
    /// The dialect that the message resembles; `None`: no dialect is recognised.
    pub looks_like: Option<Dialect>,
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
        let looks_like = self.find_outside_content().or_else(|| self.find_in_parts());
        if looks_like.is_some() {
            return Some(DialectMismatch { looks_like });
        }
        if self.parts.iter().all(|part| is_empty(&part)) {
            return self.find_unread_content();
        }
        let has_form =
            || self.parts.iter().find_map(|part| self.has_dialect_form(part)).unwrap_or(true);
        let is_other = |part: &Part| matches!(part, Part::Other { .. });
        (self.parts.iter().all(is_other) && !has_form())
            .then_some(DialectMismatch { looks_like: None })
    }

    /// Returns the member `key`; `None`: absent, `null`, or an empty string, array or object.
    fn find_filled(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(self.members, self.raw, key).filter(|member| match member.kind {
            JsonKind::Null => false,
            // A value of two bytes is only a pair of brackets or quotes.
            JsonKind::String | JsonKind::Array | JsonKind::Object => member.value.length > 2,
            JsonKind::Number | JsonKind::Bool => true,
        })
    }

    /// Returns [`Dialect::OpenaiChat`] if the message has `tool_calls` or `tool_call_id` outside
    /// its content, where the declared dialect has no calls or results; else `None`.
    fn find_outside_content(&self) -> Option<Dialect> {
        let is_call = |part: &Part| matches!(part, Part::ToolCall { .. });
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        let has_calls = self.dialect != Dialect::OpenaiChat
            && self.find_filled("tool_calls").is_some_and(|calls| calls.kind == JsonKind::Array)
            && !self.parts.iter().any(is_call);
        let is_answer = self.dialect == Dialect::Lcm
            && self.role == Role::Tool
            && self.find_filled("tool_call_id").is_some()
            && !self.parts.iter().any(is_result);
        (has_calls || is_answer).then_some(Dialect::OpenaiChat)
    }

    /// Returns the dialect of the first part that belongs to another dialect; `None`: no such part.
    fn find_in_parts(&self) -> Option<Dialect> {
        let other = |part: &Part| match *part {
            Part::Other { value } => Some(PartShape::from_span(self.raw, value).dialect),
            // `tool_result` is a type of two dialects. This part has no field of the declared
            // dialect.
            Part::ToolResult { call_id: None, output: None, name: None, .. } => {
                match self.dialect {
                    Dialect::Lcm => Some(Some(Dialect::Anthropic)),
                    Dialect::Anthropic => Some(Some(Dialect::Lcm)),
                    _ => None,
                }
            }
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
        // A member in which another dialect has its content.
        let (key, dialect_of_key) = match self.dialect {
            Dialect::Lcm => ("text", None),
            Dialect::Gemini => ("content", None),
            _ => ("parts", Some(Dialect::Lcm)),
        };
        let member = self.find_filled(key).or(self.find_filled("text"))?;
        let first = json::first_element(self.raw, member.value);
        let found = first.and_then(|value| PartShape::from_span(self.raw, value.span).dialect);
        let is_key = json::is_equal_text(self.raw, member.key, key);
        Some(DialectMismatch { looks_like: found.or(dialect_of_key.filter(|_| is_key)) })
    }

    /// Returns whether an unknown part has the general form of the declared dialect's parts;
    /// `None`: the part is known, or the message has no `role` or no `content`.
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
    /// The dialect that the part's type or keys identify; `None`: unknown.
    dialect: Option<Dialect>,
}

impl PartShape {
    /// Reads the fields of a part, up to a `type` other than `tool_result`.
    fn from_span(raw: &str, value: ByteSpan) -> Self {
        let value = json::slice_span(raw, value);
        let mut shape = Self { is_object: value.starts_with('{'), is_typed: false, dialect: None };
        if !shape.is_object {
            return shape;
        }
        let mut scanner = JsonScanner::new(value);
        let (mut key, mut is_gemini, mut is_result, mut is_lcm) = ("", false, false, false);
        while let Ok(Some(token)) = scanner.next_token() {
            if token.depth != 1 || !matches!(token.kind, JsonTokenKind::Key | JsonTokenKind::String)
            {
                continue;
            }
            let text =
                value.get(token.start..token.end).and_then(json::string_body).unwrap_or_default();
            if token.kind == JsonTokenKind::Key {
                key = text;
                is_gemini |= GEMINI_KEYS.contains(&key);
                is_lcm |= matches!(key, "call_id" | "output");
            } else if key == "type" {
                shape.is_typed = true;
                is_result = text == "tool_result";
                shape.dialect = TYPE_DIALECTS
                    .iter()
                    .find(|(name, _)| *name == text)
                    .map(|(_, dialect)| *dialect);
                if !is_result {
                    return shape;
                }
            }
        }
        if is_result && is_lcm {
            shape.dialect = Some(Dialect::Lcm);
        } else if !shape.is_typed && is_gemini {
            shape.dialect = Some(Dialect::Gemini);
        }
        shape
    }
}
