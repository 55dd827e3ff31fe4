//! Passages of a long text that goes by: the lines with a match of an expression, or the places
//! where the words of a query stand together.
//!
//! In: pieces of the text in order. Out: at most [`PASSAGES_MAX`] passages with the line and byte
//! each begins at, of an expression the first ones, of words the best. What is kept of the text is
//! a line or two, so that it may have any length; where the text is left, it says from which byte
//! on the search goes on, so that nothing is passed over or found twice. [`words`] has what is done
//! with words. Not here: reading the text.

mod words;

use alloc::{boxed::Box, string::String, vec::Vec};
use core::iter;

pub(crate) use self::words::Words;
use super::{
    regex::Regex,
    snippet::{SNIPPET_CHARACTERS_MAX, Snippet, passage},
};
use lcm_text::base::int;

/// Passages of one text, as in the reference system.
pub(crate) const PASSAGES_MAX: usize = 10;
/// Bytes of a line from which on it is looked through in parts. What an expression costs that only
/// a simulation can match is paid for a whole part, so that a part must be small.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes at the end of such a part that the next one begins with: a match that begins in them is
/// one of the next part. And as many before them, which it is seen with.
const HELD_BYTES: usize = 1 << 10;

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passage {
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
struct Line<'l> {
    text: &'l str,
    /// Where the text begins.
    at: u64,
    number: u64,
    /// Where in it a match may begin: from here on and before there.
    from: usize,
    until: usize,
}

/// Cuts a text that goes by into lines.
struct Lines {
    buffer: String,
    /// Where the buffer begins.
    at: u64,
    number: u64,
    /// Where in the buffer a match may begin.
    from: usize,
}

impl Lines {
    /// Takes the next piece, as long as `each` says so.
    fn take(&mut self, text: &str, each: &mut dyn FnMut(&Line<'_>) -> bool) -> bool {
        for piece in text.split_inclusive('\n') {
            self.buffer.push_str(piece);
            if piece.ends_with('\n') {
                if !self.close(each) {
                    return false;
                }
            } else if self.buffer.len() >= LINE_BYTES_MAX {
                let until = self.buffer.floor_char_boundary(self.buffer.len() - HELD_BYTES);
                if !each(&self.line(&self.buffer, until)) {
                    return false;
                }
                let gone = self.buffer.floor_char_boundary(until - HELD_BYTES);
                self.buffer.drain(..gone);
                self.at += int::to_u64(gone);
                self.from = until - gone;
            }
        }
        true
    }

    /// The line ends here.
    fn close(&mut self, each: &mut dyn FnMut(&Line<'_>) -> bool) -> bool {
        let text = self.buffer.strip_suffix('\n').unwrap_or(&self.buffer);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let goes_on = each(&self.line(text, text.len() + 1));
        self.at += int::to_u64(self.buffer.len());
        self.number += 1;
        self.from = 0;
        self.buffer.clear();
        goes_on
    }

    fn line<'l>(&self, text: &'l str, until: usize) -> Line<'l> {
        let from = self.from.min(text.len());
        Line { text, at: self.at, number: self.number, from, until }
    }
}

/// What is looked for.
pub(crate) enum Wanted<'q> {
    Words(Box<Words<'q>>),
    Regex(&'q mut Regex),
}

/// Where a text is begun to be read, and where in it the search begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    /// Bytes of the text, and line ends, before what is read.
    pub(crate) byte: u64,
    pub(crate) line_ends: u64,
    /// Where a match may begin; what is read before it is what it is seen with.
    pub(crate) search: u64,
    /// Whether the text is JSON as it is written, in which words stand beside escapes.
    pub(crate) is_json: bool,
}

/// What a text that was looked through has.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The passages, in order.
    pub(crate) passages: Vec<Passage>,
    /// There are more than count.
    pub(crate) more: bool,
    /// Where to go on; `None`: the search in this text is over.
    pub(crate) next: Option<u64>,
}

/// Looks through one text.
pub(crate) struct Passages<'w, 'q> {
    wanted: &'w mut Wanted<'q>,
    lines: Lines,
    found: Found,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    passages: Vec<Passage>,
    /// More than are kept.
    more: bool,
    /// Where in the text to go on; what is before it was looked through.
    next: u64,
}

impl<'w, 'q> Passages<'w, 'q> {
    /// Begins to look through a text.
    pub(crate) fn new(wanted: &'w mut Wanted<'q>, begin: Begin) -> Self {
        if let Wanted::Words(words) = wanted {
            words.restart(begin.is_json);
        }
        let (at, number) = (begin.byte, begin.line_ends + 1);
        let lines = Lines { buffer: String::new(), at, number, from: 0 };
        let found = Found { next: begin.search, ..Found::default() };
        Self { wanted, lines, found }
    }

    /// Takes the next piece; `false`: what follows is of no interest, or enough was read for words,
    /// or an expression would cost too much, see [`Regex::is_refused`].
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let Self { wanted, lines, found } = self;
        lines.take(text, &mut |line| found.look(wanted, line))
    }

    /// What was found. `is_complete`: the text ends here, and all of it was taken.
    pub(crate) fn end(mut self, is_complete: bool) -> Ended {
        let Self { wanted, lines, found } = &mut self;
        let mut is_over = is_complete;
        if is_complete && !lines.buffer.is_empty() {
            is_over = lines.close(&mut |line| found.look(wanted, line));
        }
        match wanted {
            Wanted::Words(words) => words.end(found, is_over),
            // Of an expression the first ones count.
            Wanted::Regex(_) => is_over |= found.more,
        }
        let Found { passages, more, next } = self.found;
        Ended { passages, more, next: (!is_over).then_some(next) }
    }
}

impl Found {
    fn look(&mut self, wanted: &mut Wanted<'_>, line: &Line<'_>) -> bool {
        let passed = int::to_usize(self.next.saturating_sub(line.at));
        if passed > line.text.len() {
            return true;
        }
        let from = line.text.ceil_char_boundary(line.from.max(passed));
        match wanted {
            Wanted::Words(words) => words.look(line, from, self),
            Wanted::Regex(regex) => self.matches(regex, line, from),
        }
    }

    /// The matches of an expression in a line, the next one behind what the passage of one shows.
    fn matches(&mut self, regex: &mut Regex, line: &Line<'_>, mut from: usize) -> bool {
        while from <= line.text.len() {
            let found = regex.find_from(line.text, from);
            if regex.is_refused() {
                return false;
            }
            let Some(range) = found.filter(|range| range.start < line.until) else { break };
            if self.passages.len() == PASSAGES_MAX {
                self.more = true;
                return false;
            }
            let byte = line.at + int::to_u64(range.start);
            let snippet = passage(line.text, range.start, &mut iter::once(range.clone()));
            self.passages.push(Passage { line: line.number, byte, snippet, score: None });
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
    fn keep(&mut self, passage: Passage) {
        let place = self.passages.partition_point(|known| known.score >= passage.score);
        self.passages.insert(place, passage);
        if self.passages.len() > PASSAGES_MAX {
            self.passages.pop();
            self.more = true;
        }
    }
}
