//! Decision about a list: which entries are new, which are other forms of stored messages, and
//! which stored messages leave the line.
//!
//! In: a list, the line, their comparison, and what the caller saw stored. Out: an outcome for each
//! entry, a change of the line, and notices for the caller.
//!
//! A list that shares its beginning with the line and then goes another way is a branch: the
//! messages that the list no longer has are set aside. They stay stored and are found, but belong
//! to no context. Nothing is set aside in doubt: see [`LineRequest::find_doubt`].

use alloc::{format, string::String, vec::Vec};

use crate::storage::{
    context::ContextItem,
    head::JournalEntry,
    message_mark::MessageMark,
    records::withdrawals::{WithdrawalReason, Withdrawals},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    message,
};

use super::{
    alignment::{AlignableEntry, INSIDE_ANCHORS_MIN},
    line_change::LineChange,
    line_diff::LineDiff,
    stored_line::StoredLine,
};

/// Most set-aside ranges in which a branch is looked for.
const BRANCHES_MAX: usize = 8;

/// Most revisions among which an entry is looked for.
const REVISIONS_MAX: usize = 256;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EntryOutcome {
    /// The entry is stored.
    Stored,
    /// The entry becomes a message of the line.
    New,
    /// The entry is stored as another form of the message at its place.
    Revision,
}

/// The decision about a list.
#[derive(Debug)]
pub(super) struct ListDecision {
    pub(super) found_by: &'static str,
    /// One for each entry.
    pub(super) outcomes: Vec<EntryOutcome>,
    pub(super) change: Option<LineChange>,
    /// Lines for the warnings of the receipt.
    pub(super) notices: Vec<String>,
}

/// A list, its comparison with the line, and what the caller saw.
pub(super) struct LineRequest<'a, 'b> {
    pub(super) line: &'a StoredLine<'b>,
    pub(super) withdrawals: &'a Withdrawals,
    pub(super) entries: &'a [AlignableEntry],
    pub(super) diff: &'a LineDiff,
    /// Number of first entries that are known to be stored.
    pub(super) confirmed: usize,
    /// Revision at which the caller last saw the conversation; `None`: unknown.
    pub(super) seen_revision: Option<u64>,
}

/// The last entry that is stored, and its position.
#[derive(Clone, Copy)]
struct LastStored {
    /// Number of entries up to and with it.
    count: usize,
    position: u64,
}

impl LineRequest<'_, '_> {
    /// Decides about the list.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn decide_list(&self, session: &mut StoreSession<'_>) -> Result<ListDecision> {
        let is_stored = |index: usize, entry: &AlignableEntry| {
            index < self.confirmed || entry.is_known || self.diff.is_stored(index)
        };
        let outcomes = self.entries.iter().enumerate();
        let outcomes = outcomes.map(|(index, entry)| match is_stored(index, entry) {
            true => EntryOutcome::Stored,
            false => EntryOutcome::New,
        });
        let last = self.confirmed.checked_sub(1);
        let is_found = last.is_none_or(|last| {
            self.diff.is_stored(last) || self.entries.get(last).is_none_or(|entry| entry.is_known)
        });
        let mut decision = ListDecision {
            found_by: if is_found { self.diff.found_by } else { "confirmed" },
            outcomes: outcomes.collect(),
            change: None,
            notices: Vec::new(),
        };
        self.mark_revisions(session, &mut decision)?;
        if let Some(last) = self.find_last_stored() {
            self.decide_branch(session, last, &mut decision)?;
        }
        Ok(decision)
    }

    /// Finds the last entry that is in the line, and the greatest position of a stored entry.
    fn find_last_stored(&self) -> Option<LastStored> {
        let positions = &self.diff.positions;
        let last = positions.iter().rposition(Option::is_some).map_or(0, |index| index + 1);
        let count = last.max(self.diff.accepted);
        let position = positions.iter().flatten().copied().max().unwrap_or(0);
        (count > 0)
            .then(|| LastStored { count, position: position.max(self.diff.position_accepted) })
    }

    /// Marks entries of a whole list as revisions: between two neighbours that are stored next to
    /// as many other messages with the same roles.
    fn mark_revisions(
        &self,
        session: &mut StoreSession<'_>,
        decision: &mut ListDecision,
    ) -> Result<()> {
        // In a piece of a list, messages between two that are said again may well be new.
        if !matches!(self.diff.found_by, "list" | "prefix" | "ids") {
            return Ok(());
        }
        let positions = &self.diff.positions;
        let (mut start, mut count) = (self.diff.accepted, 0);
        let mut before = Some(self.diff.position_accepted);
        for (index, position) in positions.iter().enumerate().skip(start) {
            let Some(position) = *position else { continue };
            let length = index - start;
            let is_gap = before.is_some_and(|before| before + int::to_u64(length) + 1 == position);
            if is_gap && length > 0 {
                count += self.mark_gap(session, start..index, position, decision)?;
            }
            (start, before) = (index + 1, Some(position));
        }
        if count > 0 {
            decision.notices.push(format!(
                "revision: {count} of the messages are other forms of stored messages; the context \
                 keeps the first form"
            ));
        }
        Ok(())
    }

    /// Marks the entries of a gap whose messages end before `position_end`; returns their number.
    fn mark_gap(
        &self,
        session: &mut StoreSession<'_>,
        range: core::ops::Range<usize>,
        position_end: u64,
        decision: &mut ListDecision,
    ) -> Result<usize> {
        let entries = self.entries.get(range.clone()).unwrap_or(&[]);
        let mut position = position_end - int::to_u64(range.len());
        let mut roles = Vec::new();
        while position < position_end {
            let stored = self.line.read_page(session, position)?;
            let count = stored.len().min(int::to_usize(position_end - position));
            roles.extend(stored.iter().take(count).map(|message| message.role));
            position += int::to_u64(count);
        }
        if !entries.iter().map(|entry| entry.role).eq(roles) {
            return Ok(0);
        }
        let known = self.read_revision_marks(session)?;
        let open = decision.outcomes.iter_mut().skip(range.start).take(range.len());
        let open = open.zip(entries).filter(|(outcome, _)| **outcome == EntryOutcome::New);
        let mut count = 0;
        for (outcome, entry) in open {
            let is_known = known.iter().any(|mark| mark.is_same_message(&entry.mark));
            *outcome = if is_known { EntryOutcome::Stored } else { EntryOutcome::Revision };
            count += usize::from(!is_known);
        }
        Ok(count)
    }

    /// Reads the marks of the newest messages that are other forms of messages.
    fn read_revision_marks(&self, session: &mut StoreSession<'_>) -> Result<Vec<MessageMark>> {
        let ranges = self.withdrawals.ranges.iter().rev();
        let of_revisions = ranges.filter(|range| range.reason == WithdrawalReason::Revision);
        let seqs = of_revisions.flat_map(|range| (range.seq_first..=range.seq_last).rev());
        let mut seqs: Vec<u64> = seqs.take(REVISIONS_MAX).collect();
        seqs.reverse();
        self.read_marks(session, &seqs)
    }

    /// Reads the marks of the messages of ascending seqs.
    fn read_marks(&self, session: &mut StoreSession<'_>, seqs: &[u64]) -> Result<Vec<MessageMark>> {
        let history = self.line.message_history();
        let mut marks = Vec::with_capacity(seqs.len());
        for placed in history.read_messages_at(session, seqs)? {
            let text = history.read_text(session, &placed.stored)?;
            let message = message::parse(placed.dialect, &text).map_err(|_| {
                Error::corrupt_store(format_args!("message {} cannot be read", placed.seq))
            })?;
            marks.push(MessageMark::from_message(&text, &message));
        }
        Ok(marks)
    }

    /// Decides whether the list goes another way after its last stored entry.
    fn decide_branch(
        &self,
        session: &mut StoreSession<'_>,
        last: LastStored,
        decision: &mut ListDecision,
    ) -> Result<()> {
        let fork = if last.position == 0 { 0 } else { self.line.seq_at(last.position) };
        let rest = self.entries.get(last.count..).unwrap_or(&[]);
        let restored = self.find_restored(session, fork, rest)?;
        let back = restored.map_or(0, |(first, end)| int::to_usize(end + 1 - first));
        let outcomes = decision.outcomes.iter_mut().skip(last.count);
        outcomes.take(back).for_each(|outcome| *outcome = EntryOutcome::Stored);
        let new = decision.outcomes.iter().skip(last.count + back);
        let has_new = new.into_iter().any(|outcome| *outcome == EntryOutcome::New);
        let left = self.line.count_messages().saturating_sub(last.position);
        if (left == 0 || !has_new) && restored.is_none() {
            return Ok(());
        }
        let (first, newest) = (fork + 1, self.line.seq_at(self.line.count_messages()));
        if let Some(doubt) = self.find_doubt(session, last, fork, newest)? {
            decision.notices.push(format!(
                "branch-in-doubt: the list goes another way after message {fork}, but {doubt}; the \
                 stored messages stay, and new messages are stored after them"
            ));
            return Ok(());
        }
        if left > 0 {
            decision.notices.push(format!(
                "set-aside: the list goes another way after message {fork}; {left} messages from \
                 {first} to {newest} are set aside"
            ));
        }
        if let Some((first, last)) = restored {
            decision.notices.push(format!(
                "restored: the list goes on with messages {first} to {last}, which were set aside"
            ));
        }
        decision.change = Some(LineChange { fork, restored });
        Ok(())
    }

    /// Returns why nothing may be set aside; `None`: the branch is certain.
    fn find_doubt(
        &self,
        session: &mut StoreSession<'_>,
        last: LastStored,
        fork: u64,
        newest: u64,
    ) -> Result<Option<&'static str>> {
        let entries = self.entries.iter().enumerate().take(last.count);
        let matched = entries.filter(|(index, _)| self.diff.is_stored(*index));
        let anchors = matched.filter(|(_, entry)| entry.is_anchor()).count();
        if newest > fork {
            match self.read_seen_messages(session)? {
                None => {
                    return Ok(Some(
                        "the call does not say with `seen_revision` what the caller saw",
                    ));
                }
                Some(seen) if seen < newest => {
                    return Ok(Some("others stored messages that the caller did not see"));
                }
                Some(_) => {}
            }
        }
        if anchors < INSIDE_ANCHORS_MIN {
            return Ok(Some("the common beginning is short"));
        }
        let history = self.line.message_history();
        let items = history.head.context.load_items(session, history.keys)?;
        let is_summary = |item: &&ContextItem| matches!(item, ContextItem::Summary(_));
        let summarised = items.iter().rfind(is_summary).map_or(0, ContextItem::seq_last);
        Ok((summarised > fork).then_some("a summary covers the message at the fork"))
    }

    /// Reads the number of messages that the caller saw; `None`: unknown.
    fn read_seen_messages(&self, session: &mut StoreSession<'_>) -> Result<Option<u64>> {
        let history = self.line.message_history();
        match self.seen_revision {
            Some(revision) if revision == history.head.revision => Ok(Some(history.head.messages)),
            Some(revision) => {
                let entry = session.read_record(&JournalEntry::key(history.keys, revision))?;
                Ok(entry.map(|entry| entry.messages))
            }
            None => Ok(None),
        }
    }

    /// Finds set-aside messages with which the rest of the list goes on after `fork`: their first
    /// and last seq. One of them must be an anchor.
    fn find_restored(
        &self,
        session: &mut StoreSession<'_>,
        fork: u64,
        rest: &[AlignableEntry],
    ) -> Result<Option<(u64, u64)>> {
        let mut best: Option<(u64, u64)> = None;
        let ranges = self.withdrawals.ranges.iter().rev();
        let branches = ranges
            .filter(|range| range.reason == WithdrawalReason::SetAside && range.seq_first > fork);
        for range in branches.take(BRANCHES_MAX) {
            let most = range.count().min(int::to_u64(rest.len()));
            let seqs: Vec<u64> = (range.seq_first..range.seq_first + most).collect();
            let marks = self.read_marks(session, &seqs)?;
            let pairs = rest.iter().zip(&marks);
            let equal = pairs.take_while(|(entry, mark)| entry.mark.is_same_message(mark));
            let (mut count, mut anchors) = (0_u64, 0);
            for (entry, _) in equal {
                count += 1;
                anchors += usize::from(entry.is_anchor());
            }
            let is_longer = best.is_none_or(|(first, last)| count > last + 1 - first);
            if anchors > 0 && is_longer {
                best = Some((range.seq_first, range.seq_first + count - 1));
            }
        }
        Ok(best)
    }
}
