//! Reconcile: finds the entries of a transcript, whole or its end, that the store lacks.
//!
//! In: the entries that [`identify`](super::identify) returned for the messages. Out: a JSON plan
//! with the ranges of missing entries. The engine calls [`reconcile`] for the export of this name.
//!
//! In mode `new`, entry ids and event keys alone show what is stored. Otherwise [`align_list`]
//! compares the list with the line, as in `append`.

use alloc::{string::String, vec::Vec};

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
use lcm_text::base::{error::Result, sort};

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

/// Kind of an id, the id, and the hash of the entry if the id counts only together with equal
/// content; else empty.
type EntryIdentity<'a> = (u8, &'a str, &'a [u8]);

/// Returns the indexes of the entries that `append` would store in an empty conversation: without
/// empty entries, and without those that repeat an id, or a call id with equal content, of an
/// earlier entry.
fn select_effective(entries: &[TranscriptEntry]) -> Vec<usize> {
    let mut ids: Vec<(EntryIdentity<'_>, usize)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let counts = entry.has_host_id();
        let of_entry = [
            (0, entry.entry_id.as_deref().filter(|_| counts), &[][..]),
            (1, entry.event_key.as_deref().filter(|_| counts), &[][..]),
            (2, entry.call_id.as_deref(), entry.mark.meaning.as_slice()),
        ];
        for (kind, id, content) in of_entry {
            ids.extend(id.map(|id| ((kind, id, content), index)));
        }
    }
    sort::sort(&mut ids);
    // Each distinct id gets a number; `numbers` has (index of an entry, number of its id).
    let mut numbers: Vec<(usize, usize)> = Vec::with_capacity(ids.len());
    for (number, equal) in ids.chunk_by(|(left, _), (right, _)| left == right).enumerate() {
        numbers.extend(equal.iter().map(|(_, index)| (*index, number)));
    }
    sort::sort(&mut numbers);
    let mut is_taken = alloc::vec![false; numbers.len()];
    let mut numbers = numbers.into_iter().peekable();
    let mut effective = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let mut own: [usize; 3] = [usize::MAX; 3];
        for slot in &mut own {
            let of_entry = numbers.next_if(|(at, _)| *at == index);
            *slot = of_entry.map_or(usize::MAX, |(_, number)| number);
        }
        // A skipped entry does not take its ids, so a later entry may have them.
        if !entry.is_empty && !own.iter().any(|number| is_taken.get(*number) == Some(&true)) {
            for number in own {
                is_taken.get_mut(number).into_iter().for_each(|taken| *taken = true);
            }
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

/// Finds for each entry the stored messages with its entry id or event key.
fn match_entries(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    entries: &[TranscriptEntry],
) -> Result<Vec<IdentityMatch>> {
    let mut lookups: Vec<EntryLookup> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(IdentityLookup::from_entry_id);
        let of_event = entry.event_key.as_deref().map(IdentityLookup::from_event_key);
        for lookup in of_entry.into_iter().chain(of_event) {
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
                let content = IdentityContent { said, ..IdentityContent::default() };
                found.add_host_id(record.seq, record.has_content(lookup, &content));
            }
        }
    }
    Ok(found)
}
