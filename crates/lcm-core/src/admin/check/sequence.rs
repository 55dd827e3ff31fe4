//! The message sequence: packs, directory, texts, hashes, counts, identities.

use crate::storage::pack::Placed;
use alloc::{format, string::String, vec::Vec};
use core::cmp::Ordering;
use lcm_text::base::hash;

use crate::{
    ingest::{Known, lookups},
    storage::{
        codec,
        compressed_pack::Opened,
        head::Head,
        history::{self, History},
        keys::Keys,
        pack::{self, Pack, PackRef, Raw, Stored},
        store_session::Reader,
    },
};
use lcm_text::{
    base::{derivation_version::RULES, error::Result, int, json, limits},
    message::{self, Message},
    types::api::Dialect,
};

use super::{Report, payloads};

/// Running values over the sequence.
#[derive(Debug, Default)]
struct Running {
    seq: u64,
    bytes: u64,
    tokens: u64,
    frontier: [u8; 16],
    user: Option<u64>,
    hashes: Vec<[u8; 12]>,
    others: Others,
}

/// How many messages were projected by other rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    pub(super) older: u64,
    pub(super) newer: u64,
}

/// Checks every message; answers how many were projected by other rules.
///
/// # Errors
///
/// Of the store.
pub(super) fn check(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    report: &mut Report,
) -> Result<Others> {
    report.begin("messages");
    let history = History { keys, head };
    let mut running = Running::default();
    let mut from = 1;
    while from <= head.messages {
        let to = head.messages.min((history::directory_node(from) + 1) * limits::DIRECTORY_SPAN);
        let refs = history.refs(reader, from, to);
        for pack in report.damage(refs)?.unwrap_or_default() {
            check_pack(reader, &history, &pack, &mut running, report)?;
        }
        from = to + 1;
    }
    report.expect(running.seq == head.messages, || {
        format!("{} messages where the head counts {}", running.seq, head.messages)
    });
    report.expect(running.bytes == head.raw_bytes, || {
        format!("{} bytes where the head counts {}", running.bytes, head.raw_bytes)
    });
    report.expect(running.tokens == head.raw_tokens, || {
        format!("{} tokens where the head counts {}", running.tokens, head.raw_tokens)
    });
    report.expect(running.frontier == head.frontier, || "the running hash differs".into());
    report.expect(running.user == head.newest_user.map(|mark| mark.seq), || {
        "the newest user message is another one".into()
    });
    report.expect(running.hashes == head.hashes, || "the newest hashes differ".into());
    Ok(running.others)
}

fn check_pack(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    place: &PackRef,
    running: &mut Running,
    report: &mut Report,
) -> Result<()> {
    let key = place.key(history.keys);
    let wanted = [(key.clone(), place.bytes)];
    let Some(values) = report.damage(reader.immutable(&wanted))? else { return Ok(()) };
    let Some(value) = values.first() else { return Ok(()) };
    let Some(pack) = report.damage(read(history, place, value, running))? else { return Ok(()) };
    report.expect(pack.is_sound && int::to_u32(value.len()) == place.bytes, || {
        format!("`{key}` is not as the directory says")
    });
    report.expect(place.seq_first == running.seq + 1, || {
        format!("`{key}` begins with {}, not {}", place.seq_first, running.seq + 1)
    });
    report.expect(place.sealed == (place.seq_last() <= history.head.sealed), || {
        format!("`{key}` is on the wrong side of message {}", history.head.sealed)
    });
    let mut identities: Vec<(String, crate::ingest::Lookup, u64)> = Vec::new();
    for Placed { stored, frontier, .. } in &pack.messages {
        running.seq += 1;
        let seq = running.seq;
        let Some(raw) = report.damage(history.text(reader, stored))? else { continue };
        if let Raw::Chunked { sha256, .. } = &stored.raw {
            use sha2::{Digest, Sha256};
            let found: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
            report.expect(found == *sha256, || format!("the text of message {seq} was changed"));
        }
        let Ok(mut message) = message::project(pack.dialect, &raw) else {
            report.found(format!("message {seq} cannot be read"));
            continue;
        };
        let hash = pack::message_hash(&raw, &message);
        running.frontier = pack::advance(&running.frontier, &hash);
        running.bytes += stored.raw.bytes();
        running.tokens += u64::from(stored.tokens);
        running.hashes.push(hash::prefix(&hash));
        if running.hashes.len() > limits::RECENT_HASHES_MAX {
            running.hashes.remove(0);
        }
        let is_user = running.is_user(history.head, stored, &message);
        running.user = if is_user { Some(seq) } else { running.user };
        let same = is_made_from(stored, &message, &raw)
            && frontier.is_none_or(|frontier| frontier == running.frontier);
        report.expect(same, || format!("the projection of message {seq} differs from its text"));
        if stored.stand_in.is_some() {
            payloads::check(reader, history, (seq, pack.dialect, stored), &raw, report)?;
        }
        message.unique_call_id = stored.call_key;
        let lookups = lookups(&raw, &message).into_iter();
        identities.extend(lookups.map(|one| (history.keys.identity(&one.hash), one, seq)));
    }
    if running.seq == history.head.sealed {
        report.expect(running.frontier == history.head.sealed_frontier, || {
            "the running hash after the sealed packs differs".into()
        });
    }
    check_identities(reader, &identities, report)
}

impl Running {
    /// Whether the message at hand is what a user said. Of one that other rules projected, the head
    /// is believed. Counts those.
    fn is_user(&mut self, head: &Head, stored: &Stored, message: &Message) -> bool {
        match stored.rules.cmp(&RULES) {
            Ordering::Equal => return message.is_said_by_user(),
            Ordering::Less => self.others.older += 1,
            Ordering::Greater => self.others.newer += 1,
        }
        head.newest_user.is_some_and(|mark| mark.seq == self.seq)
    }
}

/// Whether a projection is what the text makes, or when other rules made it, could be of the text.
fn is_made_from(stored: &Stored, message: &Message, raw: &str) -> bool {
    let made = match stored.rules {
        RULES => {
            stored.message_tokens() == message.tokens
                && stored.parts == message.parts
                && stored.role == message.role
                && (stored.call_key.is_none() || stored.call_key == message.unique_call_id)
        }
        _ => {
            let call_id = |span| !json::slice(raw, span).is_empty();
            message::has_all(raw, &stored.parts) && stored.call_key.is_none_or(call_id)
        }
    };
    made && (stored.entry_id, stored.event_key) == (message.entry_id, message.event_key)
}

/// The messages of one pack, sealed or not.
struct Read {
    dialect: Dialect,
    messages: Vec<Placed>,
    /// Whether the pack is what its reference says, and begins where the last one ended.
    is_sound: bool,
}

fn read(history: &History<'_>, place: &PackRef, value: &[u8], running: &Running) -> Result<Read> {
    let key = place.key(history.keys);
    if place.sealed {
        let pack = Opened::open(&key, value, place.seq_last())?;
        let (first, last) = pack.range();
        let is_sound = pack.is_as(place, running.tokens)
            && pack.frontiers().first() == Some(&running.frontier);
        let messages = (first..=last).map_while(|seq| pack.message(seq)).collect();
        return Ok(Read { dialect: pack.dialect(), messages, is_sound });
    }
    let pack: Pack = codec::decode(&key, value)?;
    let is_sound = pack.place(place.bytes) == *place && pack.tokens_before == running.tokens;
    Ok(Read { dialect: pack.dialect, messages: history::placed(&pack, 1, u64::MAX), is_sound })
}

/// Every id, event key and call key leads back to its message.
fn check_identities(
    reader: &mut Reader<'_>,
    identities: &[(String, crate::ingest::Lookup, u64)],
    report: &mut Report,
) -> Result<()> {
    let names: Vec<String> = identities.iter().map(|(key, ..)| key.clone()).collect();
    for ((key, lookup, seq), value) in identities.iter().zip(reader.fresh(&names)?) {
        let Some(value) = value else {
            report.found(format!("`{key}`, an identity of message {seq}, is missing"));
            continue;
        };
        let Some(known) = report.damage(codec::decode::<Known>(key, &value))? else { continue };
        let sound = known.seq == *seq || !known.is_of(lookup);
        report.expect(sound, || format!("`{key}` leads to {} instead of {seq}", known.seq));
    }
    Ok(())
}
