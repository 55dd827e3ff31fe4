//! Prefetch of the records that a context shows, with as few host calls as the bounds allow.
//!
//! In: the items that a context may show. Out: their records in the cache of the session.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::SummaryItem, history::MessageHistory, pack::PackRef, store_session::StoreSession,
};
use lcm_text::base::error::Result;

/// Records of a context to prefetch.
pub(crate) struct ContextPrefetch<'a> {
    history: &'a MessageHistory<'a>,
    /// Keys with the sizes of their values.
    wanted: Vec<(String, u32)>,
}

impl<'a> ContextPrefetch<'a> {
    /// Creates a prefetch without records.
    pub(crate) fn new(history: &'a MessageHistory<'a>) -> Self {
        Self { history, wanted: Vec::new() }
    }

    /// Adds the record of a summary.
    pub(crate) fn add_summary(&mut self, summary: &SummaryItem) {
        self.wanted.push(self.summary_entry(summary));
    }

    /// Returns whether the record of a summary was added.
    pub(crate) fn contains_summary(&self, summary: &SummaryItem) -> bool {
        self.wanted.contains(&self.summary_entry(summary))
    }

    /// Adds packs of messages.
    pub(crate) fn add_packs(&mut self, packs: &[PackRef]) {
        self.wanted.extend(self.history.list_pack_keys(packs));
    }

    /// Reads the records into the cache.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn read(self, session: &mut StoreSession<'_>) -> Result<()> {
        session.prefetch_records(self.history.keys, &self.wanted, &[])
    }

    fn summary_entry(&self, summary: &SummaryItem) -> (String, u32) {
        (self.history.keys.summary_key(summary.id), summary.bytes)
    }
}
