//! Methods for the interface `compaction`: evaluate, plan, apply, run and the offline summariser.

use serde_json::json;

use crate::{
    error::Result,
    lcm::Lcm,
    record::{apply_options, completion_result, work_options},
    types::{Completion, CompletionRequest, CompletionResult},
    work::{self, Decision, Outcome, PlanResult},
};

#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Returns whether compaction is due, and why.
    pub fn evaluate(
        &self,
        conversation: &str,
        budget: u32,
        options: &work::Options,
        now: u64,
    ) -> Result<Decision> {
        self.call(
            "compaction.evaluate",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "options": work_options(options), "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_compaction().call_evaluate(
                    store,
                    conversation,
                    budget,
                    options,
                    now,
                )
            },
        )
    }

    /// Returns the next completion requests of a compaction, at most `requests_max` of the options.
    pub fn plan(
        &self,
        conversation: &str,
        budget: u32,
        options: &work::Options,
        now: u64,
    ) -> Result<PlanResult> {
        self.call(
            "compaction.plan",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "options": work_options(options), "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_compaction().call_plan(
                    store,
                    conversation,
                    budget,
                    options,
                    now,
                )
            },
        )
    }

    /// Verifies an answer to a request of [`Lcm::plan`], and stores the summary if the answer
    /// passes. After a failed completion, `options` decide whether the component stores an extract
    /// of the sources.
    pub fn apply(
        &self,
        conversation: &str,
        request_id: &str,
        answer: &CompletionResult,
        options: &work::ApplyOptions,
        now: u64,
    ) -> Result<Outcome> {
        self.call(
            "compaction.apply",
            || {
                json!({"conversation": conversation, "request_id": request_id,
                    "answer": completion_result(answer), "options": apply_options(options),
                    "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_compaction().call_apply(
                    store,
                    conversation,
                    request_id,
                    answer,
                    options,
                    now,
                )
            },
        )
    }

    /// Makes one pass with the model of this handle. Other calls of the handle wait until the pass
    /// ends.
    pub fn run(
        &self,
        conversation: &str,
        budget: u32,
        options: &work::Options,
        now: u64,
    ) -> Result<Outcome> {
        self.call(
            "compaction.run",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "options": work_options(options), "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_compaction().call_run(store, conversation, budget, options, now)
            },
        )
    }

    /// Completes a request without a model: deterministic and extractive.
    pub fn complete_offline(&self, request: &CompletionRequest) -> Result<Completion> {
        self.call(
            "compaction.complete-offline",
            || json!({"request": {"id": request.id}}),
            |bindings, store| {
                bindings.lcm_engine_compaction().call_complete_offline(store, request).map(Ok)
            },
        )
    }

    /// Returns why another model should be asked for a summary, `blank` or `cut-off`; `None`: the
    /// answer is worth applying.
    pub fn judge_answer(
        &self,
        request: &CompletionRequest,
        answer: &Completion,
    ) -> Result<Option<String>> {
        self.call(
            "compaction.judge-answer",
            || json!({"request": {"id": request.id}}),
            |bindings, store| {
                let compaction = bindings.lcm_engine_compaction();
                compaction.call_judge_answer(store, request, answer).map(Ok)
            },
        )
    }
}
