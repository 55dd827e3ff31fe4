//! The digest of a whole store, independent of the engine, so that a test compares two
//! implementations.
//!
//! For each entry in key order: u32 big-endian length of the key, the key, u32 big-endian length of
//! the value, the value; the digest is the SHA-256 over these bytes, as 64 lower-case hex digits.

use sha2::{Digest, Sha256};

/// Computes the digest of `entries`, which must be in key order.
pub fn store_digest<'a>(entries: impl IntoIterator<Item = (&'a String, &'a Vec<u8>)>) -> String {
    let mut hasher = Sha256::new();
    for (key, value) in entries {
        for bytes in [key.as_bytes(), value.as_slice()] {
            let length = u32::try_from(bytes.len()).expect("a value is far below 4 GiB");
            hasher.update(length.to_be_bytes());
            hasher.update(bytes);
        }
    }
    hex(&hasher.finalize())
}

/// Computes the SHA-256 of a text, as 64 lower-case hex digits.
#[must_use]
pub fn text_sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_empty_store_has_the_digest_of_no_bytes() {
        let entries = BTreeMap::new();
        assert_eq!(
            store_digest(&entries),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn lengths_keep_neighbours_apart() {
        let one = BTreeMap::from([("ab".to_owned(), b"c".to_vec())]);
        let other = BTreeMap::from([("a".to_owned(), b"bc".to_vec())]);
        assert_ne!(store_digest(&one), store_digest(&other));
    }
}
