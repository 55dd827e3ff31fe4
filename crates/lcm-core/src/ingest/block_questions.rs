//! Questions that are stored with a block of the host, such as a reminder, and are handed over
//! without it.
//!
//! In: the entries of a list and the line. Out: such questions with which a list, a branch or a
//! window begins, as other forms of their messages.

use alloc::vec::Vec;

use crate::storage::store_session::StoreSession;
use lcm_text::base::{error::Result, int};

use super::{
    alignment::INSIDE_ANCHORS_MIN,
    line_diff::{AlignedRun, LineComparison, LineDiff},
    message_form,
};

/// Most messages that are read to find a window. A list that repeats short texts could otherwise
/// cost a read for each pair of an entry and a message.
const WINDOW_READS_MAX: usize = 4_096;

impl LineComparison<'_, '_> {
    /// Finds the place of a list that [`Self::find_runs`] did not place, because some of its
    /// questions are stored with a block of the host. Either its first entry is such a question at
    /// the start of a list, or its first entries are the newest messages, one of them such a
    /// question.
    pub(super) fn find_through_blocks(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
    ) -> Result<()> {
        let Some(first) = self.entries.first().filter(|_| self.entries.len() > 1) else {
            return Ok(());
        };
        for position in self.line.list_starts().into_iter().chain([1]) {
            let stored = self.line.read_stored(session, self.line.seq_at(position))?;
            if stored.iter().any(|message| message_form::adds_block(first, message))
                && self.goes_on_after(session, 0, position)?
            {
                diff.found_by = "prefix";
                diff.add_form(0, position);
                return Ok(());
            }
        }
        let newest = self.line.count_messages();
        let mut reads = WINDOW_READS_MAX;
        for end in (2..=self.entries.len().min(int::to_usize(newest))).rev() {
            let Some(forms) = self.match_window(session, end, &mut reads)? else { continue };
            diff.found_by = "alignment";
            let position_first = newest + 1 - int::to_u64(end);
            diff.add_run(&AlignedRun { length: end, position_first, ..AlignedRun::default() });
            diff.other_forms.extend(forms);
            break;
        }
        Ok(())
    }

    /// Matches the first `end` entries with as many newest messages, and returns the questions that
    /// are stored with a block. `None`: an entry is another message, there is no such question, too
    /// few entries are anchors, or no more messages may be read.
    fn match_window(
        &self,
        session: &mut StoreSession<'_>,
        end: usize,
        reads: &mut usize,
    ) -> Result<Option<Vec<usize>>> {
        let (mut anchors, mut forms) = (0, Vec::new());
        let entries = self.entries.iter().enumerate().take(end).rev();
        for ((index, entry), position) in entries.zip((1..=self.line.count_messages()).rev()) {
            let Some(left) = reads.checked_sub(1) else { return Ok(None) };
            *reads = left;
            let stored = self.line.read_stored(session, self.line.seq_at(position))?;
            match &stored {
                Some(message) if message.is_entry(position, entry) => {}
                Some(message) if message_form::adds_block(entry, message) => forms.push(index),
                _ => return Ok(None),
            }
            anchors += usize::from(entry.is_anchor());
        }
        Ok(Some(forms).filter(|forms| anchors >= INSIDE_ANCHORS_MIN && !forms.is_empty()))
    }

    /// Finds the branch after the message at `position` that begins with the question of the entry
    /// at `index`, stored with a block of the host. Such a question that comes next in the line is
    /// found by [`Self::compare_tail`].
    pub(super) fn find_branch_question(
        &self,
        session: &mut StoreSession<'_>,
        index: usize,
        position: u64,
    ) -> Result<Option<u64>> {
        let starts = self.line.branch_starts(position);
        let Some(entry) = self.entries.get(index).filter(|_| !starts.is_empty()) else {
            return Ok(None);
        };
        for start in [position + 1].into_iter().chain(starts) {
            let stored = self.line.read_stored(session, self.line.seq_at(start))?;
            if stored.iter().any(|message| message_form::adds_block(entry, message)) {
                return Ok(Some(start).filter(|start| *start != position + 1));
            }
        }
        Ok(None)
    }
}
