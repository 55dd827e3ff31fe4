//! Hashes of the elements of an assembly, kept from one to the next.
//!
//! In: the texts of the elements, in order. Out: the hash of each, and of a summary its text. Two
//! assemblies of a conversation share nearly all of their elements. A remembered hash is always
//! that of the text: it is the same record in memory, or compared byte for byte; and a summary is
//! named by its content.

use alloc::{rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use super::prefix;
use crate::storage::pack::{RawText, StoredMessage};

/// Bytes of text that are remembered: what a budget of a million tokens holds.
const REMEMBERED_BYTES_MAX: usize = 4 << 20;
/// Remembered elements that are compared with one text: those before are no longer part of the
/// context, and more than a few batches of messages do not leave it at once.
const LOOKAHEAD_MAX: usize = 512;

/// The elements of one assembly.
#[derive(Debug, Default)]
pub(crate) struct ElementHashes {
    /// Key root of the conversation.
    root: String,
    elements: Vec<HashedElement>,
    /// The hash of each element, and that of all elements up to it.
    chain: Vec<([u8; 32], [u8; 32])>,
    /// Bytes of the whole array.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct HashedElement {
    text: ElementText,
    hash: [u8; 32],
    tokens: u64,
}

/// Where the text of an element stands.
#[derive(Clone, Debug)]
enum ElementText {
    /// What is shown of a message, in the pack that it is read from.
    Stored(Rc<StoredMessage>),
    /// A summary of this id and size of its record, as it was rendered.
    Summary([u8; 8], u32, Rc<str>),
    Own(Rc<str>),
}

impl ElementText {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Stored(stored) => match stored.rendered_content().0 {
                RawText::Inline(text) => Some(text),
                RawText::Chunked { .. } => None,
            },
            Self::Summary(_, _, text) | Self::Own(text) => Some(text),
        }
    }
}

/// Hashes elements, with those of the last assembly at hand.
#[derive(Debug, Default)]
pub(super) struct ElementHasher {
    previous: Rc<ElementHashes>,
    /// Known elements before this one were passed.
    position: usize,
    current: ElementHashes,
    /// Bytes of the texts that are remembered.
    remembered_bytes: usize,
}

/// Whether two texts of one length are equal. In the guest, `==` goes byte by byte.
fn is_equal_text(a: &str, b: &str) -> bool {
    let ((words_a, rest_a), (words_b, rest_b)) =
        (a.as_bytes().as_chunks::<8>(), b.as_bytes().as_chunks::<8>());
    let differ = |(a, b): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*a) != u64::from_le_bytes(*b);
    !words_a.iter().zip(words_b).any(differ) && rest_a == rest_b
}

impl ElementHasher {
    /// With what the last assembly left, if it was one of this conversation.
    pub(super) fn new(known: Rc<ElementHashes>, root: &str) -> Self {
        let known = if known.root == root { known } else { Rc::default() };
        let made = ElementHashes { root: root.into(), ..ElementHashes::default() };
        Self { previous: known, position: 0, current: made, remembered_bytes: 0 }
    }

    /// Bytes that the array of the last assembly had.
    pub(super) fn previous_bytes(&self) -> usize {
        self.previous.bytes
    }

    /// The known element that fits, and all before it passed.
    fn find_known(&mut self, fits: &dyn Fn(&ElementText) -> bool) -> Option<HashedElement> {
        let ahead = self.previous.elements.iter().skip(self.position).take(LOOKAHEAD_MAX);
        let (index, mark) = ahead.enumerate().find(|(_, mark)| fits(&mark.text))?;
        self.position += index + 1;
        Some(mark.clone())
    }

    fn remember_element(&mut self, mark: HashedElement, bytes: usize) {
        self.remembered_bytes = self.remembered_bytes.saturating_add(bytes);
        if self.remembered_bytes <= REMEMBERED_BYTES_MAX {
            self.current.elements.push(mark);
        }
    }

    /// The hash of the next element, a message as it is stored.
    pub(super) fn hash_message(&mut self, stored: &Rc<StoredMessage>, text: &str) -> [u8; 32] {
        let known = self.find_known(&|known| {
            matches!(known, ElementText::Stored(known) if Rc::ptr_eq(known, stored))
                || is_same_text(known, text)
        });
        let hash = known.map_or_else(|| hash_element(text), |known| known.hash);
        let text_of = ElementText::Stored(Rc::clone(stored));
        self.remember_element(HashedElement { text: text_of, hash, tokens: 0 }, text.len());
        hash
    }

    /// The hash of the next element, of another text.
    pub(super) fn hash_text(&mut self, text: &str) -> [u8; 32] {
        let known = self.find_known(&|known| is_same_text(known, text));
        let hash = known.map_or_else(|| hash_element(text), |known| known.hash);
        self.remember_element(
            HashedElement { text: ElementText::Own(text.into()), hash, tokens: 0 },
            text.len(),
        );
        hash
    }

    /// The next element, if it is a summary that the last assembly rendered: its text, hash and
    /// tokens.
    pub(super) fn find_summary(
        &mut self,
        id: [u8; 8],
        bytes: u32,
    ) -> Option<(Rc<str>, [u8; 32], u64)> {
        let is_it = |known: &ElementText| match known {
            ElementText::Summary(other, size, _) => (*other, *size) == (id, bytes),
            _ => false,
        };
        let mark = self.find_known(&is_it)?;
        let ElementText::Summary(_, _, text) = &mark.text else { return None };
        let (text, hash, tokens) = (Rc::clone(text), mark.hash, mark.tokens);
        self.remember_element(mark, text.len());
        Some((text, hash, tokens))
    }

    /// The hash of the next element, a summary of this id and size that was rendered now.
    pub(super) fn hash_summary(
        &mut self,
        id: [u8; 8],
        bytes: u32,
        text: &str,
        tokens: u64,
    ) -> [u8; 32] {
        let hash = hash_element(text);
        let text_of = ElementText::Summary(id, bytes, text.into());
        self.remember_element(HashedElement { text: text_of, hash, tokens }, text.len());
        hash
    }

    /// The hash of these elements as a chain, see [`super::prefix`]. As far as they are those of
    /// the last assembly, nothing is hashed.
    pub(super) fn hash_chain(&mut self, hashes: &mut dyn Iterator<Item = [u8; 32]>) -> [u8; 32] {
        let mut last = prefix::CHAIN_START;
        let mut known = self.previous.chain.iter();
        self.current.chain.clear();
        for hash in hashes {
            last = match known.next() {
                Some((old, chained)) if *old == hash => *chained,
                _ => {
                    // Behind the first other element none is known.
                    known = [].iter();
                    prefix::chain_next(&last, &hash)
                }
            };
            self.current.chain.push((hash, last));
        }
        last
    }

    /// What the next assembly is given, after an array of so many bytes.
    pub(super) fn finish(mut self, bytes: usize) -> Rc<ElementHashes> {
        self.current.bytes = bytes;
        Rc::new(self.current)
    }
}

fn is_same_text(known: &ElementText, text: &str) -> bool {
    known.as_text().is_some_and(|known| known.len() == text.len() && is_equal_text(known, text))
}

/// The hash of one element.
pub(super) fn hash_element(text: &str) -> [u8; 32] {
    hash::hash_fields(&[b"lcm element", text.as_bytes()])
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
            let mut marking = ElementHasher::new(known, "c");
            for (index, text) in texts.iter().enumerate().skip(from) {
                if index % 1_000 == without {
                    continue;
                }
                let at = marking.position;
                let hash = marking.hash_text(text);
                assert_eq!(hash, hash::hash_fields(&[b"lcm element", text.as_bytes()]));
                remembered += usize::from(marking.position > at);
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
            let mut marking = ElementHasher::new(known, "c");
            let chain = marking.hash_chain(&mut of(numbers).into_iter());
            assert_eq!(chain, prefix::chain_all(&mut of(numbers).into_iter()), "{numbers:?}");
            known = marking.finish(0);
        }
    }

    #[test]
    fn what_is_too_much_is_hashed_and_not_remembered() {
        let text = "x".repeat(REMEMBERED_BYTES_MAX);
        let mut marking = ElementHasher::default();
        assert_ne!(marking.hash_text(&text), marking.hash_text("y"));
        let known = marking.finish(7);
        assert_eq!(known.elements.len(), 1);
        assert_eq!(ElementHasher::new(Rc::clone(&known), "").previous_bytes(), 7);
        assert_eq!(ElementHasher::new(known, "another conversation").previous_bytes(), 0);
    }
}
