//! The completion request of a task.
//!
//! In: a task, its gathered sources, the text before the sources, and findings. Out: the request
//! for a model. `plan`, `apply` and `run` use this module.

use lcm_text::{
    base::{int, tokens},
    config::Config,
    summary::{
        prompts::{self, PromptInput},
        transcript,
    },
    types::model::CompletionRequest,
};

use super::{source_text::GatheredSources, task::SummaryTask};

/// Output tokens that each attempt after the first gets more than the one before, for models that
/// reason before they answer. An attempt that follows findings of the verifier gets none of them:
/// the length of the last answer was right.
const ROOM_TOKENS: u32 = 4_096;

/// Builds the request of a task. `previous`: text before the sources; `findings`: the verifier's
/// findings in the last answer to the same sources, one per line; empty: no findings.
pub(crate) fn build_request(
    config: &Config,
    task: &SummaryTask,
    gathered: &GatheredSources,
    previous: Option<&str>,
    findings: &str,
) -> CompletionRequest {
    // A request with less of the sources needs no more room: the last one was too long, not the
    // answer.
    let more_room = match findings {
        "" if task.shown_tokens_max == 0 => {
            ROOM_TOKENS.saturating_mul(task.attempt.saturating_sub(1))
        }
        _ => 0,
    };
    let shown = match task.shown_tokens_max {
        0 => None,
        most => Some(transcript::shorten_transcript(&gathered.text, most)),
    };
    let prompt = prompts::build(&PromptInput {
        purpose: task.completion_purpose(),
        depth: task.depth,
        level: task.level,
        tokens_target: task.tokens_target,
        task: task.prompt_template().override_text(&config.prompt_overrides),
        source: shown.as_deref().unwrap_or(&gathered.text),
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
        output_tokens_max: task
            .tokens_target
            .saturating_add(config.thinking_tokens())
            .saturating_add(more_room),
        temperature_permille: task.level.temperature_permille(),
        model: config.summary_model.clone(),
    }
}
