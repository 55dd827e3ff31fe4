//! Marks of what was ingested, so that a call of unknown outcome may be repeated.
//!
//! The head keeps the newest marks, each with how many messages were consumed under it. A call that
//! belongs to no list has a mark of its own: a hash of what it was given. The calls of a list share
//! one, made of its name, and say how many messages of it stand before theirs. So equal parts of a
//! list are told apart, and however long it is, it takes one place.

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::head::{BatchMark, Head};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    types::api::{IngestMode, Timestamp},
};

use super::{Extra, batch::Candidate, reconcile::ENTRIES_MAX};

/// A list of messages that takes several calls, each of which says where in it it is.
#[derive(Clone, Copy)]
pub(super) struct List {
    /// Hash of its name.
    hash: [u8; 12],
    /// How many of its messages stand before those of the call.
    from: u32,
}

/// The list that a call says it is a part of.
///
/// # Errors
///
/// `invalid-input`: a name that is none, or a place in no list; `limit-exceeded`: a place that no
/// list reaches.
pub(super) fn list(name: Option<String>, from: Option<u64>) -> Result<Option<List>> {
    let Some(name) = name else {
        return match from {
            None => Ok(None),
            Some(_) => Err(Error::invalid("from: a place in a list needs its name, `list`")),
        };
    };
    if name.is_empty() || name.len() > limits::CONVERSATION_BYTES_MAX {
        return Err(Error::invalid(format_args!(
            "list: a name has 1 to {} bytes",
            limits::CONVERSATION_BYTES_MAX
        )));
    }
    let most = int::to_u64(ENTRIES_MAX);
    let from = from.unwrap_or(0);
    if from > most {
        return Err(Error::limit(format_args!("from: a list has at most {most} messages")));
    }
    let from = int::tokens_u32(from);
    Ok(Some(List { hash: hash::prefix(&hash::hash(&[b"lcm list", name.as_bytes()])), from }))
}

/// How many messages of a list its calls have consumed, as far as it is remembered.
///
/// # Errors
///
/// `invalid-input`: a name that is none.
pub(super) fn consumed(head: &Head, name: Option<String>) -> Result<usize> {
    let list = list(name, None)?;
    let marked = list.and_then(|list| head.batches.iter().find(|batch| batch.hash == list.hash));
    Ok(marked.map_or(0, |batch| int::to_usize(batch.consumed.into())))
}

/// What names a call, or the list that it is a part of.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    hash: [u8; 12],
    /// Messages consumed under it before those of the call.
    from: u32,
}

impl Mark {
    pub(super) fn of(
        extra: &Extra,
        candidates: &[Candidate<'_>],
        mode: IngestMode,
        now: Timestamp,
    ) -> Self {
        match extra.list {
            Some(List { hash, from }) => Self { hash, from },
            None => Self { hash: of_call(candidates, mode, now, extra.revision), from: 0 },
        }
    }

    /// How many of the `count` messages of the call were consumed before, by an attempt that the
    /// call repeats. In mode `transcript` a call that is equal repeats, said or not.
    pub(super) fn repeated(self, head: &Head, count: u32, extra: &Extra, mode: IngestMode) -> u32 {
        let marked = head.batches.iter().find(|batch| batch.hash == self.hash);
        match marked {
            Some(batch) if extra.repeat || mode == IngestMode::Transcript => {
                batch.consumed.saturating_sub(self.from).min(count)
            }
            _ => 0,
        }
    }

    /// What the head keeps once the call has consumed `count` messages.
    pub(super) fn after(self, count: u32) -> BatchMark {
        BatchMark { hash: self.hash, consumed: self.from.saturating_add(count) }
    }
}

/// What names one call: equal only for the same messages, mode, time and revision, of which a
/// conversation has each once. Hashes stand for the messages, so that a repetition may space and
/// escape them in another way.
fn of_call(
    candidates: &[Candidate<'_>],
    mode: IngestMode,
    now: Timestamp,
    revision: Option<u64>,
) -> [u8; 12] {
    let mode = [u8::from(mode == IngestMode::New)];
    let now = now.to_be_bytes();
    let hashes: Vec<[u8; 16]> = candidates.iter().map(|candidate| candidate.hash).collect();
    let revision = revision.map(u64::to_be_bytes);
    let mut fields: Vec<&[u8]> = alloc::vec![b"lcm batch", &mode, &now, hashes.as_flattened()];
    fields.extend(revision.as_ref().map(<[u8; 8]>::as_slice));
    hash::prefix(&hash::hash(&fields))
}
