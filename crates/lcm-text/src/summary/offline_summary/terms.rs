//! Assigns numbers to the terms of a source and counts how rare each term is.
//!
//! Input: excerpts in order. Output: the terms of each excerpt with their values for the selection.

use alloc::vec::Vec;
use core::hash::BuildHasherDefault;

use hashbrown::HashMap;

use super::{
    cues,
    term_hash::{TermHasher, fnv_hash},
    term_scanner::{TermClass, TermOccurrence, scan_terms},
};

/// Counts of one term in the whole source.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceTerm<'a> {
    /// The first occurrence with class `class`, as written.
    pub(super) text: &'a str,
    /// Class of the occurrence with the greatest weight.
    pub(super) class: TermClass,
    /// Cues of the term.
    pub(super) cues: u32,
    /// Number of excerpts with the term.
    pub(super) count: u32,
    /// Number of messages with the term, or of excerpts in a source of few messages.
    pub(super) units: u32,
    /// Whether the term also occurs in lower case; a capitalised occurrence is then no name.
    occurs_as_word: bool,
    /// Index of the message, or the excerpt, that `units` counted last; `u32::MAX`: none yet.
    last_unit: u32,
    /// Excerpt of the last occurrence; `u32::MAX`: no occurrence yet.
    last_piece: u32,
}

impl SourceTerm<'_> {
    /// Returns the weight of an occurrence of class `class`.
    pub(super) fn weight_as(&self, class: TermClass) -> u32 {
        if self.occurs_as_word && class == TermClass::Name {
            TermClass::Word.base_weight()
        } else {
            class.base_weight()
        }
    }

    /// Returns whether the term is a name that a footer may list.
    pub(super) fn is_name(&self) -> bool {
        self.class == TermClass::Identifier
            || (self.class == TermClass::Name && !self.occurs_as_word)
    }
}

/// All terms of a source, numbered in the order of their first occurrence.
#[derive(Debug)]
pub(super) struct TermTable<'a> {
    list: Vec<SourceTerm<'a>>,
    // Only looked up, never iterated, so the order of the map has no effect.
    ids: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
    cues: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
}

/// One term of one excerpt.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermUse {
    /// Number of the term.
    pub(super) term: u32,
    /// Class of this occurrence.
    pub(super) class: TermClass,
    /// Value of covering the term; 0 until [`TermTable::coverage_value`] sets it.
    pub(super) value: u32,
}

/// The indexes under which the terms of an excerpt are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExcerptPosition {
    /// Index of the excerpt; must not decrease.
    pub(super) piece: u32,
    /// Index of the message, or of the excerpt, by which rarity is counted; must not decrease.
    pub(super) unit: u32,
}

impl<'a> TermTable<'a> {
    /// Creates an empty table.
    pub(super) fn new() -> Self {
        let cues =
            cues::iter_cue_words().map(|(word, cues)| (fnv_hash(word.as_bytes()), cues)).collect();
        Self { list: Vec::new(), ids: HashMap::default(), cues }
    }

    /// Returns the term with this number.
    pub(super) fn get(&self, term: u32) -> Option<&SourceTerm<'a>> {
        usize::try_from(term).ok().and_then(|term| self.list.get(term))
    }

    /// Returns the terms in the order of their first occurrence.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SourceTerm<'a>> {
        self.list.iter()
    }

    /// Returns the number of terms.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the value of covering this term: weight times rarity. All excerpts must have been
    /// added.
    pub(super) fn coverage_value(&self, found: &TermUse) -> u32 {
        self.get(found.term)
            .map_or(0, |term| term.weight_as(found.class) * rarity_weight(term.units))
    }

    /// Appends the distinct terms of an excerpt to `uses`, except short words; returns the cues of
    /// all its words.
    pub(super) fn add_excerpt(
        &mut self,
        text: &'a str,
        position: ExcerptPosition,
        uses: &mut Vec<TermUse>,
    ) -> u32 {
        let mut cues = 0;
        scan_terms(text, &mut |word| cues |= self.intern_term(word, position, uses));
        cues
    }

    /// Counts one occurrence; returns the cues of the term.
    fn intern_term(
        &mut self,
        word: TermOccurrence<'a>,
        position: ExcerptPosition,
        uses: &mut Vec<TermUse>,
    ) -> u32 {
        let TermOccurrence { text, key, class, is_lowercase } = word;
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
                occurs_as_word: is_lowercase,
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
        term.occurs_as_word |= is_lowercase;
        if term.last_unit != position.unit {
            term.last_unit = position.unit;
            term.units = term.units.saturating_add(1);
        }
        if term.last_piece != position.piece {
            term.last_piece = position.piece;
            term.count = term.count.saturating_add(1);
            if class.base_weight() > 0 {
                uses.push(TermUse { term: id, class, value: 0 });
            }
        }
        term.cues
    }
}

/// Returns the rarity factor of a term that occurs in `units` messages, or excerpts.
const fn rarity_weight(units: u32) -> u32 {
    match units {
        0 | 1 => 4,
        2 => 3,
        3 | 4 => 2,
        5..=8 => 1,
        _ => 0,
    }
}
