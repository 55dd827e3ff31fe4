//! Exports and imports of whole conversations, as lines of text.
//!
//! In: a conversation to export, or an export that can be read twice. Out: the exported lines, one
//! at a time, or the result of the import. The component writes and checks the lines; this module
//! cuts an import into calls.

use std::io::BufRead;

use serde::Deserialize;

use crate::{
    clock::{Cancel, Clock},
    error::{Code, Error, Result},
    json,
    lcm::Lcm,
};

/// Most bytes of the lines of one export page; a page of one line may be longer.
const PAGE_BYTES_MAX: u32 = 512 << 10;
/// Most bytes of the lines of one import call, and of one line; the component accepts 1 MiB a call.
const CALL_BYTES_MAX: usize = 768 << 10;
/// Most lines of one import call. A commit stores at most 100 messages, so more lines would be sent
/// twice. All context lines of a conversation and its end line, at most 33, must fit one call.
const CALL_LINES_MAX: usize = 128;

/// Result of an import.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct ImportReport {
    /// Conversations of the export.
    pub conversations: u64,
    /// Messages of the export.
    pub messages: u64,
    /// Messages that this import stored; all other messages were stored before.
    pub ingested: u64,
    /// Summaries that this import stored.
    pub summaries: u64,
    /// Conversations whose context the export replaced.
    pub contexts: u64,
}

/// One page of an export: lines without line ends, and the cursor of the next page; `None`: the
/// last page.
#[derive(Deserialize)]
struct Exported {
    lines: Vec<String>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Imported {
    consumed: usize,
    cursor: Option<String>,
    rewind: bool,
    #[serde(flatten)]
    report: ImportReport,
}

/// The lines of an export that the component has not consumed yet.
struct Lines {
    reader: Box<dyn BufRead>,
    /// Lines that were read and not consumed yet.
    ahead: Vec<String>,
    /// Number of lines that were read from this reader, including `ahead`.
    count: u64,
    ended: bool,
}

impl Lines {
    fn new(reader: Box<dyn BufRead>) -> Self {
        Self { reader, ahead: Vec::new(), count: 0, ended: false }
    }

    /// Returns the lines of the next import call; empty at the end of the export.
    fn page(&mut self) -> Result<&[String]> {
        let mut bytes: usize = self.ahead.iter().map(String::len).sum();
        while !self.ended && self.ahead.len() < CALL_LINES_MAX && bytes < CALL_BYTES_MAX {
            if let Some(line) = self.line()? {
                bytes = bytes.saturating_add(line.len());
                self.ahead.push(line);
            }
        }
        let mut bytes = 0_usize;
        let fits = |line: &&String| {
            bytes = bytes.saturating_add(line.len());
            bytes <= CALL_BYTES_MAX
        };
        let count = self.ahead.iter().take_while(fits).count().max(1).min(self.ahead.len());
        Ok(self.ahead.get(..count).unwrap_or_default())
    }

    fn line(&mut self) -> Result<Option<String>> {
        let wrong = |what: String| {
            let number = self.count.saturating_add(1);
            Error::new(Code::InvalidInput, format!("line {number} {what}"))
        };
        let mut bytes = Vec::new();
        // A longer line is refused without reading the rest of the line into memory; 2 bytes are
        // for the line end.
        let limit = u64::try_from(CALL_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(2);
        std::io::Read::take(&mut self.reader, limit)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if bytes.is_empty() {
            self.ended = true;
            return Ok(None);
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > CALL_BYTES_MAX {
            return Err(wrong("is longer than any line of an export".to_owned()));
        }
        let line = std::str::from_utf8(line).map_err(|_| wrong("is not valid UTF-8".to_owned()))?;
        let line = line.to_owned();
        self.count = self.count.saturating_add(1);
        Ok(Some(line))
    }

    fn drop_taken_lines(&mut self, count: usize) {
        self.ahead.drain(..count.min(self.ahead.len()));
    }
}

impl Lcm {
    /// Exports a conversation; `None`: all conversations. `each` receives one line at a time,
    /// without its line end.
    ///
    /// # Errors
    ///
    /// - `not-found`: the conversation does not exist, or the store is empty.
    /// - `conflict`: a writer changed the conversation meanwhile; the lines so far are unusable.
    /// - `invalid-input`: the id of the conversation is empty.
    /// - other errors of the component, errors of `each`, and `cancelled`.
    pub fn export_all(
        &self,
        conversation: Option<&str>,
        cancel: &Cancel,
        each: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        if conversation.is_some_and(str::is_empty) {
            return Err(Error::new(Code::InvalidInput, "`conversation` must not be empty"));
        }
        let conversation = conversation.unwrap_or_default();
        let mut cursor: Option<String> = None;
        loop {
            cancel.check()?;
            let page = self.export_page(conversation, cursor.as_deref(), PAGE_BYTES_MAX)?;
            let page: Exported = json::read("admin.export-page", &page)?;
            for line in &page.lines {
                each(line)?;
            }
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Imports an export. `open` returns a reader at the beginning of the export, and is called
    /// twice: the first pass verifies all lines, the second pass stores them. After each call,
    /// `progress` receives the number of lines that were read in the current pass.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: the export is incomplete or changed; the message names the line. Nothing
    ///   was stored.
    /// - `exists`: a conversation of the same id has other messages or summaries; nothing was
    ///   stored.
    /// - `cancelled`, errors of the store, and errors of `open`: stored messages stay, and another
    ///   import continues after them.
    pub fn import_all(
        &self,
        open: &mut dyn FnMut() -> Result<Box<dyn BufRead>>,
        clock: Clock,
        cancel: &Cancel,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ImportReport> {
        let mut lines = Lines::new(open()?);
        let mut cursor: Option<String> = None;
        loop {
            cancel.check()?;
            let page = lines.page()?;
            let answer = self.import_page(page, cursor.as_deref(), clock.now_ms())?;
            let answer: Imported = json::read("admin.import-page", &answer)?;
            let Some(next) = answer.cursor else { return Ok(answer.report) };
            if answer.consumed == 0 && !answer.rewind && cursor.as_ref() == Some(&next) {
                return Err(Error::internal(
                    "`admin.import-page` accepted no line and did not end; report this bug",
                ));
            }
            cursor = Some(next);
            lines.drop_taken_lines(answer.consumed);
            if answer.rewind {
                lines = Lines::new(open()?);
            }
            progress(lines.count);
        }
    }
}
