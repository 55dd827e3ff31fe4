//! The prompts of summaries, as this configuration has them.
//!
//! In: a configuration. Out: each prompt with its text, version and size, as JSON. What belongs to
//! one task (material, what stands before it) is a word in brackets, and the lengths are those of
//! a full chunk in a wide context. Changing them is deliberately not here: a configuration belongs
//! to its caller.

use crate::compaction;
use lcm_text::{
    base::{error::Result, json::Writer, tokens},
    config::Config,
    summary::prompts::{self, PromptInput, Wording},
    types::model::{Level, Purpose},
};

/// A budget in which every length has its greatest default.
const BUDGET_WIDE: u32 = 1_000_000;

/// All prompts.
pub(super) fn prompts(config: &Config) -> Result<Writer> {
    let mut list = Writer::array();
    for wording in Wording::ALL {
        list.push_object(prompt(config, wording)?);
    }
    let mut answer = Writer::object();
    answer.flag("changed", false);
    answer.array_at("prompts", list);
    Ok(answer)
}

fn prompt(config: &Config, wording: Wording) -> Result<Writer> {
    let own = wording.own(&config.prompt_overrides);
    let (purpose, depth, level) = wording.example();
    let aggressive = level == Level::Aggressive;
    let policy = config.policy(BUDGET_WIDE)?;
    let source_tokens = policy.leaf_chunk_tokens_max;
    let sent = prompts::build(&PromptInput {
        purpose,
        depth,
        level,
        tokens_target: match purpose {
            Purpose::Leaf => policy.leaf_target(source_tokens, aggressive),
            _ => policy.condensed_target(source_tokens, false),
        },
        task: own,
        source: "[material]",
        source_tokens,
        previous: compaction::is_told_of_before(depth).then_some("[what stands before it]"),
        instructions: &config.custom_instructions,
        findings: None,
        boundary: "0000000000000000",
    });
    let size = tokens::estimate(&sent.system).saturating_add(tokens::estimate(&sent.prompt));
    let mut row = Writer::object();
    row.text("built_in", wording.built_in());
    row.text("name", wording.as_str());
    row.flag("overridden", own.is_some());
    row.text("prompt", &sent.prompt);
    row.text("system", &sent.system);
    row.text("text", own.unwrap_or(wording.built_in()));
    row.number("tokens", size.into());
    row.number("version", wording.version(&config.prompt_overrides).into());
    Ok(row)
}
