//! The place of the sources of a task in the context, and their replacement by a summary.
//!
//! In: the items of the context and a summary. Out: the new context with the puts of its nodes. The
//! settlement of answers uses this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    changes::Changes,
    context::{Context, ContextItem, MessageRun},
    fresh_tail,
    head::ConversationHead,
    history::MessageHistory,
    pack_compaction::PackCompactionInput,
    records::remakes::RemakeRecord,
    store_session::StoreSession,
    summary::{SourceRef, Summary, SummarySources},
    summary_items::build_summary_item,
};
use lcm_text::base::error::Result;

use super::{
    source_text::{GatheredSources, PreviousContext},
    task::SourceSpan,
};

/// The sources of a task in the context. For a condensed summary: `items[from..to]`. For a leaf:
/// the messages of the runs in `items[from..to]`, of which the first and the last item are runs;
/// withdrawn messages may lie between. For a remake, `items[from]` is the old summary, or the
/// summary above it that replaced it in the context.
pub(crate) struct SourceSplice {
    /// Items of the context.
    pub(super) items: Vec<ContextItem>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(crate) gathered: GatheredSources,
    /// Packs that the commit may compress; `None`: there are too few packs to compress.
    pub(super) pack_compaction: Option<PackCompactionInput>,
    /// The record of remakes, which also lists the summaries that left the context.
    pub(super) remakes: RemakeRecord,
    /// Whether the task makes a provisional summary again.
    pub(super) is_remake: bool,
    /// Hash of the newest sources of a remake, if a source was made again; else zeros.
    pub(super) changed_sources: [u8; 8],
}

impl SourceSplice {
    /// Reads the previous context: text from before the sources, which the prompt shows the model.
    /// `None`: there is no such text.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(crate) fn read_previous(
        &self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        depth: u32,
    ) -> Result<Option<String>> {
        let previous = PreviousContext {
            before: self.items.get(..self.from).unwrap_or(&[]),
            seq_first: self.gathered.seq_first,
            depth,
            injected_tags: &call.config.strip_injected_context_tags,
            offsets: &call.config.time_offsets,
        };
        previous.read(session, &MessageHistory::new(call, head))
    }

    /// Returns the context with the summary in place of the sources, and adds the puts of its nodes
    /// to `changes`. `source` refers to the record.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(super) fn replace_sources(
        &self,
        call: Call<'_>,
        head: &ConversationHead,
        (record, source): (&Summary, SourceRef),
        changes: &mut Changes,
    ) -> Result<Context> {
        let item = ContextItem::Summary(build_summary_item(source, record));
        if self.is_remake && !self.contains_summary(record.replaces) {
            // The old summary is no context item, but a source of a summary that is. That item
            // stays.
            return Ok(head.context.clone());
        }
        let (first, last) = (self.items.get(self.from), self.items.get(self.to.saturating_sub(1)));
        let replacement = match (&record.sources, first, last) {
            (
                SummarySources::Messages { .. },
                Some(ContextItem::Run(first)),
                Some(ContextItem::Run(last)),
            ) => self.split_runs(first, last, item),
            _ => alloc::vec![item],
        };
        let range = self.from..self.to;
        let revision = head.revision + 1;
        let (context, nodes) =
            head.context.replace_items(call.keys, revision, &self.items, range, &replacement)?;
        changes.add_puts(nodes);
        Ok(context)
    }

    /// Returns whether the item of the task is the summary `id`.
    fn contains_summary(&self, id: Option<[u8; 8]>) -> bool {
        let item = self.items.get(self.from);
        matches!(item, Some(ContextItem::Summary(summary)) if Some(summary.id) == id)
    }

    /// Returns the items that replace the runs of a leaf: the rest of the first run before the
    /// sources, the summary `item`, and the rest of the last run. An empty rest is left out.
    fn split_runs(
        &self,
        first: &MessageRun,
        last: &MessageRun,
        item: ContextItem,
    ) -> Vec<ContextItem> {
        let gathered = &self.gathered;
        let left = MessageRun {
            seq_last: gathered.seq_first.saturating_sub(1),
            tokens: gathered.tokens_before.saturating_sub(first.tokens_before),
            ..*first
        };
        let right = MessageRun {
            seq_first: gathered.seq_last + 1,
            seq_last: last.seq_last,
            tokens_before: gathered.tokens_through,
            tokens: (last.tokens_before + last.tokens).saturating_sub(gathered.tokens_through),
        };
        let mut out = Vec::new();
        if left.seq_first <= left.seq_last {
            out.push(ContextItem::Run(left));
        }
        out.push(item);
        if right.seq_first <= right.seq_last {
            out.push(ContextItem::Run(right));
        }
        out
    }
}

/// Returns the last seq whose pack may be compressed when a task is settled: the seq before the
/// runs at the end of the new context, or the newest seq if the context does not end with a run.
/// These runs contain the fresh tail; older messages are read rarely.
pub(super) fn last_compactable_seq(items: &[ContextItem], span: SourceSpan) -> u64 {
    match (fresh_tail::last_raw_runs(items).last(), span) {
        (Some(run), SourceSpan::Messages { seq_last, .. }) if seq_last >= run.seq_first => seq_last,
        (Some(run), _) => run.seq_first - 1,
        (None, _) => items.last().map_or(0, ContextItem::seq_last),
    }
}
