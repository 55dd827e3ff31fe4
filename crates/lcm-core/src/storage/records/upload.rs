//! The record of an uploaded text, and the chunks that hold the text.
//!
//! In: a text, whole or in pieces. Out: chunks and their lengths. A message refers to the same
//! chunks later, so nothing is copied. Ingest uses this module for uploads and for texts over 64
//! KiB.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    changes::Changes,
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
    store::Put,
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    hash, int, limits,
};

/// Most chunks of one host call: five of 192 KiB stay under 1 MiB.
const CHUNKS_PER_READ: usize = 5;

/// The record of an uploaded text, whose key has the SHA-256 of the whole text.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Upload {
    /// Bytes of all chunks so far.
    pub(crate) bytes: u64,
    /// Length of each chunk in bytes, in order.
    pub(crate) chunks: Vec<u32>,
    /// Whether a message refers to the text; from then on the record never changes.
    pub(crate) is_final: bool,
}

impl SoundRecord for Upload {
    fn is_sound(&self) -> bool {
        let chunks: u64 = self.chunks.iter().map(|bytes| u64::from(*bytes)).sum();
        self.bytes <= limits::MESSAGE_BYTES_MAX && self.bytes == chunks
    }
}

impl Upload {
    /// Returns the key of the record of the chunked text with this SHA-256.
    pub(crate) fn key(keys: &ConversationKeys, sha256: &[u8; 32]) -> RecordKey<Self> {
        RecordKey::new(keys.upload_key(sha256))
    }

    /// Adds the write of the next chunk to `changes` and counts the chunk in this record.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the chunk is larger than 256 KiB.
    pub(crate) fn write_chunk(
        &mut self,
        keys: &ConversationKeys,
        sha256: &[u8; 32],
        text: &str,
        changes: &mut Changes,
    ) -> Result<()> {
        let key = keys.chunk_key(sha256, int::to_u32(self.chunks.len()));
        changes.add_put(Put { key, value: Some(codec::encode_chunk(text.as_bytes())?) });
        self.chunks.push(int::to_u32(text.len()));
        self.bytes += int::to_u64(text.len());
        Ok(())
    }

    /// Cuts a text into chunks of at most 192 KiB and adds their writes to `changes`; returns the
    /// record, whose write is not added.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a chunk is larger than 256 KiB, which the cut at 192 KiB prevents.
    pub(crate) fn write_chunks(
        keys: &ConversationKeys,
        sha256: &[u8; 32],
        text: &str,
        changes: &mut Changes,
    ) -> Result<Self> {
        let mut upload = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, tail) = split_at_bytes(rest, limits::CHUNK_BYTES_MAX);
            upload.write_chunk(keys, sha256, piece, changes)?;
            rest = tail;
        }
        Ok(upload)
    }

    /// Returns whether the store holds exactly `text` as the chunk with this number, from 0.
    ///
    /// # Errors
    ///
    /// `corrupt`: the chunk cannot be decoded; errors of the store.
    pub(crate) fn has_chunk(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        sha256: &[u8; 32],
        number: u32,
        text: &str,
    ) -> Result<bool> {
        let key = keys.chunk_key(sha256, number);
        match session.read_one_uncached(&key)? {
            Some(value) => Ok(*codec::decode_chunk(&key, &value)? == *text.as_bytes()),
            None => Ok(false),
        }
    }

    /// Reads the chunks so far and joins them, without verifying the SHA-256.
    ///
    /// # Errors
    ///
    /// `conflict`: a chunk is missing, and the head has changed; `corrupt`: a chunk is missing, and
    /// the head has not changed, or the text is not UTF-8; errors of the store.
    pub(crate) fn read_text(
        &self,
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        sha256: &[u8; 32],
    ) -> Result<String> {
        let names: Vec<String> = (0..int::to_u32(self.chunks.len()))
            .map(|number| keys.chunk_key(sha256, number))
            .collect();
        let mut text = Vec::with_capacity(int::to_usize(self.bytes));
        for slice in names.chunks(CHUNKS_PER_READ) {
            // Not from the cache, because the chunks of an unfinished upload can change.
            for (key, value) in slice.iter().zip(session.read_uncached(slice)?) {
                let Some(value) = value else { return Err(session.missing_record_error(key)) };
                text.extend_from_slice(&codec::decode_chunk(key, &value)?);
            }
        }
        let name = hash::hex(sha256);
        String::from_utf8(text).map_err(|_| {
            Error::corrupt_store(format_args!("the text of upload `{name}` is not UTF-8"))
        })
    }
}

/// Splits a text at the last character boundary within its first `bytes_max` bytes.
fn split_at_bytes(text: &str, bytes_max: usize) -> (&str, &str) {
    let mut at = bytes_max.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.split_at_checked(at).unwrap_or((text, ""))
}
