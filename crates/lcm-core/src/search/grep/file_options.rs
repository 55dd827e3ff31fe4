//! Options of a query that select files and the start of a scan.

use alloc::{string::String, vec::Vec};

use super::bounds::GrepScope;
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
    /// Id of the file or message at which the scan begins; everything before is skipped. For
    /// messages and summaries: the text of a [`super::cursor::ScanCursor`].
    pub(super) start_id: Option<String>,
    /// Byte of that file at which the scan begins.
    pub(super) start_byte: u64,
}

impl FileSearchOptions {
    /// Parses the file options of a query.
    ///
    /// # Errors
    ///
    /// `invalid-input`: more than 64 files, a start byte without a start file, or file options in a
    /// query with another scope.
    pub(super) fn read(fields: &mut JsonFields<'_>, scope: GrepScope) -> Result<Self> {
        let ids = fields.take_optional_texts("file_ids");
        let start_byte = fields.take_optional_u64("start_byte");
        let start = fields.take_optional_text("start_id");
        // `unscanned_from` always has a byte, which is 0 outside files: such a byte is accepted.
        let is_position = start_byte.is_some_and(|byte| byte > 0 || start.is_none());
        if scope != GrepScope::Files && (ids.is_some() || is_position) {
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
        let only_id = ids.as_ref().filter(|_| start_byte.is_some() && count == 1);
        let start = start.or_else(|| only_id?.first().cloned());
        if start_byte.is_some() && start.is_none() {
            return Err(Error::invalid_input(
                "`start_byte` requires `start_id`, or exactly one id in `file_ids`",
            ));
        }
        Ok(Self { ids, start_id: start, start_byte: start_byte.unwrap_or(0) })
    }

    /// Returns the id at which the scan begins.
    pub(super) fn start_id(&self) -> Option<&str> {
        self.start_id.as_deref()
    }
}
