//! Export: a conversation, or all of them, as lines that any store can take in again.
//!
//! In: a conversation and a cursor. Out: a page of lines. Everything that a summary, a message or
//! the context *is* goes along; what belongs to one store does not: the journal, models' guards
//! and ledgers, attempts, grants, the last question, uploads that no message refers to.

use crate::storage::pack::Placed;
use crate::storage::store_session::{self, Reader};
use alloc::string::String;
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    context::Item,
    head::{Head, Loaded},
    history::History,
    keys::{self, Keys},
    pack::Raw,
    session::Life,
    summary::{self, Summary},
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::Writer,
    limits,
};

use super::{
    cursor,
    portable::{self, FORMAT, Sum, dialect_name, line},
};

/// Bytes of lines on one page: as text of a JSON array they take up to twice that.
const PAGE_BYTES_MAX: usize = 512 << 10;

/// Where an export has come to: its cursor.
#[derive(Deserialize, Serialize)]
struct Progress {
    conversation: String,
    /// Whether the other conversations follow.
    all: bool,
    part: u64,
    parts: u64,
    lines: u64,
    sum: Sum,
    /// The revision that is exported; 0 before the header.
    revision: u64,
    stage: Stage,
}

impl Sound for Progress {
    fn is_sound(&self) -> bool {
        let (number, depth) = match self.stage {
            Stage::Header | Stage::End => (0, 0),
            Stage::Messages { seq, .. } => (seq, 0),
            Stage::Summaries { depth, count, .. } => (count, depth),
            Stage::Context { from } => (from, 0),
        };
        depth < 1 << 20
            && codec::countable(&[number, self.part, self.parts, self.lines, self.revision])
    }
}

/// What of a conversation comes next.
#[derive(Clone, Deserialize, Serialize)]
enum Stage {
    Header,
    /// The line of message `seq`, or with `piece` that piece of it, from 1.
    Messages {
        seq: u64,
        piece: u32,
    },
    /// Summaries of `depth` behind the key `after`; `count` are done, of this depth or not.
    Summaries {
        depth: u32,
        after: String,
        count: u64,
        found: bool,
    },
    Context {
        from: u64,
    },
    End,
}

/// One page of an export as `{"lines", "cursor"}`.
///
/// # Errors
///
/// `not-found`; `conflict`: the conversation moved on since the page before; `invalid-input`: the
/// cursor; errors of the store.
pub(crate) fn export_page(
    reader: &mut Reader<'_>,
    conversation: &str,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<String> {
    let mut progress = match cursor {
        None => begin(reader, conversation)?,
        Some(text) => cursor::read::<Progress>(text)
            .filter(|known| if known.all { "" } else { &known.conversation } == conversation)
            .ok_or_else(|| Error::invalid("cursor: not one of this export"))?,
    };
    let bytes_max = int::to_usize(u64::from(bytes_max)).min(PAGE_BYTES_MAX);
    let mut page = Page { lines: Writer::array(), bytes: 0, bytes_max };
    loop {
        let keys = Keys::new(&progress.conversation)?;
        let head = Loaded::of_existing(reader, &keys, &progress.conversation)?.head;
        if !matches!(progress.stage, Stage::Header) && progress.revision != head.revision {
            return Err(Error::conflict("the conversation moved on while it was exported"));
        }
        progress.revision = head.revision;
        let history = History { keys: &keys, head: &head };
        let mut section =
            Section { reader: &mut *reader, history, progress: &mut progress, page: &mut page };
        if !section.fill()? {
            break;
        }
        if progress.part == progress.parts {
            return Ok(page.answer(None));
        }
        progress.conversation = next(reader, Some(&keys))?.ok_or_else(|| {
            Error::conflict("conversations were removed while they were exported")
        })?;
        progress.part += 1;
        progress.stage = Stage::Header;
    }
    Ok(page.answer(Some(&cursor::write(&progress)?)))
}

fn begin(reader: &mut Reader<'_>, conversation: &str) -> Result<Progress> {
    let all = conversation.is_empty();
    let mut parts = 1;
    let mut first = String::from(conversation);
    if all {
        parts = 0;
        reader.scan(keys::NAMES, keys::NAMES_END, &mut |_, _| {
            parts += 1;
            Ok(())
        })?;
        first = next(reader, None)?
            .ok_or_else(|| Error::not_found("the store holds no conversation"))?;
    }
    Ok(Progress {
        conversation: first,
        all,
        part: 1,
        parts,
        lines: 0,
        sum: Sum::default(),
        revision: 0,
        stage: Stage::Header,
    })
}

/// The conversation behind this one in the order of their keys.
fn next(reader: &mut Reader<'_>, after: Option<&Keys>) -> Result<Option<String>> {
    let start = after.map_or_else(|| keys::NAMES.into(), |keys| store_session::after(&keys.name()));
    let (entries, _) = reader.page(&start, keys::NAMES_END, 1)?;
    let Some(entry) = entries.first() else { return Ok(None) };
    let (_, id): (String, String) = codec::decode(&entry.key, &entry.value)?;
    Ok(Some(id))
}

struct Page {
    lines: Writer,
    bytes: usize,
    bytes_max: usize,
}

impl Page {
    fn answer(self, cursor: Option<&str>) -> String {
        let mut answer = Writer::object();
        answer.text_or_null("cursor", cursor);
        answer.array_at("lines", self.lines);
        answer.end_object()
    }
}

/// The export of one conversation onto one page. Its methods return false when the page is full.
struct Section<'a, 's> {
    reader: &'a mut Reader<'s>,
    history: History<'a>,
    progress: &'a mut Progress,
    page: &'a mut Page,
}

impl Section<'_, '_> {
    fn head(&self) -> &Head {
        self.history.head
    }

    /// Everything that is still to come; true: it came to the end.
    fn fill(&mut self) -> Result<bool> {
        loop {
            let done = match self.progress.stage.clone() {
                Stage::Header => self.header()?,
                Stage::Messages { seq, piece } => self.messages(seq, piece)?,
                Stage::Summaries { depth, after, count, found } => {
                    self.summaries(depth, after, count, found)?
                }
                Stage::Context { from } => self.context(from)?,
                Stage::End => {
                    let Progress { part, parts, lines, .. } = *self.progress;
                    let mut end = line("end");
                    end.number("part", part);
                    end.number("parts", parts);
                    end.number("lines", lines + 1);
                    return Ok(self.put(end));
                }
            };
            if !done {
                return Ok(false);
            }
        }
    }

    fn put(&mut self, line: Writer) -> bool {
        let (text, sum) = portable::close(line, &self.progress.sum);
        let bytes = self.page.bytes.saturating_add(text.len());
        if !self.page.lines.is_empty() && bytes > self.page.bytes_max {
            return false;
        }
        self.page.bytes = bytes;
        self.page.lines.push_text(&text);
        self.progress.sum = sum;
        self.progress.lines += 1;
        true
    }

    fn header(&mut self) -> Result<bool> {
        let head = self.history.head;
        let mut header = line("header");
        header.text("format", FORMAT);
        header.text("conversation", &head.conversation);
        header.number("part", self.progress.part);
        header.number("parts", self.progress.parts);
        header.number("messages", head.messages);
        header.text("frontier", &hash::hex(&head.frontier));
        header.number("summaries", head.summaries);
        header.number("items", head.context.count());
        portable::write_life(&mut header, &Life::read(self.reader, self.history.keys, head)?);
        let done = self.put(header);
        if done {
            self.progress.stage = Stage::Messages { seq: 1, piece: 0 };
        }
        Ok(done)
    }

    fn messages(&mut self, mut seq: u64, mut piece: u32) -> Result<bool> {
        while seq <= self.head().messages {
            for placed in self.history.page(self.reader, seq, self.head().messages)? {
                seq = placed.seq;
                if !self.message(&placed, piece)? {
                    return Ok(false);
                }
                piece = 0;
            }
            seq += 1;
        }
        let after = String::new();
        self.progress.stage = Stage::Summaries { depth: 0, after, count: 0, found: false };
        Ok(true)
    }

    fn message(&mut self, placed: &Placed, mut piece: u32) -> Result<bool> {
        let seq = placed.seq;
        self.progress.stage = Stage::Messages { seq, piece };
        let begun = |kind: &str| {
            let mut line = line(kind);
            line.number("seq", seq);
            line.text("dialect", dialect_name(placed.dialect));
            line.time("time", placed.stored.time);
            if let Some(stand_in) = &placed.stored.stand_in {
                line.number("payload_tokens_min", stand_in.payload_tokens_min.into());
            }
            line
        };
        let (sha256, chunks) = match &placed.stored.raw {
            Raw::Inline(text) => {
                let mut line = begun("message");
                line.text("text", text);
                return Ok(self.put(line));
            }
            Raw::Chunked { sha256, chunks } => (sha256, chunks),
        };
        if piece == 0 {
            let mut large = begun("large");
            large.number("bytes", placed.stored.raw.bytes());
            large.text("sha256", &hash::hex(sha256));
            large.text("frontier", &hash::hex(&self.history.frontier(self.reader, seq)?));
            if !self.put(large) {
                return Ok(false);
            }
            piece = 1;
        }
        let mut offset = 0u64;
        for (number, bytes) in (0u32..).zip(chunks) {
            if number + 1 >= piece {
                self.progress.stage = Stage::Messages { seq, piece: number + 1 };
                let mut line = line("piece");
                line.number("seq", seq);
                line.number("offset", offset);
                line.text("text", &self.history.chunk(self.reader, sha256, number, *bytes)?);
                if !self.put(line) {
                    return Ok(false);
                }
            }
            offset += u64::from(*bytes);
        }
        Ok(true)
    }

    /// One depth after the other, so that sources come before what was derived from them.
    fn summaries(
        &mut self,
        mut depth: u32,
        mut after: String,
        mut count: u64,
        mut found: bool,
    ) -> Result<bool> {
        let (first, end) = self.history.keys.range("s");
        while count < self.head().summaries {
            let start = if after.is_empty() { first.clone() } else { store_session::after(&after) };
            let (entries, more) = self.reader.page(&start, &end, limits::CALL_BYTES_MAX)?;
            for entry in entries {
                let record: Summary = codec::decode(&entry.key, &entry.value)?;
                if record.depth == depth {
                    if !self.put(portable::write_summary(&record)) {
                        self.progress.stage = Stage::Summaries { depth, after, count, found };
                        return Ok(false);
                    }
                    (count, found) = (count + 1, true);
                }
                after = entry.key;
            }
            if more {
                continue;
            }
            if !found {
                return Err(Error::corrupt(format_args!(
                    "{count} summaries where the head counts {}",
                    self.head().summaries
                )));
            }
            (depth, after, found) = (depth + 1, String::new(), false);
        }
        self.progress.stage = Stage::Context { from: 0 };
        Ok(true)
    }

    fn context(&mut self, from: u64) -> Result<bool> {
        let History { keys, head } = self.history;
        let items = head.context.load(self.reader, keys)?;
        let rest = items.get(int::to_usize(from)..).unwrap_or(&[]);
        for (number, items) in (0u64..).zip(rest.chunks(portable::ITEMS_PER_LINE)) {
            let mut array = Writer::array();
            items.iter().for_each(|item| array.push_object(written(item)));
            let mut line = line("context");
            line.array_at("items", array);
            if !self.put(line) {
                let done = number * int::to_u64(portable::ITEMS_PER_LINE);
                self.progress.stage = Stage::Context { from: from + done };
                return Ok(false);
            }
        }
        self.progress.stage = Stage::End;
        Ok(true)
    }
}

fn written(item: &Item) -> Writer {
    let name = match item {
        Item::Run(_) | Item::Withdrawn { .. } => None,
        Item::Summary(found) => Some(summary::name(found.id)),
    };
    let mut object = Writer::object();
    object.text_or_null("summary", name.as_deref());
    object.number("seq_first", item.seq_first());
    object.number("seq_last", item.seq_last());
    if matches!(item, Item::Withdrawn { .. }) {
        object.flag("withdrawn", true);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(stage: Stage) -> Progress {
        Progress {
            conversation: "c".into(),
            all: false,
            part: 1,
            parts: 1,
            lines: 7,
            sum: [7; 8],
            revision: 3,
            stage,
        }
    }

    /// A host may hand over anything: what is no state, or one that arithmetic could not bear.
    #[test]
    fn a_cursor_that_is_none_is_refused() {
        let text = cursor::write(&state(Stage::Messages { seq: 5, piece: 2 })).unwrap();
        assert_eq!(cursor::read::<Progress>(&text).unwrap().lines, 7);
        for none in ["", "{}", "00", "0100", "zz", text.get(2..).unwrap()] {
            assert!(cursor::read::<Progress>(none).is_none(), "{none}");
        }
        let far = [
            Progress { lines: u64::MAX, ..state(Stage::End) },
            Progress { part: u64::MAX, ..state(Stage::End) },
            state(Stage::Messages { seq: u64::MAX, piece: 0 }),
            state(Stage::Context { from: u64::MAX }),
            state(Stage::Summaries {
                depth: u32::MAX,
                after: String::new(),
                count: 0,
                found: true,
            }),
        ];
        for state in &far {
            assert!(cursor::read::<Progress>(&cursor::write(state).unwrap()).is_none());
        }
    }
}
