//! Compressed packs: values that hold many older messages, deflated together.
//!
//! In: messages, added to a [`CompressedPackBuilder`]. Out: the value of a compressed pack, and
//! from a value the messages again ([`CompressedPack`]). The value has a header and two deflated
//! streams: the projections (all fields but the texts) and the texts. A read of one message
//! inflates all projections, but the texts only up to the end of this message.
//! [`crate::storage::pack_compaction`] decides which messages are compressed, and when.

use crate::storage::pack::PlacedMessage;
use crate::storage::pack::PlaceholderMessage;
use alloc::{
    borrow::ToOwned,
    boxed::Box,
    rc::Rc,
    string::{String, ToString},
    vec::Vec,
};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    pack::{PackRef, RawText, StoredMessage},
};
use lcm_text::{
    base::{
        deflate,
        error::{Error, Result},
        int,
        json::ByteSpan,
        limits,
    },
    message::{Part, Role},
    types::api::{Dialect, Timestamp},
};

/// The header of a compressed pack, which precedes both streams.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct CompressedPackHeader {
    seq_first: u64,
    /// Number of messages.
    count: u32,
    dialect: Dialect,
    /// Tokens of all messages before the pack.
    tokens_before: u64,
    /// Running hash before the first message, and after the last message.
    frontiers: [[u8; 16]; 2],
    /// Bytes of the projections before deflating, then bytes of their deflated stream.
    columns: [u32; 2],
    /// Bytes of the texts before deflating; their deflated stream is the rest of the value.
    texts: u32,
}

impl SoundRecord for CompressedPackHeader {
    fn is_sound(&self) -> bool {
        self.seq_first > 0
            && self.count > 0
            && u64::from(self.count) <= limits::DIRECTORY_SPAN
            && codec::are_countable(&[self.seq_first, self.tokens_before])
            && int::to_usize(u64::from(self.columns[0])) <= limits::VALUE_BYTES_MAX
            && int::to_usize(u64::from(self.texts)) <= limits::COMPRESSED_TEXTS_BYTES_MAX
    }
}

/// A message whose text is stored in chunks.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct ChunkedMessage {
    /// Index in the pack, from 0.
    index: u32,
    sha256: [u8; 32],
    chunks: Vec<u32>,
    /// Running hash after the message, stored because computing it would need the whole text.
    frontier: [u8; 16],
}

/// The placeholder of a message with large payloads.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct PlaceholderEntry {
    /// Index in the pack, from 0.
    index: u32,
    placeholder: Box<PlaceholderMessage>,
}

/// All fields of the messages but the texts, one list per field, because similar values side by
/// side deflate best.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct PackColumns {
    /// Bytes of each text; 0 if the text is stored in chunks.
    bytes: Vec<u32>,
    roles: Vec<Role>,
    /// Time of each message minus the time of the message before; for the first message its time.
    times: Vec<i64>,
    tokens: Vec<u32>,
    derivation_versions: Vec<u32>,
    entry_ids: Vec<Option<ByteSpan>>,
    event_keys: Vec<Option<ByteSpan>>,
    call_keys: Vec<Option<ByteSpan>>,
    parts: Vec<Vec<Part>>,
    chunked_messages: Vec<ChunkedMessage>,
    placeholders: Vec<PlaceholderEntry>,
}

impl SoundRecord for PackColumns {
    fn is_sound(&self) -> bool {
        let count = self.bytes.len();
        let is_sound = |large: &ChunkedMessage| {
            let bytes: u64 = large.chunks.iter().map(|bytes| u64::from(*bytes)).sum();
            bytes <= limits::MESSAGE_BYTES_MAX
        };
        let lengths = [
            self.roles.len(),
            self.times.len(),
            self.tokens.len(),
            self.derivation_versions.len(),
            self.entry_ids.len(),
            self.event_keys.len(),
            self.call_keys.len(),
            self.parts.len(),
        ];
        let is_bounded =
            |entry: &PlaceholderEntry| entry.placeholder.raw.bytes() <= limits::MESSAGE_BYTES_MAX;
        lengths.iter().all(|length| *length == count)
            && self.chunked_messages.iter().all(is_sound)
            && self.placeholders.iter().all(is_bounded)
    }
}

/// A builder of a compressed pack.
pub(crate) struct CompressedPackBuilder {
    seq_first: u64,
    dialect: Dialect,
    tokens_before: u64,
    tokens: u64,
    frontiers: [[u8; 16]; 2],
    time: Timestamp,
    columns: PackColumns,
    texts: String,
    /// Upper bound of the bytes of the projections before deflating.
    projected_bytes: usize,
}

impl CompressedPackBuilder {
    /// Begins a pack at `seq_first`. `tokens_before` are the tokens of all earlier messages,
    /// `frontier` is the running hash after the last of these messages (zeros: there are none).
    pub(crate) fn new(
        seq_first: u64,
        dialect: Dialect,
        tokens_before: u64,
        frontier: [u8; 16],
    ) -> Self {
        Self {
            seq_first,
            dialect,
            tokens_before,
            tokens: 0,
            frontiers: [frontier; 2],
            time: 0,
            columns: PackColumns::default(),
            texts: String::new(),
            projected_bytes: 0,
        }
    }

    /// Returns whether the message has the dialect of the pack, and texts and projections would
    /// stay within their limits.
    pub(crate) fn can_take(&self, dialect: Dialect, message: &StoredMessage) -> bool {
        dialect == self.dialect
            && self.texts.len().saturating_add(inline_bytes(message))
                <= limits::COMPRESSED_TEXTS_BYTES_MAX
            && self.projected_bytes.saturating_add(estimate_projection_bytes(message))
                <= PROJECTED_BYTES_MAX
    }

    /// Returns whether the pack may end at the next aligned seq: the pack has at least 32 KiB of
    /// text or 48 KiB of projections.
    pub(crate) fn is_full(&self) -> bool {
        self.texts.len() >= limits::COMPRESSED_TEXTS_BYTES_MIN
            || self.projected_bytes >= PROJECTED_BYTES_MAX / 2
    }

    /// Returns an upper bound of the bytes of the finished value.
    pub(crate) fn bytes_max(&self) -> usize {
        // Deflating can enlarge data, by less than the hundredth that is added.
        let bytes = self.texts.len() + self.projected_bytes;
        512 + bytes + bytes / 100
    }

    /// Returns the bytes of the texts before deflating.
    pub(crate) fn texts_bytes(&self) -> usize {
        self.texts.len()
    }

    /// Returns the running hash after the last added message.
    pub(crate) fn last_frontier(&self) -> [u8; 16] {
        self.frontiers[1]
    }

    /// Adds the next message; `frontier` is the running hash after this message.
    pub(crate) fn push(&mut self, message: &StoredMessage, frontier: [u8; 16]) {
        let columns = &mut self.columns;
        let (text, bytes) = match &message.raw {
            RawText::Inline(text) => (text.as_str(), int::to_u32(text.len())),
            RawText::Chunked { sha256, chunks } => {
                let index = int::to_u32(columns.bytes.len());
                let chunks = chunks.clone();
                columns.chunked_messages.push(ChunkedMessage {
                    index,
                    sha256: *sha256,
                    chunks,
                    frontier,
                });
                ("", 0)
            }
        };
        if let Some(placeholder) = &message.placeholder {
            let index = int::to_u32(columns.bytes.len());
            columns.placeholders.push(PlaceholderEntry { index, placeholder: placeholder.clone() });
        }
        self.texts.push_str(text);
        self.projected_bytes += estimate_projection_bytes(message);
        columns.bytes.push(bytes);
        columns.roles.push(message.role);
        columns.times.push(message.time.cast_signed().wrapping_sub(self.time.cast_signed()));
        columns.tokens.push(message.tokens);
        columns.derivation_versions.push(message.derivation_version);
        columns.entry_ids.push(message.entry_id);
        columns.event_keys.push(message.event_key);
        columns.call_keys.push(message.call_key);
        columns.parts.push(message.parts.clone());
        self.time = message.time;
        self.tokens += u64::from(message.tokens);
        self.frontiers[1] = frontier;
    }

    /// Builds the value of the pack and the reference to it.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the value is larger than 256 KiB, which the size limits prevent.
    pub(crate) fn finish(&self) -> Result<(PackRef, Vec<u8>)> {
        let columns =
            postcard::to_allocvec(&self.columns).map_err(|_| codec::unwritable_record_error())?;
        let streams = [deflate::deflate(&columns), deflate::deflate(self.texts.as_bytes())];
        let head = CompressedPackHeader {
            seq_first: self.seq_first,
            count: int::to_u32(self.columns.bytes.len()),
            dialect: self.dialect,
            tokens_before: self.tokens_before,
            frontiers: self.frontiers,
            columns: [int::to_u32(columns.len()), int::to_u32(streams[0].len())],
            texts: int::to_u32(self.texts.len()),
        };
        let value = codec::encode_compressed_pack(&head, [&streams[0], &streams[1]])?;
        let place = PackRef {
            seq_first: self.seq_first,
            count: head.count,
            bytes: int::to_u32(value.len()),
            tokens: self.tokens,
            frontier_prefix: hash::hash_prefix(&self.frontiers[1]),
            is_compressed: true,
        };
        Ok((place, value))
    }
}

/// Most bytes of the projections, before deflating, of a pack with more than one message.
const PROJECTED_BYTES_MAX: usize = 96 << 10;

fn inline_bytes(message: &StoredMessage) -> usize {
    match &message.raw {
        RawText::Inline(text) => text.len(),
        RawText::Chunked { .. } => 0,
    }
}

/// Returns an upper bound of the bytes of a message in [`PackColumns`].
///
/// The bound is 64 for the fields that every message has and 45 per part. A text in chunks adds 64
/// and 5 per chunk. A placeholder adds 32, its parts and its text or chunks.
fn estimate_projection_bytes(message: &StoredMessage) -> usize {
    let chunk_bytes = |raw: &RawText| match raw {
        RawText::Inline(_) => 0,
        RawText::Chunked { chunks, .. } => 64 + 5 * chunks.len(),
    };
    let placeholder_bytes = |placeholder: &PlaceholderMessage| {
        let text = if let RawText::Inline(text) = &placeholder.raw { text.len() } else { 0 };
        32 + text + chunk_bytes(&placeholder.raw) + 45 * placeholder.parts.len()
    };
    let placeholder = message.placeholder.as_deref().map_or(0, placeholder_bytes);
    64 + chunk_bytes(&message.raw) + 45 * message.parts.len() + placeholder
}

/// An opened compressed pack: all projections, and the texts at least up to one message.
#[derive(Debug)]
pub(crate) struct CompressedPack {
    header: CompressedPackHeader,
    columns: PackColumns,
    times: Vec<Timestamp>,
    /// For each message, the tokens of all earlier messages of the pack.
    tokens: Vec<u64>,
    /// For each message, the end of its text in `texts`, as a byte offset.
    ends: Vec<usize>,
    /// The inflated texts: all, or only those of the first messages.
    texts: String,
}

impl CompressedPack {
    /// Opens a pack and inflates its texts up to the end of the message with seq `to`; all texts if
    /// `to` is after the pack.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value cannot be decoded or inflated, or does not match its header;
    /// `unsupported`: the value has a newer format.
    pub(crate) fn open(key: &str, value: &[u8], to: u64) -> Result<Self> {
        let (head, streams): (CompressedPackHeader, &[u8]) =
            codec::decode_compressed_pack(key, value)?;
        let damaged = || Error::corrupt_store(format_args!("`{key}` cannot be inflated"));
        let [length, stream] = head.columns.map(|bytes| int::to_usize(u64::from(bytes)));
        let (columns, texts) = streams.split_at_checked(stream).ok_or_else(damaged)?;
        let columns = deflate::inflate(columns, length).ok_or_else(damaged)?;
        let columns: PackColumns = codec::decode_payload(key, &columns)?;
        let differs = || Error::corrupt_store(format_args!("`{key}` does not match its header"));
        if columns.bytes.len() != int::to_usize(u64::from(head.count)) {
            return Err(differs());
        }
        let mut ends = Vec::with_capacity(columns.bytes.len());
        let mut tokens = Vec::with_capacity(columns.bytes.len());
        let (mut end, mut sum) = (0u64, 0u64);
        for (bytes, count) in columns.bytes.iter().zip(&columns.tokens) {
            tokens.push(sum);
            sum += u64::from(*count);
            end += u64::from(*bytes);
            ends.push(int::to_usize(end));
        }
        if end != u64::from(head.texts) {
            return Err(differs());
        }
        let add = |time: &mut u64, step: &i64| {
            *time = time.wrapping_add_signed(*step);
            Some(*time)
        };
        let times = columns.times.iter().scan(0, add).collect();
        let last = int::to_usize(to.saturating_sub(head.seq_first));
        let whole = int::to_usize(end);
        let front = ends.get(last).copied().unwrap_or(whole);
        let texts = match front == whole {
            true => deflate::inflate(texts, whole),
            false => deflate::inflate_prefix(texts, front),
        };
        let texts = texts.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(damaged)?;
        Ok(Self { header: head, columns, times, tokens, ends, texts })
    }

    /// Returns the first bytes of the running hash after the last message, which a [`PackRef`]
    /// holds.
    pub(crate) fn frontier_prefix(&self) -> [u8; 4] {
        hash::hash_prefix(&self.header.frontiers[1])
    }

    /// Returns the dialect of the messages.
    pub(crate) fn dialect(&self) -> Dialect {
        self.header.dialect
    }

    /// Returns the running hash before the first message, and after the last message.
    pub(crate) fn frontier_bounds(&self) -> [[u8; 16]; 2] {
        self.header.frontiers
    }

    /// Returns whether first seq, number and tokens of the messages equal those of the reference,
    /// and whether the tokens before the pack equal `tokens_before`.
    pub(crate) fn matches_pack_ref(&self, place: &PackRef, tokens_before: u64) -> bool {
        let tokens: u64 = self.columns.tokens.iter().map(|tokens| u64::from(*tokens)).sum();
        self.header.seq_first == place.seq_first
            && self.header.count == place.count
            && self.header.tokens_before == tokens_before
            && tokens == place.tokens
    }

    /// Returns the first and the last seq.
    pub(crate) fn seq_range(&self) -> (u64, u64) {
        (self.header.seq_first, self.header.seq_first + u64::from(self.header.count) - 1)
    }

    /// Returns whether the texts up to and including message `seq` are inflated. A seq after the
    /// pack counts as the last message; a seq before the pack gives false.
    pub(crate) fn reaches_seq(&self, seq: u64) -> bool {
        let index = self.message_index(seq.min(self.seq_range().1));
        let end = index.and_then(|index| self.ends.get(index));
        end.is_some_and(|end| *end <= self.texts.len())
    }

    /// Estimates the bytes that the opened pack takes in memory.
    pub(crate) fn estimate_memory_bytes(&self) -> usize {
        // A part takes 22 times as many bytes in memory as encoded, an absent span 12 times as
        // many. The estimate takes 16 times for all projections.
        let [columns, _] = self.header.columns.map(|bytes| int::to_usize(u64::from(bytes)));
        self.texts.len() + 16 * columns
    }

    fn message_index(&self, seq: u64) -> Option<usize> {
        seq.checked_sub(self.header.seq_first).map(int::to_usize)
    }

    /// Returns the text of a message; `None`: the text is in chunks, not inflated or not in this
    /// pack.
    pub(crate) fn text(&self, seq: u64) -> Option<&str> {
        let index = self.message_index(seq)?;
        let end = *self.ends.get(index)?;
        let start = end.checked_sub(int::to_usize(u64::from(*self.columns.bytes.get(index)?)))?;
        let text = self.texts.get(start..end)?;
        // No message has an empty text, so an empty range means a text in chunks.
        (!text.is_empty()).then_some(text)
    }

    /// Finds the chunks of a message; `None`: the message has no text in chunks in this pack.
    fn find_chunked_message(&self, seq: u64) -> Option<&ChunkedMessage> {
        let index = int::to_u32(self.message_index(seq)?);
        self.columns.chunked_messages.iter().find(|large| large.index == index)
    }

    /// Finds the placeholder of the message with this index; `None`: the message has no
    /// placeholder.
    fn find_placeholder(&self, index: usize) -> Option<Box<PlaceholderMessage>> {
        let index = int::to_u32(index);
        let entry = self.columns.placeholders.iter().find(|entry| entry.index == index);
        entry.map(|entry| entry.placeholder.clone())
    }

    /// Returns a message with its position; `None`: the pack lacks the message or has not inflated
    /// it.
    pub(crate) fn message(&self, seq: u64) -> Option<PlacedMessage> {
        let index = self.message_index(seq)?;
        let (raw, frontier) = match (self.text(seq), self.find_chunked_message(seq)) {
            (Some(text), None) => (RawText::Inline(text.to_string()), None),
            (None, Some(large)) => {
                let (sha256, chunks) = (large.sha256, large.chunks.to_owned());
                (RawText::Chunked { sha256, chunks }, Some(large.frontier))
            }
            _ => return None,
        };
        let (_, last) = self.seq_range();
        let frontier = if seq == last { Some(self.header.frontiers[1]) } else { frontier };
        let columns = &self.columns;
        let stored = StoredMessage {
            raw,
            derivation_version: *columns.derivation_versions.get(index)?,
            role: *columns.roles.get(index)?,
            time: *self.times.get(index)?,
            tokens: *columns.tokens.get(index)?,
            entry_id: *columns.entry_ids.get(index)?,
            event_key: *columns.event_keys.get(index)?,
            call_key: *columns.call_keys.get(index)?,
            parts: columns.parts.get(index)?.clone(),
            placeholder: self.find_placeholder(index),
        };
        let tokens_before = self.header.tokens_before + self.tokens.get(index)?;
        let dialect = self.dialect();
        Some(PlacedMessage { seq, tokens_before, dialect, stored: Rc::new(stored), frontier })
    }

    /// Returns time and parts of a message; `None`: the message is not in this pack.
    pub(crate) fn time_and_parts(&self, seq: u64) -> Option<(Timestamp, &[Part])> {
        let index = self.message_index(seq)?;
        Some((*self.times.get(index)?, self.columns.parts.get(index)?))
    }

    /// Returns the nearest running hash before message `seq` that this pack stores, with the seq of
    /// the message that the hash follows. This message is a message of the pack whose text is in
    /// chunks, or else the message before the pack.
    pub(crate) fn nearest_frontier_before(&self, seq: u64) -> (u64, [u8; 16]) {
        let first = self.header.seq_first;
        let known = self.columns.chunked_messages.iter().rev().find_map(|large| {
            let at = first + u64::from(large.index);
            (at < seq).then_some((at, large.frontier))
        });
        known.unwrap_or((first - 1, self.header.frontiers[0]))
    }
}
