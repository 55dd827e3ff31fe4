//! Summaries without a model: deterministic, extractive, in integers only.
//!
//! In: source text as [`crate::summary::transcript`] renders it, and a limit in tokens. Out: a text within the
//! limit of which every part is a piece of one source line. Pieces are chosen so that they cover
//! the terms a reader could ask for by name, rare ones first, with reserves for what the user asked
//! for, for errors and for outcomes. Deciding which text needs a summary is deliberately not here.

mod analysis;
pub(crate) mod cues;
mod fallback;
mod render;
mod segmentation;
mod selection;
pub mod term_scanner;
pub mod terms;
mod transcript_parser;

use alloc::string::String;

pub use self::fallback::{build_fallback, cap_summary};
use self::{
    analysis::{Excerpt, SourceAnalysis},
    segmentation::quarter_tokens_u32,
    selection::Selection,
    transcript_parser::Speaker,
};
use crate::{base::tokens, summary::prompts};

/// Tokens from which a summary ends with the line that names what was left out.
const FOOTER_LIMIT_MIN: u32 = 32;
/// Share of the limit for that line, and its bounds in quarter tokens.
const FOOTER_PERCENT: u32 = 10;
const FOOTER_MIN: u32 = 52;
const FOOTER_MAX: u32 = 480;

/// A summary of `source` of at most `tokens_max` tokens.
///
/// A message is introduced by `[HH:MM role] ` (with the date where it changes, when the source has
/// several), pieces of one line that are not neighbours are separated by ` ... `, and the last line
/// is `Expand for details about: ` and names that were left out; below 32 tokens there is none.
/// Empty when the source is blank or not even a word of it fits.
#[must_use]
pub fn summarize_extractively(source: &str, tokens_max: u32) -> String {
    let budget = tokens_max.saturating_mul(4);
    let mut parsed = transcript_parser::parse_transcript(source);
    let leads = core::mem::take(&mut parsed.earlier_leads);
    let last_resort = parsed.last_resort;
    if last_resort.is_empty() || budget == 0 {
        return String::new();
    }
    let footer = if tokens_max < FOOTER_LIMIT_MIN {
        0
    } else {
        (budget / 100).saturating_mul(FOOTER_PERCENT).clamp(FOOTER_MIN, FOOTER_MAX)
    };
    let material = SourceAnalysis::new(parsed);
    let mut selection = Selection::new(&material, budget.saturating_sub(footer));
    if footer > 0 {
        let needed = render::estimate_footer_size(&material, &selection, &leads, footer);
        selection.extend_to_budget(budget.saturating_sub(needed));
    }
    let mut out = render::render_body(&material, &selection);
    if out.is_empty() {
        // No piece fits as a whole.
        let said = |piece: &&Excerpt<'_>| piece.speaker == Speaker::User;
        let pieces = &material.excerpts;
        let piece = pieces.iter().find(said).or_else(|| pieces.first());
        let text = piece.map_or(last_resort, |piece| piece.text);
        out.push_str(truncate_at_word(text, budget.saturating_sub(footer) / 4));
        if out.is_empty() {
            return out;
        }
        out.push('\n');
    }
    if footer > 0 {
        let room = budget.saturating_sub(quarter_tokens_u32(&out));
        render::append_footer(&mut out, &material, &selection, &leads, room);
    }
    out.truncate(out.trim_end().len());
    out
}

/// The answer of the offline summariser to a prompt of [`prompts::build`]; empty for any other.
///
/// It is at most as long as the prompt asks for, and at most three quarters of what it replaces.
#[must_use]
pub fn answer_offline_prompt(prompt: &str) -> String {
    let Some((source, target)) = prompts::parse_material(prompt) else { return String::new() };
    let size = tokens::estimate(source);
    let size = prompts::parse_source_tokens(prompt).map_or(size, |stated| stated.min(size));
    summarize_extractively(source, target.min(size - size / 4))
}

/// The beginning of `text` of at most so many tokens, ending with a whole word if there is one.
fn truncate_at_word(text: &str, tokens_max: u32) -> &str {
    let cut = tokens::truncate_to_tokens(text, tokens_max);
    let rest = text.get(cut.len()..).unwrap_or("");
    if rest.is_empty() || rest.starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    let whole = cut.rsplit_once(char::is_whitespace).map_or("", |(words, _)| words).trim_end();
    // A text without spaces has no words to keep whole.
    if whole.len() * 2 < cut.len() { cut } else { whole }
}

#[cfg(test)]
mod tests;
