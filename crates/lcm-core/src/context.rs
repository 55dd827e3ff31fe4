//! The context: the ordered items that together stand for every message exactly once.
//!
//! Items are runs of raw messages and summaries. The newest stand in the head, older ones in
//! nodes that are written once; replacing items writes new nodes and leaves the old ones, so that
//! the root in an old journal entry still is the old context.

use alloc::{format, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::{Error, Result},
    keys::Keys,
    limits, num,
    reader::Reader,
    store::Put,
};

/// A run of consecutive raw messages.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Run {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    /// Tokens of all messages of the conversation before the run.
    pub(crate) tokens_before: u64,
    pub(crate) tokens: u64,
}

/// A summary in the context.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SummaryItem {
    pub(crate) id: [u8; 8],
    pub(crate) depth: u32,
    /// Tokens of its text.
    pub(crate) tokens: u32,
    /// Tokens of its whole element in an assembly.
    pub(crate) rendered_tokens: u32,
    /// Size of its record.
    pub(crate) bytes: u32,
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
}

/// One item of the context.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Item {
    /// Raw messages.
    Run(Run),
    /// A summary.
    Summary(SummaryItem),
}

impl Item {
    /// Tokens that the item counts in the stored context.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Run(run) => run.tokens,
            Self::Summary(summary) => u64::from(summary.tokens),
        }
    }

    /// Tokens that the item costs in an assembly.
    pub(crate) fn rendered_tokens(&self) -> u64 {
        match self {
            Self::Run(run) => run.tokens,
            Self::Summary(summary) => u64::from(summary.rendered_tokens),
        }
    }

    /// First message it stands for.
    pub(crate) fn seq_first(&self) -> u64 {
        match self {
            Self::Run(run) => run.seq_first,
            Self::Summary(summary) => summary.seq_first,
        }
    }

    /// Last message it stands for.
    pub(crate) fn seq_last(&self) -> u64 {
        match self {
            Self::Run(run) => run.seq_last,
            Self::Summary(summary) => summary.seq_last,
        }
    }
}

/// Reference to a node of items.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct NodeRef {
    revision: u64,
    number: u32,
    count: u32,
    bytes: u32,
}

/// The root of the context: references to nodes of older items, then the newest items.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Context {
    pub(crate) tokens: u64,
    pub(crate) rendered_tokens: u64,
    nodes: Vec<NodeRef>,
    items: Vec<Item>,
}

impl Context {
    /// Adds messages at the end: to the last run, or as a new one.
    pub(crate) fn append(&mut self, seq_first: u64, count: u64, tokens_before: u64, tokens: u64) {
        self.tokens += tokens;
        self.rendered_tokens += tokens;
        let seq_last = seq_first + count - 1;
        if let Some(Item::Run(run)) = self.items.last_mut() {
            run.seq_last = seq_last;
            run.tokens += tokens;
            return;
        }
        self.items.push(Item::Run(Run { seq_first, seq_last, tokens_before, tokens }));
    }

    /// Number of items.
    pub(crate) fn count(&self) -> u64 {
        let nodes: u64 = self.nodes.iter().map(|node| u64::from(node.count)).sum();
        nodes + num::to_u64(self.items.len())
    }

    /// The items that stand in the head: all of them unless there are many.
    pub(crate) fn newest(&self) -> &[Item] {
        &self.items
    }

    /// Keys of the nodes with their sizes.
    pub(crate) fn node_keys(&self, keys: &Keys) -> Vec<(alloc::string::String, u32)> {
        self.nodes.iter().map(|node| (keys.node(node.revision, node.number), node.bytes)).collect()
    }

    /// All items in order.
    ///
    /// # Errors
    ///
    /// `conflict` or `corrupt` when a node is missing; errors of the store.
    pub(crate) fn load(&self, reader: &mut Reader<'_>, keys: &Keys) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        let wanted = self.node_keys(keys);
        for ((key, _), value) in wanted.iter().zip(reader.immutable(&wanted)?) {
            items.extend(codec::decode::<Vec<Item>>(key, &value)?);
        }
        items.extend_from_slice(&self.items);
        Ok(items)
    }

    /// The context with `items[from..to]` replaced by `replacement`, and the nodes to write.
    ///
    /// Nodes outside the replaced range stay as they are.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the context would have more items than its root can refer to.
    pub(crate) fn replace(
        &self,
        keys: &Keys,
        revision: u64,
        items: &[Item],
        range: core::ops::Range<usize>,
        replacement: &[Item],
    ) -> Result<(Self, Vec<Put>)> {
        let mut writer = NodeWriter { keys, revision, number: 0, puts: Vec::new() };
        let mut segment: Vec<Item> = Vec::new();
        let mut nodes = Vec::new();
        let mut at = 0usize;
        let mut placed = false;
        // Each old node is kept when the range does not touch it; touched ones are merged.
        for node in &self.nodes {
            let end = at + num::to_usize(u64::from(node.count));
            let touched = range.start < end && at < range.end;
            if touched {
                take(&mut segment, items, at, end, &range, replacement, &mut placed);
            } else {
                writer.write(&mut segment, &mut nodes)?;
                nodes.push(*node);
            }
            at = end;
        }
        let inline_touched = range.end > at;
        if !inline_touched {
            writer.write(&mut segment, &mut nodes)?;
        }
        take(&mut segment, items, at, items.len(), &range, replacement, &mut placed);
        if segment.len() > limits::INLINE_ITEMS_MAX {
            let keep = segment.split_off(segment.len() - limits::INLINE_ITEMS_MAX / 4);
            writer.write(&mut segment, &mut nodes)?;
            segment = keep;
        }
        let mut context = Self { tokens: 0, rendered_tokens: 0, nodes, items: segment };
        if context.nodes.len() > limits::NODES_MAX {
            context = writer.rebuild(items, &range, replacement)?;
        }
        let removed = items.get(range).unwrap_or(&[]);
        let sum = |items: &[Item], of: fn(&Item) -> u64| items.iter().map(of).sum::<u64>();
        context.tokens = (self.tokens + sum(replacement, Item::tokens))
            .saturating_sub(sum(removed, Item::tokens));
        context.rendered_tokens = (self.rendered_tokens + sum(replacement, Item::rendered_tokens))
            .saturating_sub(sum(removed, Item::rendered_tokens));
        Ok((context, writer.puts))
    }
}

/// Appends `items[at..end]` to `segment`, with the replacement in place of the range.
fn take(
    segment: &mut Vec<Item>,
    items: &[Item],
    at: usize,
    end: usize,
    range: &core::ops::Range<usize>,
    replacement: &[Item],
    placed: &mut bool,
) {
    for (index, item) in items.iter().enumerate().take(end).skip(at) {
        if !range.contains(&index) {
            segment.push(*item);
        } else if !*placed {
            segment.extend_from_slice(replacement);
            *placed = true;
        }
    }
}

struct NodeWriter<'a> {
    keys: &'a Keys,
    revision: u64,
    number: u32,
    puts: Vec<Put>,
}

impl NodeWriter<'_> {
    /// Moves the items of `segment` into as many nodes as they need.
    fn write(&mut self, segment: &mut Vec<Item>, nodes: &mut Vec<NodeRef>) -> Result<()> {
        for items in segment.chunks(limits::NODE_ITEMS_MAX) {
            let value = codec::encode(&items)?;
            nodes.push(NodeRef {
                revision: self.revision,
                number: self.number,
                count: num::to_u32(items.len()),
                bytes: num::to_u32(value.len()),
            });
            self.puts.push(Put {
                key: self.keys.node(self.revision, self.number),
                value: Some(value),
            });
            self.number += 1;
        }
        segment.clear();
        Ok(())
    }

    /// Writes everything anew into full nodes, when condensation left too many small ones.
    fn rebuild(
        &mut self,
        items: &[Item],
        range: &core::ops::Range<usize>,
        replacement: &[Item],
    ) -> Result<Context> {
        self.puts.clear();
        self.number = 0;
        let mut all = Vec::new();
        take(&mut all, items, 0, items.len(), range, replacement, &mut false);
        let keep = all.split_off(all.len().saturating_sub(limits::INLINE_ITEMS_MAX / 4));
        let mut nodes = Vec::new();
        self.write(&mut all, &mut nodes)?;
        if nodes.len() > limits::NODES_MAX {
            return Err(Error::limit(format!(
                "the context would have more than {} items; compact with a lower target",
                limits::NODES_MAX * limits::NODE_ITEMS_MAX
            )));
        }
        Ok(Context { tokens: 0, rendered_tokens: 0, nodes, items: keep })
    }
}
