//! Upper bounds of the bytes that messages take in packs.
//!
//! In: length of a text and its parts. Out: bytes. The cut of a batch to one commit and the pack
//! builder use these bounds.

use crate::storage::pack::RawText;
use lcm_text::{base::limits, message::Part};

/// Most bytes that a stored message takes beside its text and parts.
const STORED_FIELDS_BYTES_MAX: usize = 112;
/// Most bytes that the length of one chunk takes in a record.
const CHUNK_LENGTH_BYTES_MAX: usize = 3;

/// Returns the most bytes that storing a text of `text` bytes with its parts takes. A text too
/// large for a pack also takes chunks and the record of an upload.
pub(super) fn estimate_text_bytes(text: usize, parts: &[Part]) -> usize {
    if text <= limits::PACK_BYTES_MAX {
        return estimate_stored_bytes(text, 0, parts);
    }
    // The pack and the record of the upload both list the chunks.
    let chunks = text / (limits::CHUNK_BYTES_MAX - 4) + 1;
    text + estimate_stored_bytes(0, 2 * chunks, parts)
}

/// Returns the most bytes that a stored text and its parts take in a pack.
pub(super) fn estimate_raw_bytes(raw: &RawText, parts: &[Part]) -> usize {
    match raw {
        RawText::Inline(text) => estimate_stored_bytes(text.len(), 0, parts),
        RawText::Chunked { chunks, .. } => estimate_stored_bytes(0, chunks.len(), parts),
    }
}

/// Returns the most bytes that a message takes in its pack: `text` bytes of text, or the lengths
/// of `chunks` chunks.
pub(super) fn estimate_stored_bytes(text: usize, chunks: usize, parts: &[Part]) -> usize {
    let parts: usize = parts.iter().map(estimate_part_bytes).sum();
    STORED_FIELDS_BYTES_MAX + text + chunks * CHUNK_LENGTH_BYTES_MAX + parts
}

fn estimate_part_bytes(part: &Part) -> usize {
    let slots = part.all_spans();
    // One byte for the variant, and one for each slot. A result has a flag in place of its last
    // slot.
    let spans: usize = slots
        .iter()
        .flatten()
        .map(|span| count_varint_bytes(span.start) + count_varint_bytes(span.length))
        .sum();
    1 + slots.len() + spans
}

/// Returns the bytes that a number takes in a record, with seven bits in each byte.
fn count_varint_bytes(number: u32) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}
