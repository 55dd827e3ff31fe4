//! Parses rendered source text into blocks and lines.
//!
//! Input: text as [`crate::summary::transcript`] renders it. Output: a [`ParsedTranscript`] for the
//! offline summariser.

use alloc::vec::Vec;

use crate::summary::transcript::{self, EXPAND_PREFIX, MEDIA_NOTE};

/// The speaker of a line, as far as the speaker changes the value of the line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Speaker {
    /// A user.
    User,
    /// The model, also for a tool call.
    Assistant,
    /// Output of a tool.
    Tool,
    /// A system message, data, a summary, or text without a header.
    Other,
}

/// One message, or the extract of one message in a summary.
#[derive(Clone, Copy, Debug)]
pub(super) struct TranscriptBlock<'a> {
    /// `2026-01-02`, or empty.
    pub(super) date: &'a str,
    /// `03:04`, or empty.
    pub(super) time: &'a str,
    /// The role as written, or empty.
    pub(super) role: &'a str,
    /// Number of changes of the date between the first block and this block.
    pub(super) day: u32,
}

impl TranscriptBlock<'_> {
    /// Returns whether the block began with a header.
    pub(super) const fn has_header(&self) -> bool {
        !self.time.is_empty() || !self.role.is_empty()
    }
}

/// One line that may be quoted.
#[derive(Clone, Copy, Debug)]
pub(super) struct TranscriptLine<'a> {
    /// The line, trimmed, never empty.
    pub(super) text: &'a str,
    /// Index of its block.
    pub(super) block: usize,
    /// Speaker of the line.
    pub(super) speaker: Speaker,
    /// Whether the engine wrote the beginning of the line, such as `tool call`.
    pub(super) is_label: bool,
}

/// A parsed source.
#[derive(Debug, Default)]
pub(super) struct ParsedTranscript<'a> {
    /// Messages in order.
    pub(super) blocks: Vec<TranscriptBlock<'a>>,
    /// Lines in order, without headers, labels of tool results, lines of omitted details and notes
    /// of omitted or cut text.
    pub(super) lines: Vec<TranscriptLine<'a>>,
    /// Entries of the lines `Expand for details about:` of earlier summaries.
    pub(super) earlier_leads: Vec<&'a str>,
    /// The first line that is not a header, a footer or a truncation note; used if the source has
    /// no line to quote. Empty: no such line.
    pub(super) last_resort: &'a str,
}

/// Parses a source.
pub(super) fn parse_transcript(text: &str) -> ParsedTranscript<'_> {
    let mut parser = TranscriptParser {
        source: ParsedTranscript::default(),
        speaker: Speaker::Other,
        is_summary: true,
    };
    for line in
        transcript::split_lines(text).map(str::trim_end).filter(|line| !line.trim().is_empty())
    {
        parser.read_line(line);
    }
    parser.source
}

struct TranscriptParser<'a> {
    source: ParsedTranscript<'a>,
    speaker: Speaker,
    /// Whether the lines come from a summary or have no header, so that each line may have an
    /// inline header.
    is_summary: bool,
}

impl<'a> TranscriptParser<'a> {
    fn read_line(&mut self, line: &'a str) {
        if let Some(header) = transcript::parse_block_header(line) {
            self.is_summary = header.role.is_empty();
            self.open_block(header);
            return;
        }
        let mut line = line.trim();
        if let Some((header, text)) =
            transcript::parse_inline_header(line).filter(|_| self.is_summary)
        {
            self.open_block(header);
            line = text.trim();
        }
        if let Some(leads) = line.strip_prefix(EXPAND_PREFIX).filter(|_| self.is_summary) {
            let leads = leads.split(", ").map(|lead| lead.trim().trim_end_matches('.'));
            self.source.earlier_leads.extend(leads.filter(|lead| !lead.is_empty()));
            return;
        }
        if line.is_empty() || (self.is_summary && transcript::is_truncation_note(line)) {
            return;
        }
        if self.source.last_resort.is_empty() {
            self.source.last_resort = line;
        }
        let (voice, is_label) = self.speaker_of_line(line);
        if is_note(line) {
            return;
        }
        if self.source.blocks.is_empty() {
            self.open_block(transcript::BlockHeader::default());
        }
        let block = self.source.blocks.len().saturating_sub(1);
        self.source.lines.push(TranscriptLine { text: line, block, speaker: voice, is_label });
    }

    fn open_block(&mut self, header: transcript::BlockHeader<'a>) {
        let last = self.source.blocks.last().copied();
        let last_date = last.map_or("", |block| block.date);
        let date = if header.date.is_empty() { last_date } else { header.date };
        let day = last.map_or(0, |block| block.day + u32::from(block.date != date));
        self.speaker = match header.role {
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            "tool" => Speaker::Tool,
            _ => Speaker::Other,
        };
        self.source.blocks.push(TranscriptBlock {
            date,
            time: header.time,
            role: header.role,
            day,
        });
    }

    /// Returns the speaker of a line, and whether the engine wrote its beginning. After a label of
    /// a result, the rest of the block is tool output.
    fn speaker_of_line(&mut self, line: &str) -> (Speaker, bool) {
        if line.starts_with("tool call ") {
            return (Speaker::Assistant, self.speaker == Speaker::Assistant);
        }
        let is_result = line.ends_with(':')
            && (line.starts_with("tool result") || line.starts_with("tool error"));
        if is_result {
            self.speaker = Speaker::Tool;
        }
        (self.speaker, is_result)
    }
}

/// Returns whether a line is the label of a tool result or a note about omitted text.
fn is_note(line: &str) -> bool {
    let left_out = line.starts_with("[... ") && line.ends_with(" tokens left out ...]");
    let result = line.starts_with("tool result") && line.ends_with(':');
    left_out || result || line == MEDIA_NOTE || line == "(no output)"
}
