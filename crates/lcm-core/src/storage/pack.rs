//! Packs: immutable records of consecutive messages that one commit stored, and references to them.
//!
//! Ingest writes packs, and [`crate::storage::history`] reads them. A pack holds the raw text of
//! each message with the fields derived from the text. A text over 64 KiB is stored in chunks, to
//! which the pack refers. The directory maps seqs to packs. Compressed packs
//! ([`crate::storage::compressed_pack`]) replace the packs of compacted messages.

use alloc::{boxed::Box, rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys,
};
use lcm_text::{
    base::{json::ByteSpan, limits},
    message::{ParsedMessage, Part, Role},
    types::api::{Dialect, Timestamp},
};

/// The raw text of a message, or the reference to its chunks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum RawText {
    /// The text, in the pack.
    Inline(String),
    /// The chunks of a large text.
    Chunked {
        /// SHA-256 of the text, which is part of the keys of the chunks.
        sha256: [u8; 32],
        /// Length of each chunk in bytes, in order.
        chunks: Vec<u32>,
    },
}

impl RawText {
    /// Returns the length of the raw text in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Inline(text) => lcm_text::base::int::to_u64(text.len()),
            Self::Chunked { chunks, .. } => chunks.iter().map(|bytes| u64::from(*bytes)).sum(),
        }
    }
}

/// The placeholder that contexts and summaries render for a message with large payloads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PlaceholderMessage {
    /// Text of the placeholder, which is a message of the same dialect.
    pub(crate) raw: RawText,
    pub(crate) parts: Vec<Part>,
    /// Tokens of the whole message, payloads included.
    pub(crate) message_tokens: u32,
    /// Least tokens with which a payload counted as large when the placeholder was built. A check
    /// derives the placeholder anew with this number.
    pub(crate) payload_tokens_min: u32,
}

/// One stored message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StoredMessage {
    pub(crate) raw: RawText,
    /// Version of the rules that derived role, tokens, call key, parts and placeholder; see
    /// [`lcm_text::base::derivation_version`].
    pub(crate) derivation_version: u32,
    pub(crate) role: Role,
    /// Time that the message gives, or else the time of the call that stored it.
    pub(crate) time: Timestamp,
    /// Tokens of the message in a context: of the placeholder, if there is one, else of the
    /// message.
    pub(crate) tokens: u32,
    /// Span of the host's entry id in the raw text; `None`: the message has none.
    pub(crate) entry_id: Option<ByteSpan>,
    /// Span of the host's event key in the raw text; `None`: the message has none.
    pub(crate) event_key: Option<ByteSpan>,
    /// Span of the call id by which the message is recognised; `None`: the message is not exactly
    /// one tool result, or its call id is no identity.
    pub(crate) call_key: Option<ByteSpan>,
    pub(crate) parts: Vec<Part>,
    /// The placeholder that contexts render; `None`: contexts render the message itself.
    pub(crate) placeholder: Option<Box<PlaceholderMessage>>,
}

impl StoredMessage {
    /// Returns the text and parts that contexts and summaries render: those of the placeholder if
    /// the message has a placeholder, else those of the message.
    pub(crate) fn rendered_content(&self) -> (&RawText, &[Part]) {
        match &self.placeholder {
            Some(placeholder) => (&placeholder.raw, &placeholder.parts),
            None => (&self.raw, &self.parts),
        }
    }

    /// Returns the tokens of the whole message, payloads included.
    pub(crate) fn message_tokens(&self) -> u32 {
        self.placeholder.as_ref().map_or(self.tokens, |placeholder| placeholder.message_tokens)
    }
}

/// A stored message with its position in the conversation.
#[derive(Clone, Debug)]
pub(crate) struct PlacedMessage {
    pub(crate) seq: u64,
    /// Tokens of all earlier messages of the conversation.
    pub(crate) tokens_before: u64,
    /// Dialect of the raw text.
    pub(crate) dialect: Dialect,
    pub(crate) stored: Rc<StoredMessage>,
    /// Running hash after the message; `None`: the hash is not stored and must be computed with
    /// [`crate::storage::history::MessageHistory::frontier_of_message`].
    pub(crate) frontier: Option<[u8; 16]>,
}

/// The record of a pack.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Pack {
    pub(crate) seq_first: u64,
    /// Dialect of the messages.
    pub(crate) dialect: Dialect,
    /// Tokens of all messages before the pack.
    pub(crate) tokens_before: u64,
    /// The messages; shared, so that a reader can keep a message after the pack is dropped.
    pub(crate) messages: Vec<Rc<StoredMessage>>,
    /// Running hash of the conversation after each message of the pack.
    pub(crate) frontiers: Vec<[u8; 16]>,
}

impl Pack {
    /// Returns the first bytes of the running hash after the last message, as a [`PackRef`] has
    /// them.
    pub(crate) fn frontier_prefix(&self) -> [u8; 4] {
        self.frontiers.last().map(|last| hash::hash_prefix(last)).unwrap_or_default()
    }

    /// Returns the reference to this pack; `bytes` is the size of its encoded value.
    pub(crate) fn to_pack_ref(&self, bytes: u32) -> PackRef {
        PackRef {
            seq_first: self.seq_first,
            count: lcm_text::base::int::to_u32(self.messages.len()),
            bytes,
            tokens: self.tokens(),
            frontier_prefix: self.frontier_prefix(),
            is_compressed: false,
        }
    }

    /// Returns the tokens of the messages.
    pub(crate) fn tokens(&self) -> u64 {
        self.messages.iter().map(|message| u64::from(message.tokens)).sum()
    }
}

/// A reference to a pack, as in the head and the directory.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "StoredRef", into = "StoredRef")]
pub(crate) struct PackRef {
    pub(crate) seq_first: u64,
    pub(crate) count: u32,
    /// Size of the pack's encoded value in bytes.
    pub(crate) bytes: u32,
    pub(crate) tokens: u64,
    /// First bytes of the running hash after the last message. They detect another pack under the
    /// same key, for example after the restore of a backup.
    pub(crate) frontier_prefix: [u8; 4],
    /// Whether the reference leads to a compressed pack.
    pub(crate) is_compressed: bool,
}

/// [`PackRef`] as it is stored.
#[derive(Deserialize, Serialize)]
struct StoredRef {
    seq_first: u64,
    /// Twice the number of messages after the first, plus 1 for a compressed pack. A pack in a head
    /// is not compressed and has at most 64 messages, so its number is encoded in one byte.
    kind: u32,
    bytes: u32,
    tokens: u64,
    frontier_prefix: [u8; 4],
}

impl From<StoredRef> for PackRef {
    fn from(stored: StoredRef) -> Self {
        let StoredRef { seq_first, kind, bytes, tokens, frontier_prefix } = stored;
        Self {
            seq_first,
            count: kind / 2 + 1,
            bytes,
            tokens,
            frontier_prefix,
            is_compressed: kind % 2 == 1,
        }
    }
}

impl From<PackRef> for StoredRef {
    fn from(place: PackRef) -> Self {
        let PackRef { seq_first, count, bytes, tokens, frontier_prefix, is_compressed } = place;
        // A pack has at most 1,024 messages, so the number does not saturate.
        let kind = count.saturating_sub(1).saturating_mul(2) | u32::from(is_compressed);
        Self { seq_first, kind, bytes, tokens, frontier_prefix }
    }
}

impl SoundRecord for PackRef {
    fn is_sound(&self) -> bool {
        self.seq_first > 0
            && self.count > 0
            && codec::are_countable(&[self.seq_first, u64::from(self.count), self.tokens])
    }
}

impl SoundRecord for DirectoryNode {
    fn is_sound(&self) -> bool {
        self.packs.iter().all(SoundRecord::is_sound)
    }
}

impl SoundRecord for Pack {
    fn is_sound(&self) -> bool {
        let bounded = |message: &Rc<StoredMessage>| {
            message.raw.bytes().max(message.rendered_content().0.bytes())
                <= limits::MESSAGE_BYTES_MAX
        };
        self.seq_first > 0
            && codec::are_countable(&[self.seq_first, self.tokens_before])
            && self.messages.len() == self.frontiers.len()
            && self.messages.iter().all(bounded)
    }
}

impl PackRef {
    /// Returns the key of the pack that the reference leads to.
    pub(crate) fn key(&self, keys: &keys::ConversationKeys) -> String {
        if self.is_compressed {
            keys.compressed_pack_key(self.seq_first)
        } else {
            keys.pack_key(self.seq_first)
        }
    }

    /// Returns the seq of the last message of the pack.
    pub(crate) fn seq_last(&self) -> u64 {
        self.seq_first + u64::from(self.count) - 1
    }
}

/// A directory node: references to the packs in one span of 1,024 seqs, without the packs that the
/// head lists. No pack crosses the end of a span.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct DirectoryNode {
    pub(crate) packs: Vec<PackRef>,
}

/// Hashes content identity, entry id and event key of a message. The running hash and the newest
/// hashes in the head are made of these hashes.
pub(crate) fn message_hash(raw: &str, message: &ParsedMessage) -> [u8; 16] {
    let id = message.entry_id.map(|span| lcm_text::base::json::text(raw, span));
    let event = message.event_key.map(|span| lcm_text::base::json::text(raw, span));
    let digest = hash::hash_fields(&[
        b"lcm message",
        &message.identity,
        &[u8::from(id.is_some())],
        id.as_deref().unwrap_or("").as_bytes(),
        &[u8::from(event.is_some())],
        event.as_deref().unwrap_or("").as_bytes(),
    ]);
    hash::hash_prefix(&digest)
}

/// Returns the running hash after a message: `frontier` is the one before, `hash` the message's
/// hash.
pub(crate) fn advance_frontier(frontier: &[u8; 16], hash: &[u8; 16]) -> [u8; 16] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm frontier", frontier, hash]))
}
