//! Hits in messages and summaries, as `execute` finds them and `render_hits` reads them.

use alloc::vec::Vec;

use super::cursor::ScanCursor;
use crate::search::corpus::Corpus;
use lcm_text::types::api::Timestamp;

/// A message or summary that matches the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrepHit {
    /// Index into the list of searched conversations.
    pub(super) conversation_number: usize,
    pub(super) corpus: Corpus,
    pub(super) document: u64,
    /// Score with 16 fractional bits; `None` for a match of a regular expression, and for a vector
    /// hit before fusion.
    pub(super) score: Option<u64>,
    /// Sort key: hits with the greatest rank come first.
    pub(super) rank: u64,
    pub(super) time: Timestamp,
}

/// Hits of a search, with their count.
#[derive(Debug, Default)]
pub(super) struct FoundHits {
    /// Hits in order, at most `limit`.
    pub(super) hits: Vec<GrepHit>,
    /// Number of matches, including those beyond `limit`; on a page of a longer scan, only the
    /// matches of the page.
    pub(super) total: u64,
    /// Whether some words were ignored, or some phrases not checked for word order, because too
    /// many documents contain their words.
    pub(super) is_cut: bool,
    /// Cursor at which the next page begins: the first match beyond `limit`, or else the first
    /// document that was not scanned. `None`: the answer is complete.
    pub(super) next_cursor: Option<ScanCursor>,
    /// For a page of a longer scan: the cursor of each hit, in order. Empty for any other answer.
    pub(super) hit_cursors: Vec<ScanCursor>,
    /// Notes about vectors, and about messages that were indexed only in part.
    pub(super) notes: Vec<&'static str>,
}

impl GrepHit {
    /// Builds the hit of a regular expression match in the conversation and corpus of `of`.
    pub(super) const fn from_match(of: ScanCursor, document: u64, time: Timestamp) -> Self {
        Self {
            conversation_number: of.conversation_number,
            corpus: of.corpus,
            document,
            score: None,
            rank: time,
            time,
        }
    }

    /// Returns the cursor of a scan that begins at this hit.
    pub(super) const fn scan_cursor(&self) -> ScanCursor {
        ScanCursor {
            conversation_number: self.conversation_number,
            corpus: self.corpus,
            document: self.document,
        }
    }
}

impl FoundHits {
    /// Adds a note, at most once.
    pub(super) fn add_note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
