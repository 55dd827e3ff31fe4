//! Append: stores the new messages of a batch in one commit.
//!
//! In: raw messages and options. Out: a receipt with counts, seqs and warnings. The engine calls
//! [`append`] for the export `ingest.append`.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    message::batch_limit,
    types::{
        api::{AppendMode, AppendOptions, ReadDialect, Receipt},
        event::SkipReason,
    },
};

use crate::{
    search::{IndexMaintenance, IndexManifest},
    storage::{
        call::Call,
        head::{ConversationHead, LoadedHead},
        history::MessageHistory,
        record_key::{RecordReads, RecordSlot},
        records::{upload::Upload, withdrawals::Withdrawals},
        session as session_rules,
        store_session::StoreSession,
    },
};

use super::{
    append_options::{AppendExtra, parse_append_extra},
    batch::{self, AppendCandidate, CandidateParser, StagedUploads},
    commit::{AppendCommit, ReceiptCounts, UnchangedAppend, join_family},
    idempotency::IdempotencyKey,
    list_batch::{AppendPlan, ListBatch, match_batch},
    list_decision::SeenMessages,
    new_messages::select_new,
    rendered::strip_rendered,
    replay::add_replay_warnings,
    stored_state::StoredState,
    system_messages::{self, FillingMessages},
};

/// Stores the new messages of a batch; `options.append_mode` decides which messages are new.
///
/// # Errors
///
/// `invalid-input`: a wrong option, or a message that cannot be read, named by its index;
/// `limit-exceeded`: too many or too large messages, with the number that fits, or a record that
/// would be too large; `exists`: a refused likely replay, or another family; `denied`: the
/// conversation is archived or is being deleted; `conflict`: the conversation is not at `revision`,
/// or another call committed first; `not-found`: nothing was uploaded under a name; errors of the
/// store.
pub(crate) fn append(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    dialect: ReadDialect,
    messages: &[String],
    options: &AppendOptions,
) -> Result<Receipt> {
    let extra = parse_append_extra(options)?;
    let list = batch_limit::take_fitting(messages, options.partial)?;
    let payload_tokens_min = |_| Some(call.config.large_payload_tokens_min);
    let parser = CandidateParser { call, dialect, payload_tokens_min: &payload_tokens_min };
    let mut candidates = batch::read_candidates(&parser, list, options.partial)?;
    let given = system_messages::read_option(extra.system.as_ref(), call)?;
    let mut reads = RecordReads::default();
    let slots = add_uploads(&mut reads, call, &candidates);
    let manifest = reads.add_record(IndexManifest::key(call.keys));
    let withdrawals = reads.add_record(Withdrawals::key(call.keys));
    let (mut loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
    if let Some(receipt) = skip_session(session, call, &loaded, &extra, candidates.len())? {
        return Ok(receipt);
    }
    session_rules::ensure_not_archived(session, &loaded.head)?;
    let changes = join_family(&mut loaded, call, extra.family.as_deref())?;
    let mut index = IndexMaintenance::from_manifest(call.keys, values.decode(&manifest)?);
    let staged = StagedUploads { slots: &slots, values: &values, is_partial: options.partial };
    batch::resolve_uploads(session, &parser, &mut candidates, staged)?;
    if options.append_mode == AppendMode::Transcript {
        let entries = candidates.iter_mut().map(|it| &mut it.entry);
        strip_rendered(session, call, &loaded.head, entries)?;
    }
    let consumed = int::to_u32(candidates.len());
    let key = IdempotencyKey::from_call(&extra, &candidates, options.append_mode, call.now);
    let repeated = key.count_repeated(&loaded.head, consumed, &extra);
    // The first attempt of a repeated call moved the revision, so the check is left out.
    if consumed > 0 && repeated == consumed {
        let seen = SeenMessages::from_caller(extra.seq_seen, loaded.head.messages);
        return UnchangedAppend::new(&candidates, repeated, seen, Vec::new())
            .finish(session, call, loaded, changes);
    }
    let withdrawals: Withdrawals = values.decode(&withdrawals)?.unwrap_or_default();
    let first = find_first_new(&loaded.head, &withdrawals, &extra, &candidates)?.max(repeated);
    let mut stored = StoredState::read(session, call, &loaded.head, &candidates, &mut index)?;
    let (history, mode) = (MessageHistory::new(call, &loaded.head), options.append_mode);
    let ids = match_batch(session, &history, &withdrawals, &stored.identities, &mut candidates)?;
    let batch = ListBatch { candidates: &candidates, ids: &ids, mode };
    let plan = batch.plan_append(session, call, &loaded.head, withdrawals, (&extra, first))?;
    let AppendPlan { places, system, line, notices } = plan;
    let filling = FillingMessages { given: &given, candidates: &candidates, indexes: &system };
    let system = filling.prepare_update(session, call, &loaded.head, messages.len())?;
    let mut decision = select_new(&loaded.head, &candidates, &mut stored.identities, &places);
    (decision.warnings, decision.repeated) = (notices, repeated);
    add_replay_warnings(call.config, &extra, &candidates, &mut decision)?;
    if decision.new_messages.is_empty() && line.change.is_none() && system.is_none() {
        return UnchangedAppend::new(&candidates, repeated, line.seen, decision.warnings)
            .finish(session, call, loaded, changes);
    }
    AppendCommit {
        dialect,
        candidates: &candidates,
        times: &[],
        decision,
        stored,
        batch_record: Some(key.to_batch_record(consumed)),
        line,
        system,
        index_maintenance: index,
        changes,
    }
    .commit(session, call, loaded)
}

/// Adds the records of pending uploads to `reads` and returns their slots, one for each candidate
/// with a pending upload, in order.
pub(super) fn add_uploads(
    reads: &mut RecordReads,
    call: Call<'_>,
    candidates: &[AppendCandidate<'_>],
) -> Vec<RecordSlot<Upload>> {
    let uploads = candidates.iter().filter_map(AppendCandidate::pending_upload);
    uploads.map(|sha256| reads.add_record(Upload::key(call.keys, &sha256))).collect()
}

/// Returns the receipt of a call that stores nothing, because the configuration skips this
/// conversation; `None`: the configuration does not skip the conversation.
fn skip_session(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    loaded: &LoadedHead,
    extra: &AppendExtra,
    count: usize,
) -> Result<Option<Receipt>> {
    let family = extra.family.as_deref();
    let reason = session_rules::find_skip_reason(session, call, &loaded.head, family)?;
    Ok(reason.map(|reason| {
        let warnings = Vec::from([session_rules::build_skip_warning(reason)]);
        let skipped = int::to_u32(count);
        let mut counts = ReceiptCounts { skipped, ..ReceiptCounts::default() };
        counts.events.push_skipped(call.conversation, skipped.into(), SkipReason::Excluded);
        counts.build_receipt(&loaded.head, SeenMessages::default(), warnings)
    }))
}

/// Returns the index of the first message that may be new: the messages before it are the newest of
/// the line, as the caller says with `proven`.
///
/// # Errors
///
/// `conflict`: the head is not at `revision`; or with `proven`, the newest messages of the line are
/// others, or messages were withdrawn, because only a comparison finds those that come back.
fn find_first_new(
    head: &ConversationHead,
    withdrawals: &Withdrawals,
    extra: &AppendExtra,
    candidates: &[AppendCandidate<'_>],
) -> Result<u32> {
    ensure_revision(head, extra.revision)?;
    let proven = extra.proven;
    let first = candidates.get(..proven).unwrap_or(&[]);
    let newest = head.recent_marks.iter().rev();
    let mut pairs = first.iter().rev().zip(newest);
    let is_stored = first.len() == proven
        && proven <= head.recent_marks.len()
        && withdrawals.ranges.is_empty()
        && withdrawals.branches.is_empty()
        && pairs.all(|(candidate, mark)| mark.is_same_message(&candidate.entry.mark));
    match proven == 0 || is_stored {
        true => Ok(int::to_u32(proven)),
        false => Err(Error::revision_conflict(format_args!(
            "the first {proven} messages must be the newest of a conversation without withdrawn \
             messages; call `reconcile`"
        ))),
    }
}

/// Returns `conflict` if the head is not at `revision`; `None`: any revision.
fn ensure_revision(head: &ConversationHead, revision: Option<u64>) -> Result<()> {
    match revision {
        Some(revision) if revision != head.revision => Err(Error::revision_conflict(format_args!(
            "`revision` must be the current revision, {}, got {revision}; call `reconcile` again",
            head.revision
        ))),
        _ => Ok(()),
    }
}
