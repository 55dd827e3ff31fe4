//! Search of the system messages: their newest version in each searched conversation.
//!
//! Input: the searched conversations and a pattern. Output: a row for each conversation whose
//! newest version matches. The system messages are in no index: their text is read and matched
//! whole, and older versions are not searched.
//!
//! The rows come after the ranked hits, because the system messages belong to every context anyway;
//! on the first page of a longer scan they come first.

use alloc::vec::Vec;

use lcm_text::{
    base::{error::Result, int, json::JsonWriter, sort::SortedMap, tokens},
    message::Role,
};

use super::{
    bounds::GrepScope,
    pattern::GrepPattern,
    render_hits::{BestPassage, RenderedHit, SnippetFinder},
    results::GrepResults,
    searched_conversation::{GrepContext, SearchedConversation},
};
use crate::{
    search::{
        fields::{IndexingBudget, SearchField},
        terms::each_term,
        text_query::{FilterProperty, Presence, QueryFilter, QueryItem, TextQuery},
    },
    storage::{
        records::system_slot::{self, format_system_id},
        store_session::StoreSession,
    },
};

/// Adds the rows of the system messages that match. `is_continued`: the query continues at a
/// cursor, so an earlier page has these rows, and none is added.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged;
/// errors of the store.
pub(super) fn add_system_rows(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    pattern: &mut GrepPattern,
    is_continued: bool,
    results: &mut GrepResults,
) -> Result<()> {
    if is_continued || !matches!(context.bounds.scope, GrepScope::Messages | GrepScope::Both) {
        return Ok(());
    }
    let mut rows = Vec::new();
    for conversation in context.conversations {
        // A grant for some summaries does not cover the system messages.
        if conversation.loaded.head.system.is_some() && conversation.spans.is_none() {
            rows.extend(find_row(session, context, conversation, pattern)?);
        }
    }
    rows.truncate(context.bounds.limit);
    if rows.is_empty() {
        return Ok(());
    }
    results.total += int::to_u64(rows.len());
    let free = context.bounds.limit - rows.len();
    if results.next_cursor.is_none() {
        results.rows.truncate(free);
        results.rows.append(&mut rows);
        return Ok(());
    }
    // The cursor of a row is the start of the page that begins with the row.
    if let Some(cut) = results.cursors.get(free) {
        results.next_cursor = Some(cut.clone());
    }
    results.rows.truncate(free);
    results.cursors.truncate(free);
    let first = results.cursors.first().or(results.next_cursor.as_ref()).cloned();
    results.cursors.splice(..0, rows.iter().filter_map(|_| first.clone()));
    results.rows.splice(..0, rows);
    Ok(())
}

/// Returns the row of a conversation whose newest system messages match.
fn find_row(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    conversation: &SearchedConversation,
    pattern: &mut GrepPattern,
) -> Result<Option<RenderedHit>> {
    if let GrepPattern::Text(query) = pattern
        && !query.filters.iter().all(passes_filter)
    {
        return Ok(None);
    }
    conversation.enter_conversation(session);
    let history = conversation.message_history();
    let Some(version) = system_slot::read_newest(session, &history)? else { return Ok(None) };
    if !context.bounds.window.contains(version.time) {
        return Ok(None);
    }
    let text = system_slot::join_texts(&version.read_texts(session, &history)?);
    let mut best = BestPassage::default();
    let is_match = match pattern {
        GrepPattern::Text(query) => matches_words(query, &text),
        GrepPattern::Regex(_) => true,
    };
    if is_match {
        let mut budget = IndexingBudget::new(0);
        let mut finder = SnippetFinder::new(pattern);
        finder.search_text(SearchField::Text, &text, &mut budget, &mut best);
    }
    let Some(snippet) = best.into_match() else { return Ok(None) };
    let id = conversation.loaded.head.system.map_or([0; 8], |slot| slot.id);
    let mut row = JsonWriter::new_object();
    row.add_text("conversation", &conversation.name);
    row.add_time("created_at", version.time);
    for key in ["depth", "earliest_at", "entry_id"] {
        row.add_null(key);
    }
    row.add_text("id", &format_system_id(id));
    row.add_text("kind", "system");
    row.add_null("latest_at");
    row.add_text("role", Role::System.as_str());
    for key in ["score", "seq"] {
        row.add_null(key);
    }
    let tokens = tokens::estimate(&snippet.text);
    snippet.write(&mut row);
    row.add_text("type", "system");
    Ok(Some(RenderedHit { json: row.end_object(), tokens }))
}

/// Returns whether system messages may pass a filter.
fn passes_filter(filter: &QueryFilter) -> bool {
    let is_system = matches!(filter.property, FilterProperty::Role(Role::System));
    is_system != filter.is_negated
}

/// Returns whether a text has every required word and phrase, no excluded one, and at least one
/// that is not excluded.
fn matches_words(query: &TextQuery, text: &str) -> bool {
    let names = query.terms.iter().map(|term| (term.as_slice(), Vec::new()));
    let mut found: SortedMap<&[u8], Vec<u32>> = SortedMap::from_entries(names.collect());
    for item in &query.items {
        for (term, _) in &item.order {
            found.get_or_insert_default(term.as_slice());
        }
    }
    each_term(SearchField::Text, text, &mut |term, position, _| {
        if let Some(positions) = found.get_mut(term) {
            positions.push(position);
        }
    });
    let positions = |term: &[u8]| found.get(term).map_or(&[][..], Vec::as_slice);
    let has_item = |item: &QueryItem| match item.order.split_first() {
        None => item
            .terms
            .iter()
            .chain(&item.forms)
            .filter_map(|number| query.terms.get(*number))
            .any(|term| !positions(term).is_empty()),
        Some(((first, from), rest)) => positions(first).iter().any(|start| {
            rest.iter().all(|(term, distance)| {
                positions(term).contains(&(start + distance.saturating_sub(*from)))
            })
        }),
    };
    let mut count = 0;
    for item in &query.items {
        match (item.presence, has_item(item)) {
            (Presence::Must, false) | (Presence::MustNot, true) => return false,
            (Presence::MustNot, false) | (Presence::Should, false) => {}
            (Presence::Must | Presence::Should, true) => count += 1,
        }
    }
    count > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_as_in_messages() {
        let text = "You are the deploy assistant.\n\nNever deploy on Fridays; ask Mara first.";
        let has = |query: &str| matches_words(&TextQuery::parse(query), text);
        assert!(has("fridays") && has("Friday") && has("deploy zebra") && has("+deploy +mara"));
        assert!(has("\"ask mara first\"") && !has("\"mara ask first\""));
        assert!(!has("zebra") && !has("+deploy +zebra") && !has("deploy -mara") && !has(""));
    }
}
