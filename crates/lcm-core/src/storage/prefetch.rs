//! Prefetch of the summaries and packs that an assembly may need, in few host calls.
//!
//! In: summary items and pack references. Out: their values in the cache of the instance, from
//! which later reads of the same call take them.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::SummaryItem, history::MessageHistory, pack::PackRef, store_session::StoreSession,
};
use lcm_text::base::error::Result;

/// A list of summaries and packs to read into the cache.
pub(crate) struct ContextPrefetch<'a> {
    history: &'a MessageHistory<'a>,
    /// Keys with the sizes of their values in bytes.
    wanted: Vec<(String, u32)>,
}

impl<'a> ContextPrefetch<'a> {
    /// Creates an empty list.
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

    /// Reads the listed records into the cache; a missing record is skipped.
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
