//! Estimates the tokens of a text without a tokenizer.
//!
//! Input: any text. Output: tokens, or quarter tokens where a caller adds several texts before
//! rounding. An ASCII character costs what its class costs behind the character before it: the
//! first letters of a word more than the next, a change between letters, digits and punctuation
//! more again, because a tokenizer seldom has a token across the change. So base64, hexadecimal
//! digits and tables cost more than prose of the same length. Any other character has the cost of
//! its block.
//!
//! Costs depend on the text only, so that every host gets the same estimate. `docs/tokens.md` says
//! how they were measured. [`crate::message`] decides which parts of a message are counted.

pub use lcm_loops::cjk::is_cjk;

use crate::base::int;

/// Parts of a token in a quarter token. Costs are stated in sixteenths of a token.
const QUARTER: u64 = 4;

/// Costs of an ASCII character in parts of a token. Row: what is before it. Column: its class, in
/// the order of [`class_of`]; the last are the letters `j k q z`, which are rare in the words of a
/// vocabulary.
///
/// Fitted on 2026-11-28 to the counts of `o200k_base` on 716 texts of 190 kinds (`docs/tokens.md`).
/// [`estimate_line_quarters`] relies on two relations: in each row a line end costs at least as
/// much as a space, and behind a space each class costs at least as much as behind a line end.
const COSTS: [[u8; 8]; 11] = [
    // lower, upper, digit, space, line end, punctuation, joiner, rare
    [4, 20, 12, 2, 16, 18, 12, 20], // behind one or two lower-case letters
    [1, 0, 6, 1, 20, 2, 7, 17],     // behind three to six
    [4, 0, 6, 6, 20, 6, 0, 20],     // behind more
    [3, 6, 6, 2, 6, 15, 6, 19],     // behind one capital
    [20, 2, 6, 1, 6, 6, 1, 36],     // behind several
    [20, 20, 6, 16, 16, 20, 7, 36], // behind a digit
    [6, 14, 20, 1, 6, 19, 20, 22],  // behind a space
    [6, 14, 10, 1, 1, 1, 6, 22],    // behind a line end, and at the start
    [19, 6, 6, 2, 12, 1, 4, 35],    // behind punctuation
    [9, 6, 20, 2, 6, 6, 4, 25],     // behind a joiner
    [6, 6, 6, 3, 14, 6, 9, 22],     // behind a character beyond ASCII
];

/// Most quarter tokens of a byte: the greatest cost, rounded up.
pub const BYTE_QUARTERS_MAX: u64 = 9;

/// Most quarter tokens of a line end behind a text.
pub const LINE_END_QUARTERS: u32 = 5;

/// State behind a space.
const STATE_SPACE: u8 = 10;
/// State behind a line end, and at the start of a text.
const STATE_START: u8 = 11;
/// State behind a character beyond ASCII.
const STATE_WIDE: u8 = 14;
/// Classes of a state in [`STEPS`].
const CLASSES: usize = 8;
/// Number of states; with it an index is below 256 and needs no check. Half of them are not used.
const STATES: usize = 32;

/// Number of blocks of 128 code points, and the cost of their characters in parts of a token; in
/// order, up to U+3000. Means of `o200k_base` on texts of these scripts, as [`COSTS`].
const BLOCK_RUNS: [(u8, u8); 36] = [
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
    (1, 6),   // Devanagari
    (1, 7),   // Bengali
    (1, 11),  // Gurmukhi
    (1, 7),   // Gujarati
    (1, 20),  // Odia
    (1, 7),   // Tamil
    (1, 9),   // Telugu
    (2, 7),   // Kannada, Malayalam
    (1, 11),  // Sinhala
    (1, 7),   // Thai
    (1, 33),  // Lao
    (2, 27),  // Tibetan
    (1, 10),  // Burmese
    (1, 6),   // Georgian
    (13, 36), // with Amharic
    (1, 11),  // Khmer
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

/// Number of blocks below U+3000.
const BLOCKS: usize = 96;

/// Returns the cost of a character beyond ASCII in parts of a token.
fn wide_cost(c: char) -> u8 {
    match u32::from(c) {
        // Letters of few languages.
        0x450..0x480 => 16,
        // Vowel signs of Hebrew and Arabic, which `o200k_base` seldom joins to a letter: 1.15
        // tokens each in chapters 21 to 80 of the Quran, 1.5 in three vowelled verses in Hebrew.
        0x591..0x5C8 | 0x64B..0x660 | 0x670 | 0x6D6..0x6EE => 19,
        code @ 0..0x3000 => {
            BLOCK_COSTS.get(int::to_usize(u64::from(code >> 7))).copied().unwrap_or(0)
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

/// For each state, and in it for each class, the cost of the character, and the index of the next
/// state's first class.
static STEPS: [(u8, u8); STATES * CLASSES] = build_steps();
/// Classes of the ASCII characters.
static ASCII_CLASSES: [u8; 128] = build_classes();
/// Costs of the characters of each block below U+3000.
static BLOCK_COSTS: [u8; BLOCKS] = build_block_costs();

#[expect(clippy::as_conversions, clippy::indexing_slicing, reason = "evaluated by rustc")]
const fn build_steps() -> [(u8, u8); STATES * CLASSES] {
    let mut table = [(0, 0); STATES * CLASSES];
    let mut at = 0;
    while at < (STATE_WIDE as usize + 1) * CLASSES {
        let (row, next) = next_state((at / CLASSES) as u8, (at % CLASSES) as u8);
        table[at] = (COSTS[row as usize][at % CLASSES], next * CLASSES as u8);
        at += 1;
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

#[expect(clippy::as_conversions, clippy::indexing_slicing, reason = "evaluated by rustc")]
const fn build_block_costs() -> [u8; BLOCKS] {
    let mut table = [0; BLOCKS];
    let (mut at, mut run, mut end) = (0, 0, 0);
    while at < BLOCKS {
        while at == end {
            end += BLOCK_RUNS[run].0 as usize;
            run += 1;
        }
        table[at] = BLOCK_RUNS[run - 1].1;
        at += 1;
    }
    table
}

/// Adds up the cost of texts that are read one behind the other.
#[derive(Clone)]
pub struct TokenMeter {
    parts: u64,
    /// Index in [`STEPS`] of the state's first class.
    at: u8,
}

impl Default for TokenMeter {
    fn default() -> Self {
        Self::from_state(STATE_START)
    }
}

impl TokenMeter {
    const fn from_state(state: u8) -> Self {
        Self { parts: 0, at: state * 8 }
    }

    /// Reads a text. The cost does not depend on how a longer text is divided.
    pub fn push_text(&mut self, text: &str) {
        let Self { mut parts, mut at } = *self;
        for (offset, byte) in text.bytes().enumerate() {
            if let Some(class) = ASCII_CLASSES.get(usize::from(byte)) {
                let step = STEPS.get(usize::from(at | class)).copied().unwrap_or_default();
                parts += u64::from(step.0);
                at = step.1;
            } else if byte >= 0xC0 {
                let c = text.get(offset..).and_then(|rest| rest.chars().next());
                parts += u64::from(c.map_or(0, wide_cost));
                at = STATE_WIDE * 8;
            }
        }
        *self = Self { parts, at };
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
/// A text never costs less than its beginning. A text costs about as much as its halves together:
/// the difference is below four tokens.
#[must_use]
pub fn estimate_quarter_tokens(text: &str) -> u64 {
    let mut meter = TokenMeter::default();
    meter.push_text(text);
    meter.quarter_tokens()
}

/// Estimates the cost of a text and of one space or line end behind it, in quarter tokens.
///
/// For texts that are joined by spaces or line ends, the sum of these costs is at least the cost of
/// the joined text, with or without a space or line end behind it.
#[must_use]
pub fn estimate_line_quarters(text: &str) -> u64 {
    let mut meter = TokenMeter::from_state(STATE_SPACE);
    meter.push_text(text);
    meter.push_char('\n');
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
/// assert_eq!(tokens::estimate("a few words"), 3);
/// assert_eq!(tokens::estimate("\u{6f22}\u{5b57}"), 2);
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

/// Most quarter tokens by which an end of a text costs more than its share of the whole text.
const END_MARGIN: u64 = 6;

/// Returns an end of a text, in whole characters, that costs at most `quarters_max` quarter tokens;
/// it is at most four tokens shorter than the longest.
#[must_use]
pub fn take_end(text: &str, quarters_max: u64) -> &str {
    let total = estimate_quarter_tokens(text);
    if total <= quarters_max {
        return text;
    }
    let mut meter = TokenMeter::default();
    for (at, c) in text.char_indices() {
        if total + END_MARGIN <= quarters_max + meter.quarter_tokens() {
            return text.get(at..).unwrap_or_default();
        }
        meter.push_char(c);
    }
    ""
}

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests {
    use alloc::{format, string::String, vec, vec::Vec};

    use super::*;

    /// One character of each class, each block of costs that differs, and letters in runs.
    const ALPHABET: [char; 11] =
        ['a', 'B', '7', ' ', '\n', '(', '.', 'k', '\u{e9}', '\u{4f60}', '\u{1f600}'];

    /// Calls `check` with all texts of up to `length` characters of [`ALPHABET`].
    fn each_text(length: usize, check: &mut dyn FnMut(&str)) {
        let mut texts = vec![String::new()];
        while let Some(text) = texts.pop() {
            check(&text);
            if text.chars().count() < length {
                texts.extend(ALPHABET.map(|c| format!("{text}{c}")));
            }
        }
    }

    /// Words, numbers, capitals and lines of several lengths, whose runs reach every state.
    fn long_texts() -> Vec<String> {
        let words =
            ["abcdefghi", "AB", "ABC", "Abcd", "12345", "k", "x-y", "{\"a\":1}", "\u{e9}t\u{e9}"];
        let mut texts = Vec::new();
        for left in words {
            for between in ["", " ", "\n", ", ", "_"] {
                texts.extend(words.map(|right| format!("{left}{between}{right}")));
            }
        }
        texts
    }

    #[test]
    fn no_byte_costs_more_than_the_greatest_cost() {
        let wide = BLOCK_RUNS.iter().map(|(_, cost)| cost / 2);
        let most = COSTS.as_flattened().iter().copied().chain(wide).max().unwrap_or(0);
        assert_eq!(u64::from(most).div_ceil(QUARTER), BYTE_QUARTERS_MAX);
    }

    #[test]
    fn a_word_costs_most_at_its_beginning() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("a"), 1);
        assert_eq!(estimate_quarter_tokens("hello"), 4);
        assert_eq!(estimate_quarter_tokens("hello hello"), 9);
        assert_eq!(estimate(&"x".repeat(400)), 100);
    }

    #[test]
    fn digits_capitals_and_data_cost_more_than_words_of_their_length() {
        let words = "weather reports for the northern region";
        for data in
            ["2026-01-02T03:04:05", "9f86d081884c7d65", "Zm9vYmFyIGJheiBx", "[{\"a\":[1,2]}]"]
        {
            let words = estimate(&words[..data.len()]);
            assert!(estimate(data) >= 2 * words, "{data}: {}, {words}", estimate(data));
        }
    }

    #[test]
    fn a_character_beyond_ascii_costs_by_its_block() {
        let parts = |c: char| {
            let mut meter = TokenMeter::default();
            meter.push_char(c);
            meter.parts
        };
        // Thai, Amharic, Burmese, an operator, Chinese, Korean, an emoji, a rare ideograph.
        let costs = [
            '\u{e01}',
            '\u{1200}',
            '\u{1000}',
            '\u{2200}',
            '\u{4f60}',
            '\u{ac00}',
            '\u{1f600}',
            '\u{20bb7}',
        ];
        assert_eq!(costs.map(parts), [7, 36, 10, 40, 14, 12, 28, 36]);
        // The first and last character of runs of blocks.
        assert_eq!(['\u{80}', '\u{17f}', '\u{180}', '\u{2ff}'].map(parts), [12, 12, 24, 24]);
        assert_eq!(['\u{2fff}', '\u{3000}', '\u{30ff}', '\u{3100}'].map(parts), [28, 14, 14, 36]);
        assert_eq!(['\u{44f}', '\u{450}', '\u{47f}', '\u{480}'].map(parts), [5, 16, 16, 16]);
        let blocks: usize = BLOCK_RUNS.iter().map(|(count, _)| usize::from(*count)).sum();
        assert_eq!(blocks, BLOCKS);
    }

    #[test]
    fn the_cost_of_joined_lines_is_at_most_the_sum_of_their_costs() {
        for row in COSTS {
            assert!(row[4] >= row[3] && u32::from(row[4]) <= 4 * LINE_END_QUARTERS);
        }
        let (space, line) = (COSTS[6], COSTS[7]);
        assert!(space.iter().zip(line).all(|(space, line)| *space >= line));
        let texts = long_texts();
        for left in &texts {
            for right in texts.iter().step_by(7) {
                let sum = estimate_line_quarters(left) + estimate_line_quarters(right);
                for joined in [format!("{left} {right}\n"), format!("{left}\n{right}")] {
                    assert!(estimate_quarter_tokens(&joined) <= sum, "{joined}");
                }
            }
        }
    }

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(
            truncate_to_tokens("\u{4f60}\u{597d}\u{4e16}\u{754c}", 3),
            "\u{4f60}\u{597d}\u{4e16}"
        );
        assert_eq!(truncate_to_tokens("\u{1f600}\u{1f600}", 3), "\u{1f600}");
        assert_eq!(truncate_to_tokens("abc", 0), "");
        assert_eq!(truncate_to_tokens("abc", u32::MAX), "abc");
        assert_eq!(take_end("\u{1f600}\u{1f600}", 13), "\u{1f600}");
        assert_eq!(take_end("abc", 0), "");
    }

    #[test]
    fn a_sum_beyond_the_range_saturates() {
        assert_eq!(tokens_from_quarters(u64::MAX), u32::MAX);
        assert_eq!(tokens_from_quarters(5), 2);
    }

    #[test]
    fn a_beginning_never_costs_more_than_the_whole_text() {
        // Goal: the contract of `truncate_to_tokens`. Method: all texts of up to 5 characters from
        // an alphabet with a character of each class.
        each_text(5, &mut |text| {
            let whole = estimate_quarter_tokens(text);
            let mut chars = text.chars();
            chars.next_back();
            assert!(estimate_quarter_tokens(chars.as_str()) <= whole, "{text:?}");
            assert_eq!(whole == 0, text.is_empty());
        });
        for text in long_texts() {
            for max in 0..=8 {
                let kept = truncate_to_tokens(&text, max);
                assert!(text.starts_with(kept) && estimate(kept) <= max);
                if let Some(next) = text[kept.len()..].chars().next() {
                    assert!(estimate(&format!("{kept}{next}")) > max);
                }
            }
        }
    }

    #[test]
    fn an_end_fits_and_is_nearly_the_longest() {
        let check = |text: &str, max: u64| {
            let end = take_end(text, max);
            assert!(text.ends_with(end) && estimate_quarter_tokens(end) <= max, "{text:?} {max}");
            let mut ends = text.char_indices().map(|(at, _)| &text[at..]);
            let longest = ends.find(|end| estimate_quarter_tokens(end) <= max);
            let lost = longest
                .map_or(0, estimate_quarter_tokens)
                .saturating_sub(estimate_quarter_tokens(end));
            assert!(lost <= 16, "{text:?} {max}: {lost}");
        };
        each_text(4, &mut |text| (0..=12).for_each(|max| check(text, max)));
        for text in long_texts() {
            (0..=40).for_each(|max| check(&text, max));
        }
    }

    #[test]
    fn a_meter_does_not_depend_on_how_a_text_is_divided() {
        for text in long_texts() {
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                let mut meter = TokenMeter::default();
                meter.push_text(&text[..at]);
                meter.push_text(&text[at..]);
                assert_eq!(meter.quarter_tokens(), estimate_quarter_tokens(&text));
            }
        }
    }
}
