//! The command `prompts`: lists the summary prompts of a configuration.
//!
//! In: a configuration. Out: each prompt with its text, version and size, as JSON. Words in
//! brackets replace the sources and the previous context. Token targets are those for a chunk of
//! the maximum size, with a budget of 1,000,000 tokens. No command changes a prompt: the host
//! configures prompts.

use crate::compaction;
use lcm_text::{
    base::{error::Result, json::JsonWriter, tokens},
    config::Config,
    summary::prompts::{self, PromptInput, PromptTemplate},
    types::model::{Level, Purpose},
};

/// Budget in tokens, so great that derived token targets reach their greatest defaults.
const BUDGET_WIDE: u32 = 1_000_000;

/// Lists all summary prompts as JSON.
pub(super) fn list_prompts(config: &Config) -> Result<JsonWriter> {
    let mut list = JsonWriter::new_array();
    for template in PromptTemplate::ALL {
        list.push_object(describe_prompt(config, template)?);
    }
    let mut answer = JsonWriter::new_object();
    answer.add_flag("changed", false);
    answer.add_array("prompts", list);
    Ok(answer)
}

fn describe_prompt(config: &Config, template: PromptTemplate) -> Result<JsonWriter> {
    let override_text = template.override_text(&config.prompt_overrides);
    let (purpose, depth, level) = template.example_request();
    let policy = config.derive_policy(BUDGET_WIDE)?;
    let source_tokens = policy.leaf_chunk_tokens_max;
    let sent = prompts::build(&PromptInput {
        purpose,
        depth,
        level,
        tokens_target: match purpose {
            Purpose::Leaf => policy.leaf_target(source_tokens, level),
            _ => policy.condensed_target(source_tokens, Level::Normal),
        },
        task: override_text,
        source: "[material]",
        source_tokens,
        previous: compaction::has_previous_context(depth).then_some("[what stands before it]"),
        instructions: &config.custom_instructions,
        findings: None,
    });
    let size = tokens::estimate(&sent.system).saturating_add(tokens::estimate(&sent.prompt));
    let mut row = JsonWriter::new_object();
    row.add_text("built_in", template.built_in_text());
    row.add_text("name", template.as_str());
    row.add_flag("overridden", override_text.is_some());
    row.add_text("prompt", &sent.prompt);
    row.add_text("system", &sent.system);
    row.add_text("text", override_text.unwrap_or(template.built_in_text()));
    row.add_number("tokens", size.into());
    row.add_number("version", template.version(&config.prompt_overrides).into());
    Ok(row)
}
