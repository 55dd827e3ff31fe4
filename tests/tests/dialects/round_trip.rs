//! Round trip of every published block type: the assembled messages equal the appended ones.

use lcm_text::types::api::{AssembledContext, Dialect};
use serde_json::{Value, json};

use crate::Chat;

fn through(dialect: Dialect, messages: &[Value]) -> AssembledContext {
    let mut chat = Chat::new("{}");
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    chat.append(dialect, &lines);
    let assembled = chat.assemble(dialect, 1_000_000, None);
    assert_eq!(chat.findings(dialect, &assembled.messages_json), "[]");
    assembled
}

fn comes_back(dialect: Dialect, messages: &[Value]) {
    let assembled = through(dialect, messages);
    let out: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
    for (out, given) in out.iter().zip(messages) {
        assert_eq!(out, given);
    }
    assert_eq!(out.len(), messages.len());
    assert_eq!(assembled.warnings, Vec::<String>::new());
}

fn user(blocks: Value) -> Value {
    json!({"role": "user", "content": blocks})
}

fn assistant(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns server tool calls with their results, in one turn.
fn served() -> Value {
    assistant(json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
            "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "u", "title": "t",
                "encrypted_content": "ZW5j", "page_age": null}]},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_fetch", "input": {}},
        {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_2", "content":
            {"type": "web_fetch_tool_result_error", "error_code": "unavailable"}},
        {"type": "server_tool_use", "id": "srvtoolu_3", "name": "code_execution",
            "input": {"code": "1"}},
        {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_3", "content":
            {"type": "code_execution_result", "stdout": "1", "stderr": "",
                "return_code": 0, "content": []}},
        {"type": "server_tool_use", "id": "srvtoolu_4", "name": "bash_code_execution",
            "input": {}},
        {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_4",
            "content": {"type": "bash_code_execution_result"}},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo",
            "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false,
            "content": [text("said")]},
        text("done")
    ]))
}

#[test]
fn every_anthropic_block_comes_back() {
    let base64 =
        |kind: &str, data: &str| json!({"type": "base64", "media_type": kind, "data": data});
    let ephemeral = json!({"type": "ephemeral", "ttl": "1h"});
    let location = json!({"type": "char_location", "cited_text": "x", "document_index": 0,
        "document_title": null, "start_char_index": 0, "end_char_index": 1});
    comes_back(
        Dialect::Anthropic,
        &[
            user(json!([
                {"type": "text", "text": "all of it", "cache_control": ephemeral},
                {"type": "image", "source": base64("image/png", "iVBORw0K")},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {"type": "document", "source": base64("application/pdf", "JVBERi0"),
                    "title": "t", "context": "c", "citations": {"enabled": true}},
                {"type": "document", "source":
                    {"type": "text", "media_type": "text/plain", "data": "plain"}},
                {"type": "document", "source": {"type": "url", "url": "https://example.com/b"}},
                {"type": "document", "source": {"type": "content", "content": [text("in")]}},
                {"type": "document", "source": {"type": "file", "file_id": "file_2"}},
                {"type": "search_result", "source": "s", "title": "t", "content": [text("r")]},
                {"type": "container_upload", "file_id": "file_3"},
                {"type": "of_tomorrow", "x": [1, 2.50, null]}
            ])),
            assistant(json!([
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "text", "text": "cited", "citations": [location]},
                {"type": "tool_use", "id": "toolu_01", "name": "read",
                    "input": {"b": 1, "a": {"deep": []}}, "cache_control": ephemeral},
                {"type": "tool_use", "id": "toolu_02", "name": "list", "input": {}},
                {"type": "tool_use", "id": "toolu_03", "name": "none", "input": {}}
            ])),
            user(json!([
                {"type": "tool_result", "tool_use_id": "toolu_01", "content": [
                    text("a"),
                    {"type": "image", "source": base64("image/jpeg", "/9j/")},
                    {"type": "search_result", "source": "s", "title": "t", "content": [text("r")]},
                    {"type": "tool_reference", "tool_name": "other"}
                ]},
                {"type": "tool_result", "tool_use_id": "toolu_02", "content": "failed",
                    "is_error": true},
                {"type": "tool_result", "tool_use_id": "toolu_03"},
                {"type": "text", "text": "and go on"}
            ])),
            served(),
            user(json!([text("thanks")])),
        ],
    );
}

#[test]
fn every_openai_chat_message_comes_back() {
    let function = |id: &str, arguments: &str| {
        json!({"id": id, "type": "function",
            "function": {"name": "read", "arguments": arguments}})
    };
    comes_back(
        Dialect::OpenaiChat,
        &[
            json!({"role": "user", "name": "ann", "content": "hello"}),
            json!({"role": "developer", "content": "be brief"}),
            json!({"role": "system", "name": "s", "content": [text("be kind")]}),
            json!({"role": "user", "content": [
                text("see"), text(""),
                {"type": "image_url", "image_url":
                    {"url": "data:image/png;base64,iVBORw0K", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,JVBERi0"}}
            ]}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                function("call_1", "{\"a\": 1 }"), function("call_2", ""),
                {"id": "call_3", "type": "custom", "custom": {"name": "sql", "input": "select"}}
            ]}),
            json!({"role": "tool", "tool_call_id": "call_1", "content": "one"}),
            json!({"role": "tool", "tool_call_id": "call_2", "content": [text("two")]}),
            json!({"role": "tool", "tool_call_id": "call_3", "content": ""}),
            json!({"role": "assistant", "content": [text("no"),
                {"type": "refusal", "refusal": "never"}]}),
            json!({"role": "assistant", "refusal": "I will not"}),
            json!({"role": "assistant", "audio": {"id": "audio_1"}}),
            json!({"role": "user", "content": ""}),
            json!({"role": "assistant", "content": "said", "reasoning_content": "hm"}),
        ],
    );
}

#[test]
fn what_a_response_or_a_host_adds_is_not_sent() {
    let response = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [text("answer")], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1}, "container": {"id": "c"}, "timestamp": 5});
    let messages = [
        json!({"role": "user", "content": "q", "id": "e1", "event_key": "k"}),
        response,
        json!({"role": "user", "content": "r"}),
    ];
    let out = through(Dialect::Anthropic, &messages).messages_json;
    let expected = json!([
        user(json!([text("q")])),
        assistant(json!([text("answer")])),
        user(json!([text("r")]))
    ]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);

    let messages = [
        json!({"role": "user", "content": "q", "id": "e1", "timestamp": 5}),
        json!({"role": "assistant", "content": null, "tool_calls": [], "id": "e2", "audio":
            {"id": "a", "data": "UklG", "expires_at": 5, "transcript": "said"}}),
    ];
    let out = through(Dialect::OpenaiChat, &messages).messages_json;
    let expected = json!([{"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "audio": {"id": "a"}}]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
}

#[test]
fn of_many_cache_marks_the_newest_four_stay() {
    let marked = |n: u32| {
        json!({"role": "user", "content": [
            {"type": "text", "text": format!("m{n}"), "cache_control": {"type": "ephemeral"}}]})
    };
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
        "content": [{"type": "text", "text": "r", "cache_control": {"type": "ephemeral"}}]}]});
    let call = assistant(json!([{"type": "tool_use", "id": "t", "name": "n",
        "input": {"cache_control": "is an input"}}]));
    let messages = [marked(1), marked(2), call, result, marked(3), marked(4), marked(5)];
    let out = through(Dialect::Anthropic, &messages).messages_json;
    let bare = |word: &str| out.contains(&json!({"type": "text", "text": word}).to_string());
    assert!(bare("m1") && bare("m2") && !bare("m3"), "{out}");
    assert_eq!(out.matches("\"cache_control\":{").count(), 4);
    assert!(out.contains("{\"cache_control\":\"is an input\"}"));
}

#[test]
fn a_legacy_function_call_becomes_a_tool_call() {
    let messages = [
        json!({"role": "user", "content": "q"}),
        json!({"role": "assistant", "content": null,
            "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "function", "name": "f", "content": "r"}),
    ];
    let out = through(Dialect::OpenaiChat, &messages).messages_json;
    let out: Value = serde_json::from_str(&out).unwrap();
    let id = out[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(out[2], json!({"role": "tool", "tool_call_id": id, "content": "r"}));
    assert_eq!(out[1]["tool_calls"][0]["function"]["name"], "f");
}

#[test]
fn a_provider_at_work_is_waited_for() {
    let messages = [
        user(json!([text("q")])),
        assistant(json!([
        text("let me see"),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}])),
    ];
    comes_back(Dialect::Anthropic, &messages);
    let mut answered = messages.to_vec();
    answered.push(user(json!([text("never mind")])));
    let out = through(Dialect::Anthropic, &answered);
    assert!(!out.messages_json.contains("server_tool_use"));
    assert!(out.warnings.iter().any(|line| line.starts_with("block-left-out")));
}
