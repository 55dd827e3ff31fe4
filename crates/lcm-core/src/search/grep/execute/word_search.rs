//! Search for words: ranks the matches of each corpus and merges the rankings.
//!
//! Input: the searched conversations and a query of words. Output: lookups, ranked lists and one
//! merged list, for `execute`. Elsewhere: ranking one corpus ([`crate::search::full_text`]).

use alloc::vec::Vec;

use super::coverage::{check_coverage, is_limited};
use crate::{
    search::{
        corpus::Corpus,
        full_text::{
            self, CorpusMatches, CorpusStatistics, FullTextContext, NeighbourHits, RankedDocuments,
        },
        grep::{
            bounds::GrepSort,
            hits::{FoundHits, GrepHit},
            searched_conversation::GrepContext,
        },
        index_reader::SearchIndex,
        score,
        text_query::TextQuery,
    },
    storage::{store_session::StoreSession, withdrawn_mark},
};
use lcm_text::{
    base::{error::Result, int, sort},
    types::api::Timestamp,
};

/// Divisor of a score: a set-aside message or another form loses its score divided by this number,
/// a quarter. Forms of one message differ in length, and a shorter form can score up to a quarter
/// more.
const WITHDRAWN_LOSS: u64 = 4;

/// Best hits of one corpus of one conversation, in the order of the query.
pub(super) type RankedHits = Vec<GrepHit>;

/// Index lookups of one corpus of one conversation, kept between gathering and ranking.
pub(super) struct GatheredCorpus {
    pub(super) conversation_number: usize,
    pub(super) corpus: Corpus,
    pub(super) gathered: CorpusMatches,
    /// Numbers of all matching documents that may be found, ascending; empty before ranking.
    pub(super) matching_documents: Vec<u64>,
}

/// Looks up the query in every corpus of every conversation.
///
/// # Errors
///
/// `limit-exceeded`: an excluded phrase costs too much; `conflict`: the conversation has changed;
/// `corrupt`: the index is damaged; `unsupported`: a record has a newer format; errors of the
/// store.
pub(super) fn gather_corpora(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    query: &TextQuery,
    corpora: &[Corpus],
) -> Result<Vec<GatheredCorpus>> {
    let mut out = Vec::new();
    for (conversation_number, conversation, index) in context.iter() {
        conversation.enter_conversation(session);
        let history = conversation.message_history();
        let search = FullTextContext::new(&history, index, query, context.bounds.window);
        for corpus in corpora {
            out.push(GatheredCorpus {
                conversation_number,
                corpus: *corpus,
                gathered: full_text::gather_matches(session, &search, *corpus)?,
                matching_documents: Vec::new(),
            });
        }
    }
    Ok(out)
}

/// Ranks every gathered corpus. Returns one list of best hits for each corpus of each conversation.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(super) fn rank_all_corpora(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    gathered: &mut [GatheredCorpus],
    query: &TextQuery,
    corpora: &[Corpus],
) -> Result<Vec<RankedHits>> {
    let mut lists = Vec::new();
    for corpus in corpora {
        let mut statistics = CorpusStatistics::default();
        for part in gathered.iter().filter(|part| part.corpus == *corpus) {
            statistics.add_statistics(&part.gathered.statistics);
        }
        for part in gathered.iter_mut().filter(|part| part.corpus == *corpus) {
            lists.push(find_best_hits(session, context, part, query, &statistics)?);
        }
    }
    Ok(lists)
}

/// Returns the best hits of one corpus, at most `limit`, and stores the numbers of all matching
/// documents in `part`.
fn find_best_hits(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    part: &mut GatheredCorpus,
    query: &TextQuery,
    statistics: &CorpusStatistics,
) -> Result<RankedHits> {
    let Some((conversation, index)) = context.get(part.conversation_number) else {
        return Ok(Vec::new());
    };
    conversation.enter_conversation(session);
    let history = conversation.message_history();
    let search = FullTextContext::new(&history, index, query, context.bounds.window);
    let neighbours = match context.bounds.sort {
        GrepSort::Recency => NeighbourHits::Exclude,
        GrepSort::Relevance | GrepSort::Hybrid => NeighbourHits::Include,
    };
    let mut ranked = part.gathered.rank_documents(session, &search, statistics, neighbours)?;
    if is_limited(conversation, part.corpus) {
        let documents = &ranked.documents;
        let covered = check_coverage(session, conversation, index, part.corpus, documents)?;
        let (mut documents, mut scores) = (covered.iter(), covered.iter());
        ranked.documents.retain(|_| documents.next().is_some_and(|is_covered| *is_covered));
        ranked.scores.retain(|_| scores.next().is_some_and(|is_covered| *is_covered));
    }
    if part.corpus == Corpus::Messages && !ranked.documents.is_empty() {
        let withdrawals = withdrawn_mark::read_withdrawals(session, &history)?;
        for (document, score) in ranked.documents.iter().zip(&mut ranked.scores) {
            if withdrawals.reason_of(*document).is_some() {
                *score -= *score / WITHDRAWN_LOSS;
            }
        }
    }
    let best = select_best(session, context, part, index, &ranked)?;
    let mut documents: Vec<u64> = best.iter().map(|(_, document)| *document).collect();
    sort::sort_numbers(&mut documents);
    let times = part.gathered.read_times(session, index, &documents)?;
    let time_of = |document: u64| {
        let at = documents.binary_search(&document).ok();
        at.and_then(|at| times.get(at)).copied().unwrap_or(0)
    };
    let score_of = |document: u64| {
        let at = ranked.documents.binary_search(&document).ok();
        at.and_then(|at| ranked.scores.get(at)).copied()
    };
    let hit = |(rank, document): (u64, u64)| GrepHit {
        conversation_number: part.conversation_number,
        corpus: part.corpus,
        document,
        score: score_of(document),
        rank,
        time: time_of(document),
    };
    let hits = best.into_iter().map(hit).collect();
    part.matching_documents = ranked.documents;
    Ok(hits)
}

/// Selects the `limit` documents with the greatest ranks: pairs of rank and document, greatest
/// first.
fn select_best(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    part: &GatheredCorpus,
    index: &SearchIndex,
    ranked: &RankedDocuments,
) -> Result<Vec<(u64, u64)>> {
    let bounds = context.bounds;
    let rows = || ranked.documents.iter().copied().zip(ranked.scores.iter().copied());
    let own_searches = match part.corpus {
        Corpus::Messages => part.gathered.engine_tool_documents(),
        Corpus::Summaries => &[],
    };
    let place = |rank, document| (bounds.place_rank(rank, document, own_searches), document);
    if bounds.sort == GrepSort::Relevance {
        let mut ranks = rows().map(|(document, score)| place(score, document));
        return Ok(score::select_top(&mut ranks, bounds.limit));
    }
    let times = part.gathered.read_times(session, index, &ranked.documents)?;
    let rank = |((document, score), time): ((u64, u64), Timestamp)| {
        place(bounds.rank_hit(Some(score), time), document)
    };
    Ok(score::select_top(&mut rows().zip(times).map(rank), bounds.limit))
}

/// Returns those of `flags` that some searched message or summary has. `probe`: a query with an
/// item for each flag, in order.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(in crate::search::grep) fn find_used_flags<'t>(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    probe: &TextQuery,
    flags: Vec<&'t str>,
) -> Result<Vec<&'t str>> {
    let gathered = gather_corpora(session, context, probe, &[Corpus::Messages, Corpus::Summaries])?;
    let is_used = |item: usize| {
        let count_in =
            |part: &GatheredCorpus| part.gathered.statistics.item_counts.get(item).copied();
        gathered.iter().filter_map(count_in).any(|counts| counts[0] > 0)
    };
    let used = flags.into_iter().enumerate().filter(|(item, _)| is_used(*item));
    Ok(used.map(|(_, flag)| flag).collect())
}

/// Adds the note `partly-read` if some messages were indexed only in part. Called after a query
/// found nothing.
///
/// # Errors
///
/// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
/// record has a newer format; errors of the store.
pub(super) fn note_partial_reads(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    found: &mut FoundHits,
) -> Result<()> {
    let gathered =
        gather_corpora(session, context, &TextQuery::for_partial(), &[Corpus::Messages])?;
    let has_partial = |part: &GatheredCorpus| {
        part.gathered.statistics.item_counts.iter().any(|counts| counts[0] > 0)
    };
    if gathered.iter().any(has_partial) {
        found.add_note("partly-read");
    }
    Ok(())
}

/// Counts the nearest documents that are not among the matches by words.
pub(super) fn count_vector_only_hits(gathered: &[GatheredCorpus], nearest: &[GrepHit]) -> u64 {
    let contains = |part: &GatheredCorpus, hit: &GrepHit| {
        (part.conversation_number, part.corpus) == (hit.conversation_number, hit.corpus)
            && part.matching_documents.binary_search(&hit.document).is_ok()
    };
    let is_new = |hit: &&GrepHit| !gathered.iter().any(|part| contains(part, hit));
    int::to_u64(nearest.iter().filter(is_new).count())
}

/// Merges ranked lists by rank and time into one list of at most `limit` hits.
pub(super) fn merge_ranked_lists(lists: Vec<RankedHits>, limit: usize) -> Vec<GrepHit> {
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut out = Vec::new();
    while out.len() < limit {
        let heads = lists.iter_mut().enumerate().filter_map(|(number, list)| {
            let hit = list.peek()?;
            // The complement makes the earlier list win if rank and time are equal.
            Some((hit.rank, hit.time, usize::MAX - number))
        });
        let Some((.., number)) = heads.max() else { break };
        let best = lists.get_mut(usize::MAX - number).and_then(Iterator::next);
        out.extend(best);
    }
    out
}
