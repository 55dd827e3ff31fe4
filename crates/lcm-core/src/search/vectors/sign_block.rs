//! Blocks of sign bits: for 64 documents, one bit for each dimension of each vector.
//!
//! Input: quantised vectors. Output: for each block, which documents are covered, which have a
//! vector, and the sign bits of these vectors. A query reads an eighth of the bytes of whole
//! vectors. A block whose length does not fit its documents is invalid.

use alloc::vec::Vec;

use crate::storage::codec;
use lcm_text::base::{error::Result, int};

/// Documents of one block.
pub(crate) const BLOCK_DOCUMENTS: u64 = 64;
/// Bytes of `covered` and `present` before the sign bits.
const HEAD_BYTES: usize = 16;

/// Returns the block of a document (from 1), and its place in the block, both from 0.
pub(crate) const fn locate_document(document: u64) -> (u64, u64) {
    let at = document.saturating_sub(1);
    (at / BLOCK_DOCUMENTS, at % BLOCK_DOCUMENTS)
}

/// Returns the document at a place of a block.
pub(crate) const fn document_at(block: u64, place: u64) -> u64 {
    block * BLOCK_DOCUMENTS + place + 1
}

/// Returns the bytes of the sign bits of one vector.
pub(crate) const fn signs_byte_count(dimensions: usize) -> usize {
    dimensions.div_ceil(8)
}

/// Returns the most bytes of a block.
pub(crate) fn block_bytes_max(dimensions: usize) -> usize {
    HEAD_BYTES + int::to_usize(BLOCK_DOCUMENTS) * signs_byte_count(dimensions)
}

/// Packs the signs of a vector: a bit for each number above zero, lowest bit first.
pub(crate) fn pack_signs(vector: &[i8]) -> Vec<u8> {
    let byte = |numbers: &[i8]| {
        let bits = numbers.iter().enumerate();
        bits.fold(0u8, |byte, (at, number)| byte | (u8::from(*number > 0) << at))
    };
    vector.chunks(8).map(byte).collect()
}

/// Sign bits of 64 consecutive documents.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct SignBlock {
    /// Covered documents (with a vector, or attached as `null`) as a bit mask, lowest bit first.
    pub(crate) covered: u64,
    /// Covered documents that have a vector, as a bit mask.
    pub(crate) present: u64,
    /// Sign bits of the present vectors, in order.
    signs: Vec<u8>,
}

impl SignBlock {
    /// Decodes a block; `None`: the bytes are invalid for these dimensions.
    pub(crate) fn read(bytes: &[u8], dimensions: usize) -> Option<Self> {
        let (covered, rest) = bytes.split_first_chunk()?;
        let (present, signs) = rest.split_first_chunk()?;
        let (covered, present) = (u64::from_be_bytes(*covered), u64::from_be_bytes(*present));
        let count = int::to_usize(present.count_ones().into());
        let is_sound = covered != 0
            && present & !covered == 0
            && signs.len() == count * signs_byte_count(dimensions);
        is_sound.then(|| Self { covered, present, signs: signs.into() })
    }

    /// Decodes a stored block; `None`: the value is absent, or invalid for these dimensions.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value is not stored as plain bytes; `unsupported`: the value has a newer
    /// format.
    pub(crate) fn from_value(
        key: &str,
        value: Option<&[u8]>,
        dimensions: usize,
    ) -> Result<Option<Self>> {
        let Some(value) = value else { return Ok(None) };
        Ok(Self::read(codec::decode_raw_bytes(key, value)?, dimensions))
    }

    /// Encodes the block.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES + self.signs.len());
        out.extend_from_slice(&self.covered.to_be_bytes());
        out.extend_from_slice(&self.present.to_be_bytes());
        out.extend_from_slice(&self.signs);
        out
    }

    /// Sets the vector of the document at a place. `None`: the document is covered and has no
    /// vector.
    pub(crate) fn set(&mut self, place: u64, dimensions: usize, vector: Option<&[i8]>) {
        let (bit, width) = (1u64 << (place % BLOCK_DOCUMENTS), signs_byte_count(dimensions));
        let before = int::to_usize((self.present & (bit - 1)).count_ones().into());
        let at = (before * width).min(self.signs.len());
        let had = if self.present & bit == 0 { 0 } else { width };
        let signs = vector.map(pack_signs).unwrap_or_default();
        self.signs.splice(at..(at + had).min(self.signs.len()), signs);
        self.covered |= bit;
        self.present &= !bit;
        if vector.is_some() {
            self.present |= bit;
        }
    }

    /// Iterates over the documents with a vector, ascending, each with its sign bits. `number`:
    /// number of this block.
    pub(crate) fn iter_vectors(
        &self,
        number: u64,
        dimensions: usize,
    ) -> impl Iterator<Item = (u64, &[u8])> {
        let places = (0..BLOCK_DOCUMENTS).filter(|place| self.present >> place & 1 == 1);
        let documents = places.map(move |place| document_at(number, place));
        documents.zip(self.signs.chunks(signs_byte_count(dimensions).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_a_bit_for_each_number_above_zero() {
        assert_eq!(pack_signs(&[1, -1, 0, 127, -127, 0, 0, 2, 3]), [0b1000_1001, 1]);
    }

    #[test]
    fn documents_have_places_in_blocks() {
        for (document, block) in [(1, (0, 0)), (64, (0, 63)), (65, (1, 0)), (6_400, (99, 63))] {
            assert_eq!(locate_document(document), block);
            assert_eq!(document_at(block.0, block.1), document);
        }
    }

    /// Goal: a block holds the vector that was last set for each document, in any order of setting.
    #[test]
    fn a_block_is_what_was_set_last() {
        let vector = |seed: i8| -> Vec<i8> { (0..20).map(|at| (at * 3 + seed) % 5 - 2).collect() };
        let mut block = SignBlock::default();
        for (place, seed) in [(63, 1), (0, 2), (7, 3), (0, 4), (8, 5)] {
            block.set(place, 20, Some(&vector(seed)));
        }
        block.set(8, 20, None);
        block.set(9, 20, None);
        let again = SignBlock::read(&block.bytes(), 20).unwrap();
        assert_eq!(again, block);
        assert_eq!(again.covered.count_ones(), 5);
        let found: Vec<(u64, Vec<u8>)> =
            again.iter_vectors(2, 20).map(|(document, signs)| (document, signs.into())).collect();
        let expected = [(129, 4), (136, 3), (192, 1)];
        assert_eq!(found, expected.map(|(document, seed)| (document, pack_signs(&vector(seed)))));
        block.set(8, 20, Some(&vector(9)));
        assert_eq!(block.iter_vectors(0, 20).count(), 4);
    }

    /// Goal: no bytes make a block read beyond its end. Method: cuts the block at every length, and
    /// flips every bit of its head.
    #[test]
    fn a_damaged_block_is_none() {
        let mut block = SignBlock::default();
        block.set(3, 12, Some(&[1; 12]));
        block.set(60, 12, Some(&[-1; 12]));
        block.set(61, 12, None);
        let bytes = block.bytes();
        for length in 0..bytes.len() {
            assert_eq!(SignBlock::read(bytes.get(..length).unwrap(), 12), None);
        }
        assert_eq!(SignBlock::read(&bytes, 20), None);
        for bit in 0..HEAD_BYTES * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // A flipped bit that adds a covered document without a vector is not detected here, but
            // changes the number of covered documents.
            assert!(SignBlock::read(&bytes, 12).is_none_or(|read| read.covered != block.covered));
        }
    }
}
