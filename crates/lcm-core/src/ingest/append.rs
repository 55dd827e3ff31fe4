//! Append: stores the new messages of a batch in one commit.
//!
//! In: raw messages and options. Out: a receipt with counts, seqs and warnings. The engine calls
//! [`append`] for the export `ingest.append`.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::{
        error::{Error, Result},
        int, time,
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
        changes::Changes,
        head::{ConversationHead, LoadedHead},
        history::MessageHistory,
        record_key::{RecordReads, RecordSlot, RecordValues},
        records::{upload::Upload, withdrawals::Withdrawals},
        session as session_rules,
        store_session::StoreSession,
    },
};

use super::{
    append_options::{AppendExtra, parse_append_extra},
    batch::{self, AppendCandidate, CandidateParser, StagedUploads, find_upload},
    commit::{AppendCommit, ReceiptCounts, UnchangedAppend, join_family},
    idempotency::IdempotencyKey,
    list_batch::{AppendPlan, ListBatch, match_batch},
    list_decision::SeenMessages,
    list_texts::{KnownBeginning, ListTexts, hash_text},
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
/// `continues` is set and the whole list must be compared, or another call committed first;
/// `not-found`: nothing was uploaded under a name; errors of the store.
pub(crate) fn append(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    dialect: ReadDialect,
    messages: &[String],
    options: &AppendOptions,
) -> Result<Receipt> {
    let extra = parse_append_extra(options)?;
    let given = system_messages::read_option(extra.system.as_ref(), call)?;
    let payload_tokens_min = |_| Some(call.config.large_payload_tokens_min);
    let parser = CandidateParser { call, dialect, payload_tokens_min: &payload_tokens_min };
    // References to uploads are not the texts that a later list has.
    let has_texts = options.append_mode == AppendMode::Transcript
        && messages.iter().all(|text| find_upload(text).is_none());
    let listed = if has_texts { messages } else { &[] };
    let texts = listed.iter().map(|text| hash_text(dialect, text)).collect();
    let texts = ListTexts::from_hashes(texts);
    let request = AppendRequest { parser, messages, options, extra: &extra, given: &given, texts };
    let receipt = match request.store_messages(session, true)? {
        None if !extra.must_continue => request.store_messages(session, false)?,
        stored => stored,
    };
    receipt.ok_or_else(|| {
        Error::revision_conflict("`messages` must be compared as a whole list; call `reconcile`")
    })
}

/// A call of `append`, parsed but for its messages.
struct AppendRequest<'a> {
    parser: CandidateParser<'a>,
    messages: &'a [String],
    options: &'a AppendOptions,
    extra: &'a AppendExtra,
    /// The messages of the option `system`.
    given: &'a [AppendCandidate<'a>],
    /// The hashes of the texts of a list in mode `transcript`; empty: the list has one message or
    /// an upload, or the mode is `new`.
    texts: ListTexts,
}

/// The messages of a call that were parsed, with the head.
struct ReadBatch<'a> {
    loaded: LoadedHead,
    withdrawals: Withdrawals,
    index: IndexMaintenance<'a>,
    /// The beginning of the list, which was not parsed; `None`: the list was parsed from its first
    /// message on.
    beginning: Option<KnownBeginning>,
    candidates: Vec<AppendCandidate<'a>>,
    /// The records of the uploads to which candidates refer, in order.
    uploads: (Vec<RecordSlot<Upload>>, RecordValues),
    /// The join of a family; empty: no family is named, or the conversation belongs to it.
    changes: Changes,
}

impl ReadBatch<'_> {
    /// Returns the number of messages of the beginning.
    fn count_known(&self) -> u32 {
        self.beginning.map_or(0, |known| int::to_u32(known.count))
    }
}

impl<'a> AppendRequest<'a> {
    /// Stores the new messages. `may_skip`: a beginning of the list that is an accepted list is not
    /// parsed.
    ///
    /// `None`: nothing was stored, and the whole list must be parsed. The list must begin with an
    /// accepted list and does not ([`ListTexts::find_known`] has the cases); the rest cannot be
    /// parsed, and the error of the whole list has the right index; an id of the rest is stored; or
    /// the line ends with a message that the list does not have.
    fn store_messages(
        &self,
        session: &mut StoreSession<'_>,
        may_skip: bool,
    ) -> Result<Option<Receipt>> {
        let (call, extra) = (self.parser.call, self.extra);
        let Some(mut batch) = self.read_batch(session, may_skip)? else { return Ok(None) };
        let consumed = batch.count_known() + int::to_u32(batch.candidates.len());
        let head = &batch.loaded.head;
        if let Some(receipt) = skip_session(session, call, head, extra, consumed)? {
            return Ok(Some(receipt));
        }
        session_rules::ensure_not_archived(session, head)?;
        batch.changes = join_family(&mut batch.loaded, call, extra.family.as_deref())?;
        let (slots, values) = &batch.uploads;
        let staged = StagedUploads { slots, values, is_partial: self.options.partial };
        match batch::resolve_uploads(session, &self.parser, &mut batch.candidates, staged) {
            Err(_) if batch.beginning.is_some() => return Ok(None),
            resolved => resolved?,
        }
        let head = &batch.loaded.head;
        if self.options.append_mode == AppendMode::Transcript {
            let entries = batch.candidates.iter_mut().map(|it| &mut it.entry);
            strip_rendered(session, call, head, entries)?;
        }
        let total = batch.count_known() + int::to_u32(batch.candidates.len());
        let key = self.build_key(&batch.candidates, total);
        let repeated = key.count_repeated(head, total, extra);
        // The first attempt of a repeated call moved the revision, so the check is left out.
        if total > 0 && repeated == total {
            let seen = SeenMessages::from_caller(extra.seq_seen, head.messages);
            let counts = (repeated, batch.count_known());
            return UnchangedAppend::new(&batch.candidates, counts, seen, Vec::new())
                .finish(session, call, batch.loaded, batch.changes)
                .map(Some);
        }
        ensure_revision(head, extra.revision)?;
        let stored = StoredState::read(session, call, head, &batch.candidates, &mut batch.index)?;
        self.commit_batch(session, batch, stored, (key, repeated))
    }

    /// Reads the head and parses the messages, without the beginning if the caller may skip it.
    /// `None` as of [`Self::store_messages`].
    fn read_batch(
        &self,
        session: &mut StoreSession<'_>,
        may_skip: bool,
    ) -> Result<Option<ReadBatch<'a>>> {
        let call = self.parser.call;
        let mut reads = RecordReads::default();
        let manifest = reads.add_record(IndexManifest::key(call.keys));
        let withdrawals = reads.add_record(Withdrawals::key(call.keys));
        let slots = add_uploads(&mut reads, call, self.messages);
        let (loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
        let withdrawals: Withdrawals = values.decode(&withdrawals)?.unwrap_or_default();
        let has_system = self.extra.system.is_some();
        let known = self.texts.find_known(&loaded.head, &withdrawals, has_system);
        let beginning = known.filter(|_| may_skip);
        if beginning.is_none() && self.extra.must_continue {
            return Ok(None);
        }
        let candidates = match self.parse_messages(beginning.map_or(0, |known| known.count)) {
            // The error of the whole list has the right index.
            Err(_) if beginning.is_some() => return Ok(None),
            parsed => parsed?,
        };
        let index = IndexMaintenance::from_manifest(call.keys, values.decode(&manifest)?);
        let (uploads, changes) = ((slots, values), Changes::default());
        Ok(Some(ReadBatch { loaded, withdrawals, index, beginning, candidates, uploads, changes }))
    }

    /// Parses the messages from index `first` on, as many as fit.
    fn parse_messages(&self, first: usize) -> Result<Vec<AppendCandidate<'a>>> {
        let rest = self.messages.get(first..).unwrap_or(&[]);
        let list = batch_limit::take_fitting(rest, self.options.partial)?;
        batch::read_candidates(&self.parser, list, self.options.partial)
    }

    /// Returns the idempotency key of the call, which takes `total` messages with the beginning.
    fn build_key(&self, candidates: &[AppendCandidate<'_>], total: u32) -> IdempotencyKey {
        let (mode, now) = (self.options.append_mode, self.parser.call.now);
        let texts = self.texts.hash_first(int::to_usize(total.into()));
        IdempotencyKey::from_call(self.extra, candidates, texts, (mode, now))
    }

    /// Decides which messages are new, and commits them. The pair has the key of the call, and how
    /// many messages an earlier attempt stored or skipped. `None` as of [`Self::store_messages`].
    fn commit_batch(
        &self,
        session: &mut StoreSession<'_>,
        batch: ReadBatch<'_>,
        mut stored: StoredState,
        (key, repeated): (IdempotencyKey, u32),
    ) -> Result<Option<Receipt>> {
        let (call, extra, known) = (self.parser.call, self.extra, batch.count_known());
        let ReadBatch { loaded, withdrawals, index, beginning, mut candidates, changes, .. } =
            batch;
        let (history, mode) = (MessageHistory::new(call, &loaded.head), self.options.append_mode);
        let ids =
            match_batch(session, &history, &withdrawals, &stored.identities, &mut candidates)?;
        let total = known + int::to_u32(candidates.len());
        let list =
            ListBatch { candidates: &candidates, ids: &ids, mode, beginning, texts: &self.texts };
        let plan = list.plan_append(session, call, &loaded.head, withdrawals, (extra, repeated))?;
        // A stored id in the rest may be that of a message in the beginning, and the line may have
        // messages that the list does not have.
        if beginning.is_some() && (ids.has_stored_id() || !plan.reaches_newest) {
            return Ok(None);
        }
        let AppendPlan { places, system, line, notices, .. } = plan;
        let filling =
            FillingMessages { given: self.given, candidates: &candidates, indexes: &system };
        let system = filling.prepare_update(session, call, &loaded.head, self.messages.len())?;
        let mut decision = select_new(&loaded.head, &candidates, &mut stored.identities, &places);
        (decision.warnings, decision.repeated, decision.known) = (notices, repeated, known);
        add_replay_warnings(call.config, extra, &candidates, &mut decision)?;
        if decision.new_messages.is_empty() && line.change.is_none() && system.is_none() {
            let (counts, warnings) = ((repeated, known), decision.warnings);
            return UnchangedAppend::new(&candidates, counts, line.seen, warnings)
                .finish(session, call, loaded, changes)
                .map(Some);
        }
        let time = if extra.is_undated { time::UNDATED } else { call.now };
        AppendCommit {
            dialect: self.parser.dialect,
            candidates: &candidates,
            times: &alloc::vec![time; candidates.len()],
            decision,
            stored,
            batch_record: Some(key.to_batch_record(total)),
            line,
            system,
            index_maintenance: index,
            changes,
        }
        .commit(session, call, loaded)
        .map(Some)
    }
}

/// Adds the records of the uploads to which texts refer to `reads` and returns their slots, in
/// order.
pub(super) fn add_uploads(
    reads: &mut RecordReads,
    call: Call<'_>,
    texts: &[String],
) -> Vec<RecordSlot<Upload>> {
    let uploads = texts.iter().filter_map(|text| find_upload(text));
    uploads.map(|sha256| reads.add_record(Upload::key(call.keys, &sha256))).collect()
}

/// Returns the receipt of a call that stores nothing, because the configuration skips this
/// conversation; `None`: the configuration does not skip the conversation.
fn skip_session(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    extra: &AppendExtra,
    skipped: u32,
) -> Result<Option<Receipt>> {
    let family = extra.family.as_deref();
    let reason = session_rules::find_skip_reason(session, call, head, family)?;
    Ok(reason.map(|reason| {
        let warnings = Vec::from([session_rules::build_skip_warning(reason)]);
        let mut counts = ReceiptCounts { skipped, ..ReceiptCounts::default() };
        counts.events.push_skipped(call.conversation, skipped.into(), SkipReason::Excluded);
        counts.build_receipt(head, SeenMessages::default(), warnings)
    }))
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
