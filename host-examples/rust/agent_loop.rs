//! An agent over `lcm-host` and the interface of a provider, which has no package for Rust: its
//! requests are sent by `ureq`. `agent_loop anthropic|openai BASE_URL STORE SCRIPT`
//!
//! Every turn: store what was said, compact when it is due, assemble, ask, answer the calls. The
//! agents of `tests/agent_loop` in Node and Python do the same and end with the same store.

use std::{collections::BTreeMap, error::Error, fs};

use lcm_host::{
    Cancel, Clock, Conversation, Lcm,
    completion::{Anthropic, OpenAi},
    ingestion::AppendMode,
    types::Dialect,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

type Done<T> = Result<T, Box<dyn Error>>;

const MODEL: &str = "scripted-1";
const BUDGET: u32 = 6_000;
const BEGIN: u64 = 1_700_000_000_000;

/// What the user says, and the files that the agent may read.
#[derive(Deserialize)]
struct Script {
    said: Vec<String>,
    files: BTreeMap<String, String>,
}

fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [provider, base_url, store, script] = arguments.as_slice() else {
        return Err("usage: agent_loop anthropic|openai BASE_URL STORE SCRIPT".into());
    };
    let script: Script = serde_json::from_str(&fs::read_to_string(script)?)?;
    let builder = Lcm::builder().path(store);
    let (spec, key) = (format!("{MODEL}@{base_url}"), Some("none"));
    let (builder, dialect) = match provider.as_str() {
        "anthropic" => (builder.model(Anthropic::parse(&spec, key)?), Dialect::Anthropic),
        _ => (builder.model(OpenAi::parse(&spec, key)?), Dialect::OpenaiChat),
    };
    let lcm = builder.open(&fs::read("dist/lcm.wasm")?)?;
    let chat =
        lcm.conversation("chat", BUDGET).dialect(dialect).append_mode(AppendMode::New).defer(false);
    let mut time = BEGIN; // a program of yours leaves the clock out
    for text in &script.said {
        time += 60_000;
        let chat = chat.clone().clock(Clock::Fixed(time));
        match dialect {
            Dialect::Anthropic => anthropic(&chat, base_url, &script, text)?,
            _ => openai(&chat, base_url, &script, text)?,
        }
    }
    println!("{}", lcm.digest_all(false, &Cancel::default())?);
    Ok(())
}

/// A message that is said to the model.
#[derive(Serialize)]
struct Said<T> {
    role: &'static str,
    content: T,
}

/// The answer of Anthropic, as far as a loop needs it; its content is stored as it came.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Serialize)]
struct ToolResult {
    r#type: &'static str,
    tool_use_id: String,
    content: String,
    is_error: bool,
}

/// One turn over the Messages interface.
fn anthropic(chat: &Conversation, base_url: &str, script: &Script, text: &str) -> Done<()> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let own = json!({"name": "read_file", "description": "Reads a file.", "input_schema": schema});
    let mut said = serde_json::to_string(&Said { role: "user", content: text })?;
    loop {
        chat.turn(&[said])?;
        let context = chat.assemble()?;
        let request = json!({
            "model": MODEL,
            "max_tokens": 1_000,
            "system": chat.instructions(context.summaries > 0)?,
            "tools": tools(chat, &own)?,
            "messages": serde_json::from_str::<Value>(&context.messages_json)?,
        });
        let answer = ureq::post(format!("{base_url}/v1/messages"))
            .header("x-api-key", "none")
            .header("anthropic-version", "2023-06-01");
        let answer = answer.send(request.to_string())?.body_mut().read_to_string()?;
        let Message { content } = serde_json::from_str(&answer)?;
        chat.append(&[serde_json::to_string(&Said { role: "assistant", content })?])?;
        let mut results = Vec::new();
        for block in serde_json::from_str::<Vec<Block>>(content.get())? {
            let Block::ToolUse { id, name, input } = block else { continue };
            let (content, is_error) = call(chat, script, &name, &input.to_string())?;
            results.push(ToolResult { r#type: "tool_result", tool_use_id: id, content, is_error });
        }
        if results.is_empty() {
            return Ok(());
        }
        said = serde_json::to_string(&Said { role: "user", content: results })?;
    }
}

/// The answer of OpenAI; its message is stored as it came.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct Calls {
    #[serde(default)]
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Serialize)]
struct Answered {
    role: &'static str,
    tool_call_id: String,
    content: String,
}

/// One turn over Chat Completions.
fn openai(chat: &Conversation, base_url: &str, script: &Script, text: &str) -> Done<()> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let own = json!({"name": "read_file", "description": "Reads a file.", "parameters": schema});
    let own = json!({"type": "function", "function": own});
    let mut said = vec![serde_json::to_string(&Said { role: "user", content: text })?];
    while !said.is_empty() {
        chat.turn(&said)?;
        let context = chat.assemble()?;
        let system = chat.instructions(context.summaries > 0)?;
        let mut messages = vec![json!({"role": "system", "content": system})];
        messages.extend(serde_json::from_str::<Vec<Value>>(&context.messages_json)?);
        let request = json!({"model": MODEL, "tools": tools(chat, &own)?, "messages": messages});
        let answer = ureq::post(format!("{base_url}/chat/completions"))
            .header("authorization", "Bearer none")
            .send(request.to_string())?
            .body_mut()
            .read_to_string()?;
        let Completion { choices: [Choice { message }] } = serde_json::from_str(&answer)?;
        chat.append(&[message.get()])?;
        said.clear();
        for Call { id, function } in serde_json::from_str::<Calls>(message.get())?.tool_calls {
            let (content, _) = call(chat, script, &function.name, &function.arguments)?;
            let answered = Answered { role: "tool", tool_call_id: id, content };
            said.push(serde_json::to_string(&answered)?);
        }
    }
    Ok(())
}

/// The tools of the engine and the agent's own.
fn tools(chat: &Conversation, own: &Value) -> Done<Vec<Value>> {
    let mut tools: Vec<Value> = serde_json::from_str(&chat.tools()?)?;
    tools.push(own.clone());
    Ok(tools)
}

/// What a tool answers, and whether that is an error.
fn call(chat: &Conversation, script: &Script, name: &str, input: &str) -> Done<(String, bool)> {
    if name.starts_with("lcm_") {
        let answer = chat.call_tool(name, input)?;
        return Ok((answer.text, answer.is_error));
    }
    let input: Value = serde_json::from_str(input)?;
    let path = input.get("path").and_then(Value::as_str).ok_or("a call without a path")?;
    Ok(match script.files.get(path) {
        Some(text) => (text.clone(), false),
        None => (format!("no such file: {path}"), true),
    })
}
