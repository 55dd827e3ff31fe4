//! Text: its size, its headings, how it begins and how it ends.
//!
//! In: any text. Out: counts, headings with their lines, and as much of the opening and the
//! closing as fits.

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::PayloadText,
};
use crate::base::tokens;

/// Headings that are shown, and their quarter tokens.
const HEADINGS: usize = 18;
const HEADINGS_MAX: u64 = 400;
/// Quarter tokens of the opening and of the closing: 500 characters of ASCII.
const EXCERPT_MAX: u64 = 500;
/// Quarter tokens that the labels of both take, and the least for which they are worth it.
const LABELS: u64 = 24;
const EXCERPT_MIN: u64 = 60;

/// Whether a line is a heading of Markdown.
pub(super) fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - title.len())) && title.starts_with(' ')
}

/// Describes text.
pub(super) fn outline_text(writer: &mut OutlineWriter, payload: &PayloadText<'_>, title: &str) {
    let (mut characters, mut words) = (0_u64, 0_u64);
    let mut between = true;
    for c in payload.head.chars() {
        let blank = c.is_whitespace();
        characters += 1;
        words += u64::from(between && !blank);
        between = blank;
    }
    writer.push_title(payload, title);
    writer.push_text(", ");
    writer.push_count(characters, "character");
    writer.push_text(", ");
    writer.push_count(words, "word");
    let mut headings = OutlineList::new(HEADINGS);
    let mut fenced = false;
    for (at, line) in (1..).zip(payload.head.lines()) {
        if !line.starts_with(['#', '`', '~']) {
            continue;
        }
        fenced ^= line.starts_with("```") || line.starts_with("~~~");
        if !fenced && is_heading(line) {
            headings.push(Some(at), line.trim_start_matches('#'), None);
        }
    }
    writer.push_list("heading", &headings, ", ", HEADINGS_MAX);
    quote_excerpts(writer, payload);
}

/// The whole text if it fits, else its opening and its closing.
pub(super) fn quote_excerpts(writer: &mut OutlineWriter, payload: &PayloadText<'_>) {
    let Some(room) = writer.quarters_left().checked_sub(LABELS).filter(|room| *room >= EXCERPT_MIN)
    else {
        return;
    };
    let text = payload.head.trim();
    if payload.is_whole && tokens::estimate_quarter_tokens(text) <= room {
        writer.push_quote("\nAll of it: ", text, room);
        return;
    }
    let end = if payload.is_whole { text } else { payload.tail.trim_end() };
    let each = EXCERPT_MAX.min(room / 2);
    writer.push_quote("\nOpening: ", text, each);
    writer.push_quote("\nClosing: ...", take_end(end, each), each);
}

/// The end of a text, of at most so many quarter tokens, from the beginning of a word on if one
/// is near.
pub(super) fn take_end(text: &str, max: u64) -> &str {
    let mut left = max;
    let start = text.char_indices().rev().find(|(_, c)| {
        let weight = u64::from(tokens::char_quarter_tokens(*c));
        let over = weight > left;
        left = left.saturating_sub(weight);
        over
    });
    let Some((at, c)) = start else { return text };
    let end = text.get(at + c.len_utf8()..).unwrap_or_default();
    match end.split_once(char::is_whitespace) {
        Some((part, rest)) if part.len() < end.len() / 4 => rest,
        _ => end,
    }
}
