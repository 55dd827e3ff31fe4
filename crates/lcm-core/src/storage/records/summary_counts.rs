//! The number and tokens of a conversation's summaries by depth, so that a status reads no summary.
//!
//! Every commit that adds a summary rewrites the record; the guard of the head protects it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};

/// Most depths with a count of their own. A depth has at least twice as many summaries as the next
/// depth.
const DEPTHS_MAX: usize = 64;

/// Number and tokens of the summaries of one depth.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct DepthTally {
    pub(crate) count: u64,
    pub(crate) tokens: u64,
}

/// The summaries of each depth, from 0 on. The last of 64 entries also counts all deeper summaries.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SummaryCounts {
    pub(crate) depths: Vec<DepthTally>,
}

impl SoundRecord for SummaryCounts {
    fn is_sound(&self) -> bool {
        let is_countable = |depth: &DepthTally| codec::are_countable(&[depth.count, depth.tokens]);
        self.depths.len() <= DEPTHS_MAX && self.depths.iter().all(is_countable)
    }
}

impl SummaryCounts {
    /// Returns the key of the record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.summary_counts_key())
    }

    /// Returns whether both records have equal numbers of summaries at each depth, and with
    /// `all_tokens` also equal tokens.
    pub(crate) fn matches(&self, other: &Self, all_tokens: bool) -> bool {
        let is_equal = |(one, other): (&DepthTally, &DepthTally)| {
            one.count == other.count && (!all_tokens || one.tokens == other.tokens)
        };
        self.depths.len() == other.depths.len()
            && self.depths.iter().zip(&other.depths).all(is_equal)
    }

    /// Counts a new summary.
    pub(crate) fn count_summary(&mut self, depth: u32, tokens: u32) {
        let at = usize::try_from(depth).unwrap_or(usize::MAX).min(DEPTHS_MAX - 1);
        if self.depths.len() <= at {
            self.depths.resize(at + 1, DepthTally::default());
        }
        if let Some(tally) = self.depths.get_mut(at) {
            tally.count += 1;
            tally.tokens += u64::from(tokens);
        }
    }
}
