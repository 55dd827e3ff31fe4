//! Compaction: plans, has models complete the requests, applies the answers, until nothing is due.
//!
//! Task `compact` does so at once, `maintain` when deferred compaction is due, and `turn` says after
//! an append whether to compact now. What was observed of a prompt counts until a summary is made.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    api::Timestamp,
    compaction::{model_option, reason},
    error::Result,
    json::{Fields, Kind, Writer},
    num,
};

use super::{
    event::{Answer, AnswerState, CompletionFault, EVENT, Event, Failed},
    instruction::{self, Instruction, Reply},
    unanswered,
};

/// Plans without a request in a row. Two are normal: the end of a sweep, and the one behind it.
pub(super) const EMPTY_PLANS_MAX: u32 = 8;
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
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum Phase {
    /// Whether compaction is due after an append.
    Decide,
    /// Whether deferred compaction is due now.
    AskDebt,
    Plan,
    /// So many requests from this place on are completed.
    Complete(u64, u64),
    /// The answer of this place is applied.
    Apply(u64),
    /// How the conversation stands at the end.
    Evaluate,
    /// The record of deferred compaction is told how it ended.
    TellDebt,
    Done,
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum EndKind {
    NothingDue,
    Stopped,
    Refused,
    Cancelled,
}

/// What is known of the answer to a request.
#[derive(Deserialize, Serialize)]
enum Known {
    /// None was asked for: the models are exhausted.
    Unasked,
    Done,
    Failed(CompletionFault),
    Missing,
}

/// How far a compaction is.
#[derive(Deserialize, Serialize)]
pub(super) struct Progress {
    phase: Phase,
    sweep: String,
    empty_plans: u32,
    answers: Vec<Known>,
    completions: u32,
    passes: u32,
    tokens_before: u32,
    tokens_after: u32,
    /// Why no model is asked any more.
    exhausted: Option<CompletionFault>,
    /// The last failure of a model.
    failure: Option<CompletionFault>,
    /// Whether a summary was made in place of exhausted models.
    is_served: bool,
    /// Whether the caller lost interest in an answer.
    is_stopped: bool,
    end: Option<(EndKind, String)>,
    /// Members of the result that are known.
    result: String,
    /// Why the task fails.
    error: Option<(String, String)>,
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
            sweep: String::new(),
            empty_plans: 0,
            answers: Vec::new(),
            completions: 0,
            passes: 0,
            tokens_before: 0,
            tokens_after: 0,
            exhausted: None,
            failure: None,
            is_served: false,
            is_stopped: false,
            end: None,
            result: String::new(),
            error: None,
        }
    }

    /// Takes an event in.
    pub(super) fn advance(&mut self, task: &Task, event: Event, reply: &mut Reply) -> Result<()> {
        match (event, self.phase) {
            (Event::Stopped, Phase::Plan | Phase::Complete(..)) => {
                self.finish(task, EndKind::Cancelled, reason::CANCELLED);
            }
            // An answer that is there is paid for and applied; no model is asked any more.
            (Event::Stopped, _) => self.is_stopped = true,
            (Event::Failed(failed), _) => self.fail(task, failed),
            (Event::Answered(answers), Phase::Complete(from, count)) => {
                self.take_answers(task, from, count, answers)?;
            }
            (_, Phase::Complete(..)) => return Err(unanswered("`answers`")),
            (Event::Returned(json), Phase::Decide) => self.take_decision(task, &json, reply)?,
            (Event::Returned(json), Phase::AskDebt) => self.take_debt(task, &json, reply)?,
            (Event::Returned(json), Phase::Plan) => self.take_plan(task, &json)?,
            (Event::Returned(json), Phase::Apply(place)) => {
                self.take_outcome(task, place, &json, reply)?;
            }
            (Event::Returned(json), Phase::Evaluate) => self.take_end(task, &json, reply)?,
            (Event::Returned(json), Phase::TellDebt) => {
                add_debt(&json, reply)?;
                self.phase = Phase::Done;
            }
            _ => return Err(unanswered("`result` or `error`")),
        }
        Ok(())
    }

    /// A call failed. A conflict that repeating does not mend puts deferred compaction off.
    fn fail(&mut self, task: &Task, failed: Failed) {
        let is_told = self.error.is_none()
            && task.kind == TaskKind::Maintain
            && failed.code == reason::CONFLICT
            && !matches!(self.phase, Phase::AskDebt | Phase::TellDebt);
        if is_told {
            self.end = Some((EndKind::Stopped, reason::CONFLICT.into()));
            self.phase = Phase::TellDebt;
        } else {
            self.phase = Phase::Done;
        }
        // Of two failures the first is the cause.
        self.error = self.error.take().or(Some((failed.code, failed.message)));
    }

    fn take_decision(&mut self, task: &Task, json: &str, reply: &mut Reply) -> Result<()> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let (is_due, must) = (fields.flag("due"), fields.flag("must"));
        fields.end_of_known(EVENT)?;
        let mut note = Writer::object();
        note.json("decision", json);
        reply.note = Some(note);
        let waits = is_due && !must && task.defer;
        self.result = (if is_due && !waits { COMPACT_NOW } else { NOTHING_NOW }).into();
        self.phase = if waits { Phase::AskDebt } else { Phase::Done };
        Ok(())
    }

    fn take_debt(&mut self, task: &Task, json: &str, reply: &mut Reply) -> Result<()> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let is_time = fields.flag("drain");
        let owes = fields.any("debt").is_some_and(|(_, kind)| kind != Kind::Null);
        fields.end_of_known(EVENT)?;
        if task.kind == TaskKind::Turn {
            // Where the record sees nothing due, compaction would never be done later: it is
            // forced, or of a mode that acts below the threshold.
            self.result = (if owes { DEFERRED } else { COMPACT_NOW }).into();
            self.phase = Phase::Done;
        } else if is_time {
            self.phase = Phase::Plan;
        } else {
            add_debt(json, reply)?;
            self.result = r#"{"compacted":null,"failure":null}"#.into();
            self.phase = Phase::Done;
        }
        Ok(())
    }

    fn take_plan(&mut self, task: &Task, json: &str) -> Result<()> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let status = fields.place("status", &["nothing-due", "stopped", "needs-completions"]);
        let (why, sweep) = (fields.text("reason"), fields.text("sweep"));
        let requests = fields.list("requests").len();
        fields.end_of_known(EVENT)?;
        let is_over = sweep.is_empty();
        self.sweep = sweep;
        if status == 2 {
            if requests == 0 || requests > REQUESTS_MAX {
                return Err(unanswered("a plan with 1 to 64 requests"));
            }
            self.empty_plans = 0;
            self.answers = (0..requests).map(|_| Known::Unasked).collect();
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
        Ok(())
    }

    /// Has models complete requests, unless they are exhausted.
    fn ask(&mut self, from: u64, count: u64) {
        self.phase = match self.exhausted {
            None => Phase::Complete(from, count),
            Some(_) => Phase::Apply(from),
        };
    }

    fn take_answers(
        &mut self,
        task: &Task,
        from: u64,
        count: u64,
        answers: Vec<Answer>,
    ) -> Result<()> {
        if num::to_u64(answers.len()) != count {
            return Err(unanswered("one answer for each request in `answers`"));
        }
        let places = self.answers.iter_mut().skip(num::to_usize(from));
        for (known, answer) in places.zip(answers) {
            self.completions = self.completions.saturating_add(answer.asked);
            *known = match answer.state {
                AnswerState::Done => Known::Done,
                AnswerState::Missing => {
                    self.is_stopped = true;
                    Known::Missing
                }
                AnswerState::Failed(fault) => {
                    if fault.is_exhausted() && self.exhausted.is_none() {
                        self.exhausted = Some(fault.clone());
                    }
                    self.failure = Some(fault.clone());
                    Known::Failed(fault)
                }
            };
        }
        self.apply_from(task, from);
        Ok(())
    }

    /// Applies the first answer from a place on; behind the last one plans again.
    fn apply_from(&mut self, task: &Task, from: u64) {
        let is_there = |known: &Known| !matches!(known, Known::Missing);
        let next = self.answers.iter().skip(num::to_usize(from)).position(is_there);
        let Some(offset) = next else {
            self.answers.clear();
            self.phase = Phase::Plan;
            if self.is_stopped {
                self.finish(task, EndKind::Cancelled, reason::CANCELLED);
            }
            return;
        };
        let place = from.saturating_add(num::to_u64(offset));
        self.phase = Phase::Apply(place);
        if !task.counts_refusals
            && let Some(Known::Failed(fault)) = self.answers.get(num::to_usize(place))
            && let Some(why) = refusal(fault)
        {
            self.finish(task, EndKind::Refused, why);
        }
    }

    fn take_outcome(
        &mut self,
        task: &Task,
        place: u64,
        json: &str,
        reply: &mut Reply,
    ) -> Result<()> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let applied = fields.place("applied", &["committed", "retry", "stale", "refused"]);
        let why = fields.text("reason");
        let (before, after) = (fields.small("tokens_before"), fields.small("tokens_after"));
        let has_next = fields.any("next").is_some_and(|(_, kind)| kind != Kind::Null);
        reply.warnings = fields.texts("warnings");
        let is_pass = applied == 0 && after < before;
        if is_pass {
            let mut pass = Writer::object();
            pass.flag("capped", fields.flag("capped"));
            pass.number("depth", fields.number("depth"));
            pass.text("kind", &fields.text("purpose"));
            pass.text("level", &fields.text("level"));
            pass.text_or_null("summary", fields.text_or_none("summary").as_deref());
            pass.number("tokens_after", after.into());
            pass.number("tokens_before", before.into());
            reply.pass = Some(pass);
        }
        fields.end_of_known(EVENT)?;
        if is_pass {
            if self.passes == 0 {
                self.tokens_before = before;
            }
            self.passes = self.passes.saturating_add(1);
            self.tokens_after = after;
            self.is_served |= self.fault(place).is_some_and(CompletionFault::is_exhausted);
        }
        match applied {
            3 if why.starts_with("model-") => self.finish(task, EndKind::Refused, &why),
            1 if has_next && !self.is_stopped => {
                if let Some(known) = self.answers.get_mut(num::to_usize(place)) {
                    *known = Known::Unasked;
                }
                self.ask(place, 1);
            }
            _ => self.apply_from(task, place.saturating_add(1)),
        }
        Ok(())
    }

    /// How the answer of this place failed.
    fn fault(&self, place: u64) -> Option<&CompletionFault> {
        match self.answers.get(num::to_usize(place))? {
            Known::Failed(fault) => Some(fault),
            Known::Unasked => self.exhausted.as_ref(),
            Known::Done | Known::Missing => None,
        }
    }

    /// Ends the passes, for a reason of the closed list.
    fn finish(&mut self, task: &Task, kind: EndKind, why: &str) {
        self.answers.clear();
        self.end = Some((kind, why.into()));
        self.phase = Phase::Evaluate;
        let refused = [reason::MODEL_AUTH, reason::MODEL_POLICY].contains(&why);
        let Some(fault) = self.failure.as_ref().filter(|_| refused) else { return };
        let message = format!("{why}: {}", fault.message);
        if task.kind == TaskKind::Maintain {
            let mut result = Writer::object();
            result.null("compacted");
            result.object_at("failure", instruction::error("completion-failed", &message, None));
            self.result = result.end_object();
            self.phase = Phase::TellDebt;
        } else {
            self.error = Some(("completion-failed".into(), message));
            self.phase = Phase::Done;
        }
    }

    fn take_end(&mut self, task: &Task, json: &str, reply: &mut Reply) -> Result<()> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let is_due = fields.flag("due");
        let explanation = fields.text("explanation_json");
        fields.end_of_known(EVENT)?;
        let mut explained = Fields::of_argument(EVENT, &explanation)?;
        reply.warnings = explained.texts("warnings");
        let inputs = explained.any("inputs").map(|(raw, _)| raw).unwrap_or_default();
        explained.end_of_known(EVENT)?;
        let mut inputs = Fields::of_argument(EVENT, &inputs)?;
        let stored = inputs.small("stored_tokens");
        inputs.end_of_known(EVENT)?;
        if self.passes == 0 {
            (self.tokens_before, self.tokens_after) = (stored, stored);
        }
        let mut failure = None;
        if let Some(fault) = &self.failure {
            let line = format!("completion-failed: {}: {}", fault.code(), fault.message);
            reply.warnings.push(line);
            failure = Some(instruction::error(fault.code(), &fault.message, None));
        }
        let compacted = self.compacted(is_due);
        if task.kind == TaskKind::Maintain {
            let mut result = Writer::object();
            result.object_at("compacted", compacted);
            match failure {
                Some(failure) => result.object_at("failure", failure),
                None => result.null("failure"),
            }
            self.result = result.end_object();
            self.phase = Phase::TellDebt;
        } else {
            self.result = compacted.end_object();
            self.phase = Phase::Done;
        }
        Ok(())
    }

    /// What was done, but for the passes and warnings, which were told one by one.
    fn compacted(&self, is_due: bool) -> Writer {
        let mut result = Writer::object();
        result.number("completions", self.completions.into());
        match &self.failure {
            Some(fault) => {
                let mut failure = instruction::error(fault.code(), &fault.message, None);
                failure.number_or_null("retry_after_ms", fault.retry_after_ms);
                result.object_at("failure", failure);
            }
            None => result.null("failure"),
        }
        result.text("reason", self.end.as_ref().map_or("", |(_, why)| why));
        result.text("status", self.status(is_due));
        result.number("tokens_after", self.tokens_after.into());
        result.number("tokens_before", self.tokens_before.into());
        result
    }

    /// How it ended, in one word.
    fn status(&self, is_due: bool) -> &'static str {
        let (kind, why) = match &self.end {
            Some((kind, why)) => (*kind, why.as_str()),
            None => (EndKind::Stopped, ""),
        };
        let is_model = why.starts_with("model-") || why == reason::BREAKER_OPEN;
        match kind {
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
            Phase::Complete(from, count) => Instruction::complete(from..from.saturating_add(count)),
            Phase::Done => match &self.error {
                Some((code, message)) => Instruction::fail(instruction::error(code, message, None)),
                None => Instruction::done(&self.result),
            },
            Phase::Apply(place) => self.apply(task, place, now),
            Phase::AskDebt | Phase::TellDebt => {
                let ended = self.end.as_ref().map(|(_, why)| why.as_str());
                arguments.text("arguments_json", &self.debt_arguments(task, ended));
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
    fn debt_arguments(&self, task: &Task, ended: Option<&str>) -> String {
        let mut asked = Writer::object();
        asked.number("budget", task.budget.into());
        if let Some(ended) = ended {
            asked.text("ended", ended);
        }
        if let Some(model) = &task.model {
            asked.text("model", model);
        }
        if let Some(observed) = task.observed_tokens.filter(|_| self.passes == 0) {
            asked.number("observed_tokens", observed.into());
        }
        asked.end_object()
    }

    fn apply(&self, task: &Task, place: u64, now: Timestamp) -> Instruction {
        let fault = self.fault(place);
        let is_unasked = matches!(self.answers.get(num::to_usize(place)), Some(Known::Unasked));
        let mut arguments = Writer::object();
        if let Some(fault) = fault.filter(|_| is_unasked) {
            let mut failed = instruction::error(fault.code(), &fault.message, None);
            failed.number_or_null("retry_after_ms", fault.retry_after_ms);
            let mut answer = Writer::object();
            answer.object_at("failed", failed);
            arguments.object_at("answer", answer);
        }
        arguments.text("conversation", &task.conversation);
        arguments.number("now", now);
        let mut options = Writer::object();
        if let Some(extra) = model_option(task.model.as_deref()) {
            options.text("extra_json", &extra);
        }
        if fault.is_some_and(CompletionFault::is_exhausted) {
            options.number("fallback_over_tokens", task.budget.into());
        }
        arguments.object_at("options", options);
        Instruction::call("compaction.apply", arguments).with_request(place)
    }
}

const COMPACT_NOW: &str = r#"{"compact":true,"deferred":false}"#;
const NOTHING_NOW: &str = r#"{"compact":false,"deferred":false}"#;
const DEFERRED: &str = r#"{"compact":false,"deferred":true}"#;

/// The reason for the end after a failure that another try cannot mend.
const fn refusal(fault: &CompletionFault) -> Option<&'static str> {
    match fault.code {
        0 => Some(reason::MODEL_AUTH),
        1 => Some(reason::MODEL_POLICY),
        _ => None,
    }
}

/// Adds what is owed to the result.
fn add_debt(json: &str, reply: &mut Reply) -> Result<()> {
    let mut fields = Fields::of_argument(EVENT, json)?;
    let debt = fields.any("debt").map(|(raw, _)| raw);
    fields.end_of_known(EVENT)?;
    let mut note = Writer::object();
    note.json("debt", debt.as_deref().unwrap_or("null"));
    reply.note = Some(note);
    Ok(())
}
