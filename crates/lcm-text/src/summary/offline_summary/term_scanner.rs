//! Finds the terms of a text: words that a reader could search for.
//!
//! Input: a text. Output: its terms, each with a hash and a class, for the offline summariser and
//! the verifier. The time is linear.

use lcm_loops::lower_case::lower_char;

use super::term_hash::TermHash;
use crate::base::tokens;

/// Most characters of a token that is not all ASCII and is one term. A longer token is taken for a
/// script without spaces, and each three neighbouring characters are a term.
const SPACELESS_MIN: u32 = 24;
/// Most bytes of an ASCII token; longer tokens are ignored.
const TOKEN_MAX: usize = 160;

/// The class of a term.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TermClass {
    /// A path, or a token with letters and with digits, inner capitals, dots, `_`, `@`, `:` or `>`.
    Identifier,
    /// Two or more digits without letters.
    Number,
    /// A word that is capitalised inside a sentence, or all capitals.
    Name,
    /// Any other word of four or more letters.
    Word,
    /// Two neighbouring ideographs, or three characters of a script without spaces.
    Gram,
    /// Any other token, which can only be a cue.
    ShortWord,
}

impl TermClass {
    /// Returns the weight of one occurrence, before rarity.
    pub(super) const fn base_weight(self) -> u32 {
        match self {
            Self::Identifier => 10,
            Self::Number | Self::Name => 7,
            Self::Gram => 2,
            Self::Word => 1,
            Self::ShortWord => 0,
        }
    }
}

/// One occurrence of a term.
#[derive(Clone, Copy, Debug)]
pub struct TermOccurrence<'a> {
    /// The term as written.
    pub text: &'a str,
    /// Hash that is equal for terms that differ only in case.
    pub key: u64,
    /// Class of this occurrence.
    pub class: TermClass,
    /// Whether the term begins with a lower-case letter.
    pub is_lowercase: bool,
}

/// Calls `emit` with every term of `text`, in order.
pub fn scan_terms<'a>(text: &'a str, emit: &mut dyn FnMut(TermOccurrence<'a>)) {
    let mut at = line_number_length(text);
    // The last character that is not whitespace, to recognise the start of a sentence.
    let mut before = '.';
    while let Some(c) = char_at(text, at) {
        if c == ' ' {
            at += 1;
        } else if is_gram_char(c) {
            let length = emit_bigrams(text.get(at..).unwrap_or(""), emit);
            at += length;
            before = c;
        } else if is_word_char(c) {
            let mut token = TokenProfile::default();
            let end = token.read_token(text, at);
            token.emit_terms(text.get(at..end).unwrap_or(""), starts_sentence(before), emit);
            at = end;
            before = token.previous;
        } else {
            at += c.len_utf8();
            if !c.is_whitespace() {
                before = c;
            }
        }
    }
}

/// Returns the character at `at`; `None`: the end of the text, or no character boundary. ASCII
/// takes a fast path.
#[inline(always)]
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        Some(_) => decode_char(text, at),
        None => None,
    }
}

#[inline(never)]
fn decode_char(text: &str, at: usize) -> Option<char> {
    text.get(at..).and_then(|rest| rest.chars().next())
}

/// Returns the length of the line number at the beginning of a line of a listing, which is no term;
/// 0: no line number.
fn line_number_length(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        text.get(digits..).is_some_and(|rest| rest.starts_with([':', '|', '\t', '\u{2502}']));
    if (1..=6).contains(&digits) && numbered { digits } else { 0 }
}

/// Returns whether a capital after this character begins a sentence. Quotes and colons are left
/// out, because they precede values in data.
fn starts_sentence(before: char) -> bool {
    matches!(before, '.' | '!' | '?' | '*' | '-' | '#' | '>' | '|')
}

fn is_word_char(c: char) -> bool {
    if c.is_ascii() { c == '_' || c.is_ascii_alphanumeric() } else { c.is_alphanumeric() }
}

fn is_gram_char(c: char) -> bool {
    !c.is_ascii() && tokens::is_cjk(c) && c.is_alphanumeric()
}

/// Emits each pair of neighbouring ideographs in the run of ideographs at the beginning of `text`;
/// returns the length of the run in bytes.
fn emit_bigrams<'a>(text: &'a str, emit: &mut dyn FnMut(TermOccurrence<'a>)) -> usize {
    let mut previous = None;
    for (at, c) in text.char_indices() {
        if !is_gram_char(c) {
            return at;
        }
        if let Some(pair) = previous.and_then(|from| text.get(from..at + c.len_utf8())) {
            emit(build_gram(pair));
        }
        previous = Some(at);
    }
    text.len()
}

fn build_gram(text: &str) -> TermOccurrence<'_> {
    let key = text.chars().fold(TermHash::new(), extend_hash_lowercase);
    TermOccurrence {
        text,
        key: key.finish(),
        class: TermClass::Gram,
        is_lowercase: text.starts_with(char::is_lowercase),
    }
}

fn extend_hash_lowercase(key: TermHash, c: char) -> TermHash {
    if c.is_ascii() {
        let lower = c.to_ascii_lowercase();
        return u8::try_from(lower).map_or(key, |byte| key.with_byte(byte));
    }
    let mut buffer = [0; 4];
    lower_char(c).fold(key, |key, lower| {
        lower.encode_utf8(&mut buffer).bytes().fold(key, |key, byte| key.with_byte(byte))
    })
}

/// Counts of the characters of a token.
struct TokenProfile {
    key: TermHash,
    characters: u32,
    letters: u32,
    upper: u32,
    digits: u32,
    dots: u32,
    slashes: u32,
    marks: u32,
    inner_capital: bool,
    first: char,
    /// The character read last.
    previous: char,
    is_ascii: bool,
}

impl Default for TokenProfile {
    fn default() -> Self {
        Self {
            key: TermHash::new(),
            characters: 0,
            letters: 0,
            upper: 0,
            digits: 0,
            dots: 0,
            slashes: 0,
            marks: 0,
            inner_capital: false,
            first: ' ',
            previous: ' ',
            is_ascii: true,
        }
    }
}

impl TokenProfile {
    /// Reads the token at offset `at`: word characters, and joiners between word characters, such
    /// as `.` or `::`. Returns the offset of its end.
    fn read_token(&mut self, text: &str, mut at: usize) -> usize {
        loop {
            at += self.add_ascii_run(text.as_bytes().get(at..).unwrap_or_default());
            if let Some(c) = char_at(text, at).filter(|c| is_word_char(*c) && !is_gram_char(*c)) {
                self.add_char(c);
                at += c.len_utf8();
                continue;
            }
            let Some(joiner) = char_at(text, at).and_then(|c| self.find_joiner(text, at, c)) else {
                return at;
            };
            for c in joiner.chars() {
                self.add_char(c);
            }
            at += joiner.len();
        }
    }

    /// Returns the joiner at `at`; `None`: no joiner, or the token does not continue after it.
    fn find_joiner<'a>(&self, text: &'a str, at: usize, c: char) -> Option<&'a str> {
        let next = char_at(text, at + c.len_utf8());
        let length = match (c, next) {
            (':', Some('/')) if char_at(text, at + 2) == Some('/') => 3,
            (':', Some(':')) | ('-', Some('>')) => 2,
            ('/' | '.' | '-' | ':' | '@' | '\\' | '\'' | ',', _) => 1,
            ('\u{2019}', _) => c.len_utf8(),
            _ => return None,
        };
        let next = char_at(text, at + length)?;
        let goes_on = match c {
            ',' => next.is_ascii_digit() && self.previous.is_ascii_digit(),
            ':' if length == 1 => next.is_ascii_digit(),
            _ => is_word_char(next) && !is_gram_char(next),
        };
        if goes_on { text.get(at..at + length) } else { None }
    }

    /// Adds the ASCII word characters at the beginning, in one pass instead of by
    /// [`TokenProfile::add_char`]; returns their number.
    fn add_ascii_run(&mut self, bytes: &[u8]) -> usize {
        let mut key = self.key;
        let mut after_lower = self.previous.is_lowercase();
        let (mut length, mut letters, mut upper, mut digits, mut marks) = (0, 0, 0, 0, 0);
        for byte in bytes {
            match byte {
                b'a'..=b'z' => {
                    letters += 1;
                    after_lower = true;
                }
                b'A'..=b'Z' => {
                    letters += 1;
                    upper += 1;
                    self.inner_capital |= after_lower;
                    after_lower = false;
                }
                b'0'..=b'9' => {
                    digits += 1;
                    after_lower = false;
                }
                b'_' => {
                    marks += 1;
                    after_lower = false;
                }
                _ => break,
            }
            key = key.with_byte(byte.to_ascii_lowercase());
            length += 1;
        }
        let Some((last, _)) = bytes.get(..length).and_then(<[u8]>::split_last) else { return 0 };
        if self.characters == 0 {
            self.first = bytes.first().copied().map_or(' ', char::from);
        }
        self.previous = char::from(*last);
        self.key = key;
        self.characters = self.characters.saturating_add(letters + digits + marks);
        self.letters += letters;
        self.upper += upper;
        self.digits += digits;
        self.marks += marks;
        length
    }

    fn add_char(&mut self, c: char) {
        if self.characters == 0 {
            self.first = c;
        }
        self.characters = self.characters.saturating_add(1);
        match c {
            'a'..='z' => self.letters += 1,
            'A'..='Z' => {
                self.letters += 1;
                self.upper += 1;
                self.inner_capital |= self.previous.is_lowercase();
            }
            '0'..='9' => self.digits += 1,
            '.' => self.dots += 1,
            '/' | '\\' => self.slashes += 1,
            '_' | '@' | ':' | '>' => self.marks += 1,
            _ if c.is_ascii() => {}
            _ if c.is_numeric() => self.digits += 1,
            _ if c.is_alphabetic() => {
                self.letters += 1;
                self.upper += u32::from(c.is_uppercase());
                self.inner_capital |= c.is_uppercase() && self.previous.is_lowercase();
            }
            _ => {}
        }
        self.is_ascii &= c.is_ascii();
        self.key = extend_hash_lowercase(self.key, c);
        self.previous = c;
    }

    fn emit_terms<'a>(
        &self,
        text: &'a str,
        sentence_start: bool,
        emit: &mut dyn FnMut(TermOccurrence<'a>),
    ) {
        if self.is_ascii && text.len() > TOKEN_MAX {
            return;
        }
        if self.is_ascii || self.characters <= SPACELESS_MIN {
            let (key, class) = (self.key.finish(), self.classify_token(sentence_start));
            emit(TermOccurrence { text, key, class, is_lowercase: self.first.is_lowercase() });
            return;
        }
        let ends = text.char_indices().skip(3).map(|(at, _)| at).chain([text.len()]);
        for ((from, _), to) in text.char_indices().zip(ends) {
            emit(build_gram(text.get(from..to).unwrap_or("")));
        }
    }

    fn classify_token(&self, sentence_start: bool) -> TermClass {
        let short = self.letters + self.digits < 3;
        if self.letters == 0 {
            return if self.digits >= 2 { TermClass::Number } else { TermClass::ShortWord };
        }
        // A single slash is a choice between words, not a path.
        let path = self.slashes >= 2 || (self.slashes > 0 && self.dots + self.marks > 0);
        let marked = self.digits > 0 || self.marks > 0 || self.inner_capital || self.dots > 0;
        if (marked || path) && !short {
            return TermClass::Identifier;
        }
        let capitals = self.upper >= 2 && self.upper == self.letters;
        if capitals || (self.first.is_uppercase() && !sentence_start && self.letters >= 2) {
            return TermClass::Name;
        }
        if self.letters >= 4 { TermClass::Word } else { TermClass::ShortWord }
    }
}
