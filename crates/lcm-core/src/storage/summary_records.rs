//! Reads of summary records whose sizes are unknown: pages of all summaries, and records by id.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    codec,
    keys::ConversationKeys,
    store_session::{self, StoreSession},
    summary::Summary,
};
use lcm_text::base::{error::Result, int, sort::SortedMap};

/// Summaries by id, with the sizes of their records.
pub(crate) type SizedSummaries = SortedMap<[u8; 8], (Summary, u32)>;

/// Summaries of one read. Their sizes are unknown; four values at their bound fill a read.
const SUMMARIES_PER_READ: usize = 4;

/// A page of the summaries of a conversation, in the order of their keys.
pub(crate) struct SummaryPage {
    /// Summaries with the cursor that continues after each.
    pub(crate) summaries: Vec<(String, Summary)>,
    pub(crate) has_more: bool,
}

/// Reads a page of summaries; `None`: the cursor is not a cursor of this conversation's summaries.
///
/// # Errors
///
/// `corrupt`; errors of the store.
pub(crate) fn read_summary_page(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<Option<SummaryPage>> {
    let (first, end) = keys.record_range("s");
    let start = cursor.map_or_else(|| first.clone(), store_session::successor_key);
    if start < first || start >= end {
        return Ok(None);
    }
    let (entries, has_more) = session.scan_page(&start, &end, bytes_max)?;
    let mut summaries = Vec::new();
    for entry in entries {
        let record = codec::decode(&entry.key, &entry.value)?;
        summaries.push((entry.key, record));
    }
    Ok(Some(SummaryPage { summaries, has_more }))
}

/// Reads the stored summaries of these ids, few at a time.
///
/// # Errors
///
/// `corrupt`; errors of the store.
pub(crate) fn read_sized_summaries(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    ids: &[[u8; 8]],
) -> Result<SizedSummaries> {
    let mut found = SizedSummaries::default();
    for ids in ids.chunks(SUMMARIES_PER_READ) {
        let names: Vec<String> = ids.iter().map(|id| keys.summary_key(*id)).collect();
        for ((id, key), value) in ids.iter().zip(&names).zip(session.read_uncached(&names)?) {
            let Some(value) = value else { continue };
            found.insert(*id, (codec::decode(key, &value)?, int::to_u32(value.len())));
        }
    }
    Ok(found)
}

/// Reads the stored summaries of many ids in pages over all summaries of the conversation.
///
/// # Errors
///
/// `corrupt`; errors of the store.
pub(crate) fn scan_sized_summaries(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    ids: impl Iterator<Item = [u8; 8]>,
) -> Result<SizedSummaries> {
    let mut wanted: SortedMap<String, [u8; 8]> = SortedMap::default();
    for id in ids {
        wanted.insert(keys.summary_key(id), id);
    }
    let mut found = SizedSummaries::default();
    let (start, end) = keys.record_range("s");
    session.scan_range(&start, &end, &mut |key, value| {
        if let Some(id) = wanted.get(key) {
            found.insert(*id, (codec::decode(key, value)?, int::to_u32(value.len())));
        }
        Ok(())
    })?;
    Ok(found)
}
