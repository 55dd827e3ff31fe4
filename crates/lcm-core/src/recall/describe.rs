//! Describe: everything known about one summary or message, with what expanding it would cost.

use alloc::{collections::VecDeque, string::String, vec::Vec};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    codec,
    error::{Error, Result},
    head::Loaded,
    history::History,
    json as scanner,
    keys::Keys,
    num,
    reader::Reader,
    summary::{self, SourceRef, Sources, Summary},
    time,
};

use super::Named;

/// Summaries of the subtree that one answer lists.
const SUBTREE_MAX: usize = 256;
/// Message ids that one answer lists.
const MESSAGE_IDS_MAX: u64 = 1_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {}

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
    let _: Options = super::options(options_json)?;
    let named = super::named(&keys, id)?;
    let (loaded, _) = Loaded::read(reader, &keys, conversation, &[])?;
    let loaded = loaded.existing()?;
    let history = History { keys: &keys, head: &loaded.head };
    let value = match named {
        Named::Summary(id) => of_summary(reader, &keys, id)?,
        Named::Message(seq) => of_message(reader, &history, seq)?,
    };
    Ok(super::json(&value))
}

fn of_summary(reader: &mut Reader<'_>, keys: &Keys, id: [u8; 8]) -> Result<Value> {
    let record = super::summary(reader, keys, id)?;
    let key = keys.derived(id);
    let derived = match reader.fresh(core::slice::from_ref(&key))?.into_iter().next().flatten() {
        Some(value) => Some(codec::decode::<[u8; 8]>(&key, &value)?),
        None => None,
    };
    let sources: Vec<String> = sources(&record).iter().map(|source| name(source.id)).collect();
    let message_ids: Vec<String> = match record.sources {
        Sources::Messages { seq_first, seq_last, .. } => (seq_first..=seq_last)
            .take(num::to_usize(MESSAGE_IDS_MAX))
            .map(|seq| keys.message_name(seq))
            .collect(),
        Sources::Summaries(_) => Vec::new(),
    };
    let (subtree, complete) = subtree(reader, keys, id, &record)?;
    Ok(json!({
        "id": name(id),
        "kind": record.kind(),
        "depth": record.depth,
        "level": record.level.as_str(),
        "capped": record.capped,
        "tokens": record.tokens,
        "text": record.text,
        "earliest_at": time::iso_millis(record.earliest_at),
        "latest_at": time::iso_millis(record.latest_at),
        "created_at": time::iso_millis(record.created_at),
        "descendant_count": record.descendant_count,
        "descendant_tokens": record.descendant_tokens,
        "source_tokens": record.source_tokens,
        "message_tokens": record.message_tokens,
        "sources": sources,
        "derived": derived.into_iter().map(name).collect::<Vec<_>>(),
        "message_ids": message_ids,
        "seq_first": record.seq_first,
        "seq_last": record.seq_last,
        "file_ids": record.file_ids,
        "model": record.model,
        "prompt_version": record.prompt_version,
        "trust": record.trust.as_str(),
        "findings": record.findings,
        "subtree": subtree,
        "subtree_complete": complete,
    }))
}

fn name(id: [u8; 8]) -> String {
    summary::name(id)
}

fn sources(record: &Summary) -> &[SourceRef] {
    match &record.sources {
        Sources::Messages { .. } => &[],
        Sources::Summaries(list) => list,
    }
}

/// The summary and everything under it with what each costs, breadth first, and whether that is
/// all.
fn subtree(
    reader: &mut Reader<'_>,
    keys: &Keys,
    id: [u8; 8],
    record: &Summary,
) -> Result<(Vec<Value>, bool)> {
    let row = |id: [u8; 8], record: &Summary| {
        json!({
            "id": name(id),
            "depth": record.depth,
            "tokens": record.tokens,
            "subtree_tokens": u64::from(record.tokens) + record.descendant_tokens,
            "message_tokens": record.message_tokens,
        })
    };
    let mut out = alloc::vec![row(id, record)];
    let mut queue: VecDeque<SourceRef> = sources(record).iter().copied().collect();
    while let Some(source) = queue.pop_front() {
        if out.len() == SUBTREE_MAX {
            return Ok((out, false));
        }
        let wanted = [(keys.summary(source.id), source.bytes)];
        for ((key, _), value) in wanted.iter().zip(reader.immutable(&wanted)?) {
            let record: Summary = codec::decode(key, &value)?;
            out.push(row(source.id, &record));
            queue.extend(sources(&record));
        }
    }
    Ok((out, true))
}

fn of_message(reader: &mut Reader<'_>, history: &History<'_>, seq: u64) -> Result<Value> {
    if seq == 0 || seq > history.head.messages {
        let id = history.keys.message_name(seq);
        return Err(Error::not_found(alloc::format!("there is no message `{id}`")));
    }
    let placed = history.messages(reader, seq, seq)?;
    let Some(placed) = placed.first() else {
        return Err(Error::corrupt(alloc::format!("message {seq} is missing")));
    };
    Ok(row(reader, history, placed)?.1)
}

/// A message as JSON, with the size of its raw text.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn row(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    placed: &crate::history::Placed,
) -> Result<(usize, Value)> {
    let stored = &placed.stored;
    let raw = history.text(reader, stored)?;
    let mut value = json!({
        "id": history.keys.message_name(placed.seq),
        "kind": "message",
        "seq": placed.seq,
        "role": stored.role.as_str(),
        "created_at": time::iso_millis(stored.time),
        "tokens": stored.tokens,
        "raw": raw,
    });
    if let (Some(span), Some(object)) = (stored.entry_id, value.as_object_mut()) {
        let id = scanner::text(&raw, span).into_owned();
        object.insert("entry_id".into(), Value::String(id));
    }
    Ok((raw.len(), value))
}
