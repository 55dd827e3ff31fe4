//! Parser of full-text queries: words, phrases, required and excluded words, and filters.
//!
//! Input: the text of a query. Output: index terms, and how they combine. Only quotes, a leading
//! `+` or `-`, `NOT`, and the filters `speaker: tool: role: since: before:` have a special meaning;
//! all other text is plain words. A word behind `-` is plain, too, if the caller knows the flag.
//! Elsewhere: splitting a text into terms (`terms`), reading the index (`full_text`).

mod query_items;
mod regex_syntax;
mod tokens;

pub(crate) use query_items::{FilterProperty, Presence, QueryFilter, QueryItem};
pub(crate) use regex_syntax::looks_like_regex;

use self::tokens::{QueryToken, split_tokens};
use alloc::{boxed::Box, string::String, vec::Vec};
use core::ops::Range;

use lcm_loops::{char_fold, stemmer};

use super::{
    SearchField, each_term, feature_terms, has_positions, query_dates::QueryDate,
    time_window::TimeWindow,
};
use lcm_text::{
    base::{sort, time},
    message::Role,
    types::api::Timestamp,
};

/// First byte of a term that is a word.
const WORD: u8 = b'w';
/// First byte of a term that is a stem.
const STEM: u8 = b's';
/// First byte of a term that is an identifier.
const IDENTIFIER: u8 = b'i';
/// First byte of a term of one or two characters in a script without spaces: Chinese, Japanese,
/// Korean, Thai and others. Comments and names here call the characters CJK.
const CJK: u8 = b'c';
/// First byte of a term that is the name of a tool.
const TOOL: u8 = b'n';
/// Most distinct terms of a query, feature terms included. A word has up to seven: five forms, a
/// speaker name, and an identifier.
pub(crate) const TERMS_MAX: usize = 128;
/// Items of a query after which no phrase, required or excluded word, or word matched only as typed
/// is added. A query with more items is usually a pasted text.
const ITEMS_MAX: usize = 64;
/// Phrases with word order after which no optional phrase is added. More phrases would exceed the
/// position budget of full-text search.
const PHRASES_MAX: usize = 8;
/// Most terms of all phrases with word order, so that a phrase is added that nobody quoted. The
/// position budget of full-text search suffices for these terms.
const UNQUOTED_TERMS_MAX: usize = 5;
/// Bytes at the beginning of a query in which words and phrases are read. Conditions are read in
/// the whole query. Later words of a longer query change little.
const TEXT_BYTES_MAX: usize = 32 << 10;
/// Stop words, which have no content. A query with other words ignores the stop words. `or` is not
/// a stop word, because a user may mean the word.
const STOP_WORDS: &str = "\
a about after all also am an and any are as at be been before but by can could d did do does done \
for from had has have he her here him his how i if in into is it its just ll m may me might must my \
no not of on our over re s she should so some t than that the their them then there these they this \
those to too us ve very was we were what when where which who whom whose why will with would you \
your";
/// Most characters of an unquoted CJK run that is matched as a phrase. In a longer run, which is
/// probably a sentence, each pair of characters counts alone.
const CJK_WORD_CHARACTERS_MAX: usize = 4;

/// Least bytes of a word that is also matched as a camel-case identifier: `ebay` matches `eBay`.
const CAMEL_CASE_BYTES_MIN: usize = 3;
/// Most words, without stop words, of a query whose words are all matched in all forms and as
/// speaker names.
const WORDS_WITH_FORMS_MAX: usize = 16;
/// Most words, without stop words, of a query whose words are also matched by stem. In a longer
/// query, words match only as typed.
const WORDS_WITH_STEMS_MAX: usize = 48;
/// Longest query, in bytes, whose words are counted. In a longer query, words match only as typed.
const TEXT_BYTES_COUNTED_MAX: usize = 4 << 10;
/// Most terms of a phrase that is not excluded. Of a longer phrase, only the first terms are
/// matched.
const PHRASE_TERMS_MAX: usize = 48;
/// Most words that [`TextQuery::readings`] names.
const READINGS_MAX: usize = 8;
/// Most bytes of a word in [`TextQuery::readings`].
const READING_BYTES_MAX: usize = 64;

/// Parsed full-text query.
#[derive(Debug, Default)]
pub(crate) struct TextQuery {
    /// [`feature_terms::FEATURES`], then the distinct terms of all items and filters.
    pub(crate) terms: Vec<Vec<u8>>,
    pub(crate) items: Vec<QueryItem>,
    pub(crate) filters: Vec<QueryFilter>,
    pub(crate) window: TimeWindow,
    /// First date that the query mentions; `None`: no date, or dates were not looked for.
    pub(crate) date: Option<QueryDate>,
    /// Indexes of terms for speaker names, one for each word that may be a name.
    pub(crate) names: Vec<usize>,
    /// Number of tokens that added an item. Stop words and filters add none.
    words_typed: usize,
    /// Whether the query has stop words or a question mark.
    is_prose: bool,
    /// Whether a part of the query is ignored, because of a limit.
    pub(crate) is_cut: bool,
    /// Whether only the beginning of some phrase is matched.
    has_shortened_phrase: bool,
    /// Whether some filters, required or excluded words were ignored, so that results would be
    /// wrong.
    pub(crate) has_dropped_conditions: bool,
    /// First filter whose value is not valid, as typed.
    pub(crate) wrong_filter: Option<Box<str>>,
    /// How words with `-` or `NOT` in front were read: `excluded: word` or `flag: -word`.
    pub(crate) readings: Vec<String>,
}

impl TextQuery {
    /// Parses a query that is asked at time `now`, and looks for a date in the query. `flags`:
    /// words with `-` in front that exclude nothing.
    pub(crate) fn parse_at(text: &str, now: Timestamp, flags: &[&str]) -> Self {
        Self { date: QueryDate::from_text(text, now), ..Self::parse_with_flags(text, flags) }
    }

    /// Parses a query without looking for dates. Each word with `-` in front is excluded.
    pub(crate) fn parse(text: &str) -> Self {
        Self::parse_with_flags(text, &[])
    }

    fn parse_with_flags(text: &str, flags: &[&str]) -> Self {
        let mut parser = QueryParser::default();
        parser.query.terms =
            feature_terms::FEATURES.iter().map(|feature| feature.to_vec()).collect();
        let beginning = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text);
        parser.forms_max = count_forms_max(beginning);
        // Conditions come first, so that words never displace a condition. A lost word finds less;
        // a lost condition finds wrong documents.
        let read_tokens = |text| split_tokens(text).map(|token| token.read_flag(flags));
        for token in read_tokens(text).filter(QueryToken::is_condition) {
            parser.add_token(&token);
            if parser.query.is_cut {
                break;
            }
        }
        parser.query.has_dropped_conditions = parser.query.is_cut;
        for token in read_tokens(beginning).filter(|token| !token.is_condition()) {
            if parser.query.is_cut {
                break;
            }
            parser.add_token(&token);
        }
        if !parser.query.has_text_items() {
            parser.query.is_cut |= parser.stop_words.len() > WORDS_WITH_FORMS_MAX;
            parser.stop_words.truncate(WORDS_WITH_FORMS_MAX);
            for word in parser.stop_words.clone() {
                parser.add_word(&word);
            }
        }
        let mut query = parser.query;
        query.is_cut |= text.len() > TEXT_BYTES_MAX || query.has_shortened_phrase;
        query.is_prose = text.contains('?') || !parser.stop_words.is_empty();
        sort::sort_and_dedup(&mut query.items);
        query
    }

    /// Returns whether the query looks like a question. A question has a question mark or stop
    /// words, and more than one token that added an item. All its items are optional, and it has no
    /// filter except times. The answer may be in a message beside the message with the words.
    pub(crate) fn is_question(&self) -> bool {
        self.words_typed > 1
            && self.is_prose
            && self.filters.is_empty()
            && self.items.iter().all(|item| item.presence == Presence::Should)
    }

    /// Builds a query for messages with large payloads, with the filters and the time window of
    /// `query`; the words of `query` are left out.
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

    /// Builds a query for messages of which only a part was indexed.
    pub(crate) fn for_partial() -> Self {
        let mut out = Self::parse("");
        out.items.push(QueryItem {
            presence: Presence::Must,
            ..QueryItem::from_terms(alloc::vec![out.terms.len()])
        });
        out.terms.push(feature_terms::PARTIAL.to_vec());
        out
    }

    /// Builds a query that counts the flags a text may have. Returns the query and the flags as
    /// typed; the number of a flag is that of its item. `None`: the text has none.
    pub(crate) fn for_flags(text: &str) -> Option<(Self, Vec<&str>)> {
        let (mut out, mut flags) = (Self::parse(""), Vec::new());
        for flag in split_tokens(text).filter_map(|token| token.flag).take(ITEMS_MAX) {
            each_term(SearchField::Text, flag, &mut |term, _, _| {
                if term.starts_with(b"i-") {
                    flags.push(flag);
                    out.items.push(QueryItem::from_terms(alloc::vec![out.terms.len()]));
                    out.terms.push(term.to_vec());
                }
            });
        }
        (!flags.is_empty()).then_some((out, flags))
    }

    /// Returns whether the query has no item, no filter and no time window.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.filters.is_empty() && self.window.is_unbounded()
    }

    /// Returns whether the query has an item that is not excluded.
    pub(crate) fn has_text_items(&self) -> bool {
        self.items.iter().any(|item| item.presence != Presence::MustNot)
    }
}

/// Turns the conditions of a text into words. In a question `-18` is a number and `role:` is not a
/// filter. Quoted phrases that are no conditions stay phrases.
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

/// Removes quotes and colons from a text, and `+` and `-` in front of words, so that only plain
/// words remain.
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

/// An occurrence of a term in the text of a token.
#[derive(Clone)]
struct QueryTermOccurrence {
    term: Vec<u8>,
    position: u32,
    bytes: Range<usize>,
}

impl QueryTermOccurrence {
    fn is_kind(&self, kind: u8) -> bool {
        self.term.first() == Some(&kind)
    }

    /// Returns whether the term is a pair of CJK characters.
    fn is_pair(&self) -> bool {
        self.is_kind(CJK) && !has_positions(&self.term)
    }
}

/// Returns how many forms each word may have. In a query of up to 16 words, these are all forms. In
/// a query of up to 48 words there are two, the word as typed and the stem. In a longer query there
/// is one.
fn count_forms_max(text: &str) -> usize {
    // A longer text is taken to have more words than all limits.
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
    /// Most forms of each word.
    forms_max: usize,
    /// Distinct stop words of the query, sorted.
    stop_words: Vec<Vec<u8>>,
}

impl QueryParser {
    fn add_token(&mut self, token: &QueryToken<'_>) {
        let items = self.query.items.len();
        match token.filter {
            Some(name) => {
                if !self.add_filter(name, token) && self.query.wrong_filter.is_none() {
                    self.query.wrong_filter = Some(token.source.into());
                }
            }
            None => self.add_text(token.presence, token.text, token.is_quoted),
        }
        self.query.words_typed += usize::from(self.query.items.len() > items);
        let readings = &mut self.query.readings;
        let reading = match (token.presence, token.flag) {
            (Presence::MustNot, _) if token.filter.is_none() => "excluded: ",
            (Presence::Should, Some(_)) => "flag: ",
            _ => return,
        };
        if readings.len() < READINGS_MAX {
            let bytes = token.text.floor_char_boundary(READING_BYTES_MAX);
            readings.push([reading, token.text.get(..bytes).unwrap_or_default()].concat());
        }
    }

    /// Adds a token as a filter. Returns `false` if the value is not valid for the filter.
    fn add_filter(&mut self, name: &str, token: &QueryToken<'_>) -> bool {
        let is_negated = token.presence == Presence::MustNot;
        let property = match name {
            "since" | "before" => {
                let (Some(at), false) = (time::parse(token.text), is_negated) else {
                    return false;
                };
                let window = match name {
                    "since" => TimeWindow { since: Some(at), before: None },
                    _ => TimeWindow { since: None, before: Some(at) },
                };
                self.query.window = self.query.window.intersection(&window);
                return true;
            }
            "role" => match token.text.to_ascii_lowercase().as_str() {
                "system" => FilterProperty::Role(Role::System),
                "user" => FilterProperty::Role(Role::User),
                "assistant" => FilterProperty::Role(Role::Assistant),
                "tool" => FilterProperty::Role(Role::Tool),
                _ => return false,
            },
            "tool" => {
                let mut name_term = None;
                each_term(SearchField::ToolName, token.text, &mut |term, _, _| {
                    if term.first() == Some(&TOOL) {
                        name_term = Some(term.to_vec());
                    }
                });
                match name_term.and_then(|term| self.intern_term(&term)) {
                    Some(term) => FilterProperty::Tool(term),
                    None => return false,
                }
            }
            _ => {
                let (mut words, mut is_cut) = (Vec::new(), false);
                feature_terms::each_speaker_term(token.text, &mut |term| match self
                    .intern_term(term)
                {
                    Some(word) => words.push(word),
                    None => is_cut = true,
                });
                if is_cut {
                    return true;
                }
                FilterProperty::Speaker { name: char_fold::lower_text(token.text), words }
            }
        };
        let filter = QueryFilter { property, is_negated };
        let filters = &mut self.query.filters;
        if !filters.contains(&filter) {
            self.query.is_cut |= filters.len() == TERMS_MAX;
            if filters.len() < TERMS_MAX {
                filters.push(filter);
            }
        }
        true
    }

    /// Returns the index of a term, and adds the term if it is new. `None`: the query has
    /// [`TERMS_MAX`] terms.
    fn intern_term(&mut self, term: &[u8]) -> Option<usize> {
        // A linear search suffices: a query has few terms.
        if let Some(number) = self.query.terms.iter().position(|other| other == term) {
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

    /// Adds the text of a token: as a phrase if quoted, required or excluded, else word by word.
    /// Stop words are kept apart. A run of CJK characters is added as a phrase, or pair by pair if
    /// it is long.
    fn add_text(&mut self, presence: Presence, text: &str, is_phrase: bool) {
        let mut found: Vec<QueryTermOccurrence> = Vec::new();
        each_term(SearchField::Text, text, &mut |term, position, bytes| {
            // More terms than a query may have only mark the phrase as too long. Stems are skipped:
            // the stemmer adds them to words.
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
            } else if let [first] = run
                && first.is_kind(IDENTIFIER)
            {
                self.add_identifier(first, &found);
            } else if characters <= CJK_WORD_CHARACTERS_MAX {
                self.add_phrase(presence, run);
            } else {
                let pairs = run.iter().filter(|found| found.is_pair());
                pairs.for_each(|pair| self.add_phrase(presence, core::slice::from_ref(pair)));
            }
        }
    }

    /// Adds an optional identifier: with inner punctuation also as the phrase of its words, which
    /// longer identifiers have, too. `found`: the terms of the text.
    fn add_identifier(&mut self, identifier: &QueryTermOccurrence, found: &[QueryTermOccurrence]) {
        let name = identifier.term.get(1..).unwrap_or_default();
        let is_single = name.starts_with(b"-") || name.iter().all(u8::is_ascii_alphanumeric);
        let bytes = &identifier.bytes;
        let is_inside = |one: &&QueryTermOccurrence| {
            bytes.start <= one.bytes.start && one.bytes.end <= bytes.end
        };
        let mut inside: Vec<_> = found.iter().filter(is_inside).cloned().collect();
        let words = inside.iter().filter(|one| has_positions(&one.term)).count();
        if is_single || !self.has_room(words) {
            inside.clear();
        }
        for terms in [core::slice::from_ref(identifier), &inside] {
            let items = self.query.items.len();
            self.add_phrase(Presence::Should, terms);
            if let Some(item) = self.query.items.get_mut(items) {
                item.is_identifier = true;
            }
        }
    }

    /// Adds an item that matches a word as a camel-case identifier: `mainloop` matches `mainLoop`.
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

    /// Adds an optional word with at most `forms_max` forms. A word whose stem was added already is
    /// left out.
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
            item.name = Some(names.iter().position(|other| *other == term).unwrap_or(names.len()));
            if !names.contains(&term) {
                names.push(term);
            }
        }
        self.query.items.push(item);
        self.add_camel_case(word);
        self.add_parts(word);
    }

    /// Adds letters followed by digits as a phrase of both: `E4471` matches `E-4471` and `E 4471`.
    fn add_parts(&mut self, word: &[u8]) {
        let letters = word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (head, tail) = word.split_at(letters);
        if head.is_empty()
            || tail.is_empty()
            || !tail.iter().all(u8::is_ascii_digit)
            || !self.has_room(2)
        {
            return;
        }
        let part = |part: &[u8], at: u8| QueryTermOccurrence {
            term: [&[WORD], part].concat(),
            position: at.into(),
            bytes: at.into()..usize::from(at) + 1,
        };
        self.add_phrase(Presence::Should, &[part(head, 0), part(tail, 1)]);
    }

    /// Returns whether a phrase that nobody quoted may be added. `terms`: terms of the phrase.
    fn has_room(&self, terms: usize) -> bool {
        let ordered = self.query.items.iter().map(|item| item.order.len()).sum::<usize>();
        ordered + terms <= UNQUOTED_TERMS_MAX
    }

    /// Builds the item of a single word or identifier, which matches in any spelling: `GitHub`
    /// matches `github`. `None`: the terms are not one identifier of ASCII letters and digits, or
    /// the query is full.
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

    /// Adds terms as a phrase, or as a name if they are one identifier. A phrase whose terms do not
    /// all fit is dropped as a whole.
    fn add_phrase(&mut self, presence: Presence, found: &[QueryTermOccurrence]) {
        let is_long_phrase = presence != Presence::MustNot && found.len() <= 4 * TERMS_MAX;
        let beginning = found.get(..PHRASE_TERMS_MAX).filter(|_| is_long_phrase);
        self.query.has_shortened_phrase |= beginning.is_some();
        let found = beginning.unwrap_or(found);
        let covers = |outer: &QueryTermOccurrence, inner: &QueryTermOccurrence| {
            outer.bytes.start <= inner.bytes.start && inner.bytes.end <= outer.bytes.end
        };
        // An identifier adds nothing to its words, and a CJK character adds nothing to its pairs.
        let is_redundant = |one: &QueryTermOccurrence| {
            let words = |other: &QueryTermOccurrence| other.is_kind(WORD) && covers(one, other);
            let pairs = |other: &QueryTermOccurrence| other.is_pair() && covers(other, one);
            (one.is_kind(IDENTIFIER) && found.iter().any(words))
                || (one.is_kind(CJK) && !one.is_pair() && found.iter().any(pairs))
        };
        let ordered = self.query.items.iter().filter(|item| !item.order.is_empty());
        let is_over_limit =
            presence == Presence::Should && found.len() > 1 && ordered.count() >= PHRASES_MAX;
        if is_over_limit || self.query.items.len() >= ITEMS_MAX {
            self.query.is_cut = true;
            return;
        }
        if let Some(item) = self.parse_name(presence, found) {
            self.query.items.push(item);
            return;
        }
        let length_before = self.query.terms.len();
        let mut terms = Vec::new();
        for one in found.iter().filter(|one| !is_redundant(one)) {
            let Some(number) = self.intern_term(&one.term) else {
                self.query.terms.truncate(length_before);
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
