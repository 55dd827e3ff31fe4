//! Cursors of an export, an import and a digest: progress encoded as text that is opaque to a host.
//!
//! In: the progress after a page. Out: the cursor for the next call, and from a cursor the progress
//! again. Decoding checks a cursor in the same way as a stored record, because a host can pass any
//! text.

use alloc::string::String;
use lcm_text::base::hash;

use serde::{Serialize, de::DeserializeOwned};

use crate::storage::codec::{self, SoundRecord};
use lcm_text::base::error::{Error, Result};

/// Encodes progress as a cursor: the hex digits of its stored form.
///
/// # Errors
///
/// `limit-exceeded`: the encoded progress would be larger than 256 KiB.
pub(super) fn write<T: Serialize>(state: &T) -> Result<String> {
    Ok(hash::hex(&codec::encode(state)?))
}

/// Refuses a cursor of a call whose result has one page.
///
/// # Errors
///
/// `invalid-input`: a cursor is given.
pub(crate) fn ensure_no_cursor(cursor: Option<&str>) -> Result<()> {
    match cursor {
        None => Ok(()),
        Some(_) => Err(Error::invalid_input("`cursor` must be absent: the result has one page")),
    }
}

/// Decodes a cursor; `None`: the text is not a cursor of this type, or its numbers are out of
/// bounds.
pub(super) fn read<T: DeserializeOwned + SoundRecord>(cursor: &str) -> Option<T> {
    codec::decode("cursor", &hash::decode_hex(cursor)?).ok()
}
