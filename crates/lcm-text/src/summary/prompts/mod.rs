//! Builds the prompts for summaries, which have a version, and parses such prompts.
//!
//! Input: the source text and the options of a summary. Output: a system text and a user text.
//! Callers choose the source and the length, and handle the answer.

mod markers;
mod prompt_text;
mod templates;

pub use self::{
    markers::PROMPT_VERSION,
    prompt_text::{
        Prompt, PromptInput, SYSTEM_TEXT, build, find_fenced, parse_material, push_fenced,
        split_instruction,
    },
    templates::{OVERRIDE_BYTES_MAX, PromptTemplate},
};
pub(crate) use self::{prompt_text::parse_source_tokens, templates::parse_overrides};

#[cfg(test)]
mod tests;
