//! Writes the outline of images and other binary data, mostly in base64.
//!
//! In: base64, bare or in a `data:` URL, or binary data that was read as text. Out: format and
//! number of bytes. The outline of a PNG, JPEG, GIF or WebP image in base64 also has the width and
//! height, unless the header is broken. Only the beginning is decoded, and only the image header is
//! read.

use alloc::vec::Vec;

use crate::{
    base::int,
    message::outline::{
        outline_writer::OutlineWriter,
        payload_text::{PayloadFormat, PayloadText},
    },
};

/// Beginnings of base64 by format, with the media type.
const MAGICS: [(&str, PayloadFormat, &str); 8] = [
    ("/9j/", PayloadFormat::Image("JPEG"), "image/jpeg"),
    ("iVBOR", PayloadFormat::Image("PNG"), "image/png"),
    ("R0lGOD", PayloadFormat::Image("GIF"), "image/gif"),
    ("UklGR", PayloadFormat::Image("WebP"), "image/webp"),
    ("PHN2Zy", PayloadFormat::Image("SVG"), "image/svg+xml"),
    ("JVBERi", PayloadFormat::Binary, "application/pdf"),
    ("UEsDB", PayloadFormat::Binary, "application/zip"),
    ("H4sI", PayloadFormat::Binary, "application/gzip"),
];
/// Media type of binary data in an unknown format.
const UNKNOWN_MIME: &str = "application/octet-stream";
/// Bytes or characters at the beginning that are examined to recognise binary data.
const SAMPLE: usize = 4_096;
/// Fewest bytes of bare base64 with a known beginning.
const MAGIC_MIN: usize = 32;
/// Fewest bytes of bare base64 with an unknown beginning.
const BARE_MIN: usize = 400;
/// Most bytes that are decoded: a JPEG can have a preview image before its width and height.
const DECODED_MAX: usize = 96 << 10;

/// Returns the data behind the header of a base64 `data:` URL, and `true`; for any other text, the
/// text and `false`.
fn strip_data_url(text: &str) -> (&str, bool) {
    let behind = text.strip_prefix("data:").and_then(|text| text.split_once(";base64,"));
    // The header of a `data:` URL is short; a later `;base64,` belongs to other text.
    match behind.filter(|(header, _)| header.len() < 100) {
        Some((_, data)) => (data, true),
        None => (text, false),
    }
}

/// Returns the format and media type of base64 with a known beginning; `None`: unknown beginning.
fn find_magic(data: &str) -> Option<(PayloadFormat, &'static str)> {
    let row = MAGICS.iter().find(|row| data.starts_with(row.0));
    row.map(|row| (row.1, row.2))
}

/// Returns the media type of binary data; [`UNKNOWN_MIME`] for an unknown format.
pub(super) fn binary_mime(text: &str) -> &'static str {
    find_magic(strip_data_url(text.trim_start()).0).map_or(UNKNOWN_MIME, |found| found.1)
}

/// Returns the format of binary data; `None`: the payload is text.
pub(super) fn detect_binary(text: &str) -> Option<PayloadFormat> {
    let (data, declared) = strip_data_url(text);
    let sample = || data.bytes().take(SAMPLE);
    let all = sample().all(|byte| decode_sextet(byte).is_some() || b"\r\n=".contains(&byte));
    let any = |is: fn(&u8) -> bool| sample().any(|byte| is(&byte));
    let mixed =
        any(u8::is_ascii_uppercase) && any(u8::is_ascii_lowercase) && any(u8::is_ascii_digit);
    match find_magic(data) {
        Some((kind, _)) if declared || (all && data.len() >= MAGIC_MIN) => return Some(kind),
        None if declared || (all && mixed && data.len() >= BARE_MIN) => {
            return Some(PayloadFormat::Binary);
        }
        _ => {}
    }
    let is_binary =
        |c: &char| *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace() && *c != '\u{1b}');
    let sample = || text.chars().take(SAMPLE);
    (sample().filter(is_binary).count() * 10 > sample().count()).then_some(PayloadFormat::Binary)
}

/// Writes the outline of an image or of other binary data.
pub(super) fn outline_binary(
    writer: &mut OutlineWriter,
    payload: &PayloadText<'_>,
    kind: PayloadFormat,
) {
    let text = payload.head.trim();
    let (data, declared) = strip_data_url(text);
    let found = find_magic(data);
    let encoded = declared || detect_binary(text).is_some_and(|_| data.bytes().all(is_base64));
    match kind {
        PayloadFormat::Image(format) => {
            writer.push_text(format);
            writer.push_text(" image");
        }
        _ => writer.push_text("Binary data"),
    }
    if let (PayloadFormat::Binary, Some((_, mime))) = (kind, found) {
        writer.push_text(", ");
        writer.push_text(mime);
    }
    let bytes = decode_base64(data);
    if let Some((width, height)) = read_dimensions(&bytes).filter(|_| encoded) {
        writer.push_text(", ");
        writer.push_number(width);
        writer.push_text(" x ");
        writer.push_count(height, "pixel");
    }
    writer.push_text(", ");
    if encoded {
        let sextets =
            int::to_u64(data.bytes().filter(|byte| decode_sextet(*byte).is_some()).count());
        // Every unread byte is assumed to be a base64 character.
        let unread = payload.bytes.saturating_sub(int::to_u64(payload.head.len()));
        let all = if payload.is_whole { sextets } else { sextets + unread };
        writer.push_text(if payload.is_whole { "" } else { "about " });
        writer.push_count(all / 4 * 3 + (all % 4).saturating_sub(1), "byte");
        writer.push_text(", in base64");
    } else {
        writer.push_count(payload.bytes, "byte");
        writer.push_text(" that are not text");
    }
}

/// Returns whether a byte can occur in base64, padding and whitespace included.
fn is_base64(byte: u8) -> bool {
    decode_sextet(byte).is_some() || byte == b'=' || byte.is_ascii_whitespace()
}

/// Returns the six bits of a base64 character, in the standard or the URL alphabet; `None`: any
/// other byte.
const fn decode_sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// Decodes the beginning of base64, at most [`DECODED_MAX`] bytes.
fn decode_base64(data: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for six in data.bytes().filter_map(decode_sextet) {
        bits = (bits << 6) | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            let [.., low] = (bits >> held).to_be_bytes();
            out.push(low);
            if out.len() >= DECODED_MAX {
                break;
            }
        }
    }
    out
}

/// Reads width and height in pixels from the header of an image; `None`: another format, too few
/// bytes, or no JPEG segment where one must start.
fn read_dimensions(bytes: &[u8]) -> Option<(u64, u64)> {
    let at = |at: usize| bytes.get(at).copied().map(u64::from);
    let big = |from: usize| Some(at(from)? << 8 | at(from + 1)?);
    let little = |from: usize| Some(at(from + 1)? << 8 | at(from)?);
    let is = |from: usize, what: &[u8]| bytes.get(from..from + what.len()) == Some(what);
    if is(1, b"PNG") {
        return Some((big(16)? << 16 | big(18)?, big(20)? << 16 | big(22)?));
    }
    if is(0, b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    if is(12, b"VP8 ") {
        return Some((little(26)? & 0x3FFF, little(28)? & 0x3FFF));
    }
    if is(12, b"VP8L") {
        let both = little(23)? << 16 | little(21)?;
        return Some(((both & 0x3FFF) + 1, (both >> 14 & 0x3FFF) + 1));
    }
    if is(12, b"VP8X") {
        let wide = |from: usize| Some((at(from + 2)? << 16 | little(from)?) + 1);
        return Some((wide(24)?, wide(27)?));
    }
    if !is(0, &[0xFF, 0xD8]) {
        return None;
    }
    let mut from = 2;
    loop {
        match (at(from)?, at(from + 1)?) {
            (0xFF, 0xFF) => from += 1,
            // Frame headers. Within C0 to CF, C4 and CC define tables, and C8 is reserved.
            (0xFF, 0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF) => {
                return Some((big(from + 7)?, big(from + 5)?));
            }
            (0xFF, _) => from += 2 + int::to_usize(big(from + 2)?),
            _ => return None,
        }
    }
}
