//! Cache of the hashes of elements, passed from one assembly to the next.
//!
//! In: the texts of the elements, in order. Out: the hash of each element, and the rendered text of
//! a cached summary. Two assemblies of a conversation share nearly all of their elements. A cached
//! hash is used only for an equal text: the same record in memory, or the same bytes. A summary is
//! recognised by its id, which is a hash of its content, and the size of its record.

use alloc::{rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use super::element_chain;
use crate::storage::pack::{RawText, StoredMessage};

/// Maximum bytes of cached texts: about a budget of a million tokens.
const CACHED_BYTES_MAX: usize = 4 << 20;
/// Maximum number of cached elements that are compared with one text. The skipped elements left the
/// context; few leave at once.
const LOOKAHEAD_MAX: usize = 512;

/// Hashes of the elements of one assembly.
#[derive(Debug, Default)]
pub(crate) struct ElementHashes {
    /// Key prefix of the conversation.
    key_prefix: String,
    elements: Vec<HashedElement>,
    /// The hash of each element, and the chain hash over the elements up to and including that
    /// element.
    chain: Vec<([u8; 32], [u8; 32])>,
    /// Bytes of the array that the assembly wrote.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct HashedElement {
    text: ElementText,
    hash: [u8; 32],
    tokens: u64,
}

/// Text of an element.
#[derive(Clone, Debug)]
enum ElementText {
    /// The rendered content of a message, inside its pack.
    Stored(Rc<StoredMessage>),
    /// Id of a summary, bytes of its record, and its rendered text.
    Summary([u8; 8], u32, Rc<str>),
    /// Any other text.
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

/// Hashes the elements of an assembly with the cache of the last assembly.
#[derive(Debug, Default)]
pub(super) struct ElementHasher {
    previous: Rc<ElementHashes>,
    /// Index of the next cached element that may match.
    position: usize,
    current: ElementHashes,
    /// Bytes of the texts in `current`.
    cached_bytes: usize,
}

/// Returns whether two texts of equal length are equal. Compares eight bytes at a time: in
/// WebAssembly, `==` compares single bytes.
fn is_equal_text(a: &str, b: &str) -> bool {
    let ((words_a, rest_a), (words_b, rest_b)) =
        (a.as_bytes().as_chunks::<8>(), b.as_bytes().as_chunks::<8>());
    let differ = |(a, b): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*a) != u64::from_le_bytes(*b);
    !words_a.iter().zip(words_b).any(differ) && rest_a == rest_b
}

impl ElementHasher {
    /// Creates a hasher; hashes of another conversation are ignored.
    pub(super) fn new(previous: Rc<ElementHashes>, key_prefix: &str) -> Self {
        let previous = if previous.key_prefix == key_prefix { previous } else { Rc::default() };
        let current = ElementHashes { key_prefix: key_prefix.into(), ..ElementHashes::default() };
        Self { previous, position: 0, current, cached_bytes: 0 }
    }

    /// Returns the bytes of the array of the last assembly.
    pub(super) fn previous_bytes(&self) -> usize {
        self.previous.bytes
    }

    /// Finds the first of the next [`LOOKAHEAD_MAX`] cached elements that `matches` accepts, and
    /// skips the elements before; `None`: no such element, and none is skipped.
    fn find_known(&mut self, matches: &dyn Fn(&ElementText) -> bool) -> Option<HashedElement> {
        let ahead = self.previous.elements.iter().skip(self.position).take(LOOKAHEAD_MAX);
        let (index, element) = ahead.enumerate().find(|(_, element)| matches(&element.text))?;
        self.position += index + 1;
        Some(element.clone())
    }

    fn cache_element(&mut self, element: HashedElement, bytes: usize) {
        self.cached_bytes = self.cached_bytes.saturating_add(bytes);
        if self.cached_bytes <= CACHED_BYTES_MAX {
            self.current.elements.push(element);
        }
    }

    /// Hashes the next element, a message as stored.
    pub(super) fn hash_message(&mut self, stored: &Rc<StoredMessage>, text: &str) -> [u8; 32] {
        let known = self.find_known(&|known| {
            matches!(known, ElementText::Stored(known) if Rc::ptr_eq(known, stored))
                || is_same_text(known, text)
        });
        let hash = known.map_or_else(|| hash_element(text), |known| known.hash);
        let cached = ElementText::Stored(Rc::clone(stored));
        self.cache_element(HashedElement { text: cached, hash, tokens: 0 }, text.len());
        hash
    }

    /// Hashes the next element, any other text.
    pub(super) fn hash_text(&mut self, text: &str) -> [u8; 32] {
        let known = self.find_known(&|known| is_same_text(known, text));
        let hash = known.map_or_else(|| hash_element(text), |known| known.hash);
        self.cache_element(
            HashedElement { text: ElementText::Own(text.into()), hash, tokens: 0 },
            text.len(),
        );
        hash
    }

    /// Returns the text, hash and tokens of the next element, a summary, if the last assembly
    /// rendered the summary. `bytes`: bytes of the summary's record. `None`: the next
    /// [`LOOKAHEAD_MAX`] cached elements lack the summary.
    pub(super) fn find_summary(
        &mut self,
        id: [u8; 8],
        bytes: u32,
    ) -> Option<(Rc<str>, [u8; 32], u64)> {
        let is_summary = |known: &ElementText| match known {
            ElementText::Summary(other, size, _) => (*other, *size) == (id, bytes),
            _ => false,
        };
        let element = self.find_known(&is_summary)?;
        let ElementText::Summary(_, _, text) = &element.text else { return None };
        let (text, hash, tokens) = (Rc::clone(text), element.hash, element.tokens);
        self.cache_element(element, text.len());
        Some((text, hash, tokens))
    }

    /// Hashes the next element, a summary that was rendered now. `bytes`: bytes of its record.
    pub(super) fn hash_summary(
        &mut self,
        id: [u8; 8],
        bytes: u32,
        text: &str,
        tokens: u64,
    ) -> [u8; 32] {
        let hash = hash_element(text);
        let cached = ElementText::Summary(id, bytes, text.into());
        self.cache_element(HashedElement { text: cached, hash, tokens }, text.len());
        hash
    }

    /// Returns the chain over the hashes of all elements ([`element_chain`]). The chain of the last
    /// assembly is reused up to the first difference.
    pub(super) fn hash_chain(&mut self, hashes: &mut dyn Iterator<Item = [u8; 32]>) -> [u8; 32] {
        let mut last = element_chain::CHAIN_START;
        let mut known = self.previous.chain.iter();
        self.current.chain.clear();
        for hash in hashes {
            last = match known.next() {
                Some((old, chained)) if *old == hash => *chained,
                _ => {
                    // Behind the first difference, no cached chain is valid.
                    known = [].iter();
                    element_chain::append_hash(&last, &hash)
                }
            };
            self.current.chain.push((hash, last));
        }
        last
    }

    /// Returns the hashes for the next assembly. `bytes`: bytes of the array.
    pub(super) fn finish(mut self, bytes: usize) -> Rc<ElementHashes> {
        self.current.bytes = bytes;
        Rc::new(self.current)
    }
}

fn is_same_text(known: &ElementText, text: &str) -> bool {
    known.as_text().is_some_and(|known| known.len() == text.len() && is_equal_text(known, text))
}

/// Returns the hash of an element.
pub(super) fn hash_element(text: &str) -> [u8; 32] {
    hash::hash_fields(&[b"lcm element", text.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// Goal: the cache never changes a hash. Method: assemblies that lose elements in front, in the
    /// middle and all of them, with texts that repeat.
    #[test]
    fn a_cached_hash_equals_a_computed_one() {
        let texts: Vec<String> =
            (0..2_000).map(|number| format!("text {}", number % 700)).collect();
        let mut known = Rc::default();
        let mut cached = 0;
        for (from, without) in [(0, 5), (1, 5), (1, 900), (800, 7), (0, 3), (1_500, 1)] {
            let mut hasher = ElementHasher::new(known, "c");
            for (index, text) in texts.iter().enumerate().skip(from) {
                if index % 1_000 == without {
                    continue;
                }
                let at = hasher.position;
                let hash = hasher.hash_text(text);
                assert_eq!(hash, hash::hash_fields(&[b"lcm element", text.as_bytes()]));
                cached += usize::from(hasher.position > at);
            }
            known = hasher.finish(0);
        }
        assert!(cached > 5_000, "{cached}");
    }

    /// Goal: the cache never changes a chain. Method: chains that differ at any place.
    #[test]
    fn a_cached_chain_equals_a_computed_one() {
        let of = |numbers: &[u8]| numbers.iter().map(|at| [*at; 32]).collect::<Vec<_>>();
        let mut known = Rc::default();
        for numbers in [&[1, 2, 3][..], &[1, 2, 3, 4], &[1, 9, 3, 4], &[9, 3, 4], &[], &[9, 3]] {
            let mut hasher = ElementHasher::new(known, "c");
            let chain = hasher.hash_chain(&mut of(numbers).into_iter());
            assert_eq!(
                chain,
                element_chain::chain_hashes(&mut of(numbers).into_iter()),
                "{numbers:?}"
            );
            known = hasher.finish(0);
        }
    }

    #[test]
    fn a_text_over_the_limit_is_hashed_and_not_cached() {
        let text = "x".repeat(CACHED_BYTES_MAX);
        let mut hasher = ElementHasher::default();
        assert_ne!(hasher.hash_text(&text), hasher.hash_text("y"));
        let known = hasher.finish(7);
        assert_eq!(known.elements.len(), 1);
        assert_eq!(ElementHasher::new(Rc::clone(&known), "").previous_bytes(), 7);
        assert_eq!(ElementHasher::new(known, "another conversation").previous_bytes(), 0);
    }
}
