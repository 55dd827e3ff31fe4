//! Search index and queries over messages and summaries.
//!
//! Input: the texts of messages and summaries, and queries. Output: for a term, the documents that
//! contain the term; for a query, its matches in order, up to a limit, each with a passage.
//! A document is a message, numbered by seq, or a summary, numbered from 1 in order of creation.
//! Elsewhere: the operations that return stored texts (`crate::recall`).

mod corpus;
mod doc_values;
mod document_lists;
mod feature_terms;
mod fields;
pub(crate) mod full_text;
mod full_text_context;
mod gram_query;
mod grams;
pub(crate) mod grep;
mod index_check;
mod index_maintenance;
mod index_reader;
mod item_lookup;
mod manifest;
pub(crate) mod passages;
pub(crate) mod payload_holders;
pub(crate) mod query_dates;
mod ranking;
pub(crate) mod regex;
pub(crate) mod regex_scan;
pub(crate) mod score;
mod segment;
mod segment_builder;
mod segment_merge;
mod sessions;
pub(crate) mod snippet;
mod terms;
pub(crate) mod text_query;
pub(crate) mod time_window;
mod unindexed;
pub(crate) mod vectors;

pub(crate) use corpus::Corpus;
pub(crate) use fields::{INDEXED_BYTES_MAX, SearchField, each_field};
#[cfg(test)]
pub(crate) use grams::each_gram;
pub(crate) use index_check::check;
pub(crate) use index_maintenance::{IndexMaintenance, NewMessage};
pub(crate) use index_reader::SearchIndex;
pub(crate) use manifest::IndexManifest;
pub(crate) use terms::{each_term, has_positions};

#[cfg(test)]
#[expect(
    clippy::as_conversions,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
pub(crate) mod tests;
