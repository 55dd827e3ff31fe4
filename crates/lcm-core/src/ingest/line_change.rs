//! The change of the line by an append or a rewind: messages that are set aside, that come back,
//! and that are other forms of messages.
//!
//! In: the decision about a list, and the new messages. Out: the new context, the record of
//! withdrawn messages and the newest user message, as parts of the commit of the append. An append
//! without such a change only extends the context.

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    changes::Changes,
    context::{ContextItem, MessageRun},
    head::{ConversationHead, UserMessageRef},
    history::MessageHistory,
    message_mark::MessageMark,
    records::withdrawals::{WithdrawalReason, Withdrawals},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    message,
};

use super::{
    list_decision::SeenMessages,
    list_texts::ListHashes,
    stored_line::{PAGE_MESSAGES, read_marks},
    unfolding::{self, UnfoldedItems},
};

/// Most ranges of set-aside messages that one append brings back.
pub(super) const RESTORED_MAX: usize = 256;

/// Most messages of the line that one longer form replaces.
const REPLACED_MAX: usize = PAGE_MESSAGES;

/// The messages that leave the line and come back, before new messages are added.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LineChange {
    /// Seq of the last message that stays, apart from those that come back; the number of messages:
    /// all stay.
    pub(super) fork: u64,
    /// Whether the messages of the line after `fork`, at most [`REPLACED_MAX`], leave it as shorter
    /// forms of a new message.
    pub(super) is_grown: bool,
    /// First and last seqs of the set-aside messages that come back, ascending.
    pub(super) restored: Vec<(u64, u64)>,
    /// Whether the list has every message of the line, so that no branch of it stays in doubt.
    pub(super) ends_doubt: bool,
}

/// Whether a list begins with the new messages of an append.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum ListStart {
    /// The messages belong to a list that began before.
    #[default]
    Earlier,
    /// The list shares no message with the line.
    Unplaced,
    /// The caller said with append mode `new` that all messages are new.
    Told,
}

/// What an append does to the line beside adding messages.
#[derive(Debug, Default)]
pub(super) struct LineUpdate {
    pub(super) change: Option<LineChange>,
    /// Seq of the message that the first new message follows in the list, where the line has later
    /// messages before this one; 0: the list begins with it.
    pub(super) branch: Option<u64>,
    /// Hashes of the list that is stored after the append; `None`: it is not remembered.
    pub(super) list_hashes: Option<ListHashes>,
    /// What the caller has seen after the append.
    pub(super) seen: SeenMessages,
    /// Where the list of the new messages begins.
    pub(super) start: ListStart,
    /// The record of withdrawn messages before the append.
    pub(super) withdrawals: Withdrawals,
}

/// An update whose records were read.
pub(super) struct PreparedUpdate {
    /// All items of the context before the append.
    items: Vec<ContextItem>,
    /// Number of first items that stay.
    kept: usize,
    /// The items after them, before new messages.
    replacement: Vec<ContextItem>,
    withdrawals: Withdrawals,
    branch: Option<u64>,
    /// The newest user message of the line, before new messages.
    newest_user: Option<UserMessageRef>,
    /// [`LineChange::fork`] of the change; `None`: no message leaves the line or comes back.
    fork: Option<u64>,
    /// What else changes with the items; the items themselves are in `replacement`.
    unfolded: UnfoldedItems,
}

/// The new messages of an append.
#[derive(Clone, Copy)]
pub(super) struct NewMessageCounts<'a> {
    pub(super) seq_first: u64,
    /// Marks of the first messages, which are other forms of stored messages.
    pub(super) forms: &'a [MessageMark],
    /// Tokens of all messages before the first one that belongs to the line.
    pub(super) tokens_before_line: u64,
}

impl LineUpdate {
    /// Reads what the update needs; `head` must still be the stored one. `None`: the append only
    /// extends the line.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the conversation cannot make the change; `limit-exceeded`: too many ranges
    /// of withdrawn messages, or too many summaries give way; `conflict`: the conversation has
    /// changed; `corrupt`; errors of the store.
    pub(super) fn prepare_update(
        self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        revisions: usize,
    ) -> Result<Option<PreparedUpdate>> {
        if self.change.is_none() && self.branch.is_none() && revisions == 0 {
            return Ok(None);
        }
        let items = head.context.load_items(session, call.keys)?;
        let history = MessageHistory::new(call, head);
        let mut withdrawals = self.withdrawals;
        let (mut kept, mut replacement) = (items.len().saturating_sub(1), Vec::new());
        replacement.extend(items.get(kept).copied());
        let mut unfolded = UnfoldedItems::default();
        if let Some(change) = &self.change {
            ensure_valid(head, &withdrawals, change)?;
            let first = change.restored.first().map_or(u64::MAX, |(first, _)| *first);
            let first = first.min(change.fork + 1);
            // New messages are joined with the last item, so that one is always replaced.
            let mut before = items.iter().take_while(|item| item.seq_last() < first).count();
            // Messages that come back are joined with a run or withdrawn item before them.
            let is_summary = |item: &ContextItem| matches!(item, ContextItem::Summary(_));
            if before > 0 && !items.get(before - 1).is_some_and(is_summary) {
                before -= 1;
            }
            kept = kept.min(before);
            let after = items.get(kept..).unwrap_or(&[]);
            unfolded = unfolding::unfold_items(session, &history, after, change)?;
            if change.is_grown {
                let range = (change.fork + 1, head.messages);
                let parts = withdrawals.list_line_ranges(range.0, range.1);
                let seqs: Vec<u64> = parts.into_iter().flat_map(|(from, to)| from..=to).collect();
                let marks = read_marks(session, &history, &seqs)?;
                withdrawals.withdraw_revisions(range, &marks)?;
            } else if change.fork < head.messages {
                withdrawals.set_aside(change.fork, head.messages)?;
            }
            if change.ends_doubt {
                withdrawals.branches.clear();
            }
            withdrawals.restore_ranges(&change.restored);
            withdrawals.split_restored(&change.restored, head.messages);
            replacement = change_items(session, &history, &unfolded.items, change)?;
            unfolded.items.clear();
        }
        let restored = self.change.as_ref().and_then(|change| change.restored.last());
        let newest_restored = restored.map_or(0, |(_, last)| *last);
        let newest_user = find_newest_user(session, &history, &withdrawals, newest_restored)?;
        let fork = self.change.map(|change| change.fork);
        let branch = self.branch.filter(|after| *after <= head.messages);
        Ok(Some(PreparedUpdate {
            items,
            kept,
            replacement,
            withdrawals,
            branch,
            newest_user,
            fork,
            unfolded,
        }))
    }
}

/// Refuses a change that the conversation cannot make.
fn ensure_valid(
    head: &ConversationHead,
    withdrawals: &Withdrawals,
    change: &LineChange,
) -> Result<()> {
    let LineChange { fork, is_grown, restored, .. } = change;
    let count = |seq: u64| withdrawals.count_through(seq.min(head.messages));
    let left = count(head.messages) - count(*fork);
    if *fork > head.messages || (*is_grown && !(1..=REPLACED_MAX).contains(&int::to_usize(left))) {
        return Err(Error::invalid_input(format_args!(
            "`line.fork` must be 0 or the seq of a stored message, at most {}; with `line.grown` \
             1 to {REPLACED_MAX} messages of the line must follow it; got {fork}",
            head.messages
        )));
    }
    let mut next = 1;
    for (first, last) in restored {
        let is_set_aside = |seq: u64| {
            matches!(withdrawals.reason_of(seq), Some(WithdrawalReason::SetAside { .. }))
        };
        let is_valid = *first >= next
            && first <= last
            && *last <= head.messages
            && (*first..=*last).all(is_set_aside);
        if !is_valid {
            return Err(Error::invalid_input(format_args!(
                "`line.restored` must list ascending ranges of set-aside messages, got {first} to \
                 {last}"
            )));
        }
        next = last + 1;
    }
    Ok(())
}

impl PreparedUpdate {
    /// Writes the update. The counts of the head include the new messages.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many context items or set-aside ranges.
    pub(super) fn apply(
        mut self,
        call: Call<'_>,
        head: &mut ConversationHead,
        new: NewMessageCounts<'_>,
        changes: &mut Changes,
    ) -> Result<()> {
        let line_first = new.seq_first + int::to_u64(new.forms.len());
        if !new.forms.is_empty() {
            let (first, last) = (new.seq_first, line_first - 1);
            self.withdrawals.withdraw_revisions((first, last), new.forms)?;
            push_item(&mut self.replacement, withdrawn_item(first, last));
        }
        if line_first <= head.messages {
            self.branch
                .into_iter()
                .for_each(|after| self.withdrawals.add_branch(line_first, after));
            let run = MessageRun {
                seq_first: line_first,
                seq_last: head.messages,
                tokens_before: new.tokens_before_line,
                tokens: head.raw_tokens - new.tokens_before_line,
            };
            push_item(&mut self.replacement, ContextItem::Run(run));
        }
        // `newest_user` may name another form, which the packs added, or a message that is set
        // aside.
        if head.newest_user.is_none_or(|user| user.seq < line_first) {
            head.newest_user = self.newest_user;
        }
        let range = self.kept..self.items.len();
        let (context, nodes) = head.context.replace_items(
            call.keys,
            head.revision + 1,
            &self.items,
            range,
            &self.replacement,
        )?;
        head.context = context;
        changes.add_puts(nodes);
        // The dropped lists and starts have messages that this change sets aside.
        let fork = self.fork;
        head.accepted_lists.retain(|list| fork.is_none_or(|fork| list.seq_last <= fork));
        head.list_starts.retain(|seq| fork.is_none_or(|fork| *seq <= fork));
        self.unfolded.write_changes(call, head, changes)?;
        changes.write_record(&Withdrawals::key(call.keys), &self.withdrawals)?;
        Ok(())
    }
}

/// Remembers where a list begins, if it begins with the new messages from `seq_first` on. After
/// append mode `new`, lists that were accepted before do not count any more.
pub(super) fn remember_start(head: &mut ConversationHead, start: ListStart, seq_first: u64) {
    // Further calls in mode `new` go on with the list of the call before.
    let goes_on = start == ListStart::Told && head.appended_new + 1 == seq_first;
    if start == ListStart::Told {
        head.accepted_lists.clear();
        head.appended_new = head.messages;
    }
    if start != ListStart::Earlier && seq_first > 1 && !goes_on {
        head.list_starts.push(seq_first);
        let excess = head.list_starts.len().saturating_sub(limits::LIST_STARTS_MAX);
        head.list_starts.drain(..excess);
    }
}

pub(super) fn withdrawn_item(seq_first: u64, seq_last: u64) -> ContextItem {
    ContextItem::Withdrawn { seq_first, seq_last }
}

/// Adds an item, joined with the last item if both are withdrawn, or runs that follow each other.
pub(super) fn push_item(items: &mut Vec<ContextItem>, item: ContextItem) {
    match (items.last_mut(), item) {
        (Some(ContextItem::Withdrawn { seq_last, .. }), ContextItem::Withdrawn { .. }) => {
            *seq_last = item.seq_last();
        }
        (Some(ContextItem::Run(last)), ContextItem::Run(run)) => {
            (last.seq_last, last.tokens) = (run.seq_last, last.tokens + run.tokens);
        }
        _ => items.push(item),
    }
}

/// Returns the items after a change of the line.
fn change_items(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    change: &LineChange,
) -> Result<Vec<ContextItem>> {
    let LineChange { fork, restored, .. } = change;
    let mut out = Vec::new();
    for item in items {
        let (first, last) = (item.seq_first(), item.seq_last());
        match *item {
            ContextItem::Run(_) if last <= *fork => push_item(&mut out, *item),
            ContextItem::Run(_) => {
                if first <= *fork {
                    push_messages(session, history, (first, *fork), &mut out)?;
                }
                push_item(&mut out, withdrawn_item(first.max(fork + 1), last));
            }
            ContextItem::Withdrawn { .. } => {
                let mut next = first;
                for (seq_first, seq_last) in restored {
                    let (from, to) = ((*seq_first).max(next), (*seq_last).min(last));
                    if from > to {
                        continue;
                    }
                    if from > next {
                        push_item(&mut out, withdrawn_item(next, from - 1));
                    }
                    push_messages(session, history, (from, to), &mut out)?;
                    next = to + 1;
                }
                if next <= last {
                    push_item(&mut out, withdrawn_item(next, last));
                }
            }
            // Unfolding left no summary on both sides of the fork.
            ContextItem::Summary(_) if last <= *fork => push_item(&mut out, *item),
            ContextItem::Summary(_) => push_item(&mut out, withdrawn_item(first, last)),
        }
    }
    Ok(out)
}

/// Adds a range of messages as a run.
fn push_messages(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    range: (u64, u64),
    items: &mut Vec<ContextItem>,
) -> Result<()> {
    let runs = unfolding::read_runs(session, history, &[range])?;
    runs.into_iter().for_each(|run| push_item(items, ContextItem::Run(run)));
    Ok(())
}

/// Finds the newest user message of the line. `newest_restored`: seq of the newest message that
/// came back; 0: none.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(crate) fn find_newest_user(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    withdrawals: &Withdrawals,
    newest_restored: u64,
) -> Result<Option<UserMessageRef>> {
    let head = history.head;
    // Messages that came back may have a newer user message.
    if let Some(user) = head.newest_user.filter(|user| user.seq >= newest_restored)
        && withdrawals.position_of(user.seq).is_some()
    {
        return Ok(Some(user));
    }
    let mut position = withdrawals.count_in_line(head.messages);
    while position > 0 {
        let first = position.saturating_sub(int::to_u64(PAGE_MESSAGES)) + 1;
        let seqs: Vec<u64> =
            (first..=position).map(|position| withdrawals.seq_at(position)).collect();
        for placed in history.read_messages_at(session, &seqs)?.iter().rev() {
            let text = history.read_text(session, &placed.stored)?;
            let message = message::parse(placed.dialect, &text).map_err(|_| {
                Error::corrupt_store(format_args!("message {} cannot be read", placed.seq))
            })?;
            if message.is_user_text() {
                return Ok(Some(UserMessageRef { seq: placed.seq, tokens: placed.stored.tokens }));
            }
        }
        position = first - 1;
    }
    Ok(None)
}
