//! Scope, order and limits of a search.

use crate::search::{score, time_window::TimeWindow};
use lcm_text::types::api::Timestamp;

/// Documents that a query searches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GrepScope {
    Messages,
    Summaries,
    /// Messages and summaries.
    Both,
    /// Texts of large payloads.
    Files,
}

/// Order of the hits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GrepSort {
    /// Newest first.
    Recency,
    /// Best score first; equal scores, and matches of a regular expression, newest first.
    Relevance,
    /// Best score first, where the score decreases with age.
    Hybrid,
}

/// Scope, order and limits of a search.
#[derive(Clone, Copy)]
pub(super) struct GrepBounds {
    pub(super) scope: GrepScope,
    pub(super) sort: GrepSort,
    /// Times of the documents that may be found.
    pub(super) window: TimeWindow,
    /// Most hits.
    pub(super) limit: usize,
    /// Messages shown before and after each hit.
    pub(super) neighbours: u64,
    /// Time of the call, for the age of documents.
    pub(super) now: Timestamp,
}

impl GrepBounds {
    /// Returns the sort key of a hit, greatest first. A match of a regular expression has no score
    /// and sorts by time.
    pub(super) fn rank_hit(&self, score: Option<u64>, time: Timestamp) -> u64 {
        match (self.sort, score) {
            (GrepSort::Relevance, Some(score)) => score,
            (GrepSort::Hybrid, Some(score)) => {
                score::decay_by_age(score, self.now.saturating_sub(time))
            }
            (GrepSort::Recency, _) | (_, None) => time,
        }
    }
}
