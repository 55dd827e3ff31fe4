//! Cursors of an export and an import: a record as text, which no host has to understand.
//!
//! In: the state after a page. Out: its text, and the state again. What comes back is read like a
//! record of the store, which is not trusted either.

use alloc::string::String;
use lcm_text::base::hash;

use serde::{Serialize, de::DeserializeOwned};

use crate::storage::codec::{self, SoundRecord};
use lcm_text::base::error::Result;

/// The cursor of a state.
///
/// # Errors
///
/// As [`codec::encode`].
pub(super) fn write<T: Serialize>(state: &T) -> Result<String> {
    Ok(hash::hex(&codec::encode(state)?))
}

/// The state of a cursor; `None`: it is of something else.
pub(super) fn read<T: DeserializeOwned + SoundRecord>(cursor: &str) -> Option<T> {
    codec::decode("cursor", &hash::decode_hex(cursor)?).ok()
}
