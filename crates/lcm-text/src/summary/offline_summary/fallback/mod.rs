//! Texts that need no model and no luck: the fallback of a summary, and the cut at the cap.

use alloc::{format, string::String};

use super::{segmentation::quarter_tokens_u32, summarize_extractively, truncate_at_word};
use crate::{
    base::tokens,
    summary::transcript::{DIRECTIVE_NOTE, EXPAND_PREFIX, parse_block_header},
};

mod directives;

/// Fewer tokens than this cannot be shortened by a text that says it is shortened.
const SOURCE_MIN: u32 = 24;

/// The text that stands for a source when no model's answer can: extracted, without sentences that
/// look like instructions to a model, ending with `[Truncated from N tokens]`.
///
/// `source_tokens` is what it would replace. It has at most `tokens_max` tokens and always fewer
/// than that, note included. Where a sentence was left out, the text begins with a note that says
/// so, unless the limit is too small for note and text. `None` when `source_tokens` is under 24,
/// or when the limit is too small for any text.
#[must_use]
pub fn build_fallback(source: &str, source_tokens: u32, tokens_max: u32) -> Option<String> {
    if source_tokens < SOURCE_MIN {
        return None;
    }
    let limit = tokens_max.min(source_tokens - 1);
    let marker = format!("\n[Truncated from {source_tokens} tokens]");
    let (clean, removed) = directives::remove_directives(source);
    let room = limit.checked_sub(quarter_tokens_u32(&marker).div_ceil(4))?;
    let note = format!("{DIRECTIVE_NOTE}\n");
    let note_tokens = quarter_tokens_u32(&note).div_ceil(4);
    let mut out = String::new();
    let mut text = String::new();
    if removed && note_tokens < room {
        text = extract_or_truncate(&clean, room - note_tokens);
        out.push_str(if text.is_empty() { "" } else { &note });
    }
    if text.is_empty() {
        text = extract_or_truncate(&clean, room);
    }
    if text.is_empty() {
        // Everything was directives: the note alone says what is true.
        text = truncate_at_word(DIRECTIVE_NOTE, room).into();
    }
    if text.is_empty() {
        return None;
    }
    out.push_str(&text);
    out.push_str(&marker);
    Some(out)
}

fn extract_or_truncate(source: &str, tokens_max: u32) -> String {
    let text = summarize_extractively(source, tokens_max);
    if !text.is_empty() {
        return text;
    }
    let first =
        source.lines().find(|line| !line.trim().is_empty() && parse_block_header(line).is_none());
    tokens::truncate_to_tokens(first.map_or("", str::trim), tokens_max).trim_end().into()
}

/// A text that is too long, cut to `tokens_max` tokens, its note `[Capped from N tokens to ~M]`
/// included. `tokens` is N, the size before; M is the limit.
///
/// The line that names what was left out is kept where it fits in a quarter of the limit. Under
/// tight limits the note is `[Capped to ~M]` or `[Capped]`, and under 4 tokens there is none. A
/// text within the limit is returned as it is.
#[must_use]
pub fn cap_summary(text: &str, tokens_max: u32, tokens: u32) -> String {
    let text = text.trim_end();
    if tokens::estimate(text) <= tokens_max {
        return text.into();
    }
    let budget = tokens_max.saturating_mul(4);
    let notes = [
        format!("\n[Capped from {tokens} tokens to ~{tokens_max}]"),
        format!("\n[Capped to ~{tokens_max}]"),
        String::from("\n[Capped]"),
    ];
    // A note may take a third of the limit, the shortest one all but the first letters.
    let fits = |note: &&String| quarter_tokens_u32(note) <= budget / 3;
    let shortest = || notes.last().filter(|note| quarter_tokens_u32(note) + 4 <= budget);
    let note = notes.iter().find(fits).or_else(shortest).map_or("", String::as_str);
    let room = budget.saturating_sub(quarter_tokens_u32(note));
    let (body, footer) = text
        .rsplit_once('\n')
        .filter(|(_, last)| {
            last.starts_with(EXPAND_PREFIX) && quarter_tokens_u32(last) < budget / 4
        })
        .unwrap_or((text, ""));
    let room =
        if footer.is_empty() { room } else { room.saturating_sub(quarter_tokens_u32(footer) + 1) };
    let mut out = String::from(truncate_at_word(body, room / 4));
    if !footer.is_empty() {
        out.push('\n');
        out.push_str(footer);
    }
    out.push_str(note);
    out
}
