//! Verbatim messages, byte for byte as they came in.
//!
//! In: a range of seqs and how many bytes may come. Out: their texts. Not here: grants, under which
//! messages are read by `expand`.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    head::LoadedHead, history::MessageHistory, keys::ConversationKeys, store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
};

/// Raw texts of `[seq_from, seq_to]` in order: as many as fit `bytes_max`, but at least one.
///
/// # Errors
///
/// `not-found`: no such conversation; `invalid-input`: the range is empty or begins at 0.
pub(crate) fn read_messages(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    seq_from: u64,
    seq_to: u64,
    bytes_max: u32,
) -> Result<Vec<String>> {
    let keys = ConversationKeys::new(conversation)?;
    if seq_from == 0 || seq_to < seq_from {
        return Err(Error::invalid_input(format_args!(
            "seq-first: {seq_from} to {seq_to} is no range"
        )));
    }
    let loaded = LoadedHead::load_existing(reader, &keys, conversation)?;
    let history = MessageHistory { keys: &keys, head: &loaded.head };
    let bytes_max = int::to_usize(u64::from(bytes_max));
    let mut out: Vec<String> = Vec::new();
    let mut bytes = 0usize;
    let mut from = seq_from;
    while from <= seq_to.min(loaded.head.messages) {
        let page = history.read_page(reader, from, seq_to)?;
        from = page.last().map_or(seq_to, |placed| placed.seq).saturating_add(1);
        for placed in page {
            let next = int::to_usize(placed.stored.raw.bytes());
            if !out.is_empty() && bytes.saturating_add(next) > bytes_max {
                return Ok(out);
            }
            bytes = bytes.saturating_add(next);
            out.push(history.read_text(reader, &placed.stored)?.into_owned());
        }
    }
    Ok(out)
}
