//! Exports and imports to the end: lines out, lines in.
//!
//! In: what to export, or a reader of lines that can be opened twice. Out: one line at a time, or
//! what was stored. What the lines say, and whether they are whole, is the component's business;
//! this loop moves them within the bounds of a call.

use std::io::BufRead;

use serde::Deserialize;

use crate::{
    clock::{Cancel, Clock},
    error::{Code, Error, Result},
    json,
    lcm::Lcm,
};

/// Bytes of lines that one page is asked for.
const PAGE_BYTES_MAX: u32 = 512 << 10;
/// Bytes of lines that one import call is given; the component takes 1 MiB.
const CALL_BYTES_MAX: usize = 768 << 10;
/// Lines of one import call: more than one commit takes. The lines that tell the context of a
/// conversation have to fit one call; there are at most 33.
const CALL_LINES_MAX: usize = 128;

/// What an import stored.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct ImportReport {
    /// Conversations of the export.
    pub conversations: u64,
    /// Messages of the export.
    pub messages: u64,
    /// Messages that were stored by this import; all others were stored already.
    pub ingested: u64,
    /// Summaries that were stored by this import.
    pub summaries: u64,
    /// Conversations whose context was replaced by that of the export.
    pub contexts: u64,
}

/// One line of an export, without its end, and the next cursor.
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

/// Lines of a reader, from where the component has come to.
struct Lines {
    reader: Box<dyn BufRead>,
    /// Lines that were read and not taken yet.
    ahead: Vec<String>,
    /// Lines that were read.
    count: u64,
    ended: bool,
}

impl Lines {
    fn new(reader: Box<dyn BufRead>) -> Self {
        Self { reader, ahead: Vec::new(), count: 0, ended: false }
    }

    /// The lines of the next call: none at the end.
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
        // A line that is too long for a call is refused before all of it is read.
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
        let line = std::str::from_utf8(line).map_err(|_| wrong("is no valid UTF-8".to_owned()))?;
        let line = line.to_owned();
        self.count = self.count.saturating_add(1);
        Ok(Some(line))
    }

    fn taken(&mut self, count: usize) {
        self.ahead.drain(..count.min(self.ahead.len()));
    }
}

impl Lcm {
    /// Every line of the export of a conversation, or (`None`) of all, without line ends.
    ///
    /// # Errors
    ///
    /// - `not-found`: there is no such conversation, or none at all.
    /// - `conflict`: somebody wrote to the conversation meanwhile; what was given is no export.
    /// - what `each` fails with, and `cancelled`.
    pub fn export_all(
        &self,
        conversation: Option<&str>,
        cancel: &Cancel,
        each: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        if conversation.is_some_and(str::is_empty) {
            return Err(Error::new(Code::InvalidInput, "conversation: an id is not empty"));
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

    /// Takes an export in. `open` gives its bytes from the beginning, twice: everything is verified
    /// before the first message is stored. `progress` is told how many lines were read.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: this is not the whole export, as it was written; the message says from
    ///   which line on. Nothing was stored.
    /// - `exists`: a conversation holds other messages or summaries; nothing was stored.
    /// - `cancelled`, and errors of the store: what was stored before stays and is sound, and
    ///   another import goes on after it.
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
                return Err(Error::internal("`admin.import-page` took none of the lines"));
            }
            cursor = Some(next);
            lines.taken(answer.consumed);
            if answer.rewind {
                lines = Lines::new(open()?);
            }
            progress(lines.count);
        }
    }
}
