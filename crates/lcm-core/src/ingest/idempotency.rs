//! Idempotency keys: they let a host repeat a call of unknown outcome.
//!
//! The head keeps the newest keys, each with the number of messages consumed under the key. A call
//! that is part of no list has a key of its own: a hash of its arguments. The calls of a list share
//! one key, made from the name of the list, and each says how many messages of the list precede its
//! own. So equal parts of a list stay distinct, and a list of any length takes one key.

use alloc::{string::String, vec::Vec};

use crate::storage::head::{BatchRecord, ConversationHead};
use lcm_text::{
    base::{error::Result, hash, int},
    types::api::{AppendMode, Timestamp},
};

use super::{
    append_options::{AppendExtra, ListPart, parse_list_part},
    batch::AppendCandidate,
};

/// Counts the messages of a list that its calls consumed, as far as the head remembers.
///
/// # Errors
///
/// `invalid-input`: an empty or too long name.
pub(super) fn count_consumed(head: &ConversationHead, name: Option<String>) -> Result<usize> {
    let list = parse_list_part(name, None)?;
    let known =
        list.and_then(|list| head.recent_batches.iter().find(|batch| batch.hash == list.hash));
    Ok(known.map_or(0, |batch| int::to_usize(batch.consumed.into())))
}

/// The key of a call, or of the list that the call is a part of.
#[derive(Clone, Copy)]
pub(super) struct IdempotencyKey {
    hash: [u8; 12],
    /// Messages consumed under the key before the messages of the call.
    offset: u32,
}

impl IdempotencyKey {
    /// Computes the key of a call with these candidates.
    pub(super) fn from_call(
        extra: &AppendExtra,
        candidates: &[AppendCandidate<'_>],
        mode: AppendMode,
        now: Timestamp,
    ) -> Self {
        match extra.list_part {
            Some(ListPart { hash, offset }) => Self { hash, offset },
            None => Self { hash: hash_call(candidates, mode, now, extra.revision), offset: 0 },
        }
    }

    /// Counts the messages of the call, of `count`, that an earlier attempt consumed.
    ///
    /// In mode `transcript` an equal call is a repetition even without the option `repeat`.
    pub(super) fn count_repeated(
        self,
        head: &ConversationHead,
        count: u32,
        extra: &AppendExtra,
        mode: AppendMode,
    ) -> u32 {
        let known = head.recent_batches.iter().find(|batch| batch.hash == self.hash);
        match known {
            Some(batch) if extra.is_repeat || mode == AppendMode::Transcript => {
                batch.consumed.saturating_sub(self.offset).min(count)
            }
            _ => 0,
        }
    }

    /// Returns the record of the key after the call consumed `count` messages.
    pub(super) fn to_batch_record(self, count: u32) -> BatchRecord {
        BatchRecord { hash: self.hash, consumed: self.offset.saturating_add(count) }
    }
}

/// Hashes a call: equal only for equal messages, mode, time and revision.
///
/// The messages count by their hashes, so a repetition may space and escape them differently.
fn hash_call(
    candidates: &[AppendCandidate<'_>],
    mode: AppendMode,
    now: Timestamp,
    revision: Option<u64>,
) -> [u8; 12] {
    let mode = [u8::from(mode == AppendMode::New)];
    let now = now.to_be_bytes();
    let hashes: Vec<[u8; 16]> = candidates.iter().map(|candidate| candidate.hash).collect();
    let revision = revision.map(u64::to_be_bytes);
    let mut fields: Vec<&[u8]> = alloc::vec![b"lcm batch", &mode, &now, hashes.as_flattened()];
    fields.extend(revision.as_ref().map(<[u8; 8]>::as_slice));
    hash::hash_prefix(&hash::hash_fields(&fields))
}
