//! Search in files: finds passages in the texts of large payloads.
//!
//! Input: the pattern and the file options of a query. Output: rendered passages, each with line
//! and byte. A feature term in the index finds the messages with payloads. Their files are scanned
//! newest first, up to a byte limit, and the results say where the scan stopped ([`file_scan`]).
//! Elsewhere: finding passages in a text ([`crate::search::passages`]).

mod file_scan;

use crate::search::payload_holders;
use alloc::{boxed::Box, string::String, vec::Vec};

use self::file_scan::{FileHit, FileScan, FileScanStart, PayloadHolder};
use super::{
    bounds::GrepBounds,
    cursor::{foreign_cursor_error, split_file_cursor},
    file_options::FileSearchOptions,
    pattern::GrepPattern,
    render_hits::RenderedHit,
    results::GrepResults,
    searched_conversation::{GrepContext, SearchedConversation},
};
use crate::{
    search::{
        corpus::Corpus,
        full_text::{self, FullTextContext, NeighbourHits},
        index_reader::SearchIndex,
        passages::{PassageQuery, WordMatcher},
        score,
        text_query::TextQuery,
    },
    storage::{
        codec, history::MessageHistory, payload_text, records::grants, store_session::StoreSession,
        withdrawn_mark,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, ByteSpan, JsonWriter},
        sort, tokens,
    },
    message::large_payload::{self, PayloadRecord},
    types::api::Timestamp,
};

/// A file that the query names. `seq` is the newest message that holds the file; filters or the
/// grant may exclude this message from the search.
struct NamedFile {
    conversation_number: usize,
    seq: u64,
    id: [u8; 8],
}

/// Searches the texts of files. Hits beyond `limit` are counted, but no later page has them.
///
/// # Errors
///
/// - `not-found`: a named file, or the file of the cursor, does not exist in the searched
///   conversations.
/// - `invalid-input`: the filters exclude the message or the file of the cursor.
/// - `limit-exceeded`: the regular expression exceeds its steps in the first file, or a filter
///   costs too much.
/// - `conflict`: the conversation has changed.
/// - `corrupt`: a record or the index is damaged.
/// - `unsupported`: a record has a newer format.
/// - Errors of the store.
pub(super) fn search_files(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    pattern: &mut GrepPattern,
    options: &FileSearchOptions,
) -> Result<GrepResults> {
    let named = match &options.ids {
        Some(names) => Some(resolve_files(session, context.conversations, names)?),
        None => None,
    };
    let query = if let GrepPattern::Text(query) = pattern { Some(&*query) } else { None };
    let is_cut = query.is_some_and(|query| query.is_cut);
    let holders = list_holders(session, context, query, named.as_deref())?;
    let start = resolve_start(session, context.conversations, &holders, options)?;
    let mut first_holder = 0;
    if let Some(start) = &start {
        let at = holders.iter().position(|holder| {
            (holder.conversation_number, holder.seq) == (start.conversation_number, start.seq)
        });
        first_holder = at.ok_or_else(foreign_cursor_error)?;
    }
    let mut results = GrepResults { is_cut, ..GrepResults::default() };
    let passage_query = match pattern {
        GrepPattern::Text(query) => {
            WordMatcher::new(query).map(|words| PassageQuery::Words(Box::new(words)))
        }
        GrepPattern::Regex(regex) => Some(PassageQuery::Regex(regex)),
    };
    let Some(passage_query) = passage_query else { return Ok(results) };
    let named = named.map(|named| named.into_iter().map(|file| file.id).collect::<Vec<_>>());
    let mut scan = FileScan::new(passage_query, named, start, &holders, first_holder);
    scan.scan_holders(session, context.conversations, &mut results)?;
    let mut hits = scan.hits;
    results.total = int::to_u64(hits.len());
    rank_hits(&mut hits, context.bounds);
    hits.truncate(context.bounds.limit);
    for hit in &hits {
        results.rows.extend(
            context
                .conversations
                .get(hit.conversation_number)
                .map(|conversation| render_file_hit(session, conversation, hit))
                .transpose()?,
        );
    }
    Ok(results)
}

/// Lists the messages with payloads that match the filters of the query, in scan order: newest
/// first. With named files, lists only messages of conversations that hold such a file. If the
/// newest holder of each named file matches, lists only these holders.
fn list_holders(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    query: Option<&TextQuery>,
    named: Option<&[NamedFile]>,
) -> Result<Vec<PayloadHolder>> {
    let mut holders = Vec::new();
    let query = TextQuery::for_payloads(query);
    for (number, conversation, index) in context.iter() {
        conversation.enter_conversation(session);
        let seqs = named.map(|named| {
            let here = named.iter().filter(|file| file.conversation_number == number);
            here.map(|file| file.seq).collect::<Vec<u64>>()
        });
        if seqs.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut found =
            find_conversation_holders(session, conversation, index, &query, context.bounds)?;
        // If the newest message of each named file matches, older messages need no scan.
        let is_match = |seq: &u64| found.iter().any(|(_, known)| known == seq);
        if let Some(seqs) = seqs.filter(|seqs| seqs.iter().all(is_match)) {
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

/// Finds each named file in all searched conversations in which the caller may read a message that
/// holds the file.
///
/// # Errors
///
/// `not-found`: a name is found in no conversation; `conflict`: a conversation has changed;
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
fn resolve_files(
    session: &mut StoreSession<'_>,
    conversations: &[SearchedConversation],
    names: &[String],
) -> Result<Vec<NamedFile>> {
    let mut out = Vec::new();
    for name in names {
        let before = out.len();
        if let Some(id) = large_payload::parse_name(name) {
            let keys: Vec<String> = conversations
                .iter()
                .map(|conversation| conversation.keys.payload_key(id))
                .collect();
            let values = session.read_uncached(&keys)?;
            for (((number, entry), key), value) in
                conversations.iter().enumerate().zip(&keys).zip(values)
            {
                let Some(value) = value else { continue };
                let file: PayloadRecord = codec::decode(key, &value)?;
                entry.enter_conversation(session);
                let history = entry.message_history();
                let spans = entry.spans.as_deref();
                if payload_holders::find_newest_holder(session, &history, id, &file, spans)?
                    .is_some()
                {
                    out.push(NamedFile { conversation_number: number, seq: file.seq, id });
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

/// Finds the position at which the scan begins, from the cursor or from `start_byte`. `None`: the
/// query has neither, so the scan begins with the newest message.
fn resolve_start(
    session: &mut StoreSession<'_>,
    conversations: &[SearchedConversation],
    holders: &[PayloadHolder],
    options: &FileSearchOptions,
) -> Result<Option<FileScanStart>> {
    let Some(cursor) = options.start_position() else { return Ok(None) };
    let (name, byte) = split_file_cursor(cursor);
    let name = String::from(name);
    let message = conversations.iter().enumerate().find_map(|(number, conversation)| {
        Some(FileScanStart {
            conversation_number: number,
            seq: conversation.keys.parse_message_id(&name)?,
            id: None,
            byte: 0,
        })
    });
    if message.is_some() {
        return Ok(message);
    }
    let found = resolve_files(session, conversations, core::slice::from_ref(&name))?;
    let Some((file, conversation)) =
        found.first().and_then(|file| Some((file, conversations.get(file.conversation_number)?)))
    else {
        return Ok(None);
    };
    let here =
        holders.iter().filter(|holder| holder.conversation_number == file.conversation_number);
    let seqs: Vec<u64> = here.map(|holder| holder.seq).collect();
    let mut seq = seqs.contains(&file.seq).then_some(file.seq);
    if seq.is_none() {
        conversation.enter_conversation(session);
        let history = conversation.message_history();
        seq = payload_holders::find_holder_among(session, &history, file.id, &seqs)?;
    }
    let seq = seq.ok_or_else(foreign_cursor_error)?;
    Ok(Some(FileScanStart {
        conversation_number: file.conversation_number,
        seq,
        id: Some(file.id),
        byte,
    }))
}

/// Returns times and seqs of the messages of a conversation that hold payloads and match the
/// filters, the time window and the grant. The words of the query are not compared here.
fn find_conversation_holders(
    session: &mut StoreSession<'_>,
    conversation: &SearchedConversation,
    index: &SearchIndex,
    query: &TextQuery,
    bounds: &GrepBounds,
) -> Result<Vec<(Timestamp, u64)>> {
    let history = conversation.message_history();
    let search = FullTextContext::new(&history, index, query, bounds.window);
    let gathered = full_text::gather_matches(session, &search, Corpus::Messages)?;
    let statistics = &gathered.statistics;
    let ranked = gathered.rank_documents(session, &search, statistics, NeighbourHits::Exclude)?;
    let mut documents = ranked.documents;
    documents.retain(|seq| grants::is_within(conversation.spans.as_deref(), *seq, *seq));
    let times = gathered.read_times(session, index, &documents)?;
    Ok(times.into_iter().zip(documents).collect())
}

/// Sets the rank of each hit, and sorts by rank, greatest first. Equal ranks keep the order of the
/// scan, newest file first.
fn rank_hits(hits: &mut [FileHit], bounds: &GrepBounds) {
    for hit in hits.iter_mut() {
        hit.rank = bounds.rank_hit(hit.passage.score, hit.placed.stored.time);
    }
    sort::sort_by(hits, &mut |a, b| b.rank.cmp(&a.rank));
}

/// Renders a hit in a file as JSON.
fn render_file_hit(
    session: &mut StoreSession<'_>,
    conversation: &SearchedConversation,
    hit: &FileHit,
) -> Result<RenderedHit> {
    conversation.enter_conversation(session);
    let history = conversation.message_history();
    let (stored, passage) = (&hit.placed.stored, &hit.passage);
    let entry_id = match stored.entry_id {
        Some(span) => Some(read_string(session, &history, hit.placed.seq, span)?),
        None => None,
    };
    let mut w = JsonWriter::new_object();
    w.add_number("byte", passage.byte);
    w.add_text("conversation", &conversation.name);
    w.add_message_time("created_at", stored.time);
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
    withdrawn_mark::add_mark(session, &history, hit.placed.seq, &mut w)?;
    Ok(RenderedHit { json: w.end_object(), tokens: tokens::estimate(&passage.snippet.text) })
}

/// Reads and decodes one JSON string of a message without reading the whole message.
fn read_string(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    span: ByteSpan,
) -> Result<String> {
    let from = u64::from(span.start);
    let range = (from, from + u64::from(span.length));
    let mut written = String::new();
    payload_text::for_each_message_chunk(session, history, seq, range, &mut |piece, _| {
        written.push_str(piece);
        true
    })?;
    Ok(json::text(&written, ByteSpan { start: 0, ..span }).into_owned())
}
