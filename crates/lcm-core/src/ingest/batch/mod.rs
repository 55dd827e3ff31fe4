//! From the strings of one append to packs: reading, bounding, laying out.

use crate::storage::pack::PlaceholderMessage;
use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::{
    search::{INDEXED_BYTES_MAX, NewMessage},
    storage::{
        codec,
        head::{ConversationHead, UserMessageRef},
        history,
        keys::ConversationKeys,
        pack::{self, DirectoryNode, Pack, PackRef, RawText, StoredMessage},
        store::Put,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        derivation_version::DERIVATION_VERSION,
        error::{Error, Result},
        int, limits,
        sort::SortedMap,
    },
    message::{self, ParsedMessage, Part, Role, large_payload},
    types::api::{Dialect, Timestamp},
};

use super::{
    IDENTITY_PUTS_MAX, NumberedDirectoryNode,
    identity::{self, IdentityLookup},
    upload::Upload,
};

/// Most packs that one append writes. Two neighbours together hold over 64 KiB of text or take over
/// 200 KiB, so that at most 8 pairs fit into [`COMMIT_RECORDS_BYTES_MAX`] and 512 KiB of text; one
/// more cut may fall on a directory boundary, and one on the most messages of a pack.
pub(super) const PACKS_MAX: usize = 20;
/// Packs that stay in the head when the others move to the directory.
const PACKS_KEPT: usize = 8;
/// Puts that a staged message may need before its text is known: three identities, its record.
const STAGED_MESSAGE_PUTS: usize = 4;
/// Most bytes of a pack's record; a message of the most parts takes less.
const PACK_RECORD_BYTES_MAX: usize = 200 << 10;
/// Most bytes of packs, chunks and their records in one commit. The rest of its 1 MiB is for
/// identities, directory, context and head.
const COMMIT_RECORDS_BYTES_MAX: usize = 768 << 10;
/// Bytes of texts that one commit reads for words, so that the index of them fits it, too; see
/// [`INDEXED_BYTES_MAX`].
const COMMIT_READ_BYTES_MAX: usize = 2 << 20;
/// Bytes that a stored message takes beside its text and parts, from above.
const STORED_FIELDS_BYTES_MAX: usize = 112;
/// Bytes of the length of a chunk in a record, from above.
const CHUNK_LENGTH_BYTES_MAX: usize = 3;
/// How a message refers to staged text.
const UPLOAD_PREFIX: &str = "@upload ";

/// One message of the batch.
#[derive(Debug)]
pub(super) struct AppendCandidate<'a> {
    pub(super) raw: Cow<'a, str>,
    pub(super) message: ParsedMessage,
    pub(super) hash: [u8; 16],
    /// All identities of the message.
    pub(super) lookups: Vec<IdentityLookup>,
    /// Name of the staged text that is still to be read.
    pending_upload: Option<[u8; 32]>,
    /// Name and record of the staged text.
    upload: Option<([u8; 32], Upload)>,
    /// What stands for it, when it has large payloads.
    placeholder: Option<large_payload::NewPlaceholder>,
}

/// How texts become candidates.
pub(super) struct CandidateParser<'a> {
    pub(super) dialect: Dialect,
    pub(super) keys: &'a ConversationKeys,
    /// Tokens from which on a payload of the message at this index is large; `None`: none is.
    pub(super) payload_tokens_min: &'a dyn Fn(usize) -> Option<u32>,
}

impl CandidateParser<'_> {
    /// Reads one message: its projection and what stands for it.
    fn parse_message(
        &self,
        raw: &str,
        index: usize,
    ) -> Result<(ParsedMessage, Option<large_payload::NewPlaceholder>)> {
        let named = |error: Error| {
            Error::new(error.code, format_args!("messages[{index}]: {}", error.message))
        };
        let message = message::parse(self.dialect, raw).map_err(named)?;
        let stand_in = match (self.payload_tokens_min)(index) {
            Some(least) => large_payload::build_placeholder(
                self.dialect,
                raw,
                &message,
                least,
                self.keys.key_prefix(),
            ),
            None => None,
        };
        Ok((message, stand_in))
    }
}

impl AppendCandidate<'_> {
    /// The upload whose text is still to be read.
    pub(super) fn pending_upload(&self) -> Option<[u8; 32]> {
        self.pending_upload
    }

    /// Names of the texts that are too large for a pack and whose records were not read yet.
    pub(super) fn unread_large_names(&self) -> impl Iterator<Item = [u8; 32]> {
        let raw = self.large_text_name().filter(|_| self.upload.is_none());
        let shown =
            self.placeholder.as_ref().filter(|made| made.raw.len() > limits::PACK_BYTES_MAX);
        raw.into_iter().chain(shown.map(|made| compute_sha256(&made.raw)))
    }

    /// What of it is searched, stored at `now`.
    pub(super) fn to_searchable(&self, now: Timestamp) -> NewMessage<'_> {
        let message = &self.message;
        let time = message.timestamp.unwrap_or(now);
        let is_staged = self.upload.is_some();
        NewMessage {
            raw: &self.raw,
            parts: &message.parts,
            role: message.role,
            time,
            has_payload: self.placeholder.is_some(),
            is_staged,
        }
    }

    /// Puts of its identities, of the records of its payloads, and of its staged text.
    fn count_small_puts(&self) -> usize {
        let files = self.placeholder.as_ref().map_or(0, |made| made.files.len());
        self.lookups.len() + files + usize::from(self.upload.is_some())
    }

    /// Bytes of what storing it writes, without its identities, from above.
    fn estimate_put_bytes(&self) -> usize {
        let stand_in = self.placeholder.as_ref().map_or(0, |made| {
            let files = made.files.iter().map(|(_, file)| file.bytes_max()).sum::<usize>();
            files + estimate_text_bytes(made.raw.len(), &made.parts)
        });
        let parts = &self.message.parts;
        stand_in
            + match &self.upload {
                Some((_, upload)) => estimate_stored_bytes(0, 2 * upload.chunks.len(), parts),
                None => estimate_text_bytes(self.raw.len(), parts),
            }
    }

    /// Name of the text when it is too large for a pack.
    pub(super) fn large_text_name(&self) -> Option<[u8; 32]> {
        match &self.upload {
            Some((sha256, _)) => Some(*sha256),
            None if self.raw.len() > limits::PACK_BYTES_MAX => Some(compute_sha256(&self.raw)),
            None => None,
        }
    }
}

/// Bytes of a text with its parts, in a pack or in chunks.
fn estimate_text_bytes(text: usize, parts: &[Part]) -> usize {
    if text <= limits::PACK_BYTES_MAX {
        return estimate_stored_bytes(text, 0, parts);
    }
    // The list of chunks stands in the pack and in a record of its own.
    let chunks = text / (limits::CHUNK_BYTES_MAX - 4) + 1;
    text + estimate_stored_bytes(0, 2 * chunks, parts)
}

fn compute_sha256(text: &str) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes()).into()
}

/// Reads every message, or with `partial` the first that one commit can take; staged ones wait for
/// [`resolve`].
///
/// # Errors
///
/// `invalid-input` naming the message; `limit-exceeded`: too many identities for one commit.
pub(super) fn read_candidates<'a>(
    shape: &CandidateParser<'_>,
    list: &'a [String],
    partial: bool,
) -> Result<Vec<AppendCandidate<'a>>> {
    let mut out = Vec::with_capacity(list.len());
    let mut identities = 0usize;
    for (index, raw) in list.iter().enumerate() {
        if let Some(name) = raw.strip_prefix(UPLOAD_PREFIX) {
            let sha256 =
                hash::decode_hex(name).filter(|bytes| bytes.len() == 32).ok_or_else(|| {
                    Error::invalid_input(format_args!(
                        "`messages[{index}]` must name an upload by 64 hex digits"
                    ))
                })?;
            identities += STAGED_MESSAGE_PUTS;
            out.push(AppendCandidate {
                raw: Cow::Borrowed(""),
                message: build_blank_message(),
                hash: [0; 16],
                lookups: Vec::new(),
                pending_upload: Some(hash::hash_prefix(&sha256)),
                upload: None,
                placeholder: None,
            });
        } else {
            let (message, stand_in) = shape.parse_message(raw, index)?;
            let lookups = identity::collect_lookups(raw, &message);
            identities += lookups.len();
            let hash = pack::message_hash(raw, &message);
            let raw = Cow::Borrowed(raw.as_str());
            let (waiting, upload) = (None, None);
            out.push(AppendCandidate {
                raw,
                message,
                hash,
                lookups,
                pending_upload: waiting,
                upload,
                placeholder: stand_in,
            });
        }
        if identities > IDENTITY_PUTS_MAX {
            if partial && index > 0 {
                out.pop();
                return Ok(out);
            }
            return Err(Error::limit_exceeded(format_args!(
                "messages: {index} of {} fit into one call (at most {IDENTITY_PUTS_MAX} ids)",
                list.len()
            )));
        }
    }
    Ok(out)
}

fn build_blank_message() -> ParsedMessage {
    ParsedMessage {
        role: Role::System,
        parts: Vec::new(),
        tokens: 0,
        timestamp: None,
        entry_id: None,
        event_key: None,
        identity: [0; 16],
        unique_call_id: None,
        is_discriminating: false,
        is_failed_and_empty: false,
        dialect_mismatch: None,
        has_invalid_timestamp: false,
    }
}

/// What was found of the uploads that a batch names.
pub(super) struct StagedUploads<'a> {
    pub(super) records: &'a [String],
    pub(super) values: Vec<Option<Vec<u8>>>,
    pub(super) is_partial: bool,
}

/// Puts staged texts in place, verified against their name.
///
/// # Errors
///
/// `not-found`: nothing was staged under the name; `invalid-input`: what was staged has another
/// SHA-256, or is no message.
pub(super) fn resolve_uploads(
    reader: &mut StoreSession<'_>,
    shape: &CandidateParser<'_>,
    candidates: &mut Vec<AppendCandidate<'_>>,
    staged: StagedUploads<'_>,
) -> Result<()> {
    let mut found = staged.records.iter().zip(staged.values);
    let mut bytes = 0u64;
    let mut cut = None;
    for (index, candidate) in candidates.iter_mut().enumerate() {
        let Some(name) = candidate.pending_upload() else { continue };
        let Some((key, Some(value))) = found.next() else {
            return Err(Error::not_found(format_args!(
                "upload `{}` of `messages[{index}]` does not exist; call `stage` first",
                hash::hex(&name)
            )));
        };
        let upload: Upload = codec::decode(key, &value)?;
        bytes += upload.bytes;
        if bytes > limits::BATCH_UPLOADED_BYTES_MAX && index > 0 {
            if !staged.is_partial {
                return Err(Error::limit_exceeded(format_args!(
                    "messages: {index} fit into one call (at most {} staged bytes)",
                    limits::BATCH_UPLOADED_BYTES_MAX
                )));
            }
            cut = Some(index);
            break;
        }
        let text = upload.text(reader, shape.keys, &name)?;
        if compute_sha256(&text) != name {
            return Err(Error::invalid_input(format_args!(
                "upload `{}` of `messages[{index}]` must be complete and match its SHA-256",
                hash::hex(&name)
            )));
        }
        (candidate.message, candidate.placeholder) = shape.parse_message(&text, index)?;
        candidate.hash = pack::message_hash(&text, &candidate.message);
        candidate.lookups = identity::collect_lookups(&text, &candidate.message);
        candidate.raw = Cow::Owned(text);
        candidate.pending_upload = None;
        candidate.upload = Some((name, upload));
    }
    if let Some(cut) = cut {
        candidates.truncate(cut);
    }
    truncate_to_commit(candidates, staged.is_partial)
}

/// Cuts the batch to what one commit can take of records and chunks.
fn truncate_to_commit(candidates: &mut Vec<AppendCandidate<'_>>, partial: bool) -> Result<()> {
    let (mut bytes, mut puts, mut read) = (0usize, 0usize, 0usize);
    let mut count = 0usize;
    for candidate in candidates.iter() {
        bytes = bytes.saturating_add(candidate.estimate_put_bytes());
        puts += candidate.count_small_puts();
        read += candidate.raw.len().min(INDEXED_BYTES_MAX);
        let is_over = bytes > COMMIT_RECORDS_BYTES_MAX
            || puts > IDENTITY_PUTS_MAX
            || read > COMMIT_READ_BYTES_MAX;
        // One message alone always fits; the commit has its own bound.
        if is_over && count > 0 {
            break;
        }
        count += 1;
    }
    if count < candidates.len() && !partial {
        return Err(Error::limit_exceeded(format_args!(
            "messages: {count} of {} fit into one call (at most {COMMIT_RECORDS_BYTES_MAX} bytes \
             of records, {COMMIT_READ_BYTES_MAX} of searched text, {IDENTITY_PUTS_MAX} ids and \
             payloads)",
            candidates.len(),
        )));
    }
    candidates.truncate(count);
    Ok(())
}

/// The bytes that a text and its parts take in a pack, from above.
fn estimate_raw_bytes(raw: &RawText, parts: &[Part]) -> usize {
    match raw {
        RawText::Inline(text) => estimate_stored_bytes(text.len(), 0, parts),
        RawText::Chunked { chunks, .. } => estimate_stored_bytes(0, chunks.len(), parts),
    }
}

/// The bytes that a message takes in its pack, from above: `text` of it for its text, or for the
/// `chunks` that hold it.
fn estimate_stored_bytes(text: usize, chunks: usize, parts: &[Part]) -> usize {
    let parts: usize = parts.iter().map(estimate_part_bytes).sum();
    STORED_FIELDS_BYTES_MAX + text + chunks * CHUNK_LENGTH_BYTES_MAX + parts
}

fn estimate_part_bytes(part: &Part) -> usize {
    let slots = part.all_spans();
    // The variant, a byte for each slot, or the flag of a result.
    let spans: usize = slots
        .iter()
        .flatten()
        .map(|span| count_varint_bytes(span.start) + count_varint_bytes(span.length))
        .sum();
    1 + slots.len() + spans
}

/// Bytes of a number as records write it: seven bits each.
fn count_varint_bytes(number: u32) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// The pack that is being filled.
struct OpenPack {
    pack: Pack,
    /// Bytes of the texts in it.
    inline_bytes: usize,
    /// Bytes of its record, from above.
    record_bytes: usize,
}

/// Lays new messages out in packs and collects what the commit writes.
pub(super) struct PackBuilder<'a> {
    keys: &'a ConversationKeys,
    dialect: Dialect,
    /// Chunk lengths of the large texts that are stored.
    large_chunks: SortedMap<[u8; 32], Vec<u32>>,
    open_pack: Option<OpenPack>,
    packs: Vec<PackRef>,
    puts: Vec<Put>,
}

impl<'a> PackBuilder<'a> {
    /// A builder for one commit; `large` names the large texts that are stored already.
    pub(super) fn new(
        keys: &'a ConversationKeys,
        dialect: Dialect,
        large: SortedMap<[u8; 32], Vec<u32>>,
    ) -> Self {
        Self {
            keys,
            dialect,
            large_chunks: large,
            open_pack: None,
            packs: Vec::new(),
            puts: Vec::new(),
        }
    }

    /// Adds one message and advances the head's totals.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(super) fn add_message(
        &mut self,
        head: &mut ConversationHead,
        candidate: &AppendCandidate<'_>,
        call_key: bool,
        now: Timestamp,
    ) -> Result<()> {
        let message = &candidate.message;
        let seq = head.messages + 1;
        head.frontier = pack::advance_frontier(&head.frontier, &candidate.hash);
        let stored = self.build_record(candidate, call_key, now, seq)?;
        let tokens = stored.tokens;
        let inline = if let RawText::Inline(text) = &stored.raw { text.len() } else { 0 };
        self.put_identities(candidate, call_key, seq)?;
        let shown = stored.placeholder.as_ref();
        let record = estimate_raw_bytes(&stored.raw, &stored.parts)
            + shown.map_or(0, |one| estimate_raw_bytes(&one.raw, &one.parts));
        let full = self.open_pack.as_ref().is_some_and(
            |OpenPack { pack, inline_bytes: texts, record_bytes: taken }| {
                pack.messages.len() == limits::PACK_MESSAGES_MAX
                    || texts + inline > limits::PACK_BYTES_MAX
                    || taken + record > PACK_RECORD_BYTES_MAX
                    || history::directory_node(seq) != history::directory_node(pack.seq_first)
            },
        );
        if full {
            self.close_pack()?;
        }
        let open = self.open_pack.get_or_insert_with(|| {
            let (dialect, tokens_before) = (self.dialect, head.raw_tokens);
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
        head.recent_hashes.push(hash::hash_prefix(&candidate.hash));
        Ok(())
    }

    /// The record of a message, after what it refers to was written.
    fn build_record(
        &mut self,
        candidate: &AppendCandidate<'_>,
        call_key: bool,
        now: Timestamp,
        seq: u64,
    ) -> Result<StoredMessage> {
        let message = &candidate.message;
        let raw = match candidate.large_text_name() {
            None => RawText::Inline(candidate.raw.clone().into_owned()),
            Some(sha256) => {
                let staged = candidate.upload.as_ref().map(|(_, upload)| upload);
                self.put_large_text(sha256, &candidate.raw, staged)?
            }
        };
        let made = candidate.placeholder.as_ref();
        let stand_in =
            made.map(|made| self.put_placeholder(made, message.tokens, seq)).transpose()?;
        Ok(StoredMessage {
            raw,
            derivation_version: DERIVATION_VERSION,
            role: message.role,
            time: message.timestamp.unwrap_or(now),
            tokens: made.map_or(message.tokens, |made| made.tokens),
            entry_id: message.entry_id,
            event_key: message.event_key,
            call_key: message.unique_call_id.filter(|_| call_key),
            parts: message.parts.clone(),
            placeholder: stand_in,
        })
    }

    fn put_identities(
        &mut self,
        candidate: &AppendCandidate<'_>,
        call_key: bool,
        seq: u64,
    ) -> Result<()> {
        for lookup in &candidate.lookups {
            if lookup.is_call() && !call_key {
                continue;
            }
            let value = identity::StoredIdentity::new(seq, lookup, &candidate.message);
            let value = Some(codec::encode(&value)?);
            self.puts.push(Put { key: self.keys.identity_key(&lookup.hash), value });
        }
        Ok(())
    }

    /// Writes the records of payloads; answers what stands for their message.
    fn put_placeholder(
        &mut self,
        made: &large_payload::NewPlaceholder,
        message_tokens: u32,
        seq: u64,
    ) -> Result<Box<PlaceholderMessage>> {
        for (id, file) in &made.files {
            let file = large_payload::PayloadRecord { seq, ..file.clone() };
            let (key, value) = (self.keys.payload_key(*id), Some(codec::encode(&file)?));
            // The same payload again is the same file.
            self.puts.retain(|put| put.key != key);
            self.puts.push(Put { key, value });
        }
        let raw = match made.raw.len() > limits::PACK_BYTES_MAX {
            true => self.put_large_text(compute_sha256(&made.raw), &made.raw, None)?,
            false => RawText::Inline(made.raw.clone()),
        };
        let (parts, payload_tokens_min) = (made.parts.clone(), made.payload_tokens_min);
        Ok(Box::new(PlaceholderMessage { raw, parts, message_tokens, payload_tokens_min }))
    }

    /// Refers to a text in chunks, writing them unless they are stored or staged.
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
            None => self.put_chunks(&sha256, text)?,
        };
        upload.is_final = true;
        let key = self.keys.upload_key(&sha256);
        self.puts.push(Put { key, value: Some(codec::encode(&upload)?) });
        self.large_chunks.insert(sha256, upload.chunks.clone());
        Ok(RawText::Chunked { sha256, chunks: upload.chunks })
    }

    fn put_chunks(&mut self, sha256: &[u8; 32], text: &str) -> Result<Upload> {
        let mut upload = Upload::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, tail) = split_at_bytes(rest, limits::CHUNK_BYTES_MAX);
            let key = self.keys.chunk_key(sha256, int::to_u32(upload.chunks.len()));
            self.puts.push(Put { key, value: Some(codec::encode_chunk(piece.as_bytes())?) });
            upload.push(piece.len());
            rest = tail;
        }
        Ok(upload)
    }

    fn close_pack(&mut self) -> Result<()> {
        let Some(OpenPack { pack, .. }) = self.open_pack.take() else { return Ok(()) };
        let value = codec::encode(&pack)?;
        self.packs.push(pack.to_pack_ref(int::to_u32(value.len())));
        self.puts.push(Put { key: self.keys.pack_key(pack.seq_first), value: Some(value) });
        Ok(())
    }

    /// The packs for the directory and what the commit writes.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(super) fn finish(mut self) -> Result<(Vec<PackRef>, Vec<Put>)> {
        self.close_pack()?;
        Ok((self.packs, self.puts))
    }
}

/// Splits before the last character that would pass `bytes_max`.
fn split_at_bytes(text: &str, bytes_max: usize) -> (&str, &str) {
    let mut at = bytes_max.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// Moves older packs from the head to the directory when the head holds too many.
///
/// # Errors
///
/// `corrupt`: the node that has to grow was not read, which no bound allows.
pub(super) fn flush_packs(
    keys: &ConversationKeys,
    head: &mut ConversationHead,
    node: NumberedDirectoryNode,
) -> Result<Vec<Put>> {
    if head.packs.len() <= limits::RECENT_PACKS_MAX {
        return Ok(Vec::new());
    }
    let Some((mut number, mut node)) = node else {
        return Err(Error::corrupt_store("the directory node to extend was not read"));
    };
    let moved = head.packs.len() - PACKS_KEPT;
    let mut puts = Vec::new();
    for pack in head.packs.drain(..moved) {
        let belongs = history::directory_node(pack.seq_first);
        if belongs != number {
            puts.push(Put { key: keys.directory_key(number), value: Some(codec::encode(&node)?) });
            (number, node) = (belongs, DirectoryNode::default());
        }
        node.packs.push(pack);
    }
    puts.push(Put { key: keys.directory_key(number), value: Some(codec::encode(&node)?) });
    Ok(puts)
}

#[cfg(test)]
#[expect(clippy::as_conversions, reason = "a failing test may panic")]
mod tests;
