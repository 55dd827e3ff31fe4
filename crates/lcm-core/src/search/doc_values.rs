//! Doc values: length, time and role of each document, and id and size of each summary.
//!
//! Input: the values of new documents, in order. Output: chunks in the store, and the newest chunk
//! in the manifest until that chunk is full. A chunk of lengths has 4,096 documents. The other
//! values are rows, 1,024 messages or 256 summaries in a chunk. Segments contain no doc values, so
//! that a merge does not rewrite them. Used by `index_maintenance` and `index_reader`.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{corpus::Corpus, terms};
use crate::storage::{codec, keys::ConversationKeys, store::Put};
use lcm_text::{
    base::{error::Result, int},
    message::Role,
    types::api::Timestamp,
};

/// Number of documents in one chunk of lengths.
pub(super) const LENGTHS_CHUNK: u64 = 4_096;

/// Returns the number of documents in one chunk of rows.
pub(super) const fn rows_per_chunk(corpus: Corpus) -> u64 {
    match corpus {
        Corpus::Messages => 1_024,
        Corpus::Summaries => 256,
    }
}

/// Time and role of one document, and of a summary its id and size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct DocValueRow {
    pub(super) time: Timestamp,
    pub(super) role: Role,
    /// Id of the summary, and size of its stored value in bytes; `None`: a message.
    pub(super) summary: Option<([u8; 8], u32)>,
}

/// Conversation and corpus whose doc values are written.
#[derive(Clone, Copy)]
pub(super) struct ColumnTarget<'k> {
    pub(super) keys: &'k ConversationKeys,
    pub(super) corpus: Corpus,
}

/// Doc values of one corpus, in the manifest: checksums of the full chunks, and the newest chunk.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct DocValues {
    /// Checksum of each full chunk of lengths, in order.
    pub(super) lengths_checksums: Vec<u32>,
    /// Checksum of each full chunk of rows, in order.
    pub(super) rows_checksums: Vec<u32>,
    /// Lengths of the documents after the full chunks, one byte for each document.
    pub(super) lengths: Vec<u8>,
    /// Encoded rows of the documents after the full chunks.
    pub(super) rows: Vec<u8>,
    /// Number of documents in `rows`.
    pub(super) rows_count: u32,
    /// Time of the last document; 0 without a document.
    pub(super) last_time: Timestamp,
}

impl DocValues {
    /// Adds a document; a chunk that becomes full moves from the manifest to `puts`.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a chunk has more than 256 KiB.
    pub(super) fn push(
        &mut self,
        target: ColumnTarget<'_>,
        length: u8,
        row: &DocValueRow,
        puts: &mut Vec<Put>,
    ) -> Result<()> {
        let ColumnTarget { keys, corpus } = target;
        self.lengths.push(length);
        // The first row of a chunk has an absolute time, so that every chunk decodes alone.
        let time_before = if self.rows_count == 0 { 0 } else { self.last_time };
        let delta = i64::try_from(row.time).unwrap_or(i64::MAX)
            - i64::try_from(time_before).unwrap_or(i64::MAX);
        let zigzag = delta.unsigned_abs() * 2 + u64::from(delta < 0);
        let role = match row.role {
            Role::System => 0,
            Role::User => 1,
            Role::Assistant => 2,
            Role::Tool => 3,
        };
        write_varint(&mut self.rows, (zigzag << 2) | role);
        if let Some((id, bytes)) = &row.summary {
            self.rows.extend_from_slice(id);
            write_varint(&mut self.rows, u64::from(*bytes));
        }
        self.last_time = row.time;
        self.rows_count += 1;
        if int::to_u64(self.lengths.len()) == LENGTHS_CHUNK {
            let number = int::to_u32(self.lengths_checksums.len());
            let key = lengths_key(keys, corpus, number);
            self.lengths_checksums.push(column_checksum(&self.lengths));
            puts.push(Put { key, value: Some(codec::encode_raw_bytes(&self.lengths)?) });
            self.lengths.clear();
        }
        if u64::from(self.rows_count) == rows_per_chunk(corpus) {
            let key = rows_key(keys, corpus, int::to_u32(self.rows_checksums.len()));
            self.rows_checksums.push(column_checksum(&self.rows));
            puts.push(Put { key, value: Some(codec::encode_raw_bytes(&self.rows)?) });
            self.rows.clear();
            self.rows_count = 0;
        }
        Ok(())
    }

    /// Returns whether there are `documents` lengths and rows, and the last time is in bounds.
    pub(super) fn is_sound(&self, corpus: Corpus, documents: u64) -> bool {
        let lengths = int::to_u64(self.lengths_checksums.len()) * LENGTHS_CHUNK;
        let rows = int::to_u64(self.rows_checksums.len()) * rows_per_chunk(corpus);
        lengths + int::to_u64(self.lengths.len()) == documents
            && rows + u64::from(self.rows_count) == documents
            && self.last_time <= lcm_text::base::time::MS_MAX
    }
}

/// Returns the key of a chunk of lengths.
pub(super) fn lengths_key(keys: &ConversationKeys, corpus: Corpus, number: u32) -> String {
    keys.column_key(corpus.key_letter(), 'l', number)
}

/// Returns the key of a chunk of rows.
pub(super) fn rows_key(keys: &ConversationKeys, corpus: Corpus, number: u32) -> String {
    keys.column_key(corpus.key_letter(), 'r', number)
}

/// Computes the 24-bit checksum of a chunk. By the checksum, a reader detects another chunk under
/// the same key.
pub(super) fn column_checksum(bytes: &[u8]) -> u32 {
    int::to_u32(int::to_usize(terms::hash_bytes(bytes) >> 40))
}

fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Decodes the rows of a chunk; `None`: the bytes cannot be decoded.
pub(super) fn decode_rows(mut bytes: &[u8], corpus: Corpus) -> Option<Vec<DocValueRow>> {
    let mut out = Vec::new();
    let mut time = 0i64;
    while !bytes.is_empty() {
        let number = read_varint(&mut bytes)?;
        let role = match number & 3 {
            0 => Role::System,
            1 => Role::User,
            2 => Role::Assistant,
            _ => Role::Tool,
        };
        let zigzag = number >> 2;
        let size = i64::try_from(zigzag / 2).ok()?;
        time = time.checked_add(if zigzag & 1 == 1 { -size } else { size })?;
        let summary = match corpus {
            Corpus::Messages => None,
            Corpus::Summaries => {
                let (id, rest) = bytes.split_first_chunk::<8>()?;
                bytes = rest;
                Some((*id, u32::try_from(read_varint(&mut bytes)?).ok()?))
            }
        };
        out.push(DocValueRow { time: u64::try_from(time).ok()?, role, summary });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_and_full_values_written() {
        let keys = ConversationKeys::new("c").unwrap();
        for corpus in [Corpus::Messages, Corpus::Summaries] {
            let mut columns = DocValues::default();
            let mut puts = Vec::new();
            let summary = (corpus == Corpus::Summaries).then_some(([7; 8], 300));
            let wanted: Vec<DocValueRow> = (0..5_000u64)
                .map(|n| DocValueRow { time: (n * 7_919) % 4_000, role: Role::Tool, summary })
                .collect();
            for row in &wanted {
                columns.push(ColumnTarget { keys: &keys, corpus }, 3, row, &mut puts).unwrap();
            }
            assert!(columns.is_sound(corpus, 5_000));
            let chunk = rows_per_chunk(corpus);
            assert_eq!(int::to_u64(puts.len()), 1 + 5_000 / chunk);
            let mut found = Vec::new();
            for number in 0..int::to_u32(columns.rows_checksums.len()) {
                let key = rows_key(&keys, corpus, number);
                let put = puts.iter().find(|put| put.key == key).unwrap();
                let bytes = codec::decode_raw_bytes(&key, put.value.as_ref().unwrap()).unwrap();
                found.extend(decode_rows(bytes, corpus).unwrap());
            }
            found.extend(decode_rows(&columns.rows, corpus).unwrap());
            assert_eq!(found, wanted);
        }
    }
}
