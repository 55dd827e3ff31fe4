//! The lines of an export: what each says, and how they are chained.
//!
//! In and out: one line of JSON. An export is, for each conversation, a header, its messages, its
//! summaries with sources before what was derived from them, its context, and an end. Every line
//! closes with a running sum over all lines up to it, so that one which was changed, lost or moved
//! is the first that does not fit. No line passes [`LINE_BYTES_MAX`]: a large text follows its
//! message in pieces.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    api::{Dialect, Timestamp},
    error::{Error, Result},
    keys, limits,
    summary::{self, Sources, StoredLevel, Summary, Trust},
    time,
};

/// Name and version of the format.
pub(super) const FORMAT: &str = "lcm-export/1";
/// The largest text that stands in the line of its message.
pub(super) const INLINE_BYTES_MAX: usize = limits::PACK_BYTES_MAX;
/// Longest line. The longest that is written is a summary of 256 KiB in hex, and its lists.
pub(super) const LINE_BYTES_MAX: usize = 768 << 10;
/// Items of the context that stand in one line.
pub(super) const ITEMS_PER_LINE: usize = 128;
/// What comes before the sum in a line, after the line's content without its closing brace.
const SUM: &str = ",\"sum\":\"";
/// Bytes from there to the end: 16 hex digits, quote, brace.
const SUM_BYTES: usize = SUM.len() + 18;

/// The running sum.
pub(super) type Sum = [u8; 8];

/// One line without its sum.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Header(Header),
    Message(MessageLine),
    Large(LargeLine),
    Piece(PieceLine),
    Summary(Box<SummaryLine>),
    Context(ContextLine),
    End(EndLine),
}

/// Begins a conversation.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) conversation: String,
    /// Which conversation of the export it is, from 1.
    pub(super) part: u64,
    pub(super) parts: u64,
    pub(super) messages: u64,
    /// Running hash after the last message, in hex.
    pub(super) frontier: String,
    pub(super) summaries: u64,
    /// Items of the context.
    pub(super) items: u64,
}

/// A message.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageLine {
    pub(super) seq: u64,
    pub(super) dialect: Dialect,
    pub(super) time: String,
    pub(super) text: String,
}

/// A message whose text follows in pieces.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LargeLine {
    pub(super) seq: u64,
    pub(super) dialect: Dialect,
    pub(super) time: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    /// Running hash after this message, in hex, because no single line can tell.
    pub(super) frontier: String,
}

/// A piece of a large text.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PieceLine {
    pub(super) seq: u64,
    pub(super) offset: u64,
    pub(super) text: String,
}

/// A summary. A leaf has a `frontier`, a condensed one `sources`.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SummaryLine {
    pub(super) id: String,
    pub(super) depth: u32,
    pub(super) level: StoredLevel,
    pub(super) capped: bool,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    pub(super) frontier: Option<String>,
    pub(super) sources: Option<Vec<String>>,
    pub(super) task: String,
    pub(super) text: String,
    /// Whether the text is written in hex, because JSON would more than double it.
    pub(super) hex: bool,
    pub(super) tokens: u32,
    pub(super) source_tokens: u64,
    pub(super) message_tokens: u64,
    pub(super) descendant_count: u64,
    pub(super) descendant_tokens: u64,
    pub(super) earliest_at: String,
    pub(super) latest_at: String,
    pub(super) created_at: String,
    pub(super) model: String,
    pub(super) prompt_version: u32,
    pub(super) trust: Trust,
    pub(super) findings: Vec<String>,
    pub(super) file_ids: Vec<String>,
}

/// Items of the context, oldest first.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextLine {
    pub(super) items: Vec<ItemLine>,
}

/// A summary, or without one a run of raw messages.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemLine {
    pub(super) summary: Option<String>,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
}

/// Ends a conversation.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    pub(super) part: u64,
    pub(super) parts: u64,
    /// Lines of the export up to and with this one.
    pub(super) lines: u64,
}

/// The line as it is written, and the sum after it.
///
/// # Errors
///
/// `corrupt`: it cannot be written, which no content can bring about.
pub(super) fn close(line: &Line, before: &Sum) -> Result<(String, Sum)> {
    let mut text = serde_json::to_string(line)
        .map_err(|error| Error::corrupt(format!("a line cannot be written: {error}")))?;
    text.pop();
    let sum = advance(before, &text);
    text.push_str(SUM);
    text.push_str(&keys::hex(&sum));
    text.push_str("\"}");
    Ok((text, sum))
}

/// Reads a line that follows one with the sum `before`; returns its own sum, too.
///
/// # Errors
///
/// What is wrong with it, without its number.
pub(super) fn open(
    text: &str,
    before: &Sum,
) -> core::result::Result<(Line, Sum), alloc::borrow::Cow<'static, str>> {
    if text.len() > LINE_BYTES_MAX {
        return Err("is longer than any line of an export".into());
    }
    let parts = text.len().checked_sub(SUM_BYTES).and_then(|at| text.split_at_checked(at));
    let Some((content, rest)) = parts else { return Err("is no line of an export".into()) };
    let sum = rest
        .strip_prefix(SUM)
        .and_then(|rest| rest.strip_suffix("\"}"))
        .and_then(keys::unhex)
        .ok_or("is no line of an export")?;
    let expected = advance(before, content);
    if sum != expected {
        return Err("was changed, or a line before it is missing".into());
    }
    let mut whole = String::from(content);
    whole.push('}');
    let line = serde_json::from_str(&whole)
        .map_err(|error| format!("is no line of an export: {error}"))?;
    Ok((line, expected))
}

fn advance(before: &Sum, content: &str) -> Sum {
    keys::prefix(&keys::hash(&[b"lcm export", before, content.as_bytes()]))
}

/// Bytes from hex of exactly that many.
pub(super) fn bytes<const N: usize>(hex: &str, what: &str) -> Result<[u8; N]> {
    keys::unhex(hex)
        .filter(|bytes| bytes.len() == N)
        .map(|bytes| keys::prefix(&bytes))
        .ok_or_else(|| Error::invalid(format!("{what}: not {} hex digits", 2 * N)))
}

/// A time from its ISO 8601 form.
pub(super) fn timestamp(text: &str) -> Result<Timestamp> {
    time::parse(text)
        .filter(|time| *time <= time::MS_MAX)
        .ok_or_else(|| Error::invalid(format!("`{text}` is no time")))
}

impl SummaryLine {
    /// The line of a record.
    pub(super) fn of(record: &Summary) -> Self {
        let (frontier, sources) = match &record.sources {
            Sources::Messages { frontier, .. } => (Some(keys::hex(frontier)), None),
            Sources::Summaries(list) => {
                (None, Some(list.iter().map(|source| summary::name(source.id)).collect()))
            }
        };
        let escaped: usize = record.text.bytes().map(escaped_bytes).sum();
        let hex = escaped > 2 * record.text.len();
        let text = if hex { keys::hex(record.text.as_bytes()) } else { record.text.clone() };
        Self {
            id: summary::name(record.id()),
            depth: record.depth,
            level: record.level,
            capped: record.capped,
            seq_first: record.seq_first,
            seq_last: record.seq_last,
            frontier,
            sources,
            task: keys::hex(&record.task),
            text,
            hex,
            tokens: record.tokens,
            source_tokens: record.source_tokens,
            message_tokens: record.message_tokens,
            descendant_count: record.descendant_count,
            descendant_tokens: record.descendant_tokens,
            earliest_at: time::iso_millis(record.earliest_at),
            latest_at: time::iso_millis(record.latest_at),
            created_at: time::iso_millis(record.created_at),
            model: record.model.clone(),
            prompt_version: record.prompt_version,
            trust: record.trust,
            findings: record.findings.clone(),
            file_ids: record.file_ids.clone(),
        }
    }

    /// The text as it was summarised.
    pub(super) fn plain_text(&self) -> Result<String> {
        if !self.hex {
            return Ok(self.text.clone());
        }
        keys::unhex(&self.text)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| Error::invalid("text: not a text in hex"))
    }

    /// The record, with these sources. Nothing of it is verified here.
    pub(super) fn record(&self, sources: Sources) -> Result<Summary> {
        Ok(Summary {
            depth: self.depth,
            level: self.level,
            capped: self.capped,
            sources,
            task: bytes(&self.task, "task")?,
            seq_first: self.seq_first,
            seq_last: self.seq_last,
            text: self.plain_text()?,
            tokens: self.tokens,
            source_tokens: self.source_tokens,
            message_tokens: self.message_tokens,
            descendant_count: self.descendant_count,
            descendant_tokens: self.descendant_tokens,
            earliest_at: timestamp(&self.earliest_at)?,
            latest_at: timestamp(&self.latest_at)?,
            created_at: timestamp(&self.created_at)?,
            model: self.model.clone(),
            prompt_version: self.prompt_version,
            trust: self.trust,
            findings: self.findings.clone(),
            file_ids: self.file_ids.clone(),
        })
    }
}

/// Bytes that JSON writes for a byte of text.
fn escaped_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => 6,
        _ => 1,
    }
}
