//! Search in the texts of large payloads, which are indexed only in part.
//!
//! Input: a query. Output: passages of payloads, each with line and byte. A feature term in the
//! index finds the messages with payloads. These are scanned newest first, up to a byte limit, and
//! the answer says where the scan stopped ([`file_scan`]).
//! Elsewhere: finding passages in a text ([`crate::search::passages`]).

mod file_scan;

use crate::search::payload_holders;
use alloc::{boxed::Box, string::String, vec::Vec};

use self::file_scan::{FileHit, FileScan};
use super::{GrepBounds, GrepPattern, GrepResults, SearchedConversation, render_hits::RenderedHit};
use crate::{
    search::{
        Corpus, SearchIndex,
        full_text::{self, CorpusMatches},
        passages::{PassageQuery, WordMatcher},
        score,
        text_query::TextQuery,
    },
    storage::{
        codec, history::MessageHistory, payload_text, records::grants, store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, ByteSpan, JsonFields, JsonWriter},
        limits, sort, tokens,
    },
    message::large_payload::{self, PayloadRecord},
    types::api::Timestamp,
};

/// Options of a query that select files and the start of the scan.
#[derive(Debug, Default)]
pub(super) struct FileSearchOptions {
    /// Ids of the files to search; `None`: all files.
    ids: Option<Vec<String>>,
    /// Id of the file or message at which the scan begins; everything before is skipped. For
    /// messages and summaries: the text of a [`super::cursor::ScanCursor`].
    start_id: Option<String>,
    /// Byte of that file at which the scan begins.
    start_byte: u64,
}

impl FileSearchOptions {
    /// Parses the file options of a query.
    ///
    /// # Errors
    ///
    /// `invalid-input`: more than 64 files, a start byte without a start file, or file options in a
    /// query with another scope.
    pub(super) fn read(fields: &mut JsonFields<'_>, is_meant: bool) -> Result<Self> {
        let ids = fields.take_optional_texts("file_ids");
        let start_byte = fields.take_optional_u64("start_byte");
        let start = fields.take_optional_text("start_id");
        // `unscanned_from` always has a byte, which is 0 outside files: such a byte is accepted.
        let is_byte = start_byte.is_some_and(|byte| byte > 0 || start.is_none());
        if !is_meant && (ids.is_some() || is_byte) {
            return Err(Error::invalid_input(
                "`file_ids` and `start_byte` require the scope `files`",
            ));
        }
        let count = ids.as_ref().map_or(0, Vec::len);
        if count > limits::FILE_IDS_MAX {
            let most = limits::FILE_IDS_MAX;
            return Err(Error::invalid_input(format_args!(
                "`file_ids` must have at most {most} ids, got {count}"
            )));
        }
        let alone = ids.as_ref().filter(|_| start_byte.is_some() && count == 1);
        let start = start.or_else(|| alone?.first().cloned());
        if start_byte.is_some() && start.is_none() {
            return Err(Error::invalid_input(
                "`start_byte` requires `start_id`, or exactly one id in `file_ids`",
            ));
        }
        Ok(Self { ids, start_id: start, start_byte: start_byte.unwrap_or(0) })
    }

    /// Returns the id at which the scan begins.
    pub(super) fn start_id(&self) -> Option<&str> {
        self.start_id.as_deref()
    }
}

/// A message that holds at least one payload.
#[derive(Clone, Copy)]
struct PayloadHolder {
    conversation_number: usize,
    seq: u64,
    time: Timestamp,
}

/// A file that the query names, and the newest message that holds the file.
struct NamedFile {
    conversation_number: usize,
    seq: u64,
    id: [u8; 8],
}

/// Position at which a scan begins.
#[derive(Clone, Copy)]
struct FileScanStart {
    conversation_number: usize,
    seq: u64,
    /// Id of the file; `None`: the first file of the message.
    id: Option<[u8; 8]>,
    byte: u64,
}

/// Searches the texts of files.
///
/// # Errors
///
/// `not-found`: a named file, or the start of the scan; `limit-exceeded`: the regular expression;
/// as [`SearchIndex::read_postings`].
pub(super) fn search_files(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    sought: &mut GrepPattern,
    bounds: &GrepBounds,
    asked: &FileSearchOptions,
) -> Result<GrepResults> {
    let named = match &asked.ids {
        Some(names) => Some(resolve_files(reader, places, names)?),
        None => None,
    };
    let query = if let GrepPattern::Text(query) = sought { Some(&*query) } else { None };
    let is_cut = query.is_some_and(|query| query.is_cut);
    let holders = list_holders(reader, places, indexes, query, bounds, named.as_deref())?;
    let start = resolve_start(reader, places, &holders, asked)?;
    let mut begin = 0;
    if let Some(start) = &start {
        let at = holders.iter().position(|one| {
            (one.conversation_number, one.seq) == (start.conversation_number, start.seq)
        });
        begin = at.ok_or_else(super::foreign_cursor_error)?;
    }
    let mut answered = GrepResults { is_cut, ..GrepResults::default() };
    let wanted = match sought {
        GrepPattern::Text(query) => {
            WordMatcher::new(query).map(|words| PassageQuery::Words(Box::new(words)))
        }
        GrepPattern::Regex(regex) => Some(PassageQuery::Regex(regex)),
    };
    let Some(wanted) = wanted else { return Ok(answered) };
    let named = named.map(|named| named.into_iter().map(|one| one.id).collect::<Vec<_>>());
    let mut scan = FileScan::new(wanted, named, start, &holders, begin);
    scan.scan_holders(reader, places, &mut answered)?;
    let mut hits = scan.hits;
    answered.total = int::to_u64(hits.len());
    rank_hits(&mut hits, bounds);
    hits.truncate(bounds.limit);
    for hit in &hits {
        answered.rows.extend(
            places
                .get(hit.conversation_number)
                .map(|place| render_file_hit(reader, place, hit))
                .transpose()?,
        );
    }
    Ok(answered)
}

/// Lists the messages with payloads that match the filters, in scan order (newest first).
fn list_holders(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    query: Option<&TextQuery>,
    bounds: &GrepBounds,
    named: Option<&[NamedFile]>,
) -> Result<Vec<PayloadHolder>> {
    let mut holders = Vec::new();
    let wanted = TextQuery::for_payloads(query);
    for ((number, place), index) in places.iter().enumerate().zip(indexes) {
        place.enter_conversation(reader);
        let of_place = named.map(|named| {
            let of_place = named.iter().filter(|one| one.conversation_number == number);
            of_place.map(|one| one.seq).collect::<Vec<u64>>()
        });
        if of_place.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut found = find_conversation_holders(reader, place, index, &wanted, bounds)?;
        // If the newest message of each named file matches, older messages need no scan.
        let fits = |seq: &u64| found.iter().any(|(_, known)| known == seq);
        if let Some(seqs) = of_place.filter(|seqs| seqs.iter().all(fits)) {
            found.retain(|(_, seq)| seqs.contains(seq));
        }
        holders.extend(found.into_iter().map(|(time, seq)| PayloadHolder {
            conversation_number: number,
            seq,
            time,
        }));
    }
    sort::sort_by(&mut holders, &mut |a, b| {
        (b.time, a.conversation_number, b.seq).cmp(&(a.time, b.conversation_number, a.seq))
    });
    Ok(holders)
}

/// Finds the named files that the caller may read.
fn resolve_files(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    names: &[String],
) -> Result<Vec<NamedFile>> {
    let mut out = Vec::new();
    for name in names {
        let before = out.len();
        if let Some(id) = large_payload::parse_name(name) {
            let keys: Vec<String> = places.iter().map(|place| place.keys.payload_key(id)).collect();
            let values = reader.read_uncached(&keys)?;
            for (((place, known), key), value) in places.iter().enumerate().zip(&keys).zip(values) {
                let Some(value) = value else { continue };
                let file: PayloadRecord = codec::decode(key, &value)?;
                known.enter_conversation(reader);
                let history = MessageHistory { keys: &known.keys, head: &known.loaded.head };
                let spans = known.spans.as_deref();
                if payload_holders::find_newest_holder(reader, &history, id, &file, spans)?
                    .is_some()
                {
                    out.push(NamedFile { conversation_number: place, seq: file.seq, id });
                }
            }
        }
        if out.len() == before {
            return Err(Error::not_found(format_args!(
                "file `{name}` does not exist in the searched conversations"
            )));
        }
    }
    Ok(out)
}

/// Finds the position at which the scan begins; `None`: at the newest message.
fn resolve_start(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    holders: &[PayloadHolder],
    asked: &FileSearchOptions,
) -> Result<Option<FileScanStart>> {
    let Some(name) = &asked.start_id else { return Ok(None) };
    let byte = asked.start_byte;
    let message = places.iter().enumerate().find_map(|(number, place)| {
        Some(FileScanStart {
            conversation_number: number,
            seq: place.keys.parse_message_id(name)?,
            id: None,
            byte: 0,
        })
    });
    if message.is_some() {
        return Ok(message);
    }
    let found = resolve_files(reader, places, core::slice::from_ref(name))?;
    let Some((one, place)) =
        found.first().and_then(|one| Some((one, places.get(one.conversation_number)?)))
    else {
        return Ok(None);
    };
    let of_place =
        holders.iter().filter(|holder| holder.conversation_number == one.conversation_number);
    let seqs: Vec<u64> = of_place.map(|holder| holder.seq).collect();
    let mut seq = seqs.contains(&one.seq).then_some(one.seq);
    if seq.is_none() {
        place.enter_conversation(reader);
        let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
        seq = payload_holders::find_holder_among(reader, &history, one.id, &seqs)?;
    }
    let seq = seq.ok_or_else(super::foreign_cursor_error)?;
    Ok(Some(FileScanStart {
        conversation_number: one.conversation_number,
        seq,
        id: Some(one.id),
        byte,
    }))
}

/// Returns times and seqs of the messages of a conversation that hold payloads and match.
fn find_conversation_holders(
    reader: &mut StoreSession<'_>,
    place: &SearchedConversation,
    index: &mut SearchIndex,
    wanted: &TextQuery,
    bounds: &GrepBounds,
) -> Result<Vec<(Timestamp, u64)>> {
    let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
    let gathered: CorpusMatches =
        full_text::gather_matches(reader, &history, index, Corpus::Messages, wanted)?;
    let window = bounds.window.intersection(&wanted.window);
    let statistics = &gathered.statistics;
    let ranked =
        gathered.rank_documents(reader, &history, index, wanted, &window, statistics, false)?;
    let mut documents = ranked.documents;
    documents.retain(|seq| grants::is_within(place.spans.as_deref(), *seq, *seq));
    let times = gathered.read_times(reader, index, &documents)?;
    Ok(times.into_iter().zip(documents).collect())
}

/// Sorts hits by rank. Equal ranks keep the order of the scan, newest file first.
fn rank_hits(hits: &mut [FileHit], bounds: &GrepBounds) {
    for hit in hits.iter_mut() {
        hit.rank = bounds.rank_hit(hit.passage.score, hit.placed.stored.time);
    }
    sort::sort_by(hits, &mut |a, b| b.rank.cmp(&a.rank));
}

/// Renders a hit in a file.
fn render_file_hit(
    reader: &mut StoreSession<'_>,
    place: &SearchedConversation,
    hit: &FileHit,
) -> Result<RenderedHit> {
    place.enter_conversation(reader);
    let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
    let (stored, passage) = (&hit.placed.stored, &hit.passage);
    let entry_id = match stored.entry_id {
        Some(span) => Some(read_string(reader, &history, hit.placed.seq, span)?),
        None => None,
    };
    let mut w = JsonWriter::new_object();
    w.add_number("byte", passage.byte);
    w.add_text("conversation", &place.name);
    w.add_time("created_at", stored.time);
    w.add_optional_text("entry_id", entry_id.as_deref());
    w.add_text("id", &hit.id);
    w.add_text("kind", hit.kind);
    w.add_number("line", passage.line);
    w.add_optional_text("name", hit.name.as_deref());
    w.add_text("role", stored.role.as_str());
    w.add_optional_number("score", passage.score.map(score::to_thousandths));
    w.add_number("seq", hit.placed.seq);
    passage.snippet.write(&mut w);
    w.add_text("type", "file");
    Ok(RenderedHit { json: w.end_object(), tokens: tokens::estimate(&passage.snippet.text) })
}

/// Reads one JSON string of a message without reading the whole message.
fn read_string(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    span: ByteSpan,
) -> Result<String> {
    let from = u64::from(span.start);
    let range = (from, from + u64::from(span.length));
    let mut written = String::new();
    payload_text::for_each_message_chunk(reader, history, seq, range, &mut |piece, _| {
        written.push_str(piece);
        true
    })?;
    Ok(json::text(&written, ByteSpan { start: 0, ..span }).into_owned())
}
