//! Corpora of the search index.
//!
//! Each corpus has documents, segments and doc values of its own.

/// Set of documents with segments of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Corpus {
    /// Messages, numbered by seq.
    Messages,
    /// Summaries, numbered by ordinal, from 1.
    Summaries,
}

impl Corpus {
    /// Returns the letter of this corpus in store keys.
    pub(super) const fn key_letter(self) -> char {
        match self {
            Self::Messages => 'm',
            Self::Summaries => 's',
        }
    }
}
