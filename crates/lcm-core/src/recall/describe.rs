//! Describe: everything known about one summary, message or file, or about the conversation, with
//! what expanding it would cost.
//!
//! In: an id. Out: JSON, and the tokens of stored text in it. Ids, times and sizes cost a grant
//! nothing. Not here: what a file is and its ranges (`file`), and following a summary (`expand`).

use crate::storage::pack::Placed;
use crate::storage::read_scope;
use crate::storage::session::Life;
use alloc::{collections::VecDeque, string::String, vec::Vec};

use crate::storage::{
    codec,
    context::Item,
    head::Loaded,
    history::History,
    keys::Keys,
    records::grants::Permit,
    store_session::Reader,
    summary::{self, SourceRef, Sources, StoredFinish, Summary},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, Writer},
        tokens,
    },
    message::trust::Trust,
    types::api::Timestamp,
};

use crate::{
    storage::file_range::{self, Wanted},
    storage::read_scope::{Answer, Named, Within},
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
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    grant: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let permit = Permit::for_call(reader, conversation, grant, now)?;
    let within = Within::of(permit.as_ref());
    let answer = described(reader, conversation, id, options_json, within)?;
    read_scope::handed_out(reader, answer, permit)
}

/// As [`describe`], with the tokens that are still to be charged.
///
/// # Errors
///
/// As [`describe`].
pub(crate) fn described(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    options_json: &str,
    within: Within<'_>,
) -> Result<Answer> {
    let mut fields = super::options(options_json)?;
    let (wanted, all) = (Wanted::read(&mut fields)?, fields.flag("all"));
    fields.end(super::OPTIONS)?;
    if id == conversation {
        return of_conversation(reader, conversation, within);
    }
    read_scope::in_family(reader, conversation, id, within.permit, all, &|reader, conversation| {
        let keys = Keys::new(conversation)?;
        let named = read_scope::named(&keys, id)?;
        let loaded = Loaded::of_existing(reader, &keys, conversation)?;
        let history = History { keys: &keys, head: &loaded.head };
        match named {
            Named::Summary(id) => of_summary(reader, &keys, id, within),
            Named::Message(seq) => of_message(reader, &history, seq, within),
            Named::File(id) => file_range::describe(reader, &history, id, &wanted, within),
        }
    })
}

fn of_summary(
    reader: &mut Reader<'_>,
    keys: &Keys,
    id: [u8; 8],
    within: Within<'_>,
) -> Result<Answer> {
    let record = read_scope::summary(reader, keys, id, within)?;
    within.must_have_left()?;
    let key = keys.derived(id);
    // Whoever may read some summaries only is not told what was made from them.
    let is_limited = within.permit.is_some_and(|permit| permit.spans(keys).is_some());
    let derived = match reader.fresh_one(&key)?.filter(|_| !is_limited) {
        Some(value) => Some(codec::decode::<[u8; 8]>(&key, &value)?),
        None => None,
    };
    let derived: Vec<String> = derived.into_iter().map(summary::name).collect();
    let message_ids: Vec<String> = match record.sources {
        Sources::Messages { seq_first, seq_last, .. } => (seq_first..=seq_last)
            .take(int::to_usize(MESSAGE_IDS_MAX))
            .map(|seq| keys.message_name(seq))
            .collect(),
        Sources::Summaries(_) => Vec::new(),
    };
    let steps_max = within.permit.map_or(u32::MAX, Permit::depth_max);
    let (subtree, complete) = subtree(reader, keys, id, &record, steps_max)?;
    let text = within.shown(&record.text);
    let tokens = tokens::estimate(text);
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
    within.note(tokens, text.len() < record.text.len(), &mut w);
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
    w.text("text", text);
    w.number("tokens", record.tokens.into());
    w.text("trust", record.trust.as_str());
    Ok(Answer::new(w, tokens))
}

/// What a conversation has, with the summaries of its context, oldest first, and what each costs;
/// what no summary stands for is in the context as it was said.
///
/// # Errors
///
/// `not-found`: there is none; `denied`: the grant covers some summaries only.
fn of_conversation(
    reader: &mut Reader<'_>,
    conversation: &str,
    within: Within<'_>,
) -> Result<Answer> {
    if let Some(uncovered) = within.permit.and_then(Permit::uncovered) {
        return Err(uncovered);
    }
    let keys = Keys::new(conversation)?;
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
    let head = &loaded.head;
    let history = History { keys: &keys, head };
    let life = Life::read(reader, &keys, head)?;
    let items = head.context.load(reader, &keys)?;
    let roots = items.iter().filter_map(|item| match item {
        Item::Summary(summary) => Some((keys.summary(summary.id), summary)),
        Item::Run(_) | Item::Withdrawn { .. } => None,
    });
    let roots: Vec<_> = roots.collect();
    let listed = roots.iter().take(SUBTREE_MAX);
    let wanted: Vec<(String, u32)> =
        listed.map(|(key, summary)| (key.clone(), summary.bytes)).collect();
    let mut subtree = Writer::array();
    for ((key, root), value) in roots.iter().zip(reader.immutable(&wanted)?) {
        subtree.push_object(cost(root.id, &codec::decode(key, &value)?));
    }
    let mut w = Writer::object();
    life.write_archived(&mut w);
    w.number("context_tokens", head.context.tokens);
    for (key, seq) in [("earliest_at", 1), ("latest_at", head.messages)] {
        if head.messages == 0 {
            w.null(key);
        } else if let Some(placed) = history.messages(reader, seq, seq)?.first() {
            w.time(key, placed.stored.time);
        }
    }
    w.text_or_null("family", life.family.as_deref());
    w.text("id", conversation);
    w.text("kind", "conversation");
    w.number("message_tokens", head.raw_tokens);
    w.number("messages", head.messages);
    w.array_at("subtree", subtree);
    w.flag("subtree_complete", roots.len() <= SUBTREE_MAX);
    w.number("summaries", head.summaries);
    Ok(Answer::new(w, 0))
}

/// What reading a summary costs: alone, with those under it, and all of its messages.
fn cost(id: [u8; 8], record: &Summary) -> Writer {
    let mut row = Writer::object();
    row.number("depth", record.depth.into());
    row.text("id", &summary::name(id));
    row.number("message_tokens", record.message_tokens);
    row.number("subtree_tokens", u64::from(record.tokens) + record.descendant_tokens);
    row.number("tokens", record.tokens.into());
    row
}

/// The summary and everything under it with what each costs, breadth first, and whether that is
/// all. At most `steps_max` steps down are listed.
fn subtree(
    reader: &mut Reader<'_>,
    keys: &Keys,
    id: [u8; 8],
    record: &Summary,
    steps_max: u32,
) -> Result<(Writer, bool)> {
    let mut out = Writer::array();
    out.push_object(cost(id, record));
    let mut count = 1;
    let sources = record.source_refs().iter().copied();
    let mut queue: VecDeque<(SourceRef, u32)> = sources.map(|source| (source, 1)).collect();
    while let Some((source, step)) = queue.pop_front() {
        if count == SUBTREE_MAX || step > steps_max {
            return Ok((out, false));
        }
        let wanted = [(keys.summary(source.id), source.bytes)];
        for ((key, _), value) in wanted.iter().zip(reader.immutable(&wanted)?) {
            let record: Summary = codec::decode(key, &value)?;
            out.push_object(cost(source.id, &record));
            count += 1;
            queue.extend(record.source_refs().iter().map(|source| (*source, step + 1)));
        }
    }
    Ok((out, true))
}

fn of_message(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    seq: u64,
    within: Within<'_>,
) -> Result<Answer> {
    if seq == 0 || seq > history.head.messages || !within.covers(history.keys, seq, seq) {
        let id = history.keys.message_name(seq);
        return Err(Error::not_found(format_args!("there is no message `{id}`")));
    }
    within.must_have_left()?;
    let placed = history.messages(reader, seq, seq)?;
    let Some(placed) = placed.first() else {
        return Err(Error::corrupt(format_args!("message {seq} is missing")));
    };
    let raw = history.text(reader, &placed.stored)?;
    let shown = within.shown(&raw);
    let tokens = tokens::estimate(shown);
    let mut note = Writer::object();
    within.note(tokens, shown.len() < raw.len(), &mut note);
    Ok(Answer::new(row(history, placed, &raw, shown, note), tokens))
}

/// A message of this raw text as JSON, with as much of it as is shown, and a note on that.
pub(crate) fn row(
    history: &History<'_>,
    placed: &Placed,
    raw: &str,
    shown: &str,
    note: Writer,
) -> Writer {
    let stored = &placed.stored;
    let mut row = Writer::object();
    row.time("created_at", stored.time);
    if let Some(span) = stored.entry_id {
        row.text("entry_id", &json::text(raw, span));
    }
    row.append(note);
    row.text("id", &history.keys.message_name(placed.seq));
    row.text("kind", "message");
    row.text("raw", shown);
    row.text("role", stored.role.as_str());
    row.number("seq", placed.seq);
    row.number("tokens", stored.tokens.into());
    row.text("trust", Trust::of_message(raw, stored.role, &stored.parts).as_str());
    row
}
