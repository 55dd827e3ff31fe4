//! Case and accent folding of single characters.
//!
//! Input: a character. Output: its form in a search term: lower case, without accents and strokes,
//! full-width ASCII as ASCII; nothing for a combining mark. Accents are removed from Latin, Greek
//! and Cyrillic letters and from the Arabic alef. A test compares the tables of the first three
//! with Unicode's decompositions. In kana and the scripts of India marks change the word, so these
//! marks stay.

use alloc::string::String;

use crate::lower_case::lower_char;

/// Letters without accents and strokes for U+00C0 to U+024F, in order; `.`: the lower-case letter
/// stays.
const LATIN: &[u8; 400] = b"\
aaaaaa.ceeeeiiii.nooooo.ouuuuy..aaaaaa.ceeeeiiii.nooooo.ouuuuy.yaaaaaaccccccccddddeeeeeeeeeegggg\
gggghhhhiiiiiiiiii..jjkk.llllll..llnnnnnn...oooooo..rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz.\
................................oo.............uu............................aaiioouuuuuuuuuu.aa\
aa....ggkkoooo..j...gg..nnaa..ooaaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............\
................";
/// Letters without accents for U+1E00 to U+1EFF, in order; `.`: the lower-case letter stays.
const LATIN_ADDITIONAL: &[u8; 256] = b"\
aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprrrrrrrr\
ssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy......aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee\
eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......";

/// Returns whether a character is not part of terms: a soft hyphen, a zero-width joiner or
/// non-joiner, or a variation selector or combining mark of the ranges below. Marks outside the
/// ranges stay, among them those of kana, of the scripts of India, and Hebrew U+05BF to U+05C7.
pub const fn is_mark(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}'
        | '\u{64b}'..='\u{65f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{200c}' | '\u{200d}' | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}')
}

/// Returns the ASCII character of which `c` is the full-width form; `c` itself if there is none.
pub fn to_half_width(c: char) -> char {
    match u32::from(c) {
        code @ 0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

/// Returns a text in lower case. Each character is lowered alone, so that a capital sigma at the
/// end of a word becomes a small sigma within a word. The standard library looks for the ends of
/// words, with tables of 2 KB.
pub fn lower_text(text: &str) -> String {
    text.chars().flat_map(lower_char).collect()
}

/// Full-width forms of the half-width kana U+FF66 to U+FF9D, each less U+3000.
const KANA: &[u8; 56] = b"\
\xf2\xa1\xa3\xa5\xa7\xa9\xe3\xe5\xe7\xc3\xfc\xa2\xa4\xa6\xa8\xaa\xab\xad\xaf\xb1\xb3\xb5\xb7\xb9\
\xbb\xbd\xbf\xc1\xc4\xc6\xc8\xca\xcb\xcc\xcd\xce\xcf\xd2\xd5\xd8\xdb\xde\xdf\xe0\xe1\xe2\xe4\xe6\
\xe8\xe9\xea\xeb\xec\xed\xef\xf3";

/// Returns whether [`compose_text`] may change a text with this character: a half-width kana, a
/// sound mark of kana, or a part of a Korean syllable.
pub const fn is_composed(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3099}' | '\u{309a}' | '\u{ff66}'..='\u{ff9f}')
}

/// Joins the parts of Korean syllables, and kana with their sound marks; half-width kana become
/// full-width kana. A sound mark that fits no kana is left out.
pub fn compose_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let (code, last) = (u32::from(c), out.chars().next_back().map_or(0, u32::from));
        let joined = match (last, code) {
            // Leading consonant and vowel, of 21; then a trailing consonant, of 28 with none.
            (0x1100..=0x1112, 0x1161..=0x1175) => {
                0xAC00 + ((last - 0x1100) * 21 + (code - 0x1161)) * 28
            }
            (0xAC00..=0xD7A3, 0x11A8..=0x11C2) if (last - 0xAC00) % 28 == 0 => last + code - 0x11A7,
            (0x30A6, 0x3099 | 0xFF9E) => 0x30F4,
            // The kana with a sound mark follow the kana without.
            (0x304B..=0x307B | 0x30AB..=0x30DB, 0x3099 | 0xFF9E) => last + 1,
            (0x306F..=0x307B | 0x30CF..=0x30DB, 0x309A | 0xFF9F) => last + 2,
            (_, 0x3099 | 0x309A | 0xFF9E | 0xFF9F) => continue,
            (_, 0xFF66..) => {
                let kana = KANA.get(crate::int::to_usize(u64::from(code - 0xFF66)));
                out.extend(kana.map_or(Some(c), |low| char::from_u32(0x3000 + u32::from(*low))));
                continue;
            }
            _ => {
                out.push(c);
                continue;
            }
        };
        out.pop();
        out.extend(char::from_u32(joined));
    }
    out
}

/// Calls `each` with every character of the folded form of a character; the form may be empty.
///
/// ```
/// use lcm_loops::char_fold::fold_char;
///
/// let mut folded = String::new();
/// "Stra\u{df}e \u{c9}t\u{e9}".chars().for_each(|c| fold_char(c, &mut |c| folded.push(c)));
/// assert_eq!(folded, "strasse ete");
/// ```
pub fn fold_char(c: char, each: &mut dyn FnMut(char)) {
    if c.is_ascii() {
        return each(c.to_ascii_lowercase());
    }
    if let Some(letters) = expand_letters(c) {
        return letters.chars().for_each(each);
    }
    for lower in lower_char(to_half_width(c)) {
        if !is_mark(lower) {
            each(strip_accent(lower));
        }
    }
}

/// Returns the letters of a ligature or of a sharp s, by Unicode's full case folding, or of a
/// letter that names and keyboards replace by two; `None`: any other character. Ligatures come from
/// documents that were typeset.
const fn expand_letters(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{df}' | '\u{1e9e}' => "ss",
        '\u{c6}' | '\u{e6}' | '\u{1e2}' | '\u{1e3}' | '\u{1fc}' | '\u{1fd}' => "ae",
        '\u{152}' | '\u{153}' => "oe",
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

/// Returns a lower-case letter without its accents, or any other character itself.
fn strip_accent(c: char) -> char {
    let latin = |table: &[u8], first: u32| {
        let index = crate::int::to_usize(u64::from(u32::from(c) - first));
        table.get(index).copied().filter(|letter| *letter != b'.').map_or(c, char::from)
    };
    match c {
        '\u{1ef}' => '\u{292}',
        '\u{c0}'..='\u{24f}' => latin(LATIN, 0xC0),
        '\u{1e00}'..='\u{1eff}' => latin(LATIN_ADDITIONAL, 0x1E00),
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => fold_greek(c),
        '\u{400}'..='\u{4ff}' => fold_cyrillic(c),
        // Alef with madda or hamza.
        '\u{622}' | '\u{623}' | '\u{625}' => '\u{627}',
        _ => c,
    }
}

fn fold_greek(c: char) -> char {
    match c {
        '\u{3ac}'
        | '\u{1f00}'..='\u{1f0f}'
        | '\u{1f70}'
        | '\u{1f71}'
        | '\u{1f80}'..='\u{1f8f}'
        | '\u{1fb0}'..='\u{1fb4}'
        | '\u{1fb6}'
        | '\u{1fb7}' => '\u{3b1}',
        '\u{3ad}' | '\u{1f10}'..='\u{1f1f}' | '\u{1f72}' | '\u{1f73}' => '\u{3b5}',
        '\u{3ae}'
        | '\u{1f20}'..='\u{1f2f}'
        | '\u{1f74}'
        | '\u{1f75}'
        | '\u{1f90}'..='\u{1f9f}'
        | '\u{1fc2}'..='\u{1fc7}' => '\u{3b7}',
        '\u{390}'
        | '\u{3af}'
        | '\u{3ca}'
        | '\u{1f30}'..='\u{1f3f}'
        | '\u{1f76}'
        | '\u{1f77}'
        | '\u{1fd0}'..='\u{1fd7}' => '\u{3b9}',
        '\u{3cc}' | '\u{1f40}'..='\u{1f4f}' | '\u{1f78}' | '\u{1f79}' => '\u{3bf}',
        '\u{3b0}'
        | '\u{3cb}'
        | '\u{3cd}'
        | '\u{1f50}'..='\u{1f5f}'
        | '\u{1f7a}'
        | '\u{1f7b}'
        | '\u{1fe0}'..='\u{1fe3}'
        | '\u{1fe6}'
        | '\u{1fe7}' => '\u{3c5}',
        '\u{3ce}'
        | '\u{1f60}'..='\u{1f6f}'
        | '\u{1f7c}'
        | '\u{1f7d}'
        | '\u{1fa0}'..='\u{1faf}'
        | '\u{1ff2}'..='\u{1ff7}' => '\u{3c9}',
        '\u{1fe4}' | '\u{1fe5}' => '\u{3c1}',
        // Final sigma.
        '\u{3c2}' => '\u{3c3}',
        _ => c,
    }
}

fn fold_cyrillic(c: char) -> char {
    match c {
        '\u{450}' | '\u{451}' | '\u{4d7}' => '\u{435}',
        '\u{453}' => '\u{433}',
        '\u{457}' => '\u{456}',
        '\u{45c}' => '\u{43a}',
        '\u{439}' | '\u{45d}' | '\u{4e3}' | '\u{4e5}' => '\u{438}',
        '\u{45e}' | '\u{4ef}' | '\u{4f1}' | '\u{4f3}' => '\u{443}',
        '\u{477}' => '\u{475}',
        '\u{4c2}' | '\u{4dd}' => '\u{436}',
        '\u{4d1}' | '\u{4d3}' => '\u{430}',
        '\u{4db}' => '\u{4d9}',
        '\u{4df}' => '\u{437}',
        '\u{4e7}' => '\u{43e}',
        '\u{4eb}' => '\u{4e9}',
        '\u{4ed}' => '\u{44d}',
        '\u{4f5}' => '\u{447}',
        '\u{4f9}' => '\u{44b}',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

    use super::*;

    fn folded(c: char) -> String {
        let mut out = String::new();
        fold_char(c, &mut |c| out.push(c));
        out
    }

    /// Goal: the tables agree with Unicode. Method: compares every letter of the covered scripts
    /// with its lower case, decomposed and without marks.
    #[test]
    fn folding_equals_decomposition_without_marks() {
        let latin = ('\0'..='\u{24f}').chain('\u{1e00}'..='\u{1eff}');
        let others = ('\u{370}'..='\u{4ff}').chain('\u{1f00}'..='\u{1fff}');
        let mut compared = 0;
        for c in latin.chain(others).filter(|c| c.is_alphabetic()) {
            let lower: String = c.to_lowercase().collect();
            let expected: String = lower.nfd().filter(|c| !is_combining_mark(*c)).collect();
            let mut expected = expected.replace('\u{3c2}', "\u{3c3}").replace('\u{df}', "ss");
            let without_decomposition = [
                ('\u{e6}', "ae"),
                ('\u{f8}', "o"),
                ('\u{111}', "d"),
                ('\u{127}', "h"),
                ('\u{131}', "i"),
                ('\u{142}', "l"),
                ('\u{153}', "oe"),
                ('\u{167}', "t"),
            ];
            for (letter, folded) in without_decomposition {
                expected = expected.replace(letter, folded);
            }
            // Long s with a dot, hooked upsilon, and iota alone: letters nobody writes.
            if matches!(c, '\u{1e9b}' | '\u{374}' | '\u{3d3}' | '\u{3d4}' | '\u{1fbe}') {
                continue;
            }
            assert_eq!(folded(c), expected, "{c} U+{:04X}", u32::from(c));
            compared += 1;
        }
        assert!(compared > 1_200, "{compared}");
    }

    #[test]
    fn full_width_letters_are_ascii_and_marks_are_nothing() {
        assert_eq!(folded('\u{ff21}'), "a");
        assert_eq!(folded('\u{ff5a}'), "z");
        assert_eq!(folded('\u{301}'), "");
        assert_eq!(folded('\u{130}'), "i");
        assert_eq!(folded('\u{4f60}'), "\u{4f60}");
        assert_eq!(folded('\u{fb04}'), "ffl");
    }

    /// Goal: the parts of kana and Korean are joined as Unicode joins them. Method: compares with
    /// the composition of every kana and every fifth syllable.
    #[test]
    fn composed_text_has_no_parts() {
        for c in ('\u{3041}'..='\u{30fe}').filter(|c| !matches!(c, '\u{3097}'..='\u{30a0}')) {
            let parts: String = c.nfd().collect();
            // Kana that nobody writes have a mark, too.
            if !matches!(c, '\u{30f7}'..='\u{30fe}' | '\u{3094}') {
                assert_eq!(compose_text(&parts), String::from(c), "U+{:04X}", u32::from(c));
            }
        }
        for c in ('\u{ac00}'..='\u{d7a3}').step_by(5) {
            assert_eq!(compose_text(&c.nfd().collect::<String>()), String::from(c));
        }
        for c in '\u{ff66}'..='\u{ff9d}' {
            assert_eq!(compose_text(&String::from(c)), c.nfkc().collect::<String>(), "{c}");
        }
        assert_eq!(compose_text("\u{ff76}\u{ff9e}x\u{ff9f}\u{ff8a}\u{ff9f}"), "\u{30ac}x\u{30d1}");
    }
}
