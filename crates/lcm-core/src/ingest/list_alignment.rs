//! Alignment of a list with the line, for `append` and `reconcile` alike.
//!
//! In: the entries of a list and the seqs of the messages with their ids. Out: a decision about
//! each entry. A list is whole or the end of a whole list. Its leading system messages are not
//! compared with the line: [`super::system_messages`] decides about them.

use alloc::{string::String, vec::Vec};
use core::cell::Cell;

use crate::storage::{
    call::Call,
    head::ConversationHead,
    history::MessageHistory,
    message_mark::advance_list,
    records::{
        system_slot::{count_leading, is_begun},
        withdrawals::Withdrawals,
    },
    store_session::StoreSession,
};
use lcm_text::base::{error::Result, int};

use super::{
    alignment::AlignableEntry,
    line_change::ListStart,
    line_diff::LineComparison,
    list_decision::{EntryOutcome, LineRequest, ListDecision},
    stored_line::StoredLine,
    system_messages::LeadRequest,
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
    /// Seq up to which the caller has seen every message; `None`: unknown.
    pub(super) seq_seen: Option<u64>,
    /// Returns what an entry says, if that is one text; `None`: something else, or only hashes are
    /// known.
    pub(super) text_of: &'a dyn Fn(usize) -> Option<String>,
}

/// Returns the running hash after each entry of a list.
fn hash_entries(entries: &[&TranscriptEntry]) -> Vec<[u8; 16]> {
    let advance = |running: &mut [u8; 16], entry: &&TranscriptEntry| {
        *running = advance_list(running, &entry.said, entry.mark.id);
        Some(*running)
    };
    entries.iter().scan([0; 16], advance).collect()
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
    let has_no_message = !is_begun(head);
    let lead = list.count_lead(has_no_message);
    let (leading, compared) = list.entries.split_at(lead);
    let entries = list.build_entries(lead, &line);
    let has_copies = entries.iter().any(|entry| entry.redacted_copy.is_some());
    let texts = match has_copies && line.count_messages() > 0 {
        true => line.read_newest_texts(session, line.newest_marks().len())?,
        false => Vec::new(),
    };
    let has_id = |index: usize| compared.get(index).is_some_and(|entry| entry.has_host_id());
    let confirmed = list.confirmed.saturating_sub(lead);
    let comparison = LineComparison {
        line: &line,
        entries: &entries,
        confirmed,
        texts: &texts,
        has_id: &has_id,
        text_of: &|index| (list.text_of)(lead + index),
    };
    // Nothing but its id tells whether the only message of a list was said again.
    let diff = match line.count_messages() == 0 || list.entries.len() < 2 || entries.is_empty() {
        true => comparison.compare_ids(session)?,
        false => comparison.compare_list(session)?,
    };
    let request = LineRequest {
        line: &line,
        withdrawals,
        entries: &entries,
        diff: &diff,
        confirmed,
        seq_seen: list.seq_seen,
    };
    let mut decision = request.decide_list(session)?;
    // The line was compared without the system messages: with them, one entry is a list.
    if lead > 0 && decision.found_by == "none" && decision.outcomes.contains(&EntryOutcome::New) {
        decision.start = ListStart::Unplaced;
    }
    let of_lead = LeadRequest {
        line: &line,
        diff: &diff,
        entries: leading,
        has_no_message,
        text_of: list.text_of,
    };
    decision.outcomes.splice(..0, of_lead.decide_lead(session)?);
    Ok(decision)
}

impl AlignmentRequest<'_> {
    /// Builds the entries after the first `lead` as they are compared with the line.
    fn build_entries(&self, lead: usize, line: &StoredLine<'_>) -> Vec<AlignableEntry> {
        let compared = self.entries.get(lead..).unwrap_or(&[]);
        let hashes = hash_entries(compared);
        let places = self.known.iter().skip(lead).zip(hashes);
        let entries = compared.iter().zip(places);
        let build = |(entry, (known, list_hash)): (&&TranscriptEntry, (&Option<u64>, _))| {
            AlignableEntry {
                mark: entry.mark,
                role: entry.role,
                text: entry.text_bytes.and_then(|bytes| match &*entry.said {
                    [part] => Some((int::to_usize(bytes.into()), part.said)),
                    _ => None,
                }),
                list_hash,
                known_seq: *known,
                position: known.and_then(|seq| line.position_of(seq)),
                is_discriminating: entry.is_discriminating,
                // An entry with an id of its own is another message, however alike the texts are.
                redacted_copy: entry.redacted_copy.filter(|_| !entry.has_host_id()),
                is_id_taken: entry.is_id_taken,
                may_be_form: Cell::new(entry.is_other_form),
            }
        };
        entries.map(build).collect()
    }

    /// Counts the first entries that may fill the slot: leading system messages of which no id is
    /// stored. A list of nothing else may fill the slot only where `has_no_message`.
    fn count_lead(&self, has_no_message: bool) -> usize {
        let unknown = self.known.iter().take_while(|known| known.is_none()).count();
        let lead = count_leading(self.entries.iter().map(|entry| entry.role)).min(unknown);
        if lead == self.entries.len() && !has_no_message { 0 } else { lead }
    }
}
