//! The text of an exploration, written within a bound of tokens.
//!
//! In: facts in the order of their use to a reader. Out: lines without control characters. What
//! does not fit is cut: a text ends with `...`, a list with how many more there are. Not here: what
//! the facts are.

use alloc::{string::String, vec::Vec};
use core::fmt::Write as _;

use super::payload_text::PayloadText;
use crate::base::{int, tokens};

/// Quarter tokens that a list keeps for ` and N more`.
const MORE_RESERVE: u64 = 18;
/// Quarter tokens of one item of a list, at most and, where there are many, at least.
const ITEM_MAX: u64 = 120;
const ITEM_MIN: u64 = 44;

/// Appends `text` with its whitespace runs as one space, at most `max` quarter tokens of it, `...`
/// for the rest. Returns the quarter tokens appended.
pub(super) fn push_flat(out: &mut String, text: &str, max: u64) -> u64 {
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
        used += u64::from(tokens::char_quarter_tokens(c));
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
pub(super) fn push_number(out: &mut String, number: u64) {
    // Writing to a text cannot fail.
    let _ = write!(out, "{number}");
}

/// The first items of a list, and how many there are.
pub(super) struct OutlineList {
    items: Vec<String>,
    /// How many there are; those of one that is kept elsewhere are counted there.
    pub(super) total: u64,
    max: usize,
}

impl OutlineList {
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
            push_number(&mut item, line);
            item.push_str(": ");
        }
        push_flat(&mut item, text, ITEM_MAX);
        if let Some(count) = count {
            item.push_str(" (");
            push_number(&mut item, count);
            item.push(')');
        }
        self.items.push(item);
    }
}

/// A text in progress.
pub(super) struct OutlineWriter {
    text: String,
    left: u64,
}

impl OutlineWriter {
    /// A text of at most so many tokens.
    pub(super) fn new(tokens_max: u32) -> Self {
        Self { text: String::new(), left: u64::from(tokens_max) * 4 }
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Quarter tokens that are left.
    pub(super) const fn quarters_left(&self) -> u64 {
        self.left
    }

    /// Text of the exploration itself: whole, or nothing when it does not fit.
    pub(super) fn push_text(&mut self, text: &str) {
        if let Some(left) = self.left.checked_sub(tokens::estimate_quarter_tokens(text)) {
            self.left = left;
            self.text.push_str(text);
        }
    }

    /// A number.
    pub(super) fn push_number(&mut self, value: u64) {
        let mut digits = String::new();
        push_number(&mut digits, value);
        self.push_text(&digits);
    }

    /// A number of things.
    pub(super) fn push_count(&mut self, value: u64, what: &str) {
        self.push_number(value);
        self.push_text(" ");
        self.push_text(what);
        if value != 1 {
            self.push_text("s");
        }
    }

    /// The first line, and that not everything was read.
    pub(super) fn push_title(&mut self, payload: &PayloadText<'_>, title: &str) {
        self.push_text(title);
        self.push_text(", ");
        self.push_count(payload.lines, "line");
        self.push_text(", ");
        self.push_count(payload.bytes, "byte");
        if !payload.is_whole {
            self.push_text("\nPartial: read were the first ");
            self.push_number(int::to_u64(payload.head.len()));
            self.push_text(" and the last ");
            self.push_count(int::to_u64(payload.tail.len()), "byte");
        }
    }

    /// At most `max` quarter tokens of a text of the payload, after a label that begins a line.
    pub(super) fn push_quote(&mut self, label: &str, text: &str, max: u64) {
        if !text.trim().is_empty() {
            self.push_text(label);
            self.left -= push_flat(&mut self.text, text, max.min(self.left));
        }
    }

    /// How many there are and the first of them, in at most `max` quarter tokens; nothing of an
    /// empty list. With `,` the list is one line.
    pub(super) fn push_list(&mut self, what: &str, list: &OutlineList, separator: &str, max: u64) {
        if list.total == 0 {
            return;
        }
        self.push_text("\n");
        self.push_count(list.total, what);
        self.push_text(":");
        let floor = self.left.saturating_sub(max);
        let fair = (self.left - floor) / int::to_u64(list.items.len().max(1));
        let mut rest = list.total;
        let mut piece = String::new();
        for item in &list.items {
            piece.clear();
            piece.push_str(if separator == ", " && rest == list.total { " " } else { separator });
            push_flat(&mut piece, item, fair.clamp(ITEM_MIN, ITEM_MAX));
            let reserve = if rest == 1 { 0 } else { MORE_RESERVE };
            if tokens::estimate_quarter_tokens(&piece) + reserve + floor > self.left {
                break;
            }
            self.push_text(&piece);
            rest -= 1;
        }
        if rest > 0 {
            self.push_text(" and ");
            self.push_number(rest);
            self.push_text(" more");
        }
    }
}
