//! The second time: the lines of a verified export are stored, one commit a call.
//!
//! In: the lines from where the call before ended. Out: how many were taken. A call takes lines of
//! one kind until its commit is full; what is stored already is passed over without a write, so
//! that repeating a call, or the whole import, changes nothing.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::{
    ingest::{self, ImportedMessages},
    storage::{
        call::Call, head::LoadedHead, keys::ConversationKeys, session::SessionLifecycle,
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
    super::export_format::{ExportLine, ExportedItem, LargeMessageLine, MessageLine, SummaryLine},
    progress::ImportProgress,
    summaries,
};

/// Bytes of summaries in one commit; the rest of its 1 MiB is for what leads back to them.
const SUMMARIES_BYTES_MAX: usize = 512 << 10;
/// Records of one commit that are summaries or lead back to one.
const SUMMARIES_PUTS_MAX: usize = 160;

/// What the commit of this call will store.
enum ImportBatch {
    Empty,
    Messages(MessageBatch),
    Summaries { lines: Vec<SummaryLine>, depth: u32, bytes: usize, puts: usize },
    Context(Vec<ExportedItem>, SessionLifecycle),
}

/// Messages and what the progress is after each.
struct MessageBatch {
    dialect: Dialect,
    texts: Vec<String>,
    times: Vec<Timestamp>,
    payload_tokens_min: Vec<Option<u32>>,
    bytes: usize,
    /// The running hash before the first.
    before: [u8; 16],
    after: Vec<ImportProgress>,
}

/// What becomes of a line.
enum LineDisposition {
    /// It was taken.
    Accepted,
    /// It was taken, and the commit has to be made.
    AcceptedLast,
    /// It belongs to another commit.
    NextCommit,
}

/// Takes lines; returns how many.
///
/// # Errors
///
/// As [`super::import_page`].
pub(super) fn write_page(
    reader: &mut StoreSession<'_>,
    progress: &mut ImportProgress,
    lines: &[String],
    now: Timestamp,
) -> Result<usize> {
    let mut writer = ImportWriter { reader, stored: None, batch: ImportBatch::Empty, now };
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
    // Where the context begins: it is taken as a whole or not at all.
    let mut before_context = None;
    for text in lines {
        let mut next = progress.clone();
        let line = next.open_line(text)?;
        if matches!(line, ExportLine::Context(_)) && before_context.is_none() {
            before_context = Some((consumed, progress.clone()));
        }
        next.accept_line(&line)?;
        let take = writer.take_line(&line, progress, &mut next)?;
        if matches!(take, LineDisposition::NextCommit) {
            break;
        }
        *progress = next;
        consumed += 1;
        if matches!(take, LineDisposition::AcceptedLast) {
            break;
        }
    }
    let unfinished = progress.section.is_some() && matches!(writer.batch, ImportBatch::Context(..));
    if let Some((before, state)) = before_context.filter(|_| unfinished) {
        if before == 0 {
            return Err(Error::invalid_input(format_args!(
                "lines: the context of a conversation has to come in one call, with its end; {} \
                 lines are too few",
                lines.len()
            )));
        }
        *progress = state;
        return Ok(before);
    }
    writer.commit(progress, consumed)
}

struct ImportWriter<'r, 's> {
    reader: &'r mut StoreSession<'s>,
    /// The conversation as it is stored.
    stored: Option<(ConversationKeys, LoadedHead)>,
    batch: ImportBatch,
    now: Timestamp,
}

impl ImportWriter<'_, '_> {
    fn open_conversation(&mut self, conversation: &str) -> Result<()> {
        let keys = ConversationKeys::new(conversation)?;
        let loaded = LoadedHead::load_head(self.reader, &keys, conversation)?;
        self.stored = Some((keys, loaded));
        Ok(())
    }

    /// Messages that are stored.
    fn newest_seq(&self) -> u64 {
        self.stored.as_ref().map_or(0, |(_, loaded)| loaded.head.messages)
    }

    fn is_missing(&self, seq: u64) -> bool {
        seq > self.newest_seq()
    }

    /// Whether more is stored than was exported: then nothing of the export is newer.
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
                let Some((keys, loaded)) = &self.stored else {
                    return Ok(LineDisposition::Accepted);
                };
                super::ensure_same_messages(self.reader, next, keys, loaded)?;
                Ok(LineDisposition::Accepted)
            }
            ExportLine::Message(line) if self.is_missing(line.seq) => {
                self.add_message(line, before, next)
            }
            ExportLine::LargeMessage(line) if self.is_missing(line.seq) && self.has_batch() => {
                let _ = line;
                Ok(LineDisposition::NextCommit)
            }
            ExportLine::Chunk(line) if self.is_missing(line.seq) => {
                let Some((large, _)) = current_large_message(before) else {
                    return Ok(LineDisposition::NextCommit);
                };
                self.stage_chunk(large, line.offset, &line.text, next)
            }
            ExportLine::Message(_) | ExportLine::LargeMessage(_) | ExportLine::Chunk(_) => {
                let Some((_, loaded)) = &self.stored else { return Ok(LineDisposition::Accepted) };
                let head = &loaded.head;
                if let Some(section) = &next.section {
                    section.ensure_messages_match(head.messages, &head.frontier)?;
                }
                Ok(LineDisposition::Accepted)
            }
            ExportLine::Summary(_) | ExportLine::Context(_) if self.has_advanced(next) => {
                Ok(LineDisposition::Accepted)
            }
            ExportLine::Summary(line) => Ok(self.add_summary(line)),
            ExportLine::Context(items) => Ok(self.add_context(items, next)),
            // An end that follows its context belongs to the same commit.
            ExportLine::End(_) if matches!(self.batch, ImportBatch::Context(..)) => {
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
        let conversation = section.conversation.clone();
        let upload = hash::hex(&large.sha256);
        // Patterns are about what sessions say, not about copies of what was stored.
        let config = Config::default();
        let piece = UploadChunk { upload: &upload, offset, text, extra_json: None };
        let keys = ConversationKeys::new(&conversation)?;
        let call =
            Call { config: &config, conversation: &conversation, keys: &keys, now: self.now };
        ingest::stage(self.reader, call, &piece)?;
        Ok(LineDisposition::AcceptedLast)
    }

    fn append_large_message(
        &mut self,
        progress: &mut ImportProgress,
        large: &LargeMessageLine,
    ) -> Result<()> {
        let Some((keys, loaded)) = self.stored.take() else { return Ok(()) };
        let restored = ImportedMessages {
            dialect: large.dialect,
            texts: &[format!("@upload {}", hash::hex(&large.sha256))],
            times: &[large.time],
            payload_tokens_min: &[large.payload_tokens_min],
            frontier: Some(large.frontier),
        };
        ensure_follows(&loaded, large.seq, &loaded.head.frontier)?;
        let (config, conversation) = (Config::default(), loaded.head.conversation.clone());
        let call =
            Call { config: &config, conversation: &conversation, keys: &keys, now: self.now };
        ingest::import_messages(self.reader, call, loaded, &restored)?;
        progress.totals.ingested += 1;
        Ok(())
    }

    fn add_summary(&mut self, line: &SummaryLine) -> LineDisposition {
        // From above: the text, and as much again for its lists.
        let of_line = line.record.text.len() + (16 << 10);
        let puts_of_line = 1 + line.record.source_refs().len();
        match &mut self.batch {
            ImportBatch::Empty => {
                let (depth, bytes, puts) = (line.record.depth, of_line, puts_of_line);
                let lines = alloc::vec![line.clone()];
                self.batch = ImportBatch::Summaries { lines, depth, bytes, puts };
                LineDisposition::Accepted
            }
            // Sources are looked for in the store, so that they come with an earlier commit.
            ImportBatch::Summaries { lines, depth, bytes, puts }
                if *depth == line.record.depth
                    && *bytes + of_line <= SUMMARIES_BYTES_MAX
                    && *puts + puts_of_line <= SUMMARIES_PUTS_MAX =>
            {
                lines.push(line.clone());
                *bytes += of_line;
                *puts += puts_of_line;
                LineDisposition::Accepted
            }
            _ => LineDisposition::NextCommit,
        }
    }

    fn add_context(&mut self, items: &[ExportedItem], next: &ImportProgress) -> LineDisposition {
        match &mut self.batch {
            ImportBatch::Empty => {
                let life = next.section.as_ref().map(|section| section.life.clone());
                self.batch = ImportBatch::Context(items.to_vec(), life.unwrap_or_default());
                LineDisposition::Accepted
            }
            ImportBatch::Context(all, _) => {
                all.extend_from_slice(items);
                LineDisposition::Accepted
            }
            _ => LineDisposition::NextCommit,
        }
    }

    /// The end of a conversation without context: without messages, or with more than exported.
    fn end_conversation(&mut self, before: &ImportProgress) -> Result<LineDisposition> {
        let missing = self.stored.as_ref().is_some_and(|(_, loaded)| loaded.bytes.is_none());
        match &before.section {
            Some(section) if missing => {
                self.batch = ImportBatch::Context(Vec::new(), section.life.clone());
                Ok(LineDisposition::AcceptedLast)
            }
            _ => Ok(LineDisposition::Accepted),
        }
    }

    fn commit(self, progress: &mut ImportProgress, consumed: usize) -> Result<usize> {
        let Self { reader, stored, batch, now } = self;
        let Some((keys, loaded)) = stored else { return Ok(consumed) };
        match batch {
            ImportBatch::Empty => Ok(consumed),
            ImportBatch::Messages(batch) => {
                let count = batch.texts.len();
                let first = loaded.head.messages + 1;
                let reached = batch.after.first().and_then(|after| after.section.as_ref());
                let seq = reached.map_or(first, |section| section.messages_seen);
                ensure_follows(&loaded, seq, &batch.before)?;
                let restored = ImportedMessages {
                    dialect: batch.dialect,
                    texts: &batch.texts,
                    times: &batch.times,
                    payload_tokens_min: &batch.payload_tokens_min,
                    frontier: None,
                };
                let (config, conversation) = (Config::default(), loaded.head.conversation.clone());
                let call = Call { config: &config, conversation: &conversation, keys: &keys, now };
                let receipt = ingest::import_messages(reader, call, loaded, &restored)?;
                let taken = int::to_usize(u64::from(receipt.ingested));
                let after = taken.checked_sub(1).and_then(|last| batch.after.into_iter().nth(last));
                *progress = after.ok_or_else(|| Error::corrupt_store("no message was taken"))?;
                progress.totals.ingested += u64::from(receipt.ingested);
                // All messages of the batch were the last lines of those that were consumed.
                Ok(consumed - (count - taken))
            }
            ImportBatch::Summaries { lines, .. } => {
                let added = summaries::store_summaries(reader, &keys, loaded, &lines, now)?;
                progress.totals.summaries += added;
                Ok(consumed)
            }
            ImportBatch::Context(items, life) => {
                let replaced = summaries::store_context(reader, &keys, loaded, &items, &life, now)?;
                progress.totals.contexts += u64::from(replaced);
                Ok(consumed)
            }
        }
    }
}

/// The large message whose pieces come.
fn current_large_message(progress: &ImportProgress) -> Option<&(LargeMessageLine, u64)> {
    progress.section.as_ref().and_then(|section| section.large_message.as_ref())
}

/// Refuses messages that do not follow the newest stored one.
fn ensure_follows(loaded: &LoadedHead, seq: u64, frontier: &[u8; 16]) -> Result<()> {
    if seq == loaded.head.messages + 1 && *frontier == loaded.head.frontier {
        return Ok(());
    }
    let conversation = &loaded.head.conversation;
    let message = format!("the conversation `{conversation}` changed while it was imported");
    Err(Error::new(ErrorCode::Conflict, message))
}
