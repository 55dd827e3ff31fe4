//! Restore: messages of an export become messages of a store, at the same seqs and times.
//!
//! In: texts, each with its time. Out: one commit as [`super::append`] makes it, by the same
//! packs, identities and directory. Which messages are to be stored is not asked here: all of them,
//! and the caller has compared what comes before. A message that an append would take for one that
//! is stored cannot be part of an export.

use alloc::{string::String, vec::Vec};
use lcm_text::message::batch_limit;

use crate::{
    search::Upkeep,
    storage::{head::Loaded, keys::Keys, pack, session, store_session::Reader},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    types::api::{Dialect, Receipt, Timestamp},
};

use super::{
    Write,
    batch::{self, Candidate},
    decide, second_read,
};

/// Messages that follow the newest stored one.
pub(crate) struct Restored<'a> {
    pub(crate) dialect: Dialect,
    /// A text, or the name of a staged one as `append` takes it.
    pub(crate) texts: &'a [String],
    /// The time of each message.
    pub(crate) times: &'a [Timestamp],
    /// Of each message, the tokens from which on its payloads were large; `None`: none was.
    pub(crate) payload_tokens_min: &'a [Option<u32>],
    /// What the running hash must be after the last one; `None`: the caller computed it.
    pub(crate) frontier: Option<[u8; 16]>,
}

/// Stores as many of the messages as one commit takes, at least one.
///
/// # Errors
///
/// `invalid-input`: a text is no message, is stored already, or leads to another running hash;
/// `not-found`: a text that was not staged; those of [`super::append`].
pub(crate) fn restore(
    reader: &mut Reader<'_>,
    keys: &Keys,
    loaded: Loaded,
    restored: &Restored<'_>,
    now: Timestamp,
) -> Result<Receipt> {
    session::goes_on(reader, &loaded.head)?;
    let Restored { dialect, texts, times, frontier, .. } = *restored;
    let list = batch_limit::fitting(texts, true)?;
    let least = |index: usize| restored.payload_tokens_min.get(index).copied().flatten();
    let shape = batch::Shape { dialect, keys, payload_tokens_min: &least };
    let mut candidates = batch::read(&shape, list, true)?;
    let uploads: Vec<[u8; 32]> = candidates.iter().filter_map(Candidate::waiting).collect();
    let mut records: Vec<String> = uploads.iter().map(|sha256| keys.upload(sha256)).collect();
    records.push(keys.manifest());
    let mut found = reader.fresh(&records)?;
    let mut upkeep = Upkeep::new(keys, found.pop().flatten().as_deref())?;
    if !upkeep.is_of(&loaded.head) {
        return Err(reader.missing(&keys.manifest()));
    }
    let staged = batch::Staged { records: &records, found, partial: true };
    batch::resolve(reader, &shape, &mut candidates, staged)?;
    let (known, large, node) = second_read(reader, keys, &loaded, &candidates, &mut upkeep)?;
    let decided = decide(&loaded, &candidates, known, 0);
    let all_new = decided.new.iter().map(|(index, _)| *index).eq(0..candidates.len());
    if !all_new {
        let kept = (0..).zip(&decided.new).take_while(|(at, (index, _))| at == index).count();
        let seq = loaded.head.messages + int::to_u64(kept) + 1;
        return Err(Error::invalid(format_args!(
            "message {seq} is one that comes before it, or none"
        )));
    }
    let reached = candidates
        .iter()
        .fold(loaded.head.frontier, |frontier, one| pack::advance(&frontier, &one.hash));
    if frontier.is_some_and(|frontier| frontier != reached) {
        let seq = loaded.head.messages + int::to_u64(candidates.len());
        return Err(Error::invalid(format_args!("message {seq} is not the one its hash is of")));
    }
    let (candidates, puts) = (&candidates, Vec::new());
    let mark = None;
    let write =
        Write { keys, dialect, candidates, times, decided, large, node, mark, upkeep, puts };
    write.commit(reader, loaded, now)
}
