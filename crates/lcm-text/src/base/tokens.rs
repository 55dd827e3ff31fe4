//! Estimates the tokens of a text without a tokenizer.
//!
//! Input: any text. Output: tokens, or quarter tokens where a caller adds several texts before
//! rounding. An ASCII character costs what its class costs behind the character before it: letters
//! of a word a quarter of a token, a change between letters, digits and punctuation more, because a
//! tokenizer seldom has a token across the change. So base64, hexadecimal digits and tables cost
//! more than prose of the same length. Any other character has the cost of its block.
//!
//! Costs depend on the text only, so that every host gets the same estimate. They were fitted to the
//! counts of `o200k_base` (`docs/tokens.md`). [`crate::message`] decides which parts of a message
//! are counted.

pub use lcm_loops::cjk::is_cjk;

/// Parts of a token in a quarter token. Costs are stated in sixteenths of a token.
const QUARTER: u64 = 4;

/// Costs of an ASCII character in parts of a token. Row: what is before it. Column: its class, in
/// the order of [`class_of`]; the last are the letters `j k q z`, which are rare in the words of a
/// vocabulary.
const COSTS: [[u8; 8]; 11] = [
    // lower, upper, digit, space, line end, punctuation, joiner, rare
    [4, 24, 9, 4, 24, 24, 24, 16], // behind one or two lower-case letters
    [4, 0, 12, 4, 24, 6, 2, 16],   // behind three to six
    [2, 0, 6, 4, 24, 6, 0, 14],    // behind more
    [0, 10, 6, 6, 6, 6, 6, 12],    // behind one capital
    [24, 2, 6, 6, 6, 6, 6, 36],    // behind several
    [24, 24, 6, 24, 1, 19, 7, 36], // behind a digit
    [4, 7, 13, 1, 6, 13, 24, 16],  // behind a space
    [4, 6, 15, 1, 1, 6, 6, 16],    // behind a line end, and at the start
    [14, 6, 6, 1, 19, 5, 6, 26],   // behind punctuation
    [1, 6, 24, 24, 6, 6, 8, 13],   // behind a joiner
    [9, 6, 6, 4, 1, 1, 6, 21],     // behind a character beyond ASCII
];

/// State behind a line end, and at the start of a text.
const STATE_START: u8 = 11;
/// State behind a character beyond ASCII.
const STATE_WIDE: u8 = 14;

/// Number of blocks of 128 code points and the cost of their characters in parts of a token, in
/// order, up to U+3000.
const BLOCK_COSTS: [(u8, u8); 36] = [
    (1, 4),  // ASCII
    (2, 12), // Latin
    (3, 24),
    (1, 16), // accents
    (1, 7),  // Greek
    (1, 5),  // Cyrillic
    (1, 16),
    (1, 6), // Armenian
    (1, 8), // Hebrew
    (2, 6), // Arabic
    (4, 36),
    (1, 6), // Devanagari
    (1, 7),
    (1, 11), // Gurmukhi
    (1, 7),
    (1, 20), // Odia
    (1, 7),
    (1, 9), // Telugu
    (2, 7),
    (1, 11), // Sinhala
    (1, 7),  // Thai
    (1, 33), // Lao
    (2, 27), // Tibetan
    (1, 10), // Burmese
    (1, 6),  // Georgian
    (13, 36),
    (1, 11), // Khmer
    (12, 36),
    (2, 10), // Latin with two accents
    (2, 24),
    (1, 16), // punctuation
    (1, 32),
    (2, 24), // arrows
    (6, 40), // mathematics
    (1, 15), // lines of boxes
    (21, 28),
];

/// Returns the cost of a character beyond ASCII in parts of a token.
fn wide_cost(c: char) -> u8 {
    match u32::from(c) {
        // Letters of few languages.
        0x450..0x480 => 16,
        code @ 0..0x3000 => {
            let mut blocks = code >> 7;
            for (count, cost) in BLOCK_COSTS {
                match blocks.checked_sub(count.into()) {
                    Some(left) => blocks = left,
                    None => return cost,
                }
            }
            0
        }
        0xAC00..=0xD7AF => 12,
        0x3000..=0x30FF | 0x4E00..=0x9FFF | 0xFF00..=0xFFEF => 14,
        0xFE00..=0xFE0F => 16,
        0x1F000..=0x1FFFF => 28,
        _ => 36,
    }
}

/// Returns the class of an ASCII character. Joiners are often part of a token with letters.
const fn class_of(byte: u8) -> u8 {
    match byte {
        b'j' | b'k' | b'q' | b'z' => 7,
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        b' ' | b'\t' => 3,
        b'\n' | b'\r' => 4,
        b'"' | b'\'' | b'`' | b'_' | b'-' | b'.' | b'/' => 6,
        _ => 5,
    }
}

/// Returns the row of [`COSTS`] of a state, and the state behind a character of a class. States 0
/// to 6 count lower-case letters in a row, 7 and 8 capitals.
const fn next_state(state: u8, class: u8) -> (u8, u8) {
    let row = match state {
        0..=1 => 0,
        2..=5 => 1,
        _ => state - 4,
    };
    let next = match (class, state) {
        (0 | 7, 0..=5) => state + 1,
        (0 | 7, 6) => 6,
        (0 | 7, _) => 0,
        (1, 7 | 8) => 8,
        (1, _) => 7,
        _ => class + 7,
    };
    (row, next)
}

/// For each state and class the cost of the character, and in the upper byte the next state.
static STEPS: [[u16; 8]; 15] = build_steps();
/// Classes of the ASCII characters.
static CLASS: [u8; 128] = build_classes();

#[expect(clippy::as_conversions, clippy::indexing_slicing, reason = "evaluated by rustc")]
const fn build_steps() -> [[u16; 8]; 15] {
    let mut table = [[0; 8]; 15];
    let (mut state, mut class) = (0, 0);
    while state < 15 {
        let (row, next) = next_state(state, class);
        let cost = COSTS[row as usize][class as usize];
        table[state as usize][class as usize] = cost as u16 | (next as u16) << 8;
        class = (class + 1) % 8;
        state += (class == 0) as u8;
    }
    table
}

#[expect(clippy::as_conversions, clippy::indexing_slicing, reason = "evaluated by rustc")]
const fn build_classes() -> [u8; 128] {
    let mut table = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = class_of(byte);
        byte += 1;
    }
    table
}

/// Adds up the cost of texts that are read one behind the other.
#[derive(Clone)]
pub struct TokenMeter {
    parts: u64,
    state: u8,
}

impl Default for TokenMeter {
    fn default() -> Self {
        Self { parts: 0, state: STATE_START }
    }
}

impl TokenMeter {
    /// Reads a text. The cost does not depend on how a longer text is divided.
    pub fn push_text(&mut self, text: &str) {
        let Self { mut parts, mut state } = *self;
        for (at, byte) in text.bytes().enumerate() {
            if let Some(class) = CLASS.get(usize::from(byte)) {
                let steps = STEPS.get(usize::from(state));
                let step = steps.and_then(|row| row.get(usize::from(*class))).copied();
                let [cost, next] = step.unwrap_or(0).to_le_bytes();
                parts += u64::from(cost);
                state = next;
            } else if byte >= 0xC0 {
                let c = text.get(at..).and_then(|rest| rest.chars().next());
                parts += u64::from(c.map_or(0, wide_cost));
                state = STATE_WIDE;
            }
        }
        *self = Self { parts, state };
    }

    /// Reads a character.
    pub fn push_char(&mut self, c: char) {
        self.push_text(c.encode_utf8(&mut [0; 4]));
    }

    /// Returns the quarter tokens of what was read, rounded up; 0 only if nothing was read.
    #[must_use]
    pub const fn quarter_tokens(&self) -> u64 {
        self.parts.div_ceil(QUARTER)
    }
}

/// Estimates the cost of a text in quarter tokens; 0 only for the empty text.
///
/// The cost of a text is at most about two tokens off the sum of the costs of its halves.
#[must_use]
pub fn estimate_quarter_tokens(text: &str) -> u64 {
    let mut meter = TokenMeter::default();
    meter.push_text(text);
    meter.quarter_tokens()
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
    let mut meter = TokenMeter::default();
    for (at, c) in text.char_indices() {
        meter.push_char(c);
        if meter.quarter_tokens() > u64::from(tokens_max) * 4 {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// Returns a long end of a text, in whole characters, that costs at most `quarters_max` quarter
/// tokens.
#[must_use]
pub fn take_end(text: &str, quarters_max: u64) -> &str {
    let total = estimate_quarter_tokens(text);
    let mut meter = TokenMeter::default();
    for (at, c) in text.char_indices() {
        let end = text.get(at..).unwrap_or_default();
        // The first test is cheap and nearly right.
        if total <= quarters_max + meter.quarter_tokens()
            && estimate_quarter_tokens(end) <= quarters_max
        {
            return end;
        }
        meter.push_char(c);
    }
    ""
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
        // Goal: the contract of `truncate_to_tokens`, on all texts of up to 5 characters from an
        // alphabet with a character of each cost.
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
