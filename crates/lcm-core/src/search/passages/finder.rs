//! Search of one streamed text for passages.
//!
//! Input: a query, and pieces of a text. Output: the passages, and the byte at which to continue.
//!
//! Elsewhere: splitting into lines (`text_lines`), matching words (`word_matcher`).

use alloc::{boxed::Box, string::String, vec::Vec};
use core::iter;

use super::{
    passage_list::{PASSAGES_MAX, PassageCollector, TextPassage},
    text_lines::{LineSplitter, TextLine},
    word_matcher::WordMatcher,
};
use crate::search::{
    regex::Regex,
    snippet::{SNIPPET_CHARACTERS_MAX, build_snippet},
};
use lcm_text::base::int;

/// Query of a passage search.
pub(crate) enum PassageQuery<'q> {
    Words(Box<WordMatcher<'q>>),
    Regex(&'q mut Regex),
}

/// Position at which the pieces of a text begin, and at which the search begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassageStart {
    /// Bytes of the text before the first piece.
    pub(crate) byte: u64,
    /// Line ends in the text before the first piece.
    pub(crate) line_ends: u64,
    /// First byte of the text at which a match may begin; text before this byte is context.
    pub(crate) search_from: u64,
    /// Whether the text is JSON as written, where the letter of an escape such as `\n` is not part
    /// of a word.
    pub(crate) is_json: bool,
}

/// Passages of one text.
#[derive(Debug)]
pub(crate) struct PassageResults {
    /// Passages: matches of a regular expression in the order of the text, or passages for words
    /// with the best first.
    pub(crate) passages: Vec<TextPassage>,
    /// Whether more passages were found than are listed.
    pub(crate) has_more: bool,
    /// Byte of the text at which to continue; `None`: the text ended, or a regular expression has
    /// enough passages.
    pub(crate) next: Option<u64>,
}

/// Search of one text.
pub(crate) struct PassageFinder<'w, 'q> {
    query: &'w mut PassageQuery<'q>,
    lines: LineSplitter,
    collector: PassageCollector,
}

impl<'w, 'q> PassageFinder<'w, 'q> {
    /// Starts the search of a text.
    pub(crate) fn new(query: &'w mut PassageQuery<'q>, start: PassageStart) -> Self {
        if let PassageQuery::Words(words) = query {
            words.reset(start.is_json);
        }
        let (at, number) = (start.byte, start.line_ends + 1);
        let lines = LineSplitter { buffer: String::new(), at, number, from: 0 };
        let collector = PassageCollector { next: start.search_from, ..PassageCollector::default() };
        Self { query, lines, collector }
    }

    /// Searches the next piece. Returns `false` if no more text is needed:
    ///
    /// - A regular expression has enough passages, or is refused ([`Regex::is_refused`]).
    /// - The byte limit for words is reached.
    pub(crate) fn push_text(&mut self, text: &str) -> bool {
        let Self { query, lines, collector } = self;
        lines.split_text(text, &mut |line| collector.search_line(query, line))
    }

    /// Returns the passages. `is_complete`: whether every piece was pushed and the text ended.
    pub(crate) fn finish(mut self, is_complete: bool) -> PassageResults {
        let Self { query, lines, collector } = &mut self;
        let mut is_over = is_complete;
        if is_complete && !lines.buffer.is_empty() {
            is_over = lines.close_line(&mut |line| collector.search_line(query, line));
        }
        match query {
            PassageQuery::Words(words) => words.finish(collector, is_over),
            // A regular expression needs only its first matches.
            PassageQuery::Regex(_) => is_over |= collector.has_more,
        }
        let PassageCollector { passages, has_more, next } = self.collector;
        PassageResults { passages, has_more, next: (!is_over).then_some(next) }
    }
}

impl PassageCollector {
    fn search_line(&mut self, query: &mut PassageQuery<'_>, line: &TextLine<'_>) -> bool {
        let passed = int::to_usize(self.next.saturating_sub(line.at));
        if passed > line.text.len() {
            return true;
        }
        let from = line.text.ceil_char_boundary(line.from.max(passed));
        match query {
            PassageQuery::Words(words) => words.search_line(line, from, self),
            PassageQuery::Regex(regex) => self.search_regex(regex, line, from),
        }
    }

    /// Adds the matches in a line from the byte `from` on. The next match may begin behind the
    /// previous match, and at least [`SNIPPET_CHARACTERS_MAX`] bytes after its start. Returns
    /// `false` if no more text is needed.
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
}
