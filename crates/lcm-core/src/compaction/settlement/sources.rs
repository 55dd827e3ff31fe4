//! Finds the sources of a task in the current context.
//!
//! In: a task and the head. Out: the place and the text of the sources, or the fallback that
//! replaced them. `apply` and `run` use these methods.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    context::ContextItem,
    history::{self, MessageHistory},
    message_span::MessageSpan,
    pack_compaction,
    records::{remakes::RemakeRecord, withdrawals::Withdrawals},
    store_session::StoreSession,
    summary::{StoredLevel, Summary},
    summary_items,
};
use lcm_text::{
    base::{error::Result, int, sort, tokens},
    summary::offline_summary,
    types::{
        api::{ApplyOutcome, ApplyStatus},
        model::Level,
    },
};

use super::super::{
    remake,
    source_text::{self, GatheredSources},
    splice::{SourceSplice, last_compactable_seq},
    task::{self, SourceSpan},
};
use super::TaskSettlement;

/// Maximum number of summaries between a provisional summary and its context item, replaced ones
/// included.
const ANCESTORS_MAX: u32 = 128;

/// The place of sources: `items[from..to]`.
struct FoundSources {
    from: usize,
    to: usize,
    /// The messages of a leaf; `None`: the sources are the items.
    messages: Option<MessageSpan>,
}

impl TaskSettlement<'_> {
    /// Finds and reads the sources; `None`: the context does not contain exactly these sources.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(crate) fn locate_sources(
        &self,
        session: &mut StoreSession<'_>,
    ) -> Result<Option<SourceSplice>> {
        if let Some(id) = self.task.replaced_id() {
            return self.locate_remake(session, id);
        }
        let options = self.transcript_options();
        let head = &self.loaded.head;
        let history = MessageHistory::new(self.call, head);
        let mut nodes = self.list_directory_nodes();
        nodes.extend(pack_compaction::list_directory_nodes(&history));
        sort::sort_and_dedup_numbers(&mut nodes);
        history.prefetch_nodes(session, &nodes)?;
        let items = head.context.load_items(session, self.call.keys)?;
        let Some(FoundSources { from, to, messages }) =
            self.find_sources(session, &history, &items)?
        else {
            return Ok(None);
        };
        // Reads the sources together with the packs that this commit may compress. Messages that no
        // search segment covers are not compressed, because an append reads their packs.
        let until = last_compactable_seq(&items, self.task.span).min(head.indexed.messages);
        let mut wanted = pack_compaction::list_pack_keys(session, &history, until)?;
        let sources = items.get(from..to).unwrap_or(&[]);
        match &messages {
            Some(span) => {
                for (first, last) in span.list_read_ranges() {
                    let refs = history.find_pack_refs(session, first, last)?;
                    wanted.extend(history.list_pack_keys(&refs));
                }
            }
            None => wanted.extend(summary_items::summary_keys(&history, sources)),
        }
        session.prefetch_records(self.call.keys, &wanted, &[])?;
        let gathered = match &messages {
            Some(span) => source_text::gather_messages(session, &history, span, options)?,
            None => source_text::gather_items(session, &history, sources, options)?,
        };
        let is_same =
            gathered.task_hash == self.task.sources_hash && gathered.depth == self.task.depth;
        if !is_same {
            return Ok(None);
        }
        let pack_compaction = pack_compaction::read_compactable_packs(session, &history, until)?;
        let remakes = RemakeRecord::read(session, self.call.keys, head)?;
        Ok(Some(SourceSplice {
            items,
            from,
            to,
            gathered,
            pack_compaction,
            remakes,
            is_remake: false,
            changed_sources: [0; 8],
        }))
    }

    /// Finds a provisional summary that is made again, and reads its newest sources. `None`: the
    /// summary is not provisional, was made again, or is neither in the context nor below; a source
    /// was made again after the plan; or the model has already failed to make the summary again.
    fn locate_remake(
        &self,
        session: &mut StoreSession<'_>,
        id: [u8; 8],
    ) -> Result<Option<SourceSplice>> {
        let (head, keys) = (&self.loaded.head, self.call.keys);
        let remakes = RemakeRecord::read(session, keys, head)?;
        let record = session.read_record(&Summary::key(keys, id))?;
        let is_open = |record: &Summary| record.is_provisional() && !remakes.is_replaced(id);
        let Some(record) = record.filter(is_open) else { return Ok(None) };
        let items = head.context.load_items(session, keys)?;
        let Some(from) = find_enclosing_item(session, self.call, &items, id)? else {
            return Ok(None);
        };
        let history = MessageHistory::new(self.call, head);
        let options = self.transcript_options();
        let read = (&record, &remakes);
        let (gathered, changed) =
            remake::gather_newest_sources(session, &history, self.call, read, options)?;
        let is_same =
            gathered.task_hash == self.task.sources_hash && gathered.depth == self.task.depth;
        let was_asked = remakes.was_asked(id, changed, &self.task.breaker_scope);
        let to = from + 1;
        Ok((is_same && !was_asked).then_some(SourceSplice {
            items,
            from,
            to,
            gathered,
            pack_compaction: None,
            remakes,
            is_remake: true,
            changed_sources: changed,
        }))
    }

    /// Finds the sources among the items; `None`: the items do not have exactly these sources.
    fn find_sources(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        items: &[ContextItem],
    ) -> Result<Option<FoundSources>> {
        match self.task.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                let position = |seq: u64| items.iter().position(|item| item.seq_last() >= seq);
                let ends = position(seq_first).zip(position(seq_last));
                let Some((from, to)) = ends.map(|(from, last)| (from, last + 1)) else {
                    return Ok(None);
                };
                let sources = items.get(from..to).unwrap_or(&[]);
                let Some(span) = find_run_span(sources, seq_first, seq_last) else {
                    return Ok(None);
                };
                let is_same = self.matches_messages(session, history, &span)?;
                Ok(is_same.then_some(FoundSources { from, to, messages: Some(span) }))
            }
            SourceSpan::Items { first, count, .. } => {
                let Some(from) = find_summary_item(items, first) else { return Ok(None) };
                let to = from.saturating_add(int::to_usize(u64::from(count)));
                let is_same = items
                    .get(from..to)
                    .is_some_and(|slice| task::hash_items(slice) == self.task.sources_hash);
                Ok(is_same.then_some(FoundSources { from, to, messages: None }))
            }
            SourceSpan::Remake { .. } => Ok(None),
        }
    }

    /// Returns whether the hash of the task is the hash of these messages. Reads only the running
    /// hash after the last message, so that a forged token costs little.
    fn matches_messages(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        span: &MessageSpan,
    ) -> Result<bool> {
        if span.seq_last > history.head.messages {
            return Ok(false);
        }
        let frontier = history.frontier_at(session, span.seq_last)?;
        Ok(task::hash_messages(span, &frontier) == self.task.sources_hash)
    }

    /// Lists the directory nodes of the sources of a leaf; empty for other tasks, and if the head
    /// lists all packs of the sources.
    fn list_directory_nodes(&self) -> Vec<u64> {
        let SourceSpan::Messages { seq_first, seq_last } = self.task.span else {
            return Vec::new();
        };
        let recent_first = MessageHistory::new(self.call, &self.loaded.head).recent_seq_first();
        let last = seq_last.min(recent_first.saturating_sub(1));
        if seq_first > last {
            return Vec::new();
        }
        (history::directory_node(seq_first)..=history::directory_node(last)).collect()
    }

    /// Finds the fallback that replaced exactly these sources and returns its outcome; `None`:
    /// there is no such fallback.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(crate) fn find_committed_fallback(
        &self,
        session: &mut StoreSession<'_>,
    ) -> Result<Option<ApplyOutcome>> {
        let history = MessageHistory::new(self.call, &self.loaded.head);
        let level = StoredLevel::Fallback;
        let id = match self.task.span {
            SourceSpan::Messages { seq_first, seq_last } => {
                let withdrawn = session.read_record(&Withdrawals::key(self.call.keys))?;
                let withdrawn = withdrawn.unwrap_or_default();
                let span =
                    MessageSpan::from_ranges(&withdrawn.list_line_ranges(seq_first, seq_last));
                let Some(span) = span else { return Ok(None) };
                if !self.matches_messages(session, &history, &span)? {
                    return Ok(None);
                }
                let options = self.transcript_options();
                let gathered = source_text::gather_messages(session, &history, &span, options)?;
                let Some(text) = self.build_fallback_text(&gathered) else { return Ok(None) };
                self.task.identify_summary(level).compute_id(&text)
            }
            SourceSpan::Remake { .. } => return Ok(None),
            SourceSpan::Items { first, .. } => {
                let key = Summary::derived_key(self.call.keys, first);
                let Some(id) = session.read_record(&key)? else { return Ok(None) };
                id
            }
        };
        let record = session.read_record(&Summary::key(self.call.keys, id))?;
        let is_fallback =
            |record: &Summary| record.task == self.task.sources_hash && record.level == level;
        Ok(record.filter(is_fallback).map(|_| {
            let mut outcome = self.build_outcome(ApplyStatus::Committed, "", Some(id));
            outcome.level = Level::Fallback;
            outcome
        }))
    }

    /// Builds the text of a fallback. `None`: the sources have fewer than 24 tokens, the limit fits
    /// no text, or the text would not be smaller than the sources.
    pub(super) fn build_fallback_text(&self, gathered: &GatheredSources) -> Option<String> {
        let source_tokens = int::saturate_tokens(gathered.tokens);
        let text = offline_summary::build_fallback(
            &gathered.text,
            source_tokens,
            self.task.fallback_tokens_max,
        )?;
        (u64::from(tokens::estimate(&text)) < gathered.tokens).then_some(text)
    }
}

/// Returns the messages of runs from a first to a last message; `None`: a summary lies between
/// them, or one of the two messages is in no run.
fn find_run_span(items: &[ContextItem], seq_first: u64, seq_last: u64) -> Option<MessageSpan> {
    if items.iter().any(|item| matches!(item, ContextItem::Summary(_))) {
        return None;
    }
    let runs = items.iter().filter(|item| matches!(item, ContextItem::Run(_)));
    let runs: Vec<(u64, u64)> = runs.map(|run| (run.seq_first(), run.seq_last())).collect();
    let span = MessageSpan::from_ranges(&runs)?;
    let span = span.cut_span(seq_first, seq_last)?;
    ((span.seq_first, span.seq_last) == (seq_first, seq_last)).then_some(span)
}

/// Finds the context item that is the summary `id` or was made from it; `None`: there is none.
///
/// # Errors
///
/// `corrupt`: a record is damaged; errors of the store.
pub(crate) fn find_enclosing_item(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    items: &[ContextItem],
    id: [u8; 8],
) -> Result<Option<usize>> {
    let mut at = id;
    for _ in 0..ANCESTORS_MAX {
        if let Some(index) = find_summary_item(items, at) {
            return Ok(Some(index));
        }
        let derived = session.read_record(&Summary::derived_key(call.keys, at))?;
        let next = match derived {
            Some(derived) => Some(derived),
            // Nothing was made from this remake yet, so the summary that it replaced leads upward.
            None => session
                .read_record(&Summary::key(call.keys, at))?
                .and_then(|record| record.replaces),
        };
        let Some(next) = next else { break };
        at = next;
    }
    Ok(None)
}

/// Returns the index of the summary `id` in the context; `None`: the context has no such summary.
fn find_summary_item(items: &[ContextItem], id: [u8; 8]) -> Option<usize> {
    items.iter().position(|item| match item {
        ContextItem::Summary(summary) => summary.id == id,
        ContextItem::Run(_) | ContextItem::Withdrawn { .. } => false,
    })
}
