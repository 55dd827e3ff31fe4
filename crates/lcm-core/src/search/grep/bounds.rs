//! Scope, order and limits of a search.

use crate::search::{score, time_window::TimeWindow};
use lcm_text::types::api::Timestamp;

/// Documents that a query searches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GrepScope {
    Messages,
    Summaries,
    Both,
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
    pub(super) window: TimeWindow,
    pub(super) limit: usize,
    pub(super) neighbours: u64,
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
