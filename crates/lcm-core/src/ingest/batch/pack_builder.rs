//! Lays new messages out in packs and collects the puts of their commit.
//!
//! In: candidates that are new messages. Out: puts in [`Changes`], references to the packs, and a
//! head with new totals. [`crate::ingest`] uses this module for each append and import.

use alloc::{boxed::Box, vec::Vec};

use crate::storage::{
    call::Call,
    changes::Changes,
    head::{ConversationHead, UserMessageRef},
    history,
    pack::{self, DirectoryNode, Pack, PackRef, PlaceholderMessage, RawText, StoredMessage},
    records::{identity::StoredIdentity, large_payload::payload_record_key, upload::Upload},
};
use lcm_text::{
    base::{
        derivation_version::DERIVATION_VERSION,
        error::{Error, Result},
        int, limits,
        sort::SortedMap,
    },
    message::large_payload,
    types::api::Timestamp,
};

use super::{
    super::identity::KeptIdentities,
    candidate::{AppendCandidate, compute_sha256},
    commit_limits::PACK_RECORD_BYTES_MAX,
    record_size::estimate_raw_bytes,
};

/// Newest pack references that stay in the head when the others move to the directory.
const PACKS_KEPT: usize = 8;

/// A directory node that a commit may extend.
pub(in crate::ingest) struct NumberedDirectoryNode {
    pub(in crate::ingest) number: u64,
    pub(in crate::ingest) node: DirectoryNode,
}

/// The pack that is being filled.
struct OpenPack {
    pack: Pack,
    /// Bytes of the raw texts in the pack, without texts in chunks and placeholders.
    inline_bytes: usize,
    /// Upper bound of the bytes of the pack's record.
    record_bytes: usize,
}

/// A builder of the packs, identities, payload records and chunks of new messages.
pub(in crate::ingest) struct PackBuilder<'a> {
    call: Call<'a>,
    /// Chunk lengths, by SHA-256, of the large texts that are stored or that this commit stores.
    large_chunks: SortedMap<[u8; 32], Vec<u32>>,
    open_pack: Option<OpenPack>,
    packs: Vec<PackRef>,
    changes: &'a mut Changes,
}

impl<'a> PackBuilder<'a> {
    /// Creates a builder for one commit; `large_chunks` has the chunk lengths of stored large texts
    /// by SHA-256.
    pub(in crate::ingest) fn new(
        call: Call<'a>,
        large_chunks: SortedMap<[u8; 32], Vec<u32>>,
        changes: &'a mut Changes,
    ) -> Self {
        Self { call, large_chunks, open_pack: None, packs: Vec::new(), changes }
    }

    /// Adds one message and advances the totals, the running hash, the newest marks and the newest
    /// user message of the head. `now` is the time of a message without a timestamp.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(in crate::ingest) fn add_message(
        &mut self,
        head: &mut ConversationHead,
        candidate: &AppendCandidate<'_>,
        kept: KeptIdentities,
        now: Timestamp,
    ) -> Result<()> {
        let message = &candidate.message;
        let seq = head.messages + 1;
        head.frontier = pack::advance_frontier(&head.frontier, &candidate.hash);
        let stored = self.build_record(candidate, kept.has_call_id, now, seq)?;
        let tokens = stored.tokens;
        let inline = if let RawText::Inline(text) = &stored.raw { text.len() } else { 0 };
        self.put_identities(candidate, kept, seq)?;
        let shown = stored.placeholder.as_ref();
        let record = estimate_raw_bytes(&stored.raw, &stored.parts)
            + shown.map_or(0, |one| estimate_raw_bytes(&one.raw, &one.parts));
        let full = self.open_pack.as_ref().is_some_and(
            |OpenPack { pack, inline_bytes: texts, record_bytes: taken }| {
                pack.messages.len() == limits::PACK_MESSAGES_MAX
                    || pack.dialect != message.dialect
                    || texts + inline > limits::PACK_BYTES_MAX
                    || taken + record > PACK_RECORD_BYTES_MAX
                    || history::directory_node(seq) != history::directory_node(pack.seq_first)
            },
        );
        if full {
            self.close_pack()?;
        }
        let open = self.open_pack.get_or_insert_with(|| {
            let (dialect, tokens_before) = (message.dialect, head.raw_tokens);
            let (messages, frontiers) = (Vec::new(), Vec::new());
            let pack = Pack { seq_first: seq, dialect, tokens_before, messages, frontiers };
            OpenPack { pack, inline_bytes: 0, record_bytes: 0 }
        });
        open.pack.messages.push(stored.into());
        open.pack.frontiers.push(head.frontier);
        open.inline_bytes += inline;
        open.record_bytes += record;
        head.messages = seq;
        head.raw_bytes += int::to_u64(candidate.raw.len());
        head.raw_tokens += u64::from(tokens);
        if message.is_user_text() {
            head.newest_user = Some(UserMessageRef { seq, tokens });
        }
        head.recent_marks.push(candidate.entry.whole_mark);
        Ok(())
    }

    /// Builds the record of a message and adds the puts of its chunks and payload records.
    fn build_record(
        &mut self,
        candidate: &AppendCandidate<'_>,
        keeps_call_id: bool,
        now: Timestamp,
        seq: u64,
    ) -> Result<StoredMessage> {
        let message = &candidate.message;
        let raw = self.put_text(candidate)?;
        let made = candidate.placeholder.as_ref();
        let placeholder =
            made.map(|made| self.put_placeholder(made, message.tokens, seq)).transpose()?;
        Ok(StoredMessage {
            raw,
            derivation_version: DERIVATION_VERSION,
            role: message.role,
            time: message.timestamp.unwrap_or(now),
            tokens: made.map_or(message.tokens, |made| made.tokens),
            entry_id: message.entry_id,
            event_key: message.event_key,
            call_key: message.unique_call_id.filter(|_| keeps_call_id),
            parts: message.parts.clone(),
            placeholder,
        })
    }

    /// Returns the text of a candidate as it is stored, and adds the puts of its chunks.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(in crate::ingest) fn put_text(
        &mut self,
        candidate: &AppendCandidate<'_>,
    ) -> Result<RawText> {
        match candidate.large_text_name() {
            None => Ok(RawText::Inline(candidate.raw.clone().into_owned())),
            Some(sha256) => {
                let staged = candidate.upload.as_ref().map(|(_, upload)| upload);
                self.put_large_text(sha256, &candidate.raw, staged)
            }
        }
    }

    /// Returns the reference to a text in chunks, and adds their puts.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(in crate::ingest) fn put_chunks(&mut self, text: &str) -> Result<RawText> {
        self.put_large_text(compute_sha256(text), text, None)
    }

    /// Returns the changes of the commit.
    pub(in crate::ingest) fn changes_mut(&mut self) -> &mut Changes {
        self.changes
    }

    /// Adds the puts of those identities of a message that are kept.
    fn put_identities(
        &mut self,
        candidate: &AppendCandidate<'_>,
        kept: KeptIdentities,
        seq: u64,
    ) -> Result<()> {
        for lookup in candidate.lookups.iter().filter(|lookup| kept.has_lookup(lookup)) {
            let value = StoredIdentity::new(seq, lookup, &candidate.identity_content());
            let key = StoredIdentity::key(self.call.keys, lookup);
            match kept.repeats_id {
                true => self.changes.rewrite_record(&key, &value)?,
                false => self.changes.write_record(&key, &value)?,
            };
        }
        Ok(())
    }

    /// Adds the puts of payload records and returns the placeholder of their message.
    fn put_placeholder(
        &mut self,
        made: &large_payload::NewPlaceholder,
        message_tokens: u32,
        seq: u64,
    ) -> Result<Box<PlaceholderMessage>> {
        for (id, file) in &made.files {
            let file = large_payload::PayloadRecord { seq, ..file.clone() };
            // Equal payloads have the same key; the record of the last message replaces the others.
            self.changes.rewrite_record(&payload_record_key(self.call.keys, *id), &file)?;
        }
        let raw = match made.raw.len() > limits::PACK_BYTES_MAX {
            true => self.put_large_text(compute_sha256(&made.raw), &made.raw, None)?,
            false => RawText::Inline(made.raw.clone()),
        };
        let (parts, payload_tokens_min) = (made.parts.clone(), made.payload_tokens_min);
        Ok(Box::new(PlaceholderMessage { raw, parts, message_tokens, payload_tokens_min }))
    }

    /// Returns the reference to a text in chunks. Unless the text is stored, adds the puts of its
    /// chunks, if it was not uploaded, and of its final upload record.
    fn put_large_text(
        &mut self,
        sha256: [u8; 32],
        text: &str,
        staged: Option<&Upload>,
    ) -> Result<RawText> {
        if let Some(chunks) = self.large_chunks.get(&sha256) {
            return Ok(RawText::Chunked { sha256, chunks: chunks.clone() });
        }
        let mut upload = match staged {
            Some(upload) => upload.clone(),
            None => Upload::write_chunks(self.call.keys, &sha256, text, self.changes)?,
        };
        upload.is_final = true;
        self.changes.write_record(&Upload::key(self.call.keys, &sha256), &upload)?;
        self.large_chunks.insert(sha256, upload.chunks.clone());
        Ok(RawText::Chunked { sha256, chunks: upload.chunks })
    }

    /// Adds the put and the reference of the open pack, if there is an open pack.
    fn close_pack(&mut self) -> Result<()> {
        let Some(OpenPack { pack, .. }) = self.open_pack.take() else { return Ok(()) };
        let key = Pack::key(self.call.keys, pack.seq_first);
        let bytes = self.changes.write_record(&key, &pack)?;
        self.packs.push(pack.to_pack_ref(bytes));
        Ok(())
    }

    /// Closes the last pack and returns the references of all packs.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(in crate::ingest) fn finish(mut self) -> Result<Vec<PackRef>> {
        self.close_pack()?;
        Ok(self.packs)
    }
}

/// Moves all but the newest 8 pack references from the head to the directory if the head has more
/// than [`limits::RECENT_PACKS_MAX`]. `node` is the directory node of the oldest reference.
///
/// # Errors
///
/// `corrupt`: the directory node to extend was not read.
pub(in crate::ingest) fn flush_packs(
    call: Call<'_>,
    head: &mut ConversationHead,
    node: Option<NumberedDirectoryNode>,
    changes: &mut Changes,
) -> Result<()> {
    if head.packs.len() <= limits::RECENT_PACKS_MAX {
        return Ok(());
    }
    let Some(NumberedDirectoryNode { mut number, mut node }) = node else {
        return Err(Error::corrupt_store("the directory node to extend was not read"));
    };
    let moved = head.packs.len() - PACKS_KEPT;
    for pack in head.packs.drain(..moved) {
        let own_number = history::directory_node(pack.seq_first);
        if own_number != number {
            changes.write_record(&DirectoryNode::key(call.keys, number), &node)?;
            (number, node) = (own_number, DirectoryNode::default());
        }
        node.packs.push(pack);
    }
    changes.write_record(&DirectoryNode::key(call.keys, number), &node)?;
    Ok(())
}
