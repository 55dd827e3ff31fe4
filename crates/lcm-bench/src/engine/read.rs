//! Operations about single messages and summaries.
//!
//! In: requests by id. Out: answers with the message ids of the workload. The engine identifies
//! messages by seq, so a request by an id of the workload scans all messages once.

use std::{collections::BTreeMap, time::Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Engine, ms, serve::request};
use crate::failure::{Result, context, failure};

/// Bytes of one page of a list.
pub(super) const PAGE_BYTES_MAX: u32 = 1 << 20;
/// Largest number of hits of one search.
const HITS_MAX: u32 = 200;

#[derive(Deserialize)]
struct Grep {
    query: String,
    mode: String,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    sort: Option<String>,
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct ById {
    id: String,
}

#[derive(Deserialize)]
struct Expand {
    id: String,
    #[serde(default)]
    depth: Option<u32>,
    #[serde(default)]
    include_messages: bool,
    #[serde(default)]
    token_cap: Option<u64>,
}

/// Answers about messages and summaries.
#[derive(Default)]
pub(super) struct Reader {
    /// JSON of each message, by its id in the workload; `None` until the first request `get`.
    messages: Option<BTreeMap<String, String>>,
}

impl Reader {
    /// Answers the request `line` of operation `op`.
    ///
    /// # Errors
    ///
    /// The operation is unknown, the request cannot be read, or the engine returned an error.
    pub(super) fn answer(
        &mut self,
        engine: &mut dyn Engine,
        op: &str,
        line: &str,
    ) -> Result<Value> {
        match op {
            "grep" => grep(engine, &request(line)?),
            "describe" => describe(engine, &request::<ById>(line)?.id),
            "expand" => expand(engine, &request(line)?),
            "summaries" => summaries(engine),
            "get" => self.get(engine, &request::<ById>(line)?.id),
            _ => failure(format!("unsupported: no operation `{op}`")),
        }
    }

    fn get(&mut self, engine: &mut dyn Engine, id: &str) -> Result<Value> {
        if self.messages.as_ref().is_none_or(|known| !known.contains_key(id)) {
            let mut messages = BTreeMap::new();
            each_item(engine, "messages", &mut |item| {
                let raw = raw(item);
                messages.insert(entry_id(&raw), raw);
            })?;
            self.messages = Some(messages);
        }
        let found = self.messages.as_ref().and_then(|known| known.get(id));
        let Some(found) = found else { return Ok(json!({"found": false})) };
        let message = parse(found)?;
        let parts: Vec<Value> = parts(&message).iter().map(shown_part).collect();
        Ok(json!({
            "found": true,
            "role": message.get("role"),
            "content": text(&message),
            "parts": parts,
        }))
    }
}

fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(context("reading an answer of the engine"))
}

fn string(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the original text of a message from a list.
fn raw(item: &Value) -> String {
    match item.get("raw") {
        Some(Value::String(text)) => text.clone(),
        Some(message) => message.to_string(),
        None => String::new(),
    }
}

fn entry_id(raw: &str) -> String {
    parse(raw).map(|message| string(&message, "id")).unwrap_or_default()
}

fn parts(message: &Value) -> &[Value] {
    array(message, "parts")
}

/// Returns the texts of a message, without calls and results of tools.
fn text(message: &Value) -> String {
    if let Some(content) = message.get("content").and_then(Value::as_str) {
        return content.to_owned();
    }
    let texts = parts(message).iter().filter_map(|part| part.get("text").and_then(Value::as_str));
    texts.collect::<Vec<_>>().join("\n")
}

fn shown_part(part: &Value) -> Value {
    json!({
        "part_type": part.get("type"),
        "text_content": part.get("text"),
        "tool_name": part.get("name"),
        "tool_input": part.get("input"),
        "tool_output": part.get("output"),
    })
}

/// Returns a message of a context as the protocol shows it: role, text, and the id of its summary.
///
/// # Errors
///
/// `message` is no JSON.
pub(super) fn shown(message: &str) -> Result<Value> {
    let message = parse(message)?;
    let text = text(&message);
    let id = text.strip_prefix("<summary id=\"").and_then(|rest| rest.split_once('"'));
    Ok(json!({
        "role": message.get("role"),
        "summary_id": id.map(|(id, _)| id),
        "text": text,
    }))
}

fn grep(engine: &mut dyn Engine, request: &Grep) -> Result<Value> {
    let mode = if request.mode == "full_text" { "full-text" } else { &request.mode };
    let query = json!({
        "pattern": request.query,
        "mode": mode,
        "scope": request.scope.as_deref().unwrap_or("both"),
        "sort": request.sort.as_deref().unwrap_or("relevance"),
        "limit": request.limit.unwrap_or(20).clamp(1, HITS_MAX),
    })
    .to_string();
    let begin = Instant::now();
    let found = engine.grep(&query)?;
    let ms = ms(begin);
    let found = parse(&found)?;
    let hit = |found: &Value| {
        let message = found.get("type").and_then(Value::as_str) == Some("message");
        let id = if message { found.get("entry_id") } else { found.get("id") };
        json!({"kind": if message { "message" } else { "summary" }, "id": id})
    };
    let hits: Vec<Value> = array(&found, "matches").iter().map(hit).collect();
    Ok(json!({"ms": ms, "total": found.get("total"), "hits": hits}))
}

fn describe(engine: &mut dyn Engine, id: &str) -> Result<Value> {
    let begin = Instant::now();
    let found = engine.describe(id);
    let ms = ms(begin);
    let found = match found {
        Ok(found) => parse(&found)?,
        Err(error) if error.0.starts_with("not-found") => {
            return Ok(json!({"ms": ms, "found": false}));
        }
        Err(error) => return Err(error),
    };
    Ok(json!({
        "ms": ms,
        "found": true,
        "messages": array(&found, "message_ids").len(),
        "children": found.get("source_ids"),
        "subtree": found.get("subtree"),
    }))
}

fn expand(engine: &mut dyn Engine, request: &Expand) -> Result<Value> {
    let mut options = json!({"include_messages": request.include_messages});
    if let Some(fields) = options.as_object_mut() {
        let mut add = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("depth_max", request.depth.map(Value::from));
        add("tokens_max", request.token_cap.map(Value::from));
    }
    let begin = Instant::now();
    let found = engine.expand(&request.id, &options.to_string())?;
    let ms = ms(begin);
    let found = parse(&found)?;
    let messages: Vec<String> =
        array(&found, "messages").iter().map(|item| entry_id(&raw(item))).collect();
    let summaries: Vec<String> =
        array(&found, "summaries").iter().map(|item| string(item, "id")).collect();
    Ok(json!({
        "ms": ms,
        "tokens": found.get("tokens"),
        "truncated": found.get("truncated"),
        "messages": messages,
        "children": summaries,
    }))
}

fn summaries(engine: &mut dyn Engine) -> Result<Value> {
    let mut summaries = Vec::new();
    each_item(engine, "summaries", &mut |item| summaries.push(item.clone()))?;
    for summary in &mut summaries {
        let described = parse(&engine.describe(&string(summary, "id"))?)?;
        *summary = json!({
            "id": summary.get("id"),
            "kind": summary.get("kind"),
            "depth": summary.get("depth"),
            "tokens": summary.get("tokens"),
            "chars": string(&described, "text").chars().count(),
        });
    }
    Ok(json!({"summaries": summaries}))
}

fn each_item(engine: &mut dyn Engine, kind: &str, each: &mut dyn FnMut(&Value)) -> Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let page = parse(&engine.listing(kind, cursor.as_deref())?)?;
        array(&page, "items").iter().for_each(&mut *each);
        match page.get("cursor").and_then(Value::as_str) {
            Some(next) if cursor.as_deref() != Some(next) => cursor = Some(next.to_owned()),
            _ => return Ok(()),
        }
    }
}

/// Runs the integrity check of the store to its last page.
///
/// # Errors
///
/// Errors of the engine. A finding of the check is no error.
pub(super) fn check(engine: &mut dyn Engine) -> Result<Value> {
    let begin = Instant::now();
    let mut cursor: Option<String> = None;
    let mut sound = true;
    loop {
        let page = parse(&engine.check(cursor.as_deref())?)?;
        sound &= page.get("ok").and_then(Value::as_bool).unwrap_or(false);
        match page.get("cursor").and_then(Value::as_str) {
            Some(next) if cursor.as_deref() != Some(next) => cursor = Some(next.to_owned()),
            _ => return Ok(json!({"ms": ms(begin), "sound": sound})),
        }
    }
}
