//! What the engine understands of one message: a projection beside the raw text, never a copy.
//!
//! In: the JSON text of one message and its dialect. Out: role, parts as spans of that text, and
//! what is derived from them (cost, identity, evidence). A dialect says where role and parts are;
//! everything derived is the same for all. Not here: rendering, and what happens to large payloads.

mod anthropic;
pub mod batch_limit;
mod blocks;
mod content_identity;
mod dialect_mismatch;
mod gemini;
pub mod large_payload;
mod lcm;
mod openai_chat;
mod openai_responses;
pub mod outline;
pub mod provider_limits;
mod token_cost;
pub mod trust;
pub mod validate;

use alloc::{borrow::Cow, vec::Vec};

use serde::{Deserialize, Serialize};

pub use self::dialect_mismatch::DialectMismatch;
pub use self::{
    anthropic::is_result_type,
    blocks::{JsonObject, MessageBlock},
    gemini::get_object_either,
    openai_responses::{HOST_CALLS, answered_call_type, item_kind},
};
use crate::{
    base::{
        error::Result,
        json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
        time, tokens,
    },
    types::api::{Dialect, Timestamp},
};

/// Characters other than whitespace from which equal text is evidence of being the same message.
const DISCRIMINATING_CHARACTERS_MIN: usize = 24;

/// Who a message is from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Role {
    /// Instructions of the host.
    System,
    /// The person, or whoever speaks for one.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// The role as JSON writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One part of a message. Every span covers a whole JSON value of the raw text, quotes included
/// (with one exception, see [`Part::Other`]); [`crate::base::json::text`] decodes it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Part {
    /// Text that was said.
    Text {
        /// The text.
        text: ByteSpan,
    },
    /// Text that was thought. It never reaches a model again as a source.
    Reasoning {
        /// The text.
        text: ByteSpan,
    },
    /// A call of a tool.
    ToolCall {
        /// Id that its result names; absent when the message has none.
        id: Option<ByteSpan>,
        /// Name of the tool.
        name: Option<ByteSpan>,
        /// Arguments: any JSON value.
        input: Option<ByteSpan>,
    },
    /// The result of a call.
    ToolResult {
        /// Id of the call.
        call_id: Option<ByteSpan>,
        /// Name of the tool.
        name: Option<ByteSpan>,
        /// A string or any other JSON value.
        output: Option<ByteSpan>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// A file.
    File {
        /// Its name.
        name: Option<ByteSpan>,
        /// Its media type.
        mime: Option<ByteSpan>,
        /// Its text, when it is one: a string, or a list of blocks as a tool's output can be.
        text: Option<ByteSpan>,
        /// Its bytes in base64, when it is none.
        data: Option<ByteSpan>,
    },
    /// Anything else, kept as it is.
    ///
    /// The last part of a message of very many can be the rest of its list: then the value is not
    /// one JSON value but several with the commas between them.
    Other {
        /// The whole part, or the inside of the list from the first such part to the last.
        value: ByteSpan,
    },
}

/// The projection of one message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParsedMessage {
    /// Who it is from.
    pub role: Role,
    /// What it consists of, in order; at most 1,024, the last of which can stand for many.
    pub parts: Vec<Part>,
    /// Estimated tokens of its texts, tool names, inputs and outputs.
    pub tokens: u32,
    /// When it was said, if the message tells.
    pub timestamp: Option<Timestamp>,
    /// The host's id of the entry.
    pub entry_id: Option<ByteSpan>,
    /// The host's key of the event.
    pub event_key: Option<ByteSpan>,
    /// Content identity: equal for equal content whatever the spacing, escapes or order of the
    /// top-level keys; `id` and `event_key` do not count, unless they cannot be ids.
    pub identity: [u8; 16],
    /// Call id of a message that is exactly one tool result and whose id looks globally unique.
    pub unique_call_id: Option<ByteSpan>,
    /// Whether equal content is evidence of being the same message: long or unique enough.
    pub is_discriminating: bool,
    /// Whether it is an assistant message with `stop_reason` `error` or `aborted` and no content:
    /// no part, and no member that the dialect does not know.
    pub is_failed_and_empty: bool,
    /// Whether it is in another dialect than it was read in; `None`: nothing says so.
    pub dialect_mismatch: Option<DialectMismatch>,
    /// Whether it has a `timestamp` that is no time.
    pub has_invalid_timestamp: bool,
}

/// Reads one message of a dialect.
///
/// # Errors
///
/// `invalid-input`: no JSON object, no role of the dialect, or nesting deeper than 512.
pub fn parse(dialect: Dialect, raw: &str) -> Result<ParsedMessage> {
    match dialect {
        Dialect::Lcm => lcm::read(raw),
        Dialect::Anthropic => anthropic::read(raw),
        Dialect::OpenaiChat => openai_chat::read(raw),
        Dialect::OpenaiResponses => openai_responses::read(raw),
        Dialect::Gemini => gemini::read(raw),
    }
}

/// The parts of a stored message with the values they were read from: every one of a provider's
/// dialect, none of the others.
pub fn read_blocks(dialect: Dialect, raw: &str) -> Vec<MessageBlock> {
    match dialect {
        Dialect::Anthropic => anthropic::read_blocks(raw),
        Dialect::OpenaiChat => openai_chat::read_blocks(raw),
        Dialect::OpenaiResponses => openai_responses::read_blocks(raw),
        Dialect::Gemini => gemini::read_blocks(raw),
        Dialect::Lcm => Vec::new(),
    }
}

/// What a rendered piece costs in quarter tokens: one block of an `anthropic` message, one part of
/// a `gemini` content, one whole message of any other dialect. Nothing for what is none.
pub fn quarter_tokens(dialect: Dialect, raw: &str) -> u64 {
    let whole = JsonValue { span: ByteSpan::from_range(0, raw.len()), kind: JsonKind::Object };
    match dialect {
        Dialect::Anthropic => token_cost::quarter_tokens(raw, &anthropic::read_block(raw, whole)),
        Dialect::Gemini => token_cost::quarter_tokens(raw, &gemini::read_part(raw, whole)),
        Dialect::Lcm => lcm::read(raw).map_or(0, |message| {
            message.parts.iter().map(|part| token_cost::quarter_tokens(raw, part)).sum()
        }),
        _ => read_blocks(dialect, raw)
            .iter()
            .map(|block| token_cost::quarter_tokens(raw, &block.part))
            .sum(),
    }
}

/// Whether a text has everything that these parts consist of.
pub fn contains_parts(raw: &str, parts: &[Part]) -> bool {
    // No value is empty.
    let has = |span: &ByteSpan| !json::slice_span(raw, *span).is_empty();
    parts.iter().flat_map(Part::all_spans).flatten().all(|span| has(&span))
}

/// What a part costs in quarter tokens.
pub(crate) fn part_quarter_tokens(raw: &str, part: &Part) -> u64 {
    token_cost::quarter_tokens(raw, part)
}

/// Whether an id of a call looks unique for ever: `toolu_` or `call_` and at least 12 ASCII letters
/// or digits, and nothing else.
///
/// Short ids such as `functions.exec:0` come again in later turns and say nothing.
#[must_use]
pub fn is_unique_call_id(id: &str) -> bool {
    id.strip_prefix("toolu_")
        .or_else(|| id.strip_prefix("call_"))
        .is_some_and(|rest| rest.len() >= 12 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

impl ParsedMessage {
    /// Whether it is what a user said, and not the result of a call, which belongs to its call.
    pub fn is_user_text(&self) -> bool {
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        self.role == Role::User && !self.parts.iter().any(is_result)
    }
}

impl Part {
    /// The id of a tool call; `None` for any other part and for a call without one.
    #[must_use]
    pub fn call_id<'a>(&self, raw: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::ToolCall { id, .. } => id.map(|id| json::text(raw, id)),
            _ => None,
        }
    }

    /// The id of the call that a tool result answers; `None` for any other part and for a result
    /// without one.
    #[must_use]
    pub fn result_id<'a>(&self, raw: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::ToolResult { call_id, .. } => call_id.map(|id| json::text(raw, id)),
            _ => None,
        }
    }

    /// All values that it consists of.
    pub fn all_spans(&self) -> [Option<ByteSpan>; 4] {
        match *self {
            Self::Text { text } | Self::Reasoning { text } => [Some(text), None, None, None],
            Self::ToolCall { id, name, input } => [id, name, input, None],
            Self::ToolResult { call_id, name, output, .. } => [call_id, name, output, None],
            Self::File { name, mime, text, data } => [name, mime, text, data],
            Self::Other { value } => [Some(value), None, None, None],
        }
    }

    /// The values that hold what was said, thought, returned or attached; not names, ids, inputs
    /// and unknown parts.
    pub fn content_spans(&self) -> impl Iterator<Item = ByteSpan> {
        let (first, second) = match *self {
            Self::Text { text } | Self::Reasoning { text } => (Some(text), None),
            Self::ToolResult { output, .. } => (output, None),
            Self::File { text, data, .. } => (text, data),
            Self::ToolCall { .. } | Self::Other { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Whether an empty failed turn would not have it: anything but blank text and `null`.
    fn is_content(&self, raw: &str) -> bool {
        match self {
            Self::Text { text } | Self::Reasoning { text } => has_visible_text(raw, [*text], 1),
            // Not its kind: a list's inside can begin with `null`.
            Self::Other { value } => json::slice_span(raw, *value) != "null",
            Self::ToolCall { .. } | Self::ToolResult { .. } | Self::File { .. } => true,
        }
    }
}

/// The projection of a message whose role and parts a dialect has found among its `members`.
///
/// `has_more`: there is content that no part stands for.
fn build_message(
    dialect: Dialect,
    raw: &str,
    members: &[JsonMember],
    role: Role,
    parts: Vec<Part>,
    has_more: bool,
) -> ParsedMessage {
    let time = json::find_member(members, raw, "timestamp").filter(|m| m.kind != JsonKind::Null);
    let timestamp = time.and_then(|m| read_time(raw, m));
    let unique_call_id = match parts.as_slice() {
        [Part::ToolResult { call_id: Some(id), .. }]
            if is_unique_call_id(&json::text(raw, *id)) =>
        {
            Some(*id)
        }
        _ => None,
    };
    let ids = |part: &Part| part.call_id(raw).or_else(|| part.result_id(raw));
    let discriminating = timestamp.is_some()
        || parts.iter().filter_map(ids).any(|id| is_unique_call_id(&id))
        || has_visible_text(
            raw,
            parts.iter().flat_map(Part::content_spans),
            DISCRIMINATING_CHARACTERS_MIN,
        );
    let failed = json::find_member(members, raw, "stop_reason")
        .is_some_and(|m| m.kind == JsonKind::String && is_failure(&json::text(raw, m.value)));
    ParsedMessage {
        role,
        tokens: tokens::tokens_from_quarters(
            parts.iter().map(|part| token_cost::quarter_tokens(raw, part)).sum(),
        ),
        timestamp,
        entry_id: json::find_member(members, raw, "id").and_then(read_id),
        event_key: json::find_member(members, raw, "event_key").and_then(read_id),
        identity: content_identity::hash_content(raw, members),
        unique_call_id,
        is_discriminating: discriminating,
        is_failed_and_empty: role == Role::Assistant
            && failed
            && !has_more
            && !parts.iter().any(|part| part.is_content(raw)),
        dialect_mismatch: dialect_mismatch::DialectReading {
            dialect,
            raw,
            members,
            role,
            parts: &parts,
        }
        .find_mismatch(),
        has_invalid_timestamp: time.is_some() && timestamp.is_none(),
        parts,
    }
}

/// Whether the values have at least `min` characters that are no whitespace, taken together.
fn has_visible_text(raw: &str, values: impl IntoIterator<Item = ByteSpan>, min: usize) -> bool {
    let mut seen = 0_usize;
    for value in values {
        json::each_text(json::slice_span(raw, value), &mut |piece| {
            if seen < min {
                seen += piece.chars().filter(|c| !c.is_whitespace()).take(min - seen).count();
            }
        });
    }
    seen >= min
}

fn is_failure(stop_reason: &str) -> bool {
    matches!(stop_reason, "error" | "aborted")
}

/// An id: a number or a string that is not empty.
fn read_id(member: &JsonMember) -> Option<ByteSpan> {
    let is_id = match member.kind {
        JsonKind::String => member.value.length > 2,
        JsonKind::Number => true,
        _ => false,
    };
    is_id.then_some(member.value)
}

/// A time: ISO 8601, or a number of milliseconds, whose fraction is dropped.
fn read_time(raw: &str, member: &JsonMember) -> Option<Timestamp> {
    let text = json::text(raw, member.value);
    match member.kind {
        JsonKind::String => time::parse(&text),
        JsonKind::Number => {
            let whole = text.split_once('.').map_or(&*text, |(whole, _)| whole);
            whole.parse().ok().filter(|&ms| ms <= time::MS_MAX)
        }
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests;

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod provider_tests;
