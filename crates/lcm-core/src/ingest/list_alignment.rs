//! Alignment of a list with the line, for `append` and `reconcile` alike.
//!
//! In: the entries of a list and the seqs of the messages with their ids. Out: a decision about
//! each entry. A list is whole or the end of a whole list.

use alloc::vec::Vec;

use crate::storage::{
    call::Call, head::ConversationHead, history::MessageHistory, message_mark::hash_list,
    records::withdrawals::Withdrawals, store_session::StoreSession,
};
use lcm_text::base::{error::Result, int};

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN},
    line_diff::{LineComparison, LineDiff},
    list_decision::{LineRequest, ListDecision},
    stored_line::StoredLine,
    transcript::TranscriptEntry,
};

/// A list and what the caller knows of it.
pub(super) struct AlignmentRequest<'a> {
    /// The entries that an append does not skip.
    pub(super) entries: &'a [&'a TranscriptEntry],
    /// For each entry, the seq of the message with an id of the entry.
    pub(super) known: &'a [Option<u64>],
    /// Number of first entries that are known to be stored.
    pub(super) confirmed: usize,
    /// Revision at which the caller last saw the conversation; `None`: unknown.
    pub(super) seen_revision: Option<u64>,
}

/// Returns the running hash after each entry of a list.
pub(super) fn hash_entries(entries: &[&TranscriptEntry]) -> Vec<[u8; 16]> {
    let running = hash_list(entries.iter().flat_map(|entry| &entry.said));
    let ends = entries.iter().scan(0, |end, entry| {
        *end += entry.said.len();
        running.get(end.checked_sub(1)?).copied()
    });
    ends.collect()
}

/// Aligns a list with the line of the conversation and decides about each entry.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn align_list(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    withdrawals: &Withdrawals,
    list: &AlignmentRequest<'_>,
) -> Result<ListDecision> {
    let line = StoredLine::new(MessageHistory::new(call, head), withdrawals);
    let hashes = hash_entries(list.entries);
    let places = list.known.iter().zip(&hashes);
    let entries: Vec<AlignableEntry> = list
        .entries
        .iter()
        .zip(places)
        .map(|(entry, (known, list_hash))| AlignableEntry {
            mark: entry.mark,
            role: entry.role,
            list_hash: *list_hash,
            is_known: known.is_some(),
            position: known.and_then(|seq| line.position_of(seq)),
            is_discriminating: entry.is_discriminating,
            // An entry with an id of its own is another message, however alike the texts are.
            redacted_copy: entry.redacted_copy.filter(|_| !entry.has_host_id()),
        })
        .collect();
    let has_copies = entries.iter().any(|entry| entry.redacted_copy.is_some());
    let texts = match has_copies && line.count_messages() > 0 {
        true => line.read_newest_texts(session, line.newest_marks().len())?,
        false => Vec::new(),
    };
    let has_id = |index: usize| list.entries.get(index).is_some_and(|entry| entry.has_host_id());
    let comparison = LineComparison {
        line: &line,
        entries: &entries,
        confirmed: list.confirmed,
        texts: &texts,
        has_id: &has_id,
    };
    // Nothing but its id tells whether the only message of a list was said again.
    let diff = match line.count_messages() == 0 || entries.len() < 2 {
        true => LineDiff::from_ids(&entries),
        false => comparison.compare_list(session)?,
    };
    let request = LineRequest {
        line: &line,
        withdrawals,
        entries: &entries,
        diff: &diff,
        confirmed: list.confirmed,
        seen_revision: list.seen_revision,
    };
    request.decide_list(session)
}

/// Returns whether a list is remembered that is stored in a conversation of `messages` messages: it
/// has as many entries as the line has messages, or enough of its entries are evidence by
/// themselves.
pub(super) fn is_remembered(
    messages: u64,
    withdrawals: &Withdrawals,
    entries: &[&TranscriptEntry],
) -> bool {
    let anchors = entries.iter().filter(|entry| entry.is_discriminating).count();
    anchors >= INSIDE_ANCHORS_MIN
        || int::to_u64(entries.len()) >= withdrawals.count_in_line(messages)
}
