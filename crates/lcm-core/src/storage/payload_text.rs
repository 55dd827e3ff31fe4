//! The text of a large payload, read chunk by chunk from any seek point.

use crate::storage::{history::MessageHistory, pack::RawText, store_session::StoreSession};
use alloc::string::String;
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    message::large_payload::{self, PayloadRecord, SeekPoint},
};

/// Most bytes at the end of a chunk that may be part of a JSON escape.
const ESCAPE_BYTES_MAX: usize = 12;

/// Passes the text of a payload to `take`, piece by piece from a seek point on, while `take`
/// returns true and about `written_max` bytes of JSON are read. Returns the bytes read, and
/// whether the payload ended.
///
/// # Errors
///
/// Errors of the reads of [`MessageHistory`].
pub(crate) fn for_each_text(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    file: &PayloadRecord,
    mark: SeekPoint,
    written_max: u64,
    take: &mut dyn FnMut(&str) -> bool,
) -> Result<(u64, bool)> {
    let from = u64::from(file.place.start) + u64::from(mark.at);
    let to = u64::from(file.place.start) + u64::from(file.place.length);
    let mut buffer = String::new();
    let (mut read, mut is_complete) = (0, false);
    for_each_message_chunk(reader, history, file.seq, (from, to), &mut |piece, is_last| {
        read += int::to_u64(piece.len());
        buffer.push_str(piece);
        let complete =
            if is_last { buffer.len() } else { buffer.len().saturating_sub(ESCAPE_BYTES_MAX) };
        let (mut passed, mut is_wanted) = (buffer.len(), true);
        large_payload::walk(&buffer, file.place.is_text, &mut |text, at| {
            if at >= complete {
                passed = at;
                return false;
            }
            is_wanted = take(text);
            is_wanted
        });
        buffer.drain(..passed);
        is_complete = is_last && is_wanted;
        is_wanted && read < written_max
    })?;
    Ok((read, is_complete))
}

/// Passes the text of a message between two offsets to `take`, chunk by chunk, with a flag for the
/// last chunk.
pub(crate) fn for_each_message_chunk(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    (from, to): (u64, u64),
    take: &mut dyn FnMut(&str, bool) -> bool,
) -> Result<()> {
    let damaged =
        || Error::corrupt_store(format_args!("a payload of message {seq} is not where it was"));
    if seq > history.head.messages {
        return Err(damaged());
    }
    let placed = history.read_messages(reader, seq, seq)?;
    let placed = placed.first().ok_or_else(damaged)?;
    let within = |text: &str, begin: u64| {
        let [from, to] =
            [from, to].map(|at| int::to_usize(at.saturating_sub(begin)).min(text.len()));
        text.get(from..to).map(String::from).ok_or_else(damaged)
    };
    match &placed.stored.raw {
        RawText::Inline(text) => {
            take(&within(text, 0)?, true);
        }
        RawText::Chunked { sha256, chunks } => {
            let mut begin = 0u64;
            for (number, bytes) in (0u32..).zip(chunks) {
                let end = begin + u64::from(*bytes);
                if end > from && begin < to {
                    let chunk = history.read_chunk(reader, sha256, number, *bytes)?;
                    if !take(&within(&chunk, begin)?, end >= to) {
                        return Ok(());
                    }
                }
                begin = end;
            }
        }
    }
    Ok(())
}
