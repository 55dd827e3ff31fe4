//! Which entries of a transcript without ids are stored, and as which messages.
//!
//! In: the hashes of a whole transcript. Out: the runs of it that are stored, each with the seq it
//! begins at. Runs keep their order and share no message, so that as many messages are stored as
//! are taken for it: what is said again is missing until it is stored again.
//!
//! A transcript begins as the stored messages do, which the running hash proves, or ends in them,
//! or both, with something left out between. Where something else stands between, it was changed,
//! and that is for the host to decide: storing it would double everything that follows. Where it
//! goes another way and does not come back, that is a branch, stored behind what there is.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::{
    head::Head,
    history::History,
    pack::{advance, message_hash},
    store_session::Reader,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, limits, sort,
    },
    message,
};

use super::identity::{Alignable, INSIDE_ANCHORS_MIN, Newest};

/// Messages behind the parting that are compared: those that follow it on either side.
const WINDOW: usize = 64;
/// Messages behind the parting which must be stored for a transcript to count as changed that
/// begins as the stored messages do. A user may well say one thing again.
const SHARED_AFTER_SAME_MIN: usize = 2;
/// Likewise for one that begins otherwise.
const SHARED_AFTER_OTHER_MIN: usize = 3;
/// Places at which a branch that was left may begin that are tried.
const BEGINS_MAX: usize = 4;

/// Consecutive entries that are consecutive stored messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Run {
    /// Index of the first entry.
    pub(super) from: usize,
    /// Number of entries.
    pub(super) length: usize,
    /// Seq of the first message.
    seq_first: u64,
    /// Entries that are evidence of being the same messages.
    anchors: usize,
}

impl Run {
    fn holds(&self, seq: u64) -> bool {
        (self.seq_first..self.seq_first + int::to_u64(self.length)).contains(&seq)
    }
}

/// What of a transcript is stored.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    /// How it was found: `prefix`, `branch`, `alignment` or `none`.
    pub(super) by: &'static str,
    /// Runs that are stored; some may be empty.
    pub(super) runs: Vec<Run>,
}

/// Compares a transcript with the stored messages, of which there is at least one. Of the entries
/// the caller saw the first `seen` stored; `place` says where one stands in the transcript, from 0;
/// `texts` are those of the newest messages, where there are redacted copies.
///
/// # Errors
///
/// `exists`: something was changed among messages that are stored; errors of the store.
pub(super) fn overlap(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    texts: &[String],
    entries: &[Alignable],
    seen: usize,
    place: &dyn Fn(usize) -> usize,
) -> Result<Overlap> {
    let found = |by, runs: &[Run]| Ok(Overlap { by, runs: runs.into() });
    let stored = int::to_usize(history.head.messages);
    let head = along(reader, history, entries, stored.min(entries.len()))?;
    let is_whole = head.length == entries.len();
    if head.length == stored || (is_whole && head.anchors >= INSIDE_ANCHORS_MIN) {
        return found("prefix", &[head]);
    }
    if head.anchors < INSIDE_ANCHORS_MIN {
        // One thing may well be said again: rather the end of a conversation than all of it.
        let tail = tail(reader, history, texts, entries, 0)?;
        if tail.from == 0 && tail.anchors > 0 {
            return found("alignment", &turned(reader, history, entries, tail)?);
        }
    }
    let tail = tail(reader, history, texts, entries, head.length)?;
    let anchors = head.anchors + tail.anchors;
    // That others wrote between those that were seen is no change.
    let from = head.length.max(seen);
    let between = entries.get(from..tail.from).unwrap_or(&[]);
    let goes_on = tail.length == stored || (between.is_empty() && tail.length > 0);
    if goes_on && (head.length == 0 || anchors >= INSIDE_ANCHORS_MIN) {
        if head.length == 0 {
            return found("alignment", &turned(reader, history, entries, tail)?);
        }
        return found("prefix", &[head, tail]);
    }
    let others = between.iter().filter(|entry| entry.discriminating).count();
    if tail.anchors >= shared_min(head.length) && tail.anchors >= others {
        return Err(changed(place(from) + 1, tail.length, tail.length));
    }
    let (again, is_end) = again(reader, history, entries, &head)?;
    if again.length > 0 {
        let end = again.from + again.length;
        let runs = if head.length == 0 {
            turned(reader, history, entries, again)?
        } else {
            Vec::from([head, again])
        };
        if !is_end && runs.len() < 3 {
            refuse_change(reader, history, entries, (end, seen, &runs), place)?;
        }
        let by = match (head.length > 0, is_end || end == entries.len()) {
            (false, _) => "alignment",
            (true, true) => "prefix",
            (true, false) => "branch",
        };
        return found(by, &runs);
    }
    refuse_change(reader, history, entries, (head.length, seen, &[head]), place)?;
    if head.anchors >= INSIDE_ANCHORS_MIN {
        return found("branch", &[head]);
    }
    found("none", &[])
}

/// A run that begins a transcript, and when what was stored before it follows it, that too and how
/// it goes on: messages that were put before the stored ones stand behind them. What was stored
/// before must have anchors enough, or else it may be what was said again.
fn turned(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
    first: Run,
) -> Result<Vec<Run>> {
    let mut runs = Vec::from([first]);
    let before = int::to_usize(first.seq_first - 1);
    let Some(turned) = entries.get(first.length..first.length + before) else { return Ok(runs) };
    let running = turned.iter().fold([0; 16], |running, entry| advance(&running, &entry.hash));
    let anchors = turned.iter().filter(|entry| entry.discriminating).count();
    if first.from > 0
        || anchors < INSIDE_ANCHORS_MIN
        || frontier(reader, history, first.seq_first - 1)? != running
    {
        return Ok(runs);
    }
    runs.push(Run { from: first.length, length: before, seq_first: 1, anchors });
    let from = first.length + before;
    let seq_first = first.seq_first + int::to_u64(first.length);
    let rest = entries.get(from..).unwrap_or(&[]);
    let (length, anchors) = run(reader, history, rest, seq_first)?;
    runs.push(Run { from, length, seq_first, anchors });
    Ok(runs)
}

/// Entries behind so many equal ones whose messages are stored that say that a transcript was
/// changed.
fn shared_min(equal: usize) -> usize {
    if equal > 0 { SHARED_AFTER_SAME_MIN } else { SHARED_AFTER_OTHER_MIN }
}

fn changed(number: usize, shared: usize, looked_at: usize) -> Error {
    Error::new(
        ErrorCode::Exists,
        format!(
            "the transcript was changed: its message {number} is not the one that is stored \
             there, but {shared} of the {looked_at} that follow are stored"
        ),
    )
}

/// Refuses a transcript of which the messages behind so many entries are stored, beside the runs
/// before them, but not as they stand in it.
fn refuse_change(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
    (equal, seen, runs): (usize, usize, &[Run]),
    place: &dyn Fn(usize) -> usize,
) -> Result<()> {
    let first = runs.iter().find(|run| run.seq_first == 1).map_or(0, |run| run.length);
    let next = match equal < seen {
        // Where those stand that were seen, nobody knows: what follows may be among the newest.
        true => Vec::new(),
        false => page(reader, history, int::to_u64(first) + 1)?,
    };
    let equal = equal.max(seen);
    let next = (int::to_u64(first) + 1..).zip(next.iter().map(|kept| hash::prefix(&kept.hash)));
    let Head { hashes, messages, .. } = history.head;
    let newest = (messages + 1 - int::to_u64(hashes.len())..).zip(hashes.iter().copied());
    let is_free = |(seq, _): &(u64, [u8; 12])| !runs.iter().any(|run| run.holds(*seq));
    let stored: Vec<[u8; 12]> = next.chain(newest).filter(is_free).map(|(_, hash)| hash).collect();
    let (shared, looked_at) = shared(stored, entries.get(equal..).unwrap_or(&[]));
    if shared < shared_min(equal) || shared * 2 < looked_at {
        return Ok(());
    }
    Err(changed(place(equal) + 1, shared, looked_at))
}

/// How many entries are the first stored messages or redacted copies of them, at most `most`.
///
/// A copy counts in a row with exact matches: behind them, or at the beginning and followed by one.
fn along(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
    most: usize,
) -> Result<Run> {
    let same = proven(reader, history, entries, most)?;
    let rest = entries.get(same..most).unwrap_or(&[]);
    let (length, anchors) = run(reader, history, rest, int::to_u64(same) + 1)?;
    if same == 0 && anchors == 0 {
        return Ok(Run::default());
    }
    let proven = entries.iter().take(same).filter(|entry| entry.discriminating).count();
    Ok(Run { from: 0, length: same + length, seq_first: 1, anchors: proven + anchors })
}

/// The longest run of entries from `least` on that ends in the newest stored message, and has an
/// anchor in it. Neither it nor its messages reach into the first `least`. Of equal ones it is the
/// one without an entry before it, or else the last.
fn tail(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    texts: &[String],
    entries: &[Alignable],
    least: usize,
) -> Result<Run> {
    let Head { hashes, messages, .. } = history.head;
    let newest = Newest { hashes, texts, seq_last: *messages };
    let free = int::to_usize(*messages).saturating_sub(least);
    let mut best = Run { from: least, ..Run::default() };
    for end in (least + 1..=entries.len()).rev() {
        let most = free.min(end - least).min(hashes.len());
        let before = entries.get(end - most..end).unwrap_or(&[]);
        let (length, anchors) = newest.ends(before);
        let is_first = length == best.length && end - length == least;
        if anchors > 0 && (length > best.length || is_first) {
            let seq_first = messages + 1 - int::to_u64(length);
            best = Run { from: end - length, length, seq_first, anchors };
        }
    }
    if best.length == hashes.len() {
        lengthen(reader, history, entries, least, &mut best)?;
    }
    Ok(best)
}

/// Lengthens a run to entries before it, not into the first `least`.
fn lengthen(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
    least: usize,
    run: &mut Run,
) -> Result<()> {
    loop {
        let free = int::to_usize(run.seq_first).saturating_sub(least + 1);
        let most = free.min(run.from - least);
        let before = entries.get(run.from - most..run.from).unwrap_or(&[]);
        let mut length = exact_before(reader, history, before, run.seq_first - 1)?;
        if length == 0 {
            // One that is no exact copy may be a redacted one.
            let Some(entry) = before.last().filter(|entry| entry.redacted.is_some()) else {
                return Ok(());
            };
            let stored = page(reader, history, run.seq_first - 1)?;
            if !stored.first().is_some_and(|stored| entry.may_be_copy_of(&stored.text)) {
                return Ok(());
            }
            length = 1;
        }
        run.from -= length;
        run.length += length;
        run.seq_first -= int::to_u64(length);
        let more = entries.iter().skip(run.from).take(length);
        run.anchors += more.filter(|entry| entry.discriminating).count();
    }
}

/// How many entries at the end are the stored messages up to this one.
///
/// Blocks of them are compared by the running hash on either side: twice as long while they are
/// the same, then halved down to the one that is not.
fn exact_before(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
    seq_last: u64,
) -> Result<usize> {
    let (mut length, mut step) = (0, WINDOW);
    let mut differs_at = entries.len() + 1;
    let mut behind = frontier(reader, history, seq_last)?;
    while length + 1 < differs_at {
        let is_sure = differs_at <= entries.len();
        let next =
            if is_sure { (differs_at - length) / 2 } else { step.min(entries.len() - length) };
        let end = entries.len() - length;
        let block = entries.get(end - next..end).unwrap_or(&[]);
        let before = frontier(reader, history, seq_last - int::to_u64(length + next))?;
        let last = block.iter().fold(before, |running, entry| advance(&running, &entry.hash));
        if last == behind {
            length += next;
            behind = before;
            step *= 2;
        } else {
            differs_at = length + next;
        }
    }
    Ok(length)
}

/// The running hash up to and with a message; zeros before the first.
fn frontier(reader: &mut Reader<'_>, history: &History<'_>, seq: u64) -> Result<[u8; 16]> {
    if seq == 0 { Ok([0; 16]) } else { history.frontier(reader, seq) }
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
        let stored = history.frontier(reader, int::to_u64(middle))?;
        if running.get(middle) == Some(&stored) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// A stored message, as it is compared.
pub(super) struct Kept {
    hash: [u8; 16],
    /// Empty: it is too large to be looked at for a redacted copy.
    text: String,
}

impl Kept {
    /// The hash over content and ids.
    pub(super) fn hash(&self) -> [u8; 16] {
        self.hash
    }

    /// Whether an entry is this message, or a redacted copy of it.
    pub(super) fn is(&self, entry: &Alignable) -> bool {
        entry.hash == self.hash || entry.may_be_copy_of(&self.text)
    }
}

/// Stored messages from this seq on, at least one, so many as are compared at a time.
pub(super) fn page(reader: &mut Reader<'_>, history: &History<'_>, from: u64) -> Result<Vec<Kept>> {
    let mut out = Vec::new();
    for placed in history.messages(reader, from, from + int::to_u64(WINDOW) - 1)? {
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

/// The entries behind an equal beginning that are stored further on, in a row, and whether nothing
/// that is stored follows the last of them.
///
/// That is so of a host that goes on with a branch which it had left, and of a piece of the newest
/// messages. It takes two anchors: one message may well be said again.
fn again(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    entries: &[Alignable],
    head: &Run,
) -> Result<(Run, bool)> {
    let Head { hashes, messages, .. } = history.head;
    let rest = entries.get(head.length..).unwrap_or(&[]);
    let newest_first = messages + 1 - int::to_u64(hashes.len());
    let (mut best, mut is_end) = (Run::default(), false);
    for seq_first in likely_begins(newest_first, hashes, rest) {
        if seq_first <= int::to_u64(head.length) {
            continue;
        }
        let (length, anchors) = run(reader, history, rest, seq_first)?;
        if head.anchors + anchors >= INSIDE_ANCHORS_MIN && anchors > 0 && length > best.length {
            best = Run { from: head.length, length, seq_first, anchors };
            is_end = seq_first + int::to_u64(length) > *messages;
        }
    }
    Ok((best, is_end))
}

/// Where the entries may begin among the stored messages, going by those that are among the newest:
/// the places that most of them agree on.
fn likely_begins(newest_first: u64, hashes: &[[u8; 12]], rest: &[Alignable]) -> Vec<u64> {
    let mut places: Vec<([u8; 12], u64)> =
        (0..).zip(rest).map(|(at, entry)| (hash::prefix(&entry.hash), at)).collect();
    sort::sort(&mut places);
    let mut begins: Vec<u64> = Vec::new();
    for (seq, hash) in (newest_first..).zip(hashes) {
        let from = places.partition_point(|(known, _)| known < hash);
        let equal = places.iter().skip(from).take_while(|(known, _)| known == hash);
        // What is said again and again says little of where it stands.
        begins.extend(equal.take(BEGINS_MAX).filter_map(|(_, at)| seq.checked_sub(*at)));
    }
    sort::sort(&mut begins);
    let mut counted: Vec<(usize, u64)> = begins
        .chunk_by(|left, right| left == right)
        .filter_map(|equal| Some((equal.len(), *equal.first().filter(|begin| **begin > 0)?)))
        .collect();
    sort::sort(&mut counted);
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
    while length < rest.len() && begin + int::to_u64(length) <= history.head.messages {
        let stored = page(reader, history, begin + int::to_u64(length))?;
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

/// How many discriminating entries are among these messages, and how many there are up to the last
/// of these. New ones follow in a transcript that goes on.
fn shared(mut stored: Vec<[u8; 12]>, rest: &[Alignable]) -> (usize, usize) {
    sort::sort(&mut stored);
    let looked_at = rest.iter().take(WINDOW).filter(|entry| entry.discriminating);
    let looked_at: Vec<[u8; 12]> = looked_at.map(|entry| hash::prefix(&entry.hash)).collect();
    let is_shared = |hash: &[u8; 12]| stored.binary_search(hash).is_ok();
    let last = looked_at.iter().rposition(is_shared).map_or(0, |last| last + 1);
    let shared = looked_at.iter().filter(|hash| is_shared(hash)).count();
    (shared, last)
}
