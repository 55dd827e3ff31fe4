//! Packs: the stored messages of one commit, immutable.
//!
//! A pack holds raw texts with their projections. A text over 64 KiB is stored in chunks, to which
//! the pack refers. The directory maps seqs to packs. Compressed packs replace the packs of
//! compacted messages ([`crate::storage::compressed_pack`]).

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
    /// Text of the placeholder, a message of the same dialect.
    pub(crate) raw: RawText,
    pub(crate) parts: Vec<Part>,
    /// Tokens of the whole message, payloads included.
    pub(crate) message_tokens: u32,
    /// Least tokens of a large payload when the placeholder was built; a check derives the
    /// placeholder anew with this number.
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
    /// Time of the message, or else the effective time of its commit.
    pub(crate) time: Timestamp,
    /// Tokens of the message in a context, which renders its placeholder if it has one.
    pub(crate) tokens: u32,
    pub(crate) entry_id: Option<ByteSpan>,
    pub(crate) event_key: Option<ByteSpan>,
    /// Call id of the only tool result, if the call id is an identity of the message.
    pub(crate) call_key: Option<ByteSpan>,
    pub(crate) parts: Vec<Part>,
    /// The rendered placeholder; `None`: the message has no large payload.
    pub(crate) placeholder: Option<Box<PlaceholderMessage>>,
}

impl StoredMessage {
    /// Returns text and parts that contexts and summaries render: of the placeholder, if there is
    /// one.
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
    /// Tokens of all earlier messages.
    pub(crate) tokens_before: u64,
    /// Format of the raw text.
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
    /// Format of the messages.
    pub(crate) dialect: Dialect,
    /// Tokens of all messages before the pack.
    pub(crate) tokens_before: u64,
    /// The messages; shared, because a reader of a few long texts may outlive the pack.
    pub(crate) messages: Vec<Rc<StoredMessage>>,
    /// Running hash of the sequence after each message.
    pub(crate) frontiers: Vec<[u8; 16]>,
}

impl Pack {
    /// Returns the first bytes of the last running hash, which the reference repeats.
    pub(crate) fn frontier_prefix(&self) -> [u8; 4] {
        self.frontiers.last().map(|last| hash::hash_prefix(last)).unwrap_or_default()
    }

    /// Returns the reference to the pack, whose value has `bytes` bytes.
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
    /// Bytes of the pack's value.
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
    /// Twice the number of messages after the first, plus 1 for a compressed pack: one byte for any
    /// pack in a head.
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
        // A pack has at most as many messages as a directory node covers.
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
    /// Returns the key of the pack.
    pub(crate) fn key(&self, keys: &keys::ConversationKeys) -> String {
        if self.is_compressed {
            keys.compressed_pack_key(self.seq_first)
        } else {
            keys.pack_key(self.seq_first)
        }
    }

    /// Returns the seq of the last message.
    pub(crate) fn seq_last(&self) -> u64 {
        self.seq_first + u64::from(self.count) - 1
    }
}

/// A directory node: references to the packs in one span of 1,024 seqs. No pack crosses the end of
/// a span.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct DirectoryNode {
    pub(crate) packs: Vec<PackRef>,
}

/// Hashes the content and the ids of a message, for the running hash, the newest hashes of the head
/// and `identify`.
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

/// Returns the running hash after a message with this hash.
pub(crate) fn advance_frontier(frontier: &[u8; 16], hash: &[u8; 16]) -> [u8; 16] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm frontier", frontier, hash]))
}
