//! Description of a large payload, with any range of its lines or bytes.
//!
//! In: the id of a file, and the range. Out: JSON with its properties, its outline and the content
//! of the range. A read starts at the last seek point before the range and reads chunk by chunk. So
//! the cost depends on the size of the range, not on the size of the payload.

use alloc::string::String;

use crate::{
    search::payload_holders,
    storage::{
        call::Call,
        head::LoadedHead,
        history::MessageHistory,
        payload_text::{self, PayloadPart},
        read_scope::{ReadLimits, RecallAnswer},
        records::large_payload::payload_record_key,
        store_session::StoreSession,
        withdrawn_mark,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonWriter},
        tokens,
    },
    message::large_payload::{self, PayloadRecord, SeekPoint},
};

/// Maximum bytes of content in an answer, by default.
const CONTENT_BYTES_DEFAULT: u64 = 32_768;
/// Least value of `bytes_max`, the maximum bytes of content in an answer.
pub(crate) const CONTENT_BYTES_MIN: u64 = 1_024;
/// Greatest value of `bytes_max`.
pub(crate) const CONTENT_BYTES_MAX: u64 = 512_000;

/// Options of a file description: whether the answer has content, and of which range.
pub(crate) struct FileRangeOptions {
    includes_content: bool,
    bytes_max: u64,
    /// First line, from 1; `None`: the range has no start in lines.
    start_line: Option<u64>,
    /// Last line, included; `None`: the range has no end in lines.
    end_line: Option<u64>,
    /// Offset of the first byte in the decoded payload; `None`: the range has no start in bytes.
    start_byte: Option<u64>,
    /// Offset behind the last byte; `None`: the range has no end in bytes.
    end_byte: Option<u64>,
}

impl FileRangeOptions {
    /// Reads the options, which may select lines or bytes and not both. Without a start, the range
    /// begins with the payload; without an end, `bytes_max` ends the range. Absent
    /// `include_content` is true, absent `bytes_max` 32,768.
    ///
    /// # Errors
    ///
    /// `invalid-input`: both lines and bytes, line 0, an end before the start, or a `bytes_max`
    /// outside its bounds.
    pub(crate) fn read(fields: &mut JsonFields<'_>) -> Result<Self> {
        let mut number = |key: &str| fields.take_optional_u64(key);
        let bytes_max = number("bytes_max").unwrap_or(CONTENT_BYTES_DEFAULT);
        let [start_line, end_line] = [number("start_line"), number("end_line")];
        let [start_byte, end_byte] = [number("start_byte"), number("end_byte")];
        let content = fields.take_optional_flag("include_content");
        let lines = start_line.is_some() || end_line.is_some();
        if lines && (start_byte.is_some() || end_byte.is_some()) {
            return Err(Error::invalid_input(
                "`start_line` and `end_line` must not be given with `start_byte` or `end_byte`",
            ));
        }
        if start_line == Some(0) {
            return Err(Error::invalid_input("`start_line` must be at least 1, got 0"));
        }
        ensure_range_ordered("line", start_line.unwrap_or(1), end_line)?;
        ensure_range_ordered("byte", start_byte.unwrap_or(0), end_byte)?;
        if !(CONTENT_BYTES_MIN..=CONTENT_BYTES_MAX).contains(&bytes_max) {
            return Err(Error::invalid_input(format_args!(
                "`bytes_max` must be from {CONTENT_BYTES_MIN} to {CONTENT_BYTES_MAX}, got \
                 {bytes_max}"
            )));
        }
        Ok(Self {
            includes_content: content.unwrap_or(true),
            bytes_max,
            start_line,
            end_line,
            start_byte,
            end_byte,
        })
    }
}

/// Ensures that a range does not end before its start; `end` may equal `start`.
fn ensure_range_ordered(unit: &str, start: u64, end: Option<u64>) -> Result<()> {
    match end.filter(|end| *end < start) {
        Some(end) => Err(Error::invalid_input(format_args!(
            "`end_{unit}` must not be before the start {start}, got {end}"
        ))),
        None => Ok(()),
    }
}

/// Describes a payload, with the content of the range if the options want content.
///
/// # Errors
///
/// `not-found`: no readable message has the payload; `denied`: the grant has no tokens left; errors
/// of the store.
pub(crate) fn describe_file(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: [u8; 8],
    wanted: &FileRangeOptions,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let loaded = LoadedHead::open_existing(session, call)?;
    let history = &MessageHistory::new(call, &loaded.head);
    let name = large_payload::format_name(id);
    let unknown = || {
        Error::not_found(format_args!(
            "there is no file `{name}` in this conversation; an id belongs to one conversation"
        ))
    };
    let file = session.read_record(&payload_record_key(call.keys, id))?.ok_or_else(unknown)?;
    let spans = within.permit.and_then(|permit| permit.covered_spans(call.keys));
    let seq = payload_holders::find_newest_holder(session, history, id, &file, spans.as_deref())?
        .ok_or_else(unknown)?;
    within.ensure_tokens_left()?;
    let mut w = JsonWriter::new_object();
    w.add_number("bytes", file.bytes);
    let mut read = if wanted.includes_content {
        Some(read_range(session, history, &file, wanted)?)
    } else {
        None
    };
    let exploration = within.truncate_text(&file.exploration);
    let mut tokens = tokens::estimate(exploration);
    let mut is_cut = exploration.len() < file.exploration.len();
    if let Some(read) = &mut read {
        if let Some(tokens_max) = within.tokens_max {
            is_cut |= read.truncate_to(tokens_max.saturating_sub(tokens));
        }
        tokens = tokens.saturating_add(tokens::estimate(&read.content));
    }
    let content = read.as_ref().map(|read| read.content.as_str());
    w.add_optional_text("content", content);
    if let Some(read) = &read {
        w.add_number("end_byte", read.end_byte);
    }
    w.add_text("exploration", exploration);
    within.write_grant_note(tokens, is_cut, &mut w);
    w.add_text("id", &name);
    w.add_text("kind", file.kind.as_str());
    w.add_number("lines", file.lines);
    w.add_text("message_id", &call.keys.message_id(seq));
    w.add_text("mime", &file.mime);
    w.add_optional_text("name", file.name.as_deref());
    w.add_number("seq", seq);
    if let Some(read) = &read {
        w.add_number("start_byte", read.start_byte);
    }
    w.add_flag("truncated", read.is_none_or(|read| read.truncated));
    withdrawn_mark::add_mark(session, history, seq, &mut w)?;
    Ok(RecallAnswer::new(w, tokens))
}

/// The content of a range.
struct FileRange {
    content: String,
    /// Offset of the first byte in the decoded payload.
    start_byte: u64,
    /// Offset behind the last byte.
    end_byte: u64,
    /// Whether the requested range has more bytes than `content`.
    truncated: bool,
}

impl FileRange {
    /// Truncates the content to at most `tokens_max`; returns whether text was removed.
    fn truncate_to(&mut self, tokens_max: u32) -> bool {
        let length = tokens::truncate_to_tokens(&self.content, tokens_max).len();
        if length == self.content.len() {
            return false;
        }
        self.content.truncate(length);
        self.end_byte = self.start_byte + int::to_u64(length);
        self.truncated = true;
        true
    }
}

/// Collector of a range from the pieces of a payload.
struct FileRangeCollector<'a> {
    wanted: &'a FileRangeOptions,
    /// Decoded bytes of the payload before the text to read next.
    bytes: u64,
    /// Line ends of the payload before the text to read next.
    line_ends: u64,
    range: FileRange,
    has_begun: bool,
    has_ended: bool,
}

/// Reads a range. The read starts at the last seek point before the range. A range behind the end
/// is empty.
fn read_range(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    file: &PayloadRecord,
    wanted: &FileRangeOptions,
) -> Result<FileRange> {
    let is_before = |point: &&SeekPoint| match (wanted.start_line, wanted.start_byte) {
        // The seek point must be before the line end that precedes the range.
        (Some(line), _) => u64::from(point.line_ends) + 1 < line,
        (None, Some(byte)) => u64::from(point.bytes) <= byte,
        (None, None) => false,
    };
    let start =
        file.place.seek_points.iter().take_while(is_before).last().copied().unwrap_or_default();
    let range = FileRange {
        content: String::new(),
        start_byte: file.bytes,
        end_byte: file.bytes,
        truncated: false,
    };
    let (bytes, line_ends) = (u64::from(start.bytes), u64::from(start.line_ends));
    let (begun, ended) = (false, false);
    let mut collector =
        FileRangeCollector { wanted, bytes, line_ends, range, has_begun: begun, has_ended: ended };
    let part = PayloadPart { file, start, written_bytes_max: u64::MAX };
    payload_text::for_each_text(session, history, &part, &mut |text| {
        collector.take_text(text);
        !collector.has_ended
    })?;
    if !collector.has_ended && collector.has_begun {
        collector.range.end_byte = collector.bytes;
    }
    Ok(collector.range)
}

impl FileRangeCollector<'_> {
    /// Adds the part of the next piece that is in the range.
    fn take_text(&mut self, text: &str) {
        let mut text = text;
        if !self.has_begun {
            let Some(at) = self.find_range_start(text) else {
                self.advance_position(text);
                return;
            };
            let (before, rest) = text.split_at_checked(at).unwrap_or((text, ""));
            self.advance_position(before);
            self.has_begun = true;
            self.range.start_byte = self.bytes;
            text = rest;
        }
        let (end, is_cut) = self.find_range_end(text);
        let kept = text.get(..end).unwrap_or_default();
        self.range.content.push_str(kept);
        self.advance_position(kept);
        if end < text.len() || is_cut {
            self.has_ended = true;
            self.range.end_byte = self.bytes;
            self.range.truncated = is_cut;
        }
    }

    fn advance_position(&mut self, text: &str) {
        self.bytes += int::to_u64(text.len());
        self.line_ends += int::to_u64(text.bytes().filter(|byte| *byte == b'\n').count());
    }

    /// Returns the offset of the range start in `text`, moved back to the start of a character;
    /// `None`: the range starts in a later piece.
    fn find_range_start(&self, text: &str) -> Option<usize> {
        if let Some(line) = self.wanted.start_line {
            let ends = int::to_usize((line - 1).saturating_sub(self.line_ends));
            return find_line_start(text, ends);
        }
        let byte = self.wanted.start_byte.unwrap_or(0);
        let mut at = int::to_usize(byte.saturating_sub(self.bytes));
        if at > 0 && at >= text.len() {
            return None;
        }
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        Some(at)
    }

    /// Returns the offset of the range end in `text`, moved back to the start of a character, and
    /// whether `bytes_max` cuts the range. A range that ends in a later piece has the length of
    /// `text`.
    fn find_range_end(&self, text: &str) -> (usize, bool) {
        let mut end = text.len();
        if let Some(line) = self.wanted.end_line {
            // The range includes the line end of its last line.
            let ends = int::to_usize(line.saturating_sub(self.line_ends));
            end = find_line_start(text, ends).unwrap_or(end);
        }
        if let Some(byte) = self.wanted.end_byte {
            end = end.min(int::to_usize(byte.saturating_sub(self.bytes)));
        }
        let left = self.wanted.bytes_max - int::to_u64(self.range.content.len());
        let is_cut = int::to_u64(end) > left;
        let mut end = if is_cut { int::to_usize(left) } else { end };
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        (end, is_cut)
    }
}

/// Returns the offset after `ends` line ends; `None`: the text has fewer line ends.
fn find_line_start(text: &str, ends: usize) -> Option<usize> {
    let Some(last) = ends.checked_sub(1) else { return Some(0) };
    text.match_indices('\n').nth(last).map(|(at, _)| at + 1)
}
