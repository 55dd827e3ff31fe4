//! Which documents are hits, in which order, and how many there are.
//!
//! In: conversations, their indexes, and what is sought. Out: at most as many hits as were asked
//! for. Not here: what is shown of them (`show`), files (`files`).
//!
//! Each corpus of each conversation gives an ordered list of its best; the lists are merged. The
//! weights of a full-text query are those of all conversations that are searched together. An
//! expression goes through one after the other.

use alloc::{string::String, vec::Vec};

mod near;

use super::{
    Bounds, Place, Scope, Sort, Sought, Vector,
    start::{self, Start},
};
use crate::{
    search::{
        Corpus, Index,
        full_text::{self, Gathered, Statistics},
        query::TextQuery,
        regex::Regex,
        scan::scan,
        score,
    },
    storage::{codec, history::History, records::grants, store_session::Reader, summary::Summary},
};
use lcm_text::{
    base::{error::Result, int, sort},
    types::api::Timestamp,
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
    /// Where an expression was not looked for yet.
    pub(super) next: Option<Start>,
    /// Of an answer that is one of several, where each hit stands, in their order; else empty.
    pub(super) starts: Vec<Start>,
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

/// The hits. `start`: where an earlier search for the expression ended.
///
/// # Errors
///
/// `limit-exceeded`: what an expression, or phrases that must or must not be there, would cost;
/// `invalid-input`, `not-found`: `start`; as [`Index::postings`].
pub(super) fn find(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    sought: &mut Sought,
    bounds: &Bounds,
    vector: Option<&Vector>,
    start: Option<&str>,
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
            let start = start.map(|start| Start::read(start, places, indexes, corpora));
            return matches(reader, places, indexes, regex, bounds, corpora, start.transpose()?);
        }
    }
    found.hits = merged(lists, bounds.limit);
    Ok(found)
}

/// What an expression matches in.
///
/// Conversation after conversation is looked through, in an order that does not change while they
/// grow, each from its last message to its first and then its summaries likewise, until the
/// expression has cost what it may. Where that ends before everything was looked through, and where
/// the query went on from an earlier one, the hits are the first in that order, so that the next
/// begins behind the last of them; else they are the newest.
fn matches(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    regex: &mut Regex,
    bounds: &Bounds,
    corpora: &[Corpus],
    start: Option<Start>,
) -> Result<Found> {
    let mut scans = scans(places, indexes, corpora);
    if let Some(start) = start {
        let is_it = |one: &Start| (one.place, one.corpus) == (start.place, start.corpus);
        let before = scans.iter().position(is_it).ok_or_else(super::not_come_to)?;
        scans.drain(..before);
        scans.iter_mut().take(1).for_each(|first| *first = start);
    }
    let (mut hits, mut next, mut is_begun) = (Vec::new(), None, false);
    for one in scans {
        // What was begun goes on while steps are left, and each query begins something.
        if is_begun && regex.is_spent() {
            next = Some(one);
            break;
        }
        let known = places.get(one.place).zip(indexes.get_mut(one.place));
        let Some((place, index)) = known else { continue };
        place.enter(reader);
        let history = History { keys: &place.keys, head: &place.loaded.head };
        let spans = place.spans.as_deref();
        let (corpus, last) = (one.corpus, one.document);
        let scanned = scan(reader, &history, index, corpus, last, spans, regex, &bounds.window)?;
        is_begun |= scanned.is_begun;
        if regex.is_refused() && !is_begun {
            return Err(super::too_costly());
        }
        let mut found = scanned.found;
        if let Some(spans) = spans.filter(|_| corpus == Corpus::Summaries) {
            let documents: Vec<u64> = found.iter().rev().map(|(document, _)| *document).collect();
            let may = covered(reader, place, index, one.corpus, spans, &documents)?;
            let mut may = may.into_iter().rev();
            found.retain(|_| may.next().unwrap_or(false));
        }
        hits.extend(found.into_iter().map(|(document, time)| Hit::matched(one, document, time)));
        if let Some(document) = scanned.unscanned {
            next = Some(Start { document, ..one });
            break;
        }
    }
    Ok(page(hits, next, start.is_some(), bounds.limit))
}

/// All that may be looked through, in order, each from its last document on. What is empty is left
/// out.
fn scans(places: &[Place], indexes: &[Index], corpora: &[Corpus]) -> Vec<Start> {
    let mut turns: Vec<(usize, usize)> =
        places.iter().enumerate().map(|(number, place)| (place.turn, number)).collect();
    sort::sort(&mut turns);
    let mut out = Vec::new();
    for (_, number) in turns {
        let Some((place, index)) = places.get(number).zip(indexes.get(number)) else { continue };
        let of_place = corpora.iter().map(|corpus| Start {
            place: number,
            corpus: *corpus,
            document: start::documents(place, index, *corpus),
        });
        out.extend(of_place.filter(|one| one.document > 0));
    }
    out
}

/// Of all matches in the order in which they were found, those that are hits. `next`: what was not
/// looked through; `goes_on`: the query went on from an earlier one.
fn page(mut hits: Vec<Hit>, next: Option<Start>, goes_on: bool, limit: usize) -> Found {
    if next.is_none() && !goes_on {
        let total = int::to_u64(hits.len());
        // The newest; of equals the later documents of the earlier conversation.
        sort::sort_by(&mut hits, &mut |a, b| {
            let places = (a.place, a.corpus == Corpus::Summaries);
            let others = (b.place, b.corpus == Corpus::Summaries);
            let newest = b.time.cmp(&a.time).then(places.cmp(&others));
            newest.then(b.document.cmp(&a.document))
        });
        hits.truncate(limit);
        return Found { hits, total, ..Found::default() };
    }
    let cut = hits.get(limit).map(Hit::start);
    hits.truncate(limit);
    Found {
        total: int::to_u64(hits.len()),
        starts: hits.iter().map(Hit::start).collect(),
        next: cut.or(next),
        hits,
        ..Found::default()
    }
}

impl Hit {
    /// A match of an expression.
    const fn matched(of: Start, document: u64, time: Timestamp) -> Self {
        Self { place: of.place, corpus: of.corpus, document, score: None, rank: time, time }
    }

    /// Where a search goes on that comes to this next.
    const fn start(&self) -> Start {
        Start { place: self.place, corpus: self.corpus, document: self.document }
    }
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
    int::to_u64(nearest.iter().filter(|hit| !open.iter().any(|one| has(one, hit))).count())
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
    sort::numbers(&mut documents);
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
    Ok(int::to_u64(open.documents.len()))
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
