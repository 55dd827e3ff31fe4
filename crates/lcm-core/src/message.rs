//! What the engine understands of one message: a projection beside the raw text, never a copy.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{api::{Dialect, Timestamp}, error::{Error, Result}, json::Span};

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

/// One part of a message. Every span covers a whole JSON value of the raw text, quotes included;
/// [`crate::json::text`] decodes it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Part {
    /// Text that was said.
    Text {
        /// The text.
        text: Span,
    },
    /// Text that was thought. It never reaches a model again as a source.
    Reasoning {
        /// The text.
        text: Span,
    },
    /// A call of a tool.
    ToolCall {
        /// Id that its result names; absent when the message has none.
        id: Option<Span>,
        /// Name of the tool.
        name: Option<Span>,
        /// Arguments: any JSON value.
        input: Option<Span>,
    },
    /// The result of a call.
    ToolResult {
        /// Id of the call.
        call_id: Option<Span>,
        /// Name of the tool.
        name: Option<Span>,
        /// A string or any other JSON value.
        output: Option<Span>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// A file.
    File {
        /// Its name.
        name: Option<Span>,
        /// Its media type.
        mime: Option<Span>,
        /// Its text, when it is one.
        text: Option<Span>,
        /// Its bytes in base64, when it is none.
        data: Option<Span>,
    },
    /// Anything else, kept as it is.
    Other {
        /// The whole part.
        value: Span,
    },
}

/// The projection of one message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// What it consists of, in order.
    pub parts: Vec<Part>,
    /// Estimated tokens of its texts, tool names, inputs and outputs.
    pub tokens: u32,
    /// When it was said, if the message tells.
    pub timestamp: Option<Timestamp>,
    /// The host's id of the entry.
    pub entry_id: Option<Span>,
    /// The host's key of the event.
    pub event_key: Option<Span>,
    /// Content identity: equal for equal content whatever the spacing, escapes or order of the
    /// top-level keys; `id` and `event_key` do not count.
    pub identity: [u8; 16],
    /// Call id of a message that is exactly one tool result and whose id looks globally unique.
    pub unique_call_id: Option<Span>,
    /// Whether equal content is evidence of being the same message: long or unique enough.
    pub discriminating: bool,
    /// Whether it is an assistant message with `stop_reason` `error` or `aborted` and no content.
    pub failed_and_empty: bool,
}

/// Reads one message of a dialect.
///
/// # Errors
///
/// `invalid-input`: no JSON object, no role of the dialect, or nesting deeper than 512;
/// `unsupported`: a dialect that is not built yet.
pub fn project(dialect: Dialect, raw: &str) -> Result<Message> {
    let _ = (dialect, raw);
    Err(Error::unsupported("not built yet"))
}
