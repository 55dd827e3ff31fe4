//! Listings: conversations, summaries and messages, page by page, and grants.

use crate::storage::session::SessionLifecycle;
use crate::storage::store_session::{self, StoreSession};
use alloc::{format, string::String, vec::Vec};

use crate::{
    recall,
    storage::{
        codec,
        head::{ConversationHead, LoadedHead},
        history::MessageHistory,
        keys::{self, ConversationKeys},
        records::grants,
        summary::{self, Summary},
    },
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::JsonWriter,
    limits,
};

/// Conversations of one page: each costs the read of a head of up to 4 KiB.
const CONVERSATIONS_PER_PAGE: usize = 200;

/// One page of a listing as `{"items", "cursor"}`.
///
/// # Errors
///
/// `invalid-input`: an unknown kind or cursor; `not-found`; errors of the store.
pub(crate) fn list_page(
    reader: &mut StoreSession<'_>,
    kind: &str,
    conversation: Option<&str>,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<String> {
    let needed = || {
        conversation.ok_or_else(|| {
            Error::invalid_input(format_args!("conversation: needed to list {kind}"))
        })
    };
    let (items, cursor) = match kind {
        "conversations" => list_conversations(reader, cursor)?,
        "summaries" => list_summaries(reader, needed()?, cursor, bytes_max)?,
        "messages" => list_messages(reader, needed()?, cursor, bytes_max)?,
        "grants" => (grants::list_grants(reader, needed()?)?, ensure_single_page(cursor)?),
        _ => {
            return Err(Error::invalid_input(format_args!(
                "kind: `{kind}` is none of conversations, summaries, messages, grants"
            )));
        }
    };
    let mut answer = JsonWriter::new_object();
    answer.add_optional_text("cursor", cursor.as_deref());
    answer.add_array("items", items);
    Ok(answer.end_object())
}

/// Refuses a cursor of a list that has one page: a conversation has few grants.
fn ensure_single_page(cursor: Option<&str>) -> Result<Option<String>> {
    match cursor {
        None => Ok(None),
        Some(_) => Err(Error::invalid_input("cursor: not a cursor of this listing")),
    }
}

/// Bytes of a row of messages beside its raw text.
const ROW_BYTES: usize = 192;

/// An array of rows, and the cursor of the next page.
type ListPage = (JsonWriter, Option<String>);

fn list_conversations(reader: &mut StoreSession<'_>, cursor: Option<&str>) -> Result<ListPage> {
    let start = cursor.map_or_else(|| keys::NAMES_PREFIX.into(), store_session::successor_key);
    if !start.starts_with(keys::NAMES_PREFIX) {
        return Err(Error::invalid_input("cursor: not a cursor of this listing"));
    }
    let (entries, more) = reader.scan_page(&start, keys::NAMES_END, limits::CALL_BYTES_MAX)?;
    let more = more || entries.len() > CONVERSATIONS_PER_PAGE;
    let entries: Vec<_> = entries.into_iter().take(CONVERSATIONS_PER_PAGE).collect();
    let mut ids = Vec::new();
    let mut heads = Vec::new();
    for entry in &entries {
        let (_, id): (String, String) = codec::decode(&entry.key, &entry.value)?;
        heads.push(ConversationKeys::new(&id)?.head_key());
        ids.push(id);
    }
    let mut found: Vec<(&str, ConversationKeys, ConversationHead)> = Vec::new();
    for ((id, key), value) in ids.iter().zip(&heads).zip(reader.read_uncached(&heads)?) {
        let Some(value) = value else {
            return Err(Error::corrupt_store(format_args!("`{key}` is missing")));
        };
        found.push((id, ConversationKeys::new(id)?, codec::decode(key, &value)?));
    }
    let wanted: Vec<String> =
        found.iter().flat_map(|(_, keys, head)| SessionLifecycle::list_keys(keys, head)).collect();
    reader.read_content_addressed(&wanted, &[])?;
    let mut items = JsonWriter::new_array();
    for (id, keys, head) in &found {
        let life = SessionLifecycle::read(reader, keys, head)?;
        let mut row = JsonWriter::new_object();
        life.write_archived(&mut row);
        row.add_number("context_tokens", head.context.tokens);
        row.add_text("conversation", id);
        row.add_optional_text("family", life.family.as_deref());
        row.add_number("messages", head.messages);
        row.add_number("message_tokens", head.raw_tokens);
        row.add_number("revision", head.revision);
        row.add_number("summaries", head.summaries);
        row.add_time("updated_at", head.time);
        items.push_object(row);
    }
    let cursor = entries.last().filter(|_| more).map(|entry| entry.key.clone());
    Ok((items, cursor))
}

fn list_summaries(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<ListPage> {
    let keys = ConversationKeys::new(conversation)?;
    LoadedHead::load_existing(reader, &keys, conversation)?;
    let (first, end) = keys.record_range("s");
    let start = cursor.map_or_else(|| first.clone(), store_session::successor_key);
    if start < first || start >= end {
        return Err(Error::invalid_input("cursor: not a cursor of this listing"));
    }
    let (entries, more) = reader.scan_page(&start, &end, bytes_max)?;
    let mut items = JsonWriter::new_array();
    for entry in &entries {
        let record: Summary = codec::decode(&entry.key, &entry.value)?;
        let mut row = JsonWriter::new_object();
        row.add_flag("capped", record.capped);
        row.add_number("depth", record.depth.into());
        row.add_number("descendant_count", record.descendant_count);
        row.add_number("descendant_tokens", record.descendant_tokens);
        row.add_time("earliest_at", record.earliest_at);
        row.add_text("id", &summary::format_summary_id(record.id()));
        row.add_text("kind", record.kind());
        row.add_time("latest_at", record.latest_at);
        row.add_text("level", record.level.as_str());
        row.add_text("model", &record.model);
        row.add_number("seq_first", record.seq_first);
        row.add_number("seq_last", record.seq_last);
        row.add_number("source_tokens", record.source_tokens);
        row.add_texts("source_ids", &record.source_ids());
        row.add_number("tokens", record.tokens.into());
        items.push_object(row);
    }
    let cursor = entries.last().filter(|_| more).map(|entry| entry.key.clone());
    Ok((items, cursor))
}

/// Messages; the cursor is `FROM-TO`, the seqs that are still to come.
fn list_messages(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<ListPage> {
    let keys = ConversationKeys::new(conversation)?;
    let loaded = LoadedHead::load_existing(reader, &keys, conversation)?;
    let head = &loaded.head;
    let (from, to) = match cursor {
        None => (1, head.messages),
        Some(cursor) => {
            let parsed = cursor
                .split_once('-')
                .and_then(|(from, to)| Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?)));
            parsed.ok_or_else(|| Error::invalid_input("cursor: `FROM-TO`, two seqs"))?
        }
    };
    let (from, to) = (from.max(1), to.min(head.messages));
    let history = MessageHistory { keys: &keys, head };
    let bytes_max = int::to_usize(u64::from(bytes_max));
    let mut items = JsonWriter::new_array();
    let mut bytes = 0usize;
    let mut next = from;
    while next <= to {
        for placed in history.read_page(reader, next, to)? {
            let size = int::to_usize(placed.stored.raw.bytes()).saturating_add(ROW_BYTES);
            if !items.is_empty() && bytes.saturating_add(size) > bytes_max {
                return Ok((items, Some(format!("{next}-{to}"))));
            }
            bytes = bytes.saturating_add(size);
            next = placed.seq + 1;
            let raw = history.read_text(reader, &placed.stored)?;
            items.push_object(recall::render_message_row(
                &history,
                &placed,
                &raw,
                &raw,
                JsonWriter::new_object(),
            ));
        }
    }
    Ok((items, None))
}
