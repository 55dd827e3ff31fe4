//! Answers a tool call of an agent: asks the handle's model as often as the component requests.
//!
//! In: the name and arguments of a tool call. Out: the text for the agent. The component decides
//! what to read and what to ask the model.

use std::time::Duration;

use crate::{
    bindings::types::CompletionResult,
    clock::{Cancel, Clock},
    context::{Answer, ToolOutcome},
    error::Result,
    lcm::Lcm,
};

impl Lcm {
    /// Answers a call of a tool whose name starts with `lcm_`. Other calls of the handle run while
    /// the model works. `grant` is the id of a sub-agent's grant; `None`: the main agent calls.
    ///
    /// A mistake in the call or a failure of the model also gives an answer, not an error.
    ///
    /// # Errors
    ///
    /// - `cancelled`: the caller stopped the call.
    /// - errors of the component.
    pub fn answer_tool_call(
        &self,
        conversation: &str,
        name: &str,
        arguments_json: &str,
        grant: Option<&str>,
        clock: Clock,
        cancel: &Cancel,
    ) -> Result<Answer> {
        cancel.check()?;
        let now = clock.now_ms();
        let mut outcome = self.tool_call(conversation, name, arguments_json, grant, now)?;
        loop {
            let needs = match outcome {
                ToolOutcome::Done(answer) => return Ok(answer),
                ToolOutcome::NeedsCompletions(needs) => needs,
            };
            let wait = Duration::from_millis(needs.deadline_ms);
            let complete = |request| self.complete_within(wait, request, cancel);
            let answers: Vec<CompletionResult> = needs.requests.iter().map(complete).collect();
            // A stopped call also passes its answers on; otherwise the question would stay open
            // until its deadline and block other questions.
            outcome =
                self.tool_resume(conversation, &needs.continuation, &answers, clock.now_ms())?;
            cancel.check()?;
        }
    }
}
