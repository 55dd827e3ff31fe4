//! Estimates the token cost of a part, in quarter tokens.
//!
//! In: a part. Out: the cost of its texts, names, inputs and outputs, without the JSON around them.
//! A long base64 string or data URL is *opaque* and has a flat price, because its length says
//! nothing about the provider's price. [`crate::base::tokens`] estimates texts.

use crate::{
    base::{
        json::{self, ByteSpan, JsonKind, JsonScanner, JsonTokenKind},
        tokens::{self, TokenMeter},
    },
    message::part::Part,
};

/// Price of an opaque string, in quarter tokens.
const OPAQUE_QUARTERS: u64 = 4 * 1600;

/// Fewest characters of the data of a file, or bytes of another string, that can be opaque.
const OPAQUE_CHARACTERS_MIN: usize = 4096;

/// Number of bytes at the beginning of a string that are tested for base64.
const OPAQUE_SAMPLE_CHARACTERS: usize = 512;

/// Bytes at the beginning of a data URL that must contain its comma.
const MEDIA_TYPE_BYTES_MAX: usize = 256;

/// Keys under which a long string is opaque if it looks like base64.
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
    let mut meter = TokenMeter::default();
    json::each_text(value, &mut |piece| meter.push_text(piece));
    meter.quarter_tokens()
}

/// Returns the quarter tokens of a file's data: the flat price if the data has at least
/// [`OPAQUE_CHARACTERS_MIN`] characters.
fn data_quarters(value: &str) -> u64 {
    let mut characters = 0_usize;
    json::each_text(value, &mut |piece| characters += piece.chars().count());
    if characters >= OPAQUE_CHARACTERS_MIN { OPAQUE_QUARTERS } else { text_quarters(value) }
}

/// Returns the quarter tokens of a call's arguments, as JSON without whitespace outside strings.
fn input_quarters(raw: &str, input: ByteSpan) -> u64 {
    let value = json::slice_span(raw, input);
    let mut compact = TokenMeter::default();
    json::each_compact_piece(value, &mut |piece| compact.push_text(piece));
    let as_written = tokens::estimate_quarter_tokens(value);
    (value_quarters(value) + compact.quarter_tokens()).saturating_sub(as_written)
}

/// Returns the quarter tokens of JSON as written: one value, or several values separated by commas.
/// Opaque strings have the flat price.
fn value_quarters(value: &str) -> u64 {
    let mut sum = tokens::estimate_quarter_tokens(value);
    if value.len() < OPAQUE_CHARACTERS_MIN {
        return sum;
    }
    // The value is nested in a message whose depth is within the limit, so scanning the value
    // inside one assumed array stays within the limit.
    let mut scanner = JsonScanner::inside_array(value);
    let mut key = "";
    while let Ok(Some(token)) = scanner.next_token() {
        let literal = value.get(token.start..token.end).unwrap_or_default();
        match token.kind {
            JsonTokenKind::Key => key = literal,
            JsonTokenKind::String if is_opaque(key, literal) => {
                // 2 quarter tokens for the quotes.
                let known = tokens::estimate_quarter_tokens(literal);
                sum = (sum + 2 + OPAQUE_QUARTERS).saturating_sub(known);
            }
            _ => {}
        }
    }
    sum
}

/// Returns whether a string literal under `key` is opaque.
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

/// Returns whether a text starts with `data:`, text without whitespace, and a comma, within
/// [`MEDIA_TYPE_BYTES_MAX`] bytes.
fn is_data_url(text: &[u8]) -> bool {
    let head = text.get(..MEDIA_TYPE_BYTES_MAX).unwrap_or(text);
    head.strip_prefix(b"data:")
        .and_then(|rest| rest.split(|&byte| byte == b',').next().filter(|t| t.len() < rest.len()))
        .is_some_and(|media_type| !media_type.iter().any(u8::is_ascii_whitespace))
}
