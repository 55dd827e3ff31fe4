//! Generated transcripts of `openai-responses` and `gemini` with every block type.
//!
//! A transcript is assembled unchanged in its own dialect. A damaged transcript becomes a context
//! that every provider accepts.

use lcm_testing::simulation::random::Random;
use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::{Chat, DIALECTS};

/// Transcripts of every test run.
const SEEDS: u64 = 600;
const LARGE: u32 = 10_000_000;

/// A source of unique texts and ids.
struct Source {
    random: Random,
    count: u64,
}

impl Source {
    fn name(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}{}", self.count)
    }

    fn text(&mut self) -> String {
        let word = self.name("w");
        let tail = self.random.pick(&["", " \u{e9}\n\"quoted\"", " \u{1f600}", "\\ud8", " x"]);
        format!("{word}x{tail}")
    }

    fn some<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        of.iter().filter(|_| self.random.chance(500)).cloned().collect()
    }
}

fn input_parts(source: &mut Source) -> Value {
    let mut parts = vec![json!({"type": "input_text", "text": source.text()})];
    parts.extend(source.some(&[
        json!({"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "low"}),
        json!({"type": "input_image", "file_id": "file-1"}),
        json!({"type": "input_file", "filename": "a", "file_data": "data:text/plain;base64,QQ"}),
        json!({"type": "input_file", "file_url": "https://a.example/b"}),
        json!({"type": "input_audio", "input_audio": {"data": "QQ", "format": "mp3"}}),
        json!({"type": "input_of_tomorrow", "x": [null, {}]}),
    ]));
    json!(parts)
}

/// Returns a call and its output.
fn call(source: &mut Source) -> (Value, Value) {
    let prefix = *source.random.pick(&["call_", "c", "functions.exec:", "call_abcdefghijklmn"]);
    let (id, item, text) = (source.name(prefix), source.name("fc_"), source.text());
    let output = match source.random.between(0, 2) {
        0 => input_parts(source),
        1 => json!(""),
        _ => json!(source.text()),
    };
    let action = json!({"type": "exec", "command": [text], "x": 1.50});
    match source.random.between(0, 5) {
        0 => (
            json!({"type": "custom_tool_call", "call_id": id, "name": "sql", "input": text}),
            json!({"type": "custom_tool_call_output", "call_id": id, "output": output}),
        ),
        1 => (
            json!({"type": "computer_call", "id": item, "call_id": id, "action": action,
                "pending_safety_checks": [], "status": "completed"}),
            json!({"type": "computer_call_output", "call_id": id, "output":
                {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBO"}}),
        ),
        2 => (
            json!({"type": "local_shell_call", "id": item, "call_id": id, "action": action}),
            json!({"type": "local_shell_call_output", "id": id, "output": text}),
        ),
        3 => (
            json!({"type": "apply_patch_call", "id": item, "call_id": id, "operation": action}),
            json!({"type": "apply_patch_call_output", "call_id": id, "status": "failed"}),
        ),
        _ => (
            json!({"type": "function_call", "id": item, "call_id": id, "name": "read-it",
                "arguments": format!("{{\"a\":  {}}}", json!(text)), "status": "completed"}),
            json!({"type": "function_call_output", "call_id": id, "output": output}),
        ),
    }
}

/// Appends server tool items with the reasoning before them.
fn served(source: &mut Source, out: &mut Vec<Value>) {
    let items = [
        json!({"type": "web_search_call", "status": "completed", "action": {"query": "q"}}),
        json!({"type": "file_search_call", "status": "completed", "queries": ["q"],
            "results": null}),
        json!({"type": "code_interpreter_call", "code": "1", "outputs":
            [{"type": "logs", "logs": "1"}], "container_id": "c"}),
        json!({"type": "image_generation_call", "result": "iVBO", "status": "completed"}),
        json!({"type": "mcp_list_tools", "server_label": "s", "tools": []}),
        json!({"type": "mcp_call", "server_label": "s", "name": "echo", "arguments": "{}",
            "output": null, "error": {"code": 1}}),
        json!({"type": "item_reference"}),
        json!({"type": "of_tomorrow", "x": "y"}),
    ];
    for mut item in source.some(&items) {
        let prefix = if item["type"] == "web_search_call" { "ws_" } else { "it_" };
        item["id"] = json!(source.name(prefix));
        out.push(item);
    }
    if source.random.chance(200) {
        let id = source.name("mcpr_");
        out.push(json!({"type": "mcp_approval_request", "id": id, "name": "echo",
            "arguments": "{}", "server_label": "s"}));
        out.push(json!({"type": "mcp_approval_response", "approval_request_id": id,
            "approve": true}));
    }
}

fn reasoning(source: &mut Source) -> Value {
    let summary = source.some(&[json!({"type": "summary_text", "text": "thought"})]);
    let mut item = json!({"type": "reasoning", "id": source.name("rs_"), "summary": summary});
    if source.random.chance(500) {
        item["encrypted_content"] = json!("ZW5j");
    }
    item
}

fn openai_responses(source: &mut Source) -> Vec<Value> {
    let mut out = Vec::new();
    for _ in 0..source.random.between(1, 6) {
        out.push(match source.random.between(0, 2) {
            0 => json!({"role": "user", "content": source.text()}),
            1 => json!({"type": "message", "role": "user", "content": input_parts(source)}),
            _ => json!({"role": "user", "content": "", "id": source.name("msg_")}),
        });
        for _ in 0..source.random.between(0, 3) {
            served(source, &mut out);
            if source.random.chance(500) {
                out.push(reasoning(source));
            }
            let text = source.text();
            out.push(match source.random.between(0, 1) {
                0 => json!({"role": "assistant", "content": text, "phase": "commentary"}),
                _ => json!({"type": "message", "id": source.name("msg_"), "role": "assistant",
                    "status": "completed", "content": [
                    {"type": "output_text", "text": text, "annotations": [{"type": "x"}]},
                    {"type": "refusal", "refusal": "no"}]}),
            });
            let mut outputs = Vec::new();
            for _ in 0..source.random.between(0, 3) {
                if source.random.chance(300) {
                    out.push(reasoning(source));
                }
                let (call, output) = call(source);
                out.push(call);
                outputs.push(output);
            }
            if source.random.chance(300) {
                outputs.reverse();
            }
            out.extend(outputs);
        }
        if source.random.chance(200) {
            out.push(json!({"role": "developer", "content": source.text()}));
        }
    }
    out
}

fn gemini(source: &mut Source) -> Vec<Value> {
    let mut out = Vec::new();
    for _ in 0..source.random.between(1, 6) {
        let mut parts = vec![json!({"text": source.text()})];
        parts.extend(source.some(&[
            json!({"inlineData": {"mimeType": "audio/wav", "data": "QQ"}}),
            json!({"fileData": {"fileUri": "https://a.example/b", "mimeType": "video/mp4"},
                "videoMetadata": {"fps": 1.50}}),
            json!({"inline_data": {"mime_type": "image/png", "data": "QQ"}}),
            json!({"ofTomorrow": {"x": []}}),
        ]));
        let is_bare = source.random.chance(200);
        out.push(if is_bare {
            json!({"parts": parts})
        } else {
            json!({"role": "user", "parts": parts})
        });
        let rounds = source.random.between(0, 3);
        for _ in 0..rounds {
            let mut parts = source.some(&[
                json!({"text": "hm", "thought": true}),
                json!({"executableCode": {"language": "PYTHON", "code": "1"}}),
                json!({"codeExecutionResult": {"outcome": "OUTCOME_OK"}}),
                json!({"text": "", "thoughtSignature": "c2ln"}),
            ]);
            parts.push(json!({"text": source.text()}));
            let mut answers = Vec::new();
            let has_ids = source.random.chance(500);
            for _ in 0..source.random.between(1, 3) {
                let name = *source.random.pick(&["read", "list.all", "a:b"]);
                let mut call = json!({"name": name, "args": {"p": source.text()}});
                let response = match source.random.between(0, 2) {
                    0 => json!({"output": source.text()}),
                    1 => json!({"error": source.text()}),
                    _ => json!({"x": source.text(), "y": [1.50]}),
                };
                let mut answer = json!({"name": name, "response": response});
                if has_ids {
                    call["id"] = json!(source.name("f"));
                    answer["id"] = call["id"].clone();
                }
                parts.push(json!({"functionCall": call, "thoughtSignature": "c2ln"}));
                answers.push(json!({"functionResponse": answer}));
            }
            let role = *source.random.pick(&["user", "tool", "function"]);
            out.push(json!({"role": "model", "parts": parts}));
            out.push(json!({"role": role, "parts": answers}));
        }
        if source.random.chance(600) {
            out.push(json!({"role": "model", "parts": [{"text": source.text()}]}));
            out.push(json!({"role": "user", "parts": [{"text": source.text()}]}));
        }
    }
    out
}

/// Removes, duplicates, moves and truncates messages.
fn damaged(source: &mut Source, mut messages: Vec<Value>) -> Vec<Value> {
    for _ in 0..source.random.between(1, 4) {
        let last = messages.len() as u64 - 1;
        let (at, to) = (source.random.between(0, last), source.random.between(0, last));
        let (at, to) = (at as usize, to as usize);
        match source.random.between(0, 4) {
            0 if messages.len() > 1 => drop(messages.remove(at)),
            1 => {
                let mut again = messages[at].clone();
                // The id of the host is removed, except from a reference, which is only an id.
                if again["type"] != "item_reference" {
                    again.as_object_mut().unwrap().remove("id");
                }
                messages.insert(to, again);
            }
            2 => messages.swap(at, to),
            3 => drop(messages[at].as_object_mut().unwrap().remove("call_id")),
            _ => {
                if let Some(parts) = messages[at]["parts"].as_array_mut() {
                    parts.pop();
                }
            }
        }
    }
    messages
}

/// Returns the words of the user's messages.
fn words(messages: &[Value]) -> Vec<String> {
    let said = messages.iter().filter(|message| message["role"] == "user");
    let texts = said.filter_map(|message| match &message["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => list[0]["text"].as_str().map(String::from),
        _ => message["parts"][0]["text"].as_str().map(String::from),
    });
    texts.filter_map(|text| text.split_once('x').map(|(word, _)| format!("{word}x"))).collect()
}

fn run(seed: u64) {
    let dialect = if seed.is_multiple_of(2) { Dialect::OpenaiResponses } else { Dialect::Gemini };
    let mut source = Source { random: Random::new(seed), count: 0 };
    let messages = match dialect {
        Dialect::Gemini => gemini(&mut source),
        _ => openai_responses(&mut source),
    };
    let lines = |messages: &[Value]| messages.iter().map(Value::to_string).collect::<Vec<_>>();
    let mut chat = Chat::new("{}");
    for batch in lines(&messages).chunks(100) {
        chat.append(dialect, batch);
    }
    let assembled = chat.assemble(dialect, LARGE, None);
    let out: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
    for (out, given) in out.iter().zip(&messages) {
        let mut given = given.clone();
        // Gemini has only the roles `user` and `model`.
        if dialect == Dialect::Gemini && given["role"] != "model" {
            given["role"] = json!("user");
        }
        // No null member goes out; `code` and `outputs` are never null here.
        given.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(*out, given, "{}", json!(messages));
    }
    assert_eq!(out.len(), messages.len());
    assert_eq!(assembled.warnings, Vec::<String>::new());

    let mut chat = Chat::new("{}");
    let messages = damaged(&mut source, messages);
    for batch in lines(&messages).chunks(100) {
        chat.append(dialect, batch);
    }
    for out in DIALECTS {
        let assembled = chat.assemble(out, LARGE, None);
        for word in words(&messages) {
            let all =
                [&assembled.messages_json, assembled.system.as_deref().unwrap_or("")].concat();
            assert!(all.contains(&word), "{out:?} lost {word}: {all}");
        }
        if out != Dialect::Lcm && assembled.messages_json != "[]" {
            let findings = chat.findings(out, &assembled.messages_json);
            assert_eq!(findings, "[]", "{out:?}: {}", assembled.messages_json);
        }
    }
}

#[test]
fn transcripts_come_back_equal_and_are_sound_when_damaged() {
    for seed in 0..SEEDS {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
