//! Reconcile: which entries of a whole transcript are missing here.
//!
//! The host computes nothing: [`identify`] gives an entry per message, and [`reconcile`] compares
//! the list of them with what is stored. One hash proves that it begins with the stored messages.
//! Else ids decide entry by entry, and entries without one go by those [`beside`] them; and of a
//! transcript without ids its [`overlap`] with the stored messages is looked for.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::{
    codec,
    head::{ConversationHead, LoadedHead},
    history::MessageHistory,
    keys::ConversationKeys,
    pack::{self, advance_frontier},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
        json::{self, ByteSpan, JsonFields, JsonWriter},
        sort,
    },
    config::Config,
    message,
    types::api::Dialect,
};

use super::{
    StoredIdentity, anchor_alignment,
    backlog::{BacklogOptions, LastEntry, OverlapSummary},
    idempotency,
    identity::{self, AlignableEntry, IdentityLookup},
    redaction::RedactedCopy,
    transcript_diff::{self, AlignedRun},
};

/// Most entries of one transcript.
pub(super) const ENTRIES_MAX: usize = 2_000_000;

/// Name of the argument that holds the transcript.
const TRANSCRIPT_ARGUMENT: &str = "transcript-json";

/// What identifies one message of a transcript.
struct TranscriptEntry {
    entry_id: Option<String>,
    event_key: Option<String>,
    /// Hash over content and ids.
    hash: [u8; 16],
    /// Whether equal content is evidence of being the same message.
    is_discriminating: bool,
    /// Call id of a single tool result without id of the host: the same result again is skipped.
    call_id: Option<String>,
    /// Whether ingest skips it: a failed turn without content.
    is_empty: bool,
    /// What it says of the text that it may be a redacted copy of.
    redacted_copy: Option<RedactedCopy>,
    /// Whether it is from a user.
    is_from_user: bool,
    /// Estimated tokens; 0 when the host does not say.
    tokens: u64,
}

/// A transcript with what is asked of it.
struct ReconcileRequest {
    entries: Vec<TranscriptEntry>,
    /// How many of the first entries the caller saw stored.
    confirmed_count: usize,
    /// Name of the list whose calls may have stored some of them; `None`: there was none.
    list_name: Option<String>,
    /// Everything is new, unless its id or event key is stored.
    is_new: bool,
    /// Whether a likely replay is an error.
    refuse_replay: bool,
    backlog: BacklogOptions,
}

/// A range of entries, by 0-based inclusive index.
#[derive(Clone, Copy)]
struct MissingRange {
    from: u64,
    to: u64,
}

/// The identities of messages, as a JSON array. Reads nothing.
///
/// # Errors
///
/// `invalid-input` naming the message by its index.
pub(crate) fn identify(dialect: Dialect, messages: &[String]) -> Result<String> {
    let mut entries = JsonWriter::new_array();
    for (index, raw) in messages.iter().enumerate() {
        let message = message::parse(dialect, raw).map_err(|error| {
            Error::new(error.code, format_args!("messages[{index}]: {}", error.message))
        })?;
        let call_id = message
            .unique_call_id
            .filter(|_| message.entry_id.is_none() && message.event_key.is_none());
        let mut entry = JsonWriter::new_object();
        write_text(&mut entry, "entry_id", raw, message.entry_id);
        write_text(&mut entry, "event_key", raw, message.event_key);
        entry.add_text("hash", &hash::hex(&pack::message_hash(raw, &message)));
        entry.add_flag("discriminating", message.is_discriminating);
        write_text(&mut entry, "call_id", raw, call_id);
        entry.add_flag("empty", message.is_failed_and_empty);
        let redacted = RedactedCopy::from_message(raw, &message).map(|redacted| redacted.to_hex());
        entry.add_optional_text("redacted", redacted.as_deref());
        entry.add_number("tokens", message.tokens.into());
        entry.add_flag("user", message.role == message::Role::User);
        entries.push_object(entry);
    }
    Ok(entries.end_array())
}

fn write_text(object: &mut JsonWriter, key: &str, raw: &str, span: Option<ByteSpan>) {
    object.add_optional_text(key, span.map(|span| json::text(raw, span)).as_deref());
}

/// Reads a transcript; a field that is not known is passed over.
fn parse_transcript(transcript: &str) -> Result<ReconcileRequest> {
    let mut fields = JsonFields::parse_argument(TRANSCRIPT_ARGUMENT, transcript)?;
    let list = fields.take_list("entries");
    let confirmed = fields.take_optional_u64("confirmed").map_or(0, int::to_usize);
    let name = fields.take_optional_text("list");
    let append_mode = fields.take_optional_choice("append_mode", &["transcript", "new"]);
    let (is_new, refuse_replay) = (append_mode == Some(1), fields.take_flag("refuse_replay"));
    let bounds = BacklogOptions::read(&mut fields);
    fields.finish_known(TRANSCRIPT_ARGUMENT)?;
    if list.len() > ENTRIES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "`entries` must have at most {ENTRIES_MAX} items, got {}",
            list.len()
        )));
    }
    if confirmed > list.len() {
        let message = format_args!(
            "`confirmed` must be at most the number of entries, {}, got {confirmed}",
            list.len()
        );
        return Err(Error::invalid_input(message));
    }
    let mut entries = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let mut fields = JsonFields::new(transcript, json::list_members(transcript, value.span));
        let hash = hash::decode_hex(&fields.take_text("hash")).filter(|bytes| bytes.len() == 16);
        let hash = hash.ok_or_else(|| {
            Error::invalid_input(format_args!("`entries[{index}].hash` must be 32 hex digits"))
        })?;
        entries.push(TranscriptEntry {
            entry_id: fields.take_optional_text("entry_id"),
            event_key: fields.take_optional_text("event_key"),
            hash: hash::hash_prefix(&hash),
            is_discriminating: fields.take_flag("discriminating"),
            call_id: fields.take_optional_text("call_id"),
            is_empty: fields.take_flag("empty"),
            redacted_copy: fields
                .take_optional_text("redacted")
                .as_deref()
                .and_then(RedactedCopy::from_hex),
            is_from_user: fields.take_flag("user"),
            tokens: fields.take_optional_u64("tokens").unwrap_or(0),
        });
        fields.finish_known(TRANSCRIPT_ARGUMENT)?;
    }
    Ok(ReconcileRequest {
        entries,
        confirmed_count: confirmed,
        list_name: name,
        is_new,
        refuse_replay,
        backlog: bounds,
    })
}

/// Builds what alignment compares of an entry; `seq` is the stored message of its id, if known.
fn build_alignable_entry(entry: &TranscriptEntry, seq: Option<u64>) -> AlignableEntry {
    // An entry with an id of its own is another message, however alike the texts are.
    let has_id = entry.entry_id.is_some() || entry.event_key.is_some();
    AlignableEntry {
        hash: entry.hash,
        seq,
        is_discriminating: entry.is_discriminating,
        redacted_copy: entry.redacted_copy.filter(|_| !has_id),
    }
}

/// Says which entries of a transcript are not stored, as a JSON plan.
///
/// # Errors
///
/// `invalid-input`: no list of entries, or more confirmed than it has; `limit-exceeded`: too many;
/// `exists`: one without ids was changed among messages that are stored, or is a likely replay that
/// is to be refused; errors of the store.
pub(crate) fn reconcile(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    transcript_json: &str,
) -> Result<String> {
    let keys = ConversationKeys::new(conversation)?;
    let mut transcript = parse_transcript(transcript_json)?;
    let loaded = LoadedHead::load_head(reader, &keys, conversation)?;
    let head = &loaded.head;
    let consumed = idempotency::count_consumed(head, transcript.list_name.take())?
        .min(transcript.entries.len());
    transcript.confirmed_count = transcript.confirmed_count.max(consumed);
    // Behind what was stored of it before, the rest would look replayed.
    transcript.refuse_replay &= transcript.confirmed_count == 0;
    let entries = &*transcript.entries;
    let effective = &*select_effective(entries);
    let asked = PlanInput { config, transcript: &transcript, effective };
    let plan = |by, is_stored: &dyn Fn(usize) -> bool| build_plan(head, by, &asked, is_stored);
    // What ingest skips anyway is never missing.
    let is_skipped = |index: usize| effective.binary_search(&index).is_err();
    if let Some(from) = match_stored_prefix(effective, entries, head).filter(|_| !transcript.is_new)
    {
        return plan("prefix", &|index| index < from || is_skipped(index));
    }
    let known = read_known_seqs(reader, &keys, entries)?;
    if transcript.is_new {
        let is_known = |index: usize| known.get(index).is_some_and(Option::is_some);
        return plan("ids", &|index| is_known(index) || is_skipped(index));
    }
    let alignable = |index: &usize| {
        let seq = known.get(*index).copied().flatten();
        entries.get(*index).map(|entry| build_alignable_entry(entry, seq))
    };
    let alignable: Vec<AlignableEntry> = effective.iter().filter_map(alignable).collect();
    let history = MessageHistory { keys: &keys, head };
    if head.messages == 0 {
        return plan("none", &is_skipped);
    }
    if alignable.iter().any(|entry| entry.seq.is_some()) {
        let has_id = |number: usize| {
            let entry = effective.get(number).and_then(|index| entries.get(*index));
            entry.is_some_and(|entry| entry.entry_id.is_some() || entry.event_key.is_some())
        };
        let seqs = anchor_alignment::align_entries(reader, &history, &alignable, &has_id)?;
        let is_by_id = alignable.iter().zip(&seqs).all(|(entry, seq)| entry.seq == *seq);
        let is_missing = |(index, seq): (&usize, &Option<u64>)| seq.is_none().then_some(*index);
        let missing: Vec<usize> = effective.iter().zip(&seqs).filter_map(is_missing).collect();
        let is_stored = |index: usize| missing.binary_search(&index).is_err();
        return plan(if is_by_id { "ids" } else { "alignment" }, &is_stored);
    }
    let texts = match alignable.iter().any(|entry| entry.redacted_copy.is_some()) {
        true => identity::read_newest_texts(reader, &history, head.recent_hashes.len())?,
        false => Vec::new(),
    };
    // Place of an entry that is stored or not, in the transcript.
    let place = |number: usize| effective.get(number).copied().unwrap_or(entries.len());
    let seen = effective.partition_point(|index| *index < transcript.confirmed_count);
    let overlap =
        transcript_diff::diff_transcript(reader, &history, &texts, &alignable, seen, &place)?;
    let is_within = |index: usize| {
        let number = effective.binary_search(&index);
        let within = |run: &AlignedRun| {
            number.is_ok_and(|at| (run.start..run.start + run.length).contains(&at))
        };
        overlap.runs.iter().any(within)
    };
    plan(overlap.found_by, &|index| is_skipped(index) || is_within(index))
}

/// Kind, id, and where it counts only together with equal content: the content.
type EntryIdentity<'a> = (u8, &'a str, &'a [u8]);

/// Indexes of the entries that ingest would store if nothing was stored yet: without failed turns
/// and without what carries an id that one of those before it carries.
fn select_effective(entries: &[TranscriptEntry]) -> Vec<usize> {
    let mut ids: Vec<(EntryIdentity<'_>, usize)> = Vec::new();
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
    sort::sort(&mut ids);
    // Each id as a number, beside the entry that carries it.
    let mut numbers: Vec<(usize, usize)> = Vec::with_capacity(ids.len());
    for (number, equal) in ids.chunk_by(|(left, _), (right, _)| left == right).enumerate() {
        numbers.extend(equal.iter().map(|(_, index)| (*index, number)));
    }
    sort::sort(&mut numbers);
    let mut carried = alloc::vec![false; numbers.len()];
    let mut numbers = numbers.into_iter().peekable();
    let mut effective = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let mut own: [usize; 3] = [usize::MAX; 3];
        for slot in &mut own {
            let of_entry = numbers.next_if(|(at, _)| *at == index);
            *slot = of_entry.map_or(usize::MAX, |(_, number)| number);
        }
        // What is skipped is stored under none of its ids: another with one of them is not it.
        if !entry.is_empty && !own.iter().any(|number| carried.get(*number) == Some(&true)) {
            own.iter()
                .for_each(|number| carried.get_mut(*number).into_iter().for_each(|it| *it = true));
            effective.push(index);
        }
    }
    effective
}

/// Index behind the stored messages, when they are the beginning of the transcript.
fn match_stored_prefix(
    effective: &[usize],
    entries: &[TranscriptEntry],
    head: &ConversationHead,
) -> Option<usize> {
    let count = int::to_usize(head.messages);
    let frontier = compute_frontier(effective.get(..count)?, entries);
    let behind = || match count.checked_sub(1) {
        None => Some(0),
        Some(last) => effective.get(last).map(|index| index + 1),
    };
    (frontier == head.frontier).then(behind).flatten()
}

fn compute_frontier(indexes: &[usize], entries: &[TranscriptEntry]) -> [u8; 16] {
    let entries = indexes.iter().filter_map(|index| entries.get(*index));
    entries.fold([0; 16], |running, entry| advance_frontier(&running, &entry.hash))
}

/// Which entries are stored by id or event key.
fn read_known_seqs(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    entries: &[TranscriptEntry],
) -> Result<Vec<Option<u64>>> {
    let mut lookups: Vec<(String, usize, IdentityLookup)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let of_entry = entry.entry_id.as_deref().map(IdentityLookup::from_entry_id);
        let of_event = entry.event_key.as_deref().map(IdentityLookup::from_event_key);
        for lookup in of_entry.into_iter().chain(of_event) {
            lookups.push((keys.identity_key(&lookup.hash), index, lookup));
        }
    }
    let mut out = alloc::vec![None; entries.len()];
    sort::sort_by(&mut lookups, &mut |left, right| left.0.cmp(&right.0));
    let of_name = |left: &(String, usize, IdentityLookup),
                   right: &(String, usize, IdentityLookup)| left.0 == right.0;
    let mut names: Vec<String> = lookups.iter().map(|(name, ..)| name.clone()).collect();
    names.dedup();
    let of_names = lookups.chunk_by(of_name);
    for ((name, value), lookups) in names.iter().zip(reader.read_uncached(&names)?).zip(of_names) {
        let Some(value) = value else { continue };
        let record: StoredIdentity = codec::decode(name, &value)?;
        for (_, index, lookup) in lookups {
            if let Some(slot) = out.get_mut(*index)
                && record.matches_lookup(lookup)
            {
                *slot = Some(record.seq);
            }
        }
    }
    Ok(out)
}

/// What a plan is asked for.
struct PlanInput<'a> {
    config: &'a Config,
    transcript: &'a ReconcileRequest,
    effective: &'a [usize],
}

/// Refuses a likely replay: many missing entries that equal the newest stored messages.
fn ensure_no_replay(
    config: &Config,
    head: &ConversationHead,
    entries: &[&TranscriptEntry],
) -> Result<()> {
    let mut hashes = head.recent_hashes.clone();
    sort::sort(&mut hashes);
    let is_equal =
        |entry: &&TranscriptEntry| hashes.binary_search(&hash::hash_prefix(&entry.hash)).is_ok();
    let (users, others) = identity::replay_thresholds(config);
    for (of_user, least) in [(true, users), (false, others)] {
        let of_kind = entries.iter().copied().filter(|entry| entry.is_from_user == of_user);
        let count = of_kind.filter(is_equal).count();
        if int::to_u32(count) >= least {
            let message = format!("a likely replay: {count} messages equal stored ones");
            return Err(Error::new(ErrorCode::Exists, message));
        }
    }
    Ok(())
}

fn build_plan(
    head: &ConversationHead,
    by: &'static str,
    asked: &PlanInput<'_>,
    is_recognised: &dyn Fn(usize) -> bool,
) -> Result<String> {
    let PlanInput { config, transcript, effective } = *asked;
    let ReconcileRequest { ref entries, confirmed_count: confirmed, backlog: ref bounds, .. } =
        *transcript;
    let last = effective.iter().rev().find(|index| **index < confirmed);
    let by = if last.is_none_or(|index| is_recognised(*index)) { by } else { "confirmed" };
    let is_stored = |index: usize| index < confirmed || is_recognised(index);
    let mut indexes: Vec<usize> = (0..entries.len()).filter(|index| !is_stored(*index)).collect();
    if transcript.refuse_replay {
        let missing: Vec<&TranscriptEntry> =
            indexes.iter().filter_map(|at| entries.get(*at)).collect();
        ensure_no_replay(config, head, &missing)?;
    }
    let tokens = |index: usize| entries.get(index).map_or(0, |entry| entry.tokens);
    let first_stored = effective.iter().copied().find(|index| is_stored(*index));
    let overlap = OverlapSummary { stored: head.messages, found_by: by, first_stored };
    let bounded = bounds.limit_missing(config, &mut indexes, &tokens, &overlap);
    let mut missing: Vec<MissingRange> = Vec::new();
    for index in indexes {
        let at = int::to_u64(index);
        match missing.last_mut() {
            Some(range) if range.to + 1 == at => range.to = at,
            _ => missing.push(MissingRange { from: at, to: at }),
        }
    }
    let stored = head.messages;
    let mut warnings = JsonWriter::new_array();
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
    if let Some(warning) = bounds.build_warning(&bounded) {
        warnings.push_text(&warning);
    }
    // A checkpoint stands behind what is stored, and never behind what is only planned.
    let proven = missing.is_empty() && bounded.blocked_reason.is_none();
    let last = entries.last().filter(|_| proven);
    let hash = last.map(|entry| hash::hex(&entry.hash)).unwrap_or_default();
    let last = last.map(|entry| {
        let (entry_id, entries) = (entry.entry_id.as_deref(), int::to_u64(entries.len()));
        LastEntry { entry_id, hash: &hash, entries }
    });
    let mut plan = JsonWriter::new_object();
    plan.add_array("missing_ranges", write_ranges(&missing));
    plan.add_number("stored", stored);
    plan.add_text("by", by);
    // Of the conversation that this is true of; 0 when it does not exist.
    plan.add_number("revision", head.revision);
    bounds.write_plan(&mut plan, &bounded, last);
    plan.add_array("warnings", warnings);
    Ok(plan.end_object())
}

fn write_ranges(missing: &[MissingRange]) -> JsonWriter {
    let mut ranges = JsonWriter::new_array();
    for MissingRange { from, to } in missing {
        let mut range = JsonWriter::new_object();
        range.add_number("index_first", *from);
        range.add_number("index_last", *to);
        ranges.push_object(range);
    }
    ranges
}
