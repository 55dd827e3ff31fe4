//! One walk over a payload: its size, its beginning and end, its hash, and where to begin reading.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::{
    int,
    json::{self, StringPiece},
};

/// Bytes of the beginning that an exploration looks at.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// Bytes of the end that it looks at.
const TAIL_BYTES_MAX: usize = 16 << 10;
/// Bytes between two marks: about a chunk of the store.
const SEEK_POINT_BYTES: u32 = 192 << 10;
/// Bytes that are looked at together.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// A point to begin reading at.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SeekPoint {
    /// Offset from the begin of the payload, as it is written.
    pub at: u32,
    /// Decoded bytes and line ends before it.
    pub bytes: u32,
    /// Line ends before this point.
    pub line_ends: u32,
}

/// What a walk found out.
#[derive(Debug, Default)]
pub(super) struct PayloadMeasure {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) sha256: [u8; 32],
    /// The beginning, or all of it.
    pub(super) head: String,
    /// The end; empty when the head is all of it.
    pub(super) tail: String,
    pub(super) seek_points: Vec<SeekPoint>,
}

/// Hands out pieces of a text as it is written, decoded, each with its offset there, as long as
/// `take` says so. `is_text`: it is the inside of a JSON string.
pub fn walk(written: &str, is_text: bool, take: &mut dyn FnMut(&str, usize) -> bool) {
    let mut at = 0;
    while let Some(rest) = written.get(at..).filter(|rest| !rest.is_empty()) {
        let whole = (StringPiece::Plain(rest), rest.len());
        let (piece, used) = if is_text { json::first_piece(rest).unwrap_or(whole) } else { whole };
        let going = match piece {
            StringPiece::Plain(plain) => {
                split_pieces(plain).all(|(from, piece)| take(piece, at + from))
            }
            StringPiece::Char(c) => take(c.encode_utf8(&mut [0; 4]), at),
            StringPiece::LoneSurrogate(_) => take("\u{fffd}", at),
        };
        if !going {
            return;
        }
        at += used;
    }
}

/// A text in pieces that are not too long to be looked at together.
fn split_pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let mut end = PIECE_BYTES_MAX.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let piece = (at, rest.get(..end)?);
        at += end;
        Some(piece)
    })
}

/// Walks over a payload.
pub(super) fn measure_payload(written: &str, is_text: bool) -> PayloadMeasure {
    let mut measured = PayloadMeasure::default();
    let mut hasher = Sha256::new();
    let (mut bytes, mut line_ends, mut marked) = (0u32, 0u32, 0u32);
    let mut ends_line = true;
    walk(written, is_text, &mut |piece, at| {
        if bytes - marked >= SEEK_POINT_BYTES {
            measured.seek_points.push(SeekPoint { at: int::to_u32(at), bytes, line_ends });
            marked = bytes;
        }
        hasher.update(piece.as_bytes());
        bytes = bytes.saturating_add(int::to_u32(piece.len()));
        let ends = piece.bytes().filter(|byte| *byte == b'\n').count();
        line_ends = line_ends.saturating_add(int::to_u32(ends));
        ends_line = piece.ends_with('\n');
        if measured.head.len() < HEAD_BYTES_MAX {
            measured.head.push_str(piece);
        }
        let tail = &mut measured.tail;
        tail.push_str(piece);
        if tail.len() > 4 * TAIL_BYTES_MAX {
            keep_tail(tail);
        }
        true
    });
    keep_tail(&mut measured.tail);
    measured.bytes = u64::from(bytes);
    measured.lines = u64::from(line_ends) + u64::from(!ends_line);
    measured.sha256 = hasher.finalize().into();
    if int::to_u64(measured.head.len()) == measured.bytes {
        measured.tail.clear();
    }
    measured
}

/// Leaves the end of a text.
fn keep_tail(tail: &mut String) {
    let mut from = tail.len().saturating_sub(TAIL_BYTES_MAX);
    while !tail.is_char_boundary(from) {
        from += 1;
    }
    tail.drain(..from);
}
