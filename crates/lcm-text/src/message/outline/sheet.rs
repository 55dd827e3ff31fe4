//! The text of an exploration, written within a bound of tokens.
//!
//! In: facts in the order of their use to a reader. Out: lines without control characters. What
//! does not fit is cut: a text ends with `...`, a list with how many more there are. Not here: what
//! the facts are.

use alloc::{string::String, vec::Vec};
use core::fmt::Write as _;

use super::Payload;
use crate::base::{int, tokens};

/// Quarter tokens that a list keeps for ` and N more`.
const MORE: u64 = 18;
/// Quarter tokens of one item of a list, at most and, where there are many, at least.
const ITEM_MAX: u64 = 120;
const ITEM_MIN: u64 = 44;

/// Appends `text` with its whitespace runs as one space, at most `max` quarter tokens of it, `...`
/// for the rest. Returns the quarter tokens appended.
pub(super) fn flat(out: &mut String, text: &str, max: u64) -> u64 {
    if max < 3 {
        return 0;
    }
    let (mut used, mut kept, mut keep) = (0, 0, out.len());
    let mut blank = true;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            if blank {
                continue;
            }
            blank = true;
        } else {
            blank = false;
        }
        let c = if blank { ' ' } else { c };
        used += u64::from(tokens::weight(c));
        if used > max {
            out.truncate(keep);
            out.push_str("...");
            return kept + 3;
        }
        out.push(c);
        if used + 3 <= max {
            (kept, keep) = (used, out.len());
        }
    }
    if blank && used > 0 {
        out.pop();
        used -= 1;
    }
    used
}

/// Appends a number.
pub(super) fn number(out: &mut String, number: u64) {
    // Writing to a text cannot fail.
    let _ = write!(out, "{number}");
}

/// The first items of a list, and how many there are.
pub(super) struct List {
    items: Vec<String>,
    /// How many there are; those of one that is kept elsewhere are counted there.
    pub(super) total: u64,
    max: usize,
}

impl List {
    /// An empty list that keeps `max` items.
    pub(super) const fn new(max: usize) -> Self {
        Self { items: Vec::new(), total: 0, max }
    }

    /// One more item: a text, after the number of its line (from 1) and with a number behind it.
    pub(super) fn push(&mut self, line: Option<u64>, text: &str, count: Option<u64>) {
        self.total += 1;
        if self.items.len() >= self.max {
            return;
        }
        let mut item = String::new();
        if let Some(line) = line {
            number(&mut item, line);
            item.push_str(": ");
        }
        flat(&mut item, text, ITEM_MAX);
        if let Some(count) = count {
            item.push_str(" (");
            number(&mut item, count);
            item.push(')');
        }
        self.items.push(item);
    }
}

/// A text in progress.
pub(super) struct Sheet {
    text: String,
    left: u64,
}

impl Sheet {
    /// A text of at most so many tokens.
    pub(super) fn new(tokens_max: u32) -> Self {
        Self { text: String::new(), left: u64::from(tokens_max) * 4 }
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Quarter tokens that are left.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// Text of the exploration itself: whole, or nothing when it does not fit.
    pub(super) fn put(&mut self, text: &str) {
        if let Some(left) = self.left.checked_sub(tokens::quarters(text)) {
            self.left = left;
            self.text.push_str(text);
        }
    }

    /// A number.
    pub(super) fn number(&mut self, value: u64) {
        let mut digits = String::new();
        number(&mut digits, value);
        self.put(&digits);
    }

    /// A number of things.
    pub(super) fn count(&mut self, value: u64, what: &str) {
        self.number(value);
        self.put(" ");
        self.put(what);
        if value != 1 {
            self.put("s");
        }
    }

    /// The first line, and that not everything was read.
    pub(super) fn title(&mut self, payload: &Payload<'_>, title: &str) {
        self.put(title);
        self.put(", ");
        self.count(payload.lines, "line");
        self.put(", ");
        self.count(payload.bytes, "byte");
        if !payload.is_whole {
            self.put("\nPartial: read were the first ");
            self.number(int::to_u64(payload.head.len()));
            self.put(" and the last ");
            self.count(int::to_u64(payload.tail.len()), "byte");
        }
    }

    /// At most `max` quarter tokens of a text of the payload, after a label that begins a line.
    pub(super) fn quote(&mut self, label: &str, text: &str, max: u64) {
        if !text.trim().is_empty() {
            self.put(label);
            self.left -= flat(&mut self.text, text, max.min(self.left));
        }
    }

    /// How many there are and the first of them, in at most `max` quarter tokens; nothing of an
    /// empty list. With `,` the list is one line.
    pub(super) fn list(&mut self, what: &str, list: &List, separator: &str, max: u64) {
        if list.total == 0 {
            return;
        }
        self.put("\n");
        self.count(list.total, what);
        self.put(":");
        let floor = self.left.saturating_sub(max);
        let fair = (self.left - floor) / int::to_u64(list.items.len().max(1));
        let mut rest = list.total;
        let mut piece = String::new();
        for item in &list.items {
            piece.clear();
            piece.push_str(if separator == ", " && rest == list.total { " " } else { separator });
            flat(&mut piece, item, fair.clamp(ITEM_MIN, ITEM_MAX));
            let reserve = if rest == 1 { 0 } else { MORE };
            if tokens::quarters(&piece) + reserve + floor > self.left {
                break;
            }
            self.put(&piece);
            rest -= 1;
        }
        if rest > 0 {
            self.put(" and ");
            self.number(rest);
            self.put(" more");
        }
    }
}
