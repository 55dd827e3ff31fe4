//! Packs: the stored messages of one commit, written once and never changed.
//!
//! A pack holds raw texts with their projections. A text over 64 KiB stands in chunks instead, and
//! the pack refers to it. The directory tells where the packs are, by seq. Packs whose messages
//! were compacted are replaced by sealed ones ([`crate::storage::compressed_pack`]).

use alloc::{boxed::Box, rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    keys,
};
use lcm_text::{
    base::{json::Span, limits},
    message::{Message, Part, Role},
    types::api::{Dialect, Timestamp},
};

/// Where the raw text of a message stands.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Raw {
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

impl Raw {
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
pub(crate) struct StandIn {
    /// Its text, a message of the same dialect.
    pub(crate) raw: Raw,
    pub(crate) parts: Vec<Part>,
    /// What the message itself would cost.
    pub(crate) message_tokens: u32,
    /// Tokens from which on a payload was one; with it the stand-in can be made again.
    pub(crate) payload_tokens_min: u32,
}

/// One stored message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Stored {
    pub(crate) raw: Raw,
    /// The [`lcm_text::base::derivation_version::RULES`] by which role, tokens, call key, parts and stand-in were made.
    pub(crate) rules: u32,
    pub(crate) role: Role,
    /// The message's own time, else the effective time of its commit.
    pub(crate) time: Timestamp,
    /// What it costs in a context: its stand-in's tokens, if it has one.
    pub(crate) tokens: u32,
    pub(crate) entry_id: Option<Span>,
    pub(crate) event_key: Option<Span>,
    /// Set when the call id of this one tool result is an identity of the message.
    pub(crate) call_key: Option<Span>,
    pub(crate) parts: Vec<Part>,
    /// What is rendered in its place; `None`: it has no large payload.
    pub(crate) stand_in: Option<Box<StandIn>>,
}

impl Stored {
    /// Text and parts as a context and a summary show them.
    pub(crate) fn shown(&self) -> (&Raw, &[Part]) {
        match &self.stand_in {
            Some(stand_in) => (&stand_in.raw, &stand_in.parts),
            None => (&self.raw, &self.parts),
        }
    }

    /// Tokens of the whole message, payloads included.
    pub(crate) fn message_tokens(&self) -> u32 {
        self.stand_in.as_ref().map_or(self.tokens, |stand_in| stand_in.message_tokens)
    }
}

/// A stored message with its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) seq: u64,
    /// Tokens of all messages before it.
    pub(crate) tokens_before: u64,
    /// The shape of its text.
    pub(crate) dialect: Dialect,
    pub(crate) stored: Rc<Stored>,
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
    pub(crate) messages: Vec<Rc<Stored>>,
    /// Running hash of the sequence up to and with each message.
    pub(crate) frontiers: Vec<[u8; 16]>,
}

impl Pack {
    /// What its reference repeats of it.
    pub(crate) fn check(&self) -> [u8; 4] {
        self.frontiers.last().map(|last| hash::prefix(last)).unwrap_or_default()
    }

    /// The reference to it, when its value has so many bytes.
    pub(crate) fn place(&self, bytes: u32) -> PackRef {
        PackRef {
            seq_first: self.seq_first,
            count: lcm_text::base::int::to_u32(self.messages.len()),
            bytes,
            tokens: self.tokens(),
            check: self.check(),
            sealed: false,
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
    pub(crate) check: [u8; 4],
    /// Whether it is a sealed pack.
    pub(crate) sealed: bool,
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
    check: [u8; 4],
}

impl From<StoredRef> for PackRef {
    fn from(stored: StoredRef) -> Self {
        let StoredRef { seq_first, kind, bytes, tokens, check } = stored;
        Self { seq_first, count: kind / 2 + 1, bytes, tokens, check, sealed: kind % 2 == 1 }
    }
}

impl From<PackRef> for StoredRef {
    fn from(place: PackRef) -> Self {
        let PackRef { seq_first, count, bytes, tokens, check, sealed } = place;
        // A pack has at most as many messages as a directory node covers.
        let kind = count.saturating_sub(1).saturating_mul(2) | u32::from(sealed);
        Self { seq_first, kind, bytes, tokens, check }
    }
}

impl Sound for PackRef {
    fn is_sound(&self) -> bool {
        self.seq_first > 0
            && self.count > 0
            && codec::countable(&[self.seq_first, u64::from(self.count), self.tokens])
    }
}

impl Sound for DirectoryNode {
    fn is_sound(&self) -> bool {
        self.packs.iter().all(Sound::is_sound)
    }
}

impl Sound for Pack {
    fn is_sound(&self) -> bool {
        let bounded = |message: &Rc<Stored>| {
            message.raw.bytes().max(message.shown().0.bytes()) <= limits::MESSAGE_BYTES_MAX
        };
        self.seq_first > 0
            && codec::countable(&[self.seq_first, self.tokens_before])
            && self.messages.len() == self.frontiers.len()
            && self.messages.iter().all(bounded)
    }
}

impl PackRef {
    /// The key that it stands under.
    pub(crate) fn key(&self, keys: &keys::Keys) -> String {
        if self.sealed { keys.sealed(self.seq_first) } else { keys.pack(self.seq_first) }
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
pub(crate) fn message_hash(raw: &str, message: &Message) -> [u8; 16] {
    let id = message.entry_id.map(|span| lcm_text::base::json::text(raw, span));
    let event = message.event_key.map(|span| lcm_text::base::json::text(raw, span));
    let digest = hash::hash(&[
        b"lcm message",
        &message.identity,
        &[u8::from(id.is_some())],
        id.as_deref().unwrap_or("").as_bytes(),
        &[u8::from(event.is_some())],
        event.as_deref().unwrap_or("").as_bytes(),
    ]);
    hash::prefix(&digest)
}

/// The frontier after a message with this hash.
pub(crate) fn advance(frontier: &[u8; 16], hash: &[u8; 16]) -> [u8; 16] {
    hash::prefix(&hash::hash(&[b"lcm frontier", frontier, hash]))
}
