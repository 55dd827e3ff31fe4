//! Reconcile: which entries of a whole transcript are missing here.
//!
//! The host computes nothing: [`identify`] gives an entry per message, and [`reconcile`] compares
//! the list of them with what is stored. One comparison of the running hash proves that the stored
//! messages are the beginning of the transcript; otherwise ids decide entry by entry, and entries
//! without one by alignment with the newest stored messages.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

use serde::{Deserialize, Serialize};

use crate::{
    api::Dialect,
    codec,
    error::{Error, Result},
    head::Loaded,
    json,
    keys::{self, Keys},
    message, num,
    pack::{self, advance},
    reader::Reader,
};

use super::{Known, identity::Lookup};

/// Most entries of one transcript.
const ENTRIES_MAX: usize = 2_000_000;

/// What identifies one message of a transcript.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Entry {
    entry_id: Option<String>,
    event_key: Option<String>,
    /// Hash over content and ids, 32 hex digits.
    hash: String,
    /// Whether equal content is evidence of being the same message.
    #[serde(default)]
    discriminating: bool,
    /// Call id of a single tool result without id of the host: the same result again is skipped.
    #[serde(default)]
    call_id: Option<String>,
    /// Whether ingest skips it: a failed turn without content.
    #[serde(default)]
    empty: bool,
}

#[derive(Debug, Deserialize)]
struct Transcript {
    entries: Vec<Entry>,
}

/// A range of entries, by 0-based inclusive index.
#[derive(Clone, Copy, Debug, Serialize)]
struct Missing {
    from: u64,
    to: u64,
}

#[derive(Debug, Serialize)]
struct Plan {
    missing: Vec<Missing>,
    stored: u64,
    by: &'static str,
    warnings: Vec<String>,
}

/// The identities of messages, as a JSON array. Reads nothing.
///
/// # Errors
///
/// `invalid-input` naming the message by its index.
pub(crate) fn identify(dialect: Dialect, messages: &[String]) -> Result<String> {
    let mut entries = Vec::with_capacity(messages.len());
    for (index, raw) in messages.iter().enumerate() {
        let message = message::project(dialect, raw).map_err(|error| {
            Error::new(error.code, format!("messages[{index}]: {}", error.message))
        })?;
        entries.push(Entry {
            entry_id: message.entry_id.map(|span| json::text(raw, span).into_owned()),
            event_key: message.event_key.map(|span| json::text(raw, span).into_owned()),
            hash: keys::hex(&pack::message_hash(raw, &message)),
            discriminating: message.discriminating,
            call_id: message
                .unique_call_id
                .filter(|_| message.entry_id.is_none() && message.event_key.is_none())
                .map(|span| json::text(raw, span).into_owned()),
            empty: message.failed_and_empty,
        });
    }
    to_json(&entries)
}

fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::corrupt(format!("{error}")))
}

/// Says which entries of a transcript are not stored, as a JSON plan.
///
/// # Errors
///
/// `invalid-input`: no list of entries; `limit-exceeded`: too many; errors of the store.
pub(crate) fn reconcile(
    reader: &mut Reader<'_>,
    conversation: &str,
    transcript_json: &str,
) -> Result<String> {
    let keys = Keys::new(conversation)?;
    let transcript: Transcript = serde_json::from_str(transcript_json)
        .map_err(|error| Error::invalid(format!("transcript-json: {error}")))?;
    let entries = transcript.entries;
    if entries.len() > ENTRIES_MAX {
        return Err(Error::limit(format!("entries: at most {ENTRIES_MAX}")));
    }
    let mut hashes = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let bytes = keys::unhex(&entry.hash).filter(|bytes| bytes.len() == 16);
        let bytes =
            bytes.ok_or_else(|| Error::invalid(format!("entries[{index}].hash: 32 hex digits")))?;
        hashes.push(keys::prefix::<16>(&bytes));
    }
    let (loaded, _) = Loaded::read(reader, &keys, conversation, &[])?;
    let head = &loaded.head;
    if let Some(from) = prefix(&entries, &hashes, head.messages, &head.frontier) {
        return plan(head.messages, "prefix", &entries, |index| index < from);
    }
    let known = known(reader, &keys, &entries)?;
    let identified = known.iter().any(|known| *known);
    let until = align(&head.hashes, &entries, &hashes);
    let by = match (identified, until) {
        (_, 1..) => "alignment",
        (true, 0) => "ids",
        (false, 0) => "none",
    };
    plan(head.messages, by, &entries, |index| {
        let keyed = entries
            .get(index)
            .is_some_and(|entry| entry.entry_id.is_some() || entry.event_key.is_some());
        // An id decides alone; alignment speaks only for entries that have none.
        known.get(index).copied().unwrap_or(false) || (!keyed && index < until)
    })
}

/// Index behind the stored messages, when they are the beginning of the transcript.
fn prefix(
    entries: &[Entry],
    hashes: &[[u8; 16]],
    messages: u64,
    frontier: &[u8; 16],
) -> Option<usize> {
    let mut running = [0u8; 16];
    let mut count = 0u64;
    let mut index = 0usize;
    let mut calls = BTreeSet::new();
    for (entry, hash) in entries.iter().zip(hashes) {
        if count == messages {
            break;
        }
        index += 1;
        let again = entry.call_id.is_some() && !calls.insert((entry.call_id.as_deref(), hash));
        if !entry.empty && !again {
            running = advance(&running, hash);
            count += 1;
        }
    }
    (count == messages && running == *frontier).then_some(index)
}

/// Which entries are stored by id or event key.
fn known(reader: &mut Reader<'_>, keys: &Keys, entries: &[Entry]) -> Result<Vec<bool>> {
    let mut lookups: BTreeMap<String, Vec<(usize, Lookup)>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(Lookup::entry);
        let of_event = entry.event_key.as_deref().map(Lookup::event);
        for lookup in of_entry.into_iter().chain(of_event) {
            lookups.entry(keys.identity(&lookup.hash)).or_default().push((index, lookup));
        }
    }
    let mut out = alloc::vec![false; entries.len()];
    let names: Vec<String> = lookups.keys().cloned().collect();
    for (name, value) in names.iter().zip(reader.fresh(&names)?) {
        let Some(value) = value else { continue };
        let record: Known = codec::decode(name, &value)?;
        for (index, lookup) in lookups.get(name).into_iter().flatten() {
            if let Some(slot) = out.get_mut(*index)
                && record.is_of(lookup)
            {
                *slot = true;
            }
        }
    }
    Ok(out)
}

/// Index behind the newest stored message, when a run of entries ends with it.
///
/// The run goes back to the beginning of the transcript or through all stored hashes that the head
/// remembers, and has a discriminating entry in it.
fn align(stored: &[[u8; 12]], entries: &[Entry], hashes: &[[u8; 16]]) -> usize {
    let short: Vec<[u8; 12]> = hashes.iter().map(|hash| keys::prefix(hash)).collect();
    let ends = |end: &usize| {
        let count = stored.len().min(*end);
        let run = short.get(end - count..*end).unwrap_or(&[]);
        count > 0
            && stored.ends_with(run)
            && entries.iter().take(*end).skip(end - count).any(|entry| entry.discriminating)
    };
    (1..=short.len()).rev().find(ends).unwrap_or(0)
}

fn plan(
    stored: u64,
    by: &'static str,
    entries: &[Entry],
    is_stored: impl Fn(usize) -> bool,
) -> Result<String> {
    let mut missing: Vec<Missing> = Vec::new();
    let mut warnings = Vec::new();
    for index in 0..entries.len() {
        if is_stored(index) {
            continue;
        }
        let at = num::to_u64(index);
        match missing.last_mut() {
            Some(range) if range.to + 1 == at => range.to = at,
            _ => missing.push(Missing { from: at, to: at }),
        }
    }
    if by == "none" && stored > 0 && !entries.is_empty() {
        warnings.push(format!(
            "no-overlap: nothing of the transcript is recognised among {stored} stored messages"
        ));
    }
    to_json(&Plan { missing, stored, by, warnings })
}
