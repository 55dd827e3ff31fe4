//! A message or summary as evidence: a header with its id, and its text or a part of the text.
//!
//! In: the seq of a message or the id of a summary. Out: a block that a model can cite.
//! [`crate::ask`] uses this module. The same source, offset and token limit always give the same
//! text. Calls and results of the engine's own tools are omitted: they would repeat the evidence.

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
    },
};
use lcm_text::{
    base::{error::Result, int, json, time, tokens},
    message::{Part, Role},
    summary::transcript::{self, TranscriptMessage, TranscriptOptions},
};

/// Tokens of a message above which its texts are taken unchanged. A transcript would shorten tool
/// results of more tokens and might omit the match.
const LARGE_MESSAGE_TOKENS: u32 = 2_000;
/// Mark of an omitted part of the text.
const ELLIPSIS: &str = "\u{2026}";
/// Prefix of the line of a call of the engine's own tools.
const OWN_CALL_PREFIX: &str = "tool call lcm_";
/// Most bytes before the background line in a tool result that is JSON, such as a list of one text.
const LIST_PREFIX_BYTES_MAX: usize = 64;
/// Estimated bytes of a token, for the text before a match.
const BYTES_PER_TOKEN: usize = 4;

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
    what: EvidenceSource,
) -> Result<Option<PassageSource>> {
    let whole = match what {
        EvidenceSource::Message(seq) => {
            let placed = history.read_messages(session, seq, seq)?;
            history.prefetch_texts(session, &placed)?;
            let Some(placed) = placed.first() else { return Ok(None) };
            read_message(session, history, placed)?
        }
        EvidenceSource::Summary(id) => {
            let Some(record) = session.read_record(&Summary::key(history.keys, id))? else {
                return Ok(None);
            };
            let (from, to) =
                (time::iso_minutes(record.earliest_at), time::iso_minutes(record.latest_at));
            let (name, depth) = (summary::format_summary_id(id), record.depth);
            let header = format!("[{name} {from} to {to} summary depth {depth}]");
            PassageSource { seq: record.seq_first, header, body: record.text }
        }
    };
    Ok((!whole.body.trim().is_empty()).then_some(whole))
}

/// Reads a message without calls and results of the engine's own tools.
fn read_message(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
) -> Result<PassageSource> {
    let stored = &placed.stored;
    let name = history.keys.message_id(placed.seq);
    let header = format!("[{name} {} {}]", time::iso_minutes(stored.time), stored.role.as_str());
    let raw = history.read_text(session, stored)?;
    let is_own = |part: &&Part| is_engine_tool_result(&raw, stored.role, part);
    let parts: Vec<Part> = stored.parts.iter().filter(|part| !is_own(part)).cloned().collect();
    let mut body = String::new();
    if stored.tokens > LARGE_MESSAGE_TOKENS {
        each_field(&raw, &parts, &mut |_, text| {
            body.push_str(&text);
            body.push('\n');
        });
    } else {
        let mut block = String::new();
        let reading = TranscriptOptions { part_tokens_max: u32::MAX, injected_tags: &[] };
        let (role, time) = (stored.role, stored.time);
        let message = TranscriptMessage { raw: &raw, role, parts: &parts, time };
        transcript::render_message(&mut block, &message, reading);
        let lines = block.lines().skip(1).filter(|line| !line.starts_with(OWN_CALL_PREFIX));
        for line in lines {
            body.push_str(line);
            body.push('\n');
        }
    }
    body.truncate(body.trim_end().len());
    Ok(PassageSource { seq: placed.seq, header, body })
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
        if at == 0 { 0 } else { at + word.filter(|word| *word < lead).map_or(0, |word| word + 1) }
    }

    /// Renders the header and the text from byte offset `at` on, cut to `tokens_max` tokens.
    pub(super) fn render_passage(&self, at: usize, tokens_max: u32) -> String {
        let mut out = self.header.clone();
        out.push('\n');
        if at > 0 {
            out.push_str(ELLIPSIS);
        }
        let rest = self.body.get(at..).unwrap_or_default();
        for line in rest.split_inclusive('\n') {
            // No text may look like the header of another passage.
            if line.starts_with('[') {
                out.push(' ');
            }
            out.push_str(line);
        }
        let fits = tokens::truncate_to_tokens(&out, tokens_max).len();
        if fits < out.len() {
            let fits = tokens::truncate_to_tokens(&out, tokens_max.saturating_sub(1)).len();
            out.truncate(fits);
            out.push_str(ELLIPSIS);
        }
        out
    }
}
