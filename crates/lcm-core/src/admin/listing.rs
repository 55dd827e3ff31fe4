//! Listings: conversations, summaries and messages, page by page, and grants.

use crate::storage::session::Life;
use crate::storage::store_session::{self, Reader};
use alloc::{format, string::String, vec::Vec};

use crate::{
    recall,
    storage::{
        codec,
        head::{Head, Loaded},
        history::History,
        keys::{self, Keys},
        records::grants,
        summary::{self, Summary},
    },
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::Writer,
    limits,
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
        conversation
            .ok_or_else(|| Error::invalid(format_args!("conversation: needed to list {kind}")))
    };
    let (items, cursor) = match kind {
        "conversations" => conversations(reader, cursor)?,
        "summaries" => summaries(reader, needed()?, cursor, bytes_max)?,
        "messages" => messages(reader, needed()?, cursor, bytes_max)?,
        "grants" => (grants::listing(reader, needed()?)?, one_page(cursor)?),
        _ => {
            return Err(Error::invalid(format_args!(
                "kind: `{kind}` is none of conversations, summaries, messages, grants"
            )));
        }
    };
    let mut answer = Writer::object();
    answer.text_or_null("cursor", cursor.as_deref());
    answer.array_at("items", items);
    Ok(answer.end_object())
}

/// Refuses a cursor of a list that has one page: a conversation has few grants.
fn one_page(cursor: Option<&str>) -> Result<Option<String>> {
    match cursor {
        None => Ok(None),
        Some(_) => Err(Error::invalid("cursor: not a cursor of this listing")),
    }
}

/// Bytes of a row of messages beside its raw text.
const ROW_BYTES: usize = 192;

/// An array of rows, and the cursor of the next page.
type Page = (Writer, Option<String>);

fn conversations(reader: &mut Reader<'_>, cursor: Option<&str>) -> Result<Page> {
    let start = cursor.map_or_else(|| keys::NAMES.into(), store_session::after);
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
    let mut found: Vec<(&str, Keys, Head)> = Vec::new();
    for ((id, key), value) in ids.iter().zip(&heads).zip(reader.fresh(&heads)?) {
        let Some(value) = value else {
            return Err(Error::corrupt(format_args!("`{key}` is missing")));
        };
        found.push((id, Keys::new(id)?, codec::decode(key, &value)?));
    }
    let wanted: Vec<String> =
        found.iter().flat_map(|(_, keys, head)| Life::wanted(keys, head)).collect();
    reader.kept(&wanted, &[])?;
    let mut items = Writer::array();
    for (id, keys, head) in &found {
        let life = Life::read(reader, keys, head)?;
        let mut row = Writer::object();
        life.write_archived(&mut row);
        row.number("context_tokens", head.context.tokens);
        row.text("conversation", id);
        row.text_or_null("family", life.family.as_deref());
        row.number("messages", head.messages);
        row.number("raw_tokens", head.raw_tokens);
        row.number("revision", head.revision);
        row.number("summaries", head.summaries);
        row.time("updated_at", head.time);
        items.push_object(row);
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
    Loaded::of_existing(reader, &keys, conversation)?;
    let (first, end) = keys.range("s");
    let start = cursor.map_or_else(|| first.clone(), store_session::after);
    if start < first || start >= end {
        return Err(Error::invalid("cursor: not a cursor of this listing"));
    }
    let (entries, more) = reader.page(&start, &end, bytes_max)?;
    let mut items = Writer::array();
    for entry in &entries {
        let record: Summary = codec::decode(&entry.key, &entry.value)?;
        let mut row = Writer::object();
        row.flag("capped", record.capped);
        row.number("depth", record.depth.into());
        row.number("descendant_count", record.descendant_count);
        row.number("descendant_tokens", record.descendant_tokens);
        row.time("earliest_at", record.earliest_at);
        row.text("id", &summary::name(record.id()));
        row.text("kind", record.kind());
        row.time("latest_at", record.latest_at);
        row.text("level", record.level.as_str());
        row.text("model", &record.model);
        row.number("seq_first", record.seq_first);
        row.number("seq_last", record.seq_last);
        row.number("source_tokens", record.source_tokens);
        row.texts("sources", &record.source_names());
        row.number("tokens", record.tokens.into());
        items.push_object(row);
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
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
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
    let bytes_max = int::to_usize(u64::from(bytes_max));
    let mut items = Writer::array();
    let mut bytes = 0usize;
    let mut next = from;
    while next <= to {
        for placed in history.page(reader, next, to)? {
            let size = int::to_usize(placed.stored.raw.bytes()).saturating_add(ROW_BYTES);
            if !items.is_empty() && bytes.saturating_add(size) > bytes_max {
                return Ok((items, Some(format!("{next}-{to}"))));
            }
            bytes = bytes.saturating_add(size);
            next = placed.seq + 1;
            let raw = history.text(reader, &placed.stored)?;
            items.push_object(recall::row(&history, &placed, &raw, &raw, Writer::object()));
        }
    }
    Ok((items, None))
}
