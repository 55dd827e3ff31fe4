//! Finds the provisional summaries to make again, and their newest sources.
//!
//! In: the items of the context, and the record of remakes. Out: the provisional summaries that can
//! be made again now, none with an open source, or the number of open summaries. The planner, the
//! settlement, `maintain`, `resummarize` and `status` use this module.
//!
//! A provisional summary is *open* if it will be made again: a source is open, or the summary is
//! owed. A summary is owed if its text is provisional or a source was made again, unless the
//! configured model has already failed to make it from these sources. A summary that is not open is
//! final.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    context::ContextItem,
    head::ConversationHead,
    history::MessageHistory,
    newest_sources::{self, NewestSource},
    records::remakes::RemakeRecord,
    store_session::StoreSession,
    summary::{Provisional, SourceRef, Summary, SummarySources},
};
use lcm_text::{
    base::{error::Result, hash},
    summary::transcript::TranscriptOptions,
};

use super::{
    extra::PlanScope,
    source_text::{self, GatheredSources},
    task,
};

/// Maximum number of levels of sources below a context item that are visited.
const LEVELS_MAX: u32 = 64;

/// A provisional summary that a model can be asked for now: none of its sources is open.
pub(super) struct RemakeCandidate {
    pub(super) id: [u8; 8],
    /// Index of the context item that contains the summary.
    pub(super) index: usize,
    /// The record of the summary; `None`: not read.
    pub(super) record: Option<Summary>,
}

/// A summary to visit.
#[derive(Clone, Copy)]
struct SummaryNode {
    id: [u8; 8],
    depth: u32,
    /// Index of the context item that contains the summary.
    index: usize,
    /// Whether the scope of the plan includes the summary.
    is_wanted: bool,
}

/// Finds the provisional summaries of a context that are open.
pub(super) struct RemakeFinder<'a> {
    call: Call<'a>,
    /// Scope of the breaker of the model, which identifies the model in the record of remakes.
    breaker_scope: String,
    scope: &'a PlanScope,
    pub(super) remakes: RemakeRecord,
    /// Maximum number of candidates; once they are found, no further context item is visited.
    limit: usize,
    pub(super) candidates: Vec<RemakeCandidate>,
    /// Number of open summaries in the items that were visited.
    open: u64,
}

impl<'a> RemakeFinder<'a> {
    /// Reads the record of remakes.
    ///
    /// # Errors
    ///
    /// `corrupt`; errors of the store.
    pub(super) fn read(
        session: &mut StoreSession<'_>,
        call: Call<'a>,
        head: &ConversationHead,
        scope: &'a PlanScope,
        limit: usize,
    ) -> Result<Self> {
        Ok(Self::new(call, RemakeRecord::read(session, call.keys, head)?, scope, limit))
    }

    fn new(call: Call<'a>, remakes: RemakeRecord, scope: &'a PlanScope, limit: usize) -> Self {
        let breaker_scope = task::build_breaker_scope(call.config.summary_model.as_deref());
        Self { call, breaker_scope, scope, remakes, limit, candidates: Vec::new(), open: 0 }
    }

    /// Adds the candidates of the items, oldest first, and counts the open summaries.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(super) fn find_candidates(
        &mut self,
        session: &mut StoreSession<'_>,
        items: &[ContextItem],
    ) -> Result<()> {
        for (index, item) in items.iter().enumerate() {
            let ContextItem::Summary(summary) = item else { continue };
            if summary.is_provisional && self.candidates.len() < self.limit {
                let (id, depth, is_wanted) = (summary.id, summary.depth, self.is_named(summary.id));
                self.visit_summary(session, SummaryNode { id, depth, index, is_wanted }, 0)?;
            }
        }
        Ok(())
    }

    fn is_named(&self, id: [u8; 8]) -> bool {
        match self.scope {
            PlanScope::All | PlanScope::Remakes => true,
            PlanScope::Named(ids) => ids.contains(&id),
        }
    }

    /// Visits a provisional summary and its sources; returns whether the summary is open. Adds the
    /// wanted open summaries without an open source to the candidates.
    fn visit_summary(
        &mut self,
        session: &mut StoreSession<'_>,
        node: SummaryNode,
        level: u32,
    ) -> Result<bool> {
        if level > LEVELS_MAX || self.remakes.is_replaced(node.id) {
            return Ok(false);
        }
        let (mut is_text, mut own_record) = (true, None);
        let (mut has_open, mut changed) = (false, [0; 8]);
        if node.depth > 0 {
            let Some(record) = session.read_record(&Summary::key(self.call.keys, node.id))? else {
                return Ok(false);
            };
            is_text = record.provisional == Provisional::Text;
            let sources = newest_sources::read_newest(
                session,
                self.call.keys,
                &self.remakes,
                record.source_refs(),
            )?;
            changed = hash_changed_sources(&sources);
            for NewestSource { source, record, .. } in sources {
                if !record.is_provisional() {
                    continue;
                }
                let is_wanted = node.is_wanted || self.is_named(source.id);
                let below = SummaryNode { id: source.id, depth: record.depth, is_wanted, ..node };
                has_open |= self.visit_summary(session, below, level + 1)?;
            }
            own_record = Some(record);
        }
        let is_owed = is_text || changed != [0; 8];
        let was_asked = self.remakes.was_asked(node.id, changed, &self.breaker_scope);
        if !has_open && (!is_owed || was_asked) {
            return Ok(false);
        }
        self.open += 1;
        if !has_open && node.is_wanted && self.candidates.len() < self.limit {
            let (id, index) = (node.id, node.index);
            self.candidates.push(RemakeCandidate { id, index, record: own_record });
        }
        Ok(true)
    }
}

/// Returns the hash of the newest sources if one of them was made again; else zeros.
fn hash_changed_sources(sources: &[NewestSource]) -> [u8; 8] {
    if !sources.iter().any(|newest| newest.is_remade) {
        return [0; 8];
    }
    let refs: Vec<SourceRef> = sources.iter().map(|newest| newest.source).collect();
    hash::hash_prefix(&task::hash_sources(&refs))
}

/// Gathers the newest sources of a provisional summary. Also returns the hash under which a failed
/// remake is recorded: the hash of the newest sources if one of them was made again, else zeros.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(super) fn gather_newest_sources(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    call: Call<'_>,
    (record, remakes): (&Summary, &RemakeRecord),
    options: TranscriptOptions<'_>,
) -> Result<(GatheredSources, [u8; 8])> {
    if let SummarySources::Messages { span, .. } = &record.sources {
        let gathered = source_text::gather_messages(session, history, span, options)?;
        return Ok((gathered, [0; 8]));
    }
    let newest = newest_sources::read_newest(session, call.keys, remakes, record.source_refs())?;
    let changed = hash_changed_sources(&newest);
    let sources: Vec<(SourceRef, Summary)> =
        newest.into_iter().map(|newest| (newest.source, newest.record)).collect();
    let tokens = sources.iter().map(|(_, record)| u64::from(record.tokens)).sum();
    let refs: Vec<SourceRef> = sources.iter().map(|(source, _)| *source).collect();
    let named = (tokens, task::hash_sources(&refs));
    Ok((source_text::gather_summaries(&sources, named, options.offsets), changed))
}

/// Returns whether a provisional summary in the context or below will be made again.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn has_open_summary(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
) -> Result<bool> {
    Ok(count_open(session, call, head, 1)? > 0)
}

/// Counts the provisional summaries in the context and below that will be made again.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn count_open_summaries(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
) -> Result<u64> {
    count_open(session, call, head, usize::MAX)
}

/// Counts the provisional summaries as [`count_open_summaries`] does, by this record of remakes.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn count_open_with(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    remakes: RemakeRecord,
) -> Result<u64> {
    if head.context.provisional == 0 {
        return Ok(0);
    }
    count_open_in(session, head, RemakeFinder::new(call, remakes, &PlanScope::All, usize::MAX))
}

fn count_open(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    limit: usize,
) -> Result<u64> {
    if head.context.provisional == 0 {
        return Ok(0);
    }
    let finder = RemakeFinder::read(session, call, head, &PlanScope::All, limit)?;
    count_open_in(session, head, finder)
}

fn count_open_in(
    session: &mut StoreSession<'_>,
    head: &ConversationHead,
    mut finder: RemakeFinder<'_>,
) -> Result<u64> {
    let items = head.context.load_items(session, finder.call.keys)?;
    finder.find_candidates(session, &items)?;
    Ok(finder.open)
}
