//! Checks the claims of an answer against the source: names, numbers, dates and exit codes.
//!
//! Input: a source, then an answer. Output: a finding for each claim that the source does not
//! support. The module `failures` finds omitted failures; `numbers` compares numbers.

use alloc::vec::Vec;
use core::hash::BuildHasherDefault;

use hashbrown::HashMap;

use super::{
    finding::{Finding, FindingKind},
    numbers::{self, ParsedNumber, SourceNumbers},
    source_index::{FoldedText, SourceTextIndex},
    spelled_numbers::SpelledNumberReader,
};
use crate::{
    base::{int, sort},
    summary::offline_summary::{
        term_hash::{TermHasher, fnv_hash},
        term_scanner::{TermClass, TermOccurrence, scan_terms},
    },
};

/// Most findings about claims; further claims are not checked.
const FINDINGS_MAX: usize = 12;
/// Common terms with digits that a summary may use although its source does not.
const TERMS_OF_ART: [&str; 8] = ["24/7", "utf-8", "utf8", "k8s", "e2e", "i18n", "x86", "l10n"];
/// Words after which a number is approximate.
#[rustfmt::skip]
const APPROXIMATION_WORDS: [&str; 18] = [
    "about", "around", "roughly", "approximately", "approx", "nearly", "almost", "over", "some",
    "under", "than", "least", "most", "etwa", "rund", "ca", "knapp", "circa",
];
/// Second parts of compound adjectives, such as `rust-based`, that a summary may add to a name.
#[rustfmt::skip]
const ADJECTIVE_ENDINGS: [&str; 14] = [
    "based", "only", "style", "like", "specific", "related", "compatible", "backed", "driven",
    "enabled", "side", "level", "aware", "wide",
];
/// Words before an exit code. Up to two of `code`, `status`, `with`, `of` and `a` may be between
/// the word and the code; after `returned`, at least one.
const EXIT_CODE_WORDS: [&str; 12] = [
    "exit",
    "exited",
    "exits",
    "exiting",
    "rc",
    "returncode",
    "exitcode",
    "exit_code",
    "exit-code",
    "exit_status",
    "exit-status",
    "returned",
];
const EXIT_CODE_PHRASES: [&str; 3] = [
    "\u{9000}\u{51fa}\u{7801}",
    "\u{7d42}\u{4e86}\u{30b3}\u{30fc}\u{30c9}",
    "\u{9000}\u{51fa}\u{4ee3}\u{7801}",
];
/// Names of months in lower case, by month. A capitalised word also names a month if its first
/// three letters are one of these names.
const MONTHS: [&[&str]; 12] = [
    &["jan", "janvier", "enero"],
    &["feb", "f\u{e9}vrier", "febrero"],
    &["mar", "m\u{e4}rz", "mars", "marzo"],
    &["apr", "avril", "abril"],
    &["may", "mai", "mayo"],
    &["jun", "juin", "junio"],
    &["jul", "juillet", "julio"],
    &["aug", "ao\u{fb}t", "agosto"],
    &["sep", "septembre", "septiembre"],
    &["oct", "okt", "octobre", "octubre"],
    &["nov", "novembre", "noviembre"],
    &["dec", "dez", "d\u{e9}cembre", "diciembre"],
];

/// The facts of a source, indexed for lookup.
#[derive(Debug)]
pub(super) struct SourceFacts {
    index: SourceTextIndex,
    values: SourceNumbers,
    /// Exit codes of the source, ascending.
    exit_codes: Vec<u64>,
    /// For each month, whether the source names the month.
    months: [bool; 12],
}

impl SourceFacts {
    /// Reads a source.
    pub(super) fn new(source: &str) -> Self {
        let mut exit_codes = Vec::new();
        let mut months = [false; 12];
        let mut spelled = SpelledNumberReader::default();
        for line in source.lines() {
            let mut near = PrecedingWords::default();
            if line.starts_with(|c: char| c.is_ascii_digit()) {
                // `scan_terms` may skip digits as a line number, so a spelled number is ended here.
                spelled.end_number();
            }
            scan_terms(line, &mut |word| {
                mark_months(word.text, &mut months);
                spelled.read_word(word.text);
                if near.is_exit_code(line, &word) {
                    exit_codes.extend(word.text.parse::<u64>().ok());
                }
                near.push_word(word.text);
            });
        }
        sort::sort_and_dedup_numbers(&mut exit_codes);
        let values = SourceNumbers::new(source, spelled.finish(source));
        Self { index: SourceTextIndex::new(source), values, exit_codes, months }
    }

    /// Returns findings for the claims of an answer that the source does not support, at most the
    /// first [`FINDINGS_MAX`].
    pub(super) fn find_unsupported<'a>(&self, answer: &'a str) -> Vec<Finding> {
        // The values are unused: the map has the type of the others, so that its code is theirs.
        let mut seen: HashMap<u64, u32, BuildHasherDefault<TermHasher>> = HashMap::default();
        let mut findings: Vec<Finding> = Vec::new();
        for line in answer.lines() {
            let mut near = PrecedingWords::default();
            let line = strip_list_number(line);
            // `scan_terms` would skip a number before a colon or bar as a line number, but in an
            // answer the number is a claim. So the number and the rest are scanned separately.
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = line.split_at_checked(digits).unwrap_or(("", line));
            let mut word = |word: TermOccurrence<'a>| {
                let claim = SummaryClaim::from_word(line, &word, &near);
                near.push_word(word.text);
                let Some(claim) = claim.filter(|_| findings.len() < FINDINGS_MAX) else { return };
                // A name is checked once. A number is checked each time, as its unit can differ.
                let key = fnv_hash(claim.text.as_bytes()) ^ fnv_hash(&[claim.kind.as_u8()]);
                let is_plain = !matches!(claim.kind, FindingKind::Number | FindingKind::ExitCode);
                if seen.insert(key, 0).is_some() && is_plain {
                    return;
                }
                if !self.supports_claim(&claim) {
                    let finding = Finding::new(claim.kind, claim.text);
                    if !findings.contains(&finding) {
                        findings.push(finding);
                    }
                }
            };
            if rest.starts_with([':', '|']) {
                scan_terms(number, &mut word);
                scan_terms(rest, &mut word);
            } else {
                scan_terms(line, &mut word);
            }
        }
        findings
    }

    fn supports_claim(&self, claim: &SummaryClaim<'_>) -> bool {
        match claim.kind {
            FindingKind::ExitCode => {
                claim.text.parse().is_ok_and(|code| self.exit_codes.binary_search(&code).is_ok())
            }
            FindingKind::Number => {
                let date = || ClaimedDate::parse_day_and_month(claim.text);
                self.supports_number(claim) || date().is_some_and(|date| self.supports_date(&date))
            }
            FindingKind::Version => {
                let has = |text: &str| self.index.contains_whole(&FoldedText::from_text(text).text);
                has(claim.text) || (claim.text.contains('-') && claim.text.split('-').all(has))
            }
            _ => self.supports_name(claim.text, claim.rest),
        }
    }

    /// Returns whether a name occurs: whole, as two pieces that each occur, or without its ending.
    /// Of a hash or a name before `...`, the beginning is enough.
    fn supports_name(&self, text: &str, rest: &str) -> bool {
        let folded = FoldedText::from_text(text).text;
        if self.index.contains_whole(&folded) {
            return true;
        }
        let is_hash = text.len() >= 7
            && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            && text.bytes().any(|byte| byte.is_ascii_digit());
        let is_cut = rest.starts_with("...") || rest.starts_with('\u{2026}');
        if (is_hash || is_cut) && self.index.contains_prefix(&folded) {
            return true;
        }
        // Without an ending: plurals, and longer forms of a name (`PostgreSQL` of `postgres`).
        let letters = text.bytes().all(|byte| byte.is_ascii_alphabetic());
        let endings = if letters { 1..=3 } else { 1..=1 };
        let shorter = |cut: usize| folded.get(..folded.len().saturating_sub(cut));
        let plural = letters || text.ends_with('s');
        if plural
            && endings.filter_map(shorter).any(|s| s.len() >= 5 && self.index.contains_whole(s))
        {
            return true;
        }
        text.char_indices().any(|(at, c)| {
            if c.is_alphanumeric() || c == '_' {
                return false;
            }
            let (left, right) = text.split_at_checked(at).unwrap_or(("", ""));
            self.supports_part(left) && self.supports_part(right.trim_start_matches(c))
        })
    }

    /// Returns whether a piece of a name occurs by itself, is empty, or is one of
    /// [`ADJECTIVE_ENDINGS`].
    fn supports_part(&self, part: &str) -> bool {
        let part = part.trim_matches(|c: char| !c.is_alphanumeric());
        if part.is_empty() || ADJECTIVE_ENDINGS.iter().any(|word| word.eq_ignore_ascii_case(part)) {
            return true;
        }
        if let Some(figure) =
            numbers::parse_number(part).filter(|figure| figure.length == part.len())
        {
            return self.values.contains_number(&figure, numbers::parse_unit(""), false);
        }
        let folded = FoldedText::from_text(part).text;
        folded.len() >= 2 && self.index.contains_whole(&folded)
    }

    fn supports_number(&self, claim: &SummaryClaim<'_>) -> bool {
        let text = claim.text;
        let compound = text.contains(|c: char| !c.is_ascii_digit());
        let groups = text.split(|c: char| !c.is_ascii_digit()).count();
        if compound && groups > 2 && self.index.contains_whole(&FoldedText::from_text(text).text) {
            return true;
        }
        if let Some(date) = ClaimedDate::parse_full_date(text) {
            return self.supports_date(&date);
        }
        let mut at = 0;
        let mut first = true;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if !rest.starts_with(|c: char| c.is_ascii_digit()) {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            let after = |length: usize| match rest.get(length..) {
                Some("") | None => claim.rest,
                Some(rest) => rest,
            };
            if let Some((minute, length)) = numbers::parse_time_of_day(rest) {
                if !self.values.contains_time(minute, after(length)) {
                    return false;
                }
                at += length;
                continue;
            }
            // A number pair that only looks like a time must occur literally.
            let clock = numbers::looks_like_time(rest);
            let Some(figure) = numbers::parse_number(rest).filter(|_| !clock) else {
                return self.index.contains_whole(&FoldedText::from_text(text).text);
            };
            if !self.supports_figure(&figure, after(figure.length), claim, first) {
                return false;
            }
            at += figure.length.max(1);
            first = false;
        }
        true
    }

    fn supports_figure(
        &self,
        figure: &ParsedNumber,
        rest: &str,
        claim: &SummaryClaim<'_>,
        first: bool,
    ) -> bool {
        // In a range such as `5-10 MB`, the unit follows the second number.
        let behind = if rest.starts_with(['-', '/']) { claim.rest } else { rest };
        let unit = numbers::parse_unit(behind);
        let is_measured = unit.is_measure || (first && claim.has_number_sign);
        if numbers::is_small_count(figure) && !is_measured {
            return true;
        }
        self.values.contains_number(figure, unit, claim.is_approximate)
    }

    /// Returns whether the source has the day: in digits, in either order of day and month, or with
    /// the name of the month. The year must occur only beside the name of a month.
    fn supports_date(&self, date: &ClaimedDate) -> bool {
        let (month, day) = (date.month, date.day);
        let forms = [
            alloc::format!("{month:02}.{day:02}"),
            alloc::format!("{month}.{day}"),
            alloc::format!("{day:02}.{month:02}"),
            alloc::format!("{day}.{month}"),
        ];
        let has = |number: u32| {
            let figure = numbers::parse_number(&alloc::format!("{number}"));
            figure.is_some_and(|figure| {
                self.values.contains_number(&figure, numbers::parse_unit(""), false)
            })
        };
        // Either number can be the month, because the order differs between countries.
        let is_named = |number: u32, day: u32| {
            let named = int::to_usize(u64::from(number)).checked_sub(1);
            named.and_then(|at| self.months.get(at)).is_some_and(|named| *named && has(day))
        };
        let by_name =
            || (is_named(month, day) || is_named(day, month)) && date.year.is_none_or(has);
        forms.iter().any(|form| self.index.contains_whole(form)) || by_name()
    }
}

/// A piece of an answer that the source must support.
struct SummaryClaim<'a> {
    kind: FindingKind,
    text: &'a str,
    /// The rest of the line behind the piece.
    rest: &'a str,
    /// Whether a number sign or a currency sign precedes the piece.
    has_number_sign: bool,
    /// Whether the answer calls the number approximate, by a word or a sign.
    is_approximate: bool,
}

impl<'a> SummaryClaim<'a> {
    /// Returns the claim that a word of a line makes; `None`: an ordinary word.
    fn from_word(
        line: &'a str,
        word: &TermOccurrence<'a>,
        near: &PrecedingWords<'a>,
    ) -> Option<Self> {
        let from = word.text.as_ptr().addr().saturating_sub(line.as_ptr().addr());
        let before = line.get(..from).unwrap_or("");
        let text = strip_possessive(word.text);
        let rest = line.get(from + text.len()..).unwrap_or("");
        let claim = |kind| {
            let sign = before.chars().next_back().unwrap_or(' ');
            let is_marked =
                matches!(sign, '#' | '$' | '\u{20ac}' | '\u{a3}' | '\u{a5}' | '\u{ffe5}');
            let is_about = matches!(sign, '~' | '\u{2248}' | '>' | '<' | '\u{7ea6}' | '\u{7d04}')
                || near.is_approximate()
                || rest.starts_with('+');
            Some(Self { kind, text, rest, has_number_sign: is_marked, is_approximate: is_about })
        };
        if TERMS_OF_ART.iter().any(|term| term.eq_ignore_ascii_case(text)) {
            return None;
        }
        let has_letters = text.chars().any(char::is_alphabetic);
        if !has_letters && text.bytes().any(|byte| byte.is_ascii_digit()) {
            if near.is_exit_code(line, word) {
                return claim(FindingKind::ExitCode);
            }
            // Digits with two or more points are a version, unless they are a date.
            let dots = text.bytes().filter(|byte| *byte == b'.').count();
            return claim(if dots >= 2 && ClaimedDate::parse_full_date(text).is_none() {
                FindingKind::Version
            } else {
                FindingKind::Number
            });
        }
        if let Some(number) = strip_unit(text) {
            let rest = line.get(from + number.len()..).unwrap_or("");
            return claim(FindingKind::Number).map(|claim| Self { text: number, rest, ..claim });
        }
        claim(classify_name(text, before, rest, word.class)?)
    }
}

/// Returns the kind of name that a word is; `None`: an ordinary word.
fn classify_name(text: &str, before: &str, rest: &str, class: TermClass) -> Option<FindingKind> {
    if text.contains("://") {
        return Some(FindingKind::Url);
    }
    let version = text.strip_prefix(['v', 'V']).is_some_and(|digits| {
        digits.contains('.') && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    });
    if version {
        return Some(FindingKind::Version);
    }
    // A backslash of an escape such as `\n` is no path separator.
    let is_escape = text.contains('\\') && text.split('\\').any(|part| part.len() < 2);
    if is_escape {
        return None;
    }
    let slashed = text.contains(['/', '\\']);
    let rooted = before.ends_with(['/', '\\']) || (slashed && rest.starts_with('/'));
    let quoted = before.ends_with('`') && rest.trim_start_matches("()").starts_with('`');
    let is_name = class == TermClass::Identifier;
    match text.rsplit_once('.') {
        _ if (slashed && is_name) || (rooted && text.len() > 2) => Some(FindingKind::Path),
        Some((_, ending)) if is_name && is_file_extension(ending) => Some(FindingKind::Path),
        _ if is_name || (quoted && text.chars().count() > 2 && class != TermClass::Gram) => {
            Some(FindingKind::Identifier)
        }
        _ => None,
    }
}

fn is_file_extension(text: &str) -> bool {
    (1..=5).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Returns the digits of a number that is joined to its unit or to words, such as `250ms`, `3rd` or
/// `1,200-row`; `None`: any other text.
fn strip_unit(text: &str) -> Option<&str> {
    let length = numbers::parse_number(text)?.length;
    let (number, rest) = text.split_at_checked(length)?;
    let word = rest.strip_prefix('-').unwrap_or(rest);
    let words = rest.starts_with('-') && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    (numbers::is_unit_or_suffix(word) || (words && word.len() > 2)).then_some(number)
}

fn strip_possessive(text: &str) -> &str {
    let stripped = text.strip_suffix("'s").or_else(|| text.strip_suffix("\u{2019}s"));
    stripped.unwrap_or(text)
}

/// The last three words before a word of a line; empty at the beginning of the line.
#[derive(Clone, Copy, Debug, Default)]
struct PrecedingWords<'a> {
    words: [&'a str; 3],
}

impl<'a> PrecedingWords<'a> {
    fn push_word(&mut self, word: &'a str) {
        let [_, second, third] = self.words;
        self.words = [second, third, word];
    }

    fn is_approximate(&self) -> bool {
        let [_, second, third] = self.words;
        APPROXIMATION_WORDS.iter().any(|about| about.eq_ignore_ascii_case(third))
            || (third.len() == 1
                && APPROXIMATION_WORDS.iter().any(|about| about.eq_ignore_ascii_case(second)))
    }

    /// Returns whether `word`, which follows these words on `line`, is an exit code.
    fn is_exit_code(&self, line: &str, word: &TermOccurrence<'_>) -> bool {
        if !word.text.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let [first, second, third] = self.words;
        let is = |word: &str| EXIT_CODE_WORDS.iter().any(|exit| exit.eq_ignore_ascii_case(word));
        let link = ["code", "status", "with", "of", "a"];
        let links = |word: &str| link.iter().any(|known| known.eq_ignore_ascii_case(word));
        // `returned` alone is also used for values.
        let ends = is(third) && !third.eq_ignore_ascii_case("returned");
        if ends || (links(third) && (is(second) || (links(second) && is(first)))) {
            return true;
        }
        if line.is_ascii() {
            return false;
        }
        let from = word.text.as_ptr().addr().saturating_sub(line.as_ptr().addr());
        let before = line.get(..from).unwrap_or("");
        let before = before.trim_end_matches([' ', ':', '\u{ff1a}', '\u{4e3a}', '\u{662f}']);
        EXIT_CODE_PHRASES.iter().any(|sign| before.ends_with(sign))
    }
}

/// A day that an answer writes in digits. Day and month may be exchanged.
struct ClaimedDate {
    /// `None`: the answer gives no year.
    year: Option<u32>,
    month: u32,
    day: u32,
}

impl ClaimedDate {
    /// Parses a day with its year: `2026-05-03`, `03.05.2026` or `2026/5/3`; `None`: any other
    /// text.
    fn parse_full_date(text: &str) -> Option<Self> {
        let mark = ['-', '.', '/'].into_iter().find(|mark| text.contains(*mark))?;
        let mut parts = text.split(mark);
        let numbers = [parts.next()?, parts.next()?, parts.next()?];
        let [Ok(first), Ok(second), Ok(third)] = numbers.map(str::parse::<u32>) else {
            return None;
        };
        let date = match (first, second, third) {
            (1900..=2200, month, day) => Self { year: Some(first), month, day },
            (day, month, 1900..=2200) => Self { year: Some(third), month, day },
            _ => return None,
        };
        let fits = date.month.min(date.day) <= 12 && date.month.max(date.day) <= 31;
        (fits && parts.next().is_none()).then_some(date)
    }
}

impl ClaimedDate {
    /// Parses a day without a year: `24.01` or `5/3`; `None`: any other text.
    fn parse_day_and_month(text: &str) -> Option<Self> {
        let (first, second) = text.split_once(['.', '/'])?;
        if first.len() > 2 || second.len() > 2 {
            return None;
        }
        let (day, month): (u32, u32) = (first.parse().ok()?, second.parse().ok()?);
        let fits = day.min(month) <= 12 && day.max(month) <= 31 && day.min(month) > 0;
        fits.then_some(Self { year: None, month, day })
    }
}

/// Marks the months that a word may name.
fn mark_months(word: &str, months: &mut [bool; 12]) {
    let Some(first) = word.bytes().next().filter(|_| (3..=10).contains(&word.len())) else {
        return;
    };
    let initial = first.to_ascii_lowercase();
    let head = word.get(..3).filter(|_| first.is_ascii_uppercase());
    let is_named = |name: &&str| {
        name.as_bytes().first() == Some(&initial)
            && (name.eq_ignore_ascii_case(word)
                || head.is_some_and(|head| name.eq_ignore_ascii_case(head)))
    };
    for (month, names) in months.iter_mut().zip(&MONTHS) {
        *month |= names.iter().any(is_named);
    }
}

/// Returns a line without the list number at its beginning, such as `1. ` or `1) `.
fn strip_list_number(line: &str) -> &str {
    let bare = line.trim_start();
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let rest = bare.get(digits..).unwrap_or("");
    if (1..=3).contains(&digits) && (rest.starts_with(". ") || rest.starts_with(") ")) {
        rest.get(2..).unwrap_or("")
    } else {
        line
    }
}
