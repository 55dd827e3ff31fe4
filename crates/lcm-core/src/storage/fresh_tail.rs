//! The fresh tail: the newest messages, which stay raw. Compaction and assembly use the same rules.
//!
//! In: the items of a context and a budget policy. Out: the first message of the tail, and a pinned
//! message.
//!
//! The tail consists of units, which are never split. A tool call and its results are one unit. In
//! `openai-responses`, consecutive output items are one unit from the first item without text
//! (reasoning, a call) on. The provider refuses reasoning without the item that follows.
//!
//! The budget policy sets two limits of the tail: `fresh_tail_messages_max`, and
//! `fresh_tail_tokens_max` (absent: no limit of tokens). With a limit of 0 messages the tail is
//! empty and no message is pinned.
//!
//! The tail lies in the runs that end the context, behind the last summary. Withdrawn messages
//! between and after these runs end neither the tail nor a unit. Without such a run, the tail is
//! empty, but a message may be pinned. Otherwise the newest unit always belongs to the tail,
//! however large it is. The units before it join one by one. A unit joins if both limits hold with
//! this unit. A unit also joins against the limit of messages, as long as the newest user message
//! lies before the tail and in these runs. The first unit that may not join ends the tail.
//!
//! The newest user message is pinned if it is raw, lies before the tail, and fits half of the
//! budget together with the tail. A pinned message stays raw although later messages are compacted.

use crate::storage::pack::PlacedMessage;
use alloc::vec::Vec;

use crate::storage::{
    context::{ContextItem, MessageRun},
    history::{self, MessageHistory},
    pack::{PackRef, StoredMessage},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, limits},
    config::BudgetPolicy,
    message::{Part, Role},
    types::api::Dialect,
};

/// Consecutive messages that compaction and assembly keep together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MessageUnit {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) tokens: u64,
    /// Number of messages; withdrawn messages between them do not count.
    pub(crate) count: u64,
}

/// The newest user message, kept raw although it lies before the tail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PinnedMessage {
    pub(crate) seq: u64,
    pub(crate) tokens: u64,
}

/// The fresh tail, with the pinned message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FreshTail {
    /// Seq of the first message of the tail; if the tail is empty, the seq after the newest
    /// message.
    pub(crate) seq_first: u64,
    /// Number of messages in the tail, without withdrawn ones.
    pub(crate) count: u64,
    /// Tokens of the tail, without the pinned message.
    pub(crate) tokens: u64,
    /// The pinned message; `None`: no message is pinned.
    pub(crate) pinned: Option<PinnedMessage>,
}

fn has_tool_call(stored: &StoredMessage) -> bool {
    stored.role == Role::Assistant
        && stored.parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
}

/// Returns whether a message answers calls of earlier messages. Results in an assistant message do
/// not count, because they answer calls of the same message.
fn is_result(stored: &StoredMessage) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    stored.role == Role::Tool
        || (stored.role != Role::Assistant && stored.parts.iter().any(is_result))
}

/// What the open unit takes as its next message: a result, an output item, both or neither.
#[derive(Clone, Copy, Debug, Default)]
struct UnitContinuation {
    takes_results: bool,
    takes_items: bool,
}

/// Returns whether a message is an output item: an assistant's message of `openai-responses` or
/// `openai-agents`.
fn is_response_item(dialect: Dialect, stored: &StoredMessage) -> bool {
    dialect.has_items() && stored.role == Role::Assistant
}

/// Groups messages, added one at a time in order, into units.
#[derive(Debug, Default)]
pub(crate) struct UnitGrouper {
    open: Option<(MessageUnit, UnitContinuation)>,
}

impl UnitGrouper {
    /// Adds the next message. If the message begins another unit, returns the unit before the
    /// message. `None`: the message joins the open unit, or is the first message.
    pub(crate) fn push(&mut self, placed: &PlacedMessage) -> Option<MessageUnit> {
        let (seq, stored) = (placed.seq, &*placed.stored);
        let tokens = u64::from(stored.tokens);
        let is_item = is_response_item(placed.dialect, stored);
        if let Some((unit, takes)) = &mut self.open
            && ((takes.takes_results && is_result(stored)) || (takes.takes_items && is_item))
        {
            takes.takes_results |= has_tool_call(stored);
            // Output items after a result belong to another response.
            takes.takes_items &= is_item;
            unit.seq_last = seq;
            unit.tokens += tokens;
            unit.count += 1;
            return None;
        }
        let unit = MessageUnit { seq_first: seq, seq_last: seq, tokens, count: 1 };
        let is_silent = !stored.parts.iter().any(|part| matches!(part, Part::Text { .. }));
        let takes = UnitContinuation {
            takes_results: has_tool_call(stored),
            takes_items: is_item && is_silent,
        };
        self.open.replace((unit, takes)).map(|(unit, _)| unit)
    }

    /// Returns the last unit; `None`: there was no message.
    pub(crate) fn finish(self) -> Option<MessageUnit> {
        self.open.map(|(unit, _)| unit)
    }
}

/// Groups consecutive messages into units.
pub(crate) fn group_units(messages: &[PlacedMessage]) -> Vec<MessageUnit> {
    let mut grouper = UnitGrouper::default();
    let mut units: Vec<MessageUnit> =
        messages.iter().filter_map(|placed| grouper.push(placed)).collect();
    units.extend(grouper.finish());
    units
}

/// Returns the runs that end the context, behind the last summary, newest first.
pub(crate) fn last_raw_runs(items: &[ContextItem]) -> impl Iterator<Item = MessageRun> {
    let last = items.iter().rev();
    let last = last.take_while(|item| !matches!(item, ContextItem::Summary(_)));
    last.filter_map(|item| if let ContextItem::Run(run) = item { Some(*run) } else { None })
}

/// Finds the packs at the end of `run` that hold the tail, oldest first. The packs may also hold
/// older messages. The first unit may begin in an earlier pack, which [`read_whole_units`] also
/// reads.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn find_tail_packs(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    policy: &BudgetPolicy,
) -> Result<Vec<PackRef>> {
    let tokens_max = policy.fresh_tail_tokens_max.map_or(u64::MAX, u64::from);
    let user = history.head.newest_user.map_or(u64::MAX, |mark| mark.seq);
    let mut packs: Vec<PackRef> = Vec::new();
    let (mut count, mut tokens) = (0u64, 0u64);
    let mut to = run.seq_last;
    loop {
        // Reads one directory node at a time, from the end.
        let from = run.seq_first.max(history::directory_node(to) * limits::DIRECTORY_SPAN + 1);
        for pack in history.find_pack_refs(session, from, to)?.into_iter().rev() {
            let reached_user = pack.seq_last() < user || user < run.seq_first;
            let enough = count >= u64::from(policy.fresh_tail_messages_max) && reached_user;
            if !packs.is_empty() && (enough || tokens > tokens_max) {
                packs.reverse();
                return Ok(packs);
            }
            count += u64::from(pack.count);
            tokens += pack.tokens;
            packs.push(pack);
        }
        if from == run.seq_first {
            packs.reverse();
            return Ok(packs);
        }
        to = from - 1;
    }
}

/// Computes the fresh tail of a context for one budget.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn compute_fresh_tail(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    policy: &BudgetPolicy,
) -> Result<FreshTail> {
    let seq_end = history.head.messages + 1;
    let empty = FreshTail { seq_first: seq_end, count: 0, tokens: 0, pinned: None };
    if policy.fresh_tail_messages_max == 0 {
        return Ok(empty);
    }
    let (mut tail, mut messages) = (empty, Vec::new());
    let oldest = last_raw_runs(items).last().map_or(seq_end, |run| run.seq_first);
    for run in last_raw_runs(items) {
        let refs = find_tail_packs(session, history, &run, policy)?;
        let mut older = read_whole_units(session, history, &run, refs, run.seq_last)?;
        older.append(&mut messages);
        messages = older;
        tail = select_tail(&messages, history, oldest, policy);
        let first = messages.first().map_or(seq_end, |placed| placed.seq);
        // If the tail contains all messages of this run, the tail may continue in the run before.
        if first > run.seq_first || tail.seq_first > first {
            break;
        }
    }
    Ok(FreshTail { pinned: find_pinned(history, items, &tail, policy.budget), ..tail })
}

/// Reads the messages of `run` in the packs `refs` up to seq `to`; none if `refs` is empty. If the
/// first message may be inside a unit, reads older messages too: back to the start of a unit, or to
/// the start of the run.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(crate) fn read_whole_units(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    mut refs: Vec<PackRef>,
    to: u64,
) -> Result<Vec<PlacedMessage>> {
    let wanted = refs.first().map_or(to, |pack| pack.seq_first);
    loop {
        let from = refs.first().map_or(to, |pack| pack.seq_first).max(run.seq_first);
        let mut messages = history.read_messages_of_packs(session, &refs, from, to)?;
        let is_inner = |placed: &PlacedMessage| {
            is_result(&placed.stored) || is_response_item(placed.dialect, &placed.stored)
        };
        if from == run.seq_first || !messages.first().is_some_and(is_inner) {
            return Ok(messages);
        }
        if let Some(begin) = find_unit_start(&messages, wanted) {
            messages.drain(..begin);
            return Ok(messages);
        }
        let mut longer = history.find_pack_refs(session, from - 1, from - 1)?;
        longer.append(&mut refs);
        refs = longer;
    }
}

/// Returns the index of the last output item, with a seq of at most `wanted`, that follows a
/// message other than an output item. Such an item begins a unit, whatever precedes `messages`.
/// `None`: there is no such item.
fn find_unit_start(messages: &[PlacedMessage], wanted: u64) -> Option<usize> {
    let before = messages.iter().skip(1).take_while(|placed| placed.seq <= wanted);
    let mut found = None;
    for (at, (last, next)) in messages.iter().zip(before).enumerate() {
        if is_response_item(next.dialect, &next.stored)
            && !is_response_item(last.dialect, &last.stored)
        {
            found = Some(at + 1);
        }
    }
    found
}

/// Selects the units of the tail, from the newest on, by the rules of this module. `oldest`: seq of
/// the first message of the runs in which the tail lies.
fn select_tail(
    messages: &[PlacedMessage],
    history: &MessageHistory<'_>,
    oldest: u64,
    policy: &BudgetPolicy,
) -> FreshTail {
    let tokens_max = policy.fresh_tail_tokens_max.map_or(u64::MAX, u64::from);
    let messages_max = u64::from(policy.fresh_tail_messages_max);
    let user = history.head.newest_user.map(|mark| mark.seq).filter(|seq| *seq >= oldest);
    let seq_end = history.head.messages + 1;
    let mut tail = FreshTail { seq_first: seq_end, count: 0, tokens: 0, pinned: None };
    for unit in group_units(messages).iter().rev() {
        let by_count = tail.count + unit.count <= messages_max;
        let by_user = user.is_some_and(|seq| seq < tail.seq_first);
        let fits = tail.tokens + unit.tokens <= tokens_max;
        if tail.count > 0 && !(fits && (by_count || by_user)) {
            break;
        }
        tail.count += unit.count;
        tail.tokens += unit.tokens;
        tail.seq_first = unit.seq_first;
    }
    tail
}

/// Returns the newest user message if it is raw, lies before the tail, and fits half of the budget
/// together with the tail. `None`: one of these conditions fails, or there is no user message.
fn find_pinned(
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    tail: &FreshTail,
    budget: u32,
) -> Option<PinnedMessage> {
    let newest_user = history.head.newest_user?;
    let is_raw = items.iter().any(|item| match item {
        ContextItem::Run(run) => (run.seq_first..=run.seq_last).contains(&newest_user.seq),
        ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => false,
    });
    let tokens = u64::from(newest_user.tokens);
    let is_affordable = tail.tokens + tokens <= u64::from(budget / 2);
    (is_raw && newest_user.seq < tail.seq_first && is_affordable)
        .then_some(PinnedMessage { seq: newest_user.seq, tokens })
}
