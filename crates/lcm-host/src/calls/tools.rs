//! Methods for the interface `tools`: tool definitions for an agent, and answers to its tool calls.

use serde_json::json;

use super::results;
use crate::{
    context::{ToolOutcome, ToolScope},
    error::Result,
    lcm::Lcm,
    record::dialect_name,
    tools::ToolCall,
    types::{CompletionResult, Dialect},
};

/// Returns the name of a scope in vectors and options.
const fn scope_name(scope: ToolScope) -> &'static str {
    match scope {
        ToolScope::Conversation => "conversation",
        ToolScope::Store => "store",
    }
}

#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Returns the tool definitions, as JSON in the format of `dialect`. `grant` and `scope` are
    /// those of the calls. A sub-agent with a grant also has `lcm_expand`. Only tools of the scope
    /// `Store` have arguments that name other conversations.
    pub fn tool_definitions(
        &self,
        dialect: Dialect,
        grant: Option<&str>,
        scope: ToolScope,
    ) -> Result<String> {
        self.call(
            "tools.definitions",
            || json!({"dialect": dialect_name(dialect), "grant": grant, "scope": scope_name(scope)}),
            |bindings, store| {
                let tools = bindings.lcm_engine_tools();
                tools.call_definitions(store, dialect, grant, Some(scope)).map(Ok)
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

    /// Answers a tool call, or returns the requests that a model must complete first.
    pub fn tool_call(
        &self,
        conversation: &str,
        call: &ToolCall<'_>,
        now: u64,
    ) -> Result<ToolOutcome> {
        let ToolCall { name, arguments_json, grant, scope } = *call;
        self.call(
            "tools.call",
            || {
                json!({"conversation": conversation, "name": name,
                    "arguments_json": arguments_json, "grant": grant, "scope": scope_name(scope),
                    "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_tools().call_call(
                    store,
                    conversation,
                    name,
                    arguments_json,
                    grant,
                    Some(scope),
                    now,
                )
            },
        )
    }

    /// Continues a tool call with the model's answers, one for each request, in order. `scope` is
    /// that of the call.
    pub fn tool_resume(
        &self,
        conversation: &str,
        continuation: &str,
        answers: &[CompletionResult],
        scope: ToolScope,
        now: u64,
    ) -> Result<ToolOutcome> {
        self.call(
            "tools.resume",
            || {
                json!({"conversation": conversation, "continuation": continuation,
                    "answers": results(answers), "scope": scope_name(scope), "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_tools().call_resume(
                    store,
                    conversation,
                    continuation,
                    answers,
                    Some(scope),
                    now,
                )
            },
        )
    }
}
