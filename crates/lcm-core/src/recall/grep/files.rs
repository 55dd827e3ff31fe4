//! Files: what is looked for in the texts of large payloads, which the index knows only in part.
//!
//! In: a query. Out: passages of payloads, each with the line and byte it begins at. A sign in the
//! index leads to the messages that have payloads; these are looked through from the newest on, as
//! far as one query may read, and the answer says where to go on. Not here: what a passage is
//! ([`crate::search::passages`]).

use alloc::{string::String, vec::Vec};

use super::{Bounds, Place, Sort, Sought, show::Shown};
use crate::{
    api::Timestamp,
    codec,
    error::{Error, Result},
    grants,
    history::{History, Placed},
    json::{self, Fields, Span, Writer},
    limits, num, order,
    payload::{self, File, Mark},
    reader::Reader,
    recall::file,
    search::{
        Corpus, Index,
        full_text::{self, Gathered},
        passages::{Passage, Passages, Wanted, Words},
        query::TextQuery,
        score,
    },
    tokens,
};

/// Bytes of payloads, as they are written, that one query looks through: as many as those of
/// messages for an expression.
const BYTES_MAX: u64 = 3 << 20;
/// Bytes that looking for the payloads of a message and reading a record count as.
const MESSAGE_BYTES: u64 = 4 << 10;
const RECORD_BYTES: u64 = 1 << 10;
/// Messages whose payloads are looked up together, and records that are read together.
const MESSAGES_PER_STEP: usize = 16;
const RECORDS_PER_READ: usize = 64;

/// Which files, as a query says.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// `None`: all.
    ids: Option<Vec<String>>,
    /// Where in the one file to begin.
    start_byte: u64,
}

impl Asked {
    /// Reads what a query says of files; `is_meant`: files are searched.
    ///
    /// # Errors
    ///
    /// `invalid-input`: over 64 files, a byte to begin at for more or fewer than one, or any of
    /// these when no files are searched.
    pub(super) fn read(fields: &mut Fields<'_>, is_meant: bool) -> Result<Self> {
        let ids = fields.texts_or_none("file_ids");
        let start_byte = fields.number_or_none("start_byte");
        if !is_meant && (ids.is_some() || start_byte.is_some()) {
            return Err(Error::invalid("file_ids, start_byte: they need the scope `files`"));
        }
        let count = ids.as_ref().map_or(0, Vec::len);
        if count > limits::FILE_IDS_MAX {
            let most = limits::FILE_IDS_MAX;
            return Err(Error::invalid(format_args!("file_ids: {count} are over {most}")));
        }
        if start_byte.is_some() && count != 1 {
            return Err(Error::invalid("start_byte: it needs one id in file_ids"));
        }
        Ok(Self { ids, start_byte: start_byte.unwrap_or(0) })
    }
}

/// What was found in files.
#[derive(Default)]
pub(super) struct Answered {
    /// In order, as many as the bounds say.
    pub(super) rows: Vec<Shown>,
    pub(super) total: u64,
    /// A file has more passages than count.
    pub(super) more: bool,
    /// Too many words were typed.
    pub(super) is_cut: bool,
    /// The time before which not every file was looked through.
    pub(super) unscanned_before: Option<Timestamp>,
    /// The file in which the search ended, and the byte it goes on at.
    pub(super) unscanned_from: Option<(String, u64)>,
}

/// A message that has payloads.
#[derive(Clone, Copy)]
struct Holder {
    place: usize,
    seq: u64,
    time: Timestamp,
}

/// A passage of a file.
struct Hit {
    place: usize,
    placed: Placed,
    id: String,
    kind: &'static str,
    name: Option<String>,
    passage: Passage,
    rank: u64,
}

/// Searches files.
///
/// # Errors
///
/// `not-found`: a file that was named; `limit-exceeded`: the expression; as [`Index::postings`].
pub(super) fn search(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    sought: &mut Sought,
    bounds: &Bounds,
    asked: &Asked,
) -> Result<Answered> {
    let ids = ids(reader, places, asked)?;
    let mut holders = Vec::new();
    let query = if let Sought::Text(query) = sought { Some(&*query) } else { None };
    let wanted = TextQuery::of_payloads(query);
    for ((number, place), index) in places.iter().enumerate().zip(indexes) {
        place.enter(reader);
        let of_place = ids.as_ref().map(|ids| {
            let of_place = ids.iter().filter(|(place, ..)| *place == number);
            of_place.map(|(_, seq, _)| *seq).collect::<Vec<u64>>()
        });
        let found = of_conversation(reader, place, index, &wanted, bounds, of_place.as_deref())?;
        holders.extend(found.into_iter().map(|(time, seq)| Holder { place: number, seq, time }));
    }
    order::sort_by(&mut holders, &mut |a, b| {
        (b.time, a.place, b.seq).cmp(&(a.time, b.place, a.seq))
    });
    let mut answered =
        Answered { is_cut: query.is_some_and(|query| query.is_cut), ..Answered::default() };
    let wanted = match sought {
        Sought::Text(query) => Words::new(query).map(Wanted::Words),
        Sought::Regex(regex) => {
            regex.begin_scan(1);
            Some(Wanted::Regex(regex))
        }
    };
    let Some(wanted) = wanted else { return Ok(answered) };
    let ids = ids.map(|ids| ids.into_iter().map(|(_, _, id)| id).collect::<Vec<_>>());
    let start_byte = asked.start_byte;
    let mut scan = Scan { wanted, left: BYTES_MAX, hits: Vec::new(), ids, start_byte };
    scan.run(reader, places, &holders, &mut answered)?;
    let mut hits = scan.hits;
    answered.total = num::to_u64(hits.len());
    rank(&mut hits, bounds);
    hits.truncate(bounds.limit);
    for hit in &hits {
        answered
            .rows
            .extend(places.get(hit.place).map(|place| row(reader, place, hit)).transpose()?);
    }
    Ok(answered)
}

/// The files that were named: number of the conversation, newest message, id; `None`: all are
/// meant.
fn ids(
    reader: &mut Reader<'_>,
    places: &[Place],
    asked: &Asked,
) -> Result<Option<Vec<(usize, u64, [u8; 8])>>> {
    let Some(names) = &asked.ids else { return Ok(None) };
    let mut out = Vec::new();
    for name in names {
        let unknown = || {
            Error::not_found(format_args!(
                "there is no file `{name}` in the conversations that are searched"
            ))
        };
        let id = payload::parse_name(name).ok_or_else(unknown)?;
        let keys: Vec<String> = places.iter().map(|place| place.keys.file(id)).collect();
        let before = out.len();
        for ((number, place), value) in places.iter().enumerate().zip(reader.fresh(&keys)?) {
            let Some(value) = value else { continue };
            let file: File = codec::decode(&place.keys.file(id), &value)?;
            if grants::is_within(place.spans.as_deref(), file.seq, file.seq) {
                out.push((number, file.seq, id));
            }
        }
        if out.len() == before {
            return Err(unknown());
        }
    }
    Ok(Some(out))
}

/// The messages of a conversation that have payloads and fit: their times and seqs. `seqs`: only
/// of these.
fn of_conversation(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    wanted: &TextQuery,
    bounds: &Bounds,
    seqs: Option<&[u64]>,
) -> Result<Vec<(Timestamp, u64)>> {
    if seqs.is_some_and(<[u64]>::is_empty) {
        return Ok(Vec::new());
    }
    let history = History { keys: &place.keys, head: &place.loaded.head };
    let gathered: Gathered = full_text::gather(reader, &history, index, Corpus::Messages, wanted)?;
    let window = bounds.window.and(&wanted.window);
    let statistics = &gathered.statistics;
    let ranked = gathered.rank(reader, &history, index, wanted, &window, statistics, false)?;
    let mut documents = ranked.documents;
    documents.retain(|seq| {
        grants::is_within(place.spans.as_deref(), *seq, *seq)
            && seqs.is_none_or(|seqs| seqs.contains(seq))
    });
    let times = gathered.times(reader, index, &documents)?;
    Ok(times.into_iter().zip(documents).collect())
}

/// Looks through files until one query has read enough.
struct Scan<'q> {
    wanted: Wanted<'q>,
    /// Bytes that may still be read.
    left: u64,
    hits: Vec<Hit>,
    /// The files that were named.
    ids: Option<Vec<[u8; 8]>>,
    start_byte: u64,
}

impl Scan<'_> {
    fn run(
        &mut self,
        reader: &mut Reader<'_>,
        places: &[Place],
        holders: &[Holder],
        answered: &mut Answered,
    ) -> Result<()> {
        let mut rest = holders;
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|one| one.place == first.place).count();
            let (now, later) = rest.split_at(count.min(MESSAGES_PER_STEP));
            rest = later;
            let Some(place) = places.get(first.place) else { continue };
            place.enter(reader);
            let history = History { keys: &place.keys, head: &place.loaded.head };
            let mut seqs: Vec<u64> = now.iter().map(|one| one.seq).collect();
            order::numbers(&mut seqs);
            let placed = history.scattered(reader, &seqs)?;
            for holder in now {
                if self.left == 0 {
                    answered.unscanned_before = Some(holder.time.saturating_add(1));
                    return Ok(());
                }
                self.left = self.left.saturating_sub(MESSAGE_BYTES);
                let at = placed.binary_search_by_key(&holder.seq, |placed| placed.seq).ok();
                let Some(placed) = at.and_then(|at| placed.get(at)) else { continue };
                for (id, file) in self.files(reader, &history, placed)? {
                    let next = self.file(reader, &history, (holder.place, placed), id, &file)?;
                    let Some((next, more)) = next else { continue };
                    answered.more |= more;
                    if let Some(byte) = next {
                        answered.unscanned_before = Some(holder.time.saturating_add(1));
                        answered.unscanned_from = Some((payload::name(id), byte));
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// The payloads of a message that no newer one has too.
    fn files(
        &self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        placed: &Placed,
    ) -> Result<Vec<([u8; 8], File)>> {
        let shown = history.shown(reader, &placed.stored)?;
        let mut ids = payload::ids_in(&shown);
        if let Some(named) = &self.ids {
            ids.retain(|id| named.contains(id));
        }
        let mut out = Vec::new();
        for ids in ids.chunks(RECORDS_PER_READ) {
            let keys: Vec<String> = ids.iter().map(|id| history.keys.file(*id)).collect();
            for ((id, key), value) in ids.iter().zip(&keys).zip(reader.fresh(&keys)?) {
                let Some(value) = value else { continue };
                let file: File = codec::decode(key, &value)?;
                if file.seq == placed.seq {
                    out.push((*id, file));
                }
            }
        }
        Ok(out)
    }

    /// Looks through a file; returns where in it to go on, if it was not looked through, and
    /// whether it has more passages than count.
    fn file(
        &mut self,
        reader: &mut Reader<'_>,
        history: &History<'_>,
        (place, placed): (usize, &Placed),
        id: [u8; 8],
        file: &File,
    ) -> Result<Option<(Option<u64>, bool)>> {
        if self.left == 0 {
            return Ok(Some((Some(0), false)));
        }
        let is_before = |mark: &&Mark| u64::from(mark.bytes) <= self.start_byte;
        let marks = file.place.marks.iter().take_while(is_before);
        let mark = marks.last().copied().unwrap_or_default();
        let from = u64::from(file.place.start) + u64::from(mark.at);
        let end = u64::from(file.place.start) + u64::from(file.place.length);
        let to = end.min(from + self.left);
        history.fetch_range(reader, &placed.stored.raw, (from, to))?;
        let skipped = self.start_byte - u64::from(mark.bytes);
        let line = u64::from(mark.line_ends) + 1;
        let mut passages = Passages::new(&mut self.wanted, u64::from(mark.bytes), line, skipped);
        let (read, is_complete) =
            file::each_text(reader, history, file, mark, self.left, &mut |text| {
                passages.take(text)
            })?;
        self.left = self.left.saturating_sub(read + RECORD_BYTES);
        let next = passages.next();
        let (found, more) = passages.end(is_complete);
        if let Wanted::Regex(regex) = &self.wanted
            && regex.is_refused()
            && self.hits.is_empty()
            && found.is_empty()
            && next == self.start_byte
        {
            return Err(super::too_costly());
        }
        let kind = file.kind.as_str();
        self.hits.extend(found.into_iter().map(|passage| {
            let (id, name, placed) = (payload::name(id), file.name.clone(), placed.clone());
            Hit { place, placed, id, kind, name, passage, rank: 0 }
        }));
        Ok(Some(((!is_complete && !more).then_some(next), more)))
    }
}

/// Orders passages, which come from the newest file on.
fn rank(hits: &mut [Hit], bounds: &Bounds) {
    for hit in hits.iter_mut() {
        let (score, time) = (hit.passage.score, hit.placed.stored.time);
        hit.rank = match (bounds.sort, score) {
            (Sort::Relevance, Some(score)) => score,
            (Sort::Hybrid, Some(score)) => score::aged(score, bounds.now.saturating_sub(time)),
            _ => time,
        };
    }
    order::sort_by(hits, &mut |a, b| b.rank.cmp(&a.rank));
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
    w.text("snippet", &passage.snippet);
    w.text("type", "file");
    Ok(Shown { json: w.end_object(), tokens: tokens::estimate(&passage.snippet) })
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
    file::each_piece(reader, history, seq, range, &mut |piece, _| {
        written.push_str(piece);
        true
    })?;
    Ok(json::text(&written, Span { start: 0, ..span }).into_owned())
}
