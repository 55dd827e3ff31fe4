//! Describe: everything known about one summary or message, with what expanding it would cost.

use alloc::{collections::VecDeque, string::String, vec::Vec};

use crate::{
    codec,
    error::{Error, Result},
    head::Loaded,
    history::History,
    json::{self, Writer},
    keys::Keys,
    num,
    reader::Reader,
    summary::{self, SourceRef, Sources, StoredFinish, Summary},
    trust::Trust,
};

use super::{
    Named,
    file::{self, Wanted},
};

/// Summaries of the subtree that one answer lists.
const SUBTREE_MAX: usize = 256;
/// Message ids that one answer lists.
const MESSAGE_IDS_MAX: u64 = 1_000;

/// Describes a summary or message as JSON.
///
/// # Errors
///
/// `not-found`, `invalid-input`, `unsupported`; errors of the store.
pub(crate) fn describe(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
) -> Result<String> {
    let keys = Keys::new(conversation)?;
    super::ungranted(grant)?;
    let mut fields = super::options(options_json)?;
    let wanted = Wanted::read(&mut fields)?;
    fields.end(super::OPTIONS)?;
    let named = super::named(&keys, id)?;
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
    let history = History { keys: &keys, head: &loaded.head };
    let answer = match named {
        Named::Summary(id) => of_summary(reader, &keys, id)?,
        Named::Message(seq) => of_message(reader, &history, seq)?,
        Named::File(id) => file::describe(reader, &history, id, &wanted)?,
    };
    Ok(answer.end_object())
}

fn of_summary(reader: &mut Reader<'_>, keys: &Keys, id: [u8; 8]) -> Result<Writer> {
    let record = super::summary(reader, keys, id)?;
    let key = keys.derived(id);
    let derived = match reader.fresh_one(&key)? {
        Some(value) => Some(codec::decode::<[u8; 8]>(&key, &value)?),
        None => None,
    };
    let derived: Vec<String> = derived.into_iter().map(summary::name).collect();
    let message_ids: Vec<String> = match record.sources {
        Sources::Messages { seq_first, seq_last, .. } => (seq_first..=seq_last)
            .take(num::to_usize(MESSAGE_IDS_MAX))
            .map(|seq| keys.message_name(seq))
            .collect(),
        Sources::Summaries(_) => Vec::new(),
    };
    let (subtree, complete) = subtree(reader, keys, id, &record)?;
    let mut w = Writer::object();
    w.flag("capped", record.capped);
    w.time("created_at", record.created_at);
    w.number("depth", record.depth.into());
    w.texts("derived", &derived);
    w.number("descendant_count", record.descendant_count);
    w.number("descendant_tokens", record.descendant_tokens);
    w.time("earliest_at", record.earliest_at);
    w.texts("file_ids", &record.file_ids);
    w.texts("findings", &record.findings);
    w.text_or_null("finish", record.finish.map(StoredFinish::as_str));
    w.text("id", &summary::name(id));
    w.text("kind", record.kind());
    w.time("latest_at", record.latest_at);
    w.text("level", record.level.as_str());
    w.texts("message_ids", &message_ids);
    w.number("message_tokens", record.message_tokens);
    w.text("model", &record.model);
    w.number("prompt_version", record.prompt_version.into());
    w.number("seq_first", record.seq_first);
    w.number("seq_last", record.seq_last);
    w.number("source_tokens", record.source_tokens);
    w.texts("sources", &record.source_names());
    w.array_at("subtree", subtree);
    w.flag("subtree_complete", complete);
    w.text("text", &record.text);
    w.number("tokens", record.tokens.into());
    w.text("trust", record.trust.as_str());
    Ok(w)
}

/// The summary and everything under it with what each costs, breadth first, and whether that is
/// all.
fn subtree(
    reader: &mut Reader<'_>,
    keys: &Keys,
    id: [u8; 8],
    record: &Summary,
) -> Result<(Writer, bool)> {
    let row = |id: [u8; 8], record: &Summary| {
        let mut row = Writer::object();
        row.number("depth", record.depth.into());
        row.text("id", &summary::name(id));
        row.number("message_tokens", record.message_tokens);
        row.number("subtree_tokens", u64::from(record.tokens) + record.descendant_tokens);
        row.number("tokens", record.tokens.into());
        row
    };
    let mut out = Writer::array();
    out.push_object(row(id, record));
    let mut count = 1;
    let mut queue: VecDeque<SourceRef> = record.source_refs().iter().copied().collect();
    while let Some(source) = queue.pop_front() {
        if count == SUBTREE_MAX {
            return Ok((out, false));
        }
        let wanted = [(keys.summary(source.id), source.bytes)];
        for ((key, _), value) in wanted.iter().zip(reader.immutable(&wanted)?) {
            let record: Summary = codec::decode(key, &value)?;
            out.push_object(row(source.id, &record));
            count += 1;
            queue.extend(record.source_refs());
        }
    }
    Ok((out, true))
}

fn of_message(reader: &mut Reader<'_>, history: &History<'_>, seq: u64) -> Result<Writer> {
    if seq == 0 || seq > history.head.messages {
        let id = history.keys.message_name(seq);
        return Err(Error::not_found(format_args!("there is no message `{id}`")));
    }
    let placed = history.messages(reader, seq, seq)?;
    let Some(placed) = placed.first() else {
        return Err(Error::corrupt(format_args!("message {seq} is missing")));
    };
    Ok(row(reader, history, placed)?.1)
}

/// A message as JSON, after the size of its raw text.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn row(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    placed: &crate::history::Placed,
) -> Result<(usize, Writer)> {
    let stored = &placed.stored;
    let raw = history.text(reader, stored)?;
    let mut row = Writer::object();
    row.time("created_at", stored.time);
    if let Some(span) = stored.entry_id {
        row.text("entry_id", &json::text(&raw, span));
    }
    row.text("id", &history.keys.message_name(placed.seq));
    row.text("kind", "message");
    row.text("raw", &raw);
    row.text("role", stored.role.as_str());
    row.number("seq", placed.seq);
    row.number("tokens", stored.tokens.into());
    row.text("trust", Trust::of_message(&raw, stored.role, &stored.parts).as_str());
    Ok((raw.len(), row))
}
