//! Search: what is indexed of messages and summaries, and how it is found again.
//!
//! In: the texts of a message or summary. Out: for a term, the documents it occurs in. A document
//! is a message, numbered by its seq, or a summary, numbered from 1 in the order they were made.
//! And what a query means, which documents it finds in which order, and the passage to be shown.
//! Not here: conversations, scopes and the texts of hits; that is `recall`.

mod builder;
mod check;
mod columns;
pub(crate) mod dates;
mod direct;
mod fields;
pub(crate) mod full_text;
mod gram_query;
mod grams;
pub(crate) mod grep;
mod index;
mod manifest;
mod merge;
pub(crate) mod passages;
pub(crate) mod query;
mod rank;
pub(crate) mod regex;
pub(crate) mod scan;
pub(crate) mod score;
mod segment;
mod sessions;
mod signs;
pub(crate) mod snippet;
mod terms;
mod upkeep;
pub(crate) mod vectors;
pub(crate) mod window;

pub(crate) use check::check;
pub(crate) use fields::{INDEXED_BYTES_MAX, IndexingBudget, SearchField, each_field};
#[cfg(test)]
pub(crate) use grams::each_gram;
pub(crate) use grams::{messages_of_unit, unit_of_message};
pub(crate) use index::{Postings, SearchIndex};
pub(crate) use terms::{each_term, has_positions};
pub(crate) use upkeep::{IndexMaintenance, NewMessage};

/// What kind of document is meant; each has segments of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Corpus {
    /// Messages, by seq.
    Messages,
    /// Summaries, by ordinal.
    Summaries,
}

impl Corpus {
    /// The letter that stands for it in keys.
    const fn key_letter(self) -> char {
        match self {
            Self::Messages => 'm',
            Self::Summaries => 's',
        }
    }
}

/// Positions between two texts of a document, so that no phrase crosses from one to the next.
pub(crate) const FIELD_GAP: u32 = 2;

#[cfg(test)]
#[expect(
    clippy::as_conversions,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
pub(crate) mod tests;
