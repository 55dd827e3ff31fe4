//! Counts the first entries of a list that are the newest stored messages.
//!
//! In: entries and the newest stored hashes. Out: the number of first entries that are stored.
//! `append` uses the number in mode `transcript`; `reconcile` uses the types of this module.
//!
//! Equal content alone proves nothing: users do say "ok" twice. A run of equal entries counts only
//! if it ends with the newest stored message and has an anchor. An anchor is an entry known by id,
//! or an equal entry that is long, has a time or has a unique call id.

use alloc::{string::String, vec::Vec};

use crate::storage::{history::MessageHistory, pack::RawText, store_session::StoreSession};
use lcm_text::base::{error::Result, int};

use super::redaction::RedactedCopy;

/// Fewest anchors of a match that does not end with the newest stored message. One anchor may be a
/// message that was said twice.
pub(super) const INSIDE_ANCHORS_MIN: usize = 2;

/// One entry of a batch or transcript, as it is compared with stored messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlignableEntry {
    pub(super) hash: [u8; 16],
    /// Seq of the stored message with an identity of the entry; `None`: there is no such message.
    pub(super) seq: Option<u64>,
    /// Whether equal content is evidence that entry and message are the same.
    pub(super) is_discriminating: bool,
    /// The entry as a redacted copy; `None`: the entry is compared only by hash and seq.
    pub(super) redacted_copy: Option<RedactedCopy>,
}

impl AlignableEntry {
    /// Returns whether the hash of the entry begins with `hash`, the hash of a message in the head.
    pub(super) fn matches_hash(&self, hash: &[u8; 12]) -> bool {
        self.hash.starts_with(hash)
    }

    /// Returns whether the entry may be a redacted copy of a stored message with this text.
    pub(super) fn may_be_copy_of(&self, text: &str) -> bool {
        self.redacted_copy.is_some_and(|copy| copy.may_be_copy_of(text))
    }
}

/// The newest stored messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestMessages<'a> {
    /// First bytes of the hashes of the messages, oldest first.
    pub(super) hashes: &'a [[u8; 12]],
    /// Raw texts of the newest of these messages, oldest first, perhaps fewer than `hashes`; empty
    /// if no entry is a redacted copy.
    pub(super) texts: &'a [String],
    /// Seq of the newest message.
    pub(super) seq_last: u64,
}

/// Size of a run of entries that match consecutive stored messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct MatchedRun {
    /// Number of entries.
    pub(super) length: usize,
    /// Number of entries that are known by id, or are equal and discriminating.
    pub(super) anchors: usize,
}

impl NewestMessages<'_> {
    /// Compares the last entry with the newest message, the entry before with the message before,
    /// and so on, up to the first pair that differs. A redacted copy matches and is no anchor.
    pub(super) fn match_suffix(&self, entries: &[AlignableEntry]) -> MatchedRun {
        let mut texts = self.texts.iter().rev();
        let mut run = MatchedRun::default();
        for ((entry, hash), seq) in
            entries.iter().rev().zip(self.hashes.iter().rev()).zip((1..=self.seq_last).rev())
        {
            let text = texts.next();
            if entry.matches_hash(hash) || entry.seq == Some(seq) {
                run.anchors += usize::from(entry.is_discriminating || entry.seq.is_some());
            } else if !text.is_some_and(|text| entry.may_be_copy_of(text)) {
                break;
            }
            run.length += 1;
        }
        run
    }
}

/// Reads the texts of at most `count` newest stored messages whose hashes are in the head, oldest
/// first. A text that is stored in chunks is returned as an empty text.
///
/// # Errors
///
/// `conflict`: the head has changed; `corrupt`; errors of the store.
pub(super) fn read_newest_texts(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    count: usize,
) -> Result<Vec<String>> {
    let last = history.head.messages;
    let count = count.min(history.head.recent_hashes.len());
    let mut texts = Vec::with_capacity(count);
    for placed in history.read_messages(session, last + 1 - int::to_u64(count), last)? {
        texts.push(match &placed.stored.raw {
            RawText::Inline(text) => text.clone(),
            RawText::Chunked { .. } => String::new(),
        });
    }
    Ok(texts)
}

/// Returns the length of the longest prefix of `entries` that matches the newest stored messages
/// and has an anchor; 0: there is no such prefix.
///
/// Runs among older messages are not searched for, because people and programs repeat themselves.
pub(super) fn count_aligned_prefix(
    newest: &NewestMessages<'_>,
    entries: &[AlignableEntry],
) -> usize {
    let is_aligned = |count: &usize| {
        let run = newest.match_suffix(entries.get(..*count).unwrap_or(&[]));
        run.length == *count && run.anchors > 0
    };
    (1..=entries.len().min(newest.hashes.len())).rev().find(is_aligned).unwrap_or(0)
}
