//! Splits lines into the pieces that a summary can quote.
//!
//! Input: a line. Output: byte ranges of the line, in order.

use alloc::vec::Vec;
use core::ops::Range;

use super::term_scanner::char_at;
use crate::base::{
    int,
    tokens::{self, TokenMeter},
};

/// Most quarter tokens of a line that is not split, and of a piece that was joined from pieces.
const WHOLE_MAX: u32 = 80;
/// Quarter tokens below which a piece is joined with the next piece; below half of it, with the
/// piece before. Also the least length of a piece that ends at a space, opaque words aside.
const SHORT_MAX: u32 = 24;
/// Quarter tokens above which a piece is split at spaces.
const LONG_MAX: u32 = 200;
/// Bytes above which ASCII without a space is opaque: encoded data and not text.
const OPAQUE_MIN: usize = 240;

/// One piece of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LineSegment {
    /// Byte range in the line. Pieces of a split line have no whitespace at their ends.
    pub(super) range: Range<usize>,
    /// Index of the piece in which the JSON object around this piece opens; 0 if there is none. An
    /// object that opens with the piece itself is not around the piece. In a long line without
    /// JSON: the index of the piece itself.
    pub(super) record: usize,
}

/// Returns the cost of a text in quarter tokens.
pub(super) fn quarter_tokens_u32(text: &str) -> u32 {
    int::saturate_tokens(tokens::estimate_quarter_tokens(text))
}

/// Returns the cost of a text and of a space or line end behind it, in quarter tokens. The sum of
/// these costs is at least the cost of the joined text.
pub(super) fn line_quarters(text: &str) -> u32 {
    int::saturate_tokens(tokens::estimate_line_quarters(text))
}

/// Returns the cost of a line behind a text, in quarter tokens; the line end before it included.
pub(super) fn next_line_quarters(line: &str) -> u32 {
    quarter_tokens_u32(line).saturating_add(tokens::LINE_END_QUARTERS)
}

/// Splits a line into pieces, in order. A short line is one piece. Of a longer line, opaque pieces
/// are left out.
pub(super) fn segment_line(line: &str) -> Vec<LineSegment> {
    if quarter_tokens_u32(line) <= WHOLE_MAX {
        return Vec::from([LineSegment { range: 0..line.len(), record: 0 }]);
    }
    let data = looks_like_data(line);
    let mut atoms = Vec::new();
    split_at_level(line, 0..line.len(), BoundaryLevel::coarsest_level(data), &mut atoms);
    let mut pieces: Vec<LineSegment> = Vec::new();
    for range in join_short_segments(line, &atoms) {
        let range = trim_range(line, range);
        if !range.is_empty() && !is_opaque(line.get(range.clone()).unwrap_or("")) {
            pieces.push(LineSegment { range, record: pieces.len() });
        }
    }
    if data {
        find_records(line, &mut pieces);
    }
    pieces
}

/// The kinds of boundaries at which a line may be split, from best to worst.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BoundaryLevel {
    /// Between values of JSON.
    Value,
    /// After a sentence.
    Sentence,
    /// After a clause.
    Clause,
    /// At a space.
    Space,
    /// Behind a character outside ASCII, once the piece has [`WHOLE_MAX`] quarter tokens. ASCII
    /// without spaces is not split at this level.
    Any,
}

impl BoundaryLevel {
    const fn coarsest_level(data: bool) -> Self {
        if data { Self::Value } else { Self::Sentence }
    }

    const fn next_finer(self) -> Option<Self> {
        match self {
            Self::Value => Some(Self::Sentence),
            Self::Sentence => Some(Self::Clause),
            Self::Clause => Some(Self::Space),
            Self::Space => Some(Self::Any),
            Self::Any => None,
        }
    }

    /// Returns the quarter tokens above which a piece is split at this level.
    const fn length_max(self) -> u32 {
        match self {
            Self::Value | Self::Sentence | Self::Clause => WHOLE_MAX,
            Self::Space | Self::Any => LONG_MAX,
        }
    }

    /// Returns whether a piece may end between these bytes; `false` is certain. A fast check before
    /// [`Self::is_boundary`].
    #[inline(always)]
    const fn can_end(self, last: u8, next: u8) -> bool {
        let spaced = !matches!(next, b'!'..=b'~');
        match self {
            Self::Value => matches!(last, b',' | b'[' | b'n'),
            Self::Sentence => !last.is_ascii() || (spaced && matches!(last, b'.' | b'!' | b'?')),
            Self::Clause => !last.is_ascii() || spaced,
            Self::Space => spaced,
            Self::Any => !last.is_ascii(),
        }
    }

    /// Returns how many ASCII characters at the beginning of `bytes` cannot end a piece. The last
    /// character is never counted.
    fn count_skippable(self, mut bytes: &[u8]) -> usize {
        let mut count = 0;
        while let [last, rest @ ..] = bytes {
            match rest.first() {
                Some(next) if last.is_ascii() && !self.can_end(*last, *next) => count += 1,
                _ => break,
            }
            bytes = rest;
        }
        count
    }

    /// Returns whether a piece may end between `done`, the piece so far, and `rest`; `length` is
    /// the number of quarter tokens of `done`.
    fn is_boundary(self, done: &str, rest: &str, length: u32) -> bool {
        let last = done.chars().next_back().unwrap_or(' ');
        let spaced = rest.starts_with(char::is_whitespace);
        match self {
            Self::Value => {
                (last == ',' && rest.trim_start().starts_with(['"', '{', '[']))
                    || (last == '[' && rest.starts_with('{'))
                    || done.ends_with("\\n")
            }
            Self::Sentence => {
                matches!(last, '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\u{2026}' | '\u{ff1b}')
                    || (spaced && matches!(last, '.' | '!' | '?'))
            }
            Self::Clause => {
                matches!(last, '\u{ff0c}' | '\u{3001}' | '\u{ff1a}')
                    || (spaced && matches!(last, ',' | ';' | ':' | '|'))
                    || rest.starts_with(" - ")
                    || rest.starts_with(" (")
            }
            Self::Space => {
                // An opaque string becomes its own piece, so that it can be left out.
                spaced
                    && (length >= SHORT_MAX
                        || starts_opaque_word(rest)
                        || done.rsplit(' ').next().is_some_and(|word| word.len() > OPAQUE_MIN))
            }
            Self::Any => !last.is_ascii() && length >= WHOLE_MAX,
        }
    }
}

/// Returns whether the word after the first character of `rest` has more than [`OPAQUE_MIN`] bytes;
/// reads no further than necessary.
fn starts_opaque_word(rest: &str) -> bool {
    let mut word = rest.chars();
    word.next();
    word.as_str()
        .char_indices()
        .find(|(at, c)| c.is_whitespace() || *at > OPAQUE_MIN)
        .map_or(word.as_str().len(), |(at, _)| at)
        > OPAQUE_MIN
}

/// Appends the parts of `range`, split at boundaries of level `mark`; parts that are still too long
/// are split at finer levels.
fn split_at_level(
    line: &str,
    range: Range<usize>,
    mark: BoundaryLevel,
    atoms: &mut Vec<Range<usize>>,
) {
    let text = line.get(range.clone()).unwrap_or("");
    if quarter_tokens_u32(text) <= mark.length_max() {
        atoms.push(range);
        return;
    }
    let bytes = text.as_bytes();
    let (mut from, mut at) = (0, 0);
    let mut length = TokenMeter::default();
    loop {
        let passed = mark.count_skippable(bytes.get(at..).unwrap_or_default());
        let Some(c) = char_at(text, at + passed) else { return };
        let to = at + passed + c.len_utf8();
        length.push_text(text.get(at..to).unwrap_or_default());
        at = to;
        let (last, next) = (bytes.get(to - 1), bytes.get(to));
        let inside = |(last, next): (&u8, &u8)| !mark.can_end(*last, *next);
        if last.zip(next).is_some_and(inside) {
            continue;
        }
        let (done, rest) = (text.get(from..to).unwrap_or(""), text.get(to..).unwrap_or(""));
        if next.is_none()
            || mark.is_boundary(done, rest, int::saturate_tokens(length.quarter_tokens()))
        {
            let part = range.start + from..range.start + to;
            match mark.next_finer() {
                Some(next) => split_at_level(line, part, next, atoms),
                None => atoms.push(part),
            }
            from = to;
            length = TokenMeter::default();
        }
    }
}

/// Joins short neighbouring pieces, up to [`WHOLE_MAX`].
fn join_short_segments(line: &str, atoms: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut joined: Vec<(Range<usize>, u32)> = Vec::new();
    for atom in atoms {
        let text = line.get(atom.clone()).unwrap_or("");
        let length = quarter_tokens_u32(text);
        match joined.last_mut() {
            Some((last, sum))
                if (*sum < SHORT_MAX || length < SHORT_MAX / 2)
                    && !(text.trim_start().starts_with('{') && *sum >= SHORT_MAX / 2)
                    && sum.saturating_add(length) <= WHOLE_MAX =>
            {
                last.end = atom.end;
                *sum = sum.saturating_add(length);
            }
            _ => joined.push((atom.clone(), length)),
        }
    }
    joined.into_iter().map(|(range, _)| range).collect()
}

fn trim_range(line: &str, range: Range<usize>) -> Range<usize> {
    let text = line.get(range.clone()).unwrap_or("");
    let start = range.start + (text.len() - text.trim_start().len());
    start..(start + text.trim().len())
}

fn is_opaque(text: &str) -> bool {
    text.len() > OPAQUE_MIN && text.is_ascii() && !text.contains(' ')
}

fn looks_like_data(line: &str) -> bool {
    // Data has an opening bracket, behind it a quote and a colon, and a closing bracket.
    let (mut opened, mut named, mut closed) = (false, false, false);
    let mut before = 0;
    for byte in line.bytes() {
        match byte {
            b'{' | b'[' => opened = true,
            b'}' | b']' => closed = true,
            b':' => named |= opened && before == b'"',
            _ => {}
        }
        before = byte;
    }
    named && closed
}

/// Sets `record` of each piece: the piece in which the JSON object around its beginning opens.
fn find_records(line: &str, pieces: &mut [LineSegment]) {
    // Offsets of the open objects and arrays; an array has the offset of the container around it.
    let mut open: Vec<usize> = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    let mut next = 0;
    let mut starts: Vec<usize> = Vec::new();
    for (at, byte) in line.bytes().enumerate() {
        if pieces.get(next).is_some_and(|piece| piece.range.start == at) {
            starts.push(open.last().copied().unwrap_or(0));
            next += 1;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => open.push(at),
            b'[' if !in_string => open.push(open.last().copied().unwrap_or(0)),
            b'}' | b']' if !in_string => {
                open.pop();
            }
            _ => {}
        }
    }
    let holders: Vec<usize> = starts
        .iter()
        .map(|start| pieces.partition_point(|piece| piece.range.start <= *start).saturating_sub(1))
        .collect();
    for (piece, holder) in pieces.iter_mut().zip(holders) {
        piece.record = holder;
    }
}
