//! Marks of what was ingested, so that a call of unknown outcome may be repeated.
//!
//! The head keeps the newest marks, each with how many messages were consumed under it. A call that
//! belongs to no list has a mark of its own: a hash of what it was given. The calls of a list share
//! one, made of its name, and say how many messages of it stand before theirs. So equal parts of a
//! list are told apart, and however long it is, it takes one place.

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::head::{BatchRecord, ConversationHead};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    types::api::{AppendMode, Timestamp},
};

use super::{AppendExtra, batch::AppendCandidate, reconcile::ENTRIES_MAX};

/// A list of messages that takes several calls, each of which says where in it it is.
#[derive(Clone, Copy)]
pub(super) struct ListPart {
    /// Hash of its name.
    hash: [u8; 12],
    /// How many of its messages stand before those of the call.
    offset: u32,
}

/// The list that a call says it is a part of.
///
/// # Errors
///
/// `invalid-input`: a name that is none, or a place in no list; `limit-exceeded`: a place that no
/// list reaches.
pub(super) fn parse_list_part(name: Option<String>, from: Option<u64>) -> Result<Option<ListPart>> {
    let Some(name) = name else {
        return match from {
            None => Ok(None),
            Some(_) => Err(Error::invalid_input("`list_offset` requires `list`")),
        };
    };
    if name.is_empty() || name.len() > limits::CONVERSATION_BYTES_MAX {
        return Err(Error::invalid_input(format_args!(
            "`list` must have between 1 and {} bytes, got {}",
            limits::CONVERSATION_BYTES_MAX,
            name.len()
        )));
    }
    let most = int::to_u64(ENTRIES_MAX);
    let from = from.unwrap_or(0);
    if from > most {
        return Err(Error::limit_exceeded(format_args!(
            "`list_offset` must be at most {most}, got {from}"
        )));
    }
    let from = int::saturate_tokens(from);
    Ok(Some(ListPart {
        hash: hash::hash_prefix(&hash::hash_fields(&[b"lcm list", name.as_bytes()])),
        offset: from,
    }))
}

/// How many messages of a list its calls have consumed, as far as it is remembered.
///
/// # Errors
///
/// `invalid-input`: a name that is none.
pub(super) fn count_consumed(head: &ConversationHead, name: Option<String>) -> Result<usize> {
    let list = parse_list_part(name, None)?;
    let marked =
        list.and_then(|list| head.recent_batches.iter().find(|batch| batch.hash == list.hash));
    Ok(marked.map_or(0, |batch| int::to_usize(batch.consumed.into())))
}

/// What names a call, or the list that it is a part of.
#[derive(Clone, Copy)]
pub(super) struct IdempotencyKey {
    hash: [u8; 12],
    /// Messages consumed under it before those of the call.
    offset: u32,
}

impl IdempotencyKey {
    pub(super) fn from_call(
        extra: &AppendExtra,
        candidates: &[AppendCandidate<'_>],
        mode: AppendMode,
        now: Timestamp,
    ) -> Self {
        match extra.list_part {
            Some(ListPart { hash, offset: from }) => Self { hash, offset: from },
            None => Self { hash: hash_call(candidates, mode, now, extra.revision), offset: 0 },
        }
    }

    /// How many of the `count` messages of the call were consumed before, by an attempt that the
    /// call repeats. In mode `transcript` a call that is equal repeats, said or not.
    pub(super) fn count_repeated(
        self,
        head: &ConversationHead,
        count: u32,
        extra: &AppendExtra,
        mode: AppendMode,
    ) -> u32 {
        let marked = head.recent_batches.iter().find(|batch| batch.hash == self.hash);
        match marked {
            Some(batch) if extra.is_repeat || mode == AppendMode::Transcript => {
                batch.consumed.saturating_sub(self.offset).min(count)
            }
            _ => 0,
        }
    }

    /// What the head keeps once the call has consumed `count` messages.
    pub(super) fn to_batch_record(self, count: u32) -> BatchRecord {
        BatchRecord { hash: self.hash, consumed: self.offset.saturating_add(count) }
    }
}

/// What names one call: equal only for the same messages, mode, time and revision, of which a
/// conversation has each once. Hashes stand for the messages, so that a repetition may space and
/// escape them in another way.
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
