//! Redacted copies: messages in which a host replaced a secret by a mark.
//!
//! In: raw texts. Out: whether a text may be the redacted copy of another text. The alignment of
//! `append` and `reconcile` uses this module.
//!
//! A copy has the same text before and after its mark as its original. Two short messages may
//! agree by chance, so callers accept a copy only in a run with an anchor or a proven prefix, or
//! under the id of its original. The text between several marks would not be compared, so such a
//! copy needs the id.

use alloc::string::String;

use lcm_text::base::{hash, int};

/// First words of marks, as common log scrubbers write them; compared without case.
const MARK_WORDS: [&str; 3] = ["redacted", "filtered", "masked"];
/// Most bytes of a mark after its opening bracket, including the closing bracket.
const MARK_BYTES_MAX: usize = 64;
/// Most bytes of the original that a mark replaces. Secrets are short; a changed log or file is
/// not.
const COVERED_BYTES_MAX: usize = 1_024;
/// Fewest bytes of a copy before and after its mark together. About 30 bytes of every message are
/// its keys, so less text is no evidence.
const LITERAL_BYTES_MIN: usize = 48;

/// A redacted copy: lengths and hash of the text that the copy shares with its original.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RedactedCopy {
    /// Number of bytes before the mark.
    before: u32,
    /// Number of bytes after the mark.
    behind: u32,
    /// Hash of the bytes before and after the mark.
    hash: [u8; 16],
}

impl RedactedCopy {
    /// Reads a raw message as a redacted copy; `None`: the text has no mark or too little text
    /// before the first and after the last mark. `has_id`: whether the message has an id of the
    /// host; any other message has one mark only.
    pub(super) fn from_raw(raw: &str, has_id: bool) -> Option<Self> {
        let (start, mut end) = find_mark(raw)?;
        while let Some((_, next)) = find_mark(raw.get(end..)?) {
            if !has_id {
                return None;
            }
            end += next;
        }
        let (before, behind) = (raw.get(..start)?, raw.get(end..)?);
        if before.len() + behind.len() < LITERAL_BYTES_MIN {
            return None;
        }
        let hash = hash_literals(before, behind);
        Some(Self { before: int::to_u32(before.len()), behind: int::to_u32(behind.len()), hash })
    }

    /// Returns whether the copy may have been made from this text.
    pub(super) fn may_be_copy_of(&self, raw: &str) -> bool {
        let (before, behind) =
            (int::to_usize(self.before.into()), int::to_usize(self.behind.into()));
        let parts = raw
            .len()
            .checked_sub(behind)
            .filter(|start| (before..=before.saturating_add(COVERED_BYTES_MAX)).contains(start))
            .and_then(|start| Some((raw.get(..before)?, raw.get(start..)?)));
        parts.is_some_and(|(before, behind)| hash_literals(before, behind) == self.hash)
    }

    /// Returns the copy as hex digits, which `identify` returns and `reconcile` takes.
    pub(super) fn to_hex(self) -> String {
        let [before, behind] = [self.before, self.behind].map(u32::to_be_bytes);
        hash::hex(&[before.as_slice(), &behind, &self.hash].concat())
    }

    /// Parses the digits of [`RedactedCopy::to_hex`]; `None`: other text, or another length.
    pub(super) fn from_hex(digits: &str) -> Option<Self> {
        let bytes = hash::decode_hex(digits)?;
        let (before, rest) = bytes.split_first_chunk()?;
        let (behind, rest) = rest.split_first_chunk()?;
        let [before, behind] = [*before, *behind].map(u32::from_be_bytes);
        Some(Self { before, behind, hash: rest.try_into().ok()? })
    }
}

fn hash_literals(before: &str, behind: &str) -> [u8; 16] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm redacted", before.as_bytes(), behind.as_bytes()]))
}

/// Returns the byte offsets of the start and the end of the first mark in a text; `None`: no mark.
fn find_mark(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().find_map(|(start, byte)| match byte {
        b'[' | b'<' => Some((start, start + measure_mark(bytes.get(start..)?)?)),
        _ => None,
    })
}

/// Returns the bytes of the mark, with its brackets, at the start of a text that begins with `[` or
/// `<`; `None`: the brackets are no mark.
fn measure_mark(text: &[u8]) -> Option<usize> {
    let (open, rest) = text.split_first()?;
    let close = if *open == b'[' { b']' } else { b'>' };
    let is_first = |word: &&&str| {
        let first = rest.get(..word.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
    };
    let word = MARK_WORDS.iter().find(is_first)?;
    // `[filtered_items]` is code, not a mark.
    let next = rest.get(word.len())?;
    if *next != close && !matches!(next, b':' | b' ' | b'-') {
        return None;
    }
    let end = rest.iter().take(MARK_BYTES_MAX).position(|byte| *byte == close || *byte == b'"')?;
    (rest.get(end) == Some(&close)).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    fn copy_of(raw: &str) -> Option<RedactedCopy> {
        RedactedCopy::from_raw(raw, false)
    }

    fn user_message(text: &str) -> alloc::string::String {
        alloc::format!(r#"{{"role":"user","content":"{text}"}}"#)
    }

    #[test]
    fn a_redacted_copy_may_be_of_its_original_and_of_nothing_else() {
        let original = user_message("the key is sk-12345 and the port 8080");
        for copy in [
            "the key is [REDACTED] and the port 8080",
            "the key is <redacted:api-key> and the port 8080",
            "the key is [Filtered] and the port 8080",
            "the key is [MASKED 5 chars] and the port 8080",
        ] {
            let copy = copy_of(&user_message(copy)).unwrap();
            assert!(copy.may_be_copy_of(&original), "{copy:?}");
            assert!(!copy.may_be_copy_of(&user_message("the key is sk-12345 and the port 8081")));
            assert!(!copy.may_be_copy_of(&user_message("a key is sk-12345 and the port 8080")));
            assert!(!copy.may_be_copy_of(""));
            assert_eq!(RedactedCopy::from_hex(&copy.to_hex()), Some(copy));
        }
    }

    #[test]
    fn what_is_no_mark_is_none() {
        for text in [
            "the plan is *** as it was written *** in the file",
            "take w[filtered_items] and v[masked1] of the list",
            "the key is [REDACTED and the port 8080",
            "the first [REDACTED] and the second [REDACTED] of them",
            "[REDACTED]",
        ] {
            assert_eq!(copy_of(&user_message(text)), None, "{text}");
        }
        let long =
            user_message(&alloc::format!("the log is {} and the port 8080", "x".repeat(1_100)));
        let copy = copy_of(&user_message("the log is [REDACTED] and the port 8080")).unwrap();
        assert!(!copy.may_be_copy_of(&long), "no secret is so long");
        let two = user_message("the first key is [REDACTED] and the second [REDACTED] of them");
        let copy = RedactedCopy::from_raw(&two, true).unwrap();
        assert!(
            copy.may_be_copy_of(&user_message("the first key is one and the second two of them"))
        );
        assert!(
            !copy.may_be_copy_of(&user_message("the first key is one and the second two of us"))
        );
        for digits in ["", "zz", "00000001", &"0".repeat(46), &"0".repeat(50)] {
            assert_eq!(RedactedCopy::from_hex(digits), None);
        }
    }

    #[test]
    fn characters_are_not_cut() {
        let copy =
            copy_of(&user_message("caf\u{e9} [REDACTED] \u{6570}\u{636e} of the list")).unwrap();
        assert!(copy.may_be_copy_of(&user_message(
            "caf\u{e9} \u{6570}\u{636e} \u{6570}\u{636e} of the list"
        )));
        assert!(!copy.may_be_copy_of(&"\u{e9}".repeat(29)));
    }
}
