//! Makes an extractive summary: parses and analyses a source, selects excerpts and renders them.
//!
//! Input: a source and a limit in tokens. Output: the summary.

use alloc::string::String;

use super::{
    analysis::{Excerpt, MARK_QUARTERS, SourceAnalysis, is_frame},
    render,
    segmentation::quarter_tokens_u32,
    selection::Selection,
    transcript_parser::{self, Speaker},
};
use crate::{
    base::tokens,
    summary::transcript::{self, LineKind},
};

/// Least token limit of a summary that ends with the footer, the line of omitted details.
const FOOTER_LIMIT_MIN: u32 = 32;
/// Percentage of the limit that is reserved for the footer.
const FOOTER_PERCENT: u32 = 10;
/// Least quarter tokens that are reserved for the footer.
const FOOTER_MIN: u32 = 52;
/// Most quarter tokens that are reserved for the footer.
const FOOTER_MAX: u32 = 480;

/// Summarises `source` in at most `tokens_max` tokens.
///
/// - A message begins with `[HH:MM role] `. If the source has several dates, the date is added
///   where the date changes.
/// - ` ... ` separates pieces of one line between which text was left out.
/// - With a limit of at least 32 tokens, the last line is `Expand for details about: ` and names of
///   omitted details.
///
/// Empty if the source has no text, or if `tokens_max` is too small for any text.
///
/// ```
/// use lcm_text::{base::tokens, summary::offline_summary::summarize_extractively};
///
/// let source = "[2026-01-02 03:04 user]\nPlease rename parse_config to read_config.";
/// let summary = summarize_extractively(source, 24);
/// assert!(summary.contains("parse_config"));
/// assert!(tokens::estimate(&summary) <= 24);
/// ```
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
        // No whole piece fits.
        let is_from_user = |piece: &&Excerpt<'_>| piece.speaker == Speaker::User;
        let pieces = &material.excerpts;
        let piece = pieces.iter().find(is_from_user).or_else(|| pieces.first());
        let text = piece.map_or(last_resort, |piece| piece.text);
        out.push_str(&truncate_framed(text, budget.saturating_sub(footer)));
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

/// Cuts the text of one line to at most `budget` quarter tokens, of the mark too if it needs one.
pub(super) fn truncate_framed(text: &str, budget: u32) -> String {
    let mark = if is_frame(text) { MARK_QUARTERS } else { 0 };
    let cut = truncate_at_word(text, budget.saturating_sub(mark) / 4);
    let mut out = String::new();
    if !cut.is_empty() {
        transcript::push_line(&mut out, cut, LineKind::Content);
    }
    out
}

/// Cuts `text` to at most `tokens_max` tokens, after a whole word unless this would lose more than
/// half of the cut text.
pub(super) fn truncate_at_word(text: &str, tokens_max: u32) -> &str {
    let cut = tokens::truncate_to_tokens(text, tokens_max);
    let rest = text.get(cut.len()..).unwrap_or("");
    if rest.is_empty() || rest.starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    let whole = cut.rsplit_once(char::is_whitespace).map_or("", |(words, _)| words).trim_end();
    // A text of few spaces is cut inside a word.
    if whole.len() * 2 < cut.len() { cut } else { whole }
}
