//! Reader of the search index.
//!
//! Input: terms, grams or document numbers. Output: postings, units, and doc values. A lookup reads
//! the manifest, then roots of segments, then the needed blocks, each in as few host calls as
//! possible. Values go through the cache of the instance, except the manifest.
//! Elsewhere: writing the index (`index_maintenance`).

use alloc::{rc::Rc, string::String, vec::Vec};

use lcm_loops::{
    lengths::DocumentLengths,
    posting_block::{BlockReader, DamagedBlock, EVERY_GRAM_KEY},
};

use super::{
    corpus::Corpus,
    doc_values::{self, DocValueRow, LENGTHS_CHUNK},
    manifest::IndexManifest,
    segment::{self, BLOCK_BYTES_ASSUMED, SegmentRef, SegmentRoot},
    segment_builder::{gram_key, term_key},
};
use crate::storage::{
    codec, head::ConversationHead, keys::ConversationKeys, store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::Result,
        int,
        sort::{self, SortedMap},
    },
    message::Role,
    types::api::Timestamp,
};

/// Documents that contain a term or a query item, ascending, with the occurrences in each.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Postings {
    /// Document numbers.
    pub(crate) documents: Vec<u64>,
    /// Number of occurrences in each document, at least 1.
    pub(crate) counts: Vec<u32>,
}

/// Search index of one conversation at one head.
#[derive(Debug)]
pub(crate) struct SearchIndex {
    keys: ConversationKeys,
    manifest: IndexManifest,
    /// First and last message that no segment covers; the first is greater if there is none.
    unflushed: (u64, u64),
}

/// Callback for one list of a key: index of the key, documents (or units of a gram), counts, and
/// positions of all documents in turn. A key may have several lists.
type EachKeyList<'e> = &'e mut dyn FnMut(usize, &[u64], &[u64], &[u64]);

/// Keys whose lists are read, in some segments of a corpus.
#[derive(Clone, Copy)]
struct ListRequest<'r> {
    corpus: Corpus,
    segments: &'r [&'r SegmentRef],
    keys: &'r [u64],
    /// Lengths of the documents, needed to decode positions; `None`: positions are not decoded.
    lengths: Option<&'r DocumentLengths>,
}

/// A block of a segment to read for some of the keys.
struct BlockLookup<'s> {
    segment: &'s SegmentRef,
    root: Rc<Vec<u8>>,
    number: usize,
    /// Indexes into the list of requested keys.
    keys: Vec<usize>,
}

impl SearchIndex {
    /// Reads the manifest; an absent manifest is an empty index.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed since the head was read; `corrupt`: the manifest is
    /// damaged or does not match the head; errors of the store.
    pub(crate) fn open(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        head: &ConversationHead,
    ) -> Result<Self> {
        let key = IndexManifest::key(keys);
        let manifest = session.read_record(&key)?.unwrap_or_default();
        if !manifest.matches_head(head) {
            return Err(session.missing_record_error(key.name()));
        }
        let unflushed = (head.indexed.messages + 1, head.messages);
        Ok(Self { keys: keys.clone(), manifest, unflushed })
    }

    /// Returns the keys of the conversation.
    pub(super) const fn conversation_keys(&self) -> &ConversationKeys {
        &self.keys
    }

    /// Returns the number of documents that segments cover.
    pub(crate) fn count_documents(&self, corpus: Corpus) -> u64 {
        self.manifest.for_corpus(corpus).documents
    }

    /// Returns the sum of the lengths of all documents that segments cover, in positions.
    pub(crate) fn length_total(&self, corpus: Corpus) -> u64 {
        self.manifest.for_corpus(corpus).length_total
    }

    /// Returns the ranges of messages that are searched without the index, inclusive and ascending.
    ///
    /// The last range has the messages that no segment covers yet, if there are any.
    pub(crate) fn unindexed_ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges = self.manifest.unindexed.clone();
        if self.unflushed.0 <= self.unflushed.1 {
            ranges.push(self.unflushed);
        }
        ranges
    }

    /// Reads the postings of each term, in the order of the terms.
    ///
    /// A term is stored as 40 bits of a hash. About one absent term in a million has the postings
    /// of another term, so callers must verify hits that they show.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_postings(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        terms: &[Vec<u8>],
    ) -> Result<Vec<Postings>> {
        let keys: Vec<u64> = terms.iter().map(|term| term_key(term)).collect();
        let mut out: Vec<Postings> = terms.iter().map(|_| Postings::default()).collect();
        let segments: Vec<&SegmentRef> = self.manifest.for_corpus(corpus).segments.iter().collect();
        let request = ListRequest { corpus, segments: &segments, keys: &keys, lengths: None };
        self.read_lists(session, &request, &mut |at, documents, counts, _| {
            if let Some(postings) = out.get_mut(at) {
                postings.documents.extend_from_slice(documents);
                postings.counts.extend(counts.iter().map(|n| int::to_u32(int::to_usize(*n))));
            }
        })?;
        Ok(out)
    }

    /// Reads the positions of a term in each of `documents` (ascending).
    ///
    /// The list of a document without the term is empty. All lists are empty if
    /// [`super::terms::has_positions`] is false for the term.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_positions(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        term: &[u8],
        documents: &[u64],
    ) -> Result<Vec<Vec<u32>>> {
        let mut out: Vec<Vec<u32>> = documents.iter().map(|_| Vec::new()).collect();
        let holds = |segment: &&SegmentRef| {
            let from = documents.partition_point(|document| *document < segment.first_document);
            documents.get(from).is_some_and(|document| *document <= segment.last_document)
        };
        let segments: Vec<&SegmentRef> =
            self.manifest.for_corpus(corpus).segments.iter().filter(holds).collect();
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Ok(out);
        };
        let lengths =
            self.read_length_chunks(session, corpus, first.first_document, last.last_document)?;
        let keys = [term_key(term)];
        let lengths = Some(&lengths);
        let request = ListRequest { corpus, segments: &segments, keys: &keys, lengths };
        self.read_lists(session, &request, &mut |_, own, counts, all| {
            let mut positions = all;
            for (document, count) in own.iter().zip(counts) {
                let (these, rest) =
                    positions.split_at_checked(int::to_usize(*count)).unwrap_or_default();
                positions = rest;
                if let Ok(at) = documents.binary_search(document)
                    && let Some(slot) = out.get_mut(at)
                {
                    slot.extend(these.iter().map(|n| int::to_u32(int::to_usize(*n))));
                }
            }
        })?;
        Ok(out)
    }

    /// Reads for each gram the units that may contain the gram, ascending.
    ///
    /// A unit is a block of 64 messages ([`super::grams::unit_of_message`]). A unit with too many
    /// grams is in the list of every gram.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_units(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        grams: &[[u8; 3]],
    ) -> Result<Vec<Vec<u64>>> {
        let mut keys: Vec<u64> = grams.iter().map(|gram| gram_key(*gram)).collect();
        keys.push(EVERY_GRAM_KEY);
        let mut out: Vec<Vec<u64>> = keys.iter().map(|_| Vec::new()).collect();
        let segments: Vec<&SegmentRef> = self.manifest.for_corpus(corpus).segments.iter().collect();
        let request = ListRequest { corpus, segments: &segments, keys: &keys, lengths: None };
        self.read_lists(session, &request, &mut |at, units, _, _| {
            if let Some(list) = out.get_mut(at) {
                list.extend_from_slice(units);
            }
        })?;
        let all_gram_units = out.pop().unwrap_or_default();
        for list in &mut out {
            list.extend_from_slice(&all_gram_units);
            sort::sort_and_dedup_numbers(list);
        }
        Ok(out)
    }

    /// Calls `each` with the lists of the requested keys, segment by segment.
    fn read_lists(
        &self,
        session: &mut StoreSession<'_>,
        request: &ListRequest<'_>,
        each: EachKeyList<'_>,
    ) -> Result<()> {
        let ListRequest { segments, keys, .. } = *request;
        let roots: Vec<(String, u32)> = segments
            .iter()
            .map(|segment| (self.keys.segment_key(&segment.id), segment.root_bytes))
            .collect();
        let values = session.read_immutable(&roots)?;
        let mut lookups: Vec<BlockLookup<'_>> = Vec::new();
        for ((segment, value), (name, _)) in segments.iter().zip(values).zip(&roots) {
            let payload = codec::decode_raw_bytes(name, &value)?;
            let root = SegmentRoot::new(payload).ok_or_else(|| segment::corrupt_index(name))?;
            let mut blocks: SortedMap<usize, Vec<usize>> = SortedMap::default();
            for (at, key) in keys.iter().enumerate() {
                for number in root.find_blocks(*key) {
                    if let Some(list) = blocks.get_or_insert_default(number) {
                        list.push(at);
                    }
                }
            }
            for (number, keys) in blocks.into_entries() {
                lookups.push(BlockLookup { segment, root: Rc::clone(&value), number, keys });
            }
        }
        let mut names: Vec<(String, u32)> = Vec::new();
        for lookup in lookups.iter().filter(|lookup| lookup.segment.blocks > 0) {
            let number = int::to_u32(lookup.number);
            names.push((
                self.keys.segment_block_key(&lookup.segment.id, number),
                BLOCK_BYTES_ASSUMED,
            ));
        }
        let mut values = session.read_immutable(&names)?.into_iter().zip(&names);
        for lookup in &lookups {
            let segment = lookup.segment;
            let name = self.keys.segment_key(&segment.id);
            let read = |block: Option<&[u8]>, name: &str, each: EachKeyList<'_>| {
                let block = block.ok_or_else(|| segment::corrupt_index(name))?;
                read_block(block, lookup, request, each).map_err(|_| segment::corrupt_index(name))
            };
            if segment.blocks == 0 {
                let payload = codec::decode_raw_bytes(&name, &lookup.root)?;
                let block =
                    SegmentRoot::new(payload).and_then(|root| root.inline_block(lookup.number));
                read(block, &name, each)?;
            } else if let Some((value, (name, _))) = values.next() {
                read(Some(codec::decode_raw_bytes(name, &value)?), name, each)?;
            }
        }
        Ok(())
    }

    /// Returns the segments of a corpus, in the order of their documents.
    pub(super) fn list_segments(&self, corpus: Corpus) -> &[SegmentRef] {
        &self.manifest.for_corpus(corpus).segments
    }

    /// Returns whether a segment covers a message that is nevertheless searched without the index.
    pub(super) fn is_unindexed(&self, seq: u64) -> bool {
        self.manifest.unindexed.iter().any(|(from, to)| (*from..=*to).contains(&seq))
    }

    /// Reads the lengths of at least the documents from `first` to `last`, in whole chunks.
    pub(super) fn read_length_chunks(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        first: u64,
        last: u64,
    ) -> Result<DocumentLengths> {
        let columns = &self.manifest.for_corpus(corpus).doc_values;
        let chunk = |document: u64| int::to_usize(document.saturating_sub(1) / LENGTHS_CHUNK);
        let written = columns.lengths_checksums.len();
        let (from, to) = (chunk(first).min(written), (chunk(last) + 1).min(written));
        let mut lengths =
            DocumentLengths { first: int::to_u64(from) * LENGTHS_CHUNK + 1, bytes: Vec::new() };
        let numbers: Vec<u32> = (from..to).map(int::to_u32).collect();
        let names: Vec<String> = numbers
            .iter()
            .map(|number| doc_values::lengths_key(&self.keys, corpus, *number))
            .collect();
        let checks = columns.lengths_checksums.get(from..to).unwrap_or_default();
        for value in read_checked_values(session, &names, checks)? {
            lengths.bytes.extend_from_slice(value.get(2..).unwrap_or_default());
        }
        if to == written {
            lengths.bytes.extend_from_slice(&columns.lengths);
        }
        Ok(lengths)
    }

    /// Reads the lengths of indexed documents (ascending) in positions, rounded up by at most a
    /// sixteenth, at least 1. A document outside the index has length 1.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_lengths(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        documents: &[u64],
    ) -> Result<Vec<u32>> {
        let (Some(first), Some(last)) = (documents.first(), documents.last()) else {
            return Ok(Vec::new());
        };
        let lengths = self.read_length_chunks(session, corpus, *first, *last)?;
        let of = |document: &u64| int::to_u32(int::to_usize(lengths.position_bound(*document, 0)));
        Ok(documents.iter().map(of).collect())
    }

    /// Reads the rows of documents (ascending).
    pub(super) fn read_rows(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        documents: &[u64],
    ) -> Result<Vec<DocValueRow>> {
        let columns = &self.manifest.for_corpus(corpus).doc_values;
        let chunk = doc_values::rows_per_chunk(corpus);
        let written = columns.rows_checksums.len();
        let number = |document: u64| int::to_usize(document.saturating_sub(1) / chunk);
        let mut numbers: Vec<usize> = documents.iter().map(|document| number(*document)).collect();
        numbers.dedup();
        let stored: Vec<usize> = numbers.iter().copied().filter(|n| *n < written).collect();
        let names: Vec<String> = stored
            .iter()
            .map(|number| doc_values::rows_key(&self.keys, corpus, int::to_u32(*number)))
            .collect();
        let checks: Vec<u32> =
            stored.iter().filter_map(|n| columns.rows_checksums.get(*n).copied()).collect();
        let mut decoded: SortedMap<usize, Vec<DocValueRow>> = SortedMap::default();
        for ((number, name), value) in
            stored.iter().zip(&names).zip(read_checked_values(session, &names, &checks)?)
        {
            let rows = doc_values::decode_rows(value.get(2..).unwrap_or_default(), corpus);
            decoded.insert(*number, rows.ok_or_else(|| segment::corrupt_index(name))?);
        }
        if numbers.last().is_some_and(|last| *last >= written) {
            let rows = doc_values::decode_rows(&columns.rows, corpus);
            let damaged = || segment::corrupt_index(&self.keys.manifest_key());
            decoded.insert(written, rows.ok_or_else(damaged)?);
        }
        let mut out = Vec::with_capacity(documents.len());
        for document in documents {
            let at = int::to_usize(document.saturating_sub(1) % chunk);
            let row = decoded.get(&number(*document)).and_then(|rows| rows.get(at));
            out.push(*row.ok_or_else(|| segment::corrupt_index(&self.keys.manifest_key()))?);
        }
        Ok(out)
    }

    /// Reads the times of indexed documents (ascending); any other document is the error `corrupt`.
    /// A summary has the time of its newest message.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_times(
        &self,
        session: &mut StoreSession<'_>,
        corpus: Corpus,
        documents: &[u64],
    ) -> Result<Vec<Timestamp>> {
        let rows = self.read_rows(session, corpus, documents)?;
        Ok(rows.into_iter().map(|row| row.time).collect())
    }

    /// Reads the time of a message that a segment covers; the result is never `None`. A message
    /// that no segment covers gives the error `corrupt`.
    pub(super) fn read_time(
        &self,
        session: &mut StoreSession<'_>,
        seq: u64,
    ) -> Result<Option<Timestamp>> {
        let rows = self.read_rows(session, Corpus::Messages, &[seq])?;
        Ok(rows.first().map(|row| row.time))
    }

    /// Reads the roles of messages (ascending).
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_roles(
        &self,
        session: &mut StoreSession<'_>,
        messages: &[u64],
    ) -> Result<Vec<Role>> {
        let rows = self.read_rows(session, Corpus::Messages, messages)?;
        Ok(rows.into_iter().map(|row| row.role).collect())
    }

    /// Reads the id of each summary (ordinals ascending), and the size of its value in bytes.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_summaries(
        &self,
        session: &mut StoreSession<'_>,
        ordinals: &[u64],
    ) -> Result<Vec<([u8; 8], u32)>> {
        let rows = self.read_rows(session, Corpus::Summaries, ordinals)?;
        Ok(rows.into_iter().filter_map(|row| row.summary).collect())
    }
}

/// Calls `each` with the lists in one block of the keys of a lookup.
fn read_block(
    block: &[u8],
    lookup: &BlockLookup<'_>,
    request: &ListRequest<'_>,
    each: EachKeyList<'_>,
) -> core::result::Result<(), DamagedBlock> {
    for at in &lookup.keys {
        let mut block_reader =
            BlockReader::new(block, lookup.segment.covered_range(request.corpus))
                .ok_or(DamagedBlock)?;
        let key = request.keys.get(*at).copied().unwrap_or_default();
        block_reader.find_lists(key, request.lengths, &mut |documents, counts, positions| {
            each(*at, documents, counts, positions);
        })?;
    }
    Ok(())
}

/// Reads chunks of doc values. A cached chunk with another checksum is read from the store again.
fn read_checked_values(
    session: &mut StoreSession<'_>,
    names: &[String],
    checks: &[u32],
) -> Result<Vec<Rc<Vec<u8>>>> {
    let keys: Vec<(String, u32)> =
        names.iter().map(|name| (name.clone(), BLOCK_BYTES_ASSUMED)).collect();
    let mut out = session.read_immutable(&keys)?;
    for ((value, check), name) in out.iter_mut().zip(checks).zip(names) {
        let is_current = |value: &[u8]| {
            codec::decode_raw_bytes(name, value)
                .is_ok_and(|bytes| doc_values::column_checksum(bytes) == *check)
        };
        if !is_current(value) {
            *value = session.read_checked(name, BLOCK_BYTES_ASSUMED, &is_current)?;
        }
    }
    Ok(out)
}
