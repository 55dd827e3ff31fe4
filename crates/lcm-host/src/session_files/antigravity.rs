//! Reads trajectories of Antigravity.
//! Read from files of Antigravity, 2026-11-28.
//!
//! In: steps with `step_index`, `type`, `source`, `status` and `content`. Out: messages of `lcm`:
//! the input of the person, the responses of the model with their calls, and the outputs of tools.
//!
//! Steps of a tool have no id of their call, so a call and its output get the id of the step.

use serde_json::value::RawValue;

use super::{
    SessionContent,
    formats::Fit,
    line::{Object, quoted},
    records::{self, Collector, Draft},
};

const USED: [&str; 6] = ["type", "content", "thinking", "tool_calls", "timestamp", "created_at"];

/// Returns how a record fits the format.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    Fit::typical_if(object.has("step_index") && object.has("type") && object.has("source"))
}

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    // Ids of calls whose output follows, with their names.
    let mut open: Vec<(String, String)> = Vec::new();
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let kind = object.text("type").unwrap_or_default();
        let step = object.any("step_index").map(|step| format!("step {}", step.get()));
        let time = object.any("created_at").or_else(|| object.any("timestamp"));
        let time = time.map(RawValue::get);
        let content = read_content(object);
        let text = (!content.trim().is_empty()).then(|| records::text_part(&content));
        let source = object.text("source").unwrap_or_default();
        let head =
            |role| Draft::new(role).with_id(step.as_deref(), time).with_source(object, &USED);
        if source.starts_with("USER") || kind == "USER_INPUT" {
            out.push(index, line, &head("user").with_parts(text.into_iter().collect()));
        } else if source == "MODEL" && kind == "PLANNER_RESPONSE" {
            let thoughts = object.text("thinking").map(|text| records::reasoning_part(&text));
            let mut parts: Vec<String> = thoughts.into_iter().chain(text).collect();
            open.clear();
            let calls = object.list("tool_calls").unwrap_or_default();
            for (place, call) in calls.into_iter().filter_map(Object::from_value).enumerate() {
                let step = step.as_deref().unwrap_or_default();
                let id = call.text("id").unwrap_or_else(|| format!("{step} call {place}"));
                let name = call.text("name").unwrap_or_default();
                let input = call.any("args").or_else(|| call.any("arguments"));
                let input = input.map_or("{}", RawValue::get);
                parts.push(records::call_part(&id, &name, input));
                open.push((id, name));
            }
            out.push(index, line, &head("assistant").with_parts(parts));
        } else if source == "MODEL" && text.is_some() && !open.is_empty() {
            let (id, name) = open.remove(0);
            let part = records::result_part(&id, &name, &quoted(&content), false);
            out.push(index, line, &head("tool").with_parts(Vec::from([part])));
        } else if let Some(text) = text {
            // Context of the program, and outputs whose call is not in the file.
            let shown = format!("[{}]", kind.to_lowercase().replace('_', " "));
            let parts = Vec::from([records::text_part(&shown), text]);
            out.push(index, line, &head("user").with_parts(parts));
        } else {
            out.left.count_line(&kind);
        }
    }
    out.into_content()
}

/// Returns the content of a step: a string, or any other value as JSON.
fn read_content(object: &Object<'_>) -> String {
    let Some(content) = object.any("content") else { return String::new() };
    serde_json::from_str(content.get()).unwrap_or_else(|_| content.get().to_owned())
}
