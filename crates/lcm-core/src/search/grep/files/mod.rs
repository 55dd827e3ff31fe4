//! Files: what is looked for in the texts of large payloads, which the index knows only in part.
//!
//! In: a query. Out: passages of payloads, each with the line and byte it begins at. A sign in the
//! index leads to the messages that have payloads; these are looked through from the newest on, as
//! far as one query may read, and the answer says where to go on ([`scan`]). Not here: what a
//! passage is ([`crate::search::passages`]).

mod scan;

use alloc::{boxed::Box, string::String, vec::Vec};

use self::scan::{Hit, Scan};
use super::{Answered, Bounds, Place, Sought, show::Shown};
use crate::{
    search::{
        Corpus, Index,
        full_text::{self, Gathered},
        passages::{Wanted, Words},
        query::TextQuery,
        score,
    },
    storage::{codec, file_range, history::History, records::grants, store_session::Reader},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, Fields, Span, Writer},
        limits, sort, tokens,
    },
    message::large_payload::{self, File},
    types::api::Timestamp,
};

/// Which files, as a query says, and where to begin.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// `None`: all.
    ids: Option<Vec<String>>,
    /// The file or message to begin with; what the search comes to before it is passed over. Of
    /// messages and summaries a place, see [`super::start`].
    start: Option<String>,
    /// Where in that file to begin.
    start_byte: u64,
}

impl Asked {
    /// Reads what a query says of files; `is_meant`: files are searched.
    ///
    /// # Errors
    ///
    /// `invalid-input`: over 64 files, a byte to begin at and no file to begin with, or files or
    /// such a byte when no files are searched.
    pub(super) fn read(fields: &mut Fields<'_>, is_meant: bool) -> Result<Self> {
        let ids = fields.texts_or_none("file_ids");
        let start_byte = fields.number_or_none("start_byte");
        let start = fields.text_or_none("start_id");
        // Where an answer says how to go on there is a byte, which is 0 without files.
        let is_byte = start_byte.is_some_and(|byte| byte > 0 || start.is_none());
        if !is_meant && (ids.is_some() || is_byte) {
            return Err(Error::invalid("file_ids, start_byte: they need the scope files"));
        }
        let count = ids.as_ref().map_or(0, Vec::len);
        if count > limits::FILE_IDS_MAX {
            let most = limits::FILE_IDS_MAX;
            return Err(Error::invalid(format_args!("file_ids: {count} are over {most}")));
        }
        let alone = ids.as_ref().filter(|_| start_byte.is_some() && count == 1);
        let start = start.or_else(|| alone?.first().cloned());
        if start_byte.is_some() && start.is_none() {
            return Err(Error::invalid("start_byte: it needs start_id, or one id in file_ids"));
        }
        Ok(Self { ids, start, start_byte: start_byte.unwrap_or(0) })
    }

    /// What to begin with.
    pub(super) fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }
}

/// A message that has payloads.
#[derive(Clone, Copy)]
struct Holder {
    place: usize,
    seq: u64,
    time: Timestamp,
}

/// A file that is there, and the newest message that has it.
struct Named {
    place: usize,
    seq: u64,
    id: [u8; 8],
}

/// Where a search begins.
#[derive(Clone, Copy)]
struct Start {
    place: usize,
    seq: u64,
    /// `None`: with the first file of the message.
    id: Option<[u8; 8]>,
    byte: u64,
}

/// Searches files.
///
/// # Errors
///
/// `not-found`: a file that was named, or what to begin with; `limit-exceeded`: the expression; as
/// [`Index::postings`].
pub(super) fn search(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    sought: &mut Sought,
    bounds: &Bounds,
    asked: &Asked,
) -> Result<Answered> {
    let named = match &asked.ids {
        Some(names) => Some(named(reader, places, names)?),
        None => None,
    };
    let query = if let Sought::Text(query) = sought { Some(&*query) } else { None };
    let is_cut = query.is_some_and(|query| query.is_cut);
    let holders = holders(reader, places, indexes, query, bounds, named.as_deref())?;
    let start = start(reader, places, &holders, asked)?;
    let mut begin = 0;
    if let Some(start) = &start {
        let at = holders.iter().position(|one| (one.place, one.seq) == (start.place, start.seq));
        begin = at.ok_or_else(super::not_come_to)?;
    }
    let mut answered = Answered { is_cut, ..Answered::default() };
    let wanted = match sought {
        Sought::Text(query) => Words::new(query).map(|words| Wanted::Words(Box::new(words))),
        Sought::Regex(regex) => Some(Wanted::Regex(regex)),
    };
    let Some(wanted) = wanted else { return Ok(answered) };
    let named = named.map(|named| named.into_iter().map(|one| one.id).collect::<Vec<_>>());
    let mut scan = Scan::new(wanted, named, start, &holders, begin);
    scan.run(reader, places, &mut answered)?;
    let mut hits = scan.hits;
    answered.total = int::to_u64(hits.len());
    rank(&mut hits, bounds);
    hits.truncate(bounds.limit);
    for hit in &hits {
        answered
            .rows
            .extend(places.get(hit.place).map(|place| row(reader, place, hit)).transpose()?);
    }
    Ok(answered)
}

/// The messages that have payloads and fit, in the order in which they are looked through.
fn holders(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    query: Option<&TextQuery>,
    bounds: &Bounds,
    named: Option<&[Named]>,
) -> Result<Vec<Holder>> {
    let mut holders = Vec::new();
    let wanted = TextQuery::of_payloads(query);
    for ((number, place), index) in places.iter().enumerate().zip(indexes) {
        place.enter(reader);
        let of_place = named.map(|named| {
            let of_place = named.iter().filter(|one| one.place == number);
            of_place.map(|one| one.seq).collect::<Vec<u64>>()
        });
        if of_place.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut found = of_conversation(reader, place, index, &wanted, bounds)?;
        // Where the newest message of each fits, no other is looked at.
        let fits = |seq: &u64| found.iter().any(|(_, known)| known == seq);
        if let Some(seqs) = of_place.filter(|seqs| seqs.iter().all(fits)) {
            found.retain(|(_, seq)| seqs.contains(seq));
        }
        holders.extend(found.into_iter().map(|(time, seq)| Holder { place: number, seq, time }));
    }
    sort::sort_by(&mut holders, &mut |a, b| {
        (b.time, a.place, b.seq).cmp(&(a.time, b.place, a.seq))
    });
    Ok(holders)
}

/// The files of these names that may be read.
fn named(reader: &mut Reader<'_>, places: &[Place], names: &[String]) -> Result<Vec<Named>> {
    let mut out = Vec::new();
    for name in names {
        let before = out.len();
        if let Some(id) = large_payload::parse_name(name) {
            let keys: Vec<String> = places.iter().map(|place| place.keys.file(id)).collect();
            let values = reader.fresh(&keys)?;
            for (((place, known), key), value) in places.iter().enumerate().zip(&keys).zip(values) {
                let Some(value) = value else { continue };
                let file: File = codec::decode(key, &value)?;
                known.enter(reader);
                let history = History { keys: &known.keys, head: &known.loaded.head };
                let spans = known.spans.as_deref();
                if file_range::said_in(reader, &history, id, &file, spans)?.is_some() {
                    out.push(Named { place, seq: file.seq, id });
                }
            }
        }
        if out.len() == before {
            return Err(Error::not_found(format_args!(
                "there is no file `{name}` in the conversations that are searched"
            )));
        }
    }
    Ok(out)
}

/// Where to begin; `None`: with the newest.
fn start(
    reader: &mut Reader<'_>,
    places: &[Place],
    holders: &[Holder],
    asked: &Asked,
) -> Result<Option<Start>> {
    let Some(name) = &asked.start else { return Ok(None) };
    let byte = asked.start_byte;
    let message = places.iter().enumerate().find_map(|(number, place)| {
        Some(Start { place: number, seq: place.keys.message_seq(name)?, id: None, byte: 0 })
    });
    if message.is_some() {
        return Ok(message);
    }
    let found = named(reader, places, core::slice::from_ref(name))?;
    let Some((one, place)) = found.first().and_then(|one| Some((one, places.get(one.place)?)))
    else {
        return Ok(None);
    };
    let of_place = holders.iter().filter(|holder| holder.place == one.place);
    let seqs: Vec<u64> = of_place.map(|holder| holder.seq).collect();
    let mut seq = seqs.contains(&one.seq).then_some(one.seq);
    if seq.is_none() {
        place.enter(reader);
        let history = History { keys: &place.keys, head: &place.loaded.head };
        seq = file_range::newest_with(reader, &history, one.id, &seqs)?;
    }
    let seq = seq.ok_or_else(super::not_come_to)?;
    Ok(Some(Start { place: one.place, seq, id: Some(one.id), byte }))
}

/// The messages of a conversation that have payloads and fit: their times and seqs.
fn of_conversation(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    wanted: &TextQuery,
    bounds: &Bounds,
) -> Result<Vec<(Timestamp, u64)>> {
    let history = History { keys: &place.keys, head: &place.loaded.head };
    let gathered: Gathered = full_text::gather(reader, &history, index, Corpus::Messages, wanted)?;
    let window = bounds.window.and(&wanted.window);
    let statistics = &gathered.statistics;
    let ranked = gathered.rank(reader, &history, index, wanted, &window, statistics, false)?;
    let mut documents = ranked.documents;
    documents.retain(|seq| grants::is_within(place.spans.as_deref(), *seq, *seq));
    let times = gathered.times(reader, index, &documents)?;
    Ok(times.into_iter().zip(documents).collect())
}

/// Orders passages, which come from the newest file on.
fn rank(hits: &mut [Hit], bounds: &Bounds) {
    for hit in hits.iter_mut() {
        hit.rank = bounds.rank(hit.passage.score, hit.placed.stored.time);
    }
    sort::sort_by(hits, &mut |a, b| b.rank.cmp(&a.rank));
}

/// What is shown of a passage.
fn row(reader: &mut Reader<'_>, place: &Place, hit: &Hit) -> Result<Shown> {
    place.enter(reader);
    let history = History { keys: &place.keys, head: &place.loaded.head };
    let (stored, passage) = (&hit.placed.stored, &hit.passage);
    let entry_id = match stored.entry_id {
        Some(span) => Some(string_at(reader, &history, hit.placed.seq, span)?),
        None => None,
    };
    let mut w = Writer::object();
    w.number("byte", passage.byte);
    w.text("conversation", &place.name);
    w.time("created_at", stored.time);
    w.text_or_null("entry_id", entry_id.as_deref());
    w.text("id", &hit.id);
    w.text("kind", hit.kind);
    w.number("line", passage.line);
    w.text_or_null("name", hit.name.as_deref());
    w.text("role", stored.role.as_str());
    w.number_or_null("score", passage.score.map(score::thousandths));
    w.number("seq", hit.placed.seq);
    passage.snippet.write(&mut w);
    w.text("type", "file");
    Ok(Shown { json: w.end_object(), tokens: tokens::estimate(&passage.snippet.text) })
}

/// A string of a message that may have megabytes.
fn string_at(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    seq: u64,
    span: Span,
) -> Result<String> {
    let from = u64::from(span.start);
    let range = (from, from + u64::from(span.length));
    let mut written = String::new();
    file_range::each_piece(reader, history, seq, range, &mut |piece, _| {
        written.push_str(piece);
        true
    })?;
    Ok(json::text(&written, Span { start: 0, ..span }).into_owned())
}
