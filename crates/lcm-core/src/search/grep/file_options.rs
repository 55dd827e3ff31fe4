//! Options of a query that select files, and the cursor at which a scan begins.
//!
//! Input: fields of the query. Output: the options, for the scan of documents (`execute`) and of
//! files (`file_search`).

use alloc::{string::String, vec::Vec};

use super::{bounds::GrepScope, cursor::join_file_cursor};
use crate::storage::cursor_binding::CursorBinding;
use lcm_text::base::{
    error::{Error, Result},
    json::JsonFields,
    limits,
};

/// Ids of files, and the cursor of a query.
#[derive(Debug, Default)]
pub(super) struct FileSearchOptions {
    /// Ids of the files to search; `None`: all files.
    pub(super) ids: Option<Vec<String>>,
    /// Cursor of an earlier answer, with the hash of its query; `None`: the query has no cursor.
    cursor: Option<String>,
    /// Position at which the scan begins; the scan skips everything before. `None`: the scan skips
    /// nothing. For messages and summaries: the text of a [`super::cursor::ScanCursor`]; for files:
    /// [`super::cursor::join_file_cursor`].
    start: Option<String>,
}

impl FileSearchOptions {
    /// Parses the file options of a query.
    ///
    /// # Errors
    ///
    /// `invalid-input`: there are more than 64 files, `start_byte` is without exactly one file or
    /// beside `cursor`, or the scope is not `files`, although `file_ids` or `start_byte` is given.
    pub(super) fn read(fields: &mut JsonFields<'_>, scope: GrepScope) -> Result<Self> {
        let ids = fields.take_optional_texts("file_ids");
        let start_byte = fields.take_optional_u64("start_byte");
        let cursor = fields.take_optional_text("cursor");
        if scope != GrepScope::Files && (ids.is_some() || start_byte.is_some()) {
            return Err(Error::invalid_input(
                "`file_ids` and `start_byte` require the scope `files`",
            ));
        }
        let count = ids.as_ref().map_or(0, Vec::len);
        if count > limits::FILE_IDS_MAX {
            return Err(Error::invalid_input(format_args!(
                "`file_ids` must have at most {} ids, got {count}",
                limits::FILE_IDS_MAX
            )));
        }
        let only_id = ids.as_ref().filter(|_| count == 1).and_then(|ids| ids.first());
        let start = match (start_byte, only_id) {
            (None, _) => None,
            (Some(byte), Some(id)) if cursor.is_none() => Some(join_file_cursor(id, byte)),
            (Some(_), _) => {
                return Err(Error::invalid_input(
                    "`start_byte` requires exactly one id in `file_ids`, and no `cursor`",
                ));
            }
        };
        Ok(Self { ids, cursor, start })
    }

    /// Returns whether the query continues an earlier answer.
    pub(super) const fn has_cursor(&self) -> bool {
        self.cursor.is_some()
    }

    /// Takes the start of the scan from the cursor. Without a cursor does nothing.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the cursor is from another query.
    pub(super) fn open_cursor(&mut self, binding: &CursorBinding) -> Result<()> {
        if let Some(cursor) = &self.cursor {
            self.start = Some(binding.open_cursor(cursor)?.into());
        }
        Ok(())
    }

    /// Returns the position at which the scan begins, from the cursor or from `start_byte`. `None`:
    /// the scan skips nothing.
    pub(super) fn start_position(&self) -> Option<&str> {
        self.start.as_deref()
    }
}
