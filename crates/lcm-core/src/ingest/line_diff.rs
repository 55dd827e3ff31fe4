//! Comparison of a list of a host with the line: which entries are stored, and where.
//!
//! In: the entries of a list, whole or its end, and the line. Out: the position of each entry that
//! was found in the line, and which of these entries are other forms of their messages.
//!
//! | by | what it needs | reads |
//! |---|---|---|
//! | `list` | the list begins with an accepted list | nothing, or the newest messages |
//! | `ids` | an id of an entry leads to a message of the line | messages beside the ids |
//! | `prefix` | the list begins like the line, or like a later list in it | the equal messages |
//! | `alignment` | a run of entries ends the line, or is among its newest | these messages |
//!
//! A common beginning counts if it reaches the end of the line or has two anchors, because people
//! begin with the same short words again. One anchor is enough for the first question if only its
//! answer follows in the line. System messages that fill the slot are not compared.
//!
//! The entries before, between and after what was found are aligned with the messages there
//! ([`super::range_alignment`]). So a list may have changes, omissions and insertions.

use alloc::{string::String, vec::Vec};

use crate::storage::{message_mark::AcceptedList, store_session::StoreSession};
use lcm_text::{
    base::{error::Result, int, sort},
    message::{Role, meaning::SaidPart},
};

use super::{
    alignment::{self, AlignableEntry, INSIDE_ANCHORS_MIN, MatchedRun},
    anchor_alignment,
    line_runs::SkippedCounts,
    message_form::{self, MessageForm, compare_forms},
    moved_entries::find_moved,
    range_alignment::ComparedRange,
    stored_line::StoredLine,
};

/// Most times that the entry after the last aligned one is compared as another form of its message.
const FORMS_MAX: usize = 16;

/// A list and the line with which it is compared.
pub(super) struct LineComparison<'a, 'b> {
    pub(super) line: &'a StoredLine<'b>,
    /// The compared entries: without empty ones and those that may fill the slot.
    pub(super) entries: &'a [AlignableEntry],
    /// The accepted list that the entries follow; `None`: they are the whole list.
    pub(super) beginning: Option<AcceptedList>,
    /// Number of first entries that are known to be stored.
    pub(super) confirmed: usize,
    /// Texts of the newest messages; empty if no entry is a redacted copy.
    pub(super) texts: &'a [String],
    /// Returns whether an entry has an id of the host that counts, stored or not.
    pub(super) has_id: &'a dyn Fn(usize) -> bool,
    /// Returns what each part of an entry says.
    pub(super) parts_of: &'a dyn Fn(usize) -> &'a [SaidPart],
    /// Returns what an entry says, if that is one text; `None`: something else, or only hashes are
    /// known.
    pub(super) text_of: &'a dyn Fn(usize) -> Option<String>,
}

/// The stored entries of a list.
#[derive(Debug, Default)]
pub(super) struct LineDiff {
    /// How they were found: a name of the table above, or `none`.
    pub(super) found_by: &'static str,
    /// Number of first entries that are stored, at positions that were not looked up. Every later
    /// step starts behind them.
    pub(super) accepted: usize,
    /// Greatest position of the accepted list with which the list begins; 0: there is none.
    pub(super) position_accepted: u64,
    /// Whether the entries are the rest of a list, after an accepted list that was not parsed.
    pub(super) is_rest: bool,
    /// Seq up to which the caller of the accepted list had seen every message; 0: none.
    pub(super) seen_accepted: u64,
    /// Position of each entry; `None`: not found in the line, accepted, `moved`, or `grown`.
    /// Ascending, except in a rotated list and where ids lead to messages in another order. Two
    /// entries with one id may have one position.
    pub(super) positions: Vec<Option<u64>>,
    /// Entries that stand before a stored entry but were stored behind it, ascending, with the
    /// positions of their messages. They say nothing about the places of their neighbours.
    pub(super) moved: Vec<(usize, u64)>,
    /// Entries that are other forms of the messages at their positions.
    pub(super) other_forms: Vec<usize>,
    /// The entry that is a longer form of the newest message, or of the newest messages together.
    pub(super) grown: Option<usize>,
    /// Number of messages that `grown` replaces; 0: there is no such entry.
    pub(super) replaced: u64,
    /// Whether the list began like the line without enough anchors.
    pub(super) has_short_beginning: bool,
    /// The entries with which the list begins like the line, too few to be evidence. Empty: there
    /// are none, or only an accepted list begins so.
    pub(super) short_beginning: AlignedRun,
    /// Whether the common beginning has one anchor and the line has no message of a user after it,
    /// so that the list may have another answer to its first question.
    pub(super) is_first_turn: bool,
}

/// The last stored entry, and how far the stored entries reach in the line.
#[derive(Clone, Copy, Default)]
pub(super) struct LastStored {
    /// Number of entries up to and with it; 0: no entry is stored.
    pub(super) count: usize,
    /// Greatest position of a stored entry; 0: none.
    pub(super) position: u64,
}

impl LineDiff {
    /// Finds the last stored entry, and the greatest position of a stored entry.
    pub(super) fn find_last_stored(&self) -> LastStored {
        let last = self.positions.iter().rposition(Option::is_some).map_or(0, |index| index + 1);
        let position = self.list_stored().max().unwrap_or(0);
        LastStored {
            count: last.max(self.accepted),
            position: position.max(self.position_accepted),
        }
    }

    /// Lists the positions, ascending, of the messages that belong to an entry: by its id, or
    /// because the entry was found there.
    pub(super) fn list_taken(&self, entries: &[AlignableEntry]) -> Vec<u64> {
        let known = entries.iter().filter_map(|entry| entry.position);
        let mut taken: Vec<u64> = known.chain(self.list_stored()).collect();
        sort::sort(&mut taken);
        taken
    }

    /// Creates the result for a list that is not aligned: only entries known by id are stored.
    fn from_ids(entries: &[AlignableEntry]) -> Self {
        let positions: Vec<Option<u64>> = entries.iter().map(|entry| entry.position).collect();
        let is_known = positions.iter().any(Option::is_some);
        let found_by = if is_known { "ids" } else { "none" };
        Self { found_by, positions, ..Self::default() }
    }

    /// Returns whether an entry is stored.
    pub(super) fn is_stored(&self, index: usize) -> bool {
        index < self.accepted
            || self.positions.get(index).copied().flatten().is_some()
            || self.moved.binary_search_by(|(moved, _)| moved.cmp(&index)).is_ok()
    }

    /// Lists the positions of the stored entries, without accepted ones, in any order.
    pub(super) fn list_stored(&self) -> impl Iterator<Item = u64> {
        let moved = self.moved.iter().map(|(_, position)| *position);
        self.positions.iter().flatten().copied().chain(moved)
    }

    /// Adds an entry that is another form of the message at a position.
    pub(super) fn add_form(&mut self, index: usize, position: u64) {
        self.positions.get_mut(index).into_iter().for_each(|slot| *slot = Some(position));
        self.other_forms.push(index);
    }

    /// Adds a run at the beginning.
    pub(super) fn add_prefix(&mut self, run: &AlignedRun) {
        self.found_by = "prefix";
        self.add_run(run);
    }

    /// Adds a run.
    pub(super) fn add_run(&mut self, run: &AlignedRun) {
        let slots = self.positions.iter_mut().skip(run.start).take(run.length);
        slots.zip(run.position_first..).for_each(|(slot, position)| *slot = Some(position));
    }
}

/// Consecutive entries that are consecutive messages of the line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct AlignedRun {
    /// Index of the first entry.
    pub(super) start: usize,
    pub(super) length: usize,
    /// Position in the line, from 1, of the message that equals the first entry.
    pub(super) position_first: u64,
    /// Entries that are anchors.
    pub(super) anchors: usize,
    /// Whether an entry with a stored id or a unique call id says the same as its message; false
    /// if the run was not found from the end of the line on.
    pub(super) is_named: bool,
}

impl AlignedRun {
    /// Returns the number of entries up to the last one, and the position of its message.
    pub(super) fn last_places(&self) -> (usize, u64) {
        (self.start + self.length, self.position_first + int::to_u64(self.length) - 1)
    }
}

impl LineComparison<'_, '_> {
    /// Compares entries that are not aligned with the line: only their ids count.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn compare_ids(&self, session: &mut StoreSession<'_>) -> Result<LineDiff> {
        let mut diff = LineDiff::from_ids(self.entries);
        self.find_longer_answer(session, &mut diff)?;
        self.find_forms(session, &mut diff)?;
        Ok(diff)
    }

    /// Compares the list with the line.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn compare_list(&self, session: &mut StoreSession<'_>) -> Result<LineDiff> {
        let positions = alloc::vec![None; self.entries.len()];
        let mut diff = LineDiff { found_by: "none", positions, ..LineDiff::default() };
        if self.find_accepted(session, &mut diff)? {
            diff.found_by = "list";
            let end = (diff.accepted, diff.position_accepted);
            self.add_stubs(session, &mut diff, end)?;
            self.follow_branches(session, &mut diff, end)?;
        } else if self.entries.iter().any(|entry| entry.position.is_some()) {
            diff.found_by = "ids";
            diff.positions =
                anchor_alignment::align_entries(session, self.line, self.entries, self.has_id)?;
        } else {
            self.find_runs(session, &mut diff)?;
            if diff.found_by == "none" {
                self.find_through_blocks(session, &mut diff)?;
            }
        }
        if diff.found_by != "none" {
            let start = (diff.accepted, diff.position_accepted + 1);
            self.align_gaps(session, &mut diff, start)?;
            // The list may go on with a branch behind what was aligned just now.
            if let Some(index) = diff.positions.iter().rposition(Option::is_some)
                && let Some(position) = diff.positions.get(index).copied().flatten()
            {
                self.follow_branches(session, &mut diff, (index + 1, position))?;
            }
            // Before `compare_tail`, which must not take a moved message for one that follows.
            diff.moved = find_moved(self.line, self.entries, &diff);
        }
        // Before the comparison of forms, which would take a joined answer for its first step.
        self.find_longer_answer(session, &mut diff)?;
        if diff.found_by != "none" {
            if diff.grown.is_none() {
                self.compare_tail(session, &mut diff)?;
            }
            self.find_forms(session, &mut diff)?;
        }
        Ok(diff)
    }

    /// Finds the aligned entries with `may_be_form` that say something else than their messages:
    /// other forms, or a longer form of the newest message.
    fn find_forms(&self, session: &mut StoreSession<'_>, diff: &mut LineDiff) -> Result<()> {
        for (index, entry) in self.entries.iter().enumerate().filter(|it| it.1.may_be_form.get()) {
            let Some(position) = diff.positions.get(index).copied().flatten() else { continue };
            let is_newest = position == self.line.count_messages();
            let mark = self.line.mark_at(position).filter(|_| entry.redacted_copy.is_none());
            let (is_form, is_longer) = match mark {
                Some(mark) if !is_newest => (!mark.says_the_same(&entry.mark), false),
                _ => {
                    let stored = self.line.read_stored(session, self.line.seq_at(position))?;
                    let Some(message) = stored else { continue };
                    let is_copy = entry.may_be_copy_of(&message.text);
                    let said = message.said.as_deref();
                    let is_longer = entry.has_grown
                        || entry
                            .text
                            .zip(said)
                            .is_some_and(|((bytes, _), said)| bytes > said.len());
                    (!is_copy && !message.mark.says_the_same(&entry.mark), is_longer)
                }
            };
            if !is_form || diff.other_forms.contains(&index) {
                continue;
            }
            // A result that was filled in later, or an answer that went on, replaces its first
            // form.
            if is_newest && is_longer {
                (diff.grown, diff.replaced) = (Some(index), 1);
                diff.positions.get_mut(index).into_iter().for_each(|it| *it = None);
            } else {
                diff.other_forms.push(index);
            }
        }
        Ok(())
    }

    /// Finds the longest accepted list with which the list begins, and that has two anchors or ends
    /// with the newest message; else the accepted list before the entries. A list without an anchor
    /// does not count if a longer window begins the list.
    fn find_accepted(&self, session: &mut StoreSession<'_>, diff: &mut LineDiff) -> Result<bool> {
        let head = self.line.message_history().head;
        if !self.line.is_comparable() {
            return Ok(false);
        }
        diff.is_rest = self.beginning.is_some();
        for (index, entry) in self.entries.iter().enumerate().rev() {
            let mut lists = head.accepted_lists.iter().rev();
            let Some(list) = lists.find(|list| list.hash == entry.list_hash) else { continue };
            let position = self.line.count_through(list.seq_last);
            let accepted = self.entries.iter().take(index + 1);
            let anchors = accepted.filter(|entry| entry.is_anchor()).count();
            // The anchors before a rest are not known. `append` compares the whole list if this
            // accepted list does not end with the newest message.
            let is_newest = position == self.line.count_messages();
            let is_proven = anchors >= INSIDE_ANCHORS_MIN || is_newest || diff.is_rest;
            if is_proven && (diff.is_rest || !self.gives_way(session, index + 1, anchors)?) {
                (diff.accepted, diff.position_accepted) = (index + 1, position);
                diff.seen_accepted = list.seq_seen;
                return Ok(true);
            }
            diff.has_short_beginning = true;
        }
        let Some(list) = self.beginning else { return Ok(false) };
        diff.position_accepted = self.line.count_through(list.seq_last);
        diff.seen_accepted = list.seq_seen;
        Ok(true)
    }

    /// Returns whether a beginning of `length` entries with `anchors` gives way to a longer one
    /// that is proven, or to a longer window with the newest messages: short words may begin the
    /// newest list, another list, and a window, too.
    fn gives_way(
        &self,
        session: &mut StoreSession<'_>,
        length: usize,
        anchors: usize,
    ) -> Result<bool> {
        if length == 0 || anchors > 0 {
            return Ok(false);
        }
        for position in self.line.list_starts().into_iter().chain([1]) {
            let run = self.match_from(session, 0, position)?;
            if run.length > length && run.anchors >= INSIDE_ANCHORS_MIN {
                return Ok(true);
            }
        }
        let suffix = self.find_suffix_run(session, SkippedCounts::default())?;
        Ok(suffix.start == 0 && suffix.length > length)
    }

    /// Finds the run with which the list begins like the line or a later list, and a run that has
    /// newest messages.
    fn find_runs(&self, session: &mut StoreSession<'_>, diff: &mut LineDiff) -> Result<()> {
        let stored = int::to_usize(self.line.count_messages());
        let prefix = self.match_from(session, 0, 1)?;
        let mut begun_anew = AlignedRun::default();
        for position in self.line.list_starts() {
            let run = self.match_from(session, 0, position)?;
            if run.length > begun_anew.length {
                begun_anew = run;
            }
        }
        let is_proven = |run: &AlignedRun| {
            let reaches_end = int::to_usize(run.position_first) + run.length == stored + 1;
            run.anchors >= INSIDE_ANCHORS_MIN || (run.length > 0 && reaches_end)
        };
        if self.gives_way(session, begun_anew.length, begun_anew.anchors)? {
            begun_anew = AlignedRun::default();
        }
        if is_proven(&begun_anew) && begun_anew.length >= prefix.length {
            return self.follow_beginning(session, diff, &begun_anew);
        }
        let is_longer = begun_anew.length > prefix.length && !is_proven(&prefix);
        let prefix = if is_longer { begun_anew } else { prefix };
        diff.is_first_turn = prefix.length > 0
            && prefix.anchors + 1 == INSIDE_ANCHORS_MIN
            && !self.has_user_after(session, prefix.position_first + int::to_u64(prefix.length))?;
        if is_proven(&prefix) {
            return self.follow_beginning(session, diff, &prefix);
        }
        let (length, anchors) = (prefix.length, prefix.anchors);
        if self.add_stubbed_beginning(session, diff, &prefix)? {
            return Ok(());
        }
        // One message may well be said again, so a run at the end counts more than one message at
        // the beginning.
        let suffix = self.find_suffix_run(session, SkippedCounts::default())?;
        // Elsewhere in the list, the newest messages may well be said again.
        let is_near = suffix.start <= self.confirmed
            || suffix.length == stored
            || self.is_certain_run(&suffix);
        let follows_prefix = |run: &AlignedRun| {
            length > 0
                && run.length > 0
                && run.start >= length
                && run.position_first >= prefix.position_first + int::to_u64(length)
                && anchors + run.anchors >= INSIDE_ANCHORS_MIN
        };
        let is_suffix = suffix.anchors > 0 && (is_near || follows_prefix(&suffix));
        if diff.is_first_turn && !(is_suffix && follows_prefix(&suffix)) {
            diff.add_prefix(&prefix);
            return Ok(());
        }
        let inside = match is_suffix {
            true => suffix,
            false => self.find_inside_run(session)?,
        };
        if follows_prefix(&inside) {
            diff.add_prefix(&prefix);
            diff.add_run(&inside);
        } else if inside.length > 0 {
            diff.found_by = "alignment";
            for run in self.find_rotated_runs(session, inside)? {
                diff.add_run(&run);
            }
        } else {
            diff.has_short_beginning |= length > 0;
            diff.short_beginning = prefix;
        }
        Ok(())
    }

    /// Adds a proven run at the beginning, and what follows it in the line and in branches.
    fn follow_beginning(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
        run: &AlignedRun,
    ) -> Result<()> {
        diff.add_prefix(run);
        self.add_stubs(session, diff, run.last_places())?;
        self.follow_branches(session, diff, run.last_places())
    }

    /// Adds a run at the beginning if the list goes on with all messages of the line after it, of
    /// which only results became stubs. Returns whether it does. A list that ends before the line
    /// may say the same again, with another result.
    fn add_stubbed_beginning(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
        run: &AlignedRun,
    ) -> Result<bool> {
        let position_end = run.position_first + int::to_u64(self.entries.len());
        let may_differ = run.length > 0 && position_end > self.line.count_messages();
        if !may_differ || !self.add_stubs(session, diff, run.last_places())? {
            return Ok(false);
        }
        diff.add_prefix(run);
        Ok(true)
    }

    /// Adds the stubs with which the list, from entry `end` on, differs from the line after the
    /// message at `position`. Returns whether there are stubs and no other differences.
    fn add_stubs(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
        (end, position): (usize, u64),
    ) -> Result<bool> {
        let stubs = self.find_stubs(session, end, position + 1)?;
        let is_found = stubs.is_some();
        for (index, place) in stubs.into_iter().flatten() {
            diff.add_form(index, place);
        }
        Ok(is_found)
    }

    /// Adds the runs with which the list continues in branches, from the entry `end` on. Branches
    /// follow the message at `position` in their lists, and stand further behind in the line.
    fn follow_branches(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
        (mut end, mut position): (usize, u64),
    ) -> Result<()> {
        loop {
            let mut longest = AlignedRun::default();
            for start in self.line.branch_starts(position) {
                let run = match self.match_from(session, end, start)? {
                    run if run.length == 0 => self.match_after_form(session, end, start)?,
                    run => run,
                };
                if run.length > longest.length {
                    longest = run;
                }
            }
            if longest.length > 0 {
                diff.add_run(&longest);
                (end, position) = longest.last_places();
            } else if let Some(start) = self.find_branch_question(session, end, position)? {
                diff.add_form(end, start);
                (end, position) = (end + 1, start);
            } else {
                return Ok(());
            }
        }
    }

    /// Returns whether a run at the end of the line is no repetition, wherever it is in the list.
    pub(super) fn is_certain_run(&self, run: &AlignedRun) -> bool {
        let entries = self.entries.get(run.start..run.start + run.length).unwrap_or(&[]);
        run.is_named || alignment::have_certain_texts(entries)
    }

    /// Returns whether a message from a position on is of a user, or more than one page of messages
    /// follows.
    fn has_user_after(&self, session: &mut StoreSession<'_>, position: u64) -> Result<bool> {
        let stored = self.line.read_page(session, position)?;
        let is_more = position + int::to_u64(stored.len()) <= self.line.count_messages();
        Ok(is_more || stored.iter().any(|message| message.role == Role::User))
    }

    /// Matches the entries from index `start` on with the line from a position on.
    fn match_from(
        &self,
        session: &mut StoreSession<'_>,
        start: usize,
        position_first: u64,
    ) -> Result<AlignedRun> {
        let entries = self.entries.get(start..).unwrap_or(&[]);
        let MatchedRun { length, anchors, .. } =
            self.match_messages(session, entries, position_first)?;
        Ok(AlignedRun { start, length, position_first, anchors, is_named: false })
    }

    /// Matches the entries after the one at index `start` with the line after the message at a
    /// position. The run is empty if it has no anchor, or the entry cannot be another form of the
    /// message.
    fn match_after_form(
        &self,
        session: &mut StoreSession<'_>,
        start: usize,
        position: u64,
    ) -> Result<AlignedRun> {
        let run = self.match_from(session, start + 1, position + 1)?;
        let equal = self.entries.iter().skip(start + 1).take(run.length);
        // Tools are polled after another question as well.
        let stored = match equal.into_iter().any(AlignableEntry::is_strong_anchor) {
            false => None,
            true => self.line.read_stored(session, self.line.seq_at(position))?,
        };
        let is_form = self.entries.get(start).zip(stored.as_ref());
        let is_form =
            is_form.is_some_and(|(entry, message)| message_form::may_be_form(entry, message));
        Ok(if is_form { run } else { AlignedRun::default() })
    }

    /// Compares the entries after the last aligned one with the messages there as other forms of
    /// them: those of [`compare_forms`], forms that were stored before, and stubs of results.
    fn compare_tail(&self, session: &mut StoreSession<'_>, diff: &mut LineDiff) -> Result<()> {
        for _ in 0..FORMS_MAX {
            let LastStored { count: start, position: before } = diff.find_last_stored();
            let position = before + 1;
            let Some(entry) = self.entries.get(start) else { break };
            if start == 0 || position > self.line.count_messages() {
                break;
            }
            // A set-aside branch may begin with this entry. It is then compared only if the list
            // and the line go on with the same message.
            let is_newest = position == self.line.count_messages();
            if self.line.has_branch(session, before, entry)?
                && (is_newest || !self.goes_on_after(session, start, position)?)
            {
                break;
            }
            let stored = self.line.read_stored(session, self.line.seq_at(position))?;
            let Some(message) = &stored else { break };
            let text = (self.text_of)(start);
            let mut form = compare_forms(entry, text.as_deref(), message);
            if form.is_none() {
                let known = self.line.read_forms(session)?;
                let is_stored = message_form::is_stored_form(entry, message, &known);
                form = is_stored.then_some(MessageForm::Other);
            }
            match form {
                Some(MessageForm::Longer) if is_newest => {
                    (diff.grown, diff.replaced) = (Some(start), 1);
                    break;
                }
                Some(MessageForm::Shortened)
                    if !self.goes_on_after(session, start, position)? =>
                {
                    break;
                }
                Some(_) => diff.add_form(start, position),
                None if self.add_stubs(session, diff, (start, before))? => {}
                None => break,
            }
            self.align_gaps(session, diff, (start, position))?;
        }
        Ok(())
    }

    /// Returns whether the list continues after an entry as the line does after a message. After
    /// the newest message, any entry may follow, but one must.
    pub(super) fn goes_on_after(
        &self,
        session: &mut StoreSession<'_>,
        index: usize,
        position: u64,
    ) -> Result<bool> {
        let Some(next) = self.entries.get(index + 1) else { return Ok(false) };
        if position == self.line.count_messages() {
            return Ok(true);
        }
        let stored = self.line.read_stored(session, self.line.seq_at(position + 1))?;
        Ok(stored.is_some_and(|stored| stored.is_entry(position + 1, next)))
    }

    /// Finds the entries from `start` on that are stubs of tool results whose call ids may only
    /// count calls. Returns pairs of an index and a position, up to the end of the list or the
    /// line. `None`: no entry is a stub, the last entry is one, or another entry differs from its
    /// message.
    fn find_stubs(
        &self,
        session: &mut StoreSession<'_>,
        start: usize,
        position: u64,
    ) -> Result<Option<Vec<(usize, u64)>>> {
        let (mut stubs, mut is_equal, mut count) = (Vec::new(), false, 0);
        loop {
            let place = position + int::to_u64(count);
            if start + count >= self.entries.len() || place > self.line.count_messages() {
                return Ok(Some(stubs).filter(|stubs| is_equal && !stubs.is_empty()));
            }
            let stored = self.line.read_page(session, place)?;
            let entries = self.entries.iter().skip(start + count);
            for (entry, (place, stored)) in entries.zip((place..).zip(&stored)) {
                is_equal = stored.is_entry(place, entry);
                if !is_equal && message_form::may_be_stub(entry, stored) {
                    stubs.push((start + count, place));
                } else if !is_equal {
                    return Ok(None);
                }
                count += 1;
            }
        }
    }

    /// Aligns the entries before, between and after what was found. Begins with the entry `start`
    /// and the message at `position`.
    fn align_gaps(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
        (mut start, mut position): (usize, u64),
    ) -> Result<()> {
        // No message counts for two entries. A message may belong to an entry by its id, or because
        // the entry was found there before.
        let taken = diff.list_taken(self.entries);
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
                let skipped =
                    SkippedCounts { entries: start, messages: int::to_usize(position - 1) };
                // A window at the end of the line: the host keeps its first and newest messages.
                let may_be_window = !range.is_enclosed && position <= self.line.count_messages();
                if may_be_window && range.is_large() {
                    let run = self.find_suffix_run(session, skipped)?;
                    if self.is_certain_run(&run) {
                        diff.add_run(&run);
                        continue;
                    }
                }
                let aligned = range.align_range(session, self.line)?;
                if may_be_window && aligned.iter().all(Option::is_none) {
                    // Ids that count calls are evidence only for such a window.
                    let run = self.find_suffix_run(session, skipped)?;
                    if run.start == start && run.anchors >= INSIDE_ANCHORS_MIN {
                        diff.add_run(&run);
                        continue;
                    }
                }
                let slots = diff.positions.iter_mut().zip(self.entries).skip(start);
                for ((slot, entry), found) in slots.zip(aligned) {
                    let Some(position) = found.filter(|_| slot.is_none()) else { continue };
                    if found == entry.position || taken.binary_search(&position).is_err() {
                        *slot = found;
                    }
                }
            }
            start = end + 1;
            position = position_next.map_or(position, |next| next + 1);
        }
        Ok(())
    }

    /// Returns `first`, and two runs after `first` if the list is rotated.
    ///
    /// A list is rotated if older messages were inserted at its start after the rest was stored, so
    /// the line has the older messages after the rest. In the line, the messages of the second run
    /// are all those before `first`, and the messages of the third run follow `first`. The second
    /// run needs enough anchors, because a short run may be a repetition.
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
        let MatchedRun { length, anchors, .. } = self.match_messages(session, rotated, 1)?;
        if length < before || anchors < INSIDE_ANCHORS_MIN {
            return Ok(runs);
        }
        let run = AlignedRun { start: first.length, length, position_first: 1, anchors, ..first };
        runs.push(run);
        let start = first.length + before;
        let position_first = first.position_first + int::to_u64(first.length);
        let rest = self.entries.get(start..).unwrap_or(&[]);
        let MatchedRun { length, anchors, .. } =
            self.match_messages(session, rest, position_first)?;
        runs.push(AlignedRun { start, length, position_first, anchors, ..first });
        Ok(runs)
    }

    /// Matches entries with the messages of the line from `position_first` on.
    pub(super) fn match_messages(
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
            if self.texts.is_empty()
                && let Some(mark) = self.line.mark_at(position)
                && let Some(entry) = entries.get(run.length)
            {
                if !entry.is_message(position, mark) {
                    return Ok(run);
                }
                run.length += 1;
                run.anchors += usize::from(entry.is_anchor_of(mark));
                continue;
            }
            let stored = self.line.read_page(session, position)?;
            for (entry, stored) in entries.iter().skip(run.length).zip(&stored) {
                if !stored.matches_entry(entry) {
                    return Ok(run);
                }
                run.length += 1;
                run.anchors += usize::from(entry.is_anchor_of(&stored.mark));
            }
        }
    }
}
