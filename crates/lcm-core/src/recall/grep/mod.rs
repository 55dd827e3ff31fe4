//! Grep: messages and summaries that hold words or match an expression, best or newest first.
//!
//! In: a query as JSON. Out: hits as JSON, each with the passage that shows why. This module says
//! what a query may be; [`find`] finds, [`show`] reads what is shown. Not here: the index and the
//! expressions ([`crate::search`]).

mod find;
mod show;

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    api::Timestamp,
    error::{Error, Result},
    head::Loaded,
    keys::{self, Keys},
    reader::Reader,
    search::{
        Index,
        query::{TextQuery, looks_like_regex},
        regex::Regex,
        window::Window,
    },
    time,
};

/// Hits of an answer whose query names no limit, and of any answer.
const LIMIT: u64 = 50;
const LIMIT_MAX: u64 = 200;

/// A query as it comes in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    pattern: String,
    mode: Mode,
    scope: Scope,
    sort: Sort,
    since: Option<Value>,
    before: Option<Value>,
    limit: Option<u64>,
    all: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Whatever the pattern looks like.
    #[default]
    Auto,
    Regex,
    #[serde(alias = "full_text")]
    FullText,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    Messages,
    Summaries,
    #[default]
    Both,
    Files,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Sort {
    /// The newest.
    Recency,
    /// The best; of equals, and of an expression's matches, the newest.
    #[default]
    Relevance,
    /// The best, where what is old counts less.
    Hybrid,
}

/// What is looked for.
enum Sought {
    Text(TextQuery),
    Regex(Box<Regex>),
}

/// How it is looked for.
struct Bounds {
    scope: Scope,
    sort: Sort,
    window: Window,
    limit: usize,
    now: Timestamp,
}

/// A conversation that is searched.
struct Place {
    name: String,
    keys: Keys,
    loaded: Loaded,
}

impl Place {
    /// The conversation of this id; `None`: it does not exist.
    fn read(reader: &mut Reader<'_>, name: &str) -> Result<Option<Self>> {
        let keys = Keys::new(name)?;
        let (loaded, _) = Loaded::read(reader, &keys, name, &[])?;
        Ok(loaded.bytes.is_some().then(|| Self { name: name.into(), keys, loaded }))
    }

    /// Says that what is read next belongs to this conversation.
    fn enter(&self, reader: &mut Reader<'_>) {
        reader.enter(&self.keys, &self.loaded.head, self.loaded.bytes.as_deref());
    }
}

/// Searches a conversation, or all of the store, and answers as JSON.
///
/// # Errors
///
/// `invalid-input`: the query; `not-found`: the conversation; `unsupported`: grants, files;
/// `limit-exceeded`: the expression; errors of the store.
pub(crate) fn grep(
    reader: &mut Reader<'_>,
    conversation: &str,
    query_json: &str,
    grant: Option<&str>,
    now: Timestamp,
) -> Result<String> {
    super::ungranted(grant)?;
    let query: Query = serde_json::from_str(query_json)
        .map_err(|error| Error::invalid(alloc::format!("query-json: {error}")))?;
    let bounds = bounds(&query, now)?;
    let mut notes = Vec::new();
    let mut sought = sought(&query, &mut notes)?;
    let places = places(reader, conversation, query.all)?;
    let mut indexes = Vec::with_capacity(places.len());
    for place in &places {
        place.enter(reader);
        indexes.push(Index::open(reader, &place.keys, &place.loaded.head)?);
    }
    let (hits, total) = find::find(reader, &places, &mut indexes, &mut sought, &bounds)?;
    let truncated = total > crate::num::to_u64(hits.len());
    let matches = show::show(reader, &places, &mut indexes, &mut sought, &hits)?;
    Ok(super::json(&json!({
        "matches": matches,
        "total": total,
        "truncated": truncated,
        "notes": notes,
    })))
}

fn bounds(query: &Query, now: Timestamp) -> Result<Bounds> {
    let limit = query.limit.unwrap_or(LIMIT);
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Error::invalid(alloc::format!("limit: {limit} is not from 1 to {LIMIT_MAX}")));
    }
    if query.scope == Scope::Files {
        return Err(Error::unsupported("scope: this version keeps no files apart from messages"));
    }
    let window = Window { since: at("since", &query.since)?, before: at("before", &query.before)? };
    if let (Some(since), Some(before)) = (window.since, window.before)
        && since >= before
    {
        return Err(Error::invalid("since: it is not earlier than before"));
    }
    let limit = crate::num::to_usize(limit);
    Ok(Bounds { scope: query.scope, sort: query.sort, window, limit, now })
}

/// A time of the query: ISO 8601, or milliseconds since the epoch.
fn at(name: &str, value: &Option<Value>) -> Result<Option<Timestamp>> {
    let time = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => time::parse(text),
        Some(value) => value.as_u64().filter(|ms| *ms <= time::MS_MAX),
    };
    match time {
        Some(time) => Ok(Some(time)),
        None => Err(Error::invalid(alloc::format!("{name}: no time of ISO 8601"))),
    }
}

/// What a pattern means, with notes on how it was taken.
fn sought(query: &Query, notes: &mut Vec<&'static str>) -> Result<Sought> {
    if query.pattern.is_empty() {
        return Err(Error::invalid("pattern: it is empty"));
    }
    let looks = looks_like_regex(&query.pattern);
    match query.mode {
        Mode::Regex => return Ok(Sought::Regex(Box::new(Regex::compile(&query.pattern)?))),
        Mode::Auto if looks => {
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
    let text = TextQuery::parse(&query.pattern);
    if text.is_cut {
        notes.push("terms-limited");
    }
    if text.is_empty() {
        notes.push("no-terms");
    }
    Ok(Sought::Text(text))
}

/// The conversations that are searched, by id.
fn places(reader: &mut Reader<'_>, conversation: &str, all: bool) -> Result<Vec<Place>> {
    if !all {
        let place = Place::read(reader, conversation)?;
        return match place {
            Some(place) => Ok(alloc::vec![place]),
            None => Err(Error::not_found(alloc::format!(
                "conversation `{conversation}` does not exist"
            ))),
        };
    }
    let mut names: Vec<String> = Vec::new();
    reader.scan(keys::NAMES, keys::NAMES_END, |key, value| {
        let (_, name): (String, String) = crate::codec::decode(key, value)?;
        names.push(name);
        Ok(())
    })?;
    names.sort_unstable();
    let mut places = Vec::new();
    for name in names {
        places.extend(Place::read(reader, &name)?);
    }
    Ok(places)
}
