//! The fresh tail: the newest messages, which stay raw. Used alike by compaction and assembly.
//!
//! Messages count in units: a call and its results are one unit and never parted; nor are the items
//! that a model put out one after another in `openai-responses`, from the first that says no text
//! (reasoning, a call) on, because the provider refuses reasoning without the item it led to. The
//! newest unit always belongs to the tail; more join while count and tokens allow, and then back to
//! the newest user message while tokens allow. When they do not, that message alone is pinned: it
//! stays raw though messages after it may be compacted.

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

/// Consecutive messages that are never parted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MessageUnit {
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) tokens: u64,
}

impl MessageUnit {
    /// Number of its messages.
    pub(crate) fn count(&self) -> u64 {
        self.seq_last + 1 - self.seq_first
    }
}

/// A message that is kept raw by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PinnedMessage {
    pub(crate) seq: u64,
    pub(crate) tokens: u64,
}

/// What stays raw.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FreshTail {
    /// First message of the tail; behind the newest one when the tail is empty.
    pub(crate) seq_first: u64,
    pub(crate) tokens: u64,
    pub(crate) pinned: Option<PinnedMessage>,
}

fn has_tool_call(stored: &StoredMessage) -> bool {
    stored.role == Role::Assistant
        && stored.parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
}

/// Whether it belongs to the calls before it. An assistant's own results answer its own calls.
fn is_result(stored: &StoredMessage) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    stored.role == Role::Tool
        || (stored.role != Role::Assistant && stored.parts.iter().any(is_result))
}

/// What the unit that is open takes next.
#[derive(Clone, Copy, Debug, Default)]
struct UnitContinuation {
    takes_results: bool,
    takes_items: bool,
}

/// Whether it is what a model put out, of which a response has several.
fn is_response_item(dialect: Dialect, stored: &StoredMessage) -> bool {
    dialect == Dialect::OpenaiResponses && stored.role == Role::Assistant
}

/// Groups messages into units, one at a time.
#[derive(Debug, Default)]
pub(crate) struct UnitGrouper {
    open: Option<(MessageUnit, UnitContinuation)>,
}

impl UnitGrouper {
    /// Takes the next message; returns the unit that it closed.
    pub(crate) fn push(&mut self, placed: &PlacedMessage) -> Option<MessageUnit> {
        let (seq, stored) = (placed.seq, &*placed.stored);
        let tokens = u64::from(stored.tokens);
        let is_item = is_response_item(placed.dialect, stored);
        if let Some((unit, takes)) = &mut self.open
            && ((takes.takes_results && is_result(stored)) || (takes.takes_items && is_item))
        {
            takes.takes_results |= has_tool_call(stored);
            // What comes after a result is another response.
            takes.takes_items &= is_item;
            unit.seq_last = seq;
            unit.tokens += tokens;
            return None;
        }
        let unit = MessageUnit { seq_first: seq, seq_last: seq, tokens };
        let is_silent = !stored.parts.iter().any(|part| matches!(part, Part::Text { .. }));
        let takes = UnitContinuation {
            takes_results: has_tool_call(stored),
            takes_items: is_item && is_silent,
        };
        self.open.replace((unit, takes)).map(|(unit, _)| unit)
    }

    /// The unit that is still open.
    pub(crate) fn finish(self) -> Option<MessageUnit> {
        self.open.map(|(unit, _)| unit)
    }
}

/// The units of consecutive messages.
pub(crate) fn group_units(messages: &[PlacedMessage]) -> Vec<MessageUnit> {
    let mut grouping = UnitGrouper::default();
    let mut out: Vec<MessageUnit> =
        messages.iter().filter_map(|placed| grouping.push(placed)).collect();
    out.extend(grouping.finish());
    out
}

/// The newest run of raw messages, when the context ends with one.
pub(crate) fn last_raw_run(items: &[ContextItem]) -> Option<MessageRun> {
    match items.last() {
        Some(ContextItem::Run(run)) => Some(*run),
        _ => None,
    }
}

/// Packs at the end of the last run in which the tail must lie, oldest first.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn find_tail_packs(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    policy: &BudgetPolicy,
) -> Result<Vec<PackRef>> {
    let tokens_max = policy.fresh_tail_tokens_max.map_or(u64::MAX, u64::from);
    let user = history.head.newest_user.map_or(u64::MAX, |mark| mark.seq);
    let mut taken: Vec<PackRef> = Vec::new();
    let (mut count, mut tokens) = (0u64, 0u64);
    let mut to = run.seq_last;
    loop {
        // One directory node at a time, from the end.
        let from = run.seq_first.max(history::directory_node(to) * limits::DIRECTORY_SPAN + 1);
        for pack in history.find_pack_refs(reader, from, to)?.into_iter().rev() {
            let reached_user = pack.seq_last() < user || user < run.seq_first;
            let enough = count >= u64::from(policy.fresh_tail_messages_max) && reached_user;
            if !taken.is_empty() && (enough || tokens > tokens_max) {
                taken.reverse();
                return Ok(taken);
            }
            count += u64::from(pack.count);
            tokens += pack.tokens;
            taken.push(pack);
        }
        if from == run.seq_first {
            taken.reverse();
            return Ok(taken);
        }
        to = from - 1;
    }
}

/// Computes the fresh tail of a context for one budget.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn compute_fresh_tail(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    policy: &BudgetPolicy,
) -> Result<FreshTail> {
    let behind = history.head.messages + 1;
    let empty = FreshTail { seq_first: behind, tokens: 0, pinned: None };
    if policy.fresh_tail_messages_max == 0 {
        return Ok(empty);
    }
    let Some(run) = last_raw_run(items) else {
        return Ok(FreshTail {
            pinned: find_pinned(history, items, &empty, policy.budget),
            ..empty
        });
    };
    let refs = find_tail_packs(reader, history, &run, policy)?;
    let messages = read_whole_units(reader, history, &run, refs, run.seq_last)?;
    let tail = select_tail(&group_units(&messages), history, &run, policy);
    Ok(FreshTail { pinned: find_pinned(history, items, &tail, policy.budget), ..tail })
}

/// The messages of a run in these packs and up to `to`, with as many older ones as it takes not to
/// begin in the middle of a unit.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(crate) fn read_whole_units(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    mut refs: Vec<PackRef>,
    to: u64,
) -> Result<Vec<PlacedMessage>> {
    let wanted = refs.first().map_or(to, |pack| pack.seq_first);
    loop {
        let from = refs.first().map_or(to, |pack| pack.seq_first).max(run.seq_first);
        let mut messages = history.read_messages_of_packs(reader, &refs, from, to)?;
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
        let mut longer = history.find_pack_refs(reader, from - 1, from - 1)?;
        longer.append(&mut refs);
        refs = longer;
    }
}

/// Where, at this seq or before it, an item begins a unit whatever came before these messages:
/// behind something that is no item.
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

/// Takes units from the newest on, by the rule of the module.
fn select_tail(
    units: &[MessageUnit],
    history: &MessageHistory<'_>,
    run: &MessageRun,
    policy: &BudgetPolicy,
) -> FreshTail {
    let tokens_max = policy.fresh_tail_tokens_max.map_or(u64::MAX, u64::from);
    let messages_max = u64::from(policy.fresh_tail_messages_max);
    let user = history.head.newest_user.map(|mark| mark.seq).filter(|seq| *seq >= run.seq_first);
    let mut tail = FreshTail { seq_first: history.head.messages + 1, tokens: 0, pinned: None };
    let mut count = 0u64;
    for unit in units.iter().rev() {
        let by_count = count + unit.count() <= messages_max;
        let by_user = user.is_some_and(|seq| seq < tail.seq_first);
        let fits = tail.tokens + unit.tokens <= tokens_max;
        if count > 0 && !(fits && (by_count || by_user)) {
            break;
        }
        count += unit.count();
        tail.tokens += unit.tokens;
        tail.seq_first = unit.seq_first;
    }
    tail
}

/// The newest user message, when it is raw, outside the tail, and affordable together with it.
fn find_pinned(
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    tail: &FreshTail,
    budget: u32,
) -> Option<PinnedMessage> {
    let mark = history.head.newest_user?;
    let raw = items.iter().any(|item| match item {
        ContextItem::Run(run) => run.seq_first <= mark.seq && mark.seq <= run.seq_last,
        ContextItem::Summary(_) | ContextItem::Withdrawn { .. } => false,
    });
    let tokens = u64::from(mark.tokens);
    let affordable = tail.tokens + tokens <= u64::from(budget / 2);
    (raw && mark.seq < tail.seq_first && affordable)
        .then_some(PinnedMessage { seq: mark.seq, tokens })
}
