//! Update of the vectors of a conversation: one commit, guarded by the vector record.
//!
//! Input: vectors of documents, or a request to delete all. Output: the puts and deletions of the
//! commit. Elsewhere: the request of the host (`crate::recall`).

use alloc::vec::Vec;

use super::{
    quantization,
    record::{VectorRecord, block_key, diagnose_damage, vector_key},
    sign_block::{BLOCK_DOCUMENTS, SignBlock, block_bytes_max, document_at, locate_document},
};
use crate::search::corpus::Corpus;
use crate::storage::{
    call::Call,
    changes::Changes,
    codec,
    record_key::GuardedRecord,
    store::{Guard, Put},
    store_session::StoreSession,
};
use lcm_text::base::{
    error::Result,
    int,
    limits::{CALL_BYTES_MAX, MODEL_BYTES_MAX, PUTS_MAX},
};

/// Most blocks that a commit deletes: each block has its own key, and 64 keys of vectors.
const DELETED_BLOCKS_MAX: usize = PUTS_MAX / 65;

/// A vector to attach to a document; `None`: the document is covered and has no vector.
pub(crate) struct DocumentVector<'a> {
    pub(crate) corpus: Corpus,
    pub(crate) document: u64,
    pub(crate) vector: Option<&'a [i8]>,
}

/// Change of the vectors of a conversation, for one commit.
pub(crate) struct VectorUpdate<'a> {
    call: Call<'a>,
    /// The record as read.
    read: GuardedRecord<VectorRecord>,
    /// The record to write.
    pub(crate) record: VectorRecord,
    /// Blocks that were read or changed: corpus, number and content.
    blocks: Vec<(Corpus, u64, SignBlock)>,
    changes: Changes,
}

impl<'a> VectorUpdate<'a> {
    /// Creates an update of the record as read; `life` guards that the conversation is the same.
    pub(crate) fn new(call: Call<'a>, mut read: GuardedRecord<VectorRecord>, life: Guard) -> Self {
        let record = read.record.take().unwrap_or_default();
        let mut changes = Changes::default();
        changes.add_guard(life);
        Self { call, read, record, blocks: Vec::new(), changes }
    }

    /// Attaches the first of these vectors, as many as fit a commit, and returns their number.
    ///
    /// `documents_total`: numbers of messages and of summaries of the conversation.
    ///
    /// # Errors
    ///
    /// `corrupt`: a block is missing or damaged; `unsupported`: a record has a newer format;
    /// `conflict`: the vectors changed since the record was read; `limit-exceeded`: a value would
    /// be too large; errors of the store.
    pub(crate) fn attach_vectors(
        &mut self,
        session: &mut StoreSession<'_>,
        vectors: &[DocumentVector<'_>],
        documents_total: &[u64],
    ) -> Result<usize> {
        let kept = self.count_fitting(vectors, documents_total);
        let dimensions = self.count_dimensions();
        for DocumentVector { corpus, document, vector } in vectors.iter().take(kept) {
            let (number, at) = locate_document(*document);
            let block = self.load_block(session, *corpus, number)?;
            let Some((.., block)) = self.blocks.get_mut(block) else { continue };
            block.set(at, dimensions, *vector);
            self.record.corpus_vectors_mut(*corpus).set(number, Some(block));
            let key = vector_key(self.call.keys, *corpus, *document);
            let bytes = vector.map(quantization::vector_bytes);
            let value = bytes.map(|bytes| codec::encode_raw_bytes(&bytes)).transpose()?;
            self.changes.add_put(Put { key, value });
        }
        for (corpus, number, block) in &self.blocks {
            let key = block_key(self.call.keys, *corpus, *number);
            let value = Some(codec::encode_raw_bytes(&block.bytes())?);
            self.changes.add_put(Put { key, value });
        }
        Ok(kept)
    }

    /// Counts how many of the vectors, from the first on, fit a commit.
    fn count_fitting(&self, vectors: &[DocumentVector<'_>], documents_total: &[u64]) -> usize {
        let dimensions = self.count_dimensions();
        // The record has two bytes for each block and few more. Guard and put both contain the
        // record.
        let blocks: u64 = documents_total.iter().map(|count| count / BLOCK_DOCUMENTS + 1).sum();
        let mut bytes = 4 * int::to_usize(blocks) + 4 * MODEL_BYTES_MAX;
        let (mut places, mut kept) = (Vec::new(), 0);
        for DocumentVector { corpus, document, .. } in vectors {
            let place = (*corpus, locate_document(*document).0);
            bytes += dimensions + 2;
            if !places.contains(&place) {
                bytes += block_bytes_max(dimensions) + 2;
                places.push(place);
            }
            if 2 + places.len() + kept > PUTS_MAX || int::to_u32(bytes) > CALL_BYTES_MAX {
                break;
            }
            kept += 1;
        }
        kept
    }

    fn count_dimensions(&self) -> usize {
        int::to_usize(self.record.dimensions.into())
    }

    /// Returns the covered documents of a block as a bit mask, lowest bit first.
    ///
    /// # Errors
    ///
    /// `corrupt`: the block is missing or damaged; `unsupported`: a record has a newer format;
    /// `conflict`: the vectors changed since the record was read; errors of the store.
    pub(crate) fn read_covered(
        &mut self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        number: u64,
    ) -> Result<u64> {
        let at = self.load_block(session, corpus, number)?;
        Ok(self.blocks.get(at).map_or(0, |(.., block)| block.covered))
    }

    /// Returns the index of a block in `blocks`, and reads the block if it is not in `blocks` yet.
    ///
    /// A block without covered documents is not stored.
    fn load_block(
        &mut self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        number: u64,
    ) -> Result<usize> {
        let mut blocks = self.blocks.iter();
        if let Some(at) = blocks.position(|(other, n, _)| (*other, *n) == (corpus, number)) {
            return Ok(at);
        }
        let mut block = SignBlock::default();
        if self.record.corpus_vectors(corpus).block_counts(number).0 > 0 {
            let key = block_key(self.call.keys, corpus, number);
            let value = session.read_one_uncached(&key)?;
            let Some(read) =
                SignBlock::from_value(&key, value.as_deref(), self.count_dimensions())?
            else {
                return Err(diagnose_damage(
                    session,
                    self.call.keys,
                    self.read.stored_value(),
                    &key,
                ));
            };
            block = read;
        }
        self.blocks.push((corpus, number, block));
        Ok(self.blocks.len() - 1)
    }

    /// Deletes the newest blocks of the corpora with their vectors, as many as fit a commit,
    /// without reading them.
    pub(crate) fn delete_blocks(&mut self, corpora: &[Corpus]) {
        for corpus in corpora {
            while self.changes.list_puts().len() < DELETED_BLOCKS_MAX * 65 {
                let vectors = self.record.corpus_vectors_mut(*corpus);
                let Some(last) = vectors.count_blocks().checked_sub(1) else { break };
                vectors.set(last, None);
                let documents = (0..BLOCK_DOCUMENTS).map(|place| document_at(last, place));
                let keys = documents.map(|document| vector_key(self.call.keys, *corpus, document));
                self.changes.add_puts(keys.map(|key| Put { key, value: None }));
                let key = block_key(self.call.keys, *corpus, last);
                self.changes.add_put(Put { key, value: None });
            }
        }
    }

    /// Commits the changes together with the record, or deletes the record if nothing is covered.
    /// Without changes and without a stored record, nothing is committed.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; `limit-exceeded`: the commit would be too large;
    /// errors of the store.
    pub(crate) fn commit(self, session: &mut StoreSession<'_>) -> Result<()> {
        let Self { read, mut record, mut changes, .. } = self;
        if changes.is_empty() && read.stored_value().is_none() {
            return Ok(());
        }
        if record.is_empty() {
            changes.add_guard(read.build_guard());
            changes.delete_record(read.key());
        } else {
            record.advance_revision();
            changes.replace_record(&read, &record)?;
        }
        session.commit_changes(&changes)
    }
}
