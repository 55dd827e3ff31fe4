//! Measures a payload in one pass: size, beginning, end, hash and seek points.
//!
//! In: a payload as written in its message. Out: values of the decoded text, for the record and the
//! outline of the payload. `lcm-core` reads ranges of stored payloads.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::{
    int,
    json::{self, StringPiece},
};

/// Bytes from which the beginning for an outline takes no further piece; the beginning can be up to
/// one piece longer.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// Most bytes of the end for an outline.
const TAIL_BYTES_MAX: usize = 16 << 10;
/// Fewest decoded bytes between two seek points: the size of a chunk of the store.
const SEEK_POINT_BYTES: u32 = 192 << 10;
/// Most bytes of one piece that [`walk`] passes on.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// A point in a payload at which decoding can start.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SeekPoint {
    /// Byte offset in the payload as written.
    pub at: u32,
    /// Decoded bytes before this point.
    pub bytes: u32,
    /// Number of line ends before this point.
    pub line_ends: u32,
}

/// Measured values of a payload.
#[derive(Debug, Default)]
pub(super) struct PayloadMeasure {
    /// Bytes of the decoded text.
    pub(super) bytes: u64,
    /// Lines of the decoded text; the last line may have no line end.
    pub(super) lines: u64,
    /// SHA-256 of the decoded text.
    pub(super) sha256: [u8; 32],
    /// Beginning of the decoded text, or the whole text.
    pub(super) head: String,
    /// End of the decoded text; empty if `head` is the whole text.
    pub(super) tail: String,
    /// Seek points in order, at least [`SEEK_POINT_BYTES`] apart; none at the start.
    pub(super) seek_points: Vec<SeekPoint>,
}

/// Calls `take` with each decoded piece of a payload and the byte offset of the piece in `written`;
/// stops when `take` returns false.
///
/// If `is_text` is true, `written` is the inside of a JSON string; otherwise `written` needs no
/// decoding.
pub fn walk(written: &str, is_text: bool, take: &mut dyn FnMut(&str, usize) -> bool) {
    let mut at = 0;
    while let Some(rest) = written.get(at..).filter(|rest| !rest.is_empty()) {
        let whole = (StringPiece::Plain(rest), rest.len());
        let (piece, used) = if is_text { json::first_piece(rest).unwrap_or(whole) } else { whole };
        let wants_more = match piece {
            StringPiece::Plain(plain) => {
                split_pieces(plain).all(|(from, piece)| take(piece, at + from))
            }
            StringPiece::Char(c) => take(c.encode_utf8(&mut [0; 4]), at),
            StringPiece::LoneSurrogate(_) => take("\u{fffd}", at),
        };
        if !wants_more {
            return;
        }
        at += used;
    }
}

/// Splits a text into pieces of at most [`PIECE_BYTES_MAX`] bytes, each with its byte offset.
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

/// Measures a payload; `written` and `is_text` are as in [`walk`].
pub(super) fn measure_payload(written: &str, is_text: bool) -> PayloadMeasure {
    let mut measured = PayloadMeasure::default();
    let mut hasher = Sha256::new();
    let (mut bytes, mut line_ends, mut seek_bytes) = (0u32, 0u32, 0u32);
    let mut ends_line = true;
    walk(written, is_text, &mut |piece, at| {
        if bytes - seek_bytes >= SEEK_POINT_BYTES {
            measured.seek_points.push(SeekPoint { at: int::to_u32(at), bytes, line_ends });
            seek_bytes = bytes;
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

/// Shortens a text to at most its last [`TAIL_BYTES_MAX`] bytes, in whole characters.
fn keep_tail(tail: &mut String) {
    let mut from = tail.len().saturating_sub(TAIL_BYTES_MAX);
    while !tail.is_char_boundary(from) {
        from += 1;
    }
    tail.drain(..from);
}
