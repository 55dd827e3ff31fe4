//! Finds the terms of a text: what a reader could ask for by name.

use alloc::{string::String, vec::Vec};
use core::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

use super::cues;
use crate::tokens;

/// What kind of term it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    /// Path, mixed letters and digits, inner capitals, dots or underscores.
    Identifier,
    /// Two digits and more.
    Number,
    /// Capitalised inside a sentence, or all capitals.
    Name,
    /// Four letters and more.
    Word,
    /// Two neighbouring ideographs, or three letters of a script that is written without spaces.
    Gram,
    /// A shorter word: only a cue.
    Small,
}

impl Class {
    /// What one occurrence is worth before rarity.
    pub(super) const fn weight(self) -> u32 {
        match self {
            Self::Identifier => 10,
            Self::Number | Self::Name => 7,
            Self::Gram => 2,
            Self::Word => 1,
            Self::Small => 0,
        }
    }
}

/// What is known of one term over the whole source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term<'a> {
    /// Its first occurrence of its class.
    pub(super) text: &'a str,
    /// The class of its weightiest occurrence.
    pub(super) class: Class,
    /// What it says about a piece.
    pub(super) cues: u16,
    /// Occurrences, at most one per piece.
    pub(super) count: u32,
    /// Units (messages, or pieces) it occurs in.
    pub(super) units: u32,
    /// Whether it also occurs as an ordinary word, so that capitals mean nothing.
    plain: bool,
    last_unit: u32,
    last_piece: u32,
}

impl Term<'_> {
    /// What the term is worth where it stands as `class`.
    pub(super) fn weight(&self, class: Class) -> u32 {
        if self.plain && class == Class::Name { Class::Word.weight() } else { class.weight() }
    }

    /// Whether it is worth naming by itself.
    pub(super) fn is_name(&self) -> bool {
        self.class == Class::Identifier || (self.class == Class::Name && !self.plain)
    }
}

/// All terms of a source, numbered in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct Terms<'a> {
    list: Vec<Term<'a>>,
    // Only looked up, never iterated, so its order cannot show.
    ids: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    lower: String,
}

/// One term of one piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// Number of the term.
    pub(super) term: u32,
    /// Its class here.
    pub(super) class: Class,
}

impl<'a> Terms<'a> {
    /// The term of this number.
    pub(super) fn at(&self, term: u32) -> Option<&Term<'a>> {
        usize::try_from(term).ok().and_then(|term| self.list.get(term))
    }

    /// The terms in the order of their first occurrence.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Term<'a>> {
        self.list.iter()
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Appends the distinct terms of a piece to `uses` and returns what they say about it.
    /// `piece` and `unit` number the piece and the unit it belongs to, both rising.
    pub(super) fn add(&mut self, text: &'a str, piece: u32, unit: u32, uses: &mut Vec<Use>) -> u16 {
        let mut cues = 0;
        scan(text, |word, class| {
            self.lower.clear();
            self.lower.extend(word.chars().flat_map(char::to_lowercase));
            let key = hash(self.lower.as_bytes());
            let fresh = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            let id = *self.ids.entry(key).or_insert(fresh);
            if id == fresh {
                let cues = cues::of_word(&self.lower);
                let none = u32::MAX;
                let (last_unit, last_piece) = (none, none);
                self.list.push(Term {
                    text: word,
                    class,
                    cues,
                    count: 0,
                    units: 0,
                    plain: false,
                    last_unit,
                    last_piece,
                });
            }
            let Some(term) = usize::try_from(id).ok().and_then(|id| self.list.get_mut(id)) else {
                return;
            };
            cues |= term.cues;
            if class.weight() > term.class.weight() {
                (term.class, term.text) = (class, word);
            }
            term.plain |= word.starts_with(char::is_lowercase);
            if term.last_unit != unit {
                term.last_unit = unit;
                term.units = term.units.saturating_add(1);
            }
            if term.last_piece != piece {
                term.last_piece = piece;
                term.count = term.count.saturating_add(1);
                if class.weight() > 0 {
                    uses.push(Use { term: id, class });
                }
            }
        });
        cues
    }
}

/// Calls `emit` with every term of `text`, in order.
fn scan<'a>(text: &'a str, mut emit: impl FnMut(&'a str, Class)) {
    let mut at = line_number_length(text);
    // The last character that is not a space, for capitals at the start of a sentence.
    let mut before = '.';
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        let length = if is_gram(c) {
            grams(rest, &mut emit)
        } else if is_word(c) {
            let length = token_length(rest);
            let token = rest.get(..length).unwrap_or("");
            emit_token(token, starts_sentence(before), &mut emit);
            length
        } else {
            c.len_utf8()
        };
        at += length.max(1);
        if !c.is_whitespace() {
            before = text.get(..at).and_then(|done| done.chars().next_back()).unwrap_or(c);
        }
    }
}

/// The length of the line number that a listing puts before a line: it names nothing.
fn line_number_length(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        text.get(digits..).is_some_and(|rest| rest.starts_with([':', '|', '\t', '\u{2502}']));
    if (1..=6).contains(&digits) && numbered { digits } else { 0 }
}

/// Whether a capital after this character says nothing. Quotes and colons do not count: in data
/// they stand before values.
fn starts_sentence(before: char) -> bool {
    matches!(before, '.' | '!' | '?' | '*' | '-' | '#' | '>' | '|')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_gram(c: char) -> bool {
    tokens::is_cjk(c) && c.is_alphanumeric() && !c.is_ascii()
}

/// Emits the neighbouring pairs of the ideographs that `text` starts with; returns their length.
fn grams<'a>(text: &'a str, emit: &mut impl FnMut(&'a str, Class)) -> usize {
    let mut previous = None;
    for (at, c) in text.char_indices() {
        if !is_gram(c) {
            return at;
        }
        if let Some(pair) = previous.and_then(|from| text.get(from..at + c.len_utf8())) {
            emit(pair, Class::Gram);
        }
        previous = Some(at);
    }
    text.len()
}

/// The length of the token that `text` starts with: word characters, and joiners between them.
fn token_length(text: &str) -> usize {
    let mut end = 0;
    loop {
        let rest = text.get(end..).unwrap_or("");
        end += rest.find(|c| !is_word(c) || is_gram(c)).unwrap_or(rest.len());
        let tail = text.get(end..).unwrap_or("");
        let joiner = joiner_length(tail);
        let next = tail.get(joiner..).and_then(|after| after.chars().next());
        let digits = tail.starts_with([',', ':']) && joiner == 1;
        let joins = next.is_some_and(|next| {
            if digits { next.is_ascii_digit() } else { is_word(next) && !is_gram(next) }
        });
        let number =
            || text.get(..end).is_some_and(|head| head.ends_with(|c: char| c.is_ascii_digit()));
        if joiner == 0 || !joins || (tail.starts_with(',') && !number()) {
            return end;
        }
        end += joiner;
    }
}

fn joiner_length(text: &str) -> usize {
    ["://", "::", "->", "/", ".", "-", ":", "@", "\\", "'", "\u{2019}", ","]
        .iter()
        .find(|joiner| text.starts_with(**joiner))
        .map_or(0, |joiner| joiner.len())
}

/// LIMIT: longer runs of letters outside ASCII are scripts without spaces, and count by threes.
const SPACELESS_MIN: usize = 24;
/// LIMIT: longer tokens are noise.
const TOKEN_MAX: usize = 160;

fn emit_token<'a>(token: &'a str, sentence_start: bool, emit: &mut impl FnMut(&'a str, Class)) {
    if token.is_ascii() {
        if token.len() <= TOKEN_MAX {
            emit(token, classify(token, sentence_start));
        }
    } else if token.chars().count() <= SPACELESS_MIN {
        emit(token, classify(token, sentence_start));
    } else {
        let ends = token.char_indices().skip(3).map(|(at, _)| at).chain([token.len()]);
        for ((from, _), to) in token.char_indices().zip(ends) {
            emit(token.get(from..to).unwrap_or(""), Class::Gram);
        }
    }
}

fn classify(token: &str, sentence_start: bool) -> Class {
    let mut shape = Shape::default();
    let mut previous = ' ';
    for c in token.chars() {
        shape.add(c, previous);
        previous = c;
    }
    let first_upper = token.starts_with(char::is_uppercase);
    let short = shape.letters + shape.digits < 3;
    if shape.letters == 0 {
        return if shape.digits >= 2 { Class::Number } else { Class::Small };
    }
    // A slash alone is a choice between words.
    let path = shape.slashes >= 2 || (shape.slashes > 0 && shape.dots + shape.marks > 0);
    if (shape.digits > 0 || shape.marks > 0 || shape.inner_capital || path || shape.dots > 0)
        && !short
    {
        return Class::Identifier;
    }
    let capitals = shape.upper >= 2 && shape.upper == shape.letters;
    if capitals || (first_upper && !sentence_start && shape.letters >= 2) {
        return Class::Name;
    }
    if shape.letters >= 4 { Class::Word } else { Class::Small }
}

#[derive(Default)]
struct Shape {
    letters: u32,
    upper: u32,
    digits: u32,
    dots: u32,
    slashes: u32,
    marks: u32,
    inner_capital: bool,
}

impl Shape {
    fn add(&mut self, c: char, previous: char) {
        match c {
            '.' => self.dots += 1,
            '/' | '\\' => self.slashes += 1,
            '_' | '@' | ':' | '>' => self.marks += 1,
            _ if c.is_numeric() => self.digits += 1,
            _ if c.is_alphabetic() => {
                self.letters += 1;
                self.upper += u32::from(c.is_uppercase());
                self.inner_capital |= c.is_uppercase() && previous.is_lowercase();
            }
            _ => {}
        }
    }
}

/// FNV-1a, so that the numbering is the same everywhere.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Hashes keys that are hashes already.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        // The table takes bits from both ends; FNV leaves the upper ones weak.
        self.0 = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
