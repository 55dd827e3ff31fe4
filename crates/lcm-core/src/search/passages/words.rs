//! Passages of words: the places of a text where the words and phrases of a query stand together.
//!
//! In: lines. Out: passages of three lines, scored by how much of the query stands there. A long
//! line counts as several. Not here: what a line is, and which passages are kept.

use alloc::{borrow::Cow, collections::VecDeque, string::String, vec::Vec};
use core::ops::Range;

use lcm_loops::stem::each_irregular;

use super::{Found, Line, Passage};
use crate::search::{
    Field, each_term,
    query::{Presence, TextQuery},
    score::ONE,
    snippet::{Mark, best_passage, passage},
};
use lcm_text::base::{int, sort::Sorted};

/// Bytes that count as a line when words are looked for: some three lines of prose.
const STRETCH_BYTES_MAX: usize = 240;
/// Bytes behind these that are read for what reaches into them, such as an identifier.
const AHEAD_BYTES: usize = 512;
/// Bytes of texts that are read for words in one search, which takes as long as an expression in
/// eight times as many; and as how many of them a byte of a line counts that cannot hold a word.
const BYTES_MAX: u64 = 384 << 10;
const PASSED_SHARE: u64 = 8;
/// Positions that such a line takes, so that no phrase reaches over it.
const PASSED_POSITIONS: u32 = 1 << 10;
/// Lines in which words stand together.
const TOGETHER: usize = 3;

/// The words and phrases of a query, each with a bit of its own.
pub(crate) struct Words<'q> {
    begins: Begins,
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
    /// The newest passage: one that overlaps it may be better.
    newest: Option<Newest>,
    /// The text is JSON as it is written.
    is_json: bool,
    /// Bytes that may still be read, of this text and those that follow.
    left: u64,
}

/// A passage with the number of its line and where that begins.
struct Newest {
    number: u64,
    at: u64,
    passage: Passage,
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
    /// Where what it shows best begins, and where something was found.
    show: usize,
    found: Vec<Range<usize>>,
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
        let begins = Begins::of(terms.entries().iter().map(|(term, _)| *term));
        let (stretches, passed, position, newest) = (VecDeque::new(), 0, 0, None);
        (counts != 0).then_some(Self {
            begins,
            terms,
            counts,
            must,
            must_not,
            phrases,
            stretches,
            passed,
            position,
            newest,
            is_json: false,
            left: BYTES_MAX,
        })
    }

    /// Begins another text.
    pub(super) fn restart(&mut self, is_json: bool) {
        self.is_json = is_json;
        self.stretches.clear();
        (self.passed, self.position, self.newest) = (0, 0, None);
        self.phrases.iter_mut().for_each(|phrase| phrase.begun.clear());
    }

    /// Looks at a line, stretch by stretch; `false`: enough was read.
    pub(super) fn look(&mut self, line: &Line<'_>, mut from: usize, found: &mut Found) -> bool {
        while self.left > 0 && from < line.until.min(line.text.len()) {
            let rest = line.text.get(from..).unwrap_or_default();
            let ahead = rest.floor_char_boundary(STRETCH_BYTES_MAX + AHEAD_BYTES);
            let text = rest.get(..ahead).unwrap_or_default();
            let read = if self.is_json { without_escapes(text) } else { Cow::Borrowed(text) };
            let end = stretch(&read);
            let own = read.get(..end + BEGIN_BYTES - 1).unwrap_or(&read);
            let place = (line.at + int::to_u64(from), line.number);
            if self.begins.may_stand_in(own) {
                self.stretch(text, &read, end, place);
                self.left = self.left.saturating_sub(int::to_u64(end));
            } else {
                self.pass(text, end, place);
                self.left = self.left.saturating_sub(int::to_u64(end).div_ceil(PASSED_SHARE));
            }
            if self.stretches.len() == TOGETHER {
                self.judge(found);
            }
            from += end;
        }
        found.next = line.at + int::to_u64(from);
        self.left > 0
    }

    /// Takes the beginning of a text, which holds no word, as the next stretch.
    fn pass(&mut self, text: &str, end: usize, (at, number): (u64, u64)) {
        let text = String::from(text.get(..end).unwrap_or_default());
        let position = self.position;
        let found = Vec::new();
        self.stretches.push_back(Stretch { text, at, number, position, items: 0, show: 0, found });
        self.position = position.saturating_add(PASSED_POSITIONS);
    }

    /// Takes the beginning of a text as the next stretch, with what is behind it as far as words
    /// reach into that. `read`: the text as its words are read.
    fn stretch(&mut self, text: &str, read: &str, end: usize, (at, number): (u64, u64)) {
        let Self { terms, phrases, stretches, position: base, .. } = self;
        let (mut items, mut marks) = (0u128, Vec::new());
        let mut begun_before: Vec<(u32, u128)> = Vec::new();
        let first = *base;
        let mut behind = None;
        let positions = each_term(Field::Text, read, &mut |term, position, bytes| {
            if bytes.start >= end {
                behind = behind.or(Some(position));
                return;
            }
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
                let weight = 4 + int::to_u64(term.len());
                let what = int::to_usize(u64::from(bit.trailing_zeros()));
                marks.push(Mark { bytes: bytes.clone(), what, weight });
                if matches!(needle, Needle::Item(_)) {
                    items |= bit;
                }
            }
        });
        *base = first.saturating_add(behind.unwrap_or(positions));
        let show = best_passage(&marks).map_or(0, |(_, at)| at);
        let text = String::from(text.get(..end).unwrap_or_default());
        let found = marks.into_iter().map(|mark| mark.bytes.start..mark.bytes.end.min(end));
        let (found, position) = (found.collect(), first);
        stretches.push_back(Stretch { text, at, number, position, items, show, found });
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
        let passage = Passage {
            line: first.number,
            byte: first.at + int::to_u64(first.show),
            snippet: passage(&text, first.show, &mut shown.into_iter()),
            score: Some(count(items) * ONE + count(own) * (ONE >> 8)),
        };
        let newest = Newest { number, at: first.at, passage };
        match &mut self.newest {
            Some(known) if number - known.number < int::to_u64(TOGETHER) => {
                if newest.passage.score > known.passage.score {
                    *known = newest;
                }
            }
            known => {
                let before = known.replace(newest);
                before.into_iter().for_each(|known| found.keep(known.passage));
            }
        }
    }

    /// The text ends here, or only what was taken of it: what the rest could change is left to the
    /// search that goes on.
    pub(super) fn end(&mut self, found: &mut Found, is_over: bool) {
        while is_over && !self.stretches.is_empty() {
            self.judge(found);
        }
        if let Some(first) = self.stretches.front() {
            found.next = first.at;
        }
        let Some(newest) = self.newest.take() else { return };
        if !is_over && self.passed - newest.number < int::to_u64(TOGETHER) {
            found.next = newest.at;
        } else {
            found.keep(newest.passage);
        }
    }
}

/// How terms begin: most lines hold none of these beginnings, and need not be read for words.
struct Begins(Vec<bool>);

/// Bytes of a beginning, and how many there are when of each byte only what is the same in both
/// cases of a letter counts.
const BEGIN_BYTES: usize = 3;
const BEGINS: usize = 1 << (5 * BEGIN_BYTES);

impl Begins {
    /// Of terms with their kinds. A line with a character that is not ASCII is always read.
    fn of<'t>(terms: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut known = alloc::vec![false; BEGINS];
        let mut add = |text: &[u8], least: usize| match text.get(..BEGIN_BYTES) {
            Some(begin) if text.len() >= least => {
                let begin = begin.iter().fold(0, |all, byte| with(all, *byte));
                known.get_mut(begin).into_iter().for_each(|known| *known = true);
            }
            _ => known.fill(true),
        };
        for term in terms {
            match term {
                // The last letter of a stem may not be that of the word.
                [b's', stem @ ..] => {
                    add(stem, BEGIN_BYTES + 1);
                    each_irregular(stem, &mut |form| add(form, BEGIN_BYTES));
                }
                [_, text @ ..] => add(text, BEGIN_BYTES),
                [] => {}
            }
        }
        Self(known)
    }

    fn may_stand_in(&self, text: &str) -> bool {
        let mut last = 0;
        !text.is_ascii()
            || text.bytes().any(|byte| {
                last = with(last, byte);
                self.0.get(last).is_none_or(|known| *known)
            })
    }
}

/// The last bytes of a text, folded, with the next one.
fn with(last: usize, next: u8) -> usize {
    ((last << 5) | usize::from(next & 31)) % BEGINS
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

/// Bytes of the beginning of a text that count as a line: up to a place where no word is cut.
fn stretch(text: &str) -> usize {
    if text.len() <= STRETCH_BYTES_MAX {
        return text.len();
    }
    let most = text.floor_char_boundary(STRETCH_BYTES_MAX);
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
    each_term(Field::Text, text, &mut |_, _, bytes| {
        end = if bytes.start <= most { end.max(bytes.start) } else { end };
    });
    if end == 0 { most } else { end }
}

/// JSON as it is written, with spaces for its short escapes, whose letters are of no word.
fn without_escapes(text: &str) -> Cow<'_, str> {
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
