//! Import: stores the messages of an export in a conversation, at the same seqs and times.
//!
//! In: messages that follow the newest stored message. Out: a receipt, after one commit as of
//! [`super::append()`]. The import of `admin` uses this module after it has compared the earlier
//! messages. An export never has a failed turn without content, which an append skips, so such a
//! message is an error.

use alloc::{string::String, vec::Vec};
use lcm_text::message::{Role, batch_limit};

use crate::{
    search::{IndexMaintenance, IndexManifest},
    storage::{
        call::Call, changes::Changes, head::LoadedHead, pack, record_key::RecordReads,
        session as session_rules, store_session::StoreSession,
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
    append::add_uploads,
    batch::{self, CandidateParser, StagedUploads},
    commit::AppendCommit,
    line_change::LineUpdate,
    new_messages::{CandidatePlace, select_new},
    stored_state::StoredState,
    system_messages::{SystemUpdate, VersionStamp},
};

/// Messages that follow the newest stored message.
pub(crate) struct ImportedMessages<'a> {
    pub(crate) dialect: Dialect,
    /// Texts, or names of uploaded texts as `append` takes them.
    pub(crate) texts: &'a [String],
    /// For each message, its time if the message has no timestamp.
    pub(crate) times: &'a [Timestamp],
    /// For each message, the least tokens of a large payload; `None`: no payload was large.
    pub(crate) payload_tokens_min: &'a [Option<u32>],
    /// Expected running hash after the last message; `None`: the hash is not checked here.
    pub(crate) frontier: Option<[u8; 16]>,
}

/// A version of the system messages.
pub(crate) struct ImportedVersion {
    pub(crate) number: u64,
    pub(crate) time: Timestamp,
    /// Id of the version that was the newest before; `None`: there was none.
    pub(crate) previous: Option<[u8; 8]>,
    /// Dialects and texts, or names of uploaded texts as `append` takes them.
    pub(crate) messages: Vec<(Dialect, String)>,
}

/// Stores a version of the system messages as the newest; a stored version stays as it is.
///
/// # Errors
///
/// As of [`import_messages`].
pub(crate) fn import_system(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    loaded: LoadedHead,
    imported: &ImportedVersion,
) -> Result<()> {
    let mut candidates = Vec::with_capacity(imported.messages.len());
    for (dialect, text) in &imported.messages {
        let parser =
            CandidateParser { call, dialect: (*dialect).into(), payload_tokens_min: &|_| None };
        let mut read = batch::read_candidates(&parser, core::slice::from_ref(text), false)?;
        let mut reads = RecordReads::default();
        let slots = add_uploads(&mut reads, call, core::slice::from_ref(text));
        if !slots.is_empty() {
            let values = reads.read(session)?;
            let staged = StagedUploads { slots: &slots, values: &values, is_partial: false };
            batch::resolve_uploads(session, &parser, &mut read, staged)?;
        }
        candidates.append(&mut read);
    }
    if candidates.iter().any(|candidate| candidate.message.role != Role::System) {
        return Err(Error::invalid_input(
            "a version of the system messages must have messages of the role `system` only",
        ));
    }
    let messages = candidates.iter().collect();
    let Some(update) = SystemUpdate::prepare_update(session, call, &loaded.head, messages, 0)?
    else {
        return Ok(());
    };
    if update.is_stored() {
        return Ok(());
    }
    session_rules::ensure_not_archived(session, &loaded.head)?;
    let ImportedVersion { number, time, previous, .. } = *imported;
    update.with_stamp(VersionStamp { number, time, previous }).commit(session, call, loaded)
}

/// Stores as many of the messages as one commit takes, at least one.
///
/// # Errors
///
/// `invalid-input`: a text that is not a message, or leads to another running hash; `not-found`: a
/// text that was not uploaded; `limit-exceeded`: too large messages; `denied`: the conversation is
/// archived; `conflict`: another call committed first; errors of the store.
pub(crate) fn import_messages(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    loaded: LoadedHead,
    imported: &ImportedMessages<'_>,
) -> Result<Receipt> {
    session_rules::ensure_not_archived(session, &loaded.head)?;
    let ImportedMessages { dialect, texts, times, frontier, .. } = *imported;
    let list = batch_limit::take_fitting(texts, true)?;
    let payload_tokens_min =
        |index: usize| imported.payload_tokens_min.get(index).copied().flatten();
    let parser =
        CandidateParser { call, dialect: dialect.into(), payload_tokens_min: &payload_tokens_min };
    let mut candidates = batch::read_candidates(&parser, list, true)?;
    let mut reads = RecordReads::default();
    let slots = add_uploads(&mut reads, call, list);
    let manifest = reads.add_record(IndexManifest::key(call.keys));
    let values = reads.read(session)?;
    let mut index_maintenance =
        IndexMaintenance::from_manifest(call.keys, values.decode(&manifest)?);
    index_maintenance.ensure_matches_head(session, &loaded.head)?;
    let staged = StagedUploads { slots: &slots, values: &values, is_partial: true };
    batch::resolve_uploads(session, &parser, &mut candidates, staged)?;
    let mut stored =
        StoredState::read(session, call, &loaded.head, &candidates, &mut index_maintenance)?;
    // The seq tells the messages apart, so one that repeats an id is a message, too.
    let place = |index| CandidatePlace { index, is_revision: false, is_certain: true };
    let places: Vec<CandidatePlace> = (0..candidates.len()).map(place).collect();
    let decision = select_new(&loaded.head, &candidates, &mut stored.identities, &places);
    let are_all_new = decision.new_messages.iter().map(|new| new.index).eq(0..candidates.len());
    if !are_all_new {
        let new_messages = (0..).zip(&decision.new_messages);
        let first_new = new_messages.take_while(|(place, new)| *place == new.index).count();
        let seq = loaded.head.messages + int::to_u64(first_new) + 1;
        return Err(Error::invalid_input(format_args!(
            "message {seq} must not be a failed turn without content; export the conversation again"
        )));
    }
    let reached = candidates.iter().fold(loaded.head.frontier, |frontier, candidate| {
        pack::advance_frontier(&frontier, &candidate.hash)
    });
    if frontier.is_some_and(|frontier| frontier != reached) {
        let seq = loaded.head.messages + int::to_u64(candidates.len());
        return Err(Error::invalid_input(format_args!(
            "message {seq} must match the exported running hash; export the conversation again"
        )));
    }
    AppendCommit {
        dialect: dialect.into(),
        candidates: &candidates,
        times,
        decision,
        stored,
        batch_record: None,
        line: LineUpdate::default(),
        system: None,
        index_maintenance,
        changes: Changes::default(),
    }
    .commit(session, call, loaded)
}
