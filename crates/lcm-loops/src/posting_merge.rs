//! Several ascending inputs become one, a bounded piece at a time.
//!
//! In: of each input some blocks, and how far earlier pieces went. Out: blocks, and how far this
//! piece went.

use alloc::vec::Vec;

use crate::{
    int,
    lengths::DocumentLengths,
    posting_block::{
        BlockReader, BlockWriter, DamagedBlock, FIRST_POSITIONLESS_KEY, PostingGroup, SegmentRange,
    },
    posting_list::PostingListBuilder,
};

/// Bits of the place of an input: there are far fewer, and with a key they fit 64.
const PLACE_BITS: u32 = 16;
/// Inputs whose least key is kept together: about the root of their number.
const INPUTS_PER_GROUP: usize = 4;

/// One input, read entry by entry.
#[derive(Debug)]
pub struct MergeCursor<'a> {
    range: SegmentRange,
    blocks: Vec<&'a [u8]>,
    /// Block that is read, counted from the first one given.
    pub at: usize,
    reader: Option<BlockReader<'a>>,
    group: PostingGroup,
    /// Key, first document and first position that were not taken.
    entry: usize,
    document: usize,
    position: usize,
    has_more: bool,
    /// Nothing is left of the input.
    pub is_finished: bool,
    /// It needs a block that was not given.
    is_starved: bool,
}

impl<'a> MergeCursor<'a> {
    /// At the beginning of these blocks of an input that covers `range`; `has_more`: it has blocks
    /// behind them.
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

    /// Goes to the next entry behind `done`; `None`: a block cannot be read.
    fn seek_entry(&mut self, lengths: &DocumentLengths, done: (u64, u64)) -> Option<()> {
        while !self.is_finished && !self.is_starved {
            if let Some((size, _)) = self.group.sizes.get(self.entry) {
                let last = self.group.documents.get(self.document + size.checked_sub(1)?)?;
                if (*self.group.keys.get(self.entry)?, *last) > done {
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
            reader.skip_below(done.0);
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

    /// Passes the current entry.
    fn advance_entry(&mut self) {
        if let Some((size, occurrences)) = self.group.sizes.get(self.entry) {
            self.document += size;
            if self.key().is_some_and(|key| key < FIRST_POSITIONLESS_KEY) {
                self.position += int::to_usize(*occurrences);
            }
        }
        self.entry += 1;
    }

    /// Adds the documents of the current entry that are behind `done` to a list.
    fn emit_entry(
        &self,
        done: (u64, u64),
        list: &mut PostingListBuilder,
        writer: &mut BlockWriter<'_>,
    ) -> (u64, u64) {
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
            if (key, *document) > done {
                list.add_document(key, *document, *count, own, writer);
                last = (key, *document);
            }
        }
        last
    }
}

/// Takes entries in the order of their keys, and of one key in the order of the inputs, until a
/// block is needed that was not given or so many bytes were made. Returns what was taken last.
///
/// # Errors
///
/// The place of an input that cannot be read.
#[inline(never)]
pub fn merge_cursors(
    cursors: &mut [MergeCursor<'_>],
    lengths: &DocumentLengths,
    mut done: (u64, u64),
    bytes_max: usize,
    writer: &mut BlockWriter<'_>,
) -> core::result::Result<(u64, u64), usize> {
    // The next key of each input with the input's place below it: the least is what comes next.
    let head = |cursor: &MergeCursor<'_>, at: usize| match cursor.key() {
        Some(key) => (key << PLACE_BITS) | int::to_u64(at),
        None => u64::MAX,
    };
    let mut heads = Vec::with_capacity(cursors.len());
    for (at, cursor) in cursors.iter_mut().enumerate() {
        cursor.seek_entry(lengths, done).ok_or(at)?;
        heads.push(head(cursor, at));
    }
    // Of every few inputs the least, so that not all are looked at for each entry.
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
