//! The settlement of a task: commits the result of an answer to the task.
//!
//! In: a task, the stored records about it, and an answer. Out: an outcome, after at most one
//! commit. `apply` and `run` use this module.

mod commit;
mod events;
mod known_summaries;
mod sources;

pub(crate) use sources::find_enclosing_item;

use crate::storage::records::summary_counts::SummaryCounts;
use alloc::{format, string::String, vec::Vec};

use crate::{
    search::{IndexMaintenance, IndexManifest},
    storage::{
        call::Call,
        changes::Changes,
        clock::ClockReading,
        head::LoadedHead,
        record_key::{GuardedRecord, RecordReads},
        records::{attempts::TaskAttempts, model_breaker::ModelBreaker},
        session as session_rules,
        store_session::StoreSession,
        summary::{self, OFFLINE_MODEL, StoredLevel, Summary},
    },
};
use lcm_text::{
    base::{error::Result, int, tokens},
    summary::transcript::TranscriptOptions,
    types::{
        api::{ApplyOutcome, ApplyStatus},
        event::EventList,
        model::{Completion, CompletionErrorCode, Level},
    },
};

use super::{
    acceptance::{self, AcceptedText, CompletionVerdict, RejectionRule},
    reason, request,
    spend_limit::{self, SpendLimits},
    splice::SourceSplice,
    task::SummaryTask,
};

/// A task, the stored records about the task, and the results of this call so far.
pub(crate) struct TaskSettlement<'a> {
    call: Call<'a>,
    pub(crate) loaded: LoadedHead,
    pub(crate) task: SummaryTask,
    /// The stored attempts; `None`: none are stored.
    attempts: Option<TaskAttempts>,
    breaker: GuardedRecord<ModelBreaker>,
    summary_counts: SummaryCounts,
    /// Id and record of the summary that an earlier call made of this answer; `None`: none is
    /// stored, or no id was given.
    committed_summary: Option<([u8; 8], Summary)>,
    /// The attempts to store after answers that `run` rejected; `None`: `run` rejected no answer.
    rejected_attempts: Option<TaskAttempts>,
    /// Warnings of the outcome.
    warnings: Vec<String>,
    /// Events of the outcome.
    events: EventList,
    /// Whether the answer replaces the answer of a model that failed, as the caller said.
    pub(super) is_stand_in: bool,
    /// Why the model gave no answer; `None`: it gave one, or was not asked.
    pub(super) failure: Option<CompletionErrorCode>,
    spend_limits: SpendLimits,
    index_maintenance: IndexMaintenance<'a>,
    /// The clock of the conversation at the time of the call.
    clock: ClockReading,
}

impl<'a> TaskSettlement<'a> {
    /// Reads the head, the records of the task, and the summary with the id `expected`, if given.
    ///
    /// # Errors
    ///
    /// `not-found`: no such conversation; `denied`: the conversation is archived, and the task is
    /// no remake; errors of the store.
    pub(crate) fn open(
        session: &mut StoreSession<'_>,
        call: Call<'a>,
        task: SummaryTask,
        expected: Option<[u8; 8]>,
    ) -> Result<Self> {
        let Call { config, keys, .. } = call;
        let mut reads = RecordReads::default();
        let attempts = reads.add_record(TaskAttempts::key(keys, &task.sources_hash));
        let breaker = reads.add_record(ModelBreaker::key(&task.breaker_scope));
        let committed = expected.map(|id| (id, reads.add_record(Summary::key(keys, id))));
        let manifest = reads.add_record(IndexManifest::key(keys));
        let summary_counts = reads.add_record(SummaryCounts::key(keys));
        let (loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
        let index_maintenance = IndexMaintenance::from_manifest(keys, values.decode(&manifest)?);
        let loaded = loaded.require_existing()?;
        if task.replaced_id().is_none() {
            session_rules::ensure_not_archived(session, &loaded.head)?;
        }
        let attempts = values.decode(&attempts)?;
        let summary_counts = values.decode(&summary_counts)?.unwrap_or_default();
        let breaker = values.decode_guarded(breaker)?;
        let committed_summary = match committed {
            Some((id, slot)) => values.decode(&slot)?.map(|record| (id, record)),
            None => None,
        };
        let clock = loaded.read_clock(call.now)?;
        let warnings = clock.step_back_warning().into_iter().collect();
        Ok(Self {
            call,
            loaded,
            task,
            attempts,
            breaker,
            summary_counts,
            committed_summary,
            rejected_attempts: None,
            warnings,
            events: EventList::default(),
            is_stand_in: false,
            failure: None,
            spend_limits: SpendLimits::from_config(config),
            index_maintenance,
            clock,
        })
    }

    /// Returns id and record of the summary that an earlier call made of this answer; `None`: none
    /// is stored, or no id was given.
    pub(super) fn committed_summary(&self) -> Option<&([u8; 8], Summary)> {
        self.committed_summary.as_ref()
    }

    /// Returns the tokens of the stored context.
    pub(super) fn tokens(&self) -> u64 {
        self.loaded.head.context.tokens
    }

    /// Returns how the sources are rendered: parts cut to the limit of the task, without injected
    /// context.
    fn transcript_options(&self) -> TranscriptOptions<'a> {
        let config = self.call.config;
        TranscriptOptions {
            part_tokens_max: self.task.part_tokens_max,
            injected_tags: &config.strip_injected_context_tags,
            offsets: &config.time_offsets,
        }
    }

    /// Builds an outcome that leaves the context as it is; a commit adjusts the outcome.
    pub(super) fn build_outcome(
        &self,
        applied: ApplyStatus,
        reason: &str,
        summary: Option<[u8; 8]>,
    ) -> ApplyOutcome {
        let tokens = int::saturate_tokens(self.tokens());
        ApplyOutcome {
            applied,
            reason: reason.into(),
            summary_id: summary.map(summary::format_summary_id),
            purpose: self.task.completion_purpose(),
            depth: self.task.depth,
            level: self.task.level,
            capped: false,
            provisional: false,
            replaces: None,
            tokens_before: tokens,
            tokens_after: tokens,
            more: matches!(applied, ApplyStatus::Committed | ApplyStatus::Stale),
            next: None,
            sweep: String::new(),
            warnings: self.warnings.clone(),
            events_json: self.events.clone().into_json(),
        }
    }

    /// Judges the answer and commits a summary, a fallback or the rejection. If no model answered
    /// (`completion` is `None`), makes a fallback. If the sources left the context, or the answer
    /// is not to the current attempt, the outcome is `stale`.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; `limit-exceeded`: the context or the search index
    /// would have too many parts; errors of the store.
    pub(super) fn settle_answer(
        mut self,
        session: &mut StoreSession<'_>,
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        let Some(splice) = self.locate_sources(session)? else {
            return self.settle_stale(session, completion);
        };
        if self.attempts.as_ref().is_some_and(|known| known.is_exhausted) {
            let mut outcome = self.build_outcome(ApplyStatus::Refused, reason::NO_PROGRESS, None);
            outcome.more = true;
            return self.commit_charge(session, completion, outcome);
        }
        if !self.is_current() {
            let outcome = self.build_outcome(ApplyStatus::Stale, reason::CONFLICT, None);
            return self.commit_charge(session, completion, outcome);
        }
        let Some(answer) = completion else {
            return match self.failure.and_then(|code| self.show_less(code, &splice)) {
                Some(next) => self.request_less(session, &splice, &next),
                None => self.fall_back(session, &splice, None),
            };
        };
        if self.is_remake_without_model(answer) {
            return self.record_model_failure(session, CompletionErrorCode::Unavailable);
        }
        match acceptance::judge_completion(&self.task, answer, &splice.gathered) {
            CompletionVerdict::Retry { rule, level, findings } => {
                self.report_rejection(rule, &findings);
                self.request_retry(session, &splice, answer, level, findings)
            }
            CompletionVerdict::Accept(accepted) => {
                self.commit_accepted(session, &splice, answer, accepted)
            }
            CompletionVerdict::Fallback { rule, findings } => {
                self.report_rejection(rule, &findings);
                self.fall_back(session, &splice, completion)
            }
        }
    }

    /// Commits the text of an accepted answer as the summary.
    pub(crate) fn commit_accepted(
        self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        completion: &Completion,
        text: AcceptedText,
    ) -> Result<ApplyOutcome> {
        let level = StoredLevel::from(self.task.level);
        let is_provisional = self.is_provisional_text(Some(completion), level);
        let answer = text.into_answer(level, completion, is_provisional);
        self.commit_summary(session, splice, Some(completion), answer)
    }

    /// Returns whether the answer would leave a remake provisional: the offline summariser gave the
    /// answer, or the answer replaces the answer of a model that failed.
    pub(super) fn is_remake_without_model(&self, answer: &Completion) -> bool {
        let is_model = answer.model != OFFLINE_MODEL && !self.is_stand_in;
        self.task.replaced_id().is_some() && !is_model
    }

    /// Adds the event of a rejected answer to the current task, and the warning unless it was added
    /// before. `findings`: the verifier's findings, one per line.
    pub(crate) fn report_rejection(&mut self, rule: RejectionRule, findings: &str) {
        self.add_rejection_event(rule, findings);
        if !self.warnings.iter().any(|warning| warning == rule.warning_text()) {
            self.warnings.push(rule.warning_text().into());
        }
    }

    /// Settles an answer that came too late: the sources left the context. If an earlier call
    /// replaced the sources by a fallback, commits nothing and returns the outcome of the fallback.
    /// Otherwise counts the answer as rejected, which may begin a pause, and commits the ledger.
    /// The context does not change. Without an answer, commits nothing.
    fn settle_stale(
        self,
        session: &mut StoreSession<'_>,
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        if let Some(outcome) = self.find_committed_fallback(session)? {
            return Ok(outcome);
        }
        let outcome = self.build_outcome(ApplyStatus::Stale, reason::CONFLICT, None);
        self.commit_charge(session, completion, outcome)
    }

    /// Commits a rejected answer and returns the request of the next attempt. If the answer began a
    /// pause, the outcome is a refusal without a request.
    fn request_retry(
        mut self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        answer: &Completion,
        level: Level,
        findings: String,
    ) -> Result<ApplyOutcome> {
        let mut attempts = self.attempts.clone().unwrap_or_default();
        attempts.level = StoredLevel::from(level);
        attempts.attempt += 1;
        attempts.findings = findings;
        attempts.tokens += spend_limit::count_tokens(answer);
        let next = self.build_task_at(level, attempts.attempt);
        let outcome = match self.count_answer(answer, false) {
            true => self.build_outcome(ApplyStatus::Refused, reason::SPEND_LIMIT, None),
            false => self.build_retry(session, splice, &next, &attempts.findings)?,
        };
        self.commit_attempts(session, &attempts, Changes::default())?;
        Ok(outcome)
    }

    /// Builds the outcome with the request of `next`, another attempt at the task.
    fn build_retry(
        &self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        next: &SummaryTask,
        findings: &str,
    ) -> Result<ApplyOutcome> {
        let (config, sources) = (self.call.config, &splice.gathered);
        let previous =
            splice.read_previous(session, self.call, &self.loaded.head, self.task.depth)?;
        let next = request::build_request(config, next, sources, previous.as_deref(), findings);
        Ok(ApplyOutcome { next: Some(next), ..self.build_outcome(ApplyStatus::Retry, "", None) })
    }

    /// Returns the attempt after a request that was too long for the model, and notes it in memory.
    /// The attempt shows less of the sources and asks for less text. `None`: the model failed for
    /// another reason, or no attempt is left.
    pub(crate) fn show_less(
        &mut self,
        code: CompletionErrorCode,
        splice: &SourceSplice,
    ) -> Option<SummaryTask> {
        if code != CompletionErrorCode::ContextTooLong {
            return None;
        }
        let shown = self.task.find_smaller_source(tokens::estimate(&splice.gathered.text))?;
        let known = self.rejected_attempts.take().or_else(|| self.attempts.clone());
        let level = Level::Aggressive;
        let next = self.build_task_at(level, self.task.attempt + 1);
        self.rejected_attempts = Some(TaskAttempts {
            level: StoredLevel::from(level),
            attempt: next.attempt,
            shown_tokens_max: shown,
            ..known.unwrap_or_default()
        });
        self.warnings.push(format!(
            "context-too-long: the sources are too long for the model, which is shown {shown} \
             tokens of them"
        ));
        Some(SummaryTask { shown_tokens_max: shown, ..next })
    }

    /// Commits the attempt of [`show_less`](Self::show_less), `next`, and returns its request.
    fn request_less(
        mut self,
        session: &mut StoreSession<'_>,
        splice: &SourceSplice,
        next: &SummaryTask,
    ) -> Result<ApplyOutcome> {
        let attempts = self.rejected_attempts.take().unwrap_or_default();
        let outcome = self.build_retry(session, splice, next, &attempts.findings)?;
        self.commit_attempts(session, &attempts, Changes::default())?;
        Ok(outcome)
    }

    /// Counts an answer in the ledger. Returns whether the answer began a pause; if so, adds the
    /// warning of the pause.
    fn count_answer(&mut self, completion: &Completion, is_accepted: bool) -> bool {
        let (limits, clock) = (self.spend_limits, self.clock);
        let ledger = &mut self.loaded.head.ledger;
        let pauses = spend_limit::count_answer(ledger, completion, is_accepted, limits, &clock);
        if pauses {
            self.warnings
                .push(spend_limit::build_pause_warning(clock.clock.to_time(ledger.paused_until)));
        }
        pauses
    }

    /// Counts an answer, if there is an answer, and adds the warnings to the outcome.
    /// `is_accepted`: the answer became the summary; any other answer counts as rejected.
    fn charge_answer(
        &mut self,
        outcome: &mut ApplyOutcome,
        completion: Option<&Completion>,
        is_accepted: bool,
    ) {
        if let Some(completion) = completion {
            self.count_answer(completion, is_accepted);
            outcome.warnings.clone_from(&self.warnings);
        }
    }

    /// Returns whether the task has the attempt and level that are next; false for exhausted
    /// sources.
    pub(crate) fn is_current(&self) -> bool {
        let known = self.attempts.clone().unwrap_or_default();
        !known.is_exhausted
            && known.attempt == self.task.attempt
            && known.completion_level() == self.task.level
    }

    /// Counts an answer that `run` rejected and advances to the next attempt in memory. Returns
    /// whether the answer began a pause.
    pub(crate) fn reject_answer(
        &mut self,
        completion: &Completion,
        rule: RejectionRule,
        level: Level,
        findings: String,
    ) -> bool {
        self.report_rejection(rule, &findings);
        let pauses = self.count_answer(completion, false);
        let known =
            self.rejected_attempts.take().or_else(|| self.attempts.clone()).unwrap_or_default();
        let attempt = known.attempt + 1;
        self.task = self.build_task_at(level, attempt);
        let (level, tokens) =
            (StoredLevel::from(level), known.tokens + spend_limit::count_tokens(completion));
        self.rejected_attempts = Some(TaskAttempts { level, attempt, tokens, findings, ..known });
        pauses
    }

    /// Returns the task of another attempt at this level.
    fn build_task_at(&self, level: Level, attempt: u32) -> SummaryTask {
        let mut task = SummaryTask { level, attempt, ..self.task.clone() };
        // Another attempt uses the current prompts.
        task.prompt_version = task.prompt_template().version(&self.call.config.prompt_overrides);
        if level == Level::Aggressive {
            task.tokens_target = task.tokens_target_aggressive;
        }
        task
    }
}
