//! Makes the text of a fallback summary, and cuts summaries at their token limit.
//!
//! Input: a source or a summary, and a limit in tokens. Output: a text within the limit, which
//! compaction commits.

use alloc::{format, string::String};

use super::{
    extract::{summarize_extractively, truncate_at_word, truncate_framed},
    segmentation::{next_line_quarters, quarter_tokens_u32},
};
use crate::{
    base::tokens,
    summary::transcript::{DIRECTIVE_NOTE, EXPAND_PREFIX, parse_block_header, split_lines},
};

mod directives;

/// Least tokens of the items to replace for which a fallback is made; the notes alone would be as
/// long as fewer items.
const SOURCE_MIN: u32 = 24;

/// Builds the fallback of a source: an extract without sentences that look like instructions,
/// ending with `[Truncated from N tokens]`.
///
/// `source_tokens` are the tokens of the items to replace. The result, its note included, has at
/// most `tokens_max` tokens and fewer than `source_tokens`. If a sentence was removed, the text
/// begins with a note about the removal, unless the limit is too small for note and text.
///
/// `None`: `source_tokens` is below 24, or the limit is too small for any text.
#[must_use]
pub fn build_fallback(source: &str, source_tokens: u32, tokens_max: u32) -> Option<String> {
    if source_tokens < SOURCE_MIN {
        return None;
    }
    let limit = tokens_max.min(source_tokens - 1);
    let marker = format!("[Truncated from {source_tokens} tokens]");
    let (clean, removed) = directives::remove_directives(source);
    let room = limit.checked_sub(next_line_quarters(&marker).div_ceil(4))?;
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
        // No sentence is left, so the note is the text.
        text = truncate_at_word(DIRECTIVE_NOTE, room).into();
    }
    if text.is_empty() {
        return None;
    }
    out.push_str(&text);
    out.push('\n');
    out.push_str(&marker);
    Some(out)
}

fn extract_or_truncate(source: &str, tokens_max: u32) -> String {
    let text = summarize_extractively(source, tokens_max);
    if !text.is_empty() {
        return text;
    }
    let first = split_lines(source)
        .find(|line| !line.trim().is_empty() && parse_block_header(line).is_none());
    truncate_framed(first.map_or("", str::trim), tokens_max.saturating_mul(4))
}

/// Cuts a text that is too long to `tokens_max` tokens, including the note `[Capped from N tokens
/// to ~M]`. N is `tokens`, the size of the uncut text; M is the limit.
///
/// The line of omitted details is kept if it takes less than a quarter of the limit. Under tight
/// limits the note is `[Capped to ~M]` or `[Capped]`; a limit under 4 tokens leaves no note. A text
/// within the limit is returned without whitespace at its end.
#[must_use]
pub fn cap_summary(text: &str, tokens_max: u32, tokens: u32) -> String {
    let text = text.trim_end();
    if tokens::estimate(text) <= tokens_max {
        return text.into();
    }
    let budget = tokens_max.saturating_mul(4);
    let notes = [
        format!("[Capped from {tokens} tokens to ~{tokens_max}]"),
        format!("[Capped to ~{tokens_max}]"),
        String::from("[Capped]"),
    ];
    // A note may take a third of the limit. If no note does, the shortest note is used if it fits.
    let fits = |note: &&String| next_line_quarters(note) <= budget / 3;
    let shortest = || notes.last().filter(|note| next_line_quarters(note) + 4 <= budget);
    let note = notes.iter().find(fits).or_else(shortest).map_or("", String::as_str);
    let room = budget.saturating_sub(next_line_quarters(note));
    let (body, footer) = text
        .rsplit_once('\n')
        .filter(|(_, last)| {
            last.starts_with(EXPAND_PREFIX) && quarter_tokens_u32(last) < budget / 4
        })
        .unwrap_or((text, ""));
    let room =
        if footer.is_empty() { room } else { room.saturating_sub(next_line_quarters(footer)) };
    let mut out = String::from(truncate_at_word(body, room / 4));
    if !footer.is_empty() {
        out.push('\n');
        out.push_str(footer);
    }
    if !note.is_empty() {
        out.push('\n');
        out.push_str(note);
    }
    out
}
