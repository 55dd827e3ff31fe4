//! Index updates of the commits that store messages and summaries.
//!
//! Input: new messages or summaries. Output: puts for their commit. An append waits until enough
//! messages are not indexed, then writes all of them as one segment. A summary is indexed by the
//! commit that stores the summary. A commit that writes a segment also performs at most one step of
//! a merge, and deletes some values of merged segments.
//! Elsewhere: building segments (`segment_builder`), merging (`segment_merge`).

use alloc::{rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use lcm_loops::lengths;

use super::{
    corpus::Corpus,
    doc_values::{ColumnTarget, DocValueRow},
    feature_terms::{self, FeatureTerms},
    manifest::{IndexManifest, SEGMENTS_MAX},
    segment::{self, BLOCK_TARGET, NewSegment},
    segment_builder::SegmentBuilder,
    segment_merge::{self, MergeInputs},
};
use crate::storage::{
    codec,
    head::{ConversationHead, IndexedExtent},
    keys::ConversationKeys,
    pack::{Pack, RawText},
    record_key::{RecordReads, RecordValues},
    store::Put,
    store_session::StoreSession,
    summary::Summary,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    message::{Part, Role},
    types::api::Timestamp,
};

/// Number of messages outside the index at which an append indexes them.
const FLUSH_MESSAGES: u64 = 64;
/// Raw bytes of the messages outside the index at which an append indexes them. A message that is
/// too large for a pack has more bytes, so its own commit indexes the message.
const FLUSH_BYTES: u64 = 64 << 10;
/// Bytes of a commit reserved for head, guard, journal entry and manifest.
const RESERVED_BYTES: usize = 96 << 10;
/// Puts of a commit reserved for head, journal entry, manifest, directory, doc values and the list
/// of conversations.
const RESERVED_PUTS: usize = 16;
/// Number of segments of summaries above which a merge of summaries goes before one of messages.
const SUMMARIES_WAITING_MAX: usize = 128;
/// Number of the last passes of a compaction that are reserved for deleting the inputs of a merge.
const PASSES_FOR_DELETION: u64 = 16;
/// Least number of passes over which a merge of messages is spread when its step size is chosen.
const PASSES_MIN: u64 = 8;
/// Most bytes that one merge step is expected to write. After its step size, at most 96 KiB of
/// output, a step begins no further entry. The current list, group and block may then still be
/// written.
const OUTPUT_BYTES_MAX: usize = 200 << 10;
/// Most puts of one merge step.
const OUTPUT_PUTS_MAX: usize = 19;
/// Most values of merged segments that one commit deletes in each corpus.
const DELETES_MAX: usize = 32;
/// Bytes at which a block is closed in a segment of summaries, or in a segment of messages whose
/// blocks are stored in its root.
const BLOCK_TARGET_SMALL: usize = 2 << 10;
/// Most ranges of unindexed messages in the manifest. At the limit, the last range is extended to
/// the end of a further range, and then also covers indexed messages.
const UNINDEXED_RANGES_MAX: usize = 256;

/// A message to be indexed: one that the commit stores, or one that was stored before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewMessage<'a> {
    pub(crate) raw: &'a str,
    pub(crate) parts: &'a [Part],
    pub(crate) role: Role,
    pub(crate) time: Timestamp,
    pub(crate) has_payload: bool,
    /// Whether the message was uploaded. Its text is stored in chunks even if the text is small, so
    /// the commit that stores the message must index the message.
    pub(crate) is_staged: bool,
}

/// Index of one conversation during one call that writes.
#[derive(Debug)]
pub(crate) struct IndexMaintenance<'k> {
    keys: &'k ConversationKeys,
    manifest: IndexManifest,
    /// Corpus whose merge continues in this commit.
    corpus: Corpus,
    /// Keys of the packs with messages outside the index.
    packs: Vec<String>,
    /// Packs with messages outside the index.
    unflushed: Vec<Pack>,
    /// Values for the next step of the merge; `None`: this commit makes no merge step.
    merge_inputs: Option<MergeInputs>,
}

impl<'k> IndexMaintenance<'k> {
    /// Starts from the manifest that was read; `None`: an empty index.
    pub(crate) fn from_manifest(
        keys: &'k ConversationKeys,
        manifest: Option<IndexManifest>,
    ) -> Self {
        Self {
            keys,
            manifest: manifest.unwrap_or_default(),
            corpus: Corpus::Messages,
            packs: Vec::new(),
            unflushed: Vec::new(),
            merge_inputs: None,
        }
    }

    /// Refuses a manifest whose numbers of messages and summaries are not those of the head.
    ///
    /// # Errors
    ///
    /// `conflict`: the numbers differ, and the conversation has changed; `corrupt`: the numbers
    /// differ, and the conversation has not changed; errors of the store.
    pub(crate) fn ensure_matches_head(
        &self,
        session: &mut StoreSession<'_>,
        head: &ConversationHead,
    ) -> Result<()> {
        if self.manifest.matches_head(head) {
            return Ok(());
        }
        Err(session.missing_record_error(&self.keys.manifest_key()))
    }

    /// Reads the values that indexing `new` needs, and the records of `reads`, in one host call.
    /// Returns the values of `reads`.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: a value is missing or damaged;
    /// `unsupported`: a record has a newer format; errors of the store.
    pub(crate) fn read_append_inputs(
        &mut self,
        session: &mut StoreSession<'_>,
        head: &ConversationHead,
        new: &[NewMessage<'_>],
        reads: &RecordReads,
    ) -> Result<RecordValues> {
        let [blocks, fresh] = self.list_append_keys(head, new);
        let own_count = reads.key_names().len();
        let mut wanted = reads.key_names().to_vec();
        wanted.extend(fresh);
        if wanted.is_empty() && blocks.is_empty() {
            return Ok(RecordValues::new(Vec::new()));
        }
        let mut blocks_read = session.read_content_addressed(&blocks, &wanted)?;
        let mut own = blocks_read.split_off(blocks.len().min(blocks_read.len()));
        let fresh = own.split_off(own_count.min(own.len()));
        self.load_values(session, blocks_read, fresh)?;
        let own = own.into_iter().map(|value| value.map(Rc::unwrap_or_clone));
        Ok(RecordValues::new(own.collect()))
    }

    /// Lists the keys that an append of `new` must read. The first list has keys whose values the
    /// cache may hold, the second has keys that must be read from the store. Both lists are empty
    /// if the append indexes nothing.
    fn list_append_keys(
        &mut self,
        head: &ConversationHead,
        new: &[NewMessage<'_>],
    ) -> [Vec<String>; 2] {
        let bytes = new.iter().map(|message| int::to_u64(message.raw.len())).sum();
        let staged = new.iter().any(|message| message.is_staged);
        if !staged && !is_flush_due(head, int::to_u64(new.len()), bytes, new.len()) {
            return [Vec::new(), Vec::new()];
        }
        let unflushed = head.packs.iter().filter(|pack| pack.seq_last() > head.indexed.messages);
        self.packs = unflushed.map(|pack| self.keys.pack_key(pack.seq_first)).collect();
        let [blocks, lengths] =
            segment_merge::list_step_keys(self.keys, self.corpus, &self.manifest.messages);
        let mut fresh = self.packs.clone();
        fresh.extend(lengths);
        [blocks, fresh]
    }

    /// Starts merges that are due, and reads the values for the merge step of the commit that
    /// stores a summary.
    ///
    /// `passes_left`: estimated number of later summaries of the compaction.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: a value is missing or damaged;
    /// `unsupported`: a record has a newer format; errors of the store.
    pub(crate) fn prepare_summary(
        &mut self,
        session: &mut StoreSession<'_>,
        passes_left: u64,
    ) -> Result<()> {
        // The inputs are stored until the merge ends. The merge should end before the compaction,
        // so that later passes can delete the inputs.
        let passes = passes_left.saturating_sub(PASSES_FOR_DELETION).max(PASSES_MIN);
        segment_merge::start_major_merge(&mut self.manifest.messages, passes);
        segment_merge::start_merge(&mut self.manifest.summaries, Corpus::Summaries);
        // A merge of messages goes first: it ends after some passes, and the next merge of messages
        // starts only after many more messages.
        let waiting = self.manifest.summaries.segments.len() > SUMMARIES_WAITING_MAX;
        self.corpus = match self.manifest.messages.merge {
            Some(_) if !waiting => Corpus::Messages,
            _ => Corpus::Summaries,
        };
        let state = self.manifest.for_corpus(self.corpus);
        let [blocks, lengths] = segment_merge::list_step_keys(self.keys, self.corpus, state);
        // A step may end inside a block. The next step then reads this block from the cache.
        let values = session.read_content_addressed(&blocks, &lengths)?;
        self.merge_inputs =
            segment_merge::collect_inputs(session, self.keys, self.corpus, state, values)?;
        Ok(())
    }

    /// Decodes the values of the keys that [`Self::list_append_keys`] listed.
    fn load_values(
        &mut self,
        session: &mut StoreSession<'_>,
        mut blocks: Vec<Option<Rc<Vec<u8>>>>,
        mut fresh: Vec<Option<Rc<Vec<u8>>>>,
    ) -> Result<()> {
        let lengths = fresh.split_off(self.packs.len().min(fresh.len()));
        for (key, value) in self.packs.iter().zip(fresh) {
            let Some(value) = value else { return Err(session.missing_record_error(key)) };
            self.unflushed.push(codec::decode(key, &value)?);
        }
        blocks.extend(lengths);
        if !blocks.is_empty() {
            let state = self.manifest.for_corpus(self.corpus);
            self.merge_inputs =
                segment_merge::collect_inputs(session, self.keys, self.corpus, state, blocks)?;
        }
        Ok(())
    }

    /// Indexes all messages outside the index, and adds the puts to the commit of an append. Does
    /// nothing if too few messages are outside the index, unless one of `new` was uploaded. `head`
    /// must already count the messages `new`.
    ///
    /// # Errors
    ///
    /// `corrupt`: manifest, packs and head do not agree, or an input of a merge is damaged;
    /// `limit-exceeded`: a value has more than 256 KiB, or the index has too many segments.
    pub(crate) fn append_messages(
        mut self,
        head: &mut ConversationHead,
        new: &[NewMessage<'_>],
        puts: &mut Vec<Put>,
    ) -> Result<()> {
        let staged = new.iter().any(|message| message.is_staged);
        if !staged && !is_flush_due(head, 0, 0, 0) {
            return Ok(());
        }
        let first = head.indexed.messages + 1;
        if self.manifest.messages.documents + 1 != first {
            return Err(segment::corrupt_index(&self.keys.manifest_key()));
        }
        let unflushed = core::mem::take(&mut self.unflushed);
        let stored = unflushed.iter().flat_map(|pack| (pack.seq_first..).zip(&pack.messages));
        let stored: Vec<_> = stored.filter(|(seq, _)| *seq >= first).collect();
        let mut documents: Vec<NewMessage<'_>> = Vec::with_capacity(stored.len() + new.len());
        for (seq, stored) in &stored {
            let RawText::Inline(raw) = &stored.raw else {
                return Err(Error::corrupt_store(format_args!(
                    "message {seq} is stored in chunks, so the search index must contain it; the \
                     index ends before that message"
                )));
            };
            let (parts, role, time) = (stored.parts.as_slice(), stored.role, stored.time);
            let has_payload = stored.placeholder.is_some();
            let is_staged = false;
            documents.push(NewMessage { raw, parts, role, time, has_payload, is_staged });
        }
        documents.extend_from_slice(new);
        let last = head.messages;
        if first + int::to_u64(documents.len()) != last + 1 {
            return Err(Error::corrupt_store(format_args!(
                "the newest packs must hold every message from {first}, the first outside the \
                 search index, got {} messages",
                stored.len()
            )));
        }
        self.write_messages(head, first, &documents, puts)?;
        head.indexed = IndexedExtent { messages: last, raw_bytes: head.raw_bytes };
        step_merge_and_write(self, puts)
    }

    /// Writes a segment of `documents`, numbered from `first`.
    ///
    /// If not all terms fit the commit, only the terms of the first half of the messages are
    /// written. If these do not fit either, the half becomes a quarter, and so on down to none. The
    /// other messages are searched without the index.
    fn write_messages(
        &mut self,
        head: &ConversationHead,
        first: u64,
        documents: &[NewMessage<'_>],
        puts: &mut Vec<Put>,
    ) -> Result<()> {
        let (bytes_max, puts_max) = remaining_room(puts);
        let mut indexed_count = documents.len();
        let (builder, blocks) = loop {
            let mut builder = SegmentBuilder::new(Corpus::Messages, first);
            let mut previous_time =
                (first > 1).then_some(self.manifest.messages.doc_values.last_time);
            for (at, message) in documents.iter().enumerate() {
                let begins = feature_terms::begins_session(
                    previous_time.replace(message.time),
                    message.time,
                );
                if at < indexed_count {
                    let features = FeatureTerms::new(begins, message.has_payload);
                    builder.add_message(message.raw, message.parts, features);
                } else {
                    builder.skip_document();
                }
            }
            let blocks = build_message_blocks(&mut builder);
            let bytes: usize = blocks.iter().map(|(_, block)| block.len() + 16).sum();
            let inline = segment::fits_inline(&blocks);
            if indexed_count == 0 || (bytes <= bytes_max && (inline || blocks.len() < puts_max)) {
                break (builder, blocks);
            }
            indexed_count /= 2;
        };
        let last = first + int::to_u64(documents.len()) - 1;
        if indexed_count < documents.len() {
            self.mark_unindexed(first + int::to_u64(indexed_count), last);
        }
        let state = &mut self.manifest.messages;
        for (message, length) in documents.iter().zip(&builder.document_lengths().bytes) {
            let row = DocValueRow { time: message.time, role: message.role, summary: None };
            state.doc_values.push(
                ColumnTarget { keys: self.keys, corpus: Corpus::Messages },
                *length,
                &row,
                puts,
            )?;
            state.length_total += lengths::dequantize_length(*length);
        }
        state.documents = last;
        let revision = (head.revision + 1).to_be_bytes();
        let range = [first.to_be_bytes(), last.to_be_bytes()];
        let id_fields: [&[u8]; 4] =
            [b"lcm segment", &revision, &head.frontier, range.as_flattened()];
        let id = hash::hash_prefix(&hash::hash_fields(&id_fields));
        let segment = segment::put_segment(
            self.keys,
            &NewSegment { id, level: 0, documents: (first, last), blocks: &blocks },
            puts,
        )?;
        state.segments.push(segment);
        Ok(())
    }

    /// Records that the messages `[from, to]` are searched without the index.
    fn mark_unindexed(&mut self, from: u64, to: u64) {
        let ranges = &mut self.manifest.unindexed;
        let is_full = ranges.len() >= UNINDEXED_RANGES_MAX;
        match ranges.last_mut() {
            Some(range) if is_full || range.1 + 1 == from => range.1 = to,
            _ => ranges.push((from, to)),
        }
    }

    /// Indexes new summaries, and adds the puts to their commit. `records` has each summary with
    /// the size of its stored value in bytes.
    ///
    /// # Errors
    ///
    /// `corrupt`: an input of a merge is damaged; `limit-exceeded`: a value has more than 256 KiB,
    /// or the index has too many segments.
    pub(crate) fn append_summaries(
        mut self,
        records: &[(&Summary, u32)],
        puts: &mut Vec<Put>,
    ) -> Result<()> {
        let state = &mut self.manifest.summaries;
        let first = state.documents + 1;
        let mut builder = SegmentBuilder::new(Corpus::Summaries, first);
        let mut fields: Vec<Vec<u8>> = Vec::new();
        for (record, _) in records {
            builder.add_summary(&record.text);
            fields.push(record.id().to_vec());
        }
        let blocks = builder.build_blocks(BLOCK_TARGET_SMALL);
        for ((record, size), length) in records.iter().zip(&builder.document_lengths().bytes) {
            let summary = Some((record.id(), *size));
            let row = DocValueRow { time: record.latest_at, role: Role::System, summary };
            state.doc_values.push(
                ColumnTarget { keys: self.keys, corpus: Corpus::Summaries },
                *length,
                &row,
                puts,
            )?;
            state.length_total += lengths::dequantize_length(*length);
        }
        let last = first + int::to_u64(records.len()) - 1;
        state.documents = last;
        let ordinal = first.to_be_bytes();
        let mut hashed: Vec<&[u8]> = alloc::vec![b"lcm summary segment", &ordinal];
        hashed.extend(fields.iter().map(Vec::as_slice));
        let id = hash::hash_prefix(&hash::hash_fields(&hashed));
        let segment = segment::put_segment(
            self.keys,
            &NewSegment { id, level: 0, documents: (first, last), blocks: &blocks },
            puts,
        )?;
        state.segments.push(segment);
        step_merge_and_write(self, puts)
    }
}

/// Builds the blocks of a segment of messages: of 2 KiB if all fit into the root, else of 8 KiB.
fn build_message_blocks(builder: &mut SegmentBuilder) -> segment::SegmentBlocks {
    if builder.is_small() {
        let blocks = builder.build_blocks(BLOCK_TARGET_SMALL);
        if segment::fits_inline(&blocks) {
            return blocks;
        }
    }
    builder.build_blocks(BLOCK_TARGET)
}

/// Returns whether the messages outside the index must be indexed now, because of their number or
/// bytes, or because the head cannot list their packs.
///
/// Counted are the stored messages and `messages` more, with `bytes` raw bytes in at most `packs`
/// packs.
fn is_flush_due(head: &ConversationHead, messages: u64, bytes: u64, packs: usize) -> bool {
    let messages = messages + head.messages - head.indexed.messages.min(head.messages);
    let bytes = bytes + head.raw_bytes - head.indexed.raw_bytes.min(head.raw_bytes);
    messages >= FLUSH_MESSAGES
        || bytes >= FLUSH_BYTES
        // The head must list the packs of all messages outside the index.
        || (messages > 0 && head.packs.len() + packs > limits::RECENT_PACKS_MAX)
}

/// Returns how many bytes and puts a commit can still take, without the reserved ones.
fn remaining_room(puts: &[Put]) -> (usize, usize) {
    let bytes: usize = puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum();
    let bytes_max = int::to_usize(u64::from(limits::CALL_BYTES_MAX));
    let bytes = bytes_max.saturating_sub(RESERVED_BYTES + bytes);
    (bytes, limits::PUTS_MAX.saturating_sub(RESERVED_PUTS + puts.len()))
}

/// Performs the prepared merge step if the commit has room, deletes some values of merged segments,
/// starts merges that are due, and writes the manifest.
fn step_merge_and_write(maintenance: IndexMaintenance<'_>, puts: &mut Vec<Put>) -> Result<()> {
    let IndexMaintenance { keys, mut manifest, corpus, merge_inputs, .. } = maintenance;
    let (bytes, count) = remaining_room(puts);
    let fits = bytes >= OUTPUT_BYTES_MAX && count >= OUTPUT_PUTS_MAX;
    if let Some(inputs) = merge_inputs.filter(|_| fits) {
        segment_merge::run_step(keys, corpus, manifest.for_corpus_mut(corpus), &inputs, puts)?;
    }
    for corpus in [Corpus::Messages, Corpus::Summaries] {
        let (_, count) = remaining_room(puts);
        let state = manifest.for_corpus_mut(corpus);
        segment_merge::delete_merged(keys, state, count.min(DELETES_MAX), puts);
        segment_merge::start_merge(state, corpus);
        if state.segments.len() > SEGMENTS_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "a search index must have at most {SEGMENTS_MAX} segments; compact the \
                 conversation (with `force` if nothing is due), then repeat"
            )));
        }
    }
    puts.push(Put { key: keys.manifest_key(), value: Some(codec::encode(&manifest)?) });
    Ok(())
}
