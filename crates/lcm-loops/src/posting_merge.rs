//! Merges the posting lists of several segments, a bounded piece at a time.
//!
//! Input: some blocks of each segment, and the last posting that earlier pieces merged. Output:
//! merged blocks, and the last merged posting. `segment_merge` of `lcm-core` uses this module.

use alloc::vec::Vec;

use crate::{
    int,
    lengths::DocumentLengths,
    posting_block::{
        BlockReader, BlockWriter, DamagedBlock, FIRST_POSITIONLESS_KEY, PostingGroup, SegmentRange,
    },
    posting_list::{DocumentPosting, PostingListBuilder},
};

/// Bits of the index of an input beside a key in one number of 64 bits. There are far fewer inputs.
const PLACE_BITS: u32 = 16;
/// Number of inputs for which one least key is cached: the square root of the usual 16 inputs.
const INPUTS_PER_GROUP: usize = 4;

/// The last merged posting: a key, and one of its documents.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct MergePosition {
    /// The key.
    pub key: u64,
    /// The document; of a gram, the unit.
    pub document: u64,
}

/// A cursor into the blocks of one input. An entry is one list, or part of a list, in a group.
#[derive(Debug)]
pub struct MergeCursor<'a> {
    range: SegmentRange,
    blocks: Vec<&'a [u8]>,
    /// Index of the current block in the given blocks; their number after the last block.
    pub at: usize,
    reader: Option<BlockReader<'a>>,
    group: PostingGroup,
    /// Index of the current entry in `group`.
    entry: usize,
    /// Index in `group.documents` of the first document of the current entry.
    document: usize,
    /// Index in `group.positions` of the first position of the current entry.
    position: usize,
    /// Whether the input has blocks after the given ones.
    has_more: bool,
    /// Whether all entries of the input were merged.
    pub is_finished: bool,
    /// Whether the input needs a block that was not given.
    is_starved: bool,
}

impl<'a> MergeCursor<'a> {
    /// Starts at the beginning of `blocks`, which belong to an input that covers `range`;
    /// `has_more`: the input has further blocks.
    #[must_use]
    pub fn new(range: SegmentRange, blocks: Vec<&'a [u8]>, has_more: bool) -> Self {
        let is_empty = blocks.is_empty();
        Self {
            range,
            blocks,
            at: 0,
            reader: None,
            group: PostingGroup::default(),
            entry: 0,
            document: 0,
            position: 0,
            has_more,
            is_finished: is_empty && !has_more,
            is_starved: is_empty && has_more,
        }
    }

    /// Seeks the first entry with a posting after `done`, unless the given blocks end before.
    /// `None`: a block cannot be decoded.
    fn seek_entry(&mut self, lengths: &DocumentLengths, done: MergePosition) -> Option<()> {
        while !self.is_finished && !self.is_starved {
            if let Some((size, _)) = self.group.sizes.get(self.entry) {
                let last = self.group.documents.get(self.document + size.checked_sub(1)?)?;
                let (key, document) = (*self.group.keys.get(self.entry)?, *last);
                if (MergePosition { key, document }) > done {
                    return Some(());
                }
                self.advance_entry();
                continue;
            }
            if self.reader.is_none() {
                let Some(block) = self.blocks.get(self.at) else {
                    (self.is_finished, self.is_starved) = (!self.has_more, self.has_more);
                    continue;
                };
                self.reader = Some(BlockReader::new(block, self.range)?);
            }
            let Some(reader) = &mut self.reader else { return None };
            reader.skip_below(done.key);
            (self.entry, self.document, self.position) = (0, 0, 0);
            match reader.next_group(Some(lengths), &mut self.group) {
                Ok(true) => {}
                Ok(false) => {
                    self.group.clear();
                    self.reader = None;
                    self.at += 1;
                }
                Err(DamagedBlock) => return None,
            }
        }
        Some(())
    }

    fn key(&self) -> Option<u64> {
        self.group.keys.get(self.entry).copied()
    }

    /// Advances to the next entry.
    fn advance_entry(&mut self) {
        if let Some((size, occurrences)) = self.group.sizes.get(self.entry) {
            self.document += size;
            if self.key().is_some_and(|key| key < FIRST_POSITIONLESS_KEY) {
                self.position += int::to_usize(*occurrences);
            }
        }
        self.entry += 1;
    }

    /// Adds the documents of the current entry after `done` to a list. Returns the last added
    /// posting, or `done`.
    fn emit_entry(
        &self,
        done: MergePosition,
        list: &mut PostingListBuilder,
        writer: &mut BlockWriter<'_>,
    ) -> MergePosition {
        let mut last = done;
        let Some(key) = self.key() else { return last };
        let size = self.group.sizes.get(self.entry).map_or(0, |(size, _)| *size);
        let to = self.document + size;
        let documents = self.group.documents.get(self.document..to).unwrap_or_default();
        let counts = self.group.counts.get(self.document..to).unwrap_or_default();
        let mut positions = self.group.positions.get(self.position..).unwrap_or_default();
        for (document, count) in documents.iter().zip(counts) {
            let take = if key < FIRST_POSITIONLESS_KEY { int::to_usize(*count) } else { 0 };
            let (own, rest) = positions.split_at_checked(take).unwrap_or_default();
            positions = rest;
            let position = MergePosition { key, document: *document };
            if position > done {
                let posting =
                    DocumentPosting { document: *document, count: *count, positions: own };
                list.add_document(key, &posting, writer);
                last = position;
            }
        }
        last
    }
}

/// Merges entries after `done` in the order of their keys, and of equal keys in the order of the
/// cursors. Returns the last merged posting.
///
/// Stops when all entries are merged, or a cursor needs a block that was not given. Also stops when
/// the groups that `writer` finished have `bytes_max` bytes.
///
/// # Errors
///
/// The index of a cursor with a block that cannot be decoded.
#[inline(never)]
pub fn merge_cursors(
    cursors: &mut [MergeCursor<'_>],
    lengths: &DocumentLengths,
    mut done: MergePosition,
    bytes_max: usize,
    writer: &mut BlockWriter<'_>,
) -> core::result::Result<MergePosition, usize> {
    // The next key of each input, with the index of the input in the low bits. The least of these
    // numbers is merged next.
    let head = |cursor: &MergeCursor<'_>, at: usize| match cursor.key() {
        Some(key) => (key << PLACE_BITS) | int::to_u64(at),
        None => u64::MAX,
    };
    let mut heads = Vec::with_capacity(cursors.len());
    for (at, cursor) in cursors.iter_mut().enumerate() {
        cursor.seek_entry(lengths, done).ok_or(at)?;
        heads.push(head(cursor, at));
    }
    // The least number of every four inputs is cached, so that few numbers are compared.
    let least_of = |few: &[u64]| few.iter().fold(u64::MAX, |least, head| least.min(*head));
    let mut leasts: Vec<u64> = heads.chunks(INPUTS_PER_GROUP).map(least_of).collect();
    let mut starved = cursors.iter().any(|cursor| cursor.is_starved);
    let mut list = PostingListBuilder::default();
    let mut current = 0;
    while writer.bytes < bytes_max && !starved {
        let least = least_of(&leasts);
        let (key, at) = (least >> PLACE_BITS, int::to_usize(least & ((1 << PLACE_BITS) - 1)));
        if least == u64::MAX {
            break;
        }
        if key != current {
            list.flush(current, writer);
            current = key;
        }
        let Some(cursor) = cursors.get_mut(at) else { break };
        done = cursor.emit_entry(done, &mut list, writer);
        cursor.advance_entry();
        cursor.seek_entry(lengths, done).ok_or(at)?;
        starved = cursor.is_starved;
        if let Some(few) = heads.chunks_mut(INPUTS_PER_GROUP).nth(at / INPUTS_PER_GROUP)
            && let Some(slot) = few.get_mut(at % INPUTS_PER_GROUP)
            && let Some(of_few) = leasts.get_mut(at / INPUTS_PER_GROUP)
        {
            *slot = head(cursor, at);
            *of_few = least_of(few);
        }
    }
    list.flush(current, writer);
    Ok(done)
}
