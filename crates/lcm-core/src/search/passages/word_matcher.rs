//! Passages for words: parts of a text where words and phrases of a query occur together.
//!
//! Input: lines. Output: passages of up to three chunks, scored by the number of matched items. A
//! chunk is a line, or a part of a long line; empty lines have no chunk. Elsewhere: splitting into
//! lines (`text_lines`), keeping the best passages (`passage_list`).

use alloc::{borrow::Cow, collections::VecDeque, string::String, vec::Vec};
use core::ops::Range;

use lcm_loops::stemmer::each_irregular;

use super::{
    passage_list::{PassageCollector, TextPassage},
    text_lines::TextLine,
};
use crate::search::{
    fields::SearchField,
    score::ONE,
    snippet::{Highlight, build_snippet, find_best_passage},
    terms::each_term,
    text_query::{Presence, TextQuery},
};
use lcm_text::base::{int, sort::SortedMap};

/// Most bytes of a chunk, about three lines of prose.
const CHUNK_BYTES_MAX: usize = 240;
/// Bytes read beyond [`CHUNK_BYTES_MAX`] for terms that cross the end of a chunk, such as
/// identifiers.
const LOOKAHEAD_BYTES: usize = 512;
/// Bytes of all texts that one query searches for words. Searching them takes about as long as a
/// regular expression over eight times as many bytes.
const BYTES_MAX: u64 = 384 << 10;
/// Bytes of a skipped chunk that count as one searched byte.
const SKIPPED_SHARE: u64 = 8;
/// Positions that a skipped chunk takes, so that no phrase reaches across the chunk.
const SKIPPED_POSITIONS: u32 = 1 << 10;
/// Most chunks of a passage.
const PASSAGE_CHUNKS_MAX: usize = 3;

/// Matcher for the words and phrases of a query. Each query item has a bit.
pub(crate) struct WordMatcher<'q> {
    prefix_filter: PrefixFilter,
    terms: SortedMap<&'q [u8], Vec<TermTarget>>,
    /// Bits of the items that are not excluded.
    counts: u128,
    /// Bits of the required items.
    must: u128,
    /// Bits of the excluded items.
    must_not: u128,
    phrases: Vec<PhraseMatcher>,
    /// Newest chunks, at most [`PASSAGE_CHUNKS_MAX`].
    chunks: VecDeque<LineChunk>,
    /// Number of chunks removed from the front of `chunks`.
    chunks_passed: u64,
    /// Position of the next term.
    position: u32,
    /// Best of the newest overlapping passages, held until a later passage does not overlap it.
    /// `None`: no passage is held.
    pending: Option<PendingPassage>,
    /// Whether the text is JSON as written.
    is_json: bool,
    /// Bytes that may still be searched, in this text and later texts.
    bytes_left: u64,
}

/// A passage with the number of its first chunk, and the byte at which this chunk begins.
struct PendingPassage {
    number: u64,
    at: u64,
    passage: TextPassage,
}

/// Meaning of a term in the query.
#[derive(Clone, Copy)]
enum TermTarget {
    /// The term alone is an item: the bit of the item.
    Item(u128),
    /// The term is a part of a phrase. `phrase` is the index of the phrase, `bit` the bit of the
    /// part, `distance` the number of positions from the start of the phrase to the part.
    Part { phrase: usize, bit: u128, distance: u32 },
}

/// Matcher for one phrase.
struct PhraseMatcher {
    /// Bit of the query item.
    item: u128,
    all_parts: u128,
    /// Positions from the start of the phrase to its last part.
    reach: u32,
    /// Positions at which the phrase may begin, ascending, each with the bits of the parts found so
    /// far.
    open_starts: VecDeque<(u32, u128)>,
}

/// A line, or a part of a long line.
struct LineChunk {
    text: String,
    at: u64,
    number: u64,
    position: u32,
    /// Bits of the items in the chunk; a phrase counts where it begins.
    items: u128,
    /// Byte of the chunk at which its best passage begins.
    best_at: usize,
    /// Byte ranges of all matches in the chunk.
    matches: Vec<Range<usize>>,
}

impl<'q> WordMatcher<'q> {
    /// Creates a matcher; `None`: the query has no item, or only excluded items.
    pub(crate) fn new(query: &'q TextQuery) -> Option<Self> {
        let mut targets: Vec<(&[u8], TermTarget)> = Vec::new();
        let [mut counts, mut must, mut must_not] = [0u128; 3];
        let mut phrases = Vec::new();
        for (number, item) in (0u32..).zip(&query.items) {
            let bit = 1u128.checked_shl(number).unwrap_or(0);
            match item.presence {
                Presence::MustNot => must_not |= bit,
                Presence::Must => (counts, must) = (counts | bit, must | bit),
                Presence::Should => counts |= bit,
            }
            if item.order.is_empty() {
                let numbers = if item.forms.is_empty() { &item.terms } else { &item.forms };
                let terms = numbers.iter().filter_map(|number| query.terms.get(*number));
                targets.extend(terms.map(|term| (term.as_slice(), TermTarget::Item(bit))));
                continue;
            }
            let mut all_parts = 0;
            for (part, (term, distance)) in (0u32..).zip(&item.order) {
                let (phrase, distance) = (phrases.len(), *distance);
                let bit = 1u128.checked_shl(part).unwrap_or(0);
                all_parts |= bit;
                targets.push((term, TermTarget::Part { phrase, bit, distance }));
            }
            let reach = item.order.iter().map(|(_, distance)| *distance).max().unwrap_or(0);
            phrases.push(PhraseMatcher {
                item: bit,
                all_parts,
                reach,
                open_starts: VecDeque::new(),
            });
        }
        let mut terms: SortedMap<&[u8], Vec<TermTarget>> = SortedMap::default();
        for (term, target) in targets {
            if let Some(list) = terms.get_or_insert_default(term) {
                list.push(target);
            }
        }
        let prefix_filter =
            PrefixFilter::from_terms(terms.as_entries().iter().map(|(term, _)| *term));
        (counts != 0).then_some(Self {
            prefix_filter,
            terms,
            counts,
            must,
            must_not,
            phrases,
            chunks: VecDeque::new(),
            chunks_passed: 0,
            position: 0,
            pending: None,
            is_json: false,
            bytes_left: BYTES_MAX,
        })
    }

    /// Starts another text. The byte limit is not reset.
    pub(super) fn reset(&mut self, is_json: bool) {
        self.is_json = is_json;
        self.chunks.clear();
        (self.chunks_passed, self.position, self.pending) = (0, 0, None);
        self.phrases.iter_mut().for_each(|phrase| phrase.open_starts.clear());
    }

    /// Searches a line from the byte `from` on, chunk by chunk. Returns `false` if the byte limit
    /// is reached.
    pub(super) fn search_line(
        &mut self,
        line: &TextLine<'_>,
        mut from: usize,
        collector: &mut PassageCollector,
    ) -> bool {
        while self.bytes_left > 0 && from < line.until.min(line.text.len()) {
            let rest = line.text.get(from..).unwrap_or_default();
            let ahead = rest.floor_char_boundary(CHUNK_BYTES_MAX + LOOKAHEAD_BYTES);
            let text = rest.get(..ahead).unwrap_or_default();
            let read = if self.is_json { blank_escapes(text) } else { Cow::Borrowed(text) };
            let end = find_chunk_end(&read);
            let own_text = read.get(..end + PREFIX_BYTES - 1).unwrap_or(&read);
            let start = (line.at + int::to_u64(from), line.number);
            if self.prefix_filter.may_occur_in(own_text) {
                self.push_chunk(text, &read, end, start);
                self.bytes_left = self.bytes_left.saturating_sub(int::to_u64(end));
            } else {
                self.skip_chunk(text, end, start);
                self.bytes_left =
                    self.bytes_left.saturating_sub(int::to_u64(end).div_ceil(SKIPPED_SHARE));
            }
            if self.chunks.len() == PASSAGE_CHUNKS_MAX {
                self.evaluate_oldest_chunk(collector);
            }
            from += end;
        }
        collector.next = line.at + int::to_u64(from);
        self.bytes_left > 0
    }

    /// Adds the first `end` bytes of `text` as the next chunk, without a match. `(at, number)`:
    /// byte and line at which the chunk begins.
    fn skip_chunk(&mut self, text: &str, end: usize, (at, number): (u64, u64)) {
        let text = String::from(text.get(..end).unwrap_or_default());
        let position = self.position;
        let matches = Vec::new();
        self.chunks.push_back(LineChunk {
            text,
            at,
            number,
            position,
            items: 0,
            best_at: 0,
            matches,
        });
        self.position = position.saturating_add(SKIPPED_POSITIONS);
    }

    /// Adds the first `end` bytes of `text` as the next chunk, with its matches. `read` is the same
    /// text with JSON escapes blanked. Its part behind `end` completes terms that cross the end.
    fn push_chunk(&mut self, text: &str, read: &str, end: usize, (at, number): (u64, u64)) {
        let Self { terms, phrases, chunks, position: base, .. } = self;
        let (mut items, mut highlights) = (0u128, Vec::new());
        let mut completed_phrases: Vec<(u32, u128)> = Vec::new();
        let first = *base;
        let mut behind = None;
        let positions = each_term(SearchField::Text, read, &mut |term, position, bytes| {
            if bytes.start >= end {
                behind = behind.or(Some(position));
                return;
            }
            let Some(targets) = terms.get(term) else { return };
            let position = first.saturating_add(position);
            for target in targets {
                let bit = match *target {
                    TermTarget::Item(bit) => bit,
                    TermTarget::Part { phrase, bit, distance } => {
                        let Some(phrase) = phrases.get_mut(phrase) else { continue };
                        let begin = position.checked_sub(distance);
                        if begin.is_some_and(|begin| phrase.add_part(begin, bit)) {
                            completed_phrases.push((begin.unwrap_or(0), phrase.item));
                        }
                        phrase.item
                    }
                };
                let weight = 4 + int::to_u64(term.len());
                let what = int::to_usize(u64::from(bit.trailing_zeros()));
                highlights.push(Highlight { bytes: bytes.clone(), what, weight });
                if matches!(target, TermTarget::Item(_)) {
                    items |= bit;
                }
            }
        });
        *base = first.saturating_add(behind.unwrap_or(positions));
        let best_at = find_best_passage(&highlights).map_or(0, |(_, at)| at);
        let text = String::from(text.get(..end).unwrap_or_default());
        let matches = highlights
            .into_iter()
            .map(|highlight| highlight.bytes.start..highlight.bytes.end.min(end));
        let (matches, position) = (matches.collect(), first);
        chunks.push_back(LineChunk { text, at, number, position, items, best_at, matches });
        // A phrase counts in the chunk in which it begins.
        for (begin, item) in completed_phrases {
            let index = chunks.partition_point(|chunk| chunk.position <= begin);
            let chunk = chunks.get_mut(index.saturating_sub(1));
            chunk.into_iter().for_each(|chunk| chunk.items |= item);
        }
    }

    /// Removes the oldest chunk. Builds a passage if the chunk has a query item and no excluded
    /// item, and has all required items together with the chunks behind it. Of overlapping
    /// passages, only the best is kept.
    fn evaluate_oldest_chunk(&mut self, collector: &mut PassageCollector) {
        let number = self.chunks_passed;
        self.chunks_passed += 1;
        let Some(first) = self.chunks.pop_front() else { return };
        let own_items = first.items & self.counts;
        if own_items == 0 || first.items & self.must_not != 0 {
            return;
        }
        let following = self.chunks.iter().take_while(|chunk| chunk.items & self.must_not == 0);
        let (mut items, mut text, mut ranges) = (own_items, first.text, first.matches);
        for chunk in following {
            items |= chunk.items & self.counts;
            text.push('\n');
            let at = text.len();
            ranges.extend(chunk.matches.iter().map(|range| at + range.start..at + range.end));
            text.push_str(&chunk.text);
        }
        if items & self.must != self.must {
            return;
        }
        let count_items = |items: u128| u64::from(items.count_ones());
        let passage = TextPassage {
            line: first.number,
            byte: first.at + int::to_u64(first.best_at),
            snippet: build_snippet(&text, first.best_at, &mut ranges.into_iter()),
            score: Some(count_items(items) * ONE + count_items(own_items) * (ONE >> 8)),
        };
        let newest = PendingPassage { number, at: first.at, passage };
        match &mut self.pending {
            Some(known) if number - known.number < int::to_u64(PASSAGE_CHUNKS_MAX) => {
                if newest.passage.score > known.passage.score {
                    *known = newest;
                }
            }
            known => {
                let before = known.replace(newest);
                before.into_iter().for_each(|known| collector.keep_passage(known.passage));
            }
        }
    }

    /// Finishes a text. `is_over`: whether the whole text was searched. Otherwise passages that
    /// later text could change are dropped, and `collector.next` is set so that the next search
    /// finds them.
    pub(super) fn finish(&mut self, collector: &mut PassageCollector, is_over: bool) {
        while is_over && !self.chunks.is_empty() {
            self.evaluate_oldest_chunk(collector);
        }
        if let Some(first) = self.chunks.front() {
            collector.next = first.at;
        }
        let Some(newest) = self.pending.take() else { return };
        if !is_over && self.chunks_passed - newest.number < int::to_u64(PASSAGE_CHUNKS_MAX) {
            collector.next = newest.at;
        } else {
            collector.keep_passage(newest.passage);
        }
    }
}

/// Filter for chunks: the first three bytes of all terms. Most chunks contain none of these
/// prefixes and are skipped.
struct PrefixFilter(Vec<bool>);

/// Bytes of a term that the filter compares.
const PREFIX_BYTES: usize = 3;
/// Number of distinct prefixes. Five bits of each byte count; they are equal for both cases of a
/// letter.
const PREFIX_COUNT: usize = 1 << (5 * PREFIX_BYTES);

impl PrefixFilter {
    /// Builds the filter from terms, whose first byte is their kind. A term of fewer than three
    /// letters lets every chunk pass.
    fn from_terms<'t>(terms: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut prefixes = alloc::vec![false; PREFIX_COUNT];
        let mut add = |text: &[u8], least: usize| match text.get(..PREFIX_BYTES) {
            Some(begin) if text.len() >= least => {
                let begin = begin.iter().fold(0, |all, byte| roll_prefix(all, *byte));
                prefixes.get_mut(begin).into_iter().for_each(|slot| *slot = true);
            }
            _ => prefixes.fill(true),
        };
        for term in terms {
            match term {
                // A stem needs four letters, because its last letter may differ from that of the
                // word.
                [b's', stem @ ..] => {
                    add(stem, PREFIX_BYTES + 1);
                    each_irregular(stem, &mut |form| add(form, PREFIX_BYTES));
                }
                [_, text @ ..] => add(text, PREFIX_BYTES),
                [] => {}
            }
        }
        Self(prefixes)
    }

    /// Returns whether a term may occur in a text; always for non-ASCII text.
    fn may_occur_in(&self, text: &str) -> bool {
        let mut last = 0;
        !text.is_ascii()
            || text.bytes().any(|byte| {
                last = roll_prefix(last, byte);
                self.0.get(last).is_none_or(|is_prefix| *is_prefix)
            })
    }
}

/// Appends a byte to a prefix, and drops the oldest byte.
fn roll_prefix(last: usize, next: u8) -> usize {
    ((last << 5) | usize::from(next & 31)) % PREFIX_COUNT
}

impl PhraseMatcher {
    /// Records a part of a phrase that begins at `begin`. Returns whether this part completes the
    /// phrase.
    fn add_part(&mut self, begin: u32, bit: u128) -> bool {
        let newest = self.open_starts.back().map_or(0, |(begin, _)| *begin).max(begin);
        while self.open_starts.front().is_some_and(|(known, _)| newest - known > self.reach) {
            self.open_starts.pop_front();
        }
        let place = self.open_starts.partition_point(|(known, _)| *known < begin);
        match self.open_starts.get_mut(place) {
            Some((known, parts)) if *known == begin => {
                let before = *parts;
                *parts |= bit;
                before != self.all_parts && *parts == self.all_parts
            }
            _ => {
                self.open_starts.insert(place, (begin, bit));
                bit == self.all_parts
            }
        }
    }
}

/// Returns the length of the next chunk: it ends behind the last separator within
/// [`CHUNK_BYTES_MAX`], else before a term. Only a single longer term is split.
fn find_chunk_end(text: &str) -> usize {
    if text.len() <= CHUNK_BYTES_MAX {
        return text.len();
    }
    let bytes_max = text.floor_char_boundary(CHUNK_BYTES_MAX);
    let is_separator = |byte: &u8| {
        byte.is_ascii()
            && !byte.is_ascii_alphanumeric()
            && !matches!(byte, b'_' | b'-' | b'.' | b'/' | b':')
    };
    let head = text.as_bytes().get(..bytes_max).unwrap_or_default();
    if let Some(at) = head.iter().rposition(is_separator) {
        return at + 1;
    }
    let mut end = 0;
    each_term(SearchField::Text, text, &mut |_, _, bytes| {
        end = if bytes.start <= bytes_max { end.max(bytes.start) } else { end };
    });
    if end == 0 { bytes_max } else { end }
}

/// Replaces each JSON escape of two characters, such as `\n`, by two spaces, because its letter
/// belongs to no word. Byte offsets stay the same.
fn blank_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let escaped = characters.clone().next().filter(|next| c == '\\' && next.is_ascii());
        match escaped {
            Some(next) if next != 'u' => {
                out.push_str("  ");
                characters.next();
            }
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}
