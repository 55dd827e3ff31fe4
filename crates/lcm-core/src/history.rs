//! The stored messages, found by seq: from the head and the directory to packs and chunks.
//!
//! A pack's key is computable, its place is not: the head lists the newest packs, and the directory
//! node of a seq is the seq divided by 1,024, so that finding one costs the same in any history.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use crate::{
    codec,
    error::{Error, Result},
    head::Head,
    keys::Keys,
    limits, num,
    pack::{Pack, PackRef, Raw, Stored},
    reader::Reader,
};

/// A stored message with its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) seq: u64,
    /// Tokens of all messages before it.
    pub(crate) tokens_before: u64,
    pub(crate) stored: Stored,
}

/// The history of one conversation, as of one head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) head: &'a Head,
}

/// Number of the directory node that covers a seq.
pub(crate) fn directory_node(seq: u64) -> u64 {
    seq.saturating_sub(1) / limits::DIRECTORY_SPAN
}

impl History<'_> {
    /// First seq that stands in a pack the head lists.
    fn recent_first(&self) -> u64 {
        self.head.packs.first().map_or(self.head.messages + 1, |pack| pack.seq_first)
    }

    /// References to the packs that hold `[from, to]`, in order. Bounds outside are cut.
    ///
    /// # Errors
    ///
    /// As [`Reader::immutable`].
    pub(crate) fn refs(&self, reader: &mut Reader<'_>, from: u64, to: u64) -> Result<Vec<PackRef>> {
        let to = to.min(self.head.messages);
        let from = from.max(1);
        let mut refs = Vec::new();
        if from > to {
            return Ok(refs);
        }
        let flushed_last = self.recent_first() - 1;
        if from <= flushed_last {
            let last = to.min(flushed_last);
            let wanted: Vec<(u64, u64)> = (directory_node(from)..=directory_node(last))
                .map(|node| (node, flushed_last.min((node + 1) * limits::DIRECTORY_SPAN)))
                .collect();
            for node in reader.directory(self.keys, &wanted)? {
                refs.extend_from_slice(&node.packs);
            }
        }
        refs.extend(self.head.packs.iter().filter(|pack| pack.seq_first > flushed_last));
        refs.retain(|pack| pack.seq_first <= to && pack.seq_last() >= from);
        // A directory node may have grown since this head: what it lists twice is equal.
        refs.dedup_by_key(|pack| pack.seq_first);
        Ok(refs)
    }

    /// The messages `[from, to]` in order, with their projections; large texts stay in chunks.
    ///
    /// # Errors
    ///
    /// As [`Reader::immutable`]; `corrupt`: the packs do not hold every seq once.
    pub(crate) fn messages(
        &self,
        reader: &mut Reader<'_>,
        from: u64,
        to: u64,
    ) -> Result<Vec<Placed>> {
        let refs = self.refs(reader, from, to)?;
        self.of_packs(reader, &refs, from, to)
    }

    /// The messages from `from` on that stand in one pack: at least one, none behind `to`.
    ///
    /// # Errors
    ///
    /// As [`History::messages`].
    pub(crate) fn page(&self, reader: &mut Reader<'_>, from: u64, to: u64) -> Result<Vec<Placed>> {
        let refs = self.refs(reader, from, from)?;
        let last = refs.last().map_or(from, PackRef::seq_last);
        self.of_packs(reader, &refs, from, last.min(to))
    }

    /// The messages of `[from, to]` that stand in these packs.
    ///
    /// # Errors
    ///
    /// As [`History::messages`].
    pub(crate) fn of_packs(
        &self,
        reader: &mut Reader<'_>,
        refs: &[PackRef],
        from: u64,
        to: u64,
    ) -> Result<Vec<Placed>> {
        let from = from.max(1);
        let to = to.min(self.head.messages);
        let wanted: Vec<(String, u32)> =
            refs.iter().map(|pack| (self.keys.pack(pack.seq_first), pack.bytes)).collect();
        let mut out = Vec::new();
        let mut next = from;
        let values = reader.immutable(&wanted)?;
        for ((place, (key, size)), value) in refs.iter().zip(&wanted).zip(values) {
            let mut pack: Pack = codec::decode(key, &value)?;
            if pack.check() != place.check {
                let is_it = |value: &[u8]| {
                    codec::decode::<Pack>(key, value).is_ok_and(|pack| pack.check() == place.check)
                };
                pack = codec::decode(key, &reader.checked(key, *size, is_it)?)?;
            }
            let mut tokens_before = pack.tokens_before;
            for (seq, stored) in (pack.seq_first..).zip(pack.messages) {
                let tokens = u64::from(stored.tokens);
                if seq >= from && seq <= to {
                    if seq != next {
                        return Err(Error::corrupt(format!("`{key}` holds {seq}, not {next}")));
                    }
                    next += 1;
                    out.push(Placed { seq, tokens_before, stored });
                }
                tokens_before += tokens;
            }
        }
        if next <= to {
            return Err(Error::corrupt(format!("no pack holds message {next}")));
        }
        Ok(out)
    }

    /// Reads the chunks of these messages ahead, with as few calls as the bounds allow.
    ///
    /// # Errors
    ///
    /// Of the store.
    pub(crate) fn fetch_texts(&self, reader: &mut Reader<'_>, messages: &[Placed]) -> Result<()> {
        let mut wanted = Vec::new();
        for placed in messages {
            if let Raw::Chunked { sha256, chunks } = &placed.stored.raw {
                wanted.extend(chunk_keys(self.keys, sha256, chunks));
            }
        }
        reader.prefetch(self.keys, &wanted, &[])
    }

    /// The raw text of a message, byte for byte.
    ///
    /// # Errors
    ///
    /// As [`Reader::immutable`]; `corrupt`: the chunks do not make up the text.
    pub(crate) fn text<'s>(
        &self,
        reader: &mut Reader<'_>,
        stored: &'s Stored,
    ) -> Result<Cow<'s, str>> {
        match &stored.raw {
            Raw::Inline(text) => Ok(Cow::Borrowed(text)),
            Raw::Chunked { sha256, chunks } => {
                chunked(reader, self.keys, sha256, chunks).map(Cow::Owned)
            }
        }
    }
}

/// Keys of the chunks of a text with their sizes.
fn chunk_keys(keys: &Keys, sha256: &[u8; 32], chunks: &[u32]) -> Vec<(String, u32)> {
    // A value has two bytes before its payload.
    let row = |(number, bytes): (u32, &u32)| (keys.chunk(sha256, number), bytes.saturating_add(2));
    (0u32..).zip(chunks).map(row).collect()
}

/// Puts a text together from its chunks.
///
/// # Errors
///
/// As [`Reader::immutable`]; `corrupt`: the chunks do not make up the text.
fn chunked(
    reader: &mut Reader<'_>,
    keys: &Keys,
    sha256: &[u8; 32],
    chunks: &[u32],
) -> Result<String> {
    let wanted = chunk_keys(keys, sha256, chunks);
    let mut text = Vec::new();
    let values = reader.immutable(&wanted)?;
    for (((key, _), bytes), value) in wanted.iter().zip(chunks).zip(values) {
        let chunk = codec::decode_bytes(key, &value)?;
        if num::to_u32(chunk.len()) != *bytes {
            return Err(Error::corrupt(format!("`{key}` has {} bytes, not {bytes}", chunk.len())));
        }
        text.extend_from_slice(chunk);
    }
    String::from_utf8(text)
        .map_err(|_| Error::corrupt(format!("`{}` is no text", keys.upload(sha256))))
}
