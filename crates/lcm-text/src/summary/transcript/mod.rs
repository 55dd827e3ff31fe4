//! Renders messages and summaries as text for a summariser, and cleans its answers.
//!
//! Input: raw messages with their parts, or stored summaries. Output: one block of text for each, a
//! header line `[2026-01-02 03:04 user]` and then the content. Blocks are separated by one empty
//! line. Of the lines of content, only notes about omitted text begin with a bracket. The module
//! also renders summaries for contexts, and removes reasoning from answers.

mod answer_cleanup;
mod answer_wrapping;
mod block_header;
mod framing;
mod injected_context;
mod media_omission;
mod summary_markup;
mod truncation;

use alloc::{borrow::Cow, format, string::String, vec::Vec};

pub(crate) use self::{
    answer_cleanup::{DIRECTIVE_NOTE, EXPAND_PREFIX, is_truncation_note},
    framing::{LineKind, MARK, find_frame, frame_tags, is_line_end, push_line, split_lines},
    media_omission::MEDIA_NOTE,
};
pub use self::{
    answer_cleanup::{strip_reasoning, strip_truncation_notes},
    answer_wrapping::{strip_enclosure, unwrap_answer},
    block_header::{BlockHeader, parse_block_header, parse_inline_header},
    framing::{frame_answer, frame_content},
    summary_markup::{
        SummaryElement, render_focus_plain, render_focus_xml, render_summary_plain,
        render_summary_xml,
    },
    truncation::shorten_transcript,
};
use crate::{
    base::{
        json::{self, ByteSpan, JsonKind, JsonValue},
        time::{self, Timestamp},
        time_offsets::TimeOffsets,
    },
    message::{JsonObject, Part, Role},
};

/// Most JSON tokens of a value that is split into content blocks; a larger value is rendered as its
/// JSON, because parsed blocks take many times the memory of the value.
const BLOCK_TOKENS_MAX: usize = 1 << 16;

/// Options for rendering messages.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptOptions<'a> {
    /// Most tokens of one rendered part. A longer part is cut to its head and tail around a note;
    /// the tokens of the note are included.
    pub part_tokens_max: u32,
    /// Names of elements to remove, from `strip_injected_context_tags` of the configuration.
    pub injected_tags: &'a [String],
    /// Offsets of local time, in which times are rendered.
    pub offsets: &'a TimeOffsets,
}

/// A message to render.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptMessage<'a> {
    /// JSON of the message.
    pub raw: &'a str,
    /// Role of the message.
    pub role: Role,
    /// Parts of the message, as spans of `raw`.
    pub parts: &'a [Part],
    /// Time in milliseconds since the epoch, or [`time::UNDATED`].
    pub time: Timestamp,
}

/// A summary to render.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptSummary<'a> {
    /// `sum_...`.
    pub id: &'a str,
    /// Earliest and latest local time of a message, in milliseconds since the epoch; `None`: all
    /// messages are undated.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Depth; 0 is a leaf.
    pub depth: u32,
    /// Text of the summary.
    pub text: &'a str,
}

/// Appends one message as a block. Returns whether anything was appended.
///
/// | part | rendered as |
/// |---|---|
/// | text | the text |
/// | tool call | `tool call NAME: INPUT-JSON` |
/// | tool result | `tool result NAME:` or `tool error NAME:`, then the output on the next line |
/// | file | `file NAME (MIME)` and its text |
/// | reasoning | nothing |
/// | other | the texts of content blocks, or the JSON |
///
/// Media bytes, data URLs and base64 become `[media omitted]`. Elements with injected tags are
/// removed from texts of user and system messages. A tool's output over 2,000 tokens is cut to its
/// head, its tail and the failures between head and tail.
///
/// If `out` is not empty, an empty line is written before the block. A message of only blanks and
/// reasoning appends nothing; a message of only media is a block with the note. A message of parts
/// that differ in [`part_speaker`] is one block for each run of equal parts.
pub fn render_message(
    out: &mut String,
    message: &TranscriptMessage<'_>,
    options: TranscriptOptions<'_>,
) -> bool {
    let TranscriptMessage { raw, role, parts, time } = *message;
    let mut open: Option<&str> = None;
    for part in parts {
        let Some(text) = render_part(raw, part) else { continue };
        let speaker = part_speaker(role, part);
        if open != Some(speaker) {
            open_block(out, &format!("{}{speaker}", format_time_prefix(time, options.offsets)));
            open = Some(speaker);
        }
        // Memory plugins insert elements into user and system texts. Tool output is never hidden.
        let may_be_injected = matches!(role, Role::User | Role::System);
        let text = match part {
            Part::Text { .. } if may_be_injected => {
                injected_context::strip_injected_context(text, options.injected_tags)
            }
            _ => text,
        };
        let tokens_max = options.part_tokens_max;
        let text = match part {
            Part::ToolResult { .. } => {
                truncation::truncate_output(text, tokens_max.min(truncation::OUTPUT_TOKENS_MAX))
            }
            _ => truncation::truncate_text(text, tokens_max),
        };
        let is_labelled = matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. });
        push_content(out, &text, is_labelled);
    }
    open.is_some()
}

/// Returns the word by which a header names the author of a part: a role, or `data` for the text of
/// a file and for an unknown part, which the author of the message did not say.
#[must_use]
pub const fn part_speaker(role: Role, part: &Part) -> &'static str {
    match (role, part) {
        (_, Part::ToolResult { .. }) | (Role::Tool, _) => Role::Tool.as_str(),
        (_, Part::File { text: Some(_), .. } | Part::Other { .. }) => "data",
        _ => role.as_str(),
    }
}

/// Appends one summary as a block: `[2026-01-02 03:04 to 2026-01-02 04:10 summary sum_...]` and its
/// text; `[summary sum_...]` over undated messages.
///
/// The header of a summary of depth 2 or more ends with its depth (`summary sum_... depth 2`),
/// because the depth says how coarse the text is. If `out` is not empty, an empty line is written
/// before the block. A blank text appends nothing. The text is that of a stored summary, whose
/// lines begin with a bracket only where the engine wrote them.
pub fn render_summary(out: &mut String, summary: &TranscriptSummary<'_>) {
    let TranscriptSummary { id, times, depth, text } = *summary;
    if text.trim().is_empty() {
        return;
    }
    let times = format_span_prefix(times);
    let suffix = if depth < 2 { String::new() } else { format!(" depth {depth}") };
    open_block(out, &format!("{times}summary {id}{suffix}"));
    for line in split_lines(text.trim_end()) {
        out.push('\n');
        out.push_str(line);
    }
}

/// Formats a time as the beginning of a header: `2026-01-02 03:04 `, in local time; empty for
/// [`time::UNDATED`].
#[must_use]
pub fn format_time_prefix(time: Timestamp, offsets: &TimeOffsets) -> String {
    match time {
        time::UNDATED => String::new(),
        time => format!("{} ", time::iso_minutes(offsets.to_local(time))),
    }
}

/// Formats the earliest and the latest local time as the beginning of a header: `2026-01-02 03:04
/// to 2026-01-02 04:10 `; empty for `None`.
#[must_use]
pub fn format_span_prefix(times: Option<(Timestamp, Timestamp)>) -> String {
    times.map_or_else(String::new, |(from, to)| {
        format!("{} to {} ", time::iso_minutes(from), time::iso_minutes(to))
    })
}

fn open_block(out: &mut String, head: &str) {
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push('[');
    out.push_str(head);
    out.push(']');
}

/// Appends content line by line, each line after a line break, so that content cannot imitate
/// another message. `is_labelled`: the first line is a label of the engine.
fn push_content(out: &mut String, text: &str, is_labelled: bool) {
    for (number, line) in split_lines(text).enumerate() {
        out.push('\n');
        if is_labelled && number == 0 {
            out.push_str(line);
        } else {
            push_line(out, line, LineKind::Content);
        }
    }
}

/// Returns the rendered text of a part; `None`: the text would be blank, or the part is reasoning.
fn render_part<'r>(raw: &'r str, part: &Part) -> Option<Cow<'r, str>> {
    let text = match part {
        Part::Text { text } => clean_text(json::text(raw, *text)),
        Part::Reasoning { .. } => return None,
        Part::ToolCall { name, input, .. } => Cow::Owned(render_call(raw, *name, *input)?),
        Part::ToolResult { name, output, is_error, .. } => {
            Cow::Owned(render_result(raw, *name, *output, *is_error))
        }
        Part::File { name, mime, text, data } => {
            let mut out = render_file_line(raw, *name, *mime);
            if let Some(text) = text {
                out.push('\n');
                out.push_str(&render_text_or_value(raw, *text));
            } else if data.is_some() {
                out.push(' ');
                out.push_str(MEDIA_NOTE);
            }
            Cow::Owned(out)
        }
        Part::Other { value } => render_value(json::slice_span(raw, *value)),
    };
    (!text.trim().is_empty()).then_some(text)
}

/// Returns a text without trailing whitespace and with media replaced by [`MEDIA_NOTE`].
fn clean_text(text: Cow<'_, str>) -> Cow<'_, str> {
    media_omission::omit_media(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end()),
        Cow::Owned(mut text) => {
            text.truncate(text.trim_end().len());
            Cow::Owned(text)
        }
    })
}

fn optional_text(raw: &str, span: Option<ByteSpan>) -> Cow<'_, str> {
    span.map_or(Cow::Borrowed(""), |span| json::text(raw, span))
}

fn render_call(raw: &str, name: Option<ByteSpan>, input: Option<ByteSpan>) -> Option<String> {
    let name = optional_text(raw, name);
    let input = input.map_or_else(String::new, |span| match json::text(raw, span) {
        // Some providers write the input object as a string.
        Cow::Owned(text) if text.starts_with('{') => text,
        _ => json::compact_value(raw, span),
    });
    let blank = matches!(input.as_str(), "" | "{}" | "null" | "\"\"" | "\"{}\"");
    match (name.trim(), blank) {
        ("", true) => None,
        (name, true) => Some(format!("tool call {}", join_words(name))),
        (name, false) => {
            let space = if name.is_empty() { "" } else { " " };
            Some(format!(
                "tool call{space}{}: {}",
                join_words(name),
                media_omission::omit_media(Cow::Borrowed(&input))
            ))
        }
    }
}

fn render_result(
    raw: &str,
    name: Option<ByteSpan>,
    output: Option<ByteSpan>,
    is_error: bool,
) -> String {
    let kind = if is_error { "tool error" } else { "tool result" };
    let name = optional_text(raw, name);
    let output = output.map_or(Cow::Borrowed(""), |span| render_text_or_value(raw, span));
    let name = join_words(&name);
    let head = if name.is_empty() { kind.into() } else { format!("{kind} {name}") };
    let output = if output.trim().is_empty() { "(no output)" } else { &output };
    [&head, ":\n", output].concat()
}

fn render_file_line(raw: &str, name: Option<ByteSpan>, mime: Option<ByteSpan>) -> String {
    let (name, mime) = (optional_text(raw, name), optional_text(raw, mime));
    let mut out = String::from("file");
    if !name.trim().is_empty() {
        out.push(' ');
        out.push_str(&join_words(&name));
    }
    if !mime.trim().is_empty() {
        out.push_str(" (");
        out.push_str(&join_words(&mime));
        out.push(')');
    }
    out
}

/// Returns a name in one line.
fn join_words(name: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || is_line_end(c);
    let words: Vec<&str> = name.split(is_gap).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Renders a string as its text, `null` as nothing, and any other value by [`render_value`].
fn render_text_or_value(raw: &str, span: ByteSpan) -> Cow<'_, str> {
    match json::slice_span(raw, span).trim_start() {
        value if value.starts_with('"') => clean_text(json::text(raw, span)),
        "null" => Cow::Borrowed(""),
        value => render_value(value),
    }
}

/// Renders a JSON value of unknown shape. A content block or a list of content blocks, the form of
/// tool output for several providers, becomes the texts of its blocks, with [`MEDIA_NOTE`] for
/// media. Any other value becomes its JSON.
fn render_value(value: &str) -> Cow<'_, str> {
    if json::has_more_tokens(value, BLOCK_TOKENS_MAX) {
        return media_omission::omit_media(Cow::Borrowed(value));
    }
    let span = ByteSpan::from_range(0, value.len());
    let mut blocks: Vec<String> = Vec::new();
    let mut others = false;
    let mut take = |element: JsonValue| {
        if !others {
            let block = render_block(value, element);
            others = block.is_none();
            blocks.extend(block);
        }
    };
    let whole = match json::kind(value, span) {
        JsonKind::Array => json::each_element(value, span, take),
        kind => {
            take(JsonValue { span, kind });
            true
        }
    };
    // A value that is no complete array comes from a shortened list of parts; its JSON is rendered.
    if whole && !others && !blocks.is_empty() {
        Cow::Owned(blocks.join("\n"))
    } else {
        media_omission::omit_media(Cow::Borrowed(value))
    }
}

/// Renders an object with a `type`; `None`: any other value.
fn render_block(raw: &str, value: JsonValue) -> Option<String> {
    let block = JsonObject::from_value(raw, value)?;
    json::find_member(&block.members, raw, "type")?;
    let kind = block.get_text("type");
    Some(match (&*kind, block.get_string("text")) {
        ("text" | "input_text" | "output_text", Some(text)) => {
            clean_text(json::text(raw, text)).into_owned()
        }
        _ if ["image", "audio", "video"].iter().any(|media| kind.contains(media)) => {
            MEDIA_NOTE.into()
        }
        _ => media_omission::omit_media(Cow::Owned(json::compact_value(raw, value.span)))
            .into_owned(),
    })
}

#[cfg(test)]
mod tests;
