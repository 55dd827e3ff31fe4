//! Coverage: whether documents lie within the ranges of messages that may be found.

use alloc::{string::String, vec::Vec};

use crate::{
    search::{corpus::Corpus, index_reader::SearchIndex},
    storage::{codec, records::grants, store_session::StoreSession, summary::Summary},
};
use lcm_text::base::error::Result;

/// Returns for each document (ascending) whether one of the ranges contains the document. A summary
/// must lie within one range with all its messages.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(super) fn check_coverage(
    session: &mut StoreSession<'_>,
    index: &SearchIndex,
    corpus: Corpus,
    spans: &[(u64, u64)],
    documents: &[u64],
) -> Result<Vec<bool>> {
    let is_within = |first, last| grants::is_within(Some(spans), first, last);
    if corpus == Corpus::Messages {
        return Ok(documents.iter().map(|seq| is_within(*seq, *seq)).collect());
    }
    let rows = index.read_summaries(session, documents)?;
    let records: Vec<(String, u32)> = rows
        .iter()
        .map(|(id, bytes)| (index.conversation_keys().summary_key(*id), *bytes))
        .collect();
    let mut covered = Vec::with_capacity(records.len());
    for ((key, _), value) in records.iter().zip(session.read_immutable_uncached(&records)?) {
        let record: Summary = codec::decode(key, &value)?;
        covered.push(is_within(record.seq_first, record.seq_last));
    }
    Ok(covered)
}
