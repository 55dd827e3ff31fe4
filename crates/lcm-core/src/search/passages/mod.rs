//! Passages of a long text that goes by: the lines with a match of an expression, or the places
//! where the words of a query stand together.
//!
//! In: pieces of the text in order. Out: at most [`PASSAGES_MAX`] passages with the line and byte
//! each begins at, of an expression the first ones, of words the best. What is kept of the text is
//! a line or two, so that it may have any length; where the text is left, it says from which byte
//! on the search goes on, so that nothing is passed over or found twice. [`words`] has what is done
//! with words. Not here: reading the text.

mod word_matcher;

use alloc::{boxed::Box, string::String, vec::Vec};
use core::iter;

pub(crate) use self::word_matcher::WordMatcher;
use super::{
    regex::Regex,
    snippet::{SNIPPET_CHARACTERS_MAX, Snippet, build_snippet},
};
use lcm_text::base::int;

/// Passages of one text, as in the reference system.
pub(crate) const PASSAGES_MAX: usize = 10;
/// Bytes of a line from which on it is looked through in parts. What an expression costs that only
/// a simulation can match is paid for a whole part, so that a part must be small.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes at the end of such a part that the next one begins with: a match that begins in them is
/// one of the next part. And as many before them, which it is seen with.
const OVERLAP_BYTES: usize = 1 << 10;

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextPassage {
    /// From 1.
    pub(crate) line: u64,
    /// Where it begins, in the text.
    pub(crate) byte: u64,
    pub(crate) snippet: Snippet,
    /// Of words, with 16 fractional bits: one for each that stands there, and a little more for
    /// each that stands in its first line.
    pub(crate) score: Option<u64>,
}

/// A line, or a part of a very long one.
struct TextLine<'l> {
    text: &'l str,
    /// Where the text begins.
    at: u64,
    number: u64,
    /// Where in it a match may begin: from here on and before there.
    from: usize,
    until: usize,
}

/// Cuts a text that goes by into lines.
struct LineSplitter {
    buffer: String,
    /// Where the buffer begins.
    at: u64,
    number: u64,
    /// Where in the buffer a match may begin.
    from: usize,
}

impl LineSplitter {
    /// Takes the next piece, as long as `each` says so.
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

    /// The line ends here.
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

/// What is looked for.
pub(crate) enum PassageQuery<'q> {
    Words(Box<WordMatcher<'q>>),
    Regex(&'q mut Regex),
}

/// Where a text is begun to be read, and where in it the search begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassageStart {
    /// Bytes of the text, and line ends, before what is read.
    pub(crate) byte: u64,
    pub(crate) line_ends: u64,
    /// Where a match may begin; what is read before it is what it is seen with.
    pub(crate) search_from: u64,
    /// Whether the text is JSON as it is written, in which words stand beside escapes.
    pub(crate) is_json: bool,
}

/// What a text that was looked through has.
#[derive(Debug)]
pub(crate) struct PassageResults {
    /// The passages, in order.
    pub(crate) passages: Vec<TextPassage>,
    /// There are more than count.
    pub(crate) has_more: bool,
    /// Where to go on; `None`: the search in this text is over.
    pub(crate) next: Option<u64>,
}

/// Looks through one text.
pub(crate) struct PassageFinder<'w, 'q> {
    query: &'w mut PassageQuery<'q>,
    lines: LineSplitter,
    collector: PassageCollector,
}

/// What was found so far.
#[derive(Default)]
struct PassageCollector {
    passages: Vec<TextPassage>,
    /// More than are kept.
    has_more: bool,
    /// Where in the text to go on; what is before it was looked through.
    next: u64,
}

impl<'w, 'q> PassageFinder<'w, 'q> {
    /// Begins to look through a text.
    pub(crate) fn new(wanted: &'w mut PassageQuery<'q>, begin: PassageStart) -> Self {
        if let PassageQuery::Words(words) = wanted {
            words.reset(begin.is_json);
        }
        let (at, number) = (begin.byte, begin.line_ends + 1);
        let lines = LineSplitter { buffer: String::new(), at, number, from: 0 };
        let found = PassageCollector { next: begin.search_from, ..PassageCollector::default() };
        Self { query: wanted, lines, collector: found }
    }

    /// Takes the next piece; `false`: what follows is of no interest, or enough was read for words,
    /// or an expression would cost too much, see [`Regex::is_refused`].
    pub(crate) fn push_text(&mut self, text: &str) -> bool {
        let Self { query: wanted, lines, collector: found } = self;
        lines.split_text(text, &mut |line| found.search_line(wanted, line))
    }

    /// What was found. `is_complete`: the text ends here, and all of it was taken.
    pub(crate) fn finish(mut self, is_complete: bool) -> PassageResults {
        let Self { query: wanted, lines, collector: found } = &mut self;
        let mut is_over = is_complete;
        if is_complete && !lines.buffer.is_empty() {
            is_over = lines.close_line(&mut |line| found.search_line(wanted, line));
        }
        match wanted {
            PassageQuery::Words(words) => words.finish(found, is_over),
            // Of an expression the first ones count.
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

    /// The matches of an expression in a line, the next one behind what the passage of one shows.
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
