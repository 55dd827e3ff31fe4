//! The role of a message and the parts of its content, as spans of the raw text.
//!
//! In: spans that a dialect reader found. Out: ids and texts of a part. The readers decide which
//! fields of a dialect become which part. [`super::ParsedMessage`] has the parts of a message.

use alloc::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::base::json::{self, ByteSpan};

/// Author of a message.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Role {
    /// Instructions of the host.
    System,
    /// The person, or a program that writes in the person's place.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// Returns the role as JSON writes it.
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

/// One part of a message.
///
/// Every span covers a whole JSON value of the raw text, quotes included, or several values in one
/// case of [`Part::Other`]. [`crate::base::json::text`] decodes a span.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Part {
    /// Visible text.
    Text {
        /// The text.
        text: ByteSpan,
    },
    /// Reasoning of the model. Reasoning is never part of the source text of a summary.
    Reasoning {
        /// The text.
        text: ByteSpan,
    },
    /// A tool call.
    ToolCall {
        /// Id by which the result refers to the call; `None`: the call has no id.
        id: Option<ByteSpan>,
        /// Name of the tool; `None`: the call has no name.
        name: Option<ByteSpan>,
        /// Arguments, any JSON value; `None`: the call has no arguments.
        input: Option<ByteSpan>,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the call; `None`: the result names no call.
        call_id: Option<ByteSpan>,
        /// Name of the tool; `None`: the result names no tool.
        name: Option<ByteSpan>,
        /// Output, any JSON value; `None`: the result has no output.
        output: Option<ByteSpan>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// A file.
    File {
        /// Name of the file; `None`: not given.
        name: Option<ByteSpan>,
        /// Media type of the file; `None`: not given.
        mime: Option<ByteSpan>,
        /// Text of a text file: a string, or a list of blocks as in a tool's output; `None`: not
        /// given.
        text: Option<ByteSpan>,
        /// Base64 of a binary file; `None`: not given.
        data: Option<ByteSpan>,
    },
    /// Any other part, kept unchanged.
    ///
    /// In a list with more elements than the limit, the last part covers the rest of the list. The
    /// span then covers several JSON values and the commas between them.
    Other {
        /// The whole value, or the text of the list from the first covered element to the last.
        value: ByteSpan,
    },
}

impl Part {
    /// Returns the decoded id of a tool call; `None`: any other part, or a call without an id.
    #[must_use]
    pub fn call_id<'a>(&self, raw: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::ToolCall { id, .. } => id.map(|id| json::text(raw, id)),
            _ => None,
        }
    }

    /// Returns the decoded id of the call that a tool result answers; `None`: any other part, or a
    /// result without an id.
    #[must_use]
    pub fn result_id<'a>(&self, raw: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::ToolResult { call_id, .. } => call_id.map(|id| json::text(raw, id)),
            _ => None,
        }
    }

    /// Returns the spans of all values of the part.
    pub fn all_spans(&self) -> [Option<ByteSpan>; 4] {
        match *self {
            Self::Text { text } | Self::Reasoning { text } => [Some(text), None, None, None],
            Self::ToolCall { id, name, input } => [id, name, input, None],
            Self::ToolResult { call_id, name, output, .. } => [call_id, name, output, None],
            Self::File { name, mime, text, data } => [name, mime, text, data],
            Self::Other { value } => [Some(value), None, None, None],
        }
    }

    /// Returns the spans of text, reasoning, tool output and file content. Names, ids, inputs and
    /// unknown parts have no span in the result.
    pub fn content_spans(&self) -> impl Iterator<Item = ByteSpan> {
        let (first, second) = match *self {
            Self::Text { text } | Self::Reasoning { text } => (Some(text), None),
            Self::ToolResult { output, .. } => (output, None),
            Self::File { text, data, .. } => (text, data),
            Self::ToolCall { .. } | Self::Other { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Returns whether the part is neither blank text, blank reasoning nor `null`.
    pub(super) fn is_content(&self, raw: &str) -> bool {
        match self {
            Self::Text { text } | Self::Reasoning { text } => has_visible_text(raw, [*text], 1),
            // The text is compared, because a span over several values can begin with `null`.
            Self::Other { value } => json::slice_span(raw, *value) != "null",
            Self::ToolCall { .. } | Self::ToolResult { .. } | Self::File { .. } => true,
        }
    }
}

/// Returns whether every span of these parts lies inside the raw text, on character boundaries.
pub fn contains_parts(raw: &str, parts: &[Part]) -> bool {
    // A JSON value is never empty, so an empty slice means a span out of range.
    let has = |span: &ByteSpan| !json::slice_span(raw, *span).is_empty();
    parts.iter().flat_map(Part::all_spans).flatten().all(|span| has(&span))
}

/// Returns whether the values together have at least `min` characters other than whitespace.
pub(super) fn has_visible_text(
    raw: &str,
    values: impl IntoIterator<Item = ByteSpan>,
    min: usize,
) -> bool {
    let mut count = 0_usize;
    for value in values {
        json::each_text(json::slice_span(raw, value), &mut |piece| {
            if count < min {
                count += piece.chars().filter(|c| !c.is_whitespace()).take(min - count).count();
            }
        });
    }
    count >= min
}
