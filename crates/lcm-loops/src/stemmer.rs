//! A stemmer for English: reduces inflected forms of a word to one stem, and hashes to their
//! abbreviation.
//!
//! Input: a word in lower-case ASCII letters. Output: its stem, which need not be a word, and
//! whether an inflection was removed. The rules are step 1 of M. F. Porter's algorithm (1980), its
//! removal of a final `e` and `ll`, and a list of irregular forms.
//!
//! Derived words (`happiness`) are not reduced, because they are many and gain little. The rules
//! are also applied to ASCII words of other languages. Larger functions are not inlined: most words
//! fail the first comparison, and the component must stay small although this crate is built for
//! speed. `term_tokenizer` stems indexed words, and queries look up the forms of their words.

use alloc::vec::Vec;

/// Smallest number of letters of a word with a stem.
const LETTERS_MIN: usize = 3;
/// Largest number of letters of a word with a stem.
const LETTERS_MAX: usize = 24;

/// Hexadecimal digits of an abbreviated hash, as git shows it, and the fewest digits of a hash.
const HASH_DIGITS: usize = 7;

/// Irregular forms, each with its base word, sorted by form.
///
/// Stems are stored in search indexes, so this list and every rule are part of the store format. A
/// change needs a rebuild of stored indexes (`docs/store-format.md`, *Terms*).
const IRREGULAR: &str = "\
ate eat|became become|began begin|begun begin|bent bend|bit bite|bitten bite|blew blow|blown blow|\
bought buy|broke break|broken break|brought bring|built build|came come|caught catch|\
children child|chose choose|chosen choose|dealt deal|drank drink|drawn draw|dreamt dream|\
drew draw|driven drive|drove drive|drunk drink|eaten eat|fallen fall|feet foot|fell fall|\
felt feel|flew fly|flown fly|forgot forget|forgotten forget|fought fight|found find|froze freeze|\
frozen freeze|gave give|given give|goes go|gone go|got get|gotten get|grew grow|grown grow|halves half|\
heard hear|held hold|hid hide|hidden hide|hung hang|kept keep|knew know|knives knife|\
known know|laid lay|learnt learn|leaves leaf|led lead|left leave|lent lend|lives life|lost lose|\
made make|meant mean|men man|met meet|mice mouse|paid pay|ran run|rang ring|ridden ride|\
risen rise|rode ride|rung ring|said say|sang sing|sat sit|saw see|seen see|sent send|shot shoot|\
shown show|slept sleep|sold sell|sought seek|spent spend|spoke speak|spoken speak|stole steal|\
stolen steal|stood stand|stuck stick|sung sing|swam swim|swum swim|taken take|taught teach|\
teeth tooth|thought think|threw throw|thrown throw|told tell|took take|tore tear|torn tear|\
understood understand|went go|wives wife|woke wake|woken wake|women woman|won win|wore wear|\
worn wear|written write|wrote write";

/// For each first letter, the last letters of the irregular forms with this first letter, as bits.
/// The table excludes most words without a search.
static LAST_LETTERS: [u32; 26] = last_letters(IRREGULAR.as_bytes());

/// Returns the bit of a lower-case letter and its index in the alphabet; for any other byte no bit
/// and an index above 25.
const fn letter_bit(byte: u8) -> (u32, u8) {
    let place = byte.wrapping_sub(b'a');
    (if place < 26 { 1 << place } else { 0 }, place)
}

const fn last_letters(mut list: &[u8]) -> [u32; 26] {
    let mut of_first = [0; 26];
    let (mut first, mut last, mut is_form) = (b'|', b'|', true);
    while let [byte, rest @ ..] = list {
        match *byte {
            b'|' => (first, is_form) = (b'|', true),
            b' ' => {
                let (mut places, mut left) = (of_first.as_mut_slice(), letter_bit(first).1);
                while let [place, others @ ..] = places {
                    if left == 0 {
                        *place |= letter_bit(last).0;
                        break;
                    }
                    (places, left) = (others, left - 1);
                }
                is_form = false;
            }
            byte if is_form => {
                first = if first == b'|' { byte } else { first };
                last = byte;
            }
            _ => {}
        }
        list = rest;
    }
    of_first
}

/// Returns whether a word has the first and the last letter of some irregular form.
fn may_be_irregular(form: &[u8]) -> bool {
    let (Some(first), Some(last)) = (form.first(), form.last()) else { return false };
    let last_letters = LAST_LETTERS.get(usize::from(letter_bit(*first).1));
    last_letters.is_some_and(|letters| letters & letter_bit(*last).0 != 0)
}

/// Writes the stem of a word to `out`, and returns whether an inflection was removed.
///
/// Without an inflection the stem may still differ from the word: `e`, `y` or `ll` at the end can
/// change. The stem of a hash is its abbreviation. A word that is too short or long, or has other
/// bytes than `a` to `z`, is its own stem.
#[inline(never)]
pub fn stem_word(word: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if !has_stem(word) {
        let short = abbreviate_hash(word);
        out.extend_from_slice(short.unwrap_or(word));
        return short.is_some();
    }
    let regular = Some(word).filter(|word| may_be_irregular(word)).and_then(find_irregular);
    let regular = regular.unwrap_or(word);
    out.extend_from_slice(regular);
    let mut inflected = regular != word;
    if !inflected {
        let plural = strip_plural(out);
        inflected = strip_past(out) || plural;
    }
    normalize_ending(out);
    inflected
}

fn has_stem(word: &[u8]) -> bool {
    (LETTERS_MIN..=LETTERS_MAX).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase)
}

/// Returns the first digits of a hash in lower case: of a word of hexadecimal digits, some of them
/// letters and some not. `None`: any other word.
fn abbreviate_hash(word: &[u8]) -> Option<&[u8]> {
    let is_hash = word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && word.iter().any(u8::is_ascii_digit)
        && word.iter().any(u8::is_ascii_alphabetic);
    word.get(..HASH_DIGITS).filter(|_| is_hash)
}

/// Calls `each` with the kind and text of every term by which a query finds a word in its forms.
///
/// Kind `w`: the word itself, and words that equal its stem or may have that stem. Kind `s`: the
/// stem, which the index has for inflected words and for hashes. The same word may come twice. A
/// word without a stem comes once, as kind `w`.
pub fn each_form(word: &[u8], each: &mut dyn FnMut(u8, &[u8])) {
    each(b'w', word);
    if !has_stem(word) {
        return abbreviate_hash(word).into_iter().for_each(|short| each(b's', short));
    }
    let mut stem = Vec::new();
    self::stem_word(word, &mut stem);
    each(b's', &stem);
    each(b'w', &stem);
    let Some(last) = stem.pop() else { return };
    if last == b'i' {
        stem.push(b'y');
        each(b'w', &stem);
        stem.pop();
    }
    if last != b'e' {
        stem.extend_from_slice(&[last, b'e']);
        each(b'w', &stem);
    }
}

/// Calls `each` with every irregular form that has this stem, such as `went` for `go`.
pub fn each_irregular(stem: &[u8], each: &mut dyn FnMut(&[u8])) {
    let mut of_form = Vec::new();
    for (form, word) in IRREGULAR.split('|').filter_map(|entry| entry.split_once(' ')) {
        // A stem and its base word have the same first letter.
        let is_near = word.as_bytes().first() == stem.first();
        if is_near && self::stem_word(form.as_bytes(), &mut of_form) && of_form == stem {
            each(form.as_bytes());
        }
    }
}

/// Returns the base word of an irregular form; `None`: the word is not in the list.
#[inline(never)]
fn find_irregular(form: &[u8]) -> Option<&'static [u8]> {
    let list = IRREGULAR.as_bytes();
    let (mut from, mut to) = (0, list.len());
    while from < to {
        // The entry that contains the middle.
        let middle = from.midpoint(to);
        let before = list.get(from..middle)?;
        let start = before.iter().rposition(|byte| *byte == b'|').map_or(from, |at| from + at + 1);
        let behind = list.get(start..to)?;
        let end = behind.iter().position(|byte| *byte == b'|').map_or(to, |at| start + at);
        let mut entry = list.get(start..end)?.split(|byte| *byte == b' ');
        match entry.next()?.cmp(form) {
            core::cmp::Ordering::Equal => return entry.next(),
            core::cmp::Ordering::Less => from = end + 1,
            core::cmp::Ordering::Greater => to = start.saturating_sub(1),
        }
    }
    None
}

/// Removes a plural ending, and returns whether there was one.
#[inline(never)]
fn strip_plural(word: &mut Vec<u8>) -> bool {
    let cut = match word.as_slice() {
        [.., b's', b's', b'e', b's'] => 2,
        [_, _, .., b'i', b'e', b's'] => 2,
        [.., b's' | b'u', b's'] => 0,
        [stem @ .., _, b's'] if has_vowel(stem) => 1,
        _ => 0,
    };
    word.truncate(word.len() - cut);
    cut > 0
}

/// Removes `ed` or `ing`, and returns whether there was one. May add `e` or remove a double letter.
#[inline(never)]
fn strip_past(word: &mut Vec<u8>) -> bool {
    let cut = match word.as_slice() {
        [_, _, .., b'i', b'e', b'd'] => 2,
        [_, b'i', b'e', b'd'] => 1,
        [stem @ .., b'e', b'e', b'd'] if count_vowel_groups(stem) > 0 => 1,
        [.., b'e', b'e', b'd'] => 0,
        [stem @ .., b'e', b'd'] if has_vowel(stem) => 2,
        [stem @ .., b'i', b'n', b'g'] if has_vowel(stem) => 3,
        _ => return false,
    };
    let is_whole = matches!(word.as_slice(), [.., b'i' | b'e', b'e', b'd']);
    word.truncate(word.len() - cut);
    if is_whole {
        return cut > 0;
    }
    match *word.as_slice() {
        [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => word.push(b'e'),
        [.., a, b] if a == b && !is_plain_vowel(b) && !matches!(b, b'l' | b's' | b'z') => {
            word.pop();
        }
        _ if count_vowel_groups(word) == 1 && ends_in_short_syllable(word) => word.push(b'e'),
        _ => {}
    }
    true
}

/// Unifies endings that a suffix changes: `y` after a consonant becomes `i`, and a silent `e` is
/// removed. `ll` becomes `l` in a word with several syllables.
#[inline(never)]
fn normalize_ending(word: &mut Vec<u8>) {
    if let [_, .., before, last @ b'y'] = word.as_mut_slice()
        && !is_plain_vowel(*before)
    {
        *last = b'i';
    }
    if let [stem @ .., b'e'] = word.as_slice() {
        let measure = count_vowel_groups(stem);
        let is_silent = measure > 1 || (measure == 1 && !ends_in_short_syllable(stem));
        if is_silent && !stem.ends_with(b"e") {
            word.pop();
        }
    }
    if word.ends_with(b"ll") && count_vowel_groups(word) > 1 {
        word.pop();
    }
}

const fn is_plain_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

/// Returns for each letter whether it is a vowel; `y` after a consonant is one.
fn iter_vowels(word: &[u8]) -> impl Iterator<Item = bool> {
    word.iter().scan(true, |before, byte| {
        *before = is_plain_vowel(*byte) || (*byte == b'y' && !*before);
        Some(*before)
    })
}

#[inline(never)]
fn has_vowel(word: &[u8]) -> bool {
    iter_vowels(word).any(|vowel| vowel)
}

/// Counts how often a consonant follows a vowel.
#[inline(never)]
fn count_vowel_groups(word: &[u8]) -> usize {
    let mut before = false;
    let falls = iter_vowels(word).filter(|vowel| {
        let falls = before && !vowel;
        before = *vowel;
        falls
    });
    falls.count()
}

/// Returns whether a word ends in consonant, vowel and consonant, and not in `w`, `x` or `y`.
#[inline(never)]
fn ends_in_short_syllable(word: &[u8]) -> bool {
    let mut last = [true; 3];
    for vowel in iter_vowels(word) {
        last = [last[1], last[2], vowel];
    }
    last == [false, true, false]
        && !word.ends_with(b"w")
        && !word.ends_with(b"x")
        && !word.ends_with(b"y")
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
mod tests {
    use alloc::{string::String, vec::Vec};

    use super::*;

    fn stemmed(word: &str) -> (String, bool) {
        let mut out = Vec::new();
        let inflected = stem_word(word.as_bytes(), &mut out);
        (String::from_utf8(out).unwrap(), inflected)
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            "make makes making made",
            "run runs running ran",
            "hope hopes hoped hoping",
            "hop hops hopped hopping",
            "city cities",
            "try tries tried trying",
            "die dies died",
            "house houses housed housing",
            "control controls controlled controlling",
            "relate relates related relating",
            "call calls called calling",
            "address addresses addressed",
            "agree agrees agreed agreeing",
            "buy buys bought buying",
            "fly flies flew flown flying",
            "leave left leaving",
            "child children",
            "go goes went gone going",
            "play plays played",
        ] {
            let stems: Vec<String> = forms.split(' ').map(|form| stemmed(form).0).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms}: {stems:?}");
        }
    }

    #[test]
    fn what_is_no_inflection_stays() {
        for word in [
            "this",
            "his",
            "bus",
            "glass",
            "thing",
            "king",
            "bring",
            "red",
            "need",
            "is",
            "car",
            "care",
            "plan",
            "w\u{e4}re",
            "x9s",
            "the",
            "speed",
            "sky",
        ] {
            assert!(!stemmed(word).1, "{word}");
        }
        assert_ne!(stemmed("car").0, stemmed("care").0);
        assert_ne!(stemmed("plans").0, stemmed("planes").0);
    }

    #[test]
    fn forms_of_a_query_reach_the_stem_and_the_plain_word() {
        let forms = |word: &str| {
            let mut out = Vec::new();
            each_form(word.as_bytes(), &mut |kind, form| {
                out.push(String::from_utf8([&[kind], form].concat()).unwrap());
            });
            out
        };
        assert_eq!(forms("housing"), ["whousing", "shous", "whous", "whouse"]);
        assert_eq!(forms("cities"), ["wcities", "sciti", "wciti", "wcity", "wcitie"]);
        assert_eq!(forms("went"), ["wwent", "sgo", "wgo", "wgoe"]);
    }

    /// Goal: a query for a stem finds every word with this stem. Method: for every word of up to 5
    /// letters that occur in rules: if the word is not inflected, it is a form of its stem.
    #[test]
    fn a_plain_word_is_a_form_of_its_stem() {
        let letters = *b"aeyilsdngt";
        let mut words: Vec<Vec<u8>> = alloc::vec![Vec::new()];
        let mut at = 0;
        let (mut looked, mut out) = (0u32, Vec::new());
        while let Some(word) = words.get(at).cloned() {
            at += 1;
            if word.len() < 5 {
                words.extend(letters.iter().map(|letter| [word.as_slice(), &[*letter]].concat()));
            }
            if word.len() >= LETTERS_MIN && !stem_word(&word, &mut out) && !word.ends_with(b"ll") {
                let mut forms = 0;
                each_form(&word, &mut |kind, form| {
                    forms += u32::from(kind == b'w' && form == word);
                });
                assert_eq!(forms, 2, "{}", String::from_utf8_lossy(&word));
                looked += 1;
            }
        }
        assert!(looked > 50_000, "{looked}");
    }

    #[test]
    fn irregular_forms_are_in_order_and_found() {
        let forms: Vec<(&str, &str)> =
            IRREGULAR.split('|').map(|entry| entry.split_once(' ').unwrap()).collect();
        assert!(forms.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (form, word) in &forms {
            assert_eq!(find_irregular(form.as_bytes()), Some(word.as_bytes()), "{form}");
            assert!(may_be_irregular(form.as_bytes()), "{form}");
        }
        let mut forms = Vec::new();
        let mut stem = Vec::new();
        super::stem_word(b"broke", &mut stem);
        each_irregular(&stem, &mut |form| forms.push(form.to_vec()));
        assert_eq!(forms, [b"broke".as_slice(), b"broken"]);
        for absent in ["", "a", "zz", "atf", "wroteb", "eat", "eat|became", "m"] {
            assert_eq!(find_irregular(absent.as_bytes()), None, "{absent}");
        }
    }

    #[test]
    fn a_hash_has_its_abbreviation() {
        let mut out = Vec::new();
        for hash in ["9fceb02d0ae598e95dc970b7", "9fceb02"] {
            assert!(stem_word(hash.as_bytes(), &mut out) && out == b"9fceb02");
        }
        for word in ["12345678", "9fceb0", "9fceb02g"] {
            assert!(!stem_word(word.as_bytes(), &mut out), "{word}");
        }
        let mut forms = Vec::new();
        each_form(b"9fceb02d", &mut |kind, form| forms.push((kind, form.to_vec())));
        assert_eq!(forms, [(b'w', b"9fceb02d".to_vec()), (b's', b"9fceb02".to_vec())]);
    }
}
