//! Reads of stored messages by seq: from the head and the directory to packs and chunks.
//!
//! In: a head and seqs. Out: messages with their texts. All operations read messages through this
//! module. The head lists the newest packs, directory nodes the older packs. The node of a seq has
//! the number (seq - 1) / 1,024, rounded down. So the cost of a lookup does not grow with the
//! history.

use alloc::{borrow::Cow, rc::Rc, string::String, vec::Vec};

use crate::storage::{
    call::Call,
    codec,
    compressed_pack::CompressedPack,
    head::ConversationHead,
    keys::ConversationKeys,
    message_span::MessageSpan,
    pack::{self, DirectoryNode, Pack, PackRef, PlacedMessage, RawText, StoredMessage},
    record_key::RecordKey,
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    message::{self, Part},
    types::api::Timestamp,
};

/// Most bytes of packs that one host call of [`MessageHistory::visit_messages`] reads.
const READ_AHEAD_BYTES: u32 = 768 << 10;

/// A message, as [`MessageHistory::visit_messages`] passes it.
#[derive(Debug)]
pub(crate) struct VisitedMessage<'p> {
    pub(crate) seq: u64,
    pub(crate) time: Timestamp,
    pub(crate) parts: &'p [Part],
    /// Raw text of the message, not of its placeholder.
    pub(crate) text: &'p str,
}

/// A function that [`MessageHistory::visit_messages`] calls for each message.
pub(crate) type MessageVisitor<'e> =
    &'e mut dyn FnMut(&mut StoreSession<'_>, &VisitedMessage<'_>) -> Result<()>;

/// Access to the messages of one conversation, as of one head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageHistory<'a> {
    pub(crate) keys: &'a ConversationKeys,
    pub(crate) head: &'a ConversationHead,
}

/// Returns the number of the directory node that covers a seq.
pub(crate) fn directory_node(seq: u64) -> u64 {
    seq.saturating_sub(1) / limits::DIRECTORY_SPAN
}

/// Returns the messages with seqs from `from` to `to`, both included, of a list in order of seqs.
pub(crate) fn slice_by_seq(messages: &[PlacedMessage], from: u64, to: u64) -> &[PlacedMessage] {
    let start = messages.partition_point(|placed| placed.seq < from);
    let end = messages.partition_point(|placed| placed.seq <= to);
    messages.get(start..end).unwrap_or(&[])
}

impl Pack {
    /// Returns the key of the pack whose first message has this seq.
    pub(crate) fn key(keys: &ConversationKeys, seq_first: u64) -> RecordKey<Self> {
        RecordKey::new(keys.pack_key(seq_first))
    }
}

impl DirectoryNode {
    /// Returns the key of the directory node with this number.
    pub(crate) fn key(keys: &ConversationKeys, number: u64) -> RecordKey<Self> {
        RecordKey::new(keys.directory_key(number))
    }
}

impl<'a> MessageHistory<'a> {
    /// Creates access to the messages of the call's conversation, as of this head.
    pub(crate) fn new(call: Call<'a>, head: &'a ConversationHead) -> Self {
        Self { keys: call.keys, head }
    }

    /// Lists the keys of packs, with the sizes of their values in bytes.
    pub(crate) fn list_pack_keys(&self, packs: &[PackRef]) -> Vec<(String, u32)> {
        packs.iter().map(|pack| (pack.key(self.keys), pack.bytes)).collect()
    }

    /// Reads packs into the cache; a missing pack is skipped.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn prefetch_packs(
        &self,
        session: &mut StoreSession<'_>,
        packs: &[PackRef],
    ) -> Result<()> {
        session.prefetch_records(self.keys, &self.list_pack_keys(packs), &[])
    }

    /// Reads the nodes of the context and these directory nodes into the cache; a missing node is
    /// skipped.
    ///
    /// # Errors
    ///
    /// `corrupt` or `unsupported`: a directory node cannot be decoded; errors of the store.
    pub(crate) fn prefetch_nodes(
        &self,
        session: &mut StoreSession<'_>,
        directory_nodes: &[u64],
    ) -> Result<()> {
        let context_nodes = self.head.context.node_keys(self.keys);
        session.prefetch_records(self.keys, &context_nodes, directory_nodes)
    }

    /// Returns the seq of the first message in the packs that the head lists. If the head lists no
    /// pack, returns the seq after the newest message. The directory lists the packs of older
    /// messages.
    pub(crate) fn recent_seq_first(&self) -> u64 {
        self.head.packs.first().map_or(self.head.messages + 1, |pack| pack.seq_first)
    }

    /// Finds references to the packs that hold the seqs from `from` to `to`, both included, in
    /// order. Seqs outside the history are ignored.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn find_pack_refs(
        &self,
        session: &mut StoreSession<'_>,
        from: u64,
        to: u64,
    ) -> Result<Vec<PackRef>> {
        let to = to.min(self.head.messages);
        let from = from.max(1);
        let mut refs = Vec::new();
        if from > to {
            return Ok(refs);
        }
        let flushed_last = self.recent_seq_first() - 1;
        if from <= flushed_last {
            let last = to.min(flushed_last);
            let wanted: Vec<(u64, u64)> = (directory_node(from)..=directory_node(last))
                .map(|node| (node, flushed_last.min((node + 1) * limits::DIRECTORY_SPAN)))
                .collect();
            for node in session.read_directory(self.keys, &wanted)? {
                refs.extend_from_slice(&node.packs);
            }
        }
        // A directory node may be newer than this head.
        refs.retain(|pack| pack.seq_first <= flushed_last);
        refs.extend_from_slice(&self.head.packs);
        refs.retain(|pack| pack.seq_first <= to && pack.seq_last() >= from);
        let overlaps =
            |pair: &[PackRef]| matches!(pair, [left, right] if left.seq_last() >= right.seq_first);
        match refs.windows(2).find(|pair| overlaps(pair)) {
            // A later commit compressed packs that this head lists.
            Some([_, gone]) => Err(session.missing_record_error(&gone.key(self.keys))),
            _ => Ok(refs),
        }
    }

    /// Reads the messages from `from` to `to`, both included, in order; a large text is returned as
    /// a reference to its chunks. Seqs outside the history are ignored.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head, or the packs do not hold every seq once;
    /// `unsupported`: a record has a newer format; errors of the store.
    pub(crate) fn read_messages(
        &self,
        session: &mut StoreSession<'_>,
        from: u64,
        to: u64,
    ) -> Result<Vec<PlacedMessage>> {
        let refs = self.find_pack_refs(session, from, to)?;
        self.read_messages_of_packs(session, &refs, from, to)
    }

    /// Reads the messages of a span, in order.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::read_messages`].
    pub(crate) fn read_span(
        &self,
        session: &mut StoreSession<'_>,
        span: &MessageSpan,
    ) -> Result<Vec<PlacedMessage>> {
        let mut out = Vec::new();
        for (from, to) in span.list_read_ranges() {
            let messages = self.read_messages(session, from, to)?;
            out.extend(messages.into_iter().filter(|placed| span.has_message(placed.seq)));
        }
        Ok(out)
    }

    /// Reads the messages from `from` to the end of the pack that holds `from`, or to `to` if `to`
    /// is less.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn read_page(
        &self,
        session: &mut StoreSession<'_>,
        from: u64,
        to: u64,
    ) -> Result<Vec<PlacedMessage>> {
        let refs = self.find_pack_refs(session, from, from)?;
        let last = refs.last().map_or(from, PackRef::seq_last);
        self.read_messages_of_packs(session, &refs, from, last.min(to))
    }

    /// Reads the messages from `from` to `to`, both included, from these packs, which must hold all
    /// of them. Seqs outside the history are ignored.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head, or the packs do not hold every seq once;
    /// `unsupported`: a record has a newer format; errors of the store.
    pub(crate) fn read_messages_of_packs(
        &self,
        session: &mut StoreSession<'_>,
        refs: &[PackRef],
        from: u64,
        to: u64,
    ) -> Result<Vec<PlacedMessage>> {
        let from = from.max(1);
        let to = to.min(self.head.messages);
        let wanted = self.list_pack_keys(refs);
        let mut out = Vec::new();
        let mut next = from;
        let values = session.read_immutable(&wanted)?;
        for ((place, (key, _)), value) in refs.iter().zip(&wanted).zip(values) {
            let found = if place.is_compressed {
                let opened = self.open_compressed_pack(session, place, &value, to)?;
                let (first, last) = opened.seq_range();
                (first.max(from)..=last.min(to)).map_while(|seq| opened.message(seq)).collect()
            } else {
                place_messages(self.load_pack(session, place, &value)?.as_ref(), from, to)
            };
            for message in found {
                if message.seq != next {
                    let seq = message.seq;
                    return Err(Error::corrupt_store(format_args!(
                        "`{key}` holds message {seq} where message {next} must be"
                    )));
                }
                next += 1;
                out.push(message);
            }
        }
        if next <= to {
            return Err(Error::corrupt_store(format_args!("no pack holds message {next}")));
        }
        Ok(out)
    }

    /// Returns the pack of a reference: from the cache, or decoded from `value` and then cached. If
    /// `value` holds another pack, such as a stale one, the pack is read from the store.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn load_pack(
        &self,
        session: &mut StoreSession<'_>,
        place: &PackRef,
        value: &[u8],
    ) -> Result<Rc<Pack>> {
        session.read_pack(&place.key(self.keys), place, value, true)
    }

    /// Returns the opened compressed pack of a reference, with at least the texts up to message
    /// `to`. The pack comes from the cache, or is opened from `value` and then cached. If `value`
    /// holds another pack, such as a stale one, the pack is read from the store.
    ///
    /// If the cached pack has too few texts, the pack is opened anew with all its texts.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn open_compressed_pack(
        &self,
        session: &mut StoreSession<'_>,
        place: &PackRef,
        value: &[u8],
        to: u64,
    ) -> Result<Rc<CompressedPack>> {
        let key = place.key(self.keys);
        let known = session
            .find_open_pack(&key)
            .filter(|opened| opened.frontier_prefix() == place.frontier_prefix);
        let to = match known {
            Some(opened) if opened.reaches_seq(to) => return Ok(opened),
            Some(_) => place.seq_last(),
            None => to,
        };
        let mut opened = CompressedPack::open(&key, value, to)?;
        if opened.frontier_prefix() != place.frontier_prefix {
            let is_pack = |value: &[u8]| {
                CompressedPack::open(&key, value, 0)
                    .is_ok_and(|opened| opened.frontier_prefix() == place.frontier_prefix)
            };
            let value = session.read_checked(&key, place.bytes, &is_pack)?;
            opened = CompressedPack::open(&key, &value, to)?;
        }
        let opened = Rc::new(opened);
        session.keep_open_pack(&key, &opened);
        Ok(opened)
    }

    /// Returns the running hash after message `seq`; zeros if there is no such message.
    ///
    /// A compressed pack stores few of these hashes, because 16 incompressible bytes for each
    /// message would cost much space. The others are computed from the texts.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn frontier_at(&self, session: &mut StoreSession<'_>, seq: u64) -> Result<[u8; 16]> {
        let placed = self.read_messages(session, seq, seq)?;
        self.frontier_of_message(session, placed.first())
    }

    /// Returns the running hash after a message, stored or computed; zeros for `None`.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn frontier_of_message(
        &self,
        session: &mut StoreSession<'_>,
        placed: Option<&PlacedMessage>,
    ) -> Result<[u8; 16]> {
        let Some(placed) = placed else { return Ok([0; 16]) };
        if let Some(frontier) = placed.frontier {
            return Ok(frontier);
        }
        let refs = self.find_pack_refs(session, placed.seq, placed.seq)?;
        let Some(place) = refs.first() else { return Ok([0; 16]) };
        let wanted = [(place.key(self.keys), place.bytes)];
        let values = session.read_immutable(&wanted)?;
        let value = values.first().map(|value| value.as_slice()).unwrap_or_default();
        let opened = self.open_compressed_pack(session, place, value, placed.seq)?;
        let (before, mut frontier) = opened.nearest_frontier_before(placed.seq);
        for seq in before + 1..=placed.seq {
            let raw = opened.text(seq).unwrap_or_default();
            let message = message::parse(opened.dialect(), raw).map_err(|_| {
                Error::corrupt_store(format_args!("the text of message {seq} is not a message"))
            })?;
            frontier = pack::advance_frontier(&frontier, &pack::message_hash(raw, &message));
        }
        Ok(frontier)
    }

    /// Reads the messages with these seqs, which ascend and must all exist.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn read_messages_at(
        &self,
        session: &mut StoreSession<'_>,
        seqs: &[u64],
    ) -> Result<Vec<PlacedMessage>> {
        let ranges: Vec<(u64, u64)> = seqs.iter().map(|seq| (*seq, *seq)).collect();
        let refs = self.find_pack_refs_of_ranges(session, &ranges)?;
        let wanted = self.list_pack_keys(&refs);
        let values = session.read_immutable(&wanted)?;
        let mut out: Vec<PlacedMessage> = Vec::new();
        for (place, value) in refs.iter().zip(values) {
            let of_pack = seqs_in_pack(&ranges, place);
            let last = of_pack.clone().last().unwrap_or(place.seq_first);
            if place.is_compressed {
                let opened = self.open_compressed_pack(session, place, &value, last)?;
                out.extend(of_pack.filter_map(|seq| opened.message(seq)));
            } else {
                let pack = self.load_pack(session, place, &value)?;
                out.extend(of_pack.flat_map(|seq| place_messages(&pack, seq, seq)));
            }
        }
        let held = out.iter().map(|placed| placed.seq);
        match seqs.iter().copied().zip(held.chain(core::iter::repeat(0))).find(|(a, b)| a != b) {
            Some((seq, _)) => {
                Err(Error::corrupt_store(format_args!("no pack holds message {seq}")))
            }
            None => Ok(out),
        }
    }

    /// Finds references to the packs that hold these ranges of seqs, in order, each pack once.
    ///
    /// The ranges include both ends, ascend and do not overlap. Seqs outside the history are
    /// ignored.
    fn find_pack_refs_of_ranges(
        &self,
        session: &mut StoreSession<'_>,
        ranges: &[(u64, u64)],
    ) -> Result<Vec<PackRef>> {
        let mut nodes = Vec::new();
        let flushed_last = self.recent_seq_first() - 1;
        for (from, to) in ranges.iter().filter(|(from, _)| *from <= flushed_last) {
            nodes.extend(directory_node(*from)..=directory_node(flushed_last.min(*to)));
        }
        nodes.dedup();
        session.prefetch_records(self.keys, &[], &nodes)?;
        let mut refs: Vec<PackRef> = Vec::new();
        for (from, to) in ranges {
            let known = refs.last().map_or(0, PackRef::seq_last);
            refs.extend(self.find_pack_refs(session, (*from).max(known + 1), *to)?);
        }
        Ok(refs)
    }

    /// Calls `each` for the messages in these ranges of seqs, in order.
    ///
    /// The ranges include both ends, ascend and do not overlap; seqs outside the history are
    /// ignored. A text in chunks is read and joined. One host call reads up to 768 KiB of packs.
    /// Packs that are not compressed do not enter the cache. A compressed pack enters the cache,
    /// opened up to its last visited message.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store; errors of `each`.
    pub(crate) fn visit_messages(
        &self,
        session: &mut StoreSession<'_>,
        ranges: &[(u64, u64)],
        each: MessageVisitor<'_>,
    ) -> Result<()> {
        let refs = self.find_pack_refs_of_ranges(session, ranges)?;
        let mut rest = refs.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0u32;
            let fits = |pack: &&PackRef| {
                bytes = bytes.saturating_add(pack.bytes);
                bytes <= READ_AHEAD_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = later;
            let wanted = self.list_pack_keys(now);
            let values = session.read_immutable_uncached(&wanted)?;
            for (place, value) in now.iter().zip(values) {
                self.visit_messages_of_pack(session, place, &value, ranges, each)?;
            }
        }
        Ok(())
    }

    /// Calls `each` for the messages of one pack that are in the ranges, in order.
    fn visit_messages_of_pack(
        &self,
        session: &mut StoreSession<'_>,
        place: &PackRef,
        value: &[u8],
        ranges: &[(u64, u64)],
        each: MessageVisitor<'_>,
    ) -> Result<()> {
        let last = place.seq_last().min(self.head.messages);
        let seqs = seqs_in_pack(ranges, place).take_while(|seq| *seq <= last);
        let missing = |seq| Error::corrupt_store(format_args!("no pack holds message {seq}"));
        if place.is_compressed {
            let needed = seqs.clone().last().unwrap_or(place.seq_first);
            let opened = self.open_compressed_pack(session, place, value, needed)?;
            for seq in seqs {
                let (time, parts) = opened.time_and_parts(seq).ok_or_else(|| missing(seq))?;
                match opened.text(seq) {
                    Some(text) => each(session, &VisitedMessage { seq, time, parts, text })?,
                    None => {
                        let placed = opened.message(seq).ok_or_else(|| missing(seq))?;
                        let text = self.read_text(session, &placed.stored)?;
                        each(session, &VisitedMessage { seq, time, parts, text: &text })?;
                    }
                }
            }
            return Ok(());
        }
        let pack = session.read_pack(&place.key(self.keys), place, value, false)?;
        for seq in seqs {
            let index = int::to_usize(seq - pack.seq_first);
            let stored = pack.messages.get(index).ok_or_else(|| missing(seq))?;
            let text = self.read_text(session, stored)?;
            let (time, parts) = (stored.time, stored.parts.as_slice());
            each(session, &VisitedMessage { seq, time, parts, text: &text })?;
        }
        Ok(())
    }

    /// Reads into the cache the chunks of the texts that contexts render for these messages, in few
    /// host calls.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn prefetch_texts(
        &self,
        session: &mut StoreSession<'_>,
        messages: &[PlacedMessage],
    ) -> Result<()> {
        let mut wanted = Vec::new();
        for placed in messages {
            if let RawText::Chunked { sha256, chunks } = placed.stored.rendered_content().0 {
                wanted.extend(chunk_keys(self.keys, sha256, chunks));
            }
        }
        session.prefetch_records(self.keys, &wanted, &[])
    }

    /// Reads into the cache the chunks that hold the bytes from `from` to before `to` of a text.
    /// Does nothing for a text that is not in chunks.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn prefetch_text_range(
        &self,
        session: &mut StoreSession<'_>,
        raw: &RawText,
        (from, to): (u64, u64),
    ) -> Result<()> {
        let RawText::Chunked { sha256, chunks } = raw else { return Ok(()) };
        let mut begin = 0;
        let mut wanted = chunk_keys(self.keys, sha256, chunks).into_iter().zip(chunks);
        let mut inside = Vec::new();
        wanted.by_ref().for_each(|(key, bytes)| {
            let end = begin + u64::from(*bytes);
            if end > from && begin < to {
                inside.push(key);
            }
            begin = end;
        });
        session.prefetch_records(self.keys, &inside, &[])
    }

    /// Reads the chunk with this number, from 0, of a large text; `bytes` is its expected length.
    ///
    /// # Errors
    ///
    /// `conflict`: a chunk is missing, and the head has changed; `corrupt`: a chunk is damaged, or
    /// is missing under an unchanged head; `unsupported`: a chunk has a newer format; errors of the
    /// store.
    pub(crate) fn read_chunk(
        &self,
        session: &mut StoreSession<'_>,
        sha256: &[u8; 32],
        number: u32,
        bytes: u32,
    ) -> Result<String> {
        let key = self.keys.chunk_key(sha256, number);
        let value = session.read_immutable(&[(key.clone(), bytes.saturating_add(2))])?;
        let value = value
            .first()
            .ok_or_else(|| Error::corrupt_store(format_args!("`{key}` is missing")))?;
        let chunk = codec::decode_chunk(&key, value)?;
        String::from_utf8(chunk.into_owned())
            .ok()
            .filter(|text| int::to_u32(text.len()) == bytes)
            .ok_or_else(|| {
                Error::corrupt_store(format_args!("`{key}` is not a UTF-8 text of {bytes} bytes"))
            })
    }

    /// Returns the raw text of a message, byte for byte; a text in chunks is read and joined.
    ///
    /// # Errors
    ///
    /// `conflict`: a chunk is missing, and the head has changed; `corrupt`: a chunk is damaged, or
    /// is missing under an unchanged head; `unsupported`: a chunk has a newer format; errors of the
    /// store.
    pub(crate) fn read_text<'s>(
        &self,
        session: &mut StoreSession<'_>,
        stored: &'s StoredMessage,
    ) -> Result<Cow<'s, str>> {
        self.read_raw_text(session, &stored.raw)
    }

    /// Returns the text that contexts and summaries render for a message: the text of its
    /// placeholder, or its raw text if it has no placeholder.
    ///
    /// # Errors
    ///
    /// `conflict`: a chunk is missing, and the head has changed; `corrupt`: a chunk is damaged, or
    /// is missing under an unchanged head; `unsupported`: a chunk has a newer format; errors of the
    /// store.
    pub(crate) fn read_rendered_text<'s>(
        &self,
        session: &mut StoreSession<'_>,
        stored: &'s StoredMessage,
    ) -> Result<Cow<'s, str>> {
        self.read_raw_text(session, stored.rendered_content().0)
    }

    pub(crate) fn read_raw_text<'s>(
        &self,
        session: &mut StoreSession<'_>,
        raw: &'s RawText,
    ) -> Result<Cow<'s, str>> {
        match raw {
            RawText::Inline(text) => Ok(Cow::Borrowed(text)),
            RawText::Chunked { sha256, chunks } => {
                join_chunks(session, self.keys, sha256, chunks).map(Cow::Owned)
            }
        }
    }
}

/// Returns the messages from `from` to `to`, both included, of a pack, with their positions.
pub(crate) fn place_messages(pack: &Pack, from: u64, to: u64) -> Vec<PlacedMessage> {
    let mut tokens_before = pack.tokens_before;
    let mut out = Vec::new();
    for ((seq, stored), frontier) in (pack.seq_first..).zip(&pack.messages).zip(&pack.frontiers) {
        if seq >= from && seq <= to {
            let (dialect, stored) = (pack.dialect, Rc::clone(stored));
            out.push(PlacedMessage {
                seq,
                tokens_before,
                dialect,
                stored,
                frontier: Some(*frontier),
            });
        }
        tokens_before += u64::from(stored.tokens);
    }
    out
}

/// Returns an iterator over the seqs of a pack that are in the ranges, which ascend.
fn seqs_in_pack<'r>(
    ranges: &'r [(u64, u64)],
    place: &PackRef,
) -> impl Iterator<Item = u64> + Clone + use<'r> {
    let (first, last) = (place.seq_first, place.seq_last());
    let begin = ranges.partition_point(|(_, to)| *to < first);
    let of_pack = ranges.get(begin..).unwrap_or(&[]).iter();
    of_pack
        .take_while(move |(from, _)| *from <= last)
        .flat_map(move |(from, to)| (*from).max(first)..=(*to).min(last))
}

/// Returns the keys of the chunks of a text, with upper bounds of the sizes of their values.
fn chunk_keys(keys: &ConversationKeys, sha256: &[u8; 32], chunks: &[u32]) -> Vec<(String, u32)> {
    // A value is at most the chunk and two bytes before it: deflating never enlarges a value.
    let row =
        |(number, bytes): (u32, &u32)| (keys.chunk_key(sha256, number), bytes.saturating_add(2));
    (0u32..).zip(chunks).map(row).collect()
}

/// Reads and joins the chunks of a text.
///
/// # Errors
///
/// `conflict`: a chunk is missing, and the head has changed; `corrupt`: a chunk is damaged, or is
/// missing under an unchanged head; `unsupported`: a chunk has a newer format; errors of the store.
fn join_chunks(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    sha256: &[u8; 32],
    chunks: &[u32],
) -> Result<String> {
    let wanted = chunk_keys(keys, sha256, chunks);
    let mut text = Vec::new();
    let values = session.read_immutable(&wanted)?;
    for (((key, _), bytes), value) in wanted.iter().zip(chunks).zip(values) {
        let chunk = codec::decode_chunk(key, &value)?;
        if int::to_u32(chunk.len()) != *bytes {
            return Err(Error::corrupt_store(format_args!(
                "`{key}` has {} bytes of text, expected {bytes}",
                chunk.len()
            )));
        }
        text.extend_from_slice(&chunk);
    }
    String::from_utf8(text).map_err(|_| {
        Error::corrupt_store(format_args!(
            "the text in the chunks of `{}` is not UTF-8",
            keys.upload_key(sha256)
        ))
    })
}
