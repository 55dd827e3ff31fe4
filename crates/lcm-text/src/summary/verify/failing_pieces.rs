//! Finds the pieces of a text that report failures.
//!
//! Input: a text. Output: byte ranges. When a long tool output is cut for a summariser, the latest
//! of these pieces that fit are kept. The other pieces are counted.

use alloc::vec::Vec;
use core::ops::Range;

use super::outcomes;

/// Returns the byte ranges of the pieces that report a failure and no success that takes the
/// failure back. A piece is a clause, or a part of at most `bytes_max` bytes of a longer clause.
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
        // The clauses of a line have no gaps between them, so their lengths give their offsets.
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

/// Returns where the piece at the beginning of `text` ends. A `text` of at most `bytes_max` bytes
/// is one piece. Otherwise the piece ends after the first `}` of these bytes. So a success in the
/// next JSON record does not take back a failure in this record. Without a `}`, the piece ends
/// after the last comma, else after the last space, else at `bytes_max`.
fn find_piece_end(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let most = text.floor_char_boundary(bytes_max).max(text.ceil_char_boundary(1));
    let piece = text.get(..most).unwrap_or(text);
    let end = piece.find('}').or(piece.rfind(',')).or(piece.rfind(' '));
    end.map_or(most, |at| at + 1)
}
