//! Finds numbers that a source writes in words, in English and in Chinese characters.
//!
//! Input: the words of a source one after the other, and its text. Output: numbers for
//! `SourceNumbers`. The module `numbers` parses digits.

use alloc::vec::Vec;

const UNITS: [(&str, u128); 28] = [
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("dozen", 12),
];

const POWERS: [(&str, u128); 3] = [("hundred", 100), ("thousand", 1_000), ("million", 1_000_000)];

/// A reader of spelled numbers. Callers pass the words one by one.
#[derive(Default)]
pub(super) struct SpelledNumberReader {
    /// Value of the current number up to its last `thousand` or `million`.
    sum: u128,
    /// Value of the rest of the current number.
    partial_sum: u128,
    /// Finished numbers above 12, and hours; `true`: an hour, which is read only in Chinese.
    numbers: Vec<(u128, bool)>,
}

impl SpelledNumberReader {
    /// Reads the next word.
    pub(super) fn read_word(&mut self, word: &str) {
        if !word.bytes().any(|byte| byte == b'-') {
            return self.read_part(word);
        }
        for part in word.split('-') {
            self.read_part(part);
        }
    }

    /// Returns every number above 12 that the words and the Chinese characters of `text` spell, and
    /// every hour in Chinese. The flag is true for an hour.
    pub(super) fn finish(mut self, text: &str) -> Vec<(u128, bool)> {
        self.end_number();
        if !text.is_ascii() {
            read_chinese_numbers(text, &mut |value, is_hour| self.numbers.push((value, is_hour)));
        }
        self.numbers
    }

    fn read_part(&mut self, part: &str) {
        if !self.add_number_word(part) {
            self.end_number();
        }
    }

    /// Adds a word to the current number; `false`: the word is no part of a number.
    fn add_number_word(&mut self, word: &str) -> bool {
        if word.len() > 9 || !word.is_ascii() || word.len() < 3 {
            return false;
        }
        let initial = word.as_bytes().first().map(u8::to_ascii_lowercase);
        let is = |number_word: &str| {
            number_word.as_bytes().first().copied() == initial
                && number_word.eq_ignore_ascii_case(word)
        };
        if let Some((_, value)) = UNITS.iter().find(|(number_word, _)| is(number_word)) {
            let dozens = *value == 12 && self.partial_sum > 0;
            self.partial_sum =
                if dozens { self.partial_sum.saturating_mul(12) } else { self.partial_sum + value };
        } else if let Some((_, power)) = POWERS.iter().find(|(number_word, _)| is(number_word)) {
            self.partial_sum = self.partial_sum.max(1).saturating_mul(*power);
            if *power > 100 {
                self.sum = self.sum.saturating_add(self.partial_sum);
                self.partial_sum = 0;
            }
        } else {
            return is("and") && self.partial_sum >= 100;
        }
        self.partial_sum = self.partial_sum.min(1 << 60);
        true
    }

    /// Ends the current number.
    pub(super) fn end_number(&mut self) {
        let value = self.sum.saturating_add(self.partial_sum);
        if value > 12 {
            self.numbers.push((value, false));
        }
        (self.sum, self.partial_sum) = (0, 0);
    }
}

const HAN_DIGITS: &str = "\u{4e00}\u{4e8c}\u{4e09}\u{56db}\u{4e94}\u{516d}\u{4e03}\u{516b}\u{4e5d}";

fn read_chinese_numbers(text: &str, emit: &mut impl FnMut(u128, bool)) {
    // The sum, the last digit since the last power of ten, and whether a number is open.
    let (mut sum, mut digit, mut open) = (0u128, 0u128, false);
    for c in text.chars().chain([' ']) {
        let han_digits = if c.is_ascii() { "" } else { HAN_DIGITS };
        let digit_value = han_digits.chars().zip(1u128..).find(|(han, _)| *han == c);
        let power = match c {
            '\u{5341}' => 10,
            '\u{767e}' => 100,
            '\u{5343}' => 1_000,
            _ => 0,
        };
        match (digit_value, c) {
            (Some((_, value)), _) => (digit, open) = (value, true),
            (_, '\u{4e24}' | '\u{5169}') => (digit, open) = (2, true),
            _ if power > 0 => {
                sum = (sum + digit.max(1) * power).min(1 << 60);
                (digit, open) = (0, true);
            }
            (_, '\u{4e07}' | '\u{842c}') if open => {
                sum = ((sum + digit) * 10_000).min(1 << 60);
                digit = 0;
            }
            (_, '\u{96f6}') => {}
            _ => {
                let is_hour = matches!(c, '\u{70b9}' | '\u{9ede}' | '\u{65f6}' | '\u{6642}');
                if open && (is_hour || sum + digit > 12) {
                    emit(sum + digit, is_hour);
                }
                (sum, digit, open) = (0, 0, false);
            }
        }
    }
}
