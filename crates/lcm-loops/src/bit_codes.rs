//! Bit codes for the numbers of postings: `posting_block` writes and reads them.
//!
//! | code | encodes |
//! |---|---|
//! | truncated binary | a number below a known bound |
//! | Elias gamma | a number from 1, without a known bound |
//! | binary interpolative | an ascending list within known bounds: the middle, then both halves |
//!
//! A list that fills its bounds completely takes no bits. Reading never fails: behind the end all
//! bits are zeros. [`BitReader::is_past_end`] detects most reads behind the end.

use alloc::vec::Vec;

use crate::int;

/// A writer of bits; the first bit is the lowest of the first byte.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Last bits, fewer than 32, which are not in `bytes` yet.
    pending: u64,
    /// Number of bits in `pending`.
    filled: u32,
}

impl BitWriter {
    /// Appends a number of `width` bits, at most 32. All higher bits of `value` must be 0.
    #[inline]
    fn write_bits(&mut self, value: u64, width: u32) {
        self.pending |= value << self.filled;
        self.filled += width;
        if self.filled >= 32 {
            let [a, b, c, d, ..] = self.pending.to_le_bytes();
            self.bytes.extend_from_slice(&[a, b, c, d]);
            self.pending >>= 32;
            self.filled -= 32;
        }
    }

    /// Appends a number of `width` bits, at most 63. All higher bits of `value` must be 0.
    #[inline]
    fn write_wide(&mut self, value: u64, width: u32) {
        if width <= 32 {
            return self.write_bits(value, width);
        }
        self.write_bits(value & 0xFFFF_FFFF, 32);
        self.write_bits(value >> 32, width - 32);
    }

    /// Appends a number below `bound` in truncated binary; a bound of 1 takes no bits.
    pub(crate) fn write_bounded(&mut self, value: u64, bound: u64) {
        if bound <= 1 {
            return;
        }
        let width = bound.ilog2();
        let short = (2u64 << width) - bound;
        if value < short {
            self.write_wide(value, width);
        } else {
            let value = value + short;
            self.write_wide(value >> 1, width);
            self.write_bits(value & 1, 1);
        }
    }

    /// Appends a number from 1 to 2^32 - 1 as Elias gamma code.
    pub(crate) fn write_gamma(&mut self, value: u64) {
        let width = value.max(1).ilog2();
        // `width` zeros and a one, then the bits below the highest one.
        self.write_bits(1 << width, width + 1);
        self.write_bits(value - (1 << width), width);
    }

    /// Appends a strictly ascending list within `low..=high`, without its length.
    pub(crate) fn write_ascending(&mut self, list: &[u64], low: u64, high: u64) {
        if let [one] = list {
            return self.write_bounded(*one - low, high - low + 1);
        }
        let count = int::to_u64(list.len());
        // The list is full or empty; its bounds determine the list.
        if count == 0 || high - low + 1 == count {
            return;
        }
        let (left, rest) = list.split_at(list.len() / 2);
        let Some((middle, right)) = rest.split_first() else { return };
        let least = low + int::to_u64(left.len());
        let most = high - int::to_u64(right.len());
        self.write_bounded(*middle - least, most - least + 1);
        if !left.is_empty() {
            self.write_ascending(left, low, *middle - 1);
        }
        if !right.is_empty() {
            self.write_ascending(right, *middle + 1, high);
        }
    }

    /// Appends all bits to `out`, padded to whole bytes, and clears the writer.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.bytes);
        let bytes = int::to_usize(u64::from(self.filled.div_ceil(8)));
        out.extend(self.pending.to_le_bytes().iter().take(bytes));
        (self.pending, self.filled) = (0, 0);
    }
}

/// A reader of the bits that a [`BitWriter`] wrote.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    /// Bytes that are not in `pending` yet.
    rest: &'a [u8],
    /// Next bits, the first lowest.
    pending: u64,
    /// Number of bits in `pending`.
    filled: u32,
    past_end: bool,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, pending: 0, filled: 0, past_end: false }
    }

    /// Returns whether a read had to be filled when no bit was left, counting the zeros that
    /// earlier reads added behind the end. Reads of such zeros are not detected.
    pub(crate) const fn is_past_end(&self) -> bool {
        self.past_end
    }

    /// Fills `pending`, which must have fewer than 32 bits, to at least 32; behind the end with
    /// zeros.
    fn fill_pending(&mut self) {
        if let Some((head, rest)) = self.rest.split_first_chunk::<4>() {
            self.pending |= u64::from(u32::from_le_bytes(*head)) << self.filled;
            self.filled += 32;
            self.rest = rest;
            return;
        }
        let Some((byte, rest)) = self.rest.split_first() else {
            // Behind the end: 32 zeros.
            self.past_end = self.filled == 0 || self.past_end;
            self.filled += 32;
            return;
        };
        self.pending |= u64::from(*byte) << self.filled;
        self.filled += 8;
        self.rest = rest;
        if self.filled < 32 {
            self.fill_pending();
        }
    }

    #[inline]
    fn read_bits(&mut self, width: u32) -> u64 {
        if self.filled < width {
            self.fill_pending();
        }
        let value = self.pending & ((1u64 << width) - 1);
        self.pending >>= width;
        self.filled -= width;
        value
    }

    fn read_wide(&mut self, width: u32) -> u64 {
        if width <= 32 {
            return self.read_bits(width);
        }
        let low = self.read_bits(32);
        low | (self.read_bits(width - 32) << 32)
    }

    /// Reads a number below `bound` in truncated binary.
    pub(crate) fn read_bounded(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let width = bound.ilog2();
        let short = (2u64 << width) - bound;
        let value = self.read_wide(width);
        if value < short { value } else { 2 * value + self.read_bits(1) - short }
    }

    /// Reads a number from 1 to 2^32 - 1 in Elias gamma code.
    pub(crate) fn read_gamma(&mut self) -> u64 {
        if self.filled < 32 {
            self.fill_pending();
        }
        let width = self.pending.trailing_zeros().min(31);
        self.pending >>= width + 1;
        self.filled -= width + 1;
        (1 << width) | self.read_bits(width)
    }

    /// Reads a strictly ascending list within `low..=high`, of the length of `list`, into `list`.
    /// The range must have at least as many numbers.
    pub(crate) fn read_ascending(&mut self, list: &mut [u64], low: u64, high: u64) {
        if let [one] = list {
            *one = low + self.read_bounded(high - low + 1);
            return;
        }
        let count = int::to_u64(list.len());
        if high - low + 1 == count {
            for (slot, value) in list.iter_mut().zip(low..) {
                *slot = value;
            }
            return;
        }
        let (left, rest) = list.split_at_mut(list.len() / 2);
        let Some((middle, right)) = rest.split_first_mut() else { return };
        let least = low + int::to_u64(left.len());
        let most = high - int::to_u64(right.len());
        *middle = least + self.read_bounded(most - least + 1);
        let middle = *middle;
        if !left.is_empty() {
            self.read_ascending(left, low, middle - 1);
        }
        if !right.is_empty() {
            self.read_ascending(right, middle + 1, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in every run.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// Goal: every written number is read back. Method: lists of every density between random
    /// bounds, with numbers in the other codes between the lists.
    #[test]
    fn every_code_is_read_back() {
        let mut state = 7;
        for round in 0..2_000u64 {
            let low = random(&mut state) % 1_000;
            let high = low + random(&mut state) % (1 << (round % 42));
            let count = (high - low + 1).min(1 + random(&mut state) % 100);
            let mut list: Vec<u64> =
                (0..count).map(|_| low + random(&mut state) % (high - low + 1)).collect();
            list.sort_unstable();
            list.dedup();
            let (gamma, bound) = (1 + random(&mut state) % 1_000_000, high + 1);
            let mut writer = BitWriter::default();
            writer.write_gamma(gamma);
            writer.write_ascending(&list, low, high);
            writer.write_bounded(low, bound);
            let mut bytes = Vec::new();
            writer.drain_into(&mut bytes);
            let mut reader = BitReader::new(&bytes);
            assert_eq!(reader.read_gamma(), gamma);
            let mut read = alloc::vec![0; list.len()];
            reader.read_ascending(&mut read, low, high);
            assert_eq!(read, list);
            assert_eq!(reader.read_bounded(bound), low);
            assert!(!reader.is_past_end());
        }
    }

    #[test]
    fn a_full_list_takes_nothing_and_the_end_is_noticed() {
        let list: Vec<u64> = (5..=900).collect();
        let mut writer = BitWriter::default();
        writer.write_ascending(&list, 5, 900);
        let mut bytes = Vec::new();
        writer.drain_into(&mut bytes);
        assert!(bytes.is_empty());
        let mut reader = BitReader::new(&[]);
        let mut list = [0; 5];
        reader.read_ascending(&mut list, 10, 1_000);
        assert!(
            reader.is_past_end()
                && list.is_sorted()
                && list.iter().all(|n| (10..=1_000).contains(n))
        );
    }
}
