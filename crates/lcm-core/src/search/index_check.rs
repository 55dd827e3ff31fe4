//! Check of the search index: each segment must hold exactly the postings of its documents.
//!
//! Input: the index, messages and summaries of a conversation. Output: findings for
//! `Engine::check`. The check rebuilds the postings, 64 documents at a time, and compares a
//! checksum of the postings of each document and of each unit. It also compares the lengths of
//! documents, and the times and roles of messages.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_loops::{
    lengths::DocumentLengths,
    posting_block::{
        BlockReader, DamagedBlock, EVERY_GRAM_KEY, FIRST_GRAM_KEY, FIRST_POSITIONLESS_KEY,
        PostingGroup, SegmentRange,
    },
};

use super::{
    corpus::Corpus,
    feature_terms::{self, FeatureTerms},
    grams::UNIT_MESSAGES,
    index_reader::SearchIndex,
    segment::{self, BLOCK_BYTES_ASSUMED, SegmentRef, SegmentRoot},
    segment_builder::SegmentBuilder,
};
use crate::storage::{
    codec, head::ConversationHead, history::MessageHistory, keys::ConversationKeys,
    store_session::StoreSession, summary_records::SizedSummaries,
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
};

/// Number of blocks that are read together.
const BLOCKS_AT_ONCE: usize = 32;

/// Checksums of the postings of each document and each unit of a segment.
#[derive(Debug)]
struct PostingChecksums {
    range: SegmentRange,
    documents: Vec<u64>,
    units: Vec<u64>,
    /// Units that have too many grams and are listed for every gram; their grams are not compared.
    all_gram_units: Vec<u64>,
}

impl PostingChecksums {
    fn new(range: SegmentRange) -> Self {
        let size = |(first, last): (u64, u64)| int::to_usize(last - first + 1);
        Self {
            range,
            documents: alloc::vec![0; size(range.documents)],
            units: alloc::vec![0; size(range.units)],
            all_gram_units: Vec::new(),
        }
    }

    fn add_posting(&mut self, key: u64, number: u64, value: u64) {
        let (list, (first, _)) = if key >= FIRST_GRAM_KEY {
            (&mut self.units, self.range.units)
        } else {
            (&mut self.documents, self.range.documents)
        };
        let at = number.checked_sub(first).map(int::to_usize);
        if let Some(sum) = at.and_then(|at| list.get_mut(at)) {
            *sum = sum.wrapping_add(hash_pair(key, value));
        }
    }

    /// Adds all postings of a block.
    ///
    /// # Errors
    ///
    /// [`DamagedBlock`]: the block cannot be decoded.
    fn add_block(
        &mut self,
        block: &[u8],
        range: SegmentRange,
        lengths: &DocumentLengths,
    ) -> core::result::Result<(), DamagedBlock> {
        let mut block_reader = BlockReader::new(block, range).ok_or(DamagedBlock)?;
        let mut group = PostingGroup::default();
        while block_reader.next_group(Some(lengths), &mut group)? {
            let mut rows = group.documents.iter().zip(&group.counts);
            let mut positions = group.positions.iter();
            for ((size, _), key) in group.sizes.iter().zip(&group.keys) {
                for (number, count) in rows.by_ref().take(*size) {
                    if *key == EVERY_GRAM_KEY {
                        self.all_gram_units.push(*number);
                        continue;
                    }
                    self.add_posting(*key, *number, *count);
                    if *key < FIRST_POSITIONLESS_KEY {
                        for position in positions.by_ref().take(int::to_usize(*count)) {
                            self.add_posting(*key, *number, (*position + 1) << 12);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Hashes two numbers; the hash is never stored.
fn hash_pair(key: u64, value: u64) -> u64 {
    let mut hash = (key ^ value.rotate_left(40)).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 29)
}

/// Checks all segments of a conversation, and returns the findings.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the manifest is damaged or does not match
/// the head; errors of the store.
pub(crate) fn check(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    head: &ConversationHead,
    summaries: &SizedSummaries,
) -> Result<Vec<String>> {
    let index = SearchIndex::open(session, keys, head)?;
    let context = CheckContext { keys, head, summaries, index: &index };
    let mut findings = Vec::new();
    for corpus in [Corpus::Messages, Corpus::Summaries] {
        let segments = index.list_segments(corpus).to_vec();
        let mut length_total = 0;
        let mut builder = SegmentBuilder::new(corpus, 1);
        builder.keep_all_grams();
        for segment in &segments {
            let name = keys.segment_key(&segment.id);
            match check_segment(session, &context, segment, &mut builder) {
                Ok((finding, lengths)) => {
                    length_total += lengths;
                    findings.extend(
                        finding.map(|finding| format!("search segment `{name}` {finding}")),
                    );
                }
                Err(error) if error.code == ErrorCode::Corrupt => {
                    findings.push(error.into_failure().message);
                }
                Err(error) => return Err(error),
            }
        }
        if findings.is_empty() && length_total != index.length_total(corpus) {
            findings.push(format!(
                "`{}` must hold the sum of all document lengths, {length_total} positions, got {}",
                keys.manifest_key(),
                index.length_total(corpus)
            ));
        }
    }
    Ok(findings)
}

/// Conversation whose segments are checked.
#[derive(Clone, Copy)]
struct CheckContext<'c> {
    keys: &'c ConversationKeys,
    head: &'c ConversationHead,
    summaries: &'c SizedSummaries,
    index: &'c SearchIndex,
}

/// Checks one segment. Returns the first finding (`None`: the segment is sound), and the sum of the
/// lengths of its documents. If the check ended early, the sum is 0.
fn check_segment(
    session: &mut StoreSession<'_>,
    context: &CheckContext<'_>,
    segment: &SegmentRef,
    builder: &mut SegmentBuilder,
) -> Result<(Option<String>, u64)> {
    let CheckContext { keys, head, summaries, index } = *context;
    let corpus = builder.corpus;
    let lengths =
        index.read_length_chunks(session, corpus, segment.first_document, segment.last_document)?;
    let stored = sum_stored_postings(session, keys, corpus, segment, &lengths)?;
    let mut rebuilt = PostingChecksums::new(segment.covered_range(corpus));
    let history = MessageHistory { keys, head };
    let mut first = segment.first_document;
    let mut total = 0;
    while first <= segment.last_document {
        // Messages of whole units, so that each gram of a unit is counted once.
        let last = match corpus {
            Corpus::Messages => first.div_ceil(UNIT_MESSAGES) * UNIT_MESSAGES,
            Corpus::Summaries => first + UNIT_MESSAGES - 1,
        };
        let last = last.min(segment.last_document);
        builder.reset(first);
        match corpus {
            Corpus::Messages => rebuild_messages(session, &history, index, (first, last), builder)?,
            Corpus::Summaries => {
                for (id, size) in
                    index.read_summaries(session, &(first..=last).collect::<Vec<u64>>())?
                {
                    match summaries.get(&id) {
                        Some((record, bytes)) if *bytes == size => {
                            builder.add_summary(&record.text)
                        }
                        _ => {
                            let finding = "covers a summary that is missing or has another size";
                            return Ok((Some(finding.into()), 0));
                        }
                    }
                }
            }
        }
        let range = builder.covered_range();
        for (_, block) in builder.build_blocks(usize::from(u16::MAX) / 4) {
            let damaged = |_| segment::corrupt_index("a rebuilt block");
            rebuilt.add_block(&block, range, builder.document_lengths()).map_err(damaged)?;
        }
        for document in first..=last {
            let length = builder.document_lengths().position_bound(document, 0);
            total += if builder.document_lengths().is_zero(document) { 0 } else { length };
            if length != lengths.position_bound(document, 0) {
                let finding = format!("covers document {document}, whose stored length is wrong");
                return Ok((Some(finding), 0));
            }
        }
        first = last + 1;
    }
    Ok((describe_difference(&stored, &rebuilt, corpus), total))
}

fn rebuild_messages(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    index: &SearchIndex,
    (first, last): (u64, u64),
    builder: &mut SegmentBuilder,
) -> Result<()> {
    let numbers: Vec<u64> = ((first - 1).max(1)..=last).collect();
    let mut rows = index.read_rows(session, Corpus::Messages, &numbers)?;
    let mut previous_time = (first > 1).then(|| rows.remove(0).time);
    for (placed, row) in history.read_messages(session, first, last)?.into_iter().zip(rows) {
        if (row.time, row.role) != (placed.stored.time, placed.stored.role) {
            return Err(Error::corrupt_store(format_args!(
                "the search index must hold the time and role of message {}, got others",
                placed.seq
            )));
        }
        let begins = feature_terms::begins_session(previous_time.replace(row.time), row.time);
        if index.is_unindexed(placed.seq) {
            builder.skip_document();
            continue;
        }
        let raw: Cow<'_, str> = history.read_text(session, &placed.stored)?;
        let features = FeatureTerms::new(begins, placed.stored.placeholder.is_some());
        builder.add_message(&raw, &placed.stored.parts, features);
    }
    Ok(())
}

/// Computes the checksums of a stored segment.
fn sum_stored_postings(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    corpus: Corpus,
    segment: &SegmentRef,
    lengths: &DocumentLengths,
) -> Result<PostingChecksums> {
    let range = segment.covered_range(corpus);
    let mut sums = PostingChecksums::new(range);
    let name = keys.segment_key(&segment.id);
    let damaged = || segment::corrupt_index(&name);
    let value = session.read_immutable(&[(name.clone(), segment.root_bytes)])?;
    let Some(value) = value.first() else { return Err(damaged()) };
    let payload = codec::decode_raw_bytes(&name, value)?;
    let root = SegmentRoot::new(payload).ok_or_else(damaged)?;
    if segment.blocks == 0 {
        for number in 0..root.len() {
            let block = root.inline_block(number).ok_or_else(damaged)?;
            sums.add_block(block, range, lengths).map_err(|_| damaged())?;
        }
        return Ok(sums);
    }
    if int::to_u32(root.len()) != segment.blocks {
        return Err(damaged());
    }
    let names: Vec<(String, u32)> = (0..segment.blocks)
        .map(|at| (keys.segment_block_key(&segment.id, at), BLOCK_BYTES_ASSUMED))
        .collect();
    for slice in names.chunks(BLOCKS_AT_ONCE) {
        for (value, (name, _)) in session.read_immutable(slice)?.iter().zip(slice) {
            let block = codec::decode_raw_bytes(name, value)?;
            sums.add_block(block, range, lengths).map_err(|_| segment::corrupt_index(name))?;
        }
    }
    Ok(sums)
}

fn describe_difference(
    stored: &PostingChecksums,
    rebuilt: &PostingChecksums,
    corpus: Corpus,
) -> Option<String> {
    let noun = match corpus {
        Corpus::Messages => "message",
        Corpus::Summaries => "summary",
    };
    let unequal = |list: &[u64], other: &[u64], first: u64, every: &[u64]| {
        let mut pairs = (first..).zip(list.iter().zip(other));
        pairs.find(|(number, (a, b))| a != b && !every.contains(number)).map(|(number, _)| number)
    };
    let (documents, _) = stored.range.documents;
    if let Some(number) = unequal(&stored.documents, &rebuilt.documents, documents, &[]) {
        return Some(format!("must hold exactly the terms of {noun} {number}"));
    }
    let (units, _) = stored.range.units;
    unequal(&stored.units, &rebuilt.units, units, &stored.all_gram_units)
        .map(|unit| format!("must hold exactly the grams of unit {unit}"))
}
