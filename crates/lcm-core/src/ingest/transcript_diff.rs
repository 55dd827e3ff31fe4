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
    head::ConversationHead,
    history::MessageHistory,
    pack::{advance_frontier, message_hash},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, limits, sort,
    },
    message,
};

use super::identity::{AlignableEntry, INSIDE_ANCHORS_MIN, NewestMessages};

/// Messages behind the parting that are compared: those that follow it on either side.
const WINDOW_MESSAGES: usize = 64;
/// Messages behind the parting which must be stored for a transcript to count as changed that
/// begins as the stored messages do. A user may well say one thing again.
const SHARED_AFTER_PREFIX_MIN: usize = 2;
/// Likewise for one that begins otherwise.
const SHARED_WITHOUT_PREFIX_MIN: usize = 3;
/// Places at which a branch that was left may begin that are tried.
const START_CANDIDATES_MAX: usize = 4;

/// Consecutive entries that are consecutive stored messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct AlignedRun {
    /// Index of the first entry.
    pub(super) start: usize,
    /// Number of entries.
    pub(super) length: usize,
    /// Seq of the first message.
    seq_first: u64,
    /// Entries that are evidence of being the same messages.
    anchors: usize,
}

impl AlignedRun {
    fn contains_seq(&self, seq: u64) -> bool {
        (self.seq_first..self.seq_first + int::to_u64(self.length)).contains(&seq)
    }
}

/// What of a transcript is stored.
#[derive(Debug, Default)]
pub(super) struct TranscriptDiff {
    /// How it was found: `prefix`, `branch`, `alignment` or `none`.
    pub(super) found_by: &'static str,
    /// Runs that are stored; some may be empty.
    pub(super) runs: Vec<AlignedRun>,
}

/// Compares a transcript with the stored messages, of which there is at least one. Of the entries
/// the caller saw the first `seen` stored; `place` says where one stands in the transcript, from 0;
/// `texts` are those of the newest messages, where there are redacted copies.
///
/// # Errors
///
/// `exists`: something was changed among messages that are stored; errors of the store.
pub(super) fn diff_transcript(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    texts: &[String],
    entries: &[AlignableEntry],
    seen: usize,
    place: &dyn Fn(usize) -> usize,
) -> Result<TranscriptDiff> {
    let found = |by, runs: &[AlignedRun]| Ok(TranscriptDiff { found_by: by, runs: runs.into() });
    let stored = int::to_usize(history.head.messages);
    let head = match_prefix_run(reader, history, entries, stored.min(entries.len()))?;
    let is_whole = head.length == entries.len();
    if head.length == stored || (is_whole && head.anchors >= INSIDE_ANCHORS_MIN) {
        return found("prefix", &[head]);
    }
    if head.anchors < INSIDE_ANCHORS_MIN {
        // One thing may well be said again: rather the end of a conversation than all of it.
        let tail = find_suffix_run(reader, history, texts, entries, 0)?;
        if tail.start == 0 && tail.anchors > 0 {
            return found("alignment", &find_rotated_runs(reader, history, entries, tail)?);
        }
    }
    let tail = find_suffix_run(reader, history, texts, entries, head.length)?;
    let anchors = head.anchors + tail.anchors;
    // That others wrote between those that were seen is no change.
    let from = head.length.max(seen);
    let between = entries.get(from..tail.start).unwrap_or(&[]);
    let goes_on = tail.length == stored || (between.is_empty() && tail.length > 0);
    if goes_on && (head.length == 0 || anchors >= INSIDE_ANCHORS_MIN) {
        if head.length == 0 {
            return found("alignment", &find_rotated_runs(reader, history, entries, tail)?);
        }
        return found("prefix", &[head, tail]);
    }
    let others = between.iter().filter(|entry| entry.is_discriminating).count();
    if tail.anchors >= shared_entries_min(head.length) && tail.anchors >= others {
        return Err(build_changed_error(place(from) + 1, tail.length, tail.length));
    }
    let (again, is_end) = find_resumed_run(reader, history, entries, &head)?;
    if again.length > 0 {
        let end = again.start + again.length;
        let runs = if head.length == 0 {
            find_rotated_runs(reader, history, entries, again)?
        } else {
            Vec::from([head, again])
        };
        if !is_end && runs.len() < 3 {
            ensure_unchanged(reader, history, entries, (end, seen, &runs), place)?;
        }
        let by = match (head.length > 0, is_end || end == entries.len()) {
            (false, _) => "alignment",
            (true, true) => "prefix",
            (true, false) => "branch",
        };
        return found(by, &runs);
    }
    ensure_unchanged(reader, history, entries, (head.length, seen, &[head]), place)?;
    if head.anchors >= INSIDE_ANCHORS_MIN {
        return found("branch", &[head]);
    }
    found("none", &[])
}

/// A run that begins a transcript, and when what was stored before it follows it, that too and how
/// it goes on: messages that were put before the stored ones stand behind them. What was stored
/// before must have anchors enough, or else it may be what was said again.
fn find_rotated_runs(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    first: AlignedRun,
) -> Result<Vec<AlignedRun>> {
    let mut runs = Vec::from([first]);
    let before = int::to_usize(first.seq_first - 1);
    let Some(turned) = entries.get(first.length..first.length + before) else { return Ok(runs) };
    let running =
        turned.iter().fold([0; 16], |running, entry| advance_frontier(&running, &entry.hash));
    let anchors = turned.iter().filter(|entry| entry.is_discriminating).count();
    if first.start > 0
        || anchors < INSIDE_ANCHORS_MIN
        || read_frontier(reader, history, first.seq_first - 1)? != running
    {
        return Ok(runs);
    }
    runs.push(AlignedRun { start: first.length, length: before, seq_first: 1, anchors });
    let from = first.length + before;
    let seq_first = first.seq_first + int::to_u64(first.length);
    let rest = entries.get(from..).unwrap_or(&[]);
    let (length, anchors) = match_messages(reader, history, rest, seq_first)?;
    runs.push(AlignedRun { start: from, length, seq_first, anchors });
    Ok(runs)
}

/// Entries behind so many equal ones whose messages are stored that say that a transcript was
/// changed.
fn shared_entries_min(equal: usize) -> usize {
    if equal > 0 { SHARED_AFTER_PREFIX_MIN } else { SHARED_WITHOUT_PREFIX_MIN }
}

fn build_changed_error(number: usize, shared: usize, looked_at: usize) -> Error {
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
fn ensure_unchanged(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    (equal, seen, runs): (usize, usize, &[AlignedRun]),
    place: &dyn Fn(usize) -> usize,
) -> Result<()> {
    let first = runs.iter().find(|run| run.seq_first == 1).map_or(0, |run| run.length);
    let next = match equal < seen {
        // Where those stand that were seen, nobody knows: what follows may be among the newest.
        true => Vec::new(),
        false => read_page(reader, history, int::to_u64(first) + 1)?,
    };
    let equal = equal.max(seen);
    let next =
        (int::to_u64(first) + 1..).zip(next.iter().map(|kept| hash::hash_prefix(&kept.hash)));
    let ConversationHead { recent_hashes: hashes, messages, .. } = history.head;
    let newest = (messages + 1 - int::to_u64(hashes.len())..).zip(hashes.iter().copied());
    let is_free = |(seq, _): &(u64, [u8; 12])| !runs.iter().any(|run| run.contains_seq(*seq));
    let stored: Vec<[u8; 12]> = next.chain(newest).filter(is_free).map(|(_, hash)| hash).collect();
    let (shared, looked_at) = count_shared(stored, entries.get(equal..).unwrap_or(&[]));
    if shared < shared_entries_min(equal) || shared * 2 < looked_at {
        return Ok(());
    }
    Err(build_changed_error(place(equal) + 1, shared, looked_at))
}

/// How many entries are the first stored messages or redacted copies of them, at most `most`.
///
/// A copy counts in a row with exact matches: behind them, or at the beginning and followed by one.
fn match_prefix_run(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    most: usize,
) -> Result<AlignedRun> {
    let same = count_proven_prefix(reader, history, entries, most)?;
    let rest = entries.get(same..most).unwrap_or(&[]);
    let (length, anchors) = match_messages(reader, history, rest, int::to_u64(same) + 1)?;
    if same == 0 && anchors == 0 {
        return Ok(AlignedRun::default());
    }
    let proven = entries.iter().take(same).filter(|entry| entry.is_discriminating).count();
    Ok(AlignedRun { start: 0, length: same + length, seq_first: 1, anchors: proven + anchors })
}

/// The longest run of entries from `least` on that ends in the newest stored message, and has an
/// anchor in it. Neither it nor its messages reach into the first `least`. Of equal ones it is the
/// one without an entry before it, or else the last.
fn find_suffix_run(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    texts: &[String],
    entries: &[AlignableEntry],
    least: usize,
) -> Result<AlignedRun> {
    let ConversationHead { recent_hashes: hashes, messages, .. } = history.head;
    let newest = NewestMessages { hashes, texts, seq_last: *messages };
    let free = int::to_usize(*messages).saturating_sub(least);
    let mut best = AlignedRun { start: least, ..AlignedRun::default() };
    for end in (least + 1..=entries.len()).rev() {
        let most = free.min(end - least).min(hashes.len());
        let before = entries.get(end - most..end).unwrap_or(&[]);
        let (length, anchors) = newest.match_suffix(before);
        let is_first = length == best.length && end - length == least;
        if anchors > 0 && (length > best.length || is_first) {
            let seq_first = messages + 1 - int::to_u64(length);
            best = AlignedRun { start: end - length, length, seq_first, anchors };
        }
    }
    if best.length == hashes.len() {
        extend_run(reader, history, entries, least, &mut best)?;
    }
    Ok(best)
}

/// Lengthens a run to entries before it, not into the first `least`.
fn extend_run(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    least: usize,
    run: &mut AlignedRun,
) -> Result<()> {
    loop {
        let free = int::to_usize(run.seq_first).saturating_sub(least + 1);
        let most = free.min(run.start - least);
        let before = entries.get(run.start - most..run.start).unwrap_or(&[]);
        let mut length = count_equal_before(reader, history, before, run.seq_first - 1)?;
        if length == 0 {
            // One that is no exact copy may be a redacted one.
            let Some(entry) = before.last().filter(|entry| entry.redacted_copy.is_some()) else {
                return Ok(());
            };
            let stored = read_page(reader, history, run.seq_first - 1)?;
            if !stored.first().is_some_and(|stored| entry.may_be_copy_of(&stored.text)) {
                return Ok(());
            }
            length = 1;
        }
        run.start -= length;
        run.length += length;
        run.seq_first -= int::to_u64(length);
        let more = entries.iter().skip(run.start).take(length);
        run.anchors += more.filter(|entry| entry.is_discriminating).count();
    }
}

/// How many entries at the end are the stored messages up to this one.
///
/// Blocks of them are compared by the running hash on either side: twice as long while they are
/// the same, then halved down to the one that is not.
fn count_equal_before(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    seq_last: u64,
) -> Result<usize> {
    let (mut length, mut step) = (0, WINDOW_MESSAGES);
    let mut differs_at = entries.len() + 1;
    let mut behind = read_frontier(reader, history, seq_last)?;
    while length + 1 < differs_at {
        let is_sure = differs_at <= entries.len();
        let next =
            if is_sure { (differs_at - length) / 2 } else { step.min(entries.len() - length) };
        let end = entries.len() - length;
        let block = entries.get(end - next..end).unwrap_or(&[]);
        let before = read_frontier(reader, history, seq_last - int::to_u64(length + next))?;
        let last =
            block.iter().fold(before, |running, entry| advance_frontier(&running, &entry.hash));
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
fn read_frontier(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
) -> Result<[u8; 16]> {
    if seq == 0 { Ok([0; 16]) } else { history.frontier_at(reader, seq) }
}

/// How many entries the running hash proves to be the first stored messages.
fn count_proven_prefix(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    most: usize,
) -> Result<usize> {
    let mut running = alloc::vec![[0; 16]];
    for entry in entries.iter().take(most) {
        let last = running.last().copied().unwrap_or_default();
        running.push(advance_frontier(&last, &entry.hash));
    }
    // The stored messages are these entries up to `low`, and are not up to `high`.
    let (mut low, mut high) = (0, running.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let stored = history.frontier_at(reader, int::to_u64(middle))?;
        if running.get(middle) == Some(&stored) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// A stored message, as it is compared.
pub(super) struct ComparedMessage {
    hash: [u8; 16],
    /// Empty: it is too large to be looked at for a redacted copy.
    text: String,
}

impl ComparedMessage {
    /// The hash over content and ids.
    pub(super) fn hash(&self) -> [u8; 16] {
        self.hash
    }

    /// Whether an entry is this message, or a redacted copy of it.
    pub(super) fn matches_entry(&self, entry: &AlignableEntry) -> bool {
        entry.hash == self.hash || entry.may_be_copy_of(&self.text)
    }
}

/// Stored messages from this seq on, at least one, so many as are compared at a time.
pub(super) fn read_page(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    from: u64,
) -> Result<Vec<ComparedMessage>> {
    let mut out = Vec::new();
    for placed in history.read_messages(reader, from, from + int::to_u64(WINDOW_MESSAGES) - 1)? {
        let text = history.read_text(reader, &placed.stored)?;
        let message = message::parse(placed.dialect, &text).map_err(|_| {
            Error::corrupt_store(format_args!("message {} cannot be read", placed.seq))
        })?;
        let hash = message_hash(&text, &message);
        let is_small = text.len() <= limits::PACK_BYTES_MAX;
        out.push(ComparedMessage {
            hash,
            text: if is_small { text.into_owned() } else { String::new() },
        });
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
fn find_resumed_run(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    head: &AlignedRun,
) -> Result<(AlignedRun, bool)> {
    let ConversationHead { recent_hashes: hashes, messages, .. } = history.head;
    let rest = entries.get(head.length..).unwrap_or(&[]);
    let newest_first = messages + 1 - int::to_u64(hashes.len());
    let (mut best, mut is_end) = (AlignedRun::default(), false);
    for seq_first in rank_start_seqs(newest_first, hashes, rest) {
        if seq_first <= int::to_u64(head.length) {
            continue;
        }
        let (length, anchors) = match_messages(reader, history, rest, seq_first)?;
        if head.anchors + anchors >= INSIDE_ANCHORS_MIN && anchors > 0 && length > best.length {
            best = AlignedRun { start: head.length, length, seq_first, anchors };
            is_end = seq_first + int::to_u64(length) > *messages;
        }
    }
    Ok((best, is_end))
}

/// Where the entries may begin among the stored messages, going by those that are among the newest:
/// the places that most of them agree on.
fn rank_start_seqs(newest_first: u64, hashes: &[[u8; 12]], rest: &[AlignableEntry]) -> Vec<u64> {
    let mut places: Vec<([u8; 12], u64)> =
        (0..).zip(rest).map(|(at, entry)| (hash::hash_prefix(&entry.hash), at)).collect();
    sort::sort(&mut places);
    let mut begins: Vec<u64> = Vec::new();
    for (seq, hash) in (newest_first..).zip(hashes) {
        let from = places.partition_point(|(known, _)| known < hash);
        let equal = places.iter().skip(from).take_while(|(known, _)| known == hash);
        // What is said again and again says little of where it stands.
        begins.extend(equal.take(START_CANDIDATES_MAX).filter_map(|(_, at)| seq.checked_sub(*at)));
    }
    sort::sort(&mut begins);
    let mut counted: Vec<(usize, u64)> = begins
        .chunk_by(|left, right| left == right)
        .filter_map(|equal| Some((equal.len(), *equal.first().filter(|begin| **begin > 0)?)))
        .collect();
    sort::sort(&mut counted);
    counted.into_iter().rev().take(START_CANDIDATES_MAX).map(|(_, begin)| begin).collect()
}

/// How many entries are the stored messages from this seq on, and how many of them are evidence.
fn match_messages(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    rest: &[AlignableEntry],
    begin: u64,
) -> Result<(usize, usize)> {
    let (mut length, mut anchors) = (0, 0);
    while length < rest.len() && begin + int::to_u64(length) <= history.head.messages {
        let stored = read_page(reader, history, begin + int::to_u64(length))?;
        for (entry, stored) in rest.iter().skip(length).zip(&stored) {
            let exact = entry.hash == stored.hash;
            if !exact && !entry.may_be_copy_of(&stored.text) {
                return Ok((length, anchors));
            }
            length += 1;
            anchors += usize::from(exact && entry.is_discriminating);
        }
    }
    Ok((length, anchors))
}

/// How many discriminating entries are among these messages, and how many there are up to the last
/// of these. New ones follow in a transcript that goes on.
fn count_shared(mut stored: Vec<[u8; 12]>, rest: &[AlignableEntry]) -> (usize, usize) {
    sort::sort(&mut stored);
    let looked_at = rest.iter().take(WINDOW_MESSAGES).filter(|entry| entry.is_discriminating);
    let looked_at: Vec<[u8; 12]> = looked_at.map(|entry| hash::hash_prefix(&entry.hash)).collect();
    let is_shared = |hash: &[u8; 12]| stored.binary_search(hash).is_ok();
    let last = looked_at.iter().rposition(is_shared).map_or(0, |last| last + 1);
    let shared = looked_at.iter().filter(|hash| is_shared(hash)).count();
    (shared, last)
}
