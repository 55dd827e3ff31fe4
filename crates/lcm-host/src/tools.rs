//! Answers a tool call: call, complete, resume, until the call ends.
//!
//! In: a tool call of an agent, and the model of the handle. Out: text for the agent. The component
//! decides what to read and what to ask the model.

use std::time::Duration;

use crate::{
    bindings::types::CompletionResult,
    clock::{Cancel, Clock},
    context::{Answer, ToolOutcome},
    error::Result,
    lcm::Lcm,
};

impl Lcm {
    /// Answers a call of a tool whose name starts with `lcm_`. Other calls run while the model
    /// works. `grant` is the id of the grant grant of a sub-agent; `None`: the agent itself.
    ///
    /// Mistakes of the caller and failures of the model are also answers.
    ///
    /// # Errors
    ///
    /// - `cancelled`: the question of the call ended without an answer.
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
            // A stopped call also reports its answers; otherwise the question would stay open.
            outcome =
                self.tool_resume(conversation, &needs.continuation, &answers, clock.now_ms())?;
            cancel.check()?;
        }
    }
}
