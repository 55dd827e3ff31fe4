//! Pack compaction: replaces packs of compacted messages by fewer compressed packs.
//!
//! In: the last seq that may be compressed. Out: puts and deletions, which `apply` adds to the
//! commit of a summary. One commit compresses the oldest packs, within bounds; later commits
//! continue. Reading and writing are two steps, because `apply` makes all reads before its
//! decisions.

use alloc::{rc::Rc, string::String, vec::Vec};

use crate::storage::{
    codec,
    compressed_pack::CompressedPackBuilder,
    head::ConversationHead,
    history::{self, MessageHistory},
    keys::ConversationKeys,
    pack::{DirectoryNode, Pack, PackRef},
    store::Put,
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int, limits, sort,
};

/// Most bytes of packs that one commit reads. A pack has less than 200 KiB, so a long history gives
/// at least 248 KiB, which is more than the texts of one compressed pack.
const READ_BYTES_MAX: u32 = 448 << 10;
/// Most directory nodes whose packs one commit compresses. Only tiny messages spread over more
/// nodes.
const NODES_MAX: u64 = 4;
/// Most packs that a compressed pack replaces before it ends. A compressed pack with messages of
/// this many packs ends at the next aligned seq, however small it is. The reason: each replaced
/// pack costs the commit one deletion.
const PACKS_MAX: usize = 64;
/// Bytes of a commit that pack compaction leaves for records that the commit adds later.
const COMMIT_BYTES_LEFT: usize = 64 << 10;

/// The packs that a commit may compress, with their directory nodes.
#[derive(Debug)]
pub(crate) struct PackCompactionInput {
    /// Last seq that may be compressed.
    seq_last: u64,
    packs: Vec<(PackRef, Rc<Pack>)>,
    /// Numbers and contents of the packs' directory nodes; a node that is not stored yet is empty.
    nodes: Vec<(u64, DirectoryNode)>,
}

/// Lists the keys of the packs that [`read_compactable_packs`] reads and that a commit then joins
/// into a compressed pack, with the sizes of their values, so that a caller can prefetch them with
/// other records. `until` is the last seq that may be compressed.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn list_pack_keys(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    until: u64,
) -> Result<Vec<(String, u32)>> {
    let refs = select_pack_refs(session, history, until)?;
    Ok(history.list_pack_keys(&refs))
}

/// Lists the stored directory nodes among four: the node of the first message that is not
/// compressed, and the next three.
pub(crate) fn list_directory_nodes(history: &MessageHistory<'_>) -> Vec<u64> {
    let first = history::directory_node(history.head.compressed_through + 1);
    (first..first + NODES_MAX).filter(|node| is_node_stored(history, *node)).collect()
}

/// Returns whether a directory node is stored: the head no longer lists the first pack of its span.
fn is_node_stored(history: &MessageHistory<'_>, node: u64) -> bool {
    node * limits::DIRECTORY_SPAN + 1 < history.recent_seq_first()
}

/// Selects the packs after the compressed packs up to seq `until`, as many as one commit may read.
/// Returns no packs if the packs are too few to fill a compressed pack.
fn select_pack_refs(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    until: u64,
) -> Result<Vec<PackRef>> {
    let from = history.head.compressed_through + 1;
    let last = (history::directory_node(from) + NODES_MAX) * limits::DIRECTORY_SPAN;
    let until = until.min(last);
    if from > until {
        return Ok(Vec::new());
    }
    let mut refs = history.find_pack_refs(session, from, until)?;
    let mut bytes = 0u32;
    let fits = |pack: &&PackRef| {
        bytes = bytes.saturating_add(pack.bytes);
        bytes <= READ_BYTES_MAX
    };
    let count = refs.iter().take(limits::PUTS_MAX).take_while(fits).count().max(1);
    refs.truncate(count);
    let bytes: u32 = refs.iter().map(|pack| pack.bytes).sum();
    // A compressed pack can end if it has enough bytes or packs, or at the end of a directory node.
    let is_filled = int::to_usize(u64::from(bytes)) >= limits::COMPRESSED_TEXTS_BYTES_MIN
        || refs.len() >= PACKS_MAX
        || history::directory_node(from) != history::directory_node(until + 1);
    Ok(if is_filled { refs } else { Vec::new() })
}

/// Reads the packs up to seq `until` that a commit may compress; `None`: there are too few.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head, or a pack does not match its reference; `unsupported`: a record
/// has a newer format; errors of the store.
pub(crate) fn read_compactable_packs(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    until: u64,
) -> Result<Option<PackCompactionInput>> {
    let refs = select_pack_refs(session, history, until)?;
    let Some(last) = refs.last() else { return Ok(None) };
    let head = history.head;
    let keys = history.keys;
    let wanted = history.list_pack_keys(&refs);
    let values = session.read_immutable(&wanted)?;
    let mut packs = Vec::with_capacity(refs.len());
    for (place, value) in refs.iter().zip(values) {
        let pack = history.load_pack(session, place, &value)?;
        if pack.to_pack_ref(place.bytes) != *place {
            let key = place.key(keys);
            return Err(Error::corrupt_store(format_args!("`{key}` does not match its reference")));
        }
        packs.push((*place, pack));
    }
    let flushed_last = history.recent_seq_first() - 1;
    let from = history::directory_node(head.compressed_through + 1);
    let numbers = from..=history::directory_node(last.seq_last());
    let mut nodes = Vec::new();
    for number in numbers {
        let seq_last = flushed_last.min((number + 1) * limits::DIRECTORY_SPAN);
        let stored = match is_node_stored(history, number) {
            true => session.read_directory(keys, &[(number, seq_last)])?.pop(),
            false => None,
        };
        let mut node = stored.map(|node| (*node).clone()).unwrap_or_default();
        // A newer head may have written the node; then the commit fails, whatever it contains.
        node.packs.retain(|pack| pack.seq_first <= flushed_last);
        nodes.push((number, node));
    }
    Ok(Some(PackCompactionInput { seq_last: until, packs, nodes }))
}

/// Finished compressed packs, with the sizes and bounds of their commit.
struct ClosedPacks {
    packs: Vec<(PackRef, Vec<u8>)>,
    /// Running hash after the last finished pack, or before the first.
    frontier: [u8; 16],
    /// Bytes of the compressed texts before deflating.
    texts: usize,
    /// Bytes of the commit so far, with reserves for what is added later.
    bytes: usize,
    bytes_max: usize,
}

impl ClosedPacks {
    /// Finishes a pack if the commit has room for it; returns whether the commit may take a further
    /// pack. `has_room` tells whether the number of puts allows this pack.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the value is larger than 256 KiB, which the size limits prevent.
    fn push_full_pack(&mut self, full: &CompressedPackBuilder, has_room: bool) -> Result<bool> {
        if !has_room || self.bytes.saturating_add(full.bytes_max()) > self.bytes_max {
            return Ok(false);
        }
        let (place, value) = full.finish()?;
        self.bytes += value.len();
        self.texts += full.texts_bytes();
        self.frontier = full.last_frontier();
        self.packs.push((place, value));
        Ok(self.texts < limits::PACK_COMPACTION_BYTES_MAX)
    }
}

impl PackCompactionInput {
    /// Compresses as many packs as fit the commit beside `puts`; changes the head and returns the
    /// puts to add. If no compressed pack becomes complete, or none has room in the commit, changes
    /// nothing and returns no puts.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large, which the size limits prevent.
    pub(crate) fn compact_packs(
        &self,
        keys: &ConversationKeys,
        head: &mut ConversationHead,
        puts: &[Put],
    ) -> Result<Vec<Put>> {
        let used: usize = puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum();
        // The commit also writes directory nodes, and the rest of a partly compressed pack.
        let rest = self.packs.iter().map(|(place, _)| place.bytes).max().unwrap_or(0);
        let nodes: usize = self.nodes.iter().map(|(_, node)| estimate_node_bytes(node)).sum();
        let mut closed = ClosedPacks {
            packs: Vec::new(),
            frontier: head.compressed_frontier,
            texts: 0,
            bytes: int::to_usize(u64::from(rest)).saturating_add(used + nodes + COMMIT_BYTES_LEFT),
            bytes_max: int::to_usize(u64::from(limits::CALL_BYTES_MAX)),
        };
        // Four puts stay free: journal entry, head, a breaker, and a spare.
        let puts_max = limits::PUTS_MAX.saturating_sub(puts.len() + 4);
        self.close_packs(head.compressed_through, &mut closed, puts_max)?;
        match closed.packs.last() {
            Some((last, _)) => self.write_compacted(keys, head, last.seq_last(), closed),
            None => Ok(Vec::new()),
        }
    }

    /// Compresses the packs in order into `closed`, while the commit has room.
    fn close_packs(
        &self,
        compressed_through: u64,
        closed: &mut ClosedPacks,
        puts_max: usize,
    ) -> Result<()> {
        let mut open = None::<(CompressedPackBuilder, usize)>;
        for (index, (place, pack)) in self.packs.iter().enumerate() {
            let mut tokens_before = pack.tokens_before;
            let messages = pack.messages.iter().zip(&pack.frontiers);
            for (seq, (message, frontier)) in (place.seq_first..).zip(messages) {
                let before = tokens_before;
                tokens_before += u64::from(message.tokens);
                if seq > self.seq_last {
                    return Ok(());
                }
                if seq <= compressed_through {
                    continue;
                }
                // The commit deletes the packs up to this pack (`index + 1`) and writes the rest of
                // the last one. It also writes all nodes, the finished packs and the next one.
                let puts = |closed: &ClosedPacks| index + 3 + self.nodes.len() + closed.packs.len();
                let can_take = |(open, _): &mut (CompressedPackBuilder, usize)| {
                    open.can_take(pack.dialect, message)
                };
                if let Some((full, _)) = open.take_if(|open| !can_take(open)) {
                    let has_room = puts(closed) <= puts_max;
                    if !closed.push_full_pack(&full, has_room)? {
                        return Ok(());
                    }
                }
                let begin = || {
                    (CompressedPackBuilder::new(seq, pack.dialect, before, closed.frontier), index)
                };
                let (builder, first) = open.get_or_insert_with(begin);
                builder.push(message, *frontier);
                let is_full = builder.is_full() || index + 1 - *first >= PACKS_MAX;
                let ends = (is_full && seq % limits::COMPRESSED_PACK_ALIGNMENT == 0)
                    || seq % limits::DIRECTORY_SPAN == 0;
                if let Some((full, _)) = open.take_if(|_| ends) {
                    let has_room = puts(closed) <= puts_max;
                    if !closed.push_full_pack(&full, has_room)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Replaces the packs up to seq `end` by the finished packs: returns the puts for the store and
    /// the directory, and changes the head.
    fn write_compacted(
        &self,
        keys: &ConversationKeys,
        head: &mut ConversationHead,
        end: u64,
        closed: ClosedPacks,
    ) -> Result<Vec<Put>> {
        let mut puts = Vec::new();
        let mut split = None;
        for (place, pack) in self.packs.iter().filter(|(place, _)| place.seq_first <= end) {
            puts.push(Put { key: place.key(keys), value: None });
            if place.seq_last() > end {
                let rest = split_pack_after(pack, end);
                let value = codec::encode(&rest)?;
                split = Some((place.seq_first, rest.to_pack_ref(int::to_u32(value.len()))));
                puts.push(Put { key: keys.pack_key(rest.seq_first), value: Some(value) });
            }
        }
        let remaining = |pack: &PackRef| match &split {
            Some((seq_first, rest)) if *seq_first == pack.seq_first => Some(*rest),
            _ => (pack.seq_first > end || pack.is_compressed).then_some(*pack),
        };
        head.packs = head.packs.iter().filter_map(remaining).collect();
        for (number, node) in &self.nodes {
            let mut packs: Vec<PackRef> = node.packs.iter().filter_map(remaining).collect();
            let places = closed.packs.iter().map(|(place, _)| *place);
            packs.extend(places.filter(|new| history::directory_node(new.seq_first) == *number));
            sort::sort_by(&mut packs, &mut |a, b| a.seq_first.cmp(&b.seq_first));
            if packs != node.packs {
                let value = codec::encode(&DirectoryNode { packs })?;
                puts.push(Put { key: keys.directory_key(*number), value: Some(value) });
            }
        }
        let written = closed.packs.into_iter();
        puts.extend(written.map(|(place, value)| Put { key: place.key(keys), value: Some(value) }));
        (head.compressed_through, head.compressed_frontier) = (end, closed.frontier);
        Ok(puts)
    }
}

/// Estimates, from above, the bytes of a directory node with its new references.
fn estimate_node_bytes(node: &DirectoryNode) -> usize {
    // A reference has at most 24 bytes; the estimate allows for 64 new references.
    24 * (node.packs.len() + 64)
}

/// Returns a pack of the messages of `pack` after seq `end`.
fn split_pack_after(pack: &Pack, end: u64) -> Pack {
    let count = int::to_usize((end + 1).saturating_sub(pack.seq_first));
    let (compressed, rest) = pack.messages.split_at_checked(count).unwrap_or((&[], &[]));
    let tokens: u64 = compressed.iter().map(|message| u64::from(message.tokens)).sum();
    Pack {
        seq_first: end + 1,
        dialect: pack.dialect,
        tokens_before: pack.tokens_before + tokens,
        messages: rest.to_vec(),
        frontiers: pack.frontiers.get(count..).unwrap_or(&[]).to_vec(),
    }
}
