//! Hashes of the elements of an assembly, kept from one to the next.
//!
//! In: the texts of the elements, in order. Out: the hash of each, and of a summary its text. Two
//! assemblies of a conversation share nearly all of their elements. A remembered hash is always
//! that of the text: it is the same record in memory, or compared byte for byte; and a summary is
//! named by its content.

use alloc::{rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use super::prefix;
use crate::storage::pack::{Raw, Stored};

/// Bytes of text that are remembered: what a budget of a million tokens holds.
const REMEMBERED_BYTES_MAX: usize = 4 << 20;
/// Remembered elements that are compared with one text: those before are no longer part of the
/// context, and more than a few batches of messages do not leave it at once.
const AHEAD_MAX: usize = 512;

/// The elements of one assembly.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Key root of the conversation.
    root: String,
    elements: Vec<Mark>,
    /// The hash of each element, and that of all elements up to it.
    chain: Vec<([u8; 32], [u8; 32])>,
    /// Bytes of the whole array.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Mark {
    text: Text,
    hash: [u8; 32],
    tokens: u64,
}

/// Where the text of an element stands.
#[derive(Clone, Debug)]
enum Text {
    /// What is shown of a message, in the pack that it is read from.
    Stored(Rc<Stored>),
    /// A summary of this id and size of its record, as it was rendered.
    Summary([u8; 8], u32, Rc<str>),
    Own(Rc<str>),
}

impl Text {
    fn of(&self) -> Option<&str> {
        match self {
            Self::Stored(stored) => match stored.shown().0 {
                Raw::Inline(text) => Some(text),
                Raw::Chunked { .. } => None,
            },
            Self::Summary(_, _, text) | Self::Own(text) => Some(text),
        }
    }
}

/// Hashes elements, with those of the last assembly at hand.
#[derive(Debug, Default)]
pub(super) struct Marking {
    known: Rc<Marks>,
    /// Known elements before this one were passed.
    at: usize,
    made: Marks,
    /// Bytes of the texts that are remembered.
    remembered: usize,
}

/// Whether two texts of one length are equal. In the guest, `==` goes byte by byte.
fn equal(a: &str, b: &str) -> bool {
    let ((words_a, rest_a), (words_b, rest_b)) =
        (a.as_bytes().as_chunks::<8>(), b.as_bytes().as_chunks::<8>());
    let differ = |(a, b): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*a) != u64::from_le_bytes(*b);
    !words_a.iter().zip(words_b).any(differ) && rest_a == rest_b
}

impl Marking {
    /// With what the last assembly left, if it was one of this conversation.
    pub(super) fn new(known: Rc<Marks>, root: &str) -> Self {
        let known = if known.root == root { known } else { Rc::default() };
        let made = Marks { root: root.into(), ..Marks::default() };
        Self { known, at: 0, made, remembered: 0 }
    }

    /// Bytes that the array of the last assembly had.
    pub(super) fn bytes(&self) -> usize {
        self.known.bytes
    }

    /// The known element that fits, and all before it passed.
    fn find(&mut self, fits: &dyn Fn(&Text) -> bool) -> Option<Mark> {
        let ahead = self.known.elements.iter().skip(self.at).take(AHEAD_MAX);
        let (index, mark) = ahead.enumerate().find(|(_, mark)| fits(&mark.text))?;
        self.at += index + 1;
        Some(mark.clone())
    }

    fn remember(&mut self, mark: Mark, bytes: usize) {
        self.remembered = self.remembered.saturating_add(bytes);
        if self.remembered <= REMEMBERED_BYTES_MAX {
            self.made.elements.push(mark);
        }
    }

    /// The hash of the next element, a message as it is stored.
    pub(super) fn message(&mut self, stored: &Rc<Stored>, text: &str) -> [u8; 32] {
        let known = self.find(&|known| {
            matches!(known, Text::Stored(known) if Rc::ptr_eq(known, stored)) || same(known, text)
        });
        let hash = known.map_or_else(|| hash(text), |known| known.hash);
        let text_of = Text::Stored(Rc::clone(stored));
        self.remember(Mark { text: text_of, hash, tokens: 0 }, text.len());
        hash
    }

    /// The hash of the next element, of another text.
    pub(super) fn text(&mut self, text: &str) -> [u8; 32] {
        let known = self.find(&|known| same(known, text));
        let hash = known.map_or_else(|| hash(text), |known| known.hash);
        self.remember(Mark { text: Text::Own(text.into()), hash, tokens: 0 }, text.len());
        hash
    }

    /// The next element, if it is a summary that the last assembly rendered: its text, hash and
    /// tokens.
    pub(super) fn known_summary(
        &mut self,
        id: [u8; 8],
        bytes: u32,
    ) -> Option<(Rc<str>, [u8; 32], u64)> {
        let is_it = |known: &Text| match known {
            Text::Summary(other, size, _) => (*other, *size) == (id, bytes),
            _ => false,
        };
        let mark = self.find(&is_it)?;
        let Text::Summary(_, _, text) = &mark.text else { return None };
        let (text, hash, tokens) = (Rc::clone(text), mark.hash, mark.tokens);
        self.remember(mark, text.len());
        Some((text, hash, tokens))
    }

    /// The hash of the next element, a summary of this id and size that was rendered now.
    pub(super) fn summary(&mut self, id: [u8; 8], bytes: u32, text: &str, tokens: u64) -> [u8; 32] {
        let hash = hash(text);
        let text_of = Text::Summary(id, bytes, text.into());
        self.remember(Mark { text: text_of, hash, tokens }, text.len());
        hash
    }

    /// The hash of these elements as a chain, see [`super::prefix`]. As far as they are those of
    /// the last assembly, nothing is hashed.
    pub(super) fn chain(&mut self, hashes: &mut dyn Iterator<Item = [u8; 32]>) -> [u8; 32] {
        let mut last = prefix::CHAIN_START;
        let mut known = self.known.chain.iter();
        self.made.chain.clear();
        for hash in hashes {
            last = match known.next() {
                Some((old, chained)) if *old == hash => *chained,
                _ => {
                    // Behind the first other element none is known.
                    known = [].iter();
                    prefix::chained(&last, &hash)
                }
            };
            self.made.chain.push((hash, last));
        }
        last
    }

    /// What the next assembly is given, after an array of so many bytes.
    pub(super) fn finish(mut self, bytes: usize) -> Rc<Marks> {
        self.made.bytes = bytes;
        Rc::new(self.made)
    }
}

fn same(known: &Text, text: &str) -> bool {
    known.of().is_some_and(|known| known.len() == text.len() && equal(known, text))
}

/// The hash of one element.
pub(super) fn hash(text: &str) -> [u8; 32] {
    hash::hash(&[b"lcm element", text.as_bytes()])
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
            let mut marking = Marking::new(known, "c");
            for (index, text) in texts.iter().enumerate().skip(from) {
                if index % 1_000 == without {
                    continue;
                }
                let at = marking.at;
                let hash = marking.text(text);
                assert_eq!(hash, hash::hash(&[b"lcm element", text.as_bytes()]));
                remembered += usize::from(marking.at > at);
            }
            known = marking.finish(0);
        }
        assert!(remembered > 5_000, "{remembered}");
    }

    /// Goal: what is known of a chain never changes it. Method: chains that differ at any place.
    #[test]
    fn a_chain_from_what_is_known_equals_a_computed_one() {
        let of = |numbers: &[u8]| numbers.iter().map(|at| [*at; 32]).collect::<Vec<_>>();
        let mut known = Rc::default();
        for numbers in [&[1, 2, 3][..], &[1, 2, 3, 4], &[1, 9, 3, 4], &[9, 3, 4], &[], &[9, 3]] {
            let mut marking = Marking::new(known, "c");
            let chain = marking.chain(&mut of(numbers).into_iter());
            assert_eq!(chain, prefix::chain(&mut of(numbers).into_iter()), "{numbers:?}");
            known = marking.finish(0);
        }
    }

    #[test]
    fn what_is_too_much_is_hashed_and_not_remembered() {
        let text = "x".repeat(REMEMBERED_BYTES_MAX);
        let mut marking = Marking::default();
        assert_ne!(marking.text(&text), marking.text("y"));
        let known = marking.finish(7);
        assert_eq!(known.elements.len(), 1);
        assert_eq!(Marking::new(Rc::clone(&known), "").bytes(), 7);
        assert_eq!(Marking::new(known, "another conversation").bytes(), 0);
    }
}
