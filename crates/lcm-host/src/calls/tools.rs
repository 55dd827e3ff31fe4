//! `tools`: tool definitions for an agent, and answers to its calls.

use serde_json::json;

use super::results;
use crate::{
    context::ToolOutcome,
    error::Result,
    lcm::Lcm,
    record::dialect_name,
    types::{CompletionResult, Dialect},
};

#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Returns the tool definitions, as JSON in the format of `dialect`. `grant` is as in
    /// [`Lcm::tool_call`]: a sub-agent with a grant also has `lcm_expand`.
    pub fn tool_definitions(&self, dialect: Dialect, grant: Option<&str>) -> Result<String> {
        self.call(
            "tools.definitions",
            || json!({"dialect": dialect_name(dialect), "grant": grant}),
            |bindings, store| {
                bindings.lcm_engine_tools().call_definitions(store, dialect, grant).map(Ok)
            },
        )
    }

    /// Returns the instructions for an agent with these tools.
    pub fn tool_instructions(&self, dialect: Dialect, has_summaries: bool) -> Result<String> {
        self.call(
            "tools.instructions",
            || json!({"dialect": dialect_name(dialect), "has_summaries": has_summaries}),
            |bindings, store| {
                bindings.lcm_engine_tools().call_instructions(store, dialect, has_summaries).map(Ok)
            },
        )
    }

    /// Answers a tool call. `grant` is the grant of a sub-agent; `None`: the agent itself.
    pub fn tool_call(
        &self,
        conversation: &str,
        name: &str,
        arguments_json: &str,
        grant: Option<&str>,
        now: u64,
    ) -> Result<ToolOutcome> {
        self.call(
            "tools.call",
            || {
                json!({"conversation": conversation, "name": name,
                    "arguments_json": arguments_json, "grant": grant, "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_tools().call_call(
                    store,
                    conversation,
                    name,
                    arguments_json,
                    grant,
                    now,
                )
            },
        )
    }

    /// Continues a tool call with the model's answers.
    pub fn tool_resume(
        &self,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        now: u64,
    ) -> Result<ToolOutcome> {
        self.call(
            "tools.resume",
            || {
                json!({"conversation": conversation, "continuation": continuation,
                    "answers": results(answers), "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_tools().call_resume(
                    store,
                    conversation,
                    continuation,
                    answers,
                    now,
                )
            },
        )
    }
}
