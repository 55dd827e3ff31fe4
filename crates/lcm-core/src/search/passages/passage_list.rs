//! List of the passages of one text found so far.

use alloc::vec::Vec;

use crate::search::snippet::Snippet;

/// Most passages kept of one text.
pub(crate) const PASSAGES_MAX: usize = 10;

/// A passage of a text that matches the query.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextPassage {
    /// Number of the line in which the passage begins, from 1.
    pub(crate) line: u64,
    /// Byte of the text at which the match begins; for words, the first match of the best part of
    /// the passage's first chunk.
    pub(crate) byte: u64,
    pub(crate) snippet: Snippet,
    /// For words: score with 16 fractional bits. One for each matched query item in the passage,
    /// and 1/256 more for each in its first chunk. `None`: a match of a regular expression.
    pub(crate) score: Option<u64>,
}

/// Passages found so far.
#[derive(Default)]
pub(super) struct PassageCollector {
    pub(super) passages: Vec<TextPassage>,
    /// Whether more passages were found than are kept.
    pub(super) has_more: bool,
    /// Byte of the text at which to continue the search.
    pub(super) next: u64,
}

impl PassageCollector {
    /// Inserts a passage by score, best first, behind passages of equal score. Drops the last one
    /// beyond [`PASSAGES_MAX`].
    pub(super) fn keep_passage(&mut self, passage: TextPassage) {
        let index = self.passages.partition_point(|other| other.score >= passage.score);
        self.passages.insert(index, passage);
        if self.passages.len() > PASSAGES_MAX {
            self.passages.pop();
            self.has_more = true;
        }
    }
}
