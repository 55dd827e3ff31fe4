//! Grep: messages and summaries that hold words or match an expression, best or newest first.
//!
//! In: a query as JSON. Out: hits as JSON, each with the passage that shows why. This module says
//! what a query may be; [`find`] finds, [`show`] reads what is shown. Not here: the index and the
//! expressions ([`crate::search`]).

mod cursor;
mod execute;
mod file_search;
mod neighbours;
mod render_hits;

pub(crate) use neighbours::NEIGHBOURS_MAX;
pub(crate) use render_hits::{find_query_offset, find_query_passage};

use crate::storage::session;
use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    search::{
        SearchIndex,
        regex::Regex,
        score,
        text_query::{TextQuery, looks_like_regex},
        time_window::TimeWindow,
        vectors::quantization,
    },
    storage::{
        head::LoadedHead, keys::ConversationKeys, records::grants::GrantAccess,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{JsonFields, JsonKind, JsonWriter},
        time,
    },
    types::api::Timestamp,
};

/// Hits of an answer whose query names no limit, and of any answer.
const LIMIT_DEFAULT: u64 = 50;
pub(crate) const LIMIT_MAX: u64 = 200;
/// Further conversations of a family that are searched. Each costs some reads, and a job that
/// resets its session every hour has thousands.
const MEMBERS_MAX: usize = 32;

use crate::storage::read_scope::{self, ReadLimits, RecallAnswer};

/// Name of the argument that holds the query.
const QUERY_ARGUMENT: &str = "query-json";

/// A query as it comes in.
struct GrepQuery {
    pattern: String,
    mode: GrepMode,
    scope: GrepScope,
    sort: GrepSort,
    window: TimeWindow,
    limit: u64,
    all: bool,
    /// Not the family of the conversation.
    only: bool,
    file_options: file_search::FileSearchOptions,
    /// Messages that are shown before and after each one that is found.
    neighbours: u64,
    vector: Option<QueryVector>,
}

/// An embedding of what is looked for.
struct QueryVector {
    /// Its numbers, quantised.
    components: Vec<i8>,
    /// The model that made it, if the host says.
    model: Option<String>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum GrepMode {
    /// Whatever the pattern looks like.
    Auto,
    Regex,
    FullText,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GrepScope {
    Messages,
    Summaries,
    Both,
    Files,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GrepSort {
    /// The newest.
    Recency,
    /// The best; of equals, and of an expression's matches, the newest.
    Relevance,
    /// The best, where what is old counts less.
    Hybrid,
}

/// Names of the modes, in either spelling.
const MODES: [(&str, GrepMode); 4] = [
    ("auto", GrepMode::Auto),
    ("regex", GrepMode::Regex),
    ("full-text", GrepMode::FullText),
    ("full_text", GrepMode::FullText),
];
const SCOPES: [(&str, GrepScope); 4] = [
    ("messages", GrepScope::Messages),
    ("summaries", GrepScope::Summaries),
    ("both", GrepScope::Both),
    ("files", GrepScope::Files),
];
const SORTS: [(&str, GrepSort); 3] = [
    ("recency", GrepSort::Recency),
    ("relevance", GrepSort::Relevance),
    ("hybrid", GrepSort::Hybrid),
];

/// What is looked for.
enum GrepPattern {
    Text(TextQuery),
    Regex(Box<Regex>),
}

/// How it is looked for.
#[derive(Clone, Copy)]
struct GrepBounds {
    scope: GrepScope,
    sort: GrepSort,
    window: TimeWindow,
    limit: usize,
    neighbours: u64,
    now: Timestamp,
}

impl GrepBounds {
    /// By what a hit of this score and time is ordered, the greatest first; a match of an
    /// expression has no score.
    fn rank_hit(&self, score: Option<u64>, time: Timestamp) -> u64 {
        match (self.sort, score) {
            (GrepSort::Relevance, Some(score)) => score,
            (GrepSort::Hybrid, Some(score)) => {
                score::decay_by_age(score, self.now.saturating_sub(time))
            }
            (GrepSort::Recency, _) | (_, None) => time,
        }
    }
}

/// What was found.
#[derive(Default)]
struct GrepResults {
    /// In order, as many as the bounds say.
    rows: Vec<render_hits::RenderedHit>,
    total: u64,
    /// A file has more passages than count, or a message names more files than are looked up.
    has_more: bool,
    /// Too many words were typed.
    is_cut: bool,
    /// Of files: the one in which the search ended, and the byte it goes on at; or the message
    /// before which it did. Of messages and summaries: the place, see [`start`].
    unscanned_from: Option<(String, u64)>,
    /// Of an answer that is one of several, where a search that comes to each row next goes on.
    cursors: Vec<String>,
}

/// A conversation that is searched.
struct SearchedConversation {
    name: String,
    keys: ConversationKeys,
    loaded: LoadedHead,
    /// What of it may be found, as ranges of seqs; `None`: all.
    spans: Option<Vec<(u64, u64)>>,
    /// When an expression comes to it: a number that does not change while conversations grow.
    scan_order: usize,
}

impl SearchedConversation {
    /// The conversation of this id; `None`: it does not exist.
    fn read(reader: &mut StoreSession<'_>, name: &str, turn: usize) -> Result<Option<Self>> {
        let keys = ConversationKeys::new(name)?;
        let loaded = LoadedHead::load_head(reader, &keys, name)?;
        let place =
            |loaded| Self { name: name.into(), keys, loaded, spans: None, scan_order: turn };
        Ok(Some(loaded).filter(|loaded| loaded.bytes.is_some()).map(place))
    }

    /// Says that what is read next belongs to this conversation.
    fn enter_conversation(&self, reader: &mut StoreSession<'_>) {
        reader.bind_head(&self.keys, self.loaded.head.revision, self.loaded.bytes.as_deref());
    }
}

/// Searches a conversation with its family, it `only`, or all of the store, and answers as JSON.
/// With a grant its conversations are searched, and it is charged for the passages.
///
/// # Errors
///
/// `invalid-input`: the query; `not-found`: the conversation or a file; `limit-exceeded`: the
/// expression, or what it would cost; `denied`, `conflict`: with a grant; errors of the store.
pub(crate) fn grep(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    query_json: &str,
    grant: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let permit = GrantAccess::for_call(reader, conversation, grant, now)?;
    let within = ReadLimits::from_permit(permit.as_ref());
    let answer = grep_uncharged(reader, conversation, query_json, within, now)?;
    read_scope::charge_answer(reader, answer, permit)
}

/// As [`grep`], with the tokens that are still to be charged.
///
/// # Errors
///
/// As [`grep`].
pub(crate) fn grep_uncharged(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    query_json: &str,
    within: ReadLimits<'_>,
    now: Timestamp,
) -> Result<RecallAnswer> {
    let query = parse_query(query_json)?;
    let bounds = build_bounds(&query, now)?;
    let mut notes = Vec::new();
    let mut sought = parse_pattern(&query, now, &mut notes)?;
    within.ensure_tokens_left()?;
    let places = match (within.permit, within.searched_ranges) {
        (Some(permit), searched) => {
            let places = read_permitted_conversations(reader, conversation, &query, permit)?;
            match searched {
                Some(searched) => narrow_to_ranges(places, searched),
                None => places,
            }
        }
        (None, Some(searched)) => {
            narrow_to_ranges(read_named_conversations(reader, searched)?, searched)
        }
        (None, None) => read_searched_conversations(reader, conversation, &query, &mut notes)?,
    };
    let mut indexes = Vec::with_capacity(places.len());
    for place in &places {
        place.enter_conversation(reader);
        indexes.push(SearchIndex::open(reader, &place.keys, &place.loaded.head)?);
    }
    let mut look = |sought: &mut GrepPattern, notes: &mut Vec<&'static str>| match bounds.scope {
        GrepScope::Files => file_search::search_files(
            reader,
            &places,
            &mut indexes,
            sought,
            &bounds,
            &query.file_options,
        ),
        _ => search_documents(reader, &places, &mut indexes, sought, &bounds, &query, notes),
    };
    let mut answered = look(&mut sought, &mut notes)?;
    if let Some(mut words) = retry_as_words(&query, &sought, &answered, now, &mut notes) {
        answered = look(&mut words, &mut notes)?;
    }
    Ok(render_results(answered, within, notes))
}

/// The words of a pattern that was taken for an expression by its looks and matches nothing: paths
/// of Windows and prices look so, too.
fn retry_as_words(
    query: &GrepQuery,
    sought: &GrepPattern,
    answered: &GrepResults,
    now: Timestamp,
    notes: &mut Vec<&'static str>,
) -> Option<GrepPattern> {
    let is_over = answered.total == 0 && answered.unscanned_from.is_none();
    if query.mode != GrepMode::Auto || !matches!(sought, GrepPattern::Regex(_)) || !is_over {
        return None;
    }
    let words = TextQuery::parse_at(&query.pattern, now);
    if words.is_empty() || words.has_dropped_conditions || query.file_options.start_id().is_some() {
        return None;
    }
    notes.retain(|note| *note != "mode-regex");
    notes.extend(["mode-full-text", "looks-like-regex"]);
    notes.extend(words.is_cut.then_some("terms-limited"));
    Some(GrepPattern::Text(words))
}

/// The answer with what was found, as far as a grant reaches.
fn render_results(
    answered: GrepResults,
    within: ReadLimits<'_>,
    mut notes: Vec<&'static str>,
) -> RecallAnswer {
    let GrepResults {
        rows,
        mut total,
        has_more: more,
        is_cut,
        mut unscanned_from,
        cursors: starts,
    } = answered;
    let found = lcm_text::base::int::to_u64(rows.len());
    let (mut matches, mut tokens, mut count) = (JsonWriter::new_array(), 0u32, 0u64);
    let tokens_max = within.tokens_max.unwrap_or(u32::MAX);
    for row in rows {
        let with_it = tokens.saturating_add(row.tokens);
        if with_it > tokens_max {
            break;
        }
        tokens = with_it;
        count += 1;
        matches.push_json(&row.json);
    }
    if let Some(start) = starts.get(lcm_text::base::int::to_usize(count)) {
        // What the grant leaves out comes next.
        (total, unscanned_from) = (count, Some((start.clone(), 0)));
    }
    if is_cut && !notes.contains(&"terms-limited") {
        notes.push("terms-limited");
    }
    if unscanned_from.is_some() {
        notes.push("scan-limited");
    }
    if more {
        notes.push("file-limited");
    }
    let mut answer = JsonWriter::new_object();
    within.write_grant_note(tokens, found > count, &mut answer);
    answer.add_array("matches", matches);
    answer.add_texts("notes", &notes);
    answer.add_number("total", total);
    answer.add_flag("truncated", total > count || more || unscanned_from.is_some());
    if let Some((file, byte)) = unscanned_from {
        let mut from = JsonWriter::new_object();
        from.add_number("byte", byte);
        from.add_text("id", &file);
        answer.add_object("unscanned_from", from);
    }
    RecallAnswer { cursors: starts, ..RecallAnswer::new(answer, tokens) }
}

/// What was found in messages and summaries, with the neighbours that are asked for.
fn search_documents(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    sought: &mut GrepPattern,
    bounds: &GrepBounds,
    query: &GrepQuery,
    notes: &mut Vec<&'static str>,
) -> Result<GrepResults> {
    let (vector, start) = (query.vector.as_ref(), query.file_options.start_id());
    if start.is_some() && matches!(sought, GrepPattern::Text(_)) {
        return Err(Error::invalid_input(
            "start_id: words are looked for everywhere at once; it goes with an expression",
        ));
    }
    let found = execute::execute_query(reader, places, indexes, sought, bounds, vector, start)?;
    notes.extend_from_slice(&found.notes);
    let mut rows = render_hits::render_hits(reader, places, indexes, sought, &found.hits)?;
    if neighbours::add_neighbours(reader, places, &found.hits, &mut rows, bounds.neighbours)? {
        notes.push("neighbours-limited");
    }
    let execute::FoundHits { total, is_cut, next_cursor: next, hit_cursors: starts, .. } = found;
    let unscanned_from = next.map(|next| (next.encode(places), 0));
    let starts = starts.into_iter().map(|start| start.encode(places)).collect();
    Ok(GrepResults { rows, total, is_cut, unscanned_from, cursors: starts, has_more: false })
}

fn parse_query(query_json: &str) -> Result<GrepQuery> {
    let mut fields = JsonFields::parse_argument(QUERY_ARGUMENT, query_json)?;
    let mut choice = |key, names: &[&str]| fields.take_optional_choice(key, names);
    let mode = choice("mode", &MODES.map(|(name, _)| name)).and_then(|at| MODES.get(at));
    let scope = choice("scope", &SCOPES.map(|(name, _)| name)).and_then(|at| SCOPES.get(at));
    let sort = choice("sort", &SORTS.map(|(name, _)| name)).and_then(|at| SORTS.get(at));
    let query = GrepQuery {
        pattern: fields.take_optional_text("pattern").unwrap_or_default(),
        mode: mode.map_or(GrepMode::Auto, |(_, mode)| *mode),
        scope: scope.map_or(GrepScope::Both, |(_, scope)| *scope),
        sort: sort.map_or(GrepSort::Relevance, |(_, sort)| *sort),
        window: TimeWindow {
            since: parse_time(&mut fields, "since")?,
            before: parse_time(&mut fields, "before")?,
        },
        limit: fields.take_optional_u64("limit").unwrap_or(LIMIT_DEFAULT),
        all: fields.take_flag("all"),
        only: fields.take_flag("only"),
        file_options: file_search::FileSearchOptions::read(
            &mut fields,
            scope.is_some_and(|(_, scope)| *scope == GrepScope::Files),
        )?,
        neighbours: neighbours::parse_neighbours(&mut fields)?,
        vector: parse_vector(&mut fields)?,
    };
    fields.finish(QUERY_ARGUMENT)?;
    Ok(query)
}

/// The vector of a query, with the name of its model.
fn parse_vector(fields: &mut JsonFields<'_>) -> Result<Option<QueryVector>> {
    let model = fields.take_optional_text("model");
    let parts = quantization::parse_vector(fields)?;
    if parts.is_none() && model.is_some() {
        return Err(Error::invalid_input("model: it is that of a vector, and there is none"));
    }
    Ok(parts.map(|parts| QueryVector { components: parts, model }))
}

fn build_bounds(query: &GrepQuery, now: Timestamp) -> Result<GrepBounds> {
    let GrepQuery { limit, window, .. } = *query;
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Error::invalid_input(format_args!(
            "limit: {limit} is not from 1 to {LIMIT_MAX}"
        )));
    }
    if let (Some(since), Some(before)) = (window.since, window.before)
        && since >= before
    {
        return Err(Error::invalid_input("since: it is not earlier than before"));
    }
    if query.all && query.only {
        return Err(Error::invalid_input("only: it does not go with all"));
    }
    let limit = lcm_text::base::int::to_usize(limit);
    let GrepQuery { scope, sort, neighbours, .. } = *query;
    Ok(GrepBounds { scope, sort, window, limit, neighbours, now })
}

/// A time of the query: ISO 8601, or milliseconds since the epoch.
fn parse_time(fields: &mut JsonFields<'_>, key: &str) -> Result<Option<Timestamp>> {
    let time = match fields.take_any(key) {
        None | Some((_, JsonKind::Null)) => return Ok(None),
        Some((text, JsonKind::String)) => time::parse(&text),
        Some((text, _)) => text.parse().ok().filter(|ms| *ms <= time::MS_MAX),
    };
    match time {
        Some(time) => Ok(Some(time)),
        None => Err(Error::invalid_input(format_args!("{key}: no time of ISO 8601"))),
    }
}

/// What a pattern means, with notes on how it was taken.
fn parse_pattern(
    query: &GrepQuery,
    now: Timestamp,
    notes: &mut Vec<&'static str>,
) -> Result<GrepPattern> {
    if query.pattern.is_empty() {
        return Err(Error::invalid_input("pattern: it is empty"));
    }
    let looks = looks_like_regex(&query.pattern);
    match query.mode {
        _ if query.vector.is_some() && query.scope == GrepScope::Files => {
            return Err(Error::invalid_input("vector: files have none"));
        }
        GrepMode::Regex if query.vector.is_some() => {
            return Err(Error::invalid_input("vector: it goes with words, not with an expression"));
        }
        GrepMode::Regex => {
            return Ok(GrepPattern::Regex(Box::new(Regex::compile(&query.pattern)?)));
        }
        GrepMode::Auto if looks && query.vector.is_none() => {
            if let Ok(regex) = Regex::compile(&query.pattern) {
                notes.push("mode-regex");
                return Ok(GrepPattern::Regex(Box::new(regex)));
            }
            notes.push("mode-full-text");
        }
        GrepMode::Auto => notes.push("mode-full-text"),
        GrepMode::FullText => {}
    }
    if query.pattern.trim().is_empty() {
        return Err(Error::invalid_input("pattern: it is empty"));
    }
    if looks {
        notes.push("looks-like-regex");
    }
    let text = TextQuery::parse_at(&query.pattern, now);
    if text.has_dropped_conditions {
        return Err(Error::limit_exceeded(
            "pattern: so many filters, and words that must or must not be there, are not kept; \
             fewer can be looked for",
        ));
    }
    if text.is_cut {
        notes.push("terms-limited");
    }
    if text.is_empty() {
        notes.push("no-terms");
    }
    Ok(GrepPattern::Text(text))
}

/// The error of an expression that takes too many steps for what is looked through first.
fn too_costly_error() -> Error {
    Error::limit_exceeded(
        "pattern: matching the expression takes too many steps; shorter repetitions, or since and \
         before around the time that is meant, take fewer",
    )
}

/// The error of a place to go on at that is none of the search.
fn foreign_cursor_error() -> Error {
    Error::not_found("start_id: the search does not come to it; it goes on as the same query")
}

/// The conversations of a grant that are searched: all, or `only` the one, newest first.
fn read_permitted_conversations(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    query: &GrepQuery,
    permit: &GrantAccess,
) -> Result<Vec<SearchedConversation>> {
    let mut places = Vec::new();
    for (turn, name) in permit.list_conversations(reader)?.into_iter().enumerate() {
        if query.only && name != conversation {
            continue;
        }
        let Some(mut place) = SearchedConversation::read(reader, &name, turn)? else { continue };
        place.spans = permit.covered_spans(&place.keys);
        // What is not covered at all is not searched.
        if place.spans.as_ref().is_none_or(|spans| !spans.is_empty()) {
            places.push(place);
        }
    }
    sort_newest_first(&mut places);
    Ok(places)
}

/// The conversations of which parts alone are searched.
fn read_named_conversations(
    reader: &mut StoreSession<'_>,
    searched: &[(&str, u64, u64)],
) -> Result<Vec<SearchedConversation>> {
    let mut names: Vec<&str> = searched.iter().map(|(name, ..)| *name).collect();
    lcm_text::base::sort::sort_and_dedup(&mut names);
    let mut places = Vec::new();
    for (turn, name) in names.into_iter().enumerate() {
        places.extend(SearchedConversation::read(reader, name, turn)?);
    }
    sort_newest_first(&mut places);
    Ok(places)
}

/// Of conversations what lies in parts of them, too.
fn narrow_to_ranges(
    places: Vec<SearchedConversation>,
    searched: &[(&str, u64, u64)],
) -> Vec<SearchedConversation> {
    let mut out = Vec::new();
    for mut place in places {
        let parts = searched.iter().filter(|(name, ..)| *name == place.name);
        let parts: Vec<(u64, u64)> = parts.map(|(_, first, last)| (*first, *last)).collect();
        let whole = [(1, u64::MAX)];
        let given = place.spans.as_deref().unwrap_or(&whole);
        // Not joined where they touch: a summary of two parts is in neither of them.
        let common = given.iter().flat_map(|(from, to)| {
            parts.iter().map(|(first, last)| ((*from).max(*first), (*to).min(*last)))
        });
        let spans: Vec<(u64, u64)> = common.filter(|(from, to)| from <= to).collect();
        if !spans.is_empty() {
            place.spans = Some(spans);
            out.push(place);
        }
    }
    out
}

fn sort_newest_first(places: &mut [SearchedConversation]) {
    lcm_text::base::sort::sort_by(places, &mut |a, b| {
        let times = b.loaded.head.time.cmp(&a.loaded.head.time);
        times.then_with(|| a.name.cmp(&b.name))
    });
}

/// The conversations that are searched: the one and its family, newest first, or all by id.
fn read_searched_conversations(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    query: &GrepQuery,
    notes: &mut Vec<&'static str>,
) -> Result<Vec<SearchedConversation>> {
    if !query.all {
        let place = SearchedConversation::read(reader, conversation, 0)?.ok_or_else(|| {
            Error::not_found(format_args!("conversation `{conversation}` does not exist"))
        })?;
        let family = place.loaded.head.family.filter(|_| !query.only);
        let mut places = alloc::vec![place];
        let Some(family) = family else { return Ok(places) };
        let mut members = session::list_other_members(reader, family, conversation)?;
        if members.len() > MEMBERS_MAX {
            members.truncate(MEMBERS_MAX);
            notes.push("family-limited");
        }
        for member in members {
            places.extend(SearchedConversation::read(reader, &member.conversation, places.len())?);
        }
        sort_newest_first(&mut places);
        return Ok(places);
    }
    let mut places = Vec::new();
    for name in read_scope::list_all_conversations(reader)? {
        places.extend(SearchedConversation::read(reader, &name, places.len())?);
    }
    Ok(places)
}
