//! The summaries among the items of a context.
//!
//! In: context items. Out: references, keys or records of the summaries, in the order of the items.
//! Compaction and assembly use this module.

use alloc::{string::String, vec::Vec};

use lcm_text::base::{error::Result, tokens};

use crate::storage::{
    codec,
    context::{ContextItem, SummaryItem},
    history::MessageHistory,
    store_session::StoreSession,
    summary::{SourceRef, Summary},
};

/// Builds the context item of a summary from its record.
pub(crate) fn build_summary_item(source: SourceRef, record: &Summary) -> SummaryItem {
    SummaryItem {
        id: source.id,
        depth: record.depth,
        tokens: record.tokens,
        rendered_tokens: tokens::estimate(&record.render_xml(source.id)),
        bytes: source.bytes,
        seq_first: record.seq_first,
        seq_last: record.seq_last,
        is_provisional: record.is_provisional(),
    }
}

/// Lists references to the summaries among context items.
pub(crate) fn collect_source_refs(items: &[ContextItem]) -> Vec<SourceRef> {
    items
        .iter()
        .filter_map(|item| match item {
            ContextItem::Summary(summary) => {
                Some(SourceRef { id: summary.id, bytes: summary.bytes })
            }
            ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
        })
        .collect()
}

/// Lists the keys of the summaries among context items, with the sizes of their values in bytes.
pub(crate) fn summary_keys(
    history: &MessageHistory<'_>,
    items: &[ContextItem],
) -> Vec<(String, u32)> {
    let refs = collect_source_refs(items).into_iter();
    refs.map(|source| (history.keys.summary_key(source.id), source.bytes)).collect()
}

/// Reads the records of the summaries among context items.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn read_summaries(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
) -> Result<Vec<Summary>> {
    let wanted = summary_keys(history, items);
    let values = session.read_immutable(&wanted)?;
    wanted.iter().zip(values).map(|((key, _), value)| codec::decode(key, &value)).collect()
}
