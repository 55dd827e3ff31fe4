//! The line format of an export: the fields of each line, and the checksum that chains the lines.
//!
//! In and out: one line of JSON, for the export and the import. For each conversation an export has
//! a header, the versions of the system messages, the messages, the summaries (each after its
//! sources), the withdrawn ranges, the context, and an end. Every line closes with a checksum over
//! this line and all lines before it. The checksum finds the first line that was changed, lost or
//! moved. No line is longer than [`LINE_BYTES_MAX`]: the text of a large message follows its line
//! in pieces, and large texts of system messages come in pieces before the line of their version.

use crate::storage::records::session::{ArchiveCause, ArchiveRecord};
use crate::storage::session::SessionLifecycle;
use alloc::{boxed::Box, format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    message_span::MessageSpan,
    pack::RawText,
    records::{
        remakes::ContextExit,
        system_slot::{SystemText, SystemVersion},
        withdrawals::{BranchStart, WithdrawalReason, Withdrawals, WithdrawnRange},
    },
    summary::{self, Provisional, SourceRef, StoredFinish, StoredLevel, Summary, SummarySources},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, JsonFields, JsonWriter},
        limits, time,
    },
    message::trust::Trust,
    types::api::{Dialect, Timestamp},
};

/// Name and version of the format.
pub(super) const FORMAT: &str = "lcm-export/1";
/// Maximum bytes of a message text that is in the line of its message; a longer text follows in
/// pieces.
pub(super) const INLINE_BYTES_MAX: usize = limits::PACK_BYTES_MAX;
/// Maximum bytes of a line. The longest line that an export writes is a summary of 256 KiB in hex
/// digits, with its lists.
pub(super) const LINE_BYTES_MAX: usize = 768 << 10;
/// Maximum number of context items or withdrawn ranges of one line.
pub(super) const ITEMS_PER_LINE: usize = 128;
/// Text between the content of a line, which is an object without its last brace, and the checksum.
const CHECKSUM_PREFIX: &str = ",\"sum\":\"";
/// Bytes of a line after its content: [`CHECKSUM_PREFIX`], 16 hex digits, a quote and a brace.
const CHECKSUM_SUFFIX_BYTES: usize = CHECKSUM_PREFIX.len() + 18;

/// Fault of a line that cannot be parsed, after `line N` in an error text.
const NOT_A_LINE: &str = "is not a line of an export";

/// Checksum over all lines of an export up to one line; zeros before the first line.
pub(super) type LineChecksum = [u8; 8];

const LEVELS: [StoredLevel; 3] =
    [StoredLevel::Normal, StoredLevel::Aggressive, StoredLevel::Fallback];
const FINISHES: [StoredFinish; 3] =
    [StoredFinish::Stop, StoredFinish::Length, StoredFinish::Refusal];

/// The parsed content of one line.
pub(super) enum ExportLine {
    Header(HeaderLine),
    System(SystemLine),
    SystemChunk(SystemChunkLine),
    Message(MessageLine),
    LargeMessage(LargeMessageLine),
    Chunk(ChunkLine),
    Summary(Box<SummaryLine>),
    /// Ranges of messages that were set aside or are other forms of messages, or starts of
    /// branches; ascending.
    Withdrawn(Withdrawals),
    /// Items of the context, oldest first.
    Context(Vec<ExportedItem>),
    End(EndLine),
}

/// The line that begins a conversation.
pub(super) struct HeaderLine {
    pub(super) format: String,
    pub(super) conversation: String,
    /// Number of the conversation in the export, from 1.
    pub(super) part: u64,
    /// Number of conversations in the export.
    pub(super) parts: u64,
    /// Number of messages of the conversation.
    pub(super) messages: u64,
    /// Running hash after the last message.
    pub(super) frontier: [u8; 16],
    /// Number of summaries of the conversation.
    pub(super) summaries: u64,
    /// Number of context items.
    pub(super) items: u64,
    /// Number of ranges of messages that were set aside or are other forms of messages, plus the
    /// number of branch starts. An export leaves the field out if this number is 0.
    pub(super) withdrawn: u64,
    /// Family and archive record.
    pub(super) life: SessionLifecycle,
}

/// The line of a version of the system messages. The versions come in order, the newest last.
pub(super) struct SystemLine {
    pub(super) number: u64,
    pub(super) time: Timestamp,
    /// Id of the version that was the newest before; `None`: there was none.
    pub(super) previous: Option<[u8; 8]>,
    pub(super) messages: Vec<SystemLineMessage>,
}

/// A message of a version of the system messages.
pub(super) struct SystemLineMessage {
    pub(super) dialect: Dialect,
    pub(super) text: SystemLineText,
}

/// The text of a message of a version.
pub(super) enum SystemLineText {
    Whole(String),
    /// SHA-256 of a text whose pieces came before.
    Chunked([u8; 32]),
}

/// The line of one piece of a large text of a version.
pub(super) struct SystemChunkLine {
    pub(super) sha256: [u8; 32],
    /// Offset of the piece in the text, in bytes.
    pub(super) offset: u64,
    pub(super) text: String,
}

/// The line of a message with its text.
pub(super) struct MessageLine {
    pub(super) seq: u64,
    pub(super) dialect: Dialect,
    pub(super) time: Timestamp,
    /// Minimum tokens of a large payload when the message was stored; `None`: the message
    /// has no placeholder.
    pub(super) payload_tokens_min: Option<u32>,
    pub(super) text: String,
}

/// The line of a message whose text follows in pieces.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(super) struct LargeMessageLine {
    pub(super) seq: u64,
    pub(super) dialect: Dialect,
    pub(super) time: Timestamp,
    /// Minimum tokens of a large payload when the message was stored; `None`: the message
    /// has no placeholder.
    pub(super) payload_tokens_min: Option<u32>,
    pub(super) bytes: u64,
    pub(super) sha256: [u8; 32],
    /// Running hash after this message, because no single line has the text to compute the hash
    /// from.
    pub(super) frontier: [u8; 16],
}

impl SoundRecord for LargeMessageLine {
    fn is_sound(&self) -> bool {
        codec::are_countable(&[self.seq, self.bytes]) && self.time <= time::MS_MAX
    }
}

/// The line of one piece of a large text.
pub(super) struct ChunkLine {
    /// Seq of the message to which the text belongs.
    pub(super) seq: u64,
    /// Offset of the piece in the text, in bytes.
    pub(super) offset: u64,
    pub(super) text: String,
}

/// The line of a summary. In the line of a leaf `sources` is null, in that of a condensed summary
/// `frontier` is null.
#[derive(Clone)]
pub(super) struct SummaryLine {
    pub(super) id: [u8; 8],
    /// The record as parsed from the line, not verified; the sizes in its source references are 0.
    pub(super) record: Summary,
    pub(super) place: SummaryPlace,
}

/// Facts about a summary that its record does not contain.
#[derive(Clone, Copy, Default)]
pub(super) struct SummaryPlace {
    /// How the summary left the context; `None`: the summary did not leave the context.
    pub(super) exit: Option<ContextExit>,
    /// Whether another summary was made later from one of the sources.
    pub(super) is_superseded: bool,
}

/// A context item: a summary, a run of raw messages, or withdrawn messages.
#[derive(Clone, Copy)]
pub(super) struct ExportedItem {
    /// Id of the summary; `None`: raw or withdrawn messages.
    pub(super) summary: Option<[u8; 8]>,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    /// Whether the messages were withdrawn; an export writes this field only if true.
    pub(super) withdrawn: bool,
}

/// The line that ends a conversation.
pub(super) struct EndLine {
    pub(super) part: u64,
    pub(super) parts: u64,
    /// Number of lines of the whole export up to and including this line.
    pub(super) lines: u64,
}

/// Begins a line of this kind; the caller adds the fields.
pub(super) fn begin_line(kind: &str) -> JsonWriter {
    JsonWriter::from_open_text(&format!("{{\"{kind}\":{{"))
}

/// Closes a line whose predecessor has the checksum `before`; returns the text and its checksum.
pub(super) fn close_line(line: JsonWriter, before: &LineChecksum) -> (String, LineChecksum) {
    let mut text = line.end_object();
    let sum = advance_checksum(before, &text);
    text.push_str(CHECKSUM_PREFIX);
    text.push_str(&hash::hex(&sum));
    text.push_str("\"}");
    (text, sum)
}

/// Parses a line that follows the checksum `before`; returns its content and its checksum.
///
/// # Errors
///
/// `invalid-input`: the line is too long, was changed, or is malformed. The error text is the fault
/// alone; the caller adds the number of the line.
pub(super) fn parse_line(text: &str, before: &LineChecksum) -> Result<(ExportLine, LineChecksum)> {
    if text.len() > LINE_BYTES_MAX {
        return Err(Error::invalid_input(format_args!(
            "must have at most {LINE_BYTES_MAX} bytes, got {}",
            text.len()
        )));
    }
    let parts =
        text.len().checked_sub(CHECKSUM_SUFFIX_BYTES).and_then(|at| text.split_at_checked(at));
    let (content, rest) = parts.unwrap_or_default();
    let sum = rest
        .strip_prefix(CHECKSUM_PREFIX)
        .and_then(|rest| rest.strip_suffix("\"}"))
        .and_then(hash::decode_hex)
        .ok_or_else(|| Error::invalid_input(NOT_A_LINE))?;
    let expected = advance_checksum(before, content);
    if sum != expected {
        return Err(Error::invalid_input("was changed, or the line before it is missing"));
    }
    Ok((parse_content(text)?, expected))
}

fn advance_checksum(before: &LineChecksum, content: &str) -> LineChecksum {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm export", before, content.as_bytes()]))
}

/// Parses the first member of a line, which is its content; the second member is the checksum.
fn parse_content(text: &str) -> Result<ExportLine> {
    let members = json::parse_object(text)?;
    let [content, _] = members.as_slice() else {
        return Err(Error::invalid_input(NOT_A_LINE));
    };
    let mut fields = JsonFields::new(text, json::list_members(text, content.value));
    let f = &mut fields;
    let line = match &*json::text(text, content.key) {
        "header" => ExportLine::Header(HeaderLine {
            format: f.take_text("format"),
            conversation: f.take_text("conversation"),
            part: f.take_u64("part"),
            parts: f.take_u64("parts"),
            messages: f.take_u64("messages"),
            frontier: read_hash(f, "frontier"),
            summaries: f.take_u64("summaries"),
            items: f.take_u64("items"),
            withdrawn: f.take_optional_u64("withdrawn").unwrap_or(0),
            life: read_session(f),
        }),
        "system" => ExportLine::System(read_system(text, f)?),
        "system_piece" => ExportLine::SystemChunk(SystemChunkLine {
            sha256: read_hash(f, "sha256"),
            offset: f.take_u64("offset"),
            text: f.take_text("text"),
        }),
        "message" => ExportLine::Message(MessageLine {
            seq: f.take_u64("seq"),
            dialect: read_dialect(f),
            time: read_message_time(f, "time"),
            payload_tokens_min: f.take_optional_u32("payload_tokens_min"),
            text: f.take_text("text"),
        }),
        "large" => ExportLine::LargeMessage(LargeMessageLine {
            seq: f.take_u64("seq"),
            dialect: read_dialect(f),
            time: read_message_time(f, "time"),
            payload_tokens_min: f.take_optional_u32("payload_tokens_min"),
            bytes: f.take_u64("bytes"),
            sha256: read_hash(f, "sha256"),
            frontier: read_hash(f, "frontier"),
        }),
        "piece" => ExportLine::Chunk(ChunkLine {
            seq: f.take_u64("seq"),
            offset: f.take_u64("offset"),
            text: f.take_text("text"),
        }),
        "summary" => ExportLine::Summary(Box::new(read_summary(text, f)?)),
        "withdrawn" => ExportLine::Withdrawn(read_withdrawals(text, f)?),
        "context" => ExportLine::Context(read_items(text, f)?),
        "end" => ExportLine::End(EndLine {
            part: f.take_u64("part"),
            parts: f.take_u64("parts"),
            lines: f.take_u64("lines"),
        }),
        _ => return Err(Error::invalid_input(NOT_A_LINE)),
    };
    fields.finish(NOT_A_LINE)?;
    Ok(line)
}

/// Reads the family key and the archive record of a header; `None` for each that the header lacks.
fn read_session(f: &mut JsonFields<'_>) -> SessionLifecycle {
    let family = f.take_optional_text("family");
    let cause = f.take_optional_choice("archived_cause", &ArchiveCause::NAMES);
    let archived = cause.map(|index| {
        let (cause, time) = (ArchiveCause::from_index(index), read_timestamp(f, "archived_at"));
        (ArchiveRecord { cause, time, successor: None }, f.take_optional_text("successor"))
    });
    SessionLifecycle { family, archived }
}

/// Writes the fields that [`read_session`] reads.
pub(super) fn write_session(line: &mut JsonWriter, life: &SessionLifecycle) {
    if let Some(family) = &life.family {
        line.add_text("family", family);
    }
    if let Some((archived, successor)) = &life.archived {
        line.add_text("archived_cause", archived.cause.as_str());
        line.add_time("archived_at", archived.time);
        if let Some(successor) = successor {
            line.add_text("successor", successor);
        }
    }
}

/// Reads a required hash of `N` bytes in hex digits.
fn read_hash<const N: usize>(fields: &mut JsonFields<'_>, key: &str) -> [u8; N] {
    read_optional_hash(fields, key).unwrap_or_else(|| {
        fields.reject_field(key, "a hash in hex");
        [0; N]
    })
}

/// Reads an optional hash of `N` bytes in hex digits; `None`: the field is absent or null.
fn read_optional_hash<const N: usize>(fields: &mut JsonFields<'_>, key: &str) -> Option<[u8; N]> {
    let text = fields.take_optional_text(key)?;
    let bytes = hash::decode_hex(&text).unwrap_or_default();
    if bytes.len() != N {
        fields.reject_field(key, "a hash in hex");
    }
    Some(hash::hash_prefix(&bytes))
}

/// Reads the time of a message, or of messages; absent or null: undated.
fn read_message_time(fields: &mut JsonFields<'_>, key: &str) -> Timestamp {
    match fields.take_optional_text(key) {
        Some(text) => parse_time(fields, key, &text),
        None => time::UNDATED,
    }
}

/// Reads a required time in ISO 8601.
fn read_timestamp(fields: &mut JsonFields<'_>, key: &str) -> Timestamp {
    let text = fields.take_text(key);
    parse_time(fields, key, &text)
}

fn parse_time(fields: &mut JsonFields<'_>, key: &str, text: &str) -> Timestamp {
    let time = time::parse(text).filter(|time| *time <= time::MS_MAX);
    time.unwrap_or_else(|| {
        fields.reject_field(key, "a time in ISO 8601");
        time::UNDATED
    })
}

fn read_dialect(fields: &mut JsonFields<'_>) -> Dialect {
    let index = fields.take_choice("dialect", &Dialect::ALL.map(Dialect::as_str));
    Dialect::ALL.get(index).copied().unwrap_or(Dialect::Lcm)
}

/// Parses the printed id `name` of a summary; records a fault of the field `key` if `name` is no
/// summary id.
fn parse_summary_id(fields: &mut JsonFields<'_>, key: &str, name: &str) -> [u8; 8] {
    summary::parse_summary_id(name).unwrap_or_else(|_| {
        fields.reject_field(key, "the id of a summary");
        [0; 8]
    })
}

fn read_system(text: &str, fields: &mut JsonFields<'_>) -> Result<SystemLine> {
    let mut messages = Vec::new();
    for value in fields.take_list("messages") {
        let mut message = JsonFields::new(text, json::list_members(text, value.span));
        messages.push(SystemLineMessage {
            dialect: read_dialect(&mut message),
            text: match read_optional_hash(&mut message, "sha256") {
                Some(sha256) => SystemLineText::Chunked(sha256),
                None => SystemLineText::Whole(message.take_text("text")),
            },
        });
        message.finish(NOT_A_LINE)?;
    }
    Ok(SystemLine {
        number: fields.take_u64("number"),
        time: read_timestamp(fields, "time"),
        previous: read_optional_hash(fields, "previous"),
        messages,
    })
}

/// Builds the line of a version with these texts.
pub(super) fn write_system(version: &SystemVersion, texts: &[SystemText]) -> JsonWriter {
    let mut messages = JsonWriter::new_array();
    for (message, text) in version.messages.iter().zip(texts) {
        let mut row = JsonWriter::new_object();
        row.add_text("dialect", message.dialect.as_str());
        match &message.raw {
            RawText::Inline(_) => row.add_text("text", &text.raw),
            RawText::Chunked { sha256, .. } => row.add_text("sha256", &hash::hex(sha256)),
        }
        messages.push_object(row);
    }
    let mut line = begin_line("system");
    line.add_number("number", version.number);
    line.add_time("time", version.time);
    line.add_optional_text("previous", version.previous.map(|id| hash::hex(&id)).as_deref());
    line.add_array("messages", messages);
    line
}

fn read_withdrawals(text: &str, fields: &mut JsonFields<'_>) -> Result<Withdrawals> {
    let (mut ranges, mut branches) = (Vec::new(), Vec::new());
    for value in fields.take_optional_list("branches") {
        let mut start = JsonFields::new(text, json::list_members(text, value.span));
        branches.push(BranchStart { seq: start.take_u64("seq"), after: start.take_u64("after") });
        start.finish(NOT_A_LINE)?;
    }
    for value in fields.take_list("ranges") {
        let mut range = JsonFields::new(text, json::list_members(text, value.span));
        let after = range.take_optional_u64("after");
        let reason =
            after.map_or(WithdrawalReason::Revision, |after| WithdrawalReason::SetAside { after });
        let (seq_first, seq_last) = (range.take_u64("seq_first"), range.take_u64("seq_last"));
        ranges.push(WithdrawnRange { seq_first, seq_last, reason });
        range.finish(NOT_A_LINE)?;
    }
    Ok(Withdrawals { ranges, branches, forms: Vec::new() })
}

/// Builds the export line of the starts of branches.
pub(super) fn write_branches(branches: &[BranchStart]) -> JsonWriter {
    let mut rows = JsonWriter::new_array();
    for BranchStart { seq, after } in branches {
        let mut row = JsonWriter::new_object();
        row.add_number("seq", *seq);
        row.add_number("after", *after);
        rows.push_object(row);
    }
    let mut line = begin_line("withdrawn");
    line.add_array("branches", rows);
    line.add_array("ranges", JsonWriter::new_array());
    line
}

/// Builds the line of ranges. A set-aside range names in `after` the message that it followed; a
/// range without `after` has other forms of messages.
pub(super) fn write_ranges(ranges: &[WithdrawnRange]) -> JsonWriter {
    let mut rows = JsonWriter::new_array();
    for WithdrawnRange { seq_first, seq_last, reason } in ranges {
        let mut row = begin_range(*seq_first, *seq_last);
        if let WithdrawalReason::SetAside { after } = reason {
            row.add_number("after", *after);
        }
        rows.push_object(row);
    }
    let mut line = begin_line("withdrawn");
    line.add_array("ranges", rows);
    line
}

fn read_items(text: &str, fields: &mut JsonFields<'_>) -> Result<Vec<ExportedItem>> {
    let mut items = Vec::new();
    for value in fields.take_list("items") {
        let mut item = JsonFields::new(text, json::list_members(text, value.span));
        let name = item.take_optional_text("summary");
        items.push(ExportedItem {
            summary: name.map(|name| parse_summary_id(&mut item, "summary", &name)),
            seq_first: item.take_u64("seq_first"),
            seq_last: item.take_u64("seq_last"),
            withdrawn: item.take_flag("withdrawn"),
        });
        item.finish(NOT_A_LINE)?;
    }
    Ok(items)
}

fn read_summary(text: &str, f: &mut JsonFields<'_>) -> Result<SummaryLine> {
    let (seq_first, seq_last) = (f.take_u64("seq_first"), f.take_u64("seq_last"));
    let level = f.take_choice("level", &LEVELS.map(StoredLevel::as_str));
    let trust = f.take_choice("trust", &Trust::ALL.map(Trust::as_str));
    let provisional = f.take_choice("provisional", &Provisional::ALL.map(Provisional::as_str));
    let (name, replaces) = (f.take_text("id"), f.take_optional_text("replaces"));
    let span = MessageSpan { seq_first, seq_last, gaps: read_gaps(text, f)? };
    let place = SummaryPlace { exit: read_exit(f), is_superseded: f.take_flag("superseded") };
    Ok(SummaryLine {
        id: parse_summary_id(f, "id", &name),
        place,
        record: Summary {
            derivation_version: f.take_u32("rules"),
            depth: f.take_u32("depth"),
            level: LEVELS.get(level).copied().unwrap_or(StoredLevel::Normal),
            capped: f.take_flag("capped"),
            sources: read_sources(f, span),
            task: read_hash(f, "task"),
            seq_first,
            seq_last,
            text: read_summary_text(f),
            tokens: f.take_u32("tokens"),
            source_tokens: f.take_u64("source_tokens"),
            message_tokens: f.take_u64("message_tokens"),
            descendant_count: f.take_u64("descendant_count"),
            descendant_tokens: f.take_u64("descendant_tokens"),
            earliest_at: read_message_time(f, "earliest_at"),
            latest_at: read_message_time(f, "latest_at"),
            created_at: read_timestamp(f, "created_at"),
            model: f.take_text("model"),
            finish: read_finish(f),
            prompt_version: f.take_u32("prompt_version"),
            trust: Trust::ALL.get(trust).copied().unwrap_or(Trust::Untrusted),
            findings: f.take_texts("findings"),
            file_ids: f.take_texts("file_ids"),
            provisional: Provisional::ALL.get(provisional).copied().unwrap_or(Provisional::No),
            replaces: replaces.map(|name| parse_summary_id(f, "replaces", &name)),
        },
    })
}

/// Reads the gaps of a leaf; absent: the leaf has none.
fn read_gaps(text: &str, fields: &mut JsonFields<'_>) -> Result<Vec<(u64, u64)>> {
    let mut gaps = Vec::new();
    for value in fields.take_optional_list("gaps") {
        let mut gap = JsonFields::new(text, json::list_members(text, value.span));
        gaps.push((gap.take_u64("seq_first"), gap.take_u64("seq_last")));
        gap.finish(NOT_A_LINE)?;
    }
    Ok(gaps)
}

fn write_gaps(gaps: &[(u64, u64)]) -> JsonWriter {
    let mut rows = JsonWriter::new_array();
    for (seq_first, seq_last) in gaps {
        rows.push_object(begin_range(*seq_first, *seq_last));
    }
    rows
}

fn begin_range(seq_first: u64, seq_last: u64) -> JsonWriter {
    let mut row = JsonWriter::new_object();
    row.add_number("seq_first", seq_first);
    row.add_number("seq_last", seq_last);
    row
}

fn read_exit(f: &mut JsonFields<'_>) -> Option<ContextExit> {
    let name = f.take_optional_text("exit")?;
    let found = ContextExit::ALL.into_iter().find(|exit| exit.as_str() == name);
    if found.is_none() {
        f.reject_field("exit", "`gave-way` or `withdrawn`");
    }
    found
}

fn read_finish(f: &mut JsonFields<'_>) -> Option<StoredFinish> {
    let name = f.take_optional_text("finish")?;
    let found = FINISHES.into_iter().find(|finish| finish.as_str() == name);
    if found.is_none() {
        f.reject_field("finish", "`stop`, `length`, `refusal` or null");
    }
    found
}

fn read_sources(f: &mut JsonFields<'_>, span: MessageSpan) -> SummarySources {
    match (read_optional_hash(f, "frontier"), f.take_optional_texts("sources")) {
        (Some(frontier), None) => SummarySources::Messages { span, frontier },
        (None, Some(names)) => {
            if !span.gaps.is_empty() {
                f.reject_field("gaps", "absent when `sources` is given");
            }
            let source =
                |name: &String| SourceRef { id: parse_summary_id(f, "sources", name), bytes: 0 };
            SummarySources::Summaries(names.iter().map(source).collect())
        }
        _ => {
            f.reject_field("sources", "a list of ids, or null when `frontier` is given");
            SummarySources::Summaries(Vec::new())
        }
    }
}

/// Reads the text of a summary; if the field `hex` is true, the text is in hex digits.
fn read_summary_text(f: &mut JsonFields<'_>) -> String {
    let text = f.take_text("text");
    if !f.take_flag("hex") {
        return text;
    }
    let decoded = hash::decode_hex(&text).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_else(|| {
        f.reject_field("text", "a text in hex");
        String::new()
    })
}

/// Builds the line of a summary. The text is in hex digits if JSON escapes would more than double
/// its length.
pub(super) fn write_summary(record: &Summary, place: SummaryPlace) -> JsonWriter {
    let escaped: usize = record.text.bytes().map(escaped_bytes).sum();
    let is_hex = escaped > 2 * record.text.len();
    let mut w = begin_line("summary");
    w.add_text("id", &summary::format_summary_id(record.id()));
    w.add_number("rules", record.derivation_version.into());
    w.add_number("depth", record.depth.into());
    w.add_text("level", record.level.as_str());
    w.add_flag("capped", record.capped);
    w.add_number("seq_first", record.seq_first);
    w.add_number("seq_last", record.seq_last);
    match &record.sources {
        SummarySources::Messages { span, frontier } => {
            w.add_text("frontier", &hash::hex(frontier));
            if !span.gaps.is_empty() {
                w.add_array("gaps", write_gaps(&span.gaps));
            }
            w.add_null("sources");
        }
        SummarySources::Summaries(_) => {
            w.add_null("frontier");
            w.add_texts("sources", &record.source_ids());
        }
    }
    w.add_text("provisional", record.provisional.as_str());
    let replaces = record.replaces.map(summary::format_summary_id);
    w.add_optional_text("replaces", replaces.as_deref());
    if let Some(exit) = place.exit {
        w.add_text("exit", exit.as_str());
    }
    if place.is_superseded {
        w.add_flag("superseded", true);
    }
    w.add_text("task", &hash::hex(&record.task));
    if is_hex {
        w.add_text("text", &hash::hex(record.text.as_bytes()));
    } else {
        w.add_text("text", &record.text);
    }
    w.add_flag("hex", is_hex);
    w.add_number("tokens", record.tokens.into());
    w.add_number("source_tokens", record.source_tokens);
    w.add_number("message_tokens", record.message_tokens);
    w.add_number("descendant_count", record.descendant_count);
    w.add_number("descendant_tokens", record.descendant_tokens);
    w.add_message_time("earliest_at", record.earliest_at);
    w.add_message_time("latest_at", record.latest_at);
    w.add_time("created_at", record.created_at);
    w.add_text("model", &record.model);
    w.add_optional_text("finish", record.finish.map(StoredFinish::as_str));
    w.add_number("prompt_version", record.prompt_version.into());
    w.add_text("trust", record.trust.as_str());
    w.add_texts("findings", &record.findings);
    w.add_texts("file_ids", &record.file_ids);
    w
}

/// Returns how many bytes a byte of text takes in a JSON string.
fn escaped_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `text` as the content of a first line with its checksum.
    fn read(text: &str) -> Result<ExportLine> {
        let sum = LineChecksum::default();
        let hex = hash::hex(&advance_checksum(&sum, text));
        parse_line(&format!("{text}{CHECKSUM_PREFIX}{hex}\"}}"), &sum).map(|(line, _)| line)
    }

    #[test]
    fn a_summary_without_its_rules_is_no_line() {
        let line = r#"{"summary":{"id":"sum_0123456789abcdef","rules":7,"depth":0,"level":"normal",
            "capped":false,"seq_first":1,"seq_last":2,
            "frontier":"00000000000000000000000000000000","sources":null,
            "task":"00000000000000000000000000000000","text":"t","hex":false,"tokens":1,
            "source_tokens":9,"message_tokens":9,"descendant_count":0,"descendant_tokens":0,
            "earliest_at":"2026-01-02T03:04:05.000Z","latest_at":"2026-01-02T03:04:05.000Z",
            "created_at":"2026-01-02T03:04:05.000Z","model":"m","prompt_version":1,
            "provisional":"no",
            "trust":"untrusted","findings":[],"file_ids":[]}"#;
        let Ok(ExportLine::Summary(found)) = read(line) else { panic!("no summary") };
        assert_eq!(found.record.derivation_version, 7);
        let without = line.replace("\"rules\":7,", "");
        assert!(read(&without).is_err_and(|error| error.message.contains("rules")));
    }
}
