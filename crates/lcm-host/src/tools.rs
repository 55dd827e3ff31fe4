//! Answers a call of a tool: call, complete, resume, until it has ended.
//!
//! In: what an agent's model wants to know, and the model of the handle. Out: text for the agent.
//! What is read and what is asked of the model is the component's decision.

use std::time::Duration;

use crate::{
    bindings::types::CompletionResult,
    clock::{Cancel, Clock},
    context::{Answer, ToolOutcome},
    error::Result,
    lcm::Lcm,
};

impl Lcm {
    /// Answers a call of a tool whose name begins with `lcm_`. Other calls run while the model
    /// thinks. `grant` is a grant for a sub-agent, `None` for the agent.
    ///
    /// Mistakes of the caller and failures of the model are answers, too.
    ///
    /// # Errors
    ///
    /// - `cancelled`: the question behind the call has ended without an answer.
    /// - what the component answers.
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
            // Also when the work was stopped: else the question would stay open.
            outcome =
                self.tool_resume(conversation, &needs.continuation, &answers, clock.now_ms())?;
            cancel.check()?;
        }
    }
}
