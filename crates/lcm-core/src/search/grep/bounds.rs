//! Scope, order and limits of a search.

use crate::search::{score, time_window::TimeWindow};
use lcm_text::{base::time, types::api::Timestamp};

/// Texts that a query searches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GrepScope {
    Messages,
    Summaries,
    /// Messages and summaries.
    Both,
    /// Texts of large payloads.
    Files,
}

/// Order of the hits. A page of a longer regular expression scan over messages and summaries keeps
/// the scan order instead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GrepSort {
    /// Newest first.
    Recency,
    /// Best score first. Matches of a regular expression have no score: newest first.
    Relevance,
    /// Best score first, where age lowers the score: by half at 1,000 hours. Matches of a regular
    /// expression: newest first.
    Hybrid,
}

/// Place of an agent's own earlier searches among the hits. These are the messages that call a tool
/// of this engine or have an answer of such a tool. They often repeat the words of the next search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OwnSearches {
    /// In the order of all hits.
    Ranked,
    /// Behind all other hits. A scan that is cut into pages leaves the own searches out, because a
    /// page keeps the order of the scan.
    Last,
}

/// Bit of a rank that places a hit before an agent's own searches.
const BEFORE_OWN_SEARCHES: u64 = 1 << 63;

/// Scope, order and limits of a search.
#[derive(Clone, Copy)]
pub(super) struct GrepBounds {
    pub(super) scope: GrepScope,
    pub(super) sort: GrepSort,
    /// Times of the documents that may be found.
    pub(super) window: TimeWindow,
    /// Most hits in the answer.
    pub(super) limit: usize,
    /// Most messages shown on each side of a hit.
    pub(super) neighbours: u64,
    /// Time of the call, for the age of documents.
    pub(super) now: Timestamp,
    pub(super) own_searches: OwnSearches,
}

impl GrepBounds {
    /// Returns the sort key of a hit, greatest first: the score, the score lowered by age, or the
    /// time. Without a score the key is the time.
    pub(super) fn rank_hit(&self, score: Option<u64>, time: Timestamp) -> u64 {
        match (self.sort, score) {
            (GrepSort::Relevance, Some(score)) => score,
            (GrepSort::Hybrid, Some(score)) => score::decay_by_age(score, self.measure_age(time)),
            (GrepSort::Recency, _) | (_, None) => time,
        }
    }

    /// Returns the age of a document in milliseconds. An undated one counts as old enough to lose
    /// half of its score: it comes neither before all dated ones nor after them.
    fn measure_age(&self, time: Timestamp) -> u64 {
        if time == time::UNDATED { score::HALF_LIFE_MS } else { self.now.saturating_sub(time) }
    }

    /// Returns the rank of a document, raised if own searches come last and `own_searches`
    /// (ascending) lacks the document.
    pub(super) fn place_rank(&self, rank: u64, document: u64, own_searches: &[u64]) -> u64 {
        match self.own_searches {
            OwnSearches::Last if own_searches.binary_search(&document).is_err() => {
                rank | BEFORE_OWN_SEARCHES
            }
            OwnSearches::Last | OwnSearches::Ranked => rank,
        }
    }

    /// Returns whether a rank of [`GrepBounds::place_rank`] is of one of the agent's own searches;
    /// always false if own searches are ranked.
    pub(super) fn is_own_search(&self, rank: u64) -> bool {
        self.own_searches == OwnSearches::Last && rank & BEFORE_OWN_SEARCHES == 0
    }
}
