//! Printed ids of payloads: `file_` and 16 lower-case hex digits.
//!
//! In: an id, or a text. Out: the printed id, or the ids in the text.

use alloc::{string::String, vec::Vec};

use crate::base::hash;

/// Most ids that [`find_ids`] returns for one text.
pub const IDS_MAX: usize = 512;

/// Returns the printed id of a payload.
pub fn format_name(id: [u8; 8]) -> String {
    ["file_", &hash::hex(&id)].concat()
}

/// Parses a printed id; `None`: any other text.
pub fn parse_name(name: &str) -> Option<[u8; 8]> {
    let digits = name.strip_prefix("file_").filter(|digits| digits.len() == 16)?;
    hash::decode_hex(digits).map(|bytes| hash::hash_prefix(&bytes))
}

/// Returns the distinct ids in a text, at most the first [`IDS_MAX`]. More than 16 digits after
/// `file_` are no id.
pub fn find_ids(text: &str) -> Vec<[u8; 8]> {
    let mut ids = Vec::new();
    for (at, _) in text.match_indices("file_") {
        let rest = text.get(at + 5..).unwrap_or_default();
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = rest.bytes().take_while(is_digit).count();
        let id = rest.get(..digits).filter(|_| digits == 16).and_then(hash::decode_hex);
        if let Some(id) = id.map(|id| hash::hash_prefix(&id)).filter(|id| !ids.contains(id)) {
            ids.push(id);
        }
        if ids.len() == IDS_MAX {
            break;
        }
    }
    ids
}
