//! Where a transcript without ids and the stored messages part.
//!
//! In: the hashes of a whole transcript. Out: how many of its messages are the first stored ones,
//! which the running hash proves, and whether what follows is another branch or the same messages
//! with something changed among them. A branch is stored behind what there is; a change is for the
//! host to decide, because storing it would double everything that follows it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    error::{Error, ErrorCode, Result},
    head::Head,
    history::History,
    keys, message, num, order,
    pack::{advance, message_hash},
    reader::Reader,
};

use super::{
    identity::{Alignable, Newest, align},
    redaction::Redacted,
};

/// Messages behind the parting that are compared: those that follow it on either side.
const WINDOW: usize = 64;
/// Messages behind the parting which must be stored for a transcript to count as changed that begins
/// as the stored messages do. A user may well say one thing again.
const SHARED_AFTER_SAME_MIN: usize = 2;
/// Likewise for one that begins otherwise.
const SHARED_AFTER_OTHER_MIN: usize = 3;

/// One entry of a transcript.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparable {
    pub(super) hash: [u8; 16],
    /// Whether equal content is evidence of being the same message.
    pub(super) discriminating: bool,
    pub(super) redacted: Option<Redacted>,
}

impl Comparable {
    /// As alignment sees it; `seq`: where it stands already, by an id of its own.
    pub(super) fn alignable(&self, seq: Option<u64>) -> Alignable {
        let Self { hash, discriminating, redacted } = *self;
        Alignable { hash: keys::prefix(&hash), seq, discriminating, redacted }
    }
}

/// Which entries of a transcript are stored.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Parting {
    /// So many at the beginning: they are the first stored messages, or some of these followed by
    /// the newest ones once more.
    Together { entries: usize },
    /// So many at the beginning, and then it goes another way.
    Branch { entries: usize },
    /// It begins otherwise.
    Apart,
}

/// Compares a transcript with the stored messages from their beginning on, and behind that with the
/// newest ones, whose texts are there if any entry may be a redacted copy. `place` says where an
/// entry stands in the transcript, from 0.
///
/// # Errors
///
/// `exists`: something was changed among messages that are stored; errors of the store.
pub(super) fn parting(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    texts: &[String],
    entries: &[Comparable],
    place: &dyn Fn(usize) -> usize,
) -> Result<Parting> {
    let most = num::to_usize(history.head.messages).min(entries.len());
    let together = along(reader, history, entries, most)?;
    if together == most {
        return Ok(Parting::Together { entries: together });
    }
    // Any conversation may begin with "ok".
    if !entries.iter().take(together).any(|entry| entry.discriminating) {
        return Ok(Parting::Apart);
    }
    let repeated = repeated(history, texts, entries.get(together..).unwrap_or(&[]));
    if repeated > 0 {
        return Ok(Parting::Together { entries: together + repeated });
    }
    refuse_change(reader, history, entries, together, place)?;
    Ok(Parting::Branch { entries: together })
}

/// Refuses a transcript of which the messages behind the first so many are stored, but not as they
/// stand in it.
///
/// # Errors
///
/// `exists`; errors of the store.
pub(super) fn refuse_change(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Comparable],
    together: usize,
    place: &dyn Fn(usize) -> usize,
) -> Result<()> {
    let next = page(reader, history, num::to_u64(together) + 1)?;
    let (shared, looked_at) = shared(history, &next, entries.get(together..).unwrap_or(&[]));
    let least = if together > 0 { SHARED_AFTER_SAME_MIN } else { SHARED_AFTER_OTHER_MIN };
    if shared < least || shared * 2 < looked_at {
        return Ok(());
    }
    let number = place(together) + 1;
    Err(Error::new(
        ErrorCode::Exists,
        format!(
            "the transcript was changed: its message {number} is not the one that is stored \
             there, but {shared} of the {looked_at} that follow are stored"
        ),
    ))
}

/// How many entries are the first stored messages or redacted copies of them, at most `most`.
///
/// A copy counts in a row with exact matches: behind them, or at the beginning and followed by one.
fn along(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Comparable],
    most: usize,
) -> Result<usize> {
    let mut same = proven(reader, history, entries, most)?;
    let mut anchored = same > 0;
    let mut known = same;
    while known < most {
        let stored = page(reader, history, num::to_u64(known) + 1)?;
        for (entry, stored) in entries.iter().take(most).skip(known).zip(&stored) {
            let exact = entry.hash == stored.hash;
            if !exact && !entry.redacted.is_some_and(|copy| copy.may_be_of(&stored.text)) {
                return Ok(same);
            }
            known += 1;
            anchored |= exact && entry.discriminating;
            same = if anchored { known } else { same };
        }
    }
    Ok(same)
}

/// How many entries the running hash proves to be the first stored messages.
fn proven(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Comparable],
    most: usize,
) -> Result<usize> {
    let mut running = alloc::vec![[0; 16]];
    for entry in entries.iter().take(most) {
        let last = running.last().copied().unwrap_or_default();
        running.push(advance(&last, &entry.hash));
    }
    // The stored messages are these entries up to `low`, and are not up to `high`.
    let (mut low, mut high) = (0, running.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let stored = history.frontier(reader, num::to_u64(middle))?;
        if running.get(middle) == Some(&stored) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// A stored message, as it is compared.
struct Kept {
    hash: [u8; 16],
    text: String,
}

/// Stored messages from this seq on, so many as are compared at a time.
fn page(reader: &mut Reader<'_>, history: &History<'_>, from: u64) -> Result<Vec<Kept>> {
    let mut out = Vec::new();
    for placed in history.messages(reader, from, from + num::to_u64(WINDOW) - 1)? {
        let text = history.text(reader, &placed.stored)?.into_owned();
        let message = message::project(placed.dialect, &text)
            .map_err(|_| Error::corrupt(format_args!("message {} cannot be read", placed.seq)))?;
        out.push(Kept { hash: message_hash(&text, &message), text });
    }
    Ok(out)
}

/// Texts of the newest stored messages, at most `count` of them, oldest first.
///
/// # Errors
///
/// Of the store.
pub(super) fn newest_texts(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    count: usize,
) -> Result<Vec<String>> {
    let last = history.head.messages;
    let count = count.min(history.head.hashes.len());
    let mut texts = Vec::with_capacity(count);
    for placed in history.messages(reader, last + 1 - num::to_u64(count), last)? {
        texts.push(history.text(reader, &placed.stored)?.into_owned());
    }
    Ok(texts)
}

/// How many of the entries behind an equal beginning, such as system messages, are the newest
/// stored messages, each compared.
fn repeated(history: &History<'_>, texts: &[String], rest: &[Comparable]) -> usize {
    let Head { hashes, messages, .. } = history.head;
    let newest = Newest { hashes, texts, seq_last: *messages };
    let alignable = |entry: &Comparable| entry.alignable(None);
    let entries: Vec<Alignable> = rest.iter().take(newest.hashes.len()).map(alignable).collect();
    align(&newest, &entries)
}

/// How many discriminating entries are among the newest stored messages or the next ones, and how
/// many there are up to the last of these. New ones follow in a transcript that goes on.
fn shared(history: &History<'_>, next: &[Kept], rest: &[Comparable]) -> (usize, usize) {
    let mut stored: Vec<[u8; 12]> = history.head.hashes.clone();
    stored.extend(next.iter().map(|kept| keys::prefix::<12>(&kept.hash)));
    order::sort(&mut stored);
    let looked_at = rest.iter().take(WINDOW).filter(|entry| entry.discriminating);
    let looked_at: Vec<[u8; 12]> = looked_at.map(|entry| keys::prefix(&entry.hash)).collect();
    let is_shared = |hash: &[u8; 12]| stored.binary_search(hash).is_ok();
    let last = looked_at.iter().rposition(is_shared).map_or(0, |last| last + 1);
    let shared = looked_at.iter().filter(|hash| is_shared(hash)).count();
    (shared, last)
}
