//! Reads chats of the Gemini CLI.
//! Read from files of the Gemini CLI, 2026-11-28.
//!
//! In: a header with `sessionId` and `projectHash`, messages of the types `user`, `gemini`, `info`,
//! `warning` and `error`, and updates: a message with the id of an earlier one replaces it,
//! `$rewindTo` names the message from which on a person took the chat back, and `$set` changes
//! members of the header. `messages` of a header or of `$set` is the whole list of messages from
//! there on. Out: messages of `lcm`; a call and its result are members of one record, and become
//! two messages. A call that the content repeats is one call. Messages that were taken back, or
//! that a new list lacks, become branches.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::{
    SessionContent,
    formats::Fit,
    line::{self, Object, Text},
    records::{self, Collector, Draft, Piece},
};

const USED: [&str; 8] =
    ["id", "timestamp", "type", "content", "thoughts", "toolCalls", "tokens", "displayContent"];

/// Returns how a record fits the format.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    if object.has("$set") || object.has("$rewindTo") {
        return Fit::Typical;
    }
    if object.has("projectHash") && object.has("sessionId") {
        return Fit::Typical;
    }
    let is_known = match object.text("type").as_deref() {
        Some("gemini") => true,
        Some("user" | "info" | "warning" | "error") => !object.has("message"),
        _ => false,
    };
    Fit::typical_if(is_known && object.has("id") && object.has("content"))
}

/// A message of the chat, as one record has it.
struct Record<'a> {
    /// Index of the line.
    line: usize,
    raw: &'a str,
    object: Object<'a>,
}

/// The messages of a chat by their keys.
#[derive(Default)]
struct Chat<'a> {
    /// Newest record of each message.
    records: HashMap<String, Record<'a>>,
    /// Keys of the live messages, in order.
    live: Vec<String>,
    /// Keys of messages that were taken back, and the key of the message that they follow.
    removed: Vec<(Option<String>, Vec<String>)>,
}

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    let mut chat = Chat::default();
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        if let Some(to) = object.text("$rewindTo") {
            let place = chat.live.iter().position(|key| *key == to);
            chat.take_back(place.unwrap_or(chat.live.len()));
            continue;
        }
        if object.has("content") && object.has("id") {
            chat.add_message(Record { line: index, raw: line, object: object.clone() });
            continue;
        }
        out.set_session(object.text("sessionId"), object.text("projectHash"));
        let holder = object.object("$set").unwrap_or_else(|| object.clone());
        if let Some(list) = holder.list("messages") {
            let records = list.into_iter().filter_map(|value| {
                Some(Record { line: index, raw: value.get(), object: Object::from_value(value)? })
            });
            chat.replace_messages(records.collect());
        }
    }
    chat.write_messages(&mut out);
    out.into_content()
}

impl<'a> Chat<'a> {
    /// Adds a message, or replaces the record of an earlier one.
    fn add_message(&mut self, record: Record<'a>) {
        let key = record.find_key();
        if self.records.insert(key.clone(), record).is_none() {
            self.live.push(key);
        }
    }

    /// Replaces the list of messages.
    fn replace_messages(&mut self, records: Vec<Record<'a>>) {
        let (mut keys, mut known) = (Vec::new(), HashSet::new());
        for record in records {
            let key = record.find_key();
            if known.insert(key.clone()) {
                keys.push(key.clone());
            }
            self.records.insert(key, record);
        }
        let same = self.live.iter().zip(&keys).take_while(|(old, new)| old == new).count();
        self.take_back(same);
        self.live = keys;
    }

    /// Takes the messages from index `from` on back.
    fn take_back(&mut self, from: usize) {
        let removed = self.live.split_off(from.min(self.live.len()));
        if !removed.is_empty() {
            self.removed.push((self.live.last().cloned(), removed));
        }
    }

    /// Writes the live messages, and then the branches.
    fn write_messages(&self, out: &mut Collector) {
        // For each message, the entry id of the last message that its record became.
        let mut ends: HashMap<&str, Option<String>> = HashMap::new();
        self.live.iter().for_each(|key| self.write_message(out, key, &mut ends));
        for (after, keys) in &self.removed {
            let after = after.as_deref().and_then(|after| ends.get(after).cloned());
            out.begin_branch(after.flatten());
            keys.iter().for_each(|key| self.write_message(out, key, &mut ends));
        }
        out.end_branch();
    }

    /// Writes a message that is not in `ends`.
    fn write_message<'k>(
        &self,
        out: &mut Collector,
        key: &'k str,
        ends: &mut HashMap<&'k str, Option<String>>,
    ) {
        if let Some(record) = self.records.get(key).filter(|_| !ends.contains_key(key)) {
            ends.insert(key, read_message(out, record));
        }
    }
}

impl Record<'_> {
    /// Returns the id of the message; without one, its text.
    fn find_key(&self) -> String {
        self.object.text("id").unwrap_or_else(|| self.raw.to_owned())
    }
}

/// Adds the messages of a record, and returns the entry id of the last one.
fn read_message(out: &mut Collector, record: &Record<'_>) -> Option<String> {
    let object = &record.object;
    let id = object.text("id");
    let kind = object.text("type").unwrap_or_default();
    let role = match kind.as_str() {
        "user" => "user",
        "gemini" => "assistant",
        // Lines of the program for the person.
        "info" | "warning" | "error" => return None,
        _ => {
            out.left.count_line(&kind);
            return None;
        }
    };
    let time = object.any("timestamp").map(RawValue::get);
    let thoughts =
        object.list("thoughts").unwrap_or_default().into_iter().filter_map(Object::from_value);
    let thoughts = thoughts.map(|thought| {
        let title = thought.text("subject").unwrap_or_default();
        format!("{title}\n{}", thought.text("description").unwrap_or_default()).trim().to_owned()
    });
    let thoughts: Vec<String> = thoughts.filter(|thought| !thought.is_empty()).collect();
    let mut pieces = Vec::new();
    if !thoughts.is_empty() {
        pieces.push(Piece::Part(records::reasoning_part(&thoughts.join("\n\n"))));
    }
    let calls = object.list("toolCalls").unwrap_or_default();
    let calls: Vec<Object<'_>> = calls.into_iter().filter_map(Object::from_value).collect();
    let (content, inputs) = read_content(object, &calls);
    pieces.extend(content);
    let call_id = |call: &Object<'_>, place: usize| {
        let message = id.as_deref().unwrap_or_default();
        call.text("id").unwrap_or_else(|| format!("{message} call {place}"))
    };
    for (place, call) in calls.iter().enumerate() {
        let input = call.any("args").or_else(|| inputs.get(&place).copied());
        let input = input.map_or("{}", RawValue::get);
        let name = call.text("name").unwrap_or_default();
        pieces.push(Piece::Part(records::call_part(&call_id(call, place), &name, input)));
    }
    for (place, call) in calls.iter().enumerate() {
        let Some(result) = call.any("result") else { continue };
        let is_error = call.text("status").as_deref() == Some("error");
        let (call_id, name) = (call_id(call, place), call.text("name").unwrap_or_default());
        let part = records::result_part(&call_id, &name, &read_output(result), is_error);
        pieces.push(Piece::Result(part));
    }
    let draft = Draft::new(role).with_id(id.as_deref(), time).with_source(object, &USED);
    out.push_pieces(record.line, record.raw, &draft, pieces)
}

/// Returns the pieces of a content: a string, one part of Gemini, or a list of them. A call that is
/// also in `calls` is none of the pieces; its arguments are returned by its index there.
fn read_content<'a>(
    object: &Object<'a>,
    calls: &[Object<'_>],
) -> (Vec<Piece>, HashMap<usize, &'a RawValue>) {
    let mut inputs = HashMap::new();
    let Some(content) = object.any("content") else { return (Vec::new(), inputs) };
    if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        let text = Some(text).filter(|text| !text.is_empty());
        let pieces = text.map(|text| Piece::Part(records::text_part(&text)));
        return (pieces.into_iter().collect(), inputs);
    }
    let list = object.list("content").unwrap_or_else(|| Vec::from([content]));
    let mut known: HashSet<usize> = HashSet::new();
    let mut pieces = Vec::new();
    for value in list {
        let call = Object::from_value(value).and_then(|part| part.object("functionCall"));
        let place = call.as_ref().and_then(|call| find_call(call, calls, &known));
        let (Some(call), Some(place)) = (call, place) else {
            pieces.push(convert_part(value));
            continue;
        };
        known.insert(place);
        inputs.extend(call.any("args").map(|input| (place, input)));
    }
    (pieces, inputs)
}

/// Returns the index of the call that a part of a content repeats: one with its id, or one with its
/// name and its arguments. A call without arguments has those of the part. `known`: indexes of
/// calls that other parts repeat.
fn find_call(part: &Object<'_>, calls: &[Object<'_>], known: &HashSet<usize>) -> Option<usize> {
    let id = part.text("id");
    let read = |value: &RawValue| serde_json::from_str::<serde_json::Value>(value.get()).ok();
    let is_same_input = |call: &Object<'_>| match (call.any("args"), part.any("args")) {
        (Some(one), Some(other)) => {
            one.get() == other.get() || read(one).is_some_and(|one| Some(one) == read(other))
        }
        (Some(one), None) => one.get() == "{}",
        (None, _) => true,
    };
    let has_id = |call: &Object<'_>| id.is_some() && call.text("id") == id;
    let says_the_same = |call: &Object<'_>| {
        call.text("name").is_some() && call.text("name") == part.text("name") && is_same_input(call)
    };
    let free = || calls.iter().enumerate().filter(|(index, _)| !known.contains(index));
    let by_id = free().find(|(_, call)| has_id(call));
    by_id.or_else(|| free().find(|(_, call)| says_the_same(call))).map(|(index, _)| index)
}

/// Converts a part of Gemini; an unknown part stays unchanged.
pub(super) fn convert_part(value: &RawValue) -> Piece {
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        return Piece::Part(records::text_part(&text));
    }
    let Some(part) = Object::from_value(value) else { return Piece::Part(value.get().to_owned()) };
    if let Some(call) = part.object("functionCall") {
        let (id, name) = (call.text("id"), call.text("name").unwrap_or_default());
        let input = call.any("args").map_or("{}", RawValue::get);
        return Piece::Part(records::call_part(&id.unwrap_or_else(|| name.clone()), &name, input));
    }
    if let Some(response) = part.object("functionResponse") {
        let name = response.text("name").unwrap_or_default();
        let id = response.text("id").unwrap_or_else(|| name.clone());
        let output = response.any("response").map_or("\"\"", RawValue::get);
        return Piece::Result(records::result_part(&id, &name, output, false));
    }
    let bytes = part.object("inlineData").and_then(|data| {
        Some(records::file_part(None, &data.text("mimeType")?, &data.text("data")?))
    });
    Piece::Part(match (part.text("text"), bytes) {
        (Some(text), _) if part.is_true("thought") => records::reasoning_part(&text),
        (Some(text), _) => records::text_part(&text),
        (None, Some(bytes)) => bytes,
        (None, None) => value.get().to_owned(),
    })
}

/// Returns the output of a call as JSON: the text of its responses, or a list with its media.
fn read_output(result: &RawValue) -> String {
    let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(result.get()) else {
        return result.get().to_owned();
    };
    let mut blocks = Vec::new();
    for value in &parts {
        let Some(part) = Object::from_value(value) else { continue };
        let response = part.object("functionResponse").and_then(|it| it.any("response"));
        if let Some(response) = response {
            let output =
                Object::from_value(response).and_then(|it| it.any("output").or(it.any("error")));
            let output = output.unwrap_or(response);
            match serde_json::from_str::<String>(output.get()) {
                Ok(text) => blocks.push(records::text_part(&text)),
                Err(_) => blocks.push(records::text_part(output.get())),
            }
        } else if let Some(data) = part.object("inlineData") {
            let source = Text::default().string("type", "base64");
            let source = source.kept("media_type", data.any("mimeType"));
            let source = source.kept("data", data.any("data")).end();
            blocks.push(Text::default().string("type", "image").raw("source", &source).end());
        } else if let Some(text) = part.text("text") {
            blocks.push(records::text_part(&text));
        }
    }
    match blocks.as_slice() {
        [] => result.get().to_owned(),
        [only] => {
            let text =
                Object::read(only).ok().and_then(|it| it.any("text").map(|t| t.get().to_owned()));
            text.unwrap_or_else(|| line::array(&blocks))
        }
        _ => line::array(&blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of the messages that a record of the model becomes.
    fn read_parts(content: &str, calls: &str) -> Vec<serde_json::Value> {
        let line =
            format!(r#"{{"id":"1","type":"gemini","content":{content},"toolCalls":{calls}}}"#);
        let object = Object::read(&line).unwrap();
        let found = read(std::slice::from_ref(&line), std::slice::from_ref(&object));
        let parts = |message: &super::super::FileMessage| {
            let message: serde_json::Value = serde_json::from_str(&message.text).unwrap();
            message["parts"].as_array().unwrap().clone()
        };
        found.messages.iter().flat_map(parts).collect()
    }

    fn calls_of(content: &str, calls: &str) -> Vec<(String, String)> {
        let parts = read_parts(content, calls).into_iter();
        let calls = parts.filter(|part| part["type"] == "tool_call");
        calls.map(|it| (it["id"].as_str().unwrap().to_owned(), it["input"].to_string())).collect()
    }

    #[test]
    fn a_call_in_the_content_and_in_the_list_of_calls_is_one() {
        let part = |id: &str, input: &str| {
            format!(r#"[{{"functionCall":{{"id":"{id}","name":"find","args":{input}}}}}]"#)
        };
        let one = |id: &str, input: &str| Vec::from([(id.to_owned(), input.to_owned())]);
        let input = r#"{"a":1,"b":2}"#;
        // One id, one name with equal arguments, and one name without arguments.
        let listed = r#"[{"id":"x","name":"find","args":{"b":2,"a":1}}]"#;
        assert_eq!(calls_of(&part("x", "{}"), listed).len(), 1);
        assert_eq!(calls_of(&part("y", input), listed), one("x", input));
        assert_eq!(calls_of(&part("y", input), r#"[{"id":"x","name":"find"}]"#), one("x", input));
        // Another name, other arguments, and a second call in the content.
        let other = r#"[{"id":"x","name":"read","args":{"a":1,"b":2}}]"#;
        assert_eq!(calls_of(&part("y", input), other).len(), 2);
        assert_eq!(calls_of(&part("y", r#"{"a":1}"#), listed).len(), 2);
        let twice = part("y", input)
            .replace("}}]", &format!("}}}},{}", part("z", input).trim_start_matches('[')));
        assert_eq!(calls_of(&twice, listed).len(), 2);
    }
}
