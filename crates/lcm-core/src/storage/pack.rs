//! Packs: the stored messages of one commit, written once and never changed.
//!
//! A pack holds raw texts with their projections. A text over 64 KiB stands in chunks instead, and
//! the pack refers to it. The directory tells where the packs are, by seq. Packs whose messages
//! were compacted are replaced by sealed ones ([`crate::storage::compressed_pack`]).

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

/// Where the raw text of a message stands.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum RawText {
    /// In the pack.
    Inline(String),
    /// In chunks.
    Chunked {
        /// SHA-256 of the text, which names the chunks.
        sha256: [u8; 32],
        /// Length of each chunk in bytes, in order.
        chunks: Vec<u32>,
    },
}

impl RawText {
    /// Length of the raw text in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Inline(text) => lcm_text::base::int::to_u64(text.len()),
            Self::Chunked { chunks, .. } => chunks.iter().map(|bytes| u64::from(*bytes)).sum(),
        }
    }
}

/// What is rendered in place of a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PlaceholderMessage {
    /// Its text, a message of the same dialect.
    pub(crate) raw: RawText,
    pub(crate) parts: Vec<Part>,
    /// What the message itself would cost.
    pub(crate) message_tokens: u32,
    /// Tokens from which on a payload was one; with it the stand-in can be made again.
    pub(crate) payload_tokens_min: u32,
}

/// One stored message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StoredMessage {
    pub(crate) raw: RawText,
    /// Version of the rules that derived role, tokens, call key, parts and placeholder, see
    /// [`lcm_text::base::derivation_version`].
    pub(crate) derivation_version: u32,
    pub(crate) role: Role,
    /// The message's own time, else the effective time of its commit.
    pub(crate) time: Timestamp,
    /// What it costs in a context: its stand-in's tokens, if it has one.
    pub(crate) tokens: u32,
    pub(crate) entry_id: Option<ByteSpan>,
    pub(crate) event_key: Option<ByteSpan>,
    /// Set when the call id of this one tool result is an identity of the message.
    pub(crate) call_key: Option<ByteSpan>,
    pub(crate) parts: Vec<Part>,
    /// What is rendered in its place; `None`: it has no large payload.
    pub(crate) placeholder: Option<Box<PlaceholderMessage>>,
}

impl StoredMessage {
    /// Text and parts as a context and a summary show them.
    pub(crate) fn rendered_content(&self) -> (&RawText, &[Part]) {
        match &self.placeholder {
            Some(stand_in) => (&stand_in.raw, &stand_in.parts),
            None => (&self.raw, &self.parts),
        }
    }

    /// Tokens of the whole message, payloads included.
    pub(crate) fn message_tokens(&self) -> u32 {
        self.placeholder.as_ref().map_or(self.tokens, |stand_in| stand_in.message_tokens)
    }
}

/// A stored message with its place.
#[derive(Clone, Debug)]
pub(crate) struct PlacedMessage {
    pub(crate) seq: u64,
    /// Tokens of all messages before it.
    pub(crate) tokens_before: u64,
    /// The shape of its text.
    pub(crate) dialect: Dialect,
    pub(crate) stored: Rc<StoredMessage>,
    /// Running hash up to and with it; `None`: it is not stored and has to be made,
    /// see [`crate::storage::history::History::frontier`].
    pub(crate) frontier: Option<[u8; 16]>,
}

/// A pack.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Pack {
    pub(crate) seq_first: u64,
    /// The shape of its messages.
    pub(crate) dialect: Dialect,
    /// Tokens of all messages before the first one.
    pub(crate) tokens_before: u64,
    /// Shared, because who reads some of them outlives the pack, and their texts are long.
    pub(crate) messages: Vec<Rc<StoredMessage>>,
    /// Running hash of the sequence up to and with each message.
    pub(crate) frontiers: Vec<[u8; 16]>,
}

impl Pack {
    /// What its reference repeats of it.
    pub(crate) fn frontier_prefix(&self) -> [u8; 4] {
        self.frontiers.last().map(|last| hash::hash_prefix(last)).unwrap_or_default()
    }

    /// The reference to it, when its value has so many bytes.
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

    /// Tokens of its messages.
    pub(crate) fn tokens(&self) -> u64 {
        self.messages.iter().map(|message| u64::from(message.tokens)).sum()
    }
}

/// What the directory says of one pack.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "StoredRef", into = "StoredRef")]
pub(crate) struct PackRef {
    pub(crate) seq_first: u64,
    pub(crate) count: u32,
    /// Size of the pack's value.
    pub(crate) bytes: u32,
    pub(crate) tokens: u64,
    /// Beginning of the running hash after its last message: the pack is this one and not another
    /// at the same place, as after the restore of a backup.
    pub(crate) frontier_prefix: [u8; 4],
    /// Whether it is a sealed pack.
    pub(crate) is_compressed: bool,
}

/// [`PackRef`] as it is stored.
#[derive(Deserialize, Serialize)]
struct StoredRef {
    seq_first: u64,
    /// Twice the messages behind the first, and one more for a sealed pack: one byte for any pack
    /// that a head lists.
    kind: u32,
    bytes: u32,
    tokens: u64,
    frontier_prefix: [u8; 4],
}

impl From<StoredRef> for PackRef {
    fn from(stored: StoredRef) -> Self {
        let StoredRef { seq_first, kind, bytes, tokens, frontier_prefix: check } = stored;
        Self {
            seq_first,
            count: kind / 2 + 1,
            bytes,
            tokens,
            frontier_prefix: check,
            is_compressed: kind % 2 == 1,
        }
    }
}

impl From<PackRef> for StoredRef {
    fn from(place: PackRef) -> Self {
        let PackRef {
            seq_first,
            count,
            bytes,
            tokens,
            frontier_prefix: check,
            is_compressed: sealed,
        } = place;
        // A pack has at most as many messages as a directory node covers.
        let kind = count.saturating_sub(1).saturating_mul(2) | u32::from(sealed);
        Self { seq_first, kind, bytes, tokens, frontier_prefix: check }
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
    /// The key that it stands under.
    pub(crate) fn key(&self, keys: &keys::ConversationKeys) -> String {
        if self.is_compressed {
            keys.compressed_pack_key(self.seq_first)
        } else {
            keys.pack_key(self.seq_first)
        }
    }

    /// Seq of its last message.
    pub(crate) fn seq_last(&self) -> u64 {
        self.seq_first + u64::from(self.count) - 1
    }
}

/// A directory node: the packs that begin in one span of 1,024 seqs. Packs never straddle one.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct DirectoryNode {
    pub(crate) packs: Vec<PackRef>,
}

/// Hash of a message as the frontier, the ring and `identify` count it: content and ids.
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

/// The frontier after a message with this hash.
pub(crate) fn advance_frontier(frontier: &[u8; 16], hash: &[u8; 16]) -> [u8; 16] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm frontier", frontier, hash]))
}
