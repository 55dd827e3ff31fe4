//! Rendered summaries in a list: a host whose history is the assembled context hands them back.
//!
//! In: the entries of a list, with the parts that begin like a rendered summary or are placeholder
//! turns. Out: the entries without the parts that are what the engine renders for the id, compared
//! by hash, and without placeholder turns. An entry that is stored with these parts keeps them, but
//! the running hash of the list leaves them out. Anything else stays a message: nobody can hide
//! words behind the id of a summary.

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    head::ConversationHead,
    record_key::RecordKey,
    store_session::StoreSession,
    summary::{self, Summary},
};
use lcm_text::{
    base::{error::Result, sort},
    message::{
        Role,
        meaning::{self, PLACEHOLDER_ID, SaidPart},
    },
};

use super::transcript::{SummaryPart, TranscriptEntry};

/// Most summaries of one list that are read.
const SUMMARIES_MAX: usize = 1_024;

/// Removes rendered summaries and placeholder turns from the entries of users. An entry without
/// other parts becomes empty. Two kinds of entries keep these parts, and only the running hash of
/// the list leaves them out: an entry that equals one of the newest messages, summary included, and
/// every entry in a conversation without messages.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn strip_rendered<'a>(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    entries: impl Iterator<Item = &'a mut TranscriptEntry>,
) -> Result<()> {
    let has_summary =
        |entry: &&mut TranscriptEntry| !entry.summaries.is_empty() && entry.role == Role::User;
    let entries: Vec<&mut TranscriptEntry> = entries.filter(has_summary).collect();
    if entries.is_empty() {
        return Ok(());
    }
    let parts = entries.iter().flat_map(|entry| &entry.summaries);
    let mut ids: Vec<[u8; 8]> =
        parts.filter_map(|part| summary::parse_summary_id(&part.id).ok()).collect();
    sort::sort_and_dedup(&mut ids);
    // A conversation without messages has no summaries.
    ids.truncate(if head.messages == 0 { 0 } else { SUMMARIES_MAX });
    let keys: Vec<RecordKey<Summary>> = ids.iter().map(|id| Summary::key(call.keys, *id)).collect();
    let (offsets, render) = (&call.config.time_offsets, summary::choose_markup(call.config));
    let mut rendered: Vec<([u8; 8], [u8; 16])> = Vec::new();
    for (id, record) in ids.iter().zip(session.read_records(&keys)?) {
        let Some(record) = record else { continue };
        let element = record.render_element(*id, offsets, render);
        rendered.push((*id, meaning::hash_text(Role::User, &meaning::normalize_text(&element))));
    }
    let is_rendered = |part: &SummaryPart, said: &SaidPart| {
        let id = summary::parse_summary_id(&part.id).ok();
        part.id == PLACEHOLDER_ID
            || rendered.iter().any(|(known, hash)| Some(*known) == id && *hash == said.said)
    };
    for entry in entries {
        let mut marks = head.recent_marks.iter();
        let is_stored = marks.any(|mark| mark.is_same_message(&entry.whole_mark));
        let own = entry.list_own_parts(&is_rendered);
        if is_stored || head.messages == 0 {
            entry.own_said = Some(own);
        } else if own.len() < entry.said.len() {
            entry.keep_parts(own);
        }
    }
    Ok(())
}
