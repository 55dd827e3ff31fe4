//! Listings: pages of conversations, summaries and messages, and the list of grants.
//!
//! In: the kind of listing, a conversation and a cursor. Out: rows as JSON, and the next cursor.

use alloc::{format, string::String};

use crate::{
    recall,
    storage::{
        call::Call,
        conversation_list::{self, ListedConversation},
        head::LoadedHead,
        history::MessageHistory,
        records::grants,
        store_session::StoreSession,
        summary, summary_records, withdrawn_mark,
    },
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::JsonWriter,
};

/// Maximum number of conversations of one page, each with a head of up to 5 KiB to read.
const CONVERSATIONS_PER_PAGE: usize = 200;

/// A page of a listing that a caller requests.
pub(crate) struct ListingRequest<'a> {
    /// `conversations`, `deletions`, `summaries`, `messages` or `grants`.
    pub(crate) kind: &'a str,
    /// Cursor of the page; `None`: the first page.
    pub(crate) cursor: Option<&'a str>,
    /// Maximum bytes of a page of summaries or messages. If rows are left, a page has at least one
    /// row, however large the row is.
    pub(crate) bytes_max: u32,
}

/// Returns one page of a listing as `{"items", "cursor"}`.
///
/// A `cursor` of null ends the listing. `call` has the conversation; only the listings of
/// conversations and of deletions do not need a conversation.
///
/// # Errors
///
/// `invalid-input`: the kind or cursor is unknown, or the conversation is missing; `not-found`: the
/// conversation does not exist; `denied`: the conversation is being deleted; errors of the store.
pub(crate) fn list_page(
    session: &mut StoreSession<'_>,
    call: Option<Call<'_>>,
    request: &ListingRequest<'_>,
) -> Result<String> {
    let ListingRequest { kind, cursor, bytes_max } = *request;
    let require_call = || {
        call.ok_or_else(|| {
            Error::invalid_input(format_args!("`conversation` must be given to list {kind}"))
        })
    };
    let (items, cursor) = match kind {
        "conversations" => list_conversations(session, cursor)?,
        "deletions" => list_deletions(session, cursor)?,
        "summaries" => list_summaries(session, require_call()?, cursor, bytes_max)?,
        "messages" => list_messages(session, require_call()?, cursor, bytes_max)?,
        "grants" => (grants::list_grants(session, require_call()?)?, ensure_single_page(cursor)?),
        _ => {
            return Err(Error::invalid_input(format_args!(
                "`kind` must be conversations, deletions, summaries, messages or grants, got \
                 `{kind}`"
            )));
        }
    };
    let mut answer = JsonWriter::new_object();
    answer.add_optional_text("cursor", cursor.as_deref());
    answer.add_array("items", items);
    Ok(answer.end_object())
}

/// Returns `None` as the next cursor of a listing of grants, because such a listing fits one page.
/// For the same reason, any given cursor is an error.
fn ensure_single_page(cursor: Option<&str>) -> Result<Option<String>> {
    match cursor {
        None => Ok(None),
        Some(_) => Err(foreign_cursor_error()),
    }
}

#[cold]
fn foreign_cursor_error() -> Error {
    Error::invalid_input("`cursor` must be a cursor that this listing returned")
}

/// Assumed bytes of the row of a message, without the raw text.
const ROW_BYTES: usize = 192;

/// An array of rows, and the cursor of the next page; `None`: this is the last page.
type ListPage = (JsonWriter, Option<String>);

fn list_conversations(session: &mut StoreSession<'_>, cursor: Option<&str>) -> Result<ListPage> {
    let page = conversation_list::read_conversation_page(session, cursor, CONVERSATIONS_PER_PAGE)?
        .ok_or_else(foreign_cursor_error)?;
    let mut items = JsonWriter::new_array();
    for ListedConversation { head, life } in &page.conversations {
        let mut row = JsonWriter::new_object();
        life.write_archived(&mut row);
        row.add_number("context_tokens", head.context.tokens);
        row.add_text("conversation", &head.conversation);
        row.add_optional_text("family", life.family.as_deref());
        row.add_number("message_tokens", head.raw_tokens);
        row.add_number("messages", head.messages);
        row.add_number("revision", head.revision);
        row.add_number("summaries", head.summaries);
        row.add_time("updated_at", head.clock.time);
        items.push_object(row);
    }
    Ok((items, page.cursor))
}

/// Lists the conversations that are being deleted, for a caller who continues their deletion.
fn list_deletions(session: &mut StoreSession<'_>, cursor: Option<&str>) -> Result<ListPage> {
    let (ids, cursor) =
        conversation_list::read_deletion_page(session, cursor)?.ok_or_else(foreign_cursor_error)?;
    let mut items = JsonWriter::new_array();
    for id in ids {
        let mut row = JsonWriter::new_object();
        row.add_text("conversation", &id);
        items.push_object(row);
    }
    Ok((items, cursor))
}

fn list_summaries(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<ListPage> {
    LoadedHead::open_existing(session, call)?;
    let page = summary_records::read_summary_page(session, call.keys, cursor, bytes_max)?
        .ok_or_else(foreign_cursor_error)?;
    let mut items = JsonWriter::new_array();
    for (_, record) in &page.summaries {
        let mut row = JsonWriter::new_object();
        row.add_flag("capped", record.capped);
        row.add_number("depth", record.depth.into());
        row.add_number("descendant_count", record.descendant_count);
        row.add_number("descendant_tokens", record.descendant_tokens);
        row.add_message_time("earliest_at", record.earliest_at);
        row.add_text("id", &summary::format_summary_id(record.id()));
        row.add_text("kind", record.kind());
        row.add_message_time("latest_at", record.latest_at);
        row.add_text("level", record.shown_level().as_str());
        row.add_text("model", &record.model);
        row.add_number("seq_first", record.seq_first);
        row.add_number("seq_last", record.seq_last);
        row.add_texts("source_ids", &record.source_ids());
        row.add_number("source_tokens", record.source_tokens);
        row.add_number("tokens", record.tokens.into());
        items.push_object(row);
    }
    let cursor = page.summaries.last().filter(|_| page.has_more).map(|(cursor, _)| cursor.clone());
    Ok((items, cursor))
}

/// Lists messages; the cursor is `FROM-TO`, the first and last seq of the remaining messages.
fn list_messages(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<ListPage> {
    let loaded = LoadedHead::open_existing(session, call)?;
    let head = &loaded.head;
    let (from, to) = match cursor {
        None => (1, head.messages),
        Some(cursor) => {
            let parsed = cursor
                .split_once('-')
                .and_then(|(from, to)| Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?)));
            parsed.ok_or_else(|| {
                Error::invalid_input(format_args!(
                    "`cursor` must have the form `FROM-TO` of two seqs, got `{cursor}`"
                ))
            })?
        }
    };
    let (from, to) = (from.max(1), to.min(head.messages));
    let history = MessageHistory::new(call, head);
    let bytes_max = int::to_usize(u64::from(bytes_max));
    let mut items = JsonWriter::new_array();
    let mut bytes = 0usize;
    let mut next = from;
    while next <= to {
        for placed in history.read_page(session, next, to)? {
            let size = int::to_usize(placed.stored.raw.bytes()).saturating_add(ROW_BYTES);
            if !items.is_empty() && bytes.saturating_add(size) > bytes_max {
                return Ok((items, Some(format!("{next}-{to}"))));
            }
            bytes = bytes.saturating_add(size);
            next = placed.seq + 1;
            let raw = history.read_text(session, &placed.stored)?;
            let note = JsonWriter::new_object();
            let mut row = recall::render_message_row(&history, &placed, &raw, &raw, note);
            withdrawn_mark::add_mark(session, &history, placed.seq, &mut row)?;
            items.push_object(row);
        }
    }
    Ok((items, None))
}
