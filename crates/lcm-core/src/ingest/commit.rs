//! The commit of an append or import, and its receipt.
//!
//! In: candidates and the decision which of them are new. Out: a receipt, after one commit, or
//! without a commit if nothing is new. `append` and `import` use this module.

use alloc::{string::String, vec::Vec};

use crate::{
    search::{IndexMaintenance, NewMessage},
    storage::{
        call::Call,
        changes::Changes,
        head::{BatchRecord, ConversationHead, JournalAction, LoadedHead},
        session,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{error::Result, int, limits},
    types::api::{ReadDialect, Receipt, Timestamp},
};

use super::{
    batch::{self, AppendCandidate, PackBuilder},
    new_messages::{AppendDecision, NewCandidate},
    stored_state::StoredState,
    warnings,
};

/// The inputs of the commit of an append or import.
pub(super) struct AppendCommit<'a> {
    pub(super) dialect: ReadDialect,
    pub(super) candidates: &'a [AppendCandidate<'a>],
    /// For each candidate, the time of its message if the message has no timestamp; empty: the
    /// effective time of the call.
    pub(super) times: &'a [Timestamp],
    pub(super) decision: AppendDecision,
    pub(super) stored: StoredState,
    /// The idempotency key with its consumed messages; `None`: the caller recognises a repetition.
    pub(super) batch_record: Option<BatchRecord>,
    pub(super) index_maintenance: IndexMaintenance<'a>,
    /// Further records of the commit.
    pub(super) changes: Changes,
}

impl AppendCommit<'_> {
    /// Stores the new messages in one commit and returns the receipt.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large; `conflict`; errors of the store.
    pub(super) fn commit(
        mut self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        mut loaded: LoadedHead,
    ) -> Result<Receipt> {
        let now = loaded.effective_time(call.now)?;
        let mut changes = self.changes;
        let head = &mut loaded.head;
        let seq_first = head.messages + 1;
        let tokens_before = head.raw_tokens;
        let StoredState { large_texts, node, .. } = self.stored;
        let mut builder = PackBuilder::new(call, large_texts, &mut changes);
        let mut new: Vec<NewMessage<'_>> = Vec::with_capacity(self.decision.new_messages.len());
        for NewCandidate { index, keeps_call_id } in &self.decision.new_messages {
            let Some(candidate) = self.candidates.get(*index) else { continue };
            let time = self.times.get(*index).copied().unwrap_or(now);
            builder.add_message(head, candidate, *keeps_call_id, time)?;
            new.push(candidate.to_searchable(time));
        }
        let packs = builder.finish()?;
        head.packs.extend(packs);
        self.index_maintenance.append_messages(head, &new, changes.puts_mut())?;
        batch::flush_packs(call, head, node, &mut changes)?;
        let count = head.messages + 1 - seq_first;
        let tokens = head.raw_tokens - tokens_before;
        head.context.append_messages(seq_first, count, tokens_before, tokens);
        remember_batch(head, self.batch_record);
        let act = JournalAction::Append { seq_first, count: int::saturate_tokens(count) };
        let head = loaded.commit_changes(session, call, act, changes)?;
        warnings::add_warnings(self.dialect, self.candidates, seq_first, &mut self.decision);
        let ingested = int::to_u32(self.decision.new_messages.len());
        let skipped = int::to_u32(self.candidates.len()) - ingested;
        Ok(build_receipt(&head, ingested, skipped, Some(seq_first), self.decision.warnings))
    }
}

/// Adds an idempotency key to the head, then drops the oldest keys and message hashes over their
/// limits.
fn remember_batch(head: &mut ConversationHead, batch_record: Option<BatchRecord>) {
    if let Some(record) = batch_record {
        // The new record of a list replaces the record of the list's earlier calls.
        head.recent_batches.retain(|batch| batch.hash != record.hash);
        head.recent_batches.push(record);
    }
    let excess = head.recent_batches.len().saturating_sub(limits::RECENT_BATCHES_MAX);
    head.recent_batches.drain(..excess);
    let excess = head.recent_hashes.len().saturating_sub(limits::RECENT_HASHES_MAX);
    head.recent_hashes.drain(..excess);
}

/// Adds the conversation to a family and returns the changes; empty: no family is named, or the
/// conversation belongs to the family already.
///
/// # Errors
///
/// `exists`: the conversation is in another family; `invalid-input`: a wrong key or time.
pub(super) fn join_family(
    loaded: &mut LoadedHead,
    call: Call<'_>,
    family: Option<&str>,
) -> Result<Changes> {
    let mut changes = Changes::default();
    if let Some(family) = family {
        let call = Call { now: loaded.effective_time(call.now)?, ..call };
        session::join_family(call, &mut loaded.head, family, None, &mut changes)?;
    }
    Ok(changes)
}

/// A call that stored no message, and the warnings about the call.
pub(super) struct UnchangedAppend {
    /// Number of candidates, which are all skipped.
    pub(super) skipped: u32,
    pub(super) warnings: Vec<String>,
}

impl UnchangedAppend {
    /// Returns the receipt. Commits the join of a family first, if there is one and the
    /// conversation exists.
    ///
    /// # Errors
    ///
    /// `conflict`; errors of the store.
    pub(super) fn finish(
        self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        loaded: LoadedHead,
        joined: Changes,
    ) -> Result<Receipt> {
        if joined.is_empty() || loaded.bytes.is_none() {
            return Ok(build_receipt(&loaded.head, 0, self.skipped, None, self.warnings));
        }
        let head = loaded.commit_changes(session, call, JournalAction::Join, joined)?;
        Ok(build_receipt(&head, 0, self.skipped, None, self.warnings))
    }
}

/// Builds the receipt of a call; `seq_first`: seq of the first new message; `None`: no new message.
pub(super) fn build_receipt(
    head: &ConversationHead,
    ingested: u32,
    skipped: u32,
    seq_first: Option<u64>,
    warnings: Vec<String>,
) -> Receipt {
    Receipt {
        revision: head.revision,
        ingested,
        skipped,
        seq_first,
        seq_last: seq_first.map(|_| head.messages),
        context_tokens: int::saturate_tokens(head.context.tokens),
        warnings,
    }
}
