//! From messages and summaries to the blocks of a new segment.
//!
//! In: documents in ascending order. Out: their texts, read for terms and grams; postings are
//! collected by [`lcm_loops::collect`].

use alloc::vec::Vec;

pub(super) use lcm_loops::collect::{key_of, key_of_gram};
use lcm_loops::{block::Range, collect::Collector, lengths::Lengths};

use super::{
    Allowance, Corpus, FIELD_GAP, Field, each_field, each_term, segment, signs::Signs,
    unit_of_message,
};
use lcm_text::{base::int, message::Part};

/// Postings of consecutive documents.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) corpus: Corpus,
    collector: Collector,
}

impl Builder {
    /// Nothing yet; the first document will be `first`.
    pub(super) fn new(corpus: Corpus, first: u64) -> Self {
        Self { corpus, collector: Collector::new(first) }
    }

    /// Begins anew with another first document; the memory is used again.
    pub(super) fn restart(&mut self, first: u64) {
        self.collector.restart(first);
    }

    /// Lengths of the documents.
    pub(super) const fn lengths(&self) -> &Lengths {
        &self.collector.lengths
    }

    /// Adds the next message, of whose texts the signs have seen nothing yet.
    pub(super) fn message(&mut self, raw: &str, parts: &[Part], mut signs: Signs) {
        let collector = &mut self.collector;
        collector.enter(unit_of_message(collector.next()));
        let mut allowance = Allowance::new(int::to_u64(raw.len()));
        let mut position = 0;
        each_field(raw, parts, &mut |field, text| {
            signs.look(field, &text);
            collector.grams(&text);
            for piece in allowance.cut(&text) {
                position = add_text(collector, field, piece, position);
            }
        });
        signs.look_at_all(&allowance);
        signs.each(raw, &mut |term| collector.term(term, position));
        collector.close(position);
    }

    /// Adds the next summary.
    pub(super) fn summary(&mut self, text: &str) {
        let collector = &mut self.collector;
        let position = add_text(collector, Field::Text, text, 0);
        collector.close(position);
    }

    /// Adds the next document without any text: it is searched in another way.
    pub(super) fn skip(&mut self) {
        self.collector.close(0);
    }

    /// No unit has too many grams.
    pub(super) fn keep_all_grams(&mut self) {
        self.collector.keep_all_grams();
    }

    /// Documents and units.
    pub(super) fn range(&self) -> Range {
        let last = self.collector.next().saturating_sub(1).max(1);
        segment::range(self.corpus, (self.lengths().first, last))
    }

    /// Whether its occurrences suggest that the segment fits one value.
    pub(super) fn is_small(&self) -> bool {
        self.collector.is_small()
    }

    /// The blocks of a segment, in the order of the keys.
    pub(super) fn blocks(&mut self, target: usize) -> Vec<(u64, Vec<u8>)> {
        self.collector.blocks(self.range(), target)
    }
}

/// Adds a text of the next document; returns where the positions of the one after it begin.
fn add_text(collector: &mut Collector, field: Field, text: &str, from: u32) -> u32 {
    if text.is_empty() {
        return from;
    }
    let count = each_term(field, text, &mut |term, position, _| {
        collector.term(term, from + position);
    });
    from + count + FIELD_GAP
}
