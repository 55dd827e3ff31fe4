//! Restore: messages of an export become messages of a store, at the same seqs and times.
//!
//! In: texts, each with its time. Out: one commit as [`super::append`] makes it, by the same
//! packs, identities and directory. Which messages are to be stored is not asked here: all of them,
//! and the caller has compared what comes before. A message that an append would take for one that
//! is stored cannot be part of an export.

use alloc::{string::String, vec::Vec};
use lcm_text::message::batch_limit;

use crate::{
    search::IndexMaintenance,
    storage::{
        head::LoadedHead, keys::ConversationKeys, pack, session, store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    types::api::{Dialect, Receipt, Timestamp},
};

use super::{
    AppendCommit,
    batch::{self, AppendCandidate},
    read_stored_state, select_new,
};

/// Messages that follow the newest stored one.
pub(crate) struct ImportedMessages<'a> {
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
pub(crate) fn import_messages(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    loaded: LoadedHead,
    restored: &ImportedMessages<'_>,
    now: Timestamp,
) -> Result<Receipt> {
    session::ensure_not_archived(reader, &loaded.head)?;
    let ImportedMessages { dialect, texts, times, frontier, .. } = *restored;
    let list = batch_limit::take_fitting(texts, true)?;
    let least = |index: usize| restored.payload_tokens_min.get(index).copied().flatten();
    let shape = batch::CandidateParser { dialect, keys, payload_tokens_min: &least };
    let mut candidates = batch::read_candidates(&shape, list, true)?;
    let uploads: Vec<[u8; 32]> =
        candidates.iter().filter_map(AppendCandidate::pending_upload).collect();
    let mut records: Vec<String> = uploads.iter().map(|sha256| keys.upload_key(sha256)).collect();
    records.push(keys.manifest_key());
    let mut found = reader.read_uncached(&records)?;
    let mut upkeep = IndexMaintenance::new(keys, found.pop().flatten().as_deref())?;
    if !upkeep.matches_head(&loaded.head) {
        return Err(reader.missing_record_error(&keys.manifest_key()));
    }
    let staged = batch::StagedUploads { records: &records, values: found, is_partial: true };
    batch::resolve_uploads(reader, &shape, &mut candidates, staged)?;
    let (known, large, node) = read_stored_state(reader, keys, &loaded, &candidates, &mut upkeep)?;
    let decided = select_new(&loaded, &candidates, known, 0);
    let all_new = decided.new_messages.iter().map(|(index, _)| *index).eq(0..candidates.len());
    if !all_new {
        let kept =
            (0..).zip(&decided.new_messages).take_while(|(at, (index, _))| at == index).count();
        let seq = loaded.head.messages + int::to_u64(kept) + 1;
        return Err(Error::invalid_input(format_args!("message {seq} must be a new message")));
    }
    let reached = candidates
        .iter()
        .fold(loaded.head.frontier, |frontier, one| pack::advance_frontier(&frontier, &one.hash));
    if frontier.is_some_and(|frontier| frontier != reached) {
        let seq = loaded.head.messages + int::to_u64(candidates.len());
        return Err(Error::invalid_input(format_args!("message {seq} must match its hash")));
    }
    let (candidates, puts) = (&candidates, Vec::new());
    let mark = None;
    let write = AppendCommit {
        keys,
        dialect,
        candidates,
        times,
        decision: decided,
        large_texts: large,
        node,
        batch_record: mark,
        index_maintenance: upkeep,
        puts,
    };
    write.commit(reader, loaded, now)
}
