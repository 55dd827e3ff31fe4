//! Searches a short constant in a text.
//!
//! The search of the standard library first prepares the constant, which takes longer than the
//! search itself in a short text. Used to verify summaries.

/// Returns whether `text` contains `part`; true for an empty `part`.
#[inline(never)]
#[must_use]
pub fn contains_str(text: &str, part: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((first, rest)) = part.as_bytes().split_first() else { return true };
    let mut behind = bytes;
    while let Some(at) = behind.iter().position(|byte| byte == first) {
        behind = behind.get(at + 1..).unwrap_or_default();
        if behind.starts_with(rest) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_holds_what_the_library_finds_in_it() {
        for text in ["", "x", "xxit", "exxi", "an exit code", "ananas", "\u{4f46} noon", "no onn"] {
            for part in
                ["x", "xit", "nas", "anas", "noon", "\u{4f46}", "exit code", "an exit codes"]
            {
                assert_eq!(contains_str(text, part), text.contains(part), "{text} {part}");
            }
        }
    }
}
