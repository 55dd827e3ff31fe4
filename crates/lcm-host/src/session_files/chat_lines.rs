//! Reads messages in the formats of libraries and of agents that store chats line by line: Kimi,
//! Hermes, `LangChain`, the AI SDK.
//!
//! In: records with a role or type. Out: messages of `openai-chat` for Kimi and Hermes, without the
//! records of the program between them, and messages of `lcm` for the others.

use serde_json::value::RawValue;

use super::{
    FileMessage, SessionContent,
    entries::{Ids, SkippedCounts},
    formats::{Fit, Format},
    line::{self, Object, Text, quoted},
    records::{self, Collector, Draft, Piece},
};

/// Types of messages of `LangChain`, each with its role.
const LANG_CHAIN_TYPES: [(&str, &str); 13] = [
    ("human", "user"),
    ("HumanMessage", "user"),
    ("HumanMessageChunk", "user"),
    ("chat", "user"),
    ("ai", "assistant"),
    ("AIMessage", "assistant"),
    ("AIMessageChunk", "assistant"),
    ("system", "system"),
    ("SystemMessage", "system"),
    ("tool", "tool"),
    ("ToolMessage", "tool"),
    ("function", "tool"),
    ("FunctionMessage", "tool"),
];

/// Returns how a record fits a session of Kimi or Hermes.
pub(super) fn compare_agent_chat(object: &Object<'_>) -> Fit {
    match object.text("role") {
        Some(role) if role.starts_with('_') || role == "session_meta" => Fit::Typical,
        Some(role) if ["system", "user", "assistant", "tool"].contains(&role.as_str()) => {
            if object.has("parts") || object.has("type") { Fit::No } else { Fit::Possible }
        }
        _ => Fit::No,
    }
}

/// Returns how a record fits messages of `LangChain`.
pub(super) fn compare_lang_chain(object: &Object<'_>) -> Fit {
    // Records of Claude Code have the type `system`, too.
    let others = ["role", "uuid", "sessionId", "subtype"];
    if others.iter().any(|key| object.has(key)) {
        return Fit::No;
    }
    let message = lang_chain_message(object);
    Fit::typical_if(message.is_some_and(|(_, message)| message.has("content")))
}

/// Returns how a record fits messages of the AI SDK.
pub(super) fn compare_ai_sdk(object: &Object<'_>) -> Fit {
    if object.text("role").is_none() || object.has("tool_calls") {
        return Fit::No;
    }
    let blocks = object.list("content").or_else(|| object.list("parts")).unwrap_or_default();
    let kinds =
        blocks.into_iter().filter_map(Object::from_value).filter_map(|block| block.text("type"));
    let mut fit = Fit::Possible;
    for kind in kinds {
        let is_tool = kind == "dynamic-tool" || kind == "step-start" || kind.starts_with("tool-");
        match kind.as_str() {
            _ if is_tool => fit = Fit::Typical,
            "text" | "reasoning" | "image" | "file" | "source-url" | "source-document" => (),
            _ => return Fit::No,
        }
    }
    fit
}

pub(super) fn read(format: Format, lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    match format {
        Format::LangChain => read_lang_chain(lines, objects),
        Format::AiSdk => read_ai_sdk(lines, objects),
        _ => read_agent_chat(lines, objects),
    }
}

fn read_agent_chat(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let (mut ids, mut left, mut found) =
        (Ids::default(), SkippedCounts::default(), SessionContent::default());
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let role = object.text("role").unwrap_or_default();
        let text = object.text("content");
        if role == "_system_prompt" && text.is_some() {
            // The prompt of the system stands in a record of its own.
            let id = ids.name_line(line);
            let message = Text::default().string("id", &id).string("role", "system");
            let message = message.kept("content", object.any("content")).end();
            found.messages.push(FileMessage { text: message, line: index });
        } else if role.starts_with('_') || role == "session_meta" {
            found.session = found.session.or_else(|| object.text("session_id"));
            left.count_line(&role);
        } else {
            let id = match object.text("id") {
                Some(id) => ids.name_entry(&id, line),
                None => ids.name_line(line),
            };
            let text = write_agent_chat(&id, object);
            found.messages.push(FileMessage { text, line: index });
        }
    }
    found.warnings = left.warnings();
    found.warnings.extend(ids.warning());
    found
}

/// Writes a message with the entry id. Thoughts among the blocks of the content become the member
/// that Chat Completions has for them.
fn write_agent_chat(id: &str, object: &Object<'_>) -> String {
    let head = Text::default().string("id", id);
    let blocks = object.list("content").unwrap_or_default();
    let thought =
        |block: &&RawValue| Object::from_value(block).and_then(|block| block.text("think"));
    let thoughts: Vec<String> = blocks.iter().filter_map(thought).collect();
    if thoughts.is_empty() || object.has("reasoning_content") {
        return head.rest(object, &["id"]).end();
    }
    let rest = blocks.iter().filter(|block| thought(block).is_none());
    let rest: Vec<String> = rest.map(|block| block.get().to_owned()).collect();
    let content = if rest.is_empty() { "null".to_owned() } else { line::array(&rest) };
    let text = head.rest(object, &["id", "content"]).raw("content", &content);
    text.string("reasoning_content", &thoughts.join("\n\n")).end()
}

/// Returns the type and the members of a message of `LangChain`: as it is dumped, with `data`, or
/// with the constructor of its class.
fn lang_chain_message<'a>(object: &Object<'a>) -> Option<(&'static str, Object<'a>)> {
    let role_of = |kind: &str| {
        LANG_CHAIN_TYPES.iter().find(|(known, _)| *known == kind).map(|(_, role)| *role)
    };
    let kind = object.text("type")?;
    if kind == "constructor" {
        let class: Option<String> = serde_json::from_str(object.list("id")?.last()?.get()).ok();
        return Some((role_of(&class?)?, object.object("kwargs")?));
    }
    let role = role_of(&kind)?;
    match object.object("data") {
        Some(data) => Some((role, data)),
        None => Some((role, object.clone())),
    }
}

fn read_lang_chain(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    let used =
        ["type", "content", "id", "tool_calls", "tool_call_id", "name", "data", "lc", "kwargs"];
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let Some((role, message)) = lang_chain_message(object) else { continue };
        let id = message.text("id");
        let mut pieces = Vec::new();
        if role == "tool" {
            let call = message.text("tool_call_id").unwrap_or_default();
            let name = message.text("name").unwrap_or_default();
            let output = message.any("content").map_or("\"\"", RawValue::get);
            let failed = message.text("status").as_deref() == Some("error");
            pieces.push(Piece::Result(records::result_part(&call, &name, output, failed)));
        } else {
            pieces.extend(read_blocks(&message));
            let calls = message.list("tool_calls").unwrap_or_default();
            for call in calls.into_iter().filter_map(Object::from_value) {
                let (id, name) = (call.text("id").unwrap_or_default(), call.text("name"));
                let input = call.any("args").map_or("{}", RawValue::get);
                let part = records::call_part(&id, &name.unwrap_or_default(), input);
                pieces.push(Piece::Part(part));
            }
        }
        let draft = Draft::new(role).with_id(id.as_deref(), None).with_source(&message, &used);
        if out.push_pieces(index, line, &draft, pieces).is_none() {
            out.left.count_line("message without content");
        }
    }
    out.into_content()
}

/// Returns the pieces of `content`. Calls among the blocks are left to `tool_calls`.
fn read_blocks(message: &Object<'_>) -> Vec<Piece> {
    if let Some(text) = message.text("content") {
        return Vec::from([Piece::Part(records::text_part(&text))]);
    }
    let blocks = message.list("content").unwrap_or_default().into_iter();
    let piece = |value: &RawValue| {
        if let Ok(text) = serde_json::from_str::<String>(value.get()) {
            return Some(Piece::Part(records::text_part(&text)));
        }
        let block = Object::from_value(value)?;
        let is_call = block.text("type").as_deref() == Some("tool_use");
        (!is_call).then(|| records::convert_block(&block, value.get(), ""))
    };
    blocks.filter_map(piece).collect()
}

fn read_ai_sdk(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let role = match object.text("role").as_deref() {
            Some("system") => "system",
            Some("assistant") => "assistant",
            Some("tool") => "tool",
            _ => "user",
        };
        let blocks = object.list("parts").or_else(|| object.list("content"));
        let pieces = match blocks {
            Some(blocks) => blocks.into_iter().flat_map(read_ai_sdk_block).collect(),
            None => object
                .text("content")
                .map(|text| Piece::Part(records::text_part(&text)))
                .into_iter()
                .collect(),
        };
        let (id, time) = (object.text("id"), object.any("createdAt").map(RawValue::get));
        let draft = Draft::new(role).with_id(id.as_deref(), time);
        let draft = draft.with_source(object, &["id", "role", "content", "parts", "createdAt"]);
        out.push_pieces(index, line, &draft, pieces);
    }
    out.into_content()
}

/// Converts a block of the AI SDK: a call may have its result beside it.
fn read_ai_sdk_block(value: &RawValue) -> Vec<Piece> {
    let Some(block) = Object::from_value(value) else { return Vec::new() };
    let text = |key| block.text(key).unwrap_or_default();
    let kind = text("type");
    let (id, input) = (text("toolCallId"), block.any("input").or_else(|| block.any("args")));
    let output = block.any("output").or_else(|| block.any("result"));
    let input = input.map_or("{}", RawValue::get);
    let name = block.text("toolName").or_else(|| kind.strip_prefix("tool-").map(str::to_owned));
    let name = name.unwrap_or_default();
    match kind.as_str() {
        "text" => Vec::from([Piece::Part(records::text_part(&text("text")))]),
        "reasoning" => Vec::from([Piece::Part(records::reasoning_part(&text("text")))]),
        "step-start" => Vec::new(),
        "tool-call" => Vec::from([Piece::Part(records::call_part(&id, &name, input))]),
        "tool-result" => {
            let output = output.map_or_else(|| quoted(""), read_ai_sdk_output);
            let failed = block.is_true("isError");
            Vec::from([Piece::Result(records::result_part(&id, &name, &output, failed))])
        }
        "image" | "file" => {
            let url =
                block.text("url").or_else(|| block.text("image")).or_else(|| block.text("data"));
            let mime = block.text("mediaType").or_else(|| block.text("mimeType"));
            let name = block.text("filename");
            let part = url.and_then(|url| match mime {
                _ if url.starts_with("data:") => records::data_url_part(name.as_deref(), &url),
                Some(mime) if !url.contains("://") => {
                    Some(records::file_part(name.as_deref(), &mime, &url))
                }
                _ => None,
            });
            Vec::from([Piece::Part(part.unwrap_or_else(|| value.get().to_owned()))])
        }
        _ if !id.is_empty() => {
            let mut pieces = Vec::from([Piece::Part(records::call_part(&id, &name, input))]);
            let error = block.any("errorText");
            if let Some(output) = output.or(error) {
                let part = records::result_part(&id, &name, output.get(), error.is_some());
                pieces.push(Piece::Result(part));
            }
            pieces
        }
        _ => Vec::from([Piece::Part(value.get().to_owned())]),
    }
}

/// Returns the output of a call as JSON, without its envelope.
fn read_ai_sdk_output(output: &RawValue) -> String {
    let inner =
        Object::from_value(output).filter(|it| it.has("type")).and_then(|it| it.any("value"));
    inner.unwrap_or(output).get().to_owned()
}
