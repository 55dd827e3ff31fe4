//! A large payload: what is known of it, which messages have it, and any range of its lines or
//! bytes.
//!
//! A range is read from the nearest mark on, chunk by chunk, so that its cost is its own size and
//! not that of the payload.

use alloc::{string::String, vec::Vec};

use crate::{
    search::{Corpus, SearchIndex, full_text, text_query::TextQuery},
    storage::{
        codec, history::MessageHistory, pack::RawText, records::grants, store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonWriter},
        sort, tokens,
    },
    message::{
        self,
        large_payload::{self, PayloadRecord, SeekPoint},
    },
};

use crate::storage::read_scope::{ReadLimits, RecallAnswer};

/// Bytes of content that an answer has when nothing else is asked for, the least and the most, as
/// in the reference system.
const CONTENT_BYTES_DEFAULT: u64 = 32_768;
pub(crate) const CONTENT_BYTES_MIN: u64 = 1_024;
pub(crate) const CONTENT_BYTES_MAX: u64 = 512_000;
/// Messages with payloads that are looked at for one that has a payload, and at a time: each may
/// take an inflated pack, some 0.15 ms, so that all take less than a tenth of a second.
const MENTIONS_MAX: usize = 512;
const MENTIONS_PER_READ: usize = 16;
/// Bytes at the end of what was read that may be part of an escape.
const ESCAPE_BYTES_MAX: usize = 12;

/// What of a payload is wanted.
pub(crate) struct FileRangeOptions {
    includes_content: bool,
    bytes_max: u64,
    start_line: Option<u64>,
    end_line: Option<u64>,
    start_byte: Option<u64>,
    end_byte: Option<u64>,
}

impl FileRangeOptions {
    /// Reads the options, under our names and those of the agent's tool.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a range of lines and one of bytes, line 0, a range that ends before it
    /// begins, or more or fewer bytes than an answer may be bounded to.
    pub(crate) fn read(fields: &mut JsonFields<'_>) -> Result<Self> {
        let mut number = |ours: &str, tool: &str| {
            let (ours, tool) = (fields.take_optional_u64(ours), fields.take_optional_u64(tool));
            ours.or(tool)
        };
        let bytes_max = number("bytes_max", "expandFileMaxBytes").unwrap_or(CONTENT_BYTES_DEFAULT);
        let [start_line, end_line] =
            [number("start_line", "startLine"), number("end_line", "endLine")];
        let [start_byte, end_byte] =
            [number("start_byte", "startByte"), number("end_byte", "endByte")];
        let content =
            fields.take_optional_flag("expandFile").or(fields.take_optional_flag("content"));
        let lines = start_line.is_some() || end_line.is_some();
        if lines && (start_byte.is_some() || end_byte.is_some()) {
            return Err(Error::invalid_input(
                "options-json: a range is one of lines or one of bytes",
            ));
        }
        if start_line == Some(0) {
            return Err(Error::invalid_input("options-json.start_line: lines are counted from 1"));
        }
        ensure_range_ordered("line", start_line.unwrap_or(1), end_line)?;
        ensure_range_ordered("byte", start_byte.unwrap_or(0), end_byte)?;
        if !(CONTENT_BYTES_MIN..=CONTENT_BYTES_MAX).contains(&bytes_max) {
            return Err(Error::invalid_input(format_args!(
                "options-json.bytes_max: {bytes_max} is not from {CONTENT_BYTES_MIN} to \
                 {CONTENT_BYTES_MAX}"
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

/// Whether a range ends behind its beginning; an empty one of bytes does.
fn ensure_range_ordered(unit: &str, start: u64, end: Option<u64>) -> Result<()> {
    match end.filter(|end| *end < start) {
        Some(end) => Err(Error::invalid_input(format_args!(
            "options-json.end_{unit}: the range ends at {unit} {end}, before its start {start}"
        ))),
        None => Ok(()),
    }
}

/// Describes a payload.
///
/// # Errors
///
/// `not-found`; errors of the store.
pub(crate) fn describe_file(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    wanted: &FileRangeOptions,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let key = history.keys.payload_key(id);
    let name = large_payload::format_name(id);
    let unknown = || {
        Error::not_found(format_args!(
            "there is no file `{name}` in this conversation; ids belong to one conversation"
        ))
    };
    let file: PayloadRecord =
        codec::decode(&key, &reader.read_one_uncached(&key)?.ok_or_else(unknown)?)?;
    let spans = within.permit.and_then(|permit| permit.covered_spans(history.keys));
    let seq =
        find_newest_holder(reader, history, id, &file, spans.as_deref())?.ok_or_else(unknown)?;
    within.ensure_tokens_left()?;
    let mut w = JsonWriter::new_object();
    w.add_number("bytes", file.bytes);
    let mut read = if wanted.includes_content {
        Some(read_range(reader, history, &file, wanted)?)
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
    w.add_text("message", &history.keys.message_id(seq));
    w.add_text("mime", &file.mime);
    w.add_optional_text("name", file.name.as_deref());
    w.add_number("seq", seq);
    if let Some(read) = &read {
        w.add_number("start_byte", read.start_byte);
    }
    w.add_flag("truncated", read.is_none_or(|read| read.truncated));
    Ok(RecallAnswer::new(w, tokens))
}

/// The newest message within these spans that has a payload; `None`: none has.
///
/// Its record names the newest message of all, which may lie outside. An older one has the same
/// text under the same id in what stands for it.
///
/// # Errors
///
/// As [`Index::postings`].
pub(crate) fn find_newest_holder(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    file: &PayloadRecord,
    spans: Option<&[(u64, u64)]>,
) -> Result<Option<u64>> {
    ensure_not_newer_than_head(reader, history, id, file)?;
    if grants::is_within(spans, file.seq, file.seq) {
        return Ok(Some(file.seq));
    }
    let mut index = SearchIndex::open(reader, history.keys, history.head)?;
    let (wanted, corpus) = (TextQuery::for_payloads(None), Corpus::Messages);
    let gathered = full_text::gather_matches(reader, history, &mut index, corpus, &wanted)?;
    let (window, weights) = (&wanted.window, &gathered.statistics);
    let ranked =
        gathered.rank_documents(reader, history, &mut index, &wanted, window, weights, false)?;
    let mut seqs = ranked.documents;
    seqs.retain(|seq| *seq < file.seq && grants::is_within(spans, *seq, *seq));
    sort::sort_by(&mut seqs, &mut |a, b| b.cmp(a));
    find_holder_among(reader, history, id, &seqs)
}

/// The error of a payload that was said again since the head was read.
///
/// # Errors
///
/// `conflict`: it was; `corrupt`: its message does not exist.
pub(crate) fn ensure_not_newer_than_head(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    file: &PayloadRecord,
) -> Result<()> {
    match file.seq > history.head.messages {
        true => Err(reader.missing_record_error(&history.keys.payload_key(id))),
        false => Ok(()),
    }
}

/// The first of these messages that has a payload.
///
/// # Errors
///
/// As [`History::messages`].
pub(crate) fn find_holder_among(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    seqs: &[u64],
) -> Result<Option<u64>> {
    let mut naming = Vec::new();
    for_each_mention(reader, history, seqs, &mut |seq, ids| {
        naming.extend(ids.contains(&id).then_some(seq));
    })?;
    for seq in naming {
        if contains_payload(reader, history, seq, id)? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// Whether a message whose stand-in names a payload has it: its text may repeat the id of
/// another's, which must not lead there.
///
/// # Errors
///
/// As [`History::messages`].
pub(crate) fn contains_payload(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    id: [u8; 8],
) -> Result<bool> {
    for placed in history.read_messages_at(reader, &[seq])? {
        let Some(stand_in) = &placed.stored.placeholder else { continue };
        let raw = history.read_text(reader, &placed.stored)?;
        if !raw.contains(&large_payload::format_name(id)) {
            return Ok(true);
        }
        let made = message::parse(placed.dialect, &raw).ok().and_then(|message| {
            let (least, root) = (stand_in.payload_tokens_min, history.keys.key_prefix());
            large_payload::build_placeholder(placed.dialect, &raw, &message, least, root)
        });
        return Ok(made.is_some_and(|made| made.files.iter().any(|(known, _)| *known == id)));
    }
    Ok(false)
}

/// Hands out the ids that stand for payloads of the first of these messages, or that their texts
/// repeat.
///
/// # Errors
///
/// As [`History::messages`].
pub(crate) fn for_each_mention(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seqs: &[u64],
    take: &mut dyn FnMut(u64, Vec<[u8; 8]>),
) -> Result<()> {
    let seqs = seqs.get(..MENTIONS_MAX.min(seqs.len())).unwrap_or_default();
    for together in seqs.chunks(MENTIONS_PER_READ) {
        let mut ascending = together.to_vec();
        sort::sort_numbers(&mut ascending);
        let placed = history.read_messages_at(reader, &ascending)?;
        for seq in together {
            let at = placed.binary_search_by_key(seq, |placed| placed.seq).ok();
            let Some(placed) = at.and_then(|at| placed.get(at)) else { continue };
            let shown = history.read_rendered_text(reader, &placed.stored)?;
            take(*seq, large_payload::find_ids(&shown));
        }
    }
    Ok(())
}

/// A range that was read.
struct FileRange {
    content: String,
    start_byte: u64,
    /// Offset behind the last byte.
    end_byte: u64,
    /// Whether the range asked for, or without one the payload, goes on.
    truncated: bool,
}

impl FileRange {
    /// Cuts it to so many tokens; returns whether that took anything.
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

/// Collects a range while the payload goes by.
struct FileRangeCollector<'a> {
    wanted: &'a FileRangeOptions,
    /// Decoded bytes and line ends that went by.
    bytes: u64,
    line_ends: u64,
    range: FileRange,
    has_begun: bool,
    has_ended: bool,
}

fn read_range(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    file: &PayloadRecord,
    wanted: &FileRangeOptions,
) -> Result<FileRange> {
    let is_before = |mark: &&SeekPoint| match (wanted.start_line, wanted.start_byte) {
        // The end of the line before the first one lies behind the mark.
        (Some(line), _) => u64::from(mark.line_ends) + 1 < line,
        (None, Some(byte)) => u64::from(mark.bytes) <= byte,
        (None, None) => false,
    };
    let mark =
        file.place.seek_points.iter().take_while(is_before).last().copied().unwrap_or_default();
    let range = FileRange {
        content: String::new(),
        start_byte: file.bytes,
        end_byte: file.bytes,
        truncated: false,
    };
    let (bytes, line_ends) = (u64::from(mark.bytes), u64::from(mark.line_ends));
    let (begun, ended) = (false, false);
    let mut collector =
        FileRangeCollector { wanted, bytes, line_ends, range, has_begun: begun, has_ended: ended };
    for_each_text(reader, history, file, mark, u64::MAX, &mut |text| {
        collector.take_text(text);
        !collector.has_ended
    })?;
    if !collector.has_ended && collector.has_begun {
        collector.range.end_byte = collector.bytes;
    }
    Ok(collector.range)
}

/// Hands out the text of a payload from a mark on, as long as `take` says so, and not much more
/// than so many bytes as they are written; returns how many were read, and whether that was all.
///
/// # Errors
///
/// As [`History::text`].
pub(crate) fn for_each_text(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    file: &PayloadRecord,
    mark: SeekPoint,
    written_max: u64,
    take: &mut dyn FnMut(&str) -> bool,
) -> Result<(u64, bool)> {
    let from = u64::from(file.place.start) + u64::from(mark.at);
    let to = u64::from(file.place.start) + u64::from(file.place.length);
    let mut buffer = String::new();
    let (mut read, mut is_complete) = (0, false);
    for_each_message_chunk(reader, history, file.seq, (from, to), &mut |piece, is_last| {
        read += int::to_u64(piece.len());
        buffer.push_str(piece);
        let complete =
            if is_last { buffer.len() } else { buffer.len().saturating_sub(ESCAPE_BYTES_MAX) };
        let (mut passed, mut is_wanted) = (buffer.len(), true);
        large_payload::walk(&buffer, file.place.is_text, &mut |text, at| {
            if at >= complete {
                passed = at;
                return false;
            }
            is_wanted = take(text);
            is_wanted
        });
        buffer.drain(..passed);
        is_complete = is_last && is_wanted;
        is_wanted && read < written_max
    })?;
    Ok((read, is_complete))
}

impl FileRangeCollector<'_> {
    /// Takes a piece of the payload, up to the end of the range.
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

    /// Where the range begins in the next piece.
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

    /// Where the range ends in the next piece, or the piece, and whether the bound of an answer is
    /// what ends it.
    fn find_range_end(&self, text: &str) -> (usize, bool) {
        let mut end = text.len();
        if let Some(line) = self.wanted.end_line {
            // Behind the end of that line.
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

/// Offset behind so many line ends; `None`: the text has fewer.
fn find_line_start(text: &str, ends: usize) -> Option<usize> {
    let Some(last) = ends.checked_sub(1) else { return Some(0) };
    text.match_indices('\n').nth(last).map(|(at, _)| at + 1)
}

/// Hands out the text of a message between two offsets, a chunk at a time, and whether it is the
/// last one.
pub(crate) fn for_each_message_chunk(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    (from, to): (u64, u64),
    take: &mut dyn FnMut(&str, bool) -> bool,
) -> Result<()> {
    let damaged =
        || Error::corrupt_store(format_args!("a payload of message {seq} is not where it was"));
    if seq > history.head.messages {
        return Err(damaged());
    }
    let placed = history.read_messages(reader, seq, seq)?;
    let placed = placed.first().ok_or_else(damaged)?;
    let within = |text: &str, begin: u64| {
        let [from, to] =
            [from, to].map(|at| int::to_usize(at.saturating_sub(begin)).min(text.len()));
        text.get(from..to).map(String::from).ok_or_else(damaged)
    };
    match &placed.stored.raw {
        RawText::Inline(text) => {
            take(&within(text, 0)?, true);
        }
        RawText::Chunked { sha256, chunks } => {
            let mut begin = 0u64;
            for (number, bytes) in (0u32..).zip(chunks) {
                let end = begin + u64::from(*bytes);
                if end > from && begin < to {
                    let chunk = history.read_chunk(reader, sha256, number, *bytes)?;
                    if !take(&within(&chunk, begin)?, end >= to) {
                        return Ok(());
                    }
                }
                begin = end;
            }
        }
    }
    Ok(())
}
