//! Reconcile: finds the entries of a transcript, whole or its end, that the store lacks.
//!
//! In: the entries that [`identify`](super::identify) returned for the messages. Out: a JSON plan
//! with the ranges of missing entries. The engine calls [`reconcile`] for the export of this name.
//!
//! In mode `new`, identities alone show what is stored. Otherwise [`align_list`]
//! compares the list with the line, as in `append`.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use crate::storage::{
    call::Call,
    head::LoadedHead,
    history::MessageHistory,
    record_key::RecordKey,
    records::{
        identity::{IdentityContent, IdentityLookup, StoredIdentity},
        withdrawals::Withdrawals,
    },
    store_session::StoreSession,
};
use lcm_text::base::{error::Result, hash, sort};

use super::{
    idempotency,
    identity::IdentityMatch,
    list_alignment::{AlignmentRequest, align_list},
    list_decision::EntryOutcome,
    reconcile_plan::PlanInput,
    rendered::strip_rendered,
    taken_ids::{ListedIds, StoredIds},
    transcript::{TranscriptEntry, parse_transcript},
};

/// Finds the entries of a transcript that are not stored and returns a JSON plan.
///
/// # Errors
///
/// `invalid-input`: a wrong or unknown field, or more confirmed than entries; `limit-exceeded`: too
/// many entries; `exists`: a likely replay is refused; errors of the store.
pub(crate) fn reconcile(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    transcript_json: &str,
) -> Result<String> {
    let mut transcript = parse_transcript(transcript_json)?;
    let loaded = LoadedHead::open(session, call)?;
    let head = &loaded.head;
    let consumed = idempotency::count_consumed(head, transcript.list_name.take())?
        .min(transcript.entries.len());
    transcript.confirmed_count = transcript.confirmed_count.max(consumed);
    // After confirmed entries, other entries may equal stored messages without being a replay.
    transcript.refuse_replay &= transcript.confirmed_count == 0;
    if !transcript.is_new {
        strip_rendered(session, call, head, transcript.entries.iter_mut())?;
    }
    let found = match_entries(session, call, &transcript.entries)?;
    let withdrawals = session.read_record(&Withdrawals::key(call.keys))?.unwrap_or_default();
    let mut listed: Vec<&mut TranscriptEntry> = transcript.entries.iter_mut().collect();
    // The entries have hashes and no texts.
    let mut ids = ListedIds { entries: &mut listed, found: &found, text_of: &|_| None };
    let history = MessageHistory::new(call, head);
    let StoredIds { known, notice } = ids.find_stored(session, &history, &withdrawals)?;
    let entries = &*transcript.entries;
    let effective = &*select_effective(entries);
    let input =
        PlanInput { config: call.config, head, transcript: &transcript, effective, taken: notice };
    // Entries that `append` skips are never missing.
    let is_skipped = |index: usize| effective.binary_search(&index).is_err();
    if transcript.is_new {
        let outcome = |index: usize| match is_skipped(index) || known.get(index) != Some(&None) {
            true => EntryOutcome::Stored,
            false => EntryOutcome::New,
        };
        return input.build_plan("ids", None, &outcome);
    }
    let listed: Vec<&TranscriptEntry> =
        effective.iter().filter_map(|index| entries.get(*index)).collect();
    let known_listed: Vec<Option<u64>> =
        effective.iter().map(|index| known.get(*index).copied().flatten()).collect();
    let list = AlignmentRequest {
        is_transcript: true,
        entries: &listed,
        known: &known_listed,
        beginning: None,
        confirmed: effective.partition_point(|index| *index < transcript.confirmed_count),
        seq_seen: transcript.seq_seen,
        text_of: &|_| None,
    };
    let decision = align_list(session, call, head, &withdrawals, &list)?;
    let outcome = |index: usize| match effective.binary_search(&index) {
        Ok(number) => decision.outcomes.get(number).copied().unwrap_or(EntryOutcome::New),
        Err(_) => EntryOutcome::Stored,
    };
    let count_through =
        |count: usize| effective.get(count.wrapping_sub(1)).map_or(0, |index| index + 1);
    let hashes = transcript.texts.add_texts(&decision.hashes, entries.len(), &count_through);
    input.build_plan(decision.found_by, Some((&decision, hashes)), &outcome)
}

/// Returns the indexes of the entries that `append` would store in an empty conversation: without
/// empty entries, and without those that repeat an id, or a call id with equal content, of an
/// earlier entry.
fn select_effective(entries: &[TranscriptEntry]) -> Vec<usize> {
    let (mut taken, mut effective) = (BTreeMap::<String, usize>::new(), Vec::new());
    for (index, entry) in entries.iter().enumerate() {
        let mut ids: Vec<String> = Vec::new();
        if entry.has_host_id() {
            ids.extend(entry.entry_id.as_ref().map(|id| format!("entry {id}")));
            ids.extend(entry.event_key.as_ref().map(|key| format!("event {key}")));
        }
        let content = || hash::hex(&entry.call_content);
        ids.extend(entry.call_id.as_ref().map(|id| format!("call {} {id}", content())));
        // A skipped entry does not take its ids, so a later entry may have them.
        if !entry.is_empty && !ids.iter().any(|id| taken.contains_key(id)) {
            taken.extend(ids.into_iter().map(|id| (id, index)));
            effective.push(index);
        }
    }
    effective
}

/// An identity of an entry, with the key of its record.
struct EntryLookup {
    key: RecordKey<StoredIdentity>,
    /// Index of the entry.
    index: usize,
    lookup: IdentityLookup,
}

/// Finds for each entry the stored messages with its identities.
fn match_entries(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    entries: &[TranscriptEntry],
) -> Result<Vec<IdentityMatch>> {
    let mut lookups: Vec<EntryLookup> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(IdentityLookup::from_entry_id);
        let of_event = entry.event_key.as_deref().map(IdentityLookup::from_event_key);
        let of_call = entry.call_id.as_deref().map(IdentityLookup::from_call_id);
        for lookup in of_entry.into_iter().chain(of_event).chain(of_call) {
            let key = StoredIdentity::key(call.keys, &lookup);
            lookups.push(EntryLookup { key, index, lookup });
        }
    }
    let mut found = alloc::vec![IdentityMatch::default(); entries.len()];
    sort::sort_by(&mut lookups, &mut |left, right| left.key.name().cmp(right.key.name()));
    let groups = || lookups.chunk_by(|left, right| left.key.name() == right.key.name());
    let keys: Vec<RecordKey<StoredIdentity>> =
        groups().filter_map(|group| Some(group.first()?.key.clone())).collect();
    for (record, group) in session.read_records(&keys)?.into_iter().zip(groups()) {
        let Some(record) = record else { continue };
        for EntryLookup { index, lookup, .. } in group {
            if let (Some(found), Some(entry)) = (found.get_mut(*index), entries.get(*index))
                && record.matches_lookup(lookup)
            {
                let said = entry.whole_mark.hash_said();
                let content = IdentityContent { said, content: entry.call_content };
                found.add_record((lookup, &record), &content, entry.has_host_id());
            }
        }
    }
    Ok(found)
}
