//! Import of summaries and the context, verified against the store.
//!
//! In: lines of summaries, or all context items of a conversation. Out: at most one commit, and how
//! much it stored. The sources of a leaf must be stored messages, those of a condensed summary
//! stored summaries.

use crate::storage::records::summary_counts::SummaryCounts;
use alloc::vec::Vec;

use crate::{
    compaction::task,
    ingest,
    search::{IndexMaintenance, IndexManifest},
    storage::{
        call::Call,
        changes::Changes,
        codec::{self, SoundRecord as _},
        context::{ContextItem, MessageRun, SummaryItem},
        head::{ConversationHead, JournalAction, LoadedHead},
        history::MessageHistory,
        links::{self, LinkEnd},
        records::{remakes::RemakeRecord, session::ArchiveRecord, withdrawals::Withdrawals},
        session::{self as session_rules, SessionLifecycle},
        store::Guard,
        store_session::StoreSession,
        summary::{self, SourceRef, Summary, SummarySources},
        summary_items::build_summary_item,
        summary_records,
    },
};
use lcm_text::{
    base::{
        derivation_version::{self, DERIVATION_VERSION},
        error::{Error, Result},
        sort::SortedMap,
        time, tokens,
    },
    message::trust::Trust,
};

use super::{
    super::{
        check::{is_derived_from, least_trust, sum_measures},
        export_format::{ExportedItem, SummaryLine},
    },
    read_matching_derivations,
    writer::ContextBatch,
};

/// Stores those summaries of `lines` that the store lacks, in one commit; returns their number.
///
/// # Errors
///
/// `invalid-input`: a summary does not match its sources; `exists`: a source has another
/// derived summary; errors of the store.
pub(super) fn store_summaries(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    mut loaded: LoadedHead,
    lines: &[SummaryLine],
) -> Result<u64> {
    let keys = call.keys;
    let mut changes = Changes::default();
    let mut added = 0u32;
    let ids: Vec<[u8; 8]> = lines.iter().map(|line| line.id).collect();
    let known = summary_records::read_sized_summaries(session, keys, &ids)?;
    let manifest = session.read_record(&IndexManifest::key(keys))?;
    let mut index = IndexMaintenance::from_manifest(keys, manifest);
    index.prepare_summary(session, 1)?;
    let mut records: Vec<(Summary, u32)> = Vec::new();
    let mut remakes = RemakeRecord::read(session, keys, &loaded.head)?;
    let is_new = |line: &&SummaryLine| !known.contains_key(&line.id);
    for line in lines.iter().filter(is_new) {
        if let Some(old) = line.record.replaces {
            remakes.add_remake(old, line.id);
        }
        if let Some(exit) = line.place.exit {
            remakes.add_exits(exit, &[line.id]);
        }
    }
    let mut derived: SortedMap<[u8; 8], [u8; 8]> = SortedMap::default();
    for line in lines.iter().filter(is_new) {
        let id = line.id;
        let verified = verify_record(session, call, &loaded.head, line);
        let (record, known_derived) = verified.map_err(|error| {
            Error::new(
                error.code,
                format_args!("`{}`: {}", summary::format_summary_id(id), error.message),
            )
        })?;
        // The record `derived` of a source names the newest remake. A superseded summary does not
        // replace the summary that the record names.
        let is_older = |newest| line.place.is_superseded || remakes.is_in_chain(id, newest);
        for (source, stored) in record.source_refs().iter().zip(known_derived) {
            if !derived.get(&source.id).copied().or(stored).is_some_and(is_older) {
                derived.insert(source.id, id);
            }
        }
        let bytes = changes.write_record(&Summary::key(keys, id), &record)?;
        records.push((record, bytes));
        added += 1;
    }
    if added == 0 {
        return Ok(0);
    }
    for (source, id) in derived.as_entries() {
        changes.write_record(&Summary::derived_key(keys, *source), id)?;
    }
    if remakes.count_entries() != loaded.head.remakes {
        loaded.head.remakes = remakes.count_entries();
        changes.write_record(&RemakeRecord::key(keys), &remakes)?;
    }
    let records: Vec<(&Summary, u32)> = records.iter().map(|(it, bytes)| (it, *bytes)).collect();
    index.append_summaries(&records, changes.puts_mut())?;
    loaded.head.summaries += u64::from(added);
    let counts_key = SummaryCounts::key(keys);
    let mut counts = session.read_record(&counts_key)?.unwrap_or_default();
    for (record, _) in &records {
        counts.count_summary(record.depth, record.tokens);
    }
    changes.write_record(&counts_key, &counts)?;
    let act = JournalAction::Import { summaries: added, before: None };
    loaded.commit_changes(session, call, act, changes)?;
    Ok(u64::from(added))
}

fn mismatch_error(sources: &str) -> Error {
    Error::invalid_input(format_args!(
        "must match the stored {sources} that the summary names; export again from an undamaged \
         store"
    ))
}

fn missing_source_error(id: [u8; 8]) -> Error {
    Error::invalid_input(format_args!(
        "must name stored sources; `{}` is not stored",
        summary::format_summary_id(id)
    ))
}

fn missing_message_error(seq: u64) -> Error {
    Error::invalid_input(format_args!("must name stored messages; message {seq} is not stored"))
}

/// Verifies the record of a line against its stored sources and returns the record to store, with
/// the stored summary that was derived from each source. If the record or a source has another
/// derivation version, its tokens, sums, times and trust are derived anew first.
fn verify_record(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    line: &SummaryLine,
) -> Result<(Summary, Vec<Option<[u8; 8]>>)> {
    let SummarySources::Summaries(list) = &line.record.sources else {
        let history = MessageHistory::new(call, head);
        return Ok((verify_leaf(session, &history, &line.record)?, Vec::new()));
    };
    let derived = read_matching_derivations(session, call, head, line)?;
    let ids: Vec<[u8; 8]> = list.iter().map(|source| source.id).collect();
    let known = summary_records::read_sized_summaries(session, call.keys, &ids)?;
    let mut list = Vec::new();
    let mut sources = Vec::new();
    for id in ids {
        let (source, bytes) = known.get(&id).ok_or_else(|| missing_source_error(id))?;
        list.push(SourceRef { id, bytes: *bytes });
        sources.push(source);
    }
    let version =
        derivation_version::common_version(sources.iter().map(|source| source.derivation_version));
    let mut record = Summary { sources: SummarySources::Summaries(list), ..line.record.clone() };
    let versions = [version, record.derivation_version];
    if derivation_version::common_version(versions) != DERIVATION_VERSION {
        (_, record.descendant_tokens, record.message_tokens) = sum_measures(&sources);
        record.source_tokens = sources.iter().map(|source| u64::from(source.tokens)).sum();
        let times = sources.iter().flat_map(|source| [source.earliest_at, source.latest_at]);
        (record.earliest_at, record.latest_at) = time::find_range(times);
        record.trust = Trust::least_of(sources.iter().map(|source| source.trust));
        record.tokens = tokens::estimate(&record.text);
        record.derivation_version = version;
    }
    match is_derived_from(&record, &sources) {
        true => Ok((record, derived)),
        false => Err(mismatch_error("summaries")),
    }
}

fn verify_leaf(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    record: &Summary,
) -> Result<Summary> {
    let SummarySources::Messages { span, .. } = &record.sources else {
        return Err(mismatch_error("messages"));
    };
    if !span.is_sound() || span.seq_last > history.head.messages {
        return Err(mismatch_error("messages"));
    }
    let frontier = history.frontier_at(session, span.seq_last)?;
    let placed = history.read_span(session, span)?;
    let tokens: u64 = placed.iter().map(|message| u64::from(message.stored.tokens)).sum();
    let times = time::find_range(placed.iter().map(|message| message.stored.time));
    let version = derivation_version::common_version(
        placed.iter().map(|message| message.stored.derivation_version),
    );
    let trust = least_trust(session, history, &placed)?;
    let mut leaf = record.clone();
    let versions = [version, record.derivation_version];
    if derivation_version::common_version(versions) != DERIVATION_VERSION {
        (leaf.message_tokens, leaf.source_tokens) = (tokens, tokens);
        (leaf.earliest_at, leaf.latest_at) = times;
        leaf.trust = trust;
        leaf.tokens = tokens::estimate(&leaf.text);
        leaf.derivation_version = version;
    }
    let is_sound = leaf.sources == SummarySources::Messages { span: span.clone(), frontier }
        && (leaf.seq_first, leaf.seq_last) == (span.seq_first, span.seq_last)
        && leaf.task == task::hash_messages(span, &frontier)
        && (leaf.message_tokens, leaf.source_tokens) == (tokens, tokens)
        && (leaf.descendant_count, leaf.descendant_tokens) == (0, 0)
        && leaf.trust == trust
        && (leaf.earliest_at, leaf.latest_at) == times;
    if is_sound { Ok(leaf) } else { Err(mismatch_error("messages")) }
}

/// Stores context, family and archive of the export; returns whether a stored context was replaced.
///
/// A stored context is replaced only if it differs and [`is_more_compacted`] holds for the context
/// of the export. The withdrawn ranges and branches of the export then take the place of the stored
/// ones; also if the contexts are equal and the store has no ranges and branches. The family and
/// the archive record are each stored only if the conversation has none. A conversation that does
/// not exist is created.
///
/// # Errors
///
/// `invalid-input`: an item does not match the store; errors of the store.
pub(super) fn store_context(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    mut loaded: LoadedHead,
    batch: &ContextBatch,
) -> Result<bool> {
    let ContextBatch { items, withdrawals, life } = batch;
    let mut withdrawals = withdrawals.clone();
    let keys = call.keys;
    let old = loaded.head.context.load_items(session, keys)?;
    let new = resolve_items(session, &MessageHistory::new(call, &loaded.head), items)?;
    ensure_withdrawn(&new, &withdrawals)?;
    let created = loaded.bytes.is_none();
    let replaces = (old != new && is_more_compacted(&new, &old)) || created;
    let before = (!created && replaces).then(|| loaded.head.context.clone());
    let mut changes = Changes::default();
    let adopts = adopt_family_and_archive(session, call, &mut loaded.head, life, &mut changes)?;
    let key = Withdrawals::key(keys);
    let stored = session.read_record(&key)?.unwrap_or_default();
    let takes = !stored.has_same_ranges(&withdrawals)
        && (replaces || (old == new && stored == Withdrawals::default()));
    if !replaces && !adopts && !takes {
        return Ok(false);
    }
    if replaces {
        let history = MessageHistory::new(call, &loaded.head);
        let standing = if takes { &withdrawals } else { &stored };
        let withdrawn_tokens = sum_withdrawn(session, &history, (&new, standing))?;
        let revision = loaded.head.revision + 1;
        let (context, nodes) =
            loaded.head.context.replace_items(keys, revision, &old, 0..old.len(), &new)?;
        let head = &mut loaded.head;
        head.context = context;
        // The ledger counts the compaction of the exporting store as if this commit had made it.
        let difference = head.raw_tokens.saturating_sub(head.context.tokens);
        // The context may have more tokens than the messages: the leaf of a bridge has more tokens
        // than the bridge.
        head.ledger.withdrawn_tokens = withdrawn_tokens.min(difference);
        head.ledger.saved_tokens = difference - head.ledger.withdrawn_tokens;
        changes.add_puts(nodes);
    }
    if takes {
        let head = &mut loaded.head;
        let history = MessageHistory { keys, head };
        let forms = ingest::read_forms(session, &history, &withdrawals)?;
        withdrawals.add_forms(&forms);
        head.newest_user =
            ingest::find_newest_user(session, &history, &withdrawals, head.messages)?;
        changes.write_record(&key, &withdrawals)?;
    }
    let act = JournalAction::Import { summaries: 0, before };
    loaded.commit_changes(session, call, act, changes)?;
    Ok(replaces && !created)
}

/// Sums the tokens of the withdrawn items, and of the withdrawn messages between the messages of
/// summaries.
fn sum_withdrawn(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    (items, withdrawals): (&[ContextItem], &Withdrawals),
) -> Result<u64> {
    let mut sum = 0;
    for item in items {
        let (first, last) = (item.seq_first(), item.seq_last());
        let ranges = match item {
            ContextItem::Run(_) => Vec::new(),
            ContextItem::Summary(_) => withdrawals.list_withdrawn_ranges(first, last),
            ContextItem::Withdrawn { .. } => Vec::from([(first, last)]),
        };
        for (first, last) in ranges {
            let before = tokens_before(session, history, first)?;
            sum += tokens_through(session, history, last)?.saturating_sub(before);
        }
    }
    Ok(sum)
}

/// Ensures that the record is sound, and that no message of a run was withdrawn.
fn ensure_withdrawn(items: &[ContextItem], withdrawals: &Withdrawals) -> Result<()> {
    if !withdrawals.is_sound() {
        return Err(Error::invalid_input(
            "the withdrawn ranges and the branches of the export must be in ascending order",
        ));
    }
    for item in items.iter().filter(|item| matches!(item, ContextItem::Run(_))) {
        let (first, last) = (item.seq_first(), item.seq_last());
        if withdrawals.list_line_ranges(first, last) != [(first, last)] {
            return Err(Error::invalid_input(format_args!(
                "a run of the context must have no withdrawn messages, got the run of messages \
                 {first} to {last}"
            )));
        }
    }
    Ok(())
}

/// Takes over the family and the archive record if the stored head has none; returns whether the
/// head changed.
fn adopt_family_and_archive(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &mut ConversationHead,
    life: &SessionLifecycle,
    changes: &mut Changes,
) -> Result<bool> {
    let mut changed = false;
    if let (None, Some(family)) = (head.family, &life.family) {
        changed = session_rules::join_family(call, head, family, None, changes)?;
    }
    if let (None, Some((archived, successor))) = (head.archived, &life.archived) {
        let successor = match successor {
            Some(name) => adopt_successor(session, call, name, changes)?,
            None => None,
        };
        head.archived = Some(ArchiveRecord { successor, ..*archived });
        changed = true;
    }
    Ok(changed)
}

/// Links the conversation to its successor, which need not exist yet, and returns the hash of the
/// successor; `None`: the successor is being deleted.
fn adopt_successor(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    name: &str,
    changes: &mut Changes,
) -> Result<Option<[u8; 16]>> {
    if name == call.conversation {
        return Ok(Some(call.keys.conversation_hash()));
    }
    call.with_conversation(name, |next| {
        let key = next.keys.head_key();
        let value = session.read_one_uncached(&key)?;
        if value.as_deref().is_some_and(codec::is_tombstone) {
            return Ok(None);
        }
        changes.add_guard(Guard { key, value });
        links::add_link(changes, &LinkEnd::from_call(call), &LinkEnd::from_call(next))?;
        Ok(Some(next.keys.conversation_hash()))
    })
}

/// Returns whether every summary and every withdrawn item of `old` lies within a summary or
/// withdrawn item of `new`.
///
/// A summary of `new` may cover withdrawn messages of `old` only together with messages before and
/// after them.
fn is_more_compacted(new: &[ContextItem], old: &[ContextItem]) -> bool {
    let is_not_raw = |item: &&ContextItem| !matches!(item, ContextItem::Run(_));
    let mut candidates = new.iter().filter(is_not_raw).peekable();
    old.iter().filter(is_not_raw).all(|item| {
        while candidates.next_if(|found| found.seq_last() < item.seq_first()).is_some() {}
        candidates.peek().is_some_and(|found| {
            let restores = item.depth().is_none() && found.depth().is_some();
            let margin = u64::from(restores);
            found.seq_first() + margin <= item.seq_first()
                && item.seq_last() + margin <= found.seq_last()
        })
    })
}

/// Builds the context items of the lines from the stored messages and summaries.
fn resolve_items(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    lines: &[ExportedItem],
) -> Result<Vec<ContextItem>> {
    // The store may have a remake of a provisional summary of the export.
    let remakes = RemakeRecord::read(session, history.keys, history.head)?;
    let newest = |line: &ExportedItem| line.summary.map(|id| remakes.find_newest(id));
    let ids = lines.iter().filter_map(newest);
    let stored = summary_records::scan_sized_summaries(session, history.keys, ids)?;
    let mut summaries: SortedMap<[u8; 8], SummaryItem> = SortedMap::default();
    for (id, (record, bytes)) in stored.as_entries() {
        if record.derivation_version > DERIVATION_VERSION {
            // This version does not know how a newer version renders the summary.
            let name = summary::format_summary_id(*id);
            return Err(Error::not_supported(format_args!(
                "a newer version stored `{name}`; only that version can import its context"
            )));
        }
        let source = SourceRef { id: *id, bytes: *bytes };
        summaries.insert(*id, build_summary_item(source, record));
    }
    let mut out = Vec::new();
    for line in lines {
        let (seq_first, seq_last) = (line.seq_first, line.seq_last);
        out.push(match newest(line) {
            Some(id) => {
                let item = summaries.get(&id).copied();
                let covers =
                    |item: &SummaryItem| (item.seq_first, item.seq_last) == (seq_first, seq_last);
                let item = item.filter(covers).ok_or_else(|| {
                    let name = summary::format_summary_id(id);
                    Error::invalid_input(format_args!(
                        "the context item of messages {seq_first} to {seq_last} must be a summary \
                         of these messages, got `{name}`"
                    ))
                })?;
                ContextItem::Summary(item)
            }
            None if line.withdrawn => ContextItem::Withdrawn { seq_first, seq_last },
            None => {
                let tokens_before = tokens_before(session, history, seq_first)?;
                let tokens = tokens_through(session, history, seq_last)? - tokens_before;
                ContextItem::Run(MessageRun { seq_first, seq_last, tokens_before, tokens })
            }
        });
    }
    Ok(out)
}

/// Returns the tokens of all messages before `seq`.
fn tokens_before(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
) -> Result<u64> {
    let found = history.read_messages(session, seq, seq)?;
    found.first().map(|placed| placed.tokens_before).ok_or_else(|| missing_message_error(seq))
}

/// Returns the tokens of all messages up to and including `seq`.
fn tokens_through(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
) -> Result<u64> {
    let found = history.read_messages(session, seq, seq)?;
    let end = found.first().map(|one| one.tokens_before + u64::from(one.stored.tokens));
    end.ok_or_else(|| missing_message_error(seq))
}
