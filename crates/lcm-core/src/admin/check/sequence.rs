//! Check of the message sequence: packs, directory, texts, hashes, counts and identities.
//!
//! In: the history of a conversation. Out: findings in the report, and the number of messages that
//! another derivation version stored.

use alloc::{format, string::String, vec::Vec};
use core::cmp::Ordering;

use sha2::{Digest, Sha256};

use crate::storage::{
    codec,
    compressed_pack::CompressedPack,
    head::ConversationHead,
    history::{self, MessageHistory},
    keys::ConversationKeys,
    message_mark::MessageMark,
    pack::{self, Pack, PackRef, PlacedMessage, RawText, StoredMessage},
    record_key::RecordKey,
    records::{
        identity::{IdentityLookup, StoredIdentity, collect_lookups},
        withdrawals::{WithdrawalReason, Withdrawals},
    },
    store_session::StoreSession,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result, int, json, limits},
    message::{self, ParsedMessage, meaning::MEANING_VERSION},
    types::api::Dialect,
};

use super::{CheckReport, payloads};

/// Totals over the messages checked so far.
#[derive(Debug, Default)]
struct RunningTotals {
    seq: u64,
    bytes: u64,
    tokens: u64,
    frontier: [u8; 16],
    newest_user_seq: Option<u64>,
    /// Marks of the newest messages.
    marks: Vec<MessageMark>,
    /// The messages that were set aside or are other forms of messages.
    withdrawals: Withdrawals,
    other_versions: OtherVersionCounts,
}

/// Numbers of messages that an older and a newer derivation version stored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherVersionCounts {
    pub(super) older: u64,
    pub(super) newer: u64,
}

/// Checks every message, and the totals of the head; returns the numbers of messages of other
/// derivation versions.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn check(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    report: &mut CheckReport,
) -> Result<OtherVersionCounts> {
    let head = history.head;
    report.begin_check("messages");
    let record = session.read_record(&Withdrawals::key(history.keys));
    let withdrawals = report.catch_damage(record)?.flatten().unwrap_or_default();
    let mut running = RunningTotals { withdrawals, ..RunningTotals::default() };
    let mut from = 1;
    while from <= head.messages {
        let to = head.messages.min((history::directory_node(from) + 1) * limits::DIRECTORY_SPAN);
        let refs = history.find_pack_refs(session, from, to);
        for pack in report.catch_damage(refs)?.unwrap_or_default() {
            check_pack(session, history, &pack, &mut running, report)?;
        }
        from = to + 1;
    }
    report.expect_sound(running.seq == head.messages, || {
        format!("the head counts {} messages, the packs have {}", head.messages, running.seq)
    });
    report.expect_sound(running.bytes == head.raw_bytes, || {
        format!("the head counts {} bytes, the packs have {}", head.raw_bytes, running.bytes)
    });
    report.expect_sound(running.tokens == head.raw_tokens, || {
        format!("the head counts {} tokens, the packs have {}", head.raw_tokens, running.tokens)
    });
    report.expect_sound(running.frontier == head.frontier, || {
        "the running hash of the head differs from the hash of the messages".into()
    });
    report.expect_sound(running.newest_user_seq == head.newest_user.map(|mark| mark.seq), || {
        "the head names another newest user message".into()
    });
    let is_comparable = head.meaning_version == MEANING_VERSION;
    report.expect_sound(!is_comparable || running.marks.ends_with(&head.recent_marks), || {
        "the newest marks of the head differ from the marks of the messages".into()
    });
    Ok(running.other_versions)
}

fn check_pack(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    place: &PackRef,
    running: &mut RunningTotals,
    report: &mut CheckReport,
) -> Result<()> {
    let key = place.key(history.keys);
    let wanted = [(key.clone(), place.bytes)];
    let Some(values) = report.catch_damage(session.read_immutable(&wanted))? else { return Ok(()) };
    let Some(value) = values.first() else { return Ok(()) };
    let Some(pack) = report.catch_damage(decode_pack(history, place, value, running))? else {
        return Ok(());
    };
    report.expect_sound(pack.is_sound && int::to_u32(value.len()) == place.bytes, || {
        format!("`{key}` does not match its reference in the head or directory")
    });
    report.expect_sound(place.seq_first == running.seq + 1, || {
        format!("`{key}` begins with message {}, expected {}", place.seq_first, running.seq + 1)
    });
    report.expect_sound(
        place.is_compressed == (place.seq_last() <= history.head.compressed_through),
        || {
            let last = history.head.compressed_through;
            format!("`{key}` must be compressed exactly if it ends at or before message {last}")
        },
    );
    let mut identities: Vec<PlacedIdentity> = Vec::new();
    for placed in &pack.messages {
        let PlacedMessage { stored, frontier, .. } = placed;
        running.seq += 1;
        let seq = running.seq;
        let Some(raw) = report.catch_damage(history.read_text(session, stored))? else { continue };
        if let RawText::Chunked { sha256, .. } = &stored.raw {
            let found: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
            report.expect_sound(found == *sha256, || {
                format!("the text of message {seq} was changed")
            });
        }
        let Ok(mut message) = message::parse(pack.dialect, &raw) else {
            report.add_finding(format!("the text of message {seq} is not a message"));
            continue;
        };
        let hash = pack::message_hash(&raw, &message);
        running.frontier = pack::advance_frontier(&running.frontier, &hash);
        running.bytes += stored.raw.bytes();
        running.tokens += u64::from(stored.tokens);
        running.add_mark(MessageMark::from_message(&raw, &message));
        if running.is_user_message(history.head, stored, &message) {
            running.newest_user_seq = Some(seq);
        }
        let is_derived = is_derived_from_text(stored, &message, &raw)
            && frontier.is_none_or(|frontier| frontier == running.frontier);
        report.expect_sound(is_derived, || {
            format!("the projection of message {seq} differs from its text")
        });
        if stored.placeholder.is_some() {
            payloads::check(session, history, placed, &raw, report)?;
        }
        message.unique_call_id = stored.call_key;
        let place = |lookup| PlacedIdentity::new(history.keys, running, lookup);
        identities.extend(collect_lookups(&raw, &message).into_iter().map(place));
    }
    if running.seq == history.head.compressed_through {
        report.expect_sound(running.frontier == history.head.compressed_frontier, || {
            "the running hash after the compressed packs differs from that of the head".into()
        });
    }
    check_identities(session, history, &identities, report)
}

impl RunningTotals {
    /// Adds the mark of the current message to the newest marks.
    fn add_mark(&mut self, mark: MessageMark) {
        self.marks.push(mark);
        if self.marks.len() > limits::RECENT_MARKS_MAX {
            self.marks.remove(0);
        }
    }

    /// Returns whether the current message is a user message that was not set aside and is no other
    /// form of a message. Also counts messages of other derivation versions.
    ///
    /// A message of another derivation version counts as a user message if the head names the
    /// message as the newest user message.
    fn is_user_message(
        &mut self,
        head: &ConversationHead,
        stored: &StoredMessage,
        message: &ParsedMessage,
    ) -> bool {
        let is_in_line = self.withdrawals.position_of(self.seq).is_some();
        match stored.derivation_version.cmp(&DERIVATION_VERSION) {
            Ordering::Equal => return is_in_line && message.is_user_text(),
            Ordering::Less => self.other_versions.older += 1,
            Ordering::Greater => self.other_versions.newer += 1,
        }
        head.newest_user.is_some_and(|mark| mark.seq == self.seq)
    }
}

/// Returns whether the derived fields of a message match its text; for another derivation version,
/// whether spans lie in the text. Entry id and event key are always compared.
fn is_derived_from_text(stored: &StoredMessage, message: &ParsedMessage, raw: &str) -> bool {
    let is_derived = match stored.derivation_version {
        DERIVATION_VERSION => {
            stored.message_tokens() == message.tokens
                && stored.parts == message.parts
                && stored.role == message.role
                && (stored.call_key.is_none() || stored.call_key == message.unique_call_id)
        }
        _ => {
            let is_in_text = |span| !json::slice_span(raw, span).is_empty();
            message::contains_parts(raw, &stored.parts) && stored.call_key.is_none_or(is_in_text)
        }
    };
    is_derived && (stored.entry_id, stored.event_key) == (message.entry_id, message.event_key)
}

/// The messages of one pack, compressed or not.
struct DecodedPack {
    dialect: Dialect,
    messages: Vec<PlacedMessage>,
    /// Whether the pack matches its reference, and its tokens and running hash continue the
    /// sequence.
    is_sound: bool,
}

fn decode_pack(
    history: &MessageHistory<'_>,
    place: &PackRef,
    value: &[u8],
    running: &RunningTotals,
) -> Result<DecodedPack> {
    let key = place.key(history.keys);
    if place.is_compressed {
        let pack = CompressedPack::open(&key, value, place.seq_last())?;
        let (first, last) = pack.seq_range();
        let is_sound = pack.matches_pack_ref(place, running.tokens)
            && pack.frontier_bounds().first() == Some(&running.frontier);
        let messages = (first..=last).map_while(|seq| pack.message(seq)).collect();
        return Ok(DecodedPack { dialect: pack.dialect(), messages, is_sound });
    }
    let pack: Pack = codec::decode(&key, value)?;
    let is_sound = pack.to_pack_ref(place.bytes) == *place && pack.tokens_before == running.tokens;
    Ok(DecodedPack {
        dialect: pack.dialect,
        messages: history::place_messages(&pack, 1, u64::MAX),
        is_sound,
    })
}

/// An identity of the message `seq`, with the key of its record.
struct PlacedIdentity {
    key: RecordKey<StoredIdentity>,
    lookup: IdentityLookup,
    seq: u64,
    /// Whether the message is another form of a stored message. If so, the records of its
    /// identities may lead to that stored message.
    is_revision: bool,
}

impl PlacedIdentity {
    /// Creates an identity of the current message.
    fn new(keys: &ConversationKeys, running: &RunningTotals, lookup: IdentityLookup) -> Self {
        let (seq, key) = (running.seq, StoredIdentity::key(keys, &lookup));
        let is_revision = running.withdrawals.reason_of(seq) == Some(WithdrawalReason::Revision);
        Self { key, lookup, seq, is_revision }
    }
}

/// Checks that the record of every identity names the newest message with this identity; if that
/// message is another form of a message, the record may name an earlier message with the identity.
/// A record that belongs to another identity with the same key is no finding.
fn check_identities(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    identities: &[PlacedIdentity],
    report: &mut CheckReport,
) -> Result<()> {
    let names: Vec<String> = identities.iter().map(|one| one.key.name().into()).collect();
    for (identity, value) in identities.iter().zip(session.read_uncached(&names)?) {
        let PlacedIdentity { key, lookup, seq, is_revision } = identity;
        let name = key.name();
        let Some(value) = value else {
            report.add_finding(format!("`{name}`, an identity of message {seq}, is missing"));
            continue;
        };
        let Some(known) = report.catch_damage(key.decode(&value))? else { continue };
        let is_sound = known.seq == *seq
            || !known.matches_lookup(lookup)
            || ((known.seq > *seq || *is_revision)
                && has_identity(session, history, known.seq, key.name(), report)?);
        report.expect_sound(is_sound, || {
            format!("`{name}` leads to message {} instead of {seq}", known.seq)
        });
    }
    Ok(())
}

/// Returns whether a message has the identity with the record `name`.
fn has_identity(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    name: &str,
    report: &mut CheckReport,
) -> Result<bool> {
    if seq == 0 || seq > history.head.messages {
        return Ok(false);
    }
    let placed = history.read_messages(session, seq, seq);
    let Some(placed) = report.catch_damage(placed)?.and_then(|it| it.into_iter().next()) else {
        return Ok(false);
    };
    let text = history.read_text(session, &placed.stored);
    let Some(raw) = report.catch_damage(text)? else { return Ok(false) };
    let Ok(mut message) = message::parse(placed.dialect, &raw) else { return Ok(false) };
    message.unique_call_id = placed.stored.call_key;
    let lookups = collect_lookups(&raw, &message);
    Ok(lookups.iter().any(|lookup| StoredIdentity::key(history.keys, lookup).name() == name))
}
