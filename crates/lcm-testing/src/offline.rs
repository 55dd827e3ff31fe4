//! Compaction by the offline summariser, as in a host without a model.
//!
//! In: an engine with its store, and options. Out: a conversation without due compaction. The loop
//! is that of every host: plan, complete, apply, until no request and no sweep is left.
//! [`crate::vector_runner::drive`] has the loop for hosts with JSON calls.

use lcm_core::Engine;
use lcm_text::types::{
    api::{ApplyOptions, ApplyOutcome, CompactionOptions, PlanStatus, Timestamp},
    model::{Completion, CompletionRequest, CompletionResult},
};

use crate::ModelStore;

/// A completion that was applied.
#[derive(Debug)]
pub struct Applied<'a> {
    /// The request.
    pub request: &'a CompletionRequest,
    /// The answer of the offline summariser.
    pub answer: &'a Completion,
    /// The outcome of `apply`.
    pub outcome: &'a ApplyOutcome,
}

/// Compacts until nothing is due, and calls `each` with every applied completion.
///
/// # Panics
///
/// A call of the engine fails.
pub fn compact(
    (engine, store): (&mut Engine, &mut ModelStore),
    (conversation, budget): (&str, u32),
    mut options: CompactionOptions,
    now: Timestamp,
    each: &mut dyn FnMut(&Applied<'_>),
) {
    loop {
        store.begin_call();
        let plan = engine.plan(store, conversation, budget, &options, now).unwrap();
        for request in plan.requests {
            let mut next = Some(request);
            while let Some(request) = next {
                let answer = engine.complete_offline(&request);
                let done = CompletionResult::Done(answer.clone());
                let settled = ApplyOptions::default();
                store.begin_call();
                let outcome =
                    engine.apply(store, conversation, &request.id, &done, &settled, now).unwrap();
                each(&Applied { request: &request, answer: &answer, outcome: &outcome });
                next = outcome.next;
            }
        }
        if plan.status != PlanStatus::NeedsCompletions && plan.sweep.is_empty() {
            return;
        }
        options.sweep = Some(plan.sweep);
    }
}
