//! Check: every segment holds exactly the postings that the texts it covers have.
//!
//! The postings are made anew, one unit of documents at a time, and compared with the stored ones
//! by a sum over hashes for each document and each unit, in which order does not matter. A finding
//! names the segment and the first document or unit that differs.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_loops::{
    block::{BARE, BlockReader, Damaged, EVERY_GRAM, GRAMS, Group, Range},
    lengths::Lengths,
};

use super::{
    Corpus, Index,
    builder::Builder,
    grams::UNIT_MESSAGES,
    segment::{self, BLOCK_BYTES_MAX, Root, SegmentRef},
    signs::{self, Signs},
};
use crate::storage::{
    codec, head::Head, history::History, keys::Keys, store_session::Reader, summary::Summary,
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    int,
    sort::Sorted,
};

/// Blocks that are read at once.
const BLOCKS_AT_ONCE: usize = 32;

/// All summaries by id, with the size of their records.
type Summaries = Sorted<[u8; 8], (Summary, u32)>;

/// Sums over postings.
#[derive(Debug)]
struct Sums {
    range: Range,
    documents: Vec<u64>,
    units: Vec<u64>,
    /// Units that are listed for every gram.
    every: Vec<u64>,
}

impl Sums {
    fn new(range: Range) -> Self {
        let size = |(first, last): (u64, u64)| int::to_usize(last - first + 1);
        Self {
            range,
            documents: alloc::vec![0; size(range.documents)],
            units: alloc::vec![0; size(range.units)],
            every: Vec::new(),
        }
    }

    fn add(&mut self, key: u64, number: u64, what: u64) {
        let (list, (first, _)) = if key >= GRAMS {
            (&mut self.units, self.range.units)
        } else {
            (&mut self.documents, self.range.documents)
        };
        let at = number.checked_sub(first).map(int::to_usize);
        if let Some(sum) = at.and_then(|at| list.get_mut(at)) {
            *sum = sum.wrapping_add(mix(key, what));
        }
    }

    /// Adds all postings of a block; `Err`: it cannot be read.
    fn block(
        &mut self,
        block: &[u8],
        range: Range,
        lengths: &Lengths,
    ) -> core::result::Result<(), Damaged> {
        let mut reader = BlockReader::new(block, range).ok_or(Damaged)?;
        let mut group = Group::default();
        while reader.next(Some(lengths), &mut group)? {
            let mut rows = group.documents.iter().zip(&group.counts);
            let mut positions = group.positions.iter();
            for ((size, _), key) in group.sizes.iter().zip(&group.keys) {
                for (number, count) in rows.by_ref().take(*size) {
                    if *key == EVERY_GRAM {
                        self.every.push(*number);
                        continue;
                    }
                    self.add(*key, *number, *count);
                    if *key < BARE {
                        for position in positions.by_ref().take(int::to_usize(*count)) {
                            self.add(*key, *number, (*position + 1) << 12);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// A hash of two numbers, for sums that are compared and forgotten.
fn mix(key: u64, what: u64) -> u64 {
    let mut hash = (key ^ what.rotate_left(40)).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 29)
}

/// Checks all segments of a conversation; the findings are returned.
///
/// # Errors
///
/// `corrupt`: the manifest cannot be read or is of another head; of the store.
pub(crate) fn check(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    summaries: &Summaries,
) -> Result<Vec<String>> {
    let index = Index::open(reader, keys, head)?;
    let mut findings = Vec::new();
    for corpus in [Corpus::Messages, Corpus::Summaries] {
        let segments = index.segments(corpus).to_vec();
        let mut length_total = 0;
        let mut builder = Builder::new(corpus, 1);
        builder.keep_all_grams();
        for segment in &segments {
            let name = keys.segment(&segment.id);
            match check_segment(reader, keys, head, summaries, &index, segment, &mut builder) {
                Ok((finding, lengths)) => {
                    length_total += lengths;
                    findings.extend(finding.map(|what| format!("search segment `{name}` {what}")));
                }
                Err(error) if error.code == ErrorCode::Corrupt => {
                    findings.push(error.into_failure().message);
                }
                Err(error) => return Err(error),
            }
        }
        if findings.is_empty() && length_total != index.length_total(corpus) {
            findings.push(format!("`{}` counts other lengths", keys.manifest()));
        }
    }
    Ok(findings)
}

/// What is wrong with a segment, and the lengths of its documents together.
fn check_segment(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    summaries: &Summaries,
    index: &Index,
    segment: &SegmentRef,
    builder: &mut Builder,
) -> Result<(Option<String>, u64)> {
    let corpus = builder.corpus;
    let lengths = index.lengths_of(reader, corpus, segment.first, segment.last)?;
    let stored = stored(reader, keys, corpus, segment, &lengths)?;
    let mut made = Sums::new(segment.range(corpus));
    let history = History { keys, head };
    let mut first = segment.first;
    let mut total = 0;
    while first <= segment.last {
        // Whole units, so that the grams of each are counted once.
        let last = match corpus {
            Corpus::Messages => first.div_ceil(UNIT_MESSAGES) * UNIT_MESSAGES,
            Corpus::Summaries => first + UNIT_MESSAGES - 1,
        };
        let last = last.min(segment.last);
        builder.restart(first);
        match corpus {
            Corpus::Messages => messages(reader, &history, index, (first, last), builder)?,
            Corpus::Summaries => {
                for (id, size) in
                    index.summaries_of(reader, &(first..=last).collect::<Vec<u64>>())?
                {
                    match summaries.get(&id) {
                        Some((record, known)) if *known == size => builder.summary(&record.text),
                        _ => return Ok((Some("covers a summary that is gone".into()), 0)),
                    }
                }
            }
        }
        let range = builder.range();
        for (_, block) in builder.blocks(usize::from(u16::MAX) / 4) {
            let damaged = |_| segment::damaged("a block made anew");
            made.block(&block, range, builder.lengths()).map_err(damaged)?;
        }
        for document in first..=last {
            let length = builder.lengths().bound(document, 0);
            total += if builder.lengths().is_zero(document) { 0 } else { length };
            if length != lengths.bound(document, 0) {
                return Ok((Some(format!("covers document {document} of another length")), 0));
            }
        }
        first = last + 1;
    }
    Ok((difference(&stored, &made, corpus), total))
}

fn messages(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    index: &Index,
    (first, last): (u64, u64),
    builder: &mut Builder,
) -> Result<()> {
    let numbers: Vec<u64> = ((first - 1).max(1)..=last).collect();
    let mut rows = index.rows(reader, Corpus::Messages, &numbers)?;
    let mut before = (first > 1).then(|| rows.remove(0).time);
    for (placed, row) in history.messages(reader, first, last)?.into_iter().zip(rows) {
        if (row.time, row.role) != (placed.stored.time, placed.stored.role) {
            let message = format!("the search index has another time or role of {}", placed.seq);
            return Err(Error::corrupt(message));
        }
        let begins = signs::begins_session(before.replace(row.time), row.time);
        if index.is_direct(placed.seq) {
            builder.skip();
            continue;
        }
        let raw: Cow<'_, str> = history.text(reader, &placed.stored)?;
        let signs = Signs::of(begins, placed.stored.stand_in.is_some());
        builder.message(&raw, &placed.stored.parts, signs);
    }
    Ok(())
}

/// The sums over what a segment holds.
fn stored(
    reader: &mut Reader<'_>,
    keys: &Keys,
    corpus: Corpus,
    segment: &SegmentRef,
    lengths: &Lengths,
) -> Result<Sums> {
    let range = segment.range(corpus);
    let mut sums = Sums::new(range);
    let name = keys.segment(&segment.id);
    let damaged = || segment::damaged(&name);
    let value = reader.immutable(&[(name.clone(), segment.root_bytes)])?;
    let Some(value) = value.first() else { return Err(damaged()) };
    let payload = codec::decode_plain(&name, value)?;
    let root = Root::new(payload).ok_or_else(damaged)?;
    if segment.blocks == 0 {
        for number in 0..root.len() {
            let block = root.inline(number).ok_or_else(damaged)?;
            sums.block(block, range, lengths).map_err(|_| damaged())?;
        }
        return Ok(sums);
    }
    if int::to_u32(root.len()) != segment.blocks {
        return Err(damaged());
    }
    let names: Vec<(String, u32)> =
        (0..segment.blocks).map(|at| (keys.block(&segment.id, at), BLOCK_BYTES_MAX)).collect();
    for slice in names.chunks(BLOCKS_AT_ONCE) {
        for (value, (name, _)) in reader.immutable(slice)?.iter().zip(slice) {
            let block = codec::decode_plain(name, value)?;
            sums.block(block, range, lengths).map_err(|_| segment::damaged(name))?;
        }
    }
    Ok(sums)
}

fn difference(stored: &Sums, made: &Sums, corpus: Corpus) -> Option<String> {
    let what = match corpus {
        Corpus::Messages => "message",
        Corpus::Summaries => "summary",
    };
    let unequal = |list: &[u64], other: &[u64], first: u64, every: &[u64]| {
        let mut pairs = (first..).zip(list.iter().zip(other));
        pairs.find(|(number, (a, b))| a != b && !every.contains(number)).map(|(number, _)| number)
    };
    let (documents, _) = stored.range.documents;
    if let Some(number) = unequal(&stored.documents, &made.documents, documents, &[]) {
        return Some(format!("does not hold the terms of {what} {number}"));
    }
    let (units, _) = stored.range.units;
    unequal(&stored.units, &made.units, units, &stored.every)
        .map(|unit| format!("does not hold the grams of unit {unit}"))
}
