//! Reads stored messages for the comparison with transcript entries.
//!
//! In: a seq. Out: a page of hashes and texts, or a running hash. `anchor_alignment` and
//! `transcript_diff` use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{history::MessageHistory, pack::message_hash, store_session::StoreSession};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    message,
};

use super::alignment::AlignableEntry;

/// Most messages of one page.
pub(super) const PAGE_MESSAGES: usize = 64;

/// A stored message as it is compared.
pub(super) struct ComparedMessage {
    /// Hash over content and ids.
    pub(super) hash: [u8; 16],
    /// The raw text; empty: over 64 KiB, too large to be compared with a redacted copy.
    pub(super) text: String,
}

impl ComparedMessage {
    /// Returns whether an entry equals this message or may be a redacted copy of it.
    pub(super) fn matches_entry(&self, entry: &AlignableEntry) -> bool {
        entry.hash == self.hash || entry.may_be_copy_of(&self.text)
    }
}

/// Reads at most [`PAGE_MESSAGES`] stored messages from `seq_first` on. A message over 64 KiB ends
/// the page. The page is empty only if `seq_first` is after the newest message.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn read_page(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq_first: u64,
) -> Result<Vec<ComparedMessage>> {
    let mut out = Vec::new();
    let seq_last = seq_first + int::to_u64(PAGE_MESSAGES) - 1;
    for placed in history.read_messages(session, seq_first, seq_last)? {
        let text = history.read_text(session, &placed.stored)?;
        let message = message::parse(placed.dialect, &text).map_err(|_| {
            Error::corrupt_store(format_args!(
                "the stored text of message {} must be a message of dialect `{}`",
                placed.seq,
                placed.dialect.as_str()
            ))
        })?;
        let hash = message_hash(&text, &message);
        let is_small = text.len() <= limits::PACK_BYTES_MAX;
        out.push(ComparedMessage {
            hash,
            text: if is_small { text.into_owned() } else { String::new() },
        });
        if !is_small {
            break;
        }
    }
    Ok(out)
}

/// Returns the running hash after message `seq`; zeros if `seq` is 0.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn read_frontier(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
) -> Result<[u8; 16]> {
    if seq == 0 { Ok([0; 16]) } else { history.frontier_at(session, seq) }
}
