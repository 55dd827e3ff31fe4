//! The source as one run of letters and digits, and where in it a piece may begin.
//!
//! Case and everything between letters and digits are left out, except that a point stays between
//! two digits: `parse_config`, `parseConfig` and "parse config" are the same, 1.23 and 12.3 are
//! not. A piece occurs when it stands there from one boundary to another: the beginning or end of
//! a word, of a run of digits, or of a part with a capital.

use alloc::{string::String, vec::Vec};
use core::hash::BuildHasherDefault;

use hashbrown::HashMap;

use crate::{
    extract::terms::{Mixed, hash},
    num, tokens,
};

/// Bytes by which the places of a piece are found.
const KEY_BYTES: usize = 3;

/// Letters and digits of a text, and its boundaries.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) text: String,
    /// Places where something begins, ascending.
    starts: Vec<u32>,
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
    pub(super) fn of(text: &str) -> Self {
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
            _ if tokens::is_cjk(c) => Kind::Ideograph,
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

/// A folded source that can be asked for pieces.
#[derive(Debug)]
pub(super) struct Index {
    folded: Folded,
    /// By the first bytes from a boundary on: the last such boundary, one more than its number.
    heads: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    /// By boundary: the one before it with the same bytes.
    previous: Vec<u32>,
}

impl Index {
    /// Folds a source and finds its boundaries.
    pub(super) fn new(source: &str) -> Self {
        let folded = Folded::of(source);
        let mut heads: HashMap<u64, u32, BuildHasherDefault<Mixed>> = HashMap::default();
        let mut previous = Vec::with_capacity(folded.starts.len());
        for (start, number) in folded.starts.iter().zip(1u32..) {
            let from = num::to_usize(u64::from(*start));
            let bytes = folded.text.as_bytes().get(from..from.saturating_add(KEY_BYTES));
            let before = bytes.and_then(|bytes| heads.insert(hash(bytes), number));
            previous.push(before.unwrap_or(0));
        }
        Self { folded, heads, previous }
    }

    /// Whether a folded piece occurs from one boundary to another; pieces of fewer than three
    /// bytes are looked for nowhere and held to occur.
    pub(super) fn holds(&self, piece: &str) -> bool {
        self.find(piece, true)
    }

    /// Whether a folded piece occurs from a boundary on.
    pub(super) fn holds_beginning(&self, piece: &str) -> bool {
        self.find(piece, false)
    }

    fn find(&self, piece: &str, whole: bool) -> bool {
        let Some(key) = piece.as_bytes().get(..KEY_BYTES) else { return true };
        let text = self.folded.text.as_bytes();
        let mut next = self.heads.get(&hash(key)).copied().unwrap_or(0);
        while let Some(number) = next.checked_sub(1) {
            let at = num::to_usize(u64::from(number));
            let start = self.folded.starts.get(at).copied().unwrap_or(u32::MAX);
            let from = num::to_usize(u64::from(start));
            let end = from.saturating_add(piece.len());
            if text.get(from..end) == Some(piece.as_bytes()) && (!whole || self.ends(end)) {
                return true;
            }
            next = self.previous.get(at).copied().unwrap_or(0);
        }
        false
    }

    /// Whether something ends here.
    fn ends(&self, end: usize) -> bool {
        let text = self.folded.text.as_bytes();
        match text.get(end) {
            None | Some(b'.') => true,
            Some(_) => self.folded.starts.binary_search(&num::to_u32(end)).is_ok(),
        }
    }
}
