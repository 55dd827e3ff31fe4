//! Finds pieces of an answer in the source.
//!
//! Input: a source, then pieces. Output: whether the source has a piece. Source and pieces are
//! folded to letters and digits ([`lcm_loops::folded_text`]). A piece occurs if it fills the folded
//! source from one word boundary to another.

use alloc::vec::Vec;
use core::hash::BuildHasherDefault;

use hashbrown::HashMap;
pub(super) use lcm_loops::folded_text::FoldedText;

use crate::{
    base::int,
    summary::offline_summary::term_hash::{TermHasher, fnv_hash},
};

/// Number of bytes after a boundary that are hashed to the key of the boundary.
const KEY_BYTES: usize = 3;

/// An index of a folded source.
#[derive(Debug)]
pub(super) struct SourceTextIndex {
    folded: FoldedText,
    /// For each key: 1 + the index of the last boundary with the key.
    heads: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
    /// For each boundary: 1 + the index of the previous boundary with the same key; 0: none.
    previous: Vec<u32>,
}

impl SourceTextIndex {
    /// Folds a source and indexes its boundaries.
    pub(super) fn new(source: &str) -> Self {
        let folded = FoldedText::from_text(source);
        let mut heads: HashMap<u64, u32, BuildHasherDefault<TermHasher>> = HashMap::default();
        let mut previous = Vec::with_capacity(folded.starts.len());
        for (start, number) in folded.starts.iter().zip(1u32..) {
            let from = int::to_usize(u64::from(*start));
            let bytes = folded.text.as_bytes().get(from..from.saturating_add(KEY_BYTES));
            let before = bytes.and_then(|bytes| heads.insert(fnv_hash(bytes), number));
            previous.push(before.unwrap_or(0));
        }
        Self { folded, heads, previous }
    }

    /// Returns whether a folded piece occurs from boundary to boundary; always true for a piece of
    /// fewer than three bytes.
    pub(super) fn contains_whole(&self, piece: &str) -> bool {
        self.find_at_boundary(piece, true)
    }

    /// Returns whether a folded piece begins at a boundary, wherever it ends; always true for a
    /// piece of fewer than three bytes.
    pub(super) fn contains_prefix(&self, piece: &str) -> bool {
        self.find_at_boundary(piece, false)
    }

    fn find_at_boundary(&self, piece: &str, whole: bool) -> bool {
        let Some(key) = piece.as_bytes().get(..KEY_BYTES) else { return true };
        let text = self.folded.text.as_bytes();
        let mut next = self.heads.get(&fnv_hash(key)).copied().unwrap_or(0);
        while let Some(number) = next.checked_sub(1) {
            let at = int::to_usize(u64::from(number));
            let start = self.folded.starts.get(at).copied().unwrap_or(u32::MAX);
            let from = int::to_usize(u64::from(start));
            let end = from.saturating_add(piece.len());
            if text.get(from..end) == Some(piece.as_bytes())
                && (!whole || self.is_end_boundary(end))
            {
                return true;
            }
            next = self.previous.get(at).copied().unwrap_or(0);
        }
        false
    }

    /// Returns whether a word, or a part of a word that is a word by itself, ends at `end`.
    fn is_end_boundary(&self, end: usize) -> bool {
        let text = self.folded.text.as_bytes();
        match text.get(end) {
            None | Some(b'.') => true,
            Some(_) => self.folded.starts.binary_search(&int::to_u32(end)).is_ok(),
        }
    }
}
