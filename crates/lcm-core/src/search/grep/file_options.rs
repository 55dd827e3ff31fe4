//! Options of a query that select files and the start of a scan.

use alloc::{string::String, vec::Vec};

use super::{bounds::GrepScope, cursor::join_file_cursor};
use lcm_text::base::{
    error::{Error, Result},
    json::JsonFields,
    limits,
};

/// Options of a query that select files and the start of the scan.
#[derive(Debug, Default)]
pub(super) struct FileSearchOptions {
    /// Ids of the files to search; `None`: all files.
    pub(super) ids: Option<Vec<String>>,
    /// Cursor of an earlier answer; the scan skips everything before. For messages and summaries:
    /// the text of a [`super::cursor::ScanCursor`]; for files: [`super::cursor::join_file_cursor`].
    pub(super) cursor: Option<String>,
}

impl FileSearchOptions {
    /// Parses the file options of a query.
    ///
    /// # Errors
    ///
    /// `invalid-input`: more than 64 files, a start byte without one file or beside a cursor, or
    /// file options in a query with another scope.
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
        let cursor = match (start_byte, only_id) {
            (None, _) => cursor,
            (Some(byte), Some(id)) if cursor.is_none() => Some(join_file_cursor(id, byte)),
            (Some(_), _) => {
                return Err(Error::invalid_input(
                    "`start_byte` requires exactly one id in `file_ids`, and no `cursor`",
                ));
            }
        };
        Ok(Self { ids, cursor })
    }

    /// Returns the cursor at which the scan begins.
    pub(super) fn start_cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}
