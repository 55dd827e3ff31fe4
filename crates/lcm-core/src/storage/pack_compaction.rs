//! Sealing: packs whose messages are no longer the newest raw ones become fewer, deflated ones.
//!
//! In: how far the history may be sealed. Out: what a commit writes and deletes for it. Sealing is
//! part of a commit that is made anyway, never more than a bounded piece, oldest first; what is
//! left over comes with a later one. Reading and writing are two steps, so that all reads of a call
//! come before anything is decided.

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

/// Bytes of packs that one commit seals from. A pack has less than 200 KiB, so that at least 248
/// are read when there are as many: more than a sealed pack is made of, so that one is closed.
const READ_BYTES_MAX: u32 = 448 << 10;
/// Directory nodes whose packs one commit seals: more only when messages are tiny, and then the
/// nodes are most of the work.
const NODES_MAX: u64 = 4;
/// Packs from which on a sealed one ends at the next aligned seq, too: each is one deletion of the
/// commit.
const PACKS_MAX: usize = 64;
/// Bytes of a commit that sealing leaves to what the commit is made for.
const COMMIT_BYTES_LEFT: usize = 64 << 10;

/// What may be sealed, read and not yet decided.
#[derive(Debug)]
pub(crate) struct PackCompactionInput {
    /// Last seq that may be sealed.
    seq_last: u64,
    packs: Vec<(PackRef, Rc<Pack>)>,
    /// The directory nodes of the packs, as far as there are any yet.
    nodes: Vec<(u64, DirectoryNode)>,
}

/// Keys of the packs that sealing may read, with their sizes, to be read together with others.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn list_pack_keys(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    until: u64,
) -> Result<Vec<(String, u32)>> {
    let refs = select_pack_refs(reader, history, until)?;
    Ok(refs.iter().map(|pack| (pack.key(history.keys), pack.bytes)).collect())
}

/// Directory nodes that sealing reads: those that exist around the first message not sealed.
pub(crate) fn list_directory_nodes(history: &MessageHistory<'_>) -> Vec<u64> {
    let first = history::directory_node(history.head.compressed_through + 1);
    (first..first + NODES_MAX).filter(|node| is_node_stored(history, *node)).collect()
}

/// Whether a directory node exists: a pack of its span has left the head.
fn is_node_stored(history: &MessageHistory<'_>, node: u64) -> bool {
    node * limits::DIRECTORY_SPAN + 1 < history.recent_seq_first()
}

/// The packs behind what is sealed, as many as one commit may seal from; none when they would not
/// fill a sealed pack.
fn select_pack_refs(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    until: u64,
) -> Result<Vec<PackRef>> {
    let from = history.head.compressed_through + 1;
    let last = (history::directory_node(from) + NODES_MAX) * limits::DIRECTORY_SPAN;
    let until = until.min(last);
    if from > until {
        return Ok(Vec::new());
    }
    let mut refs = history.find_pack_refs(reader, from, until)?;
    let mut bytes = 0u32;
    let fits = |pack: &&PackRef| {
        bytes = bytes.saturating_add(pack.bytes);
        bytes <= READ_BYTES_MAX
    };
    let count = refs.iter().take(limits::PUTS_MAX).take_while(fits).count().max(1);
    refs.truncate(count);
    let bytes: u32 = refs.iter().map(|pack| pack.bytes).sum();
    // A pack is closed by its text, its packs, or the end of a directory node.
    let closes = int::to_usize(u64::from(bytes)) >= limits::COMPRESSED_TEXTS_BYTES_MIN
        || refs.len() >= PACKS_MAX
        || history::directory_node(from) != history::directory_node(until + 1);
    Ok(if closes { refs } else { Vec::new() })
}

/// Reads what may be sealed; `None`: nothing.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn read_compactable_packs(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    until: u64,
) -> Result<Option<PackCompactionInput>> {
    let refs = select_pack_refs(reader, history, until)?;
    let Some(last) = refs.last() else { return Ok(None) };
    let head = history.head;
    let keys = history.keys;
    let wanted: Vec<(String, u32)> = refs.iter().map(|pack| (pack.key(keys), pack.bytes)).collect();
    let values = reader.read_immutable(&wanted)?;
    let mut packs = Vec::with_capacity(refs.len());
    for (place, value) in refs.iter().zip(values) {
        let pack = history.load_pack(reader, place, &value)?;
        if pack.to_pack_ref(place.bytes) != *place {
            let key = place.key(keys);
            return Err(Error::corrupt_store(format_args!("`{key}` is not as the directory says")));
        }
        packs.push((*place, pack));
    }
    let flushed_last = history.recent_seq_first() - 1;
    let from = history::directory_node(head.compressed_through + 1);
    let numbers = from..=history::directory_node(last.seq_last());
    let mut nodes = Vec::new();
    for number in numbers {
        let reach = flushed_last.min((number + 1) * limits::DIRECTORY_SPAN);
        let known = match is_node_stored(history, number) {
            true => reader.read_directory(keys, &[(number, reach)])?.pop(),
            false => None,
        };
        let mut node = known.map(|node| (*node).clone()).unwrap_or_default();
        // It may have grown since this head; the commit fails then, and what it says is no matter.
        node.packs.retain(|pack| pack.seq_first <= flushed_last);
        nodes.push((number, node));
    }
    Ok(Some(PackCompactionInput { seq_last: until, packs, nodes }))
}

/// Sealed packs that are to be written, and what the commit has room for.
struct ClosedPacks {
    packs: Vec<(PackRef, Vec<u8>)>,
    /// Running hash after the last of them.
    frontier: [u8; 16],
    texts: usize,
    bytes: usize,
    bytes_max: usize,
}

impl ClosedPacks {
    /// Takes a pack that is full; `false`: there is no room, or enough was sealed.
    ///
    /// # Errors
    ///
    /// As [`Sealer::finish`].
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
    /// Seals as much as the commit has room for beside `puts`, in the head and in what is returned.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large, which the bounds do not allow.
    pub(crate) fn compact_packs(
        &self,
        keys: &ConversationKeys,
        head: &mut ConversationHead,
        puts: &[Put],
    ) -> Result<Vec<Put>> {
        let taken: usize = puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum();
        // Beside the sealed packs the nodes are written, and the pack that is sealed in part.
        let left = self.packs.iter().map(|(place, _)| place.bytes).max().unwrap_or(0);
        let nodes: usize = self.nodes.iter().map(|(_, node)| estimate_node_bytes(node)).sum();
        let mut closed = ClosedPacks {
            packs: Vec::new(),
            frontier: head.compressed_frontier,
            texts: 0,
            bytes: int::to_usize(u64::from(left)).saturating_add(taken + nodes + COMMIT_BYTES_LEFT),
            bytes_max: int::to_usize(u64::from(limits::CALL_BYTES_MAX)),
        };
        // Journal, head, a guard of a model, and one to spare.
        let puts_max = limits::PUTS_MAX.saturating_sub(puts.len() + 4);
        self.close_packs(head.compressed_through, &mut closed, puts_max)?;
        match closed.packs.last() {
            Some((last, _)) => self.write_compacted(keys, head, last.seq_last(), closed),
            None => Ok(Vec::new()),
        }
    }

    /// Makes sealed packs, as many as fit the bounds.
    fn close_packs(&self, sealed: u64, closed: &mut ClosedPacks, puts_max: usize) -> Result<()> {
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
                if seq <= sealed {
                    continue;
                }
                // The packs up to this one are deleted, one of them is written anew.
                let puts = |closed: &ClosedPacks| index + 3 + self.nodes.len() + closed.packs.len();
                let takes = |(open, _): &mut (CompressedPackBuilder, usize)| {
                    open.can_take(pack.dialect, message)
                };
                if let Some((full, _)) = open.take_if(|open| !takes(open)) {
                    let has_room = puts(closed) <= puts_max;
                    if !closed.push_full_pack(&full, has_room)? {
                        return Ok(());
                    }
                }
                let begin = || {
                    (CompressedPackBuilder::new(seq, pack.dialect, before, closed.frontier), index)
                };
                let (sealer, first) = open.get_or_insert_with(begin);
                sealer.push(message, *frontier);
                let is_full = sealer.is_full() || index + 1 - *first >= PACKS_MAX;
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

    /// Puts the sealed packs in the place of those up to `end`.
    fn write_compacted(
        &self,
        keys: &ConversationKeys,
        head: &mut ConversationHead,
        end: u64,
        closed: ClosedPacks,
    ) -> Result<Vec<Put>> {
        let mut puts = Vec::new();
        let mut left = None;
        for (place, pack) in self.packs.iter().filter(|(place, _)| place.seq_first <= end) {
            puts.push(Put { key: place.key(keys), value: None });
            if place.seq_last() > end {
                let rest = split_pack_after(pack, end);
                let value = codec::encode(&rest)?;
                left = Some((place.seq_first, rest.to_pack_ref(int::to_u32(value.len()))));
                puts.push(Put { key: keys.pack_key(rest.seq_first), value: Some(value) });
            }
        }
        let remaining = |pack: &PackRef| match &left {
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

/// Bytes of a node, from above: its references and those of the sealed packs.
fn estimate_node_bytes(node: &DirectoryNode) -> usize {
    // A reference has at most 24 bytes; a node of 1,024 messages has no more than that many.
    24 * (node.packs.len() + 64)
}

/// The messages of a pack behind `end`, as a pack of their own.
fn split_pack_after(pack: &Pack, end: u64) -> Pack {
    let count = int::to_usize((end + 1).saturating_sub(pack.seq_first));
    let (sealed, rest) = pack.messages.split_at_checked(count).unwrap_or((&[], &[]));
    let tokens: u64 = sealed.iter().map(|message| u64::from(message.tokens)).sum();
    Pack {
        seq_first: end + 1,
        dialect: pack.dialect,
        tokens_before: pack.tokens_before + tokens,
        messages: rest.to_vec(),
        frontiers: pack.frontiers.get(count..).unwrap_or(&[]).to_vec(),
    }
}
