//! Ingest: messages in, each stored exactly once, byte for byte.
//!
//! [`append`] decides which messages of a batch are new ([`identity`]), builds packs of them and
//! makes one commit. [`stage`] takes large texts piece by piece; [`reconcile`] compares a whole
//! transcript with what is stored. A message is skipped only on evidence; doubt keeps it.

mod batch;
mod beside;
mod bounds;
mod doubts;
mod identity;
mod marks;
mod overlap;
mod reconcile;
mod redaction;
mod restore;
mod stage;

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;
use lcm_text::message::batch_limit;

use crate::{
    search::{NewMessage, Upkeep},
    storage::{
        codec,
        head::{Act, BatchMark, Head, Journal, Loaded},
        history,
        keys::Keys,
        session,
        store::Put,
        store_session::Reader,
    },
};
use batch::Candidate;
use identity::Identities;
pub(crate) use identity::{Known, Lookup, lookups};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
        json::Fields,
        limits,
        sort::Sorted,
    },
    config::Config,
    types::api::{AppendOptions, Dialect, IngestMode, Receipt, Timestamp},
};
use marks::{List, Mark};
pub(crate) use reconcile::{identify, reconcile};
use redaction::Redacted;
pub(crate) use restore::{Restored, restore};
pub(crate) use stage::{Upload, stage};

/// Identity puts of one commit; the rest of the bound is for packs, chunks and the head.
const IDENTITY_PUTS_MAX: usize = 200;

/// Name of the argument that holds further options.
const EXTRA: &str = "extra-json";

struct Extra {
    /// The call repeats one whose outcome is unknown.
    repeat: bool,
    /// The revision that the conversation must have, as `reconcile` saw it.
    revision: Option<u64>,
    /// A likely replay is an error.
    refuse_replay: bool,
    /// Key of the family that the conversation is of, or comes to.
    family: Option<String>,
    /// The list that this call is a part of.
    list: Option<List>,
}

/// Stores those messages of a batch that are not stored yet.
///
/// # Errors
///
/// `invalid-input`: a message that cannot be read, named by its index; `limit-exceeded`: too many
/// or too large, with what fits; `exists`: a likely replay that was to be refused, or another
/// family; `denied`: the conversation is archived; errors of the store.
pub(crate) fn append(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    dialect: Dialect,
    messages: &[String],
    options: &AppendOptions,
    now: Timestamp,
) -> Result<Receipt> {
    let keys = Keys::new(conversation)?;
    let extra = extra(options)?;
    let list = batch_limit::fitting(messages, options.partial)?;
    let least = |_| Some(config.large_payload_tokens_min);
    let shape = batch::Shape { dialect, keys: &keys, payload_tokens_min: &least };
    let mut candidates = batch::read(&shape, list, options.partial)?;
    let uploads: Vec<[u8; 32]> = candidates.iter().filter_map(Candidate::waiting).collect();
    let mut records: Vec<String> = uploads.iter().map(|sha256| keys.upload(sha256)).collect();
    records.push(keys.manifest());
    let (mut loaded, mut found) = Loaded::read(reader, &keys, conversation, &records)?;
    let family = extra.family.as_deref();
    if let Some(reason) = session::passed_over(reader, config, &keys, &loaded.head, family)? {
        let warnings = alloc::vec![session::warning(reason)];
        return Ok(receipt(&loaded.head, 0, int::to_u32(candidates.len()), None, warnings));
    }
    session::goes_on(reader, &loaded.head)?;
    let puts = joined(&mut loaded, &keys, family, now)?;
    let mut upkeep = Upkeep::new(&keys, found.pop().flatten().as_deref())?;
    let staged = batch::Staged { records: &records, found, partial: options.partial };
    batch::resolve(reader, &shape, &mut candidates, staged)?;
    let consumed = int::to_u32(candidates.len());
    let mark = Mark::of(&extra, &candidates, options.mode, now);
    let repeated = mark.repeated(&loaded.head, consumed, &extra, options.mode);
    let is_repeated = consumed > 0 && repeated == consumed;
    // Before the revision: a commit of unknown outcome that landed is what moved it on.
    if !(extra.repeat && is_repeated) {
        at_revision(&loaded.head, extra.revision)?;
    }
    if is_repeated {
        return known(reader, &keys, loaded, puts, now, (consumed, Vec::new()));
    }
    let (stored, large, node) = second_read(reader, &keys, &loaded, &candidates, &mut upkeep)?;
    let is_copy =
        |candidate: &Candidate<'_>| Redacted::of(&candidate.raw, &candidate.message).is_some();
    let texts = match options.mode {
        // The one third read of an append.
        IngestMode::Transcript if candidates.iter().any(is_copy) => {
            let history = history::History { keys: &keys, head: &loaded.head };
            identity::newest_texts(reader, &history, candidates.len())?
        }
        _ => Vec::new(),
    };
    let aligned = match options.mode {
        IngestMode::Transcript => aligned(&loaded.head, &candidates, &stored, &texts),
        IngestMode::New => int::to_usize(u64::from(repeated)),
    };
    let mut decided = decide(&loaded, &candidates, stored, aligned);
    // `reconcile` has compared the whole transcript: what repeats in it was said again.
    if extra.revision.is_none() || extra.refuse_replay {
        identity::warn_of_replay(config, &candidates, &mut decided);
    }
    if decided.new.is_empty() {
        return known(reader, &keys, loaded, puts, now, (consumed, decided.warnings));
    }
    refuse_replay(&extra, &decided)?;
    let mark = mark.after(consumed);
    let (candidates, times, mark) = (&candidates, &[][..], Some(mark));
    let write =
        Write { keys: &keys, dialect, candidates, times, decided, large, node, mark, upkeep, puts };
    write.commit(reader, loaded, now)
}

/// Refuses a conversation that is not at the revision that the caller relies on, if on any.
fn at_revision(head: &Head, relied_on: Option<u64>) -> Result<()> {
    match relied_on {
        Some(revision) if revision != head.revision => Err(Error::conflict(format_args!(
            "the conversation moved on since revision {revision}, to {}",
            head.revision
        ))),
        _ => Ok(()),
    }
}

/// What it takes to write that the conversation is of this family; nothing when it is already.
fn joined(
    loaded: &mut Loaded,
    keys: &Keys,
    family: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Put>> {
    let mut puts = Vec::new();
    if let Some(family) = family {
        let now = loaded.now(now)?;
        session::join(&mut loaded.head, keys, family, None, now, &mut puts)?;
    }
    Ok(puts)
}

/// The end of a call without a new message: one that exists may still have come to a family.
fn known(
    reader: &mut Reader<'_>,
    keys: &Keys,
    loaded: Loaded,
    joined: Vec<Put>,
    now: Timestamp,
    (consumed, warnings): (u32, Vec<String>),
) -> Result<Receipt> {
    if joined.is_empty() || loaded.bytes.is_none() {
        return Ok(receipt(&loaded.head, 0, consumed, None, warnings));
    }
    let now = loaded.now(now)?;
    let entry = Journal { time: now, act: Act::Join };
    let head = loaded.commit(reader, keys, now, &entry, joined, Vec::new())?;
    Ok(receipt(&head, 0, consumed, None, warnings))
}

/// The members of further options; none: there are none.
fn extra_fields(json: Option<&str>) -> Result<Fields<'_>> {
    Fields::of_argument(EXTRA, json.filter(|json| !json.is_empty()).unwrap_or("{}"))
}

fn extra(options: &AppendOptions) -> Result<Extra> {
    let mut fields = extra_fields(options.extra_json.as_deref())?;
    let extra = Extra {
        repeat: fields.flag("repeat"),
        revision: fields.number_or_none("revision"),
        refuse_replay: fields.flag("refuse_replay"),
        family: fields.text_or_none("family"),
        list: marks::list(fields.text_or_none("list"), fields.number_or_none("from"))?,
    };
    fields.end(EXTRA)?;
    if extra.list.is_some() && options.mode == IngestMode::Transcript {
        return Err(Error::invalid("list: a transcript is not cut into calls, but reconciled"));
    }
    Ok(extra)
}

/// Directory node that the commit may have to extend: its number and what it holds.
type Node = Option<(u64, crate::storage::pack::DirectoryNode)>;

/// Known identities by place, chunk lengths of stored large texts by name, and the node.
type SecondRead = (Identities, Sorted<[u8; 32], Vec<u32>>, Node);

/// The second and last read: identities, records of large texts, one directory node.
fn second_read(
    reader: &mut Reader<'_>,
    keys: &Keys,
    loaded: &Loaded,
    candidates: &[Candidate<'_>],
    upkeep: &mut Upkeep<'_>,
) -> Result<SecondRead> {
    let lookups: Vec<&Lookup> =
        candidates.iter().flat_map(|candidate| &candidate.lookups).collect();
    let mut wanted: Vec<String> =
        lookups.iter().map(|lookup| keys.identity(&lookup.hash)).collect();
    let large: Vec<[u8; 32]> = candidates.iter().flat_map(Candidate::unread_large).collect();
    wanted.extend(large.iter().map(|sha256| keys.upload(sha256)));
    let packs = &loaded.head.packs;
    let flushing = packs.len() > limits::RECENT_PACKS_MAX - batch::PACKS_MAX;
    let node = packs.first().filter(|_| flushing);
    let node = node.map(|pack| history::directory_node(pack.seq_first));
    wanted.extend(node.map(|number| keys.directory(number)));
    let own = wanted.len();
    let new: Vec<NewMessage<'_>> =
        candidates.iter().map(|candidate| candidate.searchable(0)).collect();
    let [blocks, fresh] = upkeep.wanted_by_append(&loaded.head, &new);
    wanted.extend(fresh);
    if wanted.is_empty() && blocks.is_empty() {
        return Ok((Sorted::default(), Sorted::default(), None));
    }
    let mut known = Sorted::of(lookups.iter().map(|lookup| (lookup.place(), None)).collect());
    let mut stored = Sorted::default();
    let mut directory = node.map(|number| (number, crate::storage::pack::DirectoryNode::default()));
    let mut kept = reader.kept(&blocks, &wanted)?;
    let mut values = kept.split_off(blocks.len().min(kept.len()));
    let fresh = values.split_off(own.min(values.len()));
    upkeep.take(reader, kept, fresh)?;
    for (index, (key, value)) in wanted.iter().zip(values).enumerate() {
        let Some(value) = value else { continue };
        if let Some(lookup) = lookups.get(index) {
            known.insert(lookup.place(), Some(codec::decode(key, &value)?));
        } else if let Some(sha256) = large.get(index - lookups.len()) {
            let upload: Upload = codec::decode(key, &value)?;
            if upload.stored {
                stored.insert(*sha256, upload.chunks);
            }
        } else if let Some((_, node)) = &mut directory {
            *node = codec::decode(key, &value)?;
        }
    }
    Ok((known, stored, directory))
}

/// Which messages of the batch are new, in order.
#[derive(Debug, Default)]
struct Decided {
    /// Index of the candidate, and whether its call id is an identity of it.
    new: Vec<(usize, bool)>,
    /// New messages whose equal is stored already, for the replay warning: index and seq to be.
    echoes: Vec<(usize, u64)>,
    warnings: Vec<String>,
    likely_replay: bool,
}

/// Decides of each candidate behind the first `aligned`, which are stored.
fn decide(
    loaded: &Loaded,
    candidates: &[Candidate<'_>],
    mut known: Identities,
    aligned: usize,
) -> Decided {
    let head = &loaded.head;
    let mut decided = Decided::default();
    for (index, candidate) in candidates.iter().enumerate().skip(aligned) {
        if candidate.message.failed_and_empty {
            continue;
        }
        let verdict = identity::verdict(&candidate.lookups, &candidate.message, &known);
        let identity::Verdict::New { call_key } = verdict else { continue };
        let seq = head.messages + int::to_u64(decided.new.len()) + 1;
        for lookup in &candidate.lookups {
            if call_key || !lookup.is_call() {
                let value = Known::new(seq, lookup, &candidate.message);
                known.insert(lookup.place(), Some(value));
            }
        }
        let hash: [u8; 12] = hash::prefix(&candidate.hash);
        if head.hashes.contains(&hash) {
            decided.echoes.push((index, seq));
        }
        decided.new.push((index, call_key));
    }
    decided
}

/// How many candidates at the beginning are the newest stored messages.
///
/// What ingest would skip anyway is no part of the comparison.
fn aligned(
    head: &Head,
    candidates: &[Candidate<'_>],
    known: &Identities,
    texts: &[String],
) -> usize {
    let mut entries = Vec::new();
    let mut indexes = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.message.failed_and_empty {
            continue;
        }
        let seq = match identity::verdict(&candidate.lookups, &candidate.message, known) {
            identity::Verdict::Stored { seq } => Some(seq),
            identity::Verdict::New { .. } => None,
        };
        let Candidate { raw, message, hash, .. } = candidate;
        let redacted = if texts.is_empty() { None } else { Redacted::of(raw, message) };
        let discriminating = message.discriminating;
        entries.push(identity::Alignable { hash: *hash, seq, discriminating, redacted });
        indexes.push(index);
    }
    let newest = identity::Newest { hashes: &head.hashes, texts, seq_last: head.messages };
    let count = identity::align(&newest, &entries);
    count.checked_sub(1).and_then(|last| indexes.get(last)).map_or(0, |index| index + 1)
}

fn refuse_replay(extra: &Extra, decided: &Decided) -> Result<()> {
    if extra.refuse_replay && decided.likely_replay {
        let message = decided.warnings.first().cloned().unwrap_or_default();
        return Err(Error::new(ErrorCode::Exists, message));
    }
    Ok(())
}

/// Everything that goes into the commit of an append.
struct Write<'a> {
    keys: &'a Keys,
    dialect: Dialect,
    candidates: &'a [Candidate<'a>],
    /// Of messages without a time of their own; none: the time of the call.
    times: &'a [Timestamp],
    decided: Decided,
    large: Sorted<[u8; 32], Vec<u32>>,
    node: Node,
    /// Names the call, so that its repetition is recognised; `None`: something else does that.
    mark: Option<BatchMark>,
    upkeep: Upkeep<'a>,
    /// What the commit writes beside.
    puts: Vec<Put>,
}

impl Write<'_> {
    fn commit(
        mut self,
        reader: &mut Reader<'_>,
        mut loaded: Loaded,
        now: Timestamp,
    ) -> Result<Receipt> {
        let now = loaded.now(now)?;
        let mut puts = self.puts;
        let head = &mut loaded.head;
        let seq_first = head.messages + 1;
        let tokens_before = head.raw_tokens;
        let mut builder = batch::Builder::new(self.keys, self.dialect, self.large);
        let mut new: Vec<NewMessage<'_>> = Vec::with_capacity(self.decided.new.len());
        for (index, call_key) in &self.decided.new {
            let Some(candidate) = self.candidates.get(*index) else { continue };
            let time = self.times.get(*index).copied().unwrap_or(now);
            builder.add(head, candidate, *call_key, time)?;
            new.push(candidate.searchable(time));
        }
        let (packs, written) = builder.finish()?;
        head.packs.extend(packs);
        puts.extend(written);
        self.upkeep.append(head, &new, &mut puts)?;
        puts.extend(batch::flush(self.keys, head, self.node)?);
        let count = head.messages + 1 - seq_first;
        head.context.append(seq_first, count, tokens_before, head.raw_tokens - tokens_before);
        if let Some(mark) = self.mark {
            // A list that goes on is the newest again.
            head.batches.retain(|batch| batch.hash != mark.hash);
            head.batches.push(mark);
        }
        let excess = head.batches.len().saturating_sub(limits::RECENT_BATCHES_MAX);
        head.batches.drain(..excess);
        let excess = head.hashes.len().saturating_sub(limits::RECENT_HASHES_MAX);
        head.hashes.drain(..excess);
        let entry =
            Journal { time: now, act: Act::Append { seq_first, count: int::tokens_u32(count) } };
        let head = loaded.commit(reader, self.keys, now, &entry, puts, Vec::new())?;
        doubts::warn(self.dialect, self.candidates, seq_first, &mut self.decided);
        let ingested = int::to_u32(self.decided.new.len());
        let skipped = int::to_u32(self.candidates.len()) - ingested;
        Ok(receipt(&head, ingested, skipped, Some(seq_first), self.decided.warnings))
    }
}

fn receipt(
    head: &Head,
    ingested: u32,
    skipped: u32,
    seq_first: Option<u64>,
    warnings: Vec<String>,
) -> Receipt {
    Receipt {
        revision: head.revision,
        ingested,
        skipped,
        seq_first,
        seq_last: seq_first.map(|_| head.messages),
        context_tokens: int::tokens_u32(head.context.tokens),
        warnings,
    }
}
