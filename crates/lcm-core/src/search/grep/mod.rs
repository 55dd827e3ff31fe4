//! Grep: messages and summaries that hold words or match an expression, best or newest first.
//!
//! In: a query as JSON. Out: hits as JSON, each with the passage that shows why. This module says
//! what a query may be; [`find`] finds, [`show`] reads what is shown. Not here: the index and the
//! expressions ([`crate::search`]).

mod files;
mod find;
mod neighbours;
mod show;
mod start;

pub(crate) use neighbours::NEIGHBOURS_MAX;
pub(crate) use show::{best_passage_of, best_place};

use crate::storage::session;
use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    search::{
        Index,
        query::{TextQuery, looks_like_regex},
        regex::Regex,
        score,
        vectors::quantise,
        window::Window,
    },
    storage::{head::Loaded, keys::Keys, records::grants::Permit, store_session::Reader},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{Fields, Kind, Writer},
        time,
    },
    types::api::Timestamp,
};

/// Hits of an answer whose query names no limit, and of any answer.
const LIMIT: u64 = 50;
pub(crate) const LIMIT_MAX: u64 = 200;
/// Further conversations of a family that are searched. Each costs some reads, and a job that
/// resets its session every hour has thousands.
const MEMBERS_MAX: usize = 32;

use crate::storage::read_scope::{self, Answer, Within};

/// Name of the argument that holds the query.
const QUERY: &str = "query-json";

/// A query as it comes in.
struct Query {
    pattern: String,
    mode: Mode,
    scope: Scope,
    sort: Sort,
    window: Window,
    limit: u64,
    all: bool,
    /// Not the family of the conversation.
    only: bool,
    files: files::Asked,
    /// Messages that are shown before and after each one that is found.
    neighbours: u64,
    vector: Option<Vector>,
}

/// An embedding of what is looked for.
struct Vector {
    /// Its numbers, quantised.
    parts: Vec<i8>,
    /// The model that made it, if the host says.
    model: Option<String>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Mode {
    /// Whatever the pattern looks like.
    Auto,
    Regex,
    FullText,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    Messages,
    Summaries,
    Both,
    Files,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sort {
    /// The newest.
    Recency,
    /// The best; of equals, and of an expression's matches, the newest.
    Relevance,
    /// The best, where what is old counts less.
    Hybrid,
}

/// Names of the modes, in either spelling.
const MODES: [(&str, Mode); 4] = [
    ("auto", Mode::Auto),
    ("regex", Mode::Regex),
    ("full-text", Mode::FullText),
    ("full_text", Mode::FullText),
];
const SCOPES: [(&str, Scope); 4] = [
    ("messages", Scope::Messages),
    ("summaries", Scope::Summaries),
    ("both", Scope::Both),
    ("files", Scope::Files),
];
const SORTS: [(&str, Sort); 3] =
    [("recency", Sort::Recency), ("relevance", Sort::Relevance), ("hybrid", Sort::Hybrid)];

/// What is looked for.
enum Sought {
    Text(TextQuery),
    Regex(Box<Regex>),
}

/// How it is looked for.
#[derive(Clone, Copy)]
struct Bounds {
    scope: Scope,
    sort: Sort,
    window: Window,
    limit: usize,
    neighbours: u64,
    now: Timestamp,
}

impl Bounds {
    /// By what a hit of this score and time is ordered, the greatest first; a match of an
    /// expression has no score.
    fn rank(&self, score: Option<u64>, time: Timestamp) -> u64 {
        match (self.sort, score) {
            (Sort::Relevance, Some(score)) => score,
            (Sort::Hybrid, Some(score)) => score::aged(score, self.now.saturating_sub(time)),
            (Sort::Recency, _) | (_, None) => time,
        }
    }
}

/// What was found.
#[derive(Default)]
struct Answered {
    /// In order, as many as the bounds say.
    rows: Vec<show::Shown>,
    total: u64,
    /// A file has more passages than count, or a message names more files than are looked up.
    more: bool,
    /// Too many words were typed.
    is_cut: bool,
    /// Of files: the one in which the search ended, and the byte it goes on at; or the message
    /// before which it did. Of messages and summaries: the place, see [`start`].
    unscanned_from: Option<(String, u64)>,
    /// Of an answer that is one of several, where a search that comes to each row next goes on.
    starts: Vec<String>,
}

/// A conversation that is searched.
struct Place {
    name: String,
    keys: Keys,
    loaded: Loaded,
    /// What of it may be found, as ranges of seqs; `None`: all.
    spans: Option<Vec<(u64, u64)>>,
    /// When an expression comes to it: a number that does not change while conversations grow.
    turn: usize,
}

impl Place {
    /// The conversation of this id; `None`: it does not exist.
    fn read(reader: &mut Reader<'_>, name: &str, turn: usize) -> Result<Option<Self>> {
        let keys = Keys::new(name)?;
        let loaded = Loaded::of(reader, &keys, name)?;
        let place = |loaded| Self { name: name.into(), keys, loaded, spans: None, turn };
        Ok(Some(loaded).filter(|loaded| loaded.bytes.is_some()).map(place))
    }

    /// Says that what is read next belongs to this conversation.
    fn enter(&self, reader: &mut Reader<'_>) {
        reader.enter(&self.keys, self.loaded.head.revision, self.loaded.bytes.as_deref());
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
    reader: &mut Reader<'_>,
    conversation: &str,
    query_json: &str,
    grant: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    let permit = Permit::for_call(reader, conversation, grant, now)?;
    let within = Within::of(permit.as_ref());
    let answer = searched(reader, conversation, query_json, within, now)?;
    read_scope::handed_out(reader, answer, permit)
}

/// As [`grep`], with the tokens that are still to be charged.
///
/// # Errors
///
/// As [`grep`].
pub(crate) fn searched(
    reader: &mut Reader<'_>,
    conversation: &str,
    query_json: &str,
    within: Within<'_>,
    now: Timestamp,
) -> Result<Answer> {
    let query = query(query_json)?;
    let bounds = bounds(&query, now)?;
    let mut notes = Vec::new();
    let mut sought = sought(&query, now, &mut notes)?;
    within.must_have_left()?;
    let places = match (within.permit, within.searched) {
        (Some(permit), searched) => {
            let places = permitted(reader, conversation, &query, permit)?;
            match searched {
                Some(searched) => narrowed(places, searched),
                None => places,
            }
        }
        (None, Some(searched)) => narrowed(named(reader, searched)?, searched),
        (None, None) => places(reader, conversation, &query, &mut notes)?,
    };
    let mut indexes = Vec::with_capacity(places.len());
    for place in &places {
        place.enter(reader);
        indexes.push(Index::open(reader, &place.keys, &place.loaded.head)?);
    }
    let mut look = |sought: &mut Sought, notes: &mut Vec<&'static str>| match bounds.scope {
        Scope::Files => files::search(reader, &places, &mut indexes, sought, &bounds, &query.files),
        _ => said(reader, &places, &mut indexes, sought, &bounds, &query, notes),
    };
    let mut answered = look(&mut sought, &mut notes)?;
    if let Some(mut words) = otherwise(&query, &sought, &answered, now, &mut notes) {
        answered = look(&mut words, &mut notes)?;
    }
    Ok(told(answered, within, notes))
}

/// The words of a pattern that was taken for an expression by its looks and matches nothing: paths
/// of Windows and prices look so, too.
fn otherwise(
    query: &Query,
    sought: &Sought,
    answered: &Answered,
    now: Timestamp,
    notes: &mut Vec<&'static str>,
) -> Option<Sought> {
    let is_over = answered.total == 0 && answered.unscanned_from.is_none();
    if query.mode != Mode::Auto || !matches!(sought, Sought::Regex(_)) || !is_over {
        return None;
    }
    let words = TextQuery::asked(&query.pattern, now);
    if words.is_empty() || words.has_lost_conditions || query.files.start().is_some() {
        return None;
    }
    notes.retain(|note| *note != "mode-regex");
    notes.extend(["mode-full-text", "looks-like-regex"]);
    notes.extend(words.is_cut.then_some("terms-limited"));
    Some(Sought::Text(words))
}

/// The answer with what was found, as far as a grant reaches.
fn told(answered: Answered, within: Within<'_>, mut notes: Vec<&'static str>) -> Answer {
    let Answered { rows, mut total, more, is_cut, mut unscanned_from, starts } = answered;
    let found = lcm_text::base::int::to_u64(rows.len());
    let (mut matches, mut tokens, mut count) = (Writer::array(), 0u32, 0u64);
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
    let mut answer = Writer::object();
    within.note(tokens, found > count, &mut answer);
    answer.array_at("matches", matches);
    answer.texts("notes", &notes);
    answer.number("total", total);
    answer.flag("truncated", total > count || more || unscanned_from.is_some());
    if let Some((file, byte)) = unscanned_from {
        let mut from = Writer::object();
        from.number("byte", byte);
        from.text("id", &file);
        answer.object_at("unscanned_from", from);
    }
    Answer { starts, ..Answer::new(answer, tokens) }
}

/// What was found in messages and summaries, with the neighbours that are asked for.
fn said(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    sought: &mut Sought,
    bounds: &Bounds,
    query: &Query,
    notes: &mut Vec<&'static str>,
) -> Result<Answered> {
    let (vector, start) = (query.vector.as_ref(), query.files.start());
    if start.is_some() && matches!(sought, Sought::Text(_)) {
        return Err(Error::invalid(
            "start_id: words are looked for everywhere at once; it goes with an expression",
        ));
    }
    let found = find::find(reader, places, indexes, sought, bounds, vector, start)?;
    notes.extend_from_slice(&found.notes);
    let mut rows = show::show(reader, places, indexes, sought, &found.hits)?;
    if neighbours::add(reader, places, &found.hits, &mut rows, bounds.neighbours)? {
        notes.push("neighbours-limited");
    }
    let find::Found { total, is_cut, next, starts, .. } = found;
    let unscanned_from = next.map(|next| (next.name(places), 0));
    let starts = starts.into_iter().map(|start| start.name(places)).collect();
    Ok(Answered { rows, total, is_cut, unscanned_from, starts, more: false })
}

fn query(query_json: &str) -> Result<Query> {
    let mut fields = Fields::of_argument(QUERY, query_json)?;
    let mut choice = |key, names: &[&str]| fields.choice(key, names);
    let mode = choice("mode", &MODES.map(|(name, _)| name)).and_then(|at| MODES.get(at));
    let scope = choice("scope", &SCOPES.map(|(name, _)| name)).and_then(|at| SCOPES.get(at));
    let sort = choice("sort", &SORTS.map(|(name, _)| name)).and_then(|at| SORTS.get(at));
    let query = Query {
        pattern: fields.text_or_none("pattern").unwrap_or_default(),
        mode: mode.map_or(Mode::Auto, |(_, mode)| *mode),
        scope: scope.map_or(Scope::Both, |(_, scope)| *scope),
        sort: sort.map_or(Sort::Relevance, |(_, sort)| *sort),
        window: Window { since: at(&mut fields, "since")?, before: at(&mut fields, "before")? },
        limit: fields.number_or_none("limit").unwrap_or(LIMIT),
        all: fields.flag("all"),
        only: fields.flag("only"),
        files: files::Asked::read(
            &mut fields,
            scope.is_some_and(|(_, scope)| *scope == Scope::Files),
        )?,
        neighbours: neighbours::asked(&mut fields)?,
        vector: vector(&mut fields)?,
    };
    fields.end(QUERY)?;
    Ok(query)
}

/// The vector of a query, with the name of its model.
fn vector(fields: &mut Fields<'_>) -> Result<Option<Vector>> {
    let model = fields.text_or_none("model");
    let parts = quantise::vector(fields)?;
    if parts.is_none() && model.is_some() {
        return Err(Error::invalid("model: it is that of a vector, and there is none"));
    }
    Ok(parts.map(|parts| Vector { parts, model }))
}

fn bounds(query: &Query, now: Timestamp) -> Result<Bounds> {
    let Query { limit, window, .. } = *query;
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Error::invalid(format_args!("limit: {limit} is not from 1 to {LIMIT_MAX}")));
    }
    if let (Some(since), Some(before)) = (window.since, window.before)
        && since >= before
    {
        return Err(Error::invalid("since: it is not earlier than before"));
    }
    if query.all && query.only {
        return Err(Error::invalid("only: it does not go with all"));
    }
    let limit = lcm_text::base::int::to_usize(limit);
    let Query { scope, sort, neighbours, .. } = *query;
    Ok(Bounds { scope, sort, window, limit, neighbours, now })
}

/// A time of the query: ISO 8601, or milliseconds since the epoch.
fn at(fields: &mut Fields<'_>, key: &str) -> Result<Option<Timestamp>> {
    let time = match fields.any(key) {
        None | Some((_, Kind::Null)) => return Ok(None),
        Some((text, Kind::String)) => time::parse(&text),
        Some((text, _)) => text.parse().ok().filter(|ms| *ms <= time::MS_MAX),
    };
    match time {
        Some(time) => Ok(Some(time)),
        None => Err(Error::invalid(format_args!("{key}: no time of ISO 8601"))),
    }
}

/// What a pattern means, with notes on how it was taken.
fn sought(query: &Query, now: Timestamp, notes: &mut Vec<&'static str>) -> Result<Sought> {
    if query.pattern.is_empty() {
        return Err(Error::invalid("pattern: it is empty"));
    }
    let looks = looks_like_regex(&query.pattern);
    match query.mode {
        _ if query.vector.is_some() && query.scope == Scope::Files => {
            return Err(Error::invalid("vector: files have none"));
        }
        Mode::Regex if query.vector.is_some() => {
            return Err(Error::invalid("vector: it goes with words, not with an expression"));
        }
        Mode::Regex => return Ok(Sought::Regex(Box::new(Regex::compile(&query.pattern)?))),
        Mode::Auto if looks && query.vector.is_none() => {
            if let Ok(regex) = Regex::compile(&query.pattern) {
                notes.push("mode-regex");
                return Ok(Sought::Regex(Box::new(regex)));
            }
            notes.push("mode-full-text");
        }
        Mode::Auto => notes.push("mode-full-text"),
        Mode::FullText => {}
    }
    if query.pattern.trim().is_empty() {
        return Err(Error::invalid("pattern: it is empty"));
    }
    if looks {
        notes.push("looks-like-regex");
    }
    let text = TextQuery::asked(&query.pattern, now);
    if text.has_lost_conditions {
        return Err(Error::limit(
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
    Ok(Sought::Text(text))
}

/// The error of an expression that takes too many steps for what is looked through first.
fn too_costly() -> Error {
    Error::limit(
        "pattern: matching the expression takes too many steps; shorter repetitions, or since and \
         before around the time that is meant, take fewer",
    )
}

/// The error of a place to go on at that is none of the search.
fn not_come_to() -> Error {
    Error::not_found("start_id: the search does not come to it; it goes on as the same query")
}

/// The conversations of a grant that are searched: all, or `only` the one, newest first.
fn permitted(
    reader: &mut Reader<'_>,
    conversation: &str,
    query: &Query,
    permit: &Permit,
) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for (turn, name) in permit.conversations(reader)?.into_iter().enumerate() {
        if query.only && name != conversation {
            continue;
        }
        let Some(mut place) = Place::read(reader, &name, turn)? else { continue };
        place.spans = permit.spans(&place.keys);
        // What is not covered at all is not searched.
        if place.spans.as_ref().is_none_or(|spans| !spans.is_empty()) {
            places.push(place);
        }
    }
    newest_first(&mut places);
    Ok(places)
}

/// The conversations of which parts alone are searched.
fn named(reader: &mut Reader<'_>, searched: &[(&str, u64, u64)]) -> Result<Vec<Place>> {
    let mut names: Vec<&str> = searched.iter().map(|(name, ..)| *name).collect();
    lcm_text::base::sort::distinct(&mut names);
    let mut places = Vec::new();
    for (turn, name) in names.into_iter().enumerate() {
        places.extend(Place::read(reader, name, turn)?);
    }
    newest_first(&mut places);
    Ok(places)
}

/// Of conversations what lies in parts of them, too.
fn narrowed(places: Vec<Place>, searched: &[(&str, u64, u64)]) -> Vec<Place> {
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

fn newest_first(places: &mut [Place]) {
    lcm_text::base::sort::sort_by(places, &mut |a, b| {
        let times = b.loaded.head.time.cmp(&a.loaded.head.time);
        times.then_with(|| a.name.cmp(&b.name))
    });
}

/// The conversations that are searched: the one and its family, newest first, or all by id.
fn places(
    reader: &mut Reader<'_>,
    conversation: &str,
    query: &Query,
    notes: &mut Vec<&'static str>,
) -> Result<Vec<Place>> {
    if !query.all {
        let place = Place::read(reader, conversation, 0)?.ok_or_else(|| {
            Error::not_found(format_args!("conversation `{conversation}` does not exist"))
        })?;
        let family = place.loaded.head.family.filter(|_| !query.only);
        let mut places = alloc::vec![place];
        let Some(family) = family else { return Ok(places) };
        let mut members = session::others(reader, family, conversation)?;
        if members.len() > MEMBERS_MAX {
            members.truncate(MEMBERS_MAX);
            notes.push("family-limited");
        }
        for member in members {
            places.extend(Place::read(reader, &member.conversation, places.len())?);
        }
        newest_first(&mut places);
        return Ok(places);
    }
    let mut places = Vec::new();
    for name in read_scope::every_conversation(reader)? {
        places.extend(Place::read(reader, &name, places.len())?);
    }
    Ok(places)
}
