//! Comparison of a list of a host with the line: which entries are stored, and where.
//!
//! In: the entries of a list, whole or its end, and the line. Out: the position of each entry that
//! is stored. Matched entries keep their order and share no message.
//!
//! | by | what it needs | reads |
//! |---|---|---|
//! | `list` | the list begins with a list that was accepted before | nothing |
//! | `ids` | an id of an entry is stored | messages beside the ids |
//! | `prefix` | the list begins like the line | the equal messages |
//! | `alignment` | the list begins with the newest messages, or lies among them | those messages |
//!
//! The entries of a whole list between and after what was found are aligned with the messages there
//! ([`super::range_alignment`]). So a whole list may have changes, omissions and insertions.

use alloc::{string::String, vec::Vec};

use crate::storage::{message_mark::MessageMark, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN, MatchedRun, NewestMessages},
    anchor_alignment,
    range_alignment::ComparedRange,
    stored_line::StoredLine,
};

/// Start positions within the newest messages that are tried.
const START_CANDIDATES_MAX: usize = 4;

/// A list and the line, at least one message long.
pub(super) struct LineComparison<'a, 'b> {
    pub(super) line: &'a StoredLine<'b>,
    /// The entries that an append does not skip.
    pub(super) entries: &'a [AlignableEntry],
    /// Number of first entries that are known to be stored.
    pub(super) confirmed: usize,
    /// Texts of the newest messages; empty if no entry is a redacted copy.
    pub(super) texts: &'a [String],
    /// Returns whether the host gave an entry an id, stored or not.
    pub(super) has_id: &'a dyn Fn(usize) -> bool,
}

/// The stored entries of a list.
#[derive(Debug, Default)]
pub(super) struct LineDiff {
    /// How they were found: a name of the table above, or `none`.
    pub(super) found_by: &'static str,
    /// Number of first entries that are stored, at positions that were not looked up.
    pub(super) accepted: usize,
    /// Position after which nothing belongs to the first `accepted` entries.
    pub(super) position_accepted: u64,
    /// Position of each entry; `None`: not stored, or accepted.
    pub(super) positions: Vec<Option<u64>>,
}

impl LineDiff {
    /// The comparison of a list that is not compared: only entries known by id are stored.
    pub(super) fn from_ids(entries: &[AlignableEntry]) -> Self {
        let positions: Vec<Option<u64>> = entries.iter().map(|entry| entry.position).collect();
        let is_known = positions.iter().any(Option::is_some);
        let found_by = if is_known { "ids" } else { "none" };
        Self { found_by, accepted: 0, position_accepted: 0, positions }
    }

    /// Returns whether an entry is stored.
    pub(super) fn is_stored(&self, index: usize) -> bool {
        index < self.accepted || self.positions.get(index).copied().flatten().is_some()
    }

    /// Adds a run.
    fn add_run(&mut self, run: &AlignedRun) {
        let slots = self.positions.iter_mut().skip(run.start).take(run.length);
        slots.zip(run.position_first..).for_each(|(slot, position)| *slot = Some(position));
    }
}

/// Consecutive entries that are consecutive messages of the line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct AlignedRun {
    /// Index of the first entry.
    start: usize,
    length: usize,
    /// Position in the line, from 1, of the message that equals the first entry.
    position_first: u64,
    /// Entries that are anchors.
    anchors: usize,
}

impl LineComparison<'_, '_> {
    /// Compares the list with the line.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn compare_list(&self, session: &mut StoreSession<'_>) -> Result<LineDiff> {
        let positions = alloc::vec![None; self.entries.len()];
        let mut diff = LineDiff { found_by: "none", positions, ..LineDiff::default() };
        if let Some((accepted, position)) = self.find_accepted() {
            diff.found_by = "list";
            (diff.accepted, diff.position_accepted) = (accepted, position);
        } else if self.entries.iter().any(|entry| entry.position.is_some()) {
            diff.found_by = "ids";
            diff.positions =
                anchor_alignment::align_entries(session, self.line, self.entries, self.has_id)?;
        } else {
            self.find_runs(session, &mut diff)?;
        }
        // In a piece of a list, what follows may well be said again.
        if matches!(diff.found_by, "list" | "ids" | "prefix") {
            self.align_gaps(session, &mut diff)?;
        }
        Ok(diff)
    }

    /// Finds the longest accepted list with which the list begins: its number of entries, and the
    /// position of the newest message when it was accepted.
    fn find_accepted(&self) -> Option<(usize, u64)> {
        let head = self.line.message_history().head;
        let known = |hash: &[u8; 16]| {
            let list = head.accepted_lists.iter().rev().find(|list| list.hash == *hash);
            list.map(|list| self.line.count_through(list.seq_last))
        };
        let entries = self.entries.iter().enumerate().rev();
        entries.filter(|_| self.line.is_comparable()).find_map(|(index, entry)| {
            known(&entry.list_hash).map(|position| (index + 1, position))
        })
    }

    /// Finds runs at the beginning and the end of list and line.
    fn find_runs(&self, session: &mut StoreSession<'_>, diff: &mut LineDiff) -> Result<()> {
        let stored = int::to_usize(self.line.count_messages());
        let (length, anchors) = match self.match_messages(session, self.entries, 1)? {
            MatchedRun { length, anchors } if anchors > 0 || length == stored => (length, anchors),
            _ => (0, 0),
        };
        let prefix = AlignedRun { start: 0, length, position_first: 1, anchors };
        if length == stored || anchors >= INSIDE_ANCHORS_MIN {
            diff.found_by = "prefix";
            diff.add_run(&prefix);
            return Ok(());
        }
        // One message may well be said again, so a run at the end counts more than one message at
        // the beginning.
        let suffix = self.find_suffix_run(session, 0)?;
        // Elsewhere in the list, the newest messages may well be said again.
        let is_near = suffix.start <= self.confirmed || suffix.length == stored;
        let follows_prefix =
            length > 0 && suffix.start >= length && anchors + suffix.anchors >= INSIDE_ANCHORS_MIN;
        let is_suffix = suffix.anchors > 0 && (is_near || follows_prefix);
        let inside = match is_suffix {
            true => suffix,
            false => self.find_inside_run(session)?,
        };
        let is_apart = inside.start >= length && inside.position_first > int::to_u64(length);
        if length > 0 && (inside.length == 0 || is_apart) {
            diff.found_by = "prefix";
            diff.add_run(&prefix);
            diff.add_run(&inside);
        } else if inside.length > 0 {
            diff.found_by = "alignment";
            for run in self.find_rotated_runs(session, inside)? {
                diff.add_run(&run);
            }
        }
        Ok(())
    }

    /// Aligns the entries between and after what was found.
    fn align_gaps(&self, session: &mut StoreSession<'_>, diff: &mut LineDiff) -> Result<()> {
        let mut start = diff.accepted;
        let mut position = diff.position_accepted + 1;
        while start < self.entries.len() {
            let rest = diff.positions.iter().enumerate().skip(start);
            let mut next = rest.filter_map(|(index, position)| Some((index, (*position)?)));
            let (end, position_next) = match next.find(|(_, next)| *next >= position) {
                Some((end, next)) => (end, Some(next)),
                None => (self.entries.len(), None),
            };
            if start < end {
                let range = ComparedRange {
                    entries: self.entries.get(start..end).unwrap_or(&[]),
                    position_first: position,
                    position_end: position_next.unwrap_or(self.line.count_messages() + 1),
                    is_enclosed: position_next.is_some(),
                };
                let aligned = range.align_range(session, self.line)?;
                let slots = diff.positions.iter_mut().skip(start).zip(aligned);
                slots.for_each(|(slot, aligned)| *slot = slot.or(aligned));
            }
            start = end + 1;
            position = position_next.map_or(position, |next| next + 1);
        }
        Ok(())
    }

    /// Returns `first`, and two runs after `first` if the list is rotated.
    ///
    /// A list is rotated if older messages were inserted at its start after the rest was stored, so
    /// the line has the older messages after the rest. The second run is all messages before
    /// `first`, and the third run the messages after `first`. The second run needs enough anchors,
    /// because few messages may well be said again.
    fn find_rotated_runs(
        &self,
        session: &mut StoreSession<'_>,
        first: AlignedRun,
    ) -> Result<Vec<AlignedRun>> {
        let mut runs = Vec::from([first]);
        let before = int::to_usize(first.position_first - 1);
        let rotated = self.entries.get(first.length..first.length + before);
        let Some(rotated) = rotated.filter(|_| first.start == 0 && before > 0) else {
            return Ok(runs);
        };
        let MatchedRun { length, anchors } = self.match_messages(session, rotated, 1)?;
        if length < before || anchors < INSIDE_ANCHORS_MIN {
            return Ok(runs);
        }
        runs.push(AlignedRun { start: first.length, length, position_first: 1, anchors });
        let start = first.length + before;
        let position_first = first.position_first + int::to_u64(first.length);
        let rest = self.entries.get(start..).unwrap_or(&[]);
        let MatchedRun { length, anchors } = self.match_messages(session, rest, position_first)?;
        runs.push(AlignedRun { start, length, position_first, anchors });
        Ok(runs)
    }

    /// Finds the longest run with an anchor that ends with the newest message of the line. Neither
    /// its entries nor its messages are among the first `least`. Of equally long runs, the run at
    /// entry `least` is preferred, then the last run.
    fn find_suffix_run(&self, session: &mut StoreSession<'_>, least: usize) -> Result<AlignedRun> {
        let (marks, length) = (self.line.newest_marks(), self.line.count_messages());
        let newest = NewestMessages { marks, texts: self.texts, position_last: length };
        let free = int::to_usize(length).saturating_sub(least);
        let mut best = AlignedRun { start: least, ..AlignedRun::default() };
        for end in (least + 1..=self.entries.len()).rev() {
            let most = free.min(end - least).min(marks.len());
            let before = self.entries.get(end - most..end).unwrap_or(&[]);
            let run = newest.match_suffix(before);
            let is_first = run.length == best.length && end - run.length == least;
            if run.anchors > 0 && (run.length > best.length || is_first) {
                best = AlignedRun {
                    start: end - run.length,
                    length: run.length,
                    position_first: length + 1 - int::to_u64(run.length),
                    anchors: run.anchors,
                };
            }
        }
        if best.length == marks.len() {
            self.extend_run(session, least, &mut best)?;
        }
        Ok(best)
    }

    /// Extends a run to the entries before, down to entry `least`.
    fn extend_run(
        &self,
        session: &mut StoreSession<'_>,
        least: usize,
        run: &mut AlignedRun,
    ) -> Result<()> {
        while run.start > least && run.position_first > 1 {
            let page_first = run.position_first.saturating_sub(64).max(1);
            let mut stored = self.line.read_page(session, page_first)?;
            stored.truncate(int::to_usize(run.position_first - page_first));
            if page_first + int::to_u64(stored.len()) < run.position_first {
                // A large message ended the page, so the page does not reach the run.
                stored = self.line.read_page(session, run.position_first - 1)?;
                stored.truncate(1);
            }
            let before = self.entries.get(least..run.start).unwrap_or(&[]);
            let equal = before.iter().rev().zip(stored.iter().rev());
            let equal: Vec<&AlignableEntry> = equal
                .take_while(|(entry, stored)| stored.matches_entry(entry))
                .map(|(entry, _)| entry)
                .collect();
            run.anchors += equal.iter().filter(|entry| entry.is_anchor()).count();
            run.start -= equal.len();
            run.length += equal.len();
            run.position_first -= int::to_u64(equal.len());
            if equal.len() < stored.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Finds the longest run that begins among the newest messages and does not reach their end.
    /// The run must have two anchors, and no entry before it that is not confirmed.
    fn find_inside_run(&self, session: &mut StoreSession<'_>) -> Result<AlignedRun> {
        let marks = self.line.newest_marks();
        let newest_first = self.line.count_messages() + 1 - int::to_u64(marks.len());
        let mut best = AlignedRun::default();
        for (start, position_first) in rank_starts(newest_first, marks, self.entries) {
            let entries = self.entries.get(start..).unwrap_or(&[]);
            let MatchedRun { length, anchors } =
                self.match_messages(session, entries, position_first)?;
            let mut run = AlignedRun { start, length, position_first, anchors };
            self.extend_run(session, 0, &mut run)?;
            let is_proven = run.start <= self.confirmed && run.anchors >= INSIDE_ANCHORS_MIN;
            if is_proven && run.length > best.length {
                best = run;
            }
        }
        Ok(best)
    }

    /// Matches entries with the messages of the line from `position_first` on.
    fn match_messages(
        &self,
        session: &mut StoreSession<'_>,
        entries: &[AlignableEntry],
        position_first: u64,
    ) -> Result<MatchedRun> {
        let mut run = MatchedRun::default();
        loop {
            let position = position_first + int::to_u64(run.length);
            if run.length >= entries.len() || position > self.line.count_messages() {
                return Ok(run);
            }
            let stored = self.line.read_page(session, position)?;
            for (entry, stored) in entries.iter().skip(run.length).zip(&stored) {
                if !stored.matches_entry(entry) {
                    return Ok(run);
                }
                run.length += 1;
                let is_exact = entry.mark.is_same_message(&stored.mark);
                run.anchors += usize::from(is_exact && entry.is_anchor());
            }
        }
    }
}

/// Ranks the places at which entries may begin to equal the newest messages, each an index of an
/// entry and a position, by the number of messages that agree at the same distance.
fn rank_starts(
    newest_first: u64,
    marks: &[MessageMark],
    entries: &[AlignableEntry],
) -> Vec<(usize, u64)> {
    let mut places: Vec<([u8; 8], usize)> =
        (0..).zip(entries).map(|(place, entry)| (entry.mark.meaning, place)).collect();
    sort::sort(&mut places);
    // The distance between entry and message, made positive, with the place of the entry.
    let mut starts: Vec<(u64, usize)> = Vec::new();
    for (position, mark) in (newest_first..).zip(marks) {
        let from = places.partition_point(|(known, _)| *known < mark.meaning);
        let equal = places.iter().skip(from).take_while(|(known, _)| *known == mark.meaning);
        // A message that is repeated often says little about the start.
        let equal = equal.take(START_CANDIDATES_MAX);
        let distance = |place: usize| position + int::to_u64(entries.len() - place);
        starts.extend(equal.map(|(_, place)| (distance(*place), *place)));
    }
    sort::sort(&mut starts);
    let mut counted: Vec<(usize, u64, usize)> = starts
        .chunk_by(|left, right| left.0 == right.0)
        .filter_map(|equal| equal.first().map(|(distance, place)| (equal.len(), *distance, *place)))
        .collect();
    sort::sort(&mut counted);
    let best = counted.into_iter().rev().take(START_CANDIDATES_MAX);
    best.map(|(_, distance, place)| (place, distance - int::to_u64(entries.len() - place)))
        .collect()
}
