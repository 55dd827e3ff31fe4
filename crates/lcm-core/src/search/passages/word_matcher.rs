//! Passages of words: the places of a text where the words and phrases of a query stand together.
//!
//! In: lines. Out: passages of three lines, scored by how much of the query stands there. A long
//! line counts as several. Not here: what a line is, and which passages are kept.

use alloc::{borrow::Cow, collections::VecDeque, string::String, vec::Vec};
use core::ops::Range;

use lcm_loops::stemmer::each_irregular;

use super::{PassageCollector, TextLine, TextPassage};
use crate::search::{
    SearchField, each_term,
    score::ONE,
    snippet::{Highlight, build_snippet, find_best_passage},
    text_query::{Presence, TextQuery},
};
use lcm_text::base::{int, sort::SortedMap};

/// Bytes that count as a line when words are looked for: some three lines of prose.
const CHUNK_BYTES_MAX: usize = 240;
/// Bytes behind these that are read for what reaches into them, such as an identifier.
const LOOKAHEAD_BYTES: usize = 512;
/// Bytes of texts that are read for words in one search, which takes as long as an expression in
/// eight times as many; and as how many of them a byte of a line counts that cannot hold a word.
const BYTES_MAX: u64 = 384 << 10;
const SKIPPED_SHARE: u64 = 8;
/// Positions that such a line takes, so that no phrase reaches over it.
const SKIPPED_POSITIONS: u32 = 1 << 10;
/// Lines in which words stand together.
const PASSAGE_LINES: usize = 3;

/// The words and phrases of a query, each with a bit of its own.
pub(crate) struct WordMatcher<'q> {
    prefix_filter: PrefixFilter,
    terms: SortedMap<&'q [u8], Vec<TermTarget>>,
    /// Bits of what counts, of what must stand in a passage, and of what must not.
    counts: u128,
    must: u128,
    must_not: u128,
    phrases: Vec<PhraseMatcher>,
    /// The newest lines, at most [`TOGETHER`].
    chunks: VecDeque<LineChunk>,
    /// How many were taken from the front of these.
    chunks_passed: u64,
    position: u32,
    /// The newest passage: one that overlaps it may be better.
    pending: Option<PendingPassage>,
    /// The text is JSON as it is written.
    is_json: bool,
    /// Bytes that may still be read, of this text and those that follow.
    bytes_left: u64,
}

/// A passage with the number of its line and where that begins.
struct PendingPassage {
    number: u64,
    at: u64,
    passage: TextPassage,
}

/// What a term says.
#[derive(Clone, Copy)]
enum TermTarget {
    /// A word stands here.
    Item(u128),
    /// Part of a phrase by its number: which one, and how far from its beginning.
    Part { phrase: usize, bit: u128, distance: u32 },
}

/// A phrase.
struct PhraseMatcher {
    item: u128,
    all_parts: u128,
    reach: u32,
    /// Where it may have begun, and which parts stand where they should.
    open_starts: VecDeque<(u32, u128)>,
}

/// A line, or as much of one as counts as a line.
struct LineChunk {
    text: String,
    at: u64,
    number: u64,
    position: u32,
    items: u128,
    /// Where what it shows best begins, and where something was found.
    best_at: usize,
    found: Vec<Range<usize>>,
}

impl<'q> WordMatcher<'q> {
    /// Those of a query; `None`: it has none that could be found.
    pub(crate) fn new(query: &'q TextQuery) -> Option<Self> {
        let mut needles: Vec<(&[u8], TermTarget)> = Vec::new();
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
                needles.extend(terms.map(|term| (term.as_slice(), TermTarget::Item(bit))));
                continue;
            }
            let mut whole = 0;
            for (part, (term, distance)) in (0u32..).zip(&item.order) {
                let (phrase, distance) = (phrases.len(), *distance);
                let bit = 1u128.checked_shl(part).unwrap_or(0);
                whole |= bit;
                needles.push((term, TermTarget::Part { phrase, bit, distance }));
            }
            let reach = item.order.iter().map(|(_, distance)| *distance).max().unwrap_or(0);
            phrases.push(PhraseMatcher {
                item: bit,
                all_parts: whole,
                reach,
                open_starts: VecDeque::new(),
            });
        }
        let mut terms: SortedMap<&[u8], Vec<TermTarget>> = SortedMap::default();
        for (term, needle) in needles {
            if let Some(list) = terms.get_or_insert_default(term) {
                list.push(needle);
            }
        }
        let begins = PrefixFilter::from_terms(terms.as_entries().iter().map(|(term, _)| *term));
        let (stretches, passed, position, newest) = (VecDeque::new(), 0, 0, None);
        (counts != 0).then_some(Self {
            prefix_filter: begins,
            terms,
            counts,
            must,
            must_not,
            phrases,
            chunks: stretches,
            chunks_passed: passed,
            position,
            pending: newest,
            is_json: false,
            bytes_left: BYTES_MAX,
        })
    }

    /// Begins another text.
    pub(super) fn reset(&mut self, is_json: bool) {
        self.is_json = is_json;
        self.chunks.clear();
        (self.chunks_passed, self.position, self.pending) = (0, 0, None);
        self.phrases.iter_mut().for_each(|phrase| phrase.open_starts.clear());
    }

    /// Looks at a line, stretch by stretch; `false`: enough was read.
    pub(super) fn search_line(
        &mut self,
        line: &TextLine<'_>,
        mut from: usize,
        found: &mut PassageCollector,
    ) -> bool {
        while self.bytes_left > 0 && from < line.until.min(line.text.len()) {
            let rest = line.text.get(from..).unwrap_or_default();
            let ahead = rest.floor_char_boundary(CHUNK_BYTES_MAX + LOOKAHEAD_BYTES);
            let text = rest.get(..ahead).unwrap_or_default();
            let read = if self.is_json { blank_escapes(text) } else { Cow::Borrowed(text) };
            let end = find_chunk_end(&read);
            let own = read.get(..end + PREFIX_BYTES - 1).unwrap_or(&read);
            let place = (line.at + int::to_u64(from), line.number);
            if self.prefix_filter.may_occur_in(own) {
                self.push_chunk(text, &read, end, place);
                self.bytes_left = self.bytes_left.saturating_sub(int::to_u64(end));
            } else {
                self.skip_chunk(text, end, place);
                self.bytes_left =
                    self.bytes_left.saturating_sub(int::to_u64(end).div_ceil(SKIPPED_SHARE));
            }
            if self.chunks.len() == PASSAGE_LINES {
                self.evaluate_oldest_chunk(found);
            }
            from += end;
        }
        found.next = line.at + int::to_u64(from);
        self.bytes_left > 0
    }

    /// Takes the beginning of a text, which holds no word, as the next stretch.
    fn skip_chunk(&mut self, text: &str, end: usize, (at, number): (u64, u64)) {
        let text = String::from(text.get(..end).unwrap_or_default());
        let position = self.position;
        let found = Vec::new();
        self.chunks.push_back(LineChunk {
            text,
            at,
            number,
            position,
            items: 0,
            best_at: 0,
            found,
        });
        self.position = position.saturating_add(SKIPPED_POSITIONS);
    }

    /// Takes the beginning of a text as the next stretch, with what is behind it as far as words
    /// reach into that. `read`: the text as its words are read.
    fn push_chunk(&mut self, text: &str, read: &str, end: usize, (at, number): (u64, u64)) {
        let Self { terms, phrases, chunks: stretches, position: base, .. } = self;
        let (mut items, mut marks) = (0u128, Vec::new());
        let mut begun_before: Vec<(u32, u128)> = Vec::new();
        let first = *base;
        let mut behind = None;
        let positions = each_term(SearchField::Text, read, &mut |term, position, bytes| {
            if bytes.start >= end {
                behind = behind.or(Some(position));
                return;
            }
            let Some(needles) = terms.get(term) else { return };
            let position = first.saturating_add(position);
            for needle in needles {
                let bit = match *needle {
                    TermTarget::Item(bit) => bit,
                    TermTarget::Part { phrase, bit, distance } => {
                        let Some(phrase) = phrases.get_mut(phrase) else { continue };
                        let begin = position.checked_sub(distance);
                        if begin.is_some_and(|begin| phrase.add_part(begin, bit)) {
                            begun_before.push((begin.unwrap_or(0), phrase.item));
                        }
                        phrase.item
                    }
                };
                let weight = 4 + int::to_u64(term.len());
                let what = int::to_usize(u64::from(bit.trailing_zeros()));
                marks.push(Highlight { bytes: bytes.clone(), what, weight });
                if matches!(needle, TermTarget::Item(_)) {
                    items |= bit;
                }
            }
        });
        *base = first.saturating_add(behind.unwrap_or(positions));
        let show = find_best_passage(&marks).map_or(0, |(_, at)| at);
        let text = String::from(text.get(..end).unwrap_or_default());
        let found = marks.into_iter().map(|mark| mark.bytes.start..mark.bytes.end.min(end));
        let (found, position) = (found.collect(), first);
        stretches.push_back(LineChunk { text, at, number, position, items, best_at: show, found });
        // A phrase stands where it begins.
        for (begin, item) in begun_before {
            let place = stretches.partition_point(|one| one.position <= begin);
            let stretch = stretches.get_mut(place.saturating_sub(1));
            stretch.into_iter().for_each(|one| one.items |= item);
        }
    }

    /// Whether the first of the newest lines begins a passage; it is then passed.
    fn evaluate_oldest_chunk(&mut self, found: &mut PassageCollector) {
        let number = self.chunks_passed;
        self.chunks_passed += 1;
        let Some(first) = self.chunks.pop_front() else { return };
        let own = first.items & self.counts;
        if own == 0 || first.items & self.must_not != 0 {
            return;
        }
        let beside = self.chunks.iter().take_while(|one| one.items & self.must_not == 0);
        let (mut items, mut text, mut shown) = (own, first.text, first.found);
        for one in beside {
            items |= one.items & self.counts;
            text.push('\n');
            let at = text.len();
            shown.extend(one.found.iter().map(|range| at + range.start..at + range.end));
            text.push_str(&one.text);
        }
        if items & self.must != self.must {
            return;
        }
        let count = |items: u128| u64::from(items.count_ones());
        let passage = TextPassage {
            line: first.number,
            byte: first.at + int::to_u64(first.best_at),
            snippet: build_snippet(&text, first.best_at, &mut shown.into_iter()),
            score: Some(count(items) * ONE + count(own) * (ONE >> 8)),
        };
        let newest = PendingPassage { number, at: first.at, passage };
        match &mut self.pending {
            Some(known) if number - known.number < int::to_u64(PASSAGE_LINES) => {
                if newest.passage.score > known.passage.score {
                    *known = newest;
                }
            }
            known => {
                let before = known.replace(newest);
                before.into_iter().for_each(|known| found.keep_passage(known.passage));
            }
        }
    }

    /// The text ends here, or only what was taken of it: what the rest could change is left to the
    /// search that goes on.
    pub(super) fn finish(&mut self, found: &mut PassageCollector, is_over: bool) {
        while is_over && !self.chunks.is_empty() {
            self.evaluate_oldest_chunk(found);
        }
        if let Some(first) = self.chunks.front() {
            found.next = first.at;
        }
        let Some(newest) = self.pending.take() else { return };
        if !is_over && self.chunks_passed - newest.number < int::to_u64(PASSAGE_LINES) {
            found.next = newest.at;
        } else {
            found.keep_passage(newest.passage);
        }
    }
}

/// How terms begin: most lines hold none of these beginnings, and need not be read for words.
struct PrefixFilter(Vec<bool>);

/// Bytes of a beginning, and how many there are when of each byte only what is the same in both
/// cases of a letter counts.
const PREFIX_BYTES: usize = 3;
const PREFIX_COUNT: usize = 1 << (5 * PREFIX_BYTES);

impl PrefixFilter {
    /// Of terms with their kinds. A line with a character that is not ASCII is always read.
    fn from_terms<'t>(terms: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut known = alloc::vec![false; PREFIX_COUNT];
        let mut add = |text: &[u8], least: usize| match text.get(..PREFIX_BYTES) {
            Some(begin) if text.len() >= least => {
                let begin = begin.iter().fold(0, |all, byte| roll_prefix(all, *byte));
                known.get_mut(begin).into_iter().for_each(|known| *known = true);
            }
            _ => known.fill(true),
        };
        for term in terms {
            match term {
                // The last letter of a stem may not be that of the word.
                [b's', stem @ ..] => {
                    add(stem, PREFIX_BYTES + 1);
                    each_irregular(stem, &mut |form| add(form, PREFIX_BYTES));
                }
                [_, text @ ..] => add(text, PREFIX_BYTES),
                [] => {}
            }
        }
        Self(known)
    }

    fn may_occur_in(&self, text: &str) -> bool {
        let mut last = 0;
        !text.is_ascii()
            || text.bytes().any(|byte| {
                last = roll_prefix(last, byte);
                self.0.get(last).is_none_or(|known| *known)
            })
    }
}

/// The last bytes of a text, folded, with the next one.
fn roll_prefix(last: usize, next: u8) -> usize {
    ((last << 5) | usize::from(next & 31)) % PREFIX_COUNT
}

impl PhraseMatcher {
    /// Takes a part of one that would begin at a position; whether it is whole now.
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

/// Bytes of the beginning of a text that count as a line: up to a place where no word is cut.
fn find_chunk_end(text: &str) -> usize {
    if text.len() <= CHUNK_BYTES_MAX {
        return text.len();
    }
    let most = text.floor_char_boundary(CHUNK_BYTES_MAX);
    let parts = |byte: &u8| {
        byte.is_ascii()
            && !byte.is_ascii_alphanumeric()
            && !matches!(byte, b'_' | b'-' | b'.' | b'/' | b':')
    };
    let head = text.as_bytes().get(..most).unwrap_or_default();
    if let Some(at) = head.iter().rposition(parts) {
        return at + 1;
    }
    let mut end = 0;
    each_term(SearchField::Text, text, &mut |_, _, bytes| {
        end = if bytes.start <= most { end.max(bytes.start) } else { end };
    });
    if end == 0 { most } else { end }
}

/// JSON as it is written, with spaces for its short escapes, whose letters are of no word.
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
