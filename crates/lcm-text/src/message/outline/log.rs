//! Writes the outline of a log: its time range, its levels and its error lines.
//!
//! In: lines with a time or a level. Out: first and last time, number of lines per level, and error
//! lines with line numbers. The level of a line is the first level among its first words. Times are
//! shown as written.

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::PayloadText,
    prose,
};

/// Names of the log levels, worst first.
const LEVELS: [&str; 6] = ["fatal", "error", "warning", "info", "debug", "trace"];
/// Words that name a level, each with the index of the level in [`LEVELS`].
#[rustfmt::skip]
const LEVEL_WORDS: [(&str, usize); 15] = [
    ("fatal", 0), ("critical", 0), ("crit", 0), ("panic", 0), ("emerg", 0),
    ("error", 1), ("err", 1), ("severe", 1), ("warn", 2), ("warning", 2),
    ("info", 3), ("notice", 3), ("debug", 4), ("trace", 5), ("verbose", 5),
];
/// Number of levels, from the worst, whose lines are error lines.
const ERRORS: usize = 2;
/// Number of words, of at least three characters, at the beginning of a line among which the level
/// is searched.
const WORDS: usize = 14;
/// Number of bytes at the beginning of a line in which a time can start.
const TIME_BYTES: usize = 48;
/// Most lines that are examined to recognise a log or to find the first or the last time.
const LINES_MAX: usize = 20;
/// Most error lines that are shown, and most earlier messages with which an error line is compared
/// to skip repeated messages.
const SHOWN: usize = 8;

/// Returns whether more than half of the first lines have a time or begin with a level. A text with
/// one line is no log.
pub(super) fn is_log(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).take(LINES_MAX);
    let marked = |line: &&str| {
        let mut words = line.split(|c: char| !c.is_ascii_alphabetic());
        let first = words.find(|word| !word.is_empty()).unwrap_or_default();
        find_time(line).is_some() || (first.len() > 2 && word_level(first).is_some())
    };
    let count = lines().count();
    count > 1 && lines().filter(marked).count() * 2 > count
}

/// Writes the outline of a log.
pub(super) fn outline_log(writer: &mut OutlineWriter, payload: &PayloadText<'_>) {
    let mut counts = [0_u64; LEVELS.len()];
    let mut errors = OutlineList::new(SHOWN);
    let mut seen = [""; SHOWN];
    for (at, line) in (1..).zip(payload.head.lines()) {
        let Some(level) = find_level(line) else { continue };
        if let Some(count) = counts.get_mut(level) {
            *count += 1;
        }
        let message = strip_time(line);
        if level < ERRORS && !seen.contains(&message) {
            if let Some(slot) = seen.iter_mut().find(|slot| slot.is_empty()) {
                *slot = message;
            }
            errors.push(Some(at), line, None);
        }
    }
    writer.push_title(payload, "Log");
    let first = payload.head.lines().take(LINES_MAX).find_map(find_time).unwrap_or_default();
    let end = if payload.is_whole { payload.head } else { payload.tail };
    let last = end.lines().rev().take(LINES_MAX).find_map(find_time).unwrap_or_default();
    writer.push_quote("\nFrom ", first, 120);
    writer.push_quote(if first.is_empty() { "\nTo " } else { " to " }, last, 120);
    let mut levels = OutlineList::new(LEVELS.len());
    for (name, count) in LEVELS.iter().zip(counts) {
        if count > 0 {
            levels.push(None, name, Some(count));
        }
    }
    writer.push_list("level", &levels, ", ", writer.quarters_left());
    writer.push_list("distinct error line", &errors, "\n", writer.quarters_left());
    if errors.total == 0 {
        prose::quote_excerpts(writer, payload);
    }
}

/// Returns the text of a line after its time; without a time, the whole line. Trims the text.
fn strip_time(line: &str) -> &str {
    let time = find_time(line).unwrap_or_default();
    let after = line.find(time).and_then(|at| line.get(at + time.len()..)).unwrap_or(line);
    after.trim()
}

/// Returns the index of the level that a word names; `None`: the word names no level.
fn word_level(word: &str) -> Option<usize> {
    let row = LEVEL_WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    row.map(|(_, level)| *level)
}

/// Returns the index of the level of a line; `None`: no level among the first words.
fn find_level(line: &str) -> Option<usize> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 2);
    words.take(WORDS).find_map(word_level)
}

/// Returns the time near the beginning of a line, with the date before the time if present; `None`:
/// no time.
fn find_time(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b":/.-+,".contains(byte);
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let at = (0..TIME_BYTES.min(bytes.len())).find(|at| {
        let clock = digit(*at) && digit(at + 1) && bytes.get(at + 2) == Some(&b':');
        let alone = at.checked_sub(1).is_none_or(|before| !digit(before)) && !digit(at + 5);
        clock && alone && digit(at + 3) && digit(at + 4)
    })?;
    let end = at + bytes.get(at..)?.iter().take_while(part).count();
    let mut start = at - bytes.get(..at)?.iter().rev().take_while(part).count();
    for is_month in [false, true] {
        let so_far = bytes.get(start..at)?;
        let before = bytes.get(..start)?;
        let blanks = before.iter().rev().take_while(|byte| **byte == b' ').count();
        let length = before.iter().rev().skip(blanks).take_while(part).count();
        let from = start - blanks - length;
        let dated = so_far.iter().any(|byte| b"-/".contains(byte));
        let fits = if is_month { length == 3 && !digit(from) } else { digit(from) };
        if dated || blanks == 0 || !fits {
            break;
        }
        start = from;
    }
    line.get(start..end).map(|time| time.trim_end_matches([':', ',', '.', '-']))
}
