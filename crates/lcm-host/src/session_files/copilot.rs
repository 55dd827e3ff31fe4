//! Reads sessions of the Copilot CLI.
//! Read from files of the Copilot CLI, 2026-11-28.
//!
//! In: events with `type`, `data`, `id` and `timestamp`, or events of hooks with `prompt` and
//! `output`. Out: messages of `lcm`: prompts, answers with their calls, results of tools, and
//! system messages. Events of sub-agents, which name the call of their parent, are skipped.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{
    SessionContent,
    entries::SUB_AGENTS,
    formats::Fit,
    line::{Object, quoted},
    records::{self, Collector, Draft},
};

/// Beginnings of the types of events.
const PREFIXES: [&str; 14] = [
    "session.",
    "user.",
    "assistant.",
    "tool.",
    "system.",
    "hook.",
    "subagent.",
    "skill.",
    "permission.",
    "command.",
    "model.",
    "agent.",
    "pending_messages.",
    "custom_agent.",
];

/// Types of events that say only what the program did.
const PROGRAM: [&str; 12] = [
    "session.start",
    "session.resume",
    "session.idle",
    "session.model_change",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.usage",
    "hook.start",
    "hook.end",
    "tool.execution_progress",
    "subagent.started",
    "subagent.completed",
];

/// Members of an event that its message has, or that name the event.
const USED: [&str; 15] = [
    "content",
    "prompt",
    "output",
    "toolRequests",
    "reasoningText",
    "toolCallId",
    "toolName",
    "arguments",
    "result",
    "error",
    "success",
    "type",
    "timestamp",
    "id",
    "session_id",
];

/// Returns how a record fits the format.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    let kind = object.text("type").unwrap_or_default();
    let is_event = PREFIXES.iter().any(|prefix| kind.starts_with(prefix));
    let has_text = object.has("prompt") || object.has("output");
    match object.object("data") {
        Some(_) if is_event => Fit::Typical,
        Some(_) if kind == "abort" => Fit::Possible,
        None if is_event && (has_text || object.has("session_id")) => Fit::Typical,
        _ => Fit::No,
    }
}

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    let answers = objects.iter().filter_map(|object| object.object("data"));
    let (mut called, mut thoughts) = (HashSet::new(), HashSet::new());
    for data in answers {
        let requests = data.list("toolRequests").unwrap_or_default();
        let requests = requests.into_iter().filter_map(Object::from_value);
        called.extend(requests.filter_map(|request| request.text("toolCallId")));
        thoughts.extend(data.text("reasoningText"));
    }
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let kind = object.text("type").unwrap_or_default();
        let id = object.text("id");
        let time = object.any("timestamp").map(RawValue::get);
        let data = object.object("data").unwrap_or_else(|| object.clone());
        if kind == "session.start" {
            let context = data.object("context");
            let folder = context.and_then(|context| context.text("cwd"));
            out.set_session(data.text("sessionId"), folder.or_else(|| data.text("cwd")));
        }
        if data.text("parentToolCallId").is_some() {
            out.left.count_message(SUB_AGENTS);
            continue;
        }
        let Some(draft) = read_event(&kind, &data, &called, &thoughts) else {
            // A call and a thought without a draft stand in an answer.
            let is_said = matches!(kind.as_str(), "tool.execution_start" | "assistant.reasoning");
            let has_name = ["toolCallId", "content"].iter().any(|key| data.text(key).is_some());
            let is_repeated = is_said && has_name;
            if !is_repeated && !PROGRAM.contains(&kind.as_str()) {
                out.left.count_line(&kind);
            }
            continue;
        };
        if out.push(index, line, &draft.with_id(id.as_deref(), time)).is_none() {
            out.left.count_line(&format!("{kind} without text"));
        }
    }
    out.into_content()
}

/// Converts an event; `None`: it is no message.
fn read_event(
    kind: &str,
    data: &Object<'_>,
    called: &HashSet<String>,
    thoughts: &HashSet<String>,
) -> Option<Draft<'static>> {
    let text = |key| data.text(key).map(|text| records::text_part(&text));
    let draft = match kind {
        "user.message" => {
            let parts = text("content").or_else(|| text("prompt"));
            let attached = data.list("attachments").unwrap_or_default();
            let attached = attached.into_iter().filter_map(Object::from_value);
            let attached = attached.filter_map(|file| {
                let content = file.text("text").or_else(|| file.text("content"))?;
                let name = file.text("displayName").or_else(|| file.text("filePath"));
                let name = name.or_else(|| file.text("path")).unwrap_or_default();
                Some(records::text_part(&format!("{name}:\n{content}")))
            });
            Draft::new("user").with_parts(parts.into_iter().chain(attached).collect())
        }
        "system.message" => Draft::new("system").with_parts(text("content").into_iter().collect()),
        "assistant.reasoning" => {
            let thought = data.text("content").filter(|text| !thoughts.contains(text))?;
            Draft::new("assistant").with_parts(Vec::from([records::reasoning_part(&thought)]))
        }
        "assistant.message" => {
            let thought = data.text("reasoningText").map(|text| records::reasoning_part(&text));
            let said = text("content").or_else(|| text("output"));
            let requests = data.list("toolRequests").unwrap_or_default();
            let requests = requests
                .into_iter()
                .filter_map(Object::from_value)
                .map(|request| convert_call(&request));
            let parts = thought.into_iter().chain(said).chain(requests).collect();
            Draft::new("assistant").with_parts(parts)
        }
        "tool.execution_start" => {
            let id = data.text("toolCallId").filter(|id| !called.contains(id));
            id.as_ref()?;
            Draft::new("assistant").with_parts(Vec::from([convert_call(data)]))
        }
        "tool.execution_complete" => {
            let id = data.text("toolCallId").unwrap_or_default();
            let output = data.any("result").or_else(|| data.any("error"));
            let output = output.map_or_else(|| quoted(""), read_output);
            let failed = data.any("success").is_some_and(|success| success.get() == "false");
            let name = data.text("toolName").unwrap_or_default();
            let part = records::result_part(&id, &name, &output, failed);
            Draft::new("tool").with_parts(Vec::from([part]))
        }
        _ => return None,
    };
    Some(draft.with_source(data, &USED))
}

fn convert_call(request: &Object<'_>) -> String {
    let name = request.text("name").or_else(|| request.text("toolName")).unwrap_or_default();
    let id = request.text("toolCallId").unwrap_or_default();
    records::call_part(&id, &name, request.any("arguments").map_or("{}", RawValue::get))
}

/// Returns the output of a tool as JSON: what the model was given.
fn read_output(result: &RawValue) -> String {
    let inner = Object::from_value(result).and_then(|it| it.any("content").or(it.any("message")));
    inner.unwrap_or(result).get().to_owned()
}
