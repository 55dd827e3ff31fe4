//! What was typed as text: words, phrases, what must and must not be there, and filters.
//!
//! In: the text of a query. Out: the index terms it stands for and how they are joined. Nothing
//! that is typed is refused: what has no meaning here is text. Only quotes, a leading `+` or `-`,
//! and the filters `speaker: tool: role: since: before:` have one. Not here: the analysis of words,
//! which is that of the stored texts, and any reading.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::ops::Range;

use lcm_loops::stemmer;

use super::{
    SearchField, each_term, feature_terms, has_positions, query_dates::QueryDate,
    time_window::TimeWindow,
};
use lcm_text::{
    base::{sort, time},
    message::Role,
    types::api::Timestamp,
};

/// Kinds of terms, their first byte.
const WORD: u8 = b'w';
const STEM: u8 = b's';
const IDENTIFIER: u8 = b'i';
const CJK: u8 = b'c';
const TOOL: u8 = b'n';
/// Distinct terms that one query may use. A word has up to seven: as typed, its forms, and a name.
pub(crate) const TERMS_MAX: usize = 128;
/// Phrases and words that must or must not be there, and words of a long text that may: who means
/// more has pasted a text.
const ITEMS_MAX: usize = 64;
/// Phrases that may be there and of which the order of terms counts: of more, full text has no time
/// to look at the order, and the lists of their terms would be read in vain.
const PHRASES_MAX: usize = 8;
/// Bytes of a text that are read for words: thousands of words say no more.
const TEXT_BYTES_MAX: usize = 32 << 10;
/// Words that say nothing of what is asked for, in order. They are left out of a query that has
/// other words; `or` is kept, because it may be meant as it stands.
const STOP_WORDS: &str = "\
a about after all also am an and any are as at be been before but by can could d did do does done \
for from had has have he her here him his how i if in into is it its just ll m may me might must my \
no not of on our over re s she should so some t than that the their them then there these they this \
those to too us ve very was we were what when where which who whom whose why will with would you \
your";
/// Characters of an unquoted run of CJK characters that must stand as they are typed. A longer one
/// is a sentence rather than a word, and each pair of its characters counts by itself.
const CJK_WORD_CHARACTERS_MAX: usize = 4;

/// Letters and digits from which on a word is looked for as a name in camel case, too: `ebay` is
/// `eBay`.
const CAMEL_CASE_BYTES_MIN: usize = 3;
/// Words up to which each is looked for in all its forms and as a name, and up to which as typed
/// and by its stem; of more as typed alone, so that the last of a long question count, too.
const WORDS_WITH_FORMS_MAX: usize = 16;
const WORDS_WITH_STEMS_MAX: usize = 48;
/// Bytes of a text whose words are counted for that.
const TEXT_BYTES_COUNTED_MAX: usize = 4 << 10;
/// Terms of one phrase; what a passage of up to ten times as many begins with says as much.
const PHRASE_TERMS_MAX: usize = 48;

/// Whether a document has to hold an item.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Presence {
    /// It counts when it does.
    Should,
    Must,
    MustNot,
}

/// One thing to look for: a term, or terms in a fixed order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct QueryItem {
    pub(crate) presence: Presence,
    /// Numbers of the terms in [`TextQuery::terms`] that a document must hold.
    pub(crate) terms: Vec<usize>,
    /// Terms that must stand at these distances from each other; empty: one term says it all.
    pub(crate) order: Vec<(Vec<u8>, u32)>,
    /// Of a word: the terms of it and its other forms, any of which will do. Empty: no word.
    pub(crate) forms: Vec<usize>,
    /// Of a word: its number in [`TextQuery::names`].
    pub(crate) name: Option<usize>,
}

impl QueryItem {
    /// One that may be there.
    fn from_terms(terms: Vec<usize>) -> Self {
        Self { presence: Presence::Should, terms, order: Vec::new(), forms: Vec::new(), name: None }
    }
}

/// What a filter compares.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FilterProperty {
    Role(Role),
    /// Number of the term of the tool's name.
    Tool(usize),
    /// Who said the message.
    Speaker {
        /// As `speaker` has it, in lower case.
        name: String,
        /// Numbers of the terms of its words. None: it has no words and is compared as a whole.
        words: Vec<usize>,
    },
}

/// A condition that is no text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct QueryFilter {
    pub(crate) property: FilterProperty,
    /// Whether it must not be so.
    pub(crate) is_negated: bool,
}

/// A query as it is understood.
#[derive(Debug, Default)]
pub(crate) struct TextQuery {
    /// [`signs::SIGNS`], then the terms of all items and filters, each once.
    pub(crate) terms: Vec<Vec<u8>>,
    pub(crate) items: Vec<QueryItem>,
    pub(crate) filters: Vec<QueryFilter>,
    pub(crate) window: TimeWindow,
    /// The date that it speaks of.
    pub(crate) date: Option<QueryDate>,
    /// Terms of the speakers that the words may be names of.
    pub(crate) names: Vec<usize>,
    /// Words, identifiers and phrases that were typed, apart from those that say nothing.
    words_typed: usize,
    /// Some words say nothing, or there is a question mark.
    is_prose: bool,
    /// More terms were typed than are used.
    pub(crate) is_cut: bool,
    /// Of a phrase only the beginning is looked for.
    has_shortened_phrase: bool,
    /// Among them are conditions: what is found would not fit what was typed.
    pub(crate) has_dropped_conditions: bool,
}

impl TextQuery {
    /// Understands a text that is asked at `now`.
    pub(crate) fn parse_at(text: &str, now: Timestamp) -> Self {
        Self { date: QueryDate::from_text(text, now), ..Self::parse(text) }
    }

    /// Understands a text, but for the date that it may speak of.
    pub(crate) fn parse(text: &str) -> Self {
        let mut reading = QueryParser::default();
        reading.query.terms = feature_terms::FEATURES.iter().map(|sign| sign.to_vec()).collect();
        let beginning = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text);
        reading.forms_max = count_forms_max(beginning);
        // Conditions first, so that however many words are typed they are never left out for want
        // of room: a word less finds less, a condition less finds what must not be found.
        for token in split_tokens(text).filter(QueryToken::is_condition) {
            reading.add_token(&token);
            if reading.query.is_cut {
                break;
            }
        }
        reading.query.has_dropped_conditions = reading.query.is_cut;
        for token in split_tokens(beginning).filter(|token| !token.is_condition()) {
            if reading.query.is_cut {
                break;
            }
            reading.add_token(&token);
        }
        if !reading.query.has_text_items() {
            reading.query.is_cut |= reading.stop_words.len() > WORDS_WITH_FORMS_MAX;
            reading.stop_words.truncate(WORDS_WITH_FORMS_MAX);
            for word in reading.stop_words.clone() {
                reading.add_word(&word);
            }
        }
        let mut query = reading.query;
        query.is_cut |= text.len() > TEXT_BYTES_MAX || query.has_shortened_phrase;
        query.is_prose = text.contains('?') || !reading.stop_words.is_empty();
        sort::sort_and_dedup(&mut query.items);
        query
    }

    /// Whether it reads like a question: a question mark or words that say nothing among several
    /// others, of which none has to be there, and no filter. The answer may then stand beside the
    /// message that has the words.
    pub(crate) fn is_question(&self) -> bool {
        self.words_typed > 1
            && self.is_prose
            && self.filters.is_empty()
            && self.items.iter().all(|item| item.presence == Presence::Should)
    }

    /// What finds the messages with large payloads that fit the filters and times of a query; of
    /// none, all.
    pub(crate) fn for_payloads(query: Option<&Self>) -> Self {
        let mut out = Self::parse("");
        if let Some(Self { terms, filters, window, .. }) = query {
            (out.terms, out.filters) = (terms.clone(), filters.clone());
            out.window = *window;
        }
        let item = QueryItem::from_terms(alloc::vec![out.terms.len()]);
        out.terms.push(feature_terms::PAYLOAD.to_vec());
        out.items.push(QueryItem { presence: Presence::Must, ..item });
        out
    }

    /// What finds the messages of which not all was read for words.
    pub(crate) fn for_partial() -> Self {
        let mut out = Self::parse("");
        out.items.push(QueryItem {
            presence: Presence::Must,
            ..QueryItem::from_terms(alloc::vec![out.terms.len()])
        });
        out.terms.push(feature_terms::PARTIAL.to_vec());
        out
    }

    /// Whether it asks for nothing that could be looked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.filters.is_empty() && self.window.is_unbounded()
    }

    /// Whether a document counts only when it holds an item.
    pub(crate) fn has_text_items(&self) -> bool {
        self.items.iter().any(|item| item.presence != Presence::MustNot)
    }
}

/// A text without the conditions in it, which are words then: a question is asked in prose, where
/// `-18` is a number and `role:` no filter. What is quoted stays a phrase.
pub(crate) fn strip_conditions(text: &str) -> String {
    let mut out = String::new();
    for token in split_tokens(text) {
        match token.is_condition() {
            true => out.push_str(&strip_syntax(token.source)),
            false => out.push_str(token.source),
        }
        out.push(' ');
    }
    out
}

/// A text without what has a meaning in a query: its words, to be looked for as words alone.
pub(crate) fn strip_syntax(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        out.extend(word.trim_start_matches(['+', '-']).chars().map(|c| match c {
            '"' | ':' => ' ',
            c => c,
        }));
        out.push(' ');
    }
    out
}

/// Whether a text, apart from its quoted parts, looks like a regular expression: alternatives
/// without spaces, a quantified dot, a class of characters, an escape, or an anchor.
pub(crate) fn looks_like_regex(text: &str) -> bool {
    let outside: Vec<&str> = text.split('"').step_by(2).collect();
    let has = |signs: &[&str]| signs.iter().any(|sign| outside.iter().any(|t| t.contains(sign)));
    let begins = text.starts_with('^') && text.len() > 1;
    let ends = text.ends_with('$') && !text.ends_with(" $") && text.len() > 1;
    begins
        || ends
        || has(&[".*", ".+", r"\b", r"\B", r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"\.", "(?"])
        || outside.iter().any(|text| has_alternatives(text) || has_class(text))
}

/// `a|b`, and not `a | b`, which is a pipe.
fn has_alternatives(text: &str) -> bool {
    let stands_alone = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == '|');
    text.match_indices('|').any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let behind = text.get(at + 1..).and_then(|text| text.chars().next());
        !stands_alone(before) && !stands_alone(behind)
    })
}

/// Bytes of a class of characters that is seen as one.
const CLASS_BYTES_MAX: usize = 64;

/// `[a-z]`, `[^a]` or `[ab]+`, and not `[1]`, which refers to something.
fn has_class(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| {
        let inside = text.get(at + 1..).unwrap_or_default();
        let end = inside.bytes().take(CLASS_BYTES_MAX).position(|byte| byte == b']');
        let Some((class, behind)) = end.and_then(|end| inside.split_at_checked(end)) else {
            return false;
        };
        let is_range = |triple: &[u8]| {
            matches!(triple, [a, b'-', b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
        };
        let is_class = class.starts_with('^') || class.as_bytes().windows(3).any(is_range);
        !class.is_empty()
            && !class.contains(char::is_whitespace)
            && (is_class && class.len() <= 16
                || behind.get(1..).is_some_and(|text| text.starts_with(['+', '*', '?', '{'])))
    })
}

/// One word of a query with its signs taken off.
struct QueryToken<'a> {
    presence: Presence,
    /// Name of a filter it may be.
    filter: Option<&'a str>,
    text: Cow<'a, str>,
    is_quoted: bool,
    /// As it was typed.
    source: &'a str,
}

impl QueryToken<'_> {
    /// Whether it says what a document has to be rather than what it is looked for by.
    fn is_condition(&self) -> bool {
        self.presence != Presence::Should || self.filter.is_some()
    }
}

/// The tokens of a text, in order.
fn split_tokens(text: &str) -> impl Iterator<Item = QueryToken<'_>> {
    let mut rest = text.trim_start();
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (token, behind) = next_token(rest);
        rest = behind.trim_start();
        Some(token)
    })
}

/// The token at the beginning of a text that begins with no space, and what is behind it.
fn next_token(text: &str) -> (QueryToken<'_>, &str) {
    let (presence, body) = match text.as_bytes() {
        [b'+', next, ..] if !next.is_ascii_whitespace() && *next != b'+' => (Presence::Must, 1),
        // Two of them begin an option of a program, which is text.
        [b'-', next, ..] if !next.is_ascii_whitespace() && *next != b'-' => (Presence::MustNot, 1),
        _ => (Presence::Should, 0),
    };
    let body = text.get(body..).unwrap_or_default();
    let filter = ["speaker", "tool", "role", "since", "before"].into_iter().find(|name| {
        let value = body.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        value.is_some_and(|value| !value.is_empty() && !value.starts_with(char::is_whitespace))
    });
    let value = body.get(filter.map_or(0, |name| name.len() + 1)..).unwrap_or_default();
    let quoted = value.strip_prefix('"').and_then(|inner| inner.split_once('"'));
    let (text, behind) = quoted.unwrap_or_else(|| {
        let end = value.find(char::is_whitespace).unwrap_or(value.len());
        value.split_at_checked(end).unwrap_or((value, ""))
    });
    let whole = body.get(..body.len() - behind.len()).unwrap_or_default();
    let token = QueryToken {
        presence,
        filter,
        text: Cow::Borrowed(text),
        is_quoted: quoted.is_some(),
        source: whole,
    };
    (token, behind)
}

/// One occurrence of a term in the text of a token.
struct QueryTermOccurrence {
    term: Vec<u8>,
    position: u32,
    bytes: Range<usize>,
}

impl QueryTermOccurrence {
    fn is_kind(&self, kind: u8) -> bool {
        self.term.first() == Some(&kind)
    }

    /// Two characters of a script without spaces.
    fn is_pair(&self) -> bool {
        self.is_kind(CJK) && !has_positions(&self.term)
    }
}

/// How many terms a word may have in a text of so many words.
fn count_forms_max(text: &str) -> usize {
    // Not counted for nothing: words of a text this long are as many as count at all.
    if text.len() > TEXT_BYTES_COUNTED_MAX {
        return 1;
    }
    let mut words = 0;
    each_term(SearchField::Text, text, &mut |term, _, _| {
        let word = term.get(1..).unwrap_or_default();
        words += usize::from(term.first() == Some(&WORD) && !is_stop_word(word));
    });
    if words <= WORDS_WITH_FORMS_MAX {
        usize::MAX
    } else if words <= WORDS_WITH_STEMS_MAX {
        2
    } else {
        1
    }
}

fn is_stop_word(word: &[u8]) -> bool {
    STOP_WORDS.split(' ').any(|stop| stop.as_bytes() == word)
}

#[derive(Default)]
struct QueryParser {
    query: TextQuery,
    /// Terms that each word may have.
    forms_max: usize,
    /// Words that say nothing.
    stop_words: Vec<Vec<u8>>,
}

impl QueryParser {
    fn add_token(&mut self, token: &QueryToken<'_>) {
        let items = self.query.items.len();
        match token.filter {
            Some(name) if self.add_filter(name, token) => {}
            Some(_) => self.add_text(token.presence, token.source, token.is_quoted),
            None => self.add_text(token.presence, &token.text, token.is_quoted),
        }
        self.query.words_typed += usize::from(self.query.items.len() > items);
    }

    /// Takes a token as a filter; `false`: its value makes none, so it is text.
    fn add_filter(&mut self, name: &str, token: &QueryToken<'_>) -> bool {
        let negated = token.presence == Presence::MustNot;
        let property = match name {
            "since" | "before" => {
                let (Some(at), false) = (time::parse(&token.text), negated) else { return false };
                let window = match name {
                    "since" => TimeWindow { since: Some(at), before: None },
                    _ => TimeWindow { since: None, before: Some(at) },
                };
                self.query.window = self.query.window.intersection(&window);
                return true;
            }
            "role" => match token.text.to_lowercase().as_str() {
                "system" => FilterProperty::Role(Role::System),
                "user" => FilterProperty::Role(Role::User),
                "assistant" => FilterProperty::Role(Role::Assistant),
                "tool" => FilterProperty::Role(Role::Tool),
                _ => return false,
            },
            "tool" => {
                let mut whole = None;
                each_term(SearchField::ToolName, &token.text, &mut |term, _, _| {
                    if term.first() == Some(&TOOL) {
                        whole = Some(term.to_vec());
                    }
                });
                match whole.and_then(|term| self.intern_term(&term)) {
                    Some(term) => FilterProperty::Tool(term),
                    None => return false,
                }
            }
            _ => {
                let (mut words, mut is_cut) = (Vec::new(), false);
                feature_terms::each_speaker_term(&token.text, &mut |term| match self
                    .intern_term(term)
                {
                    Some(word) => words.push(word),
                    None => is_cut = true,
                });
                if is_cut {
                    return true;
                }
                FilterProperty::Speaker { name: token.text.to_lowercase(), words }
            }
        };
        let filter = QueryFilter { property, is_negated: negated };
        let filters = &mut self.query.filters;
        if !filters.contains(&filter) {
            self.query.is_cut |= filters.len() == TERMS_MAX;
            if filters.len() < TERMS_MAX {
                filters.push(filter);
            }
        }
        true
    }

    /// The number of a term; `None`: there are too many.
    fn intern_term(&mut self, term: &[u8]) -> Option<usize> {
        // There are few.
        if let Some(number) = self.query.terms.iter().position(|known| known == term) {
            return Some(number);
        }
        let number = self.query.terms.len();
        if number == TERMS_MAX {
            self.query.is_cut = true;
            return None;
        }
        self.query.terms.push(term.to_vec());
        Some(number)
    }

    /// Takes a text: what is quoted, or must or must not be there, as a phrase; else each term.
    fn add_text(&mut self, presence: Presence, text: &str, is_phrase: bool) {
        let mut found: Vec<QueryTermOccurrence> = Vec::new();
        each_term(SearchField::Text, text, &mut |term, position, bytes| {
            // What is beyond the bound is counted and no more. A stem says no more than its word.
            if found.len() <= 4 * TERMS_MAX && term.first() != Some(&STEM) {
                found.push(QueryTermOccurrence { term: term.to_vec(), position, bytes });
            }
        });
        if is_phrase || presence != Presence::Should {
            return self.add_phrase(presence, &found);
        }
        let mut end = 0;
        let continues = |left: &QueryTermOccurrence, right: &QueryTermOccurrence| {
            end = left.bytes.end.max(end);
            left.is_kind(CJK) && right.is_kind(CJK) && right.bytes.start < end
        };
        for run in found.chunk_by(continues) {
            let characters = run.iter().filter(|found| !found.is_pair()).count();
            if let [found] = run
                && found.is_kind(WORD)
            {
                let word = found.term.get(1..).unwrap_or_default();
                if is_stop_word(word) {
                    self.stop_words.push(word.to_vec());
                    sort::sort_and_dedup(&mut self.stop_words);
                } else {
                    self.add_word(word);
                }
            } else if characters <= CJK_WORD_CHARACTERS_MAX {
                self.add_phrase(presence, run);
            } else {
                let pairs = run.iter().filter(|found| found.is_pair());
                pairs.for_each(|pair| self.add_phrase(presence, core::slice::from_ref(pair)));
            }
        }
    }

    /// Takes a word as the name of several that it may be, too: `mainloop` is `mainLoop`.
    fn add_camel_case(&mut self, word: &[u8]) {
        if word.len() >= CAMEL_CASE_BYTES_MIN
            && word.iter().all(u8::is_ascii_alphanumeric)
            && word.iter().any(u8::is_ascii_alphabetic)
        {
            let term = [&[IDENTIFIER], word].concat();
            if let Some(number) = self.intern_term(&term) {
                self.query.items.push(QueryItem::from_terms(alloc::vec![number]));
            }
        }
    }

    /// Takes a word that may be there, in any of its forms.
    fn add_word(&mut self, word: &[u8]) {
        if self.query.items.len() >= ITEMS_MAX && self.forms_max == 1 {
            self.query.is_cut = true;
            return;
        }
        let mut forms = Vec::new();
        let forms_max = self.forms_max;
        stemmer::each_form(word, &mut |kind, form| {
            if forms.len() < forms_max {
                forms.extend(self.intern_term(&[&[kind], form].concat()));
            }
        });
        let Some(first) = forms.first().copied() else { return };
        let stem = forms.get(1);
        if stem.is_some_and(|stem| self.query.items.iter().any(|item| item.forms.contains(stem))) {
            return;
        }
        sort::sort_and_dedup(&mut forms);
        let mut item = QueryItem { forms, ..QueryItem::from_terms(alloc::vec![first]) };
        if forms_max < usize::MAX {
            self.query.items.push(item);
            return;
        }
        if let Some(term) = self.intern_term(&[&[feature_terms::SPEAKER], word].concat()) {
            let names = &mut self.query.names;
            item.name = Some(names.iter().position(|known| *known == term).unwrap_or(names.len()));
            if !names.contains(&term) {
                names.push(term);
            }
        }
        self.query.items.push(item);
        self.add_camel_case(word);
    }

    /// One name, which is found however its letters are written: `GitHub` is `github` and
    /// `mainloop` is `mainLoop`. `None`: it is none, or there are too many terms.
    fn parse_name(
        &mut self,
        presence: Presence,
        found: &[QueryTermOccurrence],
    ) -> Option<QueryItem> {
        let (first, others) = found.split_first()?;
        let is_name = first.is_kind(IDENTIFIER) || first.is_kind(WORD);
        let is_inside = |other: &QueryTermOccurrence| other.bytes.end <= first.bytes.end;
        let letters = first.term.get(1..)?;
        let are_letters = letters.iter().all(u8::is_ascii_alphanumeric)
            && letters.iter().any(u8::is_ascii_alphabetic);
        if !is_name || !are_letters || !others.iter().all(is_inside) {
            return None;
        }
        let mut forms = Vec::new();
        for kind in [IDENTIFIER, WORD] {
            forms.push(self.intern_term(&[&[kind], letters].concat())?);
        }
        let typed = forms.get(usize::from(first.is_kind(WORD))).copied();
        sort::sort_and_dedup(&mut forms);
        Some(QueryItem { presence, forms, ..QueryItem::from_terms(typed.into_iter().collect()) })
    }

    /// Takes terms that must stand as they do here; one that does not fit is left out as a whole.
    fn add_phrase(&mut self, presence: Presence, found: &[QueryTermOccurrence]) {
        let is_passage = presence != Presence::MustNot && found.len() <= 4 * TERMS_MAX;
        let beginning = found.get(..PHRASE_TERMS_MAX).filter(|_| is_passage);
        self.query.has_shortened_phrase |= beginning.is_some();
        let found = beginning.unwrap_or(found);
        let covers = |outer: &QueryTermOccurrence, inner: &QueryTermOccurrence| {
            outer.bytes.start <= inner.bytes.start && inner.bytes.end <= outer.bytes.end
        };
        // An identifier says no more than its words, a character no more than its pair.
        let is_said = |one: &QueryTermOccurrence| {
            let words = |other: &QueryTermOccurrence| other.is_kind(WORD) && covers(one, other);
            let pairs = |other: &QueryTermOccurrence| other.is_pair() && covers(other, one);
            (one.is_kind(IDENTIFIER) && found.iter().any(words))
                || (one.is_kind(CJK) && !one.is_pair() && found.iter().any(pairs))
        };
        let are_ordered = self.query.items.iter().filter(|item| !item.order.is_empty());
        let is_placed_in_vain =
            presence == Presence::Should && found.len() > 1 && are_ordered.count() >= PHRASES_MAX;
        if is_placed_in_vain || self.query.items.len() >= ITEMS_MAX {
            self.query.is_cut = true;
            return;
        }
        if let Some(item) = self.parse_name(presence, found) {
            self.query.items.push(item);
            return;
        }
        let known = self.query.terms.len();
        let mut terms = Vec::new();
        for one in found.iter().filter(|one| !is_said(one)) {
            let Some(number) = self.intern_term(&one.term) else {
                self.query.terms.truncate(known);
                return;
            };
            terms.push(number);
        }
        let is_one_term = terms.len() <= 1;
        sort::sort_and_dedup(&mut terms);
        let first = found.iter().map(|one| one.position).min().unwrap_or(0);
        let placed = found.iter().filter(|one| !is_one_term && has_positions(&one.term));
        let order = placed.map(|one| (one.term.clone(), one.position - first)).collect();
        if !terms.is_empty() {
            self.query.items.push(QueryItem { presence, order, ..QueryItem::from_terms(terms) });
        }
    }
}

#[cfg(test)]
mod tests;
