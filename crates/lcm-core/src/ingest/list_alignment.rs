//! Alignment of a list with the line, for `append` and `reconcile` alike.
//!
//! In: the entries of a list, and for each entry the seq of the message that its ids lead to. Out:
//! a decision about each entry, and how the line changes. A list is whole or the end of a whole
//! list. [`super::system_messages`] decides about leading system messages that no id leads to.

use alloc::{string::String, vec::Vec};
use core::cell::Cell;

use crate::storage::{
    call::Call,
    head::ConversationHead,
    history::MessageHistory,
    message_mark::{AcceptedList, MessageMark, advance_list},
    records::{
        system_slot::{count_leading, hash_version, is_begun},
        withdrawals::Withdrawals,
    },
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, hash, int},
    message::meaning::{self, SaidPart},
};

use super::{
    alignment::AlignableEntry,
    line_change::ListStart,
    line_diff::{LineComparison, LineDiff},
    list_decision::{EntryOutcome, LineRequest, ListDecision},
    list_texts::UNKNOWN_LEAD,
    stored_line::StoredLine,
    system_messages::LeadRequest,
    transcript::TranscriptEntry,
};

/// Most parts of one stored message, of several that an entry joins.
const GROUP_PARTS_MAX: usize = 64;

/// A list and what the caller knows of it.
pub(super) struct AlignmentRequest<'a> {
    /// Whether the list is a transcript, as `reconcile` compares it: even its only entry may be
    /// stored.
    pub(super) is_transcript: bool,
    /// The entries that an append does not skip.
    pub(super) entries: &'a [&'a TranscriptEntry],
    /// For each entry, the seq of the message that it is by its ids; `None`: its ids say nothing.
    pub(super) known: &'a [Option<u64>],
    /// The accepted list that the entries follow in the list; `None`: they are the whole list.
    pub(super) beginning: Option<AcceptedList>,
    /// Number of first entries that are known to be stored.
    pub(super) confirmed: usize,
    /// Seq up to which the caller has seen every message; `None` or 0: unknown.
    pub(super) seq_seen: Option<u64>,
    /// Returns what an entry says, if that is one text; `None`: something else, or only hashes are
    /// known.
    pub(super) text_of: &'a dyn Fn(usize) -> Option<String>,
}

/// What is compared with one message of the line: an entry, or a group of parts of an entry that
/// joins several stored messages.
#[derive(Clone, Copy)]
struct ComparedRow<'a> {
    entry: &'a TranscriptEntry,
    /// Index of the entry in the list.
    index: usize,
    /// Consecutive parts; `None`: the whole entry.
    parts: Option<&'a [SaidPart]>,
    mark: MessageMark,
}

impl ComparedRow<'_> {
    /// Returns what the row says.
    fn said_parts(&self) -> &[SaidPart] {
        self.parts.unwrap_or(&self.entry.said)
    }

    /// Returns the parts that the running hash of the list has.
    fn list_parts(&self) -> &[SaidPart] {
        match self.parts {
            Some(parts) => parts,
            None => self.entry.own_said.as_ref().unwrap_or(&self.entry.said),
        }
    }

    fn has_host_id(&self) -> bool {
        self.parts.is_none() && self.entry.has_host_id()
    }
}

/// Returns the running hash after each row of a list. `before`: the hash before the first row.
fn hash_rows(rows: &[ComparedRow<'_>], before: [u8; 16]) -> Vec<[u8; 16]> {
    let advance = |running: &mut [u8; 16], row: &ComparedRow<'_>| {
        *running = advance_list(running, row.list_parts(), row.entry.mark.id);
        Some(*running)
    };
    rows.iter().scan(before, advance).collect()
}

/// Returns the outcomes of entries from those of their rows. An entry has the outcome of its first
/// row if all its other rows are stored; else the entry is new.
fn join_outcomes(rows: &[ComparedRow<'_>], outcomes: Vec<EntryOutcome>) -> Vec<EntryOutcome> {
    let mut joined: Vec<(usize, EntryOutcome)> = Vec::with_capacity(outcomes.len());
    for (row, outcome) in rows.iter().zip(outcomes) {
        match joined.last_mut().filter(|(index, _)| *index == row.index) {
            Some((_, known)) if outcome != EntryOutcome::Stored => *known = EntryOutcome::New,
            Some(_) => {}
            None => joined.push((row.index, outcome)),
        }
    }
    joined.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Aligns a list with the line of the conversation and decides about each entry.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn align_list(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    withdrawals: &Withdrawals,
    list: &AlignmentRequest<'_>,
) -> Result<ListDecision> {
    let line = StoredLine::new(MessageHistory::new(call, head), withdrawals).with_marks(session)?;
    let has_no_message = !is_begun(head);
    let lead = list.count_lead(has_no_message);
    let leading = list.entries.get(..lead).unwrap_or(&[]);
    let rows = list.list_rows(lead, &line);
    let entries = list.build_entries(&rows, &line);
    let has_copies = entries.iter().any(|entry| entry.redacted_copy.is_some());
    let texts = match has_copies && line.count_messages() > 0 {
        true => line.read_newest_texts(session, line.newest_marks().len())?,
        false => Vec::new(),
    };
    let has_id = |index: usize| rows.get(index).is_some_and(ComparedRow::has_host_id);
    let confirmed = rows.iter().filter(|row| row.index < list.confirmed).count();
    let text_of = |index: usize| {
        let row = rows.get(index).filter(|row| row.parts.is_none())?;
        (list.text_of)(row.index)
    };
    let parts_of = |index: usize| rows.get(index).map_or(&[][..], ComparedRow::said_parts);
    let comparison = LineComparison {
        line: &line,
        entries: &entries,
        beginning: list.beginning,
        confirmed,
        texts: &texts,
        has_id: &has_id,
        parts_of: &parts_of,
        text_of: &text_of,
    };
    // The only entry of an append counts as stored by its id alone, because a text may be said
    // again.
    let is_single =
        !list.is_transcript && list.entries.len() < 2 && rows.len() < 2 && list.beginning.is_none();
    let mut diff = match line.count_messages() == 0 || is_single || entries.is_empty() {
        true => comparison.compare_ids(session)?,
        false => comparison.compare_list(session)?,
    };
    keep_summarised(session, &line, &mut diff)?;
    let seq_seen = list.seq_seen;
    let (line, entries) = (&line, &*entries);
    let mut request = LineRequest { line, withdrawals, entries, diff, confirmed, seq_seen };
    request.prove_beginning(session)?;
    let mut decision = request.decide_list(session)?;
    decision.outcomes = join_outcomes(&rows, decision.outcomes);
    decision.hashes.beginning = find_beginning(&request.diff, &rows, entries);
    // `decide_list` saw the entries after the lead. With a lead, also one entry begins a list; only
    // a list of one entry in all is a single message.
    if lead > 0 && decision.found_by == "none" && decision.outcomes.contains(&EntryOutcome::New) {
        decision.start = ListStart::Unplaced;
    }
    decision.hashes.lead = list.hash_lead(lead);
    let of_lead = LeadRequest {
        line,
        diff: &request.diff,
        entries: leading,
        has_no_message,
        text_of: list.text_of,
    };
    decision.outcomes.splice(..0, of_lead.decide_lead(session)?);
    Ok(decision)
}

/// Returns the accepted list with which a list begins, as `SaidHashes::beginning`.
fn find_beginning(
    diff: &LineDiff,
    rows: &[ComparedRow<'_>],
    entries: &[AlignableEntry],
) -> (usize, [u8; 16]) {
    let last = diff.accepted.wrapping_sub(1);
    match (rows.get(last), entries.get(last)) {
        // An accepted list may end within an entry that joins messages.
        (Some(row), Some(entry))
            if rows.get(diff.accepted).is_none_or(|next| next.index != row.index) =>
        {
            (row.index + 1, entry.list_hash)
        }
        _ => (0, [0; 16]),
    }
}

/// Splits parts into groups that say what consecutive messages of the line say, one group for each
/// message. Empty: the line has no such messages.
fn find_groups<'a>(parts: &'a [SaidPart], marks: &[MessageMark]) -> Vec<&'a [SaidPart]> {
    let firsts = hash_prefixes(parts);
    for (place, first) in marks.iter().enumerate().rev() {
        let Some(group) = find_group(parts, &firsts, first) else { continue };
        let (mut groups, mut rest) = (alloc::vec![group], parts.get(group.len()..).unwrap_or(&[]));
        for next in marks.iter().skip(place + 1) {
            let Some(group) = find_group(rest, &hash_prefixes(rest), next) else { break };
            groups.push(group);
            rest = rest.get(group.len()..).unwrap_or(&[]);
        }
        if rest.is_empty() {
            return groups;
        }
    }
    Vec::new()
}

/// Returns the [`MessageMark::meaning`] of the first part, of the first two, and so on.
fn hash_prefixes(parts: &[SaidPart]) -> Vec<[u8; 8]> {
    let advance = |running: &mut [u8; 16], part: &SaidPart| {
        *running = meaning::advance(running, &part.said);
        Some(hash::hash_prefix(running))
    };
    parts.iter().take(GROUP_PARTS_MAX).scan([0; 16], advance).collect()
}

/// Finds the first parts that say together what the message with this mark says. `prefixes`: what
/// [`hash_prefixes`] returns for the parts.
fn find_group<'a>(
    parts: &'a [SaidPart],
    prefixes: &[[u8; 8]],
    mark: &MessageMark,
) -> Option<&'a [SaidPart]> {
    let end = prefixes.iter().position(|prefix| *prefix == mark.meaning)?;
    let group = parts.get(..=end)?;
    MessageMark::from_parts(group, None, None).is_same_message(mark).then_some(group)
}

/// If a summary covers a message that a longer form would replace, makes this form a revision,
/// which replaces nothing, because the summary keeps the form that it was made from.
fn keep_summarised(
    session: &mut StoreSession<'_>,
    line: &StoredLine<'_>,
    diff: &mut LineDiff,
) -> Result<()> {
    let Some(index) = diff.grown else { return Ok(()) };
    let history = line.message_history();
    let first = line.seq_at(line.count_messages() + 1 - diff.replaced);
    let items = history.head.context.load_items(session, history.keys)?;
    let is_summarised = items.iter().any(|item| item.depth().is_some() && item.seq_last() >= first);
    if is_summarised {
        diff.grown = None;
        diff.add_form(index, line.count_messages());
    }
    Ok(())
}

impl AlignmentRequest<'_> {
    /// Lists the rows of the entries after the first `lead`. If an entry of several parts equals
    /// none of the newest messages, but groups of its parts equal consecutive ones, it has a row
    /// for each group. Assembly and some dialects join neighbours of one role in this way, and
    /// clients join the steps of an answer.
    fn list_rows(&self, lead: usize, line: &StoredLine<'_>) -> Vec<ComparedRow<'_>> {
        let marks = line.newest_marks();
        let mut rows = Vec::with_capacity(self.entries.len());
        for (index, entry) in self.entries.iter().enumerate().skip(lead) {
            let known = self.known.get(index).copied().flatten();
            let may_join = entry.said.len() > 1
                && known.is_none()
                && !marks.iter().any(|mark| mark.is_same_message(&entry.mark));
            let whole = ComparedRow { entry, index, parts: None, mark: entry.mark };
            let groups = if may_join { find_groups(&entry.said, marks) } else { Vec::new() };
            rows.extend(groups.iter().map(|parts| ComparedRow {
                parts: Some(parts),
                mark: MessageMark::from_parts(parts, None, None),
                ..whole
            }));
            if groups.is_empty() {
                rows.push(whole);
            }
        }
        rows
    }

    /// Builds the entries that are compared with the line, one for each row.
    fn build_entries(
        &self,
        rows: &[ComparedRow<'_>],
        line: &StoredLine<'_>,
    ) -> Vec<AlignableEntry> {
        let build = |(row, list_hash): (&ComparedRow<'_>, [u8; 16])| {
            let ComparedRow { entry, index, parts, mark } = *row;
            let known = self.known.get(index).copied().flatten();
            let whole = parts.is_none();
            AlignableEntry {
                mark,
                role: entry.role,
                text: entry.text_bytes.and_then(|bytes| match &*entry.said {
                    [part] => Some((int::to_usize(bytes.into()), part.said)),
                    _ => None,
                }),
                list_hash,
                known_seq: known,
                position: known.and_then(|seq| line.position_of(seq)),
                is_discriminating: entry.is_discriminating,
                // An entry with an id of the host can only be a copy of the message with this id,
                // and `taken_ids` compares these two.
                redacted_copy: entry.redacted_copy.filter(|_| whole && !entry.has_host_id()),
                is_id_taken: entry.is_id_taken,
                may_be_form: Cell::new(whole && entry.is_other_form),
                has_grown: whole && entry.has_grown,
            }
        };
        let before = self.beginning.map_or([0; 16], |list| list.hash);
        rows.iter().zip(hash_rows(rows, before)).map(build).collect()
    }

    /// Returns the id of the version that the first `lead` entries make, as `SaidHashes::lead`.
    fn hash_lead(&self, lead: usize) -> [u8; 8] {
        let systems = count_leading(self.entries.iter().map(|entry| entry.role));
        match lead {
            _ if lead < systems && self.beginning.is_none() => UNKNOWN_LEAD,
            0 => [0; 8],
            _ => hash_version(self.entries.iter().take(lead).map(|entry| &*entry.said)),
        }
    }

    /// Counts the first entries that may fill the slot: leading system messages, at most 64, before
    /// the first entry with a stored id. If they are the whole list, the count is 0 unless
    /// `has_no_message`. After an accepted list the count is 0, too.
    fn count_lead(&self, has_no_message: bool) -> usize {
        if self.beginning.is_some() {
            return 0;
        }
        let unknown = self.known.iter().take_while(|known| known.is_none()).count();
        let lead = count_leading(self.entries.iter().map(|entry| entry.role)).min(unknown);
        if lead == self.entries.len() && !has_no_message { 0 } else { lead }
    }
}
