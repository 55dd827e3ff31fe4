//! Stored messages as transcripts are compared with them, read page by page.

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

/// Most messages of one page, which begins at a multiple of this number.
pub(super) const PAGE_MESSAGES: usize = 64;

/// A stored message as it is compared.
pub(super) struct ComparedMessage {
    /// Hash over content and ids.
    pub(super) hash: [u8; 16],
    /// Empty: the text is too large to be compared with a redacted copy.
    pub(super) text: String,
}

impl ComparedMessage {
    /// Returns whether an entry is this message or a redacted copy of the message.
    pub(super) fn matches_entry(&self, entry: &AlignableEntry) -> bool {
        entry.hash == self.hash || entry.may_be_copy_of(&self.text)
    }
}

/// Reads stored messages from `seq_first` on, at least one and at most a page. A large message ends
/// the page.
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
            Error::corrupt_store(format_args!("message {} cannot be read", placed.seq))
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

/// Reads the running hash up to and with a message; zeros before the first message.
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
