//! Splits a text that streams by into lines, and very long lines into overlapping parts.

use alloc::string::String;
use lcm_text::base::int;

/// Bytes of a line after which the line is searched in parts. An expression that needs the slow
/// simulation is charged for a whole part, so parts must be small.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Bytes by which two parts overlap: a match that begins there belongs to the second part. As many
/// bytes before serve as context of the match.
const OVERLAP_BYTES: usize = 1 << 10;

/// A line, or a part of a very long line.
pub(super) struct TextLine<'l> {
    pub(super) text: &'l str,
    /// Byte of the text at which the line begins.
    pub(super) at: u64,
    pub(super) number: u64,
    /// Range within the line in which a match may begin: from `from`, before `until`.
    pub(super) from: usize,
    pub(super) until: usize,
}

/// Splits a streamed text into lines.
pub(super) struct LineSplitter {
    pub(super) buffer: String,
    /// Byte of the text at which the buffer begins.
    pub(super) at: u64,
    pub(super) number: u64,
    /// First byte of the buffer at which a match may begin.
    pub(super) from: usize,
}

impl LineSplitter {
    /// Adds the next piece of text, and calls `each` for every line until `each` returns `false`.
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

    /// Ends the current line.
    pub(super) fn close_line(&mut self, each: &mut dyn FnMut(&TextLine<'_>) -> bool) -> bool {
        let text = self.buffer.strip_suffix('\n').unwrap_or(&self.buffer);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let goes_on = each(&self.current_line(text, text.len() + 1));
        self.at += int::to_u64(self.buffer.len());
        self.number += 1;
        self.from = 0;
        self.buffer.clear();
        goes_on
    }

    fn current_line<'l>(&self, text: &'l str, until: usize) -> TextLine<'l> {
        let from = self.from.min(text.len());
        TextLine { text, at: self.at, number: self.number, from, until }
    }
}
