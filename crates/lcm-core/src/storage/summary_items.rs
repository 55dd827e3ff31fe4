//! The summaries among the items of a context: their references, keys and records.

use alloc::{string::String, vec::Vec};

use lcm_text::base::error::Result;

use crate::storage::{
    codec,
    context::Item,
    history::History,
    store_session::Reader,
    summary::{SourceRef, Summary},
};

/// References to the summaries among items.
pub(crate) fn source_refs(items: &[Item]) -> Vec<SourceRef> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Summary(summary) => Some(SourceRef { id: summary.id, bytes: summary.bytes }),
            Item::Run(_) | Item::Withdrawn { .. } => None,
        })
        .collect()
}

/// Keys of the summaries among items, with the sizes of their records.
pub(crate) fn summary_keys(history: &History<'_>, items: &[Item]) -> Vec<(String, u32)> {
    let refs = source_refs(items).into_iter();
    refs.map(|source| (history.keys.summary(source.id), source.bytes)).collect()
}

/// The records of the summaries among items.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn read_summaries(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    items: &[Item],
) -> Result<Vec<Summary>> {
    let wanted = summary_keys(history, items);
    let values = reader.immutable(&wanted)?;
    wanted.iter().zip(values).map(|((key, _), value)| codec::decode(key, &value)).collect()
}
