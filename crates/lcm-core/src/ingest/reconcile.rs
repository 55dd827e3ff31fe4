//! Reconcile: finds the entries of a whole transcript that the store lacks.
//!
//! In: the entries that [`identify`](super::identify) returned for the messages. Out: a JSON plan
//! with the ranges of missing entries. The engine calls [`reconcile`] for the export of this name.
//!
//! The first method that applies finds the stored entries:
//!
//! 1. The running hash proves that the transcript begins with all stored messages.
//! 2. In mode `new`, only ids count.
//! 3. If an id of an entry is stored, [`anchor_alignment`] aligns the other entries.
//! 4. Else the entries are compared by content ([`TranscriptComparison`]).

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    head::{ConversationHead, LoadedHead},
    history::MessageHistory,
    pack::advance_frontier,
    record_key::RecordKey,
    records::identity::{IdentityLookup, StoredIdentity},
    store_session::StoreSession,
};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::{self, AlignableEntry},
    anchor_alignment, idempotency,
    reconcile_plan::PlanInput,
    transcript::{TranscriptEntry, parse_transcript},
    transcript_diff::{AlignedRun, TranscriptComparison},
};

/// Finds the entries of a transcript that are not stored and returns a JSON plan.
///
/// # Errors
///
/// `invalid-input`: a wrong or unknown field, or more confirmed than entries; `limit-exceeded`: too
/// many entries; `exists`: a transcript of which no id is stored was changed among stored messages,
/// or a likely replay is refused; errors of the store.
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
    let entries = &*transcript.entries;
    let effective = &*select_effective(entries);
    let input = PlanInput { config: call.config, head, transcript: &transcript, effective };
    // Entries that `append` skips are never missing.
    let is_skipped = |index: usize| effective.binary_search(&index).is_err();
    if let Some(from) = match_stored_prefix(effective, entries, head).filter(|_| !transcript.is_new)
    {
        return input.build_plan("prefix", &|index| index < from || is_skipped(index));
    }
    let known = read_known_seqs(session, call, entries)?;
    if transcript.is_new {
        let is_known = |index: usize| known.get(index).is_some_and(Option::is_some);
        return input.build_plan("ids", &|index| is_known(index) || is_skipped(index));
    }
    let to_alignable = |index: &usize| {
        let seq = known.get(*index).copied().flatten();
        entries.get(*index).map(|entry| entry.to_alignable(seq))
    };
    let alignable: Vec<AlignableEntry> = effective.iter().filter_map(to_alignable).collect();
    let history = MessageHistory::new(call, head);
    if head.messages == 0 {
        return input.build_plan("none", &is_skipped);
    }
    if alignable.iter().any(|entry| entry.seq.is_some()) {
        let has_id = |number: usize| {
            let entry = effective.get(number).and_then(|index| entries.get(*index));
            entry.is_some_and(TranscriptEntry::has_host_id)
        };
        let seqs = anchor_alignment::align_entries(session, &history, &alignable, &has_id)?;
        let is_by_id = alignable.iter().zip(&seqs).all(|(entry, seq)| entry.seq == *seq);
        let is_missing = |(index, seq): (&usize, &Option<u64>)| seq.is_none().then_some(*index);
        let missing: Vec<usize> = effective.iter().zip(&seqs).filter_map(is_missing).collect();
        let is_stored = |index: usize| missing.binary_search(&index).is_err();
        return input.build_plan(if is_by_id { "ids" } else { "alignment" }, &is_stored);
    }
    let texts = match alignable.iter().any(|entry| entry.redacted_copy.is_some()) {
        true => alignment::read_newest_texts(session, &history, head.recent_hashes.len())?,
        false => Vec::new(),
    };
    let comparison = TranscriptComparison {
        history: &history,
        texts: &texts,
        entries: &alignable,
        seen: effective.partition_point(|index| *index < transcript.confirmed_count),
        indexes: effective,
        transcript_length: entries.len(),
    };
    let diff = comparison.diff_transcript(session)?;
    let is_within = |index: usize| {
        let number = effective.binary_search(&index);
        let within = |run: &AlignedRun| {
            number.is_ok_and(|number| (run.start..run.start + run.length).contains(&number))
        };
        diff.runs.iter().any(within)
    };
    input.build_plan(diff.found_by, &|index| is_skipped(index) || is_within(index))
}

/// Kind of an id, the id, and the hash of the entry if the id counts only together with equal
/// content; else empty.
type EntryIdentity<'a> = (u8, &'a str, &'a [u8]);

/// Returns the indexes of the entries that `append` would store in an empty conversation: without
/// failed turns, and without entries that repeat an id of an earlier entry.
fn select_effective(entries: &[TranscriptEntry]) -> Vec<usize> {
    let mut ids: Vec<(EntryIdentity<'_>, usize)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = [
            (0, entry.entry_id.as_deref(), &[][..]),
            (1, entry.event_key.as_deref(), &[][..]),
            (2, entry.call_id.as_deref(), entry.hash.as_slice()),
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

/// Returns the index after the entries that are stored, if the transcript begins with all stored
/// messages; `None`: it does not.
fn match_stored_prefix(
    effective: &[usize],
    entries: &[TranscriptEntry],
    head: &ConversationHead,
) -> Option<usize> {
    let count = int::to_usize(head.messages);
    let frontier = compute_frontier(effective.get(..count)?, entries);
    let index_after = || match count.checked_sub(1) {
        None => Some(0),
        Some(last) => effective.get(last).map(|index| index + 1),
    };
    (frontier == head.frontier).then(index_after).flatten()
}

fn compute_frontier(indexes: &[usize], entries: &[TranscriptEntry]) -> [u8; 16] {
    let entries = indexes.iter().filter_map(|index| entries.get(*index));
    entries.fold([0; 16], |running, entry| advance_frontier(&running, &entry.hash))
}

/// An identity of an entry, with the key of its record.
struct EntryLookup {
    key: RecordKey<StoredIdentity>,
    /// Index of the entry.
    index: usize,
    lookup: IdentityLookup,
}

/// Reads for each entry the seq of the stored message with its entry id or event key; `None`:
/// neither is stored.
fn read_known_seqs(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    entries: &[TranscriptEntry],
) -> Result<Vec<Option<u64>>> {
    let mut lookups: Vec<EntryLookup> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(IdentityLookup::from_entry_id);
        let of_event = entry.event_key.as_deref().map(IdentityLookup::from_event_key);
        for lookup in of_entry.into_iter().chain(of_event) {
            let key = StoredIdentity::key(call.keys, &lookup);
            lookups.push(EntryLookup { key, index, lookup });
        }
    }
    let mut seqs = alloc::vec![None; entries.len()];
    sort::sort_by(&mut lookups, &mut |left, right| left.key.name().cmp(right.key.name()));
    let groups = || lookups.chunk_by(|left, right| left.key.name() == right.key.name());
    let keys: Vec<RecordKey<StoredIdentity>> =
        groups().filter_map(|group| Some(group.first()?.key.clone())).collect();
    for (record, group) in session.read_records(&keys)?.into_iter().zip(groups()) {
        let Some(record) = record else { continue };
        for EntryLookup { index, lookup, .. } in group {
            if let Some(slot) = seqs.get_mut(*index)
                && record.matches_lookup(lookup)
            {
                *slot = Some(record.seq);
            }
        }
    }
    Ok(seqs)
}
