//! Finds the members and elements in JSON text, without a tree and without a copy.
//!
//! Input: the JSON text of one message or document. Output: spans of members and elements in the
//! text, and decoded strings on demand. The grammar is RFC 8259 with one exception: an escape of
//! half a surrogate pair is accepted and decoded as U+FFFD. No function recurses, and every call
//! takes at most linear time.

use alloc::{borrow::Cow, string::String, vec::Vec};

use lcm_loops::{
    json_scanner::{JsonFault, JsonScanner, JsonTokenKind},
    json_string::{self, each_compact_piece, string_body},
};
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};

/// A range of bytes of a JSON text or raw message.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ByteSpan {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub length: u32,
}

impl ByteSpan {
    /// Creates the span from `start` up to but excluding `end`; a larger offset than `u32::MAX`
    /// becomes `u32::MAX`.
    pub fn from_range(start: usize, end: usize) -> Self {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        Self { start, length: end.saturating_sub(start) }
    }
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JsonKind {
    /// `{...}`.
    Object,
    /// `[...]`.
    Array,
    /// `"..."`.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
}

/// One member of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JsonMember {
    /// The key as written, quotes included; [`text()`] decodes the key.
    pub key: ByteSpan,
    /// The value as written.
    pub value: ByteSpan,
    /// The type of the value.
    pub kind: JsonKind,
}

/// One element of an array.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JsonValue {
    /// The value as written.
    pub span: ByteSpan,
    /// The type of the value.
    pub kind: JsonKind,
}

/// Returns the members of the JSON object in `raw`, in order, duplicates included.
///
/// # Errors
///
/// `invalid-input`: `raw` is not exactly one JSON object or is nested deeper than
/// [`DEPTH_MAX`](super::DEPTH_MAX), with the byte offset; or `raw` has 4 GiB or more.
///
/// # Examples
///
/// ```
/// use lcm_text::base::json;
///
/// let raw = r#"{"name": "caf\u00e9", "sizes": [1, 2]}"#;
/// let members = json::parse_object(raw)?;
/// let name = json::find_member(&members, raw, "name").map(|member| member.value);
/// assert_eq!(name.map(|span| json::text(raw, span).into_owned()), Some("caf\u{e9}".into()));
///
/// let error = json::parse_object("[]").map(|_| ()).unwrap_err();
/// assert_eq!(
///     error.message,
///     "must be one JSON object: found another type of value at byte 0"
/// );
/// # Ok::<(), lcm_text::base::error::Error>(())
/// ```
pub fn parse_object(raw: &str) -> Result<Vec<JsonMember>> {
    if u32::try_from(raw.len()).is_err() {
        return Err(Error::invalid_input("a JSON text must be shorter than 4 GiB"));
    }
    collect_members(raw, 0).map_err(|fault| {
        Error::invalid_input(format_args!(
            "must be one JSON object: {} at byte {}",
            fault.what, fault.at
        ))
    })
}

/// Returns the members of the object at `span`, in order, duplicates included; empty for any other
/// value and for malformed JSON.
#[must_use]
pub fn list_members(raw: &str, span: ByteSpan) -> Vec<JsonMember> {
    collect_members(slice_span(raw, span), to_index(span.start)).unwrap_or_default()
}

/// Returns the elements of the array at `span`, in order; empty for any other value and for
/// malformed JSON.
#[must_use]
pub fn list_elements(raw: &str, span: ByteSpan) -> Vec<JsonValue> {
    collect_elements(slice_span(raw, span), to_index(span.start)).unwrap_or_default()
}

/// Calls `take` with each member of the object at `span`, in order, up to the first syntax error;
/// never for any other value.
pub(crate) fn each_member(raw: &str, span: ByteSpan, mut take: impl FnMut(JsonMember)) {
    // The error would only say that the value is no object or is malformed.
    let _ = each_inside(
        slice_span(raw, span),
        to_index(span.start),
        JsonTokenKind::ObjectStart,
        |key, JsonValue { span, kind }| take(JsonMember { key, value: span, kind }),
    );
}

/// Calls `take` with each element of the array at `span`, in order, up to the first syntax error;
/// never for any other value. Returns whether the value is a complete array.
pub(crate) fn each_element(raw: &str, span: ByteSpan, mut take: impl FnMut(JsonValue)) -> bool {
    let base = to_index(span.start);
    each_inside(slice_span(raw, span), base, JsonTokenKind::ArrayStart, |_, value| take(value))
        .is_ok()
}

/// Returns the first element of the array at `span` without reading the rest of the array. `None`:
/// an empty array, any other value, or malformed JSON before the end of the element.
pub(crate) fn first_element(raw: &str, span: ByteSpan) -> Option<JsonValue> {
    let (value, base) = (slice_span(raw, span), to_index(span.start));
    let mut scanner = JsonScanner::new(value);
    let mut start = None;
    while let Ok(Some(token)) = scanner.next_token() {
        let is_start = matches!(token.kind, JsonTokenKind::ObjectStart | JsonTokenKind::ArrayStart);
        match token.depth {
            0 if token.kind != JsonTokenKind::ArrayStart => return None,
            1 if is_start => start = Some(token.start),
            1 => {
                let begin = base.saturating_add(start.unwrap_or(token.start));
                let span = ByteSpan::from_range(begin, base.saturating_add(token.end));
                return Some(JsonValue { span, kind: kind_of(token.kind) });
            }
            _ => {}
        }
    }
    None
}

/// Returns whether a JSON value, or a comma-separated list of values, has more than `max` tokens:
/// brackets, braces, keys and scalar values. Only tokens before the first syntax error count.
pub(crate) fn has_more_tokens(value: &str, max: usize) -> bool {
    let mut scanner = JsonScanner::inside_array(value);
    let mut count = 0;
    while count <= max && matches!(scanner.next_token(), Ok(Some(_))) {
        count += 1;
    }
    count > max
}

/// Returns the last member whose decoded key is `key`; `None`: no member has the key.
#[must_use]
pub fn find_member<'a>(members: &'a [JsonMember], raw: &str, key: &str) -> Option<&'a JsonMember> {
    members.iter().rev().find(|member| is_equal_text(raw, member.key, key))
}

/// Returns whether the decoded text of the string at `span` is `expected`, which must have no
/// backslash.
pub fn is_equal_text(raw: &str, span: ByteSpan, expected: &str) -> bool {
    let literal = slice_span(raw, span);
    match string_body(literal) {
        // An escape is longer than its character. So an equal text is no longer than `expected`
        // only if it is written without escapes.
        Some(written) if written.len() <= expected.len() => written == expected,
        _ => json_string::decode_string(literal) == expected,
    }
}

/// Returns the type of the value at `span` by its first character; [`JsonKind::Null`] also for a
/// span outside `raw`.
#[must_use]
pub fn kind(raw: &str, span: ByteSpan) -> JsonKind {
    match slice_span(raw, span).as_bytes().first() {
        Some(b'{') => JsonKind::Object,
        Some(b'[') => JsonKind::Array,
        Some(b'"') => JsonKind::String,
        Some(b't' | b'f') => JsonKind::Bool,
        Some(b'-' | b'0'..=b'9') => JsonKind::Number,
        _ => JsonKind::Null,
    }
}

/// Returns the text at `span`; empty when `span` is not in `raw` on character boundaries.
#[must_use]
pub fn slice_span(raw: &str, span: ByteSpan) -> &str {
    let start = to_index(span.start);
    raw.get(start..start.saturating_add(to_index(span.length))).unwrap_or_default()
}

/// Returns a string value decoded, with half a surrogate pair as U+FFFD, and any other value as its
/// JSON text.
#[must_use]
pub fn text(raw: &str, span: ByteSpan) -> Cow<'_, str> {
    json_string::decode_string(slice_span(raw, span))
}

/// Returns the value at `span` without whitespace outside strings.
#[must_use]
pub fn compact_value(raw: &str, span: ByteSpan) -> String {
    let value = slice_span(raw, span);
    let mut out = String::with_capacity(value.len());
    each_compact_piece(value, &mut |piece| out.push_str(piece));
    out
}

/// Converts an offset to an index; an offset that does not fit becomes `usize::MAX`.
fn to_index(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

const fn kind_of(token: JsonTokenKind) -> JsonKind {
    match token {
        JsonTokenKind::ObjectStart | JsonTokenKind::ObjectEnd => JsonKind::Object,
        JsonTokenKind::ArrayStart | JsonTokenKind::ArrayEnd => JsonKind::Array,
        JsonTokenKind::Key | JsonTokenKind::String => JsonKind::String,
        JsonTokenKind::Number => JsonKind::Number,
        JsonTokenKind::True | JsonTokenKind::False => JsonKind::Bool,
        JsonTokenKind::Null => JsonKind::Null,
    }
}

/// Calls `take` with each member, or each element with an empty key, of the object or array that
/// `value` is. `opening` is the expected first token; `base` is added to each offset.
///
/// # Errors
///
/// `value` is another type of value or malformed; `take` was called for what precedes a syntax
/// error.
fn each_inside(
    value: &str,
    base: usize,
    opening: JsonTokenKind,
    mut take: impl FnMut(ByteSpan, JsonValue),
) -> core::result::Result<(), JsonFault> {
    let mut scanner = JsonScanner::new(value);
    match scanner.next_token()? {
        Some(token) if token.kind == opening => {}
        Some(token) => {
            return Err(JsonFault { what: "found another type of value", at: token.start });
        }
        None => return Err(JsonFault { what: "found no value", at: 0 }),
    }
    let mut key = ByteSpan::default();
    let mut start = 0;
    while let Some(token) = scanner.next_token()? {
        if token.depth != 1 {
            continue;
        }
        let span =
            ByteSpan::from_range(base.saturating_add(token.start), base.saturating_add(token.end));
        match token.kind {
            JsonTokenKind::Key => key = span,
            JsonTokenKind::ObjectStart | JsonTokenKind::ArrayStart => start = token.start,
            JsonTokenKind::ObjectEnd | JsonTokenKind::ArrayEnd => {
                let begin = base.saturating_add(start);
                let span = ByteSpan::from_range(begin, base.saturating_add(token.end));
                take(key, JsonValue { span, kind: kind_of(token.kind) });
            }
            _ => take(key, JsonValue { span, kind: kind_of(token.kind) }),
        }
    }
    Ok(())
}

fn collect_members(value: &str, base: usize) -> core::result::Result<Vec<JsonMember>, JsonFault> {
    let mut members = Vec::new();
    each_inside(value, base, JsonTokenKind::ObjectStart, |key, JsonValue { span, kind }| {
        members.push(JsonMember { key, value: span, kind });
    })?;
    Ok(members)
}

fn collect_elements(value: &str, base: usize) -> core::result::Result<Vec<JsonValue>, JsonFault> {
    let mut elements = Vec::new();
    each_inside(value, base, JsonTokenKind::ArrayStart, |_, value| elements.push(value))?;
    Ok(elements)
}
