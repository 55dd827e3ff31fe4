//! Search for the messages that hold a large payload.
//!
//! Input: the id of a payload and its record. Output: the newest readable message that holds the
//! payload. Used by `describe` and by the search in files.
//! Elsewhere: reading the text of a payload ([`crate::storage::payload_text`]).

use alloc::vec::Vec;

use crate::{
    search::{
        corpus::Corpus,
        full_text::{self, FullTextContext, NeighbourHits},
        index_reader::SearchIndex,
        text_query::TextQuery,
        time_window::TimeWindow,
    },
    storage::{history::MessageHistory, records::grants, store_session::StoreSession},
};
use lcm_text::{
    base::{error::Result, sort},
    message::{
        self,
        large_payload::{self, PayloadRecord},
    },
};

/// Most messages that one call of [`for_each_mention`] reads. For each message, one pack may be
/// inflated in about 0.15 ms, so a call takes less than a tenth of a second.
const MENTIONS_MAX: usize = 512;
/// Number of messages that are read together.
const MENTIONS_PER_READ: usize = 16;

/// Finds the newest message that holds a payload and is within `spans` (`None`: all messages).
///
/// The payload record `file` names the newest message that holds the payload. If that message is
/// not within `spans`, the newest 512 older messages within `spans` that have any large payload are
/// checked. `None`: none of the checked messages holds this payload.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(crate) fn find_newest_holder(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    file: &PayloadRecord,
    spans: Option<&[(u64, u64)]>,
) -> Result<Option<u64>> {
    ensure_not_newer_than_head(session, history, id, file)?;
    if grants::is_within(spans, file.seq, file.seq) {
        return Ok(Some(file.seq));
    }
    let index = SearchIndex::open(session, history.keys, history.head)?;
    let query = TextQuery::for_payloads(None);
    let search = FullTextContext::new(history, &index, &query, TimeWindow::default());
    let gathered = full_text::gather_matches(session, &search, Corpus::Messages)?;
    let statistics = &gathered.statistics;
    let ranked = gathered.rank_documents(session, &search, statistics, NeighbourHits::Exclude)?;
    let mut seqs = ranked.documents;
    seqs.retain(|seq| *seq < file.seq && grants::is_within(spans, *seq, *seq));
    sort::sort_by(&mut seqs, &mut |a, b| b.cmp(a));
    find_holder_among(session, history, id, &seqs)
}

/// Checks that the message that a payload record names is not newer than the head.
///
/// # Errors
///
/// `conflict`: the payload was stored again since the head was read; `corrupt`: the message does
/// not exist.
pub(crate) fn ensure_not_newer_than_head(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    file: &PayloadRecord,
) -> Result<()> {
    match file.seq > history.head.messages {
        true => Err(session.missing_record_error(&history.keys.payload_key(id))),
        false => Ok(()),
    }
}

/// Returns the first message of `seqs` that holds a payload; only the first 512 are checked.
/// `None`: none of the checked messages holds the payload.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn find_holder_among(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    seqs: &[u64],
) -> Result<Option<u64>> {
    let mut mentions = Vec::new();
    for_each_mention(session, history, seqs, &mut |seq, ids| {
        mentions.extend(ids.contains(&id).then_some(seq));
    })?;
    for seq in mentions {
        if contains_payload(session, history, seq, id)? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// Returns whether a message holds a payload. `id` must occur in the rendered text of the message:
/// either the message holds the payload, or its text quotes the id of a payload that only another
/// message holds.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn contains_payload(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    id: [u8; 8],
) -> Result<bool> {
    for placed in history.read_messages_at(session, &[seq])? {
        let Some(placeholder) = &placed.stored.placeholder else { continue };
        let raw = history.read_text(session, &placed.stored)?;
        if !raw.contains(&large_payload::format_name(id)) {
            return Ok(true);
        }
        let rebuilt = message::parse(placed.dialect, &raw).ok().and_then(|message| {
            let (tokens_min, root) = (placeholder.payload_tokens_min, history.keys.key_prefix());
            large_payload::build_placeholder(placed.dialect, &raw, &message, tokens_min, root)
        });
        return Ok(
            rebuilt.is_some_and(|rebuilt| rebuilt.files.iter().any(|(known, _)| *known == id))
        );
    }
    Ok(false)
}

/// Calls `take` for each of the first 512 messages of `seqs`, with the seq and the payload ids in
/// the rendered text. These are the ids of the message's own payloads, and ids that the text
/// quotes.
///
/// A seq without a message is skipped.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn for_each_mention(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seqs: &[u64],
    take: &mut dyn FnMut(u64, Vec<[u8; 8]>),
) -> Result<()> {
    let seqs = seqs.get(..MENTIONS_MAX.min(seqs.len())).unwrap_or_default();
    for chunk in seqs.chunks(MENTIONS_PER_READ) {
        let mut ascending = chunk.to_vec();
        sort::sort_numbers(&mut ascending);
        let placed = history.read_messages_at(session, &ascending)?;
        for seq in chunk {
            let at = placed.binary_search_by_key(seq, |placed| placed.seq).ok();
            let Some(placed) = at.and_then(|at| placed.get(at)) else { continue };
            let shown = history.read_rendered_text(session, &placed.stored)?;
            take(*seq, large_payload::find_ids(&shown));
        }
    }
    Ok(())
}
