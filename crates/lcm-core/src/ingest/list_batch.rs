//! The plan of one append: which candidates are stored, in which order, and what changes before.
//!
//! In: the candidates of a call, and what `reconcile` planned, if it did. Out: places of
//! candidates, the candidates that fill the slot, and the update of the line. [`super::append()`]
//! uses this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    head::ConversationHead,
    history::MessageHistory,
    records::{
        system_slot::{count_leading, is_begun},
        withdrawals::Withdrawals,
    },
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int},
    message::meaning,
    types::api::AppendMode,
};

use super::{
    append_options::AppendExtra,
    batch::AppendCandidate,
    identity::{IdentityMatch, KnownIdentities, match_identities},
    line_change::{LineUpdate, ListStart},
    list_alignment::{AlignmentRequest, align_list},
    list_decision::{EntryOutcome, SeenMessages},
    list_texts::{KnownBeginning, ListTexts},
    new_messages::CandidatePlace,
    planned_line::PlannedLine,
    taken_ids::{ListedIds, StoredIds},
    transcript::TranscriptEntry,
};

/// Notice about a list whose entries are all stored, and are only a part of the line: the caller
/// may have meant new messages.
const NOTHING_NEW: &str = "nothing-new: every message of the list is stored; append new messages \
                           that equal them in mode `new`";

/// Notice about new messages of a later call that begin with system messages.
const SYSTEM_IN_SEQUENCE: &str = "system-in-sequence: the system messages with which the call \
                                  begins are stored among the messages, where a summary may \
                                  replace them; give a system prompt as `system`";

/// The plan of an append.
pub(super) struct AppendPlan {
    /// The candidates to store, unless a stored message has their identity and says the same. In
    /// mode `transcript`, other forms of stored messages come first.
    pub(super) places: Vec<CandidatePlace>,
    /// Indexes of the candidates that fill the slot of system messages.
    pub(super) system: Vec<usize>,
    pub(super) line: LineUpdate,
    /// Whether the list begins with an accepted list that ends with the newest message.
    pub(super) reaches_newest: bool,
    /// Lines for the warnings of the receipt.
    pub(super) notices: Vec<String>,
}

/// Finds the candidates of a batch whose ids show that they are stored, and marks those whose ids
/// do not count.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn match_batch(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    withdrawals: &Withdrawals,
    identities: &KnownIdentities,
    candidates: &mut [AppendCandidate<'_>],
) -> Result<StoredIds> {
    let found: Vec<IdentityMatch> =
        candidates.iter().map(|it| match_identities(it, identities)).collect();
    let parts = candidates.iter_mut().map(|it| (&mut it.entry, (&it.raw, &it.message)));
    let (mut entries, messages): (Vec<&mut TranscriptEntry>, Vec<_>) = parts.unzip();
    let text_of = |index: usize| {
        messages.get(index).and_then(|(raw, message)| meaning::read_text(raw, message))
    };
    let mut ids = ListedIds { entries: &mut entries, found: &found, text_of: &text_of };
    ids.find_stored(session, history, withdrawals)
}

/// The candidates of one call, with its append mode.
pub(super) struct ListBatch<'a> {
    pub(super) candidates: &'a [AppendCandidate<'a>],
    /// Which candidates are stored, as their ids show.
    pub(super) ids: &'a StoredIds,
    /// The beginning of the list, before the candidates; `None`: the candidates are the whole list.
    pub(super) beginning: Option<KnownBeginning>,
    /// The texts of the list with its beginning; empty in mode `new`.
    pub(super) texts: &'a ListTexts,
    pub(super) mode: AppendMode,
}

impl ListBatch<'_> {
    /// Plans the append in its mode. An earlier attempt stored or skipped the first `repeated`
    /// candidates; only mode `new` leaves them out.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn plan_append(
        &self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        withdrawals: Withdrawals,
        (extra, repeated): (&AppendExtra, u32),
    ) -> Result<AppendPlan> {
        let mut plan = match self.mode {
            AppendMode::Transcript => {
                self.plan_list(session, call, head, withdrawals, extra.seq_seen)?
            }
            AppendMode::New => self.plan_new(extra, repeated, head, withdrawals),
        };
        if let Some(hashes) = &mut plan.line.list_hashes {
            hashes.has_system = extra.system.is_some();
        }
        // A call that carries out a plan of `reconcile` gives no notice: the plan gave that of the
        // whole list.
        plan.notices.extend(self.ids.notice.clone().filter(|_| extra.planned.is_none()));
        Ok(plan)
    }

    /// Aligns the list with the line and plans the append.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    fn plan_list(
        &self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        withdrawals: Withdrawals,
        seq_seen: Option<u64>,
    ) -> Result<AppendPlan> {
        let candidates = self.candidates.iter().enumerate();
        let effective: Vec<(usize, &AppendCandidate<'_>)> =
            candidates.filter(|(_, candidate)| !candidate.entry.is_empty).collect();
        let entries: Vec<&TranscriptEntry> =
            effective.iter().map(|(_, candidate)| &candidate.entry).collect();
        let known: Vec<Option<u64>> = effective
            .iter()
            .map(|(index, _)| self.ids.known.get(*index).copied().flatten())
            .collect();
        let text_of = |index: usize| {
            let (_, candidate) = effective.get(index)?;
            meaning::read_text(&candidate.raw, &candidate.message)
        };
        let in_line = withdrawals.count_in_line(head.messages);
        let list = AlignmentRequest {
            is_transcript: false,
            entries: &entries,
            known: &known,
            beginning: self.beginning.map(|known| known.list),
            confirmed: 0,
            seq_seen,
            text_of: &text_of,
        };
        let decision = align_list(session, call, head, &withdrawals, &list)?;
        let places_of = |wanted: EntryOutcome| {
            let outcomes = effective.iter().zip(&decision.outcomes);
            let places = outcomes.filter(move |(_, outcome)| **outcome == wanted);
            let is_revision = wanted == EntryOutcome::Revision;
            places.map(move |((index, _), _)| CandidatePlace {
                index: *index,
                is_revision,
                is_certain: !is_revision && self.ids.is_known(*index),
            })
        };
        let places: Vec<CandidatePlace> =
            places_of(EntryOutcome::Revision).chain(places_of(EntryOutcome::New)).collect();
        let system = places_of(EntryOutcome::System).map(|place| place.index).collect();
        let skipped = self.beginning.map_or(0, |known| known.count);
        let count_through = |count: usize| {
            effective.get(count.wrapping_sub(1)).map_or(0, |(index, _)| skipped + index + 1)
        };
        let total = skipped + self.candidates.len();
        let list_hashes = self.texts.add_texts(&decision.hashes, total, &count_through);
        let mut notices = decision.notices;
        // The decision compared the rest only. With the beginning, the list may be the whole line.
        let compared = skipped + entries.len();
        let is_end = decision.is_end && int::to_u64(compared) < in_line;
        let is_announced = decision.found_by == "alignment" || is_end;
        if places.is_empty() && compared > 1 && is_announced && decision.change.is_none() {
            notices.push(NOTHING_NEW.into());
        }
        let line = LineUpdate {
            change: decision.change,
            branch: decision.branch,
            list_hashes,
            seen: decision.seen,
            start: decision.start,
            withdrawals,
        };
        let reaches_newest = decision.reaches_newest;
        Ok(AppendPlan { places, system, line, reaches_newest, notices })
    }

    /// Returns the plan of a call in append mode `new`, which leaves out the first `repeated`
    /// candidates.
    fn plan_new(
        &self,
        extra: &AppendExtra,
        repeated: u32,
        head: &ConversationHead,
        withdrawals: Withdrawals,
    ) -> AppendPlan {
        let planned = extra.planned.as_ref();
        let is_revision = planned.is_some_and(|line| line.is_revision);
        let (first, count) = (int::to_usize(u64::from(repeated)), self.candidates.len());
        let roles = self.candidates.iter().map(|candidate| candidate.message.role);
        let leading = count_leading(roles);
        // A call with `revision` carries out a plan of `reconcile`.
        let is_unplanned = planned.is_none() && extra.revision.is_none();
        let lead = match planned {
            Some(planned) if planned.is_system => count,
            None if is_unplanned && !is_begun(head) => leading,
            _ => 0,
        };
        let begins_list = extra.list_part.is_none_or(|part| part.offset == 0);
        let is_announced = is_unplanned && is_begun(head) && begins_list && leading > first;
        let notices = is_announced.then(|| SYSTEM_IN_SEQUENCE.into()).into_iter().collect();
        let system = (first..lead).collect();
        let is_placed = planned.is_some() && !is_revision;
        let is_new = |index: &usize| {
            let is_other = self.candidates.get(*index).is_some_and(|it| it.entry.is_other_form);
            is_other || is_placed || !self.ids.is_known(*index)
        };
        let places = (first.max(lead)..count).filter(is_new).map(|index| CandidatePlace {
            index,
            is_revision,
            is_certain: is_placed && self.ids.is_known(index),
        });
        let places = places.collect();
        let seen = planned.map(PlannedLine::seen_messages);
        let is_last = |line: &&PlannedLine| line.count == int::to_u64(count);
        let line = LineUpdate {
            change: planned.and_then(|line| line.change.clone()),
            branch: planned.and_then(|line| line.branch),
            list_hashes: planned.filter(is_last).and_then(|line| line.list_hashes),
            seen: seen.unwrap_or_else(|| SeenMessages::from_caller(extra.seq_seen, head.messages)),
            start: match extra.revision {
                None => ListStart::Told,
                Some(_) if planned.is_some_and(|line| line.is_start) => ListStart::Unplaced,
                Some(_) => ListStart::Earlier,
            },
            withdrawals,
        };
        AppendPlan { places, system, line, reaches_newest: false, notices }
    }
}
