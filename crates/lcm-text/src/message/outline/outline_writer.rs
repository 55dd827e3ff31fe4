//! Writes an outline within a token limit.
//!
//! In: facts that the modules of the formats find, the most useful first. Out: lines without
//! control characters. A quoted text that does not fit ends with `...`; a list that does not fit
//! ends with the number of further items.

use alloc::{format, string::String, vec::Vec};
use core::fmt::Write as _;

use super::payload_text::PayloadText;
use crate::base::{int, tokens::TokenMeter};

/// Quarter tokens that a list reserves for ` and N more`.
const MORE_RESERVE: u64 = 30;
/// Most quarter tokens of one item of a list.
const ITEM_MAX: u64 = 120;
/// Fewest quarter tokens to which a long list shortens its items.
const ITEM_MIN: u64 = 68;
/// Most quarter tokens of `...` behind a text.
const ELLIPSIS_MAX: u64 = 7;

/// A text and its cost.
#[derive(Default)]
pub(super) struct MeteredText {
    text: String,
    meter: TokenMeter,
}

impl MeteredText {
    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Returns the cost in quarter tokens.
    pub(super) const fn quarter_tokens(&self) -> u64 {
        self.meter.quarter_tokens()
    }

    /// Appends a text.
    pub(super) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.meter.push_text(text);
    }

    /// Appends at most `max` quarter tokens of a text. Each run of whitespace and control
    /// characters becomes one space; such a run at the start or the end is removed.
    ///
    /// A text that does not fit ends with `...`. With `max` below [`ELLIPSIS_MAX`], nothing is
    /// appended.
    pub(super) fn push_flat(&mut self, text: &str, max: u64) {
        if max < ELLIPSIS_MAX {
            return;
        }
        let max = self.quarter_tokens() + max;
        let start = self.text.len();
        // Length and cost of the longest beginning that leaves room for `...`.
        let mut cut = (start, self.meter.clone());
        let mut blank = false;
        for c in text.chars() {
            if c.is_whitespace() || c.is_control() {
                blank = self.text.len() > start;
                continue;
            }
            if blank {
                self.push_text(" ");
                blank = false;
            }
            self.push_text(c.encode_utf8(&mut [0; 4]));
            let used = self.quarter_tokens();
            if used > max {
                self.text.truncate(cut.0);
                self.meter = cut.1;
                return self.push_text("...");
            }
            if used + ELLIPSIS_MAX <= max {
                cut = (self.text.len(), self.meter.clone());
            }
        }
    }
}

/// Appends a number in decimal digits.
pub(super) fn push_number(out: &mut String, number: u64) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{number}");
}

/// The first items of a list, and the number of all items.
pub(super) struct OutlineList {
    items: Vec<String>,
    /// Number of all items. A caller that pushes only the first items sets this field.
    pub(super) total: u64,
    /// Most items that are kept.
    max: usize,
}

impl OutlineList {
    /// Creates an empty list that keeps the first `max` items.
    pub(super) const fn new(max: usize) -> Self {
        Self { items: Vec::new(), total: 0, max }
    }

    /// Adds an item: a line number from 1 if given, a text, and a count in parentheses if given. A
    /// full list only counts the item.
    pub(super) fn push(&mut self, line: Option<u64>, text: &str, count: Option<u64>) {
        self.total += 1;
        if self.items.len() >= self.max {
            return;
        }
        let mut item = MeteredText::default();
        if let Some(line) = line {
            item.push_text(&format!("{line}: "));
        }
        item.push_flat(text, ITEM_MAX);
        if let Some(count) = count {
            item.push_text(&format!(" ({count})"));
        }
        self.items.push(item.into_text());
    }
}

/// Writer of an outline.
pub(super) struct OutlineWriter {
    out: MeteredText,
    /// Most quarter tokens of the outline.
    max: u64,
}

impl OutlineWriter {
    /// Creates a writer of at most `tokens_max` tokens.
    pub(super) fn new(tokens_max: u32) -> Self {
        Self { out: MeteredText::default(), max: u64::from(tokens_max) * 4 }
    }

    /// Returns the outline.
    pub(super) fn into_text(self) -> String {
        self.out.into_text()
    }

    /// Returns the remaining quarter tokens.
    pub(super) const fn quarters_left(&self) -> u64 {
        self.max - self.out.quarter_tokens()
    }

    /// Appends fixed text of the outline; a text that does not fit is omitted.
    pub(super) fn push_text(&mut self, text: &str) {
        let mut meter = self.out.meter.clone();
        meter.push_text(text);
        if meter.quarter_tokens() <= self.max {
            self.out.meter = meter;
            self.out.text.push_str(text);
        }
    }

    /// Appends a number.
    pub(super) fn push_number(&mut self, value: u64) {
        let mut digits = String::new();
        push_number(&mut digits, value);
        self.push_text(&digits);
    }

    /// Appends a number and a noun, with a plural `s` unless the number is 1.
    pub(super) fn push_count(&mut self, value: u64, noun: &str) {
        self.push_number(value);
        self.push_text(" ");
        self.push_text(noun);
        if value != 1 {
            self.push_text("s");
        }
    }

    /// Appends the title line; for a partial payload also a line with the numbers of bytes that
    /// were read.
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

    /// Appends a label and at most `max` quarter tokens of a text of the payload; nothing for a
    /// blank text.
    pub(super) fn push_quote(&mut self, label: &str, text: &str, max: u64) {
        if !text.trim().is_empty() {
            self.push_text(label);
            self.out.push_flat(text, max.min(self.quarters_left()));
        }
    }

    /// Appends the number of items, a noun and the first items; nothing for an empty list. The
    /// items take at most `max` quarter tokens.
    ///
    /// `separator` comes before each item. With the separator `, `, all items are on the line of
    /// the noun.
    pub(super) fn push_list(&mut self, noun: &str, list: &OutlineList, separator: &str, max: u64) {
        if list.total == 0 {
            return;
        }
        self.push_text("\n");
        self.push_count(list.total, noun);
        self.push_text(":");
        let left = self.quarters_left();
        let floor = left.saturating_sub(max);
        let fair = (left - floor) / int::to_u64(list.items.len().max(1));
        let mut rest = list.total;
        for item in &list.items {
            let mut piece = MeteredText::default();
            piece.push_text(if separator == ", " && rest == list.total { " " } else { separator });
            piece.push_flat(item, fair.clamp(ITEM_MIN, ITEM_MAX));
            let reserve = if rest == 1 { 0 } else { MORE_RESERVE };
            if piece.quarter_tokens() + reserve + floor > self.quarters_left() {
                break;
            }
            self.push_text(&piece.into_text());
            rest -= 1;
        }
        if rest > 0 {
            self.push_text(" and ");
            self.push_number(rest);
            self.push_text(" more");
        }
    }
}
