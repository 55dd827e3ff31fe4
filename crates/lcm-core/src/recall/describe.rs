//! Describe: everything known about one summary, message or file, or about the conversation, with
//! what expanding it would cost.
//!
//! In: an id. Out: JSON, and the tokens of stored text in it. Ids, times and sizes cost a grant
//! nothing. Not here: what a file is and its ranges (`file`), and following a summary (`expand`).

use crate::storage::pack::PlacedMessage;
use crate::storage::read_scope;
use crate::storage::session::SessionLifecycle;
use alloc::{collections::VecDeque, string::String, vec::Vec};

use crate::storage::{
    codec,
    context::ContextItem,
    head::LoadedHead,
    history::MessageHistory,
    keys::ConversationKeys,
    records::grants::GrantAccess,
    store_session::StoreSession,
    summary::{self, SourceRef, StoredFinish, Summary, SummarySources},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, JsonWriter},
        tokens,
    },
    message::trust::Trust,
    types::api::Timestamp,
};

use crate::{
    recall::describe_file::{self, FileRangeOptions},
    storage::read_scope::{ReadLimits, RecallAnswer, ResolvedId},
};

/// Summaries of the subtree that one answer lists.
const SUBTREE_MAX: usize = 256;
/// Message ids that one answer lists.
const MESSAGE_IDS_MAX: u64 = 1_000;

/// Describes a summary, message, file or the conversation as JSON, and charges the grant for the
/// text in it.
///
/// # Errors
///
/// `not-found`, `invalid-input`, `denied`, `conflict` (with a grant); errors of the store.
pub(crate) fn describe(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let permit = GrantAccess::for_call(reader, conversation, grant, now)?;
    let within = ReadLimits::from_permit(permit.as_ref());
    let answer = describe_uncharged(reader, conversation, id, options_json, within)?;
    read_scope::charge_answer(reader, answer, permit)
}

/// As [`describe`], with the tokens that are still to be charged.
///
/// # Errors
///
/// As [`describe`].
pub(crate) fn describe_uncharged(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let mut fields = super::parse_options(options_json)?;
    let (wanted, all) =
        (FileRangeOptions::read(&mut fields)?, fields.take_flag("all_conversations"));
    fields.finish(super::OPTIONS_ARGUMENT)?;
    if id == conversation {
        return describe_conversation(reader, conversation, within);
    }
    read_scope::find_in_family(
        reader,
        conversation,
        id,
        within.permit,
        all,
        &|reader, conversation| {
            let keys = ConversationKeys::new(conversation)?;
            let named = read_scope::resolve_id(&keys, id)?;
            let loaded = LoadedHead::load_existing(reader, &keys, conversation)?;
            let history = MessageHistory { keys: &keys, head: &loaded.head };
            match named {
                ResolvedId::Summary(id) => describe_summary(reader, &keys, id, within),
                ResolvedId::Message(seq) => describe_message(reader, &history, seq, within),
                ResolvedId::File(id) => {
                    describe_file::describe_file(reader, &history, id, &wanted, within)
                }
            }
        },
    )
}

fn describe_summary(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    id: [u8; 8],
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let record = read_scope::read_summary(reader, keys, id, within)?;
    within.ensure_tokens_left()?;
    let key = keys.derived_key(id);
    // Whoever may read some summaries only is not told what was made from them.
    let is_limited = within.permit.is_some_and(|permit| permit.covered_spans(keys).is_some());
    let derived = match reader.read_one_uncached(&key)?.filter(|_| !is_limited) {
        Some(value) => Some(codec::decode::<[u8; 8]>(&key, &value)?),
        None => None,
    };
    let derived: Vec<String> = derived.into_iter().map(summary::format_summary_id).collect();
    let message_ids: Vec<String> = match record.sources {
        SummarySources::Messages { seq_first, seq_last, .. } => (seq_first..=seq_last)
            .take(int::to_usize(MESSAGE_IDS_MAX))
            .map(|seq| keys.message_id(seq))
            .collect(),
        SummarySources::Summaries(_) => Vec::new(),
    };
    let steps_max = within.permit.map_or(u32::MAX, GrantAccess::depth_max);
    let (subtree, complete) = list_subtree(reader, keys, id, &record, steps_max)?;
    let text = within.truncate_text(&record.text);
    let tokens = tokens::estimate(text);
    let mut w = JsonWriter::new_object();
    w.add_flag("capped", record.capped);
    w.add_time("created_at", record.created_at);
    w.add_number("depth", record.depth.into());
    w.add_texts("derived_ids", &derived);
    w.add_number("descendant_count", record.descendant_count);
    w.add_number("descendant_tokens", record.descendant_tokens);
    w.add_time("earliest_at", record.earliest_at);
    w.add_texts("file_ids", &record.file_ids);
    w.add_texts("findings", &record.findings);
    w.add_optional_text("finish", record.finish.map(StoredFinish::as_str));
    within.write_grant_note(tokens, text.len() < record.text.len(), &mut w);
    w.add_text("id", &summary::format_summary_id(id));
    w.add_text("kind", record.kind());
    w.add_time("latest_at", record.latest_at);
    w.add_text("level", record.level.as_str());
    w.add_texts("message_ids", &message_ids);
    w.add_number("message_tokens", record.message_tokens);
    w.add_text("model", &record.model);
    w.add_number("prompt_version", record.prompt_version.into());
    w.add_number("seq_first", record.seq_first);
    w.add_number("seq_last", record.seq_last);
    w.add_number("source_tokens", record.source_tokens);
    w.add_texts("source_ids", &record.source_ids());
    w.add_array("subtree", subtree);
    w.add_flag("subtree_complete", complete);
    w.add_text("text", text);
    w.add_number("tokens", record.tokens.into());
    w.add_text("trust", record.trust.as_str());
    Ok(RecallAnswer::new(w, tokens))
}

/// What a conversation has, with the summaries of its context, oldest first, and what each costs;
/// what no summary stands for is in the context as it was said.
///
/// # Errors
///
/// `not-found`: there is none; `denied`: the grant covers some summaries only.
fn describe_conversation(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    if let Some(uncovered) = within.permit.and_then(GrantAccess::uncovered_error) {
        return Err(uncovered);
    }
    let keys = ConversationKeys::new(conversation)?;
    let loaded = LoadedHead::load_existing(reader, &keys, conversation)?;
    let head = &loaded.head;
    let history = MessageHistory { keys: &keys, head };
    let life = SessionLifecycle::read(reader, &keys, head)?;
    let items = head.context.load_items(reader, &keys)?;
    let roots = items.iter().filter_map(|item| match item {
        ContextItem::Summary(summary) => Some((keys.summary_key(summary.id), summary)),
        ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
    });
    let roots: Vec<_> = roots.collect();
    let listed = roots.iter().take(SUBTREE_MAX);
    let wanted: Vec<(String, u32)> =
        listed.map(|(key, summary)| (key.clone(), summary.bytes)).collect();
    let mut subtree = JsonWriter::new_array();
    for ((key, root), value) in roots.iter().zip(reader.read_immutable(&wanted)?) {
        subtree.push_object(render_cost(root.id, &codec::decode(key, &value)?));
    }
    let mut w = JsonWriter::new_object();
    life.write_archived(&mut w);
    w.add_number("context_tokens", head.context.tokens);
    for (key, seq) in [("earliest_at", 1), ("latest_at", head.messages)] {
        if head.messages == 0 {
            w.add_null(key);
        } else if let Some(placed) = history.read_messages(reader, seq, seq)?.first() {
            w.add_time(key, placed.stored.time);
        }
    }
    w.add_optional_text("family", life.family.as_deref());
    w.add_text("id", conversation);
    w.add_text("kind", "conversation");
    w.add_number("message_tokens", head.raw_tokens);
    w.add_number("messages", head.messages);
    w.add_array("subtree", subtree);
    w.add_flag("subtree_complete", roots.len() <= SUBTREE_MAX);
    w.add_number("summaries", head.summaries);
    Ok(RecallAnswer::new(w, 0))
}

/// What reading a summary costs: alone, with those under it, and all of its messages.
fn render_cost(id: [u8; 8], record: &Summary) -> JsonWriter {
    let mut row = JsonWriter::new_object();
    row.add_number("depth", record.depth.into());
    row.add_text("id", &summary::format_summary_id(id));
    row.add_number("message_tokens", record.message_tokens);
    row.add_number("subtree_tokens", u64::from(record.tokens) + record.descendant_tokens);
    row.add_number("tokens", record.tokens.into());
    row
}

/// The summary and everything under it with what each costs, breadth first, and whether that is
/// all. At most `steps_max` steps down are listed.
fn list_subtree(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    id: [u8; 8],
    record: &Summary,
    steps_max: u32,
) -> Result<(JsonWriter, bool)> {
    let mut out = JsonWriter::new_array();
    out.push_object(render_cost(id, record));
    let mut count = 1;
    let sources = record.source_refs().iter().copied();
    let mut queue: VecDeque<(SourceRef, u32)> = sources.map(|source| (source, 1)).collect();
    while let Some((source, step)) = queue.pop_front() {
        if count == SUBTREE_MAX || step > steps_max {
            return Ok((out, false));
        }
        let wanted = [(keys.summary_key(source.id), source.bytes)];
        for ((key, _), value) in wanted.iter().zip(reader.read_immutable(&wanted)?) {
            let record: Summary = codec::decode(key, &value)?;
            out.push_object(render_cost(source.id, &record));
            count += 1;
            queue.extend(record.source_refs().iter().map(|source| (*source, step + 1)));
        }
    }
    Ok((out, true))
}

fn describe_message(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    if seq == 0 || seq > history.head.messages || !within.covers_range(history.keys, seq, seq) {
        let id = history.keys.message_id(seq);
        return Err(Error::not_found(format_args!("there is no message `{id}`")));
    }
    within.ensure_tokens_left()?;
    let placed = history.read_messages(reader, seq, seq)?;
    let Some(placed) = placed.first() else {
        return Err(Error::corrupt_store(format_args!("message {seq} is missing")));
    };
    let raw = history.read_text(reader, &placed.stored)?;
    let shown = within.truncate_text(&raw);
    let tokens = tokens::estimate(shown);
    let mut note = JsonWriter::new_object();
    within.write_grant_note(tokens, shown.len() < raw.len(), &mut note);
    Ok(RecallAnswer::new(render_message_row(history, placed, &raw, shown, note), tokens))
}

/// A message of this raw text as JSON, with as much of it as is shown, and a note on that.
pub(crate) fn render_message_row(
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
    raw: &str,
    shown: &str,
    note: JsonWriter,
) -> JsonWriter {
    let stored = &placed.stored;
    let mut row = JsonWriter::new_object();
    row.add_time("created_at", stored.time);
    if let Some(span) = stored.entry_id {
        row.add_text("entry_id", &json::text(raw, span));
    }
    row.append_members(note);
    row.add_text("id", &history.keys.message_id(placed.seq));
    row.add_text("kind", "message");
    row.add_text("raw", shown);
    row.add_text("role", stored.role.as_str());
    row.add_number("seq", placed.seq);
    row.add_number("tokens", stored.tokens.into());
    row.add_text("trust", Trust::from_message(raw, stored.role, &stored.parts).as_str());
    row
}
