//! One message or summary as evidence: a header with its id, and its text or a part of it.
//!
//! In: what it is. Out: a block a model can cite. The same place and length give the same text, at
//! any time. Left out is what tools of this engine were asked and answered: it would be evidence
//! for itself.

use crate::search::grep;
use crate::storage::pack::Placed;
use alloc::{format, string::String, vec::Vec};

use crate::{
    search::{each_field, query::TextQuery},
    storage::{codec, history::History, store_session::Reader, summary},
};
use lcm_text::{
    base::{error::Result, int, json, time, tokens},
    message::{Part, Role},
    summary::transcript::{self, Reading},
};

use super::evidence::What;

/// Tokens from which a message is read as its texts alone: rendering would shorten what a tool
/// said, and perhaps leave out what was found.
const LARGE_TOKENS: u32 = 2_000;
/// Stands for what was left out.
const ELLIPSIS: &str = "\u{2026}";
/// Begins the line of a call of one of the engine's own tools.
const OWN_CALL: &str = "tool call lcm_";
/// Bytes before a text in a list of one.
const LIST_BYTES_MAX: usize = 64;
/// Bytes for a token, to guess how far back a passage begins.
const TOKEN_BYTES: usize = 4;

/// A message or summary.
pub(super) struct Whole {
    /// Its seq, or the first that it stands for.
    pub(super) seq: u64,
    header: String,
    body: String,
}

/// Reads a message or summary; `None`: it has nothing to say.
///
/// # Errors
///
/// `not-found`: it does not exist; `corrupt`; errors of the store.
pub(super) fn whole(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    what: What,
) -> Result<Option<Whole>> {
    let whole = match what {
        What::Message(seq) => {
            let placed = history.messages(reader, seq, seq)?;
            history.fetch_texts(reader, &placed)?;
            let Some(placed) = placed.first() else { return Ok(None) };
            message(reader, history, placed)?
        }
        What::Summary(id) => {
            let key = history.keys.summary(id);
            let Some(value) = reader.fresh_one(&key)? else { return Ok(None) };
            let record: summary::Summary = codec::decode(&key, &value)?;
            let (from, to) = (time::minutes(record.earliest_at), time::minutes(record.latest_at));
            let (name, depth) = (summary::name(id), record.depth);
            let header = format!("[{name} {from} to {to} summary depth {depth}]");
            Whole { seq: record.seq_first, header, body: record.text }
        }
    };
    Ok((!whole.body.trim().is_empty()).then_some(whole))
}

fn message(reader: &mut Reader<'_>, history: &History<'_>, placed: &Placed) -> Result<Whole> {
    let stored = &placed.stored;
    let name = history.keys.message_name(placed.seq);
    let header = format!("[{name} {} {}]", time::minutes(stored.time), stored.role.as_str());
    let raw = history.text(reader, stored)?;
    let is_own = |part: &&Part| is_own_answer(&raw, stored.role, part);
    let parts: Vec<Part> = stored.parts.iter().filter(|part| !is_own(part)).cloned().collect();
    let mut body = String::new();
    if stored.tokens > LARGE_TOKENS {
        each_field(&raw, &parts, &mut |_, text| {
            body.push_str(&text);
            body.push('\n');
        });
    } else {
        let mut block = String::new();
        let reading = Reading { part_tokens_max: u32::MAX, injected_tags: &[] };
        transcript::render_message(&mut block, &raw, stored.role, &parts, stored.time, reading);
        let lines = block.lines().skip(1).filter(|line| !line.starts_with(OWN_CALL));
        for line in lines {
            body.push_str(line);
            body.push('\n');
        }
    }
    body.truncate(body.trim_end().len());
    Ok(Whole { seq: placed.seq, header, body })
}

/// Whether a part is what a tool of this engine answered: that begins with its line, perhaps inside
/// a list of texts. A message that quotes such an answer is evidence like any other.
fn is_own_answer(raw: &str, role: Role, part: &Part) -> bool {
    let span = match part {
        Part::ToolResult { output, .. } => *output,
        Part::Text { text } if role == Role::Tool => Some(*text),
        _ => None,
    };
    span.is_some_and(|span| {
        let text = json::text(raw, span);
        let at = text.find(lcm_text::message::trust::BACKGROUND);
        at.is_some_and(|at| at == 0 || at < LIST_BYTES_MAX && text.starts_with(['[', '{']))
    })
}

impl Whole {
    /// Where the part of so many tokens begins that shows best what is sought.
    pub(super) fn best(&self, query: &TextQuery, tokens_max: u32) -> usize {
        if tokens::estimate(&self.text(0, u32::MAX)) <= tokens_max {
            return 0;
        }
        // A quarter of it stands before what was found.
        let lead = int::to_usize(u64::from(tokens_max)) * TOKEN_BYTES / 4;
        let at = grep::best_place(query, &self.body).saturating_sub(lead);
        let at = self.body.floor_char_boundary(at);
        let word = self.body.get(at..).and_then(|rest| rest.find(char::is_whitespace));
        if at == 0 { 0 } else { at + word.filter(|word| *word < lead).map_or(0, |word| word + 1) }
    }

    /// The block: the header, and so much of the text from a place on as fits the tokens.
    pub(super) fn text(&self, at: usize, tokens_max: u32) -> String {
        let mut out = self.header.clone();
        out.push('\n');
        if at > 0 {
            out.push_str(ELLIPSIS);
        }
        let rest = self.body.get(at..).unwrap_or_default();
        for line in rest.split_inclusive('\n') {
            // No content can pass for the header of another passage.
            if line.starts_with('[') {
                out.push(' ');
            }
            out.push_str(line);
        }
        let fits = tokens::truncate(&out, tokens_max).len();
        if fits < out.len() {
            let fits = tokens::truncate(&out, tokens_max.saturating_sub(1)).len();
            out.truncate(fits);
            out.push_str(ELLIPSIS);
        }
        out
    }
}
