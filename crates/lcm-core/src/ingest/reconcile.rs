//! Reconcile: which entries of a whole transcript are missing here.
//!
//! The host computes nothing: [`identify`] gives an entry per message, and [`reconcile`] compares
//! the list of them with what is stored. The running hash proves how many messages at the beginning
//! are stored ([`overlap`]); behind them a transcript without ids goes on, is another branch, or
//! was changed, which is refused. With ids, these decide entry by entry, and entries without one by
//! alignment with the newest stored messages.

use alloc::{format, string::String, vec::Vec};

use crate::{
    api::Dialect,
    codec,
    config::Config,
    error::{Error, Result},
    head::{Head, Loaded},
    history::History,
    json::{self, Fields, Span, Writer},
    keys::{self, Keys},
    message, num, order,
    pack::{self, advance},
    reader::Reader,
};

use super::{
    Known,
    bounds::{Bounds, Last, Overlap},
    identity::{self, Alignable, INSIDE_ANCHORS_MIN, Lookup, Newest},
    overlap::{self, Parting},
    redaction::Redacted,
};

/// Most entries of one transcript.
const ENTRIES_MAX: usize = 2_000_000;

/// Name of the argument that holds the transcript.
const TRANSCRIPT: &str = "transcript-json";

/// What identifies one message of a transcript.
struct Entry {
    entry_id: Option<String>,
    event_key: Option<String>,
    /// Hash over content and ids.
    hash: [u8; 16],
    /// Whether equal content is evidence of being the same message.
    discriminating: bool,
    /// Call id of a single tool result without id of the host: the same result again is skipped.
    call_id: Option<String>,
    /// Whether ingest skips it: a failed turn without content.
    empty: bool,
    /// What it says of the text that it may be a redacted copy of.
    redacted: Option<Redacted>,
    /// Estimated tokens; 0 when the host does not say.
    tokens: u64,
}

/// A range of entries, by 0-based inclusive index.
#[derive(Clone, Copy)]
struct Missing {
    from: u64,
    to: u64,
}

/// The identities of messages, as a JSON array. Reads nothing.
///
/// # Errors
///
/// `invalid-input` naming the message by its index.
pub(crate) fn identify(dialect: Dialect, messages: &[String]) -> Result<String> {
    let mut entries = Writer::array();
    for (index, raw) in messages.iter().enumerate() {
        let message = message::project(dialect, raw).map_err(|error| {
            Error::new(error.code, format_args!("messages[{index}]: {}", error.message))
        })?;
        let call_id = message
            .unique_call_id
            .filter(|_| message.entry_id.is_none() && message.event_key.is_none());
        let mut entry = Writer::object();
        text_at(&mut entry, "entry_id", raw, message.entry_id);
        text_at(&mut entry, "event_key", raw, message.event_key);
        entry.text("hash", &keys::hex(&pack::message_hash(raw, &message)));
        entry.flag("discriminating", message.discriminating);
        text_at(&mut entry, "call_id", raw, call_id);
        entry.flag("empty", message.failed_and_empty);
        let redacted = Redacted::of(raw, &message).map(|redacted| redacted.written());
        entry.text_or_null("redacted", redacted.as_deref());
        entry.number("tokens", message.tokens.into());
        entries.push_object(entry);
    }
    Ok(entries.end_array())
}

fn text_at(object: &mut Writer, key: &str, raw: &str, span: Option<Span>) {
    object.text_or_null(key, span.map(|span| json::text(raw, span)).as_deref());
}

/// Reads a transcript; a field that is not known is passed over.
fn entries(transcript: &str) -> Result<(Vec<Entry>, Bounds)> {
    let mut fields = Fields::of_argument(TRANSCRIPT, transcript)?;
    let list = fields.list("entries");
    let bounds = Bounds::read(&mut fields);
    fields.end_of_known(TRANSCRIPT)?;
    if list.len() > ENTRIES_MAX {
        return Err(Error::limit(format_args!("entries: at most {ENTRIES_MAX}")));
    }
    let mut entries = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let mut fields = Fields::new(transcript, json::members(transcript, value.span));
        let hash = keys::unhex(&fields.text("hash")).filter(|bytes| bytes.len() == 16);
        let hash = hash
            .ok_or_else(|| Error::invalid(format_args!("entries[{index}].hash: 32 hex digits")))?;
        entries.push(Entry {
            entry_id: fields.text_or_none("entry_id"),
            event_key: fields.text_or_none("event_key"),
            hash: keys::prefix(&hash),
            discriminating: fields.flag("discriminating"),
            call_id: fields.text_or_none("call_id"),
            empty: fields.flag("empty"),
            redacted: fields.text_or_none("redacted").as_deref().and_then(Redacted::read),
            tokens: fields.number_or_none("tokens").unwrap_or(0),
        });
        fields.end_of_known(TRANSCRIPT)?;
    }
    Ok((entries, bounds))
}

/// Says which entries of a transcript are not stored, as a JSON plan.
///
/// # Errors
///
/// `invalid-input`: no list of entries; `limit-exceeded`: too many; `exists`: one without ids was
/// changed among messages that are stored; errors of the store.
pub(crate) fn reconcile(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    transcript_json: &str,
) -> Result<String> {
    let keys = Keys::new(conversation)?;
    let (entries, bounds) = entries(transcript_json)?;
    let loaded = Loaded::of(reader, &keys, conversation)?;
    let head = &loaded.head;
    let effective = effective(&entries);
    let asked = Asked { config, entries: &entries, effective: &effective, bounds: &bounds };
    let plan = |by, is_stored: &dyn Fn(usize) -> bool| plan(head, by, &asked, is_stored);
    // What ingest skips anyway is never missing.
    let is_skipped = |index: usize| effective.binary_search(&index).is_err();
    let after = |by, from: usize| Ok(plan(by, &|index| index < from || is_skipped(index)));
    if let Some(from) = prefix(&effective, &entries, head) {
        return after("prefix", from);
    }
    let known = known(reader, &keys, &entries)?;
    let by_id = known.iter().any(Option::is_some);
    let alignable = |index: &usize| {
        let Entry { hash, discriminating, redacted, .. } = *entries.get(*index)?;
        let seq = known.get(*index).copied().flatten();
        Some(Alignable { hash, seq, discriminating, redacted })
    };
    let alignable: Vec<Alignable> = effective.iter().filter_map(alignable).collect();
    let history = History { keys: &keys, head };
    let texts = match alignable.iter().any(|entry| entry.redacted.is_some()) {
        true => identity::newest_texts(reader, &history, head.hashes.len())?,
        false => Vec::new(),
    };
    let is_compared = !by_id && head.messages > 0;
    // Place of an entry that is stored or not, in the transcript.
    let place = |number: usize| effective.get(number).copied().unwrap_or(entries.len());
    if is_compared {
        match overlap::parting(reader, &history, &alignable, &place)? {
            Parting::Together { entries: count } => return after("prefix", place(count)),
            Parting::Branch { entries: count } => return after("branch", place(count)),
            Parting::Apart => {}
        }
    }
    let (from, to) =
        covered(reader, &history, &texts, &alignable, &|| frontier(&effective, &entries))?;
    if is_compared && to == from {
        overlap::refuse_change(reader, &history, &alignable, 0, &place)?;
    }
    let by = match (by_id, to > from) {
        (_, true) => "alignment",
        (true, false) => "ids",
        (false, false) => "none",
    };
    let aligned = effective.get(from..to).unwrap_or(&[]);
    Ok(plan(by, &|index| {
        known.get(index).copied().flatten().is_some()
            || aligned.binary_search(&index).is_ok()
            || is_skipped(index)
    }))
}

/// Kind, id, and where it counts only together with equal content: the content.
type Identity<'a> = (u8, &'a str, &'a [u8]);

/// Indexes of the entries that ingest would store if nothing was stored yet: without failed turns
/// and without what carries an id that came before.
fn effective(entries: &[Entry]) -> Vec<usize> {
    let mut ids: Vec<(Identity<'_>, usize)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = [
            (0, entry.entry_id.as_deref(), &[][..]),
            (1, entry.event_key.as_deref(), &[][..]),
            (2, entry.call_id.as_deref(), entry.hash.as_slice()),
        ];
        for (kind, id, content) in of_entry {
            ids.extend(id.map(|id| ((kind, id, content), index)));
        }
    }
    order::sort(&mut ids);
    let mut again = alloc::vec![false; entries.len()];
    for pair in ids.windows(2) {
        if let [(first, _), (second, index)] = pair
            && first == second
            && let Some(again) = again.get_mut(*index)
        {
            *again = true;
        }
    }
    let counts = |(index, again): (usize, bool)| {
        let is_empty = entries.get(index).is_none_or(|entry| entry.empty);
        (!again && !is_empty).then_some(index)
    };
    again.into_iter().enumerate().filter_map(counts).collect()
}

/// Index behind the stored messages, when they are the beginning of the transcript.
fn prefix(effective: &[usize], entries: &[Entry], head: &Head) -> Option<usize> {
    let count = num::to_usize(head.messages);
    let frontier = frontier(effective.get(..count)?, entries);
    let behind = || match count.checked_sub(1) {
        None => Some(0),
        Some(last) => effective.get(last).map(|index| index + 1),
    };
    (frontier == head.frontier).then(behind).flatten()
}

fn frontier(indexes: &[usize], entries: &[Entry]) -> [u8; 16] {
    let entries = indexes.iter().filter_map(|index| entries.get(*index));
    entries.fold([0; 16], |running, entry| advance(&running, &entry.hash))
}

/// Which range of the effective entries is stored, going by alignment.
///
/// Either the transcript goes on where the stored messages end, or it lies wholly among them: at
/// their beginning, which the running hash proves, or among the newest. Lying among them takes two
/// anchors, because a single message may well be said again.
fn covered(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    texts: &[String],
    entries: &[Alignable],
    whole: &dyn Fn() -> [u8; 16],
) -> Result<(usize, usize)> {
    let head = history.head;
    let newest = Newest { hashes: &head.hashes, texts, seq_last: head.messages };
    let stored = newest.hashes.len();
    let ends = |end: &usize| {
        let count = stored.min(*end);
        let run = entries.get(end - count..*end).unwrap_or(&[]);
        newest.holds(stored - count, run, 1)
    };
    if let Some(end) = (1..=entries.len()).rev().find(ends) {
        // No more is claimed than there are messages.
        return Ok((end.saturating_sub(num::to_usize(head.messages)), end));
    }
    let anchors =
        entries.iter().filter(|entry| entry.discriminating || entry.seq.is_some()).count();
    if anchors < INSIDE_ANCHORS_MIN || num::to_u64(entries.len()) > head.messages {
        return Ok((0, 0));
    }
    let inside = (0..stored).any(|from| newest.holds(from, entries, INSIDE_ANCHORS_MIN));
    if inside {
        return Ok((0, entries.len()));
    }
    let seq = num::to_u64(entries.len());
    let stored = history.frontier(reader, seq)?;
    let same = stored == whole();
    Ok((0, if same { entries.len() } else { 0 }))
}

/// Which entries are stored by id or event key.
fn known(reader: &mut Reader<'_>, keys: &Keys, entries: &[Entry]) -> Result<Vec<Option<u64>>> {
    let mut lookups: Vec<(String, usize, Lookup)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(Lookup::entry);
        let of_event = entry.event_key.as_deref().map(Lookup::event);
        for lookup in of_entry.into_iter().chain(of_event) {
            lookups.push((keys.identity(&lookup.hash), index, lookup));
        }
    }
    let mut out = alloc::vec![None; entries.len()];
    order::sort_by(&mut lookups, &mut |left, right| left.0.cmp(&right.0));
    let of_name =
        |left: &(String, usize, Lookup), right: &(String, usize, Lookup)| left.0 == right.0;
    let mut names: Vec<String> = lookups.iter().map(|(name, ..)| name.clone()).collect();
    names.dedup();
    let of_names = lookups.chunk_by(of_name);
    for ((name, value), lookups) in names.iter().zip(reader.fresh(&names)?).zip(of_names) {
        let Some(value) = value else { continue };
        let record: Known = codec::decode(name, &value)?;
        for (_, index, lookup) in lookups {
            if let Some(slot) = out.get_mut(*index)
                && record.is_of(lookup)
            {
                *slot = Some(record.seq);
            }
        }
    }
    Ok(out)
}

/// What a plan is asked for.
struct Asked<'a> {
    config: &'a Config,
    entries: &'a [Entry],
    effective: &'a [usize],
    bounds: &'a Bounds,
}

fn plan(
    head: &Head,
    by: &'static str,
    asked: &Asked<'_>,
    is_stored: &dyn Fn(usize) -> bool,
) -> String {
    let Asked { config, entries, effective, bounds } = *asked;
    let mut indexes: Vec<usize> = (0..entries.len()).filter(|index| !is_stored(*index)).collect();
    let tokens = |index: usize| entries.get(index).map_or(0, |entry| entry.tokens);
    let first_stored = effective.iter().copied().find(|index| is_stored(*index));
    let overlap = Overlap { stored: head.messages, by, first_stored };
    let bounded = bounds.apply(config, &mut indexes, &tokens, &overlap);
    let mut missing: Vec<Missing> = Vec::new();
    for index in indexes {
        let at = num::to_u64(index);
        match missing.last_mut() {
            Some(range) if range.to + 1 == at => range.to = at,
            _ => missing.push(Missing { from: at, to: at }),
        }
    }
    let stored = head.messages;
    let mut warnings = Writer::array();
    if by == "none" && stored > 0 && !missing.is_empty() {
        warnings.push_text(&format!(
            "no-overlap: the transcript does not go on where the {stored} stored messages end; \
             all of it counts as new"
        ));
    }
    if by == "branch" {
        let first = missing.first().map_or(0, |range| range.from) + 1;
        warnings.push_text(&format!(
            "branch: message {first} of the transcript is not the one that is stored in its \
             place; what is stored from there on stays, and the rest of the transcript follows it"
        ));
    }
    if let Some(warning) = bounds.warning(&bounded) {
        warnings.push_text(&warning);
    }
    // A checkpoint stands behind what is stored, and never behind what is only planned.
    let proven = missing.is_empty() && bounded.blocked.is_none();
    let last = entries.last().filter(|_| proven);
    let hash = last.map(|entry| keys::hex(&entry.hash)).unwrap_or_default();
    let last = last.map(|entry| {
        let (entry_id, entries) = (entry.entry_id.as_deref(), num::to_u64(entries.len()));
        Last { entry_id, hash: &hash, entries }
    });
    let mut ranges = Writer::array();
    for Missing { from, to } in missing {
        let mut range = Writer::object();
        range.number("from", from);
        range.number("to", to);
        ranges.push_object(range);
    }
    let mut plan = Writer::object();
    plan.array_at("missing", ranges);
    plan.number("stored", stored);
    plan.text("by", by);
    // Of the conversation that this is true of; 0 when it does not exist.
    plan.number("revision", head.revision);
    bounds.write(&mut plan, &bounded, last);
    plan.array_at("warnings", warnings);
    plan.end_object()
}
