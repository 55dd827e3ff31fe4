//! Index terms of a text.
//!
//! In: a text and its field. Out: terms, each with its position and the bytes it was made from.
//! The first byte of a term is its kind: `w` word, `i` identifier as typed, `c` characters of a
//! script without spaces, `n` tool name. Words are runs of letters and digits, folded (see
//! [`super::fold`]), cut at camel case and at inner punctuation; the whole of what was cut is an
//! identifier beside its words. ASCII takes a path of its own, because it is nearly everything.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Field, fold};
use crate::{
    json::{self, Scanner, Span, TokenKind},
    tokens,
};

/// Most bytes of a term after its kind; longer ones are cut.
pub(crate) const TERM_BYTES_MAX: usize = 64;
/// Longest run that counts as one identifier.
const IDENTIFIER_BYTES_MAX: usize = 256;
/// Most words that camel case parts a run into; more is no name but encoded data.
const CAMEL_PARTS_MAX: usize = 8;

/// Classes of bytes.
const SEPARATOR: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 3;
const HIGH: u8 = 4;
const JOINER: u8 = 5;

const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
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

fn class(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).and_then(|byte| CLASSES.get(usize::from(*byte))).copied().unwrap_or(SEPARATOR)
}

/// A hash of bytes: the same everywhere, and not meant to withstand whoever wants collisions.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;
    let mut hash = crate::num::to_u64(bytes.len()).wrapping_mul(FACTOR);
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

/// Whether the positions of a term are kept: words and single characters. An identifier stands
/// where its first word stands, a pair of characters where its first one does.
pub(crate) fn has_positions(term: &[u8]) -> bool {
    match term {
        [b'w', ..] => true,
        [b'c', rest @ ..] => core::str::from_utf8(rest).is_ok_and(|text| {
            let mut characters = text.chars();
            characters.next().is_some() && characters.next().is_none()
        }),
        _ => false,
    }
}

/// Takes a term with its kind, its position, and the bytes of the text it stands for.
pub(crate) type EachTerm<'e> = &'e mut dyn FnMut(&[u8], u32, Range<usize>);

/// Hands out the terms of a text: kind and bytes, position, and the bytes of `text` it stands for.
///
/// Positions start at 0 and never decrease; the number of positions is returned. Of JSON in
/// arguments and results the keys, strings and numbers are read, not the syntax; a term of a string
/// with escapes stands for the whole string.
pub(crate) fn each_term(field: Field, text: &str, each: EachTerm<'_>) -> u32 {
    let mut walk = Walk { each, position: 0, shift: 0, whole: None, term: Vec::new() };
    match field {
        Field::ToolName if text.is_empty() => {}
        Field::ToolName => {
            walk.start(b'n');
            walk.folded(text);
            walk.emit(0, 0, text.len());
            walk.text(text);
        }
        Field::Arguments | Field::Result => walk.json_or_text(text),
        Field::Text | Field::Reasoning | Field::FileName | Field::FileText => walk.text(text),
    }
    walk.position
}

struct Walk<'e> {
    each: EachTerm<'e>,
    position: u32,
    /// Where the text that is read begins in the text that was given.
    shift: usize,
    /// What every term stands for, when its own place is unknown.
    whole: Option<Range<usize>>,
    /// The term that is made.
    term: Vec<u8>,
}

impl Walk<'_> {
    fn start(&mut self, kind: u8) {
        self.term.clear();
        self.term.push(kind);
    }

    /// Adds text to the term, in lower case and without accents.
    fn folded(&mut self, text: &str) {
        for c in text.chars() {
            if self.term.len() > TERM_BYTES_MAX {
                break;
            }
            let term = &mut self.term;
            fold::fold(c, &mut |c| {
                term.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            });
        }
        self.term.truncate(TERM_BYTES_MAX + 1);
    }

    fn emit(&mut self, position: u32, from: usize, to: usize) {
        let range = match &self.whole {
            None => self.shift + from..self.shift + to,
            Some(whole) => whole.clone(),
        };
        (self.each)(&self.term, position, range);
    }

    /// Hands out ASCII as a term of a kind, at a position.
    fn ascii(&mut self, kind: u8, bytes: &[u8], position: u32, from: usize, to: usize) {
        let to_cut = to.min(from + TERM_BYTES_MAX);
        let source = bytes.get(from..to_cut).unwrap_or_default();
        self.term.clear();
        self.term.push(kind);
        self.term.extend_from_slice(source);
        self.term.make_ascii_lowercase();
        // The kind itself is a lower-case letter.
        self.emit(position, from, to);
    }

    fn word(&mut self, bytes: &[u8], from: usize, to: usize) {
        self.ascii(b'w', bytes, self.position, from, to);
        self.position += 1;
    }

    fn json_or_text(&mut self, text: &str) {
        let container = text.trim_start().starts_with(['{', '[']);
        if !container || !is_json(text) {
            return self.text(text);
        }
        let mut scanner = Scanner::new(text);
        while let Ok(Some(token)) = scanner.next_token() {
            match token.kind {
                TokenKind::Key | TokenKind::String => {
                    let span = Span::between(token.start, token.end);
                    let inner = json::slice(text, span);
                    if inner.contains('\\') {
                        self.whole = Some(token.start..token.end);
                        self.text(&json::text(text, span));
                        self.whole = None;
                    } else {
                        self.shift = token.start + 1;
                        self.text(inner.trim_matches('"'));
                    }
                }
                TokenKind::Number => {
                    self.shift = token.start;
                    self.text(json::slice(text, Span::between(token.start, token.end)));
                }
                _ => {}
            }
        }
    }

    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let first = class(bytes, at);
            if first == SEPARATOR || first == JOINER {
                at += 1;
                continue;
            }
            let run = run(bytes, at);
            if run.high {
                self.mixed(text, at, run.end);
            } else if run.joined || run.camel {
                self.identifier(bytes, at, run.end, run.joined);
            } else {
                self.word(bytes, at, run.end);
            }
            at = run.end;
        }
    }

    /// An ASCII run with inner punctuation or camel case: the whole, and its words.
    fn identifier(&mut self, bytes: &[u8], from: usize, to: usize, joined: bool) {
        if joined && to - from <= IDENTIFIER_BYTES_MAX {
            self.ascii(b'i', bytes, self.position, from, to);
        }
        let mut at = from;
        while at < to {
            if class(bytes, at) == JOINER {
                at += 1;
                continue;
            }
            let mut end = at;
            while end < to && class(bytes, end) != JOINER {
                end += 1;
            }
            self.camel(bytes, at, end);
            at = end;
        }
    }

    /// Letters and digits, parted where camel case begins a word.
    fn camel(&mut self, bytes: &[u8], from: usize, to: usize) {
        let begins = |at: usize| {
            let (before, here) = (class(bytes, at - 1), class(bytes, at));
            let next_lower = at + 1 < to && class(bytes, at + 1) == LOWER;
            here == UPPER && (before == LOWER || (before == UPPER && next_lower))
        };
        let parts = 1 + (from + 1..to).filter(|at| begins(*at)).count();
        if parts == 1 || parts > CAMEL_PARTS_MAX || to - from > TERM_BYTES_MAX {
            return self.word(bytes, from, to);
        }
        self.ascii(b'i', bytes, self.position, from, to);
        let mut start = from;
        for at in from + 1..to {
            if begins(at) {
                self.word(bytes, start, at);
                start = at;
            }
        }
        self.word(bytes, start, to);
    }

    /// A run with characters beyond ASCII: parted at those that are no part of a word.
    fn mixed(&mut self, text: &str, from: usize, to: usize) {
        let run = text.get(from..to).unwrap_or_default();
        let mut start = None;
        for (offset, c) in run.char_indices() {
            let inside = c.is_ascii() || is_word(c) || fold::is_mark(c);
            match (inside, start) {
                (true, None) => start = Some(from + offset),
                (false, Some(begin)) => {
                    self.piece(text, begin, from + offset);
                    start = None;
                }
                _ => {}
            }
        }
        if let Some(begin) = start {
            self.piece(text, begin, to);
        }
    }

    /// Word characters, marks and joiners only.
    fn piece(&mut self, text: &str, from: usize, to: usize) {
        let whole = text.get(from..to).unwrap_or_default();
        if whole.is_ascii() {
            // What is left may begin or end with a joiner.
            let bytes = text.as_bytes();
            let mut at = from;
            while at < to {
                if class(bytes, at) == JOINER {
                    at += 1;
                    continue;
                }
                let end = run(bytes, at).end.min(to);
                self.identifier(bytes, at, end, end_is_joined(bytes, at, end));
                at = end;
            }
            return;
        }
        let joiner = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
        let trimmed = whole.trim_matches(joiner);
        let spaced = !trimmed.chars().any(is_unspaced);
        if spaced && trimmed.contains(joiner) && trimmed.len() <= IDENTIFIER_BYTES_MAX {
            let begin = from + (whole.len() - whole.trim_start_matches(joiner).len());
            self.start(b'i');
            self.folded(trimmed);
            self.emit(self.position, begin, begin + trimmed.len());
        }
        let mut at = from;
        for part in whole.split(joiner) {
            self.scripts(text, at, at + part.len());
            at += part.len() + 1;
        }
    }

    /// Word characters and marks: words, and characters of scripts without spaces.
    fn scripts(&mut self, text: &str, from: usize, to: usize) {
        let part = text.get(from..to).unwrap_or_default();
        let mut start = None;
        // Where the last character without spaces begins and ends.
        let mut last: Option<(usize, usize)> = None;
        for (offset, c) in part.char_indices() {
            let at = from + offset;
            if is_unspaced(c) {
                self.finish(text, &mut start, at);
                let end = at + c.len_utf8();
                if let Some((begin, _)) = last.filter(|(_, end)| *end == at) {
                    self.characters(text, self.position - 1, begin, end);
                }
                self.characters(text, self.position, at, end);
                self.position += 1;
                last = Some((at, end));
            } else if start.is_none() && !fold::is_mark(c) {
                start = Some(at);
            }
        }
        self.finish(text, &mut start, to);
    }

    /// One character of a script without spaces, or two.
    fn characters(&mut self, text: &str, position: u32, from: usize, to: usize) {
        self.start(b'c');
        self.term.extend_from_slice(text.get(from..to).unwrap_or_default().as_bytes());
        self.emit(position, from, to);
    }

    fn finish(&mut self, text: &str, start: &mut Option<usize>, to: usize) {
        if let Some(from) = start.take() {
            self.start(b'w');
            self.folded(text.get(from..to).unwrap_or_default());
            self.emit(self.position, from, to);
            self.position += 1;
        }
    }
}

/// A run of word characters with single joiners between them.
struct Run {
    end: usize,
    /// It has bytes beyond ASCII.
    high: bool,
    joined: bool,
    /// A capital follows a letter.
    camel: bool,
}

fn run(bytes: &[u8], from: usize) -> Run {
    let mut run = Run { end: from, high: false, joined: false, camel: false };
    let mut before = SEPARATOR;
    loop {
        let here = class(bytes, run.end);
        match here {
            LOWER | DIGIT => run.end += 1,
            UPPER => {
                run.camel |= before == LOWER || before == UPPER;
                run.end += 1;
            }
            HIGH => {
                run.high = true;
                run.end += 1;
            }
            JOINER => {
                let width = joiner(bytes, run.end);
                if width == 0 {
                    return run;
                }
                run.joined = true;
                run.end += width;
            }
            _ => return run,
        }
        before = here;
    }
}

/// Bytes of the joiner at an offset: one, `::` or `://`, with a word character behind it; else 0.
fn joiner(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let width = match rest {
        [b':', b'/', b'/', ..] => 3,
        [b':', b':', ..] => 2,
        _ => 1,
    };
    let follows = matches!(class(bytes, at + width), LOWER | UPPER | DIGIT | HIGH);
    if follows { width } else { 0 }
}

fn end_is_joined(bytes: &[u8], from: usize, to: usize) -> bool {
    (from..to).any(|at| class(bytes, at) == JOINER)
}

fn is_json(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    loop {
        match scanner.next_token() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

/// Scripts written without spaces: Chinese, Japanese and Korean, and those of South East Asia.
fn is_unspaced(c: char) -> bool {
    if u32::from(c) < 0xE00 {
        return false;
    }
    let south_east = matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}');
    (tokens::is_cjk(c) && !fold::narrow(c).is_ascii() && c.is_alphanumeric()) || south_east
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String, vec};

    use super::*;

    fn terms(field: Field, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_term(field, text, &mut |term, position, range| {
            assert!(text.get(range).is_some(), "a range lies in the text");
            out.push(format!("{}@{position}", String::from_utf8_lossy(term)));
        });
        out
    }

    fn plain(text: &str) -> Vec<String> {
        terms(Field::Text, text)
    }

    #[test]
    fn words_are_folded_and_counted() {
        assert_eq!(plain("The cat, THE hat."), ["wthe@0", "wcat@1", "wthe@2", "what@3"]);
        assert_eq!(plain("Caf\u{e9} na\u{ef}ve"), ["wcafe@0", "wnaive@1"]);
        assert_eq!(plain("cafe\u{301} sha256"), ["wcafe@0", "wsha256@1"]);
        assert_eq!(plain("\u{201c}so\u{201d}\u{2014}no\u{2026}"), ["wso@0", "wno@1"]);
        assert_eq!(plain(""), Vec::<String>::new());
    }

    #[test]
    fn identifiers_are_kept_whole_and_in_words() {
        assert_eq!(
            plain("see src/mainLoop.rs:12."),
            [
                "wsee@0",
                "isrc/mainloop.rs:12@1",
                "wsrc@1",
                "imainloop@2",
                "wmain@2",
                "wloop@3",
                "wrs@4",
                "w12@5"
            ]
        );
        assert_eq!(plain("fooBar"), ["ifoobar@0", "wfoo@0", "wbar@1"]);
        assert_eq!(plain("parseHTMLText"), ["iparsehtmltext@0", "wparse@0", "whtml@1", "wtext@2"]);
        assert_eq!(plain("HTTP"), ["whttp@0"]);
        assert_eq!(
            plain("a::b x://y p...q"),
            ["ia::b@0", "wa@0", "wb@1", "ix://y@2", "wx@2", "wy@3", "wp@4", "wq@5"]
        );
        assert_eq!(plain("stra\u{df}e_nord")[0], "istra\u{df}e_nord@0");
    }

    #[test]
    fn encoded_data_is_not_parted_at_every_capital() {
        let data = "aBcDeFgHiJkLmNoPqRsTuV";
        assert_eq!(plain(data), [format!("w{}@0", data.to_lowercase())]);
        let long = "x".repeat(300);
        assert_eq!(plain(&long), [format!("w{}@0", "x".repeat(TERM_BYTES_MAX))]);
        let accents = "\u{e9}".repeat(300);
        assert_eq!(plain(&accents), [format!("w{}@0", "e".repeat(TERM_BYTES_MAX))]);
    }

    #[test]
    fn scripts_without_spaces_are_characters_and_pairs() {
        assert_eq!(
            plain("\u{6570}\u{636e}\u{5e93}v2"),
            [
                "c\u{6570}@0",
                "c\u{6570}\u{636e}@0",
                "c\u{636e}@1",
                "c\u{636e}\u{5e93}@1",
                "c\u{5e93}@2",
                "wv2@3"
            ]
        );
        // A comma parts a pair; full-width letters are letters.
        assert_eq!(plain("\u{6570}\u{ff0c}\u{636e}"), ["c\u{6570}@0", "c\u{636e}@1"]);
        assert_eq!(plain("\u{ff21}\u{ff22}"), ["wab@0"]);
        assert_eq!(plain("\u{e01}\u{e02}"), ["c\u{e01}@0", "c\u{e01}\u{e02}@0", "c\u{e02}@1"]);
        assert!(
            has_positions("c\u{6570}".as_bytes()) && !has_positions("c\u{6570}\u{636e}".as_bytes())
        );
    }

    #[test]
    fn json_is_read_without_its_syntax() {
        let json = r#"{"file_path":"src/a.rs","n":[1,true,null,"x\ny"]}"#;
        let expected = vec![
            "ifile_path@0",
            "wfile@0",
            "wpath@1",
            "isrc/a.rs@2",
            "wsrc@2",
            "wa@3",
            "wrs@4",
            "wn@5",
            "w1@6",
            "wx@7",
            "wy@8",
        ];
        assert_eq!(terms(Field::Arguments, json), expected);
        assert_eq!(terms(Field::Result, "[no json"), ["wno@0", "wjson@1"]);
        assert_eq!(
            terms(Field::ToolName, "list_dir"),
            ["nlist_dir@0", "ilist_dir@0", "wlist@0", "wdir@1"]
        );
        let mut ranges = Vec::new();
        each_term(Field::Arguments, json, &mut |_, _, range| ranges.push(range));
        assert_eq!(json.get(ranges[3].clone()), Some("src/a.rs"));
        assert_eq!(json.get(ranges[9].clone()), Some(r#""x\ny""#));
    }

    /// Goal: nothing panics and every range is sound. Method: every string of up to 4 of these.
    #[test]
    fn any_text_has_sound_terms() {
        let alphabet = [
            "a", "B", "1", "-", ":", "/", " ", "\u{e9}", "\u{6570}", "\u{301}", "\u{2014}",
            "\u{ff21}", "\u{e01}", "{", "\"",
        ];
        let mut texts = vec![String::new()];
        for length in 0..4 {
            let longer: Vec<String> = texts
                .iter()
                .filter(|text| text.chars().count() == length)
                .flat_map(|text| alphabet.iter().map(move |next| format!("{text}{next}")))
                .collect();
            texts.extend(longer);
        }
        for text in &texts {
            for field in [Field::Text, Field::Arguments, Field::ToolName] {
                let mut last = 0;
                let positions = each_term(field, text, &mut |term, position, range| {
                    assert!(term.len() <= TERM_BYTES_MAX + 1 && position >= last.max(1) - 1);
                    assert!(
                        text.get(range.clone()).is_some_and(|part| !part.is_empty()),
                        "{text:?}"
                    );
                    last = position;
                });
                assert!(positions == 0 || positions > last);
            }
        }
        assert_eq!(texts.len(), 54_241);
    }
}
