//! Hashes terms with FNV-1a, equally in every host.
//!
//! Input: the bytes of a term. Output: a 64-bit hash, the key of a term in maps.

use core::hash::Hasher;

/// An FNV-1a hash that is built byte by byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermHash(u64);

impl TermHash {
    /// Creates the hash of no bytes.
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Returns the hash with one more byte.
    pub(super) const fn with_byte(self, byte: u8) -> Self {
        #[expect(clippy::as_conversions, reason = "lossless; `From` is not const")]
        let byte = byte as u64;
        Self((self.0 ^ byte).wrapping_mul(0x0100_0000_01b3))
    }

    /// Returns the hash value.
    pub(super) const fn finish(self) -> u64 {
        self.0
    }
}

/// Returns the FNV-1a hash of bytes.
pub fn fnv_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(TermHash::new(), |key, byte| key.with_byte(*byte)).finish()
}

/// Returns the FNV-1a hash of ASCII bytes, converted to lower case.
pub(crate) fn fnv_hash_lowercase<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(TermHash::new(), |key, byte| key.with_byte(byte.to_ascii_lowercase())).finish()
}

/// A hasher for maps whose keys are hashes already.
#[derive(Debug, Default)]
pub struct TermHasher(u64);

impl Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv_hash(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        // The map uses bits of both ends, and the upper bits of FNV-1a are weak.
        self.0 = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
