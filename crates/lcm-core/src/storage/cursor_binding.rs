//! Binding of a cursor to the query that returned the cursor.
//!
//! Input: the parts of a call that decide what a cursor counts. Output: a short hash, written
//! behind each cursor and checked when the cursor returns. A cursor of another query would skip
//! entries in silence. Elsewhere: what a cursor counts ([`crate::search::grep`],
//! [`crate::recall`]).

use alloc::{format, string::String};

use crate::storage::records::grants::GrantAccess;
use lcm_text::base::{
    error::{Error, Result},
    hash,
};

/// Bytes of the hash in a cursor. A cursor is no secret: the hash only detects mistakes.
const HASH_BYTES: usize = 4;
/// Separator of a cursor and its hash.
const HASH_SEPARATOR: char = '-';

/// The hash of a query.
pub(crate) struct CursorBinding {
    hash: String,
    /// Names of the fields that must be equal for a cursor to continue, for error texts.
    equals: &'static str,
    has_grant: bool,
}

impl CursorBinding {
    /// Binds cursors to the fields of a query and to what the grant of its caller covers; `None`:
    /// the caller has no grant. `equals` names the fields in error texts.
    pub(crate) fn new(fields: &[&[u8]], grant: Option<&GrantAccess>, equals: &'static str) -> Self {
        let coverage = grant.map(GrantAccess::coverage_hash);
        let query = hash::hash_fields(fields);
        let bound =
            hash::hash_fields(&[&query, coverage.as_ref().map_or(&[], |hash| hash.as_slice())]);
        Self {
            hash: hash::hex(&hash::hash_prefix::<HASH_BYTES>(&bound)),
            equals,
            has_grant: coverage.is_some(),
        }
    }

    /// Writes the hash behind a cursor.
    pub(crate) fn seal_cursor(&self, cursor: &str) -> String {
        format!("{cursor}{HASH_SEPARATOR}{}", self.hash)
    }

    /// Removes the hash of a cursor.
    ///
    /// # Errors
    ///
    /// `invalid-input`: another query returned the cursor, or no query did.
    pub(crate) fn open_cursor<'c>(&self, cursor: &'c str) -> Result<&'c str> {
        match cursor.rsplit_once(HASH_SEPARATOR) {
            Some((start, hash)) if hash == self.hash => Ok(start),
            _ => Err(self.foreign_error(cursor)),
        }
    }

    /// Builds the error for a cursor that does not belong to the query.
    pub(crate) fn foreign_error(&self, cursor: &str) -> Error {
        let grant = if self.has_grant { ", on a grant for the same content" } else { "" };
        Error::invalid_input(format_args!(
            "`cursor` must be from an answer to the same {}{grant}, got `{cursor}`",
            self.equals
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_taken_by_its_query_alone() {
        let bind = |fields: &[&[u8]]| CursorBinding::new(fields, None, "query");
        let (own, other) = (bind(&[b"ab", b"c"]), bind(&[b"a", b"bc"]));
        let cursor = own.seal_cursor("scan_0a_m17");
        assert_eq!(own.open_cursor(&cursor).ok(), Some("scan_0a_m17"));
        assert!(other.open_cursor(&cursor).is_err() && own.open_cursor("scan_0a_m17").is_err());
        assert!(own.open_cursor("").is_err() && own.open_cursor("-").is_err());
    }
}
