//! The completion request of a task.
//!
//! In: a task, its gathered sources, the text before the sources, and findings. Out: the request
//! for a model. `plan`, `apply` and `run` use this module.

use lcm_text::{
    base::{int, tokens},
    config::Config,
    summary::prompts::{self, PromptInput},
    types::model::CompletionRequest,
};

use super::{source_text::GatheredSources, task::SummaryTask};

/// Builds the request of a task. `previous`: text before the sources; `findings`: the verifier's
/// findings in the last answer to the same sources, one per line; empty: no findings.
pub(crate) fn build_request(
    config: &Config,
    task: &SummaryTask,
    gathered: &GatheredSources,
    previous: Option<&str>,
    findings: &str,
) -> CompletionRequest {
    let prompt = prompts::build(&PromptInput {
        purpose: task.completion_purpose(),
        depth: task.depth,
        level: task.level,
        tokens_target: task.tokens_target,
        task: task.prompt_template().override_text(&config.prompt_overrides),
        source: &gathered.text,
        source_tokens: int::saturate_tokens(gathered.tokens),
        previous,
        instructions: &config.custom_instructions,
        findings: (!findings.is_empty()).then_some(findings),
    });
    CompletionRequest {
        id: task.encode(),
        purpose: task.completion_purpose(),
        level: task.level,
        input_tokens: tokens::estimate(&prompt.system)
            .saturating_add(tokens::estimate(&prompt.prompt)),
        system: prompt.system,
        prompt: prompt.prompt,
        output_tokens_max: task.tokens_target.saturating_add(config.thinking_tokens()),
        temperature_permille: task.level.temperature_permille(),
        model: config.summary_model.clone(),
    }
}
