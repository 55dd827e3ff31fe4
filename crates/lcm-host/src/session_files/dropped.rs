//! Removes from lines what is no part of a message, and counts it for warnings.
//!
//! In: the bytes of a line, with its line end. Out: the rest of the line. Blank lines, byte-order
//! marks and carriage returns are dropped. Session files and files of messages use the same rules.

use serde_json::value::RawValue;

/// UTF-8 byte-order mark, which may begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Counts of dropped lines and characters of a file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DroppedCounts {
    blank_lines: usize,
    byte_order_marks: usize,
    carriage_returns: usize,
}

impl DroppedCounts {
    /// Removes the byte-order mark from the beginning of a file.
    pub fn strip_mark<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let stripped = bytes.strip_prefix(BYTE_ORDER_MARK);
        self.byte_order_marks += usize::from(stripped.is_some());
        stripped.unwrap_or(bytes)
    }

    /// Removes the end of a line; `None`: the line is blank, or has no bytes.
    pub fn strip_line<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let stripped = text.strip_suffix(b"\r");
        let rest = stripped.unwrap_or(text);
        if String::from_utf8_lossy(rest).trim().is_empty() {
            self.blank_lines += usize::from(!line.is_empty());
            return None;
        }
        self.carriage_returns += usize::from(stripped.is_some());
        Some(rest)
    }

    /// Adds the counts of another file.
    pub const fn add(&mut self, other: Self) {
        self.blank_lines += other.blank_lines;
        self.byte_order_marks += other.byte_order_marks;
        self.carriage_returns += other.carriage_returns;
    }

    /// Returns one line for each kind of what was dropped.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let counted = [
            (self.blank_lines, "blank line"),
            (self.byte_order_marks, "byte-order mark"),
            (self.carriage_returns, "carriage return"),
        ];
        let dropped = counted.iter().filter(|(count, _)| *count > 0);
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        dropped.map(|(count, what)| format!("dropped {count} {what}{}", plural(*count))).collect()
    }
}

/// Returns whether a line without a line end is a complete JSON object. Such a line is read, even
/// if its file may grow.
#[must_use]
pub fn is_whole_line(line: &[u8]) -> bool {
    let is_json = || serde_json::from_slice::<&RawValue>(line).is_ok();
    line.trim_ascii_end().ends_with(b"}") && is_json()
}
