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
    head::{Head, Loaded},
    history::History,
    json,
    keys::{self, Keys},
    message, num,
    pack::{self, advance},
    reader::Reader,
};

use super::{
    Known,
    identity::{Alignable, Lookup, Newest},
};

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

/// Anchors that a transcript needs to count as lying wholly among the stored messages.
const INSIDE_ANCHORS_MIN: usize = 2;

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
    /// Revision of the conversation that this is true of; 0 when it does not exist.
    revision: u64,
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
    let effective = effective(&entries);
    if let Some(from) = prefix(&effective, &hashes, head) {
        return plan(head, "prefix", &entries, |index| index < from);
    }
    let known = known(reader, &keys, &entries)?;
    let alignable: Vec<Alignable> = effective
        .iter()
        .map(|index| Alignable {
            hash: hashes.get(*index).map(|hash| keys::prefix(hash)).unwrap_or_default(),
            seq: known.get(*index).copied().flatten(),
            discriminating: entries.get(*index).is_some_and(|entry| entry.discriminating),
        })
        .collect();
    let (from, to) = covered(reader, &keys, head, &alignable, &effective, &hashes)?;
    let by = match (known.iter().any(Option::is_some), to > from) {
        (_, true) => "alignment",
        (true, false) => "ids",
        (false, false) => "none",
    };
    let aligned = effective.get(from..to).unwrap_or(&[]);
    plan(head, by, &entries, |index| {
        // What ingest skips anyway is never missing.
        known.get(index).copied().flatten().is_some()
            || aligned.binary_search(&index).is_ok()
            || effective.binary_search(&index).is_err()
    })
}

/// Indexes of the entries that ingest would store if nothing was stored yet: without failed turns
/// and without what carries an id that came before.
fn effective(entries: &[Entry]) -> Vec<usize> {
    let mut seen: BTreeSet<(u8, &str, &str)> = BTreeSet::new();
    let mut out = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let ids = [(0, entry.entry_id.as_deref()), (1, entry.event_key.as_deref())];
        let mut again = false;
        for (kind, id) in ids {
            again |= id.is_some_and(|id| !seen.insert((kind, id, "")));
        }
        // A call id counts only together with equal content.
        let call = entry.call_id.as_deref();
        again |= call.is_some_and(|id| !seen.insert((2, id, &entry.hash)));
        if !entry.empty && !again {
            out.push(index);
        }
    }
    out
}

/// Index behind the stored messages, when they are the beginning of the transcript.
fn prefix(effective: &[usize], hashes: &[[u8; 16]], head: &Head) -> Option<usize> {
    let count = num::to_usize(head.messages);
    let frontier = frontier(effective.get(..count)?, hashes);
    let behind = || match count.checked_sub(1) {
        None => Some(0),
        Some(last) => effective.get(last).map(|index| index + 1),
    };
    (frontier == head.frontier).then(behind).flatten()
}

fn frontier(indexes: &[usize], hashes: &[[u8; 16]]) -> [u8; 16] {
    let hashes = indexes.iter().filter_map(|index| hashes.get(*index));
    hashes.fold([0; 16], |running, hash| advance(&running, hash))
}

/// Which range of the effective entries is stored, going by alignment.
///
/// Either the transcript goes on where the stored messages end, or it lies wholly among them: at
/// their beginning, which the running hash proves, or among the newest. Lying among them takes two
/// anchors, because a single message may well be said again.
fn covered(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    entries: &[Alignable],
    effective: &[usize],
    hashes: &[[u8; 16]],
) -> Result<(usize, usize)> {
    let newest = Newest { hashes: &head.hashes, seq_last: head.messages };
    let stored = newest.hashes.len();
    let ends = |end: &usize| {
        let count = stored.min(*end);
        let run = entries.get(end - count..*end).unwrap_or(&[]);
        newest.holds(stored - count, run, 1)
    };
    if let Some(end) = (1..=entries.len()).rev().find(ends) {
        // No more is claimed than there are messages.
        return Ok((end.saturating_sub(num::to_usize(head.messages)), end));
    }
    let anchors =
        entries.iter().filter(|entry| entry.discriminating || entry.seq.is_some()).count();
    if anchors < INSIDE_ANCHORS_MIN || num::to_u64(entries.len()) > head.messages {
        return Ok((0, 0));
    }
    let inside = (0..stored).any(|from| newest.holds(from, entries, INSIDE_ANCHORS_MIN));
    if inside {
        return Ok((0, entries.len()));
    }
    let seq = num::to_u64(entries.len());
    let stored = History { keys, head }.frontier(reader, seq)?;
    let same = stored == frontier(effective, hashes);
    Ok((0, if same { entries.len() } else { 0 }))
}

/// Which entries are stored by id or event key.
fn known(reader: &mut Reader<'_>, keys: &Keys, entries: &[Entry]) -> Result<Vec<Option<u64>>> {
    let mut lookups: BTreeMap<String, Vec<(usize, Lookup)>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(Lookup::entry);
        let of_event = entry.event_key.as_deref().map(Lookup::event);
        for lookup in of_entry.into_iter().chain(of_event) {
            lookups.entry(keys.identity(&lookup.hash)).or_default().push((index, lookup));
        }
    }
    let mut out = alloc::vec![None; entries.len()];
    let names: Vec<String> = lookups.keys().cloned().collect();
    for (name, value) in names.iter().zip(reader.fresh(&names)?) {
        let Some(value) = value else { continue };
        let record: Known = codec::decode(name, &value)?;
        for (index, lookup) in lookups.get(name).into_iter().flatten() {
            if let Some(slot) = out.get_mut(*index)
                && record.is_of(lookup)
            {
                *slot = Some(record.seq);
            }
        }
    }
    Ok(out)
}

fn plan(
    head: &Head,
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
    let stored = head.messages;
    if by == "none" && stored > 0 && !missing.is_empty() {
        warnings.push(format!(
            "no-overlap: the transcript does not go on where the {stored} stored messages end; \
             all of it counts as new"
        ));
    }
    to_json(&Plan { missing, stored, by, revision: head.revision, warnings })
}
