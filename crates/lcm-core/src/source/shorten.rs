//! Parts that a summariser reads only in pieces, because they are too large.
//!
//! In: the text of a part, a limit in tokens. Out: its head and tail around a note that says how
//! much was left out; of a tool's output also the lines between them that tell of a failure, since
//! no summary may lose one. The whole text stays stored and is recalled by the message's id.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use crate::{num, tokens, verify};

/// Tokens of a tool's output that a summariser reads. Of outputs over 2,000 tokens nothing that was
/// measured needs more (`COMPACTION.md`, *Large outputs*); at 1,000 first identifiers are lost.
pub(super) const OUTPUT_TOKENS_MAX: u32 = 2_000;

/// What a note costs at most (`[... 4294967295 tokens left out ...]` and breaks).
const NOTE_TOKENS: u32 = 11;

/// Bytes of a line that is kept for its failure.
const LINE_BYTES_MAX: usize = 240;

/// Cuts a text over the limit to two thirds of head and one third of tail around a note.
pub(super) fn text(text: Cow<'_, str>, tokens_max: u32) -> Cow<'_, str> {
    let Some(total) = over(&text, tokens_max) else { return text };
    let room = tokens_max.saturating_sub(NOTE_TOKENS);
    Cow::Owned(Ends::of(&text, room - room / 3, room / 3).around(total, &[]))
}

/// Cuts an output over the limit to head and tail, a quarter each at least, around a note and the
/// lines of failures left out, which take at most half.
pub(super) fn output(text: Cow<'_, str>, tokens_max: u32) -> Cow<'_, str> {
    let Some(total) = over(&text, tokens_max) else { return text };
    let room = tokens_max.saturating_sub(2 * NOTE_TOKENS);
    let widest = Ends::of(&text, room - room / 3, room / 3);
    let lines = failures(widest.middle, room / 2);
    let taken: u32 = lines.iter().map(|line| tokens::estimate(line).saturating_add(1)).sum();
    let rest = room.saturating_sub(taken);
    Cow::Owned(Ends::of(&text, rest - rest / 3, rest / 3).around(total, &lines))
}

/// The tokens of a text that has more than so many.
fn over(text: &str, tokens_max: u32) -> Option<u32> {
    // No byte costs more than half a token.
    if num::to_u64(text.len()) <= u64::from(tokens_max) * 2 {
        return None;
    }
    Some(tokens::estimate(text)).filter(|total| *total > tokens_max)
}

/// Lines that tell of a failure, each once, in order, of at most so many tokens together.
fn failures(text: &str, tokens_max: u32) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    let mut room = tokens_max;
    for line in verify::failing_lines(text) {
        let line = line.trim();
        let line = line.get(..line.floor_char_boundary(LINE_BYTES_MAX)).unwrap_or(line);
        let cost = tokens::estimate(line).saturating_add(1);
        if lines.contains(&line) {
            continue;
        }
        if cost > room {
            break;
        }
        room -= cost;
        lines.push(line);
    }
    lines
}

/// A text in three pieces.
struct Ends<'a> {
    start: &'a str,
    middle: &'a str,
    end: &'a str,
}

impl<'a> Ends<'a> {
    /// So many tokens of its beginning and of its end.
    fn of(text: &'a str, start_tokens: u32, end_tokens: u32) -> Self {
        let start = tokens::truncate(text, start_tokens);
        let end = tail(text, end_tokens);
        let middle = text.get(start.len()..text.len() - end.len()).unwrap_or("");
        Self { start, middle, end }
    }

    fn around(&self, total: u32, lines: &[&str]) -> String {
        let ends = tokens::estimate(self.start).saturating_add(tokens::estimate(self.end));
        let note = format!("[... {} tokens left out ...]", total.saturating_sub(ends));
        let mut pieces: Vec<&str> = [self.start.trim_end(), note.as_str()].into();
        if !lines.is_empty() {
            pieces.extend_from_slice(lines);
            pieces.push("[...]");
        }
        pieces.push(self.end.trim_start());
        pieces.join("\n").trim().into()
    }
}

/// The longest end of `text` of at most so many tokens.
fn tail(text: &str, tokens_max: u32) -> &str {
    let mut room = u64::from(tokens_max).saturating_mul(4);
    let mut from = text.len();
    let mut buffer = [0_u8; 4];
    for (at, c) in text.char_indices().rev() {
        let cost = tokens::quarters(c.encode_utf8(&mut buffer));
        if cost > room {
            break;
        }
        room -= cost;
        from = at;
    }
    text.get(from..).unwrap_or("")
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
        let cut = output(Cow::Borrowed(&log), 500);
        assert!(tokens::estimate(&cut) <= 500, "{}", tokens::estimate(&cut));
        assert!(cut.starts_with("00000 compiled") && cut.ends_with("module_1999 without remarks"));
        assert_eq!(cut.matches("connection refused by db-3").count(), 1);
        assert!(cut.contains("worker-9 was killed\n[...]\n"), "{cut}");
        assert!(cut.contains(" tokens left out ...]\nstep deploy failed"), "{cut}");
    }

    #[test]
    fn an_output_within_its_limit_stays() {
        let log = log(20);
        assert_eq!(output(Cow::Borrowed(&log), 2_000), log);
        assert_eq!(text(Cow::Borrowed(&log), 2_000), log);
    }

    #[test]
    fn an_output_of_failures_alone_keeps_both_ends() {
        let log: String = (0..3_000)
            .map(|number| format!("test case_{number} failed with E{number}\n"))
            .collect();
        let cut = output(Cow::Borrowed(&log), 400);
        assert!(tokens::estimate(&cut) <= 400, "{}", tokens::estimate(&cut));
        assert!(cut.starts_with("test case_0 failed") && cut.ends_with("failed with E2999"));
        assert!(cut.matches("failed").count() > 10);
    }

    #[test]
    fn no_limit_is_too_small() {
        let log = log(1_300);
        for tokens_max in 0..80 {
            let cut = output(Cow::Borrowed(&log), tokens_max);
            assert!(tokens::estimate(&cut) <= tokens_max.max(2 * NOTE_TOKENS), "{tokens_max}");
        }
    }
}
