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
        head::{BatchRecord, ConversationHead, JournalAction, LoadedHead, ensure_time},
        session,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{error::Result, int, limits, time},
    types::{
        api::{ReadDialect, Receipt, Timestamp},
        event::EventList,
    },
};

use super::{
    batch::{self, AppendCandidate, PackBuilder},
    commit_events::add_skips,
    line_change::{LineUpdate, NewMessageCounts, remember_start},
    list_decision::SeenMessages,
    list_texts::remember_list,
    new_messages::{AppendDecision, NewCandidate},
    stored_state::StoredState,
    system_messages::{self, SystemUpdate},
    warnings,
};

/// The inputs of the commit of an append or import.
pub(super) struct AppendCommit<'a> {
    pub(super) dialect: ReadDialect,
    pub(super) candidates: &'a [AppendCandidate<'a>],
    /// For each candidate, the time of its message if the message has no timestamp.
    pub(super) times: &'a [Timestamp],
    pub(super) decision: AppendDecision,
    pub(super) stored: StoredState,
    /// The idempotency key with its consumed messages; `None`: the caller recognises a repetition.
    pub(super) batch_record: Option<BatchRecord>,
    /// The change of the line before the new messages.
    pub(super) line: LineUpdate,
    /// The update of the slot of system messages; `None`: the slot stays as it is.
    pub(super) system: Option<SystemUpdate<'a>>,
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
        self.decision.warnings.extend(loaded.read_clock(call.now)?.step_back_warning());
        let mut changes = self.changes;
        let (list_hashes, start, seen) = (self.line.list_hashes, self.line.start, self.line.seen);
        let slot = loaded.head.system;
        let revisions = self.decision.revisions;
        self.line.add_events(call, loaded.head.messages, &mut self.decision.events);
        let prepared = self.line.prepare_update(session, call, &loaded.head, revisions)?;
        let head = &mut loaded.head;
        let seq_first = head.messages + 1;
        let (tokens_before, mut tokens_before_line) = (head.raw_tokens, head.raw_tokens);
        let StoredState { large_texts, node, .. } = self.stored;
        let mut builder = PackBuilder::new(call, large_texts, &mut changes);
        let mut new: Vec<NewMessage<'_>> = Vec::with_capacity(self.decision.new_messages.len());
        for NewCandidate { index, kept } in &self.decision.new_messages {
            let Some(candidate) = self.candidates.get(*index) else { continue };
            let time = self.times.get(*index).copied().unwrap_or(time::UNDATED);
            builder.add_message(head, candidate, *kept, time)?;
            new.push(candidate.to_searchable(time));
            if new.len() <= revisions {
                tokens_before_line = head.raw_tokens;
            }
        }
        let system = self.system.map(|system| system.write(call, head, &mut builder));
        let filled = system.transpose()?.unwrap_or(0);
        head.packs.extend(builder.finish()?);
        self.index_maintenance.append_messages(head, &new, changes.puts_mut())?;
        batch::flush_packs(call, head, node, &mut changes)?;
        let (count, tokens) = (head.messages + 1 - seq_first, head.raw_tokens - tokens_before);
        let before = head.context.clone();
        let new_counts = int::saturate_tokens(count);
        let act = match prepared {
            Some(prepared) => {
                let forms = self.decision.list_form_marks(self.candidates);
                let new = NewMessageCounts { seq_first, forms: &forms, tokens_before_line };
                prepared.apply(call, head, new, &mut changes)?;
                JournalAction::Branch { seq_first, count: new_counts, before }
            }
            None if count == 0 => system_messages::build_action(head),
            None => {
                head.context.append_messages(seq_first, count, tokens_before, tokens);
                JournalAction::Append { seq_first, count: new_counts }
            }
        };
        remember_batch(head, self.batch_record);
        let seq_seen = seen.seq_after(head.messages);
        if new_counts > 0 {
            let skipped = revisions + self.decision.count_lead(self.candidates);
            remember_start(head, start, seq_first + int::to_u64(skipped));
        }
        if let Some(hashes) = list_hashes {
            remember_list(head, &hashes, seq_seen);
        }
        let head = loaded.commit_changes(session, call, act, changes)?;
        warnings::add_warnings(self.dialect, self.candidates, seq_first, &mut self.decision);
        let ingested = int::to_u32(self.decision.new_messages.len() + filled);
        let skipped = self.decision.known + int::to_u32(self.candidates.len()) - ingested;
        let seq_first = (new_counts > 0).then_some(seq_first);
        self.decision.add_system_event(call, &head, slot);
        self.decision.add_stored_event(call, &head, seq_first, tokens);
        let AppendDecision { repeated, known, mut events, warnings, .. } = self.decision;
        add_skips(call, self.candidates, (repeated, known), ingested, &mut events);
        let counts = ReceiptCounts { ingested, skipped, seq_first, events };
        Ok(counts.build_receipt(&head, seen, warnings))
    }
}

/// Adds an idempotency key to the head, then drops the oldest keys and message marks over their
/// limits.
fn remember_batch(head: &mut ConversationHead, batch_record: Option<BatchRecord>) {
    if let Some(record) = batch_record {
        // The new record of a list replaces the record of the list's earlier calls.
        head.recent_batches.retain(|batch| batch.hash != record.hash);
        head.recent_batches.push(record);
    }
    let excess = head.recent_batches.len().saturating_sub(limits::RECENT_BATCHES_MAX);
    head.recent_batches.drain(..excess);
    let excess = head.recent_marks.len().saturating_sub(limits::RECENT_MARKS_MAX);
    head.recent_marks.drain(..excess);
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
        ensure_time(call.now)?;
        session::join_family(call, &mut loaded.head, family, None, &mut changes)?;
    }
    Ok(changes)
}

/// A call that stored no message, and the warnings about the call.
pub(super) struct UnchangedAppend<'a> {
    /// The candidates, which are all skipped.
    pub(super) candidates: &'a [AppendCandidate<'a>],
    /// Number of messages before the candidates, which are stored.
    pub(super) known: u32,
    /// Number of first candidates that an earlier attempt of the call stored or skipped.
    pub(super) repeated: u32,
    pub(super) seen: SeenMessages,
    pub(super) warnings: Vec<String>,
}

impl<'a> UnchangedAppend<'a> {
    /// Creates the result of a call. The pair has the values of `repeated` and `known`.
    pub(super) fn new(
        candidates: &'a [AppendCandidate<'a>],
        (repeated, known): (u32, u32),
        seen: SeenMessages,
        warnings: Vec<String>,
    ) -> Self {
        Self { candidates, known, repeated, seen, warnings }
    }

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
        let mut events = EventList::default();
        add_skips(call, self.candidates, (self.repeated, self.known), 0, &mut events);
        let skipped = self.known + int::to_u32(self.candidates.len());
        let counts = ReceiptCounts { ingested: 0, skipped, seq_first: None, events };
        if joined.is_empty() || loaded.bytes.is_none() {
            return Ok(counts.build_receipt(&loaded.head, self.seen, self.warnings));
        }
        let head = loaded.commit_changes(session, call, JournalAction::Join, joined)?;
        Ok(counts.build_receipt(&head, self.seen, self.warnings))
    }
}

/// The counts and the events of a receipt.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiptCounts {
    pub(super) ingested: u32,
    pub(super) skipped: u32,
    /// Seq of the first new message; `None`: no new message.
    pub(super) seq_first: Option<u64>,
    pub(super) events: EventList,
}

impl ReceiptCounts {
    /// Builds the receipt of a call.
    pub(super) fn build_receipt(
        self,
        head: &ConversationHead,
        seen: SeenMessages,
        warnings: Vec<String>,
    ) -> Receipt {
        let Self { ingested, skipped, seq_first, events } = self;
        Receipt {
            revision: head.revision,
            ingested,
            skipped,
            seq_first,
            seq_last: seq_first.map(|_| head.messages),
            seq_seen: seen.seq_after(head.messages),
            context_tokens: int::saturate_tokens(head.context.tokens),
            warnings,
            events_json: events.into_json(),
        }
    }
}
