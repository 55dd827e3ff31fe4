//! Cursors of an export and an import: progress encoded as text that is opaque to a host.
//!
//! In: the progress after a page. Out: its text; and back. A returned cursor is decoded with the
//! checks of a stored record, because neither is trusted.

use alloc::string::String;
use lcm_text::base::hash;

use serde::{Serialize, de::DeserializeOwned};

use crate::storage::codec::{self, SoundRecord};
use lcm_text::base::error::Result;

/// Encodes progress as a cursor.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(super) fn write<T: Serialize>(state: &T) -> Result<String> {
    Ok(hash::hex(&codec::encode(state)?))
}

/// Decodes the progress of a cursor; `None`: the text is no cursor of this type.
pub(super) fn read<T: DeserializeOwned + SoundRecord>(cursor: &str) -> Option<T> {
    codec::decode("cursor", &hash::decode_hex(cursor)?).ok()
}
