//! Messages of agent frameworks: writers of events, and histories that come back as they were
//! given.

use lcm_testing::simulation::random::Random;
use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::{
    Chat,
    generate::{Call, Event, Generator, Outcome},
};

/// The dialects of agent frameworks.
const FRAMEWORKS: [Dialect; 4] =
    [Dialect::AiSdk, Dialect::Openclaw, Dialect::Langchain, Dialect::OpenaiAgents];

/// Histories of each dialect.
const SEEDS: u64 = 300;

/// Writes an event as messages of a framework.
pub(crate) fn write(dialect: Dialect, event: &Event, random: &mut Random) -> Vec<String> {
    let messages = match dialect {
        Dialect::AiSdk => write_ai_sdk(event, random),
        Dialect::Openclaw => write_open_claw(event, random),
        Dialect::Langchain => write_lang_chain(event, random),
        _ => write_openai_agents(event, random),
    };
    messages.iter().map(Value::to_string).collect()
}

/// Sets members to ids that are there; a fault of a host leaves them out.
fn with_id(mut value: Value, key: &str, id: Option<&String>) -> Value {
    if let Some(id) = id {
        value[key] = json!(id);
    }
    value
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image_part(key: &str, mime: &str) -> Value {
    json!({"type": "image", (key): "iVBORw0K", (mime): "image/png"})
}

fn write_ai_sdk(event: &Event, random: &mut Random) -> Vec<Value> {
    let call = |call: &Call| {
        let input = json!({"a": call.word});
        let part = json!({"type": "tool-call", "toolName": "read it", "input": input});
        with_id(part, "toolCallId", call.id.as_ref())
    };
    let result = |one: &Outcome| {
        let kind = if one.is_error { "error-text" } else { "text" };
        let output = json!({"type": kind, "value": one.word});
        let part = json!({"type": "tool-result", "toolName": "read it", "output": output});
        with_id(part, "toolCallId", one.id.as_ref())
    };
    match event {
        Event::User(word) if random.chance(500) => vec![json!({"role": "user", "content": word})],
        Event::User(word) => vec![json!({"role": "user", "content": [text_part(word)],
            "providerOptions": {"x": {"y": 1}}})],
        Event::System(word) => vec![json!({"role": "system", "content": word})],
        Event::UserOfNothing => vec![json!({"role": "user", "content": []})],
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought.iter().map(|word| {
                json!({"type": "reasoning", "text": word,
                "providerOptions": {"anthropic": {"signature": "c2ln"}}})
            });
            let parts: Vec<Value> = thought
                .chain(said.iter().map(|word| text_part(word)))
                .chain(calls.iter().map(call))
                .collect();
            vec![json!({"role": "assistant", "content": parts})]
        }
        Event::Results { list, text: said } => {
            let parts: Vec<Value> = list.iter().map(result).collect();
            let mut out = vec![json!({"role": "tool", "content": parts})];
            out.extend(said.iter().map(|word| json!({"role": "user", "content": word})));
            out
        }
        Event::Served { id, word, is_answered } => {
            let call = json!({"type": "tool-call", "toolCallId": id, "toolName": "search",
                "input": {}, "providerExecuted": true});
            let result = json!({"type": "tool-result", "toolCallId": id, "toolName": "search",
                "output": {"type": "json", "value": [1]}});
            let mut parts = vec![call];
            parts.extend(is_answered.then_some(result));
            parts.extend(is_answered.then(|| text_part(word)));
            vec![json!({"role": "assistant", "content": parts})]
        }
        Event::Media(word) => vec![json!({"role": "user", "content": [text_part(word),
            image_part("image", "mediaType"),
            {"type": "file", "mediaType": "application/pdf", "data": "JVBE", "filename": "a.pdf"},
            {"type": "image", "image": "https://example.com/a.png"}]})],
        Event::Unknown(word) => vec![json!({"role": "user", "content":
            [{"type": "of_tomorrow", "x": 1}, text_part(word)]})],
    }
}

fn write_open_claw(event: &Event, random: &mut Random) -> Vec<Value> {
    let call = |call: &Call| {
        let part = json!({"type": "toolCall", "name": "read it", "arguments": {"a": call.word}});
        with_id(part, "id", call.id.as_ref())
    };
    let result = |one: &Outcome| {
        let message = json!({"role": "toolResult", "toolName": "read it", "isError": one.is_error,
            "content": [text_part(&one.word)], "details": {"n": 1},
            "timestamp": 1_700_000_000_000_u64});
        with_id(message, "toolCallId", one.id.as_ref())
    };
    let answer = |parts: Vec<Value>| {
        json!({"role": "assistant", "content": parts, "api": "anthropic-messages",
            "provider": "anthropic", "model": "m", "usage": {"input": 1}, "stopReason": "stop",
            "timestamp": 1_700_000_000_000_u64})
    };
    match event {
        Event::User(word) if random.chance(200) => vec![json!({"role": "custom",
            "customType": "note", "content": word, "display": true, "timestamp": 5})],
        Event::User(word) if random.chance(500) => {
            vec![json!({"role": "user", "content": word, "timestamp": 5})]
        }
        Event::User(word) => vec![json!({"role": "user", "content": [text_part(word)]})],
        Event::System(word) => vec![json!({"role": "system", "content": word})],
        Event::UserOfNothing => vec![json!({"role": "user", "content": []})],
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought.iter().map(|word| {
                json!({"type": "thinking", "thinking": word,
                "thinkingSignature": "c2ln"})
            });
            let said = said.iter().map(|word| text_part(word));
            vec![answer(thought.chain(said).chain(calls.iter().map(call)).collect())]
        }
        Event::Results { list, text: said } => {
            let mut out: Vec<Value> = list.iter().map(result).collect();
            out.extend(said.iter().map(|word| json!({"role": "user", "content": word})));
            out
        }
        Event::Served { word, .. } => vec![json!({"role": "bashExecution", "command": word,
            "output": "", "exitCode": null, "cancelled": false, "truncated": false})],
        Event::Media(word) => vec![json!({"role": "user", "content":
            [text_part(word), image_part("data", "mimeType")]})],
        Event::Unknown(word) => vec![json!({"role": "user", "content":
            [{"type": "of_tomorrow", "x": 1}, text_part(word)]})],
    }
}

fn write_lang_chain(event: &Event, random: &mut Random) -> Vec<Value> {
    let form = random.between(0, 2);
    let message = |kind: &str, class: &str, data: Value| match form {
        0 => json!({"type": kind, "data": data}),
        1 => json!({"lc": 1, "type": "constructor", "kwargs": data,
            "id": ["langchain_core", "messages", class]}),
        _ => {
            let mut flat = data;
            flat["type"] = json!(kind);
            flat
        }
    };
    let call = |call: &Call| {
        let part = json!({"name": "read it", "args": {"a": call.word}, "type": "tool_call"});
        with_id(part, "id", call.id.as_ref())
    };
    let result = |one: &Outcome| {
        let status = if one.is_error { "error" } else { "success" };
        let data = json!({"content": one.word, "name": "read it", "status": status,
            "additional_kwargs": {}});
        message("tool", "ToolMessage", with_id(data, "tool_call_id", one.id.as_ref()))
    };
    let human = |content: Value| message("human", "HumanMessage", json!({"content": content}));
    match event {
        Event::User(word) => vec![human(json!(word))],
        Event::System(word) => {
            vec![message("system", "SystemMessage", json!({"content": word, "name": null}))]
        }
        Event::UserOfNothing => vec![human(json!(""))],
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought.iter().map(|word| {
                json!({"type": "thinking", "thinking": word,
                "signature": "c2ln"})
            });
            let content: Vec<Value> =
                thought.chain(said.iter().map(|word| text_part(word))).collect();
            let calls: Vec<Value> = calls.iter().map(call).collect();
            vec![message(
                "ai",
                "AIMessage",
                json!({"content": content, "tool_calls": calls,
                "invalid_tool_calls": [], "response_metadata": {"model": "m"}, "id": null}),
            )]
        }
        Event::Results { list, text: said } => {
            let mut out: Vec<Value> = list.iter().map(result).collect();
            out.extend(said.iter().map(|word| human(json!(word))));
            out
        }
        Event::Served { word, .. } => vec![message(
            "AIMessageChunk",
            "AIMessageChunk",
            json!({"content": word, "tool_call_chunks": []}),
        )],
        Event::Media(word) => vec![human(json!([text_part(word),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0K"}},
            {"type": "image", "base64": "iVBORw0K", "mime_type": "image/png"}]))],
        Event::Unknown(word) => vec![human(json!([{"type": "of_tomorrow"}, text_part(word)]))],
    }
}

fn write_openai_agents(event: &Event, random: &mut Random) -> Vec<Value> {
    let user = |content: Value| json!({"type": "message", "role": "user", "content": content});
    let input = |word: &str| json!({"type": "input_text", "text": word});
    match event {
        Event::User(word) if random.chance(500) => vec![json!({"role": "user", "content": word})],
        Event::User(word) => vec![user(json!([input(word)]))],
        Event::System(word) => vec![json!({"role": "system", "content": word})],
        Event::UserOfNothing => vec![user(json!([]))],
        Event::Assistant { thought, text: said, calls } => {
            let mut out: Vec<Value> = thought
                .iter()
                .map(|word| {
                    json!({"type": "reasoning", "content": [input(word)],
                    "providerData": {"encrypted_content": "ZW5j"}})
                })
                .collect();
            out.extend(said.iter().map(|word| {
                json!({"type": "message", "role": "assistant",
                "status": "completed", "content": [{"type": "output_text", "text": word}]})
            }));
            out.extend(calls.iter().map(|call| {
                let arguments = json!({"a": call.word}).to_string();
                let item = json!({"type": "function_call", "name": "read it",
                    "status": "completed", "arguments": arguments});
                with_id(item, "callId", call.id.as_ref())
            }));
            if out.is_empty() {
                out.push(json!({"role": "assistant", "status": "completed", "content": []}));
            }
            out
        }
        Event::Results { list, text: said } => {
            let mut out: Vec<Value> = list
                .iter()
                .map(|one| {
                    let item = json!({"type": "function_call_result", "name": "read it",
                        "status": "completed", "output": {"type": "text", "text": one.word}});
                    with_id(item, "callId", one.id.as_ref())
                })
                .collect();
            out.extend(said.iter().map(|word| user(json!(word))));
            out
        }
        Event::Served { id, word, is_answered } => {
            let mut out = vec![json!({"type": "hosted_tool_call", "id": id, "name": "web_search",
                "arguments": "{}", "output": "found", "status": "completed"})];
            out.extend(is_answered.then(|| {
                json!({"role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": word}]})
            }));
            out
        }
        Event::Media(word) => vec![user(json!([input(word),
            {"type": "input_image", "image": "data:image/png;base64,iVBORw0K"},
            {"type": "input_image", "image": {"id": "file-1"}},
            {"type": "input_file", "file": {"url": "https://example.com/a.pdf"}}]))],
        Event::Unknown(word) => {
            vec![json!({"type": "unknown", "providerData": {"x": 1}}), user(json!(word))]
        }
    }
}

/// Returns a message without members that are null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// A history without faults comes back as it was given, in the dialect of a framework.
fn comes_back(dialect: Dialect, seed: u64) {
    let mut generator = Generator::new(seed, true);
    let mut events = vec![Event::User("w0x".into())];
    for _ in 0..generator.random.between(1, 14) {
        events.extend(generator.next());
    }
    let given: Vec<String> =
        events.iter().flat_map(|event| write(dialect, event, &mut generator.random)).collect();
    let mut chat = Chat::new("{}");
    chat.append(dialect, &given);
    let assembled = chat.assemble(dialect, 10_000_000, None);
    let out: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
    let given: Vec<Value> = given.iter().map(|raw| serde_json::from_str(raw).unwrap()).collect();
    for (out, given) in out.iter().zip(&given) {
        assert_eq!(without_nulls(out), without_nulls(given), "{dialect:?} {seed}");
    }
    assert_eq!(out.len(), given.len(), "{dialect:?} {seed}: {}", assembled.messages_json);
    let warnings: Vec<&String> =
        assembled.warnings.iter().filter(|line| !line.starts_with("system")).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn histories_of_frameworks_come_back() {
    for dialect in FRAMEWORKS {
        (0..SEEDS).for_each(|seed| comes_back(dialect, seed));
    }
}
