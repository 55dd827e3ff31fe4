//! Chinese, Japanese and Korean script: the one table for estimates of tokens and for search.
//!
//! In: a character. Out: whether it belongs to it.

/// The ranges of Chinese, Japanese and Korean script, first and last code point, ascending.
const CJK: [(u32, u32); 8] = [
    (0x2E80, 0x303F),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    // Extensions B to F; U+2A6E0 to U+2A6FF are unassigned.
    (0x20000, 0x2EBEF),
];

/// Whether a character belongs to Chinese, Japanese or Korean script, punctuation and full-width
/// forms included. The one table for estimates and search.
#[must_use]
pub const fn is_cjk(c: char) -> bool {
    let [radicals, kana, extension_a, unified, hangul, compatibility, full_width, astral] = CJK;
    within(c, radicals)
        || within(c, kana)
        || within(c, extension_a)
        || within(c, unified)
        || within(c, hangul)
        || within(c, compatibility)
        || within(c, full_width)
        || (within(c, astral) && !within(c, (0x2A6E0, 0x2A6FF)))
}

const fn within(c: char, range: (u32, u32)) -> bool {
    #[expect(clippy::as_conversions, reason = "lossless; `From` is not const")]
    let code = c as u32;
    range.0 <= code && code <= range.1
}
