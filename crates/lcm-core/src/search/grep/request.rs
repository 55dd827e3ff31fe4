//! Parser of grep queries.
//!
//! Input: a query as JSON. Output: the parsed query, its bounds and its pattern, for
//! [`super::grep`].

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{
    bounds::{GrepBounds, GrepScope, GrepSort, OwnSearches},
    file_options::FileSearchOptions,
    pattern::{GrepPattern, QueryVector},
};
use crate::{
    search::{
        regex::Regex,
        text_query::{TextQuery, looks_like_regex},
        time_window::TimeWindow,
        vectors::quantization,
    },
    storage::{cursor_binding::CursorBinding, records::grants::GrantAccess},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonKind},
        time,
    },
    types::api::Timestamp,
};

/// Most hits in an answer if the query has no `limit`.
const LIMIT_DEFAULT: u64 = 50;

/// Greatest `limit` of a query: most hits in an answer.
pub(crate) const LIMIT_MAX: u64 = 200;

/// Most neighbours on each side of a hit.
pub(crate) const NEIGHBOURS_MAX: u64 = 3;

/// Name of the argument that holds the query, for error messages.
const QUERY_ARGUMENT: &str = "query-json";

/// Parsed query of a grep call. [`build_bounds`] checks `limit`, and [`parse_pattern`] parses
/// `pattern`.
pub(super) struct GrepQuery {
    pub(super) pattern: String,
    pub(super) mode: GrepMode,
    pub(super) scope: GrepScope,
    pub(super) sort: GrepSort,
    pub(super) window: TimeWindow,
    pub(super) limit: u64,
    pub(super) all_conversations: bool,
    /// Whether only the named conversation is searched, without its family.
    pub(super) only: bool,
    pub(super) file_options: FileSearchOptions,
    /// Most messages shown on each side of a hit.
    pub(super) neighbours: u64,
    pub(super) vector: Option<QueryVector>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum GrepMode {
    /// Regular expression or words, depending on the syntax of the pattern. With a vector: words.
    Auto,
    Regex,
    FullText,
}

/// Names of the modes.
const MODES: [(&str, GrepMode); 3] =
    [("auto", GrepMode::Auto), ("regex", GrepMode::Regex), ("full-text", GrepMode::FullText)];

/// Names of the scopes.
const SCOPES: [(&str, GrepScope); 4] = [
    ("messages", GrepScope::Messages),
    ("summaries", GrepScope::Summaries),
    ("both", GrepScope::Both),
    ("files", GrepScope::Files),
];

/// Names of the orders.
const SORTS: [(&str, GrepSort); 3] = [
    ("recency", GrepSort::Recency),
    ("relevance", GrepSort::Relevance),
    ("hybrid", GrepSort::Hybrid),
];

/// Parses the fields of a query. [`build_bounds`] and [`parse_pattern`] check the rest.
///
/// # Errors
///
/// `invalid-input`: the text is not a JSON object, or a field is unknown or has a wrong value.
pub(super) fn parse_query(query_json: &str) -> Result<GrepQuery> {
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
        all_conversations: fields.take_flag("all_conversations"),
        only: fields.take_flag("only"),
        file_options: FileSearchOptions::read(
            &mut fields,
            scope.map_or(GrepScope::Both, |(_, scope)| *scope),
        )?,
        neighbours: parse_neighbours(&mut fields)?,
        vector: parse_vector(&mut fields)?,
    };
    fields.finish(QUERY_ARGUMENT)?;
    Ok(query)
}

/// Parses the number of neighbours on each side; absent: 0.
///
/// # Errors
///
/// `invalid-input`: the number is over 3.
fn parse_neighbours(fields: &mut JsonFields<'_>) -> Result<u64> {
    let count = fields.take_optional_u64("neighbours").unwrap_or(0);
    if count > NEIGHBOURS_MAX {
        return Err(Error::invalid_input(format_args!(
            "`neighbours` must be between 0 and {NEIGHBOURS_MAX}, got {count}"
        )));
    }
    Ok(count)
}

/// Parses the vector of a query and the name of its model; `None`: the query has no vector.
///
/// # Errors
///
/// `invalid-input`: the vector is malformed, or a model is named without a vector.
fn parse_vector(fields: &mut JsonFields<'_>) -> Result<Option<QueryVector>> {
    let model = fields.take_optional_text("model");
    let components = quantization::parse_vector(fields)?;
    if components.is_none() && model.is_some() {
        return Err(Error::invalid_input("`model` requires `vector`"));
    }
    Ok(components.map(|components| QueryVector { components, model }))
}

/// Checks `limit`, that `since` is before `before`, and that `only` excludes `all_conversations`,
/// and builds the bounds.
///
/// # Errors
///
/// `invalid-input`: `limit` is out of bounds, `since` is not before `before`, or the options
/// exclude each other.
pub(super) fn build_bounds(
    query: &GrepQuery,
    own_searches: OwnSearches,
    now: Timestamp,
) -> Result<GrepBounds> {
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
    if query.all_conversations && query.only {
        return Err(Error::invalid_input("`only` and `all_conversations` are mutually exclusive"));
    }
    let limit = int::to_usize(limit);
    let GrepQuery { scope, sort, neighbours, .. } = *query;
    Ok(GrepBounds { scope, sort, window, limit, neighbours, now, own_searches })
}

/// Binds the cursors of an answer to everything that decides which documents a scan visits, and in
/// which order.
pub(super) fn bind_cursors(
    query: &GrepQuery,
    pattern: &GrepPattern,
    conversation: &str,
    permit: Option<&GrantAccess>,
) -> CursorBinding {
    let scope = SCOPES.iter().find(|(_, scope)| *scope == query.scope).map_or("", |(name, _)| name);
    let is_regex = matches!(pattern, GrepPattern::Regex(_));
    let flags = [is_regex, query.all_conversations, query.only].map(u8::from);
    let time = |time: Option<Timestamp>| time.unwrap_or(Timestamp::MAX).to_be_bytes();
    let (since, before) = (time(query.window.since), time(query.window.before));
    let fixed: [&[u8]; 6] = [
        conversation.as_bytes(),
        query.pattern.as_bytes(),
        scope.as_bytes(),
        &flags,
        &since,
        &before,
    ];
    let mut fields = fixed.to_vec();
    let files = query.file_options.ids.as_deref();
    fields.extend(files.unwrap_or_default().iter().map(String::as_bytes));
    CursorBinding::new(&fields, permit, "query")
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
            "`{key}` must be a time in ISO 8601, such as `2026-01-31T12:00:00Z`, or milliseconds \
             since 1970"
        ))),
    }
}

/// Parses the pattern as words or as a regular expression, and adds notes on that choice and on
/// ignored parts.
///
/// # Errors
///
/// `invalid-input`: the pattern is empty or malformed, or the query has a vector that its mode or
/// scope excludes. `limit-exceeded`: the expression is too large, or the pattern has too many
/// conditions.
pub(super) fn parse_pattern(
    query: &GrepQuery,
    now: Timestamp,
    notes: &mut Vec<&'static str>,
) -> Result<GrepPattern> {
    if query.pattern.is_empty() {
        return Err(Error::invalid_input("`pattern` must not be empty"));
    }
    let is_regex_like = looks_like_regex(&query.pattern);
    match query.mode {
        _ if query.vector.is_some() && query.scope == GrepScope::Files => {
            return Err(Error::invalid_input(
                "`vector` and the scope `files` are mutually exclusive: files have no vectors",
            ));
        }
        GrepMode::Regex if query.vector.is_some() => {
            return Err(Error::invalid_input(
                "`vector` must not be given with the mode `regex`; set `mode` to `auto` or \
                 `full-text`",
            ));
        }
        GrepMode::Regex => {
            return Ok(GrepPattern::Regex(Box::new(Regex::compile(&query.pattern)?)));
        }
        GrepMode::Auto if is_regex_like && query.vector.is_none() => {
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
        return Err(Error::invalid_input(
            "`pattern` must have a character that is not white space",
        ));
    }
    if is_regex_like {
        notes.push("looks-like-regex");
    }
    let text = TextQuery::parse_at(&query.pattern, now, &[]);
    if text.has_dropped_conditions {
        return Err(Error::limit_exceeded(
            "`pattern` must have fewer filters and fewer words with `+` or `-`: some would be \
             ignored",
        ));
    }
    if let Some(filter) = &text.wrong_filter {
        return Err(Error::invalid_input(format_args!(
            "`pattern` must have a time such as 2026-01-31 behind `since:` and `before:`, a role \
             behind `role:` and a name behind `tool:`, got `{filter}`; quote words with a colon"
        )));
    }
    if text.is_cut {
        notes.push("terms-limited");
    }
    if text.is_empty() {
        notes.push("no-terms");
    }
    Ok(GrepPattern::Text(text))
}
