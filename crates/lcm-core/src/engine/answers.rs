//! The functions of the interface that depend on a request and an answer alone.
//!
//! In: a completion request, and the answer of a model. Out: an answer without a model, or the
//! reason to ask another model. Nothing is read or written.

use crate::{ask, compaction, storage::summary::OFFLINE_MODEL};
use lcm_text::{
    base::tokens,
    summary::offline_summary,
    types::model::{Completion, CompletionRequest, Finish, Purpose},
};

use super::Engine;

impl Engine {
    /// Completes a request without a model, from text of its prompt. The result depends only on the
    /// request.
    #[must_use]
    pub fn complete_offline(&self, request: &CompletionRequest) -> Completion {
        let text = match request.purpose {
            Purpose::Ask => ask::answer_offline(&request.prompt),
            _ => offline_summary::answer_offline_prompt(&request.prompt),
        };
        Completion {
            output_tokens: tokens::estimate(&text),
            text,
            finish: Finish::Stop,
            model: OFFLINE_MODEL.into(),
            input_tokens: request.input_tokens,
        }
    }

    /// Returns why another model should be asked for a request, `blank` or `cut-off`; `None`: the
    /// answer is worth applying.
    #[must_use]
    pub fn judge_answer(
        &self,
        request: &CompletionRequest,
        answer: &Completion,
    ) -> Option<&'static str> {
        compaction::find_answer_fault(request, answer)
    }
}
