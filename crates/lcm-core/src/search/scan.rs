//! Regular expressions over stored texts.
//!
//! In: an expression and the texts of one conversation. Out: every message or summary with a match
//! in one of its texts. Only units that hold the grams of the expression are read, in passing and
//! without copying what is not escaped, the newest first and not more than the expression may cost.
//! Not here: order, limit and snippets.

use alloc::{string::String, vec::Vec};

use super::{Corpus, Index, each_field, messages_of_unit, regex::Regex, window::Window};
use crate::{
    api::Timestamp, codec, error::Result, history::History, order, reader::Reader, summary::Summary,
};

/// Summaries that are looked through at a time.
const SUMMARIES_PER_STEP: usize = 16;
/// Messages that are looked through at first, and at most; twice as many each time, so that long
/// scans take few reads and short ones read little in vain.
const MESSAGES_PER_STEP: u64 = 256;
const MESSAGES_PER_STEP_MAX: u64 = 2_048;

/// A document with a match, and its time.
pub(crate) type Match = (u64, Timestamp);

/// What a scan found.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// The newest first in steps.
    pub(crate) found: Vec<Match>,
    /// The time before which not everything was looked through; `None`: everything was.
    pub(crate) unscanned_before: Option<Timestamp>,
    /// The expression costs too much for the newest documents already.
    pub(crate) is_refused: bool,
}

/// The messages or summaries of a conversation that an expression matches in.
///
/// # Errors
///
/// As [`Reader::immutable`] and [`Index::postings`].
pub(crate) fn scan(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    index: &mut Index,
    corpus: Corpus,
    regex: &mut Regex,
    window: &Window,
) -> Result<Scanned> {
    if corpus == Corpus::Summaries {
        // There are no grams of them: a history has one for hundreds of messages.
        let ordinals: Vec<u64> = (1..=index.documents(corpus)).collect();
        return summaries(reader, history, index, &ordinals, regex, window);
    }
    let query = regex.grams();
    let grams = query.grams();
    let units = if query.is_everything() {
        None
    } else {
        let units = index.units(reader, corpus, &grams)?;
        let of_gram = |gram: [u8; 3]| {
            let place = grams.binary_search(&gram).ok();
            place.and_then(|place| units.get(place)).map_or(&[][..], Vec::as_slice)
        };
        query.units(&of_gram)
    };
    let ranges = ranges(history, index, units.as_deref());
    let ranges = within(reader, index, ranges, window)?;
    messages(reader, history, ranges, regex, window)
}

/// The ranges of messages that may match: those of the units, and what is in no unit yet.
fn ranges(history: &History<'_>, index: &Index, units: Option<&[u64]>) -> Vec<(u64, u64)> {
    let Some(units) = units else { return alloc::vec![(1, history.head.messages)] };
    let mut ranges: Vec<(u64, u64)> = units.iter().map(|unit| messages_of_unit(*unit)).collect();
    ranges.extend(index.direct());
    joined(ranges)
}

/// Ascending ranges, those that touch or overlap joined.
fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    order::sort(&mut ranges);
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges.into_iter().filter(|(from, to)| from <= to) {
        match out.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

/// What of the ranges lies in a window of time. Messages in no segment are kept: their own time
/// decides when they are read.
fn within(
    reader: &mut Reader<'_>,
    index: &mut Index,
    ranges: Vec<(u64, u64)>,
    window: &Window,
) -> Result<Vec<(u64, u64)>> {
    if window.is_everything() {
        return Ok(ranges);
    }
    let direct = index.direct();
    let is_direct = |seq: u64| direct.iter().any(|(from, to)| (*from..=*to).contains(&seq));
    let last = direct.last().map_or(u64::MAX, |(_, to)| *to).max(index.documents(Corpus::Messages));
    let seqs: Vec<u64> = ranges
        .iter()
        .flat_map(|(from, to)| *from..=(*to).min(last))
        .filter(|seq| !is_direct(*seq))
        .collect();
    let times = index.times(reader, Corpus::Messages, &seqs)?;
    let inside = seqs.iter().zip(times).filter(|(_, time)| window.holds(*time));
    let mut out: Vec<(u64, u64)> = inside.map(|(seq, _)| (*seq, *seq)).collect();
    out.extend(direct);
    Ok(joined(out))
}

fn messages(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    mut ranges: Vec<(u64, u64)>,
    regex: &mut Regex,
    window: &Window,
) -> Result<Scanned> {
    let mut scanned = Scanned::default();
    let mut count = MESSAGES_PER_STEP;
    while let Some(newest) = take_last(&mut ranges, count) {
        let (mut found, mut times) = (Vec::new(), None);
        history.each_of(reader, &newest, &mut |_, message| {
            times = with(times, message.time);
            if !regex.is_refused()
                && window.holds(message.time)
                && matches_in(regex, message.text, message.parts)
            {
                found.push((message.seq, message.time));
            }
            Ok(())
        })?;
        if !scanned.goes_on(regex, found, times, ranges.is_empty()) {
            break;
        }
        count = MESSAGES_PER_STEP_MAX.min(2 * count);
    }
    Ok(scanned)
}

/// Takes so many messages from the end of ranges.
fn take_last(ranges: &mut Vec<(u64, u64)>, count: u64) -> Option<Vec<(u64, u64)>> {
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

impl Scanned {
    /// Takes what one step found, whose documents begin and end at these times; `false`: it was the
    /// last of all or that the expression may take. Of a step that was not finished nothing counts.
    fn goes_on(
        &mut self,
        regex: &Regex,
        found: Vec<Match>,
        times: Option<(Timestamp, Timestamp)>,
        is_last: bool,
    ) -> bool {
        if regex.is_refused() {
            self.is_refused = self.unscanned_before.is_none();
            let last = times.map(|(_, last)| last.saturating_add(1));
            self.unscanned_before = self.unscanned_before.or(last);
            return false;
        }
        self.found.extend(found);
        // What is of the same time may stand before it.
        let first = times.map(|(first, _)| first.saturating_add(1));
        self.unscanned_before = if is_last { None } else { first.or(self.unscanned_before) };
        !is_last && !regex.is_spent()
    }
}

/// The times of the first and the last document, with another one behind them.
fn with(times: Option<(Timestamp, Timestamp)>, time: Timestamp) -> Option<(Timestamp, Timestamp)> {
    Some((times.map_or(time, |(first, _)| first), time))
}

/// Whether an expression matches in one of the texts of a message.
fn matches_in(regex: &mut Regex, raw: &str, parts: &[crate::message::Part]) -> bool {
    let mut found = false;
    each_field(raw, parts, &mut |_, text| found = found || regex.is_match(&text));
    found
}

fn summaries(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    index: &mut Index,
    ordinals: &[u64],
    regex: &mut Regex,
    window: &Window,
) -> Result<Scanned> {
    let mut scanned = Scanned::default();
    let mut steps = ordinals.rchunks(SUMMARIES_PER_STEP).peekable();
    while let Some(ordinals) = steps.next() {
        let (mut found, mut times) = (Vec::new(), None);
        let places = index.summaries(reader, ordinals)?;
        let wanted: Vec<(String, u32)> =
            places.iter().map(|(id, bytes)| (history.keys.summary(*id), *bytes)).collect();
        for ((ordinal, (key, _)), value) in
            ordinals.iter().zip(&wanted).zip(reader.passing(&wanted)?)
        {
            let summary: Summary = codec::decode(key, &value)?;
            times = with(times, summary.latest_at);
            if !regex.is_refused()
                && window.holds(summary.latest_at)
                && regex.is_match(&summary.text)
            {
                found.push((*ordinal, summary.latest_at));
            }
        }
        if !scanned.goes_on(regex, found, times, steps.peek().is_none()) {
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
        assert_eq!(take_last(&mut ranges, 1), Some(alloc::vec![(9, 9)]));
        assert_eq!(take_last(&mut ranges, 3), Some(alloc::vec![(4, 4), (6, 6), (8, 8)]));
        assert_eq!(take_last(&mut ranges, 9), Some(alloc::vec![(1, 3)]));
        assert_eq!(take_last(&mut ranges, 9), None);
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(
            joined(alloc::vec![(65, 128), (1, 64), (130, 130), (129, 128)]),
            [(1, 128), (130, 130)]
        );
        assert_eq!(joined(Vec::new()), []);
    }
}
