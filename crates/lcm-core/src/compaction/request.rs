//! From a task and its gathered sources to the completion request that is handed out.

use alloc::string::String;

use crate::{
    config::Config,
    model::{CompletionRequest, Level},
    num,
    prompts::{self, PromptInput},
    tokens,
};

use super::{
    sources::{self, Gathered},
    task::Task,
};

/// Room for a model that thinks before it writes, in tokens (behaviour reference, 4.11).
const THINKING_TOKENS: u32 = 2_048;
/// Temperatures in thousandths (behaviour reference, section 0).
const TEMPERATURE_NORMAL: u32 = 200;
const TEMPERATURE_AGGRESSIVE: u32 = 100;

/// The request of a task.
pub(crate) fn build(
    config: &Config,
    task: &Task,
    gathered: &Gathered,
    previous: Option<&str>,
    findings: &str,
) -> CompletionRequest {
    let boundary: String = sources::boundary(&task.sources);
    let prompt = prompts::build(&PromptInput {
        purpose: task.purpose(),
        depth: task.depth,
        level: task.level,
        tokens_target: task.tokens_target,
        task: task.wording().own(&config.prompt_overrides),
        source: &gathered.text,
        source_tokens: num::tokens_u32(gathered.tokens),
        previous,
        instructions: &config.custom_instructions,
        findings: (!findings.is_empty()).then_some(findings),
        boundary: &boundary,
    });
    CompletionRequest {
        id: task.token(),
        purpose: task.purpose(),
        level: task.level,
        input_tokens: tokens::estimate(&prompt.system)
            .saturating_add(tokens::estimate(&prompt.prompt)),
        system: prompt.system,
        prompt: prompt.prompt,
        output_tokens_max: task.tokens_target.saturating_add(if config.enable_summary_thinking {
            THINKING_TOKENS
        } else {
            0
        }),
        temperature_permille: match task.level {
            Level::Normal => TEMPERATURE_NORMAL,
            Level::Aggressive | Level::Fallback => TEMPERATURE_AGGRESSIVE,
        },
        model: config.summary_model.clone(),
    }
}
