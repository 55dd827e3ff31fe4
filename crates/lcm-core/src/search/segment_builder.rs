//! From messages and summaries to the blocks of a new segment.
//!
//! In: documents in ascending order. Out: their texts, read for terms and grams; postings are
//! collected by [`lcm_loops::collect`].

use alloc::vec::Vec;

pub(super) use lcm_loops::posting_collector::{gram_key, term_key};
use lcm_loops::{
    lengths::DocumentLengths, posting_block::SegmentRange, posting_collector::PostingCollector,
};

use super::{
    Corpus, FIELD_GAP, IndexingBudget, SearchField, each_field, each_term,
    feature_terms::FeatureTerms, segment, unit_of_message,
};
use lcm_text::{base::int, message::Part};

/// Postings of consecutive documents.
#[derive(Debug)]
pub(super) struct SegmentBuilder {
    pub(super) corpus: Corpus,
    collector: PostingCollector,
}

impl SegmentBuilder {
    /// Nothing yet; the first document will be `first`.
    pub(super) fn new(corpus: Corpus, first: u64) -> Self {
        Self { corpus, collector: PostingCollector::new(first) }
    }

    /// Begins anew with another first document; the memory is used again.
    pub(super) fn reset(&mut self, first: u64) {
        self.collector.reset(first);
    }

    /// Lengths of the documents.
    pub(super) const fn document_lengths(&self) -> &DocumentLengths {
        &self.collector.lengths
    }

    /// Adds the next message, of whose texts the signs have seen nothing yet.
    pub(super) fn add_message(&mut self, raw: &str, parts: &[Part], mut signs: FeatureTerms) {
        let collector = &mut self.collector;
        collector.enter_unit(unit_of_message(collector.next_document()));
        let mut allowance = IndexingBudget::new(int::to_u64(raw.len()));
        let mut position = 0;
        each_field(raw, parts, &mut |field, text| {
            signs.observe_text(field, &text);
            collector.add_grams(&text);
            for piece in allowance.take_edges(&text) {
                position = add_text(collector, field, piece, position);
            }
        });
        signs.observe_budget(&allowance);
        signs.each_feature(raw, &mut |term| collector.add_term(term, position));
        collector.close_document(position);
    }

    /// Adds the next summary.
    pub(super) fn add_summary(&mut self, text: &str) {
        let collector = &mut self.collector;
        let position = add_text(collector, SearchField::Text, text, 0);
        collector.close_document(position);
    }

    /// Adds the next document without any text: it is searched in another way.
    pub(super) fn skip_document(&mut self) {
        self.collector.close_document(0);
    }

    /// No unit has too many grams.
    pub(super) fn keep_all_grams(&mut self) {
        self.collector.keep_all_grams();
    }

    /// Documents and units.
    pub(super) fn covered_range(&self) -> SegmentRange {
        let last = self.collector.next_document().saturating_sub(1).max(1);
        segment::segment_range(self.corpus, (self.document_lengths().first, last))
    }

    /// Whether its occurrences suggest that the segment fits one value.
    pub(super) fn is_small(&self) -> bool {
        self.collector.is_small()
    }

    /// The blocks of a segment, in the order of the keys.
    pub(super) fn build_blocks(&mut self, target: usize) -> Vec<(u64, Vec<u8>)> {
        self.collector.build_blocks(self.covered_range(), target)
    }
}

/// Adds a text of the next document; returns where the positions of the one after it begin.
fn add_text(collector: &mut PostingCollector, field: SearchField, text: &str, from: u32) -> u32 {
    if text.is_empty() {
        return from;
    }
    let count = each_term(field, text, &mut |term, position, _| {
        collector.add_term(term, from + position);
    });
    from + count + FIELD_GAP
}
