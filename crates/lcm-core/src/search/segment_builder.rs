//! Builder of new segments from messages and summaries.
//!
//! Input: consecutive documents, without gaps; a document that is not indexed is skipped by
//! `skip_document`. Output: blocks of postings. The builder passes the terms and texts of documents
//! to [`lcm_loops::posting_collector`], which collects postings and grams.
//! Elsewhere: storing the blocks (`segment`).

use alloc::vec::Vec;

pub(super) use lcm_loops::posting_collector::{gram_key, term_key};
use lcm_loops::{
    lengths::DocumentLengths, posting_block::SegmentRange, posting_collector::PostingCollector,
};

use super::{
    corpus::Corpus,
    feature_terms::FeatureTerms,
    fields::{FIELD_GAP, IndexingBudget, SearchField, each_field},
    grams::unit_of_message,
    segment,
    terms::each_term,
};
use lcm_text::{base::int, message::Part};

/// Collects the postings of consecutive documents.
#[derive(Debug)]
pub(super) struct SegmentBuilder {
    pub(super) corpus: Corpus,
    collector: PostingCollector,
}

impl SegmentBuilder {
    /// Creates an empty builder whose first document is `first`.
    pub(super) fn new(corpus: Corpus, first: u64) -> Self {
        Self { corpus, collector: PostingCollector::new(first) }
    }

    /// Starts a new segment at another first document, and reuses the memory.
    pub(super) fn reset(&mut self, first: u64) {
        self.collector.reset(first);
    }

    /// Returns the lengths of the documents added so far.
    pub(super) const fn document_lengths(&self) -> &DocumentLengths {
        &self.collector.lengths
    }

    /// Adds the next message. `features` must not have observed any text of the message.
    pub(super) fn add_message(&mut self, raw: &str, parts: &[Part], mut features: FeatureTerms) {
        let collector = &mut self.collector;
        collector.enter_unit(unit_of_message(collector.next_document()));
        let mut budget = IndexingBudget::new(int::to_u64(raw.len()));
        let mut position = 0;
        each_field(raw, parts, &mut |field, text| {
            features.observe_text(field, &text);
            collector.add_grams(&text);
            for piece in budget.take_edges(&text) {
                position = add_text(collector, field, piece, position);
            }
        });
        features.observe_budget(&budget);
        features.each_feature(raw, &mut |term| collector.add_term(term, position));
        collector.close_document(position);
    }

    /// Adds the next summary.
    pub(super) fn add_summary(&mut self, text: &str) {
        let collector = &mut self.collector;
        let position = add_text(collector, SearchField::Text, text, 0);
        collector.close_document(position);
    }

    /// Adds the next document without terms and grams. Such a document is searched without the
    /// index.
    pub(super) fn skip_document(&mut self) {
        self.collector.close_document(0);
    }

    /// Removes the limit on the grams of a unit, for this and later segments of the builder.
    pub(super) fn keep_all_grams(&mut self) {
        self.collector.keep_all_grams();
    }

    /// Returns the documents and units added so far.
    pub(super) fn covered_range(&self) -> SegmentRange {
        let last = self.collector.next_document().saturating_sub(1).max(1);
        segment::segment_range(self.corpus, (self.document_lengths().first, last))
    }

    /// Returns whether the blocks of the segment probably fit into its root.
    pub(super) fn is_small(&self) -> bool {
        self.collector.is_small()
    }

    /// Builds the blocks of the segment, in the order of the keys. A block is closed at `target`
    /// bytes.
    pub(super) fn build_blocks(&mut self, target: usize) -> Vec<(u64, Vec<u8>)> {
        self.collector.build_blocks(self.covered_range(), target)
    }
}

/// Adds the terms of a text of the next document, at positions from `from` on. Returns the position
/// at which the next text begins.
fn add_text(collector: &mut PostingCollector, field: SearchField, text: &str, from: u32) -> u32 {
    if text.is_empty() {
        return from;
    }
    let count = each_term(field, text, &mut |term, position, _| {
        collector.add_term(term, from + position);
    });
    from + count + FIELD_GAP
}
