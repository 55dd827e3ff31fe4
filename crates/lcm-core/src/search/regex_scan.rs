//! Scan of stored texts with a regular expression.
//!
//! Input: an expression, and one corpus of one conversation. Output: the documents with a match,
//! from the last to the first, until the step budget is spent. Of messages, only units with the
//! grams of the expression and messages outside the index are read. Summaries are all read.
//! Elsewhere: limit of hits, and snippets (`grep`).

use alloc::{string::String, vec::Vec};

use super::{
    corpus::Corpus, fields::each_field, grams::messages_of_unit, index_reader::SearchIndex,
    regex::Regex, time_window::TimeWindow,
};
use crate::storage::{
    codec, history::MessageHistory, store_session::StoreSession, summary::Summary,
};
use lcm_text::{
    base::{error::Result, sort},
    types::api::Timestamp,
};

/// Most summaries that are scanned in one step.
const SUMMARIES_PER_STEP: usize = 16;
/// Most messages that are scanned in the first step. The number doubles with each step. A query
/// that exceeds the budget in its first step is refused.
const MESSAGES_PER_STEP: u64 = 64;
/// Most messages that are scanned in one step.
const MESSAGES_PER_STEP_MAX: u64 = 2_048;

/// Number and time of a document with a match.
pub(crate) type RegexMatch = (u64, Timestamp);

/// Result of a scan.
#[derive(Debug, Default)]
pub(crate) struct RegexScan {
    /// Matches, from the last document to the first.
    pub(crate) matches: Vec<RegexMatch>,
    /// Greatest document that was not scanned, at which the query can continue. `None`: the scan is
    /// complete.
    pub(crate) next_document: Option<u64>,
    /// Whether at least one step was completed.
    pub(crate) has_finished_step: bool,
}

/// Documents that a scan covers.
#[derive(Clone, Copy)]
pub(crate) struct ScanRange<'s> {
    pub(crate) corpus: Corpus,
    /// Last document of the range. The scan begins with this document and goes down.
    pub(crate) last: u64,
    /// Ranges of seqs that may match; `None`: all. For summaries the ranges do not apply.
    pub(crate) spans: Option<&'s [(u64, u64)]>,
    pub(crate) window: TimeWindow,
}

/// Scans the documents of a range, from the last to the first, until the step budget is spent.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: a record or the index is damaged;
/// `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn scan(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    index: &SearchIndex,
    range: &ScanRange<'_>,
    regex: &mut Regex,
) -> Result<RegexScan> {
    let ScanRange { corpus, last, spans, window } = *range;
    if corpus == Corpus::Summaries {
        return scan_summaries(session, history, index, range, regex);
    }
    let query = regex.build_gram_query();
    let grams = query.list_grams();
    let units = if query.is_match_all() {
        None
    } else {
        let units = index.read_units(session, corpus, &grams)?;
        let of_gram = |gram: [u8; 3]| {
            let place = grams.binary_search(&gram).ok();
            place.and_then(|place| units.get(place)).map_or(&[][..], Vec::as_slice)
        };
        query.select_units(&of_gram)
    };
    let ranges = find_candidate_ranges(history, index, units.as_deref());
    let mut ranges = intersect_ranges(&ranges, &[(1, last)]);
    if let Some(spans) = spans {
        ranges = intersect_ranges(&ranges, spans);
    }
    let ranges = filter_by_window(session, index, ranges, &window)?;
    scan_messages(session, history, ranges, regex, &window)
}

/// Returns the ranges of messages that may match: messages of `units` (`None`: all messages), and
/// messages that are searched without the index.
fn find_candidate_ranges(
    history: &MessageHistory<'_>,
    index: &SearchIndex,
    units: Option<&[u64]>,
) -> Vec<(u64, u64)> {
    let Some(units) = units else { return alloc::vec![(1, history.head.messages)] };
    let mut ranges: Vec<(u64, u64)> = units.iter().map(|unit| messages_of_unit(*unit)).collect();
    ranges.extend(index.unindexed_ranges());
    merge_ranges(ranges)
}

/// Sorts inclusive ranges, joins ranges that touch or overlap, and removes empty ranges.
fn merge_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    sort::sort(&mut ranges);
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges.into_iter().filter(|(from, to)| from <= to) {
        match out.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

/// Restricts ranges to messages within a window of time. Messages outside the index stay in the
/// ranges; the scan compares their times when it reads them.
fn filter_by_window(
    session: &mut StoreSession<'_>,
    index: &SearchIndex,
    ranges: Vec<(u64, u64)>,
    window: &TimeWindow,
) -> Result<Vec<(u64, u64)>> {
    if window.is_unbounded() {
        return Ok(ranges);
    }
    let unindexed = index.unindexed_ranges();
    let is_unindexed = |seq: u64| unindexed.iter().any(|(from, to)| (*from..=*to).contains(&seq));
    let last = unindexed
        .last()
        .map_or(u64::MAX, |(_, to)| *to)
        .max(index.count_documents(Corpus::Messages));
    let seqs: Vec<u64> = ranges
        .iter()
        .flat_map(|(from, to)| *from..=(*to).min(last))
        .filter(|seq| !is_unindexed(*seq))
        .collect();
    let times = index.read_times(session, Corpus::Messages, &seqs)?;
    let inside = seqs.iter().zip(times).filter(|(_, time)| window.contains(*time));
    let mut out: Vec<(u64, u64)> = inside.map(|(seq, _)| (*seq, *seq)).collect();
    out.extend(intersect_ranges(&ranges, &unindexed));
    Ok(merge_ranges(out))
}

/// Returns the ranges of the numbers that are in both lists of inclusive ranges.
fn intersect_ranges(ranges: &[(u64, u64)], others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    for (from, to) in ranges {
        out.extend(others.iter().map(|(first, last)| ((*from).max(*first), (*to).min(*last))));
    }
    merge_ranges(out)
}

fn scan_messages(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    mut ranges: Vec<(u64, u64)>,
    regex: &mut Regex,
    window: &TimeWindow,
) -> Result<RegexScan> {
    let mut scanned = RegexScan::default();
    let mut count = MESSAGES_PER_STEP;
    while let Some(newest) = take_last_messages(&mut ranges, count) {
        let mut found = Vec::new();
        history.visit_messages(session, &newest, &mut |_, message| {
            if !regex.is_refused()
                && window.contains(message.time)
                && is_message_match(regex, message.text, message.parts)
            {
                found.push((message.seq, message.time));
            }
            Ok(())
        })?;
        let begin = newest.last().map_or(0, |(_, to)| *to);
        if !scanned.add_step(regex, found, begin, ranges.last().map(|(_, to)| *to)) {
            break;
        }
        count = MESSAGES_PER_STEP_MAX.min(2 * count);
    }
    Ok(scanned)
}

/// Removes the last messages, at most `count`, from ranges and returns their ranges, ascending.
/// `None`: no message is left.
fn take_last_messages(ranges: &mut Vec<(u64, u64)>, count: u64) -> Option<Vec<(u64, u64)>> {
    let mut left = count;
    let mut out = Vec::new();
    while left > 0 {
        let Some((from, to)) = ranges.pop() else { break };
        let begin = from.max((to + 1).saturating_sub(left));
        out.push((begin, to));
        left -= to + 1 - begin;
        if begin > from {
            ranges.push((from, begin - 1));
        }
    }
    out.reverse();
    (!out.is_empty()).then_some(out)
}

impl RegexScan {
    /// Adds the matches of one step, and returns whether the scan continues.
    ///
    /// `begin`: greatest document of the step. `next`: greatest document of the next step; `None`:
    /// this was the last step. Matches of a step that exceeded the budget are dropped.
    fn add_step(
        &mut self,
        regex: &Regex,
        found: Vec<RegexMatch>,
        begin: u64,
        next: Option<u64>,
    ) -> bool {
        if regex.is_refused() {
            self.next_document = Some(begin);
            return false;
        }
        self.has_finished_step = true;
        // `found` ascends, because a step reads its documents in ascending order.
        self.matches.extend(found.into_iter().rev());
        self.next_document = next;
        next.is_some() && !regex.is_budget_spent()
    }
}

/// Returns whether an expression matches in some text of a message.
fn is_message_match(regex: &mut Regex, raw: &str, parts: &[lcm_text::message::Part]) -> bool {
    let mut found = false;
    each_field(raw, parts, &mut |_, text| found = found || regex.is_match(&text));
    found
}

fn scan_summaries(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    index: &SearchIndex,
    range: &ScanRange<'_>,
    regex: &mut Regex,
) -> Result<RegexScan> {
    // Grams of summaries are not indexed, because a summary covers many messages.
    let last = range.last.min(index.count_documents(Corpus::Summaries));
    let ordinals: Vec<u64> = (1..=last).collect();
    let mut scanned = RegexScan::default();
    let mut steps = ordinals.rchunks(SUMMARIES_PER_STEP).peekable();
    while let Some(ordinals) = steps.next() {
        let mut found = Vec::new();
        let references = index.read_summaries(session, ordinals)?;
        let records: Vec<(String, u32)> =
            references.iter().map(|(id, bytes)| (history.keys.summary_key(*id), *bytes)).collect();
        for ((ordinal, (key, _)), value) in
            ordinals.iter().zip(&records).zip(session.read_immutable_uncached(&records)?)
        {
            let summary: Summary = codec::decode(key, &value)?;
            if !regex.is_refused()
                && range.window.contains(summary.latest_at)
                && regex.is_match(&summary.text)
            {
                found.push((*ordinal, summary.latest_at));
            }
        }
        let begin = ordinals.last().copied().unwrap_or(0);
        let next = steps.peek().and_then(|ordinals| ordinals.last()).copied();
        if !scanned.add_step(regex, found, begin, next) {
            break;
        }
    }
    Ok(scanned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_ranges_are_taken_first() {
        let mut ranges = alloc::vec![(1, 4), (6, 6), (8, 9)];
        assert_eq!(take_last_messages(&mut ranges, 1), Some(alloc::vec![(9, 9)]));
        assert_eq!(take_last_messages(&mut ranges, 3), Some(alloc::vec![(4, 4), (6, 6), (8, 8)]));
        assert_eq!(take_last_messages(&mut ranges, 9), Some(alloc::vec![(1, 3)]));
        assert_eq!(take_last_messages(&mut ranges, 9), None);
    }

    #[test]
    fn what_both_have_is_in_order() {
        let spans = [(90, 120), (1, 3), (2, 10)];
        assert_eq!(intersect_ranges(&[(3, 64), (100, 200)], &spans), [(3, 10), (100, 120)]);
        assert_eq!(intersect_ranges(&[(3, 64)], &[]), []);
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(
            merge_ranges(alloc::vec![(65, 128), (1, 64), (130, 130), (129, 128)]),
            [(1, 128), (130, 130)]
        );
        assert_eq!(merge_ranges(Vec::new()), []);
    }
}
