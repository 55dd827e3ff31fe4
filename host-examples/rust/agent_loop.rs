//! An agent that uses `lcm-host` and the HTTP API of a provider: `agent_loop anthropic|openai
//! BASE_URL STORE SCRIPT`. The providers have no package for Rust, so `ureq` sends the requests.
//!
//! Every turn stores the new messages, compacts if due, assembles a context, asks the model and
//! answers its tool calls. The agents of `tests/agent_loop` in Node and Python do the same and end
//! with the same store.

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

/// The messages of the user, and the files that the agent may read, by path.
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
    let mut time = BEGIN; // your own program does not set the clock
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

/// A message to the model.
#[derive(Serialize)]
struct Said<T> {
    role: &'static str,
    content: T,
}

/// The parts of Anthropic's answer that a loop needs. `content` is stored unchanged.
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

/// Makes one turn with Anthropic's Messages API.
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
            "system": chat.instructions(true)?,
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

/// The parts of OpenAI's answer that a loop needs. The message is stored unchanged.
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

/// Makes one turn with OpenAI's Chat Completions API.
fn openai(chat: &Conversation, base_url: &str, script: &Script, text: &str) -> Done<()> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let own = json!({"name": "read_file", "description": "Reads a file.", "parameters": schema});
    let own = json!({"type": "function", "function": own});
    let mut said = vec![serde_json::to_string(&Said { role: "user", content: text })?];
    while !said.is_empty() {
        chat.turn(&said)?;
        let context = chat.assemble()?;
        let system = chat.instructions(true)?;
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

/// Returns the definitions of the engine's tools and of the agent's own tool.
fn tools(chat: &Conversation, own: &Value) -> Done<Vec<Value>> {
    let mut tools: Vec<Value> = serde_json::from_str(&chat.tools()?)?;
    tools.push(own.clone());
    Ok(tools)
}

/// Calls a tool. Returns its answer, and whether the answer is an error.
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
