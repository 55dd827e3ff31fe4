//! Running hashes over the texts of a list, byte for byte. By these hashes the engine recognises
//! that a list begins with an accepted list, and parses only the rest.
//!
//! In: the texts of a list, and the head. Out: the known beginning of the list, whose messages are
//! stored; and what the head remembers of a list. `append` uses this module, and `reconcile` with
//! the hashes that `identify` returned.
//!
//! Hosts append their whole list each turn. The turn with a list of 400 messages takes a third of
//! the CPU time if the beginning is known (own measurement, `tests/turn_cost/lists`).

use alloc::vec::Vec;

use crate::storage::{
    head::ConversationHead,
    message_mark::AcceptedList,
    records::withdrawals::{WithdrawalReason, Withdrawals, WithdrawnRange},
};
use lcm_text::{
    base::{hash, int, limits},
    message::meaning::{self, MEANING_VERSION},
    types::api::ReadDialect,
};

use super::alignment::SAID_AGAIN_MAX;

/// The hash of a list whose texts are unknown. No hash is zero but by chance of 1 in 2^128.
pub(super) const UNKNOWN_TEXTS: [u8; 16] = [0; 16];

/// The running hashes of a list: the one at index `i` is over the first `i + 1` texts. Empty: the
/// texts are unknown.
#[derive(Debug, Default)]
pub(super) struct ListTexts {
    hashes: Vec<[u8; 16]>,
}

/// The beginning of a list that is an accepted list.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownBeginning {
    /// Number of its messages.
    pub(super) count: usize,
    pub(super) list: AcceptedList,
}

/// Fewest messages of a known beginning. A shorter one may be short words alone, which begin other
/// lists, too; whether they are is known only after parsing.
const KNOWN_MIN: usize = 16;

/// Number of hashes of [`ListHashes`].
const HASHES: usize = 5;

/// What the head remembers of a list. The running hashes are those of [`AcceptedList`], but those
/// over texts are not yet combined with the system messages; zeros: unknown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ListHashes {
    /// In this order: the hash of what the list says, and of its texts; these two hashes of the
    /// accepted list with which the list begins, with its present texts; and the id of the version
    /// that the leading system messages make, filled up with zeros.
    hashes: [[u8; 16]; HASHES],
    /// Whether the call has the option `system`.
    pub(super) has_system: bool,
}

impl ListHashes {
    /// Returns the bytes of the option `list_hash`, which [`Self::from_bytes`] reads.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.hashes.as_flattened()
    }

    /// Reads the bytes of the option `list_hash`; `None`: they are of another length. The list is
    /// then not remembered, and the next list is compared as a whole.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (hashes, []) = bytes.as_chunks() else { return None };
        Some(Self { hashes: hashes.try_into().ok()?, has_system: false })
    }
}

/// The lead of a list whose leading system messages do not all fill the slot. In a longer list the
/// same messages may fill it, so the texts of the list are not remembered. No version has this id.
pub(super) const UNKNOWN_LEAD: [u8; 8] = [255; 8];

/// What the messages of a list say, for [`ListHashes`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct SaidHashes {
    /// Running hash of the list; `None`: the list is not remembered, because it is not whole or has
    /// no new message.
    pub(super) list: Option<[u8; 16]>,
    /// The accepted list with which the list begins: number of its entries, and its running hash; 0
    /// and zeros: there is none.
    pub(super) beginning: (usize, [u8; 16]),
    /// Id of the version that the leading system messages make; zeros: there are none.
    pub(super) lead: [u8; 8],
}

/// Returns the hash of one text, which is read in a dialect.
pub(super) fn hash_text(dialect: ReadDialect, text: &str) -> [u8; 16] {
    let fields: [&[u8]; 3] = [b"lcm text", dialect.as_str().as_bytes(), text.as_bytes()];
    hash::hash_prefix(&hash::hash_fields(&fields))
}

impl ListTexts {
    /// Computes the running hashes from the hashes of the texts. A list of one message is a message
    /// of its own and no beginning of a list, so its texts count as unknown.
    pub(super) fn from_hashes(mut hashes: Vec<[u8; 16]>) -> Self {
        if hashes.len() == 1 {
            hashes.clear();
        }
        let mut running = [0; 16];
        for hash in &mut hashes {
            running = meaning::advance(&running, hash);
            *hash = running;
        }
        Self { hashes }
    }

    /// Returns the running hash over the first `count` texts.
    pub(super) fn hash_first(&self, count: usize) -> [u8; 16] {
        let last = count.checked_sub(1).and_then(|last| self.hashes.get(last));
        last.copied().unwrap_or(UNKNOWN_TEXTS)
    }

    /// Returns what the head remembers of the first `total` messages of the list; `None`: nothing.
    /// `count_through` returns the number of messages up to the last of so many compared entries.
    pub(super) fn add_texts(
        &self,
        said: &SaidHashes,
        total: usize,
        count_through: &dyn Fn(usize) -> usize,
    ) -> Option<ListHashes> {
        let (first, said_first) = said.beginning;
        let (texts, texts_first) = (self.hash_first(total), self.hash_first(count_through(first)));
        let lead = hash::hash_prefix(&said.lead);
        let hashes = [said.list?, texts, said_first, texts_first, lead];
        Some(ListHashes { hashes, has_system: false })
    }

    /// Finds the longest accepted list of at least [`KNOWN_MIN`] messages with which the list
    /// begins, and which is not all of it. `has_system`: the call has the option `system`. `None`
    /// also if the rest may be set-aside messages, or if a branch is in doubt, because only the
    /// whole list can end the doubt.
    pub(super) fn find_known(
        &self,
        head: &ConversationHead,
        withdrawals: &Withdrawals,
        has_system: bool,
    ) -> Option<KnownBeginning> {
        // Set-aside messages that followed one of the newest messages may be the rest of the list.
        // So lists are compared as a whole until SAID_AGAIN_MAX + 1 messages follow an edit.
        let steps = int::to_u64(SAID_AGAIN_MAX);
        let position = withdrawals.count_in_line(head.messages).saturating_sub(steps);
        let least = withdrawals.seq_at(position);
        let is_near = |range: &WithdrawnRange| match range.reason {
            WithdrawalReason::SetAside { after } => after >= least,
            WithdrawalReason::Revision => false,
        };
        let may_go_back =
            withdrawals.ranges.iter().any(is_near) || !withdrawals.branches.is_empty();
        if head.meaning_version != MEANING_VERSION || may_go_back {
            return None;
        }
        let (_, beginnings) = self.hashes.split_last()?;
        let is_known = |texts: [u8; 16]| {
            let texts = bind_texts(texts, head, has_system);
            head.accepted_lists.iter().find(|list| list.texts == texts)
        };
        let known = beginnings.iter().enumerate().skip(KNOWN_MIN - 1);
        known.rev().find_map(|(index, texts)| {
            Some(KnownBeginning { count: index + 1, list: *is_known(*texts)? })
        })
    }
}

/// Combines a hash over texts with the system messages of the head: with other system messages, the
/// same list may fill the slot again.
fn bind_texts(texts: [u8; 16], head: &ConversationHead, has_system: bool) -> [u8; 16] {
    let slot = head.system.map_or([0; 8], |slot| slot.id);
    let mut bound = texts;
    // The id of a version is a hash, so XOR binds it as well as another hash would.
    bound.iter_mut().zip(slot).for_each(|(byte, other)| *byte ^= other);
    if let Some(byte) = bound.last_mut() {
        *byte ^= u8::from(has_system);
    }
    bound
}

/// Remembers a list whose messages are all stored, as the newest of the accepted lists. `seq_seen`:
/// seq up to which the caller has seen every message.
pub(super) fn remember_list(head: &mut ConversationHead, hashes: &ListHashes, seq_seen: u64) {
    let ListHashes { hashes: [said, texts, said_first, texts_first, lead], has_system } = *hashes;
    // Only if the slot has the leading system messages alone, it stays as it is with the next list.
    let fills_slot = !has_system && head.system.is_some_and(|slot| lead.starts_with(&slot.id));
    let is_known = lead == [0; 16] || fills_slot;
    let bind = |texts: [u8; 16]| match is_known && texts != UNKNOWN_TEXTS {
        true => bind_texts(texts, head, has_system),
        false => UNKNOWN_TEXTS,
    };
    let (texts, texts_first) = (bind(texts), bind(texts_first));
    // The host wrote this beginning in other texts than before, such as with a cache mark that
    // moves each turn. The next list begins with the present texts.
    for list in &mut head.accepted_lists {
        if list.hash == said_first {
            list.texts = texts_first;
        }
    }
    head.accepted_lists.retain(|list| list.hash != said);
    let seq_last = head.messages;
    head.accepted_lists.push(AcceptedList { hash: said, texts, seq_last, seq_seen });
    let excess = head.accepted_lists.len().saturating_sub(limits::ACCEPTED_LISTS_MAX);
    head.accepted_lists.drain(..excess);
}
