//! Compaction: plans, has models complete the requests, applies the answers, until nothing is due.
//!
//! Task `compact` does so at once, `maintain` when deferred compaction is due, and `turn` says after
//! an append whether to compact now. What was observed of a prompt counts until a summary is made.

use alloc::{format, string::String, vec::Vec};

use crate::{
    api::Timestamp,
    compaction::{model_option, reason},
    error::Result,
    json::{Fields, Kind, Writer},
    num,
};

use super::{
    event::{Answer, EVENT, Event, FAILED, Failed, MISSING, UNASKED, is_exhausted},
    instruction::{self, Instruction, Reply},
    state::State,
    unanswered,
};

/// Plans without a request in a row. Two are normal: the end of a sweep, and the one behind it.
pub(super) const EMPTY_PLANS_MAX: u64 = 8;
/// Requests of one plan.
const REQUESTS_MAX: usize = 64;

/// What a task compacts, and how.
pub(super) struct Task {
    kind: TaskKind,
    conversation: String,
    budget: u32,
    mode: Option<String>,
    force: bool,
    target: Option<u32>,
    observed_tokens: Option<u32>,
    requests_max: u32,
    lease_ms: Option<u32>,
    model: Option<String>,
    extra_json: Option<String>,
    /// Whether `apply` is told that a model refused its key or the content.
    counts_refusals: bool,
    /// Whether compaction that can wait is left for `maintain`.
    defer: bool,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum TaskKind {
    Compact,
    Maintain,
    Turn,
}

impl Task {
    /// Reads the members of a task; `place` is that of its name.
    pub(super) fn read(fields: &mut Fields<'_>, place: usize) -> Self {
        let kind = match place {
            2 => TaskKind::Compact,
            3 => TaskKind::Maintain,
            _ => TaskKind::Turn,
        };
        Self {
            kind,
            conversation: fields.text("conversation"),
            budget: fields.small("budget"),
            mode: fields.text_or_none("mode"),
            force: fields.flag("force"),
            target: fields.small_or_none("target"),
            observed_tokens: fields.small_or_none("observed_tokens"),
            requests_max: fields.small_or_none("requests_max").unwrap_or(1),
            lease_ms: fields.small_or_none("lease_ms"),
            model: fields.text_or_none("model"),
            extra_json: fields.text_or_none("extra_json"),
            counts_refusals: fields.flag_or_none("counts_refusals").unwrap_or(true),
            defer: fields.flag("defer"),
        }
    }

    /// Further options of a call: the model whose tokens it counts.
    fn extra(&self) -> Option<String> {
        model_option(self.model.as_deref()).or_else(|| self.extra_json.clone())
    }
}

/// What is done now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Whether compaction is due after an append.
    Decide,
    /// Whether deferred compaction is due now.
    AskDebt,
    Plan,
    /// The requests from the place on are completed.
    Complete,
    /// The answer of the place is applied.
    Apply,
    /// How the conversation stands at the end.
    Evaluate,
    /// The record of deferred compaction is told how it ended.
    TellDebt,
    Done,
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EndKind {
    NothingDue,
    Stopped,
    Refused,
    Cancelled,
}

const PHASES: [Phase; 8] = [
    Phase::Decide,
    Phase::AskDebt,
    Phase::Plan,
    Phase::Complete,
    Phase::Apply,
    Phase::Evaluate,
    Phase::TellDebt,
    Phase::Done,
];
const ENDS: [EndKind; 4] =
    [EndKind::NothingDue, EndKind::Stopped, EndKind::Refused, EndKind::Cancelled];

/// How far a compaction is.
pub(super) struct Progress {
    phase: Phase,
    place: u64,
    /// Requests that are completed at the same time.
    count: u64,
    sweep: String,
    empty_plans: u64,
    /// What is known of the answer to each request.
    answers: Vec<u64>,
    completions: u64,
    passes: u64,
    tokens_before: u64,
    tokens_after: u64,
    /// Why no model is asked any more, if so.
    exhausted: Failed,
    /// The last failure of a model.
    failure: Failed,
    /// Whether a summary was made in place of exhausted models.
    is_served: bool,
    /// Whether the caller lost interest.
    is_stopped: bool,
    end: EndKind,
    /// Why it ended; empty while it goes on.
    reason: String,
    /// The result, or what is known of it.
    result: String,
    /// Why the task fails.
    error: Failed,
}

impl Progress {
    /// The beginning of a task.
    pub(super) fn begin(task: &Task) -> Self {
        let phase = match task.kind {
            TaskKind::Compact => Phase::Plan,
            TaskKind::Maintain => Phase::AskDebt,
            TaskKind::Turn => Phase::Decide,
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
            exhausted: Failed::default(),
            failure: Failed::default(),
            is_served: false,
            is_stopped: false,
            end: EndKind::Stopped,
            reason: String::new(),
            result: String::new(),
            error: Failed::default(),
        }
    }

    /// Reads or writes it.
    pub(super) fn visit(&mut self, state: &mut State) {
        state.choice(&mut self.phase, &PHASES);
        state.choice(&mut self.end, &ENDS);
        let mut count = num::to_u64(self.answers.len());
        state.number(&mut count);
        self.answers.resize(num::to_usize(count).min(REQUESTS_MAX), UNASKED);
        for answer in &mut self.answers {
            state.number(answer);
        }
        self.exhausted.visit(state);
        self.failure.visit(state);
        self.error.visit(state);
        state.text(&mut self.sweep);
        state.text(&mut self.reason);
        state.text(&mut self.result);
        state.flag(&mut self.is_served);
        state.flag(&mut self.is_stopped);
        state.number(&mut self.place);
        state.number(&mut self.count);
        state.number(&mut self.empty_plans);
        state.number(&mut self.passes);
        state.number(&mut self.completions);
        state.number(&mut self.tokens_before);
        state.number(&mut self.tokens_after);
    }

    /// Takes an event in.
    pub(super) fn advance(&mut self, task: &Task, event: Event, reply: &mut Reply) -> Result<()> {
        match (event, self.phase) {
            (Event::Stopped, Phase::Plan | Phase::Complete) => {
                self.finish(task, EndKind::Cancelled, reason::CANCELLED);
            }
            // An answer that is there is paid for and applied; no model is asked any more.
            (Event::Stopped, _) => self.is_stopped = true,
            (Event::Failed(failed), _) => self.fail(task, failed),
            (Event::Answered(answers), Phase::Complete) => self.take_answers(task, answers)?,
            (Event::Returned(json), phase) if phase != Phase::Complete => {
                let mut fields = Fields::of_argument(EVENT, &json)?;
                match phase {
                    Phase::Decide => self.take_decision(task, &json, &mut fields, reply),
                    Phase::AskDebt => self.take_debt(task, &mut fields, reply),
                    Phase::Plan => self.take_plan(task, &mut fields),
                    Phase::Apply => self.take_outcome(task, &mut fields, reply),
                    Phase::Evaluate => self.take_end(task, &mut fields, reply),
                    _ => {
                        add_debt(&debt(&mut fields), reply);
                        self.phase = Phase::Done;
                    }
                }
                fields.end_of_known(EVENT)?;
            }
            _ => return Err(unanswered("`answers`, `result` or `error`")),
        }
        Ok(())
    }

    /// A call failed. A conflict that repeating does not mend puts deferred compaction off.
    fn fail(&mut self, task: &Task, failed: Failed) {
        let is_told = task.kind == TaskKind::Maintain
            && failed.code == reason::CONFLICT
            && !matches!(self.phase, Phase::AskDebt | Phase::TellDebt);
        self.phase = if is_told { Phase::TellDebt } else { Phase::Done };
        if is_told {
            self.reason = reason::CONFLICT.into();
        }
        // Of two failures the first is the cause.
        if !self.error.is_some() {
            self.error = failed;
        }
    }

    fn take_decision(
        &mut self,
        task: &Task,
        json: &str,
        fields: &mut Fields<'_>,
        reply: &mut Reply,
    ) {
        let (is_due, must) = (fields.flag("due"), fields.flag("must"));
        let mut note = Writer::object();
        note.json("decision", json);
        reply.note = Some(note);
        let waits = is_due && !must && task.defer;
        self.result = turn_result(is_due && !waits, false);
        self.phase = if waits { Phase::AskDebt } else { Phase::Done };
    }

    fn take_debt(&mut self, task: &Task, fields: &mut Fields<'_>, reply: &mut Reply) {
        let is_time = fields.flag("drain");
        let debt = debt(fields);
        self.phase = Phase::Done;
        if task.kind == TaskKind::Turn {
            // Where the record sees nothing due, compaction would never be done later: it is
            // forced, or of a mode that acts below the threshold.
            let owes = debt != NULL;
            self.result = turn_result(!owes, owes);
        } else if is_time {
            self.phase = Phase::Plan;
        } else {
            add_debt(&debt, reply);
            self.result = maintained(None, &Failed::default());
        }
    }

    fn take_plan(&mut self, task: &Task, fields: &mut Fields<'_>) {
        let status = fields.place("status", &["nothing-due", "stopped", "needs-completions"]);
        let (why, sweep) = (fields.text("reason"), fields.text("sweep"));
        let requests = fields.list("requests").len();
        let is_over = sweep.is_empty();
        self.sweep = sweep;
        if status == 2 {
            if requests == 0 || requests > REQUESTS_MAX {
                fields.must_be("requests", "1 to 64 requests");
            }
            self.empty_plans = 0;
            self.answers = alloc::vec![UNASKED; requests.min(REQUESTS_MAX)];
            self.ask(0, num::to_u64(requests));
        } else if is_over {
            let kind = if status == 0 { EndKind::NothingDue } else { EndKind::Stopped };
            self.finish(task, kind, &why);
        } else {
            self.empty_plans = self.empty_plans.saturating_add(1);
            if self.empty_plans >= EMPTY_PLANS_MAX {
                self.finish(task, EndKind::Stopped, reason::NO_PROGRESS);
            }
        }
    }

    /// Has models complete requests, unless they are exhausted.
    fn ask(&mut self, from: u64, count: u64) {
        (self.place, self.count) = (from, count);
        let is_over = self.exhausted.is_some();
        self.phase = if is_over { Phase::Apply } else { Phase::Complete };
    }

    fn take_answers(&mut self, task: &Task, answers: Vec<Answer>) -> Result<()> {
        if num::to_u64(answers.len()) != self.count {
            return Err(unanswered("one answer for each request in `answers`"));
        }
        let places = self.answers.iter_mut().skip(num::to_usize(self.place));
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

    fn state(&self, place: u64) -> u64 {
        self.answers.get(num::to_usize(place)).copied().unwrap_or(MISSING)
    }

    /// Applies the first answer from a place on; behind the last one plans again.
    fn apply_from(&mut self, task: &Task, from: u64) {
        self.place = from;
        let end = num::to_u64(self.answers.len());
        while self.place < end && self.state(self.place) == MISSING {
            self.place += 1;
        }
        let refusal = match self.state(self.place) {
            FAILED => reason::MODEL_AUTH,
            REFUSED_POLICY => reason::MODEL_POLICY,
            _ => "",
        };
        if self.place >= end {
            self.answers.clear();
            self.phase = Phase::Plan;
            if self.is_stopped {
                self.finish(task, EndKind::Cancelled, reason::CANCELLED);
            }
        } else if refusal.is_empty() || task.counts_refusals {
            self.phase = Phase::Apply;
        } else {
            self.finish(task, EndKind::Refused, refusal);
        }
    }

    fn take_outcome(&mut self, task: &Task, fields: &mut Fields<'_>, reply: &mut Reply) {
        let applied = fields.place("applied", &["committed", "retry", "stale", "refused"]);
        let why = fields.text("reason");
        let (before, after) = (fields.number("tokens_before"), fields.number("tokens_after"));
        let has_next = fields.any("next").is_some_and(|(_, kind)| kind != Kind::Null);
        reply.warnings = fields.texts("warnings");
        if applied == 0 && after < before {
            let mut pass = Writer::object();
            pass.flag("capped", fields.flag("capped"));
            pass.number("depth", fields.number("depth"));
            pass.text("kind", &fields.text("purpose"));
            pass.text("level", &fields.text("level"));
            pass.text("summary", &fields.text("summary"));
            pass.number("tokens_after", after);
            pass.number("tokens_before", before);
            reply.pass = Some(pass);
            if self.passes == 0 {
                self.tokens_before = before;
            }
            self.passes = self.passes.saturating_add(1);
            self.tokens_after = after;
            self.is_served |= self.is_without_model();
        }
        match applied {
            3 if why.starts_with("model-") => self.finish(task, EndKind::Refused, &why),
            1 if has_next && !self.is_stopped => {
                if let Some(state) = self.answers.get_mut(num::to_usize(self.place)) {
                    *state = UNASKED;
                }
                self.ask(self.place, 1);
            }
            _ => self.apply_from(task, self.place.saturating_add(1)),
        }
    }

    /// Whether all models failed at the request of the place.
    fn is_without_model(&self) -> bool {
        let state = self.state(self.place);
        state == UNASKED || is_exhausted(state)
    }

    /// Ends the passes, for a reason of the closed list.
    fn finish(&mut self, task: &Task, kind: EndKind, why: &str) {
        self.answers.clear();
        (self.end, self.reason, self.phase) = (kind, why.into(), Phase::Evaluate);
        let is_refusal = why == reason::MODEL_AUTH || why == reason::MODEL_POLICY;
        if !is_refusal || !self.failure.is_some() {
            return;
        }
        let message = format!("{why}: {}", self.failure.message);
        let error = Failed { code: "completion-failed".into(), message, number: None };
        if task.kind == TaskKind::Maintain {
            self.result = maintained(None, &error);
            self.phase = Phase::TellDebt;
        } else {
            self.error = error;
            self.phase = Phase::Done;
        }
    }

    fn take_end(&mut self, task: &Task, fields: &mut Fields<'_>, reply: &mut Reply) {
        let is_due = fields.flag("due");
        let explanation = fields.text("explanation_json");
        match explained(&explanation) {
            Ok((stored, warnings)) => {
                reply.warnings = warnings;
                if self.passes == 0 {
                    (self.tokens_before, self.tokens_after) = (stored, stored);
                }
            }
            Err(_) => fields.must_be("explanation_json", "that of `evaluate`"),
        }
        if self.failure.is_some() {
            let Failed { code, message, .. } = &self.failure;
            reply.warnings.push(format!("completion-failed: {code}: {message}"));
        }
        let compacted = self.compacted(is_due);
        if task.kind == TaskKind::Maintain {
            self.result = maintained(Some(compacted), &self.failure);
            self.phase = Phase::TellDebt;
        } else {
            self.result = compacted.end_object();
            self.phase = Phase::Done;
        }
    }

    /// What was done, but for the passes and warnings, which were told one by one.
    fn compacted(&self, is_due: bool) -> Writer {
        let mut result = Writer::object();
        result.number("completions", self.completions);
        if self.failure.is_some() {
            result.object_at("failure", instruction::completion_failure(&self.failure));
        } else {
            result.null("failure");
        }
        result.text("reason", &self.reason);
        result.text("status", self.status(is_due));
        result.number("tokens_after", self.tokens_after);
        result.number("tokens_before", self.tokens_before);
        result
    }

    /// How it ended, in one word.
    fn status(&self, is_due: bool) -> &'static str {
        let is_model = self.reason.starts_with("model-") || self.reason == reason::BREAKER_OPEN;
        match self.end {
            _ if self.is_served => "partial",
            EndKind::Refused => "model-unavailable",
            EndKind::Stopped if is_model => "model-unavailable",
            EndKind::Stopped | EndKind::Cancelled => "partial",
            EndKind::NothingDue if self.passes == 0 => "nothing-to-do",
            EndKind::NothingDue if is_due => "partial",
            EndKind::NothingDue => "done",
        }
    }

    /// What the host does next.
    pub(super) fn instruct(&self, task: &Task, now: Timestamp) -> Instruction {
        let mut arguments = Writer::object();
        match self.phase {
            Phase::Complete => Instruction::complete(self.place, self.count),
            Phase::Done if self.error.is_some() => {
                Instruction::fail(instruction::failure(&self.error))
            }
            Phase::Done => Instruction::done(&self.result),
            Phase::Apply => self.apply(task, now),
            Phase::AskDebt | Phase::TellDebt => {
                arguments.text("arguments_json", &self.debt_arguments(task));
                arguments.text("conversation", &task.conversation);
                arguments.number("now", now);
                arguments.text("verb", "maintain");
                Instruction::call("admin.call", arguments)
            }
            Phase::Decide | Phase::Plan | Phase::Evaluate => {
                let is_plan = self.phase == Phase::Plan;
                arguments.number("budget", task.budget.into());
                arguments.text("conversation", &task.conversation);
                arguments.number("now", now);
                arguments.object_at("options", self.options(task));
                let function = if is_plan { "compaction.plan" } else { "compaction.evaluate" };
                Instruction::call(function, arguments)
            }
        }
    }

    /// Options of `plan` and `evaluate`. At the end nothing is forced, and what was observed is of
    /// a context before the passes.
    fn options(&self, task: &Task) -> Writer {
        let is_end = self.phase == Phase::Evaluate;
        let mut options = Writer::object();
        if let Some(extra) = task.extra() {
            options.text("extra_json", &extra);
        }
        options.flag("force", task.force && !is_end);
        if let Some(lease_ms) = task.lease_ms {
            options.number("lease_ms", lease_ms.into());
        }
        if let Some(mode) = &task.mode {
            options.text("mode", mode);
        }
        if let Some(observed) = task.observed_tokens.filter(|_| !is_end) {
            options.number("observed_tokens", observed.into());
        }
        options.number("requests_max", task.requests_max.into());
        if !self.sweep.is_empty() && !is_end {
            options.text("sweep", &self.sweep);
        }
        if let Some(target) = task.target {
            options.number("target", target.into());
        }
        options
    }

    /// Arguments of the verb `maintain`. What was observed is of a context before the passes.
    fn debt_arguments(&self, task: &Task) -> String {
        let mut asked = Writer::object();
        asked.number("budget", task.budget.into());
        if !self.reason.is_empty() {
            asked.text("ended", &self.reason);
        }
        if let Some(model) = &task.model {
            asked.text("model", model);
        }
        if let Some(observed) = task.observed_tokens.filter(|_| self.passes == 0) {
            asked.number("observed_tokens", observed.into());
        }
        asked.end_object()
    }

    fn apply(&self, task: &Task, now: Timestamp) -> Instruction {
        let mut arguments = Writer::object();
        if self.state(self.place) == UNASKED {
            let mut answer = Writer::object();
            answer.object_at("failed", instruction::completion_failure(&self.exhausted));
            arguments.object_at("answer", answer);
        }
        arguments.text("conversation", &task.conversation);
        arguments.number("now", now);
        let mut options = Writer::object();
        if let Some(extra) = model_option(task.model.as_deref()) {
            options.text("extra_json", &extra);
        }
        if self.is_without_model() {
            options.number("fallback_over_tokens", task.budget.into());
        }
        arguments.object_at("options", options);
        Instruction::call("compaction.apply", arguments).with_request(self.place)
    }
}

/// State of an answer that refuses the content.
const REFUSED_POLICY: u64 = FAILED + 1;
const NULL: &str = "null";

fn turn_result(compact: bool, deferred: bool) -> String {
    let mut result = Writer::object();
    result.flag("compact", compact);
    result.flag("deferred", deferred);
    result.end_object()
}

/// The result of `maintain` but for what is owed.
fn maintained(compacted: Option<Writer>, failure: &Failed) -> String {
    let mut result = Writer::object();
    match compacted {
        Some(compacted) => result.object_at("compacted", compacted),
        None => result.null("compacted"),
    }
    if failure.is_some() {
        let plain = Failed { number: None, ..failure.clone() };
        result.object_at("failure", instruction::failure(&plain));
    } else {
        result.null("failure");
    }
    result.end_object()
}

/// The tokens of the stored context and the warnings of an explanation.
fn explained(explanation: &str) -> Result<(u64, Vec<String>)> {
    let mut fields = Fields::of_argument(EVENT, explanation)?;
    let warnings = fields.texts("warnings");
    let inputs = fields.any("inputs").map(|(raw, _)| raw).unwrap_or_default();
    let mut inputs = Fields::of_argument(EVENT, &inputs)?;
    Ok((inputs.number("stored_tokens"), warnings))
}

/// What is owed, as JSON.
fn debt(fields: &mut Fields<'_>) -> String {
    fields.any("debt").map_or_else(|| NULL.into(), |(raw, _)| raw.into_owned())
}

/// Adds what is owed to the result.
fn add_debt(debt: &str, reply: &mut Reply) {
    let mut note = Writer::object();
    note.json("debt", debt);
    reply.note = Some(note);
}
