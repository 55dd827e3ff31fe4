//! Apply: one answer, judged and settled in at most one commit.
//!
//! The task token says what the sources are; they must still stand in the context as they did. The
//! plan is never asked again, and neither budget nor configuration nor clock decides anything but
//! what the token holds. The one exception is what counts as injected context: an answer is held
//! against what its sources have to say by the configuration of the caller.

use crate::storage::session;
use crate::storage::summary_items;
use alloc::{string::String, vec::Vec};

use crate::{
    search::IndexMaintenance,
    storage::{
        codec,
        context::ContextItem,
        head::{JournalAction, JournalEntry, LoadedHead},
        history::{self, MessageHistory},
        keys::{self, ConversationKeys},
        pack_compaction,
        records::calibration,
        store::{Guard, Put},
        store_session::StoreSession,
        summary::{self, OFFLINE_MODEL, StoredFinish, StoredLevel, Summary},
    },
};
use lcm_text::{
    base::{error::Result, int, sort, tokens},
    config::Config,
    summary::{offline_summary, transcript::TranscriptOptions, verify},
    types::{
        api::{ApplyOptions, ApplyOutcome, ApplyStatus, Timestamp},
        model::{Completion, CompletionErrorCode, CompletionResult, Level},
    },
};

use super::{
    acceptance::{self, CompletionVerdict, RejectionRule, SettledAnswer},
    attempts::{ModelBreaker, TaskAttempts},
    reason, request,
    source_text::{self, GatheredSources, SummaryDraft},
    spend_limit,
    splice::{SourceSplice, last_compactable_seq},
    task::{self, SourceSpan, SummaryTask},
};

/// Settles an answer.
///
/// # Errors
///
/// `invalid-input`: no task of this engine; `not-found`: no such conversation; `conflict`; errors
/// of the store.
pub(crate) fn apply(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    request_id: &str,
    answer: &CompletionResult,
    options: &ApplyOptions,
    now: Timestamp,
) -> Result<ApplyOutcome> {
    let keys = ConversationKeys::new(conversation)?;
    let task = SummaryTask::parse(request_id)?;
    let model = calibration::CalibratedModel::from_options(&keys, options.extra_json.as_deref())?;
    let settled = match answer {
        CompletionResult::Done(completion) => Some(compute_summary_id(&task, completion)),
        CompletionResult::Failed(_) => None,
    };
    let desk = TaskSettlement::open(reader, &keys, config, conversation, task, settled, now)?;
    if let Some((id, record)) = &desk.committed_summary {
        let mut outcome = desk.build_outcome(ApplyStatus::Committed, "", Some(*id));
        outcome.capped = record.capped;
        return Ok(outcome);
    }
    let mut fallback_over = options.fallback_over_tokens;
    if let (CompletionResult::Failed(_), Some(tokens), Some(model)) =
        (answer, &mut fallback_over, &model)
        && let Some(calibration) =
            model.decode_calibration(reader.read_one_uncached(&model.key)?)?
    {
        *tokens = calibration.to_estimated_floor(*tokens);
    }
    let give_up = fallback_over.is_some_and(|over| desk.tokens() > u64::from(over));
    let completion = match answer {
        CompletionResult::Done(completion) => Some(completion),
        CompletionResult::Failed(failure) => {
            let too_long = failure.code == CompletionErrorCode::ContextTooLong;
            if !too_long && !give_up {
                // A repeated call finds the context under the bound, by its own earlier commit.
                if options.fallback_over_tokens.is_some()
                    && let Some(id) = desk.find_committed_fallback(reader)?
                {
                    let mut outcome = desk.build_outcome(ApplyStatus::Committed, "", Some(id));
                    outcome.level = Level::Fallback;
                    return Ok(outcome);
                }
                return desk.record_model_failure(reader, config, failure.code);
            }
            None
        }
    };
    desk.settle_answer(reader, config, completion)
}

/// Id that the answer's summary would have if it was accepted as it is.
fn compute_summary_id(task: &SummaryTask, completion: &Completion) -> [u8; 8] {
    let (text, _) = acceptance::clean_answer(task, completion);
    summary::summary_id(
        &task.sources_hash,
        task.prompt_version,
        StoredLevel::from(task.level),
        &text,
    )
}

/// Returns the index of the context item that is this summary.
fn find_summary_item(items: &[ContextItem], id: [u8; 8]) -> Option<usize> {
    items.iter().position(|item| match item {
        ContextItem::Summary(summary) => summary.id == id,
        ContextItem::Run(_) | ContextItem::Withdrawn { .. } => false,
    })
}

/// Everything about one task that was read, before anything is decided.
pub(crate) struct TaskSettlement<'a> {
    keys: &'a ConversationKeys,
    config: &'a Config,
    pub(crate) loaded: LoadedHead,
    pub(crate) task: SummaryTask,
    attempts: Option<TaskAttempts>,
    breaker: Option<(ModelBreaker, Vec<u8>)>,
    /// The summary that this answer made in an earlier call.
    committed_summary: Option<([u8; 8], Summary)>,
    /// What is to be recorded of answers that `run` rejected.
    rejected_attempts: Option<TaskAttempts>,
    /// Those of the outcome.
    warnings: Vec<String>,
    spend_limits: spend_limit::SpendLimits,
    index_maintenance: IndexMaintenance<'a>,
    now: Timestamp,
}

impl<'a> TaskSettlement<'a> {
    /// First read: the head, the records of the task, and the summary it may have become.
    ///
    /// # Errors
    ///
    /// `not-found`: no such conversation; errors of the store.
    pub(crate) fn open(
        reader: &mut StoreSession<'_>,
        keys: &'a ConversationKeys,
        config: &'a Config,
        conversation: &str,
        task: SummaryTask,
        settled: Option<[u8; 8]>,
        now: Timestamp,
    ) -> Result<Self> {
        let mut wanted = alloc::vec![
            keys.attempt_key(&task.sources_hash),
            keys::breaker_key(&task.breaker_scope)
        ];
        wanted.extend(settled.map(|id| keys.summary_key(id)));
        wanted.push(keys.manifest_key());
        let (loaded, mut found) = LoadedHead::read_with_keys(reader, keys, conversation, &wanted)?;
        let upkeep = IndexMaintenance::new(keys, found.pop().flatten().as_deref())?;
        let loaded = loaded.require_existing()?;
        session::ensure_not_archived(reader, &loaded.head)?;
        let mut found = wanted.iter().zip(found);
        let attempts = match found.next() {
            Some((key, Some(value))) => Some(codec::decode(key, &value)?),
            _ => None,
        };
        let guard = match found.next() {
            Some((key, Some(value))) => Some((codec::decode(key, &value)?, value)),
            _ => None,
        };
        let settled = match (settled, found.next()) {
            (Some(id), Some((key, Some(value)))) => Some((id, codec::decode(key, &value)?)),
            _ => None,
        };
        let now = loaded.effective_time(now)?;
        let limits = spend_limit::SpendLimits::from_config(config);
        let (rejected, warnings) = (None, Vec::new());
        Ok(Self {
            keys,
            config,
            loaded,
            task,
            attempts,
            breaker: guard,
            committed_summary: settled,
            rejected_attempts: rejected,
            warnings,
            spend_limits: limits,
            index_maintenance: upkeep,
            now,
        })
    }

    fn tokens(&self) -> u64 {
        self.loaded.head.context.tokens
    }

    /// How the sources are read: cut as the task says, without what is injected as of now.
    fn transcript_options(&self) -> TranscriptOptions<'a> {
        let injected_tags = &self.config.strip_injected_context_tags;
        TranscriptOptions { part_tokens_max: self.task.part_tokens_max, injected_tags }
    }

    fn build_outcome(
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
            tokens_before: tokens,
            tokens_after: tokens,
            more: matches!(applied, ApplyStatus::Committed | ApplyStatus::Stale),
            next: None,
            sweep: String::new(),
            warnings: self.warnings.clone(),
        }
    }

    /// A model that could not answer is no attempt: only its guard may change.
    ///
    /// # Errors
    ///
    /// Of the store.
    pub(crate) fn record_model_failure(
        self,
        reader: &mut StoreSession<'_>,
        config: &Config,
        code: CompletionErrorCode,
    ) -> Result<ApplyOutcome> {
        let reason = match code {
            CompletionErrorCode::Auth => reason::MODEL_AUTH,
            CompletionErrorCode::Policy => reason::MODEL_POLICY,
            _ => reason::MODEL_UNAVAILABLE,
        };
        let outcome = self.build_outcome(ApplyStatus::Refused, reason, None);
        let (mut puts, mut guards) = (Vec::new(), Vec::new());
        if matches!(code, CompletionErrorCode::Auth | CompletionErrorCode::Policy) {
            let key = keys::breaker_key(&self.task.breaker_scope);
            let (guard, old) = match &self.breaker {
                Some((guard, value)) => (*guard, Some(value.clone())),
                None => (ModelBreaker::default(), None),
            };
            let value = Some(codec::encode(&guard.with_failure(self.now, config))?);
            guards.push(Guard { key: key.clone(), value: old });
            puts.push(Put { key, value });
        }
        match self.rejected_attempts {
            // Answers were paid for and rejected before the model failed.
            Some(attempts) => {
                let key = self.keys.attempt_key(&self.task.sources_hash);
                puts.push(Put { key, value: Some(codec::encode(&attempts)?) });
                let act = JournalAction::Reject { sources: self.task.sources_hash };
                let entry = JournalEntry { time: self.now, act };
                self.loaded.commit(reader, self.keys, self.now, &entry, puts, guards)?;
            }
            None if !puts.is_empty() => reader.commit(&guards, &puts)?,
            None => {}
        }
        Ok(outcome)
    }

    /// Judges the answer (`None`: there is none and there will be none) and commits what follows.
    fn settle_answer(
        mut self,
        reader: &mut StoreSession<'_>,
        config: &Config,
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        let Some(place) = self.locate_sources(reader)? else {
            return self.settle_stale(reader, completion);
        };
        let known = self.attempts.clone().unwrap_or_default();
        if known.is_exhausted {
            let mut outcome = self.build_outcome(ApplyStatus::Refused, reason::NO_PROGRESS, None);
            outcome.more = true;
            return self.commit_charge(reader, completion, outcome);
        }
        if known.attempt != self.task.attempt || known.completion_level() != self.task.level {
            return self.settle_stale(reader, completion);
        }
        let Some(answered) = completion else { return self.fall_back(reader, &place, None) };
        match acceptance::judge_completion(&self.task, answered, &place.gathered) {
            CompletionVerdict::Retry { rule, level, findings } => {
                self.add_rejection_warning(rule);
                self.request_retry(reader, config, &place, completion, level, findings)
            }
            CompletionVerdict::Accept(accepted) => {
                let level = StoredLevel::from(self.task.level);
                self.commit_summary(
                    reader,
                    &place,
                    completion,
                    accepted.into_answer(level, answered),
                )
            }
            CompletionVerdict::Fallback { rule } => {
                self.reject_and_fall_back(reader, &place, answered, rule)
            }
        }
    }

    /// Makes the summary without the model, whose answer was rejected for good.
    ///
    /// # Errors
    ///
    /// As [`apply`].
    pub(crate) fn reject_and_fall_back(
        mut self,
        reader: &mut StoreSession<'_>,
        place: &SourceSplice,
        completion: &Completion,
        rule: RejectionRule,
    ) -> Result<ApplyOutcome> {
        self.add_rejection_warning(rule);
        self.fall_back(reader, place, Some(completion))
    }

    /// Adds why an answer was rejected to the outcome, once.
    fn add_rejection_warning(&mut self, rule: RejectionRule) {
        if !self.warnings.iter().any(|warning| warning == rule.warning_text()) {
            self.warnings.push(rule.warning_text().into());
        }
    }

    /// Where the sources stand in the context now; `None`: they do not, or not as they did.
    ///
    /// # Errors
    ///
    /// As [`StoreSession::read_immutable`].
    pub(crate) fn locate_sources(
        &self,
        reader: &mut StoreSession<'_>,
    ) -> Result<Option<SourceSplice>> {
        let reading = self.transcript_options();
        let head = &self.loaded.head;
        let history = MessageHistory { keys: self.keys, head };
        let mut nodes = self.list_directory_nodes();
        nodes.extend(pack_compaction::list_directory_nodes(&history));
        sort::sort_and_dedup_numbers(&mut nodes);
        reader.prefetch_records(self.keys, &head.context.node_keys(self.keys), &nodes)?;
        let items = head.context.load_items(reader, self.keys)?;
        let (from, to) = match self.task.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                let inside = |item: &ContextItem| match item {
                    ContextItem::Run(run) => run.seq_first <= seq_first && seq_last <= run.seq_last,
                    ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => false,
                };
                match items.iter().position(inside) {
                    Some(at) if self.matches_messages(reader, &history, seq_first, seq_last)? => {
                        (at, at + 1)
                    }
                    _ => return Ok(None),
                }
            }
            SourceSpan::Items { first, count, .. } => {
                let Some(at) = find_summary_item(&items, first) else { return Ok(None) };
                let to = at.saturating_add(int::to_usize(u64::from(count)));
                let matches = items
                    .get(at..to)
                    .is_some_and(|slice| task::hash_items(slice) == self.task.sources_hash);
                if !matches {
                    return Ok(None);
                }
                (at, to)
            }
        };
        // The sources, and with them what this commit may seal: what is not indexed stays in the
        // packs that an append reads to index it.
        let until = last_compactable_seq(&items, from, self.task.span).min(head.indexed.messages);
        let mut wanted = pack_compaction::list_pack_keys(reader, &history, until)?;
        match self.task.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                let refs = history.find_pack_refs(reader, seq_first, seq_last)?;
                wanted.extend(refs.iter().map(|pack| (pack.key(self.keys), pack.bytes)));
            }
            SourceSpan::Items { .. } => {
                let slice = items.get(from..to).unwrap_or(&[]);
                wanted.extend(summary_items::summary_keys(&history, slice));
            }
        }
        reader.prefetch_records(self.keys, &wanted, &[])?;
        let gathered = match self.task.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                source_text::gather_messages(reader, &history, seq_first, seq_last, reading)?
            }
            SourceSpan::Items { .. } => {
                let slice = items.get(from..to).unwrap_or(&[]);
                source_text::gather_items(reader, &history, slice, reading)?
            }
        };
        let same =
            gathered.task_hash == self.task.sources_hash && gathered.depth == self.task.depth;
        if !same {
            return Ok(None);
        }
        let seal = pack_compaction::read_compactable_packs(reader, &history, until)?;
        Ok(Some(SourceSplice { items, from, to, gathered, pack_compaction: seal }))
    }

    /// Whether the task's hash is that of these messages. Looks at the last one only, so that a
    /// made-up token costs no more.
    fn matches_messages(
        &self,
        reader: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        seq_first: u64,
        seq_last: u64,
    ) -> Result<bool> {
        if seq_last > history.head.messages {
            return Ok(false);
        }
        let frontier = history.frontier_at(reader, seq_last)?;
        Ok(task::hash_messages(seq_first, seq_last, &frontier) == self.task.sources_hash)
    }

    /// Directory nodes around the sources of a leaf.
    fn list_directory_nodes(&self) -> Vec<u64> {
        let SourceSpan::Messages { seq_first, seq_last } = self.task.span else {
            return Vec::new();
        };
        let head = &self.loaded.head;
        let flushed = head.packs.first().map_or(head.messages + 1, |pack| pack.seq_first);
        let last = seq_last.min(flushed.saturating_sub(1));
        if seq_first > last {
            return Vec::new();
        }
        (history::directory_node(seq_first)..=history::directory_node(last)).collect()
    }

    /// The sources are gone: paid tokens are counted, nothing else changes. When they became a
    /// fallback by an earlier call with this answer, that is what is reported.
    fn settle_stale(
        self,
        reader: &mut StoreSession<'_>,
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        if let Some(id) = self.find_committed_fallback(reader)? {
            let mut outcome = self.build_outcome(ApplyStatus::Committed, "", Some(id));
            outcome.level = Level::Fallback;
            return Ok(outcome);
        }
        let outcome = self.build_outcome(ApplyStatus::Stale, reason::CONFLICT, None);
        self.commit_charge(reader, completion, outcome)
    }

    /// Commits nothing but what the answer cost.
    fn commit_charge(
        mut self,
        reader: &mut StoreSession<'_>,
        completion: Option<&Completion>,
        mut outcome: ApplyOutcome,
    ) -> Result<ApplyOutcome> {
        if completion.is_none() {
            return Ok(outcome);
        }
        self.charge_answer(&mut outcome, completion, false);
        let entry = JournalEntry {
            time: self.now,
            act: JournalAction::Stale { sources: self.task.sources_hash },
        };
        self.loaded.commit(reader, self.keys, self.now, &entry, Vec::new(), Vec::new())?;
        Ok(outcome)
    }

    /// The fallback that these very sources were replaced by, if they were.
    fn find_committed_fallback(&self, reader: &mut StoreSession<'_>) -> Result<Option<[u8; 8]>> {
        let head = &self.loaded.head;
        let history = MessageHistory { keys: self.keys, head };
        let level = StoredLevel::Fallback;
        let id = match self.task.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                if !self.matches_messages(reader, &history, seq_first, seq_last)? {
                    return Ok(None);
                }
                let reading = self.transcript_options();
                let gathered =
                    source_text::gather_messages(reader, &history, seq_first, seq_last, reading)?;
                let Some(text) = self.build_fallback_text(&gathered) else { return Ok(None) };
                summary::summary_id(&gathered.task_hash, self.task.prompt_version, level, &text)
            }
            SourceSpan::Items { first, .. } => {
                let key = self.keys.derived_key(first);
                match reader.read_one_uncached(&key)? {
                    Some(value) => codec::decode::<[u8; 8]>(&key, &value)?,
                    None => return Ok(None),
                }
            }
        };
        let key = self.keys.summary_key(id);
        let value = reader.read_one_uncached(&key)?;
        let Some(value) = value else { return Ok(None) };
        let record: Summary = codec::decode(&key, &value)?;
        let same = record.task == self.task.sources_hash && record.level == level;
        Ok(same.then_some(id))
    }

    fn build_fallback_text(&self, gathered: &GatheredSources) -> Option<String> {
        let source_tokens = int::saturate_tokens(gathered.tokens);
        let text = offline_summary::build_fallback(
            &gathered.text,
            source_tokens,
            self.task.fallback_tokens_max,
        )?;
        (u64::from(tokens::estimate(&text)) < gathered.tokens).then_some(text)
    }

    fn request_retry(
        mut self,
        reader: &mut StoreSession<'_>,
        config: &Config,
        place: &SourceSplice,
        completion: Option<&Completion>,
        level: Level,
        findings: String,
    ) -> Result<ApplyOutcome> {
        let mut outcome = self.build_outcome(ApplyStatus::Retry, "", None);
        let mut attempts = self.attempts.clone().unwrap_or_default();
        attempts.level = StoredLevel::from(level);
        attempts.attempt += 1;
        attempts.findings = findings;
        attempts.tokens += completion.map_or(0, spend_limit::count_tokens);
        let next = self.build_task_at(level, attempts.attempt);
        let tags = &config.strip_injected_context_tags;
        let previous =
            place.read_previous(reader, self.keys, &self.loaded.head, &self.task, tags)?;
        let previous = previous.as_deref();
        outcome.next = Some(request::build_request(
            config,
            &next,
            &place.gathered,
            previous,
            &attempts.findings,
        ));
        if completion.is_some_and(|completion| self.count_answer(completion, false)) {
            outcome = self.build_outcome(ApplyStatus::Refused, reason::SPEND_LIMIT, None);
        }
        self.commit_attempts(reader, &attempts)?;
        Ok(outcome)
    }

    /// Counts an answer; whether that began a pause, of which the outcome then warns.
    fn count_answer(&mut self, completion: &Completion, accepted: bool) -> bool {
        let (limits, now) = (self.spend_limits, self.now);
        let ledger = &mut self.loaded.head.ledger;
        let pauses = spend_limit::count_answer(ledger, completion, accepted, limits, now);
        if pauses {
            self.warnings.push(spend_limit::build_pause_warning(ledger.paused_until));
        }
        pauses
    }

    /// Counts an answer, if there is one, and has the outcome warn of what follows.
    fn charge_answer(
        &mut self,
        outcome: &mut ApplyOutcome,
        completion: Option<&Completion>,
        accepted: bool,
    ) {
        if let Some(completion) = completion {
            self.count_answer(completion, accepted);
            outcome.warnings.clone_from(&self.warnings);
        }
    }

    /// The one commit of an answer that became no summary.
    fn commit_attempts(self, reader: &mut StoreSession<'_>, attempts: &TaskAttempts) -> Result<()> {
        let sources = self.task.sources_hash;
        let value = Some(codec::encode(attempts)?);
        let puts = alloc::vec![Put { key: self.keys.attempt_key(&sources), value }];
        let entry = JournalEntry { time: self.now, act: JournalAction::Reject { sources } };
        self.loaded.commit(reader, self.keys, self.now, &entry, puts, Vec::new())?;
        Ok(())
    }

    /// Whether the records say that this attempt is the one to settle.
    pub(crate) fn is_current(&self) -> bool {
        let known = self.attempts.clone().unwrap_or_default();
        !known.is_exhausted
            && known.attempt == self.task.attempt
            && known.completion_level() == self.task.level
    }

    /// Counts an answer that `run` rejected and moves on to the next attempt, in memory. Returns
    /// whether that began a pause.
    pub(crate) fn reject_answer(
        &mut self,
        completion: &Completion,
        rule: RejectionRule,
        level: Level,
        findings: String,
    ) -> bool {
        self.add_rejection_warning(rule);
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

    /// Ends `run` with what was rejected.
    ///
    /// # Errors
    ///
    /// Of the store.
    pub(crate) fn commit_pause(mut self, reader: &mut StoreSession<'_>) -> Result<ApplyOutcome> {
        let outcome = self.build_outcome(ApplyStatus::Refused, reason::SPEND_LIMIT, None);
        let attempts = self.rejected_attempts.take().or_else(|| self.attempts.clone());
        self.commit_attempts(reader, &attempts.unwrap_or_default())?;
        Ok(outcome)
    }

    /// The same task once more, at another level.
    pub(crate) fn build_task_at(&self, level: Level, attempt: u32) -> SummaryTask {
        let mut task = SummaryTask { level, attempt, ..self.task.clone() };
        // Asked again, it is asked by the texts of now.
        task.prompt_version = task.prompt_template().version(&self.config.prompt_overrides);
        if level == Level::Aggressive {
            task.tokens_target = task.tokens_target_aggressive;
        }
        task
    }

    /// Makes the summary without the model; when even that is not smaller, the sources are passed
    /// over until they change.
    ///
    /// # Errors
    ///
    /// As [`apply`].
    pub(crate) fn fall_back(
        mut self,
        reader: &mut StoreSession<'_>,
        place: &SourceSplice,
        completion: Option<&Completion>,
    ) -> Result<ApplyOutcome> {
        if let Some(text) = self.build_fallback_text(&place.gathered) {
            let findings = verify::format_findings(&verify::verify(&place.gathered.text, &text));
            let (level, model) = (StoredLevel::Fallback, OFFLINE_MODEL);
            let finish = completion.map(|completion| StoredFinish::from(completion.finish));
            let answer = SettledAnswer { text, capped: false, findings, level, model, finish };
            return self.commit_summary(reader, place, completion, answer);
        }
        let mut outcome = self.build_outcome(ApplyStatus::Refused, reason::NO_PROGRESS, None);
        outcome.more = true;
        let known = self.attempts.clone().unwrap_or_default();
        let spent = known.tokens + completion.map_or(0, spend_limit::count_tokens);
        let attempts = TaskAttempts { is_exhausted: true, tokens: spent, lease_until: 0, ..known };
        self.charge_answer(&mut outcome, completion, false);
        self.commit_attempts(reader, &attempts)?;
        Ok(outcome)
    }

    /// Commits a summary in place of its sources.
    ///
    /// # Errors
    ///
    /// As [`apply`].
    pub(crate) fn commit_summary(
        mut self,
        reader: &mut StoreSession<'_>,
        place: &SourceSplice,
        completion: Option<&Completion>,
        answer: SettledAnswer<'_>,
    ) -> Result<ApplyOutcome> {
        let mut outcome = self.build_outcome(ApplyStatus::Committed, "", None);
        let record = place.gathered.build_summary(SummaryDraft {
            text: answer.text,
            level: answer.level,
            capped: answer.capped,
            findings: answer.findings,
            model: answer.model,
            finish: answer.finish,
            created_at: self.now,
            prompt_version: self.task.prompt_version,
        });
        let passes_left = self.tokens() / place.gathered.tokens.max(1);
        self.index_maintenance.prepare_summary(reader, passes_left)?;
        let before = self.loaded.head.context.clone();
        let id = record.id();
        let value = codec::encode_compressed(&record)?;
        let bytes = int::to_u32(value.len());
        let (context, mut puts) =
            place.replace_sources(self.keys, &self.loaded.head, &record, bytes)?;
        let mut records: Vec<(&Summary, u32)> = Vec::new();
        for bridge in &place.gathered.bridges {
            let value = codec::encode_compressed(bridge)?;
            records.push((bridge, int::to_u32(value.len())));
            puts.push(Put { key: self.keys.summary_key(bridge.id()), value: Some(value) });
        }
        records.push((&record, bytes));
        puts.push(Put { key: self.keys.summary_key(id), value: Some(value) });
        if let summary::SummarySources::Summaries(list) = &record.sources {
            for source in list {
                let value = Some(codec::encode(&id)?);
                puts.push(Put { key: self.keys.derived_key(source.id), value });
            }
        }
        if self.attempts.is_some() {
            puts.push(Put { key: self.keys.attempt_key(&self.task.sources_hash), value: None });
        }
        let guards = self.reset_breaker(&mut puts, completion.is_some())?;
        self.charge_answer(&mut outcome, completion, answer.level != StoredLevel::Fallback);
        self.index_maintenance.append_summaries(&records, &mut puts)?;
        let head = &mut self.loaded.head;
        head.context = context;
        let saved = before.tokens.saturating_sub(head.context.tokens);
        head.ledger.saved_tokens = head.ledger.saved_tokens.saturating_add(saved);
        head.summaries += 1 + int::to_u64(place.gathered.bridges.len());
        if let Some(seal) = &place.pack_compaction {
            let sealed = seal.compact_packs(self.keys, head, &puts)?;
            puts.extend(sealed);
        }
        let entry = JournalEntry {
            time: self.now,
            act: JournalAction::Compact { summary: id, made: record.to_provenance(), before },
        };
        let head = self.loaded.commit(reader, self.keys, self.now, &entry, puts, guards)?;
        outcome.summary_id = Some(summary::format_summary_id(id));
        outcome.level = match answer.level {
            StoredLevel::Fallback => Level::Fallback,
            _ => self.task.level,
        };
        outcome.capped = answer.capped;
        outcome.tokens_after = int::saturate_tokens(head.context.tokens);
        Ok(outcome)
    }

    /// A model that answered is well again: its count of failures goes back to 0.
    fn reset_breaker(&self, puts: &mut Vec<Put>, answered: bool) -> Result<Vec<Guard>> {
        match &self.breaker {
            Some((guard, value)) if answered && guard.failures > 0 => {
                let key = keys::breaker_key(&self.task.breaker_scope);
                let reset = Some(codec::encode(&ModelBreaker::default())?);
                puts.push(Put { key: key.clone(), value: reset });
                Ok(alloc::vec![Guard { key, value: Some(value.clone()) }])
            }
            _ => Ok(Vec::new()),
        }
    }
}
