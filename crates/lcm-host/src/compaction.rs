//! Compacts a conversation: plan, complete, apply, until the component wants no more.
//!
//! In: a budget and the model of the handle. Out: the passes and why they ended. Which passes there
//! are, and when they end, is the component's decision; this loop only asks and answers.

use std::thread;

use crate::{
    bindings::types::{CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult},
    clock::{Cancel, Clock},
    completion::describe,
    error::{Code, Error, Result},
    json,
    lcm::Lcm,
    record::{level_name, purpose_name},
    work::{Applied, ApplyOptions, Decision, Mode, Options, Outcome, PlanResult, Status},
};

/// Plans without work in a row that say "plan again"; more are a bug of the component.
const EMPTY_PLANS_MAX: u32 = 1_000;

/// How a conversation is compacted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompactOptions {
    /// Tokens of the model's context window that the conversation may use.
    pub budget: u32,
    /// When to act.
    pub mode: Mode,
    /// Whether to act below the threshold, too.
    pub force: bool,
    /// Tokens to reach; `None`: the component's threshold.
    pub target: Option<u32>,
    /// The model whose tokens `budget`, `target` and `observed_tokens` are, once the verb
    /// `calibrate` has reported of it; `None`: they are estimated tokens.
    pub model: Option<String>,
    /// Tokens of the whole prompt as the provider counted them last, what the host adds included;
    /// `None`: unknown. They count until a summary was made: the prompt after it is another.
    pub observed_tokens: Option<u32>,
    /// Completions asked for at the same time; 0 counts as 1.
    pub parallel: u32,
    /// Whether the component is told that a model refused its key or the content. It leaves one
    /// that does so several times alone for a while; a person who is told each time need not wait.
    pub counts_refusals: bool,
    /// The time of the calls.
    pub clock: Clock,
}

impl CompactOptions {
    /// Sweeps when the context exceeds the threshold of this budget, one completion at a time.
    #[must_use]
    pub const fn new(budget: u32, clock: Clock) -> Self {
        Self {
            budget,
            mode: Mode::Threshold,
            force: false,
            target: None,
            model: None,
            observed_tokens: None,
            parallel: 1,
            counts_refusals: true,
            clock,
        }
    }

    pub(crate) fn plan(&self, sweep: Option<String>) -> Options {
        Options {
            mode: self.mode,
            force: self.force,
            target: self.target,
            observed_tokens: self.observed_tokens,
            requests_max: self.parallel.max(1),
            lease_ms: 0,
            sweep,
            extra_json: self.model.as_deref().map(model_option),
        }
    }
}

/// Further options that name the model whose tokens a call counts in.
#[must_use]
pub fn model_option(model: &str) -> String {
    serde_json::json!({ "model": model }).to_string()
}

/// Further options with the model in them, unless they name one.
pub(crate) fn with_model(extra_json: Option<&str>, model: &str) -> Result<String> {
    let Some(json) = extra_json.filter(|json| !json.is_empty()) else {
        return Ok(model_option(model));
    };
    let mut extra: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json)
        .map_err(|error| {
            Error::new(Code::InvalidInput, format!("`extra_json` is no JSON object: {error}"))
        })?;
    extra.entry("model").or_insert_with(|| model.into());
    Ok(serde_json::Value::Object(extra).to_string())
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompactStatus {
    /// It did what was due.
    Done,
    /// Nothing was due.
    NothingToDo,
    /// Something was done, and more would be due.
    Partial,
    /// The model failed, and the conversation fits its budget without it.
    ModelUnavailable,
}

impl CompactStatus {
    /// The status as the command line writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NothingToDo => "nothing-to-do",
            Self::Partial => "partial",
            Self::ModelUnavailable => "model-unavailable",
        }
    }
}

/// One summary that was made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pass {
    /// Its id.
    pub summary: String,
    /// `leaf` or `condensed`.
    pub kind: &'static str,
    /// Its depth.
    pub depth: u32,
    /// `normal`, `aggressive` or `fallback`.
    pub level: &'static str,
    /// Whether its text was cut to its limit.
    pub capped: bool,
    /// Tokens of the stored context before.
    pub tokens_before: u32,
    /// Tokens of the stored context after.
    pub tokens_after: u32,
}

/// What a compaction did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompactReport {
    /// How it ended.
    pub status: CompactStatus,
    /// Why, from the component's closed list.
    pub reason: String,
    /// The summaries that were made, in order.
    pub passes: Vec<Pass>,
    /// Answers of the model.
    pub completions: u32,
    /// Tokens of the stored context before.
    pub tokens_before: u32,
    /// Tokens of the stored context after.
    pub tokens_after: u32,
    /// Things worth knowing, each one line.
    pub warnings: Vec<String>,
}

/// A compaction that failed, as `maintain` is told of it.
pub(crate) struct Broken {
    pub(crate) error: Error,
    /// From the component's closed list; `None`: it has no reason of this kind.
    pub(crate) reason: Option<&'static str>,
}

/// The state of one compaction.
struct Work<'a> {
    lcm: &'a Lcm,
    conversation: &'a str,
    options: &'a CompactOptions,
    cancel: &'a Cancel,
    progress: &'a mut dyn FnMut(&Pass),
    passes: Vec<Pass>,
    completions: u32,
    warnings: Vec<String>,
    tokens_after: u32,
    /// Why the model is no longer asked.
    exhausted: Option<CompletionError>,
    /// Why the model will not serve at all.
    refused: Option<&'static str>,
    /// Whether a summary was made in place of an exhausted model.
    served: bool,
}

impl Lcm {
    /// Compacts until the component wants no more. Other calls run while a model thinks.
    /// `progress` is told each summary that was made.
    ///
    /// # Errors
    ///
    /// - `completion-failed`: the model refused the key or the content; the request that it
    ///   refused left the conversation as it was.
    /// - `cancelled`: what was stored before stays.
    /// - what the component answers.
    pub fn compact(
        &self,
        conversation: &str,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> Result<CompactReport> {
        self.compact_told(conversation, options, cancel, progress).map_err(|broken| broken.error)
    }

    /// As [`Lcm::compact`]; a failure comes with its reason.
    pub(crate) fn compact_told(
        &self,
        conversation: &str,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> std::result::Result<CompactReport, Broken> {
        let before = self
            .evaluate(conversation, options.budget, &options.plan(None), now(options))
            .and_then(|decision| explained(&decision));
        let before = before.map_err(|error| broken(error, None))?;
        let tokens_before = before.inputs.stored_tokens;
        let mut work = Work {
            lcm: self,
            conversation,
            options,
            cancel,
            progress,
            passes: Vec::new(),
            completions: 0,
            warnings: before.warnings,
            tokens_after: tokens_before,
            exhausted: None,
            refused: None,
            served: false,
        };
        let ended = work.until_done();
        let (status, reason) = ended.map_err(|error| broken(error, work.refused))?;
        Ok(CompactReport {
            status,
            reason,
            passes: work.passes,
            completions: work.completions,
            tokens_before,
            tokens_after: work.tokens_after,
            warnings: work.warnings,
        })
    }
}

impl Work<'_> {
    fn until_done(&mut self) -> Result<(CompactStatus, String)> {
        let mut sweep = None;
        let mut empty_plans = 0;
        loop {
            self.cancel.check()?;
            let options = self.options.plan(sweep);
            let budget = self.options.budget;
            let plan = self.lcm.plan(self.conversation, budget, &options, now(self.options))?;
            if plan.status == Status::NeedsCompletions {
                empty_plans = 0;
                if let Some(end) = self.answer_all(&plan)? {
                    return Ok(end);
                }
            } else if plan.sweep.is_empty() {
                return self.end(&plan);
            } else {
                empty_plans += 1;
                if empty_plans > EMPTY_PLANS_MAX {
                    return Err(Error::internal("`compaction.plan` comes to no end"));
                }
            }
            sweep = Some(plan.sweep);
        }
    }

    /// What the last plan amounts to.
    fn end(&self, plan: &PlanResult) -> Result<(CompactStatus, String)> {
        let model = plan.reason.starts_with("model-") || plan.reason == "breaker-open";
        let status = match plan.status {
            _ if self.served => CompactStatus::Partial,
            Status::Stopped if model => CompactStatus::ModelUnavailable,
            Status::Stopped => CompactStatus::Partial,
            _ if self.passes.is_empty() => CompactStatus::NothingToDo,
            _ if self.is_still_due()? => CompactStatus::Partial,
            _ => CompactStatus::Done,
        };
        Ok((status, plan.reason.clone()))
    }

    /// Whether compaction is due after the passes. What was observed is of a context before them.
    fn is_still_due(&self) -> Result<bool> {
        let options = self.options.plan(None);
        let options = Options { force: false, observed_tokens: None, ..options };
        let (conversation, budget) = (self.conversation, self.options.budget);
        self.lcm.evaluate(conversation, budget, &options, now(self.options)).map(|found| found.due)
    }

    /// Completes the requests of a plan and applies the answers in the order of the requests.
    fn answer_all(&mut self, plan: &PlanResult) -> Result<Option<(CompactStatus, String)>> {
        let answers: Vec<CompletionResult> = if plan.requests.len() == 1 || self.exhausted.is_some()
        {
            plan.requests.iter().map(|request| self.complete(request)).collect()
        } else {
            let this = &*self;
            let (lcm, cancel) = (this.lcm, this.cancel);
            thread::scope(|scope| {
                let running: Vec<_> = plan
                    .requests
                    .iter()
                    .map(|request| scope.spawn(move || lcm.model().complete(request, cancel)))
                    .collect();
                running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
            })
        };
        for (request, answer) in plan.requests.iter().zip(answers) {
            if let Some(end) = self.settle(request.clone(), answer)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    fn complete(&self, request: &CompletionRequest) -> CompletionResult {
        match &self.exhausted {
            Some(error) => CompletionResult::Failed(error.clone()),
            None => self.lcm.model().complete(request, self.cancel),
        }
    }

    /// Applies one answer and those that follow from it.
    fn settle(
        &mut self,
        mut request: CompletionRequest,
        mut answer: CompletionResult,
    ) -> Result<Option<(CompactStatus, String)>> {
        loop {
            self.cancel.check()?;
            let options = self.said_with(&answer);
            if let CompletionResult::Failed(error) = &answer
                && !self.options.counts_refusals
                && let Some(reason) = refusal(error)
            {
                return Err(self.refused(reason, error));
            }
            let now = now(self.options);
            let outcome = self.lcm.apply(self.conversation, &request.id, &answer, &options, now)?;
            self.note(&outcome);
            if let CompletionResult::Failed(error) = &answer
                && let Some(reason) = refusal(error).filter(|reason| *reason == outcome.reason)
            {
                return Err(self.refused(reason, error));
            }
            match (outcome.applied, outcome.next) {
                (Applied::Retry, Some(next)) => {
                    answer = self.complete(&next);
                    request = next;
                }
                (Applied::Refused, _) if outcome.reason.starts_with("model-") => {
                    return Ok(Some(self.give_up(outcome.reason)));
                }
                _ => return Ok(None),
            }
        }
    }

    /// The end of a compaction whose model will not serve at all.
    fn refused(&mut self, reason: &'static str, error: &CompletionError) -> Error {
        self.refused = Some(reason);
        Error::new(Code::CompletionFailed, describe(error))
    }

    /// What is said with an answer when it is applied.
    fn said_with(&mut self, answer: &CompletionResult) -> ApplyOptions {
        let extra_json = self.options.model.as_deref().map(model_option);
        let mut options = ApplyOptions { fallback_over_tokens: None, extra_json };
        match answer {
            CompletionResult::Done(_) => self.completions += 1,
            CompletionResult::Failed(error) => match error.code {
                // Answers about the key or the request: the component says what follows.
                CompletionErrorCode::Auth
                | CompletionErrorCode::Policy
                | CompletionErrorCode::ContextTooLong => {}
                _ => {
                    if self.exhausted.is_none() {
                        self.exhausted = Some(error.clone());
                        self.warnings.push(describe(error));
                    }
                    options.fallback_over_tokens = Some(self.options.budget);
                }
            },
        }
        options
    }

    /// The end of a compaction whose model failed while the context fits the budget.
    fn give_up(&self, reason: String) -> (CompactStatus, String) {
        let status =
            if self.served { CompactStatus::Partial } else { CompactStatus::ModelUnavailable };
        (status, reason)
    }

    fn note(&mut self, outcome: &Outcome) {
        for warning in &outcome.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        let Some(summary) =
            outcome.summary.as_ref().filter(|_| outcome.applied == Applied::Committed)
        else {
            return;
        };
        self.tokens_after = outcome.tokens_after;
        self.served |= self.exhausted.is_some();
        let pass = Pass {
            summary: summary.clone(),
            kind: purpose_name(outcome.purpose),
            depth: outcome.depth,
            level: level_name(outcome.level),
            capped: outcome.capped,
            tokens_before: outcome.tokens_before,
            tokens_after: outcome.tokens_after,
        };
        (self.progress)(&pass);
        self.passes.push(pass);
    }
}

fn now(options: &CompactOptions) -> u64 {
    options.clock.now_ms()
}

/// What the component explains of a decision.
#[derive(serde::Deserialize)]
struct Explanation {
    inputs: Inputs,
    /// What keeps from happening what is due.
    warnings: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Inputs {
    /// Of the context that the decision was made about. What it compared may be others.
    stored_tokens: u32,
}

fn explained(decision: &Decision) -> Result<Explanation> {
    json::read("compaction.evaluate", &decision.explanation_json)
}

/// The component's reason for the end after a failure that another try cannot mend.
fn refusal(error: &CompletionError) -> Option<&'static str> {
    match error.code {
        CompletionErrorCode::Auth => Some("model-auth"),
        CompletionErrorCode::Policy => Some("model-policy"),
        _ => None,
    }
}

/// A failure with the reason that it has by its code, or by what the model said.
fn broken(error: Error, refused: Option<&'static str>) -> Broken {
    let reason = match error.code {
        Code::Cancelled => Some("cancelled"),
        Code::Conflict => Some("conflict"),
        Code::CompletionFailed => refused,
        _ => None,
    };
    Broken { error, reason }
}

/// The answer of a provider that panicked.
fn lost() -> CompletionResult {
    crate::completion::failed(CompletionErrorCode::Other, "the provider panicked")
}
