//! Diff of a transcript and the stored messages by content, if no id of the transcript is stored.
//!
//! In: the hashes of a whole transcript. Out: the runs of entries that are stored. Runs share no
//! message, so a repeated message is missing until the store has the message as often as the
//! transcript. `reconcile` uses this module.
//!
//! A transcript can share with the store a prefix of its messages, a run that ends with the newest
//! message, or both. Unknown entries between the two mean that the transcript was changed. The
//! caller gets an error then, because storing the rest would store messages after the change
//! twice. A transcript that diverges after a shared prefix and shares no more is a branch. Its rest
//! is stored after the older messages.

use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    head::ConversationHead, history::MessageHistory, pack::advance_frontier,
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, ErrorCode, Result},
    hash, int, sort,
};

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN, MatchedRun, NewestMessages},
    compared_messages::{PAGE_MESSAGES, read_frontier, read_page},
};

/// Most entries after the divergence that are looked up among stored messages.
const WINDOW_ENTRIES: usize = PAGE_MESSAGES;
/// Fewest stored entries after the divergence that show a changed transcript, if entries before the
/// divergence are stored. One stored entry may be a message that was said again.
const SHARED_AFTER_PREFIX_MIN: usize = 2;
/// Fewest stored entries that show a changed transcript, if no first entry is stored.
const SHARED_WITHOUT_PREFIX_MIN: usize = 3;
/// Most start seqs of a resumed branch that are tried, and most equal entries that propose a start
/// for one stored message.
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
    /// Number of entries that are discriminating and equal.
    anchors: usize,
}

impl AlignedRun {
    /// Returns the index after the last entry.
    fn end_index(&self) -> usize {
        self.start + self.length
    }

    fn contains_seq(&self, seq: u64) -> bool {
        (self.seq_first..self.seq_first + int::to_u64(self.length)).contains(&seq)
    }
}

/// The stored part of a transcript.
#[derive(Debug, Default)]
pub(super) struct TranscriptDiff {
    /// How the runs were found: `prefix`, `branch`, `alignment` or `none`.
    pub(super) found_by: &'static str,
    /// The stored runs; a run may be empty.
    pub(super) runs: Vec<AlignedRun>,
}

impl TranscriptDiff {
    fn new(found_by: &'static str, runs: &[AlignedRun]) -> Self {
        Self { found_by, runs: runs.into() }
    }
}

/// A transcript and the stored messages that it is compared with, at least one.
pub(super) struct TranscriptComparison<'a> {
    pub(super) history: &'a MessageHistory<'a>,
    /// Raw texts of the newest messages, oldest first; empty if no entry is a redacted copy.
    pub(super) texts: &'a [String],
    /// The entries that `append` does not skip.
    pub(super) entries: &'a [AlignableEntry],
    /// Number of first entries that are known to be stored.
    pub(super) seen: usize,
    /// Index of each entry in the transcript.
    pub(super) indexes: &'a [usize],
    /// Length of the transcript.
    pub(super) transcript_length: usize,
}

impl TranscriptComparison<'_> {
    /// Compares the transcript with the stored messages.
    ///
    /// # Errors
    ///
    /// `exists`: the transcript was changed among stored messages; errors of the store.
    pub(super) fn diff_transcript(&self, session: &mut StoreSession<'_>) -> Result<TranscriptDiff> {
        let stored = int::to_usize(self.history.head.messages);
        let length = self.entries.len();
        let prefix = self.match_prefix_run(session, stored.min(length))?;
        let is_all = prefix.length == length;
        if prefix.length == stored || (is_all && prefix.anchors >= INSIDE_ANCHORS_MIN) {
            return Ok(TranscriptDiff::new("prefix", &[prefix]));
        }
        if prefix.anchors < INSIDE_ANCHORS_MIN {
            // One equal message at the beginning may have been said again. So a run that ends with
            // the newest message is preferred if the transcript begins with this run.
            let suffix = self.find_suffix_run(session, 0)?;
            if suffix.start == 0 && suffix.anchors > 0 {
                let runs = self.find_rotated_runs(session, suffix)?;
                return Ok(TranscriptDiff::new("alignment", &runs));
            }
        }
        let suffix = self.find_suffix_run(session, prefix.length)?;
        let anchors = prefix.anchors + suffix.anchors;
        // The first `seen` entries are stored, so an unmatched entry among them is no change.
        let from = prefix.length.max(self.seen);
        let between = self.entries.get(from..suffix.start).unwrap_or(&[]);
        let continues = suffix.length == stored || (between.is_empty() && suffix.length > 0);
        if continues && (prefix.length == 0 || anchors >= INSIDE_ANCHORS_MIN) {
            if prefix.length == 0 {
                let runs = self.find_rotated_runs(session, suffix)?;
                return Ok(TranscriptDiff::new("alignment", &runs));
            }
            return Ok(TranscriptDiff::new("prefix", &[prefix, suffix]));
        }
        let others = between.iter().filter(|entry| entry.is_discriminating).count();
        if suffix.anchors >= shared_entries_min(prefix.length) && suffix.anchors >= others {
            let shared = SharedEntries { shared: suffix.length, compared: suffix.length };
            return Err(self.build_changed_error(from, shared));
        }
        self.diff_after_divergence(session, prefix)
    }

    /// Compares a transcript that diverges after `prefix` and was neither recognised nor refused by
    /// a run that ends with the newest message.
    fn diff_after_divergence(
        &self,
        session: &mut StoreSession<'_>,
        prefix: AlignedRun,
    ) -> Result<TranscriptDiff> {
        let (resumed, is_end) = self.find_resumed_run(session, &prefix)?;
        if resumed.length > 0 {
            let end = resumed.end_index();
            let runs = if prefix.length == 0 {
                self.find_rotated_runs(session, resumed)?
            } else {
                Vec::from([prefix, resumed])
            };
            if !is_end && runs.len() < 3 {
                self.ensure_unchanged(session, end, &runs)?;
            }
            let found_by = match (prefix.length > 0, is_end || end == self.entries.len()) {
                (false, _) => "alignment",
                (true, true) => "prefix",
                (true, false) => "branch",
            };
            return Ok(TranscriptDiff::new(found_by, &runs));
        }
        self.ensure_unchanged(session, prefix.length, &[prefix])?;
        if prefix.anchors >= INSIDE_ANCHORS_MIN {
            return Ok(TranscriptDiff::new("branch", &[prefix]));
        }
        Ok(TranscriptDiff::new("none", &[]))
    }

    /// Returns the run `first`; if the transcript is rotated, also the two runs after `first`.
    ///
    /// A transcript is rotated if its first entries were inserted after the rest was stored, so the
    /// store has the first entries after the rest. The second run is all messages stored before
    /// `first`. The third run is the messages stored after `first` that match; it may be empty. The
    /// second run needs enough anchors, because one message may have been said again.
    fn find_rotated_runs(
        &self,
        session: &mut StoreSession<'_>,
        first: AlignedRun,
    ) -> Result<Vec<AlignedRun>> {
        let mut runs = Vec::from([first]);
        let before = int::to_usize(first.seq_first - 1);
        let Some(rotated) = self.entries.get(first.length..first.length + before) else {
            return Ok(runs);
        };
        let running = advance_over(&[0; 16], rotated);
        let anchors = rotated.iter().filter(|entry| entry.is_discriminating).count();
        if first.start > 0
            || anchors < INSIDE_ANCHORS_MIN
            || read_frontier(session, self.history, first.seq_first - 1)? != running
        {
            return Ok(runs);
        }
        runs.push(AlignedRun { start: first.length, length: before, seq_first: 1, anchors });
        let start = first.length + before;
        let seq_first = first.seq_first + int::to_u64(first.length);
        let rest = self.entries.get(start..).unwrap_or(&[]);
        let MatchedRun { length, anchors } = self.match_messages(session, rest, seq_first)?;
        runs.push(AlignedRun { start, length, seq_first, anchors });
        Ok(runs)
    }

    /// Builds the error for a transcript that was changed at index `number` of `entries`.
    fn build_changed_error(&self, number: usize, entries: SharedEntries) -> Error {
        let index = self.indexes.get(number).copied().unwrap_or(self.transcript_length);
        let SharedEntries { shared, compared } = entries;
        let place = index + 1;
        Error::new(
            ErrorCode::Exists,
            format!(
                "message {place} of the transcript must equal the stored message at that place: \
                 {shared} of the {compared} messages after it are stored, so the transcript was \
                 changed"
            ),
        )
    }

    /// Refuses a transcript if at least half of the compared entries after the first `equal` are
    /// stored outside `runs`, the stored runs among the first `equal` entries.
    fn ensure_unchanged(
        &self,
        session: &mut StoreSession<'_>,
        equal: usize,
        runs: &[AlignedRun],
    ) -> Result<()> {
        let prefix = runs.iter().find(|run| run.seq_first == 1).map_or(0, |run| run.length);
        let seq_next = int::to_u64(prefix) + 1;
        let next = match equal < self.seen {
            // The seqs of the entries from `equal` to `seen` are unknown, so only the newest
            // messages are compared.
            true => Vec::new(),
            false => read_page(session, self.history, seq_next)?,
        };
        let equal = equal.max(self.seen);
        let next = (seq_next..).zip(next.iter().map(|stored| hash::hash_prefix(&stored.hash)));
        let ConversationHead { recent_hashes: hashes, messages, .. } = self.history.head;
        let newest = (messages + 1 - int::to_u64(hashes.len())..).zip(hashes.iter().copied());
        let is_free = |(seq, _): &(u64, [u8; 12])| !runs.iter().any(|run| run.contains_seq(*seq));
        let stored: Vec<[u8; 12]> =
            next.chain(newest).filter(is_free).map(|(_, hash)| hash).collect();
        let entries = count_shared(stored, self.entries.get(equal..).unwrap_or(&[]));
        if entries.shared < shared_entries_min(equal) || entries.shared * 2 < entries.compared {
            return Ok(());
        }
        Err(self.build_changed_error(equal, entries))
    }

    /// Matches at most `most` first entries with the first stored messages, exactly or as redacted
    /// copies.
    ///
    /// The run is empty if the running hash proves no entry and no matched entry is an anchor.
    fn match_prefix_run(&self, session: &mut StoreSession<'_>, most: usize) -> Result<AlignedRun> {
        let same = self.count_proven_prefix(session, most)?;
        let rest = self.entries.get(same..most).unwrap_or(&[]);
        let more = self.match_messages(session, rest, int::to_u64(same) + 1)?;
        if same == 0 && more.anchors == 0 {
            return Ok(AlignedRun::default());
        }
        let proven = self.entries.iter().take(same);
        let proven = proven.filter(|entry| entry.is_discriminating).count();
        let (length, anchors) = (same + more.length, proven + more.anchors);
        Ok(AlignedRun { start: 0, length, seq_first: 1, anchors })
    }

    /// Finds the longest run with an anchor that ends with the newest stored message. Neither its
    /// entries nor its messages are among the first `least`. Of equally long runs, the run at entry
    /// `least` is preferred, then the last run. The run is empty if there is none.
    fn find_suffix_run(&self, session: &mut StoreSession<'_>, least: usize) -> Result<AlignedRun> {
        let ConversationHead { recent_hashes: hashes, messages, .. } = self.history.head;
        let newest = NewestMessages { hashes, texts: self.texts, seq_last: *messages };
        let free = int::to_usize(*messages).saturating_sub(least);
        let mut best = AlignedRun { start: least, ..AlignedRun::default() };
        for end in (least + 1..=self.entries.len()).rev() {
            let most = free.min(end - least).min(hashes.len());
            let before = self.entries.get(end - most..end).unwrap_or(&[]);
            let MatchedRun { length, anchors } = newest.match_suffix(before);
            let is_first = length == best.length && end - length == least;
            if anchors > 0 && (length > best.length || is_first) {
                let seq_first = messages + 1 - int::to_u64(length);
                best = AlignedRun { start: end - length, length, seq_first, anchors };
            }
        }
        if best.length == hashes.len() {
            self.extend_run(session, least, &mut best)?;
        }
        Ok(best)
    }

    /// Extends a run backwards while entries match messages, at most to the entry at index `least`.
    fn extend_run(
        &self,
        session: &mut StoreSession<'_>,
        least: usize,
        run: &mut AlignedRun,
    ) -> Result<()> {
        loop {
            let free = int::to_usize(run.seq_first).saturating_sub(least + 1);
            let most = free.min(run.start - least);
            let before = self.entries.get(run.start - most..run.start).unwrap_or(&[]);
            let mut length = self.count_equal_before(session, before, run.seq_first - 1)?;
            if length == 0 {
                // An entry that does not match exactly may be a redacted copy.
                let Some(entry) = before.last().filter(|entry| entry.redacted_copy.is_some())
                else {
                    return Ok(());
                };
                let stored = read_page(session, self.history, run.seq_first - 1)?;
                if !stored.first().is_some_and(|stored| entry.may_be_copy_of(&stored.text)) {
                    return Ok(());
                }
                length = 1;
            }
            run.start -= length;
            run.length += length;
            run.seq_first -= int::to_u64(length);
            let more = self.entries.iter().skip(run.start).take(length);
            run.anchors += more.filter(|entry| entry.is_discriminating).count();
        }
    }

    /// Returns how many of the last `entries` equal the stored messages that end with `seq_last`.
    ///
    /// Compares blocks by their running hashes. The block length doubles while blocks are equal,
    /// then halves down to the entry that differs.
    fn count_equal_before(
        &self,
        session: &mut StoreSession<'_>,
        entries: &[AlignableEntry],
        seq_last: u64,
    ) -> Result<usize> {
        let (mut length, mut step) = (0, PAGE_MESSAGES);
        let mut differs_at = entries.len() + 1;
        let mut after = read_frontier(session, self.history, seq_last)?;
        while length + 1 < differs_at {
            let is_bounded = differs_at <= entries.len();
            let next = if is_bounded {
                (differs_at - length) / 2
            } else {
                step.min(entries.len() - length)
            };
            let end = entries.len() - length;
            let block = entries.get(end - next..end).unwrap_or(&[]);
            let seq_before = seq_last - int::to_u64(length + next);
            let before = read_frontier(session, self.history, seq_before)?;
            if advance_over(&before, block) == after {
                length += next;
                after = before;
                step *= 2;
            } else {
                differs_at = length + next;
            }
        }
        Ok(length)
    }

    /// Returns how many of the first `most` entries the running hash proves to be the first stored
    /// messages.
    fn count_proven_prefix(&self, session: &mut StoreSession<'_>, most: usize) -> Result<usize> {
        let mut running = alloc::vec![[0; 16]];
        for entry in self.entries.iter().take(most) {
            let last = running.last().copied().unwrap_or_default();
            running.push(advance_frontier(&last, &entry.hash));
        }
        // The first `low` entries equal stored messages, the first `high` entries do not.
        let (mut low, mut high) = (0, running.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let stored = self.history.frontier_at(session, int::to_u64(middle))?;
            if running.get(middle) == Some(&stored) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Finds the longest run of the entries right after `prefix` that begins at a later message.
    /// Also returns whether the run ends with the newest message. Only the start seqs of
    /// [`rank_start_seqs`] are tried; the run is empty if none fits.
    ///
    /// The run exists when a host resumes a branch that it left, or sends a piece of the newest
    /// messages. The run must have an anchor, and run and prefix together two anchors, because one
    /// message may have been said again.
    fn find_resumed_run(
        &self,
        session: &mut StoreSession<'_>,
        prefix: &AlignedRun,
    ) -> Result<(AlignedRun, bool)> {
        let ConversationHead { recent_hashes: hashes, messages, .. } = self.history.head;
        let rest = self.entries.get(prefix.length..).unwrap_or(&[]);
        let newest_first = messages + 1 - int::to_u64(hashes.len());
        let (mut best, mut is_end) = (AlignedRun::default(), false);
        for seq_first in rank_start_seqs(newest_first, hashes, rest) {
            if seq_first <= int::to_u64(prefix.length) {
                continue;
            }
            let MatchedRun { length, anchors } = self.match_messages(session, rest, seq_first)?;
            let is_evident = prefix.anchors + anchors >= INSIDE_ANCHORS_MIN && anchors > 0;
            if is_evident && length > best.length {
                best = AlignedRun { start: prefix.length, length, seq_first, anchors };
                is_end = seq_first + int::to_u64(length) > *messages;
            }
        }
        Ok((best, is_end))
    }

    /// Matches entries with the stored messages from `seq_first` on, up to the first difference.
    fn match_messages(
        &self,
        session: &mut StoreSession<'_>,
        entries: &[AlignableEntry],
        seq_first: u64,
    ) -> Result<MatchedRun> {
        let mut run = MatchedRun::default();
        loop {
            let seq = seq_first + int::to_u64(run.length);
            if run.length >= entries.len() || seq > self.history.head.messages {
                return Ok(run);
            }
            let stored = read_page(session, self.history, seq)?;
            for (entry, stored) in entries.iter().skip(run.length).zip(&stored) {
                if !stored.matches_entry(entry) {
                    return Ok(run);
                }
                run.length += 1;
                let is_exact = entry.hash == stored.hash;
                run.anchors += usize::from(is_exact && entry.is_discriminating);
            }
        }
    }
}

/// Returns the running hash after entries that follow `running`.
fn advance_over(running: &[u8; 16], entries: &[AlignableEntry]) -> [u8; 16] {
    entries.iter().fold(*running, |running, entry| advance_frontier(&running, &entry.hash))
}

/// Returns the fewest stored entries after the first `equal` entries that show a changed
/// transcript.
fn shared_entries_min(equal: usize) -> usize {
    if equal > 0 { SHARED_AFTER_PREFIX_MIN } else { SHARED_WITHOUT_PREFIX_MIN }
}

/// Returns at most 4 seqs at which `rest` may begin in the store. The seq on which most of the
/// newest messages agree comes first.
fn rank_start_seqs(newest_first: u64, hashes: &[[u8; 12]], rest: &[AlignableEntry]) -> Vec<u64> {
    let mut places: Vec<([u8; 12], u64)> =
        (0..).zip(rest).map(|(place, entry)| (hash::hash_prefix(&entry.hash), place)).collect();
    sort::sort(&mut places);
    let mut starts: Vec<u64> = Vec::new();
    for (seq, hash) in (newest_first..).zip(hashes) {
        let from = places.partition_point(|(known, _)| known < hash);
        let equal = places.iter().skip(from).take_while(|(known, _)| known == hash);
        // An entry that is repeated often says little about the start.
        let equal = equal.take(START_CANDIDATES_MAX);
        starts.extend(equal.filter_map(|(_, place)| seq.checked_sub(*place)));
    }
    sort::sort(&mut starts);
    let mut counted: Vec<(usize, u64)> = starts
        .chunk_by(|left, right| left == right)
        .filter_map(|equal| Some((equal.len(), *equal.first().filter(|start| **start > 0)?)))
        .collect();
    sort::sort(&mut counted);
    counted.into_iter().rev().take(START_CANDIDATES_MAX).map(|(_, start)| start).collect()
}

/// Counts of discriminating entries after a divergence.
#[derive(Clone, Copy)]
struct SharedEntries {
    /// Number of stored entries.
    shared: usize,
    /// Number of entries up to the last stored entry.
    compared: usize,
}

/// Counts the discriminating entries of the window that are in `stored`. Entries after the last
/// stored entry are not counted as compared: they are new in a transcript that continues.
fn count_shared(mut stored: Vec<[u8; 12]>, rest: &[AlignableEntry]) -> SharedEntries {
    sort::sort(&mut stored);
    let window = rest.iter().take(WINDOW_ENTRIES).filter(|entry| entry.is_discriminating);
    let window: Vec<[u8; 12]> = window.map(|entry| hash::hash_prefix(&entry.hash)).collect();
    let is_shared = |hash: &[u8; 12]| stored.binary_search(hash).is_ok();
    let compared = window.iter().rposition(is_shared).map_or(0, |last| last + 1);
    let shared = window.iter().filter(|hash| is_shared(hash)).count();
    SharedEntries { shared, compared }
}
