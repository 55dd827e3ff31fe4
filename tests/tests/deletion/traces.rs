//! Finds what a store still has of a conversation.

use lcm_testing::ModelStore;
use lcm_text::base::{deflate, hash};

use crate::world::{DELETED, SECRET};

/// The texts and bytes that show a conversation in a store.
pub(crate) struct Traces {
    root: String,
    hash: Vec<u8>,
}

impl Traces {
    /// Returns the traces of the conversation that is deleted.
    pub(crate) fn of(store: &ModelStore) -> Self {
        let digest = hash::hash_fields(&[b"lcm conversation", b"", DELETED.as_bytes()]);
        let root = hash::encode_base64url(digest.get(..16).unwrap(), 22);
        assert!(store.entries().contains_key(&format!("n/{root}")), "the root is another one");
        Self { root, hash: digest.get(..16).unwrap().to_vec() }
    }

    /// Returns whether a key belongs to the conversation or names it.
    pub(crate) fn is_own_key(&self, key: &str) -> bool {
        key.contains(&self.root)
    }

    /// Returns whether a value names or quotes the conversation.
    pub(crate) fn is_in(&self, value: &[u8]) -> bool {
        let inflated = inflate(value);
        let has = |needle: &[u8]| {
            [value, &inflated].iter().any(|text| text.windows(needle.len()).any(|w| w == needle))
        };
        has(&self.hash) || has(DELETED.as_bytes()) || has(SECRET.as_bytes())
    }

    /// Returns the kind of a record with a trace: its letter, in upper case if the record belongs
    /// to another conversation. `None`: no trace, or a record of no conversation.
    pub(crate) fn kind(&self, key: &str, value: &[u8]) -> Option<char> {
        let letter = key.get(22..24)?.strip_prefix('/')?.chars().next()?;
        match key.starts_with(&self.root) {
            true => Some(letter),
            false => self.is_in(value).then_some(letter.to_ascii_uppercase()),
        }
    }

    /// Lists the keys of the store that have a trace.
    pub(crate) fn find(&self, store: &ModelStore) -> Vec<String> {
        let has_trace =
            |(key, value): &(&String, &Vec<u8>)| self.is_own_key(key) || self.is_in(value);
        store.entries().iter().filter(has_trace).map(|(key, _)| key.clone()).collect()
    }
}

/// Returns the payload of a deflated value; empty: the value is plain.
fn inflate(value: &[u8]) -> Vec<u8> {
    let [1, 2 | 3, a, b, c, d, stream @ ..] = value else { return Vec::new() };
    let length = u32::from_be_bytes([*a, *b, *c, *d]);
    deflate::inflate(stream, usize::try_from(length).unwrap()).unwrap()
}
