//! Reads files that are one JSON document or a Markdown history, and lines that are each a whole
//! conversation. Read from files of these programs and requests of these providers, 2026-11-28.
//!
//! In: the lines of a file. Out: the conversations of its document: an export of `ChatGPT` or
//! Claude.ai with one or all conversations, a chat of the Gemini CLI, an export of opencode, a list
//! of messages such as the history of Cline, Roo or Kilo, a request with `messages`, `input` or
//! `contents`, or conversations of `ShareGPT`. Records inside are read as lines would be.
//!
//! Of several requests in one file, one that begins with the messages of the one before it replaces
//! it: a log of a chat has the whole list in every request. The answer to a request is its last
//! message (`answers`).

use serde_json::value::RawValue;

use super::{
    Format, Growth, LineError, SessionFile, aider, answers,
    damage::SourceLines,
    exports, formats,
    line::{self, Object, Text},
    notes, read_records, share_gpt,
};

/// Members that can hold the messages of a document.
const LISTS: [&str; 5] = ["messages", "contents", "input", "history", "items"];
/// Members that can hold the system prompt of a request.
const SYSTEM: [&str; 5] =
    ["system", "instructions", "systemInstruction", "system_instruction", "instruction"];
/// Members that can hold the id of a conversation.
const IDS: [&str; 6] =
    ["session_id", "sessionId", "conversation_id", "conversationId", "uuid", "id"];
/// Most lists of `conversations` inside each other that are read.
const DEPTH_MAX: usize = 4;

/// Reads the conversations of a document; `None`: the file has records in lines.
///
/// # Errors
///
/// The document is not JSON, or has no messages in a known format.
pub(super) fn read(
    source: &SourceLines,
    growth: Growth,
) -> Result<Option<Vec<SessionFile>>, LineError> {
    let lines = source.lines();
    let Some((first_index, first)) = lines.first() else { return Ok(None) };
    let head = first.trim_start();
    if !head.starts_with(['{', '[']) {
        let text = notes::join_lines(source);
        if !aider::is_history(&text) {
            return Ok(None);
        }
        let found = aider::read(&text, growth).into_iter();
        return Ok(Some(found.map(|found| SessionFile::new(Format::Aider, found)).collect()));
    }
    if Object::read(first).is_ok() {
        return read_document_lines(lines, growth);
    }
    // A record in a line does not end after its first character.
    let is_document = head.starts_with('[') || head.trim_end() == "{";
    let texts: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
    let text = texts.join("\n");
    match serde_json::from_str::<&RawValue>(&text) {
        Ok(value) => read_value(value, growth).map(Some),
        // A document that is still being written.
        Err(_) if growth == Growth::Growing && (is_document || !has_record(lines)) => {
            Ok(Some(Vec::from([SessionFile::without_format(Vec::new())])))
        }
        // The first of several lines is damaged.
        Err(_) if !is_document => Ok(None),
        Err(error) => {
            let reason = format!("must begin one whole JSON document: {error}");
            Err(LineError::at(*first_index, reason))
        }
    }
}

/// Returns whether a line is a whole record.
fn has_record(lines: &[(usize, String)]) -> bool {
    lines.iter().any(|(_, line)| Object::read(line).is_ok())
}

/// Reads lines that are each a document; `None`: another record is among them.
fn read_document_lines(
    lines: &[(usize, String)],
    growth: Growth,
) -> Result<Option<Vec<SessionFile>>, LineError> {
    let is_documents =
        |(_, line): &(usize, String)| Object::read(line).is_ok_and(|object| is_document(&object));
    if !lines.iter().all(is_documents) {
        return Ok(None);
    }
    let mut files: Vec<SessionFile> = Vec::new();
    for (index, line) in lines {
        let Ok(object) = Object::read(line) else { continue };
        let named = |error: LineError| LineError { line: Some(*index), ..error };
        for file in read_object(&object, growth, DEPTH_MAX).map_err(named)? {
            add_or_replace(&mut files, file);
        }
    }
    Ok(Some(files))
}

/// Adds a conversation, or replaces the last one if the new one begins with all of its messages.
fn add_or_replace(files: &mut Vec<SessionFile>, file: SessionFile) {
    let is_longer = files.last().is_some_and(|last| {
        let mut pairs = last.messages.iter().zip(&file.messages);
        let same = pairs.all(|(a, b)| answers::say_the_same(&a.text, &b.text));
        same && last.messages.len() <= file.messages.len() && last.session == file.session
    });
    if is_longer {
        files.pop();
    }
    files.push(file);
}

/// Returns whether an object has all messages of a conversation.
fn is_document(object: &Object<'_>) -> bool {
    let has_objects = |key: &str| {
        let list = object.list(key).unwrap_or_default();
        list.first().is_some_and(|first| line::is_object(first))
    };
    let is_record = object.any("role").is_some() || object.any("message").is_some();
    let is_list = ["messages", "contents", "conversations", "history"].into_iter().any(has_objects);
    // An export has chats without a message, too.
    let is_list = is_list || object.list("chat_messages").is_some();
    let is_request = object.has("input") && object.has("model") && !object.has("type");
    !is_record && (is_list || is_request || object.object("mapping").is_some())
}

fn read_value(value: &RawValue, growth: Growth) -> Result<Vec<SessionFile>, LineError> {
    if let Some(object) = Object::from_value(value) {
        return read_object(&object, growth, DEPTH_MAX);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
    let objects: Vec<Object<'_>> =
        elements.iter().filter_map(|it| Object::from_value(it)).collect();
    if objects.len() < elements.len() {
        return Err(LineError::for_file("must be a list of objects, got other values among them"));
    }
    if !objects.is_empty() && objects.iter().all(is_document) {
        let mut files = Vec::new();
        for object in &objects {
            files.extend(read_object(object, growth, DEPTH_MAX)?);
        }
        return Ok(files);
    }
    let records = objects.iter().zip(&elements).map(|(object, raw)| add_time(object, raw));
    read_records(records.enumerate().collect(), growth)
}

/// Returns a message with the time that Cline, Roo and Kilo add as `ts`.
fn add_time(object: &Object<'_>, raw: &RawValue) -> String {
    match object.any("ts").filter(|_| object.any("role").is_some() && !object.has("timestamp")) {
        Some(time) => Text::default().kept("timestamp", Some(time)).rest(object, &["ts"]).end(),
        None => raw.get().to_owned(),
    }
}

/// Reads the conversations of a document. `depth`: lists of `conversations` that may still be
/// inside each other.
fn read_object(
    object: &Object<'_>,
    growth: Growth,
    depth: usize,
) -> Result<Vec<SessionFile>, LineError> {
    let one = |format, found| Ok(Vec::from([SessionFile::new(format, found)]));
    if let Some(found) = exports::read_chat_gpt(object) {
        return one(Format::ChatGpt, found);
    }
    if let Some(found) = exports::read_claude_ai(object) {
        return one(Format::ClaudeAi, found);
    }
    if let Some(list) = object.list("conversations") {
        let objects: Vec<Object<'_>> =
            list.iter().filter_map(|it| Object::from_value(it)).collect();
        if !objects.is_empty() && objects.iter().all(is_document) {
            let Some(depth) = depth.checked_sub(1) else {
                let reason = format!(
                    "must have at most {DEPTH_MAX} lists of `conversations` inside each other"
                );
                return Err(LineError::for_file(reason));
            };
            let files = objects.iter().map(|object| read_object(object, growth, depth));
            return files.collect::<Result<Vec<_>, _>>().map(|files| files.concat());
        }
        if objects.iter().all(|message| !message.has("from")) {
            return read_list(object, &list, "conversations", growth);
        }
        return one(Format::ShareGpt, share_gpt::read(object, &list)?);
    }
    let has_records = |key: &&&str| object.list(key).is_some_and(|list| !list.is_empty());
    if let Some(key) = LISTS.iter().find(has_records) {
        return read_list(object, &object.list(key).unwrap_or_default(), key, growth);
    }
    for key in LISTS {
        if let Some(list) = object.list(key) {
            return read_list(object, &list, key, growth);
        }
        if let (Some(text), "input") = (object.any(key).filter(|it| line::is_string(it)), key) {
            let message = Text::default().string("role", "user").raw("content", text.get()).end();
            let mut records = find_system(object, key);
            records.push(message);
            answers::add_answer(object, key, &mut records);
            return read_records(records.into_iter().enumerate().collect(), growth);
        }
    }
    let reason = format!(
        "is a JSON document that must have one of the formats {}; got {}",
        formats::list_names(),
        object.names()
    );
    Err(LineError::for_file(reason))
}

/// Reads the messages of a document, with its own members as the first record.
fn read_list(
    object: &Object<'_>,
    list: &[&RawValue],
    key: &str,
    growth: Growth,
) -> Result<Vec<SessionFile>, LineError> {
    let mut records = find_system(object, key);
    if object.has("projectHash") || object.object("info").is_some() {
        // The header of a chat of the Gemini CLI, or the session of an export of opencode.
        records.push(Text::default().rest(object, &[key]).end());
    }
    for value in list {
        let Some(record) = Object::from_value(value) else {
            let reason = format!("must have objects in `{key}`, got another value");
            return Err(LineError::for_file(reason));
        };
        records.push(add_time(&record, value));
    }
    answers::add_answer(object, key, &mut records);
    let mut files = read_records(records.into_iter().enumerate().collect(), growth)?;
    if let Some(first) = files.first_mut().filter(|first| first.session.is_none()) {
        first.session = IDS.iter().find_map(|key| object.text(key));
    }
    Ok(files)
}

/// Returns each system prompt of a request as a message.
fn find_system(object: &Object<'_>, key: &str) -> Vec<String> {
    let build = |value: &RawValue| {
        let text = Text::default().string("role", "system");
        let parts = Object::from_value(value).and_then(|it| it.any("parts").map(RawValue::get));
        let message = match (key, parts) {
            ("contents", Some(parts)) => text.raw("parts", parts),
            ("contents", None) => text.raw("parts", &format!("[{{\"text\":{}}}]", value.get())),
            _ => text.raw("content", value.get()),
        };
        message.end()
    };
    SYSTEM.iter().filter_map(|key| object.any(key)).map(build).collect()
}
