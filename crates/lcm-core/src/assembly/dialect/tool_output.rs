//! What a tool returned, as texts and media.
//!
//! Providers write tool output as a string or as a list of blocks; hosts of the `lcm` dialect may
//! return any JSON value, which then is text.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::normalize::TurnAnswer;
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind},
    message::JsonObject,
};

/// One piece of a tool's output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ToolOutputPiece<'a> {
    Text(Cow<'a, str>),
    /// A block of media or search results, as JSON.
    Media(&'a str),
}

/// Types of blocks that hold text.
const TEXT_TYPES: [&str; 3] = ["text", "input_text", "output_text"];
/// Types of blocks that hold something else.
const MEDIA_TYPES: [&str; 7] = [
    "image",
    "document",
    "search_result",
    "tool_reference",
    "image_url",
    "input_image",
    "input_file",
];

/// The pieces of an output, which is JSON or empty.
pub(super) fn split_output(output: &str) -> Vec<ToolOutputPiece<'_>> {
    let whole = ByteSpan::from_range(0, output.len());
    match json::kind(output, whole) {
        JsonKind::Null => Vec::new(),
        JsonKind::String => Vec::from([ToolOutputPiece::Text(json::text(output, whole))]),
        JsonKind::Object if is_screenshot(output) => Vec::from([ToolOutputPiece::Media(output)]),
        JsonKind::Array => split_blocks(output, whole).unwrap_or_else(|| json_piece(output, whole)),
        _ => json_piece(output, whole),
    }
}

/// Whether an output is what `openai-responses` returns of a computer.
fn is_screenshot(output: &str) -> bool {
    let members = json::parse_object(output).unwrap_or_default();
    JsonObject::new(output, members).get_text("type") == "computer_screenshot"
}

fn json_piece(output: &str, whole: ByteSpan) -> Vec<ToolOutputPiece<'_>> {
    Vec::from([ToolOutputPiece::Text(Cow::Owned(json::compact_value(output, whole)))])
}

/// The elements of a list of known blocks; `None` when it is any other list.
fn split_blocks(output: &str, whole: ByteSpan) -> Option<Vec<ToolOutputPiece<'_>>> {
    json::list_elements(output, whole)
        .into_iter()
        .map(|value| {
            let block = JsonObject::from_value(output, value)?;
            let kind = block.get_text("type");
            if TEXT_TYPES.contains(&&*kind) {
                return block
                    .get_string("text")
                    .map(|text| ToolOutputPiece::Text(json::text(output, text)));
            }
            let is_media = MEDIA_TYPES.contains(&&*kind);
            is_media.then(|| ToolOutputPiece::Media(json::slice_span(output, value.span)))
        })
        .collect()
}

/// Begins the text of a result that is an error, where a dialect has no field for it.
const ERROR_PREFIX: &str = "[tool error]";

/// What an output says, an error marked as one, and whether that is all of it.
pub(super) fn text_with_error_mark(answer: &TurnAnswer<'_>) -> (String, bool) {
    let (text, whole) = text(answer.output);
    match (answer.is_error, text.is_empty()) {
        (false, _) => (text, whole),
        (true, true) => (ERROR_PREFIX.into(), whole),
        (true, false) => (format!("{ERROR_PREFIX} {text}"), whole),
    }
}

/// The texts of an output, one below the other, and whether that is all of it.
pub(super) fn text(output: &str) -> (String, bool) {
    let mut out = String::new();
    let mut whole = true;
    for (at, piece) in split_output(output).iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        match piece {
            ToolOutputPiece::Text(text) => out.push_str(text),
            ToolOutputPiece::Media(_) => {
                whole = false;
                out.push_str("[media left out]");
            }
        }
    }
    (out, whole)
}
