//! Summaries and the context of an import, verified against what is stored.
//!
//! In: lines in the order of an export. Out: at most one commit. A leaf must be made of the very
//! messages that stand here, a condensed summary of summaries that do.

use crate::storage::records::session::Archived;
use crate::storage::session::{self, Life};
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::task,
    search::Upkeep,
    storage::{
        codec,
        context::{Item, Run, SummaryItem},
        head::{Act, Head, Journal, Loaded},
        history::History,
        keys::Keys,
        store::Put,
        store_session::Reader,
        summary::{self, SourceRef, Sources, Summary},
    },
};
use lcm_text::{
    base::{
        derivation_version::{self, RULES},
        error::{Error, Result},
        int,
        sort::Sorted,
        tokens,
    },
    message::trust::Trust,
    types::api::Timestamp,
};

use super::{
    super::{
        check::{follows, measures, trust},
        portable::{ItemLine, SummaryLine},
    },
    derived_here,
};

/// Summaries of one host call, whose sizes are not known: the bounds of four values fill it.
const RECORDS_PER_READ: usize = 4;

/// Stores those of the summaries that are not stored; returns how many.
///
/// # Errors
///
/// `invalid-input`: one does not follow from its sources; `exists`: a source was condensed in
/// another way; errors of the store.
pub(super) fn store(
    reader: &mut Reader<'_>,
    keys: &Keys,
    mut loaded: Loaded,
    lines: &[SummaryLine],
    now: Timestamp,
) -> Result<u64> {
    let mut puts: Vec<Put> = Vec::new();
    let mut added = 0u32;
    let ids: Vec<[u8; 8]> = lines.iter().map(|line| line.id).collect();
    let known = records(reader, keys, &ids)?;
    let manifest = reader.fresh(&[keys.manifest()])?.pop().flatten();
    let mut upkeep = Upkeep::new(keys, manifest.as_deref())?;
    upkeep.read_for_summary(reader, 1)?;
    let mut made: Vec<(Summary, u32)> = Vec::new();
    for line in lines {
        let id = line.id;
        if known.contains_key(&id) {
            continue;
        }
        let record = record(reader, keys, &loaded.head, line).map_err(|error| {
            Error::new(error.code, format_args!("`{}`: {}", summary::name(id), error.message))
        })?;
        if let Sources::Summaries(list) = &record.sources {
            for source in list {
                let value = Some(codec::encode(&id)?);
                puts.push(Put { key: keys.derived(source.id), value });
            }
        }
        let value = codec::encode_small(&record)?;
        made.push((record, int::to_u32(value.len())));
        puts.push(Put { key: keys.summary(id), value: Some(value) });
        added += 1;
    }
    if added == 0 {
        return Ok(0);
    }
    let made: Vec<(&Summary, u32)> = made.iter().map(|(record, bytes)| (record, *bytes)).collect();
    upkeep.summaries(&made, &mut puts)?;
    loaded.head.summaries += u64::from(added);
    let now = loaded.now(now)?;
    let entry = Journal { time: now, act: Act::Import { summaries: added, before: None } };
    loaded.commit(reader, keys, now, &entry, puts, Vec::new())?;
    Ok(u64::from(added))
}

/// Stored summaries by id, with the sizes of their records.
fn records(
    reader: &mut Reader<'_>,
    keys: &Keys,
    ids: &[[u8; 8]],
) -> Result<Sorted<[u8; 8], (Summary, u32)>> {
    let mut out = Sorted::default();
    for slice in ids.chunks(RECORDS_PER_READ) {
        let names: Vec<String> = slice.iter().map(|id| keys.summary(*id)).collect();
        for ((id, key), value) in slice.iter().zip(&names).zip(reader.fresh(&names)?) {
            let Some(value) = value else { continue };
            out.insert(*id, (codec::decode(key, &value)?, int::to_u32(value.len())));
        }
    }
    Ok(out)
}

fn not_so(what: &str) -> Error {
    Error::invalid(format_args!("does not follow from {what} that are stored"))
}

/// The record of a line, verified against its sources.
fn record(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    line: &SummaryLine,
) -> Result<Summary> {
    let Sources::Summaries(list) = &line.record.sources else {
        return leaf(reader, keys, head, &line.record);
    };
    derived_here(reader, keys, line)?;
    let ids: Vec<[u8; 8]> = list.iter().map(|source| source.id).collect();
    let known = records(reader, keys, &ids)?;
    let mut list = Vec::new();
    let mut sources = Vec::new();
    for id in ids {
        let (source, bytes) = known.get(&id).ok_or_else(|| not_so("the summaries"))?;
        list.push(SourceRef { id, bytes: *bytes });
        sources.push(source);
    }
    let rules = derivation_version::of_all(sources.iter().map(|source| source.rules));
    let mut record = Summary { sources: Sources::Summaries(list), ..line.record.clone() };
    if derivation_version::of_all([rules, record.rules]) != RULES {
        (_, record.descendant_tokens, record.message_tokens) = measures(&sources);
        record.source_tokens = sources.iter().map(|source| u64::from(source.tokens)).sum();
        let times = |at: fn(&Summary) -> Timestamp| sources.iter().map(move |source| at(source));
        record.earliest_at = times(|source| source.earliest_at).min().unwrap_or(0);
        record.latest_at = times(|source| source.latest_at).max().unwrap_or(0);
        record.trust = Trust::least(sources.iter().map(|source| source.trust));
        record.tokens = tokens::estimate(&record.text);
        record.rules = rules;
    }
    if follows(&record, &sources) { Ok(record) } else { Err(not_so("the summaries")) }
}

fn leaf(reader: &mut Reader<'_>, keys: &Keys, head: &Head, record: &Summary) -> Result<Summary> {
    let (seq_first, seq_last) = (record.seq_first, record.seq_last);
    if seq_first == 0 || seq_first > seq_last || seq_last > head.messages {
        return Err(not_so("the messages"));
    }
    let history = History { keys, head };
    let frontier = history.frontier(reader, seq_last)?;
    let placed = history.messages(reader, seq_first, seq_last)?;
    let sum: u64 = placed.iter().map(|message| u64::from(message.stored.tokens)).sum();
    let times = placed.iter().map(|message| message.stored.time);
    let rules = derivation_version::of_all(placed.iter().map(|message| message.stored.rules));
    let trust = trust(reader, &history, &placed)?;
    let mut made = record.clone();
    if derivation_version::of_all([rules, record.rules]) != RULES {
        (made.message_tokens, made.source_tokens) = (sum, sum);
        made.earliest_at = times.clone().min().unwrap_or(0);
        made.latest_at = times.clone().max().unwrap_or(0);
        made.trust = trust;
        made.tokens = tokens::estimate(&made.text);
        made.rules = rules;
    }
    let same = made.sources == Sources::Messages { seq_first, seq_last, frontier }
        && made.task == task::messages_hash(seq_first, seq_last, &frontier)
        && (made.message_tokens, made.source_tokens) == (sum, sum)
        && (made.descendant_count, made.descendant_tokens) == (0, 0)
        && made.trust == trust
        && times.clone().min() == Some(made.earliest_at)
        && times.max() == Some(made.latest_at);
    if same { Ok(made) } else { Err(not_so("the messages")) }
}

/// Puts the context of the export in place of the stored one, unless that is the same or has gone
/// further: it is replaced only where every summary in it lies within one of the export's. Makes
/// the conversation when there is none. Returns whether a context was replaced.
///
/// # Errors
///
/// `invalid-input`: an item is not what is stored; errors of the store.
pub(super) fn context(
    reader: &mut Reader<'_>,
    keys: &Keys,
    mut loaded: Loaded,
    lines: &[ItemLine],
    life: &Life,
    now: Timestamp,
) -> Result<bool> {
    let old = loaded.head.context.load(reader, keys)?;
    let new = items(reader, keys, &loaded.head, lines)?;
    let created = loaded.bytes.is_none();
    let replaces = (old != new && is_further(&new, &old)) || created;
    let now = loaded.now(now)?;
    let before = (!created && replaces).then(|| loaded.head.context.clone());
    let mut puts = Vec::new();
    let lives = lives(&mut loaded.head, keys, life, now, &mut puts)?;
    if !replaces && !lives {
        return Ok(false);
    }
    if replaces {
        let revision = loaded.head.revision + 1;
        let (context, nodes) =
            loaded.head.context.replace(keys, revision, &old, 0..old.len(), &new)?;
        let head = &mut loaded.head;
        head.context = context;
        // What happened to it elsewhere is one change here.
        let less = head.raw_tokens.saturating_sub(head.context.tokens);
        head.ledger.saved_tokens = less.saturating_sub(head.ledger.withdrawn_tokens);
        puts.extend(nodes);
    }
    let entry = Journal { time: now, act: Act::Import { summaries: 0, before } };
    loaded.commit(reader, keys, now, &entry, puts, Vec::new())?;
    Ok(replaces && !created)
}

/// Takes over family and archive where the store says nothing of them. Returns whether it did.
fn lives(
    head: &mut Head,
    keys: &Keys,
    life: &Life,
    now: Timestamp,
    puts: &mut Vec<Put>,
) -> Result<bool> {
    let mut changed = false;
    if let (None, Some(family)) = (head.family, &life.family) {
        changed = session::join(head, keys, family, None, now, puts)?;
    }
    if let (None, Some((archived, successor))) = (head.archived, &life.archived) {
        let successor = successor.as_deref().map(Keys::new).transpose()?;
        let successor = successor.map(|keys| keys.id());
        head.archived = Some(Archived { successor, ..*archived });
        changed = true;
    }
    Ok(changed)
}

/// Whether every item of `old` but its runs lies within one of `new`. What was withdrawn comes back
/// in no summary but one that goes beyond it at both ends.
fn is_further(new: &[Item], old: &[Item]) -> bool {
    let not_raw = |item: &&Item| !matches!(item, Item::Run(_));
    let mut within = new.iter().filter(not_raw).peekable();
    old.iter().filter(not_raw).all(|item| {
        while within.next_if(|found| found.seq_last() < item.seq_first()).is_some() {}
        within.peek().is_some_and(|found| {
            let back = item.depth().is_none() && found.depth().is_some();
            let margin = u64::from(back);
            found.seq_first() + margin <= item.seq_first()
                && item.seq_last() + margin <= found.seq_last()
        })
    })
}

/// The items that the lines name, as this store has them.
fn items(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
    lines: &[ItemLine],
) -> Result<Vec<Item>> {
    let mut wanted: Sorted<String, Option<SummaryItem>> = Sorted::default();
    for line in lines {
        if let Some(id) = line.summary {
            wanted.insert(keys.summary(id), None);
        }
    }
    // All records are read in pages, because their sizes are not known.
    let (start, end) = keys.range("s");
    reader.scan(&start, &end, &mut |key, value| {
        if let Some(slot) = wanted.find_mut(key) {
            let record: Summary = codec::decode(key, value)?;
            let id = record.id();
            if record.rules > RULES {
                // Its element would be counted by other rules than its record says.
                let name = summary::name(id);
                return Err(Error::unsupported(format_args!(
                    "`{name}` was stored by a newer version, which has to import its context"
                )));
            }
            *slot = Some(SummaryItem {
                id,
                depth: record.depth,
                tokens: record.tokens,
                rendered_tokens: tokens::estimate(&record.xml(id)),
                bytes: int::to_u32(value.len()),
                seq_first: record.seq_first,
                seq_last: record.seq_last,
            });
        }
        Ok(())
    })?;
    let history = History { keys, head };
    let mut out = Vec::new();
    for line in lines {
        let (seq_first, seq_last) = (line.seq_first, line.seq_last);
        out.push(match line.summary {
            Some(id) => {
                let item = wanted.get(&keys.summary(id)).copied().flatten();
                let same =
                    |item: &SummaryItem| (item.seq_first, item.seq_last) == (seq_first, seq_last);
                let item = item.filter(same).ok_or_else(|| {
                    let name = summary::name(id);
                    Error::invalid(format_args!(
                        "the context names `{name}`, which is not its part"
                    ))
                })?;
                Item::Summary(item)
            }
            None if line.withdrawn => Item::Withdrawn { seq_first, seq_last },
            None => {
                let tokens_before = tokens_before(reader, &history, seq_first)?;
                let tokens = tokens_before_next(reader, &history, seq_last)? - tokens_before;
                Item::Run(Run { seq_first, seq_last, tokens_before, tokens })
            }
        });
    }
    Ok(out)
}

/// Tokens of all messages before one.
fn tokens_before(reader: &mut Reader<'_>, history: &History<'_>, seq: u64) -> Result<u64> {
    let found = history.messages(reader, seq, seq)?;
    found.first().map(|placed| placed.tokens_before).ok_or_else(|| not_so("the messages"))
}

/// Tokens of all messages up to and with one.
fn tokens_before_next(reader: &mut Reader<'_>, history: &History<'_>, seq: u64) -> Result<u64> {
    let found = history.messages(reader, seq, seq)?;
    let end = found.first().map(|one| one.tokens_before + u64::from(one.stored.tokens));
    end.ok_or_else(|| not_so("the messages"))
}
