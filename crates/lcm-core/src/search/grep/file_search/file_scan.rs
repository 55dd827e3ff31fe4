//! Scan of the files in messages, one file after another, up to a byte limit.
//!
//! Input: the messages with payloads, in scan order. Output: passages as hits, and the position at
//! which the scan stopped. Elsewhere: selecting these messages (`file_search`).

use crate::search::payload_holders;
use crate::storage::pack::PlacedMessage;
use alloc::{string::String, vec::Vec};

use super::super::{
    cursor::join_file_cursor, pattern::too_costly_error, results::GrepResults,
    searched_conversation::SearchedConversation,
};
use crate::{
    search::passages::{PassageFinder, PassageQuery, PassageStart, TextPassage},
    storage::{
        codec,
        history::MessageHistory,
        payload_text::{self, PayloadPart},
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{error::Result, int, sort},
    message::large_payload::{self, PayloadRecord, SeekPoint},
    types::api::Timestamp,
};

/// Byte limit of the file scan of one query. The stored text of a scanned payload takes its bytes
/// from the limit, each message and each record also a cost below. The scan of messages has another
/// limit: the steps of the regular expression.
const SCAN_BYTES_MAX: u64 = 3 << 20;
/// Bytes that the lookup of one message's payloads takes from the limit, besides the bytes of the
/// message's text.
const MESSAGE_COST_BYTES: u64 = 4 << 10;
/// Bytes that each scanned file takes from the limit for its record, besides the bytes of its text.
const RECORD_COST_BYTES: u64 = 1 << 10;
/// Most messages whose payloads are looked up together.
const MESSAGES_PER_STEP: usize = 16;
/// Most payload records read in one call.
const RECORDS_PER_READ: usize = 64;
/// Least bytes of text between a seek point and the first searched byte: word boundaries depend on
/// the text before a match. Without such a seek point, the file is read from its beginning.
const CONTEXT_BYTES: u64 = 1 << 10;

/// A message that holds at least one payload.
#[derive(Clone, Copy)]
pub(super) struct PayloadHolder {
    pub(super) conversation_number: usize,
    pub(super) seq: u64,
    pub(super) time: Timestamp,
}

/// Position at which a scan begins.
#[derive(Clone, Copy)]
pub(super) struct FileScanStart {
    pub(super) conversation_number: usize,
    pub(super) seq: u64,
    /// Id of the file at which the scan begins; `None`: the first file of the message.
    pub(super) id: Option<[u8; 8]>,
    /// Byte of the file's decoded text at which the scan begins; 0 if `id` is `None`.
    pub(super) byte: u64,
}

/// A passage of a file that matches the query.
pub(super) struct FileHit {
    pub(super) conversation_number: usize,
    pub(super) placed: PlacedMessage,
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) name: Option<String>,
    pub(super) passage: TextPassage,
    pub(super) rank: u64,
}

/// Progress of a scan through files.
pub(super) struct FileScan<'q> {
    query: PassageQuery<'q>,
    /// Ids of the named files; `None`: all files.
    named_ids: Option<Vec<[u8; 8]>>,
    /// Position at which the scan begins; `None`: the scan has reached the position, or begins with
    /// the first message.
    start: Option<FileScanStart>,
    /// Messages with payloads that match the filters, in scan order.
    holders: &'q [PayloadHolder],
    /// Index of the holder at which this scan begins; earlier pages scanned the holders before.
    first_holder: usize,
    /// All `holders` as conversation number and seq, ascending.
    matching_messages: Vec<(usize, u64)>,
    /// Conversations for which `earlier_mentions` was read.
    loaded_conversations: Vec<usize>,
    /// Payload ids that messages before `first_holder` contain: conversation number, seq and id. Of
    /// each conversation, at most 512 messages are read, and only when a file needs them.
    earlier_mentions: Vec<(usize, u64, [u8; 8])>,
    /// Files that the scan reached at an older holder, because their newest holder does not match
    /// the filters. Such a file was scanned at the older holder, or skipped because an earlier page
    /// reached the file. At further holders the scan skips the file.
    scanned_files: Vec<(usize, [u8; 8])>,
    /// Bytes of the limit that are left.
    bytes_left: u64,
    /// Whether no file was scanned yet: the first file may use the whole limit.
    is_first: bool,
    pub(super) hits: Vec<FileHit>,
}

/// A payload with its record.
struct PayloadFile {
    id: [u8; 8],
    record: PayloadRecord,
    /// First byte of the text of the file at which a match may begin.
    search_from: u64,
}

/// A message with the ids of its payloads.
struct HolderPayloads<'p> {
    holder: PayloadHolder,
    placed: &'p PlacedMessage,
    ids: Vec<[u8; 8]>,
    /// Whether the message may have more ids than were looked up.
    may_have_more: bool,
}

impl<'q> FileScan<'q> {
    pub(super) fn new(
        query: PassageQuery<'q>,
        named_ids: Option<Vec<[u8; 8]>>,
        start: Option<FileScanStart>,
        holders: &'q [PayloadHolder],
        first_holder: usize,
    ) -> Self {
        let mut matching_messages: Vec<(usize, u64)> =
            holders.iter().map(|holder| (holder.conversation_number, holder.seq)).collect();
        sort::sort(&mut matching_messages);
        Self {
            query,
            named_ids,
            start,
            holders,
            first_holder,
            matching_messages,
            loaded_conversations: Vec::new(),
            earlier_mentions: Vec::new(),
            scanned_files: Vec::new(),
            bytes_left: SCAN_BYTES_MAX,
            is_first: true,
            hits: Vec::new(),
        }
    }

    /// Scans the files of the messages in order. `results.next_cursor` says where the scan stopped;
    /// `None`: all files were scanned.
    pub(super) fn scan_holders(
        &mut self,
        session: &mut StoreSession<'_>,
        conversations: &[SearchedConversation],
        results: &mut GrepResults,
    ) -> Result<()> {
        let mut holders = self.holders.get(self.first_holder..).unwrap_or_default();
        let mut is_begun = false;
        while let Some(first) = holders.first() {
            let Some(conversation) = conversations.get(first.conversation_number) else { break };
            if self.bytes_left == 0 && is_begun {
                let id = conversation.keys.message_id(first.seq);
                results.next_cursor = Some(id);
                return Ok(());
            }
            is_begun = true;
            conversation.enter_conversation(session);
            let history = conversation.message_history();
            let count = holders
                .iter()
                .take_while(|holder| holder.conversation_number == first.conversation_number)
                .count();
            let batch = holders.get(..count.min(MESSAGES_PER_STEP)).unwrap_or_default();
            let mut seqs: Vec<u64> = batch.iter().map(|holder| holder.seq).collect();
            sort::sort_numbers(&mut seqs);
            let placed = history.read_messages_at(session, &seqs)?;
            let steps = self.read_payload_ids(session, &history, batch, &placed)?;
            results.has_more |= steps.iter().any(|step| step.may_have_more);
            holders = holders.get(steps.len().max(1)..).unwrap_or_default();
            if self.scan_files(session, &history, &steps, results)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the payload ids of these messages until the byte limit is reached, but of at least one
    /// message. Stops at a message that is not in `placed`. If the query names files, keeps only
    /// the ids of these files.
    fn read_payload_ids<'p>(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        holders: &[PayloadHolder],
        placed: &'p [PlacedMessage],
    ) -> Result<Vec<HolderPayloads<'p>>> {
        let mut steps = Vec::new();
        for holder in holders {
            if self.bytes_left == 0 && !steps.is_empty() {
                break;
            }
            let at = placed.binary_search_by_key(&holder.seq, |placed| placed.seq).ok();
            let Some(placed) = at.and_then(|at| placed.get(at)) else { break };
            let text = history.read_rendered_text(session, &placed.stored)?;
            let mut ids = large_payload::find_ids(&text);
            // At this number `find_ids` stops, so the message may have more ids.
            let may_have_more = ids.len() == large_payload::IDS_MAX;
            if let Some(named) = &self.named_ids {
                ids.retain(|id| named.contains(id));
            }
            let cost = MESSAGE_COST_BYTES + int::to_u64(text.len() + ids.len());
            self.bytes_left = self.bytes_left.saturating_sub(cost);
            steps.push(HolderPayloads { holder: *holder, placed, ids, may_have_more });
        }
        Ok(steps)
    }

    /// Scans the files of these messages. Returns `true` if the scan stopped at a byte of a file;
    /// `results.next_cursor` then names file and byte.
    fn scan_files(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        steps: &[HolderPayloads<'_>],
        results: &mut GrepResults,
    ) -> Result<bool> {
        let ids = |step: &HolderPayloads<'_>| step.ids.clone();
        let all: Vec<[u8; 8]> = steps.iter().flat_map(ids).collect();
        let mut files = Vec::new();
        for ids in all.chunks(RECORDS_PER_READ) {
            let keys: Vec<String> = ids.iter().map(|id| history.keys.payload_key(*id)).collect();
            for (key, value) in keys.iter().zip(session.read_uncached(&keys)?) {
                files.push(
                    value.map(|value| codec::decode::<PayloadRecord>(key, &value)).transpose()?,
                );
            }
        }
        let mut files = files.into_iter();
        for step in steps {
            for (id, file) in step.ids.iter().zip(files.by_ref()) {
                let Some(record) = file else { continue };
                let mut file = PayloadFile { id: *id, record, search_from: 0 };
                if !self.is_newest_holder(session, history, &step.holder, &file)? {
                    continue;
                }
                let Some(start) = self.take_start_byte(&step.holder, *id) else { continue };
                file.search_from = start;
                let (next, has_more) = self.scan_file(session, history, step, &file)?;
                results.has_more |= has_more;
                if let Some(byte) = next {
                    let name = large_payload::format_name(*id);
                    results.next_cursor = Some(join_file_cursor(&name, byte));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns whether the file is scanned at this message: whether the message is the newest
    /// matching message that holds the file.
    ///
    /// The payload record names the newest holder, the newest message of the conversation that
    /// holds the file. If the newest holder matches, the file is scanned there only. If a grant, a
    /// filter or the time window excludes the newest holder, the file is scanned at the first older
    /// holder that the scan reaches. Then the file is not scanned again, neither in this call nor
    /// on later pages. At a message that only names the file, the file is never scanned.
    fn is_newest_holder(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        holder: &PayloadHolder,
        file: &PayloadFile,
    ) -> Result<bool> {
        let (id, record) = (file.id, &file.record);
        payload_holders::ensure_not_newer_than_head(session, history, id, record)?;
        if record.seq <= holder.seq
            || self
                .matching_messages
                .binary_search(&(holder.conversation_number, record.seq))
                .is_ok()
            || !payload_holders::contains_payload(session, history, holder.seq, id)?
        {
            return Ok(record.seq == holder.seq);
        }
        if !self.loaded_conversations.contains(&holder.conversation_number) {
            self.loaded_conversations.push(holder.conversation_number);
            let earlier = self.holders.get(..self.first_holder).unwrap_or_default();
            let here = earlier
                .iter()
                .rev()
                .filter(|other| other.conversation_number == holder.conversation_number);
            let seqs: Vec<u64> = here.map(|holder| holder.seq).collect();
            payload_holders::for_each_mention(session, history, &seqs, &mut |seq, ids| {
                self.earlier_mentions
                    .extend(ids.into_iter().map(|id| (holder.conversation_number, seq, id)));
            })?;
        }
        let file_key = (holder.conversation_number, id);
        if self.scanned_files.contains(&file_key) {
            return Ok(false);
        }
        self.scanned_files.push(file_key);
        for (_, seq, _) in
            self.earlier_mentions.iter().filter(|mention| (mention.0, mention.2) == file_key)
        {
            if payload_holders::contains_payload(session, history, *seq, id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the byte at which the scan of a file begins; `None`: the file lies before the start
    /// of the scan.
    fn take_start_byte(&mut self, holder: &PayloadHolder, id: [u8; 8]) -> Option<u64> {
        let Some(start) = self.start else { return Some(0) };
        let is_there =
            (start.conversation_number, start.seq) == (holder.conversation_number, holder.seq);
        if is_there && start.id.is_some_and(|other| other != id) {
            return None;
        }
        self.start = None;
        Some(if is_there { start.byte } else { 0 })
    }

    /// Scans a file from `search_from` on. Returns the byte at which the scan stopped, and whether
    /// the file has more passages than were kept. `None` in place of the byte: no later passage is
    /// needed. If no bytes of the limit are left, nothing is read and the byte is `search_from`.
    fn scan_file(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        step: &HolderPayloads<'_>,
        file: &PayloadFile,
    ) -> Result<(Option<u64>, bool)> {
        let PayloadFile { record, search_from, .. } = file;
        let search_from = *search_from;
        let bytes_max = if self.is_first { SCAN_BYTES_MAX } else { self.bytes_left };
        if bytes_max == 0 {
            return Ok((Some(search_from), false));
        }
        let is_before = |point: &&SeekPoint| u64::from(point.bytes) + CONTEXT_BYTES <= search_from;
        let before = record.place.seek_points.iter().take_while(is_before);
        let seek_point = before.last().copied().unwrap_or_default();
        let start = u64::from(record.place.start);
        let from = start + u64::from(seek_point.at);
        let end = start + u64::from(record.place.length);
        let to = end.min(from + bytes_max);
        // The offsets in the record apply to the message that the record names.
        for placed in history.read_messages_at(session, &[record.seq])? {
            history.prefetch_text_range(session, &placed.stored.raw, (from, to))?;
        }
        let begin = PassageStart {
            byte: u64::from(seek_point.bytes),
            line_ends: u64::from(seek_point.line_ends),
            search_from,
            is_json: !record.place.is_text,
        };
        let mut passages = PassageFinder::new(&mut self.query, begin);
        let part = PayloadPart { file: record, start: seek_point, written_bytes_max: bytes_max };
        let (read, is_complete) =
            payload_text::for_each_text(session, history, &part, &mut |text| {
                passages.push_text(text)
            })?;
        let found = passages.finish(is_complete);
        if let PassageQuery::Regex(regex) = &self.query
            && regex.is_refused()
            && self.is_first
            && found.passages.is_empty()
            && found.next == Some(search_from)
        {
            return Err(too_costly_error());
        }
        self.bytes_left = self.bytes_left.saturating_sub(read + RECORD_COST_BYTES);
        self.is_first = false;
        let kind = record.kind.as_str();
        self.hits.extend(found.passages.into_iter().map(|passage| {
            let conversation_number = step.holder.conversation_number;
            let placed = step.placed.clone();
            let (id, name) = (large_payload::format_name(file.id), record.name.clone());
            FileHit { conversation_number, placed, id, kind, name, passage, rank: 0 }
        }));
        Ok((found.next, found.has_more))
    }
}
