//! The commits of a settlement: a summary, a rejected answer, or the failure of a model.
//!
//! In: a settlement and an answer that was judged. Out: the outcome, after at most one commit.
//! `apply` and `run` use these methods.

use crate::storage::records::summary_counts::SummaryCounts;
use alloc::string::String;

use crate::storage::{
    call::Call,
    changes::Changes,
    context::Context,
    head::{ConversationHead, JournalAction},
    records::{attempts::TaskAttempts, model_breaker::ModelBreaker, remakes::RemakeRecord},
    store_session::StoreSession,
    summary::{self, OFFLINE_MODEL, StoredFinish, StoredLevel, Summary},
};
use lcm_text::{
    base::{error::Result, int},
    summary::verify,
    types::{
        api::{ApplyOutcome, ApplyStatus},
        model::{Completion, CompletionErrorCode, Finish},
    },
};

use super::super::{
    reason,
    source_text::{SettledAnswer, SummaryDraft},
    spend_limit,
    splice::SourceSplice,
};
use super::{TaskSettlement, events::add_made_event, known_summaries::KnownSummaries};

impl TaskSettlement<'_> {
    /// Records that the model failed to answer. The failure does not count as an attempt. The
    /// breaker counts only a refused API key and a refusal by the provider's policy. Answers that
    /// `run` rejected before the failure are committed too, and a lease of the sources ends. If
    /// none of these changes a record, nothing is committed.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; errors of the store.
    pub(crate) fn record_model_failure(
        mut self,
        session: &mut StoreSession<'_>,
        code: CompletionErrorCode,
    ) -> Result<ApplyOutcome> {
        let reason = match code {
            CompletionErrorCode::Auth => reason::MODEL_AUTH,
            CompletionErrorCode::Policy => reason::MODEL_POLICY,
            _ => reason::MODEL_UNAVAILABLE,
        };
        let outcome = self.build_outcome(ApplyStatus::Refused, reason, None);
        let mut changes = Changes::default();
        if matches!(code, CompletionErrorCode::Auth | CompletionErrorCode::Policy) {
            let breaker = self.breaker.record.unwrap_or_default();
            let breaker = breaker.with_failure(self.call.now, self.call.config);
            changes.replace_record(&self.breaker, &breaker)?;
        }
        // Stores the attempts whose answers `run` rejected before the failure; otherwise ends a
        // lease.
        let rejected = self.rejected_attempts.take();
        let leased = || self.attempts.clone().filter(|known| known.lease_until > 0);
        match rejected.or_else(leased) {
            Some(known) => {
                let attempts = TaskAttempts { lease_until: 0, ..known };
                self.commit_attempts(session, &attempts, changes)?;
            }
            None if !changes.is_empty() => session.commit_changes(&changes)?,
            None => {}
        }
        Ok(outcome)
    }

    /// Settles the failure of a model in `run`: falls back if the model would fail again, else
    /// records the failure.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; errors of the store.
    pub(crate) fn settle_failure(
        self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        code: CompletionErrorCode,
    ) -> Result<ApplyOutcome> {
        match self.task.is_refused_by(code) {
            true => self.fall_back(session, splice, None),
            false => self.record_model_failure(session, code),
        }
    }

    /// Counts the answer as rejected, which may begin a pause, and commits the ledger. The context
    /// does not change. Without an answer, commits nothing.
    pub(super) fn commit_charge(
        mut self,
        session: &mut StoreSession<'_>,
        completion: Option<&Completion>,
        mut outcome: ApplyOutcome,
    ) -> Result<ApplyOutcome> {
        if completion.is_none() {
            return Ok(outcome);
        }
        self.charge_answer(&mut outcome, completion, false);
        let act = JournalAction::Stale { sources: self.task.sources_hash };
        self.loaded.commit_changes(session, self.call, act, Changes::default())?;
        Ok(outcome)
    }

    /// Commits `attempts` together with `changes`, after an answer that became no summary or after
    /// no answer.
    pub(super) fn commit_attempts(
        self,
        session: &mut StoreSession<'_>,
        attempts: &TaskAttempts,
        mut changes: Changes,
    ) -> Result<()> {
        let sources = self.task.sources_hash;
        let key = TaskAttempts::key(self.call.keys, &sources);
        if attempts.is_first() {
            changes.delete_record(&key);
        } else {
            changes.write_record(&key, attempts)?;
        }
        let act = JournalAction::Reject { sources };
        self.loaded.commit_changes(session, self.call, act, changes)?;
        Ok(())
    }

    /// Commits the attempts whose answers `run` rejected. The last rejection began a pause.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; errors of the store.
    pub(crate) fn commit_pause(mut self, session: &mut StoreSession<'_>) -> Result<ApplyOutcome> {
        let outcome = self.build_outcome(ApplyStatus::Refused, reason::SPEND_LIMIT, None);
        let known = self.rejected_attempts.take().or_else(|| self.attempts.clone());
        let attempts = TaskAttempts { lease_until: 0, ..known.unwrap_or_default() };
        self.commit_attempts(session, &attempts, Changes::default())?;
        Ok(outcome)
    }

    /// Commits a fallback, a summary made without the model. If no fallback is smaller than the
    /// sources, marks the sources as exhausted, so that plans skip these sources. A remake gets no
    /// fallback: its provisional summary stays. `completion`: the rejected answer; `None`: the
    /// model gave no answer.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; `limit-exceeded`: the context or the search index
    /// would have too many parts; errors of the store.
    pub(crate) fn fall_back(
        mut self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        if splice.is_remake {
            let remade = (splice.remakes.clone(), splice.changed_sources);
            return self.settle_vain_remake(session, remade, completion);
        }
        if let Some(text) = self.build_fallback_text(&splice.gathered) {
            let findings = verify::format_findings(&verify::verify(&splice.gathered.text, &text));
            let (level, model) = (StoredLevel::Fallback, OFFLINE_MODEL);
            let finish = completion.map(|completion| StoredFinish::from(completion.finish));
            let is_provisional = self.is_provisional_text(completion, level);
            let answer = SettledAnswer {
                text,
                capped: false,
                findings,
                level,
                model,
                finish,
                is_provisional,
            };
            return self.commit_summary(session, splice, completion, answer);
        }
        let mut outcome = self.build_outcome(ApplyStatus::Refused, reason::NO_PROGRESS, None);
        outcome.more = true;
        let known = self.attempts.clone().unwrap_or_default();
        let tokens = known.tokens + completion.map_or(0, spend_limit::count_tokens);
        let attempts = TaskAttempts { is_exhausted: true, tokens, lease_until: 0, ..known };
        self.charge_answer(&mut outcome, completion, false);
        self.commit_attempts(session, &attempts, Changes::default())?;
        Ok(outcome)
    }

    /// Commits a record that the model failed to make a provisional summary again, so that plans do
    /// not ask this model again for the same sources. `completion`: the rejected answer; `None`:
    /// the model gave no answer.
    fn settle_vain_remake(
        mut self,
        session: &mut StoreSession<'_>,
        (mut remakes, changed): (RemakeRecord, [u8; 8]),
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        let mut outcome = self.build_outcome(ApplyStatus::Refused, reason::NO_PROGRESS, None);
        outcome.more = true;
        let mut changes = Changes::default();
        if let Some(id) = self.task.replaced_id() {
            remakes.add_vain_ask(id, changed, &self.task.breaker_scope);
        }
        self.write_remakes(&remakes, &mut changes)?;
        let sources = self.task.sources_hash;
        if self.attempts.is_some() {
            changes.delete_record(&TaskAttempts::key(self.call.keys, &sources));
        }
        self.charge_answer(&mut outcome, completion, false);
        let act = JournalAction::Reject { sources };
        self.loaded.commit_changes(session, self.call, act, changes)?;
        Ok(outcome)
    }

    /// Records that the summary replaces a provisional summary, and returns the printed id of the
    /// provisional summary. `None`: the task is no remake.
    fn record_remake(
        &mut self,
        splice: &SourceSplice,
        (record, id): (&Summary, [u8; 8]),
        changes: &mut Changes,
    ) -> Result<Option<String>> {
        let Some(old) = record.replaces.filter(|_| splice.is_remake) else { return Ok(None) };
        let mut remakes = splice.remakes.clone();
        remakes.add_remake(old, id);
        self.write_remakes(&remakes, changes)?;
        Ok(Some(summary::format_summary_id(old)))
    }

    fn write_remakes(&mut self, remakes: &RemakeRecord, changes: &mut Changes) -> Result<()> {
        self.loaded.head.remakes = remakes.count_entries();
        changes.write_record(&RemakeRecord::key(self.call.keys), remakes)?;
        Ok(())
    }

    /// Returns whether a text that becomes a summary is provisional: the configured model failed,
    /// was unavailable or was cut off, or its answers were rejected. An answer of the offline
    /// summariser is final if no model is configured. `completion`: the last answer; `None`: the
    /// model gave no answer.
    pub(crate) fn is_provisional_text(
        &self,
        completion: Option<&Completion>,
        level: StoredLevel,
    ) -> bool {
        match completion {
            None => true,
            Some(_) if self.is_stand_in => true,
            Some(completion) if completion.model == OFFLINE_MODEL => {
                self.call.config.summary_model.is_some()
            }
            // A summary that was cut off is provisional; a remake that is cut off, too, is final.
            Some(completion) => {
                level == StoredLevel::Fallback
                    || (completion.finish == Finish::Length && self.task.replaced_id().is_none())
            }
        }
    }

    /// Commits a summary in place of its sources. `completion`: the last answer of the model, whose
    /// tokens are counted; `None`: the model gave no answer.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; `limit-exceeded`: the context or the search index
    /// would have too many parts; errors of the store.
    pub(crate) fn commit_summary(
        mut self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        completion: Option<&Completion>,
        answer: SettledAnswer<'_>,
    ) -> Result<ApplyOutcome> {
        let mut outcome = self.build_outcome(ApplyStatus::Committed, "", None);
        let keys = self.call.keys;
        let (level, capped) = (answer.level, answer.capped);
        let record = splice.gathered.build_summary(SummaryDraft {
            answer,
            created_at: self.call.now,
            prompt_version: self.task.prompt_version,
            replaces: self.task.replaced_id(),
        });
        let known = KnownSummaries::read_known(session, self.call, splice, &record)?;
        let passes_left = self.tokens() / splice.gathered.tokens.max(1);
        self.index_maintenance.prepare_summary(session, passes_left)?;
        let before = self.loaded.head.context.clone();
        // The context needs the size of the record, but the puts of the context's nodes come first.
        // So the put of the record is kept apart.
        let mut written = Changes::default();
        let (record, source) = known.choose_record(self.call, record, &mut written)?;
        let id = source.id;
        let mut changes = Changes::default();
        let context = splice.replace_sources(
            self.call,
            &self.loaded.head,
            (&record, source),
            &mut changes,
        )?;
        let mut records =
            known.write_new_bridges(self.call, &splice.gathered.bridges, &mut changes)?;
        if !written.is_empty() {
            records.push((&record, source.bytes));
        }
        changes.append(written);
        for source in record.source_refs() {
            changes.write_record(&Summary::derived_key(keys, source.id), &id)?;
        }
        outcome.replaces = self.record_remake(splice, (&record, id), &mut changes)?;
        if let Some(remakes) = known.take_back_live() {
            self.write_remakes(&remakes, &mut changes)?;
        }
        outcome.provisional = record.is_provisional();
        if self.attempts.is_some() {
            changes.delete_record(&TaskAttempts::key(keys, &self.task.sources_hash));
        }
        if completion.is_some() {
            self.reset_breaker(&mut changes)?;
        }
        self.charge_answer(&mut outcome, completion, level != StoredLevel::Fallback);
        if !records.is_empty() {
            self.count_summaries(&records, &mut changes)?;
            self.index_maintenance.append_summaries(&records, changes.puts_mut())?;
        }
        replace_context(self.call, &mut self.loaded.head, (splice, context), &mut changes)?;
        let act = JournalAction::Compact { summary: id, made: record.to_provenance(), before };
        let head = self.loaded.commit_changes(session, self.call, act, changes)?;
        outcome.summary_id = Some(summary::format_summary_id(id));
        outcome.level = record.shown_level().into();
        outcome.capped = capped;
        outcome.tokens_after = int::saturate_tokens(head.context.tokens);
        add_made_event(self.events, self.call, &record, &mut outcome);
        Ok(outcome)
    }

    /// Counts the new summaries in the head and by depth.
    fn count_summaries(
        &mut self,
        records: &[(&Summary, u32)],
        changes: &mut Changes,
    ) -> Result<()> {
        self.loaded.head.summaries += int::to_u64(records.len());
        for (record, _) in records {
            self.summary_counts.count_summary(record.depth, record.tokens);
        }
        changes.write_record(&SummaryCounts::key(self.call.keys), &self.summary_counts)?;
        Ok(())
    }

    /// Resets the failures in the breaker, because the model answered.
    fn reset_breaker(&self, changes: &mut Changes) -> Result<()> {
        match self.breaker.record {
            Some(breaker) if breaker.failures > 0 => {
                changes.replace_record(&self.breaker, &ModelBreaker::default())
            }
            _ => Ok(()),
        }
    }
}

/// Sets the new context, counts the tokens that it saves, and compresses packs.
fn replace_context(
    call: Call<'_>,
    head: &mut ConversationHead,
    (splice, context): (&SourceSplice, Context),
    changes: &mut Changes,
) -> Result<()> {
    // A remake may lengthen the context, which stays shorter than its messages.
    let saved = head.ledger.saved_tokens.saturating_add(head.context.tokens);
    head.ledger.saved_tokens = saved.saturating_sub(context.tokens);
    head.context = context;
    if let Some(input) = &splice.pack_compaction {
        let compacted = input.compact_packs(call.keys, head, changes.list_puts())?;
        changes.add_puts(compacted);
    }
    Ok(())
}
