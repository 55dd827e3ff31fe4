//! A message or summary as evidence: a header with its id, and its text or a part of the text.
//!
//! In: the seq of a message or the id of a summary. Out: a block that a model can cite.
//! [`crate::ask`] uses this module. In the body, only lines that the engine wrote begin with a
//! bracket. The same request, offset and token limit always give the same text. Calls and results
//! of the engine's own tools are omitted: they would repeat the evidence.

use crate::search::grep;
use crate::storage::pack::PlacedMessage;
use alloc::{format, string::String, vec::Vec};

use crate::{
    search::{each_field, text_query::TextQuery},
    storage::{
        history::MessageHistory,
        records::question::EvidenceSource,
        store_session::StoreSession,
        summary::{self, Summary},
        withdrawn_mark::WithdrawnMark,
    },
};
use lcm_text::{
    base::{error::Result, int, json, time_offsets::TimeOffsets, tokens},
    message::{Part, Role},
    summary::transcript::{self, TranscriptMessage, TranscriptOptions},
};

/// Tokens of a message above which its texts are taken whole. A transcript would shorten tool
/// results of more tokens and might omit the match.
const LARGE_MESSAGE_TOKENS: u32 = 2_000;
/// Mark of an omitted part of the text.
const ELLIPSIS: &str = "\u{2026}";
/// Prefix of the line of a call of the engine's own tools.
const OWN_CALL_PREFIX: &str = "tool call lcm_";
/// Maximum bytes before the background line in a tool result that is JSON, such as a list of one
/// text.
const LIST_PREFIX_BYTES_MAX: usize = 64;
/// The words in a header that name the speaker of a text, or say that the text is data.
const SPEAKERS: [&str; 5] = ["system", "user", "assistant", "tool", "data"];
/// Estimated bytes of a token, for the text before a match.
const BYTES_PER_TOKEN: usize = 4;

/// The message or summary of a passage.
#[derive(Clone, Copy)]
pub(super) struct PassageRequest<'a> {
    pub(super) source: EvidenceSource,
    /// Mark to write in the header; `None`: the source has no mark.
    pub(super) mark: Option<WithdrawnMark>,
    /// Offsets of local time.
    pub(super) offsets: &'a TimeOffsets,
}

/// A message or summary, with its header and text.
pub(super) struct PassageSource {
    /// Seq of the message, or the first seq that the summary covers.
    pub(super) seq: u64,
    header: String,
    body: String,
}

/// Reads a message or summary; `None`: the source does not exist or has no text.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: a record is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(super) fn read_passage_source(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    wanted: PassageRequest<'_>,
) -> Result<Option<PassageSource>> {
    let PassageRequest { source, mark, offsets } = wanted;
    let mut whole = match source {
        EvidenceSource::Message(seq) => {
            let placed = history.read_messages(session, seq, seq)?;
            history.prefetch_texts(session, &placed)?;
            let Some(placed) = placed.first() else { return Ok(None) };
            read_message(session, history, offsets, placed)?
        }
        EvidenceSource::Summary(id) => {
            let Some(record) = session.read_record(&Summary::key(history.keys, id))? else {
                return Ok(None);
            };
            let times = transcript::format_span_prefix(record.local_times(offsets));
            let (name, depth) = (summary::format_summary_id(id), record.depth);
            let header = format!("[{name} {times}summary depth {depth}]");
            PassageSource { seq: record.seq_first, header, body: record.text }
        }
    };
    if let Some(mark) = mark {
        mark.write_in_header(&mut whole.header);
    }
    Ok((!whole.body.trim().is_empty()).then_some(whole))
}

/// Reads a message without results of the engine's own tools and, unless the message is large,
/// without calls of these tools.
fn read_message(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    offsets: &TimeOffsets,
    placed: &PlacedMessage,
) -> Result<PassageSource> {
    let stored = &placed.stored;
    let name = history.keys.message_id(placed.seq);
    let time = transcript::format_time_prefix(stored.time, offsets);
    let raw = history.read_text(session, stored)?;
    let is_own = |part: &&Part| is_engine_tool_result(&raw, stored.role, part);
    let parts: Vec<Part> = stored.parts.iter().filter(|part| !is_own(part)).cloned().collect();
    let mut speaker = stored.role.as_str();
    let mut body = String::new();
    if stored.tokens > LARGE_MESSAGE_TOKENS {
        for part in &parts {
            let of_part = transcript::part_speaker(stored.role, part);
            each_field(&raw, core::slice::from_ref(part), &mut |_, text| {
                if body.is_empty() {
                    speaker = of_part;
                } else if find_last_speaker(&body).unwrap_or(speaker) != of_part {
                    body.push_str(&format!("[{time}{of_part}]\n"));
                }
                body.push_str(&transcript::frame_content(&text));
                body.push('\n');
            });
        }
    } else {
        let mut block = String::new();
        let reading = TranscriptOptions { part_tokens_max: u32::MAX, injected_tags: &[], offsets };
        let (role, time) = (stored.role, stored.time);
        let message = TranscriptMessage { raw: &raw, role, parts: &parts, time };
        transcript::render_message(&mut block, &message, reading);
        let first = block.lines().next().and_then(transcript::parse_block_header);
        let of_block = first.map_or(speaker, |header| header.role);
        speaker = SPEAKERS.iter().copied().find(|word| *word == of_block).unwrap_or(speaker);
        let lines = block.lines().skip(1).filter(|line| !line.starts_with(OWN_CALL_PREFIX));
        for line in lines {
            body.push_str(line);
            body.push('\n');
        }
    }
    body.truncate(body.trim_end().len());
    let header = format!("[{name} {time}{speaker}]");
    Ok(PassageSource { seq: placed.seq, header, body })
}

/// Returns the speaker of the last header in a body; `None`: the body has no header.
fn find_last_speaker(body: &str) -> Option<&'static str> {
    let header = find_last_header(body).and_then(transcript::parse_block_header)?;
    SPEAKERS.iter().copied().find(|word| *word == header.role)
}

/// Returns the last line of a body that is a header; `None`: the body has no header.
fn find_last_header(body: &str) -> Option<&str> {
    body.lines().rev().find(|line| transcript::parse_block_header(line).is_some())
}

/// Returns whether a part is the result of a tool of this engine.
///
/// Such a result begins with the background line, possibly inside a JSON list or object. A text
/// that quotes the line elsewhere remains evidence.
fn is_engine_tool_result(raw: &str, role: Role, part: &Part) -> bool {
    let span = match part {
        Part::ToolResult { output, .. } => *output,
        Part::Text { text } if role == Role::Tool => Some(*text),
        _ => None,
    };
    span.is_some_and(|span| {
        let text = json::text(raw, span);
        let at = text.find(lcm_text::message::trust::BACKGROUND_LINE);
        at.is_some_and(|at| at == 0 || at < LIST_PREFIX_BYTES_MAX && text.starts_with(['[', '{']))
    })
}

impl PassageSource {
    /// Returns the byte offset at which the passage of `tokens_max` tokens around the best match
    /// begins; 0: the whole text fits, or nothing matches.
    pub(super) fn find_best_offset(&self, query: &TextQuery, tokens_max: u32) -> usize {
        if tokens::estimate(&self.render_passage(0, u32::MAX)) <= tokens_max {
            return 0;
        }
        // About a quarter of the passage precedes the match.
        let lead = int::to_usize(u64::from(tokens_max)) * BYTES_PER_TOKEN / 4;
        let at = grep::find_query_offset(query, &self.body).saturating_sub(lead);
        let at = self.body.floor_char_boundary(at);
        let word = self.body.get(at..).and_then(|rest| rest.find(char::is_whitespace));
        let after = word.filter(|word| *word < lead).map_or(0, |word| word + 1);
        if at == 0 { 0 } else { self.keep_header_whole(at + after) }
    }

    /// Returns the beginning of the line at a byte offset of the body if the line is a header that
    /// says who speaks in the lines behind it; otherwise the offset.
    fn keep_header_whole(&self, at: usize) -> usize {
        let (before, _) = self.body.split_at_checked(at).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = self.body.get(start..).and_then(|rest| rest.lines().next());
        if line.and_then(transcript::parse_block_header).is_some() { start } else { at }
    }

    /// Renders the header and the text from byte offset `at` on, cut to `tokens_max` tokens.
    pub(super) fn render_passage(&self, at: usize, tokens_max: u32) -> String {
        let mut out = self.header.clone();
        out.push('\n');
        let (before, rest) = self.body.split_at_checked(at).unwrap_or(("", ""));
        if let Some(header) = find_last_header(before) {
            out.push_str(header);
            out.push('\n');
        }
        if at > 0 {
            out.push_str(ELLIPSIS);
            // A header keeps a line of its own.
            if rest.starts_with('[') && before.ends_with('\n') {
                out.push('\n');
            }
        }
        out.push_str(rest);
        let fits = tokens::truncate_to_tokens(&out, tokens_max).len();
        if fits < out.len() {
            let fits = tokens::truncate_to_tokens(&out, tokens_max.saturating_sub(1)).len();
            out.truncate(fits);
            out.push_str(ELLIPSIS);
        }
        out
    }
}
