//! Ids of the host: which entries of a list are stored under their ids, and whose ids do not count.
//!
//! In: the entries of a list, and the messages with their ids. Out: the seq of each stored entry,
//! and a notice. `append` and `reconcile` use this module.
//!
//! A host may give one id to two messages: counters begin anew, an edited message keeps its id, an
//! agent has one id for every answer. Such an id does not count: the entry is compared by what it
//! says, so nothing is lost. A shorter form of a stored text and another result of the same call
//! are the message with their id.

use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    call::Call, head::ConversationHead, history::MessageHistory, records::withdrawals::Withdrawals,
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, sort},
    message::Role,
};

use super::{
    identity::IdentityMatch,
    message_form,
    stored_line::{ComparedMessage, StoredLine},
    transcript::TranscriptEntry,
};

/// Most messages that are read, the newest ones. An older one is another message.
const READ_MAX: usize = 512;

/// The stored messages of a list.
#[derive(Debug, Default)]
pub(super) struct StoredIds {
    /// For each entry, the seq of the message that it is by its id; `None`: its ids say nothing.
    pub(super) known: Vec<Option<u64>>,
    /// The notice about entries whose ids do not count; `None`: there are none.
    pub(super) notice: Option<String>,
}

/// Finds the stored entries of a list by their ids, and marks the entries whose ids do not count.
/// `found` has, for each entry, the messages with its ids.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn resolve_ids(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    (head, withdrawals): (&ConversationHead, &Withdrawals),
    entries: &mut [&mut TranscriptEntry],
    found: &[IdentityMatch],
) -> Result<StoredIds> {
    let mut known: Vec<Option<u64>> = found.iter().map(|found| found.stored).collect();
    let mut taken = find_repeated(entries);
    let others = found.iter().zip(&*entries).enumerate();
    let mut others: Vec<(u64, usize)> = others
        .filter(|(_, (found, entry))| found.stored.is_none() && !entry.is_empty)
        .filter_map(|(place, (found, _))| Some((found.other?, place)))
        .collect();
    if !others.is_empty() {
        sort::sort(&mut others);
        let line = StoredLine::new(MessageHistory::new(call, head), withdrawals);
        let mut seqs: Vec<u64> = others.iter().map(|(seq, _)| *seq).collect();
        seqs.dedup();
        let seqs = seqs.get(seqs.len().saturating_sub(READ_MAX)..).unwrap_or(&[]);
        let stored = line.read_stored(session, seqs)?;
        for (seq, place) in others {
            let message = seqs.binary_search(&seq).ok().and_then(|at| stored.get(at));
            let entry = entries.get(place);
            match message.zip(entry).is_none_or(|(message, entry)| says_more(entry, message)) {
                true => taken.push(place),
                false => known.get_mut(place).into_iter().for_each(|it| *it = Some(seq)),
            }
        }
    }
    sort::sort(&mut taken);
    taken.dedup();
    for place in &taken {
        known.get_mut(*place).into_iter().for_each(|seq| *seq = None);
        entries.get_mut(*place).into_iter().for_each(|entry| entry.is_id_taken = true);
    }
    let all = entries.iter().filter(|entry| !entry.is_empty).count();
    let notice = taken.first().map(|first| {
        format!(
            "id-taken: {} of {all} messages, first `messages[{first}]`, have the id of another \
             message that says something else; they are compared by what they say: give each \
             message an id of its own, or none",
            taken.len()
        )
    });
    Ok(StoredIds { known, notice })
}

/// Finds the entries that share an id with an entry that says something else.
fn find_repeated(entries: &[&mut TranscriptEntry]) -> Vec<usize> {
    let mut ids: Vec<(u8, &str, [u8; 8], usize)> = Vec::new();
    for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_empty) {
        let meaning = entry.whole_mark.meaning;
        ids.extend(entry.entry_id.as_deref().map(|id| (0, id, meaning, place)));
        ids.extend(entry.event_key.as_deref().map(|id| (1, id, meaning, place)));
    }
    sort::sort(&mut ids);
    let groups = ids.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1));
    let differs = |group: &&[(u8, &str, [u8; 8], usize)]| {
        group.first().map(|it| it.2) != group.last().map(|it| it.2)
    };
    groups.filter(differs).flatten().map(|(.., place)| *place).collect()
}

/// Returns whether an entry says something that the stored message with its id does not have: it
/// is no other form of that message.
fn says_more(entry: &TranscriptEntry, message: &ComparedMessage) -> bool {
    if entry.whole_mark.meaning == message.mark.meaning || entry.redacted_copy.is_some() {
        return false;
    }
    let said = entry.said.first().filter(|_| entry.said.len() == 1);
    let bytes = entry.text_bytes.map(|bytes| int::to_usize(bytes.into()));
    let (Some(said), Some(bytes), Some(stored)) = (said, bytes, message.said.as_deref()) else {
        return true;
    };
    let is_result = entry.role == Role::Tool && message.role == Role::Tool;
    let is_held = |text| message_form::find_rest(entry.role, text, stored).is_some();
    bytes > stored.len() || !(is_result || is_held((bytes, said.said)))
}
