//! Manifest of the search index: segments, pending merges, and the newest doc values.
//!
//! A conversation has one manifest. A commit that writes the manifest also writes the head, which
//! counts the messages and summaries that segments cover. `index_maintenance` writes the manifest,
//! `index_reader` reads it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{
    corpus::Corpus,
    doc_values::DocValues,
    segment::{INDEX_ROW_BYTES, SegmentRef},
};
use crate::storage::{
    codec::{self, SoundRecord},
    head::ConversationHead,
    keys::ConversationKeys,
    record_key::RecordKey,
};
use lcm_text::base::int;

/// Most segments of one corpus, which bounds the size of the manifest. Merges keep far fewer,
/// unless many commits in a row lack room for a merge step. At the limit, an append that indexes
/// messages is refused until a compaction merges segments.
pub(super) const SEGMENTS_MAX: usize = 1_536;
/// Most documents of one segment.
pub(super) const SEGMENT_DOCUMENTS_MAX: u64 = 1 << 17;
/// Most bytes of the input segments of one merge. During the merge the manifest holds 8 bytes for
/// each block of the output.
pub(super) const MERGE_BYTES_MAX: u64 = 32 << 20;

/// Manifest of the search index of one conversation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct IndexManifest {
    pub(super) messages: CorpusManifest,
    pub(super) summaries: CorpusManifest,
    /// Ranges of messages, inclusive and ascending, that are searched without the index although a
    /// segment covers them: their terms did not fit a commit.
    pub(super) unindexed: Vec<(u64, u64)>,
}

/// Part of the manifest for one corpus.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct CorpusManifest {
    /// Number of documents that segments cover, from document 1 on.
    pub(super) documents: u64,
    /// Sum of the lengths of these documents in positions, as rounded in the doc values.
    pub(super) length_total: u64,
    /// Segments in the order of their documents, without gap or overlap.
    pub(super) segments: Vec<SegmentRef>,
    pub(super) merge: Option<PendingMerge>,
    /// Segments that a merge replaced, and whose values are not all deleted: id, and number of
    /// blocks still stored. The root is deleted last.
    pub(super) pending_deletes: Vec<([u8; 8], u32)>,
    pub(super) doc_values: DocValues,
}

/// A merge that is not complete.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PendingMerge {
    /// Id of the output segment.
    pub(super) id: [u8; 8],
    /// Index of the first input in the list of segments.
    pub(super) from: u32,
    /// Number of inputs.
    pub(super) count: u32,
    /// Bytes of output after which a step ends.
    pub(super) step_bytes: u32,
    /// For each input: the next block to read; `u32::MAX`: the input was merged to its end.
    pub(super) next_blocks: Vec<u32>,
    /// Key, and document or unit, of the last posting written.
    pub(super) last_written: (u64, u64),
    /// Number of blocks written so far.
    pub(super) blocks: u32,
    /// Index rows of the blocks written so far.
    pub(super) index: Vec<u8>,
    /// Bytes of the values of the blocks written so far.
    pub(super) bytes: u64,
}

impl CorpusManifest {
    /// Returns the inputs of the pending merge; empty without a merge.
    pub(super) fn merge_inputs(&self) -> &[SegmentRef] {
        let Some(merge) = &self.merge else { return &[] };
        let from = int::to_usize(u64::from(merge.from));
        let to = from.saturating_add(int::to_usize(u64::from(merge.count)));
        self.segments.get(from..to).unwrap_or_default()
    }

    fn is_sound(&self, corpus: Corpus) -> bool {
        let mut next = 1;
        for segment in &self.segments {
            if segment.first_document != next || segment.last_document < segment.first_document {
                return false;
            }
            next = segment.last_document + 1;
            let small = segment.count_documents() <= SEGMENT_DOCUMENTS_MAX
                && segment.blocks <= u32::from(u16::MAX)
                && segment.level < 64;
            if !small || segment.bytes >= 1 << 40 || !codec::are_countable(&[segment.last_document])
            {
                return false;
            }
        }
        let merge = self.merge.as_ref().is_none_or(|merge| {
            merge.count > 1
                && self.merge_inputs().len() == merge.next_blocks.len()
                && int::to_usize(u64::from(merge.count)) == merge.next_blocks.len()
                && int::to_usize(u64::from(merge.blocks)) * INDEX_ROW_BYTES == merge.index.len()
                && merge.step_bytes > 0
                && merge.bytes < 1 << 40
                && merge.last_written.0 < 1 << 43
                && merge.last_written.1 < 1 << 41
        });
        merge
            && next == self.documents + 1
            && self.segments.len() <= SEGMENTS_MAX
            && codec::are_countable(&[self.documents, self.length_total])
            && self.doc_values.is_sound(corpus, self.documents)
    }
}

impl SoundRecord for IndexManifest {
    fn is_sound(&self) -> bool {
        let ordered =
            |ranges: &[(u64, u64)]| ranges.iter().all(|(from, to)| from <= to && *to < 1 << 40);
        self.messages.is_sound(Corpus::Messages)
            && self.summaries.is_sound(Corpus::Summaries)
            && ordered(&self.unindexed)
    }
}

impl IndexManifest {
    /// Returns the key of the manifest.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.manifest_key())
    }

    /// Returns whether the manifest covers as many messages and summaries as the head says.
    pub(super) fn matches_head(&self, head: &ConversationHead) -> bool {
        self.messages.documents == head.indexed.messages
            && self.summaries.documents == head.summaries
    }

    /// Returns the part for a corpus.
    pub(super) const fn for_corpus(&self, corpus: Corpus) -> &CorpusManifest {
        match corpus {
            Corpus::Messages => &self.messages,
            Corpus::Summaries => &self.summaries,
        }
    }

    /// Returns the part for a corpus, for changes.
    pub(super) const fn for_corpus_mut(&mut self, corpus: Corpus) -> &mut CorpusManifest {
        match corpus {
            Corpus::Messages => &mut self.messages,
            Corpus::Summaries => &mut self.summaries,
        }
    }
}
