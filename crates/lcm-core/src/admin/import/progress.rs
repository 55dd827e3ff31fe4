//! Progress of an import: verifies the order and the hashes of the lines, without the store.
//!
//! In: lines in order. Out: the progress after each line, which is also encoded as the cursor. The
//! progress does not depend on how the lines are cut into pages.

use alloc::{boxed::Box, string::String};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    pack,
    records::{system_slot::SYSTEM_MESSAGES_MAX, withdrawals::Withdrawals},
    session::SessionLifecycle,
    summary::SummarySources,
};
use lcm_text::{
    base::{
        derivation_version::DERIVATION_VERSION,
        error::{Error, Result},
        int, limits, tokens,
    },
    message::{self, Role},
};

use super::super::{
    cursor,
    export_format::{
        self, ChunkLine, EndLine, ExportLine, ExportedItem, FORMAT, HeaderLine, LargeMessageLine,
        LineChecksum, MessageLine, SummaryLine, SystemChunkLine, SystemLine, SystemLineText,
    },
};

/// Totals of an import.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ImportTotals {
    /// Messages that the headers so far count.
    pub(super) messages: u64,
    /// Messages that the import stored.
    pub(super) ingested: u64,
    /// Summaries that the import stored.
    pub(super) summaries: u64,
    /// Stored contexts that the import replaced.
    pub(super) contexts: u64,
}

/// Progress of an import, encoded as its cursor.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct ImportProgress {
    /// Number of lines that this pass accepted.
    lines: u64,
    checksum: LineChecksum,
    /// Checksum of the last line, as the first pass verified it; `None`: this is the first pass.
    pub(super) verified_checksum: Option<LineChecksum>,
    /// Whether the end line of the last conversation was accepted.
    pub(super) is_ended: bool,
    /// Number of the conversation, from 1; 0 before the first header.
    pub(super) part: u64,
    /// Number of conversations in the export.
    parts: u64,
    /// Progress within the conversation; `None` before a header and after an end line. Boxed, so
    /// that the progress is cheap to move.
    pub(super) section: Option<Box<ImportSection>>,
    pub(super) totals: ImportTotals,
}

/// Progress within one conversation.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct ImportSection {
    pub(super) conversation: String,
    /// Number of messages that the header counts.
    pub(super) messages: u64,
    /// Running hash after the last message, from the header.
    pub(super) frontier: [u8; 16],
    /// Number of summaries that the header counts.
    summaries: u64,
    /// Number of context items that the header counts.
    items: u64,
    /// Number of withdrawn ranges and of branches that the header counts.
    withdrawn: u64,
    pub(super) life: SessionLifecycle,
    /// Number of accepted messages, with all their pieces.
    pub(super) messages_seen: u64,
    /// Running hash after the accepted messages.
    pub(super) running_hash: [u8; 16],
    /// A large message whose pieces are not all accepted, with the accepted bytes of its text;
    /// `None`: there is no such message.
    pub(super) large_message: Option<(LargeMessageLine, u64)>,
    /// A large message whose pieces are all staged, and which the next call stores; `None`: there
    /// is no such message.
    pub(super) pending_large_message: Option<LargeMessageLine>,
    /// Number of accepted summaries.
    summaries_seen: u64,
    /// Depth of the last accepted summary.
    depth: u32,
    /// Number of accepted withdrawn ranges and branches.
    withdrawn_seen: u64,
    /// Last seq of the accepted ranges.
    withdrawn_last: u64,
    /// Number of accepted context items.
    pub(super) items_seen: u64,
    /// Last seq that the accepted context items cover.
    seq_covered: u64,
    /// Number of messages in the store when the first pass accepted the header.
    pub(super) messages_stored: u64,
    /// Running hash after these stored messages.
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
            && codec::are_countable(&[self.withdrawn, self.withdrawn_seen, self.withdrawn_last])
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
        cursor::read(text).ok_or_else(|| {
            Error::invalid_input("`cursor` must be a cursor that an import returned")
        })
    }

    pub(super) fn encode_cursor(&self) -> Result<String> {
        cursor::write(self)
    }

    /// Returns the progress with which the second pass starts.
    pub(super) fn start_second_pass(&self) -> Self {
        Self { verified_checksum: Some(self.checksum), ..Self::default() }
    }

    /// Builds an error with the number of the next line before `fault`.
    pub(super) fn line_error(&self, fault: &str) -> Error {
        Error::invalid_input(format_args!("line {} {fault}", self.lines + 1))
    }

    /// Parses the next line and verifies its checksum.
    pub(super) fn open_line(&mut self, text: &str) -> Result<ExportLine> {
        if self.is_ended {
            return Err(self.line_error("follows the end of the export"));
        }
        let (line, sum) = export_format::parse_line(text, &self.checksum)
            .map_err(|error| self.line_error(&error.message))?;
        self.checksum = sum;
        Ok(line)
    }

    /// Verifies a line against the progress, and counts the line. [`Self::open_line`] verified the
    /// checksum of the line.
    pub(super) fn accept_line(&mut self, line: &ExportLine) -> Result<()> {
        let accepted = match (line, &mut self.section) {
            (ExportLine::Header(header), None) => self.accept_header(header),
            (ExportLine::Header(_), Some(_)) | (_, None) => refuse_line(OUT_OF_ORDER),
            (ExportLine::System(line), Some(section)) => section.accept_system(line),
            (ExportLine::SystemChunk(line), Some(section)) => section.accept_system_chunk(line),
            (ExportLine::Message(line), Some(section)) => section.accept_message(line),
            (ExportLine::LargeMessage(line), Some(section)) => section.accept_large_message(line),
            (ExportLine::Chunk(line), Some(section)) => section.accept_chunk(line),
            (ExportLine::Summary(line), Some(section)) => section.accept_summary(line),
            (ExportLine::Withdrawn(list), Some(section)) => section.accept_withdrawn(list),
            (ExportLine::Context(items), Some(section)) => section.accept_context(items),
            (ExportLine::End(line), Some(section)) => {
                section.ensure_complete().and_then(|()| self.accept_end(line))
            }
        };
        let add_line_number = |error: Error| {
            Error::new(error.code, self.line_error(&error.message).into_failure().message)
        };
        accepted.map_err(add_line_number)?;
        self.lines += 1;
        Ok(())
    }

    fn accept_header(&mut self, header: &HeaderLine) -> Result<()> {
        if header.format != FORMAT {
            return Err(Error::invalid_input(format_args!(
                "has the format `{}`, expected `{FORMAT}`",
                header.format
            )));
        }
        let counts =
            [header.messages, header.summaries, header.items, header.withdrawn, header.parts];
        let same_parts = self.part == 0 || header.parts == self.parts;
        if header.part != self.part + 1
            || header.part > header.parts
            || !same_parts
            || !codec::are_countable(&counts)
        {
            return refuse_line(OUT_OF_ORDER);
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
            withdrawn: header.withdrawn,
            life: header.life.clone(),
            messages_seen: 0,
            running_hash: [0; 16],
            large_message: None,
            pending_large_message: None,
            summaries_seen: 0,
            depth: 0,
            withdrawn_seen: 0,
            withdrawn_last: 0,
            items_seen: 0,
            seq_covered: 0,
            messages_stored: 0,
            stored_frontier: [0; 16],
        }));
        Ok(())
    }

    fn accept_end(&mut self, line: &EndLine) -> Result<()> {
        if line.part != self.part || line.parts != self.parts || line.lines != self.lines + 1 {
            return refuse_line("names other parts or another number of lines than the export has");
        }
        self.section = None;
        self.is_ended = self.part == self.parts;
        if self.is_ended && self.verified_checksum.is_some_and(|verified| verified != self.checksum)
        {
            return refuse_line("ends another export than the first pass verified");
        }
        Ok(())
    }
}

/// Fault of a line that the order of an export or the counts of the header do not allow here.
const OUT_OF_ORDER: &str = "is not the line that must follow here";

fn refuse_line(fault: &str) -> Result<()> {
    Err(Error::invalid_input(fault))
}

impl ImportSection {
    /// Ensures that `seq` is the next message of the section, and that a message may follow here.
    fn ensure_next_message(&self, seq: u64) -> Result<()> {
        let in_order = seq == self.messages_seen + 1
            && seq <= self.messages
            && self.large_message.is_none()
            && self.summaries_seen == 0
            && self.items_seen == 0;
        if in_order { Ok(()) } else { refuse_line(OUT_OF_ORDER) }
    }

    /// Ensures that no message, summary or context item came yet: system messages come first.
    fn ensure_before_messages(&self) -> Result<()> {
        let is_first = self.messages_seen == 0
            && self.large_message.is_none()
            && self.summaries_seen == 0
            && self.items_seen == 0;
        if is_first { Ok(()) } else { refuse_line(OUT_OF_ORDER) }
    }

    fn accept_system(&self, line: &SystemLine) -> Result<()> {
        self.ensure_before_messages()?;
        if line.number == 0
            || !codec::are_countable(&[line.number])
            || !(1..=SYSTEM_MESSAGES_MAX).contains(&line.messages.len())
        {
            return refuse_line("must have a number from 1 to 2^40 - 1, and 1 to 64 messages");
        }
        for message in &line.messages {
            let SystemLineText::Whole(text) = &message.text else { continue };
            if text.len() > export_format::INLINE_BYTES_MAX {
                return refuse_line("must name a large text whose pieces come before");
            }
            if message::parse_given(message.dialect.into(), text)?.role != Role::System {
                return refuse_line("must have system messages");
            }
        }
        Ok(())
    }

    fn accept_system_chunk(&self, line: &SystemChunkLine) -> Result<()> {
        self.ensure_before_messages()?;
        let end = line.offset.saturating_add(int::to_u64(line.text.len()));
        if line.text.is_empty()
            || line.text.len() > limits::CHUNK_BYTES_MAX
            || end > limits::MESSAGE_BYTES_MAX
        {
            return refuse_line("has a size out of the bounds of a piece");
        }
        Ok(())
    }

    fn accept_message(&mut self, line: &MessageLine) -> Result<()> {
        self.ensure_next_message(line.seq)?;
        if line.text.len() > export_format::INLINE_BYTES_MAX {
            return refuse_line("must be a large message whose text follows in pieces");
        }
        let message = message::parse_given(line.dialect.into(), &line.text)?;
        let hash = pack::message_hash(&line.text, &message);
        self.running_hash = pack::advance_frontier(&self.running_hash, &hash);
        self.messages_seen = line.seq;
        Ok(())
    }

    fn accept_large_message(&mut self, line: &LargeMessageLine) -> Result<()> {
        self.ensure_next_message(line.seq)?;
        let inline = int::to_u64(export_format::INLINE_BYTES_MAX);
        if line.bytes <= inline || line.bytes > limits::MESSAGE_BYTES_MAX {
            return refuse_line("has a size out of the bounds of a large message");
        }
        self.large_message = Some((*line, 0));
        Ok(())
    }

    fn accept_chunk(&mut self, line: &ChunkLine) -> Result<()> {
        let Some((large, bytes)) = &mut self.large_message else {
            return refuse_line(OUT_OF_ORDER);
        };
        let end = line.offset.saturating_add(int::to_u64(line.text.len()));
        let is_sized = !line.text.is_empty() && line.text.len() <= limits::CHUNK_BYTES_MAX;
        if line.seq != large.seq || line.offset != *bytes || end > large.bytes || !is_sized {
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

    /// Ensures that as many messages as the header counts were accepted, with the hash of the
    /// header.
    fn ensure_all_messages(&self) -> Result<()> {
        if self.messages_seen != self.messages || self.large_message.is_some() {
            return refuse_line("must follow all messages that the header counts");
        }
        if self.running_hash != self.frontier {
            return refuse_line(
                "follows messages whose running hash differs from `frontier` of the header",
            );
        }
        Ok(())
    }

    fn accept_summary(&mut self, line: &SummaryLine) -> Result<()> {
        self.ensure_all_messages()?;
        let record = &line.record;
        if record.depth < self.depth
            || self.summaries_seen == self.summaries
            || self.withdrawn_seen > 0
            || self.items_seen > 0
            || record.seq_last > self.messages
        {
            return refuse_line(OUT_OF_ORDER);
        }
        let are_tokens_valid = || {
            record.derivation_version != DERIVATION_VERSION
                || record.tokens == tokens::estimate(&record.text)
        };
        if line.id != record.id() || !are_tokens_valid() {
            return refuse_line("holds a summary that does not match its id or its tokens");
        }
        let is_kind_valid = match &record.sources {
            SummarySources::Messages { .. } => record.depth == 0,
            SummarySources::Summaries(list) => {
                record.depth > 0 && list.len() >= 2 && list.len() <= limits::SOURCES_MAX
            }
        };
        let are_lists_valid = record.file_ids.len() <= limits::FILE_IDS_MAX
            && record.model.len() <= limits::MODEL_BYTES_MAX;
        if !is_kind_valid || !are_lists_valid {
            return refuse_line("is not a valid summary: depth, sources, file ids or model");
        }
        self.depth = record.depth;
        self.summaries_seen += 1;
        Ok(())
    }

    fn accept_withdrawn(&mut self, list: &Withdrawals) -> Result<()> {
        self.ensure_all_messages()?;
        if self.summaries_seen != self.summaries || self.items_seen > 0 {
            return refuse_line(
                "must follow all summaries that the header counts, and precede the context",
            );
        }
        let Withdrawals { ranges, branches, .. } = list;
        let count = ranges.len() + branches.len();
        if count == 0 || count > export_format::ITEMS_PER_LINE {
            return refuse_line("must have 1 to 128 ranges and branches");
        }
        let first = ranges.first().map_or(self.messages, |range| range.seq_first);
        let last = ranges.last().map_or(self.withdrawn_last, |range| range.seq_last);
        let branch = branches.last().map_or(0, |start| start.seq);
        let is_next = ranges.is_empty() || first > self.withdrawn_last;
        if !list.is_sound() || !is_next || last.max(branch) > self.messages {
            return refuse_line(
                "must have ascending ranges and branches, of messages of the export",
            );
        }
        self.withdrawn_last = last;
        self.withdrawn_seen += int::to_u64(count);
        Ok(())
    }

    fn accept_context(&mut self, items: &[ExportedItem]) -> Result<()> {
        self.ensure_all_messages()?;
        if self.summaries_seen != self.summaries || self.withdrawn_seen != self.withdrawn {
            return refuse_line(
                "must follow all summaries, withdrawn ranges and branches that the header counts",
            );
        }
        if items.is_empty() || items.len() > export_format::ITEMS_PER_LINE {
            return refuse_line("must have 1 to 128 items");
        }
        for item in items {
            if item.seq_first != self.seq_covered + 1 || item.seq_last < item.seq_first {
                return refuse_line("has items that do not follow each other without a gap");
            }
            self.seq_covered = item.seq_last;
            self.items_seen += 1;
        }
        if self.seq_covered > self.messages || self.items_seen > self.items {
            return refuse_line("covers more messages or has more items than the header counts");
        }
        Ok(())
    }

    /// Ensures that all messages, summaries and items that the header counts were accepted.
    fn ensure_complete(&self) -> Result<()> {
        self.ensure_all_messages()?;
        let is_complete = self.summaries_seen == self.summaries
            && self.withdrawn_seen == self.withdrawn
            && self.items_seen == self.items
            && self.seq_covered == self.messages;
        if is_complete {
            Ok(())
        } else {
            refuse_line(
                "must follow all summaries, withdrawn ranges, branches and context items that the \
                 header counts",
            )
        }
    }
}
