//! The offline summariser: extractive summaries without a model, deterministic, in integers only.
//!
//! Input: source text as [`crate::summary::transcript`] renders it, and a limit in tokens. Output:
//! a text within the limit, of pieces that are quoted from source lines. Pieces are selected to
//! cover the terms that a reader could search for, rare terms first. Parts of the limit are
//! reserved for the user's requests, errors and outcomes.

mod analysis;
pub(crate) mod cues;
mod extract;
mod fallback;
mod render;
mod segmentation;
mod selection;
pub mod term_hash;
pub mod term_scanner;
pub mod terms;
mod transcript_parser;

use alloc::string::String;

pub use self::{
    extract::summarize_extractively,
    fallback::{build_fallback, cap_summary},
};
use crate::{base::tokens, summary::prompts};

/// Answers a prompt of [`prompts::build`] with the offline summariser; empty for any other prompt.
///
/// The answer has at most the requested length, and at most three quarters of the tokens of the
/// source.
#[must_use]
pub fn answer_offline_prompt(prompt: &str) -> String {
    let Some((source, target)) = prompts::parse_material(prompt) else { return String::new() };
    let size = tokens::estimate(source);
    let size = prompts::parse_source_tokens(prompt).map_or(size, |stated| stated.min(size));
    summarize_extractively(source, target.min(size - size / 4))
}

#[cfg(test)]
mod tests;
