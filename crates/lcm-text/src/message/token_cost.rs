//! Token cost of a part, in quarter tokens.
//!
//! In: a part. Out: the cost of its texts, names, inputs and outputs, without the JSON around them.
//! A long base64 or other opaque string has a flat price: its size says nothing about the
//! provider's price. Deliberately elsewhere: the estimate of a text ([`crate::base::tokens`]).

use crate::{
    base::{
        json::{self, ByteSpan, JsonKind, JsonScanner, JsonTokenKind},
        tokens,
    },
    message::part::Part,
};

/// Price of a long opaque string, in quarter tokens.
const OPAQUE_QUARTERS: u64 = 4 * 1600;

/// Fewest characters of an opaque string.
const OPAQUE_CHARACTERS_MIN: usize = 4096;

/// Characters at the beginning of a string that are tested for base64.
const OPAQUE_SAMPLE_CHARACTERS: usize = 512;

/// Bytes at the beginning of a data URL that must contain its comma.
const MEDIA_TYPE_BYTES_MAX: usize = 256;

/// Keys whose long strings are opaque if they look like base64.
const OPAQUE_KEYS: [&str; 7] =
    ["data", "image", "imageData", "image_data", "base64", "bytes", "source"];

/// Returns the cost of one part in quarter tokens, so that a message is rounded only once.
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
        Part::Text { text: span } | Part::Reasoning { text: span } => text(Some(span)),
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
        Part::Other { value: span } => value(Some(span)),
    }
}

/// Returns the quarter tokens of the decoded strings in a value.
fn text_quarters(value: &str) -> u64 {
    let mut sum = 0_u64;
    json::each_text(value, &mut |piece| sum += tokens::estimate_quarter_tokens(piece));
    sum
}

/// Returns the quarter tokens of base64 data: the flat price if the data is long.
fn data_quarters(value: &str) -> u64 {
    let mut characters = 0_usize;
    json::each_text(value, &mut |piece| characters += piece.chars().count());
    if characters >= OPAQUE_CHARACTERS_MIN { OPAQUE_QUARTERS } else { text_quarters(value) }
}

/// Returns the quarter tokens of a call's arguments, as JSON without spacing.
fn input_quarters(raw: &str, input: ByteSpan) -> u64 {
    let value = json::slice_span(raw, input);
    let mut spacing = tokens::estimate_quarter_tokens(value);
    json::each_compact_piece(value, &mut |piece| spacing -= tokens::estimate_quarter_tokens(piece));
    value_quarters(value) - spacing
}

/// Returns the quarter tokens of JSON as written: one value, or several with commas between them.
/// Long opaque strings have the flat price.
fn value_quarters(value: &str) -> u64 {
    let mut sum = tokens::estimate_quarter_tokens(value);
    if value.len() < OPAQUE_CHARACTERS_MIN {
        return sum;
    }
    // Every value is inside a message, so one assumed open array cannot exceed the nesting limit.
    let mut scanner = JsonScanner::inside_array(value);
    let mut key = "";
    while let Ok(Some(token)) = scanner.next_token() {
        let literal = value.get(token.start..token.end).unwrap_or_default();
        match token.kind {
            JsonTokenKind::Key => key = literal,
            JsonTokenKind::String if is_opaque(key, literal) => {
                // 2 quarter tokens for the quotes.
                sum = sum + 2 + OPAQUE_QUARTERS - tokens::estimate_quarter_tokens(literal);
            }
            _ => {}
        }
    }
    sum
}

/// Returns whether a string literal under `key` is data and not text.
fn is_opaque(key: &str, literal: &str) -> bool {
    let text = literal.trim_matches('"');
    if text.len() < OPAQUE_CHARACTERS_MIN {
        return false;
    }
    if is_data_url(text.as_bytes()) {
        return true;
    }
    // Some JSON writers escape each slash with a backslash.
    let mut sample = text.bytes().take(OPAQUE_SAMPLE_CHARACTERS);
    OPAQUE_KEYS.contains(&key.trim_matches('"'))
        && sample.clone().all(|b| b.is_ascii_alphanumeric() || b"+/-_=\\".contains(&b))
        && sample.clone().any(|b| b.is_ascii_digit())
        && sample.any(|b| b.is_ascii_alphabetic())
}

/// Returns whether a text starts with `data:`, a media type without whitespace, and a comma.
fn is_data_url(text: &[u8]) -> bool {
    let head = text.get(..MEDIA_TYPE_BYTES_MAX).unwrap_or(text);
    head.strip_prefix(b"data:")
        .and_then(|rest| rest.split(|&byte| byte == b',').next().filter(|t| t.len() < rest.len()))
        .is_some_and(|media_type| !media_type.iter().any(u8::is_ascii_whitespace))
}
