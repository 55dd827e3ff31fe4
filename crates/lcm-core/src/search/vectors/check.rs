//! Check of vectors: every vector belongs to a document and agrees with its sign bits.
//!
//! Input: the stored vectors of a conversation, and the numbers of its documents. Output: findings,
//! each of which names a key, for `check` of the conversation. Keys are read once, in order: the
//! record, then for each corpus the blocks and the vectors.

use alloc::{format, string::String, vec::Vec};

use super::{
    record::{CorpusVectors, VectorRecord, block_key, corrupt_vectors, vector_key},
    sign_block::{SignBlock, document_at, locate_document, pack_signs},
};
use crate::{
    search::{corpus::Corpus, doc_values},
    storage::{codec, keys::ConversationKeys, store_session::StoreSession},
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
    sort::SortedMap,
};

/// Values that were read so far.
#[derive(Default)]
struct VectorCheck {
    record: Option<VectorRecord>,
    /// Counts of both corpora (messages, summaries), computed from the blocks.
    counts: [CorpusVectors; 2],
    /// For each corpus: documents that have a vector by their block, with the checksum of the sign
    /// bits. `None`: the vector was read.
    checksums: [SortedMap<u64, Option<u32>>; 2],
}

/// Checks the vectors of a conversation, and returns the findings. `documents`: the numbers of
/// messages and of summaries.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn check(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    documents: [u64; 2],
) -> Result<Vec<String>> {
    let (mut seen, mut findings) = (VectorCheck::default(), Vec::new());
    let (start, end) = keys.record_range("v");
    session.scan_range(&start, &end, &mut |key, value| match seen
        .check_value(keys, documents, key, value)
    {
        Ok(()) => Ok(()),
        Err(error) if error.code == ErrorCode::Corrupt => {
            findings.push(error.into_failure().message);
            Ok(())
        }
        Err(error) => Err(error),
    })?;
    for (corpus, (corpus_counts, checksums)) in [Corpus::Messages, Corpus::Summaries]
        .into_iter()
        .zip(seen.counts.iter().zip(&seen.checksums))
    {
        if findings.is_empty()
            && seen
                .record
                .as_ref()
                .is_some_and(|record| record.corpus_vectors(corpus) != corpus_counts)
        {
            findings.push(format!("`{}` must count the vectors in its blocks", keys.vectors_key()));
        }
        let missing = checksums.as_entries().iter().find(|(_, checksum)| checksum.is_some());
        if let Some((document, _)) = missing {
            findings.push(format!("`{}` is missing", vector_key(keys, corpus, *document)));
        }
    }
    Ok(findings)
}

impl VectorCheck {
    /// Checks the next value, and remembers what later values must agree with.
    fn check_value(
        &mut self,
        keys: &ConversationKeys,
        documents: [u64; 2],
        key: &str,
        value: &[u8],
    ) -> Result<()> {
        if key == keys.vectors_key() {
            self.record = VectorRecord::from_value(key, Some(value))?;
            return Ok(());
        }
        let Some(record) = &self.record else {
            let record = keys.vectors_key();
            return Err(Error::corrupt_store(format_args!(
                "the vector record `{record}` of `{key}` is missing"
            )));
        };
        let number = key.len().checked_sub(10).and_then(|at| key.get(at..));
        let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        let corpora = [Corpus::Messages, Corpus::Summaries].into_iter();
        let counts = self.counts.iter_mut().zip(&mut self.checksums);
        for ((corpus, documents), (corpus_counts, checksums)) in corpora.zip(documents).zip(counts)
        {
            let dimensions = int::to_usize(record.dimensions.into());
            if key == block_key(keys, corpus, number) {
                let block = SignBlock::from_value(key, Some(value), dimensions)?;
                let block = block.ok_or_else(|| corrupt_vectors(key))?;
                let last = u64::from(63 - block.covered.leading_zeros());
                if number > documents || document_at(number, last) > documents {
                    let noun = match corpus {
                        Corpus::Messages => "messages",
                        Corpus::Summaries => "summaries",
                    };
                    return Err(Error::corrupt_store(format_args!(
                        "the vector block `{key}` covers document {}, but the conversation has \
                         only {documents} {noun}",
                        document_at(number, last)
                    )));
                }
                corpus_counts.set(number, Some(&block));
                for (document, signs) in block.iter_vectors(number, dimensions) {
                    checksums.insert(document, Some(doc_values::column_checksum(signs)));
                }
                return Ok(());
            }
            if key == vector_key(keys, corpus, number) {
                let vector = codec::decode_raw_bytes(key, value)?;
                let parts: Vec<i8> = vector.iter().map(|byte| i8::from_le_bytes([*byte])).collect();
                if vector.len() != dimensions {
                    return Err(corrupt_vectors(key));
                }
                let checksum = checksums.get_mut(&number).and_then(Option::take);
                if checksum != Some(doc_values::column_checksum(&pack_signs(&parts))) {
                    let (block, _) = locate_document(number);
                    let block = block_key(keys, corpus, block);
                    return Err(Error::corrupt_store(format_args!(
                        "`{block}` must have the sign bits of `{key}`"
                    )));
                }
                return Ok(());
            }
        }
        Err(Error::corrupt_store(format_args!("`{key}` must be a key of a vector or a block")))
    }
}
