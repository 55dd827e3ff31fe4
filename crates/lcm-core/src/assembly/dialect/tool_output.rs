//! Tool output, split into texts and media.
//!
//! In: the JSON of an output, in any dialect. Out: its pieces, or its text, for the dialects to
//! write. Providers write tool output as a string or as a list of blocks. In the dialect `lcm`, any
//! JSON value may be an output: a value that is neither a string nor a list of blocks becomes one
//! text, its JSON.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::file_content::{self, FileContent};
use lcm_text::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{self, JsonObject, meaning},
};

/// A piece of tool output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ToolOutputPiece<'a> {
    Text(Cow<'a, str>),
    /// A block of media or search results, as JSON.
    Media(&'a str),
}

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

/// Types of blocks that hold media if they have the data of a file or its address.
const FILE_TYPES: [&str; 8] = [
    "image",
    "media",
    "file",
    "image-data",
    "file-data",
    "image-url",
    "file-url",
    "computer_screenshot",
];

/// Splits an output, which is JSON or empty, into pieces.
pub(super) fn split_output(output: &str) -> Vec<ToolOutputPiece<'_>> {
    let whole = ByteSpan::from_range(0, output.len());
    match json::kind(output, whole) {
        JsonKind::Null => Vec::new(),
        JsonKind::String => Vec::from([ToolOutputPiece::Text(json::text(output, whole))]),
        JsonKind::Object if is_media(output) => Vec::from([ToolOutputPiece::Media(output)]),
        JsonKind::Array => split_blocks(output, whole).unwrap_or_else(|| json_piece(output, whole)),
        _ => json_piece(output, whole),
    }
}

/// Returns whether an output is a computer screenshot of `openai-responses`, or a file.
fn is_media(output: &str) -> bool {
    let members = json::parse_object(output).unwrap_or_default();
    let output = JsonObject::new(output, members);
    output.get_text("type") == "computer_screenshot" || is_file(&output)
}

/// Returns whether a block is a file of a framework or of the Model Context Protocol.
fn is_file(block: &JsonObject<'_>) -> bool {
    FILE_TYPES.contains(&&*block.get_text("type")) && message::find_media(block).is_some()
}

fn json_piece(output: &str, whole: ByteSpan) -> Vec<ToolOutputPiece<'_>> {
    let mut text = String::new();
    let value = JsonValue { span: whole, kind: json::kind(output, whole) };
    push_readable(&mut text, output, value);
    Vec::from([ToolOutputPiece::Text(Cow::Owned(text))])
}

/// Writes a value without the members that only its provider can read, such as
/// `encrypted_content` of a web search.
fn push_readable(out: &mut String, raw: &str, value: JsonValue) {
    let has_members = matches!(value.kind, JsonKind::Object | JsonKind::Array);
    if !has_members || !json::slice_span(raw, value.span).contains("\"encrypted_") {
        return out.push_str(&json::compact_value(raw, value.span));
    }
    let is_object = value.kind == JsonKind::Object;
    out.push(if is_object { '{' } else { '[' });
    let mut separator = "";
    for member in json::list_members(raw, value.span) {
        if !json::text(raw, member.key).starts_with("encrypted_") {
            out.push_str(core::mem::replace(&mut separator, ","));
            out.push_str(json::slice_span(raw, member.key));
            out.push(':');
            push_readable(out, raw, JsonValue { span: member.value, kind: member.kind });
        }
    }
    for element in json::list_elements(raw, value.span) {
        out.push_str(core::mem::replace(&mut separator, ","));
        push_readable(out, raw, element);
    }
    out.push(if is_object { '}' } else { ']' });
}

/// Splits a list of blocks; `None`: a value is neither a text block nor a media block.
fn split_blocks(output: &str, whole: ByteSpan) -> Option<Vec<ToolOutputPiece<'_>>> {
    json::list_elements(output, whole)
        .into_iter()
        .map(|value| {
            let block = JsonObject::from_value(output, value)?;
            let kind = block.get_text("type");
            if meaning::TEXT_TYPES.contains(&&*kind) {
                return block
                    .get_string("text")
                    .map(|text| ToolOutputPiece::Text(json::text(output, text)));
            }
            let is_media = MEDIA_TYPES.contains(&&*kind) || is_file(&block);
            is_media.then(|| ToolOutputPiece::Media(json::slice_span(output, value.span)))
        })
        .collect()
}

/// Prefix of the text of a failed result, in a dialect without a field for errors.
const ERROR_PREFIX: &str = "[tool error]";
/// Text in place of media that the next message has.
const MEDIA_FOLLOWS: &str = "[the next message has the media of this result]";
/// Text in place of media that the dialect cannot express.
const MEDIA_LEFT_OUT: &str = "[media left out]";

/// An output as a text.
#[derive(Default)]
pub(super) struct OutputText {
    pub(super) text: String,
    /// Media as parts of a user's message, which follows the result.
    pub(super) media: Vec<String>,
    /// Whether neither the text nor `media` leaves anything out.
    pub(super) is_complete: bool,
}

/// Writes an output as a text, with a prefix if it is an error. `to_part` writes a file as a part
/// of a user's message; `None`: no part can hold the file.
pub(super) fn write_text(
    output: &str,
    is_error: bool,
    to_part: &dyn Fn(&FileContent<'_>) -> Option<String>,
) -> OutputText {
    let (mut texts, mut out) = (Vec::new(), OutputText::default());
    out.is_complete = true;
    for piece in split_output(output) {
        texts.push(match piece {
            ToolOutputPiece::Text(text) => text,
            ToolOutputPiece::Media(media) => {
                let part = file_content::read_media(media).and_then(|file| to_part(&file));
                match (search_result_text(media), part) {
                    (Some(text), _) => Cow::Owned(text),
                    (None, Some(part)) => {
                        out.media.push(part);
                        Cow::Borrowed(MEDIA_FOLLOWS)
                    }
                    (None, None) => {
                        out.is_complete = false;
                        Cow::Borrowed(MEDIA_LEFT_OUT)
                    }
                }
            }
        });
    }
    out.text = texts.join("\n");
    if is_error {
        let separator = if out.text.is_empty() { "" } else { " " };
        out.text = [ERROR_PREFIX, separator, &out.text].concat();
    }
    out
}

/// Joins the pieces of an output by line breaks, with a text in place of media. Also returns
/// whether the output has no media.
pub(super) fn join_text(output: &str) -> (String, bool) {
    let out = write_text(output, false, &|_| None);
    (out.text, out.is_complete)
}

/// Returns the title, the source and the texts of a search result; `None`: another block.
pub(super) fn search_result_text(block: &str) -> Option<String> {
    let members = json::parse_object(block).unwrap_or_default();
    let result = JsonObject::new(block, members);
    if result.get_text("type") != "search_result" {
        return None;
    }
    let content = result.get_value("content").map_or("", |span| json::slice_span(block, span));
    let texts = [result.get_text("title"), result.get_text("source"), join_text(content).0.into()];
    let texts: Vec<&str> = texts.iter().map(|text| &**text).filter(|it| !it.is_empty()).collect();
    Some(texts.join("\n"))
}
