//! What a tool returned, as texts and media.
//!
//! Providers write tool output as a string or as a list of blocks; hosts of the `lcm` dialect may
//! return any JSON value, which then is text.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::turns::Answer;
use lcm_text::{
    base::json::{self, Kind, Span},
    message::Object,
};

/// One piece of a tool's output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Piece<'a> {
    Text(Cow<'a, str>),
    /// A block of media or search results, as JSON.
    Media(&'a str),
}

/// Types of blocks that hold text.
const TEXTS: [&str; 3] = ["text", "input_text", "output_text"];
/// Types of blocks that hold something else.
const MEDIA: [&str; 7] = [
    "image",
    "document",
    "search_result",
    "tool_reference",
    "image_url",
    "input_image",
    "input_file",
];

/// The pieces of an output, which is JSON or empty.
pub(super) fn pieces(output: &str) -> Vec<Piece<'_>> {
    let whole = Span::between(0, output.len());
    match json::kind(output, whole) {
        Kind::Null => Vec::new(),
        Kind::String => Vec::from([Piece::Text(json::text(output, whole))]),
        Kind::Object if is_screenshot(output) => Vec::from([Piece::Media(output)]),
        Kind::Array => listed(output, whole).unwrap_or_else(|| as_json(output, whole)),
        _ => as_json(output, whole),
    }
}

/// Whether an output is what `openai-responses` returns of a computer.
fn is_screenshot(output: &str) -> bool {
    let members = json::object(output).unwrap_or_default();
    Object::new(output, members).text("type") == "computer_screenshot"
}

fn as_json(output: &str, whole: Span) -> Vec<Piece<'_>> {
    Vec::from([Piece::Text(Cow::Owned(json::compact(output, whole)))])
}

/// The elements of a list of known blocks; `None` when it is any other list.
fn listed(output: &str, whole: Span) -> Option<Vec<Piece<'_>>> {
    json::elements(output, whole)
        .into_iter()
        .map(|value| {
            let block = Object::of(output, value)?;
            let kind = block.text("type");
            if TEXTS.contains(&&*kind) {
                return block.string("text").map(|text| Piece::Text(json::text(output, text)));
            }
            let is_media = MEDIA.contains(&&*kind);
            is_media.then(|| Piece::Media(json::slice(output, value.span)))
        })
        .collect()
}

/// Begins the text of a result that is an error, where a dialect has no field for it.
const ERROR: &str = "[tool error]";

/// What an output says, an error marked as one, and whether that is all of it.
pub(super) fn told(answer: &Answer<'_>) -> (String, bool) {
    let (text, whole) = text(answer.output);
    match (answer.is_error, text.is_empty()) {
        (false, _) => (text, whole),
        (true, true) => (ERROR.into(), whole),
        (true, false) => (format!("{ERROR} {text}"), whole),
    }
}

/// The texts of an output, one below the other, and whether that is all of it.
pub(super) fn text(output: &str) -> (String, bool) {
    let mut out = String::new();
    let mut whole = true;
    for (at, piece) in pieces(output).iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Media(_) => {
                whole = false;
                out.push_str("[media left out]");
            }
        }
    }
    (out, whole)
}
