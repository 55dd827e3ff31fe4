//! Set-aside branches with which a list goes on.
//!
//! In: the entries of a list after the last one that is in the line, and the set-aside ranges. Out:
//! the messages that come back, and the entries that are other forms of them.

use alloc::vec::Vec;

use crate::storage::{records::withdrawals::WithdrawnRange, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN},
    line_change::RESTORED_MAX,
    list_decision::{EntryOutcome, LineRequest, ListDecision},
    message_form::{self, MessageForm},
    stored_line::ComparedMessage,
};

/// Set-aside messages that come back.
#[derive(Default)]
pub(super) struct RestoredMessages {
    /// Ascending ranges of seqs.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Number of entries, after the last stored one, that are these messages.
    pub(super) count: usize,
    /// Entries among them that are other forms of their messages.
    pub(super) forms: Vec<usize>,
    /// The entry behind them, if it is a longer form of the next set-aside message, whose id it
    /// has: the message stays set aside, and the entry is new.
    pub(super) grown: Option<usize>,
}

/// The first entries that are messages of a set-aside range.
#[derive(Default)]
struct MatchedBranch {
    count: usize,
    /// Places of those that are other forms of their messages.
    forms: Vec<usize>,
    /// Whether the last of them says more than its message.
    is_longer: bool,
}

impl RestoredMessages {
    fn has_message(&self, seq: u64) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// Leaves the last message set aside if the list has a longer form of it.
    fn leave_grown(&mut self) {
        let Some(index) = self.grown else { return };
        self.count -= 1;
        self.forms.retain(|form| *form != index);
        if let Some((_, last)) = self.ranges.last_mut() {
            *last -= 1;
        }
        self.ranges.retain(|(first, last)| first <= last);
    }
}

impl LineRequest<'_, '_> {
    /// Adds the common beginning that was too short to be evidence, if set-aside messages with
    /// enough anchors follow it in the list.
    pub(super) fn prove_beginning(&mut self, session: &mut StoreSession<'_>) -> Result<()> {
        let run = self.diff.short_beginning;
        if run.length == 0 {
            return Ok(());
        }
        let (start, position) = run.last_places();
        let branch = self.walk_branches(session, start, self.line.seq_at(position))?;
        let returned = self.entries.iter().skip(start).take(branch.count);
        if returned.filter(|entry| entry.is_anchor()).count() >= INSIDE_ANCHORS_MIN {
            self.diff.add_prefix(&run);
        }
        Ok(())
    }

    /// Finds the set-aside messages with which the list goes on from index `start` on, after the
    /// message `fork`.
    ///
    /// At each fork, takes the range that matches the most of the entries that are left; of equally
    /// good ranges, the newest.
    pub(super) fn walk_branches(
        &self,
        session: &mut StoreSession<'_>,
        start: usize,
        fork: u64,
    ) -> Result<RestoredMessages> {
        let mut found = RestoredMessages::default();
        let mut after = fork;
        // The other half is left for the ranges before a window inside a branch.
        while found.ranges.len() < RESTORED_MAX / 2 && !self.withdrawals.is_full() {
            let rest = self.entries.get(start + found.count..).unwrap_or(&[]);
            let mut best = (MatchedBranch::default(), 0);
            // The window of a branch may end inside a range. The rest of this range comes next.
            let own = self.withdrawals.find_range(after).filter(|own| after < own.seq_last);
            let own = own.map(|own| WithdrawnRange { seq_first: after + 1, ..*own });
            let ranges = self.withdrawals.ranges_after(after).chain(&own);
            for range in ranges.filter(|_| !rest.is_empty()) {
                let matched = self.match_range(session, rest, range)?;
                if matched.count > best.0.count {
                    best = (matched, range.seq_first);
                }
            }
            let (MatchedBranch { count, forms, is_longer }, seq_first) = best;
            if count == 0 {
                break;
            }
            after = seq_first + int::to_u64(count) - 1;
            let last = start + found.count + count - 1;
            found.grown = is_longer.then_some(last);
            found.forms.extend(forms.into_iter().map(|place| start + found.count + place));
            found.count += count;
            found.ranges.push((seq_first, after));
        }
        found.leave_grown();
        Ok(found)
    }

    /// Finds the first entries that are the messages of a set-aside range. A pair that only may be
    /// two forms of one message counts if an equal entry follows that is a strong anchor.
    fn match_range(
        &self,
        session: &mut StoreSession<'_>,
        entries: &[AlignableEntry],
        range: &WithdrawnRange,
    ) -> Result<MatchedBranch> {
        let most = int::to_usize(range.count()).min(entries.len());
        let (mut matched, mut rest) = (MatchedBranch::default(), entries.iter().enumerate());
        let known = self.line.read_forms(session)?;
        let (mut forms, mut texts, mut open) = (Vec::new(), 0, 0);
        let seqs: Vec<u64> = (range.seq_first..).take(most).collect();
        self.line.visit_stored(session, &seqs, &mut |seq, message| {
            let Some((place, entry)) = rest.next() else { return false };
            let is_equal = match entry.known_seq {
                Some(known) => known == seq,
                None => entry.mark.is_same_message(&message.mark),
            };
            // Of texts of people and models, only one may differ between two equal messages.
            let is_text = message_form::is_text(entry);
            let form = message_form::compare_forms(entry, None, &message);
            let is_certain = form.is_some_and(|form| form != MessageForm::Shortened)
                || message_form::is_stored_form(entry, &message, &known);
            let is_known_form = is_equal && entry.is_known() && entry.may_be_form.get();
            let is_form = message_form::may_be_form(entry, &message) && !(is_text && texts > 0);
            if is_equal || is_certain {
                if (is_certain && !is_equal) || is_known_form {
                    forms.push(place);
                }
                // A message that differs needs an equal strong anchor behind it.
                if open == 0 || entry.is_strong_anchor() {
                    (matched.count, texts, open) = (place + 1, 0, 0);
                    matched.is_longer = is_known_form && says_more(entry, &message);
                    matched.forms.append(&mut forms);
                }
            } else if is_form {
                open += 1;
                texts += usize::from(is_text);
                forms.push(place);
            }
            is_equal || is_certain || is_form
        })?;
        Ok(matched)
    }

    /// Gives an entry the outcome `New` if it is short and its set-aside message, found by the id,
    /// would come back in front of a message that stands before it in the list. Ids that count
    /// places lead to such messages, and an answer would then stand before its question.
    pub(super) fn keep_list_order(&self, restored: &RestoredMessages, decision: &mut ListDecision) {
        let mut newest = self.line.seq_at(self.diff.position_accepted);
        let places = self.entries.iter().zip(&self.diff.positions);
        for ((entry, position), outcome) in places.zip(&mut decision.outcomes) {
            let seq = position.map(|position| self.line.seq_at(position)).or(entry.known_seq);
            let is_open = |seq: &u64| !restored.has_message(*seq) && entry.is_set_aside();
            if !entry.is_discriminating && seq.is_some_and(|seq| seq < newest && is_open(&seq)) {
                *outcome = EntryOutcome::New;
            }
            let is_new = *outcome == EntryOutcome::New;
            newest = newest.max(if is_new { u64::MAX } else { seq.unwrap_or(0) });
        }
    }

    /// Adds the set-aside messages with an id of an entry. Returns how many of them cannot come
    /// back, because too many ranges come back or are set aside.
    pub(super) fn restore_known(
        &self,
        restored: &mut RestoredMessages,
        decision: &ListDecision,
    ) -> usize {
        let known = self.entries.iter().zip(&decision.outcomes).enumerate();
        let known = known.filter(|(index, (entry, outcome))| {
            let is_new = restored.grown == Some(*index) || **outcome == EntryOutcome::New;
            !is_new && entry.is_set_aside()
        });
        let mut seqs: Vec<u64> = known.filter_map(|(_, (entry, _))| entry.known_seq).collect();
        sort::sort_and_dedup(&mut seqs);
        let mut hidden = 0;
        for seq in seqs {
            if restored.has_message(seq) {
                continue;
            }
            if let Some((_, last)) = restored.ranges.iter_mut().find(|(_, last)| last + 1 == seq) {
                *last = seq;
            } else if restored.ranges.len() < RESTORED_MAX && !self.withdrawals.is_full() {
                restored.ranges.push((seq, seq));
            } else {
                hidden += 1;
            }
        }
        sort::sort(&mut restored.ranges);
        hidden
    }

    /// Lists the entries with an id of a set-aside message that say something else than it.
    pub(super) fn list_known_forms(&self, restored: &RestoredMessages) -> Vec<usize> {
        let is_form = |(index, entry): &(usize, &AlignableEntry)| {
            let is_new = [self.diff.grown, restored.grown].contains(&Some(*index));
            entry.is_set_aside() && entry.may_be_form.get() && !is_new
        };
        self.entries.iter().enumerate().filter(is_form).map(|(index, _)| index).collect()
    }
}

/// Returns whether an entry is a longer text than a message.
fn says_more(entry: &AlignableEntry, message: &ComparedMessage) -> bool {
    let said = message.said.as_deref();
    entry.text.zip(said).is_some_and(|((bytes, _), said)| bytes > said.len())
}
