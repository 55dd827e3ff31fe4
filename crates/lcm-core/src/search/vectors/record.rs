//! Vector record of a conversation, and the keys and errors of stored vectors.
//!
//! Input: the stored record, or new counts of blocks. Output: the counts of vectors, and whether
//! other vectors are comparable. Elsewhere: the stored blocks (`sign_block`).

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::sign_block::{BLOCK_DOCUMENTS, SignBlock};
use crate::search::corpus::Corpus;
use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    limits::{MODEL_BYTES_MAX, VECTOR_DIMENSIONS_MAX, VECTOR_DIMENSIONS_MIN},
};

/// Vector record of a conversation. Every commit of vectors is guarded by the record, and replaces
/// or deletes the record.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct VectorRecord {
    /// Number of commits since the record was created, so that no two commits write equal bytes.
    revision: u64,
    /// Dimensions of every vector, set by the first vector. 0: no vector yet.
    pub(crate) dimensions: u32,
    /// Model that made the vectors; `None`: the host named no model.
    pub(crate) model: Option<String>,
    messages: CorpusVectors,
    summaries: CorpusVectors,
}

/// Counts of one corpus: for each block two bytes, the number of covered documents and the number
/// of documents with a vector. A covered document without a vector was attached as `null`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct CorpusVectors(Vec<u8>);

impl CorpusVectors {
    /// Returns the number of blocks, up to the last block with a covered document.
    pub(crate) fn count_blocks(&self) -> u64 {
        int::to_u64(self.0.len() / 2)
    }

    /// Returns the number of covered documents, and the number of documents with a vector.
    pub(crate) fn count_documents(&self) -> (u64, u64) {
        let each = (0..self.count_blocks()).map(|block| self.block_counts(block));
        each.fold((0, 0), |(covered, vectors), (more, others)| (covered + more, vectors + others))
    }

    /// Returns both numbers for one block; 0 for a block behind the last.
    pub(crate) fn block_counts(&self, block: u64) -> (u64, u64) {
        let at = 2 * int::to_usize(block);
        let count = |at: usize| self.0.get(at).copied().unwrap_or(0).into();
        (count(at), count(at + 1))
    }

    /// Sets the counts of a block; `None`: both to 0. Empty blocks at the end are dropped.
    pub(crate) fn set(&mut self, number: u64, block: Option<&SignBlock>) {
        let at = 2 * int::to_usize(number);
        self.0.resize(self.0.len().max(at + 2), 0);
        let bits = block.map_or([0, 0], |block| [block.covered, block.present]);
        for (slot, bits) in self.0.iter_mut().skip(at).zip(bits) {
            *slot = u8::try_from(bits.count_ones()).unwrap_or(u8::MAX);
        }
        while let [.., 0, 0] = self.0.as_slice() {
            self.0.truncate(self.0.len() - 2);
        }
    }

    fn is_sound(&self) -> bool {
        let fits = |block: u64| {
            let (covered, vectors) = self.block_counts(block);
            vectors <= covered && covered <= BLOCK_DOCUMENTS
        };
        self.0.len().is_multiple_of(2) && (0..self.count_blocks()).all(fits)
    }
}

impl SoundRecord for VectorRecord {
    fn is_sound(&self) -> bool {
        let dimensions = int::to_usize(self.dimensions.into());
        let is_undecided = dimensions == 0 && self.count_vectors() == 0;
        (is_undecided || (VECTOR_DIMENSIONS_MIN..=VECTOR_DIMENSIONS_MAX).contains(&dimensions))
            && codec::are_countable(&[self.revision])
            && self.model.as_ref().is_none_or(|model| (1..=MODEL_BYTES_MAX).contains(&model.len()))
            && self.messages.is_sound()
            && self.summaries.is_sound()
    }
}

impl VectorRecord {
    /// Returns the key of the vector record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.vectors_key())
    }

    /// Decodes the record; `None`: the conversation has no record, because nothing is attached.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value is damaged; `unsupported`: a record has a newer format.
    #[inline(never)]
    pub(crate) fn from_value(key: &str, value: Option<&[u8]>) -> Result<Option<Self>> {
        value.map(|value| codec::decode(key, value)).transpose()
    }

    /// Returns the counts of a corpus.
    pub(crate) fn corpus_vectors(&self, corpus: Corpus) -> &CorpusVectors {
        match corpus {
            Corpus::Messages => &self.messages,
            Corpus::Summaries => &self.summaries,
        }
    }

    /// Returns the counts of a corpus, mutable.
    pub(crate) fn corpus_vectors_mut(&mut self, corpus: Corpus) -> &mut CorpusVectors {
        match corpus {
            Corpus::Messages => &mut self.messages,
            Corpus::Summaries => &mut self.summaries,
        }
    }

    /// Returns the number of documents with a vector.
    pub(crate) fn count_vectors(&self) -> u64 {
        self.messages.count_documents().1 + self.summaries.count_documents().1
    }

    /// Returns whether no document of either corpus is covered.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.0.is_empty() && self.summaries.0.is_empty()
    }

    /// Raises the revision for the next commit.
    pub(crate) fn advance_revision(&mut self) {
        self.revision += 1;
    }

    /// Checks that vectors, or a query, have the dimensions and the model of the stored vectors.
    /// `None` is not compared.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the dimensions or the model differ.
    pub(crate) fn ensure_compatible(
        &self,
        dimensions: Option<u32>,
        model: Option<&str>,
    ) -> Result<()> {
        if let Some(found) = dimensions
            && found != self.dimensions
        {
            let required = self.dimensions;
            return Err(Error::invalid_input(format_args!(
                "`vector` must have {required} dimensions, as the vectors of this conversation, \
                 got {found}"
            )));
        }
        if let Some(found) = model
            && self.model.as_deref() != Some(found)
        {
            return Err(match &self.model {
                Some(required) => Error::invalid_input(format_args!(
                    "`model` must be `{required}`, as for the vectors of this conversation, \
                     got `{found}`"
                )),
                None => Error::invalid_input(format_args!(
                    "`model` must be absent, because the vectors of this conversation were \
                     attached without a model, got `{found}`; omit `model`, or remove the vectors \
                     first"
                )),
            });
        }
        Ok(())
    }
}

/// Returns the error for a missing or damaged block or vector: `conflict` if the vector record has
/// changed since `record` was read, else `corrupt`. If the record cannot be read, returns the error
/// of that read.
#[cold]
pub(crate) fn diagnose_damage(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    record: Option<&[u8]>,
    key: &str,
) -> Error {
    match session.read_one_uncached(&keys.vectors_key()) {
        Ok(now) if now.as_deref() != record => {
            Error::revision_conflict("vectors changed while they were read; repeat the call")
        }
        Ok(_) => corrupt_vectors(key),
        Err(error) => error,
    }
}

/// Builds the error for a value that is not a block or vector of the required dimensions.
#[cold]
pub(crate) fn corrupt_vectors(key: &str) -> Error {
    Error::corrupt_store(format_args!("`{key}` must hold vectors of the recorded dimensions"))
}

/// Returns the key of a block of sign bits.
pub(crate) fn block_key(keys: &ConversationKeys, corpus: Corpus, block: u64) -> String {
    keys.vector_key(corpus.key_letter(), 's', block)
}

/// Returns the key of the vector of a document.
pub(crate) fn vector_key(keys: &ConversationKeys, corpus: Corpus, document: u64) -> String {
    keys.vector_key(corpus.key_letter(), 'v', document)
}
