//! Hashes of the elements of an assembly, kept from one to the next.
//!
//! In: the texts of the elements, in order. Out: the hash of each. Two assemblies of a conversation
//! share nearly all of their text, and comparing it with the last one is a tenth of the work of
//! hashing it. A text is compared byte for byte, so that a remembered hash is always its own.

use alloc::{rc::Rc, string::String, vec::Vec};

use crate::keys;

/// Bytes of text that are remembered: what a budget of a million tokens holds.
const REMEMBERED_BYTES_MAX: usize = 4 << 20;
/// Remembered elements that are compared with one text: those before are no longer part of the
/// context, and more than a few batches of messages do not leave it at once.
const AHEAD_MAX: usize = 512;

/// The texts of one assembly with their hashes.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    texts: String,
    elements: Vec<Mark>,
}

#[derive(Debug)]
struct Mark {
    start: usize,
    end: usize,
    hash: [u8; 32],
}

/// Hashes elements, with those of the last assembly at hand.
#[derive(Debug, Default)]
pub(super) struct Marking {
    known: Rc<Marks>,
    /// Known elements before this one were passed.
    at: usize,
    made: Marks,
}

impl Marks {
    /// Number of the element with this text, from `at` on.
    fn find(&self, at: usize, text: &str) -> Option<usize> {
        let ahead = self.elements.get(at..).unwrap_or_default().iter().take(AHEAD_MAX);
        let is_it = |mark: &Mark| {
            mark.end - mark.start == text.len()
                && self.texts.get(mark.start..mark.end).is_some_and(|known| equal(known, text))
        };
        ahead.enumerate().find(|(_, mark)| is_it(mark)).map(|(index, _)| at + index)
    }
}

/// Whether two texts of one length are equal. In the guest, `==` goes byte by byte.
fn equal(a: &str, b: &str) -> bool {
    let ((words_a, rest_a), (words_b, rest_b)) =
        (a.as_bytes().as_chunks::<8>(), b.as_bytes().as_chunks::<8>());
    let differ = |(a, b): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*a) != u64::from_le_bytes(*b);
    !words_a.iter().zip(words_b).any(differ) && rest_a == rest_b
}

impl Marking {
    /// With what the last assembly left.
    pub(super) fn new(known: Rc<Marks>) -> Self {
        Self { known, ..Self::default() }
    }

    /// The hash of the next element.
    pub(super) fn hash(&mut self, text: &str) -> [u8; 32] {
        let found = self.known.find(self.at, text);
        let known = found.and_then(|index| self.known.elements.get(index));
        let hash = known
            .map_or_else(|| keys::hash(&[b"lcm element", text.as_bytes()]), |known| known.hash);
        self.at = found.map_or(self.at, |index| index + 1);
        let start = self.made.texts.len();
        let end = start + text.len();
        if end <= REMEMBERED_BYTES_MAX {
            self.made.texts.push_str(text);
            self.made.elements.push(Mark { start, end, hash });
        }
        hash
    }

    /// What the next assembly is given.
    pub(super) fn finish(self) -> Rc<Marks> {
        Rc::new(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// Goal: what is remembered never changes a hash. Method: assemblies that lose elements in
    /// front, in the middle and all of them, with texts that repeat.
    #[test]
    fn a_remembered_hash_equals_a_computed_one() {
        let texts: Vec<String> =
            (0..2_000).map(|number| format!("text {}", number % 700)).collect();
        let mut known = Rc::default();
        let mut remembered = 0;
        for (from, without) in [(0, 5), (1, 5), (1, 900), (800, 7), (0, 3), (1_500, 1)] {
            let mut marking = Marking::new(known);
            for (index, text) in texts.iter().enumerate().skip(from) {
                if index % 1_000 == without {
                    continue;
                }
                let at = marking.at;
                let hash = marking.hash(text);
                assert_eq!(hash, keys::hash(&[b"lcm element", text.as_bytes()]));
                remembered += usize::from(marking.at > at);
            }
            known = marking.finish();
        }
        assert!(remembered > 5_000, "{remembered}");
    }

    #[test]
    fn what_is_too_much_is_hashed_and_not_remembered() {
        let text = "x".repeat(REMEMBERED_BYTES_MAX);
        let mut marking = Marking::default();
        assert_ne!(marking.hash(&text), marking.hash("y"));
        let known = marking.finish();
        assert_eq!(known.elements.len(), 1);
        assert_eq!(known.texts.len(), REMEMBERED_BYTES_MAX);
    }
}
