//! Records of identities, by which ingest recognises stored messages.
//!
//! In: an entry id, an event key, or a call id of a tool result. Out: the seq of the message that
//! has this identity, and a hash of the message's content.

use alloc::{borrow::Cow, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};
use lcm_text::{
    base::{hash, json},
    message::ParsedMessage,
};

/// First 72 bits of the hash of an identity. The key of its record holds the first 66 of them.
pub(crate) type IdentityPrefix = [u8; 9];

/// The kind of an identity; equal texts of two kinds are two identities.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum IdentityKind {
    Entry,
    Event,
    Call,
}

/// An identity to look up: its kind and a hash of its text.
#[derive(Clone, Debug)]
pub(crate) struct IdentityLookup {
    kind: IdentityKind,
    hash: [u8; 32],
}

impl IdentityLookup {
    fn new(kind: IdentityKind, text: &str) -> Self {
        let tag: &[u8] = match kind {
            IdentityKind::Entry => b"entry",
            IdentityKind::Event => b"event",
            IdentityKind::Call => b"call",
        };
        Self { kind, hash: hash::hash_fields(&[b"lcm identity", tag, text.as_bytes()]) }
    }

    /// Computes the identity of an entry id alone, without a message.
    pub(crate) fn from_entry_id(id: &str) -> Self {
        Self::new(IdentityKind::Entry, id)
    }

    /// Computes the identity of an event key alone, without a message.
    pub(crate) fn from_event_key(key: &str) -> Self {
        Self::new(IdentityKind::Event, key)
    }

    /// Computes the identity of a unique call id alone, without a message.
    pub(crate) fn from_call_id(id: &str) -> Self {
        Self::new(IdentityKind::Call, id)
    }

    /// Returns the first 72 bits of the hash. Identities in which these are equal share one record.
    pub(crate) fn key_prefix(&self) -> IdentityPrefix {
        hash::hash_prefix(&self.hash)
    }

    /// Returns whether the identity is a call id, which counts only together with equal content.
    pub(crate) fn is_call(&self) -> bool {
        self.kind == IdentityKind::Call
    }
}

/// Collects the identities of a message: of entry id, event key and unique call id, if present.
pub(crate) fn collect_lookups(raw: &str, message: &ParsedMessage) -> Vec<IdentityLookup> {
    let text = |span| -> Cow<'_, str> { json::text(raw, span) };
    let mut out = Vec::new();
    out.extend(message.entry_id.map(|span| IdentityLookup::new(IdentityKind::Entry, &text(span))));
    out.extend(message.event_key.map(|span| IdentityLookup::new(IdentityKind::Event, &text(span))));
    out.extend(
        message.unique_call_id.map(|span| IdentityLookup::new(IdentityKind::Call, &text(span))),
    );
    out
}

/// Hashes by which a message is compared with the stored message that has one of its identities.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityContent {
    /// Hash of what the message says and of its call ids, as in its mark.
    pub(crate) said: [u8; 8],
    /// Content identity of the message, by which messages with the same call id are compared. The
    /// hash `said` is unsuitable for them, because it changes with the rules that compute it.
    pub(crate) content: [u8; 16],
}

impl IdentityContent {
    fn hash_for(&self, lookup: &IdentityLookup) -> [u8; 8] {
        if lookup.is_call() { hash::hash_prefix(&self.content) } else { self.said }
    }
}

/// The stored record of an identity: the newest message that has the identity.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StoredIdentity {
    pub(crate) seq: u64,
    /// Bits of the hash that the key does not hold, so that a crafted id cannot hide a message.
    hash_check: [u8; 8],
    /// For a call id, the first 64 bits of the content identity; else [`IdentityContent::said`].
    content_hash: [u8; 8],
}

impl SoundRecord for StoredIdentity {
    fn is_sound(&self) -> bool {
        codec::are_countable(&[self.seq])
    }
}

impl StoredIdentity {
    /// Creates the record of an identity of the message at `seq`.
    pub(crate) fn new(seq: u64, lookup: &IdentityLookup, content: &IdentityContent) -> Self {
        let content_hash = content.hash_for(lookup);
        Self { seq, hash_check: compute_hash_check(lookup), content_hash }
    }

    /// Returns the key of the record of an identity.
    pub(crate) fn key(keys: &ConversationKeys, lookup: &IdentityLookup) -> RecordKey<Self> {
        RecordKey::new(keys.identity_key(&lookup.hash))
    }

    /// Returns whether the record is of this identity and not of another with the same key.
    pub(crate) fn matches_lookup(&self, lookup: &IdentityLookup) -> bool {
        self.hash_check == compute_hash_check(lookup)
    }

    /// Returns whether the message of the record has the content of the message with `lookup`.
    pub(crate) fn has_content(&self, lookup: &IdentityLookup, content: &IdentityContent) -> bool {
        self.content_hash == content.hash_for(lookup)
    }
}

fn compute_hash_check(lookup: &IdentityLookup) -> [u8; 8] {
    hash::hash_prefix(lookup.hash.get(16..).unwrap_or(&[]))
}
