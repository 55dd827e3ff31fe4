//! Runs of a list among the newest messages of the line, for lists that do not begin like the line.
//!
//! In: the entries of a list and the line. Out: the run that ends with the newest message, or the
//! longest one that has one of the newest messages. [`super::line_diff`] uses this module.

use alloc::vec::Vec;

use crate::storage::{message_mark::MessageMark, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::{self, AlignableEntry, INSIDE_ANCHORS_MIN, MatchedRun, NewestMessages},
    line_diff::{AlignedRun, LineComparison},
    stored_line::ComparedMessage,
};

/// Most starts of a run among the newest messages that are tried; also most entries that are paired
/// with one message to find them.
const START_CANDIDATES_MAX: usize = 4;

/// Numbers of entries and messages at the beginning of list and line that a search skips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SkippedCounts {
    pub(super) entries: usize,
    pub(super) messages: usize,
}

impl LineComparison<'_, '_> {
    /// Finds the longest run with an anchor that ends with the newest message of the line, behind
    /// what is skipped. Of equally long runs, a run that begins directly there is preferred, then
    /// the last run.
    pub(super) fn find_suffix_run(
        &self,
        session: &mut StoreSession<'_>,
        skipped: SkippedCounts,
    ) -> Result<AlignedRun> {
        let least = skipped.entries;
        let (marks, length) = (self.line.newest_marks(), self.line.count_messages());
        let is_counted = alignment::has_distinct_calls(marks);
        let free = int::to_usize(length).saturating_sub(skipped.messages);
        let mut best = AlignedRun { start: least, ..AlignedRun::default() };
        for end in (least + 1..=self.entries.len()).rev() {
            let most = free.min(end - least).min(marks.len());
            let before = self.entries.get(end - most..end).unwrap_or(&[]);
            let newest = NewestMessages {
                marks,
                texts: self.texts,
                position_last: length,
                counts_calls: is_counted && end < self.entries.len(),
            };
            let run = newest.match_suffix(before);
            let is_first = run.length == best.length && end - run.length == least;
            if run.anchors > 0 && (run.length > best.length || is_first) {
                best = AlignedRun {
                    start: end - run.length,
                    length: run.length,
                    position_first: length + 1 - int::to_u64(run.length),
                    anchors: run.anchors,
                    is_named: run.named > 0,
                };
            }
        }
        if best.length == marks.len() {
            self.extend_run(session, skipped, &mut best)?;
        }
        Ok(best)
    }

    /// Extends a run to the equal entries and messages before it, back to what is skipped.
    fn extend_run(
        &self,
        session: &mut StoreSession<'_>,
        skipped: SkippedCounts,
        run: &mut AlignedRun,
    ) -> Result<()> {
        let (least, first) = (skipped.entries, int::to_u64(skipped.messages) + 1);
        while run.start > least && run.position_first > first {
            let page_first = run.position_first.saturating_sub(64).max(first);
            let mut stored = self.line.read_page(session, page_first)?;
            stored.truncate(int::to_usize(run.position_first - page_first));
            if page_first + int::to_u64(stored.len()) < run.position_first {
                // A large message ended the page, so the page does not reach the run.
                stored = self.line.read_page(session, run.position_first - 1)?;
                stored.truncate(1);
            }
            let before = self.entries.get(least..run.start).unwrap_or(&[]);
            let equal = before.iter().rev().zip(stored.iter().rev());
            let equal: Vec<(&AlignableEntry, &ComparedMessage)> =
                equal.take_while(|(entry, stored)| stored.matches_entry(entry)).collect();
            let is_anchor = |(entry, stored): &&(&AlignableEntry, &ComparedMessage)| {
                entry.is_anchor_of(&stored.mark)
            };
            run.anchors += equal.iter().filter(is_anchor).count();
            run.start -= equal.len();
            run.length += equal.len();
            run.position_first -= int::to_u64(equal.len());
            if equal.len() < stored.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Finds the longest run that has one of the newest messages; it need not end with the newest.
    /// The run must have two anchors. Each entry before the run must be confirmed, unless the run
    /// is no repetition wherever it is in the list.
    pub(super) fn find_inside_run(&self, session: &mut StoreSession<'_>) -> Result<AlignedRun> {
        let marks = self.line.newest_marks();
        let newest_first = self.line.count_messages() + 1 - int::to_u64(marks.len());
        let mut best = AlignedRun::default();
        for (start, position_first) in rank_starts(newest_first, marks, self.entries) {
            let entries = self.entries.get(start..).unwrap_or(&[]);
            let MatchedRun { length, anchors, .. } =
                self.match_messages(session, entries, position_first)?;
            let mut run =
                AlignedRun { start, length, position_first, anchors, ..AlignedRun::default() };
            self.extend_run(session, SkippedCounts::default(), &mut run)?;
            let is_near = run.start <= self.confirmed || self.is_certain_run(&run);
            let is_proven = is_near && run.anchors >= INSIDE_ANCHORS_MIN;
            if is_proven && run.length > best.length {
                best = run;
            }
        }
        Ok(best)
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
