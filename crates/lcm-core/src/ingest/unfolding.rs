//! Unfolding: summaries give way to their sources where the line changes within them.
//!
//! In: context items, and where the line changes. Out: items of which no summary has messages on
//! both sides of the fork or messages that come back, the summaries that gave way, and how the
//! saved tokens change. The records of the summaries stay.
//!
//! Each round replaces the summaries in question by their sources: a leaf by its messages. A round
//! reads at most three batches of records, and there are at most as many rounds as the deepest
//! summary has levels.

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    changes::Changes,
    context::{ContextItem, MessageRun, SummaryItem},
    head::ConversationHead,
    history::MessageHistory,
    newest_sources::{self, NewestSource},
    records::remakes::{ContextExit, RemakeRecord},
    store_session::StoreSession,
    summary::{self, SourceRef, Summary, SummarySources},
    summary_items::build_summary_item,
    summary_records,
};
use lcm_text::base::error::{Error, Result};

use super::line_change::{LineChange, push_item, withdrawn_item};

/// Most summaries that give way to one change of the line.
const UNFOLDED_MAX: usize = 1_024;

/// Items after an unfolding, and what else changes with them.
#[derive(Debug, Default)]
pub(super) struct UnfoldedItems {
    pub(super) items: Vec<ContextItem>,
    /// Ids of the summaries that gave way.
    gave_way: Vec<[u8; 8]>,
    /// Ids of the summaries of which the fork sets aside all messages.
    withdrawn: Vec<[u8; 8]>,
    /// The record of remakes before the change; `None`: no summary leaves the context.
    remakes: Option<RemakeRecord>,
    /// Tokens of the messages of the summaries that leave the context, and of their texts.
    removed: (u64, u64),
    /// The same of the summaries that come into the context.
    added: (u64, u64),
}

impl UnfoldedItems {
    /// Writes what changes with the items. The context of the head is the new one.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: a record is too large.
    pub(super) fn write_changes(
        self,
        call: Call<'_>,
        head: &mut ConversationHead,
        changes: &mut Changes,
    ) -> Result<()> {
        let left = head.raw_tokens.saturating_sub(head.context.tokens);
        // A bridge has more tokens than its message, so the difference may be below zero.
        let saved = head.ledger.saved_tokens + self.added.0 + self.removed.1;
        head.ledger.saved_tokens = saved.saturating_sub(self.removed.0 + self.added.1).min(left);
        head.ledger.withdrawn_tokens = left - head.ledger.saved_tokens;
        if let Some(mut remakes) = self.remakes {
            remakes.add_exits(ContextExit::GaveWay, &self.gave_way);
            remakes.add_exits(ContextExit::Withdrawn, &self.withdrawn);
            head.remakes = remakes.count_entries();
            changes.write_record(&RemakeRecord::key(call.keys), &remakes)?;
        }
        Ok(())
    }

    fn read_remakes(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
    ) -> Result<&RemakeRecord> {
        let remakes = match self.remakes.take() {
            Some(remakes) => remakes,
            None => RemakeRecord::read(session, history.keys, history.head)?,
        };
        Ok(self.remakes.insert(remakes))
    }
}

/// Adds the tokens of the messages of a summary and of its text.
fn add_tokens(sum: &mut (u64, u64), record: &Summary) {
    *sum = (sum.0 + record.message_tokens, sum.1 + u64::from(record.tokens));
}

/// Replaces the summaries within which the line changes by their sources, until there is none.
/// Notes the summaries of which all messages are after the fork.
///
/// # Errors
///
/// `limit-exceeded`: too many summaries give way; `conflict`: a record is missing, and the head
/// has changed; `corrupt`: a record is missing under an unchanged head, or sources do not lie
/// in their summary; errors of the store.
pub(super) fn unfold_items(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    change: &LineChange,
) -> Result<UnfoldedItems> {
    let mut unfolded = UnfoldedItems { items: items.to_vec(), ..UnfoldedItems::default() };
    loop {
        let divided = select_summaries(&unfolded.items, |item| is_divided(item, change));
        if divided.is_empty() {
            break;
        }
        let count = unfolded.gave_way.len() + divided.len();
        if count > UNFOLDED_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "at most {UNFOLDED_MAX} summaries can give way to their sources in one call, got \
                 {count}; change the list at a later message, or rewind to a later one"
            )));
        }
        unfold_round(session, history, &divided, &mut unfolded)?;
    }
    let left = select_summaries(&unfolded.items, |item| item.seq_first > change.fork);
    for record in read_records(session, history, &left)? {
        add_tokens(&mut unfolded.removed, &record);
    }
    if !left.is_empty() {
        unfolded.withdrawn = left.iter().map(|item| item.id).collect();
        unfolded.read_remakes(session, history)?;
    }
    Ok(unfolded)
}

/// Returns whether a summary has messages on both sides of the fork, or that come back.
fn is_divided(item: &SummaryItem, change: &LineChange) -> bool {
    let LineChange { fork, restored, .. } = change;
    let comes_back =
        |(first, last): &(u64, u64)| *first <= item.seq_last && item.seq_first <= *last;
    (item.seq_first <= *fork && *fork < item.seq_last) || restored.iter().any(comes_back)
}

/// Replaces summaries by their sources.
fn unfold_round(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    divided: &[SummaryItem],
    unfolded: &mut UnfoldedItems,
) -> Result<()> {
    let records = read_records(session, history, divided)?;
    let refs: Vec<SourceRef> =
        records.iter().flat_map(|record| record.source_refs().iter().copied()).collect();
    let remakes = unfolded.read_remakes(session, history)?;
    let newest = newest_sources::read_newest(session, history.keys, remakes, &refs)?;
    let leaves = records.iter().filter_map(list_leaf_ranges);
    let ranges: Vec<(u64, u64)> = leaves.flatten().collect();
    let (mut runs, mut newest) =
        (read_runs(session, history, &ranges)?.into_iter(), newest.into_iter());
    let mut next = Vec::with_capacity(unfolded.items.len());
    let mut records = divided.iter().zip(&records).peekable();
    for item in core::mem::take(&mut unfolded.items) {
        let Some((summary, record)) = records.next_if(
            |(summary, _)| matches!(item, ContextItem::Summary(other) if other.id == summary.id),
        ) else {
            push_item(&mut next, item);
            continue;
        };
        unfolded.gave_way.push(summary.id);
        add_tokens(&mut unfolded.removed, record);
        let mut parts: Vec<ContextItem> = Vec::new();
        match list_leaf_ranges(record) {
            Some(ranges) => parts.extend(runs.by_ref().take(ranges.len()).map(ContextItem::Run)),
            None => {
                let count = record.source_refs().len();
                for NewestSource { source, record, .. } in newest.by_ref().take(count) {
                    add_tokens(&mut unfolded.added, &record);
                    parts.push(ContextItem::Summary(build_summary_item(source, &record)));
                }
            }
        }
        push_parts(&mut next, summary, &parts)?;
    }
    unfolded.items = next;
    Ok(())
}

/// Returns the messages of a leaf, as ranges; `None`: a condensed summary.
fn list_leaf_ranges(record: &Summary) -> Option<Vec<(u64, u64)>> {
    match &record.sources {
        SummarySources::Messages { span, .. } => Some(span.list_ranges()),
        SummarySources::Summaries(_) => None,
    }
}

/// Selects the summaries among items for which a condition holds.
fn select_summaries(
    items: &[ContextItem],
    is_wanted: impl Fn(&SummaryItem) -> bool,
) -> Vec<SummaryItem> {
    let summaries = items.iter().filter_map(|item| match item {
        ContextItem::Summary(summary) => Some(*summary),
        ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
    });
    summaries.filter(|summary| is_wanted(summary)).collect()
}

fn read_records(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[SummaryItem],
) -> Result<Vec<Summary>> {
    let refs: Vec<SourceRef> =
        items.iter().map(|item| SourceRef { id: item.id, bytes: item.bytes }).collect();
    summary_records::read_referenced_summaries(session, history.keys, &refs)
}

/// Appends the parts of a summary, with withdrawn messages before, between and after them.
fn push_parts(
    items: &mut Vec<ContextItem>,
    summary: &SummaryItem,
    parts: &[ContextItem],
) -> Result<()> {
    let mut next = summary.seq_first;
    for part in parts {
        let (first, last) = (part.seq_first(), part.seq_last());
        if first < next || last < first || last > summary.seq_last {
            return Err(Error::corrupt_store(format_args!(
                "a source of `{}` must be within messages {} to {} in order, got {first} to {last}",
                summary::format_summary_id(summary.id),
                summary.seq_first,
                summary.seq_last
            )));
        }
        if first > next {
            push_item(items, withdrawn_item(next, first - 1));
        }
        push_item(items, *part);
        next = last + 1;
    }
    if next <= summary.seq_last {
        push_item(items, withdrawn_item(next, summary.seq_last));
    }
    Ok(())
}

/// Reads the tokens of ascending ranges of messages that share no message, each a run.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn read_runs(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    ranges: &[(u64, u64)],
) -> Result<Vec<MessageRun>> {
    let ends =
        ranges.iter().flat_map(|(first, last)| [Some(*first), (first < last).then_some(*last)]);
    let seqs: Vec<u64> = ends.flatten().collect();
    let mut placed = history.read_messages_at(session, &seqs)?.into_iter();
    let runs = ranges.iter().filter_map(|(seq_first, seq_last)| {
        let first = placed.next()?;
        let last = if seq_first < seq_last { placed.next()? } else { first.clone() };
        Some(MessageRun {
            seq_first: *seq_first,
            seq_last: *seq_last,
            tokens_before: first.tokens_before,
            tokens: (last.tokens_before + u64::from(last.stored.tokens))
                .saturating_sub(first.tokens_before),
        })
    });
    Ok(runs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::base::error::ErrorCode;

    /// A run with one token for each message.
    fn run(seq_first: u64, seq_last: u64) -> ContextItem {
        let tokens = seq_last + 1 - seq_first;
        ContextItem::Run(MessageRun { seq_first, seq_last, tokens_before: 0, tokens })
    }

    #[test]
    fn parts_keep_the_withdrawn_messages_between_them() {
        let summary = SummaryItem {
            id: [7; 8],
            depth: 1,
            tokens: 1,
            rendered_tokens: 1,
            bytes: 1,
            seq_first: 3,
            seq_last: 12,
            is_provisional: false,
        };
        let mut items = Vec::from([run(1, 2)]);
        push_parts(&mut items, &summary, &[run(3, 4), run(8, 9)]).unwrap();
        let expected = [run(1, 4), withdrawn_item(5, 7), run(8, 9), withdrawn_item(10, 12)];
        assert_eq!(items, expected);
        for parts in [[run(3, 5), run(5, 6)], [run(2, 3), run(4, 5)], [run(3, 4), run(9, 13)]] {
            let error = push_parts(&mut Vec::new(), &summary, &parts).unwrap_err();
            assert_eq!(error.code, ErrorCode::Corrupt);
            assert!(
                error.message.contains("must be within messages 3 to 12 in order"),
                "{error:?}"
            );
        }
    }
}
