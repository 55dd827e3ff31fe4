//! Verbatim messages, byte for byte as they were appended.
//!
//! In: a range of seqs and a bound in bytes. Out: the raw texts. Not here: reads that a grant
//! limits, which `expand` makes.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call, head::LoadedHead, history::MessageHistory, store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
};

/// Reads the raw texts of the messages from `seq_first` to `seq_last`, both included, in order.
///
/// Returns texts while their bytes together are at most `bytes_max`, and at least one text. The
/// result is empty if `seq_first` is behind the newest message.
///
/// # Errors
///
/// `not-found`: the conversation does not exist; `denied`: the conversation is being deleted;
/// `invalid-input`: the range is empty or begins at 0; errors of the store.
pub(crate) fn read_messages(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    seq_first: u64,
    seq_last: u64,
    bytes_max: u32,
) -> Result<Vec<String>> {
    if seq_first == 0 || seq_last < seq_first {
        return Err(Error::invalid_input(format_args!(
            "`seq_first` must be at least 1 and at most `seq_last`, got {seq_first} and {seq_last}"
        )));
    }
    let loaded = LoadedHead::open_existing(session, call)?;
    let history = MessageHistory::new(call, &loaded.head);
    let bytes_max = int::to_usize(u64::from(bytes_max));
    let mut out: Vec<String> = Vec::new();
    let mut bytes = 0usize;
    let mut from = seq_first;
    while from <= seq_last.min(loaded.head.messages) {
        let page = history.read_page(session, from, seq_last)?;
        from = page.last().map_or(seq_last, |placed| placed.seq).saturating_add(1);
        for placed in page {
            let next = int::to_usize(placed.stored.raw.bytes());
            if !out.is_empty() && bytes.saturating_add(next) > bytes_max {
                return Ok(out);
            }
            bytes = bytes.saturating_add(next);
            out.push(history.read_text(session, &placed.stored)?.into_owned());
        }
    }
    Ok(out)
}
