//! Staging: a large text enters piece by piece, one bounded commit each.
//!
//! The pieces are the chunks that the message will refer to; nothing is copied later. Repeating a
//! piece changes nothing, and another text at the same offset starts over from there, until a
//! message refers to the upload and it is final.

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    head::{JournalAction, JournalEntry, LoadedHead},
    keys::ConversationKeys,
    session,
    store::Put,
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    config::Config,
    types::api::{Timestamp, UploadChunk},
};

use super::{EXTRA_ARGUMENT, collect_join_puts, parse_extra_fields};

/// Chunks of one read, so that it stays under 1 MiB.
const CHUNKS_PER_READ: usize = 5;

/// The record of an upload.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Upload {
    pub(crate) bytes: u64,
    /// Length of each chunk in bytes.
    pub(crate) chunks: Vec<u32>,
    /// Whether a message refers to it; then it never changes again.
    pub(crate) is_final: bool,
}

impl SoundRecord for Upload {
    fn is_sound(&self) -> bool {
        let chunks: u64 = self.chunks.iter().map(|bytes| u64::from(*bytes)).sum();
        self.bytes <= limits::MESSAGE_BYTES_MAX && self.bytes == chunks
    }
}

impl Upload {
    /// Adds a chunk of this length.
    pub(crate) fn push(&mut self, bytes: usize) {
        self.chunks.push(int::to_u32(bytes));
        self.bytes += int::to_u64(bytes);
    }

    /// The staged text, which nothing has verified yet.
    ///
    /// # Errors
    ///
    /// `corrupt`: a chunk is missing or no text; errors of the store.
    pub(crate) fn text(
        &self,
        reader: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        name: &[u8; 32],
    ) -> Result<String> {
        let names: Vec<String> = (0..int::to_u32(self.chunks.len()))
            .map(|number| keys.chunk_key(name, number))
            .collect();
        let mut text = Vec::with_capacity(int::to_usize(self.bytes));
        for slice in names.chunks(CHUNKS_PER_READ) {
            // Not through the cache: an unfinished upload may still be started over.
            for (key, value) in slice.iter().zip(reader.read_uncached(slice)?) {
                let Some(value) = value else { return Err(reader.missing_record_error(key)) };
                text.extend_from_slice(&codec::decode_chunk(key, &value)?);
            }
        }
        let name = hash::hex(name);
        String::from_utf8(text)
            .map_err(|_| Error::corrupt_store(format_args!("upload `{name}` is no text")))
    }
}

/// Takes one piece of a large text and returns the offset of the next.
///
/// # Errors
///
/// `invalid-input`: no SHA-256, an option that is none, an empty or too large piece, an offset that
/// leaves a gap or lies inside a piece; `limit-exceeded`: over 32 MiB, which the first piece tells
/// when its options say the size of the whole; `exists`: the conversation is of another family;
/// `denied`: it is archived; errors of the store.
pub(crate) fn stage(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    piece: &UploadChunk<'_>,
    now: Timestamp,
) -> Result<u64> {
    let UploadChunk { upload, offset, text, extra_json } = *piece;
    let keys = ConversationKeys::new(conversation)?;
    let name = parse_upload_name(upload)?;
    let UploadExtra { bytes, family } = parse_extra(extra_json)?;
    let end = offset.saturating_add(int::to_u64(text.len()));
    if text.is_empty() || text.len() > limits::CHUNK_BYTES_MAX {
        return Err(Error::invalid_input(format_args!(
            "`text` must have between 1 and {} bytes, got {}",
            limits::CHUNK_BYTES_MAX,
            text.len()
        )));
    }
    if end.max(bytes) > limits::MESSAGE_BYTES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "`text` must end within {} bytes of its message, got {}",
            limits::MESSAGE_BYTES_MAX,
            end.max(bytes)
        )));
    }
    let key = keys.upload_key(&name);
    let (mut loaded, found) =
        LoadedHead::read_with_keys(reader, &keys, conversation, core::slice::from_ref(&key))?;
    if session::find_skip_reason(reader, config, &keys, &loaded.head, family.as_deref())?.is_some()
    {
        return Ok(end);
    }
    session::ensure_not_archived(reader, &loaded.head)?;
    // Only compared: the message is no part of the conversation before `append`, which joins.
    let family_before = loaded.head.family;
    collect_join_puts(&mut loaded, &keys, family.as_deref(), now)?;
    loaded.head.family = family_before;
    let mut record = match found.into_iter().next().flatten() {
        Some(value) => codec::decode::<Upload>(&key, &value)?,
        None => Upload::default(),
    };
    if record.is_final {
        return Ok(end.min(record.bytes).max(offset.min(record.bytes)));
    }
    let number = find_chunk_number(&record, offset)?;
    let chunk = keys.chunk_key(&name, number);
    if offset < record.bytes {
        let value = reader.read_one_uncached(&chunk)?;
        if let Some(value) = value
            && *codec::decode_chunk(&chunk, &value)? == *text.as_bytes()
        {
            return Ok(end);
        }
        record.chunks.truncate(int::to_usize(u64::from(number)));
        record.bytes = offset;
    }
    record.push(text.len());
    let puts = alloc::vec![
        Put { key: chunk, value: Some(codec::encode_chunk(text.as_bytes())?) },
        Put { key, value: Some(codec::encode(&record)?) },
    ];
    let now = loaded.effective_time(now)?;
    let entry = JournalEntry { time: now, act: JournalAction::Stage { sha256: name, offset } };
    loaded.commit(reader, &keys, now, &entry, puts, Vec::new())?;
    Ok(end)
}

/// What a caller may say of the whole text.
struct UploadExtra {
    /// Its size; 0: it does not say.
    bytes: u64,
    /// Key of the family that `append` will be told.
    family: Option<String>,
}

fn parse_extra(json: Option<&str>) -> Result<UploadExtra> {
    let mut fields = parse_extra_fields(json)?;
    let bytes = fields.take_optional_u64("bytes").unwrap_or(0);
    let family = fields.take_optional_text("family");
    fields.finish(EXTRA_ARGUMENT)?;
    Ok(UploadExtra { bytes, family })
}

/// The SHA-256 that names an upload.
fn parse_upload_name(upload: &str) -> Result<[u8; 32]> {
    hash::decode_hex(upload)
        .filter(|bytes| bytes.len() == 32)
        .map(|bytes| hash::hash_prefix(&bytes))
        .ok_or_else(|| {
            Error::invalid_input("`upload` must be the SHA-256 of the text in 64 hex digits")
        })
}

/// Number of the chunk that begins at `offset`.
fn find_chunk_number(record: &Upload, offset: u64) -> Result<u32> {
    let mut at = 0u64;
    for (number, bytes) in (0u32..).zip(&record.chunks) {
        if at == offset {
            return Ok(number);
        }
        at += u64::from(*bytes);
    }
    if at == offset {
        return Ok(int::to_u32(record.chunks.len()));
    }
    Err(Error::invalid_input(format_args!(
        "`offset` must be the start of a staged chunk or the number of staged bytes, {}, got \
         {offset}",
        record.bytes
    )))
}
