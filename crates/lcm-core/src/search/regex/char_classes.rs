//! Character classes of expressions: `\w`, `\d`, `\s`, `[:alpha:]`, and case folding.
//!
//! Input: the kind of a class, or a class to fold. Output: its characters, for `translate`.
//!
//! To keep Unicode tables out of `lcm.wasm`, this module uses functions that are linked anyway:
//! `lower_char`, `char::is_whitespace`, and `regex_syntax::try_is_word_character`.
//! `DIGIT_ZEROS` and `SPECIAL_FOLDS` supply the rest; `CASED_RANGES` and `WORD_RANGES` only shorten
//! the search. The tests compare every character with the Unicode tables.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use regex_syntax::{
    ast::{ClassAsciiKind, ClassPerlKind},
    hir::{ClassUnicode, ClassUnicodeRange},
};

use lcm_loops::lower_case::lower_char;
use lcm_text::base::sort;

/// Zero of each row of ten decimal digits (general category Nd, Unicode 16).
const DIGIT_ZEROS: [u32; 76] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
    0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
    0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x10D40, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0,
    0x11650, 0x116C0, 0x116D0, 0x116DA, 0x11730, 0x118E0, 0x11950, 0x11BF0, 0x11C50, 0x11D50,
    0x11DA0, 0x11F50, 0x16130, 0x16A60, 0x16AC0, 0x16B50, 0x16D70, 0x1CCF0, 0x1D7CE, 0x1D7D8,
    0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E5F1, 0x1E950, 0x1FBF0,
];

/// Characters whose simple case folding differs from their lower case (CaseFolding.txt, Unicode
/// 16).
const SPECIAL_FOLDS: [(char, char); 25] = [
    ('\u{b5}', '\u{3bc}'),
    ('\u{17f}', 's'),
    ('\u{345}', '\u{3b9}'),
    ('\u{3c2}', '\u{3c3}'),
    ('\u{3d0}', '\u{3b2}'),
    ('\u{3d1}', '\u{3b8}'),
    ('\u{3d5}', '\u{3c6}'),
    ('\u{3d6}', '\u{3c0}'),
    ('\u{3f0}', '\u{3ba}'),
    ('\u{3f1}', '\u{3c1}'),
    ('\u{3f5}', '\u{3b5}'),
    ('\u{1c80}', '\u{432}'),
    ('\u{1c81}', '\u{434}'),
    ('\u{1c82}', '\u{43e}'),
    ('\u{1c83}', '\u{441}'),
    ('\u{1c84}', '\u{442}'),
    ('\u{1c85}', '\u{442}'),
    ('\u{1c86}', '\u{44a}'),
    ('\u{1c87}', '\u{463}'),
    ('\u{1c88}', '\u{a64b}'),
    ('\u{1e9b}', '\u{1e61}'),
    ('\u{1fbe}', '\u{3b9}'),
    ('\u{1fd3}', '\u{390}'),
    ('\u{1fe3}', '\u{3b0}'),
    ('\u{fb05}', '\u{fb06}'),
];

/// Ranges to search for cased characters: no cased character lies outside, as the tests verify;
/// most characters inside have no case.
const CASED_RANGES: [RangeInclusive<char>; 7] = [
    '\0'..='\u{2dff}',
    '\u{a600}'..='\u{abff}',
    '\u{fb00}'..='\u{ffff}',
    '\u{10400}'..='\u{10dff}',
    '\u{11800}'..='\u{118ff}',
    '\u{16e00}'..='\u{16eff}',
    '\u{1e900}'..='\u{1e9ff}',
];

/// Ranges to search for word characters: no word character lies outside, as the tests verify.
const WORD_RANGES: [RangeInclusive<char>; 2] = ['\0'..='\u{32fff}', '\u{e0000}'..='\u{e0fff}'];

/// Cache of the classes that are slow to build.
#[derive(Default)]
pub(super) struct CharClasses {
    word: Option<ClassUnicode>,
    /// Pairs of a folded character and a character that folds to it, sorted; empty: not built yet.
    case_pairs: Vec<(char, char)>,
}

impl CharClasses {
    /// Returns the class `\d`, `\s` or `\w`, of Unicode or of ASCII.
    pub(super) fn perl_class(&mut self, kind: &ClassPerlKind, ascii: bool) -> ClassUnicode {
        match kind {
            ClassPerlKind::Digit if ascii => Self::ascii_class(&ClassAsciiKind::Digit),
            ClassPerlKind::Space if ascii => Self::ascii_class(&ClassAsciiKind::Space),
            ClassPerlKind::Word if ascii => Self::ascii_class(&ClassAsciiKind::Word),
            ClassPerlKind::Digit => digit_class(),
            ClassPerlKind::Space => class_of_matching(['\0'..='\u{3000}'], char::is_whitespace),
            ClassPerlKind::Word => self
                .word
                .get_or_insert_with(|| class_of_matching(WORD_RANGES, is_word_char))
                .clone(),
        }
    }

    /// Returns a POSIX class such as `[[:alpha:]]`.
    pub(super) fn ascii_class(kind: &ClassAsciiKind) -> ClassUnicode {
        let ranges: &[(char, char)] = match kind {
            ClassAsciiKind::Alnum => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
            ClassAsciiKind::Alpha => &[('A', 'Z'), ('a', 'z')],
            ClassAsciiKind::Ascii => &[('\0', '\x7f')],
            ClassAsciiKind::Blank => &[('\t', '\t'), (' ', ' ')],
            ClassAsciiKind::Cntrl => &[('\0', '\x1f'), ('\x7f', '\x7f')],
            ClassAsciiKind::Digit => &[('0', '9')],
            ClassAsciiKind::Graph => &[('!', '~')],
            ClassAsciiKind::Lower => &[('a', 'z')],
            ClassAsciiKind::Print => &[(' ', '~')],
            ClassAsciiKind::Punct => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
            ClassAsciiKind::Space => &[('\t', '\r'), (' ', ' ')],
            ClassAsciiKind::Upper => &[('A', 'Z')],
            ClassAsciiKind::Word => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            ClassAsciiKind::Xdigit => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        };
        ClassUnicode::new(ranges.iter().map(|(start, end)| ClassUnicodeRange::new(*start, *end)))
    }

    /// Adds to a class all characters that differ from a member only in case; with `ascii`, only
    /// letters of ASCII.
    pub(super) fn fold_class(&mut self, mut class: ClassUnicode, ascii: bool) -> ClassUnicode {
        if ascii {
            let both = class.ranges().iter().copied().flat_map(|range| {
                let upper = intersect_range(range, 'A', 'Z')
                    .map(|range| map_range(range, char::to_ascii_lowercase));
                let lower = intersect_range(range, 'a', 'z')
                    .map(|range| map_range(range, char::to_ascii_uppercase));
                [upper, lower].into_iter().flatten()
            });
            class.union(&ClassUnicode::new(both.collect::<Vec<_>>()));
            return class;
        }
        if self.case_pairs.is_empty() {
            self.case_pairs = build_case_pairs();
        }
        let mut more = Vec::new();
        for same in self.case_pairs.chunk_by(|one, other| one.0 == other.0) {
            if same.iter().any(|(_, char)| class_contains(&class, *char)) {
                more.extend(same.iter().map(|(_, char)| ClassUnicodeRange::new(*char, *char)));
            }
        }
        class.union(&ClassUnicode::new(more));
        class
    }
}

fn is_word_char(char: char) -> bool {
    regex_syntax::try_is_word_character(char).unwrap_or(false)
}

fn digit_class() -> ClassUnicode {
    ClassUnicode::new(DIGIT_ZEROS.iter().filter_map(|zero| {
        let nine = char::from_u32(zero.checked_add(9)?)?;
        Some(ClassUnicodeRange::new(char::from_u32(*zero)?, nine))
    }))
}

/// Builds the class of the characters in `ranges` for which `has` returns `true`.
fn class_of_matching(
    ranges: impl IntoIterator<Item = RangeInclusive<char>>,
    has: impl Fn(char) -> bool,
) -> ClassUnicode {
    let mut found: Vec<ClassUnicodeRange> = Vec::new();
    for range in ranges {
        let mut first = None;
        let mut last = '\0';
        for char in range {
            if has(char) {
                first.get_or_insert(char);
                last = char;
            } else if let Some(first) = first.take() {
                found.push(ClassUnicodeRange::new(first, last));
            }
        }
        found.extend(first.map(|first| ClassUnicodeRange::new(first, last)));
    }
    ClassUnicode::new(found)
}

/// Builds pairs of a folded character and a character that folds to it, for all characters with a
/// case, sorted.
fn build_case_pairs() -> Vec<(char, char)> {
    let mut same: Vec<(char, char)> = Vec::new();
    for char in CASED_RANGES.into_iter().flatten() {
        let folded = fold_char(char);
        // The standard library may know letters of a newer Unicode version than `is_word_char`.
        if folded != char && is_word_char(char) && is_word_char(folded) {
            same.push((folded, char));
            same.push((folded, folded));
        }
    }
    sort::sort_and_dedup(&mut same);
    same
}

/// Folds the case of a character: its lower case, except for [`SPECIAL_FOLDS`]. A character whose
/// lower case has several characters stays.
fn fold_char(char: char) -> char {
    if let Ok(at) = SPECIAL_FOLDS.binary_search_by_key(&char, |(from, _)| *from) {
        return SPECIAL_FOLDS.get(at).map_or(char, |(_, to)| *to);
    }
    let mut lower = lower_char(char);
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => char,
    }
}

fn class_contains(class: &ClassUnicode, char: char) -> bool {
    let after = class.ranges().partition_point(|range| range.start() <= char);
    let before = after.checked_sub(1).and_then(|at| class.ranges().get(at));
    before.is_some_and(|range| char <= range.end())
}

fn intersect_range(range: ClassUnicodeRange, start: char, end: char) -> Option<ClassUnicodeRange> {
    let (start, end) = (range.start().max(start), range.end().min(end));
    (start <= end).then(|| ClassUnicodeRange::new(start, end))
}

fn map_range(range: ClassUnicodeRange, to: impl Fn(&char) -> char) -> ClassUnicodeRange {
    ClassUnicodeRange::new(to(&range.start()), to(&range.end()))
}
