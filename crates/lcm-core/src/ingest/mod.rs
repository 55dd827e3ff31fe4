//! Ingest: messages in, each stored exactly once, byte for byte.
//!
//! [`append`] decides which messages of a batch are new ([`identity`]), builds packs of them and
//! makes one commit. [`stage`] takes large texts piece by piece; [`reconcile`] compares a whole
//! transcript with what is stored. A message is skipped only on evidence; doubt keeps it.

mod anchor_alignment;
mod backlog;
mod batch;
mod idempotency;
mod identity;
mod import;
mod reconcile;
mod redaction;
mod transcript_diff;
mod upload;
mod warnings;

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;
use lcm_text::message::batch_limit;

use crate::{
    search::{IndexMaintenance, NewMessage},
    storage::{
        codec,
        head::{BatchRecord, ConversationHead, JournalAction, JournalEntry, LoadedHead},
        history,
        keys::ConversationKeys,
        session,
        store::Put,
        store_session::StoreSession,
    },
};
use batch::AppendCandidate;
use idempotency::{IdempotencyKey, ListPart};
use identity::KnownIdentities;
pub(crate) use identity::{IdentityLookup, StoredIdentity, collect_lookups};
pub(crate) use import::{ImportedMessages, import_messages};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
        json::JsonFields,
        limits,
        sort::SortedMap,
    },
    config::Config,
    types::api::{AppendMode, AppendOptions, Dialect, Receipt, Timestamp},
};
pub(crate) use reconcile::{identify, reconcile};
use redaction::RedactedCopy;
pub(crate) use upload::{Upload, stage};

/// Identity puts of one commit; the rest of the bound is for packs, chunks and the head.
const IDENTITY_PUTS_MAX: usize = 200;

/// Name of the argument that holds further options.
const EXTRA_ARGUMENT: &str = "extra-json";

struct AppendExtra {
    /// The call repeats one whose outcome is unknown.
    is_repeat: bool,
    /// The revision that the conversation must have, as `reconcile` saw it.
    revision: Option<u64>,
    /// A likely replay is an error.
    refuse_replay: bool,
    /// Key of the family that the conversation is of, or comes to.
    family: Option<String>,
    /// The list that this call is a part of.
    list_part: Option<ListPart>,
}

/// Stores those messages of a batch that are not stored yet.
///
/// # Errors
///
/// `invalid-input`: a message that cannot be read, named by its index; `limit-exceeded`: too many
/// or too large, with what fits; `exists`: a likely replay that was to be refused, or another
/// family; `denied`: the conversation is archived; errors of the store.
pub(crate) fn append(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    dialect: Dialect,
    messages: &[String],
    options: &AppendOptions,
    now: Timestamp,
) -> Result<Receipt> {
    let keys = ConversationKeys::new(conversation)?;
    let extra = parse_extra(options)?;
    let list = batch_limit::take_fitting(messages, options.partial)?;
    let least = |_| Some(config.large_payload_tokens_min);
    let shape = batch::CandidateParser { dialect, keys: &keys, payload_tokens_min: &least };
    let mut candidates = batch::read_candidates(&shape, list, options.partial)?;
    let uploads = candidates.iter().filter_map(AppendCandidate::pending_upload);
    let mut records: Vec<String> = uploads.map(|sha256| keys.upload_key(&sha256)).collect();
    records.push(keys.manifest_key());
    let (mut loaded, mut found) =
        LoadedHead::read_with_keys(reader, &keys, conversation, &records)?;
    let family = extra.family.as_deref();
    if let Some(reason) = session::find_skip_reason(reader, config, &keys, &loaded.head, family)? {
        let (count, warning) = (candidates.len(), session::build_skip_warning(reason));
        return Ok(build_receipt(&loaded.head, 0, int::to_u32(count), None, Vec::from([warning])));
    }
    session::ensure_not_archived(reader, &loaded.head)?;
    let puts = collect_join_puts(&mut loaded, &keys, family, now)?;
    let mut upkeep = IndexMaintenance::new(&keys, found.pop().flatten().as_deref())?;
    let staged =
        batch::StagedUploads { records: &records, values: found, is_partial: options.partial };
    batch::resolve_uploads(reader, &shape, &mut candidates, staged)?;
    let consumed = int::to_u32(candidates.len());
    let mark = IdempotencyKey::from_call(&extra, &candidates, options.append_mode, now);
    let repeated = mark.count_repeated(&loaded.head, consumed, &extra, options.append_mode);
    let is_repeated = consumed > 0 && repeated == consumed;
    // Before the revision: a commit of unknown outcome that landed is what moved it on.
    let relied_on = extra.revision.filter(|_| !(extra.is_repeat && is_repeated));
    ensure_revision(&loaded.head, relied_on)?;
    if is_repeated {
        return finish_unchanged(reader, &keys, loaded, puts, now, (consumed, Vec::new()));
    }
    let (stored, large, node) =
        read_stored_state(reader, &keys, &loaded, &candidates, &mut upkeep)?;
    let aligned = match options.append_mode {
        AppendMode::Transcript => count_stored(reader, &keys, &loaded.head, &candidates, &stored)?,
        AppendMode::New => int::to_usize(u64::from(repeated)),
    };
    let mut decided = select_new(&loaded, &candidates, stored, aligned);
    // `reconcile` has compared the whole transcript: what repeats in it was said again.
    if extra.revision.is_none() || extra.refuse_replay {
        identity::add_replay_warnings(config, &candidates, &mut decided);
    }
    if decided.new_messages.is_empty() {
        return finish_unchanged(reader, &keys, loaded, puts, now, (consumed, decided.warnings));
    }
    ensure_no_replay(&extra, &decided)?;
    AppendCommit {
        keys: &keys,
        dialect,
        candidates: &candidates,
        times: &[],
        decision: decided,
        large_texts: large,
        node,
        batch_record: Some(mark.to_batch_record(consumed)),
        index_maintenance: upkeep,
        puts,
    }
    .commit(reader, loaded, now)
}

/// Returns how many of the first candidates of a transcript are stored.
///
/// The newest stored texts are read only when a candidate is a redacted copy: the one third read
/// of an append.
fn count_stored(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &KnownIdentities,
) -> Result<usize> {
    let is_copy = |candidate: &AppendCandidate<'_>| {
        RedactedCopy::from_message(&candidate.raw, &candidate.message).is_some()
    };
    let texts = match candidates.iter().any(is_copy) {
        true => {
            let history = history::MessageHistory { keys, head };
            identity::read_newest_texts(reader, &history, candidates.len())?
        }
        false => Vec::new(),
    };
    Ok(count_aligned(head, candidates, known, &texts))
}

/// Refuses a conversation that is not at the revision that the caller relies on, if on any.
fn ensure_revision(head: &ConversationHead, relied_on: Option<u64>) -> Result<()> {
    match relied_on {
        Some(revision) if revision != head.revision => Err(Error::revision_conflict(format_args!(
            "`revision` must be the current revision, {}, got {revision}; call `reconcile` again",
            head.revision
        ))),
        _ => Ok(()),
    }
}

/// What it takes to write that the conversation is of this family; nothing when it is already.
fn collect_join_puts(
    loaded: &mut LoadedHead,
    keys: &ConversationKeys,
    family: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Put>> {
    let mut puts = Vec::new();
    if let Some(family) = family {
        let now = loaded.effective_time(now)?;
        session::join_family(&mut loaded.head, keys, family, None, now, &mut puts)?;
    }
    Ok(puts)
}

/// The end of a call without a new message: one that exists may still have come to a family.
fn finish_unchanged(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    loaded: LoadedHead,
    joined: Vec<Put>,
    now: Timestamp,
    (consumed, warnings): (u32, Vec<String>),
) -> Result<Receipt> {
    if joined.is_empty() || loaded.bytes.is_none() {
        return Ok(build_receipt(&loaded.head, 0, consumed, None, warnings));
    }
    let now = loaded.effective_time(now)?;
    let entry = JournalEntry { time: now, act: JournalAction::Join };
    let head = loaded.commit(reader, keys, now, &entry, joined, Vec::new())?;
    Ok(build_receipt(&head, 0, consumed, None, warnings))
}

/// The members of further options; none: there are none.
fn parse_extra_fields(json: Option<&str>) -> Result<JsonFields<'_>> {
    JsonFields::parse_argument(EXTRA_ARGUMENT, json.filter(|json| !json.is_empty()).unwrap_or("{}"))
}

fn parse_extra(options: &AppendOptions) -> Result<AppendExtra> {
    let mut fields = parse_extra_fields(options.extra_json.as_deref())?;
    let extra = AppendExtra {
        is_repeat: fields.take_flag("repeat"),
        revision: fields.take_optional_u64("revision"),
        refuse_replay: fields.take_flag("refuse_replay"),
        family: fields.take_optional_text("family"),
        list_part: idempotency::parse_list_part(
            fields.take_optional_text("list"),
            fields.take_optional_u64("list_offset"),
        )?,
    };
    fields.finish(EXTRA_ARGUMENT)?;
    if extra.list_part.is_some() && options.append_mode == AppendMode::Transcript {
        return Err(Error::invalid_input(
            "`list` requires the append mode `new`; call `reconcile` for a long transcript",
        ));
    }
    Ok(extra)
}

/// Directory node that the commit may have to extend: its number and what it holds.
type NumberedDirectoryNode = Option<(u64, crate::storage::pack::DirectoryNode)>;

/// Known identities by place, chunk lengths of stored large texts by name, and the node.
type StoredState = (KnownIdentities, SortedMap<[u8; 32], Vec<u32>>, NumberedDirectoryNode);

/// The second and last read: identities, records of large texts, one directory node.
fn read_stored_state(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    loaded: &LoadedHead,
    candidates: &[AppendCandidate<'_>],
    upkeep: &mut IndexMaintenance<'_>,
) -> Result<StoredState> {
    let lookups: Vec<&IdentityLookup> =
        candidates.iter().flat_map(|candidate| &candidate.lookups).collect();
    let mut wanted: Vec<String> =
        lookups.iter().map(|lookup| keys.identity_key(&lookup.hash)).collect();
    let large: Vec<[u8; 32]> =
        candidates.iter().flat_map(AppendCandidate::unread_large_names).collect();
    wanted.extend(large.iter().map(|sha256| keys.upload_key(sha256)));
    let packs = &loaded.head.packs;
    let flushing = packs.len() > limits::RECENT_PACKS_MAX - batch::PACKS_MAX;
    let node = packs.first().filter(|_| flushing);
    let node = node.map(|pack| history::directory_node(pack.seq_first));
    wanted.extend(node.map(|number| keys.directory_key(number)));
    let own = wanted.len();
    let new: Vec<NewMessage<'_>> =
        candidates.iter().map(|candidate| candidate.to_searchable(0)).collect();
    let [blocks, fresh] = upkeep.list_append_keys(&loaded.head, &new);
    wanted.extend(fresh);
    if wanted.is_empty() && blocks.is_empty() {
        return Ok((SortedMap::default(), SortedMap::default(), None));
    }
    let mut known =
        SortedMap::from_entries(lookups.iter().map(|lookup| (lookup.key_prefix(), None)).collect());
    let mut stored = SortedMap::default();
    let mut directory = node.map(|number| (number, crate::storage::pack::DirectoryNode::default()));
    let mut kept = reader.read_content_addressed(&blocks, &wanted)?;
    let mut values = kept.split_off(blocks.len().min(kept.len()));
    let fresh = values.split_off(own.min(values.len()));
    upkeep.load_values(reader, kept, fresh)?;
    for (index, (key, value)) in wanted.iter().zip(values).enumerate() {
        let Some(value) = value else { continue };
        if let Some(lookup) = lookups.get(index) {
            known.insert(lookup.key_prefix(), Some(codec::decode(key, &value)?));
        } else if let Some(sha256) = large.get(index - lookups.len()) {
            let upload: Upload = codec::decode(key, &value)?;
            if upload.is_final {
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
struct AppendDecision {
    /// Index of the candidate, and whether its call id is an identity of it.
    new_messages: Vec<(usize, bool)>,
    /// New messages whose equal is stored already, for the replay warning: index and seq to be.
    duplicates: Vec<(usize, u64)>,
    warnings: Vec<String>,
    is_likely_replay: bool,
}

/// Decides of each candidate behind the first `aligned`, which are stored.
fn select_new(
    loaded: &LoadedHead,
    candidates: &[AppendCandidate<'_>],
    mut known: KnownIdentities,
    aligned: usize,
) -> AppendDecision {
    let head = &loaded.head;
    let mut decided = AppendDecision::default();
    for (index, candidate) in candidates.iter().enumerate().skip(aligned) {
        if candidate.message.is_failed_and_empty {
            continue;
        }
        let verdict = identity::match_identities(&candidate.lookups, &candidate.message, &known);
        let identity::IdentityMatch::New { call_key } = verdict else { continue };
        let seq = head.messages + int::to_u64(decided.new_messages.len()) + 1;
        for lookup in &candidate.lookups {
            if call_key || !lookup.is_call() {
                let value = StoredIdentity::new(seq, lookup, &candidate.message);
                known.insert(lookup.key_prefix(), Some(value));
            }
        }
        let hash: [u8; 12] = hash::hash_prefix(&candidate.hash);
        if head.recent_hashes.contains(&hash) {
            decided.duplicates.push((index, seq));
        }
        decided.new_messages.push((index, call_key));
    }
    decided
}

/// How many candidates at the beginning are the newest stored messages.
///
/// What ingest would skip anyway is no part of the comparison.
fn count_aligned(
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &KnownIdentities,
    texts: &[String],
) -> usize {
    let mut entries = Vec::new();
    let mut indexes = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.message.is_failed_and_empty {
            continue;
        }
        let seq = match identity::match_identities(&candidate.lookups, &candidate.message, known) {
            identity::IdentityMatch::Stored { seq } => Some(seq),
            identity::IdentityMatch::New { .. } => None,
        };
        let AppendCandidate { raw, message, hash, .. } = candidate;
        let redacted =
            if texts.is_empty() { None } else { RedactedCopy::from_message(raw, message) };
        let discriminating = message.is_discriminating;
        entries.push(identity::AlignableEntry {
            hash: *hash,
            seq,
            is_discriminating: discriminating,
            redacted_copy: redacted,
        });
        indexes.push(index);
    }
    let newest =
        identity::NewestMessages { hashes: &head.recent_hashes, texts, seq_last: head.messages };
    let count = identity::count_aligned_prefix(&newest, &entries);
    count.checked_sub(1).and_then(|last| indexes.get(last)).map_or(0, |index| index + 1)
}

fn ensure_no_replay(extra: &AppendExtra, decided: &AppendDecision) -> Result<()> {
    if extra.refuse_replay && decided.is_likely_replay {
        let message = decided.warnings.first().cloned().unwrap_or_default();
        return Err(Error::new(ErrorCode::Exists, message));
    }
    Ok(())
}

/// Everything that goes into the commit of an append.
struct AppendCommit<'a> {
    keys: &'a ConversationKeys,
    dialect: Dialect,
    candidates: &'a [AppendCandidate<'a>],
    /// Of messages without a time of their own; none: the time of the call.
    times: &'a [Timestamp],
    decision: AppendDecision,
    large_texts: SortedMap<[u8; 32], Vec<u32>>,
    node: NumberedDirectoryNode,
    /// Names the call, so that its repetition is recognised; `None`: something else does that.
    batch_record: Option<BatchRecord>,
    index_maintenance: IndexMaintenance<'a>,
    /// What the commit writes beside.
    puts: Vec<Put>,
}

impl AppendCommit<'_> {
    fn commit(
        mut self,
        reader: &mut StoreSession<'_>,
        mut loaded: LoadedHead,
        now: Timestamp,
    ) -> Result<Receipt> {
        let now = loaded.effective_time(now)?;
        let mut puts = self.puts;
        let head = &mut loaded.head;
        let seq_first = head.messages + 1;
        let tokens_before = head.raw_tokens;
        let mut builder = batch::PackBuilder::new(self.keys, self.dialect, self.large_texts);
        let mut new: Vec<NewMessage<'_>> = Vec::with_capacity(self.decision.new_messages.len());
        for (index, call_key) in &self.decision.new_messages {
            let Some(candidate) = self.candidates.get(*index) else { continue };
            let time = self.times.get(*index).copied().unwrap_or(now);
            builder.add_message(head, candidate, *call_key, time)?;
            new.push(candidate.to_searchable(time));
        }
        let (packs, written) = builder.finish()?;
        head.packs.extend(packs);
        puts.extend(written);
        self.index_maintenance.append_messages(head, &new, &mut puts)?;
        puts.extend(batch::flush_packs(self.keys, head, self.node)?);
        let count = head.messages + 1 - seq_first;
        head.context.append_messages(
            seq_first,
            count,
            tokens_before,
            head.raw_tokens - tokens_before,
        );
        if let Some(mark) = self.batch_record {
            // A list that goes on is the newest again.
            head.recent_batches.retain(|batch| batch.hash != mark.hash);
            head.recent_batches.push(mark);
        }
        let excess = head.recent_batches.len().saturating_sub(limits::RECENT_BATCHES_MAX);
        head.recent_batches.drain(..excess);
        let excess = head.recent_hashes.len().saturating_sub(limits::RECENT_HASHES_MAX);
        head.recent_hashes.drain(..excess);
        let entry = JournalEntry {
            time: now,
            act: JournalAction::Append { seq_first, count: int::saturate_tokens(count) },
        };
        let head = loaded.commit(reader, self.keys, now, &entry, puts, Vec::new())?;
        warnings::add_warnings(self.dialect, self.candidates, seq_first, &mut self.decision);
        let ingested = int::to_u32(self.decision.new_messages.len());
        let skipped = int::to_u32(self.candidates.len()) - ingested;
        Ok(build_receipt(&head, ingested, skipped, Some(seq_first), self.decision.warnings))
    }
}

fn build_receipt(
    head: &ConversationHead,
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
        context_tokens: int::saturate_tokens(head.context.tokens),
        warnings,
    }
}
