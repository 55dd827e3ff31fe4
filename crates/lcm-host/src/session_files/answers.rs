//! Finds the answer to a request in the document that has both, such as a line of a log.
//!
//! In: a document with a list of messages. Out: the messages of its answer, as the provider wrote
//! them; a text becomes a message of the model.

use serde_json::value::RawValue;

use super::line::{self, Object, Text};

/// Members that hold an answer, or an object with one, in the order of their search.
const HOLDERS: [&str; 8] =
    ["choices", "candidates", "output", "completion", "response", "body", "message", "answer"];
/// Most objects inside each other that are searched.
const DEPTH_MAX: usize = 4;

/// Adds the answer of a document to its records, unless they end with it. `key`: the member with
/// the messages.
pub(super) fn add_answer(object: &Object<'_>, key: &str, records: &mut Vec<String>) {
    let answer = HOLDERS.iter().filter(|holder| **holder != key);
    let answer = answer.filter_map(|holder| object.any(holder));
    let answer = answer.map(|value| read_answer(value, key, DEPTH_MAX));
    let answer = answer.into_iter().find(|answer| !answer.is_empty()).unwrap_or_default();
    let is_known = match (answer.as_slice(), records.last()) {
        ([only], Some(last)) => say_the_same(only, last),
        _ => false,
    };
    if !is_known {
        records.extend(answer);
    }
}

/// Returns whether two messages have one role and one content, whatever other members they have.
pub(super) fn say_the_same(one: &str, other: &str) -> bool {
    let read = |text| {
        Object::read(text).ok().map(|message| (message.text("role"), read_content(&message)))
    };
    one == other
        || match (read(one), read(other)) {
            (Some((role, content)), Some(other)) => content.is_some() && (role, content) == other,
            _ => false,
        }
}

/// Returns the content of a message without marks for a cache; `None`: it has none.
fn read_content(message: &Object<'_>) -> Option<String> {
    let value = message.any("content").or_else(|| message.any("parts"))?;
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
        return Some(value.get().to_owned());
    };
    let blocks = blocks.into_iter().map(|block| match Object::from_value(block) {
        Some(object) => Text::default().rest(&object, &["cache_control"]).end(),
        None => block.get().to_owned(),
    });
    let calls = message.any("tool_calls").map(|calls| calls.get().to_owned());
    Some(line::array(&blocks.chain(calls).collect::<Vec<_>>()))
}

/// Returns the messages of an answer.
fn read_answer(value: &RawValue, key: &str, depth: usize) -> Vec<String> {
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        let texts = (!text.trim().is_empty()).then(|| write_text(value, key));
        return texts.into_iter().collect();
    }
    if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        return read_list(&list, key, depth);
    }
    let Some(object) = Object::from_value(value) else { return Vec::new() };
    let is_message = object.text("role").is_some()
        && ["content", "parts", "tool_calls"].iter().any(|key| object.any(key).is_some());
    if is_message {
        return Vec::from([value.get().to_owned()]);
    }
    // A message whose role goes without saying.
    if let Some(parts) = object.any("parts") {
        let message = Text::default().string("role", "model").raw("parts", parts.get());
        return Vec::from([message.end()]);
    }
    if let Some(content) = object.any("content").filter(|content| !line::is_object(content)) {
        let message = Text::default().string("role", "assistant").raw("content", content.get());
        return Vec::from([message.end()]);
    }
    let inner = HOLDERS.iter().chain(&["content", "text"]).filter_map(|holder| object.any(holder));
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let mut inner = inner.map(|value| read_answer(value, key, depth));
    inner.find(|answer| !answer.is_empty()).unwrap_or_default()
}

/// Returns the messages of a list: of items all, of choices the first.
fn read_list(list: &[&RawValue], key: &str, depth: usize) -> Vec<String> {
    let objects = || list.iter().filter_map(|value| Object::from_value(value));
    let is_choice = |object: &Object<'_>| {
        ["message", "content", "text", "index"].iter().any(|key| object.has(key))
            && !object.has("type")
            && !object.has("role")
    };
    match list.first() {
        Some(first) if objects().any(|object| is_choice(&object)) => read_answer(first, key, depth),
        Some(_) if objects().count() == list.len() => {
            list.iter().map(|value| value.get().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns a text as a message of the model, in the form of the list `key`.
fn write_text(text: &RawValue, key: &str) -> String {
    if key == "contents" {
        let parts = format!("[{{\"text\":{}}}]", text.get());
        return Text::default().string("role", "model").raw("parts", &parts).end();
    }
    Text::default().string("role", "assistant").raw("content", text.get()).end()
}
