//! Cuts parts that are too large for a summariser.
//!
//! Input: the text of a part, a limit in tokens. Output: head and tail around a note with the
//! number of omitted tokens. From a tool's output, failures between head and tail are kept, too, or
//! counted, because a summary should not lose a failure. The stored message is unchanged.

use alloc::{borrow::Cow, format, string::String, vec::Vec};
use core::ops::Range;

use crate::{
    base::{int, sort, tokens},
    summary::verify::failing_pieces::find_failing_pieces,
};

/// Most tokens of a tool's output that a summariser reads. `docs/compaction.md` has the
/// measurements: 2,000 tokens are enough, and with 1,000 the first identifiers are lost.
pub(super) const OUTPUT_TOKENS_MAX: u32 = 2_000;

/// Most tokens of a note, such as `[... 4294967295 tokens left out ...]` and its line breaks.
const NOTE_TOKENS: u32 = 16;

/// Most bytes of a piece of an output that is kept because it reports a failure.
const PIECE_BYTES_MAX: usize = 240;

/// Cuts a text over the limit to two thirds of head and one third of tail around a note.
pub(super) fn truncate_text(text: Cow<'_, str>, tokens_max: u32) -> Cow<'_, str> {
    let Some(total) = estimate_if_over(&text, tokens_max) else { return text };
    let room = tokens_max.saturating_sub(NOTE_TOKENS);
    let ends = TextEnds::from_text(&text, room);
    Cow::Owned(
        [ends.start.trim_end(), &ends.omission_note(total), ends.end.trim_start()]
            .join("\n")
            .trim()
            .into(),
    )
}

/// Cuts the blocks of a transcript so that all of it has about `tokens_max` tokens: long blocks to
/// equal shares of head and tail around a note, short ones not at all. If the shares would say
/// nothing, the blocks in the middle are left out.
#[must_use]
pub fn shorten_transcript(text: &str, tokens_max: u32) -> String {
    // No line of content begins with a bracket, so only a header does after an empty line.
    const BORDER: &str = "\n\n[";
    const SHARE_TOKENS_MIN: u32 = 4 * NOTE_TOKENS;
    let blocks: Vec<&str> = text.split(BORDER).collect();
    let mut costs: Vec<u32> = blocks.iter().map(|block| tokens::estimate(block)).collect();
    sort::sort_by(&mut costs, &mut u32::cmp);
    // The share is what the blocks that are longer than it have each, once the shorter ones have
    // all they need.
    let (mut left, mut share) = (tokens_max, 0);
    for (number, cost) in costs.iter().enumerate() {
        share = left / int::to_u32(costs.len() - number);
        if *cost > share {
            break;
        }
        left -= *cost;
    }
    if share < SHARE_TOKENS_MIN {
        return truncate_text(Cow::Borrowed(text), tokens_max).into_owned();
    }
    let shortened = blocks.iter().map(|block| truncate_text(Cow::Borrowed(block), share));
    let mut out = String::new();
    for (number, block) in shortened.enumerate() {
        if number > 0 {
            out.push_str(BORDER);
        }
        out.push_str(&block);
    }
    out
}

/// Cuts an output over the limit to head, note, failures and tail. Of the limit less the notes,
/// failures get at most a half; the head gets two thirds and the tail one third of the rest.
/// Failures that do not fit are counted.
pub(super) fn truncate_output(text: Cow<'_, str>, tokens_max: u32) -> Cow<'_, str> {
    let Some(total) = estimate_if_over(&text, tokens_max) else { return text };
    let room = tokens_max.saturating_sub(3 * NOTE_TOKENS);
    // Failures are searched between the shortest possible ends. Longer ends can only repeat a
    // failure, which is then left out of the pieces.
    let failures = FailureExcerpts::collect_between_ends(
        &TextEnds::from_text(&text, room - room / 2),
        &text,
        room / 2,
    );
    let ends = TextEnds::from_text(&text, room - failures.tokens);
    let mut pieces: Vec<&str> = Vec::new();
    let note = ends.omission_note(total);
    pieces.push(ends.start.trim_end());
    pieces.push(&note);
    let beyond = failures.ranges.iter().filter(|piece| !ends.contains_range(&text, piece));
    // The tail does not repeat the end of a failure.
    let tail = beyond.clone().next_back().map_or(0, |piece| piece.end);
    let tail = text.get(tail.max(text.len() - ends.end.len())..).unwrap_or_default();
    let before = pieces.len();
    pieces.extend(beyond.map(|piece| text.get(piece.start..piece.end).unwrap_or("").trim()));
    let more = format!("[... {} more failures ...]", failures.omitted_count);
    if failures.omitted_count > 0 {
        pieces.push(&more);
    } else if pieces.len() > before {
        pieces.push("[...]");
    }
    pieces.push(tail.trim_start());
    Cow::Owned(pieces.join("\n").trim().into())
}

/// Returns the tokens of a text that exceeds `tokens_max`; `None`: the text does not exceed it.
fn estimate_if_over(text: &str, tokens_max: u32) -> Option<u32> {
    if int::to_u64(text.len()) * tokens::BYTE_QUARTERS_MAX <= u64::from(tokens_max) * 4 {
        return None;
    }
    Some(tokens::estimate(text)).filter(|total| *total > tokens_max)
}

/// Pieces between head and tail that report failures.
struct FailureExcerpts {
    /// Byte ranges of the kept pieces, in order; of equal pieces only the last is kept.
    ranges: Vec<Range<usize>>,
    /// Tokens of the kept pieces, each with a line break.
    tokens: u32,
    /// Number of pieces that did not fit.
    omitted_count: usize,
}

impl FailureExcerpts {
    /// Collects the failures outside `ends` that fit `tokens_max`. Later failures are taken first,
    /// because later failures show the latest state.
    fn collect_between_ends(ends: &TextEnds<'_>, text: &str, tokens_max: u32) -> Self {
        let mut found = Self { ranges: Vec::new(), tokens: 0, omitted_count: 0 };
        let mut taken: Vec<&str> = Vec::new();
        for piece in find_failing_pieces(text, PIECE_BYTES_MAX).into_iter().rev() {
            let words = text.get(piece.start..piece.end).unwrap_or("").trim();
            if ends.contains_range(text, &piece) || taken.contains(&words) {
                continue;
            }
            let cost = tokens::tokens_from_quarters(tokens::estimate_line_quarters(words));
            if found.tokens.saturating_add(cost) > tokens_max {
                found.omitted_count += 1;
                continue;
            }
            found.tokens += cost;
            found.ranges.push(piece);
            taken.push(words);
        }
        found.ranges.reverse();
        found
    }
}

/// Head and tail of a text.
struct TextEnds<'a> {
    start: &'a str,
    end: &'a str,
}

impl<'a> TextEnds<'a> {
    /// Takes at most `tokens` in total, two thirds from the beginning and one third from the end.
    fn from_text(text: &'a str, tokens: u32) -> Self {
        let start = tokens::truncate_to_tokens(text, tokens - tokens / 3);
        Self { start, end: tokens::take_end(text, u64::from(tokens / 3) * 4) }
    }

    /// Returns whether head or tail contains the whole `piece` of `text`.
    fn contains_range(&self, text: &str, piece: &Range<usize>) -> bool {
        piece.end <= self.start.len() || piece.start >= text.len() - self.end.len()
    }

    fn omission_note(&self, total: u32) -> String {
        let kept = tokens::estimate(self.start).saturating_add(tokens::estimate(self.end));
        format!("[... {} tokens left out ...]", total.saturating_sub(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: usize) -> String {
        let line = |number: usize| match number {
            700 | 900 => "step deploy failed: connection refused by db-3\n".into(),
            1_200 => "process worker-9 was killed\n".into(),
            _ => format!("{number:05} compiled module_{number} without remarks\n"),
        };
        (0..lines).map(line).collect()
    }

    #[test]
    fn an_output_keeps_its_ends_and_the_failures_between_them() {
        let log = log(2_000);
        let cut = truncate_output(Cow::Borrowed(&log), 500);
        assert!(tokens::estimate(&cut) <= 500, "{}", tokens::estimate(&cut));
        assert!(cut.starts_with("00000 compiled") && cut.ends_with("module_1999 without remarks"));
        assert_eq!(cut.matches("connection refused by db-3").count(), 1);
        assert!(cut.contains("worker-9 was killed\n[...]\n"), "{cut}");
        assert!(cut.contains(" tokens left out ...]\nstep deploy failed"), "{cut}");
    }

    #[test]
    fn an_output_within_its_limit_stays() {
        let log = log(20);
        assert_eq!(truncate_output(Cow::Borrowed(&log), 2_000), log);
        assert_eq!(truncate_text(Cow::Borrowed(&log), 2_000), log);
    }

    /// Goal: a single failure is kept, wherever it stands. Method: puts the failure into each line
    /// in turn.
    #[test]
    fn a_single_failure_is_kept_wherever_it_stands() {
        let lines: Vec<String> =
            (0..300).map(|number| format!("{number:05} compiled module_{number}\n")).collect();
        for at in 0..lines.len() {
            let mut log = lines.clone();
            log[at] = "migration of table orders failed: exit code 3\n".into();
            let cut = truncate_output(Cow::Owned(log.concat()), 400);
            assert_eq!(cut.matches("table orders failed: exit code 3").count(), 1, "{at}\n{cut}");
            assert!(tokens::estimate(&cut) <= 400, "{at}");
        }
    }

    /// Goal: failures near the ends are kept although failures between them take room, too. Method:
    /// failures at regular distances in the whole text.
    #[test]
    fn no_failure_falls_between_the_ends_and_the_lines_kept() {
        for every in [7, 12, 19] {
            let line = |number: usize| match number % every {
                0 => format!("job deploy_{number} failed\n"),
                _ => format!("{number:05} compiled module_{number}\n"),
            };
            let log: String = (0..600).map(line).collect();
            let cut = truncate_output(Cow::Borrowed(&log), 2_000);
            for number in (0..600).step_by(every) {
                assert!(cut.contains(&format!("job deploy_{number} failed")), "{every} {number}");
            }
        }
    }

    #[test]
    fn a_failure_in_one_long_line_is_kept() {
        let record = |number: usize| match number {
            200 => r#"{"job":"db-3","exit_code":3}"#.into(),
            _ => format!(r#"{{"job":"db-{number}","exit_code":0}}"#),
        };
        let records: Vec<String> = (0..400).map(record).collect();
        let json = format!("[{}]", records.join(","));
        let cut = truncate_output(Cow::Borrowed(&json), 500);
        assert!(cut.contains(r#"{"job":"db-3","exit_code":3}"#), "{cut}");
    }

    #[test]
    fn of_many_failures_the_last_are_kept_and_the_others_counted() {
        let log: String = (0..3_000)
            .map(|number| format!("test case_{number} failed with E{number}\n"))
            .collect();
        let cut = truncate_output(Cow::Borrowed(&log), 400);
        assert!(tokens::estimate(&cut) <= 400, "{}", tokens::estimate(&cut));
        assert!(cut.starts_with("test case_0 failed") && cut.ends_with("failed with E2999"));
        assert!(cut.matches("failed").count() > 10 && cut.contains(" more failures ...]"), "{cut}");
    }

    #[test]
    fn no_limit_is_too_small() {
        let log = log(1_300);
        for tokens_max in 0..80 {
            let cut = truncate_output(Cow::Borrowed(&log), tokens_max);
            assert!(tokens::estimate(&cut) <= tokens_max.max(3 * NOTE_TOKENS), "{tokens_max}");
        }
    }
}
