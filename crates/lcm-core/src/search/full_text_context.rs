//! Arguments that every step of a full-text search needs: conversation, index, query and times.

use super::{index_reader::SearchIndex, text_query::TextQuery, time_window::TimeWindow};
use crate::storage::history::MessageHistory;

/// Conversation, index, query and time window of a search: the arguments of every step.
#[derive(Clone, Copy)]
pub(crate) struct FullTextContext<'s> {
    pub(super) history: &'s MessageHistory<'s>,
    pub(super) index: &'s SearchIndex,
    pub(super) query: &'s TextQuery,
    /// Times that both the caller and the query allow.
    pub(super) window: TimeWindow,
}

impl<'s> FullTextContext<'s> {
    /// Creates the context of a search for documents whose time is within `bounds` and within the
    /// time window of the query.
    pub(crate) fn new(
        history: &'s MessageHistory<'s>,
        index: &'s SearchIndex,
        query: &'s TextQuery,
        bounds: TimeWindow,
    ) -> Self {
        Self { history, index, query, window: bounds.intersection(&query.window) }
    }
}
