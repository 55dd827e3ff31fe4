//! Merging of adjacent segments into one, in steps of bounded size, one step in a commit.
//!
//! Input: the manifest of a corpus, and the values of its pending merge. Output: puts for the
//! commit, and the changed manifest. [`super::index_maintenance`] runs the steps.
//!
//! Readers use the inputs until the output is complete. Then the manifest lists the output, and
//! this and later commits delete the inputs. The manifest determines everything that a step reads:
//! blocks of each input, and the lengths of the documents. A step ends when it needs a block that
//! was not read, or when it has written enough.

use alloc::{rc::Rc, string::String, vec::Vec};
use core::ops::Range;
use lcm_text::base::hash;

use lcm_loops::{
    lengths::DocumentLengths,
    posting_block::BlockWriter,
    posting_merge::{MergeCursor, MergePosition, merge_cursors},
};

use super::{
    Corpus,
    doc_values::{self, LENGTHS_CHUNK},
    manifest::{CorpusManifest, MERGE_BYTES_MAX, PendingMerge, SEGMENT_DOCUMENTS_MAX},
    segment::{self, BLOCK_TARGET, NewSegment, SegmentBlocks, SegmentRef, SegmentRoot},
};
use crate::storage::{codec, keys::ConversationKeys, store::Put, store_session::StoreSession};
use lcm_text::base::{error::Result, int};

/// Segments of one merge level that are merged into one of the next level, if they are not too
/// large.
const FAN_OUT: usize = 16;
/// Most documents of a segment that [`start_major_merge`] rewrites before its level is full.
/// Merging larger segments early saves little space.
const MAJOR_DOCUMENTS_MAX: u64 = 1 << 14;
/// Most blocks of one input that one step reads, if the root of the input does not hold the blocks.
const BLOCKS_PER_STEP: u32 = 2;
/// Entry in `next_blocks` for an input that was merged to its end.
const INPUT_FINISHED: u32 = u32::MAX;

/// Values that one merge step reads.
#[derive(Debug)]
pub(super) struct MergeInputs {
    /// For each input: its blocks that were read, from the next block on.
    inputs: Vec<Vec<InputBlock>>,
    /// For each input: whether it has blocks that were not read.
    has_more: Vec<bool>,
    lengths: DocumentLengths,
}

/// A block of an input, as a range of the stored value.
#[derive(Debug)]
struct InputBlock {
    value: Rc<Vec<u8>>,
    range: Range<usize>,
}

impl InputBlock {
    fn bytes(&self) -> &[u8] {
        self.value.get(self.range.clone()).unwrap_or_default()
    }
}

/// Least output bytes at which a step stops; a step ends earlier if the merge ends, or if an input
/// needs a block that was not read. For summaries also the greatest, because a caller waits for
/// each commit.
const STEP_BYTES_MIN: u32 = 16 << 10;
/// Upper bound of the size of a step for messages. One append may bring many messages, so its steps
/// may be large.
const STEP_BYTES_MAX: u32 = 96 << 10;

/// Starts a merge if no merge is pending and [`FAN_OUT`] adjacent segments have the same level.
///
/// With one new segment in each commit, [`FAN_OUT`] more segments arrive in as many commits. The
/// merge should end after three quarters of these commits, or earlier if more segments already
/// wait.
pub(super) fn start_merge(state: &mut CorpusManifest, corpus: Corpus) {
    if state.merge.is_none()
        && let Some(found) = find_full_level(&state.segments)
    {
        let level = state.segments.get(found.start).map_or(0, |first| first.level);
        let waiting = state.segments.iter().filter(|segment| segment.level == level).count();
        let commits = (2 * FAN_OUT).saturating_sub(waiting) * 3 / 4;
        let most = if corpus == Corpus::Messages { STEP_BYTES_MAX } else { STEP_BYTES_MIN };
        init_merge(state, found, int::to_u64(commits), most);
    }
}

/// Starts a merge of messages like [`start_merge`]. If no level is full, merges the newest
/// segments, unless the largest has nearly all of their documents. Steps of this merge are as small
/// as they can be to end within `commits` commits.
pub(super) fn start_major_merge(state: &mut CorpusManifest, commits: u64) {
    start_merge(state, Corpus::Messages);
    if state.merge.is_none()
        && let Some(found) = find_newest(&state.segments)
    {
        init_merge(state, found, commits, STEP_BYTES_MAX);
    }
}

/// Starts a merge that should end within `commits` commits, with steps of at most `step_bytes_max`
/// bytes.
fn init_merge(state: &mut CorpusManifest, found: InputRange, commits: u64, step_bytes_max: u32) {
    let inputs = state.segments.get(found.clone()).unwrap_or_default();
    let share = inputs.iter().map(|input| input.bytes).sum::<u64>() / commits.max(1);
    let step_bytes = int::to_u32(int::to_usize(share)).clamp(STEP_BYTES_MIN, step_bytes_max);
    // The step size is hashed, because the ends of steps determine the blocks of the output.
    let step = step_bytes.to_be_bytes();
    let mut fields: Vec<&[u8]> = alloc::vec![b"lcm merge", &step];
    fields.extend(inputs.iter().map(|input| input.id.as_slice()));
    state.merge = Some(PendingMerge {
        id: hash::hash_prefix(&hash::hash_fields(&fields)),
        from: int::to_u32(found.start),
        count: int::to_u32(found.len()),
        step_bytes,
        next_blocks: alloc::vec![0; found.len()],
        last_written: (0, 0),
        blocks: 0,
        index: Vec::new(),
        bytes: 0,
    });
}

/// Range of indexes into the list of segments.
type InputRange = Range<usize>;

/// Counts the first segments that together fit the limits of one merge.
fn count_mergeable<'s>(segments: impl Iterator<Item = &'s SegmentRef>) -> usize {
    let (mut documents, mut bytes) = (0, 0);
    let fits = |segment: &&SegmentRef| {
        documents += segment.count_documents();
        bytes += segment.bytes;
        documents <= SEGMENT_DOCUMENTS_MAX && bytes <= MERGE_BYTES_MAX
    };
    segments.take_while(fits).count()
}

fn count_documents(segments: &[SegmentRef]) -> u64 {
    segments.iter().map(SegmentRef::count_documents).sum()
}

/// Returns the range of the oldest [`FAN_OUT`] adjacent segments of one merge level: of the lowest
/// level with so many segments in a row. If these segments together exceed the limits of a merge,
/// the range is shorter, but has at least two segments. `None`: no level has such a range.
fn find_full_level(segments: &[SegmentRef]) -> Option<InputRange> {
    let mut best: Option<(u32, InputRange)> = None;
    let mut from = 0;
    while let Some(first) = segments.get(from) {
        let same = |segment: &&SegmentRef| segment.level == first.level;
        let rest = segments.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(same).count();
        let taken = count_mergeable(rest.iter().take(FAN_OUT));
        let lower = best.as_ref().is_none_or(|(level, _)| first.level < *level);
        if count >= FAN_OUT && taken > 1 && lower {
            best = Some((first.level, from..from + taken));
        }
        from += count;
    }
    best.map(|(_, range)| range)
}

/// Returns the index behind the last segment of more than [`MAJOR_DOCUMENTS_MAX`] documents; 0:
/// there is none.
fn index_after_large(segments: &[SegmentRef]) -> usize {
    let is_large = |segment: &SegmentRef| segment.count_documents() > MAJOR_DOCUMENTS_MAX;
    segments.iter().rposition(is_large).map_or(0, |at| at + 1)
}

/// Returns the range of the newest segments from [`index_after_large`] on, at most [`FAN_OUT`].
/// `None`: there are fewer than two such segments, or the largest has more than seven eighths of
/// the documents.
fn find_newest(segments: &[SegmentRef]) -> Option<InputRange> {
    let small = segments.get(index_after_large(segments)..)?;
    let from = segments.len() - count_mergeable(small.iter().rev().take(FAN_OUT));
    let inputs = segments.get(from..).filter(|inputs| inputs.len() > 1)?;
    let largest = inputs.iter().map(SegmentRef::count_documents).max()?;
    (largest <= count_documents(inputs) / 8 * 7).then_some(from..segments.len())
}

/// Lists the keys that the next merge step reads: blocks (or roots that hold blocks), and chunks of
/// lengths.
pub(super) fn list_step_keys(
    keys: &ConversationKeys,
    corpus: Corpus,
    state: &CorpusManifest,
) -> [Vec<String>; 2] {
    let mut out = Vec::new();
    let Some(merge) = &state.merge else { return [out, Vec::new()] };
    for (input, next) in state.merge_inputs().iter().zip(&merge.next_blocks) {
        match (*next, input.blocks) {
            (INPUT_FINISHED, _) => {}
            (_, 0) => out.push(keys.segment_key(&input.id)),
            (next, blocks) => {
                let to = blocks.min(next.saturating_add(BLOCKS_PER_STEP));
                out.extend((next..to).map(|number| keys.segment_block_key(&input.id, number)));
            }
        }
    }
    let (from, to) = length_chunk_range(state);
    [out, (from..to).map(|number| doc_values::lengths_key(keys, corpus, number)).collect()]
}

/// Returns the range of length chunks that the inputs need, end excluded, without the chunk in the
/// manifest.
fn length_chunk_range(state: &CorpusManifest) -> (u32, u32) {
    let (Some(first), Some(last)) = (state.merge_inputs().first(), state.merge_inputs().last())
    else {
        return (0, 0);
    };
    let chunk = |document: u64| int::to_u32(int::to_usize((document - 1) / LENGTHS_CHUNK));
    let written = int::to_u32(state.doc_values.lengths_checksums.len());
    (chunk(first.first_document).min(written), (chunk(last.last_document) + 1).min(written))
}

/// Builds the inputs of a step from the values of [`list_step_keys`], in the order of the keys.
/// `None`: no merge is pending.
///
/// # Errors
///
/// `conflict`: a value is missing, because the conversation has changed; `corrupt`: a value is
/// missing or damaged; `unsupported`: a record has a newer format; errors of the store.
pub(super) fn collect_inputs(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    corpus: Corpus,
    state: &CorpusManifest,
    values: Vec<Option<Rc<Vec<u8>>>>,
) -> Result<Option<MergeInputs>> {
    let Some(merge) = &state.merge else { return Ok(None) };
    let names = list_step_keys(keys, corpus, state);
    let mut payloads = Vec::with_capacity(values.len());
    for (key, value) in names.iter().flatten().zip(values) {
        let Some(value) = value else { return Err(session.missing_record_error(key)) };
        let start = value.len() - codec::decode_raw_bytes(key, &value)?.len();
        let range = start..value.len();
        payloads.push((key, InputBlock { value, range }));
    }
    let mut payloads = payloads.into_iter();
    let mut inputs_read = MergeInputs {
        inputs: Vec::new(),
        has_more: Vec::new(),
        lengths: DocumentLengths::default(),
    };
    for (input, next) in state.merge_inputs().iter().zip(&merge.next_blocks) {
        let mut blocks = Vec::new();
        let mut has_more = false;
        match (*next, input.blocks) {
            (INPUT_FINISHED, _) => {}
            (_, 0) => {
                let Some((key, root)) = payloads.next() else { continue };
                let next = int::to_usize(u64::from(*next));
                let ranges =
                    SegmentRoot::new(root.bytes()).and_then(|read| read.block_ranges_from(next));
                for range in ranges.ok_or_else(|| segment::corrupt_index(key))? {
                    let range = root.range.start + range.start..root.range.start + range.end;
                    blocks.push(InputBlock { value: Rc::clone(&root.value), range });
                }
            }
            (next, count) => {
                let to = count.min(next.saturating_add(BLOCKS_PER_STEP));
                blocks.extend(
                    payloads.by_ref().take(int::to_usize(u64::from(to - next))).map(|p| p.1),
                );
                has_more = to < count;
            }
        }
        inputs_read.inputs.push(blocks);
        inputs_read.has_more.push(has_more);
    }
    let (from, _) = length_chunk_range(state);
    inputs_read.lengths.first = u64::from(from) * LENGTHS_CHUNK + 1;
    for (_, chunk) in payloads {
        inputs_read.lengths.bytes.extend_from_slice(chunk.bytes());
    }
    inputs_read.lengths.bytes.extend_from_slice(&state.doc_values.lengths);
    Ok(Some(inputs_read))
}

/// Performs one merge step, adds its output to `puts`, and updates the pending merge in `state`.
/// The last step replaces the inputs by the output.
///
/// # Errors
///
/// `corrupt`: an input cannot be decoded; `limit-exceeded`: the value would be larger than 256 KiB.
pub(super) fn run_step(
    keys: &ConversationKeys,
    corpus: Corpus,
    state: &mut CorpusManifest,
    inputs_read: &MergeInputs,
    puts: &mut Vec<Put>,
) -> Result<()> {
    let inputs: Vec<SegmentRef> = state.merge_inputs().to_vec();
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(()) };
    let Some(merge) = &mut state.merge else { return Ok(()) };
    let range = segment::segment_range(corpus, (first.first_document, last.last_document));
    let mut writer = BlockWriter::new(range, &inputs_read.lengths, BLOCK_TARGET);
    let rows = inputs.iter().zip(inputs_read.inputs.iter().zip(&inputs_read.has_more));
    let mut cursors: Vec<MergeCursor<'_>> = rows
        .map(|(input, (blocks, more))| {
            let blocks = blocks.iter().map(InputBlock::bytes).collect();
            MergeCursor::new(input.covered_range(corpus), blocks, *more)
        })
        .collect();
    let (lengths, bytes_max) = (&inputs_read.lengths, int::to_usize(u64::from(merge.step_bytes)));
    let (key, document) = merge.last_written;
    let done = MergePosition { key, document };
    let done =
        merge_cursors(&mut cursors, lengths, done, bytes_max, &mut writer).map_err(|at| {
            let input = inputs.get(at).unwrap_or(first);
            segment::corrupt_index(&keys.segment_key(&input.id))
        })?;
    merge.last_written = (done.key, done.document);
    for (next, cursor) in merge.next_blocks.iter_mut().zip(&cursors) {
        if cursor.is_finished {
            *next = INPUT_FINISHED;
        } else if *next != INPUT_FINISHED {
            *next += int::to_u32(cursor.at);
        }
    }
    let blocks = writer.finish();
    let is_complete = cursors.iter().all(|cursor| cursor.is_finished);
    write_blocks(keys, merge, &blocks, is_complete, puts)?;
    if is_complete {
        replace_inputs(keys, state, &inputs, &blocks, puts)?;
    }
    Ok(())
}

/// Writes the blocks of a step. Blocks that are the whole output and fit its root are not written
/// here.
fn write_blocks(
    keys: &ConversationKeys,
    merge: &mut PendingMerge,
    blocks: &SegmentBlocks,
    is_complete: bool,
    puts: &mut Vec<Put>,
) -> Result<()> {
    if is_complete && merge.blocks == 0 && segment::fits_inline(blocks) {
        return Ok(());
    }
    merge.bytes += segment::put_blocks(keys, &merge.id, merge.blocks, blocks, puts)?;
    merge.blocks += int::to_u32(blocks.len());
    segment::append_index_rows(&mut merge.index, blocks);
    Ok(())
}

/// Writes the root of the output, and replaces the inputs by the output in the manifest.
fn replace_inputs(
    keys: &ConversationKeys,
    state: &mut CorpusManifest,
    inputs: &[SegmentRef],
    blocks: &SegmentBlocks,
    puts: &mut Vec<Put>,
) -> Result<()> {
    let Some(merge) = state.merge.take() else { return Ok(()) };
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(()) };
    let level = inputs.iter().map(|input| input.level).max().unwrap_or(0);
    let same = inputs.iter().all(|input| input.level == level);
    let level = if same { level + 1 } else { level };
    let documents = (first.first_document, last.last_document);
    let output = if merge.blocks == 0 {
        segment::put_segment(keys, &NewSegment { id: merge.id, level, documents, blocks }, puts)?
    } else {
        let root_bytes = segment::put_root(keys, &merge.id, &merge.index, &[], puts)?;
        SegmentRef {
            id: merge.id,
            level,
            first_document: first.first_document,
            last_document: last.last_document,
            blocks: merge.blocks,
            root_bytes,
            bytes: merge.bytes + u64::from(root_bytes),
        }
    };
    let from = int::to_usize(u64::from(merge.from)).min(state.segments.len());
    let to = (from + inputs.len()).min(state.segments.len());
    state.segments.splice(from..to, [output]);
    state.pending_deletes.extend(inputs.iter().map(|input| (input.id, input.blocks)));
    Ok(())
}

/// Deletes at most `deletes_max` values of segments that were merged.
pub(super) fn delete_merged(
    keys: &ConversationKeys,
    state: &mut CorpusManifest,
    deletes_max: usize,
    puts: &mut Vec<Put>,
) {
    let mut left = deletes_max;
    while let Some((id, blocks)) = state.pending_deletes.first_mut() {
        if left == 0 {
            return;
        }
        if *blocks == 0 {
            puts.push(Put { key: keys.segment_key(id), value: None });
            state.pending_deletes.remove(0);
        } else {
            *blocks -= 1;
            puts.push(Put { key: keys.segment_block_key(id, *blocks), value: None });
        }
        left -= 1;
    }
}

#[cfg(test)]
mod tests;
