//! Segments: immutable blocks of postings with an index of their first keys.
//!
//! Input: the blocks of a segment. Output: puts of their values, and lookup of the blocks that may
//! contain a key. A segment has a root, and one value for each block unless the root holds the
//! blocks:
//!
//! ```text
//! root     number of blocks (2 bytes), then for each block: first key (6 bytes), its size in bytes
//!          (2); then, if the segment is small, the blocks themselves
//! ```
//!
//! The id of a segment is a hash of what the segment was made from, so another history has other
//! ids. Elsewhere: the content of a block ([`lcm_loops::posting_block`]).

#[cfg(test)]
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use lcm_loops::posting_block;
use serde::{Deserialize, Serialize};

use super::{corpus::Corpus, grams::unit_of_message};
use crate::storage::{codec, keys::ConversationKeys, store::Put};
use lcm_text::base::{
    error::{Error, Result},
    int,
};

/// Most bytes of blocks and their index rows that are stored in the root.
const INLINE_BYTES_MAX: usize = 24 << 10;
/// Bytes of the index row of one block in the root.
pub(super) const INDEX_ROW_BYTES: usize = 8;
/// Bytes at which a block is closed.
pub(super) const BLOCK_TARGET: usize = 8 << 10;
/// Size assumed for the value of a block or of a chunk of doc values; it is not checked. A read
/// begins another host call when the assumed sizes exceed `CALL_BYTES_MAX`.
pub(super) const BLOCK_BYTES_ASSUMED: u32 = 20 << 10;

/// A segment as listed in the manifest.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SegmentRef {
    pub(super) id: [u8; 8],
    /// Merge level: 0 for a new segment. A merge of segments of one level gives the next level. A
    /// merge of segments of several levels gives the greatest of these levels.
    pub(super) level: u32,
    pub(super) first_document: u64,
    pub(super) last_document: u64,
    /// Blocks stored as values of their own; 0: the root holds the blocks.
    pub(super) blocks: u32,
    /// Bytes of the value of the root.
    pub(super) root_bytes: u32,
    /// Bytes of all values of the segment, the root included.
    pub(super) bytes: u64,
}

impl SegmentRef {
    /// Returns the documents and units that the segment covers.
    pub(super) fn covered_range(&self, corpus: Corpus) -> posting_block::SegmentRange {
        segment_range(corpus, (self.first_document, self.last_document))
    }

    /// Returns the number of documents that the segment covers.
    pub(super) fn count_documents(&self) -> u64 {
        self.last_document - self.first_document + 1
    }
}

/// Returns a range of documents with the units that contain them. A summary is a unit of its own.
pub(super) fn segment_range(corpus: Corpus, documents: (u64, u64)) -> posting_block::SegmentRange {
    let units = match corpus {
        Corpus::Messages => (unit_of_message(documents.0), unit_of_message(documents.1)),
        Corpus::Summaries => documents,
    };
    posting_block::SegmentRange { documents, units }
}

/// Blocks of a segment, each with its first key, in the order of the keys.
pub(super) type SegmentBlocks = Vec<(u64, Vec<u8>)>;

/// Appends the rows of blocks to the block index of a root.
pub(super) fn append_index_rows(index: &mut Vec<u8>, blocks: &[(u64, Vec<u8>)]) {
    for (key, block) in blocks {
        index.extend(key.to_be_bytes().iter().skip(2));
        index.extend(u16::try_from(block.len()).unwrap_or(u16::MAX).to_be_bytes());
    }
}

/// Adds puts for blocks of a segment, numbered from `from`. Returns the bytes of their values.
///
/// # Errors
///
/// `limit-exceeded`: a value has more than 256 KiB.
pub(super) fn put_blocks(
    keys: &ConversationKeys,
    id: &[u8; 8],
    from: u32,
    blocks: &[(u64, Vec<u8>)],
    puts: &mut Vec<Put>,
) -> Result<u64> {
    let mut bytes = 0;
    for (number, (_, block)) in (from..).zip(blocks) {
        let value = codec::encode_raw_bytes(block)?;
        bytes += int::to_u64(value.len());
        puts.push(Put { key: keys.segment_block_key(id, number), value: Some(value) });
    }
    Ok(bytes)
}

/// Adds the put for the root of a segment: the block index, and the blocks `inline`, if any.
/// Returns the bytes of the value.
///
/// # Errors
///
/// `limit-exceeded`: the value has more than 256 KiB, or the segment more than 65,535 blocks.
pub(super) fn put_root(
    keys: &ConversationKeys,
    id: &[u8; 8],
    index: &[u8],
    inline: &[(u64, Vec<u8>)],
    puts: &mut Vec<Put>,
) -> Result<u32> {
    let count = u16::try_from(index.len() / INDEX_ROW_BYTES)
        .map_err(|_| Error::limit_exceeded("a search segment must have at most 65,535 blocks"))?;
    let mut root = Vec::with_capacity(2 + index.len());
    root.extend(count.to_be_bytes());
    root.extend_from_slice(index);
    for (_, block) in inline {
        root.extend_from_slice(block);
    }
    let value = codec::encode_raw_bytes(&root)?;
    let bytes = int::to_u32(value.len());
    puts.push(Put { key: keys.segment_key(id), value: Some(value) });
    Ok(bytes)
}

/// Returns whether the blocks of a segment fit into its root.
pub(super) fn fits_inline(blocks: &[(u64, Vec<u8>)]) -> bool {
    blocks.iter().map(|(_, block)| block.len() + INDEX_ROW_BYTES).sum::<usize>() <= INLINE_BYTES_MAX
}

/// Content of a segment to write.
pub(super) struct NewSegment<'s> {
    pub(super) id: [u8; 8],
    /// Merge level, as in [`SegmentRef::level`].
    pub(super) level: u32,
    /// First and last document.
    pub(super) documents: (u64, u64),
    pub(super) blocks: &'s SegmentBlocks,
}

/// Adds the puts for a whole segment, with its blocks in the root if they fit.
///
/// # Errors
///
/// `limit-exceeded`: a value has more than 256 KiB, or the segment more than 65,535 blocks.
pub(super) fn put_segment(
    keys: &ConversationKeys,
    segment: &NewSegment<'_>,
    puts: &mut Vec<Put>,
) -> Result<SegmentRef> {
    let NewSegment { id, level, documents, blocks } = *segment;
    let mut index = Vec::new();
    append_index_rows(&mut index, blocks);
    let inline = fits_inline(blocks);
    let (root_bytes, bytes) = if inline {
        (put_root(keys, &id, &index, blocks, puts)?, 0)
    } else {
        let bytes = put_blocks(keys, &id, 0, blocks, puts)?;
        (put_root(keys, &id, &index, &[], puts)?, bytes)
    };
    let (first, last) = documents;
    let count = if inline { 0 } else { int::to_u32(blocks.len()) };
    let bytes = bytes + u64::from(root_bytes);
    Ok(SegmentRef {
        id,
        level,
        first_document: first,
        last_document: last,
        blocks: count,
        root_bytes,
        bytes,
    })
}

/// Decoded root of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRoot<'a> {
    index: &'a [u8],
    /// Blocks stored in the root; empty if the blocks have values of their own.
    inline_blocks: &'a [u8],
}

impl<'a> SegmentRoot<'a> {
    /// Decodes the payload of a root; `None`: the payload cannot be decoded.
    pub(super) fn new(payload: &'a [u8]) -> Option<Self> {
        let (count, rest) = payload.split_first_chunk::<2>()?;
        let rows = usize::from(u16::from_be_bytes(*count)) * INDEX_ROW_BYTES;
        let (index, inline) = rest.split_at_checked(rows)?;
        let root = Self { index, inline_blocks: inline };
        let bytes: usize = (0..root.len())
            .filter_map(|at| root.block_bytes(at))
            .map(|n| int::to_usize(n.into()))
            .sum();
        (inline.is_empty() || bytes == inline.len()).then_some(root)
    }

    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.index.len() / INDEX_ROW_BYTES
    }

    /// Returns the first key of a block; `None`: there is no such block.
    fn first_key(&self, number: usize) -> Option<u64> {
        let row: &[u8; 6] = self.index.get(number * INDEX_ROW_BYTES..)?.first_chunk()?;
        Some(row.iter().fold(0, |key, byte| (key << 8) | u64::from(*byte)))
    }

    /// Returns the size of a block in bytes; `None`: there is no such block.
    pub(super) fn block_bytes(&self, number: usize) -> Option<u32> {
        let row: &[u8; 2] = self.index.get(number * INDEX_ROW_BYTES + 6..)?.first_chunk()?;
        Some(u32::from(u16::from_be_bytes(*row)))
    }

    /// Returns the numbers of the blocks that may contain a key. These are the last block whose
    /// first key is less, and all blocks whose first key is equal.
    pub(super) fn find_blocks(&self, key: u64) -> core::ops::Range<usize> {
        let count_while = |holds: &dyn Fn(u64) -> bool| {
            let (mut low, mut high) = (0, self.len());
            while low < high {
                let middle = (low + high) / 2;
                if self.first_key(middle).is_some_and(holds) {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            low
        };
        let before = count_while(&|first| first < key);
        let end = count_while(&|first| first <= key);
        before.saturating_sub(1)..end
    }

    /// Returns a block that the root holds; `None`: the root does not hold the block.
    pub(super) fn inline_block(&self, number: usize) -> Option<&'a [u8]> {
        self.inline_blocks.get(self.block_range(number)?)
    }

    /// Returns the byte range of a block within the inline blocks; `None`: there is no such block.
    fn block_range(&self, number: usize) -> Option<Range<usize>> {
        let mut from = 0;
        for before in 0..number {
            from += int::to_usize(u64::from(self.block_bytes(before)?));
        }
        let size = int::to_usize(u64::from(self.block_bytes(number)?));
        Some(from..from.checked_add(size)?)
    }

    /// Returns the byte ranges of the inline blocks from `number` on, within the payload. `None`: a
    /// range exceeds the payload.
    pub(super) fn block_ranges_from(&self, number: usize) -> Option<Vec<Range<usize>>> {
        let behind = 2 + self.index.len();
        let range = |number| {
            let range =
                self.block_range(number).filter(|range| range.end <= self.inline_blocks.len())?;
            Some(behind + range.start..behind + range.end)
        };
        (number..self.len()).map(range).collect()
    }
}

/// Builds the error for a value of the index that cannot be decoded or does not match the manifest.
pub(super) fn corrupt_index(key: &str) -> Error {
    Error::corrupt_store(format_args!("`{key}` must hold a part of a search index"))
}

/// Lists the keys of all values of a segment.
#[cfg(test)]
pub(super) fn segment_keys(keys: &ConversationKeys, id: &[u8; 8], blocks: u32) -> Vec<String> {
    let mut out: Vec<String> =
        (0..blocks).map(|number| keys.segment_block_key(id, number)).collect();
    out.push(keys.segment_key(id));
    out
}
