//! Splits a text that streams by into lines, and very long lines into overlapping parts.
//!
//! Input: pieces of the text. Output: a call of a function for each line or part.

use alloc::string::String;
use lcm_text::base::int;

/// Bytes of an unfinished line after which its buffered part is searched. An expression that needs
/// the slow simulation is charged for a whole part, so parts must be small.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Bytes at the end of a part in which no match may begin: such a match begins in the next part,
/// which repeats these bytes. The next part also repeats as many bytes before them, as context.
const OVERLAP_BYTES: usize = 1 << 10;

/// A line, or a part of a very long line.
pub(super) struct TextLine<'l> {
    pub(super) text: &'l str,
    /// Byte of the text at which the line or part begins.
    pub(super) at: u64,
    /// Number of the line, from 1.
    pub(super) number: u64,
    /// A match may begin at `from` or later, and before `until`: bytes of `text`.
    pub(super) from: usize,
    pub(super) until: usize,
}

/// Splits a streamed text into lines.
pub(super) struct LineSplitter {
    /// Text of the current line that is still needed.
    pub(super) buffer: String,
    /// Byte of the text at which `buffer` begins.
    pub(super) at: u64,
    pub(super) number: u64,
    /// First byte of `buffer` at which a match may begin.
    pub(super) from: usize,
}

impl LineSplitter {
    /// Adds the next piece of text, and calls `each` for every complete line or part. Returns
    /// `false` as soon as `each` does.
    pub(super) fn split_text(
        &mut self,
        text: &str,
        each: &mut dyn FnMut(&TextLine<'_>) -> bool,
    ) -> bool {
        for piece in text.split_inclusive('\n') {
            self.buffer.push_str(piece);
            if piece.ends_with('\n') {
                if !self.close_line(each) {
                    return false;
                }
            } else if self.buffer.len() >= LINE_BYTES_MAX {
                let until = self.buffer.floor_char_boundary(self.buffer.len() - OVERLAP_BYTES);
                if !each(&self.current_line(&self.buffer, until)) {
                    return false;
                }
                let gone = self.buffer.floor_char_boundary(until - OVERLAP_BYTES);
                self.buffer.drain(..gone);
                self.at += int::to_u64(gone);
                self.from = until - gone;
            }
        }
        true
    }

    /// Calls `each` for the rest of the current line, without its line end, and begins the next
    /// line. Returns what `each` returned.
    pub(super) fn close_line(&mut self, each: &mut dyn FnMut(&TextLine<'_>) -> bool) -> bool {
        let text = self.buffer.strip_suffix('\n').unwrap_or(&self.buffer);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let wants_more = each(&self.current_line(text, text.len() + 1));
        self.at += int::to_u64(self.buffer.len());
        self.number += 1;
        self.from = 0;
        self.buffer.clear();
        wants_more
    }

    fn current_line<'l>(&self, text: &'l str, until: usize) -> TextLine<'l> {
        let from = self.from.min(text.len());
        TextLine { text, at: self.at, number: self.number, from, until }
    }
}
