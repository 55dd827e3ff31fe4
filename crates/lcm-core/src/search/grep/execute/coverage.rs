//! Coverage: the documents that a search may return. These are the documents within the ranges of
//! messages that the search may read, without summaries that were made again or gave way to their
//! sources.

use alloc::{string::String, vec::Vec};

use crate::{
    search::{
        corpus::Corpus, grep::searched_conversation::SearchedConversation,
        index_reader::SearchIndex,
    },
    storage::{
        codec,
        records::{grants, remakes::RemakeRecord},
        store_session::StoreSession,
        summary::Summary,
    },
};
use lcm_text::base::{error::Result, sort};

/// Returns whether a search may not return some documents of a corpus: those outside of the ranges,
/// and summaries that were made again or gave way to their sources.
pub(super) fn is_limited(conversation: &SearchedConversation, corpus: Corpus) -> bool {
    let has_remakes = conversation.loaded.head.remakes > 0;
    conversation.spans.is_some() || (has_remakes && corpus == Corpus::Summaries)
}

/// Returns for each document (ascending) whether a search may return the document. One of the
/// ranges must contain the document, a summary with all its messages. A summary must not have been
/// made again, nor have given way to its sources.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(super) fn check_coverage(
    session: &mut StoreSession<'_>,
    conversation: &SearchedConversation,
    index: &SearchIndex,
    corpus: Corpus,
    documents: &[u64],
) -> Result<Vec<bool>> {
    let spans = conversation.spans.as_deref();
    let is_within = |first, last| grants::is_within(spans, first, last);
    if corpus == Corpus::Messages {
        return Ok(documents.iter().map(|seq| is_within(*seq, *seq)).collect());
    }
    let rows = index.read_summaries(session, documents)?;
    let (keys, head) = (&conversation.keys, &conversation.loaded.head);
    let mut hidden = RemakeRecord::read(session, keys, head)?.list_hidden();
    sort::sort(&mut hidden);
    let mut covered: Vec<bool> =
        rows.iter().map(|(id, _)| hidden.binary_search(id).is_err()).collect();
    if spans.is_none() {
        return Ok(covered);
    }
    let keys = index.conversation_keys();
    let records: Vec<(String, u32)> =
        rows.iter().map(|(id, bytes)| (keys.summary_key(*id), *bytes)).collect();
    let values = session.read_immutable_uncached(&records)?;
    for ((covered, (key, _)), value) in covered.iter_mut().zip(&records).zip(values) {
        let record: Summary = codec::decode(key, &value)?;
        *covered &= is_within(record.seq_first, record.seq_last);
    }
    Ok(covered)
}
