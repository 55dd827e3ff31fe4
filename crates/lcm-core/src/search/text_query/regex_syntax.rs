//! Recognises texts that look like regular expressions, for queries that do not say what they are.

use alloc::vec::Vec;

/// Returns whether a text looks like a regular expression. Signs of one are `a|b`, `.*`, `.+`,
/// `(?`, a character class or an escape such as `\d`, outside of quotes. Further signs are `^` at
/// the beginning of the text and `$` at its end.
pub(crate) fn looks_like_regex(text: &str) -> bool {
    let outside: Vec<&str> = text.split('"').step_by(2).collect();
    let contains_any =
        |parts: &[&str]| parts.iter().any(|part| outside.iter().any(|text| text.contains(part)));
    let begins = text.starts_with('^') && text.len() > 1;
    let ends = text.ends_with('$') && !text.ends_with(" $") && text.len() > 1;
    begins
        || ends
        || contains_any(&[
            ".*", ".+", r"\b", r"\B", r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"\.", "(?",
        ])
        || outside.iter().any(|text| has_alternatives(text) || has_class(text))
}

/// Returns whether a text has alternatives such as `a|b`. In `a | b` or `a || b` the bar is an
/// operator of a shell.
fn has_alternatives(text: &str) -> bool {
    let stands_alone = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == '|');
    text.match_indices('|').any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let behind = text.get(at + 1..).and_then(|text| text.chars().next());
        !stands_alone(before) && !stands_alone(behind)
    })
}

/// Bytes behind `[` within which the `]` of a class must come.
const CLASS_BYTES_MAX: usize = 64;

/// Returns whether a text has a class such as `[a-z]`, `[^a]` or `[ab]+`. `[1]` alone is a
/// reference, not a class.
fn has_class(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| {
        let inside = text.get(at + 1..).unwrap_or_default();
        let end = inside.bytes().take(CLASS_BYTES_MAX).position(|byte| byte == b']');
        let Some((class, behind)) = end.and_then(|end| inside.split_at_checked(end)) else {
            return false;
        };
        let is_range = |triple: &[u8]| {
            matches!(triple, [a, b'-', b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
        };
        let is_class = class.starts_with('^') || class.as_bytes().windows(3).any(is_range);
        !class.is_empty()
            && !class.contains(char::is_whitespace)
            && (is_class && class.len() <= 16
                || behind.get(1..).is_some_and(|text| text.starts_with(['+', '*', '?', '{'])))
    })
}
