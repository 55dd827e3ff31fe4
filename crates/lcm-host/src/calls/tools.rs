//! Methods for the interface `tools`: tool definitions for an agent, and answers to its tool calls.

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
    /// Returns the tool definitions as JSON, in the format of the provider of `dialect`. With the
    /// `grant` of a sub-agent, `lcm_expand` replaces `lcm_expand_query` and `lcm_budget`.
    pub fn tool_definitions(&self, dialect: Dialect, grant: Option<&str>) -> Result<String> {
        self.call(
            "tools.definitions",
            || json!({"dialect": dialect_name(dialect), "grant": grant}),
            |bindings, store| {
                bindings.lcm_engine_tools().call_definitions(store, dialect, grant).map(Ok)
            },
        )
    }

    /// Returns the text for the system prompt that explains when to use the tools. With
    /// `has_summaries` the text also explains the summaries in contexts.
    pub fn tool_instructions(&self, dialect: Dialect, has_summaries: bool) -> Result<String> {
        self.call(
            "tools.instructions",
            || json!({"dialect": dialect_name(dialect), "has_summaries": has_summaries}),
            |bindings, store| {
                bindings.lcm_engine_tools().call_instructions(store, dialect, has_summaries).map(Ok)
            },
        )
    }

    /// Answers a tool call, or returns the completion requests that the answer needs. `grant` is
    /// the id of a sub-agent's grant; `None`: the main agent calls.
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

    /// Continues a tool call with the model's answers, one for each request, in order.
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
