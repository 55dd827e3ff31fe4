//! Grep: finds messages, summaries and files by words, a vector or a regular expression.
//!
//! Input: a query as JSON. Output: hits as JSON, each with a passage, in the order that the query
//! asks for; pages of a long scan come in scan order. Used by the exported call `grep`, by the
//! tools of an agent, and by `ask`. Elsewhere: the index, ranking and regular expressions
//! ([`crate::search`]).

mod bounds;
mod cursor;
mod execute;
mod file_options;
mod file_search;
mod hits;
mod neighbours;
mod pattern;
mod render_hits;
mod request;
mod results;
mod searched_conversation;
mod system_search;

pub(crate) use bounds::OwnSearches;
pub(crate) use render_hits::{find_query_offset, find_query_passage};
pub(crate) use request::{LIMIT_MAX, NEIGHBOURS_MAX};

use alloc::{string::String, vec::Vec};

use self::{
    bounds::GrepScope,
    hits::FoundHits,
    pattern::GrepPattern,
    request::{GrepMode, GrepQuery},
    results::{GrepResults, render_results},
    searched_conversation::{
        GrepContext, narrow_to_ranges, read_named_conversations, read_permitted_conversations,
        read_searched_conversations,
    },
};
use crate::{
    search::{index_reader::SearchIndex, text_query::TextQuery},
    storage::{
        call::Call,
        read_scope::{self, ReadLimits, RecallAnswer},
        records::grants::GrantAccess,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::error::{Error, Result},
    types::api::Timestamp,
};

/// Searches a conversation with its family, the conversation alone (`only`), or the whole store
/// (`all_conversations`), and returns JSON. Of a family, at most 32 other members are searched.
///
/// With a grant, searches only what the grant covers, and charges the tokens of the passages to the
/// grant.
///
/// # Errors
///
/// - `invalid-input`: the query is malformed, its vector does not fit the stored vectors, or its
///   cursor does not belong to the query.
/// - `not-found`: the conversation, a named file or the file of `cursor` does not exist.
/// - `limit-exceeded`: the pattern is too large or too costly.
/// - `denied`: the conversation is being deleted; or the grant does not cover the conversation, is
///   not valid, or has no tokens left.
/// - `conflict`: the conversation or the grant changed during the call.
/// - `corrupt`: a record or the index is damaged.
/// - `unsupported`: a record has a newer format.
/// - Errors of the store.
pub(crate) fn grep(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    query_json: &str,
    grant: Option<&str>,
) -> Result<String> {
    let access = GrantAccess::for_call(session, call, grant)?;
    let limits = ReadLimits::from_permit(access.as_ref());
    let answer = grep_uncharged(session, call, query_json, limits, OwnSearches::Ranked)?;
    read_scope::charge_answer(session, answer, access)
}

/// Searches like [`grep`], without charging the grant. `own_searches`: the place of an agent's own
/// earlier searches.
///
/// # Errors
///
/// As for [`grep`], except errors of loading and charging the grant.
pub(crate) fn grep_uncharged(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    query_json: &str,
    limits: ReadLimits<'_>,
    own_searches: OwnSearches,
) -> Result<RecallAnswer> {
    let Call { conversation, now, .. } = call;
    let mut query = request::parse_query(query_json)?;
    let bounds = request::build_bounds(&query, own_searches, now)?;
    let mut notes = Vec::new();
    let mut pattern = request::parse_pattern(&query, now, &mut notes)?;
    limits.ensure_tokens_left()?;
    let binding = request::bind_cursors(&query, &pattern, conversation, limits.permit);
    if query.scope == GrepScope::Files || matches!(pattern, GrepPattern::Regex(_)) {
        query.file_options.open_cursor(&binding)?;
    }
    let conversations = match (limits.permit, limits.searched_ranges) {
        (Some(access), ranges) => {
            let all = read_permitted_conversations(session, conversation, &query, access)?;
            match ranges {
                Some(ranges) => narrow_to_ranges(all, ranges),
                None => all,
            }
        }
        (None, Some(ranges)) => {
            narrow_to_ranges(read_named_conversations(session, ranges)?, ranges)
        }
        (None, None) => read_searched_conversations(session, conversation, &query, &mut notes)?,
    };
    let mut indexes = Vec::with_capacity(conversations.len());
    for searched in &conversations {
        searched.enter_conversation(session);
        indexes.push(SearchIndex::open(session, &searched.keys, &searched.loaded.head)?);
    }
    let context = GrepContext { conversations: &conversations, indexes: &indexes, bounds: &bounds };
    let mut search = |pattern: &mut GrepPattern, notes: &mut Vec<&'static str>| {
        if let GrepPattern::Text(words) = pattern
            && let Some((probe, flags)) = TextQuery::for_flags(&query.pattern)
        {
            let flags = execute::find_used_flags(session, &context, &probe, flags)?;
            *words = TextQuery::parse_at(&query.pattern, now, &flags);
        }
        match bounds.scope {
            GrepScope::Files => {
                file_search::search_files(session, &context, pattern, &query.file_options)
            }
            _ => search_documents(session, &context, pattern, &query, notes),
        }
    };
    let mut results = search(&mut pattern, &mut notes)?;
    if let Some(words) = retry_as_words(&query, &pattern, &results, now, &mut notes) {
        pattern = words;
        results = search(&mut pattern, &mut notes)?;
    }
    let mut notes: Vec<&str> = notes;
    if let GrepPattern::Text(words) = &pattern {
        notes.extend(words.readings.iter().map(String::as_str));
    }
    for cursor in results.cursors.iter_mut().chain(&mut results.next_cursor) {
        *cursor = binding.seal_cursor(cursor);
    }
    Ok(render_results(results, limits, notes))
}

/// Parses the pattern as words if mode `auto` took the pattern for a regular expression and nothing
/// matched. Windows paths and prices look like regular expressions, too. `None`: no second search
/// is needed, the pattern has no usable words, or the scan begins at a position.
fn retry_as_words(
    query: &GrepQuery,
    pattern: &GrepPattern,
    results: &GrepResults,
    now: Timestamp,
    notes: &mut Vec<&'static str>,
) -> Option<GrepPattern> {
    let is_without_match = results.total == 0 && results.next_cursor.is_none();
    if query.mode != GrepMode::Auto
        || !matches!(pattern, GrepPattern::Regex(_))
        || !is_without_match
    {
        return None;
    }
    let words = TextQuery::parse_at(&query.pattern, now, &[]);
    if words.is_empty()
        || words.wrong_filter.is_some()
        || words.has_dropped_conditions
        || query.file_options.start_position().is_some()
    {
        return None;
    }
    notes.retain(|note| *note != "mode-regex");
    notes.extend(["mode-full-text", "looks-like-regex"]);
    notes.extend(words.is_cut.then_some("terms-limited"));
    Some(GrepPattern::Text(words))
}

/// Searches messages and summaries, renders the hits, and adds the neighbours that the query
/// requests.
fn search_documents(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    pattern: &mut GrepPattern,
    query: &GrepQuery,
    notes: &mut Vec<&'static str>,
) -> Result<GrepResults> {
    let (vector, start) = (query.vector.as_ref(), query.file_options.start_position());
    if query.file_options.has_cursor() && matches!(pattern, GrepPattern::Text(_)) {
        return Err(Error::invalid_input(
            "`cursor` requires a regular expression or the scope `files`; set `mode` to `regex`, \
             or omit `cursor`",
        ));
    }
    let found = execute::execute_query(session, context, pattern, vector, start)?;
    notes.extend_from_slice(&found.notes);
    let mut rows = render_hits::render_hits(session, context, pattern, &found.hits)?;
    let (conversations, count) = (context.conversations, context.bounds.neighbours);
    if neighbours::add_neighbours(session, conversations, &found.hits, &mut rows, count)? {
        notes.push("neighbours-limited");
    }
    let FoundHits { total, is_cut, next_cursor, hit_cursors, .. } = found;
    let next_cursor = next_cursor.map(|cursor| cursor.encode(conversations));
    let cursors = hit_cursors.into_iter().map(|cursor| cursor.encode(conversations)).collect();
    let mut results = GrepResults { rows, total, is_cut, next_cursor, cursors, has_more: false };
    let is_continued = start.is_some();
    system_search::add_system_rows(session, context, pattern, is_continued, &mut results)?;
    Ok(results)
}
