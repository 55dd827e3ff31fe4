//! Which documents are hits, in which order, and how many there are.
//!
//! In: conversations, their indexes, and what is sought. Out: at most as many hits as were asked
//! for. Not here: what is shown of them (`show`), files (`files`).
//!
//! Each corpus of each conversation gives an ordered list of its best; the lists are merged. The
//! weights of a full-text query are those of all conversations that are searched together.

use alloc::{string::String, vec::Vec};

mod near;

use super::{Bounds, Place, Scope, Sort, Sought, Vector};
use crate::{
    api::Timestamp,
    codec,
    error::Result,
    grants,
    history::History,
    num, order,
    reader::Reader,
    search::{
        Corpus, Index,
        full_text::{self, Gathered, Statistics},
        query::TextQuery,
        regex::Regex,
        scan::scan,
        score,
    },
    summary::Summary,
};

/// A hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    /// Number of its conversation.
    pub(super) place: usize,
    pub(super) corpus: Corpus,
    pub(super) document: u64,
    /// With 16 fractional bits; `None`: an expression's match, which has none.
    pub(super) score: Option<u64>,
    /// What it is ordered by, greatest first; then its time.
    rank: u64,
    time: Timestamp,
}

/// The best hits of one corpus of one conversation, in order.
type List = Vec<Hit>;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In order, at most as many as the bounds say.
    pub(super) hits: Vec<Hit>,
    /// How many there are altogether.
    pub(super) total: u64,
    /// Words of the query were left out because too many documents hold them.
    pub(super) is_cut: bool,
    /// The time before which an expression was not looked for everywhere.
    pub(super) unscanned_before: Option<Timestamp>,
    /// What is to be said of vectors, and of texts that are too long.
    pub(super) notes: Vec<&'static str>,
}

impl Found {
    /// Says something once for all conversations.
    fn note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The hits.
///
/// # Errors
///
/// `limit-exceeded`: what an expression, or phrases that must or must not be there, would cost; as
/// [`Index::postings`].
pub(super) fn find(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    sought: &mut Sought,
    bounds: &Bounds,
    vector: Option<&Vector>,
) -> Result<Found> {
    let corpora: &[Corpus] = match bounds.scope {
        Scope::Messages => &[Corpus::Messages],
        Scope::Summaries => &[Corpus::Summaries],
        Scope::Both | Scope::Files => &[Corpus::Messages, Corpus::Summaries],
    };
    let mut lists = Vec::new();
    let mut found = Found::default();
    match sought {
        Sought::Text(query) if query.is_empty() && vector.is_none() => {}
        Sought::Text(query) => {
            let mut open = gathered(reader, places, indexes, query, corpora)?;
            found.is_cut = open.iter().any(|one| one.gathered.is_cut);
            let for_words = match vector {
                Some(_) => Bounds { sort: Sort::Relevance, limit: near::FUSED_MAX, ..*bounds },
                None => *bounds,
            };
            if !query.is_empty() {
                let (open, lists) = (&mut open, &mut lists);
                found.total =
                    texts(reader, places, indexes, open, query, &for_words, corpora, lists)?;
                if found.total == 0 && corpora.contains(&Corpus::Messages) {
                    note_partial(reader, places, indexes, &mut found)?;
                }
            }
            if let Some(vector) = vector {
                let by_words = merged(core::mem::take(&mut lists), for_words.limit);
                let nearest = near::nearest(
                    reader, places, indexes, &open, query, vector, bounds, &mut found,
                )?;
                found.total += by_nearness_alone(&open, &nearest);
                lists.push(near::fused(by_words, nearest, bounds));
            }
        }
        Sought::Regex(regex) => {
            (found.total, found.unscanned_before) =
                matches(reader, places, indexes, regex, bounds, corpora, &mut lists)?;
        }
    }
    found.hits = merged(lists, bounds.limit);
    Ok(found)
}

fn matches(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    regex: &mut Regex,
    bounds: &Bounds,
    corpora: &[Corpus],
    lists: &mut Vec<List>,
) -> Result<(u64, Option<Timestamp>)> {
    let (mut total, mut unscanned_before, mut is_refused) = (0, None, true);
    let mut scans = num::to_u64(places.len() * corpora.len());
    for ((number, place), index) in places.iter().enumerate().zip(indexes) {
        place.enter(reader);
        let history = History { keys: &place.keys, head: &place.loaded.head };
        for corpus in corpora {
            regex.begin_scan(scans);
            scans -= 1;
            let mut scanned = scan(reader, &history, index, *corpus, regex, &bounds.window)?;
            unscanned_before = unscanned_before.max(scanned.unscanned_before);
            is_refused &= scanned.is_refused;
            if let Some(spans) = &place.spans {
                let documents: Vec<u64> =
                    scanned.found.iter().map(|(document, _)| *document).collect();
                let mut may =
                    covered(reader, place, index, *corpus, spans, &documents)?.into_iter();
                scanned.found.retain(|_| may.next().unwrap_or(false));
            }
            total += num::to_u64(scanned.found.len());
            let mut newest = scanned.found.into_iter().map(|(document, time)| (time, document));
            let hit = |(time, document)| Hit {
                place: number,
                corpus: *corpus,
                document,
                score: None,
                rank: time,
                time,
            };
            lists.push(score::greatest(&mut newest, bounds.limit).into_iter().map(hit).collect());
        }
    }
    if is_refused {
        return Err(super::too_costly());
    }
    Ok((total, unscanned_before))
}

/// A corpus of a conversation between the two steps of a full-text search.
struct Open {
    place: usize,
    corpus: Corpus,
    gathered: Gathered,
    /// All that fit the words.
    documents: Vec<u64>,
}

/// How many of the nearest do not fit the words.
fn by_nearness_alone(open: &[Open], nearest: &[Hit]) -> u64 {
    let has = |one: &Open, hit: &Hit| {
        (one.place, one.corpus) == (hit.place, hit.corpus)
            && one.documents.binary_search(&hit.document).is_ok()
    };
    num::to_u64(nearest.iter().filter(|hit| !open.iter().any(|one| has(one, hit))).count())
}

/// Says, when nothing was found, that there are messages of which not all was read for words.
fn note_partial(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    found: &mut Found,
) -> Result<()> {
    let partial = TextQuery::of_partial();
    let open = gathered(reader, places, indexes, &partial, &[Corpus::Messages])?;
    if open.iter().any(|one| one.gathered.statistics.holding.iter().any(|held| held[0] > 0)) {
        found.note("partly-read");
    }
    Ok(())
}

/// What the index says to a query.
fn gathered(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    query: &TextQuery,
    corpora: &[Corpus],
) -> Result<Vec<Open>> {
    let mut open = Vec::new();
    for ((number, place), index) in places.iter().enumerate().zip(indexes.iter_mut()) {
        place.enter(reader);
        let history = History { keys: &place.keys, head: &place.loaded.head };
        for corpus in corpora {
            let gathered = full_text::gather(reader, &history, index, *corpus, query)?;
            let documents = Vec::new();
            open.push(Open { place: number, corpus: *corpus, gathered, documents });
        }
    }
    Ok(open)
}

fn texts(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    open: &mut [Open],
    query: &TextQuery,
    bounds: &Bounds,
    corpora: &[Corpus],
    lists: &mut Vec<List>,
) -> Result<u64> {
    let mut total = 0;
    for corpus in corpora {
        let mut statistics = Statistics::default();
        let of_corpus = |one: &&Open| one.corpus == *corpus;
        open.iter().filter(of_corpus).for_each(|one| statistics.add(&one.gathered.statistics));
        for one in open.iter_mut().filter(|one| one.corpus == *corpus) {
            let place = places.get(one.place).zip(indexes.get_mut(one.place));
            let Some((place, index)) = place else { continue };
            place.enter(reader);
            total += best(reader, place, index, one, query, bounds, &statistics, lists)?;
        }
    }
    Ok(total)
}

/// Adds the best of one corpus of a conversation to the lists; returns how many fit.
fn best(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    open: &mut Open,
    query: &TextQuery,
    bounds: &Bounds,
    statistics: &Statistics,
    lists: &mut Vec<List>,
) -> Result<u64> {
    let history = History { keys: &place.keys, head: &place.loaded.head };
    let gathered = &open.gathered;
    let window = bounds.window.and(&query.window);
    let by_worth = bounds.sort != Sort::Recency;
    let mut ranked =
        gathered.rank(reader, &history, index, query, &window, statistics, by_worth)?;
    if let Some(spans) = &place.spans {
        let may = covered(reader, place, index, open.corpus, spans, &ranked.documents)?;
        let (mut one, mut other) = (may.iter(), may.iter());
        ranked.documents.retain(|_| one.next().is_some_and(|may| *may));
        ranked.scores.retain(|_| other.next().is_some_and(|may| *may));
    }
    let rows = || ranked.documents.iter().copied().zip(ranked.scores.iter().copied());
    let best: Vec<(u64, u64)> = if bounds.sort == Sort::Relevance {
        score::greatest(&mut rows().map(|(document, score)| (score, document)), bounds.limit)
    } else {
        let times = gathered.times(reader, index, &ranked.documents)?;
        let rank = |((document, score), time): ((u64, u64), Timestamp)| {
            (bounds.rank(Some(score), time), document)
        };
        score::greatest(&mut rows().zip(times).map(rank), bounds.limit)
    };
    let mut documents: Vec<u64> = best.iter().map(|(_, document)| *document).collect();
    order::numbers(&mut documents);
    let times = gathered.times(reader, index, &documents)?;
    let time_of = |document: u64| {
        let place = documents.binary_search(&document).ok();
        place.and_then(|place| times.get(place)).copied().unwrap_or(0)
    };
    let score_of = |document: u64| {
        let place = ranked.documents.binary_search(&document).ok();
        place.and_then(|place| ranked.scores.get(place)).copied()
    };
    let hit = |(rank, document): (u64, u64)| Hit {
        place: open.place,
        corpus: open.corpus,
        document,
        score: score_of(document),
        rank,
        time: time_of(document),
    };
    lists.push(best.into_iter().map(hit).collect());
    open.documents = ranked.documents;
    Ok(num::to_u64(open.documents.len()))
}

/// Which of these documents a grant covers.
fn covered(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    corpus: Corpus,
    spans: &[(u64, u64)],
    documents: &[u64],
) -> Result<Vec<bool>> {
    let is_within = |first, last| grants::is_within(Some(spans), first, last);
    if corpus == Corpus::Messages {
        return Ok(documents.iter().map(|seq| is_within(*seq, *seq)).collect());
    }
    let rows = index.summaries(reader, documents)?;
    let wanted: Vec<(String, u32)> =
        rows.iter().map(|(id, bytes)| (place.keys.summary(*id), *bytes)).collect();
    let mut may = Vec::with_capacity(wanted.len());
    for ((key, _), value) in wanted.iter().zip(reader.passing(&wanted)?) {
        let record: Summary = codec::decode(key, &value)?;
        may.push(is_within(record.seq_first, record.seq_last));
    }
    Ok(may)
}

/// The first of ordered lists taken together.
fn merged(lists: Vec<List>, limit: usize) -> Vec<Hit> {
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut out = Vec::new();
    while out.len() < limit {
        let heads = lists.iter_mut().enumerate().filter_map(|(number, list)| {
            let hit = list.peek()?;
            // Of equals the earlier list: `max` takes the last.
            Some((hit.rank, hit.time, usize::MAX - number))
        });
        let Some((.., number)) = heads.max() else { break };
        let best = lists.get_mut(usize::MAX - number).and_then(Iterator::next);
        out.extend(best);
    }
    out
}
