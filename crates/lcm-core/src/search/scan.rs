//! Regular expressions over stored texts.
//!
//! In: an expression and the texts of one conversation. Out: every message or summary with a match
//! in one of its texts. Only units that hold the grams of the expression are read, in passing and
//! without copying what is not escaped. Not here: order, limit and snippets.

use alloc::{string::String, vec::Vec};

use super::{Corpus, Index, each_field, messages_of_unit, regex::Regex, window::Window};
use crate::{
    api::Timestamp, codec, error::Result, history::History, order, reader::Reader, summary::Summary,
};

/// Summaries that are read at a time.
const SUMMARIES_PER_READ: usize = 256;

/// A document with a match, and its time.
pub(crate) type Match = (u64, Timestamp);

/// The messages or summaries of a conversation that an expression matches in, ascending.
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
) -> Result<Vec<Match>> {
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
    messages(reader, history, &ranges, regex, window)
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
    ranges: &[(u64, u64)],
    regex: &mut Regex,
    window: &Window,
) -> Result<Vec<Match>> {
    let mut found = Vec::new();
    history.each_of(reader, ranges, &mut |_, message| {
        if window.holds(message.time) && matches_in(regex, message.text, message.parts) {
            found.push((message.seq, message.time));
        }
        Ok(())
    })?;
    Ok(found)
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
) -> Result<Vec<Match>> {
    let mut found = Vec::new();
    for ordinals in ordinals.chunks(SUMMARIES_PER_READ) {
        let places = index.summaries(reader, ordinals)?;
        let wanted: Vec<(String, u32)> =
            places.iter().map(|(id, bytes)| (history.keys.summary(*id), *bytes)).collect();
        for ((ordinal, (key, _)), value) in
            ordinals.iter().zip(&wanted).zip(reader.passing(&wanted)?)
        {
            let summary: Summary = codec::decode(key, &value)?;
            if window.holds(summary.latest_at) && regex.is_match(&summary.text) {
                found.push((*ordinal, summary.latest_at));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(
            joined(alloc::vec![(65, 128), (1, 64), (130, 130), (129, 128)]),
            [(1, 128), (130, 130)]
        );
        assert_eq!(joined(Vec::new()), []);
    }
}
