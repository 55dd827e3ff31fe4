//! The completions of a task: the requests of its last plan, and the answers of the model.
//!
//! In: results of the component, and ranges of requests to complete. Out: the states of the answers
//! for the component, and the members of the call that applies an answer.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    clock::Cancel,
    drive::TaskRange,
    error::{Error, Result},
    record::completion_result,
    types::{CompletionRequest, CompletionResult},
};

use super::{CompletionProvider, complete_all, requests::read_requests, stands_in};

/// Requests and answers of one task.
#[derive(Default)]
pub(crate) struct CompletionExchange {
    requests: Vec<CompletionRequest>,
    /// Answers by the place of their request.
    answers: BTreeMap<usize, Value>,
}

impl CompletionExchange {
    /// Keeps the requests that a result has. `requests` replaces all. `next` replaces the request
    /// at `place`, whose answer was refused; `None`: the call applied no answer, and `next` is left
    /// out.
    ///
    /// # Errors
    ///
    /// `internal`: a request has another shape.
    pub(crate) fn take_requests(&mut self, result: &Value, place: Option<usize>) -> Result<()> {
        if let Some(requests) = result.get("requests") {
            self.requests = read_requests(requests)?;
        }
        if let Some(next) = result.get("next").filter(|next| !next.is_null()) {
            let place = place.and_then(|place| self.requests.get_mut(place));
            place.into_iter().zip(read_requests(&json!([next]))?).for_each(|(at, new)| *at = new);
        }
        Ok(())
    }

    /// Adds `request_id` of the request at `place` to the arguments of a call, and `answer` unless
    /// they have one. Either is null if no plan returned the request, or the model did not complete
    /// it.
    pub(crate) fn add_answer(&self, place: usize, arguments: &mut Map<String, Value>) {
        let id = self.requests.get(place).map(|request| &request.id);
        arguments.insert("request_id".to_owned(), json!(id));
        arguments.entry("answer").or_insert(json!(self.answers.get(&place)));
    }

    /// Lets the model complete a range of the requests, all at the same time. Returns the state of
    /// each answer: the component needs no text to decide what to apply.
    ///
    /// # Errors
    ///
    /// `internal`: no plan returned these requests.
    pub(crate) fn complete_requests(
        &mut self,
        model: &dyn CompletionProvider,
        range: TaskRange,
        cancel: &Cancel,
    ) -> Result<Vec<Value>> {
        let first = range.index_first;
        let missing = || Error::internal("`drive.step` names requests that no plan returned");
        let requests = self.requests.get(first..first.saturating_add(range.count));
        let requests = requests.ok_or_else(missing)?;
        let answers = complete_all(model, requests, cancel);
        let state_of = |(request, answer): (&CompletionRequest, &CompletionResult)| match answer {
            CompletionResult::Done(done) => {
                json!({"done": true, "stand_in": stands_in(model, request, done)})
            }
            CompletionResult::Failed(_) => completion_result(answer),
        };
        let states = requests.iter().zip(&answers).map(state_of).collect();
        self.answers.extend((first..).zip(answers.iter().map(completion_result)));
        Ok(states)
    }
}
