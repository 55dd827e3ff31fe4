//! Reads of the text of a large payload, chunk by chunk from any seek point.
//!
//! In: a payload record and a seek point. Out: the decoded text in pieces, passed to a function.
//! [`crate::recall`] and [`crate::search`] read and search payloads with it.

use crate::storage::{history::MessageHistory, pack::RawText, store_session::StoreSession};
use alloc::string::String;
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    message::large_payload::{self, PayloadRecord, SeekPoint},
};

/// Most bytes of one JSON escape, which the end of a chunk may split: two `\u` escapes of a pair.
const ESCAPE_BYTES_MAX: usize = 12;

/// The part of a payload's text to read.
pub(crate) struct PayloadPart<'a> {
    pub(crate) file: &'a PayloadRecord,
    /// Seek point at which the part begins.
    pub(crate) start: SeekPoint,
    /// Bytes of the message's raw text after which no further chunk is read.
    pub(crate) written_bytes_max: u64,
}

/// Passes the decoded text of a part of a payload to `take`, piece by piece. Stops when `take`
/// returns false, or when [`PayloadPart::written_bytes_max`] bytes were read. Returns the bytes of
/// raw text that were read, and whether the payload was passed to its end. The end does not count
/// if `take` returned false for a piece.
///
/// # Errors
///
/// Errors of the reads of [`MessageHistory`].
pub(crate) fn for_each_text(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    part: &PayloadPart<'_>,
    take: &mut dyn FnMut(&str) -> bool,
) -> Result<(u64, bool)> {
    let file = part.file;
    let from = u64::from(file.place.start) + u64::from(part.start.at);
    let to = u64::from(file.place.start) + u64::from(file.place.length);
    let mut buffer = String::new();
    let (mut read, mut is_complete) = (0, false);
    for_each_message_chunk(session, history, file.seq, (from, to), &mut |piece, is_last| {
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
        is_wanted && read < part.written_bytes_max
    })?;
    Ok((read, is_complete))
}

/// Passes a range of the raw text of message `seq` to `take`, chunk by chunk: from byte `from` to
/// before byte `to`. The second argument of `take` says whether the chunk is the last. Stops when
/// `take` returns false.
///
/// # Errors
///
/// `corrupt`: the message does not exist, or the range does not lie on character boundaries; errors
/// of the reads of [`MessageHistory`].
pub(crate) fn for_each_message_chunk(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    (from, to): (u64, u64),
    take: &mut dyn FnMut(&str, bool) -> bool,
) -> Result<()> {
    let damaged = || {
        Error::corrupt_store(format_args!(
            "the stored place of a payload does not fit message {seq}"
        ))
    };
    if seq > history.head.messages {
        return Err(damaged());
    }
    let placed = history.read_messages(session, seq, seq)?;
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
                    let chunk = history.read_chunk(session, sha256, number, *bytes)?;
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
