//! Where the sources of a task stand in the context, and the context with a summary in their
//! place.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::{Context, Item, Run, SummaryItem},
    head::Head,
    history::History,
    keys::Keys,
    pack_compaction::Sealable,
    store::Put,
    store_session::Reader,
    summary::{self, Summary},
};
use lcm_text::base::{error::Result, tokens};

use super::{
    sources::{self, Gathered},
    task::{Span, Task},
};

/// The sources of a task in the context: `items[from..to]`, or inside the run `items[from]`.
pub(crate) struct Place {
    pub(super) items: Vec<Item>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(crate) gathered: Gathered,
    /// What the commit seals beside.
    pub(super) seal: Option<Sealable>,
}

impl Place {
    /// What the model is told of what came before.
    ///
    /// # Errors
    ///
    /// As [`Reader::immutable`].
    pub(crate) fn previous(
        &self,
        reader: &mut Reader<'_>,
        keys: &Keys,
        head: &Head,
        task: &Task,
        injected_tags: &[String],
    ) -> Result<Option<String>> {
        let before = self.items.get(..self.from).unwrap_or(&[]);
        let history = History { keys, head };
        let (seq, depth) = (self.gathered.seq_first, task.depth);
        sources::previous(reader, &history, before, seq, depth, injected_tags)
    }

    /// The context with the summary in place of the sources.
    pub(super) fn replace(
        &self,
        keys: &Keys,
        head: &Head,
        record: &Summary,
        bytes: u32,
    ) -> Result<(Context, Vec<Put>)> {
        let id = record.id();
        let item = Item::Summary(SummaryItem {
            id,
            depth: record.depth,
            tokens: record.tokens,
            rendered_tokens: tokens::estimate(&record.xml(id)),
            bytes,
            seq_first: record.seq_first,
            seq_last: record.seq_last,
        });
        let replacement = match (&record.sources, self.items.get(self.from)) {
            (summary::Sources::Messages { .. }, Some(Item::Run(run))) => self.split(run, item),
            _ => alloc::vec![item],
        };
        let range = self.from..self.to;
        head.context.replace(keys, head.revision + 1, &self.items, range, &replacement)
    }

    /// A run with a summary in place of a part of it.
    fn split(&self, run: &Run, item: Item) -> Vec<Item> {
        let gathered = &self.gathered;
        let left = Run {
            seq_last: gathered.seq_first.saturating_sub(1),
            tokens: gathered.tokens_before.saturating_sub(run.tokens_before),
            ..*run
        };
        let right = Run {
            seq_first: gathered.seq_last + 1,
            seq_last: run.seq_last,
            tokens_before: gathered.tokens_before + gathered.tokens,
            tokens: run.tokens.saturating_sub(left.tokens + gathered.tokens),
        };
        let mut out = Vec::new();
        if left.seq_first <= left.seq_last {
            out.push(Item::Run(left));
        }
        out.push(item);
        if right.seq_first <= right.seq_last {
            out.push(Item::Run(right));
        }
        out
    }
}

/// Last seq before the run that the context will end with, when the items from `from` on that a
/// task names are replaced. That run holds the fresh tail; what is before it is read rarely.
pub(super) fn sealable(items: &[Item], from: usize, span: Span) -> u64 {
    let last = items.len().saturating_sub(1);
    match (items.last(), span) {
        (Some(Item::Run(run)), Span::Messages { seq_last, .. }) if from == last => {
            seq_last.min(run.seq_last)
        }
        (Some(Item::Run(run)), _) => run.seq_first - 1,
        (Some(item), _) => item.seq_last(),
        (None, _) => 0,
    }
}
