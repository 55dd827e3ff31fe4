//! Export: one conversation, or all conversations, as lines that any store can import.
//!
//! In: a conversation and a cursor. Out: a page of lines. An export has the versions of the system
//! messages, messages, summaries with how they left the context, the withdrawn ranges and branches,
//! the context, the family and the archive record. All other records are left out. An import
//! derives identities and search index anew. Other records belong to one store, such as journal,
//! ledger, grants, usage, vectors, focus brief, and uploads that no message refers to.

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    context::ContextItem,
    conversation_list,
    head::{ConversationHead, LoadedHead},
    history::MessageHistory,
    keys::ConversationKeys,
    pack::{PlacedMessage, RawText},
    records::{remakes::RemakeRecord, system_slot, withdrawals::Withdrawals},
    session::SessionLifecycle,
    store_session::StoreSession,
    summary::{self, Summary},
    summary_records,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::JsonWriter,
    limits,
};

use super::{
    cursor,
    export_format::{self, FORMAT, LineChecksum, SummaryPlace, begin_line},
};

/// Maximum bytes of the lines on one page with several lines. Escapes in the JSON array may double
/// them.
const PAGE_BYTES_MAX: usize = 512 << 10;

/// Progress of an export, encoded as its cursor.
#[derive(Deserialize, Serialize)]
struct ExportProgress {
    /// The conversation of the next line.
    conversation: String,
    /// Whether the export covers all conversations.
    all: bool,
    /// Number of the conversation in the export, from 1.
    part: u64,
    /// Number of conversations in the export.
    parts: u64,
    /// Number of lines written so far.
    lines: u64,
    checksum: LineChecksum,
    /// Revision of the conversation when its header was written; not compared before that.
    revision: u64,
    stage: ExportStage,
}

impl SoundRecord for ExportProgress {
    fn is_sound(&self) -> bool {
        let (number, depth) = match self.stage {
            ExportStage::Header | ExportStage::End => (0, 0),
            ExportStage::System { place, pieces } => (place.max(pieces), 0),
            ExportStage::Messages { seq, .. } => (seq, 0),
            ExportStage::Summaries { depth, count, .. } => (count, depth),
            ExportStage::Withdrawn { from } | ExportStage::Context { from } => (from, 0),
        };
        depth < 1 << 20
            && codec::are_countable(&[number, self.part, self.parts, self.lines, self.revision])
    }
}

/// The position of the next line in the export of a conversation.
#[derive(Clone, Deserialize, Serialize)]
enum ExportStage {
    Header,
    /// The version of the system messages at this place, from 0. The next line is the piece after
    /// the first `pieces` of its large texts; after all pieces, the line of the version.
    System {
        place: u64,
        pieces: u64,
    },
    /// The line of message `seq` if `piece` is 0, else the piece of its text with this number, from
    /// 1.
    Messages {
        seq: u64,
        piece: u32,
    },
    /// The next summary of `depth` with a key after `after`; an empty `after` precedes all keys. So
    /// far `count` summaries of any depth were written, with `found` at least one of this depth.
    Summaries {
        depth: u32,
        after: String,
        count: u64,
        found: bool,
    },
    /// The line that begins with the withdrawn range of this index, from 0; after the last range,
    /// the line of the branches.
    Withdrawn {
        from: u64,
    },
    /// The line that begins with the context item of this index, from 0.
    Context {
        from: u64,
    },
    End,
}

/// Returns one page of an export as `{"lines", "cursor"}`; a `cursor` of null ends the export.
///
/// An empty `conversation` exports all conversations. Without `cursor` the export begins. A page
/// has at most `bytes_max` bytes of lines and at most 512 KiB, but at least one line.
///
/// # Errors
///
/// - `not-found`: the conversation does not exist, or the store has no conversation.
/// - `conflict`: a conversation changed or was removed during its export.
/// - `invalid-input`: the cursor belongs to another export.
/// - `denied`: a conversation is being deleted.
/// - Errors of the store.
pub(crate) fn export_page(
    session: &mut StoreSession<'_>,
    conversation: &str,
    cursor: Option<&str>,
    bytes_max: u32,
) -> Result<String> {
    let mut progress = match cursor {
        None => begin_export(session, conversation)?,
        Some(text) => cursor::read::<ExportProgress>(text)
            .filter(|known| if known.all { "" } else { &known.conversation } == conversation)
            .ok_or_else(foreign_cursor_error)?,
    };
    let bytes_max = int::to_usize(u64::from(bytes_max)).min(PAGE_BYTES_MAX);
    let mut page = ExportPage { lines: JsonWriter::new_array(), bytes: 0, bytes_max };
    loop {
        let keys = ConversationKeys::new(&progress.conversation)?;
        let head = LoadedHead::load_existing(session, &keys, &progress.conversation)?.head;
        if !matches!(progress.stage, ExportStage::Header) && progress.revision != head.revision {
            return Err(Error::revision_conflict(
                "the conversation changed during its export; start the export again",
            ));
        }
        progress.revision = head.revision;
        let history = MessageHistory { keys: &keys, head: &head };
        let mut section = SectionExporter {
            session: &mut *session,
            history,
            progress: &mut progress,
            page: &mut page,
        };
        if !section.fill_page()? {
            break;
        }
        if progress.part == progress.parts {
            return Ok(page.into_response(None));
        }
        progress.conversation = conversation_list::next_conversation(session, Some(&keys))?
            .ok_or_else(|| {
                Error::revision_conflict(
                    "a conversation was removed during the export; start the export again",
                )
            })?;
        progress.part += 1;
        progress.stage = ExportStage::Header;
    }
    Ok(page.into_response(Some(&cursor::write(&progress)?)))
}

#[cold]
fn foreign_cursor_error() -> Error {
    Error::invalid_input("`cursor` must be a cursor that this export returned")
}

fn begin_export(session: &mut StoreSession<'_>, conversation: &str) -> Result<ExportProgress> {
    let all = conversation.is_empty();
    let (first, parts) = if all {
        let first = conversation_list::next_conversation(session, None)?
            .ok_or_else(|| Error::not_found("the store has no conversation to export"))?;
        (first, conversation_list::count_conversations(session)?)
    } else {
        (conversation.into(), 1)
    };
    Ok(ExportProgress {
        conversation: first,
        all,
        part: 1,
        parts,
        lines: 0,
        checksum: LineChecksum::default(),
        revision: 0,
        stage: ExportStage::Header,
    })
}

struct ExportPage {
    lines: JsonWriter,
    bytes: usize,
    bytes_max: usize,
}

impl ExportPage {
    fn into_response(self, cursor: Option<&str>) -> String {
        let mut answer = JsonWriter::new_object();
        answer.add_optional_text("cursor", cursor);
        answer.add_array("lines", self.lines);
        answer.end_object()
    }
}

/// Writes the lines of one conversation to one page. Methods that write return false if the page is
/// full; `progress` then names the line that did not fit.
struct SectionExporter<'a, 's> {
    session: &'a mut StoreSession<'s>,
    history: MessageHistory<'a>,
    progress: &'a mut ExportProgress,
    page: &'a mut ExportPage,
}

impl SectionExporter<'_, '_> {
    fn current_head(&self) -> &ConversationHead {
        self.history.head
    }

    /// Writes the remaining lines of the conversation as far as they fit; returns whether the end
    /// line was written.
    fn fill_page(&mut self) -> Result<bool> {
        loop {
            let done = match self.progress.stage.clone() {
                ExportStage::Header => self.write_header()?,
                ExportStage::System { place, pieces } => self.write_system(place, pieces)?,
                ExportStage::Messages { seq, piece } => self.write_messages(seq, piece)?,
                ExportStage::Summaries { depth, after, count, found } => {
                    self.write_summaries(depth, after, count, found)?
                }
                ExportStage::Withdrawn { from } => self.write_withdrawn(from)?,
                ExportStage::Context { from } => self.write_context(from)?,
                ExportStage::End => {
                    let ExportProgress { part, parts, lines, .. } = *self.progress;
                    let mut end = begin_line("end");
                    end.add_number("part", part);
                    end.add_number("parts", parts);
                    end.add_number("lines", lines + 1);
                    return Ok(self.push_line(end));
                }
            };
            if !done {
                return Ok(false);
            }
        }
    }

    fn push_line(&mut self, line: JsonWriter) -> bool {
        let (text, sum) = export_format::close_line(line, &self.progress.checksum);
        let bytes = self.page.bytes.saturating_add(text.len());
        if !self.page.lines.is_empty() && bytes > self.page.bytes_max {
            return false;
        }
        self.page.bytes = bytes;
        self.page.lines.push_text(&text);
        self.progress.checksum = sum;
        self.progress.lines += 1;
        true
    }

    fn write_header(&mut self) -> Result<bool> {
        let head = self.history.head;
        let mut header = begin_line("header");
        header.add_text("format", FORMAT);
        header.add_text("conversation", &head.conversation);
        header.add_number("part", self.progress.part);
        header.add_number("parts", self.progress.parts);
        header.add_number("messages", head.messages);
        header.add_text("frontier", &hash::hex(&head.frontier));
        header.add_number("summaries", head.summaries);
        header.add_number("items", head.context.count_items());
        let Withdrawals { ranges, branches, .. } = self.read_withdrawals()?;
        let withdrawn = ranges.len() + branches.len();
        if withdrawn > 0 {
            header.add_number("withdrawn", int::to_u64(withdrawn));
        }
        export_format::write_session(
            &mut header,
            &SessionLifecycle::read(self.session, self.history.keys, head)?,
        );
        let done = self.push_line(header);
        if done {
            self.progress.stage = ExportStage::System { place: 0, pieces: 0 };
        }
        Ok(done)
    }

    /// Writes the versions of the system messages, each after the pieces of its large texts.
    fn write_system(&mut self, place: u64, mut pieces: u64) -> Result<bool> {
        let versions = system_slot::list_versions(self.session, &self.history)?;
        for (place, stored) in (0u64..).zip(&versions).skip(int::to_usize(place)) {
            let mut number = 0;
            for message in &stored.version.messages {
                let RawText::Chunked { sha256, chunks } = &message.raw else { continue };
                let mut offset = 0u64;
                for (chunk, bytes) in (0u32..).zip(chunks) {
                    if number >= pieces {
                        self.progress.stage = ExportStage::System { place, pieces: number };
                        let mut line = begin_line("system_piece");
                        line.add_text("sha256", &hash::hex(sha256));
                        line.add_number("offset", offset);
                        line.add_text(
                            "text",
                            &self.history.read_chunk(self.session, sha256, chunk, *bytes)?,
                        );
                        if !self.push_line(line) {
                            return Ok(false);
                        }
                    }
                    (number, offset) = (number + 1, offset + u64::from(*bytes));
                }
            }
            self.progress.stage = ExportStage::System { place, pieces: number };
            let texts = stored.version.read_texts(self.session, &self.history)?;
            if !self.push_line(export_format::write_system(&stored.version, &texts)) {
                return Ok(false);
            }
            pieces = 0;
        }
        self.progress.stage = ExportStage::Messages { seq: 1, piece: 0 };
        Ok(true)
    }

    fn write_messages(&mut self, mut seq: u64, mut piece: u32) -> Result<bool> {
        while seq <= self.current_head().messages {
            for placed in self.history.read_page(self.session, seq, self.current_head().messages)? {
                seq = placed.seq;
                if !self.write_message(&placed, piece)? {
                    return Ok(false);
                }
                piece = 0;
            }
            seq += 1;
        }
        let after = String::new();
        self.progress.stage = ExportStage::Summaries { depth: 0, after, count: 0, found: false };
        Ok(true)
    }

    fn write_message(&mut self, placed: &PlacedMessage, mut piece: u32) -> Result<bool> {
        let seq = placed.seq;
        self.progress.stage = ExportStage::Messages { seq, piece };
        let begin_message = |kind: &str| {
            let mut line = begin_line(kind);
            line.add_number("seq", seq);
            line.add_text("dialect", placed.dialect.as_str());
            line.add_message_time("time", placed.stored.time);
            if let Some(placeholder) = &placed.stored.placeholder {
                line.add_number("payload_tokens_min", placeholder.payload_tokens_min.into());
            }
            line
        };
        let (sha256, chunks) = match &placed.stored.raw {
            RawText::Inline(text) => {
                let mut line = begin_message("message");
                line.add_text("text", text);
                return Ok(self.push_line(line));
            }
            RawText::Chunked { sha256, chunks } => (sha256, chunks),
        };
        if piece == 0 {
            let mut large = begin_message("large");
            large.add_number("bytes", placed.stored.raw.bytes());
            large.add_text("sha256", &hash::hex(sha256));
            large.add_text("frontier", &hash::hex(&self.history.frontier_at(self.session, seq)?));
            if !self.push_line(large) {
                return Ok(false);
            }
            piece = 1;
        }
        let mut offset = 0u64;
        for (number, bytes) in (0u32..).zip(chunks) {
            if number + 1 >= piece {
                self.progress.stage = ExportStage::Messages { seq, piece: number + 1 };
                let mut line = begin_line("piece");
                line.add_number("seq", seq);
                line.add_number("offset", offset);
                line.add_text(
                    "text",
                    &self.history.read_chunk(self.session, sha256, number, *bytes)?,
                );
                if !self.push_line(line) {
                    return Ok(false);
                }
            }
            offset += u64::from(*bytes);
        }
        Ok(true)
    }

    /// Writes the summaries in order of depth, so that each summary follows its sources.
    fn write_summaries(
        &mut self,
        mut depth: u32,
        mut after: String,
        mut count: u64,
        mut found: bool,
    ) -> Result<bool> {
        let MessageHistory { keys, head } = self.history;
        let remakes = RemakeRecord::read(self.session, keys, head)?;
        while count < self.current_head().summaries {
            let cursor = Some(after.as_str()).filter(|after| !after.is_empty());
            let page = summary_records::read_summary_page(
                self.session,
                keys,
                cursor,
                limits::CALL_BYTES_MAX,
            )?
            .ok_or_else(foreign_cursor_error)?;
            for (key, record) in page.summaries {
                if record.depth == depth {
                    let place = self.find_place(&remakes, &record)?;
                    if !self.push_line(export_format::write_summary(&record, place)) {
                        self.progress.stage = ExportStage::Summaries { depth, after, count, found };
                        return Ok(false);
                    }
                    (count, found) = (count + 1, true);
                }
                after = key;
            }
            if page.has_more {
                continue;
            }
            if !found {
                return Err(Error::corrupt_store(format_args!(
                    "the head counts {} summaries, the store has {count}",
                    self.current_head().summaries
                )));
            }
            (depth, after, found) = (depth + 1, String::new(), false);
        }
        self.progress.stage = ExportStage::Withdrawn { from: 0 };
        Ok(true)
    }

    /// Returns how a summary left the context and whether it is superseded. The import cannot
    /// derive this from the records alone.
    fn find_place(&mut self, remakes: &RemakeRecord, record: &Summary) -> Result<SummaryPlace> {
        let (keys, id) = (self.history.keys, record.id());
        if !remakes.has_exits() {
            return Ok(SummaryPlace::default());
        }
        let sources = record.source_refs().iter();
        let derived: Vec<_> = sources.map(|source| Summary::derived_key(keys, source.id)).collect();
        let derived = self.session.read_records(&derived)?;
        let is_other = |found: [u8; 8]| found != id && !remakes.is_in_chain(id, found);
        let is_superseded = derived.into_iter().flatten().any(is_other);
        Ok(SummaryPlace { exit: remakes.find_exit(id), is_superseded })
    }

    fn read_withdrawals(&mut self) -> Result<Withdrawals> {
        let key = Withdrawals::key(self.history.keys);
        Ok(self.session.read_record(&key)?.unwrap_or_default())
    }

    fn write_withdrawn(&mut self, from: u64) -> Result<bool> {
        let withdrawals = self.read_withdrawals()?;
        let rest = withdrawals.ranges.get(int::to_usize(from)..).unwrap_or(&[]);
        for (number, ranges) in (0u64..).zip(rest.chunks(export_format::ITEMS_PER_LINE)) {
            if !self.push_line(export_format::write_ranges(ranges)) {
                let done = number * int::to_u64(export_format::ITEMS_PER_LINE);
                self.progress.stage = ExportStage::Withdrawn { from: from + done };
                return Ok(false);
            }
        }
        let branches = &withdrawals.branches;
        if !branches.is_empty() && !self.push_line(export_format::write_branches(branches)) {
            let from = int::to_u64(withdrawals.ranges.len());
            self.progress.stage = ExportStage::Withdrawn { from };
            return Ok(false);
        }
        self.progress.stage = ExportStage::Context { from: 0 };
        Ok(true)
    }

    fn write_context(&mut self, from: u64) -> Result<bool> {
        let MessageHistory { keys, head } = self.history;
        let items = head.context.load_items(self.session, keys)?;
        let rest = items.get(int::to_usize(from)..).unwrap_or(&[]);
        for (number, items) in (0u64..).zip(rest.chunks(export_format::ITEMS_PER_LINE)) {
            let mut array = JsonWriter::new_array();
            items.iter().for_each(|item| array.push_object(build_item(item)));
            let mut line = begin_line("context");
            line.add_array("items", array);
            if !self.push_line(line) {
                let done = number * int::to_u64(export_format::ITEMS_PER_LINE);
                self.progress.stage = ExportStage::Context { from: from + done };
                return Ok(false);
            }
        }
        self.progress.stage = ExportStage::End;
        Ok(true)
    }
}

fn build_item(item: &ContextItem) -> JsonWriter {
    let name = match item {
        ContextItem::Run(_) | ContextItem::Withdrawn { .. } => None,
        ContextItem::Summary(found) => Some(summary::format_summary_id(found.id)),
    };
    let mut object = JsonWriter::new_object();
    object.add_optional_text("summary", name.as_deref());
    object.add_number("seq_first", item.seq_first());
    object.add_number("seq_last", item.seq_last());
    if matches!(item, ContextItem::Withdrawn { .. }) {
        object.add_flag("withdrawn", true);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(stage: ExportStage) -> ExportProgress {
        ExportProgress {
            conversation: "c".into(),
            all: false,
            part: 1,
            parts: 1,
            lines: 7,
            checksum: [7; 8],
            revision: 3,
            stage,
        }
    }

    /// A host may pass any text: other records, and numbers that would overflow.
    #[test]
    fn a_cursor_that_is_none_is_refused() {
        let text = cursor::write(&state(ExportStage::Messages { seq: 5, piece: 2 })).unwrap();
        assert_eq!(cursor::read::<ExportProgress>(&text).unwrap().lines, 7);
        for none in ["", "{}", "00", "0100", "zz", text.get(2..).unwrap()] {
            assert!(cursor::read::<ExportProgress>(none).is_none(), "{none}");
        }
        let far = [
            ExportProgress { lines: u64::MAX, ..state(ExportStage::End) },
            ExportProgress { part: u64::MAX, ..state(ExportStage::End) },
            state(ExportStage::Messages { seq: u64::MAX, piece: 0 }),
            state(ExportStage::Context { from: u64::MAX }),
            state(ExportStage::System { place: 0, pieces: u64::MAX }),
            state(ExportStage::Summaries {
                depth: u32::MAX,
                after: String::new(),
                count: 0,
                found: true,
            }),
        ];
        for state in &far {
            assert!(cursor::read::<ExportProgress>(&cursor::write(state).unwrap()).is_none());
        }
    }
}
