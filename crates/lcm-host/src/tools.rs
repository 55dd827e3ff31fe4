//! Answers a tool call of an agent: asks the handle's model as often as the component requests.
//!
//! In: the name and arguments of a tool call. Out: the text for the agent. The component decides
//! what to read and what to ask the model.

use std::time::Duration;

use crate::{
    bindings::types::CompletionResult,
    clock::{Cancel, Clock},
    context::{Answer, ToolOutcome, ToolScope},
    error::Result,
    events,
    lcm::Lcm,
};

/// A call of a tool by the model of an agent.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Arguments as the model wrote them.
    pub arguments_json: &'a str,
    /// Id of the grant of a sub-agent; `None`: the agent itself.
    pub grant: Option<&'a str>,
    /// The conversations that the tool may read. Your program chooses; the model cannot.
    pub scope: ToolScope,
}

impl<'a> ToolCall<'a> {
    /// Creates a call of the agent itself, which reads its conversation and the family.
    #[must_use]
    pub const fn new(name: &'a str, arguments_json: &'a str) -> Self {
        Self { name, arguments_json, grant: None, scope: ToolScope::Conversation }
    }
}

impl Lcm {
    /// Answers a call of a tool whose name starts with `lcm_`. Other calls run while the model
    /// works.
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
        call: &ToolCall<'_>,
        clock: Clock,
        cancel: &Cancel,
    ) -> Result<Answer> {
        cancel.check()?;
        let _span = events::enter_span("tool", conversation);
        let now = clock.now_ms();
        let mut outcome = self.tool_call(conversation, call, now)?;
        loop {
            let needs = match outcome {
                ToolOutcome::Done(answer) => return Ok(answer),
                ToolOutcome::NeedsCompletions(needs) => needs,
            };
            let wait = Duration::from_millis(needs.deadline_ms);
            let complete = |request| self.complete_within(wait, request, cancel);
            let answers: Vec<CompletionResult> = needs.requests.iter().map(complete).collect();
            // A stopped call also reports its answers; otherwise the question would stay open.
            let now = clock.now_ms();
            outcome =
                self.tool_resume(conversation, &needs.continuation, &answers, call.scope, now)?;
            cancel.check()?;
        }
    }
}
