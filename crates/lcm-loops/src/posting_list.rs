//! Builds the posting list of one key.
//!
//! Input: occurrences or documents of the key, ascending. Output: the list in parts, pushed to a
//! [`BlockWriter`]. Used to collect new postings and to merge segments.

use alloc::vec::Vec;

use crate::posting_block::{
    BlockWriter, FIRST_POSITIONLESS_KEY, PART_DOCUMENTS_MAX, PART_OCCURRENCES_MAX, extend_list,
};

/// One document of a list; of a gram, one unit.
#[derive(Clone, Copy, Debug)]
pub struct DocumentPosting<'a> {
    /// Number of the document or unit.
    pub document: u64,
    /// Occurrences of the key in the document.
    pub count: u64,
    /// Positions of the occurrences; empty from [`FIRST_POSITIONLESS_KEY`] on.
    pub positions: &'a [u64],
}

/// A builder for the list of one key, which splits a long list into parts.
#[derive(Debug, Default)]
pub struct PostingListBuilder {
    documents: Vec<u64>,
    counts: Vec<u64>,
    positions: Vec<u64>,
    occurrences: u64,
}

impl PostingListBuilder {
    /// Adds an occurrence. The position is kept if the key has positions.
    pub fn add_occurrence(
        &mut self,
        key: u64,
        document: u64,
        position: u64,
        writer: &mut BlockWriter<'_>,
    ) {
        if self.documents.last() == Some(&document) {
            let Some(count) = self.counts.last_mut() else { return };
            *count += 1;
        } else {
            if self.is_full() {
                self.flush(key, writer);
            }
            self.documents.push(document);
            self.counts.push(1);
        }
        self.occurrences += 1;
        if key < FIRST_POSITIONLESS_KEY {
            self.positions.push(position);
        }
    }

    /// Adds a document with all its occurrences, unless the last added document is the same.
    pub fn add_document(
        &mut self,
        key: u64,
        posting: &DocumentPosting<'_>,
        writer: &mut BlockWriter<'_>,
    ) {
        let DocumentPosting { document, count, positions } = *posting;
        if self.documents.last() == Some(&document) {
            return;
        }
        if self.is_full() {
            self.flush(key, writer);
        }
        self.documents.push(document);
        self.counts.push(count);
        extend_list(&mut self.positions, positions);
        self.occurrences += count;
    }

    fn is_full(&self) -> bool {
        self.documents.len() >= PART_DOCUMENTS_MAX || self.occurrences >= PART_OCCURRENCES_MAX
    }

    /// Pushes the collected documents to `writer` as one part, and clears the builder.
    pub fn flush(&mut self, key: u64, writer: &mut BlockWriter<'_>) {
        if !self.documents.is_empty() {
            writer.push(key, &self.documents, &self.counts, &self.positions);
        }
        self.documents.clear();
        self.counts.clear();
        self.positions.clear();
        self.occurrences = 0;
    }
}
