//! The record of remakes and exits: provisional summaries that were made again, and summaries that
//! left the context because they gave way to their sources or were withdrawn.
//!
//! Compaction writes the record when a summary was made again, or when a model was asked for the
//! summary again in vain; a change of the line and a new session write it when a summary leaves the
//! context. An import writes the remakes and exits of its export. Readers, such as plans, `status`
//! and searches, skip the record if the head counts no entry.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::SoundRecord, head::ConversationHead, keys::ConversationKeys, record_key::RecordKey,
    store_session::StoreSession,
};
use lcm_text::base::{error::Result, hash, int};

/// Most pairs of an old summary and its remake; the oldest are dropped.
const MADE_MAX: usize = 8_192;
/// Most pairs of a summary and a model that was asked again in vain; the oldest are dropped.
const ASKED_MAX: usize = 4_096;
/// Most summaries that gave way, and most that were withdrawn; the oldest are dropped.
const EXITS_MAX: usize = 2_000;

/// A provisional summary, and the summary that was made in its place.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Remake {
    pub(crate) old: [u8; 8],
    pub(crate) new: [u8; 8],
}

/// A provisional summary, and a model that was asked for it again in vain.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct VainAsk {
    id: [u8; 8],
    /// Hash of the newest sources, if a source was made again; else zeros.
    sources: [u8; 8],
    model: [u8; 8],
}

/// The remakes, vain requests and exits of a conversation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RemakeRecord {
    made: Vec<Remake>,
    asked: Vec<VainAsk>,
    /// Summaries that gave way to their sources, because the line changed within them.
    gave_way: Vec<[u8; 8]>,
    /// Summaries whose messages were all withdrawn.
    withdrawn: Vec<[u8; 8]>,
}

/// How a summary left the context.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ContextExit {
    /// The line changed within the summary, and the sources of the summary took its place. No
    /// search returns the summary.
    GaveWay,
    /// All messages of the summary were withdrawn with it.
    Withdrawn,
}

impl ContextExit {
    /// All variants, in the order of their declaration.
    pub(crate) const ALL: [Self; 2] = [Self::GaveWay, Self::Withdrawn];

    /// Returns the name in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::GaveWay => "gave-way",
            Self::Withdrawn => "withdrawn",
        }
    }
}

impl SoundRecord for RemakeRecord {
    fn is_sound(&self) -> bool {
        self.made.len() <= MADE_MAX
            && self.asked.len() <= ASKED_MAX
            && self.gave_way.len().max(self.withdrawn.len()) <= EXITS_MAX
    }
}

impl RemakeRecord {
    /// Returns the key of the record.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.remakes_key())
    }

    /// Reads the record; if the head counts no entry, nothing is read.
    ///
    /// # Errors
    ///
    /// `corrupt`: the record is damaged; `unsupported`: the record has a newer format; errors of
    /// the store.
    pub(crate) fn read(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        head: &ConversationHead,
    ) -> Result<Self> {
        if head.remakes == 0 {
            return Ok(Self::default());
        }
        Ok(session.read_record(&Self::key(keys))?.unwrap_or_default())
    }

    /// Returns the number of entries, for the head.
    pub(crate) fn count_entries(&self) -> u32 {
        let exits = self.gave_way.len() + self.withdrawn.len();
        int::to_u32(self.made.len() + self.asked.len() + exits)
    }

    /// Returns the pairs of a summary and its remake, oldest first.
    pub(crate) fn list_made(&self) -> &[Remake] {
        &self.made
    }

    /// Returns the summaries that no search returns: those that were made again or gave way.
    pub(crate) fn list_hidden(&self) -> Vec<[u8; 8]> {
        self.made.iter().map(|remake| remake.old).chain(self.gave_way.iter().copied()).collect()
    }

    /// Returns the summaries that gave way or were withdrawn.
    pub(crate) fn list_exits(&self) -> impl Iterator<Item = &[u8; 8]> {
        self.gave_way.iter().chain(&self.withdrawn)
    }

    /// Returns whether summaries gave way or were withdrawn.
    pub(crate) fn has_exits(&self) -> bool {
        !self.gave_way.is_empty() || !self.withdrawn.is_empty()
    }

    /// Returns how the summary left the context; `None`: it is in the context, is a source of
    /// another summary, was made again, or its exit was dropped as the oldest.
    pub(crate) fn find_exit(&self, id: [u8; 8]) -> Option<ContextExit> {
        match () {
            () if self.gave_way.contains(&id) => Some(ContextExit::GaveWay),
            () if self.withdrawn.contains(&id) => Some(ContextExit::Withdrawn),
            () => None,
        }
    }

    /// Adds summaries that left the context.
    pub(crate) fn add_exits(&mut self, exit: ContextExit, ids: &[[u8; 8]]) {
        self.take_back(ids);
        let list = match exit {
            ContextExit::GaveWay => &mut self.gave_way,
            ContextExit::Withdrawn => &mut self.withdrawn,
        };
        list.extend(ids);
        drop_oldest(list, EXITS_MAX);
    }

    /// Removes the exits of summaries that are in the context again, or that leave the context in
    /// another way.
    pub(crate) fn take_back(&mut self, ids: &[[u8; 8]]) {
        self.gave_way.retain(|id| !ids.contains(id));
        self.withdrawn.retain(|id| !ids.contains(id));
    }

    /// Returns whether the summary was made again.
    pub(crate) fn is_replaced(&self, id: [u8; 8]) -> bool {
        self.made.iter().any(|remake| remake.old == id)
    }

    /// Returns the newest summary that was made in place of `id`, or `id`.
    pub(crate) fn find_newest(&self, id: [u8; 8]) -> [u8; 8] {
        let mut newest = id;
        // An import may have written the pairs of a chain in any order.
        for _ in 0..self.made.len() {
            let Some(next) = self.made.iter().find(|remake| remake.old == newest) else { break };
            newest = next.new;
        }
        newest
    }

    /// Returns whether `newer` was made in place of `older`, over any number of remakes.
    pub(crate) fn is_in_chain(&self, older: [u8; 8], newer: [u8; 8]) -> bool {
        let mut at = older;
        for _ in 0..self.made.len() {
            let Some(next) = self.made.iter().find(|remake| remake.old == at) else { return false };
            at = next.new;
            if at == newer {
                return true;
            }
        }
        false
    }

    /// Returns whether the model with this breaker scope was asked for the summary again in vain.
    pub(crate) fn was_asked(&self, id: [u8; 8], sources: [u8; 8], scope: &str) -> bool {
        self.asked.contains(&VainAsk { id, sources, model: hash_model(scope) })
    }

    /// Adds the pair of `old` and its remake `new`, and removes the vain requests for `old`.
    pub(crate) fn add_remake(&mut self, old: [u8; 8], new: [u8; 8]) {
        self.made.retain(|remake| remake.old != old);
        self.made.push(Remake { old, new });
        self.asked.retain(|ask| ask.id != old);
        drop_oldest(&mut self.made, MADE_MAX);
    }

    /// Removes the vain requests for these summaries; `None`: for all summaries.
    pub(crate) fn forget_vain_asks(&mut self, ids: Option<&[[u8; 8]]>) {
        self.asked.retain(|ask| ids.is_some_and(|ids| !ids.contains(&ask.id)));
    }

    /// Records that the model with this breaker scope was asked in vain to make the summary again
    /// from these sources; once, however often it was asked.
    pub(crate) fn add_vain_ask(&mut self, id: [u8; 8], sources: [u8; 8], scope: &str) {
        let ask = VainAsk { id, sources, model: hash_model(scope) };
        if !self.asked.contains(&ask) {
            self.asked.push(ask);
            drop_oldest(&mut self.asked, ASKED_MAX);
        }
    }
}

fn drop_oldest<T>(list: &mut Vec<T>, most: usize) {
    let excess = list.len().saturating_sub(most);
    list.drain(..excess);
}

fn hash_model(scope: &str) -> [u8; 8] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm remake model", scope.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::codec;

    #[test]
    fn a_chain_of_remakes_leads_to_the_newest() {
        let mut record = RemakeRecord::default();
        record.add_vain_ask([1; 8], [0; 8], "m");
        assert!(record.was_asked([1; 8], [0; 8], "m"));
        assert!(!record.was_asked([1; 8], [0; 8], "other"));
        assert!(!record.was_asked([1; 8], [2; 8], "m"));
        record.add_remake([1; 8], [2; 8]);
        record.add_remake([2; 8], [3; 8]);
        assert_eq!(record.find_newest([1; 8]), [3; 8]);
        assert_eq!(record.find_newest([4; 8]), [4; 8]);
        assert!(record.is_in_chain([1; 8], [3; 8]) && !record.is_in_chain([3; 8], [1; 8]));
        assert!(record.is_replaced([2; 8]) && !record.is_replaced([3; 8]));
        assert_eq!(record.count_entries(), 2);
    }

    #[test]
    fn a_full_record_fits_a_value_and_drops_the_oldest() {
        let mut record = RemakeRecord::default();
        for number in 0..10_000_u64 {
            record.made.push(Remake { old: number.to_be_bytes(), new: [255; 8] });
            record.asked.push(VainAsk {
                id: number.to_be_bytes(),
                sources: [255; 8],
                model: [255; 8],
            });
            record.add_exits(ContextExit::GaveWay, &[number.to_be_bytes()]);
            record.add_exits(ContextExit::Withdrawn, &[(number + 10_000).to_be_bytes()]);
        }
        record.add_remake([254; 8], [255; 8]);
        record.add_vain_ask([255; 8], [0; 8], "m");
        assert!(record.is_sound() && !record.is_replaced(0_u64.to_be_bytes()));
        assert!(record.is_replaced([254; 8]) && record.was_asked([255; 8], [0; 8], "m"));
        assert!(codec::encode(&record).unwrap().len() < 256 << 10);
    }
}
