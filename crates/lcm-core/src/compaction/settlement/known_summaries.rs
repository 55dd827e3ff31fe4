//! Finds summaries that are stored already. A summary leaves the context when a later list of
//! messages takes another way within it; its messages are raw again. A new compaction may then make
//! the same text of the same sources, which is the same summary, with the same id.
//!
//! In: a summary to commit. Out: the stored record to use in its place, so that no summary is
//! counted, indexed or written twice.

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    changes::Changes,
    records::remakes::RemakeRecord,
    store_session::StoreSession,
    summary::{SourceRef, Summary},
    summary_records::{self, SizedSummaries},
};
use lcm_text::base::error::Result;

use super::super::splice::SourceSplice;

/// The summaries of a commit that are stored already.
pub(super) struct KnownSummaries<'s> {
    known: SizedSummaries,
    /// Id of the summary, or of its newest remake.
    newest: [u8; 8],
    remakes: &'s RemakeRecord,
}

impl<'s> KnownSummaries<'s> {
    /// Reads the stored summaries among `record` and the bridges. A summary can be stored already
    /// only if summaries left the context.
    ///
    /// # Errors
    ///
    /// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(super) fn read_known(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        splice: &'s SourceSplice,
        record: &Summary,
    ) -> Result<Self> {
        let (id, remakes) = (record.id(), &splice.remakes);
        let newest = remakes.find_newest(id);
        let mut ids: Vec<[u8; 8]> = Vec::new();
        if !splice.is_remake && remakes.has_exits() {
            ids.extend(splice.gathered.bridges.iter().map(Summary::id));
            ids.extend([id, newest]);
            ids.dedup();
        }
        let known = summary_records::read_sized_summaries(session, call.keys, &ids)?;
        Ok(Self { known, newest, remakes })
    }

    /// Writes the bridges that are not stored yet, and returns them with the sizes of their values.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(super) fn write_new_bridges<'b>(
        &self,
        call: Call<'_>,
        bridges: &'b [Summary],
        changes: &mut Changes,
    ) -> Result<Vec<(&'b Summary, u32)>> {
        let mut written = Vec::new();
        for bridge in bridges.iter().filter(|bridge| !self.known.contains_key(&bridge.id())) {
            let bytes = changes.write_record(&Summary::key(call.keys, bridge.id()), bridge)?;
            written.push((bridge, bytes));
        }
        Ok(written)
    }

    /// Returns the summary that takes the place of the sources: its newest stored remake, the
    /// stored summary itself, or `record`, which is added to `written`.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the record is too large.
    pub(super) fn choose_record(
        &self,
        call: Call<'_>,
        record: Summary,
        written: &mut Changes,
    ) -> Result<(Summary, SourceRef)> {
        if let Some((stored, bytes)) = self.known.get(&self.newest) {
            return Ok((stored.clone(), SourceRef { id: self.newest, bytes: *bytes }));
        }
        let id = record.id();
        let bytes = written.write_record(&Summary::key(call.keys, id), &record)?;
        Ok((record, SourceRef { id, bytes }))
    }

    /// Returns the record of remakes without the exits of the summaries that are stored already,
    /// because this commit puts them into the context again; `None`: the record does not change.
    pub(super) fn take_back_live(&self) -> Option<RemakeRecord> {
        let live: Vec<[u8; 8]> = self.known.as_entries().iter().map(|(id, _)| *id).collect();
        let mut remakes = self.remakes.clone();
        remakes.take_back(&live);
        (remakes.count_entries() != self.remakes.count_entries()).then_some(remakes)
    }
}
