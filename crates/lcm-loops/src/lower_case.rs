//! Lower case of single characters.
//!
//! In: a character. Out: its lower case, as the standard library has it. The library's table has
//! an entry for every capital, which is 4 KB more in the compressed component. Folding of accents
//! is in [`char_fold`](crate::char_fold).

use core::iter::once;

/// Capitals beyond ASCII in ascending order, in runs: the first, how many follow it, their distance
/// from each other, and what to add for the small letter. From Unicode 17.0 (2025-09-09); the test
/// compares with the standard library.
#[rustfmt::skip]
const CAPITALS: [(u32, u8, u8, i32); 184] = [
    (0xc0, 22, 1, 32), (0xd8, 6, 1, 32), (0x100, 23, 2, 1), (0x132, 2, 2, 1), (0x139, 7, 2, 1),
    (0x14a, 22, 2, 1), (0x178, 0, 1, -121), (0x179, 2, 2, 1), (0x181, 0, 1, 210), (0x182, 1, 2, 1),
    (0x186, 0, 1, 206), (0x187, 0, 1, 1), (0x189, 1, 1, 205), (0x18b, 0, 1, 1), (0x18e, 0, 1, 79),
    (0x18f, 0, 1, 202), (0x190, 0, 1, 203), (0x191, 0, 1, 1), (0x193, 0, 1, 205),
    (0x194, 0, 1, 207), (0x196, 0, 1, 211), (0x197, 0, 1, 209), (0x198, 0, 1, 1),
    (0x19c, 0, 1, 211), (0x19d, 0, 1, 213), (0x19f, 0, 1, 214), (0x1a0, 2, 2, 1),
    (0x1a6, 0, 1, 218), (0x1a7, 0, 1, 1), (0x1a9, 0, 1, 218), (0x1ac, 0, 1, 1), (0x1ae, 0, 1, 218),
    (0x1af, 0, 1, 1), (0x1b1, 1, 1, 217), (0x1b3, 1, 2, 1), (0x1b7, 0, 1, 219), (0x1b8, 0, 1, 1),
    (0x1bc, 0, 1, 1), (0x1c4, 0, 1, 2), (0x1c5, 0, 1, 1), (0x1c7, 0, 1, 2), (0x1c8, 0, 1, 1),
    (0x1ca, 0, 1, 2), (0x1cb, 8, 2, 1), (0x1de, 8, 2, 1), (0x1f1, 0, 1, 2), (0x1f2, 1, 2, 1),
    (0x1f6, 0, 1, -97), (0x1f7, 0, 1, -56), (0x1f8, 19, 2, 1), (0x220, 0, 1, -130),
    (0x222, 8, 2, 1), (0x23a, 0, 1, 10_795), (0x23b, 0, 1, 1), (0x23d, 0, 1, -163),
    (0x23e, 0, 1, 10_792), (0x241, 0, 1, 1), (0x243, 0, 1, -195), (0x244, 0, 1, 69),
    (0x245, 0, 1, 71), (0x246, 4, 2, 1), (0x370, 1, 2, 1), (0x376, 0, 1, 1), (0x37f, 0, 1, 116),
    (0x386, 0, 1, 38), (0x388, 2, 1, 37), (0x38c, 0, 1, 64), (0x38e, 1, 1, 63), (0x391, 16, 1, 32),
    (0x3a3, 8, 1, 32), (0x3cf, 0, 1, 8), (0x3d8, 11, 2, 1), (0x3f4, 0, 1, -60), (0x3f7, 0, 1, 1),
    (0x3f9, 0, 1, -7), (0x3fa, 0, 1, 1), (0x3fd, 2, 1, -130), (0x400, 15, 1, 80),
    (0x410, 31, 1, 32), (0x460, 16, 2, 1), (0x48a, 26, 2, 1), (0x4c0, 0, 1, 15), (0x4c1, 6, 2, 1),
    (0x4d0, 47, 2, 1), (0x531, 37, 1, 48), (0x10a0, 37, 1, 7_264), (0x10c7, 0, 1, 7_264),
    (0x10cd, 0, 1, 7_264), (0x13a0, 79, 1, 38_864), (0x13f0, 5, 1, 8), (0x1c89, 0, 1, 1),
    (0x1c90, 42, 1, -3_008), (0x1cbd, 2, 1, -3_008), (0x1e00, 74, 2, 1), (0x1e9e, 0, 1, -7_615),
    (0x1ea0, 47, 2, 1), (0x1f08, 7, 1, -8), (0x1f18, 5, 1, -8), (0x1f28, 7, 1, -8),
    (0x1f38, 7, 1, -8), (0x1f48, 5, 1, -8), (0x1f59, 3, 2, -8), (0x1f68, 7, 1, -8),
    (0x1f88, 7, 1, -8), (0x1f98, 7, 1, -8), (0x1fa8, 7, 1, -8), (0x1fb8, 1, 1, -8),
    (0x1fba, 1, 1, -74), (0x1fbc, 0, 1, -9), (0x1fc8, 3, 1, -86), (0x1fcc, 0, 1, -9),
    (0x1fd8, 1, 1, -8), (0x1fda, 1, 1, -100), (0x1fe8, 1, 1, -8), (0x1fea, 1, 1, -112),
    (0x1fec, 0, 1, -7), (0x1ff8, 1, 1, -128), (0x1ffa, 1, 1, -126), (0x1ffc, 0, 1, -9),
    (0x2126, 0, 1, -7_517), (0x212a, 0, 1, -8_383), (0x212b, 0, 1, -8_262), (0x2132, 0, 1, 28),
    (0x2160, 15, 1, 16), (0x2183, 0, 1, 1), (0x24b6, 25, 1, 26), (0x2c00, 47, 1, 48),
    (0x2c60, 0, 1, 1), (0x2c62, 0, 1, -10_743), (0x2c63, 0, 1, -3_814), (0x2c64, 0, 1, -10_727),
    (0x2c67, 2, 2, 1), (0x2c6d, 0, 1, -10_780), (0x2c6e, 0, 1, -10_749), (0x2c6f, 0, 1, -10_783),
    (0x2c70, 0, 1, -10_782), (0x2c72, 0, 1, 1), (0x2c75, 0, 1, 1), (0x2c7e, 1, 1, -10_815),
    (0x2c80, 49, 2, 1), (0x2ceb, 1, 2, 1), (0x2cf2, 0, 1, 1), (0xa640, 22, 2, 1),
    (0xa680, 13, 2, 1), (0xa722, 6, 2, 1), (0xa732, 30, 2, 1), (0xa779, 1, 2, 1),
    (0xa77d, 0, 1, -35_332), (0xa77e, 4, 2, 1), (0xa78b, 0, 1, 1), (0xa78d, 0, 1, -42_280),
    (0xa790, 1, 2, 1), (0xa796, 9, 2, 1), (0xa7aa, 0, 1, -42_308), (0xa7ab, 0, 1, -42_319),
    (0xa7ac, 0, 1, -42_315), (0xa7ad, 0, 1, -42_305), (0xa7ae, 0, 1, -42_308),
    (0xa7b0, 0, 1, -42_258), (0xa7b1, 0, 1, -42_282), (0xa7b2, 0, 1, -42_261), (0xa7b3, 0, 1, 928),
    (0xa7b4, 7, 2, 1), (0xa7c4, 0, 1, -48), (0xa7c5, 0, 1, -42_307), (0xa7c6, 0, 1, -35_384),
    (0xa7c7, 1, 2, 1), (0xa7cb, 0, 1, -42_343), (0xa7cc, 7, 2, 1), (0xa7dc, 0, 1, -42_561),
    (0xa7f5, 0, 1, 1), (0xff21, 25, 1, 32), (0x10400, 39, 1, 40), (0x104b0, 35, 1, 40),
    (0x10570, 10, 1, 39), (0x1057c, 14, 1, 39), (0x1058c, 6, 1, 39), (0x10594, 1, 1, 39),
    (0x10c80, 50, 1, 64), (0x10d50, 21, 1, 32), (0x118a0, 31, 1, 32), (0x16e40, 31, 1, 32),
    (0x16ea0, 24, 1, 27), (0x1e900, 33, 1, 34),
];

/// The only capital whose small letter is two characters.
const DOTTED_CAPITAL_I: char = '\u{130}';

/// Returns the lower case of a character: one character, or two for the dotted capital I.
///
/// ```
/// use lcm_loops::lower_case::lower_char;
///
/// assert!(lower_char('\u{c9}').eq(['\u{e9}']));
/// assert!(lower_char('\u{130}').eq(['i', '\u{307}']));
/// ```
pub fn lower_char(c: char) -> impl Iterator<Item = char> {
    once(find_small_letter(c)).chain((c == DOTTED_CAPITAL_I).then_some('\u{307}'))
}

#[inline(never)]
fn find_small_letter(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    if c == DOTTED_CAPITAL_I {
        return 'i';
    }
    let code = u32::from(c);
    let after = CAPITALS.partition_point(|(first, ..)| *first <= code);
    let run = after.checked_sub(1).and_then(|run| CAPITALS.get(run));
    let Some((first, following, apart, change)) = run else { return c };
    let (distance, apart) = (code - first, u32::from(*apart));
    let is_capital = distance <= u32::from(*following) * apart && distance.is_multiple_of(apart);
    let small = is_capital.then(|| code.wrapping_add_signed(*change));
    small.and_then(char::from_u32).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::lower_char;

    #[test]
    fn every_character_has_the_lower_case_of_the_standard_library() {
        for c in '\0'..=char::MAX {
            assert!(lower_char(c).eq(c.to_lowercase()), "{c:?}");
        }
    }
}
