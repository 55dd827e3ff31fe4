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
    search::Upkeep,
    storage::{
        codec,
        context::Item,
        head::{Act, Journal, Loaded},
        history::{self, History},
        keys::{self, Keys},
        pack_compaction,
        records::calibration,
        store::{Guard, Put},
        store_session::Reader,
        summary::{self, OFFLINE, StoredFinish, StoredLevel, Summary},
    },
};
use lcm_text::{
    base::{error::Result, int, sort, tokens},
    config::Config,
    summary::{offline_summary, transcript::Reading, verify},
    types::{
        api::{Applied, ApplyOptions, Outcome, Timestamp},
        model::{Completion, CompletionErrorCode, CompletionResult, Level},
    },
};

use super::{
    judge::{self, Answer, Rule, Verdict},
    place::{Place, sealable},
    reason,
    records::{Attempts, ModelGuard},
    request,
    sources::{self, Gathered, Written},
    spend,
    task::{self, Span, Task},
};

/// Settles an answer.
///
/// # Errors
///
/// `invalid-input`: no task of this engine; `not-found`: no such conversation; `conflict`; errors
/// of the store.
pub(crate) fn apply(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    request_id: &str,
    answer: &CompletionResult,
    options: &ApplyOptions,
    now: Timestamp,
) -> Result<Outcome> {
    let keys = Keys::new(conversation)?;
    let task = Task::parse(request_id)?;
    let model = calibration::Wanted::of_options(&keys, options.extra_json.as_deref())?;
    let settled = match answer {
        CompletionResult::Done(completion) => Some(settled_id(&task, completion)),
        CompletionResult::Failed(_) => None,
    };
    let desk = Desk::open(reader, &keys, config, conversation, task, settled, now)?;
    if let Some((id, record)) = &desk.settled {
        let mut outcome = desk.outcome(Applied::Committed, "", Some(*id));
        outcome.capped = record.capped;
        return Ok(outcome);
    }
    let mut fallback_over = options.fallback_over_tokens;
    if let (CompletionResult::Failed(_), Some(tokens), Some(model)) =
        (answer, &mut fallback_over, &model)
        && let Some(calibration) = model.found(reader.fresh_one(&model.key)?)?
    {
        *tokens = calibration.estimated(*tokens);
    }
    let give_up = fallback_over.is_some_and(|over| desk.tokens() > u64::from(over));
    let completion = match answer {
        CompletionResult::Done(completion) => Some(completion),
        CompletionResult::Failed(failure) => {
            let too_long = failure.code == CompletionErrorCode::ContextTooLong;
            if !too_long && !give_up {
                // A repeated call finds the context under the bound, by its own earlier commit.
                if options.fallback_over_tokens.is_some()
                    && let Some(id) = desk.became(reader)?
                {
                    let mut outcome = desk.outcome(Applied::Committed, "", Some(id));
                    outcome.level = Level::Fallback;
                    return Ok(outcome);
                }
                return desk.model_failed(reader, config, failure.code);
            }
            None
        }
    };
    desk.settle(reader, config, completion)
}

/// Id that the answer's summary would have if it was accepted as it is.
fn settled_id(task: &Task, completion: &Completion) -> [u8; 8] {
    let (text, _) = judge::settle_text(task, completion);
    summary::id(&task.sources, task.prompt_version, StoredLevel::from(task.level), &text)
}

/// Everything about one task that was read, before anything is decided.
pub(crate) struct Desk<'a> {
    keys: &'a Keys,
    config: &'a Config,
    pub(crate) loaded: Loaded,
    pub(crate) task: Task,
    attempts: Option<Attempts>,
    guard: Option<(ModelGuard, Vec<u8>)>,
    /// The summary that this answer made in an earlier call.
    settled: Option<([u8; 8], Summary)>,
    /// What is to be recorded of answers that `run` rejected.
    rejected: Option<Attempts>,
    /// Those of the outcome.
    warnings: Vec<String>,
    limits: spend::Limits,
    upkeep: Upkeep<'a>,
    now: Timestamp,
}

impl<'a> Desk<'a> {
    /// First read: the head, the records of the task, and the summary it may have become.
    ///
    /// # Errors
    ///
    /// `not-found`: no such conversation; errors of the store.
    pub(crate) fn open(
        reader: &mut Reader<'_>,
        keys: &'a Keys,
        config: &'a Config,
        conversation: &str,
        task: Task,
        settled: Option<[u8; 8]>,
        now: Timestamp,
    ) -> Result<Self> {
        let mut wanted = alloc::vec![keys.attempt(&task.sources), keys::guard(&task.scope)];
        wanted.extend(settled.map(|id| keys.summary(id)));
        wanted.push(keys.manifest());
        let (loaded, mut found) = Loaded::read(reader, keys, conversation, &wanted)?;
        let upkeep = Upkeep::new(keys, found.pop().flatten().as_deref())?;
        let loaded = loaded.existing()?;
        session::goes_on(reader, &loaded.head)?;
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
        let now = loaded.now(now)?;
        let limits = spend::Limits::of(config);
        let (rejected, warnings) = (None, Vec::new());
        Ok(Self {
            keys,
            config,
            loaded,
            task,
            attempts,
            guard,
            settled,
            rejected,
            warnings,
            limits,
            upkeep,
            now,
        })
    }

    fn tokens(&self) -> u64 {
        self.loaded.head.context.tokens
    }

    /// How the sources are read: cut as the task says, without what is injected as of now.
    fn reading(&self) -> Reading<'a> {
        let injected_tags = &self.config.strip_injected_context_tags;
        Reading { part_tokens_max: self.task.part_tokens_max, injected_tags }
    }

    fn outcome(&self, applied: Applied, reason: &str, summary: Option<[u8; 8]>) -> Outcome {
        let tokens = int::tokens_u32(self.tokens());
        Outcome {
            applied,
            reason: reason.into(),
            summary: summary.map(summary::name),
            purpose: self.task.purpose(),
            depth: self.task.depth,
            level: self.task.level,
            capped: false,
            tokens_before: tokens,
            tokens_after: tokens,
            more: matches!(applied, Applied::Committed | Applied::Stale),
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
    pub(crate) fn model_failed(
        self,
        reader: &mut Reader<'_>,
        config: &Config,
        code: CompletionErrorCode,
    ) -> Result<Outcome> {
        let reason = match code {
            CompletionErrorCode::Auth => reason::MODEL_AUTH,
            CompletionErrorCode::Policy => reason::MODEL_POLICY,
            _ => reason::MODEL_UNAVAILABLE,
        };
        let outcome = self.outcome(Applied::Refused, reason, None);
        let (mut puts, mut guards) = (Vec::new(), Vec::new());
        if matches!(code, CompletionErrorCode::Auth | CompletionErrorCode::Policy) {
            let key = keys::guard(&self.task.scope);
            let (guard, old) = match &self.guard {
                Some((guard, value)) => (*guard, Some(value.clone())),
                None => (ModelGuard::default(), None),
            };
            let value = Some(codec::encode(&guard.failed(self.now, config))?);
            guards.push(Guard { key: key.clone(), value: old });
            puts.push(Put { key, value });
        }
        match self.rejected {
            // Answers were paid for and rejected before the model failed.
            Some(attempts) => {
                let key = self.keys.attempt(&self.task.sources);
                puts.push(Put { key, value: Some(codec::encode(&attempts)?) });
                let act = Act::Reject { sources: self.task.sources };
                let entry = Journal { time: self.now, act };
                self.loaded.commit(reader, self.keys, self.now, &entry, puts, guards)?;
            }
            None if !puts.is_empty() => reader.commit(&guards, &puts)?,
            None => {}
        }
        Ok(outcome)
    }

    /// Judges the answer (`None`: there is none and there will be none) and commits what follows.
    fn settle(
        mut self,
        reader: &mut Reader<'_>,
        config: &Config,
        completion: Option<&Completion>,
    ) -> Result<Outcome> {
        let Some(place) = self.place(reader)? else {
            return self.stale(reader, completion);
        };
        let known = self.attempts.clone().unwrap_or_default();
        if known.exhausted {
            let mut outcome = self.outcome(Applied::Refused, reason::NO_PROGRESS, None);
            outcome.more = true;
            return self.only_count(reader, completion, outcome);
        }
        if known.attempt != self.task.attempt || known.level() != self.task.level {
            return self.stale(reader, completion);
        }
        let Some(answered) = completion else { return self.fall_back(reader, &place, None) };
        match judge::judge(&self.task, answered, &place.gathered) {
            Verdict::Retry { rule, level, findings } => {
                self.warn(rule);
                self.retry(reader, config, &place, completion, level, findings)
            }
            Verdict::Accept(accepted) => {
                let level = StoredLevel::from(self.task.level);
                self.accept(reader, &place, completion, accepted.answer(level, answered))
            }
            Verdict::Fallback { rule } => self.give_up(reader, &place, answered, rule),
        }
    }

    /// Makes the summary without the model, whose answer was rejected for good.
    ///
    /// # Errors
    ///
    /// As [`apply`].
    pub(crate) fn give_up(
        mut self,
        reader: &mut Reader<'_>,
        place: &Place,
        completion: &Completion,
        rule: Rule,
    ) -> Result<Outcome> {
        self.warn(rule);
        self.fall_back(reader, place, Some(completion))
    }

    /// Adds why an answer was rejected to the outcome, once.
    fn warn(&mut self, rule: Rule) {
        if !self.warnings.iter().any(|warning| warning == rule.warning()) {
            self.warnings.push(rule.warning().into());
        }
    }

    /// Where the sources stand in the context now; `None`: they do not, or not as they did.
    ///
    /// # Errors
    ///
    /// As [`Reader::immutable`].
    pub(crate) fn place(&self, reader: &mut Reader<'_>) -> Result<Option<Place>> {
        let reading = self.reading();
        let head = &self.loaded.head;
        let history = History { keys: self.keys, head };
        let mut nodes = self.directory_nodes();
        nodes.extend(pack_compaction::nodes(&history));
        sort::distinct_numbers(&mut nodes);
        reader.prefetch(self.keys, &head.context.node_keys(self.keys), &nodes)?;
        let items = head.context.load(reader, self.keys)?;
        let (from, to) = match self.task.span {
            Span::Messages { seq_first, seq_last } => {
                let inside = |item: &Item| match item {
                    Item::Run(run) => run.seq_first <= seq_first && seq_last <= run.seq_last,
                    Item::Summary(_) | Item::Withdrawn { .. } => false,
                };
                match items.iter().position(inside) {
                    Some(at) if self.names_messages(reader, &history, seq_first, seq_last)? => {
                        (at, at + 1)
                    }
                    _ => return Ok(None),
                }
            }
            Span::Items { first, count, .. } => {
                let is_first =
                    |item: &Item| matches!(item, Item::Summary(summary) if summary.id == first);
                let Some(at) = items.iter().position(is_first) else { return Ok(None) };
                let to = at.saturating_add(int::to_usize(u64::from(count)));
                let matches = items
                    .get(at..to)
                    .is_some_and(|slice| task::items_hash(slice) == self.task.sources);
                if !matches {
                    return Ok(None);
                }
                (at, to)
            }
        };
        // The sources, and with them what this commit may seal: what is not indexed stays in the
        // packs that an append reads to index it.
        let until = sealable(&items, from, self.task.span).min(head.indexed.messages);
        let mut wanted = pack_compaction::wanted(reader, &history, until)?;
        match self.task.span {
            Span::Messages { seq_first, seq_last } => {
                let refs = history.refs(reader, seq_first, seq_last)?;
                wanted.extend(refs.iter().map(|pack| (pack.key(self.keys), pack.bytes)));
            }
            Span::Items { .. } => {
                let slice = items.get(from..to).unwrap_or(&[]);
                wanted.extend(summary_items::summary_keys(&history, slice));
            }
        }
        reader.prefetch(self.keys, &wanted, &[])?;
        let gathered = match self.task.span {
            Span::Messages { seq_first, seq_last } => {
                sources::messages(reader, &history, seq_first, seq_last, reading)?
            }
            Span::Items { .. } => {
                let slice = items.get(from..to).unwrap_or(&[]);
                sources::items(reader, &history, slice, reading)?
            }
        };
        let same = gathered.task == self.task.sources && gathered.depth == self.task.depth;
        if !same {
            return Ok(None);
        }
        let seal = pack_compaction::read(reader, &history, until)?;
        Ok(Some(Place { items, from, to, gathered, seal }))
    }

    /// Whether the task's hash is that of these messages. Looks at the last one only, so that a
    /// made-up token costs no more.
    fn names_messages(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        seq_first: u64,
        seq_last: u64,
    ) -> Result<bool> {
        if seq_last > history.head.messages {
            return Ok(false);
        }
        let frontier = history.frontier(reader, seq_last)?;
        Ok(task::messages_hash(seq_first, seq_last, &frontier) == self.task.sources)
    }

    /// Directory nodes around the sources of a leaf.
    fn directory_nodes(&self) -> Vec<u64> {
        let Span::Messages { seq_first, seq_last } = self.task.span else { return Vec::new() };
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
    fn stale(self, reader: &mut Reader<'_>, completion: Option<&Completion>) -> Result<Outcome> {
        if let Some(id) = self.became(reader)? {
            let mut outcome = self.outcome(Applied::Committed, "", Some(id));
            outcome.level = Level::Fallback;
            return Ok(outcome);
        }
        let outcome = self.outcome(Applied::Stale, reason::CONFLICT, None);
        self.only_count(reader, completion, outcome)
    }

    /// Commits nothing but what the answer cost.
    fn only_count(
        mut self,
        reader: &mut Reader<'_>,
        completion: Option<&Completion>,
        mut outcome: Outcome,
    ) -> Result<Outcome> {
        if completion.is_none() {
            return Ok(outcome);
        }
        self.charge(&mut outcome, completion, false);
        let entry = Journal { time: self.now, act: Act::Stale { sources: self.task.sources } };
        self.loaded.commit(reader, self.keys, self.now, &entry, Vec::new(), Vec::new())?;
        Ok(outcome)
    }

    /// The fallback that these very sources were replaced by, if they were.
    fn became(&self, reader: &mut Reader<'_>) -> Result<Option<[u8; 8]>> {
        let head = &self.loaded.head;
        let history = History { keys: self.keys, head };
        let level = StoredLevel::Fallback;
        let id = match self.task.span {
            Span::Messages { seq_first, seq_last } => {
                if !self.names_messages(reader, &history, seq_first, seq_last)? {
                    return Ok(None);
                }
                let reading = self.reading();
                let gathered = sources::messages(reader, &history, seq_first, seq_last, reading)?;
                let Some(text) = self.fallback_text(&gathered) else { return Ok(None) };
                summary::id(&gathered.task, self.task.prompt_version, level, &text)
            }
            Span::Items { first, .. } => {
                let key = self.keys.derived(first);
                match reader.fresh_one(&key)? {
                    Some(value) => codec::decode::<[u8; 8]>(&key, &value)?,
                    None => return Ok(None),
                }
            }
        };
        let key = self.keys.summary(id);
        let value = reader.fresh_one(&key)?;
        let Some(value) = value else { return Ok(None) };
        let record: Summary = codec::decode(&key, &value)?;
        let same = record.task == self.task.sources && record.level == level;
        Ok(same.then_some(id))
    }

    fn fallback_text(&self, gathered: &Gathered) -> Option<String> {
        let source_tokens = int::tokens_u32(gathered.tokens);
        let text = offline_summary::fallback(
            &gathered.text,
            source_tokens,
            self.task.fallback_tokens_max,
        )?;
        (u64::from(tokens::estimate(&text)) < gathered.tokens).then_some(text)
    }

    fn retry(
        mut self,
        reader: &mut Reader<'_>,
        config: &Config,
        place: &Place,
        completion: Option<&Completion>,
        level: Level,
        findings: String,
    ) -> Result<Outcome> {
        let mut outcome = self.outcome(Applied::Retry, "", None);
        let mut attempts = self.attempts.clone().unwrap_or_default();
        attempts.level = StoredLevel::from(level);
        attempts.attempt += 1;
        attempts.findings = findings;
        attempts.tokens += completion.map_or(0, spend::tokens);
        let next = self.task_at(level, attempts.attempt);
        let tags = &config.strip_injected_context_tags;
        let previous = place.previous(reader, self.keys, &self.loaded.head, &self.task, tags)?;
        let previous = previous.as_deref();
        outcome.next =
            Some(request::build(config, &next, &place.gathered, previous, &attempts.findings));
        if completion.is_some_and(|completion| self.count(completion, false)) {
            outcome = self.outcome(Applied::Refused, reason::SPEND_LIMIT, None);
        }
        self.commit_attempts(reader, &attempts)?;
        Ok(outcome)
    }

    /// Counts an answer; whether that began a pause, of which the outcome then warns.
    fn count(&mut self, completion: &Completion, accepted: bool) -> bool {
        let (limits, now) = (self.limits, self.now);
        let ledger = &mut self.loaded.head.ledger;
        let pauses = spend::count(ledger, completion, accepted, limits, now);
        if pauses {
            self.warnings.push(spend::pause_warning(ledger.paused_until));
        }
        pauses
    }

    /// Counts an answer, if there is one, and has the outcome warn of what follows.
    fn charge(&mut self, outcome: &mut Outcome, completion: Option<&Completion>, accepted: bool) {
        if let Some(completion) = completion {
            self.count(completion, accepted);
            outcome.warnings.clone_from(&self.warnings);
        }
    }

    /// The one commit of an answer that became no summary.
    fn commit_attempts(self, reader: &mut Reader<'_>, attempts: &Attempts) -> Result<()> {
        let sources = self.task.sources;
        let value = Some(codec::encode(attempts)?);
        let puts = alloc::vec![Put { key: self.keys.attempt(&sources), value }];
        let entry = Journal { time: self.now, act: Act::Reject { sources } };
        self.loaded.commit(reader, self.keys, self.now, &entry, puts, Vec::new())?;
        Ok(())
    }

    /// Whether the records say that this attempt is the one to settle.
    pub(crate) fn is_current(&self) -> bool {
        let known = self.attempts.clone().unwrap_or_default();
        !known.exhausted && known.attempt == self.task.attempt && known.level() == self.task.level
    }

    /// Counts an answer that `run` rejected and moves on to the next attempt, in memory. Returns
    /// whether that began a pause.
    pub(crate) fn reject(
        &mut self,
        completion: &Completion,
        rule: Rule,
        level: Level,
        findings: String,
    ) -> bool {
        self.warn(rule);
        let pauses = self.count(completion, false);
        let known = self.rejected.take().or_else(|| self.attempts.clone()).unwrap_or_default();
        let attempt = known.attempt + 1;
        self.task = self.task_at(level, attempt);
        let (level, tokens) = (StoredLevel::from(level), known.tokens + spend::tokens(completion));
        self.rejected = Some(Attempts { level, attempt, tokens, findings, ..known });
        pauses
    }

    /// Ends `run` with what was rejected.
    ///
    /// # Errors
    ///
    /// Of the store.
    pub(crate) fn pause(mut self, reader: &mut Reader<'_>) -> Result<Outcome> {
        let outcome = self.outcome(Applied::Refused, reason::SPEND_LIMIT, None);
        let attempts = self.rejected.take().or_else(|| self.attempts.clone());
        self.commit_attempts(reader, &attempts.unwrap_or_default())?;
        Ok(outcome)
    }

    /// The same task once more, at another level.
    pub(crate) fn task_at(&self, level: Level, attempt: u32) -> Task {
        let mut task = Task { level, attempt, ..self.task.clone() };
        // Asked again, it is asked by the texts of now.
        task.prompt_version = task.wording().version(&self.config.prompt_overrides);
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
        reader: &mut Reader<'_>,
        place: &Place,
        completion: Option<&Completion>,
    ) -> Result<Outcome> {
        if let Some(text) = self.fallback_text(&place.gathered) {
            let findings = verify::lines(&verify::verify(&place.gathered.text, &text));
            let (level, model) = (StoredLevel::Fallback, OFFLINE);
            let finish = completion.map(|completion| StoredFinish::from(completion.finish));
            let answer = Answer { text, capped: false, findings, level, model, finish };
            return self.accept(reader, place, completion, answer);
        }
        let mut outcome = self.outcome(Applied::Refused, reason::NO_PROGRESS, None);
        outcome.more = true;
        let known = self.attempts.clone().unwrap_or_default();
        let spent = known.tokens + completion.map_or(0, spend::tokens);
        let attempts = Attempts { exhausted: true, tokens: spent, lease_until: 0, ..known };
        self.charge(&mut outcome, completion, false);
        self.commit_attempts(reader, &attempts)?;
        Ok(outcome)
    }

    /// Commits a summary in place of its sources.
    ///
    /// # Errors
    ///
    /// As [`apply`].
    pub(crate) fn accept(
        mut self,
        reader: &mut Reader<'_>,
        place: &Place,
        completion: Option<&Completion>,
        answer: Answer<'_>,
    ) -> Result<Outcome> {
        let mut outcome = self.outcome(Applied::Committed, "", None);
        let record = place.gathered.summary(Written {
            text: answer.text,
            level: answer.level,
            capped: answer.capped,
            findings: answer.findings,
            model: answer.model,
            finish: answer.finish,
            now: self.now,
            prompt_version: self.task.prompt_version,
        });
        let passes_left = self.tokens() / place.gathered.tokens.max(1);
        self.upkeep.read_for_summary(reader, passes_left)?;
        let before = self.loaded.head.context.clone();
        let id = record.id();
        let value = codec::encode_small(&record)?;
        let bytes = int::to_u32(value.len());
        let (context, mut puts) = place.replace(self.keys, &self.loaded.head, &record, bytes)?;
        let mut records: Vec<(&Summary, u32)> = Vec::new();
        for bridge in &place.gathered.bridges {
            let value = codec::encode_small(bridge)?;
            records.push((bridge, int::to_u32(value.len())));
            puts.push(Put { key: self.keys.summary(bridge.id()), value: Some(value) });
        }
        records.push((&record, bytes));
        puts.push(Put { key: self.keys.summary(id), value: Some(value) });
        if let summary::Sources::Summaries(list) = &record.sources {
            for source in list {
                let value = Some(codec::encode(&id)?);
                puts.push(Put { key: self.keys.derived(source.id), value });
            }
        }
        if self.attempts.is_some() {
            puts.push(Put { key: self.keys.attempt(&self.task.sources), value: None });
        }
        let guards = self.reset_guard(&mut puts, completion.is_some())?;
        self.charge(&mut outcome, completion, answer.level != StoredLevel::Fallback);
        self.upkeep.summaries(&records, &mut puts)?;
        let head = &mut self.loaded.head;
        head.context = context;
        let saved = before.tokens.saturating_sub(head.context.tokens);
        head.ledger.saved_tokens = head.ledger.saved_tokens.saturating_add(saved);
        head.summaries += 1 + int::to_u64(place.gathered.bridges.len());
        if let Some(seal) = &place.seal {
            let sealed = seal.seal(self.keys, head, &puts)?;
            puts.extend(sealed);
        }
        let entry = Journal {
            time: self.now,
            act: Act::Compact { summary: id, made: record.made(), before },
        };
        let head = self.loaded.commit(reader, self.keys, self.now, &entry, puts, guards)?;
        outcome.summary = Some(summary::name(id));
        outcome.level = match answer.level {
            StoredLevel::Fallback => Level::Fallback,
            _ => self.task.level,
        };
        outcome.capped = answer.capped;
        outcome.tokens_after = int::tokens_u32(head.context.tokens);
        Ok(outcome)
    }

    /// A model that answered is well again: its count of failures goes back to 0.
    fn reset_guard(&self, puts: &mut Vec<Put>, answered: bool) -> Result<Vec<Guard>> {
        match &self.guard {
            Some((guard, value)) if answered && guard.failures > 0 => {
                let key = keys::guard(&self.task.scope);
                let reset = Some(codec::encode(&ModelGuard::default())?);
                puts.push(Put { key: key.clone(), value: reset });
                Ok(alloc::vec![Guard { key, value: Some(value.clone()) }])
            }
            _ => Ok(Vec::new()),
        }
    }
}
