//! How far an import has come, and what may come next: the order and the hashes of an export.
//!
//! In: lines, one after the other. Out: the same state whichever page they came on, which is also
//! the cursor. Nothing here reads the store.

use alloc::{boxed::Box, string::String};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    keys::Keys,
    pack,
    session::Life,
    summary::Sources,
};
use lcm_text::{
    base::{
        derivation_version::RULES,
        error::{Error, Result},
        int, limits, tokens,
    },
    message,
};

use super::super::{
    cursor,
    portable::{
        self, EndLine, FORMAT, Header, ItemLine, LargeLine, Line, MessageLine, PieceLine, Sum,
        SummaryLine,
    },
};

/// What was stored.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Totals {
    /// Messages of the export.
    pub(super) messages: u64,
    pub(super) ingested: u64,
    pub(super) summaries: u64,
    pub(super) contexts: u64,
}

/// Where an import has come to: its cursor.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct Progress {
    /// Lines that were taken.
    lines: u64,
    sum: Sum,
    /// The sum of the whole export, once it was verified; then it is written.
    pub(super) verified: Option<Sum>,
    /// Whether the last line was taken.
    pub(super) ended: bool,
    pub(super) part: u64,
    parts: u64,
    /// Boxed, because states are copied line by line.
    pub(super) section: Option<Box<Section>>,
    pub(super) totals: Totals,
}

/// The conversation that is being taken.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Section {
    pub(super) conversation: String,
    pub(super) messages: u64,
    pub(super) frontier: [u8; 16],
    summaries: u64,
    items: u64,
    pub(super) life: Life,
    /// Messages that were seen, and the running hash after them.
    pub(super) seen: u64,
    pub(super) running: [u8; 16],
    /// A message whose pieces follow, and how many bytes of them were seen.
    pub(super) large: Option<(LargeLine, u64)>,
    /// A message whose pieces are staged and that is to be stored next.
    pub(super) pending: Option<LargeLine>,
    seen_summaries: u64,
    depth: u32,
    pub(super) seen_items: u64,
    /// Last seq that an item stands for.
    covered: u64,
    /// Messages in the store when the section began, and their running hash.
    pub(super) stored: u64,
    pub(super) stored_frontier: [u8; 16],
}

impl Sound for Progress {
    fn is_sound(&self) -> bool {
        let Totals { messages, ingested, summaries, contexts } = self.totals;
        codec::countable(&[self.lines, self.part, self.parts])
            && codec::countable(&[messages, ingested, summaries, contexts])
            && self.section.as_ref().is_none_or(|section| section.is_sound())
    }
}

impl Sound for Section {
    fn is_sound(&self) -> bool {
        let large = self
            .large
            .as_ref()
            .is_none_or(|(line, bytes)| line.is_sound() && codec::countable(&[*bytes]));
        large
            && self.life.is_sound()
            && self.pending.as_ref().is_none_or(Sound::is_sound)
            && codec::countable(&[self.messages, self.summaries, self.items, self.seen])
            && codec::countable(&[self.seen_summaries, self.seen_items, self.covered, self.stored])
    }
}

impl Progress {
    pub(super) fn read(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::default()) };
        cursor::read(text).ok_or_else(|| Error::invalid("cursor: not one of an import"))
    }

    pub(super) fn text(&self) -> Result<String> {
        cursor::write(self)
    }

    /// The beginning of the second time.
    pub(super) fn rewound(&self) -> Self {
        Self { verified: Some(self.sum), ..Self::default() }
    }

    /// What is wrong with the next line.
    pub(super) fn wrong(&self, what: &str) -> Error {
        Error::invalid(format_args!("line {} {what}", self.lines + 1))
    }

    /// The next line, if its sum fits.
    pub(super) fn open(&mut self, text: &str) -> Result<Line> {
        if self.ended {
            return Err(self.wrong("stands behind the end of the export"));
        }
        let (line, sum) =
            portable::open(text, &self.sum).map_err(|what| self.wrong(&what.message))?;
        self.sum = sum;
        Ok(line)
    }

    /// Takes a line whose sum fits, if it may stand here.
    pub(super) fn accept(&mut self, line: &Line) -> Result<()> {
        let taken = match (line, &mut self.section) {
            (Line::Header(header), None) => self.header(header),
            (Line::Header(_), Some(_)) | (_, None) => Err(Error::invalid("stands out of order")),
            (Line::Message(line), Some(section)) => section.message(line),
            (Line::Large(line), Some(section)) => section.large(line),
            (Line::Piece(line), Some(section)) => section.piece(line),
            (Line::Summary(line), Some(section)) => section.summary(line),
            (Line::Context(items), Some(section)) => section.context(items),
            (Line::End(line), Some(section)) => section.is_whole().and_then(|()| self.end(line)),
        };
        let placed = |error: Error| {
            Error::new(error.code, self.wrong(&error.message).into_failure().message)
        };
        taken.map_err(placed)?;
        self.lines += 1;
        Ok(())
    }

    fn header(&mut self, header: &Header) -> Result<()> {
        if header.format != FORMAT {
            return Err(Error::invalid(format_args!(
                "is of the format `{}`; this engine reads `{FORMAT}`",
                header.format
            )));
        }
        let counts = [header.messages, header.summaries, header.items, header.parts];
        let first = self.part == 0 || header.parts == self.parts;
        if header.part != self.part + 1
            || header.part > header.parts
            || !first
            || !codec::countable(&counts)
        {
            return Err(Error::invalid("stands out of order"));
        }
        let successor = header.life.archived.as_ref().and_then(|(_, successor)| successor.as_ref());
        for name in header.life.family.iter().chain(successor).chain([&header.conversation]) {
            Keys::new(name)?;
        }
        (self.part, self.parts) = (header.part, header.parts);
        self.totals.messages += header.messages;
        self.section = Some(Box::new(Section {
            conversation: header.conversation.clone(),
            messages: header.messages,
            frontier: header.frontier,
            summaries: header.summaries,
            items: header.items,
            life: header.life.clone(),
            seen: 0,
            running: [0; 16],
            large: None,
            pending: None,
            seen_summaries: 0,
            depth: 0,
            seen_items: 0,
            covered: 0,
            stored: 0,
            stored_frontier: [0; 16],
        }));
        Ok(())
    }

    fn end(&mut self, line: &EndLine) -> Result<()> {
        if line.part != self.part || line.parts != self.parts || line.lines != self.lines + 1 {
            return Err(Error::invalid("counts other lines than there are"));
        }
        self.section = None;
        self.ended = self.part == self.parts;
        if self.ended && self.verified.is_some_and(|verified| verified != self.sum) {
            return Err(Error::invalid("ends another export than the one that was verified"));
        }
        Ok(())
    }
}

fn refused(what: &str) -> Result<()> {
    Err(Error::invalid(what))
}

impl Section {
    /// Whether message `seq` may come next.
    fn may_follow(&self, seq: u64) -> Result<()> {
        let in_order = seq == self.seen + 1
            && seq <= self.messages
            && self.large.is_none()
            && self.seen_summaries == 0
            && self.seen_items == 0;
        if in_order { Ok(()) } else { refused("stands out of order") }
    }

    fn message(&mut self, line: &MessageLine) -> Result<()> {
        self.may_follow(line.seq)?;
        if line.text.len() > portable::INLINE_BYTES_MAX {
            return refused("holds a text that has to come in pieces");
        }
        let message = message::project(line.dialect, &line.text)?;
        let hash = pack::message_hash(&line.text, &message);
        self.running = pack::advance(&self.running, &hash);
        self.seen = line.seq;
        Ok(())
    }

    fn large(&mut self, line: &LargeLine) -> Result<()> {
        self.may_follow(line.seq)?;
        let inline = int::to_u64(portable::INLINE_BYTES_MAX);
        if line.bytes <= inline || line.bytes > limits::MESSAGE_BYTES_MAX {
            return refused("has a size that no large message has");
        }
        self.large = Some((*line, 0));
        Ok(())
    }

    fn piece(&mut self, line: &PieceLine) -> Result<()> {
        let Some((large, bytes)) = &mut self.large else { return refused("stands out of order") };
        let end = line.offset.saturating_add(int::to_u64(line.text.len()));
        let sized = !line.text.is_empty() && line.text.len() <= limits::CHUNK_BYTES_MAX;
        if line.seq != large.seq || line.offset != *bytes || end > large.bytes || !sized {
            return refused("is not the next piece of its message");
        }
        *bytes = end;
        if end == large.bytes {
            self.running = large.frontier;
            self.seen = large.seq;
            self.large = None;
        }
        Ok(())
    }

    /// Whether every message was seen, and they are those of the header.
    fn has_messages(&self) -> Result<()> {
        if self.seen != self.messages || self.large.is_some() {
            return refused("comes before all messages have");
        }
        if self.running != self.frontier {
            return refused("follows other messages than those of the header");
        }
        Ok(())
    }

    fn summary(&mut self, line: &SummaryLine) -> Result<()> {
        self.has_messages()?;
        let record = &line.record;
        if record.depth < self.depth
            || self.seen_summaries == self.summaries
            || self.seen_items > 0
            || record.seq_last > self.messages
        {
            return refused("stands out of order");
        }
        let counted = || record.rules != RULES || record.tokens == tokens::estimate(&record.text);
        if line.id != record.id() || !counted() {
            return refused("holds another summary than its id says");
        }
        let kind = match &record.sources {
            Sources::Messages { .. } => record.depth == 0,
            Sources::Summaries(list) => {
                record.depth > 0 && list.len() >= 2 && list.len() <= limits::SOURCES_MAX
            }
        };
        let listed = record.file_ids.len() <= limits::FILE_IDS_MAX
            && record.model.len() <= limits::MODEL_BYTES_MAX;
        if !kind || !listed {
            return refused("is no sound summary");
        }
        self.depth = record.depth;
        self.seen_summaries += 1;
        Ok(())
    }

    fn context(&mut self, items: &[ItemLine]) -> Result<()> {
        self.has_messages()?;
        if self.seen_summaries != self.summaries {
            return refused("comes before all summaries have");
        }
        if items.is_empty() || items.len() > portable::ITEMS_PER_LINE {
            return refused("has no items, or too many");
        }
        for item in items {
            if item.seq_first != self.covered + 1 || item.seq_last < item.seq_first {
                return refused("leaves messages out of the context");
            }
            self.covered = item.seq_last;
            self.seen_items += 1;
        }
        if self.covered > self.messages || self.seen_items > self.items {
            return refused("has more items than there are messages");
        }
        Ok(())
    }

    /// Whether everything that the header counts was seen.
    fn is_whole(&self) -> Result<()> {
        self.has_messages()?;
        let whole = self.seen_summaries == self.summaries
            && self.seen_items == self.items
            && self.covered == self.messages;
        if whole { Ok(()) } else { refused("comes before all that the header counts") }
    }
}
