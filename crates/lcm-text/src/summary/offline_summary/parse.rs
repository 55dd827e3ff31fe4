//! Reads rendered source text into blocks and lines.

use alloc::vec::Vec;

use crate::summary::transcript::{self, EXPAND_PREFIX, MEDIA_NOTE};

/// Who speaks in a line, as far as it changes what a line is worth.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Voice {
    /// The person.
    User,
    /// The model, or its call of a tool.
    Assistant,
    /// Output of a tool.
    Tool,
    /// A system message, a summary, or text without a header.
    Other,
}

/// One message, or what a summary keeps of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    /// `2026-01-02`, or empty.
    pub(super) date: &'a str,
    /// `03:04`, or empty.
    pub(super) time: &'a str,
    /// The role as written, or empty.
    pub(super) role: &'a str,
    /// Number of the run of consecutive blocks with this date.
    pub(super) day: u32,
}

/// One line that may be quoted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// The line, trimmed, never empty.
    pub(super) text: &'a str,
    /// Index of its block.
    pub(super) block: usize,
    /// Who speaks.
    pub(super) voice: Voice,
}

/// A source, taken apart.
#[derive(Debug, Default)]
pub(super) struct Source<'a> {
    /// Messages in order.
    pub(super) blocks: Vec<Block<'a>>,
    /// Lines in order, without headers, labels and notes.
    pub(super) lines: Vec<Line<'a>>,
    /// Entries of the lines that name what earlier summaries left out.
    pub(super) leads: Vec<&'a str>,
    /// The first line that is no header, for a source without any that may be quoted.
    pub(super) last_resort: &'a str,
}

/// Takes a source apart.
pub(super) fn parse(text: &str) -> Source<'_> {
    let mut parser = Parser { source: Source::default(), voice: Voice::Other, summary: true };
    for line in text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        parser.line(line);
    }
    parser.source
}

struct Parser<'a> {
    source: Source<'a>,
    voice: Voice,
    /// Whether lines may carry headers of their own.
    summary: bool,
}

impl<'a> Parser<'a> {
    fn line(&mut self, line: &'a str) {
        if let Some(header) = transcript::outer(line) {
            self.summary = header.role.is_empty();
            self.open(header);
            return;
        }
        let mut line = line.trim();
        if let Some((header, text)) = transcript::inner(line).filter(|_| self.summary) {
            self.open(header);
            line = text.trim();
        }
        if let Some(leads) = line.strip_prefix(EXPAND_PREFIX) {
            let leads = leads.split(", ").map(|lead| lead.trim().trim_end_matches('.'));
            self.source.leads.extend(leads.filter(|lead| !lead.is_empty()));
            return;
        }
        if line.is_empty() || transcript::is_marker(line) {
            return;
        }
        if self.source.last_resort.is_empty() {
            self.source.last_resort = line;
        }
        let voice = self.voice_of(line);
        if is_label(line) {
            return;
        }
        if self.source.blocks.is_empty() {
            self.open(transcript::Header::default());
        }
        let block = self.source.blocks.len().saturating_sub(1);
        self.source.lines.push(Line { text: line, block, voice });
    }

    fn open(&mut self, header: transcript::Header<'a>) {
        let last = self.source.blocks.last().copied();
        let last_date = last.map_or("", |block| block.date);
        let date = if header.date.is_empty() { last_date } else { header.date };
        let day = last.map_or(0, |block| block.day + u32::from(block.date != date));
        self.voice = match header.role {
            "user" => Voice::User,
            "assistant" => Voice::Assistant,
            "tool" => Voice::Tool,
            _ => Voice::Other,
        };
        self.source.blocks.push(Block { date, time: header.time, role: header.role, day });
    }

    /// The voice of a line; from a label on, the rest of the block is output of the tool.
    fn voice_of(&mut self, line: &str) -> Voice {
        if line.starts_with("tool call ") {
            return Voice::Assistant;
        }
        if line.ends_with(':')
            && (line.starts_with("tool result") || line.starts_with("tool error"))
        {
            self.voice = Voice::Tool;
        }
        self.voice
    }
}

/// Whether a line only says what the following or the left out lines are.
fn is_label(line: &str) -> bool {
    let left_out = line.starts_with("[... ") && line.ends_with(" tokens left out ...]");
    let result = line.starts_with("tool result") && line.ends_with(':');
    left_out || result || line == MEDIA_NOTE || line == "(no output)"
}
