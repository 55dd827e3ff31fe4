//! Recognises Chinese, Japanese and Korean script, for token estimates and for search.

/// The ranges of Chinese, Japanese and Korean script, first and last code point, ascending.
const CJK: [(u32, u32); 8] = [
    (0x2E80, 0x303F),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    // Extensions B to F. `is_cjk` excludes U+2A6E0 to U+2A6FF, which are unassigned.
    (0x20000, 0x2EBEF),
];

/// Returns whether a character is in a block of Chinese, Japanese or Korean script. The punctuation
/// of these scripts and full-width forms are included.
#[must_use]
pub const fn is_cjk(c: char) -> bool {
    let [radicals, kana, extension_a, unified, hangul, compatibility, full_width, astral] = CJK;
    is_in_range(c, radicals)
        || is_in_range(c, kana)
        || is_in_range(c, extension_a)
        || is_in_range(c, unified)
        || is_in_range(c, hangul)
        || is_in_range(c, compatibility)
        || is_in_range(c, full_width)
        || (is_in_range(c, astral) && !is_in_range(c, (0x2A6E0, 0x2A6FF)))
}

const fn is_in_range(c: char, range: (u32, u32)) -> bool {
    #[expect(clippy::as_conversions, reason = "lossless; `From` is not const")]
    let code = c as u32;
    range.0 <= code && code <= range.1
}
