//! The change of the line by an append: messages that are set aside, that come back, and that are
//! other forms of messages.
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
    message_mark::AcceptedList,
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

use super::stored_line::PAGE_MESSAGES;

/// The messages that leave the line and come back, before new messages are added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LineChange {
    /// Seq of the last message that stays; 0: none stays.
    pub(super) fork: u64,
    /// First and last seq of the set-aside messages that come back.
    pub(super) restored: Option<(u64, u64)>,
}

/// What an append does to the line beside adding messages.
#[derive(Debug, Default)]
pub(super) struct LineUpdate {
    pub(super) change: Option<LineChange>,
    /// Running hash of the list that is stored after the append; `None`: it is not remembered.
    pub(super) list_hash: Option<[u8; 16]>,
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
    /// The newest user message of the line, before new messages.
    newest_user: Option<UserMessageRef>,
    /// Seq of the last message that stays; `None`: all messages stay.
    fork: Option<u64>,
}

/// The counts of the new messages of an append.
#[derive(Clone, Copy)]
pub(super) struct NewMessageCounts {
    pub(super) seq_first: u64,
    /// Number of first messages that are other forms of stored messages.
    pub(super) revisions: u64,
    /// Tokens of all messages before the first one that belongs to the line.
    pub(super) tokens_before_line: u64,
}

impl LineUpdate {
    /// Reads what the update needs, as long as the head is the stored one; `None`: the append only
    /// extends the line.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many set-aside ranges; `corrupt`; errors of the store.
    pub(super) fn prepare_update(
        self,
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        revisions: usize,
    ) -> Result<Option<PreparedUpdate>> {
        if self.change.is_none() && revisions == 0 {
            return Ok(None);
        }
        let items = head.context.load_items(session, call.keys)?;
        let history = MessageHistory::new(call, head);
        let mut withdrawals = self.withdrawals;
        let (mut kept, mut replacement) = (items.len().saturating_sub(1), Vec::new());
        replacement.extend(items.get(kept).copied());
        if let Some(LineChange { fork, restored }) = self.change {
            ensure_valid(head, &withdrawals, fork, restored)?;
            if fork < head.messages {
                withdrawals.withdraw_range(fork + 1, head.messages, WithdrawalReason::SetAside)?;
            }
            kept = items.iter().take_while(|item| item.seq_last() <= fork).count();
            let after = items.get(kept..).unwrap_or(&[]);
            replacement = set_aside_items(session, &history, after, fork)?;
            if let Some((seq_first, seq_last)) = restored {
                withdrawals.restore_range(seq_first, seq_last);
                let run = read_run(session, &history, seq_first, seq_last)?;
                replacement = restore_items(&replacement, run);
            }
        }
        let newest_user = find_newest_user(session, &history, &withdrawals)?;
        let fork = self.change.map(|change| change.fork);
        Ok(Some(PreparedUpdate { items, kept, replacement, withdrawals, newest_user, fork }))
    }
}

/// Refuses a change that the conversation cannot make.
fn ensure_valid(
    head: &ConversationHead,
    withdrawals: &Withdrawals,
    fork: u64,
    restored: Option<(u64, u64)>,
) -> Result<()> {
    if fork > head.messages {
        return Err(Error::invalid_input(format_args!(
            "`line.fork` must be at most {}, the number of messages, got {fork}",
            head.messages
        )));
    }
    let is_set_aside = |(first, last): (u64, u64)| {
        first > fork
            && withdrawals.ranges.iter().any(|range| {
                let holds = range.seq_first <= first && last <= range.seq_last;
                holds && range.reason == WithdrawalReason::SetAside
            })
    };
    match restored {
        Some((first, last)) if !is_set_aside((first, last)) => {
            Err(Error::invalid_input(format_args!(
                "`line.restored_first` and `line.restored_last` must name set-aside messages after \
                 message {fork}, got {first} and {last}"
            )))
        }
        _ => Ok(()),
    }
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
        new: NewMessageCounts,
        changes: &mut Changes,
    ) -> Result<()> {
        let line_first = new.seq_first + new.revisions;
        if new.revisions > 0 {
            let (first, last) = (new.seq_first, line_first - 1);
            self.withdrawals.withdraw_range(first, last, WithdrawalReason::Revision)?;
            push_item(&mut self.replacement, withdrawn_item(first, last));
        }
        if line_first <= head.messages {
            let run = MessageRun {
                seq_first: line_first,
                seq_last: head.messages,
                tokens_before: new.tokens_before_line,
                tokens: head.raw_tokens - new.tokens_before_line,
            };
            push_item(&mut self.replacement, ContextItem::Run(run));
        }
        // The packs named the newest user message of all new messages.
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
        // These lists have messages that are set aside now.
        let fork = self.fork;
        head.accepted_lists.retain(|list| fork.is_none_or(|fork| list.seq_last <= fork));
        head.ledger.withdrawn_tokens =
            head.raw_tokens.saturating_sub(head.ledger.saved_tokens + head.context.tokens);
        changes.write_record(&Withdrawals::key(call.keys), &self.withdrawals)?;
        Ok(())
    }
}

/// Remembers a list whose messages are all stored, as the newest of the accepted lists.
pub(super) fn remember_list(head: &mut ConversationHead, hash: [u8; 16]) {
    head.accepted_lists.retain(|list| list.hash != hash);
    head.accepted_lists.push(AcceptedList { hash, seq_last: head.messages });
    let excess = head.accepted_lists.len().saturating_sub(limits::ACCEPTED_LISTS_MAX);
    head.accepted_lists.drain(..excess);
}

fn withdrawn_item(seq_first: u64, seq_last: u64) -> ContextItem {
    ContextItem::Withdrawn { seq_first, seq_last }
}

/// Adds an item, joined with the last item if both are withdrawn, or runs that follow each other.
fn push_item(items: &mut Vec<ContextItem>, item: ContextItem) {
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

/// Returns the items with all messages after `fork` withdrawn.
fn set_aside_items(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    fork: u64,
) -> Result<Vec<ContextItem>> {
    let mut out = Vec::new();
    for item in items {
        match *item {
            ContextItem::Run(run) if run.seq_first <= fork => {
                let left = read_run(session, history, run.seq_first, fork)?;
                push_item(&mut out, ContextItem::Run(left));
                push_item(&mut out, withdrawn_item(fork + 1, run.seq_last));
            }
            ContextItem::Run(_) | ContextItem::Withdrawn { .. } => {
                push_item(&mut out, withdrawn_item(item.seq_first(), item.seq_last()));
            }
            ContextItem::Summary(_) => {
                return Err(Error::invalid_input(format_args!(
                    "`line.fork` must not lie before the last summary, which ends with message \
                     {}, got {fork}",
                    item.seq_last()
                )));
            }
        }
    }
    Ok(out)
}

/// Returns the items with `run` in place of the part of a withdrawn item that has the same
/// messages. The rest of that item stays withdrawn.
fn restore_items(items: &[ContextItem], run: MessageRun) -> Vec<ContextItem> {
    let mut out = Vec::new();
    for item in items {
        let (first, last) = (item.seq_first(), item.seq_last());
        if last < run.seq_first || first > run.seq_last {
            push_item(&mut out, *item);
            continue;
        }
        if first < run.seq_first {
            push_item(&mut out, withdrawn_item(first, run.seq_first - 1));
        }
        push_item(&mut out, ContextItem::Run(run));
        if last > run.seq_last {
            push_item(&mut out, withdrawn_item(run.seq_last + 1, last));
        }
    }
    out
}

/// Reads the tokens of consecutive messages.
fn read_run(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq_first: u64,
    seq_last: u64,
) -> Result<MessageRun> {
    let seqs: &[u64] = if seq_first == seq_last { &[seq_first] } else { &[seq_first, seq_last] };
    let placed = history.read_messages_at(session, seqs)?;
    let before = placed.first().map_or(0, |placed| placed.tokens_before);
    let end =
        placed.last().map_or(0, |placed| placed.tokens_before + u64::from(placed.stored.tokens));
    Ok(MessageRun {
        seq_first,
        seq_last,
        tokens_before: before,
        tokens: end.saturating_sub(before),
    })
}

/// Finds the newest user message of the line.
fn find_newest_user(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    withdrawals: &Withdrawals,
) -> Result<Option<UserMessageRef>> {
    let head = history.head;
    if let Some(user) = head.newest_user
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
