//! The best passages of one text found so far.

use alloc::vec::Vec;

use crate::search::snippet::Snippet;

/// Most passages of one text.
pub(crate) const PASSAGES_MAX: usize = 10;

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

/// Passages found so far.
#[derive(Default)]
pub(super) struct PassageCollector {
    pub(super) passages: Vec<TextPassage>,
    /// More passages were found than are kept.
    pub(super) has_more: bool,
    /// Byte of the text at which to continue; everything before was searched.
    pub(super) next: u64,
}

impl PassageCollector {
    /// Keeps a passage if it is among the best.
    pub(super) fn keep_passage(&mut self, passage: TextPassage) {
        let index = self.passages.partition_point(|other| other.score >= passage.score);
        self.passages.insert(index, passage);
        if self.passages.len() > PASSAGES_MAX {
            self.passages.pop();
            self.has_more = true;
        }
    }
}
