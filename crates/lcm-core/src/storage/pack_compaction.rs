//! Sealing: packs whose messages are no longer the newest raw ones become fewer, deflated ones.
//!
//! In: how far the history may be sealed. Out: what a commit writes and deletes for it. Sealing is
//! part of a commit that is made anyway, never more than a bounded piece, oldest first; what is
//! left over comes with a later one. Reading and writing are two steps, so that all reads of a call
//! come before anything is decided.

use alloc::{rc::Rc, string::String, vec::Vec};

use crate::storage::{
    codec,
    compressed_pack::Sealer,
    head::Head,
    history::{self, History},
    keys::Keys,
    pack::{DirectoryNode, Pack, PackRef},
    store::Put,
    store_session::Reader,
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
pub(crate) struct Sealable {
    /// Last seq that may be sealed.
    until: u64,
    packs: Vec<(PackRef, Rc<Pack>)>,
    /// The directory nodes of the packs, as far as there are any yet.
    nodes: Vec<(u64, DirectoryNode)>,
}

/// Keys of the packs that sealing may read, with their sizes, to be read together with others.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn wanted(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    until: u64,
) -> Result<Vec<(String, u32)>> {
    let refs = refs(reader, history, until)?;
    Ok(refs.iter().map(|pack| (pack.key(history.keys), pack.bytes)).collect())
}

/// Directory nodes that sealing reads: those that exist around the first message not sealed.
pub(crate) fn nodes(history: &History<'_>) -> Vec<u64> {
    let first = history::directory_node(history.head.sealed + 1);
    (first..first + NODES_MAX).filter(|node| exists(history, *node)).collect()
}

/// Whether a directory node exists: a pack of its span has left the head.
fn exists(history: &History<'_>, node: u64) -> bool {
    node * limits::DIRECTORY_SPAN + 1 < history.recent_first()
}

/// The packs behind what is sealed, as many as one commit may seal from; none when they would not
/// fill a sealed pack.
fn refs(reader: &mut Reader<'_>, history: &History<'_>, until: u64) -> Result<Vec<PackRef>> {
    let from = history.head.sealed + 1;
    let last = (history::directory_node(from) + NODES_MAX) * limits::DIRECTORY_SPAN;
    let until = until.min(last);
    if from > until {
        return Ok(Vec::new());
    }
    let mut refs = history.refs(reader, from, until)?;
    let mut bytes = 0u32;
    let fits = |pack: &&PackRef| {
        bytes = bytes.saturating_add(pack.bytes);
        bytes <= READ_BYTES_MAX
    };
    let count = refs.iter().take(limits::PUTS_MAX).take_while(fits).count().max(1);
    refs.truncate(count);
    let bytes: u32 = refs.iter().map(|pack| pack.bytes).sum();
    // A pack is closed by its text, its packs, or the end of a directory node.
    let closes = int::to_usize(u64::from(bytes)) >= limits::SEALED_TEXTS_BYTES_MIN
        || refs.len() >= PACKS_MAX
        || history::directory_node(from) != history::directory_node(until + 1);
    Ok(if closes { refs } else { Vec::new() })
}

/// Reads what may be sealed; `None`: nothing.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn read(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    until: u64,
) -> Result<Option<Sealable>> {
    let refs = refs(reader, history, until)?;
    let Some(last) = refs.last() else { return Ok(None) };
    let head = history.head;
    let keys = history.keys;
    let wanted: Vec<(String, u32)> = refs.iter().map(|pack| (pack.key(keys), pack.bytes)).collect();
    let values = reader.immutable(&wanted)?;
    let mut packs = Vec::with_capacity(refs.len());
    for (place, value) in refs.iter().zip(values) {
        let pack = history.pack(reader, place, &value)?;
        if pack.place(place.bytes) != *place {
            let key = place.key(keys);
            return Err(Error::corrupt(format_args!("`{key}` is not as the directory says")));
        }
        packs.push((*place, pack));
    }
    let flushed_last = history.recent_first() - 1;
    let from = history::directory_node(head.sealed + 1);
    let numbers = from..=history::directory_node(last.seq_last());
    let mut nodes = Vec::new();
    for number in numbers {
        let reach = flushed_last.min((number + 1) * limits::DIRECTORY_SPAN);
        let known = match exists(history, number) {
            true => reader.directory(keys, &[(number, reach)])?.pop(),
            false => None,
        };
        let mut node = known.map(|node| (*node).clone()).unwrap_or_default();
        // It may have grown since this head; the commit fails then, and what it says is no matter.
        node.packs.retain(|pack| pack.seq_first <= flushed_last);
        nodes.push((number, node));
    }
    Ok(Some(Sealable { until, packs, nodes }))
}

/// Sealed packs that are to be written, and what the commit has room for.
struct Closed {
    packs: Vec<(PackRef, Vec<u8>)>,
    /// Running hash after the last of them.
    frontier: [u8; 16],
    texts: usize,
    bytes: usize,
    bytes_max: usize,
}

impl Closed {
    /// Takes a pack that is full; `false`: there is no room, or enough was sealed.
    ///
    /// # Errors
    ///
    /// As [`Sealer::finish`].
    fn take(&mut self, full: &Sealer, has_room: bool) -> Result<bool> {
        if !has_room || self.bytes.saturating_add(full.bytes_max()) > self.bytes_max {
            return Ok(false);
        }
        let (place, value) = full.finish()?;
        self.bytes += value.len();
        self.texts += full.texts_bytes();
        self.frontier = full.frontier();
        self.packs.push((place, value));
        Ok(self.texts < limits::SEAL_BYTES_MAX)
    }
}

impl Sealable {
    /// Seals as much as the commit has room for beside `puts`, in the head and in what is returned.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large, which the bounds do not allow.
    pub(crate) fn seal(&self, keys: &Keys, head: &mut Head, puts: &[Put]) -> Result<Vec<Put>> {
        let taken: usize = puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum();
        // Beside the sealed packs the nodes are written, and the pack that is sealed in part.
        let left = self.packs.iter().map(|(place, _)| place.bytes).max().unwrap_or(0);
        let nodes: usize = self.nodes.iter().map(|(_, node)| node_bytes(node)).sum();
        let mut closed = Closed {
            packs: Vec::new(),
            frontier: head.sealed_frontier,
            texts: 0,
            bytes: int::to_usize(u64::from(left)).saturating_add(taken + nodes + COMMIT_BYTES_LEFT),
            bytes_max: int::to_usize(u64::from(limits::CALL_BYTES_MAX)),
        };
        // Journal, head, a guard of a model, and one to spare.
        let puts_max = limits::PUTS_MAX.saturating_sub(puts.len() + 4);
        self.close(head.sealed, &mut closed, puts_max)?;
        match closed.packs.last() {
            Some((last, _)) => self.write(keys, head, last.seq_last(), closed),
            None => Ok(Vec::new()),
        }
    }

    /// Makes sealed packs, as many as fit the bounds.
    fn close(&self, sealed: u64, closed: &mut Closed, puts_max: usize) -> Result<()> {
        let mut open = None::<(Sealer, usize)>;
        for (index, (place, pack)) in self.packs.iter().enumerate() {
            let mut tokens_before = pack.tokens_before;
            let messages = pack.messages.iter().zip(&pack.frontiers);
            for (seq, (message, frontier)) in (place.seq_first..).zip(messages) {
                let before = tokens_before;
                tokens_before += u64::from(message.tokens);
                if seq > self.until {
                    return Ok(());
                }
                if seq <= sealed {
                    continue;
                }
                // The packs up to this one are deleted, one of them is written anew.
                let puts = |closed: &Closed| index + 3 + self.nodes.len() + closed.packs.len();
                let takes = |(open, _): &mut (Sealer, usize)| open.takes(pack.dialect, message);
                if let Some((full, _)) = open.take_if(|open| !takes(open)) {
                    let has_room = puts(closed) <= puts_max;
                    if !closed.take(&full, has_room)? {
                        return Ok(());
                    }
                }
                let begin = || (Sealer::new(seq, pack.dialect, before, closed.frontier), index);
                let (sealer, first) = open.get_or_insert_with(begin);
                sealer.push(message, *frontier);
                let is_full = sealer.is_full() || index + 1 - *first >= PACKS_MAX;
                let ends = (is_full && seq % limits::SEAL_ALIGNMENT == 0)
                    || seq % limits::DIRECTORY_SPAN == 0;
                if let Some((full, _)) = open.take_if(|_| ends) {
                    let has_room = puts(closed) <= puts_max;
                    if !closed.take(&full, has_room)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts the sealed packs in the place of those up to `end`.
    fn write(&self, keys: &Keys, head: &mut Head, end: u64, closed: Closed) -> Result<Vec<Put>> {
        let mut puts = Vec::new();
        let mut left = None;
        for (place, pack) in self.packs.iter().filter(|(place, _)| place.seq_first <= end) {
            puts.push(Put { key: place.key(keys), value: None });
            if place.seq_last() > end {
                let rest = behind(pack, end);
                let value = codec::encode(&rest)?;
                left = Some((place.seq_first, rest.place(int::to_u32(value.len()))));
                puts.push(Put { key: keys.pack(rest.seq_first), value: Some(value) });
            }
        }
        let remaining = |pack: &PackRef| match &left {
            Some((seq_first, rest)) if *seq_first == pack.seq_first => Some(*rest),
            _ => (pack.seq_first > end || pack.sealed).then_some(*pack),
        };
        head.packs = head.packs.iter().filter_map(remaining).collect();
        for (number, node) in &self.nodes {
            let mut packs: Vec<PackRef> = node.packs.iter().filter_map(remaining).collect();
            let places = closed.packs.iter().map(|(place, _)| *place);
            packs.extend(places.filter(|new| history::directory_node(new.seq_first) == *number));
            sort::sort_by(&mut packs, &mut |a, b| a.seq_first.cmp(&b.seq_first));
            if packs != node.packs {
                let value = codec::encode(&DirectoryNode { packs })?;
                puts.push(Put { key: keys.directory(*number), value: Some(value) });
            }
        }
        let written = closed.packs.into_iter();
        puts.extend(written.map(|(place, value)| Put { key: place.key(keys), value: Some(value) }));
        (head.sealed, head.sealed_frontier) = (end, closed.frontier);
        Ok(puts)
    }
}

/// Bytes of a node, from above: its references and those of the sealed packs.
fn node_bytes(node: &DirectoryNode) -> usize {
    // A reference has at most 24 bytes; a node of 1,024 messages has no more than that many.
    24 * (node.packs.len() + 64)
}

/// The messages of a pack behind `end`, as a pack of their own.
fn behind(pack: &Pack, end: u64) -> Pack {
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
