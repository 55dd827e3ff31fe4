//! The lines of an export: what each says, and how they are chained.
//!
//! In and out: one line of JSON. An export is, for each conversation, a header, its messages, its
//! summaries with sources before what was derived from them, its context, and an end. Every line
//! closes with a running sum over all lines up to it, so that one which was changed, lost or moved
//! is the first that does not fit. No line passes [`LINE_BYTES_MAX`]: a large text follows its
//! message in pieces.

use crate::storage::records::session::{Archived, Cause};
use crate::storage::session::Life;
use alloc::{boxed::Box, format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    summary::{self, SourceRef, Sources, StoredFinish, StoredLevel, Summary},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, Fields, Writer},
        limits, time,
    },
    message::trust::Trust,
    types::api::{Dialect, Timestamp},
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

/// What a line is that cannot be read.
const NO_LINE: &str = "is no line of an export";

/// The running sum.
pub(super) type Sum = [u8; 8];

/// Dialects by name.
const DIALECTS: [(&str, Dialect); 5] = [
    ("lcm", Dialect::Lcm),
    ("anthropic", Dialect::Anthropic),
    ("openai-chat", Dialect::OpenaiChat),
    ("openai-responses", Dialect::OpenaiResponses),
    ("gemini", Dialect::Gemini),
];
const LEVELS: [StoredLevel; 3] =
    [StoredLevel::Normal, StoredLevel::Aggressive, StoredLevel::Fallback];
const FINISHES: [StoredFinish; 3] =
    [StoredFinish::Stop, StoredFinish::Length, StoredFinish::Refusal];

/// One line without its sum.
pub(super) enum Line {
    Header(Header),
    Message(MessageLine),
    Large(LargeLine),
    Piece(PieceLine),
    Summary(Box<SummaryLine>),
    /// Items of the context, oldest first.
    Context(Vec<ItemLine>),
    End(EndLine),
}

/// Begins a conversation.
pub(super) struct Header {
    pub(super) format: String,
    pub(super) conversation: String,
    /// Which conversation of the export it is, from 1.
    pub(super) part: u64,
    pub(super) parts: u64,
    pub(super) messages: u64,
    /// Running hash after the last message.
    pub(super) frontier: [u8; 16],
    pub(super) summaries: u64,
    /// Items of the context.
    pub(super) items: u64,
    /// Family and archive; absent where there are none.
    pub(super) life: Life,
}

/// A message.
pub(super) struct MessageLine {
    pub(super) seq: u64,
    pub(super) dialect: Dialect,
    pub(super) time: Timestamp,
    /// Tokens from which on its payloads were large; `None`: none was.
    pub(super) payload_tokens_min: Option<u32>,
    pub(super) text: String,
}

/// A message whose text follows in pieces.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(super) struct LargeLine {
    pub(super) seq: u64,
    pub(super) dialect: Dialect,
    pub(super) time: Timestamp,
    /// As of a message that stands in one line.
    pub(super) payload_tokens_min: Option<u32>,
    pub(super) bytes: u64,
    pub(super) sha256: [u8; 32],
    /// Running hash after this message, because no single line can tell.
    pub(super) frontier: [u8; 16],
}

impl Sound for LargeLine {
    fn is_sound(&self) -> bool {
        codec::countable(&[self.seq, self.bytes]) && self.time <= time::MS_MAX
    }
}

/// A piece of a large text.
pub(super) struct PieceLine {
    pub(super) seq: u64,
    pub(super) offset: u64,
    pub(super) text: String,
}

/// A summary. A leaf has a `frontier`, a condensed one `sources`.
#[derive(Clone)]
pub(super) struct SummaryLine {
    pub(super) id: [u8; 8],
    /// As the line says it, verified in no way. The sizes of its sources are not known: 0.
    pub(super) record: Summary,
}

/// A summary, or without one a run of raw messages, or what was withdrawn.
#[derive(Clone, Copy)]
pub(super) struct ItemLine {
    pub(super) summary: Option<[u8; 8]>,
    pub(super) seq_first: u64,
    pub(super) seq_last: u64,
    /// The line says so only where it is true.
    pub(super) withdrawn: bool,
}

/// Ends a conversation.
pub(super) struct EndLine {
    pub(super) part: u64,
    pub(super) parts: u64,
    /// Lines of the export up to and with this one.
    pub(super) lines: u64,
}

/// A line of this kind, to be filled.
pub(super) fn line(kind: &str) -> Writer {
    Writer::on(&format!("{{\"{kind}\":{{"))
}

/// The line as it is written, and the sum after it.
pub(super) fn close(line: Writer, before: &Sum) -> (String, Sum) {
    let mut text = line.end_object();
    let sum = advance(before, &text);
    text.push_str(SUM);
    text.push_str(&hash::hex(&sum));
    text.push_str("\"}");
    (text, sum)
}

/// Reads a line that follows one with the sum `before`; returns its own sum, too.
///
/// # Errors
///
/// `invalid-input`: what is wrong with it, without its number.
pub(super) fn open(text: &str, before: &Sum) -> Result<(Line, Sum)> {
    if text.len() > LINE_BYTES_MAX {
        return Err(Error::invalid("is longer than any line of an export"));
    }
    let parts = text.len().checked_sub(SUM_BYTES).and_then(|at| text.split_at_checked(at));
    let (content, rest) = parts.unwrap_or_default();
    let sum = rest
        .strip_prefix(SUM)
        .and_then(|rest| rest.strip_suffix("\"}"))
        .and_then(hash::unhex)
        .ok_or_else(|| Error::invalid(NO_LINE))?;
    let expected = advance(before, content);
    if sum != expected {
        return Err(Error::invalid("was changed, or a line before it is missing"));
    }
    Ok((read(text)?, expected))
}

fn advance(before: &Sum, content: &str) -> Sum {
    hash::prefix(&hash::hash(&[b"lcm export", before, content.as_bytes()]))
}

/// Reads the content of a line; its other member is the sum.
fn read(text: &str) -> Result<Line> {
    let members = json::object(text)?;
    let [content, _] = members.as_slice() else {
        return Err(Error::invalid(NO_LINE));
    };
    let mut fields = Fields::new(text, json::members(text, content.value));
    let f = &mut fields;
    let line = match &*json::text(text, content.key) {
        "header" => Line::Header(Header {
            format: f.text("format"),
            conversation: f.text("conversation"),
            part: f.number("part"),
            parts: f.number("parts"),
            messages: f.number("messages"),
            frontier: hash(f, "frontier"),
            summaries: f.number("summaries"),
            items: f.number("items"),
            life: life(f),
        }),
        "message" => Line::Message(MessageLine {
            seq: f.number("seq"),
            dialect: dialect(f),
            time: timestamp(f, "time"),
            payload_tokens_min: f.small_or_none("payload_tokens_min"),
            text: f.text("text"),
        }),
        "large" => Line::Large(LargeLine {
            seq: f.number("seq"),
            dialect: dialect(f),
            time: timestamp(f, "time"),
            payload_tokens_min: f.small_or_none("payload_tokens_min"),
            bytes: f.number("bytes"),
            sha256: hash(f, "sha256"),
            frontier: hash(f, "frontier"),
        }),
        "piece" => Line::Piece(PieceLine {
            seq: f.number("seq"),
            offset: f.number("offset"),
            text: f.text("text"),
        }),
        "summary" => Line::Summary(Box::new(summary_line(f))),
        "context" => Line::Context(items(text, f)?),
        "end" => Line::End(EndLine {
            part: f.number("part"),
            parts: f.number("parts"),
            lines: f.number("lines"),
        }),
        _ => return Err(Error::invalid(NO_LINE)),
    };
    fields.end(NO_LINE)?;
    Ok(line)
}

/// Family and archive of a conversation.
fn life(f: &mut Fields<'_>) -> Life {
    let family = f.text_or_none("family");
    let cause = f.choice("archived_cause", &Cause::NAMES);
    let archived = cause.map(|place| {
        let (cause, time) = (Cause::at(place), timestamp(f, "archived_at"));
        (Archived { cause, time, successor: None }, f.text_or_none("successor"))
    });
    Life { family, archived }
}

/// Writes what [`life`] reads.
pub(super) fn write_life(line: &mut Writer, life: &Life) {
    if let Some(family) = &life.family {
        line.text("family", family);
    }
    if let Some((archived, successor)) = &life.archived {
        line.text("archived_cause", archived.cause.as_str());
        line.time("archived_at", archived.time);
        if let Some(successor) = successor {
            line.text("successor", successor);
        }
    }
}

/// Bytes in hex.
fn hash<const N: usize>(fields: &mut Fields<'_>, key: &str) -> [u8; N] {
    hash_or_none(fields, key).unwrap_or_else(|| {
        fields.must_be(key, "a hash in hex");
        [0; N]
    })
}

/// Bytes in hex; `None`: the field is not there.
fn hash_or_none<const N: usize>(fields: &mut Fields<'_>, key: &str) -> Option<[u8; N]> {
    let text = fields.text_or_none(key)?;
    let bytes = hash::unhex(&text).unwrap_or_default();
    if bytes.len() != N {
        fields.must_be(key, "a hash in hex");
    }
    Some(hash::prefix(&bytes))
}

/// A time in ISO 8601.
fn timestamp(fields: &mut Fields<'_>, key: &str) -> Timestamp {
    let time = time::parse(&fields.text(key)).filter(|time| *time <= time::MS_MAX);
    time.unwrap_or_else(|| {
        fields.must_be(key, "a time");
        0
    })
}

fn dialect(fields: &mut Fields<'_>) -> Dialect {
    let place = fields.place("dialect", &DIALECTS.map(|(name, _)| name));
    DIALECTS.get(place).map_or(Dialect::Lcm, |(_, dialect)| *dialect)
}

/// The name of a dialect.
pub(super) fn dialect_name(dialect: Dialect) -> &'static str {
    DIALECTS.iter().find(|(_, known)| *known == dialect).map_or("", |(name, _)| name)
}

/// The id of a summary, from its name.
fn id(fields: &mut Fields<'_>, key: &str, name: &str) -> [u8; 8] {
    summary::parse_name(name).unwrap_or_else(|_| {
        fields.must_be(key, "the id of a summary");
        [0; 8]
    })
}

fn items(text: &str, fields: &mut Fields<'_>) -> Result<Vec<ItemLine>> {
    let mut items = Vec::new();
    for value in fields.list("items") {
        let mut item = Fields::new(text, json::members(text, value.span));
        let name = item.text_or_none("summary");
        items.push(ItemLine {
            summary: name.map(|name| id(&mut item, "summary", &name)),
            seq_first: item.number("seq_first"),
            seq_last: item.number("seq_last"),
            withdrawn: item.flag("withdrawn"),
        });
        item.end(NO_LINE)?;
    }
    Ok(items)
}

fn summary_line(f: &mut Fields<'_>) -> SummaryLine {
    let (seq_first, seq_last) = (f.number("seq_first"), f.number("seq_last"));
    let level = f.place("level", &LEVELS.map(StoredLevel::as_str));
    let trust = f.place("trust", &Trust::ALL.map(Trust::as_str));
    let name = f.text("id");
    SummaryLine {
        id: id(f, "id", &name),
        record: Summary {
            rules: f.small("rules"),
            depth: f.small("depth"),
            level: LEVELS.get(level).copied().unwrap_or(StoredLevel::Normal),
            capped: f.flag("capped"),
            sources: sources(f, seq_first, seq_last),
            task: hash(f, "task"),
            seq_first,
            seq_last,
            text: plain_text(f),
            tokens: f.small("tokens"),
            source_tokens: f.number("source_tokens"),
            message_tokens: f.number("message_tokens"),
            descendant_count: f.number("descendant_count"),
            descendant_tokens: f.number("descendant_tokens"),
            earliest_at: timestamp(f, "earliest_at"),
            latest_at: timestamp(f, "latest_at"),
            created_at: timestamp(f, "created_at"),
            model: f.text("model"),
            finish: finish(f),
            prompt_version: f.small("prompt_version"),
            trust: Trust::ALL.get(trust).copied().unwrap_or(Trust::Untrusted),
            findings: f.texts("findings"),
            file_ids: f.texts("file_ids"),
        },
    }
}

fn finish(f: &mut Fields<'_>) -> Option<StoredFinish> {
    let name = f.text_or_none("finish")?;
    let found = FINISHES.into_iter().find(|finish| finish.as_str() == name);
    if found.is_none() {
        f.must_be("finish", "`stop`, `length`, `refusal` or null");
    }
    found
}

fn sources(f: &mut Fields<'_>, seq_first: u64, seq_last: u64) -> Sources {
    match (hash_or_none(f, "frontier"), f.texts_or_none("sources")) {
        (Some(frontier), None) => Sources::Messages { seq_first, seq_last, frontier },
        (None, Some(names)) => {
            let source = |name: &String| SourceRef { id: id(f, "sources", name), bytes: 0 };
            Sources::Summaries(names.iter().map(source).collect())
        }
        _ => {
            f.must_be("sources", "given, or `frontier`");
            Sources::Summaries(Vec::new())
        }
    }
}

/// The text as it was summarised: `hex` says whether it is written in hex.
fn plain_text(f: &mut Fields<'_>) -> String {
    let text = f.text("text");
    if !f.flag("hex") {
        return text;
    }
    let plain = hash::unhex(&text).and_then(|bytes| String::from_utf8(bytes).ok());
    plain.unwrap_or_else(|| {
        f.must_be("text", "a text in hex");
        String::new()
    })
}

/// Writes the line of a summary. Its text is written in hex where JSON would more than double it.
pub(super) fn write_summary(record: &Summary) -> Writer {
    let escaped: usize = record.text.bytes().map(escaped_bytes).sum();
    let hex = escaped > 2 * record.text.len();
    let mut w = line("summary");
    w.text("id", &summary::name(record.id()));
    w.number("rules", record.rules.into());
    w.number("depth", record.depth.into());
    w.text("level", record.level.as_str());
    w.flag("capped", record.capped);
    w.number("seq_first", record.seq_first);
    w.number("seq_last", record.seq_last);
    match &record.sources {
        Sources::Messages { frontier, .. } => {
            w.text("frontier", &hash::hex(frontier));
            w.null("sources");
        }
        Sources::Summaries(_) => {
            w.null("frontier");
            w.texts("sources", &record.source_names());
        }
    }
    w.text("task", &hash::hex(&record.task));
    if hex {
        w.text("text", &hash::hex(record.text.as_bytes()));
    } else {
        w.text("text", &record.text);
    }
    w.flag("hex", hex);
    w.number("tokens", record.tokens.into());
    w.number("source_tokens", record.source_tokens);
    w.number("message_tokens", record.message_tokens);
    w.number("descendant_count", record.descendant_count);
    w.number("descendant_tokens", record.descendant_tokens);
    w.time("earliest_at", record.earliest_at);
    w.time("latest_at", record.latest_at);
    w.time("created_at", record.created_at);
    w.text("model", &record.model);
    w.text_or_null("finish", record.finish.map(StoredFinish::as_str));
    w.number("prompt_version", record.prompt_version.into());
    w.text("trust", record.trust.as_str());
    w.texts("findings", &record.findings);
    w.texts("file_ids", &record.file_ids);
    w
}

/// Bytes that JSON writes for a byte of text.
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

    /// The first line as `text`, with the sum that it then has.
    fn read(text: &str) -> Result<Line> {
        let sum = Sum::default();
        let hex = hash::hex(&advance(&sum, text));
        open(&format!("{text}{SUM}{hex}\"}}"), &sum).map(|(line, _)| line)
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
            "trust":"untrusted","findings":[],"file_ids":[]}"#;
        let Ok(Line::Summary(found)) = read(line) else { panic!("no summary") };
        assert_eq!(found.record.rules, 7);
        let without = line.replace("\"rules\":7,", "");
        assert!(read(&without).is_err_and(|error| error.message.contains("rules")));
    }
}
