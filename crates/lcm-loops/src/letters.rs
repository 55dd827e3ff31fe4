//! A text as one run of letters and digits, and where in it a piece may begin.
//!
//! Case and everything between letters and digits are left out, except that a point stays between
//! two digits: `parse_config`, `parseConfig` and "parse config" are the same, 1.23 and 12.3 are
//! not. Something begins with a word, a run of digits, a part with a capital and each ideograph.
//! Not here: looking a piece up.

use alloc::{string::String, vec::Vec};

use crate::{cjk::is_cjk, num};

/// Letters and digits of a text, and its boundaries.
#[derive(Debug, Default)]
pub struct Folded {
    /// The letters and digits.
    pub text: String,
    /// Places where something begins, ascending.
    pub starts: Vec<u32>,
    last: Kind,
    /// Whether something was left out since the last letter.
    gap: bool,
    /// Capitals in a row at the end.
    capitals: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Kind {
    #[default]
    None,
    Lower,
    Upper,
    Digit,
    /// Each is a word of its own.
    Ideograph,
}

impl Folded {
    /// Folds a text.
    #[inline(never)]
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut this = Self { text: String::with_capacity(text.len()), ..Self::default() };
        for c in text.chars() {
            this.push(c);
        }
        this
    }

    /// Appends a character.
    fn push(&mut self, c: char) {
        let kind = match c {
            'a'..='z' => Kind::Lower,
            'A'..='Z' => Kind::Upper,
            '0'..='9' => Kind::Digit,
            _ if c.is_ascii() => Kind::None,
            '\u{ff10}'..='\u{ff19}' => Kind::Digit,
            _ if !c.is_alphanumeric() => Kind::None,
            _ if is_cjk(c) => Kind::Ideograph,
            _ if c.is_uppercase() => Kind::Upper,
            _ => Kind::Lower,
        };
        if kind == Kind::None {
            self.gap = true;
            return;
        }
        let same = kind == self.last && kind != Kind::Ideograph;
        let goes_on = same || (self.last == Kind::Upper && kind == Kind::Lower);
        if self.gap && kind == Kind::Digit && self.last == Kind::Digit {
            self.text.push('.');
        }
        if self.gap || !goes_on {
            self.starts.push(num::to_u32(self.text.len()));
            self.capitals = 0;
        } else if kind == Kind::Lower && self.capitals > 1 {
            // `HTTPServer`: the last capital begins a part.
            self.starts.push(num::to_u32(self.text.len() - 1));
            order_last(&mut self.starts);
        }
        self.capitals = if kind == Kind::Upper && c.is_ascii() { self.capitals + 1 } else { 0 };
        match c {
            '\u{ff10}'..='\u{ff19}' => {
                let digit = u32::from(c) - 0xff10;
                self.text.extend(char::from_digit(digit, 10));
            }
            _ if c.is_ascii() => self.text.push(c.to_ascii_lowercase()),
            _ => self.text.extend(c.to_lowercase()),
        }
        (self.last, self.gap) = (kind, false);
    }
}

/// Keeps the places ascending and distinct after one that lies before the last was added.
fn order_last(starts: &mut Vec<u32>) {
    let length = starts.len();
    if let Some([before, last]) = starts.get_mut(length.saturating_sub(2)..)
        && *last <= *before
    {
        starts.pop();
    }
}
