//! Passages of a long text that goes by: the lines with a match of an expression, or the places
//! where the words of a query stand together.
//!
//! In: pieces of the text in order. Out: at most [`PASSAGES_MAX`] passages with the line and byte
//! each begins at, of an expression the first ones, of words the best. What is kept of the text is
//! a line or two, so that it may have any length. Not here: reading it.

use alloc::{collections::VecDeque, string::String, vec::Vec};

use super::{
    Field, each_term,
    query::{Presence, TextQuery},
    regex::Regex,
    score::ONE,
    snippet::{Mark, SNIPPET_CHARACTERS_MAX, best_passage, passage},
};
use crate::{num, order::Sorted};

/// Passages of one text, as in the reference system.
pub(crate) const PASSAGES_MAX: usize = 10;
/// Bytes of a line from which on it is looked through in parts.
const LINE_BYTES_MAX: usize = 256 << 10;
/// Bytes at the end of such a part that the next one begins with: a match that begins in them is
/// one of the next part. And as many before them, which it is seen with.
const HELD_BYTES: usize = 1 << 10;
/// Bytes that count as a line when words are looked for: some three lines of prose.
const STRETCH_BYTES_MAX: usize = 240;
/// Lines in which words stand together.
const TOGETHER: usize = 3;

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passage {
    /// From 1.
    pub(crate) line: u64,
    /// Where it begins, in the text.
    pub(crate) byte: u64,
    pub(crate) snippet: String,
    /// Of words, with 16 fractional bits: one for each that stands there, and a little more for
    /// each that stands in its first line.
    pub(crate) score: Option<u64>,
}

/// A line, or a part of a very long one.
struct Line<'l> {
    text: &'l str,
    /// Where the text begins.
    at: u64,
    number: u64,
    /// Where in it a match may begin: from here on and before there.
    from: usize,
    until: usize,
}

/// Cuts a text that goes by into lines.
struct Lines {
    buffer: String,
    /// Where the buffer begins.
    at: u64,
    number: u64,
    /// Where in the buffer a match may begin.
    from: usize,
}

impl Lines {
    /// Takes the next piece, as long as `each` says so.
    fn take(&mut self, text: &str, each: &mut dyn FnMut(&Line<'_>) -> bool) -> bool {
        for piece in text.split_inclusive('\n') {
            self.buffer.push_str(piece);
            if piece.ends_with('\n') {
                if !self.close(each) {
                    return false;
                }
            } else if self.buffer.len() >= LINE_BYTES_MAX {
                let until = self.buffer.floor_char_boundary(self.buffer.len() - HELD_BYTES);
                if !each(&self.line(&self.buffer, until)) {
                    return false;
                }
                let gone = self.buffer.floor_char_boundary(until - HELD_BYTES);
                self.buffer.drain(..gone);
                self.at += num::to_u64(gone);
                self.from = until - gone;
            }
        }
        true
    }

    /// The line ends here.
    fn close(&mut self, each: &mut dyn FnMut(&Line<'_>) -> bool) -> bool {
        let text = self.buffer.strip_suffix('\n').unwrap_or(&self.buffer);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let goes_on = each(&self.line(text, text.len() + 1));
        self.at += num::to_u64(self.buffer.len());
        self.number += 1;
        self.from = 0;
        self.buffer.clear();
        goes_on
    }

    fn line<'l>(&self, text: &'l str, until: usize) -> Line<'l> {
        let from = self.from.min(text.len());
        Line { text, at: self.at, number: self.number, from, until }
    }
}

/// What is looked for.
pub(crate) enum Wanted<'q> {
    Words(Words<'q>),
    Regex(&'q mut Regex),
}

/// Looks through one text.
pub(crate) struct Passages<'w, 'q> {
    wanted: &'w mut Wanted<'q>,
    lines: Lines,
    /// Bytes before the place to begin at.
    skipped: usize,
    found: Found,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    passages: Vec<Passage>,
    /// More than are kept.
    more: bool,
    /// Where in the text to go on; what is before it was looked through.
    next: u64,
}

impl<'w, 'q> Passages<'w, 'q> {
    /// Begins so many bytes behind a byte, which is on this line and is where the text comes from.
    pub(crate) fn new(wanted: &'w mut Wanted<'q>, byte: u64, line: u64, skipped: u64) -> Self {
        if let Wanted::Words(words) = wanted {
            words.restart();
        }
        let lines = Lines { buffer: String::new(), at: byte, number: line, from: 0 };
        let found = Found { next: byte + skipped, ..Found::default() };
        Self { wanted, lines, skipped: num::to_usize(skipped), found }
    }

    /// Takes the next piece; `false`: what follows is of no interest, or an expression would cost
    /// too much, see [`Regex::is_refused`].
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let Self { wanted, lines, skipped, found } = self;
        let behind = text.floor_char_boundary(*skipped);
        let (before, text) = text.split_at_checked(behind).unwrap_or((text, ""));
        if *skipped > 0 {
            *skipped = if text.is_empty() { *skipped - before.len() } else { 0 };
            lines.at += num::to_u64(before.len());
            lines.number += num::to_u64(before.matches('\n').count());
        }
        lines.take(text, &mut |line| found.look(wanted, line))
    }

    /// Where to go on when this was not all of the text.
    pub(crate) fn next(&self) -> u64 {
        self.found.next.max(self.lines.at)
    }

    /// The passages in order, and whether there are more. `is_complete`: the text ends here.
    pub(crate) fn end(mut self, is_complete: bool) -> (Vec<Passage>, bool) {
        let Self { wanted, lines, found, .. } = &mut self;
        if is_complete && !lines.buffer.is_empty() {
            lines.close(&mut |line| found.look(wanted, line));
        }
        if let Wanted::Words(words) = wanted {
            words.end(found);
        }
        (self.found.passages, self.found.more)
    }
}

impl Found {
    fn look(&mut self, wanted: &mut Wanted<'_>, line: &Line<'_>) -> bool {
        let passed = num::to_usize(self.next.saturating_sub(line.at));
        let from = line.text.ceil_char_boundary(line.from.max(passed));
        match wanted {
            Wanted::Words(words) => words.look(line, from, self),
            Wanted::Regex(regex) => self.matches(regex, line, from),
        }
    }

    /// The matches of an expression in a line, the next one behind what the passage of one shows.
    fn matches(&mut self, regex: &mut Regex, line: &Line<'_>, mut from: usize) -> bool {
        while from <= line.text.len() {
            let found = regex.find_from(line.text, from);
            if regex.is_refused() {
                return false;
            }
            let Some(range) = found.filter(|range| range.start < line.until) else { break };
            if self.passages.len() == PASSAGES_MAX {
                self.more = true;
                return false;
            }
            let byte = line.at + num::to_u64(range.start);
            let snippet = passage(line.text, range.start);
            self.passages.push(Passage { line: line.number, byte, snippet, score: None });
            let behind = range.end.max(range.start + SNIPPET_CHARACTERS_MAX);
            if behind > line.text.len() {
                from = behind;
                break;
            }
            from = line.text.ceil_char_boundary(behind);
        }
        self.next = line.at + num::to_u64(from.max(line.until.min(line.text.len())));
        true
    }

    /// Keeps a passage if it is among the best.
    fn keep(&mut self, passage: Passage) {
        let place = self.passages.partition_point(|known| known.score >= passage.score);
        self.passages.insert(place, passage);
        if self.passages.len() > PASSAGES_MAX {
            self.passages.pop();
            self.more = true;
        }
    }
}

/// The words and phrases of a query, each with a bit of its own.
pub(crate) struct Words<'q> {
    terms: Sorted<&'q [u8], Vec<Needle>>,
    /// Bits of what counts, of what must stand in a passage, and of what must not.
    counts: u128,
    must: u128,
    must_not: u128,
    phrases: Vec<Phrase>,
    /// The newest lines, at most [`TOGETHER`].
    stretches: VecDeque<Stretch>,
    /// How many were taken from the front of these.
    passed: u64,
    position: u32,
    /// The newest passage with the number of its line: one that overlaps it may be better.
    newest: Option<(u64, Passage)>,
}

/// What a term says.
#[derive(Clone, Copy)]
enum Needle {
    /// A word stands here.
    Item(u128),
    /// Part of a phrase by its number: which one, and how far from its beginning.
    Part { phrase: usize, bit: u128, distance: u32 },
}

/// A phrase.
struct Phrase {
    item: u128,
    whole: u128,
    reach: u32,
    /// Where it may have begun, and which parts stand where they should.
    begun: VecDeque<(u32, u128)>,
}

/// A line, or as much of one as counts as a line.
struct Stretch {
    text: String,
    at: u64,
    number: u64,
    position: u32,
    items: u128,
    /// Where what it shows best begins.
    show: usize,
}

impl<'q> Words<'q> {
    /// Those of a query; `None`: it has none that could be found.
    pub(crate) fn new(query: &'q TextQuery) -> Option<Self> {
        let mut needles: Vec<(&[u8], Needle)> = Vec::new();
        let [mut counts, mut must, mut must_not] = [0u128; 3];
        let mut phrases = Vec::new();
        for (number, item) in (0u32..).zip(&query.items) {
            let bit = 1u128.checked_shl(number).unwrap_or(0);
            match item.presence {
                Presence::MustNot => must_not |= bit,
                Presence::Must => (counts, must) = (counts | bit, must | bit),
                Presence::May => counts |= bit,
            }
            if item.order.is_empty() {
                let numbers = if item.forms.is_empty() { &item.terms } else { &item.forms };
                let terms = numbers.iter().filter_map(|number| query.terms.get(*number));
                needles.extend(terms.map(|term| (term.as_slice(), Needle::Item(bit))));
                continue;
            }
            let mut whole = 0;
            for (part, (term, distance)) in (0u32..).zip(&item.order) {
                let (phrase, distance) = (phrases.len(), *distance);
                let bit = 1u128.checked_shl(part).unwrap_or(0);
                whole |= bit;
                needles.push((term, Needle::Part { phrase, bit, distance }));
            }
            let reach = item.order.iter().map(|(_, distance)| *distance).max().unwrap_or(0);
            phrases.push(Phrase { item: bit, whole, reach, begun: VecDeque::new() });
        }
        let mut terms: Sorted<&[u8], Vec<Needle>> = Sorted::default();
        for (term, needle) in needles {
            if let Some(list) = terms.entry(term) {
                list.push(needle);
            }
        }
        let (stretches, passed, position, newest) = (VecDeque::new(), 0, 0, None);
        (counts != 0).then_some(Self {
            terms,
            counts,
            must,
            must_not,
            phrases,
            stretches,
            passed,
            position,
            newest,
        })
    }

    fn restart(&mut self) {
        self.stretches.clear();
        (self.passed, self.position, self.newest) = (0, 0, None);
        self.phrases.iter_mut().for_each(|phrase| phrase.begun.clear());
    }

    /// Looks at a line, stretch by stretch.
    fn look(&mut self, line: &Line<'_>, mut from: usize, found: &mut Found) -> bool {
        while from < line.until.min(line.text.len()) {
            let rest = line.text.get(from..).unwrap_or_default();
            let end = stretch(rest);
            let text = rest.get(..end).unwrap_or_default();
            self.stretch(text, line.at + num::to_u64(from), line.number);
            if self.stretches.len() == TOGETHER {
                self.judge(found);
            }
            from += end;
            found.next = line.at + num::to_u64(from);
        }
        true
    }

    fn stretch(&mut self, text: &str, at: u64, number: u64) {
        let Self { terms, phrases, stretches, position: base, .. } = self;
        let (mut items, mut marks) = (0u128, Vec::new());
        let mut begun_before: Vec<(u32, u128)> = Vec::new();
        let first = *base;
        let positions = each_term(Field::Text, text, &mut |term, position, bytes| {
            let Some(needles) = terms.get(term) else { return };
            let position = first.saturating_add(position);
            for needle in needles {
                let bit = match *needle {
                    Needle::Item(bit) => bit,
                    Needle::Part { phrase, bit, distance } => {
                        let Some(phrase) = phrases.get_mut(phrase) else { continue };
                        let begin = position.checked_sub(distance);
                        if begin.is_some_and(|begin| phrase.part(begin, bit)) {
                            begun_before.push((begin.unwrap_or(0), phrase.item));
                        }
                        phrase.item
                    }
                };
                let weight = 4 + num::to_u64(term.len());
                let what = num::to_usize(u64::from(bit.trailing_zeros()));
                marks.push(Mark { bytes: bytes.clone(), what, weight });
                if matches!(needle, Needle::Item(_)) {
                    items |= bit;
                }
            }
        });
        *base = first.saturating_add(positions);
        let show = best_passage(&marks).map_or(0, |(_, at)| at);
        let text = String::from(text);
        stretches.push_back(Stretch { text, at, number, position: first, items, show });
        // A phrase stands where it begins.
        for (begin, item) in begun_before {
            let place = stretches.partition_point(|one| one.position <= begin);
            let stretch = stretches.get_mut(place.saturating_sub(1));
            stretch.into_iter().for_each(|one| one.items |= item);
        }
    }

    /// Whether the first of the newest lines begins a passage; it is then passed.
    fn judge(&mut self, found: &mut Found) {
        let number = self.passed;
        self.passed += 1;
        let Some(first) = self.stretches.pop_front() else { return };
        let own = first.items & self.counts;
        if own == 0 || first.items & self.must_not != 0 {
            return;
        }
        let beside = self.stretches.iter().take_while(|one| one.items & self.must_not == 0);
        let (mut items, mut text) = (own, first.text);
        for one in beside {
            items |= one.items & self.counts;
            text.push('\n');
            text.push_str(&one.text);
        }
        if items & self.must != self.must {
            return;
        }
        let count = |items: u128| u64::from(items.count_ones());
        let passage = Passage {
            line: first.number,
            byte: first.at + num::to_u64(first.show),
            snippet: passage(&text, first.show),
            score: Some(count(items) * ONE + count(own) * (ONE >> 8)),
        };
        match &mut self.newest {
            Some((known, newest)) if number - *known < num::to_u64(TOGETHER) => {
                if passage.score > newest.score {
                    (*known, *newest) = (number, passage);
                }
            }
            newest => {
                let before = newest.replace((number, passage));
                before.into_iter().for_each(|(_, passage)| found.keep(passage));
            }
        }
    }

    fn end(&mut self, found: &mut Found) {
        while !self.stretches.is_empty() {
            self.judge(found);
        }
        self.newest.take().into_iter().for_each(|(_, passage)| found.keep(passage));
    }
}

impl Phrase {
    /// Takes a part of one that would begin at a position; whether it is whole now.
    fn part(&mut self, begin: u32, bit: u128) -> bool {
        let newest = self.begun.back().map_or(0, |(begin, _)| *begin).max(begin);
        while self.begun.front().is_some_and(|(known, _)| newest - known > self.reach) {
            self.begun.pop_front();
        }
        let place = self.begun.partition_point(|(known, _)| *known < begin);
        match self.begun.get_mut(place) {
            Some((known, parts)) if *known == begin => {
                let before = *parts;
                *parts |= bit;
                before != self.whole && *parts == self.whole
            }
            _ => {
                self.begun.insert(place, (begin, bit));
                bit == self.whole
            }
        }
    }
}

/// Bytes of the beginning of a text that count as a line: up to a space, if there is one.
fn stretch(text: &str) -> usize {
    if text.len() <= STRETCH_BYTES_MAX {
        return text.len();
    }
    let most = text.floor_char_boundary(STRETCH_BYTES_MAX);
    let head = text.get(..most).unwrap_or_default();
    let space = head.char_indices().rev().find(|(_, c)| c.is_whitespace());
    space.map_or(most, |(at, c)| at + c.len_utf8())
}
