//! Hash chain over the elements of a context.
//!
//! In: the hash of each element, in order. Out: one hash for all of them. The hash over n + 1
//! elements is computed from the hash over the first n, so that appending costs one hash.

use lcm_text::base::hash;

/// Hash of a chain without elements.
pub(super) const CHAIN_START: [u8; 32] = [0; 32];

/// Appends the hash of one element to a chain.
pub(super) fn append_hash(chain: &[u8; 32], element: &[u8; 32]) -> [u8; 32] {
    hash::hash_fields(&[b"lcm assembly", chain, element])
}

/// Returns the chain over the hashes of all elements.
pub(super) fn chain_hashes(hashes: &mut dyn Iterator<Item = [u8; 32]>) -> [u8; 32] {
    hashes.fold(CHAIN_START, |chain, hash| append_hash(&chain, &hash))
}
