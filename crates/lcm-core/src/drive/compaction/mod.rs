//! Compaction tasks: plan, let models complete the requests, and apply the answers.
//!
//! In: a task, its progress and an event. Out: the new progress, from which
//! [`CompactionProgress::next_instruction`] makes the next instruction. [`crate::drive`] uses this
//! module.
//!
//! `compact` compacts until nothing is due. `maintain` compacts when deferred compaction is due.
//! `turn` decides after an append whether to compact now. `resummarize` makes provisional summaries
//! again.
//!
//! Plans lease their requests unless `lease_ms` is 0, so that other tasks do not complete them. A
//! leased request whose answer is not applied is given back: `apply` gets a failure for it, which
//! ends the lease and has no other effect.

mod instruction;
mod result;
mod task;

use alloc::{format, string::String, vec::Vec};

use crate::compaction::reason;
use lcm_text::{
    base::error::Result,
    base::int,
    base::json::{self, JsonFields, JsonKind, JsonWriter},
    config::{Config, TurnCompaction},
    types::{api::Timestamp, event::EventKind},
};

use super::{
    event::{
        CallFailure, DriveEvent, EVENT, FAILED, MISSING, RequestAnswer, UNASKED, is_exhausted,
        unanswered_error,
    },
    instruction::{DriveReply, build_completion_failure},
    state::DriveState,
};
use result::{
    NULL, add_debt_event, add_deferred, build_maintain_result, build_turn_result, count_failures,
    has_provisional, read_deferred, read_explanation, read_next_attempt,
};
pub(super) use task::CompactionTask;
use task::CompactionTaskKind;

/// Plans in a row without a request after which the task ends with `no-progress`. Two are normal:
/// one ends a round of a sweep, the next finds nothing.
pub(super) const EMPTY_PLANS_MAX: u64 = 8;
/// Maximum number of requests of one plan.
const REQUESTS_MAX: usize = 64;
/// Completions of a forced task after which no further plan is completed, because neither a pause
/// nor the breaker bounds a forced task.
const FORCED_COMPLETIONS_MAX: u64 = 64;

/// The next step of a compaction task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CompactionPhase {
    /// Call `evaluate` to decide after an append whether compaction is due.
    Decide,
    /// Call `maintain` to read whether compaction is deferred and due, or whether models pause; for
    /// the task `resummarize`, call the command of this name.
    ReadDeferred,
    Plan,
    /// Complete `count` requests from `place` on.
    Complete,
    /// Apply the answer at `place`.
    Apply,
    /// Call `evaluate` after the passes.
    Evaluate,
    /// Call `maintain` to record how the deferred compaction ended.
    RecordDeferred,
    Done,
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CompactionEnd {
    NothingDue,
    Stopped,
    Refused,
    Cancelled,
}

const PHASES: [CompactionPhase; 8] = [
    CompactionPhase::Decide,
    CompactionPhase::ReadDeferred,
    CompactionPhase::Plan,
    CompactionPhase::Complete,
    CompactionPhase::Apply,
    CompactionPhase::Evaluate,
    CompactionPhase::RecordDeferred,
    CompactionPhase::Done,
];
const ENDS: [CompactionEnd; 4] = [
    CompactionEnd::NothingDue,
    CompactionEnd::Stopped,
    CompactionEnd::Refused,
    CompactionEnd::Cancelled,
];

/// The progress of a compaction task.
pub(super) struct CompactionProgress {
    phase: CompactionPhase,
    /// Index of the request to complete, or whose answer is applied.
    place: u64,
    /// Number of requests, from `place` on, that the host must complete now.
    count: u64,
    /// Sweep token of the last plan; empty: a new sweep starts, or the sweep is over.
    sweep: String,
    /// Number of plans without a request since the last request.
    empty_plans: u64,
    /// State of the answer to each request of the last plan.
    answers: Vec<u64>,
    completions: u64,
    passes: u64,
    tokens_before: u64,
    tokens_after: u64,
    /// The failure after which no model is asked any more; without a code: models are asked.
    exhausted: CallFailure,
    /// The last failure of a model; without a code: no model failed.
    failure: CallFailure,
    /// Whether a summary was made although no model answered the request.
    is_served: bool,
    /// Whether the caller stopped the task.
    is_stopped: bool,
    /// Whether compaction was deferred before the task, so that a turn records how the task ended.
    is_owed: bool,
    /// Whether the task asks no model, because a pause after a failure has not ended.
    is_paused: bool,
    /// Time from which no model is asked any more.
    deadline_at: Timestamp,
    /// Whether the time of the last step is at or after `deadline_at`.
    is_late: bool,
    /// Whether `turn` leaves compaction that can wait to `maintain`.
    defers: bool,
    /// Whether no compaction is due after the append, but provisional summaries are in the context,
    /// which `maintain` may have to make again.
    only_remakes: bool,
    end: CompactionEnd,
    /// Why the compaction ended; empty while the compaction continues.
    reason: String,
    /// The result of the task, or its members so far.
    result: String,
    /// Why the task fails; without a code: the task does not fail.
    error: CallFailure,
}

impl CompactionProgress {
    /// Returns the progress of a task that has not started.
    pub(super) fn begin(config: &Config, task: &CompactionTask, now: Timestamp) -> Self {
        let deadline_ms = match task.mode.as_deref() {
            Some("until-under") => config.until_under_deadline_ms,
            _ => config.sweep_deadline_ms,
        };
        let phase = match task.kind {
            CompactionTaskKind::Compact if !task.shares_pause() => CompactionPhase::Plan,
            CompactionTaskKind::Compact
            | CompactionTaskKind::Maintain
            | CompactionTaskKind::Resummarize => CompactionPhase::ReadDeferred,
            CompactionTaskKind::Turn => CompactionPhase::Decide,
        };
        Self {
            phase,
            place: 0,
            count: 0,
            sweep: String::new(),
            empty_plans: 0,
            answers: Vec::new(),
            completions: 0,
            passes: 0,
            tokens_before: 0,
            tokens_after: 0,
            exhausted: CallFailure::default(),
            failure: CallFailure::default(),
            is_served: false,
            is_stopped: false,
            is_owed: false,
            is_paused: false,
            deadline_at: deadline_ms.map_or(Timestamp::MAX, |ms| now.saturating_add(ms.into())),
            is_late: false,
            defers: task.kind == CompactionTaskKind::Turn
                && task.defer.unwrap_or(config.turn_compaction != Some(TurnCompaction::Inline)),
            only_remakes: false,
            end: CompactionEnd::Stopped,
            reason: String::new(),
            result: String::new(),
            error: CallFailure::default(),
        }
    }

    /// Reads or writes every value of the progress.
    pub(super) fn visit(&mut self, state: &mut DriveState) {
        state.visit_choice(&mut self.phase, &PHASES);
        state.visit_choice(&mut self.end, &ENDS);
        let mut count = int::to_u64(self.answers.len());
        state.visit_number(&mut count);
        self.answers.resize(int::to_usize(count).min(REQUESTS_MAX), UNASKED);
        for answer in &mut self.answers {
            state.visit_number(answer);
        }
        self.exhausted.visit(state);
        self.failure.visit(state);
        self.error.visit(state);
        state.text(&mut self.sweep);
        state.text(&mut self.reason);
        state.text(&mut self.result);
        state.visit_flag(&mut self.is_served);
        state.visit_flag(&mut self.is_stopped);
        state.visit_flag(&mut self.is_owed);
        state.visit_flag(&mut self.is_paused);
        state.visit_flag(&mut self.defers);
        state.visit_flag(&mut self.only_remakes);
        state.visit_number(&mut self.deadline_at);
        state.visit_number(&mut self.place);
        state.visit_number(&mut self.count);
        state.visit_number(&mut self.empty_plans);
        state.visit_number(&mut self.passes);
        state.visit_number(&mut self.completions);
        state.visit_number(&mut self.tokens_before);
        state.visit_number(&mut self.tokens_after);
    }

    /// Records whether the time of a step has reached the deadline of the task.
    pub(super) fn note_time(&mut self, now: Timestamp) {
        self.is_late = now >= self.deadline_at;
    }

    /// Advances the progress by one event. `reply` gets the pass, the note and the warnings of the
    /// event; the next instruction is made from the progress.
    pub(super) fn advance(
        &mut self,
        task: &CompactionTask,
        event: DriveEvent,
        reply: &mut DriveReply,
    ) -> Result<()> {
        match (event, self.phase) {
            (DriveEvent::Stopped, CompactionPhase::Plan | CompactionPhase::Complete) => {
                self.finish(task, CompactionEnd::Cancelled, reason::CANCELLED);
            }
            (DriveEvent::Stopped, _) => self.stop_asking(task),
            (DriveEvent::Failed(failed), _) => self.handle_failure(task, failed),
            (DriveEvent::Answered(answers), CompactionPhase::Complete) => {
                self.take_answers(task, answers)?
            }
            (DriveEvent::Returned(json), phase) if phase != CompactionPhase::Complete => {
                let mut fields = JsonFields::parse_argument(EVENT, &json)?;
                match phase {
                    CompactionPhase::Decide => {
                        self.take_decision(task, &json, &mut fields, reply);
                    }
                    CompactionPhase::ReadDeferred => self.take_deferred(task, &mut fields, reply),
                    CompactionPhase::Plan => self.take_plan(task, &json, &mut fields, reply),
                    CompactionPhase::Apply => self.take_outcome(task, &mut fields, reply),
                    CompactionPhase::Evaluate => self.take_end(task, &mut fields, reply),
                    _ => {
                        let deferred = read_deferred(&mut fields);
                        add_debt_event(task, &deferred, reply);
                        if task.kind == CompactionTaskKind::Maintain {
                            add_deferred(&deferred, reply);
                        }
                        self.phase = CompactionPhase::Done;
                    }
                }
                fields.finish_known(EVENT)?;
            }
            _ => return Err(unanswered_error("`answers`, `result` or `error`")),
        }
        Ok(())
    }

    /// Stops the task: answers are still applied, but no model is asked any more, and no fallback
    /// is made for a model that failed.
    fn stop_asking(&mut self, task: &CompactionTask) {
        self.is_stopped = true;
        for state in self.answers.iter_mut().skip(int::to_usize(self.place)) {
            if *state == UNASKED || is_exhausted(*state) {
                *state = MISSING;
            }
        }
        if self.phase == CompactionPhase::Apply {
            self.apply_from(task, self.place);
        }
    }

    /// Ends the task after a failed call or completion, once the requests that are left were given
    /// back. Two reasons are recorded before the end, and postpone the deferred compaction: a pass
    /// of `maintain` failed with `conflict`, or the model function cannot be used, which would fail
    /// in every turn.
    fn handle_failure(&mut self, task: &CompactionTask, failed: CallFailure) {
        let is_first = !self.error.is_some();
        // Of two failures, the first is the cause and is kept.
        if is_first {
            self.error = failed;
            self.reason = match self.phase {
                _ if self.error.code == reason::CONFLICT => reason::CONFLICT,
                CompactionPhase::Complete => reason::MODEL_UNAVAILABLE,
                _ => reason::CANCELLED,
            }
            .into();
        }
        if matches!(self.phase, CompactionPhase::ReadDeferred | CompactionPhase::RecordDeferred) {
            self.reason = reason::CANCELLED.into();
        }
        let is_asked = matches!(self.phase, CompactionPhase::Complete | CompactionPhase::Apply);
        if is_first && is_asked && task.lease_ms > 0 {
            self.give_back(task);
        } else {
            self.phase = self.phase_after_failure(task);
        }
    }

    fn phase_after_failure(&self, task: &CompactionTask) -> CompactionPhase {
        let is_told = match task.kind {
            CompactionTaskKind::Maintain => self.reason != reason::CANCELLED,
            _ => task.shares_pause() && self.reason == reason::MODEL_UNAVAILABLE,
        };
        if is_told { CompactionPhase::RecordDeferred } else { CompactionPhase::Done }
    }

    fn take_decision(
        &mut self,
        task: &CompactionTask,
        json: &str,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        let (is_due, must) = (fields.take_flag("due"), fields.take_flag("must"));
        let mut note = JsonWriter::new_object();
        note.add_json("decision", json);
        reply.note = Some(note);
        let waits = is_due && !must && self.defers;
        self.result = build_turn_result(is_due && !waits, false);
        let explanation = fields.take_text("explanation_json");
        self.only_remakes = !is_due && has_provisional(&explanation);
        // Reads whether models pause, so that a model that failed is not asked in every turn.
        let reads = waits || (is_due && !must && task.shares_pause()) || self.only_remakes;
        self.phase = if reads { CompactionPhase::ReadDeferred } else { CompactionPhase::Done };
    }

    fn take_deferred(
        &mut self,
        task: &CompactionTask,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        let is_time = fields.take_flag("drain");
        let is_paused = fields.take_flag("paused");
        let deferred = read_deferred(fields);
        let is_deferred = deferred != NULL;
        match task.kind {
            CompactionTaskKind::Turn if self.only_remakes => {
                // A model that refused is not asked again soon, because its next refusal is final.
                let is_owed = is_time && count_failures(&deferred) > 0;
                self.result = build_turn_result(false, is_owed);
                self.phase = CompactionPhase::Done;
            }
            CompactionTaskKind::Turn => {
                // Without a record of deferred compaction, `maintain` would not compact later. So
                // the caller compacts now: the call is forced, or its mode acts below the
                // threshold.
                let waits = is_deferred && (self.defers || is_paused);
                if waits {
                    add_debt_event(task, &deferred, reply);
                }
                self.result = build_turn_result(!waits, waits);
                self.phase = CompactionPhase::Done;
            }
            CompactionTaskKind::Compact => {
                self.is_owed = is_deferred;
                if is_paused {
                    self.pause_models(&deferred, reply);
                }
                self.phase = CompactionPhase::Plan;
            }
            CompactionTaskKind::Maintain if !is_time => {
                if is_deferred {
                    add_debt_event(task, &deferred, reply);
                }
                add_deferred(&deferred, reply);
                self.result = build_maintain_result(None, &CallFailure::default());
                self.phase = CompactionPhase::Done;
            }
            CompactionTaskKind::Maintain | CompactionTaskKind::Resummarize => {
                self.phase = CompactionPhase::Plan;
            }
        }
    }

    /// Asks no model in this task: the pause after a failure has not ended.
    fn pause_models(&mut self, deferred: &str, reply: &mut DriveReply) {
        let until = read_next_attempt(deferred);
        let message = format!("no model is asked until {until}, because the model failed");
        reply.warnings.push(format!("models-paused: {message}"));
        self.is_paused = true;
        self.exhausted = CallFailure { code: "unavailable".into(), message, number: None };
    }

    fn take_plan(
        &mut self,
        task: &CompactionTask,
        json: &str,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        let status = fields.take_choice("status", &["nothing-due", "stopped", "needs-completions"]);
        let (why, sweep) = (fields.take_text("reason"), fields.take_text("sweep"));
        let listed = fields.take_list("requests");
        let requests = listed.len();
        let is_over = sweep.is_empty();
        self.sweep = sweep;
        if status == 2 {
            if requests == 0 || requests > REQUESTS_MAX {
                fields.reject_field("requests", "1 to 64 requests");
            }
            self.empty_plans = 0;
            self.answers = alloc::vec![UNASKED; requests.min(REQUESTS_MAX)];
            self.ask(0, int::to_u64(requests));
            if task.force && self.completions >= FORCED_COMPLETIONS_MAX {
                self.finish(task, CompactionEnd::Stopped, reason::COMPLETION_LIMIT);
                return;
            }
            for request in listed {
                self.add_asked_event(task, json::slice_span(json, request.span), reply);
            }
        } else if is_over {
            let kind = if status == 0 { CompactionEnd::NothingDue } else { CompactionEnd::Stopped };
            self.finish(task, kind, &why);
        } else {
            self.empty_plans = self.empty_plans.saturating_add(1);
            if self.empty_plans >= EMPTY_PLANS_MAX {
                self.finish(task, CompactionEnd::Stopped, reason::NO_PROGRESS);
            } else if self.is_late {
                self.finish(task, CompactionEnd::Stopped, reason::DEADLINE);
            }
        }
    }

    /// Continues with `count` requests from `from` on: models complete the requests; if the models
    /// are exhausted, their failure is applied.
    fn ask(&mut self, from: u64, count: u64) {
        (self.place, self.count) = (from, count);
        let is_over = self.exhausted.is_some();
        self.phase = if is_over { CompactionPhase::Apply } else { CompactionPhase::Complete };
    }

    /// Adds the event of a request that a model gets next, unless the task asks no model any more.
    fn add_asked_event(&self, task: &CompactionTask, request: &str, reply: &mut DriveReply) {
        if self.phase != CompactionPhase::Complete {
            return;
        }
        let Ok(mut fields) = JsonFields::parse_argument(EVENT, request) else { return };
        let mut members = JsonWriter::new_object();
        members.add_number("input_tokens", fields.take_u64("input_tokens"));
        members.add_text("level", &fields.take_text("level"));
        members.add_optional_text("model", fields.take_optional_text("model").as_deref());
        members.add_number("output_tokens_max", fields.take_u64("output_tokens_max"));
        members.add_text("purpose", &fields.take_text("purpose"));
        reply.events.push(EventKind::SummaryAsked, &task.conversation, members);
    }

    fn take_answers(&mut self, task: &CompactionTask, answers: Vec<RequestAnswer>) -> Result<()> {
        if int::to_u64(answers.len()) != self.count {
            return Err(unanswered_error("one answer for each request in `answers`"));
        }
        let places = self.answers.iter_mut().skip(int::to_usize(self.place));
        for (state, answer) in places.zip(answers) {
            self.completions = self.completions.saturating_add(answer.asked);
            *state = answer.state;
            self.is_stopped |= answer.state == MISSING;
            if answer.state >= FAILED {
                if is_exhausted(answer.state) && !self.exhausted.is_some() {
                    self.exhausted = answer.failed.clone();
                }
                self.failure = answer.failed;
            }
        }
        self.apply_from(task, self.place);
        Ok(())
    }

    fn answer_state(&self, place: u64) -> u64 {
        self.answers.get(int::to_usize(place)).copied().unwrap_or(MISSING)
    }

    /// Continues with the first answer from `from` on. After the last answer, plans again, or ends
    /// a stopped task. A refusal by a model ends the passes, unless the task has `counts_refusals`,
    /// with which `apply` gets the refusal. A request without an answer is given back, so that its
    /// lease ends; without leases it is skipped.
    fn apply_from(&mut self, task: &CompactionTask, from: u64) {
        self.place = from;
        let end = int::to_u64(self.answers.len());
        let skips = task.lease_ms == 0;
        while skips && self.place < end && self.answer_state(self.place) == MISSING {
            self.place += 1;
        }
        let refusal = match self.answer_state(self.place) {
            FAILED => reason::MODEL_AUTH,
            REFUSED_POLICY => reason::MODEL_POLICY,
            _ => "",
        };
        if self.place >= end {
            self.answers.clear();
            self.phase = CompactionPhase::Plan;
            let is_enough = |most| self.passes >= u64::from(most) || self.failure.is_some();
            if !self.reason.is_empty() {
                self.end_passes(task);
            } else if self.is_stopped {
                self.finish(task, CompactionEnd::Cancelled, reason::CANCELLED);
            } else if self.is_late {
                self.finish(task, CompactionEnd::Stopped, reason::DEADLINE);
            } else if task.passes_max.is_some_and(is_enough) {
                self.finish(task, CompactionEnd::Stopped, reason::PASS_LIMIT);
            }
        } else if refusal.is_empty() || task.counts_refusals {
            self.phase = CompactionPhase::Apply;
        } else {
            self.finish(task, CompactionEnd::Refused, refusal);
        }
    }

    fn take_outcome(
        &mut self,
        task: &CompactionTask,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        let applied = fields.take_choice("applied", &["committed", "retry", "stale", "refused"]);
        let why = fields.take_text("reason");
        let (before, after) = (fields.take_u64("tokens_before"), fields.take_u64("tokens_after"));
        let next = fields.take_any("next").filter(|(_, kind)| *kind != JsonKind::Null);
        reply.take_events(fields);
        reply.warnings = fields.take_texts("warnings");
        let replaces = fields.take_optional_text("replaces");
        // A remake may leave the context as long as it was, or lengthen it.
        if applied == 0 && (after < before || replaces.is_some()) {
            let mut pass = JsonWriter::new_object();
            pass.add_flag("capped", fields.take_flag("capped"));
            pass.add_number("depth", fields.take_u64("depth"));
            pass.add_text("purpose", &fields.take_text("purpose"));
            pass.add_text("level", &fields.take_text("level"));
            pass.add_flag("provisional", fields.take_flag("provisional"));
            pass.add_optional_text("replaces", replaces.as_deref());
            pass.add_text("summary_id", &fields.take_text("summary_id"));
            pass.add_number("tokens_after", after);
            pass.add_number("tokens_before", before);
            reply.pass = Some(pass);
            if self.passes == 0 {
                self.tokens_before = before;
            }
            self.passes = self.passes.saturating_add(1);
            self.tokens_after = after;
            self.is_served |= self.is_without_model();
        }
        match applied {
            _ if self.answer_state(self.place) == MISSING => {
                self.apply_from(task, self.place.saturating_add(1));
            }
            3 if why.starts_with("model-") => {
                self.place = self.place.saturating_add(1);
                self.finish(task, CompactionEnd::Refused, &why);
            }
            1 if next.is_some() => {
                let is_over = self.is_stopped || self.is_late;
                if let Some(state) = self.answers.get_mut(int::to_usize(self.place)) {
                    *state = if is_over { MISSING } else { UNASKED };
                }
                if is_over {
                    self.apply_from(task, self.place);
                    return;
                }
                self.ask(self.place, 1);
                if let Some((request, _)) = &next {
                    self.add_asked_event(task, request, reply);
                }
            }
            _ => self.apply_from(task, self.place.saturating_add(1)),
        }
    }

    /// Returns whether the models were exhausted before or at the request at `place`.
    fn is_without_model(&self) -> bool {
        let state = self.answer_state(self.place);
        state == UNASKED || is_exhausted(state)
    }

    /// Ends the passes with a reason. The requests that are left are given back first.
    fn finish(&mut self, task: &CompactionTask, kind: CompactionEnd, why: &str) {
        (self.end, self.reason) = (kind, why.into());
        self.give_back(task);
    }

    /// Gives back the requests from `place` on, and ends the passes.
    fn give_back(&mut self, task: &CompactionTask) {
        self.answers.iter_mut().skip(int::to_usize(self.place)).for_each(|left| *left = MISSING);
        self.apply_from(task, self.place);
    }

    /// Continues after the passes with `evaluate`, or ends the failed task. If a model refused the
    /// API key or the content, the task fails instead, or for `maintain` records the failure.
    fn end_passes(&mut self, task: &CompactionTask) {
        if self.error.is_some() {
            self.phase = self.phase_after_failure(task);
            return;
        }
        self.phase = CompactionPhase::Evaluate;
        let why = self.reason.as_str();
        let is_refusal = why == reason::MODEL_AUTH || why == reason::MODEL_POLICY;
        if !is_refusal || !self.failure.is_some() {
            return;
        }
        let message = format!("{why}: {}", self.failure.message);
        let error = CallFailure { code: "completion-failed".into(), message, number: None };
        if task.kind == CompactionTaskKind::Maintain {
            self.result = build_maintain_result(None, &error);
            self.phase = CompactionPhase::RecordDeferred;
        } else {
            self.error = error;
            self.phase = self.phase_after_end(task);
        }
    }

    /// Returns the phase after the end of `compact` or `resummarize`. A turn that asked a model
    /// records how the compaction ended if compaction was deferred before or a model failed.
    fn phase_after_end(&self, task: &CompactionTask) -> CompactionPhase {
        let has_news = self.is_owed || self.failure.is_some();
        match task.shares_pause() && has_news && !self.is_paused {
            true => CompactionPhase::RecordDeferred,
            false => CompactionPhase::Done,
        }
    }

    fn take_end(
        &mut self,
        task: &CompactionTask,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        let is_due = fields.take_flag("due") && task.kind != CompactionTaskKind::Resummarize;
        let explanation = fields.take_text("explanation_json");
        match read_explanation(&explanation) {
            Ok((stored, warnings)) => {
                reply.warnings = warnings;
                if self.passes == 0 {
                    (self.tokens_before, self.tokens_after) = (stored, stored);
                }
            }
            Err(_) => fields.reject_field("explanation_json", "the text that `evaluate` returned"),
        }
        if self.failure.is_some() {
            let CallFailure { code, message, .. } = &self.failure;
            reply.warnings.push(format!("completion-failed: {code}: {message}"));
        }
        let compacted = self.build_compact_result(is_due);
        if task.kind == CompactionTaskKind::Maintain {
            self.result = build_maintain_result(Some(compacted), &self.failure);
            self.phase = CompactionPhase::RecordDeferred;
        } else {
            self.result = compacted.end_object();
            self.phase = self.phase_after_end(task);
        }
    }

    /// Builds the result of `compact` without its passes and warnings, which the host collects from
    /// the replies.
    fn build_compact_result(&self, is_due: bool) -> JsonWriter {
        let mut result = JsonWriter::new_object();
        result.add_number("completions", self.completions);
        if self.failure.is_some() {
            result.add_object("failure", build_completion_failure(&self.failure));
        } else {
            result.add_null("failure");
        }
        result.add_text("reason", &self.reason);
        result.add_text("status", self.status(is_due));
        result.add_number("tokens_after", self.tokens_after);
        result.add_number("tokens_before", self.tokens_before);
        result
    }

    /// Returns the status word of the result.
    fn status(&self, is_due: bool) -> &'static str {
        let is_model = self.reason.starts_with("model-") || self.reason == reason::BREAKER_OPEN;
        match self.end {
            _ if self.is_served => "partial",
            CompactionEnd::Refused => "model-unavailable",
            CompactionEnd::Stopped if is_model => "model-unavailable",
            CompactionEnd::Stopped | CompactionEnd::Cancelled => "partial",
            CompactionEnd::NothingDue if self.passes == 0 => "nothing-to-do",
            CompactionEnd::NothingDue if is_due => "partial",
            CompactionEnd::NothingDue => "done",
        }
    }
}

/// Answer state: the model refused the content.
const REFUSED_POLICY: u64 = FAILED + 1;
