//! The message sequence: packs, directory, texts, hashes, counts, identities.

use alloc::{format, string::String, vec::Vec};
use core::cmp::Ordering;
use lcm_text::base::hash;

use crate::storage::{
    codec,
    compressed_pack::CompressedPack,
    head::ConversationHead,
    history::{self, MessageHistory},
    keys::ConversationKeys,
    pack::{self, Pack, PackRef, PlacedMessage, RawText, StoredMessage},
    records::identity::{IdentityLookup, StoredIdentity, collect_lookups},
    store_session::StoreSession,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result, int, json, limits},
    message::{self, ParsedMessage},
    types::api::Dialect,
};

use super::{CheckReport, payloads};

/// Running values over the sequence.
#[derive(Debug, Default)]
struct RunningTotals {
    seq: u64,
    bytes: u64,
    tokens: u64,
    frontier: [u8; 16],
    newest_user_seq: Option<u64>,
    hashes: Vec<[u8; 12]>,
    other_versions: OtherVersionCounts,
}

/// How many messages were projected by other rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherVersionCounts {
    pub(super) older: u64,
    pub(super) newer: u64,
}

/// Checks every message; answers how many were projected by other rules.
///
/// # Errors
///
/// Of the store.
pub(super) fn check(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    head: &ConversationHead,
    report: &mut CheckReport,
) -> Result<OtherVersionCounts> {
    report.begin_check("messages");
    let history = MessageHistory { keys, head };
    let mut running = RunningTotals::default();
    let mut from = 1;
    while from <= head.messages {
        let to = head.messages.min((history::directory_node(from) + 1) * limits::DIRECTORY_SPAN);
        let refs = history.find_pack_refs(reader, from, to);
        for pack in report.catch_damage(refs)?.unwrap_or_default() {
            check_pack(reader, &history, &pack, &mut running, report)?;
        }
        from = to + 1;
    }
    report.expect_sound(running.seq == head.messages, || {
        format!("{} messages where the head counts {}", running.seq, head.messages)
    });
    report.expect_sound(running.bytes == head.raw_bytes, || {
        format!("{} bytes where the head counts {}", running.bytes, head.raw_bytes)
    });
    report.expect_sound(running.tokens == head.raw_tokens, || {
        format!("{} tokens where the head counts {}", running.tokens, head.raw_tokens)
    });
    report.expect_sound(running.frontier == head.frontier, || "the running hash differs".into());
    report.expect_sound(running.newest_user_seq == head.newest_user.map(|mark| mark.seq), || {
        "the newest user message is another one".into()
    });
    report.expect_sound(running.hashes == head.recent_hashes, || "the newest hashes differ".into());
    Ok(running.other_versions)
}

fn check_pack(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    place: &PackRef,
    running: &mut RunningTotals,
    report: &mut CheckReport,
) -> Result<()> {
    let key = place.key(history.keys);
    let wanted = [(key.clone(), place.bytes)];
    let Some(values) = report.catch_damage(reader.read_immutable(&wanted))? else { return Ok(()) };
    let Some(value) = values.first() else { return Ok(()) };
    let Some(pack) = report.catch_damage(decode_pack(history, place, value, running))? else {
        return Ok(());
    };
    report.expect_sound(pack.is_sound && int::to_u32(value.len()) == place.bytes, || {
        format!("`{key}` is not as the directory says")
    });
    report.expect_sound(place.seq_first == running.seq + 1, || {
        format!("`{key}` begins with {}, not {}", place.seq_first, running.seq + 1)
    });
    report.expect_sound(
        place.is_compressed == (place.seq_last() <= history.head.compressed_through),
        || format!("`{key}` is on the wrong side of message {}", history.head.compressed_through),
    );
    let mut identities: Vec<(String, IdentityLookup, u64)> = Vec::new();
    for PlacedMessage { stored, frontier, .. } in &pack.messages {
        running.seq += 1;
        let seq = running.seq;
        let Some(raw) = report.catch_damage(history.read_text(reader, stored))? else { continue };
        if let RawText::Chunked { sha256, .. } = &stored.raw {
            use sha2::{Digest, Sha256};
            let found: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
            report.expect_sound(found == *sha256, || {
                format!("the text of message {seq} was changed")
            });
        }
        let Ok(mut message) = message::parse(pack.dialect, &raw) else {
            report.add_finding(format!("message {seq} cannot be read"));
            continue;
        };
        let hash = pack::message_hash(&raw, &message);
        running.frontier = pack::advance_frontier(&running.frontier, &hash);
        running.bytes += stored.raw.bytes();
        running.tokens += u64::from(stored.tokens);
        running.hashes.push(hash::hash_prefix(&hash));
        if running.hashes.len() > limits::RECENT_HASHES_MAX {
            running.hashes.remove(0);
        }
        let is_user = running.is_user_message(history.head, stored, &message);
        running.newest_user_seq = if is_user { Some(seq) } else { running.newest_user_seq };
        let same = is_derived_from_text(stored, &message, &raw)
            && frontier.is_none_or(|frontier| frontier == running.frontier);
        report.expect_sound(same, || {
            format!("the projection of message {seq} differs from its text")
        });
        if stored.placeholder.is_some() {
            payloads::check(reader, history, (seq, pack.dialect, stored), &raw, report)?;
        }
        message.unique_call_id = stored.call_key;
        let lookups = collect_lookups(&raw, &message).into_iter();
        identities.extend(lookups.map(|one| (history.keys.identity_key(&one.hash), one, seq)));
    }
    if running.seq == history.head.compressed_through {
        report.expect_sound(running.frontier == history.head.compressed_frontier, || {
            "the running hash after the sealed packs differs".into()
        });
    }
    check_identities(reader, &identities, report)
}

impl RunningTotals {
    /// Whether the message at hand is what a user said. Of one that other rules projected, the head
    /// is believed. Counts those.
    fn is_user_message(
        &mut self,
        head: &ConversationHead,
        stored: &StoredMessage,
        message: &ParsedMessage,
    ) -> bool {
        match stored.derivation_version.cmp(&DERIVATION_VERSION) {
            Ordering::Equal => return message.is_user_text(),
            Ordering::Less => self.other_versions.older += 1,
            Ordering::Greater => self.other_versions.newer += 1,
        }
        head.newest_user.is_some_and(|mark| mark.seq == self.seq)
    }
}

/// Whether a projection is what the text makes, or when other rules made it, could be of the text.
fn is_derived_from_text(stored: &StoredMessage, message: &ParsedMessage, raw: &str) -> bool {
    let made = match stored.derivation_version {
        DERIVATION_VERSION => {
            stored.message_tokens() == message.tokens
                && stored.parts == message.parts
                && stored.role == message.role
                && (stored.call_key.is_none() || stored.call_key == message.unique_call_id)
        }
        _ => {
            let call_id = |span| !json::slice_span(raw, span).is_empty();
            message::contains_parts(raw, &stored.parts) && stored.call_key.is_none_or(call_id)
        }
    };
    made && (stored.entry_id, stored.event_key) == (message.entry_id, message.event_key)
}

/// The messages of one pack, sealed or not.
struct DecodedPack {
    dialect: Dialect,
    messages: Vec<PlacedMessage>,
    /// Whether the pack is what its reference says, and begins where the last one ended.
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

/// Every id, event key and call key leads back to its message.
fn check_identities(
    reader: &mut StoreSession<'_>,
    identities: &[(String, IdentityLookup, u64)],
    report: &mut CheckReport,
) -> Result<()> {
    let names: Vec<String> = identities.iter().map(|(key, ..)| key.clone()).collect();
    for ((key, lookup, seq), value) in identities.iter().zip(reader.read_uncached(&names)?) {
        let Some(value) = value else {
            report.add_finding(format!("`{key}`, an identity of message {seq}, is missing"));
            continue;
        };
        let Some(known) = report.catch_damage(codec::decode::<StoredIdentity>(key, &value))? else {
            continue;
        };
        let sound = known.seq == *seq || !known.matches_lookup(lookup);
        report.expect_sound(sound, || format!("`{key}` leads to {} instead of {seq}", known.seq));
    }
    Ok(())
}
