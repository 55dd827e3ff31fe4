//! Lengths of documents in one byte each.
//!
//! Input: the number of positions in a document. Output: a byte, and from the byte an upper bound
//! of that number. Used for doc values, and to encode positions in posting blocks.

use alloc::vec::Vec;

use crate::int;

/// Encodes a length as one byte: exact below 16, above rounded up to one of 16 steps per doubling.
/// A length above 524,288 is encoded as 524,288.
pub fn quantize_length(length: u64) -> u8 {
    if length < 16 {
        return u8::try_from(length).unwrap_or(0);
    }
    let mut shift = 0u8;
    while shift < 14 && (32u64 << shift) < length {
        shift += 1;
    }
    let step = length.div_ceil(1 << shift).saturating_sub(17).min(15);
    16 + 16 * shift + u8::try_from(step).unwrap_or(15)
}

/// Returns the length that a byte encodes.
pub fn dequantize_length(byte: u8) -> u64 {
    match byte.checked_sub(16) {
        None => u64::from(byte),
        Some(above) => (17 + u64::from(above % 16)) << (above / 16),
    }
}

/// Lengths of consecutive documents.
#[derive(Debug, Default)]
pub struct DocumentLengths {
    /// Number of the first document.
    pub first: u64,
    /// Encoded length of each document.
    pub bytes: Vec<u8>,
}

impl DocumentLengths {
    /// Returns an upper bound of the number of positions in a document, at least `count` and 1.
    ///
    /// `count` is a number of positions that the document has. An unknown document has length 0.
    pub fn position_bound(&self, document: u64, count: u64) -> u64 {
        let at = document.checked_sub(self.first).map(int::to_usize);
        let byte = at.and_then(|at| self.bytes.get(at)).copied().unwrap_or(0);
        dequantize_length(byte).max(count).max(1)
    }
}

impl DocumentLengths {
    /// Returns whether a document has no positions, or its length is not known.
    pub fn is_zero(&self, document: u64) -> bool {
        let at = document.checked_sub(self.first).map(int::to_usize);
        at.and_then(|at| self.bytes.get(at)).is_none_or(|byte| *byte == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_up_by_at_most_a_sixteenth() {
        for exact in (0..3_000).chain((3_000..524_288).step_by(97)) {
            let rounded = dequantize_length(quantize_length(exact));
            assert!(rounded >= exact && rounded <= exact + exact / 16 + 1, "{exact}: {rounded}");
        }
        assert_eq!(quantize_length(u64::MAX), 255);
        assert!(
            (0..255).all(|byte| quantize_length(dequantize_length(byte)) == byte || byte == 16)
        );
    }
}
