//! Reads the output of `codex exec --json`.
//!
//! In: events `thread.*`, `turn.*`, `item.*` and `error`. Out: messages of `lcm`. An item counts
//! as its newest event says: `item.completed`, or while the item lasts `item.started`. A command,
//! a call of a tool server and a search become a call and, once it is complete, its result.
//!
//! Item ids count within a thread, so the id of the thread is their prefix. The prompt is not in
//! the output.

use std::collections::HashMap;

use super::{
    SessionContent,
    formats::Fit,
    line::{Object, Text, quoted},
    records::{self, Collector, Draft},
};

/// Members of a call that its parts have.
const USED: [&str; 10] = [
    "id",
    "type",
    "item_type",
    "command",
    "aggregated_output",
    "arguments",
    "result",
    "error",
    "query",
    "changes",
];
/// Members of a call that its result has.
const RESULT: [&str; 2] = ["status", "exit_code"];

/// Returns how a record fits the format.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    let kind = object.text("type").unwrap_or_default();
    if kind == "error" {
        return Fit::Possible;
    }
    let is_event = ["thread.", "turn.", "item."].iter().any(|prefix| kind.starts_with(prefix));
    let has_more = kind == "thread.started" || object.any("item").is_some();
    match (is_event, has_more) {
        (true, true) => Fit::Typical,
        (true, false) => Fit::Possible,
        (false, _) => Fit::No,
    }
}

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> SessionContent {
    let mut out = Collector::default();
    let mut newest: HashMap<String, usize> = HashMap::new();
    for (index, object) in objects.iter().enumerate() {
        if let Some(id) = object.object("item").and_then(|item| item.text("id")) {
            newest.insert(id, index);
        }
    }
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let kind = object.text("type").unwrap_or_default();
        if let Some(thread) = object.text("thread_id") {
            out.ids.enter_session(&thread);
            out.set_session(Some(thread), None);
        }
        let Some(item) = object.object("item") else {
            out.left.count_line(&kind);
            continue;
        };
        let id = item.text("id").unwrap_or_default();
        if !id.is_empty() && newest.get(&id) != Some(&index) {
            continue;
        }
        read_item(&mut out, index, line, &item);
    }
    out.into_content()
}

/// Adds the messages of an item.
fn read_item(out: &mut Collector, index: usize, line: &str, item: &Object<'_>) {
    // Early versions name the type of an item `item_type`.
    let kind = item.text("type").or_else(|| item.text("item_type")).unwrap_or_default();
    let id = item.text("id");
    let id = id.as_deref();
    let text = item.text("text").unwrap_or_default();
    let add = |out: &mut Collector, role, part: String| {
        let draft = Draft::new(role).with_id(id, None).with_parts(Vec::from([part]));
        out.push(index, line, &draft.with_source(item, &["id", "type", "item_type", "text"]))
    };
    match kind.as_str() {
        "agent_message" | "assistant_message" => {
            add(out, "assistant", records::text_part(&text));
        }
        "user_message" => {
            add(out, "user", records::text_part(&text));
        }
        "reasoning" => {
            add(out, "assistant", records::reasoning_part(&text));
        }
        "error" => {
            let message = item.text("message").unwrap_or_default();
            add(out, "assistant", records::text_part(&format!("Error: {message}")));
        }
        kind => read_call(out, (index, line), kind, item),
    }
}

/// Adds a call with its result.
fn read_call(out: &mut Collector, (index, line): (usize, &str), kind: &str, item: &Object<'_>) {
    let id = item.text("id").unwrap_or_else(|| format!("{kind} {index}"));
    let (name, input, output) = match kind {
        "command_execution" => (
            "command_execution".to_owned(),
            item.any("command").map(|command| format!("{{\"command\":{}}}", command.get())),
            item.any("aggregated_output").map(|output| output.get().to_owned()),
        ),
        "mcp_tool_call" => (
            format!(
                "{}.{}",
                item.text("server").unwrap_or_default(),
                item.text("tool").unwrap_or_default()
            ),
            item.any("arguments").map(|input| input.get().to_owned()),
            item.any("result").or_else(|| item.any("error")).map(|it| it.get().to_owned()),
        ),
        "web_search" => (
            "web_search".to_owned(),
            item.any("query").map(|query| format!("{{\"query\":{}}}", query.get())),
            Some(quoted("done")),
        ),
        "file_change" => (
            "file_change".to_owned(),
            item.any("changes").map(|changes| format!("{{\"changes\":{}}}", changes.get())),
            item.any("status").map(|status| status.get().to_owned()),
        ),
        _ => {
            out.left.count_line(&format!("item {kind}"));
            return;
        }
    };
    let call = records::call_part(&id, &name, input.as_deref().unwrap_or("{}"));
    // Members that change while the item lasts belong to the result.
    let of_call: Vec<&str> = USED.into_iter().chain(RESULT).collect();
    let draft = Draft::new("assistant").with_id(Some(&id), None).with_parts(Vec::from([call]));
    out.push(index, line, &draft.with_source(item, &of_call));
    let status = item.text("status").unwrap_or_default();
    if let Some(output) = output.filter(|_| status != "in_progress") {
        let failed = matches!(status.as_str(), "failed" | "declined");
        let part = records::result_part(&id, &name, &output, failed);
        let result_id = format!("{id}/result");
        let mut draft =
            Draft::new("tool").with_id(Some(&result_id), None).with_parts(Vec::from([part]));
        draft.source =
            RESULT.iter().fold(Text::default(), |text, key| text.kept(key, item.any(key))).end();
        out.push(index, line, &draft);
    }
}
