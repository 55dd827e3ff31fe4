//! The newest remakes of source summaries: a provisional source may have been made again since.
//!
//! In: references to sources, and the record of remakes. Out: the newest record of each source.
//! Remakes and changes of the line use this module.

use alloc::vec::Vec;

use crate::storage::{
    keys::ConversationKeys,
    records::remakes::RemakeRecord,
    store_session::StoreSession,
    summary::{SourceRef, Summary},
    summary_records,
};
use lcm_text::base::error::Result;

/// The newest remake of a source of a condensed summary, or the source.
pub(crate) struct NewestSource {
    pub(crate) source: SourceRef,
    pub(crate) record: Summary,
    /// Whether this is a remake, made after the condensed summary.
    pub(crate) is_remade: bool,
}

/// Reads the newest remake of each source, or the source if it was not made again, in order.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn read_newest(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    remakes: &RemakeRecord,
    sources: &[SourceRef],
) -> Result<Vec<NewestSource>> {
    let newest = |source: &SourceRef| remakes.find_newest(source.id);
    let (kept, remade): (Vec<SourceRef>, Vec<SourceRef>) =
        sources.iter().partition(|source| newest(source) == source.id);
    let mut kept = summary_records::read_referenced_summaries(session, keys, &kept)?.into_iter();
    let remade: Vec<[u8; 8]> = remade.iter().map(newest).collect();
    let sized = summary_records::read_sized_summaries(session, keys, &remade)?;
    let mut out = Vec::new();
    for source in sources {
        let id = newest(source);
        if id == source.id {
            let record = kept.next();
            out.extend(record.map(|record| NewestSource {
                source: *source,
                record,
                is_remade: false,
            }));
        } else if let Some((record, bytes)) = sized.get(&id) {
            let source = SourceRef { id, bytes: *bytes };
            out.push(NewestSource { source, record: record.clone(), is_remade: true });
        } else {
            return Err(session.missing_record_error(&keys.summary_key(id)));
        }
    }
    Ok(out)
}
