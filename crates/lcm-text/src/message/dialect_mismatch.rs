//! Whether a message is in another dialect than the one it was given in.
//!
//! In: the members of a message and the parts that its dialect found. Out: that something in it was
//! not understood, and the dialect that it looks like. Only what was *not* understood is looked at,
//! so that an ordinary message costs a few comparisons of keys. A part that no dialect has is no
//! misfit in a message that else has the form of its dialect, nor is a message without content.
//! Not here: what is said of it (`lcm-core`); it is stored like any other.

use super::{Part, Role};
use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonMember, JsonScanner, JsonTokenKind},
    types::api::Dialect,
};

/// Parts of one message whose form is looked at.
const PARTS_MAX: usize = 16;

/// Types of parts that tell a dialect, also beside parts that were understood. `tool_result` is
/// one of two dialects.
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

/// Keys of a part without a type.
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

/// A message in which its dialect does not find what is in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DialectMismatch {
    /// The dialect that it looks like; `None`: that cannot be told.
    pub looks_like: Option<Dialect>,
}

/// A message as a dialect has read it.
pub(super) struct DialectReading<'a> {
    pub(super) dialect: Dialect,
    pub(super) raw: &'a str,
    pub(super) members: &'a [JsonMember],
    pub(super) role: Role,
    pub(super) parts: &'a [Part],
}

impl DialectReading<'_> {
    /// Whether the message does not fit its dialect.
    pub(super) fn find_mismatch(&self) -> Option<DialectMismatch> {
        let is_nothing = |part: &&Part| match part {
            Part::Other { value } => json::slice_span(self.raw, *value) == "null",
            Part::ToolResult { output, .. } => output.is_none(),
            _ => false,
        };
        let told = self.find_beside_content().or_else(|| self.find_in_parts());
        if told.is_some() {
            return Some(DialectMismatch { looks_like: told });
        }
        if self.parts.iter().all(|part| is_nothing(&part)) {
            return self.find_unread();
        }
        let has_form =
            || self.parts.iter().find_map(|part| self.has_dialect_form(part)).unwrap_or(true);
        let is_other = |part: &Part| matches!(part, Part::Other { .. });
        (self.parts.iter().all(is_other) && !has_form())
            .then_some(DialectMismatch { looks_like: None })
    }

    /// A member that is not empty.
    fn find_filled(&self, key: &str) -> Option<&JsonMember> {
        json::find_member(self.members, self.raw, key).filter(|member| match member.kind {
            JsonKind::Null => false,
            // What has nothing but its brackets or quotes is nothing.
            JsonKind::String | JsonKind::Array | JsonKind::Object => member.value.length > 2,
            JsonKind::Number | JsonKind::Bool => true,
        })
    }

    /// The dialect of calls and results that stand beside the content.
    fn find_beside_content(&self) -> Option<Dialect> {
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

    /// The dialect of the first part that is another's.
    fn find_in_parts(&self) -> Option<Dialect> {
        let other = |part: &Part| match *part {
            Part::Other { value } => Some(PartShape::from_span(self.raw, value).dialect),
            // A type that two dialects have, and none of the fields of this one.
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

    /// Of a message in which nothing was found: whether there is something all the same.
    fn find_unread(&self) -> Option<DialectMismatch> {
        // Where another dialect has what this one does not look for.
        let (key, whose) = match self.dialect {
            Dialect::Lcm => ("text", None),
            Dialect::Gemini => ("content", None),
            _ => ("parts", Some(Dialect::Lcm)),
        };
        let member = self.find_filled(key).or(self.find_filled("text"))?;
        let first = json::first_element(self.raw, member.value);
        let told = first.and_then(|value| PartShape::from_span(self.raw, value.span).dialect);
        let is_it = json::is_equal_text(self.raw, member.key, key);
        Some(DialectMismatch { looks_like: told.or(whose.filter(|_| is_it)) })
    }

    /// Whether a part that was not understood has at least the form of its dialect's; `None`: it
    /// does not stand where parts do.
    fn has_dialect_form(&self, part: &Part) -> Option<bool> {
        let Part::Other { value } = *part else { return None };
        let shape = PartShape::from_span(self.raw, value);
        match self.dialect {
            // This project's own list of parts is closed.
            Dialect::Lcm => Some(false),
            Dialect::Gemini => Some(shape.is_object),
            _ => {
                self.find_filled("role").and(self.find_filled("content"))?;
                Some(shape.is_typed)
            }
        }
    }
}

/// What can be told of a part by its first fields.
struct PartShape {
    is_object: bool,
    /// Whether it has a type.
    is_typed: bool,
    dialect: Option<Dialect>,
}

impl PartShape {
    /// Reads no further than it takes to tell.
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
                shape.dialect =
                    TYPE_DIALECTS.iter().find(|(name, _)| *name == text).map(|(_, of)| *of);
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
