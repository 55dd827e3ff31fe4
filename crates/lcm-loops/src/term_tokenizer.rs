//! Splits a text into search terms: words, identifiers, and characters of scripts without spaces.
//!
//! Input: a text. Output: terms, each with its position and byte range. The first byte of a term is
//! its kind:
//!
//! | kind | term |
//! |---|---|
//! | `w` | word |
//! | `s` | stem of an inflected English word, in addition to the word |
//! | `i` | identifier as a whole, or a word with the single `-` in front of it: a flag |
//! | `c` | one or two characters of a script without spaces, or a symbol |
//!
//! Words and identifiers are folded by [`crate::char_fold`]. A word is a run of letters and digits,
//! split at camel case and at inner punctuation. A run that was split is also an identifier if it
//! has at most 256 bytes and no character of a script without spaces. ASCII has a fast path,
//! because nearly all text is ASCII. `lcm-core` indexes texts and parses queries with these terms,
//! and adds terms of other kinds.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{char_fold, cjk, int, stemmer};

/// Largest number of bytes of a term after its kind; a longer term is cut.
pub const TERM_BYTES_MAX: usize = 64;
/// Largest number of bytes of a run with inner punctuation that is also an identifier.
const IDENTIFIER_BYTES_MAX: usize = 256;
/// Largest number of words in a camel-case run. A run with more words, or with more than
/// [`TERM_BYTES_MAX`] bytes, is probably encoded data and is not split.
const CAMEL_PARTS_MAX: usize = 8;

/// Classes of bytes. `HIGH` is any byte of a non-ASCII character, `JOINER` punctuation that may
/// join the words of an identifier.
const SEPARATOR: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 3;
const HIGH: u8 = 4;
const JOINER: u8 = 5;

const CLASSES: [u8; 256] = build_classes();

const fn build_classes() -> [u8; 256] {
    let mut table = [SEPARATOR; 256];
    let mut byte = 0u8;
    loop {
        #[expect(clippy::as_conversions, clippy::indexing_slicing, reason = "evaluated by rustc")]
        {
            table[byte as usize] = match byte {
                b'a'..=b'z' => LOWER,
                b'A'..=b'Z' => UPPER,
                b'0'..=b'9' => DIGIT,
                0x80..=0xff => HIGH,
                b'_' | b'-' | b'.' | b'/' | b':' => JOINER,
                _ => SEPARATOR,
            };
        }
        if byte == 255 {
            return table;
        }
        byte += 1;
    }
}

fn byte_class(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).and_then(|byte| CLASSES.get(usize::from(*byte))).copied().unwrap_or(SEPARATOR)
}

/// Hashes bytes. The hash is equal in every host and does not resist deliberate collisions.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;
    let mut hash = int::to_u64(bytes.len()).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    let mut last = 0u64;
    for byte in rest {
        last = (last << 8) | u64::from(*byte);
    }
    hash = (hash ^ last).wrapping_mul(FACTOR);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 32)
}

/// Returns whether the index stores the positions of a term: only of words and of terms of one
/// character.
///
/// The tokenizer gives an identifier the position of its first word, and a pair of characters the
/// position of its first character.
pub fn has_positions(term: &[u8]) -> bool {
    match term {
        [b'w', ..] => true,
        [b'c', rest @ ..] => core::str::from_utf8(rest).is_ok_and(|text| {
            let mut characters = text.chars();
            characters.next().is_some() && characters.next().is_none()
        }),
        _ => false,
    }
}

/// Receives a term with its kind, its position, and the byte range of its source.
pub type EachTerm<'e> = &'e mut dyn FnMut(&[u8], u32, Range<usize>);

/// A tokenizer of texts.
pub struct TermTokenizer<'e> {
    each: EachTerm<'e>,
    /// Position of the next word or single character.
    pub position: u32,
    /// Byte offset of the current text in the whole text, added to the ranges of terms; not added
    /// to `fixed_range`.
    pub text_offset: usize,
    /// Range of the whole text to report for every term; `None`: the range of the term itself.
    pub fixed_range: Option<Range<usize>>,
    /// Buffer for the current term.
    term: Vec<u8>,
    /// Buffer for the stem of a word.
    stem: Vec<u8>,
}

impl<'e> TermTokenizer<'e> {
    /// Starts at position 0 and passes terms to `each`.
    pub fn new(each: EachTerm<'e>) -> Self {
        Self {
            each,
            position: 0,
            text_offset: 0,
            fixed_range: None,
            term: Vec::new(),
            stem: Vec::new(),
        }
    }

    /// Emits a whole text as one term of a kind at the next position, without advancing the
    /// position.
    pub fn emit_folded_whole(&mut self, kind: u8, text: &str) {
        self.start_term(kind);
        self.push_folded(text);
        self.emit_term(self.position, 0, text.len());
    }

    fn start_term(&mut self, kind: u8) {
        self.term.clear();
        self.term.push(kind);
    }

    /// Appends a text to the term, folded and cut to [`TERM_BYTES_MAX`].
    fn push_folded(&mut self, text: &str) {
        for c in text.chars() {
            if self.term.len() > TERM_BYTES_MAX {
                break;
            }
            let term = &mut self.term;
            char_fold::fold_char(c, &mut |c| {
                term.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            });
        }
        self.term.truncate(TERM_BYTES_MAX + 1);
    }

    fn emit_term(&mut self, position: u32, from: usize, to: usize) {
        let range = match &self.fixed_range {
            None => self.text_offset + from..self.text_offset + to,
            Some(whole) => whole.clone(),
        };
        (self.each)(&self.term, position, range);
    }

    /// Emits the ASCII bytes `from..to` as a term of a kind, folded and cut to [`TERM_BYTES_MAX`].
    fn emit_ascii(&mut self, kind: u8, bytes: &[u8], from: usize, to: usize) {
        let to_cut = to.min(from + TERM_BYTES_MAX);
        let source = bytes.get(from..to_cut).unwrap_or_default();
        self.start_term(kind);
        // Byte by byte, because a bulk copy of a few bytes is a call of the host in the component.
        for byte in source {
            self.term.push(byte.to_ascii_lowercase());
        }
        self.emit_term(self.position, from, to);
    }

    fn emit_word(&mut self, bytes: &[u8], from: usize, to: usize) {
        self.emit_ascii(b'w', bytes, from, to);
        let word = self.term.get(1..).unwrap_or_default();
        if stemmer::stem_word(word, &mut self.stem) {
            self.start_term(b's');
            self.term.extend_from_slice(&self.stem);
            self.emit_term(self.position, from, to);
        }
        self.position += 1;
    }

    /// Emits the terms of a text.
    pub fn tokenize_text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let first = byte_class(bytes, at);
            if first == SEPARATOR || first == JOINER {
                at += 1;
                continue;
            }
            let run = scan_run(bytes, at);
            if at > 0 && bytes.get(at - 1) == Some(&b'-') && !run.has_non_ascii {
                self.emit_flag(bytes, at, run.end);
            }
            if run.has_non_ascii {
                self.emit_mixed(text, at, run.end);
            } else if run.is_joined || run.is_camel_case {
                self.emit_identifier(bytes, at, run.end, run.is_joined);
            } else {
                self.emit_word(bytes, at, run.end);
            }
            at = run.end;
        }
    }

    /// Emits a flag as an identifier: a single `-` and the ASCII run behind it, up to the first
    /// `/`, `.` or `:`, so that `-C/path` has the flag `-C`.
    fn emit_flag(&mut self, bytes: &[u8], from: usize, to: usize) {
        if from == 1 || byte_class(bytes, from - 2) == SEPARATOR {
            let end = (from..to).find(|at| matches!(bytes.get(*at), Some(b'/' | b'.' | b':')));
            self.emit_ascii(b'i', bytes, from - 1, end.unwrap_or(to));
        }
    }

    /// Emits an ASCII run with inner punctuation (`joined`) or camel case. A joined run of at most
    /// [`IDENTIFIER_BYTES_MAX`] bytes is an identifier, then its words follow.
    fn emit_identifier(&mut self, bytes: &[u8], from: usize, to: usize, joined: bool) {
        if joined && to - from <= IDENTIFIER_BYTES_MAX {
            self.emit_ascii(b'i', bytes, from, to);
        }
        let mut at = from;
        while at < to {
            if byte_class(bytes, at) == JOINER {
                at += 1;
                continue;
            }
            let mut end = at;
            while end < to && byte_class(bytes, end) != JOINER {
                end += 1;
            }
            self.emit_camel_case(bytes, at, end);
            at = end;
        }
    }

    /// Emits letters and digits: one word, or an identifier and the words of its camel case.
    fn emit_camel_case(&mut self, bytes: &[u8], from: usize, to: usize) {
        let begins = |at: usize| {
            let (before, here) = (byte_class(bytes, at - 1), byte_class(bytes, at));
            let next_lower = at + 1 < to && byte_class(bytes, at + 1) == LOWER;
            here == UPPER && (before == LOWER || (before == UPPER && next_lower))
        };
        let parts = 1 + (from + 1..to).filter(|at| begins(*at)).count();
        if parts == 1 || parts > CAMEL_PARTS_MAX || to - from > TERM_BYTES_MAX {
            return self.emit_word(bytes, from, to);
        }
        self.emit_ascii(b'i', bytes, from, to);
        let mut start = from;
        for at in from + 1..to {
            if begins(at) {
                self.emit_word(bytes, start, at);
                start = at;
            }
        }
        self.emit_word(bytes, start, to);
    }

    /// Emits a run with non-ASCII characters, as it reads when its characters are composed. If that
    /// changes the run, each of its terms has the range of the whole run.
    fn emit_mixed(&mut self, text: &str, from: usize, to: usize) {
        let run = text.get(from..to).unwrap_or_default();
        if !run.contains(char_fold::is_composed) {
            return self.emit_pieces(text, from, to);
        }
        let composed = char_fold::compose_text(run);
        let range = self.text_offset + from..self.text_offset + to;
        let fixed_range = self.fixed_range.clone();
        self.fixed_range.get_or_insert(range);
        self.emit_pieces(&composed, 0, composed.len());
        self.fixed_range = fixed_range;
    }

    /// Emits a run split at each non-ASCII character that is neither letter, digit nor mark. ASCII
    /// joiners stay in the pieces. A symbol is a term of its own.
    fn emit_pieces(&mut self, text: &str, from: usize, to: usize) {
        let run = text.get(from..to).unwrap_or_default();
        let mut start = None;
        for (offset, c) in run.char_indices() {
            let at = from + offset;
            if c.is_ascii() || is_word_char(c) || char_fold::is_mark(c) {
                start = start.or(Some(at));
                continue;
            }
            if let Some(begin) = start.take() {
                self.emit_mixed_piece(text, begin, at);
            }
            if is_symbol(c) {
                self.emit_characters(text, self.position, at, at + c.len_utf8());
                self.position += 1;
            }
        }
        if let Some(begin) = start {
            self.emit_mixed_piece(text, begin, to);
        }
    }

    /// Emits a piece of letters, digits, marks and joiners.
    fn emit_mixed_piece(&mut self, text: &str, from: usize, to: usize) {
        let whole = text.get(from..to).unwrap_or_default();
        if whole.is_ascii() {
            // The piece may begin or end with a joiner.
            let bytes = text.as_bytes();
            let mut at = from;
            while at < to {
                if byte_class(bytes, at) == JOINER {
                    at += 1;
                    continue;
                }
                let end = scan_run(bytes, at).end.min(to);
                self.emit_identifier(bytes, at, end, has_joiner(bytes, at, end));
                at = end;
            }
            return;
        }
        let joiner = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
        let trimmed = whole.trim_matches(joiner);
        let spaced = !trimmed.chars().any(is_unspaced);
        if spaced && trimmed.contains(joiner) && trimmed.len() <= IDENTIFIER_BYTES_MAX {
            let begin = from + (whole.len() - whole.trim_start_matches(joiner).len());
            self.start_term(b'i');
            self.push_folded(trimmed);
            self.emit_term(self.position, begin, begin + trimmed.len());
        }
        let mut at = from;
        for part in whole.split(joiner) {
            self.emit_scripts(text, at, at + part.len());
            at += part.len() + 1;
        }
    }

    /// Emits a piece without joiners: words, and single characters and pairs of scripts without
    /// spaces.
    fn emit_scripts(&mut self, text: &str, from: usize, to: usize) {
        let part = text.get(from..to).unwrap_or_default();
        let mut start = None;
        // Byte range of the last character of a script without spaces.
        let mut last: Option<(usize, usize)> = None;
        for (offset, c) in part.char_indices() {
            let at = from + offset;
            if is_unspaced(c) {
                self.finish_word(text, &mut start, at);
                let end = at + c.len_utf8();
                if let Some((begin, _)) = last.filter(|(_, end)| *end == at) {
                    self.emit_characters(text, self.position - 1, begin, end);
                }
                self.emit_characters(text, self.position, at, end);
                self.position += 1;
                last = Some((at, end));
            } else if start.is_none() && !char_fold::is_mark(c) {
                start = Some(at);
            }
        }
        self.finish_word(text, &mut start, to);
    }

    /// Emits one or two characters of a script without spaces, unchanged.
    fn emit_characters(&mut self, text: &str, position: u32, from: usize, to: usize) {
        self.start_term(b'c');
        self.term.extend_from_slice(text.get(from..to).unwrap_or_default().as_bytes());
        self.emit_term(position, from, to);
    }

    /// Emits the word that begins at `start`, if any, and clears `start`. An ASCII word gives the
    /// same terms as between spaces, so that `GitHub` is found in Chinese and in English sentences.
    fn finish_word(&mut self, text: &str, start: &mut Option<usize>, to: usize) {
        if let Some(from) = start.take() {
            if text.get(from..to).is_some_and(str::is_ascii) {
                return self.emit_camel_case(text.as_bytes(), from, to);
            }
            self.start_term(b'w');
            self.push_folded(text.get(from..to).unwrap_or_default());
            self.emit_term(self.position, from, to);
            self.position += 1;
        }
    }
}

/// A run of word characters with single joiners between them.
struct WordRun {
    end: usize,
    /// Whether the run has bytes beyond ASCII.
    has_non_ascii: bool,
    is_joined: bool,
    /// Whether some capital directly follows an ASCII letter.
    is_camel_case: bool,
}

fn scan_run(bytes: &[u8], from: usize) -> WordRun {
    let mut run =
        WordRun { end: from, has_non_ascii: false, is_joined: false, is_camel_case: false };
    let mut before = SEPARATOR;
    loop {
        let here = byte_class(bytes, run.end);
        match here {
            LOWER | DIGIT => run.end += 1,
            UPPER => {
                run.is_camel_case |= before == LOWER || before == UPPER;
                run.end += 1;
            }
            HIGH => {
                run.has_non_ascii = true;
                run.end += 1;
            }
            JOINER => {
                let width = joiner_width(bytes, run.end);
                if width == 0 {
                    return run;
                }
                run.is_joined = true;
                run.end += width;
            }
            _ => return run,
        }
        before = here;
    }
}

/// Returns the width in bytes of the joiner at an offset, where the caller found one: 3 for `://`,
/// 2 for `::`, else 1. If no letter or digit follows the joiner, the width is 0.
fn joiner_width(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let width = match rest {
        [b':', b'/', b'/', ..] => 3,
        [b':', b':', ..] => 2,
        _ => 1,
    };
    let follows = matches!(byte_class(bytes, at + width), LOWER | UPPER | DIGIT | HIGH);
    if follows { width } else { 0 }
}

fn has_joiner(bytes: &[u8], from: usize, to: usize) -> bool {
    (from..to).any(|at| byte_class(bytes, at) == JOINER)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric()
}

/// Returns whether a character is a symbol that people search for: a sign of money, an arrow, a
/// sign of mathematics or technology, or an emoji. Characters that draw boxes are no symbols,
/// because programs draw tables with them.
const fn is_symbol(c: char) -> bool {
    matches!(c, '\u{20a0}'..='\u{20cf}' | '\u{2190}'..='\u{24ff}' | '\u{25a0}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character is tokenised as a script without spaces: Chinese, Japanese, Korean,
/// Thai, Lao, Burmese and Khmer.
fn is_unspaced(c: char) -> bool {
    if u32::from(c) < 0xE00 {
        return false;
    }
    let south_east = matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}');
    (cjk::is_cjk(c) && !char_fold::to_half_width(c).is_ascii() && c.is_alphanumeric()) || south_east
}
