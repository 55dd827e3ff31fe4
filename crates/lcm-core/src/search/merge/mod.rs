//! Merging: several adjacent segments become one, a bounded piece in each commit.
//!
//! Readers use the inputs until the output is complete; then the manifest names the output, and the
//! inputs are deleted by that commit and those that follow. Everything that a step reads can be
//! named from the manifest alone: of each input at most two blocks, from where the last step ended,
//! and the lengths of the documents. A step ends where the next block of some input would be
//! needed, or when enough was written.

use alloc::{rc::Rc, string::String, vec::Vec};
use core::ops::Range;
use lcm_text::base::hash;

use lcm_loops::{
    block::BlockWriter,
    lengths::Lengths,
    merge::{Cursor, run},
};

use super::{
    Corpus,
    columns::{self, LENGTHS_CHUNK},
    manifest::{MERGE_BYTES_MAX, Merge, SEGMENT_DOCUMENTS_MAX, State},
    segment::{self, BLOCK_TARGET, Blocks, Root, SegmentRef},
};
use crate::storage::{codec, keys::Keys, store::Put, store_session::Reader};
use lcm_text::base::{error::Result, int};

/// Segments of one level that become one of the next.
const FAN_OUT: usize = 16;
/// Most documents of a segment that is merged anew before there are enough of its level: of larger
/// ones nearly nothing is saved.
const MAJOR_DOCUMENTS_MAX: u64 = 1 << 14;
/// Blocks of one input that one step reads.
const BLOCKS_AHEAD: u32 = 2;
/// The next block of an input that was read to its end.
const FINISHED: u32 = u32::MAX;

/// What one step was given to read.
#[derive(Debug)]
pub(super) struct Material {
    /// For each input its blocks from the next one on.
    inputs: Vec<Vec<Block>>,
    /// Whether each input has further blocks.
    more: Vec<bool>,
    lengths: Lengths,
}

/// A block of an input, within the value that it was read in.
#[derive(Debug)]
struct Block {
    value: Rc<Vec<u8>>,
    place: Range<usize>,
}

impl Block {
    fn bytes(&self) -> &[u8] {
        self.value.get(self.place.clone()).unwrap_or_default()
    }
}

/// Bytes that a step of a merge writes at the least, and of messages, of which an append brings
/// many, at the most. Steps on summaries, which are made one by one, each waited for, are all of
/// the least size.
const STEP_BYTES_MIN: u32 = 16 << 10;
const STEP_BYTES_MAX: u32 = 96 << 10;

/// Begins a merge if there is none and enough is there to be merged.
///
/// Its steps are such that it ends after three quarters of the commits in which as many segments
/// again come to wait; when more wait already, the steps are larger.
pub(super) fn start(state: &mut State, corpus: Corpus) {
    if state.merge.is_none()
        && let Some(found) = full_level(&state.segments)
    {
        let level = state.segments.get(found.start).map_or(0, |first| first.level);
        let waiting = state.segments.iter().filter(|segment| segment.level == level).count();
        let commits = (2 * FAN_OUT).saturating_sub(waiting) * 3 / 4;
        let most = if corpus == Corpus::Messages { STEP_BYTES_MAX } else { STEP_BYTES_MIN };
        begin(state, found, int::to_u64(commits), most);
    }
}

/// As [`start`] for messages, but fewer segments will do if that makes the index smaller by much.
/// Its steps are as small as they can be to end within so many commits.
pub(super) fn start_major(state: &mut State, commits: u64) {
    start(state, Corpus::Messages);
    if state.merge.is_none()
        && let Some(found) = newest(&state.segments)
    {
        begin(state, found, commits, STEP_BYTES_MAX);
    }
}

/// Begins a merge that is to end within so many commits, if its steps may be that large.
fn begin(state: &mut State, found: Places, commits: u64, step_bytes_max: u32) {
    let inputs = state.segments.get(found.clone()).unwrap_or_default();
    let share = inputs.iter().map(|input| input.bytes).sum::<u64>() / commits.max(1);
    let step_bytes = int::to_u32(int::to_usize(share)).clamp(STEP_BYTES_MIN, step_bytes_max);
    // Where steps end decides what stands in the blocks of the output.
    let step = step_bytes.to_be_bytes();
    let mut fields: Vec<&[u8]> = alloc::vec![b"lcm merge", &step];
    fields.extend(inputs.iter().map(|input| input.id.as_slice()));
    state.merge = Some(Merge {
        id: hash::prefix(&hash::hash(&fields)),
        from: int::to_u32(found.start),
        count: int::to_u32(found.len()),
        step_bytes,
        next: alloc::vec![0; found.len()],
        done: (0, 0),
        blocks: 0,
        index: Vec::new(),
        bytes: 0,
    });
}

type Places = Range<usize>;

/// How many of these segments, in their order, are not too large to become one.
fn mergeable<'s>(segments: impl Iterator<Item = &'s SegmentRef>) -> usize {
    let (mut documents, mut bytes) = (0, 0);
    let fits = |segment: &&SegmentRef| {
        documents += segment.documents();
        bytes += segment.bytes;
        documents <= SEGMENT_DOCUMENTS_MAX && bytes <= MERGE_BYTES_MAX
    };
    segments.take_while(fits).count()
}

fn documents(segments: &[SegmentRef]) -> u64 {
    segments.iter().map(SegmentRef::documents).sum()
}

/// The oldest segments of the lowest level of which there are enough next to each other; fewer of
/// them where all would be too large.
fn full_level(segments: &[SegmentRef]) -> Option<Places> {
    let mut best: Option<(u32, Places)> = None;
    let mut from = 0;
    while let Some(first) = segments.get(from) {
        let same = |segment: &&SegmentRef| segment.level == first.level;
        let rest = segments.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(same).count();
        let taken = mergeable(rest.iter().take(FAN_OUT));
        let lower = best.as_ref().is_none_or(|(level, _)| first.level < *level);
        if count >= FAN_OUT && taken > 1 && lower {
            best = Some((first.level, from..from + taken));
        }
        from += count;
    }
    best.map(|(_, places)| places)
}

/// Place of the first segment behind all large ones.
fn after_large(segments: &[SegmentRef]) -> usize {
    let is_large = |segment: &SegmentRef| segment.documents() > MAJOR_DOCUMENTS_MAX;
    segments.iter().rposition(is_large).map_or(0, |at| at + 1)
}

/// The newest segments, if the largest of them is not nearly all of them.
fn newest(segments: &[SegmentRef]) -> Option<Places> {
    let small = segments.get(after_large(segments)..)?;
    let from = segments.len() - mergeable(small.iter().rev().take(FAN_OUT));
    let inputs = segments.get(from..).filter(|inputs| inputs.len() > 1)?;
    let largest = inputs.iter().map(SegmentRef::documents).max()?;
    (largest <= documents(inputs) / 8 * 7).then_some(from..segments.len())
}

/// Keys of what the next step of a merge reads: blocks, and values of lengths.
pub(super) fn wanted(keys: &Keys, corpus: Corpus, state: &State) -> [Vec<String>; 2] {
    let mut out = Vec::new();
    let Some(merge) = &state.merge else { return [out, Vec::new()] };
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
    [out, (from..to).map(|number| columns::lengths_key(keys, corpus, number)).collect()]
}

/// Values of lengths that the inputs need, beside what the manifest holds.
fn lengths_chunks(state: &State) -> (u32, u32) {
    let (Some(first), Some(last)) = (state.inputs().first(), state.inputs().last()) else {
        return (0, 0);
    };
    let chunk = |document: u64| int::to_u32(int::to_usize((document - 1) / LENGTHS_CHUNK));
    let written = int::to_u32(state.columns.lengths_checks.len());
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
    corpus: Corpus,
    state: &State,
    values: Vec<Option<Rc<Vec<u8>>>>,
) -> Result<Option<Material>> {
    let Some(merge) = &state.merge else { return Ok(None) };
    let names = wanted(keys, corpus, state);
    let mut payloads = Vec::with_capacity(values.len());
    for (key, value) in names.iter().flatten().zip(values) {
        let Some(value) = value else { return Err(reader.missing(key)) };
        let start = value.len() - codec::decode_plain(key, &value)?.len();
        let place = start..value.len();
        payloads.push((key, Block { value, place }));
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
                let next = int::to_usize(u64::from(*next));
                let places = Root::new(root.bytes()).and_then(|read| read.places_from(next));
                for place in places.ok_or_else(|| segment::damaged(key))? {
                    let place = root.place.start + place.start..root.place.start + place.end;
                    blocks.push(Block { value: Rc::clone(&root.value), place });
                }
            }
            (next, count) => {
                let to = count.min(next.saturating_add(BLOCKS_AHEAD));
                blocks.extend(
                    payloads.by_ref().take(int::to_usize(u64::from(to - next))).map(|p| p.1),
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
        material.lengths.bytes.extend_from_slice(chunk.bytes());
    }
    material.lengths.bytes.extend_from_slice(&state.columns.lengths);
    Ok(Some(material))
}

/// Makes one step and writes what it made.
///
/// # Errors
///
/// `corrupt`: an input cannot be read; as [`codec::encode_plain`].
pub(super) fn step(
    keys: &Keys,
    corpus: Corpus,
    state: &mut State,
    material: &Material,
    puts: &mut Vec<Put>,
) -> Result<()> {
    let inputs: Vec<SegmentRef> = state.inputs().to_vec();
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(()) };
    let Some(merge) = &mut state.merge else { return Ok(()) };
    let range = segment::range(corpus, (first.first, last.last));
    let mut writer = BlockWriter::new(range, &material.lengths, BLOCK_TARGET);
    let rows = inputs.iter().zip(material.inputs.iter().zip(&material.more));
    let mut cursors: Vec<Cursor<'_>> = rows
        .map(|(input, (blocks, more))| {
            let blocks = blocks.iter().map(Block::bytes).collect();
            Cursor::new(input.range(corpus), blocks, *more)
        })
        .collect();
    let (lengths, bytes_max) = (&material.lengths, int::to_usize(u64::from(merge.step_bytes)));
    merge.done = run(&mut cursors, lengths, merge.done, bytes_max, &mut writer).map_err(|at| {
        let input = inputs.get(at).unwrap_or(first);
        segment::damaged(&keys.segment(&input.id))
    })?;
    for (next, cursor) in merge.next.iter_mut().zip(&cursors) {
        if cursor.is_finished {
            *next = FINISHED;
        } else if *next != FINISHED {
            *next += int::to_u32(cursor.at);
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
    merge.blocks += int::to_u32(blocks.len());
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
    let from = int::to_usize(u64::from(merge.from)).min(state.segments.len());
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

#[cfg(test)]
mod tests;
