//! How far an import has come, and what may come next: the order and the hashes of an export.
//!
//! In: lines, one after the other. Out: the same state whichever page they came on, which is also
//! the cursor. Nothing here reads the store.

use alloc::{boxed::Box, string::String};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    pack,
    session::SessionLifecycle,
    summary::SummarySources,
};
use lcm_text::{
    base::{
        derivation_version::DERIVATION_VERSION,
        error::{Error, Result},
        int, limits, tokens,
    },
    message,
};

use super::super::{
    cursor,
    export_format::{
        self, ChunkLine, EndLine, ExportLine, ExportedItem, FORMAT, HeaderLine, LargeMessageLine,
        LineChecksum, MessageLine, SummaryLine,
    },
};

/// What was stored.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ImportTotals {
    /// Messages of the export.
    pub(super) messages: u64,
    pub(super) ingested: u64,
    pub(super) summaries: u64,
    pub(super) contexts: u64,
}

/// Where an import has come to: its cursor.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct ImportProgress {
    /// Lines that were taken.
    lines: u64,
    checksum: LineChecksum,
    /// The sum of the whole export, once it was verified; then it is written.
    pub(super) verified_checksum: Option<LineChecksum>,
    /// Whether the last line was taken.
    pub(super) is_ended: bool,
    pub(super) part: u64,
    parts: u64,
    /// Boxed, because states are copied line by line.
    pub(super) section: Option<Box<ImportSection>>,
    pub(super) totals: ImportTotals,
}

/// The conversation that is being taken.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct ImportSection {
    pub(super) conversation: String,
    pub(super) messages: u64,
    pub(super) frontier: [u8; 16],
    summaries: u64,
    items: u64,
    pub(super) life: SessionLifecycle,
    /// Messages that were seen, and the running hash after them.
    pub(super) messages_seen: u64,
    pub(super) running_hash: [u8; 16],
    /// A message whose pieces follow, and how many bytes of them were seen.
    pub(super) large_message: Option<(LargeMessageLine, u64)>,
    /// A message whose pieces are staged and that is to be stored next.
    pub(super) pending_large_message: Option<LargeMessageLine>,
    summaries_seen: u64,
    depth: u32,
    pub(super) items_seen: u64,
    /// Last seq that an item stands for.
    seq_covered: u64,
    /// Messages in the store when the section began, and their running hash.
    pub(super) messages_stored: u64,
    pub(super) stored_frontier: [u8; 16],
}

impl SoundRecord for ImportProgress {
    fn is_sound(&self) -> bool {
        let ImportTotals { messages, ingested, summaries, contexts } = self.totals;
        codec::are_countable(&[self.lines, self.part, self.parts])
            && codec::are_countable(&[messages, ingested, summaries, contexts])
            && self.section.as_ref().is_none_or(|section| section.is_sound())
    }
}

impl SoundRecord for ImportSection {
    fn is_sound(&self) -> bool {
        let large = self
            .large_message
            .as_ref()
            .is_none_or(|(line, bytes)| line.is_sound() && codec::are_countable(&[*bytes]));
        large
            && self.life.is_sound()
            && self.pending_large_message.as_ref().is_none_or(SoundRecord::is_sound)
            && codec::are_countable(&[
                self.messages,
                self.summaries,
                self.items,
                self.messages_seen,
            ])
            && codec::are_countable(&[
                self.summaries_seen,
                self.items_seen,
                self.seq_covered,
                self.messages_stored,
            ])
    }
}

impl ImportProgress {
    pub(super) fn read(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::default()) };
        cursor::read(text).ok_or_else(|| Error::invalid_input("cursor: not one of an import"))
    }

    pub(super) fn encode_cursor(&self) -> Result<String> {
        cursor::write(self)
    }

    /// The beginning of the second time.
    pub(super) fn start_second_pass(&self) -> Self {
        Self { verified_checksum: Some(self.checksum), ..Self::default() }
    }

    /// What is wrong with the next line.
    pub(super) fn line_error(&self, what: &str) -> Error {
        Error::invalid_input(format_args!("line {} {what}", self.lines + 1))
    }

    /// The next line, if its sum fits.
    pub(super) fn open_line(&mut self, text: &str) -> Result<ExportLine> {
        if self.is_ended {
            return Err(self.line_error("stands behind the end of the export"));
        }
        let (line, sum) = export_format::parse_line(text, &self.checksum)
            .map_err(|what| self.line_error(&what.message))?;
        self.checksum = sum;
        Ok(line)
    }

    /// Takes a line whose sum fits, if it may stand here.
    pub(super) fn accept_line(&mut self, line: &ExportLine) -> Result<()> {
        let taken = match (line, &mut self.section) {
            (ExportLine::Header(header), None) => self.accept_header(header),
            (ExportLine::Header(_), Some(_)) | (_, None) => {
                Err(Error::invalid_input("stands out of order"))
            }
            (ExportLine::Message(line), Some(section)) => section.accept_message(line),
            (ExportLine::LargeMessage(line), Some(section)) => section.accept_large_message(line),
            (ExportLine::Chunk(line), Some(section)) => section.accept_chunk(line),
            (ExportLine::Summary(line), Some(section)) => section.accept_summary(line),
            (ExportLine::Context(items), Some(section)) => section.accept_context(items),
            (ExportLine::End(line), Some(section)) => {
                section.ensure_complete().and_then(|()| self.accept_end(line))
            }
        };
        let placed = |error: Error| {
            Error::new(error.code, self.line_error(&error.message).into_failure().message)
        };
        taken.map_err(placed)?;
        self.lines += 1;
        Ok(())
    }

    fn accept_header(&mut self, header: &HeaderLine) -> Result<()> {
        if header.format != FORMAT {
            return Err(Error::invalid_input(format_args!(
                "is of the format `{}`; this engine reads `{FORMAT}`",
                header.format
            )));
        }
        let counts = [header.messages, header.summaries, header.items, header.parts];
        let first = self.part == 0 || header.parts == self.parts;
        if header.part != self.part + 1
            || header.part > header.parts
            || !first
            || !codec::are_countable(&counts)
        {
            return Err(Error::invalid_input("stands out of order"));
        }
        let successor = header.life.archived.as_ref().and_then(|(_, successor)| successor.as_ref());
        for name in header.life.family.iter().chain(successor).chain([&header.conversation]) {
            ConversationKeys::new(name)?;
        }
        (self.part, self.parts) = (header.part, header.parts);
        self.totals.messages += header.messages;
        self.section = Some(Box::new(ImportSection {
            conversation: header.conversation.clone(),
            messages: header.messages,
            frontier: header.frontier,
            summaries: header.summaries,
            items: header.items,
            life: header.life.clone(),
            messages_seen: 0,
            running_hash: [0; 16],
            large_message: None,
            pending_large_message: None,
            summaries_seen: 0,
            depth: 0,
            items_seen: 0,
            seq_covered: 0,
            messages_stored: 0,
            stored_frontier: [0; 16],
        }));
        Ok(())
    }

    fn accept_end(&mut self, line: &EndLine) -> Result<()> {
        if line.part != self.part || line.parts != self.parts || line.lines != self.lines + 1 {
            return Err(Error::invalid_input("counts other lines than there are"));
        }
        self.section = None;
        self.is_ended = self.part == self.parts;
        if self.is_ended && self.verified_checksum.is_some_and(|verified| verified != self.checksum)
        {
            return Err(Error::invalid_input("ends another export than the one that was verified"));
        }
        Ok(())
    }
}

fn refuse_line(what: &str) -> Result<()> {
    Err(Error::invalid_input(what))
}

impl ImportSection {
    /// Whether message `seq` may come next.
    fn ensure_next_message(&self, seq: u64) -> Result<()> {
        let in_order = seq == self.messages_seen + 1
            && seq <= self.messages
            && self.large_message.is_none()
            && self.summaries_seen == 0
            && self.items_seen == 0;
        if in_order { Ok(()) } else { refuse_line("stands out of order") }
    }

    fn accept_message(&mut self, line: &MessageLine) -> Result<()> {
        self.ensure_next_message(line.seq)?;
        if line.text.len() > export_format::INLINE_BYTES_MAX {
            return refuse_line("holds a text that has to come in pieces");
        }
        let message = message::parse(line.dialect, &line.text)?;
        let hash = pack::message_hash(&line.text, &message);
        self.running_hash = pack::advance_frontier(&self.running_hash, &hash);
        self.messages_seen = line.seq;
        Ok(())
    }

    fn accept_large_message(&mut self, line: &LargeMessageLine) -> Result<()> {
        self.ensure_next_message(line.seq)?;
        let inline = int::to_u64(export_format::INLINE_BYTES_MAX);
        if line.bytes <= inline || line.bytes > limits::MESSAGE_BYTES_MAX {
            return refuse_line("has a size that no large message has");
        }
        self.large_message = Some((*line, 0));
        Ok(())
    }

    fn accept_chunk(&mut self, line: &ChunkLine) -> Result<()> {
        let Some((large, bytes)) = &mut self.large_message else {
            return refuse_line("stands out of order");
        };
        let end = line.offset.saturating_add(int::to_u64(line.text.len()));
        let sized = !line.text.is_empty() && line.text.len() <= limits::CHUNK_BYTES_MAX;
        if line.seq != large.seq || line.offset != *bytes || end > large.bytes || !sized {
            return refuse_line("is not the next piece of its message");
        }
        *bytes = end;
        if end == large.bytes {
            self.running_hash = large.frontier;
            self.messages_seen = large.seq;
            self.large_message = None;
        }
        Ok(())
    }

    /// Whether every message was seen, and they are those of the header.
    fn ensure_all_messages(&self) -> Result<()> {
        if self.messages_seen != self.messages || self.large_message.is_some() {
            return refuse_line("comes before all messages have");
        }
        if self.running_hash != self.frontier {
            return refuse_line("follows other messages than those of the header");
        }
        Ok(())
    }

    fn accept_summary(&mut self, line: &SummaryLine) -> Result<()> {
        self.ensure_all_messages()?;
        let record = &line.record;
        if record.depth < self.depth
            || self.summaries_seen == self.summaries
            || self.items_seen > 0
            || record.seq_last > self.messages
        {
            return refuse_line("stands out of order");
        }
        let counted = || {
            record.derivation_version != DERIVATION_VERSION
                || record.tokens == tokens::estimate(&record.text)
        };
        if line.id != record.id() || !counted() {
            return refuse_line("holds another summary than its id says");
        }
        let kind = match &record.sources {
            SummarySources::Messages { .. } => record.depth == 0,
            SummarySources::Summaries(list) => {
                record.depth > 0 && list.len() >= 2 && list.len() <= limits::SOURCES_MAX
            }
        };
        let listed = record.file_ids.len() <= limits::FILE_IDS_MAX
            && record.model.len() <= limits::MODEL_BYTES_MAX;
        if !kind || !listed {
            return refuse_line("is no sound summary");
        }
        self.depth = record.depth;
        self.summaries_seen += 1;
        Ok(())
    }

    fn accept_context(&mut self, items: &[ExportedItem]) -> Result<()> {
        self.ensure_all_messages()?;
        if self.summaries_seen != self.summaries {
            return refuse_line("comes before all summaries have");
        }
        if items.is_empty() || items.len() > export_format::ITEMS_PER_LINE {
            return refuse_line("has no items, or too many");
        }
        for item in items {
            if item.seq_first != self.seq_covered + 1 || item.seq_last < item.seq_first {
                return refuse_line("leaves messages out of the context");
            }
            self.seq_covered = item.seq_last;
            self.items_seen += 1;
        }
        if self.seq_covered > self.messages || self.items_seen > self.items {
            return refuse_line("has more items than there are messages");
        }
        Ok(())
    }

    /// Whether everything that the header counts was seen.
    fn ensure_complete(&self) -> Result<()> {
        self.ensure_all_messages()?;
        let whole = self.summaries_seen == self.summaries
            && self.items_seen == self.items
            && self.seq_covered == self.messages;
        if whole { Ok(()) } else { refuse_line("comes before all that the header counts") }
    }
}
