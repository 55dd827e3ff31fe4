//! What a part costs in quarter tokens: its texts, names, inputs and outputs, not the JSON around.
//!
//! Base64 and other opaque strings would be estimated far too high, and their size tells nothing of
//! what a provider charges, so a long one has one flat price.

use super::Part;
use crate::base::{
    json::{self, ByteSpan, JsonKind, JsonScanner, JsonTokenKind},
    tokens,
};

/// Price of a long opaque string, in quarter tokens.
const OPAQUE_QUARTERS: u64 = 4 * 1600;

/// Characters from which a string can be opaque.
const OPAQUE_CHARACTERS_MIN: usize = 4096;

/// Beginning of a string that must look like base64.
const OPAQUE_SAMPLE_CHARACTERS: usize = 512;

/// Beginning of a data URL in which its comma must stand.
const MEDIA_TYPE_BYTES_MAX: usize = 256;

/// Keys whose long strings are opaque when they look like base64.
const OPAQUE_KEYS: [&str; 7] =
    ["data", "image", "imageData", "image_data", "base64", "bytes", "source"];

/// The cost of one part in quarter tokens, so that a message is rounded once.
pub(super) fn quarter_tokens(raw: &str, part: &Part) -> u64 {
    let text =
        |span: Option<ByteSpan>| span.map_or(0, |span| text_quarters(json::slice_span(raw, span)));
    let value =
        |span: Option<ByteSpan>| span.map_or(0, |span| value_quarters(json::slice_span(raw, span)));
    let any = |span: Option<ByteSpan>| {
        let is_text = span.is_some_and(|span| json::kind(raw, span) == JsonKind::String);
        if is_text { text(span) } else { value(span) }
    };
    match *part {
        Part::Text { text: said } | Part::Reasoning { text: said } => text(Some(said)),
        Part::ToolCall { name, input, .. } => {
            let compact = input.map_or(0, |input| input_quarters(raw, input));
            text(name) + compact
        }
        Part::ToolResult { name, output, .. } => text(name) + any(output),
        Part::File { name, text: content, data, .. } => {
            text(name)
                + any(content)
                + data.map_or(0, |data| data_quarters(json::slice_span(raw, data)))
        }
        Part::Other { value: other } => value(Some(other)),
    }
}

/// Of the decoded text of a value.
fn text_quarters(value: &str) -> u64 {
    let mut sum = 0_u64;
    json::each_text(value, &mut |piece| sum += tokens::estimate_quarter_tokens(piece));
    sum
}

/// Of base64.
fn data_quarters(value: &str) -> u64 {
    let mut characters = 0_usize;
    json::each_text(value, &mut |piece| characters += piece.chars().count());
    if characters >= OPAQUE_CHARACTERS_MIN { OPAQUE_QUARTERS } else { text_quarters(value) }
}

/// Of arguments: their JSON without spacing.
fn input_quarters(raw: &str, input: ByteSpan) -> u64 {
    let value = json::slice_span(raw, input);
    let mut spacing = tokens::estimate_quarter_tokens(value);
    json::each_compact_piece(value, &mut |piece| spacing -= tokens::estimate_quarter_tokens(piece));
    value_quarters(value) - spacing
}

/// Of the JSON of one value, or of several with commas between, as it stands, with long opaque
/// strings at the flat price.
fn value_quarters(value: &str) -> u64 {
    let mut sum = tokens::estimate_quarter_tokens(value);
    if value.len() < OPAQUE_CHARACTERS_MIN {
        return sum;
    }
    // A message is around every value, so that counting an array as open is one level at most.
    let mut scanner = JsonScanner::inside_array(value);
    let mut key = "";
    while let Ok(Some(token)) = scanner.next_token() {
        let literal = value.get(token.start..token.end).unwrap_or_default();
        match token.kind {
            JsonTokenKind::Key => key = literal,
            JsonTokenKind::String if is_opaque(key, literal) => {
                // The quotes stay in the sum.
                sum = sum + 2 + OPAQUE_QUARTERS - tokens::estimate_quarter_tokens(literal);
            }
            _ => {}
        }
    }
    sum
}

/// Whether a string literal below `key` is data rather than text.
fn is_opaque(key: &str, literal: &str) -> bool {
    let text = literal.trim_matches('"');
    if text.len() < OPAQUE_CHARACTERS_MIN {
        return false;
    }
    if is_data_url(text.as_bytes()) {
        return true;
    }
    // A backslash: some writers escape each slash.
    let mut sample = text.bytes().take(OPAQUE_SAMPLE_CHARACTERS);
    OPAQUE_KEYS.contains(&key.trim_matches('"'))
        && sample.clone().all(|b| b.is_ascii_alphanumeric() || b"+/-_=\\".contains(&b))
        && sample.clone().any(|b| b.is_ascii_digit())
        && sample.any(|b| b.is_ascii_alphabetic())
}

/// Whether a text starts with `data:`, a media type without whitespace, and a comma.
fn is_data_url(text: &[u8]) -> bool {
    let head = text.get(..MEDIA_TYPE_BYTES_MAX).unwrap_or(text);
    head.strip_prefix(b"data:")
        .and_then(|rest| rest.split(|&byte| byte == b',').next().filter(|t| t.len() < rest.len()))
        .is_some_and(|media_type| !media_type.iter().any(u8::is_ascii_whitespace))
}
