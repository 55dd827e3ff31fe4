//! Passages of a long text, found while the text streams by.
//!
//! Input: pieces of the text in order. Output: at most [`PASSAGES_MAX`] passages with line and
//! byte: the first matches of a regular expression, or the best passages for words. Only a line or
//! two are buffered, so the text may have any length. If the search stops early, the result says at
//! which byte to continue, so that no match is lost or found twice. Elsewhere: reading the text;
//! scoring words ([`word_matcher`]).

mod word_matcher;

use alloc::{boxed::Box, string::String, vec::Vec};
use core::iter;

pub(crate) use self::word_matcher::WordMatcher;
use super::{
    regex::Regex,
    snippet::{SNIPPET_CHARACTERS_MAX, Snippet, build_snippet},
};
use lcm_text::base::int;

/// Most passages of one text.
pub(crate) const PASSAGES_MAX: usize = 10;
/// Bytes of a line after which the line is searched in parts. An expression that needs the slow
/// simulation is charged for a whole part, so parts must be small.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes by which two parts overlap: a match that begins there belongs to the second part. As many
/// bytes before serve as context of the match.
const OVERLAP_BYTES: usize = 1 << 10;

/// A passage of a text that matches the query.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextPassage {
    /// Line number, from 1.
    pub(crate) line: u64,
    /// Byte at which the passage begins in the text.
    pub(crate) byte: u64,
    pub(crate) snippet: Snippet,
    /// For words: score with 16 fractional bits. One for each matched item, and a little more for
    /// each item in the first line.
    pub(crate) score: Option<u64>,
}

/// A line, or a part of a very long line.
struct TextLine<'l> {
    text: &'l str,
    /// Byte of the text at which the line begins.
    at: u64,
    number: u64,
    /// Range within the line in which a match may begin: from `from`, before `until`.
    from: usize,
    until: usize,
}

/// Splits a streamed text into lines.
struct LineSplitter {
    buffer: String,
    /// Byte of the text at which the buffer begins.
    at: u64,
    number: u64,
    /// Byte of the buffer from which a match may begin.
    from: usize,
}

impl LineSplitter {
    /// Adds the next piece of text, and calls `each` for every line until `each` returns `false`.
    fn split_text(&mut self, text: &str, each: &mut dyn FnMut(&TextLine<'_>) -> bool) -> bool {
        for piece in text.split_inclusive('\n') {
            self.buffer.push_str(piece);
            if piece.ends_with('\n') {
                if !self.close_line(each) {
                    return false;
                }
            } else if self.buffer.len() >= LINE_BYTES_MAX {
                let until = self.buffer.floor_char_boundary(self.buffer.len() - OVERLAP_BYTES);
                if !each(&self.current_line(&self.buffer, until)) {
                    return false;
                }
                let gone = self.buffer.floor_char_boundary(until - OVERLAP_BYTES);
                self.buffer.drain(..gone);
                self.at += int::to_u64(gone);
                self.from = until - gone;
            }
        }
        true
    }

    /// Ends the current line.
    fn close_line(&mut self, each: &mut dyn FnMut(&TextLine<'_>) -> bool) -> bool {
        let text = self.buffer.strip_suffix('\n').unwrap_or(&self.buffer);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let goes_on = each(&self.current_line(text, text.len() + 1));
        self.at += int::to_u64(self.buffer.len());
        self.number += 1;
        self.from = 0;
        self.buffer.clear();
        goes_on
    }

    fn current_line<'l>(&self, text: &'l str, until: usize) -> TextLine<'l> {
        let from = self.from.min(text.len());
        TextLine { text, at: self.at, number: self.number, from, until }
    }
}

/// Query of a passage search.
pub(crate) enum PassageQuery<'q> {
    Words(Box<WordMatcher<'q>>),
    Regex(&'q mut Regex),
}

/// Position at which reading and searching begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassageStart {
    /// Bytes of the text, and line ends, before the first piece.
    pub(crate) byte: u64,
    pub(crate) line_ends: u64,
    /// Byte from which a match may begin; earlier text only serves as context.
    pub(crate) search_from: u64,
    /// True if the text is JSON as written, where letters of escapes are not words.
    pub(crate) is_json: bool,
}

/// Passages of one text.
#[derive(Debug)]
pub(crate) struct PassageResults {
    /// Passages in order.
    pub(crate) passages: Vec<TextPassage>,
    /// The text has more passages than are listed.
    pub(crate) has_more: bool,
    /// Byte at which to continue; `None`: the whole text was searched.
    pub(crate) next: Option<u64>,
}

/// Searches one text.
pub(crate) struct PassageFinder<'w, 'q> {
    query: &'w mut PassageQuery<'q>,
    lines: LineSplitter,
    collector: PassageCollector,
}

/// Passages found so far.
#[derive(Default)]
struct PassageCollector {
    passages: Vec<TextPassage>,
    /// More passages were found than are kept.
    has_more: bool,
    /// Byte of the text at which to continue; everything before was searched.
    next: u64,
}

impl<'w, 'q> PassageFinder<'w, 'q> {
    /// Starts the search of a text.
    pub(crate) fn new(wanted: &'w mut PassageQuery<'q>, begin: PassageStart) -> Self {
        if let PassageQuery::Words(words) = wanted {
            words.reset(begin.is_json);
        }
        let (at, number) = (begin.byte, begin.line_ends + 1);
        let lines = LineSplitter { buffer: String::new(), at, number, from: 0 };
        let found = PassageCollector { next: begin.search_from, ..PassageCollector::default() };
        Self { query: wanted, lines, collector: found }
    }

    /// Searches the next piece. Returns `false` if no more text is needed: enough passages were
    /// found, the byte limit is reached, or the expression is refused ([`Regex::is_refused`]).
    pub(crate) fn push_text(&mut self, text: &str) -> bool {
        let Self { query: wanted, lines, collector: found } = self;
        lines.split_text(text, &mut |line| found.search_line(wanted, line))
    }

    /// Returns the passages. `is_complete`: the text ended and every piece was pushed.
    pub(crate) fn finish(mut self, is_complete: bool) -> PassageResults {
        let Self { query: wanted, lines, collector: found } = &mut self;
        let mut is_over = is_complete;
        if is_complete && !lines.buffer.is_empty() {
            is_over = lines.close_line(&mut |line| found.search_line(wanted, line));
        }
        match wanted {
            PassageQuery::Words(words) => words.finish(found, is_over),
            // A regular expression needs only its first matches.
            PassageQuery::Regex(_) => is_over |= found.has_more,
        }
        let PassageCollector { passages, has_more: more, next } = self.collector;
        PassageResults { passages, has_more: more, next: (!is_over).then_some(next) }
    }
}

impl PassageCollector {
    fn search_line(&mut self, wanted: &mut PassageQuery<'_>, line: &TextLine<'_>) -> bool {
        let passed = int::to_usize(self.next.saturating_sub(line.at));
        if passed > line.text.len() {
            return true;
        }
        let from = line.text.ceil_char_boundary(line.from.max(passed));
        match wanted {
            PassageQuery::Words(words) => words.search_line(line, from, self),
            PassageQuery::Regex(regex) => self.search_regex(regex, line, from),
        }
    }

    /// Adds the matches in a line; the next match begins behind the passage of the previous one.
    fn search_regex(&mut self, regex: &mut Regex, line: &TextLine<'_>, mut from: usize) -> bool {
        while from <= line.text.len() {
            let found = regex.find_from(line.text, from);
            if regex.is_refused() {
                return false;
            }
            let Some(range) = found.filter(|range| range.start < line.until) else { break };
            if self.passages.len() == PASSAGES_MAX {
                self.has_more = true;
                return false;
            }
            let byte = line.at + int::to_u64(range.start);
            let snippet = build_snippet(line.text, range.start, &mut iter::once(range.clone()));
            self.passages.push(TextPassage { line: line.number, byte, snippet, score: None });
            let behind = range.end.max(range.start + SNIPPET_CHARACTERS_MAX);
            if behind > line.text.len() {
                from = behind;
                break;
            }
            from = line.text.ceil_char_boundary(behind);
            self.next = line.at + int::to_u64(from);
        }
        self.next = line.at + int::to_u64(from.max(line.until).min(line.text.len() + 1));
        true
    }

    /// Keeps a passage if it is among the best.
    fn keep_passage(&mut self, passage: TextPassage) {
        let place = self.passages.partition_point(|known| known.score >= passage.score);
        self.passages.insert(place, passage);
        if self.passages.len() > PASSAGES_MAX {
            self.passages.pop();
            self.has_more = true;
        }
    }
}
