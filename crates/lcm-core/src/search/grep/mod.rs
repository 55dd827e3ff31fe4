//! Grep: finds messages, summaries and files that contain words or match a regular expression.
//!
//! Input: a query as JSON. Output: hits as JSON, best or newest first, each with a passage that
//! shows the match.
//! Elsewhere: the index, ranking and regular expressions ([`crate::search`]).

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

/// Default and greatest number of hits in an answer.
const LIMIT_DEFAULT: u64 = 50;
pub(crate) const LIMIT_MAX: u64 = 200;
/// Most other conversations of a family that one query searches. Each costs some reads, and a job
/// that resets its session every hour has thousands.
const MEMBERS_MAX: usize = 32;

use crate::storage::read_scope::{self, ReadLimits, RecallAnswer};

/// Name of the argument that holds the query, for error messages.
const QUERY_ARGUMENT: &str = "query-json";

/// Parsed query of a grep call.
struct GrepQuery {
    pattern: String,
    mode: GrepMode,
    scope: GrepScope,
    sort: GrepSort,
    window: TimeWindow,
    limit: u64,
    all: bool,
    /// Search the named conversation alone, without the rest of its family.
    only: bool,
    file_options: file_search::FileSearchOptions,
    /// Messages shown before and after each hit.
    neighbours: u64,
    vector: Option<QueryVector>,
}

/// Embedding of a query.
struct QueryVector {
    /// Quantised components.
    components: Vec<i8>,
    /// Name of the model that made the embedding, if the host gave one.
    model: Option<String>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum GrepMode {
    /// Regular expression or words, depending on the syntax of the pattern.
    Auto,
    Regex,
    FullText,
}

/// Documents that a query searches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GrepScope {
    Messages,
    Summaries,
    Both,
    Files,
}

/// Order of the hits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GrepSort {
    /// Newest first.
    Recency,
    /// Best score first; equal scores, and matches of a regular expression, newest first.
    Relevance,
    /// Best score first, where the score decreases with age.
    Hybrid,
}

/// Names of the modes. `full-text` has two spellings.
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

/// Parsed pattern: words or a regular expression.
enum GrepPattern {
    Text(TextQuery),
    Regex(Box<Regex>),
}

/// Scope, order and limits of a search.
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
    /// Returns the sort key of a hit, greatest first. A match of a regular expression has no score
    /// and sorts by time.
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

/// Results of a search before they become JSON.
#[derive(Default)]
struct GrepResults {
    /// Rendered hits in order, at most `limit`.
    rows: Vec<render_hits::RenderedHit>,
    total: u64,
    /// A file has more passages than are listed, or a message names more files than are searched.
    has_more: bool,
    /// Some words of the query were ignored, because the query has too many.
    is_cut: bool,
    /// Position at which the scan stopped: an id and a byte. The id names a file, or the message
    /// before which the scan stopped, or a [`cursor::ScanCursor`].
    unscanned_from: Option<(String, u64)>,
    /// For a page of a longer scan: the cursor of each row. Empty for a complete answer.
    cursors: Vec<String>,
}

/// One conversation that a query searches.
struct SearchedConversation {
    name: String,
    keys: ConversationKeys,
    loaded: LoadedHead,
    /// Ranges of seqs that may be found; `None`: all.
    spans: Option<Vec<(u64, u64)>>,
    /// Position in the scan order, which stays the same while conversations grow.
    scan_order: usize,
}

impl SearchedConversation {
    /// Reads the head of a conversation; `None` if the conversation does not exist.
    fn read(reader: &mut StoreSession<'_>, name: &str, turn: usize) -> Result<Option<Self>> {
        let keys = ConversationKeys::new(name)?;
        let loaded = LoadedHead::load_head(reader, &keys, name)?;
        let place =
            |loaded| Self { name: name.into(), keys, loaded, spans: None, scan_order: turn };
        Ok(Some(loaded).filter(|loaded| loaded.bytes.is_some()).map(place))
    }

    /// Makes this conversation the current one of the store session for the reads that follow.
    fn enter_conversation(&self, reader: &mut StoreSession<'_>) {
        reader.bind_head(&self.keys, self.loaded.head.revision, self.loaded.bytes.as_deref());
    }
}

/// Searches a conversation with its family, the conversation alone (`only`), or the whole store
/// (`all`), and returns JSON.
///
/// With a grant, searches the conversations of the grant and charges the passages to the grant.
///
/// # Errors
///
/// `invalid-input`: the query is malformed; `not-found`: the conversation or a file does not exist;
/// `limit-exceeded`: the regular expression is too large or too costly; `denied`, `conflict`: the
/// grant; errors of the store.
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

/// Searches like [`grep`], without charging the grant.
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

/// Returns the pattern as words if it looked like a regular expression and matched nothing.
/// Windows paths and prices look like regular expressions, too.
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

/// Renders the results as JSON, up to the tokens that the grant has left.
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
        // The next page begins with the first row that the grant did not cover.
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

/// Searches messages and summaries, and adds the neighbours that the query requests.
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
            "`start_id` requires a regular expression; set `mode` to `regex`, or omit `start_id`",
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

/// Parses the vector of a query and the name of its model.
fn parse_vector(fields: &mut JsonFields<'_>) -> Result<Option<QueryVector>> {
    let model = fields.take_optional_text("model");
    let parts = quantization::parse_vector(fields)?;
    if parts.is_none() && model.is_some() {
        return Err(Error::invalid_input("`model` requires `vector`"));
    }
    Ok(parts.map(|parts| QueryVector { components: parts, model }))
}

fn build_bounds(query: &GrepQuery, now: Timestamp) -> Result<GrepBounds> {
    let GrepQuery { limit, window, .. } = *query;
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Error::invalid_input(format_args!(
            "`limit` must be between 1 and {LIMIT_MAX}, got {limit}"
        )));
    }
    if let (Some(since), Some(before)) = (window.since, window.before)
        && since >= before
    {
        return Err(Error::invalid_input("`since` must be earlier than `before`"));
    }
    if query.all && query.only {
        return Err(Error::invalid_input("`only` and `all` are mutually exclusive"));
    }
    let limit = lcm_text::base::int::to_usize(limit);
    let GrepQuery { scope, sort, neighbours, .. } = *query;
    Ok(GrepBounds { scope, sort, window, limit, neighbours, now })
}

/// Parses a time of the query: ISO 8601, or milliseconds since the epoch. Absent or null: `None`.
fn parse_time(fields: &mut JsonFields<'_>, key: &str) -> Result<Option<Timestamp>> {
    let time = match fields.take_any(key) {
        None | Some((_, JsonKind::Null)) => return Ok(None),
        Some((text, JsonKind::String)) => time::parse(&text),
        Some((text, _)) => text.parse().ok().filter(|ms| *ms <= time::MS_MAX),
    };
    match time {
        Some(time) => Ok(Some(time)),
        None => Err(Error::invalid_input(format_args!(
            "`{key}` must be a time in ISO 8601, such as `2026-01-31T12:00:00Z`"
        ))),
    }
}

/// Parses the pattern, and adds notes on how the pattern was understood.
fn parse_pattern(
    query: &GrepQuery,
    now: Timestamp,
    notes: &mut Vec<&'static str>,
) -> Result<GrepPattern> {
    if query.pattern.is_empty() {
        return Err(Error::invalid_input("`pattern` must not be empty"));
    }
    let looks = looks_like_regex(&query.pattern);
    match query.mode {
        _ if query.vector.is_some() && query.scope == GrepScope::Files => {
            return Err(Error::invalid_input(
                "`vector` and the scope `files` are mutually exclusive: files have no vectors",
            ));
        }
        GrepMode::Regex if query.vector.is_some() => {
            return Err(Error::invalid_input(
                "`vector` requires words; set `mode` to `auto` or `full-text`",
            ));
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
        return Err(Error::invalid_input("`pattern` must not be empty"));
    }
    if looks {
        notes.push("looks-like-regex");
    }
    let text = TextQuery::parse_at(&query.pattern, now);
    if text.has_dropped_conditions {
        return Err(Error::limit_exceeded(
            "`pattern` must have fewer filters and fewer words with `+` or `-`: some would be \
             ignored",
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

/// Builds the error for a regular expression that is too costly for the first step of a scan.
fn too_costly_error() -> Error {
    Error::limit_exceeded(
        "`pattern` takes too many steps to match; shorten its repetitions, or narrow the search \
         with `since` and `before`",
    )
}

/// Builds the error for a cursor that is not part of this search.
fn foreign_cursor_error() -> Error {
    Error::not_found(
        "`start_id` does not belong to this query; repeat the query that returned the id",
    )
}

/// Reads the conversations of a grant, newest first; with `only`, at most the named one.
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
        // A conversation without a covered message is not searched.
        if place.spans.as_ref().is_none_or(|spans| !spans.is_empty()) {
            places.push(place);
        }
    }
    sort_newest_first(&mut places);
    Ok(places)
}

/// Reads the conversations named in a list of ranges, newest first.
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

/// Restricts conversations to ranges of messages, and drops conversations without a range.
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
        // Touching ranges stay separate: a summary across two ranges is covered by neither range.
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

/// Reads the conversations to search: the named one and its family, newest first, or all by id.
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
