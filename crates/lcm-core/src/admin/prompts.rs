//! The prompts of summaries, as this configuration has them.
//!
//! In: a configuration. Out: each prompt with its text, version and size, as JSON. What belongs to
//! one task (material, what stands before it) is a word in brackets, and the lengths are those of
//! a full chunk in a wide context. Changing them is deliberately not here: a configuration belongs
//! to its caller.

use crate::compaction;
use lcm_text::{
    base::{error::Result, json::JsonWriter, tokens},
    config::Config,
    summary::prompts::{self, PromptInput, PromptTemplate},
    types::model::{Level, Purpose},
};

/// A budget in which every length has its greatest default.
const BUDGET_WIDE: u32 = 1_000_000;

/// All prompts.
pub(super) fn list_prompts(config: &Config) -> Result<JsonWriter> {
    let mut list = JsonWriter::new_array();
    for wording in PromptTemplate::ALL {
        list.push_object(describe_prompt(config, wording)?);
    }
    let mut answer = JsonWriter::new_object();
    answer.add_flag("changed", false);
    answer.add_array("prompts", list);
    Ok(answer)
}

fn describe_prompt(config: &Config, wording: PromptTemplate) -> Result<JsonWriter> {
    let own = wording.override_text(&config.prompt_overrides);
    let (purpose, depth, level) = wording.example_request();
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
        task: own,
        source: "[material]",
        source_tokens,
        previous: compaction::has_previous_context(depth).then_some("[what stands before it]"),
        instructions: &config.custom_instructions,
        findings: None,
        boundary: "0000000000000000",
    });
    let size = tokens::estimate(&sent.system).saturating_add(tokens::estimate(&sent.prompt));
    let mut row = JsonWriter::new_object();
    row.add_text("built_in", wording.built_in_text());
    row.add_text("name", wording.as_str());
    row.add_flag("overridden", own.is_some());
    row.add_text("prompt", &sent.prompt);
    row.add_text("system", &sent.system);
    row.add_text("text", own.unwrap_or(wording.built_in_text()));
    row.add_number("tokens", size.into());
    row.add_number("version", wording.version(&config.prompt_overrides).into());
    Ok(row)
}
