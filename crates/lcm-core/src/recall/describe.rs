//! Describe: the properties of one summary, message, file, version of the system messages, or
//! conversation, with the cost of an expansion.
//!
//! In: an id. Out: JSON, and the tokens of stored text in the JSON. A grant is charged for text
//! only, not for ids, times and sizes. Not here: ranges of a file ([`super::describe_file`]) and
//! the sources of a summary ([`mod@super::expand`]).

use alloc::{collections::VecDeque, string::String, vec::Vec};

use crate::storage::{
    call::Call,
    context::ContextItem,
    head::LoadedHead,
    history::MessageHistory,
    pack::PlacedMessage,
    read_scope::{self, IdLookup, ReadLimits, RecallAnswer, ResolvedId},
    records::{
        grants::GrantAccess,
        remakes::RemakeRecord,
        system_slot::{self, SystemVersion},
    },
    session::SessionLifecycle,
    store_session::StoreSession,
    summary::{self, SourceRef, StoredFinish, Summary, SummarySources},
    withdrawn_mark::{self, WITHDRAWN_MESSAGES},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, JsonWriter},
        tokens,
    },
    message::trust::Trust,
};

use super::{
    describe_file::{self, FileRangeOptions},
    options::{OPTIONS_ARGUMENT, parse_options},
};

/// Maximum number of summaries in the list `subtree` of one answer.
const SUBTREE_MAX: usize = 256;
/// Maximum number of message ids in one answer. Of a leaf with more messages, the first are listed.
const MESSAGE_IDS_MAX: u64 = 1_000;

/// Describes a summary, message, file or the conversation as JSON, and charges the grant for the
/// text.
///
/// # Errors
///
/// - `not-found`: nothing that the call may read has the id.
/// - `invalid-input`: the id or an option is malformed.
/// - `denied`: the conversation is being deleted; or the grant is unknown, revoked or expired, does
///   not cover the conversation, or has too few tokens left.
/// - `conflict`: another call changed the grant.
/// - errors of the store.
pub(crate) fn describe(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
) -> Result<String> {
    let permit = GrantAccess::for_call(session, call, grant)?;
    let within = ReadLimits::from_permit(permit.as_ref());
    let answer = describe_uncharged(session, call, id, options_json, within)?;
    read_scope::charge_answer(session, answer, permit)
}

/// Describes like [`describe`], but returns the tokens to charge instead of charging them.
///
/// # Errors
///
/// The errors of [`describe`], except those of loading and charging the grant.
pub(crate) fn describe_uncharged(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: &str,
    options_json: &str,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let mut fields = parse_options(options_json)?;
    let (wanted, all) =
        (FileRangeOptions::read(&mut fields)?, fields.take_flag("all_conversations"));
    fields.finish(OPTIONS_ARGUMENT)?;
    if id == call.conversation {
        return describe_conversation(session, call, within);
    }
    let lookup = IdLookup { id, permit: within.permit, all_conversations: all };
    read_scope::find_in_family(
        session,
        call,
        lookup,
        &|session, call| match read_scope::resolve_id(call.keys, id)? {
            ResolvedId::Summary(id) => {
                let loaded = LoadedHead::open_existing(session, call)?;
                let history = MessageHistory::new(call, &loaded.head);
                describe_summary(session, call, &history, id, within)
            }
            ResolvedId::Message(seq) => describe_message(session, call, seq, within),
            ResolvedId::System(id) => describe_system(session, call, id, within),
            ResolvedId::File(id) => {
                describe_file::describe_file(session, call, id, &wanted, within)
            }
        },
    )
}

/// Describes a summary.
fn describe_summary(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    history: &MessageHistory<'_>,
    id: [u8; 8],
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let keys = call.keys;
    let record = read_scope::read_summary(session, call, id, within)?;
    within.ensure_tokens_left()?;
    // A grant for some summaries does not cover the summary derived from them.
    let is_limited = within.permit.is_some_and(|permit| permit.covered_spans(keys).is_some());
    let derived = match is_limited {
        true => None,
        false => session.read_record(&Summary::derived_key(keys, id))?,
    };
    let replaced_by = match record.is_provisional() && !is_limited {
        true => session.read_record(&RemakeRecord::key(keys))?.unwrap_or_default().find_newest(id),
        false => id,
    };
    let replaced_by = (replaced_by != id).then(|| summary::format_summary_id(replaced_by));
    let derived: Vec<String> = derived.into_iter().map(summary::format_summary_id).collect();
    let steps_max = within.permit.map_or(u32::MAX, GrantAccess::depth_max);
    let (subtree, complete) = list_subtree(session, call, (id, &record), steps_max)?;
    let text = within.truncate_text(&record.text);
    let tokens = tokens::estimate(text);
    let mut w = JsonWriter::new_object();
    w.add_flag("capped", record.capped);
    w.add_time("created_at", record.created_at);
    w.add_number("depth", record.depth.into());
    w.add_texts("derived_ids", &derived);
    w.add_number("descendant_count", record.descendant_count);
    w.add_number("descendant_tokens", record.descendant_tokens);
    w.add_message_time("earliest_at", record.earliest_at);
    w.add_texts("file_ids", &record.file_ids);
    w.add_texts("findings", &record.findings);
    w.add_optional_text("finish", record.finish.map(StoredFinish::as_str));
    within.write_grant_note(tokens, text.len() < record.text.len(), &mut w);
    w.add_text("id", &summary::format_summary_id(id));
    w.add_text("kind", record.kind());
    w.add_message_time("latest_at", record.latest_at);
    w.add_text("level", record.shown_level().as_str());
    w.add_texts("message_ids", &list_message_ids(call, &record));
    w.add_number("message_tokens", record.message_tokens);
    w.add_text("model", &record.model);
    w.add_number("prompt_version", record.prompt_version.into());
    w.add_flag("provisional", record.is_provisional());
    w.add_optional_text("replaced_by", replaced_by.as_deref());
    let replaces = record.replaces.filter(|_| !is_limited).map(summary::format_summary_id);
    w.add_optional_text("replaces", replaces.as_deref());
    w.add_number("seq_first", record.seq_first);
    w.add_number("seq_last", record.seq_last);
    w.add_number("source_tokens", record.source_tokens);
    w.add_texts("source_ids", &record.source_ids());
    w.add_array("subtree", subtree);
    w.add_flag("subtree_complete", complete);
    w.add_text("text", text);
    w.add_number("tokens", record.tokens.into());
    w.add_text("trust", record.trust.as_str());
    withdrawn_mark::add_summary_mark(session, history, &record, &mut w)?;
    Ok(RecallAnswer::new(w, tokens))
}

/// Lists the ids of the first [`MESSAGE_IDS_MAX`] messages of a leaf; a condensed summary has none.
fn list_message_ids(call: Call<'_>, record: &Summary) -> Vec<String> {
    let SummarySources::Messages { span, .. } = &record.sources else { return Vec::new() };
    let seqs = span.list_ranges().into_iter().flat_map(|(first, last)| first..=last);
    seqs.take(int::to_usize(MESSAGE_IDS_MAX)).map(|seq| call.keys.message_id(seq)).collect()
}

/// Describes a conversation: its counts, and the oldest [`SUBTREE_MAX`] summaries of its context
/// with the cost of each, oldest first.
///
/// # Errors
///
/// `not-found`: the conversation does not exist; `denied`: the grant covers some summaries only.
fn describe_conversation(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    if let Some(uncovered) = within.permit.and_then(GrantAccess::uncovered_error) {
        return Err(uncovered);
    }
    let loaded = LoadedHead::open_existing(session, call)?;
    let head = &loaded.head;
    let history = MessageHistory::new(call, head);
    let life = SessionLifecycle::read(session, call.keys, head)?;
    let items = head.context.load_items(session, call.keys)?;
    let roots = items.iter().filter_map(|item| match item {
        ContextItem::Summary(summary) => Some((summary.id, summary.bytes)),
        ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
    });
    let roots: Vec<_> = roots.collect();
    let listed = roots.iter().take(SUBTREE_MAX);
    let wanted: Vec<_> = listed.map(|(id, bytes)| (Summary::key(call.keys, *id), *bytes)).collect();
    let mut subtree = JsonWriter::new_array();
    for ((id, _), root) in roots.iter().zip(session.read_immutable_records(&wanted)?) {
        subtree.push_object(render_cost(*id, &root));
    }
    let mut w = JsonWriter::new_object();
    life.write_archived(&mut w);
    w.add_number("context_tokens", head.context.tokens);
    for (key, seq) in [("earliest_at", 1), ("latest_at", head.messages)] {
        if head.messages == 0 {
            w.add_null(key);
        } else if let Some(placed) = history.read_messages(session, seq, seq)?.first() {
            w.add_message_time(key, placed.stored.time);
        }
    }
    w.add_optional_text("family", life.family.as_deref());
    w.add_text("id", call.conversation);
    w.add_text("kind", "conversation");
    w.add_number("message_tokens", head.raw_tokens);
    w.add_number("messages", head.messages);
    w.add_array("subtree", subtree);
    w.add_flag("subtree_complete", roots.len() <= SUBTREE_MAX);
    w.add_number("summaries", head.summaries);
    match head.system {
        Some(slot) => w.add_object("system", slot.to_object()),
        None => w.add_null("system"),
    }
    w.add_object(WITHDRAWN_MESSAGES, withdrawn_mark::count_withdrawn(session, &history)?);
    Ok(RecallAnswer::new(w, 0))
}

/// Renders the tokens of a summary: alone, with its subtree, and of all its messages.
fn render_cost(id: [u8; 8], record: &Summary) -> JsonWriter {
    let mut row = JsonWriter::new_object();
    row.add_number("depth", record.depth.into());
    row.add_text("id", &summary::format_summary_id(id));
    row.add_number("message_tokens", record.message_tokens);
    row.add_number("subtree_tokens", u64::from(record.tokens) + record.descendant_tokens);
    row.add_number("tokens", record.tokens.into());
    row
}

/// Lists the cost of a summary and its subtree, breadth first: at most `steps_max` levels below the
/// summary, and at most [`SUBTREE_MAX`] summaries. Also returns whether the list is complete.
fn list_subtree(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    (id, record): ([u8; 8], &Summary),
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
        let wanted = [(Summary::key(call.keys, source.id), source.bytes)];
        for record in session.read_immutable_records(&wanted)? {
            out.push_object(render_cost(source.id, &record));
            count += 1;
            queue.extend(record.source_refs().iter().map(|source| (*source, step + 1)));
        }
    }
    Ok((out, true))
}

/// Describes a message.
fn describe_message(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    seq: u64,
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let loaded = LoadedHead::open_existing(session, call)?;
    let history = &MessageHistory::new(call, &loaded.head);
    if seq == 0 || seq > history.head.messages || !within.covers_range(call.keys, seq, seq) {
        let id = call.keys.message_id(seq);
        return Err(Error::not_found(format_args!("there is no message `{id}`")));
    }
    within.ensure_tokens_left()?;
    let placed = history.read_messages(session, seq, seq)?;
    let Some(placed) = placed.first() else {
        return Err(Error::corrupt_store(format_args!("message {seq} is missing")));
    };
    let raw = history.read_text(session, &placed.stored)?;
    let shown = within.truncate_text(&raw);
    let tokens = tokens::estimate(shown);
    let mut note = JsonWriter::new_object();
    within.write_grant_note(tokens, shown.len() < raw.len(), &mut note);
    let mut row = render_message_row(history, placed, &raw, shown, note);
    withdrawn_mark::add_mark(session, history, seq, &mut row)?;
    Ok(RecallAnswer::new(row, tokens))
}

/// Describes a version of the system messages.
///
/// # Errors
///
/// `not-found`: the conversation has no such version, or the grant does not cover all of the
/// conversation.
fn describe_system(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    id: [u8; 8],
    within: ReadLimits<'_>,
) -> Result<RecallAnswer> {
    let loaded = LoadedHead::open_existing(session, call)?;
    let is_limited = within.permit.is_some_and(|permit| permit.covered_spans(call.keys).is_some());
    let version = session.read_record(&SystemVersion::key(call.keys, id))?;
    let name = system_slot::format_system_id(id);
    let Some(version) = version.filter(|_| !is_limited) else {
        return Err(Error::not_found(format_args!(
            "there is no version `{name}` of the system messages in this conversation"
        )));
    };
    within.ensure_tokens_left()?;
    let history = MessageHistory::new(call, &loaded.head);
    let text = system_slot::join_texts(&version.read_texts(session, &history)?);
    let shown = within.truncate_text(&text);
    let tokens = tokens::estimate(shown);
    let mut w = JsonWriter::new_object();
    w.add_time("created_at", version.time);
    within.write_grant_note(tokens, shown.len() < text.len(), &mut w);
    w.add_text("id", &name);
    w.add_text("kind", "system");
    w.add_number("messages", int::to_u64(version.messages.len()));
    w.add_flag("newest", loaded.head.system.is_some_and(|slot| slot.id == id));
    let previous = version.previous.map(system_slot::format_system_id);
    w.add_optional_text("previous_id", previous.as_deref());
    w.add_text("text", shown);
    w.add_number("tokens", version.tokens().into());
    w.add_number("version", version.number);
    Ok(RecallAnswer::new(w, tokens))
}

/// Renders a message as JSON, with `shown` as its text and the members of `note`. `raw`: the whole
/// text of the message.
pub(crate) fn render_message_row(
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
    raw: &str,
    shown: &str,
    note: JsonWriter,
) -> JsonWriter {
    let stored = &placed.stored;
    let mut row = JsonWriter::new_object();
    row.add_message_time("created_at", stored.time);
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
