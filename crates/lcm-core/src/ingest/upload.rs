//! Staging: a large text is uploaded piece by piece, with one bounded commit for each new piece.
//!
//! In: a piece and its offset. Out: the offset of the next piece. The engine and the import of
//! `admin` call [`stage`].
//!
//! The pieces are the chunks that the message refers to later; nothing is copied. A repeated piece
//! changes nothing. Another text at the same offset replaces all pieces from the offset on. Once a
//! message refers to the upload, the upload is final and never changes.

use alloc::string::String;

use crate::storage::{
    call::Call,
    changes::Changes,
    head::{JournalAction, LoadedHead},
    record_key::RecordReads,
    records::upload::Upload,
    session as session_rules,
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        hash, int, limits,
    },
    types::api::UploadChunk,
};

use super::{
    append_options::{EXTRA_ARGUMENT, parse_extra_fields},
    commit::join_family,
};

/// Stores one piece of a large text and returns the offset of the next piece.
///
/// # Errors
///
/// `invalid-input`: not a SHA-256, an invalid or unknown option, an empty or too large piece, or an
/// offset after a gap or inside a piece; `limit-exceeded`: the piece ends after 32 MiB, or the
/// option `bytes` is over 32 MiB; `exists`: the conversation is in another family; `denied`: the
/// conversation is archived or is being deleted; `conflict`: another call committed first; errors
/// of the store.
pub(crate) fn stage(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    piece: &UploadChunk<'_>,
) -> Result<u64> {
    let UploadChunk { upload, offset, text, extra_json } = *piece;
    let name = parse_upload_name(upload)?;
    let UploadExtra { bytes, family } = parse_upload_extra(extra_json)?;
    let end = offset.saturating_add(int::to_u64(text.len()));
    ensure_piece_fits(text, end.max(bytes))?;
    let mut reads = RecordReads::default();
    let slot = reads.add_record(Upload::key(call.keys, &name));
    let (mut loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
    let family = family.as_deref();
    let reason = session_rules::find_skip_reason(session, call, &loaded.head, family)?;
    if reason.is_some() {
        return Ok(end);
    }
    session_rules::ensure_not_archived(session, &loaded.head)?;
    // Only checks the family: the conversation joins the family in the `append` of the message.
    let family_before = loaded.head.family;
    join_family(&mut loaded, call, family)?;
    loaded.head.family = family_before;
    let mut record = values.decode(&slot)?.unwrap_or_default();
    if record.is_final {
        return Ok(end.min(record.bytes).max(offset.min(record.bytes)));
    }
    let number = find_chunk_number(&record, offset)?;
    if offset < record.bytes {
        if Upload::has_chunk(session, call.keys, &name, number, text)? {
            return Ok(end);
        }
        record.chunks.truncate(int::to_usize(u64::from(number)));
        record.bytes = offset;
    }
    let mut changes = Changes::default();
    record.write_chunk(call.keys, &name, text, &mut changes)?;
    changes.write_record(&Upload::key(call.keys, &name), &record)?;
    let act = JournalAction::Stage { sha256: name, offset };
    loaded.commit_changes(session, call, act, changes)?;
    Ok(end)
}

/// The further options of a piece.
struct UploadExtra {
    /// Bytes of the whole text; 0: unknown.
    bytes: u64,
    /// Key of the family that `append` will be given; `None`: no family is named.
    family: Option<String>,
}

fn parse_upload_extra(json: Option<&str>) -> Result<UploadExtra> {
    let mut fields = parse_extra_fields(json)?;
    let bytes = fields.take_optional_u64("bytes").unwrap_or(0);
    let family = fields.take_optional_text("family");
    fields.finish(EXTRA_ARGUMENT)?;
    Ok(UploadExtra { bytes, family })
}

/// Refuses an empty or too large piece, and a text over 32 MiB. `end` is the end of the piece or,
/// if greater, the size of the whole text.
fn ensure_piece_fits(text: &str, end: u64) -> Result<()> {
    if text.is_empty() || text.len() > limits::CHUNK_BYTES_MAX {
        return Err(Error::invalid_input(format_args!(
            "`text` must have between 1 and {} bytes, got {}",
            limits::CHUNK_BYTES_MAX,
            text.len()
        )));
    }
    if end > limits::MESSAGE_BYTES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "the whole text must have at most {} bytes, got {end} by `bytes`, or by `offset` and \
             `text`",
            limits::MESSAGE_BYTES_MAX
        )));
    }
    Ok(())
}

/// Parses the SHA-256 that names an upload.
fn parse_upload_name(upload: &str) -> Result<[u8; 32]> {
    hash::decode_hex(upload)
        .filter(|bytes| bytes.len() == 32)
        .map(|bytes| hash::hash_prefix(&bytes))
        .ok_or_else(|| {
            Error::invalid_input("`upload` must be the SHA-256 of the text in 64 hex digits")
        })
}

/// Returns the number, from 0, of the chunk that begins at `offset`. At the end of the staged
/// bytes, this is the number of the next chunk.
fn find_chunk_number(record: &Upload, offset: u64) -> Result<u32> {
    let mut start = 0u64;
    for (number, bytes) in (0u32..).zip(&record.chunks) {
        if start == offset {
            return Ok(number);
        }
        start += u64::from(*bytes);
    }
    if start == offset {
        return Ok(int::to_u32(record.chunks.len()));
    }
    Err(Error::invalid_input(format_args!(
        "`offset` must be the start of a staged chunk or the number of staged bytes, {}, got \
         {offset}",
        record.bytes
    )))
}
