//! The context: the ordered items that together cover every message exactly once.
//!
//! Items are runs of raw messages, summaries and withdrawn messages. The head holds the root of the
//! context with the newest items; immutable nodes hold older items. A replacement writes new nodes
//! and deletes none, so the context root in an old journal entry still leads to the old context.

use alloc::vec::Vec;
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    store::Put,
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int, limits,
};

/// A run of consecutive raw messages.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct MessageRun {
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
    /// Tokens of the summary text.
    pub(crate) tokens: u32,
    /// Tokens of the summary as an assembly renders it: the text and its XML element.
    pub(crate) rendered_tokens: u32,
    /// Size of the stored summary record in bytes.
    pub(crate) bytes: u32,
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    /// Whether the record of the summary is provisional; stored as the case of [`StoredItem`].
    #[serde(skip)]
    pub(crate) is_provisional: bool,
}

/// One item of the context.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "StoredItem", into = "StoredItem")]
pub(crate) enum ContextItem {
    /// Raw messages.
    Run(MessageRun),
    /// A summary.
    Summary(SummaryItem),
    /// Messages that are set aside, are other forms, or that a new session withdrew. The item
    /// keeps their place, costs no tokens and is not rendered. Two withdrawn items are never
    /// neighbours.
    Withdrawn { seq_first: u64, seq_last: u64 },
}

/// The stored form of [`ContextItem`]; the order of the variants is part of the format.
#[derive(Deserialize, Serialize)]
enum StoredItem {
    Run(MessageRun),
    Summary(SummaryItem),
    Withdrawn { seq_first: u64, seq_last: u64 },
    Provisional(SummaryItem),
}

impl From<StoredItem> for ContextItem {
    fn from(stored: StoredItem) -> Self {
        match stored {
            StoredItem::Run(run) => Self::Run(run),
            StoredItem::Summary(summary) => Self::Summary(summary),
            StoredItem::Withdrawn { seq_first, seq_last } => {
                Self::Withdrawn { seq_first, seq_last }
            }
            StoredItem::Provisional(summary) => {
                Self::Summary(SummaryItem { is_provisional: true, ..summary })
            }
        }
    }
}

impl From<ContextItem> for StoredItem {
    fn from(item: ContextItem) -> Self {
        match item {
            ContextItem::Run(run) => Self::Run(run),
            ContextItem::Summary(summary) if summary.is_provisional => Self::Provisional(summary),
            ContextItem::Summary(summary) => Self::Summary(summary),
            ContextItem::Withdrawn { seq_first, seq_last } => {
                Self::Withdrawn { seq_first, seq_last }
            }
        }
    }
}

impl ContextItem {
    /// Returns the tokens of a run's messages or of a summary's text; 0 for withdrawn messages.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Run(run) => run.tokens,
            Self::Summary(summary) => u64::from(summary.tokens),
            Self::Withdrawn { .. } => 0,
        }
    }

    /// Returns the tokens of the item as an assembly renders it; 0 for withdrawn messages. Only
    /// summaries have other tokens here than in [`Self::tokens`].
    pub(crate) fn rendered_tokens(&self) -> u64 {
        match self {
            Self::Run(run) => run.tokens,
            Self::Summary(summary) => u64::from(summary.rendered_tokens),
            Self::Withdrawn { .. } => 0,
        }
    }

    /// Returns the seq of the first message that the item covers.
    pub(crate) fn seq_first(&self) -> u64 {
        match self {
            Self::Run(run) => run.seq_first,
            Self::Summary(summary) => summary.seq_first,
            Self::Withdrawn { seq_first, .. } => *seq_first,
        }
    }

    /// Returns the seq of the last message that the item covers.
    pub(crate) fn seq_last(&self) -> u64 {
        match self {
            Self::Run(run) => run.seq_last,
            Self::Summary(summary) => summary.seq_last,
            Self::Withdrawn { seq_last, .. } => *seq_last,
        }
    }

    /// Returns the depth of a summary; `None`: the item is no summary.
    pub(crate) fn depth(&self) -> Option<u32> {
        match self {
            Self::Summary(summary) => Some(summary.depth),
            Self::Run(_) | Self::Withdrawn { .. } => None,
        }
    }

    /// Returns 1 for a provisional summary, else 0.
    fn count_provisional(&self) -> u64 {
        u64::from(matches!(self, Self::Summary(summary) if summary.is_provisional))
    }
}

impl SoundRecord for ContextItem {
    fn is_sound(&self) -> bool {
        let before = match self {
            Self::Run(run) => run.tokens_before,
            Self::Summary(_) | Self::Withdrawn { .. } => 0,
        };
        let (first, last) = (self.seq_first(), self.seq_last());
        first > 0
            && first <= last
            && self.depth().unwrap_or(0) < 1 << 20
            && codec::are_countable(&[last, before, self.tokens()])
    }
}

impl SoundRecord for Vec<ContextItem> {
    fn is_sound(&self) -> bool {
        self.iter().all(SoundRecord::is_sound)
    }
}

impl SoundRecord for Context {
    fn is_sound(&self) -> bool {
        self.nodes.len() <= limits::NODES_MAX
            && self.items.is_sound()
            && codec::are_countable(&[self.tokens, self.rendered_tokens, self.provisional])
    }
}

/// A reference to a stored node of context items.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ContextNodeRef {
    revision: u64,
    number: u32,
    count: u32,
    bytes: u32,
    /// First bytes of the node's hash. They detect another node under the same key, for example
    /// after the restore of a backup.
    hash_prefix: [u8; 4],
}

/// The root of the context: references to nodes of older items, then the newest items.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Context {
    pub(crate) tokens: u64,
    pub(crate) rendered_tokens: u64,
    /// Number of items that are provisional summaries.
    pub(crate) provisional: u64,
    nodes: Vec<ContextNodeRef>,
    items: Vec<ContextItem>,
}

impl Context {
    /// Adds `count` messages from `seq_first` on: extends the run that ends the context, or begins
    /// a new run. The caller ensures that `seq_first` is the next seq.
    pub(crate) fn append_messages(
        &mut self,
        seq_first: u64,
        count: u64,
        tokens_before: u64,
        tokens: u64,
    ) {
        self.tokens += tokens;
        self.rendered_tokens += tokens;
        let seq_last = seq_first + count - 1;
        if let Some(ContextItem::Run(run)) = self.items.last_mut() {
            run.seq_last = seq_last;
            run.tokens += tokens;
            return;
        }
        self.items.push(ContextItem::Run(MessageRun {
            seq_first,
            seq_last,
            tokens_before,
            tokens,
        }));
    }

    /// Returns the number of items.
    pub(crate) fn count_items(&self) -> u64 {
        let nodes: u64 = self.nodes.iter().map(|node| u64::from(node.count)).sum();
        nodes + int::to_u64(self.items.len())
    }

    /// Returns the items in the head: all items, or the newest items of a long context.
    pub(crate) fn inline_items(&self) -> &[ContextItem] {
        &self.items
    }

    /// Returns the keys of the nodes, oldest first, with the sizes of their values in bytes.
    pub(crate) fn node_keys(&self, keys: &ConversationKeys) -> Vec<(alloc::string::String, u32)> {
        self.nodes
            .iter()
            .map(|node| (keys.context_node_key(node.revision, node.number), node.bytes))
            .collect()
    }

    /// Reads all items, oldest first.
    ///
    /// # Errors
    ///
    /// `conflict`: a node is missing, and the head has changed; `corrupt`: a node is damaged, or is
    /// missing under an unchanged head; `unsupported`: a node has a newer format; errors of the
    /// store.
    pub(crate) fn load_items(
        &self,
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
    ) -> Result<Vec<ContextItem>> {
        let mut items = Vec::new();
        let wanted = self.node_keys(keys);
        for (node, (key, size)) in self.nodes.iter().zip(&wanted) {
            let is_node = |value: &[u8]| node_hash_prefix(value) == node.hash_prefix;
            let value = session.read_checked(key, *size, &is_node)?;
            items.extend(codec::decode::<Vec<ContextItem>>(key, &value)?);
        }
        items.extend_from_slice(&self.items);
        Ok(items)
    }

    /// Replaces `items[range]` by `replacement`; returns the new context and the nodes to write.
    ///
    /// `items` are all items of this context. Nodes outside the range are kept. If there would be
    /// more than 32 nodes, all items are written anew instead.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the items need more than 32 nodes.
    pub(crate) fn replace_items(
        &self,
        keys: &ConversationKeys,
        revision: u64,
        items: &[ContextItem],
        range: core::ops::Range<usize>,
        replacement: &[ContextItem],
    ) -> Result<(Self, Vec<Put>)> {
        let mut writer = ContextNodeWriter { keys, revision, number: 0, puts: Vec::new() };
        let edit = ContextEdit { items, range, replacement };
        let mut segment: Vec<ContextItem> = Vec::new();
        let mut nodes = Vec::new();
        let mut at = 0usize;
        // Nodes outside the range are kept; the items of the other nodes are written anew.
        for node in &self.nodes {
            let end = at + int::to_usize(u64::from(node.count));
            if edit.range.start < end && at < edit.range.end {
                edit.append_items(&mut segment, at..end);
            } else {
                writer.write_nodes(&mut segment, &mut nodes)?;
                nodes.push(*node);
            }
            at = end;
        }
        if edit.range.end <= at {
            writer.write_nodes(&mut segment, &mut nodes)?;
        }
        edit.append_items(&mut segment, at..items.len());
        // One inline place stays free for a run that an append may begin: a full list moves to
        // nodes.
        if segment.len() >= limits::INLINE_ITEMS_MAX {
            let keep = segment.split_off(segment.len() - limits::INLINE_ITEMS_MAX / 4);
            writer.write_nodes(&mut segment, &mut nodes)?;
            segment = keep;
        }
        let mut context =
            Self { tokens: 0, rendered_tokens: 0, provisional: 0, nodes, items: segment };
        if context.nodes.len() > limits::NODES_MAX {
            context = writer.rebuild_nodes(&edit)?;
        }
        let removed = items.get(edit.range).unwrap_or(&[]);
        let sum =
            |items: &[ContextItem], of: fn(&ContextItem) -> u64| items.iter().map(of).sum::<u64>();
        context.tokens = (self.tokens + sum(replacement, ContextItem::tokens))
            .saturating_sub(sum(removed, ContextItem::tokens));
        context.rendered_tokens = (self.rendered_tokens
            + sum(replacement, ContextItem::rendered_tokens))
        .saturating_sub(sum(removed, ContextItem::rendered_tokens));
        context.provisional = (self.provisional + sum(replacement, ContextItem::count_provisional))
            .saturating_sub(sum(removed, ContextItem::count_provisional));
        Ok((context, writer.puts))
    }
}

/// The replacement of a range of the context's items.
struct ContextEdit<'a> {
    /// All items before the replacement.
    items: &'a [ContextItem],
    range: core::ops::Range<usize>,
    replacement: &'a [ContextItem],
}

impl ContextEdit<'_> {
    /// Appends the items at `indices` to `segment` without the items of the range. The replacement
    /// takes the place of the range's first item; an empty range is at the end.
    fn append_items(&self, segment: &mut Vec<ContextItem>, indices: core::ops::Range<usize>) {
        let items = self.items.iter().enumerate().take(indices.end).skip(indices.start);
        for (index, item) in items {
            if !self.range.contains(&index) {
                segment.push(*item);
            } else if index == self.range.start {
                segment.extend_from_slice(self.replacement);
            }
        }
        let count = self.items.len();
        if self.range.start == count && indices.end == count {
            segment.extend_from_slice(self.replacement);
        }
    }
}

fn node_hash_prefix(value: &[u8]) -> [u8; 4] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm node", value]))
}

struct ContextNodeWriter<'a> {
    keys: &'a ConversationKeys,
    revision: u64,
    number: u32,
    puts: Vec<Put>,
}

impl ContextNodeWriter<'_> {
    /// Writes the items of `segment` as nodes of at most 128 items, appends references to `nodes`,
    /// and empties `segment`.
    fn write_nodes(
        &mut self,
        segment: &mut Vec<ContextItem>,
        nodes: &mut Vec<ContextNodeRef>,
    ) -> Result<()> {
        for items in segment.chunks(limits::NODE_ITEMS_MAX) {
            let value = codec::encode(&items)?;
            nodes.push(ContextNodeRef {
                revision: self.revision,
                number: self.number,
                count: int::to_u32(items.len()),
                bytes: int::to_u32(value.len()),
                hash_prefix: node_hash_prefix(&value),
            });
            self.puts.push(Put {
                key: self.keys.context_node_key(self.revision, self.number),
                value: Some(value),
            });
            self.number += 1;
        }
        segment.clear();
        Ok(())
    }

    /// Writes all items of the edited context anew: the newest 8 inline, the others in nodes of
    /// 128. Needed when replacements left too many small nodes.
    fn rebuild_nodes(&mut self, edit: &ContextEdit<'_>) -> Result<Context> {
        self.puts.clear();
        self.number = 0;
        let mut all = Vec::new();
        edit.append_items(&mut all, 0..edit.items.len());
        let keep = all.split_off(all.len().saturating_sub(limits::INLINE_ITEMS_MAX / 4));
        let mut nodes = Vec::new();
        self.write_nodes(&mut all, &mut nodes)?;
        if nodes.len() > limits::NODES_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "the context must have at most {} items; compact with a lower target",
                limits::NODES_MAX * limits::NODE_ITEMS_MAX
            )));
        }
        Ok(Context { tokens: 0, rendered_tokens: 0, provisional: 0, nodes, items: keep })
    }
}

#[cfg(test)]
impl Context {
    /// Creates a root with every list at its bound.
    pub(crate) fn full(item: impl Fn(u64) -> ContextItem) -> Self {
        let node = ContextNodeRef {
            revision: 1 << 34,
            number: 47,
            count: 128,
            bytes: 5_000,
            hash_prefix: [255; 4],
        };
        Self {
            tokens: 1 << 39,
            rendered_tokens: 1 << 39,
            provisional: 4_096,
            nodes: alloc::vec![node; limits::NODES_MAX],
            items: (0..int::to_u64(limits::INLINE_ITEMS_MAX)).map(item).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{store::Store, store_session::InstanceCache};
    use alloc::{collections::BTreeMap, string::String};

    #[derive(Default)]
    struct Map(BTreeMap<String, Vec<u8>>);

    impl Store for Map {
        fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
            Ok(keys.iter().map(|key| self.0.get(key).cloned()).collect())
        }
        fn scan(
            &mut self,
            _: &str,
            _: &str,
            _: bool,
            _: u32,
            _: u32,
        ) -> Result<(Vec<crate::storage::store::Entry>, bool)> {
            Ok((Vec::new(), false))
        }
        fn commit(&mut self, _: &[crate::storage::store::Guard], puts: &[Put]) -> Result<()> {
            for put in puts {
                self.0.insert(put.key.clone(), put.value.clone().unwrap_or_default());
            }
            Ok(())
        }
    }

    fn item(seq_first: u64, seq_last: u64) -> ContextItem {
        let id = (seq_first * 1_000_000 + seq_last).to_be_bytes();
        let (depth, tokens, rendered_tokens, bytes) = (0, 7, 9, 100);
        ContextItem::Summary(SummaryItem {
            id,
            depth,
            tokens,
            rendered_tokens,
            bytes,
            seq_first,
            seq_last,
            is_provisional: seq_first.is_multiple_of(3),
        })
    }

    /// Goal: a replacement in the context equals a replacement in a plain list. Method: 3,000
    /// replacements and appends at pseudo-random places, compared with a plain list.
    #[test]
    fn replacing_equals_replacing_in_a_plain_list() {
        let keys = ConversationKeys::new("c").unwrap();
        let mut store = Map::default();
        let mut context = Context::default();
        let mut plain: Vec<ContextItem> = Vec::new();
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below.max(1)
        };
        let mut messages = 0u64;
        for revision in 1..3_000u64 {
            let grow = plain.len() < 600 && random(3) > 0;
            let (range, replacement) = if grow || plain.len() < 4 {
                let from = messages + 1;
                messages += 4;
                context.append_messages(from, 4, from - 1, 4);
                if let Some(ContextItem::Run(run)) = plain.last_mut() {
                    (run.seq_last, run.tokens) = (messages, run.tokens + 4);
                } else {
                    let (seq_first, seq_last) = (from, messages);
                    let tokens_before = from - 1;
                    plain.push(ContextItem::Run(MessageRun {
                        seq_first,
                        seq_last,
                        tokens_before,
                        tokens: 4,
                    }));
                }
                let last = plain.len() - 1;
                let first = plain[last].seq_first();
                (last..last + 1, alloc::vec![item(first, messages)])
            } else {
                let from = int::to_usize(random(int::to_u64(plain.len() - 2)));
                let count = 2 + int::to_usize(random(20));
                let to = (from + count).min(plain.len());
                (from..to, alloc::vec![item(plain[from].seq_first(), plain[to - 1].seq_last())])
            };
            let (next, puts) = context
                .replace_items(&keys, revision, &plain, range.clone(), &replacement)
                .unwrap();
            store.commit(&[], &puts).unwrap();
            plain.splice(range, replacement);
            context = next;
            let mut cache = InstanceCache::default();
            let mut session = StoreSession::new(&mut store, &mut cache);
            let loaded = context.load_items(&mut session, &keys).unwrap();
            assert_eq!(loaded, plain, "revision {revision}");
            assert_eq!(context.tokens, plain.iter().map(ContextItem::tokens).sum::<u64>());
            let provisional: u64 = plain.iter().map(ContextItem::count_provisional).sum();
            assert_eq!(context.provisional, provisional);
            assert_eq!(context.count_items(), int::to_u64(plain.len()));
            assert!(context.nodes.len() <= limits::NODES_MAX);
            assert!(context.items.len() <= limits::INLINE_ITEMS_MAX);
        }
    }
}
