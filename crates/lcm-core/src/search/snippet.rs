//! Snippets: the passage of a text that best shows the match.
//!
//! Input: a text, and the ranges of its matches with their weights. Output: a passage on one line,
//! of at most 200 characters unless the caller wants fewer. Its parts are text and match in turn.
//! Elsewhere: finding the matches.

use alloc::{string::String, vec::Vec};
use core::{iter, ops::Range};

use lcm_text::base::{json::JsonWriter, sort};

/// Most characters of a snippet, including ellipses.
pub(crate) const SNIPPET_CHARACTERS_MAX: usize = 200;
/// Most bytes of a range whose highlights are weighed together, from the start of the first
/// highlight to the end of the last.
const SPAN_BYTES_MAX: usize = 120;
/// Most characters shown before the byte around which a snippet is built.
const LEAD_CHARACTERS: usize = 40;
/// Most highlights of one text that are compared; later highlights are ignored.
const HIGHLIGHTS_MAX: usize = 512;
/// Character in place of omitted text at the beginning or end of a snippet.
const ELLIPSIS: char = '\u{2026}';

/// Range of a match, with its weight.
#[derive(Clone, Debug)]
pub(crate) struct Highlight {
    /// Byte range in the text.
    pub(crate) bytes: Range<usize>,
    /// Number of the matched item. An item counts once in a passage; numbers that are equal modulo
    /// 64 count as one item.
    pub(crate) what: usize,
    pub(crate) weight: u64,
}

/// Finds the passage whose highlights (ascending) have the greatest total weight; of equal passages
/// the first. Returns weight and start byte of the passage; `None`: there are no highlights. Only
/// the first 512 highlights are compared.
pub(crate) fn find_best_passage(highlights: &[Highlight]) -> Option<(u64, usize)> {
    let highlights = highlights.get(..HIGHLIGHTS_MAX).unwrap_or(highlights);
    let mut best: Option<(u64, usize)> = None;
    for (at, first) in highlights.iter().enumerate() {
        let (mut seen, mut weight) = (0u64, 0u64);
        for highlight in highlights.iter().skip(at) {
            if highlight.bytes.end.saturating_sub(first.bytes.start) > SPAN_BYTES_MAX && seen != 0 {
                break;
            }
            let bit = 1u64 << (highlight.what % 64);
            if seen & bit == 0 {
                seen |= bit;
                weight = weight.saturating_add(highlight.weight);
            }
        }
        if best.is_none_or(|(best_weight, _)| weight > best_weight) {
            best = Some((weight, first.bytes.start));
        }
    }
    best
}

/// Text of a passage with the bounds of its matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snippet {
    pub(crate) text: String,
    /// Byte offsets in `text` at which matches begin and end, in turn.
    bounds: Vec<usize>,
}

impl Snippet {
    /// Splits the passage into parts: text, match, text, and so on. First and last are text, which
    /// may be empty.
    fn parts(&self) -> Vec<&str> {
        let begins = iter::once(0).chain(self.bounds.iter().copied());
        let ends = self.bounds.iter().copied().chain([self.text.len()]);
        begins.zip(ends).map(|(from, to)| self.text.get(from..to).unwrap_or_default()).collect()
    }

    /// Writes the members `snippet` and `snippet_parts`.
    pub(crate) fn write(&self, w: &mut JsonWriter) {
        w.add_text("snippet", &self.text);
        w.add_texts("snippet_parts", &self.parts());
    }
}

/// Builds a passage of at most 200 characters around the byte `at` of a text.
///
/// Runs of whitespace and control characters become single spaces. `found`: the ranges of all
/// matches in the text.
pub(crate) fn build_snippet(
    text: &str,
    at: usize,
    found: &mut dyn Iterator<Item = Range<usize>>,
) -> Snippet {
    build_short_snippet(text, at, SNIPPET_CHARACTERS_MAX, found)
}

/// Builds a passage as [`build_snippet`] does, but of at most `characters_max` characters.
pub(crate) fn build_short_snippet(
    text: &str,
    at: usize,
    characters_max: usize,
    found: &mut dyn Iterator<Item = Range<usize>>,
) -> Snippet {
    let before = text.get(..at).unwrap_or("");
    let lead = leading_context(before);
    let begin = before.len() - lead.len();
    let found = merge_touching_ranges(
        found.filter(|range| range.end > begin && !range.is_empty()).collect(),
    );
    let mut found = found.into_iter().peekable();
    let mut bounds = Vec::new();
    // Start of the match that contains the last character; `None`: no match contains it.
    let mut open = None;
    let mut out = String::new();
    let mut count = 0;
    if lead.len() < before.trim_start().len() {
        out.push(ELLIPSIS);
        count = 1;
    }
    let mut needs_space = false;
    let shown = text.get(begin..).unwrap_or_default().trim_end();
    for (place, c) in shown.char_indices() {
        // Control characters count as spaces: they could change how a terminal shows the text.
        if c.is_whitespace() || c.is_control() {
            needs_space = count > 0;
            continue;
        }
        let is_cut = count + usize::from(needs_space) + 1 >= characters_max;
        let place = begin + place;
        while found.next_if(|(_, end)| *end <= place).is_some() {}
        let here = found.peek().map(|(start, _)| *start).filter(|start| *start <= place && !is_cut);
        if open.is_some() && here != open {
            bounds.push(out.len());
        }
        if is_cut {
            out.push(ELLIPSIS);
            open = None;
            break;
        }
        if needs_space {
            out.push(' ');
            count += 1;
            needs_space = false;
        }
        if here.is_some() && here != open {
            bounds.push(out.len());
        }
        open = here;
        out.push(c);
        count += 1;
    }
    if open.is_some() {
        bounds.push(out.len());
    }
    Snippet { text: out, bounds }
}

/// Sorts byte ranges, and joins ranges that touch or overlap. Returns each start and end.
fn merge_touching_ranges(ranges: Vec<Range<usize>>) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> =
        ranges.into_iter().map(|range| (range.start, range.end)).collect();
    sort::sort(&mut ranges);
    let mut out: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match out.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => out.push((start, end)),
        }
    }
    out
}

/// Returns the last 40 characters of a text, from their first whitespace on if they have any.
///
/// A text of at most 40 characters is returned whole. Leading whitespace is removed.
fn leading_context(before: &str) -> &str {
    let Some((start, _)) = before.char_indices().rev().nth(LEAD_CHARACTERS - 1) else {
        return before.trim_start();
    };
    let cut = before.get(start..).unwrap_or_default();
    if before.get(..start).unwrap_or_default().trim_start().is_empty() {
        return before.trim_start();
    }
    match cut.split_once(char::is_whitespace) {
        Some((_, words)) => words.trim_start(),
        None => cut,
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use super::*;

    fn passage(text: &str, at: usize) -> String {
        super::build_snippet(text, at, &mut iter::empty()).text
    }

    /// Returns the parts of the passage around the first range of `found`, joined with `|`.
    fn parts(text: &str, found: &[Range<usize>]) -> String {
        let at = found.first().map_or(0, |first| first.start);
        let shown = super::build_snippet(text, at, &mut found.iter().cloned());
        let parts = shown.parts();
        assert_eq!(parts.concat(), shown.text);
        assert!(parts.len() % 2 == 1);
        assert!(parts.iter().skip(1).step_by(2).all(|part| !part.is_empty()), "{parts:?}");
        parts.join("|")
    }

    #[test]
    fn every_second_part_is_what_was_found() {
        let text = "one  two\n three four";
        assert_eq!(parts(text, &[]), "one two three four");
        assert_eq!(parts(text, &[5..8, 10..15]), "one |two| |three| four");
        assert_eq!(parts(text, &[0..3, 16..20]), "|one| two three |four|");
        // Ranges in any order, a range within another, and a range that ends where another begins.
        assert_eq!(parts(text, &[10..15, 5..8, 11..13]), "one |two| |three| four");
        assert_eq!(parts(text, &[5..6, 6..8, 3..3]), "one |two| three four");
        // A range over whitespace is one part; a range outside the text gives no part.
        assert_eq!(parts(text, core::slice::from_ref(&(0..8))), "|one two| three four");
        assert_eq!(parts(text, &[5..8, 900..905]), "one |two| three four");
        assert_eq!(parts("", &[]), "");
    }

    #[test]
    fn what_was_found_ends_where_the_passage_is_cut() {
        let text = "x".repeat(1_000);
        let shown = super::build_snippet(&text, 500, &mut iter::once(500..900));
        let parts = shown.parts();
        assert_eq!(parts.len(), 3);
        assert!(parts[1].chars().all(|c| c == 'x') && parts[2] == "\u{2026}", "{parts:?}");
        assert!(parts[0].starts_with('\u{2026}') && shown.text.chars().count() == 200);
    }

    fn mark(at: usize, what: usize, weight: u64) -> Highlight {
        Highlight { bytes: at..at + 3, what, weight }
    }

    #[test]
    fn the_place_with_the_most_different_weight_is_shown() {
        let marks = [mark(0, 1, 5), mark(5, 1, 5), mark(300, 1, 5), mark(400, 2, 3)];
        assert_eq!(find_best_passage(&marks), Some((8, 300)));
        let marks = [mark(0, 1, 5), mark(300, 1, 5), mark(500, 2, 3)];
        assert_eq!(find_best_passage(&marks), Some((5, 0)));
        assert_eq!(find_best_passage(&[]), None);
        let long = [Highlight { bytes: 7..9_000, what: 0, weight: 1 }];
        assert_eq!(find_best_passage(&long), Some((1, 7)));
    }

    #[test]
    fn a_short_text_is_shown_whole_on_one_line() {
        assert_eq!(passage(" one\n\ttwo  three\n", 6), "one two three");
        assert_eq!(passage("", 0), "");
        assert_eq!(passage("a\u{7}b", 0), "a b");
    }

    #[test]
    fn a_long_text_is_cut_between_words_before_and_behind() {
        let words: Vec<String> = (0..400).map(|n| format!("word{n}")).collect();
        let text = words.join(" ");
        let shown = passage(&text, text.find("word200").unwrap());
        assert!(shown.starts_with("\u{2026}word196 word197"), "{shown}");
        assert!(shown.contains("word200") && shown.ends_with('\u{2026}'), "{shown}");
        assert_eq!(shown.chars().count(), SNIPPET_CHARACTERS_MAX);
    }

    #[test]
    fn any_place_of_any_text_gives_whole_characters() {
        for unit in ["\u{6570}", "a", "\u{1f600}", "a \u{6570}", " "] {
            let text = unit.repeat(500);
            for at in 0..text.len() {
                let shown = passage(&text, at);
                assert!(shown.chars().count() <= SNIPPET_CHARACTERS_MAX);
                assert!(shown.is_empty() == text.trim().is_empty());
            }
        }
    }
}
