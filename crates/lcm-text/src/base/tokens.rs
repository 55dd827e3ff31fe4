//! Estimates the tokens of a text without a tokenizer.
//!
//! Input: any text. Output: tokens, or quarter tokens where a caller adds several texts before
//! rounding. The weights depend only on code points, so that every host gets the same estimate.
//! [`crate::message`] decides which parts of a message are counted.

pub use lcm_loops::cjk::is_cjk;

use crate::base::int;

/// First code point that can weigh more than a quarter of a token.
const HEAVY_FIRST: u32 = 0x2E80;

/// Returns the quarter tokens of one character: 6 for CJK, 8 for any other above U+FFFF, 1 for the
/// rest.
pub const fn char_quarter_tokens(c: char) -> u32 {
    #[expect(clippy::as_conversions, reason = "lossless; `From` is not const")]
    let code = c as u32;
    if code < HEAVY_FIRST {
        1
    } else if is_cjk(c) {
        6
    } else if code > 0xFFFF {
        8
    } else {
        1
    }
}

/// Estimates the cost of a text in quarter tokens; 0 only for the empty text.
///
/// The estimate is additive: the quarter tokens of two texts sum to those of their concatenation.
#[must_use]
pub fn estimate_quarter_tokens(text: &str) -> u64 {
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // Eight bytes at once: each byte that begins a character counts 1. Only characters from
    // `HEAVY_FIRST` on can weigh more. Their first byte is at least 0xE0, so the character at each
    // such byte is weighed singly.
    let heavy = |at: usize| {
        text.get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, |c| u64::from(char_quarter_tokens(c)))
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let (mut sum, mut at) = (0, 0);
    for word in words {
        let word = u64::from_le_bytes(*word);
        let continuing = word & !(word << 1) & HIGHS;
        sum += 8 - u64::from(continuing.count_ones());
        let mut wide = word & (word << 1) & (word << 2) & HIGHS;
        while wide != 0 {
            sum += heavy(at + int::to_usize(u64::from(wide.trailing_zeros() / 8))) - 1;
            wide &= wide - 1;
        }
        at += 8;
    }
    for byte in rest {
        sum += match byte {
            0x80..=0xBF => 0,
            0xE0.. => heavy(at),
            _ => 1,
        };
        at += 1;
    }
    sum
}

/// Converts quarter tokens to whole tokens: rounded up, at most `u32::MAX`.
#[must_use]
pub fn tokens_from_quarters(quarters: u64) -> u32 {
    u32::try_from(quarters.div_ceil(4)).unwrap_or(u32::MAX)
}

/// Estimates the tokens of a text; 0 only for the empty text.
///
/// ```
/// use lcm_text::base::tokens;
///
/// assert_eq!(tokens::estimate("eight ch"), 2);
/// assert_eq!(tokens::estimate("\u{6f22}\u{5b57}"), 3);
/// ```
#[must_use]
pub fn estimate(text: &str) -> u32 {
    tokens_from_quarters(estimate_quarter_tokens(text))
}

/// Returns the longest beginning of a text, in whole characters, that costs at most `tokens_max`
/// tokens.
#[must_use]
pub fn truncate_to_tokens(text: &str, tokens_max: u32) -> &str {
    let mut left = u64::from(tokens_max) * 4;
    for (at, c) in text.char_indices() {
        match left.checked_sub(u64::from(char_quarter_tokens(c))) {
            Some(rest) => left = rest,
            None => return text.get(..at).unwrap_or_default(),
        }
    }
    text
}

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests {
    use alloc::{format, string::String, vec};

    use super::*;

    #[test]
    fn ascii_is_a_quarter_per_letter_rounded_up_once() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("a"), 1);
        assert_eq!(estimate("hello"), 2);
        assert_eq!(estimate(&"x".repeat(400)), 100);
    }

    #[test]
    fn cjk_is_one_and_a_half() {
        assert_eq!(estimate("\u{4f60}\u{597d}\u{4e16}\u{754c}"), 6);
        assert_eq!(estimate("Hello \u{4e16}\u{754c}"), 5);
        assert_eq!(estimate("\u{c548}\u{b155}\u{d558}\u{c138}\u{c694}"), 8);
        assert_eq!(estimate("\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}"), 8);
        assert_eq!(estimate("\u{ff0c}\u{3002}\u{ff01}"), 5);
    }

    #[test]
    fn astral_is_two_unless_it_is_cjk() {
        assert_eq!(estimate("\u{1f600}\u{1f601}\u{1f602}"), 6);
        assert_eq!(estimate("\u{20bb7}"), 2);
        assert_eq!(estimate("\u{20bb7}\u{20bb7}"), 3);
    }

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(truncate_to_tokens("\u{4f60}\u{597d}\u{4e16}\u{754c}", 3), "\u{4f60}\u{597d}");
        assert_eq!(truncate_to_tokens("\u{1f600}\u{1f600}", 3), "\u{1f600}");
        assert_eq!(truncate_to_tokens("abcdefgh", 1), "abcd");
        assert_eq!(truncate_to_tokens("abc", 0), "");
        assert_eq!(truncate_to_tokens("abc", u32::MAX), "abc");
    }

    #[test]
    fn the_table_includes_radicals_and_compatibility_ideographs() {
        for inside in ['\u{2e80}', '\u{2fff}', '\u{f900}', '\u{faff}', '\u{2ebef}', '\u{2a6df}'] {
            assert!(is_cjk(inside), "{inside:?}");
            assert_eq!(estimate_quarter_tokens(&String::from(inside)), 6);
        }
        for outside in ['\u{2e7f}', '\u{3100}', '\u{4dc0}', '\u{a000}', '\u{d7b0}', '\u{fb00}'] {
            assert!(!is_cjk(outside), "{outside:?}");
            assert_eq!(estimate_quarter_tokens(&String::from(outside)), 1);
        }
        assert_eq!(estimate_quarter_tokens("\u{2a6e0}\u{2ebf0}"), 16);
    }

    #[test]
    fn a_sum_beyond_the_range_saturates() {
        assert_eq!(tokens_from_quarters(u64::MAX), u32::MAX);
        assert_eq!(tokens_from_quarters(5), 2);
    }

    #[test]
    fn a_truncated_text_is_the_longest_beginning_that_fits() {
        // Goal: the contract of `truncate` on all texts of up to 5 characters of every weight.
        let mut texts = vec![String::new()];
        for from in 0.. {
            let Some(text) = texts.get(from).cloned() else { break };
            if text.chars().count() < 5 {
                let longer = ['a', '\u{e9}', '\u{4f60}', '\u{1f600}', '\u{20bb7}'];
                texts.extend(longer.map(|c| format!("{text}{c}")));
            }
            let sum: u64 = text.chars().map(|c| estimate_quarter_tokens(&String::from(c))).sum();
            assert_eq!(estimate_quarter_tokens(&text), sum);
            for max in 0..=11 {
                let kept = truncate_to_tokens(&text, max);
                assert!(text.starts_with(kept) && estimate(kept) <= max);
                if let Some(next) = text[kept.len()..].chars().next() {
                    assert!(estimate(&format!("{kept}{next}")) > max);
                }
            }
        }
        assert_eq!(texts.len(), 3906);
    }
}
