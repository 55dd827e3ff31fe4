//! Finds the pieces of a text that report failures.
//!
//! Input: a text. Output: byte ranges. Long tool outputs keep these pieces when they are cut.

use alloc::vec::Vec;
use core::ops::Range;

use super::outcomes;

/// Returns the ranges that report failures without taking them back: clauses, and of a clause over
/// `bytes_max` its pieces of at most so many bytes.
pub(crate) fn find_failing_pieces(text: &str, bytes_max: usize) -> Vec<Range<usize>> {
    let lexicon = outcomes::OutcomeLexicon::new();
    let mut keys = Vec::new();
    let mut fails = |piece: &str| {
        keys.clear();
        lexicon.read_clause(piece, &mut keys).is_failure()
    };
    let mut found = Vec::new();
    let mut line_from = 0;
    for line in text.split_inclusive('\n') {
        // Clauses follow one another without a gap.
        let mut from = line_from;
        outcomes::for_each_clause(line, &mut |clause, _| {
            let end = from + clause.len();
            while from < end {
                let rest = text.get(from..end).unwrap_or("");
                let piece = rest.get(..find_piece_end(rest, bytes_max)).unwrap_or(rest);
                if fails(piece) {
                    found.push(from..from + piece.len());
                }
                from += piece.len();
            }
        });
        line_from += line.len();
    }
    found
}

/// Returns where a piece of at most `bytes_max` bytes ends. A piece ends after a JSON record, so
/// that a success in the next record does not take back a failure in this one; else after a value
/// or a word.
fn find_piece_end(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let most = text.floor_char_boundary(bytes_max).max(text.ceil_char_boundary(1));
    let piece = text.get(..most).unwrap_or(text);
    let end = piece.find('}').or(piece.rfind(',')).or(piece.rfind(' '));
    end.map_or(most, |at| at + 1)
}
