//! Conditions over 3-byte grams that every match of a regular expression fulfils.
//!
//! Input: the syntax tree of an expression. Output: grams joined by `And` and `Or`, with ASCII
//! letters in lower case. [`super::regex_scan`] uses the condition to skip messages without reading
//! them. Where nothing can be proven, every text fulfils the condition. Elsewhere: the index of
//! grams, and matching the text itself.

use alloc::{vec, vec::Vec};

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use lcm_text::base::sort;

/// Bytes of a gram.
pub(crate) const GRAM_BYTES: usize = 3;
/// Most strings in a set of exact texts, prefixes or suffixes. A larger set is shortened or
/// dropped, because many alternatives say little about a text.
const STRINGS_MAX: usize = 16;
/// Most bytes of a string that joins two parts of an expression. A longer text is described by
/// affixes and grams.
const STRING_BYTES_MAX: usize = 64;
/// Most copies of a repeated part that are joined: four of `(ab){9}`.
const COPIES_MAX: u32 = 4;
/// Most grams required for one string: a few rare grams are nearly as selective as all.
const GRAMS_PER_STRING_MAX: usize = 8;
/// Most grams of a condition, repetitions counted, and most members of an `And` or `Or`. Beyond the
/// limit the condition is weakened, so that it never excludes a match.
const GRAMS_MAX: usize = 64;

/// A condition on the grams of a text.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum GramQuery {
    /// The text contains the gram.
    Gram([u8; GRAM_BYTES]),
    /// All members hold. Without members: every text fulfils the condition.
    And(Vec<GramQuery>),
    /// At least one member holds. Without members: no text fulfils the condition.
    Or(Vec<GramQuery>),
}

impl GramQuery {
    /// Builds the condition that every text with a match fulfils.
    pub(crate) fn from_hir(hir: &Hir) -> Self {
        let mut query = analyse_hir(hir).into_affixes().query;
        let mut left = GRAMS_MAX;
        query.limit_grams(&mut left);
        query.into_normalized()
    }

    const fn match_all() -> Self {
        Self::And(Vec::new())
    }

    /// Returns whether the condition is an empty `And`, which every text fulfils.
    pub(crate) fn is_match_all(&self) -> bool {
        matches!(self, Self::And(list) if list.is_empty())
    }

    /// Lists the distinct grams of the condition, sorted.
    pub(crate) fn list_grams(&self) -> Vec<[u8; GRAM_BYTES]> {
        let mut grams = Vec::new();
        let mut open = vec![self];
        while let Some(query) = open.pop() {
            match query {
                Self::Gram(gram) => grams.push(*gram),
                Self::And(list) | Self::Or(list) => open.extend(list),
            }
        }
        sort::sort_and_dedup(&mut grams);
        grams
    }

    /// Returns the units (blocks of 64 messages) that fulfil the condition, ascending; `None`:
    /// every unit. `of_gram` must return the units that contain a gram, ascending.
    pub(crate) fn select_units<'a>(
        &self,
        of_gram: &dyn Fn([u8; GRAM_BYTES]) -> &'a [u64],
    ) -> Option<Vec<u64>> {
        match self {
            Self::Gram(gram) => Some(of_gram(*gram).to_vec()),
            Self::And(list) => list
                .iter()
                .filter_map(|query| query.select_units(of_gram))
                .reduce(|left, right| intersect_sorted(&left, &right)),
            Self::Or(list) => {
                let mut all = Vec::new();
                for query in list {
                    all.extend(query.select_units(of_gram)?);
                }
                sort::sort_and_dedup_numbers(&mut all);
                Some(all)
            }
        }
    }

    /// Weakens the condition to its first `left` grams, and subtracts the kept grams from `left`.
    /// An `And` loses the other members. An `Or` that would lose a member becomes true for every
    /// text.
    fn limit_grams(&mut self, left: &mut usize) {
        match self {
            Self::Gram(_) => match left.checked_sub(1) {
                Some(rest) => *left = rest,
                None => *self = Self::match_all(),
            },
            Self::And(list) => {
                list.iter_mut().for_each(|query| query.limit_grams(left));
                list.retain(|query| !query.is_match_all());
            }
            Self::Or(list) => {
                list.iter_mut().for_each(|query| query.limit_grams(left));
                if list.iter().any(Self::is_match_all) {
                    *self = Self::match_all();
                }
            }
        }
    }

    /// Flattens and sorts the condition, and removes duplicates. An `And` keeps at most
    /// [`GRAMS_MAX`] members; a larger `Or` becomes true for every text.
    fn into_normalized(self) -> Self {
        let (is_and, list) = match self {
            Self::Gram(_) => return self,
            Self::And(list) => (true, list),
            Self::Or(list) => (false, list),
        };
        let mut flat = Vec::new();
        for query in list.into_iter().map(Self::into_normalized) {
            match query {
                Self::And(inner) if is_and => flat.extend(inner),
                Self::Or(inner) if !is_and => flat.extend(inner),
                query => flat.push(query),
            }
        }
        sort::sort_and_dedup(&mut flat);
        if is_and {
            flat.truncate(GRAMS_MAX);
        } else if flat.len() > GRAMS_MAX || flat.iter().any(Self::is_match_all) {
            return Self::match_all();
        }
        match (flat.pop(), flat.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                flat.extend(last);
                if is_and { Self::And(flat) } else { Self::Or(flat) }
            }
        }
    }
}

/// Returns the numbers that are in both ascending lists.
fn intersect_sorted(left: &[u64], right: &[u64]) -> Vec<u64> {
    let mut right = right.iter().peekable();
    let is_in_both = |number: &u64| {
        while right.next_if(|other| **other < *number).is_some() {}
        right.peek() == Some(&number)
    };
    left.iter().copied().filter(is_in_both).collect()
}

/// Facts about the texts that a part of an expression matches. In all strings, ASCII letters are in
/// lower case.
#[derive(Clone)]
enum LiteralInfo {
    /// The text is exactly one of these strings; empty: the part matches no text.
    Exact(Vec<Vec<u8>>),
    Affixes(LiteralAffixes),
}

/// The text begins with one of `prefixes`, ends with one of `suffixes`, and fulfils `query`.
/// [`LiteralInfo::into_affixes`] shortens affixes to two bytes. With the affixes of a neighbouring
/// part, two bytes form the grams that cross the border.
#[derive(Clone)]
struct LiteralAffixes {
    prefixes: Vec<Vec<u8>>,
    suffixes: Vec<Vec<u8>>,
    query: GramQuery,
}

impl LiteralInfo {
    /// Returns the facts about the empty text.
    fn empty_string() -> Self {
        Self::Exact(vec![Vec::new()])
    }

    fn any_string() -> Self {
        Self::Affixes(LiteralAffixes {
            prefixes: vec![Vec::new()],
            suffixes: vec![Vec::new()],
            query: GramQuery::match_all(),
        })
    }

    fn prefix_strings(&self) -> &[Vec<u8>] {
        match self {
            Self::Exact(strings) => strings,
            Self::Affixes(affixes) => &affixes.prefixes,
        }
    }

    fn suffix_strings(&self) -> &[Vec<u8>] {
        match self {
            Self::Exact(strings) => strings,
            Self::Affixes(affixes) => &affixes.suffixes,
        }
    }

    /// Shortens the strings to affixes of at most two bytes. `query` then requires the grams of the
    /// whole strings.
    fn into_affixes(self) -> LiteralAffixes {
        let mut affixes = match self {
            Self::Affixes(affixes) => affixes,
            Self::Exact(strings) => LiteralAffixes {
                prefixes: strings.clone(),
                query: GramQuery::match_all(),
                suffixes: strings,
            },
        };
        let mut members = vec![affixes.query];
        if affixes.prefixes != affixes.suffixes {
            members.push(require_any_string(&affixes.prefixes));
        }
        members.push(require_any_string(&affixes.suffixes));
        affixes.query = GramQuery::And(members).into_normalized();
        shorten_affixes(&mut affixes.prefixes, |string, length| {
            string.truncate(length);
        });
        shorten_affixes(&mut affixes.suffixes, |string, length| {
            string.drain(..string.len().saturating_sub(length));
        });
        affixes
    }
}

/// Shortens the strings to two bytes with `cut`, and further while more than [`STRINGS_MAX`]
/// distinct strings are left.
fn shorten_affixes(strings: &mut Vec<Vec<u8>>, cut: impl Fn(&mut Vec<u8>, usize)) {
    for length in (0..GRAM_BYTES).rev() {
        strings.iter_mut().for_each(|string| cut(string, length));
        sort::sort_and_dedup(strings);
        if strings.len() <= STRINGS_MAX {
            return;
        }
    }
}

/// Builds a condition that holds for every text that contains one of these strings.
fn require_any_string(strings: &[Vec<u8>]) -> GramQuery {
    if strings.iter().any(|string| string.len() < GRAM_BYTES) {
        return GramQuery::match_all();
    }
    GramQuery::Or(strings.iter().map(|string| require_rarest_grams(string)).collect())
        .into_normalized()
}

/// Builds the condition that a text contains the [`GRAMS_PER_STRING_MAX`] grams of a string that
/// are probably rarest, or all of fewer grams.
fn require_rarest_grams(string: &[u8]) -> GramQuery {
    let mut grams: Vec<(u32, [u8; GRAM_BYTES])> = string
        .windows(GRAM_BYTES)
        .filter_map(|window| window.try_into().ok())
        .map(|gram: [u8; GRAM_BYTES]| (gram.iter().map(|byte| byte_frequency(*byte)).sum(), gram))
        .collect();
    sort::sort_and_dedup(&mut grams);
    grams.truncate(GRAMS_PER_STRING_MAX);
    GramQuery::And(grams.into_iter().map(|(_, gram)| GramQuery::Gram(gram)).collect())
        .into_normalized()
}

/// Returns how common a byte is in text, in 28 ranks. A lower-case letter of English and the space
/// have 1 (rarest) to 27 (most frequent), all other bytes 0.
fn byte_frequency(byte: u8) -> u32 {
    const COMMON_LAST: &[u8] = b"zqxjkvbpygfwmucldrhsnioate ";
    let place = COMMON_LAST.iter().position(|common| *common == byte).map_or(0, |place| place + 1);
    lcm_text::base::int::to_u32(place)
}

fn analyse_hir(hir: &Hir) -> LiteralInfo {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => LiteralInfo::empty_string(),
        HirKind::Literal(literal) => LiteralInfo::Exact(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => analyse_class(class),
        HirKind::Capture(capture) => analyse_hir(&capture.sub),
        HirKind::Repetition(repetition) => analyse_repetition(repetition),
        HirKind::Concat(list) => {
            list.iter().map(analyse_hir).reduce(concat_infos).unwrap_or(LiteralInfo::empty_string())
        }
        HirKind::Alternation(list) => list
            .iter()
            .map(analyse_hir)
            .reduce(union_infos)
            .unwrap_or_else(|| LiteralInfo::Exact(Vec::new())),
    }
}

/// Lists the characters of a class as exact strings. A class of more than [`STRINGS_MAX`]
/// characters tells nothing about the text.
fn analyse_class(class: &Class) -> LiteralInfo {
    let mut strings: Vec<Vec<u8>> = Vec::new();
    match class {
        Class::Unicode(class) => {
            let size = class.iter().map(|range| range.len()).sum::<usize>();
            if size > STRINGS_MAX {
                return LiteralInfo::any_string();
            }
            for c in class.iter().flat_map(|range| range.start()..=range.end()) {
                strings.push(c.to_ascii_lowercase().encode_utf8(&mut [0; 4]).as_bytes().to_vec());
            }
        }
        Class::Bytes(class) => {
            let size = class.iter().map(|range| range.len()).sum::<usize>();
            if size > STRINGS_MAX {
                return LiteralInfo::any_string();
            }
            for byte in class.iter().flat_map(|range| range.start()..=range.end()) {
                strings.push(vec![byte.to_ascii_lowercase()]);
            }
        }
    }
    sort::sort_and_dedup(&mut strings);
    LiteralInfo::Exact(strings)
}

fn analyse_repetition(repetition: &Repetition) -> LiteralInfo {
    if repetition.max == Some(0) {
        return LiteralInfo::empty_string();
    }
    if repetition.min == 0 {
        return match repetition.max {
            Some(1) => union_infos(analyse_hir(&repetition.sub), LiteralInfo::empty_string()),
            _ => LiteralInfo::any_string(),
        };
    }
    let copies = repetition.min.min(COPIES_MAX);
    let one = analyse_hir(&repetition.sub);
    let all = (1..copies).fold(one.clone(), |all, _| concat_infos(all, one.clone()));
    if repetition.max == Some(copies) {
        return all;
    }
    // The text begins and ends with `copies` copies; the middle is unknown.
    LiteralInfo::Affixes(all.into_affixes())
}

/// Joins every string of `left` with every string of `right`. `None`: the result would have over
/// [`STRINGS_MAX`] strings, or one over [`STRING_BYTES_MAX`] bytes.
fn cross_product(left: &[Vec<u8>], right: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if left.len().saturating_mul(right.len()) > STRINGS_MAX {
        return None;
    }
    let mut out = Vec::new();
    for first in left {
        for second in right {
            let string = [first.as_slice(), second.as_slice()].concat();
            if string.len() > STRING_BYTES_MAX {
                return None;
            }
            out.push(string);
        }
    }
    sort::sort_and_dedup(&mut out);
    Some(out)
}

fn concat_infos(left: LiteralInfo, right: LiteralInfo) -> LiteralInfo {
    if let (LiteralInfo::Exact(first), LiteralInfo::Exact(second)) = (&left, &right)
        && let Some(both) = cross_product(first, second)
    {
        return LiteralInfo::Exact(both);
    }
    let prefixes = match &left {
        LiteralInfo::Exact(strings) => cross_product(strings, right.prefix_strings()),
        LiteralInfo::Affixes(_) => None,
    };
    let suffixes = match &right {
        LiteralInfo::Exact(strings) => cross_product(left.suffix_strings(), strings),
        LiteralInfo::Affixes(_) => None,
    };
    let (left, right) = (left.into_affixes(), right.into_affixes());
    let across = cross_product(&left.suffixes, &right.prefixes);
    let across = across.map_or(GramQuery::match_all(), |strings| require_any_string(&strings));
    let prefixes = prefixes.unwrap_or(left.prefixes);
    let suffixes = suffixes.unwrap_or(right.suffixes);
    let query = GramQuery::And(vec![left.query, right.query, across]).into_normalized();
    LiteralInfo::Affixes(
        LiteralInfo::Affixes(LiteralAffixes { prefixes, suffixes, query }).into_affixes(),
    )
}

fn union_infos(left: LiteralInfo, right: LiteralInfo) -> LiteralInfo {
    match (left, right) {
        (LiteralInfo::Exact(mut strings), LiteralInfo::Exact(more))
            if strings.len() + more.len() <= STRINGS_MAX =>
        {
            strings.extend(more);
            sort::sort_and_dedup(&mut strings);
            LiteralInfo::Exact(strings)
        }
        (left, right) => {
            let (mut left, right) = (left.into_affixes(), right.into_affixes());
            left.prefixes.extend(right.prefixes);
            left.suffixes.extend(right.suffixes);
            let query = GramQuery::Or(vec![left.query, right.query]).into_normalized();
            LiteralInfo::Affixes(
                LiteralInfo::Affixes(LiteralAffixes { query, ..left }).into_affixes(),
            )
        }
    }
}

#[cfg(test)]
mod tests;
