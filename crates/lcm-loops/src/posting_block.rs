//! Blocks: the encoded postings of consecutive keys, and lookup of a key in a block.
//!
//! [`BlockWriter`] takes posting lists in the order of their keys and returns blocks.
//! [`BlockReader`] takes a block and returns its lists. The search index of `lcm-core` stores the
//! blocks.
//!
//! ```text
//! block    number of groups (2 bytes), then for each group: first key (6 bytes), bytes of its
//!          documents (2), bytes of its positions (2); then the documents of all groups, then the
//!          positions of all groups
//! group    at most 64 keys, ascending: keys, number of documents, number of occurrences; then for
//!          each key its documents and the number of occurrences in each
//! ```
//!
//! Numbers in groups are encoded by `bit_codes`. A long list is split into parts. A part ends at
//! 1,024 documents, or with the document that reaches 4,096 occurrences. Each further part begins a
//! new group, so that several groups may have the same key.
//!
//! A *unit* is a block of consecutive documents for which grams, three bytes in a row, are listed.

use alloc::vec::Vec;

use crate::{
    bit_codes::{BitReader, BitWriter},
    int,
    lengths::DocumentLengths,
};

/// Largest number of keys of one group.
const GROUP_KEYS_MAX: usize = 64;
/// Number of documents at which a group is full.
const GROUP_DOCUMENTS: usize = 768;
/// Number of positions at which a group is full.
const GROUP_POSITIONS: usize = 1_536;
/// Largest number of documents in one part of a list.
pub const PART_DOCUMENTS_MAX: usize = 1_024;
/// Number of occurrences at which a part of a list is full.
///
/// All occurrences of a document are in one part, so a part may exceed this number by the
/// occurrences of one document.
pub const PART_OCCURRENCES_MAX: u64 = 4_096;
/// Largest number of documents of a list that is encoded as a whole. A longer list stores its first
/// and last document before the others.
const BOUNDED_DOCUMENTS: usize = 16;
/// Bytes of one row in the table of groups.
const TABLE_ROW: usize = 10;
/// Bits of a key: 2 of the kind, and 40 of the hash of a term or of a gram.
pub const KEY_BITS: u32 = 42;

/// First key of terms without positions; keys below are terms with positions.
pub const FIRST_POSITIONLESS_KEY: u64 = 1 << 40;
/// First key of grams.
pub const FIRST_GRAM_KEY: u64 = 1 << 41;
/// The key of units with too many grams to list.
pub const EVERY_GRAM_KEY: u64 = FIRST_GRAM_KEY + (1 << 24);

/// The documents and units of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRange {
    /// First and last document.
    pub documents: (u64, u64),
    /// First and last unit.
    pub units: (u64, u64),
}

impl SegmentRange {
    const fn key_range(&self, key: u64) -> (u64, u64) {
        if key >= FIRST_GRAM_KEY { self.units } else { self.documents }
    }
}

/// The lists of one or several keys, concatenated.
#[derive(Debug, Default)]
pub struct PostingGroup {
    /// The keys, ascending.
    pub keys: Vec<u64>,
    /// For each key, its number of documents and of occurrences.
    pub sizes: Vec<(usize, u64)>,
    /// Documents of all keys in turn; for grams, units.
    pub documents: Vec<u64>,
    /// Number of occurrences in each of the documents.
    pub counts: Vec<u64>,
    /// Positions in each of the documents, for keys below [`FIRST_POSITIONLESS_KEY`] only; empty if
    /// they were not decoded.
    pub positions: Vec<u64>,
}

impl PostingGroup {
    /// Removes all lists and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.sizes.clear();
        self.documents.clear();
        self.counts.clear();
        self.positions.clear();
    }

    fn is_full(&self) -> bool {
        self.keys.len() == GROUP_KEYS_MAX
            || self.documents.len() >= GROUP_DOCUMENTS
            || self.positions.len() >= GROUP_POSITIONS
    }

    fn encode(&self, range: &SegmentRange, bits: &mut BitWriter, out: &mut Vec<u8>) {
        let (Some(first), Some(last)) = (self.keys.first(), self.keys.last()) else { return };
        let count = self.keys.len();
        bits.write_gamma(int::to_u64(count));
        bits.write_bounded(*last - *first, 1 << KEY_BITS);
        if let Some(inner) = self.keys.get(1..count.saturating_sub(1)) {
            bits.write_ascending(inner, *first + 1, last.saturating_sub(1));
        }
        for ((documents, occurrences), key) in self.sizes.iter().zip(&self.keys) {
            bits.write_gamma(int::to_u64(*documents));
            if *key < FIRST_GRAM_KEY {
                bits.write_gamma(occurrences + 1 - int::to_u64(*documents));
            }
        }
        let (mut documents, mut counts) = (self.documents.as_slice(), self.counts.as_slice());
        let mut sums = Vec::new();
        for ((size, occurrences), key) in self.sizes.iter().zip(&self.keys) {
            let (own, rest) = documents.split_at_checked(*size).unwrap_or_default();
            documents = rest;
            encode_documents(bits, own, range.key_range(*key));
            let (own, rest) = counts.split_at_checked(*size).unwrap_or_default();
            counts = rest;
            if *occurrences > int::to_u64(*size) {
                sums.clear();
                let mut sum = 0;
                sums.extend(own.iter().map(|count| {
                    sum += count;
                    sum
                }));
                sums.pop();
                bits.write_ascending(&sums, 1, occurrences - 1);
            }
        }
        bits.drain_into(out);
    }

    fn encode_positions(&self, lengths: &DocumentLengths, bits: &mut BitWriter, out: &mut Vec<u8>) {
        let mut positions = self.positions.as_slice();
        let mut rows = self.documents.iter().zip(&self.counts);
        for ((size, _), key) in self.sizes.iter().zip(&self.keys) {
            for (document, count) in rows.by_ref().take(*size) {
                if *key < FIRST_POSITIONLESS_KEY {
                    let (own, rest) =
                        positions.split_at_checked(int::to_usize(*count)).unwrap_or_default();
                    positions = rest;
                    bits.write_ascending(own, 0, lengths.position_bound(*document, *count) - 1);
                }
            }
        }
        bits.drain_into(out);
    }

    /// Decodes keys, documents and counts of a group; `None`: the bytes cannot be decoded.
    fn decode(&mut self, bytes: &[u8], first: u64, range: &SegmentRange) -> Option<()> {
        self.clear();
        let mut bits = BitReader::new(bytes);
        let count = int::to_usize(bits.read_gamma());
        if count > GROUP_KEYS_MAX {
            return None;
        }
        let last = first + bits.read_bounded(1 << KEY_BITS);
        if last - first + 1 < int::to_u64(count) || (count == 1 && last != first) {
            return None;
        }
        self.keys.resize(count, last);
        *self.keys.first_mut()? = first;
        if count > 2 {
            bits.read_ascending(self.keys.get_mut(1..count - 1)?, first + 1, last - 1);
        }
        for key in &self.keys {
            let documents = bits.read_gamma();
            let more = if *key < FIRST_GRAM_KEY { bits.read_gamma() - 1 } else { 0 };
            let (low, high) = range.key_range(*key);
            let parts = int::to_u64(PART_DOCUMENTS_MAX);
            if documents > (high - low + 1).min(parts) || more > 1 << 21 {
                return None;
            }
            self.sizes.push((int::to_usize(documents), documents + more));
        }
        let total: usize = self.sizes.iter().map(|(size, _)| size).sum();
        self.documents.resize(total, 0);
        self.counts.resize(total, 1);
        let (mut documents, mut counts) =
            (self.documents.as_mut_slice(), self.counts.as_mut_slice());
        for ((size, occurrences), key) in self.sizes.iter().zip(&self.keys) {
            let (own, rest) = documents.split_at_mut_checked(*size)?;
            documents = rest;
            decode_documents(&mut bits, own, range.key_range(*key));
            let (own, rest) = counts.split_at_mut_checked(*size)?;
            counts = rest;
            if *occurrences > int::to_u64(*size) {
                decode_counts(&mut bits, own, *occurrences);
            }
        }
        (!bits.is_past_end()).then_some(())
    }

    /// Decodes the positions of a group whose documents and counts were decoded; `None`: the bytes
    /// cannot be decoded.
    fn decode_positions(&mut self, bytes: &[u8], lengths: &DocumentLengths) -> Option<()> {
        let mut bits = BitReader::new(bytes);
        let mut rows = self.documents.iter().zip(&self.counts);
        for ((size, _), key) in self.sizes.iter().zip(&self.keys) {
            for (document, count) in rows.by_ref().take(*size) {
                if *key < FIRST_POSITIONLESS_KEY {
                    let from = self.positions.len();
                    self.positions.resize(from.checked_add(int::to_usize(*count))?, 0);
                    let high = lengths.position_bound(*document, *count) - 1;
                    bits.read_ascending(self.positions.get_mut(from..)?, 0, high);
                }
            }
        }
        (!bits.is_past_end()).then_some(())
    }
}

fn encode_documents(bits: &mut BitWriter, list: &[u64], (low, high): (u64, u64)) {
    match list {
        [first, inner @ .., last] if list.len() > BOUNDED_DOCUMENTS => {
            bits.write_bounded(*first - low, high - low + 1);
            bits.write_bounded(*last - *first, high - *first + 1);
            bits.write_ascending(inner, *first + 1, *last - 1);
        }
        _ => bits.write_ascending(list, low, high),
    }
}

fn decode_documents(bits: &mut BitReader<'_>, list: &mut [u64], (low, high): (u64, u64)) {
    let count = list.len();
    match list {
        [first, inner @ .., last] if count > BOUNDED_DOCUMENTS => {
            let rest = int::to_u64(count) - 1;
            *first = (low + bits.read_bounded(high - low + 1)).min(high - rest);
            *last = (*first + bits.read_bounded(high - *first + 1)).max(*first + rest);
            bits.read_ascending(inner, *first + 1, *last - 1);
        }
        _ => bits.read_ascending(list, low, high),
    }
}

fn decode_counts(bits: &mut BitReader<'_>, counts: &mut [u64], occurrences: u64) {
    let Some((last, sums)) = counts.split_last_mut() else { return };
    if !sums.is_empty() {
        bits.read_ascending(sums, 1, occurrences - 1);
    }
    let mut before = 0;
    for sum in sums {
        (*sum, before) = (*sum - before, *sum);
    }
    *last = occurrences - before;
}

/// Appends numbers to a list, up to 16 of them one by one. Most lists have one or two numbers, and
/// a bulk copy in the component is a call of the host.
#[inline]
pub(crate) fn extend_list(list: &mut Vec<u64>, more: &[u64]) {
    if more.len() > 16 {
        return list.extend_from_slice(more);
    }
    for number in more {
        list.push(*number);
    }
}

/// A writer of blocks from lists in the order of their keys.
#[derive(Debug)]
pub struct BlockWriter<'a> {
    range: SegmentRange,
    lengths: &'a DocumentLengths,
    /// Number of bytes at which a block is full.
    target: usize,
    group: PostingGroup,
    bits: BitWriter,
    table: Vec<u8>,
    documents: Vec<u8>,
    positions: Vec<u8>,
    /// First key and content of each finished block.
    pub blocks: Vec<(u64, Vec<u8>)>,
    /// Bytes of the documents and positions of all finished groups.
    pub bytes: usize,
}

impl<'a> BlockWriter<'a> {
    /// Starts the blocks of a segment that covers `range`; a block is closed at `target` bytes.
    #[must_use]
    pub fn new(range: SegmentRange, lengths: &'a DocumentLengths, target: usize) -> Self {
        Self {
            range,
            lengths,
            target,
            group: PostingGroup::default(),
            bits: BitWriter::default(),
            table: Vec::new(),
            documents: Vec::new(),
            positions: Vec::new(),
            blocks: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds the list of a key, or one part of the list; keys and documents must ascend.
    ///
    /// `positions` are the positions in all documents in turn; empty from
    /// [`FIRST_POSITIONLESS_KEY`] on.
    pub fn push(&mut self, key: u64, documents: &[u64], counts: &[u64], positions: &[u64]) {
        if self.group.keys.last() == Some(&key) || self.group.is_full() {
            self.close_group();
        }
        self.group.keys.push(key);
        self.group.sizes.push((documents.len(), counts.iter().sum()));
        extend_list(&mut self.group.documents, documents);
        extend_list(&mut self.group.counts, counts);
        extend_list(&mut self.group.positions, positions);
    }

    fn close_group(&mut self) {
        let Some(first) = self.group.keys.first().copied() else { return };
        let (documents, positions) = (self.documents.len(), self.positions.len());
        self.group.encode(&self.range, &mut self.bits, &mut self.documents);
        self.group.encode_positions(self.lengths, &mut self.bits, &mut self.positions);
        self.table.extend(first.to_be_bytes().iter().skip(2));
        for bytes in [self.documents.len() - documents, self.positions.len() - positions] {
            self.table.extend(u16::try_from(bytes).unwrap_or(u16::MAX).to_le_bytes());
            self.bytes += bytes;
        }
        self.group.clear();
        if self.documents.len() + self.positions.len() + self.table.len() >= self.target {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let Some(first) = read_key(&self.table) else { return };
        let groups = u16::try_from(self.table.len() / TABLE_ROW).unwrap_or(u16::MAX);
        let mut block =
            Vec::with_capacity(2 + self.table.len() + self.documents.len() + self.positions.len());
        block.extend(groups.to_le_bytes());
        block.append(&mut self.table);
        block.append(&mut self.documents);
        block.append(&mut self.positions);
        self.blocks.push((first, block));
    }

    /// Closes the last block and returns all blocks.
    pub fn finish(mut self) -> Vec<(u64, Vec<u8>)> {
        self.close_group();
        self.close_block();
        self.blocks
    }
}

/// Reads the key at the beginning of a row; `None`: there is no row.
fn read_key(row: &[u8]) -> Option<u64> {
    let bytes: &[u8; 6] = row.first_chunk()?;
    Some(bytes.iter().fold(0, |key, byte| (key << 8) | u64::from(*byte)))
}

fn read_size(row: &[u8], at: usize) -> Option<usize> {
    let bytes: &[u8; 2] = row.get(at..)?.first_chunk()?;
    Some(usize::from(u16::from_le_bytes(*bytes)))
}

/// A block that cannot be decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DamagedBlock;

/// Receives the documents of a list, the number of occurrences in each, and all positions in turn
/// (none if they were not decoded).
pub type EachList<'e> = &'e mut dyn FnMut(&[u64], &[u64], &[u64]);

/// A reader of a block, group by group.
#[derive(Debug)]
pub struct BlockReader<'a> {
    table: &'a [u8],
    documents: &'a [u8],
    positions: &'a [u8],
    range: SegmentRange,
}

impl<'a> BlockReader<'a> {
    /// Opens a block of a segment that covers `range`; `None`: the bytes are no block.
    #[must_use]
    pub fn new(block: &'a [u8], range: SegmentRange) -> Option<Self> {
        let (groups, rest) = block.split_first_chunk::<2>()?;
        let rows = usize::from(u16::from_le_bytes(*groups)) * TABLE_ROW;
        let (table, rest) = rest.split_at_checked(rows)?;
        let (mut documents, mut positions) = (0, 0);
        for row in table.chunks_exact(TABLE_ROW) {
            documents += read_size(row, 6)?;
            positions += read_size(row, 8)?;
        }
        if documents + positions != rest.len() {
            return None;
        }
        let (documents, positions) = rest.split_at_checked(documents)?;
        Some(Self { table, documents, positions, range })
    }

    /// Returns the first key of the next group; `None`: there is no group left.
    fn next_key(&self) -> Option<u64> {
        read_key(self.table)
    }

    /// Skips groups until the group after the next group begins at `key` or later, or does not
    /// exist. Also stops at a damaged group.
    pub fn skip_below(&mut self, key: u64) {
        while self.table.get(TABLE_ROW..).and_then(read_key).is_some_and(|next| next < key) {
            if self.take_group().is_none() {
                return;
            }
        }
    }

    /// Takes the first key, the documents and the positions of the next group, still encoded.
    /// `None`: no group is left, or the group is damaged.
    fn take_group(&mut self) -> Option<(u64, &'a [u8], &'a [u8])> {
        let (row, table) = self.table.split_at_checked(TABLE_ROW)?;
        let (documents, later) = self.documents.split_at_checked(read_size(row, 6)?)?;
        let (positions, behind) = self.positions.split_at_checked(read_size(row, 8)?)?;
        (self.table, self.documents, self.positions) = (table, later, behind);
        let key = read_key(row).filter(|key| *key < 1 << KEY_BITS)?;
        Some((key, documents, positions))
    }

    /// Decodes the next group, which has the lists of up to 64 keys, and replaces the content of
    /// `into`; positions are decoded only if lengths are given. Returns `false`, and leaves `into`
    /// as it is, if no group is left.
    ///
    /// # Errors
    ///
    /// [`DamagedBlock`]: the group cannot be decoded.
    pub fn next_group(
        &mut self,
        lengths: Option<&DocumentLengths>,
        into: &mut PostingGroup,
    ) -> Result<bool, DamagedBlock> {
        if self.table.is_empty() {
            return Ok(false);
        }
        let (key, documents, positions) = self.take_group().ok_or(DamagedBlock)?;
        into.decode(documents, key, &self.range).ok_or(DamagedBlock)?;
        if let Some(lengths) = lengths {
            into.decode_positions(positions, lengths).ok_or(DamagedBlock)?;
        }
        Ok(true)
    }

    /// Calls `each` with the list of a key, part by part, from the next group on. Positions are
    /// decoded if lengths are given.
    ///
    /// # Errors
    ///
    /// [`DamagedBlock`]: a group cannot be decoded.
    pub fn find_lists(
        &mut self,
        key: u64,
        lengths: Option<&DocumentLengths>,
        each: EachList<'_>,
    ) -> Result<(), DamagedBlock> {
        let mut group = PostingGroup::default();
        while let Some(first) = self.next_key().filter(|first| *first <= key) {
            let next = self.table.get(TABLE_ROW..).and_then(read_key);
            if first < key && next.is_some_and(|next| next <= key) && !self.may_contain(key, next) {
                self.take_group().ok_or(DamagedBlock)?;
                continue;
            }
            self.next_group(lengths, &mut group)?;
            let Some(at) = group.keys.iter().position(|known| *known == key) else { continue };
            let from: usize = group.sizes.iter().take(at).map(|(size, _)| size).sum();
            let (size, occurrences) = group.sizes.get(at).copied().unwrap_or_default();
            let before = group.sizes.iter().zip(&group.keys).take(at);
            let skipped: u64 = before
                .filter(|(_, key)| **key < FIRST_POSITIONLESS_KEY)
                .map(|((_, sum), _)| *sum)
                .sum();
            let skipped = int::to_usize(skipped);
            let to = skipped.saturating_add(int::to_usize(occurrences));
            each(
                group.documents.get(from..from + size).unwrap_or_default(),
                group.counts.get(from..from + size).unwrap_or_default(),
                group.positions.get(skipped..to).unwrap_or_default(),
            );
        }
        Ok(())
    }

    /// Returns whether the next group may contain `key`. The group must begin below `key`, and the
    /// group after it must begin at `next`, which is at most `key`.
    ///
    /// A list is split at group boundaries, so the next group can contain `key` only if `next` is
    /// `key`.
    const fn may_contain(&self, key: u64, next: Option<u64>) -> bool {
        matches!(next, Some(next) if next == key)
    }
}
