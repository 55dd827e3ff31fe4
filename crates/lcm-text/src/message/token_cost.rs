//! Estimates the token cost of a part, in quarter tokens.
//!
//! In: a part. Out: the cost of its texts, names, inputs and outputs, without the JSON around them.
//! A long base64 string or data URL is *opaque*: a document or a recording has a price by its size,
//! any other file, such as an image, a flat price. [`crate::base::tokens`] estimates texts.

use crate::{
    base::{
        int,
        json::{self, ByteSpan, JsonKind, JsonScanner, JsonTokenKind},
        tokens::{self, TokenMeter},
    },
    message::part::Part,
};

/// Flat price of an opaque string, in quarter tokens: an image.
const OPAQUE_QUARTERS: u64 = 4 * 1600;

/// Most quarter tokens of an opaque string: 100 pages, the most that Anthropic takes with a window
/// of 200,000 tokens.
const OPAQUE_QUARTERS_MAX: u64 = 4 * 200_000;

/// Bytes of a document that cost a quarter token, and its least price in quarter tokens.
///
/// A page is taken to have 48,000 bytes and to cost 2,000 tokens, for its text and its picture.
/// Anthropic states 1,500 to 3,000 for the text of a page (page "PDF support"), Gemini 258 (page
/// "Document understanding"); both read on 2026-11-28. The least is one image.
const DOCUMENT: (u64, u64) = (6, OPAQUE_QUARTERS);

/// Bytes of a recording that cost a quarter token, and its least price.
///
/// A second is taken to have 16,000 bytes (128 kbit) and to cost 32 tokens. Gemini states 32 (page
/// "Understand and count tokens"), OpenAI 10 (page "Managing costs" of the Realtime API); both read
/// on 2026-11-28.
const AUDIO: (u64, u64) = (125, 0);

/// Likewise for samples that are not compressed: 32,000 bytes a second (16 kHz, 16 bit, one
/// channel).
const WAVE: (u64, u64) = (250, 0);

/// How the media type or the base64 of files with a price by size begins. Chat messages and tool
/// results state no media type, so the first bytes of PDF, WAV, MP3, Ogg and FLAC count.
const SIZED_KINDS: [(&str, (u64, u64)); 8] = [
    ("application/pdf", DOCUMENT),
    ("JVBER", DOCUMENT),
    ("UklGR", WAVE),
    ("audio/", AUDIO),
    ("SUQz", AUDIO),
    ("//", AUDIO),
    ("T2dnU", AUDIO),
    ("ZkxhQ", AUDIO),
];

/// How an opaque string is priced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FilePrice {
    /// Documents and recordings by their size.
    BySize,
    /// Every file like an image.
    Flat,
}

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
    part_quarters(raw, part, FilePrice::BySize)
}

/// Returns the cost of one part in quarter tokens if every file were an image: what decides whether
/// texts have to leave a message.
pub(super) fn flat_quarter_tokens(raw: &str, part: &Part) -> u64 {
    part_quarters(raw, part, FilePrice::Flat)
}

fn part_quarters(raw: &str, part: &Part, price: FilePrice) -> u64 {
    let slice = |span: ByteSpan| json::slice_span(raw, span);
    let text = |span: Option<ByteSpan>| span.map_or(0, |span| text_quarters(slice(span)));
    let value = |span: Option<ByteSpan>| span.map_or(0, |span| value_quarters(slice(span), price));
    let any = |span: Option<ByteSpan>| {
        let is_text = span.is_some_and(|span| json::kind(raw, span) == JsonKind::String);
        if is_text { text(span) } else { value(span) }
    };
    match *part {
        Part::Text { text: span } | Part::Reasoning { text: span } => text(Some(span)),
        Part::ToolCall { name, input, .. } => {
            let compact = input.map_or(0, |input| input_quarters(slice(input), price));
            text(name) + compact
        }
        Part::ToolResult { name, output, .. } => text(name) + any(output),
        Part::File { name, mime, text: content, data } => {
            let mime = mime.map_or("", slice);
            let data = data.map_or(0, |data| data_quarters(mime, slice(data), price));
            text(name) + any(content) + data
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

/// Returns the quarter tokens of a file's data: the price of an opaque string if the data has at
/// least [`OPAQUE_CHARACTERS_MIN`] characters.
fn data_quarters(mime: &str, value: &str, price: FilePrice) -> u64 {
    let mut characters = 0_usize;
    json::each_text(value, &mut |piece| characters += piece.chars().count());
    if characters >= OPAQUE_CHARACTERS_MIN {
        opaque_quarters(mime, value, price)
    } else {
        text_quarters(value)
    }
}

/// Returns the price of an opaque string literal in quarter tokens. `mime`: its media type as a
/// literal; empty: not given.
fn opaque_quarters(mime: &str, literal: &str, price: FilePrice) -> u64 {
    let [mime, text] = [mime, literal].map(|literal| literal.trim_matches('"'));
    let url = text.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    let (mime, data) = url.unwrap_or((mime, text));
    // WebP begins like WAV.
    let is_image = mime.starts_with("image/") || data.get(12..16) == Some("RUJQ");
    let begins = |start: &str| mime.starts_with(start) || (!is_image && data.starts_with(start));
    let kind = SIZED_KINDS.iter().find(|(start, _)| begins(start));
    match kind.filter(|_| price == FilePrice::BySize) {
        Some((_, (bytes, least))) => {
            (int::to_u64(data.len()) * 3 / (4 * bytes)).clamp(*least, OPAQUE_QUARTERS_MAX)
        }
        None => OPAQUE_QUARTERS,
    }
}

/// Returns the quarter tokens of a call's arguments, as JSON without whitespace outside strings.
fn input_quarters(value: &str, price: FilePrice) -> u64 {
    let mut compact = TokenMeter::default();
    json::each_compact_piece(value, &mut |piece| compact.push_text(piece));
    let as_written = tokens::estimate_quarter_tokens(value);
    (value_quarters(value, price) + compact.quarter_tokens()).saturating_sub(as_written)
}

/// Returns the quarter tokens of JSON as written: one value, or several values separated by commas.
/// Opaque strings have their price.
fn value_quarters(value: &str, price: FilePrice) -> u64 {
    if value.len() < OPAQUE_CHARACTERS_MIN {
        return tokens::estimate_quarter_tokens(value);
    }
    let (mut meter, mut opaque, mut from) = (TokenMeter::default(), 0, 0);
    // The value is nested in a message whose depth is within the limit, so scanning the value
    // inside one assumed array stays within the limit.
    let mut scanner = JsonScanner::inside_array(value);
    let mut key = "";
    while let Ok(Some(token)) = scanner.next_token() {
        let literal = value.get(token.start..token.end).unwrap_or_default();
        match token.kind {
            JsonTokenKind::Key => key = literal,
            JsonTokenKind::String if is_opaque(key, literal) => {
                // The quotes count.
                meter.push_text(value.get(from..=token.start).unwrap_or_default());
                opaque += opaque_quarters("", literal, price);
                from = token.end - 1;
            }
            _ => {}
        }
    }
    meter.push_text(value.get(from..).unwrap_or_default());
    meter.quarter_tokens() + opaque
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
