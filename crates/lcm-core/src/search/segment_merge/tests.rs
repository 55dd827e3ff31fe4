//! Tests of merges: which segments are merged, and that one host call can read a whole step.

use alloc::vec;

use super::*;
use lcm_text::base::limits;

/// Builds a manifest with adjacent segments, each given as number of documents and merge level.
fn state(segments: &[(u64, u32)]) -> CorpusManifest {
    let mut state = CorpusManifest::default();
    for (documents, level) in segments {
        let first = state.documents + 1;
        state.documents += documents;
        state.segments.push(SegmentRef {
            id: first.to_be_bytes(),
            level: *level,
            first_document: first,
            last_document: state.documents,
            blocks: 4,
            root_bytes: 40,
            bytes: 32 << 10,
        });
    }
    state
}

fn inputs(state: &CorpusManifest) -> Option<(u32, u32, u32)> {
    state.merge.as_ref().map(|merge| (merge.from, merge.count, merge.step_bytes >> 10))
}

#[test]
fn sixteen_of_the_lowest_level_are_merged_the_oldest_first() {
    let mut few = state(&[(100, 0); 15]);
    start_merge(&mut few, Corpus::Messages);
    assert_eq!(inputs(&few), None);
    let mut segments = vec![(1_600, 1); 16];
    segments.extend([(100, 0); 18]);
    let mut messages = state(&segments);
    start_merge(&mut messages, Corpus::Messages);
    // The step size is 512 KiB divided by three quarters of the 14 commits after which 16 more
    // segments wait.
    assert_eq!(inputs(&messages), Some((16, 16, 51)));
    let mut summaries = state(&segments);
    start_merge(&mut summaries, Corpus::Summaries);
    assert_eq!(inputs(&summaries), Some((16, 16, 16)));
    let mut waiting = state(&[(100, 0); 60]);
    start_merge(&mut waiting, Corpus::Messages);
    assert_eq!(inputs(&waiting), Some((0, 16, 96)));
}

/// Goal: segments are merged also if a full level exceeds the limits of one merge. Method: 16
/// segments that together are too large, and 16 segments of which no two fit into one merge.
#[test]
fn of_large_segments_as_many_are_merged_as_fit() {
    let mut large = state(&[(25_600, 2); 16]);
    start_merge(&mut large, Corpus::Messages);
    assert_eq!(inputs(&large).map(|(from, count, _)| (from, count)), Some((0, 5)));
    let mut whole = state(&[(100_000, 3); 16]);
    start_merge(&mut whole, Corpus::Messages);
    assert_eq!(inputs(&whole), None);
}

#[test]
fn a_compaction_merges_the_newest_segments_unless_one_is_nearly_all() {
    let begun = |segments: &[(u64, u32)]| {
        let mut state = state(segments);
        start_major_merge(&mut state, 8);
        inputs(&state).map(|(from, count, _)| (from, count))
    };
    assert_eq!(begun(&[(1_600, 1), (1_600, 1), (100, 0)]), Some((0, 3)));
    assert_eq!(begun(&[(25_600, 2), (1_600, 1), (100, 0), (100, 0)]), None);
    assert_eq!(begun(&[(25_600, 2), (1_600, 1), (300, 0)]), Some((1, 2)));
    assert_eq!(begun(&[(1_600, 1)]), None);
    assert_eq!(begun(&[(16_384, 1), (16_384, 1)]), Some((0, 2)));
}

/// Goal: an append reads a step, and everything else it needs, in one host call of 1 MiB. Method:
/// adds upper bounds of all values: blocks and lengths, packs of 200 KiB, a directory node of 21
/// KiB, and identities.
#[test]
fn a_step_is_read_within_one_host_call() {
    let inputs = u64::try_from(FAN_OUT).unwrap();
    let blocks = inputs * u64::from(BLOCKS_PER_STEP) * u64::from(segment::BLOCK_BYTES_ASSUMED);
    let lengths = (SEGMENT_DOCUMENTS_MAX / LENGTHS_CHUNK + 2) * (LENGTHS_CHUNK + 2);
    let beside = 232 << 10;
    assert!(blocks + lengths + beside <= u64::from(limits::CALL_BYTES_MAX));
}
