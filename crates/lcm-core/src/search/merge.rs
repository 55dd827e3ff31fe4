//! Merging: several adjacent segments become one, a bounded piece in each commit.
//!
//! Readers use the inputs until the output is complete; then the manifest names the output, and the
//! inputs are deleted over the commits that follow. Everything that a step reads can be named from
//! the manifest alone: of each input at most two blocks, from where the last step ended, and the
//! lengths of the documents. A step ends where the next block of some input would be needed.

use alloc::{string::String, vec::Vec};

use super::{
    Family,
    block::{BARE, BlockReader, BlockWriter, Group, Range},
    builder::List,
    columns::{self, LENGTHS_CHUNK, Lengths},
    manifest::{Merge, SEGMENT_DOCUMENTS_MAX, State},
    segment::{self, Blocks, Root, SegmentRef},
};
use crate::{
    codec,
    error::Result,
    keys::{self, Keys},
    num,
    reader::Reader,
    store::Put,
};

/// Segments of one level that become one of the next.
const FAN_OUT: usize = 16;
/// Blocks of one input that one step reads.
const BLOCKS_AHEAD: u32 = 2;
/// Bytes of input after which a step ends.
const STEP_BYTES: usize = 96 << 10;
/// Bytes of a block after which the next begins.
const BLOCK_TARGET: usize = 8 << 10;
/// The next block of an input that was read to its end.
const FINISHED: u32 = u32::MAX;

/// What one step was given to read.
#[derive(Debug)]
pub(super) struct Material {
    /// For each input its blocks from the next one on.
    inputs: Vec<Vec<Vec<u8>>>,
    /// Whether each input has further blocks.
    more: Vec<bool>,
    lengths: Lengths,
}

/// Begins a merge if there is none and enough is there to be merged. `major`: fewer segments will
/// do, if that makes the index smaller by much.
pub(super) fn start(state: &mut State, major: bool) {
    if state.merge.is_some() {
        return;
    }
    let Some(found) =
        full_level(&state.segments).or_else(|| if major { newest(&state.segments) } else { None })
    else {
        return;
    };
    let inputs = state.segments.get(found.clone()).unwrap_or_default();
    let fields: Vec<&[u8]> = inputs.iter().map(|input| input.id.as_slice()).collect();
    state.merge = Some(Merge {
        id: keys::prefix(&keys::hash(&fields)),
        from: num::to_u32(found.start),
        count: num::to_u32(found.len()),
        next: alloc::vec![0; found.len()],
        done: (0, 0),
        blocks: 0,
        index: Vec::new(),
        bytes: 0,
    });
}

type Places = core::ops::Range<usize>;

fn documents(segments: &[SegmentRef]) -> u64 {
    segments.iter().map(SegmentRef::documents).sum()
}

/// The oldest segments of the lowest level of which there are enough next to each other.
fn full_level(segments: &[SegmentRef]) -> Option<Places> {
    let mut best: Option<(u32, Places)> = None;
    let mut from = 0;
    while let Some(first) = segments.get(from) {
        let same = |segment: &&SegmentRef| segment.level == first.level;
        let rest = segments.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(same).count();
        let places = from..from + count.min(FAN_OUT);
        let inputs = segments.get(places.clone()).unwrap_or_default();
        let fits = documents(inputs) <= SEGMENT_DOCUMENTS_MAX;
        let lower = best.as_ref().is_none_or(|(level, _)| first.level < *level);
        if count >= FAN_OUT && fits && lower {
            best = Some((first.level, places));
        }
        from += count;
    }
    best.map(|(_, places)| places)
}

/// The newest segments, if the largest of them is not nearly all of them.
fn newest(segments: &[SegmentRef]) -> Option<Places> {
    let mut from = segments.len().saturating_sub(FAN_OUT);
    while documents(segments.get(from..)?) > SEGMENT_DOCUMENTS_MAX {
        from += 1;
    }
    let inputs = segments.get(from..).filter(|inputs| inputs.len() > 1)?;
    let largest = inputs.iter().map(SegmentRef::documents).max()?;
    (largest <= documents(inputs) / 8 * 7).then_some(from..segments.len())
}

/// Keys of what the next step of a merge reads.
pub(super) fn wanted(keys: &Keys, family: Family, state: &State) -> Vec<String> {
    let Some(merge) = &state.merge else { return Vec::new() };
    let mut out = Vec::new();
    for (input, next) in state.inputs().iter().zip(&merge.next) {
        match (*next, input.blocks) {
            (FINISHED, _) => {}
            (_, 0) => out.push(keys.segment(&input.id)),
            (next, blocks) => {
                let to = blocks.min(next.saturating_add(BLOCKS_AHEAD));
                out.extend((next..to).map(|number| keys.block(&input.id, number)));
            }
        }
    }
    let (from, to) = lengths_chunks(state);
    out.extend((from..to).map(|number| columns::lengths_key(keys, family, number)));
    out
}

/// Values of lengths that the inputs need, beside what the manifest holds.
fn lengths_chunks(state: &State) -> (u32, u32) {
    let (Some(first), Some(last)) = (state.inputs().first(), state.inputs().last()) else {
        return (0, 0);
    };
    let chunk = |document: u64| num::to_u32(num::to_usize((document - 1) / LENGTHS_CHUNK));
    let written = num::to_u32(state.columns.lengths_checks.len());
    (chunk(first.first).min(written), (chunk(last.last) + 1).min(written))
}

/// Puts together what was read under the keys of [`wanted`].
///
/// # Errors
///
/// `conflict`: something is missing because the conversation moved on; `corrupt`.
pub(super) fn take(
    reader: &mut Reader<'_>,
    keys: &Keys,
    family: Family,
    state: &State,
    values: Vec<Option<Vec<u8>>>,
) -> Result<Option<Material>> {
    let Some(merge) = &state.merge else { return Ok(None) };
    let names = wanted(keys, family, state);
    let mut payloads = Vec::with_capacity(names.len());
    for (key, value) in names.iter().zip(values) {
        let Some(value) = value else { return Err(reader.missing(key)) };
        payloads.push((key, codec::decode_plain(key, &value)?.to_vec()));
    }
    let mut payloads = payloads.into_iter();
    let mut material =
        Material { inputs: Vec::new(), more: Vec::new(), lengths: Lengths::default() };
    for (input, next) in state.inputs().iter().zip(&merge.next) {
        let mut blocks = Vec::new();
        let mut more = false;
        match (*next, input.blocks) {
            (FINISHED, _) => {}
            (_, 0) => {
                let Some((key, root)) = payloads.next() else { continue };
                let root = Root::new(&root).ok_or_else(|| segment::damaged(key))?;
                for number in num::to_usize(u64::from(*next))..root.len() {
                    let block = root.inline(number).ok_or_else(|| segment::damaged(key))?;
                    blocks.push(block.to_vec());
                }
            }
            (next, count) => {
                let to = count.min(next.saturating_add(BLOCKS_AHEAD));
                blocks.extend(
                    payloads.by_ref().take(num::to_usize(u64::from(to - next))).map(|p| p.1),
                );
                more = to < count;
            }
        }
        material.inputs.push(blocks);
        material.more.push(more);
    }
    let (from, _) = lengths_chunks(state);
    material.lengths.first = u64::from(from) * LENGTHS_CHUNK + 1;
    for (_, chunk) in payloads {
        material.lengths.bytes.extend(chunk);
    }
    material.lengths.bytes.extend_from_slice(&state.columns.lengths);
    Ok(Some(material))
}

/// One input, read entry by entry.
struct Cursor<'a> {
    blocks: &'a [Vec<u8>],
    /// Block that is read, counted from the first one given.
    at: usize,
    reader: Option<BlockReader<'a>>,
    group: Group,
    /// Key, first document and first position that were not taken.
    entry: usize,
    document: usize,
    position: usize,
    has_more: bool,
    is_finished: bool,
    /// It needs a block that was not given.
    is_starved: bool,
}

impl<'a> Cursor<'a> {
    fn new(blocks: &'a [Vec<u8>], has_more: bool) -> Self {
        Self {
            blocks,
            at: 0,
            reader: None,
            group: Group::default(),
            entry: 0,
            document: 0,
            position: 0,
            has_more,
            is_finished: blocks.is_empty() && !has_more,
            is_starved: blocks.is_empty() && has_more,
        }
    }

    /// Goes to the next entry behind `done`; `None`: a block cannot be read. Bytes of the groups
    /// it read are returned.
    fn load(&mut self, range: Range, lengths: &Lengths, done: (u64, u64)) -> Option<usize> {
        let mut read = 0;
        while !self.is_finished && !self.is_starved {
            if let Some((size, _)) = self.group.sizes.get(self.entry) {
                let last = self.group.documents.get(self.document + size.checked_sub(1)?)?;
                if (*self.group.keys.get(self.entry)?, *last) > done {
                    return Some(read);
                }
                self.advance();
                continue;
            }
            if self.reader.is_none() {
                let Some(block) = self.blocks.get(self.at) else {
                    (self.is_finished, self.is_starved) = (!self.has_more, self.has_more);
                    continue;
                };
                self.reader = Some(BlockReader::new(block, range)?);
            }
            let Some(reader) = &mut self.reader else { return None };
            reader.skip_below(done.0);
            (self.entry, self.document, self.position) = (0, 0, 0);
            match reader.next(Some(lengths), &mut self.group) {
                Ok(Some(bytes)) => read += bytes,
                Ok(None) => {
                    self.group.clear();
                    self.reader = None;
                    self.at += 1;
                }
                Err(()) => return None,
            }
        }
        Some(read)
    }

    fn key(&self) -> Option<u64> {
        self.group.keys.get(self.entry).copied()
    }

    /// Passes the current entry.
    fn advance(&mut self) {
        if let Some((size, occurrences)) = self.group.sizes.get(self.entry) {
            self.document += size;
            if self.key().is_some_and(|key| key < BARE) {
                self.position += num::to_usize(*occurrences);
            }
        }
        self.entry += 1;
    }

    /// Adds the documents of the current entry that are behind `done` to a list.
    fn emit(&self, done: (u64, u64), list: &mut List, writer: &mut BlockWriter<'_>) -> (u64, u64) {
        let mut last = done;
        let Some(key) = self.key() else { return last };
        let size = self.group.sizes.get(self.entry).map_or(0, |(size, _)| *size);
        let to = self.document + size;
        let documents = self.group.documents.get(self.document..to).unwrap_or_default();
        let counts = self.group.counts.get(self.document..to).unwrap_or_default();
        let mut positions = self.group.positions.get(self.position..).unwrap_or_default();
        for (document, count) in documents.iter().zip(counts) {
            let take = if key < BARE { num::to_usize(*count) } else { 0 };
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

/// Makes one step and writes what it made.
///
/// # Errors
///
/// `corrupt`: an input cannot be read; as [`codec::encode_plain`].
pub(super) fn step(
    keys: &Keys,
    family: Family,
    state: &mut State,
    material: &Material,
    puts: &mut Vec<Put>,
) -> Result<()> {
    let inputs: Vec<SegmentRef> = state.inputs().to_vec();
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(()) };
    let Some(merge) = &mut state.merge else { return Ok(()) };
    let range = segment::range(family, (first.first, last.last));
    let mut writer = BlockWriter::new(range, &material.lengths, BLOCK_TARGET);
    let rows = material.inputs.iter().zip(&material.more);
    let mut cursors: Vec<Cursor<'_>> =
        rows.map(|(input, more)| Cursor::new(input, *more)).collect();
    merge.done = run(family, &inputs, &mut cursors, &material.lengths, merge.done, &mut writer)
        .map_err(|at| {
            let input = inputs.get(at).unwrap_or(first);
            segment::damaged(&keys.segment(&input.id))
        })?;
    for (next, cursor) in merge.next.iter_mut().zip(&cursors) {
        if cursor.is_finished {
            *next = FINISHED;
        } else if *next != FINISHED {
            *next += num::to_u32(cursor.at);
        }
    }
    let blocks = writer.finish();
    let complete = cursors.iter().all(|cursor| cursor.is_finished);
    write(keys, merge, &blocks, complete, puts)?;
    if complete {
        replace(keys, state, &inputs, &blocks, puts)?;
    }
    Ok(())
}

/// Takes entries in the order of their keys, and of one key in the order of the inputs, until a
/// block is needed that was not given or enough was read. Returns what was taken last; `Err`: the
/// input at this place cannot be read.
fn run(
    family: Family,
    inputs: &[SegmentRef],
    cursors: &mut [Cursor<'_>],
    lengths: &Lengths,
    mut done: (u64, u64),
    writer: &mut BlockWriter<'_>,
) -> core::result::Result<(u64, u64), usize> {
    const NONE: u64 = u64::MAX;
    let mut heads = Vec::with_capacity(cursors.len());
    for (at, (cursor, input)) in cursors.iter_mut().zip(inputs).enumerate() {
        cursor.load(input.range(family), lengths, done).ok_or(at)?;
        heads.push(cursor.key().unwrap_or(NONE));
    }
    let mut starved = cursors.iter().any(|cursor| cursor.is_starved);
    let mut list = List::default();
    let mut current = 0;
    let mut read = 0;
    while read < STEP_BYTES && !starved {
        let key = heads.iter().copied().min().unwrap_or(NONE);
        let Some(at) = heads.iter().position(|head| *head == key).filter(|_| key != NONE) else {
            break;
        };
        if key != current {
            list.flush(current, writer);
            current = key;
        }
        let (Some(cursor), Some(input)) = (cursors.get_mut(at), inputs.get(at)) else { break };
        done = cursor.emit(done, &mut list, writer);
        cursor.advance();
        read += cursor.load(input.range(family), lengths, done).ok_or(at)?;
        starved = cursor.is_starved;
        if let Some(head) = heads.get_mut(at) {
            *head = cursor.key().unwrap_or(NONE);
        }
    }
    list.flush(current, writer);
    Ok(done)
}

/// Writes the blocks of a step, unless they are all there is and may stand in the root.
fn write(
    keys: &Keys,
    merge: &mut Merge,
    blocks: &Blocks,
    complete: bool,
    puts: &mut Vec<Put>,
) -> Result<()> {
    if complete && merge.blocks == 0 && segment::fits_inline(blocks) {
        return Ok(());
    }
    merge.bytes += segment::put_blocks(keys, &merge.id, merge.blocks, blocks, puts)?;
    merge.blocks += num::to_u32(blocks.len());
    segment::index_rows(&mut merge.index, blocks);
    Ok(())
}

/// Puts the output in the place of its inputs.
fn replace(
    keys: &Keys,
    state: &mut State,
    inputs: &[SegmentRef],
    blocks: &Blocks,
    puts: &mut Vec<Put>,
) -> Result<()> {
    let Some(merge) = state.merge.take() else { return Ok(()) };
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(()) };
    let level = inputs.iter().map(|input| input.level).max().unwrap_or(0);
    let same = inputs.iter().all(|input| input.level == level);
    let level = if same { level + 1 } else { level };
    let documents = (first.first, last.last);
    let output = if merge.blocks == 0 {
        segment::put_segment(keys, merge.id, level, documents, blocks, puts)?
    } else {
        let root_bytes = segment::put_root(keys, &merge.id, &merge.index, &[], puts)?;
        SegmentRef {
            id: merge.id,
            level,
            first: first.first,
            last: last.last,
            blocks: merge.blocks,
            root_bytes,
            bytes: merge.bytes + u64::from(root_bytes),
        }
    };
    let from = num::to_usize(u64::from(merge.from)).min(state.segments.len());
    let to = (from + inputs.len()).min(state.segments.len());
    state.segments.splice(from..to, [output]);
    state.doomed.extend(inputs.iter().map(|input| (input.id, input.blocks)));
    Ok(())
}

/// Deletes up to so many values of segments that were merged.
pub(super) fn delete(keys: &Keys, state: &mut State, most: usize, puts: &mut Vec<Put>) {
    let mut left = most;
    while let Some((id, blocks)) = state.doomed.first_mut() {
        if left == 0 {
            return;
        }
        if *blocks == 0 {
            puts.push(Put { key: keys.segment(id), value: None });
            state.doomed.remove(0);
        } else {
            *blocks -= 1;
            puts.push(Put { key: keys.block(id, *blocks), value: None });
        }
        left -= 1;
    }
}
