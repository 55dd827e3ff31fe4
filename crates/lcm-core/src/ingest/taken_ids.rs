//! Ids that are taken: messages that are not stored, because another message has their id.
//!
//! In: the entries of a list, and the seqs of the messages with their ids. Out: a notice, or an
//! error if most of the list would be lost. `append` and `reconcile` use this module.
//!
//! Ids of the host are authoritative, so a host that gives one id to two messages loses the second.
//! A shorter form of a stored text and another result of the same call do not count as lost.

use alloc::{format, string::String, vec::Vec};

use crate::storage::{message_mark::MessageMark, store_session::StoreSession};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, sort,
    },
    message::Role,
};

use super::{
    message_form,
    stored_line::{ComparedMessage, StoredLine},
    transcript::TranscriptEntry,
};

/// Most messages that are read beside the newest ones, whose marks the head has.
const READ_MAX: usize = 512;
/// Fewest lost messages that make an error. A host may correct a few messages.
const LOST_MIN: usize = 4;

/// The entries of a list whose ids are taken.
pub(super) struct TakenIds<'a> {
    /// Entries that are not skipped, with their indexes in the list of the caller.
    pub(super) entries: &'a [(usize, &'a TranscriptEntry)],
    /// For each entry, the seq of the message with its id; `None`: none is stored.
    pub(super) known: &'a [Option<u64>],
}

impl TakenIds<'_> {
    /// Returns the notice about entries whose id another message has, which says something else;
    /// `None`: there is none. The first `accepted` entries are known to be the stored ones.
    ///
    /// # Errors
    ///
    /// `exists`: most of the entries, and at least four, would be lost; errors of the store;
    /// `corrupt`.
    pub(super) fn find_notice(
        &self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
        accepted: usize,
    ) -> Result<Option<String>> {
        let mut lost = self.find_repeated();
        self.find_stored(session, line, accepted, &mut lost)?;
        sort::sort(&mut lost);
        lost.dedup();
        let Some(first) = lost.first().and_then(|place| self.entries.get(*place)) else {
            return Ok(None);
        };
        let (count, all) = (lost.len(), self.entries.len());
        let message = format!(
            "{count} of {all} messages, first `messages[{}]`, have the id of another message that \
             says something else",
            first.0
        );
        if count >= LOST_MIN && 2 * count > all {
            return Err(Error::new(
                ErrorCode::Exists,
                format!("{message}: give each message an id of its own, or none"),
            ));
        }
        Ok(Some(format!("id-taken: {message}; they are not stored")))
    }

    /// Finds entries with the id of an earlier entry that says something else.
    fn find_repeated(&self) -> Vec<usize> {
        let mut ids: Vec<(u8, &str, usize)> = Vec::new();
        for (place, (_, entry)) in self.entries.iter().enumerate() {
            ids.extend(entry.entry_id.as_deref().map(|id| (0, id, place)));
            ids.extend(entry.event_key.as_deref().map(|id| (1, id, place)));
        }
        sort::sort(&mut ids);
        let mark_at = |place: usize| self.entries.get(place).map(|(_, entry)| entry.mark.meaning);
        let mut lost = Vec::new();
        for group in ids.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
            let first = group.first().and_then(|(.., place)| mark_at(*place));
            let places = group.iter().map(|(.., place)| *place);
            lost.extend(places.filter(|place| mark_at(*place) != first));
        }
        lost
    }

    /// Adds the entries with the id of a stored message that says something else.
    fn find_stored(
        &self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
        accepted: usize,
        lost: &mut Vec<usize>,
    ) -> Result<()> {
        let places = self.known.iter().enumerate().skip(accepted);
        let mut unsure: Vec<(u64, usize)> = Vec::new();
        for (place, seq) in places.filter_map(|(place, seq)| Some((place, (*seq)?))) {
            let mark = line.mark_of(seq);
            let said = self.entries.get(place).map(|(_, entry)| entry.mark.meaning);
            if mark.is_none_or(|mark: &MessageMark| Some(mark.meaning) != said) {
                unsure.push((seq, place));
            }
        }
        sort::sort(&mut unsure);
        let newest = unsure.len().saturating_sub(READ_MAX);
        let unsure = unsure.get(newest..).unwrap_or(&[]);
        let mut seqs: Vec<u64> = unsure.iter().map(|(seq, _)| *seq).collect();
        seqs.dedup();
        let stored = line.read_stored(session, &seqs)?;
        for (seq, place) in unsure {
            let message = seqs.binary_search(seq).ok().and_then(|at| stored.get(at));
            let entry = self.entries.get(*place);
            if let (Some(message), Some((_, entry))) = (message, entry)
                && is_lost(entry, message)
            {
                lost.push(*place);
            }
        }
        Ok(())
    }
}

/// Returns whether an entry says something that the stored message with its id does not have.
fn is_lost(entry: &TranscriptEntry, message: &ComparedMessage) -> bool {
    if entry.mark.meaning == message.mark.meaning || entry.redacted_copy.is_some() {
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
