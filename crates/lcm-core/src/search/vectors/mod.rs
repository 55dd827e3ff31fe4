//! Vectors: which documents are near to a query, whatever words they have.
//!
//! In: embeddings that a host made with a model of its own, as decimals in JSON. Out: the record of
//! what a conversation has of them, and how near a document is. Nothing here is a float: a vector
//! is quantised once ([`quantise`]), the signs of 64 documents stand together ([`block`]), and
//! [`nearness`] compares integers. Not here: embeddings themselves, the verb that attaches them and
//! what a query does with them ([`crate::recall`]).

pub(crate) mod check;
pub(crate) mod quantization;
pub(crate) mod sign_block;
pub(crate) mod similarity;

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::Corpus;
use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    limits::{MODEL_BYTES_MAX, VECTOR_DIMENSIONS_MAX, VECTOR_DIMENSIONS_MIN},
};
use sign_block::{BLOCK_DOCUMENTS, SignBlock};

/// What a conversation has of vectors. Every commit of vectors writes it, and it is their guard.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct VectorRecord {
    /// Counts the commits, so that no two of them leave equal bytes.
    revision: u64,
    /// Of every vector; the first one decided. 0: there is none.
    pub(crate) dimensions: u32,
    /// The model that made them, if the host said.
    pub(crate) model: Option<String>,
    messages: CorpusVectors,
    summaries: CorpusVectors,
}

/// What one corpus has: for each block how many documents are known, and how many of them have a
/// vector, a byte each. The others are said to have none.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct CorpusVectors(Vec<u8>);

impl CorpusVectors {
    /// Blocks up to the last of which something is known.
    pub(crate) fn count_blocks(&self) -> u64 {
        int::to_u64(self.0.len() / 2)
    }

    /// Documents that are known, and those with a vector.
    pub(crate) fn count_documents(&self) -> (u64, u64) {
        let each = (0..self.count_blocks()).map(|block| self.block_counts(block));
        each.fold((0, 0), |(known, vectors), (more, others)| (known + more, vectors + others))
    }

    /// The same of one block.
    pub(crate) fn block_counts(&self, block: u64) -> (u64, u64) {
        let at = 2 * int::to_usize(block);
        let count = |at: usize| self.0.get(at).copied().unwrap_or(0).into();
        (count(at), count(at + 1))
    }

    /// Counts a block, or forgets it.
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
            let (known, vectors) = self.block_counts(block);
            vectors <= known && known <= BLOCK_DOCUMENTS
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
    /// The record in this value; `None`: nothing was attached.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    #[inline(never)]
    pub(crate) fn from_value(key: &str, value: Option<&[u8]>) -> Result<Option<Self>> {
        value.map(|value| codec::decode(key, value)).transpose()
    }

    /// What a corpus has.
    pub(crate) fn corpus_vectors(&self, corpus: Corpus) -> &CorpusVectors {
        match corpus {
            Corpus::Messages => &self.messages,
            Corpus::Summaries => &self.summaries,
        }
    }

    /// As [`Vectors::side`], to be changed.
    pub(crate) fn corpus_vectors_mut(&mut self, corpus: Corpus) -> &mut CorpusVectors {
        match corpus {
            Corpus::Messages => &mut self.messages,
            Corpus::Summaries => &mut self.summaries,
        }
    }

    /// Documents with a vector.
    pub(crate) fn count_vectors(&self) -> u64 {
        self.messages.count_documents().1 + self.summaries.count_documents().1
    }

    /// Whether nothing is known of any document.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.0.is_empty() && self.summaries.0.is_empty()
    }

    /// The value of the next commit.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: it would be larger than 256 KiB.
    pub(crate) fn encode_next(&mut self) -> Result<Vec<u8>> {
        self.revision += 1;
        codec::encode(self)
    }

    /// Refuses vectors, or a query, of other dimensions or another model. Only what is said is
    /// compared: who names no model is believed.
    ///
    /// # Errors
    ///
    /// `invalid-input`.
    pub(crate) fn ensure_compatible(
        &self,
        dimensions: Option<u32>,
        model: Option<&str>,
    ) -> Result<()> {
        if let Some(found) = dimensions
            && found != self.dimensions
        {
            let known = self.dimensions;
            return Err(Error::invalid_input(format_args!(
                "vector: {found} dimensions, where the vectors of this conversation have {known}"
            )));
        }
        if let Some(found) = model
            && self.model.as_deref() != Some(found)
        {
            return Err(match &self.model {
                Some(known) => Error::invalid_input(format_args!(
                    "model: `{found}`, where the vectors of this conversation are of `{known}`"
                )),
                None => Error::invalid_input(format_args!(
                    "model: `{found}`, where the vectors of this conversation were attached \
                     without a model; leave it out, or remove them first"
                )),
            });
        }
        Ok(())
    }
}

/// The error for a value that is no block or vector as the record says that was read before in
/// these bytes: it may have been overtaken.
#[cold]
pub(crate) fn diagnose_damage(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    record: Option<&[u8]>,
    key: &str,
) -> Error {
    match reader.read_one_uncached(&keys.vectors_key()) {
        Ok(now) if now.as_deref() != record => {
            Error::revision_conflict("vectors were attached while they were read")
        }
        Ok(_) => corrupt_vectors(key),
        Err(error) => error,
    }
}

/// The error for a value that is no block or vector of the dimensions that it must have.
#[cold]
pub(crate) fn corrupt_vectors(key: &str) -> Error {
    Error::corrupt_store(format_args!("`{key}` holds no vectors of these dimensions"))
}

/// The key of the signs of a block.
pub(crate) fn block_key(keys: &ConversationKeys, corpus: Corpus, block: u64) -> String {
    keys.vector_key(corpus.key_letter(), 's', block)
}

/// The key of the vector of a document.
pub(crate) fn vector_key(keys: &ConversationKeys, corpus: Corpus, document: u64) -> String {
    keys.vector_key(corpus.key_letter(), 'v', document)
}
