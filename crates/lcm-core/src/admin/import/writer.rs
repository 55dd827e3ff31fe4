//! The second pass of an import: stores the lines of a verified export, with at most one commit a
//! call.
//!
//! In: the lines after the last consumed line. Out: the number of consumed lines. One commit stores
//! a version of the system messages, or messages, or one piece, or summaries, or a context. Lines
//! whose content is already stored are consumed without a write, so a repeated call, or a repeated
//! import, changes nothing.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::{
    ingest::{self, ImportedMessages, ImportedVersion},
    storage::{
        call::Call, head::LoadedHead, records::withdrawals::Withdrawals, session::SessionLifecycle,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, limits,
    },
    config::Config,
    types::api::{Dialect, Timestamp, UploadChunk},
};

use super::{
    super::export_format::{
        ExportLine, ExportedItem, LargeMessageLine, MessageLine, SummaryLine, SystemLine,
        SystemLineText,
    },
    OpenConversation, ensure_same_messages,
    progress::ImportProgress,
    summaries,
};

/// Maximum bytes of summaries in one commit. The rest of 1 MiB is for the search index, and for the
/// records that name the summary derived from a source.
const SUMMARIES_BYTES_MAX: usize = 512 << 10;
/// Maximum number of puts of one commit for summaries and for the records that name the summary
/// derived from a source.
const SUMMARIES_PUTS_MAX: usize = 160;

/// What the commit of one call will store.
enum ImportBatch {
    Empty,
    System(ImportedVersion),
    Messages(MessageBatch),
    Summaries { lines: Vec<SummaryLine>, depth: u32, bytes: usize, puts: usize },
    Context(ContextBatch),
}

/// The context of a conversation, and the other data that the same commit stores.
#[derive(Default)]
pub(super) struct ContextBatch {
    pub(super) items: Vec<ExportedItem>,
    /// The messages that were set aside or are other forms of messages, and the starts of branches.
    pub(super) withdrawals: Withdrawals,
    pub(super) life: SessionLifecycle,
}

/// Messages of one commit.
struct MessageBatch {
    dialect: Dialect,
    texts: Vec<String>,
    times: Vec<Timestamp>,
    payload_tokens_min: Vec<Option<u32>>,
    bytes: usize,
    /// Running hash before the first message.
    before: [u8; 16],
    /// Progress after each message.
    after: Vec<ImportProgress>,
}

/// Whether the writer consumed a line.
enum LineDisposition {
    /// The line was consumed.
    Accepted,
    /// The line was consumed, and the call takes no further line.
    AcceptedLast,
    /// The line was not consumed; it belongs to a later call.
    NextCommit,
}

/// Stores the first of these lines in at most one commit; returns the number of consumed lines.
///
/// # Errors
///
/// Fails as [`super::import_page`].
pub(super) fn write_page(
    session: &mut StoreSession<'_>,
    config: &Config,
    progress: &mut ImportProgress,
    lines: &[String],
    now: Timestamp,
) -> Result<usize> {
    let mut writer = ImportWriter { session, config, now, stored: None, batch: ImportBatch::Empty };
    if let Some(section) = &mut progress.section {
        writer.open_conversation(&section.conversation)?;
        if let Some(large) = section.pending_large_message.take()
            && writer.is_missing(large.seq)
        {
            writer.append_large_message(progress, &large)?;
            return Ok(0);
        }
    }
    let mut consumed = 0;
    // The number of consumed lines, and the progress, before the lines of the withdrawn ranges and
    // the context. One commit must store these lines as a whole.
    let mut before_context = None;
    for text in lines {
        let mut next = progress.clone();
        let line = next.open_line(text)?;
        let is_context = matches!(line, ExportLine::Withdrawn(_) | ExportLine::Context(_));
        if is_context && before_context.is_none() {
            before_context = Some((consumed, progress.clone()));
        }
        next.accept_line(&line)?;
        let disposition = writer.take_line(&line, progress, &mut next)?;
        if matches!(disposition, LineDisposition::NextCommit) {
            break;
        }
        *progress = next;
        consumed += 1;
        if matches!(disposition, LineDisposition::AcceptedLast) {
            break;
        }
    }
    let is_cut = progress.section.is_some() && matches!(writer.batch, ImportBatch::Context(_));
    if let Some((before, progress_before)) = before_context.filter(|_| is_cut) {
        if before == 0 {
            return Err(Error::invalid_input(format_args!(
                "`lines` must hold all context lines of a conversation and its end in one call, \
                 got the first {} of them",
                lines.len()
            )));
        }
        *progress = progress_before;
        return Ok(before);
    }
    writer.commit(progress, consumed)
}

struct ImportWriter<'r, 's> {
    session: &'r mut StoreSession<'s>,
    config: &'r Config,
    now: Timestamp,
    /// The conversation of the lines; `None`: before a header.
    stored: Option<OpenConversation>,
    batch: ImportBatch,
}

impl ImportWriter<'_, '_> {
    fn open_conversation(&mut self, conversation: &str) -> Result<()> {
        self.stored = Some(OpenConversation::open(self.session, conversation)?);
        Ok(())
    }

    /// Returns the seq of the newest stored message; 0: there is none.
    fn newest_seq(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.loaded.head.messages)
    }

    fn is_missing(&self, seq: u64) -> bool {
        seq > self.newest_seq()
    }

    /// Returns whether the store has more messages than the export; then system messages, summaries
    /// and context of the export are not stored.
    fn has_advanced(&self, progress: &ImportProgress) -> bool {
        progress.section.as_ref().is_some_and(|section| self.newest_seq() > section.messages)
    }

    fn take_line(
        &mut self,
        line: &ExportLine,
        before: &ImportProgress,
        next: &mut ImportProgress,
    ) -> Result<LineDisposition> {
        match line {
            ExportLine::Header(header) => {
                self.open_conversation(&header.conversation)?;
                if let Some(stored) = &self.stored {
                    let call = stored.call(self.config, self.now);
                    ensure_same_messages(self.session, next, call, &stored.loaded)?;
                }
                Ok(LineDisposition::Accepted)
            }
            ExportLine::Message(line) if self.is_missing(line.seq) => {
                self.add_message(line, before, next)
            }
            ExportLine::LargeMessage(line) if self.is_missing(line.seq) && self.has_batch() => {
                Ok(LineDisposition::NextCommit)
            }
            ExportLine::Chunk(line) if self.is_missing(line.seq) => {
                let Some((large, _)) = current_large_message(before) else {
                    return Ok(LineDisposition::NextCommit);
                };
                self.stage_chunk(large, line.offset, &line.text, next)
            }
            ExportLine::Message(_) | ExportLine::LargeMessage(_) | ExportLine::Chunk(_) => {
                if let (Some(stored), Some(section)) = (&self.stored, &next.section) {
                    let head = &stored.loaded.head;
                    section.ensure_messages_match(head.messages, &head.frontier)?;
                }
                Ok(LineDisposition::Accepted)
            }
            ExportLine::Summary(_)
            | ExportLine::Withdrawn(_)
            | ExportLine::Context(_)
            | ExportLine::System(_)
            | ExportLine::SystemChunk(_)
                if self.has_advanced(next) =>
            {
                Ok(LineDisposition::Accepted)
            }
            ExportLine::System(_) | ExportLine::SystemChunk(_) if self.has_batch() => {
                Ok(LineDisposition::NextCommit)
            }
            ExportLine::System(line) => {
                self.batch = ImportBatch::System(build_version(line));
                Ok(LineDisposition::AcceptedLast)
            }
            ExportLine::SystemChunk(line) => {
                self.stage_text(&line.sha256, line.offset, &line.text)?;
                Ok(LineDisposition::AcceptedLast)
            }
            ExportLine::Summary(line) => Ok(self.add_summary(line)),
            ExportLine::Withdrawn(list) => {
                Ok(self.add_context(next, |batch| batch.withdrawals.append(list)))
            }
            ExportLine::Context(items) => {
                Ok(self.add_context(next, |batch| batch.items.extend_from_slice(items)))
            }
            // An end line after the context belongs to the commit of the context.
            ExportLine::End(_) if matches!(self.batch, ImportBatch::Context(_)) => {
                Ok(LineDisposition::AcceptedLast)
            }
            ExportLine::End(_) if self.has_batch() => Ok(LineDisposition::NextCommit),
            ExportLine::End(_) => self.end_conversation(before),
        }
    }

    fn has_batch(&self) -> bool {
        !matches!(self.batch, ImportBatch::Empty)
    }

    fn add_message(
        &mut self,
        line: &MessageLine,
        before: &ImportProgress,
        next: &ImportProgress,
    ) -> Result<LineDisposition> {
        if !self.has_batch() {
            self.batch = ImportBatch::Messages(MessageBatch {
                dialect: line.dialect,
                texts: Vec::new(),
                times: Vec::new(),
                payload_tokens_min: Vec::new(),
                bytes: 0,
                before: before.section.as_ref().map_or([0; 16], |section| section.running_hash),
                after: Vec::new(),
            });
        }
        let ImportBatch::Messages(batch) = &mut self.batch else {
            return Ok(LineDisposition::NextCommit);
        };
        let bytes = batch.bytes + line.text.len();
        if batch.dialect != line.dialect
            || batch.texts.len() == limits::BATCH_MESSAGES_MAX
            || bytes > limits::BATCH_BYTES_MAX
        {
            return Ok(LineDisposition::NextCommit);
        }
        batch.bytes = bytes;
        batch.texts.push(line.text.clone());
        batch.times.push(line.time);
        batch.payload_tokens_min.push(line.payload_tokens_min);
        batch.after.push(next.clone());
        Ok(LineDisposition::Accepted)
    }

    fn stage_chunk(
        &mut self,
        large: &LargeMessageLine,
        offset: u64,
        text: &str,
        next: &mut ImportProgress,
    ) -> Result<LineDisposition> {
        let Some(section) = &mut next.section else { return Ok(LineDisposition::NextCommit) };
        if section.large_message.is_none() {
            section.pending_large_message = Some(*large);
        }
        self.stage_text(&large.sha256, offset, text)?;
        Ok(LineDisposition::AcceptedLast)
    }

    /// Stages a piece of a large text of the conversation.
    fn stage_text(&mut self, sha256: &[u8; 32], offset: u64, text: &str) -> Result<()> {
        let upload = hash::hex(sha256);
        let piece = UploadChunk { upload: &upload, offset, text, extra_json: None };
        if let Some(stored) = &self.stored {
            ingest::stage(self.session, stored.call(self.config, self.now), &piece)?;
        }
        Ok(())
    }

    fn append_large_message(
        &mut self,
        progress: &mut ImportProgress,
        large: &LargeMessageLine,
    ) -> Result<()> {
        let Some(OpenConversation { name, keys, loaded }) = self.stored.take() else {
            return Ok(());
        };
        let Self { config, now, .. } = *self;
        let call = Call { config, conversation: &name, keys: &keys, now };
        let restored = ImportedMessages {
            dialect: large.dialect,
            texts: &[format!("@upload {}", hash::hex(&large.sha256))],
            times: &[large.time],
            payload_tokens_min: &[large.payload_tokens_min],
            frontier: Some(large.frontier),
        };
        ensure_follows(&loaded, large.seq, &loaded.head.frontier)?;
        ingest::import_messages(self.session, call, loaded, &restored)?;
        progress.totals.ingested += 1;
        Ok(())
    }

    fn add_summary(&mut self, line: &SummaryLine) -> LineDisposition {
        // Upper bound: the text, and 16 KiB for the lists.
        let line_bytes = line.record.text.len() + (16 << 10);
        let line_puts = 1 + line.record.source_refs().len();
        match &mut self.batch {
            ImportBatch::Empty => {
                let (depth, bytes, puts) = (line.record.depth, line_bytes, line_puts);
                let lines = alloc::vec![line.clone()];
                self.batch = ImportBatch::Summaries { lines, depth, bytes, puts };
                LineDisposition::Accepted
            }
            // A commit holds one depth, because verification reads the sources from the store.
            ImportBatch::Summaries { lines, depth, bytes, puts }
                if *depth == line.record.depth
                    && *bytes + line_bytes <= SUMMARIES_BYTES_MAX
                    && *puts + line_puts <= SUMMARIES_PUTS_MAX =>
            {
                lines.push(line.clone());
                *bytes += line_bytes;
                *puts += line_puts;
                LineDisposition::Accepted
            }
            _ => LineDisposition::NextCommit,
        }
    }

    /// Adds a part of the context to the batch of the context, and begins this batch if there is no
    /// batch.
    fn add_context(
        &mut self,
        next: &ImportProgress,
        add: impl FnOnce(&mut ContextBatch),
    ) -> LineDisposition {
        if !self.has_batch() {
            let life = next.section.as_ref().map(|section| section.life.clone());
            let life = life.unwrap_or_default();
            self.batch = ImportBatch::Context(ContextBatch { life, ..ContextBatch::default() });
        }
        let ImportBatch::Context(batch) = &mut self.batch else {
            return LineDisposition::NextCommit;
        };
        add(batch);
        LineDisposition::Accepted
    }

    /// Handles an end line without a context to store. A conversation that does not exist is
    /// created, with an empty context.
    fn end_conversation(&mut self, before: &ImportProgress) -> Result<LineDisposition> {
        let is_new = self.stored.as_ref().is_some_and(|stored| stored.loaded.bytes.is_none());
        match &before.section {
            Some(section) if is_new => {
                let life = section.life.clone();
                self.batch = ImportBatch::Context(ContextBatch { life, ..ContextBatch::default() });
                Ok(LineDisposition::AcceptedLast)
            }
            _ => Ok(LineDisposition::Accepted),
        }
    }

    fn commit(self, progress: &mut ImportProgress, consumed: usize) -> Result<usize> {
        let Self { session, config, now, stored, batch } = self;
        let Some(OpenConversation { name, keys, loaded }) = stored else { return Ok(consumed) };
        let call = Call { config, conversation: &name, keys: &keys, now };
        match batch {
            ImportBatch::Empty => Ok(consumed),
            ImportBatch::System(version) => {
                ingest::import_system(session, call, loaded, &version)?;
                Ok(consumed)
            }
            ImportBatch::Messages(batch) => {
                let count = batch.texts.len();
                let first = loaded.head.messages + 1;
                let section = batch.after.first().and_then(|after| after.section.as_ref());
                let seq = section.map_or(first, |section| section.messages_seen);
                ensure_follows(&loaded, seq, &batch.before)?;
                let restored = ImportedMessages {
                    dialect: batch.dialect,
                    texts: &batch.texts,
                    times: &batch.times,
                    payload_tokens_min: &batch.payload_tokens_min,
                    frontier: None,
                };
                let receipt = ingest::import_messages(session, call, loaded, &restored)?;
                let stored = int::to_usize(u64::from(receipt.ingested));
                let after =
                    stored.checked_sub(1).and_then(|last| batch.after.into_iter().nth(last));
                *progress = after.ok_or_else(|| {
                    Error::corrupt_store(format_args!(
                        "the import commit of `{name}` must store at least one message, got 0"
                    ))
                })?;
                progress.totals.ingested += u64::from(receipt.ingested);
                // The messages of the batch are the last of the consumed lines; the lines of
                // messages that were not stored do not count as consumed.
                Ok(consumed - (count - stored))
            }
            ImportBatch::Summaries { lines, .. } => {
                let added = summaries::store_summaries(session, call, loaded, &lines)?;
                progress.totals.summaries += added;
                Ok(consumed)
            }
            ImportBatch::Context(batch) => {
                let replaced = summaries::store_context(session, call, loaded, &batch)?;
                progress.totals.contexts += u64::from(replaced);
                Ok(consumed)
            }
        }
    }
}

/// Returns the version of a line. A large text becomes the reference to an upload that `append`
/// takes.
fn build_version(line: &SystemLine) -> ImportedVersion {
    let messages = line.messages.iter().map(|message| {
        let text = match &message.text {
            SystemLineText::Whole(text) => text.clone(),
            SystemLineText::Chunked(sha256) => format!("@upload {}", hash::hex(sha256)),
        };
        (message.dialect, text)
    });
    ImportedVersion {
        number: line.number,
        time: line.time,
        previous: line.previous,
        messages: messages.collect(),
    }
}

/// Returns the large message whose pieces are not all accepted, with the accepted bytes of its
/// text; `None`: there is no such message.
fn current_large_message(progress: &ImportProgress) -> Option<&(LargeMessageLine, u64)> {
    progress.section.as_ref().and_then(|section| section.large_message.as_ref())
}

/// Ensures that the message `seq` follows the newest stored message, and that `frontier`, the
/// running hash before the message, is the stored running hash.
fn ensure_follows(loaded: &LoadedHead, seq: u64, frontier: &[u8; 16]) -> Result<()> {
    if seq == loaded.head.messages + 1 && *frontier == loaded.head.frontier {
        return Ok(());
    }
    let conversation = &loaded.head.conversation;
    let message =
        format!("the conversation `{conversation}` changed during the import; import again");
    Err(Error::new(ErrorCode::Conflict, message))
}
