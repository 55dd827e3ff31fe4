//! Finds the facts that a reader could ask for by name, with rules that do not use the engine.

use std::collections::{BTreeMap, BTreeSet};

use lcm_text::base::tokens::is_cjk;

/// Largest length of a fact; longer runs of letters are noise.
const FACT_BYTES_MAX: usize = 80;
/// Smallest length of an error line; shorter lines do not tell what went wrong.
const ERROR_BYTES_MIN: usize = 15;
/// Number of characters before and after the error word that a summary must keep.
const WINDOW: usize = 15;

/// Words that make a line an error line.
const ERRORS: [&str; 11] = [
    "Error: ",
    "Exception: ",
    "error: ",
    "fatal",
    "FAILED",
    "Failed",
    "failed",
    "denied",
    "No such file",
    "not found",
    "Traceback",
];

/// Returns the facts of one message; with `pairs`, neighbouring ideographs are facts, too.
pub(crate) fn of(text: &str, pairs: bool) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = without_number(line);
        let mut from = 0;
        while let Some(at) = line[from..].find(is_core).map(|at| from + at) {
            let end = line[at..].find(|c| !is_inner(c)).map_or(line.len(), |end| at + end);
            let word = line[at..end].trim_end_matches(|c| !is_core(c));
            if is_fact(word, &line[..at]) {
                found.insert(word);
            }
            from = at + word.len();
        }
        if pairs {
            found.extend(ideographs(line));
        }
    }
    found
}

/// Returns the facts that occur in exactly one of these messages.
pub(crate) fn rare<'a>(messages: &[&'a str], pairs: bool) -> Vec<&'a str> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for fact in messages.iter().flat_map(|text| of(text, pairs)) {
        *counts.entry(fact).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count == 1).map(|(fact, _)| fact).collect()
}

/// Returns whether a text contains a fact, not as a part of a longer word.
pub(crate) fn holds(text: &str, fact: &str) -> bool {
    text.match_indices(fact).any(|(at, _)| {
        let ideographs = fact.starts_with(is_cjk);
        let free = |c: Option<char>| ideographs || !c.is_some_and(is_core);
        free(text[..at].chars().next_back()) && free(text[at + fact.len()..].chars().next())
    })
}

/// Returns, for each distinct error line, the piece that a summary must keep to tell what went
/// wrong. Lines that differ only in digits are equal.
pub(crate) fn error_windows(text: &str) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let mut windows = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| line.len() >= ERROR_BYTES_MIN - 1) {
        let first = ERRORS.iter().filter_map(|word| line.find(word).map(|at| (at, word.len())));
        let Some((at, length)) = first.min() else { continue };
        let shape: String =
            line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if seen.insert(shape.replace("00", "0")) {
            let from = line[..at].char_indices().rev().nth(WINDOW - 1).map_or(0, |(at, _)| at);
            let rest = &line[at + length..];
            let to = rest.char_indices().nth(WINDOW).map_or(rest.len(), |(at, _)| at);
            windows.push(line[from..at + length + to].trim());
        }
    }
    windows
}

fn is_core(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

fn is_inner(c: char) -> bool {
    is_core(c) || "./:@\\-".contains(c)
}

/// Returns a line without the line number at its beginning.
fn without_number(line: &str) -> &str {
    let digits = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let count = line.trim_start().len() - digits.len();
    let numbered = (1..=6).contains(&count) && digits.starts_with([':', '|', '\t']);
    if numbered { &digits[1..] } else { line }
}

fn is_fact(word: &str, before: &str) -> bool {
    let count = |is: fn(char) -> bool| word.chars().filter(|c| is(*c)).count();
    if word.len() > FACT_BYTES_MAX {
        return false;
    }
    if count(|c| c.is_ascii_alphabetic()) == 0 {
        return count(|c| c.is_ascii_digit()) >= 2;
    }
    if is_identifier(word) {
        return true;
    }
    let opens = before.trim_end().chars().next_back().is_none_or(|c| ".!?*-#>|".contains(c));
    word.len() >= 3 && word.starts_with(|c: char| c.is_ascii_uppercase()) && !opens
}

/// Returns whether the characters of a word make it an identifier: a path, or letters with digits,
/// underscores, `@`, or with capitals or dots inside.
pub(crate) fn is_identifier(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    let path = word.matches('/').count() >= 2 || (word.contains('/') && word.contains('.'));
    let pair = |fits: fn(u8, u8) -> bool| word.as_bytes().windows(2).any(|w| fits(w[0], w[1]));
    let inner = pair(|a, b| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let dotted = word
        .as_bytes()
        .windows(3)
        .any(|w| w[1] == b'.' && w[0].is_ascii_alphanumeric() && w[2].is_ascii_alphanumeric());
    letters > 0
        && word.len() >= 3
        && (digits > 0 || word.contains(['_', '@']) || path || inner || dotted)
}

/// Returns the pairs of neighbouring ideographs of a line.
fn ideographs(line: &str) -> impl Iterator<Item = &str> {
    let is = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let pairs = line.char_indices().zip(line.char_indices().skip(1));
    pairs
        .filter(move |((_, a), (_, b))| is(*a) && is(*b))
        .map(|((from, _), (to, b))| &line[from..to + b.len_utf8()])
}
