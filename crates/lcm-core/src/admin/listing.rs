//! Listings: conversations, summaries and messages, page by page.

use alloc::{format, string::String, vec::Vec};

use serde_json::{Value, json};

use crate::{
    codec,
    error::{Error, Result},
    head::{Head, Loaded},
    history::History,
    keys::{self, Keys},
    limits, num,
    reader::{self, Reader},
    recall,
    summary::{self, Sources, Summary},
    time,
};

/// Conversations of one page: each costs the read of a head of up to 4 KiB.
const CONVERSATIONS_PER_PAGE: usize = 200;

/// One page of a listing as `{"items", "cursor"}`.
///
/// # Errors
///
/// `invalid-input`: an unknown kind or cursor; `not-found`; errors of the store.
pub(crate) fn listing(
    reader: &mut Reader<'_>,
    kind: &str,
    conversation: Option<&str>,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<String> {
    let needed = || {
        conversation.ok_or_else(|| Error::invalid(format!("conversation: needed to list {kind}")))
    };
    let (items, cursor) = match kind {
        "conversations" => conversations(reader, cursor)?,
        "summaries" => summaries(reader, needed()?, cursor, bytes_max)?,
        "messages" => messages(reader, needed()?, cursor, bytes_max)?,
        _ => {
            return Err(Error::invalid(format!(
                "kind: `{kind}` is none of conversations, summaries, messages"
            )));
        }
    };
    Ok(format!("{}", json!({ "items": items, "cursor": cursor })))
}

/// Bytes of a row of messages beside its raw text.
const ROW_BYTES: usize = 192;

type Page = (Vec<Value>, Option<String>);

fn conversations(reader: &mut Reader<'_>, cursor: Option<&str>) -> Result<Page> {
    let start = cursor.map_or_else(|| keys::NAMES.into(), reader::after);
    if !start.starts_with(keys::NAMES) {
        return Err(Error::invalid("cursor: not a cursor of this listing"));
    }
    let (entries, more) = reader.page(&start, keys::NAMES_END, limits::CALL_BYTES_MAX)?;
    let more = more || entries.len() > CONVERSATIONS_PER_PAGE;
    let entries: Vec<_> = entries.into_iter().take(CONVERSATIONS_PER_PAGE).collect();
    let mut ids = Vec::new();
    let mut heads = Vec::new();
    for entry in &entries {
        let (_, id): (String, String) = codec::decode(&entry.key, &entry.value)?;
        heads.push(Keys::new(&id)?.head());
        ids.push(id);
    }
    let mut items = Vec::new();
    for ((id, key), value) in ids.iter().zip(&heads).zip(reader.fresh(&heads)?) {
        let Some(value) = value else { return Err(Error::corrupt(format!("`{key}` is missing"))) };
        let head: Head = codec::decode(key, &value)?;
        items.push(json!({
            "conversation": id,
            "revision": head.revision,
            "messages": head.messages,
            "summaries": head.summaries,
            "raw_tokens": head.raw_tokens,
            "context_tokens": head.context.tokens,
            "updated_at": time::iso_millis(head.time),
        }));
    }
    let cursor = entries.last().filter(|_| more).map(|entry| entry.key.clone());
    Ok((items, cursor))
}

fn summaries(
    reader: &mut Reader<'_>,
    conversation: &str,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<Page> {
    let keys = Keys::new(conversation)?;
    let (loaded, _) = Loaded::read(reader, &keys, conversation, &[])?;
    loaded.existing()?;
    let (first, end) = keys.range("s");
    let start = cursor.map_or_else(|| first.clone(), reader::after);
    if start < first || start >= end {
        return Err(Error::invalid("cursor: not a cursor of this listing"));
    }
    let (entries, more) = reader.page(&start, &end, bytes_max)?;
    let mut items = Vec::new();
    for entry in &entries {
        let record: Summary = codec::decode(&entry.key, &entry.value)?;
        let sources: Vec<String> = match &record.sources {
            Sources::Messages { .. } => Vec::new(),
            Sources::Summaries(list) => {
                list.iter().map(|source| summary::name(source.id)).collect()
            }
        };
        items.push(json!({
            "id": summary::name(record.id()),
            "kind": record.kind(),
            "depth": record.depth,
            "level": record.level.as_str(),
            "capped": record.capped,
            "tokens": record.tokens,
            "source_tokens": record.source_tokens,
            "descendant_count": record.descendant_count,
            "descendant_tokens": record.descendant_tokens,
            "seq_first": record.seq_first,
            "seq_last": record.seq_last,
            "earliest_at": time::iso_millis(record.earliest_at),
            "latest_at": time::iso_millis(record.latest_at),
            "model": record.model,
            "sources": sources,
        }));
    }
    let cursor = entries.last().filter(|_| more).map(|entry| entry.key.clone());
    Ok((items, cursor))
}

/// Messages; the cursor is `FROM-TO`, the seqs that are still to come.
fn messages(
    reader: &mut Reader<'_>,
    conversation: &str,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<Page> {
    let keys = Keys::new(conversation)?;
    let (loaded, _) = Loaded::read(reader, &keys, conversation, &[])?;
    let loaded = loaded.existing()?;
    let head = &loaded.head;
    let (from, to) = match cursor {
        None => (1, head.messages),
        Some(cursor) => {
            let parsed = cursor
                .split_once('-')
                .and_then(|(from, to)| Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?)));
            parsed.ok_or_else(|| Error::invalid("cursor: `FROM-TO`, two seqs"))?
        }
    };
    let (from, to) = (from.max(1), to.min(head.messages));
    let history = History { keys: &keys, head };
    let bytes_max = num::to_usize(u64::from(bytes_max));
    let mut items = Vec::new();
    let mut bytes = 0usize;
    let mut next = from;
    while next <= to {
        for placed in history.page(reader, next, to)? {
            let size = num::to_usize(placed.stored.raw.bytes()).saturating_add(ROW_BYTES);
            if !items.is_empty() && bytes.saturating_add(size) > bytes_max {
                return Ok((items, Some(format!("{next}-{to}"))));
            }
            bytes = bytes.saturating_add(size);
            next = placed.seq + 1;
            items.push(recall::row(reader, &history, &placed)?.1);
        }
    }
    Ok((items, None))
}
