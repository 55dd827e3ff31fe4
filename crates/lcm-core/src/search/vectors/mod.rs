//! Vectors: which documents are near to a query, whatever words they have.
//!
//! In: embeddings that a host made with a model of its own, as decimals in JSON. Out: the record of
//! what a conversation has of them, and how near a document is. Nothing here is a float: a vector is
//! quantised once ([`quantise`]), the signs of 64 documents stand together ([`block`]), and
//! [`nearness`] compares integers. Not here: embeddings themselves, the verb that attaches them and
//! what a query does with them ([`crate::recall`]).

pub(crate) mod block;
pub(crate) mod nearness;
pub(crate) mod quantise;

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::Corpus;
use crate::{
    codec::{self, Sound},
    error::{Error, Result},
    keys::Keys,
    limits::{MODEL_BYTES_MAX, VECTOR_DIMENSIONS_MAX, VECTOR_DIMENSIONS_MIN},
    num,
    reader::Reader,
};
use block::BLOCK_DOCUMENTS;

/// What a conversation has of vectors. Every commit of vectors writes it, and it is their guard.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Vectors {
    /// Counts the commits, so that no two of them leave equal bytes.
    revision: u64,
    /// Of every vector; the first one decided.
    pub(crate) dimensions: u32,
    /// The model that made them, if the host said.
    pub(crate) model: Option<String>,
    messages: Side,
    summaries: Side,
}

/// What one corpus has.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Side {
    /// Documents with a vector.
    pub(crate) vectors: u64,
    /// For each block of [`BLOCK_DOCUMENTS`]: documents with a vector, or said to have none.
    pub(crate) known: Vec<u8>,
}

impl Side {
    /// Documents with a vector, or said to have none.
    pub(crate) fn count(&self) -> u64 {
        self.known.iter().map(|known| u64::from(*known)).sum()
    }

    /// Documents of a block that are known.
    pub(crate) fn known_of(&self, block: u64) -> u64 {
        self.known.get(num::to_usize(block)).map_or(0, |known| u64::from(*known))
    }

    /// Says how many documents of a block are known.
    pub(crate) fn set(&mut self, block: u64, known: u32) {
        let at = num::to_usize(block);
        if at >= self.known.len() {
            self.known.resize(at + 1, 0);
        }
        let known = u8::try_from(known).unwrap_or(u8::MAX);
        self.known.get_mut(at).into_iter().for_each(|slot| *slot = known);
        while self.known.last() == Some(&0) {
            self.known.pop();
        }
    }

    fn is_sound(&self) -> bool {
        self.known.iter().all(|known| u64::from(*known) <= BLOCK_DOCUMENTS)
            && self.vectors <= self.count()
            && self.known.last() != Some(&0)
    }
}

impl Sound for Vectors {
    fn is_sound(&self) -> bool {
        (VECTOR_DIMENSIONS_MIN..=VECTOR_DIMENSIONS_MAX)
            .contains(&num::to_usize(self.dimensions.into()))
            && codec::countable(&[self.revision])
            && self.model.as_ref().is_none_or(|model| (1..=MODEL_BYTES_MAX).contains(&model.len()))
            && self.messages.is_sound()
            && self.summaries.is_sound()
    }
}

impl Vectors {
    /// The record in this value; `None`: nothing was attached.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    #[inline(never)]
    pub(crate) fn of(key: &str, value: Option<&[u8]>) -> Result<Option<Self>> {
        value.map(|value| codec::decode(key, value)).transpose()
    }

    /// What a corpus has.
    pub(crate) fn side(&self, corpus: Corpus) -> &Side {
        match corpus {
            Corpus::Messages => &self.messages,
            Corpus::Summaries => &self.summaries,
        }
    }

    /// As [`Vectors::side`], to be changed.
    pub(crate) fn side_mut(&mut self, corpus: Corpus) -> &mut Side {
        match corpus {
            Corpus::Messages => &mut self.messages,
            Corpus::Summaries => &mut self.summaries,
        }
    }

    /// Documents with a vector.
    pub(crate) fn count(&self) -> u64 {
        self.messages.vectors + self.summaries.vectors
    }

    /// Whether nothing is known of any document.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.known.is_empty() && self.summaries.known.is_empty()
    }

    /// The value of the next commit.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: it would be larger than 256 KiB.
    pub(crate) fn next(&mut self) -> Result<Vec<u8>> {
        self.revision += 1;
        codec::encode(self)
    }

    /// Refuses vectors, or a query, of other dimensions or another model. Only what is said is
    /// compared: who names no model is believed.
    ///
    /// # Errors
    ///
    /// `invalid-input`.
    pub(crate) fn must_fit(&self, dimensions: Option<u32>, model: Option<&str>) -> Result<()> {
        if let Some(found) = dimensions
            && found != self.dimensions
        {
            let known = self.dimensions;
            return Err(Error::invalid(format_args!(
                "vector: {found} dimensions, where the vectors of this conversation have {known}"
            )));
        }
        if let Some(found) = model
            && self.model.as_deref() != Some(found)
        {
            let known = self.model.as_deref().unwrap_or_default();
            return Err(Error::invalid(format_args!(
                "model: `{found}`, where the vectors of this conversation are of `{known}`"
            )));
        }
        Ok(())
    }

    /// The error for a value that is not as the record says, for whoever read the record first: it
    /// may have been overtaken.
    pub(crate) fn damaged(&self, reader: &mut Reader<'_>, keys: &Keys, key: &str) -> Error {
        let record = keys.vectors();
        let now = reader.fresh_one(&record).and_then(|value| Self::of(&record, value.as_deref()));
        match now {
            Ok(now) if now.as_ref() != Some(self) => {
                Error::conflict("vectors were attached while they were read")
            }
            Ok(_) => damaged(key),
            Err(error) => error,
        }
    }
}

/// The error for a value that is no block or vector of the dimensions that it must have.
#[cold]
pub(crate) fn damaged(key: &str) -> Error {
    Error::corrupt(format_args!("`{key}` holds no vectors of these dimensions"))
}

/// The key of the signs of a block.
pub(crate) fn block_key(keys: &Keys, corpus: Corpus, block: u64) -> String {
    keys.vector(corpus.letter(), 's', block)
}

/// The key of the vector of a document.
pub(crate) fn vector_key(keys: &Keys, corpus: Corpus, document: u64) -> String {
    keys.vector(corpus.letter(), 'v', document)
}
