//! Folds a text to one run of letters and digits, with the boundaries at which words begin.
//!
//! Input: a text. Output: its letters in lower case and its digits, and byte offsets of boundaries.
//! All other characters are removed; if they stand between two digits, one point replaces them. So
//! `parse_config`, `parseConfig` and "parse config" are equal, 1.23 and 12.3 are not. A boundary is
//! before each word, run of digits, run of capitals, and ideograph. If lower-case letters follow a
//! run of ASCII capitals, a boundary is also before the last capital. The verifier of summaries
//! searches folded texts.

use alloc::{string::String, vec::Vec};

use crate::{cjk::is_cjk, int, lower_case::lower_char};

/// A folded text and its boundaries.
#[derive(Debug, Default)]
pub struct FoldedText {
    /// The letters and digits, with a point where characters between two digits were removed.
    pub text: String,
    /// Byte offsets of the boundaries in `text`, ascending.
    pub starts: Vec<u32>,
    /// Kind of the last letter or digit.
    last: CharKind,
    /// Whether characters were removed since the last letter or digit.
    has_gap: bool,
    /// Number of consecutive ASCII capitals at the end.
    capitals: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum CharKind {
    /// Neither letter nor digit; the character is removed.
    #[default]
    None,
    Lower,
    Upper,
    Digit,
    /// An ideograph, which is a word of its own.
    Ideograph,
}

impl FoldedText {
    /// Folds a text.
    #[inline(never)]
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut this = Self { text: String::with_capacity(text.len()), ..Self::default() };
        for c in text.chars() {
            this.push_char(c);
        }
        this
    }

    /// Appends a character.
    fn push_char(&mut self, c: char) {
        let kind = match c {
            'a'..='z' => CharKind::Lower,
            'A'..='Z' => CharKind::Upper,
            '0'..='9' => CharKind::Digit,
            _ if c.is_ascii() => CharKind::None,
            '\u{ff10}'..='\u{ff19}' => CharKind::Digit,
            _ if !c.is_alphanumeric() => CharKind::None,
            _ if is_cjk(c) => CharKind::Ideograph,
            _ if c.is_uppercase() => CharKind::Upper,
            _ => CharKind::Lower,
        };
        if kind == CharKind::None {
            self.has_gap = true;
            return;
        }
        let same = kind == self.last && kind != CharKind::Ideograph;
        let goes_on = same || (self.last == CharKind::Upper && kind == CharKind::Lower);
        if self.has_gap && kind == CharKind::Digit && self.last == CharKind::Digit {
            self.text.push('.');
        }
        if self.has_gap || !goes_on {
            self.starts.push(int::to_u32(self.text.len()));
            self.capitals = 0;
        } else if kind == CharKind::Lower && self.capitals > 1 {
            // In `HTTPServer` the last capital of the run begins a word.
            self.starts.push(int::to_u32(self.text.len() - 1));
            keep_starts_sorted(&mut self.starts);
        }
        self.capitals = if kind == CharKind::Upper && c.is_ascii() { self.capitals + 1 } else { 0 };
        match c {
            '\u{ff10}'..='\u{ff19}' => {
                let digit = u32::from(c) - 0xff10;
                self.text.extend(char::from_digit(digit, 10));
            }
            _ if c.is_ascii() => self.text.push(c.to_ascii_lowercase()),
            _ => self.text.extend(lower_char(c)),
        }
        (self.last, self.has_gap) = (kind, false);
    }
}

/// Removes the last offset unless it is greater than the offset before it.
fn keep_starts_sorted(starts: &mut Vec<u32>) {
    let length = starts.len();
    if let Some([before, last]) = starts.get_mut(length.saturating_sub(2)..)
        && *last <= *before
    {
        starts.pop();
    }
}
