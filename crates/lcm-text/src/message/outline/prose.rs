//! Writes the outline of prose: size, headings, opening and closing.
//!
//! In: any text. Out: counts, headings with line numbers, and excerpts from the beginning and the
//! end of the text, or the whole text if it fits.

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::PayloadText,
};
use crate::base::tokens;

/// Most headings shown.
const HEADINGS: usize = 18;
/// Most quarter tokens of the headings.
const HEADINGS_MAX: u64 = 400;
/// Most quarter tokens of the opening and of the closing; 500 characters of ASCII each.
const EXCERPT_MAX: u64 = 500;
/// Quarter tokens of the labels of opening and closing.
const LABELS: u64 = 24;
/// Fewest remaining quarter tokens, without the labels, with which excerpts are shown.
const EXCERPT_MIN: u64 = 60;

/// Returns whether a line is a Markdown heading.
pub(super) fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - title.len())) && title.starts_with(' ')
}

/// Writes the outline of prose; `title` names the format. Characters, words and headings are those
/// of `head`.
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

/// Quotes the whole text if it fits, otherwise its opening and its closing; nothing if little room
/// remains.
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

/// Returns the end of a text, at most `max` quarter tokens. If a word begins in the first quarter
/// of a cut end, the end starts there.
pub(super) fn take_end(text: &str, max: u64) -> &str {
    let end = tokens::take_end(text, max);
    if end.len() == text.len() {
        return text;
    }
    match end.split_once(char::is_whitespace) {
        Some((part, rest)) if part.len() < end.len() / 4 => rest,
        _ => end,
    }
}
