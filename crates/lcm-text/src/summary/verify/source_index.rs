//! Where a piece of an answer occurs in the source.
//!
//! Both are looked at as runs of letters and digits (`lcm_loops::letters`): a piece occurs when it
//! stands there from one boundary to another. Not here: what a piece is, and what follows.

use alloc::vec::Vec;
use core::hash::BuildHasherDefault;

use hashbrown::HashMap;
pub(super) use lcm_loops::folded_text::FoldedText;

use crate::{
    base::int,
    summary::offline_summary::terms::{TermHasher, fnv_hash},
};

/// Bytes by which the places of a piece are found.
const KEY_BYTES: usize = 3;

/// A folded source that can be asked for pieces.
#[derive(Debug)]
pub(super) struct SourceTextIndex {
    folded: FoldedText,
    /// By the first bytes from a boundary on: the last such boundary, one more than its number.
    heads: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
    /// By boundary: the one before it with the same bytes.
    previous: Vec<u32>,
}

impl SourceTextIndex {
    /// Folds a source and finds its boundaries.
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

    /// Whether a folded piece occurs from one boundary to another; pieces of fewer than three
    /// bytes are looked for nowhere and held to occur.
    pub(super) fn contains_whole(&self, piece: &str) -> bool {
        self.find_at_boundary(piece, true)
    }

    /// Whether a folded piece occurs from a boundary on.
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

    /// Whether something ends here.
    fn is_end_boundary(&self, end: usize) -> bool {
        let text = self.folded.text.as_bytes();
        match text.get(end) {
            None | Some(b'.') => true,
            Some(_) => self.folded.starts.binary_search(&int::to_u32(end)).is_ok(),
        }
    }
}
