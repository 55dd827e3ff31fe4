//! Collects the postings of documents in memory and writes them as the blocks of a new segment.
//!
//! Input: the terms and texts of consecutive documents. Output: blocks. Each term is replaced by
//! its key (a hash, see [`term_key`]) as soon as the term is added. An occurrence is two numbers in
//! memory: the number of the key, and the document with the position. One pass in the order of the
//! keys writes the lists. Grams are collected once for each unit, a block of consecutive documents.

use alloc::vec::Vec;

use crate::{
    int,
    lengths::{DocumentLengths, quantize_length},
    posting_block::{
        BlockWriter, EVERY_GRAM_KEY, FIRST_GRAM_KEY, FIRST_POSITIONLESS_KEY, KEY_BITS, SegmentRange,
    },
    posting_list::PostingListBuilder,
    radix_sort, term_tokenizer,
};

/// Largest number of grams of one unit; a unit with more is listed under [`EVERY_GRAM_KEY`].
pub const UNIT_GRAMS_MAX: usize = 16_384;
/// Bits of a position in an occurrence; the other 12 bits number the document, so a collector takes
/// at most 4,096 documents.
const POSITION_BITS: u32 = 20;
/// Bits of a key's number, which is sorted together with the key as one number of 64 bits. A commit
/// has fewer keys than 2^22.
const NUMBER_BITS: u32 = 64 - KEY_BITS;
/// Number of occurrences below which the blocks of a segment are expected to fit into its root.
const SMALL_OCCURRENCES_MAX: usize = 20_000;
/// Greatest position of an occurrence; a greater position is stored as this one.
const POSITION_MAX: u64 = (1 << POSITION_BITS) - 1;

/// Returns the key of a term: 40 bits of its hash, plus [`FIRST_POSITIONLESS_KEY`] for a term
/// without positions.
#[must_use]
pub fn term_key(term: &[u8]) -> u64 {
    let key = term_tokenizer::hash_bytes(term) >> 24;
    if term_tokenizer::has_positions(term) { key } else { FIRST_POSITIONLESS_KEY + key }
}

/// Returns the key of a gram.
#[must_use]
pub fn gram_key(gram: [u8; 3]) -> u64 {
    let [a, b, c] = gram;
    FIRST_GRAM_KEY + u64::from(u32::from_be_bytes([0, a, b, c]))
}

/// A table that numbers keys in the order of their first occurrence.
#[derive(Debug, Default)]
struct KeyTable {
    /// Hash table of 1 + the number of a key; 0: free. Its length is 0 or a power of two.
    slots: Vec<u32>,
    /// Keys in the order of their numbers.
    keys: Vec<u64>,
}

impl KeyTable {
    fn find_slot(&self, key: u64) -> usize {
        // Keys of grams are not hashes, so all keys are hashed here.
        let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        int::to_usize(spread >> 32) & self.slots.len().wrapping_sub(1)
    }

    /// Returns the number of a key, and whether the key is new.
    fn intern_key(&mut self, key: u64) -> (u32, bool) {
        if self.keys.len() * 2 >= self.slots.len() {
            self.grow_slots();
        }
        let mut at = self.find_slot(key);
        loop {
            let slot = self.slots.get(at).copied().unwrap_or(0);
            let Some(number) = slot.checked_sub(1) else { break };
            if self.keys.get(int::to_usize(u64::from(number))) == Some(&key) {
                return (number, false);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        let number = int::to_u32(self.keys.len());
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = number + 1;
        }
        self.keys.push(key);
        (number, true)
    }

    fn grow_slots(&mut self) {
        let size = (self.slots.len() * 2).max(8_192);
        self.slots = alloc::vec![0; size];
        for (number, key) in (1u32..).zip(&self.keys) {
            let mut at = self.find_slot(*key);
            while self.slots.get(at).is_some_and(|slot| *slot != 0) {
                at = (at + 1) & (size - 1);
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = number;
            }
        }
    }

    fn clear(&mut self) {
        self.slots.fill(0);
        self.keys.clear();
    }
}

/// The grams of the current unit and of finished units.
#[derive(Debug, Default)]
struct UnitGrams {
    /// The current unit; `None`: no unit was entered.
    unit: Option<u64>,
    /// One bit for each gram of ASCII, in words of 64 bits; set: the current unit has the gram.
    ascii: Vec<u64>,
    /// Indexes of the words of `ascii` that are not 0.
    touched: Vec<u64>,
    /// All other grams of the current unit.
    others: KeyTable,
    /// Finished units with the keys of their grams in order; `None`: too many grams.
    finished_units: Vec<(u64, Option<Vec<u64>>)>,
    /// Whether a unit may have any number of grams.
    keeps_all: bool,
}

impl UnitGrams {
    fn enter_unit(&mut self, unit: u64) {
        if self.unit == Some(unit) {
            return;
        }
        self.finish_unit();
        self.unit = Some(unit);
        if self.ascii.is_empty() {
            self.ascii = alloc::vec![0; 1 << 15];
        }
    }

    fn add_text(&mut self, text: &str) {
        let mut bytes = text.bytes().map(|byte| byte.to_ascii_lowercase());
        let (Some(first), Some(second)) = (bytes.next(), bytes.next()) else { return };
        let mut window = (u32::from(first) << 8) | u32::from(second);
        for byte in bytes {
            window = ((window << 8) | u32::from(byte)) & 0xFF_FFFF;
            if window & 0x80_8080 == 0 {
                let code = (window & 0x7f) | ((window >> 1) & 0x3f80) | ((window >> 2) & 0x1f_c000);
                if let Some(word) = self.ascii.get_mut(int::to_usize(u64::from(code >> 6))) {
                    if *word == 0 {
                        self.touched.push(u64::from(code >> 6));
                    }
                    *word |= 1 << (code & 63);
                }
            } else {
                self.others.intern_key(FIRST_GRAM_KEY + u64::from(window));
            }
        }
    }

    /// Finishes the current unit and sorts the keys of its grams.
    fn finish_unit(&mut self) {
        let Some(unit) = self.unit.take() else { return };
        let mut grams = Vec::with_capacity(4_096);
        radix_sort::sort_numbers(&mut self.touched);
        for index in self.touched.drain(..) {
            let Some(word) = self.ascii.get_mut(int::to_usize(index)) else { continue };
            let mut bits = core::mem::take(word);
            while bits != 0 {
                let code = index * 64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let [a, b, c] = [code >> 14, (code >> 7) & 0x7f, code & 0x7f];
                grams.push(FIRST_GRAM_KEY + ((a << 16) | (b << 8) | c));
            }
        }
        if !self.others.keys.is_empty() {
            grams.extend_from_slice(&self.others.keys);
            radix_sort::sort_numbers(&mut grams);
            self.others.clear();
        }
        let kept = self.keeps_all || grams.len() <= UNIT_GRAMS_MAX;
        self.finished_units.push((unit, kept.then_some(grams)));
    }

    /// Writes the list of units of each gram, then the list of units with too many grams.
    fn write_lists(&self, writer: &mut BlockWriter<'_>) {
        let mut rests: Vec<(u64, &[u64])> = self
            .finished_units
            .iter()
            .filter_map(|(unit, grams)| Some((*unit, grams.as_deref()?)))
            .collect();
        let mut units = Vec::new();
        let mut counts = Vec::new();
        while let Some(key) = rests.iter().filter_map(|(_, rest)| rest.first()).min().copied() {
            units.clear();
            for (unit, rest) in &mut rests {
                if let Some((first, later)) = rest.split_first()
                    && *first == key
                {
                    units.push(*unit);
                    *rest = later;
                }
            }
            counts.resize(units.len(), 1);
            writer.push(key, &units, &counts, &[]);
        }
        let every: Vec<u64> = self
            .finished_units
            .iter()
            .filter(|(_, grams)| grams.is_none())
            .map(|(unit, _)| *unit)
            .collect();
        if !every.is_empty() {
            writer.push(EVERY_GRAM_KEY, &every, &alloc::vec![1; every.len()], &[]);
        }
    }
}

/// A collector for the postings of consecutive documents.
#[derive(Debug)]
pub struct PostingCollector {
    /// Lengths of the closed documents.
    pub lengths: DocumentLengths,
    keys: KeyTable,
    /// For each occurrence: the number of the key; and in one number the document, counted from the
    /// first, and the position.
    occurrences: Vec<(u32, u32)>,
    grams: UnitGrams,
}

impl PostingCollector {
    /// Starts empty; `first` is the number of the first document.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self {
            lengths: DocumentLengths { first, bytes: Vec::new() },
            keys: KeyTable::default(),
            occurrences: Vec::new(),
            grams: UnitGrams::default(),
        }
    }

    /// Starts again with another first document; the memory is reused.
    pub fn reset(&mut self, first: u64) {
        self.lengths.first = first;
        self.lengths.bytes.clear();
        if !self.keys.keys.is_empty() {
            self.keys.clear();
        }
        self.occurrences.clear();
        self.grams.finish_unit();
        self.grams.finished_units.clear();
    }

    /// Returns the number of the current document, which is not closed yet.
    #[must_use]
    pub fn next_document(&self) -> u64 {
        self.lengths.first + int::to_u64(self.lengths.bytes.len())
    }

    /// Starts a unit for the current document and later documents; no effect if `unit` is already
    /// the current unit.
    pub fn enter_unit(&mut self, unit: u64) {
        self.grams.enter_unit(unit);
    }

    /// Adds the grams of a text to the current unit, which must have been entered, with ASCII
    /// letters in lower case.
    pub fn add_grams(&mut self, text: &str) {
        self.grams.add_text(text);
    }

    /// Adds an occurrence of a term to the current document.
    pub fn add_term(&mut self, term: &[u8], position: u32) {
        let document = int::to_u32(self.lengths.bytes.len()) << POSITION_BITS;
        let (number, _) = self.keys.intern_key(term_key(term));
        let position = u64::from(position).min(POSITION_MAX);
        self.occurrences.push((number, document | int::to_u32(int::to_usize(position))));
    }

    /// Closes the current document, which has `positions` positions.
    pub fn close_document(&mut self, positions: u32) {
        let length = u64::from(positions).min(POSITION_MAX + 1);
        self.lengths.bytes.push(quantize_length(length));
    }

    /// Removes the limit on the grams of a unit, also after [`Self::reset`].
    pub fn keep_all_grams(&mut self) {
        self.grams.keeps_all = true;
    }

    /// Returns whether the blocks of the segment are expected to fit into its root. An occurrence
    /// takes about a byte.
    pub fn is_small(&self) -> bool {
        self.occurrences.len() < SMALL_OCCURRENCES_MAX
    }

    /// Builds the blocks of a segment that covers `range`, in the order of the keys. A block is
    /// closed at `target` bytes.
    #[inline(never)]
    pub fn build_blocks(&mut self, range: SegmentRange, target: usize) -> Vec<(u64, Vec<u8>)> {
        self.grams.finish_unit();
        let numbered = self.keys.keys.iter().zip(0u64..);
        let mut order: Vec<u64> = numbered.map(|(key, n)| (key << NUMBER_BITS) | n).collect();
        radix_sort::sort_numbers(&mut order);
        let (starts, sorted) = self.order_by_key();
        let mut writer = BlockWriter::new(range, &self.lengths, target);
        let mut list = PostingListBuilder::default();
        for position in order {
            let key = position >> NUMBER_BITS;
            let number = int::to_usize(position & ((1 << NUMBER_BITS) - 1));
            let from = starts.get(number).copied().unwrap_or(0);
            let to = starts.get(number + 1).copied().unwrap_or(from);
            for position in sorted.get(from..to).unwrap_or_default() {
                let document = self.lengths.first + u64::from(*position >> POSITION_BITS);
                let position = u64::from(*position) & POSITION_MAX;
                list.add_occurrence(key, document, position, &mut writer);
            }
            list.flush(key, &mut writer);
        }
        self.grams.write_lists(&mut writer);
        writer.finish()
    }

    /// Orders the occurrences by the number of the key. Returns the index at which those of each
    /// key begin, and the document with the position of each occurrence.
    fn order_by_key(&self) -> (Vec<usize>, Vec<u32>) {
        let mut starts = alloc::vec![0usize; self.keys.keys.len() + 1];
        for (number, _) in &self.occurrences {
            if let Some(start) = starts.get_mut(int::to_usize(u64::from(*number)) + 1) {
                *start += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut sorted = alloc::vec![0u32; self.occurrences.len()];
        for (number, position) in &self.occurrences {
            if let Some(at) = next.get_mut(int::to_usize(u64::from(*number)))
                && let Some(slot) = sorted.get_mut(*at)
            {
                *slot = *position;
                *at += 1;
            }
        }
        (starts, sorted)
    }
}
