//! Redacted copies: a message in which a host has put a mark where a secret stood.
//!
//! In: raw texts. Out: whether one may be the redacted copy of another. A copy is the same text
//! before its first mark and behind its last one. That is no proof, since any two messages of a
//! few words could be so; whoever asks believes it only beside an exact match.

use alloc::string::String;

use crate::{keys, num};

/// What marks begin with, in lower case, without the bracket: those of the common log scrubbers.
const WORDS: [&str; 5] = ["redacted", "filtered", "masked", "removed", "hidden"];
/// Most bytes from the bracket that opens a mark to the one that closes it.
const MARK_BYTES_MAX: usize = 64;
/// Asterisks in a row that are a mark.
const STARS_MIN: usize = 3;
/// Texts without the words that every message has are no evidence at all.
const LITERAL_BYTES_MIN: usize = 24;

/// What a text with marks says of the text it was made from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Redacted {
    /// Bytes before the first mark.
    before: u32,
    /// Bytes behind the last mark.
    behind: u32,
    /// Hash of both.
    hash: [u8; 16],
}

impl Redacted {
    /// Of a raw text; `None`: there is no mark in it, or too little beside.
    pub(super) fn of(raw: &str) -> Option<Self> {
        let mut rest = 0;
        let mut found: Option<(usize, usize)> = None;
        while let Some((start, end)) = raw.get(rest..).and_then(mark) {
            let first = found.map_or(rest + start, |(first, _)| first);
            found = Some((first, rest + end));
            rest += end;
        }
        let (first, last) = found?;
        let (before, behind) = (raw.get(..first)?, raw.get(last..)?);
        if before.len() + behind.len() < LITERAL_BYTES_MIN {
            return None;
        }
        let hash = hash(before, behind);
        Some(Self { before: num::to_u32(before.len()), behind: num::to_u32(behind.len()), hash })
    }

    /// Whether it may have been made from this text.
    pub(super) fn may_be_of(&self, raw: &str) -> bool {
        let (before, behind) =
            (num::to_usize(self.before.into()), num::to_usize(self.behind.into()));
        let parts = raw
            .len()
            .checked_sub(behind)
            .filter(|start| *start >= before)
            .and_then(|start| Some((raw.get(..before)?, raw.get(start..)?)));
        parts.is_some_and(|(before, behind)| hash(before, behind) == self.hash)
    }

    /// In hex digits, for the host to carry.
    pub(super) fn written(&self) -> String {
        let [before, behind] = [self.before, self.behind].map(u32::to_be_bytes);
        keys::hex(&[before.as_slice(), &behind, &self.hash].concat())
    }

    /// From what [`Redacted::written`] gave; `None`: it is something else.
    pub(super) fn read(digits: &str) -> Option<Self> {
        let bytes = keys::unhex(digits)?;
        let (before, rest) = bytes.split_first_chunk()?;
        let (behind, rest) = rest.split_first_chunk()?;
        let [before, behind] = [*before, *behind].map(u32::from_be_bytes);
        Some(Self { before, behind, hash: rest.try_into().ok()? })
    }
}

fn hash(before: &str, behind: &str) -> [u8; 16] {
    keys::prefix(&keys::hash(&[b"lcm redacted", before.as_bytes(), behind.as_bytes()]))
}

/// Start and end of the first mark in a text.
fn mark(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().find_map(|(start, byte)| {
        let end = match byte {
            b'*' => bytes.get(start..)?.iter().take_while(|byte| **byte == b'*').count(),
            b'[' | b'<' => bracketed(bytes.get(start..)?)?,
            _ => return None,
        };
        (end >= STARS_MIN).then_some((start, start + end))
    })
}

/// Length of the mark in brackets that a text begins with.
fn bracketed(text: &[u8]) -> Option<usize> {
    let (open, rest) = text.split_first()?;
    let close = if *open == b'[' { b']' } else { b'>' };
    let is_first = |word: &&str| {
        rest.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
    };
    WORDS.iter().find(|word| is_first(word))?;
    let end = rest.iter().take(MARK_BYTES_MAX).position(|byte| *byte == close || *byte == b'"')?;
    (rest.get(end) == Some(&close)).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> alloc::string::String {
        alloc::format!(r#"{{"role":"user","content":"{text}"}}"#)
    }

    #[test]
    fn a_redacted_copy_may_be_of_its_original_and_of_nothing_else() {
        let original = said("the key is sk-12345 and the port 8080");
        for copy in [
            "the key is [REDACTED] and the port 8080",
            "the key is <redacted:api-key> and the port 8080",
            "the key is **** and the port 8080",
            "the key is [Filtered] and [MASKED] 8080",
        ] {
            let copy = Redacted::of(&said(copy)).unwrap();
            assert!(copy.may_be_of(&original), "{copy:?}");
            assert!(!copy.may_be_of(&said("the key is sk-12345 and the port 8081")));
            assert!(!copy.may_be_of(&said("a key is sk-12345 and the port 8080")));
            assert!(!copy.may_be_of(""));
            assert_eq!(Redacted::read(&copy.written()), Some(copy));
        }
    }

    #[test]
    fn what_is_no_mark_is_none() {
        for text in ["a ** b", "[redact", "[REDACTED", "<b>removed</b>", "filtered", "[x]"] {
            assert_eq!(Redacted::of(&said(text)), None, "{text}");
        }
        assert_eq!(Redacted::of("***"), None);
        for digits in ["", "zz", "00000001", &"0".repeat(46), &"0".repeat(50)] {
            assert_eq!(Redacted::read(digits), None);
        }
    }

    #[test]
    fn characters_are_not_cut() {
        let copy = Redacted::of(&said("caf\u{e9} *** \u{6570}\u{636e}")).unwrap();
        assert!(copy.may_be_of(&said("caf\u{e9} \u{6570}\u{636e} \u{6570}\u{636e}")));
        assert!(!copy.may_be_of(&"\u{e9}".repeat(29)));
    }
}
