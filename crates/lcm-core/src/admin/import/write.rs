//! The second time: the lines of a verified export are stored, one commit a call.
//!
//! In: the lines from where the call before ended. Out: how many were taken. A call takes lines of
//! one kind until its commit is full; what is stored already is passed over without a write, so
//! that repeating a call, or the whole import, changes nothing.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::{
    ingest::{self, Restored},
    storage::{head::Loaded, keys::Keys, session::Life, store_session::Reader},
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int, limits,
    },
    config::Config,
    types::api::{Dialect, Piece, Timestamp},
};

use super::{
    super::portable::{ItemLine, LargeLine, Line, MessageLine, SummaryLine},
    progress::Progress,
    summaries,
};

/// Bytes of summaries in one commit; the rest of its 1 MiB is for what leads back to them.
const SUMMARIES_BYTES_MAX: usize = 512 << 10;
/// Records of one commit that are summaries or lead back to one.
const SUMMARIES_PUTS_MAX: usize = 160;

/// What the commit of this call will store.
enum Batch {
    Nothing,
    Messages(Messages),
    Summaries { lines: Vec<SummaryLine>, depth: u32, bytes: usize, puts: usize },
    Context(Vec<ItemLine>, Life),
}

/// Messages and what the progress is after each.
struct Messages {
    dialect: Dialect,
    texts: Vec<String>,
    times: Vec<Timestamp>,
    payload_tokens_min: Vec<Option<u32>>,
    bytes: usize,
    /// The running hash before the first.
    before: [u8; 16],
    after: Vec<Progress>,
}

/// What becomes of a line.
enum Take {
    /// It was taken.
    Taken,
    /// It was taken, and the commit has to be made.
    Last,
    /// It belongs to another commit.
    Stop,
}

/// Takes lines; returns how many.
///
/// # Errors
///
/// As [`super::import_page`].
pub(super) fn page(
    reader: &mut Reader<'_>,
    progress: &mut Progress,
    lines: &[String],
    now: Timestamp,
) -> Result<usize> {
    let mut writer = Writer { reader, stored: None, batch: Batch::Nothing, now };
    if let Some(section) = &mut progress.section {
        writer.enter(&section.conversation)?;
        if let Some(large) = section.pending.take()
            && writer.is_missing(large.seq)
        {
            writer.append_large(progress, &large)?;
            return Ok(0);
        }
    }
    let mut consumed = 0;
    // Where the context begins: it is taken as a whole or not at all.
    let mut before_context = None;
    for text in lines {
        let mut next = progress.clone();
        let line = next.open(text)?;
        if matches!(line, Line::Context(_)) && before_context.is_none() {
            before_context = Some((consumed, progress.clone()));
        }
        next.accept(&line)?;
        let take = writer.take(&line, progress, &mut next)?;
        if matches!(take, Take::Stop) {
            break;
        }
        *progress = next;
        consumed += 1;
        if matches!(take, Take::Last) {
            break;
        }
    }
    let unfinished = progress.section.is_some() && matches!(writer.batch, Batch::Context(..));
    if let Some((before, state)) = before_context.filter(|_| unfinished) {
        if before == 0 {
            return Err(Error::invalid(format_args!(
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

struct Writer<'r, 's> {
    reader: &'r mut Reader<'s>,
    /// The conversation as it is stored.
    stored: Option<(Keys, Loaded)>,
    batch: Batch,
    now: Timestamp,
}

impl Writer<'_, '_> {
    fn enter(&mut self, conversation: &str) -> Result<()> {
        let keys = Keys::new(conversation)?;
        let loaded = Loaded::of(self.reader, &keys, conversation)?;
        self.stored = Some((keys, loaded));
        Ok(())
    }

    /// Messages that are stored.
    fn newest(&self) -> u64 {
        self.stored.as_ref().map_or(0, |(_, loaded)| loaded.head.messages)
    }

    fn is_missing(&self, seq: u64) -> bool {
        seq > self.newest()
    }

    /// Whether more is stored than was exported: then nothing of the export is newer.
    fn has_gone_on(&self, progress: &Progress) -> bool {
        progress.section.as_ref().is_some_and(|section| self.newest() > section.messages)
    }

    fn take(&mut self, line: &Line, before: &Progress, next: &mut Progress) -> Result<Take> {
        match line {
            Line::Header(header) => {
                self.enter(&header.conversation)?;
                let Some((keys, loaded)) = &self.stored else { return Ok(Take::Taken) };
                super::compare(self.reader, next, keys, loaded)?;
                Ok(Take::Taken)
            }
            Line::Message(line) if self.is_missing(line.seq) => self.message(line, before, next),
            Line::Large(line) if self.is_missing(line.seq) && self.has_batch() => {
                let _ = line;
                Ok(Take::Stop)
            }
            Line::Piece(line) if self.is_missing(line.seq) => {
                let Some((large, _)) = large(before) else { return Ok(Take::Stop) };
                self.stage(large, line.offset, &line.text, next)
            }
            Line::Message(_) | Line::Large(_) | Line::Piece(_) => {
                let Some((_, loaded)) = &self.stored else { return Ok(Take::Taken) };
                let head = &loaded.head;
                if let Some(section) = &next.section {
                    section.same_messages(head.messages, &head.frontier)?;
                }
                Ok(Take::Taken)
            }
            Line::Summary(_) | Line::Context(_) if self.has_gone_on(next) => Ok(Take::Taken),
            Line::Summary(line) => Ok(self.summary(line)),
            Line::Context(items) => Ok(self.context(items, next)),
            // An end that follows its context belongs to the same commit.
            Line::End(_) if matches!(self.batch, Batch::Context(..)) => Ok(Take::Last),
            Line::End(_) if self.has_batch() => Ok(Take::Stop),
            Line::End(_) => self.end(before),
        }
    }

    fn has_batch(&self) -> bool {
        !matches!(self.batch, Batch::Nothing)
    }

    fn message(&mut self, line: &MessageLine, before: &Progress, next: &Progress) -> Result<Take> {
        if !self.has_batch() {
            self.batch = Batch::Messages(Messages {
                dialect: line.dialect,
                texts: Vec::new(),
                times: Vec::new(),
                payload_tokens_min: Vec::new(),
                bytes: 0,
                before: before.section.as_ref().map_or([0; 16], |section| section.running),
                after: Vec::new(),
            });
        }
        let Batch::Messages(batch) = &mut self.batch else { return Ok(Take::Stop) };
        let bytes = batch.bytes + line.text.len();
        if batch.dialect != line.dialect
            || batch.texts.len() == limits::BATCH_MESSAGES_MAX
            || bytes > limits::BATCH_BYTES_MAX
        {
            return Ok(Take::Stop);
        }
        batch.bytes = bytes;
        batch.texts.push(line.text.clone());
        batch.times.push(line.time);
        batch.payload_tokens_min.push(line.payload_tokens_min);
        batch.after.push(next.clone());
        Ok(Take::Taken)
    }

    fn stage(
        &mut self,
        large: &LargeLine,
        offset: u64,
        text: &str,
        next: &mut Progress,
    ) -> Result<Take> {
        let Some(section) = &mut next.section else { return Ok(Take::Stop) };
        if section.large.is_none() {
            section.pending = Some(*large);
        }
        let conversation = section.conversation.clone();
        let upload = hash::hex(&large.sha256);
        // Patterns are about what sessions say, not about copies of what was stored.
        let config = Config::default();
        let piece = Piece { upload: &upload, offset, text, extra_json: None };
        ingest::stage(self.reader, &config, &conversation, &piece, self.now)?;
        Ok(Take::Last)
    }

    fn append_large(&mut self, progress: &mut Progress, large: &LargeLine) -> Result<()> {
        let Some((keys, loaded)) = self.stored.take() else { return Ok(()) };
        let restored = Restored {
            dialect: large.dialect,
            texts: &[format!("@upload {}", hash::hex(&large.sha256))],
            times: &[large.time],
            payload_tokens_min: &[large.payload_tokens_min],
            frontier: Some(large.frontier),
        };
        follows(&loaded, large.seq, &loaded.head.frontier)?;
        ingest::restore(self.reader, &keys, loaded, &restored, self.now)?;
        progress.totals.ingested += 1;
        Ok(())
    }

    fn summary(&mut self, line: &SummaryLine) -> Take {
        // From above: the text, and as much again for its lists.
        let of_line = line.record.text.len() + (16 << 10);
        let puts_of_line = 1 + line.record.source_refs().len();
        match &mut self.batch {
            Batch::Nothing => {
                let (depth, bytes, puts) = (line.record.depth, of_line, puts_of_line);
                let lines = alloc::vec![line.clone()];
                self.batch = Batch::Summaries { lines, depth, bytes, puts };
                Take::Taken
            }
            // Sources are looked for in the store, so that they come with an earlier commit.
            Batch::Summaries { lines, depth, bytes, puts }
                if *depth == line.record.depth
                    && *bytes + of_line <= SUMMARIES_BYTES_MAX
                    && *puts + puts_of_line <= SUMMARIES_PUTS_MAX =>
            {
                lines.push(line.clone());
                *bytes += of_line;
                *puts += puts_of_line;
                Take::Taken
            }
            _ => Take::Stop,
        }
    }

    fn context(&mut self, items: &[ItemLine], next: &Progress) -> Take {
        match &mut self.batch {
            Batch::Nothing => {
                let life = next.section.as_ref().map(|section| section.life.clone());
                self.batch = Batch::Context(items.to_vec(), life.unwrap_or_default());
                Take::Taken
            }
            Batch::Context(all, _) => {
                all.extend_from_slice(items);
                Take::Taken
            }
            _ => Take::Stop,
        }
    }

    /// The end of a conversation without context: without messages, or with more than exported.
    fn end(&mut self, before: &Progress) -> Result<Take> {
        let missing = self.stored.as_ref().is_some_and(|(_, loaded)| loaded.bytes.is_none());
        match &before.section {
            Some(section) if missing => {
                self.batch = Batch::Context(Vec::new(), section.life.clone());
                Ok(Take::Last)
            }
            _ => Ok(Take::Taken),
        }
    }

    fn commit(self, progress: &mut Progress, consumed: usize) -> Result<usize> {
        let Self { reader, stored, batch, now } = self;
        let Some((keys, loaded)) = stored else { return Ok(consumed) };
        match batch {
            Batch::Nothing => Ok(consumed),
            Batch::Messages(batch) => {
                let count = batch.texts.len();
                let first = loaded.head.messages + 1;
                let reached = batch.after.first().and_then(|after| after.section.as_ref());
                let seq = reached.map_or(first, |section| section.seen);
                follows(&loaded, seq, &batch.before)?;
                let restored = Restored {
                    dialect: batch.dialect,
                    texts: &batch.texts,
                    times: &batch.times,
                    payload_tokens_min: &batch.payload_tokens_min,
                    frontier: None,
                };
                let receipt = ingest::restore(reader, &keys, loaded, &restored, now)?;
                let taken = int::to_usize(u64::from(receipt.ingested));
                let after = taken.checked_sub(1).and_then(|last| batch.after.into_iter().nth(last));
                *progress = after.ok_or_else(|| Error::corrupt("no message was taken"))?;
                progress.totals.ingested += u64::from(receipt.ingested);
                // All messages of the batch were the last lines of those that were consumed.
                Ok(consumed - (count - taken))
            }
            Batch::Summaries { lines, .. } => {
                let added = summaries::store(reader, &keys, loaded, &lines, now)?;
                progress.totals.summaries += added;
                Ok(consumed)
            }
            Batch::Context(items, life) => {
                let replaced = summaries::context(reader, &keys, loaded, &items, &life, now)?;
                progress.totals.contexts += u64::from(replaced);
                Ok(consumed)
            }
        }
    }
}

/// The large message whose pieces come.
fn large(progress: &Progress) -> Option<&(LargeLine, u64)> {
    progress.section.as_ref().and_then(|section| section.large.as_ref())
}

/// Refuses messages that do not follow the newest stored one.
fn follows(loaded: &Loaded, seq: u64, frontier: &[u8; 16]) -> Result<()> {
    if seq == loaded.head.messages + 1 && *frontier == loaded.head.frontier {
        return Ok(());
    }
    let conversation = &loaded.head.conversation;
    let message = format!("the conversation `{conversation}` changed while it was imported");
    Err(Error::new(ErrorCode::Conflict, message))
}
