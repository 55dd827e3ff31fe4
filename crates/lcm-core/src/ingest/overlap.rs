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
    keys, limits, message, num, order,
    pack::{advance, message_hash},
    reader::Reader,
};

use super::identity::{Alignable, INSIDE_ANCHORS_MIN};

/// Messages behind the parting that are compared: those that follow it on either side.
const WINDOW: usize = 64;
/// Messages behind the parting which must be stored for a transcript to count as changed that
/// begins as the stored messages do. A user may well say one thing again.
const SHARED_AFTER_SAME_MIN: usize = 2;
/// Likewise for one that begins otherwise.
const SHARED_AFTER_OTHER_MIN: usize = 3;
/// Places at which a branch that was left may begin that are tried.
const BEGINS_MAX: usize = 4;

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

/// Compares a transcript with the stored messages from their beginning on, and where it parts from
/// them with those that follow and the newest ones. `place` says where an entry stands in the
/// transcript, from 0.
///
/// # Errors
///
/// `exists`: something was changed among messages that are stored; errors of the store.
pub(super) fn parting(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
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
    let rest = entries.get(together..).unwrap_or(&[]);
    let (repeated, whole) = repeated(reader, history, rest)?;
    if repeated > 0 {
        let entries = together + repeated;
        return Ok(if whole { Parting::Together { entries } } else { Parting::Branch { entries } });
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
    entries: &[Alignable],
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
    entries: &[Alignable],
    most: usize,
) -> Result<usize> {
    let same = proven(reader, history, entries, most)?;
    let rest = entries.get(same..most).unwrap_or(&[]);
    let (length, anchors) = run(reader, history, rest, num::to_u64(same) + 1)?;
    Ok(if same > 0 || anchors > 0 { same + length } else { 0 })
}

/// How many entries the running hash proves to be the first stored messages.
fn proven(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
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
    /// Empty: it is too large to be looked at for a redacted copy.
    text: String,
}

/// Stored messages from this seq on, at least one, so many as are compared at a time.
fn page(reader: &mut Reader<'_>, history: &History<'_>, from: u64) -> Result<Vec<Kept>> {
    let mut out = Vec::new();
    for placed in history.messages(reader, from, from + num::to_u64(WINDOW) - 1)? {
        let text = history.text(reader, &placed.stored)?;
        let message = message::project(placed.dialect, &text)
            .map_err(|_| Error::corrupt(format_args!("message {} cannot be read", placed.seq)))?;
        let hash = message_hash(&text, &message);
        let is_small = text.len() <= limits::PACK_BYTES_MAX;
        out.push(Kept { hash, text: if is_small { text.into_owned() } else { String::new() } });
        if !is_small {
            break;
        }
    }
    Ok(out)
}

/// How many of the entries behind an equal beginning are stored further on, in a row, and whether
/// nothing that is stored follows the last of them, or nothing in the transcript.
///
/// That is so of a transcript that was cut behind its system messages, and of a host that goes on
/// with a branch which it had left. In the middle a row needs two anchors: one message may well be
/// said again.
fn repeated(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    rest: &[Alignable],
) -> Result<(usize, bool)> {
    let Head { hashes, messages, .. } = history.head;
    let newest_first = messages + 1 - num::to_u64(hashes.len());
    let is_newest = |end: &usize| {
        let count = hashes.len().min(*end);
        let run = rest.get(end - count..*end).unwrap_or(&[]);
        let stored = hashes.get(hashes.len() - count..).unwrap_or(&[]);
        run.iter().zip(stored).all(|(entry, hash)| entry.is(hash))
    };
    let end = (1..=rest.len().min(num::to_usize(*messages))).rev().find(is_newest);
    let mut begins: Vec<u64> = end.map(|end| messages + 1 - num::to_u64(end)).into_iter().collect();
    begins.extend(likely_begins(newest_first, hashes, rest));
    let mut best = (0, false);
    for begin in begins {
        let (length, anchors) = run(reader, history, rest, begin)?;
        let whole = length == rest.len() || begin + num::to_u64(length) > *messages;
        let is_proven = anchors >= if whole { 1 } else { INSIDE_ANCHORS_MIN };
        if is_proven && length > best.0 {
            best = (length, whole);
        }
    }
    Ok(best)
}

/// Where the entries may begin among the stored messages, going by those that are among the newest:
/// the places that most of them agree on.
fn likely_begins(newest_first: u64, hashes: &[[u8; 12]], rest: &[Alignable]) -> Vec<u64> {
    let mut places: Vec<([u8; 12], u64)> =
        (0..).zip(rest).map(|(at, entry)| (keys::prefix(&entry.hash), at)).collect();
    order::sort(&mut places);
    let mut begins: Vec<u64> = Vec::new();
    for (seq, hash) in (newest_first..).zip(hashes) {
        let from = places.partition_point(|(known, _)| known < hash);
        let equal = places.iter().skip(from).take_while(|(known, _)| known == hash);
        // What is said again and again says little of where it stands.
        begins.extend(equal.take(BEGINS_MAX).filter_map(|(_, at)| seq.checked_sub(*at)));
    }
    order::sort(&mut begins);
    let mut counted: Vec<(usize, u64)> = begins
        .chunk_by(|left, right| left == right)
        .filter_map(|equal| Some((equal.len(), *equal.first().filter(|begin| **begin > 0)?)))
        .collect();
    order::sort(&mut counted);
    counted.into_iter().rev().take(BEGINS_MAX).map(|(_, begin)| begin).collect()
}

/// How many entries are the stored messages from this seq on, and how many of them are evidence.
fn run(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    rest: &[Alignable],
    begin: u64,
) -> Result<(usize, usize)> {
    let (mut length, mut anchors) = (0, 0);
    while length < rest.len() && begin + num::to_u64(length) <= history.head.messages {
        let stored = page(reader, history, begin + num::to_u64(length))?;
        for (entry, stored) in rest.iter().skip(length).zip(&stored) {
            let exact = entry.hash == stored.hash;
            if !exact && !entry.may_be_copy_of(&stored.text) {
                return Ok((length, anchors));
            }
            length += 1;
            anchors += usize::from(exact && entry.discriminating);
        }
    }
    Ok((length, anchors))
}

/// How many discriminating entries are among the newest stored messages or the next ones, and how
/// many there are up to the last of these. New ones follow in a transcript that goes on.
fn shared(history: &History<'_>, next: &[Kept], rest: &[Alignable]) -> (usize, usize) {
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
