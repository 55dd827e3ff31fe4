//! SHA-256 in hex digits, from which other modules make names of uploads, cache files and entries.

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of bytes as 64 hex digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), of_abc);
    }
}
