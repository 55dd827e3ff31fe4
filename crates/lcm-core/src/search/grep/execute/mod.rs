//! Selection, order and count of the hits in messages and summaries.
//!
//! Input: conversations, their indexes and a pattern. Output: at most `limit` hits.
//! Elsewhere: rendering (`render_hits`), files (`file_search`).
//!
//! For words, each corpus of each conversation gives a ranked list, and the lists are merged. Term
//! weights count all searched conversations together. A regular expression is matched in one
//! conversation after another.

use alloc::{string::String, vec::Vec};

mod fusion;

use super::{
    GrepBounds, GrepPattern, GrepScope, GrepSort, QueryVector, SearchedConversation,
    cursor::{self, ScanCursor},
};
use crate::{
    search::{
        Corpus, SearchIndex,
        full_text::{self, CorpusMatches, CorpusStatistics},
        regex::Regex,
        regex_scan::scan,
        score,
        text_query::TextQuery,
    },
    storage::{
        codec, history::MessageHistory, records::grants, store_session::StoreSession,
        summary::Summary,
    },
};
use lcm_text::{
    base::{error::Result, int, sort},
    types::api::Timestamp,
};

/// A message or summary that matches the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrepHit {
    /// Index into the list of searched conversations.
    pub(super) conversation_number: usize,
    pub(super) corpus: Corpus,
    pub(super) document: u64,
    /// Score with 16 fractional bits; `None` for a match of a regular expression.
    pub(super) score: Option<u64>,
    /// Sort key, greatest first; hits with equal rank sort by time.
    rank: u64,
    time: Timestamp,
}

/// Best hits of one corpus of one conversation, best first.
type RankedHits = Vec<GrepHit>;

/// Hits of a search, with their count.
#[derive(Debug, Default)]
pub(super) struct FoundHits {
    /// Hits in order, at most `limit`.
    pub(super) hits: Vec<GrepHit>,
    /// Number of all matches, including those beyond `limit`.
    pub(super) total: u64,
    /// Some words were ignored, because too many documents contain them.
    pub(super) is_cut: bool,
    /// First document that the regular expression was not matched against; `None`: none is left.
    pub(super) next_cursor: Option<ScanCursor>,
    /// For a page of a longer scan: the cursor of each hit, in order. Empty for a complete answer.
    pub(super) hit_cursors: Vec<ScanCursor>,
    /// Notes about vectors, and about messages that were indexed only in part.
    pub(super) notes: Vec<&'static str>,
}

impl FoundHits {
    /// Adds a note, at most once.
    fn add_note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Returns the hits. `start` is the cursor at which an earlier scan stopped.
///
/// # Errors
///
/// `limit-exceeded`: the regular expression, or required or excluded phrases, cost too much;
/// `invalid-input`, `not-found`: `start` is malformed or foreign; as
/// [`SearchIndex::read_postings`].
pub(super) fn execute_query(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    sought: &mut GrepPattern,
    bounds: &GrepBounds,
    vector: Option<&QueryVector>,
    start: Option<&str>,
) -> Result<FoundHits> {
    let corpora: &[Corpus] = match bounds.scope {
        GrepScope::Messages => &[Corpus::Messages],
        GrepScope::Summaries => &[Corpus::Summaries],
        GrepScope::Both | GrepScope::Files => &[Corpus::Messages, Corpus::Summaries],
    };
    let mut lists = Vec::new();
    let mut found = FoundHits::default();
    match sought {
        GrepPattern::Text(query) if query.is_empty() && vector.is_none() => {}
        GrepPattern::Text(query) => {
            let mut open = gather_corpora(reader, places, indexes, query, corpora)?;
            found.is_cut = open.iter().any(|one| one.gathered.has_dropped_items);
            let for_words = match vector {
                Some(_) => GrepBounds {
                    sort: GrepSort::Relevance,
                    limit: fusion::FUSED_HITS_MAX,
                    ..*bounds
                },
                None => *bounds,
            };
            if !query.is_empty() {
                let (open, lists) = (&mut open, &mut lists);
                found.total = rank_all_corpora(
                    reader, places, indexes, open, query, &for_words, corpora, lists,
                )?;
                if found.total == 0 && corpora.contains(&Corpus::Messages) {
                    note_partial_reads(reader, places, indexes, &mut found)?;
                }
            }
            if let Some(vector) = vector {
                let by_words = merge_ranked_lists(core::mem::take(&mut lists), for_words.limit);
                let nearest = fusion::find_nearest(
                    reader, places, indexes, &open, query, vector, bounds, &mut found,
                )?;
                found.total += count_vector_only_hits(&open, &nearest);
                lists.push(fusion::fuse_rankings(by_words, nearest, bounds));
            }
        }
        GrepPattern::Regex(regex) => {
            let start = start.map(|start| ScanCursor::parse(start, places, indexes, corpora));
            return scan_with_regex(
                reader,
                places,
                indexes,
                regex,
                bounds,
                corpora,
                start.transpose()?,
            );
        }
    }
    found.hits = merge_ranked_lists(lists, bounds.limit);
    Ok(found)
}

/// Scans documents with a regular expression until all are scanned or the step budget is spent.
///
/// Conversations come in a fixed order; in each, messages from last to first, then summaries.
/// A complete scan returns the newest matches. A page (the scan stopped, or `start` was given)
/// returns the first matches in scan order, so that the next page begins behind them.
fn scan_with_regex(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    regex: &mut Regex,
    bounds: &GrepBounds,
    corpora: &[Corpus],
    start: Option<ScanCursor>,
) -> Result<FoundHits> {
    let mut scans = list_scans(places, indexes, corpora);
    if let Some(start) = start {
        let is_it = |one: &ScanCursor| {
            (one.conversation_number, one.corpus) == (start.conversation_number, start.corpus)
        };
        let before = scans.iter().position(is_it).ok_or_else(super::foreign_cursor_error)?;
        scans.drain(..before);
        scans.iter_mut().take(1).for_each(|first| *first = start);
    }
    let (mut hits, mut next, mut is_begun) = (Vec::new(), None, false);
    for one in scans {
        // A scan continues while steps are left. Each call scans at least one step of documents.
        if is_begun && regex.is_budget_spent() {
            next = Some(one);
            break;
        }
        let known =
            places.get(one.conversation_number).zip(indexes.get_mut(one.conversation_number));
        let Some((place, index)) = known else { continue };
        place.enter_conversation(reader);
        let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
        let spans = place.spans.as_deref();
        let (corpus, last) = (one.corpus, one.document);
        let scanned = scan(reader, &history, index, corpus, last, spans, regex, &bounds.window)?;
        is_begun |= scanned.has_finished_step;
        if regex.is_refused() && !is_begun {
            return Err(super::too_costly_error());
        }
        let mut found = scanned.matches;
        if let Some(spans) = spans.filter(|_| corpus == Corpus::Summaries) {
            let documents: Vec<u64> = found.iter().rev().map(|(document, _)| *document).collect();
            let may = check_coverage(reader, place, index, one.corpus, spans, &documents)?;
            let mut may = may.into_iter().rev();
            found.retain(|_| may.next().unwrap_or(false));
        }
        hits.extend(
            found.into_iter().map(|(document, time)| GrepHit::from_match(one, document, time)),
        );
        if let Some(document) = scanned.next_document {
            next = Some(ScanCursor { document, ..one });
            break;
        }
    }
    Ok(select_page(hits, next, start.is_some(), bounds.limit))
}

/// Lists the corpora to scan in scan order, each as a cursor at its last document. Empty corpora
/// are omitted.
fn list_scans(
    places: &[SearchedConversation],
    indexes: &[SearchIndex],
    corpora: &[Corpus],
) -> Vec<ScanCursor> {
    let mut turns: Vec<(usize, usize)> =
        places.iter().enumerate().map(|(number, place)| (place.scan_order, number)).collect();
    sort::sort(&mut turns);
    let mut out = Vec::new();
    for (_, number) in turns {
        let Some((place, index)) = places.get(number).zip(indexes.get(number)) else { continue };
        let of_place = corpora.iter().map(|corpus| ScanCursor {
            conversation_number: number,
            corpus: *corpus,
            document: cursor::last_document(place, index, *corpus),
        });
        out.extend(of_place.filter(|one| one.document > 0));
    }
    out
}

/// Selects the hits from all matches in scan order. `next` is the first document not scanned;
/// `goes_on` means that the query continues an earlier scan.
fn select_page(
    mut hits: Vec<GrepHit>,
    next: Option<ScanCursor>,
    goes_on: bool,
    limit: usize,
) -> FoundHits {
    if next.is_none() && !goes_on {
        let total = int::to_u64(hits.len());
        // Newest first; with equal times, the earlier conversation and then the later document.
        sort::sort_by(&mut hits, &mut |a, b| {
            let places = (a.conversation_number, a.corpus == Corpus::Summaries);
            let others = (b.conversation_number, b.corpus == Corpus::Summaries);
            let newest = b.time.cmp(&a.time).then(places.cmp(&others));
            newest.then(b.document.cmp(&a.document))
        });
        hits.truncate(limit);
        return FoundHits { hits, total, ..FoundHits::default() };
    }
    let cut = hits.get(limit).map(GrepHit::to_cursor);
    hits.truncate(limit);
    FoundHits {
        total: int::to_u64(hits.len()),
        hit_cursors: hits.iter().map(GrepHit::to_cursor).collect(),
        next_cursor: cut.or(next),
        hits,
        ..FoundHits::default()
    }
}

impl GrepHit {
    /// Builds the hit of a regular expression match.
    const fn from_match(of: ScanCursor, document: u64, time: Timestamp) -> Self {
        Self {
            conversation_number: of.conversation_number,
            corpus: of.corpus,
            document,
            score: None,
            rank: time,
            time,
        }
    }

    /// Returns the cursor of a scan that begins at this hit.
    const fn to_cursor(&self) -> ScanCursor {
        ScanCursor {
            conversation_number: self.conversation_number,
            corpus: self.corpus,
            document: self.document,
        }
    }
}

/// Index lookups of one corpus of one conversation, kept between gathering and ranking.
struct GatheredCorpus {
    conversation_number: usize,
    corpus: Corpus,
    gathered: CorpusMatches,
    /// Numbers of all documents that match the words, ascending.
    matching_documents: Vec<u64>,
}

/// Counts the nearest documents that do not match the words.
fn count_vector_only_hits(open: &[GatheredCorpus], nearest: &[GrepHit]) -> u64 {
    let has = |one: &GatheredCorpus, hit: &GrepHit| {
        (one.conversation_number, one.corpus) == (hit.conversation_number, hit.corpus)
            && one.matching_documents.binary_search(&hit.document).is_ok()
    };
    int::to_u64(nearest.iter().filter(|hit| !open.iter().any(|one| has(one, hit))).count())
}

/// Adds a note if some messages were indexed only in part. Called when nothing was found.
fn note_partial_reads(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    found: &mut FoundHits,
) -> Result<()> {
    let partial = TextQuery::for_partial();
    let open = gather_corpora(reader, places, indexes, &partial, &[Corpus::Messages])?;
    if open.iter().any(|one| one.gathered.statistics.item_counts.iter().any(|held| held[0] > 0)) {
        found.add_note("partly-read");
    }
    Ok(())
}

/// Looks up the query in every corpus of every conversation.
fn gather_corpora(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    query: &TextQuery,
    corpora: &[Corpus],
) -> Result<Vec<GatheredCorpus>> {
    let mut open = Vec::new();
    for ((number, place), index) in places.iter().enumerate().zip(indexes.iter_mut()) {
        place.enter_conversation(reader);
        let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
        for corpus in corpora {
            let gathered = full_text::gather_matches(reader, &history, index, *corpus, query)?;
            let documents = Vec::new();
            open.push(GatheredCorpus {
                conversation_number: number,
                corpus: *corpus,
                gathered,
                matching_documents: documents,
            });
        }
    }
    Ok(open)
}

fn rank_all_corpora(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    open: &mut [GatheredCorpus],
    query: &TextQuery,
    bounds: &GrepBounds,
    corpora: &[Corpus],
    lists: &mut Vec<RankedHits>,
) -> Result<u64> {
    let mut total = 0;
    for corpus in corpora {
        let mut statistics = CorpusStatistics::default();
        let of_corpus = |one: &&GatheredCorpus| one.corpus == *corpus;
        open.iter()
            .filter(of_corpus)
            .for_each(|one| statistics.add_statistics(&one.gathered.statistics));
        for one in open.iter_mut().filter(|one| one.corpus == *corpus) {
            let place =
                places.get(one.conversation_number).zip(indexes.get_mut(one.conversation_number));
            let Some((place, index)) = place else { continue };
            place.enter_conversation(reader);
            total += add_best_hits(reader, place, index, one, query, bounds, &statistics, lists)?;
        }
    }
    Ok(total)
}

/// Adds the best hits of one corpus to the lists; returns the number of matching documents.
fn add_best_hits(
    reader: &mut StoreSession<'_>,
    place: &SearchedConversation,
    index: &mut SearchIndex,
    open: &mut GatheredCorpus,
    query: &TextQuery,
    bounds: &GrepBounds,
    statistics: &CorpusStatistics,
    lists: &mut Vec<RankedHits>,
) -> Result<u64> {
    let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
    let gathered = &open.gathered;
    let window = bounds.window.intersection(&query.window);
    let by_worth = bounds.sort != GrepSort::Recency;
    let mut ranked =
        gathered.rank_documents(reader, &history, index, query, &window, statistics, by_worth)?;
    if let Some(spans) = &place.spans {
        let may = check_coverage(reader, place, index, open.corpus, spans, &ranked.documents)?;
        let (mut one, mut other) = (may.iter(), may.iter());
        ranked.documents.retain(|_| one.next().is_some_and(|may| *may));
        ranked.scores.retain(|_| other.next().is_some_and(|may| *may));
    }
    let rows = || ranked.documents.iter().copied().zip(ranked.scores.iter().copied());
    let best: Vec<(u64, u64)> = if bounds.sort == GrepSort::Relevance {
        score::select_top(&mut rows().map(|(document, score)| (score, document)), bounds.limit)
    } else {
        let times = gathered.read_times(reader, index, &ranked.documents)?;
        let rank = |((document, score), time): ((u64, u64), Timestamp)| {
            (bounds.rank_hit(Some(score), time), document)
        };
        score::select_top(&mut rows().zip(times).map(rank), bounds.limit)
    };
    let mut documents: Vec<u64> = best.iter().map(|(_, document)| *document).collect();
    sort::sort_numbers(&mut documents);
    let times = gathered.read_times(reader, index, &documents)?;
    let time_of = |document: u64| {
        let place = documents.binary_search(&document).ok();
        place.and_then(|place| times.get(place)).copied().unwrap_or(0)
    };
    let score_of = |document: u64| {
        let place = ranked.documents.binary_search(&document).ok();
        place.and_then(|place| ranked.scores.get(place)).copied()
    };
    let hit = |(rank, document): (u64, u64)| GrepHit {
        conversation_number: open.conversation_number,
        corpus: open.corpus,
        document,
        score: score_of(document),
        rank,
        time: time_of(document),
    };
    lists.push(best.into_iter().map(hit).collect());
    open.matching_documents = ranked.documents;
    Ok(int::to_u64(open.matching_documents.len()))
}

/// Returns for each document whether the ranges of a grant cover the document.
fn check_coverage(
    reader: &mut StoreSession<'_>,
    place: &SearchedConversation,
    index: &mut SearchIndex,
    corpus: Corpus,
    spans: &[(u64, u64)],
    documents: &[u64],
) -> Result<Vec<bool>> {
    let is_within = |first, last| grants::is_within(Some(spans), first, last);
    if corpus == Corpus::Messages {
        return Ok(documents.iter().map(|seq| is_within(*seq, *seq)).collect());
    }
    let rows = index.read_summaries(reader, documents)?;
    let wanted: Vec<(String, u32)> =
        rows.iter().map(|(id, bytes)| (place.keys.summary_key(*id), *bytes)).collect();
    let mut may = Vec::with_capacity(wanted.len());
    for ((key, _), value) in wanted.iter().zip(reader.read_immutable_uncached(&wanted)?) {
        let record: Summary = codec::decode(key, &value)?;
        may.push(is_within(record.seq_first, record.seq_last));
    }
    Ok(may)
}

/// Merges ranked lists into one list of at most `limit` hits.
fn merge_ranked_lists(lists: Vec<RankedHits>, limit: usize) -> Vec<GrepHit> {
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut out = Vec::new();
    while out.len() < limit {
        let heads = lists.iter_mut().enumerate().filter_map(|(number, list)| {
            let hit = list.peek()?;
            // `max` returns the last of equal ranks: the complement makes the earlier list win.
            Some((hit.rank, hit.time, usize::MAX - number))
        });
        let Some((.., number)) = heads.max() else { break };
        let best = lists.get_mut(usize::MAX - number).and_then(Iterator::next);
        out.extend(best);
    }
    out
}
