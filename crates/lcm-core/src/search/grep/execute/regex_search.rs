//! Search with a regular expression: scans documents and selects a page of matches.
//!
//! Input: the searched conversations, an expression and a cursor. Output: hits, and the cursor of
//! the next page. Elsewhere: the scan of one corpus ([`crate::search::regex_scan`]).

use alloc::vec::Vec;

use super::coverage::{check_coverage, is_limited};
use crate::{
    search::{
        corpus::Corpus,
        full_text::{self, FullTextContext},
        grep::{
            bounds::OwnSearches,
            cursor::{self, ScanCursor, foreign_cursor_error},
            hits::{FoundHits, GrepHit},
            pattern::too_costly_error,
            searched_conversation::GrepContext,
        },
        regex::Regex,
        regex_scan::{ScanRange, scan},
        text_query::TextQuery,
    },
    storage::store_session::StoreSession,
};
use lcm_text::base::{error::Result, int, sort};

/// Scans documents with a regular expression until all are scanned or the step budget is spent.
///
/// Conversations come in a fixed order. In each conversation, messages come from last to first,
/// then summaries from last to first. A complete scan returns the newest matches. A page (the scan
/// stopped, or `start` was given) returns the first matches in scan order, so that the next page
/// begins behind them. With [`OwnSearches::Last`], an agent's own searches come last among the
/// newest, and are left out of a page.
///
/// # Errors
///
/// - `limit-exceeded`: the regular expression spends its step budget before one step of the scan is
///   finished.
/// - `invalid-input`: `start` is not a cursor, or the query does not search the document of
///   `start`.
/// - `conflict`: the conversation has changed.
/// - `corrupt`: a record or the index is damaged.
/// - `unsupported`: a record has a newer format.
/// - Errors of the store.
pub(super) fn scan_with_regex(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    regex: &mut Regex,
    corpora: &[Corpus],
    start: Option<&str>,
) -> Result<FoundHits> {
    let parse = |text| ScanCursor::parse(text, context.conversations, context.indexes, corpora);
    let start = start.map(parse).transpose()?;
    let mut scans = list_scans(context, corpora);
    if let Some(start) = start {
        let is_start = |scan: &ScanCursor| {
            (scan.conversation_number, scan.corpus) == (start.conversation_number, start.corpus)
        };
        let before = scans.iter().position(is_start).ok_or_else(foreign_cursor_error)?;
        scans.drain(..before);
        scans.iter_mut().take(1).for_each(|first| *first = start);
    }
    let (mut hits, mut next, mut is_begun) = (Vec::new(), None, false);
    for cursor in scans {
        // Stop only after a finished step, so that each call makes progress.
        if is_begun && regex.is_budget_spent() {
            next = Some(cursor);
            break;
        }
        let Some((conversation, index)) = context.get(cursor.conversation_number) else { continue };
        conversation.enter_conversation(session);
        let spans = conversation.spans.as_deref();
        let range = ScanRange {
            corpus: cursor.corpus,
            last: cursor.document,
            spans,
            window: context.bounds.window,
        };
        let scanned = scan(session, &conversation.message_history(), index, &range, regex)?;
        is_begun |= scanned.has_finished_step;
        if regex.is_refused() && !is_begun {
            return Err(too_costly_error());
        }
        let mut matches = scanned.matches;
        if cursor.corpus == Corpus::Summaries && is_limited(conversation, cursor.corpus) {
            let documents: Vec<u64> = matches.iter().rev().map(|(document, _)| *document).collect();
            let covered = check_coverage(session, conversation, index, cursor.corpus, &documents)?;
            let mut covered = covered.into_iter().rev();
            matches.retain(|_| covered.next().unwrap_or(false));
        }
        let hit = |(document, time)| GrepHit::from_match(cursor, document, time);
        hits.extend(matches.into_iter().map(hit));
        if let Some(document) = scanned.next_document {
            next = Some(ScanCursor { document, ..cursor });
            break;
        }
    }
    if context.bounds.own_searches == OwnSearches::Last {
        place_own_searches(session, context, &mut hits)?;
        // A page keeps the order of the scan, in which nothing can come last.
        let is_page = next.is_some() || start.is_some();
        hits.retain(|hit| !is_page || !context.bounds.is_own_search(hit.rank));
    }
    let page = if start.is_some() { PageKind::Continued } else { PageKind::First };
    Ok(select_page(hits, next, page, context.bounds.limit))
}

/// Sets the ranks of hits so that an agent's own searches come last.
fn place_own_searches(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    hits: &mut [GrepHit],
) -> Result<()> {
    let query = TextQuery::parse("");
    for (number, conversation, index) in context.iter() {
        let is_here = |hit: &&mut GrepHit| hit.conversation_number == number;
        if !hits.iter_mut().any(|hit| is_here(&hit)) {
            continue;
        }
        conversation.enter_conversation(session);
        let history = conversation.message_history();
        let search = FullTextContext::new(&history, index, &query, context.bounds.window);
        let gathered = full_text::gather_matches(session, &search, Corpus::Messages)?;
        for hit in hits.iter_mut().filter(is_here) {
            let own_searches = match hit.corpus {
                Corpus::Messages => gathered.engine_tool_documents(),
                Corpus::Summaries => &[],
            };
            hit.rank = context.bounds.place_rank(hit.rank, hit.document, own_searches);
        }
    }
    Ok(())
}

/// Lists the corpora to scan in scan order, each as a cursor at its last document. Empty corpora
/// are omitted.
fn list_scans(context: &GrepContext<'_>, corpora: &[Corpus]) -> Vec<ScanCursor> {
    let ordered = context.iter().map(|(number, conversation, _)| (conversation.scan_order, number));
    let mut ordered: Vec<(usize, usize)> = ordered.collect();
    sort::sort(&mut ordered);
    let mut out = Vec::new();
    for (_, conversation_number) in ordered {
        let Some((conversation, index)) = context.get(conversation_number) else { continue };
        let scans = corpora.iter().map(|corpus| ScanCursor {
            conversation_number,
            corpus: *corpus,
            document: cursor::last_document(conversation, index, *corpus),
        });
        out.extend(scans.filter(|scan| scan.document > 0));
    }
    out
}

/// Whether a query has no cursor, or continues a scan at its cursor.
#[derive(Clone, Copy, Eq, PartialEq)]
enum PageKind {
    First,
    Continued,
}

/// Selects the hits of an answer from all matches in scan order. `next`: the first document not
/// scanned; `None`: the scan is complete.
fn select_page(
    mut hits: Vec<GrepHit>,
    next: Option<ScanCursor>,
    page: PageKind,
    limit: usize,
) -> FoundHits {
    if next.is_none() && page == PageKind::First {
        let total = int::to_u64(hits.len());
        // The rank is the time: newest first; with equal times, the earlier conversation and then
        // the later document.
        sort::sort_by(&mut hits, &mut |a, b| {
            let left = (a.conversation_number, a.corpus == Corpus::Summaries);
            let right = (b.conversation_number, b.corpus == Corpus::Summaries);
            let newest = b.rank.cmp(&a.rank).then(left.cmp(&right));
            newest.then(b.document.cmp(&a.document))
        });
        hits.truncate(limit);
        return FoundHits { hits, total, ..FoundHits::default() };
    }
    let cut = hits.get(limit).map(GrepHit::scan_cursor);
    hits.truncate(limit);
    FoundHits {
        total: int::to_u64(hits.len()),
        hit_cursors: hits.iter().map(GrepHit::scan_cursor).collect(),
        next_cursor: cut.or(next),
        hits,
        ..FoundHits::default()
    }
}
