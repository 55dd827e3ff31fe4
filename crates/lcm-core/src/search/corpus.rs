//! The two corpora of the search index: messages and summaries.
//!
//! Each corpus has its own documents, segments and doc values. Every lookup in the index names the
//! corpus that it searches.

/// Set of documents that has its own segments and doc values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Corpus {
    /// Messages, numbered by seq.
    Messages,
    /// Summaries, numbered from 1 in the order in which they were stored.
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
