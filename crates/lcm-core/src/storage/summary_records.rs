//! Reads of many summary records: pages, and records by reference or by id.
//!
//! In: a cursor, references, or ids. Out: a page of all summaries, or the stored summaries of the
//! references or ids. Only a read by reference knows the sizes of the values before it reads.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    codec,
    keys::ConversationKeys,
    store_session::{self, StoreSession},
    summary::{SourceRef, Summary},
};
use lcm_text::base::{error::Result, int, sort::SortedMap};

/// Summaries by id, each with the size of its encoded value in bytes.
pub(crate) type SizedSummaries = SortedMap<[u8; 8], (Summary, u32)>;

/// Most summaries by id of one host call: four values of at most 256 KiB fill the 1 MiB of a call.
const SUMMARIES_PER_READ: usize = 4;

/// A page of the summaries of a conversation, in the order of their keys.
pub(crate) struct SummaryPage {
    /// Summaries, each after its key, which is also the cursor that continues after the summary.
    pub(crate) summaries: Vec<(String, Summary)>,
    pub(crate) has_more: bool,
}

/// Reads the page of summaries after `cursor`, or the first page, of at most `bytes_max` bytes.
/// Returns `None` if `cursor` is not a key of this conversation's summaries.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
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

/// Reads the summaries of these references, in order.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn read_referenced_summaries(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    refs: &[SourceRef],
) -> Result<Vec<Summary>> {
    let wanted: Vec<(String, u32)> =
        refs.iter().map(|source| (keys.summary_key(source.id), source.bytes)).collect();
    let values = session.read_immutable(&wanted)?;
    wanted.iter().zip(values).map(|((key, _), value)| codec::decode(key, &value)).collect()
}

/// Reads the stored summaries among these ids, four per host call; ids without a record are
/// skipped.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
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

/// Reads the stored summaries among many ids by scanning all summaries of the conversation; ids
/// without a record are skipped.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
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
