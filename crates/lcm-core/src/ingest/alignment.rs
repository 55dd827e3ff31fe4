//! Alignment of entries with the newest stored messages.
//!
//! Equal content alone proves nothing: users do say "ok" twice. Content counts only in a run that
//! ends with the newest stored messages and has an anchor: an entry known by id, or an equal entry
//! with enough text.

use alloc::{string::String, vec::Vec};

use crate::storage::{history::MessageHistory, pack::RawText, store_session::StoreSession};
use lcm_text::base::{error::Result, int};

use super::redaction::RedactedCopy;

/// Fewest anchors of a run that does not end with the newest stored message: a single message may
/// well be said again.
pub(super) const INSIDE_ANCHORS_MIN: usize = 2;

/// One entry of a batch or transcript, as it is compared with stored messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlignableEntry {
    pub(super) hash: [u8; 16],
    /// The stored message with an id of the entry, if there is one.
    pub(super) seq: Option<u64>,
    /// Whether equal content is evidence of being the same message.
    pub(super) is_discriminating: bool,
    /// The original that the entry may be a redacted copy of.
    pub(super) redacted_copy: Option<RedactedCopy>,
}

impl AlignableEntry {
    /// Returns whether the entry equals a stored message with this hash in the head.
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
    /// Hashes of the messages, oldest first.
    pub(super) hashes: &'a [[u8; 12]],
    /// Texts of the newest messages, oldest first; empty if no entry is a redacted copy.
    pub(super) texts: &'a [String],
    /// Seq of the newest message.
    pub(super) seq_last: u64,
}

/// A run of matching entries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct MatchedRun {
    /// Number of entries.
    pub(super) length: usize,
    /// Entries known by id, or equal and discriminating.
    pub(super) anchors: usize,
}

impl NewestMessages<'_> {
    /// Matches `entries`, from the last on, with the newest messages in their order. There are at
    /// most as many entries as hashes.
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

/// Reads the texts of at most `count` newest stored messages, oldest first. A text in chunks is
/// empty.
///
/// # Errors
///
/// Errors of the store.
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

/// Counts the first entries that are the newest stored messages: the longest such run with an
/// anchor.
///
/// An equal run among older messages proves nothing, because people and programs repeat themselves.
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
