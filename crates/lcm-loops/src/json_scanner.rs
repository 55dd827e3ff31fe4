//! Scans the tokens of a JSON text and checks its grammar.
//!
//! Input: a text. Output: tokens with byte range and depth, or the first fault. Each open container
//! takes one bit, so memory is constant and no function recurses. `lcm-text` reads JSON with this
//! scanner.

use crate::int;

/// Largest number of containers (objects and arrays) inside each other, the outermost included.
pub const DEPTH_MAX: u32 = 512;

/// The first place at which a text is not JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JsonFault {
    /// Description of the fault; the caller appends "at byte" and the offset.
    pub what: &'static str,
    /// Byte offset of the fault.
    pub at: usize,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JsonTokenKind {
    /// `{`.
    ObjectStart,
    /// `}`.
    ObjectEnd,
    /// `[`.
    ArrayStart,
    /// `]`.
    ArrayEnd,
    /// A key, quotes included; the scanner has passed its colon.
    Key,
    /// A string, quotes included.
    String,
    /// A number.
    Number,
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`.
    Null,
}

/// One token. Colons and commas are no tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JsonToken {
    /// Kind of the token.
    pub kind: JsonTokenKind,
    /// Byte offset of the first byte of the token.
    pub start: usize,
    /// Byte offset behind the last byte of the token.
    pub end: usize,
    /// Number of containers around the token; a bracket is not inside its own container.
    pub depth: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ExpectedToken {
    Value,
    ElementOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
    Nothing,
}

/// A scanner of one JSON value with optional whitespace around it.
#[derive(Debug)]
pub struct JsonScanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    /// One bit per open container, 1 for an object; the outermost is bit 0.
    objects: [u64; 8],
    expect: ExpectedToken,
}

type ScanResult<T> = core::result::Result<T, JsonFault>;

impl<'a> JsonScanner<'a> {
    /// Starts at the beginning of a text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
            objects: [0; 8],
            expect: ExpectedToken::Value,
        }
    }

    /// Starts inside an open array, to scan a text of comma-separated values. The end of the text
    /// is a fault unless the text closes the array; all tokens before are valid.
    #[must_use]
    pub const fn inside_array(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            depth: 1,
            objects: [0; 8],
            expect: ExpectedToken::Value,
        }
    }

    /// Returns the next token; `None`: the value is complete and the text ends.
    ///
    /// # Errors
    ///
    /// The first place at which the text is not JSON.
    pub fn next_token(&mut self) -> ScanResult<Option<JsonToken>> {
        loop {
            self.skip_whitespace();
            let Some(&byte) = self.bytes.get(self.at) else {
                return if self.expect == ExpectedToken::Nothing {
                    Ok(None)
                } else {
                    Err(self.fault_here("unexpected end"))
                };
            };
            let token = match (self.expect, byte) {
                (ExpectedToken::Nothing, _) => {
                    return Err(self.fault_here("unexpected text after the value"));
                }
                (ExpectedToken::ElementOrEnd, b']') => {
                    self.close_container(JsonTokenKind::ArrayEnd)
                }
                (ExpectedToken::KeyOrEnd, b'}') => self.close_container(JsonTokenKind::ObjectEnd),
                (ExpectedToken::CommaOrEnd, b']') if !self.is_in_object() => {
                    self.close_container(JsonTokenKind::ArrayEnd)
                }
                (ExpectedToken::CommaOrEnd, b'}') if self.is_in_object() => {
                    self.close_container(JsonTokenKind::ObjectEnd)
                }
                (ExpectedToken::CommaOrEnd, b',') => {
                    self.at += 1;
                    self.expect =
                        if self.is_in_object() { ExpectedToken::Key } else { ExpectedToken::Value };
                    continue;
                }
                (ExpectedToken::CommaOrEnd, _) => {
                    return Err(self.fault_here("expected `,` or the end"));
                }
                (ExpectedToken::Key | ExpectedToken::KeyOrEnd, b'"') => self.scan_key()?,
                (ExpectedToken::Key | ExpectedToken::KeyOrEnd, _) => {
                    return Err(self.fault_here("expected a key"));
                }
                (ExpectedToken::Value | ExpectedToken::ElementOrEnd, _) => self.scan_value(byte)?,
            };
            return Ok(Some(token));
        }
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    const fn fault_here(&self, what: &'static str) -> JsonFault {
        JsonFault { what, at: self.at }
    }

    /// Makes a token from the current offset to `end` and advances to `end`.
    const fn take_token(&mut self, kind: JsonTokenKind, end: usize) -> JsonToken {
        let token = JsonToken { kind, start: self.at, end, depth: self.depth };
        self.at = end;
        token
    }

    fn expect_after_value(&mut self) {
        self.expect =
            if self.depth == 0 { ExpectedToken::Nothing } else { ExpectedToken::CommaOrEnd };
    }

    fn is_in_object(&self) -> bool {
        let innermost = self.depth.saturating_sub(1);
        let word = usize::try_from(innermost / 64).unwrap_or(usize::MAX);
        self.objects.get(word).is_some_and(|word| (word >> (innermost % 64)) & 1 == 1)
    }

    fn open_container(&mut self, kind: JsonTokenKind) -> ScanResult<JsonToken> {
        if self.depth >= DEPTH_MAX {
            return Err(self.fault_here("nesting deeper than 512"));
        }
        let is_object = kind == JsonTokenKind::ObjectStart;
        let token = self.take_token(kind, self.at + 1);
        let word = usize::try_from(self.depth / 64).unwrap_or(usize::MAX);
        if let Some(word) = self.objects.get_mut(word) {
            let bit = 1 << (self.depth % 64);
            *word = if is_object { *word | bit } else { *word & !bit };
        }
        self.depth += 1;
        self.expect = if is_object { ExpectedToken::KeyOrEnd } else { ExpectedToken::ElementOrEnd };
        Ok(token)
    }

    fn close_container(&mut self, kind: JsonTokenKind) -> JsonToken {
        self.depth = self.depth.saturating_sub(1);
        self.expect_after_value();
        self.take_token(kind, self.at + 1)
    }

    fn scan_key(&mut self) -> ScanResult<JsonToken> {
        let end = string_end(self.bytes, self.at)?;
        let token = self.take_token(JsonTokenKind::Key, end);
        self.skip_whitespace();
        if self.bytes.get(self.at) != Some(&b':') {
            return Err(self.fault_here("expected `:`"));
        }
        self.at += 1;
        self.expect = ExpectedToken::Value;
        Ok(token)
    }

    fn scan_value(&mut self, first: u8) -> ScanResult<JsonToken> {
        let (kind, end) = match first {
            b'{' => return self.open_container(JsonTokenKind::ObjectStart),
            b'[' => return self.open_container(JsonTokenKind::ArrayStart),
            b'"' => (JsonTokenKind::String, string_end(self.bytes, self.at)?),
            b'-' | b'0'..=b'9' => (JsonTokenKind::Number, number_end(self.bytes, self.at)?),
            b't' => (JsonTokenKind::True, self.literal_end(b"true")?),
            b'f' => (JsonTokenKind::False, self.literal_end(b"false")?),
            b'n' => (JsonTokenKind::Null, self.literal_end(b"null")?),
            _ => return Err(self.fault_here("expected a value")),
        };
        self.expect_after_value();
        Ok(self.take_token(kind, end))
    }

    fn literal_end(&self, literal: &[u8]) -> ScanResult<usize> {
        let end = self.at.saturating_add(literal.len());
        if self.bytes.get(self.at..end) == Some(literal) {
            Ok(end)
        } else {
            Err(self.fault_here("expected a value"))
        }
    }
}

/// Returns the offset behind the string literal whose opening quote is at `start`.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> ScanResult<usize> {
    let mut at = start + 1;
    loop {
        at += count_plain_bytes(bytes.get(at..).unwrap_or_default());
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => {
                return Err(JsonFault { what: "unexpected end of a string", at: bytes.len() });
            }
            (Some(b'"'), _) => return Ok(at + 1),
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => at += 2,
            (Some(b'\\'), Some(b'u')) => {
                let digits = bytes.get(at + 2..at + 6).unwrap_or_default();
                if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(JsonFault { what: "no four hex digits after `\\u`", at });
                }
                at += 6;
            }
            (Some(b'\\'), _) => return Err(JsonFault { what: "unknown escape", at }),
            _ => return Err(JsonFault { what: "control character in a string", at }),
        }
    }
}

/// Returns how many bytes at the beginning are neither a quote, a backslash nor below 0x20.
///
/// The function reads eight bytes at once, because every text is scanned several times.
pub(crate) fn count_plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * 0x22);
        let backslash = word ^ (ONES * 0x5C);
        // Marks bytes below 0x20, quotes and backslashes by their highest bit. A borrow can wrongly
        // mark only bytes after the first right mark, and only the first mark is used.
        let found = (word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash);
        let found = found & (ONES << 7);
        if found != 0 {
            return at + int::to_usize(u64::from(found.trailing_zeros() / 8));
        }
        at += 8;
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    at + rest.iter().take_while(is_plain).count()
}

/// Returns the offset behind the number that starts at `start`.
fn number_end(bytes: &[u8], start: usize) -> ScanResult<usize> {
    let mut at = start;
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    if bytes.get(at) == Some(&b'0') {
        at += 1;
    } else {
        at = digits_end(bytes, at)?;
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits_end(bytes, at)?;
    }
    Ok(at)
}

/// Returns the offset behind the digits that start at `start`, at least one.
fn digits_end(bytes: &[u8], start: usize) -> ScanResult<usize> {
    let rest = bytes.get(start..).unwrap_or_default();
    match rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()) {
        0 => Err(JsonFault { what: "expected a digit", at: start }),
        digits => Ok(start + digits),
    }
}
