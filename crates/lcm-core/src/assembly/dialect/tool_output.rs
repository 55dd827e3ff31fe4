//! Tool output, split into texts and media.
//!
//! In: the JSON of an output, in any dialect. Out: its pieces, or its text, for the dialects to
//! write. Providers write tool output as a string or as a list of blocks. In the dialect `lcm`, any
//! JSON value may be an output: a value that is neither a string nor a list of blocks becomes one
//! text, its JSON.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_text::{
    base::json::{self, ByteSpan, JsonKind},
    message::JsonObject,
};

/// A piece of tool output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ToolOutputPiece<'a> {
    Text(Cow<'a, str>),
    /// A block of media or search results, as JSON.
    Media(&'a str),
}

/// Types of blocks that hold text.
const TEXT_TYPES: [&str; 3] = ["text", "input_text", "output_text"];
/// Types of blocks that hold media or search results.
const MEDIA_TYPES: [&str; 7] = [
    "image",
    "document",
    "search_result",
    "tool_reference",
    "image_url",
    "input_image",
    "input_file",
];

/// Splits an output, which is JSON or empty, into pieces.
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

/// Returns whether an output is a computer screenshot of `openai-responses`.
fn is_screenshot(output: &str) -> bool {
    let members = json::parse_object(output).unwrap_or_default();
    JsonObject::new(output, members).get_text("type") == "computer_screenshot"
}

fn json_piece(output: &str, whole: ByteSpan) -> Vec<ToolOutputPiece<'_>> {
    Vec::from([ToolOutputPiece::Text(Cow::Owned(json::compact_value(output, whole)))])
}

/// Splits a list of blocks; `None`: a value is neither a text block nor a media block.
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

/// Prefix of the text of a failed result, in a dialect without a field for errors.
const ERROR_PREFIX: &str = "[tool error]";

/// Returns the text of an output, with a prefix if it is an error, and whether the output has no
/// media.
pub(super) fn text_with_error_mark(output: &str, is_error: bool) -> (String, bool) {
    let (text, is_complete) = join_text(output);
    match (is_error, text.is_empty()) {
        (false, _) => (text, is_complete),
        (true, true) => (ERROR_PREFIX.into(), is_complete),
        (true, false) => (format!("{ERROR_PREFIX} {text}"), is_complete),
    }
}

/// Joins the pieces of an output by line breaks, with a text in place of media. Also returns
/// whether the output has no media.
pub(super) fn join_text(output: &str) -> (String, bool) {
    let mut out = String::new();
    let mut is_complete = true;
    for (at, piece) in split_output(output).iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        match piece {
            ToolOutputPiece::Text(text) => out.push_str(text),
            ToolOutputPiece::Media(_) => {
                is_complete = false;
                out.push_str("[media left out]");
            }
        }
    }
    (out, is_complete)
}
