//! Numbers the terms of a source and counts how rare they are.

use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

use super::{
    cues,
    term_scanner::{TermOccurrence, scan_terms},
};

/// What kind of term it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TermClass {
    /// Path, mixed letters and digits, inner capitals, dots or underscores.
    Identifier,
    /// Two digits and more.
    Number,
    /// Capitalised inside a sentence, or all capitals.
    Name,
    /// Four letters and more.
    Word,
    /// Two neighbouring ideographs, or three letters of a script that is written without spaces.
    Gram,
    /// A shorter word: only a cue.
    ShortWord,
}

impl TermClass {
    /// What one occurrence is worth before rarity.
    pub(super) const fn base_weight(self) -> u32 {
        match self {
            Self::Identifier => 10,
            Self::Number | Self::Name => 7,
            Self::Gram => 2,
            Self::Word => 1,
            Self::ShortWord => 0,
        }
    }
}

/// What is known of one term over the whole source.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceTerm<'a> {
    /// Its first occurrence of its class.
    pub(super) text: &'a str,
    /// The class of its weightiest occurrence.
    pub(super) class: TermClass,
    /// What it says about a piece.
    pub(super) cues: u16,
    /// Occurrences, at most one per piece.
    pub(super) count: u32,
    /// Units (messages, or pieces) it occurs in.
    pub(super) units: u32,
    /// Whether it also occurs as an ordinary word, so that capitals mean nothing.
    occurs_as_word: bool,
    last_unit: u32,
    last_piece: u32,
}

impl SourceTerm<'_> {
    /// What the term is worth where it stands as `class`.
    pub(super) fn weight_as(&self, class: TermClass) -> u32 {
        if self.occurs_as_word && class == TermClass::Name {
            TermClass::Word.base_weight()
        } else {
            class.base_weight()
        }
    }

    /// Whether it is worth naming by itself.
    pub(super) fn is_name(&self) -> bool {
        self.class == TermClass::Identifier
            || (self.class == TermClass::Name && !self.occurs_as_word)
    }
}

/// All terms of a source, numbered in the order of their first occurrence.
#[derive(Debug)]
pub(super) struct TermTable<'a> {
    list: Vec<SourceTerm<'a>>,
    // Only looked up, never iterated, so their order cannot show.
    ids: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
    cues: HashMap<u64, u16, BuildHasherDefault<TermHasher>>,
}

/// One term of one piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermUse {
    /// Number of the term.
    pub(super) term: u32,
    /// Its class here.
    pub(super) class: TermClass,
    /// What covering it is worth; 0 until [`Terms::value`] says it.
    pub(super) value: u32,
}

/// The piece whose terms are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExcerptPosition {
    /// Number of the piece, rising.
    pub(super) piece: u32,
    /// Number of the unit in which rarity is counted, rising.
    pub(super) unit: u32,
}

impl<'a> TermTable<'a> {
    /// No terms yet.
    pub(super) fn new() -> Self {
        let cues =
            cues::iter_cue_words().map(|(word, cues)| (fnv_hash(word.as_bytes()), cues)).collect();
        Self { list: Vec::new(), ids: HashMap::default(), cues }
    }

    /// The term of this number.
    pub(super) fn get(&self, term: u32) -> Option<&SourceTerm<'a>> {
        usize::try_from(term).ok().and_then(|term| self.list.get(term))
    }

    /// The terms in the order of their first occurrence.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SourceTerm<'a>> {
        self.list.iter()
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// What covering this term with this use is worth, once all pieces are read.
    pub(super) fn coverage_value(&self, found: &TermUse) -> u32 {
        self.get(found.term)
            .map_or(0, |term| term.weight_as(found.class) * rarity_weight(term.units))
    }

    /// Appends the distinct terms of a piece to `uses` and returns what they say about it.
    pub(super) fn add_excerpt(
        &mut self,
        text: &'a str,
        place: ExcerptPosition,
        uses: &mut Vec<TermUse>,
    ) -> u16 {
        let mut cues = 0;
        scan_terms(text, &mut |word| cues |= self.intern_term(word, place, uses));
        cues
    }

    /// Counts one occurrence; returns what the term says about its piece.
    fn intern_term(
        &mut self,
        word: TermOccurrence<'a>,
        place: ExcerptPosition,
        uses: &mut Vec<TermUse>,
    ) -> u16 {
        let TermOccurrence { text, key, class, is_lowercase: plain } = word;
        let fresh = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry(key).or_insert(fresh);
        if id == fresh {
            let cues = self.cues.get(&key).copied().unwrap_or(0);
            let (last_unit, last_piece) = (u32::MAX, u32::MAX);
            let (count, units) = (0, 0);
            self.list.push(SourceTerm {
                text,
                class,
                cues,
                count,
                units,
                occurs_as_word: plain,
                last_unit,
                last_piece,
            });
        }
        let Some(term) = usize::try_from(id).ok().and_then(|id| self.list.get_mut(id)) else {
            return 0;
        };
        if class.base_weight() > term.class.base_weight() {
            (term.class, term.text) = (class, text);
        }
        term.occurs_as_word |= plain;
        if term.last_unit != place.unit {
            term.last_unit = place.unit;
            term.units = term.units.saturating_add(1);
        }
        if term.last_piece != place.piece {
            term.last_piece = place.piece;
            term.count = term.count.saturating_add(1);
            if class.base_weight() > 0 {
                uses.push(TermUse { term: id, class, value: 0 });
            }
        }
        term.cues
    }
}

/// How much a term counts that occurs in so many messages.
const fn rarity_weight(units: u32) -> u32 {
    match units {
        0 | 1 => 4,
        2 => 3,
        3 | 4 => 2,
        5..=8 => 1,
        _ => 0,
    }
}

/// FNV-1a over the lower-case letters of a term, so that the numbering is the same everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermHash(u64);

impl TermHash {
    /// The key of no letters.
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The key with one more byte.
    pub(super) const fn with_byte(self, byte: u8) -> Self {
        #[expect(clippy::as_conversions, reason = "lossless; `From` is not const")]
        let byte = byte as u64;
        Self((self.0 ^ byte).wrapping_mul(0x0100_0000_01b3))
    }

    /// The number that stands for the term.
    pub(super) const fn finish(self) -> u64 {
        self.0
    }
}

/// The key of these bytes.
pub fn fnv_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(TermHash::new(), |key, byte| key.with_byte(*byte)).finish()
}

/// The key of these bytes of ASCII in lower case.
pub(crate) fn fnv_hash_lowercase<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(TermHash::new(), |key, byte| key.with_byte(byte.to_ascii_lowercase())).finish()
}

/// Hashes keys that are hashes already.
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
        // The table takes bits from both ends; FNV leaves the upper ones weak.
        self.0 = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
