//! Which messages are stored already: by id, by event, by call, by alignment.
//!
//! An id or event key of the host is authoritative. A call id counts only together with equal
//! content, because providers re-use short ones. Content alone counts only inside an alignment with
//! the newest stored messages that has at least one discriminating message in it: users do say "ok"
//! twice.

use alloc::{borrow::Cow, format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    history::MessageHistory,
    pack::RawText,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, json, sort::SortedMap},
    config::Config,
    message::{ParsedMessage, Role},
};

use super::{AppendDecision, batch::AppendCandidate, redaction::RedactedCopy};

/// The part of an identity's hash that its key holds; shorter to compare than the key.
pub(crate) type IdentityPrefix = [u8; 9];

/// What is known at each place that a batch asks for.
pub(super) type KnownIdentities = SortedMap<IdentityPrefix, Option<StoredIdentity>>;

/// What kind of identity a key stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum IdentityKind {
    Entry,
    Event,
    Call,
}

/// One identity of a message, as it is looked up.
#[derive(Clone, Debug)]
pub(crate) struct IdentityLookup {
    kind: IdentityKind,
    pub(crate) hash: [u8; 32],
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

    /// The identity of an entry id that is known without its message.
    pub(crate) fn from_entry_id(id: &str) -> Self {
        Self::new(IdentityKind::Entry, id)
    }

    /// The identity of an event key that is known without its message.
    pub(crate) fn from_event_key(key: &str) -> Self {
        Self::new(IdentityKind::Event, key)
    }

    /// What of the hash stands in the key: two with an equal place have one record.
    pub(crate) fn key_prefix(&self) -> IdentityPrefix {
        hash::hash_prefix(&self.hash)
    }

    /// Whether it is the id of a tool call, which proves nothing by itself.
    pub(crate) fn is_call(&self) -> bool {
        self.kind == IdentityKind::Call
    }
}

/// All identities of a message.
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

/// The stored record of an identity.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StoredIdentity {
    pub(crate) seq: u64,
    /// More of the hash than the key holds, so that a crafted key cannot hide a message.
    hash_check: [u8; 8],
    /// Of a call id, which counts only together with equal content: the content identity.
    content_hash: Option<[u8; 8]>,
}

impl SoundRecord for StoredIdentity {
    fn is_sound(&self) -> bool {
        codec::are_countable(&[self.seq])
    }
}

impl StoredIdentity {
    /// The record for a message at `seq`.
    pub(crate) fn new(seq: u64, lookup: &IdentityLookup, message: &ParsedMessage) -> Self {
        let content = lookup.is_call().then(|| hash::hash_prefix(&message.identity));
        Self { seq, hash_check: compute_hash_check(lookup), content_hash: content }
    }

    /// Whether the record is of this identity and not of one with an equal key.
    pub(crate) fn matches_lookup(&self, lookup: &IdentityLookup) -> bool {
        self.hash_check == compute_hash_check(lookup)
    }
}

fn compute_hash_check(lookup: &IdentityLookup) -> [u8; 8] {
    hash::hash_prefix(lookup.hash.get(16..).unwrap_or(&[]))
}

/// What the identities of a message say.
pub(super) enum IdentityMatch {
    /// It is stored, as this message.
    Stored { seq: u64 },
    /// It is not; `call_key`: its call id may stand for it.
    New { call_key: bool },
}

/// Judges a message by its identities alone.
pub(super) fn match_identities(
    lookups: &[IdentityLookup],
    message: &ParsedMessage,
    known: &KnownIdentities,
) -> IdentityMatch {
    let mut call_key = true;
    for lookup in lookups {
        let record = known.get(&lookup.key_prefix()).and_then(Option::as_ref);
        let Some(record) = record.filter(|record| record.matches_lookup(lookup)) else { continue };
        if !lookup.is_call() {
            return IdentityMatch::Stored { seq: record.seq };
        }
        // An id of the host says that it is another message, whatever its call id says.
        let identified = lookups.iter().any(|lookup| !lookup.is_call());
        if record.content_hash == Some(hash::hash_prefix(&message.identity)) && !identified {
            return IdentityMatch::Stored { seq: record.seq };
        }
        call_key = false;
    }
    IdentityMatch::New { call_key }
}

/// Messages known by id or discriminating that a run must hold which does not end where the stored
/// messages end: a single message may well be said again.
pub(super) const INSIDE_ANCHORS_MIN: usize = 2;

/// One entry of a batch or transcript, as it is compared with stored messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlignableEntry {
    pub(super) hash: [u8; 16],
    /// Where the message stands already, by an id of its own.
    pub(super) seq: Option<u64>,
    /// Whether equal content is evidence of being the same message.
    pub(super) is_discriminating: bool,
    /// What it says of the text that it may be a redacted copy of.
    pub(super) redacted_copy: Option<RedactedCopy>,
}

impl AlignableEntry {
    /// Whether a stored message with this hash in the head is the same.
    pub(super) fn matches_hash(&self, hash: &[u8; 12]) -> bool {
        self.hash.starts_with(hash)
    }

    /// Whether a stored message of this text may be the one that it is a redacted copy of.
    pub(super) fn may_be_copy_of(&self, text: &str) -> bool {
        self.redacted_copy.is_some_and(|copy| copy.may_be_copy_of(text))
    }
}

/// The newest stored messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestMessages<'a> {
    pub(super) hashes: &'a [[u8; 12]],
    /// Texts of the newest of them, oldest first; none where nothing can be a redacted copy.
    pub(super) texts: &'a [String],
    /// Seq of the newest.
    pub(super) seq_last: u64,
}

impl NewestMessages<'_> {
    /// How many of `entries`, from the last on, are the newest messages in their order, and how
    /// many of those are anchors: known by id, or equal and discriminating. There are at most as
    /// many entries as hashes.
    pub(super) fn match_suffix(&self, entries: &[AlignableEntry]) -> (usize, usize) {
        let mut texts = self.texts.iter().rev();
        let (mut length, mut anchors) = (0, 0);
        for ((entry, hash), seq) in
            entries.iter().rev().zip(self.hashes.iter().rev()).zip((1..=self.seq_last).rev())
        {
            let text = texts.next();
            if entry.matches_hash(hash) || entry.seq == Some(seq) {
                anchors += usize::from(entry.is_discriminating || entry.seq.is_some());
            } else if !text.is_some_and(|text| entry.may_be_copy_of(text)) {
                break;
            }
            length += 1;
        }
        (length, anchors)
    }
}

/// Texts of the newest stored messages, at most `count` of them, oldest first; empty: too large.
///
/// # Errors
///
/// Of the store.
pub(super) fn read_newest_texts(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    count: usize,
) -> Result<Vec<String>> {
    let last = history.head.messages;
    let count = count.min(history.head.recent_hashes.len());
    let mut texts = Vec::with_capacity(count);
    for placed in history.read_messages(reader, last + 1 - int::to_u64(count), last)? {
        texts.push(match &placed.stored.raw {
            RawText::Inline(text) => text.clone(),
            RawText::Chunked { .. } => String::new(),
        });
    }
    Ok(texts)
}

/// How many entries at the beginning are the newest stored messages: the longest such run that has
/// an anchor in it.
///
/// An equal run further back proves nothing: people and programs do say the same thing again.
pub(super) fn count_aligned_prefix(
    newest: &NewestMessages<'_>,
    entries: &[AlignableEntry],
) -> usize {
    let is_whole = |count: &usize| {
        let run = entries.get(..*count).unwrap_or(&[]);
        let (length, anchors) = newest.match_suffix(run);
        length == *count && anchors > 0
    };
    (1..=entries.len().min(newest.hashes.len())).rev().find(is_whole).unwrap_or(0)
}

/// How many messages of users, and of others, must equal stored ones to be a likely replay. Users
/// rarely say the same thing again; tools and models do so all the time.
pub(super) fn replay_thresholds(config: &Config) -> (u32, u32) {
    let (users, others) =
        (config.replay_flood_threshold_external, config.replay_flood_threshold_internal);
    (users.max(1), others.max(1))
}

/// Warns when many new messages equal stored ones.
pub(super) fn add_replay_warnings(
    config: &Config,
    candidates: &[AppendCandidate<'_>],
    decided: &mut AppendDecision,
) {
    let of = |user: bool| -> Vec<u64> {
        let fits = |index: &usize| {
            candidates
                .get(*index)
                .is_some_and(|candidate| (candidate.message.role == Role::User) == user)
        };
        decided.duplicates.iter().filter(|(index, _)| fits(index)).map(|(_, seq)| *seq).collect()
    };
    let (users, others) = replay_thresholds(config);
    for (seqs, least) in [(of(true), users), (of(false), others)] {
        let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { continue };
        if int::to_u32(seqs.len()) >= least {
            let count = seqs.len();
            decided.is_likely_replay = true;
            decided.warnings.push(format!(
                "possible-replay: {count} messages of {first} to {last} equal stored ones"
            ));
        }
    }
}
