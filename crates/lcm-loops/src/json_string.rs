//! Decodes and encodes JSON string literals.
//!
//! Input for decoding: JSON values that [`crate::json_scanner`] accepted, strings with quotes.
//! Output: the characters of a string; another value is returned as written. [`write_string`]
//! encodes a text as a literal. No function can fail.

use alloc::{borrow::Cow, string::String};

use crate::json_scanner::{count_plain_bytes, string_end};

/// A piece of decoded text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StringPiece<'a> {
    /// Text without escapes, borrowed from the literal.
    Plain(&'a str),
    /// An escaped character.
    Char(char),
    /// Escape of half a surrogate pair without its other half, U+D800 to U+DFFF.
    LoneSurrogate(u16),
}

/// Returns the text between the quotes of a literal; `None`: the text is no literal.
#[must_use]
pub fn string_body(literal: &str) -> Option<&str> {
    match literal.as_bytes() {
        [b'"', .., b'"'] => literal.get(1..literal.len() - 1),
        _ => None,
    }
}

/// Decodes the first piece of `written`, the text between quotes or the rest of it. Returns the
/// piece and its bytes in `written`; `None`: `written` is empty.
#[must_use]
pub fn first_piece(written: &str) -> Option<(StringPiece<'_>, usize)> {
    match written.split_once('\\') {
        Some(("", escape)) => {
            let (piece, used) = decode_escape(escape);
            Some((piece, used + 1))
        }
        Some((plain, _)) => Some((StringPiece::Plain(plain), plain.len())),
        None => (!written.is_empty()).then_some((StringPiece::Plain(written), written.len())),
    }
}

/// Calls `emit` with each piece of the decoded text of a JSON value, in order. A value that is no
/// string is one piece, as written.
pub fn each_piece<'a>(value: &'a str, emit: &mut dyn FnMut(StringPiece<'a>)) {
    let Some(mut rest) = string_body(value) else {
        return emit(StringPiece::Plain(value));
    };
    while let Some((piece, used)) = first_piece(rest) {
        emit(piece);
        rest = rest.get(used..).unwrap_or_default();
    }
}

/// Calls `emit` with the pieces of [`each_piece`] as text; a lone half of a surrogate pair becomes
/// U+FFFD.
pub fn each_text(value: &str, emit: &mut dyn FnMut(&str)) {
    each_piece(value, &mut |piece| match piece {
        StringPiece::Plain(plain) => emit(plain),
        StringPiece::Char(c) => emit(c.encode_utf8(&mut [0; 4])),
        StringPiece::LoneSurrogate(_) => emit("\u{fffd}"),
    });
}

/// Returns the decoded text of a string, or any other JSON value unchanged.
#[must_use]
pub fn decode_string(value: &str) -> Cow<'_, str> {
    match string_body(value) {
        None => Cow::Borrowed(value),
        Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        Some(escaped) => {
            let mut out = String::with_capacity(escaped.len());
            each_text(value, &mut |piece| out.push_str(piece));
            Cow::Owned(out)
        }
    }
}

/// Splits a JSON value at its whitespace outside of strings, and calls `emit` with each piece in
/// order. Pieces may be empty.
pub fn each_compact_piece<'a>(value: &'a str, emit: &mut dyn FnMut(&'a str)) {
    let bytes = value.as_bytes();
    let (mut from, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at).unwrap_or(bytes.len()),
            b' ' | b'\n' | b'\r' | b'\t' => {
                emit(value.get(from..at).unwrap_or_default());
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    emit(value.get(from..).unwrap_or_default());
}

/// Appends `text` as a JSON string literal with the fewest escapes.
///
/// ```
/// use lcm_loops::json_string::{decode_string, write_string};
///
/// let mut literal = String::new();
/// write_string(&mut literal, "a \"b\"\n");
/// assert_eq!(literal, r#""a \"b\"\n""#);
/// assert_eq!(decode_string(&literal), "a \"b\"\n");
/// ```
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, from) =
            rest.split_at_checked(count_plain_bytes(rest.as_bytes())).unwrap_or((rest, ""));
        out.push_str(plain);
        if from.is_empty() {
            break;
        }
        let mut chars = from.chars();
        match chars.next().unwrap_or('\0') {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c @ ('"' | '\\') => out.extend(['\\', c]),
            c => {
                let code = u32::from(c);
                let digit = |shift: u32| char::from_digit((code >> shift) & 0xF, 16).unwrap_or('0');
                out.extend(['\\', 'u', '0', '0', digit(4), digit(0)]);
            }
        }
        rest = chars.as_str();
    }
    out.push('"');
}

/// Decodes the escape at the beginning of `escape`, without its backslash; returns the piece and
/// the bytes of the escape.
fn decode_escape(escape: &str) -> (StringPiece<'_>, usize) {
    let c = match escape.as_bytes().first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return decode_unicode_escape(escape),
        Some(_) => match escape.chars().next() {
            Some(c) => return (StringPiece::Char(c), c.len_utf8()),
            None => '\u{fffd}',
        },
        None => '\u{fffd}',
    };
    (StringPiece::Char(c), 1)
}

/// Decodes an escape of `u` and four hex digits as [`decode_escape`] does. Two escapes of a
/// surrogate pair are one piece.
fn decode_unicode_escape(escape: &str) -> (StringPiece<'_>, usize) {
    let Some(unit) = escape.get(1..5).and_then(|hex| u16::from_str_radix(hex, 16).ok()) else {
        return (StringPiece::Char('\u{fffd}'), 1);
    };
    let second = escape
        .get(5..11)
        .and_then(|second| second.strip_prefix("\\u"))
        .and_then(|hex| u16::from_str_radix(hex, 16).ok());
    if let Some(c) = char::from_u32(u32::from(unit)) {
        return (StringPiece::Char(c), 5);
    }
    let pair = second.and_then(|second| char::decode_utf16([unit, second]).next()?.ok());
    match pair {
        Some(c) => (StringPiece::Char(c), 11),
        None => (StringPiece::LoneSurrogate(unit), 5),
    }
}
