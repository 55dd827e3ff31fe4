//! Selection, order and count of the hits in messages and summaries.
//!
//! Input: conversations, their indexes and a pattern. Output: at most `limit` hits. Elsewhere:
//! rendering (`render_hits`), files (`file_search`).
//!
//! For words, each corpus of each conversation gives a ranked list, and the lists are merged. The
//! weight of a term counts documents of one corpus in all searched conversations. A regular
//! expression is matched in one conversation after another.

mod coverage;
mod fusion;
mod regex_search;
mod word_search;

pub(super) use word_search::find_used_flags;

use alloc::vec::Vec;

use self::{
    fusion::{FUSED_HITS_MAX, VectorSearch, fuse_rankings},
    regex_search::scan_with_regex,
    word_search::{
        count_vector_only_hits, gather_corpora, merge_ranked_lists, note_partial_reads,
        rank_all_corpora,
    },
};
use super::{
    bounds::{GrepBounds, GrepScope, GrepSort},
    hits::FoundHits,
    pattern::{GrepPattern, QueryVector},
    searched_conversation::GrepContext,
};
use crate::{
    search::{corpus::Corpus, text_query::TextQuery},
    storage::store_session::StoreSession,
};
use lcm_text::base::{error::Result, int};

/// Returns the hits. `start` is the text of the cursor at which a scan with a regular expression
/// begins.
///
/// # Errors
///
/// `limit-exceeded`: the regular expression, an excluded phrase or a speaker filter costs too much.
/// `invalid-input`: `start` is not a cursor, the query does not search the document of `start`, or
/// no stored vector is comparable with `vector`. `conflict`: the conversation has changed.
/// `corrupt`: a record or the index is damaged; `unsupported`: a record has a newer format. Errors
/// of the store.
pub(super) fn execute_query(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    pattern: &mut GrepPattern,
    vector: Option<&QueryVector>,
    start: Option<&str>,
) -> Result<FoundHits> {
    let corpora: &[Corpus] = match context.bounds.scope {
        GrepScope::Messages => &[Corpus::Messages],
        GrepScope::Summaries => &[Corpus::Summaries],
        GrepScope::Both | GrepScope::Files => &[Corpus::Messages, Corpus::Summaries],
    };
    match pattern {
        GrepPattern::Text(query) if query.is_empty() && vector.is_none() => {
            Ok(FoundHits::default())
        }
        GrepPattern::Text(query) => search_words(session, context, query, vector, corpora),
        GrepPattern::Regex(regex) => scan_with_regex(session, context, regex, corpora, start),
    }
}

/// Searches for words, for a vector, or for both with fused rankings.
fn search_words(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    query: &TextQuery,
    vector: Option<&QueryVector>,
    corpora: &[Corpus],
) -> Result<FoundHits> {
    let mut gathered = gather_corpora(session, context, query, corpora)?;
    let mut found = FoundHits {
        is_cut: gathered.iter().any(|part| part.gathered.has_dropped_items),
        ..FoundHits::default()
    };
    let word_bounds = match vector {
        Some(_) => {
            GrepBounds { sort: GrepSort::Relevance, limit: FUSED_HITS_MAX, ..*context.bounds }
        }
        None => *context.bounds,
    };
    let mut lists = Vec::new();
    if !query.is_empty() {
        let context = GrepContext { bounds: &word_bounds, ..*context };
        lists = rank_all_corpora(session, &context, &mut gathered, query, corpora)?;
        let counts = gathered.iter().map(|part| part.matching_documents.len());
        found.total = int::to_u64(counts.sum());
        if found.total == 0 && corpora.contains(&Corpus::Messages) {
            note_partial_reads(session, &context, &mut found)?;
        }
    }
    let by_words = merge_ranked_lists(lists, word_bounds.limit);
    let Some(vector) = vector else {
        found.hits = by_words;
        return Ok(found);
    };
    let mut search = VectorSearch::new(*context, query, vector);
    let nearest = search.find_nearest(session, &gathered)?;
    search.notes.iter().for_each(|note| found.add_note(note));
    found.total += count_vector_only_hits(&gathered, &nearest);
    found.hits = fuse_rankings(by_words, nearest, context.bounds);
    found.hits.truncate(context.bounds.limit);
    Ok(found)
}
