//! Methods for the interface `context`: assembly, and validation of messages for a provider.

use serde_json::json;

use crate::{
    context::{self, Assembled},
    error::Result,
    lcm::Lcm,
    record::{assemble_options, dialect_name},
    types::Dialect,
};

impl Default for context::Options {
    /// Returns options without live messages, with the configured policy.
    fn default() -> Self {
        Self {
            policy: None,
            prompt: None,
            reserve_tokens: 0,
            live_messages: Vec::new(),
            previous: None,
            explain: false,
            extra_json: None,
        }
    }
}

#[expect(clippy::missing_errors_doc, reason = "the module says it once for all methods")]
impl Lcm {
    /// Assembles a context in `dialect`. Only the protected part (fresh tail, pinned message, focus
    /// brief, live messages) can exceed `budget` tokens.
    pub fn assemble(
        &self,
        conversation: &str,
        budget: u32,
        dialect: Dialect,
        options: &context::Options,
        now: u64,
    ) -> Result<Assembled> {
        self.call(
            "context.assemble",
            || {
                json!({"conversation": conversation, "budget": budget,
                    "dialect": dialect_name(dialect), "options": assemble_options(options),
                    "now": now})
            },
            |bindings, store| {
                bindings.lcm_engine_context().call_assemble(
                    store,
                    conversation,
                    budget,
                    dialect,
                    options,
                    now,
                )
            },
        )
    }

    /// Returns a JSON list of the reasons for which the provider of `dialect` would refuse these
    /// messages; an empty list: no reason.
    pub fn validate(&self, dialect: Dialect, messages_json: &str) -> Result<String> {
        self.call(
            "context.validate",
            || json!({"dialect": dialect_name(dialect), "messages_json": messages_json}),
            |bindings, store| {
                bindings.lcm_engine_context().call_validate(store, dialect, messages_json)
            },
        )
    }
}
