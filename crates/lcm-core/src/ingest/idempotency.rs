//! Idempotency keys: a host can repeat an append of unknown outcome without storing it twice.
//!
//! In: a call and the head. Out: how many messages of the call an earlier call consumed, which
//! means stored or skipped. `append` and `reconcile` use this module.
//!
//! The head keeps the 8 newest keys, each with the number of messages consumed under the key. The
//! key of a call is a hash of its messages, mode, time and revision; a list in mode `transcript`
//! enters by its texts. The calls of a *named list* (option `list`) share one key, a hash of the
//! name. `list_offset` tells their messages apart, so a named list of any length takes one key.

use alloc::{string::String, vec::Vec};

use crate::storage::head::{BatchRecord, ConversationHead};
use lcm_text::{
    base::{error::Result, hash, int},
    types::api::{AppendMode, Timestamp},
};

use super::{
    append_options::{AppendExtra, ListPart, parse_list_part},
    batch::AppendCandidate,
    list_texts::UNKNOWN_TEXTS,
};

/// Returns how many messages of the list `name` earlier calls consumed; 0: no list is named, or
/// the head no longer has its key.
///
/// # Errors
///
/// `invalid-input`: an empty name, or a name over 512 bytes.
pub(super) fn count_consumed(head: &ConversationHead, name: Option<String>) -> Result<usize> {
    let list = parse_list_part(name, None)?;
    let known =
        list.and_then(|list| head.recent_batches.iter().find(|batch| batch.hash == list.hash));
    Ok(known.map_or(0, |batch| int::to_usize(batch.consumed.into())))
}

/// The key of a call, and the place of the call under the key.
#[derive(Clone, Copy)]
pub(super) struct IdempotencyKey {
    hash: [u8; 12],
    /// Number of messages of the named list before the messages of the call; 0 without a name.
    offset: u32,
}

impl IdempotencyKey {
    /// Computes the key of a call with these candidates. `texts`: running hash over the texts of a
    /// list in mode `transcript`, of which the candidates may be an end; [`UNKNOWN_TEXTS`]: the
    /// messages enter one by one. The pair has the mode and the time of the call.
    pub(super) fn from_call(
        extra: &AppendExtra,
        candidates: &[AppendCandidate<'_>],
        texts: [u8; 16],
        (mode, now): (AppendMode, Timestamp),
    ) -> Self {
        match extra.list_part {
            Some(ListPart { hash, offset }) => Self { hash, offset },
            None => {
                let hashes: Vec<[u8; 16]> = match texts == UNKNOWN_TEXTS {
                    true => candidates.iter().map(|candidate| candidate.hash).collect(),
                    false => Vec::from([texts]),
                };
                Self { hash: hash_call(&hashes, mode, now, extra.revision), offset: 0 }
            }
        }
    }

    /// Returns how many of the `count` messages of the call earlier calls with this key consumed.
    ///
    /// Without the option `repeat`, no message counts as repeated: equal messages under one time
    /// may well be said again.
    pub(super) fn count_repeated(
        self,
        head: &ConversationHead,
        count: u32,
        extra: &AppendExtra,
    ) -> u32 {
        let known = head.recent_batches.iter().find(|batch| batch.hash == self.hash);
        match known {
            Some(batch) if extra.is_repeat => batch.consumed.saturating_sub(self.offset).min(count),
            _ => 0,
        }
    }

    /// Returns the record of the key after the call consumed `count` messages.
    pub(super) fn to_batch_record(self, count: u32) -> BatchRecord {
        BatchRecord { hash: self.hash, consumed: self.offset.saturating_add(count) }
    }
}

/// Hashes the messages, mode, time and revision of a call.
///
/// A list enters by its texts; other messages enter by their content hashes, so their repetition
/// may differ in spacing and escapes.
fn hash_call(
    hashes: &[[u8; 16]],
    mode: AppendMode,
    now: Timestamp,
    revision: Option<u64>,
) -> [u8; 12] {
    let mode = [u8::from(mode == AppendMode::New)];
    let now = now.to_be_bytes();
    let revision = revision.map(u64::to_be_bytes);
    let mut fields: Vec<&[u8]> = alloc::vec![b"lcm batch", &mode, &now, hashes.as_flattened()];
    fields.extend(revision.as_ref().map(<[u8; 8]>::as_slice));
    hash::hash_prefix(&hash::hash_fields(&fields))
}
