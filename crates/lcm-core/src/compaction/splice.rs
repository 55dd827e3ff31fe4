//! Where the sources of a task stand in the context, and the context with a summary in their
//! place.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::{Context, ContextItem, MessageRun, SummaryItem},
    head::ConversationHead,
    history::MessageHistory,
    keys::ConversationKeys,
    pack_compaction::PackCompactionInput,
    store::Put,
    store_session::StoreSession,
    summary::{self, Summary},
};
use lcm_text::base::{error::Result, tokens};

use super::{
    source_text::{self, GatheredSources},
    task::{SourceSpan, SummaryTask},
};

/// The sources of a task in the context: `items[from..to]`, or inside the run `items[from]`.
pub(crate) struct SourceSplice {
    pub(super) items: Vec<ContextItem>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(crate) gathered: GatheredSources,
    /// What the commit seals beside.
    pub(super) pack_compaction: Option<PackCompactionInput>,
}

impl SourceSplice {
    /// What the model is told of what came before.
    ///
    /// # Errors
    ///
    /// As [`StoreSession::read_immutable`].
    pub(crate) fn read_previous(
        &self,
        reader: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        head: &ConversationHead,
        task: &SummaryTask,
        injected_tags: &[String],
    ) -> Result<Option<String>> {
        let before = self.items.get(..self.from).unwrap_or(&[]);
        let history = MessageHistory { keys, head };
        let (seq, depth) = (self.gathered.seq_first, task.depth);
        source_text::read_previous(reader, &history, before, seq, depth, injected_tags)
    }

    /// The context with the summary in place of the sources.
    pub(super) fn replace_sources(
        &self,
        keys: &ConversationKeys,
        head: &ConversationHead,
        record: &Summary,
        bytes: u32,
    ) -> Result<(Context, Vec<Put>)> {
        let id = record.id();
        let item = ContextItem::Summary(SummaryItem {
            id,
            depth: record.depth,
            tokens: record.tokens,
            rendered_tokens: tokens::estimate(&record.render_xml(id)),
            bytes,
            seq_first: record.seq_first,
            seq_last: record.seq_last,
        });
        let replacement = match (&record.sources, self.items.get(self.from)) {
            (summary::SummarySources::Messages { .. }, Some(ContextItem::Run(run))) => {
                self.split_run(run, item)
            }
            _ => alloc::vec![item],
        };
        let range = self.from..self.to;
        head.context.replace_items(keys, head.revision + 1, &self.items, range, &replacement)
    }

    /// A run with a summary in place of a part of it.
    fn split_run(&self, run: &MessageRun, item: ContextItem) -> Vec<ContextItem> {
        let gathered = &self.gathered;
        let left = MessageRun {
            seq_last: gathered.seq_first.saturating_sub(1),
            tokens: gathered.tokens_before.saturating_sub(run.tokens_before),
            ..*run
        };
        let right = MessageRun {
            seq_first: gathered.seq_last + 1,
            seq_last: run.seq_last,
            tokens_before: gathered.tokens_before + gathered.tokens,
            tokens: run.tokens.saturating_sub(left.tokens + gathered.tokens),
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

/// Last seq before the run that the context will end with, when the items from `from` on that a
/// task names are replaced. That run holds the fresh tail; what is before it is read rarely.
pub(super) fn last_compactable_seq(items: &[ContextItem], from: usize, span: SourceSpan) -> u64 {
    let last = items.len().saturating_sub(1);
    match (items.last(), span) {
        (Some(ContextItem::Run(run)), SourceSpan::Messages { seq_last, .. }) if from == last => {
            seq_last.min(run.seq_last)
        }
        (Some(ContextItem::Run(run)), _) => run.seq_first - 1,
        (Some(item), _) => item.seq_last(),
        (None, _) => 0,
    }
}
