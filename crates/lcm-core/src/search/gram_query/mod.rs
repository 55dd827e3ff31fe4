//! What a text must hold for a regular expression to match in it: 3-grams joined by and and or.
//!
//! In: the syntax tree of an expression. Out: a condition over the 3-byte sequences of a text,
//! ASCII letters lower-cased, that every text with a match fulfils. It is conservative: where
//! nothing can be proven it is fulfilled by every text. Not here: where the grams are kept, and
//! whether a text that fulfils the condition matches.

use alloc::{vec, vec::Vec};

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use lcm_text::base::sort;

/// Bytes of one gram.
pub(crate) const GRAM_BYTES: usize = 3;
/// Strings of one set that are followed; more say little about a text.
const STRINGS_MAX: usize = 16;
/// Bytes of one string that is known as a whole.
const STRING_BYTES_MAX: usize = 64;
/// Copies of a counted repetition that are followed.
const COPIES_MAX: u32 = 4;
/// Grams of one string that are asked for: a few rare ones say what all of them would.
const GRAMS_PER_STRING_MAX: usize = 8;
/// Grams of one query; what is beyond them is not asked for.
const GRAMS_MAX: usize = 64;

/// A condition on the grams of a text.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum GramQuery {
    /// The text holds it.
    Gram([u8; GRAM_BYTES]),
    /// All of them; of none: every text.
    And(Vec<GramQuery>),
    /// One of them; of none: no text.
    Or(Vec<GramQuery>),
}

impl GramQuery {
    /// The condition for a match of this expression.
    pub(crate) fn from_hir(hir: &Hir) -> Self {
        let mut query = analyse_hir(hir).into_affixes().query;
        let mut left = GRAMS_MAX;
        query.limit_grams(&mut left);
        query.into_normalized()
    }

    const fn match_all() -> Self {
        Self::And(Vec::new())
    }

    /// Whether every text fulfils it.
    pub(crate) fn is_match_all(&self) -> bool {
        matches!(self, Self::And(list) if list.is_empty())
    }

    /// The grams in it, in order, each once; at most 64.
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

    /// The units that fulfil it, in order, given those of each gram; `None`: all there are.
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

    /// Leaves out what is over the bound: of an `And` its last members, of an `Or` all of it.
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

    /// The same, flattened and in order, each member once, and not beyond the bound of grams.
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

/// The numbers that stand in both ordered lists.
fn intersect_sorted(left: &[u64], right: &[u64]) -> Vec<u64> {
    let mut right = right.iter().peekable();
    let is_in_both = |number: &u64| {
        while right.next_if(|other| **other < *number).is_some() {}
        right.peek() == Some(&number)
    };
    left.iter().copied().filter(is_in_both).collect()
}

/// What is known of the texts that a part of an expression matches. All strings are lower-cased.
#[derive(Clone)]
enum LiteralInfo {
    /// It is one of these.
    Exact(Vec<Vec<u8>>),
    Affixes(LiteralAffixes),
}

/// It begins with one of `prefixes`, ends with one of `suffixes`, and fulfils `query`. At most two
/// bytes each: with the neighbours' they make up the grams across the border.
#[derive(Clone)]
struct LiteralAffixes {
    prefixes: Vec<Vec<u8>>,
    suffixes: Vec<Vec<u8>>,
    query: GramQuery,
}

impl LiteralInfo {
    /// Nothing but the empty text.
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

    /// The same with short affixes.
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

/// Cuts strings to less than a gram, and to still less while they are too many.
fn shorten_affixes(strings: &mut Vec<Vec<u8>>, cut: impl Fn(&mut Vec<u8>, usize)) {
    for length in (0..GRAM_BYTES).rev() {
        strings.iter_mut().for_each(|string| cut(string, length));
        sort::sort_and_dedup(strings);
        if strings.len() <= STRINGS_MAX {
            return;
        }
    }
}

/// That a text holds one of these strings.
fn require_any_string(strings: &[Vec<u8>]) -> GramQuery {
    if strings.iter().any(|string| string.len() < GRAM_BYTES) {
        return GramQuery::match_all();
    }
    GramQuery::Or(strings.iter().map(|string| require_rarest_grams(string)).collect())
        .into_normalized()
}

/// That a text holds the rarest grams of this string.
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

/// How common a byte is in text and program code, roughly: the order of letters in English.
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

/// Each character of a small class; of a large one nothing is known.
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
    // It begins with so many copies and ends with so many; what is between is not known.
    LiteralInfo::Affixes(all.into_affixes())
}

/// Every string of `left` followed by every string of `right`; `None`: too many or too long.
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
